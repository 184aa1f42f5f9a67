/* SPDX-License-Identifier: Apache-2.0 */
/* Spans to series. Runs on the owner's lane. */
#include "connectors/span_metrics/span_aggregation.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/otlp/key_value.h"
#include "src/otlp/span_fields.h"
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
    EVENT_ATTRIBUTES = 3,
};

enum {
    KIND_UNKNOWN = 6,
    STATUS_UNKNOWN = 3,
    TRACE_STATE_BYTES_MAX = 1024,
    /* Spans, events and attributes of resources that are added at once; and bytes of new series'
     * labels, which may repeat a long name of a service: so many take about as long. A label in a
     * key takes as long as so many bytes: globs may match many for each event. */
    WORK_AT_ONCE = 8192,
    COPIED_AT_ONCE = 4 << 20,
    BYTES_PER_LABEL = 64,
    LOOK_WORK = 64, /* done between looks at the clock: spans may have very many attributes */
};

#define PIECE_NS ((uint64_t)2 * NS_PER_MS)

static const struct slice nothing = {.data = NULL};

void span_aggregation_init(struct span_aggregation *aggregation,
                           const struct aggregation_settings *settings, struct series_store *store,
                           struct budget *budget)
{
    *aggregation = (struct span_aggregation){.settings = settings,
                                             .store = store,
                                             .budget = budget,
                                             .others.budget = budget,
                                             .adjusted = {.whole = 1, .divisor = 1}};
    span_labels_init(&aggregation->picker, settings->dimensions, budget);
    aggregation->known = mem_zalloc(sizeof(*aggregation->known));
    aggregation->trace_state = mem_alloc(TRACE_STATE_BYTES_MAX);
}

void span_aggregation_fini(struct span_aggregation *aggregation)
{
    span_labels_fini(&aggregation->picker);
    mem_free(aggregation->known);
    mem_free(aggregation->trace_state);
    nested_output_fini(&aggregation->others);
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
                                const struct key_value *attribute)
{
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    struct value value = value_read(attribute->value);
    uint64_t scalar = (uint64_t)value.integer ^ value.boolean;
    if (value.type == VALUE_DOUBLE)
        memcpy(&scalar, &value.real, sizeof(scalar));
    bool is_scalar = value.bytes.data == NULL;
    struct label_key bytes = {.size = 0};
    label_key_put(dimensions, &bytes, (uint64_t)value.type << WORD_SHIFT, attribute->key);
    label_key_put(dimensions, &bytes, 0,
                  is_scalar ? slice_of(&scalar, sizeof(scalar)) : value.bytes);
    struct text_hash hash = text_hash_of(dimensions->seed + 1, slice_of(bytes.bytes, bytes.size));
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

/* Reads the attributes of a resource. */
static void know_resource(struct span_aggregation *aggregation, struct slice message)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct known_resource *known = aggregation->known;
    struct wire_field field;
    size_t attributes = 0;
    known->message = message;
    if (message.size <= sizeof(known->bytes)) {
        if (message.size > 0)
            memcpy(known->bytes, message.data, message.size);
        known->message.data = known->bytes;
    }
    known->has_service = false;
    known->service = nothing;
    known->key = (struct text_hash){0, 0};
    span_labels_clear(&aggregation->picker, LABELS_OF_RESOURCE);
    struct wire_reader reader = wire_reader_of(known->message);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number != RESOURCE_ATTRIBUTES)
            continue;
        if (attributes++ == LABEL_ATTRIBUTES_MAX) {
            add_rest_to_resource_key(aggregation, &known->key, message);
            break;
        }
        struct key_value attribute = key_value_of(field.bytes);
        if (!known->has_service && slice_equal_text(attribute.key, "service.name")) {
            struct value value = value_read(attribute.value);
            known->service =
                settings->has_service && value.type == VALUE_STRING ? value.bytes : nothing;
            known->has_service = true;
        }
        if (is_key_attribute(settings->key_attributes, attribute.key))
            add_to_resource_key(aggregation, &known->key, &attribute);
        if ((settings->dimensions->size_bits & name_size_bit(attribute.key)) != 0)
            span_labels_note(&aggregation->picker, LABELS_OF_RESOURCE, attribute.key,
                             attribute.value);
    }
    aggregation->work += (unsigned)attributes;
    span_labels_sort(&aggregation->picker, LABELS_OF_RESOURCE);
    struct label_key key = {.size = 0};
    label_key_put(settings->dimensions, &key, 0, slice_of(&known->key, sizeof(known->key)));
    label_key_put(settings->dimensions, &key, 0, known->service);
    known->origin = text_hash_of(settings->dimensions->seed, slice_of(key.bytes, key.size));
}

/* The resource of a ResourceSpans message. False: it has no service.name, and its spans do not
 * count. */
