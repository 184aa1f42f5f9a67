/* SPDX-License-Identifier: Apache-2.0 */
/* bearertokenauth: a header with a token. Servers compare it with all configured tokens, clients
 * send the first. Tokens in a file are read again when it changes. Each component that uses the
 * extension has an instance of its own, on its lane. */
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/base/watched_file.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bearertokenauth_extension_config {
    const char *header;
    const char *scheme;
    const char *token;
    struct config_texts tokens;
    const char *filename;
};

#define OWNER struct bearertokenauth_extension_config
static const struct config_field bearertokenauth_extension_fields[] = {
    CONFIG_TEXT(OWNER, header, "header", "Authorization", "Header that holds the token."),
    CONFIG_TEXT(OWNER, scheme, "scheme", "Bearer", "Word before the token; \"\": none."),
    CONFIG_SECRET(OWNER, token, "token", "The token: the first word of each line, as in a file."),
    CONFIG_SECRETS(OWNER, tokens, "tokens",
                   "Several: servers take each, clients send the first. They win over filename."),
    CONFIG_TEXT(OWNER, filename, "filename", NULL,
                "File with a token as the first word of each line; wins over token. Read again "
                "within a second after it changes."),
    CONFIG_END,
};
#undef OWNER

struct bearer_token {
    struct authenticator base;
    struct watched_file file; /* path NULL: none */
    char *name;               /* of the header, in lower case */
    char *missing;            /* error for a request without it */
    size_t values_count;
    char **values; /* of the header: "Bearer x" */
    char *last;    /* our own, while the file has none */
};

static struct bearer_token *bearer_token_of(struct authenticator *base)
{
    return (struct bearer_token *)base;
}

static bool is_header_value(const char *text)
{
    return http1_is_all(slice_of_text(text), HTTP1_VALUE);
}

static bool refuse_control(struct error *error)
{
    return error_set(
        error,
        "a token or the scheme has a line end or another control character; a "
        "file read with ${file:…} keeps its final newline: use token or filename, which ignore it");
}

static bool bearertokenauth_extension_check(const void *section, struct error *error)
{
    const struct bearertokenauth_extension_config *config = section;
    bool has_token = config->token[0] != '\0';
    if (!has_token && config->tokens.count == 0 && config->filename[0] == '\0')
        return error_set(error, "no bearer token provided: expected token, tokens or filename");
    if (has_token && config->tokens.count > 0)
        return error_set(error, "either tokens or token should be provided, not both") ||
               error_at(error, "tokens");
    if (!http1_is_token(slice_of_text(config->header)))
        return error_set(error, "\"%s\" is not a header name", config->header) ||
               error_at(error, "header");
    if (!is_header_value(config->scheme))
        return refuse_control(error) || error_at(error, "scheme");
    for (const char *at = config->token; *at != '\0'; at++) /* words and line ends, as in a file */
        if (!isspace((unsigned char)*at) && !http1_is_all(slice_of(at, 1), HTTP1_VALUE))
            return refuse_control(error) || error_at(error, "token");
    for (size_t i = 0; i < config->tokens.count; i++) {
        if (config->tokens.texts[i][0] == '\0')
            return error_set(error, "found an empty token, which would match every request; is an "
                                    "environment variable not set?") ||
                   error_at_index(error, i) || error_at(error, "tokens");
        if (!is_header_value(config->tokens.texts[i]))
            return refuse_control(error) || error_at_index(error, i) || error_at(error, "tokens");
    }
    return true;
}

static void clear_values(struct bearer_token *self)
{
    assert(self->values != NULL || self->values_count == 0);
    for (size_t i = 0; i < self->values_count; i++)
        secret_free(self->values[i]);
    mem_free((void *)self->values);
    self->values = NULL;
    self->values_count = 0;
}

static void add_value(struct bearer_token *self, struct slice token)
{
    const struct bearertokenauth_extension_config *config = self->base.config;
    size_t size = strlen(config->scheme) + token.size + 2;
    char *value = mem_alloc(size);
    snprintf(value, size, "%s%s%.*s", config->scheme, config->scheme[0] != '\0' ? " " : "",
             (int)token.size, (const char *)token.data);
    self->values = mem_resize((void *)self->values, (self->values_count + 1) * sizeof(char *));
    self->values[self->values_count++] = value;
}

/* Takes the first word of each line, which is how the Go collector reads files and `token`. */
static void take_words(struct bearer_token *self, const char *text)
{
    clear_values(self);
    for (const char *line = text; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        const char *end = line + size;
        while (line < end && isspace((unsigned char)*line))
            line++;
        const char *word = line;
        while (line < end && !isspace((unsigned char)*line))
            line++;
        struct slice token = slice_of(word, (size_t)(line - word));
        if (token.size > 0 && http1_is_all(token, HTTP1_VALUE))
            add_value(self, token);
        line = *end == '\n' ? end + 1 : end;
    }
}

