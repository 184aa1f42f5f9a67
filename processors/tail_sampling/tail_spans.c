/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs are counted buffers, so that a message that goes on refers to their bytes. A fragment is a
 * head and pieces: a word with the size of the bytes that follow, or, marked, of the shared bytes
 * whose place follows. Where nothing is shared there is one piece, and no word. Runs on its lane.
 */
#include "processors/tail_sampling/tail_spans.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

enum {
    SLAB_BYTES = 64 * 1024 - sizeof(struct buffer), /* allocates 64 KiB */
    SLABS_FIRST = 16,
    PIECE_BYTES = sizeof(uint32_t),
    SHARED_BYTES = sizeof(uint32_t) + sizeof(struct tail_place),
};
#define SHARED_MARK (UINT32_C(1) << 31) /* of a piece */
#define PLAIN_MARK  (UINT32_C(1) << 31) /* of a body: it is the bytes of one piece */

struct head {
    struct tail_place next;
    uint32_t body_bytes;
    uint32_t items;
};

void tail_slabs_init(struct tail_slabs *slabs, struct budget *budget, bool has_requests)
{
    *slabs = (struct tail_slabs){.budget = budget, .has_requests = has_requests, .count = 1};
}

void tail_slabs_fini(struct tail_slabs *slabs)
{
    tail_slabs_rest(slabs);
    assert(slabs->message.batch == NULL);
    for (uint32_t i = 1; i < slabs->count; i++)
        assert(slabs->items[i].buffer == NULL);
    if (slabs->capacity == 0)
        return;
    budget_return(slabs->budget, slabs->capacity * sizeof(slabs->items[0]));
    mem_free(slabs->items);
    *slabs = (struct tail_slabs){.budget = slabs->budget};
}

static void take_references(struct tail_message *message)
{
    for (unsigned i = 0; i < 2; i++) {
        if (message->lacking[i].parts > 0)
            buffer_ref_many(message->lacking[i].owner, message->lacking[i].parts);
        message->lacking[i].owner = NULL;
        message->lacking[i].parts = 0;
    }
}

static void __attribute__((noinline)) free_slab(struct tail_slabs *slabs, uint32_t place)
{
    struct tail_slab *slab = &slabs->items[place];
    take_references(&slabs->message);
    buffer_unref(slab->buffer);
    slab->buffer = NULL;
    slab->next_free = slabs->free;
    slabs->free = place;
}

static inline void release(struct tail_slabs *slabs, uint32_t place)
{
    struct tail_slab *slab = &slabs->items[place];
    assert(slab->uses > 0);
    if (--slab->uses == 0)
        free_slab(slabs, place);
}

void tail_slabs_rest(struct tail_slabs *slabs)
{
    if (slabs->current == 0 || slabs->items[slabs->current].uses > 1)
        return;
    release(slabs, slabs->current);
    slabs->current = 0;
}

static uint32_t add_slab(struct tail_slabs *slabs, size_t bytes)
{
    uint32_t place = slabs->free;
    if (place != 0) {
        slabs->free = slabs->items[place].next_free;
    } else {
        if (slabs->count >= slabs->capacity) {
            uint32_t before = slabs->capacity;
            slabs->capacity = before > 0 ? 2 * before : SLABS_FIRST;
            budget_take(slabs->budget, (slabs->capacity - before) * sizeof(slabs->items[0]));
            slabs->items = mem_resize(slabs->items, slabs->capacity * sizeof(slabs->items[0]));
        }
        place = slabs->count++;
    }
    slabs->items[place] =
        (struct tail_slab){.buffer = buffer_create(slabs->budget, bytes), .uses = 1};
    return place;
}

/* Room for so many bytes, for one more use. */
static struct tail_place make_room(struct tail_slabs *slabs, size_t bytes)
{
    struct buffer *buffer = slabs->current != 0 ? slabs->items[slabs->current].buffer : NULL;
    uint32_t place = slabs->current;
    assert(bytes < UINT32_MAX);
    if (buffer == NULL || bytes > buffer->capacity - buffer->size) {
        if (bytes > SLAB_BYTES / 4) {
            /* One of its own, which does not end the current one. */
            place = add_slab(slabs, bytes);
            buffer = slabs->items[place].buffer;
            buffer->size = bytes;
            return (struct tail_place){.slab = place, .offset = 0};
        }
        if (slabs->current != 0)
            release(slabs, slabs->current);
        place = slabs->current = add_slab(slabs, SLAB_BYTES);
        buffer = slabs->items[place].buffer;
    }
    slabs->items[place].uses++;
    uint32_t offset = (uint32_t)buffer->size;
    buffer->size += bytes;
    return (struct tail_place){.slab = place, .offset = offset};
}

