/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a tree of resources, scopes and (of metrics) metrics and their data, whose leaves are
 * records, then writes it. What is compared is interned first: each content is read once, and nodes
 * are found by numbers. Runs on the owner's thread. */
#include "src/records/group_by_attributes.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/batch_writer.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/records/record_limits.h"

enum {
    SPAN_ATTRIBUTES = 9,
    LOG_ATTRIBUTES = 6,
    DATA_POINTS = 1,
    ROOT = 0,
    LENGTH_BYTES = 2, /* guess */
    ENTRIES_FIRST = 16,
};

/* What contents stand for. */
enum content_kind { OF_ATTRIBUTES, OF_VALUE, OF_SCOPE, OF_METRIC, OF_NODE };

struct group_node {
    uint32_t number; /* of its field in its parent */
    uint32_t next;   /* sibling; 0: none */
    uint32_t first;  /* child nodes */
    uint32_t last;
    uint32_t first_leaf; /* plus 1 */
    uint32_t last_leaf;
    size_t head; /* in the output: its fields that are no children */
    size_t head_bytes;
    uint64_t content_bytes; /* once measured */
};

struct group_leaf {
    uint32_t next; /* plus 1 */
    bool is_new;   /* in the output, else in the request */
    size_t place;  /* of the whole field */
    size_t bytes;
};

/* A request while it is grouped. */
struct grouping {
    struct attribute_grouper *grouper;
    struct record_edit *edit;
    struct slice bytes;
    uint32_t base; /* the resource at hand, without the keys */
    uint32_t scope;
    uint32_t metric;
    /* What nodes copy, of the scope, metric and data at hand: a new node does not read past all
     * records again. */
    struct slice heads[GROUP_HEADS];
    bool has_metric_heads;
    const struct wire_field *metric_field;
    const struct wire_field *data_field;
};

void attribute_grouper_init(struct attribute_grouper *grouper, const struct slice *keys,
                            size_t keys_count, struct budget *budget)
{
    *grouper = (struct attribute_grouper){.keys = keys, .keys_count = keys_count, .budget = budget};
    attribute_list_init(&grouper->resource, RECORD_VALUES_BYTES_MAX, budget);
    attribute_list_init(&grouper->list, RECORD_VALUES_BYTES_MAX, budget);
    identity_init(&grouper->identity, budget);
    content_table_init(&grouper->table);
    grouper->output.budget = budget;
}

/* Frees what a request needed. */
static void forget(struct attribute_grouper *grouper)
{
    struct budget *budget = grouper->budget;
    attribute_list_clear(&grouper->resource);
    attribute_list_clear(&grouper->list);
    identity_fini(&grouper->identity);
    identity_init(&grouper->identity, budget);
    content_table_fini(&grouper->table, budget);
    content_table_init(&grouper->table);
    scratch_fini(&grouper->places, budget);
    scratch_fini(&grouper->nodes, budget);
    scratch_fini(&grouper->leaves, budget);
    scratch_fini(&grouper->values, budget);
    for (unsigned i = 0; i < GROUP_HEADS; i++)
        scratch_fini(&grouper->heads[i], budget);
    nested_output_fini(&grouper->output);
    grouper->output.refused_bytes = 0;
    grouper->nodes_count = 0;
    grouper->leaves_count = 0;
}

void attribute_grouper_fini(struct attribute_grouper *grouper)
{
    forget(grouper);
    attribute_list_fini(&grouper->resource);
    attribute_list_fini(&grouper->list);
}

/* refused_bytes: beside what is held. */
static void fail(struct grouping *grouping, uint64_t refused_bytes)
{
    grouping->edit->missed_bytes = grouping->bytes.size + refused_bytes;
    grouping->edit->has_failed = true;
}

/* A list that has failed said itself what it holds (record_list_is_whole). */
static uint64_t held_by(const struct attribute_list *list)
{
    const bool has_failed = list->has_failed || list->arena.refused_bytes > 0;
    return has_failed ? 0 : list->capacity * sizeof(struct attribute) + list->arena.charged_bytes;
}

