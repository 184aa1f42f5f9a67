/* SPDX-License-Identifier: Apache-2.0 */
/* What the pyroscope receiver takes: pprof, folded stacks and their like, forms, queries, Push; and
 * jemalloc's heap profiles. */
#include <assert.h>
#include <stdlib.h>

#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/pyroscope/pyroscope_form.h"
#include "exporters/pyroscope/pyroscope_memory.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/heap_profile.h"
#include "src/profiles/pprof/pprof_delta.h"
#include "src/profiles/pprof/pprof_merge.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/multipart.h"
#include "src/profiles/pyroscope/push_request.h"
#include "src/profiles/pyroscope/series_otlp.h"
#include "src/profiles/pyroscope/stack_profile.h"
#include "src/profiles/pyroscope/text_profile.h"
#include "src/profiles/pyroscope/upload_check.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

/* pprof: fields of Profile. */
enum { SAMPLE_TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING, PERIOD_TYPE = 11 };

static void put_type(struct profile_bytes *out, uint32_t number, uint64_t type)
{
    size_t begin = out->size;
    put_number(out, 1, type);
    put_number(out, 2, type);
    profile_bytes_wrap(out, begin, number);
}

/* Strings "", "cpu", "key"; one type, mapping, function and location, each with id 1. */
static struct profile_bytes pprof_begin(void)
{
    struct profile_bytes out = {0};
    put_type(&out, SAMPLE_TYPE, 1);
    put_type(&out, PERIOD_TYPE, 1);
    put_text(&out, STRING, "");
    put_text(&out, STRING, "cpu");
    put_text(&out, STRING, "key");
    put_bytes(&out, MAPPING, "\x08\1", 2);
    put_bytes(&out, FUNCTION, "\x08\1\x10\1", 4);
    put_bytes(&out, LOCATION, "\x08\1\x10\1\x22\2\x08\1", 8);
    return out;
}

static void put_sample(struct profile_bytes *out, uint64_t location, size_t labels)
{
    size_t begin = out->size;
    put_number(out, 1, location);
    put_number(out, 2, 1);
    for (size_t i = 0; i < labels; i++)
        put_bytes(out, 3, "\x08\2\x10\1", 4);
    profile_bytes_wrap(out, begin, SAMPLE);
}

static struct slice equal_samples(size_t n)
{
    struct profile_bytes out = pprof_begin();
    for (size_t i = 0; i < n; i++)
        put_sample(&out, 1, 1);
    return message_done(&out);
}

/* Ids in no order. */
static struct slice different_entries(size_t n)
{
    struct profile_bytes out = pprof_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        uint64_t id = 2 + (uint64_t)i * 7919 % n * 1000003;
        size_t begin = out.size;
        put_text(&out, STRING, name_of(name, i));
        begin = out.size;
        put_number(&out, 1, id);
        put_number(&out, 2, 3 + i);
        profile_bytes_wrap(&out, begin, FUNCTION);
        begin = out.size;
        put_number(&out, 1, id);
        profile_bytes_wrap(&out, begin, MAPPING);
        begin = out.size;
        put_number(&out, 1, id);
        put_number(&out, 2, id);
        size_t line = out.size;
        put_number(&out, 1, id);
        profile_bytes_wrap(&out, line, 4);
        profile_bytes_wrap(&out, begin, LOCATION);
        put_sample(&out, id, 1);
    }
    return message_done(&out);
}

static struct slice deep_stacks(size_t n)
{
    struct profile_bytes out = pprof_begin();
    size_t begin = out.size;
    for (size_t i = 0; i < n; i++)
        put_number(&out, 1, 1);
    put_number(&out, 2, 1);
    profile_bytes_wrap(&out, begin, SAMPLE);
    return message_done(&out);
}

/* Several for each of n: the first few hundred cost less than others, whose numbers are longer. */
static struct slice many_labels(size_t n)
{
    struct profile_bytes out = pprof_begin();
    put_sample(&out, 1, 4 * n);
    return message_done(&out);
}

static struct slice many_lines(size_t n)
{
    struct profile_bytes out = pprof_begin();
    size_t begin = out.size;
    put_number(&out, 1, 2);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, 4, "\x08\1", 2);
    profile_bytes_wrap(&out, begin, LOCATION);
    for (size_t i = 0; i < n; i++)
        put_sample(&out, 2, 0);
    return message_done(&out);
}

