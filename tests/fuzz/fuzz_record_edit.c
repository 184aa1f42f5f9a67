/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of records on any request that passes the walker: byte 0 is the signal, 1 where the body is
 * cut into two parts. The result is well-formed and has the items that it says. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/check.h"
#include "src/records/attribute_edit.h"
#include "src/records/cumulative_to_delta.h"
#include "src/records/delta_to_cumulative.h"
#include "src/records/group_by_attributes.h"
#include "src/records/record_filter.h"
#include "src/records/record_match.h"
#include "src/records/record_sampler.h"
#include "src/records/redact_text.h"
#include "src/records/redaction.h"
#include "src/records/trace_split.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ACTION(verb, name, type, expression, source)                                               \
    {                                                                                              \
        .action = (verb), .key = (name), .converted_type = (type), .pattern = (expression),        \
        .from_attribute = (source), .from_context = "",                                            \
    }
static const struct attribute_action_config configs[] = {
    ACTION("hash", "h", "", "^H", ""),
    ACTION("convert", "a", "string", "", ""),
    ACTION("upsert", "b", "", "", "a"),
    ACTION("convert", "b", "double", "", ""),
    ACTION("extract", "c", "", "(?P<d>[a-z]+)(?P<e>.*)", ""),
    ACTION("delete", "d", "", "x", ""),
};

static void check(const struct batch *batch, struct batch *edited)
{
    struct otlp_figures figures;
    const char *reason;
    assert(edited != NULL);
    struct slice bytes = joined_parts(edited);
    bool is_fine = otlp_check(edited->signal, bytes, &figures, &reason);
    assert(is_fine);
    assert(figures.items == edited->items);
    assert(edited->items <= batch->items);
    assert(oracle_decodes(edited->signal, bytes));
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(edited);
}

static void edit_attributes(struct record_edit *edit, struct batch *batch)
{
    static const char *const texts[] = {"a", "."};
    struct error error;
    struct attribute_editor editor;
    struct record_match_config match = {.match_type = "regexp"};
    struct config_texts names = {.count = 2, .texts = texts};
    if (batch->signal == TRACES)
        match.span_names = names;
    else if (batch->signal == LOGS)
        match.log_bodies = names;
    else
        match.metric_names = names;
    struct attribute_actions *actions =
        attribute_actions_create(configs, sizeof(configs) / sizeof(configs[0]), &error);
    struct record_matcher *include = record_matcher_create(&match, batch->signal, &error);
    assert(actions != NULL && include != NULL);
    attribute_editor_init(&editor, actions, include, NULL, NULL);
    struct batch *edited = attribute_editor_run(&editor, edit, batch);
    assert(edited->items == batch->items);
    check(batch, edited);
    attribute_editor_fini(&editor);
    record_matcher_destroy(include);
    attribute_actions_destroy(actions);
}

/* Includes by one set of properties, excludes by another. */
static void filter(struct record_edit *edit, struct batch *batch)
{
    static const char *const texts[] = {"a", "."};
    static struct record_match_attribute_config attributes[] = {{.key = "a"}, {.key = "b"}};
    struct error error;
    struct record_filter filter;
    struct record_matcher *matchers[2];
    for (size_t i = 0; i < 2; i++) {
        struct config_texts names = {.count = 2 - i, .texts = texts};
        const struct config_sections sections = {.count = 1, .items = &attributes[i]};
        struct record_match_config match = {.match_type = "regexp",
                                            .has_metric_resources = batch->signal == METRICS};
        if (batch->signal == TRACES)
            match.span_names = match.services = names;
        else if (batch->signal == LOGS)
            match.log_bodies = names;
        else
            match.metric_names = names;
        if (i == 1)
            match.resources = sections;
        if (i == 1 && batch->signal != METRICS)
            match.attributes = sections;
        matchers[i] = record_matcher_create(&match, batch->signal, &error);
        assert(matchers[i] != NULL);
    }
    record_filter_init(&filter, batch->signal, matchers[0], matchers[1], NULL);
    check(batch, record_filter_run(&filter, edit, batch));
    record_filter_fini(&filter);
    record_matcher_destroy(matchers[0]);
    record_matcher_destroy(matchers[1]);
}

