/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of log records: which replace those of the span, and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "connectors/exceptions/exception_logs.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "tests/support/random_otlp.h"
#include "tests/support/telemetry_bytes.h"

/* Bytes of a message, written field by field. */
struct bytes {
    uint8_t data[4096];
    size_t size;
};

static void put(struct bytes *to, uint32_t field, struct slice content)
{
    struct wire_writer out = wire_writer_of(to->data + to->size, sizeof(to->data) - to->size);
    wire_write_bytes(&out, field, content);
    assert_false(out.has_failed);
    to->size += wire_written(&out).size;
}

static struct slice all_of(const struct bytes *bytes)
{
    return slice_of(bytes->data, bytes->size);
}

static void put_attribute(struct bytes *to, uint32_t field, const char *key, const char *text)
{
    struct bytes pair = {.size = 0};
    struct bytes value = {.size = 0};
    put(&value, 1, slice_of_text(text));
    put(&pair, 1, slice_of_text(key));
    put(&pair, 2, all_of(&value));
    put(to, field, all_of(&pair));
}

static struct batch *request_of(const struct bytes *span)
{
    struct bytes resource = {.size = 0};
    struct bytes scope = {.size = 0};
    struct bytes message = {.size = 0};
    struct bytes request = {.size = 0};
    put_attribute(&resource, 1, "service.name", "shop");
    put(&message, 1, all_of(&resource));
    put(&scope, 2, all_of(span));
    put(&message, 2, all_of(&scope));
    put(&request, 1, all_of(&message));
    return plain_request(NULL, TRACES, all_of(&request), 1);
}

/* "key=text;" of each attribute of the only record, in order. */
static void print_attributes(const struct exception_logs *logs, char *text, size_t size)
{
    static const uint32_t path[] = {1, 2, 2};
    assert_int_equal(logs->batches_count, 1);
    struct slice request = joined_parts(logs->batches[0]);
    struct slice found = request;
    for (size_t i = 0; i < 3; i++) {
        struct metric_items items = metric_items_of(found, path[i]);
        assert_true(metric_items_next(&items, &found));
    }
    struct metric_items attributes = metric_items_of(found, 6);
    size_t at = 0;
    while (metric_items_next(&attributes, &found)) {
        struct slice key = {0};
        struct slice value = {0};
        struct metric_items keys = metric_items_of(found, 1);
        struct metric_items values = metric_items_of(found, 2);
        assert_true(metric_items_next(&keys, &key));
        assert_true(metric_items_next(&values, &value));
        struct value read = value_read(value);
        at += (size_t)snprintf(text + at, size - at, "%.*s=%.*s;", (int)key.size, key.data,
                               (int)read.bytes.size, read.bytes.data);
        assert_true(at < size);
    }
    mem_free((void *)(uintptr_t)request.data);
}

static void check(const struct bytes *span, const char *wanted)
{
    struct budget budget;
    struct exception_keys keys;
    struct exception_logs logs;
    char text[2048] = "";
    budget_init(&budget, UINT64_MAX);
    exception_keys_init(&keys);
    assert_true(exception_keys_add(&keys, "zone", NULL));
    assert_true(exception_keys_add(&keys, "exception.type", NULL));
    struct batch *batch = request_of(span);
    exception_logs_make(&logs, &keys, batch, &budget);
    assert_false(logs.has_failed);
    print_attributes(&logs, text, sizeof(text));
    assert_string_equal(text, wanted);
    exception_logs_fini(&logs);
    batch_unref(batch);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void put_exception(struct bytes *span)
{
    struct bytes event = {.size = 0};
    put(&event, 2, slice_of_text("exception"));
    put_attribute(&event, 3, "exception.type", "IOError");
    put_attribute(&event, 3, "exception.stacktrace", "at main");
    put(span, 11, all_of(&event));
}

static void attributes_of_the_span_come_first_and_are_replaced_in_place(void **state)
{
    (void)state;
    struct bytes span = {.size = 0};
    put(&span, 5, slice_of_text("GET"));
    put_attribute(&span, 9, "a", "1");
    put_attribute(&span, 9, "span.name", "theirs");
    put_attribute(&span, 9, "zone", "eu");
    put_attribute(&span, 9, "span.name", "again"); /* the first one is replaced */
    put_exception(&span);
    check(&span, "a=1;span.name=GET;zone=eu;span.name=again;span.kind=SPAN_KIND_UNSPECIFIED;"
                 "status.code=STATUS_CODE_UNSET;service.name=shop;exception.type=IOError;"
                 "exception.stacktrace=at main;");
}

static void attributes_may_stand_between_other_fields(void **state)
{
    (void)state;
    struct bytes span = {.size = 0};
    put_attribute(&span, 9, "a", "1");
    put(&span, 5, slice_of_text("GET"));
    put_attribute(&span, 9, "b", "2");
    put_exception(&span);
    put_attribute(&span, 9, "exception.type", "mine"); /* of the span: it goes before the event's */
    check(&span, "a=1;b=2;exception.type=mine;span.name=GET;span.kind=SPAN_KIND_UNSPECIFIED;"
                 "status.code=STATUS_CODE_UNSET;service.name=shop;exception.stacktrace=at main;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_the_span_come_first_and_are_replaced_in_place),
        cmocka_unit_test(attributes_may_stand_between_other_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
