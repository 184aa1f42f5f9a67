/* SPDX-License-Identifier: Apache-2.0 */
/* Former scopes become field 2, or go where there is one, as in the Go collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/otlp/check.h"
#include "src/otlp/former_scopes.h"
#include "src/otlp/wire.h"

#define BYTES(text)                                                                                \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

/* Each scope message holds items 12 00 (field 2, empty); a schema URL is 1a 01 and a letter. */
static const struct row {
    struct slice request;
    struct slice expected; /* no data: there is nothing to do */
    uint64_t items;
} rows[] = {
    {BYTES(""), {NULL, 0}, 0},
    {BYTES("\x0a\x04\x12\x02\x12\x00"), {NULL, 0}, 1},
    /* Alone; with all that may stand around it, in the same order. */
    {BYTES("\x0a\x05\xc2\x3e\x02\x12\x00"), BYTES("\x0a\x04\x12\x02\x12\x00"), 1},
    {BYTES("\x0a\x11\x0a\x02\x10\x05\xc2\x3e\x02\x12\x00\x1a\x01s\xc2\x3e\x02\x12\x00"),
     BYTES("\x0a\x0f\x0a\x02\x10\x05\x12\x02\x12\x00\x1a\x01s\x12\x02\x12\x00"), 2},
    /* One scope of today, even an empty one, is enough, wherever it stands. */
    {BYTES("\x0a\x09\x12\x02\x12\x00\xc2\x3e\x02\x12\x00"), BYTES("\x0a\x04\x12\x02\x12\x00"), 1},
    {BYTES("\x0a\x0a\xc2\x3e\x02\x12\x00\x12\x00\x1a\x01s"), BYTES("\x0a\x05\x12\x00\x1a\x01s"), 0},
    /* Resources have nothing to do with one another; unknown fields stay. */
    {BYTES("\x0a\x05\xc2\x3e\x02\x12\x00\x0a\x04\x12\x02\x12\x00\x78\x07\x0a\x08\xfa\x3e\x00\xc2"
           "\x3e\x02\x12\x00"),
     BYTES("\x0a\x04\x12\x02\x12\x00\x0a\x04\x12\x02\x12\x00\x78\x07\x0a\x07\xfa\x3e\x00\x12\x02"
           "\x12\x00"),
     3},
    /* Numbers and lengths in more bytes than they need. */
    {BYTES("\x8a\x00\x87\x00\xc2\xbe\x80\x00\x82\x00\x00"), {NULL, 0}, UINT64_MAX},
    {BYTES("\x8a\x00\x88\x00\xc2\xbe\x00\x82\x80\x00\x12\x00"), BYTES("\x0a\x04\x12\x02\x12\x00"),
     1},
};

static void scopes_are_moved_unless_there_are_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i / 3];
        enum signal_kind signal = (enum signal_kind)(i % 3);
        struct otlp_figures figures;
        const char *reason;
        if (signal == METRICS) /* items are a level deeper */
            continue;
        bool is_fine = otlp_check(signal, row->request, &figures, &reason);
        assert_int_equal(is_fine, row->items != UINT64_MAX);
        if (!is_fine)
            continue;
        assert_int_equal(figures.has_former_scopes, row->expected.data != NULL);
        struct buffer *moved = former_scopes_move(signal, row->request, NULL);
        struct slice expected = row->expected.data != NULL ? row->expected : row->request;
        assert_true(slice_equal(buffer_slice(moved), expected));
        assert_true(otlp_check(signal, buffer_slice(moved), &figures, &reason));
        assert_false(figures.has_former_scopes);
        assert_int_equal(figures.items, row->items);
        buffer_unref(moved);
    }
}

/* A scope of metrics with a gauge of one point. */
static void scopes_of_metrics_are_moved(void **state)
{
    static const uint8_t request[] = {0x0a, 0x0b, 0xc2, 0x3e, 0x08, 0x12, 0x06,
                                      0x2a, 0x04, 0x0a, 0x02, 0x40, 0x01};
    (void)state;
    struct otlp_figures figures;
    const char *reason;
    assert_true(otlp_check(METRICS, slice_of(request, sizeof(request)), &figures, &reason));
    assert_true(figures.has_former_scopes);
    struct buffer *moved = former_scopes_move(METRICS, slice_of(request, sizeof(request)), NULL);
    assert_int_equal(moved->size, sizeof(request) - 1);
    assert_int_equal(moved->data[2], 0x12);
    assert_true(otlp_check(METRICS, buffer_slice(moved), &figures, &reason));
    assert_false(figures.has_former_scopes);
    assert_int_equal(figures.items, 1);
    buffer_unref(moved);
}

static void the_copy_is_charged(void **state)
{
    const struct row *row = &rows[2];
    struct budget budget;
    (void)state;
    budget_init(&budget, sizeof(struct buffer) + row->request.size);
    struct buffer *moved = former_scopes_move(TRACES, row->request, &budget);
    assert_non_null(moved);
    assert_null(former_scopes_move(TRACES, row->request, &budget));
    buffer_unref(moved);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_are_moved_unless_there_are_others),
        cmocka_unit_test(scopes_of_metrics_are_moved),
        cmocka_unit_test(the_copy_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
