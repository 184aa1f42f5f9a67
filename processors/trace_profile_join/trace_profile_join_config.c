/* SPDX-License-Identifier: Apache-2.0 */
/* The option table and how its strings are read. */
#include "processors/trace_profile_join/trace_profile_join_config.h"

#include <assert.h>
#include <inttypes.h>

#include "processors/trace_profile_join/trace_profile_rules.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/config/duration.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

static const char *const span_ids[] = {"received", "root", NULL};
static const char *const single_traces[] = {"auto", "off", NULL};
static const char *const marks[] = {"off", "local_roots", "all", "observed", NULL};

static const struct config_field index_fields[] = {
    CONFIG_COUNT(struct join_index_config, entries, "entries", "200000", 1000, 10000000,
                 "Spans that are kept; the oldest are evicted first."),
    CONFIG_BYTES(
        struct join_index_config, bytes, "bytes", "32MiB", 1 << 20, INT64_C(16) << 30,
        "Memory that is set aside for them, out of the budget: about 70 bytes per span and "
        "the names that differ. Fewer spans are remembered where it does not suffice."),
    CONFIG_END,
};

static const struct config_field links_fields[] = {
    CONFIG_TEXT(struct join_links_config, profile, "profile", NULL,
                "URL of the profile's view with places such as {span_id}, put on marked spans as "
                "pyroscope.profile.url. Empty: none."),
    CONFIG_TEXT(
        struct join_links_config, trace, "trace", NULL,
        "URL of the trace's view with places such as {trace_id}, put on profiles as trace.url. "
        "Empty: none."),
    CONFIG_END,
};

const struct config_field trace_profile_join_fields[] = {
    CONFIG_DURATION(struct trace_profile_join_config, hold_ns, "hold", "7s", 0,
                    INT64_C(300) * NS_PER_S,
                    "How long a profile waits for spans that its samples name. 0: not at all."),
    CONFIG_BYTES(struct trace_profile_join_config, hold_bytes, "hold_bytes", "64MiB", 0,
                 INT64_C(64) << 30,
                 "Bytes that may wait, over all lanes; the oldest are released first."),
    CONFIG_SECTION(struct trace_profile_join_config, index, struct join_index_config, "index",
                   index_fields, NULL, "The span index."),
    CONFIG_TEXTS(struct trace_profile_join_config, attributes, "attributes", "span_name",
                 "What samples get from their spans: span_name, http.route, status_class, "
                 "duration_bucket, span.<key>, resource.<key>; the last two become <key>."),
    CONFIG_COUNT(struct trace_profile_join_config, cap, "cap", "1000", 1, JOIN_VALUES_MAX,
                 "Distinct values of each attribute per hour; further ones become \"other\"."),
    CONFIG_TEXTS(struct trace_profile_join_config, duration_buckets, "duration_buckets",
                 "10ms,100ms,1s,10s", "Bounds of duration_bucket, ascending."),
    CONFIG_CHOICE(struct trace_profile_join_config, span_id, "span_id", "received", span_ids,
                  "Whether samples keep the span that they name, or get its local root."),
    CONFIG_TEXTS(struct trace_profile_join_config, count_for, "count_for", "span",
                 "Which spans samples count for: span, and also root, ancestors: in profiles of "
                 "types of their own, as cpu_root and cpu_ancestors."),
    CONFIG_BOOL(struct trace_profile_join_config, repair_identity, "repair_identity", "true",
                "Profiles without service.name take it from spans of the same container, pod or "
                "process."),
    CONFIG_CHOICE(struct trace_profile_join_config, single_trace, "single_trace", "auto",
                  single_traces, "Whether profiles of a process with one trace get its id."),
    CONFIG_CHOICE(struct trace_profile_join_config, mark, "mark", "local_roots", marks,
                  "Which spans get pyroscope.profile.id, by which Grafana finds their profile."),
    CONFIG_SECTION(struct trace_profile_join_config, links, struct join_links_config, "links",
                   links_fields, NULL, "Links between the views of traces and profiles."),
    CONFIG_BOOL(struct trace_profile_join_config, window_fallback, "window_fallback", "false",
                "Samples that name no span take the only one of their thread at that time."),
    CONFIG_VALUE(
        struct trace_profile_join_config, keep, "keep",
        "List of slow: <duration>, error, sampled: samples of other spans are dropped, with "
        "sampled those of traces that tail_sampling drops. Empty: all are kept."),
    CONFIG_BOOL(struct trace_profile_join_config, keep_unlinked, "keep_unlinked", "true",
                "With keep: whether samples without a known span are kept."),
    CONFIG_SECTION(struct trace_profile_join_config, control, struct join_control_config, "control",
                   trace_profile_control_fields, NULL, "Changing keep at run time."),
    CONFIG_END,
};

