/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizing profiles requests. Pure functions; any thread. */
#include "src/profiles/otlp/profile_normalize.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_check.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_transcode.h"

/* Checking and rewriting take more bytes than the whole budget has. */
static enum profile_verdict refuse_work(struct profile_normalized *normalized, uint64_t bytes)
{
    snprintf(normalized->reason, sizeof(normalized->reason),
             "the request has %zu bytes, and %llu are needed to check and normalize it, more than "
             "the whole memory budget (service::budget_mib); send less at a time",
             normalized->request.size, (unsigned long long)bytes);
    return PROFILES_TOO_LARGE;
}

/* Rewrites the request without broken profiles and references. */
static enum profile_verdict rewrite(struct profile_normalized *normalized,
                                    const struct profile_findings *findings, struct budget *budget)
{
    struct budget_reserve reserve;
    uint64_t bytes = profile_measure_merge(&findings->measure);
    if (findings->measure.inlined_bytes > PROFILE_INLINED_BYTES_MAX) {
        snprintf(normalized->reason, sizeof(normalized->reason),
                 "the request has %zu bytes, and its references stand for %llu bytes of strings, "
                 "more than %llu; send less at a time",
                 normalized->request.size, (unsigned long long)findings->measure.inlined_bytes,
                 (unsigned long long)PROFILE_INLINED_BYTES_MAX);
        return PROFILES_TOO_LARGE;
    }
    switch (budget_reserve(&reserve, budget, bytes)) {
    case BUDGET_TOO_SMALL:
        return refuse_work(normalized, bytes);
    case BUDGET_FULL:
        return PROFILES_BUSY;
    case BUDGET_GIVEN:
        break;
    }
    struct buffer *buffer = profile_rewrite(normalized->request, findings->broken, budget,
                                            &normalized->dropped_attributes);
    budget_release(&reserve);
    if (buffer == NULL)
        return PROFILES_BUSY;
    buffer_unref(normalized->owner);
    normalized->owner = buffer;
    normalized->request = buffer_slice(buffer);
    return PROFILES_TAKEN;
}

/* normalized->request has layout 1.10. */
static enum profile_verdict check_and_rewrite(struct profile_normalized *normalized,
                                              struct budget *budget)
{
    struct otlp_figures figures;
    struct arena arena;
    struct profile_findings findings;
    enum profile_verdict verdict = PROFILES_TAKEN;
    const char *reason;
    if (normalized->request.size > PROFILE_REQUEST_BYTES_MAX) {
        snprintf(
            normalized->reason, sizeof(normalized->reason),
            "profiles of %zu bytes in layout 1.10, at most %llu are taken; send less at a time",
            normalized->request.size, (unsigned long long)PROFILE_REQUEST_BYTES_MAX);
        return PROFILES_TOO_LARGE;
    }
    if (!otlp_check(PROFILES, normalized->request, &figures, &reason)) {
        snprintf(normalized->reason, sizeof(normalized->reason), "%s", reason);
        return PROFILES_REFUSED;
    }
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, budget);
    enum profile_checked checked = profile_check(normalized->request, &arena, &findings);
    assert(sizeof(normalized->reason) == sizeof(findings.reason));
    memcpy(normalized->reason, findings.reason, sizeof(normalized->reason));
    if (checked == PROFILES_CHECKED) {
        normalized->profiles = findings.profiles - findings.broken_profiles;
        normalized->samples = findings.samples - findings.broken_samples;
        normalized->rejected_profiles = findings.broken_profiles;
        normalized->rejected_samples = findings.broken_samples;
        if (findings.needs_rewriting && normalized->profiles > 0)
            verdict = rewrite(normalized, &findings, budget);
    } else {
        /* No memory for the index: now, or ever? */
        uint64_t limit = budget != NULL ? budget_limit(budget) : UINT64_MAX;
        bool is_busy = arena.refused_bytes <= limit && arena.refused_bytes <= arena.max_bytes;
        verdict = is_busy ? PROFILES_BUSY : refuse_work(normalized, arena.refused_bytes);
    }
    arena_clear(&arena);
    return verdict;
}

enum profile_verdict profile_normalize(struct buffer *owner, struct slice message,
                                       enum profile_layout layout, struct budget *budget,
                                       struct profile_normalized *ret_normalized)
{
    struct profile_normalized *normalized = ret_normalized;
    struct profile_fast_figures figures;
    *normalized = (struct profile_normalized){.request = message};
    if ((layout == PROFILE_LAYOUTS || layout == LAYOUT_1_10) &&
        profile_fast_check(message, &figures)) {
        normalized->layout = LAYOUT_1_10;
        normalized->profiles = figures.profiles;
        normalized->samples = figures.samples;
        normalized->owner = buffer_ref(owner);
        return PROFILES_TAKEN;
    }
    normalized->layout = layout == PROFILE_LAYOUTS ? profile_layout_of(message) : layout;
    if (normalized->layout == LAYOUT_UNKNOWN) {
        snprintf(
            normalized->reason, sizeof(normalized->reason),
            "the samples fit no single layout of OTLP profiles: some are of 1.9 or older, some "
            "of 1.10; send each from one version");
        return PROFILES_REFUSED;
    }
    if (normalized->layout > LAYOUT_1_7) {
        snprintf(normalized->reason, sizeof(normalized->reason),
                 "profiles in the layout of OTLP %s%s are not supported, expected 1.7 to 1.11; "
                 "upgrade the sender",
                 profile_layout_name(normalized->layout),
                 normalized->layout == LAYOUT_1_6 ? " or older (there is no dictionary)" : "");
        return PROFILES_REFUSED;
    }
    if (normalized->layout == LAYOUT_1_10) {
        normalized->owner = buffer_ref(owner);
    } else {
        normalized->owner = profile_transcode(normalized->layout, message, budget);
        if (normalized->owner == NULL)
            return PROFILES_BUSY;
        normalized->request = buffer_slice(normalized->owner);
    }
    enum profile_verdict verdict = check_and_rewrite(normalized, budget);
    if (verdict != PROFILES_TAKEN)
        buffer_unref(normalized->owner);
    return verdict;
}
