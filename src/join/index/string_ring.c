/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of texts. The writer moves the tail before it overwrites; every word is stored with
 * release and loaded with acquire, so that who has read a word of a newer text sees the newer tail
 * too. One writer, readers on any thread. */
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
    WORDS_PER_SLOT = 32, /* a slot for so much of the ring */
    FIELD_ABSENT = 0xffff,
    HEADER_BYTES = 2,
};

bool string_ring_init(struct string_ring *log, uint64_t bytes)
{
    assert(bytes >= STRING_RING_BYTES_MIN);
    uint64_t words = bytes / sizeof(uint64_t);
    uint32_t slots = SLOTS_PER_BUCKET;
    while (slots < words / WORDS_PER_SLOT && slots < UINT32_MAX / 2)
        slots *= 2;
    if (slots > SLOTS_PER_BUCKET)
        slots /= 2; /* a power of two */
    *log = (struct string_ring){.slots_count = slots, .head = 1, .head_at = 1};
    log->capacity = words - slots * sizeof(struct string_slot) / sizeof(uint64_t);
    assert(log->capacity > 4 * RECORD_WORDS_MAX);
    assert(log->capacity < UINT32_MAX / 2);
    log->seed = (uint64_t)(random_uniform() * 0x1p53);
    atomic_init(&log->tail, 1);
    log->words = mem_try_zalloc(log->capacity * sizeof(log->words[0]));
    log->slots = mem_try_zalloc(slots * sizeof(log->slots[0]));
    if (log->words != NULL && log->slots != NULL)
        return true;
    string_ring_fini(log);
    return false;
}

void string_ring_fini(struct string_ring *log)
{
    assert(log != NULL);
    mem_free((void *)(uintptr_t)log->words);
    mem_free(log->slots);
    log->words = NULL;
    log->slots = NULL;
}

