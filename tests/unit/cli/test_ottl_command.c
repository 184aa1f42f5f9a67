/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame ottl`: output, errors and status. */
#include "src/cli/ottl_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MAX = 8 };

#define BEFORE                                                                                     \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"     \
    "\"a\",\"status\":{}},{\"name\":\"b\",\"status\":{}}]}]}]}"

static char path[] = "/tmp/test_ottl_command_XXXXXX";

/* words: FILE stands for the file, which has that content. */
static void expect(const char *content, const char *const words[WORDS_MAX],
                   enum ottl_command_result status, const char *out_text, const char *problem)
{
    char *arguments[WORDS_MAX];
    char *out_bytes = NULL;
    char *problem_bytes = NULL;
    size_t out_size, problem_size;
    int count = 0;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    FILE *out = open_memstream(&out_bytes, &out_size);
    FILE *problems = open_memstream(&problem_bytes, &problem_size);
    for (; count < WORDS_MAX && words[count] != NULL; count++)
        arguments[count] = strdup(strcmp(words[count], "FILE") == 0 ? path : words[count]);
    char *given[WORDS_MAX];
    memcpy(given, arguments, sizeof(arguments));
    assert_int_equal(ottl_command("spanflame", count, given, out, problems), status);
    fclose(out);
    fclose(problems);
    if (out_text != NULL)
        assert_string_equal(out_bytes, out_text);
    if (strstr(problem_bytes, problem) == NULL)
        fail_msg("found: %s", problem_bytes);
    for (int i = 0; i < count; i++)
        free(arguments[i]);
    free(out_bytes);
    free(problem_bytes);
}

static void test_statements(void **state)
{
    (void)state;
    static const char *const with_context[WORDS_MAX] = {
        "--context", "span", "set(name, \"c\") where name == \"a\"", "FILE"};
    static const char *const without[WORDS_MAX] = {"set(span.name, \"c\")", "set(span.name, \"d\")",
                                                   "FILE"};
    static const char *const failing[WORDS_MAX] = {"set(span.name, 1)", "FILE"};
    static const char *const dropping[WORDS_MAX] = {"--filter", "span.name == \"a\"", "FILE"};
    static const char *const emptying[WORDS_MAX] = {"--filter", "--context=span", "true", "FILE"};
    expect(BEFORE, with_context, OTTL_COMMAND_RAN,
           "before: " BEFORE "\nafter: {\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{"
           "\"scope\":{},\"spans\":[{\"name\":\"c\",\"status\":{}},{\"name\":\"b\",\"status\":{}}]}"
           "]}]}\n",
           "");
    expect(BEFORE, without, OTTL_COMMAND_RAN,
           "before: " BEFORE "\nafter: {\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{"
           "\"scope\":{},\"spans\":[{\"name\":\"d\",\"status\":{}},{\"name\":\"d\",\"status\":{}}]}"
           "]}]}\n",
           "");
    expect(BEFORE, failing, OTTL_COMMAND_FAILED_SOME, "before: " BEFORE "\nafter: " BEFORE "\n",
           "set(span.name, 1): expects string but got int64");
    expect(BEFORE, dropping, OTTL_COMMAND_RAN,
           "before: " BEFORE "\nafter: {\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{"
           "\"scope\":{},\"spans\":[{\"name\":\"b\",\"status\":{}}]}]}]}\n",
           "");
    expect(BEFORE, emptying, OTTL_COMMAND_RAN, "before: " BEFORE "\nafter: nothing is left\n", "");
}

static void test_mistakes(void **state)
{
    (void)state;
    static const char *const statement[WORDS_MAX] = {"set(span.nam, 1)", "FILE"};
    static const char *const context[WORDS_MAX] = {"--context", "log", "set(body, 1)", "FILE"};
    static const char *const no_file[WORDS_MAX] = {"set(span.name, 1)"};
    static const char *const missing[WORDS_MAX] = {"set(span.name, 1)", "/nowhere/x"};
    static const char *const flag[WORDS_MAX] = {"--no", "set(span.name, 1)", "FILE"};
    static const char *const help[WORDS_MAX] = {"--help"};
    expect(BEFORE, statement, OTTL_COMMAND_WRONG, "",
           "set(span.nam, 1): column 5: a span has no path \"nam\" (did you mean \"name\"?)");
    expect(BEFORE, context, OTTL_COMMAND_WRONG, "", "traces have no context \"log\"");
    expect(BEFORE, no_file, OTTL_COMMAND_WRONG, "", "a statement and a file are needed");
    expect(BEFORE, missing, OTTL_COMMAND_WRONG, "", "/nowhere/x: No such file or directory");
    expect(BEFORE, flag, OTTL_COMMAND_WRONG, "", "unknown flag: --no");
    expect("{}", statement, OTTL_COMMAND_WRONG, "",
           "no request of traces, metrics, logs or profiles");
    expect("{\"resourceSpans\":[", statement, OTTL_COMMAND_WRONG, "", path);
    expect(BEFORE, help, OTTL_COMMAND_RAN, NULL, "");
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
