/* SPDX-License-Identifier: Apache-2.0 */
/* Carries entries from the dictionary of a request into one that is being built: an index of the
 * old becomes one of the new when it is first asked for, together with all that the entry refers
 * to. So only what is used comes along, and each once. One owner, one
 * thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_tables.h"

/* From one request, whose indices have been checked, to the tables. */
struct profile_remap {
    struct arena arena;
    uint64_t charged_bytes; /* for the arena, to the budget of `to` */
    struct profile_dictionary from;
    struct profile_tables *to;
    uint32_t *known[PROFILE_TABLES]; /* base + new index; less than base: not known yet */
    uint32_t base;
    uint32_t top;                /* above all that is known */
    uint64_t dropped_attributes; /* whose value is a reference that leads nowhere */
};

/* False when there is no memory for the index of the dictionary. */
bool profile_remap_open(struct profile_remap *remap, struct slice request,
                        struct profile_tables *to);
void profile_remap_close(struct profile_remap *remap);
/* The tables have been cleared: nothing is known any more. */
void profile_remap_forget(struct profile_remap *remap);

uint32_t profile_remap_string(struct profile_remap *remap, struct profile_index index);
/* 0: dropped, or nothing. */
uint32_t profile_remap_attribute(struct profile_remap *remap, struct profile_index index);
uint32_t profile_remap_link(struct profile_remap *remap, struct profile_index index);
uint32_t profile_remap_stack(struct profile_remap *remap, struct profile_index index);

/* Most bytes that _put_attributes writes. */
size_t profile_remap_attributes_bytes(const struct profile_remap *remap,
                                      const struct profile_indices *attributes);
/* The attributes as packed field `number`; room for them is there. Returns the end. */
uint8_t *profile_remap_put_attributes(struct profile_remap *remap,
                                      const struct profile_indices *attributes, uint32_t number,
                                      uint8_t *at);
