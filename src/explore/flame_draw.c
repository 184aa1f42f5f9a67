/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what a tree has added up: the tree, a function's callers and callees, the functions by
 * weight, folded stacks. Nothing here recurses: stacks may be thousands of frames deep. Owner's
 * thread. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/explore/flame_parts.h"
#include "src/otlp/json/json_output.h"
#include "src/profiles/pprof/otlp_text.h"

enum {
    WIDTH_DEFAULT = 1600,
    TOP_ROWS_MAX = 1000,
    PATHS_MAX = 2,
    ROW_BYTES_MIN = 10,      /* "[1,2,0,0]," */
    OVERSHOOT_MAX = 8 << 10, /* what is written at once, before its size is looked at: a name */
};

/* What a node has: by itself, and with all below it. */
struct sums {
    int64_t self[FLAME_SIDES_MAX];
    int64_t total[FLAME_SIDES_MAX];
};

/* A node's place among the others. */
struct family {
    uint32_t first; /* child; 0: none */
    uint32_t next;  /* child of the same parent */
};

/* A trie with its sums, and what of it is drawn. */
struct graph {
    const struct flame_trie *trie;
    struct scratch sums;     /* struct sums by node */
    struct scratch order;    /* uint32_t: nodes, parents first */
    struct scratch families; /* struct family by node */
    struct scratch rows;     /* struct row: parents first, children beside each other */
    uint32_t root_name;
    size_t rows_count;
    uint64_t frames;      /* that have a value, below the root */
    uint64_t frames_wide; /* of those that are drawn */
    uint64_t frames_drawn;
    uint32_t deepest;  /* of what is drawn */
    bool is_cut;       /* deeper than the limit of the attempt */
    bool is_too_large; /* more frames than can fit */
};

/* The frames of a node that are drawn. */
struct row {
    uint32_t node;
    uint32_t frames;
    uint32_t depth;    /* of the last */
    uint32_t parent;   /* row */
    uint32_t first;    /* of the rows below; all of them are drawn only if `frames` are */
    uint32_t children; /* how many rows they are */
    int64_t weight;    /* children are sorted by it */
    struct slice name; /* then by this, of the first frame */
};

struct drawing {
    struct flame_tree *tree;
    const struct flame_drawing *wanted;
    struct json_output *output;
    unsigned sides;
    size_t bytes_end; /* the output's size must not go beyond */
    struct graph graphs[PATHS_MAX];
    size_t graphs_count;
    struct flame_trie made[PATHS_MAX]; /* of the sandwich */
    struct scratch shown;              /* uint32_t by name: its place in "names", plus 1 */
    struct scratch names;              /* uint32_t: names in the order of their places */
    size_t names_count;
    struct scratch top; /* struct top_row by name */
    double pixels_min;  /* narrower nodes are left out */
    uint32_t depth_max;
};

static void *room(struct drawing *drawing, struct scratch *scratch, size_t bytes)
{
    return flame_room(&drawing->tree->memory, scratch, bytes);
}

/* Whether that many more bytes fit. */
static bool fits(const struct drawing *drawing, size_t bytes)
{
    return drawing->output->buffer->size + bytes <= drawing->bytes_end;
}

static struct sums *sums_of(const struct graph *graph)
{
    return graph->sums.memory;
}

/* Adds up totals, from the leaves to the root. */
static enum flame_result add_up(struct drawing *drawing, struct graph *graph)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    struct flame_memory *memory = &drawing->tree->memory;
    struct sums *sums = sums_of(graph);
    uint32_t count = graph->trie->count;
    struct family *families = room(drawing, &graph->families, count * sizeof(families[0]));
    if (families == NULL || !flame_trie_order(graph->trie, memory, &graph->order))
        return FLAME_NO_MEMORY;
    const uint32_t *order = graph->order.memory;
    for (uint32_t node = 0; node < count; node++)
        for (unsigned side = 0; side < drawing->sides; side++)
            sums[node].total[side] = sums[node].self[side];
    graph->frames = 0;
    for (uint32_t i = count - 1; i > 0; i--) {
        const struct flame_node *node = &nodes[order[i]];
        const struct sums *from = &sums[order[i]];
        struct sums *to = &sums[node->parent];
        bool has_value = false;
        for (unsigned side = 0; side < drawing->sides; side++) {
            to->total[side] = flame_sum(to->total[side], from->total[side]);
            has_value |= from->total[side] != 0;
        }
        graph->frames += has_value ? node->size : 0;
        families[order[i]].next = families[node->parent].first;
        families[node->parent].first = order[i];
        if (flame_must_stop(drawing->tree, 1))
            return FLAME_STOPPED;
    }
    return FLAME_ADDED;
}

