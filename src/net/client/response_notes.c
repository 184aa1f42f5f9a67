/* SPDX-License-Identifier: Apache-2.0 */
/* A value for each name. One owner, one thread at a time. */
#include "src/net/client/response_notes.h"

#include <assert.h>
#include <string.h>

void response_notes_begin(struct response_notes *notes, const char *const *names)
{
    notes->names = names;
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        assert(i < RESPONSE_NOTES_MAX);
        notes->has[i] = false;
        notes->values[i][0] = '\0';
    }
}

void response_notes_take(struct response_notes *notes, struct slice name, struct slice value)
{
    for (size_t i = 0; notes->names != NULL && notes->names[i] != NULL; i++) {
        if (notes->has[i] || !slice_equal_nocase(name, notes->names[i]))
            continue;
        notes->has[i] = true;
        size_t size = value.size <= RESPONSE_NOTE_BYTES_MAX ? value.size : 0;
        if (size > 0)
            memcpy(notes->values[i], value.data, size);
        notes->values[i][size] = '\0';
    }
}

const char *response_note(const struct response_notes *notes, size_t place)
{
    return notes != NULL && notes->has[place] ? notes->values[place] : NULL;
}
