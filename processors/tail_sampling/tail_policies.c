/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling and asking policies, as the Go collector does (tailsamplingprocessor 0.155). Runs on
 * its lane; compiling on the main thread. */
#include "processors/tail_sampling/tail_policies.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "processors/tail_sampling/tail_conditions.h"
#include "processors/tail_sampling/tail_limits.h"
#include "processors/tail_sampling/tail_sampling_config.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"

#define DEFAULT_SALT     "default-hash-seed"
#define FNV64_OFFSET     UINT64_C(0xcbf29ce484222325)
#define FNV64_PRIME      UINT64_C(0x100000001b3)
#define TRACE_STATE_PAIR 256 /* longer pairs never match */

static inline uint64_t fnv1a(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
#pragma GCC unroll 16
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * FNV64_PRIME;
    return hash;
}

static void set_bit(uint64_t *bits, unsigned bit)
{
    bits[bit / 64] |= (uint64_t)1 << bit % 64;
}

static bool has_bit(const uint64_t *bits, unsigned bit)
{
    return (bits[bit / 64] >> bit % 64 & 1) != 0;
}

/* (2^64 - 1) * ratio, rounded to a mantissa of 64 bits, without its fraction, as math/big does. */
static uint64_t threshold_of(double ratio)
{
    int exponent;
    if (!(ratio > 0))
        return 0;
    if (ratio >= 1)
        return UINT64_MAX;
    double mantissa = frexp(ratio, &exponent); /* in [0.5, 1) */
    enum { MANTISSA_BITS = 53, WORD_BITS = 64 };
    uint64_t whole = (uint64_t)ldexp(mantissa, MANTISSA_BITS);
    unsigned __int128 product = (unsigned __int128)UINT64_MAX * whole;
    int shift = exponent - MANTISSA_BITS; /* ratio = whole * 2^shift */
    unsigned bits = 0;
    for (unsigned __int128 rest = product; rest != 0; rest >>= 1)
        bits++;
    if (bits > WORD_BITS) {
        /* To the nearest, ties to even. */
        unsigned drop = bits - WORD_BITS;
        unsigned __int128 rest = product & (((unsigned __int128)1 << drop) - 1);
        unsigned __int128 half = (unsigned __int128)1 << (drop - 1);
        product >>= drop;
        if (rest > half || (rest == half && (product & 1) != 0))
            product++;
        shift += (int)drop;
    }
    assert(shift <= 0);
    return -shift >= 2 * WORD_BITS ? 0 : (uint64_t)(product >> -shift);
}

/* --- compiling --- */

enum level { LEVEL_POLICY, LEVEL_COMPOSITE, LEVEL_AND, LEVEL_NOT };

struct compiler {
    struct tail_policies *policies;
    bool is_stateful; /* of the policy at hand: decisions depend on more than the spans so far */
    size_t place;     /* of the policy at hand, in the configuration */
    size_t slots;     /* of limits, so far */
    struct budget *budget;
    struct error *error;
};

static struct tail_leaf *add_leaf(struct compiler *compiler, struct tail_policy *policy,
                                  enum tail_leaf_kind kind)
{
    struct tail_policies *policies = compiler->policies;
    if (policies->leaves_count == TAIL_LEAVES_MAX) {
        error_set(compiler->error, "there are more than %d policies and sub-policies",
                  TAIL_LEAVES_MAX);
        return NULL;
    }
    policy->kind = TAIL_LEAF;
    policy->leaf = (uint16_t)policies->leaves_count;
    struct tail_leaf *leaf = &policies->leaves[policies->leaves_count];
    leaf->kind = kind;
    leaf->bit = (uint16_t)policies->leaves_count++;
    return leaf;
}

static bool add_key(struct compiler *compiler, const struct tail_leaf *leaf)
{
    struct tail_policies *policies = compiler->policies;
    size_t i = 0;
    while (i < policies->keys_count && !slice_equal(policies->keys[i].name, leaf->key))
        i++;
    if (i == TAIL_KEYS_MAX)
        return error_set(compiler->error, "policies look for more than %d attributes",
                         TAIL_KEYS_MAX);
    struct tail_key *key = &policies->keys[i];
    if (i == policies->keys_count) {
        key->name = leaf->key;
        policies->keys_count++;
        policies->key_lengths |= (uint64_t)1 << leaf->key.size % 64;
    }
    key->leaves = mem_resize(key->leaves, (key->leaves_count + 1) * sizeof(key->leaves[0]));
    key->leaves[key->leaves_count++] = leaf->bit;
    return true;
}

static void add_values(struct tail_leaf *leaf, const struct config_texts *texts, size_t size_max)
{
    leaf->values = mem_zalloc((texts->count + 1) * sizeof(leaf->values[0]));
    for (size_t i = 0; i < texts->count; i++) {
        struct slice value = slice_of_text(texts->texts[i]);
        if (value.size > 0 && value.size < size_max)
            leaf->values[leaf->values_count++] = value;
    }
}

