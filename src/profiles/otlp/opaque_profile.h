/* SPDX-License-Identifier: Apache-2.0 */
/* Files of profilers that are passed on as they came because we do not read them: JFR. Such a file
 * travels as a Profile without samples, its original_payload being the file and its
 * original_payload_format "jfr"; merging and splitting keep it whole, and it counts as one item.
 *  - The labels of its series are resource attributes: "service.name" is the application's name,
 *    the others have their own names. So edits of the resource change the labels.
 *  - What else came in the query is in attributes of the Profile, texts named
 *    "pyroscope.ingest.<parameter>": from and until as sent, units, aggregationType, sampleRate,
 *    spyName. The optional part `labels` of the form is "pyroscope.ingest.labels", bytes.
 *  - "pyroscope.label_names", an array of texts and an attribute of the Profile, names the resource
 *    attributes that came as labels: the pyroscope exporter makes labels of these under their very
 *    names, whatever its allow-list says. Any Profile may have it.
 * Who writes: the pyroscope receiver. Who reads: the exporters. Pure functions; any thread. */
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

enum { OPAQUE_PROFILE_PARAMETER_BYTES_MAX = 64 };

struct opaque_profile_pair {
    struct slice key;
    struct slice value;
};

struct opaque_profile {
    struct slice format;      /* OPAQUE_PROFILE_JFR */
    struct slice payload;     /* not empty */
    struct slice labels_part; /* as it came; no data: there was none */
    uint64_t time_unix_ns;    /* what from says; 0: nothing */
    uint64_t duration_ns;
    const struct opaque_profile_pair *labels; /* "service.name" and the others; valid UTF-8 */
    size_t labels_count;
    const struct opaque_profile_pair *parameters; /* {"from", "1789…"} …; valid UTF-8 */
    size_t parameters_count;
};

/* A request, layout 1.10, with that one Profile, as it would be after profile_normalize. Everything
 * is copied. NULL: budget or allocator refuse. */
struct buffer *opaque_profile_write(const struct opaque_profile *upload, struct budget *budget)
    __attribute__((warn_unused_result));

/* Whether the Profile is such a file. Payloads of other formats are not: they came by OTLP and are
 * left to whom they are sent. */
bool profile_is_opaque(const struct profile *profile);

/* What a Profile counts as, wherever samples are counted. */
static inline uint64_t profile_items(const struct profile *profile)
{
    return profile->samples_count == 0 && profile_is_opaque(profile) ? 1 : profile->samples_count;
}

/* The value of "pyroscope.ingest.<parameter>", text or bytes; no data: it has none. */
struct slice opaque_profile_parameter(const struct profile_dictionary *dictionary,
                                      const struct profile *profile, const char *parameter);

/* "pyroscope.label_names": an encoded ArrayValue; no data: the Profile has none. */
struct slice profile_label_names(const struct profile_dictionary *dictionary,
                                 const struct profile *profile);
bool profile_label_names_has(struct slice names, struct slice key);
