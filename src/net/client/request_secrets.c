/* SPDX-License-Identifier: Apache-2.0 */
/* Visits each secret to redact or find it. On the client's lane. */
#include "src/net/client/request_secrets.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "src/base/base64.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/config/field.h"

typedef void (*secret_fn)(const char *secret, void *arg);

static void visit_userinfo(const char *userinfo, secret_fn visit, void *arg)
{
    const char *colon = strchr(userinfo, ':');
    visit(userinfo, arg);
    if (colon != NULL)
        visit(colon + 1, arg);
}

static void visit_value(const char *name, const char *value, secret_fn visit, void *arg)
{
    const char *blank = strchr(value, ' ');
    size_t name_size = strlen(name);
    visit(value, arg);
    if (name_size > 4 && strcasecmp(name + name_size - 4, "-bin") == 0) {
        /* Without padding, as gRPC sends binary metadata. */
        struct slice bytes = slice_of_text(value);
        char *base64 = mem_zalloc(base64_size(bytes.size) + 1);
        base64_encode(bytes, base64);
        base64[strcspn(base64, "=")] = '\0';
        visit(base64, arg);
        secret_free(base64);
    }
    if (blank == NULL)
        return;
    visit(blank + 1, arg);
    if (strncasecmp(value, "Basic ", 6) == 0) {
        const char *base64 = blank + 1;
        size_t size = strlen(base64);
        char *userinfo = mem_zalloc(size + 1);
        if (base64_decode(slice_of_text(base64), (uint8_t *)userinfo, &size))
            userinfo[size] = '\0';
        else
            userinfo[0] = '\0';
        visit_userinfo(userinfo, visit, arg);
        secret_free(userinfo);
    }
}

static void visit_all(const struct request_secrets *secrets, secret_fn visit, void *arg)
{
    for (size_t i = 0; i < secrets->headers_count; i++)
        visit_value(secrets->headers[i].key, secrets->headers[i].value, visit, arg);
    if (secrets->credentials.name != NULL)
        visit_value(secrets->credentials.name, secrets->credentials.value(secrets->credentials.arg),
                    visit, arg);
    for (size_t i = 0; secrets->edits != NULL && i < secrets->edits->count; i++)
        visit_value(secrets->edits->list[i].name, secrets->edits->list[i].value, visit, arg);
    if (secrets->userinfo != NULL)
        visit_userinfo(secrets->userinfo, visit, arg);
}

struct redaction {
    char *text;
    size_t room;
    bool is_cut; /* the text fills the room: its end may be a part of a secret */
};

static void redact(const char *secret, void *arg)
{
    static const char instead[] = "[REDACTED]";
    const size_t instead_size = sizeof(instead) - 1;
    const struct redaction *redaction = arg;
    char *text = redaction->text;
    size_t room = redaction->room;
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
    if (redaction->is_cut) {
        /* Cuts the beginning of a secret off the end of the text. */
        size_t length = strlen(text);
        size_t most = length < size ? length : size - 1;
        for (size_t begun = most; begun >= REQUEST_SECRET_BYTES_MIN; begun--)
            if (memcmp(text + length - begun, secret, begun) == 0) {
                text[length - begun] = '\0';
                return;
            }
    }
}

void request_secrets_redact(const struct request_secrets *secrets, char *text, size_t room)
{
    assert(strlen(text) < room);
    struct redaction redaction = {.text = text, .room = room, .is_cut = strlen(text) + 1 == room};
    visit_all(secrets, redact, &redaction);
}

struct search {
    struct slice bytes;
    bool is_found;
};

static void search_for(const char *secret, void *arg)
{
    struct search *search = arg;
    size_t size = strlen(secret);
    if (size >= REQUEST_SECRET_BYTES_MIN && search->bytes.size > 0)
        search->is_found |= memmem(search->bytes.data, search->bytes.size, secret, size) != NULL;
}

bool request_secrets_are_in(const struct request_secrets *secrets, struct slice bytes)
{
    struct search search = {.bytes = bytes};
    assert(bytes.data != NULL || bytes.size == 0);
    visit_all(secrets, search_for, &search);
    return search.is_found;
}
