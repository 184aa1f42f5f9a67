/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction, value by value. On the client's lane. */
#include "src/net/request_secrets.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "src/base64.h"
#include "src/config/field.h"
#include "src/mem.h"
#include "src/secret.h"

static void redact(char *text, size_t room, const char *secret)
{
    static const char instead[] = "[REDACTED]";
    const size_t instead_size = sizeof(instead) - 1;
    size_t size = strlen(secret);
    assert(room > instead_size);
    if (size < REQUEST_SECRET_BYTES_MIN)
        return;
    for (char *at = text; (at = strstr(at, secret)) != NULL; at += instead_size) {
        size_t before = (size_t)(at - text);
        size_t behind = strlen(at + size);
        if (before + instead_size >= room) {
            *at = '\0';
            return;
        }
        if (before + instead_size + behind >= room)
            behind = room - before - instead_size - 1;
        memmove(at + instead_size, at + size, behind);
        memcpy(at, instead, instead_size);
        at[instead_size + behind] = '\0';
    }
}

static void redact_userinfo(char *text, size_t room, const char *userinfo)
{
    const char *colon = strchr(userinfo, ':');
    redact(text, room, userinfo);
    if (colon != NULL)
        redact(text, room, colon + 1);
}

static void redact_basic(char *text, size_t room, const char *base64)
{
    size_t size = strlen(base64);
    char *userinfo = mem_zalloc(size + 1);
    if (base64_decode(slice_of_text(base64), (uint8_t *)userinfo, &size))
        userinfo[size] = '\0';
    else
        userinfo[0] = '\0';
    redact_userinfo(text, room, userinfo);
    secret_free(userinfo);
}

static void redact_value(char *text, size_t room, const char *value)
{
    const char *blank = strchr(value, ' ');
    redact(text, room, value);
    if (blank == NULL)
        return;
    redact(text, room, blank + 1);
    if (strncasecmp(value, "Basic ", 6) == 0)
        redact_basic(text, room, blank + 1);
}

void request_secrets_redact(const struct request_secrets *secrets, char *text, size_t room)
{
    assert(text != NULL);
    assert(strlen(text) < room);
    for (size_t i = 0; i < secrets->headers_count; i++)
        redact_value(text, room, secrets->headers[i].value);
    if (secrets->credentials.name != NULL)
        redact_value(text, room, secrets->credentials.value(secrets->credentials.arg));
    if (secrets->userinfo != NULL)
        redact_userinfo(text, room, secrets->userinfo);
}
