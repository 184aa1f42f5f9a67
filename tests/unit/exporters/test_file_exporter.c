/* SPDX-License-Identifier: Apache-2.0 */
/* file: what requests look like in files, groups, refusals, and configurations. */
#include "exporters/file/file_config.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/unit/exporters/support.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_factory file_exporter_factory;

struct fixture {
    struct lane *lane;
    char directory[64];
    char path[96];
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const char *name, const char *options,
                   enum signal_kind signal)
{
    char yaml[512];
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/spanflame-test-file-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof(fixture->path), "%s/%s", fixture->directory, name);
    snprintf(yaml, sizeof(yaml), "{path: '%s', %s}", fixture->path, options);
    fixture->lane = lane_create(0);
    exporter_open(&fixture->exporter, fixture->lane, &file_exporter_factory, yaml, signal);
}

static void remove_entry(const char *name, void *arg)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    if (unlink(path) != 0) {
        fileops()->list(path, remove_entry, path);
        rmdir(path);
    }
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    lane_destroy(fixture->lane);
    fileops()->list(fixture->directory, remove_entry, fixture->directory);
    rmdir(fixture->directory);
}

static void check_bytes(const char *path, const void *expected, size_t expected_size)
{
    char *text;
    size_t size;
    assert_int_equal(file_read_whole(path, 1 << 20, &text, &size), 0);
    print_message("   %s: %zu bytes\n", path, size);
    assert_int_equal(size, expected_size);
    assert_memory_equal(text, expected, size);
    mem_free(text);
}

static void check_text(const char *path, const char *expected)
{
    check_bytes(path, expected, strlen(expected));
}

/* A request with one span named "a". */
static const char span[] = "\x0a\x07\x12\x05\x12\x03\x2a\x01"
                           "a";
#define SPAN slice_of(span, sizeof(span) - 1)
#define SPAN_JSON                                                                                  \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":["               \
    "{\"name\":\"a\",\"status\":{}}]}]}]}"

static void requests_are_lines_of_json(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "t.json", "", TRACES);
    for (unsigned i = 1; i <= 3; i++) {
        exporter_export(&fixture.exporter, SPAN, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    }
    /* A receipt says that it is in the file. */
    check_text(fixture.path, SPAN_JSON "\n" SPAN_JSON "\n" SPAN_JSON "\n");
    tear_down(&fixture);
}

