/* SPDX-License-Identifier: Apache-2.0 */
/* How bodies are compressed on their way, by the names of HTTP's Content-Encoding. */
#pragma once

#include "tests/bench/support.h"

enum body_coding { BODY_PLAIN, BODY_GZIP, BODY_ZSTD, BODY_UNKNOWN };

/* The string may go on behind the name. */
enum body_coding body_coding_of(const char *text);
/* Replaces the content of out. False: not a body of that coding. */
bool body_decode(enum body_coding coding, struct bytes body, struct byte_buffer *out);
