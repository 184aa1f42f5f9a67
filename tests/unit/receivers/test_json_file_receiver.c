/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json_file between real files and pipelines that the test plays: what is refused is offered
 * again, and the position does not pass it. */
#include "receivers/otlp_json_file/json_file_config.h"
#include "receivers/otlp_json_file/json_file_reader.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS_MAX = 20, PIPELINES = 2, OFFERS_MAX = 64 };

extern const struct component_factory otlp_json_file_receiver_factory;

static const struct component_factory sink_factory = {
    .type = "sink",
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_LOGS,
    .instance_size = sizeof(struct component),
};

/* ---- the pipelines ---- */

struct outlet {
    enum signal_kind signal;
};
static struct outlet outlets[SIGNAL_KINDS] = {{TRACES}, {METRICS}, {LOGS}, {PROFILES}};

struct offer {
    size_t place;
    uint64_t items;
    bool is_again;
};
static struct offer offers[OFFERS_MAX];
static size_t offers_count;
static size_t given_up;
static size_t refusals; /* how many of the next offers are refused for now */
static size_t refused_place;
static bool refuses_for_good;
static uint64_t refused_items; /* requests of so many are refused, too; 0: none */
static size_t refused_count;   /* of those */
static bool has_stopped;
static bool holds;                       /* receipts are resolved later */
static uint64_t budget_bytes = 64 << 20; /* of the next receiver */
static struct receipt *held[OFFERS_MAX];
static size_t held_count;

size_t outlet_pipelines(const struct outlet *outlet)
{
    (void)outlet;
    return PIPELINES;
}

void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again)
{
    assert_int_equal(outlet->signal, batch->signal);
    assert_true(offers_count < OFFERS_MAX);
    offers[offers_count++] = (struct offer){place, batch->items, is_again};
    if (holds) {
        held[held_count++] = receipt;
        return;
    }
    if (refusals > 0 && place == refused_place) {
        struct outcome outcome = refuses_for_good
                                     ? outcome_refused(STATUS_INVALID_ARGUMENT, "never")
                                     : outcome_busy("not now");
        refusals--;
        receipt_resolve(receipt, &outcome);
        return;
    }
    if (batch->items == refused_items) {
        struct outcome outcome = outcome_busy("not now");
        refused_count++;
        receipt_resolve(receipt, &outcome);
        return;
    }
    receipt_resolve(receipt, &outcome_accepted);
}

void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason)
{
    (void)outlet;
    (void)place;
    (void)batch;
    (void)reason;
    given_up++;
}

void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    (void)outlet;
    (void)batch;
    (void)receipt;
    fail();
}

void component_stopped(struct component *self)
{
    (void)self;
    has_stopped = true;
}

/* ---- the fixture ---- */

struct fixture {
    char directory[64];
    char path[96];
    struct lane *lane;
    struct config *config;
    struct json_file_config section; /* a copy */
    struct component *receiver;
    bool has_storage;
    struct budget budget;
};

static struct file_storage_config storage;
static const struct config_component extension = {.id = "file_storage", .config = &storage};

static const struct config_component *find_extension(const struct service_view *service,
                                                     const char *id)
{
    (void)service;
    assert_string_equal(id, "file_storage");
    return &extension;
}

static const struct service_view view = {.extension = find_extension};

static bool load(const char *section, struct config **ret_config, char *text, size_t text_size)
{
    static const struct component_factory *const factories[] = {&otlp_json_file_receiver_factory,
                                                                &sink_factory, NULL};
    struct config_problems problems = {0};
    char yaml[1024];
    const char *locations[] = {yaml};
    snprintf(yaml, sizeof(yaml),
             "yaml:{receivers: {otlp_json_file: %s}, exporters: {sink: {}}, service: {pipelines: "
             "{traces: {receivers: [otlp_json_file], exporters: [sink]}}}}",
             section);
    *ret_config = config_load(&(struct config_request){.locations = locations,
                                                       .locations_count = 1,
                                                       .factories = factories},
                              &problems);
    text[0] = '\0';
    for (size_t i = 0; i < problems.count; i++)
        strncat(text, problems.texts[i], text_size - strlen(text) - 1);
    config_problems_clear(&problems);
    return *ret_config != NULL;
}

