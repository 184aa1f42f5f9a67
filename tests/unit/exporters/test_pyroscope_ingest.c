/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope against the strict stand-in's /ingest: names and queries, JFR files in every mode,
 * and what becomes of profiles that a server never lets pass. */
#include "exporters/pyroscope/pyroscope_attempt.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_merge.h"
#include "tests/support/skip.h"
#include "tests/unit/exporters/pyroscope_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW "1790000000000000000"

static const struct sketch_sample one_sample[] = {
    {.stack = "work;main", .values_count = 1, .values = {3}, .attributes = {"thread=a,b}"}},
};

static const struct sketch_profile cpu_profile = {.type = {"cpu", "nanoseconds"},
                                                  .period_type = {"cpu", "nanoseconds"},
                                                  .period = 10000000,
                                                  .time_ns = NOW_NS,
                                                  .duration_ns = 5,
                                                  .samples_count = 1,
                                                  .samples = one_sample};

struct name_case {
    const char *resource[8];
    const char *name; /* as it stands in the query */
    const char *labels;
    unsigned changed;
};

#define BASE "{__delta__=\"false\", __name__=\"process_cpu\", "
#define SPY  "pyroscope_spy=\"spanflame\", "

static const struct name_case name_cases[] = {
    {{"service.name=shop"}, "name=shop&", BASE SPY "service_name=\"shop\"}", 0},
    {{"service.name=a/b-c.d_e"}, "name=a%2Fb-c.d_e&", BASE SPY "service_name=\"a/b-c.d_e\"}", 0},
    {{"service.name=my shop"},
     "name=my_shop%7Bservice_name%3Dmy%20shop%7D&",
     "{__delta__=\"false\", __name__=\"process_cpu\", app_name=\"my_shop\", " SPY
     "service_name=\"my shop\"}",
     1},
    {{"service.name=a", "region=x"},
     "name=a%7Bregion%3Dx%7D&",
     BASE SPY "region=\"x\", service_name=\"a\"}",
     0},
    {{"service.name=a", "region=x,y=z}{w"},
     "name=a%7Bregion%3Dx_y%3Dz_%7Bw%7D&",
     BASE SPY "region=\"x_y=z_{w\", service_name=\"a\"}",
     1},
    {{"service.name=a", "region= x\t"},
     "name=a%7Bregion%3Dx%7D&",
     BASE SPY "region=\"x\", service_name=\"a\"}",
     1},
    {{"service.name=a", "region= \t", "zone=y"},
     "name=a%7Bzone%3Dy%7D&",
     BASE SPY "service_name=\"a\", zone=\"y\"}",
     1},
    {{"service.name=a", "re gion=x", "zone=\xc3\xa4"},
     "name=a%7Bre_gion%3Dx%2Czone%3D%C3%A4%7D&",
     BASE SPY "re_gion=\"x\", service_name=\"a\", zone=\"\xc3\xa4\"}",
     1},
    {{"service.name=a", "pyroscope_spy=gospy"},
     "name=a&",
     BASE "pyroscope_spy=\"gospy\", service_name=\"a\"}",
     0},
};

static void names_say_all_labels_and_no_value_ends_early(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(name_cases) / sizeof(name_cases[0]); i++) {
        const struct name_case *row = &name_cases[i];
        struct fixture fixture;
        struct sketch sketch = {.profiles_count = 1, .profiles = &cpu_profile};
        memcpy(sketch.resource, row->resource, sizeof(row->resource));
        set_up(&fixture, "mode: ingest, labels: {allow: [region, re gion, zone, pyroscope_spy]}");
        export_sketch(&fixture, &sketch);
        print_message("   %s\n", fixture.server->query);
        assert_string_equal(fixture.server->last_error, "");
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_string_equal(fixture.server->path, "/ingest");
        assert_memory_equal(fixture.server->query, row->name, strlen(row->name));
        assert_int_equal(fixture.server->stored_count, 1);
        assert_string_equal(fixture.server->stored[0].labels, row->labels);
        assert_int_equal(counter_read(&counters(&fixture)->changed_labels), row->changed);
        tear_down(&fixture);
    }
}

