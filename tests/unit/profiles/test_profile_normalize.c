/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizing profiles: any kind of index outside of its table rejects the profile that uses it and
 * no other; layouts are detected and converted to 1.10; references become strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_transcode.h"
#include "src/profiles/otlp/profile_view.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/random_profiles.h"

enum { ROUNDS = 300 };

/* Encodes fields of a message: "1=5" is a varint, "1:" with brackets a message, "1'text'" bytes,
 * "1#8" that many bytes, "1~5,6" packed varints, "3!5" fixed64. */
static const char *put_fields(struct profile_bytes *out, const char *text);

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, 16);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static const char *put_packed(struct profile_bytes *out, const char *text)
{
    char *end;
    do {
        put_varint(out, (uint64_t)strtoll(text + 1, &end, 10));
        text = end;
    } while (*text == ',');
    return text;
}

static const char *put_content(struct profile_bytes *out, uint32_t number, const char *text)
{
    size_t begin = out->size;
    char *end;
    if (*text == ':') {
        text = put_fields(out, text + 2);
    } else if (*text == '\'') {
        const char *last = strchr(text + 1, '\'');
        profile_bytes_add(out, slice_of(text + 1, (size_t)(last - text - 1)));
        text = last + 1;
    } else if (*text == '#') {
        for (long i = strtol(text + 1, &end, 10); i > 0; i--)
            profile_bytes_add(out, slice_of("x", 1));
        text = end;
    } else {
        assert_int_equal(*text, '~');
        text = put_packed(out, text);
    }
    profile_bytes_wrap(out, begin, number);
    return text;
}

static const char *put_field(struct profile_bytes *out, const char *text)
{
    char *end;
    uint32_t number = (uint32_t)strtoul(text, &end, 10);
    assert_true(number > 0);
    if (*end != '=' && *end != '!')
        return put_content(out, number, end);
    uint64_t value = (uint64_t)strtoll(end + 1, (char **)(uintptr_t)&text, 10);
    if (*end == '=') {
        put_varint(out, wire_tag(number, WIRE_VARINT));
        put_varint(out, value);
    } else {
        uint8_t room[16];
        struct wire_writer writer = wire_writer_of(room, sizeof(room));
        wire_write_fixed64(&writer, number, value);
        profile_bytes_add(out, wire_written(&writer));
    }
    return text;
}

static const char *put_fields(struct profile_bytes *out, const char *text)
{
    while (*text != '\0' && *text != '}')
        text = *text == ' ' ? text + 1 : put_field(out, text);
    return *text == '}' ? text + 1 : text;
}

static struct buffer *request_of(const char *text)
{
    struct profile_bytes out = {0};
    put_fields(&out, text);
    struct buffer *buffer = buffer_create(NULL, out.size);
    if (out.size > 0)
        memcpy(buffer->data, out.data, out.size);
    buffer->size = out.size;
    profile_bytes_fini(&out);
    return buffer;
}

static enum profile_verdict pass(const char *text, struct profile_normalized *ret_normalized)
{
    struct buffer *request = request_of(text);
    enum profile_verdict verdict =
        profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, NULL, ret_normalized);
    buffer_unref(request);
    return verdict;
}

/* Two of everything, the second of which a test replaces. */
#define TABLES(mapping, location, function, link, attribute, stack)                                \
    "2:{1:{} 1:{" mapping "} 2:{} 2:{" location "} 3:{} 3:{" function "} 4:{} 4:{" link            \
    "} 5'' 5'a' 5'b' 6:{} 6:{" attribute "} 7:{} 7:{" stack "}}"
#define FINE_TABLES                                                                                \
    TABLES("4=1 5~1", "1=1 3:{1=1 2=7} 4~1", "1=1 2=1 3=1", "1#16 2#8", "1=1 2:{3=4} 3=1", "1~1")