static bool compile_string(struct compiler *compiler, struct tail_policy *policy,
                           const struct tail_string_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_STRING);
    if (leaf == NULL)
        return false;
    leaf->key = slice_of_text(config->key);
    leaf->is_inverted = config->invert_match;
    if (!config->enabled_regex_matching) {
        add_values(leaf, &config->values, SIZE_MAX);
        return add_key(compiler, leaf) || error_at(compiler->error, "string_attribute");
    }
    leaf->patterns =
        (struct pattern **)mem_zalloc((config->values.count + 1) * sizeof(struct pattern *));
    for (size_t i = 0; i < config->values.count; i++) {
        leaf->patterns[i] = pattern_create(config->values.texts[i], compiler->error);
        if (leaf->patterns[i] == NULL) {
            error_prefix(compiler->error, "invalid regex `%s`", config->values.texts[i]);
            return error_at_index(compiler->error, i) || error_at(compiler->error, "values") ||
                   error_at(compiler->error, "string_attribute");
        }
        leaf->patterns_count++;
    }
    return add_key(compiler, leaf) || error_at(compiler->error, "string_attribute");
}

static bool compile_status(struct compiler *compiler, struct tail_policy *policy,
                           const struct tail_status_config *config)
{
    static const char *const codes[] = {"UNSET", "OK", "ERROR"};
    enum { CODES = 3 };
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_STATUS);
    if (leaf == NULL)
        return false;
    if (config->status_codes.count == 0)
        return error_set(compiler->error, "expected at least one status code to filter on") ||
               error_at(compiler->error, "status_codes") ||
               error_at(compiler->error, "status_code");
    for (size_t i = 0; i < config->status_codes.count; i++) {
        const char *text = config->status_codes.texts[i];
        unsigned code = 0;
        while (code < CODES && strcmp(codes[code], text) != 0)
            code++;
        if (code == CODES)
            return error_set(compiler->error,
                             "unknown status code \"%s\", supported: OK, ERROR, UNSET", text) ||
                   error_at_index(compiler->error, i) ||
                   error_at(compiler->error, "status_codes") ||
                   error_at(compiler->error, "status_code");
        leaf->statuses |= (uint8_t)(1u << code);
    }
    return true;
}

static bool compile_numeric(struct compiler *compiler, struct tail_policy *policy,
                            const struct tail_numeric_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_NUMERIC);
    if (leaf == NULL)
        return false;
    if (config->min_value == 0 && config->max_value == 0)
        return error_set(compiler->error, "min_value and max_value are both 0, which means \"not "
                                          "set\": set at least one of them") ||
               error_at(compiler->error, "numeric_attribute");
    leaf->key = slice_of_text(config->key);
    leaf->is_inverted = config->invert_match;
    leaf->min = config->min_value != 0 ? config->min_value : INT64_MIN;
    leaf->max = config->max_value != 0 ? config->max_value : INT64_MAX;
    return add_key(compiler, leaf) || error_at(compiler->error, "numeric_attribute");
}

static bool compile_probabilistic(struct compiler *compiler, struct tail_policy *policy,
                                  const struct tail_probabilistic_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_PROBABILISTIC);
    const char *salt = config->hash_salt[0] != '\0' ? config->hash_salt : DEFAULT_SALT;
    if (leaf == NULL)
        return false;
    if (isnan(config->sampling_percentage))
        return error_set(compiler->error, "found NaN, expected a percentage") ||
               error_at(compiler->error, "sampling_percentage") ||
               error_at(compiler->error, "probabilistic");
    leaf->hash = fnv1a(FNV64_OFFSET, salt, strlen(salt));
    leaf->threshold = threshold_of(config->sampling_percentage / 100);
    return true;
}

static bool compile_rate(struct compiler *compiler, struct tail_policy *policy,
                         const struct tail_rate_config *config, enum tail_leaf_kind kind)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, kind);
    if (leaf == NULL)
        return false;
    leaf->limiter = (uint16_t)compiler->slots++;
    leaf->min = config->per_second;
    leaf->max = config->burst_capacity > 0 ? config->burst_capacity : 2 * config->per_second;
    compiler->is_stateful = true;
    compiler->policies->has_limits = true;
    return true;
}

static bool compile_latency(struct compiler *compiler, struct tail_policy *policy,
                            const struct tail_latency_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_LATENCY);
    if (leaf == NULL)
        return false;
    leaf->min = config->threshold_ms;
    leaf->max = config->upper_threshold_ms;
    compiler->is_stateful |= config->upper_threshold_ms > 0;
    return true;
}

static bool compile_span_count(struct compiler *compiler, struct tail_policy *policy,
                               const struct tail_span_count_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_SPAN_COUNT);
    if (leaf == NULL)
        return false;
    leaf->min = config->min_spans;
    leaf->max = config->max_spans;
    compiler->is_stateful |= config->max_spans > 0;
    return true;
}

static bool compile_trace_state(struct compiler *compiler, struct tail_policy *policy,
                                const struct tail_trace_state_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_TRACE_STATE);
    if (leaf == NULL)
        return false;
    leaf->key = slice_of_text(config->key);
    size_t room = leaf->key.size < TRACE_STATE_PAIR ? TRACE_STATE_PAIR - leaf->key.size : 0;
    add_values(leaf, &config->values, room);
    return true;
}

static bool compile_boolean(struct compiler *compiler, struct tail_policy *policy,
                            const struct tail_boolean_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_BOOLEAN);
    if (leaf == NULL)
        return false;
    leaf->key = slice_of_text(config->key);
    leaf->boolean = config->value;
    leaf->is_inverted = config->invert_match;
    return add_key(compiler, leaf) || error_at(compiler->error, "boolean_attribute");
}

