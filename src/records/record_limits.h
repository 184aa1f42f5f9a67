/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of editing records. Sizes in bytes. */
#pragma once

#include <stdint.h>

/* An edit that would make a request larger is refused: lengths of messages are 32 bits. */
#define RECORD_REQUEST_BYTES_MAX ((uint64_t)2 << 30)

/* Of the names of masked parts of a log record's body; longer ones are cut. */
enum { REDACTED_PATH_BYTES_MAX = 1024 };

/* Names of one kind that a summary lists, and bytes of all names of a body: beyond the floor only
 * so many times the record, since each name repeats those of the maps around it. No record that a
 * person would read has more; the rest is told as a number. */
enum {
    REDACTED_NAMES_MAX = 4096,
    REDACTED_PATHS_GROWTH_MAX = 4,
    REDACTED_PATHS_BYTES_MIN = 16 * 1024,
};

/* What is read again for each of many records, such as a metric's name for its data points, in
 * times of the request; and what may be in any case. A name of 1 KiB above points of 16 bytes is
 * there. */
#define RECORD_REREAD_FACTOR_MAX ((uint64_t)64)
#define RECORD_REREAD_BYTES_MIN  ((uint64_t)32 << 20)

/* Longer texts are not searched for patterns on a lane: a match at each byte, replaced by its hash,
 * takes 300 ns. */
enum { RECORD_LANE_TEXT_BYTES_MAX = 32 * 1024 };

/* New values of a record; what would take more stays as it is. */
enum { RECORD_VALUES_BYTES_MAX = 64 << 20 };

/* A request of logs in which each record has a Resource of its own, in times of the request; and
 * what it may take in any case. */
enum { LOG_FLATTENED_GROWTH_MAX = 64, LOG_FLATTENED_BYTES_MIN = 1 << 20 };

/* What a request may become when its records are grouped anew, with a copy of their Resource for
 * each group, in times of the request; and what it may in any case. A record of 60 bytes with a
 * Resource of its own of 4 KiB is just below it. */
enum { RECORD_GROUPED_GROWTH_MAX = 64, RECORD_GROUPED_BYTES_MIN = 4 << 20 };
