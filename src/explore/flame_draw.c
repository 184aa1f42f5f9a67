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

/* A trie with its sums, and what of it is drawn. */
struct graph {
    const struct flame_trie *trie;
    struct scratch sums;   /* struct sums by node */
    struct scratch depths; /* uint32_t by node: 1 for the root; 0: not drawn */
    struct scratch rows;   /* struct row, sorted by parent */
    struct scratch firsts; /* uint32_t by node: where its children are in rows, plus 1 */
    uint32_t root_name;
    size_t rows_count;
    uint64_t pruned;
    uint32_t deepest;  /* of what is drawn */
    bool is_cut;       /* deeper than the limit of the attempt */
    bool is_too_large; /* more rows than can fit */
};

struct row {
    uint32_t node;
    uint32_t parent;
    uint32_t children;
    int64_t weight;    /* children are sorted by it */
    struct slice name; /* then by this */
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

/* Adds up totals, from the leaves to the root: a child comes after its parent. */
static bool add_up(struct drawing *drawing, struct graph *graph)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    struct sums *sums = sums_of(graph);
    for (uint32_t node = 0; node < graph->trie->count; node++)
        for (unsigned side = 0; side < drawing->sides; side++)
            sums[node].total[side] = sums[node].self[side];
    for (uint32_t node = graph->trie->count - 1; node > 0; node--) {
        for (unsigned side = 0; side < drawing->sides; side++)
            sums[nodes[node].parent].total[side] =
                flame_sum(sums[nodes[node].parent].total[side], sums[node].total[side]);
        if (flame_must_stop(drawing->tree))
            return false;
    }
    return true;
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
    return add_up(drawing, graph) ? FLAME_ADDED : FLAME_STOPPED;
}

/* Makes the second and third graph of the first: below all outermost nodes of the function, and
 * above them, upside down. A stack counts once, however often the function is on it. */
static enum flame_result sandwich_graphs(struct drawing *drawing, const struct graph *whole,
                                         uint32_t function, struct graph made[PATHS_MAX])
{
    struct flame_memory *memory = &drawing->tree->memory;
    const struct flame_node *nodes = flame_trie_nodes(whole->trie);
    const struct sums *sums = sums_of(whole);
    struct graph *callers = &made[0];
    struct graph *callees = &made[1];
    struct scratch copies = {.bytes = 0}; /* by node: its node in callees, plus 1 */
    enum flame_result result = FLAME_NO_MEMORY;
    uint32_t count = whole->trie->count;
    uint32_t *copy = flame_room(memory, &copies, count * sizeof(copy[0]));
    for (size_t i = 0; i < PATHS_MAX; i++) {
        flame_trie_init(&drawing->made[i]);
        made[i].trie = &drawing->made[i];
        made[i].root_name = function;
        if (room(drawing, &made[i].sums, sizeof(struct sums)) == NULL)
            copy = NULL;
    }
    if (copy == NULL)
        goto done;
    for (uint32_t node = 1; node < count; node++) {
        uint32_t above = copy[nodes[node].parent];
        uint32_t place = 0;
        if (above == 0 && nodes[node].name != function)
            continue;
        if (above != 0)
            place = flame_trie_child(&drawing->made[1], memory, above - 1, nodes[node].name);
        if (place == FLAME_NO_NODE)
            goto done;
        copy[node] = place + 1;
        struct sums *to = room(drawing, &callees->sums, (place + (size_t)1) * sizeof(to[0]));
        if (to == NULL)
            goto done;
        for (unsigned side = 0; side < drawing->sides; side++)
            to[place].self[side] = flame_sum(to[place].self[side], sums[node].self[side]);
        if (above != 0)
            continue;
        uint32_t at = 0;
        for (uint32_t up = nodes[node].parent; up != 0; up = nodes[up].parent) {
            at = flame_trie_child(&drawing->made[0], memory, at, nodes[up].name);
            if (at == FLAME_NO_NODE)
                goto done;
            if (flame_must_stop(drawing->tree)) {
                result = FLAME_STOPPED;
                goto done;
            }
        }
        to = room(drawing, &callers->sums, (at + (size_t)1) * sizeof(to[0]));
        if (to == NULL)
            goto done;
        for (unsigned side = 0; side < drawing->sides; side++)
            to[at].self[side] = flame_sum(to[at].self[side], sums[node].total[side]);
    }
    /* Nodes without a value of their own have no sums yet. */
    for (size_t i = 0; i < PATHS_MAX; i++)
        if (room(drawing, &made[i].sums, made[i].trie->count * sizeof(struct sums)) == NULL)
            goto done;
    result = add_up(drawing, callers) && add_up(drawing, callees) ? FLAME_ADDED : FLAME_STOPPED;
done:
    flame_release(memory, &copies);
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
    if (left->parent != right->parent)
        return left->parent < right->parent ? -1 : 1;
    if (left->weight != right->weight)
        return left->weight < right->weight ? 1 : -1;
    return slice_compare(left->name, right->name);
}

