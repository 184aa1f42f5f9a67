/* SPDX-License-Identifier: Apache-2.0 */
/* Each record gets its randomness (from its trace id, an attribute, or what a sampler before us
 * left), a threshold, and then maybe another threshold by its priority. What is kept carries the
 * threshold on. Runs on the owner's thread. */
#include "src/records/record_sampler.h"

#include <assert.h>
#include <string.h>

#include "src/core/batch.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/records/record_limits.h"
#include "src/records/trace_state.h"

enum {
    SPAN_TRACE_ID = 1,
    SPAN_TRACE_STATE = 3,
    SPAN_ATTRIBUTES = 9,
    LOG_ATTRIBUTES = 6,
    LOG_TRACE_ID = 9,
    ID_BYTES = 16,
    HASH_BITS = 14,
    HASH_BUCKETS = 1 << HASH_BITS,
    UPPER_SHIFT = 42, /* of 14 bits in 56 */
    MIXED_SHIFT = 14,
    RANDOM_BYTES = 7,
};

static const char priority_key[] = "sampling.priority";
static const char threshold_key[] = "sampling.threshold";
static const char randomness_key[] = "sampling.randomness";

/* A record on its way to the decision. */
struct decision {
    enum sampling_policy policy;
    uint64_t randomness;
    bool has_error;
    /* What it carries of earlier sampling is known, and can be updated. */
    bool has_carrier;
    bool has_threshold; /* an earlier one */
    uint64_t threshold_before;
    uint64_t threshold; /* ours */
    bool is_sampled;
};

void record_sampler_init(struct record_sampler *sampler,
                         const struct record_sampler_settings *settings, struct budget *budget)
{
    *sampler = (struct record_sampler){.settings = *settings};
    float percentage = settings->percentage > 100 ? 100 : settings->percentage;
    attribute_list_init(&sampler->list, RECORD_VALUES_BYTES_MAX, budget);
    sampler->is_never = percentage == 0;
    sampler->ratio = (double)percentage / 100;
    if (sampler->ratio < SAMPLING_RATIO_MIN)
        sampler->ratio = SAMPLING_RATIO_MIN;
    if (settings->mode == SAMPLING_EQUALIZING) {
        bool is_valid =
            sampling_threshold_of(sampler->ratio, settings->precision, &sampler->threshold);
        assert(is_valid);
    } else if (settings->mode == SAMPLING_HASH_SEED) {
        /* In single precision, as in Go: the same spans must be kept. */
        uint32_t buckets = (uint32_t)(percentage * (float)(HASH_BUCKETS / 100.0));
        sampler->is_never |= buckets == 0;
        sampler->threshold = (uint64_t)(HASH_BUCKETS - buckets) << UPPER_SHIFT;
    }
}

void record_sampler_fini(struct record_sampler *sampler)
{
    attribute_list_fini(&sampler->list);
}

/* FNV-1a over the seed and the bytes, of which 14 bits decide. */
static uint64_t randomness_of(struct slice bytes, uint32_t seed)
{
    uint32_t hash = 2166136261U;
    for (unsigned i = 0; i < sizeof(seed); i++)
        hash = (hash ^ (seed >> 8 * i & 0xff)) * 16777619U;
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ bytes.data[i]) * 16777619U;
    uint64_t bucket = hash & (HASH_BUCKETS - 1);
    uint64_t unused = hash >> (32 - HASH_BITS);
    uint64_t mixed = unused ^ unused << 10;
    return (HASH_BUCKETS - 1 - bucket) << UPPER_SHIFT | mixed << MIXED_SHIFT | bucket;
}

static uint64_t randomness_of_id(struct slice id)
{
    uint64_t randomness = 0;
    for (size_t i = ID_BYTES - RANDOM_BYTES; i < ID_BYTES; i++)
        randomness = randomness << 8 | id.data[i];
    return randomness;
}

static bool is_empty_id(struct slice id)
{
    static const uint8_t zeros[ID_BYTES];
    return id.size != ID_BYTES || memcmp(id.data, zeros, ID_BYTES) == 0;
}

