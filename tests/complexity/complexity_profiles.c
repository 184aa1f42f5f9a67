/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: normalizing, merging and cutting, limits, printing, JSON, the join, pprof. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "connectors/profile_metrics/sample_sums.h"
#include "connectors/profile_metrics/sum_store.h"
#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/pyroscope/pyroscope_form.h"
#include "exporters/pyroscope/pyroscope_memory.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/core/batch.h"
#include "src/explore/flame_tree.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/pending_processes.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/join/profiles/profile_keep.h"
#include "src/join/spans/span_reader.h"
#include "src/otlp/json/json_output.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/text/text.h"
#include "src/otlp/unknown.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_pieces.h"
#include "src/profiles/otlp/profile_queue.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/otlp/profile_transcode.h"
#include "src/profiles/pprof/otlp_to_pprof.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { UNKNOWN = 2000, DEEP = 28 };

/* Strings that every dictionary has: 1 samples, 2 count, 3 cpu, 4 nanoseconds, 5 span_name; the
 * others follow from STRINGS_FIRST on. Index 1 of every other table is a plain entry. */
enum { SAMPLES = 1, COUNT, CPU, NANOSECONDS, SPAN_NAME, STRINGS_FIRST };

enum table { MAPPING = 1, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK };

struct request {
    struct profile_bytes body; /* fields of the request but for the dictionary */
    struct profile_bytes dictionary;
};

static void put_entry(struct request *request, enum table table, size_t begin)
{
    profile_bytes_wrap(&request->dictionary, begin, table);
}

static void put_function(struct request *request, uint64_t name)
{
    size_t begin = request->dictionary.size;
    put_number(&request->dictionary, 1, name);
    put_entry(request, FUNCTION, begin);
}

static void put_location(struct request *request, uint64_t function)
{
    struct profile_bytes *out = &request->dictionary;
    size_t begin = out->size;
    size_t line = out->size;
    put_number(out, 1, function);
    profile_bytes_wrap(out, line, 3);
    put_entry(request, LOCATION, begin);
}

static void put_stack(struct request *request, uint64_t location)
{
    struct profile_bytes *out = &request->dictionary;
    size_t begin = out->size;
    put_varint(out, location);
    profile_bytes_wrap(out, begin, 1);
    put_entry(request, STACK, begin);
}

static void put_link(struct request *request, uint64_t number)
{
    struct profile_bytes *out = &request->dictionary;
    const uint64_t ids[] = {7, 7, number + 1};
    size_t begin = out->size;
    put_bytes(out, 1, ids, 16);
    put_bytes(out, 2, &ids[2], 8);
    put_entry(request, LINK, begin);
}

static void put_dictionary_attribute(struct request *request, uint64_t key, const char *value)
{
    struct profile_bytes *out = &request->dictionary;
    size_t begin = out->size;
    put_number(out, 1, key);
    size_t inner = out->size;
    put_text(out, 1, value);
    profile_bytes_wrap(out, inner, 2);
    put_entry(request, ATTRIBUTE, begin);
}

static struct request request_begin(void)
{
    static const char *const strings[] = {"",    "samples",     "count",
                                          "cpu", "nanoseconds", "span_name"};
    struct request request = {.body.data = NULL};
    for (enum table table = MAPPING; table <= STACK; table++)
        if (table != STRING)
            put_bytes(&request.dictionary, table, "", 0);
    for (size_t i = 0; i < STRINGS_FIRST; i++)
        put_text(&request.dictionary, STRING, strings[i]);
    put_function(&request, CPU);
    put_location(&request, 1);
    put_stack(&request, 1);
    put_link(&request, 0);
    put_dictionary_attribute(&request, SPAN_NAME, "checkout");
    return request;
}

static struct slice request_end(struct request *request)
{
    profile_bytes_wrap(&request->dictionary, 0, 2);
    profile_bytes_add(&request->body, slice_of(request->dictionary.data, request->dictionary.size));
    profile_bytes_fini(&request->dictionary);
    return message_done(&request->body);
}

struct sample {
    uint64_t stack;
    uint64_t attribute;
    uint64_t link;
};

static void put_sample(struct profile_bytes *out, struct sample sample)
{
    size_t begin = out->size;
    put_number(out, 1, sample.stack);
    if (sample.attribute > 0) {
        size_t packed = out->size;
        put_varint(out, sample.attribute);
        profile_bytes_wrap(out, packed, 2);
    }
    if (sample.link > 0)
        put_number(out, 3, sample.link);
    put_bytes(out, 4, "\1", 1);
    put_bytes(out, 5, "\1\2\3\4\5\6\7\7", 8);
    profile_bytes_wrap(out, begin, 2);
}

/* Counts that stand for times. */
static void put_types(struct profile_bytes *out, uint64_t type)
{
    size_t begin = out->size;
    put_number(out, 1, type);
    put_number(out, 2, COUNT);
    profile_bytes_wrap(out, begin, 1);
    begin = out->size;
    put_number(out, 1, CPU);
    put_number(out, 2, NANOSECONDS);
    profile_bytes_wrap(out, begin, 5);
    put_number(out, 6, 1000);
}

static void put_profile(struct profile_bytes *out, uint64_t type, struct sample sample)
{
    size_t begin = out->size;
    put_types(out, type);
    put_sample(out, sample);
    profile_bytes_wrap(out, begin, 2);
}

/* What was written since `begin` becomes the samples of a Profile, in a scope, in a resource. */
static void enclose(struct profile_bytes *out, size_t begin)
{
    size_t types = out->size;
    put_types(out, SAMPLES);
    assert(out->size > types);
    profile_bytes_wrap(out, begin, 2);
    profile_bytes_wrap(out, begin, 2);
    profile_bytes_wrap(out, 0, 1);
}

static const struct sample plain = {.stack = 1, .attribute = 1, .link = 1};

static struct slice plain_samples(size_t n)
{
    struct request request = request_begin();
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, plain);
    enclose(&request.body, 0);
    return request_end(&request);
}

