/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles properties (main thread, at start), then compares them (any thread). */
#include "src/records/record_match.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/records/metric_expression.h"
#include "src/records/record_edit.h"

/* Span, LogRecord, Metric. */
enum {
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    LOG_SEVERITY_NUMBER = 2,
    LOG_SEVERITY_TEXT = 3,
    LOG_BODY = 5,
    METRIC_NAME = 1,
};

struct record_match_library_config {
    const char *name;
    const struct config_value *version;
};

/* Strings, one of which has to match. */
struct text_set {
    size_t count; /* 0: any string will do */
    const char *const *texts;
    struct pattern **patterns; /* NULL: texts are compared */
};

struct attribute_rule {
    struct slice key;
    struct slice value; /* encoded; no data: any value, or the pattern's */
    struct pattern *pattern;
};

struct attribute_rules {
    size_t count;
    struct attribute_rule *items;
};

struct library_rule {
    const char *texts[2]; /* name, version; NULL: any version */
    struct text_set sets[2];
};

struct record_matcher {
    enum signal_kind signal;
    bool takes_all; /* metrics without names */
    struct text_set services;
    struct text_set names; /* of spans, of metrics */
    size_t expressions_count;
    struct metric_expression **expressions;
    struct text_set kinds;
    struct text_set bodies;
    struct text_set severity_texts;
    bool has_severity_number;
    struct record_match_severity_config severity_number;
    struct attribute_rules attributes;
    struct attribute_rules resources;
    size_t libraries_count;
    struct library_rule *libraries;
};

/* ---- Configuration ---- */

const struct config_field record_match_attribute_fields[] = {
    CONFIG_TEXT(struct record_match_attribute_config, key, "key", "", "The attribute."),
    CONFIG_VALUE(struct record_match_attribute_config, value, "value",
                 "Its value, with its YAML type; a regular expression with match_type regexp. "
                 "Without it any value matches."),
    CONFIG_END,
};

static const struct config_field library_fields[] = {
    CONFIG_TEXT(struct record_match_library_config, name, "name", "",
                "The name of the instrumentation scope."),
    CONFIG_VALUE(struct record_match_library_config, version, "version",
                 "Its version; without it any matches."),
    CONFIG_END,
};

const struct config_field record_match_cache_fields[] = {
    CONFIG_UNUSED_BOOL(struct record_match_cache_config, enabled, "cacheenabled", "false",
                       "Nothing is cached: matching takes linear time."),
    CONFIG_UNUSED_INT(struct record_match_cache_config, entries, "cachemaxnumentries", "0",
                      INT64_MIN, INT64_MAX, "Nothing is cached."),
    CONFIG_END,
};

static const struct config_field severity_fields[] = {
    CONFIG_INT(struct record_match_severity_config, min, "min", "0", INT32_MIN, INT32_MAX,
               "The lowest severity number that matches."),
    CONFIG_BOOL(struct record_match_severity_config, match_undefined, "match_undefined", "false",
                "Log records without a severity number match."),
    CONFIG_END,
};

const struct config_field record_match_fields[] = {
    CONFIG_TEXT(struct record_match_config, match_type, "match_type", "",
                "strict (equal strings and values) or regexp (RE2, anywhere in the string)."),
    CONFIG_OPTIONAL(struct record_match_config, cache, struct record_match_cache_config, has_cache,
                    CONFIG_NULL_IS_OFF, "regexp", record_match_cache_fields, NULL,
                    "Options of match_type regexp, without effect."),
    CONFIG_TEXTS(struct record_match_config, services, "services", NULL,
                 "Spans: service.name of the resource is one of these."),
    CONFIG_TEXTS(struct record_match_config, span_names, "span_names", NULL,
                 "Spans: the name is one of these."),
    CONFIG_TEXTS(struct record_match_config, span_kinds, "span_kinds", NULL,
                 "Spans: the kind is one of these, as SPAN_KIND_SERVER."),
    CONFIG_TEXTS(struct record_match_config, log_bodies, "log_bodies", NULL,
                 "Log records: the body as a string is one of these."),
    CONFIG_TEXTS(struct record_match_config, log_severity_texts, "log_severity_texts", NULL,
                 "Log records: the severity text is one of these."),
    CONFIG_OPTIONAL(struct record_match_config, severity_number,
                    struct record_match_severity_config, has_severity_number, CONFIG_NULL_IS_OFF,
                    "log_severity_number", severity_fields, NULL,
                    "Log records: the severity number is high enough."),
    CONFIG_TEXTS(struct record_match_config, metric_names, "metric_names", NULL,
                 "Metrics: the name is one of these."),
    CONFIG_SECTIONS(struct record_match_config, attributes, struct record_match_attribute_config,
                    "attributes", record_match_attribute_fields, NULL,
                    "Spans and log records: all of these attributes match."),
    CONFIG_SECTIONS(
        struct record_match_config, resources, struct record_match_attribute_config, "resources",
        record_match_attribute_fields, NULL,
        "Spans and log records: all of these attributes of the resource match. Metrics: "
        "no effect."),
    CONFIG_SECTIONS(struct record_match_config, libraries, struct record_match_library_config,
                    "libraries", library_fields, NULL,
                    "Spans and log records: the instrumentation scope matches all of these."),
    CONFIG_END,
};