/* The part of the decision that spans and log records share. */
static void decide(const struct record_sampler *sampler, struct decision *decision)
{
    decision->threshold = SAMPLING_NEVER;
    if (!decision->has_error && decision->policy == SAMPLED_WITHOUT_RANDOMNESS)
        decision->has_error = true;
    if (!decision->has_error && decision->has_threshold &&
        decision->threshold_before > decision->randomness) {
        /* It should not have been sampled by that threshold, which is a lie. */
        decision->has_threshold = false;
        decision->has_error = true;
    }
    if (decision->has_error) {
        if (!sampler->settings.fails_closed)
            decision->threshold = SAMPLING_ALWAYS;
    } else if (sampler->is_never) {
        decision->threshold = SAMPLING_NEVER;
    } else if (sampler->settings.mode == SAMPLING_PROPORTIONAL) {
        double before =
            decision->has_threshold ? sampling_ratio_of(decision->threshold_before) : 1.0;
        if (!sampling_threshold_of(before * sampler->ratio, sampler->settings.precision,
                                   &decision->threshold))
            decision->threshold = SAMPLING_NEVER;
    } else {
        decision->threshold = sampler->threshold;
        if (sampler->settings.mode == SAMPLING_EQUALIZING && decision->has_threshold &&
            decision->threshold_before > decision->threshold)
            decision->threshold = decision->threshold_before;
    }
}

static void conclude(struct record_sampler *sampler, struct decision *decision)
{
    decision->is_sampled = decision->threshold <= decision->randomness;
    sampler->counts[decision->policy][decision->is_sampled]++;
}

/* ---- Spans ---- */

struct span_parts {
    struct slice id;
    struct slice state; /* tracestate */
    struct slice priority;
    bool has_priority;
};

static void read_attribute(struct slice bytes, struct slice *ret_key, struct slice *ret_value)
{
    enum { KEY = 1, VALUE = 2 };
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    *ret_key = *ret_value = slice_of(NULL, 0);
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY)
            *ret_key = field.bytes;
        if (field.number == VALUE)
            *ret_value = field.bytes;
    }
}

static struct span_parts read_span(struct slice content)
{
    struct span_parts parts = {.has_priority = false};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct slice key;
    struct slice value;
    while (wire_next_field(&reader, &field)) {
        if (field.number == SPAN_TRACE_ID)
            parts.id = field.bytes;
        if (field.number == SPAN_TRACE_STATE)
            parts.state = field.bytes;
        if (field.number != SPAN_ATTRIBUTES || parts.has_priority)
            continue;
        read_attribute(field.bytes, &key, &value);
        parts.has_priority = slice_equal_text(key, priority_key);
        if (parts.has_priority)
            parts.priority = value;
    }
    assert(reader.failure == NULL);
    return parts;
}

/* Of a number, or a string that is one: 0 drops the span, more keeps it. */
static void apply_span_priority(struct slice encoded, struct decision *decision)
{
    struct value value = value_read(encoded);
    double priority = -1;
    if (value.type == VALUE_INT)
        priority = value.integer == 0 ? 0 : value.integer > 0 ? 1 : -1;
    else if (value.type == VALUE_DOUBLE)
        priority = value.real;
    else if (value.type != VALUE_STRING || !string_to_double(value.bytes, &priority))
        return;
    if (priority != 0 && !(priority > 0))
        return;
    decision->threshold = priority == 0 ? SAMPLING_NEVER : SAMPLING_ALWAYS;
    decision->policy = SAMPLED_BY_PRIORITY;
}

static void put_trace_state(struct record_edit *edit, const struct wire_field *span,
                            struct slice before, struct slice text)
{
    struct slice old = slice_of(span->bytes.data + span->bytes.size, 0);
    struct wire_reader reader = wire_reader_of(span->bytes);
    struct wire_field field;
    if (slice_equal(before, text))
        return;
    size_t opened = record_open(edit, span);
    while (wire_next_field(&reader, &field)) {
        if (field.number != SPAN_TRACE_STATE)
            continue;
        if (old.size > 0)
            record_remove(edit, old);
        old = field.whole;
    }
    size_t size = wire_field_size(SPAN_TRACE_STATE, text.size);
    uint8_t *room = record_replace(edit, old, size);
    if (room != NULL) {
        struct wire_writer writer = wire_writer_of(room, size);
        wire_write_bytes(&writer, SPAN_TRACE_STATE, text);
        assert(!writer.has_failed && writer.at == writer.end);
    }
    record_close(edit, opened, span);
}

