/* SPDX-License-Identifier: Apache-2.0 */
/* Makes targets of addresses: labels, relabeling, URL. */
#include "receivers/scrape/scrape_target.h"

#include "receivers/scrape/scrape_duration.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/utf8.h"
#include "src/net/syntax/http_url.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PARAM_NAME_BYTES_MAX = 256 };

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
        char name[PARAM_NAME_BYTES_MAX];
        snprintf(name, sizeof(name), "__param_%s", params->keys[i]);
        struct slice copy = relabel_labels_copy(labels, slice_of_text(name));
        if (params->items[i].count > 0 && relabel_labels_get(labels, copy).size == 0)
            relabel_labels_set(labels, copy, slice_of_text(params->items[i].items[0].text));
    }
}

static void set_duration(struct relabel_labels *labels, const char *name, uint64_t duration_ns)
{
    char text[SCRAPE_DURATION_BYTES_MAX];
    scrape_duration_print(duration_ns, text);
    struct slice copy = relabel_labels_copy(labels, slice_of_text(text));
    if (relabel_labels_get(labels, slice_of_text(name)).size == 0)
        relabel_labels_set(labels, slice_of_text(name), copy);
}

/* The labels that a target begins with. */
static void begin(const struct scrape_start *start, struct slice address,
                  const struct prometheus_label *more, size_t more_count,
                  struct relabel_labels *labels)
{
    relabel_labels_reset(labels);
    for (size_t i = 0; i < more_count; i++)
        relabel_labels_add(labels, more[i].name, more[i].value);
    relabel_labels_set(labels, slice_of_text("__address__"), address);
    set_unless_set(labels, "job", start->job_name);
    set_duration(labels, "__scrape_interval__", start->interval_ns);
    set_duration(labels, "__scrape_timeout__", start->timeout_ns);
    for (size_t i = 0; i < start->presets_count; i++)
        set_unless_set(labels, start->presets[i].key, start->presets[i].value);
    set_params(labels, start->params);
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

/* A URL that is being made. */
struct url {
    char text[HTTP_URL_BYTES_MAX + 1];
    size_t size;
    bool is_too_long;
};

static void append(struct url *url, const void *more, size_t size)
{
    url->is_too_long |= size > HTTP_URL_BYTES_MAX - url->size;
    if (url->is_too_long || size == 0)
        return;
    memcpy(url->text + url->size, more, size);
    url->size += size;
    url->text[url->size] = '\0';
}

static const char kept_in_query[] = "-_.~";

/* As Go's net/url escapes paths, and queries, in which a blank is a plus. */
static void append_escaped(struct url *url, struct slice part, const char *kept)
{
    for (size_t i = 0; i < part.size && !url->is_too_long; i++) {
        uint8_t c = part.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        char escaped[4];
        if (is_plain || (c != '\0' && strchr(kept, c) != NULL)) {
            append(url, &c, 1);
        } else if (c == ' ' && kept == kept_in_query) {
            append(url, "+", 1);
        } else {
            snprintf(escaped, sizeof(escaped), "%%%02X", c);
            append(url, escaped, 3);
        }
    }
}

static void append_param(struct url *url, struct slice key, struct slice value)
{
    append(url, strchr(url->text, '?') == NULL ? "?" : "&", 1);
    append_escaped(url, key, kept_in_query);
    append(url, "=", 1);
    append_escaped(url, value, kept_in_query);
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
static void append_params(struct url *url, const struct scrape_start *start,
                          const struct relabel_labels *labels)
{
    static const char prefix[] = "__param_";
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!slice_begins_with(label->name, prefix))
            continue;
        struct slice key =
            slice_of(label->name.data + strlen(prefix), label->name.size - strlen(prefix));
        append_param(url, key, label->value);
        const struct config_value *values = find_param(start->params, key);
        for (size_t k = 1; values != NULL && k < values->count; k++)
            append_param(url, key, slice_of_text(values->items[k].text));
    }
}

static void make_url(const struct scrape_start *start, const struct relabel_labels *labels,
                     struct url *ret_url)
{
    static const char kept_in_path[] = "-_.~$&+,/:;=@";
    struct slice scheme = relabel_labels_get(labels, slice_of_text("__scheme__"));
    struct slice address = relabel_labels_get(labels, slice_of_text("__address__"));
    struct slice path = relabel_labels_get(labels, slice_of_text(start->path_label));
    struct slice prefix = {.size = 0};
    if (start->path_prefix_label != NULL)
        prefix = relabel_labels_get(labels, slice_of_text(start->path_prefix_label));
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == '/')
        prefix.size--;
    ret_url->text[0] = '\0';
    ret_url->size = 0;
    ret_url->is_too_long = false;
    append(ret_url, scheme.data, scheme.size);
    append(ret_url, "://", 3);
    append(ret_url, address.data, address.size);
    if (prefix.size > 0 && prefix.data[0] != '/')
        append(ret_url, "/", 1);
    append_escaped(ret_url, prefix, kept_in_path);
    if (path.size > 0 && path.data[0] != '/')
        append(ret_url, "/", 1);
    append_escaped(ret_url, path, kept_in_path);
    append_params(ret_url, start, labels);
}