static bool read_resource(struct span_aggregation *aggregation, struct slice resource_spans)
{
    struct known_resource *known = aggregation->known;
    struct wire_reader reader = wire_reader_of(resource_spans);
    struct wire_field field;
    struct slice message = nothing;
    leave_resource(aggregation);
    /* It comes first, nearly always. */
    while (message.data == NULL && wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && field.number == RESOURCE_SPANS_RESOURCE)
            message = field.bytes;
    /* What lies in a request is known no longer than that. */
    if (known->message.data != known->bytes || !slice_equal(known->message, message))
        know_resource(aggregation, message);
    if (!known->has_service)
        return false;
    enter_resource(aggregation, known->key, message);
    aggregation->labels.service = known->service;
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

static struct text_hash key_of(struct span_aggregation *aggregation, enum series_set set)
{
    enum { STATUS_SHIFT = 8, SET_SHIFT = 16, EXTRAPOLATED_SHIFT = 24 };
    const struct dimensions *dimensions = aggregation->settings->dimensions;
    const struct series_labels *labels = &aggregation->labels;
    bool is_extrapolated =
        aggregation->settings->has_sampling_method && aggregation->adjusted.is_extrapolated;
    const uint64_t facts = (uint64_t)labels->kind | (uint64_t)labels->status << STATUS_SHIFT |
                           (uint64_t)set << SET_SHIFT |
                           (uint64_t)is_extrapolated << EXTRAPOLATED_SHIFT;
    struct label_key key;
    key.size = sizeof(aggregation->known->origin);
    memcpy(key.bytes, &aggregation->known->origin, sizeof(aggregation->known->origin));
    label_key_put_text(dimensions, &key, facts << WORD_SHIFT, &aggregation->name);
    span_labels_put(&aggregation->picker, &key);
    aggregation->copied += aggregation->picker.picked_count * BYTES_PER_LABEL;
    return text_hash_of(dimensions->seed, slice_of(key.bytes, key.size));
}

/* Of equal keys the first one's place and the last one's value count. */
static void put_picked(struct span_aggregation *aggregation)
{
    const struct span_label *const *picked = aggregation->picker.picked;
    size_t count = aggregation->picker.picked_count;
    for (size_t i = 0; i < count; i++) {
        struct slice value = picked[i]->value;
        bool is_known = false;
        for (size_t j = 0; j < i; j++)
            is_known |= slice_equal(picked[j]->key, picked[i]->key);
        if (is_known)
            continue;
        for (size_t j = i + 1; j < count; j++)
            if (slice_equal(picked[j]->key, picked[i]->key))
                value = picked[j]->value;
        metric_attribute_put_value(&aggregation->others, picked[i]->key, value);
    }
}

static bool is_picked(const struct span_aggregation *aggregation, const char *key)
{
    for (size_t i = 0; i < aggregation->picker.picked_count; i++)
        if (slice_equal_text(aggregation->picker.picked[i]->key, key))
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
    const struct span_labels *picker = &aggregation->picker;
    for (size_t i = 0; i < picker->picked_count; i++)
        bytes += picker->picked[i]->key.size + picker->picked[i]->value.size;
    for (size_t i = 0; i < settings->scopes->count && aggregation->scope_name.size > 0; i++)
        has_scope |= slice_equal_text(aggregation->scope_name, settings->scopes->texts[i]);
    if (has_scope)
        bytes += aggregation->scope_name.size + aggregation->scope_version.size;
    /* Nothing long is copied in vain, span after span. */
    aggregation->labels.others = nothing;
    if (aggregation->is_full || bytes > SERIES_LABELS_BYTES_MAX ||
        !span_series_fit(&aggregation->labels))
        return NULL;
    nested_output_cut(others, 0);
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
    aggregation->copied += aggregation->labels.others.size + aggregation->labels.service.size +
                           aggregation->labels.name.size;
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

/* Notes those that a dimension may name; nearly all others are ruled out. */
struct attribute_noter {
    struct span_labels *picker;
    uint64_t bits;
};

static inline void note_attribute(void *arg, const struct span_fields *fields, struct slice key,
                                  struct slice value)
{
    const struct attribute_noter *noter = arg;
    (void)fields;
    if ((noter->bits & name_size_bit(key)) != 0)
        span_labels_note(noter->picker, LABELS_OF_SPAN, key, value);
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

static void set_exemplar(struct span_aggregation *aggregation, const struct span_fields *span)
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

static void set_labels(struct span_aggregation *aggregation, const struct span_fields *span)
{
    const struct aggregation_settings *settings = aggregation->settings;
    struct series_labels *labels = &aggregation->labels;
    labels->name = settings->has_name ? span->name : nothing;
    aggregation->name = label_text_of(settings->dimensions, labels->name);
    labels->kind =
        !settings->has_kind ? 0 : (uint8_t)(span->kind < KIND_UNKNOWN ? span->kind : KIND_UNKNOWN);
    labels->status = !settings->has_status
                         ? 0
                         : (uint8_t)(span->status < STATUS_UNKNOWN ? span->status : STATUS_UNKNOWN);
}

static void add_span(struct span_aggregation *aggregation, struct slice content)
{
    const struct aggregation_settings *settings = aggregation->settings;
    const struct dimensions *dimensions = settings->dimensions;
    struct span_labels *picker = &aggregation->picker;
    struct span_fields span;
    if (dimensions->size_bits != 0) {
        struct attribute_noter noter = {picker, dimensions->size_bits};
        span_labels_clear(picker, LABELS_OF_SPAN);
        span_fields_read(content, &span, note_attribute, &noter);
        span_labels_sort(picker, LABELS_OF_SPAN);
    } else {
        span_fields_read(content, &span, NULL, NULL);
    }
    uint64_t ns = span.end_ns > span.start_ns ? span.end_ns - span.start_ns : 0;
    aggregation->duration = (double)ns / settings->unit_ns;
    adjust(aggregation, span.trace_state);
    set_exemplar(aggregation, &span);
    set_labels(aggregation, &span);
    picker->picked_count = 0;
    span_labels_pick(picker, DIMENSIONS_ALL, false);
    size_t common = picker->picked_count;
    if (!settings->has_common_labels)
        span_labels_pick(picker, DIMENSIONS_CALLS, false);
    count(aggregation, SERIES_CALLS);
    if (settings->has_histogram && !settings->has_common_labels) {
        picker->picked_count = common;
        span_labels_pick(picker, DIMENSIONS_DURATION, false);
        count(aggregation, SERIES_DURATION);
    }
    if (settings->has_events)
        aggregation->events = wire_reader_of(span.events);
}

static void add_event(struct span_aggregation *aggregation, struct slice event)
{
    struct span_labels *picker = &aggregation->picker;
    struct wire_reader reader = wire_reader_of(event);
    struct wire_field field;
    const uint64_t size_bits = aggregation->settings->dimensions->size_bits;
    span_labels_clear(picker, LABELS_OF_EVENT);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || field.number != EVENT_ATTRIBUTES)
            continue;
        const struct key_value pair = key_value_of(field.bytes);
        if ((size_bits & name_size_bit(pair.key)) != 0)
            span_labels_note(picker, LABELS_OF_EVENT, pair.key, pair.value);
    }
    span_labels_sort(picker, LABELS_OF_EVENT);
    picker->picked_count = 0;
    span_labels_pick(picker, DIMENSIONS_ALL, true);
    span_labels_pick(picker, DIMENSIONS_EVENTS, true);
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

/* Adds spans of the present ScopeSpans, until one that has events. Returns how many. */
static unsigned add_spans(struct span_aggregation *aggregation, unsigned most)
{
    struct wire_reader reader = aggregation->scope_spans;
    struct wire_field field;
    unsigned taken = 0;
    while (taken < most && aggregation->copied < COPIED_AT_ONCE &&
           aggregation->events.at == aggregation->events.end && wire_next_field(&reader, &field)) {
        taken++;
        if (field.type != WIRE_BYTES || field.number != SCOPE_SPANS_SPANS)
            continue;
        if (aggregation->resource != NULL)
            add_span(aggregation, field.bytes);
        else
            aggregation->lost++;
    }
    aggregation->scope_spans = reader;
    return taken;
}

static unsigned add_events(struct span_aggregation *aggregation, unsigned most)
{
    struct wire_field field;
    unsigned taken = 0;
    for (; taken < most && aggregation->copied < COPIED_AT_ONCE &&
           wire_next_field(&aggregation->events, &field);
         taken++)
        if (field.type == WIRE_BYTES && field.number == SPAN_EVENTS)
            add_event(aggregation, field.bytes);
    return taken;
}

/* Takes the next ScopeSpans or ResourceSpans. False: there is none. */
static bool take_next(struct span_aggregation *aggregation)
{
    struct wire_field field;
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
    const uint64_t first_ns = clock_now_ns();
    unsigned look = aggregation->work / LOOK_WORK;
    while (aggregation->work < WORK_AT_ONCE && aggregation->copied < COPIED_AT_ONCE) {
        const unsigned left = WORK_AT_ONCE - aggregation->work;
        const unsigned most = left < LOOK_WORK ? left : LOOK_WORK;
        unsigned taken = add_events(aggregation, most);
        if (taken == 0)
            taken = add_spans(aggregation, most);
        if (taken == 0 && !take_next(aggregation))
            return false;
        aggregation->work += taken > 0 ? taken : 1;
        if (aggregation->work / LOOK_WORK == look)
            continue;
        look = aggregation->work / LOOK_WORK;
        if (clock_now_ns() - first_ns >= PIECE_NS)
            break;
    }
    aggregation->work = 0;
    aggregation->copied = 0;
    return true;
}
