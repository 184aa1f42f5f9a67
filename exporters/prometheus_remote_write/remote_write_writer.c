/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a request and adds what each data point becomes. */
#include "exporters/prometheus_remote_write/remote_write_writer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

/* The NaN that ends a series: prometheus, model/value. */
#define STALE_BITS 0x7ff0000000000002u

enum {
    NS_PER_MS = 1000 * 1000,
    EXEMPLAR_CHARACTERS_MAX = 128, /* OpenMetrics 1.0, "Exemplars" */
    /* An encoded value of more bytes has more characters than that. */
    EXEMPLAR_VALUE_BYTES_MAX = 4096,
    EXEMPLAR_TEXTS_BYTES_MAX = 64 << 20, /* each value takes a few times its bytes */
    EXEMPLAR_TEXTS_BYTES_KEPT = 64 << 10,
    SCALE_MIN = -4, /* schemas of native histograms */
    SCALE_MAX = 8,
};
static const double zero_threshold_default = 1e-128;

/* What the parts of the walk share. */
struct translation {
    const struct remote_write_settings *settings;
    struct remote_write_set *set;
    struct remote_write_losses losses;
    struct remote_write_resource resource;
    struct metric metric;
    struct scratch name; /* the metric's, with room for a suffix */
    size_t name_size;
    struct scratch bounds;                   /* struct bound, of a histogram */
    struct scratch text;                     /* encoded buckets of a native histogram; units */
    uint64_t latest_ns;                      /* of the resource */
    bool is_counted;                         /* the data point at hand, with its first series */
    struct remote_write_symbol *help, *unit; /* 2.0: of the metric, with its type */
    unsigned type;
    struct arena texts;                /* of the exemplar at hand */
    struct scratch symbols;            /* 2.0: pointers to those of a series or an exemplar */
    struct remote_write_labels labels; /* large */
};

static bool has_failed(const struct translation *translation)
{
    return translation->set->is_full || translation->set->has_no_memory;
}

static void *room(struct translation *translation, struct scratch *scratch, size_t bytes)
{
    void *memory = scratch_room(scratch, translation->set->budget, bytes);
    translation->set->has_no_memory |= memory == NULL;
    return memory;
}

static void lose(struct translation *translation, enum remote_write_loss loss, uint64_t points)
{
    static const char *const reasons[REMOTE_WRITE_LOSSES] = {
        [REMOTE_WRITE_TEMPORALITY] =
            "it is not cumulative, as Prometheus needs it; let clients send cumulative metrics",
        [REMOTE_WRITE_NAME] = "it, or a label, has no name that Prometheus could take",
        [REMOTE_WRITE_LABELS] = "it has too many labels",
        [REMOTE_WRITE_SCALE] =
            "the scale of its exponential histogram is below -4, the lowest of Prometheus",
        [REMOTE_WRITE_TYPE] = "it has no data, or is of an unknown type",
    };
    translation->losses.points[loss] += points;
    translation->losses.total += points;
    if (points == 0)
        return;
    translation->losses.reason = reasons[loss];
    translation->losses.name = translation->metric.name;
}

/* ---- series ---- */

/* Labels that repeat, or replace each other, cost work without filling the set: it is bounded, too,
 * so that the set's bytes_max says how long a translation takes. */
static void check_work(struct translation *translation)
{
    enum { WORK_PER_BYTE = 4 };
    struct remote_write_set *set = translation->set;
    set->is_full |= translation->labels.work / WORK_PER_BYTE > set->bytes_max;
}

static int64_t to_ms(uint64_t time_ns)
{
    return (int64_t)time_ns / NS_PER_MS;
}

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Version 2.0: pointers to the symbols of the whole list of labels. False: the set is full or has
 * no memory. */
static bool symbols_of_labels(struct translation *translation, struct slice *ret_symbols)
{
    const struct remote_write_labels *labels = &translation->labels;
    size_t count = 2 * labels->whole_count;
    struct remote_write_symbol **symbols =
        room(translation, &translation->symbols, count * sizeof(*symbols));
    if (symbols == NULL)
        return false;
    for (size_t i = 0; i < labels->whole_count; i++) {
        symbols[2 * i] = remote_write_set_symbol(translation->set, labels->whole[i].name);
        symbols[2 * i + 1] = remote_write_set_symbol(translation->set, labels->whole[i].value);
    }
    *ret_symbols = slice_of(symbols, count * sizeof(*symbols));
    return !has_failed(translation);
}

