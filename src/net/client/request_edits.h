/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to the headers of one request, made when it is about to be sent: what they set depends on
 * the request's client, or on what another server says. Names are compared without case. Pure
 * functions over a value of its owner; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/net/client/request_credentials.h"

struct config_pair;

/* Adds room at the place where an authenticator's edits belong. HTTP: behind the edits that are
 * there, since an authenticator sees the headers as those around it have left them. gRPC: before
 * them, since it comes first and the others change its metadata. */
void request_edits_begin(struct request_edits *edits, bool is_grpc);
/* Adds one at that place, behind those added since. Copies name and value. */
void request_edits_add(struct request_edits *edits, enum request_edit_action action,
                       const char *name, const char *value);
/* Overwrites and frees the values. */
void request_edits_fini(struct request_edits *edits);

/* Names and values of one request in all: what a client of ours sends may become a header, and no
 * peer takes much more. */
enum { REQUEST_EDITS_BYTES_MAX = 32 * 1024 };
/* False: it cannot be sent; *ret_name is the header whose name or value has other bytes than the
 * protocol allows, or with which the limit is exceeded. */
bool request_edits_check(const struct request_edits *edits, bool is_grpc, const char **ret_name);
/* Applies them, in order, to count rows in an array with room for edits->count more, whose strings
 * are borrowed. HTTP, as in Go's header maps: a header with an empty value counts as missing.
 * Returns how many rows there are. */
size_t request_edits_apply(const struct request_edits *edits, bool is_grpc,
                           struct config_pair *rows, size_t count);
