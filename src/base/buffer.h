/* SPDX-License-Identifier: Apache-2.0 */
/* Reference-counted bytes from the network. Filled by the creator, immutable once a second holder
 * exists. The memory is charged to a budget from creation to the last unref. Ref and unref on any
 * thread. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/slice.h"

struct buffer {
    struct budget *budget; /* NULL: not charged */
    size_t capacity; /* bytes that data can hold; capacity + sizeof(struct buffer) are charged */
    size_t charged_more; /* added by buffer_try_charge */
    size_t size;         /* bytes that it holds, advanced by the creator */
    _Atomic unsigned refs;
    uint8_t data[];
};

/* NULL when the budget or the allocator refuses. budget may be NULL. */
struct buffer *buffer_try_create(struct budget *budget, size_t capacity)
    __attribute__((warn_unused_result));
/* The same, but may use the budget's margin (budget_try_take_margin). */
struct buffer *buffer_try_create_margin(struct budget *budget, size_t capacity)
    __attribute__((warn_unused_result));
/* Never refused: for the few bytes that finish work already charged, beyond the budget's limit if
 * need be. */
struct buffer *buffer_create(struct budget *budget, size_t capacity)
    __attribute__((returns_nonnull));
/* Moves the buffer to more room. NULL: refused, the old one is as it was. The caller is the only
 * holder. */
struct buffer *buffer_try_grow(struct buffer *buffer, size_t capacity)
    __attribute__((warn_unused_result));
/* Shrinks the buffer to what it holds and returns the rest of the charge. The caller is the only
 * holder. */
struct buffer *buffer_shrink(struct buffer *buffer) __attribute__((warn_unused_result));
/* Charges more, until the last unref, for what processing the bytes will cost; returns an enum
 * budget_result. No other thread holds the buffer. */
enum budget_result buffer_try_charge(struct buffer *buffer, size_t more)
    __attribute__((warn_unused_result));
/* The bytes charged for it. */
size_t buffer_charge(const struct buffer *buffer);
/* Adds a holder; each calls buffer_unref. Returns buffer. */
struct buffer *buffer_ref(struct buffer *buffer);
/* Adds, and releases, so many holders at once. */
void buffer_ref_many(struct buffer *buffer, unsigned holders);
void buffer_unref_many(struct buffer *buffer, unsigned holders);
/* The last unref frees the buffer and returns its charge. NULL is a no-op. */
void buffer_unref(struct buffer *buffer);

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return slice_of(buffer->data, buffer->size);
}
