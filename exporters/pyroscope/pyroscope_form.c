/* SPDX-License-Identifier: Apache-2.0 */
/* Puts bodies of requests together from parts, without copying those, and the queries of /ingest.
 * Runs on the exporter's lane. */
#include "exporters/pyroscope/pyroscope_form.h"

#include "exporters/pyroscope/pyroscope_query.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/random.h"
#include "src/base/text_escape.h"
#include "src/codec/gzip.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/pprof/profile_type.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FRAME_BYTES_MAX = 512,
    BOUNDARY_BYTES_MAX = 48,
    NUMBER_BYTES_MAX = 24,
    RATE_DEFAULT = 100,
    PARAMETER_BYTES_MAX = 256, /* of a file; any number of files may share one that is longer */
};

/* Begins a part of a multipart form. */
#define PART_HEAD                                                                                  \
    "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"                     \
    "Content-Type: application/octet-stream\r\n\r\n"

void pyroscope_form_init(struct pyroscope_form *form, struct budget *budget, struct gzip *gzip)
{
    *form = (struct pyroscope_form){.budget = budget, .gzip = gzip};
}

void pyroscope_form_fini(struct pyroscope_form *form)
{
    for (size_t i = 0; i < form->parts_count; i++)
        buffer_unref(form->parts[i].owner);
    buffer_unref(form->target);
    form->parts_count = 0;
    form->target = NULL;
}

uint64_t pyroscope_form_bytes(const struct pyroscope_form *form)
{
    uint64_t bytes = 0;
    assert(form->parts_count <= PYROSCOPE_FORM_PARTS_MAX);
    for (size_t i = 0; i < form->parts_count; i++)
        bytes += form->parts[i].bytes.size;
    return bytes;
}

/* Takes over the buffer. NULL: no memory. */
static void add_owned(struct pyroscope_form *form, struct buffer *buffer)
{
    assert(form->parts_count < PYROSCOPE_FORM_PARTS_MAX);
    if (buffer == NULL) {
        form->has_failed = true;
        return;
    }
    form->parts[form->parts_count++] =
        (struct batch_part){.owner = buffer, .bytes = buffer_slice(buffer)};
}

static void add_borrowed(struct pyroscope_form *form, struct slice bytes)
{
    assert(form->parts_count < PYROSCOPE_FORM_PARTS_MAX);
    form->parts[form->parts_count++] = (struct batch_part){.bytes = bytes};
}

static void add_text(struct pyroscope_form *form, const char *text)
{
    size_t size = strlen(text);
    struct buffer *buffer = buffer_try_create(form->budget, size);
    assert(size > 0);
    if (buffer != NULL) {
        memcpy(buffer->data, text, size);
        buffer->size = size;
    }
    add_owned(form, buffer);
}

/* Compresses all parts to one. */
static void pack(struct pyroscope_form *form)
{
    struct buffer *packed = NULL;
    if (form->has_failed)
        return;
    form->plain_bytes = pyroscope_form_bytes(form);
    if (gzip_deflate(form->gzip, form->budget, form->parts, form->parts_count, -1, &packed) !=
        GZIP_OK)
        packed = NULL;
    for (size_t i = 0; i < form->parts_count; i++)
        buffer_unref(form->parts[i].owner);
    form->parts_count = 0;
    add_owned(form, packed);
}

static void pack_body(struct pyroscope_form *form)
{
    if (form->gzip == NULL)
        return;
    pack(form);
    form->content_encoding = "gzip";
}

bool pyroscope_form_push(struct pyroscope_form *form, const struct pyroscope_series *series,
                         struct buffer *profile)
{
    assert(form->parts_count == 0);
    add_owned(form, pyroscope_push_head(series, profile->size));
    add_owned(form, profile);
    add_owned(form, pyroscope_push_tail(form->budget));
    snprintf(form->content_type, sizeof(form->content_type), "application/proto");
    pack_body(form);
    return !form->has_failed;
}

