/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of tail_sampling, compiled from the configuration. A policy is a tree; its leaves are
 * conditions on spans. What a leaf needs of the spans is one bit of the trace: a span of it has
 * matched. So spans are read once, when they arrive, and deciding reads bits and counts only.
 * One per lane. Limits by rate are shared by the lanes of a pipeline, under a lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/slice.h"

struct budget;
struct error;
struct pattern;
struct tail_conditions;
struct tail_limits;
struct tail_sampling_config;

enum {
    TAIL_TRACE_ID_BYTES = 16,
    TAIL_POLICIES_MAX = 1024,
    TAIL_LEAVES_MAX = 1024,
    TAIL_WORDS_MAX = TAIL_LEAVES_MAX / 64,
    TAIL_KEYS_MAX = 256, /* distinct attributes that policies look for */
    TAIL_KEY_WORDS = TAIL_KEYS_MAX / 64,
    TAIL_STATUSES = 8, /* codes that a leaf may ask for */
};

enum tail_decision { TAIL_UNDECIDED, TAIL_SAMPLED, TAIL_NOT_SAMPLED, TAIL_DROPPED };
enum { TAIL_DECISIONS = 3 }; /* the last three */

enum tail_leaf_kind {
    TAIL_ALWAYS,
    TAIL_LATENCY,
    TAIL_NUMERIC,
    TAIL_PROBABILISTIC,
    TAIL_STATUS,
    TAIL_STRING,
    TAIL_RATE,
    TAIL_BYTES,
    TAIL_SPAN_COUNT,
    TAIL_TRACE_STATE,
    TAIL_BOOLEAN,
    TAIL_TRACE_FLAGS,
    TAIL_OTTL,
    TAIL_PROFILE,
    TAIL_OTTL_FAILED, /* no policy: the bit behind that of OTTL, a condition has failed */
};

struct tail_leaf {
    enum tail_leaf_kind kind;
    bool is_inverted;      /* samples if the bit is not set */
    uint16_t bit;          /* in the bits of a trace */
    uint16_t limiter;      /* RATE, BYTES: in struct tail_limits */
    bool boolean;          /* BOOLEAN */
    uint8_t statuses;      /* STATUS: a bit for each code */
    int64_t min;           /* NUMERIC, SPAN_COUNT; LATENCY: threshold in ms; PROFILE: samples */
    int64_t max;           /* NUMERIC, SPAN_COUNT; LATENCY: upper threshold, 0: none; PROFILE: least
                              CPU time in ns */
    uint64_t hash;         /* PROBABILISTIC: of the salt */
    uint64_t threshold;    /* PROBABILISTIC: largest hash that is sampled */
    struct slice key;      /* attribute, or key in the trace state */
    size_t values_count;   /* STRING, TRACE_STATE */
    struct slice *values;  /* owned; their bytes are the configuration's */
    size_t patterns_count; /* STRING with regular expressions */
    struct pattern **patterns;
    struct tail_conditions *conditions; /* OTTL; owned */
};

enum tail_policy_kind { TAIL_LEAF, TAIL_AND, TAIL_DROP, TAIL_NOT, TAIL_COMPOSITE };

struct tail_policy {
    const char *name;
    enum tail_policy_kind kind;
    /* How it is asked without a look at its leaves: it samples if that bit is set, or is not. */
    bool is_bit;
    bool is_inverted;
    bool is_constant; /* the bit depends on the id alone */
    uint16_t bit;
    uint16_t leaf; /* LEAF */
    size_t subs_count;
    struct tail_policy *subs;
    /* COMPOSITE */
    int64_t total_per_second;
    int64_t *allocated; /* beside subs: spans per second */
    uint16_t counts;    /* in struct tail_limits: where the counts of its subs begin */
    uint16_t second;    /* in struct tail_limits: the second that they count */
};

/* Leaves that look for the same attribute. */
struct tail_key {
    struct slice name;
    size_t leaves_count;
    uint16_t *leaves;
};

