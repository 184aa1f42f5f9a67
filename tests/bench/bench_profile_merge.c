/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of profiles: what profile_normalize costs, which checks every byte and every
 * index, and what merging costs. Each row is a batch of ten requests over the same functions, in a
 * process of its own: as one program sends them, whose stacks are the same each time, and with
 * stacks of their own. Prints the best of several runs in ns of processor time per byte that came
 * in, and the memory that the process took for the batch, requests included, in multiples of its
 * bytes.
 * usage: bench_profile_merge [--json | --write DIR | SAMPLES FUNCTIONS same|own] */
#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_normalize.h"

enum { ATTRIBUTES = 60, FILES = 50, REQUESTS = 10, RUNS = 25, ROOM = 256 };
enum { DEPTH_MIN = 20, DEPTHS = 30, SAMPLES_PER_LINK = 4 };
/* About. */
enum { SAMPLE_BYTES = 125, STACK_BYTES = 70, FUNCTION_BYTES = 60, OTHER_BYTES = 38 };

struct row {
    uint64_t samples;
    uint64_t functions;
    bool has_own_stacks; /* each request of the batch; else all have the same */
};

static uint64_t state;

static uint64_t below(uint64_t bound)
{
    assert(bound > 0);
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, ROOM);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static void put_empty(struct profile_bytes *out, uint32_t table)
{
    profile_bytes_wrap(out, out->size, table);
}

static void put_strings(struct profile_bytes *out, uint64_t functions)
{
    char text[ROOM];
    put_empty(out, 5);
    for (uint64_t i = 1; i <= functions; i++) {
        size_t begin = out->size;
        snprintf(text, sizeof(text), "com.example.module%u.Class.method_%u", (unsigned)(i % 37),
                 (unsigned)i);
        profile_bytes_add(out, slice_of_text(text));
        profile_bytes_wrap(out, begin, 5);
    }
}

static void put_functions(struct profile_bytes *out, uint64_t functions)
{
    put_empty(out, 3);
    for (uint64_t i = 1; i <= functions; i++) {
        size_t begin = out->size;
        profile_bytes_number(out, 1, i);
        profile_bytes_number(out, 3, 1 + i % FILES);
        profile_bytes_wrap(out, begin, 3);
    }
}

static void put_locations(struct profile_bytes *out, uint64_t functions)
{
    put_empty(out, 2);
    for (uint64_t i = 1; i <= functions; i++) {
        size_t begin = out->size;
        profile_bytes_number(out, 2, 0x400000 + i * 64);
        size_t line = out->size;
        profile_bytes_number(out, 1, i);
        profile_bytes_number(out, 2, 1 + i % 900);
        profile_bytes_wrap(out, line, 3);
        profile_bytes_wrap(out, begin, 2);
    }
}

static void put_attributes(struct profile_bytes *out)
{
    put_empty(out, 6);
    for (uint64_t i = 1; i <= ATTRIBUTES; i++) {
        size_t begin = out->size;
        profile_bytes_number(out, 1, 1 + i % FILES);
        size_t value = out->size;
        profile_bytes_number(out, 3, i);
        profile_bytes_wrap(out, value, 2);
        profile_bytes_wrap(out, begin, 6);
    }
}

/* Each location is used once before any is used again. */
static void put_stacks(struct profile_bytes *out, uint64_t stacks, uint64_t functions)
{
    enum { STRIDE = 7919 };
    uint64_t frames = 0;
    put_empty(out, 7);
    for (uint64_t i = 0; i < stacks; i++) {
        size_t begin = out->size;
        for (uint64_t depth = DEPTH_MIN + below(DEPTHS); depth > 0; depth--, frames++)
            put_varint(out,
                       1 + (frames < functions ? frames * STRIDE : below(functions)) % functions);
        profile_bytes_wrap(out, begin, 1);
        profile_bytes_wrap(out, begin, 7);
    }
    assert(frames >= functions);
}

static void put_link(struct profile_bytes *out, uint64_t number)
{
    uint8_t ids[28] = {1 << 3 | WIRE_BYTES, 16, [18] = 2 << 3 | WIRE_BYTES, [19] = 8};
    memcpy(ids + 2, &number, sizeof(number));
    memcpy(ids + 20, &number, sizeof(number));
    profile_bytes_add(out, slice_of(ids, number > 0 ? sizeof(ids) : 0));
    profile_bytes_wrap(out, out->size - (number > 0 ? sizeof(ids) : 0), 4);
}

