/* SPDX-License-Identifier: Apache-2.0 */
/* Converts and merges profile files of any format into one profile of the wanted format. Main
 * thread of a command. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;
struct profile_file;

/* What pprof cannot represent. */
struct convert_losses {
    uint64_t zero_samples;
    uint64_t negative_samples;
    uint64_t resources; /* with attributes, which pprof cannot hold */
};

/* An OTLP request in layout 1.10, owned by the caller; without bytes when there are no profiles.
 * NULL: the error names the file. */
struct buffer *profile_convert_to_otlp(const struct profile_file *files, size_t count,
                                       struct error *error);
/* pprof bytes. */
struct buffer *profile_convert_to_pprof(const struct profile_file *files, size_t count,
                                        struct convert_losses *ret_losses, struct error *error);
