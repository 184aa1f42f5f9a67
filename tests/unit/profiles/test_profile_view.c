/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as writers encode them: in any order, twice, packed or not. Profiles in resources and
 * scopes, some of which are empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/profiles/otlp/profile_view.h"

#define BYTES(...)     {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})
#define STACK_5        0x08, 0x05
#define ATTRIBUTES_1_2 0x12, 0x02, 0x01, 0x02
#define LINK_3         0x18, 0x03
#define VALUES_9       0x22, 0x01, 0x09
#define TIME           0x2a, 0x08, 1, 2, 3, 4, 5, 6, 7, 8

static const struct {
    const char *name;
    uint8_t bytes[64];
    size_t size;
    int32_t stack;
    int32_t link;
    uint64_t attributes; /* their sum */
} samples[] = {
    {"a stack alone", BYTES(STACK_5), 5, 0, 0},
    {"all fields in order", BYTES(STACK_5, ATTRIBUTES_1_2, LINK_3, VALUES_9, TIME), 5, 3, 3},
    {"all fields backwards", BYTES(TIME, VALUES_9, LINK_3, ATTRIBUTES_1_2, STACK_5), 5, 3, 3},
    {"the last of two links", BYTES(LINK_3, VALUES_9, 0x18, 0x04), 0, 4, 0},
    {"a link that is none again", BYTES(LINK_3, 0x18, 0x00), 0, 0, 0},
    {"a link of two bytes", BYTES(0x18, 0x83, 0x01, VALUES_9), 0, 131, 0},
    {"a link of three bytes", BYTES(VALUES_9, 0x18, 0x83, 0x80, 0x01), 0, 16387, 0},
    {"a link that is spelt too long", BYTES(0x18, 0x83, 0x80, 0x80, 0x00), 0, 3, 0},
    {"a tag that is spelt too long", BYTES(0x98, 0x00, 0x03, STACK_5), 5, 3, 0},
    {"attributes one by one", BYTES(0x10, 0x01, LINK_3, 0x10, 0x02, VALUES_9), 0, 3, 3},
    {"attributes in two lists", BYTES(ATTRIBUTES_1_2, LINK_3, ATTRIBUTES_1_2), 0, 3, 6},
    {"unknown fields", BYTES(0xa2, 0x06, 0x01, 0x18, LINK_3, 0xa0, 0x06, 0x18), 0, 3, 0},
    {"a length of two bytes", BYTES(0x22, 0x81, 0x00, 0x18, LINK_3), 0, 3, 0},
};

static void every_encoding_is_read_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct slice bytes = slice_of(samples[i].bytes, samples[i].size);
        struct profile_sample sample;
        struct profile_index index;
        uint64_t sum = 0;
        profile_read_sample(bytes, &sample);
        struct profile_index link = profile_link_of_sample(bytes);
        struct profile_indices_reader reader = profile_indices_read(&sample.attributes);
        while (profile_indices_next(&reader, &index))
            sum += (uint64_t)index.number;
        if (sample.stack.number != samples[i].stack || sample.link.number != samples[i].link ||
            sum != samples[i].attributes || link.number != samples[i].link)
            fail_msg("%s: stack %ld, link %ld or %ld, attributes %lu", samples[i].name,
                     (long)sample.stack.number, (long)sample.link.number, (long)link.number,
                     (unsigned long)sum);
    }
}

static void nothing_stays_from_the_sample_before(void **state)
{
    struct profile_sample sample;
    (void)state;
    profile_read_sample(slice_of(samples[1].bytes, samples[1].size), &sample);
    assert_int_equal(sample.values.number, 4);
    assert_int_equal(sample.timestamps.packed.size, 8);
    profile_read_sample(slice_of("", 0), &sample);
    assert_int_equal(sample.stack.number | sample.link.number, 0);
    assert_int_equal(sample.attributes.numbers.number, 0);
    assert_int_equal(sample.values.packed.size, 0);
    assert_null(sample.timestamps.packed.data);
}

#define PROFILE(duration) 0x12, 2, 0x20, duration /* duration_ns */
#define SCOPE(size)       0x12, size
#define RESOURCE(size)    0x0a, size

/* "scope:duration" of each, with the schema_url of its resource. */
static void describe_profiles(struct profile_iterator at, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    while (profile_iterator_next(&at))
        used += (size_t)snprintf(
            to + used, size - used, "%.*s/%.*s:%d ", (int)at.resource.schema_url.size,
            (const char *)at.resource.schema_url.data, (int)at.scope.schema_url.size,
            (const char *)at.scope.schema_url.data, (int)at.profile.duration_ns);
}

static void every_profile_is_visited_in_order(void **state)
{
    /* clang-format off */
    static const uint8_t request[] = {
        RESOURCE(0),
        RESOURCE(21), 0x1a, 1, 'A',
            SCOPE(3), 0x1a, 1, 'x',
            SCOPE(11), PROFILE(1), PROFILE(2), 0x1a, 1, 'y',
        RESOURCE(2), SCOPE(0),
        0x12, 0, /* the dictionary */
        RESOURCE(12), SCOPE(7), 0x1a, 1, 'z', PROFILE(3), 0x1a, 1, 'B',
        RESOURCE(3), 0x1a, 1, 'C',
    };
    /* clang-format on */
    char text[128];
    struct profile_resource resource;
    struct wire_reader resources = wire_reader_of(slice_of(request, sizeof(request)));
    (void)state;
    describe_profiles(profile_iterator_of(slice_of(request, sizeof(request))), text, sizeof(text));
    assert_string_equal(text, "A/y:1 A/y:2 B/z:3 ");
    describe_profiles(profile_iterator_of(slice_of("", 0)), text, sizeof(text));
    assert_string_equal(text, "");
    assert_true(profile_next_resource(&resources, &resource));
    describe_profiles(profile_iterator_of_resource(resource.bytes), text, sizeof(text));
    assert_string_equal(text, "");
    assert_true(profile_next_resource(&resources, &resource));
    describe_profiles(profile_iterator_of_resource(resource.bytes), text, sizeof(text));
    assert_string_equal(text, "/y:1 /y:2 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_encoding_is_read_the_same),
        cmocka_unit_test(every_profile_is_visited_in_order),
        cmocka_unit_test(nothing_stays_from_the_sample_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
