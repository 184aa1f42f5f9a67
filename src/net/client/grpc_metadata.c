/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of gRPC calls from configured headers. Pure functions; any thread. */
#include "src/net/client/grpc_metadata.h"

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/config/field.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_binary(const char *name)
{
    size_t size = strlen(name);
    return size > 4 && strcasecmp(name + size - 4, "-bin") == 0;
}

bool grpc_metadata_check(const struct config_pair *headers, size_t count, struct error *error)
{
    /* RFC 9113 §8.2.2: a request with one of these is malformed. */
    static const char *const connection_names[] = {"connection", "keep-alive", "proxy-connection",
                                                   "transfer-encoding", "upgrade"};
    assert(headers != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        const char *name = headers[i].key;
        bool is_name = name[0] != '\0';
        for (const char *at = name; *at != '\0'; at++)
            is_name &= isalnum((unsigned char)*at) || strchr("-_.", *at) != NULL;
        if (!is_name)
            return error_set(
                       error,
                       "\"%s\" is not a gRPC metadata key; expected letters, digits, '-', '_' "
                       "and '.'",
                       name) ||
                   error_at_index(error, i);
        bool is_of_connection = false;
        for (size_t j = 0; j < sizeof(connection_names) / sizeof(connection_names[0]); j++)
            is_of_connection |= strcasecmp(name, connection_names[j]) == 0;
        if (is_of_connection)
            return error_set(error,
                             "\"%s\" belongs to HTTP/1.1 connections and cannot be sent over "
                             "HTTP/2; remove it",
                             name) ||
                   error_at_index(error, i);
        bool is_printable = true;
        for (const char *at = headers[i].value; *at != '\0'; at++)
            is_printable &= *at >= ' ' && *at <= '~';
        if (!is_binary(name) && !is_printable)
            return error_set(error,
                             "the value of \"%s\" contains a line break or another character that "
                             "is not printable ASCII; a file read with ${file:…} keeps its final "
                             "newline",
                             name) ||
                   error_at_index(error, i);
    }
    return true;
}

nghttp2_nv grpc_metadata_field(const char *name, const char *value)
{
    return (nghttp2_nv){
        /* nghttp2 does not modify them. */
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = strlen(value),
    };
}

void grpc_metadata_init(struct grpc_metadata *metadata, const struct config_pair *headers,
                        size_t count)
{
    /* Headers of the protocol, and all "grpc-…"; grpc-go drops these, too. */
    static const char *const reserved[] = {"content-type", "user-agent", "te", "content-length"};
    assert(headers != NULL || count == 0);
    *metadata = (struct grpc_metadata){.fields = mem_alloc(count * sizeof(nghttp2_nv))};
    for (size_t i = 0; i < count; i++) {
        const char *value = headers[i].value;
        bool is_reserved = strncasecmp(headers[i].key, "grpc-", strlen("grpc-")) == 0;
        for (size_t j = 0; j < sizeof(reserved) / sizeof(reserved[0]); j++)
            is_reserved |= strcasecmp(headers[i].key, reserved[j]) == 0;
        if (is_reserved)
            continue;
        char *name = mem_copy_text(headers[i].key);
        for (char *at = name; *at != '\0'; at++)
            *at = (char)tolower((unsigned char)*at);
        char *copy;
        if (is_binary(name)) {
            /* Without padding, as gRPC sends binary values. */
            struct slice bytes = slice_of_text(value);
            copy = mem_alloc(base64_size(bytes.size) + 1);
            base64_encode(bytes, copy);
            copy[base64_size(bytes.size)] = '\0';
            copy[strcspn(copy, "=")] = '\0';
        } else {
            copy = mem_copy_text(value);
        }
        metadata->fields[metadata->count++] = grpc_metadata_field(name, copy);
    }
}

void grpc_metadata_fini(struct grpc_metadata *metadata)
{
    for (size_t i = 0; i < metadata->count; i++) {
        mem_free(metadata->fields[i].name);
        mem_free(metadata->fields[i].value);
    }
    mem_free(metadata->fields);
    *metadata = (struct grpc_metadata){0};
}

bool grpc_metadata_is(const nghttp2_nv *field, const char *name)
{
    return strlen(name) == field->namelen && memcmp(field->name, name, field->namelen) == 0;
}