/* The series of the labels at hand. NULL: the set is full or has no memory. */
static struct remote_write_series *series_of(struct translation *translation, const char *suffix,
                                             const struct prometheus_label *more)
{
    struct slice key;
    size_t suffix_bytes = strlen(suffix);
    char *name = translation->name.memory;
    memcpy(name + translation->name_size, suffix, suffix_bytes);
    remote_write_labels_complete(&translation->labels,
                                 slice_of(name, translation->name_size + suffix_bytes), more);
    bool has_key = translation->settings->is_v2
                       ? symbols_of_labels(translation, &key)
                       : remote_write_labels_encode(&translation->labels, &key);
    translation->set->has_no_memory |= !has_key && !translation->set->is_full;
    if (!has_key)
        return NULL;
    check_work(translation);
    struct remote_write_series *series = remote_write_set_series(translation->set, key);
    if (series != NULL && translation->settings->is_v2 && series->help == NULL) {
        series->help = translation->help;
        series->unit = translation->unit;
        series->type = translation->type;
    }
    if (series != NULL && !translation->is_counted) {
        series->points++;
        translation->is_counted = true;
    }
    return series;
}

static struct remote_write_series *add_sample(struct translation *translation, const char *suffix,
                                              const struct prometheus_label *more,
                                              const struct metric_point *point, double value)
{
    struct remote_write_series *series = series_of(translation, suffix, more);
    if (series != NULL)
        remote_write_set_sample(translation->set, series,
                                point->is_absent ? to_double(STALE_BITS) : value,
                                to_ms(point->time_ns));
    return series;
}

/* ---- exemplars ---- */

/* Exemplar (types.proto): 1 labels, 2 value, 3 timestamp. Label: 1 name, 2 value. Written twice:
 * with a writer without room to learn the size. */
struct exemplar_writer {
    struct wire_writer *writer; /* NULL: only the size */
    size_t bytes;
};

static void exemplar_label(struct exemplar_writer *exemplar, struct slice name, struct slice value)
{
    size_t bytes = (name.size > 0 ? wire_field_size(1, name.size) : 0) +
                   (value.size > 0 ? wire_field_size(2, value.size) : 0);
    exemplar->bytes += wire_field_size(1, bytes);
    if (exemplar->writer == NULL)
        return;
    wire_write_header(exemplar->writer, 1, bytes);
    if (name.size > 0)
        wire_write_bytes(exemplar->writer, 1, name);
    if (value.size > 0)
        wire_write_bytes(exemplar->writer, 2, value);
}

static bool is_id(struct slice id)
{
    bool is_any = false;
    for (size_t i = 0; i < id.size; i++)
        is_any |= id.data[i] != 0;
    return is_any;
}

/* Adds trace_id or span_id. Returns how many characters it has. */
static size_t exemplar_id(struct exemplar_writer *writer, const char *name, struct slice id)
{
    enum { ID_BYTES_MAX = 16 };
    char text[2 * ID_BYTES_MAX];
    if (!is_id(id))
        return 0;
    assert(id.size <= ID_BYTES_MAX);
    exemplar_label(writer, slice_of_text(name), hex_write(id.data, id.size, text));
    return strlen(name) + 2 * id.size;
}

static size_t characters(struct slice text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.size; count++) {
        size_t bytes = utf8_size(slice_of(text.data + at, text.size - at));
        at += bytes > 0 ? bytes : 1;
    }
    return count;
}

/* Adds the characters of a filtered attribute to *used, and makes its value text. False: the
 * attributes are too long, and left out as a whole; or there is no memory. */
static bool exemplar_text(struct translation *translation, const struct metric_attribute *attribute,
                          size_t *used, struct slice *ret_value)
{
    *ret_value = slice_of(NULL, 0);
    if (attribute->value.size > EXEMPLAR_VALUE_BYTES_MAX)
        return false;
    if (!value_to_string(&translation->texts, attribute->value, ret_value)) {
        translation->set->has_no_memory = true;
        return false;
    }
    *used += characters(attribute->key) + characters(*ret_value);
    return *used <= EXEMPLAR_CHARACTERS_MAX;
}

/* Filtered attributes, field 7, keep their keys. */
static void exemplar_attributes(struct translation *translation, struct exemplar_writer *writer,
                                struct slice message, size_t used)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        struct metric_items items = metric_items_of(message, 7);
        struct slice bytes;
        size_t characters_used = used;
        while (metric_items_next(&items, &bytes)) {
            struct metric_attribute attribute = metric_attribute_read(bytes);
            struct slice value;
            if (!exemplar_text(translation, &attribute, &characters_used, &value))
                return;
            if (pass == 1)
                exemplar_label(writer, attribute.key, value);
        }
    }
}

