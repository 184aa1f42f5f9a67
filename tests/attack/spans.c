/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and Thrift from one kind of table. */
#include "tests/attack/spans.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "src/base/hex.h"
#include "tests/attack/mutate.h"
#include "tests/attack/pool.h"

enum kind {
    BOOL,
    I16,
    I32,
    I64,
    DOUBLE,
    TEXT,
    BLOB,    /* bytes of any size; JSON: text */
    STRUCT,  /* inside */
    STRUCTS, /* a list of inside */
    TEXTS,   /* JSON: an object of texts */
};

enum meaning {
    ANY,
    KEY,
    TRACE,  /* an id; JSON: hexadecimal */
    SPAN,   /* the same */
    MICROS, /* since 1970 */
    TYPE,   /* a small number */
    ADDRESS,
    SPAN_KIND,
};

struct field {
    int16_t id; /* in Thrift */
    const char *name;
    enum kind kind;
    enum meaning meaning;
    const struct field *inside;
    unsigned many; /* of structs: fewer than this, times the scale of spans; 0: 3 */
};

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const struct field endpoint_v2[] = {{1, "serviceName", TEXT, ANY, NULL, 0},
                                           {2, "ipv4", TEXT, ADDRESS, NULL, 0},
                                           {3, "ipv6", TEXT, ADDRESS, NULL, 0},
                                           {4, "port", I16, ANY, NULL, 0},
                                           END};
static const struct field annotation_v2[] = {
    {1, "timestamp", I64, MICROS, NULL, 0}, {2, "value", TEXT, ANY, NULL, 0}, END};
static const struct field span_v2[] = {{1, "traceId", TEXT, TRACE, NULL, 0},
                                       {2, "parentId", TEXT, SPAN, NULL, 0},
                                       {3, "id", TEXT, SPAN, NULL, 0},
                                       {4, "kind", TEXT, SPAN_KIND, NULL, 0},
                                       {5, "name", TEXT, ANY, NULL, 0},
                                       {6, "timestamp", I64, MICROS, NULL, 0},
                                       {7, "duration", I64, ANY, NULL, 0},
                                       {8, "localEndpoint", STRUCT, ANY, endpoint_v2, 0},
                                       {9, "remoteEndpoint", STRUCT, ANY, endpoint_v2, 0},
                                       {10, "annotations", STRUCTS, ANY, annotation_v2, 0},
                                       {11, "tags", TEXTS, ANY, NULL, 0},
                                       {12, "debug", BOOL, ANY, NULL, 0},
                                       {13, "shared", BOOL, ANY, NULL, 0},
                                       END};

/* Version 1 in JSON: its annotations mean more ("cs", "sr"), and values have types. */
static const struct field annotation_v1[] = {{1, "timestamp", I64, MICROS, NULL, 0},
                                             {2, "value", TEXT, SPAN_KIND, NULL, 0},
                                             {3, "endpoint", STRUCT, ANY, endpoint_v2, 0},
                                             END};
static const struct field tag_v1[] = {{1, "key", TEXT, KEY, NULL, 0},
                                      {2, "value", TEXT, ANY, NULL, 0},
                                      {4, "endpoint", STRUCT, ANY, endpoint_v2, 0},
                                      END};
static const struct field span_v1[] = {{1, "traceId", TEXT, TRACE, NULL, 0},
                                       {2, "parentId", TEXT, SPAN, NULL, 0},
                                       {3, "id", TEXT, SPAN, NULL, 0},
                                       {5, "name", TEXT, ANY, NULL, 0},
                                       {6, "timestamp", I64, MICROS, NULL, 0},
                                       {7, "duration", I64, ANY, NULL, 0},
                                       {8, "annotations", STRUCTS, ANY, annotation_v1, 4},
                                       {9, "binaryAnnotations", STRUCTS, ANY, tag_v1, 5},
                                       {10, "debug", BOOL, ANY, NULL, 0},
                                       END};

/* zipkinCore.thrift */
static const struct field thrift_endpoint[] = {{1, "ipv4", I32, ANY, NULL, 0},
                                               {2, "port", I16, ANY, NULL, 0},
                                               {3, "service_name", TEXT, ANY, NULL, 0},
                                               {4, "ipv6", BLOB, ANY, NULL, 0},
                                               END};
