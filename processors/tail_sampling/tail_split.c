/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the spans of a Resource… message into groups by id, then hands over the groups. Runs on its
 * lane. */
#include "processors/tail_sampling/tail_split.h"

#include <assert.h>

#include "processors/tail_sampling/tail_conditions.h"
#include "processors/tail_sampling/tail_span.h"
#include "src/base/budget.h"
#include "src/base/mem.h"

enum {
    RESOURCES = 1,
    RESOURCE = 1,
    SCOPES = 2,
    SCOPE = 1,
    SPANS = 2,
    TRACE_ID = 1,
    EMPTY_FIELD_BYTES = 2,
    HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX,
    SHARE_BYTES_MIN = 192, /* fields that several groups have in common are stored once */
    ROOM_FIRST = 64,
    LANE_OF_ID = 8, /* ids are owned, and remembered, by their last 8 bytes */
};

struct span_entry {
    struct slice whole; /* with tag and length */
    uint32_t scope;
    uint32_t next;    /* of the group; UINT32_MAX: none */
    uint32_t counted; /* its size as the Go collector counts it */
};

struct scope_entry {
    size_t gathered; /* where others begins in gathered; SIZE_MAX: it is `others` */
    struct slice others;
    uint64_t scope_bytes; /* as the Go collector counts it */
    struct tail_place shared;
};

struct place_entry {
    uint32_t stamp;
    uint32_t group;
};

void tail_split_init(struct tail_split *split, const struct tail_policies *policies,
                     struct tail_slabs *slabs, unsigned lanes, struct budget *budget)
{
    *split = (struct tail_split){.budget = budget,
                                 .policies = policies,
                                 .slabs = slabs,
                                 .lanes = lanes,
                                 .seed = tail_seed_make(),
                                 .stamp = 1};
}

void tail_split_fini(struct tail_split *split)
{
    scratch_fini(&split->gathered, split->budget);
    scratch_fini(&split->spans, split->budget);
    scratch_fini(&split->scopes, split->budget);
    scratch_fini(&split->groups, split->budget);
    scratch_fini(&split->group_bits, split->budget);
    scratch_fini(&split->places, split->budget);
    scratch_fini(&split->pieces, split->budget);
    scratch_fini(&split->headers, split->budget);
}

unsigned tail_split_owner(const uint8_t id[TAIL_TRACE_ID_BYTES], unsigned lanes)
{
    uint64_t half;
    memcpy(&half, id + LANE_OF_ID, sizeof(half));
    half *= UINT64_C(0x9e3779b97f4a7c15);
    half ^= half >> 29;
    half *= UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned)((unsigned __int128)half * lanes >> 64);
}

/* Room for one more element, beyond the budget's limit if need be: it is bounded by the request. */
static void *room_for(struct tail_split *split, struct scratch *scratch, size_t count, size_t bytes)
{
    (void)split;
    size_t wanted = (count + 1) * bytes;
    if (wanted > scratch->bytes) {
        size_t more = 2 * wanted > ROOM_FIRST * bytes ? 2 * wanted : ROOM_FIRST * bytes;
        budget_take(split->budget, more - scratch->bytes);
        scratch->memory = mem_resize(scratch->memory, more);
        scratch->bytes = more;
    }
    return (char *)scratch->memory + count * bytes;
}

void tail_split_begin(struct tail_split *split, struct slice request)
{
    assert(split->groups_count == 0);
    split->walk = (struct tail_walk){.resources = wire_reader_of(request)};
}

/* All fields of a message but those of one number, in one piece, copied to gathered if they are in
 * several. Returns where they begin there, or SIZE_MAX. *ret_first_bytes: of field 1. */
static size_t read_others(struct tail_split *split, struct slice content, uint32_t without,
                          struct slice *ret_others, uint64_t *ret_first_bytes)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct slice run = {0};
    uint64_t total = 0;
    uint64_t first = 0;
    bool is_one = true;
    while (wire_next_field(&reader, &field)) {
        if (field.number == without)
            continue;
        if (field.number == RESOURCE)
            first += field.whole.size;
        if (run.data == NULL)
            run = field.whole;
        else if (run.data + run.size == field.whole.data)
            run.size += field.whole.size;
        else
            is_one = false;
        total += field.whole.size;
    }
    assert(reader.failure == NULL);
    *ret_first_bytes = first > 0 ? first : EMPTY_FIELD_BYTES;
    *ret_others = run;
    if (is_one)
        return SIZE_MAX;
    size_t begin = split->gathered_bytes;
    room_for(split, &split->gathered, begin + total, 1);
    uint8_t *at = (uint8_t *)split->gathered.memory + begin;
    reader = wire_reader_of(content);
    while (wire_next_field(&reader, &field)) {
        if (field.number == without)
            continue;
        memcpy(at, field.whole.data, field.whole.size);
        at += field.whole.size;
    }
    split->gathered_bytes += total;
    *ret_others = slice_of(NULL, total);
    return begin;
}

