/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the explore directory: a head, then records, each a compressed request with a checksum.
 * What a crash has left of the last record is told from a whole one. Numbers are little endian.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec.h"

enum {
    EXPLORE_FILE_HEAD_BYTES = 16,
    EXPLORE_RECORD_HEAD_BYTES = 32,
    EXPLORE_RECORD_RAW_MAX = 64 * 1024 * 1024, /* of one request */
};

struct explore_record {
    uint64_t time_ns; /* unix, when the last of it came */
    uint32_t raw;     /* size of the request */
    enum codec codec;
    struct slice bytes; /* the compressed request */
};

void explore_file_write_head(uint8_t head[static EXPLORE_FILE_HEAD_BYTES]);
void explore_record_write_head(const struct explore_record *record,
                               uint8_t head[static EXPLORE_RECORD_HEAD_BYTES]);

/* What is left to read of a file's bytes. */
struct explore_file_reader {
    struct slice left;
    bool is_broken; /* what is left is no whole record, or the file is none of ours */
};
struct explore_file_reader explore_file_reader_of(struct slice file);
/* The next record, a slice of the file. False: there are no more, or is_broken. */
bool explore_file_next(struct explore_file_reader *reader, struct explore_record *ret_record);