static uint64_t held_bytes(const struct attribute_grouper *grouper)
{
    const struct identity *identity = &grouper->identity;
    const struct buffer *output = grouper->output.buffer;
    uint64_t heads = 0;
    for (unsigned i = 0; i < GROUP_HEADS; i++)
        heads += grouper->heads[i].bytes;
    return heads + held_by(&grouper->resource) + held_by(&grouper->list) + identity->block.bytes +
           identity->arena.charged_bytes + grouper->table.slots.bytes + grouper->places.bytes +
           grouper->nodes.bytes + grouper->leaves.bytes + grouper->values.bytes +
           (output != NULL ? buffer_charge(output) : 0);
}

/* Room for one more element of an array; NULL: no memory. */
static void *room_for(struct grouping *grouping, struct scratch *scratch, size_t count, size_t size)
{
    size_t capacity = scratch->bytes / size;
    if (count >= capacity)
        capacity = capacity > 0 ? 2 * capacity : ENTRIES_FIRST;
    while (count >= capacity)
        capacity *= 2;
    void *memory = scratch_room(scratch, grouping->grouper->budget, capacity * size);
    if (memory == NULL)
        fail(grouping, capacity * size);
    return memory;
}

/* What was written to the identity since `begin` as a number; 0: no memory. */
static uint32_t intern(struct grouping *grouping, size_t begin, bool *ret_is_new)
{
    struct attribute_grouper *grouper = grouping->grouper;
    struct identity *identity = &grouper->identity;
    uint32_t hash;
    *ret_is_new = false;
    if (identity->has_failed) {
        const struct arena *arena = &identity->arena;
        fail(grouping, arena->refused_bytes > 0 ? arena->refused_bytes - arena->used_bytes
                                                : 2 * identity->block.bytes);
        return 0;
    }
    if (identity->size > UINT32_MAX) {
        fail(grouping, UINT64_MAX / 2);
        return 0;
    }
    struct slice content = identity_from(identity, begin);
    uint32_t index = content_table_find(&grouper->table, identity->block.memory, content, &hash);
    if (index != 0) {
        identity_cut(identity, begin);
        return index;
    }
    index = content_table_add(&grouper->table, grouper->budget, hash, begin, content.size);
    if (index == 0)
        fail(grouping, 2 * grouper->table.slots.bytes);
    *ret_is_new = true;
    return index;
}

static size_t begin_content(struct grouping *grouping, enum content_kind kind)
{
    size_t begin = grouping->grouper->identity.size;
    uint8_t byte = (uint8_t)kind;
    identity_put_raw(&grouping->grouper->identity, &byte, 1);
    return begin;
}

static struct group_node *node_at(const struct attribute_grouper *grouper, uint32_t node)
{
    return (struct group_node *)grouper->nodes.memory + node;
}

static struct group_leaf *leaf_at(const struct attribute_grouper *grouper, uint32_t leaf)
{
    return (struct group_leaf *)grouper->leaves.memory + leaf;
}

/* A new node below parent, whose head has been written since head_begin. 0: no memory. */
static uint32_t add_node(struct grouping *grouping, uint32_t parent, uint32_t number,
                         size_t head_begin)
{
    struct attribute_grouper *grouper = grouping->grouper;
    if (grouper->output.refused_bytes > 0) {
        fail(grouping, grouper->output.refused_bytes);
        return 0;
    }
    if (room_for(grouping, &grouper->nodes, grouper->nodes_count, sizeof(struct group_node)) ==
        NULL)
        return 0;
    uint32_t node = (uint32_t)grouper->nodes_count++;
    *node_at(grouper, node) = (struct group_node){
        .number = number,
        .head = head_begin,
        .head_bytes = nested_output_size(&grouper->output) - head_begin,
    };
    struct group_node *above = node_at(grouper, parent);
    if (node != ROOT && above->last != 0)
        node_at(grouper, above->last)->next = node;
    else if (node != ROOT)
        above->first = node;
    above->last = node;
    return node;
}

/* The node that the content (since `begin`) names, or 0 for a new one. *ret_content is for
 * name_node. */
static uint32_t find_node(struct grouping *grouping, size_t begin, uint32_t *ret_content)
{
    struct attribute_grouper *grouper = grouping->grouper;
    bool is_new;
    *ret_content = intern(grouping, begin, &is_new);
    if (*ret_content == 0 || is_new)
        return 0;
    return ((const uint32_t *)grouper->places.memory)[*ret_content];
}

