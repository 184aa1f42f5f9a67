/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a shape is that of its labels with nothing where own values belong, so that a
 * series' text is made of few copies. */
#include "exporters/prometheus/label_shape.h"

#include <assert.h>
#include <string.h>

#include "exporters/prometheus/metric_labels.h"
#include "src/otlp/wire.h"
#include "src/prometheus/exposition.h"

static const struct shape_label *labels_of(const struct label_shape *shape)
{
    return (const struct shape_label *)(shape + 1);
}

static const uint32_t *gaps_of(const struct label_shape *shape)
{
    return (const uint32_t *)(labels_of(shape) + shape->labels_count);
}

static const char *text_of(const struct label_shape *shape)
{
    return (const char *)(gaps_of(shape) + shape->own_count);
}

static bool needs_escape(struct slice value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] == '\\' || value.data[i] == '"' || value.data[i] == '\n')
            return true;
    return false;
}

/* All labels of a series in the order of their names, its own and those that it shares. */
struct label_walk {
    const struct metric_labels *labels;
    size_t own;
    size_t shared;
};

static const struct metric_label *next_label(struct label_walk *walk, bool *ret_is_own)
{
    const struct metric_labels *labels = walk->labels;
    *ret_is_own =
        walk->own < labels->count &&
        (walk->shared == labels->shared_count ||
         slice_compare(labels->list[walk->own].name, labels->shared[walk->shared].name) < 0);
    if (*ret_is_own)
        return &labels->list[walk->own++];
    return walk->shared < labels->shared_count ? &labels->shared[walk->shared++] : NULL;
}

size_t label_shape_bytes_max(const struct metric_labels *labels)
{
    size_t bytes = sizeof(struct label_shape) +
                   (labels->count + labels->shared_count) * sizeof(struct shape_label) +
                   labels->count * sizeof(uint32_t) + labels->shared_bytes;
    for (size_t i = 0; i < labels->count; i++)
        bytes += exposition_label_max(labels->list[i].name, slice_of(NULL, 0)) + 1;
    return bytes;
}

void label_shape_make(const struct metric_labels *labels, struct label_shape *shape)
{
    const size_t count = labels->count + labels->shared_count;
    *shape = (struct label_shape){.labels_count = (uint32_t)count,
                                  .own_count = (uint32_t)labels->count,
                                  .is_plain = true,
                                  .hash = labels->names_hash};
    struct shape_label *rows = (struct shape_label *)(shape + 1);
    uint32_t *gaps = (uint32_t *)(rows + count);
    char *text = (char *)(gaps + labels->count);
    struct label_walk walk = {.labels = labels};
    const struct metric_label *label;
    bool is_own;
    uint32_t place = 0;
    size_t size = 0;
    for (size_t i = 0; (label = next_label(&walk, &is_own)) != NULL; i++) {
        struct slice value = is_own ? slice_of(NULL, 0) : label->value;
        if (i > 0)
            text[size++] = ',';
        size += exposition_label(label->name, value, text + size);
        shape->is_plain = shape->is_plain && prometheus_name_is_plain(label->name);
        if (!is_own) {
            rows[i] = (struct shape_label){.at = (uint32_t)(size - 1 - value.size),
                                           .size_or_place = (uint32_t)value.size};
        } else {
            rows[i] = (struct shape_label){.at = SHAPE_OWN, .size_or_place = place};
            gaps[place++] = (uint32_t)(size - 1);
        }
    }
    shape->text_bytes = size;
    walk = (struct label_walk){.labels = labels};
    for (size_t i = 0; (label = next_label(&walk, &is_own)) != NULL; i++) {
        if (is_own || !needs_escape(label->value))
            continue;
        rows[i].at = (uint32_t)size;
        memcpy(text + size, label->value.data, label->value.size);
        size += label->value.size;
    }
    shape->bytes = (size_t)((uint8_t *)text + size - (uint8_t *)shape);
}

size_t label_values_bytes(const struct metric_labels *labels)
{
    size_t bytes = 0;
    for (size_t i = 0; i < labels->count; i++)
        bytes += wire_varint_size(labels->list[i].value.size) + labels->list[i].value.size;
    return bytes;
}