static struct slice empty_profiles(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&request.body, 1, name_of(name, i), "v");
    profile_bytes_wrap(&request.body, 0, 1);
    size_t scope = request.body.size;
    for (size_t i = 0; i < n; i++)
        put_bytes(&request.body, 2, "\x0a\0\x2a\0", 4);
    profile_bytes_wrap(&request.body, scope, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

static struct slice empty_scopes(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&request.body, 1, name_of(name, i), "v");
    profile_bytes_wrap(&request.body, 0, 1);
    for (size_t i = 0; i < n; i++) {
        size_t scope = request.body.size;
        put_bytes(&request.body, 2, "\x0a\0\x2a\0", 4);
        profile_bytes_wrap(&request.body, scope, 2);
    }
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

static struct slice profiles_of_types(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&request.dictionary, STRING, name_of(name, i));
        put_profile(&request.body, STRINGS_FIRST + i, plain);
    }
    profile_bytes_wrap(&request.body, 0, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

static struct slice resources_of_one_profile(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = request.body.size;
        put_attribute(&request.body, 1, "service.name", name_of(name, i));
        put_attribute(&request.body, 1, "process.pid", name_of(name, i));
        profile_bytes_wrap(&request.body, begin, 1);
        size_t scope = request.body.size;
        put_profile(&request.body, SAMPLES, plain);
        profile_bytes_wrap(&request.body, scope, 2);
        profile_bytes_wrap(&request.body, begin, 1);
    }
    return request_end(&request);
}

/* Everything different: strings, functions, locations, stacks, links, attributes. */
static struct slice different_samples(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&request.dictionary, STRING, name_of(name, i));
        put_function(&request, STRINGS_FIRST + i);
        put_location(&request, 2 + i);
        put_stack(&request, 2 + i);
        put_link(&request, 1 + i);
        put_dictionary_attribute(&request, STRINGS_FIRST + i, name);
        put_sample(&request.body, (struct sample){2 + i, 2 + i, 2 + i});
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

static struct slice equal_entries(size_t n)
{
    struct request request = request_begin();
    for (size_t i = 0; i < n; i++) {
        put_text(&request.dictionary, STRING, "x");
        put_function(&request, STRINGS_FIRST + i);
        put_location(&request, 2 + i);
        put_stack(&request, 2 + i);
        put_link(&request, 1);
        put_dictionary_attribute(&request, STRINGS_FIRST + i, "x");
        put_sample(&request.body, (struct sample){2 + i, 2 + i, 2 + i});
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

/* A stack with n locations, which n samples have. */
static struct slice deep_stack(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    for (size_t i = 0; i < n; i++)
        put_varint(out, 1);
    profile_bytes_wrap(out, begin, 1);
    put_entry(&request, STACK, begin);
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){2, 1, 1});
    enclose(&request.body, 0);
    return request_end(&request);
}

/* The same, one field for each. */
static struct slice unpacked_stack(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    for (size_t i = 0; i < n; i++)
        put_number(out, 1, 1);
    put_entry(&request, STACK, begin);
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){2, 1, 1});
    enclose(&request.body, 0);
    return request_end(&request);
}

/* Empty stacks, one of as many locations that are not set, and stacks that each go on where the one
 * before ends: what is empty looks like what is not set, and all begin alike. */
static struct slice nested_stacks(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    uint64_t stacks = 2;
    size_t begin = out->size;
    for (size_t i = 0; i < n; i++)
        put_varint(out, 0);
    profile_bytes_wrap(out, begin, 1);
    put_entry(&request, STACK, begin);
    for (size_t i = 0; i < n; i++, stacks++)
        put_bytes(out, STACK, "", 0);
    for (size_t size = 1, all = 0; all < 4 * n; all += size++, stacks++) {
        begin = out->size;
        for (size_t i = 0; i < size; i++)
            put_varint(out, 1);
        profile_bytes_wrap(out, begin, 1);
        put_entry(&request, STACK, begin);
    }
    for (uint64_t stack = 1; stack <= stacks; stack++)
        put_sample(&request.body, (struct sample){stack, 1, 1});
    enclose(&request.body, 0);
    return request_end(&request);
}

static void put_unknown(struct profile_bytes *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_number(out, UNKNOWN, 1);
}

/* An entry of each table with n unknown fields, to which n samples refer. */
static struct slice unknown_in_entries(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    put_number(out, 1, CPU);
    put_unknown(out, n);
    put_entry(&request, FUNCTION, begin);
    begin = out->size;
    put_unknown(out, n);
    put_entry(&request, MAPPING, begin);
    begin = out->size;
    put_number(out, 1, 1);
    size_t line = out->size;
    put_number(out, 1, 2);
    put_unknown(out, n);
    profile_bytes_wrap(out, line, 3);
    put_unknown(out, n);
    put_entry(&request, LOCATION, begin);
    begin = out->size;
    put_bytes(out, 1, "\2", 1);
    put_unknown(out, n);
    put_entry(&request, STACK, begin);
    begin = out->size;
    put_bytes(out, 1, "0123456789abcdef", 16);
    put_bytes(out, 2, "01234567", 8);
    put_unknown(out, n);
    put_entry(&request, LINK, begin);
    begin = out->size;
    put_number(out, 1, SPAN_NAME);
    put_unknown(out, n);
    put_entry(&request, ATTRIBUTE, begin);
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){2, 2, 2});
    enclose(&request.body, 0);
    return request_end(&request);
}

/* A location with n lines, in n stacks. */
static struct slice many_lines(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    for (size_t i = 0; i < n; i++)
        put_bytes(out, 3, "\x08\1", 2);
    put_entry(&request, LOCATION, begin);
    for (size_t i = 0; i < n; i++) {
        put_stack(&request, 2);
        put_sample(&request.body, (struct sample){2 + i, 1, 1});
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

/* A sample with n attributes, values and times, packed and not. */
static struct slice wide_sample(size_t n)
{
    struct request request = request_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&request.dictionary, STRING, name_of(name, i));
        put_dictionary_attribute(&request, STRINGS_FIRST + i, name);
    }
    struct profile_bytes *out = &request.body;
    put_number(out, 1, 1);
    size_t packed = out->size;
    for (size_t i = 0; i < n; i++)
        put_varint(out, 2 + i);
    profile_bytes_wrap(out, packed, 2);
    put_number(out, 3, 1);
    for (size_t i = 0; i < n; i++)
        put_number(out, 4, i);
    packed = out->size;
    for (uint64_t i = 0; i < n; i++)
        profile_bytes_add(out, slice_of(&i, sizeof(i)));
    profile_bytes_wrap(out, packed, 5);
    profile_bytes_wrap(out, 0, 2);
    enclose(out, 0);
    return request_end(&request);
}

/* n attributes of a Profile with n samples. */
static struct slice wide_profile(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    size_t packed = out->size;
    for (size_t i = 0; i < n; i++)
        put_varint(out, 1);
    profile_bytes_wrap(out, packed, 11);
    for (size_t i = 0; i < n; i++)
        put_sample(out, plain);
    enclose(out, 0);
    return request_end(&request);
}

/* n samples between the attributes of a Profile, one field for each. */
static struct slice unpacked_profile(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    put_number(out, 11, 1);
    for (size_t i = 0; i < n; i++)
        put_sample(out, plain);
    put_number(out, 11, 1);
    enclose(out, 0);
    return request_end(&request);
}