static struct slice others_of(const struct tail_split *split, size_t gathered, struct slice others)
{
    if (gathered == SIZE_MAX)
        return others;
    return slice_of((const uint8_t *)split->gathered.memory + gathered, others.size);
}

static void enter_resource(struct tail_split *split, struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    size_t words = split->policies->words;
    struct tail_resource resource;
    split->gathered_bytes = 0;
    split->has_seen_resource = split->has_seen_scope = false;
    /* Others of the Resource… message come first in gathered, whose memory may move. */
    size_t gathered = read_others(split, content, SCOPES, &split->others, &split->resource_bytes);
    assert(gathered == SIZE_MAX || gathered == 0);
    if (gathered == 0)
        split->others.data = NULL;
    split->is_whole = true;
    memset(split->resource_bits, 0, words * sizeof(uint64_t));
    if (split->policies->keys_count == 0 || split->lanes > 1)
        return;
    tail_resource_begin(&resource);
    while (wire_next_field(&reader, &field))
        if (field.number == RESOURCE)
            tail_resource_read(split->policies, &resource, field.bytes, split->resource_bits);
    assert(reader.failure == NULL);
}

static struct slice resource_others(const struct tail_split *split)
{
    return others_of(split, split->others.data == NULL ? 0 : SIZE_MAX, split->others);
}

static void enter_scope(struct tail_split *split, struct slice content)
{
    struct scope_entry *scope =
        room_for(split, &split->scopes, split->scopes_count, sizeof(*scope));
    split->scopes_count++;
    split->has_seen_scope = false;
    struct slice others;
    uint64_t bytes;
    size_t gathered = read_others(split, content, SPANS, &others, &bytes);
    *scope = (struct scope_entry){.gathered = gathered, .others = others, .scope_bytes = bytes};
}

static struct tail_group *group_at(const struct tail_split *split, uint32_t place)
{
    assert(place < split->groups_count);
    return &((struct tail_group *)split->groups.memory)[place];
}

static uint64_t *bits_of(const struct tail_split *split, uint32_t place)
{
    return (uint64_t *)split->group_bits.memory + place * split->policies->words;
}

/* Twice as many places as groups, or more. */
static void grow_places(struct tail_split *split)
{
    uint32_t count = split->places_count > 0 ? 2 * split->places_count : ROOM_FIRST;
    room_for(split, &split->places, count, sizeof(struct place_entry));
    struct place_entry *places = split->places.memory;
    split->places_count = count;
    memset(places, 0, count * sizeof(*places));
    for (uint32_t i = 0; i < split->groups_count; i++) {
        uint32_t at = (uint32_t)tail_hash(&split->seed, group_at(split, i)->id) & (count - 1);
        while (places[at].stamp == split->stamp)
            at = (at + 1) & (count - 1);
        places[at] = (struct place_entry){.stamp = split->stamp, .group = i};
    }
}

static uint32_t find_group(struct tail_split *split, const uint8_t *id,
                           const struct tail_taker *taker)
{
    /* Spans of a trace come together more often than not. */
    if (split->groups_count > 0 &&
        memcmp(group_at(split, split->groups_count - 1)->id, id, TAIL_TRACE_ID_BYTES) == 0)
        return split->groups_count - 1;
    if (2 * (split->groups_count + 1) > split->places_count)
        grow_places(split);
    struct place_entry *places = split->places.memory;
    uint32_t at = (uint32_t)tail_hash(&split->seed, id) & (split->places_count - 1);
    for (; places[at].stamp == split->stamp; at = (at + 1) & (split->places_count - 1))
        if (memcmp(group_at(split, places[at].group)->id, id, TAIL_TRACE_ID_BYTES) == 0)
            return places[at].group;
    uint32_t place = split->groups_count;
    size_t words = split->policies->words;
    places[at] = (struct place_entry){.stamp = split->stamp, .group = place};
    struct tail_group *group = room_for(split, &split->groups, place, sizeof(*group));
    room_for(split, &split->group_bits, place, words * sizeof(uint64_t));
    split->groups_count++;
    *group = (struct tail_group){.first_span = UINT32_MAX, .last_span = UINT32_MAX};
    memcpy(group->id, id, TAIL_TRACE_ID_BYTES);
    uint64_t *bits = bits_of(split, place);
    memcpy(bits, split->resource_bits, words * sizeof(uint64_t));
    taker->begin(group, bits, taker->arg);
    return place;
}

