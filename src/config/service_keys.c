/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes service: by its option table (our own keys beside those of the Go collector), and
 * resolves service::telemetry below it. Main thread. */
#include "src/config/service_keys.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/config/decode.h"
#include "src/config/loader.h"
#include "src/config/suggest.h"

struct telemetry_sampling {
    uint64_t tick_ns;
    uint64_t initial;
    uint64_t thereafter;
};

struct telemetry_logs {
    const struct config_value *level;
    int encoding;
    bool disable_caller;
    bool is_sampled;
    struct telemetry_sampling sampling;
    struct config_texts output_paths;
};

struct telemetry_prometheus {
    const char *host;
    uint64_t port;
    bool without_scope_info;
    bool without_units;
    bool without_type_suffix;
};

struct telemetry_exporter {
    bool has_prometheus;
    struct telemetry_prometheus prometheus;
};

struct telemetry_pull {
    struct telemetry_exporter exporter;
};

struct telemetry_reader {
    bool has_pull;
    struct telemetry_pull pull;
};

struct telemetry_metrics {
    const struct config_value *level;
    const char *address;
    struct config_sections readers; /* of struct telemetry_reader */
};

/* Accepted, without effect. */
struct telemetry_traces {
    char nothing;
};

struct telemetry_keys {
    struct telemetry_logs logs;
    struct telemetry_metrics metrics;
    struct telemetry_traces traces;
    const struct config_value *resource;
};

struct service_section {
    uint64_t lanes;
    uint64_t budget_mib;
    uint64_t drain_timeout_ns;
    bool core_dumps;
    int unsupported; /* config.c reads it before the components */
    struct telemetry_keys telemetry;
    /* Read by pipelines.c, since they refer to components. */
    const struct config_value *extensions;
    const struct config_value *pipelines;
};

static const char *const encodings[] = {"console", "json", NULL};

static const struct config_field sampling_fields[] = {
    CONFIG_DURATION(
        struct telemetry_sampling, tick_ns, "tick", "10s", 0, INT64_MAX,
        "Identical lines are counted by level and message in intervals of this length."),
    CONFIG_COUNT(struct telemetry_sampling, initial, "initial", "10", 0, INT64_MAX,
                 "Identical lines logged per tick before sampling starts."),
    CONFIG_COUNT(struct telemetry_sampling, thereafter, "thereafter", "100", 0, INT64_MAX,
                 "After that, one in this many identical lines is logged; 0: none."),
    CONFIG_END,
};

static const struct config_field logs_fields[] = {
    CONFIG_VALUE(struct telemetry_logs, level, "level",
                 "debug, info (the default), warn or error; dpanic, panic and fatal mean error."),
    CONFIG_CHOICE(struct telemetry_logs, encoding, "encoding", "console", encodings,
                  "The format of log lines."),
    CONFIG_BOOL(struct telemetry_logs, disable_caller, "disable_caller", "false",
                "Omit the source location from log lines."),
    CONFIG_OPTIONAL(struct telemetry_logs, sampling, struct telemetry_sampling, is_sampled,
                    CONFIG_DEFAULT_ON, "sampling", sampling_fields, NULL, "Sample repeated lines."),
    CONFIG_TEXTS(struct telemetry_logs, output_paths, "output_paths", "stderr",
                 "Where log lines are written: stderr, stdout or a file."),
    CONFIG_IGNORED_TEXTS("error_output_paths", "Errors of the logger itself go to stderr."),
    CONFIG_IGNORED_BOOL("development", "Changes stack traces in the Go collector."),
    CONFIG_IGNORED_BOOL("disable_stacktrace", "There are no stack traces."),
    CONFIG_IGNORED_BOOL("disable_zap_resource", "JSON lines carry the resource."),
    CONFIG_IGNORED_MAP("initial_fields", "Lines carry no further fields."),
    CONFIG_IGNORED_LIST("processors", "Lines are not exported over OTLP."),
    CONFIG_END,
};

