/* SPDX-License-Identifier: Apache-2.0 */
/* Lists items through protobuf-c's descriptors: a message without its children is what encloses
 * them. */
#include "tests/support/otlp_oracle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <opentelemetry/proto/collector/logs/v1/logs_service.pb-c.h>
#include <opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h>
#include <opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h>
#include <opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h>
#include <protobuf-c/protobuf-c.h>

#include "src/base/mem.h"
#include "src/otlp/schema.h"

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name

/* clang-format off */
static const ProtobufCMessageDescriptor *const requests[] = {
    [TRACES] =
    &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
    [METRICS] =
    &opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__descriptor,
    [LOGS] =
    &opentelemetry__proto__collector__logs__v1__export_logs_service_request__descriptor,
    [PROFILES] =
    &PROFILES_SERVICE(export_profiles_service_request__descriptor),
};
/* clang-format on */

static const ProtobufCMessageDescriptor *descriptor_of(enum signal_kind signal)
{
    assert((size_t)signal < sizeof(requests) / sizeof(requests[0]));
    return requests[signal];
}

static bool is_child(const char *name)
{
    static const char *const names[] = {
        "resource_spans", "scope_spans",
        "spans",          "resource_metrics",
        "scope_metrics",  "metrics",
        "gauge",          "sum",
        "histogram",      "exponential_histogram",
        "summary",        "data_points",
        "resource_logs",  "scope_logs",
        "log_records",    "resource_profiles",
        "scope_profiles", "profiles",
        "samples",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_item(const char *name)
{
    return strcmp(name, "spans") == 0 || strcmp(name, "data_points") == 0 ||
           strcmp(name, "log_records") == 0 || strcmp(name, "samples") == 0;
}

/* Appends the message in hex, encoded again by protobuf-c, to a copy of prefix. */
static char *extended(const char *prefix, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = mem_alloc(size);
    protobuf_c_message_pack(message, packed);
    size_t used = strlen(prefix);
    char *text = mem_alloc(used + 2 * size + 2);
    memcpy(text, prefix, used);
    for (size_t i = 0; i < size; i++)
        snprintf(text + used + 2 * i, 3, "%02x", packed[i]);
    text[used + 2 * size] = '/';
    text[used + 2 * size + 1] = '\0';
    mem_free(packed);
    return text;
}

static void add(struct oracle_items *items, char *text)
{
    items->texts = mem_resize(items->texts, (items->count + 1) * sizeof(items->texts[0]));
    items->texts[items->count++] = text;
}

struct children {
    const ProtobufCFieldDescriptor *field;
    unsigned *quantifier; /* n_… of a repeated field, the case of a oneof */
    unsigned saved;
    ProtobufCMessage **messages;
    size_t count;
};

/* Takes the children out of a message; put back by restoring the quantifier. */
static bool detach(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                   struct children *ret)
{
    uint8_t *base = (uint8_t *)message;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_child(field->name))
        return false;
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    struct children found = {.field = field};
    if (is_repeated) {
        size_t *count = (size_t *)(void *)(base + field->quantifier_offset);
        found.messages = *(ProtobufCMessage ***)(void *)(base + field->offset);
        found.count = *count;
        *count = 0;
    } else {
        found.quantifier = (unsigned *)(void *)(base + field->quantifier_offset);
        found.saved = *found.quantifier;
        if (found.saved != field->id)
            return false;
        found.messages = (ProtobufCMessage **)(void *)(base + field->offset);
        found.count = 1;
        *found.quantifier = 0;
    }
    *ret = found;
    return true;
}

static void attach(ProtobufCMessage *message, const struct children *children)
{
    uint8_t *base = (uint8_t *)message;
    if (children->quantifier != NULL)
        *children->quantifier = children->saved;
    else
        *(size_t *)(void *)(base + children->field->quantifier_offset) = children->count;
}

static void list(struct oracle_items *items, const char *prefix, ProtobufCMessage *message)
{
    struct children found[8];
    size_t count = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        count += detach(message, &message->descriptor->fields[i], &found[count]);
    /* Unknown fields of the request itself may go to either side of a split. */
    bool is_top = prefix[0] == '\0';
    char *text = is_top ? mem_copy_text("-") : extended(prefix, message);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < found[i].count; k++)
            if (is_item(found[i].field->name))
                add(items, extended(text, found[i].messages[k]));
            else
                list(items, text, found[i].messages[k]);
        attach(message, &found[i]);
    }
    mem_free(text);
}

bool oracle_decodes(enum signal_kind signal, struct slice request)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor_of(signal), NULL, request.size, request.data);
    if (message == NULL)
        return false;
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

static bool is_empty_value(struct slice value)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (field.number < OTLP_SHORT_FIELDS && (otlp_any_value.one_of >> field.number & 1) != 0)
            return false;
    return true;
}

static bool repeats_empty_value(const struct otlp_message *message, struct slice bytes)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    bool has_empty = false;
    assert(message != NULL);
    while (wire_read_field(&reader, &field)) {
        const struct otlp_field *known = otlp_field_find(message, field.number);
        if (known == NULL || known->message == NULL || field.type != WIRE_BYTES)
            continue;
        bool is_empty = known->message == &otlp_any_value && known->kind == OTLP_MESSAGE &&
                        is_empty_value(field.bytes);
        if ((is_empty && has_empty) || repeats_empty_value(known->message, field.bytes))
            return true;
        has_empty |= is_empty;
    }
    return false;
}

bool oracle_repeats_empty_value(enum signal_kind signal, struct slice request)
{
    return repeats_empty_value(otlp_request(signal), request);
}

void oracle_list(struct oracle_items *items, enum signal_kind signal, struct slice request)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor_of(signal), NULL, request.size, request.data);
    assert(message != NULL);
    list(items, "", message);
    protobuf_c_message_free_unpacked(message, NULL);
}

void oracle_clear(struct oracle_items *items)
{
    for (size_t i = 0; i < items->count; i++)
        mem_free(items->texts[i]);
    mem_free(items->texts);
    *items = (struct oracle_items){0};
}