#define PROFILE(type, rest) "2:{1:{" type "} 2:{1=1 4~5} 3!7 5:{} " rest "}"
#define SAMPLE(fields)      "2:{1:{1=1} 2:{" fields "} 3!7 5:{}}"
#define REQUEST(profiles)   "1:{1:{} 2:{1:{} 2:{1:{} 2:{4~1} 3!7 5:{}} " profiles "}}"

static const struct {
    const char *request;
    const char *reason; /* NULL: nothing is rejected */
} rows[] = {
    {REQUEST(SAMPLE("1=1 2~1 3=1 4~5")) FINE_TABLES, NULL},
    {REQUEST(SAMPLE("1=2 4~5")) FINE_TABLES,
     "profile 1: stack_index 2 is outside of the stack_table, which has 2 entries"},
    {REQUEST(SAMPLE("1=-1 4~5")) FINE_TABLES, "profile 1: stack_index -1 is outside"},
    {REQUEST(SAMPLE("2~1,2 4~5")) FINE_TABLES,
     "attribute_indices of a sample 2 is outside of the attribute_table"},
    {REQUEST(SAMPLE("2=-7 4~5")) FINE_TABLES, "attribute_indices of a sample -7 is outside"},
    /* 2^32 + 1: its low 32 bits are a valid index. */
    {REQUEST(SAMPLE("1=4294967297 4~5")) FINE_TABLES, "stack_index 4294967297 is outside"},
    {REQUEST(SAMPLE("2~4294967297 4~5")) FINE_TABLES,
     "attribute_indices of a sample 4294967297 is outside"},
    {REQUEST(SAMPLE("2~1 2=-9223372036854775807 4~5")) FINE_TABLES,
     "attribute_indices of a sample -9223372036854775807 is outside"},
    {REQUEST(PROFILE("", "11~4294967297")) FINE_TABLES, "attribute_indices 4294967297 is outside"},
    {REQUEST(PROFILE("", "")) TABLES("5~4294967297", "1=1", "", "", "", "1~1"), "stack_index 1 le"},
    {REQUEST(PROFILE("", "")) TABLES("", "4~4294967297", "", "", "", "1~1"), "stack_index 1 le"},
    {REQUEST(PROFILE("", "")) TABLES("", "", "", "", "", "1~4294967297"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "", "", "", "", "1=4294967297"), "stack_index 1 leads"},
    {REQUEST(SAMPLE("3=2 4~5")) FINE_TABLES, "link_index 2 is outside of the link_table"},
    {REQUEST(SAMPLE("3=-2147483648 4~5")) FINE_TABLES, "link_index -2147483648 is outside"},
    {REQUEST(PROFILE("1=3", "")) FINE_TABLES,
     "strindex of sample_type 3 is outside of the string_table, which has 3 entries"},
    {REQUEST(PROFILE("2=-1", "")) FINE_TABLES, "strindex of sample_type -1"},
    {REQUEST(PROFILE("", "5:{1=9}")) FINE_TABLES, "strindex of period_type 9"},
    {REQUEST(PROFILE("", "5:{2=9}")) FINE_TABLES, "strindex of period_type 9"},
    {REQUEST(PROFILE("", "11~1,5")) FINE_TABLES, "attribute_indices 5 is outside"},
    {REQUEST(PROFILE("", "7#15")) FINE_TABLES, "profile_id has 15 bytes, expected 16 or 0"},
    {REQUEST(PROFILE("", "")) TABLES("4=3", "1=1", "", "", "", "1~1"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("5~2", "1=1", "", "", "", "1~1"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("", "1=2", "", "", "", "1~1"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("", "1=-1", "", "", "", "1~1"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("", "3:{1=2}", "", "", "", "1~1"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "3:{1=-1}", "", "", "", "1~1"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "4~2", "", "", "", "1~1"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("", "3:{1=1}", "1=3", "", "", "1~1"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "3:{1=1}", "2=3", "", "", "1~1"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "3:{1=1}", "3=-3", "", "", "1~1"), "stack_index 1 leads"},
    {REQUEST(PROFILE("", "")) TABLES("", "", "", "", "", "1~1,2"), "stack_index 1 leads to"},
    {REQUEST(PROFILE("", "")) TABLES("", "", "", "", "", "1~-1"), "stack_index 1 leads to"},
    {REQUEST(SAMPLE("3=1 4~5")) TABLES("", "", "", "1#15", "", ""), "link_index 1 leads to"},
    {REQUEST(SAMPLE("3=1 4~5")) TABLES("", "", "", "2#9", "", ""), "link_index 1 leads to"},
    {REQUEST(SAMPLE("2~1 4~5")) TABLES("", "", "", "", "1=3", ""), "of a sample 1 leads to"},
    {REQUEST(SAMPLE("2~1 4~5")) TABLES("", "", "", "", "3=-1", ""), "of a sample 1 leads to"},
    /* Broken entries that are not used reject nothing. */
    {REQUEST(SAMPLE("4~5")) TABLES("4=3", "1=2", "1=3", "1#3", "1=3", "1~2"), NULL},
};

/* Walks all tables, whether or not samples refer to their entries. */
static void shape(struct slice request)
{
    const struct profile_limit_rules rules = {.depth_max = 1, .label_values_max = 1};
    struct profile_limit_figures figures;
    struct buffer *shaped = profile_limit(&rules, request, NULL, NULL, &figures);
    assert_non_null(shaped);
    assert_int_equal(profile_oracle_strays(buffer_slice(shaped)), 0);
    buffer_unref(shaped);
}

static void a_broken_index_costs_its_profile_and_no_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct profile_normalized normalized;
        assert_int_equal(pass(rows[i].request, &normalized), PROFILES_TAKEN);
        bool is_rejected = rows[i].reason != NULL;
        if (is_rejected ? strstr(normalized.reason, rows[i].reason) == NULL
                        : normalized.reason[0] != '\0')
            fail_msg("row %zu: found \"%s\", expected \"%s\"", i, normalized.reason,
                     is_rejected ? rows[i].reason : "");
        assert_int_equal(normalized.rejected_profiles, is_rejected);
        assert_int_equal(normalized.rejected_samples, is_rejected);
        assert_int_equal(normalized.samples, is_rejected ? 1 : 2);
        if (is_rejected)
            assert_null(profile_oracle_complaint(normalized.request));
        assert_int_equal(profile_oracle_strays(normalized.request), 0);
        shape(normalized.request);
        buffer_unref(normalized.owner);
    }
}

/* Later stages walk whole tables. Each row has one broken entry that nothing refers to. */
static void no_index_of_a_normalized_request_leads_nowhere(void **state)
{
    static const char *const tables[] = {
        TABLES("4=3", "", "", "", "", ""),
        TABLES("4=4294967297", "", "", "", "", ""),
        TABLES("5~2", "", "", "", "", ""),
        TABLES("5~4294967297", "", "", "", "", ""),
        TABLES("5=1 5=-1", "", "", "", "", ""),
        TABLES("", "1=2", "", "", "", ""),
        TABLES("", "1=-1", "", "", "", ""),
        TABLES("", "3:{1=2}", "", "", "", ""),
        TABLES("", "3:{1=4294967296}", "", "", "", ""),
        TABLES("", "4=2", "", "", "", ""),
        TABLES("", "4~0,4294967297", "", "", "", ""),
        TABLES("", "", "1=3", "", "", ""),
        TABLES("", "", "2=-1", "", "", ""),
        TABLES("", "", "3=4294967297", "", "", ""),
        TABLES("", "", "", "1#15", "", ""),
        TABLES("", "", "", "", "1=3", ""),
        TABLES("", "", "", "", "3=4294967297", ""),
        TABLES("", "", "", "", "", "1~2"),
        TABLES("", "", "", "", "", "1=1 1=2"),
        TABLES("", "", "", "", "", "1~4294967297"),
        TABLES("", "", "", "", "", "1~-9223372036854775807"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        char text[512];
        struct profile_normalized normalized;
        snprintf(text, sizeof(text), "%s %s", REQUEST(SAMPLE("4~5")), tables[i]);
        assert_int_equal(pass(text, &normalized), PROFILES_TAKEN);
        assert_int_equal(normalized.rejected_profiles, 0);
        assert_int_equal(normalized.samples, 2);
        if (profile_oracle_strays(normalized.request) > 0)
            fail_msg("row %zu: the broken entry is still there", i);
        assert_null(profile_oracle_complaint(normalized.request));
        shape(normalized.request);
        buffer_unref(normalized.owner);
    }
}

/* A sample as each writer encodes it, and the layout that it proves. */
static const struct {
    const char *sample;
    enum profile_layout layout;
} shapes[] = {
    {"1=1 2~1 3=1 4~5", LAYOUT_1_10},
    {"1=1 4~5 5#8", LAYOUT_1_10},
    {"1=1 4=5 4=6", LAYOUT_1_10},
    {"1=1 2=1 4=5", LAYOUT_1_10},
    {"1=1 4=5", LAYOUT_1_10},
    {"1=1 2~1 5#8", LAYOUT_1_10},
    {"1=1", LAYOUT_1_10},
    {"1=1 2~5 3~1 4=1", LAYOUT_1_9},
    {"1=1 2~5 3=1 3=0", LAYOUT_1_9},
    {"1=1 2~5 4=1", LAYOUT_1_9},
    {"1=1 2=5 3=1", LAYOUT_1_9},
    {"1=1 2~5", LAYOUT_1_9},
    {"1=1 2=5", LAYOUT_1_9},
    {"1=1 2~77 5#8", LAYOUT_1_9},
    {"1=0 2=1 3~5 6~7", LAYOUT_1_7},
};

static void samples_tell_their_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "1:{2:{2:{1:{1=1} 2:{%s} 3!7}}} " FINE_TABLES,
                 shapes[i].sample);
        struct buffer *request = request_of(text);
        enum profile_layout layout = profile_layout_of(buffer_slice(request));
        if (layout != shapes[i].layout)
            fail_msg("%s: found %s, expected %s", shapes[i].sample, profile_layout_name(layout),
                     profile_layout_name(shapes[i].layout));
        buffer_unref(request);
    }
}

/* The same profile in each layout. */
#define NEW_REQUEST                                                                                \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1} 2:{1=1 2~1 3=1 4~5 5#8} 2:{4~6} 3!7 4=9 5:{1=2} 6=3 "  \
    "7#16 8=4 9'f' 10'p' 11~1}}} " FINE_TABLES
#define REQUEST_1_9                                                                                \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1} 2:{1=1 2~5 3~1 4=1 5#8} 2:{2~6} 3!7 4=9 5:{1=2} 6=3 "  \
    "7#16 8=4 9'f' 10'p' 11~1}}} " FINE_TABLES
#define REQUEST_1_8                                                                                \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1 3=1} 2:{1=1 2~5 3~1 4=1 5#8} 2:{2~6} 3!7 4=9 5:{1=2} "  \
    "6=3 7~1,2 8#16 9=4 10'f' 11'p' 12~1}}} " FINE_TABLES

static struct oracle_items list_of(const char *text, enum profile_layout layout)
{
    struct oracle_items items = {0};
    struct profile_normalized normalized;
    assert_int_equal(pass(text, &normalized), PROFILES_TAKEN);
    assert_int_equal(normalized.layout, layout);
    assert_int_equal(normalized.samples, 2);
    profile_oracle_list(&items, normalized.request, PROFILE_WHOLE);
    buffer_unref(normalized.owner);
    return items;
}

/* Two types become two profiles; indices of links and mappings grow by one. */
#define REQUEST_1_7                                                                                \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1} 1:{1=2 2=1} 2:{1=1 2=2 3~5,6 4~1 5=0 6~77} 3~0,1 3=1 " \
    "4=7 5=9 6:{1=2} 7=3 8~1 9=1 10#16 11=4 12'f' 13'p' 14~1}}} 2:{1:{4=1 5~1 6=1} 2:{2=9 4=1} "   \
    "2:{1=0 3:{1=1 2=7} 5~1} 3:{} 3:{1=1} 4:{1#16 2#8} 5'' 5'a' 5'b' 6:{} 6:{1'key' 2:{3=4}} "     \
    "7:{1=1 2=2}}"
#define EQUAL_TO_1_7                                                                               \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1} 2:{1=1 2~1 3=1 4~5 5!77} 3!7 4=9 5:{1=2} 6=3 7#16 "    \
    "8=4 9'f' 10'p' 11~1} 2:{1:{1=2 2=1} 2:{1=1 2~1 3=1 4~6 5!77} 3!7 4=9 5:{1=2} 6=3 8=4 "        \
    "11~1}}} 2:{1:{} 1:{4=1 5~1} 2:{2=9} 2:{1=1 3:{1=1 2=7} 4~1} 3:{} 3:{1=1} 4:{} 4:{1#16 2#8} "  \
    "5'' 5'a' 5'b' 5'key' 6:{} 6:{1=3 2:{3=4}} 7:{} 7:{1~1,1}}"

static void layout_1_7_says_what_the_new_one_says(void **state)
{
    struct oracle_items expected = list_of(EQUAL_TO_1_7, LAYOUT_1_10);
    struct oracle_items items = list_of(REQUEST_1_7, LAYOUT_1_7);
    (void)state;
    assert_int_equal(items.count, expected.count);
    for (size_t i = 0; i < items.count; i++)
        assert_string_equal(items.texts[i], expected.texts[i]);
    oracle_clear(&items);
    oracle_clear(&expected);
}

static void a_broken_range_or_link_of_1_7_costs_its_profile(void **state)
{
    static const char *const samples[] = {
        "1=1 2=2 3~5",
        "1=2 2=1 3~5",
        "1=-1 2=1 3~5",
        "1=1 2=-1 3~5",
        "1=0 2=2 3~5 5=-1",
        "1=0 2=2 3~5 5=4294967295",
        "1=0 2=2 3~5 5=4294967296",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        char text[256];
        struct profile_normalized normalized;
        snprintf(text, sizeof(text),
                 "1:{2:{2:{1:{} 2:{%s} 3~0,0 4=7} 2:{1:{} 2:{1=0 2=2 3~5} 3~0,0 4=7}}} 2:{2:{} "
                 "4:{1#16 2#8} "
                 "5''}",
                 samples[i]);
        assert_int_equal(pass(text, &normalized), PROFILES_TAKEN);
        assert_int_equal(normalized.layout, LAYOUT_1_7);
        assert_int_equal(normalized.rejected_profiles, 1);
        assert_int_equal(normalized.samples, 1);
        buffer_unref(normalized.owner);
    }
}

static void older_layouts_say_what_the_new_one_says(void **state)
{
    static const struct {
        const char *request;
        enum profile_layout layout;
    } olds[] = {{REQUEST_1_9, LAYOUT_1_9}, {REQUEST_1_8, LAYOUT_1_8}};
    struct oracle_items expected = list_of(NEW_REQUEST, LAYOUT_1_10);
    (void)state;
    for (size_t i = 0; i < sizeof(olds) / sizeof(olds[0]); i++) {
        struct oracle_items items = list_of(olds[i].request, olds[i].layout);
        assert_int_equal(items.count, expected.count);
        for (size_t j = 0; j < items.count; j++)
            assert_string_equal(items.texts[j], expected.texts[j]);
        oracle_clear(&items);
    }
    oracle_clear(&expected);
}

/* The new request in layout 1.9, with its fields in the order of their numbers. */
#define NEW_AS_1_9                                                                                 \
    "1:{1:{1:{1'k' 2:{1'v'}}} 2:{2:{1:{1=1} 2:{1=1 3~1 4=1 2~5 5#8} 2:{2~6} 3!7 4=9 5:{1=2} 6=3 "  \
    "7#16 8=4 9'f' 10'p' 11~1}}} " FINE_TABLES

static void what_leaves_as_1_9_has_its_numbers(void **state)
{
    struct buffer *request = request_of(NEW_REQUEST);
    struct buffer *expected = request_of(NEW_AS_1_9);
    struct budget budget;
    (void)state;
    budget_init(&budget, 1 << 20);
    struct buffer *old = profile_transcode_back(buffer_slice(request), &budget);
    assert_int_equal(old->size, expected->size);
    assert_memory_equal(old->data, expected->data, old->size);
    assert_int_equal(profile_layout_of(buffer_slice(old)), LAYOUT_1_9);
    buffer_unref(old);
    assert_true(budget_try_take(&budget, 1 << 20));
    assert_null(profile_transcode_back(buffer_slice(request), &budget));
    budget_return(&budget, 1 << 20);
    budget_fini(&budget);
    buffer_unref(expected);
    buffer_unref(request);
}

/* Any request, converted to 1.9 and read as such, says the same. */
static void what_leaves_as_1_9_comes_back_unchanged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct random_source random = {.state = seed};
        struct slice request = random_profiles(&random);
        struct buffer *old = profile_transcode_back(request, NULL);
        struct buffer *back = profile_transcode(LAYOUT_1_9, buffer_slice(old), NULL);
        assert_int_equal(back->size, request.size);
        assert_memory_equal(back->data, request.data, request.size);
        buffer_unref(back);
        buffer_unref(old);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void what_cannot_be_read_is_refused_by_version(void **state)
{
    static const struct {
        const char *request;
        const char *reason;
    } refused[] = {
        {"1:{2:{2:{1:{} 2:{1=1 4~5} 3!7}}}", "the layout of OTLP 1.6 or older"},
        {"1:{2:{2:{2:{4~5 3~1} 3!7}}} 2:{5''}", "the samples fit no single layout"},
        {"1:{2:{2:{2:{4~5} 3!7}}} 2:{5=1}", "field 5 (string_table) has wire type 0"},
    };
    struct profile_normalized normalized;
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(pass(refused[i].request, &normalized), PROFILES_REFUSED);
        if (strstr(normalized.reason, refused[i].reason) == NULL)
            fail_msg("found \"%s\", expected \"%s\"", normalized.reason, refused[i].reason);
    }
}

