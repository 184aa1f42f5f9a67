/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of eight entries. A process that was quiet for longer than two profiles are ever apart is
 * another one of the same name: its entry is reset. Any thread, under the lock. */
#include "src/join/index/single_trace.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

enum { LINE = 8, LINES = JOIN_SINGLE_TRACES_MAX / LINE };

bool single_traces_init(struct single_traces *traces)
{
    assert(traces->entries == NULL);
    pthread_mutex_init(&traces->lock, NULL);
    traces->keys = mem_try_zalloc((size_t)LINES * LINE * sizeof(traces->keys[0]));
    traces->entries = mem_try_zalloc((size_t)LINES * LINE * sizeof(traces->entries[0]));
    return traces->keys != NULL && traces->entries != NULL;
}

void single_traces_fini(struct single_traces *traces)
{
    if (traces->keys != NULL)
        pthread_mutex_destroy(&traces->lock);
    mem_free(traces->keys);
    mem_free(traces->entries);
    traces->keys = NULL;
    traces->entries = NULL;
}

/* The last name. */
enum { OF_SERVICE = RESOURCE_PROCESS_NAMES };

struct process_names process_names_of(const struct resource_facts *facts)
{
    struct process_names names = {.keys = {[OF_SERVICE] = facts->service}};
    for (unsigned i = 0; i < OF_SERVICE; i++)
        names.keys[i] = facts->processes[i];
    return names;
}

/* A bit for each kind of name that is the process's own. */
static uint8_t kinds_of(const struct process_names *names)
{
    uint8_t kinds = 0;
    for (unsigned i = 0; i < OF_SERVICE; i++)
        if (names->keys[i] != 0)
            kinds |= (uint8_t)(1u << i);
    return kinds;
}

static size_t line_of(uint64_t key)
{
    return key % LINES * LINE;
}

/* NULL: there is no entry. */
static struct single_trace_entry *find(const struct single_traces *traces, uint64_t key)
{
    size_t line = line_of(key);
    for (size_t i = line; i < line + LINE; i++)
        if (traces->keys[i] == key)
            return &traces->entries[i];
    return NULL;
}

static bool is_quiet(const struct single_trace_entry *entry, uint64_t now_ns)
{
    return now_ns > entry->seen_ns && now_ns - entry->seen_ns > JOIN_WARM_UP_NS;
}

static struct single_trace_entry *find_or_add(struct single_traces *traces, uint64_t key,
                                              uint64_t now_ns)
{
    struct single_trace_entry *entry = find(traces, key);
    size_t line = line_of(key);
    size_t chosen = line;
    if (entry != NULL && !is_quiet(entry, now_ns))
        return entry;
    for (size_t i = line + LINE; entry == NULL && i > line; i--)
        if (traces->entries[i - 1].seen_ns <= traces->entries[chosen].seen_ns)
            chosen = i - 1;
    if (entry != NULL)
        chosen = (size_t)(entry - traces->entries);
    traces->keys[chosen] = key;
    traces->entries[chosen] = (struct single_trace_entry){.seen_ns = now_ns};
    return &traces->entries[chosen];
}

struct process_keys single_traces_begin(struct single_traces *traces,
                                        const struct resource_facts *facts, uint64_t now_ns)
{
    struct process_names all = process_names_of(facts);
    struct process_keys open = {.count = 0};
    pthread_mutex_lock(&traces->lock);
    for (unsigned i = 0; i < PROCESS_NAMES_MAX; i++) {
        if (all.keys[i] == 0)
            continue;
        struct single_trace_entry *entry = find_or_add(traces, all.keys[i], now_ns);
        entry->seen_ns = now_ns;
        if (i == OF_SERVICE)
            entry->kinds |= kinds_of(&all);
        if (!entry->is_shared)
            open.keys[open.count++] = all.keys[i];
    }
    pthread_mutex_unlock(&traces->lock);
    return open;
}