/* The graph of the samples as they are. */
static enum flame_result whole_graph(struct drawing *drawing, struct graph *graph)
{
    const struct flame_type_row *row = flame_tree_row(drawing->tree);
    const struct flame_weight *weights = row != NULL ? row->weights.memory : NULL;
    size_t weights_count = row != NULL ? row->weights.bytes / sizeof(weights[0]) : 0;
    graph->trie = &drawing->tree->trie;
    struct sums *sums = room(drawing, &graph->sums, graph->trie->count * sizeof(sums[0]));
    if (sums == NULL)
        return FLAME_NO_MEMORY;
    for (uint32_t node = 0; node < graph->trie->count; node++)
        for (unsigned side = 0; side < drawing->sides; side++) {
            size_t place = (size_t)node * drawing->sides + side;
            sums[node].self[side] = place < weights_count ? weights[place].value : 0;
        }
    return add_up(drawing, graph);
}

/* Adds one side's or both sides' values to those that a node of a made graph has itself. */
static bool add_self(struct drawing *drawing, struct graph *graph, uint32_t node,
                     const int64_t values[])
{
    struct sums *sums = room(drawing, &graph->sums, (node + (size_t)1) * sizeof(sums[0]));
    if (sums == NULL)
        return false;
    for (unsigned side = 0; side < drawing->sides; side++)
        sums[node].self[side] = flame_sum(sums[node].self[side], values[side]);
    return true;
}

/* Names from the one above a frame of a node up to the root. Returns how many. */
static size_t names_above(const struct flame_trie *trie, uint32_t node, uint32_t frame,
                          uint32_t names[FLAME_DEPTH_MAX])
{
    const struct flame_node *nodes = flame_trie_nodes(trie);
    size_t count = 0;
    for (;;) {
        const uint32_t *from = flame_trie_names(trie) + nodes[node].begin;
        while (frame > 0)
            names[count++] = from[--frame];
        node = nodes[node].parent;
        if (node == 0)
            return count;
        frame = nodes[node].size;
    }
}

/* Makes the second and third graph of the first: below all outermost frames of the function, and
 * above them, upside down. A stack counts once, however often the function is on it. */
static enum flame_result sandwich_graphs(struct drawing *drawing, const struct graph *whole,
                                         uint32_t function, struct graph made[PATHS_MAX])
{
    struct flame_memory *memory = &drawing->tree->memory;
    const struct flame_node *nodes = flame_trie_nodes(whole->trie);
    const uint32_t *order = whole->order.memory;
    const struct sums *sums = sums_of(whole);
    struct graph *callers = &made[0];
    struct graph *callees = &made[1];
    struct scratch copies = {.bytes = 0}; /* by node: its node in callees, plus 1 */
    struct scratch paths = {.bytes = 0};
    enum flame_result result = FLAME_NO_MEMORY;
    uint32_t count = whole->trie->count;
    uint32_t *copy = flame_room(memory, &copies, count * sizeof(copy[0]));
    uint32_t *path = flame_room(memory, &paths, FLAME_DEPTH_MAX * sizeof(path[0]));
    bool has_room = copy != NULL && path != NULL;
    for (size_t i = 0; i < PATHS_MAX; i++) {
        flame_trie_init(&drawing->made[i]);
        made[i].trie = &drawing->made[i];
        made[i].root_name = function;
        has_room = has_room && room(drawing, &made[i].sums, sizeof(struct sums)) != NULL;
    }
    for (uint32_t i = 1; i < count && has_room; i++) {
        const struct flame_node *node = &nodes[order[i]];
        const uint32_t *names = flame_trie_names(whole->trie) + node->begin;
        uint32_t from = copy[node->parent];
        uint32_t at = 0;
        uint64_t steps = node->size;
        while (from == 0 && at < node->size && names[at] != function)
            at++;
        if (from == 0 && at < node->size) {
            size_t above = names_above(whole->trie, order[i], at, path);
            uint32_t end = flame_trie_walk(&drawing->made[0], memory, 0, path, above);
            has_room =
                end != FLAME_NO_NODE && add_self(drawing, callers, end, sums[order[i]].total);
            steps += above;
            at++;
            from = 1; /* the root of the callees */
        }
        if (from != 0 && has_room) {
            uint32_t end =
                flame_trie_walk(&drawing->made[1], memory, from - 1, names + at, node->size - at);
            has_room = end != FLAME_NO_NODE && add_self(drawing, callees, end, sums[order[i]].self);
            copy[order[i]] = end + 1;
        }
        if (flame_must_stop(drawing->tree, steps)) {
            result = FLAME_STOPPED;
            goto done;
        }
    }
    /* Nodes without a value of their own have no sums yet. */
    for (size_t i = 0; i < PATHS_MAX; i++)
        if (!has_room ||
            room(drawing, &made[i].sums, made[i].trie->count * sizeof(struct sums)) == NULL)
            goto done;
    result = add_up(drawing, callers);
    if (result == FLAME_ADDED)
        result = add_up(drawing, callees);
done:
    flame_release(memory, &copies);
    flame_release(memory, &paths);
    return result;
}

