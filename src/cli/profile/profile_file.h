/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files: pprof, OTLP or OTLP/JSON, plain or gzip. The format is detected by content, not by
 * name. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct buffer;
struct error;

/* OTLP/JSON is OTLP once it is read. */
enum profile_format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_OTLP_JSON, PROFILE_FORMATS };

struct profile_file {
    const char *path;           /* the caller's */
    enum profile_format format; /* of bytes: pprof or OTLP */
    bool is_json;               /* OTLP: the file is JSON */
    bool is_compressed;
    enum profile_layout layout; /* OTLP: that of the file */
    uint64_t rejected_profiles; /* OTLP: broken ones, which are left out */
    char reason[256];           /* why the first one is broken */
    struct buffer *owner;
    struct slice bytes; /* unpacked; OTLP: checked, in layout 1.10 */
};

/* False: error names the file, what was found and what was expected; nothing needs closing. */
bool profile_file_read(struct profile_file *file, const char *path, struct error *error);
/* A zeroed struct is a no-op. */
void profile_file_close(struct profile_file *file);
/* Replaces the file at path atomically, once everything is written. */
bool profile_file_write(const char *path, struct slice bytes, struct error *error);
/* The same, as one gzip member. */
bool profile_file_write_gzip(const char *path, struct slice bytes, struct error *error);

/* "pprof". */
const char *profile_format_name(enum profile_format format);
/* Detects the format of the bytes. False: none of them; error says what they look like. */
bool profile_format_of(struct slice bytes, enum profile_format *ret_format, struct error *error);
/* The format that the file name stands for. False: unknown. */
bool profile_format_of_name(const char *path, enum profile_format *ret_format);
