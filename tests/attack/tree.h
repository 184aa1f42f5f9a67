/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a tree of fields, which can be wrong in every way that bytes can: a request
 * is built as a valid tree, spoilt, and written. Nodes live in a pool; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"
#include "tests/attack/form.h"

struct pool;

/* Bytes that grow; the caller frees data with mem_free. */
struct bytes_out {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

void bytes_add(struct bytes_out *out, const void *data, size_t size);
void bytes_add_text(struct bytes_out *out, const char *text);
void bytes_add_format(struct bytes_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Starts anew and keeps the memory. */
void bytes_clear(struct bytes_out *out);
void bytes_fini(struct bytes_out *out);

enum node_kind {
    NODE_NUMBER,  /* value; varint or fixed by `wire` */
    NODE_BYTES,   /* bytes */
    NODE_MESSAGE, /* children */
    NODE_PACKED,  /* children are numbers; together in one field unless is_apart */
};

struct node {
    struct node *next;
    struct node *children;          /* shared by copies of a node */
    const struct form_field *field; /* NULL: unknown to the form */
    uint32_t number;
    enum node_kind kind;
    enum wire_type wire;
    uint64_t value;
    struct slice bytes;
    unsigned repeats; /* written so many times more */
    unsigned padding; /* bytes more than a varint needs */
    int64_t lie;      /* added to the length that is written */
    bool is_apart;    /* packed: a field for each element */
    size_t size;      /* of the content; while writing */
};

struct node *node_create(struct pool *pool, const struct form_field *field, enum node_kind kind);
/* In front of the children. */
void node_adopt(struct node *parent, struct node *child);
unsigned node_children(const struct node *node);

/* Writes the content of a message in protobuf's encoding, size_max bytes at most. */
void tree_write(struct node *root, size_t size_max, struct bytes_out *out);
/* The same in OTLP's JSON. */
void tree_write_json(const struct node *root, size_t size_max, struct bytes_out *out);
