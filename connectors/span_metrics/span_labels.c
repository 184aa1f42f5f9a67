/* SPDX-License-Identifier: Apache-2.0 */
/* Finding labels. Runs on the owner's lane. */
#include "connectors/span_metrics/span_labels.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum { ANY_VALUE_STRING = 1, ANY_VALUE_INT = 3, ANY_VALUE_BYTES = 7 };
enum { TEXT_BYTES_MAX = 64 << 20 }; /* of a list or map */

static size_t picked_max(const struct dimensions *dimensions)
{
    size_t count = 0;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        count += dimensions->lists[i].count +
                 (dimensions->lists[i].globs_count > 0 ? LABEL_SOURCES * GLOB_MATCHES_MAX : 0);
    return count;
}

void span_labels_init(struct span_labels *labels, const struct dimensions *dimensions,
                      struct budget *budget)
{
    size_t names = dimensions->names_count;
    *labels = (struct span_labels){
        .dimensions = dimensions, .budget = budget, .words = names / LABEL_BITS + 1};
    for (unsigned i = 0; i < LABEL_SOURCES; i++) {
        struct found_labels *found = &labels->found[i];
        found->has = mem_zalloc(labels->words * sizeof(found->has[0]));
        found->named = mem_zalloc(names * sizeof(found->named[0]));
        for (size_t j = 0; j < names; j++)
            found->named[j] = (struct span_label){.key = dimensions->names[j].name, .name = j};
        if (dimensions->has_globs)
            found->globs = mem_zalloc(DIMENSION_LISTS * sizeof(found->globs[0]));
    }
    labels->picked = (const struct span_label **)mem_alloc(picked_max(dimensions) *
                                                           sizeof(const struct span_label *));
}

void span_labels_fini(struct span_labels *labels)
{
    for (unsigned i = 0; i < LABEL_SOURCES; i++) {
        mem_free(labels->found[i].has);
        mem_free(labels->found[i].named);
        mem_free(labels->found[i].globs);
    }
    mem_free((void *)labels->picked);
}

void span_labels_clear(struct span_labels *labels, enum label_source source)
{
    struct found_labels *found = &labels->found[source];
    /* One word but for more than 64 names. */
    found->has[0] = 0;
    for (size_t i = 1; i < labels->words; i++)
        found->has[i] = 0;
    for (unsigned i = 0; found->globs != NULL && i < DIMENSION_LISTS; i++)
        found->globs[i].count = found->globs[i].examined = 0;
}

/* Texts of values. */

/* Decimal digits, from the end of the room. */
static struct slice write_integer(int64_t integer, char room[DOUBLE_STRING_BYTES_MAX])
{
    uint64_t rest = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    char *const end = room + DOUBLE_STRING_BYTES_MAX;
    char *at = end;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (integer < 0)
        *--at = '-';
    return slice_of(at, (size_t)(end - at));
}

/* The text of any value. Numbers are written into the room, lists and maps into the arena. */
static struct slice text_of(struct arena *arena, struct slice encoded,
                            char room[DOUBLE_STRING_BYTES_MAX])
{
    struct value value = value_read(encoded);
    struct slice text;
    switch (value.type) {
    case VALUE_STRING:
        return value.bytes;
    case VALUE_EMPTY:
        return slice_of(NULL, 0);
    case VALUE_BOOL:
        return slice_of_text(value.boolean ? "true" : "false");
    case VALUE_INT:
        return write_integer(value.integer, room);
    case VALUE_DOUBLE:
        return slice_of(room, double_to_string(value.real, room));
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        return value_to_string(arena, encoded, &text) ? text : encoded;
    }
}