bool pyroscope_form_otlp(struct pyroscope_form *form, struct slice request)
{
    assert(form->parts_count == 0);
    add_borrowed(form, request);
    snprintf(form->content_type, sizeof(form->content_type), "application/x-protobuf");
    pack_body(form);
    return !form->has_failed;
}

/* The boundary is random, so that no profile contains it. */
static void begin_multipart(struct pyroscope_form *form, char boundary[BOUNDARY_BYTES_MAX])
{
    uint32_t words[4];
    assert(form->parts_count == 0);
    for (size_t i = 0; i < 4; i++)
        words[i] = (uint32_t)(random_uniform() * 4294967296.0);
    snprintf(boundary, BOUNDARY_BYTES_MAX, "spanflame%08x%08x%08x%08x", words[0], words[1],
             words[2], words[3]);
    snprintf(form->content_type, sizeof(form->content_type), "multipart/form-data; boundary=%s",
             boundary);
}

/* Makes the query the form's target. */
static bool address(struct pyroscope_form *form, const struct pyroscope_query *query,
                    uint64_t *changed)
{
    form->target = pyroscope_query_target(query, form->budget, changed);
    form->has_failed |= form->target == NULL;
    return !form->has_failed;
}

static struct pyroscope_query query_of(const struct pyroscope_ingest *ingest)
{
    return (struct pyroscope_query){.path = ingest->path,
                                    .labels = byte_run_slice(&ingest->series->labels)};
}

/* The server recognizes nanoseconds by their 19 digits. */
static struct slice number_text(char room[NUMBER_BYTES_MAX], uint64_t number)
{
    int size = snprintf(room, NUMBER_BYTES_MAX, "%" PRIu64, number);
    return slice_of(room, (size_t)size);
}

static const char *units_of(const struct profile_type *type)
{
    bool is_time = strcmp(type->unit, "nanoseconds") == 0;
    bool is_lock = strcmp(type->name, "mutex") == 0 || strcmp(type->name, "block") == 0;
    if (strcmp(type->unit, "bytes") == 0)
        return "bytes";
    if (is_lock)
        return is_time ? "lock_nanoseconds" : "lock_samples";
    if (strcmp(type->name, "goroutine") == 0)
        return "goroutines";
    return strcmp(type->name, "memory") == 0 ? "objects" : "samples";
}

