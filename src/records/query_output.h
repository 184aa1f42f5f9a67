/* SPDX-License-Identifier: Apache-2.0 */
/* A text of which parts are replaced, from its begin to its end. It is copied at the first change.
 * Owner's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;

struct query_output {
    struct arena *arena; /* borrowed; holds what was changed */
    struct slice text;   /* may be cut, but not before the last change */
    size_t kept;         /* from here on the text is not yet in the room */
    uint8_t *room;       /* NULL: no change yet */
    size_t size;
    bool has_failed; /* the arena is full: the result must not be used */
};

struct query_output query_output_of(struct arena *arena, struct slice text);
/* At least one byte by one. Places ascend. */
void query_output_replace(struct query_output *output, size_t begin, size_t end, char sign);
/* By "?". */
void query_output_hide(struct query_output *output, size_t begin, size_t end);
/* Leaves bytes out, of which there may be none. */
void query_output_skip(struct query_output *output, size_t begin, size_t end);
/* What is written so far: the text up to `end` with its changes, from then on bytes of the room. */
struct slice query_output_flush(struct query_output *output, size_t end);
/* The text itself if nothing changed; "****" if the arena is full. */
struct slice query_output_finish(struct query_output *output);