/* Shows the conditions where the next spans are. */
static void show_heads(struct tail_split *split)
{
    const struct tail_policies *policies = split->policies;
    if (split->seen_at != split->gathered.memory)
        split->has_seen_resource = split->has_seen_scope = false;
    if (split->has_seen_resource && split->has_seen_scope)
        return;
    const struct scope_entry *scope =
        (const struct scope_entry *)split->scopes.memory + split->scopes_count - 1;
    for (size_t i = 0; i < policies->conditions_count; i++) {
        struct ottl_runner *runner = &policies->leaves[policies->conditions[i]].conditions->runner;
        /* What heads need is below the limit of a record. */
        if (!split->has_seen_resource)
            (void)ottl_runner_enter(runner, OTTL_RESOURCE, resource_others(split));
        (void)ottl_runner_enter(runner, OTTL_SCOPE,
                                others_of(split, scope->gathered, scope->others));
    }
    split->has_seen_resource = split->has_seen_scope = true;
    split->seen_at = split->gathered.memory;
}

/* Asks the conditions that have not held or failed in the trace before. */
static void test_conditions(struct tail_split *split, struct slice span, uint64_t *bits)
{
    const struct tail_policies *policies = split->policies;
    show_heads(split);
    for (size_t i = 0; i < policies->conditions_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->conditions[i]];
        const unsigned failed = leaf->bit + 1u;
        if (((bits[leaf->bit / 64] >> leaf->bit % 64 | bits[failed / 64] >> failed % 64) & 1) != 0)
            continue;
        int result = ottl_runner_test_span(&leaf->conditions->runner, span);
        if (result == OTTL_TRUE)
            bits[leaf->bit / 64] |= (uint64_t)1 << leaf->bit % 64;
        else if (result == OTTL_FAILED)
            bits[failed / 64] |= (uint64_t)1 << failed % 64;
    }
}

static void add_span(struct tail_split *split, const struct wire_field *field,
                     const struct tail_taker *taker)
{
    const struct tail_policies *policies = split->policies;
    struct tail_span span;
    uint64_t span_bits[TAIL_WORDS_MAX];
    struct tail_group *group;
    uint32_t counted = 0;
    if (split->lanes > 1) {
        uint8_t key[TAIL_TRACE_ID_BYTES] = {0};
        tail_span_read_id(field->bytes, span.trace_id);
        key[0] = (uint8_t)tail_split_owner(span.trace_id, split->lanes);
        group = group_at(split, find_group(split, key, taker));
    } else {
        memset(span_bits, 0, policies->words * sizeof(uint64_t));
        tail_span_read(policies, field->bytes, &span, span_bits);
        uint32_t place = find_group(split, span.trace_id, taker);
        uint64_t *bits = bits_of(split, place);
        group = group_at(split, place);
        for (size_t i = 0; i < policies->words; i++)
            bits[i] |= span_bits[i];
        if (policies->conditions_count > 0)
            test_conditions(split, field->bytes, bits);
        tail_policies_time(policies, span.start_ns, span.end_ns, &group->min_ns, &group->max_ns,
                           bits);
        group->has_root |= span.is_root;
        counted = (uint32_t)wire_field_size(SPANS, (size_t)span.bytes);
    }
    uint32_t number = split->spans_count++;
    struct span_entry *entries = split->spans.memory;
    entries[number] = (struct span_entry){.whole = field->whole,
                                          .scope = split->scopes_count - 1,
                                          .next = UINT32_MAX,
                                          .counted = counted};
    if (group->last_span != UINT32_MAX)
        entries[group->last_span].next = number;
    else
        group->first_span = number;
    group->last_span = number;
    group->spans++;
}

/* The trace id of the span that begins at *at, if it begins as nearly all spans do, and moves *at
 * behind the span; or NULL. */
static const uint8_t *pass_span(const uint8_t **at, const uint8_t *end)
{
    enum { TAG = SPANS << 3 | WIRE_BYTES, LENGTH_BYTES = 2, ID = 2 };
    const uint8_t *const content = *at + 1 + LENGTH_BYTES;
    if (end - *at < 1 + LENGTH_BYTES + ID + TAIL_TRACE_ID_BYTES || **at != TAG ||
        content[0] != (TRACE_ID << 3 | WIRE_BYTES) || content[1] != TAIL_TRACE_ID_BYTES)
        return NULL;
    const size_t size = (content[-2] & 0x7f) | (size_t)content[-1] << 7;
    if (content[-2] < 0x80 || content[-1] >= 0x80 || size > (size_t)(end - content))
        return NULL;
    *at = content + size;
    return content + ID;
}

