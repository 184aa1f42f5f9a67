/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files, decompresses them and detects their format; writes to a temporary file and
 * renames. Main thread of a command. */
#include "src/cli/profile/profile_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pprof/pprof_reader.h"

const char *profile_format_name(enum profile_format format)
{
    static const char *const names[] = {
        [FORMAT_PPROF] = "pprof", [FORMAT_OTLP] = "OTLP", [FORMAT_OTLP_JSON] = "OTLP/JSON"};
    assert(format < PROFILE_FORMATS);
    return names[format];
}

bool profile_format_of_name(const char *path, enum profile_format *ret_format)
{
    static const struct {
        const char *end;
        enum profile_format format;
    } rows[] = {
        {".pprof", FORMAT_PPROF},       {".pprof.gz", FORMAT_PPROF}, {".pb.gz", FORMAT_PPROF},
        {".prof", FORMAT_PPROF},        {".otlp", FORMAT_OTLP},      {".otlp.gz", FORMAT_OTLP},
        {".otlp.pb", FORMAT_OTLP},      {".binpb", FORMAT_OTLP},     {".json", FORMAT_OTLP_JSON},
        {".json.gz", FORMAT_OTLP_JSON},
    };
    size_t size = strlen(path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t end_size = strlen(rows[i].end);
        if (size > end_size && strcmp(path + size - end_size, rows[i].end) == 0) {
            *ret_format = rows[i].format;
            return true;
        }
    }
    return false;
}

/* pprof and OTLP are both protobuf, but only pprof has strings in field 6 of the top message, and
 * only OTLP has a dictionary in field 2 and no higher field. */
bool profile_format_of(struct slice bytes, enum profile_format *ret_format, struct error *error)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    bool has_strings = false;
    uint32_t highest = 0;
    if (bytes.size == 0)
        return error_set(error, "the file is empty, expected a profile: pprof or OTLP");
    while (wire_read_field(&reader, &field)) {
        has_strings |= field.number == PPROF_STRING && field.type == WIRE_BYTES;
        highest = field.number > highest ? field.number : highest;
    }
    bool is_protobuf = reader.failure == NULL && highest > 0 && highest < PPROF_FIELDS &&
                       (highest <= 2 || has_strings);
    /* A JSON object, maybe after white space. No protobuf begins with its bracket, but some with a
     * line end. */
    size_t at = 0;
    while (at < bytes.size && strchr(" \t\r\n", bytes.data[at]) != NULL && bytes.data[at] != '\0')
        at++;
    bool is_json = at < bytes.size && bytes.data[at] == '{';
    if (!is_protobuf && !is_json)
        return error_set(error,
                         "found %zu bytes that are not the protobuf of a profile, expected pprof "
                         "(profile.proto, bare or gzip) or OTLP profiles (ExportProfilesService"
                         "Request or ProfilesData, protobuf or JSON)",
                         bytes.size);
    *ret_format = !is_protobuf ? FORMAT_OTLP_JSON : has_strings ? FORMAT_PPROF : FORMAT_OTLP;
    return true;
}

/* Reads the file and decompresses it. */
static bool load(struct profile_file *file, struct error *error)
{
    char *text;
    size_t size;
    int failed = file_read_whole(file->path, PROFILE_FILE_BYTES_MAX, &text, &size);
    switch (failed) {
    case 0:
        break;
    case -EFBIG:
        return error_set(error, "it is larger than %llu MiB, the most that is read; split it first",
                         (unsigned long long)(PROFILE_FILE_BYTES_MAX / MIB));
    case -EISDIR:
        return error_set(error, "it is a directory, expected a file");
    case -EINVAL:
        return error_set(error, "it is not a regular file; save the profile to one first");
    default:
        return error_set(error, "cannot read: %s", strerror(-failed));
    }
    file->owner = buffer_try_create(NULL, size);
    if (file->owner != NULL) {
        memcpy(file->owner->data, text, size);
        file->owner->size = size;
    }
    mem_free(text);
    if (file->owner == NULL)
        return error_set(error, "not enough memory for its %zu bytes", size);

    struct gzip *gzip = gzip_create();
    struct buffer *inflated = NULL;
    bool is_unpacked = pprof_unpack(gzip, NULL, buffer_slice(file->owner), PROFILE_FILE_BYTES_MAX,
                                    &inflated, error);
    gzip_destroy(gzip);
    file->is_compressed = inflated != NULL;
    if (is_unpacked && inflated != NULL) {
        buffer_unref(file->owner);
        file->owner = inflated;
    }
    file->bytes = buffer_slice(file->owner);
    return is_unpacked;
}

