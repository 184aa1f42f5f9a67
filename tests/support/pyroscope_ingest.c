/* SPDX-License-Identifier: Apache-2.0 */
/* Written from the server's rules, not from the exporter: every label is taken apart letter by
 * letter as the server does it. */
#include "tests/support/pyroscope_ingest.h"

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/net/server/http_server.h"
#include "tests/support/pyroscope_server.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "google/pprof/profile.pb-c.h"

enum { LABELS_MAX = 40, TEXT_MAX = 4096, PARTS_MAX = 4, BODY_BYTES_MAX = 16 << 20 };

struct text_pair {
    char key[TEXT_MAX];
    char value[TEXT_MAX];
};

struct part {
    char name[64];
    struct slice content;
};

struct ingest {
    struct pyroscope_server *server;
    struct text_pair labels[LABELS_MAX];
    size_t labels_count;
    struct part parts[PARTS_MAX];
    size_t parts_count;
};

static int hex_digit(char digit)
{
    return isdigit((unsigned char)digit) ? digit - '0' : toupper((unsigned char)digit) - 'A' + 10;
}

/* A query parameter, decoded; false: there is none. */
static bool find_parameter(struct slice query, const char *key, char to[TEXT_MAX])
{
    char text[4 * TEXT_MAX];
    size_t size = 0;
    snprintf(text, sizeof(text), "&%.*s", (int)query.size, (const char *)query.data);
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "&%s=", key);
    const char *at = strstr(text, wanted);
    if (at == NULL)
        return false;
    for (at += strlen(wanted); *at != '\0' && *at != '&' && size + 1 < TEXT_MAX; at++) {
        if (*at == '%') {
            to[size++] = (char)(hex_digit(at[1]) << 4 | hex_digit(at[2]));
            at += 2;
        } else {
            to[size++] = *at == '+' ? ' ' : *at;
        }
    }
    to[size] = '\0';
    return true;
}

static void trim(char *text)
{
    size_t size = strlen(text);
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        text[--size] = '\0';
    size_t blanks = strspn(text, " \t\n\v\f\r");
    memmove(text, text + blanks, size - blanks + 1);
}

static bool has_only(const char *text, const char *more)
{
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && strchr(more, *text) == NULL)
            return false;
    return true;
}

static void add_label(struct ingest *ingest, const char *key, const char *value)
{
    assert_true(ingest->labels_count < LABELS_MAX);
    struct text_pair *pair = &ingest->labels[ingest->labels_count++];
    snprintf(pair->key, TEXT_MAX, "%s", key);
    snprintf(pair->value, TEXT_MAX, "%s", value);
}

/* What follows the application's name, which *text passes; the last brace may be missing. */
static bool parse_labels(struct ingest *ingest, const char *text)
{
    char key[TEXT_MAX];
    char value[TEXT_MAX];
    while (*text != '\0' && *text != '}') {
        size_t size = strcspn(text, "=}");
        snprintf(key, sizeof(key), "%.*s", (int)size, text);
        trim(key);
        text += size;
        if (*text != '=')
            break;
        size = strcspn(++text, ",}");
        snprintf(value, sizeof(value), "%.*s", (int)size, text);
        trim(value);
        text += size;
        if (key[0] == '\0' || !has_only(key, "_."))
            return false;
        add_label(ingest, key, value);
        if (*text == ',')
            text++;
    }
    return text[0] == '\0' || text[1] == '\0';
}

static bool has_label(const struct ingest *ingest, const char *key)
{
    for (size_t i = 0; i < ingest->labels_count; i++)
        if (strcmp(ingest->labels[i].key, key) == 0)
            return true;
    return false;
}

static bool parse_name(struct ingest *ingest, struct slice query)
{
    char name[TEXT_MAX];
    char app[TEXT_MAX];
    if (!find_parameter(query, "name", name))
        return false;
    size_t size = strcspn(name, "{");
    snprintf(app, sizeof(app), "%.*s", (int)size, name);
    trim(app);
    if (app[0] == '\0' || !has_only(app, "_.-/"))
        return false;
    if (name[size] == '{' && !parse_labels(ingest, name + size + 1))
        return false;
    add_label(ingest, has_label(ingest, "service_name") ? "app_name" : "service_name", app);
    return true;
}