/* The largest part that the sums are of the whole, of both sides. */
static double share(const struct drawing *drawing, const int64_t sums[], const int64_t whole[])
{
    double most = 0;
    for (unsigned side = 0; side < drawing->sides; side++)
        if (whole[side] > 0 && (double)sums[side] / (double)whole[side] > most)
            most = (double)sums[side] / (double)whole[side];
    return most;
}

static int64_t both(const struct drawing *drawing, const int64_t sums[])
{
    return drawing->sides > 1 ? flame_sum(sums[0], sums[1]) : sums[0];
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *left = a;
    const struct row *right = b;
    if (left->weight != right->weight)
        return left->weight < right->weight ? 1 : -1;
    return slice_compare(left->name, right->name);
}

/* Adds the row of a node that is wide enough, below that row. False: no memory, or no room. */
static bool add_row(struct drawing *drawing, struct graph *graph, uint32_t node, uint32_t parent)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct sums *sums = &sums_of(graph)[node];
    struct row *rows = room(drawing, &graph->rows, (graph->rows_count + 1) * sizeof(rows[0]));
    if (rows == NULL)
        return false;
    uint32_t above = rows[parent].depth;
    uint32_t left = drawing->depth_max - above;
    uint32_t frames = nodes[node].size < left ? nodes[node].size : left;
    graph->is_cut |= frames < nodes[node].size;
    if (frames == 0)
        return true;
    rows[parent].children++;
    rows[graph->rows_count++] = (struct row){
        .node = node,
        .frames = frames,
        .depth = above + frames,
        .parent = parent,
        .weight = both(drawing, sums->total),
        .name = flame_name_at(drawing->tree, flame_trie_names(graph->trie)[nodes[node].begin]),
    };
    bool has_value = sums->total[0] != 0 || (drawing->sides > 1 && sums->total[1] != 0);
    graph->frames_wide += has_value ? frames : 0;
    graph->frames_drawn += frames;
    if (above + frames > graph->deepest)
        graph->deepest = above + frames;
    graph->is_too_large = !fits(drawing, graph->frames_drawn * ROW_BYTES_MIN);
    return !graph->is_too_large;
}

/* Chooses the frames that are drawn, from the root on, and sorts them. */
static enum flame_result prune(struct drawing *drawing, struct graph *graph)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct family *families = graph->families.memory;
    const struct sums *sums = sums_of(graph);
    unsigned width = drawing->wanted->width > 0 ? drawing->wanted->width : WIDTH_DEFAULT;
    struct row *rows = room(drawing, &graph->rows, sizeof(rows[0]));
    if (rows == NULL)
        return FLAME_NO_MEMORY;
    rows[0] = (struct row){.node = 0};
    graph->rows_count = 1;
    graph->frames_wide = 0;
    graph->frames_drawn = 0;
    graph->is_cut = false;
    graph->is_too_large = false;
    graph->deepest = 0;
    for (uint32_t at = 0; at < graph->rows_count; at++) {
        uint32_t above = rows[at].node;
        rows[at].first = (uint32_t)graph->rows_count;
        bool is_whole = above == 0 || rows[at].frames == nodes[above].size;
        uint32_t child = is_whole ? families[above].first : 0;
        uint64_t steps = rows[at].frames;
        for (; child != 0; child = families[child].next, steps++) {
            bool is_wide =
                share(drawing, sums[child].total, sums[0].total) * width >= drawing->pixels_min;
            if (is_wide && !add_row(drawing, graph, child, at))
                return graph->is_too_large ? FLAME_ADDED : FLAME_NO_MEMORY;
        }
        rows = graph->rows.memory;
        if (rows[at].children > 1)
            qsort(rows + rows[at].first, rows[at].children, sizeof(rows[0]), compare_rows);
        if (flame_must_stop(drawing->tree, steps))
            return FLAME_STOPPED;
    }
    return FLAME_ADDED;
}