static void references_that_lead_nowhere_cost_their_attribute(void **state)
{
    struct profile_normalized normalized;
    struct oracle_items items = {0};
    (void)state;
    assert_int_equal(
        pass("1:{1:{1:{2:{8=1} 3=1} 1:{1'x' 2:{8=9}} 1:{3=-4} 1:{1'y' 2:{5:{1:{8=7}}} 3=99}} "
             "2:{1:{3:{1'z' 3=99 2:{6:{1:{3=2 2:{8=2}}}}}} 2:{1:{} 2:{2~1,2 4~5} 3!7 5:{}}}} "
             "2:{1:{} 2:{} 3:{} 4:{} 5'' 5'a' 5'b' 6:{} 6:{1=1 2:{8=2}} 6:{1=1 2:{8=77}} 7:{}}",
             &normalized),
        PROFILES_TAKEN);
    assert_int_equal(normalized.dropped_attributes, 4);
    assert_int_equal(normalized.rejected_profiles, 0);
    assert_null(profile_oracle_complaint(normalized.request));
    profile_oracle_list(&items, normalized.request, PROFILE_WHOLE);
    assert_int_equal(items.count, 1);
    assert_non_null(strstr(items.texts[0], "0a080a016112030a0161  ")); /* a=a alone */
    assert_non_null(strstr(items.texts[0], "[a=0a0162 ]"));
    oracle_clear(&items);
    buffer_unref(normalized.owner);
}

