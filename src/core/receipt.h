/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt travels with each request: the receiver responds to its client when the receipt
 * resolves, never before. The stage that takes responsibility resolves it: the batch processor, the
 * sending queue or the end of the export. Embedded by its owner; it may not be freed before its fn
 * was called. Lives on one lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/ledger.h"

/* google.rpc.Code; the same numbers as gRPC status codes. */
enum status_code {
    STATUS_OK = 0,
    STATUS_CANCELLED = 1,
    STATUS_UNKNOWN = 2,
    STATUS_INVALID_ARGUMENT = 3,
    STATUS_DEADLINE_EXCEEDED = 4,
    STATUS_NOT_FOUND = 5,
    STATUS_ALREADY_EXISTS = 6,
    STATUS_PERMISSION_DENIED = 7,
    STATUS_RESOURCE_EXHAUSTED = 8,
    STATUS_FAILED_PRECONDITION = 9,
    STATUS_ABORTED = 10,
    STATUS_OUT_OF_RANGE = 11,
    STATUS_UNIMPLEMENTED = 12,
    STATUS_INTERNAL = 13,
    STATUS_UNAVAILABLE = 14,
    STATUS_DATA_LOSS = 15,
    STATUS_UNAUTHENTICATED = 16,
};

enum verdict {
    ACCEPTED, /* a stage took responsibility */
    REFUSED,  /* not taken and not counted: the caller may offer it again */
    LOST,     /* it was taken, failed, and was counted where it failed */
};

/* Why an export failed, for the metrics: a status, or a cause without one. */
enum failure_cause { FAILURE_STATUS, FAILURE_OTHER, FAILURE_DEADLINE, FAILURE_SHUTDOWN };

struct outcome {
    enum verdict verdict;
    enum status_code code; /* for the client; STATUS_OK when accepted */
    enum failure_cause cause;
    enum loss_reason reason;  /* for the ledger, when not accepted */
    bool is_permanent;        /* a retry cannot succeed */
    bool is_lasting;          /* REFUSED, and so will the same batch be again: the client is told to
                                 retry, as by the Go collector, but no stage offers it again */
    uint64_t retry_after_ns;  /* hint for the client; 0: none */
    bool is_hint_for_all;     /* kept after our own retries: gRPC's RetryInfo is passed on */
    const char *message;      /* borrowed for the call; NULL when accepted */
    struct slice details;     /* borrowed too: the details (field 3) of a gRPC back-end's
                                 google.rpc.Status, for the client; empty: none */
    uint64_t rejected_items;  /* with ACCEPTED: items that did not arrive, which partial_success
                                 reports; at most those of the batch. The back-end rejected them,
                                 except the next two, which are included */
    uint64_t invalid_items;   /* the exporter cannot encode them; of one exporter only */
    uint64_t too_large_items; /* too large for any request; of one exporter only */
    uint32_t owed; /* of a pipeline with a journal: exporters, by bit, that have not finished
                      the batch and get it again from the journal; with any verdict */
    bool is_kept;  /* the journal keeps the batch, or a part of it, for the exporter; with any
                      verdict */
    uint64_t delivered_items; /* with REFUSED, of an exporter: items that arrived nevertheless, at
                                 this attempt or an earlier one */
};

struct receipt;
typedef void (*receipt_fn)(struct receipt *receipt, const struct outcome *outcome, void *arg);

struct receipt {
    receipt_fn fn;
    void *arg;
    unsigned pending; /* outcomes still expected */
    /* LOST before REFUSED before ACCEPTED, permanent before not, lasting last. Owns its strings. */
    struct outcome worst;
};

/* "InvalidArgument": grpc-go's name of it. */
const char *status_code_name(enum status_code code);

extern const struct outcome outcome_accepted;
/* A retryable refusal (UNAVAILABLE with a hint), not counted yet. */
struct outcome outcome_busy(const char *message);
/* The same for want of memory, with that reason. */
struct outcome outcome_no_memory(const char *message);
/* A lasting refusal: what the configuration makes of the items fails. Not counted yet. */
struct outcome outcome_failed(const char *message);
/* A permanent refusal, not counted yet. */
struct outcome outcome_refused(enum status_code code, const char *message);
/* The same for a request that needs more memory than the whole budget: RESOURCE_EXHAUSTED, 413. */
struct outcome outcome_too_large(const char *message);
/* Whether it is one. */
bool outcome_is_too_large(const struct outcome *outcome);

/* Whether who keeps the batch may offer it again: it was refused, and that can change. */
static inline bool outcome_may_change(const struct outcome *outcome)
{
    return outcome->verdict == REFUSED && !outcome->is_permanent && !outcome->is_lasting;
}

/* Expects one outcome. fn may free the receipt. */
void receipt_init(struct receipt *receipt, receipt_fn fn, void *arg);
/* Expects more outcomes: call before passing the receipt to several stages. */
void receipt_expect(struct receipt *receipt, unsigned more);
/* Adds an outcome; the last one calls fn with the worst of them and the sums of their items. NULL
 * is a no-op. */
void receipt_resolve(struct receipt *receipt, const struct outcome *outcome);