static const struct config_field prometheus_fields[] = {
    CONFIG_TEXT(struct telemetry_prometheus, host, "host", "localhost",
                "The address to listen on."),
    CONFIG_COUNT(struct telemetry_prometheus, port, "port", "8888", 0, 65535,
                 "The port to listen on; 0 takes a free one."),
    CONFIG_BOOL(struct telemetry_prometheus, without_scope_info, "without_scope_info", "true",
                "No effect: series never carry scope labels."),
    CONFIG_BOOL(struct telemetry_prometheus, without_units, "without_units", "true",
                "Omit units from metric names, as the Go collector does since v0.152."),
    CONFIG_BOOL(struct telemetry_prometheus, without_type_suffix, "without_type_suffix", "true",
                "Omit \"_total\" from counter names, as the Go collector does since v0.152."),
    CONFIG_IGNORED_MAP("with_resource_constant_labels", "The resource is in target_info alone."),
    CONFIG_END,
};

static const struct config_field exporter_fields[] = {
    CONFIG_OPTIONAL(struct telemetry_exporter, prometheus, struct telemetry_prometheus,
                    has_prometheus, CONFIG_NULL_ENABLES, "prometheus", prometheus_fields, NULL,
                    "Serve metrics to Prometheus."),
    CONFIG_END,
};

static const struct config_field pull_fields[] = {
    CONFIG_SECTION(struct telemetry_pull, exporter, struct telemetry_exporter, "exporter",
                   exporter_fields, NULL, "How metrics are scraped."),
    CONFIG_IGNORED("producers", "No further sources of metrics."),
    CONFIG_IGNORED("cardinality_limits", "The number of series is fixed."),
    CONFIG_END,
};

static bool check_reader(const void *section, struct error *error)
{
    const struct telemetry_reader *reader = section;
    if (!reader->has_pull || reader->pull.exporter.has_prometheus)
        return true;
    return error_set(error, "found a pull reader without exporter, expected "
                            "pull: {exporter: {prometheus: {host: localhost, port: 8888}}}");
}

static const struct config_field reader_fields[] = {
    CONFIG_OPTIONAL(struct telemetry_reader, pull, struct telemetry_pull, has_pull,
                    CONFIG_NULL_IS_OFF, "pull", pull_fields, NULL,
                    "Metrics that a server scrapes."),
    CONFIG_IGNORED_MAP("periodic", "Metrics are not exported over OTLP; scrape them."),
    CONFIG_IGNORED_LIST("producers", "No further sources of metrics."),
    CONFIG_END,
};

static const struct config_field metrics_fields[] = {
    CONFIG_VALUE(struct telemetry_metrics, level, "level",
                 "none, basic, normal (the default) or detailed."),
    CONFIG_SECTIONS(struct telemetry_metrics, readers, struct telemetry_reader, "readers",
                    reader_fields, check_reader,
                    "Where metrics are served; absent: localhost:8888."),
    CONFIG_TEXT(struct telemetry_metrics, address, "address", NULL,
                "The older form of a reader, host:port; deprecated."),
    CONFIG_IGNORED_LIST("views", "Only at level detailed; the series are fixed."),
    CONFIG_END,
};

static const struct config_field traces_fields[] = {
    CONFIG_IGNORED("level", "No effect."),
    CONFIG_IGNORED_TEXTS("propagators", "No effect."),
    CONFIG_IGNORED_LIST("processors", "No effect."),
    CONFIG_IGNORED_MAP("limits", "No effect."),
    CONFIG_IGNORED_MAP("sampler", "No effect."),
    CONFIG_END,
};

static const struct config_field telemetry_fields[] = {
    CONFIG_SECTION(struct telemetry_keys, logs, struct telemetry_logs, "logs", logs_fields, NULL,
                   "The daemon's own log."),
    CONFIG_SECTION(struct telemetry_keys, metrics, struct telemetry_metrics, "metrics",
                   metrics_fields, NULL, "The daemon's own metrics."),
    CONFIG_SECTION(struct telemetry_keys, traces, struct telemetry_traces, "traces", traces_fields,
                   NULL, "No effect: the daemon emits no spans of its own."),
    CONFIG_VALUE(
        struct telemetry_keys, resource, "resource",
        "Attributes of the daemon itself: attributes: [{name, value}], or a map of strings; "
        "null drops a default."),
    CONFIG_END,
};

static const char *const unsupported_words[] = {"refuse", "skip", NULL};

static const char *const lanes_words[] = {"auto", NULL};

