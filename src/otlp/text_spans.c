/* SPDX-License-Identifier: Apache-2.0 */
/* The spans that a request's samples belong to, each with its hottest functions: one row per sample
 * that has a link, sorted and summed. Any thread. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/arena.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/otlp/profile_dictionary.h"
#include "src/otlp/profile_view.h"
#include "src/otlp/text_parts.h"

/* Indices into the request's tables. */
struct row {
    uint32_t link;
    uint32_t type;
    uint32_t unit;
    uint32_t function;  /* its name, of the innermost frame; 0: unknown */
    uint32_t attribute; /* span_name; 0: none */
    uint64_t value;
};

struct rows {
    const struct profile_dictionary *dictionary;
    struct row *items;
    size_t count;
    size_t capacity;
    uint64_t left_out;
};

/* One span and type: neighbours in the sorted rows. */
struct span_group {
    const struct row *rows;
    size_t count;
    uint64_t total;
};

static uint32_t leaf_name(const struct profile_dictionary *dictionary,
                          struct profile_index stack_index)
{
    struct profile_stack stack = profile_stack_at(dictionary, stack_index);
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_line line;
    struct profile_index index;
    if (!profile_indices_next(&reader, &index))
        return 0;
    struct profile_location location = profile_location_at(dictionary, index);
    struct wire_reader lines = wire_reader_of(location.bytes);
    if (!profile_next_line(&lines, &line))
        return 0;
    return profile_place(dictionary, PROFILE_STRINGS,
                         profile_function_at(dictionary, line.function).name);
}

static uint32_t name_attribute(const struct profile_dictionary *dictionary,
                               const struct profile_sample *sample)
{
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    assert(dictionary != NULL);
    while (profile_indices_next(&reader, &index)) {
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (slice_equal_text(profile_string_at(dictionary, attribute.key), "span_name"))
            return profile_place(dictionary, PROFILE_ATTRIBUTES, index);
    }
    return 0;
}

/* The sum of its values; a sample without any counts once for each time at which it was seen. */
static uint64_t value_of(const struct profile_sample *sample)
{
    struct profile_numbers_reader reader = profile_numbers_read(&sample->values);
    uint64_t total = 0;
    uint64_t value;
    assert(sample->bytes.data != NULL);
    if (profile_numbers_count(&sample->values) == 0)
        return profile_numbers_count(&sample->timestamps);
    while (profile_numbers_next(&reader, &value))
        total += (int64_t)value > 0 ? value : 0;
    return total;
}

static bool has_room(struct rows *rows)
{
    assert(rows->count <= rows->capacity);
    if (rows->count < rows->capacity)
        return true;
    if (rows->capacity == TEXT_SPAN_ROWS_MAX)
        return false;
    size_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 256;
    struct row *grown = mem_try_resize(rows->items, capacity * sizeof(*grown));
    if (grown == NULL)
        return false;
    rows->items = grown;
    rows->capacity = capacity;
    return true;
}

/* Samples that a CPU profile counts stand for a time each. */
static bool stands_for_time(const struct profile_dictionary *dictionary,
                            const struct profile *profile)
{
    assert(dictionary != NULL);
    return profile->period > 1 &&
           slice_equal_text(profile_string_at(dictionary, profile->period_type.unit),
                            "nanoseconds") &&
           slice_equal_text(profile_string_at(dictionary, profile->sample_type.unit), "count");
}

/* Many profilers count samples and, in a profile beside that, say the time that they stand for. */
static bool is_said_beside(const struct rows *rows, struct slice scope,
                           const struct profile *profile)
{
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile other;
    assert(profile->bytes.data != NULL);
    if (!stands_for_time(rows->dictionary, profile))
        return false;
    while (profile_next_profile(&profiles, &other))
        if (other.sample_type.type.number == profile->period_type.type.number &&
            other.sample_type.unit.number == profile->period_type.unit.number)
            return true;
    return false;
}

