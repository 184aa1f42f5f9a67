/* SPDX-License-Identifier: Apache-2.0 */
/* headers_setter: changes the headers of exporters' requests, to values from the configuration, a
 * file, or the metadata of the client that sent the data. It may ask another authenticator, too
 * (additional_auth). Files are read again when they change. Each component that uses the extension
 * has an instance of its own, on its lane. */
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/base/watched_file.h"
#include "src/config/field.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "src/net/client/request_edits.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct header_config {
    const char *action;
    const char *key;
    /* Sources; NULL: not this one. */
    const char *value;
    const char *value_file;
    const char *from_context;
    const char *from_attribute;
    const char *default_value;
};

struct headers_setter_config {
    struct config_sections headers; /* struct header_config */
    const char *additional_auth;
};

static const char *const action_names[] = {[EDIT_UPSERT] = "upsert",
                                           [EDIT_INSERT] = "insert",
                                           [EDIT_UPDATE] = "update",
                                           [EDIT_DELETE] = "delete"};

/* What Go takes for other words, too. */
static enum request_edit_action action_of(const char *word)
{
    for (int i = EDIT_UPSERT; i <= EDIT_DELETE; i++)
        if (strcmp(word, action_names[i]) == 0)
            return (enum request_edit_action)i;
    return EDIT_UPSERT;
}

static const char *action_warning(const char *word)
{
    if (word[0] == '\0' || strcmp(word, action_names[action_of(word)]) == 0)
        return NULL;
    return "found an action that is none of insert, update, upsert and delete; upsert is used";
}

#define OWNER struct header_config
static const struct config_field header_fields[] = {
    CONFIG_TEXT_WARNED(OWNER, action, "action", NULL, action_warning,
                       "insert, update, upsert or delete; upsert when absent."),
    CONFIG_TEXT(OWNER, key, "key", NULL, "Name of the header."),
    CONFIG_NULLABLE(OWNER, value, CONFIG_TYPE_TEXT, "value", "The value."),
    CONFIG_NULLABLE(OWNER, value_file, CONFIG_TYPE_TEXT, "value_file",
                    "File with the value, without the blanks around it. Read again within a "
                    "second after it changes."),
    CONFIG_NULLABLE(OWNER, from_context, CONFIG_TYPE_TEXT, "from_context",
                    "Name of a header of the client's request; its receiver needs "
                    "include_metadata."),
    CONFIG_NULLABLE(OWNER, from_attribute, CONFIG_TYPE_TEXT, "from_attribute",
                    "Attribute of the client's login at the receiver, such as username."),
    CONFIG_NULLABLE(OWNER, default_value, CONFIG_TYPE_SECRET, "default_value",
                    "The value when from_context or from_attribute finds none."),
    CONFIG_END,
};
#undef OWNER

#define OWNER struct headers_setter_config
static const struct config_field headers_setter_fields[] = {
    CONFIG_SECTIONS(OWNER, headers, struct header_config, "headers", header_fields, NULL,
                    "What to change, in this order."),
    CONFIG_EXTENSION_NOT_EMPTY(OWNER, additional_auth, "additional_auth", "authenticator",
                               authenticator_accepts_client,
                               "Id of another authenticator whose credentials are sent, too."),
    CONFIG_END,
};
#undef OWNER

struct header_source {
    const struct header_config *config;
    enum request_edit_action action;
    struct watched_file file; /* path NULL: none */
    char *file_value;         /* trimmed */
};

struct headers_setter {
    struct authenticator base;
    struct authenticator *additional; /* NULL: none */
    size_t count;
    struct header_source *sources;
};

static struct headers_setter *headers_setter_of(struct authenticator *base)
{
    return (struct headers_setter *)base;
}

static bool is_header_value(const char *text)
{
    return text == NULL || http1_is_all(slice_of_text(text), HTTP1_VALUE);
}