/* Each type has a value in each sample. */
static struct slice many_types(size_t n)
{
    struct profile_bytes out = pprof_begin();
    for (size_t i = 1; i < n; i++)
        put_type(&out, SAMPLE_TYPE, 1);
    size_t begin = out.size;
    put_number(&out, 1, 1);
    for (size_t i = 0; i < n; i++)
        put_number(&out, 2, 1);
    profile_bytes_wrap(&out, begin, SAMPLE);
    return message_done(&out);
}

static struct slice different_labels(size_t n)
{
    struct profile_bytes out = pprof_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&out, STRING, name_of(name, i));
        size_t begin = out.size;
        put_number(&out, 1, 1);
        put_number(&out, 2, 1);
        size_t label = out.size;
        put_number(&out, 1, 3 + i);
        put_number(&out, 2, 3 + i);
        profile_bytes_wrap(&out, label, 3);
        profile_bytes_wrap(&out, begin, SAMPLE);
    }
    return message_done(&out);
}

/* As many labels as a sample may have, with keys that differ at their end only. */
static struct slice full_samples(size_t n)
{
    struct profile_bytes out = pprof_begin();
    char key[128];
    for (size_t i = 0; i < PPROF_LABELS_MAX; i++) {
        snprintf(key, sizeof(key), "%0120zu", i);
        put_text(&out, STRING, key);
    }
    for (size_t i = 0; i < n / 10; i++) {
        size_t begin = out.size;
        put_number(&out, 1, 1);
        put_number(&out, 2, 1);
        for (size_t k = 0; k < PPROF_LABELS_MAX; k++) {
            size_t label = out.size;
            put_number(&out, 1, 3 + k);
            put_number(&out, 2, 1);
            profile_bytes_wrap(&out, label, 3);
        }
        profile_bytes_wrap(&out, begin, SAMPLE);
    }
    return message_done(&out);
}

static void put_long_string(struct profile_bytes *out, size_t size)
{
    size_t begin = out->size;
    memset(profile_bytes_room(out, size), 'x', size);
    out->size += size;
    profile_bytes_wrap(out, begin, STRING);
}

/* One string, which every function has as its name. */
static struct slice long_function_names(size_t n)
{
    struct profile_bytes out = pprof_begin();
    put_long_string(&out, 8 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_number(&out, 1, 2 + i);
        put_number(&out, 2, 3);
        put_number(&out, 3, 3);
        profile_bytes_wrap(&out, begin, FUNCTION);
    }
    return message_done(&out);
}

/* One string, which every label has as its key, its value, or its unit. */
static struct slice long_label_strings(size_t n, uint32_t field)
{
    struct profile_bytes out = pprof_begin();
    put_long_string(&out, 8 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_number(&out, 1, 1);
        put_number(&out, 2, 1);
        size_t label = out.size;
        put_number(&out, 1, field == 1 ? 3 : 2);
        put_number(&out, field == 1 ? 3 : field, field == 1 ? 1 : 3);
        if (field == 4)
            put_number(&out, 3, 1);
        profile_bytes_wrap(&out, label, 3);
        profile_bytes_wrap(&out, begin, SAMPLE);
    }
    return message_done(&out);
}

static struct slice long_label_keys(size_t n)
{
    return long_label_strings(n, 1);
}

static struct slice long_label_texts(size_t n)
{
    return long_label_strings(n, 2);
}

static struct slice long_label_units(size_t n)
{
    return long_label_strings(n, 4);
}

/* Each sample has a list of it. */
static struct slice long_label_lists(size_t n)
{
    struct profile_bytes out = pprof_begin();
    put_long_string(&out, 8 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_number(&out, 1, 1);
        put_number(&out, 2, 1);
        put_bytes(&out, 3, "\x08\2\x10\3", 4);
        put_bytes(&out, 3, "\x08\2\x10\3", 4);
        profile_bytes_wrap(&out, begin, SAMPLE);
    }
    return message_done(&out);
}

static struct slice long_build_ids(size_t n)
{
    struct profile_bytes out = pprof_begin();
    put_long_string(&out, 8 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_number(&out, 1, 2 + i);
        put_number(&out, 6, 3);
        profile_bytes_wrap(&out, begin, MAPPING);
    }
    return message_done(&out);
}

static struct slice long_comments(size_t n)
{
    struct profile_bytes out = pprof_begin();
    put_long_string(&out, 8 * n);
    put_number(&out, 13, 3);
    put_sample(&out, 1, 0);
    return message_done(&out);
}

