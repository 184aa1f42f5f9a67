/* SPDX-License-Identifier: Apache-2.0 */
/* redaction: removes attributes that are not allowed, and masks what must not leave. Without
 * allowed keys it removes every attribute. Runs on its pipeline's lane and on the lane's helper. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "processors/shared/record_stage.h"
#include "src/base/error.h"
#include "src/config/field.h"
#include "src/records/query_sanitizer.h"
#include "src/records/redact_text.h"
#include "src/records/redaction.h"
#include "src/records/url_sanitizer.h"

#define REDACTION_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS)

struct url_sanitizer_config {
    bool enabled;
    bool sanitize_span_name;
    struct config_texts attributes;
};

struct language_config {
    bool enabled;
    struct config_texts attributes;
};

struct db_sanitizer_config {
    bool sanitize_span_name;
    struct language_config languages[QUERY_LANGUAGES];
};

struct redaction_config {
    bool allow_all_keys;
    bool redact_all_types;
    struct config_texts allowed_keys;
    struct config_texts blocked_key_patterns;
    struct config_texts ignored_keys;
    struct config_texts ignored_key_patterns;
    struct config_texts blocked_values;
    struct config_texts allowed_values;
    const char *hash_function;
    const char *hmac_key;
    const char *summary;
    struct url_sanitizer_config url_sanitizer;
    struct db_sanitizer_config db_sanitizer;
};

static const struct config_field url_sanitizer_fields[] = {
    CONFIG_BOOL(struct url_sanitizer_config, enabled, "enabled", "false",
                "Hide ids in paths of URLs: in attributes, bodies of log records and names of "
                "spans. Segments become \"*\" if they have other bytes than letters, dashes, dots, "
                "underscores and blanks, but for one at the second place (v1), or letters that are "
                "no word. The query, the fragment, and all from the 10th slash on are removed."),
    CONFIG_TEXTS(struct url_sanitizer_config, attributes, "attributes", NULL,
                 "Keys of the attributes that have URLs."),
    CONFIG_BOOL(struct url_sanitizer_config, sanitize_span_name, "sanitize_span_name", "true",
                "Hide ids in the names of spans of the kinds client and server that have a slash, "
                "or attributes of HTTP beside them, unless nothing but \"*\" would be left."),
    CONFIG_END,
};

static const struct config_field language_fields[] = {
    CONFIG_BOOL(struct language_config, enabled, "enabled", "false",
                "Hide the values in queries of this language: in attributes, bodies of log records "
                "and names of spans."),
    CONFIG_TEXTS(struct language_config, attributes, "attributes", NULL,
                 "Keys of the attributes that have such queries, if db.system.name or db.system "
                 "beside them says so; in logs without those, too."),
    CONFIG_END,
};

/* In Go they have no effect. */
static const struct config_field keyless_language_fields[] = {
    CONFIG_BOOL(struct language_config, enabled, "enabled", "false",
                "Hide the values in queries of this language: in bodies of log records and names "
                "of spans."),
    CONFIG_TEXTS(struct language_config, attributes, "attributes", NULL, "Without effect."),
    CONFIG_END,
};

#define LANGUAGE(place, name, fields, help)                                                        \
    CONFIG_SECTION(struct db_sanitizer_config, languages[place], struct language_config, name,     \
                   fields, NULL, help)
static const struct config_field db_sanitizer_fields[] = {
    LANGUAGE(QUERY_SQL, "sql", language_fields,
             "Systems other_sql, mysql, postgresql, mariadb, sqlite: numbers, strings, booleans, "
             "NULL and digits of names become \"?\"."),
    LANGUAGE(QUERY_REDIS, "redis", language_fields,
             "System redis: arguments that are values become \"?\", keys stay."),
    LANGUAGE(QUERY_VALKEY, "valkey", language_fields, "System valkey: as redis."),
    LANGUAGE(QUERY_MEMCACHED, "memcached", language_fields,
             "System memcached: the command's line stays."),
    LANGUAGE(QUERY_MONGO, "mongo", language_fields,
             "System mongodb: values in texts that are JSON become \"?\", keys stay."),
    LANGUAGE(QUERY_OPENSEARCH, "opensearch", keyless_language_fields,
             "System opensearch: as mongo."),
    LANGUAGE(QUERY_ELASTICSEARCH, "es", keyless_language_fields, "System elasticsearch: as mongo."),
    CONFIG_BOOL(struct db_sanitizer_config, sanitize_span_name, "sanitize_span_name", "true",
                "Hide values in the names of spans of the kinds client, server and internal whose "
                "db.system.name or db.system is of an enabled language."),
    CONFIG_END,
};

