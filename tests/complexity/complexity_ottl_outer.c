/* SPDX-License-Identifier: Apache-2.0 */
/* OTTL where statements of inner records look at outer ones: both the bytes of the outer record and
 * the number of inner ones grow. */
#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_runner.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

/* ---- Spans of a Resource ---- */

enum { SPANS = 2, RESOURCE = 1, SPAN_ATTRIBUTES = 9, RESOURCE_ATTRIBUTES = 1 };

/* Ends the Resource that has been written, and gives it n spans, each with an attribute whose value
 * is the name of one of its keys. */
static struct slice spans_done(struct profile_bytes *out, size_t n)
{
    char name[32];
    profile_bytes_wrap(out, 0, RESOURCE);
    size_t scope = out->size;
    for (size_t i = 0; i < n; i++) {
        size_t begin = out->size;
        put_attribute(out, SPAN_ATTRIBUTES, "a", name_of(name, i));
        profile_bytes_wrap(out, begin, SPANS);
    }
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice many_keys(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, name_of(name, i), "v");
    return spans_done(&out, n);
}

static struct slice one_key(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, "k", "v");
    return spans_done(&out, n);
}

/* Of two keys that are deleted, and one that is not. */
static struct slice mixed_keys(size_t n)
{
    static const char *const keys[] = {"k", "x", "l", "k", "l", "x"};
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, keys[i % 6], "v");
    return spans_done(&out, n);
}

/* The same keys in an attribute's map. */
static struct slice map_of_keys(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    put_text(&out, 1, "m");
    size_t value = out.size;
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, name_of(name, i), "v");
    profile_bytes_wrap(&out, value, 6);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, 0, RESOURCE_ATTRIBUTES);
    return spans_done(&out, n);
}

static const struct work_shape span_shapes[] = {
    {"many keys", many_keys},
    {"one key", one_key},
    {"mixed keys", mixed_keys},
    {"a map of keys", map_of_keys},
};

/* A text that is no JSON at its end. */
static struct slice long_text(size_t n)
{
    struct profile_bytes out = {0};
    put_text(&out, 1, "t");
    size_t value = out.size;
    size_t text = out.size;
    profile_bytes_add(&out, slice_of_text("[1"));
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text(",1"));
    profile_bytes_wrap(&out, text, 1);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, 0, RESOURCE_ATTRIBUTES);
    return spans_done(&out, n);
}

static const struct work_shape large_shapes[] = {
    {"many keys", many_keys},
    {"a map of keys", map_of_keys},
    {"a long text", long_text},
};

/* ---- Samples of a profile ---- */

enum { STRING_TABLE = 5, ATTRIBUTE_TABLE = 6, PROFILE_ATTRIBUTES = 11, VALUES = 4 };

/* Puts the profiles into a scope, and the dictionary behind them. */
static struct slice profiles_done(struct profile_bytes *out, struct profile_bytes *dictionary)
{
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    profile_bytes_wrap(dictionary, 0, 2);
    profile_bytes_add(out, profile_bytes_slice(dictionary));
    profile_bytes_fini(dictionary);
    return message_done(out);
}

/* With n attributes and n samples. */
static struct slice profile_attributes(size_t n)
{
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    char name[32];
    put_text(&dictionary, STRING_TABLE, "");
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "", 0);
    for (size_t i = 0; i < n; i++) {
        put_text(&dictionary, STRING_TABLE, name_of(name, i));
        size_t begin = dictionary.size;
        put_number(&dictionary, 1, 1 + i);
        put_bytes(&dictionary, 2, "\012\001v", 3);
        profile_bytes_wrap(&dictionary, begin, ATTRIBUTE_TABLE);
    }
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_number(&out, VALUES, 1);
        profile_bytes_wrap(&out, begin, 2);
    }
    for (size_t i = 0; i < n; i++)
        put_number(&out, PROFILE_ATTRIBUTES, 1 + i);
    profile_bytes_wrap(&out, 0, 2);
    return profiles_done(&out, &dictionary);
}