static const struct field thrift_annotation[] = {{1, "timestamp", I64, MICROS, NULL, 0},
                                                 {2, "value", TEXT, SPAN_KIND, NULL, 0},
                                                 {3, "host", STRUCT, ANY, thrift_endpoint, 0},
                                                 END};
static const struct field thrift_tag[] = {{1, "key", TEXT, KEY, NULL, 0},
                                          {2, "value", BLOB, ANY, NULL, 0},
                                          {3, "annotation_type", I32, TYPE, NULL, 0},
                                          {4, "host", STRUCT, ANY, thrift_endpoint, 0},
                                          END};
static const struct field thrift_span[] = {{1, "trace_id", I64, TRACE, NULL, 0},
                                           {3, "name", TEXT, ANY, NULL, 0},
                                           {4, "id", I64, SPAN, NULL, 0},
                                           {5, "parent_id", I64, SPAN, NULL, 0},
                                           {6, "annotations", STRUCTS, ANY, thrift_annotation, 4},
                                           {8, "binary_annotations", STRUCTS, ANY, thrift_tag, 5},
                                           {9, "debug", BOOL, ANY, NULL, 0},
                                           {10, "timestamp", I64, MICROS, NULL, 0},
                                           {11, "duration", I64, ANY, NULL, 0},
                                           {12, "trace_id_high", I64, TRACE, NULL, 0},
                                           END};

/* jaeger.thrift */
static const struct field jaeger_tag[] = {
    {1, "key", TEXT, KEY, NULL, 0},     {2, "vType", I32, TYPE, NULL, 0},
    {3, "vStr", TEXT, ANY, NULL, 0},    {4, "vDouble", DOUBLE, ANY, NULL, 0},
    {5, "vBool", BOOL, ANY, NULL, 0},   {6, "vLong", I64, ANY, NULL, 0},
    {7, "vBinary", BLOB, ANY, NULL, 0}, END};
static const struct field jaeger_log[] = {
    {1, "timestamp", I64, MICROS, NULL, 0}, {2, "fields", STRUCTS, ANY, jaeger_tag, 0}, END};
static const struct field jaeger_reference[] = {{1, "refType", I32, TYPE, NULL, 0},
                                                {2, "traceIdLow", I64, TRACE, NULL, 0},
                                                {3, "traceIdHigh", I64, TRACE, NULL, 0},
                                                {4, "spanId", I64, SPAN, NULL, 0},
                                                END};
static const struct field jaeger_span[] = {
    {1, "traceIdLow", I64, TRACE, NULL, 0},    {2, "traceIdHigh", I64, TRACE, NULL, 0},
    {3, "spanId", I64, SPAN, NULL, 0},         {4, "parentSpanId", I64, SPAN, NULL, 0},
    {5, "operationName", TEXT, ANY, NULL, 0},  {6, "references", STRUCTS, ANY, jaeger_reference, 0},
    {7, "flags", I32, TYPE, NULL, 0},          {8, "startTime", I64, MICROS, NULL, 0},
    {9, "duration", I64, ANY, NULL, 0},        {10, "tags", STRUCTS, ANY, jaeger_tag, 5},
    {11, "logs", STRUCTS, ANY, jaeger_log, 0}, END};
static const struct field jaeger_process[] = {
    {1, "serviceName", TEXT, ANY, NULL, 0}, {2, "tags", STRUCTS, ANY, jaeger_tag, 5}, END};
static const struct field jaeger_stats[] = {{1, "fullQueueDroppedSpans", I64, ANY, NULL, 0},
                                            {2, "tooLargeDroppedSpans", I64, ANY, NULL, 0},
                                            END};
enum { SPANS_MANY = 100 };
static const struct field jaeger_batch[] = {{1, "process", STRUCT, ANY, jaeger_process, 0},
                                            {2, "spans", STRUCTS, ANY, jaeger_span, SPANS_MANY},
                                            {3, "seqNo", I64, ANY, NULL, 0},
                                            {4, "stats", STRUCT, ANY, jaeger_stats, 0},
                                            END};
static const struct field jaeger_call[] = {{1, "batch", STRUCT, ANY, jaeger_batch, 0}, END};

struct writing {
    struct spans_maker *maker;
    struct bytes_out *out;
    size_t begin;
    enum spans_encoding encoding;
    unsigned scale;
    int last_id;            /* compact: of the field before, in this struct */
    const char *long_field; /* has long_text so many times more; NULL: none */
    struct slice long_text;
    unsigned long_left;
};

