/* SPDX-License-Identifier: Apache-2.0 */
/* pprof to OTLP, row by row, and there and back: what a query could see stays the same. */
#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/otlp_to_pprof.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "tests/unit/profiles/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "google/pprof/profile.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

enum { ARENA_BYTES_MAX = 16 << 20, COLUMNS_MAX = 4 };

#define service_request                                                                            \
    Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name
#define VALUE_CASE(name)       OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name
#define SERVICE_REQUEST(name)  PROFILES_SERVICE(export_profiles_service_request__##name)

static const struct otlp_to_pprof_rules faithful = {
    .labels = {.has_trace_id = true,
               .has_numbers = true,
               .keeps_dots = true,
               .keeps_service = true,
               .names_max = OTLP_LABEL_NAMES_MAX,
               .value_bytes_max = 1 << 20},
    .samples_max = UINT32_MAX,
    .bytes_max = 1 << 30,
    .depth_max = 100000,
};

static struct buffer *to_otlp(struct slice bytes)
{
    struct arena arena;
    struct pprof pprof;
    struct error error = {.text = ""};
    struct budget budget;
    struct buffer *request = NULL;
    budget_init(&budget, 64 << 20);
    arena_init(&arena, ARENA_BYTES_MAX);
    if (!pprof_read(&arena, bytes, &pprof, &error))
        fail_msg("%s", error.text);
    const struct pprof_to_otlp_source source = {.pprof = &pprof};
    assert_true(pprof_to_otlp(&source, NULL, &request, NULL));
    arena_clear(&arena);
    budget_fini(&budget);
    return request;
}

/* The only profile of a request, or the one at that place, as pprof. */
static struct buffer *to_pprof_by(const struct otlp_to_pprof_rules *rules, struct slice request,
                                  size_t place)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct otlp_to_pprof conversion;
    struct profile_iterator at = profile_iterator_of(request);
    const struct profile *profile = &at.profile;
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_true(profile_dictionary_open(&dictionary, &arena, request));
    for (size_t i = 0; i <= place; i++)
        assert_true(profile_iterator_next(&at));
    const struct profile_type_texts texts = {
        .type = profile_string_at(&dictionary, profile->sample_type.type),
        .unit = profile_string_at(&dictionary, profile->sample_type.unit),
        .period_type = profile_string_at(&dictionary, profile->period_type.type),
        .period_unit = profile_string_at(&dictionary, profile->period_type.unit),
    };
    const struct profile_type type = profile_type_plain(&texts);
    const struct otlp_to_pprof_source source = {.profile = profile, .type = &type};
    otlp_to_pprof_init(&conversion, rules, &dictionary, NULL);
    otlp_to_pprof_begin(&conversion, &source);
    assert_true(otlp_to_pprof_fill(&conversion));
    struct buffer *output = otlp_to_pprof_take(&conversion, profile->time_unix_ns);
    assert_non_null(output);
    assert_false(otlp_to_pprof_fill(&conversion));
    otlp_to_pprof_fini(&conversion);
    arena_clear(&arena);
    return output;
}

static struct buffer *to_pprof(struct slice request, size_t place)
{
    return to_pprof_by(&faithful, request, place);
}

/* A copy of the profile with one column and only its samples that are not zero. */
static struct slice column_of(struct slice bytes, size_t column)
{
    Perftools__Profiles__Profile *profile =
        perftools__profiles__profile__unpack(NULL, bytes.size, bytes.data);
    Perftools__Profiles__Sample **all = profile->sample;
    Perftools__Profiles__ValueType **types = profile->sample_type;
    size_t count = profile->n_sample;
    size_t types_count = profile->n_sample_type;
    int64_t **values = calloc(count + 1, sizeof(values[0]));
    profile->sample = calloc(count + 1, sizeof(all[0]));
    profile->n_sample = 0;
    profile->sample_type = &types[column];
    profile->n_sample_type = 1;
    for (size_t i = 0; i < count; i++) {
        values[i] = all[i]->value;
        all[i]->value += column;
        all[i]->n_value = 1;
        if (all[i]->value[0] != 0)
            profile->sample[profile->n_sample++] = all[i];
    }
    struct slice packed = packed_message(profile);
    free(profile->sample);
    for (size_t i = 0; i < count; i++) {
        all[i]->value = values[i];
        all[i]->n_value = types_count;
    }
    free(values);
    profile->sample = all;
    profile->n_sample = count;
    profile->sample_type = types;
    profile->n_sample_type = types_count;
    perftools__profiles__profile__free_unpacked(profile, NULL);
    return packed;
}