static void what_needs_nothing_stays_as_it_is(void **state)
{
    struct buffer *request = request_of(REQUEST(SAMPLE("1=1 2~1 3=1 4~5")) FINE_TABLES);
    struct profile_normalized normalized;
    (void)state;
    assert_int_equal(
        profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, NULL, &normalized),
        PROFILES_TAKEN);
    assert_ptr_equal(normalized.owner, request);
    buffer_unref(normalized.owner);
    buffer_unref(request);
}

/* However a Profile's attributes are encoded, they are found without passing its samples again. */
static void attributes_of_a_profile_become_one_list(void **state)
{
    static const char *const requests[] = {
        REQUEST("2:{1:{1=1} 2:{4~5} 5:{} 11=1 11=0 11=1}") FINE_TABLES,
        REQUEST("2:{11=1 1:{1=1} 2:{4~5} 5:{} 11~1}") FINE_TABLES,
        REQUEST("2:{1:{1=1} 2:{4~5} 5:{} 11~1 11~1}") FINE_TABLES,
    };
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct profile_normalized normalized;
        assert_int_equal(pass(requests[i], &normalized), PROFILES_TAKEN);
        struct profile_iterator at = profile_iterator_of(normalized.request);
        size_t attributes = 0;
        while (profile_iterator_next(&at)) {
            assert_null(at.profile.attributes.numbers.parent.data);
            attributes += profile_numbers_count(&at.profile.attributes.numbers);
        }
        assert_int_equal(attributes, 2);
        assert_int_equal(normalized.rejected_profiles, 0);
        buffer_unref(normalized.owner);
    }
}

