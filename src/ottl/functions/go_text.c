/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the processor's thread. */
#include "src/ottl/functions/go_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/otlp/json/value_string.h"
#include "src/ottl/functions/text_builder.h"

bool go_as_string(struct ottl_call *call, const struct ottl_value *value, struct slice *ret)
{
    if (value->type == OTTL_STRING) {
        *ret = ottl_slice(value);
        return true;
    }
    size_t size = ottl_value_encoded_size(value);
    uint8_t *encoded = ottl_alloc(call, size);
    if (encoded == NULL)
        return false;
    ottl_value_encode(value, encoded);
    struct arena arena;
    arena_init_charged(&arena, SIZE_MAX, call->memory->budget);
    const bool is_done = value_to_string(&arena, slice_of(encoded, size), ret)
                             ? text_keep(call, *ret, ret)
                             : ottl_no_budget(call, arena.refused_bytes);
    arena_clear(&arena);
    return is_done;
}

size_t go_shortest_double(double real, char *text)
{
    char digits[GO_DOUBLE_BYTES_MAX];
    int precision = 0;
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision, real);
        if (strtod(digits, NULL) == real)
            break;
    }
    const int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 6)
        return (size_t)sprintf(text, "%.*e", precision, real);
    return (size_t)sprintf(text, "%.*f", precision > exponent ? precision - exponent : 0, real);
}

const char *go_value_type(const struct ottl_value *value)
{
    static const char *const names[] = {"Empty", "Bool", "Int", "Double", "Str", "Bytes"};
    if (value->type <= OTTL_BYTES)
        return names[value->type];
    return value->type == OTTL_MAP ? "Map" : "Slice";
}