const struct config_field service_keys_fields[] = {
    CONFIG_VALUE(struct service_section, extensions, "extensions",
                 "The extensions to run, in start order."),
    CONFIG_VALUE(struct service_section, pipelines, "pipelines",
                 "By signal[/name]: lists of receivers, processors and exporters."),
    CONFIG_SECTION(struct service_section, telemetry, struct telemetry_keys, "telemetry",
                   telemetry_fields, NULL, "The daemon's own telemetry."),
    CONFIG_COUNT_OR(struct service_section, lanes, "lanes", "1", 1, LANES_MAX, lanes_words,
                    "Worker threads; auto: one per core. Not in the Go collector."),
    CONFIG_COUNT(struct service_section, budget_mib, "budget_mib", "0", 0, 1 << 24,
                 "Memory for all requests in flight, in MiB; 0: derived from the machine. Not in "
                 "the Go collector."),
    CONFIG_DURATION(struct service_section, drain_timeout_ns, "drain_timeout", "30s", 0, INT64_MAX,
                    "How long shutdown waits for requests in flight. Not in the Go collector."),
    CONFIG_BOOL(struct service_section, core_dumps, "core_dumps", "false",
                "Allow core files, which contain secrets, and debuggers of the same user. Not in "
                "the Go collector."),
    CONFIG_CHOICE(struct service_section, unsupported, "unsupported", "refuse", unsupported_words,
                  "What becomes of components that the Go collector has and this build lacks: "
                  "refuse the configuration, or skip them and what needs them. Not in the Go "
                  "collector."),
    CONFIG_END,
};

struct word {
    const char *text;
    int value;
};

struct levels {
    const struct word *words;
    int usual;
    int of_null;
    int highest;
    int integer_max; /* an integer i is level i + 1, at most highest */
    const char *expected;
};

static const struct levels log_levels = {
    .words = (const struct word[]){{"", LOG_INFO},
                                   {"debug", LOG_DEBUG},
                                   {"info", LOG_INFO},
                                   {"warn", LOG_WARN},
                                   {"error", LOG_ERROR},
                                   {"warning", LOG_WARN},
                                   {"dpanic", LOG_ERROR},
                                   {"panic", LOG_ERROR},
                                   {"fatal", LOG_ERROR},
                                   {NULL, 0}},
    .usual = LOG_INFO,
    .of_null = LOG_INFO,
    .highest = LOG_ERROR,
    .integer_max = 5,
    .expected = "debug, info, warn or error",
};

static const struct levels metrics_levels = {
    .words = (const struct word[]){{"none", METRICS_NONE},
                                   {"basic", METRICS_BASIC},
                                   {"normal", METRICS_NORMAL},
                                   {"detailed", METRICS_DETAILED},
                                   {NULL, 0}},
    .usual = METRICS_NORMAL,
    .of_null = METRICS_NONE,
    .highest = METRICS_DETAILED,
    .integer_max = 2,
    .expected = "none, basic, normal or detailed",
};

/* A key of a section below telemetry. */
struct telemetry_key {
    const struct site *site;
    const struct node *section; /* may be NULL */
    struct path section_path;
    struct path path;
    const struct node *node; /* NULL: absent */
};

static void find_key(struct telemetry_key *ret_key, const struct site *site,
                     const struct node *telemetry, const char *section, const char *key)
{
    ret_key->site = site;
    ret_key->section = node_value(telemetry, section);
    ret_key->section_path = (struct path){.parent = site->path, .key = section};
    ret_key->path = (struct path){.parent = &ret_key->section_path, .key = key};
    ret_key->node = node_value(ret_key->section, key);
}

/* A word of levels, or an integer: -1 is the lowest level, as in the Go collector and zap. */
static int take_level(const struct telemetry_key *key, const struct levels *levels)
{
    const struct node *node = key->node;
    if (node == NULL || node->kind == NODE_BROKEN)
        return levels->usual;
    if (node->kind == NODE_NULL)
        return levels->of_null;
    if (node->kind == NODE_INT && node->integer >= -1 && node->integer <= levels->integer_max)
        return node->integer + 1 < levels->highest ? (int)node->integer + 1 : levels->highest;
    const char *text = node->kind == NODE_TEXT ? node->text : NULL;
    struct suggestion suggestion = loader_suggestion(key->site->loader, text != NULL ? text : "");
    for (const struct word *word = levels->words; word->text != NULL; word++) {
        if (text != NULL && strcasecmp(word->text, text) == 0)
            return word->value;
        suggestion_consider(&suggestion, word->text);
    }
    loader_problem(key->site->loader, node->position, &key->path, "found %s, expected %s%s",
                   node_describe(node).text, levels->expected,
                   suggestion_to_text(&suggestion).text);
    return levels->usual;
}