struct type_case {
    struct sketch_profile profile;
    const char *name;
    const char *query; /* behind until */
};

#define QUERY(rate, units, aggregation)                                                            \
    "&spyName=spanflame&sampleRate=" rate "&units=" units "&aggregationType=" aggregation
#define TYPE(type_text, unit_text)                                                                 \
    {                                                                                              \
        .type = {type_text, unit_text}, .time_ns = NOW_NS, .samples_count = 1,                     \
        .samples = one_sample                                                                      \
    }

static const struct type_case type_cases[] = {
    {{.type = {"cpu", "nanoseconds"},
      .period_type = {"cpu", "nanoseconds"},
      .period = 10000000,
      .time_ns = NOW_NS,
      .samples_count = 1,
      .samples = one_sample},
     "process_cpu",
     QUERY("100", "samples", "sum")},
    {{.type = {"samples", "count"},
      .period_type = {"cpu", "nanoseconds"},
      .period = 1000000,
      .time_ns = NOW_NS,
      .samples_count = 1,
      .samples = one_sample},
     "process_cpu",
     QUERY("1000", "samples", "sum")},
    {TYPE("inuse_space", "bytes"), "memory", QUERY("100", "bytes", "average")},
    {TYPE("alloc_objects", "count"), "memory", QUERY("100", "objects", "sum")},
    {TYPE("wall", "nanoseconds"), "wall", QUERY("100", "samples", "sum")},
    {TYPE("contentions", "count"), "mutex", QUERY("100", "lock_samples", "sum")},
    {TYPE("delay", "nanoseconds"), "mutex", QUERY("100", "lock_nanoseconds", "sum")},
    {TYPE("goroutine", "count"), "goroutine", QUERY("100", "goroutines", "average")},
    {TYPE("exceptions", "count"), "exception", QUERY("100", "samples", "sum")},
    {TYPE("lock", "count"), "lock", QUERY("100", "samples", "sum")},
};

static void types_get_their_canonical_names_by_the_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(type_cases) / sizeof(type_cases[0]); i++) {
        const struct sketch sketch = {.resource = {"service.name=s"},
                                      .profiles_count = 1,
                                      .profiles = &type_cases[i].profile};
        struct fixture fixture;
        char expected[512];
        set_up(&fixture, "mode: ingest");
        export_sketch(&fixture, &sketch);
        assert_string_equal(fixture.server->last_error, "");
        assert_int_equal(fixture.server->stored_count, 1);
        snprintf(expected, sizeof(expected), "__name__=\"%s\"", type_cases[i].name);
        assert_non_null(strstr(fixture.server->stored[0].labels, expected));
        snprintf(expected, sizeof(expected), "name=s&from=" NOW "&until=" NOW "%s",
                 type_cases[i].query);
        assert_string_equal(fixture.server->query, expected);
        tear_down(&fixture);
    }
}

/* A profile that came with a name keeps its type, whatever that is: the form stays JSON. */
static void types_beside_a_name_can_be_any_string(void **state)
{
    static const struct {
        const char *type;
        const char *config;
    } rows[] = {
        {"", "{\"\":{\"display-name\":\"block\"}}"},
        {"a\"}}\\\r\n", "{\"a\\\"}}\\\\\\r\\n\":{\"display-name\":\"block\"}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sketch_profile profile = {
            .type = {rows[i].type, "count"},
            .time_ns = NOW_NS,
            .samples_count = 1,
            .samples = one_sample,
            .attributes = {"pyroscope.label.__name__=block"},
        };
        const struct sketch sketch = {
            .resource = {"service.name=s"}, .profiles_count = 1, .profiles = &profile};
        struct fixture fixture;
        set_up(&fixture, "mode: ingest, compression: none");
        export_sketch(&fixture, &sketch);
        assert_int_equal(fixture.server->requests, 1);
        assert_non_null(strstr(fixture.server->query, "units=lock_samples"));
        assert_string_equal(fixture.server->type_config, rows[i].config);
        tear_down(&fixture);
    }
}

