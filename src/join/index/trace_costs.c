/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of four entries, found by a seeded hash. Ids are read without the lock to see whether there
 * is anything to take it for. Any thread. */
#include "src/join/index/trace_costs.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/base/random.h"

enum { LINE = 4, TICK_SHIFT = 28 /* of about a quarter of a second */ };

struct cost_entry {
    _Atomic uint64_t id[2]; /* zeros: free */
    uint64_t cpu_ns;
    uint32_t samples;
    uint32_t tick; /* when it last grew */
};

static const uint64_t nobody[2];

static uint64_t lines_for(uint64_t traces)
{
    uint64_t lines = 1;
    while (lines * LINE < traces)
        lines *= 2;
    return lines;
}

uint64_t trace_costs_bytes(uint64_t traces)
{
    return 2 * lines_for(traces) * LINE * sizeof(struct cost_entry);
}

static bool init(struct cost_table *table, uint64_t traces)
{
    *table = (struct cost_table){.lines = lines_for(traces)};
    table->seed = (uint64_t)(random_uniform() * 0x1p53) | 1;
    for (unsigned i = 0; i < TRACE_COST_LOCKS; i++)
        pthread_mutex_init(&table->locks[i], NULL);
    table->entries = mem_try_map(table->lines * LINE * sizeof(table->entries[0]));
    return table->entries != NULL;
}

static void fini(struct cost_table *table)
{
    if (table->entries == NULL)
        return;
    mem_unmap(table->entries, table->lines * LINE * sizeof(table->entries[0]));
    for (unsigned i = 0; i < TRACE_COST_LOCKS; i++)
        pthread_mutex_destroy(&table->locks[i]);
    table->entries = NULL;
}

bool trace_costs_init(struct trace_costs *costs, uint64_t traces)
{
    assert(!trace_costs_are_on(costs));
    if (init(&costs->traces, traces) && init(&costs->spans, traces))
        return true;
    trace_costs_fini(costs);
    return false;
}

void trace_costs_fini(struct trace_costs *costs)
{
    fini(&costs->traces);
    fini(&costs->spans);
}

/* Seeded: a client chooses the ids. */
static uint64_t line_of(const struct cost_table *table, const uint64_t id[2])
{
    uint64_t hash = (id[0] ^ table->seed) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ id[1]) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32 ^ table->seed) * UINT64_C(0xd6e8feb86659fd93);
    return (hash ^ hash >> 32) & (table->lines - 1);
}

static bool has_id(const struct cost_entry *entry, const uint64_t id[2])
{
    return atomic_load_explicit(&entry->id[0], memory_order_relaxed) == id[0] &&
           atomic_load_explicit(&entry->id[1], memory_order_relaxed) == id[1];
}

static void set_id(struct cost_entry *entry, const uint64_t id[2])
{
    atomic_store_explicit(&entry->id[0], id[0], memory_order_relaxed);
    atomic_store_explicit(&entry->id[1], id[1], memory_order_relaxed);
}

static struct cost_entry *find(const struct cost_table *table, uint64_t line, const uint64_t id[2])
{
    for (unsigned i = 0; i < LINE; i++)
        if (has_id(&table->entries[line * LINE + i], id))
            return &table->entries[line * LINE + i];
    return NULL;
}

/* The entry of that id, which may be a new one. The line is locked. */
static struct cost_entry *find_or_add(struct cost_table *table, uint64_t line, const uint64_t id[2],
                                      uint32_t tick)
{
    struct cost_entry *found = find(table, line, id);
    if (found != NULL)
        return found;
    found = find(table, line, nobody);
    for (unsigned i = 0; i < LINE; i++) {
        struct cost_entry *entry = &table->entries[line * LINE + i];
        if (found == NULL || (!has_id(found, nobody) && tick - entry->tick > tick - found->tick))
            found = entry;
    }
    set_id(found, id);
    found->cpu_ns = 0;
    found->samples = 0;
    return found;
}

static pthread_mutex_t *lock_of(struct cost_table *table, uint64_t line)
{
    return &table->locks[line % TRACE_COST_LOCKS];
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void add(struct cost_table *table, const uint64_t id[2], struct trace_cost cost,
                uint64_t now_ns)
{
    uint64_t line = line_of(table, id);
    uint32_t tick = (uint32_t)(now_ns >> TICK_SHIFT);
    pthread_mutex_lock(lock_of(table, line));
    struct cost_entry *entry = find_or_add(table, line, id, tick);
    uint64_t samples = add_up(entry->samples, cost.samples);
    entry->samples = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX;
    entry->cpu_ns = add_up(entry->cpu_ns, cost.cpu_ns);
    entry->tick = tick;
    pthread_mutex_unlock(lock_of(table, line));
    atomic_store_explicit(&table->is_used, true, memory_order_release);
}

/* What is known of an id; with takes it is forgotten. */
static struct trace_cost get(struct cost_table *table, const uint64_t id[2], bool takes)
{
    struct trace_cost cost = {.samples = 0};
    if ((id[0] | id[1]) == 0 || !atomic_load_explicit(&table->is_used, memory_order_acquire))
        return cost;
    uint64_t line = line_of(table, id);
    if (find(table, line, id) == NULL)
        return cost;
    pthread_mutex_lock(lock_of(table, line));
    struct cost_entry *entry = find(table, line, id);
    if (entry != NULL)
        cost = (struct trace_cost){.samples = entry->samples, .cpu_ns = entry->cpu_ns};
    if (entry != NULL && takes)
        set_id(entry, nobody);
    pthread_mutex_unlock(lock_of(table, line));
    return cost;
}

void trace_costs_add(struct trace_costs *costs, const uint64_t trace[2], struct trace_cost cost,
                     uint64_t now_ns)
{
    if ((trace[0] | trace[1]) != 0)
        add(&costs->traces, trace, cost, now_ns);
}

void trace_costs_add_span(struct trace_costs *costs, uint64_t span, struct trace_cost cost,
                          uint64_t now_ns)
{
    const uint64_t id[2] = {span, 0};
    if (span != 0)
        add(&costs->spans, id, cost, now_ns);
}

void trace_costs_move_span(struct trace_costs *costs, uint64_t span, const uint64_t trace[2],
                           uint64_t now_ns)
{
    const uint64_t id[2] = {span, 0};
    struct trace_cost cost = get(&costs->spans, id, true);
    if (cost.samples > 0)
        trace_costs_add(costs, trace, cost, now_ns);
}

struct trace_cost trace_costs_get(struct trace_costs *costs, const uint64_t trace[2])
{
    return get(&costs->traces, trace, false);
}