static void name_node(struct grouping *grouping, uint32_t content, uint32_t node)
{
    uint32_t *places = room_for(grouping, &grouping->grouper->places, content, sizeof(uint32_t));
    if (places != NULL)
        places[content] = node;
}

static void put_list(struct grouping *grouping, const struct attribute_list *list, uint32_t number)
{
    struct attribute_grouper *grouper = grouping->grouper;
    size_t size = attribute_list_bytes(list, number);
    uint8_t *room = arena_try_alloc(&grouper->identity.arena, size > 0 ? size : 1);
    if (room == NULL) {
        fail(grouping, size);
        return;
    }
    struct wire_writer writer = wire_writer_of(room, size);
    attribute_list_write(list, number, &writer);
    nested_put_raw(&grouper->output, wire_written(&writer));
    arena_clear(&grouper->identity.arena);
}

/* ---- Resources ---- */

/* Reads the resource: what it is without the keys, and its own values of them. */
static void enter_resource(struct grouping *grouping, struct slice content)
{
    struct attribute_grouper *grouper = grouping->grouper;
    bool is_new;
    record_read_head_attributes(grouping->edit, content, RESOURCE_ATTRIBUTES, &grouper->resource);
    if (!record_list_is_whole(grouping->edit, &grouper->resource))
        return;
    /* Of the resource, and of the record at hand. */
    uint32_t *values =
        room_for(grouping, &grouper->values, 2 * grouper->keys_count, sizeof(uint32_t));
    if (values == NULL)
        return;
    for (size_t i = 0; i < grouper->keys_count && !grouping->edit->has_failed; i++) {
        struct attribute *own = attribute_list_find(&grouper->resource, grouper->keys[i]);
        values[i] = 0;
        if (own == NULL)
            continue;
        size_t begin = begin_content(grouping, OF_VALUE);
        identity_put_value(&grouper->identity, own->value);
        values[i] = intern(grouping, begin, &is_new);
        own->is_doomed = true;
    }
    size_t begin = begin_content(grouping, OF_ATTRIBUTES);
    identity_put_attributes(&grouper->identity, &grouper->resource);
    grouping->base = intern(grouping, begin, &is_new);
    for (size_t i = 0; i < grouper->resource.count; i++)
        grouper->resource.items[i].is_doomed = false;
}

/* The resource's attributes, with those of the record in the list that are keys. */
static void put_resource(struct grouping *grouping)
{
    struct attribute_grouper *grouper = grouping->grouper;
    struct attribute_list *resource = &grouper->resource;
    size_t count = resource->count;
    struct nested_message message = nested_put_begin(&grouper->output, RECORDS_HEAD, LENGTH_BYTES);
    /* They are put for this group alone. */
    struct attribute *before =
        arena_try_alloc(&grouper->identity.arena, (grouper->keys_count + 1) * sizeof(*before));
    if (before == NULL) {
        fail(grouping, grouper->keys_count * sizeof(*before));
        return;
    }
    for (size_t i = 0; i < grouper->keys_count; i++) {
        const struct attribute *moved = attribute_list_find(&grouper->list, grouper->keys[i]);
        struct attribute *own = attribute_list_find(resource, grouper->keys[i]);
        if (own != NULL)
            before[i] = *own;
        if (moved != NULL)
            attribute_list_put(resource, grouper->keys[i], moved->value);
    }
    size_t size = attribute_list_bytes(resource, RESOURCE_ATTRIBUTES);
    uint8_t *room = arena_try_alloc(&grouper->identity.arena, size > 0 ? size : 1);
    if (room == NULL || resource->has_failed) {
        fail(grouping, size);
        return;
    }
    struct wire_writer writer = wire_writer_of(room, size);
    attribute_list_write(resource, RESOURCE_ATTRIBUTES, &writer);
    nested_put_raw(&grouper->output, wire_written(&writer));
    nested_put_end(&grouper->output, message);
    resource->count = count;
    for (size_t i = 0; i < grouper->keys_count; i++) {
        struct attribute *own = attribute_list_find(resource, grouper->keys[i]);
        if (own != NULL)
            *own = before[i];
    }
    arena_clear(&grouper->identity.arena);
}