static struct slice unknown_in_samples(size_t n)
{
    struct request request = request_begin();
    for (size_t i = 0; i < n; i++) {
        size_t begin = request.body.size;
        put_number(&request.body, UNKNOWN, 1);
        put_number(&request.body, 1, 1);
        profile_bytes_wrap(&request.body, begin, 2);
        put_number(&request.body, UNKNOWN, 1);
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

static struct slice deep_attributes(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    for (size_t i = 0; i < n; i += DEEP) {
        size_t begin = out->size;
        put_number(out, 1, SPAN_NAME);
        size_t value = out->size;
        put_text(out, 1, "v");
        for (int depth = 0; depth < DEEP / 2; depth++) {
            profile_bytes_wrap(out, value, 1);
            profile_bytes_wrap(out, value, 5);
        }
        profile_bytes_wrap(out, value, 2);
        put_entry(&request, ATTRIBUTE, begin);
        put_sample(&request.body, (struct sample){1, 2 + i / DEEP, 1});
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

/* One string, which every function has as its name, and every attribute as its key and its unit. */
static struct slice long_string(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    memset(profile_bytes_room(out, 8 * n), 'x', 8 * n);
    out->size += 8 * n;
    put_entry(&request, STRING, begin);
    for (size_t i = 0; i < n; i++) {
        begin = out->size;
        put_number(out, 1, STRINGS_FIRST);
        put_number(out, 4, 1 + i);
        put_entry(&request, FUNCTION, begin);
        put_location(&request, 2 + i);
        put_stack(&request, 2 + i);
        begin = out->size;
        put_number(out, 1, STRINGS_FIRST);
        size_t value = out->size;
        put_number(out, 3, i);
        profile_bytes_wrap(out, value, 2);
        put_number(out, 3, STRINGS_FIRST);
        put_entry(&request, ATTRIBUTE, begin);
        put_sample(&request.body, (struct sample){.stack = 2 + i, .attribute = 2 + i, .link = 1});
    }
    enclose(&request.body, 0);
    return request_end(&request);
}

/* A resource with a long name, and samples that make a sum each. */
static struct slice long_resource(size_t n)
{
    enum { BYTES = 16 };
    struct request request = request_begin();
    char *text = mem_zalloc(BYTES * n + 1);
    char name[32];
    memset(text, 'x', BYTES * n);
    put_attribute(&request.body, 1, "service.name", text);
    mem_free(text);
    profile_bytes_wrap(&request.body, 0, 1);
    size_t scope = request.body.size;
    for (size_t i = 0; i < n; i++) {
        put_dictionary_attribute(&request, SPAN_NAME, name_of(name, i));
        put_sample(&request.body, (struct sample){.stack = 1, .attribute = 2 + i, .link = 1});
    }
    size_t types = request.body.size;
    put_types(&request.body, SAMPLES);
    assert(request.body.size > types);
    profile_bytes_wrap(&request.body, scope, 2);
    profile_bytes_wrap(&request.body, scope, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

static const struct work_shape sums_shapes[] = {
    {"sums of a long resource", long_resource},
};

/* Of layout 1.7: a Profile with 16 types, for which all of its fields are looked at. Samples have
 * no value, one for each type, or are the least that there can be, beside one that has them all. */
static struct slice old_types(size_t n, size_t values, bool are_samples)
{
    enum { TYPES = 16 };
    static const uint8_t ones[TYPES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct profile_bytes out = {.data = NULL};
    for (size_t i = 0; i < TYPES; i++)
        put_bytes(&out, 1, "", 0);
    for (size_t i = 0; i <= n; i++) {
        size_t begin = out.size;
        if (i == 0 || values > 0)
            put_bytes(&out, 3, ones, i == 0 ? TYPES : values);
        if (i == 0 || are_samples)
            profile_bytes_wrap(&out, begin, 2);
        else
            put_number(&out, 11, 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        profile_bytes_wrap(&out, 0, i < 2 ? 2 : 1);
    return profile_bytes_slice(&out);
}

static struct slice old_empty_samples(size_t n)
{
    return old_types(8 * n, 0, true);
}

static struct slice old_wide_samples(size_t n)
{
    return old_types(n, 16, true);
}

static struct slice old_fields(size_t n)
{
    return old_types(8 * n, 0, false);
}

static const struct work_shape types_shapes[] = {
    {"samples of many types without values", old_empty_samples},
    {"samples of many types", old_wide_samples},
    {"fields of many types", old_fields},
};

static void put_filled(struct profile_bytes *out, uint32_t number, char byte, size_t size)
{
    size_t begin = out->size;
    memset(profile_bytes_room(out, size), byte, size);
    out->size += size;
    profile_bytes_wrap(out, begin, number);
}

/* An attribute with a long value, which every profile has. */
static struct slice long_attribute(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    put_number(out, 1, SPAN_NAME);
    size_t value = out->size;
    put_filled(out, 1, 'x', 8 * n);
    profile_bytes_wrap(out, value, 2);
    put_entry(&request, ATTRIBUTE, begin);
    for (size_t i = 0; i < n; i++)
        put_profile(&request.body, SAMPLES, (struct sample){1, 2, 1});
    profile_bytes_wrap(&request.body, 0, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

/* Profiles that all have one list of label names: a long one, or one in many fields. */
static struct slice label_names(size_t n, bool is_long)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    put_text(out, STRING, PROFILE_LABEL_NAMES);
    size_t begin = out->size;
    put_number(out, 1, STRINGS_FIRST);
    size_t value = out->size;
    if (is_long) {
        put_filled(out, 1, 'x', 8 * n);
        profile_bytes_wrap(out, value, 1);
        profile_bytes_wrap(out, value, 5);
    }
    for (size_t i = 0; !is_long && i < 4 * n; i++)
        put_bytes(out, 5, "", 0);
    profile_bytes_wrap(out, value, 2);
    put_entry(&request, ATTRIBUTE, begin);
    for (size_t i = 0; i < n; i++) {
        begin = request.body.size;
        put_types(&request.body, SAMPLES);
        put_sample(&request.body, plain);
        put_number(&request.body, 11, 2);
        profile_bytes_wrap(&request.body, begin, 2);
    }
    profile_bytes_wrap(&request.body, 0, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

static struct slice long_label_names(size_t n)
{
    return label_names(n, true);
}

static struct slice repeated_label_names(size_t n)
{
    return label_names(n, false);
}

static const struct work_shape labels_shapes[] = {
    {"profiles of long label names", long_label_names},
};

/* The id of a span with many zeros in front, which every sample has. */
static struct slice long_id(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    put_text(out, STRING, "span id");
    size_t begin = out->size;
    put_number(out, 1, STRINGS_FIRST);
    size_t value = out->size;
    put_filled(out, 1, '0', 8 * n);
    out->data[out->size - 1] = '7';
    profile_bytes_wrap(out, value, 2);
    put_entry(&request, ATTRIBUTE, begin);
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){.stack = 1, .attribute = 2});
    enclose(&request.body, 0);
    return request_end(&request);
}

/* An attribute with that key and a text of so many equal bytes. */
static void put_long_attribute(struct request *request, const char *key, char byte, size_t bytes)
{
    struct profile_bytes *out = &request->dictionary;
    put_text(out, STRING, key);
    size_t begin = out->size;
    put_number(out, 1, STRINGS_FIRST);
    size_t value = out->size;
    put_filled(out, 1, byte, bytes);
    profile_bytes_wrap(out, value, 2);
    put_entry(request, ATTRIBUTE, begin);
}

/* Samples of no link that have the attribute at 2, and times. */
static struct slice name_n_times(struct request *request, size_t n)
{
    struct profile_bytes *out = &request->body;
    for (size_t i = 0; i < n; i++)
        put_sample(out, (struct sample){.stack = 1, .attribute = 2});
    size_t types = out->size;
    put_types(out, SAMPLES);
    assert(out->size > types);
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 2);
    size_t resource = out->size;
    put_attribute(out, 1, "service.name", "shop");
    put_attribute(out, 1, "service.instance.id", "1");
    profile_bytes_wrap(out, resource, 1);
    profile_bytes_wrap(out, 0, 1);
    return request_end(request);
}

/* The id of a span as a list of one, with n fields of nothing before it. */
static struct slice list_of_an_id(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    put_text(out, STRING, "span_id");
    size_t begin = out->size;
    put_number(out, 1, STRINGS_FIRST);
    size_t value = out->size;
    for (size_t i = 0; i < n; i++)
        put_text(out, 1, "");
    put_text(out, 1, "0123456789abcdef");
    profile_bytes_wrap(out, value, 1);
    profile_bytes_wrap(out, value, 5);
    profile_bytes_wrap(out, value, 2);
    put_entry(&request, ATTRIBUTE, begin);
    return name_n_times(&request, n);
}

static struct slice long_thread_id(size_t n)
{
    struct request request = request_begin();
    put_long_attribute(&request, "thread.id", '7', 8 * n);
    return name_n_times(&request, n);
}

/* A ResourceProfiles with n fields for its Resource, n scopes and one sample without a span. */
static struct slice repeated_resources(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    put_profile(out, SAMPLES, (struct sample){.stack = 1, .attribute = 1});
    profile_bytes_wrap(out, 0, 2);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out->size;
        put_attribute(out, 1, "service.name", "shop");
        profile_bytes_wrap(out, begin, 1);
        put_bytes(out, 2, "", 0);
    }
    profile_bytes_wrap(out, 0, 1);
    return request_end(&request);
}

/* The name of the service comes in many fields, of which the last is it. */
static struct slice service_in_pieces(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    for (size_t i = 0; i < n; i++)
        put_profile(out, SAMPLES, plain);
    profile_bytes_wrap(out, 0, 2);
    size_t begin = out->size;
    put_text(out, 1, "service.name");
    size_t value = out->size;
    for (size_t i = 0; i < n; i++)
        put_text(out, 1, "");
    put_text(out, 1, "shop");
    profile_bytes_wrap(out, value, 2);
    profile_bytes_wrap(out, begin, 1);
    profile_bytes_wrap(out, begin, 1);
    profile_bytes_wrap(out, 0, 1);
    return request_end(&request);
}

/* For the join: what prints values may print each as often as it is named. */
static const struct work_shape join_shapes[] = {
    {"an id in a list of many fields", list_of_an_id},
    {"a long id of a thread", long_thread_id},
};

/* It is named again and again by one Profile. */
static struct slice repeated_label(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    put_long_attribute(&request, "pyroscope.label.x", 'x', 8 * n);
    for (size_t i = 0; i < n; i++)
        put_varint(out, 2);
    profile_bytes_wrap(out, 0, 11);
    put_sample(out, (struct sample){.stack = 1});
    enclose(out, 0);
    return request_end(&request);
}

/* Each Profile has it. */
static struct slice profiles_of_one_label(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    put_long_attribute(&request, "pyroscope.label.x", 'x', 8 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out->size;
        put_types(out, SAMPLES);
        put_sample(out, (struct sample){.stack = 1});
        put_number(out, 11, 2);
        profile_bytes_wrap(out, begin, 2);
    }
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    return request_end(&request);
}

/* Attributes without anything. */
static void put_wide_resource(struct profile_bytes *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_bytes(out, 1, "", 0);
    profile_bytes_wrap(out, 0, 1);
}

/* A wide resource without a name, and scopes of one profile each. */
static struct slice scopes_of_one_profile(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.body;
    put_wide_resource(out, 3 * n);
    for (size_t i = 0; i < n; i++) {
        size_t scope = out->size;
        put_bytes(out, 1, "", 0);
        put_profile(out, SAMPLES, (struct sample){.stack = 1});
        profile_bytes_wrap(out, scope, 2);
    }
    profile_bytes_wrap(out, 0, 1);
    return request_end(&request);
}

/* Profiles of such a resource that name different attributes of it as labels, one after the other.
 */
static struct slice different_label_names(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    put_text(out, STRING, "pyroscope.label_names");
    for (size_t i = 0; i < 2; i++) { /* attributes 2 and 3 */
        size_t begin = out->size;
        put_number(out, 1, STRINGS_FIRST);
        size_t value = out->size;
        for (size_t k = 0; k <= i; k++)
            put_bytes(out, 1, "\x0a\1x", 3);
        profile_bytes_wrap(out, value, 5);
        profile_bytes_wrap(out, value, 2);
        put_entry(&request, ATTRIBUTE, begin);
    }
    out = &request.body;
    put_wide_resource(out, 2 * n);
    size_t scope = out->size;
    for (size_t i = 0; i < n; i++) {
        size_t begin = out->size;
        put_types(out, SAMPLES);
        put_sample(out, (struct sample){.stack = 1});
        put_number(out, 11, 2 + i % 2);
        profile_bytes_wrap(out, begin, 2);
    }
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, 0, 1);
    return request_end(&request);
}

/* A location and a mapping with very many attributes that mean nothing, in each of n profiles. */
static struct slice profiles_of_wide_entries(size_t n)
{
    enum { LOCATION_ATTRIBUTES = 4000, MAPPING_ATTRIBUTES = 1000 };
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    size_t packed = out->size;
    for (size_t i = 0; i < MAPPING_ATTRIBUTES; i++)
        put_varint(out, 1);
    profile_bytes_wrap(out, packed, 5);
    put_entry(&request, MAPPING, begin);
    begin = out->size;
    put_number(out, 1, 1);
    packed = out->size;
    for (size_t i = 0; i < LOCATION_ATTRIBUTES; i++)
        put_varint(out, 1);
    profile_bytes_wrap(out, packed, 4);
    put_entry(&request, LOCATION, begin);
    put_stack(&request, 2);
    for (size_t i = 0; i < n; i++)
        put_profile(&request.body, SAMPLES, (struct sample){.stack = 2});
    profile_bytes_wrap(&request.body, 0, 2);
    profile_bytes_wrap(&request.body, 0, 1);
    return request_end(&request);
}

/* A value that refers to a string, and then has many numbers in place of it, in each sample. */
static struct slice replaced_reference(size_t n)
{
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    size_t begin = out->size;
    put_number(out, 1, SPAN_NAME);
    size_t value = out->size;
    put_number(out, 8, CPU);
    for (size_t i = 0; i < 8 * n; i++)
        put_number(out, 3, 1);
    profile_bytes_wrap(out, value, 2);
    put_entry(&request, ATTRIBUTE, begin);
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){.stack = 1, .attribute = 2});
    enclose(&request.body, 0);
    return request_end(&request);
}

/* Samples of as many services as there may be, whose long names differ at the end. */
static struct slice samples_of_services(size_t n)
{
    enum { SERVICES = 31, NAME_BYTES = 2048 };
    struct request request = request_begin();
    struct profile_bytes *out = &request.dictionary;
    put_text(out, STRING, "service.name");
    for (uint8_t i = 0; i < SERVICES; i++) {
        size_t begin = out->size;
        put_number(out, 1, STRINGS_FIRST);
        size_t value = out->size;
        put_filled(out, 1, 'x', NAME_BYTES);
        out->data[out->size - 1] = 'A' + i;
        profile_bytes_wrap(out, value, 2);
        put_entry(&request, ATTRIBUTE, begin);
    }
    for (size_t i = 0; i < n; i++)
        put_sample(&request.body, (struct sample){.stack = 1, .attribute = 2 + i % SERVICES});
    enclose(&request.body, 0);
    return request_end(&request);
}

static const struct work_shape services_shapes[] = {
    {"samples of many services", samples_of_services},
};

static const struct work_shape shapes[] = {
    {"resources in one group", repeated_resources},
    {"a service in many fields", service_in_pieces},
    {"profiles of one long attribute", long_attribute},
    {"profiles of a value of many fields", repeated_label_names},
    {"samples of one long id", long_id},
    {"samples", plain_samples},
    {"empty profiles of a wide resource", empty_profiles},
    {"empty scopes of a wide resource", empty_scopes},
    {"profiles of different types", profiles_of_types},
    {"resources of one profile", resources_of_one_profile},
    {"different samples", different_samples},
    {"equal entries", equal_entries},
    {"samples of a deep stack", deep_stack},
    {"samples of an unpacked stack", unpacked_stack},
    {"nested stacks", nested_stacks},
    {"unknown fields in entries", unknown_in_entries},
    {"a location of many lines", many_lines},
    {"a wide sample", wide_sample},
    {"a wide profile", wide_profile},
    {"samples between unpacked attributes", unpacked_profile},
    {"unknown fields in samples", unknown_in_samples},
    {"deep attributes", deep_attributes},
    {"one long string, named by all", long_string},
    {"a label of a series, repeated", repeated_label},
    {"profiles of one label of a series", profiles_of_one_label},
    {"scopes of one profile", scopes_of_one_profile},
    {"profiles of different label names", different_label_names},
    {"profiles of wide entries", profiles_of_wide_entries},
    {"a reference that is replaced", replaced_reference},
};

static struct buffer *buffer_of(struct slice bytes)
{
    struct buffer *buffer = buffer_create(NULL, bytes.size);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    return buffer;
}

/* As the receivers let it in. */
static struct profile_normalized pass(struct slice request)
{
    struct buffer *buffer = buffer_of(request);
    struct profile_normalized normalized;
    enum profile_verdict verdict =
        profile_normalize(buffer, buffer_slice(buffer), PROFILE_LAYOUTS, NULL, &normalized);
    if (verdict != PROFILES_TAKEN || normalized.rejected_profiles > 0)
        fprintf(stderr, "%s\n", normalized.reason);
    assert(verdict == PROFILES_TAKEN);
    assert(normalized.rejected_profiles == 0);
    buffer_unref(buffer);
    return normalized;
}

static struct batch *batch_of(const struct profile_normalized *normalized)
{
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, normalized->owner, normalized->request);
    batch->items = normalized->samples;
    return batch;
}

static void run_normalize(struct slice request)
{
    struct buffer *buffer = buffer_of(request);
    struct profile_normalized normalized;
    work_begin();
    profile_normalize(buffer, buffer_slice(buffer), PROFILE_LAYOUTS, NULL, &normalized);
    otlp_has_unknown(PROFILES, normalized.request);
    work_end();
    buffer_unref(normalized.owner);
    buffer_unref(buffer);
}

static void cut(struct slice request, struct otlp_limit limit)
{
    struct budget budget;
    struct profile_queue queue;
    struct profile_normalized normalized = pass(request);
    struct batch *batch = batch_of(&normalized);
    bool is_last = false;
    budget_init(&budget, UINT64_MAX);
    profile_queue_init(&queue, &budget);
    work_begin();
    profile_queue_add(&queue, batch);
    while (!is_last) {
        struct batch *piece = profile_queue_cut(&queue, batch, limit, &is_last);
        work_produced(piece->bytes);
        batch_unref(piece);
    }
    profile_queue_fini(&queue);
    work_end();
    budget_fini(&budget);
    batch_unref(batch);
    buffer_unref(normalized.owner);
}

static void run_merge(struct slice request)
{
    cut(request, (struct otlp_limit){.items_max = 0});
}

static void run_cut_by_one(struct slice request)
{
    cut(request, (struct otlp_limit){.items_max = 1});
}

static void run_cut_by_bytes(struct slice request)
{
    cut(request, (struct otlp_limit){.bytes_max = 300});
}

static void shape(const struct profile_limit_rules *rules, struct slice request)
{
    struct profile_limit_figures figures;
    struct profile_normalized normalized = pass(request);
    work_begin();
    struct buffer *shaped = profile_limit(rules, normalized.request, NULL, NULL, &figures);
    work_end();
    buffer_unref(shaped);
    buffer_unref(normalized.owner);
}

static void run_shape(struct slice request)
{
    static const struct profile_limit_rules rules = {
        .depth_max = 3, .samples_max = 1000, .label_values_max = 10};
    shape(&rules, request);
}

/* Pieces of text are looked for by memmem, which is counted. */
static void run_names(struct slice request)
{
    struct error error;
    struct pattern *drops[] = {pattern_create("hidden", &error), pattern_create("k00001", &error)};
    struct profile_rename rename = {.pattern = pattern_create("k0000", &error)};
    rename.replacement = pattern_replacement_create(rename.pattern, "name", &error);
    const struct profile_limit_rules rules = {
        .renames = &rename, .renames_count = 1, .drops = drops, .drops_count = 2};
    shape(&rules, request);
    pattern_replacement_destroy(rename.replacement);
    pattern_destroy(rename.pattern);
    pattern_destroy(drops[0]);
    pattern_destroy(drops[1]);
}

static void run_metrics(struct slice request)
{
    static const struct sum_names names = {
        .dimensions_count = 3,
        .dimensions = {{(const uint8_t *)"span_name", 9},
                       {(const uint8_t *)"k000000", 7},
                       {(const uint8_t *)"k000001", 7}},
        .resources_count = 2,
        .resources = {{(const uint8_t *)"service.name", 12}, {(const uint8_t *)"k000000", 7}},
    };
    struct profile_normalized normalized = pass(request);
    struct sample_sums sums;
    struct sum_store store;
    struct budget budget;
    struct batch *batch;
    budget_init(&budget, UINT64_MAX);
    sum_store_init(&store, &budget);
    for (size_t i = 0; i < MEASURES; i++)
        store.names[i] = "measure";
    sample_sums_init(&sums, &names, &budget);
    work_begin();
    bool is_read = sample_sums_read(&sums, normalized.request);
    for (size_t i = 0; i < sums.count; i++) {
        struct sample_sum sum = sample_sums_at(&sums, i);
        sum_store_add(&store, &sum, 1, 1);
    }
    for (bool is_first = true; sum_store_write(&store, is_first, 1, 1, &batch) == PIECE_WRITTEN;
         is_first = false)
        if (batch != NULL) {
            work_produced(batch->bytes);
            batch_unref(batch);
        }
    work_end();
    assert(is_read);
    sample_sums_fini(&sums);
    sum_store_clear(&store);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    buffer_unref(normalized.owner);
}

static void drop_piece(void *arg, struct batch *piece)
{
    (void)arg;
    work_produced(piece->bytes);
    batch_unref(piece);
}

static void run_pieces(struct slice request)
{
    struct profile_normalized normalized = pass(request);
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, normalized.owner, normalized.request);
    work_begin();
    if (normalized.profiles > 0)
        profile_pieces_cut(batch, 10, NULL, drop_piece, NULL);
    work_end();
    batch_unref(batch);
    buffer_unref(normalized.owner);
}

static void run_transcode(struct slice request)
{
    struct profile_normalized normalized = pass(request);
    work_begin();
    struct buffer *old = profile_transcode_back(normalized.request, NULL);
    struct buffer *back = profile_transcode(LAYOUT_1_9, buffer_slice(old), NULL);
    profile_layout_of(buffer_slice(old));
    work_end();
    buffer_unref(old);
    buffer_unref(back);
    buffer_unref(normalized.owner);
}

static void transcode_from(enum profile_layout layout, struct slice request)
{
    work_begin();
    struct buffer *back = profile_transcode(layout, request, NULL);
    if (back != NULL)
        work_produced(back->size);
    work_end();
    buffer_unref(back);
}

/* Whether the samples make sense in the layout does not matter: bytes of another one are what an
 * attacker sends as well. 1.11 has the same bytes as 1.10, which every other stage reads. */
static void run_layout_1_8(struct slice request)
{
    transcode_from(LAYOUT_1_8, request);
}

static void run_layout_1_7(struct slice request)
{
    transcode_from(LAYOUT_1_7, request);
}

/* The dictionary is copied entry by entry, without entries that nothing refers to. */
static void run_dictionary_copy(struct slice request)
{
    struct profile_normalized normalized = pass(request);
    struct profile_merge merge;
    struct profile_source source;
    profile_merge_init(&merge, NULL);
    work_begin();
    if (profile_source_open(&source, normalized.request, &merge)) {
        profile_merge_take(&merge, &source, (struct otlp_limit){.bytes_max = UINT64_MAX});
        profile_source_close(&source);
    }
    struct buffer *whole = profile_merge_finish(&merge, NULL);
    work_produced(whole != NULL ? whole->size : 0);
    work_end();
    buffer_unref(whole);
    profile_merge_fini(&merge);
    buffer_unref(normalized.owner);
}

static void run_json(struct slice request)
{
    const struct otlp_message *message = otlp_request(PROFILES);
    struct buffer *encoded = NULL;
    struct profile_normalized normalized = pass(request);
    char reason[JSON_REASON_BYTES_MAX];
    work_begin();
    struct buffer *text = json_write(message, normalized.request, NULL);
    assert(text != NULL);
    enum json_result result = json_read(message, buffer_slice(text), NULL, &encoded, reason);
    work_end();
    assert(result == JSON_READ);
    buffer_unref(encoded);
    buffer_unref(text);
    buffer_unref(normalized.owner);
}

static void print(struct slice request, bool is_detailed)
{
    struct profile_normalized normalized = pass(request);
    struct text text;
    work_begin();
    text_init(&text, NULL);
    otlp_text_write(&text, PROFILES, normalized.request, is_detailed);
    work_produced(text.size);
    text_fini(&text);
    work_end();
    buffer_unref(normalized.owner);
}

static void run_normal_text(struct slice request)
{
    print(request, false);
}

static void run_detailed_text(struct slice request)
{
    print(request, true);
}

static void run_span_table(struct slice request)
{
    struct profile_normalized normalized = pass(request);
    struct text text;
    work_begin();
    text_init(&text, NULL);
    otlp_text_write_spans(&text, normalized.request, 5);
    text_fini(&text);
    work_end();
    buffer_unref(normalized.owner);
}

/* The only trace of that service, of an internal span. */
static void read_span_of_shop(struct join_store *store)
{
    enum { KIND = 6, INTERNAL = 1 };
    struct profile_bytes out = {.data = NULL};
    struct span_reader reader;
    struct span_figures figures;
    put_bytes(&out, 1, "0123456789abcdef", 16);
    put_bytes(&out, 2, "01234567", 8);
    put_number(&out, KIND, INTERNAL);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2);
    size_t begin = out.size;
    put_attribute(&out, 1, "service.name", "shop");
    profile_bytes_wrap(&out, begin, 1);
    profile_bytes_wrap(&out, 0, 1);
    struct slice request = message_done(&out);
    struct batch *batch = message_batch(TRACES, request);
    span_reader_init(&reader, store, 0, NULL);
    batch_unref(span_reader_read(&reader, batch, 1, &figures));
    span_reader_fini(&reader);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)request.data);
}

