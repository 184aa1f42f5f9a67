/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request has fields that this version does not know: who would write it anew from what
 * it knows then leaves it as it is. Pure function; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

/* Of a request that has passed otlp_check; it is read to its end. */
bool otlp_has_unknown(enum signal_kind signal, struct slice request);