/* ---- Compiling ---- */

/* A matcher while it is made. */
struct draft {
    const struct record_match_config *config;
    struct record_matcher *matcher;
    struct error *error;
    bool is_regexp;
    bool is_strict;
};

static bool check_match_type(const struct draft *draft)
{
    if (draft->is_regexp || draft->is_strict)
        return true;
    return error_set(draft->error,
                     "unrecognized match_type: '%s', valid types are: [regexp strict]",
                     draft->config->match_type) ||
           error_at(draft->error, "match_type");
}

static bool check_cache(const struct draft *draft)
{
    if (!draft->config->has_cache || !draft->config->cache.enabled ||
        draft->config->cache.entries >= 0)
        return true;
    return error_set(draft->error, "must provide a positive size") ||
           error_at(draft->error, "cachemaxnumentries") || error_at(draft->error, "regexp");
}

static bool prefix(const struct draft *draft, const char *what)
{
    return what != NULL ? error_prefix(draft->error, "error creating %s filters", what) : false;
}

/* Of texts that live as long as the matcher. what: as the Go collector's error has it, or NULL. */
static bool compile_set(const struct draft *draft, size_t count, const char *const *texts,
                        const char *what, struct text_set *ret_set)
{
    struct text_set *set = ret_set;
    if (count == 0)
        return true;
    if (!check_match_type(draft))
        return prefix(draft, what);
    set->count = count;
    set->texts = texts;
    if (draft->is_strict)
        return true;
    set->patterns = (struct pattern **)mem_zalloc(count * sizeof(set->patterns[0]));
    for (size_t i = 0; i < count; i++) {
        set->patterns[i] = pattern_create(texts[i], draft->error);
        if (set->patterns[i] == NULL)
            return prefix(draft, what) || error_at_index(draft->error, i);
    }
    return check_cache(draft) || prefix(draft, what);
}

static bool compile_texts(const struct draft *draft, const struct config_texts *texts,
                          const char *key, const char *what, struct text_set *ret_set)
{
    draft->error->steps_count = 0;
    if (compile_set(draft, texts->count, texts->texts, what, ret_set))
        return true;
    /* What is wrong may be the match type instead, whose step is there already. */
    bool is_element = draft->error->steps_count > 0 && draft->error->steps[0].key == NULL;
    return is_element ? error_at(draft->error, key) : false;
}

static const char *type_name(enum config_value_type type)
{
    static const char *const names[] = {
        [CONFIG_VALUE_NULL] = "Empty", [CONFIG_VALUE_BOOL] = "Bool",
        [CONFIG_VALUE_INT] = "Int",    [CONFIG_VALUE_DOUBLE] = "Double",
        [CONFIG_VALUE_TEXT] = "Str",   [CONFIG_VALUE_LIST] = "Slice",
        [CONFIG_VALUE_MAP] = "Map",
    };
    return names[type];
}

