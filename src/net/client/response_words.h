/* SPDX-License-Identifier: Apache-2.0 */
/* What a back-end says about a request, as one line of a log. Pure function; any thread. */
#pragma once

struct http_result;
struct request_secrets;

enum { RESPONSE_WORDS_MAX = 256 };

/* The printable ASCII of the response's body, whatever its media type, in one line, without
 * secrets.
 * "" when there is none, or when most of the body is something else. */
void response_words(const struct http_result *result, const struct request_secrets *secrets,
                    char words[RESPONSE_WORDS_MAX + 1]);
