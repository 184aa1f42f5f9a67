/* SPDX-License-Identifier: Apache-2.0 */
/* Both protocols have the same values; heads, numbers and lengths differ. Runs on the caller's
 * thread. */
#include "src/thrift/thrift_reader.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct thrift_reader thrift_reader_of(struct slice bytes, void *context)
{
    return (struct thrift_reader){
        .at = bytes.data,
        .end = bytes.data + bytes.size,
        .context = context,
        .boolean = -1,
    };
}

struct thrift_reader thrift_compact_reader_of(struct slice bytes, void *context)
{
    struct thrift_reader reader = thrift_reader_of(bytes, context);
    reader.is_compact = true;
    return reader;
}

bool thrift_fail(struct thrift_reader *reader, const char *found, const char *expected)
{
    if (reader->has_failed)
        return false;
    reader->has_failed = true;
    snprintf(reader->found, sizeof(reader->found), "%s", found);
    reader->expected = expected;
    return false;
}

/* The next bytes; NULL: there are not so many. */
static const uint8_t *take(struct thrift_reader *reader, size_t bytes, const char *what)
{
    const uint8_t *at = reader->at;
    if (reader->has_failed)
        return NULL;
    if ((size_t)(reader->end - at) < bytes) {
        thrift_fail(reader, "the end of the body", what);
        return NULL;
    }
    reader->at += bytes;
    return at;
}

/* ---- Numbers and lengths ---- */

/* Of the compact protocol. */
static uint64_t read_varint(struct thrift_reader *reader)
{
    enum { VARINT_BYTES_MAX = 10 };
    uint64_t bits = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
        const uint8_t *at = take(reader, 1, "a number");
        if (at == NULL)
            return 0;
        bits |= (uint64_t)(*at & 0x7f) << 7 * i;
        if ((*at & 0x80) == 0)
            return bits;
    }
    thrift_fail(reader, "a number of more than 10 bytes", "one that ends");
    return 0;
}

/* Zigzag. As in Apache's libraries, a number has the bits of its type, whatever the varint had. */
static int64_t read_compact_number(struct thrift_reader *reader, size_t bytes)
{
    uint64_t bits = read_varint(reader);
    if (bytes < sizeof(int64_t))
        bits = (uint32_t)bits;
    int64_t number = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return bytes == sizeof(int16_t) ? (int16_t)number : number;
}

int64_t thrift_read_number(struct thrift_reader *reader, size_t bytes)
{
    uint64_t bits = 0;
    if (reader->boolean >= 0) {
        bits = (uint64_t)reader->boolean;
        reader->boolean = -1;
        return (int64_t)bits;
    }
    if (reader->is_compact && bytes > 1)
        return read_compact_number(reader, bytes);
    const uint8_t *at = take(reader, bytes, "a number");
    if (at == NULL)
        return 0;
    if ((at[0] & 0x80) != 0)
        bits = UINT64_MAX;
    for (size_t i = 0; i < bytes; i++)
        bits = bits << 8 | at[i];
    return (int64_t)bits;
}

double thrift_read_double(struct thrift_reader *reader)
{
    const uint8_t *at = take(reader, sizeof(uint64_t), "a number");
    uint64_t bits = 0;
    double real;
    for (unsigned i = 0; at != NULL && i < sizeof(bits); i++)
        bits |= (uint64_t)at[i] << 8 * (reader->is_compact ? i : 7 - i);
    memcpy(&real, &bits, sizeof(real));
    return real;
}

/* The size, which was read from begin on: of elements of at least that many bytes each. */
static uint32_t check_size(struct thrift_reader *reader, const uint8_t *begin, int64_t size,
                           size_t element_bytes, const char *what)
{
    char found[64];
    size_t left = (size_t)(reader->end - reader->at);
    if (reader->has_failed)
        return 0;
    if (size >= 0 && (uint64_t)size * element_bytes <= left)
        return (uint32_t)size;
    reader->at = begin;
    snprintf(found, sizeof(found), "%lld %s in %zu bytes", (long long)size, what, left);
    thrift_fail(reader, found, "no more than there are");
    return 0;
}

static int64_t read_length(struct thrift_reader *reader)
{
    return reader->is_compact ? (int32_t)read_varint(reader)
                              : thrift_read_number(reader, sizeof(int32_t));
}

struct slice thrift_read_string(struct thrift_reader *reader)
{
    const uint8_t *begin = reader->at;
    int64_t length = read_length(reader);
    uint32_t size = check_size(reader, begin, length, 1, "bytes");
    const uint8_t *at = take(reader, size, "a string");
    return at != NULL ? slice_of(at, size) : slice_of("", 0);
}

/* ---- Types and heads ---- */