/* Samples with an attribute that is asked for, and a list of n items that is not. */
static struct slice shared_list(size_t n)
{
    enum { SAMPLE_ATTRIBUTES = 2, LIST = 5 };
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    put_text(&dictionary, STRING_TABLE, "");
    put_text(&dictionary, STRING_TABLE, "k000007");
    put_text(&dictionary, STRING_TABLE, "list");
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "", 0);
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "\010\001\022\003\012\001v", 7);
    size_t begin = dictionary.size;
    put_number(&dictionary, 1, 2);
    size_t value = dictionary.size;
    for (size_t i = 0; i < n; i++)
        put_bytes(&dictionary, 1, "", 0);
    profile_bytes_wrap(&dictionary, value, LIST);
    profile_bytes_wrap(&dictionary, value, 2);
    profile_bytes_wrap(&dictionary, begin, ATTRIBUTE_TABLE);
    for (size_t i = 0; i < n; i++) {
        begin = out.size;
        put_number(&out, SAMPLE_ATTRIBUTES, 1);
        put_number(&out, SAMPLE_ATTRIBUTES, 2);
        profile_bytes_wrap(&out, begin, 2);
    }
    profile_bytes_wrap(&out, 0, 2);
    return profiles_done(&out, &dictionary);
}

/* A sample that names an attribute n times, and one that names another; keys of n bytes that differ
 * in the last. */
static struct slice shared_key(size_t n)
{
    enum { SAMPLE_ATTRIBUTES = 2 };
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    char *key = mem_alloc(n + 1);
    memset(key, 'k', n);
    key[n] = 0;
    put_text(&dictionary, STRING_TABLE, "");
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "", 0);
    for (unsigned i = 1; i <= 2; i++) {
        key[n - 1] = (char)('0' + i);
        put_text(&dictionary, STRING_TABLE, key);
        size_t begin = dictionary.size;
        put_number(&dictionary, 1, i);
        put_bytes(&dictionary, 2, "\012\001v", 3);
        profile_bytes_wrap(&dictionary, begin, ATTRIBUTE_TABLE);
    }
    mem_free(key);
    for (unsigned i = 1; i <= 2; i++) {
        size_t begin = out.size;
        for (size_t j = 0; j < (i == 1 ? n : 1); j++)
            put_number(&out, SAMPLE_ATTRIBUTES, i);
        profile_bytes_wrap(&out, begin, 2);
    }
    for (size_t i = 0; i < n; i++)
        put_number(&out, PROFILE_ATTRIBUTES, 1);
    profile_bytes_wrap(&out, 0, 2);
    return profiles_done(&out, &dictionary);
}

static const struct work_shape profile_shapes[] = {
    {"attributes of a profile", profile_attributes},
    {"a shared list", shared_list},
};

/* n profiles whose type of samples has a name of n bytes. */
static struct slice shared_type(size_t n)
{
    enum { SAMPLE_TYPE = 1 };
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    char *name = mem_alloc(n + 1);
    memset(name, 't', n);
    name[n] = 0;
    put_text(&dictionary, STRING_TABLE, "");
    put_text(&dictionary, STRING_TABLE, name);
    mem_free(name);
    for (size_t i = 0; i < n; i++) {
        const size_t profile = out.size;
        put_bytes(&out, SAMPLE_TYPE, "\010\001", 2);
        profile_bytes_wrap(&out, profile, 2);
    }
    return profiles_done(&out, &dictionary);
}

static const struct work_shape type_shapes[] = {
    {"a shared type", shared_type},
};

/* n samples of a profile whose type of samples is said n times. */
static struct slice repeated_type(size_t n)
{
    enum { SAMPLE_TYPE = 1, TYPE = 1, SAMPLES = 2 };
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    put_text(&dictionary, STRING_TABLE, "");
    put_text(&dictionary, STRING_TABLE, "t");
    for (size_t i = 0; i < n; i++)
        put_number(&out, TYPE, 1);
    profile_bytes_wrap(&out, 0, SAMPLE_TYPE);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, SAMPLES, "", 0);
    profile_bytes_wrap(&out, 0, 2);
    return profiles_done(&out, &dictionary);
}

