/* SPDX-License-Identifier: Apache-2.0 */
/* Before OTLP 0.15 scopes stood in field 1000 of a Resource… message, today's
 * deprecated_scope_spans, deprecated_scope_metrics and deprecated_scope_logs. Receivers move them
 * to field 2, so that no stage behind needs to know of them. Pure function; any thread. */
#pragma once

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct budget;
struct buffer;

enum { FORMER_SCOPES = 1000 };

/* A copy of the request, which has passed otlp_check, is no larger, and has no field 1000: as in
 * the Go collector what is there becomes field 2, or is left out where the message has a field 2.
 * All the rest stays byte for byte but for lengths around it. NULL: the budget, which may be NULL,
 * has no room for the request's size. */
struct buffer *former_scopes_move(enum signal_kind signal, struct slice request,
                                  struct budget *budget) __attribute__((warn_unused_result));