static bool sample_span(struct record_sampler *sampler, struct record_edit *edit,
                        const struct wire_field *span)
{
    struct trace_state state;
    char digits[2][SAMPLING_DIGITS];
    struct span_parts parts = read_span(span->bytes);
    bool has_id = !is_empty_id(parts.id);
    struct decision decision = {
        .policy = SAMPLED_WITHOUT_RANDOMNESS,
        .randomness = SAMPLING_MOST_RANDOM,
        .has_error = !trace_state_read(parts.state, &state),
    };
    decision.has_carrier = !decision.has_error || sampler->is_never;
    if (sampler->is_never) {
        decision.policy = SAMPLED_BY_PRIORITY;
    } else if (sampler->settings.mode == SAMPLING_HASH_SEED) {
        if (has_id) {
            decision.policy = SAMPLED_BY_TRACE_ID_HASH;
            decision.randomness = randomness_of(parts.id, sampler->settings.hash_seed);
        }
        if (!decision.has_error && (state.has_randomness || state.has_threshold)) {
            /* Another kind of sampling is in use. */
            decision.has_error = true;
            decision.has_carrier = false;
        } else if (!decision.has_error) {
            state.has_randomness = true;
            state.randomness_text = sampling_write_randomness(decision.randomness, digits[0]);
        }
    } else if (!decision.has_error && state.has_randomness) {
        decision.policy = SAMPLED_BY_RANDOMNESS;
        decision.randomness = state.randomness;
    } else if (!decision.has_error && has_id) {
        decision.policy = SAMPLED_BY_TRACE_ID;
        decision.randomness = randomness_of_id(parts.id);
    }
    decision.has_threshold = decision.has_carrier && state.has_threshold;
    decision.threshold_before = decision.has_threshold ? state.threshold : 0;
    decide(sampler, &decision);
    if (parts.has_priority)
        apply_span_priority(parts.priority, &decision);
    conclude(sampler, &decision);
    if (!decision.is_sampled || !decision.has_carrier)
        return decision.is_sampled;
    /* The probability may only fall. */
    if (!decision.has_threshold || decision.threshold_before <= decision.threshold) {
        state.has_threshold = true;
        state.threshold_text = sampling_write_threshold(decision.threshold, digits[1]);
    }
    char room[TRACE_STATE_WRITTEN_MAX];
    put_trace_state(edit, span, parts.state, trace_state_write(&state, room));
    return true;
}

/* ---- Log records ---- */

/* The attribute's string; empty: it has none. */
static struct slice log_text(const struct record_sampler *sampler, const char *key)
{
    const struct attribute *attribute = attribute_list_find(&sampler->list, slice_of_text(key));
    if (attribute == NULL)
        return slice_of(NULL, 0);
    struct value value = value_read(attribute->value);
    return value.type == VALUE_STRING ? value.bytes : slice_of(NULL, 0);
}

static void put_log_text(struct record_sampler *sampler, const char *key, struct slice text)
{
    struct slice encoded;
    if (value_write_string(&sampler->list.arena, text, &encoded))
        attribute_list_put(&sampler->list, slice_of_text(key), encoded);
}

/* The randomness of hash_seed: of the trace id, else of the attribute. */
static void hash_log_record(struct record_sampler *sampler, struct slice id,
                            struct decision *decision)
{
    const struct record_sampler_settings *settings = &sampler->settings;
    if (settings->uses_trace_id && !is_empty_id(id)) {
        decision->policy = SAMPLED_BY_TRACE_ID_HASH;
        decision->randomness = randomness_of(id, settings->hash_seed);
        return;
    }
    if (settings->from_attribute.size == 0)
        return;
    const struct attribute *attribute =
        attribute_list_find(&sampler->list, settings->from_attribute);
    if (attribute == NULL)
        return;
    struct value value = value_read(attribute->value);
    struct slice bytes = value.bytes;
    if (value.type != VALUE_BYTES && value.type != VALUE_STRING &&
        !value_to_string(&sampler->list.arena, attribute->value, &bytes))
        return;
    if (bytes.size == 0)
        return;
    decision->policy = SAMPLED_BY_ATTRIBUTE;
    decision->randomness = randomness_of(bytes, settings->hash_seed);
}