static void sample(struct record_edit *edit, struct batch *batch)
{
    for (enum sampling_mode mode = SAMPLING_HASH_SEED; mode <= SAMPLING_PROPORTIONAL; mode++) {
        const struct record_sampler_settings settings = {
            .percentage = 75,
            .mode = mode,
            .precision = 4,
            .uses_trace_id = true,
            .from_attribute = slice_of_text("a"),
            .priority = slice_of_text("b"),
        };
        struct record_sampler sampler;
        record_sampler_init(&sampler, &settings, NULL);
        check(batch, record_sampler_run(&sampler, edit, batch));
        record_sampler_fini(&sampler);
    }
}

static void redact(struct record_edit *edit, struct batch *batch, bool allows_all)
{
    static const char *const keys[] = {"a", "b"};
    static const char *const patterns[] = {"^k", "c$"};
    static const char *const values[] = {"a*", "[0-9]", "x"};
    const struct redaction_settings settings = {
        .allows_all_keys = allows_all,
        .redacts_all_types = true,
        .allowed_keys = {.count = 2, .texts = keys},
        .ignored_keys = {.count = 1, .texts = keys},
        .blocked_key_patterns = {.count = 2, .texts = patterns},
        .blocked_values = {.count = 3, .texts = values},
        .has_counts = true,
        .has_keys = true,
    };
    struct error error;
    struct redaction redaction;
    struct redaction_rules *rules = redaction_rules_create(&settings, &error);
    assert(rules != NULL);
    redaction_init(&redaction, rules, NULL);
    check(batch, redaction_run(&redaction, edit, batch));
    redaction_fini(&redaction);
    redaction_rules_destroy(rules);
}

static void group(struct record_edit *edit, struct batch *batch)
{
    const struct slice keys[] = {slice_of_text("a"), slice_of_text("b")};
    struct attribute_grouper grouper;
    attribute_grouper_init(&grouper, keys, 2, NULL);
    struct batch *edited = attribute_grouper_run(&grouper, edit, batch);
    /* Of several kinds of data in one metric the last counts. */
    assert(batch->signal == METRICS || edited->items == batch->items);
    check(batch, edited);
    attribute_grouper_fini(&grouper);
}

/* Twice, so that streams go on. */
static void make_deltas(struct record_edit *edit, struct batch *batch)
{
    static const struct delta_match all;
    const struct delta_settings settings = {
        .initial = DELTA_INITIAL_KEEP, .include = &all, .exclude = &all};
    struct delta_editor editor;
    struct stream_table *table = delta_table_create(NULL);
    delta_editor_init(&editor, &settings, table, edit->budget);
    for (int i = 0; i < 2; i++)
        check(batch, delta_editor_run(&editor, edit, batch));
    delta_editor_fini(&editor);
    stream_table_destroy(table);
}

static void add_up(struct record_edit *edit, struct batch *batch)
{
    struct sum_editor editor;
    struct stream_table *table = sum_table_create(4, NULL);
    sum_editor_init(&editor, table, edit->budget);
    for (int i = 0; i < 2; i++)
        check(batch, sum_editor_run(&editor, edit, batch));
    sum_editor_fini(&editor);
    stream_table_destroy(table);
}

static void split_traces(struct batch *batch)
{
    struct trace_split split;
    uint64_t items = 0;
    trace_split_init(&split, NULL);
    enum trace_split_result result = trace_split_run(&split, batch, UINT64_MAX);
    assert(result == TRACE_SPLIT_DONE || result == TRACE_SPLIT_TOO_LARGE);
    for (size_t i = 0; i < split.fragments_count; i++) {
        const struct trace_fragment *fragment = &trace_split_fragments(&split)[i];
        struct batch *part = batch_create_like(batch, 1);
        batch_append(part, fragment->buffer, buffer_slice(fragment->buffer));
        part->items = fragment->items;
        items += part->items;
        check(batch, part);
    }
    assert(items == batch->items || result == TRACE_SPLIT_TOO_LARGE);
    trace_split_fini(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    struct record_edit edit;
    if (size < HEADER_BYTES)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % PROFILES);
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(signal, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct batch *batch = two_parts(signal, body, body.size * data[1] / 256);
    batch->items = figures.items;
    record_edit_init(&edit, NULL);
    edit_attributes(&edit, batch);
    filter(&edit, batch);
    redact(&edit, batch, false);
    redact(&edit, batch, true);
    group(&edit, batch);
    if (signal != METRICS)
        sample(&edit, batch);
    else
        make_deltas(&edit, batch);
    if (signal == METRICS)
        add_up(&edit, batch);
    if (signal == TRACES)
        split_traces(batch);
    record_edit_fini(&edit);
    batch_unref(batch);
    return 0;
}
