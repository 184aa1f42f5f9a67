/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the profile command, each from input files to output. Main thread. */
#include "src/cli/profile/profile_command.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/profile/flamegraph.h"
#include "src/cli/profile/profile_arguments.h"
#include "src/cli/profile/profile_convert.h"
#include "src/cli/profile/profile_json.h"
#include "src/cli/profile/profile_report.h"
#include "src/cli/profile/profile_table.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

enum { TABLE_ROWS = 20 };

static bool make_report(struct report *report, const struct profile_file *file, struct error *error)
{
    struct buffer *request = profile_convert_to_otlp(file, 1, error);
    if (request == NULL)
        return false;
    bool is_added = report_add(report, buffer_slice(request), error);
    buffer_unref(request);
    return is_added || error_prefix(error, "%s", file->path);
}

static size_t rows_max_of(const struct profile_arguments *arguments)
{
    if (arguments->has_rows_max)
        return arguments->rows_max;
    return arguments->is_json ? 0 : TABLE_ROWS;
}

static bool no_such_type(const char *path, const char *type, const struct report *report,
                         struct error *error)
{
    char known[ERROR_TEXT_MAX / 2] = "none";
    size_t size = 0;
    for (size_t i = 0; i < report->types_count && size < sizeof(known); i++) {
        struct slice text = report_text(report, report->types[i].type);
        int count = snprintf(known + size, sizeof(known) - size, "%s%.*s", i > 0 ? ", " : "",
                             (int)text.size, (const char *)text.data);
        size += count > 0 ? (size_t)count : 0;
    }
    return error_set(error, "%s: found no type \"%s\", expected one of: %s", path, type, known);
}

static bool write_flamegraph(const struct profile_arguments *arguments, const struct report *report,
                             struct error *error)
{
    char *text = NULL;
    size_t size = 0;
    const struct report_type *type = report_find_type(report, arguments->type);
    if (type == NULL)
        return error_set(error, "%s: no samples, nothing to draw", arguments->files[0]);
    const struct flamegraph graph = {
        .report = report, .type = type, .title = slice_of_text(arguments->files[0])};
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return error_set(error, "%s: not enough memory to draw it", arguments->flamegraph);
    bool is_drawn = flamegraph_write(out, &graph);
    bool is_whole = fclose(out) == 0;
    assert(text != NULL || !is_whole);
    if (!is_whole)
        error_set(error, "%s: not enough memory to draw it", arguments->flamegraph);
    else if (!is_drawn)
        error_set(error,
                  "%s: no stack has a positive value, nothing to draw; choose another type "
                  "with --type",
                  arguments->files[0]);
    else
        is_drawn = profile_file_write(arguments->flamegraph, slice_of(text, size), error);
    free(text);
    return is_whole && is_drawn;
}

static bool show(const struct profile_arguments *arguments, struct error *error)
{
    static struct report report;
    struct report_scope scope = {.rows_max = rows_max_of(arguments)};
    struct profile_file file;
    assert(arguments->files_count == 1);
    if (!profile_file_read(&file, arguments->files[0], error))
        return false;
    report_init(&report);
    bool is_shown = make_report(&report, &file, error);
    if (is_shown && arguments->type != NULL) {
        scope.type = report_find_type(&report, arguments->type);
        is_shown = scope.type != NULL || no_such_type(file.path, arguments->type, &report, error);
    }
    if (is_shown && arguments->is_json)
        profile_json_show(stdout, &file, &report, scope);
    else if (is_shown)
        profile_table_show(stdout, &file, &report, scope);
    if (is_shown && arguments->flamegraph != NULL)
        is_shown = write_flamegraph(arguments, &report, error);
    report_fini(&report);
    profile_file_close(&file);
    return is_shown;
}

