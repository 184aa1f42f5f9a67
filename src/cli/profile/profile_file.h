/* SPDX-License-Identifier: Apache-2.0 */
/* Files of profiles: pprof, OTLP or OTLP/JSON, bare or in gzip. Which of them it is, is told by the
 * bytes, not by the name. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct buffer;
struct error;

/* What is read from OTLP/JSON is OTLP from then on. */
enum profile_format { FORMAT_PPROF, FORMAT_OTLP, FORMAT_OTLP_JSON, PROFILE_FORMATS };

struct profile_file {
    const char *path;           /* the caller's */
    enum profile_format format; /* of bytes: pprof or OTLP */
    bool is_json;               /* OTLP: it came as JSON */
    bool is_compressed;
    enum profile_layout layout; /* OTLP: as it came */
    uint64_t rejected_profiles; /* OTLP: broken ones, which are left out */
    char reason[256];           /* why the first one is broken */
    struct buffer *owner;
    struct slice bytes; /* unpacked; OTLP: checked, in layout 1.10 */
};

/* False: the error names the file, what was found and what was expected. Nothing is to be closed
 * then. */
bool profile_file_read(struct profile_file *file, const char *path, struct error *error);
/* A file that was never read but zeroed is tolerated. */
void profile_file_close(struct profile_file *file);
/* Replaces what stands at path, at once and not before everything is written. */
bool profile_file_write(const char *path, struct slice bytes, struct error *error);
/* The same, in one member of gzip. */
bool profile_file_write_gzip(const char *path, struct slice bytes, struct error *error);

/* "pprof". */
const char *profile_format_name(enum profile_format format);
/* What the bytes look like; false: none of them, and the error says what they look like instead. */
bool profile_format_of(struct slice bytes, enum profile_format *ret_format, struct error *error);
/* What a file of that name is expected to be. False: the name says nothing. */
bool profile_format_of_name(const char *path, enum profile_format *ret_format);