static struct slice unknown_fields(size_t n)
{
    struct profile_bytes out = pprof_begin();
    for (size_t i = 0; i < n; i++) {
        put_number(&out, 1000, 1);
        put_sample(&out, 1, 0);
    }
    return message_done(&out);
}

static const struct work_shape pprofs[] = {
    {"equal samples", equal_samples},
    {"different entries", different_entries},
    {"a deep stack", deep_stacks},
    {"a sample of many labels", many_labels},
    {"different labels", different_labels},
    {"samples of as many labels as they may have", full_samples},
    {"functions of one long name", long_function_names},
    {"labels of one long key", long_label_keys},
    {"labels of one long text", long_label_texts},
    {"labels of one long unit", long_label_units},
    {"lists of one long text", long_label_lists},
    {"mappings of one long build id", long_build_ids},
    {"a long comment", long_comments},
    {"a location of many lines", many_lines},
    {"many types", many_types},
    {"unknown fields", unknown_fields},
};

static void add_label(struct series *series, const char *name, const char *value)
{
    bool is_added = series_add(series, slice_of_text(name), slice_of_text(value));
    assert(is_added);
}

static void run_pprof(struct slice profile)
{
    static const struct upload_limits limits = {.label_names = 30,
                                                .label_name_bytes = 1024,
                                                .label_value_bytes = 2048,
                                                .sample_labels = 100};
    struct arena arena;
    struct pprof pprof;
    struct series series = {.count = 0};
    struct error error = {.text = ""};
    struct buffer *request = NULL;
    add_label(&series, "__name__", "process_cpu");
    add_label(&series, "service_name", "shop");
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    work_begin();
    bool is_read = pprof_read(&arena, profile, &pprof, &error);
    if (is_read) {
        upload_check_profile(&pprof, &series, &limits, &error);
        series_to_otlp(&series, &pprof, NULL, &request, NULL);
        work_produced(request != NULL ? request->size : 0);
    }
    work_end();
    if (!is_read)
        printf("%s\n", error.text);
    buffer_unref(request);
    arena_clear(&arena);
}

/* `spanflame profile merge`, of a file with itself. */
static void run_merge(struct slice profile)
{
    struct arena arena;
    struct pprof pprof;
    struct pprof_merge merge;
    struct error error = {.text = ""};
    struct buffer *merged = NULL;
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    pprof_merge_init(&merge, NULL);
    work_begin();
    bool is_read = pprof_read(&arena, profile, &pprof, &error);
    if (is_read && pprof_merge_add(&merge, &pprof, &error) &&
        pprof_merge_add(&merge, &pprof, &error))
        merged = pprof_merge_take(&merge, &error);
    work_produced(merged != NULL ? merged->size : 0);
    work_end();
    if (!is_read)
        printf("%s\n", error.text);
    buffer_unref(merged);
    pprof_merge_fini(&merge);
    arena_clear(&arena);
}

/* Differences of a cumulative profile to itself. Its first type is made one of those that differ:
 * "cpu" and "key" become its name and unit. */
static void run_delta(struct slice profile)
{
    struct arena arena;
    struct pprof pprof;
    struct pprof_delta delta;
    struct error error = {.text = ""};
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    pprof_delta_init(&delta, NULL);
    work_begin();
    for (int i = 0; i < 2 && pprof_read(&arena, profile, &pprof, &error); i++) {
        pprof.strings[1] = slice_of_text("contentions");
        pprof.strings[2] = slice_of_text("count");
        pprof.sample_types[0] = (struct pprof_value_type){.type = 1, .unit = 2};
        enum pprof_delta_result result = pprof_delta_take(&delta, &pprof, &arena);
        assert(result == (i == 0 ? PPROF_DELTA_FIRST : PPROF_DELTA_TAKEN));
    }
    work_end();
    if (error.text[0] != '\0')
        printf("%s\n", error.text);
    pprof_delta_fini(&delta);
    arena_clear(&arena);
}

static const struct work_stage pprof_stages[] = {
    {.name = "pprof, merged", .run = run_merge, .per_byte_max = 85},
    {.name = "pprof, read, checked, to OTLP", .run = run_pprof, .per_byte_max = 85},
    {.name = "pprof, read and differences taken, twice", .run = run_delta, .per_byte_max = 140},
};

