/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting: finds the cut, a path from the request down to the message that is cut between two of
 * its children, then writes both sides. Along the path all other fields (Resource, scope,
 * schema_url, a metric's name, unknown ones) go into both sides, before the children; outside of
 * the path and at the top each byte goes to one side. Pure functions; any thread. */
#include "src/otlp/split.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/batch.h"
#include "src/otlp/batch_writer.h"
#include "src/otlp/rope.h"
#include "src/otlp/schema.h"

/* request, resource, scope, metric, gauge */
enum { LEVELS_MAX = 1 + BATCH_SORTED_LEVELS_MAX };

/* A message on the path. Offsets count from the start of its content. */
struct level {
    const struct otlp_message *message;
    uint32_t number; /* its field number in the level above */
    bool is_sorted;  /* all other fields precede the children */
    struct rope body;
    uint64_t size;
    uint64_t other_bytes;  /* of all fields that are not children; 0 at the top */
    uint64_t before_bytes; /* of the children that go into the head whole */
    uint64_t cut;          /* the end of the head */
    uint64_t cut_end;      /* the start of the tail: after a child that is cut itself, or cut */
};

struct cut {
    struct otlp_limit limit;
    uint64_t items; /* in the head */
    unsigned depth; /* of the level that is cut between two children */
    struct level levels[LEVELS_MAX];
};

static const struct otlp_field *child_of(const struct otlp_message *message,
                                         const struct rope_field *found)
{
    const struct otlp_field *field = otlp_field_find(message, found->number);
    return field != NULL && field->kind >= OTLP_HOLDER ? field : NULL;
}

/* Where a message's children start: after all other fields if it is at depth `sorted` of the path
 * that the last cut left; else (`sorted` is 0) where the message does. */
static struct rope children_of(const struct rope_field *found, unsigned sorted)
{
    struct rope rope = found->content;
    if (sorted > 0)
        rope_skip(&rope, found->begin.batch->sorted_bytes[sorted]);
    return rope;
}

/* Counts the items in a field, until there are more than `enough`. Recursion is bounded by the
 * tables, LEVELS_MAX deep. */
static uint64_t count_items(const struct otlp_field *field, const struct rope_field *found,
                            unsigned sorted, uint64_t enough)
{
    assert(field->kind >= OTLP_HOLDER);
    if (field->kind == OTLP_RECORDS)
        return 1;
    struct rope rope = children_of(found, sorted);
    uint64_t end = found->content.at + found->content_bytes;
    uint64_t items = 0;
    struct rope_field inner;
    /* The first child is on the path, too. */
    sorted = sorted > 0 && sorted < rope.batch->sorted_levels ? sorted + 1 : 0;
    while (items <= enough && rope_read_field(&rope, end, &inner)) {
        const struct otlp_field *child = child_of(field->message, &inner);
        if (child == NULL)
            continue;
        items += count_items(child, &inner, sorted, enough - items);
        sorted = 0;
    }
    return items;
}

/* Whether a field contains items that it can be cut between. */
static bool has_children(const struct otlp_field *field, const struct rope_field *found,
                         unsigned sorted)
{
    assert(field->kind >= OTLP_HOLDER);
    struct rope rope = children_of(found, sorted);
    uint64_t end = found->content.at + found->content_bytes;
    struct rope_field inner;
    while (field->kind != OTLP_RECORDS && rope_read_field(&rope, end, &inner))
        if (child_of(field->message, &inner) != NULL)
            return true;
    return false;
}

static uint64_t items_left(const struct cut *cut)
{
    assert(cut->limit.items_max == 0 || cut->items <= cut->limit.items_max);
    return cut->limit.items_max == 0 ? UINT64_MAX - 1 : cut->limit.items_max - cut->items;
}

/* Whether the head keeps the limit if the deepest level gets `more` bytes of children. */
static bool fits(const struct cut *cut, uint64_t more)
{
    uint64_t size = more;
    if (cut->limit.bytes_max == 0)
        return true;
    for (unsigned i = cut->depth; i > 0; i--) {
        const struct level *level = &cut->levels[i];
        size += level->before_bytes + (cut->limit.repeats_freely ? 0 : level->other_bytes);
        size = wire_field_size(level->number, (size_t)size);
    }
    return size + cut->levels[0].before_bytes <= cut->limit.bytes_max;
}

/* Takes children of the deepest level while they fit whole. True when the one at the cut has to be
 * cut itself; *ret_field and *ret_found are it. Reads no more bytes than it takes, except the
 * level's other fields and the first child that does not fit. */
static bool take_children(struct cut *cut, const struct otlp_field **ret_field,
                          struct rope_field *ret_found)
{
    struct level *level = &cut->levels[cut->depth];
    struct rope rope = level->body;
    uint64_t end = rope.at + level->size;
    if (level->is_sorted && cut->depth > 0)
        rope_skip(&rope, level->other_bytes);
    while (level->cut = rope.at - level->body.at, rope_read_field(&rope, end, ret_found)) {
        const struct otlp_field *field = child_of(level->message, ret_found);
        if (field == NULL && cut->depth > 0)
            continue;
        bool is_on_path = level->is_sorted && level->before_bytes == 0 &&
                          cut->depth < ret_found->begin.batch->sorted_levels;
        unsigned sorted = is_on_path ? cut->depth + 1 : 0;
        *ret_field = field;
        if (!fits(cut, ret_found->size)) {
            if (field != NULL && has_children(field, ret_found, sorted))
                return true;
            bool has_begun = cut->items > 0;
            for (unsigned i = 0; cut->limit.cuts_anywhere && i <= cut->depth; i++)
                has_begun |= cut->levels[i].before_bytes > 0;
            if (has_begun)
                return false;
        }
        uint64_t items = field != NULL ? count_items(field, ret_found, sorted, items_left(cut)) : 0;
        if (items > items_left(cut))
            return field->kind != OTLP_RECORDS;
        cut->items += items;
        level->before_bytes += ret_found->size;
    }
    return false;
}

/* Bytes of the children that go into the tail whole. */
static uint64_t after_bytes(const struct level *level)
{
    assert(level->cut_end >= level->cut);
    return level->size - level->other_bytes - level->before_bytes - (level->cut_end - level->cut);
}

/* Leaves the deepest level: its message goes to one side whole. */
static void ascend(struct cut *cut, bool goes_into_head)
{
    assert(cut->depth > 0);
    cut->depth--;
    struct level *level = &cut->levels[cut->depth];
    if (goes_into_head) {
        level->before_bytes += level->cut_end - level->cut;
        level->cut = level->cut_end;
    }
    level->cut_end = level->cut;
}

/* Fills the path and the cut of each level on it. */
static void find_cut(struct cut *cut, struct batch *batch)
{
    assert(cut->depth == 0);
    const struct otlp_field *field;
    struct rope_field found;
    cut->levels[0] = (struct level){
        .message = otlp_request(batch->signal),
        .is_sorted = true,
        .body = rope_of(batch),
        .size = batch->bytes,
    };
    while (take_children(cut, &field, &found)) {
        /* The child that does not fit whole becomes the next level of the path. */
        assert(cut->depth + 1 < LEVELS_MAX);
        struct level *above = &cut->levels[cut->depth];
        bool is_first = above->before_bytes == 0;
        above->cut_end = above->cut + found.size;
        cut->depth++;
        struct level *level = &cut->levels[cut->depth];
        *level = (struct level){
            .message = field->message,
            .number = field->number,
            .is_sorted =
                is_first && above->is_sorted && cut->depth <= found.begin.batch->sorted_levels,
            .body = found.content,
            .size = found.content_bytes,
        };
        if (level->is_sorted) {
            level->other_bytes = found.begin.batch->sorted_bytes[cut->depth];
            continue;
        }
        struct rope rope = level->body;
        uint64_t end = rope.at + level->size;
        struct rope_field other;
        while (rope_read_field(&rope, end, &other))
            if (child_of(level->message, &other) == NULL)
                level->other_bytes += other.size;
    }
    cut->levels[cut->depth].cut_end = cut->levels[cut->depth].cut;
    while (cut->depth > 0 && after_bytes(&cut->levels[cut->depth]) == 0)
        ascend(cut, true);
    while (cut->depth > 0 && cut->levels[cut->depth].before_bytes == 0)
        ascend(cut, false);
}

/* Writes the fields between two offsets of a level that are children, or those that are not. */
static void write_fields(struct batch_writer *writer, const struct level *level, uint64_t from,
                         uint64_t to, bool are_children)
{
    assert(from <= to);
    assert(!level->is_sorted);
    struct rope rope = level->body;
    rope_skip(&rope, from);
    struct rope run = rope; /* of wanted fields that are not yet written */
    uint64_t run_bytes = 0;
    struct rope_field found;
    while (rope_read_field(&rope, level->body.at + to, &found)) {
        if ((child_of(level->message, &found) != NULL) == are_children) {
            run_bytes += found.size;
            continue;
        }
        batch_writer_borrow(writer, run, run_bytes);
        run = rope;
        run_bytes = 0;
    }
    batch_writer_borrow(writer, run, run_bytes);
}

static void write_others(struct batch_writer *writer, const struct level *level)
{
    if (level->is_sorted)
        batch_writer_borrow(writer, level->body, level->other_bytes);
    else
        write_fields(writer, level, 0, level->size, false);
}

static void write_children(struct batch_writer *writer, const struct level *level, uint64_t from,
                           uint64_t to)
{
    assert(from <= to);
    struct rope rope = level->body;
    if (!level->is_sorted) {
        write_fields(writer, level, from, to, true);
        return;
    }
    from = from == 0 ? level->other_bytes : from;
    rope_skip(&rope, from);
    batch_writer_borrow(writer, rope, to - from);
}

static void write_head(const struct cut *cut, struct batch_writer *writer)
{
    assert(cut->depth < LEVELS_MAX);
    uint64_t sizes[LEVELS_MAX] = {0};
    uint64_t size = 0;
    for (unsigned i = cut->depth; i > 0; i--) {
        size += cut->levels[i].other_bytes + cut->levels[i].before_bytes;
        sizes[i] = size;
        size = wire_field_size(cut->levels[i].number, (size_t)size);
    }
    batch_writer_borrow(writer, cut->levels[0].body, cut->levels[0].cut);
    for (unsigned i = 1; i <= cut->depth; i++) {
        const struct level *level = &cut->levels[i];
        batch_writer_header(writer, level->number, sizes[i]);
        write_others(writer, level);
        write_children(writer, level, 0, level->cut);
    }
}

static void write_tail(const struct cut *cut, struct batch_writer *writer)
{
    assert(cut->depth < LEVELS_MAX);
    uint64_t sizes[LEVELS_MAX] = {0};
    uint64_t size = 0;
    for (unsigned i = cut->depth; i > 0; i--) {
        size += cut->levels[i].other_bytes + after_bytes(&cut->levels[i]);
        sizes[i] = size;
        size = wire_field_size(cut->levels[i].number, (size_t)size);
    }
    for (unsigned i = 1; i <= cut->depth; i++) {
        batch_writer_header(writer, cut->levels[i].number, sizes[i]);
        write_others(writer, &cut->levels[i]);
        writer->batch->sorted_bytes[i] = cut->levels[i].other_bytes;
    }
    for (unsigned i = cut->depth + 1; i-- > 0;) {
        const struct level *level = &cut->levels[i];
        if (level->cut_end < level->size)
            write_children(writer, level, level->cut_end, level->size);
    }
    writer->batch->sorted_levels = cut->depth;
}

static struct batch *write_side(const struct cut *cut, const struct batch *batch,
                                struct budget *budget,
                                void (*write)(const struct cut *, struct batch_writer *))
{
    struct batch *side = batch_create_like(batch, 8);
    struct batch_writer writer;
    batch_writer_init(&writer, side, budget);
    write(cut, &writer);
    batch_writer_fini(&writer);
    return side;
}

void otlp_split(struct batch *batch, struct otlp_limit limit, struct budget *budget,
                struct batch **ret_head, struct batch **ret_tail)
{
    assert(otlp_request(batch->signal) != NULL);
    struct cut cut = {.limit = limit};
    bool keeps_items = limit.items_max == 0 || batch->items <= limit.items_max;
    bool keeps_bytes = limit.bytes_max == 0 || batch->bytes <= limit.bytes_max;
    if (!keeps_items || !keeps_bytes)
        find_cut(&cut, batch);
    /* Messages without items are split off only when they do not fit. */
    bool is_whole =
        cut.levels[0].cut == batch->bytes || (limit.bytes_max == 0 && cut.items == batch->items);
    if ((keeps_items && keeps_bytes) || is_whole) {
        *ret_head = batch_ref(batch);
        *ret_tail = NULL;
        return;
    }
    *ret_head = write_side(&cut, batch, budget, write_head);
    (*ret_head)->items = cut.items;
    *ret_tail = write_side(&cut, batch, budget, write_tail);
    (*ret_tail)->items = batch->items - cut.items;
}