/* Compressed or not, the profile is that of a Push. */
static void profiles_are_those_of_push(void **state)
{
    static const char *const options[] = {"mode: push", "mode: ingest",
                                          "mode: ingest, compression: none"};
    const struct sketch sketch = {
        .resource = {"service.name=s"}, .profiles_count = 1, .profiles = &cpu_profile};
    char first[4096] = "";
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture fixture;
        set_up(&fixture, options[i]);
        export_sketch(&fixture, &sketch);
        assert_int_equal(fixture.server->stored_count, 1);
        if (i == 0)
            snprintf(first, sizeof(first), "%s", fixture.server->stored[0].profile);
        assert_string_equal(fixture.server->stored[0].profile, first);
        tear_down(&fixture);
    }
}

static void statuses_of_ingest_are_classified(void **state)
{
    static const struct {
        unsigned status;
        bool is_permanent;
    } rows[] = {{400, true}, {413, true}, {422, true}, {408, false}, {429, false}, {503, false}};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &cpu_profile};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, "mode: ingest");
        fixture.server->steps[0] = rows[i].status;
        export_sketch(&fixture, &sketch);
        assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
        assert_int_equal(fixture.exporter.outcome.is_permanent, rows[i].is_permanent);
        assert_non_null(strstr(fixture.exporter.message, "/ingest responded with HTTP Status"));
        tear_down(&fixture);
    }
}

/* Servers before 2.2 say 422 where later ones say 429. */
static void an_old_servers_rate_limit_is_one(void **state)
{
    const struct sketch sketch = {.profiles_count = 1, .profiles = &cpu_profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "mode: ingest");
    fixture.server->steps[0] = 422;
    fixture.server->step_message = "push rate limit (4 MiB) exceeded while adding 5 MiB";
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.exporter.outcome.code, STATUS_RESOURCE_EXHAUSTED);
    assert_false(fixture.exporter.outcome.is_permanent);
    tear_down(&fixture);
}

#define S(text)                                                                                    \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

static const struct opaque_profile_pair upload_labels[] = {
    {S("service.name"), S("shop")}, {S("region"), S("eu")}, {S("a.b"), S("c")}};
static const struct opaque_profile_pair upload_parameters[] = {{S("from"), S("1790000000")},
                                                               {S("until"), S("1790000010")},
                                                               {S("spyName"), S("javaspy")},
                                                               {S("sampleRate"), S("0")}};
static const struct opaque_profile upload = {
    .format = S("jfr"),
    .payload = S("FLR and so on"),
    .labels_part = S("snapshot"),
    .time_unix_ns = NOW_NS,
    .duration_ns = 10 * (uint64_t)NS_PER_S,
    .labels = upload_labels,
    .labels_count = 3,
    .parameters = upload_parameters,
    .parameters_count = 4,
};

static void export_upload(struct fixture *fixture, const struct opaque_profile *one)
{
    struct buffer *request = opaque_profile_write(one, NULL);
    exporter_export(&fixture->exporter, buffer_slice(request), 1);
    buffer_unref(request);
}

#define UPLOAD_LABELS                                                                              \
    "{__delta__=\"false\", a.b=\"c\", pyroscope_spy=\"javaspy\", region=\"eu\", "                  \
    "service_name=\"shop\"}"
#define UPLOAD_TEXT                                                                                \
    "jfr=FLR and so on labels=snapshot from=1790000000 until=1790000010 sampleRate=0"

/* Labels that came as labels keep their names, though the allow-list does not know them. */
static void files_of_jfr_go_to_ingest_in_every_mode(void **state)
{
    static const char *const modes[] = {"mode: push", "mode: ingest", "mode: otlp",
                                        "mode: push, compression: none"};
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, modes[i]);
        export_upload(&fixture, &upload);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
        assert_string_equal(fixture.server->last_error, "");
        assert_int_equal(fixture.server->requests, 1);
        assert_int_equal(fixture.server->stored_count, 1);
        assert_string_equal(fixture.server->stored[0].labels, UPLOAD_LABELS);
        assert_string_equal(fixture.server->stored[0].profile, UPLOAD_TEXT);
        tear_down(&fixture);
    }
}

