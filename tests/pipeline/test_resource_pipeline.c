/* SPDX-License-Identifier: Apache-2.0 */
/* The processors of resources in a pipeline, from YAML to bytes: it edits what its own pipeline
 * carries, counts items, and refuses what it cannot do. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "tests/support/telemetry_bytes.h"

#define DIRECT "exporters: {test: {sending_queue: {enabled: false}}}\n"
#define PIPELINE                                                                                   \
    "service: {pipelines: {traces: {receivers: [test], processors: [resource], exporters: "        \
    "[test]}}}\n"

#define DETECTION                                                                                  \
    "service: {pipelines: {traces: {receivers: [test], processors: [resource_detection], "         \
    "exporters: [test]}}}\n"

static bool contains(const struct batch *batch, const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < batch->parts_count; i++)
        if (memmem(batch->parts[i].bytes.data, batch->parts[i].bytes.size, text, size) != NULL)
            return true;
    return false;
}

static void attributes_are_added_and_items_counted(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {resource: {attributes: [{key: k8s.cluster, value: blue-7, action: upsert}, "
        "{key: shards, value: [1, {a: 2.5}], action: INSERT}]}}\n" DIRECT PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    harness_send_now(h, 3);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 3);
    assert_true(contains(exporter->held[0].batch, "\x0a\x0bk8s.cluster\x12\x08\x0a\x06"
                                                  "blue-7"));
    assert_true(contains(exporter->held[0].batch, "\x0a\x06shards\x12"));
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_incoming_items{"));
    assert_non_null(strstr(metrics, "otelcol_processor_outgoing_items{"));
    assert_non_null(strstr(metrics, "otel_signal=\"traces\""));
    free(metrics);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter->delivered_items, 3);
    harness_destroy(h);
}

static void another_pipeline_sees_nothing_of_the_edit(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {resource: {attributes: [{key: only, value: here, action: insert}]}}\n"
        "exporters: {test/a: {sending_queue: {enabled: false}}, test/b: {sending_queue: {enabled: "
        "false}}}\n"
        "service: {pipelines: {traces/a: {receivers: [test], processors: [resource], exporters: "
        "[test/a]}, traces/b: {receivers: [test], exporters: [test/b]}}}\n");
    struct test_exporter *a = harness_exporter(h, "test/a");
    struct test_exporter *b = harness_exporter(h, "test/b");
    a->result = RESULT_HOLD;
    b->result = RESULT_HOLD;
    harness_send_now(h, 1);
    assert_true(contains(a->held[0].batch, "here"));
    assert_false(contains(b->held[0].batch, "here"));
    test_exporter_release(a, RESULT_OK);
    test_exporter_release(b, RESULT_OK);
    harness_destroy(h);
}

/* The lane's helper edits it. */
static void a_large_request_is_edited_as_a_small_one(void **state)
{
    struct profile_bytes out = {0};
    (void)state;
    struct harness *h = harness_create(
        "processors: {resource: {attributes: [{key: k8s.cluster, value: blue-7, action: upsert}, "
        "{key: gone, action: delete}]}}\n" DIRECT PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    profile_bytes_add(&out, slice_of_text("\x0a\x06\x0a\x04gone"));
    while (out.size < HELPED_BYTES_MIN)
        profile_bytes_add(&out, slice_of_text("\x0a\x07\x0a\x05other"));
    profile_bytes_wrap(&out, 0, 1);
    profile_bytes_wrap(&out, 0, 1);
    struct batch *numbered = numbered_request(NULL, TRACES, 0, 1);
    profile_bytes_add(&out, numbered->parts[0].bytes);
    batch_unref(numbered);
    exporter->result = RESULT_HOLD;
    struct test_request *request =
        harness_offer_bytes(h, 0, TRACES, slice_of(out.data, out.size), 1);
    assert_false(request->is_resolved);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 1);
    assert_true(contains(exporter->held[0].batch, "blue-7"));
    assert_true(contains(exporter->held[0].batch, "other"));
    assert_false(contains(exporter->held[0].batch, "gone"));
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    profile_bytes_fini(&out);
    harness_destroy(h);
}

static void what_is_detected_is_added(void **state)
{
    (void)state;
    setenv("OTEL_RESOURCE_ATTRIBUTES", "where=here%20and%20there,os.type=other", 1);
    struct harness *h = harness_create(
        "processors: {resourcedetection: {detectors: [env, \" system\"], override: true, timeout: "
        "2s, system: {hostname_sources: [os], resource_attributes: {host.name: {enabled: false}, "
        "host.arch: {enabled: true}}}}}\n" DIRECT
        "service: {pipelines: {traces: {receivers: [test], processors: [resourcedetection], "
        "exporters: [test]}, profiles: {receivers: [test], processors: [resourcedetection], "
        "exporters: [test]}, logs: {receivers: [test], processors: [resourcedetection], exporters: "
        "[test]}}}\n");
    static const enum signal_kind signals[] = {TRACES, LOGS};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        enum signal_kind signal = signals[i];
        struct test_exporter *exporter = harness_exporter_on(h, "test", 0, signal);
        exporter->result = RESULT_HOLD;
        harness_offer(h, (struct harness_offer){.signal = signal, .items = 2});
        harness_turn(h);
        assert_int_equal(exporter->held_count, 1);
        const struct batch *batch = exporter->held[0].batch;
        assert_int_equal(batch->items, 2);
        assert_true(contains(batch, "\x0a\x05where\x12\x10\x0a\x0ehere and there"));
        assert_true(contains(batch, "\x0a\x07os.type\x12\x07\x0a\x05other"));
        assert_true(contains(batch, "host.arch"));
        assert_false(contains(batch, "host.name"));
        assert_true(contains(batch, "\x1a\x27https://opentelemetry.io/schemas/1.40.0"));
        test_exporter_release(exporter, RESULT_OK);
    }
    harness_destroy(h);
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

static void what_cannot_be_done_stops_the_start(void **state)
{
    static const char *const rows[] = {
        "processors: {resource: }\n" DIRECT PIPELINE,
        "processors: {resource: {attributes: []}}\n" DIRECT PIPELINE,
        "processors: {resource: {attributes: [{key: a, action: rename}]}}\n" DIRECT PIPELINE,
        "processors: {resource: {attributes: [{key: a, action: insert}]}}\n" DIRECT PIPELINE,
        "processors: {resource: {attributes: [{action: insert, value: 1}]}}\n" DIRECT PIPELINE,
        "processors: {resource_detection: {detectors: []}}\n" DIRECT DETECTION,
        "processors: {resource_detection: {detectors: [env, consul]}}\n" DIRECT DETECTION,
        "processors: {resource_detection: {detectors: [none]}}\n" DIRECT DETECTION,
        "processors: {resource_detection: {detectors: [elasticbeanstalk]}}\n" DIRECT DETECTION,
        "processors: {resource_detection: {system: {hostname_sources: [os, x]}}}\n" DIRECT
            DETECTION,
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_null(harness_try_build(rows[i], 1));
    setenv("OTEL_RESOURCE_ATTRIBUTES", "malformed", 1);
    assert_null(harness_try_build("processors: {resource_detection: }\n" DIRECT DETECTION, 1));
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_added_and_items_counted),
        cmocka_unit_test(another_pipeline_sees_nothing_of_the_edit),
        cmocka_unit_test(a_large_request_is_edited_as_a_small_one),
        cmocka_unit_test(what_is_detected_is_added),
        cmocka_unit_test(what_cannot_be_done_stops_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
