/* SPDX-License-Identifier: Apache-2.0 */
/* Opaque profiles: what was written is read back, profile_normalize leaves it as it is, merging and
 * limits keep it whole. */
#include "src/profiles/otlp/opaque_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/pattern.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_remove.h"
#include "tests/support/memory_watch.h"

#define S(text)                                                                                    \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

static const struct opaque_profile_pair labels[] = {
    {S("service.name"), S("shop")}, {S("region"), S("eu")}, {S("a.b"), S("c")}};
static const struct opaque_profile_pair parameters[] = {
    {S("from"), S("1790000000")}, {S("until"), S("1790000010")}, {S("spyName"), S("javaspy")}};

static const struct opaque_profile whole = {
    .format = S("jfr"),
    .payload = S("FLR\0\0\2 and so on"),
    .labels_part = S("\x0a\x00\xff"),
    .time_unix_ns = 1790000000000000000,
    .duration_ns = 10000000000,
    .labels = labels,
    .labels_count = 3,
    .parameters = parameters,
    .parameters_count = 3,
};
static const struct opaque_profile least = {.format = S("jfr"), .payload = S("x")};

/* The first Profile of a request, and the tables it refers to. */
struct reading {
    struct arena arena;
    struct profile_dictionary dictionary;
    struct profile_resource resource;
    struct profile profile;
    unsigned profiles;
};

static void read_request(struct reading *reading, struct slice request)
{
    struct profile_iterator at = profile_iterator_of(request);
    *reading = (struct reading){.profiles = 0};
    arena_init(&reading->arena, 1 << 20);
    assert_true(profile_dictionary_open(&reading->dictionary, &reading->arena, request));
    while (profile_iterator_next(&at)) {
        if (reading->profiles++ > 0)
            continue;
        reading->profile = at.profile;
        reading->resource = at.resource;
    }
}

static void check_text(struct slice found, struct slice expected)
{
    assert_int_equal(found.size, expected.size);
    assert_memory_equal(found.data, expected.data, expected.size);
}

static struct slice parameter(const struct reading *reading, const char *name)
{
    struct slice value;
    opaque_profile_parameters(&reading->dictionary, &reading->profile, &name, 1, &value);
    return value;
}

static void check_whole(struct slice request)
{
    struct reading reading;
    read_request(&reading, request);
    const struct profile *profile = &reading.profile;
    struct slice names = profile_label_names(&reading.dictionary, profile);
    assert_true(profile_is_opaque(profile));
    assert_int_equal(profile_items(profile), 1);
    check_text(profile->payload, whole.payload);
    assert_int_equal(profile->time_unix_ns, whole.time_unix_ns);
    assert_int_equal(profile->duration_ns, whole.duration_ns);
    check_text(parameter(&reading, "from"), parameters[0].value);
    check_text(parameter(&reading, "until"), parameters[1].value);
    check_text(parameter(&reading, "spyName"), parameters[2].value);
    check_text(parameter(&reading, OPAQUE_PROFILE_LABELS), whole.labels_part);
    assert_null(parameter(&reading, "units").data);
    assert_true(profile_label_names_has(names, slice_of_text("region")));
    assert_true(profile_label_names_has(names, slice_of_text("a.b")));
    assert_false(profile_label_names_has(names, slice_of_text("service.name")));
    assert_false(profile_label_names_has(names, slice_of_text("reg")));
    arena_clear(&reading.arena);
}

/* The same request, normalized. */
static struct profile_normalized pass(struct buffer *buffer)
{
    struct profile_normalized normalized;
    assert_int_equal(
        profile_normalize(buffer, buffer_slice(buffer), PROFILE_LAYOUTS, NULL, &normalized),
        PROFILES_TAKEN);
    assert_int_equal(normalized.rejected_profiles, 0);
    return normalized;
}