static struct join_store *make_store(void)
{
    struct join_settings settings = {
        .attributes = {{JOIN_SPAN_NAME, slice_of_text("span_name")},
                       {JOIN_STATUS_CLASS, slice_of_text("status")}},
        .attributes_count = 2,
        .values_max = 1000,
        .index_entries = 1 << 15,
        .index_bytes = 8 << 20,
        .mark = JOIN_MARK_OBSERVED,
        .repairs_identity = true,
        .hold_ns = 1,
        .keep = {.slow_ns = 4},
        .takes_root = true,
        .uses_window = true,
        .finds_single_traces = true,
        .counts_root = true,
        .counts_ancestors = true,
    };
    struct error error;
    bool is_fine = url_template_read("http://g/{trace_id}/{profile_type}", UINT_MAX,
                                     &settings.trace_url, &error);
    assert(is_fine);
    struct join_store *store = join_store_create(&settings, 1);
    assert(store != NULL);
    read_span_of_shop(store);
    return store;
}

/* Each span's parent is the one before it, but every fourth is a root; every other one is slow. */
static void index_spans(struct join_store *store, const struct profile_links *links)
{
    for (uint32_t i = 1; i < links->set.count; i++) {
        const struct link_key *key = &links->set.items[i].key;
        struct span_facts facts = {.trace = {key->trace[0], key->trace[1]},
                                   .span = key->span,
                                   .parent = i % 4 > 0 ? links->set.items[i - 1].key.span : 0,
                                   .end_ns = i % 2 * 100,
                                   .flags = i % 4 == 0 ? SPAN_IS_LOCAL_ROOT : 0};
        span_index_add(&store->index, 0, &facts);
    }
}

