/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, metrics and logs: checking, JSON, editing, splitting, gathering, printing, reading spans,
 * series for Prometheus, remote write, spans for Zipkin. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "exporters/prometheus/metric_store.h"
#include "exporters/prometheus_remote_write/remote_write_writer.h"
#include "exporters/zipkin/zipkin_writer.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"
#include "src/join/index/join_store.h"
#include "src/join/spans/span_reader.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/attributes/resource_edit.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/split.h"
#include "src/otlp/text/text.h"
#include "src/otlp/unknown.h"
#include "src/ottl/ottl_runner.h"
#include "src/pipeline/batcher.h"
#include "src/pipeline/partition.h"
#include "src/prometheus/exposition.h"
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
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

/* Set by main, once for each. */
static enum signal_kind signal_at_hand;

enum { RESOURCE = 1, SCOPES = 2, RECORDS = 2, UNKNOWN = 2000, DEEP = 28 };

/* One record with a little in it. */
static void put_record(struct profile_bytes *out)
{
    size_t begin = out->size;
    if (signal_at_hand == METRICS) {
        put_text(out, 1, "m");
        size_t gauge = out->size;
        size_t point = out->size;
        put_number(out, 6, 3); /* as_int is fixed64: see put_point */
        out->size = point;
        uint8_t *at = profile_bytes_room(out, 16);
        struct wire_writer writer = wire_writer_of(at, 16);
        wire_write_fixed64(&writer, 6, 7);
        out->size += (size_t)(writer.at - at);
        profile_bytes_wrap(out, point, 1);
        profile_bytes_wrap(out, gauge, 5);
    } else if (signal_at_hand == TRACES) {
        put_bytes(out, 1, "0123456789abcdef", 16);
        put_bytes(out, 2, "01234567", 8);
        put_text(out, 5, "n");
    } else {
        size_t body = out->size;
        put_text(out, 1, "b");
        profile_bytes_wrap(out, body, 5);
    }
    profile_bytes_wrap(out, begin, RECORDS);
}

static void put_records(struct profile_bytes *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_record(out);
}

/* What is written since `begin` becomes the content of a scope, a resource and a request. */
static struct slice enclose(struct profile_bytes *out, size_t begin)
{
    profile_bytes_wrap(out, begin, SCOPES);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice empty_resources(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, 1, "", 0);
    return message_done(&out);
}

static struct slice empty_scopes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, SCOPES, "", 0);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice empty_scopes_then_records(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, SCOPES, "", 0);
    size_t scope = out.size;
    put_records(&out, n);
    profile_bytes_wrap(&out, scope, SCOPES);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice empty_records(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, RECORDS, "", 0);
    return enclose(&out, 0);
}

static struct slice plain_records(size_t n)
{
    struct profile_bytes out = {0};
    put_records(&out, n);
    return enclose(&out, 0);
}

/* Spans of as many traces. */
static struct slice records_of_different_traces(size_t n)
{
    struct profile_bytes out = {0};
    char id[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        if (signal_at_hand == TRACES) {
            snprintf(id, sizeof(id), "%016zu", i);
            put_bytes(&out, 1, id, 16);
        }
        profile_bytes_wrap(&out, begin, RECORDS);
    }
    return enclose(&out, 0);
}

/* Each has another value of a key that records are grouped by. */
static struct slice records_of_different_groups(size_t n)
{
    const uint32_t number = signal_at_hand == TRACES ? 9 : signal_at_hand == METRICS ? 7 : 6;
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_attribute(&out, number, "k000001", name_of(name, i));
        profile_bytes_wrap(&out, begin, signal_at_hand == METRICS ? 1 : RECORDS);
    }
    if (signal_at_hand == METRICS) {
        profile_bytes_wrap(&out, 0, 5);
        profile_bytes_wrap(&out, 0, RECORDS);
    }
    return enclose(&out, 0);
}

static struct slice one_record_each(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_attribute(&out, 1, "service.name", name_of(name, i));
        profile_bytes_wrap(&out, begin, RESOURCE);
        size_t scope = out.size;
        put_record(&out);
        profile_bytes_wrap(&out, scope, SCOPES);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

static struct slice resource_with(size_t n, bool are_equal)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, are_equal ? "k000000" : name_of(name, i), "v");
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t begin = out.size;
    put_records(&out, n);
    return enclose(&out, begin);
}

static struct slice equal_resource_attributes(size_t n)
{
    return resource_with(n, true);
}

static struct slice different_resource_attributes(size_t n)
{
    return resource_with(n, false);
}

static struct slice unknown_before_records(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_number(&out, UNKNOWN, 1);
    size_t begin = out.size;
    for (size_t i = 0; i < n; i++)
        put_number(&out, UNKNOWN, 1);
    put_records(&out, n);
    return enclose(&out, begin);
}

static struct slice unknown_between_records(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        put_number(&out, UNKNOWN, 1);
        put_record(&out);
    }
    return enclose(&out, 0);
}

static struct slice unknown_between_resources(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        put_number(&out, UNKNOWN, 1);
        size_t begin = out.size;
        put_record(&out);
        profile_bytes_wrap(&out, begin, SCOPES);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

/* Attributes stand at other numbers in each kind of record; those of a resource are common. */
static struct slice deep_values(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i += DEEP) {
        size_t begin = out.size;
        put_text(&out, 1, "k");
        size_t value = out.size;
        put_text(&out, 1, "v");
        for (int depth = 0; depth < DEEP / 2; depth++) {
            profile_bytes_wrap(&out, value, 1); /* ArrayValue.values */
            profile_bytes_wrap(&out, value, 5); /* AnyValue.array_value */
        }
        profile_bytes_wrap(&out, value, 2);
        profile_bytes_wrap(&out, begin, 1);
    }
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_record(&out);
    return enclose(&out, records);
}

static struct slice wide_value(size_t n)
{
    struct profile_bytes out = {0};
    put_text(&out, 1, "k");
    size_t value = out.size;
    for (size_t i = 0; i < n; i++) {
        size_t element = out.size;
        put_number(&out, 3, i % 100);
        profile_bytes_wrap(&out, element, 1);
    }
    profile_bytes_wrap(&out, value, 5);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, 0, 1);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_record(&out);
    return enclose(&out, records);
}

