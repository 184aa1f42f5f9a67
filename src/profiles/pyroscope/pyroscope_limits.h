/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what Pyroscope's clients may send and how long they may wait that have no key in the
 * configuration. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

/* Clients do not come back, so that a request waits for room a while: the first look comes so long
 * after, each pause is twice the last; so many of them wait, with so many bytes in all, on a lane.
 */
enum { PYROSCOPE_WAITING_MAX = 256 };
#define PYROSCOPE_WAITING_BYTES_MAX (64 * MIB)
#define PYROSCOPE_WAIT_NS_MAX       ((uint64_t)5 * NS_PER_S)
#define PYROSCOPE_WAIT_NS_FIRST     ((uint64_t)50 * NS_PER_MS)

/* Bodies that come unasked, over HTTP/2, find so much room on a lane when the budget is short: a
 * part of it, and at most that. */
enum { PYROSCOPE_RESERVE_PART = 16 };
#define PYROSCOPE_RESERVE_BYTES_MAX (4 * MIB)

/* Small files can inflate to large ones, and a request holds many: all of a request's together may
 * come to so much. Other requests have their turn after so much of it, each file counting as some
 * more for what reading it takes at least. */
#define PYROSCOPE_INFLATED_BYTES_MAX (256 * MIB)
#define PYROSCOPE_TURN_BYTES         (1 * MIB)
#define PYROSCOPE_TURN_FILE_BYTES    (16 * KIB)
#define PYROSCOPE_REST_NS            ((uint64_t)1 * NS_PER_MS)

/* Profiles of one request that the pipelines have at a time, so that a pipeline that takes its time
 * with each, as batch does with wait_for_result, does not take the sum of all times; and their
 * bytes, but for the last one. */
enum { PYROSCOPE_DELIVERIES_MAX = 64 };
#define PYROSCOPE_DELIVERIES_BYTES_MAX (1 * MIB)

/* What one upload may hold; stacks of tries and trees are spelt out. */
#define UPLOAD_SPELT_BYTES_MAX (64 * MIB)
enum {
    UPLOAD_PARTS_MAX = 32,          /* of a form */
    UPLOAD_PART_HEADER_MAX = 4096,  /* bytes of the headers of one */
    UPLOAD_QUERY_BYTES_MAX = 16384, /* decoded */
    UPLOAD_DEPTH_MAX = 4096,        /* frames of a stack in a text format */
    UPLOAD_STACK_BYTES_MAX = 1 << 20,
    UPLOAD_STACKS_MAX = 4000000,
    UPLOAD_NODES_DEPTH_MAX = 65536, /* of a trie or tree */
    UPLOAD_JSON_DEPTH_MAX = 32,
};