/* A percentage: the record's own threshold. */
static void apply_log_priority(const struct record_sampler *sampler, struct decision *decision)
{
    const struct record_sampler_settings *settings = &sampler->settings;
    if (settings->priority.size == 0)
        return;
    const struct attribute *attribute = attribute_list_find(&sampler->list, settings->priority);
    if (attribute == NULL)
        return;
    struct value value = value_read(attribute->value);
    double ratio = 0;
    if (value.type == VALUE_DOUBLE)
        ratio = value.real / 100;
    if (value.type == VALUE_INT)
        ratio = (double)value.integer / 100;
    if (sampling_threshold_of(ratio, settings->precision, &decision->threshold))
        decision->policy = SAMPLED_BY_PRIORITY;
}

static bool sample_log_record(struct record_sampler *sampler, struct record_edit *edit,
                              const struct wire_field *record)
{
    char digits[SAMPLING_DIGITS];
    struct slice id = slice_of(NULL, 0);
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field field;
    uint64_t randomness = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == LOG_TRACE_ID)
            id = field.bytes;
    record_read_attributes(edit, record->bytes, LOG_ATTRIBUTES, &sampler->list);
    struct slice threshold_text = log_text(sampler, threshold_key);
    struct slice randomness_text = log_text(sampler, randomness_key);
    struct decision decision = {
        .policy = SAMPLED_WITHOUT_RANDOMNESS,
        .randomness = SAMPLING_MOST_RANDOM,
    };
    decision.has_threshold = threshold_text.size > 0 &&
                             sampling_read_threshold(threshold_text, &decision.threshold_before);
    bool has_randomness =
        randomness_text.size > 0 && sampling_read_randomness(randomness_text, &randomness);
    decision.has_error = (threshold_text.size > 0 && !decision.has_threshold) ||
                         (randomness_text.size > 0 && !has_randomness);
    decision.has_carrier = !decision.has_error || sampler->is_never;
    if (sampler->is_never) {
        decision.policy = SAMPLED_BY_PRIORITY;
    } else if (sampler->settings.mode == SAMPLING_HASH_SEED) {
        hash_log_record(sampler, id, &decision);
        if (!decision.has_error && (has_randomness || decision.has_threshold)) {
            decision.has_error = true;
            decision.has_carrier = false;
        } else if (!decision.has_error && decision.policy != SAMPLED_WITHOUT_RANDOMNESS) {
            put_log_text(sampler, randomness_key,
                         sampling_write_randomness(decision.randomness, digits));
        }
    } else if (!decision.has_error && has_randomness) {
        decision.policy = SAMPLED_BY_RANDOMNESS;
        decision.randomness = randomness;
    } else if (!decision.has_error && !is_empty_id(id)) {
        decision.policy = SAMPLED_BY_TRACE_ID;
        decision.randomness = randomness_of_id(id);
    }
    decision.has_threshold = decision.has_carrier && decision.has_threshold;
    bool had_threshold = decision.has_threshold;
    decide(sampler, &decision);
    if (had_threshold && !decision.has_threshold)
        attribute_list_remove(&sampler->list, slice_of_text(threshold_key));
    apply_log_priority(sampler, &decision);
    if (!record_list_is_whole(edit, &sampler->list))
        return true;
    conclude(sampler, &decision);
    if (!decision.is_sampled)
        return false;
    if (decision.has_carrier &&
        (!decision.has_threshold || decision.threshold_before <= decision.threshold))
        put_log_text(sampler, threshold_key, sampling_write_threshold(decision.threshold, digits));
    if (!record_list_is_whole(edit, &sampler->list))
        return true;
    size_t opened = record_open(edit, record);
    record_put_attributes(edit, record->bytes, LOG_ATTRIBUTES, &sampler->list);
    record_close(edit, opened, record);
    return true;
}

static bool sample(void *arg, struct record_edit *edit, const struct wire_field *record)
{
    bool is_kept = edit->batch->signal == TRACES ? sample_span(arg, edit, record)
                                                 : sample_log_record(arg, edit, record);
    edit->dropped += !is_kept;
    return is_kept;
}

struct batch *record_sampler_run(struct record_sampler *sampler, struct record_edit *edit,
                                 struct batch *batch)
{
    const struct record_visitor visitor = {.arg = sampler, .record = sample, .drops_empty = true};
    memset(sampler->counts, 0, sizeof(sampler->counts));
    struct batch *edited = record_edit_run(edit, batch, &visitor);
    attribute_list_clear(&sampler->list);
    return edited;
}