/* Transcodes JSON, and does the same checks as the daemon's ingress. */
static bool normalize(struct profile_file *file, struct error *error)
{
    if (file->format == FORMAT_OTLP_JSON) {
        struct buffer *encoded;
        char reason[JSON_REASON_BYTES_MAX];
        enum json_result result =
            json_read(otlp_request(PROFILES), file->bytes, NULL, &encoded, reason);
        if (result == JSON_MALFORMED)
            return error_set(error, "invalid OTLP/JSON: %s", reason);
        if (result == JSON_NO_BUDGET)
            return error_set(error, "not enough memory for its %zu bytes as protobuf",
                             file->bytes.size);
        buffer_unref(file->owner);
        file->owner = encoded;
        file->bytes = buffer_slice(encoded);
        file->format = FORMAT_OTLP;
        file->is_json = true;
    }
    struct profile_normalized normalized;
    assert(file->format == FORMAT_OTLP);
    enum profile_verdict verdict = profile_normalize(
        file->owner, file->bytes, file->is_json ? LAYOUT_1_10 : PROFILE_LAYOUTS, NULL, &normalized);
    if (verdict == PROFILES_BUSY)
        return error_set(error, "not enough memory to index its %zu bytes", file->bytes.size);
    if (verdict == PROFILES_REFUSED || verdict == PROFILES_TOO_LARGE)
        return error_set(error, "invalid OTLP profiles: %s", normalized.reason);
    if (normalized.profiles == 0 && normalized.rejected_profiles > 0) {
        buffer_unref(normalized.owner);
        return error_set(error, "all of its %llu profiles are broken, the first because %s",
                         (unsigned long long)normalized.rejected_profiles, normalized.reason);
    }
    if (file->is_json && normalized.profiles == 0) {
        buffer_unref(normalized.owner);
        return error_set(error, "found JSON without profiles, expected OTLP/JSON: an object with "
                                "resourceProfiles and dictionary");
    }
    buffer_unref(file->owner);
    file->owner = normalized.owner;
    file->bytes = normalized.request;
    file->layout = normalized.layout;
    file->rejected_profiles = normalized.rejected_profiles;
    memcpy(file->reason, normalized.reason, sizeof(file->reason));
    return true;
}

bool profile_file_read(struct profile_file *file, const char *path, struct error *error)
{
    *file = (struct profile_file){.path = path};
    if (load(file, error) && profile_format_of(file->bytes, &file->format, error) &&
        (file->format == FORMAT_PPROF || normalize(file, error)))
        return true;
    profile_file_close(file);
    return error_prefix(error, "%s", path);
}

void profile_file_close(struct profile_file *file)
{
    buffer_unref(file->owner);
    file->owner = NULL;
    file->bytes = slice_of(NULL, 0);
}

bool profile_file_write(const char *path, struct slice bytes, struct error *error)
{
    const struct iovec part = {.iov_base = (void *)(uintptr_t)bytes.data, .iov_len = bytes.size};
    assert(bytes.data != NULL || bytes.size == 0);
    int failed = file_replace(path, 0666, &part, 1);
    return failed == 0 || error_set(error, "%s: cannot write: %s", path, strerror(-failed));
}

bool profile_file_write_gzip(const char *path, struct slice bytes, struct error *error)
{
    const struct batch_part part = {.bytes = bytes};
    struct buffer *packed = NULL;
    struct gzip *gzip = gzip_create();
    enum gzip_result result = gzip_deflate(gzip, NULL, &part, 1, -1, &packed);
    gzip_destroy(gzip);
    if (result != GZIP_OK)
        return error_set(error, "%s: not enough memory to compress %zu bytes", path, bytes.size);
    bool is_written = profile_file_write(path, buffer_slice(packed), error);
    buffer_unref(packed);
    return is_written;
}