/* The resource's node for the record in the list. */
static uint32_t resource_node(struct grouping *grouping, bool *ret_is_grouped)
{
    struct attribute_grouper *grouper = grouping->grouper;
    struct identity *identity = &grouper->identity;
    const uint32_t *own = grouper->values.memory;
    uint32_t *values = (uint32_t *)grouper->values.memory + grouper->keys_count;
    uint32_t content;
    bool is_new;
    *ret_is_grouped = false;
    /* Values first, then the content that names them. */
    for (size_t i = 0; i < grouper->keys_count; i++) {
        const struct attribute *moved = attribute_list_find(&grouper->list, grouper->keys[i]);
        values[i] = own[i];
        if (moved == NULL)
            continue;
        size_t begin = begin_content(grouping, OF_VALUE);
        identity_put_value(identity, moved->value);
        values[i] = intern(grouping, begin, &is_new);
        *ret_is_grouped = true;
    }
    size_t begin = begin_content(grouping, OF_NODE);
    identity_put_raw(identity, &grouping->base, sizeof(grouping->base));
    identity_put_raw(identity, values, grouper->keys_count * sizeof(values[0]));
    uint32_t node = find_node(grouping, begin, &content);
    if (node != 0 || grouping->edit->has_failed)
        return node;
    size_t head = nested_output_size(&grouper->output);
    put_resource(grouping);
    node = add_node(grouping, ROOT, RECORDS_RESOURCES, head);
    name_node(grouping, content, node);
    grouper->figures.groups++;
    return node;
}

/* ---- Scopes and metrics ---- */

static bool is_data(uint32_t number)
{
    return number == METRIC_GAUGE || number == METRIC_SUM || number == METRIC_HISTOGRAM ||
           number == METRIC_EXPONENTIAL || number == METRIC_SUMMARY;
}

static bool is_of_head(enum group_head head, uint32_t number)
{
    if (head == GROUP_SCOPE)
        return number == RECORDS_HEAD;
    return head == GROUP_METRIC ? !is_data(number) : number != DATA_POINTS;
}

/* Gets the fields of content that belong to the head in one piece, copied if they lie in several.
 */
static void read_head(struct grouping *grouping, enum group_head head, struct slice content)
{
    struct scratch *scratch = &grouping->grouper->heads[head];
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct slice run = slice_of(NULL, 0);
    bool is_one = true;
    while (wire_next_field(&reader, &field)) {
        if (!is_of_head(head, field.number))
            continue;
        if (run.data == NULL)
            run.data = field.whole.data;
        is_one &= run.data + run.size == field.whole.data;
        run.size += field.whole.size;
    }
    grouping->heads[head] = is_one ? run : slice_of(NULL, 0);
    if (is_one)
        return;
    uint8_t *at = room_for(grouping, scratch, run.size, 1);
    if (at == NULL)
        return;
    grouping->heads[head] = slice_of(at, run.size);
    reader = wire_reader_of(content);
    while (wire_next_field(&reader, &field)) {
        if (!is_of_head(head, field.number))
            continue;
        memcpy(at, field.whole.data, field.whole.size);
        at += field.whole.size;
    }
}

static void enter_scope(struct grouping *grouping, struct slice content)
{
    struct identity *identity = &grouping->grouper->identity;
    struct slice texts[2] = {slice_of(NULL, 0), slice_of(NULL, 0)};
    struct wire_field field;
    bool is_new;
    read_head(grouping, GROUP_SCOPE, content);
    struct wire_reader reader = wire_reader_of(grouping->heads[GROUP_SCOPE]);
    while (wire_next_field(&reader, &field)) {
        struct wire_reader head = wire_reader_of(field.bytes);
        while (wire_next_field(&head, &field)) {
            if (field.number == SCOPE_NAME)
                texts[0] = field.bytes;
            if (field.number == SCOPE_VERSION)
                texts[1] = field.bytes;
        }
    }
    size_t begin = begin_content(grouping, OF_SCOPE);
    identity_put_text(identity, texts[0]);
    identity_put_text(identity, texts[1]);
    grouping->scope = intern(grouping, begin, &is_new);
}

