/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf to OTLP/JSON: fields in any order and form, what is left out and what never is; and that
 * reading gives back what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/text/text.h"
#include "tests/support/random_otlp.h"
#include "tests/support/random_profiles.h"

enum { ROUNDS = 800 };

#define BYTES(text) slice_of((text), sizeof(text) - 1)

static void assert_written(const struct otlp_message *message, struct slice encoded,
                           const char *expected)
{
    uint8_t *exact = mem_copy(encoded.data, encoded.size);
    struct buffer *text = json_write(message, slice_of(exact, encoded.size), NULL);
    if (!slice_equal_text(buffer_slice(text), expected))
        fail_msg("written  %.*s\nexpected %s", (int)text->size, (const char *)text->data, expected);
    buffer_unref(text);
    mem_free(exact);
}

static const struct otlp_message *below(enum signal_kind signal, const uint32_t *path)
{
    const struct otlp_message *message = otlp_request(signal);
    for (; *path != 0; path++)
        message = message->fields[*path].message;
    return message;
}

static const uint32_t to_span[] = {1, 2, 2, 0};
static const uint32_t to_histogram[] = {1, 2, 2, 9, 1, 0};
static const uint32_t to_sample[] = {1, 2, 2, 2, 0};
static const uint32_t to_link[] = {2, 4, 0};

static void fields_may_come_in_any_order_and_more_than_once(void **state)
{
    const struct otlp_message *span = below(TRACES, to_span);
    (void)state;
    assert_written(span, BYTES("\x30\x02\x2a\x01n\x30\x03"),
                   "{\"name\":\"n\",\"kind\":3,\"status\":{}}");
    assert_written(span, BYTES("\x30\x02\x30\x00"), "{\"status\":{}}");
    /* two pieces of a message are one */
    assert_written(span, BYTES("\x7a\x02\x18\x02\x2a\x01n\x7a\x03\x12\x01m"),
                   "{\"name\":\"n\",\"status\":{\"message\":\"m\",\"code\":2}}");
    /* and of a list */
    assert_written(span,
                   BYTES("\x4a\x03\x0a\x01"
                         "a\x2a\x01n\x4a\x03\x0a\x01"
                         "b"),
                   "{\"name\":\"n\",\"attributes\":[{\"key\":\"a\",\"value\":{}},{\"key\":\"b\","
                   "\"value\":{}}],\"status\":{}}");
    assert_written(&otlp_any_value, BYTES("\x18\x05\x0a\x01x"), "{\"stringValue\":\"x\"}");
    assert_written(&otlp_any_value, BYTES("\x0a\x01x\x18\x05"), "{\"intValue\":\"5\"}");
    /* packed, one by one, and both */
    assert_written(below(PROFILES, to_sample),
                   BYTES("\x12\x02\x01\x02\x10\x03\x12\x00\x12\x01\x04"),
                   "{\"attributeIndices\":[1,2,3,4]}");
    assert_written(below(PROFILES, to_sample), BYTES("\x12\x00\x08\x01"), "{\"stackIndex\":1}");
}

static void what_is_empty_is_left_out_but_for_what_says_something(void **state)
{
    (void)state;
    assert_written(
        below(TRACES, to_span),
        BYTES("\x0a\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x12\x00\x2a\x00\x30\x00\x39\0\0\0"
              "\0\0\0\0\0\x50\x00\x85\x01\0\0\0\0"),
        "{\"status\":{}}");
    assert_written(&otlp_any_value, BYTES("\x0a\x00"), "{\"stringValue\":\"\"}");
    assert_written(&otlp_any_value, BYTES("\x10\x00"), "{\"boolValue\":false}");
    assert_written(&otlp_any_value, BYTES("\x2a\x00"), "{\"arrayValue\":{}}");
    assert_written(&otlp_any_value, BYTES(""), "{}");
    assert_written(below(METRICS, to_histogram), BYTES("\x29\0\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0"),
                   "{\"sum\":0}");
    assert_written(otlp_request(TRACES), BYTES("\x0a\x02\x12\x00"),
                   "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{}}]}]}");
    assert_written(otlp_request(PROFILES), BYTES(""), "{\"dictionary\":{}}");
    assert_written(otlp_request(TRACES), slice_of(NULL, 0), "{}");
}

