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

static enum profile_verdict refuse_layout(struct profile_normalized *normalized)
{
    assert(normalized->layout != LAYOUT_1_10);
    if (normalized->layout == LAYOUT_UNKNOWN)
        snprintf(
            normalized->reason, sizeof(normalized->reason),
            "the samples fit no single layout of OTLP profiles: some are of 1.9 or older, some "
            "of 1.10; send each from one version");
    else
        snprintf(normalized->reason, sizeof(normalized->reason),
                 "profiles in the layout of OTLP %s%s are not supported, expected 1.7 to 1.11; "
                 "upgrade the sender",
                 profile_layout_name(normalized->layout),
                 normalized->layout == LAYOUT_1_6 ? " or older (there is no dictionary)" : "");
    return PROFILES_REFUSED;
}

/* Writes the request anew, without broken profiles and without references. What that takes has been
 * reserved. */
static enum profile_verdict rewrite(struct profile_normalized *normalized,
                                    const struct profile_findings *findings, struct budget *budget)
{
    struct profile_merge merge;
    struct profile_source source;
    const struct otlp_limit limit = {.bytes_max = UINT64_MAX};
    enum profile_verdict verdict = PROFILES_BUSY;
    profile_merge_init(&merge, budget);
    if (profile_source_open(&source, normalized->request, &merge)) {
        source.broken = findings->broken;
        bool is_whole = profile_merge_take(&merge, &source, limit);
        assert(is_whole);
        (void)is_whole;
        normalized->dropped_attributes =
            merge.groups.dropped_attributes + source.remap.dropped_attributes;
        profile_source_close(&source);
        struct buffer *buffer = profile_merge_finish(&merge, NULL);
        assert(buffer != NULL);
        buffer_unref(normalized->owner);
        normalized->owner = buffer;
        normalized->request = buffer_slice(buffer);
        verdict = PROFILES_TAKEN;
    }
    profile_merge_fini(&merge);
    return verdict;
}

static enum profile_verdict refuse_inlined(struct profile_normalized *normalized,
                                           uint64_t inlined_bytes)
{
    snprintf(normalized->reason, sizeof(normalized->reason),
             "the request has %zu bytes, and its references stand for %llu bytes of texts, more "
             "than %llu; send less at a time",
             normalized->request.size, (unsigned long long)inlined_bytes,
             (unsigned long long)PROFILE_INLINED_BYTES_MAX);
    return PROFILES_TOO_LARGE;
}

static enum profile_verdict refuse_work(struct profile_normalized *normalized, uint64_t bytes)
{
    snprintf(normalized->reason, sizeof(normalized->reason),
             "the request has %zu bytes, and %llu are needed to check and normalise it, more than "
             "the whole memory budget (service::budget_mib); send less at a time",
             normalized->request.size, (unsigned long long)bytes);
    return PROFILES_TOO_LARGE;
}

static enum profile_verdict reserve_and_rewrite(struct profile_normalized *normalized,
                                                const struct profile_findings *findings,
                                                struct budget *budget)
{
    struct budget_reserve reserve;
    enum profile_verdict verdict = PROFILES_BUSY;
    uint64_t bytes = profile_measure_merge(&findings->measure);
    if (findings->measure.inlined_bytes > PROFILE_INLINED_BYTES_MAX)
        return refuse_inlined(normalized, findings->measure.inlined_bytes);
    switch (budget_reserve(&reserve, budget, bytes)) {
    case BUDGET_TOO_SMALL:
        return refuse_work(normalized, bytes);
    case BUDGET_FULL:
        break;
    case BUDGET_GIVEN:
        verdict = rewrite(normalized, findings, budget);
        budget_release(&reserve);
        break;
    }
    return verdict;
}

/* There was no memory for the index: now, or ever? */
static enum profile_verdict refuse_index(struct profile_normalized *normalized,
                                         const struct arena *arena)
{
    uint64_t limit = arena->budget != NULL ? budget_limit(arena->budget) : UINT64_MAX;
    if (arena->refused_bytes <= limit && arena->refused_bytes <= arena->max_bytes)
        return PROFILES_BUSY;
    return refuse_work(normalized, arena->refused_bytes);
}

/* normalized->request has layout 1.10. */
static enum profile_verdict check_and_rewrite(struct profile_normalized *normalized,
                                              struct budget *budget)
{
    struct arena arena;
    struct profile_findings findings;
    enum profile_verdict verdict = PROFILES_TAKEN;
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
            verdict = reserve_and_rewrite(normalized, &findings, budget);
    } else {
        verdict = refuse_index(normalized, &arena);
    }
    arena_clear(&arena);
    return verdict;
}

static enum profile_verdict walk_and_check(struct profile_normalized *normalized,
                                           struct budget *budget)
{
    struct otlp_figures figures;
    const char *reason;
    assert(normalized->owner != NULL);
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
    return check_and_rewrite(normalized, budget);
}

/* False: the other steps decide. */
static bool fast_check(struct buffer *owner, struct profile_normalized *normalized)
{
    struct profile_fast_figures fast;
    if (!profile_fast_check(normalized->request, &fast))
        return false;
    normalized->layout = LAYOUT_1_10;
    normalized->profiles = fast.profiles;
    normalized->samples = fast.samples;
    normalized->owner = buffer_ref(owner);
    return true;
}

enum profile_verdict profile_normalize(struct buffer *owner, struct slice message,
                                       enum profile_layout layout, struct budget *budget,
                                       struct profile_normalized *ret_normalized)
{
    assert(owner != NULL);
    assert(message.data != NULL || message.size == 0);
    *ret_normalized = (struct profile_normalized){.request = message};
    if ((layout == PROFILE_LAYOUTS || layout == LAYOUT_1_10) && fast_check(owner, ret_normalized))
        return PROFILES_TAKEN;
    ret_normalized->layout = layout == PROFILE_LAYOUTS ? profile_layout_of(message) : layout;
    if (ret_normalized->layout > LAYOUT_1_7)
        return refuse_layout(ret_normalized);
    if (ret_normalized->layout == LAYOUT_1_10) {
        ret_normalized->owner = buffer_ref(owner);
    } else {
        ret_normalized->owner = profile_transcode(ret_normalized->layout, message, budget);
        if (ret_normalized->owner == NULL)
            return PROFILES_BUSY;
        ret_normalized->request = buffer_slice(ret_normalized->owner);
    }
    enum profile_verdict verdict = walk_and_check(ret_normalized, budget);
    if (verdict != PROFILES_TAKEN)
        buffer_unref(ret_normalized->owner);
    return verdict;
}
