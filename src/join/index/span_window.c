/* SPDX-License-Identifier: Apache-2.0 */
/* The shards. Entries form a ring and are numbered consecutively; each is in a list of spans of one
 * process that began in the same time slot, newest first. Slots of a level are as wide as its
 * longest span, eight times those of the level below, so that a few slots cover all spans at a
 * time. A list ends where a number was overwritten: all behind it are gone, too. An entry's number
 * is its stamp.
 *
 * A process has several names; the most certain one that its spans have represents it.
 * Adding runs on the shard's lane, finding on any. */
#include "src/join/index/span_window.h"

#include <assert.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/join/index/seqlock.h"
#include "src/join/join_limits.h"

enum word {
    NUMBER = SEQLOCK_STAMP,
    NEXT,
    PROCESS,
    TRACE_0,
    TRACE_1,
    SPAN,
    PARENT,
    START,
    END,
    REST
};

enum { LEVELS = 8, LEVEL_BITS = 3, LINE = 4, ALIASES = 2 * JOIN_PROCESSES_MAX };

static uint64_t heads_for(uint64_t entries)
{
    uint64_t heads = 64;
    while (heads < entries)
        heads *= 2;
    return heads;
}

static uint64_t entries_of(unsigned shards, uint64_t entries)
{
    return (entries + shards - 1) / shards;
}

uint64_t span_window_bytes(unsigned shards, uint64_t entries)
{
    uint64_t each = entries_of(shards, entries);
    return shards * (each * sizeof(struct window_entry) + heads_for(each) * sizeof(uint64_t) +
                     ALIASES * sizeof(struct window_alias));
}

bool span_window_init(struct span_window *window, unsigned shards, uint64_t entries)
{
    bool is_made = true;
    assert(shards > 0 && shards <= LANES_MAX);
    *window = (struct span_window){.shards_count = shards};
    window->shards = mem_zalloc(shards * sizeof(window->shards[0]));
    for (unsigned i = 0; is_made && i < shards; i++) {
        struct window_shard *shard = &window->shards[i];
        shard->entries_count = entries_of(shards, entries);
        shard->heads_count = heads_for(shard->entries_count);
        shard->entries = mem_try_zalloc(shard->entries_count * sizeof(shard->entries[0]));
        shard->heads = mem_try_zalloc(shard->heads_count * sizeof(shard->heads[0]));
        shard->aliases = mem_try_zalloc(ALIASES * sizeof(shard->aliases[0]));
        is_made = shard->entries != NULL && shard->heads != NULL && shard->aliases != NULL;
    }
    if (!is_made)
        span_window_fini(window);
    return is_made;
}

void span_window_fini(struct span_window *window)
{
    for (unsigned i = 0; window->shards != NULL && i < window->shards_count; i++) {
        mem_free(window->shards[i].entries);
        mem_free((void *)(uintptr_t)window->shards[i].heads);
        mem_free(window->shards[i].aliases);
    }
    mem_free(window->shards);
    window->shards = NULL;
}

static struct window_alias *line_of(const struct window_shard *shard, uint64_t name)
{
    assert(name != 0);
    return &shard->aliases[name % (ALIASES / LINE) * LINE];
}

/* 0: the alias is of another name. */
static uint64_t alias_in(const struct window_alias *alias, uint64_t name)
{
    uint64_t process = atomic_load_explicit(&alias->process, memory_order_acquire);
    uint64_t mixed = atomic_load_explicit(&alias->mixed, memory_order_acquire);
    return (mixed ^ process) == name ? process : 0;
}

void span_window_begin(struct span_window *window, unsigned shard_index,
                       const struct resource_facts *resource, uint64_t wall_ns)
{
    struct window_shard *shard = &window->shards[shard_index];
    assert(shard_index < window->shards_count);
    shard->process = 0;
    shard->wall_ns = wall_ns;
    for (unsigned i = 0; i < RESOURCE_NAMES; i++) {
        uint64_t name = resource->processes[i];
        if (name == 0)
            continue;
        if (shard->process == 0)
            shard->process = name;
        struct window_alias *line = line_of(shard, name);
        struct window_alias *chosen = NULL;
        for (unsigned k = 0; k < LINE && chosen == NULL; k++)
            if (alias_in(&line[k], name) != 0)
                chosen = &line[k];
        for (unsigned k = 0; k < LINE && chosen == NULL; k++)
            if (atomic_load_explicit(&line[k].process, memory_order_relaxed) == 0)
                chosen = &line[k];
        if (chosen == NULL)
            chosen = &line[shard->victim++ % LINE];
        atomic_store_explicit(&chosen->process, shard->process, memory_order_release);
        atomic_store_explicit(&chosen->mixed, shard->process ^ name, memory_order_release);
    }
}