static bool compile_attribute(const struct draft *draft,
                              const struct record_match_attribute_config *config,
                              struct attribute_rule *rule)
{
    if (config->key[0] == '\0')
        return error_set(draft->error, "can't have empty key in the list of attributes") ||
               error_at(draft->error, "key");
    rule->key = slice_of_text(config->key);
    if (config->value == NULL || config->value->type == CONFIG_VALUE_NULL)
        return true;
    if (!draft->is_regexp && !draft->is_strict)
        return check_match_type(draft);
    if (draft->is_strict) {
        rule->value = value_from_config(config->value);
        return true;
    }
    if (config->value->type != CONFIG_VALUE_TEXT)
        return error_set(draft->error,
                         "match_type=regexp for \"%s\" only supports Str, but found %s",
                         config->key, type_name(config->value->type)) ||
               error_at(draft->error, "value");
    rule->pattern = pattern_create(config->value->text, draft->error);
    if (rule->pattern == NULL)
        return error_at(draft->error, "value");
    return check_cache(draft);
}

static bool compile_attributes(const struct draft *draft, const struct config_sections *configs,
                               const char *key, const char *what, struct attribute_rules *rules)
{
    const struct record_match_attribute_config *items = configs->items;
    rules->items = mem_zalloc(configs->count * sizeof(rules->items[0]));
    for (size_t i = 0; i < configs->count; i++) {
        draft->error->steps_count = 0;
        rules->count++;
        if (compile_attribute(draft, &items[i], &rules->items[i]))
            continue;
        prefix(draft, what);
        bool is_inside =
            draft->error->steps_count == 1 && strcmp(draft->error->steps[0].key, "match_type") != 0;
        return is_inside ? error_at_index(draft->error, i) || error_at(draft->error, key) : false;
    }
    return true;
}

static bool compile_library(const struct draft *draft,
                            const struct record_match_library_config *config,
                            struct library_rule *rule)
{
    rule->texts[0] = config->name;
    if (!compile_set(draft, 1, &rule->texts[0], "library name", &rule->sets[0]))
        return draft->error->steps_count == 1 && draft->error->steps[0].key == NULL
                   ? error_at(draft->error, "name")
                   : false;
    if (config->version == NULL || config->version->type == CONFIG_VALUE_NULL)
        return true;
    if (config->version->type != CONFIG_VALUE_TEXT)
        return error_set(draft->error, "found a value of type %s, expected a string (in quotes)",
                         type_name(config->version->type)) ||
               error_at(draft->error, "version");
    rule->texts[1] = config->version->text;
    if (!compile_set(draft, 1, &rule->texts[1], "library version", &rule->sets[1]))
        return draft->error->steps_count == 1 && draft->error->steps[0].key == NULL
                   ? error_at(draft->error, "version")
                   : false;
    return true;
}

static bool compile_libraries(const struct draft *draft)
{
    const struct config_sections *configs = &draft->config->libraries;
    const struct record_match_library_config *items = configs->items;
    struct record_matcher *matcher = draft->matcher;
    matcher->libraries = mem_zalloc(configs->count * sizeof(matcher->libraries[0]));
    for (size_t i = 0; i < configs->count; i++) {
        draft->error->steps_count = 0;
        matcher->libraries_count++;
        if (compile_library(draft, &items[i], &matcher->libraries[i]))
            continue;
        size_t steps = draft->error->steps_count;
        bool is_inside = steps > 0 && draft->error->steps[steps - 1].key != NULL &&
                         (strcmp(draft->error->steps[steps - 1].key, "name") == 0 ||
                          strcmp(draft->error->steps[steps - 1].key, "version") == 0);
        return is_inside ? error_at_index(draft->error, i) || error_at(draft->error, "libraries")
                         : false;
    }
    return true;
}