/* The type of a number of the compact protocol. */
static unsigned type_of(uint8_t compact)
{
    static const uint8_t types[] = {
        THRIFT_STOP, THRIFT_BOOL, THRIFT_BOOL,   THRIFT_BYTE,   THRIFT_I16,
        THRIFT_I32,  THRIFT_I64,  THRIFT_DOUBLE, THRIFT_STRING, THRIFT_LIST,
        THRIFT_SET,  THRIFT_MAP,  THRIFT_STRUCT, THRIFT_UUID,
    };
    return compact < sizeof(types) ? types[compact] : THRIFT_TYPES;
}

static bool next_compact_field(struct thrift_reader *reader, struct thrift_field *ret_field)
{
    enum { TRUE = 1 };
    char found[32];
    const uint8_t *head = take(reader, 1, "a field");
    reader->boolean = -1;
    if (head == NULL || (*head & 0x0f) == THRIFT_STOP)
        return false;
    uint8_t step = *head >> 4;
    uint8_t compact = *head & 0x0f;
    ret_field->number = step > 0 ? (int16_t)(ret_field->number + step)
                                 : (int16_t)thrift_read_number(reader, sizeof(int16_t));
    ret_field->type = (enum thrift_type)type_of(compact);
    if (ret_field->type == THRIFT_BOOL)
        reader->boolean = compact == TRUE;
    if (ret_field->type == THRIFT_TYPES) {
        snprintf(found, sizeof(found), "the type %u", compact);
        return thrift_fail(reader, found, "a type of Thrift's compact protocol");
    }
    return !reader->has_failed;
}

bool thrift_next_field(struct thrift_reader *reader, struct thrift_field *ret_field)
{
    if (reader->is_compact)
        return next_compact_field(reader, ret_field);
    const uint8_t *type = take(reader, 1, "a field");
    if (type == NULL || *type == THRIFT_STOP)
        return false;
    ret_field->type = (enum thrift_type) * type;
    ret_field->number = (int16_t)thrift_read_number(reader, sizeof(int16_t));
    return !reader->has_failed;
}

/* thrift-compact-protocol.md, Message. */
static bool read_compact_message(struct thrift_reader *reader, struct slice *ret_name)
{
    enum { PROTOCOL = 0x82, VERSION = 1, VERSION_BITS = 0x1f };
    char found[32];
    const uint8_t *head = take(reader, 2, "a message");
    if (head == NULL)
        return false;
    if (head[0] != PROTOCOL || (head[1] & VERSION_BITS) != VERSION) {
        reader->at = head;
        snprintf(found, sizeof(found), "the bytes %02x %02x", head[0], head[1]);
        return thrift_fail(reader, found, "a message of Thrift's compact protocol");
    }
    read_varint(reader); /* the sequence number */
    *ret_name = thrift_read_string(reader);
    return !reader->has_failed;
}

/* thrift-binary-protocol.md, Message: a name whose length is negative is a version. */
bool thrift_read_message(struct thrift_reader *reader, struct slice *ret_name)
{
    enum { VERSION = 0x8001 };
    const uint8_t *begin = reader->at;
    if (reader->is_compact)
        return read_compact_message(reader, ret_name);
    int64_t version = thrift_read_number(reader, sizeof(int32_t));
    if (version >= 0) {
        reader->at = begin;
        *ret_name = thrift_read_string(reader);
        thrift_read_number(reader, 1); /* the type */
    } else if (((uint32_t)version >> 16) == VERSION) {
        *ret_name = thrift_read_string(reader);
    } else {
        reader->at = begin;
        return thrift_fail(reader, "another version", "a message of Thrift's binary protocol");
    }
    thrift_read_number(reader, sizeof(int32_t)); /* the sequence number */
    return !reader->has_failed;
}

/* The fewest bytes of a value; 0: there is no such type. */
static size_t bytes_min(unsigned type)
{
    static const uint8_t bytes[THRIFT_TYPES] = {
        [THRIFT_BOOL] = 1, [THRIFT_BYTE] = 1, [THRIFT_DOUBLE] = 8, [THRIFT_I16] = 2,
        [THRIFT_I32] = 4,  [THRIFT_I64] = 8,  [THRIFT_STRING] = 4, [THRIFT_STRUCT] = 1,
        [THRIFT_MAP] = 6,  [THRIFT_SET] = 5,  [THRIFT_LIST] = 5,   [THRIFT_UUID] = 16,
    };
    return type < THRIFT_TYPES ? bytes[type] : 0;
}

static bool check_type(struct thrift_reader *reader, unsigned type)
{
    char found[32];
    if (bytes_min(type) > 0)
        return true;
    snprintf(found, sizeof(found), "the type %u", type);
    return thrift_fail(reader, found, "a type of Thrift");
}

