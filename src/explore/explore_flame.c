/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from profiles: the flame graph of a span, a trace, a service, of spans by name, and the
 * comparison of two of them. On the explore worker. */
#include <stdio.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/explore/explore_asking.h"
#include "src/explore/explore_select.h"
#include "src/explore/flame_tree.h"

enum {
    WIDTH_STANDARD = 1600,
    WIDTH_MAX = 100000,
    TREE_BYTES_MAX = 128 * 1024 * 1024,
    TYPE_BYTES_MAX = 128,
};

static bool must_stop(void *arg)
{
    return explore_is_over(arg);
}

static bool picks(void *arg, const uint8_t *trace_id, const uint8_t *span_id)
{
    return explore_selection_has(arg, trace_id, span_id);
}

static void fail_by_flame(struct asking *asking, enum flame_result result)
{
    asking_fail_by(asking, result == FLAME_STOPPED ? EXPLORE_TOO_LONG : EXPLORE_NO_MEMORY);
}

/* Adds what the selection picks to one side of the tree. False: the answer is an error. */
static bool add_side(struct asking *asking, struct flame_tree *tree, unsigned side,
                     struct explore_selection *selection)
{
    struct profile_store *store = &asking->data->profiles;
    struct budget *budget = asking->data->settings->budget;
    const struct string_table *strings = &asking->data->traces.strings;
    uint32_t service = string_table_find(strings, selection->service);
    const struct flame_filter filter = {
        .picks = selection->mode == SELECT_ALL ? NULL : picks,
        .arg = selection,
        .service = selection->mode == SELECT_ALL ? selection->service : slice_of(NULL, 0),
        .start_unix_ns = selection->start_ns,
        .end_unix_ns = selection->end_ns,
    };
    for (size_t i = 0; i < profile_store_blocks(store); i++) {
        const struct profile_block *block = profile_store_block(store, i);
        if (!explore_selection_wants(selection, block, service))
            continue;
        /* A block that has nothing to add, however large it is, does not look at the clock. */
        if (explore_is_over(&asking->limit)) {
            asking_fail_by(asking, EXPLORE_TOO_LONG);
            return false;
        }
        /* What is open is charged only if it stays so. */
        if (budget != NULL && !budget_try_take(budget, block->raw)) {
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
            return false;
        }
        struct buffer *request = profile_store_open(store, block, budget);
        enum flame_result result = FLAME_ADDED;
        if (request != NULL)
            result = flame_tree_add(tree, side, buffer_slice(request), &filter);
        buffer_unref(request);
        if (budget != NULL)
            budget_return(budget, block->raw);
        if (result != FLAME_ADDED) {
            fail_by_flame(asking, result);
            return false;
        }
    }
    return true;
}

static struct flame_tree *create_tree(struct asking *asking, unsigned sides, struct slice type)
{
    struct flame_tree *tree =
        flame_tree_create(&(struct flame_settings){.budget = asking->data->settings->budget,
                                                   .bytes_max = TREE_BYTES_MAX,
                                                   .sides = sides,
                                                   .type = type,
                                                   .must_stop = must_stop,
                                                   .arg = &asking->limit});
    if (tree == NULL)
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
    return tree;
}

/* Why one trace has no samples at all. */
static void why_no_trace(const struct explore_data *data, uint64_t number,
                         char why[EXPLORE_WHY_BYTES_MAX])
{
    enum { RECENT_S = 30 };
    const struct profile_store *profiles = &data->profiles;
    uint64_t arrived_ns =
        number != UINT64_MAX ? trace_store_record(&data->traces, number)->arrived_ns : 0;
    if (profiles->evicted_blocks > 0 && number != UINT64_MAX &&
        arrived_ns < profile_store_oldest_ns(profiles))
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "profiles of that time have been evicted: raise max_bytes to keep more");
    else if (data->held_requests > 0)
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "none is linked to this trace yet: trace_profile_join holds %llu request%s of "
                 "profiles until their spans have come, or its time is over; look again then",
                 (unsigned long long)data->held_requests, data->held_requests == 1 ? "" : "s");
    else if (arrived_ns + RECENT_S * (uint64_t)NS_PER_S > clock_wall_ns())
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "none has come yet for this trace, which is younger than %d s: profilers send "
                 "every 10 to 15 seconds",
                 RECENT_S);
    else
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "profiles have come, but none is linked to this trace: the profiler must label "
                 "its samples with span ids (span profiles)%s",
                 data->has_join ? ", or send timestamps and thread ids by which trace_profile_join "
                                  "can link them; it holds none back at the moment"
                                : ", or the processor trace_profile_join, which this "
                                  "configuration does not use, must link them");
}

