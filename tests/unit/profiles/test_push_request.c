/* SPDX-License-Identifier: Apache-2.0 */
/* PushRequests in protobuf and JSON, printed as text. */
#include "src/profiles/pyroscope/push_request.h"

#include "src/base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "{a=b}[profile,…]" for each series. */
static void describe(struct slice request, char *to, size_t size)
{
    static struct push_series series;
    struct push_figures figures;
    const char *reason = NULL;
    struct wire_reader reader = wire_reader_of(request);
    struct slice profile;
    size_t used = 0;
    to[0] = '\0';
    if (!push_request_check(request, &figures, &reason)) {
        snprintf(to, size, "! %s", reason);
        return;
    }
    while (push_next_series(&reader, &series)) {
        for (size_t i = 0; i < series.labels.count; i++)
            used += (size_t)snprintf(to + used, size - used, "%.*s=%.*s,",
                                     (int)series.labels.labels[i].name.size,
                                     (const char *)series.labels.labels[i].name.data,
                                     (int)series.labels.labels[i].value.size,
                                     (const char *)series.labels.labels[i].value.data);
        while (push_next_profile(&series, &profile))
            used += (size_t)snprintf(to + used, size - used, "[%.*s]", (int)profile.size,
                                     profile.size > 0 ? (const char *)profile.data : "");
        used += (size_t)snprintf(to + used, size - used, "|");
    }
}

static void protobuf_is_walked(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {BYTES(""), ""},
        {BYTES("\x0a\x0e\x0a\6\x0a\1a\x12\1b\x12\4\x0a\2xy"), "a=b,[xy]|"},
        {BYTES("\x0a\0\x0a\2\x12\0"), "|[]|"},
        /* the profile first, an ID behind it, an unknown field between */
        {BYTES("\x0a\x12\x12\7\x0a\2xy\x12\1I\x50\1\x0a\5\x0a\1"
               "a\x1a\0"),
         "a=,[xy]|"},
        {BYTES("\x0a\7\x0a"), "! a field is longer than the message that it is in"},
        {BYTES("\x0a\3\x0a\5x"), "! a field is longer than the message that it is in"},
        {BYTES("\x0a\5\x12\3\x0a\x05x"), "! a field is longer than the message that it is in"},
    };
    char found[512];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        describe(slice_of(cases[i].bytes, cases[i].size), found, sizeof(found));
        assert_string_equal(found, cases[i].text);
    }
}

static void labels_beyond_the_limit_are_reported(void **state)
{
    static uint8_t bytes[2 + 3 + 8 * (SERIES_LABELS_MAX + 1)];
    static struct push_series series;
    const size_t content = 8 * (SERIES_LABELS_MAX + 1);
    (void)state;
    uint8_t *at = bytes;
    *at++ = 0x0a;
    *at++ = (uint8_t)(content | 0x80);
    *at++ = (uint8_t)(content >> 7);
    for (unsigned i = 0; i <= SERIES_LABELS_MAX; i++, at += 8)
        memcpy(at, "\x0a\6\x0a\1a\x12\1b", 8);
    struct wire_reader reader = wire_reader_of(slice_of(bytes, (size_t)(at - bytes)));
    assert_true(push_next_series(&reader, &series));
    assert_true(series.has_too_many_labels);
    assert_int_equal(series.labels.count, SERIES_LABELS_MAX);
}

static void json_says_the_same(void **state)
{
#define SERIES(inside) "{\"series\":[{" inside "}]}"
    static const char *const cases[][2] = {
        {"{}", ""},
        {"null", ""},
        {"{\"series\":null}", ""},
        {SERIES("\"labels\":[{\"name\":\"a\",\"value\":\"b\"}],\"samples\":[{\"rawProfile\":"
                "\"eHk=\",\"ID\":\"x\"}]"),
         "a=b,[xy]|"},
        {SERIES("\"samples\":[{\"raw_profile\":\"eHk\"},{\"rawProfile\":\"\"},{}]"), "[xy][][]|"},
        {SERIES("\"samples\":[{\"rawProfile\":\"Pj8-Pw\"}]"), "[>?>?]|"},
        {SERIES("\"samples\":[{\"rawProfile\":\"Pj8\\u002bPw==\"}]"), "[>?>?]|"},
        {" { \"x\" : [ 1 , { \"y\" : [ ] } , \"}\" ] , \"series\" : [ ] } ", ""},
        {SERIES("\"labels\":[{\"name\":\"a\\\"\",\"value\":\"\\u00e4\"}]"), "a\"=\xc3\xa4,|"},
        {SERIES("\"labels\":null,\"samples\":[{\"rawProfile\":null}]"), "[]|"},
        {"{\"series\":[null]}", "|"},
        {"",
         "! JSON at byte 0: found the end of the text, expected a JSON object in UTF-8, without a "
         "byte order mark"},
        {"[]", "! JSON at byte 0: found [, expected a JSON object in UTF-8, without a byte order "
               "mark"},
        {"{\"series\":[", "! JSON at byte 11, in PushRequest.series: found the end of the text, "
                          "expected an object, or null"},
        {"{\"series\":{}}",
         "! JSON at byte 10, in PushRequest.series: found {, expected a list, or "
         "null"},
        {"{\"series\":[{}", "! JSON at byte 13, in PushRequest.series: found the end of the text, "
                            "expected a comma or ]"},
        {"{} x", "! JSON at byte 3: found x, expected nothing after the document"},
        {SERIES("\"samples\":[{\"rawProfile\":\"!\"}]"),
         "! JSON at byte 37, in RawSample.rawProfile: found \"!\", expected bytes as a string in "
         "base64, or null"},
        {SERIES("\"labels\":[{\"name\":1}]"),
         "! JSON at byte 30, in LabelPair.name: found 1, expected a string, or null"},
        {"{\"x\":tru}", "! JSON at byte 5, in PushRequest: found tru, expected a JSON value"},
    };
    char found[512];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer *request = NULL;
        const char *reason = NULL;
        enum push_json_verdict verdict =
            push_json_read(slice_of_text(cases[i][0]), NULL, &request, &reason);
        if (verdict == PUSH_JSON_READ)
            describe(buffer_slice(request), found, sizeof(found));
        else
            snprintf(found, sizeof(found), "! %s", reason);
        buffer_unref(request);
        assert_string_equal(found, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protobuf_is_walked),
        cmocka_unit_test(labels_beyond_the_limit_are_reported),
        cmocka_unit_test(json_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
