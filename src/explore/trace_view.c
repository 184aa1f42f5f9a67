/* SPDX-License-Identifier: Apache-2.0 */
/* All steps are linear, but for the sorts by start and, on the critical path, by end. */
#include "src/explore/trace_view.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A span while the tree is built; indices are into the nodes, which are sorted by start. */
struct node {
    struct span_row span;
    uint32_t block;
    uint32_t parent;
    uint32_t child;   /* the first */
    uint32_t sibling; /* the next */
    uint32_t row;     /* VIEW_NONE: not placed yet */
};

static int compare_nodes(const void *a, const void *b)
{
    const struct node *x = a;
    const struct node *y = b;
    if (x->span.start_ns != y->span.start_ns)
        return x->span.start_ns < y->span.start_ns ? -1 : 1;
    if (x->span.duration_ns != y->span.duration_ns)
        return x->span.duration_ns > y->span.duration_ns ? -1 : 1;
    return (x->span.span_id > y->span.span_id) - (x->span.span_id < y->span.span_id);
}

/* Clients choose the ids, often ones that count up: neither those nor any others may collide. */
static uint32_t slot_of(const struct trace_view *view, uint64_t span_id)
{
    return (uint32_t)XXH3_64bits_withSeed(&span_id, sizeof(span_id), view->seed) & view->slots_mask;
}

static uint32_t find_node(const struct trace_view *view, const struct node *nodes, uint64_t span_id)
{
    for (uint32_t at = slot_of(view, span_id); view->slots[at] != 0;
         at = (at + 1) & view->slots_mask)
        if (nodes[view->slots[at] - 1].span.span_id == span_id)
            return view->slots[at] - 1;
    return VIEW_NONE;
}

uint32_t trace_view_find(const struct trace_view *view, uint64_t span_id)
{
    if (view->count == 0)
        return VIEW_NONE;
    for (uint32_t at = slot_of(view, span_id); view->slots[at] != 0;
         at = (at + 1) & view->slots_mask)
        if (view->rows[view->slots[at] - 1].span_id == span_id)
            return view->slots[at] - 1;
    return VIEW_NONE;
}

void trace_view_fini(struct trace_view *view)
{
    mem_free(view->rows);
    mem_free(view->slots);
    mem_free(view->services);
    if (view->charged > 0)
        budget_return(view->budget, view->charged);
    *view = (struct trace_view){.number = 0};
}

/* The first of a list of siblings that is not placed yet; only in circles some are. */
static uint32_t first_left(const struct node *nodes, uint32_t at)
{
    while (at != VIEW_NONE && nodes[at].row != VIEW_NONE)
        at = nodes[at].sibling;
    return at;
}

/* Places the tree below a node in rows, depth first. */
static void place(struct trace_view *view, struct node *nodes, uint32_t top)
{
    uint32_t at = top;
    uint32_t depth = 0;
    for (;;) {
        struct node *node = &nodes[at];
        view->rows[view->count] = (struct view_row){
            .span_id = node->span.span_id,
            .start_ns = node->span.start_ns,
            .duration_ns = node->span.duration_ns,
            .parent = depth > 0 ? nodes[node->parent].row : VIEW_NONE,
            .subtree = 1,
            .depth = depth,
            .service = node->span.service,
            .name = node->span.name,
            .block = node->block,
            .events = node->span.events,
            .links = node->span.links,
            .kind = node->span.kind,
            .status = node->span.status,
            .is_orphan = depth == 0 && node->span.parent_id != 0,
        };
        node->row = view->count++;
        uint32_t next = first_left(nodes, node->child);
        if (next != VIEW_NONE)
            depth++;
        while (next == VIEW_NONE && at != top) {
            next = first_left(nodes, nodes[at].sibling);
            if (next == VIEW_NONE) {
                at = nodes[at].parent;
                depth--;
            }
        }
        if (next == VIEW_NONE)
            return;
        at = next;
    }
}