void span_labels_settle(const struct span_labels *labels, struct span_label *label)
{
    struct wire_reader reader = wire_reader_of(label->value);
    struct wire_field field;
    struct slice last = slice_of(label->value.data, 0);
    char number[DOUBLE_STRING_BYTES_MAX];
    struct arena arena;
    while (wire_next_field(&reader, &field))
        if (field.number <= ANY_VALUE_BYTES)
            last = field.whole;
    label->value = last;
    if (last.size <= LABEL_TEXT_BYTES_MAX)
        return;
    arena_init_charged(&arena, TEXT_BYTES_MAX, labels->budget);
    struct slice text = text_of(&arena, last, number);
    bool is_short_string =
        text.size <= LABEL_TEXT_BYTES_MAX && text.data + text.size == last.data + last.size;
    if (!is_short_string) {
        label->is_long = true;
        label->hash = text_hash_of(labels->dimensions->seed, text);
        label->long_bytes = text.size;
    }
    arena_clear(&arena);
}

void span_labels_match(struct span_labels *labels, enum label_source source, struct slice key,
                       struct slice value)
{
    for (unsigned i = 0; i < DIMENSION_LISTS; i++) {
        const struct dimension_set *set = &labels->dimensions->lists[i];
        struct glob_matches *matches = &labels->found[source].globs[i];
        bool is_match = false;
        if (set->globs_count == 0 || matches->count == GLOB_MATCHES_MAX ||
            matches->examined++ >= GLOB_ATTRIBUTES_MAX)
            continue;
        for (size_t j = 0; j < set->globs_count && !is_match; j++)
            is_match = pattern_matches(set->globs[j], key);
        if (!is_match)
            continue;
        struct span_label *label = &matches->items[matches->count];
        *label = (struct span_label){
            .key = key, .value = value, .name = DIMENSION_BY_GLOB, .place = matches->count};
        matches->count++;
        if (value.size > LABEL_TEXT_BYTES_MAX)
            span_labels_settle(labels, label);
        if (key.size > LABEL_TEXT_BYTES_MAX)
            label->key_hash = text_hash_of(labels->dimensions->seed, key);
    }
}

static int compare_labels(const void *a, const void *b)
{
    const struct span_label *left = a;
    const struct span_label *right = b;
    int order = slice_compare(left->key, right->key);
    return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

static bool has_label(const struct glob_matches *matches, struct slice key)
{
    size_t from = 0;
    size_t to = matches->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        int order = slice_compare(matches->items[middle].key, key);
        if (order == 0)
            return true;
        from = order < 0 ? middle + 1 : from;
        to = order < 0 ? to : middle;
    }
    return false;
}

/* Notes what the span does not have of the resource's. */
static void uncover(const struct glob_matches *span, struct glob_matches *resource)
{
    resource->uncovered_count = 0;
    for (size_t i = 0; i < resource->count; i++)
        if (!has_label(span, resource->items[i].key))
            resource->uncovered[resource->uncovered_count++] = (uint8_t)i;
}

/* By key, each once. */
void span_labels_sort(struct span_labels *labels, enum label_source source)
{
    if (!labels->dimensions->has_globs)
        return;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++) {
        struct glob_matches *matches = &labels->found[source].globs[i];
        size_t kept = 0;
        if (matches->count > 1)
            qsort(matches->items, matches->count, sizeof(matches->items[0]), compare_labels);
        for (size_t j = 0; j < matches->count; j++) {
            bool is_new =
                kept == 0 || !slice_equal(matches->items[kept - 1].key, matches->items[j].key);
            if (is_new)
                matches->items[kept++] = matches->items[j];
            else if (source == LABELS_OF_EVENT)
                matches->items[kept - 1] = matches->items[j];
        }
        matches->count = kept;
        if (source == LABELS_OF_SPAN)
            uncover(matches, &labels->found[LABELS_OF_RESOURCE].globs[i]);
    }
}

static void pick(struct span_labels *labels, const struct span_label *label)
{
    labels->picked[labels->picked_count++] = label;
}