static int64_t exemplar_ms(const struct metric_exemplar *exemplar)
{
    int64_t ns = exemplar->has_value ? (int64_t)exemplar->time_ns : 0;
    return ns / NS_PER_MS - (ns % NS_PER_MS < 0);
}

static void exemplar_write(struct translation *translation, struct exemplar_writer *writer,
                           struct slice message, const struct metric_exemplar *exemplar)
{
    size_t used = exemplar_id(writer, "trace_id", exemplar->trace_id) +
                  exemplar_id(writer, "span_id", exemplar->span_id);
    exemplar_attributes(translation, writer, message, used);
    int64_t ms = exemplar_ms(exemplar);
    if (to_bits(exemplar->value) != 0) {
        writer->bytes += 1 + sizeof(uint64_t);
        if (writer->writer != NULL)
            wire_write_fixed64(writer->writer, 2, to_bits(exemplar->value));
    }
    if (ms != 0) {
        writer->bytes += 1 + wire_varint_size((uint64_t)ms);
        if (writer->writer != NULL)
            wire_write_number(writer->writer, 3, (uint64_t)ms);
    }
}

/* Version 2.0: puts a label where its name belongs among those before it. */
static void insert_label(struct prometheus_label *labels, size_t *count, struct slice name,
                         struct slice value)
{
    size_t at = (*count)++;
    for (; at > 0 && slice_compare(name, labels[at - 1].name) < 0; at--)
        labels[at] = labels[at - 1];
    labels[at] = (struct prometheus_label){.name = name, .value = value};
}

enum {
    EXEMPLAR_IDS = 2,
    /* Each attribute has a character at least. */
    EXEMPLAR_LABELS_MAX = EXEMPLAR_IDS + EXEMPLAR_CHARACTERS_MAX,
    EXEMPLAR_ID_CHARACTERS = 2 * 16,
};

/* Version 2.0: filtered attributes besides the ids, left out as a whole when they are too long.
 * Those without a name and a value are none. Returns how many labels there are. */
static size_t gather_attributes(struct translation *translation, struct prometheus_label *labels,
                                size_t ids, size_t used, struct slice message)
{
    struct metric_items items = metric_items_of(message, 7);
    struct slice bytes;
    size_t count = ids;
    struct prometheus_label of_ids[EXEMPLAR_IDS];
    memcpy(of_ids, labels, ids * sizeof(*labels));
    while (metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        struct slice value;
        bool is_id = false;
        for (size_t i = 0; i < ids; i++)
            is_id |= slice_equal(attribute.key, of_ids[i].name);
        if (is_id)
            continue;
        if (!exemplar_text(translation, &attribute, &used, &value)) {
            memcpy(labels, of_ids, ids * sizeof(*labels));
            return ids;
        }
        if (attribute.key.size + value.size > 0)
            insert_label(labels, &count, attribute.key, value);
    }
    return count;
}

/* Version 2.0: labels are sorted; an attribute named as an id that is there is left out. */
static void add_sampling(struct translation *translation, struct remote_write_series *series,
                         struct slice message, const struct metric_exemplar *exemplar)
{
    struct prometheus_label labels[EXEMPLAR_LABELS_MAX];
    char texts[EXEMPLAR_IDS][EXEMPLAR_ID_CHARACTERS];
    const struct {
        struct slice name;
        struct slice id;
    } ids[EXEMPLAR_IDS] = {{slice_of_text("trace_id"), exemplar->trace_id},
                           {slice_of_text("span_id"), exemplar->span_id}};
    size_t count = 0;
    size_t used = 0;
    for (size_t i = 0; i < EXEMPLAR_IDS; i++) {
        if (!is_id(ids[i].id))
            continue;
        assert(2 * ids[i].id.size <= EXEMPLAR_ID_CHARACTERS);
        used += ids[i].name.size + 2 * ids[i].id.size;
        insert_label(labels, &count, ids[i].name,
                     hex_write(ids[i].id.data, ids[i].id.size, texts[i]));
    }
    count = gather_attributes(translation, labels, count, used, message);
    struct remote_write_exemplar *sampling =
        remote_write_set_exemplar(translation->set, series, 2 * count);
    if (sampling == NULL)
        return;
    sampling->value = exemplar->value;
    sampling->time_ms = exemplar_ms(exemplar);
    for (size_t i = 0; i < count; i++) {
        sampling->symbols[2 * i] = remote_write_set_symbol(translation->set, labels[i].name);
        sampling->symbols[2 * i + 1] = remote_write_set_symbol(translation->set, labels[i].value);
    }
}

