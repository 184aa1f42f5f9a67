/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are worth exporting, by what is known of their spans. All lanes read the rules and
 * one may change them at any time: they are one word. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct span_facts;

/* A sample is kept that any of the rules wants; without rules all are. */
struct keep_rules {
    uint64_t slow_ns; /* spans that took so long; 0: no such rule */
    bool keeps_errors;
    bool keeps_sampled;  /* every span that came by was sampled, or it would not have been sent */
    bool keeps_unlinked; /* samples that name no span, or one that did not come by */
};

/* Rules at run time. */
struct keep_switch {
    _Atomic uint64_t word;
    struct keep_rules configured; /* constant */
};

/* Longest duration that a rule may name. */
#define KEEP_SLOW_MAX_NS ((uint64_t)1 << 56)

void keep_switch_init(struct keep_switch *keep, const struct keep_rules *configured);
void keep_switch_set(struct keep_switch *keep, const struct keep_rules *rules);
struct keep_rules keep_switch_read(const struct keep_switch *keep);

/* Whether anything can be left out. */
bool keep_rules_are_on(const struct keep_rules *rules);
/* Whether samples of that span are kept. */
bool keep_rules_want(const struct keep_rules *rules, const struct span_facts *facts);