/* Chooses the nodes that are drawn, and sorts them. */
static enum flame_result prune(struct drawing *drawing, struct graph *graph)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct sums *sums = sums_of(graph);
    uint32_t count = graph->trie->count;
    unsigned width = drawing->wanted->width > 0 ? drawing->wanted->width : WIDTH_DEFAULT;
    uint32_t *depths = room(drawing, &graph->depths, count * sizeof(depths[0]));
    uint32_t *firsts = room(drawing, &graph->firsts, count * sizeof(firsts[0]));
    if (depths == NULL || firsts == NULL)
        return FLAME_NO_MEMORY;
    depths[0] = 1;
    firsts[0] = 0;
    graph->rows_count = 0;
    graph->pruned = 0;
    graph->is_cut = false;
    graph->is_too_large = false;
    graph->deepest = 0;
    for (uint32_t node = 1; node < count; node++) {
        uint32_t above = depths[nodes[node].parent];
        bool is_wide = above > 0 && share(drawing, sums[node].total, sums[0].total) * width >=
                                        drawing->pixels_min;
        bool is_drawn = is_wide && above <= drawing->depth_max;
        depths[node] = is_drawn ? above + 1 : 0;
        firsts[node] = 0;
        graph->is_cut |= is_wide && !is_drawn;
        bool has_value =
            sums[node].total[0] != 0 || (drawing->sides > 1 && sums[node].total[1] != 0);
        graph->pruned += !is_drawn && has_value;
        if (flame_must_stop(drawing->tree))
            return FLAME_STOPPED;
        if (!is_drawn)
            continue;
        if (!fits(drawing, (graph->rows_count + 1) * ROW_BYTES_MIN)) {
            graph->is_too_large = true;
            return FLAME_ADDED;
        }
        if (above > graph->deepest)
            graph->deepest = above;
        struct row *rows = room(drawing, &graph->rows, (graph->rows_count + 1) * sizeof(rows[0]));
        if (rows == NULL)
            return FLAME_NO_MEMORY;
        rows[graph->rows_count++] = (struct row){
            .node = node,
            .parent = nodes[node].parent,
            .weight = both(drawing, sums[node].total),
            .name = flame_name_at(drawing->tree, nodes[node].name),
        };
    }
    struct row *rows = graph->rows.memory;
    if (graph->rows_count > 0)
        qsort(rows, graph->rows_count, sizeof(rows[0]), compare_rows);
    for (size_t i = graph->rows_count; i > 0; i--)
        firsts[rows[i - 1].parent] = (uint32_t)i;
    return FLAME_ADDED;
}

/* The next row in depth-first order, by its place in rows plus 1; 0 is the root, and the end. */
static size_t next_row(const struct graph *graph, size_t at)
{
    const struct row *rows = graph->rows.memory;
    const uint32_t *firsts = graph->firsts.memory;
    const uint32_t *places = graph->depths.memory; /* see place_rows */
    uint32_t node = at > 0 ? rows[at - 1].node : 0;
    if (firsts[node] != 0)
        return firsts[node];
    while (at > 0) {
        uint32_t parent = rows[at - 1].parent;
        if (at < graph->rows_count && rows[at].parent == parent)
            return at + 1;
        at = parent > 0 ? places[parent] : 0;
    }
    return 0;
}