/* The next row in depth-first order; 0 is the root, and the end. */
static uint32_t next_row(const struct graph *graph, uint32_t at)
{
    const struct row *rows = graph->rows.memory;
    if (rows[at].children > 0)
        return rows[at].first;
    while (at > 0) {
        const struct row *parent = &rows[rows[at].parent];
        if (at + 1 < parent->first + parent->children)
            return at + 1;
        at = rows[at].parent;
    }
    return 0;
}

/* False: no memory. */
static bool show_name(struct drawing *drawing, uint32_t name)
{
    uint32_t *shown = room(drawing, &drawing->shown, drawing->tree->names_count * sizeof(shown[0]));
    if (shown == NULL)
        return false;
    if (shown[name] == 0) {
        uint32_t *names =
            room(drawing, &drawing->names, (drawing->names_count + 1) * sizeof(names[0]));
        if (names == NULL)
            return false;
        names[drawing->names_count++] = name;
        shown[name] = (uint32_t)drawing->names_count;
    }
    return true;
}

static void forget_names(struct drawing *drawing)
{
    const uint32_t *names = drawing->names.memory;
    uint32_t *shown = drawing->shown.memory;
    for (size_t i = 0; i < drawing->names_count; i++)
        shown[names[i]] = 0;
    drawing->names_count = 0;
}

static void put_text(struct json_output *output, const char *text)
{
    json_output_put(output, text, strlen(text));
}

/* False: they do not fit. */
static bool put_names(struct drawing *drawing)
{
    struct json_output *output = drawing->output;
    const uint32_t *names = drawing->names.memory;
    put_text(output, ",\"names\":[");
    for (size_t i = 0; i < drawing->names_count; i++) {
        struct slice name =
            otlp_text_cut(flame_name_at(drawing->tree, names[i]), FLAME_NAME_BYTES_MAX);
        if (i > 0)
            json_output_put_byte(output, ',');
        json_output_put_string(output, name);
        if (!fits(drawing, 0))
            return false;
    }
    json_output_put_byte(output, ']');
    return true;
}

static void put_sides(const struct drawing *drawing, const int64_t sums[])
{
    for (unsigned side = 0; side < drawing->sides; side++) {
        json_output_put_byte(drawing->output, ',');
        json_output_put_signed(drawing->output, sums[side]);
    }
}

static bool put_row(struct drawing *drawing, uint32_t name, const int64_t total[],
                    const int64_t self[], uint32_t children)
{
    struct json_output *output = drawing->output;
    const uint32_t *shown = drawing->shown.memory;
    json_output_put_byte(output, '[');
    json_output_put_unsigned(output, shown[name] - 1);
    put_sides(drawing, total);
    put_sides(drawing, self);
    json_output_put_byte(output, ',');
    json_output_put_unsigned(output, children);
    json_output_put_byte(output, ']');
    return fits(drawing, 0);
}

static bool put_graph(struct drawing *drawing, struct graph *graph, const char *key)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct row *rows = graph->rows.memory;
    put_text(drawing->output, key);
    bool is_there = put_row(drawing, graph->root_name, sums_of(graph)[0].total,
                            sums_of(graph)[0].self, rows[0].children);
    for (uint32_t at = next_row(graph, 0); is_there && at > 0; at = next_row(graph, at)) {
        const struct row *row = &rows[at];
        const struct flame_node *node = &nodes[row->node];
        const struct sums *sums = &sums_of(graph)[row->node];
        const uint32_t *names = flame_trie_names(graph->trie) + node->begin;
        for (uint32_t i = 0; is_there && i < row->frames; i++) {
            static const int64_t nothing[FLAME_SIDES_MAX] = {0};
            bool is_end = i + 1 == node->size;
            bool is_last = i + 1 == row->frames;
            json_output_put_byte(drawing->output, ',');
            is_there = put_row(drawing, names[i], sums->total, is_end ? sums->self : nothing,
                               is_last ? row->children : 1);
        }
    }
    json_output_put_byte(drawing->output, ']');
    return is_there && fits(drawing, 0);
}

