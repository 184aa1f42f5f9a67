/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting functions. Both sides of a difference are matched by name. Main thread of a command. */
#include "src/cli/profile/profile_top.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/cli/profile/profile_report.h"

int64_t profile_change(int64_t before, int64_t after)
{
    int64_t change;
    if (__builtin_sub_overflow(after, before, &change))
        return after > before ? INT64_MAX : INT64_MIN;
    return change;
}

static int compare_names(struct slice a, struct slice b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    assert(a.size == 0 || a.data != NULL);
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_rows(const void *left, const void *right)
{
    const struct top_row *a = left;
    const struct top_row *b = right;
    if (a->flat != b->flat)
        return a->flat < b->flat ? 1 : -1;
    if (a->cumulative != b->cumulative)
        return a->cumulative < b->cumulative ? 1 : -1;
    return compare_names(a->name, b->name);
}

struct top_row *profile_top(const struct report *report, const struct report_type *type,
                            size_t *ret_count)
{
    size_t count = 0;
    struct top_row *rows = mem_alloc(type->functions_capacity * sizeof(rows[0]));
    for (uint32_t i = 0; i < type->functions_capacity && i < report->names.count; i++) {
        const struct report_function *function = &type->functions[i];
        if (function->sample != 0)
            rows[count++] = (struct top_row){.name = report_name(report, i),
                                             .file = report_file(report, i),
                                             .flat = function->flat,
                                             .cumulative = function->cumulative};
    }
    qsort(rows, count, sizeof(rows[0]), compare_rows);
    *ret_count = count;
    return rows;
}

/* The same type in the other report; NULL: none. */
static const struct report_type *same_type(const struct report *of, const struct report_type *type,
                                           const struct report *in)
{
    for (size_t i = 0; i < in->types_count; i++) {
        const struct report_type *other = &in->types[i];
        if (slice_equal(report_text(of, type->type), report_text(in, other->type)) &&
            slice_equal(report_text(of, type->unit), report_text(in, other->unit)))
            return other;
    }
    return NULL;
}

bool profile_next_pair(struct diff_pair *pair)
{
    size_t first_new = pair->before->types_count;
    if (pair->next < first_new) {
        pair->type_before = &pair->before->types[pair->next++];
        pair->type_after = same_type(pair->before, pair->type_before, pair->after);
        return true;
    }
    pair->type_before = NULL;
    while (pair->next - first_new < pair->after->types_count) {
        pair->type_after = &pair->after->types[pair->next++ - first_new];
        if (same_type(pair->after, pair->type_after, pair->before) == NULL)
            return true;
    }
    return false;
}

const struct report *profile_pair_report(const struct diff_pair *pair,
                                         const struct report_type **ret_type)
{
    assert(pair->type_before != NULL || pair->type_after != NULL);
    bool is_before = pair->type_before != NULL;
    *ret_type = is_before ? pair->type_before : pair->type_after;
    return is_before ? pair->before : pair->after;
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

static int compare_changes(const void *left, const void *right)
{
    const struct diff_row *a = left;
    const struct diff_row *b = right;
    uint64_t flat_a = magnitude(profile_change(a->flat_before, a->flat_after));
    uint64_t flat_b = magnitude(profile_change(b->flat_before, b->flat_after));
    if (flat_a != flat_b)
        return flat_a < flat_b ? 1 : -1;
    uint64_t all_a = magnitude(profile_change(a->cumulative_before, a->cumulative_after));
    uint64_t all_b = magnitude(profile_change(b->cumulative_before, b->cumulative_after));
    if (all_a != all_b)
        return all_a < all_b ? 1 : -1;
    return compare_names(a->name, b->name);
}

/* Adds all functions of one side to rows; `names` maps names to rows. type NULL: none. */
static void add_side(struct profile_set *names, struct diff_row *rows, const struct report *report,
                     const struct report_type *type, bool is_after)
{
    for (uint32_t i = 0; type != NULL && i < type->functions_capacity && i < report->names.count;
         i++) {
        const struct report_function *function = &type->functions[i];
        if (function->sample == 0)
            continue;
        struct diff_row *row = &rows[profile_set_add(names, report_name(report, i))];
        row->name = report_name(report, i);
        row->file = report_file(report, i);
        *(is_after ? &row->flat_after : &row->flat_before) = function->flat;
        *(is_after ? &row->cumulative_after : &row->cumulative_before) = function->cumulative;
    }
}

struct diff_row *profile_diff(const struct diff_pair *pair, size_t *ret_count)
{
    struct profile_set names;
    assert(pair->type_before != NULL || pair->type_after != NULL);
    size_t most = (size_t)pair->before->names.count + pair->after->names.count + 1;
    struct diff_row *rows = mem_zalloc(most * sizeof(rows[0]));
    size_t count = 0;
    profile_set_init(&names, NULL);
    add_side(&names, rows, pair->before, pair->type_before, false);
    add_side(&names, rows, pair->after, pair->type_after, true);
    for (size_t i = 0; i < names.count; i++)
        if (rows[i].flat_before != rows[i].flat_after ||
            rows[i].cumulative_before != rows[i].cumulative_after)
            rows[count++] = rows[i];
    profile_set_fini(&names);
    qsort(rows, count, sizeof(rows[0]), compare_changes);
    *ret_count = count;
    return rows;
}