static void open_receiver(struct fixture *fixture, const char *options)
{
    char section[512];
    char problems[1024];
    struct error error = {.text = ""};
    snprintf(section, sizeof(section), "{include: ['%s/*.json'], poll_interval: 1ms, %s}",
             fixture->directory, options);
    if (!load(section, &fixture->config, problems, sizeof(problems)))
        fail_msg("%s", problems);
    budget_init(&fixture->budget, budget_bytes);
    fixture->lane = lane_create(0);
    struct component *receiver = mem_zalloc(otlp_json_file_receiver_factory.instance_size);
    receiver->factory = &otlp_json_file_receiver_factory;
    receiver->id = "otlp_json_file";
    receiver->lane = fixture->lane;
    receiver->budget = &fixture->budget;
    receiver->first = receiver;
    receiver->counters = mem_zalloc(otlp_json_file_receiver_factory.counters_size);
    receiver->outlets[TRACES] = &outlets[TRACES];
    receiver->outlets[LOGS] = &outlets[LOGS];
    for (size_t i = 0; i < fixture->config->components_count; i++)
        if (fixture->config->components[i].factory == &otlp_json_file_receiver_factory)
            fixture->section =
                *(const struct json_file_config *)fixture->config->components[i].config;
    receiver->config = &fixture->section;
    if (fixture->has_storage) {
        fixture->section.storage = "file_storage";
        storage.directory = fixture->directory;
        receiver->service = &view;
    }
    fixture->receiver = receiver;
    offers_count = given_up = refusals = refused_place = refused_count = 0;
    refused_items = 0;
    refuses_for_good = has_stopped = holds = false;
    held_count = 0;
    if (!receiver->factory->create(receiver, &error) || !receiver->factory->start(receiver, &error))
        fail_msg("%s", error.text);
}

static void set_up(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/spanflame-test-jsonfile-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof(fixture->path), "%s/a.json", fixture->directory);
}

static void put(const struct fixture *fixture, const char *text)
{
    int fd = open(fixture->path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Turns the lane until the counter, read again, is at least that. */
static void wait_until(struct fixture *fixture, const size_t *count, size_t least)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (*count < least) {
        lane_turn(fixture->lane);
        if (time(NULL) > end)
            fail_msg("%zu of %zu for %d seconds", *count, least, TEST_SECONDS_MAX);
    }
}

static struct json_file_counters *counters_of(const struct fixture *fixture)
{
    return fixture->receiver->counters;
}

static void close_receiver(struct fixture *fixture)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    fixture->receiver->factory->stop(fixture->receiver);
    while (!has_stopped && time(NULL) <= end)
        lane_turn(fixture->lane);
    assert_true(has_stopped);
    fixture->receiver->factory->destroy(fixture->receiver);
    assert_int_equal(budget_used(&fixture->budget), 0);
    mem_free(fixture->receiver->counters);
    mem_free(fixture->receiver);
    config_destroy(fixture->config);
    budget_fini(&fixture->budget);
    lane_destroy(fixture->lane);
}

static void remove_entry(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    unlink(path);
}

static void tear_down(struct fixture *fixture)
{
    fileops()->list(fixture->directory, remove_entry, fixture->directory);
    rmdir(fixture->directory);
}

#define LINE_OF_ONE   "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}\n"
#define LINE_OF_TWO   "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{},{}]}]}]}\n"
#define LINE_OF_THREE "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{},{},{}]}]}]}\n"

static void lines_go_to_every_pipeline(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    put(&fixture, LINE_OF_ONE "wrong\n" LINE_OF_THREE);
    open_receiver(&fixture, "start_at: beginning");
    wait_until(&fixture, &offers_count, 4);
    assert_int_equal(offers[0].items, 1);
    assert_int_equal(offers[1].items, 1);
    assert_int_equal(offers[1].place, 1);
    assert_int_equal(offers[2].items, 3);
    close_receiver(&fixture);
    assert_int_equal(offers_count, 4);
    tear_down(&fixture);
}

static void results_are_counted(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    put(&fixture, "wrong\n" LINE_OF_ONE LINE_OF_TWO);
    open_receiver(&fixture, "start_at: beginning");
    refusals = 1;
    refuses_for_good = true; /* the first line, by the first pipeline */
    wait_until(&fixture, &offers_count, 4);
    const struct json_file_counters *counters = counters_of(&fixture);
    assert_int_equal(counter_read(&counters->refused[TRACES]), 1);
    assert_int_equal(counter_read(&counters->accepted[TRACES]), 2);
    assert_int_equal(counter_read(&counters->wrong_lines), 1);
    close_receiver(&fixture);
    tear_down(&fixture);
}

