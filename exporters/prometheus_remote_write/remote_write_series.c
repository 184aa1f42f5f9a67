/* SPDX-License-Identifier: Apache-2.0 */
/* Everything lies in one arena; the sizes of what will be written are kept up to date. */
#include "exporters/prometheus_remote_write/remote_write_series.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/otlp/wire.h"

struct remote_write_sample {
    struct remote_write_sample *next;
    int64_t time_ms;
    double value;
};

/* An encoded message. */
struct remote_write_message {
    struct remote_write_message *next;
    size_t size;
    uint8_t bytes[];
};

/* TimeSeries: 1 labels, 2 samples, 3 exemplars, 4 histograms. WriteRequest: 1 timeseries,
 * 3 metadata. Sample: 1 value, 2 timestamp. */
enum { SAMPLES = 2, EXEMPLARS = 3, HISTOGRAMS = 4, TIMESERIES = 1, METADATA = 3 };

/* Growth of the table doubles it. */
enum { TABLE_BYTES = 3 * sizeof(struct hash_entry) };

void remote_write_set_init(struct remote_write_set *set, size_t bytes_max, struct budget *budget)
{
    *set = (struct remote_write_set){.budget = budget, .bytes_max = bytes_max};
    if (getrandom(&set->seed, sizeof(set->seed), 0) != sizeof(set->seed))
        set->seed = clock_wall_ns();
    arena_init_charged(&set->arena, bytes_max, budget);
}

void remote_write_set_fini(struct remote_write_set *set)
{
    arena_clear(&set->arena);
    hash_table_clear(&set->table);
    if (set->budget != NULL)
        budget_return(set->budget, set->charged);
}

static void *allocate(struct remote_write_set *set, size_t bytes)
{
    if (set->is_full || set->has_no_memory)
        return NULL;
    if (bytes > set->bytes_max - set->arena.used_bytes) {
        set->is_full = true;
        return NULL;
    }
    void *memory = arena_try_alloc(&set->arena, bytes);
    set->has_no_memory = memory == NULL;
    return memory;
}

/* What will be written grows. */
static void grow(struct remote_write_set *set, struct remote_write_series *series, size_t bytes)
{
    if (series != NULL)
        series->bytes += bytes;
    set->bytes += bytes;
    set->is_full |= set->bytes > set->bytes_max;
}

static bool add_to_table(struct remote_write_set *set, uint64_t hash, void *series)
{
    if (set->budget != NULL && !budget_try_take(set->budget, TABLE_BYTES))
        return false;
    set->charged += TABLE_BYTES;
    return hash_table_add(&set->table, hash, series);
}

