/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of profiles: walking, checking every index, merging equal requests. Arguments:
 * samples per request, functions. Prints the best of several runs, in ns of processor time per byte
 * that came in, and the most memory that merging took as a multiple of those bytes. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/arena.h"
#include "src/budget.h"
#include "src/buffer.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/profile_bytes.h"
#include "src/otlp/profile_check.h"
#include "src/otlp/profile_layout.h"
#include "src/otlp/profile_merge.h"

enum { SAMPLES = 5000, FUNCTIONS = 3000, ATTRIBUTES = 60, FILES = 50, REQUESTS = 10, RUNS = 15 };
enum { DEPTH_MIN = 10, DEPTHS = 30, ROOM = 256 };

static uint64_t state = 1;

static uint64_t below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

static void put_number(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, ROOM);
    out->size += (size_t)(profile_put_number(at, number, value) - at);
}

static void put_packed(struct profile_bytes *out, uint32_t number, uint64_t count, uint64_t bound)
{
    size_t begin = out->size;
    for (; count > 0; count--) {
        uint8_t *at = profile_bytes_room(out, ROOM);
        out->size += (size_t)(profile_put_varint(at, 1 + below(bound)) - at);
    }
    profile_bytes_wrap(out, begin, number);
}

static void put_functions(struct profile_bytes *out, uint64_t functions)
{
    char text[ROOM];
    for (uint64_t i = 1; i <= functions; i++) {
        size_t begin = out->size;
        snprintf(text, sizeof(text), "com.example.service.module%u.SomeClass.method_%u",
                 (unsigned)(i % 37), (unsigned)i);
        profile_bytes_add(out, slice_of_text(text));
        profile_bytes_wrap(out, begin, 5);
        begin = out->size;
        put_number(out, 1, i);
        put_number(out, 3, 1 + i % FILES);
        profile_bytes_wrap(out, begin, 3);
    }
}

static void put_locations(struct profile_bytes *out, uint64_t locations, uint64_t functions)
{
    for (uint64_t i = 1; i <= locations; i++) {
        size_t begin = out->size;
        put_number(out, 2, 0x400000 + i * 64);
        size_t line = out->size;
        put_number(out, 1, 1 + i % functions);
        put_number(out, 2, i % 900);
        profile_bytes_wrap(out, line, 3);
        profile_bytes_wrap(out, begin, 2);
    }
}

static void put_attributes(struct profile_bytes *out)
{
    for (uint64_t i = 1; i <= ATTRIBUTES; i++) {
        size_t begin = out->size;
        put_number(out, 1, 1 + i % FILES);
        size_t value = out->size;
        put_number(out, 3, i);
        profile_bytes_wrap(out, value, 2);
        profile_bytes_wrap(out, begin, 6);
    }
}

static void put_dictionary(struct profile_bytes *out, uint64_t stacks, uint64_t functions)
{
    size_t begin = out->size;
    for (uint32_t table = 1; table <= PROFILE_TABLES; table++)
        profile_bytes_wrap(out, out->size, table);
    put_functions(out, functions);
    put_locations(out, 2 * functions, functions);
    put_attributes(out);
    for (uint64_t i = 0; i < stacks; i++) {
        size_t stack = out->size;
        put_packed(out, 1, DEPTH_MIN + below(DEPTHS), 2 * functions);
        profile_bytes_wrap(out, stack, 7);
    }
    profile_bytes_wrap(out, begin, 2);
}

static void put_sample(struct profile_bytes *out, uint64_t stacks)
{
    size_t begin = out->size;
    put_number(out, 1, 1 + below(stacks));
    put_packed(out, 2, 2, ATTRIBUTES);
    put_packed(out, 4, 1, 100);
    size_t times = out->size;
    profile_bytes_add(out, slice_of("\1\2\3\4\5\6\7\7", 8));
    profile_bytes_wrap(out, times, 5);
    profile_bytes_wrap(out, begin, 2);
}

static struct profile_bytes make_request(uint64_t samples, uint64_t functions)
{
    struct profile_bytes out = {0};
    uint64_t stacks = samples * 3 / 5 + 1;
    size_t type = out.size;
    put_number(&out, 1, 1);
    profile_bytes_wrap(&out, type, 1);
    profile_bytes_wrap(&out, out.size, 5);
    for (uint64_t i = 0; i < samples; i++)
        put_sample(&out, stacks);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    put_dictionary(&out, stacks, functions);
    return out;
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_walk(struct slice request)
{
    struct otlp_figures figures;
    const char *reason;
    double begin = cpu_ns();
    bool is_fine = profile_layout_of(request) == LAYOUT_1_10 &&
                   otlp_check(PROFILES, request, &figures, &reason);
    assert(is_fine);
    return cpu_ns() - begin;
}

static double time_check(struct slice request)
{
    struct profile_findings findings;
    struct arena arena;
    double begin = cpu_ns();
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    enum profile_checked checked = profile_check(request, &arena, &findings);
    assert(checked == PROFILES_CHECKED && findings.broken_profiles == 0);
    arena_clear(&arena);
    return cpu_ns() - begin;
}

/* Of one request of several. */
static double time_merge(struct slice request, uint64_t *peak_bytes)
{
    struct profile_merge merge;
    struct profile_source source;
    struct budget budget;
    double begin = cpu_ns();
    budget_init(&budget, UINT64_MAX / 2);
    profile_merge_init(&merge, &budget);
    for (unsigned i = 0; i < REQUESTS; i++) {
        bool is_open = profile_source_open(&source, request, &merge);
        assert(is_open);
        profile_merge_take(&merge, &source, (struct otlp_limit){0});
        profile_source_close(&source);
    }
    struct buffer *buffer = profile_merge_finish(&merge, NULL);
    buffer_unref(buffer);
    profile_merge_fini(&merge);
    double ns = (cpu_ns() - begin) / REQUESTS;
    *peak_bytes = budget.high_water;
    budget_fini(&budget);
    return ns;
}

int main(int count, char **arguments)
{
    uint64_t samples = count > 1 ? strtoull(arguments[1], NULL, 10) : SAMPLES;
    uint64_t functions = count > 2 ? strtoull(arguments[2], NULL, 10) : FUNCTIONS;
    struct profile_bytes made = make_request(samples, functions);
    struct slice request = slice_of(made.data, made.size);
    double best[3] = {1e18, 1e18, 1e18};
    uint64_t peak_bytes = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        double ns[3] = {time_walk(request), time_check(request), time_merge(request, &peak_bytes)};
        for (unsigned i = 0; i < 3; i++)
            best[i] = ns[i] < best[i] ? ns[i] : best[i];
    }
    double bytes = (double)request.size;
    printf("profiles: %zu bytes, %.0f B/sample; ns/B: layout and walk %.2f, indices %.2f, merge "
           "%.2f; memory %.2f x\n",
           request.size, bytes / (double)samples, best[0] / bytes, best[1] / bytes, best[2] / bytes,
           (double)peak_bytes / bytes / REQUESTS);
    profile_bytes_fini(&made);
    return 0;
}
