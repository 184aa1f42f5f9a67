/* SPDX-License-Identifier: Apache-2.0 */
/* Samples into metrics. A sample finds its resource (job and instance), its scope (labels
 * otel_scope_…), its family (name, TYPE) and in it the group of its attributes, which becomes one
 * data point. Everything lies in one arena until the request is written, since a later sample may
 * complete an earlier point. */
#include "receivers/prometheus/scraped_metrics.h"
#include "receivers/prometheus/scraped_parts.h"
#include "src/base/random.h"

#include <arpa/inet.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Fields of opentelemetry/proto/metrics/v1/metrics.proto. */
enum {
    EXEMPLAR_TIME = 2,
    EXEMPLAR_VALUE = 3,
    EXEMPLAR_SPAN_ID = 4,
    EXEMPLAR_TRACE_ID = 5,
    EXEMPLAR_ATTRIBUTES = 7,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
};

static const struct prometheus_label *label_at(const struct scraped_sample *sample, size_t i)
{
    return &sample->labels->labels[i].label;
}

void *scraped_take(struct scraped_metrics *metrics, size_t size)
{
    void *memory = arena_try_alloc(&metrics->arena, size);
    if (memory == NULL)
        metrics->has_failed = true;
    else
        memset(memory, 0, size);
    return memory;
}

static struct slice copy(struct scraped_metrics *metrics, struct slice text)
{
    uint8_t *to = text.size > 0 ? arena_try_alloc(&metrics->arena, text.size) : NULL;
    metrics->has_failed |= text.size > 0 && to == NULL;
    if (to == NULL)
        return (struct slice){.size = 0};
    memcpy(to, text.data, text.size);
    return slice_of(to, text.size);
}

static uint64_t hash_of(struct slice text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text.data, text.size, seed ^ random_seed());
}

/* Labels and names */