/* Gives numbers to the names that a graph needs. False: no memory. */
static bool show_names(struct drawing *drawing, const struct graph *graph)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct row *rows = graph->rows.memory;
    bool is_there = show_name(drawing, graph->root_name);
    for (uint32_t at = next_row(graph, 0); is_there && at > 0; at = next_row(graph, at)) {
        const uint32_t *names = flame_trie_names(graph->trie) + nodes[rows[at].node].begin;
        for (uint32_t i = 0; is_there && i < rows[at].frames; i++)
            is_there = show_name(drawing, names[i]);
    }
    return is_there;
}

/* One attempt to write the graphs within the limit. False: they do not fit. */
static bool try_graphs(struct drawing *drawing, enum flame_result *ret_result)
{
    static const char *const tree_keys[] = {",\"tree\":["};
    static const char *const sandwich_keys[] = {",\"callers\":[", ",\"callees\":["};
    const char *const *keys = drawing->graphs_count > 1 ? sandwich_keys : tree_keys;
    uint64_t pruned = 0;
    bool is_cut = drawing->tree->is_cut;
    forget_names(drawing);
    for (size_t i = 0; i < drawing->graphs_count; i++) {
        struct graph *graph = &drawing->graphs[i];
        *ret_result = prune(drawing, graph);
        if (*ret_result != FLAME_ADDED)
            return true;
        if (graph->is_too_large)
            return false;
        if (!show_names(drawing, graph)) {
            *ret_result = FLAME_NO_MEMORY;
            return true;
        }
        pruned += graph->frames - graph->frames_wide;
        is_cut |= graph->is_cut;
    }
    if (!put_names(drawing))
        return false;
    for (size_t i = 0; i < drawing->graphs_count; i++)
        if (!put_graph(drawing, &drawing->graphs[i], keys[i]))
            return false;
    put_text(drawing->output, ",\"pruned\":");
    json_output_put_unsigned(drawing->output, pruned);
    put_text(drawing->output, ",\"truncatedDepth\":");
    put_text(drawing->output, is_cut ? "true" : "false");
    return fits(drawing, 0);
}

/* The depth of the last attempt. */
static uint32_t deepest(const struct drawing *drawing)
{
    uint32_t most = 0;
    for (size_t i = 0; i < drawing->graphs_count; i++)
        if (drawing->graphs[i].deepest > most)
            most = drawing->graphs[i].deepest;
    return most < drawing->depth_max ? most : drawing->depth_max;
}

/* Writes the graphs; what is left out grows until they fit: first narrow nodes, then deep ones. */
static enum flame_result write_graphs(struct drawing *drawing)
{
    enum { PIXELS_MOST = 64 };
    enum flame_result result = FLAME_ADDED;
    size_t mark = drawing->output->buffer->size;
    drawing->pixels_min = 0.5;
    drawing->depth_max = FLAME_DEPTH_MAX;
    while (!try_graphs(drawing, &result)) {
        if (drawing->output->has_failed || drawing->depth_max == 0)
            return FLAME_NO_MEMORY;
        drawing->output->buffer->size = mark;
        if (drawing->pixels_min < PIXELS_MOST)
            drawing->pixels_min *= 2;
        else
            drawing->depth_max = deepest(drawing) / 4 * 3;
    }
    return result;
}

struct top_row {
    uint32_t name;
    uint32_t active; /* on the path that is being walked */
    struct sums sums;
    uint64_t samples;
    double share;
    struct slice text;
};

static int compare_top(const void *a, const void *b)
{
    const struct top_row *left = a;
    const struct top_row *right = b;
    if (left->share != right->share)
        return left->share < right->share ? 1 : -1;
    if (left->sums.total[0] != right->sums.total[0])
        return left->sums.total[0] < right->sums.total[0] ? 1 : -1;
    return slice_compare(left->text, right->text);
}