/* host:port, [host]:port, :port */
static bool take_address(struct loader *loader, const char *address, struct config_service *service)
{
    char *host = loader_copy_text(loader, address);
    char *colon = strrchr(host, ':');
    char *end = NULL;
    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || port > 65535)
        return false;
    *colon = '\0';
    size_t size = strlen(host);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        host[size - 1] = '\0';
        host++;
    }
    service->metrics_host = *host != '\0' ? host : "0.0.0.0";
    service->metrics_port = port;
    return true;
}

static void use_reader(const struct telemetry_prometheus *prometheus,
                       struct config_service *service)
{
    service->has_metrics_reader = true;
    service->metrics_host = prometheus->host;
    service->metrics_port = prometheus->port;
    service->metrics_without_units = prometheus->without_units;
    service->metrics_without_type_suffix = prometheus->without_type_suffix;
}

static void resolve_metrics(const struct site *site, const struct node *node,
                            const struct telemetry_metrics *metrics, struct config_service *service)
{
    struct telemetry_key key;
    static const struct telemetry_prometheus standard = {
        .host = "localhost", .port = 8888, .without_units = true, .without_type_suffix = true};
    find_key(&key, site, node, "metrics", "level");
    service->metrics_level = take_level(&key, &metrics_levels);
    use_reader(&standard, service);
    find_key(&key, site, node, "metrics", "address");
    struct loader *loader = key.site->loader;
    if (key.node != NULL && key.node->kind != NODE_NULL && key.node->kind != NODE_BROKEN) {
        if (!take_address(loader, metrics->address, service)) {
            loader_problem(loader, key.node->position, &key.path, "found %s, expected host:port",
                           node_describe(key.node).text);
        } else {
            service->has_metrics_reader = true;
            loader_warning(loader, key.node->position, &key.path,
                           "found a key that the Go collector no longer has; use readers: "
                           "[{pull: {exporter: {prometheus: {host: \"%s\", port: %u}}}}]",
                           service->metrics_host, (unsigned)service->metrics_port);
        }
    }
    find_key(&key, site, node, "metrics", "readers");
    if (key.node != NULL && key.node->kind == NODE_LIST) {
        /* Only the first reader that Prometheus can scrape is served; the others get a warning. */
        const struct telemetry_reader *readers = metrics->readers.items;
        assert(key.node != NULL && key.node->kind == NODE_LIST);
        service->has_metrics_reader = false;
        if (metrics->readers.count == 0 && service->metrics_level != METRICS_NONE)
            loader_problem(
                loader, key.node->position, &key.path,
                "collector telemetry metrics reader should exist when metric level is not "
                "none");
        for (size_t i = 0; i < metrics->readers.count; i++) {
            bool is_served = readers[i].has_pull && readers[i].pull.exporter.has_prometheus;
            struct path path = {.parent = &key.path, .index = i};
            if (is_served && !service->has_metrics_reader)
                use_reader(&readers[i].pull.exporter.prometheus, service);
            else if (is_served || !readers[i].has_pull) /* other kinds are reported by their rows */
                loader_warning(
                    loader, key.node->entries[i].value->position, &path,
                    "found another reader, which has no effect here; only the first pull "
                    "reader with a Prometheus exporter is served");
        }
    }
    find_key(&key, site, node, "metrics", "views");
    bool has_views = key.node != NULL && key.node->kind == NODE_LIST;
    if (has_views && service->metrics_level != METRICS_DETAILED)
        loader_problem(site->loader, key.node->position, &key.path,
                       "found views at a level below detailed; views can only be set at level "
                       "detailed");
    service->has_metrics_reader &= service->metrics_level != METRICS_NONE;
}

enum { DEFAULTS = 3, UUID_TEXT_BYTES = 37 };

struct attributes {
    struct loader *loader;
    size_t count;
    struct config_pair *pairs; /* room for the defaults and all that is written */
};