static void real_profiles_come_back_column_by_column(void **state)
{
    static const struct {
        const char *file;
        size_t columns;
    } rows[] = {{"cpu.pb", 2}, {"heap.pb.gz", 4}, {"goroutine.pb.gz", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice bytes = corpus_file(rows[i].file);
        struct buffer *request = to_otlp(bytes);
        for (size_t k = 0; k < rows[i].columns; k++) {
            struct slice column = column_of(bytes, k);
            struct buffer *back = to_pprof(buffer_slice(request), k);
            char *expected = pprof_described_by_oracle(column);
            char *got = pprof_described_by_oracle(buffer_slice(back));
            print_message("   %s column %zu\n", rows[i].file, k);
            assert_string_equal(got, expected);
            mem_free(expected);
            mem_free(got);
            buffer_unref(back);
            mem_free((void *)(uintptr_t)column.data);
        }
        buffer_unref(request);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

static char *texts[] = {"",
                        "cpu",
                        "nanoseconds",
                        "work",
                        "work.c",
                        "app",
                        "span_id",
                        "051a1b6c441acd00",
                        "trace_id",
                        "5b8aa5a2d2c872e8321cf37308d69df2",
                        "key",
                        "one",
                        "two",
                        "bytes",
                        "a comment",
                        "https://doc",
                        "drop",
                        "keep",
                        "0123456789abcdef0123456789abcdef"};
enum {
    T_CPU = 1,
    T_NS,
    T_WORK,
    T_FILE,
    T_APP,
    T_SPAN_KEY,
    T_SPAN,
    T_TRACE_KEY,
    T_TRACE,
    T_KEY,
    T_ONE,
    T_TWO,
    T_BYTES,
    T_COMMENT,
    T_DOC,
    T_DROP,
    T_KEEP,
    T_BUILD_ID,
};

enum { LABELS = 5 };

static void make_labels(Perftools__Profiles__Label labels[LABELS],
                        Perftools__Profiles__Label *list[LABELS])
{
    static const int64_t rows[LABELS][4] = {{T_SPAN_KEY, T_SPAN, 0, 0},
                                            {T_TRACE_KEY, T_TRACE, 0, 0},
                                            {T_KEY, T_ONE, 0, 0},
                                            {T_BYTES, 0, 64, T_BYTES},
                                            {T_KEY, T_TWO, 0, 0}};
    for (size_t i = 0; i < LABELS; i++) {
        perftools__profiles__label__init(&labels[i]);
        labels[i].key = rows[i][0];
        labels[i].str = rows[i][1];
        labels[i].num = rows[i][2];
        labels[i].num_unit = rows[i][3];
        list[i] = &labels[i];
    }
}

static void fill_mapping(Perftools__Profiles__Mapping *mapping)
{
    mapping->id = UINT64_MAX;
    mapping->memory_start = 4096;
    mapping->memory_limit = 8192;
    mapping->file_offset = 12;
    mapping->filename = T_APP;
    mapping->build_id = T_BUILD_ID;
    mapping->has_functions = mapping->has_inline_frames = true;
}

/* One sample with every field that there is. */
static struct slice full_profile(void)
{
    Perftools__Profiles__ValueType type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
    Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT;
    Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
    Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
    Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT;
    Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
    Perftools__Profiles__Profile profile = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__Label labels[LABELS];
    Perftools__Profiles__Label *label_list[LABELS];
    make_labels(labels, label_list);
    type.type = T_CPU;
    type.unit = T_NS;
    fill_mapping(&mapping);
    function.id = 77;
    function.name = function.system_name = T_WORK;
    function.filename = T_FILE;
    function.start_line = 3;
    line.function_id = 77;
    line.line = 5;
    line.column = 9;
    location.id = 1 << 30;
    location.mapping_id = UINT64_MAX;
    location.address = 5000;
    location.is_folded = true;
    location.line = (Perftools__Profiles__Line *[]){&line};
    location.n_line = 1;
    sample.location_id = (uint64_t[]){1 << 30};
    sample.n_location_id = 1;
    sample.value = (int64_t[]){42};
    sample.n_value = 1;
    sample.label = label_list;
    sample.n_label = LABELS;
    profile.sample_type = (Perftools__Profiles__ValueType *[]){&type};
    profile.n_sample_type = 1;
    profile.sample = (Perftools__Profiles__Sample *[]){&sample};
    profile.n_sample = 1;
    profile.mapping = (Perftools__Profiles__Mapping *[]){&mapping};
    profile.n_mapping = 1;
    profile.location = (Perftools__Profiles__Location *[]){&location};
    profile.n_location = 1;
    profile.function = (Perftools__Profiles__Function *[]){&function};
    profile.n_function = 1;
    profile.string_table = texts;
    profile.n_string_table = sizeof(texts) / sizeof(texts[0]);
    profile.drop_frames = T_DROP;
    profile.keep_frames = T_KEEP;
    profile.time_nanos = 1790000000123456789;
    profile.duration_nanos = 10;
    profile.period_type = &type;
    profile.period = 100;
    profile.comment = (int64_t[]){T_COMMENT};
    profile.n_comment = 1;
    profile.default_sample_type = T_CPU;
    profile.doc_url = T_DOC;
    return packed_message(&profile);
}

/* "key=value" of an attribute of the table. */
static const char *attribute_text(const PROFILES(ProfilesDictionary) * dictionary, int32_t index)
{
    static char text[256] = "?";
    const PROFILES(KeyValueAndUnit) *attribute = dictionary->attribute_table[index];
    const Opentelemetry__Proto__Common__V1__AnyValue *value = attribute->value;
    const char *key = dictionary->string_table[attribute->key_strindex];
    const char *unit = dictionary->string_table[attribute->unit_strindex];
    if (value->value_case == VALUE_CASE(STRING_VALUE))
        snprintf(text, sizeof(text), "%s=%s", key, value->string_value);
    else if (value->value_case == VALUE_CASE(INT_VALUE))
        snprintf(text, sizeof(text), "%s=#%d%s", key, (int)value->int_value, unit);
    else if (value->value_case == VALUE_CASE(BOOL_VALUE))
        snprintf(text, sizeof(text), "%s=%s", key, value->bool_value ? "true" : "false");
    else if (value->value_case == VALUE_CASE(ARRAY_VALUE))
        snprintf(text, sizeof(text), "%s=[%zu %s]", key, value->array_value->n_values,
                 value->array_value->values[0]->string_value);
    return text;
}

static void check_attributes(const PROFILES(ProfilesDictionary) * dictionary,
                             const int32_t *indices, size_t count, const char *const *expected)
{
    for (size_t i = 0; i < count; i++) {
        assert_non_null(expected[i]);
        assert_string_equal(attribute_text(dictionary, indices[i]), expected[i]);
    }
    assert_null(expected[count]);
}

static void every_field_of_pprof_has_its_place_in_otlp(void **state)
{
    static const char *const of_mapping[] = {
        "process.executable.build_id.htlhash=0123456789abcdef0123456789abcdef",
        "pprof.mapping.has_functions=true", "pprof.mapping.has_inline_frames=true", NULL};
    static const char *const of_location[] = {"pprof.location.is_folded=true", NULL};
    static const char *const of_sample[] = {"key=[2 one]", "bytes=#64bytes", NULL};
    static const char *const of_profile[] = {
        "pprof.profile.doc_url=https://doc", "pprof.profile.drop_frames=drop",
        "pprof.profile.keep_frames=keep", "pprof.profile.comment=[1 a comment]", NULL};
    (void)state;
    struct slice bytes = full_profile();
    struct buffer *request = to_otlp(bytes);
    service_request *decoded = SERVICE_REQUEST(unpack)(NULL, request->size, request->data);
    assert_non_null(decoded);
    const PROFILES(ProfilesDictionary) *dictionary = decoded->dictionary;
    assert_int_equal(decoded->n_resource_profiles, 1);
    assert_int_equal(decoded->resource_profiles[0]->scope_profiles[0]->n_profiles, 1);
    const PROFILES(Profile) *profile =
        decoded->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_string_equal(dictionary->string_table[0], "");
    assert_string_equal(dictionary->string_table[profile->sample_type->type_strindex], "cpu");
    assert_int_equal(profile->time_unix_nano, 1790000000123456789);
    assert_int_equal(profile->duration_nano, 10);
    assert_int_equal(profile->period, 100);
    check_attributes(dictionary, profile->attribute_indices, profile->n_attribute_indices,
                     of_profile);
    assert_int_equal(profile->n_samples, 1);
    const PROFILES(Sample) *sample = profile->samples[0];
    assert_int_equal(sample->values[0], 42);
    check_attributes(dictionary, sample->attribute_indices, sample->n_attribute_indices, of_sample);
    const PROFILES(Link) *link = dictionary->link_table[sample->link_index];
    assert_int_equal(link->trace_id.len, 16);
    assert_memory_equal(link->span_id.data, "\x05\x1a\x1b\x6c\x44\x1a\xcd\x00", 8);
    assert_int_equal(dictionary->stack_table[sample->stack_index]->n_location_indices, 1);
    const PROFILES(Location) *location =
        dictionary
            ->location_table[dictionary->stack_table[sample->stack_index]->location_indices[0]];
    assert_int_equal(location->address, 5000);
    assert_int_equal(location->lines[0]->column, 9);
    check_attributes(dictionary, location->attribute_indices, location->n_attribute_indices,
                     of_location);
    const PROFILES(Mapping) *mapping = dictionary->mapping_table[location->mapping_index];
    assert_int_equal(mapping->file_offset, 12);
    check_attributes(dictionary, mapping->attribute_indices, mapping->n_attribute_indices,
                     of_mapping);
    SERVICE_REQUEST(free_unpacked)(decoded, NULL);
    buffer_unref(request);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void every_field_comes_back(void **state)
{
    (void)state;
    struct slice bytes = full_profile();
    struct buffer *request = to_otlp(bytes);
    struct buffer *back = to_pprof(buffer_slice(request), 0);
    Perftools__Profiles__Profile *profile =
        perftools__profiles__profile__unpack(NULL, back->size, back->data);
    assert_non_null(profile);
    assert_string_equal(profile->string_table[profile->doc_url], "https://doc");
    assert_string_equal(profile->string_table[profile->drop_frames], "drop");
    assert_string_equal(profile->string_table[profile->keep_frames], "keep");
    assert_string_equal(profile->string_table[profile->comment[0]], "a comment");
    assert_int_equal(profile->mapping[0]->file_offset, 12);
    assert_int_equal(profile->mapping[0]->has_inline_frames, 1);
    assert_string_equal(profile->string_table[profile->mapping[0]->build_id],
                        "0123456789abcdef0123456789abcdef");
    assert_int_equal(profile->location[0]->is_folded, 1);
    assert_int_equal(profile->function[0]->start_line, 3);
    assert_non_null(profile->period_type);
    perftools__profiles__profile__free_unpacked(profile, NULL);
    buffer_unref(back);
    buffer_unref(request);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void refused_memory_gives_no_request_and_leaks_nothing(void **state)
{
    struct slice bytes = full_profile();
    struct arena arena;
    struct pprof pprof;
    struct error error = {.text = ""};
    bool has_succeeded = false;
    (void)state;
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_true(pprof_read(&arena, bytes, &pprof, &error));
    for (uint64_t n = 1; !has_succeeded; n++) {
        const struct pprof_to_otlp_source source = {.pprof = &pprof};
        struct budget budget;
        struct buffer *request = NULL;
        budget_init(&budget, 1 << 20);
        assert_true(n < 500);
        mem_refuse_nth(n);
        has_succeeded = pprof_to_otlp(&source, &budget, &request, NULL);
        mem_refuse_nth(0);
        assert_int_equal(has_succeeded, request != NULL);
        buffer_unref(request);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    arena_clear(&arena);
    mem_free((void *)(uintptr_t)bytes.data);
}

/* A profile of one long text, which many short fields name. */
enum { LONG_BYTES = 8 << 10, NAMED = 8 << 10 };

static struct slice profile_of_long_text(bool has_comments, bool has_lists)
{
    static char text[LONG_BYTES];
    struct pprof_writer writer;
    int64_t value = 1;
    memset(text, 'x', sizeof(text));
    pprof_writer_init(&writer, NULL, 64 << 20);
    uint32_t name = pprof_writer_string(&writer, slice_of(text, sizeof(text)));
    uint32_t key = pprof_writer_string(&writer, slice_of_text("key"));
    pprof_writer_value_type(&writer, PPROF_SAMPLE_TYPE, (struct pprof_value_type){key, key});
    for (uint32_t i = 0; i < NAMED && has_comments; i++)
        pprof_writer_number(&writer, PPROF_COMMENT, name);
    for (int64_t i = 0; i < (has_lists ? NAMED : 1); i++) {
        const struct pprof_label labels[] = {{.key = key, .text = name},
                                             {.key = key, .number = i + 1}};
        const struct pprof_sample sample = {
            .values = &value, .labels = labels, .labels_count = has_lists ? 2 : 0};
        pprof_writer_sample(&writer, &sample, 1);
    }
    struct buffer *buffer = pprof_writer_take(&writer);
    uint8_t *bytes = mem_alloc(buffer->size);
    memcpy(bytes, buffer->data, buffer->size);
    struct slice copy = slice_of(bytes, buffer->size);
    buffer_unref(buffer);
    pprof_writer_fini(&writer);
    return copy;
}

/* The size of the request; 0: there is none, as it would be too large. */
static size_t size_as_otlp(struct slice bytes, uint64_t budget_bytes)
{
    struct arena arena;
    struct pprof pprof;
    struct error error = {.text = ""};
    struct budget budget;
    struct buffer *request = NULL;
    budget_init(&budget, budget_bytes);
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_true(pprof_read(&arena, bytes, &pprof, &error));
    const struct pprof_to_otlp_source source = {.pprof = &pprof};
    bool is_too_large;
    bool is_converted = pprof_to_otlp(&source, &budget, &request, &is_too_large);
    size_t size = is_converted ? request->size : 0;
    assert_int_equal(is_too_large, !is_converted);
    buffer_unref(request);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    arena_clear(&arena);
    mem_free((void *)(uintptr_t)bytes.data);
    return size;
}

static void equal_comments_are_one(void **state)
{
    (void)state;
    size_t size = size_as_otlp(profile_of_long_text(true, false), 1 << 20);
    assert_in_range(size, LONG_BYTES, 2 * LONG_BYTES);
}

/* Lists that differ elsewhere have it once each. */
static void a_long_text_is_not_spelt_without_end(void **state)
{
    (void)state;
    assert_int_equal(size_as_otlp(profile_of_long_text(false, true), 1 << 30), 0);
}

/* One sample whose label is a number of a long unit, here and in a part that is smaller. */
static void long_units_of_numbers_are_cut(void **state)
{
    static const size_t sizes[] = {10, 200, 5000, 100000, 1 << 20};
    enum { VALUE_BYTES = 200 };
    struct otlp_to_pprof_rules rules = faithful;
    (void)state;
    rules.labels.value_bytes_max = VALUE_BYTES;
    rules.bytes_max = 64 << 10;
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i / 2];
        struct pprof_writer writer;
        const int64_t value = 1;
        char *unit = mem_alloc(size);
        memset(unit, 'x', size);
        unit[size / 2] = i % 2 == 0 ? 'x' : '\xff';
        pprof_writer_init(&writer, NULL, 64 << 20);
        uint32_t key = pprof_writer_string(&writer, slice_of_text("key"));
        const struct pprof_label label = {
            .key = key, .number = 7, .unit = pprof_writer_string(&writer, slice_of(unit, size))};
        const struct pprof_sample sample = {.values = &value, .labels = &label, .labels_count = 1};
        pprof_writer_value_type(&writer, PPROF_SAMPLE_TYPE, (struct pprof_value_type){key, key});
        pprof_writer_sample(&writer, &sample, 1);
        struct buffer *bytes = pprof_writer_take(&writer);
        struct buffer *request = to_otlp(buffer_slice(bytes));
        struct buffer *output = to_pprof_by(&rules, buffer_slice(request), 0);
        Perftools__Profiles__Profile *profile =
            perftools__profiles__profile__unpack(NULL, output->size, output->data);
        assert_non_null(profile);
        const Perftools__Profiles__Label *back = profile->sample[0]->label[0];
        const char *text = profile->string_table[back->num_unit];
        assert_int_equal(back->num, 7);
        assert_int_equal(strlen(text), size < VALUE_BYTES ? size : VALUE_BYTES);
        assert_null(strchr(text, '\xff'));
        perftools__profiles__profile__free_unpacked(profile, NULL);
        buffer_unref(output);
        buffer_unref(request);
        buffer_unref(bytes);
        pprof_writer_fini(&writer);
        mem_free(unit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_profiles_come_back_column_by_column),
        cmocka_unit_test(every_field_of_pprof_has_its_place_in_otlp),
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(refused_memory_gives_no_request_and_leaks_nothing),
        cmocka_unit_test(equal_comments_are_one),
        cmocka_unit_test(a_long_text_is_not_spelt_without_end),
        cmocka_unit_test(long_units_of_numbers_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