static uint64_t width_of(unsigned level)
{
    assert(level < LEVELS);
    return (uint64_t)NS_PER_S << LEVEL_BITS * level;
}

static _Atomic uint64_t *head_of(const struct window_shard *shard, uint64_t process, unsigned level,
                                 uint64_t slot)
{
    uint64_t hash = (process ^ (slot * LEVELS + level) * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    return &shard->heads[(hash ^ hash >> 32) & (shard->heads_count - 1)];
}

static struct window_entry *entry_of(const struct window_shard *shard, uint64_t number)
{
    return &shard->entries[number % shard->entries_count];
}

void span_window_add(struct span_window *window, unsigned shard_index,
                     const struct window_span *span)
{
    struct window_shard *shard = &window->shards[shard_index];
    unsigned level = 0;
    assert(shard_index < window->shards_count);
    if (shard->process == 0 || span->end_ns < span->start_ns)
        return;
    while (level + 1 < LEVELS && span->end_ns - span->start_ns > width_of(level))
        level++;
    uint64_t number = ++shard->number;
    _Atomic uint64_t *entry = entry_of(shard, number)->words;
    _Atomic uint64_t *head =
        head_of(shard, shard->process, level, span->start_ns / width_of(level));
    if (seqlock_own_word(entry, NUMBER) != 0) {
        /* Evicted. Clocks may be years ahead: no span has ended after now. */
        uint64_t gone_ns = seqlock_own_word(entry, END);
        if (gone_ns > shard->wall_ns)
            gone_ns = shard->wall_ns;
        if (gone_ns > atomic_load_explicit(&shard->gone_until_ns, memory_order_relaxed))
            atomic_store_explicit(&shard->gone_until_ns, gone_ns, memory_order_release);
    }
    const uint64_t words[WINDOW_ENTRY_WORDS] = {
        [NUMBER] = number,
        [NEXT] = atomic_load_explicit(head, memory_order_relaxed),
        [PROCESS] = shard->process,
        [TRACE_0] = span->trace[0],
        [TRACE_1] = span->trace[1],
        [SPAN] = span->span,
        [PARENT] = span->parent,
        [START] = span->start_ns,
        [END] = span->end_ns,
        [REST] =
            (uint64_t)span->resource << 32 | (uint64_t)span->thread.name << 16 | span->thread.id,
    };
    seqlock_write(entry, words, WINDOW_ENTRY_WORDS);
    atomic_store_explicit(head, number, memory_order_release);
    atomic_fetch_or_explicit(&shard->levels, 1u << level, memory_order_release);
}

/* One look-up. */
struct look {
    const struct window_place *place;
    uint64_t from_ns; /* of the place, with the skew of clocks */
    uint64_t until_ns;
    struct window_span found[JOIN_CANDIDATES_MAX];
    unsigned count;
    unsigned steps;  /* entries looked at */
    uint64_t *looks; /* entries and slots, of all look-ups */
};

static bool is_same_trace(const struct window_span *a, const struct window_span *b)
{
    return a->trace[0] == b->trace[0] && a->trace[1] == b->trace[1];
}

/* Adds the spans to the candidates that were there at the time and may be of the thread; a span
 * that was sent twice is one. False: there are too many spans. */
static bool look_in_level(const struct window_shard *shard, uint64_t process, unsigned level,
                          struct look *look)
{
    const struct window_place *place = look->place;
    uint64_t width = width_of(level);
    uint64_t first = (look->from_ns > width ? look->from_ns - width : 0) / width;
    uint64_t last = look->until_ns / width;
    uint64_t words[WINDOW_ENTRY_WORDS];
    if (last - first >= JOIN_SLOTS_MAX)
        return false;
    for (uint64_t slot = first; slot <= last; slot++) {
        const _Atomic uint64_t *head = head_of(shard, process, level, slot);
        uint64_t number = atomic_load_explicit(head, memory_order_acquire);
        ++*look->looks;
        while (number != 0 &&
               seqlock_read(entry_of(shard, number)->words, words, WINDOW_ENTRY_WORDS) &&
               words[NUMBER] == number) {
            const struct window_span span = {
                .trace = {words[TRACE_0], words[TRACE_1]},
                .span = words[SPAN],
                .parent = words[PARENT],
                .start_ns = words[START],
                .end_ns = words[END],
                .resource = (uint32_t)(words[REST] >> 32),
                .thread = {.name = (uint16_t)(words[REST] >> 16), .id = (uint16_t)words[REST]},
            };
            number = words[NEXT];
            ++*look->looks;
            if (look->steps++ == JOIN_LOOKS_MAX)
                return false;
            if (words[PROCESS] != process || span.start_ns > look->until_ns ||
                span.end_ns < look->from_ns ||
                thread_facts_differ(&place->thread, &span.thread, place->resource == span.resource))
                continue;
            bool is_known = false;
            for (unsigned i = 0; i < look->count && !is_known; i++)
                is_known =
                    look->found[i].span == span.span && is_same_trace(&look->found[i], &span);
            if (is_known)
                continue;
            if (look->count == JOIN_CANDIDATES_MAX)
                return false;
            look->found[look->count++] = span;
        }
    }
    return true;
}

/* Whether the span lasted all the time, if clocks may differ by skew_ns. */
static bool covers(const struct window_span *span, const struct window_place *place,
                   uint64_t skew_ns)
{
    return span->start_ns <= place->from_ns + skew_ns && place->until_ns <= span->end_ns + skew_ns;
}

bool span_window_find(const struct span_window *window, const struct window_place *place,
                      struct window_span *ret_span, uint64_t *looks)
{
    struct look look = {.place = place, .looks = looks};
    assert(window->shards != NULL);
    if (place->from_ns <= JOIN_SKEW_NS || place->from_ns > place->until_ns ||
        place->until_ns > UINT64_MAX / 2)
        return false;
    look.from_ns = place->from_ns - JOIN_SKEW_NS;
    look.until_ns = place->until_ns + JOIN_SKEW_NS;
    for (unsigned i = 0; i < window->shards_count; i++) {
        const struct window_shard *shard = &window->shards[i];
        uint64_t process = 0;
        for (unsigned k = 0; k < RESOURCE_NAMES && process == 0; k++) {
            uint64_t name = place->names[k];
            for (unsigned at = 0; at < LINE && process == 0 && name != 0; at++)
                process = alias_in(&line_of(shard, name)[at], name);
        }
        if (process == 0)
            continue;
        uint32_t levels = atomic_load_explicit(&shard->levels, memory_order_acquire);
        for (unsigned level = 0; level < LEVELS; level++)
            if ((levels >> level & 1) != 0 && !look_in_level(shard, process, level, &look))
                return false;
        /* Spans of that time may have been evicted. */
        if (atomic_load_explicit(&shard->gone_until_ns, memory_order_acquire) >= look.from_ns)
            return false;
    }
    /* The only candidate that is no other's parent. When one of the others covers the time for
     * certain, but this one only with the skew of clocks, it may have ended before. */
    const struct window_span *leaf = NULL;
    bool is_sure = false;
    for (unsigned i = 0; i < look.count; i++) {
        const struct window_span *span = &look.found[i];
        bool is_parent = false;
        is_sure |= covers(span, place, 0);
        for (unsigned k = 0; k < look.count; k++)
            is_parent |= look.found[k].parent == span->span && is_same_trace(&look.found[k], span);
        if (is_parent)
            continue;
        if (leaf != NULL)
            return false;
        leaf = span;
    }
    if (leaf == NULL || !covers(leaf, place, is_sure ? 0 : JOIN_SKEW_NS))
        return false;
    *ret_span = *leaf;
    return true;
}
