/* SPDX-License-Identifier: Apache-2.0 */
/* Each look-up walks the object once: the documents are small, or read from front to back. */
#include "src/cli/explore/json_part.h"

#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/text_escape.h"

enum { NUMBER_BYTES_MAX = 32 };

static struct slice skip(struct json_walk *walk)
{
    json_walk_peek(walk);
    const uint8_t *begin = walk->scan.at;
    return json_walk_skip(walk) ? slice_of(begin, (size_t)(walk->scan.at - begin))
                                : slice_of("", 0);
}

bool json_part_is_whole(struct slice text)
{
    struct json_walk walk = json_walk_of(text);
    return json_walk_skip(&walk) && json_walk_end(&walk);
}

struct slice json_part(struct slice object, const char *key)
{
    struct json_walk walk = json_walk_of(object);
    struct json_string found;
    if (json_walk_peek(&walk) != '{' || !json_walk_object(&walk))
        return slice_of("", 0);
    while (json_walk_key(&walk, &found)) {
        struct slice value = skip(&walk);
        if (json_walk_is(&found, key))
            return value;
    }
    return slice_of("", 0);
}

/* Without quotes, as text that ends. */
static void copy_number(struct slice value, char text[NUMBER_BYTES_MAX])
{
    size_t from = value.size > 0 && value.data[0] == '"';
    size_t size = 0;
    while (from + size < value.size && size < NUMBER_BYTES_MAX - 1 &&
           value.data[from + size] != '"') {
        text[size] = (char)value.data[from + size];
        size++;
    }
    text[size] = '\0';
}

int64_t json_part_integer(struct slice value)
{
    char text[NUMBER_BYTES_MAX];
    copy_number(value, text);
    return strtoll(text, NULL, 10);
}

double json_part_real(struct slice value)
{
    char text[NUMBER_BYTES_MAX];
    copy_number(value, text);
    return strtod(text, NULL);
}

bool json_part_is_true(struct slice value)
{
    return slice_equal_text(value, "true");
}

void json_part_print(FILE *out, struct slice value)
{
    struct json_walk walk = json_walk_of(value);
    struct json_string string;
    if (json_walk_peek(&walk) != '"' || !json_walk_string(&walk, &string))
        return;
    uint8_t *room = mem_alloc(string.raw.size + 1);
    text_escape_terminal(out, slice_of(room, json_unescape(&string, room)));
    mem_free(room);
}

struct json_items json_items_of(struct slice list)
{
    struct json_items items = {.walk = json_walk_of(list)};
    items.is_open = json_walk_peek(&items.walk) == '[' && json_walk_list(&items.walk);
    return items;
}

bool json_items_next(struct json_items *items, struct slice *ret_item)
{
    items->is_open = items->is_open && json_walk_item(&items->walk);
    if (items->is_open)
        *ret_item = skip(&items->walk);
    items->is_open = items->is_open && items->walk.failure == NULL;
    return items->is_open;
}

size_t json_items_take(struct slice list, struct slice *taken, size_t most)
{
    struct json_items items = json_items_of(list);
    size_t count = 0;
    while (count < most && json_items_next(&items, &taken[count]))
        count++;
    return count;
}