static void each_signal_has_its_form(void **state)
{
    static const struct {
        enum signal_kind signal;
        const char *request;
        size_t size;
        const char *line;
    } rows[] = {
        {METRICS, "\x0a\x07\x12\x05\x12\x03\x0a\x01m", 9,
         "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":["
         "{\"name\":\"m\"}]}]}]}\n"},
        {LOGS, "\x0a\x07\x12\x05\x12\x03\x1a\x01l", 9,
         "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":["
         "{\"severityText\":\"l\",\"body\":{}}]}]}]}\n"},
        {PROFILES, "\x0a\x02\x1a\x00\x12\x04\x2a\x02\x73\x31", 10,
         "{\"resourceProfiles\":[{\"resource\":{}}],\"dictionary\":{\"stringTable\":[\"s1\"]}}\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, "t.json", "", rows[i].signal);
        exporter_export(&fixture.exporter, slice_of(rows[i].request, rows[i].size), 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        check_text(fixture.path, rows[i].line);
        tear_down(&fixture);
    }
}

static void messages_stand_behind_their_sizes(void **state)
{
    struct fixture fixture;
    char expected[64] = {0};
    (void)state;
    set_up(&fixture, "t.bin", "format: proto", TRACES);
    exporter_export(&fixture.exporter, SPAN, 1);
    exporter_export(&fixture.exporter, SPAN, 1);
    size_t one = 4 + SPAN.size;
    for (size_t i = 0; i < 2; i++) {
        expected[one * i + 3] = (char)SPAN.size;
        memcpy(expected + one * i + 4, span, SPAN.size);
    }
    check_bytes(fixture.path, expected, 2 * one);
    tear_down(&fixture);
}

static void compressed_messages_too(void **state)
{
    static const char *const formats[] = {"json", "proto"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;
        struct buffer *output;
        char options[64];
        char *text;
        size_t size;
        snprintf(options, sizeof(options), "compression: zstd, format: %s", formats[i]);
        set_up(&fixture, "t.bin", options, TRACES);
        exporter_export(&fixture.exporter, SPAN, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(file_read_whole(fixture.path, 1 << 20, &text, &size), 0);
        assert_true(size > 4);
        assert_int_equal(text[3], size - 4);
        struct codec_box *codecs = codec_box_create(NULL);
        assert_int_equal(
            codec_inflate(codecs, CODEC_ZSTD, slice_of(text + 4, size - 4), 1 << 20, &output),
            CODEC_OK);
        assert_true(slice_equal(buffer_slice(output), i == 0 ? slice_of_text(SPAN_JSON) : SPAN));
        buffer_unref(output);
        codec_box_destroy(codecs);
        mem_free(text);
        tear_down(&fixture);
    }
}

/* ---- groups ---- */

/* Resources with the attribute "g" as a string, without it, and as a number; each has one span. */
#define RESOURCE(value)                                                                            \
    "\x0a\x17\x0a\x0c\x0a\x0a\x0a\x01g\x12\x05\x0a\x03" value "\x12\x07\x12\x05\x2a\x03" value
#define WITHOUT "\x0a\x07\x12\x05\x12\x03\x2a\x01n"
#define NUMBER  "\x0a\x12\x0a\x09\x0a\x07\x0a\x01g\x12\x02\x18\x05\x12\x05\x12\x03\x2a\x01i"
#define LINE_OF(value)                                                                             \
    "{\"resource\":{\"attributes\":[{\"key\":\"g\",\"value\":{\"stringValue\":\"" value            \
    "\"}}]},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":\"" value "\",\"status\":{}}]}]}"

static void resources_go_to_files_by_their_attribute(void **state)
{
    static const char request[] = RESOURCE("abc") RESOURCE("x/y") WITHOUT RESOURCE("abc") NUMBER;
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up(&fixture, "d/*.json", "group_by: {enabled: true, resource_attribute: g}", TRACES);
    exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 5);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    /* What has no place is not delivered. */
    assert_int_equal(fixture.exporter.outcome.rejected_items, 2);
    assert_int_equal(fixture.exporter.outcome.invalid_items, 2);
    snprintf(path, sizeof(path), "%s/d/abc.json", fixture.directory);
    check_text(path, "{\"resourceSpans\":[" LINE_OF("abc") "," LINE_OF("abc") "]}\n");
    snprintf(path, sizeof(path), "%s/d/x/y.json", fixture.directory);
    check_text(path, "{\"resourceSpans\":[" LINE_OF("x/y") "]}\n");
    tear_down(&fixture);
}

static void groups_never_leave_the_directory(void **state)
{
    static const char request[] = RESOURCE("../");
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up(&fixture, "d/*up", "group_by: {enabled: true, resource_attribute: g}", TRACES);
    exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    snprintf(path, sizeof(path), "%s/up", fixture.directory);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof(path), "%s/d/up", fixture.directory);
    check_text(path, "{\"resourceSpans\":[" LINE_OF("../") "]}\n");
    tear_down(&fixture);
}

/* One file at a time: each is closed for the next, and continued later. */
static void few_files_are_open_at_once(void **state)
{
    static const char request[] = RESOURCE("abc") RESOURCE("def") RESOURCE("ghi");
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up(&fixture, "*", "group_by: {enabled: true, resource_attribute: g, max_open_files: 1}",
           TRACES);
    for (int i = 0; i < 2; i++) {
        exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 3);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_int_equal(fixture.exporter.outcome.rejected_items, 0);
    }
    size_t open_here = 0;
    for (int fd = 3; fd < 100; fd++) {
        char link[64];
        char target[256];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, target, sizeof(target) - 1);
        open_here += size > 0 && strncmp(target, fixture.directory, strlen(fixture.directory)) == 0;
    }
    assert_int_equal(open_here, 1);
    snprintf(path, sizeof(path), "%s/abc", fixture.directory);
    check_text(path, "{\"resourceSpans\":[" LINE_OF("abc") "]}\n{\"resourceSpans\":[" LINE_OF(
                         "abc") "]}\n");
    tear_down(&fixture);
}

/* As in the Go collector: a failure of one group is final for its items; the others are there. */
static void a_group_that_fails_is_lost_alone(void **state)
{
    static const char request[] = RESOURCE("abc") RESOURCE("x/y");
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up(&fixture, "*", "group_by: {enabled: true, resource_attribute: g}", TRACES);
    snprintf(path, sizeof(path), "%s/x", fixture.directory);
    FILE *file = fopen(path, "w"); /* no directory */
    assert_non_null(file);
    fclose(file);
    exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 2);
    const struct outcome *outcome = &fixture.exporter.outcome;
    assert_int_equal(outcome->verdict, REFUSED);
    assert_true(outcome->is_permanent);
    assert_int_equal(outcome->code, STATUS_INTERNAL);
    assert_int_equal(outcome->delivered_items, 1);
    assert_non_null(strstr(fixture.exporter.message, "Not a directory"));
    snprintf(path, sizeof(path), "%s/abc", fixture.directory);
    check_text(path, "{\"resourceSpans\":[" LINE_OF("abc") "]}\n");
    tear_down(&fixture);
}

