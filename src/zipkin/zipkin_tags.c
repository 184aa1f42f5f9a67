/* SPDX-License-Identifier: Apache-2.0 */
/* Tags: adding, values, and which of equal ones counts. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/otlp/json/value_string.h"

/* AnyValue. */
enum { VALUE_STRING_FIELD = 1, VALUE_BOOL_FIELD = 2, VALUE_INT_FIELD = 3, VALUE_DOUBLE_FIELD = 4 };
/* Up to here each tag is compared with all others. */
enum { FEW_TAGS = 16 };

bool zipkin_add_tag(struct zipkin_request *request, const struct zipkin_tag *tag)
{
    struct zipkin_tag *tags = request->tags.memory;
    /* A tag without a key may have no bytes at all: of those in a row, the last one stays. */
    if (request->tags_count > 0 && tag->key.size == 0 &&
        tags[request->tags_count - 1].key.size == 0) {
        tags[request->tags_count - 1] = *tag;
        return true;
    }
    size_t bytes = (request->tags_count + 1) * sizeof(tags[0]);
    tags = scratch_room(&request->tags, request->budget, bytes);
    if (tags == NULL)
        return zipkin_no_memory(request, bytes);
    tags[request->tags_count++] = *tag;
    return true;
}

bool zipkin_add_string(struct zipkin_request *request, struct slice key, struct slice text)
{
    return zipkin_add_tag(request, &(struct zipkin_tag){.key = key, .text = text});
}

static size_t digits_from(struct slice text, size_t at)
{
    size_t begin = at;
    while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    return at - begin;
}

/* -?\d+ or -?\d+\.\d+; what is out of range becomes the nearest number. Everything else stays. */
static void parse_number(struct slice text, struct zipkin_tag *tag)
{
    size_t sign = text.size > 0 && text.data[0] == '-';
    size_t whole = digits_from(text, sign);
    if (whole == 0)
        return;
    size_t at = sign + whole;
    if (at == text.size) {
        tag->type = ZIPKIN_INT;
        if (!string_to_int(text, &tag->integer))
            tag->integer = sign > 0 ? INT64_MIN : INT64_MAX;
        return;
    }
    size_t fraction = text.data[at] == '.' ? digits_from(text, at + 1) : 0;
    if (fraction == 0 || at + 1 + fraction != text.size)
        return;
    double real;
    tag->type = ZIPKIN_DOUBLE;
    if (!string_to_double(text, &real))
        real = sign > 0 ? -(double)INFINITY : (double)INFINITY;
    tag->real = real;
}

void zipkin_tag_parse(struct zipkin_tag *tag)
{
    struct slice text = tag->text;
    assert(tag->type == ZIPKIN_STRING);
    bool is_true = slice_equal_text(text, "true");
    if (is_true || slice_equal_text(text, "false")) {
        tag->type = ZIPKIN_BOOL;
        tag->boolean = is_true;
    } else {
        parse_number(text, tag);
    }
}

static int compare_tags(const void *left, const void *right)
{
    const struct zipkin_tag *a = *(struct zipkin_tag *const *)left;
    const struct zipkin_tag *b = *(struct zipkin_tag *const *)right;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : (a > b) - (a < b);
}

bool zipkin_tags_settle(struct zipkin_request *request, struct zipkin_tag *tags, size_t count)
{
    if (count <= FEW_TAGS) {
        for (size_t i = 0; i < count; i++)
            for (size_t j = i + 1; j < count && !tags[i].is_gone; j++)
                tags[i].is_gone |= slice_equal(tags[i].key, tags[j].key);
        return true;
    }
    size_t bytes = count * sizeof(struct zipkin_tag *);
    struct zipkin_tag **order = scratch_room(&request->order, request->budget, bytes);
    if (order == NULL)
        return zipkin_no_memory(request, bytes);
    for (size_t i = 0; i < count; i++)
        order[i] = &tags[i];
    qsort(order, count, sizeof(struct zipkin_tag *), compare_tags);
    for (size_t i = 0; i + 1 < count; i++)
        order[i]->is_gone |= slice_equal(order[i]->key, order[i + 1]->key);
    return true;
}

void zipkin_put_tag(struct nested_output *output, uint32_t number, const struct zipkin_tag *tag)
{
    enum { KEY = 1, VALUE = 2 };
    bool is_long = tag->key.size + (tag->type == ZIPKIN_STRING ? tag->text.size : 0) > 100;
    uint64_t bits;
    struct nested_message pair = nested_put_begin(output, number, is_long ? 2 : 1);
    nested_put_bytes(output, KEY, tag->key);
    struct nested_message value = nested_put_begin(output, VALUE, is_long ? 2 : 1);
    switch (tag->type) {
    case ZIPKIN_STRING:
        nested_put_bytes(output, VALUE_STRING_FIELD, tag->text);
        break;
    case ZIPKIN_BOOL:
        nested_put_number(output, VALUE_BOOL_FIELD, tag->boolean);
        break;
    case ZIPKIN_INT:
        nested_put_number(output, VALUE_INT_FIELD, (uint64_t)tag->integer);
        break;
    case ZIPKIN_DOUBLE:
        memcpy(&bits, &tag->real, sizeof(bits));
        nested_put_fixed64(output, VALUE_DOUBLE_FIELD, bits);
        break;
    }
    nested_put_end(output, value);
    nested_put_end(output, pair);
}
