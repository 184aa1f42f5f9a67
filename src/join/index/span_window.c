/* SPDX-License-Identifier: Apache-2.0 */
/* The shards. Entries form a ring and are numbered on and on; each is in a list of spans of one
 * process that began in the same slot of time, newest first. Slots of a level are as wide as its
 * longest span, eight times those of the level below, so that a look at few slots finds everything
 * that covers a time. A list ends where a number has been written over: all behind it are gone too.
 *
 * The writer clears an entry's number, stores the other words with release, then the number again;
 * who reads takes the same number before and after for proof. A process has several names; the
 * surest that its spans have stands for all of them. Adding runs on the shard's lane, finding on
 * any. */
#include "src/join/index/span_window.h"

#include <assert.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/join/join_limits.h"

enum word { NUMBER, NEXT, PROCESS, TRACE_0, TRACE_1, SPAN, PARENT, START, END, REST };

enum { LEVELS = 8, LEVEL_BITS = 3, LINE = 4, ALIASES = 2 * JOIN_PROCESSES_MAX };

static uint64_t heads_for(uint64_t entries)
{
    uint64_t heads = 64;
    assert(entries <= UINT32_MAX);
    while (heads < entries)
        heads *= 2;
    return heads;
}

static uint64_t entries_of(unsigned shards, uint64_t entries)
{
    assert(shards > 0);
    return (entries + shards - 1) / shards;
}

