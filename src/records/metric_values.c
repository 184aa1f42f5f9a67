/* SPDX-License-Identifier: Apache-2.0 */
/* Data points by their field numbers, which differ by kind. Runs on the owner's thread. */
#include "src/records/metric_values.h"

#include <assert.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/otlp/wire.h"
#include "src/records/record_edit.h"
#include "src/records/record_limits.h"

enum {
    START = 2,
    TIME = 3,
    /* NumberDataPoint */
    AS_DOUBLE = 4,
    AS_INT = 6,
    NUMBER_FLAGS = 8,
    /* HistogramDataPoint, and the first two of ExponentialHistogramDataPoint */
    COUNT = 4,
    SUM = 5,
    BUCKET_COUNTS = 6,
    BOUNDS = 7,
    HISTOGRAM_FLAGS = 10,
    HISTOGRAM_MIN = 11,
    HISTOGRAM_MAX = 12,
    /* ExponentialHistogramDataPoint */
    SCALE = 6,
    ZERO_COUNT = 7,
    POSITIVE = 8,
    NEGATIVE = 9,
    EXPONENTIAL_MIN = 12,
    EXPONENTIAL_MAX = 13,
    ZERO_THRESHOLD = 14,
    /* Buckets */
    OFFSET = 1,
    COUNTS = 2,
    ABSENT = 1, /* bit of flags */
};

static double real_of(uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof(real));
    return real;
}