/* The name without the suffix that a sample has within its family. */
static struct slice without_suffix(struct slice name)
{
    static const char *const suffixes[] = {"_bucket", "_count", "_sum",
                                           "_total",  "_info",  "_created"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (ends_with(name, suffixes[i]) && name.size > strlen(suffixes[i]))
            return slice_of(name.data, name.size - strlen(suffixes[i]));
    return name;
}

/* What the labels of a sample mean. */
struct sorted_labels {
    struct slice name;
    struct slice job;
    struct slice instance;
    struct slice scope_name;
    struct slice scope_version;
    struct slice scope_schema_url;
    uint64_t scope_hash; /* of other labels otel_scope_…; 0: none */
};

static const char scope_prefix[] = "otel_scope_";

static bool is_of_scope(struct slice name)
{
    return name.size > 0 && name.data[0] == 'o' && slice_begins_with(name, scope_prefix);
}

static struct sorted_labels sort_labels(const struct scraped_sample *sample)
{
    struct sorted_labels sorted = {.name.size = 0};
    for (size_t i = 0; i < sample->labels->count; i++) {
        const struct prometheus_label *label = label_at(sample, i);
        if (slice_equal_text(label->name, "__name__"))
            sorted.name = label->value;
        else if (slice_equal_text(label->name, "job"))
            sorted.job = label->value;
        else if (slice_equal_text(label->name, "instance"))
            sorted.instance = label->value;
        else if (!is_of_scope(label->name))
            continue;
        else if (slice_equal_text(label->name, "otel_scope_name"))
            sorted.scope_name = label->value;
        else if (slice_equal_text(label->name, "otel_scope_version"))
            sorted.scope_version = label->value;
        else if (slice_equal_text(label->name, "otel_scope_schema_url"))
            sorted.scope_schema_url = label->value;
        else
            sorted.scope_hash = hash_of(label->value, hash_of(label->name, sorted.scope_hash)) | 1;
    }
    return sorted;
}

static bool is_bound(enum metric_kind kind, struct slice name)
{
    return (kind == METRIC_HISTOGRAM && slice_equal_text(name, "le")) ||
           (kind == METRIC_SUMMARY && slice_equal_text(name, "quantile"));
}

/* Labels that say where a series comes from, or which part of the point it is, are no attributes.
 */
static bool is_attribute(enum metric_kind kind, struct slice name)
{
    static const char *const others[] = {"__name__", "instance", "job", "__scheme__",
                                         "__metrics_path__"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (slice_equal_text(name, others[i]))
            return false;
    return !is_bound(kind, name) && !is_of_scope(name);
}

/* Metadata */

/* What is said of the metrics that each scrape adds. */
static const struct {
    const char *name;
    const char *unit;
    const char *help;
} report_metadata[] = {
    {"up", "", "The scraping was successful"},
    {"scrape_duration_seconds", "seconds", "Duration of the scrape"},
    {"scrape_samples_scraped", "", "The number of samples the target exposed"},
    {"scrape_series_added", "", "The approximate number of new series in this scrape"},
    {"scrape_samples_post_metric_relabeling", "",
     "The number of samples remaining after metric relabeling was applied"},
};

static struct metadata *find_metadata(const struct scraped_metrics *metrics, struct slice name)
{
    size_t at = 0;
    uint64_t hash = hash_of(name, 0);
    struct metadata *metadata;
    while ((metadata = hash_table_next(&metrics->metadata, hash, &at)) != NULL)
        if (slice_equal(metadata->name, name))
            return metadata;
    return NULL;
}

/* NULL: no memory, or this scrape has said what the family is and an earlier one does not count. */
static struct metadata *metadata_of(struct scraped_metrics *metrics, struct slice name)
{
    struct metadata *metadata = find_metadata(metrics, name);
    if (metadata != NULL)
        return metadata->is_former == metrics->is_former ? metadata : NULL;
    metadata = scraped_take(metrics, sizeof(*metadata));
    if (metadata == NULL)
        return NULL;
    metadata->name = copy(metrics, name);
    metadata->type = EXPOSITION_METRIC_UNKNOWN;
    metadata->is_former = metrics->is_former;
    if (metrics->has_failed || !hash_table_add(&metrics->metadata, hash_of(name, 0), metadata)) {
        metrics->has_failed = true;
        return NULL;
    }
    return metadata;
}

void scraped_metrics_begin_former(struct scraped_metrics *metrics)
{
    metrics->is_former = true;
}

void scraped_metrics_describe(struct scraped_metrics *metrics, const struct exposition_entry *entry)
{
    struct metadata *metadata = metadata_of(metrics, entry->name);
    if (metadata == NULL)
        return;
    if (entry->kind == EXPOSITION_ENTRY_TYPE)
        metadata->type = entry->type;
    else if (entry->kind == EXPOSITION_ENTRY_HELP)
        metadata->help = copy(metrics, entry->text);
    else if (entry->kind == EXPOSITION_ENTRY_UNIT)
        metadata->unit = copy(metrics, entry->text);
}

/* Name and metadata of the family that this metric begins. */
static struct slice name_family(struct scraped_metrics *metrics, struct slice metric,
                                struct metadata *ret_metadata)
{
    for (size_t i = 0; i < sizeof(report_metadata) / sizeof(report_metadata[0]); i++) {
        if (!slice_equal_text(metric, report_metadata[i].name))
            continue;
        *ret_metadata = (struct metadata){
            .name = slice_of_text(report_metadata[i].name),
            .type = EXPOSITION_METRIC_GAUGE,
            .help = slice_of_text(report_metadata[i].help),
            .unit = slice_of_text(report_metadata[i].unit),
        };
        return ret_metadata->name;
    }
    const struct metadata *metadata = find_metadata(metrics, metric);
    if (metadata != NULL) {
        *ret_metadata = *metadata;
        return metadata->name;
    }
    struct slice family = without_suffix(metric);
    metadata = find_metadata(metrics, family);
    /* A single value has no parts: foo_count is no part of a gauge foo. */
    if (metadata == NULL || metadata->type == EXPOSITION_METRIC_GAUGE ||
        metadata->type == EXPOSITION_METRIC_UNKNOWN) {
        struct slice name = copy(metrics, metric);
        *ret_metadata = (struct metadata){.name = name, .type = EXPOSITION_METRIC_UNKNOWN};
        return name;
    }
    *ret_metadata = *metadata;
    if (metadata->type != EXPOSITION_METRIC_COUNTER)
        return metadata->name;
    if (!ends_with(metric, "_created"))
        return copy(metrics, metric);
    /* The counter itself may come later. */
    uint8_t *name = scraped_take(metrics, family.size + strlen("_total"));
    if (name == NULL)
        return family;
    memcpy(name, family.data, family.size);
    memcpy(name + family.size, "_total", strlen("_total"));
    return slice_of(name, family.size + strlen("_total"));
}

static void set_kind(struct scraped_family *family)
{
    switch (family->metadata.type) {
    case EXPOSITION_METRIC_COUNTER:
        family->kind = METRIC_SUM;
        family->is_monotonic = true;
        break;
    case EXPOSITION_METRIC_INFO:
    case EXPOSITION_METRIC_STATE_SET:
        family->kind = METRIC_SUM;
        break;
    case EXPOSITION_METRIC_HISTOGRAM:
        family->kind = METRIC_HISTOGRAM;
        break;
    case EXPOSITION_METRIC_SUMMARY:
        family->kind = METRIC_SUMMARY;
        break;
    case EXPOSITION_METRIC_GAUGE_HISTOGRAM:
        family->is_empty = true;
        family->kind = METRIC_GAUGE;
        break;
    case EXPOSITION_METRIC_GAUGE:
    case EXPOSITION_METRIC_UNKNOWN:
        family->kind = METRIC_GAUGE;
        break;
    }
}

/* Resources */

/* The host of "host:port" (Go's net.SplitHostPort), and the port; without a port the whole text. */
static struct slice split_host(struct slice instance, struct slice *ret_port)
{
    *ret_port = (struct slice){.size = 0};
    const uint8_t *colon = NULL;
    size_t colons = 0;
    for (size_t i = 0; i < instance.size; i++)
        if (instance.data[i] == ':') {
            colon = instance.data + i;
            colons++;
        }
    if (colon == NULL)
        return instance;
    struct slice host = slice_of(instance.data, (size_t)(colon - instance.data));
    bool is_bracketed = host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']';
    struct slice inner = is_bracketed ? slice_of(host.data + 1, host.size - 2) : host;
    bool has_brackets = inner.size > 0 && (memchr(inner.data, '[', inner.size) != NULL ||
                                           memchr(inner.data, ']', inner.size) != NULL);
    if (has_brackets || (colons > 1 && !is_bracketed))
        return instance;
    *ret_port = slice_of(colon + 1, instance.size - host.size - 1);
    if (memchr(colon + 1, '[', ret_port->size) != NULL ||
        memchr(colon + 1, ']', ret_port->size) != NULL) {
        *ret_port = (struct slice){.size = 0};
        return instance;
    }
    return inner;
}

/* Whether the host means something beyond this machine: not loopback, not 0.0.0.0. */
static bool tells_a_host(struct slice host)
{
    char text[INET6_ADDRSTRLEN];
    if (slice_equal_text(host, "localhost"))
        return false;
    if (host.size >= sizeof(text))
        return true;
    memcpy(text, host.data, host.size);
    text[host.size] = '\0';
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) != 127 && v4.s_addr != 0;
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return true;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        static const uint8_t none[4];
        return v6.s6_addr[12] != 127 && memcmp(v6.s6_addr + 12, none, sizeof(none)) != 0;
    }
    return !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_UNSPECIFIED(&v6);
}