static void put_dictionary(struct profile_bytes *out, const struct row *row, uint64_t stacks)
{
    size_t begin = out->size;
    put_empty(out, 1);
    put_locations(out, row->functions);
    put_functions(out, row->functions);
    for (uint64_t i = 0; i <= row->samples / SAMPLES_PER_LINK; i++)
        put_link(out, i * (1 + state));
    put_strings(out, row->functions);
    put_attributes(out);
    put_stacks(out, stacks, row->functions);
    profile_bytes_wrap(out, begin, 2);
}

/* Number i: all stacks and attributes are used, and every fourth sample has a link of its own. */
static void put_sample(struct profile_bytes *out, uint64_t i, uint64_t stacks)
{
    uint64_t time = UINT64_C(1700000000000000000) + i * 10000000;
    size_t begin = out->size;
    profile_bytes_number(out, 1, 1 + (i < stacks ? i : below(stacks)));
    size_t attributes = out->size;
    put_varint(out, 1 + i % ATTRIBUTES);
    put_varint(out, 1 + below(ATTRIBUTES));
    profile_bytes_wrap(out, attributes, 2);
    profile_bytes_number(out, 3, (i + 1) % SAMPLES_PER_LINK == 0 ? (i + 1) / SAMPLES_PER_LINK : 0);
    size_t values = out->size;
    put_varint(out, 1 + below(100));
    profile_bytes_wrap(out, values, 4);
    size_t times = out->size;
    profile_bytes_add(out, slice_of(&time, sizeof(time)));
    profile_bytes_wrap(out, times, 5);
    profile_bytes_wrap(out, begin, 2);
}

/* As many as make a request of about SAMPLE_BYTES per sample, and enough for all locations. */
static uint64_t stacks_of(const struct row *row)
{
    uint64_t fixed = row->functions * FUNCTION_BYTES + row->samples * OTHER_BYTES;
    uint64_t wanted = row->samples * SAMPLE_BYTES;
    uint64_t stacks = wanted > fixed ? (wanted - fixed) / STACK_BYTES : 0;
    uint64_t stacks_min = row->functions / DEPTH_MIN + 1;
    stacks = stacks < row->samples ? stacks : row->samples;
    return stacks > stacks_min ? stacks : stacks_min;
}

static struct buffer *make_request(const struct row *row, uint64_t number)
{
    struct profile_bytes out = {0};
    uint64_t stacks = stacks_of(row);
    profile_bytes_number(&out, 1, 1);
    profile_bytes_wrap(&out, 0, 1);
    state = 1000 + number;
    for (uint64_t i = 0; i < row->samples; i++)
        put_sample(&out, i, stacks);
    put_empty(&out, 5);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    state = row->has_own_stacks ? number : 0;
    put_dictionary(&out, row, stacks);
    struct buffer *request = buffer_create(NULL, out.size);
    memcpy(request->data, out.data, out.size);
    request->size = out.size;
    profile_bytes_fini(&out);
    return request;
}

struct rig {
    struct buffer *requests[REQUESTS];
    uint64_t bytes; /* of all of them, as the next one */
    uint64_t samples;
};

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_normalize(const struct rig *rig)
{
    struct profile_normalized normalized;
    double begin = cpu_ns();
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct buffer *request = rig->requests[i];
        enum profile_verdict verdict =
            profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, NULL, &normalized);
        assert(verdict == PROFILES_TAKEN);
        assert(normalized.owner == request);
        buffer_unref(normalized.owner);
    }
    return cpu_ns() - begin;
}

/* gives_back: each request goes when it has been taken, as in profile_queue. */
static double time_merge(struct rig *rig, bool gives_back)
{
    struct profile_merge merge;
    struct profile_source source;
    double begin = cpu_ns();
    profile_merge_init(&merge, NULL);
    for (unsigned i = 0; i < REQUESTS; i++) {
        bool is_open = profile_source_open(&source, buffer_slice(rig->requests[i]), &merge);
        assert(is_open);
        bool is_whole = profile_merge_take(&merge, &source, (struct otlp_limit){0});
        assert(is_whole);
        profile_source_close(&source);
        if (gives_back) {
            buffer_unref(rig->requests[i]);
            rig->requests[i] = NULL;
        }
    }
    assert(merge.items == rig->samples);
    struct batch *batch = batch_create(PROFILES, 1);
    profile_merge_hand_out(&merge, NULL, batch);
    profile_merge_fini(&merge);
    batch_unref(batch);
    return cpu_ns() - begin;
}