static void a_file_without_parameters_goes_without(void **state)
{
    static const struct opaque_profile least = {
        .format = S("jfr"), .payload = S("x"), .labels = upload_labels, .labels_count = 1};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_upload(&fixture, &least);
    assert_string_equal(fixture.server->query, "name=shop&format=jfr");
    assert_string_equal(fixture.server->stored[0].profile, "jfr=x");
    tear_down(&fixture);
}

static void a_parameter_that_is_too_long_is_left_out(void **state)
{
    static const char slashes[] =
        "////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////"
        "/////////////////////////////////////////////////////////////////";
    static const struct opaque_profile_pair long_parameters[] = {{S("units"), S(slashes)},
                                                                 {S("sampleRate"), S("0")}};
    static const struct opaque_profile one = {.format = S("jfr"),
                                              .payload = S("x"),
                                              .labels = upload_labels,
                                              .labels_count = 1,
                                              .parameters = long_parameters,
                                              .parameters_count = 2};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_upload(&fixture, &one);
    assert_string_equal(fixture.server->query, "name=shop&format=jfr&sampleRate=0");
    assert_int_equal(counter_read(&counters(&fixture)->changed_labels), 1);
    tear_down(&fixture);
}

static void files_of_equal_times_stay_distinct(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_upload(&fixture, &upload);
    clock_fake_advance(1);
    export_upload(&fixture, &upload);
    assert_int_equal(fixture.server->stored_count, 2);
    assert_non_null(strstr(fixture.server->stored[0].profile, "from=1790000000 "));
    assert_non_null(strstr(fixture.server->stored[1].profile, "from=1790000000000000001 "));
    assert_int_equal(counter_read(&counters(&fixture)->moved), 1);
    tear_down(&fixture);
}

/* A pprof's time and duration are signed. Two profiles of one time, so that the second is moved on.
 */
static void times_beyond_those_of_a_pprof_are_dropped_and_counted(void **state)
{
    struct sketch_profile profiles[] = {cpu_profile, cpu_profile, cpu_profile};
    const struct sketch sketch = {
        .resource = {"service.name=s"}, .profiles_count = 3, .profiles = profiles};
    struct fixture fixture;
    (void)state;
    profiles[0].time_ns = UINT64_MAX;
    profiles[1].time_ns = UINT64_MAX;
    profiles[2].duration_ns = UINT64_MAX;
    set_up(&fixture, "mode: ingest, limits: {max_age: 0s, max_ahead: 0s}");
    export_sketch(&fixture, &sketch);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_non_null(strstr(fixture.server->query, "&from=" NOW "&until=" NOW "&"));
    assert_int_equal(fixture.exporter.outcome.rejected_items, 2);
    assert_int_equal(counter_read(&counters(&fixture)->too_new), 2);
    tear_down(&fixture);
}

static void files_outside_the_window_are_dropped_and_counted(void **state)
{
    struct opaque_profile old = upload;
    struct fixture fixture;
    (void)state;
    old.time_unix_ns = NOW_NS - 7200 * (uint64_t)NS_PER_S;
    set_up(&fixture, "");
    export_upload(&fixture, &old);
    assert_int_equal(fixture.server->requests, 0);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(counter_read(&counters(&fixture)->too_old), 1);
    tear_down(&fixture);
}