static bool compile_ottl(struct compiler *compiler, struct tail_policy *policy,
                         const struct tail_ottl_config *config)
{
    if (config->span.count == 0 && config->spanevent.count == 0)
        return error_set(compiler->error, "expected at least one OTTL condition to filter on") ||
               error_at(compiler->error, "ottl_condition");
    struct tail_policy ignored;
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_OTTL);
    if (leaf == NULL || add_leaf(compiler, &ignored, TAIL_OTTL_FAILED) == NULL)
        return false;
    leaf->conditions = tail_conditions_create(config, compiler->budget, compiler->error);
    return leaf->conditions != NULL || error_at(compiler->error, "ottl_condition");
}

/* The join tells what profiles measure, whenever they come. */
static bool compile_profile(struct compiler *compiler, struct tail_policy *policy,
                            const struct tail_profile_config *config)
{
    struct tail_leaf *leaf = add_leaf(compiler, policy, TAIL_PROFILE);
    if (leaf == NULL)
        return false;
    leaf->min = (int64_t)config->min_samples;
    leaf->max = (int64_t)config->min_cpu_ns;
    if (leaf->min == 0 && leaf->max == 0)
        return error_set(compiler->error, "min_samples and min_cpu are both 0, which every trace "
                                          "reaches: set at least one of them") ||
               error_at(compiler->error, "profile");
    compiler->is_stateful = true;
    compiler->policies->profiled = compiler->place;
    return true;
}

static bool is_allowed(const char *type, enum level level)
{
    if (strcmp(type, "not") == 0)
        return level == LEVEL_POLICY || level == LEVEL_AND;
    if (strcmp(type, "and") == 0)
        return level == LEVEL_POLICY || level == LEVEL_COMPOSITE;
    return level == LEVEL_POLICY;
}

static bool refuse_type(struct compiler *compiler, const char *type, enum level level)
{
    static const char *const more[] = {
        [LEVEL_POLICY] = ", and, not, drop or composite",
        [LEVEL_COMPOSITE] = " or and",
        [LEVEL_AND] = " or not",
        [LEVEL_NOT] = "",
    };
    return error_set(compiler->error,
                     "unknown sampling policy type \"%s\" here, expected always_sample, latency, "
                     "numeric_attribute, probabilistic, status_code, string_attribute, "
                     "rate_limiting, bytes_limiting, span_count, trace_state, boolean_attribute, "
                     "trace_flags, ottl_condition, profile%s",
                     type, more[level]) ||
           error_at(compiler->error, "type");
}

static bool compile_leaf(struct compiler *compiler, struct tail_policy *policy,
                         const struct tail_shared_config *config, enum level level)
{
    const char *type = config->type;
    policy->name = config->name;
    if (strcmp(type, "always_sample") == 0)
        return add_leaf(compiler, policy, TAIL_ALWAYS) != NULL;
    if (strcmp(type, "trace_flags") == 0)
        return add_leaf(compiler, policy, TAIL_TRACE_FLAGS) != NULL;
    if (strcmp(type, "latency") == 0)
        return compile_latency(compiler, policy, &config->latency);
    if (strcmp(type, "numeric_attribute") == 0)
        return compile_numeric(compiler, policy, &config->numeric);
    if (strcmp(type, "probabilistic") == 0)
        return compile_probabilistic(compiler, policy, &config->probabilistic);
    if (strcmp(type, "status_code") == 0)
        return compile_status(compiler, policy, &config->status);
    if (strcmp(type, "string_attribute") == 0)
        return compile_string(compiler, policy, &config->string);
    if (strcmp(type, "rate_limiting") == 0)
        return compile_rate(compiler, policy, &config->rate, TAIL_RATE);
    if (strcmp(type, "bytes_limiting") == 0)
        return compile_rate(compiler, policy, &config->bytes, TAIL_BYTES);
    if (strcmp(type, "span_count") == 0)
        return compile_span_count(compiler, policy, &config->span_count);
    if (strcmp(type, "trace_state") == 0)
        return compile_trace_state(compiler, policy, &config->trace_state);
    if (strcmp(type, "boolean_attribute") == 0)
        return compile_boolean(compiler, policy, &config->boolean);
    if (strcmp(type, "ottl_condition") == 0)
        return compile_ottl(compiler, policy, &config->ottl);
    if (strcmp(type, "profile") == 0)
        return compile_profile(compiler, policy, &config->profile);
    return refuse_type(compiler, type, level);
}

static void begin_subs(struct tail_policy *policy, enum tail_policy_kind kind, const char *name,
                       size_t count)
{
    policy->kind = kind;
    policy->name = name;
    policy->subs_count = count;
    policy->subs = mem_zalloc((count + 1) * sizeof(policy->subs[0]));
}

static bool compile_not(struct compiler *compiler, struct tail_policy *policy, const char *name,
                        const struct tail_not_config *config)
{
    begin_subs(policy, TAIL_NOT, name, 1);
    return compile_leaf(compiler, policy->subs, &config->sub.shared, LEVEL_NOT) ||
           error_at(compiler->error, "not_sub_policy") || error_at(compiler->error, "not");
}

