/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of traces for tests of what the explore page keeps: spans as plain structs, encoded. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct buffer;

struct test_span {
    uint64_t trace; /* the last 8 bytes of the id */
    uint64_t span;
    uint64_t parent;     /* 0: none */
    const char *service; /* NULL: without a resource */
    const char *name;
    uint64_t start_ns;
    uint64_t duration_ns;
    uint8_t status;
    unsigned events;
    const char *attribute; /* value of "key"; NULL: none */
    size_t padding;        /* bytes of an attribute that hardly compress */
};

/* One ResourceSpans for each run of spans with one service. The caller's. */
struct buffer *span_request(const struct test_span *spans, size_t count);
void trace_id_of(uint64_t trace, uint8_t id[16]);
/* As rows have span ids. */
uint64_t row_span_id_of(uint64_t span);