/* Sets the key, or adds it at the end. Both are copied. */
static void put_attribute(struct scraped_metrics *metrics, struct attribute_list *list,
                          struct slice key, struct slice value)
{
    if (list->first == NULL)
        list->id = ++metrics->lists;
    const uint64_t hash = hash_of(key, hash_of(slice_of(&list->id, sizeof(list->id)), 4));
    struct attribute *attribute;
    size_t at = 0;
    while ((attribute = hash_table_next(&metrics->attributes, hash, &at)) != NULL) {
        if (attribute->list != list->id || !slice_equal(attribute->key, key))
            continue;
        attribute->value = copy(metrics, value);
        return;
    }
    attribute = scraped_take(metrics, sizeof(*attribute));
    if (attribute == NULL)
        return;
    attribute->key = copy(metrics, key);
    attribute->value = copy(metrics, value);
    attribute->list = list->id;
    if (!hash_table_add(&metrics->attributes, hash, attribute)) {
        metrics->has_failed = true;
        return;
    }
    *(list->last != NULL ? &list->last->next : &list->first) = attribute;
    list->last = attribute;
}

static void put_text(struct scraped_metrics *metrics, struct attribute_list *list, const char *key,
                     struct slice value)
{
    put_attribute(metrics, list, slice_of_text(key), value);
}

