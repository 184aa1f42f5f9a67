/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of fields and how they are written. Spoilt trees may share children and even contain
 * themselves, so every walk has a depth, and a count of nodes, at which it ends. */
#include "tests/attack/tree.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/base64.h"
#include "src/base/mem.h"
#include "tests/attack/pool.h"

enum { DEPTH_MAX = 700, VISITS_MAX = 1 << 20 };

static uint8_t *bytes_room(struct bytes_out *out, size_t size)
{
    if (size > out->capacity - out->size) {
        out->capacity = 2 * out->capacity + size + 256;
        out->data = mem_resize(out->data, out->capacity);
    }
    return out->data + out->size;
}

void bytes_add(struct bytes_out *out, const void *data, size_t size)
{
    if (size > 0)
        memcpy(bytes_room(out, size), data, size);
    out->size += size;
}

void bytes_add_text(struct bytes_out *out, const char *text)
{
    bytes_add(out, text, strlen(text));
}

void bytes_add_format(struct bytes_out *out, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert(size >= 0 && (size_t)size < sizeof(text));
    bytes_add(out, text, (size_t)size);
}

void bytes_clear(struct bytes_out *out)
{
    out->size = 0;
}

void bytes_fini(struct bytes_out *out)
{
    mem_free(out->data);
    *out = (struct bytes_out){.size = 0};
}

struct node *node_create(struct pool *pool, const struct form_field *field, enum node_kind kind)
{
    struct node *node = pool_alloc(pool, sizeof(*node));
    *node = (struct node){.field = field, .kind = kind};
    if (field != NULL)
        node->number = field->field->number;
    node->wire = kind == NODE_NUMBER ? WIRE_VARINT : WIRE_BYTES;
    return node;
}

void node_adopt(struct node *parent, struct node *child)
{
    assert(child != NULL);
    child->next = parent->children;
    parent->children = child;
}

unsigned node_children(const struct node *node)
{
    unsigned count = 0;
    for (const struct node *child = node->children; child != NULL; child = child->next)
        count++;
    return count;
}

struct writing {
    struct bytes_out *out;
    size_t size_max; /* of the output as a whole */
    unsigned visits;
};

static size_t varint_size(uint64_t value, unsigned padding)
{
    size_t size = wire_varint_size(value) + padding;
    return size <= WIRE_VARINT_BYTES_MAX + 1 ? size : WIRE_VARINT_BYTES_MAX + 1;
}

static void put_varint(struct bytes_out *out, uint64_t value, unsigned padding)
{
    uint8_t bytes[WIRE_VARINT_BYTES_MAX + 2];
    size_t size = varint_size(value, padding);
    for (size_t i = 0; i < size; i++, value >>= 7)
        bytes[i] = (uint8_t)((value & 0x7f) | (i + 1 < size ? 0x80 : 0));
    bytes_add(out, bytes, size);
}

static size_t number_size(const struct node *node)
{
    switch (node->wire) {
    case WIRE_FIXED64:
        return 8;
    case WIRE_FIXED32:
        return 4;
    case WIRE_BYTES:
        return 1;
    case WIRE_GROUP_BEGIN:
    case WIRE_GROUP_END:
        return 0;
    case WIRE_VARINT:
    default:
        return varint_size(node->value, node->padding);
    }
}

static void put_number(struct bytes_out *out, const struct node *node)
{
    const uint64_t value = node->wire == WIRE_BYTES ? 0 : node->value;
    bool is_fixed = node->wire == WIRE_FIXED64 || node->wire == WIRE_FIXED32;
    if (is_fixed || node->wire == WIRE_BYTES)
        bytes_add(out, &value, number_size(node));
    else if (node->wire != WIRE_GROUP_BEGIN && node->wire != WIRE_GROUP_END)
        put_varint(out, value, node->padding);
}