static const struct work_shape repeated_type_shapes[] = {
    {"a repeated type", repeated_type},
};

/* n samples of a profile that names an attribute n times, in one field. */
static struct slice packed_indices(size_t n)
{
    enum { SAMPLES = 2 };
    struct profile_bytes out = {0};
    struct profile_bytes dictionary = {0};
    put_text(&dictionary, STRING_TABLE, "");
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "", 0);
    for (size_t i = 0; i < n; i++)
        put_varint(&out, 0);
    profile_bytes_wrap(&out, 0, PROFILE_ATTRIBUTES);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, SAMPLES, "", 0);
    profile_bytes_wrap(&out, 0, 2);
    return profiles_done(&out, &dictionary);
}

static const struct work_shape index_shapes[] = {
    {"packed indices", packed_indices},
};

static const struct work_shape key_shapes[] = {
    {"a shared key", shared_key},
};

/* ---- Events of a span ---- */

enum { EVENTS = 11 };

static struct slice span_done(struct profile_bytes *out)
{
    profile_bytes_wrap(out, 0, SPANS);
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice events(size_t n)
{
    enum { NAME = 2 };
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_text(&out, NAME, "e");
        profile_bytes_wrap(&out, begin, EVENTS);
    }
    return span_done(&out);
}

static const struct work_shape event_shapes[] = {
    {"events", events},
};

/* n events of a span whose status says its code n times. */
static struct slice repeated_code(size_t n)
{
    enum { STATUS = 15, CODE = 3 };
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_number(&out, CODE, 1);
    profile_bytes_wrap(&out, 0, STATUS);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, EVENTS, "", 0);
    return span_done(&out);
}

static const struct work_shape status_shapes[] = {
    {"a repeated code", repeated_code},
};

/* n events of a span that has a text of n bytes twice. */
static struct slice equal_texts(size_t n)
{
    enum { TRACE_STATE = 3, NAME = 5 };
    struct profile_bytes out = {0};
    char *text = mem_alloc(n + 1);
    memset(text, 't', n);
    text[n] = 0;
    put_text(&out, TRACE_STATE, text);
    put_text(&out, NAME, text);
    mem_free(text);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, EVENTS, "", 0);
    return span_done(&out);
}

static const struct work_shape text_shapes[] = {
    {"equal texts", equal_texts},
};

/* n events of a span with two equal maps of n keys. */
static struct slice equal_maps(size_t n)
{
    struct profile_bytes out = {0};
    put_map_attribute(&out, SPAN_ATTRIBUTES, "m", n);
    put_map_attribute(&out, SPAN_ATTRIBUTES, "l", n);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, EVENTS, "", 0);
    return span_done(&out);
}

static const struct work_shape equal_map_shapes[] = {
    {"equal maps", equal_maps},
};

/* ---- Exemplars of a point ---- */

/* n exemplars of a point whose buckets say their offset and one count n times. */
static struct slice repeated_buckets(size_t n)
{
    enum { POSITIVE = 8, EXEMPLARS = 11, EXPONENTIAL = 10, METRICS_OF_SCOPE = 2, OFFSET = 1 };
    enum { COUNTS = 2, POINTS = 1 };
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_number(&out, OFFSET, 2);
    size_t counts = out.size;
    for (size_t i = 0; i < n; i++)
        put_varint(&out, 1);
    profile_bytes_wrap(&out, counts, COUNTS);
    profile_bytes_wrap(&out, 0, POSITIVE);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, EXEMPLARS, "", 0);
    profile_bytes_wrap(&out, 0, POINTS);
    profile_bytes_wrap(&out, 0, EXPONENTIAL);
    profile_bytes_wrap(&out, 0, METRICS_OF_SCOPE);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape bucket_shapes[] = {
    {"repeated buckets", repeated_buckets},
};

/* ---- Stages ---- */

