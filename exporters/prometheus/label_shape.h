/* SPDX-License-Identifier: Apache-2.0 */
/* What the labels of many series have in common: their names, and the values that come from the
 * scope, the resource and the configuration. A series keeps only the values that are its own, those
 * of the data point's attributes. One block, which never changes; its count of references is
 * guarded by the lock of the store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus/metric_labels.h"
#include "src/base/slice.h"

/* A label, in the order of the names: its value in the block, or which one of the series' own. */
struct shape_label {
    uint32_t at; /* SHAPE_OWN: its own */
    uint32_t size_or_place;
};
#define SHAPE_OWN UINT32_MAX

struct label_shape {
    unsigned refs; /* series */
    uint32_t labels_count;
    uint32_t own_count;
    bool is_plain;           /* the labels' names */
    struct metric_hash hash; /* metric_labels.names_hash: of all that it is made of */
    size_t bytes;            /* of the block */
    size_t text_bytes;       /* `a="",b="x"` */
    /* In the block: struct shape_label labels[labels_count], uint32_t gaps[own_count] (where in the
     * text the own values belong), the text, and values that the text has only escaped. */
};

/* What the shape of a series' labels takes at the most; without a pass over their bytes. */
size_t label_shape_bytes_max(const struct metric_labels *labels);
/* Makes it there, in so much room, which is at most LABEL_SHAPE_BYTES_MAX; its bytes may be
 * less. */
enum { LABEL_SHAPE_BYTES_MAX = INT32_MAX };
void label_shape_make(const struct metric_labels *labels, struct label_shape *shape);

/* The own values of a series: each behind its size, a varint. */
size_t label_values_bytes(const struct metric_labels *labels);
/* Writes them. Returns whether one of them has to be escaped in the text format. */
bool label_values_write(const struct metric_labels *labels, uint8_t *values);

/* What a series has. */
struct label_values {
    const struct label_shape *shape;
    struct slice own;
    bool has_escapes;
};

/* Room for the labels in the text format, and the labels. Returns their size. */
size_t label_text_max(const struct label_values *values);
size_t label_text_write(const struct label_values *values, char *text);

/* Reads the labels' values in turn, as they came. */
struct label_cursor {
    const uint8_t *own; /* the next one */
    uint32_t index;     /* of the label to be read */
};
static inline struct label_cursor label_cursor_of(const struct label_values *values)
{
    return (struct label_cursor){.own = values->own.data};
}
/* The value of the label of that index, which is not below the one read before. */
struct slice label_value(const struct label_shape *shape, struct label_cursor *cursor,
                         uint32_t index);
bool label_is_own(const struct label_shape *shape, uint32_t index);
/* The Go client's order: fewer labels first, then by their values, whatever the names. */
int label_values_compare(const struct label_values *a, const struct label_values *b);
/* Whether names and values are the same. */
bool label_values_equal(const struct label_values *a, const struct label_values *b);
