/* SPDX-License-Identifier: Apache-2.0 */
/* What pprof_reader.c reads messages with: scalar fields by tables of rows, repeated numbers, and
 * places by id. Every failure sets the reading's error. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/pprof/pprof.h"

struct arena;
struct error;
struct wire_field;
struct wire_reader;

/* What a scalar field is stored as. */
enum scalar { SCALAR_NUMBER, SCALAR_TEXT, SCALAR_FLAG, SCALARS_END };

struct scalar_row {
    uint8_t number; /* of the field */
    uint8_t kind;   /* enum scalar */
    uint16_t offset;
};

#define ROW(field, stored_as, owner, member)                                                       \
    {                                                                                              \
        .number = (field), .kind = (stored_as), .offset = offsetof(owner, member)                  \
    }
#define ROWS_END                                                                                   \
    {                                                                                              \
        .kind = SCALARS_END                                                                        \
    }

/* Places by id: open addressing. */
struct id_map {
    uint64_t *ids; /* 0: free */
    uint32_t *places;
    size_t mask;
    size_t in_order; /* so many from the first on are 1, 2, 3 …, as nearly everywhere */
    uint64_t seed;   /* so that nobody can choose ids that collide */
};

struct reading {
    struct arena *arena;
    struct pprof *pprof;
    struct error *error;
    size_t counts[PPROF_FIELDS]; /* of each field of the profile */
    struct id_map mapping_ids;
    struct id_map location_ids;
    struct id_map function_ids;
    uint64_t *ids; /* scratch: the location ids of one sample */
    size_t ids_capacity;
};

/* Elements of a repeated number, packed or one by one. */
struct numbers {
    size_t count;
    uint64_t *items; /* NULL: only counts */
};

/* count elements of size bytes, zeroed; NULL with the error set when the cap forbids it. */
void *reading_take(struct reading *reading, size_t count, size_t size);
/* Returns false: what the reader found wrong. */
bool reading_malformed(struct reading *reading, const char *what, const struct wire_reader *reader);
/* One field of a message whose scalars rows describe; others are none of its business. */
bool read_scalar(struct reading *reading, const struct wire_field *field,
                 const struct scalar_row *rows, void *to);
bool read_scalars(struct reading *reading, struct slice message, const struct scalar_row *rows,
                  void *to);
bool read_numbers(struct reading *reading, const struct wire_field *field, struct numbers *numbers);

bool ids_open(struct reading *reading, struct id_map *map, size_t count);
bool ids_add(struct reading *reading, struct id_map *map, uint64_t id, size_t place);
/* Place + 1 of what has that id, 0 for id 0. */
bool ids_find(struct reading *reading, const struct id_map *map, uint64_t id, uint32_t *ret_place);
