/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the requests, and reading what was held back. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/random_otlp.h"

static void put_attribute(struct wire_writer *out, unsigned number, const char *key,
                          const char *text)
{
    uint8_t value_room[256];
    uint8_t room[512];
    struct wire_writer value = wire_writer_of(value_room, sizeof(value_room));
    struct wire_writer attribute = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&value, 1, slice_of_text(text));
    wire_write_bytes(&attribute, 1, slice_of_text(key));
    wire_write_bytes(&attribute, 2, wire_written(&value));
    wire_write_bytes(out, number, wire_written(&attribute));
}

void join_put_span(struct wire_writer *out, const struct sketch_span *span)
{
    uint8_t room[1024];
    uint8_t status[8];
    struct wire_writer message = wire_writer_of(room, sizeof(room));
    struct wire_writer code = wire_writer_of(status, sizeof(status));
    wire_write_bytes(&message, 1, slice_of(span->trace_id, 16));
    wire_write_bytes(&message, 2, slice_of(span->span_id, 8));
    if (span->parent_id != NULL)
        wire_write_bytes(&message, 4, slice_of(span->parent_id, 8));
    wire_write_bytes(&message, 5, slice_of_text(span->name));
    wire_write_number(&message, 6, span->kind);
    wire_write_fixed64(&message, 7, span->start_ns);
    wire_write_fixed64(&message, 8, span->end_ns);
    for (size_t i = 0; i < 4 && span->attributes[i] != NULL; i += 2)
        put_attribute(&message, 9, span->attributes[i], span->attributes[i + 1]);
    wire_write_number(&code, 3, span->status);
    wire_write_bytes(&message, 15, wire_written(&code));
    if (span->flags != 0) {
        wire_write_varint(&message, wire_tag(16, WIRE_FIXED32));
        wire_write_raw(&message, slice_of(&span->flags, 4));
    }
    assert_false(message.has_failed);
    wire_write_bytes(out, 2, wire_written(&message));
}

void join_put_resource(struct wire_writer *out, const char *const *resource)
{
    for (; *resource != NULL; resource += 2)
        put_attribute(out, 1, resource[0], resource[1]);
}

struct slice join_spans_request(void *room, const char *const *resource,
                                const struct sketch_span *spans, size_t count)
{
    uint8_t rooms[3][JOIN_ROOM];
    struct wire_writer content = wire_writer_of(rooms[0], JOIN_ROOM);
    struct wire_writer scope = wire_writer_of(rooms[1], JOIN_ROOM);
    struct wire_writer message = wire_writer_of(rooms[2], JOIN_ROOM);
    struct wire_writer request = wire_writer_of(room, JOIN_ROOM);
    join_put_resource(&content, resource);
    for (size_t i = 0; i < count; i++)
        join_put_span(&scope, &spans[i]);
    wire_write_bytes(&message, 1, wire_written(&content));
    wire_write_bytes(&message, 2, wire_written(&scope));
    wire_write_bytes(&request, 1, wire_written(&message));
    assert_false(request.has_failed);
    return wire_written(&request);
}

struct test_request *join_offer_spans(struct harness *h, unsigned lane, const char *const *resource,
                                      const struct sketch_span *spans, size_t count)
{
    uint8_t room[JOIN_ROOM];
    return harness_offer_bytes(h, lane, TRACES, join_spans_request(room, resource, spans, count),
                               count);
}

const char *const join_shop[] = {"service.name", "shop", "container.id", "c1", NULL};

const struct sketch_span join_checkout = {
    .trace_id = TRACE_A,
    .span_id = "span---1",
    .name = "checkout",
    .kind = KIND_SERVER,
    .start_ns = S,
    .end_ns = S + 250 * MS,
    .attributes = {"http.route", "/cart/{id}", "http.response.status_code", "503"},
};

struct test_request *join_offer_sketch(struct harness *h, unsigned lane,
                                       const struct sketch *sketch)
{
    struct slice bytes = sketch_request(sketch);
    uint64_t items = 0;
    for (size_t i = 0; i < sketch->profiles_count; i++)
        items += sketch->profiles[i].samples_count;
    struct test_request *request = harness_offer_bytes(h, lane, PROFILES, bytes, items);
    mem_free((void *)(uintptr_t)bytes.data);
    return request;
}