static bool check_for_spans(const struct draft *draft)
{
    static const char *const kinds[] = {"SPAN_KIND_CLIENT", "SPAN_KIND_CONSUMER",
                                        "SPAN_KIND_INTERNAL", "SPAN_KIND_PRODUCER",
                                        "SPAN_KIND_SERVER"};
    const struct record_match_config *config = draft->config;
    const struct {
        bool is_set;
        const char *key;
    } others[] = {
        {config->log_bodies.count > 0, "log_bodies"},
        {config->log_severity_texts.count > 0, "log_severity_texts"},
        {config->has_severity_number, "log_severity_number"},
        {config->metric_names.count > 0, "metric_names"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].is_set)
            return error_set(draft->error, "%s should not be specified for trace spans",
                             others[i].key) ||
                   error_at(draft->error, others[i].key);
    if (config->services.count + config->span_names.count + config->attributes.count +
            config->libraries.count + config->resources.count + config->span_kinds.count ==
        0)
        return error_set(draft->error, "at least one of \"attributes\", \"libraries\",  or "
                                       "\"resources\" field must be specified");
    for (size_t i = 0; draft->is_strict && i < config->span_kinds.count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            is_known |= strcmp(config->span_kinds.texts[i], kinds[k]) == 0;
        if (!is_known)
            return error_set(draft->error,
                             "span_kinds string must match one of the standard span kinds when "
                             "match_type=strict: [SPAN_KIND_CLIENT SPAN_KIND_CONSUMER "
                             "SPAN_KIND_INTERNAL SPAN_KIND_PRODUCER SPAN_KIND_SERVER]") ||
                   error_at_index(draft->error, i) || error_at(draft->error, "span_kinds");
    }
    return true;
}

static bool check_for_logs(const struct draft *draft)
{
    const struct record_match_config *config = draft->config;
    const char *wrong = config->span_names.count > 0     ? "span_names"
                        : config->services.count > 0     ? "services"
                        : config->span_kinds.count > 0   ? "span_kinds"
                        : config->metric_names.count > 0 ? "metric_names"
                                                         : NULL;
    if (wrong != NULL)
        return error_set(draft->error, "services, span_names, span_kinds and metric_names are not "
                                       "valid for log records") ||
               error_at(draft->error, wrong);
    if (config->attributes.count + config->libraries.count + config->resources.count +
                config->log_bodies.count + config->log_severity_texts.count ==
            0 &&
        !config->has_severity_number)
        return error_set(draft->error,
                         "at least one of \"attributes\", \"libraries\", \"span_kinds\", "
                         "\"resources\", \"log_bodies\", \"log_severity_texts\" or "
                         "\"log_severity_number\" field must be specified");
    return true;
}

static bool check_for_metrics(const struct draft *draft)
{
    const struct record_match_config *config = draft->config;
    const char *wrong = config->log_bodies.count > 0           ? "log_bodies"
                        : config->log_severity_texts.count > 0 ? "log_severity_texts"
                        : config->span_names.count > 0         ? "span_names"
                        : config->services.count > 0           ? "services"
                        : config->span_kinds.count > 0         ? "span_kinds"
                        : config->attributes.count > 0         ? "attributes"
                        : config->libraries.count > 0          ? "libraries"
                        : config->has_severity_number          ? "log_severity_number"
                                                               : NULL;
    if (wrong != NULL)
        return error_set(draft->error,
                         "\"span_names\", \"span_kinds\", \"log_bodies\", "
                         "\"log_severity_texts\", \"log_severity_number\", \"services\", "
                         "\"attributes\" and \"libraries\" are not valid for metrics") ||
               error_at(draft->error, wrong);
    if (config->metric_names.count + config->resources.count == 0)
        return error_set(draft->error, "at least one of \"metric_names\" or \"resources\" field "
                                       "must be specified");
    return true;
}

static bool compile_expressions(const struct draft *draft)
{
    const struct config_texts *texts = &draft->config->expressions;
    struct record_matcher *matcher = draft->matcher;
    matcher->expressions =
        (struct metric_expression **)mem_zalloc(texts->count * sizeof(matcher->expressions[0]));
    for (size_t i = 0; i < texts->count; i++) {
        matcher->expressions[i] = metric_expression_create(texts->texts[i], draft->error);
        if (matcher->expressions[i] == NULL)
            return error_at_index(draft->error, i) || error_at(draft->error, "expressions");
        matcher->expressions_count++;
    }
    return true;
}

static bool compile_for_metrics(const struct draft *draft)
{
    const struct record_match_config *config = draft->config;
    if (config->has_metric_resources) {
        if (!compile_attributes(draft, &config->resources, "resources", NULL,
                                &draft->matcher->resources))
            return false;
    } else if (!check_for_metrics(draft)) {
        return false;
    }
    /* As in Go: names count for nothing beside expressions, and resources alone choose nothing. */
    const bool is_by_expressions = strcmp(config->match_type, "expr") == 0;
    if (is_by_expressions && config->expressions.count > 0)
        return compile_expressions(draft);
    draft->matcher->takes_all = is_by_expressions || config->metric_names.count == 0;
    if (draft->matcher->takes_all)
        return true;
    return compile_texts(draft, &config->metric_names, "metric_names", NULL,
                         &draft->matcher->names);
}