static struct slice equal_lines(size_t n)
{
    return repeat("", "main;work;sleep 1\n", n, "");
}

static struct slice different_lines(size_t n)
{
    return numbered("", "main;", n, " 1\n", "");
}

static struct slice deep_line(size_t n)
{
    return repeat("main", ";work", n, " 1\n");
}

static struct slice deep_different_line(size_t n)
{
    return numbered("main", ";", n, "", " 1\n");
}

static struct slice semicolons(size_t n)
{
    return repeat("", ";", n, " 1\n");
}

static struct slice line_ends(size_t n)
{
    return repeat("", "\n", n, "a 1\n");
}

static struct slice blanks(size_t n)
{
    return repeat("a", " ", n, "1\n");
}

/* Nodes of a trie, each the only child of the one before. */
static struct slice trie_chain(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of("\1a\0\1", 4));
    profile_bytes_add(&out, slice_of("\1a\1\0", 4));
    return message_done(&out);
}

static struct slice trie_star(size_t n)
{
    struct profile_bytes out = {0};
    profile_bytes_add(&out, slice_of("\1a\0", 3));
    put_varint(&out, n);
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of("\1b\1\0", 4));
    return message_done(&out);
}

static const struct work_shape texts[] = {
    {"equal lines", equal_lines}, {"different lines", different_lines},
    {"a deep line", deep_line},   {"a deep line of different frames", deep_different_line},
    {"semicolons", semicolons},   {"line ends", line_ends},
    {"blanks", blanks},           {"a trie's chain", trie_chain},
    {"a trie's star", trie_star},
};

static void read_text(enum text_format format, struct slice body)
{
    static const struct stack_profile_head head = {
        .type = "cpu", .unit = "nanoseconds", .scale = 3};
    struct budget budget;
    struct stack_profile profile;
    struct error error = {.text = ""};
    budget_init(&budget, UINT64_MAX);
    stack_profile_init(&profile, &head, &budget);
    work_begin();
    if (text_profile_read(format, body, &profile, &error))
        buffer_unref(stack_profile_take(&profile));
    /* A tree spells each of its stacks out, up to UPLOAD_SPELT_BYTES_MAX. */
    work_produced(profile.bytes);
    work_end();
    stack_profile_fini(&profile);
    budget_fini(&budget);
}

static void run_folded(struct slice body)
{
    read_text(TEXT_FOLDED, body);
}

static void run_lines(struct slice body)
{
    read_text(TEXT_LINES, body);
}

static void run_trie(struct slice body)
{
    read_text(TEXT_TRIE, body);
}

static void run_tree(struct slice body)
{
    read_text(TEXT_TREE, body);
}

static void run_heap(struct slice body)
{
    struct error error;
    struct profile_bytes text = {0};
    profile_bytes_add(&text, slice_of_text("heap_v2/524288\n  t*: 1: 10 [0: 0]\n"));
    profile_bytes_add(&text, body);
    work_begin();
    buffer_unref(heap_profile_to_pprof(slice_of(text.data, text.size), 1, &error));
    work_end();
    profile_bytes_fini(&text);
}

static const struct work_stage text_stages[] = {
    {.name = "folded stacks", .run = run_folded, .per_byte_max = 33},
    {.name = "lines", .run = run_lines, .per_byte_max = 33},
    {.name = "trie", .run = run_trie, .per_byte_max = 45},
    {.name = "tree", .run = run_tree, .per_byte_max = 54},
};

static const struct work_stage heap_stages[] = {
    {.name = "heap profile", .run = run_heap, .per_byte_max = 30}};

static struct slice heap_samples(size_t n)
{
    return repeat("", "@ 0x1 0x2 0x3\n  t*: 1: 10 [0: 0]\n", n, "");
}

static struct slice heap_different(size_t n)
{
    struct profile_bytes out = {0};
    char line[64];
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "@ 0x%08zx\n  t*: 1: 10 [0: 0]\n", i);
        profile_bytes_add(&out, slice_of_text(line));
    }
    return message_done(&out);
}

static struct slice heap_deep(size_t n)
{
    return repeat("@", " 0x1234", n, "\n  t*: 1: 10 [0: 0]\n");
}

static const struct work_shape heaps[] = {
    {"equal stacks", heap_samples},
    {"different stacks", heap_different},
    {"a deep stack", heap_deep},
};

