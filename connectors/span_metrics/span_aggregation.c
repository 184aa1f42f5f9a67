/* SPDX-License-Identifier: Apache-2.0 */
/* Spans to series. Runs on the owner's lane. */
#include "connectors/span_metrics/span_aggregation.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"

/* Fields of opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto. */
enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_STATUS = 15,
    EVENT_ATTRIBUTES = 3,
    STATUS_CODE = 3,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_VALUE_STRING = 1,
};

enum {
    KIND_UNKNOWN = 6,
    STATUS_UNKNOWN = 3,
    TRACE_STATE_BYTES_MAX = 1024,
    /* Spans, events and resources that are added at once. */
    WORK_AT_ONCE = 8192,
    KEY_WORDS = 7, /* beside the labels … */
    LABEL_WORDS = 3,
};

static const struct slice nothing = {.data = NULL};

static size_t picked_max(const struct dimensions *dimensions)
{
    size_t count = 0;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        count += dimensions->lists[i].count +
                 (dimensions->lists[i].globs_count > 0 ? LABEL_SOURCES * GLOB_MATCHES_MAX : 0);
    return count;
}

void span_aggregation_init(struct span_aggregation *aggregation,
                           const struct aggregation_settings *settings, struct series_store *store,
                           struct budget *budget)
{
    const struct dimensions *dimensions = settings->dimensions;
    size_t most = picked_max(dimensions);
    *aggregation = (struct span_aggregation){.settings = settings,
                                             .store = store,
                                             .budget = budget,
                                             .others.budget = budget,
                                             .adjusted = {.whole = 1, .divisor = 1}};
    for (unsigned i = 0; i < LABEL_SOURCES; i++) {
        struct found_labels *found = &aggregation->found[i];
        found->named = mem_zalloc(dimensions->names_count * sizeof(found->named[0]));
        if (dimensions->has_globs)
            found->globs = mem_zalloc(DIMENSION_LISTS * sizeof(found->globs[0]));
    }
    aggregation->picked = mem_alloc(most * sizeof(aggregation->picked[0]));
    aggregation->words = mem_alloc((KEY_WORDS + LABEL_WORDS * most) * sizeof(uint64_t));
    aggregation->trace_state = mem_alloc(TRACE_STATE_BYTES_MAX);
}

void span_aggregation_fini(struct span_aggregation *aggregation)
{
    for (unsigned i = 0; i < LABEL_SOURCES; i++) {
        mem_free(aggregation->found[i].named);
        mem_free(aggregation->found[i].globs);
    }
    mem_free(aggregation->picked);
    mem_free(aggregation->words);
    mem_free(aggregation->trace_state);
    nested_output_fini(&aggregation->others);
}

struct key_value {
    struct slice key;
    struct slice value;
};

/* Whether it has the usual form: key and value once, in this order, both with lengths below 128. */
static inline bool read_plain(struct slice bytes, struct key_value *ret)
{
    enum { HEADERS = 4, SHORT = 0x80 };
    const uint8_t *at = bytes.data;
    if (bytes.size < HEADERS || at[0] != (KEY_VALUE_KEY << 3 | WIRE_BYTES) || at[1] >= SHORT ||
        (size_t)at[1] + HEADERS > bytes.size)
        return false;
    const uint8_t *value = at + 2 + at[1];
    if (value[0] != (KEY_VALUE_VALUE << 3 | WIRE_BYTES) || value[1] >= SHORT ||
        (size_t)at[1] + value[1] + HEADERS != bytes.size)
        return false;
    *ret = (struct key_value){slice_of(at + 2, at[1]), slice_of(value + 2, value[1])};
    return true;
}

static struct key_value read_key_value(struct slice bytes)
{
    struct key_value pair = {nothing, nothing};
    if (read_plain(bytes, &pair))
        return pair;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.type == WIRE_BYTES && field.number == KEY_VALUE_KEY)
            pair.key = field.bytes;
        else if (field.type == WIRE_BYTES && field.number == KEY_VALUE_VALUE)
            pair.value = field.bytes;
    }
    return pair;
}

