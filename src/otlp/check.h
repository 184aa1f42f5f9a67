/* SPDX-License-Identifier: Apache-2.0 */
/* The wire walker, which checks every body first. It allocates nothing, bounds the depth, checks
 * every length and the wire type of every known field, and counts items. Checked bytes may be cut,
 * joined and edited. Pure function; any thread. Field numbers: opentelemetry-proto 1.x, proto/ in
 * this tree; profiles in layout 1.10. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct otlp_figures {
    uint64_t items;         /* spans, data points, log records, samples */
    uint64_t resources;     /* Resource… messages */
    uint64_t messages;      /* of all kinds inside the request; a plain attribute is one */
    bool has_former_scopes; /* there is something for former_scopes_move to do */
};

/* False when body is not a well-formed Export…ServiceRequest of that signal; *ret_reason is then an
 * error for the client ("Span: field 1 (trace_id) has 15 bytes, expected 16 or 0"), valid until
 * this thread's next call. */
bool otlp_check(enum signal_kind signal, struct slice body, struct otlp_figures *ret_figures,
                const char **ret_reason);

struct otlp_message;
/* The same for one message inside a request, `depth` deep (the request is 1), without figures or
 * reason. */
bool otlp_check_message(const struct otlp_message *message, struct slice body, unsigned depth);
