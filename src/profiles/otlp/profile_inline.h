/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes by reference (OTLP 1.10): KeyValue.key_strindex and AnyValue.string_value_strindex
 * point into the string table, at any depth of resource and scope attributes and of the values in
 * the attribute table. Here they are found and replaced by what they point to. A key that has text
 * wins over its index, which may be stale. Pure functions; any thread. */
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

/* How many bytes more the message may have once its references are replaced: of the texts and of
 * the headers around them. */
uint64_t profile_inline_growth(const struct profile_dictionary *dictionary,
                               enum profile_inline_kind kind, struct slice message);
bool profile_has_references(enum profile_inline_kind kind, struct slice message);
/* Appends the message without references to out. Attributes of a resource or scope whose references
 * lead nowhere are left out and counted in *dropped. False, with nothing appended, when a reference
 * of any other kind of message leads nowhere. */
bool profile_inline(const struct profile_dictionary *dictionary, enum profile_inline_kind kind,
                    struct slice message, struct profile_bytes *out, uint64_t *dropped);
