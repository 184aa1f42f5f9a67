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
        return error_set(error, "%s: no memory to draw", arguments->flamegraph);
    bool is_drawn = flamegraph_write(out, &graph);
    bool is_whole = fclose(out) == 0;
    assert(text != NULL || !is_whole);
    if (!is_whole)
        error_set(error, "%s: no memory to draw", arguments->flamegraph);
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

static bool show_report(const struct profile_arguments *arguments, const struct profile_file *file,
                        const struct report *report, struct error *error)
{
    struct report_scope scope = {.rows_max = rows_max_of(arguments)};
    assert(arguments->files_count == 1);
    if (arguments->type != NULL) {
        scope.type = report_find_type(report, arguments->type);
        if (scope.type == NULL)
            return no_such_type(file->path, arguments->type, report, error);
    }
    if (arguments->is_json)
        profile_json_show(stdout, file, report, scope);
    else
        profile_table_show(stdout, file, report, scope);
    return arguments->flamegraph == NULL || write_flamegraph(arguments, report, error);
}

static bool diff_reports(const struct profile_arguments *arguments, const struct report *before,
                         const struct report *after, struct error *error)
{
    struct report_scope scope = {.rows_max = rows_max_of(arguments)};
    assert(arguments->files_count == 2);
    if (arguments->type != NULL) {
        scope.type = report_find_type(before, arguments->type);
        if (scope.type == NULL)
            scope.type = report_find_type(after, arguments->type);
        if (scope.type == NULL)
            return no_such_type(arguments->files[0], arguments->type, before, error);
    }
    if (arguments->is_json)
        profile_json_diff(stdout, before, after, scope);
    else
        profile_table_diff(stdout, before, after, scope);
    return true;
}

/* Returns an empty buffer if there is nothing to write. NULL: error has the reason. */
static struct buffer *merge_files(const struct profile_arguments *arguments,
                                  const struct profile_file *files, struct convert_losses *losses,
                                  struct error *error)
{
    if (arguments->to == FORMAT_PPROF)
        return profile_convert_to_pprof(files, arguments->files_count, losses, error);
    struct buffer *merged = profile_convert_to_otlp(files, arguments->files_count, error);
    assert(arguments->to < PROFILE_FORMATS);
    if (merged == NULL || merged->size == 0 || arguments->to == FORMAT_OTLP)
        return merged;
    struct buffer *text = json_write(otlp_request(PROFILES), buffer_slice(merged), NULL);
    buffer_unref(merged);
    if (text == NULL)
        error_set(error, "%s: no memory for it as JSON", arguments->output);
    return text;
}

/* pprof is always compressed, as by its own tools. */
static bool write_merged(const struct profile_arguments *arguments,
                         const struct profile_file *files, struct error *error)
{
    struct convert_losses losses = {.resources = 0};
    bool is_pprof = arguments->to == FORMAT_PPROF;
    struct buffer *merged = merge_files(arguments, files, &losses, error);
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
    if (is_written && is_pprof) {
        if (losses.zero_samples > 0)
            fprintf(stderr, "Note: %" PRIu64 " samples whose value is 0 are left out\n",
                    losses.zero_samples);
        if (losses.negative_samples > 0)
            fprintf(stderr, "Note: %" PRIu64 " samples whose value is negative are left out\n",
                    losses.negative_samples);
        if (losses.resources > 0)
            fprintf(stderr,
                    "Note: attributes of %" PRIu64 " resources are left out: pprof has no "
                    "place for them\n",
                    losses.resources);
    }
    return is_written;
}

static bool run(const struct profile_arguments *arguments, struct error *error)
{
    switch (arguments->verb) {
    case VERB_SHOW: {
        struct profile_file file;
        static struct report report;
        assert(arguments->files_count == 1);
        if (!profile_file_read(&file, arguments->files[0], error))
            return false;
        report_init(&report);
        bool is_shown =
            make_report(&report, &file, error) && show_report(arguments, &file, &report, error);
        report_fini(&report);
        profile_file_close(&file);
        return is_shown;
    }
    case VERB_DIFF: {
        static struct report reports[2];
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
        bool is_shown = is_read && diff_reports(arguments, &reports[0], &reports[1], error);
        report_fini(&reports[0]);
        report_fini(&reports[1]);
        return is_shown;
    }
    case VERB_CONVERT:
    case VERB_MERGE: {
        bool is_read = true;
        size_t count = arguments->files_count;
        assert(count > 0);
        struct profile_file *files = mem_zalloc(count * sizeof(files[0]));
        for (size_t i = 0; is_read && i < count; i++) {
            is_read = profile_file_read(&files[i], arguments->files[i], error);
            if (is_read && files[i].rejected_profiles > 0)
                fprintf(stderr,
                        "Note: %s: %" PRIu64 " broken profiles are left out, the first because "
                        "%s\n",
                        files[i].path, files[i].rejected_profiles, files[i].reason);
        }
        bool is_written = is_read && write_merged(arguments, files, error);
        for (size_t i = 0; i < count; i++)
            profile_file_close(&files[i]);
        mem_free(files);
        return is_written;
    }
    case VERB_HELP:
    case PROFILE_VERBS:
        break;
    }
    return false;
}

int profile_command(const char *program, int count, char **arguments)
{
    struct profile_arguments parsed;
    struct error error = {.text = ""};
    bool is_parsed = profile_arguments_parse(&parsed, count, arguments, &error);
    if (is_parsed && parsed.verb == VERB_HELP) {
        profile_arguments_help(stdout, program);
        return 0;
    }
    bool is_done = is_parsed && run(&parsed, &error);
    if (is_done && (fflush(stdout) != 0 || ferror(stdout)))
        is_done = error_set(&error, "cannot write to standard output: %s", strerror(errno));
    if (!is_done)
        fprintf(stderr, "Error: %s\n", error.text);
    return is_done ? 0 : 1;
}
