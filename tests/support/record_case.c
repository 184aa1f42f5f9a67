/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/record_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/service/service.h"
#include "tests/support/random_otlp.h"

enum { YAML_BYTES = 16384 };

static void print_yaml(char yaml[static YAML_BYTES], const char *name, const char *section,
                       enum signal_kind signal)
{
    static const char *const names[] = {"traces", "metrics", "logs", "profiles"};
    int size = snprintf(yaml, YAML_BYTES,
                        "processors: {%s: %s}\nexporters: {test: {sending_queue: {enabled: "
                        "false}}}\nservice: {pipelines: {%s: {receivers: [test], processors: [%s], "
                        "exporters: [test]}}}\n",
                        name, section, names[signal], name);
    assert_true(size > 0 && size < YAML_BYTES);
}

struct harness *record_harness(const char *name, const char *section, enum signal_kind signal)
{
    char yaml[YAML_BYTES];
    print_yaml(yaml, name, section, signal);
    struct harness *harness = harness_create(yaml);
    struct test_exporter *exporter = harness_exporter_on(harness, "test", 0, signal);
    exporter->result = RESULT_HOLD;
    exporter->has_own_items = true;
    return harness;
}

void record_refused(const char *name, const char *section, enum signal_kind signal,
                    const char *text)
{
    char yaml[YAML_BYTES];
    print_yaml(yaml, name, section, signal);
    if (!harness_is_wrong(yaml, text))
        fail_msg("%s: no problem with \"%s\"", section, text);
}

struct batch *record_batch(enum signal_kind signal, const char *json, bool is_cut)
{
    char reason[JSON_REASON_BYTES_MAX];
    const char *problem;
    struct buffer *encoded = NULL;
    struct otlp_figures figures;
    if (json_read(otlp_request(signal), slice_of_text(json), NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s: %s", json, reason);
    struct slice bytes = buffer_slice(encoded);
    if (!otlp_check(signal, bytes, &figures, &problem))
        fail_msg("%s: %s", json, problem);
    struct batch *batch = two_parts(signal, bytes, is_cut ? bytes.size / 2 : bytes.size);
    batch->items = figures.items;
    buffer_unref(encoded);
    return batch;
}

static struct test_request *offer(struct harness *harness, unsigned lane, enum signal_kind signal,
                                  const char *json, bool is_cut)
{
    struct test_request *request = mem_zalloc(sizeof(*request));
    struct batch *batch = record_batch(signal, json, is_cut);
    assert_true(harness->requests_count < HARNESS_REQUESTS_MAX);
    harness->requests[harness->requests_count++] = request;
    test_receiver_offer(harness_receiver(harness, "test", lane), batch, request);
    batch_unref(batch);
    harness_turn(harness);
    return request;
}

struct test_request *record_send(struct harness *harness, enum signal_kind signal, const char *json)
{
    return offer(harness, 0, signal, json, false);
}

struct test_request *record_send_on(struct harness *harness, unsigned lane, enum signal_kind signal,
                                    const char *json)
{
    return offer(harness, lane, signal, json, false);
}

char *record_output(struct harness *harness, enum signal_kind signal)
{
    struct test_exporter *exporter = harness_exporter_on(harness, "test", 0, signal);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < exporter->held_count; i++) {
        const struct batch *batch = exporter->held[i].batch;
        struct slice bytes = joined_parts(batch);
        struct otlp_figures figures;
        const char *problem;
        if (!otlp_check(signal, bytes, &figures, &problem))
            fail_msg("%s", problem);
        assert_int_equal(figures.items, batch->items);
        struct buffer *json = json_write(otlp_request(signal), bytes, NULL);
        fprintf(out, "%s%.*s", i > 0 ? "\n" : "", (int)json->size, (const char *)json->data);
        buffer_unref(json);
        mem_free((void *)(uintptr_t)bytes.data);
    }
    fclose(out);
    if (exporter->held_count > 0)
        test_exporter_release(exporter, RESULT_OK);
    harness_turn(harness);
    return text;
}

void record_compare(const char *name, const char *section, enum signal_kind signal,
                    const char *json, const char *expected)
{
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        struct harness *harness = record_harness(name, section, signal);
        const struct test_request *request = offer(harness, 0, signal, json, is_cut != 0);
        char *found = record_output(harness, signal);
        if (strcmp(found, expected) != 0) {
            print_error("%s of\n", section);
            print_error("%s\nexpected\n", json);
            print_error("%s\nfound\n", expected);
            print_error("%s\n", found);
            fail();
        }
        assert_true(request->is_resolved);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        free(found);
        harness_destroy(harness);
    }
}