/* Decimal digits, from the end of the room. */
static struct slice write_integer(int64_t integer, char room[DOUBLE_STRING_BYTES_MAX])
{
    uint64_t rest = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    char *const end = room + DOUBLE_STRING_BYTES_MAX;
    char *at = end;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (integer < 0)
        *--at = '-';
    return slice_of(at, (size_t)(end - at));
}

/* Of its text, since the Go collector takes values of equal text for equal. */
static struct text_hash hash_value(const struct span_aggregation *aggregation, struct slice encoded)
{
    enum { TEXT_BYTES_MAX = 64 << 20 };
    uint64_t seed = aggregation->settings->dimensions->seed;
    /* A string of less than 128 bytes and nothing else. */
    if (encoded.size >= 2 && encoded.data[0] == (ANY_VALUE_STRING << 3 | WIRE_BYTES) &&
        encoded.data[1] == encoded.size - 2 && encoded.data[1] < 0x80)
        return text_hash_of(seed, slice_of(encoded.data + 2, encoded.size - 2));
    struct value value = value_read(encoded);
    char number[DOUBLE_STRING_BYTES_MAX];
    struct slice text = encoded;
    struct arena arena;
    switch (value.type) {
    case VALUE_STRING:
        return text_hash_of(seed, value.bytes);
    case VALUE_EMPTY:
        return text_hash_of(seed, nothing);
    case VALUE_BOOL:
        return text_hash_of(seed, slice_of_text(value.boolean ? "true" : "false"));
    case VALUE_INT:
        return text_hash_of(seed, write_integer(value.integer, number));
    case VALUE_DOUBLE:
        return text_hash_of(seed, slice_of(number, double_to_string(value.real, number)));
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        break;
    }
    arena_init_charged(&arena, TEXT_BYTES_MAX, aggregation->budget);
    if (!value_to_string(&arena, encoded, &text))
        text = encoded;
    struct text_hash hash = text_hash_of(seed, text);
    arena_clear(&arena);
    return hash;
}

/* Resources. */

static bool is_key_attribute(const struct config_texts *keys, struct slice key)
{
    for (size_t i = 0; i < keys->count; i++)
        if (slice_equal_text(key, keys->texts[i]))
            return true;
    return keys->count == 0;
}

/* The order of attributes does not matter, their type does. */
static void add_to_resource_key(const struct span_aggregation *aggregation, struct text_hash *key,
                                const struct key_value *pair)
{
    uint64_t seed = aggregation->settings->dimensions->seed + 1;
    struct value value = value_read(pair->value);
    uint64_t scalar = (uint64_t)value.integer ^ value.boolean;
    if (value.type == VALUE_DOUBLE)
        memcpy(&scalar, &value.real, sizeof(scalar));
    struct text_hash name = text_hash_of(seed, pair->key);
    struct text_hash content = text_hash_of(seed, value.bytes);
    const uint64_t words[] = {name.low,    name.high,    (uint64_t)value.type,
                              content.low, content.high, scalar};
    struct text_hash hash = text_hash_of(seed, slice_of(words, sizeof(words)));
    key->low += hash.low;
    key->high += hash.high;
}

/* Of a resource with too many attributes to look at each: their order matters. */
static void add_rest_to_resource_key(const struct span_aggregation *aggregation,
                                     struct text_hash *key, struct slice message)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct text_hash hash = text_hash_of(settings->dimensions->seed, message);
    if (settings->key_attributes->count > 0)
        return;
    key->low += hash.low;
    key->high += hash.high;
}

static void clear_found(const struct span_aggregation *aggregation, enum label_source source)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    const struct found_labels *found = &aggregation->found[source];
    for (size_t i = 0; i < dimensions->names_count; i++)
        found->named[i].key.data = NULL;
    for (unsigned i = 0; found->globs != NULL && i < DIMENSION_LISTS; i++)
        found->globs[i].count = found->globs[i].examined = 0;
}

