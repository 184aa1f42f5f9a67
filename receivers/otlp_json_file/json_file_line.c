/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_json_file/json_file_line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "receivers/shared/request_pieces.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_pieces.h"

static bool never_fits(const struct budget *budget, uint64_t bytes)
{
    return budget != NULL && bytes > budget_limit(budget);
}

/* ---- attributes ---- */

/* Field numbers: Resource… messages in a request, scopes in those, records in those; KeyValue. */
enum { RESOURCES = 1, SCOPES = 2, RECORDS = 2, KEY = 1, VALUE = 2, STRING_VALUE = 1 };

/* Of the attributes in a record: Span, Metric (metadata), LogRecord. */
static const uint32_t attribute_numbers[SIGNAL_KINDS] = {[TRACES] = 9, [METRICS] = 12, [LOGS] = 6};

static bool is_message(const struct wire_field *field, uint32_t number)
{
    return field->number == number && field->type == WIRE_BYTES;
}

/* Which of them has the key of that KeyValue; SIZE_MAX: none. */
static size_t place_of(const struct json_file_attributes *attributes, struct slice key_value)
{
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    struct slice key = {0};
    while (wire_next_field(&reader, &field))
        if (is_message(&field, KEY))
            key = field.bytes;
    for (size_t i = 0; i < attributes->count; i++)
        if (slice_equal(attributes->list[i].key, key))
            return i;
    return SIZE_MAX;
}

static void put_attribute(struct nested_output *output, uint32_t number,
                          const struct json_file_attribute *attribute)
{
    uint8_t length = (uint8_t)wire_varint_size(attribute->value.size);
    struct nested_message key_value = nested_put_begin(output, number, length);
    nested_put_bytes(output, KEY, attribute->key);
    struct nested_message value = nested_put_begin(output, VALUE, length);
    nested_put_bytes(output, STRING_VALUE, attribute->value);
    nested_put_end(output, value);
    nested_put_end(output, key_value);
}

/* A record with all its fields; the first attribute of each key gets the value. */
static void put_record(struct nested_output *output, struct slice record, uint32_t number,
                       const struct json_file_attributes *attributes)
{
    bool is_put[JSON_FILE_ATTRIBUTES_MAX] = {false};
    struct wire_reader reader = wire_reader_of(record);
    struct wire_field field;
    const uint8_t *kept = record.data; /* what is not written yet begins here */
    while (wire_next_field(&reader, &field)) {
        size_t place = is_message(&field, number) ? place_of(attributes, field.bytes) : SIZE_MAX;
        if (place == SIZE_MAX || is_put[place])
            continue;
        nested_put_raw(output, slice_of(kept, (size_t)(field.whole.data - kept)));
        put_attribute(output, number, &attributes->list[place]);
        is_put[place] = true;
        kept = field.whole.data + field.whole.size;
    }
    if (record.size > 0)
        nested_put_raw(output, slice_of(kept, (size_t)(record.data + record.size - kept)));
    for (size_t i = 0; i < attributes->count; i++)
        if (!is_put[i])
            put_attribute(output, number, &attributes->list[i]);
}

static uint8_t length_bytes(struct slice content)
{
    return (uint8_t)wire_varint_size(content.size + content.size / 2);
}

static void put_scope(struct nested_output *output, struct slice scope, uint32_t number,
                      const struct json_file_attributes *attributes)
{
    struct wire_reader reader = wire_reader_of(scope);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (!is_message(&field, RECORDS)) {
            nested_put_raw(output, field.whole);
            continue;
        }
        struct nested_message record = nested_put_begin(output, RECORDS, length_bytes(field.bytes));
        put_record(output, field.bytes, number, attributes);
        nested_put_end(output, record);
    }
}

static void put_resource(struct nested_output *output, struct slice resource, uint32_t number,
                         const struct json_file_attributes *attributes)
{
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (!is_message(&field, SCOPES)) {
            nested_put_raw(output, field.whole);
            continue;
        }
        struct nested_message scope = nested_put_begin(output, SCOPES, length_bytes(field.bytes));
        put_scope(output, field.bytes, number, attributes);
        nested_put_end(output, scope);
    }
}