/* Adds a node to its functions, and marks them; those that are marked count already. */
static void enter_node(const struct drawing *drawing, const struct graph *graph, uint32_t number,
                       uint64_t samples, struct top_row *top)
{
    const struct flame_node *node = &flame_trie_nodes(graph->trie)[number];
    const uint32_t *names = flame_trie_names(graph->trie) + node->begin;
    const struct sums *sums = &sums_of(graph)[number];
    for (uint32_t i = 0; i < node->size; i++) {
        struct top_row *function = &top[names[i]];
        bool is_end = i + 1 == node->size;
        for (unsigned side = 0; side < drawing->sides; side++) {
            int64_t *self = &function->sums.self[side];
            int64_t *total = &function->sums.total[side];
            *self = is_end ? flame_sum(*self, sums->self[side]) : *self;
            *total = function->active == 0 ? flame_sum(*total, sums->total[side]) : *total;
        }
        function->samples += function->active == 0 ? samples : 0;
        function->active++;
    }
}

static void leave_node(const struct graph *graph, uint32_t number, struct top_row *top)
{
    const struct flame_node *node = &flame_trie_nodes(graph->trie)[number];
    const uint32_t *names = flame_trie_names(graph->trie) + node->begin;
    for (uint32_t i = 0; i < node->size; i++)
        top[names[i]].active--;
}

/* Walks the whole tree, with the functions on the path marked, so that recursion counts once. */
static enum flame_result add_functions(struct drawing *drawing, const struct graph *graph,
                                       struct top_row *top)
{
    const struct flame_type_row *row = flame_tree_row(drawing->tree);
    const struct flame_weight *weights = row != NULL ? row->weights.memory : NULL;
    size_t weights_count = row != NULL ? row->weights.bytes / sizeof(weights[0]) : 0;
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct family *families = graph->families.memory;
    const uint32_t *order = graph->order.memory;
    struct scratch counts = {.bytes = 0};
    uint32_t count = graph->trie->count;
    uint64_t *samples = room(drawing, &counts, count * sizeof(samples[0]));
    if (samples == NULL)
        return FLAME_NO_MEMORY;
    for (uint32_t i = count - 1; i > 0; i--) {
        for (unsigned side = 0; side < drawing->sides; side++) {
            size_t place = (size_t)order[i] * drawing->sides + side;
            samples[order[i]] += place < weights_count ? weights[place].samples : 0;
        }
        samples[nodes[order[i]].parent] += samples[order[i]];
    }
    bool has_time = true;
    uint32_t node = families[0].first;
    while (node != 0 && has_time) {
        enter_node(drawing, graph, node, samples[node], top);
        has_time = !flame_must_stop(drawing->tree, nodes[node].size);
        uint32_t next = families[node].first;
        while (next == 0 && node != 0) {
            leave_node(graph, node, top);
            next = families[node].next;
            node = nodes[node].parent;
        }
        node = next;
    }
    flame_release(&drawing->tree->memory, &counts);
    return has_time ? FLAME_ADDED : FLAME_STOPPED;
}