static void match_globs(const struct span_aggregation *aggregation, enum label_source source,
                        const struct key_value *pair)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++) {
        const struct dimension_set *set = &dimensions->lists[i];
        struct glob_matches *matches = &aggregation->found[source].globs[i];
        bool is_match = false;
        if (set->globs_count == 0 || matches->count == GLOB_MATCHES_MAX ||
            matches->examined++ >= GLOB_ATTRIBUTES_MAX)
            continue;
        for (size_t j = 0; j < set->globs_count && !is_match; j++)
            is_match = pattern_matches(set->globs[j], pair->key);
        if (!is_match)
            continue;
        matches->items[matches->count] = (struct picked_label){
            .key = pair->key,
            .value = pair->value,
            .hash = hash_value(aggregation, pair->value),
            .tag = text_hash_of(dimensions->seed, pair->key).low | UINT64_C(1) << 63,
            .place = matches->count};
        matches->count++;
    }
}

/* Notes the attribute if it is wanted. Of equal keys the first counts, of events the last. */
static void find_labels(const struct span_aggregation *aggregation, enum label_source source,
                        const struct key_value *pair)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    size_t name = dimensions_find(dimensions, pair->key);
    if (name < dimensions->names_count) {
        struct picked_label *label = &aggregation->found[source].named[name];
        if (label->key.data == NULL || source == LABELS_OF_EVENT)
            *label = (struct picked_label){.key = dimensions->names[name],
                                           .value = pair->value,
                                           .hash = hash_value(aggregation, pair->value),
                                           .tag = name};
    }
    if (dimensions->has_globs)
        match_globs(aggregation, source, pair);
}

static int compare_labels(const void *a, const void *b)
{
    const struct picked_label *left = a;
    const struct picked_label *right = b;
    int order = slice_compare(left->key, right->key);
    return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

static bool has_label(const struct glob_matches *matches, struct slice key)
{
    size_t from = 0;
    size_t to = matches->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        int order = slice_compare(matches->items[middle].key, key);
        if (order == 0)
            return true;
        from = order < 0 ? middle + 1 : from;
        to = order < 0 ? to : middle;
    }
    return false;
}

/* By key, each once. */
static void sort_matches(const struct span_aggregation *aggregation, enum label_source source)
{
    for (unsigned i = 0; aggregation->found[source].globs != NULL && i < DIMENSION_LISTS; i++) {
        struct glob_matches *matches = &aggregation->found[source].globs[i];
        size_t kept = 0;
        if (matches->count > 1)
            qsort(matches->items, matches->count, sizeof(matches->items[0]), compare_labels);
        for (size_t j = 0; j < matches->count; j++) {
            bool is_new =
                kept == 0 || !slice_equal(matches->items[kept - 1].key, matches->items[j].key);
            if (is_new)
                matches->items[kept++] = matches->items[j];
            else if (source == LABELS_OF_EVENT)
                matches->items[kept - 1] = matches->items[j];
        }
        matches->count = kept;
    }
}

static void leave_resource(struct span_aggregation *aggregation)
{
    if (aggregation->resource != NULL)
        aggregation->resource->is_pinned = false;
    aggregation->resource = NULL;
}

static void enter_resource(struct span_aggregation *aggregation, struct text_hash key,
                           struct slice message)
{
    uint64_t now_ns = aggregation->time.now_ns;
    struct series_resource *resource = span_series_resource_get(aggregation->store, key, now_ns);
    if (resource == NULL) {
        struct nested_output *attributes = &aggregation->others;
        struct wire_reader reader = wire_reader_of(message);
        struct wire_field field;
        struct slice run = nothing; /* of attributes that follow each other */
        nested_output_cut(attributes, 0);
        while (wire_next_field(&reader, &field)) {
            if (field.type != WIRE_BYTES || field.number != RESOURCE_ATTRIBUTES)
                continue;
            if (run.data == NULL || run.data + run.size != field.whole.data) {
                nested_put_raw(attributes, run);
                run = slice_of(field.whole.data, 0);
            }
            run.size += field.whole.size;
        }
        nested_put_raw(attributes, run);
        if (attributes->refused_bytes == 0)
            resource = span_series_resource_add(
                aggregation->store, key,
                attributes->buffer != NULL ? buffer_slice(attributes->buffer) : nothing, now_ns);
        attributes->refused_bytes = 0;
    }
    aggregation->resource = resource;
    if (resource != NULL)
        resource->is_pinned = true;
}