static struct slice empty_parts(size_t n)
{
    return repeat("", "--b\r\n\r\n\r\n", n, "--b--\r\n");
}

static struct slice headers_of_parts(size_t n)
{
    return repeat("--b\r\n", "Content-Disposition: form-data; name=\"a\"\r\n", n,
                  "\r\nx\r\n--b--\r\n");
}

static struct slice near_delimiters(size_t n)
{
    return repeat("--b\r\n\r\n", "\r\n--", n, "\r\n--b--\r\n");
}

static struct slice quotes(size_t n)
{
    return repeat("--b\r\nContent-Disposition: form-data; name=\"", "\\\"", n,
                  "\"\r\n\r\nx\r\n--b--\r\n");
}

/* Each byte could begin the boundary that is looked for. */
static struct slice hyphens(size_t n)
{
    return repeat("---\r\n\r\nx", "--------", n, "");
}

static const struct work_shape hyphen_forms[] = {{"hyphens", hyphens}};

static const struct work_shape forms[] = {
    {"empty parts", empty_parts},
    {"headers", headers_of_parts},
    {"near delimiters", near_delimiters},
    {"quotes", quotes},
};

static void read_form(const char *type, struct slice body)
{
    struct multipart_part part;
    work_begin();
    struct multipart form = multipart_of(slice_of_text(type), body);
    while (multipart_next(&form, &part)) {
    }
    work_end();
}

static void run_form(struct slice body)
{
    read_form("multipart/form-data; boundary=b", body);
}

static void run_hyphen_form(struct slice body)
{
    read_form("multipart/form-data; boundary=-", body);
}

static const struct work_stage hyphen_form_stages[] = {
    {.name = "multipart, boundary of a hyphen", .run = run_hyphen_form, .per_byte_max = 1}};

static const struct work_stage form_stages[] = {
    {.name = "multipart", .run = run_form, .per_byte_max = 0.2}};

static struct slice label_names(size_t n)
{
    return numbered("name=shop{", "", n, "=v,", "}&from=1&until=2");
}

static struct slice parameters(size_t n)
{
    return numbered("name=shop&", "", n, "=v&", "from=1");
}

static struct slice repeated_parameters(size_t n)
{
    return repeat("", "name=shop&from=1&", n, "until=2");
}

static struct slice escapes(size_t n)
{
    return repeat("name=shop{a=", "%41", n, "}");
}

static struct slice braces(size_t n)
{
    return repeat("name=shop", "{", n, "}");
}

static struct slice ampersands(size_t n)
{
    return repeat("name=shop", "&", n, "");
}

static const struct work_shape queries[] = {
    {"labels", label_names}, {"parameters", parameters}, {"equal parameters", repeated_parameters},
    {"escapes", escapes},    {"braces", braces},         {"ampersands", ampersands},
};

static void run_query(struct slice text)
{
    struct ingest_query query;
    struct error error = {.text = ""};
    work_begin();
    if (ingest_query_parse(&query, text, (uint64_t)1790000000 * 1000000000, &error))
        ingest_query_fini(&query);
    work_end();
}

static const struct work_stage query_stages[] = {
    {.name = "query of /ingest", .run = run_query, .per_byte_max = 57}};

