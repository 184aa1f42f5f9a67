/* SPDX-License-Identifier: Apache-2.0 */
/* jemalloc's heap profiles become pprof that keeps stacks, libraries and unbiased sums. */
#include "src/profiles/pprof/heap_profile.h"

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/profiles/pprof/pprof_reader.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char dump[] = "heap_v2/524288\n"
                           "  t*: 3: 3000100 [0: 0]\n"
                           "  t0: 3: 3000100 [0: 0]\n"
                           "@ 0x401010 0x401020 0x7f0000002000\n"
                           "  t*: 2: 3000000 [0: 0]\n"
                           "  t0: 2: 3000000 [0: 0]\n"
                           "@ 0x401010 0x401030\n"
                           "  t*: 1: 1024 [0: 0]\n"
                           "@ 0x401040\n"
                           "  t*: 0: 0 [0: 0]\n"
                           "\nMAPPED_LIBRARIES:\n"
                           "400000-401000 r--p 00000000 fe:00 7  /bin/daemon\n"
                           "401000-402000 r-xp 00001000 fe:00 7  /bin/daemon\n"
                           "7f0000001000-7f0000003000 r-xp 00026000 fe:00 9  /lib/libc.so.6\n"
                           "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0  [vdso]\n";

struct reading {
    struct arena arena;
    struct buffer *bytes;
    struct pprof pprof;
};

static void read_dump(struct reading *reading, const char *text)
{
    struct error error;
    arena_init(&reading->arena, MIB);
    reading->bytes = heap_profile_to_pprof(slice_of_text(text), 42, &error);
    assert_non_null(reading->bytes);
    assert_true(pprof_read(&reading->arena, buffer_slice(reading->bytes), &reading->pprof, &error));
}

static void clear(struct reading *reading)
{
    arena_clear(&reading->arena);
    buffer_unref(reading->bytes);
}

static uint64_t address_of(const struct pprof *pprof, const struct pprof_sample *sample, size_t i)
{
    return pprof->locations[sample->locations[i] - 1].address;
}

static void stacks_lie_in_their_libraries(void **state)
{
    struct reading reading;
    (void)state;
    read_dump(&reading, dump);
    const struct pprof *pprof = &reading.pprof;
    assert_int_equal(pprof->samples_count, 2);
    assert_int_equal(pprof->locations_count, 5);
    assert_int_equal(pprof->mappings_count, 2);
    const struct pprof_sample *sample = &pprof->samples[0];
    assert_int_equal(sample->locations_count, 3);
    assert_int_equal(address_of(pprof, sample, 0), 0x40100f);
    assert_int_equal(address_of(pprof, sample, 2), 0x7f0000001fff);
    const struct pprof_location *last = &pprof->locations[sample->locations[2] - 1];
    const struct pprof_mapping *library = &pprof->mappings[last->mapping - 1];
    assert_true(slice_equal_text(pprof->strings[library->filename], "/lib/libc.so.6"));
    assert_int_equal(library->file_offset, 0x26000);
    assert_int_equal(pprof->time_ns, 42);
    assert_int_equal(pprof->period, 524288);
    clear(&reading);
}

static void small_allocations_are_scaled_up(void **state)
{
    struct reading reading;
    (void)state;
    read_dump(&reading, dump);
    const struct pprof_sample *samples = reading.pprof.samples;
    /* 1.5 MB at a time: seen with probability 1 - exp(-2.86) = 0.943. */
    assert_in_range(samples[0].values[1], 3170000, 3190000);
    /* 1 KiB: seen with probability 1/512, so one stands for 512. */
    assert_in_range(samples[1].values[0], 510, 514);
    assert_in_range(samples[1].values[1], 523000, 526000);
    clear(&reading);
}

static void other_inputs_are_refused(void **state)
{
    static const char *const texts[] = {"", "heap_v2/", "heap_v2/0\n",
                                        "heap profile: 1: 1 [1: 1] @ heap/1\n",
                                        "heap_v2/99999999999999999999999\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct error error;
        assert_null(heap_profile_to_pprof(slice_of_text(texts[i]), 1, &error));
        assert_non_null(strstr(error.text, "heap_v2/"));
    }
}

static void torn_lines_are_passed_over(void **state)
{
    struct reading reading;
    (void)state;
    read_dump(&reading, "heap_v2/1\n@ 0x0\n  t*: 1: 1\n@ 0xzz 0x10\n  t*: 1: 1\n@ 0x10 junk\n"
                        "  t*: 1\n  t*: 1: 8 [0: 0]");
    assert_int_equal(reading.pprof.samples_count, 1);
    assert_int_equal(reading.pprof.samples[0].locations_count, 1);
    clear(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_lie_in_their_libraries),
        cmocka_unit_test(small_allocations_are_scaled_up),
        cmocka_unit_test(other_inputs_are_refused),
        cmocka_unit_test(torn_lines_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
