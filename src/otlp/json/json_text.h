/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Go's encoding/json writes a pcommon.Value: sorted keys, no space, its choice of escapes.
 * Text grows in an arena; the error is sticky. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct arena;

struct json_text {
    struct arena *arena;
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool has_failed;  /* the arena's cap does not allow it */
    bool has_no_text; /* NaN and infinities have no JSON form: Go then gives no text at all */
};

/* Bytes as they are: what is JSON already, or becomes it together with what follows. */
void json_text_raw(struct json_text *json, struct slice bytes);
/* Without quotes. */
void json_text_base64(struct json_text *json, struct slice bytes);
/* An encoded AnyValue. */
void json_text_value(struct json_text *json, struct slice encoded);
/* The text, in the arena; empty when has_no_text. False when has_failed. */
bool json_text_finish(struct json_text *json, struct slice *ret_text);
