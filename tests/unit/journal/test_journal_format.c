/* SPDX-License-Identifier: Apache-2.0 */
/* Heads, segment headers, names, and the progress of exporters as bytes. */
#include "src/journal/journal_format.h"

#include "src/journal/journal_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct journal_place place = {.key = 0x1122334455667788, .segment = 7, .offset = 4096};

static void the_checksum_is_crc32c(void **state)
{
    (void)state;
    /* RFC 3720, appendix B.4, and the usual check value. */
    uint8_t zeros[32] = {0};
    assert_int_equal(journal_crc(0, slice_of_text("123456789")), 0xe3069283);
    assert_int_equal(journal_crc(0, slice_of(zeros, sizeof(zeros))), 0x8a9136aa);
    assert_int_equal(journal_crc(journal_crc(0, slice_of_text("1234")), slice_of_text("56789")),
                     0xe3069283);
}

static const struct journal_head values = {
    .type = JOURNAL_DATA,
    .signal = 3,
    .meta_bytes = 300,
    .bytes = 70000,
    .crc = 0xdeadbeef,
    .id = UINT64_C(1) << 40,
    .wall_ns = 1700000000,
    .items = 12,
};

static void assert_values(const struct journal_head *read)
{
    assert_int_equal(read->type, values.type);
    assert_int_equal(read->signal, values.signal);
    assert_int_equal(read->meta_bytes, values.meta_bytes);
    assert_int_equal(read->bytes, values.bytes);
    assert_int_equal(read->crc, values.crc);
    assert_int_equal(read->id, values.id);
    assert_int_equal(read->wall_ns, values.wall_ns);
    assert_int_equal(read->items, values.items);
}

static void a_head_verifies_in_its_place_only(void **state)
{
    (void)state;
    uint8_t head[JOURNAL_HEAD_BYTES];
    struct journal_head read;
    journal_head_write(head, &place, &values);
    assert_true(journal_head_read(head, &place, &read));
    assert_values(&read);
    assert_true(journal_head_is_marked(head, place.key));
    struct journal_place others[] = {place, place, place};
    others[0].segment++;
    others[1].offset += JOURNAL_ALIGN_BYTES;
    others[2].key ^= 1;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(journal_head_read(head, &others[i], &read));
}

/* The mark is for searching alone. */
/* Of an earlier number of the file: an old head. Else: a damaged one. */
static void an_old_head_is_told_from_a_damaged_one(void **state)
{
    (void)state;
    const uint64_t numbers[] = {2, 3, 1000, UINT64_C(0xffffffff), UINT64_C(0x700000000) + 9};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uint8_t head[JOURNAL_HEAD_BYTES];
        struct journal_place now = place;
        struct journal_place then = place;
        now.segment = numbers[i];
        then.segment = numbers[i] - 1;
        journal_head_write(head, &then, &values);
        assert_true(journal_head_is_older(head, &now));
        assert_false(journal_head_is_older(head, &then));
        then.segment = (numbers[i] & UINT64_C(0xffffffff00000000)) + 1;
        journal_head_write(head, &then, &values);
        assert_true(journal_head_is_older(head, &now));
        journal_head_write(head, &now, &values);
        assert_false(journal_head_is_older(head, &now));
    }
    /* Any damage of a head of this segment, which is not the first one. */
    struct journal_place now = place;
    now.segment = 1000;
    for (size_t bit = 0; bit < (size_t)8 * JOURNAL_HEAD_BYTES; bit++) {
        uint8_t head[JOURNAL_HEAD_BYTES];
        journal_head_write(head, &now, &values);
        head[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(journal_head_is_older(head, &now));
    }
}

