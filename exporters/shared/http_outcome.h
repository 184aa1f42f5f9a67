/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a failed POST to an OTLP back-end: whether to retry, and the message. Pure
 * functions; any thread. */
#pragma once

#include "src/core/receipt.h"

struct http_result;
struct request_secrets;

/* The back-end's own message is cut to fit. */
enum { HTTP_OUTCOME_TEXT_MAX = 4096, HTTP_OUTCOME_WORDS_MAX = 256 };

/* result is not a 2xx. The message, which is written to text, shows url and what the back-end said,
 * without the secrets. */
struct outcome http_outcome_refused(const struct http_result *result,
                                    const struct request_secrets *secrets, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX]);
/* The printable ASCII of the response's body, whatever its media type, in one line, without
 * secrets.
 * "" when there is none, or when most of the body is something else. */
void http_outcome_words(const struct http_result *result, const struct request_secrets *secrets,
                        char words[HTTP_OUTCOME_WORDS_MAX + 1]);
