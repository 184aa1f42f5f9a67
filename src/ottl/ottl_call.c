/* SPDX-License-Identifier: Apache-2.0 */
/* What functions ask the engine: their arguments in Go's conversions (pkg/ottl, expression.go),
 * memory, errors. Runs on the processor's thread. */
#include <assert.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/hex.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_time.h"

enum { VALUE_BITS = 8, YEAR_MAX = 9999 };

bool ottl_fail(struct ottl_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->run->error, sizeof(call->run->error), format, args);
    va_end(args);
    return false;
}

bool ottl_no_memory(struct ottl_call *call)
{
    return ottl_run_no_memory(call->run);
}

bool ottl_no_budget(struct ottl_call *call, size_t bytes)
{
    return ottl_run_no_budget(call->run, bytes);
}

void *ottl_alloc(struct ottl_call *call, size_t bytes)
{
    void *room = ottl_memory_room(call->memory, bytes);
    if (room == NULL)
        ottl_no_memory(call);
    return room;
}

bool ottl_spend(struct ottl_call *call, uint64_t bytes)
{
    return ottl_run_spend(call->run, bytes);
}

uint64_t ottl_now_ns(const struct ottl_call *call)
{
    (void)call;
    return clock_wall_ns();
}

bool ottl_has(const struct ottl_call *call, unsigned parameter)
{
    return call->arguments[parameter].is_given;
}

static bool get(struct ottl_call *call, const struct ottl_argument *argument,
                struct ottl_value *ret)
{
    assert(argument->is_given && argument->node != NULL);
    if (!argument->node->get(argument->node, call->run, ret))
        return false;
    if (argument->is_outer)
        ottl_run_charge(call->run, ret);
    return true;
}

bool ottl_get(struct ottl_call *call, unsigned parameter, struct ottl_value *ret)
{
    return get(call, &call->arguments[parameter], ret);
}

/* Go's TypeError of a getter. */
static bool fail_type(struct ottl_call *call, const char *expected, const struct ottl_value *value)
{
    return ottl_fail(call, "expected %s but got %s", expected,
                     value->type == OTTL_NIL ? "nil" : ottl_type_name(value));
}

static bool get_typed(struct ottl_call *call, unsigned parameter, enum ottl_type type,
                      const char *name, struct ottl_value *ret)
{
    return ottl_get(call, parameter, ret) && (ret->type == type || fail_type(call, name, ret));
}

static __attribute__((noinline)) bool get_any_string(struct ottl_call *call, unsigned parameter,
                                                     struct slice *ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_STRING, "string", &value))
        return false;
    *ret = ottl_slice(&value);
    return true;
}

bool ottl_get_string(struct ottl_call *call, unsigned parameter, struct slice *ret)
{
    const struct ottl_node *node = call->arguments[parameter].node;
    if (node == NULL || node->get != ottl_node_constant || node->constant.type != OTTL_STRING)
        return get_any_string(call, parameter, ret);
    *ret = ottl_slice(&node->constant);
    return true;
}

bool ottl_get_int(struct ottl_call *call, unsigned parameter, int64_t *ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_INT, "int64", &value))
        return false;
    *ret = value.integer;
    return true;
}

bool ottl_get_double(struct ottl_call *call, unsigned parameter, double *ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_DOUBLE, "float64", &value))
        return false;
    *ret = value.real;
    return true;
}

bool ottl_get_bool(struct ottl_call *call, unsigned parameter, bool *ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_BOOL, "bool", &value))
        return false;
    *ret = value.boolean;
    return true;
}

bool ottl_get_time(struct ottl_call *call, unsigned parameter, struct ottl_value *ret)
{
    return get_typed(call, parameter, OTTL_TIME, "time", ret);
}

bool ottl_get_duration(struct ottl_call *call, unsigned parameter, int64_t *ret_ns)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_DURATION, "duration", &value))
        return false;
    *ret_ns = value.integer;
    return true;
}