/* The resource of a ResourceSpans message. False: it has no service.name, and its spans do not
 * count. */
static bool read_resource(struct span_aggregation *aggregation, struct slice resource_spans)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct wire_reader reader = wire_reader_of(resource_spans);
    struct wire_field field;
    struct slice message = nothing;
    struct slice service = nothing;
    struct text_hash key = {0, 0};
    size_t attributes = 0;
    bool has_service = false;
    leave_resource(aggregation);
    /* It comes first, nearly always. */
    while (message.data == NULL && wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && field.number == RESOURCE_SPANS_RESOURCE)
            message = field.bytes;
    clear_found(aggregation, LABELS_OF_RESOURCE);
    reader = wire_reader_of(message);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number != RESOURCE_ATTRIBUTES)
            continue;
        if (attributes++ == LABEL_ATTRIBUTES_MAX) {
            add_rest_to_resource_key(aggregation, &key, message);
            break;
        }
        struct key_value pair = read_key_value(field.bytes);
        if (!has_service && slice_equal_text(pair.key, "service.name")) {
            struct value value = value_read(pair.value);
            service = value.type == VALUE_STRING ? value.bytes : nothing;
            has_service = true;
        }
        if (is_key_attribute(settings->key_attributes, pair.key))
            add_to_resource_key(aggregation, &key, &pair);
        find_labels(aggregation, LABELS_OF_RESOURCE, &pair);
    }
    if (!has_service)
        return false;
    sort_matches(aggregation, LABELS_OF_RESOURCE);
    enter_resource(aggregation, key, message);
    aggregation->labels.service = settings->has_service ? service : nothing;
    aggregation->service_hash = settings->has_service
                                    ? text_hash_of(settings->dimensions->seed, service)
                                    : (struct text_hash){0, 0};
    return true;
}

static void read_scope(struct span_aggregation *aggregation, struct slice scope_spans)
{
    struct wire_reader reader = wire_reader_of(scope_spans);
    struct wire_field field;
    struct slice scope = nothing;
    aggregation->scope_name = nothing;
    aggregation->scope_version = nothing;
    while (scope.data == NULL && wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && field.number == SCOPE_SPANS_SCOPE)
            scope = field.bytes;
    reader = wire_reader_of(scope);
    while (wire_next_field(&reader, &field)) {
        if (field.type == WIRE_BYTES && field.number == SCOPE_NAME)
            aggregation->scope_name = field.bytes;
        else if (field.type == WIRE_BYTES && field.number == SCOPE_VERSION)
            aggregation->scope_version = field.bytes;
    }
}

/* Labels of a series. */

static void pick(struct span_aggregation *aggregation, const struct picked_label *label)
{
    aggregation->picked[aggregation->picked_count++] = *label;
}

/* Adds the attributes that are labels by that list: the span's, or else the event's or the
 * resource's, or else the default. */
static void pick_labels(struct span_aggregation *aggregation, enum dimension_list list,
                        bool is_event)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    const struct dimension_set *set = &dimensions->lists[list];
    const struct found_labels *found = aggregation->found;
    for (size_t i = 0; i < set->count; i++) {
        const struct dimension *dimension = &set->items[i];
        size_t name = dimension->name;
        if (found[LABELS_OF_SPAN].named[name].key.data != NULL)
            pick(aggregation, &found[LABELS_OF_SPAN].named[name]);
        else if (is_event && found[LABELS_OF_EVENT].named[name].key.data != NULL)
            pick(aggregation, &found[LABELS_OF_EVENT].named[name]);
        else if (found[LABELS_OF_RESOURCE].named[name].key.data != NULL)
            pick(aggregation, &found[LABELS_OF_RESOURCE].named[name]);
        else if (dimension->standard.data != NULL)
            pick(aggregation, &(struct picked_label){.key = dimensions->names[name],
                                                     .value = dimension->standard,
                                                     .hash = dimension->standard_hash,
                                                     .tag = name});
    }
    if (set->globs_count == 0)
        return;
    const struct glob_matches *span = &found[LABELS_OF_SPAN].globs[list];
    const struct glob_matches *event = &found[LABELS_OF_EVENT].globs[list];
    const struct glob_matches *resource = &found[LABELS_OF_RESOURCE].globs[list];
    for (size_t i = 0; i < span->count; i++)
        pick(aggregation, &span->items[i]);
    size_t first = aggregation->picked_count;
    for (size_t i = 0; is_event && i < event->count; i++)
        if (!has_label(span, event->items[i].key))
            pick(aggregation, &event->items[i]);
    for (size_t i = 0; i < resource->count; i++)
        if (!has_label(span, resource->items[i].key) &&
            !(is_event && has_label(event, resource->items[i].key)))
            pick(aggregation, &resource->items[i]);
    if (is_event && aggregation->picked_count > first)
        qsort(&aggregation->picked[first], aggregation->picked_count - first,
              sizeof(aggregation->picked[0]), compare_labels);
}

