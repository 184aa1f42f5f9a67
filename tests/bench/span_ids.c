/* SPDX-License-Identifier: Apache-2.0 */
/* Span ids that prove what arrived: see the header. */
#include "tests/bench/span_ids.h"

#include "tests/bench/gzip_body.h"

#include <assert.h>
#include <string.h>

enum { LEVELS_MAX = 4, SPAN_ID = 2, OTLP_VALUES = 4, PPROF_VALUES = 2 };

/* Where the leaves of a message are, by field numbers from the outside, and the function that takes
 * them. */
struct shape {
    uint64_t path[LEVELS_MAX];
    unsigned levels;
    bool (*take)(struct span_ids *ids, struct bytes leaf);
};

/* The finaliser of splitmix64; every step of it can be undone. */
uint64_t span_id_of(uint64_t number)
{
    uint64_t id = number;

    id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9U;
    id = (id ^ (id >> 27)) * 0x94d049bb133111ebU;
    return id ^ (id >> 31);
}

uint64_t span_number_of(uint64_t id)
{
    uint64_t number = id ^ (id >> 31) ^ (id >> 62);

    number *= 0x319642b2d24d8ec3U;
    number = (number ^ (number >> 27) ^ (number >> 54)) * 0x96de1b173f119089U;
    return number ^ (number >> 30) ^ (number >> 60);
}

uint64_t span_id_weight(uint64_t id)
{
    id *= 0x9e3779b97f4a7c15U;
    return id ^ (id >> 29);
}

void span_ids_init(struct span_ids *ids, uint64_t spans_max)
{
    *ids = (struct span_ids){.spans_max = spans_max};
    if (spans_max > 0)
        ids->bitmap = allocate(spans_max / 8 + 1);
}

static void mark(struct span_ids *ids, uint64_t number)
{
    assert(ids->bitmap != NULL);
    if (number == 0 || number > ids->spans_max) {
        ids->unknown++;
        return;
    }

    uint8_t bit = (uint8_t)(1U << (number % 8));
    uint8_t *byte = &ids->bitmap[number / 8];
    if ((*byte & bit) != 0)
        ids->duplicates++;
    else
        ids->unique++;
    *byte |= bit;
}

static bool read_varint(struct bytes *at, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && at->size > 0; shift += 7) {
        uint8_t byte = *at->data;
        at->data++;
        at->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* Takes the next field; a scalar's bytes come as an empty slice. */
static bool read_field(struct bytes *at, uint64_t *ret_number, struct bytes *ret_content)
{
    uint64_t tag;
    uint64_t size = 0;

    if (!read_varint(at, &tag))
        return false;
    *ret_number = tag >> 3;
    *ret_content = (struct bytes){0};
    switch (tag & 7) {
    case 0:
        return read_varint(at, &size);
    case 1:
        size = 8;
        break;
    case 2:
        if (!read_varint(at, &size))
            return false;
        break;
    case 5:
        size = 4;
        break;
    default:
        return false;
    }
    if (size > at->size)
        return false;
    *ret_content = (struct bytes){at->data, (size_t)size};
    at->data += size;
    at->size -= (size_t)size;
    return true;
}

static void add_id(struct span_ids *ids, uint64_t id)
{
    ids->spans++;
    ids->sum += span_id_weight(id);
    if (ids->bitmap != NULL)
        mark(ids, span_number_of(id));
}

/* The first field of that number; false when there is none. */
static bool find_field(struct bytes message, uint64_t wanted, struct bytes *ret_content)
{
    uint64_t number;

    assert(wanted > 0);
    while (message.size > 0) {
        if (!read_field(&message, &number, ret_content))
            return false;
        if (number == wanted)
            return true;
    }
    return false;
}

static bool take_span(struct span_ids *ids, struct bytes span)
{
    struct bytes content;
    uint64_t id;

    if (!find_field(span, SPAN_ID, &content) || content.size != sizeof id)
        return false;
    memcpy(&id, content.data, sizeof id);
    add_id(ids, id);
    return true;
}

/* The values are packed varints. */
static bool take_sample(struct span_ids *ids, struct bytes sample, uint64_t values_field)
{
    struct bytes values;
    uint64_t value;

    if (!find_field(sample, values_field, &values) || !read_varint(&values, &value))
        return false;
    add_id(ids, value);
    return true;
}

static bool take_otlp_sample(struct span_ids *ids, struct bytes sample)
{
    return take_sample(ids, sample, OTLP_VALUES);
}

static bool take_pprof_sample(struct span_ids *ids, struct bytes sample)
{
    return take_sample(ids, sample, PPROF_VALUES);
}

static bool walk(struct span_ids *ids, const struct shape *shape, struct bytes message,
                 unsigned level);

/* A profile in pprof, as a rule one gzip member. */
static bool take_pprof(struct span_ids *ids, struct bytes profile)
{
    static const struct shape samples = {{2}, 1, take_pprof_sample};
    static const uint8_t gzip_magic[] = {0x1f, 0x8b};
    static struct byte_buffer inflated;

    if (profile.size > 2 && memcmp(profile.data, gzip_magic, 2) == 0) {
        if (!gzip_body_inflate(profile, &inflated))
            return false;
        profile = (struct bytes){inflated.data, inflated.size};
    }
    return walk(ids, &samples, profile, 0);
}

/* The depth is bounded by LEVELS_MAX, and twice that with pprof. */
static bool walk(struct span_ids *ids, const struct shape *shape, struct bytes message,
                 unsigned level)
{
    uint64_t number;
    struct bytes content;

    assert(level <= shape->levels);
    if (level == shape->levels)
        return shape->take(ids, message);
    while (message.size > 0) {
        if (!read_field(&message, &number, &content))
            return false;
        if (number == shape->path[level] && !walk(ids, shape, content, level + 1))
            return false;
    }
    return true;
}

static int hex_value(uint8_t digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit == 0 ? NULL : strchr(digits, digit | 0x20);

    return at == NULL ? -1 : (int)(at - digits);
}

/* Every "spanId" is a span's: the payload has no links. */
static bool add_json(struct span_ids *ids, struct bytes text)
{
    enum { ID_DIGITS = 16 };
    static const char key[] = "\"spanId\":\"";
    const uint8_t *end = text.data + text.size;

    for (const uint8_t *at = text.data;
         (at = memmem(at, (size_t)(end - at), key, sizeof key - 1));) {
        uint8_t id[ID_DIGITS / 2];
        uint64_t number;
        at += sizeof key - 1;
        if (end - at < ID_DIGITS)
            return false;
        for (unsigned i = 0; i < sizeof id; i++) {
            int high = hex_value(at[2 * i]), low = hex_value(at[2 * i + 1]);
            if (high < 0 || low < 0)
                return false;
            id[i] = (uint8_t)(high << 4 | low);
        }
        memcpy(&number, id, sizeof number);
        add_id(ids, number);
    }
    return true;
}

bool span_ids_add_body(struct span_ids *ids, enum body_kind kind, struct bytes body)
{
    static const struct shape shapes[] = {
        [BODY_TRACES] = {{1, 2, 2}, 3, take_span},
        [BODY_PROFILES] = {{1, 2, 2, 2}, 4, take_otlp_sample},
        [BODY_PUSH] = {{1, 2, 1}, 3, take_pprof},
    };

    assert(body.data != NULL || body.size == 0);
    assert(kind <= BODY_PUSH);
    if (kind == BODY_TRACES && body.size > 0 && body.data[0] == '{')
        return add_json(ids, body);
    return walk(ids, &shapes[kind], body, 0);
}
