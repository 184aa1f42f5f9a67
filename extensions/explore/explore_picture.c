/* SPDX-License-Identifier: Apache-2.0 */
/* On lane 0. */
#include "extensions/explore/explore_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/log_recent.h"
#include "src/base/mem.h"
#include "src/core/component.h"
#include "src/explore/explore_json.h"

#define PICTURE_INTERVAL_NS ((uint64_t)10 * NS_PER_S)

static const char *const series[PICTURE_SERIES] = {"items", "bytes", "refused", "queue", "retries"};
enum { SERIES_QUEUE = 3 }; /* is shown as it is, the others as differences */

static void values_of(const struct picture_node *node, uint64_t values[PICTURE_SERIES])
{
    values[0] = node->items;
    values[1] = node->bytes;
    values[2] = node->refused;
    values[3] = node->queue;
    values[4] = node->retries;
}

struct noting {
    struct explore_picture *picture;
    size_t index;
};

static void note(const struct picture_node *node, void *arg)
{
    struct noting *noting = arg;
    struct explore_picture *picture = noting->picture;
    uint64_t values[PICTURE_SERIES];
    if (noting->index == PICTURE_NODES_MAX)
        return;
    struct picture_history *history = &picture->history[noting->index++];
    if (history->node == NULL) {
        history->node = mem_copy_text(node->node);
        picture->count++;
    }
    values_of(node, values);
    for (size_t i = 0; i < PICTURE_SERIES; i++)
        history->values[i][picture->taken % (PICTURE_SAMPLES + 1)] = values[i];
}

static void on_tick(struct timer *timer, void *arg)
{
    struct explore_picture *picture = arg;
    const struct component *component = picture->component;
    struct noting noting = {.picture = picture};
    component->service->each_node(component->service, note, &noting);
    picture->taken++;
    lane_timer_start(component->lane, timer, PICTURE_INTERVAL_NS);
}

void explore_picture_start(struct explore_picture *picture, struct component *component)
{
    *picture = (struct explore_picture){.component = component};
    picture->history = mem_zalloc(PICTURE_NODES_MAX * sizeof(picture->history[0]));
    timer_init(&picture->timer, on_tick, picture);
    lane_timer_start(component->lane, &picture->timer, 0);
}

void explore_picture_stop(struct explore_picture *picture)
{
    if (picture->component != NULL)
        lane_timer_stop(picture->component->lane, &picture->timer);
}

void explore_picture_fini(struct explore_picture *picture)
{
    for (size_t i = 0; i < picture->count; i++)
        mem_free(picture->history[i].node);
    mem_free(picture->history);
    *picture = (struct explore_picture){.component = NULL};
}

static void put_node(const struct picture_node *node, void *arg)
{
    struct json_output *out = arg;
    put_comma(out);
    put_raw(out, "{");
    put_string(out, "id", slice_of_text(node->node));
    put_string(out, "kind", slice_of_text(node->kind));
    put_string(out, "type", slice_of_text(node->type));
    put_string(out, "name", slice_of_text(node->id));
    put_unsigned(out, "line", node->line);
    put_key(out, "metrics");
    put_raw(out, "{");
    put_unsigned(out, "items", node->items);
    put_unsigned(out, "bytes", node->bytes);
    put_unsigned(out, "refused", node->refused);
    put_unsigned(out, "queue", node->queue);
    put_unsigned(out, "queueLimit", node->queue_limit);
    put_unsigned(out, "retries", node->retries);
    put_raw(out, "}}");
}

static void put_edge(const struct picture_edge *edge, void *arg)
{
    struct json_output *out = arg;
    put_comma(out);
    put_raw(out, "{");
    put_string(out, "from", slice_of_text(edge->from));
    put_string(out, "to", slice_of_text(edge->to));
    put_string(out, "pipeline", slice_of_text(edge->pipeline));
    put_string(out, "signal", slice_of_text(edge->signal));
    put_raw(out, "}");
}

static void put_sums(struct json_output *out, const struct picture_sums *sums)
{
    if (sums->has_join) {
        put_key(out, "join");
        put_raw(out, "{");
        put_unsigned(out, "hits", sums->hits);
        put_unsigned(out, "misses", sums->misses);
        put_unsigned(out, "held", sums->held_requests);
        put_unsigned(out, "heldBytes", sums->held_bytes);
        put_raw(out, "}");
    }
    if (sums->has_journal) {
        put_key(out, "journal");
        put_raw(out, "{");
        put_unsigned(out, "backlogRecords", sums->waiting_records);
        put_unsigned(out, "backlogBytes", sums->waiting_bytes);
        put_wide(out, "oldest", sums->oldest_wall_ns);
        put_bool(out, "full", sums->is_full);
        put_raw(out, "}");
    }
}

