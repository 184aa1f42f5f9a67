/* SPDX-License-Identifier: Apache-2.0 */
/* Counted bytes from the network. Filled by its creator, immutable once a second holder exists.
 * Its memory is charged to a budget from creation to the last unref. Ref and unref on any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/slice.h"

struct buffer {
    struct budget *budget; /* NULL: not charged */
    size_t capacity; /* bytes that data can hold; capacity + sizeof(struct buffer) are charged */
    size_t charged_more; /* besides that, by buffer_try_charge */
    size_t size;         /* bytes that it holds, advanced by the creator */
    _Atomic unsigned refs;
    uint8_t data[];
};

/* NULL when the budget or the allocator refuses. budget may be NULL. */
struct buffer *buffer_try_create(struct budget *budget, size_t capacity)
    __attribute__((warn_unused_result));
/* The same, where the budget's margin may be used (budget_try_take_margin). */
struct buffer *buffer_try_create_margin(struct budget *budget, size_t capacity)
    __attribute__((warn_unused_result));
/* Never refused: for the few bytes that finish what was already taken, beyond the budget's limit if
 * need be. */
struct buffer *buffer_create(struct budget *budget, size_t capacity)
    __attribute__((returns_nonnull));
/* The same buffer with more room, or NULL when refused, the old one then being as it was. The
 * caller is its only holder. */
struct buffer *buffer_try_grow(struct buffer *buffer, size_t capacity)
    __attribute__((warn_unused_result));
/* The same buffer with no more room than it fills; the rest of the charge is returned. The caller
 * is its only holder. */
struct buffer *buffer_shrink(struct buffer *buffer) __attribute__((warn_unused_result));
/* Charges more for what its bytes will cost those who work with them, up to the last unref; enum
 * budget_answer. No other thread holds it. */
enum budget_answer buffer_try_charge(struct buffer *buffer, size_t more)
    __attribute__((warn_unused_result));
/* What is charged for it. */
size_t buffer_charge(const struct buffer *buffer);
/* One more holder; each gives its reference back with buffer_unref. Returns buffer. */
struct buffer *buffer_ref(struct buffer *buffer);
/* The last one frees it and returns its charge. NULL is tolerated. */
void buffer_unref(struct buffer *buffer);

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return slice_of(buffer->data, buffer->size);
}
