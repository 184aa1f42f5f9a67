/* SPDX-License-Identifier: Apache-2.0 */
/* Small edits of a large batch: bytes inserted and removed at ascending places, and the lengths of
 * the messages around them. Bytes that do not change are shared. One owner, one thread at a time;
 * reused from batch to batch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_bytes.h"

struct batch;
struct budget;

struct splice {
    uint64_t at;      /* in the batch */
    uint64_t removed; /* bytes removed there */
    size_t insert;    /* where the new bytes are in inserts */
    size_t insert_bytes;
    bool is_header;        /* of a message */
    int64_t growth_before; /* of the list, when it was opened */
};

struct splice_list {
    struct splice *items;
    size_t count;
    size_t capacity;
    struct profile_bytes inserts;
    int64_t growth; /* bytes that all splices add, less those they remove */
};

void splice_list_init(struct splice_list *list, struct budget *budget);
void splice_list_fini(struct splice_list *list);
/* Empties the list and frees the memory that is charged to the budget. */
void splice_list_forget(struct splice_list *list);
/* What `count` more splices with `bytes` in all take from the budget while they are added. */
uint64_t splice_list_growth(const struct splice_list *list, size_t count, uint64_t bytes);
void splice_list_clear(struct splice_list *list);

/* Replaces `removed` bytes at `at` by what was appended to inserts since `begin`, their size then.
 */
void splice_add_from(struct splice_list *list, uint64_t at, uint64_t removed, size_t begin);
/* A nested message whose tag is at `begin` and whose content at `content`. Changes inside come
 * between _open and _close, which writes the new length. Returns an argument for _close. */
size_t splice_open(struct splice_list *list, uint64_t begin, uint64_t content);
void splice_close(struct splice_list *list, size_t opened, uint32_t number, uint64_t content_bytes);
/* Drops the open message and all changes since. */
void splice_rewind(struct splice_list *list, size_t opened);
/* The changed batch, with the items of the old one. New bytes are charged to budget beyond its
 * limit if need be. */
struct batch *splice_apply(const struct splice_list *list, struct batch *batch,
                           struct budget *budget);
/* An upper bound of what splice_apply takes from the budget for bytes. */
uint64_t splice_apply_bytes_max(const struct splice_list *list, const struct batch *batch);