static void any_flipped_bit_of_a_head_is_found(void **state)
{
    (void)state;
    uint8_t head[JOURNAL_HEAD_BYTES];
    struct journal_head read;
    journal_head_write(head, &place, &values);
    for (size_t bit = 0; bit < 8 * sizeof(head); bit++) {
        head[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(journal_head_read(head, &place, &read), bit < 32);
        assert_int_equal(journal_head_is_marked(head, place.key), bit >= 32);
        head[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void records_are_padded(void **state)
{
    (void)state;
    assert_int_equal(journal_record_bytes(0), JOURNAL_HEAD_BYTES);
    assert_int_equal(journal_record_bytes(1), JOURNAL_HEAD_BYTES + 8);
    assert_int_equal(journal_record_bytes(8), JOURNAL_HEAD_BYTES + 8);
    assert_int_equal(journal_record_bytes(9), JOURNAL_HEAD_BYTES + 16);
}

static void a_segment_header_verifies(void **state)
{
    (void)state;
    uint8_t block[JOURNAL_BLOCK_BYTES];
    struct journal_segment_header read;
    struct journal_segment_header header = {
        .version = JOURNAL_VERSION, .key = 5, .number = 6, .bytes = 1 << 20};
    journal_segment_header_write(block, &header);
    assert_true(journal_segment_header_read(block, &read));
    assert_int_equal(read.version, JOURNAL_VERSION);
    assert_int_equal(read.key, 5);
    assert_int_equal(read.number, 6);
    assert_int_equal(read.bytes, 1 << 20);
    for (size_t bit = 0; bit < (size_t)8 * 40; bit++) {
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(journal_segment_header_read(block, &read));
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    /* Of a later version nothing else is known. */
    header.version = JOURNAL_VERSION + 1;
    journal_segment_header_write(block, &header);
    assert_true(journal_segment_header_read(block, &read));
    assert_int_equal(read.version, JOURNAL_VERSION + 1);
    assert_int_equal(read.number, 0);
}

static void segments_are_named_by_number(void **state)
{
    (void)state;
    char name[JOURNAL_NAME_BYTES];
    uint64_t number;
    journal_segment_name(name, 0xfedcba9876543210);
    assert_string_equal(name, "fedcba9876543210.journal");
    assert_true(journal_segment_number(name, &number));
    assert_int_equal(number, 0xfedcba9876543210);
    static const char *const others[] = {"",
                                         "key",
                                         "next.new",
                                         "fedcba9876543210",
                                         "fedcba987654321.journal",
                                         "fedcba98765432100.journal",
                                         "FEDCBA9876543210.journal",
                                         "fedcba9876543210.journal~"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(journal_segment_number(others[i], &number));
}

static void progress_is_a_low_mark_and_a_window(void **state)
{
    (void)state;
    struct journal_progress progress;
    journal_progress_init(&progress);
    assert_int_equal(journal_progress_add(&progress, "a", 100), 0);
    assert_int_equal(journal_progress_add(&progress, "b", 100), 1);
    assert_int_equal(journal_progress_add(&progress, "a", 500), 0);
    journal_progress_done(&progress, 0, 102, 104);
    assert_true(journal_progress_is_done(&progress, 0, 99));
    assert_false(journal_progress_is_done(&progress, 0, 100));
    assert_true(journal_progress_is_done(&progress, 0, 103));
    assert_false(journal_progress_is_done(&progress, 1, 103));
    journal_progress_done(&progress, 0, 100, 102);
    assert_int_equal(progress.exporters[0].low, 104);
    assert_int_equal(journal_progress_low(&progress), 100);
    assert_true(journal_progress_has_room(&progress, 0, 104 + JOURNAL_WINDOW_IDS));
    assert_false(journal_progress_has_room(&progress, 0, 105 + JOURNAL_WINDOW_IDS));
    /* The whole window, but for the first. */
    journal_progress_done(&progress, 0, 105, 104 + JOURNAL_WINDOW_IDS);
    assert_int_equal(progress.exporters[0].low, 104);
    journal_progress_done(&progress, 0, 104, 105);
    assert_int_equal(progress.exporters[0].low, 104 + JOURNAL_WINDOW_IDS);
    assert_false(journal_progress_is_done(&progress, 0, 104 + JOURNAL_WINDOW_IDS));
    /* Far beyond it, when nothing is left before. */
    journal_progress_done(&progress, 0, 104, 1000000);
    assert_int_equal(progress.exporters[0].low, 1000000);
    assert_false(journal_progress_is_done(&progress, 0, 1000001));
    journal_progress_fini(&progress);
}

static void progress_survives_as_bytes(void **state)
{
    (void)state;
    struct journal_progress progress;
    struct journal_progress read;
    journal_progress_init(&progress);
    journal_progress_init(&read);
    journal_progress_add(&progress, "traces/otlp_http", 70000);
    journal_progress_add(&progress, "traces/otlp_http/b", 3);
    journal_progress_done(&progress, 0, 70001, 70002);
    assert_int_equal(journal_progress_end(&progress), 70002);
    journal_progress_done(&progress, 0, 70000 + JOURNAL_WINDOW_IDS - 1, 70000 + JOURNAL_WINDOW_IDS);
    journal_progress_done(&progress, 1, 5, 8);
    size_t size = journal_progress_bytes(&progress);
    assert_true(size <= journal_progress_bytes_max(&progress));
    uint8_t *bytes = malloc(size);
    journal_progress_write(&progress, bytes);
    assert_true(journal_progress_read(&read, slice_of(bytes, size)));
    assert_int_equal(read.count, 2);
    assert_string_equal(read.exporters[1].name, "traces/otlp_http/b");
    for (uint64_t id = 0; id < 200000; id++)
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(journal_progress_is_done(&read, i, id),
                             journal_progress_is_done(&progress, i, id));
    assert_int_equal(journal_progress_end(&read), 70000 + JOURNAL_WINDOW_IDS);
    /* Anything shorter is refused and changes nothing. */
    for (size_t cut = 0; cut < size; cut += cut < 100 ? 1 : 997)
        assert_false(journal_progress_read(&read, slice_of(bytes, cut)));
    assert_int_equal(read.count, 2);
    free(bytes);
    journal_progress_fini(&progress);
    journal_progress_fini(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_crc32c),
        cmocka_unit_test(a_head_verifies_in_its_place_only),
        cmocka_unit_test(an_old_head_is_told_from_a_damaged_one),
        cmocka_unit_test(any_flipped_bit_of_a_head_is_found),
        cmocka_unit_test(records_are_padded),
        cmocka_unit_test(a_segment_header_verifies),
        cmocka_unit_test(segments_are_named_by_number),
        cmocka_unit_test(progress_is_a_low_mark_and_a_window),
        cmocka_unit_test(progress_survives_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