static uint64_t below(struct writing *writing, uint64_t bound)
{
    return random_below(&writing->maker->world->random, bound);
}

static bool spoils(struct writing *writing, uint64_t times)
{
    return !writing->maker->is_valid && below(writing, times) == 0;
}

static bool is_full(const struct writing *writing)
{
    return writing->out->size - writing->begin > writing->maker->size_max;
}

static void put_byte(struct writing *writing, unsigned byte)
{
    bytes_add(writing->out, &(uint8_t){(uint8_t)byte}, 1);
}

static void put_varint(struct writing *writing, uint64_t value)
{
    unsigned padding = spoils(writing, 2000) ? (unsigned)below(writing, 12) : 0;
    for (; value > 0x7f || padding > 0; value >>= 7) {
        put_byte(writing, (unsigned)(value & 0x7f) | 0x80);
        padding -= padding > 0;
    }
    put_byte(writing, (unsigned)value);
}

/* Of so many bytes; compact: a varint that zigzags. */
static void put_number(struct writing *writing, uint64_t value, unsigned size)
{
    if (writing->encoding == SPANS_COMPACT) {
        put_varint(writing, value << 1 ^ (0 - (value >> 63)));
        return;
    }
    for (unsigned i = size; i-- > 0;)
        put_byte(writing, (unsigned)(value >> 8 * i & 0xff));
}

/* A length or a count, which may lie. */
static void put_count(struct writing *writing, uint64_t count)
{
    if (spoils(writing, 800))
        count = odd_number(writing->maker->world, count);
    if (writing->encoding == SPANS_COMPACT)
        put_varint(writing, count);
    else
        put_number(writing, count, 4);
}

static void put_json_text(struct writing *writing, struct slice text)
{
    static const char *const odd[] = {"\\ud800", "\\u0000", "\\q",    "\\u12",
                                      "\x01",    "\xc3",    "\\/\\b", "\xed\xa0\x80"};
    put_byte(writing, '"');
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] == '"' || text.data[i] == '\\')
            bytes_add_format(writing->out, "\\u%04x", text.data[i]);
        else
            put_byte(writing, text.data[i]);
    if (spoils(writing, 200))
        bytes_add_text(writing->out, odd[below(writing, 8)]);
    put_byte(writing, spoils(writing, 2000) ? ' ' : '"');
}

static void put_text(struct writing *writing, struct slice text)
{
    if (writing->encoding == SPANS_JSON) {
        put_json_text(writing, text);
        return;
    }
    put_count(writing, text.size);
    bytes_add(writing->out, text.data, text.size);
}

static uint64_t id_of(struct writing *writing, enum meaning meaning)
{
    uint64_t byte = 0x10 + below(writing, WORLD_TRACES);
    uint64_t id = byte * 0x0101010101010101u;
    if (below(writing, 24) == 0)
        return 0;
    return meaning == TRACE ? id : (id & ~(uint64_t)0xff) | below(writing, WORLD_SPANS);
}

static struct slice text_of(struct writing *writing, enum meaning meaning)
{
    static const char *const kinds[] = {"cs", "cr", "ss", "sr", "CLIENT",   "SERVER", "PRODUCER",
                                        "ms", "mr", "ca", "sa", "CONSUMER", "lc",     "error"};
    static const char *const addresses[] = {
        "10.0.0.1", "::1", "1.2.3.4.5", "fe80::1%eth0", "", "::ffff:1.2.3.4", "256.1.1.1"};
    struct spans_maker *maker = writing->maker;
    if (meaning == KEY)
        return slice_of_text(grow_key(maker->world));
    if (meaning == SPAN_KIND && below(writing, 8) != 0)
        return slice_of_text(kinds[below(writing, 14)]);
    if (meaning == ADDRESS)
        return slice_of_text(addresses[spoils(writing, 8) ? below(writing, 7) : 0]);
    if ((meaning == TRACE || meaning == SPAN) && !spoils(writing, 60)) {
        uint8_t bytes[16];
        uint64_t id = id_of(writing, meaning) | (writing->maker->is_valid ? 1 : 0);
        for (unsigned i = 0; i < 16; i++)
            bytes[i] = (uint8_t)(id >> 8 * (7 - i % 8));
        size_t size = meaning == TRACE && below(writing, 2) == 0 ? 16 : 8;
        return hex_write(bytes, size, pool_alloc(maker->pool, 2 * size));
    }
    return grow_word(maker->world, maker->pool);
}

