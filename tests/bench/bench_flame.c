/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of call trees: from the bytes of a profile of a million samples to the JSON of
 * its tree. Each row is one request; the samples take its stacks at random. Prints the best of
 * several runs in ms of processor time, the size of the JSON, and the memory that was charged at
 * the most. usage: bench_flame [ROW], counted from 1 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/explore/flame_tree.h"
#include "src/otlp/json/json_output.h"
#include "src/profiles/otlp/profile_bytes.h"

enum { RUNS = 7, WIDTH = 1600, LINKS = 1000, ROOM = 256 };

struct row {
    const char *name;
    uint64_t samples;
    uint64_t stacks;
    uint64_t functions;
    uint64_t depth;
    uint64_t shared; /* frames next to the root that all stacks have */
    bool has_links;
    bool is_tree; /* stacks branch from each other anywhere, as those of a program do */
};

static uint64_t state = 1;

static uint64_t below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, ROOM);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

/* Locations of a way down a call tree, in which each function calls one far more often than some
 * others. */
static void put_way(struct profile_bytes *out, const struct row *row)
{
    enum { DEPTH_MAX = 256, CHOICES = 16 };
    static const uint8_t callees[CHOICES] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3};
    uint64_t way[DEPTH_MAX];
    uint64_t depth = row->depth / 2 + below(row->depth);
    uint64_t function = 0;
    assert(depth <= DEPTH_MAX);
    for (uint64_t i = 0; i < depth; i++) {
        function = (31 * function + 7919 * callees[below(CHOICES)] + i + 1) % row->functions;
        way[i] = 1 + function;
    }
    while (depth > 0)
        put_varint(out, way[--depth]);
}

static void put_tables(struct profile_bytes *out, const struct row *row)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds"};
    enum { STRINGS = 3 };
    char text[ROOM];
    for (uint64_t i = 0; i < STRINGS + row->functions; i++) {
        snprintf(text, sizeof(text), "com.example.module%u.Class.method_%u", (unsigned)(i % 37),
                 (unsigned)i);
        profile_bytes_field(out, 5, slice_of_text(i < STRINGS ? strings[i] : text));
    }
    for (uint64_t i = 0; i <= row->functions; i++) {
        size_t begin = out->size;
        profile_bytes_number(out, 1, i > 0 ? STRINGS + i - 1 : 0);
        profile_bytes_wrap(out, begin, 3);
        begin = out->size;
        profile_bytes_number(out, 2, i * 64);
        size_t line = out->size;
        profile_bytes_number(out, 1, i);
        profile_bytes_wrap(out, line, 3);
        profile_bytes_wrap(out, begin, 2);
    }
    for (uint64_t i = 0; i <= LINKS; i++) {
        const uint64_t ids[] = {7, 7, i};
        size_t begin = out->size;
        profile_bytes_field(out, 1, slice_of(ids, 16));
        profile_bytes_field(out, 2, slice_of(&ids[2], 8));
        profile_bytes_wrap(out, begin, 4);
    }
    for (uint64_t i = 0; i < row->stacks; i++) {
        size_t begin = out->size;
        if (row->is_tree)
            put_way(out, row);
        for (uint64_t depth = row->is_tree ? 0 : row->depth; depth > 0; depth--)
            put_varint(out, depth <= row->shared ? 1 + depth % row->functions
                                                 : 1 + below(row->functions));
        profile_bytes_wrap(out, begin, 1);
        profile_bytes_wrap(out, begin, 7);
    }
}

static struct slice request_of(const struct row *row)
{
    struct profile_bytes out = {.data = NULL};
    size_t type = out.size;
    profile_bytes_number(&out, 1, 1);
    profile_bytes_number(&out, 2, 2);
    profile_bytes_wrap(&out, type, 1);
    for (uint64_t i = 0; i < row->samples; i++) {
        size_t begin = out.size;
        profile_bytes_number(&out, 1, below(row->stacks));
        profile_bytes_number(&out, 3, row->has_links ? 1 + below(LINKS) : 0);
        size_t values = out.size;
        put_varint(&out, 10000000);
        profile_bytes_wrap(&out, values, 4);
        profile_bytes_wrap(&out, begin, 2);
    }
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    size_t dictionary = out.size;
    put_tables(&out, row);
    profile_bytes_wrap(&out, dictionary, 2);
    return slice_of(out.data, out.size);
}

static bool picks_half(void *arg, const uint8_t *trace_id, const uint8_t *span_id)
{
    (void)arg;
    return trace_id[0] == 7 && span_id[0] % 2 == 0;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* What several runs over one request found. */
struct figures {
    double read_ms; /* the best */
    double draw_ms;
    size_t json_bytes;
    uint64_t high_water;
};

/* Not in main, which the compiler takes for code that runs once. */
static __attribute__((noinline)) struct figures measure(struct slice request, bool has_links)
{
    const struct flame_filter filter = {
        .picks = has_links ? picks_half : NULL,
        .end_unix_ns = UINT64_MAX,
    };
    const struct flame_drawing drawing = {.width = WIDTH, .bytes_max = FLAME_RESPONSE_BYTES_MAX};
    struct figures best = {.read_ms = 1e9, .draw_ms = 1e9};
    for (unsigned run = 0; run < RUNS; run++) {
        struct budget budget;
        struct json_output output;
        budget_init(&budget, UINT64_MAX);
        const struct flame_settings settings = {
            .budget = &budget, .bytes_max = (uint64_t)1 << 30, .sides = 1};
        double begin = now_ms();
        struct flame_tree *tree = flame_tree_create(&settings);
        enum flame_result result = flame_tree_add(tree, 0, request, &filter);
        assert(result == FLAME_ADDED);
        double added = now_ms();
        json_output_init(&output, 4096, SIZE_MAX, NULL);
        result = flame_tree_write(tree, &drawing, &output);
        assert(result == FLAME_ADDED);
        double written = now_ms();
        best.read_ms = added - begin < best.read_ms ? added - begin : best.read_ms;
        best.draw_ms = written - added < best.draw_ms ? written - added : best.draw_ms;
        best.json_bytes = output.buffer->size;
        best.high_water = atomic_load(&budget.high_water);
        buffer_unref(json_output_take(&output));
        flame_tree_destroy(tree);
        budget_fini(&budget);
    }
    return best;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {"1 M samples of 10 000 stacks", 1000000, 10000, 5000, 40, 20, false, false},
        {"the same, those of half the spans", 1000000, 10000, 5000, 40, 20, true, false},
        {"1 M samples of 100 000 stacks", 1000000, 100000, 5000, 40, 20, false, false},
        {"the same, of a call tree", 1000000, 100000, 5000, 40, 0, false, true},
        {"1 M samples of 20 stacks, 5 000 deep", 1000000, 20, 5000, 5000, 2500, false, false},
        {"1 M samples of one stack", 1000000, 1, 50, 40, 40, false, false},
    };
    size_t only = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (only != 0 && only != i + 1)
            continue;
        struct slice request = request_of(&rows[i]);
        struct figures found = measure(request, rows[i].has_links);
        printf("%-36s %5.1f MB in: read %5.1f ms, draw %5.1f ms, %3zu KB out, %5.1f MB charged\n",
               rows[i].name, (double)request.size / 1e6, found.read_ms, found.draw_ms,
               found.json_bytes / 1000, (double)found.high_water / 1e6);
        struct profile_bytes done = {.data = (uint8_t *)(uintptr_t)request.data};
        profile_bytes_fini(&done);
    }
    return 0;
}