enum join_part { ENRICH, KEEP, COPIES, AWAITS };

static void join(struct slice request, enum join_part part)
{
    struct profile_normalized normalized = pass(request);
    struct join_store *store = make_store();
    struct batch *batch = batch_of(&normalized);
    struct batch *result = NULL;
    struct profile_enricher enricher;
    struct enrich_figures figures;
    struct copies_figures copies;
    struct pending_processes awaits = {.items = NULL};
    const struct keep_rules rules = {.slow_ns = 50};
    profile_enricher_init(&enricher, store, NULL);
    bool is_open = profile_links_open(&enricher.links, normalized.request, 1);
    assert(is_open);
    index_spans(store, &enricher.links);
    work_begin();
    is_open = profile_links_open(&enricher.links, normalized.request, 1);
    profile_links_resolve(&enricher.links);
    profile_keep_unsettled(&enricher.links);
    if (part == ENRICH)
        result = profile_enrich(&enricher, batch, 1, &figures);
    else if (part == KEEP)
        result = profile_keep(&enricher.links, batch, &rules, NULL);
    else if (part == COPIES)
        result = profile_copies_add(&enricher.links, batch, NULL, &copies);
    else
        pending_processes_collect(&awaits, &enricher.links, 1);
    work_end();
    assert(is_open);
    pending_processes_fini(&awaits);
    profile_enricher_fini(&enricher);
    batch_unref(result);
    batch_unref(batch);
    join_store_destroy(store);
    buffer_unref(normalized.owner);
}