static void add_sample(struct rows *rows, const struct profile *profile,
                       const struct profile_sample *sample)
{
    const struct profile_dictionary *from = rows->dictionary;
    if (!profile_index_is_set(sample->link))
        return;
    if (!has_room(rows)) {
        rows->left_out++;
        return;
    }
    struct row row = {
        .link = profile_place(from, PROFILE_LINKS, sample->link),
        .type = profile_place(from, PROFILE_STRINGS, profile->sample_type.type),
        .unit = profile_place(from, PROFILE_STRINGS, profile->sample_type.unit),
        .function = leaf_name(from, sample->stack),
        .attribute = name_attribute(from, sample),
        .value = value_of(sample),
    };
    if (stands_for_time(rows->dictionary, profile)) {
        row.type = profile_place(from, PROFILE_STRINGS, profile->period_type.type);
        row.unit = profile_place(from, PROFILE_STRINGS, profile->period_type.unit);
        row.value *= (uint64_t)profile->period;
    }
    rows->items[rows->count++] = row;
}

static void add_profiles(struct rows *rows, struct slice scope)
{
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile profile;
    assert(rows->dictionary != NULL);
    while (profile_next_profile(&profiles, &profile)) {
        struct wire_reader samples = wire_reader_of(profile.bytes);
        struct profile_sample sample;
        if (is_said_beside(rows, scope, &profile))
            continue;
        while (profile_next_sample(&samples, &sample))
            add_sample(rows, &profile, &sample);
    }
}

static void add_request(struct rows *rows, struct slice request)
{
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    assert(rows->count == 0);
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct profile_scope scope;
        while (profile_next_scope(&scopes, &scope))
            add_profiles(rows, scope.bytes);
    }
}

static int compare_spans(const struct row *a, const struct row *b)
{
    assert(a != NULL && b != NULL);
    if (a->link != b->link)
        return a->link < b->link ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return a->unit < b->unit ? -1 : a->unit > b->unit;
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    assert(a != NULL && b != NULL);
    int spans = compare_spans(a, b);
    if (spans != 0)
        return spans;
    return a->function < b->function ? -1 : a->function > b->function;
}

static int compare_values(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    assert(a != NULL && b != NULL);
    int spans = compare_spans(a, b);
    if (spans != 0)
        return spans;
    return a->value > b->value ? -1 : a->value < b->value;
}

/* One row per span, type and function, the largest of a span first. */
static void sum_rows(struct rows *rows)
{
    size_t kept = 0;
    assert(rows->count > 0);
    qsort(rows->items, rows->count, sizeof(rows->items[0]), compare_rows);
    for (size_t i = 1; i < rows->count; i++) {
        if (compare_rows(&rows->items[i], &rows->items[kept]) == 0)
            rows->items[kept].value += rows->items[i].value;
        else
            rows->items[++kept] = rows->items[i];
    }
    rows->count = kept + 1;
    qsort(rows->items, rows->count, sizeof(rows->items[0]), compare_values);
}

static bool next_group(const struct rows *rows, size_t *at, struct span_group *group)
{
    assert(*at <= rows->count);
    if (*at == rows->count)
        return false;
    *group = (struct span_group){.rows = &rows->items[*at]};
    while (*at < rows->count && compare_spans(group->rows, &rows->items[*at]) == 0) {
        group->total += rows->items[(*at)++].value;
        group->count++;
    }
    return true;
}

static int compare_groups(const void *left, const void *right)
{
    const struct span_group *a = left;
    const struct span_group *b = right;
    assert(a->count > 0 && b->count > 0);
    return a->total > b->total ? -1 : a->total < b->total;
}

static void add_amount(struct text *text, uint64_t value, struct slice unit)
{
    assert(text != NULL);
    if (slice_equal_text(unit, "nanoseconds")) {
        text_add(text, "%.1f ms", (double)value / NS_PER_MS);
        return;
    }
    text_add(text, "%" PRIu64 " ", value);
    text_add_slice(text, unit);
}