/* A request with that many uploads and that profile. */
static struct buffer *mixed_request(unsigned uploads, const struct sketch_profile *profile)
{
    const struct sketch sketch = {
        .resource = {"service.name=s"}, .profiles_count = 1, .profiles = profile};
    struct slice plain = sketch_request(&sketch);
    struct buffer *file = opaque_profile_write(&upload, NULL);
    struct profile_merge merge;
    struct profile_source source;
    profile_merge_init(&merge, NULL);
    for (unsigned i = 0; i <= uploads; i++) {
        assert_true(profile_source_open(&source, i == 0 ? plain : buffer_slice(file), &merge));
        assert_true(profile_merge_take(&merge, &source, (struct otlp_limit){.items_max = 0}));
        profile_source_close(&source);
    }
    struct buffer *request = profile_merge_finish(&merge, NULL);
    profile_merge_fini(&merge);
    buffer_unref(file);
    mem_free((void *)(uintptr_t)plain.data);
    return request;
}

/* In mode otlp what is no file goes as OTLP; a retry sends only what was not taken. */
static void files_and_otlp_are_settled_each_by_itself(void **state)
{
    struct buffer *request = mixed_request(2, &cpu_profile);
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "mode: otlp, concurrency: 1");
    fixture.server->steps[0] = 200; /* OTLP, which the stand-in does not know otherwise */
    fixture.server->steps[2] = 503;
    exporter_export(&fixture.exporter, buffer_slice(request), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_false(fixture.exporter.outcome.is_permanent);
    assert_int_equal(fixture.server->requests, 3);
    exporter_export(&fixture.exporter, buffer_slice(request), 3);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.server->requests, 4);
    assert_int_equal(fixture.server->stored_count, 2);
    tear_down(&fixture);
    buffer_unref(request);
}

enum { LARGE_SAMPLES = 6000 }; /* of a batch that the lane's helper converts */

/* A profile of that many samples, each with a stack of its own. */
static struct sketch_sample *many_samples(size_t count)
{
    struct sketch_sample *samples = mem_zalloc(count * sizeof(samples[0]));
    for (size_t i = 0; i < count; i++) {
        char *stack = mem_alloc(96);
        snprintf(stack, 96, "com.example.some.package.of.a.program.Class.function%zu;main", i);
        samples[i] =
            (struct sketch_sample){.stack = stack, .values_count = 1, .values = {(int64_t)i + 1}};
    }
    return samples;
}

static void free_samples(struct sketch_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mem_free((void *)(uintptr_t)samples[i].stack);
    mem_free(samples);
}

/* Tries again as the sender would, with so much time between, until the outcome is final. */
static unsigned try_on(struct fixture *fixture, const struct sketch *sketch, uint64_t pause_ns)
{
    unsigned tries = 0;
    fixture->exporter.arrival_ns = clock_now_ns();
    do {
        clock_fake_advance(pause_ns);
        export_sketch(fixture, sketch);
        tries++;
    } while (tries < 30 && fixture->exporter.outcome.verdict != ACCEPTED &&
             !fixture->exporter.outcome.is_permanent);
    return tries;
}

static void pass_in_pieces(const char *options, size_t count, size_t samples_max)
{
    struct sketch_sample *samples = many_samples(count);
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .time_ns = NOW_NS,
                                           .samples_count = count,
                                           .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct fixture fixture;
    int64_t sum = 0;
    set_up(&fixture, options);
    for (size_t i = 0; i < 4; i++)
        fixture.server->steps[i] = 429;
    assert_int_equal(try_on(&fixture, &sketch, 5 * (uint64_t)NS_PER_S), 5);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    assert_int_equal(fixture.server->stored_count, 16);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(fixture.server->stored[i].time_ns, (int64_t)(NOW_NS + 1 + i));
        assert_true(fixture.server->stored[i].samples <= samples_max);
        sum += fixture.server->stored[i].sum;
    }
    assert_int_equal(sum, count * (count + 1) / 2);
    assert_int_equal(counter_read(&counters(&fixture)->cut_posts), 1);
    tear_down(&fixture);
    free_samples(samples, count);
}

/* The second one is converted by the lane's helper. */
static void what_never_passes_alone_goes_in_pieces(void **state)
{
    (void)state;
    pass_in_pieces("", 100, 7);
    pass_in_pieces("concurrency: 1", LARGE_SAMPLES, LARGE_SAMPLES / 16 + 1);
}

