/* SPDX-License-Identifier: Apache-2.0 */
/* One request in every layout, with every repeated number packed, one by one, and both:
 * profile_normalize detects its layout and returns the same as for the packed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "tests/support/profile_oracle.h"

/* How the elements of a repeated field are encoded. */
enum spelling { PACKED, UNPACKED, MIXED, SPELLINGS };

/* The repeated numbers that a request has in any layout. */
enum repeated {
    OF_VALUES, /* these three of a sample */
    OF_SAMPLE, /* attributes, as those of others below */
    OF_TIMES,
    OF_PROFILE,
    OF_COMMENTS,      /* of a Profile, 1.7 and 1.8 */
    OF_LOCATION_LIST, /* of a Profile, 1.7 */
    OF_MAPPING,
    OF_LOCATION,
    OF_STACK, /* locations, since 1.8 */
    REPEATED,
};

/* Field numbers by layout; 0: it does not have the field. */
enum numbered { SAMPLE_LINK = REPEATED, PROFILE_TIME, PROFILE_PERIOD_TYPE, PROFILE_ID, NUMBERED };
static const uint8_t numbers[PROFILE_LAYOUTS][NUMBERED] = {
    [LAYOUT_1_10] = {[OF_VALUES] = 4,
                     [OF_SAMPLE] = 2,
                     [OF_TIMES] = 5,
                     [OF_PROFILE] = 11,
                     [OF_MAPPING] = 5,
                     [OF_LOCATION] = 4,
                     [OF_STACK] = 1,
                     [SAMPLE_LINK] = 3,
                     [PROFILE_TIME] = 3,
                     [PROFILE_PERIOD_TYPE] = 5,
                     [PROFILE_ID] = 7},
    [LAYOUT_1_9] = {[OF_VALUES] = 2,
                    [OF_SAMPLE] = 3,
                    [OF_TIMES] = 5,
                    [OF_PROFILE] = 11,
                    [OF_MAPPING] = 5,
                    [OF_LOCATION] = 4,
                    [OF_STACK] = 1,
                    [SAMPLE_LINK] = 4,
                    [PROFILE_TIME] = 3,
                    [PROFILE_PERIOD_TYPE] = 5,
                    [PROFILE_ID] = 7},
    [LAYOUT_1_8] = {[OF_VALUES] = 2,
                    [OF_SAMPLE] = 3,
                    [OF_TIMES] = 5,
                    [OF_PROFILE] = 12,
                    [OF_COMMENTS] = 7,
                    [OF_MAPPING] = 5,
                    [OF_LOCATION] = 4,
                    [OF_STACK] = 1,
                    [SAMPLE_LINK] = 4,
                    [PROFILE_TIME] = 3,
                    [PROFILE_PERIOD_TYPE] = 5,
                    [PROFILE_ID] = 8},
    [LAYOUT_1_7] = {[OF_VALUES] = 3,
                    [OF_SAMPLE] = 4,
                    [OF_TIMES] = 6,
                    [OF_PROFILE] = 14,
                    [OF_COMMENTS] = 8,
                    [OF_LOCATION_LIST] = 3,
                    [OF_MAPPING] = 5,
                    [OF_LOCATION] = 5,
                    [SAMPLE_LINK] = 5,
                    [PROFILE_TIME] = 4,
                    [PROFILE_PERIOD_TYPE] = 6,
                    [PROFILE_ID] = 10},
};

/* The properties of a request. */
struct form {
    enum profile_layout layout;
    enum spelling spelling[REPEATED];
    bool has_link;
    bool has_values;
    bool has_times;
    size_t elements; /* of the repeated numbers of samples */
};

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, WIRE_VARINT_BYTES_MAX);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static void put_number(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    put_varint(out, wire_tag(number, WIRE_VARINT));
    put_varint(out, value);
}

static void put_fixed64(struct profile_bytes *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        profile_bytes_add(out, slice_of(&(uint8_t){(uint8_t)(value >> 8 * i)}, 1));
}

