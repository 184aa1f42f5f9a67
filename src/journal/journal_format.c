/* SPDX-License-Identifier: Apache-2.0 */
/* Segment headers and heads of records. Pure functions, any thread. */
#include "src/journal/journal_format.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <isa-l/crc.h>

/* "SFJR", mixed with the journal's key. */
#define HEAD_MARK UINT32_C(0x524a4653)

static const uint8_t segment_mark[8] = {'s', 'p', 'a', 'n', 'f', 'l', 'j', '1'};

/* Offsets in a head. */
enum {
    HEAD_MARK_AT = 0,
    HEAD_CRC_AT = 4,
    HEAD_PAYLOAD_CRC_AT = 8, /* the head's checksum covers everything from here on */
    HEAD_BYTES_AT = 12,
    HEAD_TYPE_AT = 16,
    HEAD_SIGNAL_AT = 17,
    HEAD_META_BYTES_AT = 18,
    HEAD_UNUSED_AT = 20,
    HEAD_ID_AT = 24,
    HEAD_WALL_AT = 32,
    HEAD_ITEMS_AT = 40,
};

/* A place as bytes: key, segment, offset. */
enum { PLACE_SEGMENT_AT = 8, PLACE_BYTES = 24 };

/* Offsets in a segment header; its checksum covers what follows it. */
enum {
    SEGMENT_MARK_AT = 0,
    SEGMENT_VERSION_AT = 8,
    SEGMENT_CRC_AT = 12,
    SEGMENT_KEY_AT = 16,
    SEGMENT_NUMBER_AT = 24,
    SEGMENT_BYTES_AT = 32,
    SEGMENT_END = 40,
};

void journal_put_u64(uint8_t *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof(value));
}

void journal_put_u32(uint8_t *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof(value));
}

uint64_t journal_get_u64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return le64toh(value);
}

uint32_t journal_get_u32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return le32toh(value);
}

uint32_t journal_crc(uint32_t crc, struct slice data)
{
    enum { PIECE_BYTES_MAX = 1 << 30 }; /* crc32_iscsi takes an int */
    crc = ~crc;
    while (data.size > 0) {
        size_t size = data.size < PIECE_BYTES_MAX ? data.size : PIECE_BYTES_MAX;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)data.data, (int)size, crc);
        data = slice_of(data.data + size, data.size - size);
    }
    return ~crc;
}

uint64_t journal_record_bytes(uint64_t payload_bytes)
{
    assert(payload_bytes <= JOURNAL_PAYLOAD_BYTES_MAX);
    uint64_t bytes = JOURNAL_HEAD_BYTES + payload_bytes;
    return (bytes + JOURNAL_ALIGN_BYTES - 1) / JOURNAL_ALIGN_BYTES * JOURNAL_ALIGN_BYTES;
}

static void place_write(uint8_t where[static PLACE_BYTES], const struct journal_place *place)
{
    journal_put_u64(where, place->key);
    journal_put_u64(where + PLACE_SEGMENT_AT, place->segment);
    journal_put_u64(where + 16, place->offset);
}

static uint32_t head_crc(const uint8_t *head, const struct journal_place *place)
{
    uint8_t where[PLACE_BYTES];
    place_write(where, place);
    uint32_t crc = journal_crc(0, slice_of(where, sizeof(where)));
    return journal_crc(
        crc, slice_of(head + HEAD_PAYLOAD_CRC_AT, JOURNAL_HEAD_BYTES - HEAD_PAYLOAD_CRC_AT));
}

void journal_head_write(uint8_t head[static JOURNAL_HEAD_BYTES], const struct journal_place *place,
                        const struct journal_head *values)
{
    assert(place->offset % JOURNAL_ALIGN_BYTES == 0);
    assert(values->bytes <= JOURNAL_PAYLOAD_BYTES_MAX && values->meta_bytes <= values->bytes);
    journal_put_u32(head + HEAD_MARK_AT, HEAD_MARK ^ (uint32_t)place->key);
    journal_put_u32(head + HEAD_PAYLOAD_CRC_AT, values->crc);
    journal_put_u32(head + HEAD_BYTES_AT, values->bytes);
    head[HEAD_TYPE_AT] = (uint8_t)values->type;
    head[HEAD_SIGNAL_AT] = values->signal;
    uint16_t meta_bytes = htole16(values->meta_bytes);
    memcpy(head + HEAD_META_BYTES_AT, &meta_bytes, sizeof(meta_bytes));
    journal_put_u32(head + HEAD_UNUSED_AT, 0);
    journal_put_u64(head + HEAD_ID_AT, values->id);
    journal_put_u64(head + HEAD_WALL_AT, values->wall_ns);
    journal_put_u64(head + HEAD_ITEMS_AT, values->items);
    journal_put_u32(head + HEAD_CRC_AT, head_crc(head, place));
}