static uint8_t *bytes_at(const struct tail_slabs *slabs, struct tail_place place)
{
    assert(place.slab > 0 && place.slab < slabs->count);
    return slabs->items[place.slab].buffer->data + place.offset;
}

struct tail_place tail_slabs_share(struct tail_slabs *slabs, struct slice bytes)
{
    struct tail_place place = make_room(slabs, bytes.size);
    memcpy(bytes_at(slabs, place), bytes.data, bytes.size);
    return place;
}

void tail_slabs_unshare(struct tail_slabs *slabs, struct tail_place place)
{
    release(slabs, place.slab);
}

static struct head read_head(const struct tail_slabs *slabs, struct tail_place place)
{
    struct head head;
    memcpy(&head, bytes_at(slabs, place), sizeof(head));
    return head;
}

static void write_head(struct tail_slabs *slabs, struct tail_place place, const struct head *head)
{
    memcpy(bytes_at(slabs, place), head, sizeof(*head));
}

void tail_spans_expect(const struct tail_slabs *slabs, const struct tail_spans *spans)
{
    enum { LINE_BYTES = 64 };
    if (tail_spans_are_none(spans))
        return;
    const uint8_t *at = bytes_at(slabs, spans->last);
    __builtin_prefetch(at);
    __builtin_prefetch(at + LINE_BYTES); /* sizes of pieces may be there */
}

/* Each shared piece ends bytes of the fragment's own, and others begin behind it. */
static size_t body_bytes(size_t bytes, size_t shared_pieces)
{
    if (shared_pieces == 0)
        return bytes;
    return bytes + PIECE_BYTES + shared_pieces * (SHARED_BYTES + PIECE_BYTES);
}

struct tail_writer tail_spans_add(struct tail_slabs *slabs, struct tail_spans *spans, size_t bytes,
                                  size_t shared_pieces, uint32_t items,
                                  struct tail_request *request)
{
    const bool is_plain = shared_pieces == 0;
    const size_t body = body_bytes(bytes, shared_pieces);
    const size_t request_bytes = slabs->has_requests ? sizeof(struct tail_request *) : 0;
    assert(body < PLAIN_MARK);
    struct tail_place place = make_room(slabs, sizeof(struct head) + request_bytes + body);
    struct head head = {
        .next = place, .body_bytes = (uint32_t)body | (is_plain ? PLAIN_MARK : 0), .items = items};
    if (!tail_spans_are_none(spans)) {
        struct head last = read_head(slabs, spans->last);
        head.next = last.next;
        last.next = place;
        write_head(slabs, spans->last, &last);
    }
    spans->last = place;
    uint8_t *at = bytes_at(slabs, place);
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    if (slabs->has_requests) {
        memcpy(at, &request, sizeof(struct tail_request *));
        at += sizeof(struct tail_request *);
    }
    return (struct tail_writer){.at = at + (is_plain ? 0 : PIECE_BYTES),
                                .run = is_plain ? NULL : at};
}

void tail_write_end(struct tail_writer *writer)
{
    if (writer->run == NULL)
        return;
    const uint32_t word = (uint32_t)(writer->at - writer->run - PIECE_BYTES);
    memcpy(writer->run, &word, sizeof(word));
}

void tail_write_shared(struct tail_slabs *slabs, struct tail_writer *writer,
                       struct tail_place place, size_t size)
{
    const uint32_t word = (uint32_t)size | SHARED_MARK;
    assert(writer->run != NULL);
    tail_write_end(writer);
    memcpy(writer->at, &word, sizeof(word));
    memcpy(writer->at + sizeof(word), &place, sizeof(place));
    writer->run = writer->at + SHARED_BYTES;
    writer->at = writer->run + PIECE_BYTES;
    slabs->items[place.slab].uses++;
}

/* A piece of a body that is not plain. */
struct tail_piece {
    struct slice bytes;
    struct tail_place shared; /* and where they are; or slab 0 */
};