/* and, drop */
static bool compile_all(struct compiler *compiler, struct tail_policy *policy, const char *name,
                        const struct config_sections *subs, enum tail_policy_kind kind)
{
    const struct tail_and_sub_config *items = subs->items;
    begin_subs(policy, kind, name, subs->count);
    for (size_t i = 0; i < subs->count; i++) {
        const struct tail_shared_config *shared = &items[i].shared;
        bool is_fine =
            strcmp(shared->type, "not") == 0 && is_allowed(shared->type, LEVEL_AND)
                ? compile_not(compiler, &policy->subs[i], shared->name, &items[i].inverted)
                : compile_leaf(compiler, &policy->subs[i], shared, LEVEL_AND);
        if (!is_fine)
            return error_at_index(compiler->error, i) ||
                   error_at(compiler->error,
                            kind == TAIL_AND ? "and_sub_policy" : "drop_sub_policy") ||
                   error_at(compiler->error, kind == TAIL_AND ? "and" : "drop");
    }
    return true;
}

/* Without an entry a sub-policy gets nothing; of several entries the last counts. */
static int64_t allocation_of(const struct tail_composite_config *config, const char *name)
{
    const struct tail_rate_allocation_config *items = config->allocations.items;
    double total = (double)config->max_total_spans_per_second;
    double allocated = 0;
    for (size_t i = 0; i < config->allocations.count; i++) {
        if (strcmp(items[i].policy, name) != 0)
            continue;
        allocated = items[i].percent > 0 ? (double)items[i].percent / 100 * total
                                         : total / (double)config->subs.count;
    }
    /* As Go converts on amd64: what does not fit is the smallest number. */
    return allocated >= -0x1p63 && allocated < 0x1p63 ? (int64_t)allocated : INT64_MIN;
}

static bool compile_composite(struct compiler *compiler, struct tail_policy *policy,
                              const char *name, const struct tail_composite_config *config)
{
    const struct tail_composite_sub_config *items = config->subs.items;
    begin_subs(policy, TAIL_COMPOSITE, name, config->subs.count);
    policy->total_per_second = config->max_total_spans_per_second;
    policy->allocated = mem_zalloc((config->subs.count + 1) * sizeof(policy->allocated[0]));
    if (compiler->slots + config->subs.count + 1 > UINT16_MAX)
        return error_set(compiler->error, "found %zu sub-policies, expected at most %d",
                         config->subs.count, TAIL_LEAVES_MAX) ||
               error_at(compiler->error, "composite");
    policy->second = (uint16_t)compiler->slots++;
    policy->counts = (uint16_t)compiler->slots;
    compiler->slots += config->subs.count;
    compiler->policies->has_limits = true;
    for (size_t i = 0; i < config->subs.count; i++) {
        const struct tail_shared_config *shared = &items[i].shared;
        policy->allocated[i] = allocation_of(config, shared->name);
        bool is_fine = strcmp(shared->type, "and") == 0
                           ? compile_all(compiler, &policy->subs[i], shared->name,
                                         &items[i].all.subs, TAIL_AND)
                           : compile_leaf(compiler, &policy->subs[i], shared, LEVEL_COMPOSITE);
        if (!is_fine)
            return error_at_index(compiler->error, i) ||
                   error_at(compiler->error, "composite_sub_policy") ||
                   error_at(compiler->error, "composite");
    }
    return true;
}

static bool compile(struct compiler *compiler, struct tail_policy *policy,
                    const struct tail_policy_config *config)
{
    const struct tail_shared_config *shared = &config->shared;
    if (strcmp(shared->type, "composite") == 0)
        return compile_composite(compiler, policy, shared->name, &config->composite);
    if (strcmp(shared->type, "and") == 0)
        return compile_all(compiler, policy, shared->name, &config->all.subs, TAIL_AND);
    if (strcmp(shared->type, "drop") == 0)
        return compile_all(compiler, policy, shared->name, &config->drop.subs, TAIL_DROP);
    if (strcmp(shared->type, "not") == 0)
        return compile_not(compiler, policy, shared->name, &config->inverted);
    return compile_leaf(compiler, policy, shared, LEVEL_POLICY);
}

/* Most policies are one bit. */
static void simplify(const struct tail_policies *policies, struct tail_policy *policy)
{
    const bool is_not = policy->kind == TAIL_NOT;
    if (policy->kind != TAIL_LEAF && !is_not)
        return;
    const struct tail_leaf *leaf = &policies->leaves[is_not ? policy->subs->leaf : policy->leaf];
    switch (leaf->kind) {
    case TAIL_LATENCY:
    case TAIL_NUMERIC:
    case TAIL_PROBABILISTIC:
    case TAIL_STATUS:
    case TAIL_STRING:
    case TAIL_TRACE_STATE:
    case TAIL_BOOLEAN:
    case TAIL_TRACE_FLAGS:
    case TAIL_PROFILE:
        policy->is_bit = true;
        policy->is_inverted = leaf->is_inverted != is_not;
        policy->is_constant = leaf->kind == TAIL_PROBABILISTIC;
        policy->bit = leaf->bit;
        break;
    case TAIL_ALWAYS:
    case TAIL_RATE:
    case TAIL_BYTES:
    case TAIL_SPAN_COUNT:
    case TAIL_OTTL:
    case TAIL_OTTL_FAILED:
    default:
        break;
    }
}

