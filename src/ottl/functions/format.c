/* SPDX-License-Identifier: Apache-2.0 */
/* Format: values in a text, as Go's fmt.Sprintf writes them. Verbs with flags (+ - # 0 blank),
 * width and precision; mistakes show in the text (%!d(string=x)), as in Go. Runs on the processor's
 * thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"

enum { FORMAT, VALUES, NUMBER_MAX = 1000, NUMBER_BYTES = 1400 };

struct verb {
    uint8_t letter;
    bool has_plus, has_minus, has_sharp, has_space, has_zero;
    bool is_go;           /* %#v: strings in quotation marks */
    int width, precision; /* -1: not given */
};

static size_t characters_in(struct slice text)
{
    size_t count = 0;
    while (text.size > 0) {
        size_t size = utf8_size(text);
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
        count++;
    }
    return count;
}

static bool pad(struct text_builder *out, const struct verb *verb, struct slice text, bool by_zeros)
{
    size_t count = characters_in(text);
    size_t missing = verb->width > (int)count ? (size_t)verb->width - count : 0;
    bool is_behind = verb->has_minus;
    /* A sign stays before the zeros. */
    if (by_zeros && missing > 0 && !is_behind && text.size > 0 &&
        (text.data[0] == '-' || text.data[0] == '+' || text.data[0] == ' ')) {
        if (!text_builder_add_byte(out, text.data[0]))
            return false;
        text = slice_of(text.data + 1, text.size - 1);
    }
    if (is_behind && !text_builder_add(out, text.data, text.size))
        return false;
    for (size_t i = 0; i < missing; i++)
        if (!text_builder_add_byte(out, by_zeros && !is_behind ? '0' : ' '))
            return false;
    return is_behind || text_builder_add(out, text.data, text.size);
}

static bool add_text(struct text_builder *out, const char *text)
{
    return text_builder_add(out, text, strlen(text));
}

static bool add_value(struct text_builder *out, const struct verb *verb,
                      const struct ottl_value *value);

static const char *type_of(const struct ottl_value *value)
{
    return value->type == OTTL_NIL ? "<nil>" : ottl_type_name(value);
}

/* %!d(string=x): the value with the verb's flags, as %v. */
static bool add_misfit(struct text_builder *out, const struct verb *verb,
                       const struct ottl_value *value)
{
    struct verb plain = *verb;
    plain.letter = 'v';
    if (!add_text(out, "%!") || !text_builder_add_byte(out, verb->letter) || !add_text(out, "(") ||
        !add_text(out, type_of(value)))
        return false;
    if (value->type != OTTL_NIL && (!add_text(out, "=") || !add_value(out, &plain, value)))
        return false;
    return add_text(out, ")");
}

static bool add_int(struct text_builder *out, const struct verb *verb, int64_t number)
{
    static const char small[] = "0123456789abcdef";
    static const char large[] = "0123456789ABCDEF";
    char digits[NUMBER_BYTES];
    unsigned base = verb->letter == 'b'                          ? 2
                    : verb->letter == 'o' || verb->letter == 'O' ? 8
                    : verb->letter == 'x' || verb->letter == 'X' ? 16
                                                                 : 10;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    const char *set = verb->letter == 'X' ? large : small;
    size_t at = sizeof(digits);
    int wanted = verb->precision >= 0 ? verb->precision : 1;
    bool by_zeros = verb->has_zero && !verb->has_minus && verb->precision < 0;
    bool has_sign = number < 0 || verb->has_plus || verb->has_space;
    if (verb->precision == 0 && rest == 0)
        return pad(out, verb, slice_of(NULL, 0), false);
    if (by_zeros && verb->width > 0)
        wanted = verb->width - has_sign;
    for (int i = 0; rest > 0 || i < wanted; i++) {
        digits[--at] = set[rest % base];
        rest /= base;
    }
    if (verb->has_sharp && base == 2)
        at -= 2, memcpy(digits + at, "0b", 2);
    else if (verb->has_sharp && base == 8 && digits[at] != '0')
        digits[--at] = '0';
    else if (verb->has_sharp && base == 16)
        at -= 2, memcpy(digits + at, verb->letter == 'X' ? "0X" : "0x", 2);
    if (verb->letter == 'O')
        at -= 2, memcpy(digits + at, "0o", 2);
    if (has_sign)
        digits[--at] = number < 0 ? '-' : verb->has_plus ? '+' : ' ';
    return pad(out, verb, slice_of(digits + at, sizeof(digits) - at), false);
}

