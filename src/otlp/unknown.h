/* SPDX-License-Identifier: Apache-2.0 */
/* Finds requests with fields that this version does not know: rewriting them would lose the fields.
 * Pure function; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

/* The request has passed otlp_check. */
bool otlp_has_unknown(enum signal_kind signal, struct slice request);
