/* SPDX-License-Identifier: Apache-2.0 */
/* The spans that a request's samples are linked to, each with its hottest functions: one row per
 * sample with a link, sorted and summed. Any thread. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/text/text.h"
#include "src/otlp/text/text_parts.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"

/* Indices into the request's tables. */
struct row {
    uint32_t link;
    uint32_t type;
    uint32_t unit;
    uint32_t function;  /* its name, of the innermost frame; 0: unknown */
    uint32_t attribute; /* span_name; 0: none */
    uint64_t value;
};

#define LEAF_UNREAD UINT32_MAX

/* Whether an attribute is a span_name. */
enum __attribute__((packed)) name_state { NAME_UNREAD, NAME_OTHER, NAME_OF_SPAN };

/* Pairs of indices (type, unit), sorted. */
struct type_units {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

struct rows {
    struct budget *budget; /* NULL: not charged */
    const struct profile_dictionary *dictionary;
    struct row *items;
    size_t count;
    size_t capacity;
    uint64_t left_out;
    uint32_t *leaves;        /* by stack: the name of its leaf */
    enum name_state *names;  /* by attribute */
    struct type_units types; /* of the current scope's profiles */
};

/* One span and type: neighbours in the sorted rows. */
struct span_group {
    const struct row *rows;
    size_t count;
    uint64_t total;
};

/* Clients may send any number: sums and products saturate at UINT64_MAX. */
static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The name of a stack's innermost function; 0: unknown. Each stack is read once, because many
 * samples share it. */
static uint32_t leaf_name(struct rows *rows, struct profile_index stack_index)
{
    const struct profile_dictionary *dictionary = rows->dictionary;
    uint32_t *leaf = &rows->leaves[profile_place(dictionary, PROFILE_STACKS, stack_index)];
    if (*leaf != LEAF_UNREAD)
        return *leaf;
    struct profile_stack stack = profile_stack_at(dictionary, stack_index);
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_line line;
    struct profile_index index;
    *leaf = 0;
    if (!profile_indices_next(&reader, &index))
        return 0;
    struct wire_reader lines =
        wire_reader_of(profile_entry_at(dictionary, PROFILE_LOCATIONS, index));
    if (profile_next_line(&lines, &line))
        *leaf = profile_place(dictionary, PROFILE_STRINGS,
                              profile_function_at(dictionary, line.function).name);
    return *leaf;
}

/* NULL: no memory. Both lists are charged while items are copied. */
static void *grown(struct rows *rows, void *items, size_t before, size_t capacity,
                   size_t item_bytes)
{
    if (rows->budget != NULL && !budget_try_take(rows->budget, capacity * item_bytes))
        return NULL;
    void *memory = mem_try_resize(items, capacity * item_bytes);
    if (rows->budget != NULL)
        budget_return(rows->budget, (memory != NULL ? before : capacity) * item_bytes);
    return memory;
}

static void drop(const struct rows *rows, void *items, size_t capacity, size_t item_bytes)
{
    mem_free(items);
    if (rows->budget != NULL)
        budget_return(rows->budget, capacity * item_bytes);
}

/* In a CPU profile each counted sample stands for a time. */
static bool stands_for_time(const struct profile_dictionary *dictionary,
                            const struct profile *profile)
{
    return profile->period > 1 &&
           slice_equal_text(profile_string_at(dictionary, profile->period_type.unit),
                            "nanoseconds") &&
           slice_equal_text(profile_string_at(dictionary, profile->sample_type.unit), "count");
}

static uint64_t type_unit(const struct profile_value_type *type)
{
    return (uint64_t)type->type.number << 32 | (uint32_t)type->unit.number;
}

static int compare_type_units(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void add_sample(struct rows *rows, const struct profile *profile,
                       const struct profile_sample *sample)
{
    const struct profile_dictionary *from = rows->dictionary;
    if (!profile_index_is_set(sample->link))
        return;
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 256;
        struct row *items = NULL;
        if (rows->capacity < TEXT_SPAN_ROWS_MAX)
            items = grown(rows, rows->items, rows->capacity, capacity, sizeof(*items));
        if (items == NULL) {
            rows->left_out++;
            return;
        }
        rows->items = items;
        rows->capacity = capacity;
    }
    /* The sum of its values; a sample without values counts once for each timestamp. */
    struct profile_numbers_reader values = profile_numbers_read(&sample->values);
    uint64_t total = 0;
    uint64_t value;
    if (profile_numbers_count(&sample->values) == 0)
        total = profile_numbers_count(&sample->timestamps);
    while (profile_numbers_next(&values, &value))
        total = add_capped(total, (int64_t)value > 0 ? value : 0);
    /* The attribute with the span's name; 0: none. */
    struct profile_indices_reader attributes = profile_indices_read(&sample->attributes);
    struct profile_index index;
    uint32_t name = 0;
    while (name == 0 && profile_indices_next(&attributes, &index)) {
        uint32_t place = profile_place(from, PROFILE_ATTRIBUTES, index);
        enum name_state *state = &rows->names[place];
        if (*state == NAME_UNREAD) {
            struct profile_attribute attribute = profile_attribute_at(from, index);
            struct slice key = profile_string_at(from, attribute.key);
            *state = slice_equal_text(key, "span_name") ? NAME_OF_SPAN : NAME_OTHER;
        }
        name = *state == NAME_OF_SPAN ? place : 0;
    }
    struct row row = {
        .link = profile_place(from, PROFILE_LINKS, sample->link),
        .type = profile_place(from, PROFILE_STRINGS, profile->sample_type.type),
        .unit = profile_place(from, PROFILE_STRINGS, profile->sample_type.unit),
        .function = leaf_name(rows, sample->stack),
        .attribute = name,
        .value = total,
    };
    if (stands_for_time(rows->dictionary, profile)) {
        row.type = profile_place(from, PROFILE_STRINGS, profile->period_type.type);
        row.unit = profile_place(from, PROFILE_STRINGS, profile->period_type.unit);
        if (__builtin_mul_overflow(row.value, (uint64_t)profile->period, &row.value))
            row.value = UINT64_MAX;
    }
    rows->items[rows->count++] = row;
}

/* Adds the linked samples of a scope; none without memory. */
static void add_profiles(struct rows *rows, struct slice scope)
{
    /* The types of all its profiles, sorted. */
    struct type_units *types = &rows->types;
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile profile;
    types->count = 0;
    while (profile_next_profile(&profiles, &profile)) {
        if (types->count == types->capacity) {
            size_t capacity = types->capacity > 0 ? 2 * types->capacity : 64;
            uint64_t *items = grown(rows, types->items, types->capacity, capacity, sizeof(*items));
            if (items == NULL)
                return;
            types->items = items;
            types->capacity = capacity;
        }
        types->items[types->count++] = type_unit(&profile.sample_type);
    }
    assert(profiles.failure == NULL);
    if (types->count > 1)
        qsort(types->items, types->count, sizeof(types->items[0]), compare_type_units);
    profiles = wire_reader_of(scope);
    while (profile_next_profile(&profiles, &profile)) {
        struct wire_reader samples = wire_reader_of(profile.bytes);
        struct profile_sample sample;
        /* Many profilers count samples and put their time into another profile: skip the count. */
        uint64_t time = type_unit(&profile.period_type);
        if (stands_for_time(rows->dictionary, &profile) && types->count > 0 &&
            bsearch(&time, types->items, types->count, sizeof(time), compare_type_units) != NULL)
            continue;
        while (profile_next_sample(&samples, &sample))
            add_sample(rows, &profile, &sample);
    }
}

static int compare_spans(const struct row *a, const struct row *b)
{
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
    int spans = compare_spans(a, b);
    if (spans != 0)
        return spans;
    return a->function < b->function ? -1 : a->function > b->function;
}

static int compare_values(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    int spans = compare_spans(a, b);
    if (spans != 0)
        return spans;
    return a->value > b->value ? -1 : a->value < b->value;
}

static int compare_groups(const void *left, const void *right)
{
    const struct span_group *a = left;
    const struct span_group *b = right;
    assert(a->count > 0 && b->count > 0);
    return a->total > b->total ? -1 : a->total < b->total;
}

/* Replaces line ends, and other bytes that would move a terminal's cursor, in clients' names. */
static void flatten(struct text *text, size_t begin)
{
    assert(begin <= text->size);
    for (size_t i = begin; i < text->size; i++)
        if ((uint8_t)text->data[i] < ' ' || text->data[i] == 0x7f)
            text->data[i] = ' ';
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
    struct slice unit = profile_string_at(rows->dictionary, profile_index_of(first->unit));
    if (slice_equal_text(unit, "nanoseconds")) {
        text_add(text, "%.1f ms", (double)group->total / NS_PER_MS);
    } else {
        text_add(text, "%" PRIu64 " ", group->total);
        text_add_slice(text, unit);
    }
    text_add(text, " of ");
    text_add_slice(text, profile_string_at(rows->dictionary, profile_index_of(first->type)));
    flatten(text, begin);
    text_add(text, "\n");
    for (size_t i = 0; i < group->count && i < functions_max; i++) {
        const struct row *row = &group->rows[i];
        struct slice function =
            profile_string_at(rows->dictionary, profile_index_of(row->function));
        text_add(text, "     %5.1f %%  ",
                 group->total > 0 ? 100.0 * (double)row->value / (double)group->total : 0.0);
        begin = text->size;
        text_add_slice(text, function.size > 0 ? function : slice_of_text("(no symbol)"));
        flatten(text, begin);
        text_add(text, "\n");
    }
}

/* Sums the rows, and writes the spans with the largest totals. Totals of different types are not
 * comparable, but the order within each type is right. */
static void write_groups(struct text *text, struct rows *rows, size_t functions_max)
{
    /* One row per span, type and function, the largest of a span first. */
    size_t kept = 0;
    assert(rows->count > 0);
    qsort(rows->items, rows->count, sizeof(rows->items[0]), compare_rows);
    for (size_t i = 1; i < rows->count; i++) {
        if (compare_rows(&rows->items[i], &rows->items[kept]) == 0)
            rows->items[kept].value = add_capped(rows->items[kept].value, rows->items[i].value);
        else
            rows->items[++kept] = rows->items[i];
    }
    rows->count = kept + 1;
    qsort(rows->items, rows->count, sizeof(rows->items[0]), compare_values);
    struct span_group *groups = grown(rows, NULL, 0, rows->count, sizeof(*groups));
    size_t count = 0;
    if (groups == NULL)
        return;
    for (size_t at = 0; at < rows->count; count++) {
        struct span_group *group = &groups[count];
        *group = (struct span_group){.rows = &rows->items[at]};
        while (at < rows->count && compare_spans(group->rows, &rows->items[at]) == 0) {
            group->total = add_capped(group->total, rows->items[at++].value);
            group->count++;
        }
    }
    qsort(groups, count, sizeof(groups[0]), compare_groups);
    for (size_t i = 0; i < count && i < TEXT_SPANS_MAX && !text->is_cut; i++)
        add_group(text, rows, &groups[i], functions_max);
    if (count > TEXT_SPANS_MAX)
        text_add(text, "… and %zu more spans\n", count - TEXT_SPANS_MAX);
    if (rows->left_out > 0)
        text_add(text, "… without %" PRIu64 " samples beyond the first %d\n", rows->left_out,
                 TEXT_SPAN_ROWS_MAX);
    drop(rows, groups, rows->count, sizeof(*groups));
}

void otlp_text_write_spans(struct text *text, struct slice request, size_t functions_max)
{
    struct profile_dictionary dictionary;
    struct rows rows = {.dictionary = &dictionary, .budget = text->budget};
    struct arena arena;
    assert(functions_max > 0);
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, text->budget);
    if (!profile_dictionary_open(&dictionary, &arena, request)) {
        arena_clear(&arena);
        return;
    }
    /* Index 0 may be looked up even if the table is empty. */
    size_t stacks = (size_t)dictionary.counts[PROFILE_STACKS] + 1;
    size_t attributes = (size_t)dictionary.counts[PROFILE_ATTRIBUTES] + 1;
    rows.leaves = arena_try_alloc(&arena, stacks * sizeof(rows.leaves[0]));
    rows.names = arena_try_alloc(&arena, attributes * sizeof(rows.names[0]));
    if (rows.leaves != NULL && rows.names != NULL) {
        struct wire_reader resources = wire_reader_of(request);
        struct profile_resource resource;
        for (size_t i = 0; i < stacks; i++)
            rows.leaves[i] = LEAF_UNREAD;
        memset(rows.names, NAME_UNREAD, attributes * sizeof(rows.names[0]));
        while (profile_next_resource(&resources, &resource)) {
            struct wire_reader scopes = wire_reader_of(resource.bytes);
            struct profile_scope scope;
            while (profile_next_scope(&scopes, &scope))
                add_profiles(&rows, scope.bytes);
        }
    }
    if (rows.count > 0) {
        text->dictionary = &dictionary;
        write_groups(text, &rows, functions_max);
        text->dictionary = NULL;
    }
    drop(&rows, rows.items, rows.capacity, sizeof(rows.items[0]));
    drop(&rows, rows.types.items, rows.types.capacity, sizeof(rows.types.items[0]));
    arena_clear(&arena);
}
