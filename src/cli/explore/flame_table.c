/* SPDX-License-Identifier: Apache-2.0 */
/* Main thread of a command. */
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/cli/explore/explore_tables.h"
#include "src/cli/explore/json_part.h"
#include "src/cli/profile/value_unit.h"

enum { TOP_ROWS = 40, TREE_ROWS = 60, NAMES_MAX = 1 << 20, DEPTH_MAX = 5000, INDENT_MAX = 100 };

/* An answer that is being printed. */
struct drawing {
    FILE *out;
    struct slice *names;
    size_t names_count;
    char unit[VALUE_UNIT_TEXT_MAX];
};

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static struct value_unit_text value_text(const struct drawing *drawing, struct slice value)
{
    return value_unit_text(json_part_integer(value), slice_of_text(drawing->unit));
}

/* The number of names is that of commas at most. */
static void open_drawing(struct drawing *drawing, FILE *out, struct slice answer)
{
    struct slice names = json_part(answer, "names");
    struct slice unit = json_part(answer, "unit");
    size_t most = 1;
    for (size_t i = 0; i < names.size && most < NAMES_MAX; i++)
        most += names.data[i] == ',';
    *drawing = (struct drawing){.out = out, .names = mem_alloc(most * sizeof(drawing->names[0]))};
    drawing->names_count = json_items_take(names, drawing->names, most);
    for (size_t i = 1; i + 1 < unit.size && i < sizeof(drawing->unit); i++)
        drawing->unit[i - 1] = (char)unit.data[i];
}

static void print_name(const struct drawing *drawing, struct slice place)
{
    int64_t name = json_part_integer(place);
    if (name >= 0 && (uint64_t)name < drawing->names_count)
        json_part_print(drawing->out, drawing->names[name]);
}

/* "cpu: 1.23s, 123 samples, ± 10 %". False: there are none, which is said. */
static bool print_head(const struct drawing *drawing, struct slice answer)
{
    FILE *out = drawing->out;
    struct slice confidence = json_part(answer, "confidence");
    int64_t samples = json_part_integer(json_part(answer, "samples"));
    if (samples == 0) {
        fputs("No samples: ", out);
        json_part_print(out, json_part(answer, "why"));
        fputc('\n', out);
        return false;
    }
    json_part_print(out, json_part(answer, "type"));
    fprintf(out, ": %s, %" PRId64 " samples, ± %" PRId64 " %%\n\n",
            value_text(drawing, json_part(answer, "total")).text, samples,
            json_part_integer(json_part(confidence, "percent")));
    return true;
}

void flame_table_top(FILE *out, struct slice answer, size_t rows_max)
{
    enum { NAME, TOTAL, SELF, PARTS };
    struct drawing drawing;
    struct json_items items = json_items_of(json_part(answer, "top"));
    struct slice row;
    struct slice parts[PARTS];
    int64_t total = json_part_integer(json_part(answer, "total"));
    size_t shown = 0;
    open_drawing(&drawing, out, answer);
    if (print_head(&drawing, answer)) {
        fprintf(out, "%12s %7s %12s %7s  %s\n", "SELF", "SELF%", "TOTAL", "TOTAL%", "FUNCTION");
        while (shown < (rows_max > 0 ? rows_max : TOP_ROWS) && json_items_next(&items, &row)) {
            if (json_items_take(row, parts, PARTS) < PARTS)
                continue;
            fprintf(out, "%12s %6.1f%% %12s %6.1f%%  ", value_text(&drawing, parts[SELF]).text,
                    percent(json_part_integer(parts[SELF]), total),
                    value_text(&drawing, parts[TOTAL]).text,
                    percent(json_part_integer(parts[TOTAL]), total));
            print_name(&drawing, parts[NAME]);
            fputc('\n', out);
            shown++;
        }
    }
    mem_free(drawing.names);
}

void flame_table_tree(FILE *out, struct slice answer, size_t rows_max)
{
    enum { NAME, TOTAL, SELF, CHILDREN, PARTS };
    struct drawing drawing;
    struct json_items items = json_items_of(json_part(answer, "tree"));
    struct slice row;
    struct slice parts[PARTS];
    int64_t total = json_part_integer(json_part(answer, "total"));
    int64_t *left = mem_alloc(DEPTH_MAX * sizeof(left[0])); /* children to come, by depth */
    size_t depth = 0;
    size_t shown = 0;
    open_drawing(&drawing, out, answer);
    bool has_samples = print_head(&drawing, answer);
    if (has_samples)
        fprintf(out, "%12s %7s %12s  %s\n", "TOTAL", "TOTAL%", "SELF", "FUNCTION");
    while (has_samples && shown < (rows_max > 0 ? rows_max : TREE_ROWS) &&
           json_items_next(&items, &row)) {
        if (json_items_take(row, parts, PARTS) < PARTS)
            break;
        fprintf(out, "%12s %6.1f%% %12s  %*s", value_text(&drawing, parts[TOTAL]).text,
                percent(json_part_integer(parts[TOTAL]), total),
                value_text(&drawing, parts[SELF]).text,
                (int)(2 * (depth < INDENT_MAX ? depth : INDENT_MAX)), "");
        print_name(&drawing, parts[NAME]);
        fputc('\n', out);
        shown++;
        if (depth > 0)
            left[depth - 1]--;
        int64_t children = json_part_integer(parts[CHILDREN]);
        if (children > 0 && depth < DEPTH_MAX)
            left[depth++] = children;
        while (depth > 0 && left[depth - 1] == 0)
            depth--;
    }
    mem_free(left);
    mem_free(drawing.names);
}

/* Each side's share, since the sides are seldom of one size. */
void flame_table_diff(FILE *out, struct slice answer, size_t rows_max)
{
    enum { NAME, TOTAL_A, TOTAL_B, SELF_A, SELF_B, PARTS };
    struct drawing drawing;
    struct json_items items = json_items_of(json_part(answer, "top"));
    struct slice row;
    struct slice parts[PARTS];
    int64_t a = json_part_integer(json_part(json_part(answer, "a"), "total"));
    int64_t b = json_part_integer(json_part(json_part(answer, "b"), "total"));
    size_t shown = 0;
    open_drawing(&drawing, out, answer);
    if (print_head(&drawing, answer)) {
        fprintf(out, "%12s %7s %12s %7s %8s  %s\n", "SELF A", "A%", "SELF B", "B%", "CHANGE",
                "FUNCTION");
        while (shown < (rows_max > 0 ? rows_max : TOP_ROWS) && json_items_next(&items, &row)) {
            if (json_items_take(row, parts, PARTS) < PARTS)
                continue;
            double share_a = percent(json_part_integer(parts[SELF_A]), a);
            double share_b = percent(json_part_integer(parts[SELF_B]), b);
            fprintf(out, "%12s %6.1f%% %12s %6.1f%% %+7.1f%%  ",
                    value_text(&drawing, parts[SELF_A]).text, share_a,
                    value_text(&drawing, parts[SELF_B]).text, share_b, share_b - share_a);
            print_name(&drawing, parts[NAME]);
            fputc('\n', out);
            shown++;
        }
    }
    mem_free(drawing.names);
}