#define OWNER struct redaction_config
static const struct config_field redaction_fields[] = {
    CONFIG_BOOL(OWNER, allow_all_keys, "allow_all_keys", "false",
                "Keep attributes whatever their key is; allowed_keys has no effect."),
    CONFIG_TEXTS(OWNER, allowed_keys, "allowed_keys", NULL,
                 "Keys of the attributes that are kept; all others are removed."),
    CONFIG_TEXTS(OWNER, blocked_key_patterns, "blocked_key_patterns", NULL,
                 "Regular expressions (RE2): values of matching keys are masked as a whole."),
    CONFIG_TEXTS(OWNER, ignored_keys, "ignored_keys", NULL,
                 "Keys of the attributes that stay as they are."),
    CONFIG_TEXTS(OWNER, ignored_key_patterns, "ignored_key_patterns", NULL,
                 "Regular expressions (RE2): attributes with matching keys stay as they are."),
    CONFIG_TEXTS(OWNER, blocked_values, "blocked_values", NULL,
                 "Regular expressions (RE2), applied in order: what matches in a value is masked."),
    CONFIG_TEXTS(OWNER, allowed_values, "allowed_values", NULL,
                 "Regular expressions (RE2): values that match are not masked."),
    CONFIG_BOOL(OWNER, redact_all_types, "redact_all_types", "false",
                "Check values of attributes that are no strings, too; masked ones become strings."),
    CONFIG_TEXT(
        OWNER, hash_function, "hash_function", "",
        "What masks: nothing (\"****\"), sha1, sha3, md5, hmac-sha256 or hmac-sha512 (lower-"
        "case hex)."),
    CONFIG_SECRET(OWNER, hmac_key, "hmac_key",
                  "The key of hmac-sha256 (at least 32 bytes) and hmac-sha512 (at least 64)."),
    CONFIG_TEXT(OWNER, summary, "summary", "",
                "debug: attributes redaction.* say which keys were changed and how many; info: how "
                "many; anything else: none."),
    CONFIG_SECTION(OWNER, url_sanitizer, struct url_sanitizer_config, "url_sanitizer",
                   url_sanitizer_fields, NULL,
                   "Hide ids in paths of URLs; bodies of log records are taken for URLs, too."),
    CONFIG_SECTION(OWNER, db_sanitizer, struct db_sanitizer_config, "db_sanitizer",
                   db_sanitizer_fields, NULL,
                   "Hide the values in queries of databases; bodies of log records are taken for "
                   "queries of all enabled languages, in this order."),
    CONFIG_END,
};

static const struct counter_row redaction_counters[] = {
    EDIT_STAGE_ROWS(REDACTION_SIGNALS),
    COUNTER_END,
};

struct redaction_processor {
    struct record_stage stage;
    struct url_sanitizer *urls;      /* NULL: none */
    struct query_sanitizer *queries; /* NULL: none */
    struct redaction_rules *rules;
    bool has_redactions;
    struct redaction redactions[EDIT_PLACES];
};

extern const struct component_factory redaction_processor_factory;

static struct redaction_processor *redaction_processor_of(struct component *component)
{
    assert(component->factory == &redaction_processor_factory);
    return (struct redaction_processor *)component;
}

/* REDACTION_HASHES: there is no such function. */
static enum redaction_hash hash_of(const char *name)
{
    static const char *const names[REDACTION_HASHES] = {"",    "sha1",        "sha3",
                                                        "md5", "hmac-sha256", "hmac-sha512"};
    enum redaction_hash hash = REDACT_STARS;
    while (hash < REDACTION_HASHES && strcasecmp(names[hash], name) != 0)
        hash++;
    return hash;
}