/* PushRequest: 1 series {1 labels {1 name, 2 value}, 2 samples {1 profile}}. */
static struct slice push_series(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        size_t label = out.size;
        put_text(&out, 1, "service_name");
        put_text(&out, 2, name_of(name, i));
        profile_bytes_wrap(&out, label, 1);
        put_bytes(&out, 2, "", 0);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

static struct slice push_labels(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t label = out.size;
        put_text(&out, 1, name_of(name, i));
        put_text(&out, 2, "v");
        profile_bytes_wrap(&out, label, 1);
    }
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice push_samples(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, 2, "", 0);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape pushes[] = {
    {"series", push_series},
    {"labels", push_labels},
    {"samples", push_samples},
};

static void run_push(struct slice request)
{
    static struct push_series series;
    struct push_figures figures;
    struct slice profile;
    struct error error;
    const char *reason = NULL;
    work_begin();
    if (push_request_check(request, &figures, &reason)) {
        struct wire_reader reader = wire_reader_of(request);
        while (push_next_series(&reader, &series)) {
            series_check(&series.labels, &error);
            while (push_next_profile(&series, &profile)) {
            }
        }
    }
    work_end();
}

static const struct work_stage push_stages[] = {
    {.name = "Push", .run = run_push, .per_byte_max = 61}};

static struct slice json_series(size_t n)
{
    return repeat("{\"series\":[",
                  "{\"labels\":[{\"name\":\"a\",\"value\":\"b\"}],"
                  "\"samples\":[{\"rawProfile\":\"AAAA\"}]},",
                  n, "{}]}");
}

static struct slice json_labels(size_t n)
{
    return repeat("{\"series\":[{\"labels\":[", "{\"name\":\"a\",\"value\":\"b\"},", n, "{}]}]}");
}

static struct slice json_profile(size_t n)
{
    return repeat("{\"series\":[{\"samples\":[{\"rawProfile\":\"", "AAAA", n, "\"}]}]}");
}

static struct slice json_escapes(size_t n)
{
    return repeat("{\"series\":[{\"labels\":[{\"name\":\"", "\\u0041", n, "\"}]}]}");
}

static struct slice json_deep(size_t n)
{
    return repeat("{\"x\":", "[", n, "");
}

static struct slice json_unknown(size_t n)
{
    return numbered("{", "\"", n, "\":{\"a\":[1,2]},", "\"series\":[]}");
}

static const struct work_shape jsons[] = {
    {"series", json_series},   {"labels", json_labels},       {"a profile", json_profile},
    {"escapes", json_escapes}, {"lists in lists", json_deep}, {"unknown keys", json_unknown},
};

static void run_push_json(struct slice text)
{
    struct budget budget;
    struct buffer *request = NULL;
    const char *reason = NULL;
    budget_init(&budget, UINT64_MAX);
    work_begin();
    push_json_read(text, &budget, &request, &reason);
    work_end();
    buffer_unref(request);
    budget_fini(&budget);
}

static const struct work_stage json_stages[] = {
    {.name = "Push, JSON", .run = run_push_json, .per_byte_max = 20}};

/* JFR files on their way to /ingest, with labels of names and values like these. */
struct label_shape {
    const char *name;
    const char *value;
    size_t repeats; /* of the value */
};

static struct slice opaque_request(size_t labels, const struct label_shape *shape, size_t payload)
{
    struct opaque_profile_pair *pairs = mem_zalloc((labels + 1) * sizeof(pairs[0]));
    struct slice value = repeat("", shape->value, shape->repeats, "");
    struct slice file = repeat("FLR", "x", payload, "");
    char(*names)[48] = mem_zalloc((labels + 1) * sizeof(names[0]));
    for (size_t i = 0; i < labels; i++) {
        snprintf(names[i], sizeof(names[i]), "%s%06zu", shape->name, i);
        pairs[i] = (struct opaque_profile_pair){slice_of_text(names[i]), value};
    }
    pairs[labels] =
        (struct opaque_profile_pair){slice_of_text("service.name"), slice_of_text("shop")};
    const struct opaque_profile profile = {.format = slice_of_text("jfr"),
                                           .payload = file,
                                           .labels_part = value,
                                           .labels = pairs,
                                           .labels_count = labels + 1,
                                           .parameters = pairs,
                                           .parameters_count = labels < 8 ? labels : 8};
    struct buffer *written = opaque_profile_write(&profile, NULL);
    struct profile_bytes out = {0};
    profile_bytes_add(&out, buffer_slice(written));
    buffer_unref(written);
    mem_free((void *)(uintptr_t)value.data);
    mem_free((void *)(uintptr_t)file.data);
    mem_free(names);
    mem_free(pairs);
    return message_done(&out);
}

static struct slice jfr_payload(size_t n)
{
    return opaque_request(1, &(struct label_shape){"k", "v", 1}, 8 * n);
}

static struct slice jfr_labels(size_t n)
{
    return opaque_request(n, &(struct label_shape){"k", "v", 1}, 0);
}

static struct slice jfr_changed_names(size_t n)
{
    return opaque_request(n, &(struct label_shape){"a b=,{}", "v", 1}, 0);
}

static struct slice jfr_long_value(size_t n)
{
    return opaque_request(1, &(struct label_shape){"k", "0123456789abcdef", n}, 0);
}

static struct slice jfr_escaped_value(size_t n)
{
    return opaque_request(1, &(struct label_shape){"k", "\xc3\xa4/ ", n}, 0);
}

static struct slice jfr_changed_value(size_t n)
{
    return opaque_request(1, &(struct label_shape){"k", ",}{ ", n}, 0);
}

enum { DICTIONARY = 2, STRINGS = 5, ATTRIBUTES = 6 };

/* Files that share long parameters. */
static struct slice jfr_shared_parameters(size_t n)
{
    static const char *const keys[] = {"", "pyroscope.ingest.spyName", "pyroscope.ingest.units"};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
    struct slice value = repeat("", "/", 8 * n, "");
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_text(&out, 9, "jfr");
        put_text(&out, 10, "F");
        size_t indices = out.size;
        for (size_t k = 1; k < KEYS; k++)
            put_varint(&out, k);
        profile_bytes_wrap(&out, indices, 11);
        profile_bytes_wrap(&out, begin, 2);
    }
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    size_t dictionary = out.size;
    for (size_t i = 0; i < KEYS; i++) {
        put_text(&out, STRINGS, keys[i]);
        size_t begin = out.size;
        if (i > 0)
            put_number(&out, 1, i);
        size_t inner = out.size;
        if (i > 0)
            put_bytes(&out, 1, value.data, value.size);
        profile_bytes_wrap(&out, inner, 2);
        profile_bytes_wrap(&out, begin, ATTRIBUTES);
    }
    profile_bytes_wrap(&out, dictionary, DICTIONARY);
    mem_free((void *)(uintptr_t)value.data);
    return message_done(&out);
}

