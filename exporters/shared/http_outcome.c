/* SPDX-License-Identifier: Apache-2.0 */
/* The Go collector's rules for errors of OTLP/HTTP back-ends. Pure functions; any thread. */
#include "exporters/shared/http_outcome.h"

#include "src/base/buffer.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/client/response_words.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/response.h"
#include "src/otlp/schema.h"

#include <assert.h>
#include <stdio.h>

struct outcome http_outcome_refused(const struct http_result *result,
                                    const struct request_secrets *secrets, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX])
{
    enum { MESSAGE_MAX = 3072, DETAILS_MAX = 512 };
    /* As the Go collector maps them. */
    static const struct {
        unsigned status;
        enum status_code code;
    } codes[] = {
        {400, STATUS_INVALID_ARGUMENT},   {401, STATUS_UNAUTHENTICATED},
        {403, STATUS_PERMISSION_DENIED},  {404, STATUS_UNIMPLEMENTED},
        {429, STATUS_RESOURCE_EXHAUSTED}, {502, STATUS_UNAVAILABLE},
        {503, STATUS_UNAVAILABLE},        {504, STATUS_UNAVAILABLE},
    };
    unsigned status = result->status;
    assert(status < 200 || status >= 300);
    if (status == 0) {
        snprintf(text, HTTP_OUTCOME_TEXT_MAX, "failed to make an HTTP request: Post \"%s\": %s",
                 url, result->error);
        return (struct outcome){
            .verdict = REFUSED,
            .code = result->is_permanent ? STATUS_INTERNAL : STATUS_UNAVAILABLE,
            .cause = result->is_late ? FAILURE_DEADLINE : FAILURE_OTHER,
            .is_permanent = result->is_permanent,
            .message = text,
        };
    }
    enum status_code code = STATUS_UNKNOWN;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status)
            code = codes[i].code;
    bool is_retryable = status == 429 || status == 502 || status == 503 || status == 504;

    /* "error exporting items, request to URL responded with HTTP Status Code N", and what the
     * back-end said: a google.rpc.Status as the Go collector prints it, or its own words. */
    char words[RESPONSE_WORDS_MAX + 1];
    char reason[JSON_REASON_BYTES_MAX];
    struct otlp_status rpc;
    struct buffer *encoded = NULL;
    int size = snprintf(text, HTTP_OUTCOME_TEXT_MAX,
                        "error exporting items, request to %s responded with HTTP Status Code %u",
                        url, status);
    size_t room = size < HTTP_OUTCOME_TEXT_MAX ? HTTP_OUTCOME_TEXT_MAX - (size_t)size : 0;
    response_words(result, secrets, words);
    bool has_status = false;
    if (status >= 400 && !media_type_is(result->content_type, "application/json"))
        has_status = otlp_response_status(result->body, &rpc);
    else if (status >= 400)
        has_status =
            json_read(&otlp_rpc_status, result->body, NULL, &encoded, reason) == JSON_READ &&
            otlp_response_status(buffer_slice(encoded), &rpc);
    if (room > 0 && has_status && (rpc.message.size > 0 || words[0] == '\0')) {
        char details[DETAILS_MAX];
        char message[MESSAGE_MAX];
        snprintf(message, sizeof(message), "%.*s", (int)rpc.message.size,
                 (const char *)rpc.message.data);
        request_secrets_redact(secrets, message, sizeof(message));
        otlp_status_details_text(&rpc, details, sizeof(details));
        request_secrets_redact(secrets, details, sizeof(details));
        snprintf(text + size, room, ", Message=%s, Details=%s", message, details);
    } else if (room > 0 && words[0] != '\0') {
        snprintf(text + size, room, ": %s", words);
    }
    buffer_unref(encoded);
    return (struct outcome){
        .verdict = REFUSED,
        .code = code,
        .is_permanent = !is_retryable,
        .retry_after_ns = result->has_retry_after ? result->retry_after_ns : 0,
        .message = text,
    };
}