/* Counts children; afterwards `depths` has the place of each node that is drawn in rows, plus 1. */
static uint32_t place_rows(struct graph *graph)
{
    struct row *rows = graph->rows.memory;
    uint32_t *places = graph->depths.memory;
    uint32_t of_root = 0;
    for (size_t i = 0; i < graph->rows_count; i++) {
        places[rows[i].node] = (uint32_t)i + 1;
        rows[i].children = 0;
    }
    for (size_t i = 0; i < graph->rows_count; i++) {
        if (rows[i].parent == 0)
            of_root++;
        else
            rows[places[rows[i].parent] - 1].children++;
    }
    return of_root;
}

/* False: no memory. */
static bool show_name(struct drawing *drawing, uint32_t name, uint32_t *ret_place)
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
    *ret_place = shown[name] - 1;
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

static bool put_row(struct drawing *drawing, uint32_t name, const struct sums *sums,
                    uint32_t children)
{
    struct json_output *output = drawing->output;
    const uint32_t *shown = drawing->shown.memory;
    json_output_put_byte(output, '[');
    json_output_put_unsigned(output, shown[name] - 1);
    put_sides(drawing, sums->total);
    put_sides(drawing, sums->self);
    json_output_put_byte(output, ',');
    json_output_put_unsigned(output, children);
    json_output_put_byte(output, ']');
    return fits(drawing, 0);
}

static bool put_graph(struct drawing *drawing, struct graph *graph, uint32_t of_root,
                      const char *key)
{
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct row *rows = graph->rows.memory;
    put_text(drawing->output, key);
    bool is_there = put_row(drawing, graph->root_name, &sums_of(graph)[0], of_root);
    for (size_t at = next_row(graph, 0); is_there && at > 0; at = next_row(graph, at)) {
        const struct row *row = &rows[at - 1];
        json_output_put_byte(drawing->output, ',');
        is_there =
            put_row(drawing, nodes[row->node].name, &sums_of(graph)[row->node], row->children);
    }
    json_output_put_byte(drawing->output, ']');
    return is_there && fits(drawing, 0);
}

/* One attempt to write the graphs within the limit. False: they do not fit. */
static bool try_graphs(struct drawing *drawing, enum flame_result *ret_result)
{
    static const char *const tree_keys[] = {",\"tree\":["};
    static const char *const sandwich_keys[] = {",\"callers\":[", ",\"callees\":["};
    const char *const *keys = drawing->graphs_count > 1 ? sandwich_keys : tree_keys;
    uint32_t of_roots[PATHS_MAX];
    uint32_t place;
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
        of_roots[i] = place_rows(graph);
        bool is_there = show_name(drawing, graph->root_name, &place);
        const struct flame_node *nodes = flame_trie_nodes(graph->trie);
        const struct row *rows = graph->rows.memory;
        for (size_t at = next_row(graph, 0); is_there && at > 0; at = next_row(graph, at))
            is_there = show_name(drawing, nodes[rows[at - 1].node].name, &place);
        if (!is_there) {
            *ret_result = FLAME_NO_MEMORY;
            return true;
        }
        pruned += graph->pruned;
        is_cut |= graph->is_cut;
    }
    if (!put_names(drawing))
        return false;
    for (size_t i = 0; i < drawing->graphs_count; i++)
        if (!put_graph(drawing, &drawing->graphs[i], of_roots[i], keys[i]))
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