static struct scraped_resource *resource_create(struct scraped_metrics *metrics, struct slice job,
                                                struct slice instance)
{
    struct scraped_resource *resource = scraped_take(metrics, sizeof(*resource));
    if (resource == NULL)
        return NULL;
    resource->job = copy(metrics, job);
    resource->instance = copy(metrics, instance);
    struct slice port;
    struct slice host = split_host(instance, &port);
    struct attribute_list *attributes = &resource->attributes;
    put_text(metrics, attributes, "service.name", job);
    if (tells_a_host(host))
        put_text(metrics, attributes, "server.address", host);
    put_text(metrics, attributes, "service.instance.id", instance);
    put_text(metrics, attributes, "server.port", port);
    put_text(metrics, attributes, "url.scheme", metrics->settings.scheme);
    *(metrics->last_resource != NULL ? &metrics->last_resource->next : &metrics->resources) =
        resource;
    metrics->last_resource = resource;
    return resource;
}

static struct scraped_resource *resource_of(struct scraped_metrics *metrics,
                                            const struct sorted_labels *labels)
{
    struct slice job = labels->job.size > 0 ? labels->job : metrics->settings.job;
    struct slice instance =
        labels->instance.size > 0 ? labels->instance : metrics->settings.instance;
    uint64_t hash = hash_of(instance, hash_of(job, 1));
    size_t at = 0;
    struct scraped_resource *resource;
    while ((resource = hash_table_next(&metrics->found_resources, hash, &at)) != NULL)
        if (slice_equal(resource->job, job) && slice_equal(resource->instance, instance))
            return resource;
    resource = resource_create(metrics, job, instance);
    if (resource == NULL || !hash_table_add(&metrics->found_resources, hash, resource)) {
        metrics->has_failed = true;
        return NULL;
    }
    return resource;
}

/* Scopes */

static struct scope *scope_of(struct scraped_metrics *metrics, struct scraped_resource *resource,
                              const struct sorted_labels *labels)
{
    uint64_t hash = hash_of(slice_of(&resource, sizeof(resource)), labels->scope_hash);
    hash = hash_of(labels->scope_name, hash);
    hash = hash_of(labels->scope_version, hash);
    hash = hash_of(labels->scope_schema_url, hash);
    size_t at = 0;
    struct scope *scope;
    while ((scope = hash_table_next(&metrics->scopes, hash, &at)) != NULL)
        if (scope->resource == resource && scope->attributes_hash == labels->scope_hash &&
            slice_equal(scope->name, labels->scope_name) &&
            slice_equal(scope->version, labels->scope_version) &&
            slice_equal(scope->schema_url, labels->scope_schema_url))
            return scope;
    scope = scraped_take(metrics, sizeof(*scope));
    if (scope == NULL)
        return NULL;
    scope->resource = resource;
    scope->name = copy(metrics, labels->scope_name);
    scope->version = copy(metrics, labels->scope_version);
    scope->schema_url = copy(metrics, labels->scope_schema_url);
    scope->attributes_hash = labels->scope_hash;
    if (!hash_table_add(&metrics->scopes, hash, scope)) {
        metrics->has_failed = true;
        return NULL;
    }
    *(resource->last_scope != NULL ? &resource->last_scope->next : &resource->scopes) = scope;
    resource->last_scope = scope;
    return scope;
}

