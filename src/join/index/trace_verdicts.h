/* SPDX-License-Identifier: Apache-2.0 */
/* What tail_sampling has decided about recent traces. Bounded: a new one may displace the oldest of
 * its line, which is then unknown again. Any thread, lock-free. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order of their force: a trace that was sampled once stays sampled. */
enum trace_verdict { TRACE_UNKNOWN, TRACE_DROPPED, TRACE_SAMPLED };

struct trace_verdicts {
    _Atomic uint64_t *places; /* NULL: not in use */
    uint64_t count;           /* a power of two */
    uint64_t seed;
    _Atomic uint64_t changes; /* incremented with each verdict that was new */
};

/* Bytes for that many traces, of which the number is rounded up. */
uint64_t trace_verdicts_bytes(uint64_t traces);
/* False: no memory. */
bool trace_verdicts_init(struct trace_verdicts *verdicts, uint64_t traces);
void trace_verdicts_fini(struct trace_verdicts *verdicts);
void trace_verdicts_put(struct trace_verdicts *verdicts, const uint64_t trace[2],
                        enum trace_verdict verdict, uint64_t now_ns);
enum trace_verdict trace_verdicts_get(const struct trace_verdicts *verdicts,
                                      const uint64_t trace[2]);