/* Of the policies, once they are simplified. */
static void prepare_outlook(struct tail_policies *policies)
{
    for (size_t i = 0; i < policies->count; i++) {
        const struct tail_policy *policy = &policies->items[i];
        if (!policy->is_bit)
            policies->wide[policies->wide_count++] = (uint16_t)i;
        else if (!policy->is_inverted)
            set_bit(policies->sampling_bits, policy->bit);
        else if (policy->is_constant)
            set_bit(policies->sampling_gaps, policy->bit);
        policies->is_open_for_bits |=
            policy->is_bit && !policy->is_inverted && !policy->is_constant;
    }
    policies->is_open_for_bits &= policies->drops == 0;
}

static void arrange_status(struct tail_policies *policies, const struct tail_leaf *leaf)
{
    for (unsigned code = 0; code < TAIL_STATUSES; code++)
        if ((leaf->statuses >> code & 1) != 0)
            set_bit(policies->status_bits[code], leaf->bit);
}

/* The leaves by what they need, and the limits. */
static void arrange(struct compiler *compiler)
{
    struct tail_policies *policies = compiler->policies;
    policies->words = policies->leaves_count / 64 + 1;
    policies->limits = tail_limits_create(compiler->slots);
    for (size_t i = 0; i < policies->count; i++)
        simplify(policies, &policies->items[i]);
    prepare_outlook(policies);
    policies->owns_limits = true;
    for (size_t k = 0; k < policies->leaves_count; k++) {
        const struct tail_leaf *leaf = &policies->leaves[k];
        uint16_t i = (uint16_t)k;
        policies->readers_count += leaf->patterns_count + (leaf->kind == TAIL_OTTL);
        if (leaf->kind == TAIL_STATUS)
            arrange_status(policies, leaf);
        else if (leaf->kind == TAIL_TRACE_FLAGS)
            set_bit(policies->flag_bits, leaf->bit);
        else if (leaf->kind == TAIL_TRACE_STATE)
            policies->states[policies->states_count++] = i;
        else if (leaf->kind == TAIL_OTTL)
            policies->conditions[policies->conditions_count++] = i;
        else if (leaf->kind == TAIL_LATENCY)
            policies->latencies[policies->latencies_count++] = i;
        else if (leaf->kind == TAIL_PROBABILISTIC)
            policies->hashes[policies->hashes_count++] = i;
        else if (leaf->kind == TAIL_PROFILE)
            policies->profiles[policies->profiles_count++] = i;
        else if (leaf->kind == TAIL_RATE || leaf->kind == TAIL_BYTES)
            tail_limits_set(policies->limits, leaf->limiter, leaf->min, leaf->max);
    }
}

static bool check_name(const struct tail_policy_config *items, size_t place, struct error *error)
{
    const char *name = items[place].shared.name;
    if (name[0] == '\0')
        return error_set(error, "policy name cannot be empty") || error_at(error, "name");
    for (size_t i = 0; i < place; i++)
        if (strcmp(items[i].shared.name, name) == 0)
            return error_set(error, "duplicate policy name \"%s\"", name) ||
                   error_at(error, "name");
    return true;
}

struct tail_policies *tail_policies_create(const struct tail_sampling_config *config,
                                           struct budget *budget, struct error *error)
{
    const struct tail_policy_config *items = config->policies.items;
    struct tail_policies *policies = mem_zalloc(sizeof(*policies));
    struct compiler compiler = {.policies = policies, .budget = budget, .error = error};
    policies->stops_at_first = config->sample_on_first_match;
    size_t count = config->policies.count;
    bool is_fine =
        count <= TAIL_POLICIES_MAX ||
        error_set(error, "found %zu policies, expected at most %d", count, TAIL_POLICIES_MAX) ||
        error_at(error, "policies");
    policies->items = mem_zalloc((count + 1) * sizeof(policies->items[0]));
    for (int drops = 1; is_fine && drops >= 0; drops--) {
        for (size_t i = 0; is_fine && i < count; i++) {
            if ((strcmp(items[i].shared.type, "drop") == 0) != (drops == 1))
                continue;
            compiler.is_stateful = false;
            compiler.place = i;
            policies->drops += (size_t)drops;
            is_fine = check_name(items, i, error) &&
                      compile(&compiler, &policies->items[policies->count++], &items[i]);
            if (is_fine && compiler.is_stateful && config->strategy == TAIL_SPAN_INGEST)
                is_fine = error_set(error,
                                    "sampling_strategy \"span-ingest\" requires all policies to be "
                                    "stateless, but policy \"%s\" is stateful",
                                    items[i].shared.name);
            if (!is_fine)
                is_fine = error_at_index(error, i) || error_at(error, "policies");
        }
    }
    arrange(&compiler);
    if (is_fine)
        return policies;
    tail_policies_destroy(policies);
    return NULL;
}

/* At most three deep: composite, and, leaf. */
static void clear_policy(struct tail_policy *policy)
{
    for (size_t i = 0; i < policy->subs_count; i++) {
        struct tail_policy *sub = &policy->subs[i];
        for (size_t j = 0; j < sub->subs_count; j++) {
            mem_free(sub->subs[j].subs);
            sub->subs[j].subs = NULL;
        }
        mem_free(sub->subs);
    }
    mem_free(policy->subs);
    mem_free(policy->allocated);
}