static size_t begin_node(struct grouping *grouping, uint32_t parent, uint32_t what)
{
    struct identity *identity = &grouping->grouper->identity;
    size_t begin = begin_content(grouping, OF_NODE);
    identity_put_raw(identity, &parent, sizeof(parent));
    identity_put_raw(identity, &what, sizeof(what));
    /* Resources have other sizes, or this. */
    identity_put_text(identity, slice_of_text("below"));
    return begin;
}

static uint32_t scope_node(struct grouping *grouping, uint32_t parent)
{
    uint32_t content;
    uint32_t node = find_node(grouping, begin_node(grouping, parent, grouping->scope), &content);
    if (node != 0 || grouping->edit->has_failed)
        return node;
    size_t head = nested_output_size(&grouping->grouper->output);
    nested_put_raw(&grouping->grouper->output, grouping->heads[GROUP_SCOPE]);
    node = add_node(grouping, parent, RECORDS_CHILDREN, head);
    name_node(grouping, content, node);
    return node;
}

static void enter_metric(struct grouping *grouping, const struct wire_field *metric,
                         const struct wire_field *data)
{
    enum { NAME = 1 };
    struct identity *identity = &grouping->grouper->identity;
    struct slice name = slice_of(NULL, 0);
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    bool is_new;
    while (wire_next_field(&reader, &field))
        if (field.number == NAME)
            name = field.bytes;
    size_t begin = begin_content(grouping, OF_METRIC);
    identity_put_number(identity, data->number);
    identity_put_text(identity, name);
    grouping->metric = intern(grouping, begin, &is_new);
    grouping->metric_field = metric;
    grouping->data_field = data;
    grouping->has_metric_heads = false;
}

/* The data of the metric at hand, where its points go. */
static uint32_t data_node(struct grouping *grouping, uint32_t parent)
{
    struct nested_output *output = &grouping->grouper->output;
    uint32_t content;
    uint32_t node = find_node(grouping, begin_node(grouping, parent, grouping->metric), &content);
    if (node == 0 && !grouping->has_metric_heads) {
        read_head(grouping, GROUP_METRIC, grouping->metric_field->bytes);
        read_head(grouping, GROUP_DATA, grouping->data_field->bytes);
        grouping->has_metric_heads = true;
    }
    if (node != 0 || grouping->edit->has_failed)
        return node;
    size_t head = nested_output_size(output);
    nested_put_raw(output, grouping->heads[GROUP_METRIC]);
    uint32_t metric = add_node(grouping, parent, RECORDS_CHILDREN, head);
    if (metric == 0)
        return 0;
    head = nested_output_size(output);
    nested_put_raw(output, grouping->heads[GROUP_DATA]);
    node = add_node(grouping, metric, grouping->data_field->number, head);
    name_node(grouping, content, node);
    return node;
}

/* ---- Records ---- */

static void add_leaf(struct grouping *grouping, uint32_t node, struct group_leaf leaf)
{
    struct attribute_grouper *grouper = grouping->grouper;
    if (room_for(grouping, &grouper->leaves, grouper->leaves_count, sizeof(leaf)) == NULL)
        return;
    uint32_t place = (uint32_t)grouper->leaves_count++;
    struct group_node *parent = node_at(grouper, node);
    *leaf_at(grouper, place) = leaf;
    if (parent->last_leaf != 0)
        leaf_at(grouper, parent->last_leaf - 1)->next = place + 1;
    else
        parent->first_leaf = place + 1;
    parent->last_leaf = place + 1;
}

/* The record without the attributes that its resource has got. */
static void put_record(struct grouping *grouping, const struct wire_field *record, uint32_t number)
{
    struct attribute_grouper *grouper = grouping->grouper;
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field field;
    bool is_put = false;
    for (size_t i = 0; i < grouper->keys_count; i++)
        attribute_list_remove(&grouper->list, grouper->keys[i]);
    struct nested_message message =
        nested_put_begin(&grouper->output, record->number, LENGTH_BYTES);
    while (wire_next_field(&reader, &field)) {
        if (field.number != number) {
            nested_put_raw(&grouper->output, field.whole);
            continue;
        }
        if (!is_put)
            put_list(grouping, &grouper->list, number);
        is_put = true;
    }
    nested_put_end(&grouper->output, message);
}