static void groups_of_profiles_keep_their_dictionary(void **state)
{
    static const char request[] =
        "\x0a\x0e\x0a\x0c\x0a\x0a\x0a\x01g\x12\x05\x0a\x03one"
        "\x0a\x0e\x0a\x0c\x0a\x0a\x0a\x01g\x12\x05\x0a\x03two\x12\x04\x2a\x02s1";
    struct fixture fixture;
    char path[256];
    (void)state;
    set_up(&fixture, "*", "group_by: {enabled: true, resource_attribute: g}", PROFILES);
    exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 0);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    snprintf(path, sizeof(path), "%s/two", fixture.directory);
    check_text(path,
               "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"g\",\"value\":"
               "{\"stringValue\":\"two\"}}]}}],\"dictionary\":{\"stringTable\":[\"s1\"]}}\n");
    tear_down(&fixture);
}

/* Each group repeats the dictionary: a small request must not fill the disk. */
static void dictionaries_are_not_written_without_bound(void **state)
{
    enum { GROUPS = 100, STRING_BYTES = 1 << 20 };
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "*", "group_by: {enabled: true, resource_attribute: g}", PROFILES);
    uint8_t *request = mem_alloc(GROUPS * 32 + STRING_BYTES + 16);
    size_t size = 0;
    for (int i = 0; i < GROUPS; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%03d", i);
        memcpy(request + size, "\x0a\x0e\x0a\x0c\x0a\x0a\x0a\x01g\x12\x05\x0a\x03", 13);
        memcpy(request + size + 13, value, 3);
        size += 16;
    }
    /* ProfilesDictionary { string_table: "xxx…" }, with lengths of four bytes */
    memcpy(request + size, "\x12\x84\x80\x40\x2a\x80\x80\x40", 8);
    memset(request + size + 8, 'x', STRING_BYTES);
    size += 8 + STRING_BYTES;
    exporter_export(&fixture.exporter, slice_of(request, size), 0);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_true(outcome_is_too_large(&fixture.exporter.outcome));
    assert_non_null(strstr(fixture.exporter.message, "dictionary"));
    mem_free(request);
    tear_down(&fixture);
}

/* ---- failures ---- */

static struct fileops full;
static int fails_with;

static ssize_t maybe_writev(int fd, const struct iovec *parts, int count)
{
    if (fails_with != 0)
        return fails_with;
    ssize_t put = writev(fd, parts, count);
    return put >= 0 ? put : -errno;
}