static bool add_double(struct text_builder *out, const struct verb *verb, double real)
{
    char text[NUMBER_BYTES + 1];
    uint8_t letter = verb->letter == 'v' ? 'g' : (uint8_t)(verb->letter | 0x20);
    size_t used = 0;
    double size = fabs(real);
    if (signbit(real) && !isnan(real))
        text[used++] = '-';
    else if (verb->has_plus || isnan(real) || (isinf(real) && verb->letter != 'v'))
        text[used++] = '+';
    else if (verb->has_space)
        text[used++] = ' ';
    if (isnan(real) || isinf(real)) {
        if (isinf(real) && used == 0)
            text[used++] = '+';
        if (isnan(real) && !verb->has_plus)
            used = 0;
        used += (size_t)sprintf(text + used, isnan(real) ? "NaN" : "Inf");
        return pad(out, verb, slice_of(text, used), false);
    }
    int precision = verb->precision;
    if (precision < 0 && letter != 'g')
        precision = 6;
    if (precision > NUMBER_MAX)
        precision = NUMBER_MAX;
    if (letter == 'g' && precision < 0)
        used += go_shortest_double(size, text + used);
    else if (letter == 'f')
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*f", precision, size);
    else if (letter == 'e')
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*e", precision, size);
    else
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*g", precision, size);
    if (verb->letter == 'E' || verb->letter == 'G')
        for (size_t i = 0; i < used; i++)
            text[i] = text[i] == 'e' ? 'E' : text[i];
    return pad(out, verb, slice_of(text, used), verb->has_zero);
}

/* In quotation marks, as strconv.Quote writes it; characters beyond ASCII are kept. */
static bool add_quoted(struct text_builder *quoted, struct slice text)
{
    static const char escaped[] = "\a\b\f\n\r\t\v\"\\";
    static const char letters[] = "abfnrtv\"\\";
    if (!text_builder_add_byte(quoted, '"'))
        return false;
    while (text.size > 0) {
        size_t size = utf8_size(text);
        uint8_t byte = text.data[0];
        const char *found = byte != 0 ? strchr(escaped, byte) : NULL;
        char code[8];
        if (found != NULL) {
            char pair[] = {'\\', letters[found - escaped]};
            if (!text_builder_add(quoted, pair, sizeof(pair)))
                return false;
        } else if (size == 0 || byte < ' ' || byte == 0x7f) {
            if (!text_builder_add(quoted, code, (size_t)sprintf(code, "\\x%02x", byte)))
                return false;
        } else if (!text_builder_add(quoted, text.data, size)) {
            return false;
        }
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
    }
    return text_builder_add_byte(quoted, '"');
}