/* A file that is replaced in place is empty for a moment. Without a token our requests would be
 * refused for good, and their data lost. */
static void keep_last(struct bearer_token *self)
{
    if (self->values_count == 0)
        return;
    secret_free(self->last);
    self->last = mem_copy_text(self->values[0]);
}

static void look_at_file(struct bearer_token *self)
{
    struct error error;
    if (self->file.path == NULL)
        return;
    switch (watched_file_look(&self->file, &error)) {
    case WATCHED_CHANGED:
        keep_last(self);
        take_words(self, self->file.text);
        if (self->values_count == 0) {
            log_warn(self->base.logger,
                     "The token file has no token: servers reject all requests, clients go on "
                     "sending the previous one",
                     log_text("filename", self->file.path));
            break;
        }
        log_info(self->base.logger, "refresh token", log_text("filename", self->file.path));
        break;
    case WATCHED_FAILED:
        log_warn(self->base.logger, "The token file cannot be read; the previous tokens stay valid",
                 log_text("error", error.text));
        break;
    case WATCHED_SAME:
        break;
    }
}

static void bearer_token_destroy(struct authenticator *base)
{
    struct bearer_token *self = bearer_token_of(base);
    clear_values(self);
    secret_free(self->last);
    watched_file_close(&self->file);
    mem_free(self->name);
    mem_free(self->missing);
    mem_free(self);
}

static struct authenticator *bearer_token_create(const void *section, const struct component *user,
                                                 struct error *error)
{
    static const char missing[] = "missing or empty authorization header: ";
    const struct bearertokenauth_extension_config *config = section;
    struct bearer_token *self = mem_zalloc(sizeof(*self));
    size_t missing_bytes = sizeof(missing) + strlen(config->header);
    self->base = (struct authenticator){.config = config, .logger = &user->logger};
    self->missing = mem_alloc(missing_bytes);
    snprintf(self->missing, missing_bytes, "%s%s", missing, config->header);
    self->name = mem_copy_text(config->header);
    for (char *at = self->name; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    for (size_t i = 0; i < config->tokens.count; i++)
        add_value(self, slice_of_text(config->tokens.texts[i]));
    bool is_read = true;
    if (self->values_count == 0 && config->filename[0] != '\0') {
        is_read = watched_file_open(&self->file, config->filename, SECRET_FILE_BYTES_MAX, error);
        if (is_read)
            take_words(self, self->file.text);
        else
            error_prefix(error, "filename");
        if (is_read && self->values_count == 0)
            is_read = error_set(error, "filename: %s has no token", config->filename);
    } else if (self->values_count == 0) {
        take_words(self, config->token);
    }
    if (is_read)
        return &self->base;
    bearer_token_destroy(&self->base);
    return NULL;
}

static bool bearer_token_serves(const void *config, enum auth_side side)
{
    (void)config;
    return side == AUTH_SERVER || side == AUTH_CLIENT;
}

static enum auth_verdict bearer_token_authenticate(struct authenticator *base,
                                                   const struct auth_request *request,
                                                   struct auth_result *ret_result)
{
    struct bearer_token *self = bearer_token_of(base);
    struct slice presented = request->header(request, self->name);
    look_at_file(self);
    if (presented.data == NULL) {
        ret_result->reason = self->missing;
        return AUTH_DENIED;
    }
    unsigned right = 0;
    for (size_t i = 0; i < self->values_count; i++)
        right |= secret_equal(presented, slice_of_text(self->values[i]));
    if (right != 0)
        return AUTH_GRANTED;
    ret_result->reason = "provided authorization does not match expected scheme or token";
    return AUTH_DENIED;
}

static struct auth_header bearer_token_credentials(struct authenticator *base)
{
    struct bearer_token *self = bearer_token_of(base);
    look_at_file(self);
    const char *last = self->last != NULL ? self->last : "";
    return (struct auth_header){
        .name = self->name,
        .value = self->values_count > 0 ? self->values[0] : last,
    };
}

static const struct authenticator_ops bearer_token_ops = {
    .serves = bearer_token_serves,
    .needs_tls = true,
    .create = bearer_token_create,
    .destroy = bearer_token_destroy,
    .authenticate = bearer_token_authenticate,
    .credentials = bearer_token_credentials,
};

const struct component_factory bearertokenauth_extension_factory = {
    .type = "bearertokenauth",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct bearertokenauth_extension_config),
    .fields = bearertokenauth_extension_fields,
    .check = bearertokenauth_extension_check,
    .authenticator = &bearer_token_ops,
};