/* One part, from its headers; *body passes it and the boundary behind it. */
static bool take_part(struct ingest *ingest, struct slice *body, const char *boundary)
{
    static const char before_name[] = "form-data; name=\"";
    const char *begin = (const char *)body->data;
    const char *end = memmem(begin, body->size, "\r\n\r\n", 4);
    if (end == NULL || ingest->parts_count == PARTS_MAX)
        return false;
    const char *name = memmem(begin, (size_t)(end - begin), before_name, sizeof(before_name) - 1);
    const uint8_t *content = (const uint8_t *)end + 4;
    size_t left = body->size - (size_t)(content - body->data);
    const uint8_t *last = memmem(content, left, boundary, strlen(boundary));
    if (name == NULL || last == NULL)
        return false;
    name += sizeof(before_name) - 1;
    struct part *part = &ingest->parts[ingest->parts_count++];
    snprintf(part->name, sizeof(part->name), "%.*s", (int)strcspn(name, "\""), name);
    part->content = slice_of(content, (size_t)(last - content));
    size_t used = (size_t)(last - body->data) + strlen(boundary);
    *body = slice_of(body->data + used, body->size - used);
    return true;
}

static bool parse_form(struct ingest *ingest, struct slice type, struct slice body)
{
    static const char before_boundary[] = "multipart/form-data; boundary=";
    char boundary[128];
    size_t prefix = sizeof(before_boundary) - 1;
    if (type.size <= prefix || memcmp(type.data, before_boundary, prefix) != 0)
        return false;
    int size = snprintf(boundary, sizeof(boundary), "\r\n--%.*s", (int)(type.size - prefix),
                        (const char *)type.data + prefix);
    /* The first boundary has no line before it. */
    if (body.size < (size_t)size || memcmp(body.data, boundary + 2, (size_t)size - 2) != 0)
        return false;
    body = slice_of(body.data + size - 2, body.size - (size_t)size + 2);
    while (body.size >= 2 && memcmp(body.data, "\r\n", 2) == 0) {
        body = slice_of(body.data + 2, body.size - 2);
        if (!take_part(ingest, &body, boundary))
            return false;
    }
    return slice_equal_text(body, "--\r\n");
}

static struct slice find_part(const struct ingest *ingest, const char *name)
{
    for (size_t i = 0; i < ingest->parts_count; i++)
        if (strcmp(ingest->parts[i].name, name) == 0)
            return ingest->parts[i].content;
    return slice_of(NULL, 0);
}

