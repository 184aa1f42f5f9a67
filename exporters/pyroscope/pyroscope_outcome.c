/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for the answers of Pyroscope's Push API and /ingest. Pure functions; any thread. */
#include "exporters/pyroscope/pyroscope_outcome.h"

#include "src/net/client/http_client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned status;
    enum status_code code;
    const char *advice;
} rows[] = {
    {400, STATUS_INVALID_ARGUMENT, ""},
    {401, STATUS_UNAUTHENTICATED, "; set tenant, basic_auth or bearer_token"},
    {403, STATUS_PERMISSION_DENIED, ""},
    {404, STATUS_UNIMPLEMENTED, "; endpoint is the server's base URL, without a path of its API"},
    {413, STATUS_INVALID_ARGUMENT, "; lower limits::max_bytes"},
    {408, STATUS_UNAVAILABLE, ""},
    {429, STATUS_RESOURCE_EXHAUSTED, ""},
};

/* Too much at a time; /ingest says 422 for that in servers before 2.2. */
static bool is_limited(const struct http_result *result)
{
    static const char *const words[] = {"resource_exhausted", "rate limit"};
    assert(result->status != 0);
    if (result->status != 422)
        return result->status == 429;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (result->body.size > 0 &&
            memmem(result->body.data, result->body.size, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

static bool is_permanent(const struct http_result *result)
{
    assert(result->status < 200 || result->status >= 300);
    return !is_limited(result) && result->status != 408 && result->status < 500;
}

struct outcome pyroscope_outcome_refused(const struct http_result *result,
                                         const struct request_secrets *secrets, const char *url,
                                         char text[HTTP_OUTCOME_TEXT_MAX])
{
    char words[HTTP_OUTCOME_WORDS_MAX + 1];
    assert(result->status < 200 || result->status >= 300);
    if (result->status == 0)
        return http_outcome_refused(result, secrets, url, text);
    struct outcome outcome = {
        .verdict = REFUSED,
        .code = result->status >= 500 ? STATUS_UNAVAILABLE : STATUS_UNKNOWN,
        .is_permanent = is_permanent(result),
        .retry_after_ns = result->has_retry_after ? result->retry_after_ns : 0,
        .message = text,
    };
    const char *advice = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == result->status) {
            outcome.code = rows[i].code;
            advice = rows[i].advice;
        }
    if (is_limited(result))
        outcome.code = STATUS_RESOURCE_EXHAUSTED;
    http_outcome_words(result, secrets, words);
    snprintf(text, HTTP_OUTCOME_TEXT_MAX,
             "error exporting profiles, request to %s responded with HTTP Status Code %u%s%s%s",
             url, result->status, words[0] != '\0' ? ": " : "", words, advice);
    return outcome;
}