struct slice scrape_target_label(const struct scrape_target *target, const char *name)
{
    for (size_t i = 0; i < target->labels_count; i++)
        if (slice_equal_text(target->labels[i].name, name))
            return target->labels[i].value;
    return (struct slice){.size = 0};
}

/* Labels that begin with __ do not reach the series. */
static bool is_kept(const struct prometheus_label *label)
{
    return !slice_begins_with(label->name, "__");
}

/* All texts lie in one block behind the list. */
static void keep_labels(struct scrape_target *target, const struct relabel_labels *labels)
{
    size_t text_bytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!is_kept(label))
            continue;
        text_bytes += label->name.size + label->value.size;
        count++;
    }
    target->labels = mem_alloc(count * sizeof(*target->labels) + text_bytes);
    uint8_t *text = (uint8_t *)(target->labels + count);
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!is_kept(label))
            continue;
        struct prometheus_label *kept = &target->labels[target->labels_count++];
        kept->name = slice_of(memcpy(text, label->name.data, label->name.size), label->name.size);
        text += label->name.size;
        kept->value =
            slice_of(memcpy(text, label->value.data, label->value.size), label->value.size);
        text += label->value.size;
    }
}

static uint64_t hash_target(const struct scrape_target *target, uint64_t seed)
{
    uint64_t hash = XXH3_64bits_withSeed(target->url, strlen(target->url), seed);
    for (size_t i = 0; i < target->labels_count; i++) {
        struct slice name = target->labels[i].name;
        struct slice value = target->labels[i].value;
        hash = XXH3_64bits_withSeed(name.data, name.size, hash);
        hash = XXH3_64bits_withSeed(value.data, value.size, hash);
    }
    const uint64_t times[] = {target->interval_ns, target->timeout_ns};
    return XXH3_64bits_withSeed(times, sizeof(times), hash);
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

static bool check_values(const struct relabel_labels *labels, struct error *error)
{
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (!utf8_is_valid(label->value) || memchr(label->value.data, '\0', label->value.size))
            return error_set(error, "the value of the label \"%.*s\" is no text in UTF-8",
                             (int)(label->name.size < 100 ? label->name.size : 100),
                             (const char *)label->name.data);
    }
    return true;
}

/* Takes the URL, if a client can be made for it. */
static bool take_url(struct scrape_target *target, const struct url *url, struct error *error)
{
    struct http_url parsed;
    if (url->is_too_long)
        return error_set(error, "the URL has more than %d bytes", HTTP_URL_BYTES_MAX);
    if (!http_url_parse(url->text, &parsed, error))
        return false;
    target->url = mem_copy_text(url->text);
    target->shown = mem_copy_text(parsed.shown);
    http_url_clear(&parsed);
    return true;
}

/* Charges the target's bytes, with those of the labels that it will keep. False: the budget has no
 * room. */
static bool charge(struct scrape_target *target, const struct relabel_labels *labels,
                   struct budget *budget, struct error *error)
{
    target->bytes = sizeof(*target) + strlen(target->url) + 1 + strlen(target->shown) + 1;
    for (size_t i = 0; i < labels->count; i++) {
        const struct prometheus_label *label = &labels->labels[i].label;
        if (is_kept(label))
            target->bytes += sizeof(*label) + label->name.size + label->value.size;
    }
    if (budget != NULL && !budget_try_take(budget, target->bytes))
        return error_set(error, "the memory budget has no room for the target");
    target->budget = budget;
    return true;
}

struct scrape_target *scrape_target_create(const struct scrape_start *start, struct slice address,
                                           const struct prometheus_label *labels,
                                           size_t labels_count, struct relabel_labels *work,
                                           struct budget *budget, struct error *error)
{
    uint64_t interval_ns;
    uint64_t timeout_ns;
    error->text[0] = '\0';
    begin(start, address, labels, labels_count, work);
    if ((start->rules != NULL && !relabel_rules_apply(start->rules, work)) ||
        !check_address(work, error) || !check_values(work, error) ||
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
    atomic_init(&target->refs, 1);
    target->interval_ns = interval_ns;
    target->timeout_ns = timeout_ns + start->more_timeout_ns;
    struct url url;
    make_url(start, work, &url);
    if (!take_url(target, &url, error) || !charge(target, work, budget, error)) {
        scrape_target_unref(target);
        return NULL;
    }
    keep_labels(target, work);
    target->job_name = scrape_target_label(target, "job");
    target->instance = scrape_target_label(target, "instance");
    target->hash = hash_target(target, random_seed());
    target->place = hash_target(target, 0);
    return target;
}

struct scrape_target *scrape_target_ref(struct scrape_target *target)
{
    atomic_fetch_add_explicit(&target->refs, 1, memory_order_relaxed);
    return target;
}

void scrape_target_unref(struct scrape_target *target)
{
    if (target == NULL || atomic_fetch_sub_explicit(&target->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (target->budget != NULL)
        budget_return(target->budget, target->bytes);
    mem_free(target->labels);
    mem_free(target->url);
    mem_free(target->shown);
    mem_free(target);
}
