/* SPDX-License-Identifier: Apache-2.0 */
/* Main thread of a command. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/explore/explore_tables.h"
#include "src/cli/explore/json_part.h"
#include "src/cli/profile/value_unit.h"

enum { TIME_BYTES_MAX = 40, INDENT_MAX = 40 };

/* Places in a row of /traces/ID/rows. */
enum {
    ROW_SPAN_ID = 1,
    ROW_DEPTH = 3,
    ROW_SERVICE = 5,
    ROW_NAME = 6,
    ROW_START = 7,
    ROW_DURATION = 8,
    ROW_STATUS = 10,
    ROW_SAMPLES = 13,
    ROW_CPU = 14,
    ROW_SELF = 15,
    ROW_CRITICAL = 16,
    ROW_PARTS = 17,
};

static struct value_unit_text duration_text(struct slice value)
{
    return value_unit_text(json_part_integer(value), slice_of_text("ns"));
}

/* Unix nanoseconds as UTC with milliseconds. */
static void write_time(struct slice value, char text[TIME_BYTES_MAX])
{
    int64_t ns = json_part_integer(value);
    time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
    struct tm parts;
    text[0] = '\0';
    if (gmtime_r(&seconds, &parts) == NULL)
        return;
    size_t size = strftime(text, TIME_BYTES_MAX, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + size, TIME_BYTES_MAX - size, ".%03dZ",
             (int)(ns % (int64_t)NS_PER_S / (int64_t)NS_PER_MS));
}

void trace_table_list(FILE *out, struct slice answer)
{
    struct json_items items = json_items_of(json_part(answer, "traces"));
    struct slice one;
    fprintf(out, "%-24s %10s %7s %7s %8s  %-32s  %s\n", "START", "DURATION", "SPANS", "ERRORS",
            "SAMPLES", "TRACE", "ROOT");
    while (json_items_next(&items, &one)) {
        char start[TIME_BYTES_MAX];
        struct slice root = json_part(one, "root");
        write_time(json_part(one, "start"), start);
        fprintf(out, "%-24s %10s %7" PRId64 " %7" PRId64 " %8" PRId64 "  ", start,
                duration_text(json_part(one, "duration")).text,
                json_part_integer(json_part(one, "spans")),
                json_part_integer(json_part(one, "errors")),
                json_part_integer(json_part(one, "samples")));
        json_part_print(out, json_part(one, "id"));
        fputs("  ", out);
        if (slice_equal_text(root, "null"))
            fputs("(the root has not come)", out);
        json_part_print(out, json_part(root, "service"));
        fputc(' ', out);
        json_part_print(out, json_part(root, "name"));
        fputc('\n', out);
    }
    fprintf(out, "%" PRId64 " in all%s\n", json_part_integer(json_part(answer, "total")),
            json_part_is_true(json_part(answer, "more")) ? "; --limit shows more" : "");
}

static void print_row(FILE *out, const struct slice *row, const struct slice *services,
                      size_t services_count)
{
    int64_t depth = json_part_integer(row[ROW_DEPTH]);
    int64_t service = json_part_integer(row[ROW_SERVICE]);
    fprintf(out, "%10s %10s %10s %10s %8" PRId64 " %c%c ", duration_text(row[ROW_START]).text,
            duration_text(row[ROW_DURATION]).text, duration_text(row[ROW_SELF]).text,
            duration_text(row[ROW_CPU]).text, json_part_integer(row[ROW_SAMPLES]),
            json_part_integer(row[ROW_CRITICAL]) != 0 ? '*' : ' ',
            json_part_integer(row[ROW_STATUS]) == 2 ? '!' : ' ');
    json_part_print(out, row[ROW_SPAN_ID]);
    fprintf(out, "  %*s", (int)(2 * (depth < INDENT_MAX ? depth : INDENT_MAX)), "");
    if (service >= 0 && (uint64_t)service < services_count)
        json_part_print(out, json_part(services[service], "name"));
    fputc(' ', out);
    json_part_print(out, row[ROW_NAME]);
    fputc('\n', out);
}