static struct slice field_text(struct writing *writing, const struct field *field)
{
    if (writing->long_field == NULL || writing->long_left == 0 ||
        strcmp(field->name, writing->long_field) != 0)
        return text_of(writing, field->meaning);
    writing->long_left--;
    return writing->long_text;
}

static uint64_t number_of(struct writing *writing, const struct field *field)
{
    uint64_t now_micros = writing->maker->world->now_ns / 1000;
    if (spoils(writing, 100))
        return odd_number(writing->maker->world, below(writing, 2) == 0 ? now_micros : 5);
    switch ((int)field->meaning) {
    case TRACE:
    case SPAN:
        return id_of(writing, field->meaning);
    case MICROS:
        return now_micros - 1000000 + below(writing, 2000000);
    case TYPE:
        return below(writing, 7);
    default:
        return below(writing, (uint64_t)1 << below(writing, field->kind == I16 ? 15 : 31));
    }
}

/* What no reader expects. */
static void put_json_odd(struct writing *writing)
{
    static const char *const values[] = {"null",
                                         "-1",
                                         "1e400",
                                         "{}",
                                         "[]",
                                         "\"\"",
                                         "true",
                                         "1.5",
                                         "NaN",
                                         "[[[[{}]]]]",
                                         "0x1",
                                         "",
                                         "01",
                                         "-",
                                         "{\"a\":{\"b\":[1,null]}}",
                                         "18446744073709551616",
                                         "9223372036854775808"};
    if (below(writing, 20) != 0) {
        bytes_add_text(writing->out, values[below(writing, 17)]);
        return;
    }
    uint64_t depth = below(writing, 20000);
    for (uint64_t i = 0; i < depth; i++)
        bytes_add_text(writing->out, i % 2 == 0 ? "[" : "{\"a\":");
    for (uint64_t i = depth; i-- > 0;)
        bytes_add_text(writing->out, i % 2 == 0 ? "]" : "}");
}

static void put_struct(struct writing *writing, const struct field *fields);

static void put_texts(struct writing *writing)
{
    put_byte(writing, '{');
    for (uint64_t i = 0, count = below(writing, 5); i < count; i++) {
        put_json_text(writing, text_of(writing, KEY));
        put_byte(writing, ':');
        if (spoils(writing, 100))
            put_json_odd(writing);
        else
            put_json_text(writing, text_of(writing, ANY));
        bytes_add(writing->out, ",", i + 1 < count);
    }
    put_byte(writing, '}');
}

/* Types of values as each protocol numbers them. */
static unsigned type_of(const struct writing *writing, enum kind kind)
{
    static const uint8_t binary[] = {
        [BOOL] = 2,  [I16] = 6,   [I32] = 8,     [I64] = 10,     [DOUBLE] = 4,
        [TEXT] = 11, [BLOB] = 11, [STRUCT] = 12, [STRUCTS] = 15, [TEXTS] = 13};
    static const uint8_t compact[] = {
        [BOOL] = 1, [I16] = 4,  [I32] = 5,     [I64] = 6,     [DOUBLE] = 7,
        [TEXT] = 8, [BLOB] = 8, [STRUCT] = 12, [STRUCTS] = 9, [TEXTS] = 11};
    return writing->encoding == SPANS_COMPACT ? compact[kind] : binary[kind];
}

static void put_list(struct writing *writing, const struct field *inside, uint64_t count)
{
    bool is_compact = writing->encoding == SPANS_COMPACT;
    unsigned type = spoils(writing, 400) ? (unsigned)below(writing, 17) : type_of(writing, STRUCT);
    bool is_json = writing->encoding == SPANS_JSON;
    if (is_json)
        put_byte(writing, '[');
    else if (is_compact && count < 15)
        put_byte(writing, (unsigned)count << 4 | (type & 15));
    else {
        put_byte(writing, is_compact ? 0xf0 | (type & 15) : type);
        put_count(writing, count);
    }
    for (uint64_t i = 0; i < count && !is_full(writing); i++) {
        bytes_add(writing->out, ",", is_json && i > 0);
        put_struct(writing, inside);
    }
    if (is_json && !spoils(writing, 500))
        put_byte(writing, ']');
}

