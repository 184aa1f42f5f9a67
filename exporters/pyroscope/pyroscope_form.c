/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, put together from parts that stay where they are. Runs on the exporter's
 * lane. */
#include "exporters/pyroscope/pyroscope_form.h"

#include "exporters/pyroscope/pyroscope_query.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "src/base/buffer.h"
#include "src/base/random.h"
#include "src/base/text_escape.h"
#include "src/codec/gzip.h"
#include "src/profiles/pprof/profile_type.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { FRAME_BYTES_MAX = 512, BOUNDARY_BYTES_MAX = 48 };

/* Where one part of a multipart form ends and the next begins. */
#define PART_HEAD                                                                                  \
    "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"                     \
    "Content-Type: application/octet-stream\r\n\r\n"

void pyroscope_form_init(struct pyroscope_form *form, struct budget *budget, struct gzip *gzip)
{
    assert(form != NULL);
    *form = (struct pyroscope_form){.budget = budget, .gzip = gzip};
}

void pyroscope_form_fini(struct pyroscope_form *form)
{
    assert(form != NULL);
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

/* Takes over the buffer; NULL: there was no memory for it. */
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

/* All parts become one. */
static void pack(struct pyroscope_form *form)
{
    struct buffer *packed = NULL;
    assert(form->gzip != NULL);
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

/* Random, so that no profile holds it. */
static void begin_multipart(struct pyroscope_form *form, char boundary[BOUNDARY_BYTES_MAX])
{
    uint32_t words[4];
    for (size_t i = 0; i < 4; i++)
        words[i] = (uint32_t)(random_uniform() * 4294967296.0);
    int size = snprintf(boundary, BOUNDARY_BYTES_MAX, "spanflame%08x%08x%08x%08x", words[0],
                        words[1], words[2], words[3]);
    assert(size < BOUNDARY_BYTES_MAX);
    snprintf(form->content_type, sizeof(form->content_type), "multipart/form-data; boundary=%s",
             boundary);
}

/* The last part: under which name the server is to show the type. A profile that came with a name
 * has its type as it came, which may be any text, or none. */
static void add_type_config(struct pyroscope_form *form, const struct profile_type *type,
                            const char *boundary)
{
    char text[2 * FRAME_BYTES_MAX + 2 * JSON_ESCAPE_BYTES_MAX * PROFILE_TYPE_TEXT_MAX];
    FILE *out = fmemopen(text, sizeof(text), "w");
    if (out == NULL) {
        form->has_failed = true;
        return;
    }
    fprintf(out, "\r\n" PART_HEAD "{", boundary, "sample_type_config", "sample_type_config.json");
    text_escape_json(out, slice_of_text(type->type));
    fprintf(out, ":{\"display-name\":");
    text_escape_json(out, slice_of_text(type->name));
    fprintf(out, "}}\r\n--%s--\r\n", boundary);
    fclose(out);
    add_text(form, text);
}

/* The server unpacks the profile, never the body of /ingest. */
bool pyroscope_form_profile(struct pyroscope_form *form, const struct profile_type *type,
                            struct buffer *profile)
{
    char boundary[BOUNDARY_BYTES_MAX];
    char text[FRAME_BYTES_MAX];
    assert(form->parts_count == 0);
    begin_multipart(form, boundary);
    add_owned(form, profile);
    if (form->gzip != NULL)
        pack(form);
    if (form->has_failed)
        return false;
    struct batch_part packed = form->parts[0];
    form->parts_count = 0;
    snprintf(text, sizeof(text), PART_HEAD, boundary, "profile", "profile.pprof");
    add_text(form, text);
    form->parts[form->parts_count++] = packed;
    add_type_config(form, type, boundary);
    return !form->has_failed;
}

bool pyroscope_form_upload(struct pyroscope_form *form, struct slice file, struct slice labels)
{
    char boundary[BOUNDARY_BYTES_MAX];
    char text[FRAME_BYTES_MAX];
    assert(form->parts_count == 0);
    begin_multipart(form, boundary);
    snprintf(text, sizeof(text), PART_HEAD, boundary, "jfr", "jfr");
    add_text(form, text);
    add_borrowed(form, file);
    if (labels.size > 0) {
        snprintf(text, sizeof(text), "\r\n" PART_HEAD, boundary, "labels", "labels");
        add_text(form, text);
        add_borrowed(form, labels);
    }
    snprintf(text, sizeof(text), "\r\n--%s--\r\n", boundary);
    add_text(form, text);
    return !form->has_failed;
}

bool pyroscope_form_address(struct pyroscope_form *form, const struct pyroscope_query *query,
                            uint64_t *changed)
{
    assert(form->target == NULL);
    form->target = pyroscope_query_target(query, form->budget, changed);
    form->has_failed |= form->target == NULL;
    return !form->has_failed;
}
