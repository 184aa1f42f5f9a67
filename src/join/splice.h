/* SPDX-License-Identifier: Apache-2.0 */
/* Small changes to a large batch: bytes that are put in and left out at places that ascend, and the
 * lengths of the messages around them. What is not changed is shared. One owner, one thread at a
 * time; reused from batch to batch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_bytes.h"

struct batch;
struct budget;

struct splice {
    uint64_t at;      /* in the batch */
    uint64_t removed; /* bytes left out there */
    size_t insert;    /* where the new bytes lie in inserts */
    size_t insert_bytes;
    bool is_header;        /* of a message */
    int64_t growth_before; /* of the list, when it was opened */
};

struct splice_list {
    struct splice *items;
    size_t count;
    size_t capacity;
    struct profile_bytes inserts;
    int64_t growth; /* bytes that all of them add */
};

void splice_list_init(struct splice_list *list, struct budget *budget);
void splice_list_fini(struct splice_list *list);
/* Empties the list, and frees what it is charged for. */
void splice_list_forget(struct splice_list *list);
/* What so many more splices with so many bytes take from the budget while they are noted. */
uint64_t splice_list_growth(const struct splice_list *list, size_t count, uint64_t bytes);
void splice_list_clear(struct splice_list *list);

/* Puts bytes in the place of `removed` ones. */
void splice_add(struct splice_list *list, uint64_t at, uint64_t removed, struct slice bytes);
/* The same for what has been appended to inserts since `begin`, then their size. */
void splice_add_from(struct splice_list *list, uint64_t at, uint64_t removed, size_t begin);
/* A nested message whose tag begins at `begin` and whose content at `content`: changes inside come
 * between _open and _close, which puts the new length there. Returns what _close wants. */
size_t splice_open(struct splice_list *list, uint64_t begin, uint64_t content);
void splice_close(struct splice_list *list, size_t opened, uint32_t number, uint64_t content_bytes);
/* Forgets what came since _open, and that. */
void splice_rewind(struct splice_list *list, size_t opened);
/* The changed batch; items are those of the old one. New bytes are charged to budget beyond its
 * limit if need be. */
struct batch *splice_apply(const struct splice_list *list, struct batch *batch,
                           struct budget *budget);