struct remote_write_series *remote_write_set_series(struct remote_write_set *set,
                                                    struct slice labels)
{
    uint64_t hash = XXH3_64bits_withSeed(labels.data, labels.size, set->seed);
    size_t at = 0;
    struct remote_write_series *series;
    while ((series = hash_table_next(&set->table, hash, &at)) != NULL)
        if (slice_equal(series->labels, labels))
            return series;
    series = allocate(set, sizeof(*series) + labels.size);
    if (series == NULL)
        return NULL;
    *series = (struct remote_write_series){.labels = slice_of(series + 1, labels.size)};
    memcpy(series + 1, labels.data, labels.size);
    if (!add_to_table(set, hash, series)) {
        set->has_no_memory = true;
        return NULL;
    }
    *(set->last == NULL ? &set->first : &set->last->next) = series;
    set->last = series;
    set->count++;
    grow(set, series, labels.size);
    return series;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Zeros are not written. */
static size_t sample_bytes(const struct remote_write_sample *sample)
{
    size_t bytes = bits_of(sample->value) != 0 ? 1 + sizeof(uint64_t) : 0;
    return bytes + (sample->time_ms != 0 ? 1 + wire_varint_size((uint64_t)sample->time_ms) : 0);
}

void remote_write_set_sample(struct remote_write_set *set, struct remote_write_series *series,
                             double value, int64_t time_ms)
{
    struct remote_write_sample *sample = allocate(set, sizeof(*sample));
    if (sample == NULL)
        return;
    *sample = (struct remote_write_sample){.time_ms = time_ms, .value = value};
    if (series->last_sample != NULL && series->last_sample->time_ms > time_ms)
        series->is_unsorted = true;
    *(series->last_sample == NULL ? &series->samples : &series->last_sample->next) = sample;
    series->last_sample = sample;
    grow(set, series, wire_field_size(SAMPLES, sample_bytes(sample)));
}

uint8_t *remote_write_set_message(struct remote_write_set *set, struct remote_write_series *series,
                                  enum remote_write_kind kind, size_t bytes)
{
    struct remote_write_message **first = &set->metadata;
    struct remote_write_message **last = &set->last_metadata;
    uint32_t number = METADATA;
    struct remote_write_message *message = allocate(set, sizeof(*message) + bytes);
    if (message == NULL)
        return NULL;
    if (kind == REMOTE_WRITE_EXEMPLAR) {
        first = &series->exemplars;
        last = &series->last_exemplar;
        number = EXEMPLARS;
    } else if (kind == REMOTE_WRITE_HISTOGRAM) {
        first = &series->histograms;
        last = &series->last_histogram;
        number = HISTOGRAMS;
    }
    *message = (struct remote_write_message){.size = bytes};
    *(*last == NULL ? first : &(*last)->next) = message;
    *last = message;
    grow(set, series, wire_field_size(number, bytes));
    return message->bytes;
}

/* Merges two sorted lists; of equal times those of the first come first. */
static struct remote_write_sample *merge(struct remote_write_sample *one,
                                         struct remote_write_sample *two)
{
    struct remote_write_sample *merged = NULL;
    struct remote_write_sample **end = &merged;
    while (one != NULL && two != NULL) {
        struct remote_write_sample **from = two->time_ms < one->time_ms ? &two : &one;
        *end = *from;
        end = &(*from)->next;
        *from = *end;
    }
    *end = one != NULL ? one : two;
    return merged;
}

/* Sorts by time: merges lists of 1, 2, 4 … samples. */
static struct remote_write_sample *sort(struct remote_write_sample *samples)
{
    enum { POWERS = 64 };
    struct remote_write_sample *lists[POWERS] = {NULL};
    while (samples != NULL) {
        struct remote_write_sample *list = samples;
        samples = samples->next;
        list->next = NULL;
        size_t power = 0;
        for (; lists[power] != NULL; power++) {
            list = merge(lists[power], list);
            lists[power] = NULL;
        }
        lists[power] = list;
    }
    struct remote_write_sample *sorted = NULL;
    for (size_t power = 0; power < POWERS; power++)
        sorted = merge(lists[power], sorted);
    return sorted;
}

static void write_messages(struct wire_writer *writer, uint32_t number,
                           const struct remote_write_message *message)
{
    for (; message != NULL; message = message->next)
        wire_write_bytes(writer, number, slice_of(message->bytes, message->size));
}

static void write_series(struct wire_writer *writer, struct remote_write_series *series)
{
    if (series->is_unsorted)
        series->samples = sort(series->samples);
    series->is_unsorted = false;
    wire_write_header(writer, TIMESERIES, series->bytes);
    wire_write_raw(writer, series->labels);
    for (const struct remote_write_sample *sample = series->samples; sample != NULL;
         sample = sample->next) {
        wire_write_header(writer, SAMPLES, sample_bytes(sample));
        if (bits_of(sample->value) != 0)
            wire_write_fixed64(writer, 1, bits_of(sample->value));
        if (sample->time_ms != 0)
            wire_write_number(writer, 2, (uint64_t)sample->time_ms);
    }
    write_messages(writer, EXEMPLARS, series->exemplars);
    write_messages(writer, HISTOGRAMS, series->histograms);
}

struct remote_write_cursor remote_write_cursor_of(const struct remote_write_set *set)
{
    return (struct remote_write_cursor){.series = set->first, .metadata = set->metadata};
}

/* Whether so many more bytes still belong to a request. */
static bool fits(size_t content, size_t more, size_t bytes_max)
{
    return content == 0 || (content < bytes_max && more < bytes_max - content);
}

enum remote_write_next remote_write_cursor_next(struct remote_write_cursor *cursor,
                                                struct budget *budget, size_t bytes_max,
                                                struct buffer **ret_request, uint64_t *ret_points)
{
    struct remote_write_series *end = cursor->series;
    const struct remote_write_message *metadata_end = cursor->metadata;
    size_t content = 0; /* as the limit counts it */
    size_t whole = 0;
    *ret_points = 0;
    for (; end != NULL && fits(content, end->bytes, bytes_max); end = end->next) {
        content += end->bytes;
        whole += wire_field_size(TIMESERIES, end->bytes);
        *ret_points += end->points;
    }
    for (; cursor->series == NULL && metadata_end != NULL &&
           fits(content, metadata_end->size, bytes_max);
         metadata_end = metadata_end->next) {
        content += metadata_end->size;
        whole += wire_field_size(METADATA, metadata_end->size);
    }
    if (whole == 0)
        return REMOTE_WRITE_NO_MORE;
    struct buffer *buffer = buffer_try_create(budget, whole);
    if (buffer == NULL)
        return REMOTE_WRITE_NO_BUDGET;
    struct wire_writer writer = wire_writer_of(buffer->data, whole);
    for (; cursor->series != end; cursor->series = cursor->series->next)
        write_series(&writer, cursor->series);
    for (; cursor->metadata != metadata_end; cursor->metadata = cursor->metadata->next)
        wire_write_bytes(&writer, METADATA,
                         slice_of(cursor->metadata->bytes, cursor->metadata->size));
    buffer->size = wire_written(&writer).size;
    assert(buffer->size == whole);
    *ret_request = buffer;
    return REMOTE_WRITE_REQUEST;
}
