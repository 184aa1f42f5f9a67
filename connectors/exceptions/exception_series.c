/* SPDX-License-Identifier: Apache-2.0 */
/* Series of exceptions. The key has the texts of all values, as in the Go collector, where values
 * of different types with one text are one series; it also has the places of those that are absent.
 * Runs under the lock of the store's user. */
#include "connectors/exceptions/exception_series.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/metrics/metric_writer.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

struct exception_exemplar {
    uint64_t count;
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

struct exception_series {
    uint64_t hash;
    uint64_t count;
    struct exception_exemplar *exemplars; /* NULL, or room for EXCEPTION_EXEMPLARS_MAX */
    uint64_t exemplars_seen;              /* since the last flush */
    uint32_t key_size;
    uint32_t attributes_size;
    uint8_t bytes[]; /* key, attributes */
};

enum { ATTRIBUTE = 1, KEY = 1, VALUE = 2, TEXT_VALUE = 1, LENGTH_BYTES_MAX = 5 };

void exception_store_init(struct exception_store *store, uint64_t series_max, bool has_exemplars,
                          struct budget *budget)
{
    *store = (struct exception_store){
        .budget = budget, .series_max = series_max, .has_exemplars = has_exemplars};
    store->seed = (uint64_t)(random_uniform() * 0x1p53);
    store->start_ns = clock_wall_ns();
}

/* Points */

/* What a point is put together in: a key and attributes of known size. */
struct point_parts {
    uint8_t *key;
    struct wire_writer attributes;
};

static struct slice cut(struct slice text)
{
    if (text.size <= EXCEPTION_TEXT_BYTES_MAX)
        return text;
    text.size = EXCEPTION_TEXT_BYTES_MAX;
    while (text.size > 0 && (text.data[text.size] & 0xc0) == 0x80)
        text.size--; /* not in the middle of a character */
    return text;
}

/* A length, one more than that of the text, and the text; 0 for what is absent. */
static void put_key(struct point_parts *parts, const struct slice *text)
{
    struct wire_writer writer = wire_writer_of(parts->key, LENGTH_BYTES_MAX);
    wire_write_varint(&writer, text != NULL ? text->size + 1 : 0);
    parts->key = writer.at;
    if (text == NULL || text->size == 0)
        return;
    memcpy(parts->key, text->data, text->size);
    parts->key += text->size;
}

/* An attribute with a value of that size, which the caller writes. */
static void begin_attribute(struct point_parts *parts, struct slice key, size_t value_size)
{
    struct wire_writer *out = &parts->attributes;
    wire_write_header(out, ATTRIBUTE,
                      wire_field_size(KEY, key.size) + wire_field_size(VALUE, value_size));
    wire_write_bytes(out, KEY, key);
    wire_write_header(out, VALUE, value_size);
}

static void put_text(struct point_parts *parts, struct slice key, struct slice text)
{
    put_key(parts, &text);
    begin_attribute(parts, key, wire_field_size(TEXT_VALUE, text.size));
    wire_write_bytes(&parts->attributes, TEXT_VALUE, text);
}

/* What a dimension takes at the most. */
static size_t room_of(struct slice name, size_t value_size)
{
    enum { HEADERS_BYTES_MAX = 4 * (1 + LENGTH_BYTES_MAX) };
    return HEADERS_BYTES_MAX + name.size + value_size;
}

void exception_bench_init(struct exception_bench *bench, struct budget *budget)
{
    *bench = (struct exception_bench){.point = {.bytes = 0}};
    arena_init_charged(&bench->span.arena, SIZE_MAX / 2, budget);
    arena_init_charged(&bench->event.arena, SIZE_MAX / 2, budget);
    arena_init_charged(&bench->resource.arena, SIZE_MAX / 2, budget);
}

void exception_bench_fini(struct exception_bench *bench)
{
    scratch_fini(&bench->point, bench->span.arena.budget);
    arena_clear(&bench->span.arena);
    arena_clear(&bench->event.arena);
    arena_clear(&bench->resource.arena);
}

static void begin_texts(struct exception_texts *texts, uint64_t number)
{
    if (number > 0 && number == texts->number)
        return;
    texts->number = number;
    texts->has = 0;
    if (texts->arena.used_bytes > 0)
        arena_clear(&texts->arena);
}

/* False: no memory. */
static bool text_of(struct exception_bench *bench, enum exception_value of, size_t dimension,
                    struct slice encoded, struct slice *ret_text)
{
    struct exception_texts *texts = of == EXCEPTION_OF_SPAN    ? &bench->span
                                    : of == EXCEPTION_OF_EVENT ? &bench->event
                                                               : &bench->resource;
    const uint64_t bit = (uint64_t)1 << dimension;
    struct slice *text = &texts->list[dimension];
    if ((texts->has & bit) == 0) {
        texts->has |= bit;
        if (!value_to_string(&texts->arena, encoded, text))
            *text = slice_of(NULL, 0);
        else if (text->data == NULL)
            text->data = (const uint8_t *)"";
    }
    *ret_text = *text;
    return text->data != NULL;
}

bool exception_point_make(const struct exception_store *store, const struct exception_keys *keys,
                          const struct exception *exception, struct exception_bench *bench,
                          struct exception_point *ret_point)
{
    const struct slice fixed[][2] = {
        {slice_of_text("service.name"), cut(exception->service)},
        {slice_of_text("span.name"), cut(exception->span_name)},
        {slice_of_text("span.kind"), slice_of_text(exception->kind)},
        {slice_of_text("status.code"), slice_of_text(exception->status)},
    };
    enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };
    struct slice values[WANTED_NAMES_MAX]; /* encoded; or the text itself, with is_text */
    struct slice texts[WANTED_NAMES_MAX];
    bool is_text[WANTED_NAMES_MAX];
    size_t size = 0;
    begin_texts(&bench->span, exception->span_number);
    begin_texts(&bench->event, 0);
    begin_texts(&bench->resource, exception->resource_number);
    for (size_t i = 0; i < FIXED; i++)
        size += room_of(fixed[i][0], fixed[i][1].size);
    for (size_t i = 0; i < keys->dimensions_count; i++) {
        enum exception_value found = exception_dimension_value(keys, exception, i, &values[i]);
        texts[i] = values[i];
        is_text[i] = true;
        if (found == EXCEPTION_ABSENT) {
            texts[i].data = NULL;
        } else if (found != EXCEPTION_STANDARD) {
            if (!text_of(bench, found, i, values[i], &texts[i]))
                return false;
            is_text[i] = texts[i].size > EXCEPTION_TEXT_BYTES_MAX ||
                         values[i].size > EXCEPTION_TEXT_BYTES_MAX;
        }
        texts[i] = cut(texts[i]);
        size += room_of(keys->dimensions[i].name, texts[i].size + values[i].size);
    }
    uint8_t *room = scratch_room(&bench->point, store->budget, 2 * size);
    if (room == NULL)
        return false;
    struct point_parts parts = {.key = room, .attributes = wire_writer_of(room + size, size)};
    for (size_t i = 0; i < FIXED; i++)
        put_text(&parts, fixed[i][0], fixed[i][1]);
    for (size_t i = 0; i < keys->dimensions_count; i++) {
        struct slice name = keys->dimensions[i].name;
        if (texts[i].data == NULL) {
            put_key(&parts, NULL);
        } else if (is_text[i]) {
            put_text(&parts, name, texts[i]);
        } else {
            put_key(&parts, &texts[i]);
            begin_attribute(&parts, name, values[i].size);
            wire_write_raw(&parts.attributes, values[i]);
        }
    }
    assert(parts.key <= room + size);
    *ret_point = (struct exception_point){
        .key = slice_of(room, (size_t)(parts.key - room)),
        .attributes = wire_written(&parts.attributes),
        .trace_id = exception->trace_id,
        .span_id = exception->span_id,
    };
    ret_point->hash = XXH3_64bits_withSeed(ret_point->key.data, ret_point->key.size, store->seed);
    return true;
}

