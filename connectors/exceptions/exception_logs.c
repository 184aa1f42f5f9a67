/* SPDX-License-Identifier: Apache-2.0 */
/* Log records of exceptions. Attributes that the span has, too, are replaced where they stand, as
 * pcommon.Map does it. Runs on the caller's thread. */
#include "connectors/exceptions/exception_logs.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

/* Of logs.proto and trace.proto. */
enum {
    RESOURCE_LOGS = 1,
    SCOPE_LOGS = 2,
    SCOPE = 1,
    LOG_RECORDS = 2,
    RECORD_TIME = 1,
    RECORD_SEVERITY_NUMBER = 2,
    RECORD_SEVERITY_TEXT = 3,
    RECORD_ATTRIBUTES = 6,
    RECORD_TRACE_ID = 9,
    RECORD_SPAN_ID = 10,
    SEVERITY_ERROR = 17,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    TEXT_VALUE = 1,
};

/* Lengths of messages are likely to take that many bytes. */
enum { RECORD_LENGTH_BYTES = 2, PIECE_LENGTH_BYTES = 3 };

/* Beside those of the span: four, the dimensions, the stack trace. */
enum { OWN_MAX = 4 + WANTED_NAMES_MAX + 1 };

struct own_attribute {
    struct slice key;
    struct slice text;
    bool is_written;
};

struct own_attributes {
    struct own_attribute items[OWN_MAX];
    size_t count;
    uint64_t lengths; /* a bit for each length of a key, modulo 64 */
};

/* The last one of equal keys counts. */
static void set_own(struct own_attributes *own, struct slice key, struct slice text)
{
    size_t i = 0;
    while (i < own->count && !slice_equal(own->items[i].key, key))
        i++;
    assert(i < OWN_MAX);
    own->items[i].key = key;
    own->items[i].text = text;
    own->count += i == own->count;
    own->lengths |= (uint64_t)1 << key.size % 64;
}

/* False: no memory. */
static bool find_own(struct exception_logs *logs, const struct exception *exception,
                     struct own_attributes *own)
{
    const struct exception_keys *keys = logs->keys;
    struct slice text = {.data = NULL};
    struct slice found;
    set_own(own, slice_of_text("span.name"), exception->span_name);
    set_own(own, slice_of_text("span.kind"), slice_of_text(exception->kind));
    set_own(own, slice_of_text("status.code"), slice_of_text(exception->status));
    set_own(own, slice_of_text("service.name"), exception->service);
    for (size_t i = 0; i < keys->dimensions_count; i++) {
        enum exception_value value = exception_dimension_value(keys, exception, i, &found);
        if (value == EXCEPTION_ABSENT)
            continue;
        /* Values that are no strings are empty, as in the Go collector. */
        if (value != EXCEPTION_STANDARD) {
            struct value read = value_read(found);
            logs->bytes_read += found.size;
            found = read.type == VALUE_STRING ? read.bytes : slice_of(NULL, 0);
        }
        set_own(own, keys->dimensions[i].name, found);
    }
    if (wanted_values_has(exception->event_values, keys->stacktrace) &&
        !value_to_string(&logs->texts, exception->event_values->encoded[keys->stacktrace], &text))
        return false;
    set_own(own, slice_of_text("exception.stacktrace"), text);
    return true;
}

static void put_own(struct nested_output *output, struct own_attribute *attribute)
{
    size_t value = wire_field_size(TEXT_VALUE, attribute->text.size);
    size_t size = wire_field_size(ATTRIBUTE_KEY, attribute->key.size) +
                  wire_field_size(ATTRIBUTE_VALUE, value);
    struct nested_message outer =
        nested_put_begin(output, RECORD_ATTRIBUTES, (uint8_t)wire_varint_size(size));
    nested_put_bytes(output, ATTRIBUTE_KEY, attribute->key);
    struct nested_message inner =
        nested_put_begin(output, ATTRIBUTE_VALUE, (uint8_t)wire_varint_size(value));
    nested_put_bytes(output, TEXT_VALUE, attribute->text);
    nested_put_end(output, inner);
    nested_put_end(output, outer);
    attribute->is_written = true;
}

/* The own attribute that takes the place of one of the span; NULL: none. */
static struct own_attribute *replacement(struct own_attributes *own, struct slice attribute)
{
    struct wire_reader reader = wire_reader_of(attribute);
    struct wire_field field;
    struct slice key = {0};
    while (wire_next_field(&reader, &field))
        if (field.number == ATTRIBUTE_KEY)
            key = field.bytes;
    assert(reader.failure == NULL);
    if ((own->lengths >> key.size % 64 & 1) == 0)
        return NULL;
    for (size_t i = 0; i < own->count; i++)
        if (!own->items[i].is_written && slice_equal(own->items[i].key, key))
            return &own->items[i];
    return NULL;
}

static void open_piece(struct exception_logs *logs)
{
    struct wire_reader fields = wire_reader_of(logs->scope_content);
    struct wire_field field;
    logs->resource = nested_put_begin(&logs->output, RESOURCE_LOGS, PIECE_LENGTH_BYTES);
    logs->scope = nested_put_begin(&logs->output, SCOPE_LOGS, PIECE_LENGTH_BYTES);
    logs->is_open = true;
    while (wire_next_field(&fields, &field))
        if (field.number == SCOPE)
            nested_put_bytes(&logs->output, SCOPE, field.bytes);
    assert(fields.failure == NULL);
}

