/* SPDX-License-Identifier: Apache-2.0 */
/* The `headers` of a gRPC client as metadata: names in lower case, values of "-bin" names in
 * base64, reserved names omitted, as in grpc-go. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <nghttp2/nghttp2.h>

struct config_pair;
struct error;

struct grpc_metadata {
    size_t count;
    nghttp2_nv *fields; /* names and values are owned */
};

bool grpc_metadata_check(const struct config_pair *headers, size_t count, struct error *error);
/* headers have passed the check. */
void grpc_metadata_init(struct grpc_metadata *metadata, const struct config_pair *headers,
                        size_t count);
void grpc_metadata_fini(struct grpc_metadata *metadata);

/* name: in lower case. */
bool grpc_metadata_is(const nghttp2_nv *field, const char *name);
/* A field that points to the caller's strings. */
nghttp2_nv grpc_metadata_field(const char *name, const char *value);