/* The name that the server makes of the first type, or of the name that the form shows for it. */
static const char *metric_name(const struct ingest *ingest, const char *type, char room[TEXT_MAX])
{
    struct slice config = find_part(ingest, "sample_type_config");
    char wanted[TEXT_MAX];
    snprintf(wanted, sizeof(wanted), "{\"%.100s\":{\"display-name\":\"", type);
    if (strcmp(type, "wall") == 0)
        return "wall";
    snprintf(room, TEXT_MAX, "%s", type);
    if (config.size > strlen(wanted) && memcmp(config.data, wanted, strlen(wanted)) == 0) {
        const char *name = (const char *)config.data + strlen(wanted);
        snprintf(room, TEXT_MAX, "%.*s", (int)strcspn(name, "\""), name);
    }
    static const char *const names[][2] = {
        {"cpu", "process_cpu"}, {"alloc_", "memory"}, {"inuse_", "memory"},
        {"mutex_", "mutex"},    {"block_", "block"},  {"goroutines", "goroutines"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strstr(room, names[i][0]) != NULL)
            return names[i][1];
    return strcmp(room, "space") == 0 || strcmp(room, "objects") == 0 ? "memory" : room;
}

static void list_labels(const struct ingest *ingest, struct pyroscope_label list[LABELS_MAX])
{
    for (size_t i = 0; i < ingest->labels_count; i++)
        list[i] = (struct pyroscope_label){.name = ingest->labels[i].key,
                                           .value = ingest->labels[i].value};
}

static bool push_series(struct ingest *ingest, struct slice profile)
{
    struct pyroscope_label list[LABELS_MAX];
    list_labels(ingest, list);
    return pyroscope_server_take(ingest->server, list, ingest->labels_count, profile);
}

static bool take_profile(struct ingest *ingest)
{
    struct slice profile = find_part(ingest, "profile");
    struct buffer *inflated = NULL;
    char room[TEXT_MAX];
    if (profile.size > 2 && profile.data[0] == 0x1f && profile.data[1] == 0x8b) {
        struct gzip *gzip = gzip_create();
        bool is_fine = gzip_inflate(gzip, NULL, profile.data, profile.size, BODY_BYTES_MAX,
                                    &inflated) == GZIP_OK;
        gzip_destroy(gzip);
        if (!is_fine)
            return false;
        profile = buffer_slice(inflated);
    }
    Perftools__Profiles__Profile *parsed =
        perftools__profiles__profile__unpack(NULL, profile.size, profile.data);
    bool is_fine = parsed != NULL && parsed->n_sample_type == 1;
    struct slice config = find_part(ingest, "sample_type_config");
    snprintf(ingest->server->type_config, sizeof(ingest->server->type_config), "%.*s",
             (int)config.size, config.size > 0 ? (const char *)config.data : "");
    if (is_fine) {
        const char *type = parsed->string_table[parsed->sample_type[0]->type];
        add_label(ingest, "__name__", metric_name(ingest, type, room));
        is_fine = push_series(ingest, profile);
    }
    if (parsed != NULL)
        perftools__profiles__profile__free_unpacked(parsed, NULL);
    buffer_unref(inflated);
    return is_fine;
}

static bool take_jfr(struct ingest *ingest, struct slice query)
{
    static const char *const keys[] = {"from", "until", "units", "aggregationType", "sampleRate"};
    struct slice file = find_part(ingest, "jfr");
    struct slice labels = find_part(ingest, "labels");
    char text[4 * TEXT_MAX];
    char value[TEXT_MAX];
    if (file.size == 0)
        return false;
    int size = snprintf(text, sizeof(text), "jfr=%.*s", (int)file.size, (const char *)file.data);
    if (labels.size > 0)
        size += snprintf(text + size, sizeof(text) - (size_t)size, " labels=%.*s", (int)labels.size,
                         (const char *)labels.data);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (find_parameter(query, keys[i], value))
            size += snprintf(text + size, sizeof(text) - (size_t)size, " %s=%s", keys[i], value);
    struct pyroscope_label list[LABELS_MAX];
    list_labels(ingest, list);
    pyroscope_server_store_text(ingest->server, list, ingest->labels_count, text);
    return true;
}

static unsigned judge(struct ingest *ingest, const struct http_request *request)
{
    struct slice query = http_request_query(request);
    char value[TEXT_MAX];
    char format[TEXT_MAX] = "";
    if (!parse_name(ingest, query)) {
        snprintf(ingest->server->last_error, sizeof(ingest->server->last_error), "bad name");
        return 400;
    }
    add_label(ingest, "__delta__", "false");
    add_label(ingest, "pyroscope_spy", find_parameter(query, "spyName", value) ? value : "unknown");
    find_parameter(query, "format", format);
    snprintf(ingest->server->last_error, sizeof(ingest->server->last_error), "bad body");
    bool is_fine = http_request_header(request, "content-encoding").data == NULL &&
                   parse_form(ingest, http_request_header(request, "content-type"),
                              buffer_slice(http_request_body(request))) &&
                   (strcmp(format, "jfr") == 0 ? take_jfr(ingest, query)
                                               : format[0] == '\0' && take_profile(ingest));
    if (is_fine)
        ingest->server->last_error[0] = '\0';
    return is_fine ? 200 : 422;
}

unsigned pyroscope_ingest_take(struct pyroscope_server *server, const struct http_request *request)
{
    struct ingest *ingest = mem_zalloc(sizeof(*ingest));
    ingest->server = server;
    unsigned status = judge(ingest, request);
    mem_free(ingest);
    return status;
}