/* An attribute whose value comes in many fields, which are one message. */
static void put_pieces(struct profile_bytes *out, size_t n, unsigned number)
{
    size_t begin = out->size;
    put_text(out, 1, "k");
    for (size_t i = 0; i < n; i++) {
        size_t value = out->size;
        put_text(out, 1, "piece");
        profile_bytes_wrap(out, value, 2);
    }
    profile_bytes_wrap(out, begin, number);
}

static struct slice value_in_pieces(size_t n)
{
    struct profile_bytes out = {0};
    put_pieces(&out, n, 1);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_record(&out);
    size_t record = out.size;
    if (signal_at_hand == METRICS) {
        put_pieces(&out, n, 7);
        profile_bytes_wrap(&out, record, 1);
        profile_bytes_wrap(&out, record, 5);
    } else {
        put_pieces(&out, n, signal_at_hand == TRACES ? 9 : 6);
    }
    profile_bytes_wrap(&out, record, RECORDS);
    return enclose(&out, records);
}

static struct slice long_text(size_t n)
{
    struct profile_bytes out = {0};
    put_text(&out, 1, "k");
    size_t value = out.size;
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text("\"\\\n\1 \xc3\xa9xyz"));
    profile_bytes_wrap(&out, value, 1);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, 0, 1);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_record(&out);
    return enclose(&out, records);
}

/* Every repeated part of a record: attributes, events and links, or points with buckets. */
static struct slice wide_record(size_t n)
{
    static const uint8_t zeros[8];
    struct profile_bytes out = {0};
    char name[32];
    if (signal_at_hand == METRICS) {
        for (size_t i = 0; i < n; i++) {
            size_t point = out.size;
            put_attribute(&out, 9, name_of(name, i), "v");
            profile_bytes_wrap(&out, point, 1);
        }
        size_t point = out.size;
        for (unsigned number = 6; number <= 7; number++) {
            size_t packed = out.size;
            for (size_t i = 0; i < n; i++)
                profile_bytes_add(&out, slice_of(zeros, sizeof(zeros)));
            profile_bytes_wrap(&out, packed, number);
        }
        for (size_t i = 0; i < n; i++)
            put_attribute(&out, 9, name_of(name, i), "v");
        for (size_t i = 0; i < n; i++)
            put_bytes(&out, 8, "", 0);
        profile_bytes_wrap(&out, point, 1);
        profile_bytes_wrap(&out, 0, 9);
    } else if (signal_at_hand == TRACES) {
        for (size_t i = 0; i < n; i++)
            put_attribute(&out, 9, name_of(name, i), "v");
        for (size_t i = 0; i < n; i++)
            put_bytes(&out, 11, "", 0);
        for (size_t i = 0; i < n; i++)
            put_bytes(&out, 13, "", 0);
    } else {
        for (size_t i = 0; i < n; i++)
            put_attribute(&out, 6, name_of(name, i), "v");
    }
    profile_bytes_wrap(&out, 0, RECORDS);
    return enclose(&out, 0);
}

static struct slice entities(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t entity = out.size;
        put_text(&out, 3, name_of(name, i));
        put_text(&out, 4, name_of(name, i));
        profile_bytes_wrap(&out, entity, 3);
    }
    size_t entity = out.size;
    for (size_t i = 0; i < n; i++)
        put_text(&out, 3, name_of(name, i));
    profile_bytes_wrap(&out, entity, 3);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_record(&out);
    return enclose(&out, records);
}

/* Many records share what is as large as all of them: what is done with it for each of them grows
 * with the square. */
static struct slice records_under_long_values(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t begin = out.size;
    put_text(&out, 1, "service.name");
    size_t value = out.size;
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text(name_of(name, i)));
    profile_bytes_wrap(&out, value, 1);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, begin, 1);
    begin = out.size;
    put_text(&out, 1, "db.name");
    value = out.size;
    for (size_t i = 0; i < n; i++) {
        size_t element = out.size;
        put_text(&out, 1, name_of(name, i));
        profile_bytes_wrap(&out, element, 1);
    }
    profile_bytes_wrap(&out, value, 5);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, begin, 1);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scopes = out.size;
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text(name_of(name, i)));
    profile_bytes_wrap(&out, scopes, 1); /* InstrumentationScope.name */
    profile_bytes_wrap(&out, scopes, 1);
    put_records(&out, n);
    return enclose(&out, scopes);
}

/* Records under attributes whose values, which are empty, come in many fields each. */
static struct slice records_under_fields(size_t n)
{
    static const char *const keys[] = {"service.name", "k000001", "db.name"};
    struct profile_bytes out = {0};
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        size_t begin = out.size;
        put_text(&out, 1, keys[k]);
        size_t value = out.size;
        for (size_t i = 0; i < n; i++)
            put_text(&out, 1, "");
        profile_bytes_wrap(&out, value, 2);
        profile_bytes_wrap(&out, begin, 1);
    }
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_records(&out, n);
    return enclose(&out, records);
}

static const struct work_shape shapes[] = {
    {"empty resources", empty_resources},
    {"empty scopes", empty_scopes},
    {"empty scopes, then records", empty_scopes_then_records},
    {"empty records", empty_records},
    {"records", plain_records},
    {"records of different traces", records_of_different_traces},
    {"records of different groups", records_of_different_groups},
    {"resources of one record", one_record_each},
    {"equal attributes of a resource", equal_resource_attributes},
    {"different attributes of a resource", different_resource_attributes},
    {"unknown fields before records", unknown_before_records},
    {"unknown fields between records", unknown_between_records},
    {"unknown fields between resources", unknown_between_resources},
    {"deep values", deep_values},
    {"a wide value", wide_value},
    {"a value in pieces", value_in_pieces},
    {"a long text", long_text},
    {"a wide record", wide_record},
    {"entities", entities},
    {"records under values of many fields", records_under_fields},
    {"records under long values", records_under_long_values},
};

static void run_check(struct slice request)
{
    struct otlp_figures figures;
    const char *reason;
    work_begin();
    bool is_fine = otlp_check(signal_at_hand, request, &figures, &reason);
    work_end();
    if (!is_fine)
        fprintf(stderr, "%s\n", reason);
    assert(is_fine);
}

