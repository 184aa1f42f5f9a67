/* SPDX-License-Identifier: Apache-2.0 */
/* Reading exceptions. Nearly all spans have none: their events' names are all that is looked at.
 * Runs on the caller's thread. */
#include "connectors/exceptions/exception_reader.h"

#include <assert.h>

#include "connectors/shared/span_walk.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum {
    SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_STATUS = 15,
    STATUS_CODE = 3,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    EVENT_ATTRIBUTES = 3,
};

void exception_keys_init(struct exception_keys *keys)
{
    *keys = (struct exception_keys){.service = 0};
    bool is_added =
        wanted_names_add(&keys->wanted, slice_of_text("service.name"), &keys->service) &&
        wanted_names_add(&keys->wanted, slice_of_text("exception.stacktrace"), &keys->stacktrace);
    assert(is_added);
}

bool exception_keys_add(struct exception_keys *keys, const char *name, const char *standard)
{
    struct exception_dimension dimension = {.name = slice_of_text(name)};
    if (!wanted_names_add(&keys->wanted, dimension.name, &dimension.place))
        return false;
    if (standard != NULL)
        dimension.standard = slice_of_text(standard);
    keys->dimensions[keys->dimensions_count++] = dimension;
    return true;
}

enum exception_value exception_dimension_value(const struct exception_keys *keys,
                                               const struct exception *exception, size_t dimension,
                                               struct slice *ret_value)
{
    const struct exception_dimension *wanted = &keys->dimensions[dimension];
    const struct wanted_values *owners[] = {exception->span_values, exception->event_values,
                                            exception->resource_values};
    static const enum exception_value of[] = {EXCEPTION_OF_SPAN, EXCEPTION_OF_EVENT,
                                              EXCEPTION_OF_RESOURCE};
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        if (!wanted_values_has(owners[i], wanted->place))
            continue;
        *ret_value = owners[i]->encoded[wanted->place];
        return of[i];
    }
    *ret_value = wanted->standard;
    return wanted->standard.data != NULL ? EXCEPTION_STANDARD : EXCEPTION_ABSENT;
}

static const char *kind_name(uint64_t kind)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "";
}

static const char *status_name(uint64_t code)
{
    static const char *const names[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"};
    return code < sizeof(names) / sizeof(names[0]) ? names[code] : "";
}

static bool is_exception(struct slice event)
{
    struct wire_reader reader = wire_reader_of(event);
    struct wire_field field;
    struct slice name = {0};
    while (wire_next_field(&reader, &field))
        if (field.number == EVENT_NAME)
            name = field.bytes;
    assert(reader.failure == NULL);
    return slice_equal_text(name, "exception");
}

/* Returns whether the span has exceptions. */
static bool read_fields(struct slice span, struct exception *exception)
{
    struct wire_reader reader = wire_reader_of(span);
    struct wire_reader status;
    struct wire_field field;
    struct wire_field code;
    uint64_t status_code = 0;
    bool has_exception = false;
    exception->kind = kind_name(0);
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case SPAN_TRACE_ID:
            exception->trace_id = field.bytes;
            break;
        case SPAN_ID:
            exception->span_id = field.bytes;
            break;
        case SPAN_NAME:
            exception->span_name = field.bytes;
            break;
        case SPAN_KIND:
            exception->kind = kind_name(field.number_value);
            break;
        case SPAN_EVENTS:
            has_exception = has_exception || is_exception(field.bytes);
            break;
        case SPAN_STATUS:
            status = wire_reader_of(field.bytes);
            while (wire_next_field(&status, &code))
                if (code.number == STATUS_CODE)
                    status_code = code.number_value;
            assert(status.failure == NULL);
            break;
        default:
            break;
        }
    }
    assert(reader.failure == NULL);
    exception->status = status_name(status_code);
    return has_exception;
}

static void read_event(struct exception_reader *reader, struct slice event,
                       struct exception *exception)
{
    struct wire_reader fields = wire_reader_of(event);
    struct wire_field field;
    reader->event.has = 0;
    exception->time_ns = 0;
    while (wire_next_field(&fields, &field)) {
        if (field.number == EVENT_TIME)
            exception->time_ns = field.number_value;
        else if (field.number == EVENT_ATTRIBUTES)
            wanted_values_read(&reader->keys->wanted, field.bytes, &reader->event);
    }
    assert(fields.failure == NULL);
}