static bool add_string(struct text_builder *out, const struct verb *verb, struct slice text)
{
    struct text_builder made;
    if (verb->precision >= 0 &&
        (verb->letter == 's' || verb->letter == 'v' || verb->letter == 'q')) {
        size_t end = 0;
        for (int i = 0; i < verb->precision && end < text.size; i++) {
            size_t size = utf8_size(slice_of(text.data + end, text.size - end));
            end += size > 0 ? size : 1;
        }
        text.size = end;
    }
    if (verb->letter == 's' || verb->letter == 'v')
        return pad(out, verb, text, verb->has_zero);
    if (verb->precision >= 0 && (size_t)verb->precision < text.size)
        text.size = verb->letter == 'q' ? text.size : (size_t)verb->precision;
    if (!text_builder_init(&made, out->call, 2 * text.size + 2))
        return false;
    if (verb->letter == 'q')
        return add_quoted(&made, text) && pad(out, verb, text_builder_text(&made), verb->has_zero);
    hex_write(text.data, text.size, made.bytes);
    made.size = 2 * text.size;
    for (size_t i = 0; i < made.size && verb->letter == 'X'; i++)
        if (made.bytes[i] >= 'a')
            made.bytes[i] = (uint8_t)(made.bytes[i] - 'a' + 'A');
    return pad(out, verb, text_builder_text(&made), verb->has_zero);
}

static bool is_one_of(uint8_t letter, const char *letters)
{
    return letter != 0 && strchr(letters, letter) != NULL;
}

/* Maps and lists are JSON: Go shows addresses of memory. */
static bool add_value(struct text_builder *out, const struct verb *verb,
                      const struct ottl_value *value)
{
    const uint8_t letter = verb->letter;
    struct slice text;
    bool has;
    switch (value->type) {
    case OTTL_NIL:
        return letter == 'v' ? pad(out, verb, slice_of_text("<nil>"), false)
                             : add_misfit(out, verb, value);
    case OTTL_BOOL:
        if (letter == 't' || letter == 'v')
            return pad(out, verb, slice_of_text(value->boolean ? "true" : "false"), verb->has_zero);
        return add_misfit(out, verb, value);
    case OTTL_INT:
        return is_one_of(letter, "vdboOxX") ? add_int(out, verb, value->integer)
                                            : add_misfit(out, verb, value);
    case OTTL_DOUBLE:
        return is_one_of(letter, "vgGeEfF") ? add_double(out, verb, value->real)
                                            : add_misfit(out, verb, value);
    case OTTL_STRING:
        if (verb->is_go) {
            struct verb quoting = *verb;
            quoting.letter = 'q';
            return add_string(out, &quoting, ottl_slice(value));
        }
        return is_one_of(letter, "vsqxX") ? add_string(out, verb, ottl_slice(value))
                                          : add_misfit(out, verb, value);
    case OTTL_BYTES:
        if (is_one_of(letter, "sqxX"))
            return add_string(out, verb, ottl_slice(value));
        break;
    case OTTL_MAP:
    case OTTL_LIST:
        return go_as_string(out->call, value, &text) && pad(out, verb, text, false);
    default:
        break;
    }
    return ottl_to_string_like(out->call, value, &text, &has) && pad(out, verb, text, false);
}

/* A number of a format: width or precision. -1: none. */
static int read_number(struct slice *rest)
{
    int number = -1;
    while (rest->size > 0 && rest->data[0] >= '0' && rest->data[0] <= '9') {
        number = (number < 0 ? 0 : number) * 10 + (rest->data[0] - '0');
        if (number > NUMBER_MAX)
            number = NUMBER_MAX;
        *rest = slice_of(rest->data + 1, rest->size - 1);
    }
    return number;
}

static void read_flags(struct slice *rest, struct verb *verb)
{
    for (; rest->size > 0; *rest = slice_of(rest->data + 1, rest->size - 1)) {
        if (rest->data[0] == '+')
            verb->has_plus = true;
        else if (rest->data[0] == '-')
            verb->has_minus = true;
        else if (rest->data[0] == '#')
            verb->has_sharp = true;
        else if (rest->data[0] == ' ')
            verb->has_space = true;
        else if (rest->data[0] == '0')
            verb->has_zero = true;
        else
            return;
    }
}