static bool diff(const struct profile_arguments *arguments, struct error *error)
{
    static struct report reports[2];
    struct report_scope scope = {.rows_max = rows_max_of(arguments)};
    bool is_read = true;
    assert(arguments->files_count == 2);
    for (size_t i = 0; i < 2; i++) {
        struct profile_file file;
        report_init(&reports[i]);
        is_read = is_read && profile_file_read(&file, arguments->files[i], error);
        if (!is_read)
            continue;
        is_read = make_report(&reports[i], &file, error);
        profile_file_close(&file);
    }
    if (is_read && arguments->type != NULL) {
        scope.type = report_find_type(&reports[0], arguments->type);
        if (scope.type == NULL)
            scope.type = report_find_type(&reports[1], arguments->type);
        is_read = scope.type != NULL ||
                  no_such_type(arguments->files[0], arguments->type, &reports[0], error);
    }
    if (is_read && arguments->is_json)
        profile_json_diff(stdout, &reports[0], &reports[1], scope);
    else if (is_read)
        profile_table_diff(stdout, &reports[0], &reports[1], scope);
    report_fini(&reports[0]);
    report_fini(&reports[1]);
    return is_read;
}

/* Converts the files to one in the wanted format. pprof is always compressed, as by its own
 * tools. */
static bool merge(const struct profile_arguments *arguments, struct error *error)
{
    struct convert_losses losses = {.resources = 0};
    struct buffer *merged = NULL; /* empty: nothing to write */
    bool is_pprof = arguments->to == FORMAT_PPROF;
    bool is_read = true;
    size_t count = arguments->files_count;
    assert(count > 0);
    assert(arguments->to < PROFILE_FORMATS);
    struct profile_file *files = mem_zalloc(count * sizeof(files[0]));
    for (size_t i = 0; is_read && i < count; i++) {
        is_read = profile_file_read(&files[i], arguments->files[i], error);
        if (is_read && files[i].rejected_profiles > 0)
            fprintf(stderr,
                    "Note: %s: %" PRIu64 " broken profiles are left out, the first because %s\n",
                    files[i].path, files[i].rejected_profiles, files[i].reason);
    }
    if (is_read)
        merged = is_pprof ? profile_convert_to_pprof(files, count, &losses, error)
                          : profile_convert_to_otlp(files, count, error);
    for (size_t i = 0; i < count; i++)
        profile_file_close(&files[i]);
    mem_free(files);
    if (merged != NULL && merged->size > 0 && arguments->to == FORMAT_OTLP_JSON) {
        struct buffer *text = json_write(otlp_request(PROFILES), buffer_slice(merged), NULL);
        buffer_unref(merged);
        merged = text;
        if (text == NULL)
            error_set(error, "%s: not enough memory to write it as JSON", arguments->output);
    }
    if (merged == NULL)
        return false;
    if (merged->size == 0) {
        buffer_unref(merged);
        return error_set(error, "%s: no profile in it has samples, nothing is written",
                         arguments->files[0]);
    }
    size_t size = strlen(arguments->output);
    bool ends_in_gz = size > 3 && strcmp(arguments->output + size - 3, ".gz") == 0;
    bool is_written = is_pprof || ends_in_gz
                          ? profile_file_write_gzip(arguments->output, buffer_slice(merged), error)
                          : profile_file_write(arguments->output, buffer_slice(merged), error);
    buffer_unref(merged);
    if (is_written && losses.zero_samples > 0)
        fprintf(stderr, "Note: %" PRIu64 " samples whose value is 0 are left out\n",
                losses.zero_samples);
    if (is_written && losses.negative_samples > 0)
        fprintf(stderr, "Note: %" PRIu64 " samples whose value is negative are left out\n",
                losses.negative_samples);
    if (is_written && losses.resources > 0)
        fprintf(stderr,
                "Note: attributes of %" PRIu64 " resources are left out: pprof has no place for "
                "them\n",
                losses.resources);
    return is_written;
}

int profile_command(const char *program, int count, char **arguments)
{
    struct profile_arguments parsed;
    struct error error = {.text = ""};
    bool is_done = profile_arguments_parse(&parsed, count, arguments, &error);
    if (is_done) {
        switch (parsed.verb) {
        case VERB_SHOW:
            is_done = show(&parsed, &error);
            break;
        case VERB_DIFF:
            is_done = diff(&parsed, &error);
            break;
        case VERB_CONVERT:
        case VERB_MERGE:
            is_done = merge(&parsed, &error);
            break;
        case VERB_HELP:
        case PROFILE_VERBS:
            profile_arguments_help(stdout, program);
            return 0;
        }
    }
    if (is_done && (fflush(stdout) != 0 || ferror(stdout)))
        is_done = error_set(&error, "cannot write to standard output: %s", strerror(errno));
    if (!is_done)
        fprintf(stderr, "Error: %s\n", error.text);
    return is_done ? 0 : 1;
}
