/* SPDX-License-Identifier: Apache-2.0 */
/* A content type, a line end, a body: every part lies in the body, one behind the other, and none
 * holds a delimiter at a line's start. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/profiles/pyroscope/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line_end = size > 0 ? memchr(data, '\n', size) : NULL;
    if (line_end == NULL)
        return 0;
    struct slice type = slice_of(data, (size_t)(line_end - data));
    struct slice body = slice_of(line_end + 1, size - type.size - 1);
    struct multipart form = multipart_of(type, body);
    struct multipart_part part;
    const uint8_t *at = body.data;
    multipart_is_form(type);
    while (multipart_next(&form, &part)) {
        assert(part.content.data >= at);
        at = part.content.data + part.content.size;
        assert(at <= body.data + body.size);
        assert(part.name.size == 0 || (part.name.data > body.data && part.name.data < at));
        size_t delimiter = strlen(form.delimiter);
        assert(part.content.size < delimiter ||
               memcmp(part.content.data, form.delimiter, delimiter) != 0);
    }
    assert(form.failure != NULL || form.has_ended);
    return 0;
}
