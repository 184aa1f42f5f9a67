/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what Pyroscope's clients may send and how long they may wait that have no key in the
 * configuration. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

/* Clients do not retry, so a request waits a while for room: it looks first after
 * PYROSCOPE_WAIT_NS_FIRST, and each pause is twice the last. The number and bytes of waiting
 * requests are bounded on each lane. */
enum { PYROSCOPE_WAITING_MAX = 256 };
#define PYROSCOPE_WAITING_BYTES_MAX (64 * MIB)
#define PYROSCOPE_WAIT_NS_MAX       ((uint64_t)5 * NS_PER_S)
#define PYROSCOPE_WAIT_NS_FIRST     ((uint64_t)50 * NS_PER_MS)

/* HTTP/2 bodies arrive without being asked for. When the budget is short, a lane still has this
 * part of it for them, and at most PYROSCOPE_RESERVE_BYTES_MAX. */
enum { PYROSCOPE_RESERVE_PART = 16 };
#define PYROSCOPE_RESERVE_BYTES_MAX (4 * MIB)

/* Small files can inflate to large ones, and a request holds many: all files of a request together
 * may inflate to PYROSCOPE_INFLATED_BYTES_MAX. After each PYROSCOPE_TURN_BYTES other requests have
 * their turn; each file counts PYROSCOPE_TURN_FILE_BYTES more, the least cost of reading it, and
 * each label of a series PYROSCOPE_TURN_LABEL_BYTES. */
#define PYROSCOPE_INFLATED_BYTES_MAX (256 * MIB)
#define PYROSCOPE_TURN_BYTES         (1 * MIB)
#define PYROSCOPE_TURN_FILE_BYTES    (16 * KIB)
#define PYROSCOPE_TURN_LABEL_BYTES   128
#define PYROSCOPE_REST_NS            ((uint64_t)1 * NS_PER_MS)

/* Profiles of one request, and their bytes without those of the last one, that are in the pipelines
 * at the same time. Several, since a pipeline may take long for each, as batch does with
 * wait_for_result. */
enum { PYROSCOPE_DELIVERIES_MAX = 64 };
#define PYROSCOPE_DELIVERIES_BYTES_MAX (1 * MIB)

/* What one upload may hold; stacks of tries and trees count with all their names: at most
 * UPLOAD_SPELT_GROWTH_MAX times the body and UPLOAD_SPELT_BYTES_MORE, which is a chain of 512 nodes
 * with a value each, however long their names. */
#define UPLOAD_SPELT_BYTES_MAX  (64 * MIB)
#define UPLOAD_SPELT_BYTES_MORE (1 * MIB)
enum {
    UPLOAD_SPELT_GROWTH_MAX = 256,
    UPLOAD_PARTS_MAX = 32,          /* of a form */
    UPLOAD_PART_HEADER_MAX = 4096,  /* bytes of the headers of one */
    UPLOAD_TYPES_BYTES_MAX = 65536, /* of sample_type_config, which is read for each type */
    UPLOAD_QUERY_BYTES_MAX = 16384, /* decoded */
    UPLOAD_DEPTH_MAX = 4096,        /* frames of a stack in a text format */
    UPLOAD_STACK_BYTES_MAX = 1 << 20,
    UPLOAD_STACKS_MAX = 4000000,
    UPLOAD_NODES_DEPTH_MAX = 65536, /* of a trie or tree */
};