static void run_enrich(struct slice request)
{
    join(request, ENRICH);
}

static void run_keep(struct slice request)
{
    join(request, KEEP);
}

static void run_copies(struct slice request)
{
    join(request, COPIES);
}

static void run_awaits(struct slice request)
{
    join(request, AWAITS);
}

static void convert(struct otlp_to_pprof *conversion, const struct profile *profile)
{
    const struct profile_type type = {.type = "t"};
    size_t services = otlp_to_pprof_services(conversion, profile);
    for (size_t i = 0; i < services; i++) {
        const struct otlp_to_pprof_source source = {
            .profile = profile, .type = &type, .service = i};
        otlp_to_pprof_begin(conversion, &source);
        while (otlp_to_pprof_fill(conversion)) {
            struct buffer *part = otlp_to_pprof_take(conversion, 1);
            work_produced(part->size);
            buffer_unref(part);
        }
    }
}

static void write_pprof(struct slice request, size_t value_bytes_max)
{
    const struct otlp_to_pprof_rules rules = {
        .labels = {.has_trace_id = true, .names_max = 16, .value_bytes_max = value_bytes_max},
        .samples_max = 1000,
        .bytes_max = 1 << 16,
        .depth_max = 64,
    };
    struct arena arena;
    struct profile_dictionary dictionary;
    struct otlp_to_pprof conversion;
    struct profile_normalized normalized = pass(request);
    struct profile_iterator at = profile_iterator_of(normalized.request);
    work_begin();
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    bool is_open = profile_dictionary_open(&dictionary, &arena, normalized.request);
    otlp_to_pprof_init(&conversion, &rules, &dictionary, NULL);
    while (profile_iterator_next(&at))
        convert(&conversion, &at.profile);
    otlp_to_pprof_fini(&conversion);
    arena_clear(&arena);
    work_end();
    assert(is_open);
    buffer_unref(normalized.owner);
}