/* Behind a percent sign. */
static bool add_verb(struct text_builder *out, struct slice *rest, unsigned *next)
{
    struct ottl_call *call = out->call;
    struct verb verb = {.width = -1, .precision = -1};
    struct ottl_value value;
    read_flags(rest, &verb);
    verb.width = read_number(rest);
    if (rest->size > 0 && rest->data[0] == '.') {
        *rest = slice_of(rest->data + 1, rest->size - 1);
        verb.precision = read_number(rest);
        verb.precision = verb.precision < 0 ? 0 : verb.precision;
    }
    if (rest->size == 0)
        return add_text(out, "%!(NOVERB)");
    verb.letter = rest->data[0];
    *rest = slice_of(rest->data + 1, rest->size - 1);
    if (verb.letter == '%')
        return text_builder_add_byte(out, '%');
    if (verb.letter == 'v') { /* + and # concern structures */
        verb.is_go = verb.has_sharp;
        verb.has_plus = verb.has_sharp = false;
    }
    if (*next == ottl_items(call, VALUES))
        return add_text(out, "%!") && text_builder_add_byte(out, verb.letter) &&
               add_text(out, "(MISSING)");
    return ottl_get_item(call, VALUES, (*next)++, &value) && add_value(out, &verb, &value);
}

static bool format(struct ottl_call *call, struct ottl_value *ret)
{
    static const struct verb plain = {.letter = 'v', .width = -1, .precision = -1};
    struct slice rest;
    struct text_builder out;
    unsigned next = 0;
    if (!ottl_get_string(call, FORMAT, &rest) || !text_builder_init(&out, call, rest.size))
        return false;
    while (rest.size > 0) {
        const uint8_t *percent = memchr(rest.data, '%', rest.size);
        size_t size = percent != NULL ? (size_t)(percent - rest.data) : rest.size;
        if (!text_builder_add(&out, rest.data, size))
            return false;
        rest = slice_of(rest.data + size, rest.size - size);
        if (percent == NULL)
            break;
        rest = slice_of(rest.data + 1, rest.size - 1);
        if (!add_verb(&out, &rest, &next))
            return false;
    }
    const unsigned count = ottl_items(call, VALUES);
    for (unsigned i = next; i < count; i++) {
        struct ottl_value value;
        if (!ottl_get_item(call, VALUES, i, &value) ||
            !add_text(&out, i == next ? "%!(EXTRA " : ", ") || !add_text(&out, type_of(&value)) ||
            (value.type != OTTL_NIL && (!add_text(&out, "=") || !add_value(&out, &plain, &value))))
            return false;
    }
    if (next < count && !add_text(&out, ")"))
        return false;
    *ret = ottl_string(text_builder_text(&out));
    return true;
}

/* What Go has beyond: * and [n] take widths and places from the values. */
static bool prepare_format(const struct ottl_preparation *preparation, void **ret_state,
                           struct error *error)
{
    struct slice rest = ottl_literal_text(preparation, FORMAT);
    *ret_state = NULL;
    while (rest.size > 0) {
        const uint8_t *percent = memchr(rest.data, '%', rest.size);
        if (percent == NULL)
            return true;
        rest = slice_of(percent + 1, rest.size - (size_t)(percent + 1 - rest.data));
        while (rest.size > 0 && is_one_of(rest.data[0], "+-# 0123456789."))
            rest = slice_of(rest.data + 1, rest.size - 1);
        if (rest.size == 0)
            return true;
        if (rest.data[0] == '*' || rest.data[0] == '[')
            return error_set(error,
                             "widths and places from the values (%%* and %%[1]) are not supported; "
                             "write numbers, and the values in their order") ||
                   error_unsupported(error);
        rest = slice_of(rest.data + 1, rest.size - 1);
    }
    return true;
}

static const struct ottl_parameter format_parameters[] = {
    {"Format", OTTL_TEXT_LITERAL, false, false}, {"Vals", OTTL_ANY, false, true}, {.name = NULL}};

const struct ottl_function ottl_format_functions[] = {
    {.name = "Format",
     .parameters = format_parameters,
     .evaluate = format,
     .prepare = prepare_format},
    {.name = NULL},
};
