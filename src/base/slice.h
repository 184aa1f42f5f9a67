/* SPDX-License-Identifier: Apache-2.0 */
/* A view of bytes that another object owns. Plain value, any thread; valid as long as the owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct slice {
    const uint8_t *data;
    size_t size;
};

/* The bytes of a C string, without its terminator. */
static inline struct slice slice_of_text(const char *text)
{
    return (struct slice){.data = (const uint8_t *)text, .size = strlen(text)};
}

static inline struct slice slice_of(const void *data, size_t size)
{
    return (struct slice){.data = (const uint8_t *)data, .size = size};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool slice_equal_text(struct slice a, const char *text)
{
    return slice_equal(a, slice_of_text(text));
}

/* Whether all bytes are 0, as in an id that is none. True if it is empty. */
static inline bool slice_is_zero(struct slice slice)
{
    uint8_t any = 0;
    for (size_t i = 0; i < slice.size; i++)
        any |= slice.data[i];
    return any == 0;
}

/* As memcmp; of two that begin alike the shorter one is less. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* How many bytes are the same at the end of both. */
static inline size_t slice_common_end(struct slice a, struct slice b)
{
    size_t most = a.size < b.size ? a.size : b.size;
    const uint8_t *a_end = a.data + a.size;
    const uint8_t *b_end = b.data + b.size;
    size_t same = 0;
    while (same + sizeof(uint64_t) <= most &&
           memcmp(a_end - same - sizeof(uint64_t), b_end - same - sizeof(uint64_t),
                  sizeof(uint64_t)) == 0)
        same += sizeof(uint64_t);
    while (same < most && a_end[-1 - (ptrdiff_t)same] == b_end[-1 - (ptrdiff_t)same])
        same++;
    return same;
}

static inline bool slice_begins_with(struct slice slice, const char *prefix)
{
    size_t size = strlen(prefix);
    return slice.size >= size && memcmp(slice.data, prefix, size) == 0;
}

/* Removes leading and trailing white space: blanks, tabs, line ends, \v and \f. */
static inline struct slice slice_trim(struct slice slice)
{
    static const char space[] = " \t\n\v\f\r";
    enum { SPACES = sizeof(space) - 1 };
    while (slice.size > 0 && memchr(space, slice.data[0], SPACES) != NULL)
        slice = slice_of(slice.data + 1, slice.size - 1);
    while (slice.size > 0 && memchr(space, slice.data[slice.size - 1], SPACES) != NULL)
        slice.size--;
    return slice;
}

/* Without regard to the case of ASCII letters. */
static inline bool slice_equal_nocase(struct slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           (slice.size == 0 || strncasecmp((const char *)slice.data, text, slice.size) == 0);
}
