/* SPDX-License-Identifier: Apache-2.0 */
/* Main thread. */
#include "src/cli/ottl_command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/ottl/ottl_runner.h"
#include "src/profiles/otlp/profile_normalize.h"

enum { FILE_BYTES_MAX = 64 << 20, FILE_BYTES_FIRST = 64 * 1024 };

struct arguments {
    const char *context; /* NULL: as the paths say */
    bool is_filter;
    const char *const *texts;
    size_t texts_count;
    const char *file;
};

struct failures {
    FILE *problems;
    unsigned count;
};

static bool print_usage(const char *program, FILE *out)
{
    fprintf(
        out,
        "Usage:\n  %s ottl [--context CONTEXT] [--filter] TEXT… FILE\n\n"
        "Runs statements of OTTL over a file of OTLP/JSON (\"-\": standard input) and prints it "
        "before and after.\n\n"
        "  --context CONTEXT  resource, scope, span, spanevent, metric, datapoint, exemplar, log, "
        "profile or\n                     profilesample; without it paths begin with their "
        "context\n"
        "  --filter           the texts are conditions; what they hold for is dropped\n",
        program);
    return false;
}

static bool parse_arguments(int count, char **arguments, struct arguments *ret, struct error *error)
{
    int words = 0;
    *ret = (struct arguments){.texts = NULL};
    for (int i = 0; i < count; i++) {
        const char *word = arguments[i];
        if (strncmp(word, "--context=", strlen("--context=")) == 0) {
            ret->context = word + strlen("--context=");
        } else if (strcmp(word, "--context") == 0) {
            if (++i == count)
                return error_set(error, "flag needs an argument: --context");
            ret->context = arguments[i];
        } else if (strcmp(word, "--filter") == 0) {
            ret->is_filter = true;
        } else if (word[0] == '-' && word[1] != '\0') {
            return error_set(error, "unknown flag: %s", word);
        } else {
            arguments[words++] = arguments[i];
        }
    }
    if (words < 2)
        return error_set(error, "a statement and a file are needed; see \"ottl --help\"");
    ret->texts = (const char *const *)arguments;
    ret->texts_count = (size_t)words - 1;
    ret->file = arguments[words - 1];
    return true;
}

/* The caller frees the slice's data. */
static bool read_file(const char *path, struct slice *ret, struct error *error)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    size_t capacity = FILE_BYTES_FIRST;
    size_t size = 0;
    if (file == NULL)
        return error_set(error, "%s: %s", path, strerror(errno));
    uint8_t *data = mem_alloc(capacity);
    for (;;) {
        size += fread(data + size, 1, capacity - size, file);
        if (size < capacity || capacity >= FILE_BYTES_MAX)
            break;
        capacity *= 2;
        data = mem_resize(data, capacity);
    }
    bool is_read = ferror(file) == 0 && size < capacity;
    if (file != stdin)
        fclose(file);
    *ret = slice_of(data, size);
    if (is_read)
        return true;
    mem_free(data);
    return error_set(error, "%s: cannot be read, or larger than %d MiB", path,
                     FILE_BYTES_MAX >> 20);
}

/* By the name of the first field that a request has. */
static bool find_signal(struct slice text, enum signal_kind *ret)
{
    static const char *const names[][2] = {
        [TRACES] = {"\"resourceSpans\"", "\"resource_spans\""},
        [METRICS] = {"\"resourceMetrics\"", "\"resource_metrics\""},
        [LOGS] = {"\"resourceLogs\"", "\"resource_logs\""},
        [PROFILES] = {"\"resourceProfiles\"", "\"resource_profiles\""}};
    const uint8_t *first = NULL;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (unsigned k = 0; k < 2; k++) {
            const uint8_t *found = memmem(text.data, text.size, names[i][k], strlen(names[i][k]));
            if (found != NULL && (first == NULL || found < first)) {
                first = found;
                *ret = (enum signal_kind)i;
            }
        }
    return first != NULL;
}