void explore_why(const struct explore_data *data, const struct explore_selection *selection,
                 char why[EXPLORE_WHY_BYTES_MAX])
{
    const struct profile_store *profiles = &data->profiles;
    bool is_of_trace = selection->mode == SELECT_TRACE || selection->mode == SELECT_SPANS;
    if (profiles->samples_total == 0 && data->held_requests > 0) {
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "no profiles have come so far; trace_profile_join holds %llu request%s of them "
                 "until their spans have come, or its time is over; look again then",
                 (unsigned long long)data->held_requests, data->held_requests == 1 ? "" : "s");
    } else if (profiles->samples_total == 0) {
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "no profiles have come so far: send some, for instance from an SDK of Pyroscope "
                 "or an eBPF profiler, to a pipeline with the explore exporter");
    } else if (selection->mode == SELECT_ALL) {
        snprintf(why, EXPLORE_WHY_BYTES_MAX, "no samples of this service in this time range");
    } else if (!is_of_trace) {
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "profiles have come, but none is linked to these spans");
    } else if (profile_store_samples(profiles, selection->trace_id) == 0) {
        why_no_trace(data, trace_store_find(&data->traces, selection->trace_id), why);
    } else if (selection->longest_ns > 0 && selection->longest_ns < 10 * (uint64_t)NS_PER_MS) {
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "the span is shorter than the usual time between two samples (10 ms), so that "
                 "none may have fallen into it; others of its trace have some");
    } else {
        snprintf(why, EXPLORE_WHY_BYTES_MAX,
                 "other spans of this trace have samples, this one has none: it did not run on a "
                 "CPU when samples were taken, or its thread was not profiled");
    }
}

void put_reason(struct asking *asking, const struct explore_selection *selection)
{
    char why[EXPLORE_WHY_BYTES_MAX];
    explore_why(asking->data, selection, why);
    json_output_put_string(&asking->out, slice_of_text(why));
}

static void put_why(struct asking *asking, uint64_t samples,
                    const struct explore_selection *selection)
{
    put_key(&asking->out, "why");
    if (samples > 0)
        put_raw(&asking->out, "null");
    else
        put_reason(asking, selection);
}

static bool read_drawing(struct asking *asking, struct flame_drawing *drawing)
{
    struct slice view = explore_query_get(asking->query, "view");
    *drawing = (struct flame_drawing){
        .view = FLAME_VIEW_TREE,
        .width = (unsigned)asking_number(asking, "width", WIDTH_STANDARD, WIDTH_MAX),
        .function = explore_query_get(asking->query, "function"),
        .bytes_max = FLAME_RESPONSE_BYTES_MAX,
    };
    if (slice_equal_text(view, "sandwich"))
        drawing->view = FLAME_VIEW_SANDWICH;
    else if (slice_equal_text(view, "top"))
        drawing->view = FLAME_VIEW_TOP;
    else if (view.size > 0 && !slice_equal_text(view, "tree"))
        asking_fail(asking, 400, "view: expected tree, sandwich or top");
    if (asking->status == 200 && drawing->view == FLAME_VIEW_SANDWICH &&
        drawing->function.size == 0)
        asking_fail(asking, 400, "function: missing, expected the name of the sandwich's function");
    return asking->status == 200;
}

static struct slice wanted_type(const struct asking *asking)
{
    struct slice type = explore_query_get(asking->query, "type");
    return type.size > 0 ? type : slice_of(NULL, 0);
}

