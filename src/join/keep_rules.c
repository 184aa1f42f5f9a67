/* SPDX-License-Identifier: Apache-2.0 */
/* The word has the duration in its upper bits and a flag for each other rule below. Any thread. */
#include "src/join/keep_rules.h"

#include <assert.h>

#include "src/join/span_facts.h"

enum { ERRORS = 1, SAMPLED = 2, UNLINKED = 4, SLOW_SHIFT = 3 };

void keep_switch_init(struct keep_switch *keep, const struct keep_rules *configured)
{
    keep->configured = *configured;
    keep_switch_set(keep, configured);
}

void keep_switch_set(struct keep_switch *keep, const struct keep_rules *rules)
{
    assert(rules->slow_ns <= KEEP_SLOW_MAX_NS);
    uint64_t word = rules->slow_ns << SLOW_SHIFT;
    word |= rules->keeps_errors ? ERRORS : 0;
    word |= rules->keeps_sampled ? SAMPLED : 0;
    word |= rules->keeps_unlinked ? UNLINKED : 0;
    atomic_store_explicit(&keep->word, word, memory_order_relaxed);
}

struct keep_rules keep_switch_read(const struct keep_switch *keep)
{
    uint64_t word = atomic_load_explicit(&keep->word, memory_order_relaxed);
    return (struct keep_rules){
        .slow_ns = word >> SLOW_SHIFT,
        .keeps_errors = (word & ERRORS) != 0,
        .keeps_sampled = (word & SAMPLED) != 0,
        .keeps_unlinked = (word & UNLINKED) != 0,
    };
}

bool keep_rules_are_on(const struct keep_rules *rules)
{
    return rules->slow_ns > 0 || rules->keeps_errors || rules->keeps_sampled;
}

bool keep_rules_want(const struct keep_rules *rules, const struct span_facts *facts)
{
    assert(facts->span != 0);
    uint64_t ns = facts->end_ns > facts->start_ns ? facts->end_ns - facts->start_ns : 0;
    return rules->keeps_sampled || (rules->slow_ns > 0 && ns >= rules->slow_ns) ||
           (rules->keeps_errors && (facts->flags & SPAN_IS_ERROR) != 0);
}
