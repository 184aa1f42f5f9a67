/* SPDX-License-Identifier: Apache-2.0 */
/* Marks what is referred to, table by table from the samples downwards: when all entries of a table
 * are used, all that they refer to is. It reads what was just written, so that all indices are
 * right. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_unused.h"

#include <assert.h>

#include "src/profiles/otlp/profile_groups.h"
#include "src/profiles/otlp/profile_plan.h"
#include "src/profiles/otlp/profile_tables.h"

struct marking {
    const struct profile_tables *tables;
    uint8_t *marks[PROFILE_TABLES]; /* of each entry */
    uint32_t left[PROFILE_TABLES];  /* entries without */
};

static void mark(struct marking *marking, enum profile_table table, uint64_t index)
{
    assert(index < marking->tables->sets[table].count);
    marking->left[table] -= marking->marks[table][index] == 0;
    marking->marks[table][index] = 1;
}

static void mark_all(struct marking *marking, enum profile_table table, struct slice packed)
{
    const uint8_t *at = packed.data;
    const uint8_t *end = packed.data + packed.size;
    uint64_t index = 0;
    while (at < end) {
        at = profile_number_at(at, end, &index);
        assert(at != NULL);
        mark(marking, table, index);
    }
}

static void mark_numbers(struct marking *marking, const struct profile_plan *plan,
                         struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number < 8 && plan->meanings[field.number] == PROFILE_INDEX)
            mark(marking, (enum profile_table)plan->tables[field.number], field.number_value);
    assert(reader.failure == NULL);
}

/* Its fields come in their order. */
static void mark_sample(struct marking *marking, struct slice sample)
{
    const uint8_t *at = sample.data;
    const uint8_t *end = sample.data + sample.size;
    struct slice attributes = slice_of(end, 0);
    uint64_t index = 0;
    if (at < end && *at == PROFILE_NUMBER(1)) {
        at = profile_number_at(at + 1, end, &index);
        mark(marking, PROFILE_STACKS, index);
    }
    if (at < end && *at == PROFILE_BYTES(2)) {
        bool is_whole = profile_content_at(at + 1, end, &attributes);
        assert(is_whole);
        at = attributes.data + attributes.size;
        if (marking->left[PROFILE_ATTRIBUTES] > 0)
            mark_all(marking, PROFILE_ATTRIBUTES, attributes);
    }
    if (at < end && *at == PROFILE_NUMBER(3)) {
        at = profile_number_at(at + 1, end, &index);
        mark(marking, PROFILE_LINKS, index);
    }
    assert(at != NULL);
}

static bool is_sample_news(const struct marking *marking)
{
    return marking->left[PROFILE_STACKS] > 0 || marking->left[PROFILE_LINKS] > 0 ||
           marking->left[PROFILE_ATTRIBUTES] > 0;
}

static void mark_profile(struct marking *marking, struct slice profile)
{
    struct wire_reader reader = wire_reader_of(profile);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 2 && is_sample_news(marking))
            mark_sample(marking, field.bytes);
        else if (field.number == 1 || field.number == 5)
            mark_numbers(marking, &profile_value_type_plan, field.bytes);
        else if (field.number == 11)
            mark_all(marking, PROFILE_ATTRIBUTES, field.bytes);
    }
    assert(reader.failure == NULL);
}

static void mark_profiles(struct marking *marking, const struct profile_groups *groups)
{
    size_t begin = 0;
    for (uint32_t i = 0; i < groups->rows_count; i++) {
        size_t end = groups->rows[i].end;
        mark_profile(marking, slice_of(groups->body.data + begin, end - begin));
        begin = end;
    }
    assert(begin == groups->body.size);
}

/* One field of an entry that is not a plain number. */
static void mark_part(struct marking *marking, enum profile_table table,
                      const struct wire_field *field)
{
    if (table == PROFILE_STACKS)
        mark_all(marking, PROFILE_LOCATIONS, field->bytes);
    else if (table == PROFILE_LOCATIONS && field->number == 1)
        mark(marking, PROFILE_MAPPINGS, field->number_value);
    else if (table == PROFILE_LOCATIONS && field->number == 3)
        mark_numbers(marking, &profile_line_plan, field->bytes);
    else if ((table == PROFILE_LOCATIONS && field->number == 4) ||
             (table == PROFILE_MAPPINGS && field->number == 5))
        mark_all(marking, PROFILE_ATTRIBUTES, field->bytes);
    else if (table == PROFILE_ATTRIBUTES && field->number != 2)
        mark(marking, PROFILE_STRINGS, field->number_value);
}

static void mark_entry(struct marking *marking, enum profile_table table, struct slice entry)
{
    struct wire_reader reader = wire_reader_of(entry);
    struct wire_field field;
    if (table == PROFILE_FUNCTIONS)
        mark_numbers(marking, &profile_function_plan, entry);
    else if (table == PROFILE_MAPPINGS)
        mark_numbers(marking, &profile_mapping_plan, entry);
    while (wire_next_field(&reader, &field))
        mark_part(marking, table, &field);
    assert(reader.failure == NULL);
}

/* What the entries of a table refer to, as long as any of `targets` (bits) has entries left. */
static void mark_table(struct marking *marking, enum profile_table table, unsigned targets)
{
    const struct profile_set *set = &marking->tables->sets[table];
    for (uint32_t i = 1; i < set->count; i++) {
        unsigned wanted = 0;
        for (unsigned target = 0; target < PROFILE_TABLES; target++)
            wanted |= marking->left[target] > 0 ? 1u << target : 0;
        if ((wanted & targets) == 0)
            return;
        mark_entry(marking, table, profile_set_at(set, i));
    }
}

/* Each table after all that refer to it. */
static bool find_unused(struct marking *marking)
{
    static const struct {
        enum profile_table table;
        unsigned targets;
    } steps[] = {
        {PROFILE_STACKS, 1u << PROFILE_LOCATIONS},
        {PROFILE_LOCATIONS,
         1u << PROFILE_MAPPINGS | 1u << PROFILE_FUNCTIONS | 1u << PROFILE_ATTRIBUTES},
        {PROFILE_MAPPINGS, 1u << PROFILE_ATTRIBUTES | 1u << PROFILE_STRINGS},
        {PROFILE_FUNCTIONS, 1u << PROFILE_STRINGS},
        {PROFILE_ATTRIBUTES, 1u << PROFILE_STRINGS},
    };
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (marking->left[steps[i].table] > 0)
            return true;
        mark_table(marking, steps[i].table, steps[i].targets);
    }
    return marking->left[PROFILE_LINKS] > 0 || marking->left[PROFILE_STRINGS] > 0;
}

bool profile_has_unused(const struct profile_tables *tables, const struct profile_groups *groups)
{
    struct marking marking = {.tables = tables};
    struct profile_bytes scratch = {.budget = groups->body.budget};
    size_t size = 0;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        size += tables->sets[i].count;
    uint8_t *at = profile_bytes_room(&scratch, size);
    memset(at, 0, size);
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        marking.marks[i] = at;
        marking.marks[i][0] = 1; /* the zero element */
        marking.left[i] = tables->sets[i].count - 1;
        at += tables->sets[i].count;
    }
    mark_profiles(&marking, groups);
    bool has_unused = find_unused(&marking);
    profile_bytes_fini(&scratch);
    return has_unused;
}