/* RFC 9562 version 4. An identity, not a secret: without entropy its random bits are zero. */
static const char *random_uuid(struct loader *loader)
{
    uint32_t words[4];
    char *text = loader_zalloc(loader, UUID_TEXT_BYTES);
    if (getrandom(words, sizeof(words), GRND_NONBLOCK) != (ssize_t)sizeof(words))
        memset(words, 0, sizeof(words));
    snprintf(text, UUID_TEXT_BYTES, "%08x-%04x-4%03x-%04x-%04x%08x", words[0], words[1] >> 16,
             words[1] & 0xfff, 0x8000 | (words[2] >> 16 & 0x3fff), words[2] & 0xffff, words[3]);
    return text;
}

/* value NULL drops the attribute. */
static void set(struct attributes *attributes, const char *key, const char *value)
{
    struct config_pair *pair = NULL;
    for (size_t i = 0; i < attributes->count; i++)
        if (strcmp(attributes->pairs[i].key, key) == 0) {
            pair = &attributes->pairs[i];
            break;
        }
    if (value == NULL && pair != NULL)
        *pair = attributes->pairs[--attributes->count];
    else if (value != NULL && pair != NULL)
        pair->value = value;
    else if (value != NULL)
        attributes->pairs[attributes->count++] = (struct config_pair){.key = key, .value = value};
}

/* Numbers and booleans are taken as written. False: reported. */
static bool take_text(const struct site *site, const struct path *path, const struct node *node,
                      const char **ret_text)
{
    *ret_text = NULL;
    if (node == NULL || node->kind == NODE_NULL || node->kind == NODE_BROKEN)
        return true;
    *ret_text = node->verbatim != NULL ? node->verbatim : node->text;
    if (node->kind != NODE_LIST && node->kind != NODE_MAP)
        return true;
    loader_problem(site->loader, node->position, path, "found %s, expected a string",
                   node_describe(node).text);
    return false;
}

static void check_kind(const struct site *site, const struct path *path,
                       const struct node *resource, const char *key, enum node_kind kind)
{
    struct path inner = {.parent = path, .key = key};
    const struct node *node = node_value(resource, key);
    if (node == NULL || node->kind == NODE_NULL || node->kind == NODE_BROKEN)
        return;
    if (node->kind == kind || (kind == NODE_TEXT && decode_text_of(node) != NULL))
        loader_warning(site->loader, node->position, &inner,
                       "found a key that has no effect here: resources only have attributes");
    else
        loader_problem(site->loader, node->position, &inner, "found %s, expected %s",
                       node_describe(node).text, kind == NODE_MAP ? "a map" : "a string");
}