/* Its labels otel_scope_… become the scope's attributes, the first time. */
static void take_scope_labels(struct scraped_metrics *metrics, struct scope *scope,
                              const struct scraped_sample *sample)
{
    static const char *const fields[] = {"otel_scope_name", "otel_scope_version",
                                         "otel_scope_schema_url"};
    if (scope->attributes_hash == 0 || scope->attributes.first != NULL)
        return;
    size_t prefix = strlen(scope_prefix);
    for (size_t i = 0; i < sample->labels->count; i++) {
        struct slice name = label_at(sample, i)->name;
        bool is_field = !is_of_scope(name);
        for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
            is_field |= slice_equal_text(name, fields[k]);
        if (!is_field)
            put_attribute(metrics, &scope->attributes,
                          slice_of(name.data + prefix, name.size - prefix),
                          label_at(sample, i)->value);
    }
}

static bool is_job_instance_or_name(struct slice name)
{
    return slice_equal_text(name, "job") || slice_equal_text(name, "instance") ||
           slice_equal_text(name, "__name__");
}

/* target_info: its labels are attributes of the resource. */
static void take_target_info(struct scraped_metrics *metrics, struct scraped_resource *resource,
                             const struct scraped_sample *sample)
{
    for (size_t i = 0; i < sample->labels->count; i++)
        if (!is_job_instance_or_name(label_at(sample, i)->name))
            put_attribute(metrics, &resource->attributes, label_at(sample, i)->name,
                          label_at(sample, i)->value);
}

/* otel_scope_info: its labels are attributes of the scope that it names. */
static void take_scope_info(struct scraped_metrics *metrics, struct scraped_resource *resource,
                            struct sorted_labels labels, const struct scraped_sample *sample)
{
    static const char *const fields[] = {"otel_scope_name", "otel_scope_version",
                                         "otel_scope_schema_url"};
    labels.scope_hash = 0;
    struct scope *scope = scope_of(metrics, resource, &labels);
    if (scope == NULL)
        return;
    scope->attributes = (struct attribute_list){.first = NULL};
    for (size_t i = 0; i < sample->labels->count; i++) {
        struct slice name = label_at(sample, i)->name;
        bool is_field = is_job_instance_or_name(name);
        for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
            is_field |= slice_equal_text(name, fields[k]);
        if (!is_field)
            put_attribute(metrics, &scope->attributes, name, label_at(sample, i)->value);
    }
}

/* Families */

static bool includes(const struct scraped_family *family, struct slice metric)
{
    if (family->kind == METRIC_SUM)
        return slice_equal(without_suffix(metric), family->metadata.name);
    if (family->kind == METRIC_GAUGE && !family->is_empty)
        return slice_equal(metric, family->name);
    return slice_equal(without_suffix(metric), family->name);
}

static uint64_t family_hash(const struct scope *scope, struct slice name)
{
    return hash_of(name, hash_of(slice_of(&scope, sizeof(scope)), 2));
}

/* The family of that name; with `including`, one that the metric belongs to. */
static struct scraped_family *find_family(const struct scraped_metrics *metrics,
                                          const struct scope *scope, struct slice name,
                                          const struct slice *including)
{
    size_t at = 0;
    uint64_t hash = family_hash(scope, name);
    struct scraped_family *family;
    while ((family = hash_table_next(&metrics->families, hash, &at)) != NULL)
        if (family->scope == scope && slice_equal(family->name, name) &&
            (including == NULL || includes(family, *including)))
            return family;
    return NULL;
}

