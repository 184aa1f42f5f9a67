/* SPDX-License-Identifier: Apache-2.0 */
/* The wire walker: protobuf-c can decode what it accepts, errors name what it refuses, and its
 * counts are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { ROUNDS = 1500, PAD_BYTES = 600 };

static bool check(enum signal_kind signal, struct slice body, struct otlp_figures *ret_figures,
                  const char **ret_reason)
{
    /* An allocation of its own: AddressSanitizer sees every byte read beyond it. */
    uint8_t *exact = mem_copy(body.data, body.size);
    bool is_fine = otlp_check(signal, slice_of(exact, body.size), ret_figures, ret_reason);
    mem_free(exact);
    return is_fine;
}

static void random_requests_pass_and_their_items_are_counted(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        enum signal_kind signal = (enum signal_kind)(seed % SIGNAL_KINDS);
        struct random_source random = {.state = seed};
        struct slice request = random_request(&random, signal);
        struct oracle_items items = {0};
        struct otlp_figures figures;
        const char *reason;
        if (!check(signal, request, &figures, &reason))
            fail_msg("seed %d: %s", (int)seed, reason);
        oracle_list(&items, signal, request);
        assert_int_equal(figures.items, items.count);
        oracle_clear(&items);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void what_passes_can_be_decoded_whatever_was_changed(void **state)
{
    unsigned passed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 4 * ROUNDS; seed++) {
        enum signal_kind signal = (enum signal_kind)(seed % SIGNAL_KINDS);
        struct random_source random = {.state = seed};
        struct slice request = random_request(&random, signal);
        uint8_t *bytes = (uint8_t *)(uintptr_t)request.data;
        for (uint64_t i = random_below(&random, 4); i > 0 && request.size > 0; i--)
            bytes[random_below(&random, request.size)] = (uint8_t)random_below(&random, 256);
        if (random_below(&random, 4) == 0)
            request.size = random_below(&random, request.size + 1);
        struct otlp_figures figures;
        const char *reason;
        if (check(signal, request, &figures, &reason)) {
            assert_true(oracle_decodes(signal, request));
            passed++;
        }
        mem_free(bytes);
    }
    assert_in_range(passed, ROUNDS / 4, 4 * ROUNDS);
}

/* Wraps content into the fields that lead to it: request, resource, scope, span, …; 0 ends the
 * path. */
static struct slice wrap(const uint32_t *path, struct slice content, uint8_t *room, size_t size)
{
    size_t depth = 0;
    uint8_t copy[4096];
    memcpy(room, content.data, content.size);
    content.data = room;
    while (path[depth] != 0)
        depth++;
    while (depth-- > 0) {
        assert_true(content.size + 16 < sizeof(copy) && content.size + 16 < size);
        memmove(copy, content.data, content.size);
        struct wire_writer out = wire_writer_of(room, size);
        wire_write_bytes(&out, path[depth], slice_of(copy, content.size));
        content = wire_written(&out);
    }
    return content;
}

#define BYTES(text) .content = (text), .size = sizeof(text) - 1

/* Each row is tried at the end of the body and, with a long field behind, in its middle. */
static void check_row(enum signal_kind signal, const uint32_t *path, struct slice content,
                      const char *expected)
{
    uint8_t room[2048];
    struct otlp_figures figures;
    const char *reason = "accepted";
    struct slice body = wrap(path, content, room, sizeof(room));
    for (unsigned is_middle = 0; is_middle < 2; is_middle++) {
        bool is_fine = check(signal, body, &figures, &reason);
        if (is_fine != (expected == NULL))
            fail_msg("expected %s, got: %s", expected != NULL ? expected : "no error",
                     is_fine ? "no error" : reason);
        if (expected != NULL && strstr(reason, expected) == NULL)
            fail_msg("expected %s, got: %s", expected, reason);
        struct wire_writer out = wire_writer_of(room, sizeof(room));
        out.at += body.size;
        uint8_t pad[PAD_BYTES] = {0};
        wire_write_bytes(&out, 90, slice_of(pad, sizeof(pad)));
        body = wire_written(&out);
    }
}