struct test_request *join_offer_samples(struct harness *h, unsigned lane, const char *resource,
                                        const struct sketch_sample *samples, size_t count)
{
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = count, .samples = samples, .time_ns = 77};
    const struct sketch sketch = {
        .resource = {resource}, .profiles_count = 1, .profiles = &profile};
    return join_offer_sketch(h, lane, &sketch);
}

const struct sketch_sample join_work = {.stack = "work;main",
                                        .values_count = 1,
                                        .values = {5},
                                        .trace_id = TRACE_A,
                                        .span_id = "span---1"};

struct test_exporter *join_profiles_sink(struct harness *h, enum test_result result)
{
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = result;
    return exporter;
}

/* What sample `index` of the held batch says, spelt out by the oracle; valid till the next
 * call. */
static const char *sample_text(const struct test_exporter *exporter, size_t held, size_t index)
{
    static char text[8192];
    struct oracle_items items = {0};
    struct slice bytes = joined_parts(exporter->held[held].batch);
    profile_oracle_list(&items, bytes, PROFILE_WHOLE);
    assert_true(index < items.count);
    snprintf(text, sizeof(text), "%s", items.texts[index]);
    oracle_clear(&items);
    mem_free((void *)(uintptr_t)bytes.data);
    return text;
}

struct harness *join_start_on(const char *yaml, unsigned lanes)
{
    struct harness *h = harness_create_on(yaml, lanes);
    for (unsigned lane = 0; lane < lanes; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    return h;
}

struct harness *join_start(const char *yaml)
{
    return join_start_on(yaml, 1);
}

struct harness *join_start_with(const char *keys)
{
    char yaml[1024];
    int bytes = snprintf(yaml, sizeof(yaml),
                         "processors: {trace_profile_join: {%s}}\n" JOIN_PIPELINES, keys);
    assert_in_range(bytes, 1, sizeof(yaml) - 1);
    return join_start(yaml);
}

/* Plainly, or in a value, which the oracle spells in hexadecimal. */
bool join_says(const struct test_exporter *exporter, size_t held, size_t index, const char *text)
{
    char hex[128];
    const char *sample = sample_text(exporter, held, index);
    assert_true(2 * strlen(text) < sizeof(hex));
    for (size_t i = 0; text[i] != '\0'; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)(uint8_t)text[i]);
    return strstr(sample, text) != NULL || strstr(sample, hex) != NULL;
}

unsigned join_count(const struct test_exporter *exporter, const char *text)
{
    const struct batch *batch = exporter->held[0].batch;
    struct slice bytes = joined_parts(batch);
    const uint8_t *at = bytes.data;
    const uint8_t *end = at + bytes.size;
    unsigned count = 0;
    assert_true(oracle_decodes(batch->signal, bytes));
    while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
        count++;
        at++;
    }
    mem_free((void *)(uintptr_t)bytes.data);
    return count;
}

void join_let_go(struct test_exporter *exporter)
{
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
}

static void list_held(const struct test_exporter *exporter, struct oracle_items *items)
{
    for (size_t i = 0; i < exporter->held_count; i++) {
        struct slice bytes = joined_parts(exporter->held[i].batch);
        const char *complaint = profile_oracle_complaint(bytes);
        if (complaint != NULL)
            fail_msg("%s", complaint);
        profile_oracle_list(items, bytes, PROFILE_WHOLE);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

void join_hold_profiles(struct harness *h, unsigned lanes)
{
    for (unsigned lane = 0; lane < lanes; lane++)
        harness_exporter_on(h, "test", lane, PROFILES)->result = RESULT_HOLD;
}

void join_list_tick(struct harness *h, unsigned lanes, uint64_t tick_ns,
                    struct oracle_items *ret_items)
{
    harness_advance(h, tick_ns);
    for (unsigned lane = 0; lane < lanes; lane++) {
        struct test_exporter *exporter = harness_exporter_on(h, "test", lane, PROFILES);
        list_held(exporter, ret_items);
        join_let_go(exporter);
    }
    join_hold_profiles(h, lanes);
    harness_turn(h);
}

uint64_t join_metric(const struct harness *h, const char *series)
{
    char *page = harness_metrics(h);
    const char *at = strstr(page, series);
    uint64_t value = UINT64_MAX;
    if (at != NULL)
        value = (uint64_t)strtod(strchr(at, ' '), NULL);
    free(page);
    return value;
}