struct tail_policies {
    size_t count;
    struct tail_policy *items; /* those that drop first, then in the order of the configuration */
    size_t drops;              /* how many drop */
    bool stops_at_first;       /* sample_on_first_match */
    bool has_limits;           /* RATE, BYTES or composite: deciding needs the time */
    bool counts_volume;        /* of each policy: spans and bytes, beside traces */
    /* For the outlook, where no policy drops and one waits for a bit that would sample the trace:
     * it is sampled with any of these bits, or without any of those that depend on the id alone;
     * else it depends on policies that are more than a bit. */
    bool is_open_for_bits;
    uint64_t sampling_bits[TAIL_WORDS_MAX];
    uint64_t sampling_gaps[TAIL_WORDS_MAX];
    size_t wide_count;
    uint16_t wide[TAIL_POLICIES_MAX];
    size_t leaves_count;
    struct tail_leaf leaves[TAIL_LEAVES_MAX];
    size_t words; /* of the bits of a trace; at least 1 */
    size_t keys_count;
    struct tail_key keys[TAIL_KEYS_MAX];
    uint64_t key_lengths; /* a bit for each length of a key, modulo 64 */
    uint64_t status_bits[TAIL_STATUSES][TAIL_WORDS_MAX]; /* STATUS: that a span with it sets */
    uint64_t flag_bits[TAIL_WORDS_MAX]; /* TRACE_FLAGS: that one with the flag sets */
    /* Leaves by what they need, as places in leaves. */
    size_t states_count; /* TRACE_STATE */
    uint16_t states[TAIL_LEAVES_MAX];
    size_t latencies_count;
    uint16_t latencies[TAIL_LEAVES_MAX];
    size_t conditions_count; /* OTTL */
    uint16_t conditions[TAIL_LEAVES_MAX];
    size_t readers_count; /* OTTL, and patterns of STRING: each may read all of a span */
    size_t hashes_count;  /* PROBABILISTIC */
    uint16_t hashes[TAIL_LEAVES_MAX];
    size_t profiles_count; /* PROFILE */
    uint16_t profiles[TAIL_LEAVES_MAX];
    size_t profiled;            /* place in the configuration of a policy with such a leaf */
    struct tail_limits *limits; /* owned by the first lane's */
    bool owns_limits;
};

/* What is known of a trace, or, with span-ingest, of a part of it. */
struct tail_facts {
    const uint64_t *bits; /* policies->words of them */
    uint64_t spans;
    uint64_t bytes;         /* as the Go collector counts a trace's size */
    uint64_t request_bytes; /* the same with the headers of its Resource… messages */
};

struct tail_now {
    uint64_t ns;      /* monotonic */
    uint64_t wall_ns; /* Unix time */
};

/* Figures of one policy. */
struct tail_policy_counters {
    counter traces[TAIL_DECISIONS]; /* together: how often it was asked */
    counter spans[TAIL_DECISIONS];
    counter bytes[TAIL_DECISIONS];
    counter execution_ns;
};

struct tail_result {
    enum tail_decision decision;
    const struct tail_policy *policy; /* that decided; NULL: none */
    const char *composite;            /* sub-policy of a composite that sampled it, or NULL */
};

/* Compiles; NULL: the configuration is wrong. The configuration outlives the policies. budget,
 * which may be NULL: for what OTTL conditions need. */
struct tail_policies *tail_policies_create(const struct tail_sampling_config *config,
                                           struct budget *budget, struct error *error);
/* NULL is a no-op. */
void tail_policies_destroy(struct tail_policies *policies);
/* From now on the limits are those of first, which outlives policies and was compiled from the same
 * configuration. Before lanes run. */
void tail_policies_share(struct tail_policies *policies, const struct tail_policies *first);

/* Sets the bits that depend on the id alone. */
void tail_policies_begin(const struct tail_policies *policies,
                         const uint8_t id[TAIL_TRACE_ID_BYTES], uint64_t *bits);
/* Sets the bits of what profiles have measured of the trace so far. */
void tail_policies_learn(const struct tail_policies *policies, uint64_t samples, uint64_t cpu_ns,
                         uint64_t *bits);
/* Of a trace's earlier spans: whether conditions held or failed. What comes first counts. */
void tail_policies_inherit(const struct tail_policies *policies, const uint64_t *earlier,
                           uint64_t *bits);
/* Called for each failure that a policy's error_mode reports. */
void tail_policies_report(const struct tail_policies *policies,
                          void (*fn)(void *arg, const char *text, const char *error), void *arg);
/* Takes in the times of the next span. *min_ns, *max_ns: of the spans before it, 0 at first. */
void tail_policies_time(const struct tail_policies *policies, uint64_t start_ns, uint64_t end_ns,
                        uint64_t *min_ns, uint64_t *max_ns, uint64_t *bits);
/* Asks the policies in their order. counters: one for each of them. */
struct tail_result tail_policies_decide(struct tail_policies *policies,
                                        const struct tail_facts *facts, const struct tail_now *now,
                                        struct tail_policy_counters *counters);
/* The same as the spans of a part of a trace arrive (span-ingest): SAMPLED and DROPPED are final,
 * UNDECIDED is not. */
struct tail_result tail_policies_decide_part(struct tail_policies *policies,
                                             const struct tail_facts *facts,
                                             const struct tail_now *now,
                                             struct tail_policy_counters *counters);

/* What tail_policies_decide will say, whatever spans are still to come. */
enum tail_outlook {
    TAIL_OPEN,
    TAIL_WILL_SAMPLE,
    TAIL_WILL_NOT_SAMPLE, /* or drop */
};
enum tail_outlook tail_policies_outlook(const struct tail_policies *policies,
                                        const struct tail_facts *facts);
