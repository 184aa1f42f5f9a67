/* SPDX-License-Identifier: Apache-2.0 */
/* Sets hold hashes of 64 bits with a seed of their own: two ids with the same one do not occur.
 * On the explore worker. */
#include "src/explore/explore_select.h"

#include <stdlib.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SET_FIRST = 256, SLOW_PERCENT = 95, SPANS_NAMED_MAX = 256, IDS_PER_LOOK = 4096 };

static uint64_t hash_of(const struct explore_selection *selection, const uint8_t *trace_id,
                        const uint8_t *span_id)
{
    uint8_t both[24] = {0};
    memcpy(both, trace_id, 16);
    if (span_id != NULL)
        memcpy(both + 16, span_id, 8);
    return XXH3_64bits_withSeed(both, sizeof(both), selection->seed) | 1;
}

static bool set_has(const struct explore_selection *selection, uint64_t hash)
{
    if (selection->set_places == 0)
        return false;
    size_t mask = selection->set_places - 1;
    size_t at = (hash >> 20) & mask;
    while (selection->set[at] != 0 && selection->set[at] != hash)
        at = (at + 1) & mask;
    return selection->set[at] == hash;
}

static bool set_add(struct explore_selection *selection, uint64_t hash)
{
    if (2 * (selection->set_count + 1) > selection->set_places) {
        uint64_t *old = selection->set;
        size_t count = selection->set_places;
        size_t places = count > 0 ? 2 * count : SET_FIRST;
        if (!budget_try_take(selection->budget, places * sizeof(uint64_t)))
            return false;
        uint64_t *grown = mem_try_zalloc(places * sizeof(grown[0]));
        if (grown == NULL) {
            budget_return(selection->budget, places * sizeof(uint64_t));
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            size_t at = (old[i] >> 20) & (places - 1);
            while (old[i] != 0 && grown[at] != 0)
                at = (at + 1) & (places - 1);
            if (old[i] != 0)
                grown[at] = old[i];
        }
        selection->set = grown;
        selection->set_places = places;
        mem_free(old);
        if (count > 0)
            budget_return(selection->budget, count * sizeof(uint64_t));
    }
    size_t mask = selection->set_places - 1;
    size_t at = (hash >> 20) & mask;
    while (selection->set[at] != 0 && selection->set[at] != hash)
        at = (at + 1) & mask;
    selection->set_count += selection->set[at] == 0;
    selection->set[at] = hash;
    return true;
}

void explore_selection_fini(struct explore_selection *selection)
{
    mem_free(selection->set);
    if (selection->set_places > 0)
        budget_return(selection->budget, selection->set_places * sizeof(uint64_t));
    selection->set = NULL;
    selection->set_places = 0;
    selection->set_count = 0;
}

bool explore_selection_has(const struct explore_selection *selection, const uint8_t *trace_id,
                           const uint8_t *span_id)
{
    switch (selection->mode) {
    case SELECT_ALL:
        return true;
    case SELECT_TRACE:
        return memcmp(selection->trace_id, trace_id, 16) == 0;
    case SELECT_SPANS:
        return set_has(selection, hash_of(selection, trace_id, span_id));
    case SELECT_TRACES:
        return set_has(selection, hash_of(selection, trace_id, NULL));
    }
    return false;
}

bool explore_selection_wants(const struct explore_selection *selection,
                             const struct profile_block *block, uint32_t service)
{
    bool is_outside = block->start_ns <= block->end_ns &&
                      (block->end_ns < selection->start_ns ||
                       (block->start_ns != UINT64_MAX && block->start_ns >= selection->end_ns));
    bool is_of_service = selection->mode == SELECT_ALL && selection->service.data != NULL;
    bool is_of_trace = selection->mode == SELECT_TRACE || selection->is_of_trace;
    bool is_of_set = selection->mode == SELECT_SPANS || selection->mode == SELECT_TRACES;
    return !is_outside && (!is_of_set || selection->set_count > 0) &&
           (!is_of_trace || profile_block_has_trace(block, selection->trace_id)) &&
           (!is_of_service || profile_block_has_service(block, service));
}

/* Rows of a waterfall: a span with what is below it. */
struct subtree {
    uint32_t first;
    uint32_t end;
};

