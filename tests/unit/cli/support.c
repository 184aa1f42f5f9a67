/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, streams and files for the tests of the tools. One thread. */
#include "tests/unit/cli/support.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"
#include "src/profiles/pprof/pprof_writer.h"

static uint32_t text(struct pprof_writer *writer, const char *words)
{
    return pprof_writer_string(writer, slice_of_text(words));
}

static void put_symbols(struct pprof_writer *writer, const char *name)
{
    const char *const names[] = {"main", name, "idle"};
    const struct pprof_mapping mapping = {.id = 1, .filename = text(writer, "/bin/shop")};
    pprof_writer_mapping(writer, &mapping);
    for (uint32_t i = 1; i <= 3; i++) {
        const struct pprof_function function = {
            .id = i, .name = text(writer, names[i - 1]), .filename = text(writer, "shop.c")};
        const struct pprof_line line = {.function = i, .line = 10};
        const struct pprof_location location = {
            .id = i, .mapping = 1, .lines_count = 1, .lines = &line};
        pprof_writer_function(writer, &function);
        pprof_writer_location(writer, &location);
    }
    const struct pprof_location bare = {.id = 4, .mapping = 1, .address = 0x1234};
    pprof_writer_location(writer, &bare);
}

static void put_samples(struct pprof_writer *writer, int64_t scale)
{
    static const uint32_t stacks[][4] = {{2, 2, 1}, {3, 1}, {4, 1}};
    static const size_t depths[] = {3, 2, 2};
    static const int64_t values[] = {600, 300, 100};
    const struct pprof_label labels[] = {
        {.key = text(writer, "endpoint"), .text = text(writer, "/buy")},
        {.key = text(writer, "trace_id"), .text = text(writer, "0123456789abcdef0123456789abcdef")},
        {.key = text(writer, "span_id"), .text = text(writer, "0123456789abcdef")},
    };
    for (size_t i = 0; i < 3; i++) {
        const int64_t columns[] = {values[i] * scale / 100, values[i] * scale * 1000000};
        const struct pprof_sample sample = {.locations = stacks[i],
                                            .locations_count = depths[i],
                                            .values = columns,
                                            .labels = labels,
                                            .labels_count = i == 0 ? 3 : 0};
        pprof_writer_sample(writer, &sample, 2);
    }
}

struct buffer *small_pprof(int64_t scale, const char *name)
{
    struct pprof_writer writer;
    pprof_writer_init(&writer, NULL, MIB);
    const struct pprof_value_type count = {text(&writer, "samples"), text(&writer, "count")};
    const struct pprof_value_type cpu = {text(&writer, "cpu"), text(&writer, "nanoseconds")};
    pprof_writer_value_type(&writer, PPROF_SAMPLE_TYPE, count);
    pprof_writer_value_type(&writer, PPROF_SAMPLE_TYPE, cpu);
    pprof_writer_value_type(&writer, PPROF_PERIOD_TYPE, cpu);
    pprof_writer_number(&writer, PPROF_PERIOD, 10000000);
    pprof_writer_number(&writer, PPROF_TIME, 1700000000000000000);
    pprof_writer_number(&writer, PPROF_DURATION, 2000000000);
    put_symbols(&writer, name);
    put_samples(&writer, scale);
    struct buffer *bytes = pprof_writer_take(&writer);
    assert(bytes != NULL);
    pprof_writer_fini(&writer);
    return bytes;
}

struct buffer *small_otlp(int64_t scale, const char *name)
{
    struct arena arena;
    struct pprof pprof;
    struct error error;
    struct buffer *request = NULL;
    struct buffer *bytes = small_pprof(scale, name);
    arena_init(&arena, MIB);
    bool is_read = pprof_read(&arena, buffer_slice(bytes), &pprof, &error);
    assert(is_read);
    const struct pprof_to_otlp_source source = {.pprof = &pprof};
    bool is_translated = pprof_to_otlp(&source, NULL, &request, NULL);
    assert(is_translated);
    arena_clear(&arena);
    buffer_unref(bytes);
    return request;
}

void captured_open(struct captured *captured)
{
    *captured = (struct captured){.out = NULL};
    captured->out = open_memstream(&captured->text, &captured->size);
    assert(captured->out != NULL);
}

const char *captured_text(struct captured *captured)
{
    int failed = fclose(captured->out);
    assert(failed == 0);
    return captured->text;
}

static char directory[64];
static char paths[8][256];
static size_t paths_count;

const char *temporary_file(const char *name)
{
    assert(paths_count < 8);
    if (paths_count == 0) {
        strcpy(directory, "/tmp/test_tools.XXXXXX");
        char *made = mkdtemp(directory);
        assert(made != NULL);
    }
    snprintf(paths[paths_count], sizeof(paths[0]), "%s/%s", directory, name);
    return paths[paths_count++];
}

const char *temporary_file_with(const char *name, struct slice bytes)
{
    const char *path = temporary_file(name);
    FILE *file = fopen(path, "w");
    assert(file != NULL);
    fwrite(bytes.data, 1, bytes.size, file);
    fclose(file);
    return path;
}

void temporary_clear(void)
{
    for (size_t i = 0; i < paths_count; i++)
        unlink(paths[i]);
    if (paths_count > 0)
        rmdir(directory);
    paths_count = 0;
}
