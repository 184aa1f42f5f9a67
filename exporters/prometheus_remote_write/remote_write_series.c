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

/* TimeSeries: 1 labels, 2 samples, 3 exemplars, 4 histograms. WriteRequest: 1 timeseries,
 * 3 metadata. Sample: 1 value, 2 timestamp. */
enum { SAMPLES = 2, EXEMPLARS = 3, HISTOGRAMS = 4, TIMESERIES = 1, METADATA = 3 };
/* Version 2.0. TimeSeries: 1 labels_refs, 2 samples, 3 histograms, 4 exemplars, 5 metadata.
 * Request: 4 symbols, 5 timeseries. Exemplar: 1 labels_refs, 2 value, 3 timestamp. Metadata: 1
 * type, 3 help_ref, 4 unit_ref. */
enum { V2_LABELS = 1, V2_HISTOGRAMS = 3, V2_EXEMPLARS = 4, V2_METADATA = 5 };
enum { V2_SYMBOLS = 4, V2_TIMESERIES = 5 };

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
    hash_table_clear(&set->symbols);
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

static bool add_to_table(struct remote_write_set *set, struct hash_table *table, uint64_t hash,
                         void *object)
{
    bool is_charged = set->budget == NULL || budget_try_take(set->budget, TABLE_BYTES);
    set->charged += is_charged && set->budget != NULL ? TABLE_BYTES : 0;
    bool is_added = is_charged && hash_table_add(table, hash, object);
    set->has_no_memory |= !is_added;
    return is_added;
}

struct remote_write_symbol *remote_write_set_symbol(struct remote_write_set *set, struct slice text)
{
    if (text.size == 0)
        return &set->empty;
    uint64_t hash = XXH3_64bits_withSeed(text.data, text.size, set->seed);
    size_t at = 0;
    struct remote_write_symbol *symbol;
    while ((symbol = hash_table_next(&set->symbols, hash, &at)) != NULL)
        if (slice_equal(symbol->text, text))
            return symbol;
    symbol = allocate(set, sizeof(*symbol) + text.size);
    if (symbol == NULL)
        return NULL;
    *symbol = (struct remote_write_symbol){.text = slice_of(symbol + 1, text.size)};
    memcpy(symbol + 1, text.data, text.size);
    return add_to_table(set, &set->symbols, hash, symbol) ? symbol : NULL;
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
    if (!add_to_table(set, &set->table, hash, series))
        return NULL;
    *(set->last == NULL ? &set->first : &set->last->next) = series;
    set->last = series;
    set->count++;
    grow(set, set->is_v2 ? NULL : series, labels.size);
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
        number = set->is_v2 ? V2_HISTOGRAMS : HISTOGRAMS;
    }
    *message = (struct remote_write_message){.size = bytes};
    *(*last == NULL ? first : &(*last)->next) = message;
    *last = message;
    grow(set, series, wire_field_size(number, bytes));
    return message->bytes;
}

struct remote_write_exemplar *remote_write_set_exemplar(struct remote_write_set *set,
                                                        struct remote_write_series *series,
                                                        size_t count)
{
    size_t bytes = sizeof(struct remote_write_exemplar) + count * sizeof(set->empty.next);
    struct remote_write_exemplar *exemplar = allocate(set, bytes);
    if (exemplar == NULL)
        return NULL;
    *exemplar = (struct remote_write_exemplar){.count = count};
    *(series->last_sampling == NULL ? &series->samplings : &series->last_sampling->next) = exemplar;
    series->last_sampling = exemplar;
    grow(set, NULL, bytes);
    return exemplar;
}

/* ---- writing ---- */

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

static void write_samples(struct wire_writer *writer, struct remote_write_series *series)
{
    if (series->is_unsorted)
        series->samples = sort(series->samples);
    series->is_unsorted = false;
    for (const struct remote_write_sample *sample = series->samples; sample != NULL;
         sample = sample->next) {
        wire_write_header(writer, SAMPLES, sample_bytes(sample));
        if (bits_of(sample->value) != 0)
            wire_write_fixed64(writer, 1, bits_of(sample->value));
        if (sample->time_ms != 0)
            wire_write_number(writer, 2, (uint64_t)sample->time_ms);
    }
}