static void run(struct slice input, enum signal_kind signal, enum ottl_context context,
                const char *const *statements, size_t count)
{
    struct error error;
    struct ottl_runner runner;
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_TRANSFORM);
    struct ottl_group group = {.context = context,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_SILENT,
                               .statements = statements,
                               .statements_count = count};
    struct batch *batch = message_batch(signal, input);
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    work_begin();
    struct ottl_result result = ottl_runner_run(&runner, batch);
    work_end();
    assert(result.verdict == OTTL_PASSED);
    work_produced(result.batch->bytes);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define STAGE(name, signal, context, ...)                                                          \
    static void run_##name(struct slice input)                                                     \
    {                                                                                              \
        static const char *const statements[] = {__VA_ARGS__};                                     \
        run(input, signal, context, statements, COUNT_OF(statements));                             \
    }

STAGE(removed, TRACES, OTTL_SPAN, "delete_key(resource.attributes, \"k\")",
      "delete_key(resource.attributes, \"l\")")
STAGE(removed_by_name, TRACES, OTTL_SPAN, "delete_key(resource.attributes, attributes[\"a\"])")
STAGE(removed_from_map, TRACES, OTTL_SPAN,
      "delete_key(resource.attributes[\"m\"], attributes[\"a\"])")

static const struct work_stage span_stages[] = {
    {.name = "delete keys", .run = run_removed, .per_byte_max = 20},
    {.name = "delete keys by name", .run = run_removed_by_name, .per_byte_max = 20},
    {.name = "delete keys from a map", .run = run_removed_from_map, .per_byte_max = 20},
};

/* What reads outer records alone is evaluated once. */
STAGE(lower, TRACES, OTTL_SPAN,
      "set(attributes[\"n\"], Len(ToLowerCase(resource.attributes[\"t\"])))")
STAGE(condition, TRACES, OTTL_SPAN,
      "set(attributes[\"n\"], 1) where Len(SHA256(resource.attributes[\"t\"])) == "
      "Len(attributes[\"a\"])")
STAGE(failure, TRACES, OTTL_SPAN,
      "set(attributes[\"n\"], ParseJSON(resource.attributes[\"t\"])[0])")
STAGE(map, TRACES, OTTL_SPAN, "set(attributes[\"n\"], Len(Keys(resource.attributes)))")
/* What reads inner ones, too, or changes outer ones, has an end. */
STAGE(joined, TRACES, OTTL_SPAN,
      "set(attributes[\"n\"], Len(Concat([resource.attributes[\"t\"], name], \"\")))")
STAGE(merged, TRACES, OTTL_SPAN, "merge_maps(attributes, resource.attributes, \"update\")")
STAGE(merged_map, TRACES, OTTL_SPAN,
      "merge_maps(attributes, resource.attributes[\"m\"], \"update\")")
STAGE(truncated, TRACES, OTTL_SPAN, "truncate_all(resource.attributes, 8)")
STAGE(replaced, TRACES, OTTL_SPAN,
      "replace_all_patterns(resource.attributes, \"value\", \"z\", \"y\")")
STAGE(copied, TRACES, OTTL_SPAN, "set(cache[\"r\"], resource.attributes)")
STAGE(listed, TRACES, OTTL_SPAN,
      "set(attributes[\"n\"], 1) where [resource.attributes, name] == [resource.attributes[\"m\"], "
      "name]")
STAGE(kept, TRACES, OTTL_SPAN, "keep_matching_keys(resource.attributes, \"k|t|m\")")

/* OTTL_OUTER_BYTES_MIN counts more in small requests. */
enum { LARGE_N = 20000, KEY_N = 200 * 1000, REPEATED_N = 100 * 1000 };

