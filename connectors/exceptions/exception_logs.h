/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a log record for each exception, with all attributes of its span. Since a span's
 * attributes are written once for each of its exceptions, the result may be larger than the
 * request: it ends at EXCEPTION_LOGS_RATIO times its bytes. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/exceptions/exception_reader.h"
#include "src/base/arena.h"
#include "src/otlp/nested_output.h"

struct batch;
struct budget;

enum {
    EXCEPTION_LOGS_RATIO = 16,
    EXCEPTION_LOGS_FREE_BYTES = 1 << 20,  /* beyond the ratio */
    EXCEPTION_LOGS_PIECE_BYTES = 1 << 20, /* a request of more is ended, and another begun */
};

struct exception_logs {
    const struct exception_keys *keys;
    struct arena texts; /* of stack traces that are no strings */
    struct nested_output output;
    struct nested_message resource; /* ResourceLogs, ScopeLogs */
    struct nested_message scope;
    struct slice scope_content; /* of the ScopeSpans message at hand */
    bool is_open;               /* the two messages */
    uint64_t records;           /* in output */
    uint64_t bytes_left;        /* that may be written, or read again */
    uint64_t bytes_read;        /* again, for the record at hand */
    const struct batch *model;
    size_t batches_count;
    struct batch **batches; /* allocated; the results, with references */
    uint64_t dropped;       /* exceptions beyond the limit */
    bool has_failed;        /* there was no memory; the results are worth nothing */
    bool never_fits;        /* and will never be: they take more than the whole budget */
};

/* Reads a batch of traces, and makes batches of logs like it. The caller owns them and ends with
 * exception_logs_fini. */
void exception_logs_make(struct exception_logs *logs, const struct exception_keys *keys,
                         const struct batch *traces, struct budget *budget);
/* Also releases the batches. */
void exception_logs_fini(struct exception_logs *logs);