static size_t whole_size(const struct node *node)
{
    size_t tag = wire_varint_size(wire_tag(node->number, node->wire));
    if (node->kind == NODE_NUMBER)
        return tag + number_size(node);
    if (node->kind == NODE_PACKED && node->is_apart)
        return node->size;
    return tag + varint_size((uint64_t)((int64_t)node->size + node->lie), node->padding) +
           node->size;
}

/* Computes the sizes of all that is below. */
static void measure(struct writing *writing, struct node *node, unsigned depth)
{
    node->size = node->kind == NODE_BYTES ? node->bytes.size : 0;
    if (depth > DEPTH_MAX || writing->visits++ > VISITS_MAX)
        return;
    size_t size = node->size;
    for (struct node *child = node->children; child != NULL; child = child->next) {
        if (node->kind == NODE_PACKED) {
            size_t tag = wire_varint_size(wire_tag(node->number, WIRE_VARINT));
            size += (number_size(child) + (node->is_apart ? tag : 0)) * (child->repeats + 1u);
        } else {
            measure(writing, child, depth + 1);
            size += whole_size(child) * (child->repeats + 1u);
        }
        if (size > writing->size_max)
            break;
    }
    node->size = size;
}

static void write_node(struct writing *writing, const struct node *node, unsigned depth);

static void write_content(struct writing *writing, const struct node *node, unsigned depth)
{
    struct bytes_out *out = writing->out;
    if (node->kind == NODE_BYTES) {
        bytes_add(out, node->bytes.data, node->bytes.size);
        return;
    }
    if (depth > DEPTH_MAX || writing->visits++ > VISITS_MAX)
        return;
    for (struct node *child = node->children; child != NULL; child = child->next) {
        size_t begin = out->size;
        if (node->kind == NODE_MESSAGE)
            write_node(writing, child, depth + 1);
        else {
            if (node->is_apart)
                put_varint(out, wire_tag(node->number, child->wire), 0);
            put_number(out, child);
        }
        size_t written = out->size - begin;
        for (unsigned i = 0; i < child->repeats && out->size < writing->size_max; i++) {
            uint8_t *room = bytes_room(out, written);
            memcpy(room, out->data + begin, written);
            out->size += written;
        }
        if (out->size > writing->size_max)
            return;
    }
}

static void write_node(struct writing *writing, const struct node *node, unsigned depth)
{
    struct bytes_out *out = writing->out;
    if (node->kind == NODE_PACKED && node->is_apart) {
        write_content(writing, node, depth);
        return;
    }
    put_varint(out, wire_tag(node->number, node->wire), 0);
    if (node->kind == NODE_NUMBER) {
        put_number(out, node);
        return;
    }
    put_varint(out, (uint64_t)((int64_t)node->size + node->lie), node->padding);
    write_content(writing, node, depth);
}

void tree_write(struct node *root, size_t size_max, struct bytes_out *out)
{
    struct writing writing = {.out = out, .size_max = out->size + size_max};
    measure(&writing, root, 0);
    writing.visits = 0;
    write_content(&writing, root, 0);
}

static void json_text(struct bytes_out *out, struct slice text)
{
    bytes_add(out, "\"", 1);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\')
            bytes_add(out, "\\", 1);
        if (byte < 0x20)
            bytes_add_format(out, "\\u%04x", byte);
        else
            bytes_add(out, &text.data[i], 1);
    }
    bytes_add(out, "\"", 1);
}