static void write_series(struct wire_writer *writer, struct remote_write_series *series)
{
    wire_write_header(writer, TIMESERIES, series->bytes);
    wire_write_raw(writer, series->labels);
    write_samples(writer, series);
    write_messages(writer, EXEMPLARS, series->exemplars);
    write_messages(writer, HISTOGRAMS, series->histograms);
}

struct remote_write_cursor remote_write_cursor_of(struct remote_write_set *set)
{
    return (struct remote_write_cursor){
        .set = set, .series = set->first, .metadata = set->metadata};
}

/* Whether so many more bytes still belong to a request. */
static bool fits(size_t content, size_t more, size_t bytes_max)
{
    return content == 0 || (content < bytes_max && more < bytes_max - content);
}

static enum remote_write_next next_v1(struct remote_write_cursor *cursor, struct budget *budget,
                                      size_t bytes_max, struct buffer **ret_request,
                                      uint64_t *ret_points)
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

/* ---- version 2.0 ---- */

/* The symbols of the request that is being made. */
struct symbol_list {
    uint32_t request;
    uint32_t count;
    struct remote_write_symbol *last;
    size_t text_bytes;
    size_t bytes; /* as fields of the request */
};

/* The symbol's place in the request, where it is put unless it is there. */
static uint32_t place_of(struct symbol_list *list, struct remote_write_symbol *symbol)
{
    if (symbol->request == list->request)
        return symbol->place;
    symbol->request = list->request;
    symbol->place = list->count++;
    symbol->next = NULL;
    list->last->next = symbol;
    list->last = symbol;
    list->text_bytes += symbol->text.size;
    list->bytes += wire_field_size(V2_SYMBOLS, symbol->text.size);
    return symbol->place;
}

/* The list as it was before its last series. */
static void take_back(struct symbol_list *list, const struct symbol_list *before)
{
    struct remote_write_symbol *symbol = before->last->next;
    for (; symbol != NULL; symbol = symbol->next)
        symbol->request = 0;
    before->last->next = NULL;
    *list = *before;
}

/* Of a packed field, without its tag. */
static size_t refs_bytes(struct symbol_list *list, struct remote_write_symbol *const *symbols,
                         size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += wire_varint_size(place_of(list, symbols[i]));
    return bytes;
}

static void write_refs(struct symbol_list *list, struct wire_writer *writer,
                       struct remote_write_symbol *const *symbols, size_t count)
{
    if (count == 0)
        return;
    wire_write_header(writer, 1, refs_bytes(list, symbols, count));
    for (size_t i = 0; i < count; i++)
        wire_write_varint(writer, place_of(list, symbols[i]));
}

static size_t exemplar_bytes(struct symbol_list *list, const struct remote_write_exemplar *exemplar)
{
    size_t refs = refs_bytes(list, exemplar->symbols, exemplar->count);
    return (refs > 0 ? wire_field_size(1, refs) : 0) +
           (bits_of(exemplar->value) != 0 ? 1 + sizeof(uint64_t) : 0) +
           (exemplar->time_ms != 0 ? 1 + wire_varint_size((uint64_t)exemplar->time_ms) : 0);
}

static size_t metadata_bytes(struct symbol_list *list, const struct remote_write_series *series)
{
    uint32_t help = place_of(list, series->help);
    uint32_t unit = place_of(list, series->unit);
    return (series->type != 0 ? 1 + wire_varint_size(series->type) : 0) +
           (help != 0 ? 1 + wire_varint_size(help) : 0) +
           (unit != 0 ? 1 + wire_varint_size(unit) : 0);
}

/* The content of a slice of pointers to symbols. */
static struct remote_write_symbol *const *label_symbols(const struct remote_write_series *series,
                                                        size_t *ret_count)
{
    *ret_count = series->labels.size / sizeof(struct remote_write_symbol *);
    return (struct remote_write_symbol *const *)(const void *)series->labels.data;
}

/* Of the encoded TimeSeries; puts its symbols into the list. */
static size_t series_bytes(struct symbol_list *list, const struct remote_write_series *series)
{
    size_t count;
    struct remote_write_symbol *const *labels = label_symbols(series, &count);
    size_t bytes = wire_field_size(V2_LABELS, refs_bytes(list, labels, count)) + series->bytes;
    for (const struct remote_write_exemplar *exemplar = series->samplings; exemplar != NULL;
         exemplar = exemplar->next)
        bytes += wire_field_size(V2_EXEMPLARS, exemplar_bytes(list, exemplar));
    size_t metadata = metadata_bytes(list, series);
    return bytes + (metadata > 0 ? wire_field_size(V2_METADATA, metadata) : 0);
}