static bool compile(const struct draft *draft, enum signal_kind signal)
{
    const struct record_match_config *config = draft->config;
    struct record_matcher *matcher = draft->matcher;
    if (signal == METRICS)
        return compile_for_metrics(draft);
    if (!(signal == TRACES ? check_for_spans(draft) : check_for_logs(draft)))
        return false;
    matcher->has_severity_number = config->has_severity_number;
    matcher->severity_number = config->severity_number;
    return compile_libraries(draft) &&
           compile_attributes(draft, &config->attributes, "attributes", "attribute",
                              &matcher->attributes) &&
           compile_attributes(draft, &config->resources, "resources", "resource",
                              &matcher->resources) &&
           compile_texts(draft, &config->services, "services", "service name",
                         &matcher->services) &&
           compile_texts(draft, &config->span_names, "span_names", "span name", &matcher->names) &&
           compile_texts(draft, &config->span_kinds, "span_kinds", "span kind", &matcher->kinds) &&
           compile_texts(draft, &config->log_bodies, "log_bodies", "log record body",
                         &matcher->bodies) &&
           compile_texts(draft, &config->log_severity_texts, "log_severity_texts",
                         "log record severity text", &matcher->severity_texts);
}

struct record_matcher *record_matcher_create(const struct record_match_config *config,
                                             enum signal_kind signal, struct error *error)
{
    struct record_matcher *matcher = mem_zalloc(sizeof(*matcher));
    struct draft draft = {
        .config = config,
        .matcher = matcher,
        .error = error,
        .is_regexp = strcmp(config->match_type, "regexp") == 0,
        .is_strict = strcmp(config->match_type, "strict") == 0,
    };
    error->steps_count = 0;
    matcher->signal = signal;
    if (compile(&draft, signal))
        return matcher;
    record_matcher_destroy(matcher);
    return NULL;
}

static void destroy_set(struct text_set *set)
{
    for (size_t i = 0; set->patterns != NULL && i < set->count; i++)
        pattern_destroy(set->patterns[i]);
    mem_free((void *)set->patterns);
}

static void destroy_rules(struct attribute_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        mem_free((void *)(uintptr_t)rules->items[i].value.data);
        pattern_destroy(rules->items[i].pattern);
    }
    mem_free(rules->items);
}

void record_matcher_destroy(struct record_matcher *matcher)
{
    if (matcher == NULL)
        return;
    destroy_set(&matcher->services);
    destroy_set(&matcher->names);
    destroy_set(&matcher->kinds);
    destroy_set(&matcher->bodies);
    destroy_set(&matcher->severity_texts);
    destroy_rules(&matcher->attributes);
    destroy_rules(&matcher->resources);
    for (size_t i = 0; i < matcher->libraries_count; i++) {
        destroy_set(&matcher->libraries[i].sets[0]);
        destroy_set(&matcher->libraries[i].sets[1]);
    }
    mem_free(matcher->libraries);
    for (size_t i = 0; i < matcher->expressions_count; i++)
        metric_expression_destroy(matcher->expressions[i]);
    mem_free((void *)matcher->expressions);
    mem_free(matcher);
}

/* ---- Matching ---- */

static bool set_takes(const struct text_set *set, struct slice text)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->patterns != NULL ? pattern_matches(set->patterns[i], text)
                                  : slice_equal_text(text, set->texts[i]))
            return true;
    return set->count == 0;
}

/* The fields of a list or map, one at a time. */
static bool next_element(struct wire_reader *reader, struct slice *ret_element)
{
    enum { ELEMENTS = 1 };
    struct wire_field field;
    while (wire_next_field(reader, &field)) {
        if (field.number != ELEMENTS)
            continue;
        *ret_element = field.bytes;
        return true;
    }
    return false;
}

static void read_key_value(struct slice element, struct slice *ret_key, struct slice *ret_value)
{
    enum { KEY = 1, VALUE = 2 };
    struct wire_reader reader = wire_reader_of(element);
    struct wire_field field;
    *ret_key = slice_of(NULL, 0);
    *ret_value = slice_of(NULL, 0);
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY)
            *ret_key = field.bytes;
        if (field.number == VALUE)
            *ret_value = field.bytes;
    }
}

