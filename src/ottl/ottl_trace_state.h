/* SPDX-License-Identifier: Apache-2.0 */
/* W3C tracestate ("key=value,key=value"), as Go's trace.TraceState reads and writes it. Any thread.
 */
#pragma once

#include "src/base/slice.h"

/* The value of a key, empty if it is missing. False: the text is no tracestate. */
bool ottl_trace_state_get(struct slice text, struct slice key, struct slice *ret);
/* Writes the text with a member set and moved to the front into room, which has bytes for the text,
 * key, value and two more. False: text, key or value is not as they must be, and nothing is set. */
bool ottl_trace_state_put(struct slice text, struct slice key, struct slice value, uint8_t *room,
                          struct slice *ret);