/* Tells of the two spans that come next. */
static void look_ahead(const struct wire_reader *spans, const struct tail_taker *taker)
{
    const uint8_t *at = spans->at;
    const uint8_t *id = taker->expect != NULL ? pass_span(&at, spans->end) : NULL;
    if (id == NULL)
        return;
    taker->expect(id, true, taker->arg);
    id = pass_span(&at, spans->end);
    if (id != NULL)
        taker->expect(id, false, taker->arg);
}

/* The scope at hand stays, with `goes_on`: more of its spans follow. */
static void hand_over(struct tail_split *split, bool goes_on, const struct tail_taker *taker)
{
    for (uint32_t i = 0; i < split->groups_count; i++)
        taker->take(split, group_at(split, i), bits_of(split, i), taker->arg);
    if (split->shared.slab != 0)
        tail_slabs_unshare(split->slabs, split->shared);
    split->shared = (struct tail_place){.slab = 0};
    struct scope_entry *scopes = split->scopes.memory;
    for (uint32_t i = 0; i < split->scopes_count; i++)
        if (scopes[i].shared.slab != 0)
            tail_slabs_unshare(split->slabs, scopes[i].shared);
    if (goes_on) {
        scopes[0] = scopes[split->scopes_count - 1];
        scopes[0].shared = (struct tail_place){.slab = 0};
    }
    split->spans_count = 0;
    split->scopes_count = goes_on ? 1 : 0;
    split->groups_count = 0;
    if (++split->stamp == 0) {
        memset(split->places.memory, 0, split->places_count * sizeof(struct place_entry));
        split->stamp = 1;
    }
}

/* Reads spans of the Resource… message until it ends. False: there are too many for one step. */
static bool read_resource(struct tail_split *split, struct tail_walk *walk,
                          const struct tail_taker *taker)
{
    struct wire_field field;
    struct wire_field scope;
    for (;;) {
        while (walk->is_in_scope && wire_next_field(&walk->spans, &field)) {
            if (field.number != SPANS)
                continue;
            room_for(split, &split->spans, split->spans_count, sizeof(struct span_entry));
            look_ahead(&walk->spans, taker);
            add_span(split, &field, taker);
            if (split->spans_count == TAIL_STEP_SPANS_MAX)
                return false;
        }
        walk->is_in_scope = false;
        do {
            if (!wire_next_field(&walk->scopes, &scope))
                return true;
        } while (scope.number != SCOPES);
        enter_scope(split, scope.bytes);
        walk->spans = wire_reader_of(scope.bytes);
        walk->is_in_scope = true;
    }
}

/* Another request may come next: they are shared by all splits of the lane. */
static void rest_conditions(const struct tail_policies *policies)
{
    for (size_t i = 0; i < policies->conditions_count; i++)
        ottl_runner_rest(&policies->leaves[policies->conditions[i]].conditions->runner);
}

bool tail_split_step(struct tail_split *split, const struct tail_taker *taker)
{
    struct tail_walk *walk = &split->walk;
    struct wire_field field;
    uint64_t spans = 0;
    /* Another request may have come between. */
    split->has_seen_resource = split->has_seen_scope = false;
    while (spans < TAIL_STEP_SPANS_MAX) {
        if (!walk->is_in_resource) {
            do {
                if (!wire_next_field(&walk->resources, &field)) {
                    assert(walk->resources.failure == NULL);
                    rest_conditions(split->policies);
                    return true;
                }
            } while (field.number != RESOURCES);
            walk->whole = field.whole;
            walk->scopes = wire_reader_of(field.bytes);
            enter_resource(split, field.bytes);
        }
        bool is_read = read_resource(split, walk, taker);
        split->is_whole &= is_read && !walk->is_in_resource && split->groups_count == 1;
        walk->is_in_resource = !is_read;
        spans += split->spans_count;
        hand_over(split, !is_read, taker);
    }
    rest_conditions(split->policies);
    return false;
}

uint64_t tail_group_bytes(const struct tail_split *split, const struct tail_group *group)
{
    const struct span_entry *entries = split->spans.memory;
    const struct scope_entry *scopes = split->scopes.memory;
    uint64_t total = split->resource_bytes;
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        uint32_t scope = entries[i].scope;
        uint64_t content = scopes[scope].scope_bytes;
        for (; i != UINT32_MAX && entries[i].scope == scope; i = entries[i].next)
            content += entries[i].counted;
        total += wire_field_size(SCOPES, (size_t)content);
    }
    return total;
}