static size_t count_elements(struct slice container)
{
    struct wire_reader reader = wire_reader_of(container);
    struct slice element;
    size_t count = 0;
    while (next_element(&reader, &element))
        count++;
    return count;
}

/* wanted is from the configuration. Recursion is bounded by its depth. Lists compare in order, maps
 * without. */
static bool values_are_equal(struct slice wanted, struct slice found)
{
    struct value a = value_read(wanted);
    struct value b = value_read(found);
    struct slice element;
    struct slice other;
    if (a.type != b.type)
        return false;
    if (a.type == VALUE_BOOL)
        return a.boolean == b.boolean;
    if (a.type == VALUE_INT)
        return a.integer == b.integer;
    if (a.type == VALUE_DOUBLE)
        return a.real == b.real;
    if (a.type != VALUE_LIST && a.type != VALUE_MAP)
        return slice_equal(a.bytes, b.bytes);
    if (count_elements(a.bytes) != count_elements(b.bytes))
        return false;
    struct wire_reader reader = wire_reader_of(a.bytes);
    struct wire_reader others = wire_reader_of(b.bytes);
    while (next_element(&reader, &element)) {
        struct slice keys[2];
        struct slice values[2] = {element};
        if (a.type == VALUE_LIST) {
            next_element(&others, &values[1]);
        } else {
            bool is_found = false;
            read_key_value(element, &keys[0], &values[0]);
            others = wire_reader_of(b.bytes);
            while (!is_found && next_element(&others, &other)) {
                read_key_value(other, &keys[1], &values[1]);
                is_found = slice_equal(keys[0], keys[1]);
            }
            if (!is_found)
                return false;
        }
        if (!values_are_equal(values[0], values[1]))
            return false;
    }
    return true;
}

/* Values that are no strings, numbers or booleans match no pattern. */
static bool pattern_takes_value(const struct pattern *pattern, struct slice encoded)
{
    char text[DOUBLE_STRING_BYTES_MAX];
    struct value value = value_read(encoded);
    switch (value.type) {
    case VALUE_STRING:
        return pattern_matches(pattern, value.bytes);
    case VALUE_BOOL:
        return pattern_matches(pattern, slice_of_text(value.boolean ? "true" : "false"));
    case VALUE_INT:
        return pattern_matches(pattern, slice_of(text, (size_t)snprintf(text, sizeof(text), "%lld",
                                                                        (long long)value.integer)));
    case VALUE_DOUBLE:
        return pattern_matches(pattern, slice_of(text, double_to_decimal(value.real, text)));
    case VALUE_EMPTY:
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        return false;
    }
}

static bool rules_take(const struct attribute_rules *rules, const struct attribute_list *attributes)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct attribute_rule *rule = &rules->items[i];
        const struct attribute *attribute = attribute_list_find(attributes, rule->key);
        if (attribute == NULL)
            return false;
        if (rule->pattern != NULL && !pattern_takes_value(rule->pattern, attribute->value))
            return false;
        if (rule->value.data != NULL && !values_are_equal(rule->value, attribute->value))
            return false;
    }
    return true;
}

bool record_matcher_is_void(const struct record_matcher *matcher)
{
    return matcher->takes_all;
}

bool record_matcher_has_expressions(const struct record_matcher *matcher)
{
    return matcher->expressions_count > 0;
}

bool record_matcher_needs_labels(const struct record_matcher *matcher)
{
    for (size_t i = 0; i < matcher->expressions_count; i++)
        if (metric_expression_needs_labels(matcher->expressions[i]))
            return true;
    return false;
}

unsigned record_matcher_names(const struct record_matcher *matcher)
{
    unsigned names = 0;
    for (size_t i = 0; i < matcher->expressions_count; i++)
        names += metric_expression_names(matcher->expressions[i]);
    return names;
}

bool record_matcher_takes_point(const struct record_matcher *matcher,
                                const struct metric_expression_point *point)
{
    for (size_t i = 0; i < matcher->expressions_count; i++)
        if (metric_expression_takes(matcher->expressions[i], point))
            return true;
    return false;
}