/* What goes as OTLP is looked for by the helper too. */
static void files_and_otlp_of_a_large_batch_all_arrive(void **state)
{
    enum { UPLOADS = 3 };
    struct sketch_sample *samples = many_samples(LARGE_SAMPLES);
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .period_type = {"cpu", "nanoseconds"},
                                           .period = 1,
                                           .time_ns = NOW_NS,
                                           .samples_count = LARGE_SAMPLES,
                                           .samples = samples};
    struct buffer *request = mixed_request(UPLOADS, &profile);
    struct fixture fixture;
    char rest[128];
    (void)state;
    assert_true(request->size >= HELPED_PROFILES_BYTES_MIN);
    set_up(&fixture, "mode: otlp, concurrency: 1");
    fixture.server->steps[1] = 503;
    exporter_export(&fixture.exporter, buffer_slice(request), UPLOADS + LARGE_SAMPLES);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_int_equal(fixture.exporter.outcome.delivered_items, LARGE_SAMPLES);
    exporter_export(&fixture.exporter, buffer_slice(request), UPLOADS + LARGE_SAMPLES);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    assert_int_equal(fixture.server->stored_count, UPLOADS + 1);
    snprintf(rest, sizeof(rest), "otlp " NOW ", %d samples", LARGE_SAMPLES);
    assert_string_equal(fixture.server->stored[0].profile, rest);
    for (size_t i = 1; i <= UPLOADS; i++) {
        assert_string_equal(fixture.server->stored[i].labels, UPLOAD_LABELS);
        assert_memory_equal(fixture.server->stored[i].profile, "jfr=FLR and so on", 17);
    }
    tear_down(&fixture);
    buffer_unref(request);
    free_samples(samples, LARGE_SAMPLES);
}

static void what_cannot_be_cut_is_dropped_and_the_rest_goes_on(void **state)
{
    static const struct sketch_profile profiles[] = {
        {.type = {"cpu", "nanoseconds"},
         .time_ns = NOW_NS,
         .samples_count = 1,
         .samples = one_sample},
        {.type = {"wall", "nanoseconds"},
         .time_ns = NOW_NS,
         .samples_count = 1,
         .samples = one_sample},
    };
    const struct sketch sketch = {.profiles_count = 2, .profiles = profiles};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "concurrency: 1");
    for (size_t i = 0; i < 4; i++)
        fixture.server->steps[i] = 429;
    assert_int_equal(try_on(&fixture, &sketch, 5 * (uint64_t)NS_PER_S), 4);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(fixture.exporter.outcome.rejected_items, 1);
    assert_int_equal(fixture.server->stored_count, 1);
    assert_non_null(strstr(fixture.server->stored[0].labels, "\"wall\""));
    assert_int_equal(counter_read(&counters(&fixture)->never_taken), 1);
    assert_int_equal(counter_read(&counters(&fixture)->refused), 1);
    tear_down(&fixture);
}

/* Retries that follow each other at once prove nothing: the server has not had the time to recover.
 */
static void a_busy_server_is_given_time(void **state)
{
    const struct sketch sketch = {.profiles_count = 1, .profiles = &cpu_profile};
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "");
    export_sketch(&fixture, &sketch);
    for (size_t i = 1; i < 20; i++)
        fixture.server->steps[i] = 429;
    assert_int_equal(try_on(&fixture, &sketch, 1), 20);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    assert_int_equal(counter_read(&counters(&fixture)->never_taken), 0);
    tear_down(&fixture);
}

struct version_case {
    const char *options;
    bool has_trace_id;
    const char *label; /* of the attribute "a-b.c" */
};

static const struct version_case version_cases[] = {
    {"min_server_version: '2.1'", true, "a-b_c=\"x\""},
    {"min_pyroscope: '2.0'", false, "a-b_c=\"x\""},
    {"min_server_version: '1'", false, "a_b_c=\"x\""},
    {"min_server_version: '2.1', trace_id: off", false, "a-b_c=\"x\""},
};

