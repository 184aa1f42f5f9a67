/* SPDX-License-Identifier: Apache-2.0 */
/* Makes jobs and targets ready. Runs on the lane that creates them. */
#include "receivers/prometheus/scrape_target.h"

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Jobs */

static char *accept_header(const struct scrape_settings *settings)
{
    static const char *const types[SCRAPE_PROTOCOLS] = {
        [SCRAPE_PROTOBUF] = "", /* not read, so not asked for */
        [SCRAPE_TEXT_0_0_4] = "text/plain;version=0.0.4",
        [SCRAPE_TEXT_1_0_0] = "text/plain;version=1.0.0",
        [SCRAPE_OPENMETRICS_0_0_1] = "application/openmetrics-text;version=0.0.1",
        [SCRAPE_OPENMETRICS_1_0_0] = "application/openmetrics-text;version=1.0.0",
    };
    static const char *const escapings[] = {"allow-utf-8", "allow-utf-8", "underscores", "dots",
                                            "values"};
    enum { ENTRY_BYTES_MAX = 160 };
    size_t room = (SCRAPE_PROTOCOLS + 1) * (size_t)ENTRY_BYTES_MAX;
    char *header = mem_alloc(room);
    size_t size = 0;
    size_t weight = SCRAPE_PROTOCOLS + 1;
    for (size_t i = 0; i < settings->protocols_count; i++) {
        enum scrape_protocol protocol = settings->protocols[i];
        if (protocol == SCRAPE_PROTOBUF)
            continue;
        bool has_escaping = protocol == SCRAPE_TEXT_1_0_0 || protocol == SCRAPE_OPENMETRICS_1_0_0;
        size += (size_t)snprintf(header + size, room - size, "%s%s%s;q=0.%zu,", types[protocol],
                                 has_escaping ? ";escaping=" : "",
                                 has_escaping ? escapings[settings->limits.name_escaping] : "",
                                 weight--);
    }
    snprintf(header + size, room - size, "*/*;q=0.%zu", weight);
    return header;
}

static void add_header(struct scrape_job *job, const char *name, const char *value)
{
    if (job->headers_count < SCRAPE_HEADERS_MAX)
        job->headers[job->headers_count++] = (struct config_pair){.key = name, .value = value};
}

/* {name: {values: [...], secrets: [...]}} */
static bool add_configured_headers(struct scrape_job *job, struct error *error)
{
    const struct config_value *map = job->config->http_headers;
    if (map == NULL || map->type == CONFIG_VALUE_NULL)
        return true;
    bool is_valid = map->type == CONFIG_VALUE_MAP;
    for (size_t i = 0; is_valid && i < map->count; i++) {
        const struct config_value *header = &map->items[i];
        is_valid = header->type == CONFIG_VALUE_MAP;
        for (size_t k = 0; is_valid && k < header->count; k++) {
            const struct config_value *values = &header->items[k];
            is_valid =
                values->type == CONFIG_VALUE_LIST &&
                (strcmp(header->keys[k], "values") == 0 || strcmp(header->keys[k], "secrets") == 0);
            for (size_t n = 0; is_valid && n < values->count; n++) {
                is_valid = values->items[n].type == CONFIG_VALUE_TEXT;
                if (is_valid)
                    add_header(job, map->keys[i], values->items[n].text);
            }
        }
    }
    if (is_valid && job->headers_count < SCRAPE_HEADERS_MAX)
        return true;
    error_set(error, is_valid ? "too many headers"
                              : "each header is a map of values and secrets, which are lists");
    return error_at(error, "http_headers");
}

static void take_tls(struct scrape_job *job)
{
    const struct scrape_tls_config *from = &job->config->tls;
    job->tls = (struct tls_client_config){
        .common =
            {
                .ca_file = from->ca_file,
                .ca_pem = from->ca_pem,
                .cert_file = from->cert_file,
                .cert_pem = from->cert_pem,
                .key_file = from->key_file,
                .key_pem = from->key_pem,
                .min_version = scrape_tls_version(from->min_version),
                .max_version = scrape_tls_version(from->max_version),
            },
        .insecure_skip_verify = from->insecure_skip_verify,
        .server_name_override = from->server_name,
    };
}