static void pick_globs(struct span_labels *labels, enum dimension_list list, bool is_event)
{
    const struct found_labels *found = labels->found;
    const struct glob_matches *span = &found[LABELS_OF_SPAN].globs[list];
    const struct glob_matches *event = &found[LABELS_OF_EVENT].globs[list];
    const struct glob_matches *resource = &found[LABELS_OF_RESOURCE].globs[list];
    for (size_t i = 0; i < span->count; i++)
        pick(labels, &span->items[i]);
    if (!is_event) {
        for (size_t i = 0; i < resource->uncovered_count; i++)
            pick(labels, &resource->items[resource->uncovered[i]]);
        return;
    }
    /* Both are sorted. Only keys of the event are compared: those of the others may be long. */
    size_t next = 0;
    for (size_t i = 0; i < event->count; i++) {
        const struct span_label *label = &event->items[i];
        int order = 1;
        for (; next < resource->uncovered_count; next++) {
            const struct span_label *other = &resource->items[resource->uncovered[next]];
            order = slice_compare(label->key, other->key);
            if (order <= 0)
                break;
            pick(labels, other);
        }
        next += order == 0; /* the event's counts */
        if (!has_label(span, label->key))
            pick(labels, label);
    }
    for (; next < resource->uncovered_count; next++)
        pick(labels, &resource->items[resource->uncovered[next]]);
}

void span_labels_pick(struct span_labels *labels, enum dimension_list list, bool is_event)
{
    const struct dimension_set *set = &labels->dimensions->lists[list];
    const struct found_labels *span = &labels->found[LABELS_OF_SPAN];
    const struct found_labels *event = &labels->found[LABELS_OF_EVENT];
    const struct found_labels *resource = &labels->found[LABELS_OF_RESOURCE];
    const struct span_label **end = labels->picked + labels->picked_count;
    for (size_t i = 0; i < set->count; i++) {
        const struct span_label *standard = &set->items[i].standard;
        size_t name = standard->name;
        if (span_labels_has(span, name))
            *end++ = &span->named[name];
        else if (is_event && span_labels_has(event, name))
            *end++ = &event->named[name];
        else if (span_labels_has(resource, name))
            *end++ = &resource->named[name];
        else if (standard->value.data != NULL)
            *end++ = standard;
    }
    labels->picked_count = (size_t)(end - labels->picked);
    if (set->globs_count > 0)
        pick_globs(labels, list, is_event);
}

/* Keys. */

enum { WORD_BYTES = sizeof(uint64_t) };
#define WORD_IS_HASH (UINT64_C(1) << 63)

/* In steps of 16, 8, 4 and 2 bytes that may overlap. */
static inline void copy_text(uint8_t *to, struct slice text)
{
    enum { LONG = 16, HALF = 8, QUARTER = 4, PAIR = 2 };
    const uint8_t *from = text.data;
    const size_t size = text.size;
    if (size >= LONG) {
        for (size_t at = 0; at + LONG < size; at += LONG)
            memcpy(to + at, from + at, LONG);
        memcpy(to + size - LONG, from + size - LONG, LONG);
    } else if (size >= HALF) {
        memcpy(to, from, HALF);
        memcpy(to + size - HALF, from + size - HALF, HALF);
    } else if (size >= QUARTER) {
        memcpy(to, from, QUARTER);
        memcpy(to + size - QUARTER, from + size - QUARTER, QUARTER);
    } else if (size >= PAIR) {
        memcpy(to, from, PAIR);
        to[size - 1] = from[size - 1];
    } else if (size > 0) {
        to[0] = from[0];
    }
}

/* Makes room. */
static void __attribute__((noinline))
fold(const struct dimensions *dimensions, struct label_key *key)
{
    struct text_hash before = text_hash_of(dimensions->seed, slice_of(key->bytes, key->size));
    memcpy(key->bytes, &before, sizeof(before));
    key->size = sizeof(before);
}

/* The word has the text's size. */
static inline __attribute__((always_inline)) void put_sized(const struct dimensions *dimensions,
                                                            struct label_key *key, uint64_t word,
                                                            struct slice text)
{
    if (key->size + WORD_BYTES + text.size > LABEL_KEY_BYTES)
        fold(dimensions, key);
    uint8_t *at = key->bytes + key->size;
    memcpy(at, &word, WORD_BYTES);
    copy_text(at + WORD_BYTES, text);
    key->size += WORD_BYTES + text.size;
}