static const struct work_shape uploads[] = {
    {"a long file", jfr_payload},
    {"labels", jfr_labels},
    {"names to change", jfr_changed_names},
    {"a long value", jfr_long_value},
    {"a value to escape", jfr_escaped_value},
    {"a value to change", jfr_changed_value},
    {"parameters of many files", jfr_shared_parameters},
};

static void run_upload(struct slice request)
{
    static const struct pyroscope_config config = {
        .labels = {.dots_to_underscores = true, .max_names = 60, .max_value_bytes = 1 << 20},
        .limits = {.max_samples = 1000, .max_bytes = 1 << 20, .max_stack_depth = 64},
    };
    static const struct otlp_to_pprof_rules rules = {
        .labels = {.names_max = 16, .value_bytes_max = 100},
        .samples_max = 1000,
        .bytes_max = 1 << 20,
        .depth_max = 64,
    };
    static const struct number_set uncut;
    struct pyroscope_walk walk;
    struct pyroscope_series series;
    struct pyroscope_form form;
    uint64_t changed = 0;
    work_begin();
    pyroscope_series_init(&series, NULL);
    bool is_open = pyroscope_walk_open(&walk, &config, &rules, request, NULL);
    assert(is_open);
    while (pyroscope_walk_next(&walk, &uncut) < PYROSCOPE_END) {
        const struct pyroscope_source source = {
            .config = &config.labels,
            .dictionary = &walk.dictionary,
            .type = &walk.type,
            .resource = walk.resource.resource,
            .scope = walk.scope.scope,
            .label_names = walk.label_names,
            .privates = &walk.privates,
        };
        const struct pyroscope_ingest ingest = {
            .path = "/ingest", .series = &series, .walk = &walk};
        pyroscope_form_init(&form, NULL, NULL);
        pyroscope_series_build(&series, &source);
        bool is_made = pyroscope_form_upload(&form, &ingest, &changed);
        assert(is_made);
        work_produced(pyroscope_form_bytes(&form));
        pyroscope_form_fini(&form);
    }
    pyroscope_walk_close(&walk);
    pyroscope_series_fini(&series);
    work_end();
}

static const struct work_stage upload_stages[] = {
    {.name = "pyroscope exporter, files", .run = run_upload, .n = 600, .per_byte_max = 50}};

#define CHECK(stages, shapes)                                                                      \
    work_check(stages, sizeof(stages) / sizeof((stages)[0]), shapes,                               \
               sizeof(shapes) / sizeof((shapes)[0]), argc, argv)

int main(int argc, char **argv)
{
    int failed = CHECK(pprof_stages, pprofs);
    failed += CHECK(text_stages, texts);
    failed += CHECK(heap_stages, heaps);
    failed += CHECK(form_stages, forms);
    failed += CHECK(hyphen_form_stages, hyphen_forms);
    failed += CHECK(query_stages, queries);
    failed += CHECK(push_stages, pushes);
    failed += CHECK(json_stages, jsons);
    failed += CHECK(upload_stages, uploads);
    return failed > 0;
}