/* Go's …GetSetters are got, changed and set. Here most are changed in place. */
static void note_lent(struct ottl_call *call, unsigned parameter, const struct ottl_value *value)
{
    const struct ottl_path *path = call->arguments[parameter].path;
    if (path == NULL || (path->row->takes_keys & OTTL_COPY) == 0)
        return;
    call->lent = path;
    call->lent_value = *value;
}

void ottl_leave(struct ottl_call *call)
{
    call->lent = NULL;
}

bool ottl_get_map(struct ottl_call *call, unsigned parameter, struct ottl_map **ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_MAP, "pcommon.Map", &value))
        return false;
    note_lent(call, parameter, &value);
    *ret = value.map;
    return true;
}

bool ottl_get_list(struct ottl_call *call, unsigned parameter, struct ottl_list **ret)
{
    struct ottl_value value;
    if (!get_typed(call, parameter, OTTL_LIST, "pcommon.Slice", &value))
        return false;
    value.form = OTTL_FORM_PDATA;
    note_lent(call, parameter, &value);
    *ret = value.list;
    return true;
}

static bool keep_text(struct ottl_call *call, const void *text, size_t size, struct slice *ret)
{
    uint8_t *room = ottl_alloc(call, size);
    if (room == NULL)
        return false;
    memcpy(room, text, size);
    *ret = slice_of(room, size);
    return true;
}

/* Maps and lists as JSON: as the one attribute, without a name, of a message, since that is what
 * the writer takes. */
static bool container_text(struct ottl_call *call, const struct ottl_value *value,
                           struct slice *ret)
{
    enum { ATTRIBUTES = 1, VALUE = 2, BEFORE = 4, AROUND = 5 }; /* {"":…} */
    size_t size = ottl_value_encoded_size(value);
    size_t content = wire_field_size(VALUE, size);
    size_t whole = wire_field_size(ATTRIBUTES, content);
    uint8_t *room = ottl_alloc(call, whole);
    if (room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, whole);
    wire_write_header(&writer, ATTRIBUTES, content);
    wire_write_header(&writer, VALUE, size);
    ottl_value_encode(value, writer.at);
    struct arena arena;
    struct slice text;
    arena_init_charged(&arena, SIZE_MAX, call->memory->budget);
    const bool is_done = attributes_to_json(&arena, slice_of(room, whole), ATTRIBUTES, &text)
                             ? keep_text(call, text.data + BEFORE, text.size - AROUND, ret)
                             : ottl_no_budget(call, arena.refused_bytes);
    arena_clear(&arena);
    return is_done;
}

/* As goccy/go-json writes it: an exponent has two digits. */
static size_t double_text(double real, char text[DOUBLE_STRING_BYTES_MAX])
{
    size_t size = double_to_string(real, text);
    if (size > 3 && text[size - 3] == 'e') {
        text[size] = text[size - 1];
        text[size - 1] = '0';
        size++;
    }
    return size;
}

/* Ids as the arrays of bytes that they are in Go. */
static bool id_text(struct ottl_call *call, const struct ottl_value *value, struct slice *ret)
{
    enum { DIGITS_MAX = 4 };
    char *room = ottl_alloc(call, (size_t)value->size * DIGITS_MAX + 2);
    size_t used = 0;
    if (room == NULL)
        return false;
    for (uint32_t i = 0; i < value->size; i++)
        used += (size_t)sprintf(room + used, "%c%u", i == 0 ? '[' : ',', value->bytes[i]);
    room[used++] = ']';
    *ret = slice_of(room, used);
    return true;
}

/* Times as JSON; Go's list is nil when it is empty. */
static bool times_text(struct ottl_call *call, const struct ottl_list *list, struct slice *ret)
{
    enum { TIME_TEXT_BYTES_MAX = 64 };
    char *room = ottl_alloc(call, (size_t)list->count * TIME_TEXT_BYTES_MAX + 2);
    size_t used = 0;
    if (room == NULL)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        room[used++] = i == 0 ? '[' : ',';
        used += ottl_time_to_json(&list->items[i], room + used, TIME_TEXT_BYTES_MAX - 1);
    }
    room[used++] = ']';
    *ret = list->count > 0 ? slice_of(room, used) : slice_of_text("null");
    return true;
}