/* Series */

static size_t series_bytes(size_t key_size, size_t attributes_size)
{
    return sizeof(struct exception_series) + key_size + attributes_size;
}

static bool grow_list(struct exception_store *store)
{
    if (store->count < store->capacity)
        return true;
    size_t before = store->capacity * sizeof(struct exception_series *);
    size_t bytes = before > 0 ? 2 * before : 16 * sizeof(struct exception_series *);
    if (!budget_try_take(store->budget, bytes))
        return false;
    struct exception_series **list =
        (struct exception_series **)mem_try_resize((void *)store->list, bytes);
    budget_return(store->budget, list != NULL ? before : bytes);
    if (list == NULL)
        return false;
    store->list = list;
    store->capacity = bytes / sizeof(struct exception_series *);
    return true;
}

static bool add_to_table(struct exception_store *store, struct exception_series *series)
{
    const size_t growth = hash_table_growth(&store->table);
    const size_t most = hash_table_bytes(&store->table) + growth;
    if (growth > 0 && !budget_try_take(store->budget, growth))
        return false;
    bool is_added = hash_table_add(&store->table, series->hash, series);
    if (hash_table_bytes(&store->table) < most)
        budget_return(store->budget, most - hash_table_bytes(&store->table));
    return is_added;
}

/* is_found: it can be found by its key. NULL: no memory. */
static struct exception_series *create_series(struct exception_store *store,
                                              const struct exception_point *point, bool is_found)
{
    size_t bytes = series_bytes(point->key.size, point->attributes.size);
    if (!grow_list(store) || !budget_try_take(store->budget, bytes))
        return NULL;
    struct exception_series *series = mem_try_zalloc(bytes);
    if (series != NULL) {
        series->hash = point->hash;
        series->key_size = (uint32_t)point->key.size;
        series->attributes_size = (uint32_t)point->attributes.size;
        if (point->key.size > 0)
            memcpy(series->bytes, point->key.data, point->key.size);
        memcpy(series->bytes + point->key.size, point->attributes.data, point->attributes.size);
        if (!is_found || add_to_table(store, series)) {
            store->list[store->count++] = series;
            return series;
        }
    }
    mem_free(series);
    budget_return(store->budget, bytes);
    return NULL;
}