void tail_policies_destroy(struct tail_policies *policies)
{
    if (policies == NULL)
        return;
    for (size_t i = 0; i < policies->count; i++)
        clear_policy(&policies->items[i]);
    for (size_t i = 0; i < policies->leaves_count; i++) {
        struct tail_leaf *leaf = &policies->leaves[i];
        for (size_t j = 0; j < leaf->patterns_count; j++)
            pattern_destroy(leaf->patterns[j]);
        mem_free((void *)leaf->patterns);
        mem_free(leaf->values);
        tail_conditions_destroy(leaf->conditions);
    }
    for (size_t i = 0; i < policies->keys_count; i++)
        mem_free(policies->keys[i].leaves);
    if (policies->owns_limits)
        tail_limits_destroy(policies->limits);
    mem_free(policies->items);
    mem_free(policies);
}

void tail_policies_share(struct tail_policies *policies, const struct tail_policies *first)
{
    assert(policies != first);
    assert(policies->owns_limits && first->owns_limits);
    tail_limits_destroy(policies->limits);
    policies->limits = first->limits;
    policies->owns_limits = false;
}

/* --- reading bits --- */

void tail_policies_begin(const struct tail_policies *policies,
                         const uint8_t id[TAIL_TRACE_ID_BYTES], uint64_t *bits)
{
    for (size_t i = 0; i < policies->hashes_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->hashes[i]];
        if (fnv1a(leaf->hash, id, TAIL_TRACE_ID_BYTES) <= leaf->threshold)
            set_bit(bits, leaf->bit);
    }
}

void tail_policies_learn(const struct tail_policies *policies, uint64_t samples, uint64_t cpu_ns,
                         uint64_t *bits)
{
    for (size_t i = 0; i < policies->profiles_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->profiles[i]];
        if (samples >= (uint64_t)leaf->min && cpu_ns >= (uint64_t)leaf->max)
            set_bit(bits, leaf->bit);
    }
}

void tail_policies_inherit(const struct tail_policies *policies, const uint64_t *earlier,
                           uint64_t *bits)
{
    for (size_t i = 0; i < policies->conditions_count; i++) {
        const unsigned bit = policies->leaves[policies->conditions[i]].bit;
        for (unsigned k = bit; k <= bit + 1; k++)
            if (has_bit(earlier, k))
                set_bit(bits, k);
    }
}

void tail_policies_report(const struct tail_policies *policies,
                          void (*fn)(void *arg, const char *text, const char *error), void *arg)
{
    for (size_t i = 0; i < policies->conditions_count; i++) {
        struct ottl_runner *runner = &policies->leaves[policies->conditions[i]].conditions->runner;
        runner->on_failure = fn;
        runner->arg = arg;
    }
}

/* Whole milliseconds from one time stamp to another, which the Go collector takes for signed. */
static int64_t milliseconds_between(uint64_t from_ns, uint64_t until_ns)
{
    int64_t difference;
    if (__builtin_sub_overflow((int64_t)until_ns, (int64_t)from_ns, &difference))
        difference = (int64_t)until_ns < 0 ? INT64_MIN : INT64_MAX;
    return difference / NS_PER_MS;
}

void tail_policies_time(const struct tail_policies *policies, uint64_t start_ns, uint64_t end_ns,
                        uint64_t *min_ns, uint64_t *max_ns, uint64_t *bits)
{
    if (*min_ns == 0 || start_ns < *min_ns)
        *min_ns = start_ns;
    if (*max_ns == 0 || end_ns > *max_ns)
        *max_ns = end_ns;
    if (policies->latencies_count == 0)
        return;
    int64_t taken = milliseconds_between(*min_ns, *max_ns);
    for (size_t i = 0; i < policies->latencies_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->latencies[i]];
        if (leaf->max == 0 ? taken >= leaf->min : leaf->min < taken && taken <= leaf->max)
            set_bit(bits, leaf->bit);
    }
}

static bool counts_spans(const struct tail_leaf *leaf, uint64_t spans)
{
    int64_t count = spans < INT64_MAX ? (int64_t)spans : INT64_MAX;
    return count >= leaf->min && (leaf->max == 0 || count <= leaf->max);
}

static bool leaf_samples(struct tail_policies *policies, const struct tail_leaf *leaf,
                         const struct tail_facts *facts, const struct tail_now *now)
{
    switch (leaf->kind) {
    case TAIL_ALWAYS:
        return true;
    case TAIL_SPAN_COUNT:
        return counts_spans(leaf, facts->spans);
    case TAIL_RATE:
        return tail_limits_allow(policies->limits, leaf->limiter, now->ns, facts->spans);
    case TAIL_BYTES:
        return tail_limits_allow(policies->limits, leaf->limiter, now->ns, facts->request_bytes);
    case TAIL_LATENCY:
    case TAIL_NUMERIC:
    case TAIL_PROBABILISTIC:
    case TAIL_STATUS:
    case TAIL_STRING:
    case TAIL_TRACE_STATE:
    case TAIL_BOOLEAN:
    case TAIL_TRACE_FLAGS:
    case TAIL_OTTL:
    case TAIL_PROFILE:
    case TAIL_OTTL_FAILED:
    default:
        return has_bit(facts->bits, leaf->bit) != leaf->is_inverted;
    }
}