static uint64_t count_of(struct writing *writing, unsigned many)
{
    if (many == SPANS_MANY)
        return below(writing, 12) == 0 ? 0 : 1 + below(writing, 6 * writing->scale);
    return below(writing, many == 0 ? 3 : many);
}

static void put_value(struct writing *writing, const struct field *field)
{
    static const unsigned sizes[] = {[BOOL] = 1, [I16] = 2, [I32] = 4, [I64] = 8};
    bool is_json = writing->encoding == SPANS_JSON;
    if (is_json && spoils(writing, 300)) {
        put_json_odd(writing);
        return;
    }
    switch (field->kind) {
    case BOOL:
        if (is_json)
            bytes_add_text(writing->out, below(writing, 2) == 0 ? "true" : "false");
        else if (writing->encoding == SPANS_BINARY) /* compact: the field's type says it */
            put_byte(writing, spoils(writing, 100) ? 7 : (unsigned)below(writing, 2));
        return;
    case I16:
    case I32:
    case I64: {
        uint64_t number = number_of(writing, field);
        if (is_json)
            bytes_add_format(writing->out, "%llu", (unsigned long long)number);
        else
            put_number(writing, number, sizes[field->kind]);
        return;
    }
    case DOUBLE:
        for (unsigned i = 0; i < 8; i++)
            put_byte(writing, (unsigned)below(writing, 256));
        return;
    case TEXT:
        put_text(writing, field_text(writing, field));
        return;
    case BLOB: {
        static const size_t blob_sizes[] = {0, 1, 2, 4, 8, 8, 16, 3};
        uint8_t bytes[16];
        for (unsigned i = 0; i < 16; i++)
            bytes[i] = (uint8_t)below(writing, 256);
        put_text(writing, below(writing, 2) == 0 ? text_of(writing, ANY)
                                                 : slice_of(bytes, blob_sizes[below(writing, 8)]));
        return;
    }
    case STRUCT:
        put_struct(writing, field->inside);
        return;
    case STRUCTS:
        put_list(writing, field->inside, count_of(writing, field->many));
        return;
    case TEXTS:
        put_texts(writing);
        return;
    }
}

static void put_thrift_head(struct writing *writing, unsigned type, int id)
{
    int delta = id - writing->last_id;
    if (writing->encoding == SPANS_BINARY) {
        put_byte(writing, type);
        put_number(writing, (uint64_t)(int64_t)id, 2);
    } else if (delta > 0 && delta < 16 && !spoils(writing, 1000))
        put_byte(writing, (unsigned)delta << 4 | (type & 15));
    else {
        put_byte(writing, type & 15);
        put_number(writing, (uint64_t)(int64_t)id, 2);
    }
    writing->last_id = id;
}

/* A field that nobody knows: containers in containers, or of nothing, in any number. */
static void put_thrift_unknown(struct writing *writing)
{
    bool is_compact = writing->encoding == SPANS_COMPACT;
    uint64_t depth = 1 + below(writing, below(writing, 8) == 0 ? 3000 : 6);
    unsigned list = type_of(writing, STRUCTS);
    put_thrift_head(writing, list, 1000 + (int)below(writing, 30000));
    for (; depth > 0; depth--) {
        unsigned type = depth == 1 ? (unsigned)below(writing, 14) : list;
        uint64_t count = depth == 1 ? below(writing, 4) : 1;
        if (spoils(writing, 300))
            count = odd_number(writing->maker->world, 1);
        if (is_compact && count < 15)
            put_byte(writing, (unsigned)count << 4 | type);
        else {
            put_byte(writing, is_compact ? 0xf0 | type : type);
            put_count(writing, count);
        }
    }
    for (uint64_t i = below(writing, 20); i > 0; i--)
        put_byte(writing, 0);
}

static void put_thrift_field(struct writing *writing, const struct field *field)
{
    int id = spoils(writing, 500) ? (int)below(writing, 65536) - 32768 : field->id;
    unsigned type = type_of(writing, field->kind);
    if (field->kind == BOOL && writing->encoding == SPANS_COMPACT)
        type = 1 + (unsigned)below(writing, 2);
    if (spoils(writing, 400))
        type = (unsigned)below(writing, 17);
    put_thrift_head(writing, type, id);
    put_value(writing, field);
    if (spoils(writing, 400))
        put_thrift_unknown(writing);
}

