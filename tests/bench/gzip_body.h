/* SPDX-License-Identifier: Apache-2.0 */
/* Whole gzip bodies in and out with ISA-L; the states are kept between calls. */
#pragma once

#include "tests/bench/support.h"

/* Replaces the content of out. False: not a gzip body of one or more members. */
bool gzip_body_inflate(struct bytes body, struct byte_buffer *out);
/* Level 1; replaces the content of out by one member that holds all parts. */
void gzip_body_deflate(const struct bytes *parts, size_t parts_count, struct byte_buffer *out);
