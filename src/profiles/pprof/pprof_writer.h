/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pprof profile into one growing buffer, each message as it comes: the format allows any
 * order. Each string is kept once. The error is sticky: no budget, or more bytes than allowed. One
 * owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/content_table.h"
#include "src/base/slice.h"
#include "src/profiles/pprof/pprof.h"

struct budget;
struct buffer;

struct pprof_writer {
    struct budget *budget;
    struct buffer *output;
    struct content_table strings; /* in the output */
    uint64_t bytes_max;
    bool has_failed;
};

/* budget may be NULL. bytes_max is below 4 GiB. String 0 is there from the start. */
void pprof_writer_init(struct pprof_writer *writer, struct budget *budget, uint64_t bytes_max);
/* Frees everything that was not taken. */
void pprof_writer_fini(struct pprof_writer *writer);
/* Whether that many more bytes stay within the limit. */
bool pprof_writer_has_room(const struct pprof_writer *writer, uint64_t bytes);

/* The index of a string; adds it if it is new. 0 also if the writer has failed. */
uint32_t pprof_writer_string(struct pprof_writer *writer, struct slice string);
void pprof_writer_value_type(struct pprof_writer *writer, enum pprof_field field,
                             struct pprof_value_type type);
/* Writes a number of the profile itself, unless it is 0. */
void pprof_writer_number(struct pprof_writer *writer, enum pprof_field field, uint64_t number);
/* The sample has values_count values. */
void pprof_writer_sample(struct pprof_writer *writer, const struct pprof_sample *sample,
                         size_t values_count);
/* Their ids must be 1, 2, 3 … in the order of the calls: references are place + 1. */
void pprof_writer_mapping(struct pprof_writer *writer, const struct pprof_mapping *mapping);
void pprof_writer_location(struct pprof_writer *writer, const struct pprof_location *location);
void pprof_writer_function(struct pprof_writer *writer, const struct pprof_function *function);

/* The bytes, which the caller owns; NULL when the writer has failed. */
struct buffer *pprof_writer_take(struct pprof_writer *writer);