static struct text_hash key_of(const struct span_aggregation *aggregation, enum series_set set)
{
    uint64_t *words = aggregation->words;
    const struct series_labels *labels = &aggregation->labels;
    bool is_extrapolated =
        aggregation->settings->has_sampling_method && aggregation->adjusted.is_extrapolated;
    size_t count = 0;
    words[count++] = aggregation->resource->key.low;
    words[count++] = aggregation->resource->key.high;
    words[count++] = aggregation->service_hash.low;
    words[count++] = aggregation->service_hash.high;
    words[count++] = aggregation->name_hash.low;
    words[count++] = aggregation->name_hash.high;
    words[count++] = (uint64_t)labels->kind | (uint64_t)labels->status << 8 | (uint64_t)set << 16 |
                     (uint64_t)is_extrapolated << 24;
    for (size_t i = 0; i < aggregation->picked_count; i++) {
        words[count++] = aggregation->picked[i].tag;
        words[count++] = aggregation->picked[i].hash.low;
        words[count++] = aggregation->picked[i].hash.high;
    }
    return text_hash_of(aggregation->settings->dimensions->seed,
                        slice_of(words, count * sizeof(words[0])));
}

/* Of equal keys the first one's place and the last one's value count. */
static void put_picked(struct span_aggregation *aggregation)
{
    const struct picked_label *picked = aggregation->picked;
    for (size_t i = 0; i < aggregation->picked_count; i++) {
        struct slice value = picked[i].value;
        bool is_known = false;
        for (size_t j = 0; j < i; j++)
            is_known |= slice_equal(picked[j].key, picked[i].key);
        if (is_known)
            continue;
        for (size_t j = i + 1; j < aggregation->picked_count; j++)
            if (slice_equal(picked[j].key, picked[i].key))
                value = picked[j].value;
        metric_attribute_put_value(&aggregation->others, picked[i].key, value);
    }
}

static bool is_picked(const struct span_aggregation *aggregation, const char *key)
{
    for (size_t i = 0; i < aggregation->picked_count; i++)
        if (slice_equal_text(aggregation->picked[i].key, key))
            return true;
    return false;
}

static void put_label(struct span_aggregation *aggregation, const char *key, struct slice text)
{
    if (!is_picked(aggregation, key))
        metric_attribute_put_string(&aggregation->others, slice_of_text(key), text);
}

