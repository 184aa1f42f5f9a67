/* SPDX-License-Identifier: Apache-2.0 */
/* Writes nested protobuf messages into one growing buffer; the error is sticky. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;

struct zipkin_output {
    struct buffer *buffer; /* NULL: nothing has been written */
    struct budget *budget; /* NULL: not charged */
    size_t refused_bytes;  /* what it would hold had no growth failed; 0: none failed */
};

/* An open message: where its content begins, and how many bytes are left before it for its length.
 */
struct zipkin_nested {
    size_t begin;
    uint8_t length_bytes;
};

void zipkin_output_fini(struct zipkin_output *output);
size_t zipkin_output_size(const struct zipkin_output *output);
/* Takes back everything from that size on. */
void zipkin_output_cut(struct zipkin_output *output, size_t size);

void zipkin_put_number(struct zipkin_output *output, uint32_t number, uint64_t value);
void zipkin_put_fixed64(struct zipkin_output *output, uint32_t number, uint64_t value);
void zipkin_put_bytes(struct zipkin_output *output, uint32_t number, struct slice bytes);
void zipkin_put_raw(struct zipkin_output *output, struct slice bytes);
/* length_bytes: how many bytes its length is likely to take; its content moves if it takes others.
 */
struct zipkin_nested zipkin_put_begin(struct zipkin_output *output, uint32_t number,
                                      uint8_t length_bytes);
/* Messages end in the opposite order. */
void zipkin_put_end(struct zipkin_output *output, struct zipkin_nested nested);
