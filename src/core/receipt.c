/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: joined outcomes. Runs on the lane of the receipt's owner. */
#include "src/core/receipt.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"

const struct outcome outcome_accepted = {.verdict = ACCEPTED, .code = STATUS_OK};

const char *status_code_name(enum status_code code)
{
    static const char *const names[] = {
        [STATUS_OK] = "OK",
        [STATUS_CANCELLED] = "Canceled",
        [STATUS_UNKNOWN] = "Unknown",
        [STATUS_INVALID_ARGUMENT] = "InvalidArgument",
        [STATUS_DEADLINE_EXCEEDED] = "DeadlineExceeded",
        [STATUS_NOT_FOUND] = "NotFound",
        [STATUS_ALREADY_EXISTS] = "AlreadyExists",
        [STATUS_PERMISSION_DENIED] = "PermissionDenied",
        [STATUS_RESOURCE_EXHAUSTED] = "ResourceExhausted",
        [STATUS_FAILED_PRECONDITION] = "FailedPrecondition",
        [STATUS_ABORTED] = "Aborted",
        [STATUS_OUT_OF_RANGE] = "OutOfRange",
        [STATUS_UNIMPLEMENTED] = "Unimplemented",
        [STATUS_INTERNAL] = "Internal",
        [STATUS_UNAVAILABLE] = "Unavailable",
        [STATUS_DATA_LOSS] = "DataLoss",
        [STATUS_UNAUTHENTICATED] = "Unauthenticated",
    };
    assert((size_t)code < sizeof(names) / sizeof(names[0]));
    return names[code];
}

struct outcome outcome_busy(const char *message)
{
    return (struct outcome){
        .verdict = REFUSED,
        .code = STATUS_UNAVAILABLE,
        .retry_after_ns = RETRY_AFTER_BUSY_NS,
        .message = message,
    };
}

struct outcome outcome_no_memory(const char *message)
{
    struct outcome outcome = outcome_busy(message);
    outcome.reason = LOSS_MEMORY;
    return outcome;
}

struct outcome outcome_failed(const char *message)
{
    struct outcome outcome = outcome_busy(message);
    outcome.reason = LOSS_INVALID;
    outcome.is_lasting = true;
    return outcome;
}

struct outcome outcome_refused(enum status_code code, const char *message)
{
    assert(code != STATUS_OK);
    return (struct outcome){
        .verdict = REFUSED,
        .code = code,
        .reason = LOSS_INVALID,
        .is_permanent = true,
        .message = message,
    };
}

struct outcome outcome_too_large(const char *message)
{
    struct outcome outcome = outcome_refused(STATUS_RESOURCE_EXHAUSTED, message);
    outcome.reason = LOSS_TOO_LARGE;
    return outcome;
}

bool outcome_is_too_large(const struct outcome *outcome)
{
    return outcome->verdict != ACCEPTED && outcome->is_permanent &&
           outcome->code == STATUS_RESOURCE_EXHAUSTED && outcome->reason == LOSS_TOO_LARGE;
}

void receipt_init(struct receipt *receipt, receipt_fn fn, void *arg)
{
    *receipt = (struct receipt){.fn = fn, .arg = arg, .pending = 1, .worst = outcome_accepted};
}

void receipt_expect(struct receipt *receipt, unsigned more)
{
    if (receipt == NULL)
        return;
    assert(receipt->pending > 0);
    assert(more <= UINT_MAX - receipt->pending);
    receipt->pending += more;
}

static void free_strings(struct outcome *outcome)
{
    assert(outcome->details.data != NULL || outcome->details.size == 0);
    mem_free((void *)(uintptr_t)outcome->message);
    mem_free((void *)(uintptr_t)outcome->details.data);
    outcome->message = NULL;
    outcome->details = (struct slice){.size = 0};
}

void receipt_resolve(struct receipt *receipt, const struct outcome *outcome)
{
    if (receipt == NULL)
        return;
    assert(receipt->pending > 0);
    receipt->worst.owed |= outcome->owed;
    receipt->worst.is_kept |= outcome->is_kept;
    if (outcome->verdict != ACCEPTED || outcome->rejected_items > 0) {
        struct outcome *worst = &receipt->worst;
        struct outcome before = *worst;
        bool is_worse = outcome->verdict != before.verdict
                            ? outcome->verdict > before.verdict
                            : (outcome->is_permanent && !before.is_permanent) ||
                                  (before.is_lasting && outcome_may_change(outcome));
        if (is_worse) {
            *worst = *outcome;
            worst->owed = before.owed;
            worst->is_kept = before.is_kept;
            if (outcome->message != NULL)
                worst->message = mem_copy_text(outcome->message);
            worst->details = (struct slice){.size = 0};
            if (outcome->details.size > 0) {
                uint8_t *details = mem_alloc(outcome->details.size);
                memcpy(details, outcome->details.data, outcome->details.size);
                worst->details = slice_of(details, outcome->details.size);
            }
            free_strings(&before);
        }
        worst->rejected_items = before.rejected_items + outcome->rejected_items;
        worst->invalid_items = before.invalid_items + outcome->invalid_items;
        worst->too_large_items = before.too_large_items + outcome->too_large_items;
        worst->delivered_items = before.delivered_items + outcome->delivered_items;
    }
    if (--receipt->pending > 0)
        return;
    struct outcome joined = receipt->worst;
    receipt->worst = outcome_accepted;
    receipt->fn(receipt, &joined, receipt->arg);
    free_strings(&joined);
}