static void note(struct single_trace_entry *entry, const struct span_facts *span)
{
    unsigned kind = span->flags & SPAN_KIND_MASK;
    bool is_same = memcmp(entry->trace, span->trace, sizeof(entry->trace)) == 0;
    if (kind == SPAN_KIND_SERVER || kind == SPAN_KIND_CONSUMER || (entry->has_trace && !is_same)) {
        entry->is_shared = true;
        return;
    }
    if (!entry->has_trace || span->start_ns < entry->start_ns)
        entry->start_ns = span->start_ns;
    entry->has_trace = true;
    memcpy(entry->trace, span->trace, sizeof(entry->trace));
    if ((span->flags & SPAN_IS_LOCAL_ROOT) != 0) {
        entry->root = span->span;
        entry->end_ns = span->end_ns;
        return;
    }
    /* The span is no unknown parent any longer; its own parent may be one. */
    unsigned count = 0;
    bool is_new = span->parent != 0;
    for (unsigned i = 0; i < SINGLE_TRACE_PARENTS_MAX && entry->parents[i] != 0; i++) {
        uint64_t parent = entry->parents[i];
        is_new = is_new && parent != span->parent;
        if (parent != span->span)
            entry->parents[count++] = parent;
    }
    if (is_new && count < SINGLE_TRACE_PARENTS_MAX)
        entry->parents[count++] = span->parent;
    if (count < SINGLE_TRACE_PARENTS_MAX)
        entry->parents[count] = 0;
}

void single_traces_note(struct single_traces *traces, const struct process_keys *keys,
                        const struct span_facts *span, uint64_t now_ns)
{
    assert(keys->count > 0);
    pthread_mutex_lock(&traces->lock);
    for (unsigned i = 0; i < keys->count; i++)
        note(find_or_add(traces, keys->keys[i], now_ns), span);
    pthread_mutex_unlock(&traces->lock);
}

/* The entry of the most certain name that has one. When only the service has, and its processes
 * have names of the kind that this one has, this is another process. NULL: nothing is known. */
static const struct single_trace_entry *entry_of(const struct single_traces *traces,
                                                 const struct process_names *names)
{
    const struct single_trace_entry *entry = NULL;
    for (unsigned i = 0; i < PROCESS_NAMES_MAX && entry == NULL; i++)
        if (names->keys[i] != 0)
            entry = find(traces, names->keys[i]);
    return entry != NULL && (entry->kinds & kinds_of(names)) == 0 ? entry : NULL;
}

/* Whether the process has sent spans recently. */
static bool has_spans(const struct single_trace_entry *entry, uint64_t now_ns)
{
    return entry != NULL && (entry->has_trace || entry->is_shared) && !is_quiet(entry, now_ns);
}

enum process_state single_traces_state(struct single_traces *traces,
                                       const struct process_names *names, uint64_t now_ns)
{
    enum process_state state = PROCESS_UNKNOWN;
    uint64_t service = names->keys[OF_SERVICE];
    pthread_mutex_lock(&traces->lock);
    const struct single_trace_entry *entry = entry_of(traces, names);
    if (has_spans(entry, now_ns))
        state = entry->is_shared ? PROCESS_SHARED : PROCESS_HAS_TRACE;
    else if (service != 0 && has_spans(find(traces, service), now_ns))
        state = PROCESS_PENDING;
    pthread_mutex_unlock(&traces->lock);
    return state;
}

enum single_trace_found single_traces_find(struct single_traces *traces,
                                           const struct process_names *names, uint64_t from_ns,
                                           uint64_t until_ns, struct single_trace *ret_trace)
{
    enum single_trace_found found = SINGLE_TRACE_NONE;
    assert(from_ns <= until_ns);
    pthread_mutex_lock(&traces->lock);
    const struct single_trace_entry *entry = entry_of(traces, names);
    if (entry != NULL && entry->has_trace && !entry->is_shared) {
        /* The trace must have at least half of the time; until its root has ended, it lasts. */
        uint64_t end_ns = entry->root != 0 ? entry->end_ns : UINT64_MAX;
        uint64_t begin = entry->start_ns > from_ns ? entry->start_ns : from_ns;
        uint64_t end = end_ns < until_ns ? end_ns : until_ns;
        if (begin <= end && end - begin >= (until_ns - from_ns) / 2)
            found = SINGLE_TRACE_FOUND;
        else if (entry->root == 0)
            found = SINGLE_TRACE_UNDECIDED;
    }
    if (found == SINGLE_TRACE_FOUND) {
        memcpy(ret_trace->trace, entry->trace, sizeof(ret_trace->trace));
        ret_trace->root = entry->root != 0 ? entry->root : entry->parents[0];
    }
    pthread_mutex_unlock(&traces->lock);
    return found;
}
