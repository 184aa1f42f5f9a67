/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and values in a form in which equal ones have equal bytes: maps are sorted by key, and
 * of equal keys the first value counts. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"

struct attribute_list;
struct budget;

struct identity {
    struct scratch block;
    size_t size; /* bytes written */
    struct arena arena;
    struct budget *budget; /* NULL: not charged */
    bool may_exceed;       /* the budget's limit */
    bool has_failed;       /* sticky: there was no memory */
};

void identity_init(struct identity *identity, struct budget *budget);
void identity_fini(struct identity *identity);
/* The bytes that it takes at most, while it grows, for a message's attributes: its fields with that
 * number. Lists of attributes (struct attribute_list) are included. */
uint64_t identity_needs(struct slice message, uint32_t number);
/* Empties it, and keeps some of its memory. */
void identity_clear(struct identity *identity);
/* Takes back everything from that size on. */
void identity_cut(struct identity *identity, size_t size);
struct slice identity_from(const struct identity *identity, size_t begin);

/* Two of the same bytes are equal, others are not, within 2^-64. The seed is a secret of the
 * process, so that clients cannot choose what collides. */
struct identity_digest {
    uint64_t words[2];
};
struct identity_digest identity_digest(const struct identity *identity, size_t begin,
                                       uint64_t seed);

void identity_put_raw(struct identity *identity, const void *bytes, size_t size);
void identity_put_number(struct identity *identity, uint64_t number);
/* With its length. */
void identity_put_text(struct identity *identity, struct slice text);
/* Of an encoded AnyValue. */
void identity_put_value(struct identity *identity, struct slice encoded);
/* Without the attributes that are doomed. */
void identity_put_attributes(struct identity *identity, const struct attribute_list *list);
