/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pprof profile into one growing buffer, each message as it comes: the format allows any
 * order. Texts are kept once. The error is sticky: no budget, or more bytes than allowed. One
 * owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/pprof/pprof.h"

struct budget;
struct buffer;

struct pprof_writer {
    struct budget *budget;
    struct buffer *output;
    struct buffer *slots; /* of the hash table of texts */
    uint64_t bytes_max;
    uint32_t strings_count;
    uint64_t seed; /* of the hashes, so that nobody can choose texts that collide */
    bool has_failed;
};

/* budget may be NULL. bytes_max is below 4 GiB. Text 0 is there from the start. */
void pprof_writer_init(struct pprof_writer *writer, struct budget *budget, uint64_t bytes_max);
/* Gives back what was not taken. */
void pprof_writer_fini(struct pprof_writer *writer);
/* Whether so many more bytes keep the limit. */
bool pprof_writer_has_room(const struct pprof_writer *writer, uint64_t bytes);

/* The index of a text, which is added when it is new. 0 also when the writer has failed. */
uint32_t pprof_writer_text(struct pprof_writer *writer, struct slice text);
void pprof_writer_value_type(struct pprof_writer *writer, enum pprof_field field,
                             struct pprof_value_type type);
/* A number of the profile itself; 0 is not written. */
void pprof_writer_number(struct pprof_writer *writer, enum pprof_field field, uint64_t number);
/* The sample has values_count values. */
void pprof_writer_sample(struct pprof_writer *writer, const struct pprof_sample *sample,
                         size_t values_count);
/* Their ids are place + 1, as elsewhere refer to them: 1, 2, 3 … in the order of the calls. */
void pprof_writer_mapping(struct pprof_writer *writer, const struct pprof_mapping *mapping);
void pprof_writer_location(struct pprof_writer *writer, const struct pprof_location *location);
void pprof_writer_function(struct pprof_writer *writer, const struct pprof_function *function);
/* Everything that a profile holds; for a fresh writer. */
void pprof_writer_profile(struct pprof_writer *writer, const struct pprof *pprof);

/* The bytes, which the caller owns; NULL when the writer has failed. */
struct buffer *pprof_writer_take(struct pprof_writer *writer);