static const struct {
    enum signal_kind signal;
    uint32_t path[8];
    const char *content;
    size_t size;
    const char *expected; /* NULL: fine */
} inputs[] = {
    {TRACES, {0}, BYTES(""), NULL},
    {TRACES, {1}, BYTES(""), NULL},
    {TRACES,
     {1, 2, 2},
     BYTES("\x0a\x10"
           "0123456789abcdef"),
     NULL},
    {TRACES, {1, 2, 2}, BYTES("\x0a\x00"), NULL},
    {TRACES,
     {1, 2, 2},
     BYTES("\x0a\x0f"
           "0123456789abcde"),
     "Span: field 1 (trace_id) has 15 bytes, expected 16 or 0"},
    {TRACES,
     {1, 2, 2},
     BYTES("\x12\x07"
           "0123456"),
     "Span: field 2 (span_id) has 7 bytes"},
    {TRACES,
     {1, 2, 2},
     BYTES("\x22\x09"
           "012345678"),
     "Span: field 4 (parent_span_id) has 9"},
    {TRACES,
     {1, 2, 2, 13},
     BYTES("\x0a\x01"
           "0"),
     "Link: field 1 (trace_id)"},
    {LOGS,
     {1, 2, 2},
     BYTES("\x4a\x01"
           "0"),
     "LogRecord: field 9 (trace_id)"},
    {METRICS,
     {1, 2, 2, 5, 1, 5},
     BYTES("\x22\x01"
           "0"),
     "Exemplar: field 4 (span_id)"},
    /* wrong wire types of known fields */
    {TRACES, {1, 2, 2}, BYTES("\x08\x01"), "Span: field 1 (trace_id) has wire type 0, expected 2"},
    {TRACES, {1, 2, 2}, BYTES("\x32\x01x"), "field 6 (kind) has wire type 2, expected 0"},
    {TRACES, {1, 2, 2}, BYTES("\x38\x01"), "field 7 (start_time_unix_nano)"},
    {TRACES, {1, 2, 2}, BYTES("\x80\x01\x01"), "field 16 (flags)"},
    {TRACES, {0}, BYTES("\x08\x01"), "field 1 (resource_spans)"},
    {TRACES,
     {1, 1, 1},
     BYTES("\x0d"
           "0123"),
     "KeyValue: field 1 (key)"},
    {TRACES, {1}, BYTES("\xc0\x3e\x01"), "field 1000 (deprecated_scope_spans)"},
    /* unknown fields: framing only */
    {TRACES, {1, 2, 2}, BYTES("\xd0\x05\x01"), NULL},
    {TRACES, {1, 2, 2}, BYTES("\xd2\x05\x05x"), "longer than the message"},
    {TRACES,
     {1, 2, 2},
     BYTES("\xd5\x05"
           "012"),
     "longer than the message"},
    {TRACES,
     {1, 2, 2},
     BYTES("\xd1\x05"
           "0123456"),
     "longer than the message"},
    /* wire format */
    {TRACES, {1, 2, 2}, BYTES("\x00\x01"), "an invalid field number"},
    {TRACES, {1, 2, 2}, BYTES("\x0b\x0c"), "a group"},
    {TRACES, {1, 2, 2}, BYTES("\xd3\x05\xd4\x05"), "a group"},
    {TRACES, {1, 2, 2}, BYTES("\x0e\x01"), "an invalid wire type"},
    {TRACES, {1, 2, 2}, BYTES("\x2a"), "a varint is cut off"},
    {TRACES,
     {1, 2, 2},
     BYTES("\x2a\x05"
           "abcd"),
     "longer than the message"},
    {TRACES, {1, 2, 2}, BYTES("\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL},
    {TRACES,
     {1, 2, 2},
     BYTES("\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "a varint is too long"},
    {TRACES, {1, 2, 2}, BYTES("\x2a\xff\xff\xff\xff\xff\x01"), "a varint is too long"},
    {TRACES, {1, 2, 2}, BYTES("\x2a\x81\x80\x80\x80\x00x"), NULL},
    {TRACES, {1, 2, 2}, BYTES("\xff\xff\xff\xff\xff\x01\x01"), "a varint is too long"},
    {TRACES, {1, 2, 2}, BYTES("\x2a\x02\xff\xfe"), NULL}, /* not UTF-8 */
    /* attributes: key and value must fill the KeyValue exactly */
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x03\x0a\x01v"), NULL},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x04\x0a\x01v"), "longer than the message"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x03\x0a\x02v"), "longer than the message"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x04\x0a\x01vx"), "a varint is cut off"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x09k\x12\x03\x0a\x01v"), "longer than the message"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x02\x18\x80"), "a varint is cut off"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x03\x18\x80\x01"), NULL},
    {TRACES,
     {1, 2, 2, 9},
     BYTES("\x0a\x01k\x12\x09\x21"
           "01234567"),
     NULL},
    {TRACES,
     {1, 2, 2, 9},
     BYTES("\x0a\x01k\x12\x08\x21"
           "0123456"),
     "longer than the message"},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x00"), NULL},
    {TRACES, {1, 2, 2, 9}, BYTES("\x12\x03\x0a\x01v\x0a\x01k"), NULL},
    {TRACES, {1, 2, 2, 9}, BYTES("\x0a\x01k\x12\x02\x1a\x00"), "AnyValue: field 3 (int_value)"},
    {LOGS, {1, 2, 2, 5}, BYTES("\x0a\x05x"), "AnyValue: a field is longer"},
    /* packed numbers */
    {METRICS,
     {1, 2, 2, 9, 1},
     BYTES("\x32\x08"
           "01234567"),
     NULL},
    {METRICS,
     {1, 2, 2, 9, 1},
     BYTES("\x31"
           "01234567"),
     NULL},
    {METRICS,
     {1, 2, 2, 9, 1},
     BYTES("\x32\x07"
           "0123456"),
     "field 6 (bucket_counts) has 7 bytes, expected a multiple of 8"},
    {METRICS, {1, 2, 2, 9, 1}, BYTES("\x30\x01"), "field 6 (bucket_counts) has wire type 0"},
    {METRICS, {1, 2, 2, 10, 1, 8}, BYTES("\x12\x03\x01\x80\x01"), NULL},
    {METRICS, {1, 2, 2, 10, 1, 8}, BYTES("\x10\x05"), NULL},
    {METRICS,
     {1, 2, 2, 10, 1, 8},
     BYTES("\x12\x02\x01\x80"),
     "field 2 (bucket_counts): a varint is cut off"},
    {PROFILES, {1, 2, 2, 2}, BYTES("\x22\x03\x01\x80\x01"), NULL},
    {PROFILES, {1, 2, 2, 2}, BYTES("\x20\x05\x20\x07"), NULL},
    {PROFILES,
     {1, 2, 2, 2},
     BYTES("\x22\x02\x01\x80"),
     "Sample: field 4 (values): a varint is cut off"},
    {PROFILES,
     {1, 2, 2, 2},
     BYTES("\x12\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
     "Sample: field 2 (attribute_indices): a varint is too long"},
    {PROFILES,
     {1, 2, 2, 2},
     BYTES("\x2a\x07"
           "0123456"),
     "Sample: field 5 (timestamps_unix_nano) has 7 bytes, expected a multiple of 8"},
    {PROFILES, {1, 2, 2, 2}, BYTES("\x1a\x01\x05"), "Sample: field 3 (link_index) has wire"},
    {PROFILES, {1, 2, 2}, BYTES("\x18\x05"), "Profile: field 3 (time_unix_nano) has wire type 0"},
    {PROFILES, {2, 6}, BYTES("\x0a\x01k"), "KeyValueAndUnit: field 1 (key_strindex) has wire"},
    {PROFILES, {2}, BYTES("\x38\x01"), "field 7 (stack_table) has wire type 0, expected 2"},
};

static void malformed_input_is_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
        check_row(inputs[i].signal, inputs[i].path, slice_of(inputs[i].content, inputs[i].size),
                  inputs[i].expected);
}

/* An attribute whose value holds a list in a list in a list … */
static void check_nesting(unsigned values, const char *expected)
{
    uint32_t path[128] = {1, 2, 2, 9, 2};
    size_t depth = 5;
    for (unsigned i = 1; i < values; i++) {
        path[depth++] = 5;
        path[depth++] = 1;
    }
    path[depth] = 0;
    uint8_t room[2048];
    struct otlp_figures figures;
    const char *reason;
    struct slice body = wrap(path, slice_of_text("\x18\x01"), room, sizeof(room));
    assert_int_equal(check(TRACES, body, &figures, &reason), expected == NULL);
    if (expected != NULL)
        assert_string_equal(reason, expected);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    check_nesting(1, NULL);
    check_nesting(30, NULL);
    check_nesting(31, "ArrayValue: messages are nested deeper than 64");
}

/* A body that repeats one short field: `count` spans, or attributes of one span. */
static struct otlp_figures figures_of(size_t count, struct slice element, bool are_attributes)
{
    size_t room_bytes = count * element.size + 64;
    uint8_t *room = mem_alloc(room_bytes);
    struct wire_writer out = wire_writer_of(room, room_bytes);
    size_t span = count * element.size;
    size_t scope = are_attributes ? wire_field_size(2, span) : span;
    wire_write_header(&out, 1, wire_field_size(2, scope));
    wire_write_header(&out, 2, scope);
    if (are_attributes)
        wire_write_header(&out, 2, span);
    for (size_t i = 0; i < count; i++)
        wire_write_raw(&out, element);
    struct otlp_figures figures;
    const char *reason;
    assert_true(check(TRACES, wire_written(&out), &figures, &reason));
    mem_free(room);
    return figures;
}

/* There is no limit on them: code that keeps something for each charges for it. */
static void small_messages_are_counted(void **state)
{
    enum { COUNT = 3000000 };
    struct slice span = slice_of("\x12\x00", 2);
    struct slice attribute = slice_of("\x4a\x02\x12\x00", 4);
    struct slice plain = slice_of("\x4a\x07\x0a\x01k\x12\x02\x18\x01", 9);
    (void)state;
    struct otlp_figures figures = figures_of(COUNT, span, false);
    assert_int_equal(figures.items, COUNT);
    assert_int_equal(figures.messages, 2 + COUNT);
    figures = figures_of(COUNT, attribute, true);
    assert_int_equal(figures.items, 1);
    assert_int_equal(figures.messages, 3 + 2 * COUNT); /* and the values */
    /* The last ones are not looked at in a run: they and their values are two. */
    figures = figures_of(COUNT, plain, true);
    assert_in_range(figures.messages, 3 + COUNT, 3 + COUNT + 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_requests_pass_and_their_items_are_counted),
        cmocka_unit_test(what_passes_can_be_decoded_whatever_was_changed),
        cmocka_unit_test(malformed_input_is_refused_and_named),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(small_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