static struct scraped_family *family_create(struct scraped_metrics *metrics, struct scope *scope,
                                            struct slice metric)
{
    struct scraped_family *family = scraped_take(metrics, sizeof(*family));
    if (family == NULL)
        return NULL;
    family->scope = scope;
    family->name = name_family(metrics, metric, &family->metadata);
    set_kind(family);
    if (metrics->has_failed ||
        !hash_table_add(&metrics->families, family_hash(scope, family->name), family)) {
        metrics->has_failed = true;
        return NULL;
    }
    *(scope->last_family != NULL ? &scope->last_family->next : &scope->families) = family;
    scope->last_family = family;
    return family;
}

static struct scraped_family *family_of(struct scraped_metrics *metrics, struct scope *scope,
                                        struct slice metric)
{
    if (metrics->family != NULL && metrics->family->scope == scope &&
        slice_equal(metrics->family_metric, metric))
        return metrics->family;
    struct scraped_family *family = find_family(metrics, scope, metric, NULL);
    if (family == NULL && find_metadata(metrics, metric) == NULL) {
        struct slice name = without_suffix(metric);
        const struct metadata *metadata = find_metadata(metrics, name);
        struct metadata unused;
        bool is_created = ends_with(metric, "_created") && metadata != NULL &&
                          metadata->type == EXPOSITION_METRIC_COUNTER;
        if (is_created)
            name = name_family(metrics, metric, &unused);
        family = find_family(metrics, scope, name, &metric);
    }
    if (family == NULL)
        family = family_create(metrics, scope, metric);
    if (family == NULL)
        return NULL;
    metrics->family = family;
    metrics->family_metric = copy(metrics, metric);
    return family;
}

/* Groups */

/* Labels with an empty value are as good as absent. */
static bool becomes_attribute(enum metric_kind kind, const struct prometheus_label *label)
{
    return label->value.size > 0 && is_attribute(kind, label->name);
}

static struct slice encode_attributes(struct scraped_metrics *metrics, enum metric_kind kind,
                                      const struct scraped_sample *sample)
{
    uint32_t number = metric_point_attributes(kind);
    size_t size = 0;
    for (size_t i = 0; i < sample->labels->count; i++) {
        const struct prometheus_label *label = label_at(sample, i);
        if (becomes_attribute(kind, label))
            size += wire_field_size(number, attribute_bytes(label->name, label->value));
    }
    uint8_t *room = size > 0 ? arena_try_alloc(&metrics->arena, size) : NULL;
    metrics->has_failed |= size > 0 && room == NULL;
    if (room == NULL)
        return (struct slice){.size = 0};
    struct wire_writer writer = wire_writer_of(room, size);
    for (size_t i = 0; i < sample->labels->count; i++) {
        const struct prometheus_label *label = label_at(sample, i);
        if (becomes_attribute(kind, label))
            write_attribute(&writer, number, label->name, label->value);
    }
    return wire_written(&writer);
}

static struct group *group_of(struct scraped_metrics *metrics, struct scraped_family *family,
                              const struct scraped_sample *sample)
{
    uint64_t hash = hash_of(slice_of(&family, sizeof(family)), 3);
    for (size_t i = 0; i < sample->labels->count; i++) {
        const struct prometheus_label *label = label_at(sample, i);
        if (is_attribute(family->kind, label->name))
            hash = hash_of(label->value, hash_of(label->name, hash));
    }
    size_t at = 0;
    struct group *group;
    while ((group = hash_table_next(&metrics->groups, hash, &at)) != NULL)
        if (group->family == family)
            return group;
    group = scraped_take(metrics, sizeof(*group));
    if (group == NULL)
        return NULL;
    group->family = family;
    group->time_ms = sample->time_ms;
    group->attributes = encode_attributes(metrics, family->kind, sample);
    if (metrics->has_failed || !hash_table_add(&metrics->groups, hash, group)) {
        metrics->has_failed = true;
        return NULL;
    }
    *(family->last_group != NULL ? &family->last_group->next : &family->groups) = group;
    family->last_group = group;
    return group;
}