static struct exception_series *series_for(struct exception_store *store,
                                           const struct exception_point *point)
{
    static const char overflow[] = "\n\032\n\024otel.metric.overflow\022\002\020\001";
    struct exception_series *series;
    size_t at = 0;
    while ((series = hash_table_next(&store->table, point->hash, &at)) != NULL)
        if (slice_equal(slice_of(series->bytes, series->key_size), point->key))
            return series;
    if (store->series_max == 0 || store->table.count < store->series_max)
        series = create_series(store, point, true);
    if (series != NULL)
        return series;
    if (store->overflow == NULL)
        store->overflow = create_series(
            store,
            &(struct exception_point){.attributes = slice_of(overflow, sizeof(overflow) - 1)},
            false);
    return store->overflow;
}

/* Of spans without a trace there is none. */
static void add_exemplar(struct exception_store *store, struct exception_series *series,
                         const struct exception_point *point)
{
    static const uint8_t none[16];
    const size_t bytes = EXCEPTION_EXEMPLARS_MAX * sizeof(struct exception_exemplar);
    if (point->trace_id.size != sizeof(none) ||
        memcmp(point->trace_id.data, none, sizeof(none)) == 0)
        return;
    if (series->exemplars == NULL) {
        if (!budget_try_take(store->budget, bytes))
            return;
        series->exemplars = mem_try_zalloc(bytes);
        if (series->exemplars == NULL) {
            budget_return(store->budget, bytes);
            return;
        }
    }
    struct exception_exemplar *exemplar =
        &series->exemplars[series->exemplars_seen++ % EXCEPTION_EXEMPLARS_MAX];
    *exemplar = (struct exception_exemplar){.count = series->count};
    memcpy(exemplar->trace_id, point->trace_id.data, sizeof(exemplar->trace_id));
    if (point->span_id.size == sizeof(exemplar->span_id))
        memcpy(exemplar->span_id, point->span_id.data, sizeof(exemplar->span_id));
}

