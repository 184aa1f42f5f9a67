/* SPDX-License-Identifier: Apache-2.0 */
/* Locations by scheme. Files are read through src/base/fileops.h alone; nothing here opens a
 * socket. Main thread. */
#include "src/config/location.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/config/config_limits.h"
#include "src/config/loader.h"

struct scheme {
    const char *name;
    bool (*retrieve)(struct loader *loader, const char *rest, struct retrieved *retrieved,
                     struct error *error);
};

static char *join(struct loader *loader, const char *scheme, struct slice rest)
{
    size_t scheme_size = strlen(scheme);
    char *uri = loader_zalloc(loader, scheme_size + rest.size + 1);
    memcpy(uri, scheme, scheme_size);
    if (rest.size > 0)
        memcpy(uri + scheme_size, rest.data, rest.size);
    return uri;
}

char *location_of_argument(struct loader *loader, const char *argument)
{
    /* One letter before the colon is a drive. */
    bool is_path = strchr(argument, ':') == NULL ||
                   (isalpha((unsigned char)argument[0]) && argument[1] == ':');
    return join(loader, is_path ? "file:" : "", slice_of_text(argument));
}

char *location_of_reference(struct loader *loader, struct slice reference)
{
    bool has_scheme = reference.size > 0 && memchr(reference.data, ':', reference.size) != NULL;
    return join(loader, has_scheme ? "" : "env:", reference);
}

static bool retrieve_env(struct loader *loader, const char *rest, struct retrieved *retrieved,
                         struct error *error)
{
    char *name = loader_copy_text(loader, rest);
    char *fallback = strstr(name, ":-");
    if (fallback != NULL) {
        *fallback = '\0';
        fallback += strlen(":-");
    }
    size_t name_size = 0;
    while (isalnum((unsigned char)name[name_size]) || name[name_size] == '_')
        name_size++;
    if (name_size == 0 || name[name_size] != '\0' || isdigit((unsigned char)name[0]))
        return error_set(error,
                         "environment variable \"%s\" has invalid name: must match regex "
                         "^[a-zA-Z_][a-zA-Z0-9_]*$",
                         name);
    const char *value = getenv(name);
    if (value == NULL && fallback == NULL)
        retrieved->unset = name;
    if (value == NULL)
        value = fallback != NULL ? fallback : "";
    retrieved->bytes = slice_of_text(value);
    return true;
}

static bool retrieve_file(struct loader *loader, const char *rest, struct retrieved *retrieved,
                          struct error *error)
{
    size_t size = 0;
    (void)loader;
    int failed = file_read_whole(rest, CONFIG_FILE_BYTES_MAX, &retrieved->owned, &size);
    if (failed == -EFBIG)
        return error_set(error, "unable to read the file %s: it is larger than %d bytes", rest,
                         CONFIG_FILE_BYTES_MAX);
    if (failed == -EINVAL)
        return error_set(error, "unable to read the file %s: not a regular file", rest);
    if (failed != 0)
        return error_set(error, "unable to read the file %s: %s", rest, strerror(-failed));
    retrieved->bytes = slice_of(retrieved->owned, size);
    return true;
}

static bool retrieve_yaml(struct loader *loader, const char *rest, struct retrieved *retrieved,
                          struct error *error)
{
    (void)loader;
    retrieved->bytes = slice_of_text(rest);
    if (retrieved->bytes.size <= CONFIG_FILE_BYTES_MAX)
        return true;
    return error_set(error, "the configuration is larger than %d bytes", CONFIG_FILE_BYTES_MAX);
}

static bool refuse_http(struct loader *loader, const char *rest, struct retrieved *retrieved,
                        struct error *error)
{
    (void)loader;
    (void)rest;
    (void)retrieved;
    return error_set(error, "configuration from http and https is not supported; fetch it first "
                            "and name the file");
}

static const struct scheme schemes[] = {
    {"env", retrieve_env}, {"file", retrieve_file}, {"yaml", retrieve_yaml},
    {"http", refuse_http}, {"https", refuse_http},
};

/* A letter, then at least one of letters, digits, "+", "." and "-". 0: no scheme. */
static size_t scheme_size(const char *uri)
{
    size_t size = 0;
    if (!isalpha((unsigned char)uri[0]))
        return 0;
    while (isalnum((unsigned char)uri[size]) || (uri[size] != '\0' && strchr("+.-", uri[size])))
        size++;
    return uri[size] == ':' && size >= 2 ? size : 0;
}

bool location_retrieve(struct loader *loader, const char *uri, struct retrieved *ret_retrieved,
                       struct error *error)
{
    struct retrieved retrieved = {.owned = NULL};
    size_t size = scheme_size(uri);
    const char *hint = strstr(uri, ":-") != NULL ? " (a default needs ${env:NAME:-default})" : "";
    if (size == 0)
        return error_set(error,
                         "invalid uri: \"%s\"; expected a file or one of env:, file:, yaml:%s", uri,
                         hint);
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strlen(schemes[i].name) != size || memcmp(schemes[i].name, uri, size) != 0)
            continue;
        if (!schemes[i].retrieve(loader, uri + size + 1, &retrieved, error))
            return false;
        *ret_retrieved = retrieved;
        return true;
    }
    return error_set(error,
                     "scheme \"%.*s\" is not supported for uri \"%s\"; expected env:, file: or "
                     "yaml:%s",
                     (int)size, uri, uri, hint);
}

void retrieved_release(struct retrieved *retrieved)
{
    mem_free(retrieved->owned);
    *retrieved = (struct retrieved){.owned = NULL};
}