bool ottl_to_string_like(struct ottl_call *call, const struct ottl_value *value, struct slice *ret,
                         bool *ret_has)
{
    char text[DOUBLE_STRING_BYTES_MAX];
    uint8_t *room;
    *ret_has = true;
    switch (value->type) {
    case OTTL_NIL:
        *ret_has = false;
        *ret = slice_of(NULL, 0);
        return true;
    case OTTL_STRING:
        *ret = ottl_slice(value);
        return true;
    case OTTL_BOOL:
        *ret = slice_of_text(value->boolean ? "true" : "false");
        return true;
    case OTTL_INT:
    case OTTL_DURATION:
        return keep_text(call, text,
                         (size_t)snprintf(text, sizeof(text), "%lld", (long long)value->integer),
                         ret);
    case OTTL_DOUBLE:
        return keep_text(call, text, double_text(value->real, text), ret);
    case OTTL_BYTES:
        room = ottl_alloc(call, 2 * (size_t)value->size);
        if (room == NULL)
            return false;
        *ret = hex_write(value->bytes, value->size, room);
        return true;
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_PROFILE_ID:
        return id_text(call, value, ret);
    case OTTL_TIME:
        if (ottl_date_of(value).year < 0 || ottl_date_of(value).year > YEAR_MAX)
            return ottl_fail(call, "unsupported type: %s", ottl_type_name(value));
        return keep_text(call, text, ottl_time_to_json(value, text, sizeof(text)), ret);
    case OTTL_MAP:
    case OTTL_LIST:
        if (value->type == OTTL_LIST && value->form == OTTL_FORM_TIMES)
            return times_text(call, value->list, ret);
        return container_text(call, value, ret);
    case OTTL_MESSAGE: /* a struct whose fields Go does not show */
        *ret = slice_of_text("{}");
        return true;
    default:
        return ottl_fail(call, "unsupported type: %s", ottl_type_name(value));
    }
}

/* Most are strings. */
static inline bool string_like(struct ottl_call *call, const struct ottl_value *value,
                               struct slice *ret, bool *ret_has)
{
    if (value->type != OTTL_STRING && value->type != OTTL_NIL)
        return ottl_to_string_like(call, value, ret, ret_has);
    *ret_has = value->type == OTTL_STRING;
    *ret = *ret_has ? ottl_slice(value) : slice_of(NULL, 0);
    return true;
}

bool ottl_get_string_like(struct ottl_call *call, unsigned parameter, struct slice *ret,
                          bool *ret_has)
{
    struct ottl_value value;
    return ottl_get(call, parameter, &value) && string_like(call, &value, ret, ret_has);
}

/* As Go converts a double to int64 on amd64: what does not fit becomes the smallest. */
static int64_t to_int(double real)
{
    return real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MIN;
}

/* NULL, or why the value has no such number. *ret_has is false for nil, and for text without a
 * number. */
static const char *int_like(const struct ottl_value *value, int64_t *ret, bool *ret_has)
{
    *ret_has = true;
    *ret = 0;
    if (value->type == OTTL_INT)
        *ret = value->integer;
    else if (value->type == OTTL_DOUBLE)
        *ret = to_int(value->real);
    else if (value->type == OTTL_BOOL)
        *ret = value->boolean;
    else if (value->type == OTTL_STRING)
        *ret_has = string_to_int(ottl_slice(value), ret);
    else if (value->type == OTTL_NIL)
        *ret_has = false;
    else
        return "unsupported type";
    return NULL;
}