static int compare_subtrees(const void *a, const void *b)
{
    const struct subtree *x = a;
    const struct subtree *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Adds each row once, also where subtrees lie inside of others. False: the answer is an error. */
static bool add_subtrees(struct asking *asking, const struct trace_view *view,
                         struct subtree *subtrees, unsigned count,
                         struct explore_selection *selection)
{
    uint32_t next = 0;
    qsort(subtrees, count, sizeof(subtrees[0]), compare_subtrees);
    for (unsigned i = 0; i < count; i++) {
        for (next = next > subtrees[i].first ? next : subtrees[i].first; next < subtrees[i].end;
             next++) {
            if (next % IDS_PER_LOOK == 0 && explore_is_over(&asking->limit)) {
                asking_fail_by(asking, EXPLORE_TOO_LONG);
                return false;
            }
            if (!set_add(selection, hash_of(selection, selection->trace_id,
                                            (const uint8_t *)&view->rows[next].span_id))) {
                asking_fail_by(asking, EXPLORE_NO_MEMORY);
                return false;
            }
        }
    }
    return true;
}

/* Spans of one trace, by a list of ids, with what is below them. */
static bool select_spans(struct asking *asking, struct slice list, bool has_subtree,
                         struct explore_selection *selection)
{
    struct trace_view *view = has_subtree ? asking_view(asking, selection->trace_id) : NULL;
    struct subtree subtrees[SPANS_NAMED_MAX];
    unsigned subtrees_count = 0;
    unsigned count = 0;
    if (asking->status != 200)
        return false;
    selection->mode = SELECT_SPANS;
    while (list.size > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.size);
        size_t size = comma != NULL ? (size_t)(comma - list.data) : list.size;
        uint64_t span_id;
        if (!explore_read_hex(slice_of(list.data, size), (uint8_t *)&span_id, sizeof(span_id))) {
            asking_fail(asking, 400,
                        "span: expected span ids of 16 hexadecimal digits with commas "
                        "between them");
            return false;
        }
        if (++count > SPANS_NAMED_MAX) {
            asking_fail(asking, 400, "span: expected at most 256 span ids");
            return false;
        }
        size_t used = comma != NULL ? size + 1 : size;
        list = slice_of(list.data + used, list.size - used);
        bool has_room =
            set_add(selection, hash_of(selection, selection->trace_id, (const uint8_t *)&span_id));
        uint32_t row = view != NULL ? trace_view_find(view, span_id) : VIEW_NONE;
        if (row != VIEW_NONE && view->rows[row].duration_ns > selection->longest_ns)
            selection->longest_ns = view->rows[row].duration_ns;
        if (row != VIEW_NONE)
            subtrees[subtrees_count++] =
                (struct subtree){.first = row, .end = row + view->rows[row].subtree};
        if (!has_room) {
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
            return false;
        }
    }
    return subtrees_count == 0 || add_subtrees(asking, view, subtrees, subtrees_count, selection);
}

