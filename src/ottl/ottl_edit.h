/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a batch: bytes removed and inserted at any places, in any order, and the lengths of the
 * messages around them. Bytes that do not change are shared. One owner, one thread at a time;
 * reused from batch to batch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/scratch.h"

struct batch;
struct budget;

/* Bytes inserted before the byte at `at`, and `removed` bytes taken away from there. Edits do not
 * overlap. What only inserts stands at the beginning of a message's content or behind a field that
 * is no edited message itself: so it is clear which message grows. */
struct ottl_edit {
    uint64_t at;
    uint64_t removed;
    size_t insert; /* where the new bytes are in ottl_edits.bytes */
    size_t insert_bytes;
    uint64_t owner_at; /* the content of the message that grows; 0: the innermost one */
};

/* A message with changes inside: its length is written anew. */
struct ottl_edited_message {
    uint64_t header_at; /* its tag */
    uint64_t content_at;
    uint64_t content_bytes;
    int64_t growth; /* of the content */
    uint32_t number;
    uint32_t edits; /* of a leaf, whose growth is known: how many it has; 0: others */
};

struct ottl_edits {
    struct budget *budget;
    struct scratch edits;
    size_t count;
    struct scratch messages;
    size_t messages_count;
    struct scratch bytes;
    size_t used_bytes;
    /* Of the last batch that was edited, and of this one, in bytes. */
    size_t last_bytes[3];
    uint64_t last_batch_bytes;
    size_t likely_bytes[3];
    size_t max_bytes; /* of what edits insert */
    bool is_unsorted; /* edits */
    bool are_messages_unsorted;
    bool has_failed;      /* sticky: memory was refused */
    bool has_met_limit;   /* by max_bytes, not by the budget */
    size_t refused_bytes; /* that it needed beside what it holds; 0: none were refused */
};

void ottl_edits_init(struct ottl_edits *edits, struct budget *budget);
void ottl_edits_fini(struct ottl_edits *edits);
/* Forgets all edits and frees their memory, which is charged to the budget. */
void ottl_edits_clear(struct ottl_edits *edits);
/* Before the edits of a batch, which sets max_bytes (OTTL_GROWTH_BYTES_MAX): so much memory as its
 * like took is taken at once. */
void ottl_edits_expect(struct ottl_edits *edits, uint64_t batch_bytes);
/* Room for `bytes` behind those that edits insert so far. The caller adds to used_bytes what it
 * fills. NULL: refused. */
uint8_t *ottl_edits_grow(struct ottl_edits *edits, size_t bytes);
static inline uint8_t *ottl_edits_reserve(struct ottl_edits *edits, size_t bytes)
{
    if (bytes > edits->bytes.bytes - edits->used_bytes)
        return ottl_edits_grow(edits, bytes);
    return (uint8_t *)edits->bytes.memory + edits->used_bytes;
}
/* The same; the caller fills all of it at once. */
static inline uint8_t *ottl_edits_room(struct ottl_edits *edits, size_t bytes)
{
    uint8_t *room = ottl_edits_reserve(edits, bytes);
    if (room != NULL)
        edits->used_bytes += bytes;
    return room;
}
/* Replaces `removed` bytes by the insert_bytes last asked for with ottl_edits_room. Nothing once
 * the edits have failed: those bytes may be missing. */
void ottl_edits_add(struct ottl_edits *edits, uint64_t at, uint64_t removed, size_t insert_bytes);
/* Inserts the insert_bytes last asked for at the end of a field of the message whose content begins
 * at owner_at, also behind an edited message. */
void ottl_edits_add_behind(struct ottl_edits *edits, uint64_t at, uint64_t owner_at,
                           size_t insert_bytes);
/* Takes a whole message away. */
void ottl_edits_remove(struct ottl_edits *edits, uint64_t at, uint64_t bytes);
/* The bytes between tag and content will say the new length. Once for each message around an edit,
 * in any order. */
void ottl_edits_add_message(struct ottl_edits *edits, uint64_t header_at, uint64_t content_at,
                            uint64_t content_bytes, uint32_t number);
/* The same of a leaf, behind its edits, which are those since there were so many: no message in it
 * changes. Without edits it is none that changes. */
void ottl_edits_add_leaf(struct ottl_edits *edits, size_t count, uint64_t header_at,
                         uint64_t content_at, uint64_t content_bytes, uint32_t number);
/* The edits since there were so many are of one message: sorts them. */
void ottl_edits_sort_last(struct ottl_edits *edits, size_t count);
/* The same. Most messages have one, behind those of the message before. */
static inline void ottl_edits_settle(struct ottl_edits *edits, size_t count)
{
    const struct ottl_edit *list = edits->edits.memory;
    if (edits->count != count + 1 || (count > 0 && list[count - 1].at >= list[count].at))
        ottl_edits_sort_last(edits, count);
}
/* What they need at least: the memory that they fill, and what was refused. */
size_t ottl_edits_needed(const struct ottl_edits *edits);
/* Forgets the edits and messages since there were so many: of what is removed whole. */
void ottl_edits_cut(struct ottl_edits *edits, size_t count, size_t messages_count);
/* The changed batch, with the items of the old one. NULL: refused. */
struct batch *ottl_edits_apply(struct ottl_edits *edits, struct batch *batch,
                               struct budget *budget);
