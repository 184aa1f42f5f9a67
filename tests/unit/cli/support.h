/* SPDX-License-Identifier: Apache-2.0 */
/* A small profile for the tests of the tools, made by the codecs, and text streams that are read
 * back. One thread. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "src/base/slice.h"

struct buffer;
struct report;

/* pprof: cpu:nanoseconds and samples:count; main calls work and idle, work calls itself, one sample
 * has no symbols. The first sample has a link and a label. Values are multiplied by scale. name is
 * that of the function that is called work elsewhere. */
struct buffer *small_pprof(int64_t scale, const char *name);
/* The same as OTLP. */
struct buffer *small_otlp(int64_t scale, const char *name);

/* What is written to the stream until it is closed by captured_text, which returns it, to be
 * freed. */
struct captured {
    FILE *out;
    char *text;
    size_t size;
};
void captured_open(struct captured *captured);
const char *captured_text(struct captured *captured);

/* A file in a directory of its own, gone with temporary_clear. */
const char *temporary_file(const char *name);
const char *temporary_file_with(const char *name, struct slice bytes);
void temporary_clear(void);