static const char *double_like(const struct ottl_value *value, double *ret, bool *ret_has)
{
    *ret_has = true;
    *ret = 0;
    if (value->type == OTTL_INT)
        *ret = (double)value->integer;
    else if (value->type == OTTL_DOUBLE)
        *ret = value->real;
    else if (value->type == OTTL_BOOL)
        *ret = value->boolean;
    else if (value->type == OTTL_NIL)
        *ret_has = false;
    else if (value->type != OTTL_STRING)
        return "unsupported type";
    else if (!string_to_double(ottl_slice(value), ret))
        return "strconv.ParseFloat: invalid syntax";
    return NULL;
}

static const char *bool_like(const struct ottl_value *value, bool *ret, bool *ret_has)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    *ret_has = true;
    *ret = false;
    if (value->type == OTTL_BOOL)
        *ret = value->boolean;
    else if (value->type == OTTL_INT)
        *ret = value->integer != 0;
    else if (value->type == OTTL_DOUBLE)
        *ret = value->real != 0;
    else if (value->type == OTTL_NIL)
        *ret_has = false;
    else if (value->type != OTTL_STRING)
        return "unsupported type";
    else {
        for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
            *ret = slice_equal_text(ottl_slice(value), yes[i]);
            if (*ret || slice_equal_text(ottl_slice(value), no[i]))
                return NULL;
        }
        return "strconv.ParseBool: invalid syntax";
    }
    return NULL;
}

static bool pass(struct ottl_call *call, const char *failure, const struct ottl_value *value)
{
    return failure == NULL || ottl_fail(call, "%s: %s", failure, ottl_type_name(value));
}

bool ottl_get_int_like(struct ottl_call *call, unsigned parameter, int64_t *ret, bool *ret_has)
{
    struct ottl_value value;
    return ottl_get(call, parameter, &value) && pass(call, int_like(&value, ret, ret_has), &value);
}

bool ottl_get_double_like(struct ottl_call *call, unsigned parameter, double *ret, bool *ret_has)
{
    struct ottl_value value;
    return ottl_get(call, parameter, &value) &&
           pass(call, double_like(&value, ret, ret_has), &value);
}

bool ottl_get_bool_like(struct ottl_call *call, unsigned parameter, bool *ret, bool *ret_has)
{
    struct ottl_value value;
    return ottl_get(call, parameter, &value) && pass(call, bool_like(&value, ret, ret_has), &value);
}

/* Numbers are big-endian, as encoding/binary writes them. */
bool ottl_get_bytes_like(struct ottl_call *call, unsigned parameter, struct slice *ret)
{
    struct ottl_value value;
    uint64_t bits;
    *ret = slice_of(NULL, 0);
    if (!ottl_get(call, parameter, &value))
        return false;
    switch (value.type) {
    case OTTL_NIL:
        return true;
    case OTTL_STRING:
    case OTTL_BYTES:
        *ret = ottl_slice(&value);
        return true;
    case OTTL_BOOL: {
        uint8_t byte = value.boolean;
        return keep_text(call, &byte, 1, ret);
    }
    case OTTL_INT:
    case OTTL_DOUBLE: {
        uint8_t bytes[sizeof(bits)];
        memcpy(&bits, &value.integer, sizeof(bits));
        for (unsigned i = 0; i < sizeof(bits); i++)
            bytes[i] = (uint8_t)(bits >> VALUE_BITS * (sizeof(bits) - 1 - i));
        return keep_text(call, bytes, sizeof(bytes), ret);
    }
    default:
        return ottl_fail(call, "unsupported type: %s", ottl_type_name(&value));
    }
}

bool ottl_set(struct ottl_call *call, unsigned parameter, const struct ottl_value *value)
{
    const struct ottl_path *path = call->arguments[parameter].path;
    assert(path != NULL);
    if (path->row->set == NULL)
        return ottl_fail(call, "%.*s cannot be set", (int)path->text.size,
                         (const char *)path->text.data);
    return path->row->set(call->run, path, value);
}

unsigned ottl_items(const struct ottl_call *call, unsigned parameter)
{
    return call->arguments[parameter].count;
}