static void write_exemplar(struct symbol_list *list, struct wire_writer *writer,
                           const struct remote_write_exemplar *exemplar)
{
    wire_write_header(writer, V2_EXEMPLARS, exemplar_bytes(list, exemplar));
    write_refs(list, writer, exemplar->symbols, exemplar->count);
    if (bits_of(exemplar->value) != 0)
        wire_write_fixed64(writer, 2, bits_of(exemplar->value));
    if (exemplar->time_ms != 0)
        wire_write_number(writer, 3, (uint64_t)exemplar->time_ms);
}

static void write_series_v2(struct symbol_list *list, struct wire_writer *writer,
                            struct remote_write_series *series)
{
    size_t count;
    struct remote_write_symbol *const *labels = label_symbols(series, &count);
    size_t metadata = metadata_bytes(list, series);
    wire_write_header(writer, V2_TIMESERIES, series->whole);
    write_refs(list, writer, labels, count);
    write_samples(writer, series);
    write_messages(writer, V2_HISTOGRAMS, series->histograms);
    for (const struct remote_write_exemplar *exemplar = series->samplings; exemplar != NULL;
         exemplar = exemplar->next)
        write_exemplar(list, writer, exemplar);
    if (metadata == 0)
        return;
    wire_write_header(writer, V2_METADATA, metadata);
    if (series->type != 0)
        wire_write_number(writer, 1, series->type);
    if (series->help->place != 0)
        wire_write_number(writer, 3, series->help->place);
    if (series->unit->place != 0)
        wire_write_number(writer, 4, series->unit->place);
}

static enum remote_write_next next_v2(struct remote_write_cursor *cursor, struct budget *budget,
                                      size_t bytes_max, struct buffer **ret_request,
                                      uint64_t *ret_points)
{
    struct remote_write_set *set = cursor->set;
    struct remote_write_series *end = cursor->series;
    size_t content = 0; /* as the limit counts it */
    size_t whole = 0;
    *ret_points = 0;
    if (end == NULL)
        return REMOTE_WRITE_NO_MORE;
    set->empty = (struct remote_write_symbol){.request = ++cursor->request};
    struct symbol_list list = {.request = cursor->request,
                               .count = 1,
                               .last = &set->empty,
                               .bytes = wire_field_size(V2_SYMBOLS, 0)};
    for (; end != NULL; end = end->next) {
        const struct symbol_list before = list;
        end->whole = series_bytes(&list, end);
        size_t more = end->whole + list.text_bytes - before.text_bytes;
        if (!fits(content, more, bytes_max)) {
            take_back(&list, &before);
            break;
        }
        content += more;
        whole += wire_field_size(V2_TIMESERIES, end->whole);
        *ret_points += end->points;
    }
    whole += list.bytes;
    if (whole > set->bytes_max - cursor->written)
        return REMOTE_WRITE_TOO_MUCH;
    struct buffer *buffer = buffer_try_create(budget, whole);
    if (buffer == NULL)
        return REMOTE_WRITE_NO_BUDGET;
    struct wire_writer writer = wire_writer_of(buffer->data, whole);
    for (const struct remote_write_symbol *symbol = &set->empty; symbol != NULL;
         symbol = symbol->next)
        wire_write_bytes(&writer, V2_SYMBOLS, symbol->text);
    for (; cursor->series != end; cursor->series = cursor->series->next)
        write_series_v2(&list, &writer, cursor->series);
    buffer->size = wire_written(&writer).size;
    assert(buffer->size == whole);
    cursor->written += whole;
    *ret_request = buffer;
    return REMOTE_WRITE_REQUEST;
}

enum remote_write_next remote_write_cursor_next(struct remote_write_cursor *cursor,
                                                struct budget *budget, size_t bytes_max,
                                                struct buffer **ret_request, uint64_t *ret_points)
{
    return cursor->set->is_v2 ? next_v2(cursor, budget, bytes_max, ret_request, ret_points)
                              : next_v1(cursor, budget, bytes_max, ret_request, ret_points);
}