/* Heads are written once for each group: few bytes of records can repeat much of the request. */
static bool has_grown_little(struct grouping *grouping)
{
    struct record_edit *edit = grouping->edit;
    uint64_t written = nested_output_size(&grouping->grouper->output);
    if (!record_may_grow(edit->batch, written)) {
        fail(grouping, UINT64_MAX / 2);
    } else if (written > edit->written_max) {
        edit->is_long = true;
        edit->has_failed = true;
    }
    return !edit->has_failed;
}

/* A span, log record or data point, whose attributes are fields of that number. */
static void group_record(struct grouping *grouping, const struct wire_field *record,
                         uint32_t number, bool is_point)
{
    struct attribute_grouper *grouper = grouping->grouper;
    bool is_grouped;
    record_read_attributes(grouping->edit, record->bytes, number, &grouper->list);
    if (!record_list_is_whole(grouping->edit, &grouper->list))
        return;
    uint32_t node = resource_node(grouping, &is_grouped);
    if (!grouping->edit->has_failed)
        node = scope_node(grouping, node);
    if (is_point && !grouping->edit->has_failed)
        node = data_node(grouping, node);
    if (grouping->edit->has_failed)
        return;
    struct group_leaf leaf = {
        .place = (size_t)(record->whole.data - grouping->bytes.data),
        .bytes = record->whole.size,
    };
    if (is_grouped) {
        leaf.is_new = true;
        leaf.place = nested_output_size(&grouper->output);
        put_record(grouping, record, number);
        leaf.bytes = nested_output_size(&grouper->output) - leaf.place;
        grouper->figures.grouped++;
    } else {
        grouper->figures.not_grouped++;
    }
    if (grouper->output.refused_bytes > 0)
        fail(grouping, grouper->output.refused_bytes);
    if (!grouping->edit->has_failed && has_grown_little(grouping))
        add_leaf(grouping, node, leaf);
}

static void group_metric(struct grouping *grouping, const struct wire_field *metric)
{
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    struct wire_field data = {.number = 0};
    while (wire_next_field(&reader, &field))
        if (is_data(field.number))
            data = field;
    if (data.number == 0)
        return;
    enter_metric(grouping, metric, &data);
    uint32_t number = metric_point_attributes((enum metric_kind)data.number);
    reader = wire_reader_of(data.bytes);
    while (record_edit_goes_on(grouping->edit) && wire_next_field(&reader, &field))
        if (field.number == DATA_POINTS)
            group_record(grouping, &field, number, true);
}

static void group_all(struct grouping *grouping, enum signal_kind signal)
{
    struct wire_reader resources = wire_reader_of(grouping->bytes);
    struct wire_field resource;
    struct wire_field scope;
    struct wire_field record;
    while (record_edit_goes_on(grouping->edit) && wire_next_field(&resources, &resource)) {
        if (resource.number != RECORDS_RESOURCES)
            continue;
        enter_resource(grouping, resource.bytes);
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (record_edit_goes_on(grouping->edit) && wire_next_field(&scopes, &scope)) {
            if (scope.number != RECORDS_CHILDREN)
                continue;
            enter_scope(grouping, scope.bytes);
            struct wire_reader records = wire_reader_of(scope.bytes);
            while (record_edit_goes_on(grouping->edit) && wire_next_field(&records, &record)) {
                if (record.number != RECORDS_CHILDREN)
                    continue;
                if (signal == METRICS)
                    group_metric(grouping, &record);
                else
                    group_record(grouping, &record,
                                 signal == TRACES ? SPAN_ATTRIBUTES : LOG_ATTRIBUTES, false);
            }
        }
    }
}

/* ---- Writing ---- */

