/* SPDX-License-Identifier: Apache-2.0 */
/* Writes strings, functions, mappings and locations of an OTLP dictionary to a pprof profile, each
 * when it is first used. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/profiles/otlp/profile_dictionary.h"

struct budget;
struct pprof_writer;

/* The cost of what must not be written at all. */
#define OTLP_SYMBOLS_TOO_LARGE ((uint64_t)UINT32_MAX)

struct otlp_symbols {
    const struct profile_dictionary *dictionary;
    struct pprof_writer *writer;
    struct budget *budget;
    struct scratch slots[PROFILE_TABLES]; /* by index: the ids of what is written */
    struct scratch mappings;              /* by id: struct pprof_mapping, written at the end */
    struct scratch mapping_facts;         /* struct mapping_facts by index */
    struct scratch folded_locations;      /* a byte by index */
    struct scratch lines;                 /* of one location */
    struct scratch repaired;              /* a string */
    uint32_t ids[PROFILE_TABLES];         /* the last id given */
    uint32_t nameless;                    /* the function without a name; 0: not written yet */
    uint32_t generation;                  /* of the profile; slots of older ones are free */
    uint32_t count;                       /* of the costs at hand */
    uint64_t work;                        /* for bulky strings, since init */
    bool has_failed;                      /* no memory */
};

void otlp_symbols_init(struct otlp_symbols *symbols, const struct profile_dictionary *dictionary,
                       struct budget *budget);
void otlp_symbols_fini(struct otlp_symbols *symbols);
/* A new profile: nothing is written yet. */
void otlp_symbols_begin(struct otlp_symbols *symbols, struct pprof_writer *writer);
/* Indices out of range count as 0. */
uint32_t otlp_symbols_string(struct otlp_symbols *symbols, struct profile_index index);
/* The id of a location; 0 for index 0. */
uint32_t otlp_symbols_location(struct otlp_symbols *symbols, struct profile_index index);
/* Begins to count the costs of a stack: what its locations share counts once. */
void otlp_symbols_begin_count(struct otlp_symbols *symbols);
/* An upper bound of the bytes that otlp_symbols_location would write, mapping included, after those
 * of this count. */
uint64_t otlp_symbols_location_cost(struct otlp_symbols *symbols, struct profile_index index);
/* An upper bound of the bytes that otlp_symbols_end will write. */
uint64_t otlp_symbols_end_cost(const struct otlp_symbols *symbols);
/* Writes the mappings, whose flags are complete only now. */
void otlp_symbols_end(struct otlp_symbols *symbols);