/* Subtree sizes, and how much of each span its children cover. */
static void measure(struct trace_view *view)
{
    for (uint32_t i = view->count; i-- > 0;)
        if (view->rows[i].parent != VIEW_NONE)
            view->rows[view->rows[i].parent].subtree += view->rows[i].subtree;
    for (uint32_t i = 0; i < view->count; i++) {
        struct view_row *row = &view->rows[i];
        uint64_t end_ns = row->start_ns + row->duration_ns;
        uint64_t covered_to = row->start_ns;
        uint64_t covered = 0;
        uint32_t last = i + row->subtree;
        for (uint32_t child = i + 1; child < last; child += view->rows[child].subtree) {
            uint64_t from = view->rows[child].start_ns;
            uint64_t to = from + view->rows[child].duration_ns;
            from = from > covered_to ? from : covered_to;
            to = to < end_ns ? to : end_ns;
            if (to <= from)
                continue;
            covered += to - from;
            covered_to = to;
        }
        row->self_ns = row->duration_ns - covered;
    }
}

struct ending {
    uint64_t end_ns;
    uint32_t row;
};

static int compare_endings(const void *a, const void *b)
{
    const struct ending *x = a;
    const struct ending *y = b;
    return x->end_ns != y->end_ns ? (x->end_ns < y->end_ns ? 1 : -1)
                                  : (x->row > y->row) - (x->row < y->row);
}

/* Marks what a span waited for: from its end backwards the child that ended last, then the one that
 * ended last before that began, and so on; the same below each of them. Each span is marked once,
 * so endings has room for all rows. */
static void mark_critical(struct trace_view *view, struct ending *endings, uint32_t *stack)
{
    uint32_t depth = 0;
    uint32_t longest = VIEW_NONE;
    for (uint32_t i = 0; i < view->count; i += view->rows[i].subtree)
        if (longest == VIEW_NONE || view->rows[i].duration_ns > view->rows[longest].duration_ns)
            longest = i;
    if (longest != VIEW_NONE)
        stack[depth++] = longest;
    while (depth > 0) {
        uint32_t at = stack[--depth];
        struct view_row *row = &view->rows[at];
        uint64_t until = row->start_ns + row->duration_ns;
        uint32_t count = 0;
        row->is_critical = true;
        for (uint32_t child = at + 1; child < at + row->subtree;
             child += view->rows[child].subtree) {
            uint64_t end_ns = view->rows[child].start_ns + view->rows[child].duration_ns;
            endings[count++] =
                (struct ending){.end_ns = end_ns < until ? end_ns : until, .row = child};
        }
        qsort(endings, count, sizeof(endings[0]), compare_endings);
        for (uint32_t i = 0; i < count; i++) {
            const struct view_row *child = &view->rows[endings[i].row];
            if (endings[i].end_ns > until || child->start_ns >= until)
                continue;
            stack[depth++] = endings[i].row;
            until = child->start_ns;
        }
    }
}

/* Replaces numbers of names by indices into the view's services. */
static bool name_services(struct trace_view *view, const struct trace_store *store)
{
    uint32_t *places = mem_try_zalloc(store->strings.entries_count * sizeof(uint32_t));
    uint32_t capacity = 0;
    if (places == NULL)
        return false;
    for (uint32_t i = 0; i < view->count; i++) {
        struct view_row *row = &view->rows[i];
        uint32_t *of = &places[row->service];
        if (*of == 0) {
            if (view->services_count == capacity) {
                capacity = capacity > 0 ? 2 * capacity : 16;
                view->services = mem_resize(view->services, capacity * sizeof(view->services[0]));
            }
            view->services[view->services_count] = (struct view_service){.name = row->service};
            *of = ++view->services_count;
        }
        row->service = *of - 1;
        view->services[row->service].spans++;
    }
    mem_free(places);
    return true;
}

/* Gathers the trace's spans. */
static enum explore_result gather(struct trace_store *store, uint64_t number,
                                  const struct trace_record *record, struct span_row *rows,
                                  struct node *nodes, const struct explore_limit *limit,
                                  uint32_t *ret_count)
{
    uint32_t count = 0;
    size_t blocks = trace_store_blocks(store);
    for (size_t at = trace_store_block_of(store, record->first_block);
         at < blocks && count < record->spans; at++) {
        struct block_view block = trace_store_block(store, at);
        uint32_t first, end;
        if (!block_view_find(&block, number, &first, &end))
            continue;
        if (explore_is_over(limit))
            return EXPLORE_TOO_LONG;
        if (!trace_store_rows(store, &block, rows))
            continue;
        uint32_t of = (uint32_t)(block.block != NULL ? block.block->number : store->next_block);
        for (uint32_t i = first; i < end && count < record->spans; i++)
            nodes[count++] = (struct node){.span = rows[i],
                                           .block = of,
                                           .parent = VIEW_NONE,
                                           .child = VIEW_NONE,
                                           .sibling = VIEW_NONE,
                                           .row = VIEW_NONE};
    }
    *ret_count = count;
    return EXPLORE_DONE;
}