static void run_pprof(struct slice request)
{
    write_pprof(request, 100);
}

static void run_pprof_of_services(struct slice request)
{
    write_pprof(request, 2048);
}

/* What the pyroscope exporter does up to the bodies that it posts. */
static void make_forms(struct slice request, bool is_ingest)
{
    static const char *allowed[] = {"a", "service.name"};
    static const struct pyroscope_config config = {
        .labels = {.allow = {.texts = allowed, .count = 2},
                   .dots_to_underscores = true,
                   .max_names = 16,
                   .max_value_bytes = 100},
        .limits = {.max_samples = 1000, .max_bytes = 1 << 16, .max_stack_depth = 64},
    };
    static const struct otlp_to_pprof_rules rules = {
        .labels = {.lifts_ids = true, .names_max = 16, .value_bytes_max = 100},
        .samples_max = 1000,
        .bytes_max = 1 << 16,
        .depth_max = 64,
    };
    static const struct number_set uncut;
    struct pyroscope_walk walk;
    struct pyroscope_series series;
    struct pyroscope_form form;
    struct profile_normalized normalized = pass(request);
    work_begin();
    pyroscope_series_init(&series, NULL);
    bool is_open = pyroscope_walk_open(&walk, &config, &rules, normalized.request, NULL);
    assert(is_open);
    while (pyroscope_walk_next(&walk, &uncut) < PYROSCOPE_END) {
        const struct pyroscope_source source = {
            .config = &config.labels,
            .dictionary = &walk.dictionary,
            .type = &walk.type,
            .resource = walk.resource.resource,
            .scope = walk.scope.scope,
            .service = walk.service,
            .label_names = walk.label_names,
            .privates = walk.metric.size > 0 ? &walk.privates : NULL,
        };
        pyroscope_form_init(&form, NULL, NULL);
        pyroscope_series_build(&series, &source);
        struct buffer *profile = otlp_to_pprof_take(&walk.conversion, 1);
        const struct pyroscope_ingest ingest = {
            .path = "/ingest", .series = &series, .walk = &walk, .time_ns = 1};
        uint64_t changed = 0;
        if (is_ingest)
            pyroscope_form_ingest(&form, &ingest, profile, &changed);
        else
            pyroscope_form_push(&form, &series, profile);
        work_produced(pyroscope_form_bytes(&form) + (is_ingest ? form.target->size : 0));
        pyroscope_form_fini(&form);
    }
    pyroscope_walk_close(&walk);
    pyroscope_series_fini(&series);
    work_end();
    buffer_unref(normalized.owner);
}