bool ottl_get_item(struct ottl_call *call, unsigned parameter, unsigned item,
                   struct ottl_value *ret)
{
    assert(item < call->arguments[parameter].count);
    return get(call, &call->arguments[parameter].items[item], ret);
}

bool ottl_get_item_string(struct ottl_call *call, unsigned parameter, unsigned item,
                          struct slice *ret)
{
    struct ottl_value value;
    if (!ottl_get_item(call, parameter, item, &value))
        return false;
    if (value.type != OTTL_STRING)
        return fail_type(call, "string", &value);
    *ret = ottl_slice(&value);
    return true;
}

bool ottl_get_item_string_like(struct ottl_call *call, unsigned parameter, unsigned item,
                               struct slice *ret, bool *ret_has)
{
    struct ottl_value value;
    return ottl_get_item(call, parameter, item, &value) && string_like(call, &value, ret, ret_has);
}

bool ottl_apply(struct ottl_call *call, unsigned parameter, const struct ottl_value *values,
                unsigned count, struct ottl_value *ret)
{
    const struct ottl_argument *argument = &call->arguments[parameter];
    enum { PARAMETERS_MAX = 8 };
    struct ottl_argument arguments[PARAMETERS_MAX] = {{.is_given = false}};
    struct ottl_node nodes[PARAMETERS_MAX];
    const struct ottl_parameter *parameters = argument->function->parameters;
    unsigned wanted = 0;
    while (parameters != NULL && parameters[wanted].name != NULL)
        wanted++;
    if (wanted != count || count > PARAMETERS_MAX)
        return ottl_fail(call, "incorrect number of arguments. Expected: %u Received: %u", wanted,
                         count);
    for (unsigned i = 0; i < count; i++) {
        const char *mismatch =
            ottl_parameter_mismatch((enum ottl_parameter_type)parameters[i].type, &values[i]);
        if (mismatch != NULL)
            return ottl_fail(call, "%s", mismatch);
        nodes[i] = (struct ottl_node){.get = ottl_node_constant, .constant = values[i]};
        arguments[i] = (struct ottl_argument){.is_given = true, .node = &nodes[i]};
    }
    const struct ottl_invocation invocation = {
        .function = argument->function, .arguments = arguments, .state = argument->state};
    return ottl_invoke(&invocation, call->run, ret);
}

const char *ottl_parameter_mismatch(enum ottl_parameter_type type, const struct ottl_value *value)
{
    static const struct {
        uint8_t parameter;
        uint8_t type;
        const char *text;
    } strict[] = {
        {OTTL_STRINGS_ONLY, OTTL_STRING, "expected string"},
        {OTTL_INTS_ONLY, OTTL_INT, "expected int64"},
        {OTTL_DOUBLES_ONLY, OTTL_DOUBLE, "expected float64"},
        {OTTL_BOOLS_ONLY, OTTL_BOOL, "expected bool"},
        {OTTL_TIMES_ONLY, OTTL_TIME, "expected time"},
        {OTTL_DURATIONS_ONLY, OTTL_DURATION, "expected duration"},
        {OTTL_MAPS_ONLY, OTTL_MAP, "expected pcommon.Map"},
        {OTTL_LISTS_ONLY, OTTL_LIST, "expected pcommon.Slice"},
    };
    int64_t integer;
    double real;
    bool boolean;
    bool has;
    for (size_t i = 0; i < sizeof(strict) / sizeof(strict[0]); i++)
        if (strict[i].parameter == type)
            return value->type == strict[i].type ? NULL : strict[i].text;
    if (type == OTTL_INT_LIKE)
        return int_like(value, &integer, &has);
    if (type == OTTL_DOUBLE_LIKE)
        return double_like(value, &real, &has);
    if (type == OTTL_BOOL_LIKE)
        return bool_like(value, &boolean, &has);
    if (type == OTTL_BYTES_LIKE && value->type > OTTL_BYTES)
        return "unsupported type";
    return NULL;
}