static void close_piece(struct exception_logs *logs)
{
    if (!logs->is_open)
        return;
    nested_put_end(&logs->output, logs->scope);
    nested_put_end(&logs->output, logs->resource);
    logs->is_open = false;
}

/* Makes a batch of what is written. */
static void end_piece(struct exception_logs *logs)
{
    struct nested_output *output = &logs->output;
    const struct batch *model = logs->model;
    close_piece(logs);
    logs->has_failed |= output->refused_bytes > 0;
    if (logs->has_failed || logs->records == 0)
        return;
    struct batch *batch = batch_create(LOGS, 1);
    output->buffer = buffer_shrink(output->buffer);
    batch_append(batch, output->buffer, buffer_slice(output->buffer));
    batch->items = logs->records;
    batch->arrival_ns = model->arrival_ns;
    batch->is_acknowledged = batch_may_exceed(model);
    batch->client = model->client != NULL ? client_info_ref(model->client) : NULL;
    nested_output_fini(output);
    logs->records = 0;
    logs->batches = (struct batch **)mem_resize(
        (void *)logs->batches, (logs->batches_count + 1) * sizeof(logs->batches[0]));
    logs->batches[logs->batches_count++] = batch;
}

static void begin_scope(void *arg, struct slice content)
{
    struct exception_logs *logs = arg;
    close_piece(logs);
    logs->scope_content = content;
}

static void put_record(struct exception_logs *logs, const struct exception *exception,
                       struct own_attributes *own)
{
    struct nested_output *output = &logs->output;
    struct wire_reader fields = wire_reader_of(exception->attributes);
    struct wire_field field;
    struct nested_message record = nested_put_begin(output, LOG_RECORDS, RECORD_LENGTH_BYTES);
    if (exception->time_ns > 0)
        nested_put_fixed64(output, RECORD_TIME, exception->time_ns);
    nested_put_number(output, RECORD_SEVERITY_NUMBER, SEVERITY_ERROR);
    nested_put_bytes(output, RECORD_SEVERITY_TEXT, slice_of_text("ERROR"));
    while (wire_next_field(&fields, &field)) {
        struct own_attribute *instead = replacement(own, field.bytes);
        if (instead != NULL)
            put_own(output, instead);
        else
            nested_put_bytes(output, RECORD_ATTRIBUTES, field.bytes);
    }
    assert(fields.failure == NULL);
    for (size_t i = 0; i < own->count; i++)
        if (!own->items[i].is_written)
            put_own(output, &own->items[i]);
    if (exception->trace_id.size > 0)
        nested_put_bytes(output, RECORD_TRACE_ID, exception->trace_id);
    if (exception->span_id.size > 0)
        nested_put_bytes(output, RECORD_SPAN_ID, exception->span_id);
    nested_put_end(output, record);
    logs->records++;
}

static void take(void *arg, const struct exception *exception)
{
    struct exception_logs *logs = arg;
    struct own_attributes own = {.count = 0};
    size_t before = nested_output_size(&logs->output);
    if (logs->has_failed || logs->bytes_left == 0) {
        logs->dropped += !logs->has_failed;
        return;
    }
    logs->bytes_read = 0;
    if (!find_own(logs, exception, &own)) {
        logs->has_failed = true;
        return;
    }
    if (logs->bytes_read < exception->attributes.size)
        logs->bytes_read = exception->attributes.size;
    if (!logs->is_open)
        open_piece(logs);
    put_record(logs, exception, &own);
    /* What is read but not written, such as values that are replaced, counts as well. */
    uint64_t used = nested_output_size(&logs->output) - before;
    used = used > logs->bytes_read ? used : logs->bytes_read;
    logs->bytes_left -= used < logs->bytes_left ? used : logs->bytes_left;
    if (logs->texts.used_bytes > 0)
        arena_clear(&logs->texts);
    if (nested_output_size(&logs->output) >= EXCEPTION_LOGS_PIECE_BYTES)
        end_piece(logs);
}

/* Whether the request and what was written of it need more than the budget has. */
static bool never_fits(const struct exception_logs *logs, const struct budget *budget)
{
    uint64_t bytes = logs->model->bytes + logs->output.refused_bytes;
    for (size_t i = 0; i < logs->batches_count; i++)
        bytes += logs->batches[i]->bytes;
    return bytes > budget_room_max(budget, batch_may_exceed(logs->model));
}

void exception_logs_make(struct exception_logs *logs, const struct exception_keys *keys,
                         const struct batch *traces, struct budget *budget)
{
    struct exception_reader reader;
    /* What cannot be refused any more may use the margin. */
    batch_begin_work(traces);
    exception_reader_init(&reader, keys, budget);
    reader.scope = begin_scope;
    reader.take = take;
    reader.arg = logs;
    *logs = (struct exception_logs){
        .keys = keys,
        .output = {.budget = budget},
        .bytes_left = EXCEPTION_LOGS_RATIO * traces->bytes + EXCEPTION_LOGS_FREE_BYTES,
        .model = traces,
    };
    arena_init_charged(&logs->texts, SIZE_MAX / 2, budget);
    if (exception_reader_read(&reader, traces) > 0)
        logs->has_failed = true;
    end_piece(logs);
    arena_clear(&logs->texts);
    logs->never_fits = logs->has_failed && never_fits(logs, budget);
    batch_end_work(traces);
}

void exception_logs_fini(struct exception_logs *logs)
{
    for (size_t i = 0; i < logs->batches_count; i++)
        batch_unref(logs->batches[i]);
    mem_free((void *)logs->batches);
    nested_output_fini(&logs->output);
}