bool pyroscope_form_ingest(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                           struct buffer *profile, uint64_t *changed)
{
    const struct pyroscope_walk *walk = ingest->walk;
    const struct profile_type *type = &walk->type;
    char boundary[BOUNDARY_BYTES_MAX];
    char text[FRAME_BYTES_MAX];
    char config[2 * FRAME_BYTES_MAX + 2 * JSON_ESCAPE_BYTES_MAX * PROFILE_TYPE_TEXT_MAX];
    begin_multipart(form, boundary);
    add_owned(form, profile);
    if (form->gzip != NULL) /* the server inflates the profile, never the body of /ingest */
        pack(form);
    if (form->has_failed)
        return false;
    struct batch_part packed = form->parts[0];
    form->parts_count = 0;
    snprintf(text, sizeof(text), PART_HEAD, boundary, "profile", "profile.pprof");
    add_text(form, text);
    form->parts[form->parts_count++] = packed;
    /* The last part: the name under which the server shows the type. A profile that came with a
     * name has its own type, which may be any string, or empty. */
    FILE *out = fmemopen(config, sizeof(config), "w");
    if (out == NULL) {
        form->has_failed = true;
        return false;
    }
    fprintf(out, "\r\n" PART_HEAD "{", boundary, "sample_type_config", "sample_type_config.json");
    text_escape_json(out, slice_of_text(type->type));
    fprintf(out, ":{\"display-name\":");
    text_escape_json(out, slice_of_text(type->name));
    fprintf(out, "}}\r\n--%s--\r\n", boundary);
    fclose(out);
    add_text(form, config);

    struct pyroscope_query query = query_of(ingest);
    struct slice spy = pyroscope_query_label(query.labels, PYROSCOPE_SPY_LABEL);
    int64_t period = walk->profile.period;
    bool has_rate =
        strcmp(type->period_unit, "nanoseconds") == 0 && period > 0 && period <= NS_PER_S;
    uint64_t rate = has_rate ? (uint64_t)((NS_PER_S + period / 2) / period) : RATE_DEFAULT;
    /* A state at a time, rather than events over one. */
    bool is_state = strncmp(type->type, "inuse_", 6) == 0 || strcmp(type->name, "goroutine") == 0;
    char from[NUMBER_BYTES_MAX];
    char until[NUMBER_BYTES_MAX];
    char rate_text[NUMBER_BYTES_MAX];
    assert(ingest->time_ns > 0 && ingest->time_ns <= INT64_MAX);
    uint64_t duration_ns = walk->profile.duration_ns;
    if (duration_ns > INT64_MAX - ingest->time_ns) /* as in the profile: none */
        duration_ns = 0;
    pyroscope_query_add(&query, "from", number_text(from, ingest->time_ns));
    pyroscope_query_add(&query, "until", number_text(until, ingest->time_ns + duration_ns));
    pyroscope_query_add(&query, "spyName", spy.size > 0 ? spy : slice_of_text("spanflame"));
    pyroscope_query_add(&query, "sampleRate", number_text(rate_text, rate));
    pyroscope_query_add(&query, "units", slice_of_text(units_of(type)));
    pyroscope_query_add(&query, "aggregationType", slice_of_text(is_state ? "average" : "sum"));
    return !form->has_failed && address(form, &query, changed);
}

/* Everything that came with the file is passed on unchanged, except a time that had to move, and
 * parameters that are too long to be meant. */
bool pyroscope_form_upload(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                           uint64_t *changed)
{
    enum { LABELS, FROM, UNTIL, SPY_NAME, SAMPLE_RATE, UNITS, AGGREGATION, PARAMETERS };
    static const char *const parameters[PARAMETERS] = {
        [LABELS] = OPAQUE_PROFILE_LABELS,
        [FROM] = "from",
        [UNTIL] = "until",
        [SPY_NAME] = "spyName",
        [SAMPLE_RATE] = "sampleRate",
        [UNITS] = "units",
        [AGGREGATION] = "aggregationType",
    };
    const struct profile_dictionary *dictionary = &ingest->walk->dictionary;
    const struct profile *profile = &ingest->walk->profile;
    struct slice values[PARAMETERS];
    opaque_profile_parameters(dictionary, profile, parameters, PARAMETERS, values);
    char boundary[BOUNDARY_BYTES_MAX];
    char text[FRAME_BYTES_MAX];
    begin_multipart(form, boundary);
    snprintf(text, sizeof(text), PART_HEAD, boundary, "jfr", "jfr");
    add_text(form, text);
    add_borrowed(form, profile->payload);
    if (values[LABELS].size > 0) {
        snprintf(text, sizeof(text), "\r\n" PART_HEAD, boundary, "labels", "labels");
        add_text(form, text);
        add_borrowed(form, values[LABELS]);
    }
    snprintf(text, sizeof(text), "\r\n--%s--\r\n", boundary);
    add_text(form, text);

    struct pyroscope_query query = query_of(ingest);
    char moved[NUMBER_BYTES_MAX];
    pyroscope_query_add(&query, "format", profile->payload_format);
    if (ingest->time_ns != 0)
        values[FROM] = number_text(moved, ingest->time_ns);
    for (size_t i = FROM; i < PARAMETERS; i++) {
        if (values[i].size <= PARAMETER_BYTES_MAX)
            pyroscope_query_add(&query, parameters[i], values[i]);
        else
            ++*changed;
    }
    return !form->has_failed && address(form, &query, changed);
}
