/* SPDX-License-Identifier: Apache-2.0 */
/* The W3C trace state, read as go.opentelemetry.io/otel/trace does: a list with one wrong member is
 * wrong as a whole. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

enum { TRACE_STATE_MEMBERS_MAX = 32 };

struct trace_state {
    unsigned count;
    struct trace_state_member {
        struct slice key;
        struct slice value;
    } members[TRACE_STATE_MEMBERS_MAX];
};

/* False: the text is not a trace state. Borrows it. */
bool trace_state_read(struct slice text, struct trace_state *ret_state);
/* Empty: it has no such key. */
struct slice trace_state_value(const struct trace_state *state, struct slice key);
