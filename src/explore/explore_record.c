/* SPDX-License-Identifier: Apache-2.0 */
/* A record's head: checksum of all that follows it (XXH3, 64 bits), time, size, size of the
 * request, codec, zero. */
#include "src/explore/explore_record.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const uint8_t magic[EXPLORE_FILE_HEAD_BYTES] = "spanflame kept\n\1";

enum { AT_TIME = 8, AT_SIZE = 16, AT_RAW = 20, AT_CODEC = 24, CHECKSUM_BYTES = 8 };

void explore_file_write_head(uint8_t head[static EXPLORE_FILE_HEAD_BYTES])
{
    memcpy(head, magic, sizeof(magic));
}

static uint64_t checksum_of(const uint8_t *head, struct slice bytes)
{
    uint64_t of_head =
        XXH3_64bits(head + CHECKSUM_BYTES, EXPLORE_RECORD_HEAD_BYTES - CHECKSUM_BYTES);
    return XXH3_64bits_withSeed(bytes.data, bytes.size, of_head);
}

void explore_record_write_head(const struct explore_record *record,
                               uint8_t head[static EXPLORE_RECORD_HEAD_BYTES])
{
    uint32_t size = (uint32_t)record->bytes.size;
    uint32_t codec = (uint32_t)record->codec;
    memset(head, 0, EXPLORE_RECORD_HEAD_BYTES);
    memcpy(head + AT_TIME, &record->time_ns, sizeof(record->time_ns));
    memcpy(head + AT_SIZE, &size, sizeof(size));
    memcpy(head + AT_RAW, &record->raw, sizeof(record->raw));
    memcpy(head + AT_CODEC, &codec, sizeof(codec));
    uint64_t checksum = checksum_of(head, record->bytes);
    memcpy(head, &checksum, sizeof(checksum));
}

struct explore_file_reader explore_file_reader_of(struct slice file)
{
    bool is_ours = file.size >= sizeof(magic) && memcmp(file.data, magic, sizeof(magic)) == 0;
    return (struct explore_file_reader){
        .left = is_ours ? slice_of(file.data + sizeof(magic), file.size - sizeof(magic))
                        : slice_of("", 0),
        .is_broken = !is_ours,
    };
}

bool explore_file_next(struct explore_file_reader *reader, struct explore_record *ret_record)
{
    struct slice left = reader->left;
    uint64_t checksum;
    uint32_t size;
    uint32_t codec;
    if (reader->is_broken || left.size == 0)
        return false;
    reader->is_broken = true;
    if (left.size < EXPLORE_RECORD_HEAD_BYTES)
        return false;
    memcpy(&checksum, left.data, sizeof(checksum));
    memcpy(&ret_record->time_ns, left.data + AT_TIME, sizeof(ret_record->time_ns));
    memcpy(&size, left.data + AT_SIZE, sizeof(size));
    memcpy(&ret_record->raw, left.data + AT_RAW, sizeof(ret_record->raw));
    memcpy(&codec, left.data + AT_CODEC, sizeof(codec));
    if (size > left.size - EXPLORE_RECORD_HEAD_BYTES || ret_record->raw > EXPLORE_RECORD_RAW_MAX ||
        (codec != (uint32_t)CODEC_ZSTD && codec != (uint32_t)CODEC_GZIP))
        return false;
    ret_record->codec = (enum codec)codec;
    ret_record->bytes = slice_of(left.data + EXPLORE_RECORD_HEAD_BYTES, size);
    if (checksum_of(left.data, ret_record->bytes) != checksum)
        return false;
    size_t used = EXPLORE_RECORD_HEAD_BYTES + (size_t)size;
    reader->left = slice_of(left.data + used, left.size - used);
    reader->is_broken = false;
    return true;
}