static void put_packed(struct profile_bytes *out, uint32_t number, bool is_fixed64,
                       const uint64_t *elements, size_t count)
{
    size_t begin = out->size;
    for (size_t i = 0; i < count; i++)
        (is_fixed64 ? put_fixed64 : put_varint)(out, elements[i]);
    profile_bytes_wrap(out, begin, number);
}

/* Mixed: the first one by itself, the others, which may be none, packed. */
static void put_repeated(struct profile_bytes *out, const struct form *form, enum repeated field,
                         const uint64_t *elements, size_t count)
{
    uint32_t number = numbers[form->layout][field];
    enum spelling spelling = form->spelling[field];
    bool is_fixed64 = field == OF_TIMES && form->layout != LAYOUT_1_7;
    size_t alone = spelling == PACKED ? 0 : spelling == UNPACKED ? count : 1;
    if (number == 0)
        return;
    for (size_t i = 0; i < alone; i++) {
        put_varint(out, wire_tag(number, is_fixed64 ? WIRE_FIXED64 : WIRE_VARINT));
        (is_fixed64 ? put_fixed64 : put_varint)(out, elements[i]);
    }
    if (spelling != UNPACKED)
        put_packed(out, number, is_fixed64, elements + alone, count - alone);
}

/* Fields in the order of their numbers, as libraries write them. */
static void put_sample(struct profile_bytes *out, const struct form *form, uint64_t which)
{
    const uint64_t values[] = {70000000 + which, 1, 90000000};
    const uint64_t attributes[] = {3 + which, 2, 1};
    const uint64_t times[] = {1700000000000000000 + which, 1700000000000000007,
                              1700000000000000009};
    bool is_1_7 = form->layout == LAYOUT_1_7;
    size_t begin = out->size;
    put_number(out, 1, is_1_7 ? which : 1 + which); /* where its locations begin, or its stack */
    if (is_1_7)
        put_number(out, 2, 2);
    for (uint32_t number = 2; number < 8; number++) {
        if (form->has_values && number == numbers[form->layout][OF_VALUES])
            put_repeated(out, form, OF_VALUES, values, form->elements);
        else if (number == numbers[form->layout][OF_SAMPLE])
            put_repeated(out, form, OF_SAMPLE, attributes, form->elements);
        else if (form->has_link && number == numbers[form->layout][SAMPLE_LINK])
            put_number(out, number, is_1_7 ? which : 1 + which); /* in 1.7 0 is one, too */
        else if (form->has_times && number == numbers[form->layout][OF_TIMES])
            put_repeated(out, form, OF_TIMES, times, form->elements);
    }
    profile_bytes_wrap(out, begin, 2);
}

static void put_type(struct profile_bytes *out, uint32_t number)
{
    size_t begin = out->size;
    put_number(out, 1, 1);
    put_number(out, 2, 2);
    profile_bytes_wrap(out, begin, number);
}

static void put_profile(struct profile_bytes *out, const struct form *form)
{
    const uint8_t *fields = numbers[form->layout];
    const uint64_t both[] = {1, 2};
    const uint64_t locations[] = {1, 2, 1};
    size_t begin = out->size;
    put_type(out, 1);
    put_sample(out, form, 0);
    put_sample(out, form, 1);
    put_repeated(out, form, OF_LOCATION_LIST, locations, 3);
    if (form->layout == LAYOUT_1_7) {
        put_number(out, fields[PROFILE_TIME], 1700000000000000000);
    } else {
        put_varint(out, wire_tag(fields[PROFILE_TIME], WIRE_FIXED64));
        put_fixed64(out, 1700000000000000000);
    }
    put_type(out, fields[PROFILE_PERIOD_TYPE]);
    put_repeated(out, form, OF_COMMENTS, both, 2);
    profile_bytes_field(out, fields[PROFILE_ID], slice_of_text("0123456789abcdef"));
    put_repeated(out, form, OF_PROFILE, both, 2);
    profile_bytes_wrap(out, begin, 2);
}

