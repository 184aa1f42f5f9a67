/* SPDX-License-Identifier: Apache-2.0 */
/* Span ids that prove what arrived: see the header. */
#include "tests/bench/span_ids.h"

#include <assert.h>
#include <string.h>

/* Field numbers of the path request → resource → scope → span → span_id. */
enum { RESOURCE_SPANS = 1, SCOPE_SPANS = 2, SPANS = 2, SPAN_ID = 2, LEVELS = 3 };

static const uint64_t level_fields[LEVELS] = {RESOURCE_SPANS, SCOPE_SPANS, SPANS};

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

static bool add_span(struct span_ids *ids, struct bytes span)
{
    uint64_t number;
    struct bytes content;
    uint64_t id;

    while (span.size > 0) {
        if (!read_field(&span, &number, &content))
            return false;
        if (number != SPAN_ID)
            continue;
        if (content.size != sizeof id)
            return false;
        memcpy(&id, content.data, sizeof id);
        ids->spans++;
        ids->sum += span_id_weight(id);
        if (ids->bitmap != NULL)
            mark(ids, span_number_of(id));
        return true;
    }
    return false;
}

/* The depth is bounded by LEVELS. */
static bool add_level(struct span_ids *ids, struct bytes message, unsigned level)
{
    uint64_t number;
    struct bytes content;

    assert(level <= LEVELS);
    if (level == LEVELS)
        return add_span(ids, message);
    while (message.size > 0) {
        if (!read_field(&message, &number, &content))
            return false;
        if (number == level_fields[level] && !add_level(ids, content, level + 1))
            return false;
    }
    return true;
}

bool span_ids_add_body(struct span_ids *ids, struct bytes body)
{
    assert(body.data != NULL || body.size == 0);
    return add_level(ids, body, 0);
}