static enum flame_result write_top(struct drawing *drawing, const struct graph *graph)
{
    const struct flame_tree *tree = drawing->tree;
    struct json_output *output = drawing->output;
    struct top_row *top = room(drawing, &drawing->top, tree->names_count * sizeof(top[0]));
    size_t mark = output->buffer->size;
    if (top == NULL)
        return FLAME_NO_MEMORY;
    enum flame_result result = add_functions(drawing, graph, top);
    if (result != FLAME_ADDED)
        return result;
    size_t count = 0;
    for (uint32_t name = 1; name < tree->names_count; name++) {
        const struct sums *sums = &top[name].sums;
        bool has_value = false;
        for (unsigned side = 0; side < drawing->sides; side++)
            has_value |= sums->self[side] != 0 || sums->total[side] != 0;
        if (!has_value)
            continue;
        top[count] = top[name];
        top[count].name = name;
        top[count].share = share(drawing, sums->self, sums_of(graph)[0].total);
        top[count].text = flame_name_at(tree, name);
        count++;
    }
    if (count > 0)
        qsort(top, count, sizeof(top[0]), compare_top);
    for (size_t rows = count < TOP_ROWS_MAX ? count : TOP_ROWS_MAX;; rows /= 2) {
        forget_names(drawing);
        if (!show_name(drawing, 0))
            return FLAME_NO_MEMORY;
        for (size_t i = 0; i < rows; i++)
            if (!show_name(drawing, top[i].name))
                return FLAME_NO_MEMORY;
        bool is_there = put_names(drawing);
        const uint32_t *shown = drawing->shown.memory;
        put_text(output, ",\"top\":[");
        for (size_t i = 0; is_there && i < rows; i++) {
            if (i > 0)
                json_output_put_byte(output, ',');
            json_output_put_byte(output, '[');
            json_output_put_unsigned(output, shown[top[i].name] - 1);
            put_sides(drawing, top[i].sums.total);
            put_sides(drawing, top[i].sums.self);
            if (drawing->sides == 1) {
                json_output_put_byte(output, ',');
                json_output_put_unsigned(output, top[i].samples);
            }
            json_output_put_byte(output, ']');
            is_there = fits(drawing, 0);
        }
        put_text(output, "],\"pruned\":");
        json_output_put_unsigned(output, count - rows);
        put_text(output, ",\"truncatedDepth\":");
        put_text(output, tree->is_cut ? "true" : "false");
        if ((is_there && fits(drawing, 0)) || output->has_failed)
            return output->has_failed ? FLAME_NO_MEMORY : FLAME_ADDED;
        if (rows == 0)
            return FLAME_NO_MEMORY;
        output->buffer->size = mark;
    }
}

static void put_counts(struct json_output *output, int64_t total, uint64_t samples)
{
    put_text(output, "\"samples\":");
    json_output_put_unsigned(output, samples);
    put_text(output, ",\"total\":");
    json_output_put_signed(output, total);
}

static void put_type_counts(const struct drawing *drawing, const struct flame_type *type)
{
    struct json_output *output = drawing->output;
    if (drawing->sides == 1) {
        put_counts(output, type->total[0], type->samples[0]);
        return;
    }
    put_text(output, "\"a\":{");
    put_counts(output, type->total[0], type->samples[0]);
    put_text(output, "},\"b\":{");
    put_counts(output, type->total[1], type->samples[1]);
    put_text(output, "}");
}

/* In steps of 5 above 10, since it is not known better. */
static unsigned flame_margin(uint64_t samples)
{
    enum { WHOLE = 100, FINE_MAX = 10, STEP = 5 };
    double margin = samples > 0 ? WHOLE / sqrt((double)samples) : WHOLE;
    return margin > FINE_MAX ? STEP * (unsigned)ceil(margin / STEP) : (unsigned)ceil(margin);
}

/* Everything before the names. */
static void put_head(const struct drawing *drawing)
{
    static const struct flame_type none = {.type = {.size = 0}};
    struct json_output *output = drawing->output;
    const struct flame_type *type = flame_tree_type(drawing->tree);
    const struct flame_type *types;
    size_t count = flame_tree_types(drawing->tree, &types);
    if (type == NULL)
        type = &none;
    uint64_t samples = type->samples[0] + type->samples[1];
    put_text(output, "\"type\":");
    json_output_put_string(output,
                           type->type.data != NULL ? type->type : drawing->tree->settings.type);
    put_text(output, ",\"unit\":");
    json_output_put_string(output, type->unit);
    put_text(output, ",");
    put_counts(output, flame_sum(type->total[0], type->total[1]), samples);
    if (drawing->sides > 1) {
        put_text(output, ",");
        put_type_counts(drawing, type);
    }
    put_text(output, ",\"confidence\":{\"samples\":");
    json_output_put_unsigned(output, samples);
    put_text(output, ",\"percent\":");
    json_output_put_unsigned(output, flame_margin(samples));
    put_text(output, "},\"types\":[");
    for (size_t i = 0; i < count; i++) {
        put_text(output, i > 0 ? ",{\"type\":" : "{\"type\":");
        json_output_put_string(output, types[i].type);
        put_text(output, ",\"unit\":");
        json_output_put_string(output, types[i].unit);
        put_text(output, ",");
        put_type_counts(drawing, &types[i]);
        put_text(output, "}");
    }
    put_text(output, "]");
}

