/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed POST to an OTLP back-end means to the sender: to be repeated or not, and in which
 * words. Pure functions; any thread. */
#pragma once

#include "src/receipt.h"

struct http_result;

/* The back-end's own words are cut to fit. */
enum { HTTP_OUTCOME_TEXT_MAX = 4096 };

/* result is anything but a 2xx; url is shown as it is; text is what the outcome's message points
 * to.
 */
struct outcome http_outcome_refused(const struct http_result *result, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX]);
