/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf to OTLP/JSON, as the Go collector writes it: names in lowerCamelCase, ids in lower-case
 * hexadecimal, enumerations as numbers, numbers of 64 bits as strings, doubles in the fewest digits
 * that read back the same. Empty values are left out, except messages that the collector always
 * writes. Unknown fields have no form in JSON and are left out. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

struct batch;
struct budget;
struct buffer;
struct otlp_message;

/* encoded has passed otlp_check. NULL: no memory now. The output is little longer than
 * JSON_WRITE_RATIO_MAX times the input at most. budget may be NULL. */
struct buffer *json_write(const struct otlp_message *message, struct slice encoded,
                          struct budget *budget);
/* The whole request, however many parts it has. NULL as above. */
struct buffer *json_write_batch(const struct batch *batch, struct budget *budget);