static void add_exemplar(struct translation *translation, struct remote_write_series *series,
                         struct slice message, const struct metric_exemplar *exemplar)
{
    if (translation->texts.used_bytes > EXEMPLAR_TEXTS_BYTES_KEPT)
        arena_clear(&translation->texts);
    if (translation->settings->is_v2) {
        add_sampling(translation, series, message, exemplar);
        return;
    }
    struct exemplar_writer sizes = {.writer = NULL};
    exemplar_write(translation, &sizes, message, exemplar);
    uint8_t *memory =
        remote_write_set_message(translation->set, series, REMOTE_WRITE_EXEMPLAR, sizes.bytes);
    if (memory == NULL)
        return;
    struct wire_writer writer = wire_writer_of(memory, sizes.bytes);
    struct exemplar_writer whole = {.writer = &writer};
    exemplar_write(translation, &whole, message, exemplar);
    assert(has_failed(translation) || wire_written(&writer).size == sizes.bytes);
}

static void add_exemplars(struct translation *translation, struct remote_write_series *series,
                          const struct metric_point *point)
{
    struct metric_items items = metric_items_of(point->bytes, metric_point_exemplars(point->kind));
    struct slice bytes;
    while (!has_failed(translation) && metric_items_next(&items, &bytes)) {
        struct metric_exemplar exemplar = metric_exemplar_read(bytes);
        add_exemplar(translation, series, bytes, &exemplar);
    }
}

/* ---- gauges, sums, summaries ---- */

static void add_number(struct translation *translation, const struct metric_point *point)
{
    struct remote_write_series *series =
        add_sample(translation, "", NULL, point, metric_point_value(point));
    bool is_counter = translation->metric.kind == METRIC_SUM && translation->metric.is_monotonic;
    if (series != NULL && (is_counter || translation->settings->is_v2))
        add_exemplars(translation, series, point);
}

static struct prometheus_label number_label(const char *name, double number,
                                            char text[DOUBLE_STRING_BYTES_MAX])
{
    return (struct prometheus_label){.name = slice_of_text(name),
                                     .value = slice_of(text, double_to_decimal(number, text))};
}

static void add_summary(struct translation *translation, const struct metric_point *point)
{
    struct metric_items items = metric_items_of(point->bytes, 6);
    struct slice bytes;
    char text[DOUBLE_STRING_BYTES_MAX];
    add_sample(translation, "_sum", NULL, point, point->sum);
    add_sample(translation, "_count", NULL, point, (double)point->count);
    while (!has_failed(translation) && metric_items_next(&items, &bytes)) {
        struct metric_quantile quantile = metric_quantile_read(bytes);
        struct prometheus_label label = number_label("quantile", quantile.quantile, text);
        add_sample(translation, "", &label, point, quantile.value);
    }
}

/* ---- histograms ---- */

/* A bucket and its series. */
struct bound {
    double bound;
    struct remote_write_series *series;
};

static int compare_bounds(const void *a, const void *b)
{
    const struct bound *left = a;
    const struct bound *right = b;
    return (left->bound > right->bound) - (left->bound < right->bound);
}

/* Each exemplar goes to the first bucket that it fits in. */
static void add_bucket_exemplars(struct translation *translation, const struct metric_point *point,
                                 struct bound *bounds, size_t count)
{
    struct metric_items items = metric_items_of(point->bytes, metric_point_exemplars(point->kind));
    struct slice bytes;
    bool is_sorted = false;
    while (!has_failed(translation) && metric_items_next(&items, &bytes)) {
        struct metric_exemplar exemplar = metric_exemplar_read(bytes);
        if (!is_sorted)
            qsort(bounds, count, sizeof(*bounds), compare_bounds);
        is_sorted = true;
        if (isnan(exemplar.value))
            continue;
        size_t low = 0;
        size_t high = count - 1;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (exemplar.value <= bounds[middle].bound)
                high = middle;
            else
                low = middle + 1;
        }
        add_exemplar(translation, bounds[low].series, bytes, &exemplar);
    }
}

