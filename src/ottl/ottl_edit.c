/* SPDX-License-Identifier: Apache-2.0 */
/* Edits are noted as statements find them and sorted at the end, since a Resource may change after
 * its spans have. Two walks over the sorted messages then compute their growth, the inner ones
 * first, and write. Runs on the owner's thread. */
#include "src/ottl/ottl_edit.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/otlp/batch_writer.h"
#include "src/otlp/rope.h"
#include "src/ottl/ottl_limits.h"

enum { MESSAGE_DEPTH_MAX = 16 };

enum { EDITS, MESSAGES, BYTES, KINDS }; /* of memory */

enum { SORTED_BYTES_MAX = 64 }; /* of an edit or a message */

void ottl_edits_init(struct ottl_edits *edits, struct budget *budget)
{
    *edits = (struct ottl_edits){.budget = budget, .max_bytes = OTTL_GROWTH_BYTES_MAX};
}

void ottl_edits_fini(struct ottl_edits *edits)
{
    scratch_fini(&edits->edits, edits->budget);
    scratch_fini(&edits->messages, edits->budget);
    scratch_fini(&edits->bytes, edits->budget);
}

void ottl_edits_expect(struct ottl_edits *edits, uint64_t batch_bytes)
{
    for (unsigned i = 0; i < KINDS; i++) {
        const double part =
            edits->last_batch_bytes > 0 ? (double)batch_bytes / (double)edits->last_batch_bytes : 0;
        const double likely = (double)edits->last_bytes[i] * part * 9 / 8;
        edits->likely_bytes[i] = (size_t)(likely < (double)batch_bytes ? likely : 0);
    }
    edits->last_batch_bytes = batch_bytes;
    edits->max_bytes =
        batch_bytes < (OTTL_GROWTH_BYTES_MAX - OTTL_GROWTH_BYTES_MIN) / OTTL_GROWTH_FACTOR_MAX
            ? OTTL_GROWTH_BYTES_MIN + OTTL_GROWTH_FACTOR_MAX * (size_t)batch_bytes
            : OTTL_GROWTH_BYTES_MAX;
}

void ottl_edits_clear(struct ottl_edits *edits)
{
    edits->last_bytes[EDITS] = edits->count * sizeof(struct ottl_edit);
    edits->last_bytes[MESSAGES] = edits->messages_count * sizeof(struct ottl_edited_message);
    edits->last_bytes[BYTES] = edits->used_bytes;
    ottl_edits_fini(edits);
    edits->count = 0;
    edits->messages_count = 0;
    edits->used_bytes = 0;
    edits->is_unsorted = false;
    edits->are_messages_unsorted = false;
    edits->has_failed = edits->has_met_limit = false;
    edits->refused_bytes = 0;
}

/* What a list takes that grew by doubling: less than it has when it got what its like took. */
static size_t needed_bytes(const struct scratch *list, size_t used_bytes)
{
    const struct scratch none = {.bytes = 0};
    const size_t doubled = used_bytes > 0 ? scratch_wanted(&none, used_bytes) : 0;
    return doubled < list->bytes ? doubled : list->bytes;
}

size_t ottl_edits_needed(const struct ottl_edits *edits)
{
    return needed_bytes(&edits->edits, edits->count * sizeof(struct ottl_edit)) +
           needed_bytes(&edits->messages,
                        edits->messages_count * sizeof(struct ottl_edited_message)) +
           needed_bytes(&edits->bytes, edits->used_bytes) + edits->refused_bytes;
}

/* Always NULL. */
static void *refuse(struct ottl_edits *edits, size_t bytes)
{
    edits->has_failed = true;
    edits->refused_bytes = bytes;
    return NULL;
}

uint8_t *ottl_edits_grow(struct ottl_edits *edits, size_t bytes)
{
    const size_t needed = edits->used_bytes + bytes;
    if (bytes > edits->max_bytes || needed > edits->max_bytes) {
        edits->has_met_limit = true;
        return refuse(edits, bytes);
    }
    uint8_t *room =
        scratch_reserve(&edits->bytes, edits->budget, needed, edits->likely_bytes[BYTES]);
    return room != NULL ? room + edits->used_bytes
                        : refuse(edits, scratch_wanted(&edits->bytes, needed));
}

