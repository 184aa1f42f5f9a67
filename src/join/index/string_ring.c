/* SPDX-License-Identifier: Apache-2.0 */
/* The writer moves the tail before it overwrites; every word is stored with release and loaded with
 * acquire, so that a reader of a newer word sees the newer tail, too. One writer, readers on any
 * thread. */
#include "src/join/index/string_ring.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/slice.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/pprof/otlp_text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SLOTS_PER_BUCKET = 8,
    WORDS_PER_SLOT = 32, /* of the ring */
    FIELD_ABSENT = 0xffff,
    HEADER_BYTES = 2,
};

bool string_ring_init(struct string_ring *ring, uint64_t bytes)
{
    assert(bytes >= STRING_RING_BYTES_MIN);
    uint64_t words = bytes / sizeof(uint64_t);
    uint32_t slots = SLOTS_PER_BUCKET;
    while (slots < words / WORDS_PER_SLOT && slots < UINT32_MAX / 2)
        slots *= 2;
    if (slots > SLOTS_PER_BUCKET)
        slots /= 2; /* a power of two */
    *ring = (struct string_ring){.slots_count = slots, .head = 1, .head_at = 1};
    ring->capacity = words - slots * sizeof(struct string_slot) / sizeof(uint64_t);
    assert(ring->capacity > 4 * RECORD_WORDS_MAX);
    assert(ring->capacity < UINT32_MAX / 2);
    ring->seed = (uint64_t)(random_uniform() * 0x1p53);
    atomic_init(&ring->tail, 1);
    ring->words = mem_try_zalloc(ring->capacity * sizeof(ring->words[0]));
    ring->slots = mem_try_zalloc(slots * sizeof(ring->slots[0]));
    if (ring->words != NULL && ring->slots != NULL)
        return true;
    string_ring_fini(ring);
    return false;
}

void string_ring_fini(struct string_ring *ring)
{
    mem_free((void *)(uintptr_t)ring->words);
    mem_free(ring->slots);
    ring->words = NULL;
    ring->slots = NULL;
}