static bool header_check(const struct header_config *header, struct error *error)
{
    int sources = (header->value != NULL) + (header->value_file != NULL) +
                  (header->from_context != NULL) + (header->from_attribute != NULL);
    if (header->key[0] == '\0')
        return error_set(error, "missing header name") || error_at(error, "key");
    if (!http1_is_token(slice_of_text(header->key)))
        return error_set(error, "\"%s\" is not a header name; expected letters, digits and dashes",
                         header->key) ||
               error_at(error, "key");
    if (!is_header_value(header->value))
        return error_set(error,
                         "found a line end or another control character in the value of "
                         "\"%s\"; a file read with ${file:…} keeps its final newline: use "
                         "value_file, which ignores it",
                         header->key) ||
               error_at(error, "value");
    if (!is_header_value(header->default_value))
        return error_set(error,
                         "found a line end or another control character in the default of "
                         "\"%s\"",
                         header->key) ||
               error_at(error, "default_value");
    if (action_of(header->action) == EDIT_DELETE)
        return true;
    if (sources == 0)
        return error_set(error, "missing header source, must be 'from_context', 'from_attribute', "
                                "'value', or 'value_file'");
    if (sources > 1)
        return error_set(error, "invalid header source, must be only one of 'from_context', "
                                "'from_attribute', 'value', or 'value_file'");
    if (header->value_file != NULL && header->value_file[0] == '\0')
        return error_set(error, "found an empty string, expected the path of a file") ||
               error_at(error, "value_file");
    return true;
}

static bool headers_setter_check(const void *section, struct error *error)
{
    const struct headers_setter_config *config = section;
    const struct header_config *headers = config->headers.items;
    if (config->headers.count == 0)
        return error_set(error, "missing headers configuration") || error_at(error, "headers");
    for (size_t i = 0; i < config->headers.count; i++)
        if (!header_check(&headers[i], error))
            return error_at_index(error, i) || error_at(error, "headers");
    return true;
}

/* ---- values ---- */

/* Takes the content of the file, without the blanks around it. False: it is empty, or no value. */
static bool take_file(struct header_source *source)
{
    const char *first = source->file.text;
    while (isspace((unsigned char)*first))
        first++;
    size_t size = strlen(first);
    while (size > 0 && isspace((unsigned char)first[size - 1]))
        size--;
    if (size == 0 || !http1_is_all(slice_of(first, size), HTTP1_VALUE))
        return false;
    secret_free(source->file_value);
    source->file_value = mem_alloc(size + 1);
    memcpy(source->file_value, first, size);
    source->file_value[size] = '\0';
    return true;
}

static const char *value_of_file(struct headers_setter *self, struct header_source *source)
{
    struct error error;
    enum watched_change change = watched_file_look(&source->file, &error);
    if (change == WATCHED_CHANGED && !take_file(source)) {
        error_set(&error, "%s is empty, or has control characters in it", source->file.path);
        change = WATCHED_FAILED;
    }
    if (change == WATCHED_FAILED)
        log_warn(self->base.logger, "The file of a header cannot be read; its previous value stays",
                 log_text("header", source->config->key), log_text("error", error.text));
    return source->file_value;
}

static const char *or_default(const struct header_config *header)
{
    return header->default_value != NULL ? header->default_value : "";
}

/* NULL: the error says why there is no value. */
static const char *value_of(struct headers_setter *self, struct header_source *source,
                            const struct client_info *client, struct error *error)
{
    const struct header_config *header = source->config;
    if (source->action == EDIT_DELETE)
        return "";
    if (header->value != NULL)
        return header->value;
    if (header->value_file != NULL)
        return value_of_file(self, source);
    if (header->from_attribute != NULL) {
        for (size_t i = 0; client != NULL && i < client->auth_count; i++)
            if (strcmp(client->auth[i].key, header->from_attribute) == 0)
                return client->auth[i].value;
        return or_default(header);
    }
    const char *found = NULL;
    unsigned count = 0;
    for (size_t i = 0; client != NULL && i < client->metadata_count; i++) {
        if (strcasecmp(client->metadata[i].key, header->from_context) != 0)
            continue;
        found = client->metadata[i].value;
        count++;
    }
    if (count > 1) {
        error_set(error,
                  "failed to determine the source: %u source keys found in the context, can't "
                  "determine which one to use",
                  count);
        return NULL;
    }
    return found != NULL ? found : or_default(header);
}