static void run_pyroscope(struct slice request)
{
    make_forms(request, false);
}

static void run_pyroscope_ingest(struct slice request)
{
    make_forms(request, true);
}

static void run_call_tree(struct slice request)
{
    static const struct flame_filter filter = {.end_unix_ns = UINT64_MAX};
    static const struct flame_settings settings = {.bytes_max = 256 * MIB, .sides = 2};
    struct profile_normalized normalized = pass(request);
    work_begin();
    struct flame_tree *tree = flame_tree_create(&settings);
    enum flame_result result = FLAME_ADDED;
    for (unsigned side = 0; side < FLAME_SIDES_MAX && result == FLAME_ADDED; side++)
        result = flame_tree_add(tree, side, normalized.request, &filter);
    assert(result == FLAME_ADDED);
    for (enum flame_view view = FLAME_VIEW_TREE; view <= FLAME_VIEW_TOP; view++) {
        const struct flame_drawing drawing = {
            .view = view,
            .width = 1600,
            .function = slice_of_text("cpu"),
            .bytes_max = FLAME_RESPONSE_BYTES_MAX,
        };
        struct json_output output;
        json_output_init(&output, 256, SIZE_MAX, NULL);
        result = flame_tree_write(tree, &drawing, &output);
        assert(result == FLAME_ADDED);
        buffer_unref(json_output_take(&output));
    }
    flame_tree_destroy(tree);
    work_end();
    buffer_unref(normalized.owner);
}

static const struct work_stage stages[] = {
    {.name = "call trees", .run = run_call_tree, .per_byte_max = 60},
    {.name = "normalize", .run = run_normalize, .per_byte_max = 60},
    {.name = "merge", .run = run_merge, .per_byte_max = 39},
    {.name = "cut by one sample", .run = run_cut_by_one, .n = 400, .per_byte_max = 41},
    {.name = "cut by 300 bytes", .run = run_cut_by_bytes, .n = 500, .per_byte_max = 33},
    {.name = "pieces", .run = run_pieces, .per_byte_max = 6},
    {.name = "profile_limits", .run = run_shape, .per_byte_max = 81},
    {.name = "profile_limits, names", .run = run_names, .per_byte_max = 66},
    {.name = "profile_metrics", .run = run_metrics, .per_byte_max = 60},
    {.name = "layout 1.9 and back", .run = run_transcode, .per_byte_max = 53},
    {.name = "layout 1.8", .run = run_layout_1_8, .per_byte_max = 10},
    {.name = "layout 1.7", .run = run_layout_1_7, .per_byte_max = 55},
    {.name = "dictionary, copied", .run = run_dictionary_copy, .per_byte_max = 40},
    {.name = "JSON, written and read", .run = run_json, .per_byte_max = 130},
    {.name = "debug, normal", .run = run_normal_text, .per_byte_max = 15},
    {.name = "debug, detailed", .run = run_detailed_text, .per_byte_max = 16},
    {.name = "debug, spans", .run = run_span_table, .per_byte_max = 27},
    {.name = "pprof, written", .run = run_pprof, .per_byte_max = 53},
    {.name = "pyroscope exporter", .run = run_pyroscope, .per_byte_max = 50},
    {.name = "pyroscope exporter, ingest", .run = run_pyroscope_ingest, .per_byte_max = 50},
};

static const struct work_stage join_stages[] = {
    {.name = "join, enrich", .run = run_enrich, .per_byte_max = 63},
    {.name = "join, keep", .run = run_keep, .per_byte_max = 49},
    {.name = "join, count_for", .run = run_copies, .per_byte_max = 34},
    {.name = "join, awaits", .run = run_awaits, .per_byte_max = 29},
};

int main(int argc, char **argv)
{
    static const struct work_stage sums = {
        .name = "profile_metrics", .run = run_metrics, .per_byte_max = 10};
    static const struct work_stage labels = {
        .name = "pyroscope exporter", .run = run_pyroscope, .per_byte_max = 22};
    static const struct work_stage types = {
        .name = "layout 1.7", .run = run_layout_1_7, .per_byte_max = 55};
    static const struct work_stage services = {
        .name = "pprof, of services", .run = run_pprof_of_services, .n = 4000, .per_byte_max = 105};
    int failed = work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                            sizeof(shapes) / sizeof(shapes[0]), argc, argv);
    failed += work_check(join_stages, sizeof(join_stages) / sizeof(join_stages[0]), shapes,
                         sizeof(shapes) / sizeof(shapes[0]), argc, argv);
    failed += work_check(join_stages, sizeof(join_stages) / sizeof(join_stages[0]), join_shapes,
                         sizeof(join_shapes) / sizeof(join_shapes[0]), argc, argv);
    failed += work_check(&sums, 1, sums_shapes, 1, argc, argv);
    failed += work_check(&labels, 1, labels_shapes, 1, argc, argv);
    failed += work_check(&services, 1, services_shapes, 1, argc, argv);
    failed += work_check(&types, 1, types_shapes, sizeof(types_shapes) / sizeof(types_shapes[0]),
                         argc, argv);
    return failed > 0;
}