static bool make_rules(const char *key, const struct config_sections *sections,
                       enum relabel_names names, struct relabel_rules **ret_rules,
                       struct error *error)
{
    if (sections->count == 0)
        return true;
    struct relabel_config *configs = scrape_relabel_configs(sections);
    *ret_rules = relabel_rules_create(configs, sections->count, names, error);
    mem_free(configs);
    return *ret_rules != NULL || error_at(error, key);
}

struct scrape_job *scrape_job_create(const struct scrape_global_config *global,
                                     const struct scrape_job_config *config, struct error *error)
{
    struct scrape_job *job = mem_zalloc(sizeof(*job));
    job->config = config;
    take_tls(job);
    if (!scrape_settings_of(&global->limits, config, &job->settings, error) ||
        !make_rules("relabel_configs", &config->relabel_configs, job->settings.names, &job->rules,
                    error) ||
        !make_rules("metric_relabel_configs", &config->metric_relabel_configs, job->settings.names,
                    &job->metric_rules, error)) {
        scrape_job_destroy(job);
        return NULL;
    }
    bool is_openmetrics = strncmp(config->fallback_protocol, "OpenMetrics", 11) == 0;
    job->fallback = is_openmetrics ? EXPOSITION_PROTOCOL_OPENMETRICS : EXPOSITION_PROTOCOL_TEXT;
    job->accept = accept_header(&job->settings);
    add_header(job, "Accept", job->accept);
    add_header(job, "Accept-Encoding", config->enable_compression ? "gzip" : "identity");
    if (add_configured_headers(job, error))
        return job;
    scrape_job_destroy(job);
    return NULL;
}

void scrape_job_destroy(struct scrape_job *job)
{
    if (job == NULL)
        return;
    relabel_rules_destroy(job->rules);
    relabel_rules_destroy(job->metric_rules);
    mem_free(job->accept);
    mem_free(job->basic_auth);
    mem_free(job);
}

/* Targets */

static void set(struct relabel_labels *labels, const char *name, const char *value)
{
    relabel_labels_set(labels, slice_of_text(name), slice_of_text(value));
}

static void set_unless_set(struct relabel_labels *labels, const char *name, const char *value)
{
    if (relabel_labels_get(labels, slice_of_text(name)).size == 0)
        set(labels, name, value);
}

static void set_params(struct relabel_labels *labels, const struct config_value *params)
{
    if (params == NULL || params->type != CONFIG_VALUE_MAP)
        return;
    for (size_t i = 0; i < params->count; i++) {
        char name[256];
        snprintf(name, sizeof(name), "__param_%s", params->keys[i]);
        struct slice copy = relabel_labels_copy(labels, slice_of_text(name));
        if (params->items[i].count > 0 && relabel_labels_get(labels, copy).size == 0)
            relabel_labels_set(labels, copy, slice_of_text(params->items[i].items[0].text));
    }
}

/* The labels that a target begins with; interval and timeout live as long as the labels do. */
static void discover(const struct scrape_job *job, const char *address,
                     const struct config_pairs *more, struct relabel_labels *labels)
{
    char text[SCRAPE_DURATION_BYTES_MAX];
    relabel_labels_reset(labels);
    for (size_t i = 0; i < more->count; i++)
        relabel_labels_add(labels, slice_of_text(more->pairs[i].key),
                           slice_of_text(more->pairs[i].value));
    set(labels, "__address__", address);
    set_unless_set(labels, "job", job->config->job_name);
    scrape_duration_print(job->settings.interval_ns, text);
    struct slice interval = relabel_labels_copy(labels, slice_of_text(text));
    scrape_duration_print(job->settings.timeout_ns, text);
    struct slice timeout = relabel_labels_copy(labels, slice_of_text(text));
    if (relabel_labels_get(labels, slice_of_text("__scrape_interval__")).size == 0)
        relabel_labels_set(labels, slice_of_text("__scrape_interval__"), interval);
    if (relabel_labels_get(labels, slice_of_text("__scrape_timeout__")).size == 0)
        relabel_labels_set(labels, slice_of_text("__scrape_timeout__"), timeout);
    set_unless_set(labels, "__metrics_path__", job->config->metrics_path);
    set_unless_set(labels, "__scheme__", job->config->scheme == 0 ? "http" : "https");
    set_params(labels, job->config->params);
}