static void random_requests_say_the_same_once_normalized(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct random_source random = {.state = seed};
        struct slice bytes = random_profiles(&random);
        struct buffer *request = buffer_create(NULL, bytes.size);
        struct oracle_items before = {0};
        struct oracle_items after = {0};
        struct profile_normalized normalized;
        memcpy(request->data, bytes.data, bytes.size);
        request->size = bytes.size;
        assert_int_equal(profile_normalize(request, bytes, LAYOUT_1_10, NULL, &normalized),
                         PROFILES_TAKEN);
        assert_int_equal(normalized.rejected_profiles, 0);
        profile_oracle_list(&before, bytes, PROFILE_WHOLE);
        profile_oracle_list(&after, normalized.request, PROFILE_WHOLE);
        profile_oracle_sort(&before);
        profile_oracle_sort(&after);
        assert_int_equal(before.count, after.count);
        for (size_t i = 0; i < before.count; i++)
            assert_string_equal(before.texts[i], after.texts[i]);
        oracle_clear(&before);
        oracle_clear(&after);
        buffer_unref(normalized.owner);
        buffer_unref(request);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

static void without_memory_the_result_is_later(void **state)
{
    struct buffer *request = request_of(REQUEST_1_9);
    struct profile_normalized normalized;
    struct budget budget;
    (void)state;
    budget_init(&budget, 10);
    assert_int_equal(
        profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, &budget, &normalized),
        PROFILES_BUSY);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    buffer_unref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_index_costs_its_profile_and_no_other),
        cmocka_unit_test(no_index_of_a_normalized_request_leads_nowhere),
        cmocka_unit_test(samples_tell_their_layout),
        cmocka_unit_test(older_layouts_say_what_the_new_one_says),
        cmocka_unit_test(what_leaves_as_1_9_has_its_numbers),
        cmocka_unit_test(what_leaves_as_1_9_comes_back_unchanged),
        cmocka_unit_test(layout_1_7_says_what_the_new_one_says),
        cmocka_unit_test(a_broken_range_or_link_of_1_7_costs_its_profile),
        cmocka_unit_test(what_cannot_be_read_is_refused_by_version),
        cmocka_unit_test(references_that_lead_nowhere_cost_their_attribute),
        cmocka_unit_test(what_needs_nothing_stays_as_it_is),
        cmocka_unit_test(attributes_of_a_profile_become_one_list),
        cmocka_unit_test(random_requests_say_the_same_once_normalized),
        cmocka_unit_test(without_memory_the_result_is_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
