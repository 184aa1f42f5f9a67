/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of OAuth 2.0 token endpoints (RFC 6749 §5), read as golang.org/x/oauth2 does: JSON, or
 * a form where the media type says so. Pure functions over a value of its owner; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct oauth2_response {
    /* Strings are owned, and "" when the response does not have them. */
    char *access_token;
    char *token_type;
    char *error;
    char *error_description;
    char *error_uri;
    int64_t expires_in_s; /* 0: never */
};

enum oauth2_format { OAUTH2_JSON, OAUTH2_FORM };

/* How a response with that Content-Type is read. */
enum oauth2_format oauth2_format_of(struct slice content_type);
/* False: the body is not of that format, or a member has the wrong type. In both cases the owner
 * frees *ret_response with oauth2_response_fini. */
bool oauth2_response_read(struct slice body, enum oauth2_format format,
                          struct oauth2_response *ret_response);
/* Overwrites and frees the strings. */
void oauth2_response_fini(struct oauth2_response *response);
/* What a request has to say: "Bearer abc". Free with secret_free. NULL: a header cannot have it. */
char *oauth2_response_authorization(const struct oauth2_response *response);