static void drawing_fini(struct drawing *drawing, struct graph *whole)
{
    struct flame_memory *memory = &drawing->tree->memory;
    for (size_t i = 0; i <= PATHS_MAX; i++) {
        struct graph *graph = i < PATHS_MAX ? &drawing->graphs[i] : whole;
        flame_release(memory, &graph->sums);
        flame_release(memory, &graph->order);
        flame_release(memory, &graph->families);
        flame_release(memory, &graph->rows);
    }
    for (size_t i = 0; i < PATHS_MAX; i++)
        flame_trie_fini(&drawing->made[i], memory);
    flame_release(memory, &drawing->shown);
    flame_release(memory, &drawing->names);
    flame_release(memory, &drawing->top);
}

enum flame_result flame_tree_write(struct flame_tree *tree, const struct flame_drawing *wanted,
                                   struct json_output *output)
{
    struct drawing drawing = {
        .tree = tree, .wanted = wanted, .output = output, .sides = tree->settings.sides};
    struct graph whole = {.trie = NULL};
    if (output->buffer == NULL || output->has_failed)
        return FLAME_NO_MEMORY;
    size_t left = output->bytes_max - output->buffer->size;
    left = left > OVERSHOOT_MAX ? left - OVERSHOOT_MAX : 0;
    drawing.bytes_end =
        output->buffer->size + (wanted->bytes_max < left ? wanted->bytes_max : left);
    put_head(&drawing);
    enum flame_result result = whole_graph(&drawing, &whole);
    if (result == FLAME_ADDED && wanted->view == FLAME_VIEW_TOP) {
        result = write_top(&drawing, &whole);
    } else if (result == FLAME_ADDED && wanted->view == FLAME_VIEW_SANDWICH) {
        drawing.graphs_count = PATHS_MAX;
        result = sandwich_graphs(&drawing, &whole, flame_name_find(tree, wanted->function),
                                 drawing.graphs);
    } else if (result == FLAME_ADDED) {
        drawing.graphs[0] = whole;
        drawing.graphs_count = 1;
        whole = (struct graph){.trie = NULL};
    }
    if (result == FLAME_ADDED && wanted->view != FLAME_VIEW_TOP)
        result = write_graphs(&drawing);
    drawing_fini(&drawing, &whole);
    return output->has_failed ? FLAME_NO_MEMORY : result;
}

/* Writes a name; ";" and line ends would end it. False: no memory. */
static bool put_folded(struct json_output *output, struct slice name)
{
    uint8_t *to = json_output_reserve(output, name.size);
    if (to == NULL)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        to[i] = byte == ';' ? ':' : byte == '\n' || byte == '\r' ? ' ' : byte;
    }
    output->buffer->size += name.size;
    return true;
}

enum flame_result flame_tree_write_folded(struct flame_tree *tree, struct json_output *output)
{
    const struct flame_type_row *row = flame_tree_row(tree);
    const struct flame_weight *weights = row != NULL ? row->weights.memory : NULL;
    size_t weights_count = row != NULL ? row->weights.bytes / sizeof(weights[0]) : 0;
    const struct flame_node *nodes = flame_trie_nodes(&tree->trie);
    uint32_t path[FLAME_DEPTH_MAX];
    struct scratch order = {.bytes = 0}; /* shorter stacks come first */
    enum flame_result result = FLAME_NO_MEMORY;
    if (!flame_trie_order(&tree->trie, &tree->memory, &order))
        return result;
    for (uint32_t i = 1; i < tree->trie.count; i++) {
        uint32_t node = ((const uint32_t *)order.memory)[i];
        size_t place = (size_t)node * tree->settings.sides;
        if (place >= weights_count || weights[place].value == 0)
            continue;
        size_t depth = names_above(&tree->trie, node, nodes[node].size, path);
        uint64_t steps = depth;
        while (depth > 0) {
            if (!put_folded(output, flame_name_at(tree, path[--depth])))
                goto done;
            json_output_put_byte(output, depth > 0 ? ';' : ' ');
        }
        json_output_put_signed(output, weights[place].value);
        json_output_put_byte(output, '\n');
        if (flame_must_stop(tree, steps)) {
            result = FLAME_STOPPED;
            goto done;
        }
    }
    result = output->has_failed ? FLAME_NO_MEMORY : FLAME_ADDED;
done:
    flame_release(&tree->memory, &order);
    return result;
}
