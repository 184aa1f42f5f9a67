/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer that a codec writes into: charged to a budget, doubled while its size is unknown, with
 * a limit when inflating. Embedded by the codecs, on their lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget;
struct buffer;

struct codec_output {
    struct buffer *buffer;
    uint64_t limit; /* bytes; the room is a bit larger, so that excess output is seen */
};

/* How many bytes size_input bytes may inflate to: the caller's limit or the one against bombs. */
uint64_t codec_output_limit(size_t size_input, uint64_t max_bytes);
/* Begins with room for hint bytes (at most the limit; 0: not known). False: no budget. */
bool codec_output_begin(struct codec_output *output, struct budget *budget, uint64_t hint,
                        uint64_t limit);
/* Makes room for at least one more byte. False: no budget. */
bool codec_output_grow(struct codec_output *output);
/* Makes room for size more bytes, whatever the limit. False: no budget. */
bool codec_output_reserve(struct codec_output *output, size_t size);
size_t codec_output_size(const struct codec_output *output);
/* Where to write, and how much. */
uint8_t *codec_output_room(const struct codec_output *output, size_t *ret_size);
void codec_output_advance(struct codec_output *output, size_t size);
bool codec_output_append(struct codec_output *output, const void *data, size_t size);
bool codec_output_is_over(const struct codec_output *output);
/* Returns the buffer, shrunk if much of it is unused. */
struct buffer *codec_output_take(struct codec_output *output);
/* Instead of taking it. */
void codec_output_drop(struct codec_output *output);