static void put_empty(struct profile_bytes *out, uint32_t number)
{
    profile_bytes_wrap(out, out->size, number);
}

/* Attributes 1 to 4; links 1 and 2, of which 1.7 has no zero element. */
static void put_dictionary(struct profile_bytes *out, const struct form *form)
{
    static const char *const keys[] = {"a", "b", "c", "d"};
    const uint64_t both[] = {1, 2};
    bool is_1_7 = form->layout == LAYOUT_1_7;
    size_t begin = out->size;
    if (!is_1_7)
        put_empty(out, 1);
    size_t entry = out->size;
    put_number(out, 4, 3);
    put_repeated(out, form, OF_MAPPING, both, 2);
    profile_bytes_wrap(out, entry, 1);
    put_empty(out, 2);
    for (uint64_t i = 0; i < 2; i++) {
        entry = out->size;
        put_number(out, 1, is_1_7 ? 0 : 1);
        put_number(out, 2, 0x1000 + i);
        put_repeated(out, form, OF_LOCATION, both, 2);
        profile_bytes_wrap(out, entry, 2);
    }
    put_empty(out, 3);
    if (!is_1_7)
        put_empty(out, 4);
    for (unsigned i = 0; i < 2; i++) {
        entry = out->size;
        profile_bytes_field(out, 1,
                            slice_of_text(i == 0 ? "trace-0123456789" : "trace-abcdefghij"));
        profile_bytes_field(out, 2, slice_of_text("the-span"));
        profile_bytes_wrap(out, entry, 4);
    }
    profile_bytes_field(out, 5, slice_of_text(""));
    profile_bytes_field(out, 5, slice_of_text("samples"));
    profile_bytes_field(out, 5, slice_of_text("count"));
    profile_bytes_field(out, 5, slice_of_text("file"));
    for (unsigned i = 0; i < 4; i++)
        profile_bytes_field(out, 5, slice_of_text(keys[i]));
    put_empty(out, 6);
    for (unsigned i = 0; i < 4; i++) {
        entry = out->size;
        if (is_1_7)
            profile_bytes_field(out, 1, slice_of_text(keys[i]));
        else
            put_number(out, 1, 4 + i);
        size_t value = out->size;
        put_number(out, 3, i);
        profile_bytes_wrap(out, value, 2);
        profile_bytes_wrap(out, entry, 6);
    }
    if (!is_1_7) {
        const uint64_t stacks[] = {1, 2, 1};
        put_empty(out, 7);
        for (unsigned i = 0; i < 2; i++) {
            entry = out->size;
            put_repeated(out, form, OF_STACK, stacks + i, 2);
            profile_bytes_wrap(out, entry, 7);
        }
    }
    profile_bytes_wrap(out, begin, 2);
}

static struct buffer *request_of(const struct form *form)
{
    struct profile_bytes out = {0};
    put_profile(&out, form);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    put_dictionary(&out, form);
    struct buffer *buffer = buffer_create(NULL, out.size);
    memcpy(buffer->data, out.data, out.size);
    buffer->size = out.size;
    profile_bytes_fini(&out);
    return buffer;
}

static void fail_in(const struct form *form, const char *what, const char *more)
{
    char text[REPEATED + 1] = "";
    for (unsigned i = 0; i < REPEATED; i++)
        text[i] = "pum"[form->spelling[i]];
    fail_msg("%s, spelt %s, %zu elements%s%s%s: %s%s", profile_layout_name(form->layout), text,
             form->elements, form->has_link ? ", link" : "", form->has_values ? ", values" : "",
             form->has_times ? ", times" : "", what, more);
}