static inline bool next_piece(struct slice *body, struct tail_piece *ret_piece)
{
    uint32_t word;
    if (body->size == 0)
        return false;
    memcpy(&word, body->data, sizeof(word));
    size_t used = PIECE_BYTES;
    size_t size = word & ~SHARED_MARK;
    *ret_piece = (struct tail_piece){.bytes = slice_of(NULL, size)};
    if ((word & SHARED_MARK) != 0) {
        memcpy(&ret_piece->shared, body->data + sizeof(word), sizeof(ret_piece->shared));
        used = SHARED_BYTES;
    } else {
        ret_piece->bytes.data = body->data + sizeof(word);
        used += size;
    }
    assert(used <= body->size);
    *body = slice_of(body->data + used, body->size - used);
    return true;
}

static inline struct tail_fragment fragment_at(const struct tail_slabs *slabs,
                                               struct tail_place place, struct tail_place *ret_next)
{
    struct head head = read_head(slabs, place);
    const uint8_t *at = bytes_at(slabs, place) + sizeof(head);
    struct tail_fragment fragment = {.slab = place.slab, .items = head.items};
    if (slabs->has_requests) {
        memcpy(&fragment.request, at, sizeof(struct tail_request *));
        at += sizeof(struct tail_request *);
    }
    fragment.is_plain = (head.body_bytes & PLAIN_MARK) != 0;
    fragment.body = slice_of(at, head.body_bytes & ~PLAIN_MARK);
    *ret_next = head.next;
    return fragment;
}

/* Goes from fragment to fragment, in their order. */
struct walk {
    struct tail_place next; /* no slab: there is none */
    struct tail_place last;
};

static inline struct walk walk_of(const struct tail_slabs *slabs, const struct tail_spans *spans)
{
    struct walk walk = {.last = spans->last};
    if (!tail_spans_are_none(spans))
        walk.next = read_head(slabs, walk.last).next;
    return walk;
}

/* A fragment may be released once the next was asked for. */
static inline bool walk_on(const struct tail_slabs *slabs, struct walk *walk,
                           struct tail_fragment *ret_fragment)
{
    const struct tail_place at = walk->next;
    if (at.slab == 0)
        return false;
    *ret_fragment = fragment_at(slabs, at, &walk->next);
    if (at.slab == walk->last.slab && at.offset == walk->last.offset)
        walk->next.slab = 0;
    return true;
}

void tail_spans_each(const struct tail_slabs *slabs, const struct tail_spans *spans,
                     void (*fn)(const struct tail_slabs *slabs,
                                const struct tail_fragment *fragment, void *arg),
                     void *arg)
{
    struct walk walk = walk_of(slabs, spans);
    struct tail_fragment fragment;
    while (walk_on(slabs, &walk, &fragment))
        fn(slabs, &fragment, arg);
}

/* Makes the first fragments, up to the one at `last`, a list of their own. `next` follows it. */
static struct tail_spans cut(struct tail_slabs *slabs, struct tail_spans *spans,
                             struct tail_place last, struct tail_place next)
{
    const struct tail_spans first = {.last = last};
    struct head end = read_head(slabs, spans->last);
    struct head head = read_head(slabs, last);
    head.next = end.next;
    end.next = next;
    write_head(slabs, last, &head);
    write_head(slabs, spans->last, &end);
    return first;
}

size_t tail_fragment_parts(const struct tail_fragment *fragment)
{
    if (fragment->is_plain)
        return 1;
    struct slice body = fragment->body;
    struct tail_piece piece;
    size_t parts = 0;
    while (next_piece(&body, &piece))
        parts++;
    return parts;
}

static uint64_t fragment_bytes(const struct tail_fragment *fragment)
{
    if (fragment->is_plain)
        return fragment->body.size;
    struct slice body = fragment->body;
    struct tail_piece piece;
    uint64_t bytes = 0;
    while (next_piece(&body, &piece))
        bytes += piece.bytes.size;
    return bytes;
}

struct tail_spans tail_spans_cut(struct tail_slabs *slabs, struct tail_spans *spans)
{
    struct walk walk = walk_of(slabs, spans);
    struct tail_fragment fragment;
    struct tail_place last = walk.next;
    size_t parts = 0;
    uint64_t bytes = 0;
    while (parts < TAIL_MESSAGE_PARTS && bytes < TAIL_MESSAGE_BYTES) {
        last = walk.next;
        if (!walk_on(slabs, &walk, &fragment))
            break;
        parts += tail_fragment_parts(&fragment);
        bytes += fragment_bytes(&fragment);
    }
    if (walk.next.slab != 0)
        return cut(slabs, spans, last, walk.next);
    const struct tail_spans all = *spans;
    spans->last = (struct tail_place){.slab = 0};
    return all;
}

