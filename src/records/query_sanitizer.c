/* SPDX-License-Identifier: Apache-2.0 */
/* Which language a text is in: from the name of the database's system. */
#include "src/records/query_sanitizer.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/records/command_obfuscator.h"
#include "src/records/json_obfuscator.h"
#include "src/records/key_set.h"
#include "src/records/sql_obfuscator.h"

struct query_sanitizer {
    struct key_set attributes[QUERY_LANGUAGES];
    bool is_enabled[QUERY_LANGUAGES];
    bool has_attributes;
    bool has_span_names;
};

enum { SYSTEMS_MAX = 5 };

static const char *const systems[QUERY_LANGUAGES][SYSTEMS_MAX] = {
    [QUERY_SQL] = {"other_sql", "mysql", "postgresql", "mariadb", "sqlite"},
    [QUERY_REDIS] = {"redis"},
    [QUERY_VALKEY] = {"valkey"},
    [QUERY_MEMCACHED] = {"memcached"},
    [QUERY_MONGO] = {"mongodb"},
    [QUERY_OPENSEARCH] = {"opensearch"},
    [QUERY_ELASTICSEARCH] = {"elasticsearch"},
};

struct query_sanitizer *query_sanitizer_create(const struct query_settings *settings)
{
    struct query_sanitizer *sanitizer = mem_zalloc(sizeof(*sanitizer));
    bool is_any = false;
    for (size_t i = 0; i < QUERY_LANGUAGES; i++) {
        /* As in Go: attributes of the last two have no effect. */
        struct config_texts none = {.count = 0};
        bool has_keys = i != QUERY_OPENSEARCH && i != QUERY_ELASTICSEARCH;
        sanitizer->is_enabled[i] = settings->is_enabled[i];
        sanitizer->attributes[i] =
            key_set_create(has_keys ? &settings->attributes[i] : &none, NULL, 0);
        sanitizer->has_attributes |= settings->is_enabled[i] && sanitizer->attributes[i].count > 0;
        is_any |= settings->is_enabled[i];
    }
    sanitizer->has_span_names = settings->has_span_names;
    if (is_any)
        return sanitizer;
    query_sanitizer_destroy(sanitizer);
    return NULL;
}

void query_sanitizer_destroy(struct query_sanitizer *sanitizer)
{
    if (sanitizer == NULL)
        return;
    for (size_t i = 0; i < QUERY_LANGUAGES; i++)
        key_set_destroy(&sanitizer->attributes[i]);
    mem_free(sanitizer);
}

bool query_sanitizer_has_attributes(const struct query_sanitizer *sanitizer)
{
    return sanitizer != NULL && sanitizer->has_attributes;
}

bool query_sanitizer_has_span_names(const struct query_sanitizer *sanitizer)
{
    return sanitizer != NULL && sanitizer->has_span_names;
}

static bool supports(size_t language, struct slice system)
{
    for (size_t i = 0; i < SYSTEMS_MAX && systems[language][i] != NULL; i++)
        if (slice_equal_nocase(system, systems[language][i]))
            return true;
    return false;
}

static struct slice obfuscate(size_t language, struct arena *arena, struct slice text,
                              struct slice system)
{
    assert(language < QUERY_LANGUAGES);
    switch ((enum query_language)language) {
    case QUERY_SQL:
        return sql_obfuscate(arena, text, slice_equal_nocase(system, "mysql"));
    case QUERY_REDIS:
    case QUERY_VALKEY:
        return redis_obfuscate(arena, text);
    case QUERY_MEMCACHED:
        return memcached_obfuscate(text);
    case QUERY_MONGO:
    case QUERY_OPENSEARCH:
    case QUERY_ELASTICSEARCH:
        return json_obfuscate(arena, text);
    case QUERY_LANGUAGES:
    default:
        return text;
    }
}

struct slice query_sanitizer_attribute(const struct query_sanitizer *sanitizer, struct arena *arena,
                                       struct slice text, struct slice key, struct slice system,
                                       bool is_of_log)
{
    if (system.size == 0 && !is_of_log)
        return text;
    for (size_t i = 0; i < QUERY_LANGUAGES; i++) {
        if (!sanitizer->is_enabled[i] || !key_set_has(&sanitizer->attributes[i], key))
            continue;
        if (system.size == 0)
            text = obfuscate(i, arena, text, system);
        else if (supports(i, system))
            return obfuscate(i, arena, text, system);
    }
    return text;
}

struct slice query_sanitizer_body(const struct query_sanitizer *sanitizer, struct arena *arena,
                                  struct slice text)
{
    for (size_t i = 0; i < QUERY_LANGUAGES; i++)
        if (sanitizer->is_enabled[i])
            text = obfuscate(i, arena, text, slice_of(NULL, 0));
    return text;
}

struct slice query_sanitizer_span_name(const struct query_sanitizer *sanitizer, struct arena *arena,
                                       struct slice text, struct slice system)
{
    for (size_t i = 0; i < QUERY_LANGUAGES; i++)
        if (sanitizer->is_enabled[i] && supports(i, system))
            return obfuscate(i, arena, text, system);
    return text;
}