static void __attribute__((noinline))
put_hash(const struct dimensions *dimensions, struct label_key *key, uint64_t word, size_t size,
         const struct text_hash *hash)
{
    put_sized(dimensions, key, word | (size & UINT32_MAX) | WORD_IS_HASH,
              slice_of(hash, sizeof(*hash)));
}

static void __attribute__((noinline))
put_long(const struct dimensions *dimensions, struct label_key *key, uint64_t word,
         struct slice text)
{
    struct text_hash hash = text_hash_of(dimensions->seed, text);
    put_hash(dimensions, key, word, text.size, &hash);
}

static inline void put_text(const struct dimensions *dimensions, struct label_key *key,
                            uint64_t word, struct slice text)
{
    if (text.size > LABEL_TEXT_BYTES_MAX)
        put_long(dimensions, key, word, text);
    else
        put_sized(dimensions, key, word | text.size, text);
}

void label_key_put(const struct dimensions *dimensions, struct label_key *key, uint64_t word,
                   struct slice text)
{
    put_text(dimensions, key, word, text);
}

void label_key_put_text(const struct dimensions *dimensions, struct label_key *key, uint64_t word,
                        const struct label_text *label)
{
    if (label->text.size > LABEL_TEXT_BYTES_MAX)
        put_hash(dimensions, key, word, label->text.size, &label->hash);
    else
        put_sized(dimensions, key, word | label->text.size, label->text);
}

static void __attribute__((noinline))
put_value(const struct span_labels *labels, struct label_key *key, uint64_t word,
          struct slice encoded)
{
    char number[DOUBLE_STRING_BYTES_MAX];
    struct arena arena;
    arena_init_charged(&arena, TEXT_BYTES_MAX, labels->budget);
    put_text(labels->dimensions, key, word, text_of(&arena, encoded, number));
    arena_clear(&arena);
}

/* Whether it is a string of less than 128 bytes, or an integer from 128 to 16383, and nothing else;
 * then its text, of a number in the room. */
static inline bool read_usual(struct slice value, char room[DOUBLE_STRING_BYTES_MAX],
                              struct slice *ret_text)
{
    enum { HEADER_BYTES = 2, LENGTH_MASK = 0x7f, LENGTH_BITS = 7 };
    const uint8_t *at = value.data;
    if (value.size < HEADER_BYTES)
        return false;
    if (at[0] == (ANY_VALUE_STRING << 3 | WIRE_BYTES)) {
        *ret_text = slice_of(at + HEADER_BYTES, value.size - HEADER_BYTES);
        return at[1] <= LENGTH_MASK && at[1] == value.size - HEADER_BYTES;
    }
    if (at[0] != (ANY_VALUE_INT << 3 | WIRE_VARINT) || value.size != HEADER_BYTES + 1 ||
        at[1] <= LENGTH_MASK || at[2] > LENGTH_MASK)
        return false;
    *ret_text = write_integer((at[1] & LENGTH_MASK) | (int64_t)at[2] << LENGTH_BITS, room);
    return true;
}

void span_labels_put(const struct span_labels *labels, struct label_key *key)
{
    for (size_t i = 0; i < labels->picked_count; i++) {
        const struct span_label *label = labels->picked[i];
        const uint64_t word = (uint64_t)label->name << WORD_SHIFT;
        char number[DOUBLE_STRING_BYTES_MAX];
        struct slice text;
        if (label->name == DIMENSION_BY_GLOB && label->key.size > LABEL_TEXT_BYTES_MAX)
            put_hash(labels->dimensions, key, word, label->key.size, &label->key_hash);
        else if (label->name == DIMENSION_BY_GLOB)
            put_text(labels->dimensions, key, word, label->key);
        if (label->is_long)
            put_hash(labels->dimensions, key, word, label->long_bytes, &label->hash);
        else if (read_usual(label->value, number, &text))
            put_text(labels->dimensions, key, word, text);
        else
            put_value(labels, key, word, label->value);
    }
}