/* Room for another item of a list, behind count; NULL: refused. */
static __attribute__((noinline)) void *grow_list(struct ottl_edits *edits, unsigned kind,
                                                 size_t count, size_t item_bytes)
{
    struct scratch *list = kind == EDITS ? &edits->edits : &edits->messages;
    const size_t needed = (count + 1) * item_bytes;
    uint8_t *memory = scratch_reserve(list, edits->budget, needed, edits->likely_bytes[kind]);
    return memory != NULL ? memory + count * item_bytes
                          : refuse(edits, scratch_wanted(list, needed));
}

static inline struct ottl_edit *new_edit(struct ottl_edits *edits)
{
    struct ottl_edit *list = edits->edits.memory;
    const size_t count = edits->count;
    struct ottl_edit *edit = (count + 1) * sizeof(*list) <= edits->edits.bytes
                                 ? &list[count]
                                 : grow_list(edits, EDITS, count, sizeof(*list));
    if (edit != NULL)
        edits->count = count + 1;
    return edit;
}

void ottl_edits_add(struct ottl_edits *edits, uint64_t at, uint64_t removed, size_t insert_bytes)
{
    if (edits->has_failed)
        return;
    assert(insert_bytes <= edits->used_bytes);
    struct ottl_edit *edit = new_edit(edits);
    if (edit != NULL)
        *edit = (struct ottl_edit){.at = at,
                                   .removed = removed,
                                   .insert = edits->used_bytes - insert_bytes,
                                   .insert_bytes = insert_bytes};
}

void ottl_edits_add_behind(struct ottl_edits *edits, uint64_t at, uint64_t owner_at,
                           size_t insert_bytes)
{
    ottl_edits_add(edits, at, 0, insert_bytes);
    if (!edits->has_failed)
        ((struct ottl_edit *)edits->edits.memory)[edits->count - 1].owner_at = owner_at;
    edits->is_unsorted = true;
}

void ottl_edits_remove(struct ottl_edits *edits, uint64_t at, uint64_t bytes)
{
    const struct ottl_edit *list = edits->edits.memory;
    if (edits->count > 0 && at < list[edits->count - 1].at)
        edits->is_unsorted = true;
    ottl_edits_add(edits, at, bytes, 0);
}

static inline void add_message(struct ottl_edits *edits, struct ottl_edited_message message)
{
    struct ottl_edited_message *list = edits->messages.memory;
    const size_t count = edits->messages_count;
    struct ottl_edited_message *added = (count + 1) * sizeof(*list) <= edits->messages.bytes
                                            ? &list[count]
                                            : grow_list(edits, MESSAGES, count, sizeof(*list));
    if (added == NULL)
        return;
    edits->messages_count = count + 1;
    *added = message;
    if (count > 0 && message.header_at < added[-1].header_at)
        edits->are_messages_unsorted = true;
}

void ottl_edits_add_message(struct ottl_edits *edits, uint64_t header_at, uint64_t content_at,
                            uint64_t content_bytes, uint32_t number)
{
    add_message(edits, (struct ottl_edited_message){.header_at = header_at,
                                                    .content_at = content_at,
                                                    .content_bytes = content_bytes,
                                                    .number = number});
}

static int64_t edit_growth(const struct ottl_edit *edit)
{
    return (int64_t)edit->insert_bytes - (int64_t)edit->removed;
}

void ottl_edits_add_leaf(struct ottl_edits *edits, size_t count, uint64_t header_at,
                         uint64_t content_at, uint64_t content_bytes, uint32_t number)
{
    const struct ottl_edit *list = edits->edits.memory;
    int64_t growth = 0;
    for (size_t i = count; i < edits->count; i++)
        growth += edit_growth(&list[i]);
    if (edits->count > count)
        add_message(edits, (struct ottl_edited_message){.header_at = header_at,
                                                        .content_at = content_at,
                                                        .content_bytes = content_bytes,
                                                        .growth = growth,
                                                        .number = number,
                                                        .edits = (uint32_t)(edits->count - count)});
}

