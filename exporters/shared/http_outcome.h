/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a failed POST to an OTLP back-end: whether to retry, and the message. Pure
 * functions; any thread. */
#pragma once

#include "src/core/receipt.h"

struct http_result;
struct request_secrets;

/* The back-end's own message is cut to fit. */
enum { HTTP_OUTCOME_TEXT_MAX = 4096 };

/* result is not a 2xx. The message, which is written to text, shows url and what the back-end said,
 * without the secrets. */
struct outcome http_outcome_refused(const struct http_result *result,
                                    const struct request_secrets *secrets, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX]);
