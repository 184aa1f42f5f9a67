/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, however their bytes come. */
#include "src/follow/line_splitter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct split_case {
    const char *text;
    struct line_splitter splitter;
    bool is_end;
    const char *lines; /* each in brackets */
};

#define PLAIN                                                                                      \
    {                                                                                              \
        .bytes_max = 5                                                                             \
    }
#define TRUNCATES                                                                                  \
    {                                                                                              \
        .bytes_max = 5, .truncates = true                                                          \
    }

static const struct split_case cases[] = {
    {"", PLAIN, true, ""},
    {"a\nb\n", PLAIN, false, "[a][b]"},
    {"a\nb", PLAIN, false, "[a]"},
    {"a\nb", PLAIN, true, "[a][b]"},
    {"a\r\nb\r", PLAIN, true, "[a][b]"},
    {"\n\na\n", PLAIN, false, "[][][a]"},
    {" a\t\n", PLAIN, false, "[a]"},
    {" a\t\n", {.bytes_max = 5, .keeps_leading = true}, false, "[ a]"},
    {" a\t\n", {.bytes_max = 5, .keeps_trailing = true}, false, "[a\t]"},
    {" \n", PLAIN, false, "[]"},
    {"1234\n", PLAIN, false, "[1234]"},
    {"12345\n", PLAIN, false, "[12345]"},
    {"12345", PLAIN, false, ""},
    {"12345", PLAIN, true, "[12345]"},
    {"123456\nb\n", PLAIN, false, "[12345][6][b]"},
    {"12345678901\nb\n", PLAIN, false, "[12345][67890][1][b]"},
    {"123456\nb\n", TRUNCATES, false, "[12345][b]"},
    {"12345678901234567890\nb\n", TRUNCATES, false, "[12345][b]"},
    {"123456", TRUNCATES, true, "[12345]"},
    {"a\nb\n", {.bytes_max = 9, .takes_all = true}, false, ""},
    {"a\nb\n", {.bytes_max = 9, .takes_all = true}, true, "[a\nb]"},
    {"a\nb\nc", {.bytes_max = 3, .takes_all = true}, true, "[a\nb][c]"},
};

/* The text in pieces of that size, in a buffer that holds what is not used yet. */
static void split(const struct split_case *row, size_t piece, char *found)
{
    struct line_splitter splitter = row->splitter;
    char data[64];
    size_t size = 0;
    size_t left = strlen(row->text);
    const char *next = row->text;
    found[0] = '\0';
    for (bool is_done = false; !is_done;) {
        size_t more = left < piece ? left : piece;
        memcpy(data + size, next, more);
        size += more;
        next += more;
        left -= more;
        is_done = left == 0;
        bool is_end = is_done && row->is_end;
        for (;;) {
            struct slice line;
            size_t used;
            enum split_step step =
                line_splitter_next(&splitter, slice_of(data, size), is_end, &used, &line);
            if (step == SPLIT_MORE) {
                assert_int_equal(used, 0);
                break;
            }
            assert_true(used > 0 && used <= size);
            if (step == SPLIT_LINE)
                sprintf(found + strlen(found), "[%.*s]", (int)line.size, (const char *)line.data);
            memmove(data, data + used, size - used);
            size -= used;
        }
        assert_true(size <= splitter.bytes_max + piece);
    }
}

static void texts_become_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t piece = 1; piece <= 32; piece *= 2) {
            char found[256];
            split(&cases[i], piece, found);
            print_message("   %zu %zu %s\n", i, piece, found);
            assert_string_equal(found, cases[i].lines);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_become_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