struct buffer *json_line_add_attributes(enum signal_kind signal, struct slice request,
                                        const struct json_file_attributes *attributes,
                                        struct budget *budget, bool *ret_never_fits)
{
    struct nested_output output = {.budget = budget};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    uint32_t number = attribute_numbers[signal];
    assert(number != 0);
    while (wire_next_field(&reader, &field)) {
        if (!is_message(&field, RESOURCES)) {
            nested_put_raw(&output, field.whole);
            continue;
        }
        struct nested_message resource =
            nested_put_begin(&output, RESOURCES, length_bytes(field.bytes));
        put_resource(&output, field.bytes, number, attributes);
        nested_put_end(&output, resource);
    }
    *ret_never_fits = never_fits(budget, output.refused_bytes);
    if (output.refused_bytes == 0)
        return output.buffer;
    nested_output_fini(&output);
    return NULL;
}

/* ---- lines ---- */

/* A line on its way: what it gives is held back until all of it is right. */
struct line {
    const struct json_file_attributes *attributes;
    struct budget *budget;
    struct request_pieces taken;
    char *reason;
};

static enum json_line_result wrong(struct line *line, const char *reason)
{
    snprintf(line->reason, JSON_REASON_BYTES_MAX, "%s", reason);
    return JSON_LINE_WRONG;
}

static const char too_large[] =
    "it becomes more than 4 GiB, or than the whole memory budget (service::budget_mib)";

static enum json_line_result take_profiles(struct line *line, struct buffer *owner)
{
    struct profile_normalized normalized;
    switch (
        profile_normalize(owner, buffer_slice(owner), PROFILE_LAYOUTS, line->budget, &normalized)) {
    case PROFILES_TAKEN:
        break;
    case PROFILES_BUSY:
        return JSON_LINE_NO_MEMORY;
    case PROFILES_REFUSED:
    case PROFILES_TOO_LARGE:
    default:
        return wrong(line, normalized.reason);
    }
    if (normalized.profiles > 0) {
        struct batch *batch =
            request_batch(PROFILES, normalized.samples, normalized.owner, normalized.request);
        if (profile_pieces_are_needed(normalized.request.size, normalized.profiles, line->budget)) {
            profile_pieces_cut(batch, DENSE_PROFILES_MAX, line->budget, request_pieces_add,
                               &line->taken);
            batch_unref(batch);
        } else {
            request_pieces_add(&line->taken, batch);
        }
    }
    buffer_unref(normalized.owner);
    return JSON_LINE_READ;
}

static enum json_line_result take_others(struct line *line, enum signal_kind signal,
                                         struct buffer *encoded)
{
    struct otlp_figures figures;
    const char *reason;
    if (!otlp_check(signal, buffer_slice(encoded), &figures, &reason))
        return wrong(line, reason);
    if (figures.items == 0)
        return JSON_LINE_READ;
    struct buffer *owner = buffer_ref(encoded);
    if (line->attributes->count > 0) {
        bool is_never;
        buffer_unref(owner);
        owner = json_line_add_attributes(signal, buffer_slice(encoded), line->attributes,
                                         line->budget, &is_never);
        if (owner == NULL)
            return is_never ? wrong(line, too_large) : JSON_LINE_NO_MEMORY;
        if (!otlp_check(signal, buffer_slice(owner), &figures, &reason)) {
            buffer_unref(owner);
            return wrong(line, reason);
        }
    }
    struct slice message = buffer_slice(owner);
    enum budget_result charged = request_charge(owner, message, &figures);
    if (charged != BUDGET_GIVEN) {
        buffer_unref(owner);
        return charged == BUDGET_TOO_SMALL ? wrong(line, too_large) : JSON_LINE_NO_MEMORY;
    }
    struct request_pieces *pieces =
        request_pieces_cut(signal, owner, message, &figures, line->budget);
    if (pieces == NULL)
        request_pieces_add(&line->taken, request_batch(signal, figures.items, owner, message));
    for (size_t i = 0; pieces != NULL && i < pieces->count; i++)
        request_pieces_add(&line->taken, batch_ref(pieces->batches[i]));
    request_pieces_free(pieces);
    buffer_unref(owner);
    return JSON_LINE_READ;
}