/* A leaf, or the opposite of one, of which a condition has failed: it is neither. */
static bool has_failed(const struct tail_policies *policies, const struct tail_policy *policy,
                       const struct tail_facts *facts)
{
    const uint16_t leaf = policy->kind == TAIL_NOT ? policy->subs->leaf : policy->leaf;
    return policies->leaves[leaf].kind == TAIL_OTTL &&
           has_bit(facts->bits, policies->leaves[leaf].bit + 1u);
}

/* A leaf, or the opposite of one. */
static bool simple_samples(struct tail_policies *policies, const struct tail_policy *policy,
                           const struct tail_facts *facts, const struct tail_now *now)
{
    if (has_failed(policies, policy, facts))
        return false;
    if (policy->kind == TAIL_NOT)
        return !leaf_samples(policies, &policies->leaves[policy->subs->leaf], facts, now);
    assert(policy->kind == TAIL_LEAF);
    return leaf_samples(policies, &policies->leaves[policy->leaf], facts, now);
}

/* Stops at the first that does not: later limits are not used up. */
static bool all_sample(struct tail_policies *policies, const struct tail_policy *policy,
                       const struct tail_facts *facts, const struct tail_now *now, bool *ret_failed)
{
    for (size_t i = 0; i < policy->subs_count; i++) {
        *ret_failed = has_failed(policies, &policy->subs[i], facts);
        if (!simple_samples(policies, &policy->subs[i], facts, now))
            return false;
    }
    return true;
}

static bool composite_samples(struct tail_policies *policies, const struct tail_policy *policy,
                              const struct tail_facts *facts, const struct tail_now *now,
                              const char **ret_sub)
{
    tail_limits_enter_second(policies->limits, policy->second, policy->counts, policy->subs_count,
                             now->wall_ns / NS_PER_S);
    for (size_t i = 0; i < policy->subs_count; i++) {
        const struct tail_policy *sub = &policy->subs[i];
        bool failed = sub->kind != TAIL_AND && has_failed(policies, sub, facts);
        bool samples = sub->kind == TAIL_AND ? all_sample(policies, sub, facts, now, &failed)
                                             : simple_samples(policies, sub, facts, now);
        if (failed)
            return false; /* as Go, which asks no others then */
        if (!samples)
            continue;
        int64_t most = policy->allocated[i] < policy->total_per_second ? policy->allocated[i]
                                                                       : policy->total_per_second;
        if (!tail_limits_count(policies->limits, policy->counts + i, facts->spans, most))
            return false;
        *ret_sub = sub->name;
        return true;
    }
    return false;
}

/* Where looking at one bit is not enough. */
static enum tail_decision __attribute__((noinline))
ask_leaves(struct tail_policies *policies, const struct tail_policy *policy,
           const struct tail_facts *facts, const struct tail_now *now, const char **ret_sub)
{
    bool samples;
    bool failed = false; /* neither sampled nor dropped */
    switch (policy->kind) {
    case TAIL_DROP:
        return all_sample(policies, policy, facts, now, &failed) ? TAIL_DROPPED : TAIL_NOT_SAMPLED;
    case TAIL_AND:
        samples = all_sample(policies, policy, facts, now, &failed);
        break;
    case TAIL_COMPOSITE:
        samples = composite_samples(policies, policy, facts, now, ret_sub);
        break;
    case TAIL_LEAF:
    case TAIL_NOT:
    default:
        samples = simple_samples(policies, policy, facts, now);
        break;
    }
    return samples ? TAIL_SAMPLED : TAIL_NOT_SAMPLED;
}

static inline enum tail_decision ask(struct tail_policies *policies,
                                     const struct tail_policy *policy,
                                     const struct tail_facts *facts, const struct tail_now *now,
                                     const char **ret_sub)
{
    if (!policy->is_bit)
        return ask_leaves(policies, policy, facts, now, ret_sub);
    return has_bit(facts->bits, policy->bit) != policy->is_inverted ? TAIL_SAMPLED
                                                                    : TAIL_NOT_SAMPLED;
}

static inline void count(const struct tail_policies *policies,
                         struct tail_policy_counters *counters, enum tail_decision decision,
                         const struct tail_facts *facts)
{
    assert(decision != TAIL_UNDECIDED);
    counter_add(&counters->traces[decision - 1], 1);
    if (!policies->counts_volume)
        return;
    counter_add(&counters->spans[decision - 1], facts->spans);
    counter_add(&counters->bytes[decision - 1], facts->bytes);
}

struct tail_result tail_policies_decide(struct tail_policies *policies,
                                        const struct tail_facts *facts, const struct tail_now *now,
                                        struct tail_policy_counters *counters)
{
    struct tail_result result = {.decision = TAIL_NOT_SAMPLED};
    for (size_t i = 0; i < policies->count; i++) {
        const struct tail_policy *policy = &policies->items[i];
        enum tail_decision decision = ask(policies, policy, facts, now, &result.composite);
        count(policies, &counters[i], decision, facts);
        if (decision == TAIL_NOT_SAMPLED)
            continue;
        if (result.policy == NULL) {
            result.decision = decision;
            result.policy = policy;
        }
        if (decision == TAIL_DROPPED || policies->stops_at_first)
            break;
    }
    return result;
}