static struct slice write_header(uint8_t *room, uint32_t number, uint64_t content)
{
    assert(content <= UINT32_MAX);
    if (content < 0x4000) { /* nearly always; no number here is above 15 */
        const bool is_long = content >= 0x80;
        room[0] = (uint8_t)wire_tag(number, WIRE_BYTES);
        room[1] = (uint8_t)((content & 0x7f) | (is_long ? 0x80 : 0));
        room[2] = (uint8_t)(content >> 7);
        return slice_of(room, 2 + (size_t)is_long);
    }
    struct wire_writer writer = wire_writer_of(room, HEADER_BYTES_MAX);
    wire_write_header(&writer, number, (size_t)content);
    return wire_written(&writer);
}

static void add_piece(struct tail_split *split, size_t *count, struct tail_piece piece)
{
    struct tail_piece *pieces = split->pieces.memory;
    if (piece.bytes.size == 0)
        return;
    if (*count > 0 && piece.shared.slab == 0 && pieces[*count - 1].shared.slab == 0 &&
        pieces[*count - 1].bytes.data + pieces[*count - 1].bytes.size == piece.bytes.data) {
        pieces[*count - 1].bytes.size += piece.bytes.size;
        return;
    }
    struct tail_piece *room = room_for(split, &split->pieces, *count, sizeof(piece));
    *room = piece;
    ++*count;
}

static struct tail_piece share(struct tail_split *split, struct slice bytes, bool may_share,
                               struct tail_place *shared)
{
    struct tail_piece piece = {.bytes = bytes};
    if (!may_share || bytes.size < SHARE_BYTES_MIN || split->groups_count < 2)
        return piece;
    if (shared->slab == 0)
        *shared = tail_slabs_share(split->slabs, bytes);
    piece.shared = *shared;
    return piece;
}

const struct tail_piece *tail_group_pieces(struct tail_split *split, const struct tail_group *group,
                                           bool may_share, size_t *ret_count, uint64_t *ret_bytes)
{
    const struct span_entry *entries = split->spans.memory;
    struct scope_entry *scopes = split->scopes.memory;
    size_t count = 0;
    if (split->is_whole) {
        add_piece(split, &count, (struct tail_piece){.bytes = split->walk.whole});
        *ret_count = count;
        *ret_bytes = split->walk.whole.size;
        return split->pieces.memory;
    }
    /* The content of each scope, then their headers, which stay where they are. */
    struct slice others = resource_others(split);
    uint64_t total = others.size;
    size_t scopes_count = 0;
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        uint32_t scope = entries[i].scope;
        uint64_t content = scopes[scope].others.size;
        for (; i != UINT32_MAX && entries[i].scope == scope; i = entries[i].next)
            content += entries[i].whole.size;
        uint8_t *room = room_for(split, &split->headers, scopes_count + 1, HEADER_BYTES_MAX + 1);
        struct slice header = write_header(room, SCOPES, content);
        room[HEADER_BYTES_MAX] = (uint8_t)header.size;
        total += header.size + content;
        scopes_count++;
    }
    uint8_t *headers = room_for(split, &split->headers, 0, HEADER_BYTES_MAX + 1);
    struct slice header = write_header(headers, RESOURCES, total);
    add_piece(split, &count, (struct tail_piece){.bytes = header});
    *ret_bytes = header.size + total;
    add_piece(split, &count, share(split, others, may_share, &split->shared));
    uint8_t *room = headers;
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        struct scope_entry *scope = &scopes[entries[i].scope];
        room += HEADER_BYTES_MAX + 1;
        add_piece(split, &count,
                  (struct tail_piece){.bytes = slice_of(room, room[HEADER_BYTES_MAX])});
        add_piece(split, &count,
                  share(split, others_of(split, scope->gathered, scope->others), may_share,
                        &scope->shared));
        uint32_t number = entries[i].scope;
        for (; i != UINT32_MAX && entries[i].scope == number; i = entries[i].next)
            add_piece(split, &count, (struct tail_piece){.bytes = entries[i].whole});
    }
    *ret_count = count;
    return split->pieces.memory;
}

void tail_group_store(struct tail_split *split, const struct tail_group *group,
                      struct tail_spans *spans, struct tail_request *request)
{
    size_t count;
    uint64_t bytes;
    const struct tail_piece *pieces = tail_group_pieces(split, group, true, &count, &bytes);
    tail_spans_add(split->slabs, spans, pieces, count, group->spans, request);
}
