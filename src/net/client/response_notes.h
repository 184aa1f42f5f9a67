/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of a response that the sender of the request asks for by name, while the response is
 * received. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

enum { RESPONSE_NOTES_MAX = 4, RESPONSE_NOTE_BYTES_MAX = 24 };

struct response_notes {
    const char *const *names; /* NULL-ended, at most RESPONSE_NOTES_MAX; borrowed. NULL: none */
    bool has[RESPONSE_NOTES_MAX];
    char values[RESPONSE_NOTES_MAX][RESPONSE_NOTE_BYTES_MAX + 1]; /* "" when longer */
};

/* Forgets what there is, and asks for those names. */
void response_notes_begin(struct response_notes *notes, const char *const *names);
/* Keeps the value if that header is asked for, and is the first of its name. */
void response_notes_take(struct response_notes *notes, struct slice name, struct slice value);
/* The value of the header with that place among the names; NULL: there is none. */
const char *response_note(const struct response_notes *notes, size_t place);
