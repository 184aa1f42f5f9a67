/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a batch with a mixture of new bytes and bytes of another batch. What is borrowed stays
 * where it is unless it is short: then a copy costs less than a part of its own. New bytes are
 * charged to the budget, beyond its limit if need be: they finish what was already taken. One
 * owner. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/rope.h"

struct batch;
struct budget;
struct buffer;

struct batch_writer {
    struct batch *batch;
    struct budget *budget;
    struct buffer *buffer; /* where new bytes go, or NULL */
};

/* Borrows batch, which has one holder. */
void batch_writer_init(struct batch_writer *writer, struct batch *batch, struct budget *budget);
void batch_writer_fini(struct batch_writer *writer);
/* Room for `bytes` new bytes at the end of the batch; the caller fills all of it. */
uint8_t *batch_writer_room(struct batch_writer *writer, size_t bytes)
    __attribute__((returns_nonnull));
void batch_writer_copy(struct batch_writer *writer, struct slice bytes);
/* Tag and length of a nested message whose content the caller appends. */
void batch_writer_header(struct batch_writer *writer, uint32_t number, uint64_t content_bytes);
/* The next `bytes` of the rope. */
void batch_writer_borrow(struct batch_writer *writer, struct rope from, uint64_t bytes);