static struct series *create(struct span_aggregation *aggregation, enum series_set set,
                             struct text_hash key)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct nested_output *others = &aggregation->others;
    struct series *series = NULL;
    bool has_scope = false;
    size_t bytes = 0;
    for (size_t i = 0; i < aggregation->picked_count; i++)
        bytes += aggregation->picked[i].key.size + aggregation->picked[i].value.size;
    /* Nothing long is copied in vain, span after span. */
    aggregation->labels.others = nothing;
    if (aggregation->is_full || bytes > SERIES_LABELS_BYTES_MAX ||
        !span_series_fit(&aggregation->labels))
        return NULL;
    nested_output_cut(others, 0);
    for (size_t i = 0; i < settings->scopes->count && aggregation->scope_name.size > 0; i++)
        has_scope |= slice_equal_text(aggregation->scope_name, settings->scopes->texts[i]);
    if (has_scope)
        put_label(aggregation, "span.instrumentation.scope.name", aggregation->scope_name);
    if (has_scope && aggregation->scope_version.size > 0)
        put_label(aggregation, "span.instrumentation.scope.version", aggregation->scope_version);
    if (settings->has_sampling_method)
        put_label(
            aggregation, "sampling.method",
            slice_of_text(aggregation->adjusted.is_extrapolated ? "extrapolated" : "counted"));
    put_picked(aggregation);
    aggregation->labels.others = others->buffer != NULL ? buffer_slice(others->buffer) : nothing;
    if (others->refused_bytes == 0)
        series = span_series_add(aggregation->store, aggregation->resource, set, key,
                                 &aggregation->labels, aggregation->time);
    aggregation->is_full = series == NULL && span_series_fit(&aggregation->labels);
    others->refused_bytes = 0;
    return series;
}

static void count(struct span_aggregation *aggregation, enum series_set set)
{
    struct series_store *store = aggregation->store;
    struct series_resource *resource = aggregation->resource;
    struct text_hash key = key_of(aggregation, set);
    struct series *series = span_series_find(resource, set, key);
    if (series == NULL && span_series_has_room(store, resource, set, key))
        series = create(aggregation, set, key);
    if (series != NULL)
        series->seen_ns = aggregation->time.now_ns;
    else
        series = span_series_overflow(store, resource, set, aggregation->time);
    if (series == NULL) {
        aggregation->lost += set == SERIES_CALLS;
        return;
    }
    span_series_observe(store->settings, set, series, aggregation->duration, aggregation->times);
    if (aggregation->has_exemplar)
        span_series_exemplify(store->settings, series, &aggregation->exemplar);
}

/* Spans. */

static uint64_t read_status(struct slice bytes)
{
    uint64_t code = 0;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.type == WIRE_VARINT && field.number == STATUS_CODE)
            code = field.number_value;
    return code;
}

/* Most are unwanted, which the size of their key tells. */
static inline void read_span_attribute(const struct span_aggregation *aggregation,
                                       struct span_facts *span, struct slice attribute)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    struct key_value pair;
    if ((dimensions->names_count == 0 && !dimensions->has_globs) ||
        span->attributes++ >= LABEL_ATTRIBUTES_MAX)
        return;
    if (!read_plain(attribute, &pair))
        pair = read_key_value(attribute);
    if (dimensions->has_globs || (dimensions->name_sizes >> pair.key.size % 64 & 1) != 0)
        find_labels(aggregation, LABELS_OF_SPAN, &pair);
}

/* Fields in the usual form: tags of one byte, and lengths of one. Attributes and times are most of
 * a span. Returns where something else begins. */
static inline const uint8_t *read_plain_fields(const struct span_aggregation *aggregation,
                                               struct span_facts *span, const uint8_t *at,
                                               const uint8_t *end)
{
    enum { SHORT = 0x80, FIXED64_BYTES = 9, HEADER = 2 };
    while (end - at >= FIXED64_BYTES) {
        const size_t size = at[1];
        uint64_t number;
        if (at[0] == (SPAN_START << 3 | WIRE_FIXED64) || at[0] == (SPAN_END << 3 | WIRE_FIXED64)) {
            memcpy(&number, at + 1, sizeof(number));
            *(at[0] >> 3 == SPAN_START ? &span->start_ns : &span->end_ns) = le64toh(number);
            at += FIXED64_BYTES;
            continue;
        }
        if ((at[0] & 7) != WIRE_BYTES || size >= SHORT || size + HEADER > (size_t)(end - at))
            return at;
        const struct slice bytes = slice_of(at + HEADER, size);
        if (at[0] == (SPAN_ATTRIBUTES << 3 | WIRE_BYTES))
            read_span_attribute(aggregation, span, bytes);
        else if (at[0] == (SPAN_NAME << 3 | WIRE_BYTES))
            span->name = bytes;
        else if (at[0] == (SPAN_TRACE_ID << 3 | WIRE_BYTES))
            span->trace_id = bytes;
        else if (at[0] == (SPAN_SPAN_ID << 3 | WIRE_BYTES))
            span->span_id = bytes;
        else if (at[0] != (SPAN_PARENT_ID << 3 | WIRE_BYTES))
            return at;
        at += HEADER + size;
    }
    return at;
}