static bool redaction_check(const void *section, struct error *error)
{
    enum { KEY_BYTES_MIN = 32 };
    const struct redaction_config *config = section;
    enum redaction_hash hash = hash_of(config->hash_function);
    if (hash == REDACTION_HASHES)
        return error_set(error,
                         "unknown HashFunction %s, allowed functions are sha1, sha3, md5, "
                         "hmac-sha256 and hmac-sha512",
                         config->hash_function) ||
               error_at(error, "hash_function");
    if (hash == REDACT_HMAC_SHA256 || hash == REDACT_HMAC_SHA512) {
        const char *name = hash == REDACT_HMAC_SHA256 ? "hmac-sha256" : "hmac-sha512";
        size_t least = hash == REDACT_HMAC_SHA256 ? KEY_BYTES_MIN : 2 * KEY_BYTES_MIN;
        size_t size = strlen(config->hmac_key);
        if (size == 0)
            return error_set(error, "hmac_key must not be empty when hash_function is \"%s\"",
                             name) ||
                   error_at(error, "hmac_key");
        if (size < least)
            return error_set(error,
                             "hmac_key must be at least %zu bytes long for \"%s\", got %zu bytes",
                             least, name, size) ||
                   error_at(error, "hmac_key");
    }
    return true;
}

static struct batch *run(void *editor, struct record_edit *edit, struct batch *batch)
{
    return redaction_run(editor, edit, batch);
}

static const struct record_stage_ops stage_ops = {.run = run};

static bool redaction_create(struct component *component, struct error *error)
{
    struct redaction_processor *self = redaction_processor_of(component);
    const struct redaction_config *config = component->config;
    bool is_debug = strcmp(config->summary, "debug") == 0;
    struct query_settings queries = {.has_span_names = config->db_sanitizer.sanitize_span_name};
    for (size_t i = 0; i < QUERY_LANGUAGES; i++) {
        queries.is_enabled[i] = config->db_sanitizer.languages[i].enabled;
        queries.attributes[i] = config->db_sanitizer.languages[i].attributes;
    }
    const struct url_settings urls = {
        .is_enabled = config->url_sanitizer.enabled,
        .attributes = config->url_sanitizer.attributes,
        .has_span_names = config->url_sanitizer.sanitize_span_name,
    };
    self->urls = url_sanitizer_create(&urls);
    self->queries = query_sanitizer_create(&queries);
    const struct redaction_settings settings = {
        .allows_all_keys = config->allow_all_keys,
        .redacts_all_types = config->redact_all_types,
        .allowed_keys = config->allowed_keys,
        .ignored_keys = config->ignored_keys,
        .ignored_key_patterns = config->ignored_key_patterns,
        .blocked_key_patterns = config->blocked_key_patterns,
        .blocked_values = config->blocked_values,
        .allowed_values = config->allowed_values,
        .hash = hash_of(config->hash_function),
        .hmac_key = slice_of_text(config->hmac_key),
        .urls = self->urls,
        .queries = self->queries,
        .has_counts = is_debug || strcmp(config->summary, "info") == 0,
        .has_keys = is_debug,
    };
    self->rules = redaction_rules_create(&settings, error);
    if (self->rules == NULL)
        return false;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        redaction_init(&self->redactions[i], self->rules, component->budget);
    self->has_redactions = true;
    record_stage_init(&self->stage, &stage_ops, &self->redactions[EDIT_ON_LANE],
                      &self->redactions[EDIT_ON_HELPER]);
    return true;
}

static void redaction_destroy(struct component *component)
{
    struct redaction_processor *self = redaction_processor_of(component);
    record_stage_fini(&self->stage);
    for (size_t i = 0; self->has_redactions && i < EDIT_PLACES; i++)
        redaction_fini(&self->redactions[i]);
    redaction_rules_destroy(self->rules);
    query_sanitizer_destroy(self->queries);
    url_sanitizer_destroy(self->urls);
}

const struct component_factory redaction_processor_factory = {
    .type = "redaction",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = REDACTION_SIGNALS,
    .instance_size = sizeof(struct redaction_processor),
    .config_size = sizeof(struct redaction_config),
    .fields = redaction_fields,
    .counters_size = sizeof(struct edit_stage_counters),
    .counters = redaction_counters,
    .check = redaction_check,
    .create = redaction_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = redaction_destroy,
};
