/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, up to TEXT_BYTES_MAX or what memory allows; then it ends in a line that says so.
 * Plain value, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct budget;
struct profile_dictionary;

enum {
    TEXT_BYTES_MAX = 4 << 20,
    TEXT_READ_BYTES_MAX =
        16 << 20, /* of entries of a dictionary, counted each time they are read */
};

struct text {
    char *data; /* with a terminator */
    size_t size;
    size_t capacity;
    struct budget *budget; /* NULL: not charged */
    bool is_cut;
    size_t read_bytes;                           /* of entries read without writing anything */
    const struct profile_dictionary *dictionary; /* of the profiles that are written */
};

/* budget may be NULL. */
void text_init(struct text *text, struct budget *budget);
void text_fini(struct text *text);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_slice(struct text *text, struct slice bytes);
/* Counts reading that writes nothing: beyond TEXT_READ_BYTES_MAX the text is cut. */
void text_note_read(struct text *text, size_t bytes);
/* Ends the text, in a line that says so. */
void text_cut(struct text *text);