static void old_servers_get_what_they_can_take(void **state)
{
    static const struct sketch_sample sample = {
        .stack = "work;main",
        .values_count = 1,
        .values = {3},
        .attributes = {"http-route.x=/y"},
        .trace_id = "0123456789abcdef",
        .span_id = "01234567",
    };
    static const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = NOW_NS, .samples_count = 1, .samples = &sample};
    const struct sketch sketch = {
        .resource = {"service.name=s", "a-b.c=x"}, .profiles_count = 1, .profiles = &profile};
    (void)state;
    for (size_t i = 0; i < sizeof(version_cases) / sizeof(version_cases[0]); i++) {
        const struct version_case *row = &version_cases[i];
        char options[256];
        struct fixture fixture;
        snprintf(options, sizeof(options), "%s, labels: {allow: [a-b.c]}", row->options);
        set_up(&fixture, options);
        export_sketch(&fixture, &sketch);
        const struct pyroscope_stored *stored = &fixture.server->stored[0];
        assert_int_equal(fixture.server->stored_count, 1);
        assert_non_null(strstr(stored->labels, row->label));
        assert_int_equal(strstr(stored->profile, "trace_id=") != NULL, row->has_trace_id);
        assert_non_null(strstr(stored->profile, "span_id="));
        assert_int_equal(strstr(stored->profile, "http_route_x=/y") != NULL,
                         strstr(row->label, "a_b_c") != NULL);
        tear_down(&fixture);
    }
}

static void a_real_server_takes_every_type_at_ingest(void **state)
{
    const char *url = getenv("PYROSCOPE_URL");
    (void)state;
    if (url == NULL)
        skip_because("PYROSCOPE_URL is not set");
    struct exporter_fixture exporter;
    struct lane *lane = lane_create(0);
    char yaml[512];
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s', mode: ingest}", url);
    exporter_open(&exporter, lane, &pyroscope_exporter_factory, yaml, PROFILES);
    for (size_t i = 0; i < sizeof(type_cases) / sizeof(type_cases[0]); i++) {
        struct sketch_profile profile = type_cases[i].profile;
        const struct sketch sketch = {.resource = {"service.name=spanflame ingest test"},
                                      .profiles_count = 1,
                                      .profiles = &profile};
        profile.time_ns = clock_wall_ns();
        struct slice request = sketch_request(&sketch);
        exporter_export(&exporter, request, 1);
        print_message("   %s %s\n", profile.type[0], exporter.message);
        assert_int_equal(exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(exporter.outcome.rejected_items, 0);
        mem_free((void *)(uintptr_t)request.data);
    }
    exporter_close(&exporter);
    lane_destroy(lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_all_labels_and_no_value_ends_early),
        cmocka_unit_test(types_get_their_canonical_names_by_the_form),
        cmocka_unit_test(types_beside_a_name_can_be_any_string),
        cmocka_unit_test(profiles_are_those_of_push),
        cmocka_unit_test(statuses_of_ingest_are_classified),
        cmocka_unit_test(an_old_servers_rate_limit_is_one),
        cmocka_unit_test(files_of_jfr_go_to_ingest_in_every_mode),
        cmocka_unit_test(a_file_without_parameters_goes_without),
        cmocka_unit_test(a_parameter_that_is_too_long_is_left_out),
        cmocka_unit_test(files_of_equal_times_stay_distinct),
        cmocka_unit_test(times_beyond_those_of_a_pprof_are_dropped_and_counted),
        cmocka_unit_test(files_outside_the_window_are_dropped_and_counted),
        cmocka_unit_test(files_and_otlp_are_settled_each_by_itself),
        cmocka_unit_test(what_never_passes_alone_goes_in_pieces),
        cmocka_unit_test(files_and_otlp_of_a_large_batch_all_arrive),
        cmocka_unit_test(what_cannot_be_cut_is_dropped_and_the_rest_goes_on),
        cmocka_unit_test(a_busy_server_is_given_time),
        cmocka_unit_test(old_servers_get_what_they_can_take),
        cmocka_unit_test(a_real_server_takes_every_type_at_ingest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