/* "time level caller text", tabs between; a line of JSON is shown whole. */
static void put_warning(const char *line, void *arg)
{
    struct json_output *out = arg;
    struct slice fields[4] = {slice_of("", 0), slice_of("", 0), slice_of("", 0),
                              slice_of_text(line)};
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *tab = memchr(fields[3].data, '\t', fields[3].size);
        if (tab == NULL)
            break;
        size_t size = (size_t)(tab - fields[3].data);
        fields[i] = slice_of(fields[3].data, size);
        fields[3] = slice_of(tab + 1, fields[3].size - size - 1);
    }
    put_comma(out);
    put_raw(out, "{");
    put_string(out, "time", fields[0]);
    put_string(out, "level", fields[1]);
    put_string(out, "text", fields[3]);
    put_raw(out, "}");
}

struct buffer *explore_picture_write(const struct explore_picture *picture)
{
    enum { BYTES_FIRST = 16384, BYTES_MAX = 16 * 1024 * 1024 };
    const struct component *component = picture->component;
    const struct service_view *service = component->service;
    struct json_output out;
    json_output_init(&out, BYTES_FIRST, BYTES_MAX, component->budget);
    put_raw(&out, "{\"nodes\":[");
    service->each_node(service, put_node, &out);
    put_raw(&out, "],\"edges\":[");
    service->each_edge(service, put_edge, &out);
    put_raw(&out, "]");
    put_key(&out, "series");
    put_raw(&out, "{\"interval\":10,\"nodes\":{");
    uint64_t samples = picture->taken > PICTURE_SAMPLES ? PICTURE_SAMPLES
                       : picture->taken > 0             ? picture->taken - 1
                                                        : 0;
    for (size_t i = 0; i < picture->count; i++) {
        const struct picture_history *history = &picture->history[i];
        put_raw(&out, i > 0 ? "," : "");
        json_output_put_string(&out, slice_of_text(history->node));
        put_raw(&out, ":{");
        for (size_t s = 0; s < PICTURE_SERIES; s++) {
            put_key(&out, series[s]);
            put_raw(&out, "[");
            for (uint64_t at = picture->taken - samples; at < picture->taken; at++) {
                uint64_t now = history->values[s][at % (PICTURE_SAMPLES + 1)];
                uint64_t before = history->values[s][(at - 1) % (PICTURE_SAMPLES + 1)];
                put_comma(&out);
                json_output_put_unsigned(&out, s == SERIES_QUEUE ? now
                                               : now > before    ? now - before
                                                                 : 0);
            }
            put_raw(&out, "]");
        }
        put_raw(&out, "}");
    }
    put_raw(&out, "}}");
    put_key(&out, "budget");
    put_raw(&out, "{");
    put_unsigned(&out, "used", budget_used(component->budget));
    put_unsigned(&out, "limit", budget_limit(component->budget));
    put_raw(&out, "}");
    const struct picture_sums sums = service->sums(service);
    put_sums(&out, &sums);
    put_key(&out, "warnings");
    put_raw(&out, "[");
    log_recent_visit(put_warning, &out);
    put_raw(&out, "]}");
    return json_output_take(&out);
}

static void put_counter(const struct picture_counter *counter, void *arg)
{
    struct json_output *out = arg;
    put_comma(out);
    put_raw(out, "{");
    put_string(out, "name", slice_of_text(counter->name));
    put_key(out, "labels");
    put_raw(out, "{");
    for (size_t i = 0; i < sizeof(counter->labels) / sizeof(counter->labels[0]); i++)
        if (counter->labels[i] != NULL)
            put_string(out, counter->labels[i], slice_of_text(counter->values[i]));
    put_raw(out, "}");
    put_unsigned(out, "value", counter->value);
    put_raw(out, "}");
}

struct buffer *explore_picture_detail(const struct explore_picture *picture, struct slice node,
                                      bool *ret_is_known)
{
    enum { BYTES_FIRST = 4096, BYTES_MAX = 4 * 1024 * 1024, NAME_BYTES_MAX = 512 };
    const struct service_view *service = picture->component->service;
    struct json_output out;
    char name[NAME_BYTES_MAX];
    char *yaml = NULL;
    size_t size = 0;
    *ret_is_known = node.size < sizeof(name);
    FILE *text = *ret_is_known ? open_memstream(&yaml, &size) : NULL;
    if (text == NULL)
        return NULL;
    memcpy(name, node.data, node.size);
    name[node.size] = '\0';
    json_output_init(&out, BYTES_FIRST, BYTES_MAX, picture->component->budget);
    put_raw(&out, "{");
    put_string(&out, "id", node);
    put_key(&out, "counters");
    put_raw(&out, "[");
    *ret_is_known = service->node_detail(service, name, put_counter, &out, text);
    put_raw(&out, "]");
    bool is_whole = fclose(text) == 0;
    if (is_whole)
        put_string(&out, "yaml", slice_of(yaml, size));
    put_raw(&out, "}");
    free(yaml);
    struct buffer *body = json_output_take(&out);
    if (is_whole && *ret_is_known)
        return body;
    buffer_unref(body);
    return NULL;
}