static void read_span_field(const struct span_aggregation *aggregation, struct span_facts *span,
                            const struct wire_field *field)
{
    switch (field->number << 3 | field->type) {
    case SPAN_TRACE_ID << 3 | WIRE_BYTES:
        span->trace_id = field->bytes;
        break;
    case SPAN_SPAN_ID << 3 | WIRE_BYTES:
        span->span_id = field->bytes;
        break;
    case SPAN_TRACE_STATE << 3 | WIRE_BYTES:
        span->trace_state = field->bytes;
        break;
    case SPAN_NAME << 3 | WIRE_BYTES:
        span->name = field->bytes;
        break;
    case SPAN_KIND << 3 | WIRE_VARINT:
        span->kind = field->number_value;
        break;
    case SPAN_START << 3 | WIRE_FIXED64:
        span->start_ns = field->number_value;
        break;
    case SPAN_END << 3 | WIRE_FIXED64:
        span->end_ns = field->number_value;
        break;
    case SPAN_ATTRIBUTES << 3 | WIRE_BYTES:
        read_span_attribute(aggregation, span, field->bytes);
        break;
    case SPAN_EVENTS << 3 | WIRE_BYTES:
        span->has_events = true;
        break;
    case SPAN_STATUS << 3 | WIRE_BYTES:
        span->status = read_status(field->bytes);
        break;
    default:
        break;
    }
}

/* The adjusted count of a tracestate, which is often that of the span before. */
static void adjust(struct span_aggregation *aggregation, struct slice trace_state)
{
    struct slice known = slice_of(aggregation->trace_state, aggregation->trace_state_bytes);
    if (!slice_equal(trace_state, known)) {
        aggregation->adjusted = adjusted_count_read(trace_state);
        bool is_short = trace_state.size <= TRACE_STATE_BYTES_MAX;
        aggregation->trace_state_bytes = is_short ? trace_state.size : 0;
        if (is_short && trace_state.size > 0)
            memcpy(aggregation->trace_state, trace_state.data, trace_state.size);
    }
    aggregation->times = adjusted_count_draw(&aggregation->adjusted);
}

static void set_exemplar(struct span_aggregation *aggregation, const struct span_facts *span)
{
    struct point_exemplar *exemplar = &aggregation->exemplar;
    static const uint8_t none[sizeof(exemplar->trace_id)];
    aggregation->has_exemplar = aggregation->settings->has_exemplars &&
                                span->trace_id.size == sizeof(none) &&
                                memcmp(span->trace_id.data, none, sizeof(none)) != 0;
    if (!aggregation->has_exemplar)
        return;
    *exemplar = (struct point_exemplar){.value = aggregation->duration};
    memcpy(exemplar->trace_id, span->trace_id.data, sizeof(exemplar->trace_id));
    if (span->span_id.size == sizeof(exemplar->span_id))
        memcpy(exemplar->span_id, span->span_id.data, sizeof(exemplar->span_id));
}