static bool read_attributes(const struct config_texts *texts, struct join_settings *settings,
                            struct error *error)
{
    static const struct {
        const char *text;
        enum join_source source;
        bool is_prefix; /* the name is what follows */
    } rows[] = {
        {"span_name", JOIN_SPAN_NAME, false},
        {"status_class", JOIN_STATUS_CLASS, false},
        {"duration_bucket", JOIN_DURATION_BUCKET, false},
        {"http.route", JOIN_OF_SPAN, false},
        {"span.", JOIN_OF_SPAN, true},
        {"resource.", JOIN_OF_RESOURCE, true},
    };
    const size_t rows_count = sizeof(rows) / sizeof(rows[0]);
    if (texts->count > JOIN_ATTRIBUTES_MAX)
        return error_set(error, "found %zu, expected at most %d", texts->count,
                         JOIN_ATTRIBUTES_MAX);
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->texts[i];
        size_t row = 0;
        size_t size = 0;
        for (; row < rows_count; row++) {
            size = strlen(rows[row].text);
            if (strncmp(text, rows[row].text, size) == 0 &&
                (text[size] != '\0') == rows[row].is_prefix)
                break;
        }
        if (row == rows_count)
            return error_set(error,
                             "found \"%s\", expected span_name, http.route, status_class, "
                             "duration_bucket, span.<key> or resource.<key>",
                             text) ||
                   error_at_index(error, i);
        struct slice name = slice_of_text(rows[row].is_prefix ? text + size : text);
        for (size_t k = 0; k < i; k++)
            if (slice_equal(settings->attributes[k].name, name))
                return error_set(error, "\"%s\" and \"%s\" give samples the same attribute",
                                 texts->texts[k], text) ||
                       error_at_index(error, i);
        settings->attributes[i] = (struct join_attribute){.source = rows[row].source, .name = name};
        settings->attributes_count++;
    }
    return true;
}

static bool read_buckets(const struct config_texts *texts, struct join_settings *settings,
                         struct error *error)
{
    int64_t before = 0;
    if (texts->count == 0 || texts->count > JOIN_BUCKETS_MAX)
        return error_set(error, "found %zu bounds, expected 1 to %d", texts->count,
                         JOIN_BUCKETS_MAX);
    for (size_t i = 0; i < texts->count; i++) {
        int64_t bound;
        const char *problem = text_to_duration_ns(texts->texts[i], &bound);
        if (problem != NULL)
            return error_set(error, "found \"%s\": %s", texts->texts[i], problem) ||
                   error_at_index(error, i);
        if (bound <= before)
            return error_set(error, "found \"%s\", expected more than the previous bound",
                             texts->texts[i]) ||
                   error_at_index(error, i);
        before = bound;
        settings->buckets_ns[i] = (uint64_t)bound;
        settings->bucket_texts[i] = texts->texts[i];
        settings->buckets_count++;
    }
    return true;
}

/* Without the span itself there would be nothing to copy. */
static bool read_count_for(const struct config_texts *texts, struct join_settings *settings,
                           struct error *error)
{
    bool counts_span = false;
    for (size_t i = 0; i < texts->count; i++) {
        struct slice text = slice_of_text(texts->texts[i]);
        bool *counts = slice_equal_text(text, "span")        ? &counts_span
                       : slice_equal_text(text, "root")      ? &settings->counts_root
                       : slice_equal_text(text, "ancestors") ? &settings->counts_ancestors
                                                             : NULL;
        if (counts == NULL)
            return error_set(error, "found \"%s\", expected span, root or ancestors",
                             texts->texts[i]) ||
                   error_at_index(error, i);
        if (*counts)
            return error_set(error, "\"%s\" is given twice", texts->texts[i]) ||
                   error_at_index(error, i);
        *counts = true;
    }
    return counts_span ||
           error_set(error, "span is missing: samples always count for their own span");
}

static bool read_link(const char *key, const char *text, unsigned allowed,
                      struct url_template *template, struct error *error)
{
    return url_template_read(text, allowed, template, error) || error_at(error, key) ||
           error_at(error, "links");
}

/* The strings of the configuration, borrowed. */
static bool read_strings(const struct trace_profile_join_config *config,
                         struct join_settings *settings, struct error *error)
{
    const unsigned all = (1u << URL_VALUES) - 1;
    settings->keep.keeps_unlinked = config->keep_unlinked;
    return (read_attributes(&config->attributes, settings, error) ||
            error_at(error, "attributes")) &&
           (read_buckets(&config->duration_buckets, settings, error) ||
            error_at(error, "duration_buckets")) &&
           (read_count_for(&config->count_for, settings, error) || error_at(error, "count_for")) &&
           (keep_rules_from_config(config->keep, &settings->keep, error) ||
            error_at(error, "keep")) &&
           /* A span does not say which type of profile is wanted. */
           read_link("profile", config->links.profile, all & ~(1u << URL_PROFILE_TYPE),
                     &settings->profile_url, error) &&
           read_link("trace", config->links.trace, all, &settings->trace_url, error);
}

bool trace_profile_join_check(const void *section, struct error *error)
{
    const struct trace_profile_join_config *config = section;
    struct join_settings settings = {.attributes_count = 0};
    return read_strings(config, &settings, error) &&
           trace_profile_control_check(&config->control, error);
}

void trace_profile_join_settings(const struct trace_profile_join_config *config,
                                 struct join_settings *ret_settings)
{
    struct error error;
    *ret_settings = (struct join_settings){
        .values_max = config->cap,
        .index_entries = config->index.entries,
        .index_bytes = config->index.bytes,
        .hold_ns = config->hold_ns,
        .hold_bytes = config->hold_bytes,
        .mark = (enum join_mark)config->mark,
        .takes_root = config->span_id == SPAN_ID_ROOT,
        .repairs_identity = config->repair_identity,
        .finds_single_traces = config->single_trace == SINGLE_TRACE_AUTO,
        .uses_window = config->window_fallback,
    };
    bool is_fine = read_strings(config, ret_settings, &error);
    assert(is_fine);
}