/* A label as text that ends with NUL; free with mem_free. */
static char *text_of(const struct relabel_labels *labels, const char *name)
{
    struct slice value = relabel_labels_get(labels, slice_of_text(name));
    char *text = mem_alloc(value.size + 1);
    if (value.size > 0)
        memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    return text;
}

static bool read_duration(const struct relabel_labels *labels, const char *name, uint64_t *ret_ns,
                          struct error *error)
{
    char *text = text_of(labels, name);
    bool is_valid = scrape_duration_parse(text, ret_ns) && *ret_ns != 0;
    if (!is_valid)
        error_set(error, "relabeling left %s as \"%s\": a duration above 0 is needed", name, text);
    mem_free(text);
    return is_valid;
}

static void append(char **text, size_t *size, const char *more, size_t more_size)
{
    *text = mem_resize(*text, *size + more_size + 1);
    memcpy(*text + *size, more, more_size);
    *size += more_size;
    (*text)[*size] = '\0';
}

static const char kept_in_query[] = "-_.~";

/* As Go's net/url escapes paths, and queries, in which a blank is a plus. */
static void append_escaped(char **text, size_t *size, struct slice part, const char *kept)
{
    for (size_t i = 0; i < part.size; i++) {
        uint8_t c = part.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        char escaped[4];
        if (is_plain || (c != '\0' && strchr(kept, c) != NULL)) {
            append(text, size, (const char *)&part.data[i], 1);
        } else if (c == ' ' && kept == kept_in_query) {
            append(text, size, "+", 1);
        } else {
            snprintf(escaped, sizeof(escaped), "%%%02X", c);
            append(text, size, escaped, 3);
        }
    }
}

static void append_param(char **text, size_t *size, struct slice key, struct slice value)
{
    append(text, size, strchr(*text, '?') == NULL ? "?" : "&", 1);
    append_escaped(text, size, key, kept_in_query);
    append(text, size, "=", 1);
    append_escaped(text, size, value, kept_in_query);
}

static const struct config_value *find_param(const struct config_value *params, struct slice key)
{
    if (params != NULL && params->type == CONFIG_VALUE_MAP)
        for (size_t i = 0; i < params->count; i++)
            if (slice_equal_text(key, params->keys[i]))
                return &params->items[i];
    return NULL;
}

/* The first value of a parameter is its label's, the others are the configuration's. Labels are
 * sorted by name, as parameters are in the URL. */
static void append_params(char **text, size_t *size, const struct scrape_job *job,
                          const struct relabel_labels *labels)
{
    static const char prefix[] = "__param_";
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!slice_begins_with(label->name, prefix))
            continue;
        struct slice key =
            slice_of(label->name.data + strlen(prefix), label->name.size - strlen(prefix));
        append_param(text, size, key, label->value);
        const struct config_value *values = find_param(job->config->params, key);
        for (size_t k = 1; values != NULL && k < values->count; k++)
            append_param(text, size, key, slice_of_text(values->items[k].text));
    }
}

static char *make_url(const struct scrape_job *job, const struct relabel_labels *labels)
{
    char *scheme = text_of(labels, "__scheme__");
    char *address = text_of(labels, "__address__");
    struct slice path = relabel_labels_get(labels, slice_of_text("__metrics_path__"));
    char *url = mem_copy_text("");
    size_t size = 0;
    append(&url, &size, scheme, strlen(scheme));
    append(&url, &size, "://", 3);
    append(&url, &size, address, strlen(address));
    if (path.size > 0 && path.data[0] != '/')
        append(&url, &size, "/", 1);
    append_escaped(&url, &size, path, "-_.~$&+,/:;=@");
    append_params(&url, &size, job, labels);
    mem_free(scheme);
    mem_free(address);
    return url;
}