static void what_is_written_is_read_and_is_normalized_already(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, 1 << 20);
    struct buffer *buffer = opaque_profile_write(&whole, &budget);
    struct profile_normalized normalized = pass(buffer);
    assert_ptr_equal(normalized.owner, buffer);
    assert_int_equal(normalized.profiles, 1);
    assert_int_equal(normalized.samples, 1);
    check_whole(normalized.request);
    buffer_unref(normalized.owner);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
    assert_true(budget_try_take(&budget, 1 << 20));
    assert_null(opaque_profile_write(&whole, &budget));
    budget_return(&budget, 1 << 20);
    budget_fini(&budget);
}

static void a_minimal_one_has_neither_labels_nor_parameters(void **state)
{
    struct reading reading;
    (void)state;
    struct buffer *buffer = opaque_profile_write(&least, NULL);
    struct profile_normalized normalized = pass(buffer);
    read_request(&reading, normalized.request);
    assert_ptr_equal(normalized.owner, buffer);
    assert_true(profile_is_opaque(&reading.profile));
    assert_null(profile_label_names(&reading.dictionary, &reading.profile).data);
    assert_null(parameter(&reading, "from").data);
    arena_clear(&reading.arena);
    buffer_unref(normalized.owner);
    buffer_unref(buffer);
}

