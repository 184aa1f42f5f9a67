/* SPDX-License-Identifier: Apache-2.0 */
/* Opening pprof files: what their tables take is charged, however small their messages are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "tests/support/memory_watch.h"

enum { COPIES = 50000, SLACK_BYTES = 4096 };

/* Messages as field 2 of a file with one location, which has one type of value. */
static const struct {
    const char *name;
    const char *sample;
    size_t size;
} samples[] = {
    {"a value", "\x12\x01\x05", 3},
    {"a location and a value", "\x0a\x01\x01\x12\x01\x05", 6},
    {"five locations", "\x0a\x05\x01\x01\x01\x01\x01\x12\x01\x05", 10},
    {"a label", "\x12\x01\x05\x1a\x00", 5},
};

static struct profile_bytes file_of(struct slice sample)
{
    struct profile_bytes out = {0};
    profile_bytes_add(&out, slice_of("\x0a\x00\x22\x02\x08\x01\x32\x00", 8));
    for (unsigned i = 0; i < COPIES; i++)
        profile_bytes_field(&out, 2, sample);
    return out;
}

static void tables_are_charged_with_what_they_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct profile_bytes file = file_of(slice_of(samples[i].sample, samples[i].size));
        struct pprof_upload upload;
        struct budget budget;
        struct error error = {.text = ""};
        budget_init(&budget, 1024 * MIB);
        memory_watch_begin();
        assert_int_equal(pprof_upload_open(&upload, NULL, &budget, profile_bytes_slice(&file),
                                           UINT32_MAX, &error),
                         PPROF_UPLOAD_OPEN);
        assert_int_equal(upload.pprof.samples_count, COPIES);
        uint64_t charged = budget_used(&budget);
        if (memory_watch_peak() > charged + SLACK_BYTES || charged > memory_watch_peak())
            fail_msg("%s: %llu bytes held, %llu charged", samples[i].name,
                     (unsigned long long)memory_watch_peak(), (unsigned long long)charged);
        pprof_upload_close(&upload);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        profile_bytes_fini(&file);
    }
}

static void without_memory_it_may_fit_later(void **state)
{
    struct profile_bytes file = file_of(slice_of(samples[0].sample, samples[0].size));
    struct pprof_upload upload;
    struct budget budget;
    struct error error = {.text = ""};
    (void)state;
    for (uint64_t limit = 64 * KIB; limit <= 1 * MIB; limit *= 2) {
        budget_init(&budget, limit);
        assert_int_equal(pprof_upload_open(&upload, NULL, &budget, profile_bytes_slice(&file),
                                           UINT32_MAX, &error),
                         PPROF_UPLOAD_BUSY);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    profile_bytes_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_charged_with_what_they_take),
        cmocka_unit_test(without_memory_it_may_fit_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