static void headers_setter_ask(struct authenticator *base, struct credentials_request *request)
{
    struct headers_setter *self = headers_setter_of(base);
    struct error error;
    request_edits_begin(&request->edits, request->is_grpc);
    for (size_t i = 0; i < self->count; i++) {
        struct header_source *source = &self->sources[i];
        const char *value = value_of(self, source, request->client, &error);
        if (value == NULL) {
            request->done(request, error.text);
            return;
        }
        request_edits_add(&request->edits, source->action, source->config->key, value);
    }
    if (self->additional != NULL)
        authenticator_ask(self->additional, request);
    else
        request->done(request, NULL);
}

static void headers_setter_forget(struct authenticator *base, struct credentials_request *request)
{
    /* Only the other one lets a request wait. */
    authenticator_forget(headers_setter_of(base)->additional, request);
}

static void headers_setter_close(struct authenticator *base, void (*closed)(void *arg), void *arg)
{
    struct headers_setter *self = headers_setter_of(base);
    if (self->additional != NULL)
        authenticator_close(self->additional, closed, arg);
    else
        closed(arg);
}

/* ---- life cycle ---- */

static void headers_setter_destroy(struct authenticator *base)
{
    struct headers_setter *self = headers_setter_of(base);
    authenticator_destroy(self->additional);
    for (size_t i = 0; i < self->count; i++) {
        watched_file_close(&self->sources[i].file);
        secret_free(self->sources[i].file_value);
    }
    mem_free(self->sources);
    mem_free(self);
}

static bool open_file(struct header_source *source, struct error *error)
{
    const struct header_config *header = source->config;
    if (source->action == EDIT_DELETE || header->value_file == NULL)
        return true;
    if (!watched_file_open(&source->file, header->value_file, SECRET_FILE_BYTES_MAX, error))
        return error_prefix(error, "failed to start value resolver") ||
               error_at(error, "value_file");
    return take_file(source) ||
           error_set(error, "%s is empty, or has control characters in it; expected a value",
                     header->value_file) ||
           error_at(error, "value_file");
}

static struct authenticator *headers_setter_create(const void *section,
                                                   const struct component *user,
                                                   struct error *error)
{
    const struct headers_setter_config *config = section;
    const struct header_config *headers = config->headers.items;
    struct headers_setter *self = mem_zalloc(sizeof(*self));
    self->base = (struct authenticator){.config = config, .logger = &user->logger};
    self->sources = mem_zalloc(config->headers.count * sizeof(*self->sources));
    bool is_made = true;
    for (size_t i = 0; i < config->headers.count && is_made; i++) {
        struct header_source *source = &self->sources[self->count++];
        *source =
            (struct header_source){.config = &headers[i], .action = action_of(headers[i].action)};
        is_made =
            open_file(source, error) || error_at_index(error, i) || error_at(error, "headers");
        if (headers[i].action[0] == '\0' && user->lane != NULL && lane_index(user->lane) == 0)
            log_warn(self->base.logger,
                     "The action was not provided, using 'upsert'. In future versions, we'll "
                     "require this to be explicitly set",
                     log_text("key", headers[i].key));
    }
    if (is_made && config->additional_auth[0] != '\0') {
        self->additional = authenticator_create(user, config->additional_auth, AUTH_CLIENT, error);
        is_made = self->additional != NULL;
    }
    if (is_made)
        return &self->base;
    headers_setter_destroy(&self->base);
    return NULL;
}

static bool headers_setter_serves(const void *config, enum auth_side side)
{
    (void)config;
    return side == AUTH_CLIENT;
}

static const char *headers_setter_chains_to(const void *section)
{
    const struct headers_setter_config *config = section;
    return config->additional_auth;
}

static const struct authenticator_ops headers_setter_ops = {
    .serves = headers_setter_serves,
    .chains_to = headers_setter_chains_to,
    .create = headers_setter_create,
    .destroy = headers_setter_destroy,
    .ask = headers_setter_ask,
    .forget = headers_setter_forget,
    .close = headers_setter_close,
};

const struct component_factory headers_setter_extension_factory = {
    .type = "headers_setter",
    .kind = EXTENSION,
    .stability = "alpha",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct headers_setter_config),
    .fields = headers_setter_fields,
    .check = headers_setter_check,
    .authenticator = &headers_setter_ops,
};