static const struct work_stage large_stages[] = {
    {.name = "lower case", .run = run_lower, .n = LARGE_N, .per_byte_max = 40},
    {.name = "condition", .run = run_condition, .n = LARGE_N, .per_byte_max = 40},
    {.name = "failure", .run = run_failure, .n = LARGE_N, .per_byte_max = 40},
    {.name = "keys", .run = run_map, .n = LARGE_N, .per_byte_max = 40},
    {.name = "concatenated", .run = run_joined, .n = LARGE_N, .per_byte_max = 40},
    {.name = "merged", .run = run_merged, .n = LARGE_N, .per_byte_max = 40},
    {.name = "merged from a map", .run = run_merged_map, .n = LARGE_N, .per_byte_max = 40},
    {.name = "truncated", .run = run_truncated, .n = LARGE_N, .per_byte_max = 40},
    {.name = "replaced", .run = run_replaced, .n = LARGE_N, .per_byte_max = 40},
    {.name = "copied", .run = run_copied, .n = LARGE_N, .per_byte_max = 45},
    {.name = "in a list", .run = run_listed, .n = LARGE_N, .per_byte_max = 100},
    {.name = "kept", .run = run_kept, .n = LARGE_N, .per_byte_max = 40},
};

STAGE(read, PROFILES, OTTL_PROFILE_SAMPLE,
      "set(attributes[\"n\"], profile.attributes[\"k000007\"])")
STAGE(written, PROFILES, OTTL_PROFILE_SAMPLE, "set(profile.attributes[\"n\"], link_index)",
      "set(attributes[\"n\"], profile.attributes[\"k000007\"])")

STAGE(sample, PROFILES, OTTL_PROFILE_SAMPLE, "set(attributes[\"n\"], attributes[\"k000007\"])")
STAGE(sample_written, PROFILES, OTTL_PROFILE_SAMPLE, "delete_key(attributes, \"k000007\")")

static const struct work_stage profile_stages[] = {
    {.name = "read samples", .run = run_sample, .n = LARGE_N, .per_byte_max = 90},
    {.name = "write samples", .run = run_sample_written, .n = LARGE_N, .per_byte_max = 400},
    {.name = "read a profile", .run = run_read, .n = LARGE_N, .per_byte_max = 60},
    {.name = "write a profile", .run = run_written, .n = LARGE_N, .per_byte_max = 130},
};

STAGE(profile_written, PROFILES, OTTL_PROFILE_SAMPLE, "delete_key(profile.attributes, \"k\")")
STAGE(named_by_another, PROFILES, OTTL_PROFILE_SAMPLE,
      "set(cache[\"v\"], profile.attributes[Keys(attributes)[0]])")
STAGE(set_by_another, PROFILES, OTTL_PROFILE_SAMPLE,
      "set(profile.attributes[Keys(attributes)[0]], \"w\")")

static const struct work_stage key_stages[] = {
    {.name = "shared keys of samples", .run = run_sample_written, .n = KEY_N, .per_byte_max = 20},
    {.name = "shared keys of a profile",
     .run = run_profile_written,
     .n = KEY_N,
     .per_byte_max = 20},
    {.name = "a shared key that a sample names",
     .run = run_named_by_another,
     .n = KEY_N,
     .per_byte_max = 20},
    {.name = "a shared key that a sample sets",
     .run = run_set_by_another,
     .n = KEY_N,
     .per_byte_max = 20},
};

STAGE(type_read, PROFILES, OTTL_PROFILE,
      "set(profile.time_unix_nano, 7) where ToUpperCase(profile.sample_type.type) == \"CPU\"")
STAGE(type_set, PROFILES, OTTL_PROFILE, "set(profile.sample_type.unit, profile.sample_type.type)")

static const struct work_stage type_stages[] = {
    {.name = "shared types", .run = run_type_read, .n = KEY_N, .per_byte_max = 170},
    {.name = "shared types that are set", .run = run_type_set, .n = KEY_N, .per_byte_max = 20},
};

STAGE(counted, TRACES, OTTL_SPAN_EVENT, "set(attributes[\"n\"], Len(span.events))")
STAGE(counted_changed, TRACES, OTTL_SPAN_EVENT, "set(span.name, \"x\")",
      "set(attributes[\"n\"], Len(span.events))")

