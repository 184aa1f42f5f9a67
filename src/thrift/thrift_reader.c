/* SPDX-License-Identifier: Apache-2.0 */
/* The binary protocol. Runs on the caller's thread. */
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
    };
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

int64_t thrift_read_number(struct thrift_reader *reader, size_t bytes)
{
    const uint8_t *at = take(reader, bytes, "a number");
    uint64_t bits = 0;
    if (at == NULL)
        return 0;
    if ((at[0] & 0x80) != 0)
        bits = UINT64_MAX;
    for (size_t i = 0; i < bytes; i++)
        bits = bits << 8 | at[i];
    return (int64_t)bits;
}

/* A length, or a number of elements of at least that many bytes each. */
static uint32_t read_size(struct thrift_reader *reader, size_t element_bytes, const char *what)
{
    char found[64];
    const uint8_t *begin = reader->at;
    int64_t size = thrift_read_number(reader, sizeof(int32_t));
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

struct slice thrift_read_string(struct thrift_reader *reader)
{
    uint32_t size = read_size(reader, 1, "bytes");
    const uint8_t *at = take(reader, size, "a string");
    return at != NULL ? slice_of(at, size) : slice_of("", 0);
}

bool thrift_next_field(struct thrift_reader *reader, struct thrift_field *ret_field)
{
    const uint8_t *type = take(reader, 1, "a field");
    if (type == NULL || *type == THRIFT_STOP)
        return false;
    ret_field->type = (enum thrift_type) * type;
    ret_field->number = (int16_t)thrift_read_number(reader, sizeof(int16_t));
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
    return thrift_fail(reader, found, "a type of Thrift's binary protocol");
}

/* ---- Skipping ---- */

/* An open struct, list or map. */
struct skip_level {
    uint8_t types[2]; /* of elements; of keys and values in turn */
    bool is_struct;
    bool is_map;
    uint64_t left; /* elements; of a map keys and values */
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
    if (!level.is_struct && !level.is_map && !is_list)
        return take(reader, bytes_min(type), "a value") != NULL;
    if (*depth == THRIFT_DEPTH_MAX)
        return thrift_fail(reader, "one more", "at most 64 levels of nesting");
    if (!level.is_struct) {
        const uint8_t *types = take(reader, level.is_map ? 2 : 1, "a type");
        if (types == NULL)
            return false;
        level.types[0] = types[0];
        level.types[1] = level.is_map ? types[1] : types[0];
        size_t bytes = bytes_min(level.types[0]) + (level.is_map ? bytes_min(level.types[1]) : 0);
        uint32_t count = read_size(reader, bytes > 0 ? bytes : 1, "elements");
        level.left = level.is_map ? 2 * (uint64_t)count : count;
        if (reader->has_failed)
            return false;
    }
    levels[(*depth)++] = level;
    return true;
}

/* Enters and leaves containers in a loop. */
void thrift_skip(struct thrift_reader *reader, unsigned type)
{
    struct skip_level levels[THRIFT_DEPTH_MAX];
    struct thrift_field field;
    unsigned depth = 0;
    if (!skip_one(reader, type, levels, &depth))
        return;
    while (depth > 0 && !reader->has_failed) {
        struct skip_level *top = &levels[depth - 1];
        if (top->is_struct) {
            if (!thrift_next_field(reader, &field))
                depth--;
            else
                skip_one(reader, field.type, levels, &depth);
        } else if (top->left == 0) {
            depth--;
        } else {
            top->left--;
            skip_one(reader, top->types[top->is_map && top->left % 2 == 0], levels, &depth);
        }
    }
}

double thrift_read_double(struct thrift_reader *reader)
{
    int64_t bits = thrift_read_number(reader, sizeof(bits));
    double real;
    memcpy(&real, &bits, sizeof(real));
    return real;
}

uint32_t thrift_read_structs(struct thrift_reader *reader, const char *what)
{
    const uint8_t *type = take(reader, 1, "the type of a list's elements");
    uint32_t count = read_size(reader, 1, what);
    if (reader->has_failed)
        return 0;
    assert(type != NULL);
    if (count > 0 && *type != THRIFT_STRUCT) {
        thrift_fail(reader, "a list of other values", "a list of structs");
        return 0;
    }
    return count;
}
