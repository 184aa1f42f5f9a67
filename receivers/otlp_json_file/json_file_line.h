/* SPDX-License-Identifier: Apache-2.0 */
/* A line of OTLP/JSON becomes requests: one for each signal that it has and that is wanted, with
 * the attributes of its file on every record. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/otlp/json/json_read.h"

struct batch;
struct budget;
struct buffer;

enum { JSON_FILE_ATTRIBUTES_MAX = 8 };

/* An attribute with a string. */
struct json_file_attribute {
    struct slice key;
    struct slice value;
};

struct json_file_attributes {
    size_t count;
    struct json_file_attribute list[JSON_FILE_ATTRIBUTES_MAX];
};

enum json_line_result {
    JSON_LINE_READ,
    JSON_LINE_WRONG,     /* the reason says why; nothing was given */
    JSON_LINE_NO_MEMORY, /* not now; nothing was given */
};

/* Calls give(batch, arg), which takes the reference, for each request that has items (profiles:
 * profiles). signals: a mask of those that are wanted. replaces_bytes: bytes that are no UTF-8
 * become U+FFFD. */
enum json_line_result json_line_read(struct slice text, unsigned signals, bool replaces_bytes,
                                     const struct json_file_attributes *attributes,
                                     struct budget *budget,
                                     void (*give)(struct batch *batch, void *arg), void *arg,
                                     char reason[JSON_REASON_BYTES_MAX]);

/* The request, which has passed otlp_check, with the attributes on every span or log record, or in
 * the metadata of every metric; one with the same key gets the value. NULL: no memory now, or, with
 * *ret_never_fits, more than the whole budget. */
struct buffer *json_line_add_attributes(enum signal_kind signal, struct slice request,
                                        const struct json_file_attributes *attributes,
                                        struct budget *budget, bool *ret_never_fits);
