/* SPDX-License-Identifier: Apache-2.0 */
/* What a Pyroscope server's refusal means. Pure functions; any thread. */
#pragma once

#include "exporters/shared/http_outcome.h"
#include "src/core/receipt.h"

struct http_result;

/* result is anything but a 2xx. 408, 429, 5xx and transport errors may be tried again; the rest is
 * for good. secrets and text as for http_outcome_refused. */
struct outcome pyroscope_outcome_refused(const struct http_result *result,
                                         const struct request_secrets *secrets, const char *url,
                                         char text[HTTP_OUTCOME_TEXT_MAX]);