static uint64_t bits_of(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static bool read_numbers(struct arena *arena, struct metric_numbers numbers, size_t *ret_count,
                         uint64_t **ret_numbers)
{
    size_t count = metric_numbers_count(numbers);
    *ret_count = count;
    *ret_numbers = NULL;
    if (count == 0)
        return true;
    *ret_numbers = arena_try_alloc(arena, count * sizeof(**ret_numbers));
    for (size_t i = 0; *ret_numbers != NULL && i < count; i++)
        metric_numbers_next(&numbers, &(*ret_numbers)[i]);
    return *ret_numbers != NULL;
}

static bool read_buckets(struct arena *arena, struct slice bytes,
                         struct metric_buckets *ret_buckets)
{
    ret_buckets->offset = metric_buckets_offset(bytes);
    return read_numbers(arena, metric_buckets_counts(bytes), &ret_buckets->count,
                        &ret_buckets->counts);
}

static void read_field(struct metric_values *values, const struct wire_field *field)
{
    bool is_exponential = values->kind == METRIC_EXPONENTIAL;
    uint64_t bits = field->number_value;
    if (values->kind == METRIC_SUM) {
        if (field->number == AS_DOUBLE || field->number == AS_INT) {
            values->number = field->number == AS_INT ? METRIC_INTEGER : METRIC_REAL;
            values->integer = field->number == AS_INT ? (int64_t)bits : 0;
            values->real = field->number == AS_INT ? 0 : real_of(bits);
        }
        if (field->number == NUMBER_FLAGS)
            values->is_absent = (bits & ABSENT) != 0;
        return;
    }
    if (field->number == SUM) {
        values->has_sum = true;
        values->sum = real_of(bits);
    } else if (field->number == HISTOGRAM_FLAGS) {
        values->is_absent = (bits & ABSENT) != 0;
    } else if (field->number == (is_exponential ? EXPONENTIAL_MIN : HISTOGRAM_MIN)) {
        values->has_min = true;
        values->min = real_of(bits);
    } else if (field->number == (is_exponential ? EXPONENTIAL_MAX : HISTOGRAM_MAX)) {
        values->has_max = true;
        values->max = real_of(bits);
    }
}

enum { ARENA_KEPT_BYTES = 4096 };

void metric_values_arena_init(struct arena *arena, struct budget *budget)
{
    arena_init_charged(arena, RECORD_VALUES_BYTES_MAX, budget);
    arena->may_exceed = true;
}

void metric_values_next(struct arena *arena)
{
    if (arena->used_bytes > ARENA_KEPT_BYTES)
        arena_clear(arena);
}

uint64_t metric_values_bytes_max(enum metric_kind kind, uint64_t point_bytes, uint64_t sum_bytes)
{
    enum {
        /* A count of one byte is a word in the values, and one in the copy. Other numbers have
         * eight bytes, and are put from where they are. */
        WORDS_PART = sizeof(uint64_t),
        PACKED_PART = 1,
        FIXED_PART = 2,
        /* The rest of a chunk, which is at most as large as what came before. */
        SPARE_BYTES_MAX = 64 * 1024,
    };
    if (kind != METRIC_HISTOGRAM && kind != METRIC_EXPONENTIAL)
        return 0;
    uint64_t bytes = FIXED_PART * point_bytes;
    if (kind == METRIC_EXPONENTIAL)
        bytes = (WORDS_PART + PACKED_PART) * point_bytes +
                (sum_bytes > 0 ? sum_bytes : WORDS_PART * point_bytes);
    return bytes + (bytes < SPARE_BYTES_MAX ? bytes : SPARE_BYTES_MAX) + 2 * ARENA_KEPT_BYTES;
}

bool metric_values_read(struct arena *arena, enum metric_kind kind, struct slice bytes,
                        struct metric_values *ret_values)
{
    const struct metric_point point = metric_point_read(kind, bytes);
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    *ret_values = (struct metric_values){
        .kind = kind,
        .start_ns = point.start_ns,
        .time_ns = point.time_ns,
        .count = point.count,
        .scale = point.scale,
        .zero_count = point.zero_count,
        .zero_threshold = point.zero_threshold,
    };
    while (wire_next_field(&reader, &field)) {
        read_field(ret_values, &field);
        ret_values->fields++;
    }
    if (kind == METRIC_HISTOGRAM) {
        uint64_t *bounds;
        if (!read_numbers(arena, metric_counts(&point), &ret_values->counts_count,
                          &ret_values->counts) ||
            !read_numbers(arena, metric_bounds(&point), &ret_values->bounds_count, &bounds))
            return false;
        ret_values->bounds = (double *)bounds;
    }
    return kind != METRIC_EXPONENTIAL ||
           (read_buckets(arena, point.positive, &ret_values->positive) &&
            read_buckets(arena, point.negative, &ret_values->negative));
}

/* ---- Writing ---- */

/* Values of fields while they are listed. */
struct listing {
    struct arena *arena;
    struct record_value values[RECORD_VALUES_MAX];
    size_t count;
    uint64_t bytes;  /* that they take at most */
    bool has_failed; /* the arena has no room */
};

/* proto3 leaves out zeros, but of optional fields. */
static void list_bits(struct listing *listing, uint32_t number, enum record_value_kind kind,
                      uint64_t bits, bool is_there)
{
    listing->values[listing->count++] = (struct record_value){
        .number = number, .kind = is_there ? kind : RECORD_GONE, .bits = bits};
    listing->bytes += 1 + WIRE_VARINT_BYTES_MAX;
}

static void list_bytes(struct listing *listing, uint32_t number, struct slice bytes)
{
    listing->values[listing->count++] = (struct record_value){
        .number = number, .kind = bytes.size > 0 ? RECORD_BYTES : RECORD_GONE, .bytes = bytes};
    listing->bytes += wire_field_size(number, bytes.size);
}

/* Little endian, as this machine is. */
static struct slice packed_fixed(const void *numbers, size_t count)
{
    return slice_of(numbers, count * sizeof(uint64_t));
}

static uint64_t zigzag(int32_t number)
{
    return (uint32_t)number << 1 ^ (uint32_t)(number >> 31);
}

static struct slice pack_buckets(struct listing *listing, const struct metric_buckets *buckets)
{
    size_t packed = 0;
    for (size_t i = 0; i < buckets->count; i++)
        packed += wire_varint_size(buckets->counts[i]);
    size_t bytes = 1 + WIRE_VARINT_BYTES_MAX + wire_field_size(COUNTS, packed);
    uint8_t *room = arena_try_alloc(listing->arena, bytes);
    if (room == NULL) {
        listing->has_failed = true;
        return slice_of(NULL, 0);
    }
    struct wire_writer writer = wire_writer_of(room, bytes);
    if (buckets->offset != 0)
        wire_write_number(&writer, OFFSET, zigzag(buckets->offset));
    if (buckets->count > 0)
        wire_write_header(&writer, COUNTS, packed);
    for (size_t i = 0; i < buckets->count; i++)
        wire_write_varint(&writer, buckets->counts[i]);
    return wire_written(&writer);
}

static void list_histogram(struct listing *listing, const struct metric_values *values)
{
    bool is_exponential = values->kind == METRIC_EXPONENTIAL;
    list_bits(listing, COUNT, RECORD_FIXED64, values->count, values->count != 0);
    list_bits(listing, SUM, RECORD_FIXED64, bits_of(values->sum), values->has_sum);
    list_bits(listing, is_exponential ? EXPONENTIAL_MIN : HISTOGRAM_MIN, RECORD_FIXED64,
              bits_of(values->min), values->has_min);
    list_bits(listing, is_exponential ? EXPONENTIAL_MAX : HISTOGRAM_MAX, RECORD_FIXED64,
              bits_of(values->max), values->has_max);
    if (!is_exponential) {
        list_bytes(listing, BUCKET_COUNTS, packed_fixed(values->counts, values->counts_count));
        list_bytes(listing, BOUNDS, packed_fixed(values->bounds, values->bounds_count));
        return;
    }
    list_bits(listing, SCALE, RECORD_VARINT, zigzag(values->scale), values->scale != 0);
    list_bits(listing, ZERO_COUNT, RECORD_FIXED64, values->zero_count, values->zero_count != 0);
    list_bits(listing, ZERO_THRESHOLD, RECORD_FIXED64, bits_of(values->zero_threshold),
              bits_of(values->zero_threshold) != 0);
    list_bytes(listing, POSITIVE, pack_buckets(listing, &values->positive));
    list_bytes(listing, NEGATIVE, pack_buckets(listing, &values->negative));
}

bool metric_values_put(struct record_edit *edit, struct arena *arena,
                       const struct metric_values *values, const struct wire_field *point)
{
    enum { HEADER_BYTES = 1 + WIRE_VARINT_BYTES_MAX };
    struct listing listing = {.arena = arena, .bytes = HEADER_BYTES};
    list_bits(&listing, START, RECORD_FIXED64, values->start_ns, values->start_ns != 0);
    list_bits(&listing, TIME, RECORD_FIXED64, values->time_ns, values->time_ns != 0);
    if (values->kind == METRIC_SUM) {
        list_bits(&listing, AS_DOUBLE, RECORD_FIXED64, bits_of(values->real),
                  values->number == METRIC_REAL);
        list_bits(&listing, AS_INT, RECORD_FIXED64, (uint64_t)values->integer,
                  values->number == METRIC_INTEGER);
    } else {
        list_histogram(&listing, values);
    }
    /* Its header, new fields, and those that are there, more than once perhaps. */
    const size_t changes = 1 + listing.count + values->fields;
    if (listing.has_failed || !record_edit_has_room(edit, changes, listing.bytes))
        return false;
    size_t opened = record_open(edit, point);
    record_put_values(edit, point->bytes, listing.values, listing.count);
    record_close(edit, opened, point);
    return true;
}
