/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of Thrift from memory, in TBinaryProtocol (thrift-binary-protocol.md of
 * apache/thrift) or in TCompactProtocol (thrift-compact-protocol.md). The first failure is sticky:
 * nothing more is read, and numbers and strings are 0 and empty. Nothing is allocated, and no
 * announced length is believed. Plain values; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum thrift_type {
    THRIFT_STOP = 0,
    THRIFT_BOOL = 2,
    THRIFT_BYTE = 3,
    THRIFT_DOUBLE = 4,
    THRIFT_I16 = 6,
    THRIFT_I32 = 8,
    THRIFT_I64 = 10,
    THRIFT_STRING = 11,
    THRIFT_STRUCT = 12,
    THRIFT_MAP = 13,
    THRIFT_SET = 14,
    THRIFT_LIST = 15,
    THRIFT_UUID = 16,
    THRIFT_TYPES,
};

enum { THRIFT_DEPTH_MAX = 64, THRIFT_FOUND_BYTES_MAX = 64 };

struct thrift_reader {
    const uint8_t *at; /* of the failure, too */
    const uint8_t *end;
    void *context; /* the caller's */
    bool is_compact;
    int8_t boolean; /* of the compact protocol, in which a field's head has its value; -1: none */
    bool has_failed;
    char found[THRIFT_FOUND_BYTES_MAX]; /* of the failure */
    const char *expected;
};

struct thrift_field {
    enum thrift_type type;
    int16_t number;
};

/* Of the binary protocol. Borrows bytes and context. */
struct thrift_reader thrift_reader_of(struct slice bytes, void *context);
struct thrift_reader thrift_compact_reader_of(struct slice bytes, void *context);
/* The head of a message, with or without a version (the binary protocol's strict form). The struct
 * of its arguments follows. ret_name borrows. */
bool thrift_read_message(struct thrift_reader *reader, struct slice *ret_name);
/* Fails at the current byte, unless it has failed. Returns false. */
bool thrift_fail(struct thrift_reader *reader, const char *found, const char *expected);
/* A number that has 1, 2, 4 or 8 bytes in memory, with its sign. A boolean is one of 1 byte. */
int64_t thrift_read_number(struct thrift_reader *reader, size_t bytes);
double thrift_read_double(struct thrift_reader *reader);
struct slice thrift_read_string(struct thrift_reader *reader);
/* The next field's head. *ret_field is zeroed before the first one of a struct, and else the last
 * one. False: the struct has ended, or a failure. */
bool thrift_next_field(struct thrift_reader *reader, struct thrift_field *ret_field);
/* Whether the field is the one of that number and type; others are unknown ones. */
static inline bool thrift_is(const struct thrift_field *field, int16_t number,
                             enum thrift_type type)
{
    return field->number == number && field->type == type;
}
/* The number of elements of a list of structs, which follow. what: for the failure. */
uint32_t thrift_read_structs(struct thrift_reader *reader, const char *what);
/* Passes a value of any type, nested at most THRIFT_DEPTH_MAX deep. */
void thrift_skip(struct thrift_reader *reader, unsigned type);
