/* SPDX-License-Identifier: Apache-2.0 */
/* The Go collector's rules for refusals of OTLP/HTTP back-ends. Pure functions; any thread. */
#include "exporters/shared/http_outcome.h"

#include "src/base/buffer.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/response.h"
#include "src/otlp/schema.h"

#include <assert.h>
#include <stdio.h>

/* gRPC's code for what an HTTP back-end says, as the Go collector maps it. */
static enum status_code code_of(unsigned status)
{
    assert(status < 200 || status >= 300);
    static const struct {
        unsigned status;
        enum status_code code;
    } codes[] = {
        {400, STATUS_INVALID_ARGUMENT},   {401, STATUS_UNAUTHENTICATED},
        {403, STATUS_PERMISSION_DENIED},  {404, STATUS_UNIMPLEMENTED},
        {429, STATUS_RESOURCE_EXHAUSTED}, {502, STATUS_UNAVAILABLE},
        {503, STATUS_UNAVAILABLE},        {504, STATUS_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return STATUS_UNKNOWN;
}

static bool is_retryable(unsigned status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* In the form that the answer has; *ret_encoded, which may be set in any case, is to be
 * unreferenced when the status is no longer used. */
static bool read_status(const struct http_result *result, struct buffer **ret_encoded,
                        struct otlp_status *ret_status)
{
    char reason[JSON_REASON_BYTES_MAX];
    assert(*ret_encoded == NULL);
    if (!media_type_is(result->content_type, "application/json"))
        return otlp_response_status(result->body, ret_status);
    return json_read(&otlp_rpc_status, result->body, NULL, ret_encoded, reason) == JSON_READ &&
           otlp_response_status(buffer_slice(*ret_encoded), ret_status);
}

void http_outcome_words(const struct http_result *result, const struct request_secrets *secrets,
                        char words[HTTP_OUTCOME_WORDS_MAX + 1])
{
    /* More than is shown, so that a secret at the end of that is seen whole. */
    char text[4 * HTTP_OUTCOME_WORDS_MAX];
    size_t size = 0;
    size_t others = 0;
    assert(result->status != 0);
    for (size_t i = 0; i < result->body.size && size < sizeof(text) - 1; i++) {
        uint8_t byte = result->body.data[i];
        bool is_blank = byte == ' ' || (byte >= '\t' && byte <= '\r');
        others += !is_blank && (byte < ' ' || byte >= 0x7f);
        if (!is_blank)
            text[size++] = byte > ' ' && byte < 0x7f ? (char)byte : '?';
        else if (size > 0 && text[size - 1] != ' ')
            text[size++] = ' ';
    }
    size -= size > 0 && text[size - 1] == ' ';
    text[others > size / 2 ? 0 : size] = '\0';
    request_secrets_redact(secrets, text, sizeof(text));
    snprintf(words, HTTP_OUTCOME_WORDS_MAX + 1, "%.*s", HTTP_OUTCOME_WORDS_MAX, text);
}

/* The words of a google.rpc.Status, as the Go collector has them: ", Message=…, Details=[…]". */
static void print_status(char *text, size_t room, const struct otlp_status *status,
                         const struct request_secrets *secrets)
{
    enum { MESSAGE_MAX = 3072 };
    char details[512];
    char message[MESSAGE_MAX];
    snprintf(message, sizeof(message), "%.*s", (int)status->message.size,
             (const char *)status->message.data);
    request_secrets_redact(secrets, message, sizeof(message));
    otlp_status_details_text(status, details, sizeof(details));
    request_secrets_redact(secrets, details, sizeof(details));
    snprintf(text, room, ", Message=%s, Details=%s", message, details);
}

/* "error exporting items, request to URL responded with HTTP Status Code N", and what it said. */
static void describe_refusal(const struct http_result *result,
                             const struct request_secrets *secrets, const char *url,
                             char text[HTTP_OUTCOME_TEXT_MAX])
{
    assert(result->status != 0);
    char words[HTTP_OUTCOME_WORDS_MAX + 1];
    struct otlp_status status;
    struct buffer *encoded = NULL;
    int size = snprintf(text, HTTP_OUTCOME_TEXT_MAX,
                        "error exporting items, request to %s responded with HTTP Status Code %u",
                        url, result->status);
    size_t room = size < HTTP_OUTCOME_TEXT_MAX ? HTTP_OUTCOME_TEXT_MAX - (size_t)size : 0;
    http_outcome_words(result, secrets, words);
    bool has_status = result->status >= 400 && read_status(result, &encoded, &status);
    if (room > 0 && has_status && (status.message.size > 0 || words[0] == '\0'))
        print_status(text + size, room, &status, secrets);
    else if (room > 0 && words[0] != '\0')
        snprintf(text + size, room, ": %s", words);
    buffer_unref(encoded);
}

struct outcome http_outcome_refused(const struct http_result *result,
                                    const struct request_secrets *secrets, const char *url,
                                    char text[HTTP_OUTCOME_TEXT_MAX])
{
    assert(url != NULL);
    assert(result->status < 200 || result->status >= 300);
    if (result->status != 0) {
        describe_refusal(result, secrets, url, text);
        return (struct outcome){
            .verdict = REFUSED,
            .code = code_of(result->status),
            .is_permanent = !is_retryable(result->status),
            .retry_after_ns = result->has_retry_after ? result->retry_after_ns : 0,
            .message = text,
        };
    }
    assert(result->error != NULL);
    snprintf(text, HTTP_OUTCOME_TEXT_MAX, "failed to make an HTTP request: Post \"%s\": %s", url,
             result->error);
    return (struct outcome){
        .verdict = REFUSED,
        .code = result->is_permanent ? STATUS_INTERNAL : STATUS_UNAVAILABLE,
        .cause = result->is_late ? FAILURE_DEADLINE : FAILURE_OTHER,
        .is_permanent = result->is_permanent,
        .message = text,
    };
}