static void json_number(struct bytes_out *out, const struct node *node)
{
    enum otlp_kind kind = node->field == NULL ? OTLP_INT32 : node->field->field->kind;
    double number;
    switch ((int)kind) {
    case OTLP_BOOL:
        bytes_add_text(out, node->value != 0 ? "true" : "false");
        return;
    case OTLP_DOUBLE:
    case OTLP_PACKED_DOUBLE:
        memcpy(&number, &node->value, sizeof(number));
        if (number != number || number - number != 0)
            bytes_add_text(out, number != number ? "\"NaN\""
                                : number > 0     ? "\"Infinity\""
                                                 : "\"-Infinity\"");
        else
            bytes_add_format(out, "%.17g", number);
        return;
    case OTLP_ENUM:
    case OTLP_INT32:
    case OTLP_UINT32:
    case OTLP_SINT32:
    case OTLP_FIXED32:
    case OTLP_PACKED_INT32:
        bytes_add_format(out, "%lld", (long long)node->value);
        return;
    case OTLP_UINT64:
    case OTLP_FIXED64:
    case OTLP_PACKED_FIXED64:
    case OTLP_PACKED_UINT64:
        bytes_add_format(out, "\"%llu\"", (unsigned long long)node->value);
        return;
    default:
        bytes_add_format(out, "\"%lld\"", (long long)node->value);
    }
}

static void json_bytes(struct bytes_out *out, const struct node *node)
{
    enum otlp_kind kind = node->field == NULL ? OTLP_STRING : node->field->field->kind;
    if (kind == OTLP_STRING || kind == OTLP_STRINGS) {
        json_text(out, node->bytes);
        return;
    }
    bytes_add(out, "\"", 1);
    if (kind == OTLP_BYTES || kind == OTLP_PROFILE_ID) {
        size_t size = base64_size(node->bytes.size);
        base64_encode(node->bytes, (char *)bytes_room(out, size));
        out->size += size;
    } else
        for (size_t i = 0; i < node->bytes.size; i++)
            bytes_add_format(out, "%02x", node->bytes.data[i]);
    bytes_add(out, "\"", 1);
}

static void json_message(struct writing *writing, const struct node *message, unsigned depth);

static void json_value(struct writing *writing, const struct node *node, unsigned depth)
{
    switch (node->kind) {
    case NODE_NUMBER:
        json_number(writing->out, node);
        return;
    case NODE_BYTES:
        json_bytes(writing->out, node);
        return;
    case NODE_PACKED:
        bytes_add_text(writing->out, "[");
        for (const struct node *child = node->children; child != NULL; child = child->next) {
            json_number(writing->out, child);
            if (child->next != NULL)
                bytes_add_text(writing->out, ",");
        }
        bytes_add_text(writing->out, "]");
        return;
    case NODE_MESSAGE:
    default:
        json_message(writing, node, depth + 1);
    }
}

static bool is_list(const struct node *node)
{
    return node->field != NULL && node->kind != NODE_PACKED &&
           otlp_kind_is_repeated(node->field->field->kind);
}

/* Neighbours of the same field become one array; a field that comes again is a duplicate key. */
static void json_message(struct writing *writing, const struct node *message, unsigned depth)
{
    struct bytes_out *out = writing->out;
    bytes_add_text(out, "{");
    bool is_first = true;
    if (depth > DEPTH_MAX)
        return;
    for (const struct node *child = message->children; child != NULL; child = child->next) {
        if (out->size > writing->size_max || writing->visits++ > VISITS_MAX)
            return;
        if (!is_first)
            bytes_add_text(out, ",");
        is_first = false;
        if (child->field == NULL)
            bytes_add_format(out, "\"unknown%u\":", child->number);
        else
            bytes_add_format(out, "\"%s\":", child->field->field->json_name);
        if (!is_list(child)) {
            json_value(writing, child, depth);
            continue;
        }
        bytes_add_text(out, "[");
        for (;; child = child->next) {
            for (unsigned i = 0; i <= child->repeats && out->size < writing->size_max; i++) {
                if (i > 0)
                    bytes_add_text(out, ",");
                json_value(writing, child, depth);
            }
            if (child->next == NULL || child->next->field != child->field ||
                out->size > writing->size_max || writing->visits++ > VISITS_MAX)
                break;
            bytes_add_text(out, ",");
        }
        bytes_add_text(out, "]");
    }
    bytes_add_text(out, "}");
}

void tree_write_json(const struct node *root, size_t size_max, struct bytes_out *out)
{
    struct writing writing = {.out = out, .size_max = out->size + size_max};
    json_message(&writing, root, 0);
}