static void add_histogram(struct translation *translation, const struct metric_point *point)
{
    struct metric_numbers bounds = metric_bounds(point);
    struct metric_numbers counts = metric_counts(point);
    size_t bounds_count = metric_numbers_count(bounds);
    struct bound *list =
        room(translation, &translation->bounds, (bounds_count + 1) * sizeof(*list));
    char text[DOUBLE_STRING_BYTES_MAX];
    size_t used = 0;
    uint64_t total = 0;
    uint64_t bits;
    uint64_t count;
    if (point->has_sum)
        add_sample(translation, "_sum", NULL, point, point->sum);
    add_sample(translation, "_count", NULL, point, (double)point->count);
    while (!has_failed(translation) && metric_numbers_next(&bounds, &bits) &&
           metric_numbers_next(&counts, &count)) {
        struct bound *bound = &list[used++];
        total += count;
        bound->bound = to_double(bits);
        struct prometheus_label label = number_label("le", bound->bound, text);
        bound->series = add_sample(translation, "_bucket", &label, point, (double)total);
    }
    static const char last[] = "+Inf";
    const struct prometheus_label label = {slice_of_text("le"), slice_of_text(last)};
    if (has_failed(translation))
        return;
    list[used].bound = INFINITY;
    list[used++].series = add_sample(translation, "_bucket", &label, point, (double)point->count);
    if (!has_failed(translation))
        add_bucket_exemplars(translation, point, list, used);
}

/* ---- exponential histograms ---- */

/* One side of a native histogram: spans and deltas (types.proto, Histogram), packed and encoded. */
struct side {
    struct wire_writer spans; /* with their tags */
    struct wire_writer deltas;
    uint32_t spans_number;
    uint64_t previous; /* count of the last bucket */
    int64_t gap;       /* of the span at hand */
    uint32_t length;
    int64_t free; /* the index behind the last bucket */
};

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/* BucketSpan: 1 offset, 2 length. */
static void end_span(struct side *side)
{
    uint64_t offset = zigzag((int32_t)side->gap);
    size_t bytes = (offset != 0 ? 1 + wire_varint_size(offset) : 0) +
                   (side->length != 0 ? 1 + wire_varint_size(side->length) : 0);
    wire_write_header(&side->spans, side->spans_number, bytes);
    if (offset != 0)
        wire_write_number(&side->spans, 1, offset);
    if (side->length != 0)
        wire_write_number(&side->spans, 2, side->length);
}

static void add_delta(struct side *side, uint64_t count)
{
    wire_write_varint(&side->deltas, zigzag((int64_t)(count - side->previous)));
    side->previous = count;
    side->length++;
    side->free++;
}

/* A short gap is filled with empty buckets. */
static void add_bucket(struct side *side, int64_t index, uint64_t count)
{
    enum { GAP_MAX = 2 };
    if (index - side->free > GAP_MAX) {
        end_span(side);
        side->gap = index - side->free;
        side->length = 0;
        side->free = index;
    }
    while (side->free < index)
        add_delta(side, 0);
    add_delta(side, count);
}

/* OTLP's bucket i ends where Prometheus's bucket i + 1 does. With shift, 2^shift buckets become
 * one. Empty buckets in front stay as a gap, the last bucket is there even when it is empty. */
static void add_side(struct side *side, struct slice buckets, unsigned shift)
{
    struct metric_numbers counts = metric_buckets_counts(buckets);
    int64_t at = metric_buckets_offset(buckets);
    int64_t index = (at >> shift) + 1;
    uint64_t sum = 0;
    uint64_t count;
    if (metric_numbers_count(counts) == 0)
        return;
    side->gap = side->free = index;
    for (; metric_numbers_next(&counts, &count); at++) {
        int64_t next = (at >> shift) + 1;
        if (next != index && sum != 0) {
            add_bucket(side, index, sum);
            sum = 0;
        }
        index = next;
        sum += count;
    }
    add_bucket(side, index, sum);
    end_span(side);
}

/* Room for a side: a count is a byte of the request at least. */
static size_t side_bytes_max(struct slice buckets)
{
    enum { SPAN_BYTES_MAX = 16 };
    return (metric_numbers_count(metric_buckets_counts(buckets)) + 2) *
           (SPAN_BYTES_MAX + (1 + 2) * WIRE_VARINT_BYTES_MAX);
}

static void begin_side(struct side *side, uint8_t **memory, struct slice buckets, uint32_t number)
{
    size_t half = side_bytes_max(buckets) / 2;
    *side = (struct side){.spans_number = number};
    side->spans = wire_writer_of(*memory, half);
    side->deltas = wire_writer_of(*memory + half, half);
    *memory += 2 * half;
}

static size_t written_side(const struct side *side)
{
    struct slice deltas = wire_written(&side->deltas);
    return wire_written(&side->spans).size +
           (deltas.size > 0 ? wire_field_size(side->spans_number + 1, deltas.size) : 0);
}