static struct slice find_label(const struct scrape_target *target, const char *name)
{
    for (size_t i = 0; i < target->labels_count; i++)
        if (slice_equal_text(target->labels[i].name, name))
            return target->labels[i].value;
    return (struct slice){.size = 0};
}

/* Labels that begin with __ do not reach the series. All texts lie in one block behind the list. */
static void keep_labels(struct scrape_target *target, const struct relabel_labels *labels)
{
    size_t text_bytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (slice_begins_with(label->name, "__"))
            continue;
        text_bytes += label->name.size + label->value.size;
        count++;
    }
    target->labels = mem_alloc(count * sizeof(*target->labels) + text_bytes);
    uint8_t *text = (uint8_t *)(target->labels + count);
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (slice_begins_with(label->name, "__"))
            continue;
        struct prometheus_label *kept = &target->labels[target->labels_count++];
        kept->name = slice_of(memcpy(text, label->name.data, label->name.size), label->name.size);
        text += label->name.size;
        kept->value =
            slice_of(memcpy(text, label->value.data, label->value.size), label->value.size);
        text += label->value.size;
    }
}

static uint64_t hash_target(const struct scrape_target *target)
{
    uint64_t hash = XXH3_64bits(target->url, strlen(target->url));
    for (size_t i = 0; i < target->labels_count; i++) {
        struct slice name = target->labels[i].name;
        struct slice value = target->labels[i].value;
        hash = XXH3_64bits_withSeed(name.data, name.size, hash);
        hash = XXH3_64bits_withSeed(value.data, value.size, hash);
    }
    return hash;
}

static bool check_address(const struct relabel_labels *labels, struct error *error)
{
    struct slice address = relabel_labels_get(labels, slice_of_text("__address__"));
    if (labels->has_overflowed)
        return error_set(error, "relabeling makes too many labels");
    if (address.size == 0)
        return error_set(error, "relabeling left no address: __address__ is empty");
    if (memchr(address.data, '/', address.size) != NULL)
        return error_set(error, "\"%.*s\" is no address: write host:port", (int)address.size,
                         (const char *)address.data);
    return true;
}

struct scrape_target *scrape_target_create(const struct scrape_job *job, const char *address,
                                           const struct config_pairs *labels,
                                           struct relabel_labels *work, struct error *error)
{
    uint64_t interval_ns;
    uint64_t timeout_ns;
    error->text[0] = '\0';
    discover(job, address, labels, work);
    if ((job->rules != NULL && !relabel_rules_apply(job->rules, work)) ||
        !check_address(work, error) ||
        !read_duration(work, "__scrape_interval__", &interval_ns, error) ||
        !read_duration(work, "__scrape_timeout__", &timeout_ns, error))
        return NULL;
    if (timeout_ns > interval_ns) {
        error_set(error, "relabeling left __scrape_timeout__ longer than __scrape_interval__");
        return NULL;
    }
    if (relabel_labels_get(work, slice_of_text("instance")).size == 0)
        relabel_labels_set(work, slice_of_text("instance"),
                           relabel_labels_get(work, slice_of_text("__address__")));
    struct scrape_target *target = mem_zalloc(sizeof(*target));
    target->job = job;
    target->interval_ns = interval_ns;
    target->timeout_ns = timeout_ns;
    target->url = make_url(job, work);
    keep_labels(target, work);
    target->job_name = find_label(target, "job");
    target->instance = find_label(target, "instance");
    target->scheme = slice_of_text(job->config->scheme == 0 ? "http" : "https");
    target->hash = hash_target(target);
    return target;
}

void scrape_target_destroy(struct scrape_target *target)
{
    if (target == NULL)
        return;
    mem_free(target->labels);
    mem_free(target->url);
    mem_free(target);
}