static void run_json(struct slice request)
{
    const struct otlp_message *message = otlp_request(signal_at_hand);
    struct buffer *encoded = NULL;
    char reason[JSON_REASON_BYTES_MAX];
    work_begin();
    struct buffer *text = json_write(message, request, NULL);
    assert(text != NULL);
    work_produced(text->size);
    enum json_result result = json_read(message, buffer_slice(text), NULL, &encoded, reason);
    work_end();
    assert(result == JSON_READ);
    buffer_unref(encoded);
    buffer_unref(text);
}

/* A new batch each time, as JSON and the wire give one. */
static void split(struct slice request, struct otlp_limit limit)
{
    struct budget budget;
    budget_init(&budget, UINT64_MAX);
    struct batch *rest = message_batch(signal_at_hand, request);
    work_begin();
    while (rest != NULL) {
        struct batch *head;
        struct batch *tail;
        otlp_split(rest, limit, &budget, &head, &tail);
        batch_unref(rest);
        batch_unref(head);
        rest = tail;
    }
    work_end();
    budget_fini(&budget);
}

static void run_split_by_one(struct slice request)
{
    split(request, (struct otlp_limit){.items_max = 1});
}

static void run_split_by_ten(struct slice request)
{
    split(request, (struct otlp_limit){.items_max = 10});
}

static void run_split_by_bytes(struct slice request)
{
    split(request, (struct otlp_limit){.bytes_max = 100});
}

static void count_result(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    assert(receipt != NULL && outcome != NULL);
    ++*(unsigned *)arg;
}

/* One request for each 64 bytes, each with a receipt, and pieces of one item. */
static void run_gather(struct slice request)
{
    enum { REQUEST_BYTES = 64 };
    struct budget budget;
    struct batcher batcher;
    size_t count = request.size / REQUEST_BYTES + 1;
    struct receipt *receipts = mem_zalloc(count * sizeof(*receipts));
    unsigned results = 0;
    struct profile_bytes one = {0};
    put_records(&one, 1);
    struct batch *batch = message_batch(signal_at_hand, enclose(&one, 0));
    budget_init(&budget, UINT64_MAX);
    batcher_init(&batcher, signal_at_hand, &budget, NULL);
    work_begin();
    for (size_t i = 0; i < count; i++) {
        receipt_init(&receipts[i], count_result, &results);
        batcher_add(&batcher, batch, &receipts[i]);
    }
    while (batcher.pending != NULL) {
        struct export_batch cut = batcher_cut(&batcher, (struct otlp_limit){.items_max = 1});
        export_batch_resolve(&cut, &outcome_accepted);
    }
    work_end();
    assert(results == count);
    batcher_fini(&batcher);
    batch_unref(batch);
    profile_bytes_fini(&one);
    mem_free(receipts);
    budget_fini(&budget);
}

#define ACTION(verb, name, type, expression, source)                                               \
    {                                                                                              \
        .action = (verb), .key = (name), .converted_type = (type), .pattern = (expression),        \
        .from_attribute = (source), .from_context = "",                                            \
    }

static const struct attribute_action_config action_configs[] = {
    ACTION("hash", "h", "", "^k0000.*", ""),
    ACTION("convert", "k000001", "string", "", ""),
    ACTION("upsert", "b", "", "", "k000002"),
    ACTION("insert", "c", "", "", "k000003"),
    ACTION("update", "k000000", "", "", "k000004"),
    ACTION("extract", "k000005", "", "(?P<d>[a-z]+)(?P<e>.*)", ""),
    ACTION("delete", "x", "", "^k0.*", ""),
};

