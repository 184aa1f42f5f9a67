/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON element by element, without a tree. Main thread of a command. */
#include "src/cli/profile/profile_json.h"

#include <assert.h>
#include <inttypes.h>

#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/cli/profile/profile_file.h"
#include "src/cli/profile/profile_report.h"
#include "src/cli/profile/profile_top.h"

/* Writes "key":"text", with the separator before it. */
static void put_text(FILE *out, const char *before, const char *key, struct slice text)
{
    fprintf(out, "%s\"%s\":", before, key);
    text_escape_json(out, text);
}

static void put_id(FILE *out, const char *key, struct slice id)
{
    assert(id.size > 0);
    fprintf(out, "\"%s\":\"", key);
    for (size_t i = 0; i < id.size; i++)
        fprintf(out, "%02x", id.data[i]);
    fputs("\",", out);
}

void profile_json_show(FILE *out, const struct profile_file *file, const struct report *report,
                       struct report_scope scope)
{
    put_text(out, "{", "file", slice_of_text(file->path));
    put_text(out, ",", "format",
             slice_of_text(profile_format_name(file->is_json ? FORMAT_OTLP_JSON : file->format)));
    if (file->format == FORMAT_OTLP)
        put_text(out, ",", "layout", slice_of_text(profile_layout_name(file->layout)));
    fprintf(out,
            ",\"profiles\":%" PRIu64 ",\"rejected_profiles\":%" PRIu64 ",\"samples\":%" PRIu64
            ",\"cut_stacks\":%" PRIu64,
            report->profiles, file->rejected_profiles, report->samples, report->cut_stacks);
    const char *before = "{";
    fputs(",\"types\":[", out);
    for (size_t i = 0; i < report->types_count; i++) {
        const struct report_type *type = &report->types[i];
        if (scope.type != NULL && scope.type != type)
            continue;
        put_text(out, before, "type", report_text(report, type->type));
        put_text(out, ",", "unit", report_text(report, type->unit));
        fprintf(out,
                ",\"profiles\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"total\":%" PRId64
                ",\"time_unix_nano\":%" PRIu64 ",\"duration_nano\":%" PRIu64,
                type->profiles, type->samples, type->total, type->time_unix_ns, type->duration_ns);
        size_t count;
        struct top_row *rows = profile_top(report, type, &count);
        fputs(",\"functions\":[", out);
        for (size_t j = 0; j < report_rows(count, scope.rows_max); j++) {
            put_text(out, j > 0 ? ",{" : "{", "name", rows[j].name);
            put_text(out, ",", "file", rows[j].file);
            fprintf(out, ",\"flat\":%" PRId64 ",\"cumulative\":%" PRId64 "}", rows[j].flat,
                    rows[j].cumulative);
        }
        fputs("]}", out);
        mem_free(rows);
        before = ",{";
    }
    fputs("]", out);
    size_t count = report->label_keys.count - 1;
    assert(report->label_keys.count > 0);
    fputs(",\"labels\":[", out);
    for (size_t i = 1; i <= report_rows(count, scope.rows_max); i++) {
        const struct report_label *label = &report->labels[i];
        put_text(out, i > 1 ? ",{" : "{", "key", report_text(report, label->key));
        put_text(out, ",", "example", report_label_example(report, label));
        fprintf(out, ",\"values\":%" PRIu64 ",\"samples\":%" PRIu64 "}", label->values,
                label->samples);
    }
    fputs("]", out);
    size_t links;
    uint32_t *ranked = report_links_ranked(report, &links);
    fputs(",\"links\":[", out);
    for (size_t i = 0; i < report_rows(links, scope.rows_max); i++) {
        struct slice ids = profile_set_at(&report->links, ranked[i]);
        assert(ids.size == REPORT_LINK_BYTES);
        fputs(i > 0 ? ",{" : "{", out);
        put_id(out, "trace_id", slice_of(ids.data, 16));
        put_id(out, "span_id", slice_of(ids.data + 16, 8));
        fprintf(out, "\"samples\":%" PRIu64 "}", report->link_samples[ranked[i]]);
    }
    mem_free(ranked);
    fputs("]}\n", out);
}

void profile_json_diff(FILE *out, const struct report *before, const struct report *after,
                       struct report_scope scope)
{
    struct diff_pair pair = {.before = before, .after = after};
    const char *comma = "";
    fputs("{\"types\":[", out);
    while (profile_next_pair(&pair)) {
        if (scope.type != NULL && scope.type != pair.type_before && scope.type != pair.type_after)
            continue;
        fputs(comma, out);
        const struct report_type *type;
        const struct report *report = profile_pair_report(&pair, &type);
        size_t count;
        struct diff_row *rows = profile_diff(&pair, &count);
        put_text(out, "{", "type", report_text(report, type->type));
        put_text(out, ",", "unit", report_text(report, type->unit));
        fprintf(out, ",\"total_before\":%" PRId64 ",\"total_after\":%" PRId64 ",\"functions\":[",
                pair.type_before != NULL ? pair.type_before->total : 0,
                pair.type_after != NULL ? pair.type_after->total : 0);
        for (size_t i = 0; i < report_rows(count, scope.rows_max); i++) {
            const struct diff_row *row = &rows[i];
            put_text(out, i > 0 ? ",{" : "{", "name", row->name);
            put_text(out, ",", "file", row->file);
            fprintf(out,
                    ",\"flat_before\":%" PRId64 ",\"flat_after\":%" PRId64
                    ",\"cumulative_before\":%" PRId64 ",\"cumulative_after\":%" PRId64 "}",
                    row->flat_before, row->flat_after, row->cumulative_before,
                    row->cumulative_after);
        }
        fputs("]}", out);
        mem_free(rows);
        comma = ",";
    }
    fputs("]}\n", out);
}