/* The mark is for searching only: a head whose mark alone is damaged still verifies. */
bool journal_head_read(const uint8_t head[static JOURNAL_HEAD_BYTES],
                       const struct journal_place *place, struct journal_head *ret_values)
{
    if (journal_get_u32(head + HEAD_CRC_AT) != head_crc(head, place))
        return false;
    uint16_t meta_bytes;
    memcpy(&meta_bytes, head + HEAD_META_BYTES_AT, sizeof(meta_bytes));
    *ret_values = (struct journal_head){
        .type = head[HEAD_TYPE_AT],
        .signal = head[HEAD_SIGNAL_AT],
        .meta_bytes = le16toh(meta_bytes),
        .bytes = journal_get_u32(head + HEAD_BYTES_AT),
        .crc = journal_get_u32(head + HEAD_PAYLOAD_CRC_AT),
        .id = journal_get_u64(head + HEAD_ID_AT),
        .wall_ns = journal_get_u64(head + HEAD_WALL_AT),
        .items = journal_get_u64(head + HEAD_ITEMS_AT),
    };
    return ret_values->bytes <= JOURNAL_PAYLOAD_BYTES_MAX &&
           ret_values->meta_bytes <= ret_values->bytes;
}

bool journal_head_is_marked(const uint8_t head[static JOURNAL_HEAD_BYTES], uint64_t key)
{
    return journal_get_u32(head + HEAD_MARK_AT) == (HEAD_MARK ^ (uint32_t)key);
}

/* The state that a CRC-32C had before it took in the data: bit by bit, backwards. */
static uint32_t crc_before(uint32_t state, struct slice data)
{
    const uint32_t polynomial = UINT32_C(0x82f63b78);
    const uint32_t top = UINT32_C(1) << 31;
    for (size_t i = data.size; i > 0; i--) {
        for (unsigned bit = 0; bit < 8; bit++)
            state = (state & top) != 0 ? (state ^ polynomial) << 1 | 1 : state << 1;
        state ^= data.data[i - 1];
    }
    return state;
}

/* A checksum of 32 bits follows from one value of the lower half of the segment's number only; that
 * value is found where the checksum's state before it and the state behind it meet. */
bool journal_head_is_older(const uint8_t head[static JOURNAL_HEAD_BYTES],
                           const struct journal_place *place)
{
    enum { LOWER_BYTES = 4, UPPER_AT = PLACE_SEGMENT_AT + LOWER_BYTES };
    static const uint8_t nothing[LOWER_BYTES];
    uint8_t where[PLACE_BYTES];
    place_write(where, place);
    uint32_t state =
        crc_before(~journal_get_u32(head + HEAD_CRC_AT),
                   slice_of(head + HEAD_PAYLOAD_CRC_AT, JOURNAL_HEAD_BYTES - HEAD_PAYLOAD_CRC_AT));
    state = crc_before(state, slice_of(where + UPPER_AT, PLACE_BYTES - UPPER_AT));
    state = crc_before(state, slice_of(nothing, sizeof(nothing)));
    uint32_t lower = state ^ ~journal_crc(0, slice_of(where, PLACE_SEGMENT_AT));
    return lower > 0 && lower < (uint32_t)place->segment;
}

static uint32_t segment_crc(const uint8_t *block)
{
    uint32_t crc =
        journal_crc(0, slice_of(block + SEGMENT_VERSION_AT, SEGMENT_CRC_AT - SEGMENT_VERSION_AT));
    return journal_crc(crc, slice_of(block + SEGMENT_KEY_AT, SEGMENT_END - SEGMENT_KEY_AT));
}

void journal_segment_header_write(uint8_t block[static JOURNAL_BLOCK_BYTES],
                                  const struct journal_segment_header *values)
{
    memset(block, 0, JOURNAL_BLOCK_BYTES);
    memcpy(block + SEGMENT_MARK_AT, segment_mark, sizeof(segment_mark));
    journal_put_u32(block + SEGMENT_VERSION_AT, values->version);
    journal_put_u64(block + SEGMENT_KEY_AT, values->key);
    journal_put_u64(block + SEGMENT_NUMBER_AT, values->number);
    journal_put_u64(block + SEGMENT_BYTES_AT, values->bytes);
    journal_put_u32(block + SEGMENT_CRC_AT, segment_crc(block));
}

bool journal_segment_header_read(const uint8_t block[static JOURNAL_BLOCK_BYTES],
                                 struct journal_segment_header *ret_values)
{
    if (memcmp(block + SEGMENT_MARK_AT, segment_mark, sizeof(segment_mark)) != 0 ||
        journal_get_u32(block + SEGMENT_CRC_AT) != segment_crc(block))
        return false;
    *ret_values =
        (struct journal_segment_header){.version = journal_get_u32(block + SEGMENT_VERSION_AT)};
    if (ret_values->version == 0 || ret_values->version > JOURNAL_VERSION)
        return true;
    ret_values->key = journal_get_u64(block + SEGMENT_KEY_AT);
    ret_values->number = journal_get_u64(block + SEGMENT_NUMBER_AT);
    ret_values->bytes = journal_get_u64(block + SEGMENT_BYTES_AT);
    return true;
}

void journal_segment_name(char name[static JOURNAL_NAME_BYTES], uint64_t number)
{
    snprintf(name, JOURNAL_NAME_BYTES, "%016" PRIx64 ".journal", number);
}

bool journal_segment_number(const char *name, uint64_t *ret_number)
{
    enum { DIGITS = 16 };
    static const char digits[] = "0123456789abcdef";
    uint64_t number = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        const char *digit = name[i] != '\0' ? strchr(digits, name[i]) : NULL;
        if (digit == NULL)
            return false;
        number = number << 4 | (uint64_t)(digit - digits);
    }
    *ret_number = number;
    return strcmp(name + DIGITS, ".journal") == 0;
}
