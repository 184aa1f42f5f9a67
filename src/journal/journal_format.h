/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's bytes on disk, all little-endian. Pure functions, any thread.
 *
 * A segment is a file of a fixed size, named by its number. Its first block is the segment header;
 * behind it lie groups, each at the start of a block and filled up with zeros to the end of one, so
 * that writing a group never touches a block of an earlier one. A group is one or more records, a
 * record is a head and a payload, padded to 8 bytes. The first record of a segment is a checkpoint.
 *
 * A segment is used again under another number, without being cleared. What it held before never
 * verifies: the checksum of a record's head covers the segment's number, the offset and the
 * journal's random key, which also keeps telemetry from posing as records. The checksum of the
 * payload is part of the head. Checksums are CRC-32C (RFC 3720, appendix B.4). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum {
    JOURNAL_VERSION = 1,
    JOURNAL_BLOCK_BYTES = 4096,
    JOURNAL_HEAD_BYTES = 48,
    JOURNAL_ALIGN_BYTES = 8,
    JOURNAL_META_BYTES_MAX = UINT16_MAX,
};
#define JOURNAL_PAYLOAD_BYTES_MAX ((uint64_t)1 << 30)

enum journal_record_type {
    JOURNAL_CHECKPOINT = 1, /* what each exporter has delivered so far */
    JOURNAL_DATA = 2,       /* a request: meta data, then its OTLP bytes */
    JOURNAL_DONE = 3,       /* what exporters have delivered since: struct journal_done */
};

/* Where a record lies; part of its checksum. */
struct journal_place {
    uint64_t key; /* of the journal, random */
    uint64_t segment;
    uint64_t offset; /* of the head in the file, a multiple of JOURNAL_ALIGN_BYTES */
};

struct journal_head {
    enum journal_record_type type;
    uint8_t signal;      /* DATA: enum signal_kind */
    uint16_t meta_bytes; /* DATA: of the payload, before the request */
    uint32_t bytes;      /* of the payload */
    uint32_t crc;        /* of the payload */
    uint64_t id;         /* DATA: counts up by one, never used again */
    uint64_t wall_ns;    /* DATA: when the request came, Unix time */
    uint64_t items;      /* DATA: of the request */
};

struct journal_segment_header {
    uint32_t version;
    uint64_t key;
    uint64_t number;
    uint64_t bytes; /* of the file */
};

/* Records that cannot be read: they lie at or behind that offset, and `records` ids, from first on,
 * are missing. */
struct journal_damage {
    uint64_t segment;
    uint64_t offset;
    uint64_t first;
    uint64_t records;
    bool is_end; /* behind the last record of a segment: the next one tells that none is missing */
};

/* CRC-32C of data, continuing crc, which is 0 at the start. */
uint32_t journal_crc(uint32_t crc, struct slice data);
/* The bytes that a record takes with its head and its padding. */
uint64_t journal_record_bytes(uint64_t payload_bytes);

void journal_head_write(uint8_t head[static JOURNAL_HEAD_BYTES], const struct journal_place *place,
                        const struct journal_head *values);
/* False: these bytes are no head that belongs at this place. */
bool journal_head_read(const uint8_t head[static JOURNAL_HEAD_BYTES],
                       const struct journal_place *place, struct journal_head *ret_values)
    __attribute__((warn_unused_result));
/* Whether they look as if they had been one: damaged, or written only in part. */
bool journal_head_is_marked(const uint8_t head[static JOURNAL_HEAD_BYTES], uint64_t key);
/* Whether they are a head that the file held at this offset under an earlier number, before it was
 * used again. Damage passes for that with a probability of place->segment / 2^32. */
bool journal_head_is_older(const uint8_t head[static JOURNAL_HEAD_BYTES],
                           const struct journal_place *place);

/* Fills a block. */
void journal_segment_header_write(uint8_t block[static JOURNAL_BLOCK_BYTES],
                                  const struct journal_segment_header *values);
/* False: it is not a segment header. Of an unknown version only the version is set. */
bool journal_segment_header_read(const uint8_t block[static JOURNAL_BLOCK_BYTES],
                                 struct journal_segment_header *ret_values)
    __attribute__((warn_unused_result));

/* The file name of a segment, and back. */
enum { JOURNAL_NAME_BYTES = 32 };
void journal_segment_name(char name[static JOURNAL_NAME_BYTES], uint64_t number);
bool journal_segment_number(const char *name, uint64_t *ret_number)
    __attribute__((warn_unused_result));

/* Plain numbers in payloads. */
void journal_put_u64(uint8_t *to, uint64_t value);
void journal_put_u32(uint8_t *to, uint32_t value);
uint64_t journal_get_u64(const uint8_t *from);
uint32_t journal_get_u32(const uint8_t *from);
