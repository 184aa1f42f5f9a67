/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a span, its events and its resource that become labels, and the key that labels
 * are found by. They lie in the request; nothing is copied or allocated but texts of lists and maps
 * while their hash is made. One owner, a lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/span_metrics/dimensions.h"
#include "src/base/slice.h"

struct budget;

/* Attributes of a message at most that are looked at, and that are held against globs. */
enum { LABEL_ATTRIBUTES_MAX = 65536, GLOB_ATTRIBUTES_MAX = 1024 };

/* Longer texts are hashed alone. */
enum { LABEL_TEXT_BYTES_MAX = 96, LABEL_BITS = 64 };

enum label_source { LABELS_OF_SPAN, LABELS_OF_EVENT, LABELS_OF_RESOURCE, LABEL_SOURCES };

struct glob_matches {
    size_t count;
    size_t examined;
    size_t uncovered_count;
    struct span_label items[GLOB_MATCHES_MAX];
    uint8_t uncovered[GLOB_MATCHES_MAX]; /* of a resource: places of those that the span at hand
                                            does not have, too; compared once for all its events */
};

/* What one message (resource, span, event) has for the dimensions. */
struct found_labels {
    uint64_t *has;              /* bits of those … */
    struct span_label *named;   /* … by name */
    struct glob_matches *globs; /* by list; NULL: there are no globs */
};

struct span_labels {
    const struct dimensions *dimensions;
    struct budget *budget;
    size_t words; /* of found_labels.has */
    struct found_labels found[LABEL_SOURCES];
    const struct span_label **picked;
    size_t picked_count;
};

void span_labels_init(struct span_labels *labels, const struct dimensions *dimensions,
                      struct budget *budget);
void span_labels_fini(struct span_labels *labels);

/* Before a message's attributes are noted. */
void span_labels_clear(struct span_labels *labels, enum label_source source);
static inline bool span_labels_has(const struct found_labels *found, size_t name)
{
    return (found->has[name / LABEL_BITS] >> name % LABEL_BITS & 1) != 0;
}

/* What few attributes need: those with globs, and those with long values, whose text is hashed once
 * for all spans, or whose encoding becomes as short as it can be. */
void span_labels_match(struct span_labels *labels, enum label_source source, struct slice key,
                       struct slice value);
void span_labels_settle(const struct span_labels *labels, struct span_label *label);

/* Notes the attribute if it is wanted. Of equal keys the first counts, of events the last. */
static inline __attribute__((always_inline)) void span_labels_note(struct span_labels *labels,
                                                                   enum label_source source,
                                                                   struct slice key,
                                                                   struct slice value)
{
    struct found_labels *found = &labels->found[source];
    const size_t name = dimensions_find(labels->dimensions, key);
    if (name != NAME_NONE && (source == LABELS_OF_EVENT || !span_labels_has(found, name))) {
        struct span_label *label = &found->named[name];
        label->value = value;
        label->is_long = false;
        if (value.size > LABEL_TEXT_BYTES_MAX)
            span_labels_settle(labels, label);
        found->has[name / LABEL_BITS] |= UINT64_C(1) << name % LABEL_BITS;
    }
    if (labels->dimensions->has_globs)
        span_labels_match(labels, source, key, value);
}

/* After them: those of a resource before those of its spans, those of a span before those of its
 * events. */
void span_labels_sort(struct span_labels *labels, enum label_source source);

/* Adds the attributes that are labels by that list to those picked: the span's, or else the event's
 * or the resource's, or else the default. */
void span_labels_pick(struct span_labels *labels, enum dimension_list list, bool is_event);

/* Texts, one after the other, that a hash is made of in one go. What would not fit is hashed before
 * that. */
enum { LABEL_KEY_BYTES = 240, WORD_SHIFT = 32 };

struct label_key {
    size_t size;
    uint8_t bytes[LABEL_KEY_BYTES];
};

/* The word holds what tells the text apart from others, from WORD_SHIFT on in 31 bits; its size is
 * added to it. */
void label_key_put(const struct dimensions *dimensions, struct label_key *key, uint64_t word,
                   struct slice text);
/* The same of a text that is part of many keys: a long one is hashed once. */
struct label_text {
    struct slice text;
    struct text_hash hash; /* of a long one */
};
static inline struct label_text label_text_of(const struct dimensions *dimensions,
                                              struct slice text)
{
    struct label_text label = {.text = text};
    if (text.size > LABEL_TEXT_BYTES_MAX)
        label.hash = text_hash_of(dimensions->seed, text);
    return label;
}
void label_key_put_text(const struct dimensions *dimensions, struct label_key *key, uint64_t word,
                        const struct label_text *label);
/* Adds the labels that were picked. Values of equal text are equal, as in the Go collector. */
void span_labels_put(const struct span_labels *labels, struct label_key *key);
