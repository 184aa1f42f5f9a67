/* SPDX-License-Identifier: Apache-2.0 */
/* The seven tables of a request's ProfilesDictionary, layout 1.10: finds the entry of an index in
 * constant time, and decodes it. profile_view.h decodes the messages that refer to the tables. The
 * request has passed otlp_check. One owner; readers on any thread. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_numbers.h"

struct arena;

/* Field numbers of ProfilesDictionary, less one. */
enum profile_table {
    PROFILE_MAPPINGS,
    PROFILE_LOCATIONS,
    PROFILE_FUNCTIONS,
    PROFILE_LINKS,
    PROFILE_STRINGS,
    PROFILE_ATTRIBUTES,
    PROFILE_STACKS,
    PROFILE_TABLES,
};

/* Inside the request. */
struct profile_entry {
    uint32_t offset;
    uint32_t size;
};

struct profile_dictionary {
    struct slice request;
    struct profile_entry *entries[PROFILE_TABLES]; /* in the arena */
    uint32_t counts[PROFILE_TABLES];
};

/* Indexes the request's dictionary; without one all tables are empty. Allocates eight bytes per
 * entry in the arena. False when the arena's cap does not allow it, or when the request has 4 GiB
 * or more, as an edited one may have. */
bool profile_dictionary_open(struct profile_dictionary *dictionary, struct arena *arena,
                             struct slice request);

/* Whether index may be used: inside the table, or 0, which means "not set" even when the table has
 * no zero element. */
static inline bool profile_has(const struct profile_dictionary *dictionary,
                               enum profile_table table, struct profile_index index)
{
    return index.number == 0 || (uint64_t)index.number < dictionary->counts[table];
}

/* The subscript of an index for which profile_has holds, in an array that parallels a table. The
 * array has room for 0 even when the table is empty. */
static inline uint32_t profile_place(const struct profile_dictionary *dictionary,
                                     enum profile_table table, struct profile_index index)
{
    assert(profile_has(dictionary, table, index));
    return (uint32_t)index.number;
}

/* The bytes of an entry for which profile_has holds. Entry 0 has none when the table is empty; of
 * links and mappings it never has any: there 0 means none, whatever stands at that place. */
struct slice profile_entry_at(const struct profile_dictionary *dictionary, enum profile_table table,
                              struct profile_index index);

struct profile_mapping {
    uint64_t memory_start;
    uint64_t memory_limit;
    uint64_t file_offset;
    struct profile_index filename;
    struct profile_indices attributes;
};

struct profile_location {
    struct profile_index mapping;
    uint64_t address;
    uint32_t lines_count;
    struct profile_indices attributes;
    struct slice bytes; /* lines: profile_next_line */
};

struct profile_line {
    struct profile_index function;
    int64_t line;
    int64_t column;
};

struct profile_function {
    struct profile_index name;
    struct profile_index system_name;
    struct profile_index filename;
    int64_t start_line;
};

struct profile_link {
    struct slice trace_id; /* 16 bytes or none */
    struct slice span_id;  /* 8 bytes or none */
};

struct profile_attribute {
    struct profile_index key;
    struct profile_index unit;
    struct slice value; /* encoded AnyValue; no data: not set */
};

struct profile_stack {
    struct profile_indices locations; /* leaf first */
};

/* Decode an entry for which profile_has holds. After profile_normalize it also holds for all
 * indices inside. */
struct profile_mapping profile_mapping_at(const struct profile_dictionary *dictionary,
                                          struct profile_index index);
struct profile_location profile_location_at(const struct profile_dictionary *dictionary,
                                            struct profile_index index);
struct profile_function profile_function_at(const struct profile_dictionary *dictionary,
                                            struct profile_index index);
struct profile_link profile_link_at(const struct profile_dictionary *dictionary,
                                    struct profile_index index);
struct slice profile_string_at(const struct profile_dictionary *dictionary,
                               struct profile_index index);
struct profile_attribute profile_attribute_at(const struct profile_dictionary *dictionary,
                                              struct profile_index index);
struct profile_stack profile_stack_at(const struct profile_dictionary *dictionary,
                                      struct profile_index index);

struct wire_reader;
/* The lines of a location, innermost (inlined) first: begin with wire_reader_of(location.bytes). */
bool profile_next_line(struct wire_reader *reader, struct profile_line *ret_line);
