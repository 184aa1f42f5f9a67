/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_grpc against a scripted back-end: what is sent, what each response means, what is refused in
 * the configuration. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/codec/codec.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/support/grpc_backend.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory otlp_grpc_exporter_factory;

static const struct slice hello = {.data = (const uint8_t *)"hello", .size = 5};
static const struct grpc_backend_step ok[] = {{.status = "0"}};

struct fixture {
    struct lane *lane;
    struct grpc_backend *backend;
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const struct grpc_backend_step *step,
                   const char *options, enum signal_kind signal)
{
    char yaml[1024];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    memset(fixture, 0, sizeof(*fixture));
    fixture->lane = lane_create(0);
    fixture->backend =
        grpc_backend_create(fixture->lane, &(struct grpc_backend_settings){0}, step, 1);
    snprintf(yaml, sizeof(yaml), "{endpoint: '127.0.0.1:%u', %s}",
             grpc_backend_port(fixture->backend), options);
    exporter_open(&fixture->exporter, fixture->lane, &otlp_grpc_exporter_factory, yaml, signal);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    grpc_backend_destroy(fixture->backend);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

#define PLAIN "tls: {insecure: true}"

static void messages_are_gzipped_by_default(void **state)
{
    struct fixture fixture;
    struct buffer *output;
    size_t size;
    struct codec_box *box = codec_box_create(NULL);
    (void)state;
    set_up(&fixture, ok, PLAIN, TRACES);
    exporter_export(&fixture.exporter, hello, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    const char *headers = grpc_backend_headers(fixture.backend);
    assert_non_null(strstr(headers, "grpc-encoding: gzip\n"));
    assert_non_null(strstr(headers, "user-agent: spanflame/" SPANFLAME_VERSION " (linux/"));
    const uint8_t *body = grpc_backend_body(fixture.backend, &size);
    assert_int_equal(body[0], 1);
    assert_int_equal(body[4], size - 5);
    assert_int_equal(codec_inflate(box, CODEC_GZIP, slice_of(body + 5, size - 5), 100, &output),
                     CODEC_OK);
    assert_true(slice_equal(buffer_slice(output), hello));
    buffer_unref(output);
    codec_box_destroy(box);
    assert_int_equal(budget_used(&fixture.exporter.budget), 0);
    tear_down(&fixture);
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ok, PLAIN, TRACES);
    const uint64_t limit = budget_limit(&fixture.exporter.budget);
    const uint64_t all = limit + limit / BUDGET_MARGIN_PART;
    budget_take(&fixture.exporter.budget, all);
    exporter_export(&fixture.exporter, hello, 1);
    exporter_wait_for_memory(&fixture.exporter);
    exporter_export(&fixture.exporter, hello, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    budget_return(&fixture.exporter.budget, all);
    tear_down(&fixture);
}

static void every_compression_is_announced_and_applied(void **state)
{
    static const char *const names[] = {"gzip", "snappy", "zstd", "none", "''"};
    static const enum codec codecs[] = {CODEC_GZIP, CODEC_SNAPPY_FRAMED, CODEC_ZSTD, CODEC_NONE,
                                        CODEC_NONE};
    struct codec_box *box = codec_box_create(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct fixture fixture;
        struct buffer *output = NULL;
        char text[64];
        size_t size;
        snprintf(text, sizeof(text), PLAIN ", compression: %s", names[i]);
        set_up(&fixture, ok, text, TRACES);
        exporter_export(&fixture.exporter, hello, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        bool is_plain = codecs[i] == CODEC_NONE;
        snprintf(text, sizeof(text), "grpc-encoding: %s\n", names[i]);
        const char *found =
            strstr(grpc_backend_headers(fixture.backend), is_plain ? "\ngrpc-encoding: " : text);
        assert_int_equal(found == NULL, is_plain);
        const uint8_t *body = grpc_backend_body(fixture.backend, &size);
        assert_int_equal(body[0], !is_plain);
        struct slice message = slice_of(body + 5, size - 5);
        if (!is_plain)
            assert_int_equal(codec_inflate(box, codecs[i], message, 100, &output), CODEC_OK);
        assert_true(slice_equal(is_plain ? message : buffer_slice(output), hello));
        buffer_unref(output);
        tear_down(&fixture);
    }
    codec_box_destroy(box);
}

static void each_signal_has_its_service(void **state)
{
    static const char *const paths[SIGNAL_KINDS] = {
        [TRACES] = ":path: /opentelemetry.proto.collector.trace.v1.TraceService/Export\n",
        [METRICS] = ":path: /opentelemetry.proto.collector.metrics.v1.MetricsService/Export\n",
        [LOGS] = ":path: /opentelemetry.proto.collector.logs.v1.LogsService/Export\n",
        [PROFILES] =
            ":path: /opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export\n",
    };
    static const struct slice profile = {.data = (const uint8_t *)"\x0a\x02\x12\x00", .size = 4};
    (void)state;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct fixture fixture;
        set_up(&fixture, ok, PLAIN, (enum signal_kind)signal);
        exporter_export(&fixture.exporter, signal == PROFILES ? profile : hello, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        assert_non_null(strstr(grpc_backend_headers(fixture.backend), paths[signal]));
        tear_down(&fixture);
    }
}

struct refusal_case {
    struct grpc_backend_step step;
    enum status_code code;
    bool is_permanent;
    uint64_t hint_ns;
    const char *message;
};

/* google.rpc.Status {code: 8, details: [RetryInfo {delay}]}: of 1.5 s, of nothing, and with
 * something else instead. */
#define RETRY_1_5_S "CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ"
#define RETRY_0     "CAgaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxICCgA"
#define OTHER       "CAgaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkRlYnVnSW5mbxICCgA"

static const struct refusal_case refusals[] = {
    {{.status = "1"}, STATUS_CANCELLED, false, 0, "rpc error: code = Canceled desc = "},
    {{.status = "2"}, STATUS_UNKNOWN, true, 0, "rpc error: code = Unknown desc = "},
    {{.status = "3", .message = "bad%20data"},
     STATUS_INVALID_ARGUMENT,
     true,
     0,
     "rpc error: code = InvalidArgument desc = bad data"},
    {{.status = "4"}, STATUS_DEADLINE_EXCEEDED, false, 0, NULL},
    {{.status = "5"}, STATUS_NOT_FOUND, true, 0, NULL},
    {{.status = "6"}, STATUS_ALREADY_EXISTS, true, 0, NULL},
    {{.status = "7"}, STATUS_PERMISSION_DENIED, true, 0, NULL},
    {{.status = "8"}, STATUS_RESOURCE_EXHAUSTED, true, 0, NULL},
    {{.status = "8", .details = RETRY_1_5_S}, STATUS_RESOURCE_EXHAUSTED, false, 1500000000, NULL},
    {{.status = "8", .details = RETRY_0}, STATUS_RESOURCE_EXHAUSTED, false, 0, NULL},
    {{.status = "8", .details = OTHER}, STATUS_RESOURCE_EXHAUSTED, true, 0, NULL},
    {{.status = "8", .details = "////"}, STATUS_RESOURCE_EXHAUSTED, true, 0, NULL},
    {{.status = "9"}, STATUS_FAILED_PRECONDITION, true, 0, NULL},
    {{.status = "10"}, STATUS_ABORTED, false, 0, NULL},
    {{.status = "11"}, STATUS_OUT_OF_RANGE, false, 0, NULL},
    {{.status = "12"}, STATUS_UNIMPLEMENTED, true, 0, NULL},
    {{.status = "13"}, STATUS_INTERNAL, true, 0, NULL},
    {{.status = "13", .details = RETRY_1_5_S}, STATUS_INTERNAL, true, 0, NULL},
    {{.status = "14"}, STATUS_UNAVAILABLE, false, 0, NULL},
    {{.status = "14", .details = RETRY_1_5_S}, STATUS_UNAVAILABLE, false, 1500000000, NULL},
    /* What contradicts the header, or cannot be decoded, changes nothing. */
    {{.status = "14", .details = "????"}, STATUS_UNAVAILABLE, false, 0, NULL},
    {{.status = "14", .details = OTHER}, STATUS_UNAVAILABLE, false, 0, NULL},
    {{.status = "15"}, STATUS_DATA_LOSS, false, 0, NULL},
    {{.status = "16"}, STATUS_UNAUTHENTICATED, true, 0, NULL},
    {{.status = "17"}, STATUS_UNKNOWN, true, 0, "rpc error: code = Code(17) desc = "},
    {{.http_status = "503", .content_type = "text/plain"}, STATUS_UNAVAILABLE, false, 0, NULL},
    {{.http_status = "404", .content_type = "text/plain"}, STATUS_UNIMPLEMENTED, true, 0, NULL},
    {{.resets = true, .reset_code = 8}, STATUS_CANCELLED, false, 0, NULL},
    {{.resets = true, .reset_code = 7}, STATUS_UNAVAILABLE, false, 0, NULL},
    {{.resets = true, .reset_code = 11}, STATUS_RESOURCE_EXHAUSTED, true, 0, NULL},
};

static void refusals_mean_what_they_mean_to_the_go_collector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal_case *row = &refusals[i];
        struct fixture fixture;
        set_up(&fixture, &row->step, PLAIN, TRACES);
        exporter_export(&fixture.exporter, hello, 1);
        const struct outcome *outcome = &fixture.exporter.outcome;
        if (outcome->verdict != REFUSED || outcome->code != row->code ||
            outcome->is_permanent != row->is_permanent || outcome->retry_after_ns != row->hint_ns)
            fail_msg("row %zu: code %d, permanent %d, hint %llu: %s", i, (int)outcome->code,
                     outcome->is_permanent, (unsigned long long)outcome->retry_after_ns,
                     fixture.exporter.message);
        if (row->message != NULL)
            assert_string_equal(fixture.exporter.message, row->message);
        tear_down(&fixture);
    }
}

struct success_case {
    struct grpc_backend_step step;
    uint64_t rejected;
    uint64_t odd;
};

#define DATA(text) .data = (text), .data_size = sizeof(text) - 1

static const struct success_case successes[] = {
    {{.status = "0"}, 0, 0},
    {{.status = "0", DATA("\0\0\0\0\x04\x0a\x02\x08\x02")}, 2, 0},
    {{.status = "0", DATA("\0\0\0\0\x04\x0a\x02\x08\x63")}, 3, 0}, /* more than were sent */
    {{.status = "0", DATA("\0\0\0\0\x05\x0a\x03\x12\x01w")}, 0, 0},
    {{.status = "0", DATA("\0\0\0\0\x02\x0a\x7f")}, 0, 1},
    {{.status = "0", .is_trailers_only = true}, 0, 1},
    {{.status = "0", DATA("\1\0\0\0\x02\x0a\x7f")}, 0, 1}, /* compressed, but how? */
    {{.status = "0", .encoding = "gzip", DATA("\1\0\0\0\x02\x0a\x7f")}, 0, 1},
    {{.status = "0",
      .encoding = "gzip",
      DATA("\1\0\0\0\x18\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xe3\x62\xe2\x60\x02\x00\x32\x00"
           "\xaa\x6b\x04\x00\x00\x00")},
     2,
     0},
};

static uint64_t odd_responses(const struct fixture *fixture)
{
    const counter *counters = fixture->exporter.component->counters;
    return counter_read(counters);
}

static void ok_is_delivered_whatever_comes_with_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(successes) / sizeof(successes[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, &successes[i].step, PLAIN, TRACES);
        uint64_t before = odd_responses(&fixture);
        exporter_export(&fixture.exporter, hello, 3);
        const struct outcome *outcome = &fixture.exporter.outcome;
        if (outcome->verdict != ACCEPTED || outcome->rejected_items != successes[i].rejected ||
            odd_responses(&fixture) - before != successes[i].odd)
            fail_msg("row %zu: verdict %d, rejected %llu, odd %llu", i, (int)outcome->verdict,
                     (unsigned long long)outcome->rejected_items,
                     (unsigned long long)odd_responses(&fixture));
        tear_down(&fixture);
    }
}