void ottl_edits_cut(struct ottl_edits *edits, size_t count, size_t messages_count)
{
    assert(count <= edits->count && messages_count <= edits->messages_count);
    edits->count = count;
    edits->messages_count = messages_count;
}

/* Edits at one place keep their order, since that is the order of what they insert. */
static int compare_edits(const void *left, const void *right)
{
    const struct ottl_edit *a = left;
    const struct ottl_edit *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->removed > 0 || b->removed > 0) /* what removes comes last: it moves on */
        return (a->removed > 0) - (b->removed > 0);
    return (a->insert > b->insert) - (a->insert < b->insert);
}

/* Moves the item of a heap down to its place below `at`. */
static void sift_down(uint8_t *items, size_t size, size_t at, size_t count,
                      int (*compare)(const void *left, const void *right))
{
    uint8_t item[SORTED_BYTES_MAX];
    memcpy(item, items + at * size, size);
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(items + child * size, items + (child + 1) * size) < 0)
            child++;
        if (compare(item, items + child * size) >= 0)
            break;
        memcpy(items + at * size, items + child * size, size);
    }
    memcpy(items + at * size, item, size);
}

/* By a heap, without other memory: qsort takes a copy that no budget is charged with. */
static void sort_in_place(void *memory, size_t count, size_t size,
                          int (*compare)(const void *left, const void *right))
{
    uint8_t *items = memory;
    uint8_t item[SORTED_BYTES_MAX];
    assert(size <= SORTED_BYTES_MAX);
    for (size_t i = count / 2; i-- > 0;)
        sift_down(items, size, i, count, compare);
    for (size_t i = count; i-- > 1;) {
        memcpy(item, items, size);
        memcpy(items, items + i * size, size);
        memcpy(items + i * size, item, size);
        sift_down(items, size, 0, i, compare);
    }
}

/* Moves each edit to its place among those before it: few or none in most messages. False: they
 * have too far to go, and are in any order. */
static bool insert_sorted(struct ottl_edit *list, size_t count)
{
    enum { MOVES_FACTOR = 8 };
    size_t moves = MOVES_FACTOR * count;
    for (size_t i = 1; i < count && moves > 0; i++) {
        struct ottl_edit edit = list[i];
        size_t to = i;
        for (; to > 0 && moves > 0 && compare_edits(&list[to - 1], &edit) > 0; to--, moves--)
            list[to] = list[to - 1];
        list[to] = edit;
    }
    return moves > 0;
}

void ottl_edits_sort_last(struct ottl_edits *edits, size_t count)
{
    struct ottl_edit *list = edits->edits.memory;
    if (edits->count == count)
        return;
    if (!insert_sorted(list + count, edits->count - count))
        sort_in_place(list + count, edits->count - count, sizeof(*list), compare_edits);
    if (count > 0)
        edits->is_unsorted =
            edits->is_unsorted || compare_edits(&list[count - 1], &list[count]) > 0;
}

static int compare_messages(const void *left, const void *right)
{
    const struct ottl_edited_message *a = left;
    const struct ottl_edited_message *b = right;
    return (a->header_at > b->header_at) - (a->header_at < b->header_at);
}

/* Most are short. */
static inline size_t header_bytes(uint32_t number, uint64_t content_bytes)
{
    enum { SHORT = 0x80, SHORT_TAGS = 16 };
    if (number < SHORT_TAGS && content_bytes < SHORT * SHORT)
        return 2 + (content_bytes >= SHORT);
    return wire_varint_size(wire_tag(number, WIRE_BYTES)) + wire_varint_size(content_bytes);
}

