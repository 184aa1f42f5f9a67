/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are exported, by what is known of their spans. All lanes read the rules and one may
 * change them at any time, so they are one word. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct span_facts;

/* A sample is kept if any of the rules wants it; without rules all are. */
struct keep_rules {
    uint64_t slow_ns; /* spans that took at least so long; 0: no such rule */
    bool keeps_errors;
    bool keeps_sampled;  /* all spans that arrived, but for those that tail_sampling dropped */
    bool keeps_unlinked; /* samples that name no span, or one that did not arrive */
};

/* The rules in force. */
struct keep_switch {
    _Atomic uint64_t word;
    struct keep_rules configured; /* constant */
};

/* Longest duration of a rule. */
#define KEEP_SLOW_MAX_NS ((uint64_t)1 << 56)

void keep_switch_init(struct keep_switch *keep, const struct keep_rules *configured);
void keep_switch_set(struct keep_switch *keep, const struct keep_rules *rules);
struct keep_rules keep_switch_read(const struct keep_switch *keep);

/* Whether anything can be dropped. */
bool keep_rules_are_on(const struct keep_rules *rules);
/* Whether samples of that span are kept. It is found. */
bool keep_rules_want(const struct keep_rules *rules, const struct span_facts *facts);