bool exception_store_add(struct exception_store *store, const struct exception_point *point)
{
    struct exception_series *series = series_for(store, point);
    if (series == NULL)
        return false;
    series->count++;
    if (store->has_exemplars)
        add_exemplar(store, series, point);
    return true;
}

static void put_series(struct exception_store *store, struct exception_series *series,
                       uint64_t wall_ns, struct metric_writer *writer)
{
    struct point_exemplar exemplars[EXCEPTION_EXEMPLARS_MAX];
    uint64_t seen = series->exemplars_seen;
    size_t count = seen < EXCEPTION_EXEMPLARS_MAX ? (size_t)seen : EXCEPTION_EXEMPLARS_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct exception_exemplar *from =
            &series->exemplars[(seen - count + i) % EXCEPTION_EXEMPLARS_MAX];
        exemplars[i] = (struct point_exemplar){.time_ns = wall_ns, .value = (double)from->count};
        memcpy(exemplars[i].trace_id, from->trace_id, sizeof(from->trace_id));
        memcpy(exemplars[i].span_id, from->span_id, sizeof(from->span_id));
    }
    series->exemplars_seen = 0;
    const struct point_head head = {
        .attributes = slice_of(series->bytes + series->key_size, series->attributes_size),
        .start_ns = store->start_ns,
        .time_ns = wall_ns,
        .exemplars = exemplars,
        .exemplars_count = count,
    };
    metric_writer_put_integer(writer, &head, (int64_t)series->count);
}

enum metric_piece exception_store_write(struct exception_store *store, uint64_t wall_ns, size_t *at,
                                        struct batch **ret_batch)
{
    struct metric_writer writer;
    if (*at >= store->count)
        return PIECE_END;
    metric_writer_init(&writer, store->budget);
    metric_writer_begin_resource(&writer, slice_of(NULL, 0));
    metric_writer_begin_scope(&writer, slice_of_text("exceptionsconnector"), slice_of(NULL, 0));
    metric_writer_begin_metric(&writer, &(struct metric_head){
                                            .name = slice_of_text("exceptions"),
                                            .kind = METRIC_SUM,
                                            .temporality = TEMPORALITY_CUMULATIVE,
                                            .is_monotonic = true,
                                        });
    while (*at < store->count && metric_writer_size(&writer) < METRIC_REQUEST_BYTES)
        put_series(store, store->list[(*at)++], wall_ns, &writer);
    *ret_batch = metric_writer_finish(&writer);
    metric_writer_fini(&writer);
    return *ret_batch != NULL ? PIECE_WRITTEN : PIECE_NO_ROOM;
}

void exception_store_clear(struct exception_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        struct exception_series *series = store->list[i];
        if (series->exemplars != NULL)
            budget_return(store->budget,
                          EXCEPTION_EXEMPLARS_MAX * sizeof(struct exception_exemplar));
        mem_free(series->exemplars);
        budget_return(store->budget, series_bytes(series->key_size, series->attributes_size));
        mem_free(series);
    }
    budget_return(store->budget, store->capacity * sizeof(struct exception_series *) +
                                     hash_table_bytes(&store->table));
    mem_free((void *)store->list);
    hash_table_clear(&store->table);
    store->list = NULL;
    store->count = 0;
    store->capacity = 0;
    store->overflow = NULL;
}