bool label_values_write(const struct metric_labels *labels, uint8_t *values)
{
    bool has_escapes = false;
    for (size_t i = 0; i < labels->count; i++) {
        struct slice value = labels->list[i].value;
        size_t size = value.size;
        for (; size >= 0x80; size >>= 7)
            *values++ = (uint8_t)(size | 0x80);
        *values++ = (uint8_t)size;
        if (value.size > 0)
            memcpy(values, value.data, value.size);
        values += value.size;
        has_escapes = has_escapes || needs_escape(value);
    }
    return has_escapes;
}

/* Reads an own value; the next one begins behind it. */
static struct slice next_own(const uint8_t **at)
{
    const uint8_t *bytes = *at;
    size_t size = *bytes & 0x7f;
    for (unsigned shift = 7; (*bytes++ & 0x80) != 0; shift += 7)
        size |= (size_t)(*bytes & 0x7f) << shift;
    *at = bytes + size;
    return slice_of(bytes, size);
}

size_t label_text_max(const struct label_values *values)
{
    return values->shape->text_bytes + 2 * values->own.size;
}

size_t label_text_write(const struct label_values *values, char *text)
{
    const struct label_shape *shape = values->shape;
    const uint32_t *gaps = gaps_of(shape);
    const char *from = text_of(shape);
    const uint8_t *own = values->own.data;
    char *to = text;
    uint32_t done = 0;
    for (uint32_t i = 0; i < shape->own_count; i++) {
        struct slice value = next_own(&own);
        memcpy(to, from + done, gaps[i] - done);
        to += gaps[i] - done;
        done = gaps[i];
        if (values->has_escapes) {
            to += exposition_escape(value, to);
        } else if (value.size > 0) {
            memcpy(to, value.data, value.size);
            to += value.size;
        }
    }
    memcpy(to, from + done, shape->text_bytes - done);
    return (size_t)(to - text) + shape->text_bytes - done;
}

bool label_is_own(const struct label_shape *shape, uint32_t index)
{
    return labels_of(shape)[index].at == SHAPE_OWN;
}

struct slice label_value(const struct label_shape *shape, struct label_cursor *cursor,
                         uint32_t index)
{
    const struct shape_label *labels = labels_of(shape);
    assert(cursor->index <= index && index < shape->labels_count);
    for (; cursor->index < index; cursor->index++)
        if (labels[cursor->index].at == SHAPE_OWN)
            (void)next_own(&cursor->own);
    const uint8_t *own = cursor->own;
    return labels[index].at == SHAPE_OWN
               ? next_own(&own)
               : slice_of(text_of(shape) + labels[index].at, labels[index].size_or_place);
}

int label_values_compare(const struct label_values *a, const struct label_values *b)
{
    const struct label_shape *shape = a->shape;
    if (shape->labels_count != b->shape->labels_count)
        return shape->labels_count < b->shape->labels_count ? -1 : 1;
    if (shape == b->shape) {
        const uint8_t *left = a->own.data;
        const uint8_t *right = b->own.data;
        for (uint32_t i = 0; i < shape->own_count; i++) {
            int order = slice_compare(next_own(&left), next_own(&right));
            if (order != 0)
                return order;
        }
        return 0;
    }
    struct label_cursor left = label_cursor_of(a);
    struct label_cursor right = label_cursor_of(b);
    for (uint32_t i = 0; i < shape->labels_count; i++) {
        int order = slice_compare(label_value(shape, &left, i), label_value(b->shape, &right, i));
        if (order != 0)
            return order;
    }
    return 0;
}

/* Two shapes of one text differ in which values are own ones. */
static bool have_equal_names(const struct label_values *a, const struct label_values *b)
{
    struct slice left = slice_of(text_of(a->shape), a->shape->text_bytes);
    struct slice right = slice_of(text_of(b->shape), b->shape->text_bytes);
    struct slice left_name;
    struct slice right_name;
    struct slice value;
    for (uint32_t i = 0; i < a->shape->labels_count; i++) {
        bool has_both = exposition_label_next(&left, &left_name, &value) &&
                        exposition_label_next(&right, &right_name, &value);
        if (!has_both || !slice_equal(left_name, right_name))
            return false;
    }
    return true;
}

bool label_values_equal(const struct label_values *a, const struct label_values *b)
{
    if (a->shape == b->shape)
        return slice_equal(a->own, b->own);
    return label_values_compare(a, b) == 0 && have_equal_names(a, b);
}