static void write_side(struct wire_writer *writer, const struct side *side)
{
    struct slice deltas = wire_written(&side->deltas);
    wire_write_raw(writer, wire_written(&side->spans));
    if (deltas.size > 0)
        wire_write_bytes(writer, side->spans_number + 1, deltas);
}

/* Histogram: 1 count, 3 sum, 4 schema, 5 zero threshold, 6 zero count, 8 and 9 negative spans and
 * deltas, 11 and 12 positive ones, 15 timestamp. The reset hint stays unknown. */
static void add_exponential(struct translation *translation, const struct metric_point *point)
{
    enum { NEGATIVE = 8, POSITIVE = 11, HEAD_BYTES_MAX = 64 };
    struct side negative;
    struct side positive;
    uint8_t head[HEAD_BYTES_MAX];
    uint8_t tail[1 + WIRE_VARINT_BYTES_MAX];
    unsigned shift = point->scale > SCALE_MAX ? (unsigned)(point->scale - SCALE_MAX) : 0;
    int32_t scale = shift > 0 ? SCALE_MAX : point->scale;
    uint8_t *memory = room(translation, &translation->text,
                           side_bytes_max(point->negative) + side_bytes_max(point->positive));
    if (memory == NULL)
        return;
    shift = shift < 32 ? shift : 32; /* every index is 0 or -1 then */
    begin_side(&negative, &memory, point->negative, NEGATIVE);
    begin_side(&positive, &memory, point->positive, POSITIVE);
    add_side(&negative, point->negative, shift);
    add_side(&positive, point->positive, shift);
    struct wire_writer first = wire_writer_of(head, sizeof(head));
    struct wire_writer last = wire_writer_of(tail, sizeof(tail));
    double threshold = point->zero_threshold != 0 ? point->zero_threshold : zero_threshold_default;
    uint64_t sum = point->is_absent ? STALE_BITS : point->has_sum ? to_bits(point->sum) : 0;
    wire_write_number(&first, 1, point->is_absent ? STALE_BITS : point->count);
    if (sum != 0)
        wire_write_fixed64(&first, 3, sum);
    if (scale != 0)
        wire_write_number(&first, 4, zigzag(scale));
    wire_write_fixed64(&first, 5, to_bits(threshold));
    wire_write_number(&first, 6, point->zero_count);
    if (to_ms(point->time_ns) != 0)
        wire_write_number(&last, 15, (uint64_t)to_ms(point->time_ns));
    size_t bytes = wire_written(&first).size + written_side(&negative) + written_side(&positive) +
                   wire_written(&last).size;
    struct remote_write_series *series = series_of(translation, "", NULL);
    uint8_t *message = series != NULL ? remote_write_set_message(translation->set, series,
                                                                 REMOTE_WRITE_HISTOGRAM, bytes)
                                      : NULL;
    if (message == NULL)
        return;
    struct wire_writer writer = wire_writer_of(message, bytes);
    wire_write_raw(&writer, wire_written(&first));
    write_side(&writer, &negative);
    write_side(&writer, &positive);
    wire_write_raw(&writer, wire_written(&last));
    assert(wire_written(&writer).size == bytes);
    add_exemplars(translation, series, point);
}

/* ---- the walk ---- */

static void add_point(struct translation *translation, const struct metric_point *point)
{
    struct remote_write_labels *labels = &translation->labels;
    remote_write_labels_of_point(labels, &translation->resource, point);
    translation->is_counted = false;
    check_work(translation);
    if (labels->failure != NULL) {
        translation->set->has_no_memory |= labels->is_memory;
        translation->set->is_full |= labels->is_too_large;
        lose(translation, labels->are_too_many ? REMOTE_WRITE_LABELS : REMOTE_WRITE_NAME, 1);
        return;
    }
    switch (point->kind) {
    case METRIC_GAUGE:
    case METRIC_SUM:
        add_number(translation, point);
        break;
    case METRIC_HISTOGRAM:
        add_histogram(translation, point);
        break;
    case METRIC_EXPONENTIAL:
        if (point->scale < SCALE_MIN)
            lose(translation, REMOTE_WRITE_SCALE, 1);
        else
            add_exponential(translation, point);
        break;
    case METRIC_SUMMARY:
        add_summary(translation, point);
        break;
    case METRIC_NONE:
    default:
        break;
    }
}

