/* SPDX-License-Identifier: Apache-2.0 */
/* A receipt travels with each request: the receiver answers its client when the receipt resolves,
 * never before. Whoever takes responsibility resolves it: the journal, the batch processor, the
 * sending queue or the end of the export. Embedded by the party that waits; it may not be freed
 * before its fn was called. Lives on one lane. */
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
    ACCEPTED, /* somebody took responsibility */
    REFUSED,  /* nobody took it and nothing was counted: whoever offered it may offer it again */
    LOST,     /* it was taken, failed, and was counted where it failed */
};

/* What a failed export failed by, for those who count: the status that the back-end or we gave it,
 * or what has none. */
enum failure_cause { FAILURE_STATUS, FAILURE_OTHER, FAILURE_DEADLINE, FAILURE_SHUTDOWN };

struct outcome {
    enum verdict verdict;
    enum status_code code; /* what the client is told; STATUS_OK when accepted */
    enum failure_cause cause;
    enum loss_reason reason; /* for the ledger, when not accepted */
    bool is_permanent;       /* offering it again cannot help */
    uint64_t retry_after_ns; /* hint for the client; 0: none */
    bool is_hint_for_all;    /* it outlives our own retries: gRPC's RetryInfo is handed through */
    const char *message;     /* borrowed for the call; NULL when accepted */
    struct slice details;    /* borrowed too: those of a google.rpc.Status (its fields 3), as a gRPC
                                back-end gave them for its client; empty: none */
    uint64_t rejected_items; /* with ACCEPTED: items that did not arrive, which partial_success
                                reports; at most those of the batch. The back-end refused them, but
                                for the next two, which are among them */
    uint64_t invalid_items;  /* the exporter cannot send them as they are; of one exporter alone */
    uint64_t too_large_items; /* no request has room for one of them; the same */
    uint64_t delivered_items; /* with REFUSED, of an exporter: items that arrived nevertheless, at
                                 this attempt or an earlier one */
};

struct receipt;
typedef void (*receipt_fn)(struct receipt *receipt, const struct outcome *outcome, void *arg);

struct receipt {
    receipt_fn fn;
    void *arg;
    unsigned pending; /* answers still expected */
    struct outcome
        worst; /* LOST before REFUSED before ACCEPTED, permanent before not; it owns its texts */
};

/* "InvalidArgument": grpc-go's name of it. */
const char *status_code_name(enum status_code code);

extern const struct outcome outcome_accepted;
/* A retryable refusal (UNAVAILABLE with a hint) that nobody has counted yet. */
struct outcome outcome_busy(const char *message);
/* A permanent refusal (INTERNAL unless code says otherwise) that nobody has counted yet. */
struct outcome outcome_refused(enum status_code code, const char *message);
/* The same for what takes more memory than the whole budget: RESOURCE_EXHAUSTED, HTTP's 413. */
struct outcome outcome_too_large(const char *message);
/* Whether it is one. */
bool outcome_is_too_large(const struct outcome *outcome);

/* Expects one answer. fn may free the receipt. */
void receipt_init(struct receipt *receipt, receipt_fn fn, void *arg);
/* Expects more answers: before handing the receipt to several parties. */
void receipt_expect(struct receipt *receipt, unsigned more);
/* One party's answer; the last one calls fn with the worst of them, and the sums of its items. NULL
 * receipt: nobody waits. */
void receipt_resolve(struct receipt *receipt, const struct outcome *outcome);