bool record_matcher_needs_resource(const struct record_matcher *matcher)
{
    return matcher->services.count > 0 || matcher->resources.count > 0;
}

bool record_matcher_needs_attributes(const struct record_matcher *matcher)
{
    return matcher->attributes.count > 0;
}

bool record_matcher_takes_resource(const struct record_matcher *matcher, struct arena *arena,
                                   const struct attribute_list *attributes)
{
    if (matcher->services.count > 0) {
        struct slice name = slice_of_text("<nil-service-name>");
        const struct attribute *attribute =
            attribute_list_find(attributes, slice_of_text("service.name"));
        if (attribute != NULL && !value_to_string(arena, attribute->value, &name))
            return false;
        if (!set_takes(&matcher->services, name))
            return false;
    }
    return rules_take(&matcher->resources, attributes);
}

bool record_matcher_takes_scope(const struct record_matcher *matcher, struct slice content)
{
    struct slice texts[2] = {slice_of(NULL, 0), slice_of(NULL, 0)};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    if (matcher->libraries_count == 0)
        return true;
    while (wire_next_field(&reader, &field)) {
        if (field.number != RECORDS_HEAD)
            continue;
        struct wire_reader head = wire_reader_of(field.bytes);
        while (wire_next_field(&head, &field)) {
            if (field.number == SCOPE_NAME)
                texts[0] = field.bytes;
            if (field.number == SCOPE_VERSION)
                texts[1] = field.bytes;
        }
    }
    for (size_t i = 0; i < matcher->libraries_count; i++)
        if (!set_takes(&matcher->libraries[i].sets[0], texts[0]) ||
            !set_takes(&matcher->libraries[i].sets[1], texts[1]))
            return false;
    return true;
}

static bool takes_span(const struct record_matcher *matcher, struct slice content)
{
    static const char *const kinds[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    struct slice name = slice_of(NULL, 0);
    uint64_t kind = 0;
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    if (matcher->names.count + matcher->kinds.count == 0)
        return true;
    while (wire_next_field(&reader, &field)) {
        if (field.number == SPAN_NAME)
            name = field.bytes;
        if (field.number == SPAN_KIND)
            kind = field.number_value;
    }
    const char *kind_text = kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "";
    return set_takes(&matcher->names, name) && set_takes(&matcher->kinds, slice_of_text(kind_text));
}

static bool takes_log_record(const struct record_matcher *matcher, struct arena *arena,
                             struct slice content)
{
    struct slice body = slice_of(NULL, 0);
    struct slice severity_text = slice_of(NULL, 0);
    int32_t severity_number = 0;
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    if (matcher->bodies.count + matcher->severity_texts.count == 0 && !matcher->has_severity_number)
        return true;
    while (wire_next_field(&reader, &field)) {
        if (field.number == LOG_BODY)
            body = field.bytes;
        if (field.number == LOG_SEVERITY_TEXT)
            severity_text = field.bytes;
        if (field.number == LOG_SEVERITY_NUMBER)
            severity_number = (int32_t)field.number_value;
    }
    if (!set_takes(&matcher->severity_texts, severity_text))
        return false;
    if (matcher->has_severity_number &&
        !(severity_number == 0 ? matcher->severity_number.match_undefined
                               : severity_number >= matcher->severity_number.min))
        return false;
    struct slice text;
    return matcher->bodies.count == 0 ||
           (value_to_string(arena, body, &text) && set_takes(&matcher->bodies, text));
}

static bool takes_metric(const struct record_matcher *matcher, struct slice content)
{
    struct slice name = slice_of(NULL, 0);
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (!matcher->takes_all && wire_next_field(&reader, &field))
        if (field.number == METRIC_NAME)
            name = field.bytes;
    return set_takes(&matcher->names, name);
}

bool record_matcher_takes_record(const struct record_matcher *matcher, struct arena *arena,
                                 struct slice content, const struct attribute_list *attributes)
{
    if (matcher->signal == METRICS)
        return takes_metric(matcher, content);
    bool takes_fields = matcher->signal == TRACES ? takes_span(matcher, content)
                                                  : takes_log_record(matcher, arena, content);
    return takes_fields && rules_take(&matcher->attributes, attributes);
}
