/* SPDX-License-Identifier: Apache-2.0 */
/* Writes nested protobuf messages into one growing buffer; the error is sticky. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;

struct nested_output {
    struct buffer *buffer; /* NULL: nothing has been written */
    struct budget *budget; /* NULL: not charged */
    size_t refused_bytes;  /* what it would hold had no growth failed; 0: none failed */
};

/* An open message: where its content begins, and how many bytes are left before it for its length.
 */
struct nested_message {
    size_t begin;
    uint8_t length_bytes;
};

void nested_output_fini(struct nested_output *output);
size_t nested_output_size(const struct nested_output *output);
/* Takes back everything from that size on. */
void nested_output_cut(struct nested_output *output, size_t size);

/* Makes room for that many more bytes. False: refused, now or before. */
bool nested_output_has_room(struct nested_output *output, size_t bytes);

void nested_put_number(struct nested_output *output, uint32_t number, uint64_t value);
void nested_put_fixed64(struct nested_output *output, uint32_t number, uint64_t value);
void nested_put_bytes(struct nested_output *output, uint32_t number, struct slice bytes);
/* Writes nothing for an empty text, as proto3 leaves defaults out. */
void nested_put_text(struct nested_output *output, uint32_t number, struct slice text);
/* Writes nothing for an id of zeros, which means none. */
void nested_put_id(struct nested_output *output, uint32_t number, struct slice id);
void nested_put_raw(struct nested_output *output, struct slice bytes);
/* length_bytes: how many bytes its length is likely to take; its content moves if it takes others.
 */
struct nested_message nested_put_begin(struct nested_output *output, uint32_t number,
                                       uint8_t length_bytes);
/* Messages end in the opposite order. */
void nested_put_end(struct nested_output *output, struct nested_message nested);