static void what_is_not_written_is_not_delivered(void **state)
{
    struct fixture fixture;
    const struct outcome *outcome = &fixture.exporter.outcome;
    (void)state;
    full = *fileops();
    full.writev = maybe_writev;
    fileops_replace(&full);
    set_up(&fixture, "t.json", "", TRACES);
    fails_with = -ENOSPC;
    exporter_export(&fixture.exporter, SPAN, 1);
    assert_int_equal(outcome->verdict, REFUSED);
    assert_false(outcome->is_permanent);
    assert_int_equal(outcome->code, STATUS_UNAVAILABLE);
    assert_int_equal(outcome->delivered_items, 0);
    assert_non_null(strstr(fixture.exporter.message, "No space left on device"));
    check_text(fixture.path, "");
    fails_with = 0;
    exporter_export(&fixture.exporter, SPAN, 1);
    assert_int_equal(outcome->verdict, ACCEPTED);
    check_text(fixture.path, SPAN_JSON "\n");
    tear_down(&fixture);
    fileops_replace(NULL);
}

static void a_short_budget_refuses_for_now(void **state)
{
    static const char *const options[] = {"", "group_by: {enabled: true}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;
        set_up(&fixture, i == 0 ? "t.json" : "*", options[i], TRACES);
        const uint64_t limit = budget_limit(&fixture.exporter.budget);
        const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
        budget_take(&fixture.exporter.budget, all + limit / BUDGET_EXPORT_PART);
        exporter_export(&fixture.exporter, SPAN, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
        assert_false(fixture.exporter.outcome.is_permanent);
        assert_int_equal(fixture.exporter.outcome.reason, LOSS_MEMORY);
        budget_return(&fixture.exporter.budget, limit / BUDGET_EXPORT_PART);
        exporter_wait_for_memory(&fixture.exporter);
        exporter_export(&fixture.exporter, SPAN, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        budget_return(&fixture.exporter.budget, all);
        tear_down(&fixture);
    }
}

static void every_allocation_may_fail(void **state)
{
    static const char request[] = RESOURCE("abc") RESOURCE("def");
    static const char *const options[] = {"", "group_by: {enabled: true, resource_attribute: g}",
                                          "compression: zstd"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture fixture;
        set_up(&fixture, i == 1 ? "*" : "t.json", options[i], TRACES);
        uint64_t before = mem_tries();
        exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 2);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        uint64_t tries = mem_tries() - before;
        assert_true(tries > 1);
        for (uint64_t n = 2; n <= tries; n++) { /* the first is the test's own */
            mem_refuse_nth(n);
            exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 2);
            mem_refuse_nth(0);
        }
        exporter_export(&fixture.exporter, slice_of(request, sizeof(request) - 1), 2);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        tear_down(&fixture);
    }
}

static void a_stop_waits_for_what_is_being_written(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "t.json", "", TRACES);
    exporter_offer(&fixture.exporter, SPAN, 1);
    exporter_close(&fixture.exporter);
    assert_int_equal(fixture.exporter.results, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    check_text(fixture.path, SPAN_JSON "\n");
    lane_destroy(fixture.lane);
    fileops()->list(fixture.directory, remove_entry, fixture.directory);
    rmdir(fixture.directory);
}

static void the_start_opens_the_file(void **state)
{
    struct error error = {.text = ""};
    char problems[1024];
    struct config *config;
    struct budget budget;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    assert_true(exporter_try_load(&file_exporter_factory, "{path: /nowhere/t.json}", &config,
                                  problems, sizeof(problems)));
    struct component *component = mem_zalloc(file_exporter_factory.instance_size);
    component->factory = &file_exporter_factory;
    component->budget = &budget;
    for (size_t i = 0; i < config->components_count; i++)
        if (config->components[i].factory == &file_exporter_factory)
            component->config = config->components[i].config;
    component->shared = file_exporter_factory.share(component, 1, &error);
    assert_non_null(component->shared);
    assert_true(file_exporter_factory.create(component, &error));
    assert_false(file_exporter_factory.start(component, &error));
    assert_string_equal(error.text, "cannot open /nowhere/t.json: No such file or directory");
    file_exporter_factory.unshare(component->shared);
    mem_free(component);
    config_destroy(config);
    budget_fini(&budget);
}