static void strings_are_utf8_and_numbers_have_their_forms(void **state)
{
    (void)state;
    assert_written(
        &otlp_any_value,
        BYTES("\x0a\x0c"
              "a\"\\/\n\x1f\x7f\xff\xc3\xa9\xc3<"),
        "{\"stringValue\":\"a\\\"\\\\/\\n\\u001f\x7f\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd<\"}");
    assert_written(&otlp_any_value, BYTES("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                   "{\"intValue\":\"-1\"}");
    assert_written(&otlp_any_value, BYTES("\x21\x9a\x99\x99\x99\x99\x99\xb9\x3f"),
                   "{\"doubleValue\":0.1}");
    assert_written(&otlp_any_value, BYTES("\x21\0\0\0\0\0\0\xf0\xff"),
                   "{\"doubleValue\":\"-Infinity\"}");
    assert_written(&otlp_any_value, BYTES("\x3a\x02\xfb\xff"), "{\"bytesValue\":\"+/8=\"}");
    assert_written(below(PROFILES, to_link), BYTES("\x12\x02\xAB\x0c\x0a\x01\x01"),
                   "{\"traceId\":\"01\",\"spanId\":\"ab0c\"}");
    assert_written(below(TRACES, to_span), BYTES("\x85\x01\xff\xff\xff\xff\x50\x05"),
                   "{\"droppedAttributesCount\":5,\"status\":{},\"flags\":4294967295}");
}

static struct slice copy_of(const struct buffer *buffer)
{
    return slice_of(mem_copy(buffer->data, buffer->size), buffer->size);
}

static struct buffer *read_back(const struct otlp_message *message, const struct buffer *text)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX];
    struct slice exact = copy_of(text);
    if (json_read(message, exact, NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s\n%.*s", reason, (int)text->size, (const char *)text->data);
    mem_free((void *)(uintptr_t)exact.data);
    return encoded;
}

/* The debug exporter's words for both: it knows nothing of JSON. */
static void assert_same_meaning(enum signal_kind signal, struct slice left, struct slice right)
{
    struct text texts[2];
    text_init(&texts[0], NULL);
    text_init(&texts[1], NULL);
    otlp_text_write(&texts[0], signal, left, true);
    otlp_text_write(&texts[1], signal, right, true);
    if (texts[0].size != texts[1].size || memcmp(texts[0].data, texts[1].data, texts[0].size) != 0)
        fail_msg("before\n%s\nafter\n%s", texts[0].data, texts[1].data);
    text_fini(&texts[0]);
    text_fini(&texts[1]);
}

static void check_round(enum signal_kind signal, struct slice request)
{
    struct otlp_figures figures[2];
    const char *reason;
    const struct otlp_message *message = otlp_request(signal);
    assert_true(otlp_check(signal, request, &figures[0], &reason));
    struct buffer *text = json_write(message, request, NULL);
    struct buffer *again = read_back(message, text);
    if (!otlp_check(signal, buffer_slice(again), &figures[1], &reason))
        fail_msg("%s", reason);
    assert_int_equal(figures[0].items, figures[1].items);
    struct buffer *second = json_write(message, buffer_slice(again), NULL);
    assert_true(slice_equal(buffer_slice(text), buffer_slice(second)));
    if (signal != PROFILES)
        assert_same_meaning(signal, request, buffer_slice(again));
    buffer_unref(text);
    buffer_unref(again);
    buffer_unref(second);
}

static void what_was_written_reads_back_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct random_source random = {.state = seed};
        enum signal_kind signal = (enum signal_kind)(seed % PROFILES);
        struct slice request = random_request(&random, signal);
        check_round(signal, request);
        mem_free((void *)(uintptr_t)request.data);
        request = random_profiles(&random);
        check_round(PROFILES, request);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void parts_are_written_as_one_request(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS / 8; seed++) {
        struct random_source random = {.state = seed};
        enum signal_kind signal = (enum signal_kind)(seed % SIGNAL_KINDS);
        struct slice request = random_request(&random, signal);
        struct batch *batch = random_parts(&random, signal, request);
        struct buffer *whole = json_write(otlp_request(signal), request, NULL);
        struct buffer *joined = json_write_batch(batch, NULL);
        assert_true(slice_equal(buffer_slice(whole), buffer_slice(joined)));
        buffer_unref(whole);
        buffer_unref(joined);
        batch_unref(batch);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void a_batch_without_parts_is_an_empty_request(void **state)
{
    (void)state;
    struct batch *batch = batch_create(METRICS, 1);
    struct buffer *text = json_write_batch(batch, NULL);
    assert_non_null(text);
    assert_int_equal(text->size, 2);
    assert_memory_equal(text->data, "{}", 2);
    buffer_unref(text);
    batch_unref(batch);
}

static void budget_is_charged_and_may_refuse(void **state)
{
    struct random_source random = {.state = 7};
    struct slice request = random_request(&random, TRACES);
    struct batch *batch = two_parts(TRACES, request, request.size / 2);
    struct budget budget;
    (void)state;
    budget_init(&budget, 1 << 24);
    for (uint64_t n = 1;; n++) {
        mem_refuse_nth(n);
        struct buffer *text = json_write_batch(batch, &budget);
        mem_refuse_nth(0);
        if (text != NULL)
            assert_int_equal(budget_used(&budget), text->size + sizeof(*text));
        buffer_unref(text);
        assert_int_equal(budget_used(&budget), 0);
        if (text != NULL)
            break;
        assert_in_range(n, 1, 20);
    }
    budget_fini(&budget);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)request.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_may_come_in_any_order_and_more_than_once),
        cmocka_unit_test(what_is_empty_is_left_out_but_for_what_says_something),
        cmocka_unit_test(strings_are_utf8_and_numbers_have_their_forms),
        cmocka_unit_test(what_was_written_reads_back_the_same),
        cmocka_unit_test(parts_are_written_as_one_request),
        cmocka_unit_test(a_batch_without_parts_is_an_empty_request),
        cmocka_unit_test(budget_is_charged_and_may_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