static void what_is_refused_for_now_is_offered_again(void **state)
{
    struct fixture fixture;
    (void)state;
    for (refused_place = 0; refused_place < PIPELINES; refused_place++) {
        size_t place = refused_place;
        set_up(&fixture);
        put(&fixture, LINE_OF_ONE);
        open_receiver(&fixture, "start_at: beginning");
        refused_place = place;
        refusals = 2;
        wait_until(&fixture, &offers_count, PIPELINES + 2);
        assert_int_equal(refusals, 0);
        assert_int_equal(given_up, 0);
        assert_false(offers[place].is_again);
        assert_int_equal(offers[place + 1].place, place);
        assert_true(offers[place + 1].is_again);
        assert_true(offers[place + 2].is_again);
        assert_int_equal(counter_read(&counters_of(&fixture)->accepted[TRACES]), 1);
        assert_int_equal(counter_read(&counters_of(&fixture)->retries), 2);
        close_receiver(&fixture);
        tear_down(&fixture);
        refused_place = place;
    }
}

/* A stop while a request is refused: the position stays before it, and the next run begins there.
 */
static void the_position_does_not_pass_what_was_refused(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    fixture.has_storage = true;
    put(&fixture, LINE_OF_ONE LINE_OF_TWO LINE_OF_THREE LINE_OF_ONE);
    open_receiver(&fixture, "start_at: beginning");
    refused_items = 2;
    wait_until(&fixture, &refused_count, 2);
    close_receiver(&fixture);
    assert_int_equal(given_up, 1);
    assert_int_equal(offers[0].items, 1);
    assert_int_equal(offers[1].items, 1);
    open_receiver(&fixture, "start_at: end");
    wait_until(&fixture, &offers_count, 3 * PIPELINES);
    uint64_t items = 0;
    for (size_t i = 0; i < offers_count; i++)
        items += offers[i].items;
    assert_int_equal(items, PIPELINES * (2 + 3 + 1));
    close_receiver(&fixture);
    assert_int_equal(offers_count, 3 * PIPELINES);
    tear_down(&fixture);
}

static void stopping_ends_retries_and_saves_the_position(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture);
    put(&fixture, LINE_OF_ONE);
    open_receiver(&fixture, "start_at: beginning");
    refusals = SIZE_MAX;
    wait_until(&fixture, &offers_count, 1);
    close_receiver(&fixture);
    assert_true(given_up <= 1);
    tear_down(&fixture);
}

/* More requests than are offered at once come to the lane after its stop, and are refused. */
static void what_comes_after_the_stop_is_given_up(void **state)
{
    enum { LINES = 30, NAME_BYTES = 200000, SENT = 25 };
    struct fixture fixture;
    struct outcome outcome = outcome_busy("not now");
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    char *name = mem_zalloc(NAME_BYTES + 1);
    char *line = mem_alloc(NAME_BYTES + 256);
    (void)state;
    memset(name, 'n', NAME_BYTES);
    snprintf(line, NAME_BYTES + 256,
             "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%s\"}]}]}]}\n", name);
    set_up(&fixture);
    for (unsigned i = 0; i < LINES; i++)
        put(&fixture, line);
    open_receiver(&fixture, "start_at: beginning");
    holds = true;
    /* The lane does not turn: what is sent waits in its inbox. */
    while (budget_used(&fixture.budget) < (uint64_t)SENT * NAME_BYTES && time(NULL) <= end)
        sched_yield();
    fixture.receiver->factory->stop(fixture.receiver);
    while (!has_stopped && time(NULL) <= end) {
        lane_turn(fixture.lane);
        while (held_count > 0)
            receipt_resolve(held[--held_count], &outcome);
    }
    assert_true(has_stopped);
    assert_true(offers_count > 0);
    assert_int_equal(given_up, offers_count);
    close_receiver(&fixture);
    tear_down(&fixture);
    mem_free(line);
    mem_free(name);
}