/* Sets the name. False: there is none, or no memory. */
static bool name_metric(struct translation *translation)
{
    enum { SUFFIX_BYTES_MAX = 8 };
    const struct prometheus_naming *naming = &translation->settings->naming;
    char *name = room(translation, &translation->name,
                      prometheus_metric_name_max(naming, &translation->metric) + SUFFIX_BYTES_MAX);
    if (name == NULL)
        return false;
    translation->name_size = prometheus_metric_name(naming, &translation->metric, name);
    return translation->name_size > 0;
}

/* The type that receivers of Prometheus note in the metric's metadata, field 12. */
static struct slice noted_type(struct slice metric)
{
    struct metric_items items = metric_items_of(metric, 12);
    struct slice bytes;
    while (metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (!slice_equal_text(attribute.key, "prometheus.type"))
            continue;
        struct value value = value_read(attribute.value);
        return value.type == VALUE_STRING ? value.bytes : (struct slice){0};
    }
    return (struct slice){0};
}

/* MetricMetadata.MetricType; version 2.0 has the same numbers. */
enum prometheus_type {
    PROMETHEUS_UNKNOWN = 0,
    PROMETHEUS_COUNTER = 1,
    PROMETHEUS_GAUGE = 2,
    PROMETHEUS_HISTOGRAM = 3,
    PROMETHEUS_SUMMARY = 5,
    PROMETHEUS_INFO = 6,
    PROMETHEUS_STATES = 7,
};

static unsigned type_of(const struct metric *metric, struct slice bytes)
{
    struct slice noted = noted_type(bytes);
    switch (metric->kind) {
    case METRIC_GAUGE:
        return slice_equal_text(noted, "unknown") ? PROMETHEUS_UNKNOWN : PROMETHEUS_GAUGE;
    case METRIC_SUM:
        return metric->is_monotonic                  ? PROMETHEUS_COUNTER
               : slice_equal_text(noted, "info")     ? PROMETHEUS_INFO
               : slice_equal_text(noted, "stateset") ? PROMETHEUS_STATES
                                                     : PROMETHEUS_GAUGE;
    case METRIC_HISTOGRAM:
    case METRIC_EXPONENTIAL:
        return PROMETHEUS_HISTOGRAM;
    case METRIC_SUMMARY:
        return PROMETHEUS_SUMMARY;
    case METRIC_NONE:
    default:
        return PROMETHEUS_UNKNOWN;
    }
}

/* Version 2.0: of the series that follow. */
static void note_metadata(struct translation *translation, unsigned type, struct slice help,
                          struct slice unit)
{
    const struct prometheus_naming *naming = &translation->settings->naming;
    char *text = room(translation, &translation->text, prometheus_unit_max(unit));
    if (text == NULL)
        return;
    translation->type = type;
    translation->help = remote_write_set_symbol(translation->set, help);
    translation->unit = remote_write_set_symbol(
        translation->set, slice_of(text, prometheus_unit(naming, unit, text)));
}

static void add_metric(struct translation *translation, struct slice encoded)
{
    const struct metric *metric = &translation->metric;
    struct metric_items points = metric_items_of(metric->data, 1);
    struct slice bytes;
    enum remote_write_loss loss = REMOTE_WRITE_LOSSES;
    if (metric->kind == METRIC_NONE)
        return;
    if (metric->kind != METRIC_GAUGE && metric->kind != METRIC_SUMMARY &&
        metric->temporality != TEMPORALITY_CUMULATIVE)
        loss = REMOTE_WRITE_TEMPORALITY;
    else if (!name_metric(translation))
        loss = REMOTE_WRITE_NAME;
    else if (translation->settings->is_v2)
        note_metadata(translation, type_of(metric, encoded), metric->description, metric->unit);
    while (!has_failed(translation) && metric_items_next(&points, &bytes)) {
        struct metric_point point = metric_point_read(metric->kind, bytes);
        if (point.time_ns > translation->latest_ns)
            translation->latest_ns = point.time_ns;
        if (loss == REMOTE_WRITE_LOSSES)
            add_point(translation, &point);
        else
            lose(translation, loss, 1);
    }
}

/* MetricMetadata: 1 type, 2 metric_family_name, 4 help, 5 unit. */
static void add_metadata(struct translation *translation, struct slice metric)
{
    char *text =
        room(translation, &translation->text, prometheus_unit_max(translation->metric.unit));
    if (text == NULL || !name_metric(translation))
        return;
    const struct slice texts[] = {slice_of(translation->name.memory, translation->name_size),
                                  translation->metric.description,
                                  slice_of(text, prometheus_unit(&translation->settings->naming,
                                                                 translation->metric.unit, text))};
    static const uint32_t numbers[] = {2, 4, 5};
    unsigned type = type_of(&translation->metric, metric);
    size_t bytes = type != 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        bytes += texts[i].size > 0 ? wire_field_size(numbers[i], texts[i].size) : 0;
    uint8_t *message =
        remote_write_set_message(translation->set, NULL, REMOTE_WRITE_METADATA, bytes);
    if (message == NULL)
        return;
    struct wire_writer writer = wire_writer_of(message, bytes);
    if (type != 0)
        wire_write_number(&writer, 1, type);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (texts[i].size > 0)
            wire_write_bytes(&writer, numbers[i], texts[i]);
}

