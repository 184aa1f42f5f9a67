/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of the explore directory; and any bytes in a record, which is read back, and
 * is not with any byte changed. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/explore/explore_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_records(struct slice file, bool *ret_is_broken)
{
    struct explore_file_reader reader = explore_file_reader_of(file);
    struct explore_record record;
    size_t count = 0;
    while (explore_file_next(&reader, &record)) {
        assert(record.bytes.data >= file.data &&
               record.bytes.data + record.bytes.size <= file.data + file.size);
        assert(record.raw <= EXPLORE_RECORD_RAW_MAX);
        count++;
    }
    *ret_is_broken = reader.is_broken;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_broken;
    count_records(slice_of(data, size), &is_broken);
    size_t head = EXPLORE_FILE_HEAD_BYTES + EXPLORE_RECORD_HEAD_BYTES;
    uint8_t *file = malloc(head + size);
    assert(file != NULL);
    const struct explore_record record = {
        .time_ns = size, .raw = 7, .codec = CODEC_ZSTD, .bytes = slice_of(data, size)};
    explore_file_write_head(file);
    explore_record_write_head(&record, file + EXPLORE_FILE_HEAD_BYTES);
    if (size > 0)
        memcpy(file + head, data, size);
    assert(count_records(slice_of(file, head + size), &is_broken) == 1 && !is_broken);
    size_t at = size > 0 ? data[0] * (size_t)7 % (head + size) : 3;
    file[at] ^= 0x10;
    assert(count_records(slice_of(file, head + size), &is_broken) == 0 && is_broken);
    free(file);
    return 0;
}