/* Of a message whose growth is known, with its header. */
static inline int64_t whole_growth(const struct ottl_edited_message *message)
{
    const uint64_t content = message->content_bytes + (uint64_t)message->growth;
    return message->growth + (int64_t)header_bytes(message->number, content) -
           (int64_t)(message->content_at - message->header_at);
}

/* Closes the messages that end before `at`: each tells its growth to the one around it. */
static inline size_t close_messages(struct ottl_edited_message *messages, const size_t *open,
                                    size_t depth, uint64_t at, int64_t *total)
{
    while (depth > 0) {
        const struct ottl_edited_message *message = &messages[open[depth - 1]];
        if (message->content_at + message->content_bytes > at)
            break;
        depth--;
        *(depth > 0 ? &messages[open[depth - 1]].growth : total) += whole_growth(message);
    }
    return depth;
}

/* An edit at a message's end belongs to it, as one inserts there; the owner of an edit is the
 * innermost open message that has not ended before it. */
static int64_t measure(struct ottl_edits *edits)
{
    struct ottl_edited_message *messages = edits->messages.memory;
    const struct ottl_edit *list = edits->edits.memory;
    size_t open[MESSAGE_DEPTH_MAX];
    size_t depth = 0;
    size_t next = 0;
    int64_t total = 0;
    for (size_t i = 0; i < edits->count || next < edits->messages_count;) {
        if (next < edits->messages_count &&
            (i == edits->count || messages[next].content_at <= list[i].at)) {
            const struct ottl_edited_message *message = &messages[next++];
            depth = close_messages(messages, open, depth, message->header_at, &total);
            if (message->edits > 0) {
                *(depth > 0 ? &messages[open[depth - 1]].growth : &total) += whole_growth(message);
                i += message->edits;
                assert(list[i - 1].at <= message->content_at + message->content_bytes);
                continue;
            }
            assert(depth < MESSAGE_DEPTH_MAX);
            open[depth++] = next - 1;
            continue;
        }
        const struct ottl_edit *edit = &list[i++];
        /* Insertions at the very end stay inside. */
        depth =
            close_messages(messages, open, depth,
                           edit->removed > 0 || edit->at == 0 ? edit->at : edit->at - 1, &total);
        size_t owner = depth;
        while (edit->owner_at > 0 && owner > 0 &&
               messages[open[owner - 1]].content_at != edit->owner_at)
            owner--;
        assert(edit->owner_at == 0 || owner > 0);
        *(owner > 0 ? &messages[open[owner - 1]].growth : &total) += edit_growth(edit);
    }
    close_messages(messages, open, depth, UINT64_MAX, &total);
    return total;
}

/* A rope with what is left of the part that it is in, since most edits leave it there. */
struct cursor {
    struct rope rope; /* where the part was entered */
    const uint8_t *bytes;
    uint64_t at; /* from the start of the batch */
    uint64_t left;
};

static void enter_part(struct cursor *cursor, struct rope rope)
{
    const struct slice left = rope_contiguous(&rope, rope.batch->bytes - rope.at);
    *cursor = (struct cursor){.rope = rope, .bytes = left.data, .at = rope.at, .left = left.size};
}

/* Goes on behind the part. */
static __attribute__((noinline)) void skip_far(struct cursor *cursor, uint64_t bytes)
{
    rope_skip(&cursor->rope, cursor->at + bytes - cursor->rope.at);
    enter_part(cursor, cursor->rope);
}

static inline void skip(struct cursor *cursor, uint64_t bytes)
{
    if (bytes >= cursor->left) {
        skip_far(cursor, bytes);
        return;
    }
    cursor->bytes += bytes;
    cursor->at += bytes;
    cursor->left -= bytes;
}

/* Also from several parts. */
static __attribute__((noinline)) void borrow_far(struct batch_writer *writer,
                                                 const struct cursor *cursor, uint64_t bytes)
{
    struct rope rope = cursor->rope;
    rope_skip(&rope, cursor->at - rope.at);
    batch_writer_borrow(writer, rope, bytes);
}

