/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the spans of a Resource… message into groups by id, then hands over the groups. Runs on its
 * lane. */
#include "processors/tail_sampling/tail_split.h"

#include <assert.h>

#include "processors/tail_sampling/tail_conditions.h"
#include "processors/tail_sampling/tail_span.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_limits.h"

enum {
    RESOURCES = 1,
    RESOURCE = 1,
    SCOPES = 2,
    SCOPE = 1,
    SPANS = 2,
    TRACE_ID = 1,
    EMPTY_FIELD_BYTES = 2,
    SHARE_BYTES_MIN = 192, /* fields that several groups have in common are kept once */
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
    struct tail_common common;
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

static void __attribute__((noinline))
grow(struct tail_split *split, struct scratch *scratch, size_t wanted, size_t bytes)
{
    const size_t more = 2 * wanted > ROOM_FIRST * bytes ? 2 * wanted : ROOM_FIRST * bytes;
    budget_take(split->budget, more - scratch->bytes);
    scratch->memory = mem_resize(scratch->memory, more);
    scratch->bytes = more;
}

/* Room for one more element, beyond the budget's limit if need be: it is bounded by the request. */
static inline void *room_for(struct tail_split *split, struct scratch *scratch, size_t count,
                             size_t bytes)
{
    const size_t wanted = (count + 1) * bytes;
    if (__builtin_expect(wanted > scratch->bytes, 0))
        grow(split, scratch, wanted, bytes);
    return (char *)scratch->memory + count * bytes;
}

void tail_split_begin(struct tail_split *split, struct slice request)
{
    assert(split->groups_count == 0);
    split->walk = (struct tail_walk){.resources = wire_reader_of(request)};
    split->outer_left = OTTL_OUTER_BYTES_MIN + OTTL_OUTER_FACTOR_MAX * (uint64_t)request.size;
}

/* Passes over consecutive fields of one number whose sizes have one or two bytes, as nearly all
 * spans have. */
static inline void pass_fields(struct wire_reader *reader, uint32_t number)
{
    enum { HEADER_BYTES = 3 };
    const uint8_t tag = (uint8_t)(number << 3 | WIRE_BYTES);
    const uint8_t *at = reader->at;
    assert(number < 16);
    while (reader->end - at >= HEADER_BYTES && at[0] == tag && at[2] < 0x80) {
        const bool is_long = at[1] >= 0x80;
        const size_t size = is_long ? (at[1] & 0x7f) | (size_t)at[2] << 7 : at[1];
        const uint8_t *const content = at + 2 + is_long;
        if (size > (size_t)(reader->end - content))
            break;
        at = content + size;
    }
    reader->at = at;
}

/* The next field of another number. */
static bool next_other(struct wire_reader *reader, uint32_t number, struct wire_field *ret_field)
{
    do {
        pass_fields(reader, number);
        if (!wire_next_field(reader, ret_field))
            return false;
    } while (ret_field->number == number);
    return true;
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
    while (next_other(&reader, without, &field)) {
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
    while (next_other(&reader, without, &field)) {
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

/* A span, or a resource. */
static void count_large(struct tail_split *split, uint64_t bytes)
{
    const uint64_t read = bytes * split->policies->readers_count;
    if (bytes >= TAIL_LARGE_BYTES)
        split->step_outer_left -= read < split->step_outer_left ? read : split->step_outer_left;
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
    count_large(split, split->resource_bytes);
}

static struct slice resource_others(const struct tail_split *split)
{
    return others_of(split, split->others.data == NULL ? 0 : SIZE_MAX, split->others);
}

static struct scope_entry *scope_at_hand(const struct tail_split *split)
{
    assert(split->scopes_count > 0);
    return (struct scope_entry *)split->scopes.memory + split->scopes_count - 1;
}

/* Reads all fields of the scope but its spans, before the spans. */
static void read_scope(struct tail_split *split)
{
    struct scope_entry *scope = scope_at_hand(split);
    if (split->walk.has_others)
        return;
    scope->gathered =
        read_others(split, split->walk.scope, SPANS, &scope->others, &scope->scope_bytes);
    split->walk.has_others = true;
}

/* Takes in one of them while the spans are read: the first look at each span is one at memory that
 * no cache has, so there is only one. */
static void take_other(struct tail_split *split, const struct wire_field *field)
{
    struct scope_entry *scope = scope_at_hand(split);
    const struct slice whole = field->whole;
    if (split->walk.has_others)
        return;
    if (field->number == SCOPE)
        scope->scope_bytes += whole.size;
    if (scope->others.size == 0) {
        scope->others = whole;
        return;
    }
    if (scope->gathered == SIZE_MAX && scope->others.data + scope->others.size == whole.data) {
        scope->others.size += whole.size;
        return;
    }
    const bool is_second = scope->gathered == SIZE_MAX;
    const size_t more = whole.size + (is_second ? scope->others.size : 0);
    room_for(split, &split->gathered, split->gathered_bytes + more, 1);
    uint8_t *at = (uint8_t *)split->gathered.memory + split->gathered_bytes;
    if (is_second) {
        scope->gathered = split->gathered_bytes;
        memcpy(at, scope->others.data, scope->others.size);
        at += scope->others.size;
        scope->others.data = NULL;
    }
    memcpy(at, whole.data, whole.size);
    split->gathered_bytes += more;
    scope->others.size += whole.size;
}

static void enter_scope(struct tail_split *split, struct slice content)
{
    struct scope_entry *scope =
        room_for(split, &split->scopes, split->scopes_count, sizeof(*scope));
    split->scopes_count++;
    *scope = (struct scope_entry){.gathered = SIZE_MAX};
    split->has_seen_scope = false;
    split->ahead = NULL;
    split->walk.scope = content;
    split->walk.spans = wire_reader_of(content);
    split->walk.is_in_scope = true;
    split->walk.has_others = false;
    if (split->policies->conditions_count > 0 && split->lanes == 1)
        read_scope(split);
}

/* What is stored of them in the slabs is so for the groups at hand. */
static void rest_common(struct tail_split *split, struct tail_common *common, bool goes_on)
{
    if (common->place.slab != 0)
        tail_slabs_unshare(split->slabs, common->place);
    common->place = (struct tail_place){.slab = 0};
    if (goes_on)
        return;
    buffer_unref(common->copy);
    common->copy = NULL;
}

/* Forgets it if no span is in it: there may be very many. */
static void leave_scope(struct tail_split *split)
{
    struct scope_entry *scope = scope_at_hand(split);
    const struct span_entry *entries = split->spans.memory;
    const uint32_t spans = split->spans_count;
    if (scope->scope_bytes == 0)
        scope->scope_bytes = EMPTY_FIELD_BYTES;
    split->walk.is_in_scope = false;
    split->step_heads++;
    if (spans > 0 && entries[spans - 1].scope == split->scopes_count - 1)
        return;
    rest_common(split, &scope->common, false);
    if (scope->gathered != SIZE_MAX)
        split->gathered_bytes = scope->gathered;
    split->scopes_count--;
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
    *group = (struct tail_group){
        .first_span = UINT32_MAX, .last_span = UINT32_MAX, .scope = split->scopes_count - 1};
    memcpy(group->id, id, TAIL_TRACE_ID_BYTES);
    uint64_t *bits = bits_of(split, place);
    memcpy(bits, split->resource_bits, words * sizeof(uint64_t));
    taker->begin(group, bits, taker->arg);
    return place;
}

/* Lends a condition what may still be read for a span; `take_back` takes what it has left. */
static uint64_t lend(const struct tail_split *split, struct ottl_runner *runner, uint64_t span_left)
{
    const uint64_t left = span_left < split->outer_left ? span_left : split->outer_left;
    ottl_runner_allow(runner, left);
    return left;
}

static void take_back(struct tail_split *split, const struct ottl_runner *runner, uint64_t lent,
                      uint64_t *span_left)
{
    const uint64_t used = lent - ottl_runner_allowed(runner);
    assert(used <= lent);
    *span_left -= used;
    split->outer_left -= used;
    split->step_outer_left -= used < split->step_outer_left ? used : split->step_outer_left;
}

/* Shows the conditions where the next spans are. */
static void show_heads(struct tail_split *split, uint64_t *span_left)
{
    const struct tail_policies *policies = split->policies;
    if (split->seen_at != split->gathered.memory)
        split->has_seen_resource = split->has_seen_scope = false;
    if (split->has_seen_resource && split->has_seen_scope)
        return;
    const struct scope_entry *scope = scope_at_hand(split);
    for (size_t i = 0; i < policies->conditions_count; i++) {
        struct ottl_runner *runner = &policies->leaves[policies->conditions[i]].conditions->runner;
        const uint64_t lent = lend(split, runner, *span_left);
        /* What heads need is below the limit of a record. */
        if (!split->has_seen_resource)
            (void)ottl_runner_enter(runner, OTTL_RESOURCE, resource_others(split));
        (void)ottl_runner_enter(runner, OTTL_SCOPE,
                                others_of(split, scope->gathered, scope->others));
        take_back(split, runner, lent, span_left);
    }
    split->has_seen_resource = split->has_seen_scope = true;
    split->seen_at = split->gathered.memory;
}

/* Asks the conditions that have not held or failed in the trace before. */
static void test_conditions(struct tail_split *split, struct slice span, uint64_t *bits)
{
    const struct tail_policies *policies = split->policies;
    uint64_t span_left = TAIL_SPAN_OUTER_BYTES_MAX;
    show_heads(split, &span_left);
    for (size_t i = 0; i < policies->conditions_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->conditions[i]];
        struct ottl_runner *runner = &leaf->conditions->runner;
        const unsigned failed = leaf->bit + 1u;
        if (((bits[leaf->bit / 64] >> leaf->bit % 64 | bits[failed / 64] >> failed % 64) & 1) != 0)
            continue;
        const uint64_t lent = lend(split, runner, span_left);
        int result = ottl_runner_test_span(runner, span);
        take_back(split, runner, lent, &span_left);
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
        count_large(split, field->bytes.size);
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
    group->bytes += field->whole.size;
    group->counted_bytes += counted;
    if (group->scope != split->scopes_count - 1)
        group->scope = UINT32_MAX;
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

/* Fetches the spans that come next and tells of them, two when the first is read. Those of one
 * trace follow one another more often than not. */
static void look_ahead(struct tail_split *split, const struct tail_taker *taker)
{
    enum { LINE_BYTES = 64, FETCH_BYTES_MAX = 2048 };
    const struct wire_reader *spans = &split->walk.spans;
    if (taker->expect == NULL)
        return;
    if (split->ahead == NULL) {
        split->ahead = spans->at;
        split->near_id = pass_span(&split->ahead, spans->end);
    }
    if (split->near_id == NULL) {
        split->ahead = NULL;
        return;
    }
    const uint8_t *id = pass_span(&split->ahead, spans->end);
    const size_t size = id != NULL ? (size_t)(split->ahead - id) : 0;
    for (size_t i = 0; i < size && i < FETCH_BYTES_MAX; i += LINE_BYTES)
        __builtin_prefetch(id + i);
    taker->expect(split->near_id, true, taker->arg);
    if (id != NULL && memcmp(id, split->near_id, TAIL_TRACE_ID_BYTES) != 0)
        taker->expect(id, false, taker->arg);
    split->near_id = id;
}

/* goes_on: more of the Resource… message follows, and of the scope at hand if there is one. */
static void hand_over(struct tail_split *split, bool goes_on, const struct tail_taker *taker)
{
    for (uint32_t i = 0; i < split->groups_count; i++)
        taker->take(split, group_at(split, i), bits_of(split, i), taker->arg);
    struct scope_entry *scopes = split->scopes.memory;
    const bool keeps_scope = goes_on && split->walk.is_in_scope;
    for (uint32_t i = 0; i < split->scopes_count; i++)
        rest_common(split, &scopes[i].common, keeps_scope && i + 1 == split->scopes_count);
    rest_common(split, &split->common, goes_on);
    if (keeps_scope)
        scopes[0] = scopes[split->scopes_count - 1];
    split->spans_count = 0;
    split->scopes_count = keeps_scope ? 1 : 0;
    split->groups_count = 0;
    if (++split->stamp == 0) {
        memset(split->places.memory, 0, split->places_count * sizeof(struct place_entry));
        split->stamp = 1;
    }
}

/* Reads spans of the Resource… message until it ends. False: there are too many for one step, or
 * scopes, or conditions read too much for them. */
static bool read_resource(struct tail_split *split, struct tail_walk *walk,
                          const struct tail_taker *taker)
{
    struct wire_field field;
    struct wire_field scope;
    for (;;) {
        while (walk->is_in_scope && wire_next_field(&walk->spans, &field)) {
            if (field.number != SPANS) {
                take_other(split, &field);
                continue;
            }
            room_for(split, &split->spans, split->spans_count, sizeof(struct span_entry));
            look_ahead(split, taker);
            add_span(split, &field, taker);
            if (split->spans_count == TAIL_STEP_SPANS_MAX || split->step_outer_left == 0) {
                read_scope(split); /* others may follow the spans that are left */
                return false;
            }
        }
        if (walk->is_in_scope) {
            leave_scope(split);
            if (split->step_heads >= TAIL_STEP_SPANS_MAX)
                return false;
        }
        do {
            if (!wire_next_field(&walk->scopes, &scope))
                return true;
        } while (scope.number != SCOPES);
        enter_scope(split, scope.bytes);
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
    split->ahead = NULL;
    split->has_seen_resource = split->has_seen_scope = false;
    split->step_outer_left = TAIL_STEP_OUTER_BYTES_MAX;
    split->step_heads = 0;
    while (spans < TAIL_STEP_SPANS_MAX && split->step_outer_left > 0 &&
           split->step_heads < TAIL_STEP_SPANS_MAX) {
        if (!walk->is_in_resource) {
            do {
                if (!wire_next_field(&walk->resources, &field)) {
                    assert(walk->resources.failure == NULL);
                    rest_conditions(split->policies);
                    return true;
                }
            } while (field.number != RESOURCES);
            split->step_heads++;
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
    if (group->scope != UINT32_MAX)
        return total + wire_field_size(SCOPES, (size_t)(scopes[group->scope].scope_bytes +
                                                        group->counted_bytes));
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        uint32_t scope = entries[i].scope;
        uint64_t content = scopes[scope].scope_bytes;
        for (; i != UINT32_MAX && entries[i].scope == scope; i = entries[i].next)
            content += entries[i].counted;
        total += wire_field_size(SCOPES, (size_t)content);
    }
    return total;
}

/* --- writing a group's message --- */

static void write_header(struct tail_writer *writer, uint32_t number, uint64_t content)
{
    assert(content <= UINT32_MAX);
    uint8_t *at = writer->at;
    *at++ = (uint8_t)wire_tag(number, WIRE_BYTES);
    for (; content >= 0x80; content >>= 7)
        *at++ = (uint8_t)(content | 0x80);
    *at++ = (uint8_t)content;
    writer->at = at;
}

/* How a group's message is written. */
struct plan {
    bool may_share;
    uint64_t content; /* of the Resource… message */
    uint64_t shared;  /* bytes of it that are shared */
    size_t shared_pieces;
};

static inline bool is_shared(const struct plan *plan, struct slice others)
{
    return plan->may_share && others.size >= SHARE_BYTES_MIN;
}

static void plan_others(struct plan *plan, struct slice others)
{
    if (!is_shared(plan, others))
        return;
    plan->shared += others.size;
    plan->shared_pieces++;
}

/* The content of a scope's message, of the spans from *at on that follow one another there, which
 * *at then is behind. */
static uint64_t plan_scope(const struct tail_split *split, const struct tail_group *group,
                           uint32_t *at)
{
    const struct span_entry *entries = split->spans.memory;
    const uint32_t scope = entries[*at].scope;
    uint64_t content = ((const struct scope_entry *)split->scopes.memory)[scope].others.size;
    uint32_t i = *at;
    if (group->scope != UINT32_MAX) {
        *at = UINT32_MAX;
        return content + group->bytes;
    }
    for (; i != UINT32_MAX && entries[i].scope == scope; i = entries[i].next)
        content += entries[i].whole.size;
    *at = i;
    return content;
}

/* may_share: what groups have in common is not written for each. */
static struct plan plan_group(const struct tail_split *split, const struct tail_group *group,
                              bool may_share)
{
    const struct span_entry *entries = split->spans.memory;
    const struct scope_entry *scopes = split->scopes.memory;
    const struct slice others = split->others;
    struct plan plan = {.may_share = may_share, .content = others.size};
    plan_others(&plan, others);
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        plan_others(&plan, scopes[entries[i].scope].others);
        plan.content += wire_field_size(SCOPES, (size_t)plan_scope(split, group, &i));
    }
    return plan;
}

/* A batch that a group's message is appended to. Fields that are shared lie in the request, or in a
 * copy of their own, the rest in `own`. */
struct part {
    struct batch *batch;
    struct buffer *request;
    struct buffer *own; /* its size: of what the batch has */
};

/* Appends what was written since. */
static void append_own(struct part *part, const struct tail_writer *writer)
{
    struct buffer *own = part->own;
    const size_t written = (size_t)(writer->at - own->data);
    batch_append(part->batch, own, slice_of(own->data + own->size, written - own->size));
    own->size = written;
}

static bool is_in(const struct buffer *buffer, struct slice bytes)
{
    return bytes.data >= buffer->data && bytes.data + bytes.size <= buffer->data + buffer->size;
}

static void append_common(struct tail_split *split, struct part *part, struct slice others,
                          struct tail_common *common)
{
    struct buffer *owner = part->request;
    if (!is_in(owner, others)) {
        if (common->copy == NULL) {
            common->copy = buffer_create(split->budget, others.size);
            memcpy(common->copy->data, others.data, others.size);
            common->copy->size = others.size;
        }
        owner = common->copy;
        others = buffer_slice(owner);
    }
    batch_append(part->batch, owner, others);
}

static inline void write_others(struct tail_split *split, const struct plan *plan,
                                struct slice others, struct tail_common *common,
                                struct tail_writer *writer, struct part *part)
{
    if (others.size == 0)
        return;
    if (!is_shared(plan, others)) {
        tail_write(writer, others);
        return;
    }
    if (part != NULL) {
        append_own(part, writer);
        append_common(split, part, others, common);
        return;
    }
    if (common->place.slab == 0)
        common->place = tail_slabs_share(split->slabs, others);
    tail_write_shared(split->slabs, writer, common->place, others.size);
}

/* part: NULL if all goes where the writer is. */
static void write_group(struct tail_split *split, const struct tail_group *group,
                        const struct plan *plan, struct tail_writer *writer, struct part *part)
{
    const struct span_entry *entries = split->spans.memory;
    struct scope_entry *scopes = split->scopes.memory;
    write_header(writer, RESOURCES, plan->content);
    write_others(split, plan, resource_others(split), &split->common, writer, part);
    for (uint32_t i = group->first_span; i != UINT32_MAX;) {
        const uint32_t number = entries[i].scope;
        struct scope_entry *scope = &scopes[number];
        uint32_t end = i;
        write_header(writer, SCOPES, plan_scope(split, group, &end));
        write_others(split, plan, others_of(split, scope->gathered, scope->others), &scope->common,
                     writer, part);
        /* Spans that follow one another in the request, too, are copied at once. */
        struct slice run = {0};
        for (; i != end; i = entries[i].next) {
            if (run.size > 0 && run.data + run.size != entries[i].whole.data) {
                tail_write(writer, run);
                run.size = 0;
            }
            run.data = run.size > 0 ? run.data : entries[i].whole.data;
            run.size += entries[i].whole.size;
        }
        tail_write(writer, run);
    }
}

void tail_group_append(struct tail_split *split, const struct tail_group *group,
                       struct buffer *request, struct batch *batch)
{
    if (split->is_whole) {
        batch_append(batch, request, split->walk.whole);
        return;
    }
    struct plan plan = plan_group(split, group, false);
    /* A copy of more than its spans would make each group many times as large as its part of the
     * request. */
    if (plan.content > 2 * group->bytes)
        plan = plan_group(split, group, true);
    const size_t bytes = (size_t)(wire_field_size(RESOURCES, (size_t)plan.content) - plan.shared);
    struct part part = {
        .batch = batch, .request = request, .own = buffer_create(split->budget, bytes)};
    struct tail_writer writer = {.at = part.own->data};
    write_group(split, group, &plan, &writer, &part);
    append_own(&part, &writer);
    assert(part.own->size == bytes);
    buffer_unref(part.own);
}

void tail_group_store(struct tail_split *split, const struct tail_group *group,
                      struct tail_spans *spans, struct tail_request *request)
{
    struct tail_writer writer;
    if (split->is_whole) {
        const struct slice whole = split->walk.whole;
        writer = tail_spans_add(split->slabs, spans, whole.size, 0, group->spans, request);
        tail_write(&writer, whole);
        return;
    }
    const struct plan plan = plan_group(split, group, split->groups_count > 1);
    const uint64_t bytes = wire_field_size(RESOURCES, (size_t)plan.content) - plan.shared;
    writer = tail_spans_add(split->slabs, spans, bytes, plan.shared_pieces, group->spans, request);
    write_group(split, group, &plan, &writer, NULL);
    tail_write_end(&writer);
}
