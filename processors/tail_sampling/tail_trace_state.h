/* SPDX-License-Identifier: Apache-2.0 */
/* The W3C trace state, read as go.opentelemetry.io/otel/trace does: a list with one wrong member is
 * wrong as a whole. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

enum { W3C_TRACE_STATE_MEMBERS_MAX = 32 };

struct w3c_trace_state {
    unsigned count;
    struct w3c_trace_state_member {
        struct slice key;
        struct slice value;
    } members[W3C_TRACE_STATE_MEMBERS_MAX];
};

/* False: the text is not a trace state. Borrows it. */
bool w3c_trace_state_read(struct slice text, struct w3c_trace_state *ret_state);
/* Empty: it has no such key. */
struct slice w3c_trace_state_value(const struct w3c_trace_state *state, struct slice key);