void trace_table_show(FILE *out, struct slice trace, struct slice rows)
{
    enum { SERVICES_MAX = 4096 };
    struct slice *services = mem_alloc(SERVICES_MAX * sizeof(services[0]));
    size_t count = json_items_take(json_part(trace, "services"), services, SERVICES_MAX);
    struct json_items items = json_items_of(json_part(rows, "rows"));
    struct slice one;
    struct slice parts[ROW_PARTS];
    char start[TIME_BYTES_MAX];
    struct slice why = json_part(trace, "why");
    size_t shown = 0;
    write_time(json_part(trace, "start"), start);
    json_part_print(out, json_part(trace, "id"));
    fprintf(out, ": %s, %s, %" PRId64 " spans, %" PRId64 " errors\n\n", start,
            duration_text(json_part(trace, "duration")).text,
            json_part_integer(json_part(trace, "spans")),
            json_part_integer(json_part(trace, "errors")));
    fprintf(out, "%10s %10s %10s %10s %8s    %-16s  %s\n", "START", "DURATION", "SELF", "CPU",
            "SAMPLES", "SPAN", "SERVICE AND NAME (* critical path, ! error)");
    while (json_items_next(&items, &one)) {
        if (json_items_take(one, parts, ROW_PARTS) < ROW_PARTS)
            continue;
        print_row(out, parts, services, count);
        shown++;
    }
    int64_t total = json_part_integer(json_part(rows, "total"));
    if (total > 0 && (uint64_t)total > shown)
        fprintf(out, "%zu of %" PRId64 " spans; --limit shows more\n", shown, total);
    if (why.size > 0 && why.data[0] == '"') {
        fputs("\nNo flame graph: ", out);
        json_part_print(out, why);
        fputc('\n', out);
    }
    mem_free(services);
}

void trace_table_services(FILE *out, struct slice answer)
{
    struct json_items items = json_items_of(json_part(answer, "services"));
    struct slice one;
    fprintf(out, "%10s %10s %10s %8s  %s\n", "TRACES", "SPANS", "ERRORS", "PROFILES", "SERVICE");
    while (json_items_next(&items, &one)) {
        fprintf(out, "%10" PRId64 " %10" PRId64 " %10" PRId64 " %8s  ",
                json_part_integer(json_part(one, "traces")),
                json_part_integer(json_part(one, "spans")),
                json_part_integer(json_part(one, "errors")),
                json_part_is_true(json_part(one, "hasProfile")) ? "yes" : "none");
        json_part_print(out, json_part(one, "name"));
        fputc('\n', out);
    }
}

void trace_table_names(FILE *out, struct slice answer, size_t rows_max)
{
    struct json_items items = json_items_of(json_part(answer, "names"));
    struct slice one;
    size_t shown = 0;
    fprintf(out, "%10s %10s %8s %10s %10s %10s %10s  %s\n", "COUNT", "RATE/S", "ERRORS", "P50",
            "P95", "P99", "CPU/CALL", "SERVICE AND NAME");
    while ((rows_max == 0 || shown < rows_max) && json_items_next(&items, &one)) {
        bool has_samples = json_part_integer(json_part(one, "samples")) > 0;
        fprintf(
            out, "%10" PRId64 " %10.3f %8" PRId64 " %10s %10s %10s %10s  ",
            json_part_integer(json_part(one, "count")), json_part_real(json_part(one, "rate")),
            json_part_integer(json_part(one, "errors")), duration_text(json_part(one, "p50")).text,
            duration_text(json_part(one, "p95")).text, duration_text(json_part(one, "p99")).text,
            has_samples ? duration_text(json_part(one, "cpuPerCall")).text : "-");
        json_part_print(out, json_part(one, "service"));
        fputc(' ', out);
        json_part_print(out, json_part(one, "name"));
        fputc('\n', out);
        shown++;
    }
}
