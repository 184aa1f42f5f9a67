/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes by reference (OTLP 1.10): KeyValue.key_strindex and AnyValue.string_value_strindex are
 * indices into the string table, at any depth of resource and scope attributes and of values in the
 * attribute table. Finds them and replaces them by their strings. A key that has a string takes
 * precedence over its index, which may be stale. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct profile_bytes;
struct profile_dictionary;

enum profile_inline_kind {
    INLINE_NOTHING,
    INLINE_RESOURCE,
    INLINE_SCOPE,
    INLINE_KEY_VALUE,
    INLINE_ANY_VALUE,
    INLINE_ARRAY,
    INLINE_KEY_VALUES,
    INLINE_KINDS,
};

/* Upper bound of the bytes that the message gains when its references are replaced: of the strings
 * and the headers around them. */
uint64_t profile_inline_growth(const struct profile_dictionary *dictionary,
                               enum profile_inline_kind kind, struct slice message);
bool profile_has_references(enum profile_inline_kind kind, struct slice message);
/* Appends the message to out with its references replaced. Drops attributes of a resource or scope
 * with a reference outside of the string table and counts them in *dropped. False, with nothing
 * appended, when any other kind of message has such a reference. */
bool profile_inline(const struct profile_dictionary *dictionary, enum profile_inline_kind kind,
                    struct slice message, struct profile_bytes *out, uint64_t *dropped);