enum explore_result trace_view_build(struct trace_view *view, struct trace_store *store,
                                     uint64_t number, struct span_row *rows, struct budget *budget,
                                     const struct explore_limit *limit)
{
    const struct trace_record *record = trace_store_record(store, number);
    uint32_t spans = record->spans;
    uint32_t places = 16;
    while (places < 2 * (uint64_t)spans && places < UINT32_MAX / 2)
        places *= 2;
    uint64_t lasting = (uint64_t)spans * sizeof(struct view_row) + places * sizeof(uint32_t);
    uint64_t passing =
        (uint64_t)spans * (sizeof(struct node) + sizeof(struct ending) + sizeof(uint32_t));
    trace_view_fini(view);
    if (!budget_try_take(budget, lasting + passing))
        return EXPLORE_NO_MEMORY;
    struct node *nodes = mem_try_alloc(spans * sizeof(nodes[0]));
    view->rows = mem_try_alloc(spans * sizeof(view->rows[0]));
    view->slots = mem_try_zalloc(places * sizeof(uint32_t));
    view->slots_mask = places - 1;
    view->seed = (uint64_t)(random_uniform() * 0x1p53);
    view->budget = budget;
    view->charged = lasting;
    enum explore_result result = nodes != NULL && view->rows != NULL && view->slots != NULL
                                     ? EXPLORE_DONE
                                     : EXPLORE_NO_MEMORY;
    uint32_t count = 0;
    if (result == EXPLORE_DONE)
        result = gather(store, number, record, rows, nodes, limit, &count);
    if (result == EXPLORE_DONE) {
        qsort(nodes, count, sizeof(nodes[0]), compare_nodes);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = slot_of(view, nodes[i].span.span_id);
            while (view->slots[at] != 0 &&
                   nodes[view->slots[at] - 1].span.span_id != nodes[i].span.span_id)
                at = (at + 1) & view->slots_mask;
            if (view->slots[at] == 0)
                view->slots[at] = i + 1;
        }
        /* Backwards, so that lists of children ascend by start. */
        for (uint32_t i = count; i-- > 0;) {
            uint64_t parent_id = nodes[i].span.parent_id;
            uint32_t parent = parent_id != 0 ? find_node(view, nodes, parent_id) : VIEW_NONE;
            if (parent == VIEW_NONE || parent == i)
                continue;
            nodes[i].parent = parent;
            nodes[i].sibling = nodes[parent].child;
            nodes[parent].child = i;
        }
        for (uint32_t i = 0; i < count; i++)
            if (nodes[i].parent == VIEW_NONE)
                place(view, nodes, i);
        for (uint32_t i = 0; i < count; i++)
            if (nodes[i].row == VIEW_NONE)
                place(view, nodes, i); /* a circle */
        assert(view->count == count);
        memset(view->slots, 0, places * sizeof(uint32_t));
        view->start_ns = UINT64_MAX;
        for (uint32_t i = 0; i < count; i++) {
            const struct view_row *row = &view->rows[i];
            uint32_t at = slot_of(view, row->span_id);
            while (view->slots[at] != 0 && view->rows[view->slots[at] - 1].span_id != row->span_id)
                at = (at + 1) & view->slots_mask;
            if (view->slots[at] == 0)
                view->slots[at] = i + 1; /* of several with one id the first is found */
            if (row->start_ns < view->start_ns)
                view->start_ns = row->start_ns;
            if (row->start_ns + row->duration_ns > view->end_ns)
                view->end_ns = row->start_ns + row->duration_ns;
        }
        measure(view);
        struct ending *endings = mem_try_alloc(count * sizeof(endings[0]));
        uint32_t *stack = mem_try_alloc(count * sizeof(stack[0]));
        if (endings != NULL && stack != NULL && name_services(view, store))
            mark_critical(view, endings, stack);
        else
            result = EXPLORE_NO_MEMORY;
        mem_free(endings);
        mem_free(stack);
    }
    mem_free(nodes);
    budget_return(budget, passing);
    if (result != EXPLORE_DONE || count == 0) {
        trace_view_fini(view);
        return result == EXPLORE_DONE ? EXPLORE_NO_MEMORY : result;
    }
    view->number = number;
    view->spans = spans;
    return EXPLORE_DONE;
}