/* Reads the attributes and puts them together, so that each exception needs not look for them.
 * False: no memory. */
static bool read_attributes(struct exception_reader *reader, struct slice span,
                            struct slice *ret_attributes)
{
    struct wire_reader fields = wire_reader_of(span);
    struct wire_field field;
    struct slice run = {.data = NULL};
    size_t size = 0;
    reader->span.has = 0;
    while (wire_next_field(&fields, &field)) {
        if (field.number != SPAN_ATTRIBUTES)
            continue;
        wanted_values_read(&reader->keys->wanted, field.bytes, &reader->span);
        if (size == 0)
            run.data = field.whole.data;
        if (run.data + run.size == field.whole.data)
            run.size += field.whole.size;
        size += field.whole.size;
    }
    *ret_attributes = run;
    if (run.size == size)
        return true;
    uint8_t *room = arena_try_alloc(&reader->scattered, size);
    if (room == NULL)
        return false;
    *ret_attributes = slice_of(room, size);
    fields = wire_reader_of(span);
    while (wire_next_field(&fields, &field)) {
        if (field.number != SPAN_ATTRIBUTES)
            continue;
        memcpy(room, field.whole.data, field.whole.size);
        room += field.whole.size;
    }
    return true;
}

static void read_span(struct exception_reader *reader, struct slice span)
{
    struct exception exception = {
        .service = reader->service,
        .resource_number = reader->resources,
        .span_number = ++reader->spans,
        .resource_values = &reader->resource,
        .span_values = &reader->span,
        .event_values = &reader->event,
    };
    struct wire_field field;
    if (!read_fields(span, &exception))
        return;
    if (!read_attributes(reader, span, &exception.attributes)) {
        reader->unread++;
        return;
    }
    struct wire_reader fields = wire_reader_of(span);
    while (wire_next_field(&fields, &field)) {
        if (field.number != SPAN_EVENTS || !is_exception(field.bytes))
            continue;
        read_event(reader, field.bytes, &exception);
        reader->take(reader->arg, &exception);
    }
    if (reader->scattered.used_bytes > 0)
        arena_clear(&reader->scattered);
}

static void open_resource(void *arg)
{
    struct exception_reader *reader = arg;
    reader->resource.has = 0;
    reader->resources++;
}

static void read_resource(void *arg, struct slice content)
{
    struct exception_reader *reader = arg;
    struct wire_reader attributes = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&attributes, &field))
        if (field.number == RESOURCE_ATTRIBUTES)
            wanted_values_read(&reader->keys->wanted, field.bytes, &reader->resource);
    assert(attributes.failure == NULL);
}

/* Without a service name, the spans do not count. */
static bool begin_spans(void *arg)
{
    struct exception_reader *reader = arg;
    uint8_t place = reader->keys->service;
    if (!wanted_values_has(&reader->resource, place))
        return false;
    struct value name = value_read(reader->resource.encoded[place]);
    reader->service = name.type == VALUE_STRING ? name.bytes : slice_of(NULL, 0);
    return true;
}

static void read_scope(void *arg, struct slice content)
{
    struct exception_reader *reader = arg;
    struct wire_reader spans = wire_reader_of(content);
    struct wire_field field;
    if (reader->scope != NULL)
        reader->scope(reader->arg, content);
    while (wire_next_field(&spans, &field))
        if (field.number == SPANS)
            read_span(reader, field.bytes);
    assert(spans.failure == NULL);
}

static void forget(void *arg)
{
    (void)arg; /* what was taken was copied */
}

void exception_reader_init(struct exception_reader *reader, const struct exception_keys *keys,
                           struct budget *budget)
{
    *reader = (struct exception_reader){.keys = keys};
    arena_init_charged(&reader->copies, SIZE_MAX / 2, budget);
    arena_init_charged(&reader->scattered, SIZE_MAX / 2, budget);
}

uint64_t exception_reader_read(struct exception_reader *reader, const struct batch *batch)
{
    const struct span_walker walker = {
        .open = open_resource,
        .resource = read_resource,
        .begin = begin_spans,
        .scope = read_scope,
        .forget = forget,
        .arg = reader,
        .copies = &reader->copies,
    };
    assert(reader->take != NULL);
    reader->unread = 0;
    uint64_t left_out = span_walk(&walker, batch);
    return left_out + reader->unread;
}
