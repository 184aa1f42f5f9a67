/* SPDX-License-Identifier: Apache-2.0 */
/* Any string as an expression, with any bytes behind its zero byte as the metric's name and the
 * value of a label. What it says of a point, its negation denies. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/records/metric_expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES_MAX = 1 << 20, VALUE_BYTES_MAX = 100, HEAD_BYTES = 7 };

/* The KeyValue host: value. */
static struct slice make_label(struct slice value, uint8_t room[static HEAD_BYTES + 4 + 100])
{
    const uint8_t head[] = {
        0x0a, 4, 'h', 'o', 's', 't', 0x12, (uint8_t)(value.size + 2), 0x0a, (uint8_t)value.size};
    memcpy(room, head, sizeof(head));
    if (value.size > 0)
        memcpy(room + sizeof(head), value.data, value.size);
    return slice_of(room, sizeof(head) + value.size);
}

static bool holds(const char *text, struct slice name, bool *ret_is_valid)
{
    struct error error;
    struct metric_expression *expression = metric_expression_create(text, &error);
    *ret_is_valid = expression != NULL;
    if (expression == NULL) {
        assert(strncmp(error.text, "column ", strlen("column ")) == 0);
        return false;
    }
    uint8_t room[HEAD_BYTES + 4 + VALUE_BYTES_MAX];
    struct attribute_list labels;
    struct slice value = name;
    if (value.size > VALUE_BYTES_MAX)
        value.size = VALUE_BYTES_MAX;
    attribute_list_init(&labels, ARENA_BYTES_MAX, NULL);
    attribute_list_add(&labels, make_label(value, room));
    const struct metric_expression_point point = {
        .name = name, .kind = METRIC_SUM, .labels = &labels, .arena = &labels.arena};
    bool result = metric_expression_takes(expression, &point);
    attribute_list_fini(&labels);
    metric_expression_destroy(expression);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    bool is_valid = false;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t length = strlen(text);
    struct slice name = slice_of(data + length, size - length);
    bool result = holds(text, name, &is_valid);
    if (is_valid) {
        char *negated = malloc(length + sizeof("not (\n)"));
        sprintf(negated, "not (%s\n)", text);
        bool opposite = holds(negated, name, &is_valid);
        assert(!is_valid || opposite != result); /* it may be nested too deeply now */
        free(negated);
    }
    free(text);
    return 0;
}