static const struct work_stage event_stages[] = {
    {.name = "count events", .run = run_counted, .n = LARGE_N, .per_byte_max = 60},
    {.name = "count events of a changed span",
     .run = run_counted_changed,
     .n = LARGE_N,
     .per_byte_max = 300},
};

STAGE(status_read, TRACES, OTTL_SPAN_EVENT,
      "set(span.attributes[\"failed\"], true) where span.status.code == STATUS_CODE_ERROR")

static const struct work_stage status_stages[] = {
    {.name = "a status of a changed span",
     .run = run_status_read,
     .n = REPEATED_N,
     .per_byte_max = 250},
};

STAGE(texts_compared, TRACES, OTTL_SPAN_EVENT, "set(span.kind, SPAN_KIND_SERVER)",
      "set(attributes[\"n\"], 1) where span.name == span.trace_state")
STAGE(lists_compared, TRACES, OTTL_SPAN_EVENT,
      "set(attributes[\"n\"], 1) where [span.name, name] == [span.trace_state, name]")

static const struct work_stage text_stages[] = {
    {.name = "compared texts", .run = run_texts_compared, .n = REPEATED_N, .per_byte_max = 30},
    {.name = "compared lists", .run = run_lists_compared, .n = REPEATED_N, .per_byte_max = 30},
};

STAGE(maps_compared, TRACES, OTTL_SPAN_EVENT, "set(span.kind, SPAN_KIND_SERVER)",
      "set(attributes[\"n\"], 1) where span.attributes[\"m\"] == span.attributes[\"l\"]")

static const struct work_stage equal_map_stages[] = {
    {.name = "compared maps", .run = run_maps_compared, .n = LARGE_N, .per_byte_max = 60},
};

STAGE(type_of_samples, PROFILES, OTTL_PROFILE_SAMPLE, "set(profile.time_unix_nano, 7)",
      "set(cache[\"t\"], profile.sample_type.type)")

static const struct work_stage repeated_type_stages[] = {
    {.name = "a type of a changed profile",
     .run = run_type_of_samples,
     .n = REPEATED_N,
     .per_byte_max = 250},
};

STAGE(indices_counted, PROFILES, OTTL_PROFILE_SAMPLE, "set(profile.time_unix_nano, 7)",
      "set(cache[\"n\"], Len(profile.attribute_indices))")

static const struct work_stage index_stages[] = {
    {.name = "indices of a changed profile",
     .run = run_indices_counted,
     .n = REPEATED_N,
     .per_byte_max = 450},
};

STAGE(offset, METRICS, OTTL_EXEMPLAR, "set(datapoint.flags, 1)",
      "set(int_value, datapoint.positive.offset)")
STAGE(bucket_counts, METRICS, OTTL_EXEMPLAR, "set(datapoint.flags, 1)",
      "set(int_value, Len(datapoint.positive.bucket_counts))")

static const struct work_stage bucket_stages[] = {
    {.name = "an offset of a changed point",
     .run = run_offset,
     .n = REPEATED_N,
     .per_byte_max = 200},
    {.name = "counts of a changed point",
     .run = run_bucket_counts,
     .n = REPEATED_N,
     .per_byte_max = 400},
};

#define CHECK(stages, shapes)                                                                      \
    work_check(stages, COUNT_OF(stages), shapes, COUNT_OF(shapes), argc, argv)

int main(int argc, char **argv)
{
    return CHECK(span_stages, span_shapes) + CHECK(large_stages, large_shapes) +
               CHECK(profile_stages, profile_shapes) + CHECK(key_stages, key_shapes) +
               CHECK(type_stages, type_shapes) + CHECK(event_stages, event_shapes) +
               CHECK(status_stages, status_shapes) + CHECK(text_stages, text_shapes) +
               CHECK(equal_map_stages, equal_map_shapes) +
               CHECK(repeated_type_stages, repeated_type_shapes) +
               CHECK(index_stages, index_shapes) + CHECK(bucket_stages, bucket_shapes) >
           0;
}