struct tail_result tail_policies_decide_part(struct tail_policies *policies,
                                             const struct tail_facts *facts,
                                             const struct tail_now *now,
                                             struct tail_policy_counters *counters)
{
    struct tail_result result = {.decision = TAIL_UNDECIDED};
    for (size_t i = 0; i < policies->count; i++) {
        const struct tail_policy *policy = &policies->items[i];
        /* What does not drop these spans may drop later ones. */
        if (i == policies->drops && i > 0)
            break;
        enum tail_decision decision = ask(policies, policy, facts, now, &result.composite);
        count(policies, &counters[i], decision, facts);
        if (decision == TAIL_NOT_SAMPLED)
            continue;
        result.decision = decision;
        result.policy = policy;
        break;
    }
    return result;
}

/* --- what cannot change any more --- */

enum truth { NEVER, ALWAYS, PERHAPS };

static enum truth leaf_truth(const struct tail_leaf *leaf, const struct tail_facts *facts)
{
    switch (leaf->kind) {
    case TAIL_ALWAYS:
        return ALWAYS;
    case TAIL_PROBABILISTIC:
        return has_bit(facts->bits, leaf->bit) ? ALWAYS : NEVER;
    case TAIL_SPAN_COUNT:
        if (leaf->max == 0)
            return counts_spans(leaf, facts->spans) ? ALWAYS : PERHAPS;
        return leaf->max < 0 || facts->spans > (uint64_t)leaf->max ? NEVER : PERHAPS;
    case TAIL_RATE:
    case TAIL_BYTES:
        return PERHAPS;
    case TAIL_LATENCY:
    case TAIL_NUMERIC:
    case TAIL_STATUS:
    case TAIL_STRING:
    case TAIL_TRACE_STATE:
    case TAIL_BOOLEAN:
    case TAIL_TRACE_FLAGS:
    case TAIL_OTTL:
    case TAIL_PROFILE:
    case TAIL_OTTL_FAILED:
    default:
        if (!has_bit(facts->bits, leaf->bit))
            return PERHAPS;
        return leaf->is_inverted ? NEVER : ALWAYS;
    }
}

static enum truth simple_truth(const struct tail_policies *policies,
                               const struct tail_policy *policy, const struct tail_facts *facts)
{
    if (has_failed(policies, policy, facts))
        return NEVER;
    if (policy->kind != TAIL_NOT)
        return leaf_truth(&policies->leaves[policy->leaf], facts);
    enum truth truth = leaf_truth(&policies->leaves[policy->subs->leaf], facts);
    return truth == PERHAPS ? PERHAPS : truth == NEVER ? ALWAYS : NEVER;
}

static enum truth all_truth(const struct tail_policies *policies, const struct tail_policy *policy,
                            const struct tail_facts *facts)
{
    enum truth all = ALWAYS;
    for (size_t i = 0; i < policy->subs_count && all != NEVER; i++) {
        enum truth truth = simple_truth(policies, &policy->subs[i], facts);
        if (truth != ALWAYS)
            all = truth;
    }
    return all;
}

static enum truth truth_of(const struct tail_policies *policies, const struct tail_policy *policy,
                           const struct tail_facts *facts)
{
    if (policy->is_bit) {
        bool is_set = has_bit(facts->bits, policy->bit);
        if (!is_set && !policy->is_constant)
            return PERHAPS;
        return is_set != policy->is_inverted ? ALWAYS : NEVER;
    }
    if (policy->kind == TAIL_AND || policy->kind == TAIL_DROP)
        return all_truth(policies, policy, facts);
    if (policy->kind != TAIL_COMPOSITE)
        return simple_truth(policies, policy, facts);
    for (size_t i = 0; i < policy->subs_count; i++) {
        const struct tail_policy *sub = &policy->subs[i];
        enum truth truth = sub->kind == TAIL_AND ? all_truth(policies, sub, facts)
                                                 : simple_truth(policies, sub, facts);
        if (truth != NEVER)
            return PERHAPS;
    }
    return NEVER;
}

/* With is_open_for_bits. */
static enum tail_outlook outlook_of_bits(const struct tail_policies *policies,
                                         const struct tail_facts *facts)
{
    for (size_t i = 0; i < policies->words; i++)
        if (((facts->bits[i] & policies->sampling_bits[i]) |
             (~facts->bits[i] & policies->sampling_gaps[i])) != 0)
            return TAIL_WILL_SAMPLE;
    for (size_t i = 0; i < policies->wide_count; i++)
        if (truth_of(policies, &policies->items[policies->wide[i]], facts) == ALWAYS)
            return TAIL_WILL_SAMPLE;
    return TAIL_OPEN;
}

enum tail_outlook tail_policies_outlook(const struct tail_policies *policies,
                                        const struct tail_facts *facts)
{
    bool may_drop = false;
    bool may_sample = false;
    if (policies->is_open_for_bits)
        return outlook_of_bits(policies, facts);
    for (size_t i = 0; i < policies->count; i++) {
        enum truth truth = truth_of(policies, &policies->items[i], facts);
        bool drops = i < policies->drops;
        if (truth == ALWAYS && drops)
            return TAIL_WILL_NOT_SAMPLE;
        if (truth == ALWAYS && !may_drop)
            return TAIL_WILL_SAMPLE;
        may_drop |= drops && truth != NEVER;
        may_sample |= !drops && truth != NEVER;
    }
    return may_sample ? TAIL_OPEN : TAIL_WILL_NOT_SAMPLE;
}