/* The request as it is written after profile_normalize. */
static struct buffer *normalized_request(const struct form *form)
{
    struct buffer *request = request_of(form);
    struct profile_normalized normalized;
    struct profile_merge merge;
    struct profile_source source;
    enum profile_verdict verdict =
        profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, NULL, &normalized);
    if (normalized.layout != form->layout)
        fail_in(form, "taken for ", profile_layout_name(normalized.layout));
    if (verdict != PROFILES_TAKEN || normalized.rejected_profiles > 0)
        fail_in(form, "refused: ", normalized.reason);
    assert_int_equal(normalized.samples, 2);
    profile_merge_init(&merge, NULL);
    assert_true(profile_source_open(&source, normalized.request, &merge));
    source.is_begun = true; /* tables are copied in the order of use, not as a whole */
    assert_true(profile_merge_take(&merge, &source, (struct otlp_limit){.bytes_max = 1 << 20}));
    struct buffer *anew = profile_merge_finish(&merge, NULL);
    profile_source_close(&source);
    profile_merge_fini(&merge);
    buffer_unref(normalized.owner);
    buffer_unref(request);
    return anew;
}

static void check_spelling(const struct form *form, struct slice expected)
{
    struct buffer *found = normalized_request(form);
    if (!slice_equal(buffer_slice(found), expected))
        fail_in(form, "not what the packed spelling is", "");
    buffer_unref(found);
}

/* Each repeated number of the request but those of samples in each form, the others packed. */
static void check_each(const struct form *model, struct slice expected)
{
    for (unsigned field = OF_PROFILE; field < REPEATED; field++)
        for (enum spelling spelling = PACKED; spelling < SPELLINGS; spelling++) {
            struct form form = *model;
            form.spelling[field] = spelling;
            check_spelling(&form, expected);
        }
}

/* Those of samples, which prove the layout, in all combinations of forms, the others all alike. */
static void check_samples(const struct form *model, struct slice expected)
{
    for (unsigned i = 0; i < SPELLINGS * SPELLINGS * SPELLINGS * SPELLINGS; i++) {
        struct form form = *model;
        for (unsigned field = 0; field < REPEATED; field++)
            form.spelling[field] = (enum spelling)(i / 27);
        form.spelling[OF_VALUES] = (enum spelling)(i % 3);
        form.spelling[OF_SAMPLE] = (enum spelling)(i / 3 % 3);
        form.spelling[OF_TIMES] = (enum spelling)(i / 9 % 3);
        check_spelling(&form, expected);
    }
}

static void check_contents(const struct form *form)
{
    struct form newest = *form;
    struct oracle_items expected = {0};
    struct oracle_items items = {0};
    newest.layout = LAYOUT_1_10;
    struct buffer *reference = normalized_request(&newest);
    struct buffer *found = normalized_request(form);
    assert_null(profile_oracle_complaint(buffer_slice(found)));
    profile_oracle_list(&expected, buffer_slice(reference), PROFILE_WHOLE);
    profile_oracle_list(&items, buffer_slice(found), PROFILE_WHOLE);
    assert_int_equal(items.count, expected.count);
    for (size_t i = 0; i < items.count; i++)
        if (strcmp(items.texts[i], expected.texts[i]) != 0)
            fail_in(form, "says something else than 1.10: ", items.texts[i]);
    check_each(form, buffer_slice(found));
    check_samples(form, buffer_slice(found));
    oracle_clear(&items);
    oracle_clear(&expected);
    buffer_unref(found);
    buffer_unref(reference);
}

/* A sample has a value or a time, in every layout. */
static void every_spelling_of_every_layout_is_read(void **state)
{
    static const enum profile_layout layouts[] = {LAYOUT_1_10, LAYOUT_1_9, LAYOUT_1_8, LAYOUT_1_7};
    (void)state;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        for (unsigned has = 0; has < 8; has++)
            for (size_t elements = 1; elements <= 3; elements++) {
                const struct form form = {
                    .layout = layouts[i],
                    .has_link = (has & 1) != 0,
                    .has_values = (has & 2) != 0,
                    .has_times = (has & 4) != 0,
                    .elements = elements,
                };
                if (form.has_values || form.has_times)
                    check_contents(&form);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_every_layout_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