static void directories_are_made_on_request(void **state)
{
    struct fixture fixture;
    char path[256];
    struct stat info;
    (void)state;
    umask(0);
    set_up(&fixture, "a/b/t.json", "create_directory: true, directory_permissions: '0750'", LOGS);
    snprintf(path, sizeof(path), "%s/a/b", fixture.directory);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0750);
    umask(022);
    tear_down(&fixture);
}

/* ---- configurations ---- */

struct config_case {
    const char *yaml;
    const char *problem; /* NULL: it loads */
};

/* What loads there, and what does not, is as in the Go collector, but for what the comments say. */
static const struct config_case configs[] = {
    {"{path: a}", NULL},
    {"{path: a, rotation: }", NULL},
    {"{path: a, rotation: {max_megabytes: 3, max_days: 3, max_backups: 0, localtime: true}}", NULL},
    {"{path: a, append: true, format: proto, flush_interval: 5s}", NULL},
    {"{path: a, append: true, rotation: {}}",
     "append and rotation enabled at the same time is not supported"},
    {"", "path must be non-empty"},
    {"{path: ''}", "path must be non-empty"},
    {"{path: a, format: text}", "text"},
    {"{path: a, format: ''}", "format"},
    {"{path: a, compression: gzip}", "gzip"},
    {"{path: a, compression: zstd, compression_params: {level: 11}}", NULL},
    {"{path: a, flush_interval: -1s}", "flush_interval"},
    {"{path: a, encoding: otlp_encoding}", "encoding is not supported"},
    {"{path: a, sending_queue: {}}", "sending_queue"},
    {"{path: a, timeout: 5s}", "timeout"},
    {"{path: a, group_by: {max_open_files: 0}}", NULL},
    {"{path: 'a*', group_by: {enabled: true}}", NULL},
    {"{path: a, group_by: {enabled: true}}", "path must contain exactly one *"},
    {"{path: 'a*b*', group_by: {enabled: true}}", "path must contain exactly one *"},
    {"{path: '*', group_by: {enabled: true}}", "path must not start with *"},
    {"{path: 'a*', group_by: {enabled: true, resource_attribute: ''}}",
     "resource_attribute must not be empty"},
    /* There the start fails. */
    {"{path: 'a*', group_by: {enabled: true, max_open_files: 0}}", "max_open_files"},
    /* There each request fails. */
    {"{path: a, rotation: {max_megabytes: -1}}", "max_megabytes"},
    {"{path: a, create_directory: true}", NULL},
    {"{path: a, create_directory: true, directory_permissions: '755'}", NULL},
    {"{path: a, create_directory: true, directory_permissions: '00000000000755'}", NULL},
    {"{path: a, directory_permissions: '755'}", "requires create_directory"},
    {"{path: a, create_directory: true, directory_permissions: '9'}", "valid octal"},
    {"{path: a, create_directory: true, directory_permissions: '1777'}", "invalid bits"},
    {"{path: a, create_directory: true, directory_permissions: '-1'}", "invalid bits"},
};

static void configurations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        char problems[2048];
        struct config *config;
        bool is_loaded = exporter_try_load(&file_exporter_factory, configs[i].yaml, &config,
                                           problems, sizeof(problems));
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
        cmocka_unit_test(requests_are_lines_of_json),
        cmocka_unit_test(each_signal_has_its_form),
        cmocka_unit_test(messages_stand_behind_their_sizes),
        cmocka_unit_test(compressed_messages_too),
        cmocka_unit_test(resources_go_to_files_by_their_attribute),
        cmocka_unit_test(groups_never_leave_the_directory),
        cmocka_unit_test(few_files_are_open_at_once),
        cmocka_unit_test(a_group_that_fails_is_lost_alone),
        cmocka_unit_test(groups_of_profiles_keep_their_dictionary),
        cmocka_unit_test(dictionaries_are_not_written_without_bound),
        cmocka_unit_test(what_is_not_written_is_not_delivered),
        cmocka_unit_test(a_short_budget_refuses_for_now),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_stop_waits_for_what_is_being_written),
        cmocka_unit_test(the_start_opens_the_file),
        cmocka_unit_test(directories_are_made_on_request),
        cmocka_unit_test(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
