/* SPDX-License-Identifier: Apache-2.0 */
/* The values of OTTL: what paths, converters and literals give (contrib, pkg/ottl, LANGUAGE.md).
 * Plain data; 16 bytes, passed by pointer. Strings and bytes are views of the batch, of the plan or
 * of the record's memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct ottl_list;
struct ottl_map;
struct ottl_memory;

enum ottl_type {
    OTTL_NIL,
    OTTL_BOOL,
    OTTL_INT,
    OTTL_DOUBLE,
    OTTL_STRING,
    OTTL_BYTES,    /* empty and without data: Go's nil slice, which equals nil */
    OTTL_TIME,     /* a moment and a zone */
    OTTL_DURATION, /* nanoseconds */
    OTTL_MAP,
    OTTL_LIST,
    OTTL_TRACE_ID,   /* 16 bytes */
    OTTL_SPAN_ID,    /* 8 bytes */
    OTTL_PROFILE_ID, /* 16 bytes */
    OTTL_MESSAGE, /* span.events, span.links, span.status, metric.data_points …: a message of the
                     record's, or a list of such, that can only be set, compared and counted. As in
                     Go it equals itself and nothing else. */
    OTTL_ENCODED, /* inside maps and lists only: an AnyValue that nobody has read yet */
};

/* What Go holds a list or map in. It decides what compares and what may be set. */
enum ottl_form {
    OTTL_FORM_PDATA,   /* pcommon.Map, pcommon.Slice */
    OTTL_FORM_ANY,     /* map[string]any, []any: list literals */
    OTTL_FORM_STRINGS, /* []string: Split, Keys */
    OTTL_FORM_INTS,
    OTTL_FORM_DOUBLES,
    OTTL_FORM_BOOLS,
    OTTL_FORM_UINTS, /* []uint64: bucket counts; attributes do not hold it */
    OTTL_FORM_TIMES, /* []time.Time; the same */
};

/* Which message a MESSAGE is. */
enum ottl_message_kind {
    OTTL_STATUS,
    OTTL_SAMPLE_TYPE,
    OTTL_PERIOD_TYPE,
    OTTL_POSITIVE_BUCKETS,
    OTTL_NEGATIVE_BUCKETS,
    OTTL_SAMPLES,
    /* Lists whose messages Len counts: */
    OTTL_EVENTS,
    OTTL_LINKS,
    OTTL_EXEMPLARS,
    OTTL_QUANTILES,
    OTTL_NUMBER_POINTS,
    OTTL_HISTOGRAM_POINTS,
    OTTL_EXPONENTIAL_HISTOGRAM_POINTS,
    OTTL_SUMMARY_POINTS,
};

struct ottl_value {
    uint8_t type;  /* enum ottl_type */
    uint8_t form;  /* MAP, LIST: enum ottl_form. MESSAGE: which one (enum ottl_message_kind) */
    uint16_t zone; /* TIME: 0 is UTC, others as in ottl_zone.h */
    uint32_t size; /* STRING, BYTES, MESSAGE, ENCODED, ids: bytes; lists of messages: 0. TIME: the
                      nanoseconds, below 10^9 */
    union {
        bool boolean;
        int64_t integer; /* INT; DURATION: nanoseconds; TIME: seconds since 1970; MESSAGE: how many
                            messages a list has */
        double real;
        const uint8_t *bytes; /* STRING, BYTES, MESSAGE, ENCODED, ids */
        struct ottl_map *map;
        struct ottl_list *list;
    };
};

enum { OTTL_TRACE_ID_BYTES = 16, OTTL_SPAN_ID_BYTES = 8 };

static inline struct ottl_value ottl_nil(void)
{
    return (struct ottl_value){.type = OTTL_NIL};
}

static inline struct ottl_value ottl_bool(bool boolean)
{
    return (struct ottl_value){.type = OTTL_BOOL, .boolean = boolean};
}

static inline struct ottl_value ottl_int(int64_t integer)
{
    return (struct ottl_value){.type = OTTL_INT, .integer = integer};
}

static inline struct ottl_value ottl_double(double real)
{
    return (struct ottl_value){.type = OTTL_DOUBLE, .real = real};
}

static inline struct ottl_value ottl_duration(int64_t nanoseconds)
{
    return (struct ottl_value){.type = OTTL_DURATION, .integer = nanoseconds};
}

/* Of UTC. */
static inline struct ottl_value ottl_time(int64_t seconds, uint32_t nanoseconds)
{
    return (struct ottl_value){.type = OTTL_TIME, .integer = seconds, .size = nanoseconds};
}

/* type: STRING, BYTES, MESSAGE, ENCODED or an id. Text is at most 4 GiB, as batches are. */
static inline struct ottl_value ottl_bytes_of(enum ottl_type type, struct slice bytes)
{
    return (struct ottl_value){
        .type = (uint8_t)type, .size = (uint32_t)bytes.size, .bytes = bytes.data};
}

static inline struct ottl_value ottl_string(struct slice text)
{
    return ottl_bytes_of(OTTL_STRING, text);
}

/* Of a string constant. */
static inline struct ottl_value ottl_text(const char *text)
{
    return ottl_string(slice_of_text(text));
}

static inline struct ottl_value ottl_map_value(struct ottl_map *map)
{
    return (struct ottl_value){.type = OTTL_MAP, .form = OTTL_FORM_PDATA, .map = map};
}

static inline struct ottl_value ottl_list_value(struct ottl_list *list, enum ottl_form form)
{
    return (struct ottl_value){.type = OTTL_LIST, .form = (uint8_t)form, .list = list};
}

/* One message, encoded. */
static inline struct ottl_value ottl_message(enum ottl_message_kind kind, struct slice bytes)
{
    struct ottl_value value = ottl_bytes_of(OTTL_MESSAGE, bytes);
    value.form = (uint8_t)kind;
    return value;
}

/* A list of messages. */
static inline struct ottl_value ottl_messages(enum ottl_message_kind kind, int64_t count)
{
    return (struct ottl_value){.type = OTTL_MESSAGE, .form = (uint8_t)kind, .integer = count};
}

/* The bytes of a STRING, BYTES, MESSAGE (of one), ENCODED or id. */
static inline struct slice ottl_slice(const struct ottl_value *value)
{
    return slice_of(value->bytes, value->size);
}

/* Of a MESSAGE, as below. */
const char *ottl_message_name(enum ottl_message_kind kind);
/* For error messages: "int64", "string", "pcommon.Map" …, as Go's %T prints them. */
const char *ottl_type_name(const struct ottl_value *value);