void tail_fragment_append(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                          struct batch *batch)
{
    struct buffer *const own = slabs->items[fragment->slab].buffer;
    if (fragment->is_plain) {
        batch_append(batch, own, fragment->body);
        return;
    }
    struct slice body = fragment->body;
    struct tail_piece piece;
    unsigned parts = 0; /* of it */
    while (next_piece(&body, &piece)) {
        if (piece.shared.slab == 0) {
            parts += batch_append_held(batch, own, piece.bytes);
            continue;
        }
        struct buffer *owner = slabs->items[piece.shared.slab].buffer;
        piece.bytes.data = owner->data + piece.shared.offset;
        if (owner == own)
            parts += batch_append_held(batch, own, piece.bytes);
        else
            batch_append(batch, owner, piece.bytes);
    }
    if (parts > 0)
        buffer_ref_many(own, parts);
}

uint64_t tail_spans_clear(struct tail_slabs *slabs, struct tail_spans *spans)
{
    uint64_t items = 0;
    struct walk walk = walk_of(slabs, spans);
    struct tail_fragment fragment;
    while (walk_on(slabs, &walk, &fragment)) {
        struct slice body = fragment.body;
        struct tail_piece piece;
        items += fragment.items;
        while (!fragment.is_plain && next_piece(&body, &piece))
            if (piece.shared.slab != 0)
                release(slabs, piece.shared.slab);
        release(slabs, fragment.slab);
    }
    spans->last = (struct tail_place){.slab = 0};
    return items;
}

/* --- moving spans into messages --- */

/* Parts are of two owners in turn: the slab of the fragments, and that of what they share. */
static inline void count_part(struct tail_message *message, struct buffer *owner)
{
    for (unsigned i = 0; i < 2; i++) {
        if (message->lacking[i].owner == owner) {
            message->lacking[i].parts++;
            return;
        }
    }
    if (message->lacking[0].owner != NULL && message->lacking[1].owner != NULL)
        take_references(message);
    const unsigned place = message->lacking[0].owner != NULL;
    message->lacking[place].owner = owner;
    message->lacking[place].parts = 1;
}

static void take_fragment(struct tail_slabs *slabs, const struct tail_fragment *fragment)
{
    enum { PARTS = 8 }; /* appended at once */
    struct tail_message *message = &slabs->message;
    struct buffer *const own = slabs->items[fragment->slab].buffer;
    struct slice body = fragment->body;
    struct tail_piece piece;
    struct batch_part parts[PARTS];
    size_t count = 0;
    message->batch->items += fragment->items;
    if (fragment->is_plain) {
        parts[count++] = (struct batch_part){.owner = own, .bytes = body};
        count_part(message, own);
    }
    while (!fragment->is_plain && next_piece(&body, &piece)) {
        struct batch_part *const part = &parts[count++];
        *part = (struct batch_part){.owner = own, .bytes = piece.bytes};
        if (piece.shared.slab != 0) {
            part->owner = slabs->items[piece.shared.slab].buffer;
            part->bytes.data = part->owner->data + piece.shared.offset;
        }
        count_part(message, part->owner);
        if (piece.shared.slab != 0)
            release(slabs, piece.shared.slab);
        if (count < PARTS)
            continue;
        batch_append_parts_held(message->batch, parts, count);
        count = 0;
    }
    if (count > 0)
        batch_append_parts_held(message->batch, parts, count);
    release(slabs, fragment->slab);
}

void tail_message_begin(struct tail_slabs *slabs, struct batch *batch)
{
    assert(slabs->message.batch == NULL);
    slabs->message.batch = batch;
}

void tail_message_take(struct tail_slabs *slabs, struct tail_spans *spans)
{
    const struct batch *batch = slabs->message.batch;
    assert(batch != NULL);
    struct walk walk = walk_of(slabs, spans);
    struct tail_fragment fragment;
    while (walk_on(slabs, &walk, &fragment)) {
        take_fragment(slabs, &fragment);
        if (batch->parts_count >= TAIL_MESSAGE_PARTS || batch->bytes >= TAIL_MESSAGE_BYTES)
            break;
    }
    if (walk.next.slab == 0) {
        spans->last = (struct tail_place){.slab = 0};
        return;
    }
    struct head last = read_head(slabs, spans->last);
    last.next = walk.next;
    write_head(slabs, spans->last, &last);
}

struct batch *tail_message_end(struct tail_slabs *slabs)
{
    struct batch *batch = slabs->message.batch;
    take_references(&slabs->message);
    slabs->message.batch = NULL;
    return batch;
}