static void add_span(struct span_aggregation *aggregation, struct slice bytes)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct span_facts span = {.name = nothing};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    clear_found(aggregation, LABELS_OF_SPAN);
    do {
        reader.at = read_plain_fields(aggregation, &span, reader.at, reader.end);
        if (reader.at == reader.end || !wire_next_field(&reader, &field))
            break;
        read_span_field(aggregation, &span, &field);
    } while (reader.at < reader.end);
    if (settings->dimensions->has_globs)
        sort_matches(aggregation, LABELS_OF_SPAN);

    uint64_t ns = span.end_ns > span.start_ns ? span.end_ns - span.start_ns : 0;
    aggregation->duration = (double)ns / settings->unit_ns;
    adjust(aggregation, span.trace_state);
    set_exemplar(aggregation, &span);
    struct series_labels *labels = &aggregation->labels;
    labels->name = settings->has_name ? span.name : nothing;
    aggregation->name_hash = settings->has_name
                                 ? text_hash_of(settings->dimensions->seed, span.name)
                                 : (struct text_hash){0, 0};
    labels->kind =
        !settings->has_kind ? 0 : (uint8_t)(span.kind < KIND_UNKNOWN ? span.kind : KIND_UNKNOWN);
    labels->status = !settings->has_status
                         ? 0
                         : (uint8_t)(span.status < STATUS_UNKNOWN ? span.status : STATUS_UNKNOWN);
    aggregation->picked_count = 0;
    pick_labels(aggregation, DIMENSIONS_ALL, false);
    size_t common = aggregation->picked_count;
    pick_labels(aggregation, DIMENSIONS_CALLS, false);
    count(aggregation, SERIES_CALLS);
    if (settings->has_histogram && !settings->has_common_labels) {
        aggregation->picked_count = common;
        pick_labels(aggregation, DIMENSIONS_DURATION, false);
        count(aggregation, SERIES_DURATION);
    }
    if (settings->has_events && span.has_events)
        aggregation->events = wire_reader_of(bytes);
}

static void add_event(struct span_aggregation *aggregation, struct slice event)
{
    struct wire_reader reader = wire_reader_of(event);
    struct wire_field field;
    size_t attributes = 0;
    clear_found(aggregation, LABELS_OF_EVENT);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number != EVENT_ATTRIBUTES ||
            attributes++ >= LABEL_ATTRIBUTES_MAX)
            continue;
        struct key_value pair = read_key_value(field.bytes);
        find_labels(aggregation, LABELS_OF_EVENT, &pair);
    }
    sort_matches(aggregation, LABELS_OF_EVENT);
    aggregation->picked_count = 0;
    pick_labels(aggregation, DIMENSIONS_ALL, true);
    pick_labels(aggregation, DIMENSIONS_EVENTS, true);
    count(aggregation, SERIES_EVENTS);
}

void span_aggregation_begin(struct span_aggregation *aggregation, struct slice request,
                            struct series_time time)
{
    aggregation->time = time;
    aggregation->is_full = false;
    aggregation->request = wire_reader_of(request);
    aggregation->resource_spans = wire_reader_of(nothing);
    aggregation->scope_spans = wire_reader_of(nothing);
    aggregation->events = wire_reader_of(nothing);
}

/* Takes the next event, span, ScopeSpans or ResourceSpans, whichever is innermost. False: there is
 * none. */
static bool take_next(struct span_aggregation *aggregation)
{
    struct wire_field field;
    if (aggregation->events.at < aggregation->events.end &&
        wire_next_field(&aggregation->events, &field)) {
        if (field.type == WIRE_BYTES && field.number == SPAN_EVENTS)
            add_event(aggregation, field.bytes);
        return true;
    }
    if (wire_next_field(&aggregation->scope_spans, &field)) {
        if (field.type != WIRE_BYTES || field.number != SCOPE_SPANS_SPANS)
            return true;
        if (aggregation->resource != NULL)
            add_span(aggregation, field.bytes);
        else
            aggregation->lost++;
        return true;
    }
    if (wire_next_field(&aggregation->resource_spans, &field)) {
        if (field.type != WIRE_BYTES || field.number != RESOURCE_SPANS_SCOPE_SPANS)
            return true;
        if (aggregation->settings->scopes->count > 0)
            read_scope(aggregation, field.bytes);
        aggregation->scope_spans = wire_reader_of(field.bytes);
        return true;
    }
    if (!wire_next_field(&aggregation->request, &field)) {
        leave_resource(aggregation);
        return false;
    }
    if (field.type == WIRE_BYTES && field.number == REQUEST_RESOURCE_SPANS &&
        read_resource(aggregation, field.bytes))
        aggregation->resource_spans = wire_reader_of(field.bytes);
    return true;
}

bool span_aggregation_go_on(struct span_aggregation *aggregation)
{
    for (unsigned work = 0; work < WORK_AT_ONCE; work++)
        if (!take_next(aggregation))
            return false;
    return true;
}