static void put_struct(struct writing *writing, const struct field *fields)
{
    int last_id = writing->last_id;
    bool is_json = writing->encoding == SPANS_JSON;
    const char *separator = "";
    writing->last_id = 0;
    bytes_add(writing->out, "{", is_json);
    for (const struct field *field = fields; field->name != NULL; field++) {
        bool is_central = field->kind >= STRUCT || field->meaning != ANY;
        if (below(writing, is_central ? 24 : 4) == 0 && !writing->maker->is_valid)
            continue;
        for (unsigned times = spoils(writing, 300) ? 2 : 1; times > 0 && !is_full(writing);
             times--) {
            if (!is_json) {
                put_thrift_field(writing, field);
                continue;
            }
            bytes_add_text(writing->out, separator);
            put_json_text(writing, slice_of_text(spoils(writing, 300) ? "odd" : field->name));
            bytes_add_text(writing->out, spoils(writing, 2000) ? "" : ":");
            put_value(writing, field);
            separator = spoils(writing, 2000) ? ",," : ",";
        }
    }
    if (!spoils(writing, 1000))
        put_byte(writing, is_json ? '}' : 0);
    writing->last_id = last_id;
}

/* A call: name, and a struct of its arguments. */
static void put_call(struct writing *writing)
{
    static const char *const names[] = {"emitZipkinBatch", "", "emit\xff"};
    struct slice name = slice_of_text(spoils(writing, 40) ? names[below(writing, 3)] : "emitBatch");
    unsigned kind =
        spoils(writing, 40) ? (unsigned)below(writing, 8) : 1 + 3 * (unsigned)below(writing, 2);
    if (writing->encoding == SPANS_COMPACT) {
        put_byte(writing, spoils(writing, 60) ? 0x80 : 0x82);
        put_byte(writing, kind << 5 | (spoils(writing, 60) ? 2 : 1));
        put_varint(writing, below(writing, 1000));
        put_text(writing, name);
    } else if (below(writing, 4) != 0) { /* strict */
        put_number(writing, 0x80010000u | kind, 4);
        put_text(writing, name);
        put_number(writing, below(writing, 1000), 4);
    } else {
        put_text(writing, name);
        put_byte(writing, kind);
        put_number(writing, below(writing, 1000), 4);
    }
    put_struct(writing, jaeger_call);
}

/* One long text above very many spans, or one in each of them: what is done with it for each span
 * takes for ever. */
static void draw_product(struct writing *writing)
{
    static const char *const fields[] = {"serviceName", "service_name", "operationName",
                                         "name",        "key",          "vStr"};
    enum { MORE_SPANS = 20 };
    bool is_one = below(writing, 2) == 0;
    size_t size = is_one ? (size_t)4096 << below(writing, 7) : (size_t)256 << below(writing, 8);
    if (size > writing->maker->size_max / 2)
        size = writing->maker->size_max / 2;
    uint8_t *text = pool_alloc(writing->maker->pool, size);
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)("abcdefgh/.-_{} 0"[i * i % 97 % 16]);
    writing->long_text = slice_of(text, size);
    writing->long_field = fields[below(writing, 6)];
    writing->long_left = is_one ? 1 + (unsigned)below(writing, 3) : UINT_MAX;
    writing->scale *= MORE_SPANS;
}

void spans_write(struct spans_maker *maker, enum spans_message message,
                 enum spans_encoding encoding, unsigned scale, struct bytes_out *out)
{
    struct writing writing = {
        .maker = maker, .out = out, .begin = out->size, .encoding = encoding, .scale = scale};
    if (spoils(&writing, 6))
        draw_product(&writing);
    switch (message) {
    case SPANS_ZIPKIN_V1:
        put_list(&writing, span_v1, count_of(&writing, SPANS_MANY));
        break;
    case SPANS_ZIPKIN_V1_THRIFT:
        put_list(&writing, thrift_span, count_of(&writing, SPANS_MANY));
        break;
    case SPANS_ZIPKIN_V2:
        put_list(&writing, span_v2, count_of(&writing, SPANS_MANY));
        break;
    case SPANS_JAEGER_BATCH:
        put_struct(&writing, jaeger_batch);
        break;
    case SPANS_JAEGER_CALL:
        put_call(&writing);
        break;
    }
    if (spoils(&writing, 30))
        mutate_bytes(maker->world, out, writing.begin);
}