uint64_t span_window_bytes(unsigned shards, uint64_t entries)
{
    uint64_t each = entries_of(shards, entries);
    assert(entries > 0);
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
    assert(window != NULL);
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

/* 0: nobody has that name. */
static uint64_t alias_in(const struct window_alias *alias, uint64_t name)
{
    uint64_t process = atomic_load_explicit(&alias->process, memory_order_acquire);
    uint64_t mixed = atomic_load_explicit(&alias->mixed, memory_order_acquire);
    assert(name != 0);
    return (mixed ^ process) == name ? process : 0;
}

static void add_alias(struct window_shard *shard, uint64_t name, uint64_t process)
{
    struct window_alias *line = line_of(shard, name);
    struct window_alias *chosen = NULL;
    for (unsigned i = 0; i < LINE && chosen == NULL; i++)
        if (alias_in(&line[i], name) != 0)
            chosen = &line[i];
    for (unsigned i = 0; i < LINE && chosen == NULL; i++)
        if (atomic_load_explicit(&line[i].process, memory_order_relaxed) == 0)
            chosen = &line[i];
    if (chosen == NULL)
        chosen = &line[shard->victim++ % LINE];
    assert(process != 0);
    atomic_store_explicit(&chosen->process, process, memory_order_release);
    atomic_store_explicit(&chosen->mixed, process ^ name, memory_order_release);
}

void span_window_begin(struct span_window *window, unsigned shard_index,
                       const struct resource_facts *resource, uint64_t now_ns)
{
    struct window_shard *shard = &window->shards[shard_index];
    assert(shard_index < window->shards_count);
    shard->process = 0;
    shard->now_ns = now_ns;
    for (unsigned i = 0; i < RESOURCE_NAMES; i++) {
        if (resource->processes[i] == 0)
            continue;
        if (shard->process == 0)
            shard->process = resource->processes[i];
        add_alias(shard, resource->processes[i], shard->process);
    }
}

static uint64_t width_of(unsigned level)
{
    assert(level < LEVELS);
    return (uint64_t)NS_PER_S << LEVEL_BITS * level;
}

static unsigned level_of(const struct window_span *span)
{
    unsigned level = 0;
    assert(span->end_ns >= span->start_ns);
    while (level + 1 < LEVELS && span->end_ns - span->start_ns > width_of(level))
        level++;
    return level;
}

static _Atomic uint64_t *head_of(const struct window_shard *shard, uint64_t process, unsigned level,
                                 uint64_t slot)
{
    uint64_t hash = (process ^ (slot * LEVELS + level) * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    assert(shard->heads_count > 0);
    return &shard->heads[(hash ^ hash >> 32) & (shard->heads_count - 1)];
}

static uint64_t load(const struct window_entry *entry, enum word word)
{
    return atomic_load_explicit(&entry->words[word], memory_order_acquire);
}

static void store(struct window_entry *entry, enum word word, uint64_t value)
{
    atomic_store_explicit(&entry->words[word], value, memory_order_release);
}

static struct window_entry *entry_of(const struct window_shard *shard, uint64_t number)
{
    assert(number > 0);
    return &shard->entries[number % shard->entries_count];
}

/* Somebody's clock may be years ahead: nothing has ended after now. */
static void forget(struct window_shard *shard, const struct window_entry *entry)
{
    uint64_t end_ns = load(entry, END);
    if (load(entry, NUMBER) == 0)
        return;
    if (end_ns > shard->now_ns)
        end_ns = shard->now_ns;
    assert(shard->number > 0);
    if (end_ns > atomic_load_explicit(&shard->gone_until_ns, memory_order_relaxed))
        atomic_store_explicit(&shard->gone_until_ns, end_ns, memory_order_release);
}

void span_window_add(struct span_window *window, unsigned shard_index,
                     const struct window_span *span)
{
    struct window_shard *shard = &window->shards[shard_index];
    assert(shard_index < window->shards_count);
    if (shard->process == 0 || span->end_ns < span->start_ns)
        return;
    unsigned level = level_of(span);
    uint64_t number = ++shard->number;
    struct window_entry *entry = entry_of(shard, number);
    _Atomic uint64_t *head =
        head_of(shard, shard->process, level, span->start_ns / width_of(level));
    forget(shard, entry);
    store(entry, NUMBER, 0);
    store(entry, NEXT, atomic_load_explicit(head, memory_order_relaxed));
    store(entry, PROCESS, shard->process);
    store(entry, TRACE_0, span->trace[0]);
    store(entry, TRACE_1, span->trace[1]);
    store(entry, SPAN, span->span);
    store(entry, PARENT, span->parent);
    store(entry, START, span->start_ns);
    store(entry, END, span->end_ns);
    store(entry, REST,
          (uint64_t)span->resource << 32 | (uint64_t)span->thread.name << 16 | span->thread.id);
    store(entry, NUMBER, number);
    atomic_store_explicit(head, number, memory_order_release);
    atomic_fetch_or_explicit(&shard->levels, 1u << level, memory_order_release);
}

/* What one look has come across. */
struct look {
    const struct window_place *place;
    uint64_t from_ns; /* of the place, with the skew of clocks */
    uint64_t until_ns;
    struct window_span found[JOIN_CANDIDATES_MAX];
    unsigned count;
    unsigned steps; /* entries looked at */
};

/* False: written over, or being so. */
static bool read_entry(const struct window_entry *entry, uint64_t number, uint64_t *ret_process,
                       uint64_t *ret_next, struct window_span *ret_span)
{
    if (load(entry, NUMBER) != number)
        return false;
    uint64_t rest = load(entry, REST);
    *ret_next = load(entry, NEXT);
    *ret_process = load(entry, PROCESS);
    *ret_span = (struct window_span){
        .trace = {load(entry, TRACE_0), load(entry, TRACE_1)},
        .span = load(entry, SPAN),
        .parent = load(entry, PARENT),
        .start_ns = load(entry, START),
        .end_ns = load(entry, END),
        .resource = (uint32_t)(rest >> 32),
        .thread = {.name = (uint16_t)(rest >> 16), .id = (uint16_t)rest},
    };
    assert(number > 0);
    return atomic_load_explicit(&entry->words[NUMBER], memory_order_relaxed) == number;
}

static bool is_same(const struct window_span *a, const struct window_span *b)
{
    assert(a->span != 0);
    return a->span == b->span && a->trace[0] == b->trace[0] && a->trace[1] == b->trace[1];
}

/* False: there are too many to choose from. */
static bool take(struct look *look, const struct window_span *span)
{
    const struct window_place *place = look->place;
    assert(look->count <= JOIN_CANDIDATES_MAX);
    if (span->start_ns > look->until_ns || span->end_ns < look->from_ns ||
        thread_facts_differ(&place->thread, &span->thread, place->resource == span->resource))
        return true;
    for (unsigned i = 0; i < look->count; i++)
        if (is_same(&look->found[i], span))
            return true; /* its sender has sent it again */
    if (look->count == JOIN_CANDIDATES_MAX)
        return false;
    look->found[look->count++] = *span;
    return true;
}

static bool look_in_list(const struct window_shard *shard, uint64_t process, uint64_t number,
                         struct look *look)
{
    struct window_span span;
    uint64_t of;
    uint64_t next;
    assert(process != 0);
    while (number != 0 && read_entry(entry_of(shard, number), number, &of, &next, &span)) {
        if (look->steps++ == JOIN_LOOKS_MAX || (of == process && !take(look, &span)))
            return false;
        number = next;
    }
    return true;
}

static bool look_in_level(const struct window_shard *shard, uint64_t process, unsigned level,
                          struct look *look)
{
    uint64_t width = width_of(level);
    uint64_t first = (look->from_ns > width ? look->from_ns - width : 0) / width;
    uint64_t last = look->until_ns / width;
    assert(last >= first);
    if (last - first >= JOIN_SLOTS_MAX)
        return false;
    for (uint64_t slot = first; slot <= last; slot++) {
        const _Atomic uint64_t *head = head_of(shard, process, level, slot);
        uint64_t number = atomic_load_explicit(head, memory_order_acquire);
        if (!look_in_list(shard, process, number, look))
            return false;
    }
    return true;
}

static uint64_t process_of(const struct window_shard *shard, const struct window_place *place)
{
    uint64_t process = 0;
    assert(place != NULL);
    for (unsigned i = 0; i < RESOURCE_NAMES && process == 0; i++)
        for (unsigned k = 0; k < LINE && process == 0 && place->names[i] != 0; k++)
            process = alias_in(&line_of(shard, place->names[i])[k], place->names[i]);
    return process;
}

/* False: there may be spans that it does not come across. */
static bool look_in_shard(const struct window_shard *shard, struct look *look)
{
    uint64_t process = process_of(shard, look->place);
    assert(shard->entries != NULL);
    if (process == 0)
        return true;
    uint32_t levels = atomic_load_explicit(&shard->levels, memory_order_acquire);
    for (unsigned level = 0; level < LEVELS; level++)
        if ((levels >> level & 1) != 0 && !look_in_level(shard, process, level, look))
            return false;
    return atomic_load_explicit(&shard->gone_until_ns, memory_order_acquire) < look->from_ns;
}

static bool is_a_parent(const struct look *look, const struct window_span *span)
{
    bool is_parent = false;
    assert(span->span != 0);
    for (unsigned i = 0; i < look->count; i++)
        is_parent |= look->found[i].parent == span->span &&
                     look->found[i].trace[0] == span->trace[0] &&
                     look->found[i].trace[1] == span->trace[1];
    return is_parent;
}

/* Whether the span was there all the time, if clocks may differ by so much. */
static bool covers(const struct window_span *span, const struct window_place *place,
                   uint64_t skew_ns)
{
    assert(place->from_ns <= place->until_ns);
    return span->start_ns <= place->from_ns + skew_ns && place->until_ns <= span->end_ns + skew_ns;
}

/* The only one that is nobody's parent. When an ancestor was surely there but that one only if
 * clocks differ, it may have ended. */
static bool choose(const struct look *look, struct window_span *ret_span)
{
    const struct window_span *leaf = NULL;
    bool is_sure = false;
    for (unsigned i = 0; i < look->count; i++) {
        const struct window_span *span = &look->found[i];
        is_sure |= covers(span, look->place, 0);
        if (is_a_parent(look, span))
            continue;
        if (leaf != NULL)
            return false;
        leaf = span;
    }
    if (leaf == NULL || !covers(leaf, look->place, is_sure ? 0 : JOIN_SKEW_NS))
        return false;
    assert(leaf->span != 0);
    *ret_span = *leaf;
    return true;
}

bool span_window_find(const struct span_window *window, const struct window_place *place,
                      struct window_span *ret_span)
{
    struct look look = {.place = place};
    assert(window->shards != NULL);
    if (place->from_ns <= JOIN_SKEW_NS || place->from_ns > place->until_ns ||
        place->until_ns > UINT64_MAX / 2)
        return false;
    look.from_ns = place->from_ns - JOIN_SKEW_NS;
    look.until_ns = place->until_ns + JOIN_SKEW_NS;
    for (unsigned i = 0; i < window->shards_count; i++)
        if (!look_in_shard(&window->shards[i], &look))
            return false;
    return choose(&look, ret_span);
}
