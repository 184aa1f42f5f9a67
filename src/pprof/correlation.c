/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of traces and spans from labels. Pure functions; any thread. */
#include "src/pprof/correlation.h"

#include <assert.h>
#include <stddef.h>

enum id_form { TRACE_HEX, SPAN_HEX, SPAN_DECIMAL };

/* A label that names the local root is second to one that names the span itself. */
static const struct {
    const char *key;
    enum id_form form;
    unsigned rank;
} names[] = {
    {"trace_id", TRACE_HEX, 1},
    {"traceid", TRACE_HEX, 1},
    {"trace.id", TRACE_HEX, 1},
    {"trace id", TRACE_HEX, 1},
    {"otel.traceid", TRACE_HEX, 1},
    {"process.context.label.trace_id", TRACE_HEX, 1},
    {"span_id", SPAN_HEX, 4},
    {"spanid", SPAN_HEX, 3},
    {"span.id", SPAN_HEX, 3},
    {"otel.spanid", SPAN_HEX, 3},
    {"process.context.label.span_id", SPAN_HEX, 3},
    {"span id", SPAN_DECIMAL, 3},
    {"profile_id", SPAN_HEX, 2},
    {"local root span id", SPAN_DECIMAL, 1},
};

static int digit_of(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool read_hex(struct slice text, uint8_t *ret_id, size_t bytes)
{
    assert(ret_id != NULL);
    uint8_t any = 0;
    if (text.size != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = digit_of(text.data[2 * i]);
        int low = digit_of(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_id[i] = (uint8_t)(high << 4 | low);
        any |= ret_id[i];
    }
    return any != 0;
}

static bool read_decimal(struct slice text, uint8_t ret_id[8])
{
    assert(ret_id != NULL);
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' ||
            __builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
            return false;
    }
    for (size_t i = 0; i < 8; i++)
        ret_id[i] = (uint8_t)(number >> (56 - 8 * i));
    return number != 0;
}

static bool take_span(struct correlation *correlation, unsigned rank, const uint8_t id[8])
{
    assert(rank > 0);
    if (correlation->has_span && correlation->span_rank >= rank)
        return true;
    for (size_t i = 0; i < 8; i++)
        correlation->span_id[i] = id[i];
    correlation->has_span = true;
    correlation->span_rank = rank;
    return true;
}

static bool take(struct correlation *correlation, enum id_form form, unsigned rank,
                 struct slice text)
{
    uint8_t id[16];
    if (form == TRACE_HEX) {
        if (!read_hex(text, id, 16))
            return false;
        for (size_t i = 0; i < 16; i++)
            correlation->trace_id[i] = id[i];
        correlation->has_trace = true;
        return true;
    }
    bool is_id = form == SPAN_HEX ? read_hex(text, id, 8) : read_decimal(text, id);
    return is_id && take_span(correlation, rank, id);
}

bool correlation_is_key(struct slice key)
{
    assert(key.data != NULL || key.size == 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (slice_equal_text(key, names[i].key))
            return true;
    return false;
}

bool correlation_take(struct correlation *correlation, struct slice key, struct slice text)
{
    assert(correlation != NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (slice_equal_text(key, names[i].key))
            return take(correlation, names[i].form, names[i].rank, text);
    return false;
}
