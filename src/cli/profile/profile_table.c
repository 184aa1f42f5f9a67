/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of numbers on the left, strings of any length on the right. Main thread of a command. */
#include "src/cli/profile/profile_table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/cli/profile/profile_file.h"
#include "src/cli/profile/profile_report.h"
#include "src/cli/profile/profile_top.h"
#include "src/cli/profile/value_unit.h"

static double percent(int64_t part, int64_t whole)
{
    return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_type_name(FILE *out, const struct report *report, const struct report_type *type)
{
    struct slice unit = report_text(report, type->unit);
    text_escape_terminal(out, report_text(report, type->type));
    if (unit.size > 0)
        fputc(':', out);
    text_escape_terminal(out, unit);
}

static void print_place(FILE *out, struct slice name, struct slice file)
{
    text_escape_terminal(out, name);
    if (file.size > 0)
        fputs("  ", out);
    text_escape_terminal(out, file);
    fputc('\n', out);
}

static int compare_ranks(const void *left, const void *right, void *counts)
{
    const uint64_t *samples = counts;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    if (samples[a] != samples[b])
        return samples[a] < samples[b] ? 1 : -1;
    return (a > b) - (a < b);
}

uint32_t *report_links_ranked(const struct report *report, size_t *ret_count)
{
    size_t count = report->links.count - 1;
    assert(report->links.count > 0);
    uint32_t *ranked = mem_alloc(count * sizeof(ranked[0]));
    for (size_t i = 0; i < count; i++)
        ranked[i] = (uint32_t)i + 1;
    if (count > 0)
        qsort_r(ranked, count, sizeof(ranked[0]), compare_ranks, report->link_samples);
    *ret_count = count;
    return ranked;
}

void profile_table_show(FILE *out, const struct profile_file *file, const struct report *report,
                        struct report_scope scope)
{
    assert(file->format < PROFILE_FORMATS);
    text_escape_terminal(out, slice_of_text(file->path));
    fprintf(out, ": %s", profile_format_name(file->is_json ? FORMAT_OTLP_JSON : file->format));
    if (file->format == FORMAT_OTLP)
        fprintf(out, " %s", profile_layout_name(file->layout));
    fprintf(out, "%s, %" PRIu64 " profiles, %" PRIu64 " samples, %u links\n",
            file->is_compressed ? " (gzip)" : "", report->profiles, report->samples,
            report->links.count - 1);
    if (file->rejected_profiles > 0)
        fprintf(out, "%" PRIu64 " broken profiles are left out, the first because %s\n",
                file->rejected_profiles, file->reason);
    if (report->cut_stacks > 0)
        fprintf(out, "%" PRIu64 " stacks are shown without what is nearest to their root\n",
                report->cut_stacks);
    fprintf(out, "\n%14s %10s %10s %12s  %s\n", "TOTAL", "SAMPLES", "PROFILES", "DURATION", "TYPE");
    for (size_t i = 0; i < report->types_count; i++) {
        const struct report_type *type = &report->types[i];
        struct value_unit_text total =
            value_unit_text(type->total, report_text(report, type->unit));
        int64_t duration = type->duration_ns <= INT64_MAX ? (int64_t)type->duration_ns : INT64_MAX;
        fprintf(out, "%14s %10" PRIu64 " %10" PRIu64 " %12s  ", total.text, type->samples,
                type->profiles, value_unit_text(duration, slice_of_text("ns")).text);
        print_type_name(out, report, type);
        fputc('\n', out);
    }
    for (size_t i = 0; i < report->types_count; i++)
        if (report->types[i].tree.unplaced > 0)
            fprintf(out,
                    "%" PRIu64 " samples are missing in flame graphs: too many stacks differ\n",
                    report->types[i].tree.unplaced);
    for (size_t i = 0; i < report->types_count; i++) {
        const struct report_type *type = &report->types[i];
        if (scope.type != NULL && scope.type != type)
            continue;
        size_t count;
        struct top_row *rows = profile_top(report, type, &count);
        struct slice unit = report_text(report, type->unit);
        fputs("\nFunctions by ", out);
        print_type_name(out, report, type);
        fprintf(out, ", %zu of %zu\n%14s %7s %14s %7s  %s\n", report_rows(count, scope.rows_max),
                count, "FLAT", "FLAT%", "CUMULATIVE", "CUM%", "FUNCTION");
        for (size_t k = 0; k < report_rows(count, scope.rows_max); k++) {
            fprintf(out, "%14s %6.1f%% %14s %6.1f%%  ", value_unit_text(rows[k].flat, unit).text,
                    percent(rows[k].flat, type->total),
                    value_unit_text(rows[k].cumulative, unit).text,
                    percent(rows[k].cumulative, type->total));
            print_place(out, rows[k].name, rows[k].file);
        }
        mem_free(rows);
    }
    size_t count = report->label_keys.count - 1;
    assert(report->label_keys.count > 0);
    if (count != 0) {
        fprintf(out, "\nLabels, %zu of %zu\n%14s %10s  %s\n", report_rows(count, scope.rows_max),
                count, "SAMPLES", "VALUES", "KEY (ONE VALUE)");
        for (size_t i = 1; i <= report_rows(count, scope.rows_max); i++) {
            const struct report_label *label = &report->labels[i];
            fprintf(out, "%14" PRIu64 " %10" PRIu64 "  ", label->samples, label->values);
            text_escape_terminal(out, report_text(report, label->key));
            fputs(" (", out);
            text_escape_terminal(out, report_label_example(report, label));
            fputs(")\n", out);
        }
    }
    size_t links;
    uint32_t *ranked = report_links_ranked(report, &links);
    if (links > 0)
        fprintf(out, "\nLinks, %zu of %zu\n%14s  %-32s  %s\n", report_rows(links, scope.rows_max),
                links, "SAMPLES", "TRACE", "SPAN");
    for (size_t i = 0; i < report_rows(links, scope.rows_max); i++) {
        struct slice ids = profile_set_at(&report->links, ranked[i]);
        fprintf(out, "%14" PRIu64 "  ", report->link_samples[ranked[i]]);
        for (size_t k = 0; k < ids.size; k++)
            fprintf(out, "%s%02x", k == 16 ? "  " : "", ids.data[k]);
        fputc('\n', out);
    }
    mem_free(ranked);
}

/* "+1.50s". */
static void print_signed(FILE *out, int64_t change, struct slice unit)
{
    char text[VALUE_UNIT_TEXT_MAX + 1];
    snprintf(text, sizeof(text), "%s%s", change > 0 ? "+" : "", value_unit_text(change, unit).text);
    fprintf(out, " %14s", text);
}

/* The change, absolute and relative to the value before. */
static void print_change(FILE *out, int64_t before, int64_t after, struct slice unit)
{
    int64_t change = profile_change(before, after);
    print_signed(out, change, unit);
    if (before == 0)
        fprintf(out, " %8s", after == 0 ? "" : "new");
    else
        fprintf(out, " %+7.1f%%", percent(change, before));
}

void profile_table_diff(FILE *out, const struct report *before, const struct report *after,
                        struct report_scope scope)
{
    struct diff_pair pair = {.before = before, .after = after};
    while (profile_next_pair(&pair)) {
        if (scope.type != NULL && scope.type != pair.type_before && scope.type != pair.type_after)
            continue;
        const struct report_type *type;
        const struct report *report = profile_pair_report(&pair, &type);
        size_t count;
        struct diff_row *rows = profile_diff(&pair, &count);
        struct slice unit = report_text(report, type->unit);
        int64_t total_before = pair.type_before != NULL ? pair.type_before->total : 0;
        int64_t total_after = pair.type_after != NULL ? pair.type_after->total : 0;
        fputs("\nDifferences by ", out);
        print_type_name(out, report, type);
        fprintf(out, ", %zu of %zu changed functions\n%14s %14s %14s %8s %14s  %s\n",
                report_rows(count, scope.rows_max), count, "FLAT BEFORE", "FLAT AFTER", "CHANGE",
                "", "CUMULATIVE", "FUNCTION");
        fprintf(out, "%14s %14s", value_unit_text(total_before, unit).text,
                value_unit_text(total_after, unit).text);
        print_change(out, total_before, total_after, unit);
        fprintf(out, " %14s  (total)\n", "");
        for (size_t i = 0; i < report_rows(count, scope.rows_max); i++) {
            const struct diff_row *row = &rows[i];
            int64_t change = profile_change(row->cumulative_before, row->cumulative_after);
            fprintf(out, "%14s %14s", value_unit_text(row->flat_before, unit).text,
                    value_unit_text(row->flat_after, unit).text);
            print_change(out, row->flat_before, row->flat_after, unit);
            print_signed(out, change, unit);
            fputs("  ", out);
            print_place(out, row->name, row->file);
        }
        mem_free(rows);
    }
}