static uint64_t words_of(uint32_t bytes)
{
    assert(bytes <= RECORD_WORDS_MAX * sizeof(uint64_t));
    return 1 + (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/* Whether the words at that place were not overwritten yet. */
static bool is_kept(const struct string_ring *ring, uint32_t place, uint64_t tail)
{
    return place != STRING_NOWHERE && (uint32_t)(place - (uint32_t)tail) < ring->capacity;
}

bool string_ring_has(const struct string_ring *ring, uint32_t place)
{
    return is_kept(ring, place, atomic_load_explicit(&ring->tail, memory_order_acquire));
}

bool string_ring_read(const struct string_ring *ring, uint32_t place,
                      struct string_record *ret_record)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (!is_kept(ring, place, tail))
        return false;
    uint64_t at = (tail + (uint32_t)(place - (uint32_t)tail)) % ring->capacity;
    uint64_t bytes = atomic_load_explicit(&ring->words[at], memory_order_acquire);
    /* If it is being overwritten, the length may be anything. */
    if (bytes > RECORD_WORDS_MAX * sizeof(uint64_t) ||
        at + words_of((uint32_t)bytes) > ring->capacity)
        return false;
    ret_record->bytes = (uint32_t)bytes;
    for (uint64_t i = 1; i < words_of(ret_record->bytes); i++)
        ret_record->words[i - 1] = atomic_load_explicit(&ring->words[at + i], memory_order_acquire);
    return is_kept(ring, place, atomic_load_explicit(&ring->tail, memory_order_relaxed));
}

/* Whether the record is at place. For the writer. */
static bool is_record_at(const struct string_ring *ring, uint32_t place,
                         const struct string_record *record)
{
    uint32_t age = (uint32_t)ring->head - place;
    uint64_t at = ring->head_at - age + (age > ring->head_at ? ring->capacity : 0);
    assert(age < ring->capacity);
    if (atomic_load_explicit(&ring->words[at], memory_order_relaxed) != record->bytes)
        return false;
    for (uint64_t i = 1; i < words_of(record->bytes); i++)
        if (atomic_load_explicit(&ring->words[at + i], memory_order_relaxed) !=
            record->words[i - 1])
            return false;
    return true;
}

static void skip(struct string_ring *ring, uint64_t words)
{
    assert(words <= ring->capacity - ring->head_at);
    ring->head += words;
    ring->head_at += words;
    if (ring->head_at == ring->capacity)
        ring->head_at = 0;
}

uint32_t string_ring_put(struct string_ring *ring, const struct string_record *record,
                         enum string_keep keep)
{
    assert(record->bytes <= sizeof(record->words));
    uint64_t full = XXH3_64bits_withSeed(record->words, record->bytes, ring->seed);
    uint32_t hash = (uint32_t)full | 1;
    uint32_t buckets = ring->slots_count / SLOTS_PER_BUCKET;
    struct string_slot *bucket = &ring->slots[(full >> 32 & (buckets - 1)) * SLOTS_PER_BUCKET];
    struct string_slot *oldest = bucket;
    uint32_t oldest_age = 0;
    for (unsigned i = 0; i < SLOTS_PER_BUCKET; i++) {
        uint32_t age = bucket[i].hash != 0 ? (uint32_t)ring->head - bucket[i].place : UINT32_MAX;
        if (bucket[i].hash == hash && age < ring->capacity / keep &&
            is_record_at(ring, bucket[i].place, record))
            return bucket[i].place;
        if (age > oldest_age) {
            oldest = &bucket[i];
            oldest_age = age;
        }
    }

    uint64_t words = words_of(record->bytes);
    /* A record is contiguous, and 0 is no place. */
    if (ring->head_at + words > ring->capacity)
        skip(ring, ring->capacity - ring->head_at);
    if ((uint32_t)ring->head == STRING_NOWHERE)
        skip(ring, 1);
    assert(ring->head_at + words <= ring->capacity);
    _Atomic uint64_t *to = &ring->words[ring->head_at];
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (ring->head + words > tail + ring->capacity)
        atomic_store_explicit(&ring->tail, ring->head + words - ring->capacity,
                              memory_order_release);
    atomic_store_explicit(&to[0], record->bytes, memory_order_release);
    for (uint64_t i = 1; i < words; i++)
        atomic_store_explicit(&to[i], record->words[i - 1], memory_order_release);
    *oldest = (struct string_slot){.hash = hash, .place = (uint32_t)ring->head};
    skip(ring, words);
    return oldest->place;
}

void string_record_begin(struct string_record *record)
{
    record->bytes = 0;
    record->words[0] = 0;
}

/* Room for that many bytes, which fit; pads the last word. */
static inline uint8_t *extend(struct string_record *record, uint64_t bytes)
{
    assert(bytes <= sizeof(record->words) - record->bytes);
    uint8_t *at = (uint8_t *)record->words + record->bytes;
    uint64_t end = record->bytes + bytes;
    if (end / sizeof(uint64_t) > record->bytes / sizeof(uint64_t) && end < sizeof(record->words))
        record->words[end / sizeof(uint64_t)] = 0;
    record->bytes = (uint32_t)end;
    return at;
}

void string_record_add_number(struct string_record *record, uint32_t number)
{
    uint8_t *at = extend(record, sizeof(number));
    memcpy(at, &number, sizeof(number));
}

void string_record_add_hash(struct string_record *record, uint64_t hash)
{
    uint8_t *at = extend(record, sizeof(hash));
    memcpy(at, &hash, sizeof(hash));
}

/* False: there is no room. */
static inline bool add_header(struct string_record *record, uint16_t bytes)
{
    if (sizeof(record->words) - record->bytes < HEADER_BYTES)
        return false;
    memcpy(extend(record, HEADER_BYTES), &bytes, HEADER_BYTES);
    return true;
}

void string_record_add_absent(struct string_record *record)
{
    add_header(record, FIELD_ABSENT);
}

void string_record_add(struct string_record *record, const void *data, uint64_t bytes,
                       uint64_t bytes_max)
{
    assert(bytes_max < FIELD_ABSENT);
    uint64_t left = sizeof(record->words) - record->bytes;
    uint64_t room = left > HEADER_BYTES ? left - HEADER_BYTES : 0;
    uint64_t most = bytes_max < room ? bytes_max : room;
    if (bytes > most)
        bytes = most > 0 ? otlp_text_cut(slice_of(data, bytes), most).size : 0;
    if (add_header(record, (uint16_t)bytes) && bytes > 0)
        profile_copy(extend(record, bytes), data, bytes);
}

struct record_reader string_record_read(const struct string_record *record)
{
    assert(record->bytes <= sizeof(record->words));
    const uint8_t *at = (const uint8_t *)record->words;
    return (struct record_reader){.at = at, .end = at + record->bytes};
}

static void read_raw(struct record_reader *reader, void *to, size_t bytes)
{
    assert(reader->at <= reader->end);
    if ((size_t)(reader->end - reader->at) < bytes)
        return;
    memcpy(to, reader->at, bytes);
    reader->at += bytes;
}

uint32_t record_next_number(struct record_reader *reader)
{
    uint32_t number = 0;
    read_raw(reader, &number, sizeof(number));
    return number;
}

uint64_t record_next_hash(struct record_reader *reader)
{
    uint64_t hash = 0;
    read_raw(reader, &hash, sizeof(hash));
    return hash;
}

bool record_next(struct record_reader *reader, struct slice *ret_field)
{
    uint16_t bytes;
    assert(reader->at <= reader->end);
    if ((size_t)(reader->end - reader->at) < HEADER_BYTES)
        return false;
    memcpy(&bytes, reader->at, HEADER_BYTES);
    reader->at += HEADER_BYTES;
    if (bytes == FIELD_ABSENT || bytes > reader->end - reader->at)
        return false;
    *ret_field = slice_of(reader->at, bytes);
    reader->at += bytes;
    return true;
}