/* Attributes are given as attributes: [{name, value}], or in the older form as a map of strings. */
static void resolve_resource(const struct site *site, const struct node *telemetry,
                             struct config_service *service)
{
    const struct node *resource = node_value(telemetry, "resource");
    const struct node *list = node_value(resource, "attributes");
    struct path path = {.parent = site->path, .key = "resource"};
    struct path list_path = {.parent = &path, .key = "attributes"};
    size_t written = (resource != NULL ? resource->count : 0) + (list != NULL ? list->count : 0);
    struct attributes attributes = {.loader = site->loader};
    attributes.pairs =
        loader_zalloc(site->loader, (DEFAULTS + written) * sizeof(*attributes.pairs));
    set(&attributes, "service.name", "spanflame");
    set(&attributes, "service.version", SPANFLAME_VERSION);
    set(&attributes, "service.instance.id", random_uuid(site->loader));
    static const char *const keys[] = {"attributes", "attributes_list", "schema_url", "detectors",
                                       "detection/development"};
    bool is_declarative = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        is_declarative |= node_find(resource, keys[i]) != NULL;
    if (is_declarative) {
        struct path other = {.parent = &path, .key = "attributes_list"};
        const struct node *others = node_value(resource, other.key);
        check_kind(site, &path, resource, "schema_url", NODE_TEXT);
        check_kind(site, &path, resource, "detectors", NODE_MAP);
        if (others != NULL && others->kind != NODE_NULL && others->kind != NODE_BROKEN)
            loader_problem(site->loader, others->position, &other,
                           "resource::attributes_list is not currently supported, please use "
                           "resource::attributes");
        if (list != NULL && list->kind != NODE_LIST && list->kind != NODE_NULL &&
            list->kind != NODE_BROKEN)
            loader_problem(site->loader, list->position, &list_path,
                           "found %s, expected a list of {name: …, value: …}",
                           node_describe(list).text);
    } else if (resource != NULL && resource->kind != NODE_MAP && resource->kind != NODE_NULL &&
               resource->kind != NODE_BROKEN) {
        loader_problem(site->loader, resource->position, &path, "found %s, expected a map",
                       node_describe(resource).text);
    }
    for (size_t i = 0; list != NULL && list->kind == NODE_LIST && i < list->count; i++) {
        const char *text;
        const struct node *element = list->entries[i].value;
        const struct node *name = node_value(element, "name");
        struct path inner = {.parent = &list_path, .index = i};
        if (name == NULL || decode_text_of(name) == NULL) {
            if (element->kind != NODE_BROKEN)
                loader_problem(site->loader, element->position, &inner,
                               "found %s, expected a map with the keys name and value",
                               node_describe(element).text);
            continue;
        }
        if (take_text(site, &inner, node_value(element, "value"), &text))
            set(&attributes, decode_text_of(name), text);
    }
    bool is_map = !is_declarative && resource != NULL && resource->kind == NODE_MAP;
    for (size_t i = 0; is_map && i < resource->count; i++) {
        const char *text;
        const struct node *value = resource->entries[i].value;
        struct path inner = {.parent = &path, .key = resource->entries[i].key};
        if (decode_text_of(value) == NULL && value->kind != NODE_BROKEN)
            loader_problem(site->loader, value->position, &inner,
                           "found %s, expected a string (put it in quotes) or null",
                           node_describe(value).text);
        else if (take_text(site, &inner, value, &text))
            set(&attributes, resource->entries[i].key, text);
    }
    service->resource = (struct config_pairs){.count = attributes.count, .pairs = attributes.pairs};
}

void service_keys_load(struct loader *loader, const struct node_entry *service,
                       struct config_service *ret_service)
{
    struct path root = {.parent = NULL};
    struct path path = {.parent = &root, .key = "service"};
    struct path telemetry_path = {.parent = &path, .key = "telemetry"};
    struct config_field section_row = {
        .type = CONFIG_TYPE_SECTION, .presence = CONFIG_ALWAYS, .fields = service_keys_fields};
    struct site site = {.loader = loader, .path = &path};
    struct service_section section = {.lanes = 0};
    struct telemetry_key key;
    const struct telemetry_logs *logs = &section.telemetry.logs;
    const struct node *node = service != NULL ? service->value : NULL;
    const struct node *telemetry = node_value(node, "telemetry");
    decode_defaults(loader, service_keys_fields, &section);
    if (service != NULL && node->kind != NODE_BROKEN) {
        site.position = service->position;
        decode_section(&site, &section_row, node, &section);
    }
    ret_service->lanes = section.lanes;
    ret_service->budget_mib = section.budget_mib;
    ret_service->drain_timeout_ns = section.drain_timeout_ns;
    ret_service->core_dumps = section.core_dumps;
    site.path = &telemetry_path;
    find_key(&key, &site, telemetry, "logs", "level");
    ret_service->log_level = take_level(&key, &log_levels);
    ret_service->log_encoding = logs->encoding;
    ret_service->log_disable_caller = logs->disable_caller;
    ret_service->log_is_sampled = logs->is_sampled;
    ret_service->log_sampling_tick_ns = logs->sampling.tick_ns;
    ret_service->log_sampling_initial = logs->sampling.initial;
    ret_service->log_sampling_thereafter = logs->sampling.thereafter;
    ret_service->log_output_paths = logs->output_paths;
    find_key(&key, &site, telemetry, "logs", "output_paths");
    if (logs->output_paths.count > LOG_OUTPUTS_MAX && key.node != NULL)
        loader_problem(loader, key.node->position, &key.path,
                       "found %zu paths, expected at most %d", logs->output_paths.count,
                       LOG_OUTPUTS_MAX);
    resolve_metrics(&site, telemetry, &section.telemetry.metrics, ret_service);
    find_key(&key, &site, telemetry, "traces", "level");
    take_level(&key, &metrics_levels);
    resolve_resource(&site, telemetry, ret_service);
}