static void run_edit(struct slice request)
{
    struct error error;
    struct resource_editor editor;
    struct attribute_actions *actions = attribute_actions_create(
        action_configs, sizeof(action_configs) / sizeof(action_configs[0]), &error);
    assert(actions != NULL);
    resource_editor_init(&editor, actions, NULL, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = resource_edit(&editor, batch);
    work_end();
    batch_unref(edited);
    batch_unref(batch);
    resource_editor_fini(&editor);
    attribute_actions_destroy(actions);
}

static void run_attributes(struct slice request)
{
    static const char *const texts[] = {"k00000.", "."};
    struct error error;
    struct record_edit edit;
    struct attribute_editor editor;
    struct record_match_config match = {.match_type = "regexp"};
    struct config_texts names = {.count = 2, .texts = texts};
    if (signal_at_hand == TRACES)
        match.span_names = names;
    else if (signal_at_hand == LOGS)
        match.log_bodies = names;
    else
        match.metric_names = names;
    struct attribute_actions *actions = attribute_actions_create(
        action_configs, sizeof(action_configs) / sizeof(action_configs[0]), &error);
    struct record_matcher *exclude = record_matcher_create(&match, signal_at_hand, &error);
    assert(actions != NULL && exclude != NULL);
    attribute_editor_init(&editor, actions, NULL, exclude, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = attribute_editor_run(&editor, &edit, batch);
    work_end();
    batch_unref(edited);
    batch_unref(batch);
    record_edit_fini(&edit);
    attribute_editor_fini(&editor);
    record_matcher_destroy(exclude);
    attribute_actions_destroy(actions);
}

/* Reads everything that properties can ask for; keeps what it reads. */
static void run_filter(struct slice request)
{
    static const char *const texts[] = {"none", "nothing"};
    static struct record_match_attribute_config attribute = {.key = "nothing"};
    struct error error;
    struct record_edit edit;
    struct record_filter filter;
    struct config_texts names = {.count = 2, .texts = texts};
    const struct config_sections attributes = {.count = 1, .items = &attribute};
    struct record_match_config match = {.match_type = "regexp", .has_metric_resources = true};
    if (signal_at_hand == TRACES)
        match.span_names = names;
    else if (signal_at_hand == LOGS)
        match.log_bodies = names;
    else
        match.metric_names = names;
    if (signal_at_hand != METRICS)
        match.attributes = attributes;
    match.resources = attributes;
    struct record_matcher *exclude = record_matcher_create(&match, signal_at_hand, &error);
    assert(exclude != NULL);
    record_filter_init(&filter, signal_at_hand, NULL, exclude, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = record_filter_run(&filter, &edit, batch);
    work_end();
    batch_unref(edited);
    batch_unref(batch);
    record_edit_fini(&edit);
    record_filter_fini(&filter);
    record_matcher_destroy(exclude);
}

static void run_sampler(struct slice request)
{
    const struct record_sampler_settings settings = {
        .percentage = 50,
        .precision = 4,
        .uses_trace_id = true,
        .from_attribute = slice_of_text("k000003"),
        .priority = slice_of_text("k000001"),
    };
    struct record_edit edit;
    struct record_sampler sampler;
    if (signal_at_hand == METRICS) {
        work_begin();
        work_end();
        return;
    }
    record_sampler_init(&sampler, &settings, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = record_sampler_run(&sampler, &edit, batch);
    work_end();
    batch_unref(edited);
    batch_unref(batch);
    record_edit_fini(&edit);
    record_sampler_fini(&sampler);
}

/* Removes every second attribute, masks some, and says so. */
static void run_redaction(struct slice request)
{
    static const char *const patterns[] = {"[02468]$"};
    static const char *const values[] = {"v", "[0-9]"};
    const struct redaction_settings settings = {
        .redacts_all_types = true,
        .ignored_key_patterns = {.count = 1, .texts = patterns},
        .blocked_values = {.count = 2, .texts = values},
        .has_counts = true,
        .has_keys = true,
    };
    struct error error;
    struct record_edit edit;
    struct redaction redaction;
    struct redaction_rules *rules = redaction_rules_create(&settings, &error);
    assert(rules != NULL);
    redaction_init(&redaction, rules, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = redaction_run(&redaction, &edit, batch);
    work_end();
    batch_unref(edited);
    batch_unref(batch);
    record_edit_fini(&edit);
    redaction_fini(&redaction);
    redaction_rules_destroy(rules);
}

static void run_grouping(struct slice request)
{
    const struct slice keys[] = {slice_of_text("k000001"), slice_of_text("k000003")};
    struct record_edit edit;
    struct attribute_grouper grouper;
    attribute_grouper_init(&grouper, keys, 2, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *edited = attribute_grouper_run(&grouper, &edit, batch);
    work_end();
    work_produced(edited->bytes);
    batch_unref(edited);
    batch_unref(batch);
    record_edit_fini(&edit);
    attribute_grouper_fini(&grouper);
}

static void run_deltas(struct slice request)
{
    static const struct delta_match all;
    const struct delta_settings settings = {
        .initial = DELTA_INITIAL_KEEP, .include = &all, .exclude = &all};
    struct record_edit edit;
    struct delta_editor editor;
    if (signal_at_hand != METRICS) {
        work_begin();
        work_end();
        return;
    }
    struct stream_table *table = delta_table_create(NULL);
    delta_editor_init(&editor, &settings, table, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    batch_unref(delta_editor_run(&editor, &edit, batch));
    batch_unref(delta_editor_run(&editor, &edit, batch));
    work_end();
    batch_unref(batch);
    record_edit_fini(&edit);
    delta_editor_fini(&editor);
    stream_table_destroy(table);
}

static void run_sums(struct slice request)
{
    struct record_edit edit;
    struct sum_editor editor;
    if (signal_at_hand != METRICS) {
        work_begin();
        work_end();
        return;
    }
    struct stream_table *table = sum_table_create(UINT64_MAX, NULL);
    sum_editor_init(&editor, table, NULL);
    record_edit_init(&edit, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    batch_unref(sum_editor_run(&editor, &edit, batch));
    batch_unref(sum_editor_run(&editor, &edit, batch));
    work_end();
    batch_unref(batch);
    record_edit_fini(&edit);
    sum_editor_fini(&editor);
    stream_table_destroy(table);
}

/* One plan of OTTL; paths are those that all signals have. */
static void run_plan(struct slice request, const struct ottl_group *group, unsigned users)
{
    struct ottl_plan *plan = ottl_plan_create(signal_at_hand, users);
    struct error error;
    struct ottl_runner runner;
    bool is_fine = ottl_plan_add(plan, group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct ottl_result result = ottl_runner_run(&runner, batch);
    work_end();
    assert(result.verdict == OTTL_PASSED);
    batch_unref(result.batch);
    batch_unref(batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
}

static enum ottl_context record_context(void)
{
    return signal_at_hand == TRACES    ? OTTL_SPAN
           : signal_at_hand == METRICS ? OTTL_DATA_POINT
                                       : OTTL_LOG;
}

static void run_conditions(struct slice request)
{
    static const char *const texts[] = {
        "attributes[\"k000001\"] == \"x\"",
        "resource.attributes[\"k000002\"] != nil and attributes[\"k000003\"] == 1",
        "attributes == resource.attributes and attributes[\"nothing\"] == 1",
    };
    const struct ottl_group group = {.context = record_context(),
                                     .paths = OTTL_PATHS_BARE,
                                     .error_mode = OTTL_SILENT,
                                     .conditions = texts,
                                     .conditions_count = sizeof(texts) / sizeof(texts[0])};
    run_plan(request, &group, OTTL_FOR_FILTER);
}

/* As the connector routing divides: those that have the attribute, and the others. */
static void run_division(struct slice request)
{
    static const char *const text = "attributes[\"k000001\"] == nil";
    const struct ottl_group group = {.context = record_context(),
                                     .paths = OTTL_PATHS_OF_CONTEXT,
                                     .error_mode = OTTL_SILENT,
                                     .conditions = &text,
                                     .conditions_count = 1};
    struct ottl_plan *plan = ottl_plan_create(signal_at_hand, OTTL_FOR_ROUTING);
    struct error error;
    struct ottl_runner runner;
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct ottl_division division = ottl_runner_divide(&runner, batch, false);
    work_end();
    assert(division.verdict == OTTL_PASSED);
    batch_unref(division.matched);
    batch_unref(division.rest);
    batch_unref(batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
}

static void run_statements(struct slice request)
{
    static const char *const texts[] = {
        "set(attributes[\"a\"], attributes[\"k000001\"])",
        "set(attributes[\"b\"][\"c\"], [1, \"x\"])",
        "delete_key(attributes, \"k000002\")",
        "delete_matching_keys(attributes, \"^k0001\")",
        "keep_matching_keys(attributes, \"^.\")",
        "merge_maps(attributes, {\"k000003\": 1, \"d\": 2}, \"upsert\")",
        "set(resource.attributes[\"last\"], attributes[\"k000004\"])",
    };
    const struct ottl_group group = {.context = record_context(),
                                     .paths = OTTL_PATHS_BARE,
                                     .error_mode = OTTL_SILENT,
                                     .statements = texts,
                                     .statements_count = sizeof(texts) / sizeof(texts[0])};
    run_plan(request, &group, OTTL_FOR_TRANSFORM);
}

static void run_trace_split(struct slice request)
{
    struct trace_split split;
    uint64_t produced = 0;
    if (signal_at_hand != TRACES) {
        work_begin();
        work_end();
        return;
    }
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    trace_split_init(&split, NULL);
    enum trace_split_result result = trace_split_run(&split, batch, UINT64_MAX);
    assert(result == TRACE_SPLIT_DONE);
    for (size_t i = 0; i < split.fragments_count; i++)
        produced += trace_split_fragments(&split)[i].buffer->size;
    trace_split_fini(&split);
    work_end();
    work_produced(produced);
    batch_unref(batch);
}

static void print(struct slice request, bool is_detailed)
{
    struct text text;
    work_begin();
    text_init(&text, NULL);
    otlp_text_count(signal_at_hand, request);
    otlp_text_write(&text, signal_at_hand, request, is_detailed);
    text_fini(&text);
    work_end();
}

static void run_normal_text(struct slice request)
{
    print(request, false);
}

static void run_detailed_text(struct slice request)
{
    print(request, true);
}

static void read_spans(struct slice request, enum join_mark mark)
{
    struct join_settings settings = {
        .attributes = {{JOIN_SPAN_NAME, slice_of_text("span_name")},
                       {JOIN_OF_SPAN, slice_of_text("k000001")},
                       {JOIN_OF_RESOURCE, slice_of_text("k000002")}},
        .attributes_count = 3,
        .values_max = 10,
        .index_entries = 50,
        .index_bytes = SPAN_SHARD_BYTES_MIN,
        .mark = mark,
        .repairs_identity = true,
        .uses_window = true,
        .finds_single_traces = true,
    };
    struct error error;
    struct span_reader reader;
    struct span_figures figures;
    if (signal_at_hand != TRACES) {
        work_begin();
        work_end();
        return;
    }
    bool is_fine = url_template_read("http://g/{service_name}{from_ms}", UINT_MAX,
                                     &settings.profile_url, &error);
    assert(is_fine);
    struct join_store *store = join_store_create(&settings, 1);
    assert(store != NULL);
    service_set_add(&store->services, 0, true, 1);
    span_reader_init(&reader, store, 0, NULL);
    struct batch *batch = message_batch(signal_at_hand, request);
    work_begin();
    struct batch *marked = span_reader_read(&reader, batch, 1, &figures);
    work_end();
    batch_unref(marked);
    batch_unref(batch);
    span_reader_fini(&reader);
    join_store_destroy(store);
}

static void run_span_reader(struct slice request)
{
    read_spans(request, JOIN_MARK_OFF);
}

static void run_span_marks(struct slice request)
{
    read_spans(request, JOIN_MARK_ALL);
}

/* A tenant for each 64 bytes, twice. */
static void run_partitions(struct slice request)
{
    static const char *const keys[] = {"tenant"};
    struct budget budget;
    struct partitions partitions;
    size_t count = request.size / 64 + 1;
    budget_init(&budget, UINT64_MAX);
    partitions_init(&partitions, signal_at_hand, &budget,
                    (struct config_texts){.count = 1, .texts = keys}, 0);
    partitions_owned_by(&partitions, (timer_fn)abort, &budget);
    work_begin();
    for (size_t i = 0; i < 2 * count; i++) {
        char name[32];
        struct client_metadata row = {"tenant", name_of(name, i % count)};
        struct client_info *client = client_info_create("", &row, 1);
        struct partition *partition = partitions_of(&partitions, client, 0);
        if (partition != NULL)
            partition_settle(partition, true);
        client_info_unref(client);
    }
    work_end();
    partitions_fini(&partitions);
    budget_fini(&budget);
}

/* Points with many attributes, some of which the resource has, too. */
static struct slice points_beside_a_wide_resource(size_t n)
{
    enum { WIDE = 500, POINTS_PART = 50 };
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < WIDE; i++)
        put_attribute(&out, 1, name_of(name, 2 * i), "v");
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t records = out.size;
    put_text(&out, 1, "m");
    size_t gauge = out.size;
    for (size_t i = 0; i < n / POINTS_PART; i++) {
        size_t point = out.size;
        put_attribute(&out, 7, "point", name_of(name, i));
        for (size_t j = 0; j < WIDE; j++)
            put_attribute(&out, 7, name_of(name, 3 * j), "v");
        profile_bytes_wrap(&out, point, 1);
    }
    profile_bytes_wrap(&out, gauge, 5);
    profile_bytes_wrap(&out, records, RECORDS);
    return enclose(&out, records);
}

/* Their series are in order only by their last label. */
static struct slice points_of_a_late_difference(size_t n)
{
    enum { WIDE = 1000, POINTS_PART = 100 };
    struct profile_bytes out = {0};
    char name[32];
    put_text(&out, 1, "m");
    size_t gauge = out.size;
    for (size_t i = 0; i < n / POINTS_PART; i++) {
        size_t point = out.size;
        for (size_t j = 0; j < WIDE; j++)
            put_attribute(&out, 7, name_of(name, j), "v");
        put_attribute(&out, 7, "z", name_of(name, i));
        profile_bytes_wrap(&out, point, 1);
    }
    profile_bytes_wrap(&out, gauge, 5);
    profile_bytes_wrap(&out, 0, RECORDS);
    return enclose(&out, 0);
}

static const struct work_shape wide_points[] = {
    {"points beside a wide resource", points_beside_a_wide_resource},
    {"points that differ in the last of many labels", points_of_a_late_difference},
};

/* n points of a metric, each a new series, whose resource and scope are there. */
static struct slice end_points(struct profile_bytes *out, size_t n, const char *metric,
                               const char *description)
{
    char name[32];
    const size_t records = out->size;
    put_text(out, 1, metric);
    put_text(out, 2, description);
    const size_t gauge = out->size;
    for (size_t i = 0; i < n; i++) {
        const size_t point = out->size;
        put_attribute(out, 7, "point", name_of(name, i));
        profile_bytes_wrap(out, point, 1);
    }
    profile_bytes_wrap(out, gauge, 5);
    profile_bytes_wrap(out, records, RECORDS);
    return message_done(out);
}

static char *long_text_of(size_t n)
{
    char *text = mem_zalloc(8 * n + 1);
    memset(text, '-', 8 * n);
    return text;
}

static struct slice points_of_a_long_name(size_t n)
{
    struct profile_bytes out = {0};
    char *name = long_text_of(n);
    (void)end_points(&out, n, name, "");
    mem_free(name);
    return enclose(&out, 0);
}

static struct slice points_of_a_wide_scope(size_t n)
{
    struct profile_bytes out = {0};
    char *value = long_text_of(n);
    put_attribute(&out, 3, "a", value);
    profile_bytes_wrap(&out, 0, 1);
    (void)end_points(&out, n, "m", "");
    mem_free(value);
    return enclose(&out, 0);
}

static struct slice points_of_a_long_key(size_t n)
{
    struct profile_bytes out = {0};
    char *key = long_text_of(n);
    put_attribute(&out, 1, key, "v");
    profile_bytes_wrap(&out, 0, RESOURCE);
    const size_t records = out.size;
    (void)end_points(&out, n, "m", "");
    mem_free(key);
    return enclose(&out, records);
}

/* Those of the scope and of each point clash. */
static struct slice points_of_a_scope_in_the_way(size_t n)
{
    struct profile_bytes out = {0};
    char *value = long_text_of(n);
    char name[32];
    put_attribute(&out, 3, "a", value);
    profile_bytes_wrap(&out, 0, 1);
    const size_t records = out.size;
    put_text(&out, 1, "m");
    const size_t gauge = out.size;
    for (size_t i = 0; i < n; i++) {
        const size_t point = out.size;
        put_attribute(&out, 7, "otel_scope_a", name_of(name, i));
        profile_bytes_wrap(&out, point, 1);
    }
    profile_bytes_wrap(&out, gauge, 5);
    profile_bytes_wrap(&out, records, RECORDS);
    mem_free(value);
    return enclose(&out, 0);
}

/* As many as scopes, which all have the labels of one resource. */
static struct slice points_of_many_scopes(size_t n)
{
    struct profile_bytes out = {0};
    char *value = long_text_of(n);
    char name[32];
    put_attribute(&out, 1, "a", value);
    profile_bytes_wrap(&out, 0, RESOURCE);
    for (size_t i = 0; i < n; i++) {
        const size_t records = out.size;
        put_text(&out, 1, "m");
        const size_t gauge = out.size;
        put_attribute(&out, 7, "point", name_of(name, i));
        profile_bytes_wrap(&out, gauge, 1);
        profile_bytes_wrap(&out, gauge, 5);
        profile_bytes_wrap(&out, records, RECORDS);
        profile_bytes_wrap(&out, records, SCOPES);
    }
    profile_bytes_wrap(&out, 0, 1);
    mem_free(value);
    return message_done(&out);
}

/* A description as long as the service. */
static struct slice points_of_a_long_service(size_t n)
{
    struct profile_bytes out = {0};
    char *value = long_text_of(n);
    put_attribute(&out, 1, "service.name", value);
    put_attribute(&out, 1, "service.instance.id", "1");
    profile_bytes_wrap(&out, 0, RESOURCE);
    const size_t records = out.size;
    (void)end_points(&out, n, "m", value);
    mem_free(value);
    return enclose(&out, records);
}

static struct slice points_of_a_longer_service(size_t n)
{
    struct profile_bytes out = {0};
    char *value = long_text_of(8 * n);
    put_attribute(&out, 1, "service.name", value);
    put_attribute(&out, 1, "service.instance.id", "1");
    profile_bytes_wrap(&out, 0, RESOURCE);
    const size_t records = out.size;
    (void)end_points(&out, n, "m", "");
    mem_free(value);
    return enclose(&out, records);
}

static void put_fixed64(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    uint8_t field[1 + sizeof(value)] = {(uint8_t)wire_tag(number, WIRE_FIXED64)};
    for (size_t i = 0; i < sizeof(value); i++)
        field[1 + i] = (uint8_t)(value >> 8 * i);
    profile_bytes_add(out, slice_of(field, sizeof(field)));
}

/* A data point of a delta with one bucket below zero and so many above. */
static void put_exponential_delta(struct profile_bytes *out, uint64_t start_ns, uint64_t negative,
                                  size_t positives)
{
    static const uint64_t threshold_bits = 0x7e37e43c8800759c; /* 1e300 */
    const size_t point = out->size;
    put_fixed64(out, 2, start_ns);
    put_fixed64(out, 3, 5);
    if (positives == 0)
        put_fixed64(out, 14, threshold_bits);
    size_t buckets = out->size;
    put_number(out, 1, negative);
    put_number(out, 2, 1);
    profile_bytes_wrap(out, buckets, 9);
    buckets = out->size;
    for (size_t i = 0; i < positives; i++)
        put_varint(out, 1);
    profile_bytes_wrap(out, buckets, 2);
    profile_bytes_wrap(out, buckets, 8);
    profile_bytes_wrap(out, point, 1);
}

/* One has many buckets; those that follow cannot be added to it, since theirs are too far away. */
static struct slice points_too_far_from_others(size_t n)
{
    enum { FAR = 2000000000, DELTA = 1, EXPONENTIAL = 10 };
    struct profile_bytes out = {0};
    put_text(&out, 1, "m");
    const size_t data = out.size;
    put_exponential_delta(&out, 1, 0, 8 * n);
    for (size_t i = 0; i < n; i++)
        put_exponential_delta(&out, 5, FAR, 0);
    put_number(&out, 2, DELTA);
    profile_bytes_wrap(&out, data, EXPONENTIAL);
    profile_bytes_wrap(&out, 0, RECORDS);
    return enclose(&out, 0);
}

/* One has many buckets; those that follow have none, and are added to it. */
static struct slice points_added_to_many_buckets(size_t n)
{
    enum { DELTA = 1, EXPONENTIAL = 10 };
    static const char scale[] = {6 << 3, 0};
    struct profile_bytes out = {0};
    put_text(&out, 1, "m");
    const size_t data = out.size;
    for (unsigned number = 8; number <= 9; number++) {
        const size_t buckets = out.size;
        for (size_t i = 0; i < 5 * n; i++)
            put_varint(&out, 1);
        profile_bytes_wrap(&out, buckets, 2);
        profile_bytes_wrap(&out, buckets, number);
    }
    profile_bytes_wrap(&out, data, 1);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, 1, scale, sizeof(scale));
    put_number(&out, 2, DELTA);
    profile_bytes_wrap(&out, data, EXPONENTIAL);
    profile_bytes_wrap(&out, 0, RECORDS);
    return enclose(&out, 0);
}

static const struct work_shape points_of_long_texts[] = {
    {"points of a long name", points_of_a_long_name},
    {"points of a wide scope", points_of_a_wide_scope},
    {"points of a long key", points_of_a_long_key},
    {"points of a scope in the way", points_of_a_scope_in_the_way},
    {"points too far from others", points_too_far_from_others},
    {"points added to many buckets", points_added_to_many_buckets},
    {"points of many scopes", points_of_many_scopes},
    {"points of a long service", points_of_a_long_service},
    {"points of a longer service", points_of_a_longer_service},
};

/* bytes_max: of the store; 0: no limit. */
static struct metric_store *add_points(struct slice request, struct budget *budget,
                                       uint64_t bytes_max)
{
    static const struct config_pairs none;
    struct metric_store *store = metric_store_create(&(struct metric_store_settings){
        .labels = {.naming = {.name_space = "", .has_suffixes = true},
                   .const_labels = &none,
                   .has_scope = true,
                   .has_resource = true,
                   .has_service = true},
        .expiration_ns = UINT64_MAX,
        .budget = budget,
        .bytes_max = bytes_max,
    });
    struct metric_addition *addition = metric_addition_create(store, request, 1);
    while (metric_addition_go_on(addition))
        continue;
    metric_addition_end(addition);
    return store;
}

static void add_points_to_store(struct slice request, uint64_t bytes_max)
{
    struct budget budget;
    budget_init(&budget, UINT64_MAX);
    work_begin();
    struct metric_store *store = add_points(request, &budget, bytes_max);
    work_end();
    metric_store_destroy(store);
    budget_fini(&budget);
}

static void run_points(struct slice request)
{
    add_points_to_store(request, 0);
}

/* For the resource there may be some, but not for the labels of series. */
static void run_points_without_room(struct slice request)
{
    add_points_to_store(request, request.size / 2);
}

static void run_series(struct slice request)
{
    struct exposition_format format = {.form = EXPOSITION_TEXT};
    struct budget budget;
    struct exposition exposition;
    budget_init(&budget, UINT64_MAX);
    exposition_init(&exposition, &format, &budget);
    work_begin();
    struct metric_store *store = add_points(request, &budget, 0);
    struct metric_snapshot *snapshot = metric_store_snapshot(store, 0);
    while (metric_store_take(store, snapshot))
        continue;
    metric_snapshot_write(snapshot, &exposition);
    work_end();
    work_produced(exposition.size + metric_store_figures(store).bytes);
    while (metric_store_release(store, snapshot))
        continue;
    exposition_fini(&exposition);
    metric_store_destroy(store);
    budget_fini(&budget);
}

static void run_remote_write_as(struct slice request, bool is_v2)
{
    enum { REQUEST_BYTES = 3000000 };
    const struct remote_write_settings settings = {
        .naming = {.name_space = "", .has_suffixes = true},
        .labels = {.has_scope = true, .has_resource = true, .has_service = true, .is_v2 = is_v2},
        .has_target_info = true,
        .has_metadata = true,
        .is_v2 = is_v2,
    };
    struct remote_write_set set;
    struct remote_write_losses losses;
    struct buffer *body;
    uint64_t points;
    uint64_t produced = 0;
    work_begin();
    remote_write_set_init(&set, SIZE_MAX / 2, NULL);
    enum remote_write_result result = remote_write_translate(request, &settings, &set, &losses);
    assert(result == REMOTE_WRITE_TRANSLATED);
    struct remote_write_cursor cursor = remote_write_cursor_of(&set);
    while (remote_write_cursor_next(&cursor, NULL, REQUEST_BYTES, &body, &points) ==
           REMOTE_WRITE_REQUEST) {
        produced += body->size;
        buffer_unref(body);
    }
    work_end();
    work_produced(produced + set.arena.used_bytes);
    remote_write_set_fini(&set);
}

static void run_remote_write(struct slice request)
{
    run_remote_write_as(request, false);
}

static void run_remote_write_v2(struct slice request)
{
    run_remote_write_as(request, true);
}

static void run_zipkin(struct slice request, enum zipkin_format format)
{
    struct zipkin_body body;
    work_begin();
    enum zipkin_result result = zipkin_write(request, format, SIZE_MAX / 2, NULL, &body);
    work_end();
    assert(result == ZIPKIN_WRITTEN);
    work_produced(body.text != NULL ? body.text->size : 0);
    buffer_unref(body.text);
}

static void run_zipkin_json(struct slice request)
{
    run_zipkin(request, ZIPKIN_JSON);
}

static void run_zipkin_proto(struct slice request)
{
    run_zipkin(request, ZIPKIN_PROTO);
}

/* With ids and nothing else. */
static void put_spans(struct profile_bytes *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t span = out->size;
        put_bytes(out, 1, "0123456789abcdef", 16);
        put_bytes(out, 2, "01234567", 8);
        profile_bytes_wrap(out, span, RECORDS);
    }
}

/* Values without text, of resource and scope, for each span. */
static struct slice spans_of_wide_values(size_t n)
{
    struct profile_bytes out = {0};
    put_list_attribute(&out, 1, "peer.service", n);
    put_list_attribute(&out, 1, "other", n);
    profile_bytes_wrap(&out, 0, RESOURCE);
    const size_t records = out.size;
    put_list_attribute(&out, 3, "scoped", n);
    profile_bytes_wrap(&out, records, 1);
    put_spans(&out, n);
    return enclose(&out, records);
}

/* A port with many zeros in front, which all spans have. */
static struct slice spans_of_long_port(size_t n)
{
    struct profile_bytes out = {0};
    char *zeros = mem_zalloc(8 * n + 1);
    memset(zeros, '0', 8 * n);
    put_attribute(&out, 1, "net.peer.port", zeros);
    mem_free(zeros);
    profile_bytes_wrap(&out, 0, RESOURCE);
    const size_t records = out.size;
    put_spans(&out, n);
    return enclose(&out, records);
}

static const struct work_shape wide_spans[] = {
    {"spans of wide values", spans_of_wide_values},
    {"spans of a long port", spans_of_long_port},
};

static const struct work_stage of_traces[] = {
    {.name = "JSON for Zipkin", .run = run_zipkin_json, .per_byte_max = 42},
    {.name = "protobuf for Zipkin", .run = run_zipkin_proto, .per_byte_max = 42},
};

/* Makes other metrics of each. */
static void run_metric_functions(struct slice request)
{
    static const char *const texts[] = {
        "scale_metric(2.0, \"s\")",
        "extract_count_metric(true) where type != METRIC_DATA_TYPE_SUM",
        "copy_metric(name = \"copy\") where name != \"copy\"",
        "convert_sum_to_gauge()",
        "convert_gauge_to_sum(\"delta\", true)",
    };
    const struct ottl_group group = {.context = OTTL_METRIC,
                                     .paths = OTTL_PATHS_BARE,
                                     .error_mode = OTTL_SILENT,
                                     .statements = texts,
                                     .statements_count = sizeof(texts) / sizeof(texts[0])};
    run_plan(request, &group, OTTL_FOR_TRANSFORM);
}

static const struct work_stage of_metrics[] = {
    {.name = "OTTL, metrics of metrics", .run = run_metric_functions, .per_byte_max = 700},
    {.name = "series for Prometheus", .run = run_series, .per_byte_max = 110},
};

/* Labels that points share are written for each; what that may cost has a limit of its own
 * (check_work in remote_write_writer.c), so the last shape is not for these. */
static const struct work_stage of_writing[] = {
    {.name = "remote write", .run = run_remote_write, .per_byte_max = 70},
    {.name = "remote write 2.0", .run = run_remote_write_v2, .per_byte_max = 90},
};

/* Without what shows each series whole. */
static const struct work_stage of_points[] = {
    {.name = "points for Prometheus", .run = run_points, .per_byte_max = 60},
    {.name = "points without room", .run = run_points_without_room, .per_byte_max = 60},
};

static const struct work_stage stages[] = {
    {.name = "check", .run = run_check, .per_byte_max = 14},
    {.name = "JSON, written and read", .run = run_json, .per_byte_max = 30},
    {.name = "split by one item", .run = run_split_by_one, .per_byte_max = 880},
    {.name = "split by ten items", .run = run_split_by_ten, .per_byte_max = 300},
    {.name = "split by 100 bytes", .run = run_split_by_bytes, .per_byte_max = 230},
    {.name = "resource edits", .run = run_edit, .per_byte_max = 96},
    {.name = "attribute edits", .run = run_attributes, .per_byte_max = 120},
    {.name = "include and exclude", .run = run_filter, .per_byte_max = 120},
    {.name = "sampling", .run = run_sampler, .per_byte_max = 320},
    {.name = "redaction", .run = run_redaction, .per_byte_max = 400},
    {.name = "grouping by attributes", .run = run_grouping, .per_byte_max = 600},
    {.name = "deltas", .run = run_deltas, .per_byte_max = 600},
    {.name = "sums of deltas", .run = run_sums, .per_byte_max = 600},
    {.name = "OTTL, division", .run = run_division, .per_byte_max = 140},
    {.name = "OTTL, conditions", .run = run_conditions, .per_byte_max = 140},
    {.name = "OTTL, statements", .run = run_statements, .per_byte_max = 700},
    {.name = "traces, one by one", .run = run_trace_split, .per_byte_max = 300},
    {.name = "debug, normal", .run = run_normal_text, .per_byte_max = 150},
    {.name = "debug, detailed", .run = run_detailed_text, .per_byte_max = 470},
    {.name = "spans into the index", .run = run_span_reader, .per_byte_max = 180},
    {.name = "marks on spans", .run = run_span_marks, .per_byte_max = 180},
};

/* For these the shape does not matter but for its size. */
static const struct work_stage gatherings[] = {
    {.name = "gather", .run = run_gather, .per_byte_max = 43},
    /* Beyond those that are kept when they are idle. */
    {.name = "partitions", .run = run_partitions, .n = 4 * WORK_N, .per_byte_max = 25},
};

int main(int argc, char **argv)
{
    int failed = 0;
    for (signal_at_hand = TRACES; signal_at_hand <= LOGS; signal_at_hand++) {
        printf("%s\n", signal_name(signal_at_hand));
        failed += work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                             sizeof(shapes) / sizeof(shapes[0]), argc, argv);
        if (signal_at_hand == TRACES) {
            failed += work_check(of_traces, sizeof(of_traces) / sizeof(of_traces[0]), shapes,
                                 sizeof(shapes) / sizeof(shapes[0]), argc, argv);
            failed += work_check(of_traces, sizeof(of_traces) / sizeof(of_traces[0]), wide_spans, 2,
                                 argc, argv);
        }
        if (signal_at_hand == METRICS) {
            failed += work_check(of_metrics, sizeof(of_metrics) / sizeof(of_metrics[0]), shapes,
                                 sizeof(shapes) / sizeof(shapes[0]), argc, argv);
            failed += work_check(of_metrics, sizeof(of_metrics) / sizeof(of_metrics[0]),
                                 wide_points, 2, argc, argv);
            failed += work_check(of_writing, 2, shapes, sizeof(shapes) / sizeof(shapes[0]) - 1,
                                 argc, argv);
            failed += work_check(of_writing, 2, wide_points, 2, argc, argv);
            failed += work_check(of_points, 2, points_of_long_texts, 9, argc, argv);
        }
        failed += work_check(gatherings, sizeof(gatherings) / sizeof(gatherings[0]), &shapes[4], 1,
                             argc, argv);
    }
    return failed > 0;
}
