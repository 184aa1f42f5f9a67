/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON to protobuf, in one pass and without a tree; otlp_check must then check the output. It
 * accepts what the Go collector accepts: names in lowerCamelCase or snake_case, ids in hexadecimal,
 * numbers also as strings, enumerations also by name, null for absent values; unknown fields are
 * skipped. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

struct budget;
struct buffer;
struct otlp_message;

enum json_result {
    JSON_READ,
    JSON_MALFORMED, /* the reason has the byte, what was found and what was expected */
    JSON_NO_BUDGET, /* no memory now; a retry may succeed */
    JSON_TOO_LARGE, /* more than the whole budget, or JSON_READ_BYTES_MAX */
};

enum { JSON_REASON_BYTES_MAX = 512 };

/* *ret_encoded is the caller's, set on JSON_READ only; it has at most JSON_READ_RATIO_MAX times as
 * many bytes as text. budget may be NULL. */
enum json_result json_read(const struct otlp_message *message, struct slice text,
                           struct budget *budget, struct buffer **ret_encoded,
                           char reason[JSON_REASON_BYTES_MAX]);
