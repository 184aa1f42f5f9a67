/* SPDX-License-Identifier: Apache-2.0 */
/* Reads token responses. As in Go's encoding/json, names of members match whatever their case, the
 * last of equal ones counts, null is the same as absent, and unknown ones are skipped. */
#include "extensions/oauth2_response.h"

#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/net/syntax/http1_chars.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_walk.h"
#include "src/otlp/json/value_string.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TEXTS = 5 };

/* The members that are strings, in the order of struct oauth2_response. */
static const char *const text_names[TEXTS] = {"access_token", "token_type", "error",
                                              "error_description", "error_uri"};

static char **text_at(struct oauth2_response *response, size_t index)
{
    char **const texts[TEXTS] = {&response->access_token, &response->token_type, &response->error,
                                 &response->error_description, &response->error_uri};
    return texts[index];
}

enum oauth2_format oauth2_format_of(struct slice content_type)
{
    bool is_form = media_type_is(content_type, "application/x-www-form-urlencoded") ||
                   media_type_is(content_type, "text/plain");
    return is_form ? OAUTH2_FORM : OAUTH2_JSON;
}

/* Takes text, to be freed with secret_free. */
static void set_text(char **target, char *text)
{
    secret_free(*target);
    *target = text;
}

static char *unescaped(const struct json_string *string)
{
    char *text = mem_zalloc(string->raw.size + 1);
    if (string->raw.size > 0)
        json_unescape(string, (uint8_t *)text);
    return text;
}

/* A number, or a string with one. False: it is something else. */
static bool read_expiry(struct json_walk *walk, int64_t *ret_seconds)
{
    struct json_number number;
    struct json_string string;
    struct slice text;
    if (json_walk_peek(walk) == '"') {
        if (!json_walk_string(walk, &string) || string.has_escapes)
            return false;
        struct json_scan scan = json_scan_of(string.raw);
        if (string.raw.size == 0 || !json_scan_number(&scan, &number) || scan.at != scan.end)
            return false;
        text = number.text;
    } else {
        if (!json_walk_number(walk, &number))
            return walk->failure == NULL; /* null */
        text = number.text;
    }
    return string_to_int(text, ret_seconds);
}

static bool read_json(struct slice body, struct oauth2_response *response)
{
    struct json_walk walk = json_walk_of(body);
    struct json_string key;
    if (!json_walk_object(&walk))
        return walk.failure == NULL && json_walk_end(&walk); /* null */
    while (json_walk_key(&walk, &key)) {
        char *name = unescaped(&key);
        size_t at = 0;
        while (at < TEXTS && strcasecmp(name, text_names[at]) != 0)
            at++;
        struct json_string value;
        bool is_read = true;
        if (strcasecmp(name, "expires_in") == 0)
            is_read = read_expiry(&walk, &response->expires_in_s);
        else if (at == TEXTS)
            json_walk_skip(&walk);
        else if (json_walk_string(&walk, &value))
            set_text(text_at(response, at), unescaped(&value));
        mem_free(name);
        if (!is_read)
            return false;
    }
    return walk.failure == NULL && json_walk_end(&walk);
}

/* Decodes "%41+b" into text, which has room for it. False: it is malformed. */
static bool form_decode(struct slice raw, char *text)
{
    for (size_t i = 0; i < raw.size; i++) {
        uint8_t byte = raw.data[i];
        if (byte == '%') {
            int high = i + 2 < raw.size ? http1_hex_digit(raw.data[i + 1]) : -1;
            int low = high >= 0 ? http1_hex_digit(raw.data[i + 2]) : -1;
            if (low < 0)
                return false;
            byte = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (byte == '+') {
            byte = ' ';
        }
        *text++ = (char)byte;
    }
    *text = '\0';
    return true;
}

static bool read_pair(struct slice name, struct slice value, bool *has_expiry,
                      struct oauth2_response *response)
{
    char *key = mem_zalloc(name.size + 1);
    char *text = mem_zalloc(value.size + 1);
    bool is_read = form_decode(name, key) && form_decode(value, text);
    if (is_read && strcmp(key, "expires_in") == 0 && !*has_expiry) {
        /* What is not a number counts as absent. */
        *has_expiry = true;
        if (!string_to_int(slice_of_text(text), &response->expires_in_s))
            response->expires_in_s = 0;
    }
    for (size_t i = 0; is_read && i < TEXTS; i++)
        if (strcmp(key, text_names[i]) == 0 && *text_at(response, i) == NULL) {
            *text_at(response, i) = text; /* the first of equal ones counts */
            text = NULL;
        }
    mem_free(key);
    secret_free(text);
    return is_read;
}

static bool read_form(struct slice body, struct oauth2_response *response)
{
    bool has_expiry = false;
    size_t begin = 0;
    while (begin < body.size) {
        size_t end = begin;
        size_t equals = SIZE_MAX;
        for (; end < body.size && body.data[end] != '&'; end++) {
            if (body.data[end] == ';')
                return false;
            if (body.data[end] == '=' && equals == SIZE_MAX)
                equals = end;
        }
        size_t name_end = equals == SIZE_MAX ? end : equals;
        size_t value = equals == SIZE_MAX ? end : equals + 1;
        if (end > begin &&
            !read_pair(slice_of(body.data + begin, name_end - begin),
                       slice_of(body.data + value, end - value), &has_expiry, response))
            return false;
        begin = end + 1;
    }
    return true;
}

bool oauth2_response_read(struct slice body, enum oauth2_format format,
                          struct oauth2_response *ret_response)
{
    *ret_response = (struct oauth2_response){.access_token = NULL};
    bool is_read =
        format == OAUTH2_FORM ? read_form(body, ret_response) : read_json(body, ret_response);
    for (size_t i = 0; i < TEXTS; i++)
        if (*text_at(ret_response, i) == NULL)
            *text_at(ret_response, i) = mem_copy_text("");
    return is_read;
}

void oauth2_response_fini(struct oauth2_response *response)
{
    for (size_t i = 0; i < TEXTS; i++)
        set_text(text_at(response, i), NULL);
}

char *oauth2_response_authorization(const struct oauth2_response *response)
{
    static const char *const known[] = {"Bearer", "MAC", "Basic"};
    const char *type = response->token_type[0] != '\0' ? response->token_type : known[0];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcasecmp(type, known[i]) == 0)
            type = known[i];
    size_t size = strlen(type) + strlen(response->access_token) + 2;
    char *value = mem_alloc(size);
    snprintf(value, size, "%s %s", type, response->access_token);
    if (http1_is_all(slice_of_text(value), HTTP1_VALUE))
        return value;
    secret_free(value);
    return NULL;
}
