/* SPDX-License-Identifier: Apache-2.0 */
/* Files of profiles, whatever they are, as one profile of the wanted format. Main thread of a
 * command. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;
struct profile_file;

/* What could not come along into pprof. */
struct convert_losses {
    uint64_t zero_samples;
    uint64_t negative_samples;
    uint64_t resources; /* that have attributes: pprof has no place for them */
};

/* An OTLP request in layout 1.10, owned by the caller; without bytes when there are no profiles.
 * NULL: the error names the file. */
struct buffer *profile_convert_to_otlp(const struct profile_file *files, size_t count,
                                       struct error *error);
/* pprof bytes. */
struct buffer *profile_convert_to_pprof(const struct profile_file *files, size_t count,
                                        struct convert_losses *ret_losses, struct error *error);
