/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of authenticators that have no key of their own. Sizes in bytes, times in nanoseconds.
 */
#pragma once

#include <stdint.h>

#include "src/base/clock.h"

/* Files with tokens, and with users and passwords. */
enum { SECRET_FILE_BYTES_MAX = 64 * 1024, HTPASSWD_BYTES_MAX = 1 << 20 };
/* How many verdicts a lane remembers, and how much of its time goes into new ones: one part in so
 * many, once the burst is spent. */
enum { AUTH_RIGHT_KEPT_MAX = 256, AUTH_WRONG_KEPT_MAX = 64, AUTH_CHECK_SHARE = 10 };
#define AUTH_CHECK_BURST_NS ((int64_t)NS_PER_S)