/* Whether the line may have requests of the signal: a key may also be written with escapes. */
static bool may_have(struct slice text, enum signal_kind signal)
{
    static const char *const keys[SIGNAL_KINDS][2] = {
        [TRACES] = {"resourceSpans", "resource_spans"},
        [METRICS] = {"resourceMetrics", "resource_metrics"},
        [LOGS] = {"resourceLogs", "resource_logs"},
        [PROFILES] = {"resourceProfiles", "resource_profiles"},
    };
    for (size_t i = 0; i < 2; i++)
        if (memmem(text.data, text.size, keys[signal][i], strlen(keys[signal][i])) != NULL)
            return true;
    return memmem(text.data, text.size, "\\u", 2) != NULL;
}

static enum json_line_result take_signal(struct line *line, enum signal_kind signal,
                                         struct slice text)
{
    struct buffer *encoded;
    enum json_line_result result = JSON_LINE_NO_MEMORY;
    switch (json_read(otlp_request(signal), text, line->budget, &encoded, line->reason)) {
    case JSON_READ:
        result =
            signal == PROFILES ? take_profiles(line, encoded) : take_others(line, signal, encoded);
        buffer_unref(encoded);
        return result;
    case JSON_MALFORMED:
        return JSON_LINE_WRONG;
    case JSON_TOO_LARGE:
        return wrong(line, too_large);
    case JSON_NO_BUDGET:
    default:
        return JSON_LINE_NO_MEMORY;
    }
}

/* Invalid bytes become U+FFFD. NULL: no memory. */
static struct buffer *replace_bytes(struct slice text, struct budget *budget)
{
    static const char replacement[] = "\xef\xbf\xbd";
    enum { BYTES = sizeof(replacement) - 1 };
    struct buffer *buffer = buffer_try_create(budget, text.size * BYTES);
    if (buffer == NULL)
        return NULL;
    uint8_t *to = buffer->data;
    while (text.size > 0) {
        size_t size = utf8_size(text);
        const void *from = size > 0 ? (const void *)text.data : replacement;
        memcpy(to, from, size > 0 ? size : BYTES);
        to += size > 0 ? size : BYTES;
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
    }
    buffer->size = (size_t)(to - buffer->data);
    return buffer;
}

enum json_line_result json_line_read(struct slice text, unsigned signals, bool replaces_bytes,
                                     const struct json_file_attributes *attributes,
                                     struct budget *budget,
                                     void (*give)(struct batch *batch, void *arg), void *arg,
                                     char reason[JSON_REASON_BYTES_MAX])
{
    struct line line = {.attributes = attributes, .budget = budget, .reason = reason};
    enum json_line_result result = JSON_LINE_READ;
    struct buffer *replaced = NULL;
    bool is_checked = false;
    if (replaces_bytes && !utf8_is_valid(text)) {
        replaced = replace_bytes(text, budget);
        if (replaced == NULL && never_fits(budget, text.size * 3))
            return wrong(&line, too_large);
        if (replaced == NULL)
            return JSON_LINE_NO_MEMORY;
        text = buffer_slice(replaced);
    }
    for (unsigned signal = 0; signal < SIGNAL_KINDS && result == JSON_LINE_READ; signal++) {
        if ((signals & 1U << signal) == 0 || !may_have(text, (enum signal_kind)signal))
            continue;
        is_checked = true;
        result = take_signal(&line, (enum signal_kind)signal, text);
    }
    /* A line without anything that is wanted may still be no JSON at all. */
    for (unsigned signal = 0; signal < SIGNAL_KINDS && !is_checked; signal++) {
        if ((signals & 1U << signal) == 0)
            continue;
        is_checked = true;
        result = take_signal(&line, (enum signal_kind)signal, text);
    }
    for (size_t i = 0; i < line.taken.count; i++) {
        if (result == JSON_LINE_READ)
            give(line.taken.batches[i], arg);
        else
            batch_unref(line.taken.batches[i]);
    }
    mem_free((void *)line.taken.batches);
    buffer_unref(replaced);
    return result;
}