/* Of an element; unknown types are noticed when there is one. */
static size_t element_bytes(const struct thrift_reader *reader, unsigned type)
{
    size_t bytes = bytes_min(type);
    bool is_fixed = type == THRIFT_DOUBLE || type == THRIFT_UUID;
    return bytes == 0 || (reader->is_compact && !is_fixed) ? 1 : bytes;
}

/* The type and number of the elements of a list or set. what: for the failure. */
static uint32_t read_list_head(struct thrift_reader *reader, unsigned *ret_type, const char *what)
{
    enum { LONG = 15 };
    const uint8_t *head = take(reader, 1, "the type of a list's elements");
    const uint8_t *begin = reader->at;
    if (head == NULL)
        return 0;
    *ret_type = reader->is_compact ? type_of(*head & 0x0f) : *head;
    int64_t count = reader->is_compact && *head >> 4 < LONG ? *head >> 4 : read_length(reader);
    return check_size(reader, begin, count, element_bytes(reader, *ret_type), what);
}

/* The types of keys and values of a map, and the number of both together. */
static uint64_t read_map_head(struct thrift_reader *reader, uint8_t ret_types[2])
{
    const uint8_t *begin = reader->at;
    int64_t count = 0;
    if (reader->is_compact) {
        count = read_length(reader);
        const uint8_t *types = count != 0 ? take(reader, 1, "the types of a map") : NULL;
        if (types == NULL)
            return 0;
        ret_types[0] = (uint8_t)type_of(*types >> 4);
        ret_types[1] = (uint8_t)type_of(*types & 0x0f);
    } else {
        const uint8_t *types = take(reader, 2, "the types of a map");
        if (types == NULL)
            return 0;
        memcpy(ret_types, types, 2);
        count = read_length(reader);
    }
    size_t bytes = element_bytes(reader, ret_types[0]) + element_bytes(reader, ret_types[1]);
    return 2 * (uint64_t)check_size(reader, begin, count, bytes, "elements");
}

/* ---- Skipping ---- */

/* An open struct, list or map. */
struct skip_level {
    uint8_t types[2]; /* of elements; of keys and values in turn */
    bool is_struct;
    bool is_map;
    int16_t number; /* of a struct's last field */
    uint64_t left;  /* elements; of a map keys and values */
};

/* Opens a container as the innermost level, or passes a plain value. */
static bool skip_one(struct thrift_reader *reader, unsigned type, struct skip_level *levels,
                     unsigned *depth)
{
    struct skip_level level = {.is_struct = type == THRIFT_STRUCT, .is_map = type == THRIFT_MAP};
    bool is_list = type == THRIFT_LIST || type == THRIFT_SET;
    if (!check_type(reader, type))
        return false;
    if (type == THRIFT_STRING) {
        thrift_read_string(reader);
        return !reader->has_failed;
    }
    if (type == THRIFT_DOUBLE || type == THRIFT_UUID)
        return take(reader, bytes_min(type), "a value") != NULL;
    if (!level.is_struct && !level.is_map && !is_list) {
        thrift_read_number(reader, bytes_min(type));
        return !reader->has_failed;
    }
    if (*depth == THRIFT_DEPTH_MAX)
        return thrift_fail(reader, "one more", "at most 64 levels of nesting");
    if (level.is_map) {
        level.left = read_map_head(reader, level.types);
    } else if (is_list) {
        unsigned element = THRIFT_STOP;
        level.left = read_list_head(reader, &element, "elements");
        level.types[0] = (uint8_t)element;
    }
    if (reader->has_failed)
        return false;
    levels[(*depth)++] = level;
    return true;
}

/* Enters and leaves containers in a loop. */
void thrift_skip(struct thrift_reader *reader, unsigned type)
{
    struct skip_level levels[THRIFT_DEPTH_MAX];
    unsigned depth = 0;
    if (!skip_one(reader, type, levels, &depth))
        return;
    while (depth > 0 && !reader->has_failed) {
        struct skip_level *top = &levels[depth - 1];
        if (top->is_struct) {
            struct thrift_field field = {.number = top->number};
            bool is_more = thrift_next_field(reader, &field);
            top->number = field.number;
            if (is_more)
                skip_one(reader, field.type, levels, &depth);
            else
                depth--;
        } else if (top->left == 0) {
            depth--;
        } else {
            top->left--;
            skip_one(reader, top->types[top->is_map && top->left % 2 == 0], levels, &depth);
        }
    }
}

uint32_t thrift_read_structs(struct thrift_reader *reader, const char *what)
{
    unsigned type = THRIFT_STOP;
    uint32_t count = read_list_head(reader, &type, what);
    if (count > 0 && type != THRIFT_STRUCT) {
        thrift_fail(reader, "a list of other values", "a list of structs");
        return 0;
    }
    return count;
}