/* Recursion is bounded: the tree has five levels. */
static uint64_t measure(const struct attribute_grouper *grouper, uint32_t at)
{
    struct group_node *node = node_at(grouper, at);
    uint64_t bytes = node->head_bytes;
    for (uint32_t child = node->first; child != 0; child = node_at(grouper, child)->next)
        bytes += wire_field_size(node_at(grouper, child)->number, measure(grouper, child));
    for (uint32_t leaf = node->first_leaf; leaf != 0; leaf = leaf_at(grouper, leaf - 1)->next)
        bytes += leaf_at(grouper, leaf - 1)->bytes;
    node->content_bytes = bytes;
    return bytes;
}

/* The records of a node; neighbours of the request are borrowed together. */
static void write_leaves(const struct attribute_grouper *grouper, const struct group_node *node,
                         struct batch_writer *writer, const struct batch *whole)
{
    size_t begin = 0;
    size_t end = 0;
    for (uint32_t at = node->first_leaf;; at = leaf_at(grouper, at - 1)->next) {
        const struct group_leaf *leaf = at != 0 ? leaf_at(grouper, at - 1) : NULL;
        if (leaf != NULL && !leaf->is_new && leaf->place == end) {
            end += leaf->bytes;
            continue;
        }
        if (end > begin) {
            struct rope rope = rope_of(whole);
            rope_skip(&rope, begin);
            batch_writer_borrow(writer, rope, end - begin);
        }
        begin = end = 0;
        if (leaf == NULL)
            return;
        if (leaf->is_new) {
            batch_writer_copy(writer,
                              slice_of(grouper->output.buffer->data + leaf->place, leaf->bytes));
        } else {
            begin = leaf->place;
            end = leaf->place + leaf->bytes;
        }
    }
}

static void write_node(const struct attribute_grouper *grouper, uint32_t at,
                       struct batch_writer *writer, const struct batch *whole)
{
    const struct group_node *node = node_at(grouper, at);
    if (node->head_bytes > 0)
        batch_writer_copy(writer,
                          slice_of(grouper->output.buffer->data + node->head, node->head_bytes));
    write_leaves(grouper, node, writer, whole);
    for (uint32_t child = node->first; child != 0; child = node_at(grouper, child)->next) {
        batch_writer_header(writer, node_at(grouper, child)->number,
                            node_at(grouper, child)->content_bytes);
        write_node(grouper, child, writer, whole);
    }
}

static struct batch *write_all(struct grouping *grouping, const struct batch *whole)
{
    struct attribute_grouper *grouper = grouping->grouper;
    struct record_edit *edit = grouping->edit;
    struct batch_writer writer;
    const uint64_t bytes = measure(grouper, ROOT);
    const uint64_t needed = edit->may_exceed ? bytes : 2 * bytes;
    if (bytes > RECORD_REQUEST_BYTES_MAX)
        fail(grouping, UINT64_MAX / 2);
    else if (!batch_has_room(edit->batch, grouper->budget, needed))
        fail(grouping, needed);
    if (edit->has_failed)
        return NULL;
    struct batch *edited = batch_create_like(edit->batch, 4);
    batch_writer_init(&writer, edited, grouper->budget);
    write_node(grouper, ROOT, &writer, whole);
    batch_writer_fini(&writer);
    edited->items = grouper->leaves_count;
    assert(edited->bytes == bytes);
    return edited;
}

struct batch *attribute_grouper_run(struct attribute_grouper *grouper, struct record_edit *edit,
                                    struct batch *batch)
{
    struct grouping grouping = {.grouper = grouper, .edit = edit};
    struct batch *edited = NULL;
    grouper->figures = (struct group_figures){.groups = 0};
    if (!record_edit_begin(edit, batch))
        return NULL;
    if (batch->bytes == 0) {
        record_edit_end(edit);
        return batch_ref(batch);
    }
    edit->may_give_up = edit->lane != NULL;
    grouping.bytes = edit->whole->parts[0].bytes;
    /* What nobody would send again may use the margin. */
    batch_begin_work(batch);
    add_node(&grouping, ROOT, 0, 0);
    group_all(&grouping, batch->signal);
    batch_end_work(batch);
    if (!edit->has_failed)
        edited = write_all(&grouping, edit->whole);
    if (edit->has_failed && edit->missed_bytes < UINT64_MAX / 2)
        edit->missed_bytes += held_bytes(grouper);
    record_edit_end(edit);
    forget(grouper);
    return edited;
}