/* With its attributes it never fits into the budget, though each part of it does. */
static void a_line_that_never_fits_does_not_stop_the_others(void **state)
{
    enum { RECORDS = 100000, HEAD_BYTES = 128 };
    static const char head[] = "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}";
    struct fixture fixture;
    char *line = mem_zalloc(HEAD_BYTES + (size_t)RECORDS * 3);
    (void)state;
    set_up(&fixture);
    strcpy(line, head);
    char *at = line + strlen(line);
    for (unsigned i = 1; i < RECORDS; i++, at += 3)
        memcpy(at, ",{}", 3);
    strcpy(at, "]}]}]}\n");
    put(&fixture, line);
    put(&fixture, LINE_OF_ONE);
    budget_bytes = 6600000;
    open_receiver(&fixture, "start_at: beginning");
    budget_bytes = 64 << 20;
    wait_until(&fixture, &offers_count, PIPELINES);
    assert_int_equal(offers[0].items, 1);
    assert_int_equal(counter_read(&counters_of(&fixture)->wrong_lines), 1);
    close_receiver(&fixture);
    tear_down(&fixture);
    mem_free(line);
}

struct config_case {
    const char *yaml;
    const char *problem; /* NULL: it loads */
};

static const struct config_case configs[] = {
    {"{include: [/tmp/*.json]}", NULL},
    {"{include: ['/tmp/**/*.json'], exclude: ['/tmp/x*'], start_at: beginning, compression: auto, "
     "poll_interval: 1s, fingerprint_size: 1kb, max_log_size: 4MiB, on_truncate: read_new, "
     "max_log_size_behavior: truncate, encoding: UTF-8, replay_file: true, include_file_path: "
     "true, "
     "include_file_record_number: true, force_flush_period: 0s, exclude_older_than: 24h, "
     "max_concurrent_files: 3, max_batches: 1, acquire_fs_lock: true, file_cache_advise: true, "
     "initial_buffer_size: 1KiB, preserve_leading_whitespaces: true}",
     NULL},
    {"", "'include' must be specified"},
    {"{include: []}", "'include' must be specified"},
    {"{include: ['[']}", "parse glob: syntax error in pattern"},
    {"{include: [a], exclude: ['{']}", "parse glob: syntax error in pattern"},
    {"{include: [a], start_at: middle}", "middle"},
    {"{include: [a], fingerprint_size: 15}", "fingerprint_size"},
    {"{include: [a], max_log_size: 0}", "max_log_size"},
    {"{include: [a], max_concurrent_files: 0}", "max_concurrent_files"},
    {"{include: [a], max_batches: -1}", "max_batches"},
    {"{include: [a], max_log_size_behavior: cut}", "cut"},
    {"{include: [a], on_truncate: cut}", "cut"},
    {"{include: [a], encoding: utf-16}", "encoding \"utf-16\" is not supported"},
    {"{include: [a], encoding: nop}", NULL},
    {"{include: [a], delete_after_read: true}", "'delete_after_read' cannot be used"},
    {"{include: [a], storage: file_storage}", "file_storage"},
    {"{include: [a], multiline: {line_start_pattern: x}}", "multiline is not supported"},
    {"{include: [a], multiline: {}}", NULL},
    {"{include: [a], header: {pattern: x}}", "header is not supported"},
    {"{include: [a], ordering_criteria: {top_n: 1}}", "ordering_criteria is not supported"},
    {"{include: [a], polls_to_archive: 3}", "polls_to_archive is not supported"},
    {"{include: [a], includes: [b]}", "includes"},
};

static void configurations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        char problems[2048];
        struct config *config;
        bool is_loaded = load(configs[i].yaml, &config, problems, sizeof(problems));
        print_message("   %s %s\n", configs[i].yaml, is_loaded ? "" : problems);
        assert_int_equal(is_loaded, configs[i].problem == NULL);
        if (configs[i].problem != NULL)
            assert_non_null(strstr(problems, configs[i].problem));
        config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_go_to_every_pipeline),
        cmocka_unit_test(results_are_counted),
        cmocka_unit_test(what_is_refused_for_now_is_offered_again),
        cmocka_unit_test(the_position_does_not_pass_what_was_refused),
        cmocka_unit_test(stopping_ends_retries_and_saves_the_position),
        cmocka_unit_test(what_comes_after_the_stop_is_given_up),
        cmocka_unit_test(a_line_that_never_fits_does_not_stop_the_others),
        cmocka_unit_test(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
