/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and logs responses as the Go collector's exporters do. On the exporter's lane. */
#include "exporters/shared/otlp_delivery.h"

#include "src/base/log.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/net/client/request_secrets.h"
#include "src/otlp/response.h"

#include <assert.h>
#include <stdio.h>

enum { MESSAGE_TEXT_MAX = 2048 };

void otlp_delivery_odd(struct otlp_delivery *delivery, const char *reason)
{
    if (delivery->odd_responses != NULL)
        counter_add(delivery->odd_responses, 1);
    if (delivery->has_logged_odd)
        return;
    delivery->has_logged_odd = true;
    log_warn(&delivery->exporter->logger,
             "The back-end accepted the data but sent no OTLP response; counted as sent",
             log_text(delivery->where_key, delivery->where), log_text("reason", reason));
}

bool otlp_delivery_take(const struct otlp_delivery *delivery, struct slice response,
                        const struct request_secrets *secrets, const struct batch *batch,
                        uint64_t *ret_rejected)
{
    const char *const keys[SIGNAL_KINDS] = {
        [TRACES] = "dropped_spans",
        [METRICS] = "dropped_data_points",
        [LOGS] = "dropped_log_records",
        [PROFILES] = delivery->profiles_key,
    };
    struct otlp_partial_success partial;
    char message[MESSAGE_TEXT_MAX];
    if (!otlp_response_partial_success(response, &partial))
        return false;
    if (partial.rejected != 0 || partial.message.size > 0) {
        snprintf(message, sizeof(message), "%.*s", (int)partial.message.size,
                 (const char *)partial.message.data);
        request_secrets_redact(secrets, message, sizeof(message));
        log_warn(&delivery->exporter->logger, "Partial success response",
                 log_text("message", message),
                 log_int(keys[delivery->exporter->signal], partial.rejected));
    }
    uint64_t rejected = partial.rejected > 0 ? (uint64_t)partial.rejected : 0;
    *ret_rejected = rejected < batch->items ? rejected : batch->items;
    return true;
}

void otlp_delivery_left_out(struct outcome *outcome, uint64_t items)
{
    assert(outcome->verdict == ACCEPTED);
    outcome->rejected_items += items;
    outcome->invalid_items += items;
}