/* What all else but the file takes is charged while the request is written. */
static void a_large_part_of_labels_is_charged(void **state)
{
    enum { PART_BYTES = 1000 * 1000, SLACK_BYTES = 4096 };
    static uint8_t part[PART_BYTES];
    struct opaque_profile large = whole;
    unsigned written = 0;
    (void)state;
    large.labels_part = slice_of(part, sizeof(part));
    for (uint64_t limit = 0; limit < 8 * MIB; limit += MIB / 4) {
        struct budget budget;
        budget_init(&budget, limit);
        memory_watch_begin();
        struct buffer *buffer = opaque_profile_write(&large, &budget);
        uint64_t charged = atomic_load(&budget.high_water);
        if (memory_watch_peak() > charged + SLACK_BYTES || charged > limit)
            fail_msg("%llu bytes held, %llu charged of %llu",
                     (unsigned long long)memory_watch_peak(), (unsigned long long)charged,
                     (unsigned long long)limit);
        written += buffer != NULL;
        buffer_unref(buffer);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    assert_true(written > 0);
}

/* Three opaque profiles and a limit: the number of pieces, each of them whole. */
static void check_pieces(struct otlp_limit limit, unsigned pieces_expected)
{
    struct profile_merge merge;
    unsigned pieces = 0;
    uint64_t items = 0;
    struct buffer *buffer = opaque_profile_write(&whole, NULL);
    profile_merge_init(&merge, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct profile_source source;
        bool is_done = false;
        assert_true(profile_source_open(&source, buffer_slice(buffer), &merge));
        while (!is_done) {
            is_done = profile_merge_take(&merge, &source, limit);
            if (is_done && i < 2)
                break;
            items += merge.items;
            struct buffer *piece = profile_merge_finish(&merge, &source);
            check_whole(buffer_slice(piece));
            buffer_unref(piece);
            pieces++;
        }
        profile_source_close(&source);
    }
    assert_int_equal(items, 3);
    assert_int_equal(pieces, pieces_expected);
    profile_merge_fini(&merge);
    buffer_unref(buffer);
}

static void merging_and_splitting_keep_them_whole(void **state)
{
    (void)state;
    check_pieces((struct otlp_limit){.items_max = 0}, 1);
    check_pieces((struct otlp_limit){.items_max = 3}, 1);
    check_pieces((struct otlp_limit){.items_max = 2}, 2);
    check_pieces((struct otlp_limit){.items_max = 1}, 3);
    check_pieces((struct otlp_limit){.bytes_max = 8}, 3);
}

static void limits_on_sizes_keep_them_and_rules_on_names_drop_them(void **state)
{
    struct profile_limit_rules rules = {.samples_max = 1, .depth_max = 5};
    struct profile_limit_figures figures;
    struct reading reading;
    struct error error;
    (void)state;
    struct buffer *buffer = opaque_profile_write(&whole, NULL);
    struct buffer *shaped = profile_limit(&rules, buffer_slice(buffer), NULL, NULL, &figures);
    check_whole(buffer_slice(shaped));
    assert_int_equal(figures.samples, 1);
    buffer_unref(shaped);
    struct pattern *secret = pattern_create("secret", &error);
    rules.drops = &secret;
    rules.drops_count = 1;
    shaped = profile_limit(&rules, buffer_slice(buffer), NULL, NULL, &figures);
    read_request(&reading, buffer_slice(shaped));
    assert_int_equal(reading.profile.payload.size, 0);
    assert_int_equal(figures.samples, 0);
    arena_clear(&reading.arena);
    buffer_unref(shaped);
    buffer_unref(buffer);
    pattern_destroy(secret);
}

enum { ATTRIBUTES = 17000, SHORT = 127, REFERENCES = 70 << 20 };

static void put_sample(struct profile_bytes *out, uint32_t first, uint32_t end, size_t more)
{
    size_t sample = out->size;
    for (uint32_t i = first; i < end; i++) {
        uint8_t *at = profile_bytes_room(out, WIRE_VARINT_BYTES_MAX);
        out->size += (size_t)(profile_put_varint(at, i) - at);
    }
    memset(profile_bytes_room(out, more), SHORT, more);
    out->size += more;
    profile_bytes_wrap(out, sample, 2);
    profile_bytes_add(out, slice_of("\x22\x01\x01", 3)); /* a value */
    profile_bytes_wrap(out, sample, 2);
}

/* An opaque profile, and one whose second sample has many references of one byte to one attribute,
 * which comes after all others when the request is rewritten, and then takes three bytes. */
static struct slice growing_request(struct profile_bytes *out)
{
    size_t profile = out->size;
    profile_bytes_add(out, slice_of("\x0a\x00\x2a\x00", 4)); /* its types */
    put_sample(out, SHORT + 1, ATTRIBUTES, 0);
    put_sample(out, 0, 0, REFERENCES);
    profile_bytes_wrap(out, profile, 2);
    profile_bytes_add(out, slice_of("\x12\x0d\x0a\x00\x2a\x00\x4a\x03jfr\x52\x02xx", 15));
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    size_t dictionary = out->size;
    for (uint32_t table = 1; table <= PROFILE_TABLES; table++)
        profile_bytes_wrap(out, out->size, table);
    for (uint32_t i = 1; i < ATTRIBUTES; i++) {
        size_t entry = out->size;
        uint8_t *at = profile_bytes_room(out, 1 + WIRE_VARINT_BYTES_MAX);
        out->size += (size_t)(profile_put_number(at, 3, i) - at);
        profile_bytes_wrap(out, entry, 2);
        profile_bytes_wrap(out, entry, PROFILE_ATTRIBUTES + 1);
    }
    profile_bytes_wrap(out, dictionary, 2);
    return slice_of(out->data, out->size);
}

static void what_grows_as_it_is_written_anew_stays_whole(void **state)
{
    const struct profile_limit_rules no_limits = {.depth_max = 0};
    struct profile_limit_figures figures;
    struct profile_bytes out = {0};
    const struct slice request = growing_request(&out);
    (void)state;
    assert_int_equal(opaque_profiles_count(request), 1);
    struct buffer *rest = opaque_profiles_remove(request, NULL);
    assert_non_null(rest);
    assert_true(rest->size > 2 * request.size + PROFILE_MERGED_BYTES_MAX);
    buffer_unref(rest);
    struct buffer *shaped = profile_limit(&no_limits, request, NULL, NULL, &figures);
    assert_non_null(shaped);
    assert_int_equal(figures.samples, 3);
    buffer_unref(shaped);
    profile_bytes_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_and_is_normalized_already),
        cmocka_unit_test(a_minimal_one_has_neither_labels_nor_parameters),
        cmocka_unit_test(a_large_part_of_labels_is_charged),
        cmocka_unit_test(merging_and_splitting_keep_them_whole),
        cmocka_unit_test(limits_on_sizes_keep_them_and_rules_on_names_drop_them),
        cmocka_unit_test(what_grows_as_it_is_written_anew_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