/* The most common mistake: TLS is on unless switched off. */
static void a_cleartext_peer_is_recognised(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, ok, "", TRACES);
    exporter_export(&fixture.exporter, hello, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, REFUSED);
    assert_int_equal(fixture.exporter.outcome.code, STATUS_UNAVAILABLE);
    assert_false(fixture.exporter.outcome.is_permanent);
    assert_non_null(strstr(fixture.exporter.message, "set tls: {insecure: true}"));
    tear_down(&fixture);
}

static const char *const bad_configs[][2] = {
    {"{}", "requires a non-empty \"endpoint\""},
    {"{endpoint: localhost}", "address localhost: missing port in address"},
    {"{endpoint: 'unix:/p'}", "invalid port \"/p\""},
    {"{endpoint: 'h:1', compression: lz4}", "lz4"},
    {"{endpoint: 'h:1', balancer_name: least}", "invalid balancer_name: least"},
    {"{endpoint: 'h:1', headers: {'a b': c}}", "\"a b\" is not a gRPC metadata key"},
    {"{endpoint: 'h:1', authority: 'a b'}", "authority: \"a b\" is not a host:port"},
    {"{endpoint: 'h:1', timeout: -1s}", "timeout"},
    {"{endpoint: 'h:1', middlewares: [{id: x}]}", "middlewares are not supported"},
    {"{endpoint: 'h:1', read_buffer_size: x}", "read_buffer_size: found the string \"x\""},
    {"{endpoint: 'h:1', traces_endpoint: x}", "traces_endpoint"},
};

static void bad_configurations_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_configs) / sizeof(bad_configs[0]); i++) {
        struct config *config;
        char problems[4096];
        if (exporter_try_load(&otlp_grpc_exporter_factory, bad_configs[i][0], &config, problems,
                              sizeof(problems)))
            fail_msg("%s was taken", bad_configs[i][0]);
        if (strstr(problems, bad_configs[i][1]) == NULL)
            fail_msg("%s: %s", bad_configs[i][0], problems);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_gzipped_by_default),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(every_compression_is_announced_and_applied),
        cmocka_unit_test(each_signal_has_its_service),
        cmocka_unit_test(refusals_mean_what_they_mean_to_the_go_collector),
        cmocka_unit_test(ok_is_delivered_whatever_comes_with_it),
        cmocka_unit_test(a_cleartext_peer_is_recognised),
        cmocka_unit_test(bad_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
