/* SPDX-License-Identifier: Apache-2.0 */
/* Span ids that prove what arrived. The n-th span of a run (n from 1) has the id mix(n), a
 * bijection, so each id tells its span's number, and whether spans were lost, doubled or invented.
 * Where ids repeat on purpose (compressed bodies are made once and sent often),
 * the order-free sum of a second mix proves the multiset. Samples of profiles have no ids: there it
 * is the sum over their first values. */
#pragma once

#include "tests/bench/support.h"

enum body_kind {
    BODY_TRACES,   /* ExportTraceServiceRequest; as JSON when it begins like that */
    BODY_PROFILES, /* ExportProfilesServiceRequest */
    BODY_PUSH,     /* push.v1.PushRequest with profiles in pprof */
};

struct span_ids {
    uint64_t spans;  /* or samples */
    uint64_t sum;    /* of span_id_weight over all spans, modulo 2^64 */
    uint64_t unique; /* kept only with a bitmap */
    uint64_t duplicates;
    uint64_t unknown; /* ids that no run of spans_max could have made */
    uint8_t *bitmap;  /* bit n: span n was seen; NULL: not wanted */
    uint64_t spans_max;
};

uint64_t span_id_of(uint64_t number);
uint64_t span_number_of(uint64_t id);
uint64_t span_id_weight(uint64_t id);
/* spans_max 0: no bitmap. */
void span_ids_init(struct span_ids *ids, uint64_t spans_max);
/* Walks a request and adds every span or sample. False: it is not of that kind. */
bool span_ids_add_body(struct span_ids *ids, enum body_kind kind, struct bytes body);