/* The namespace stays as it was configured. */
static void add_target_info(struct translation *translation)
{
    static const char suffix[] = "target_info";
    const char *space = translation->settings->naming.name_space;
    struct remote_write_labels *labels = &translation->labels;
    if (!translation->settings->has_target_info || translation->latest_ns == 0 ||
        translation->resource.others == 0 || has_failed(translation))
        return;
    remote_write_labels_of_target(labels, &translation->resource);
    translation->set->has_no_memory |= labels->is_memory;
    translation->set->is_full |= labels->is_too_large;
    size_t space_bytes = strlen(space);
    char *name = room(translation, &translation->name, space_bytes + 1 + sizeof(suffix));
    if (labels->failure != NULL || !labels->has_target || name == NULL)
        return;
    memcpy(name, space, space_bytes);
    if (space_bytes > 0)
        name[space_bytes++] = '_';
    translation->name_size = space_bytes;
    translation->is_counted = true;
    if (translation->settings->is_v2)
        note_metadata(translation, PROMETHEUS_GAUGE, slice_of_text("Target metadata"),
                      (struct slice){0});
    const struct metric_point point = {.time_ns = translation->latest_ns};
    add_sample(translation, suffix, NULL, &point, 1);
}

/* ResourceMetrics: 1 resource, 2 scope_metrics. ScopeMetrics: 1 scope, 2 metrics. */
static struct slice last_of(struct slice message, uint32_t number)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    struct slice last = {0};
    while (metric_items_next(&items, &bytes))
        last = bytes;
    return last;
}

static void add_resource(struct translation *translation, struct slice message)
{
    struct metric_items scopes = metric_items_of(message, 2);
    struct slice scope;
    struct slice metric;
    translation->resource = remote_write_resource_of(last_of(message, 1));
    remote_write_labels_begin_resource(&translation->labels, &translation->resource);
    translation->latest_ns = 0;
    while (!has_failed(translation) && metric_items_next(&scopes, &scope)) {
        struct metric_items metrics = metric_items_of(scope, 2);
        remote_write_labels_begin_scope(&translation->labels, last_of(scope, 1));
        while (!has_failed(translation) && metric_items_next(&metrics, &metric)) {
            translation->metric = metric_read(metric);
            add_metric(translation, metric);
            if (translation->settings->has_metadata && !translation->settings->is_v2)
                add_metadata(translation, metric);
        }
    }
    add_target_info(translation);
}

enum remote_write_result remote_write_translate(struct slice request,
                                                const struct remote_write_settings *settings,
                                                struct remote_write_set *set,
                                                struct remote_write_losses *ret_losses)
{
    struct metric_items resources = metric_items_of(request, 1);
    struct slice resource;
    *ret_losses = (struct remote_write_losses){.reason = NULL};
    struct scratch memory = {.memory = NULL};
    struct translation *translation = scratch_room(&memory, set->budget, sizeof(*translation));
    if (translation == NULL)
        return REMOTE_WRITE_NO_MEMORY;
    translation->settings = settings;
    translation->set = set;
    set->is_v2 = settings->is_v2;
    remote_write_labels_init(&translation->labels, &settings->labels, set->budget);
    arena_init_charged(&translation->texts, EXEMPLAR_TEXTS_BYTES_MAX, set->budget);
    while (!has_failed(translation) && metric_items_next(&resources, &resource))
        add_resource(translation, resource);
    *ret_losses = translation->losses;
    remote_write_labels_fini(&translation->labels);
    arena_clear(&translation->texts);
    scratch_fini(&translation->name, set->budget);
    scratch_fini(&translation->bounds, set->budget);
    scratch_fini(&translation->text, set->budget);
    scratch_fini(&translation->symbols, set->budget);
    scratch_fini(&memory, set->budget);
    return set->is_full         ? REMOTE_WRITE_TOO_LARGE
           : set->has_no_memory ? REMOTE_WRITE_NO_MEMORY
                                : REMOTE_WRITE_TRANSLATED;
}
