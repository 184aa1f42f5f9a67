/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed POST to an OTLP back-end means to the sender: to be repeated or not, and in which
 * words. Pure functions; any thread. */
#pragma once

#include "src/core/receipt.h"

struct http_result;
struct request_secrets;

/* The back-end's own words are cut to fit. */
enum { HTTP_OUTCOME_TEXT_MAX = 4096, HTTP_OUTCOME_WORDS_MAX = 256 };

/* result is anything but a 2xx; url is shown as it is; secrets are taken out of what the back-end
 * says; text is what the outcome's message points to. */
struct outcome http_outcome_refused(const struct http_result *result,
                                    const struct request_secrets *secrets, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX]);
/* What the answer's body says, whatever its media type: its printable ASCII, in one line, without
 * secrets. "" when there is none, or most of it is something else. */
void http_outcome_words(const struct http_result *result, const struct request_secrets *secrets,
                        char words[HTTP_OUTCOME_WORDS_MAX + 1]);
