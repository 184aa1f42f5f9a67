/* SPDX-License-Identifier: Apache-2.0 */
/* What json_write.c and json_write_scalar.c share. Lives on the stack of one call. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/json/json_out.h"
#include "src/otlp/schema.h"

struct budget;

struct json_writer {
    struct json_out out;
    struct budget *budget;
    unsigned depth;
};

/* An object. Recursion is bounded by otlp_check, which lets messages nest WIRE_DEPTH_MAX deep. */
void json_write_message(struct json_writer *writer, const struct otlp_message *message,
                        struct slice content);
/* bits: as in struct wire_field. */
void json_write_number(struct json_writer *writer, const struct otlp_field *field, uint64_t bits);
void json_write_bytes(struct json_writer *writer, const struct otlp_field *field,
                      struct slice bytes);