static void answer_tree(struct asking *asking, bool is_folded)
{
    struct explore_selection selection;
    struct flame_drawing drawing;
    if (!read_drawing(asking, &drawing) ||
        !explore_selection_read(asking, asking->query, &selection))
        return;
    struct flame_tree *tree = create_tree(asking, 1, wanted_type(asking));
    if (tree != NULL && add_side(asking, tree, 0, &selection)) {
        const struct flame_type *type = flame_tree_type(tree);
        enum flame_result result = FLAME_ADDED;
        if (is_folded) {
            result = flame_tree_write_folded(tree, &asking->out);
        } else {
            put_raw(&asking->out, "{");
            result = flame_tree_write(tree, &drawing, &asking->out);
            put_why(asking, type != NULL ? type->samples[0] : 0, &selection);
            put_raw(&asking->out, "}");
        }
        if (result != FLAME_ADDED)
            fail_by_flame(asking, result);
    }
    flame_tree_destroy(tree);
    explore_selection_fini(&selection);
}

void answer_flame(struct asking *asking)
{
    answer_tree(asking, false);
}

void answer_folded(struct asking *asking)
{
    answer_tree(asking, true);
}

void answer_diff(struct asking *asking)
{
    static const char *const keys[FLAME_SIDES_MAX] = {"a", "b"};
    struct explore_selection selections[FLAME_SIDES_MAX] = {{.mode = SELECT_ALL}};
    struct flame_drawing drawing;
    if (!read_drawing(asking, &drawing))
        return;
    struct flame_tree *tree = create_tree(asking, FLAME_SIDES_MAX, wanted_type(asking));
    struct explore_query *inner = mem_alloc(sizeof(*inner));
    uint64_t samples = 0;
    for (unsigned side = 0; tree != NULL && side < FLAME_SIDES_MAX && asking->status == 200;
         side++) {
        const char *reason;
        struct slice text = explore_query_get(asking->query, keys[side]);
        if (text.size == 0)
            asking_fail(asking, 400,
                        "a and b: both are needed, each with the query of a flame "
                        "graph, escaped");
        else if (!explore_query_parse(inner, text, &reason))
            asking_fail(asking, 400, reason);
        else if (explore_selection_read(asking, inner, &selections[side]))
            add_side(asking, tree, side, &selections[side]);
        explore_selection_fini(&selections[side]);
    }
    if (tree != NULL && asking->status == 200) {
        const struct flame_type *type = flame_tree_type(tree);
        unsigned empty = type != NULL && type->samples[0] > 0 ? 1 : 0;
        samples = type != NULL ? type->samples[empty] : 0;
        put_raw(&asking->out, "{");
        enum flame_result result = flame_tree_write(tree, &drawing, &asking->out);
        put_why(asking, samples, &selections[empty]);
        put_raw(&asking->out, "}");
        if (result != FLAME_ADDED)
            fail_by_flame(asking, result);
    }
    mem_free(inner);
    flame_tree_destroy(tree);
}

void put_types(struct asking *asking, struct explore_selection *selection)
{
    struct json_output *out = &asking->out;
    const struct flame_type *types;
    put_key(out, "types");
    put_raw(out, "[");
    bool is_right = asking->status == 200;
    struct flame_tree *tree = create_tree(asking, 1, slice_of_text("?"));
    bool is_added = tree != NULL && add_side(asking, tree, 0, selection);
    if (tree != NULL && !is_added && is_right && explore_is_over(&asking->limit)) {
        /* The rest of the answer needs no more than what was found in time. */
        asking->status = 200;
        is_added = true;
    }
    if (is_added) {
        size_t count = flame_tree_types(tree, &types);
        for (size_t i = 0; i < count; i++) {
            put_comma(out);
            put_raw(out, "{");
            put_string(out, "type", types[i].type);
            put_string(out, "unit", types[i].unit);
            put_unsigned(out, "samples", types[i].samples[0]);
            put_raw(out, "}");
        }
    }
    flame_tree_destroy(tree);
    put_raw(out, "]");
}
