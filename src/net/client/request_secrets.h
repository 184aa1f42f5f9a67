/* SPDX-License-Identifier: Apache-2.0 */
/* What an exporter's requests carry that no log may show, and taking it out of what a back-end
 * says, which may repeat it. Pure functions; on the client's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/net/client/request_credentials.h"

struct config_pair;

struct request_secrets {
    const struct config_pair *headers; /* configured ones: any of them may be a secret */
    size_t headers_count;
    struct request_credentials credentials;
    const char *userinfo; /* "user:password" of the URL; NULL: none */
};

/* Shorter values are no secrets, and would hide ordinary words. */
enum { REQUEST_SECRET_BYTES_MIN = 4 };

/* Replaces each of them in the text by "[REDACTED]": a header's whole value, what follows its first
 * blank ("Bearer …"), the password in "Basic …", and the base64 of a header whose name ends in
 * -bin. The text is cut when it outgrows room, its terminator included. One that fills room is
 * taken for cut already: a secret that begins at its end goes too. */
void request_secrets_redact(const struct request_secrets *secrets, char *text, size_t room);
/* Whether any of them stands in the bytes. */
bool request_secrets_are_in(const struct request_secrets *secrets, struct slice bytes);