/* The value of le or quantile. False: it is missing or no number. */
static bool read_boundary(enum metric_kind kind, const struct scraped_sample *sample,
                          double *ret_boundary)
{
    for (size_t i = 0; i < sample->labels->count; i++)
        if (is_bound(kind, label_at(sample, i)->name))
            return exposition_read_number(label_at(sample, i)->value, ret_boundary);
    return false;
}

static bool add_boundary(struct scraped_metrics *metrics, struct group *group,
                         const struct scraped_sample *sample)
{
    double value;
    if (!read_boundary(group->family->kind, sample, &value))
        return false;
    struct boundary *boundary = scraped_take(metrics, sizeof(*boundary));
    if (boundary == NULL)
        return false;
    boundary->boundary = value;
    boundary->value = sample->value;
    *(group->last_boundary != NULL ? &group->last_boundary->next : &group->boundaries) = boundary;
    group->last_boundary = boundary;
    group->boundaries_count++;
    return true;
}

/* Whether the metric is the "_created" of its family. */
static bool is_created_of(const struct scraped_family *family, struct slice metric)
{
    static const char suffix[] = "_created";
    struct slice name = family->metadata.name;
    return metric.size == name.size + strlen(suffix) && ends_with(metric, suffix) &&
           memcmp(metric.data, name.data, name.size) == 0;
}

static bool add_to_group(struct scraped_metrics *metrics, struct group *group, struct slice metric,
                         const struct scraped_sample *sample)
{
    const struct scraped_family *family = group->family;
    bool is_distribution = family->kind == METRIC_HISTOGRAM || family->kind == METRIC_SUMMARY;
    if (is_distribution && ends_with(metric, "_sum")) {
        group->sum = sample->value;
        group->has_sum = true;
    } else if (is_distribution && ends_with(metric, "_count")) {
        group->count = sample->value;
        group->has_count = true;
    } else if ((is_distribution || family->kind == METRIC_SUM) && is_created_of(family, metric)) {
        group->created_s = sample->value;
    } else if (is_distribution) {
        return add_boundary(metrics, group, sample);
    } else {
        group->value = sample->value;
        group->has_value = true;
    }
    return true;
}

/* Exemplars */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads an id; a short one is aligned to the right, of a long one the beginning counts. False: it
 * is not hex. */