/* Walks the whole tree, with the functions on the path marked, so that recursion counts once. */
static enum flame_result add_functions(struct drawing *drawing, const struct graph *graph,
                                       struct top_row *top)
{
    const struct flame_type_row *row = flame_tree_row(drawing->tree);
    const struct flame_weight *weights = row != NULL ? row->weights.memory : NULL;
    size_t weights_count = row != NULL ? row->weights.bytes / sizeof(weights[0]) : 0;
    const struct flame_node *nodes = flame_trie_nodes(graph->trie);
    const struct sums *sums = sums_of(graph);
    struct scratch links = {.bytes = 0};
    struct scratch counts = {.bytes = 0};
    uint32_t count = graph->trie->count;
    struct {
        uint32_t first; /* child */
        uint32_t next;  /* sibling */
    } *link = room(drawing, &links, count * sizeof(link[0]));
    uint64_t *samples = room(drawing, &counts, count * sizeof(samples[0]));
    enum flame_result result = FLAME_ADDED;
    if (link == NULL || samples == NULL) {
        result = FLAME_NO_MEMORY;
        goto done;
    }
    for (uint32_t node = count - 1; node > 0; node--) {
        uint32_t parent = nodes[node].parent;
        for (unsigned side = 0; side < drawing->sides; side++) {
            size_t place = (size_t)node * drawing->sides + side;
            samples[node] += place < weights_count ? weights[place].samples : 0;
        }
        samples[parent] += samples[node];
        link[node].next = link[parent].first;
        link[parent].first = node;
    }
    for (uint32_t node = link[0].first; node != 0;) {
        struct top_row *function = &top[nodes[node].name];
        for (unsigned side = 0; side < drawing->sides; side++) {
            function->sums.self[side] = flame_sum(function->sums.self[side], sums[node].self[side]);
            if (function->active == 0)
                function->sums.total[side] =
                    flame_sum(function->sums.total[side], sums[node].total[side]);
        }
        function->samples += function->active == 0 ? samples[node] : 0;
        if (flame_must_stop(drawing->tree)) {
            result = FLAME_STOPPED;
            goto done;
        }
        if (link[node].first != 0) {
            function->active++;
            node = link[node].first;
            continue;
        }
        while (node != 0 && link[node].next == 0) {
            node = nodes[node].parent;
            if (node != 0)
                top[nodes[node].name].active--;
        }
        node = node != 0 ? link[node].next : 0;
    }
done:
    flame_release(&drawing->tree->memory, &links);
    flame_release(&drawing->tree->memory, &counts);
    return result;
}

static enum flame_result write_top(struct drawing *drawing, const struct graph *graph)
{
    const struct flame_tree *tree = drawing->tree;
    struct json_output *output = drawing->output;
    struct top_row *top = room(drawing, &drawing->top, tree->names_count * sizeof(top[0]));
    uint32_t place;
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
        if (!show_name(drawing, 0, &place))
            return FLAME_NO_MEMORY;
        for (size_t i = 0; i < rows; i++)
            if (!show_name(drawing, top[i].name, &place))
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
        flame_release(memory, &graph->depths);
        flame_release(memory, &graph->rows);
        flame_release(memory, &graph->firsts);
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

enum flame_result flame_tree_write_folded(struct flame_tree *tree, struct json_output *output)
{
    const struct flame_type_row *row = flame_tree_row(tree);
    const struct flame_weight *weights = row != NULL ? row->weights.memory : NULL;
    size_t weights_count = row != NULL ? row->weights.bytes / sizeof(weights[0]) : 0;
    const struct flame_node *nodes = flame_trie_nodes(&tree->trie);
    uint32_t path[FLAME_DEPTH_MAX];
    for (uint32_t node = 1; node < tree->trie.count; node++) {
        size_t place = (size_t)node * tree->settings.sides;
        size_t depth = 0;
        if (place >= weights_count || weights[place].value == 0)
            continue;
        for (uint32_t at = node; at != 0; at = nodes[at].parent)
            path[depth++] = nodes[at].name;
        while (depth > 0) {
            struct slice name = flame_name_at(tree, path[--depth]);
            uint8_t *to = json_output_reserve(output, name.size + 1);
            if (to == NULL)
                return FLAME_NO_MEMORY;
            for (size_t i = 0; i < name.size; i++) {
                uint8_t byte = name.data[i];
                to[i] = byte == ';' ? ':' : byte == '\n' || byte == '\r' ? ' ' : byte;
            }
            to[name.size] = depth > 0 ? ';' : ' ';
            output->buffer->size += name.size + 1;
            if (flame_must_stop(tree))
                return FLAME_STOPPED;
        }
        json_output_put_signed(output, weights[place].value);
        json_output_put_byte(output, '\n');
    }
    return output->has_failed ? FLAME_NO_MEMORY : FLAME_ADDED;
}
