/* SPDX-License-Identifier: Apache-2.0 */
/* Finds ids of traces and spans in labels. Pure functions; any thread. */
#include "src/profiles/pprof/correlation.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "src/base/hex.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/profile_dictionary.h"

enum {
    TRACE_BYTES = 16,
    SPAN_BYTES = 8,
    DECIMAL_BYTES_MAX = 64, /* more digits than 64 bits have: some senders pad with zeros */
    ENTRY_BYTES_MAX = 128,  /* more than any attribute with an id takes */
};

enum id_form { TRACE_HEX, SPAN_HEX, SPAN_DECIMAL };

enum rank { RANK_TRACE = 1, RANK_ROOT = 1, RANK_PROFILE, RANK_OTHER, RANK_SPAN };

/* eBPF profilers put it before the labels that a program sets on its threads. */
#define PREFIX "process.context.label."

struct id_name {
    const char *key;
    enum id_form form;
    unsigned rank;
};

/* A label for the local root ranks below one for the span itself. */
static const struct id_name names[] = {
    {"trace_id", TRACE_HEX, RANK_TRACE},     {"traceid", TRACE_HEX, RANK_TRACE},
    {"trace.id", TRACE_HEX, RANK_TRACE},     {"trace id", TRACE_HEX, RANK_TRACE},
    {"otel.traceid", TRACE_HEX, RANK_TRACE}, {"span_id", SPAN_HEX, RANK_SPAN},
    {"spanid", SPAN_HEX, RANK_OTHER},        {"span.id", SPAN_HEX, RANK_OTHER},
    {"otel.spanid", SPAN_HEX, RANK_OTHER},   {"span id", SPAN_DECIMAL, RANK_OTHER},
    {"profile_id", SPAN_HEX, RANK_PROFILE},  {"local root span id", SPAN_DECIMAL, RANK_ROOT},
};

static bool read_hex(struct slice text, uint8_t *ret_id, size_t bytes)
{
    uint8_t any = 0;
    if (text.size != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        unsigned high = hex_digit(text.data[2 * i]);
        unsigned low = hex_digit(text.data[2 * i + 1]);
        if (high > 15 || low > 15)
            return false;
        ret_id[i] = (uint8_t)(high << 4 | low);
        any |= ret_id[i];
    }
    return any != 0;
}

static bool read_number(uint64_t number, uint8_t ret_id[SPAN_BYTES])
{
    for (size_t i = 0; i < SPAN_BYTES; i++)
        ret_id[i] = (uint8_t)(number >> (56 - 8 * i));
    return number != 0;
}

static bool take_trace(struct correlation *correlation, const uint8_t id[TRACE_BYTES])
{
    memcpy(correlation->trace_id, id, TRACE_BYTES);
    correlation->has_trace = true;
    return true;
}

static bool take_span(struct correlation *correlation, unsigned rank, const uint8_t id[SPAN_BYTES])
{
    assert(rank > 0);
    if (correlation->has_span && correlation->span_rank >= rank)
        return true;
    memcpy(correlation->span_id, id, SPAN_BYTES);
    correlation->has_span = true;
    correlation->span_rank = rank;
    return true;
}

/* False: no label of that key is an id. */
static bool find_name(struct slice key, struct id_name *ret_name)
{
    const size_t prefix = sizeof(PREFIX) - 1;
    bool has_prefix = key.size > prefix && memcmp(key.data, PREFIX, prefix) == 0;
    if (has_prefix)
        key = slice_of(key.data + prefix, key.size - prefix);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!slice_equal_text(key, names[i].key))
            continue;
        *ret_name = names[i];
        if (has_prefix && ret_name->rank > RANK_OTHER)
            ret_name->rank = RANK_OTHER;
        return true;
    }
    return false;
}

bool correlation_is_key(struct slice key)
{
    struct id_name name;
    return find_name(key, &name);
}

bool correlation_take(struct correlation *correlation, struct slice key, struct slice text)
{
    struct id_name name;
    uint8_t id[TRACE_BYTES];
    if (!find_name(key, &name))
        return false;
    if (name.form == TRACE_HEX)
        return read_hex(text, id, TRACE_BYTES) && take_trace(correlation, id);
    if (name.form == SPAN_HEX)
        return read_hex(text, id, SPAN_BYTES) && take_span(correlation, name.rank, id);
    uint64_t number = 0;
    if (text.size > DECIMAL_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9' ||
            __builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
            return false;
    return read_number(number, id) && take_span(correlation, name.rank, id);
}

bool correlation_take_number(struct correlation *correlation, struct slice key, int64_t number)
{
    struct id_name name;
    uint8_t id[SPAN_BYTES];
    return find_name(key, &name) && name.form == SPAN_DECIMAL &&
           read_number((uint64_t)number, id) && take_span(correlation, name.rank, id);
}

bool correlation_take_bytes(struct correlation *correlation, struct slice key, struct slice bytes)
{
    struct id_name name;
    if (!find_name(key, &name) || name.form == SPAN_DECIMAL)
        return false;
    size_t size = name.form == TRACE_HEX ? TRACE_BYTES : SPAN_BYTES;
    if (bytes.size != size || slice_is_zero(bytes))
        return false;
    return name.form == TRACE_HEX ? take_trace(correlation, bytes.data)
                                  : take_span(correlation, name.rank, bytes.data);
}

bool correlation_take_attribute(struct correlation *correlation,
                                const struct profile_dictionary *dictionary,
                                struct profile_index index)
{
    /* Any number of samples may have it, and it is read for each. */
    if (profile_entry_at(dictionary, PROFILE_ATTRIBUTES, index).size > ENTRY_BYTES_MAX)
        return false;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    if (attribute.value.data == NULL || !profile_has(dictionary, PROFILE_STRINGS, attribute.key))
        return false;
    struct slice key = profile_string_at(dictionary, attribute.key);
    struct value value = value_read_single(attribute.value);
    if (value.type == VALUE_INT)
        return correlation_take_number(correlation, key, value.integer);
    if (value.type == VALUE_BYTES)
        return correlation_take_bytes(correlation, key, value.bytes);
    return value.type == VALUE_STRING && correlation_take(correlation, key, value.bytes);
}

void correlation_take_link(struct correlation *correlation,
                           const struct profile_dictionary *dictionary, struct profile_index index)
{
    struct profile_link link = profile_link_at(dictionary, index);
    if (link.trace_id.size == TRACE_BYTES && !slice_is_zero(link.trace_id))
        take_trace(correlation, link.trace_id.data);
    if (link.span_id.size == SPAN_BYTES && !slice_is_zero(link.span_id))
        take_span(correlation, RANK_SPAN, link.span_id.data);
}