static bool read_id(struct slice text, uint8_t *ret_id, size_t size)
{
    size_t bytes = text.size / 2;
    if (bytes < size && text.size % 2 != 0)
        return false;
    bytes = bytes < size ? bytes : size;
    memset(ret_id, 0, size);
    for (size_t i = 0; i < bytes; i++) {
        int high = hex_digit(text.data[2 * i]);
        int low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_id[size - bytes + i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

struct exemplar_ids {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    size_t trace_label; /* its place; the count of labels: there is none */
    size_t span_label;
};

static struct exemplar_ids read_ids(const struct exposition_read_exemplar *from)
{
    struct exemplar_ids ids = {.trace_label = from->labels_count, .span_label = from->labels_count};
    for (size_t i = 0; i < from->labels_count; i++) {
        const struct prometheus_label *label = &from->labels[i];
        if (slice_equal_nocase(label->name, "trace_id") &&
            read_id(label->value, ids.trace_id, TRACE_ID_BYTES))
            ids.trace_label = i;
        else if (slice_equal_nocase(label->name, "span_id") &&
                 read_id(label->value, ids.span_id, SPAN_ID_BYTES))
            ids.span_label = i;
    }
    return ids;
}

static void add_exemplar(struct scraped_metrics *metrics, struct group *group,
                         const struct scraped_sample *sample)
{
    const struct exposition_read_exemplar *from = sample->exemplar;
    enum metric_kind kind = group->family->kind;
    uint32_t number = metric_point_exemplars(kind);
    if (number == 0)
        return;
    struct exemplar_ids ids = read_ids(from);
    bool has_trace = ids.trace_label < from->labels_count;
    bool has_span = ids.span_label < from->labels_count;
    size_t size = 2 * FIXED64_FIELD_BYTES;
    size += has_trace ? wire_field_size(EXEMPLAR_TRACE_ID, TRACE_ID_BYTES) : 0;
    size += has_span ? wire_field_size(EXEMPLAR_SPAN_ID, SPAN_ID_BYTES) : 0;
    for (size_t i = 0; i < from->labels_count; i++)
        if (i != ids.trace_label && i != ids.span_label)
            size += wire_field_size(EXEMPLAR_ATTRIBUTES,
                                    attribute_bytes(from->labels[i].name, from->labels[i].value));
    size_t whole = wire_field_size(number, size);
    struct exemplar *exemplar = scraped_take(metrics, sizeof(*exemplar) + whole);
    if (exemplar == NULL)
        return;
    struct wire_writer writer = wire_writer_of(exemplar + 1, whole);
    wire_write_header(&writer, number, size);
    int64_t time_ms = from->has_timestamp ? from->timestamp_ms : sample->time_ms;
    wire_write_fixed64(&writer, EXEMPLAR_TIME, unix_ns(time_ms));
    wire_write_fixed64(&writer, EXEMPLAR_VALUE, double_bits(from->value));
    if (has_span)
        wire_write_bytes(&writer, EXEMPLAR_SPAN_ID, slice_of(ids.span_id, SPAN_ID_BYTES));
    if (has_trace)
        wire_write_bytes(&writer, EXEMPLAR_TRACE_ID, slice_of(ids.trace_id, TRACE_ID_BYTES));
    for (size_t i = 0; i < from->labels_count; i++)
        if (i != ids.trace_label && i != ids.span_label)
            write_attribute(&writer, EXEMPLAR_ATTRIBUTES, from->labels[i].name,
                            from->labels[i].value);
    exemplar->whole = wire_written(&writer);
    *(group->last_exemplar != NULL ? &group->last_exemplar->next : &group->exemplars) = exemplar;
    group->last_exemplar = exemplar;
    group->exemplars_bytes += whole;
}

enum scraped_result scraped_metrics_add(struct scraped_metrics *metrics,
                                        const struct scraped_sample *sample)
{
    struct sorted_labels labels = sort_labels(sample);
    struct scraped_resource *resource = resource_of(metrics, &labels);
    if (resource == NULL)
        return SCRAPED_UNUSABLE;
    if (slice_equal_text(labels.name, "target_info")) {
        take_target_info(metrics, resource, sample);
        return SCRAPED_ELSE;
    }
    if (slice_equal_text(labels.name, "otel_scope_info")) {
        take_scope_info(metrics, resource, labels, sample);
        return SCRAPED_ELSE;
    }
    struct scope *scope = scope_of(metrics, resource, &labels);
    if (scope == NULL)
        return SCRAPED_UNUSABLE;
    take_scope_labels(metrics, scope, sample);
    struct scraped_family *family = family_of(metrics, scope, labels.name);
    struct group *group = family != NULL ? group_of(metrics, family, sample) : NULL;
    if (group == NULL)
        return SCRAPED_UNUSABLE;
    bool is_added =
        group->time_ms == sample->time_ms && add_to_group(metrics, group, labels.name, sample);
    if (sample->exemplar != NULL)
        add_exemplar(metrics, group, sample);
    return is_added ? SCRAPED : SCRAPED_UNUSABLE;
}

void scraped_metrics_init(struct scraped_metrics *metrics, const struct scraped_settings *settings,
                          size_t max_bytes, struct budget *budget)
{
    *metrics = (struct scraped_metrics){.settings = *settings};
    arena_init_charged(&metrics->arena, max_bytes, budget);
}

void scraped_metrics_fini(struct scraped_metrics *metrics)
{
    hash_table_clear(&metrics->metadata);
    hash_table_clear(&metrics->families);
    hash_table_clear(&metrics->groups);
    hash_table_clear(&metrics->scopes);
    hash_table_clear(&metrics->found_resources);
    hash_table_clear(&metrics->attributes);
    arena_clear(&metrics->arena);
}
