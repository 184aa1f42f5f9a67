/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets in an exporter's requests, and their redaction from what a back-end responds, which
 * may repeat them. Pure functions; on the client's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/net/client/request_credentials.h"

struct config_pair;

struct request_secrets {
    const struct config_pair *headers; /* any configured header may be a secret */
    size_t headers_count;
    struct request_credentials credentials;
    const struct request_edits *edits; /* of the request; NULL: none */
    const char *userinfo;              /* "user:password" of the URL; NULL: none */
};

/* Shorter values are not secrets; redacting them would hide ordinary words. */
enum { REQUEST_SECRET_BYTES_MIN = 4 };

/* Replaces each secret in text by "[REDACTED]": a header's whole value, the part after its first
 * blank ("Bearer …"), the password in "Basic …", and the base64 of a header whose name ends in
 * -bin. The string is cut if it outgrows room (with terminator). A string that fills room counts as
 * cut: the beginning of a secret at its end is removed, too. */
void request_secrets_redact(const struct request_secrets *secrets, char *text, size_t room);
/* Whether bytes contain any secret. */
bool request_secrets_are_in(const struct request_secrets *secrets, struct slice bytes);