/* Line ends, and what else would move a terminal's cursor, in names that others gave. */
static void flatten(struct text *text, size_t begin)
{
    assert(begin <= text->size);
    for (size_t i = begin; i < text->size; i++)
        if ((uint8_t)text->data[i] < ' ' || text->data[i] == 0x7f)
            text->data[i] = ' ';
}

static void add_function(struct text *text, const struct rows *rows, const struct row *row,
                         uint64_t total)
{
    struct slice name = profile_string_at(rows->dictionary, profile_index_of(row->function));
    assert(total >= row->value);
    text_add(text, "     %5.1f %%  ", total > 0 ? 100.0 * (double)row->value / (double)total : 0.0);
    size_t begin = text->size;
    text_add_slice(text, name.size > 0 ? name : slice_of_text("(no symbol)"));
    flatten(text, begin);
    text_add(text, "\n");
}

static void add_group(struct text *text, const struct rows *rows, const struct span_group *group,
                      size_t functions_max)
{
    const struct row *first = group->rows;
    struct profile_link link = profile_link_at(rows->dictionary, profile_index_of(first->link));
    struct profile_attribute name =
        profile_attribute_at(rows->dictionary, profile_index_of(first->attribute));
    assert(group->count > 0);
    text_add(text, "Span ");
    size_t begin = text->size;
    if (first->attribute != 0 && name.value.data != NULL)
        text_add_value(text, name.value);
    text_add(text, "%strace ", first->attribute != 0 ? ", " : "");
    text_add_id(text, link.trace_id);
    text_add(text, ", span ");
    text_add_id(text, link.span_id);
    text_add(text, ": ");
    add_amount(text, group->total,
               profile_string_at(rows->dictionary, profile_index_of(first->unit)));
    text_add(text, " of ");
    text_add_slice(text, profile_string_at(rows->dictionary, profile_index_of(first->type)));
    flatten(text, begin);
    text_add(text, "\n");
    for (size_t i = 0; i < group->count && i < functions_max; i++)
        add_function(text, rows, &group->rows[i], group->total);
}

/* The spans with the largest totals. Totals of different types are not comparable, but each type's
 * own order is kept. */
static void write_groups(struct text *text, const struct rows *rows, size_t functions_max)
{
    struct span_group *groups = mem_try_alloc(rows->count * sizeof(*groups));
    size_t count = 0;
    size_t at = 0;
    assert(rows->count > 0);
    if (groups == NULL)
        return;
    while (next_group(rows, &at, &groups[count]))
        count++;
    qsort(groups, count, sizeof(groups[0]), compare_groups);
    for (size_t i = 0; i < count && i < TEXT_SPANS_MAX && !text->is_cut; i++)
        add_group(text, rows, &groups[i], functions_max);
    if (count > TEXT_SPANS_MAX)
        text_add(text, "… and %zu more spans\n", count - TEXT_SPANS_MAX);
    if (rows->left_out > 0)
        text_add(text, "… without %" PRIu64 " samples beyond the first %d\n", rows->left_out,
                 TEXT_SPAN_ROWS_MAX);
    mem_free(groups);
}

void otlp_text_write_spans(struct text *text, struct slice request, size_t functions_max)
{
    struct profile_dictionary dictionary;
    struct rows rows = {.dictionary = &dictionary};
    struct arena arena;
    assert(text != NULL);
    assert(functions_max > 0);
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    if (profile_dictionary_open(&dictionary, &arena, request)) {
        add_request(&rows, request);
        if (rows.count > 0) {
            sum_rows(&rows);
            text->dictionary = &dictionary;
            write_groups(text, &rows, functions_max);
            text->dictionary = NULL;
        }
    }
    mem_free(rows.items);
    arena_clear(&arena);
}
