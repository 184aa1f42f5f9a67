/* SPDX-License-Identifier: Apache-2.0 */
/* A repeated number of a profiles message, in any of the forms that protobuf allows: packed in one
 * field (nearly always), one field per element, or both mixed. Read without allocating. Input has
 * passed otlp_check. Plain values, any thread; valid as long as the bytes are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/slice.h"

struct profile_numbers {
    struct slice packed; /* the elements, when they stand in one place */
    struct slice parent; /* else, with data: the message whose fields `number` hold them */
    uint32_t number;
    bool is_fixed64; /* eight bytes each; else varints */
};

struct profile_numbers_reader {
    const uint8_t *at;
    const uint8_t *end;
    struct slice rest; /* of the parent */
    uint32_t number;
    bool is_fixed64;
};

struct wire_field;

/* Adds one occurrence of the field, found in parent; numbers begins with nothing but is_fixed64
 * set.
 */
void profile_numbers_add(struct profile_numbers *numbers, struct slice parent,
                         const struct wire_field *found);
struct profile_numbers_reader profile_numbers_read(const struct profile_numbers *numbers);
/* False at the end. */
bool profile_numbers_next(struct profile_numbers_reader *reader, uint64_t *ret_number);
size_t profile_numbers_count(const struct profile_numbers *numbers);