static uint64_t peak_rss_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

struct figures {
    double bytes_per_sample;
    double batch_mb;
    double normalize_ns; /* per byte, as the next one */
    double merge_ns;
    double memory; /* per byte of the batch */
};

static void make_requests(struct rig *rig, const struct row *row)
{
    rig->bytes = 0;
    rig->samples = row->samples * REQUESTS;
    for (unsigned i = 0; i < REQUESTS; i++) {
        rig->requests[i] = make_request(row, i);
        rig->bytes += rig->requests[i]->size;
    }
}

static struct figures measure(const struct row *row)
{
    struct rig rig = {0};
    double normalize_ns = 1e18, merge_ns = 1e18;
    uint64_t before_bytes = peak_rss_bytes();
    make_requests(&rig, row);
    time_merge(&rig, true);
    double memory = (double)(peak_rss_bytes() - before_bytes) / (double)rig.bytes;
    make_requests(&rig, row);
    for (unsigned run = 0; run < RUNS; run++) {
        double normalize = time_normalize(&rig), merge = time_merge(&rig, false);
        normalize_ns = normalize < normalize_ns ? normalize : normalize_ns;
        merge_ns = merge < merge_ns ? merge : merge_ns;
    }
    for (unsigned i = 0; i < REQUESTS; i++)
        buffer_unref(rig.requests[i]);
    return (struct figures){
        .bytes_per_sample = (double)rig.bytes / (double)(row->samples * REQUESTS),
        .batch_mb = (double)rig.bytes / 1e6,
        .normalize_ns = normalize_ns / (double)rig.bytes,
        .merge_ns = merge_ns / (double)rig.bytes,
        .memory = memory,
    };
}

static void print(const struct row *row, const struct figures *figures, bool is_json)
{
    const char *stacks = row->has_own_stacks ? "own" : "same";
    printf(is_json ? "{\"requests\": %d, \"samples\": %" PRIu64 ", \"functions\": %" PRIu64
                     ", \"stacks\": \"%s\", "
                     "\"bytes_per_sample\": %.1f, \"batch_mb\": %.2f, \"check_ns\": %.3f, "
                     "\"merge_ns\": %.3f, \"memory\": %.2f}\n"
                   : "%d requests, %" PRIu64 " samples, %" PRIu64
                     " functions, %s stacks: %.0f B per sample, "
                     "%.2f MB; ns/B: check %.2f, merge %.2f; memory %.2f x\n",
           REQUESTS, row->samples, row->functions, stacks, figures->bytes_per_sample,
           figures->batch_mb, figures->normalize_ns, figures->merge_ns, figures->memory);
    fflush(stdout);
}

/* In a process of its own, so that its memory is that of this row. */
static int run(const struct row *row, bool is_json)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        struct figures figures = measure(row);
        print(row, &figures, is_json);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

/* The requests as files, for other programs to merge. */
static int write_requests(const char *folder, const struct row *row)
{
    char path[4096];
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct buffer *request = make_request(row, i);
        snprintf(path, sizeof(path), "%s/%" PRIu64 "-%" PRIu64 "-%s-%u.pb", folder, row->samples,
                 row->functions, row->has_own_stacks ? "own" : "same", i);
        FILE *file = fopen(path, "wb");
        bool is_written =
            file != NULL && fwrite(request->data, 1, request->size, file) == request->size;
        buffer_unref(request);
        if (file == NULL || fclose(file) != 0 || !is_written) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    static const struct row rows[] = {
        {1000, 400, false}, {1000, 400, true}, {1000, 3000, false}, {1000, 3000, true},
        {5000, 400, false}, {5000, 400, true}, {5000, 3000, false}, {5000, 3000, true},
    };
    bool is_json = count == 2 && strcmp(arguments[1], "--json") == 0;
    int failed = 0;
    if (count == 4) {
        struct row row = {strtoull(arguments[1], NULL, 10), strtoull(arguments[2], NULL, 10),
                          strcmp(arguments[3], "own") == 0};
        return run(&row, false);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        failed |= count == 3 ? write_requests(arguments[2], &rows[i]) : run(&rows[i], is_json);
    return failed != 0;
}
