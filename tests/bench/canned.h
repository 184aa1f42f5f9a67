/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies that are made before the run and sent again and again: compressed ones, and those
 * that come from files. */
#pragma once

#include "tests/bench/support.h"

struct canned {
    struct byte_buffer body;
    uint64_t weight; /* what a sink must find in it: see span_ids.h */
};

struct canned_set {
    struct canned *bodies;
    unsigned count;
};

/* gzip bodies of consecutive spans. */
struct canned_set canned_gzip(uint32_t spans, uint32_t span_bytes);
/* All files of a folder in the order of their names, which are their weights in hexadecimal. */
struct canned_set canned_read(const char *folder);
void canned_free(struct canned_set *set);