static int compare_durations(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A list that is charged. */
struct durations {
    uint64_t *items;
    size_t count;
    size_t capacity;
    struct budget *budget;
};

static bool durations_add(struct durations *list, uint64_t duration_ns)
{
    enum { FIRST = 1024 };
    if (list->count == list->capacity) {
        size_t more = list->capacity > 0 ? list->capacity : FIRST;
        if (!budget_try_take(list->budget, more * sizeof(uint64_t)))
            return false;
        uint64_t *grown =
            mem_try_resize(list->items, (list->capacity + more) * sizeof(list->items[0]));
        if (grown == NULL) {
            budget_return(list->budget, more * sizeof(uint64_t));
            return false;
        }
        list->items = grown;
        list->capacity += more;
    }
    list->items[list->count++] = duration_ns;
    return true;
}

static void durations_fini(struct durations *list)
{
    if (list->capacity > 0)
        budget_return(list->budget, list->capacity * sizeof(uint64_t));
    mem_free(list->items);
}

enum speed { SPEED_ANY, SPEED_SLOW, SPEED_OTHERS };

/* Spans of a service and name with what is below them in the same block. */
static bool select_named(struct asking *asking, struct slice name, enum speed speed,
                         struct explore_selection *selection)
{
    struct trace_store *store = &asking->data->traces;
    struct span_row *rows = asking_rows(asking);
    uint32_t wanted = string_table_find(&store->strings, name);
    uint32_t service = string_table_find(&store->strings, selection->service);
    bool is_any = selection->service.data == NULL;
    struct durations durations = {.budget = selection->budget};
    uint64_t bound_ns = 0;
    selection->mode = SELECT_SPANS;
    if (rows == NULL)
        return false;
    if (wanted == 0 || (!is_any && service == 0))
        return true;
    size_t blocks = trace_store_blocks(store);
    for (unsigned pass = speed == SPEED_ANY ? 1 : 0; pass < 2 && asking->status == 200; pass++) {
        for (size_t at = 0; at < blocks && asking->status == 200; at++) {
            struct block_view block = trace_store_block(store, at);
            if (!block_view_has_string(store, &block, wanted))
                continue;
            if (explore_is_over(&asking->limit))
                asking_fail_by(asking, EXPLORE_TOO_LONG);
            if (!trace_store_rows(store, &block, rows))
                continue;
            for (uint32_t i = 0; i < block.spans && asking->status == 200; i++) {
                const struct span_row *row = &rows[i];
                if (row->trace < store->first)
                    continue;
                bool is_one = row->name == wanted && (is_any || row->service == service) &&
                              row->start_ns >= selection->start_ns &&
                              row->start_ns < selection->end_ns;
                if (pass == 0) {
                    if (is_one && !durations_add(&durations, row->duration_ns))
                        asking_fail_by(asking, EXPLORE_NO_MEMORY);
                    continue;
                }
                const uint8_t *trace_id = trace_store_record(store, row->trace)->id;
                if (is_one && speed != SPEED_ANY)
                    is_one = (row->duration_ns >= bound_ns) == (speed == SPEED_SLOW);
                /* Rows ascend by start: parents come first. */
                if (!is_one && row->parent_id != 0)
                    is_one = set_has(
                        selection, hash_of(selection, trace_id, (const uint8_t *)&row->parent_id));
                if (is_one && !set_add(selection, hash_of(selection, trace_id,
                                                          (const uint8_t *)&row->span_id)))
                    asking_fail_by(asking, EXPLORE_NO_MEMORY);
            }
        }
        if (pass == 0 && durations.count > 0 && asking->status == 200) {
            qsort(durations.items, durations.count, sizeof(uint64_t), compare_durations);
            bound_ns = durations.items[(durations.count - 1) * SLOW_PERCENT / 100];
        }
    }
    durations_fini(&durations);
    return asking->status == 200;
}

/* All traces of a root name but one. */
static bool select_others(struct asking *asking, struct slice name,
                          struct explore_selection *selection)
{
    const struct trace_store *store = &asking->data->traces;
    uint64_t except = trace_store_find(store, selection->trace_id);
    uint32_t wanted = string_table_find(&store->strings, name);
    if (name.data == NULL && except != UINT64_MAX)
        wanted = trace_store_record(store, except)->root_name;
    selection->mode = SELECT_TRACES;
    for (uint64_t number = store->first; number < store->next; number++) {
        const struct trace_record *record = trace_store_record(store, number);
        if (number % IDS_PER_LOOK == 0 && explore_is_over(&asking->limit)) {
            asking_fail_by(asking, EXPLORE_TOO_LONG);
            return false;
        }
        if (number == except || !record->has_root || record->root_name != wanted)
            continue;
        if (!set_add(selection, hash_of(selection, record->id, NULL))) {
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
            return false;
        }
    }
    return true;
}

static bool read_time(struct asking *asking, const struct explore_query *query, const char *key,
                      uint64_t *time_ns)
{
    struct slice text = explore_query_get(query, key);
    if (text.size == 0 || explore_read_number(text, time_ns))
        return true;
    asking_fail(asking, 400, "start and end: expected times in unix nanoseconds");
    return false;
}

static struct slice get(const struct explore_query *query, const char *key)
{
    struct slice value = explore_query_get(query, key);
    return value.size > 0 ? value : slice_of(NULL, 0);
}

bool explore_selection_read(struct asking *asking, const struct explore_query *query,
                            struct explore_selection *ret_selection)
{
    struct explore_selection *selection = ret_selection;
    struct slice trace = get(query, "trace");
    struct slice others = get(query, "not-trace");
    struct slice name = get(query, "name");
    struct slice slow = get(query, "slow");
    *selection = (struct explore_selection){.seed = (uint64_t)(random_uniform() * 0x1p53),
                                            .mode = SELECT_ALL,
                                            .service = get(query, "service"),
                                            .budget = asking->data->settings->budget,
                                            .end_ns = UINT64_MAX};
    struct slice id = trace.data != NULL ? trace : others;
    if (id.data != NULL && !explore_read_hex(id, selection->trace_id, 16)) {
        asking_fail(asking, 400, "a trace id has 32 hexadecimal digits");
        return false;
    }
    if (!read_time(asking, query, "start", &selection->start_ns) ||
        !read_time(asking, query, "end", &selection->end_ns))
        return false;
    bool is_read = true;
    if (trace.data != NULL) {
        struct slice spans = get(query, "span");
        selection->mode = SELECT_TRACE;
        selection->is_of_trace = true;
        if (spans.data != NULL)
            is_read =
                select_spans(asking, spans,
                             slice_equal_text(explore_query_get(query, "subtree"), "1"), selection);
    } else if (others.data != NULL) {
        is_read = select_others(asking, name, selection);
    } else if (name.data != NULL) {
        is_read = select_named(asking, name,
                               slow.data == NULL             ? SPEED_ANY
                               : slice_equal_text(slow, "1") ? SPEED_SLOW
                                                             : SPEED_OTHERS,
                               selection);
    }
    if (!is_read)
        explore_selection_fini(selection);
    return is_read;
}