static uint64_t words_of(uint32_t bytes)
{
    assert(bytes <= RECORD_WORDS_MAX * sizeof(uint64_t));
    return 1 + (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/* How many words ago, for a reader: of what is gone, more than the ring has. */
static bool is_kept(const struct string_ring *log, uint32_t place, uint64_t tail)
{
    return place != STRING_NOWHERE && (uint32_t)(place - (uint32_t)tail) < log->capacity;
}

bool string_ring_has(const struct string_ring *log, uint32_t place)
{
    assert(log->words != NULL);
    return is_kept(log, place, atomic_load_explicit(&log->tail, memory_order_acquire));
}

bool string_ring_read(const struct string_ring *log, uint32_t place, struct string_record *ret_text)
{
    assert(ret_text != NULL);
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_acquire);
    if (!is_kept(log, place, tail))
        return false;
    uint64_t at = (tail + (uint32_t)(place - (uint32_t)tail)) % log->capacity;
    uint64_t bytes = atomic_load_explicit(&log->words[at], memory_order_acquire);
    /* Overwritten meanwhile: the length may be anything. */
    if (bytes > RECORD_WORDS_MAX * sizeof(uint64_t) ||
        at + words_of((uint32_t)bytes) > log->capacity)
        return false;
    ret_text->bytes = (uint32_t)bytes;
    for (uint64_t i = 1; i < words_of(ret_text->bytes); i++)
        ret_text->words[i - 1] = atomic_load_explicit(&log->words[at + i], memory_order_acquire);
    return is_kept(log, place, atomic_load_explicit(&log->tail, memory_order_relaxed));
}

/* Whether the text stands at place, which is the writer's to ask. */
static bool is_text_at(const struct string_ring *log, uint32_t place,
                       const struct string_record *text)
{
    uint32_t age = (uint32_t)log->head - place;
    uint64_t at = log->head_at - age + (age > log->head_at ? log->capacity : 0);
    assert(age < log->capacity);
    if (atomic_load_explicit(&log->words[at], memory_order_relaxed) != text->bytes)
        return false;
    for (uint64_t i = 1; i < words_of(text->bytes); i++)
        if (atomic_load_explicit(&log->words[at + i], memory_order_relaxed) != text->words[i - 1])
            return false;
    return true;
}

static void skip(struct string_ring *log, uint64_t words)
{
    assert(words <= log->capacity - log->head_at);
    log->head += words;
    log->head_at += words;
    if (log->head_at == log->capacity)
        log->head_at = 0;
}

static uint32_t append(struct string_ring *log, const struct string_record *text)
{
    uint64_t words = words_of(text->bytes);
    /* A text lies in one piece, and 0 is no place. */
    if (log->head_at + words > log->capacity)
        skip(log, log->capacity - log->head_at);
    if ((uint32_t)log->head == STRING_NOWHERE)
        skip(log, 1);
    assert(log->head_at + words <= log->capacity);
    _Atomic uint64_t *to = &log->words[log->head_at];
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    if (log->head + words > tail + log->capacity)
        atomic_store_explicit(&log->tail, log->head + words - log->capacity, memory_order_release);
    atomic_store_explicit(&to[0], text->bytes, memory_order_release);
    for (uint64_t i = 1; i < words; i++)
        atomic_store_explicit(&to[i], text->words[i - 1], memory_order_release);
    uint32_t place = (uint32_t)log->head;
    skip(log, words);
    return place;
}

uint32_t string_ring_put(struct string_ring *log, const struct string_record *text,
                         enum string_keep keep)
{
    assert(text->bytes <= sizeof(text->words));
    uint64_t full = XXH3_64bits_withSeed(text->words, text->bytes, log->seed);
    uint32_t hash = (uint32_t)full | 1;
    uint32_t buckets = log->slots_count / SLOTS_PER_BUCKET;
    struct string_slot *bucket = &log->slots[(full >> 32 & (buckets - 1)) * SLOTS_PER_BUCKET];
    struct string_slot *oldest = bucket;
    uint32_t oldest_age = 0;
    for (unsigned i = 0; i < SLOTS_PER_BUCKET; i++) {
        uint32_t age = bucket[i].hash != 0 ? (uint32_t)log->head - bucket[i].place : UINT32_MAX;
        if (bucket[i].hash == hash && age < log->capacity / keep &&
            is_text_at(log, bucket[i].place, text))
            return bucket[i].place;
        if (age > oldest_age) {
            oldest = &bucket[i];
            oldest_age = age;
        }
    }
    *oldest = (struct string_slot){.hash = hash, .place = append(log, text)};
    return oldest->place;
}

void string_record_begin(struct string_record *text)
{
    assert(text != NULL);
    text->bytes = 0;
    text->words[0] = 0;
}

/* Where so many bytes go, which fit; the last word that they reach is padded. */
static inline uint8_t *extend(struct string_record *text, uint64_t bytes)
{
    assert(bytes <= sizeof(text->words) - text->bytes);
    uint8_t *at = (uint8_t *)text->words + text->bytes;
    uint64_t end = text->bytes + bytes;
    if (end / sizeof(uint64_t) > text->bytes / sizeof(uint64_t) && end < sizeof(text->words))
        text->words[end / sizeof(uint64_t)] = 0;
    text->bytes = (uint32_t)end;
    return at;
}

void string_record_add_number(struct string_record *text, uint32_t number)
{
    uint8_t *at = extend(text, sizeof(number));
    assert(at != NULL);
    memcpy(at, &number, sizeof(number));
}

void string_record_add_hash(struct string_record *text, uint64_t hash)
{
    uint8_t *at = extend(text, sizeof(hash));
    assert(at != NULL);
    memcpy(at, &hash, sizeof(hash));
}

/* False: there is no room, not even for that. */
static inline bool add_header(struct string_record *text, uint16_t bytes)
{
    if (sizeof(text->words) - text->bytes < HEADER_BYTES)
        return false;
    assert(sizeof(bytes) == HEADER_BYTES);
    memcpy(extend(text, HEADER_BYTES), &bytes, HEADER_BYTES);
    return true;
}

void string_record_add_absent(struct string_record *text)
{
    assert(text != NULL);
    add_header(text, FIELD_ABSENT);
}

void string_record_add(struct string_record *text, const void *data, uint64_t bytes,
                       uint64_t bytes_max)
{
    assert(bytes_max < FIELD_ABSENT);
    uint64_t left = sizeof(text->words) - text->bytes;
    uint64_t room = left > HEADER_BYTES ? left - HEADER_BYTES : 0;
    uint64_t most = bytes_max < room ? bytes_max : room;
    if (bytes > most)
        bytes = most > 0 ? otlp_text_cut(slice_of(data, bytes), most).size : 0;
    if (add_header(text, (uint16_t)bytes) && bytes > 0)
        profile_copy(extend(text, bytes), data, bytes);
}

struct record_reader string_record_read(const struct string_record *text)
{
    assert(text->bytes <= sizeof(text->words));
    const uint8_t *at = (const uint8_t *)text->words;
    return (struct record_reader){.at = at, .end = at + text->bytes};
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
    assert(reader != NULL);
    read_raw(reader, &number, sizeof(number));
    return number;
}

uint64_t record_next_hash(struct record_reader *reader)
{
    uint64_t hash = 0;
    assert(reader != NULL);
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
