/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the dump twice, line by line: first for the addresses and libraries, which are numbered in
 * order, then for the samples. The dump is this process's own, but it is validated all the same. */
#include "src/profiles/pprof/heap_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/pprof/pprof_writer.h"

struct library {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    struct slice path;
};

enum { LIBRARIES_MAX = 4096 };

struct heap_dump {
    struct slice text;
    uint64_t sample_bytes; /* average number of bytes between sampled allocations */
    uint64_t *addresses;   /* sorted, each once */
    size_t addresses_count;
    size_t addresses_capacity;
    struct library *libraries;
    size_t libraries_count;
};

/* The next line without its end; false after the last. */
static bool next_line(struct slice *rest, struct slice *ret_line)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    size_t size = end != NULL ? (size_t)(end - rest->data) : rest->size;
    *ret_line = slice_of(rest->data, size);
    size_t taken = size + (end != NULL);
    *rest = slice_of(rest->data + taken, rest->size - taken);
    return true;
}

static void skip(struct slice *line, size_t size)
{
    assert(size <= line->size);
    *line = slice_of(line->data + size, line->size - size);
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads a number and advances past it. False: there is none, or it is too large. */
static bool take_number(struct slice *line, unsigned base, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t size = 0;
    assert(base == 10 || base == 16);
    while (size < line->size && (unsigned)digit_of(line->data[size]) < base) {
        if (number > (UINT64_MAX - 15) / base)
            return false;
        number = number * base + (unsigned)digit_of(line->data[size++]);
    }
    skip(line, size);
    *ret_number = number;
    return size > 0;
}

static bool take_text(struct slice *line, const char *text)
{
    if (!slice_begins_with(*line, text))
        return false;
    skip(line, strlen(text));
    return true;
}

/* " 0x…" of a line that begins with '@'. Return addresses: one less lies in the call. */
static bool take_address(struct slice *line, uint64_t *ret_address)
{
    if (!take_text(line, " 0x") || !take_number(line, 16, ret_address) || *ret_address == 0)
        return false;
    *ret_address -= 1;
    return true;
}

static int compare_addresses(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Reads addresses and libraries: first stacks, then a copy of /proc/self/maps. */
static bool read_tables(struct heap_dump *dump, struct error *error)
{
    struct slice rest = dump->text;
    struct slice line;
    bool is_in_libraries = false;
    if (!next_line(&rest, &line) || !take_text(&line, "heap_v2/") ||
        !take_number(&line, 10, &dump->sample_bytes) || dump->sample_bytes == 0)
        return error_set(error,
                         "found no heap profile of jemalloc, expected heap_v2/ and a number");
    while (!is_in_libraries && next_line(&rest, &line)) {
        uint64_t address;
        size_t depth = 0;
        is_in_libraries = slice_begins_with(line, "MAPPED_LIBRARIES:");
        if (!take_text(&line, "@"))
            continue;
        while (take_address(&line, &address) && depth++ < HEAP_PROFILE_DEPTH_MAX) {
            if (dump->addresses_count == HEAP_PROFILE_ADDRESSES_MAX)
                return error_set(error, "found more than %d addresses", HEAP_PROFILE_ADDRESSES_MAX);
            if (dump->addresses_count == dump->addresses_capacity) {
                dump->addresses_capacity =
                    dump->addresses_capacity > 0 ? 2 * dump->addresses_capacity : 1024;
                dump->addresses = (uint64_t *)mem_resize(
                    dump->addresses, dump->addresses_capacity * sizeof(dump->addresses[0]));
            }
            dump->addresses[dump->addresses_count++] = address;
        }
    }
    while (dump->libraries_count < LIBRARIES_MAX && next_line(&rest, &line)) {
        struct library library;
        /* Only code in files counts. */
        if (!take_number(&line, 16, &library.start) || !take_text(&line, "-") ||
            !take_number(&line, 16, &library.limit) || !take_text(&line, " r-xp ") ||
            !take_number(&line, 16, &library.offset))
            continue;
        const uint8_t *path = memchr(line.data, '/', line.size);
        if (path == NULL || library.limit <= library.start)
            continue;
        library.path = slice_of(path, line.size - (size_t)(path - line.data));
        dump->libraries[dump->libraries_count++] = library;
    }
    if (dump->addresses_count == 0)
        return true;
    size_t kept = 0;
    qsort(dump->addresses, dump->addresses_count, sizeof(dump->addresses[0]), compare_addresses);
    for (size_t i = 1; i < dump->addresses_count; i++)
        if (dump->addresses[i] != dump->addresses[kept])
            dump->addresses[++kept] = dump->addresses[i];
    dump->addresses_count = kept + 1;
    return true;
}

static int64_t scaled(uint64_t number, double scale)
{
    double value = (double)number * scale;
    assert(scale >= 1);
    return value < (double)INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Writes a sample for each "  t*: OBJECTS: BYTES [0: 0]" below the line of its stack. */
static void write_samples(const struct heap_dump *dump, struct pprof_writer *writer)
{
    struct slice rest = dump->text;
    struct slice line;
    uint32_t stack[HEAP_PROFILE_DEPTH_MAX];
    size_t depth = 0;
    uint64_t address;
    uint64_t objects;
    uint64_t bytes;
    while (next_line(&rest, &line) && !slice_begins_with(line, "MAPPED_LIBRARIES:")) {
        if (take_text(&line, "@")) {
            for (depth = 0; depth < HEAP_PROFILE_DEPTH_MAX && take_address(&line, &address);
                 depth++) {
                const uint64_t *found = bsearch(&address, dump->addresses, dump->addresses_count,
                                                sizeof(dump->addresses[0]), compare_addresses);
                assert(found != NULL);
                stack[depth] = (uint32_t)(found - dump->addresses) + 1;
            }
            continue;
        }
        if (depth == 0 || !take_text(&line, "  t*: ") || !take_number(&line, 10, &objects) ||
            !take_text(&line, ": ") || !take_number(&line, 10, &bytes) || objects == 0)
            continue;
        /* An allocation of size s is sampled with probability 1 - exp(-s / sample_bytes). */
        double size = (double)bytes / (double)objects;
        double scale = size > 0 ? 1 / (1 - exp(-size / (double)dump->sample_bytes)) : 1;
        const int64_t values[2] = {scaled(objects, scale), scaled(bytes, scale)};
        pprof_writer_sample(
            writer,
            &(struct pprof_sample){.locations = stack, .locations_count = depth, .values = values},
            2);
    }
}

static void write_type(struct pprof_writer *writer, enum pprof_field field, const char *type,
                       const char *unit)
{
    pprof_writer_value_type(
        writer, field,
        (struct pprof_value_type){.type = pprof_writer_string(writer, slice_of_text(type)),
                                  .unit = pprof_writer_string(writer, slice_of_text(unit))});
}

struct buffer *heap_profile_to_pprof(struct slice text, uint64_t wall_ns, struct error *error)
{
    struct heap_dump dump = {.text = text};
    dump.libraries = mem_alloc(LIBRARIES_MAX * sizeof(dump.libraries[0]));
    if (!read_tables(&dump, error)) {
        mem_free(dump.addresses);
        mem_free(dump.libraries);
        return NULL;
    }
    struct pprof_writer writer;
    pprof_writer_init(&writer, NULL, PROFILE_FILE_BYTES_MAX);
    write_type(&writer, PPROF_SAMPLE_TYPE, "inuse_objects", "count");
    write_type(&writer, PPROF_SAMPLE_TYPE, "inuse_space", "bytes");
    write_type(&writer, PPROF_PERIOD_TYPE, "space", "bytes");
    pprof_writer_number(&writer, PPROF_PERIOD, dump.sample_bytes);
    pprof_writer_number(&writer, PPROF_TIME, wall_ns);
    pprof_writer_number(&writer, PPROF_DEFAULT_SAMPLE_TYPE,
                        pprof_writer_string(&writer, slice_of_text("inuse_space")));
    for (size_t i = 0; i < dump.libraries_count; i++) {
        const struct pprof_mapping mapping = {
            .id = i + 1,
            .memory_start = dump.libraries[i].start,
            .memory_limit = dump.libraries[i].limit,
            .file_offset = dump.libraries[i].offset,
            .filename = pprof_writer_string(&writer, dump.libraries[i].path),
        };
        pprof_writer_mapping(&writer, &mapping);
    }
    for (size_t i = 0; i < dump.addresses_count; i++) {
        uint64_t address = dump.addresses[i];
        uint32_t library = 0;
        while (library < dump.libraries_count && (address < dump.libraries[library].start ||
                                                  address >= dump.libraries[library].limit))
            library++;
        const struct pprof_location location = {
            .id = i + 1,
            .mapping = library < dump.libraries_count ? library + 1 : 0,
            .address = address,
        };
        pprof_writer_location(&writer, &location);
    }
    write_samples(&dump, &writer);
    struct buffer *profile = pprof_writer_take(&writer);
    pprof_writer_fini(&writer);
    if (profile == NULL)
        error_set(error, "the profile is larger than %" PRIu64 " bytes",
                  (uint64_t)PROFILE_FILE_BYTES_MAX);
    mem_free(dump.addresses);
    mem_free(dump.libraries);
    return profile;
}