static struct batch *read_request(const char *path, struct error *error)
{
    char reason[JSON_REASON_BYTES_MAX];
    struct slice text;
    enum signal_kind signal;
    struct buffer *encoded;
    struct otlp_figures figures;
    const char *failure = "";
    if (!read_file(path, &text, error))
        return NULL;
    bool is_known = find_signal(text, &signal);
    bool is_json =
        is_known && json_read(otlp_request(signal), text, NULL, &encoded, reason) == JSON_READ;
    mem_free((void *)(uintptr_t)text.data);
    if (!is_known)
        error_set(
            error,
            "%s: no request of traces, metrics, logs or profiles: expected \"resourceSpans\", "
            "\"resourceMetrics\", \"resourceLogs\" or \"resourceProfiles\"",
            path);
    else if (!is_json)
        error_set(error, "%s: %s", path, reason);
    if (!is_json)
        return NULL;
    struct batch *batch = NULL;
    struct profile_normalized normalized;
    if (signal == PROFILES && otlp_check(signal, buffer_slice(encoded), &figures, &failure)) {
        if (profile_normalize(encoded, buffer_slice(encoded), PROFILE_LAYOUTS, NULL, &normalized) !=
            PROFILES_TAKEN) {
            error_set(error, "%s: %s", path, normalized.reason);
        } else {
            batch = batch_create(signal, 1);
            batch_append(batch, normalized.owner, normalized.request);
            batch->items = normalized.samples;
            buffer_unref(normalized.owner);
        }
    } else if (otlp_check(signal, buffer_slice(encoded), &figures, &failure)) {
        batch = batch_create(signal, 1);
        batch_append(batch, encoded, buffer_slice(encoded));
        batch->items = figures.items;
    } else {
        error_set(error, "%s: %s", path, failure);
    }
    buffer_unref(encoded);
    return batch;
}

static void print_batch(const char *title, const struct batch *batch, FILE *out)
{
    struct buffer *json = json_write_batch(batch, NULL);
    fprintf(out, "%s: ", title);
    if (json != NULL)
        fwrite(json->data, 1, json->size, out);
    fputc('\n', out);
    buffer_unref(json);
}

static void on_failure(void *arg, const char *text, const char *error)
{
    struct failures *failures = arg;
    fprintf(failures->problems, "%s: %s\n", text, error);
    failures->count++;
}

static struct ottl_plan *make_plan(const struct arguments *arguments, enum signal_kind signal,
                                   struct error *error)
{
    enum ottl_context context = OTTL_CONTEXTS;
    if (arguments->context != NULL) {
        context = ottl_context_find(slice_of_text(arguments->context));
        if (context == OTTL_CONTEXTS ||
            (ottl_contexts_of(signal) & OTTL_CONTEXT_BIT(context)) == 0) {
            error_set(error, "%s have no context \"%s\"", signal_name(signal), arguments->context);
            return NULL;
        }
    }
    struct ottl_plan *plan =
        ottl_plan_create(signal, arguments->is_filter ? OTTL_FOR_FILTER : OTTL_FOR_TRANSFORM);
    struct ottl_group group = {.context = context,
                               .paths = context == OTTL_CONTEXTS ? OTTL_PATHS_FULL
                                                                 : OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_IGNORE};
    *(arguments->is_filter ? &group.conditions : &group.statements) = arguments->texts;
    *(arguments->is_filter ? &group.conditions_count : &group.statements_count) =
        arguments->texts_count;
    if (ottl_plan_add(plan, &group, true, error)) {
        ottl_plan_finish(plan);
        return plan;
    }
    if (error->steps_count > 0)
        error_prefix(error, "%s", arguments->texts[error->steps[0].index]);
    ottl_plan_destroy(plan);
    return NULL;
}

static enum ottl_command_result run(const struct arguments *arguments, struct batch *batch,
                                    const struct ottl_plan *plan, FILE *out, FILE *problems)
{
    struct failures failures = {.problems = problems};
    struct ottl_runner runner;
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = arguments->is_filter;
    runner.on_failure = on_failure;
    runner.arg = &failures;
    print_batch("before", batch, out);
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert(result.verdict == OTTL_PASSED || result.verdict == OTTL_EMPTIED);
    if (result.verdict == OTTL_EMPTIED)
        fprintf(out, "after: nothing is left\n");
    else
        print_batch("after", result.batch, out);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    return failures.count == 0 ? OTTL_COMMAND_RAN : OTTL_COMMAND_FAILED_SOME;
}

enum ottl_command_result ottl_command(const char *program, int count, char **arguments, FILE *out,
                                      FILE *problems)
{
    struct arguments parsed;
    struct error error;
    for (int i = 0; i < count; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
            print_usage(program, out);
            return OTTL_COMMAND_RAN;
        }
    enum ottl_command_result result = OTTL_COMMAND_WRONG;
    struct batch *batch = NULL;
    struct ottl_plan *plan = NULL;
    if (parse_arguments(count, arguments, &parsed, &error) &&
        (batch = read_request(parsed.file, &error)) != NULL &&
        (plan = make_plan(&parsed, batch->signal, &error)) != NULL)
        result = run(&parsed, batch, plan, out, problems);
    else
        fprintf(problems, "Error: %s\n", error.text);
    ottl_plan_destroy(plan);
    batch_unref(batch);
    return result;
}
