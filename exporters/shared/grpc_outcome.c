/* SPDX-License-Identifier: Apache-2.0 */
/* The Go collector's rules for refusals of OTLP/gRPC back-ends. Pure functions; any thread. */
#include "exporters/shared/grpc_outcome.h"

#include "src/net/client/grpc_client.h"
#include "src/otlp/response.h"

#include <assert.h>
#include <stdio.h>

enum { CODE_TEXT_MAX = 32 };

/* grpc-go's names, which stand in logs. */
static void print_code(unsigned code, char text[CODE_TEXT_MAX])
{
    assert(text != NULL);
    if (code <= STATUS_UNAUTHENTICATED)
        snprintf(text, CODE_TEXT_MAX, "%s", status_code_name((enum status_code)code));
    else
        snprintf(text, CODE_TEXT_MAX, "Code(%u)", code);
}

static bool is_retryable(enum status_code code, bool has_retry_info)
{
    switch (code) {
    case STATUS_CANCELLED:
    case STATUS_DEADLINE_EXCEEDED:
    case STATUS_ABORTED:
    case STATUS_OUT_OF_RANGE:
    case STATUS_UNAVAILABLE:
    case STATUS_DATA_LOSS:
        return true;
    case STATUS_RESOURCE_EXHAUSTED:
        return has_retry_info;
    case STATUS_OK:
    case STATUS_UNKNOWN:
    case STATUS_INVALID_ARGUMENT:
    case STATUS_NOT_FOUND:
    case STATUS_ALREADY_EXISTS:
    case STATUS_PERMISSION_DENIED:
    case STATUS_FAILED_PRECONDITION:
    case STATUS_UNIMPLEMENTED:
    case STATUS_INTERNAL:
    case STATUS_UNAUTHENTICATED:
    default:
        return false;
    }
}

struct outcome grpc_outcome_refused(const struct grpc_result *result,
                                    struct grpc_outcome_room *room)
{
    char code[CODE_TEXT_MAX];
    uint64_t delay_ns = 0;
    assert(result->code != STATUS_OK);
    assert(result->message != NULL);
    print_code(result->wire_code, code);
    snprintf(room->text, sizeof(room->text), "rpc error: code = %s desc = %s", code,
             result->message);
    bool has_retry_info = otlp_response_retry_delay(result->details, &delay_ns);
    bool is_permanent = !is_retryable(result->code, has_retry_info);
    return (struct outcome){
        .verdict = REFUSED,
        .code = result->code,
        .is_permanent = is_permanent,
        .retry_after_ns = is_permanent ? 0 : delay_ns,
        .is_hint_for_all = true,
        .message = room->text,
        .details = slice_of(room->details, otlp_status_details(result->details, room->details,
                                                               sizeof(room->details))),
    };
}