static inline void borrow_up_to(struct batch_writer *writer, struct cursor *cursor, uint64_t at)
{
    assert(at >= cursor->at);
    const uint64_t bytes = at - cursor->at;
    const struct slice piece = slice_of(cursor->bytes, (size_t)bytes);
    if (bytes == 0)
        return;
    if (bytes > cursor->left)
        borrow_far(writer, cursor, bytes);
    else if (bytes < BATCH_WRITER_BORROWED_MIN)
        batch_writer_copy(writer, piece);
    else
        batch_writer_lend(writer, cursor->rope.batch->parts[cursor->rope.part].owner, piece);
    skip(cursor, bytes);
}

/* What is copied joins what was copied before; each borrowed part has some bytes. */
static size_t likely_parts(const struct ottl_edits *edits, const struct batch *batch)
{
    size_t most = 2 * (size_t)(batch->bytes / BATCH_WRITER_BORROWED_MIN);
    size_t places = edits->count + edits->messages_count;
    return batch->parts_count + 4 + (places < most ? places : most);
}

/* In the order of the batch. The edits of a leaf stay together: nothing else changes in it. */
static void sort(struct ottl_edits *edits)
{
    if (edits->is_unsorted)
        sort_in_place(edits->edits.memory, edits->count, sizeof(struct ottl_edit), compare_edits);
    if (edits->are_messages_unsorted)
        sort_in_place(edits->messages.memory, edits->messages_count,
                      sizeof(struct ottl_edited_message), compare_messages);
}

/* Bytes that the changed batch gets at most: those inserted, and those between edits that are too
 * few to be borrowed. */
static size_t written_bytes(const struct ottl_edits *edits, const struct batch *batch)
{
    const uint64_t between =
        (uint64_t)(edits->count + edits->messages_count) * BATCH_WRITER_BORROWED_MIN;
    return edits->used_bytes + (size_t)(between < batch->bytes ? between : batch->bytes);
}

struct batch *ottl_edits_apply(struct ottl_edits *edits, struct batch *batch, struct budget *budget)
{
    const uint8_t *bytes = edits->bytes.memory;
    edits->has_met_limit = edits->has_met_limit || edits->used_bytes > edits->max_bytes;
    if (edits->has_failed || edits->has_met_limit)
        return NULL;
    if (!budget_has_room(budget, written_bytes(edits, batch)))
        return refuse(edits, written_bytes(edits, batch));
    sort(edits);
    const struct ottl_edited_message *messages = edits->messages.memory;
    const struct ottl_edit *list = edits->edits.memory;
    const size_t count = edits->count;
    const size_t messages_count = edits->messages_count;
    int64_t growth = measure(edits);
    struct batch *edited = batch_create_like(batch, likely_parts(edits, batch));
    struct batch_writer writer;
    struct cursor cursor;
    enter_part(&cursor, rope_of(batch));
    batch_writer_init(&writer, edited, budget);
    size_t next = 0;
    for (size_t i = 0; i < count || next < messages_count;) {
        size_t end = i + 1;
        if (next < messages_count && (i == count || messages[next].header_at < list[i].at)) {
            const struct ottl_edited_message *message = &messages[next++];
            borrow_up_to(&writer, &cursor, message->header_at);
            skip(&cursor, message->content_at - message->header_at);
            batch_writer_header(&writer, message->number,
                                message->content_bytes + (uint64_t)message->growth);
            end = i + message->edits;
        }
        for (; i < end; i++) {
            borrow_up_to(&writer, &cursor, list[i].at);
            skip(&cursor, list[i].removed);
            if (list[i].insert_bytes > 0)
                batch_writer_copy(&writer, slice_of(bytes + list[i].insert, list[i].insert_bytes));
        }
    }
    borrow_up_to(&writer, &cursor, batch->bytes);
    batch_writer_fini(&writer);
    edited->items = batch->items;
    assert((int64_t)edited->bytes == (int64_t)batch->bytes + growth);
    return edited;
}
