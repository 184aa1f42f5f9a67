/* SPDX-License-Identifier: Apache-2.0 */
/* Ids: of traces, spans and profiles, and new UUIDs (RFC 9562). Runs on the processor's thread. */
#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/ottl/functions/tables.h"

enum { PROFILE_ID_BYTES = 16, UUID_BYTES = 16 };

/* The value of hexadecimal digits; false: text is none. */
static bool read_hex(struct slice text, uint8_t *room, size_t *ret_bad)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = hex_digit(text.data[i]);
        if (digit > 15) {
            *ret_bad = i;
            return false;
        }
        room[i / 2] = (uint8_t)(i % 2 == 0 ? digit << 4 : room[i / 2] | digit);
    }
    return true;
}

static bool make_id(struct ottl_call *call, enum ottl_type type, size_t bytes,
                    struct ottl_value *ret)
{
    struct slice text;
    size_t bad;
    if (!ottl_get_bytes_like(call, 0, &text))
        return false;
    if (text.size != bytes && text.size != 2 * bytes)
        return ottl_fail(call,
                         "%s: could not decode ID: invalid length: expected %zu or %zu bytes, got "
                         "%zu",
                         call->function->name, bytes, 2 * bytes, text.size);
    uint8_t *id = ottl_alloc(call, bytes);
    if (id == NULL)
        return false;
    if (text.size == bytes)
        memcpy(id, text.data, bytes);
    else if (!read_hex(text, id, &bad))
        return ottl_fail(call,
                         "%s: could not decode ID: invalid hex: encoding/hex: invalid byte: 0x%02x",
                         call->function->name, text.data[bad]);
    *ret = ottl_bytes_of(type, slice_of(id, bytes));
    return true;
}

static bool trace_id(struct ottl_call *call, struct ottl_value *ret)
{
    return make_id(call, OTTL_TRACE_ID, OTTL_TRACE_ID_BYTES, ret);
}

static bool span_id(struct ottl_call *call, struct ottl_value *ret)
{
    return make_id(call, OTTL_SPAN_ID, OTTL_SPAN_ID_BYTES, ret);
}

static bool profile_id(struct ottl_call *call, struct ottl_value *ret)
{
    return make_id(call, OTTL_PROFILE_ID, PROFILE_ID_BYTES, ret);
}

/* A literal is checked at once. */
static bool prepare_id(const struct ottl_preparation *preparation, size_t bytes, void **ret_state,
                       struct error *error)
{
    enum { NUMBER_BYTES = 8 };
    struct ottl_value value;
    uint8_t room[PROFILE_ID_BYTES];
    size_t bad;
    *ret_state = NULL;
    if (!ottl_is_constant(preparation, 0, &value))
        return true;
    size_t size = value.type == OTTL_STRING || value.type == OTTL_BYTES ? value.size
                  : value.type == OTTL_BOOL                             ? 1
                  : value.type == OTTL_NIL                              ? 0
                                                                        : NUMBER_BYTES;
    if (size != bytes && size != 2 * bytes)
        return error_set(error,
                         "could not decode ID: invalid length: expected %zu or %zu bytes, got %zu",
                         bytes, 2 * bytes, size);
    return size == bytes || size == NUMBER_BYTES || read_hex(ottl_slice(&value), room, &bad) ||
           error_set(error, "could not decode ID: invalid hex: encoding/hex: invalid byte: 0x%02x",
                     value.bytes[bad]);
}

static bool prepare_trace_id(const struct ottl_preparation *preparation, void **ret_state,
                             struct error *error)
{
    return prepare_id(preparation, OTTL_TRACE_ID_BYTES, ret_state, error);
}

static bool prepare_span_id(const struct ottl_preparation *preparation, void **ret_state,
                            struct error *error)
{
    return prepare_id(preparation, OTTL_SPAN_ID_BYTES, ret_state, error);
}

static const struct ottl_parameter one_bytes[] = {{"Target", OTTL_BYTES_LIKE, false, false},
                                                  {.name = NULL}};

static bool hex(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice bytes;
    if (!ottl_get_bytes_like(call, 0, &bytes))
        return false;
    uint8_t *room = ottl_alloc(call, 2 * bytes.size);
    if (room == NULL)
        return false;
    *ret = ottl_string(hex_write(bytes.data, bytes.size, room));
    return true;
}

static bool give_uuid(struct ottl_call *call, uint8_t uuid[UUID_BYTES], unsigned version,
                      struct ottl_value *ret)
{
    enum { TEXT_BYTES = 36, VERSION = 6, VARIANT = 8 };
    static const uint8_t parts[] = {4, 2, 2, 2, 6};
    uint8_t *room = ottl_alloc(call, TEXT_BYTES);
    if (room == NULL)
        return false;
    uuid[VERSION] = (uint8_t)((uuid[VERSION] & 0x0f) | version << 4);
    uuid[VARIANT] = (uint8_t)((uuid[VARIANT] & 0x3f) | 0x80);
    *ret = ottl_string(slice_of(room, TEXT_BYTES));
    for (size_t i = 0; i < sizeof(parts); uuid += parts[i++]) {
        if (i > 0)
            *room++ = '-';
        hex_write(uuid, parts[i], room);
        room += 2 * parts[i];
    }
    return true;
}

static void fill(uint8_t *bytes, size_t size)
{
    ssize_t got = getrandom(bytes, size, 0);
    assert(got == (ssize_t)size); /* so few are never cut */
}

static bool uuid(struct ottl_call *call, struct ottl_value *ret)
{
    enum { VERSION = 4 };
    uint8_t bytes[UUID_BYTES];
    fill(bytes, sizeof(bytes));
    return give_uuid(call, bytes, VERSION, ret);
}

/* The milliseconds, a fraction of them in 12 bits, and chance. On a thread each is larger than the
 * one before. */
static bool uuid_v7(struct ottl_call *call, struct ottl_value *ret)
{
    enum { VERSION = 7, FRACTION_BITS = 12, TIME_BYTES = 6 };
    static _Thread_local uint64_t last;
    uint8_t bytes[UUID_BYTES];
    uint64_t now_ns = ottl_now_ns(call);
    uint64_t moment = (now_ns / NS_PER_MS << FRACTION_BITS) + (now_ns % NS_PER_MS >> 8);
    if (moment <= last)
        moment = last + 1;
    last = moment;
    fill(bytes, sizeof(bytes));
    for (size_t i = 0; i < TIME_BYTES; i++)
        bytes[i] = (uint8_t)(moment >> FRACTION_BITS >> 8 * (TIME_BYTES - 1 - i));
    bytes[TIME_BYTES] = (uint8_t)(moment >> 8 & 0x0f);
    bytes[TIME_BYTES + 1] = (uint8_t)moment;
    return give_uuid(call, bytes, VERSION, ret);
}

const struct ottl_function ottl_id_functions[] = {
    {.name = "TraceID", .parameters = one_bytes, .evaluate = trace_id, .prepare = prepare_trace_id},
    {.name = "SpanID", .parameters = one_bytes, .evaluate = span_id, .prepare = prepare_span_id},
    {.name = "ProfileID",
     .parameters = one_bytes,
     .evaluate = profile_id,
     .prepare = prepare_trace_id},
    {.name = "Hex", .parameters = one_bytes, .evaluate = hex},
    {.name = "UUID", .evaluate = uuid, .is_volatile = true},
    {.name = "UUIDv7", .evaluate = uuid_v7, .is_volatile = true},
    {.name = NULL},
};
