/* SPDX-License-Identifier: Apache-2.0 */
/* The counter, and what is done with its numbers. This file is not instrumented itself. One thread.
 */
#include "tests/complexity/work.h"

#include <assert.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { BYTES_PER_UNIT = 8, NOISE = 20000 };

static bool is_counting;
static uint64_t units;
static uint64_t produced;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    units++;
}

static void count_bytes(size_t bytes)
{
    units += 1 + bytes / BYTES_PER_UNIT;
}

/* The linker leads our code's calls here. */
#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAP(void *, memcpy, void *to, const void *from, size_t size)
{
    count_bytes(size);
    return __real_memcpy(to, from, size);
}

WRAP(void *, memmove, void *to, const void *from, size_t size)
{
    count_bytes(size);
    return __real_memmove(to, from, size);
}

WRAP(void *, memset, void *to, int byte, size_t size)
{
    count_bytes(size);
    return __real_memset(to, byte, size);
}

WRAP(int, memcmp, const void *a, const void *b, size_t size)
{
    count_bytes(size);
    return __real_memcmp(a, b, size);
}

WRAP(void *, memchr, const void *text, int byte, size_t size)
{
    void *found = __real_memchr(text, byte, size);
    count_bytes(found != NULL ? (size_t)((const char *)found - (const char *)text) : size);
    return found;
}

WRAP(void *, memmem, const void *text, size_t size, const void *wanted, size_t wanted_size)
{
    void *found = __real_memmem(text, size, wanted, wanted_size);
    count_bytes(found != NULL ? (size_t)((const char *)found - (const char *)text) : size);
    return found;
}

WRAP(size_t, strlen, const char *text)
{
    size_t size = __real_strlen(text);
    count_bytes(size);
    return size;
}

WRAP(int, strcmp, const char *a, const char *b)
{
    count_bytes(strnlen(a, strlen(b)));
    return __real_strcmp(a, b);
}

WRAP(char *, strchr, const char *text, int byte)
{
    char *found = __real_strchr(text, byte);
    count_bytes(found != NULL ? (size_t)(found - text) : strlen(text));
    return found;
}

/* Growing by a constant each time is work, even where the allocator finds room in place. */
WRAP(void *, realloc, void *old, size_t size)
{
    count_bytes(size);
    return __real_realloc(old, size);
}

static uint64_t counted;

void work_begin(void)
{
    assert(!is_counting);
    is_counting = true;
    counted = units;
}

void work_end(void)
{
    assert(is_counting);
    is_counting = false;
    counted = units - counted;
}

void work_produced(uint64_t bytes)
{
    produced += bytes;
}

struct measure {
    uint64_t units;
    uint64_t input;
    uint64_t output;
};

static struct measure measure(const struct work_stage *stage, const struct work_shape *shape,
                              size_t n)
{
    struct slice input = shape->make(n);
    produced = 0;
    counted = 0;
    stage->run(input);
    struct measure measured = {.units = counted, .input = input.size, .output = produced};
    mem_free((void *)(uintptr_t)input.data);
    return measured;
}

static double ratio(uint64_t twice, uint64_t once)
{
    return once > 0 ? (double)twice / (double)once : 1;
}

/* True: it grows too fast, or is too much. */
static bool check_pair(const struct work_stage *stage, const struct work_shape *shape,
                       bool is_verbose)
{
    size_t n = stage->n > 0 ? stage->n : WORK_N;
    struct measure least = measure(stage, shape, 1);
    struct measure once = measure(stage, shape, n);
    struct measure twice = measure(stage, shape, 2 * n);
    uint64_t once_units = once.units > least.units ? once.units - least.units : 0;
    uint64_t twice_units = twice.units > least.units ? twice.units - least.units : 0;
    double growth = ratio(twice_units, once_units);
    double most = WORK_GROWTH_MAX;
    if (ratio(twice.output, once.output) > 2)
        most *= ratio(twice.output, once.output) / 2;
    if (ratio(twice.input, once.input) > 2.1) {
        printf("%s, %s: the input grows from %" PRIu64 " to %" PRIu64 " bytes\n", stage->name,
               shape->name, once.input, twice.input);
        return true;
    }
    bool is_too_fast = growth > most && twice_units > NOISE;
    double per_byte = (double)twice_units / (double)(twice.input + twice.output);
    bool is_too_much = per_byte > stage->per_byte_max;
    if (is_too_fast || is_too_much || is_verbose)
        printf("%-28s %-40s %10" PRIu64 " %10" PRIu64 " growth %5.2f, at most %.2f; %" PRIu64
               " bytes, %.1f per byte, at most %.1f%s%s\n",
               stage->name, shape->name, once_units, twice_units, growth, most, once.input,
               per_byte, stage->per_byte_max, is_too_fast ? "  TOO FAST" : "",
               is_too_much ? "  TOO MUCH" : "");
    return is_too_fast || is_too_much;
}

int work_check(const struct work_stage *stages, size_t stages_count,
               const struct work_shape *shapes, size_t shapes_count, int argc, char **argv)
{
    int failed = 0;
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc > 2 ? argv[2] : NULL;
    for (size_t i = 0; i < stages_count; i++)
        for (size_t k = 0; k < shapes_count; k++)
            if (only == NULL || strstr(stages[i].name, only) != NULL)
                failed += check_pair(&stages[i], &shapes[k], is_verbose);
    printf("%zu stages, %zu shapes, %d pairs are too much\n", stages_count, shapes_count, failed);
    return failed;
}
