/* SPDX-License-Identifier: Apache-2.0 */
/* Opaque profiles: profilers' files that are passed on as they came because we do not decode them:
 * JFR. Such a file is a Profile without samples, with the file as its original_payload and "jfr" as
 * its original_payload_format; merging and splitting keep it whole, and it counts as one item.
 *  - The labels of its series are resource attributes: "service.name" is the application's name,
 *    the others keep their names. So edits of the resource change the labels.
 *  - The other query parameters are attributes of the Profile, strings named
 *    "pyroscope.ingest.<parameter>": from and until as sent, units, aggregationType, sampleRate,
 *    spyName. The optional part `labels` of the form is "pyroscope.ingest.labels", bytes.
 *  - "pyroscope.label_names", an array of strings and an attribute of the Profile, names the
 *    resource attributes that came as labels: the pyroscope exporter turns these into labels of the
 *    same names, whatever its allow-list says. Any Profile may have it.
 * The pyroscope receiver writes them, the exporters read them. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_view.h"

struct budget;
struct buffer;
struct profile_dictionary;

#define OPAQUE_PROFILE_JFR    "jfr"
#define OPAQUE_PROFILE_PREFIX "pyroscope.ingest."
#define OPAQUE_PROFILE_LABELS "labels" /* a parameter whose value is bytes */
#define PROFILE_LABEL_NAMES   "pyroscope.label_names"
/* A series has no more labels. Without a limit each attribute of a resource would be compared with
 * as many names as a sender likes. */
enum { PROFILE_LABEL_NAMES_MAX = 100 };

enum {
    OPAQUE_PROFILE_PARAMETER_BYTES_MAX = 64,
    OPAQUE_PROFILE_PARAMETERS_MAX = 8, /* that are read at a time */
};

struct opaque_profile_pair {
    struct slice key;
    struct slice value;
};

struct opaque_profile {
    struct slice format;      /* OPAQUE_PROFILE_JFR */
    struct slice payload;     /* not empty */
    struct slice labels_part; /* as it came; no data: none */
    uint64_t time_unix_ns;    /* of `from`; 0: none */
    uint64_t duration_ns;
    const struct opaque_profile_pair *labels; /* "service.name" and the others; valid UTF-8 */
    size_t labels_count;
    const struct opaque_profile_pair *parameters; /* {"from", "1789…"} …; valid UTF-8 */
    size_t parameters_count;
};

/* A normalized request with that one Profile. Copies everything. NULL: budget or allocator refuse.
 */
struct buffer *opaque_profile_write(const struct opaque_profile *opaque, struct budget *budget)
    __attribute__((warn_unused_result));

/* Whether the Profile is such a file. Payloads of other formats are not: they came by OTLP and are
 * passed on to OTLP back-ends. */
bool profile_is_opaque(const struct profile *profile);

/* The number of items of a Profile, wherever samples are counted. */
static inline uint64_t profile_items(const struct profile *profile)
{
    return profile->samples_count == 0 && profile_is_opaque(profile) ? 1 : profile->samples_count;
}

/* The values of "pyroscope.ingest.<parameter>", strings or bytes; no data: none. Of equal keys the
 * first counts. */
void opaque_profile_parameters(const struct profile_dictionary *dictionary,
                               const struct profile *profile, const char *const *parameters,
                               size_t count, struct slice *ret_values);

/* "pyroscope.label_names": an encoded ArrayValue; no data: none. */
struct slice profile_label_names(const struct profile_dictionary *dictionary,
                                 const struct profile *profile);
/* The first of these names. Returns how many. */
size_t profile_label_names_list(struct slice names, struct slice list[PROFILE_LABEL_NAMES_MAX]);
/* Whether the key is one of them. */
bool profile_label_names_has(struct slice names, struct slice key);
