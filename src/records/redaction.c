/* SPDX-License-Identifier: Apache-2.0 */
/* First all attributes of a message get their verdicts, then the removed ones go, then a summary is
 * added. Bodies of log records are changed in place. Runs on the owner's thread. */
#include "src/records/redaction.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/value.h"
#include "src/records/query_sanitizer.h"
#include "src/records/record_limits.h"
#include "src/records/redact_text.h"
#include "src/records/url_sanitizer.h"

enum {
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    EVENT_ATTRIBUTES = 3,
    LOG_BODY = 5,
    LOG_ATTRIBUTES = 6,
    DATA_POINTS = 1,
    KEY = 1, /* KeyValue */
    VALUE = 2,
    VALUE_OF_LIST = 5, /* AnyValue */
    VALUE_OF_MAP = 6,
    ELEMENTS = 1, /* ArrayValue, KeyValueList */
    TEXT_VALUE = 1,
    NAMES_FIRST = 16,
    MORE_BYTES = 40, /* of the text behind the names */
};

struct summary_keys {
    const char *keys[REDACTED_KINDS]; /* NULL: none */
    const char *counts[REDACTED_KINDS];
};
static const struct summary_keys of_attributes = {
    {"redaction.redacted.keys", "redaction.masked.keys", "redaction.allowed.keys", NULL},
    {"redaction.redacted.count", "redaction.masked.count", "redaction.allowed.count",
     "redaction.ignored.count"}};
static const struct summary_keys of_body = {
    {"redaction.body.redacted.keys", "redaction.body.masked.keys", "redaction.body.allowed.keys",
     NULL},
    {"redaction.body.redacted.count", "redaction.body.masked.count", "redaction.body.allowed.count",
     "redaction.body.ignored.count"}};

void redaction_init(struct redaction *redaction, const struct redaction_rules *rules,
                    struct budget *budget)
{
    *redaction = (struct redaction){.rules = rules, .budget = budget};
    attribute_list_init(&redaction->list, RECORD_VALUES_BYTES_MAX, budget);
    attribute_list_init(&redaction->inner, RECORD_VALUES_BYTES_MAX, budget);
}

static void forget_names(struct redaction *redaction)
{
    for (size_t i = 0; i < REDACTED_KINDS; i++) {
        struct redacted_names *names = &redaction->names[i];
        if (redaction->budget != NULL)
            budget_return(redaction->budget, names->capacity * sizeof(names->names[0]));
        mem_free(names->names);
        *names = (struct redacted_names){.total = 0};
    }
}

void redaction_fini(struct redaction *redaction)
{
    forget_names(redaction);
    attribute_list_fini(&redaction->list);
    attribute_list_fini(&redaction->inner);
}

/* ---- Summaries ---- */

static void begin_names(struct redaction *redaction)
{
    for (size_t i = 0; i < REDACTED_KINDS; i++)
        redaction->names[i].total = redaction->names[i].more = redaction->names[i].count = 0;
}

/* The name lives as long as the message. Charged beyond the budget's limit if need be: names are
 * few. */
static void note(struct redaction *redaction, unsigned kind, struct slice name)
{
    struct redacted_names *names = &redaction->names[kind];
    names->total++;
    if (kind == REDACTED_IGNORED || !redaction_settings_of(redaction->rules)->has_keys)
        return;
    if (names->count == REDACTED_NAMES_MAX) {
        names->more++;
        return;
    }
    if (names->count == names->capacity) {
        size_t capacity = names->capacity > 0 ? 2 * names->capacity : NAMES_FIRST;
        if (redaction->budget != NULL)
            budget_take(redaction->budget, (capacity - names->capacity) * sizeof(name));
        names->names = mem_resize(names->names, capacity * sizeof(name));
        names->capacity = capacity;
    }
    names->names[names->count++] = name;
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Adds the names that an earlier redaction left, sorts all, and joins them with commas. */
static void put_names(struct redaction *redaction, unsigned kind, struct attribute_list *list,
                      const char *key)
{
    struct redacted_names *names = &redaction->names[kind];
    const struct attribute *old = attribute_list_find(list, slice_of_text(key));
    struct value value = {.type = VALUE_EMPTY};
    if (old != NULL)
        value = value_read(old->value);
    struct slice rest = value.type == VALUE_STRING ? value.bytes : slice_of(NULL, 0);
    for (bool has_more = rest.size > 0; has_more;) {
        const uint8_t *comma = rest.size > 0 ? memchr(rest.data, ',', rest.size) : NULL;
        size_t size = comma != NULL ? (size_t)(comma - rest.data) : rest.size;
        note(redaction, kind, slice_of(rest.data, size));
        names->total--;
        has_more = comma != NULL;
        if (has_more)
            rest = slice_of(comma + 1, rest.size - size - 1);
    }
    qsort(names->names, names->count, sizeof(names->names[0]), compare_names);
    char more[MORE_BYTES] = "";
    if (names->more > 0)
        snprintf(more, sizeof(more), "%sand %" PRIu64 " more", names->count > 0 ? "," : "",
                 names->more);
    size_t size = strlen(more);
    for (size_t i = 0; i < names->count; i++)
        size += (i > 0) + names->names[i].size;
    char *text = arena_try_alloc(&list->arena, size > 0 ? size : 1);
    struct slice encoded;
    if (text == NULL)
        return;
    size_t used = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (i > 0)
            text[used++] = ',';
        if (names->names[i].size > 0)
            memcpy(text + used, names->names[i].data, names->names[i].size);
        used += names->names[i].size;
    }
    memcpy(text + used, more, strlen(more));
    if (value_write_string(&list->arena, slice_of(text, size), &encoded))
        attribute_list_put(list, slice_of_text(key), encoded);
}

static void put_summary(struct redaction *redaction, struct attribute_list *list,
                        const struct summary_keys *keys)
{
    const struct redaction_settings *settings = redaction_settings_of(redaction->rules);
    for (unsigned kind = 0; settings->has_counts && kind < REDACTED_KINDS; kind++) {
        uint64_t total = redaction->names[kind].total;
        if (total == 0)
            continue;
        if (settings->has_keys && keys->keys[kind] != NULL)
            put_names(redaction, kind, list, keys->keys[kind]);
        struct slice key = slice_of_text(keys->counts[kind]);
        const struct attribute *old = attribute_list_find(list, key);
        struct value count = {.type = VALUE_INT};
        struct slice encoded;
        if (old != NULL) {
            struct value before = value_read(old->value);
            count.integer = before.type == VALUE_INT ? before.integer : 0;
        }
        count.integer = (int64_t)((uint64_t)count.integer + total);
        if (value_write(&list->arena, &count, &encoded))
            attribute_list_put(list, key, encoded);
    }
}

/* ---- Attributes ---- */

static void set_text(struct attribute_list *list, struct attribute *attribute, struct slice text)
{
    struct slice encoded;
    if (!value_write_string(&list->arena, text, &encoded))
        /* Rather nothing than what must not leave. */
        encoded = slice_of(NULL, 0);
    attribute_list_set(list, attribute, encoded);
}

/* Of the database; empty: none is named. */
static struct slice find_system(const struct attribute_list *list)
{
    static const char *const keys[] = {"db.system.name", "db.system"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct attribute *attribute = attribute_list_find(list, slice_of_text(keys[i]));
        struct value value = {.type = VALUE_EMPTY};
        if (attribute != NULL)
            value = value_read(attribute->value);
        if (value.type == VALUE_STRING && value.bytes.size > 0)
            return value.bytes;
    }
    return slice_of(NULL, 0);
}

static void redact_list(struct redaction *redaction, struct record_edit *edit,
                        struct attribute_list *list)
{
    const struct redaction_rules *rules = redaction->rules;
    const struct url_sanitizer *urls = redaction_settings_of(rules)->urls;
    const struct query_sanitizer *queries = redaction_settings_of(rules)->queries;
    bool has_queries = query_sanitizer_has_attributes(queries);
    struct slice system = has_queries ? find_system(list) : slice_of(NULL, 0);
    bool reads_all = redaction_settings_of(rules)->redacts_all_types;
    begin_names(redaction);
    for (size_t i = 0; i < list->count && record_edit_goes_on(edit); i++) {
        struct attribute *attribute = &list->items[i];
        enum redaction_verdict verdict = redaction_of_key(rules, attribute->key);
        if (verdict == KEY_IGNORED || verdict == KEY_REMOVED) {
            attribute->is_doomed = verdict == KEY_REMOVED;
            note(redaction, attribute->is_doomed ? REDACTED_REMOVED : REDACTED_IGNORED,
                 attribute->key);
            continue;
        }
        struct value value = value_read(attribute->value);
        struct slice text = value.type == VALUE_STRING ? value.bytes : slice_of_text("");
        bool is_text = value.type == VALUE_STRING;
        if (reads_all && !is_text && !value_to_string(&list->arena, attribute->value, &text)) {
            set_text(list, attribute, slice_of_text("****"));
            continue;
        }
        if (!record_edit_goes_into(edit, text))
            return;
        if (redaction_allows_value(rules, text)) {
            note(redaction, REDACTED_ALLOWED, attribute->key);
            continue;
        }
        struct slice clean = verdict == KEY_MASKED ? redaction_mask(rules, &list->arena, text)
                                                   : redaction_clean(rules, &list->arena, text);
        if (verdict == KEY_KEPT && url_sanitizer_has_key(urls, attribute->key))
            clean = url_sanitize(&list->arena, clean);
        if (verdict == KEY_KEPT && has_queries)
            clean = query_sanitizer_attribute(queries, &list->arena, clean, attribute->key, system,
                                              edit->batch->signal == LOGS);
        if (verdict == KEY_KEPT && slice_equal(clean, text))
            continue;
        note(redaction, REDACTED_MASKED, attribute->key);
        set_text(list, attribute, clean);
    }
    attribute_list_remove_doomed(list);
    put_summary(redaction, list, &of_attributes);
}

/* A message with attributes and nothing else to redact. */
static void redact_message(struct redaction *redaction, struct record_edit *edit,
                           const struct wire_field *message, uint32_t number,
                           struct attribute_list *list)
{
    record_read_attributes(edit, message->bytes, number, list);
    if (!record_list_is_whole(edit, list))
        return;
    redact_list(redaction, edit, list);
    if (!record_list_is_whole(edit, list) || !list->has_changed)
        return;
    size_t opened = record_open(edit, message);
    record_put_attributes(edit, message->bytes, number, list);
    record_close(edit, opened, message);
}

static void redact_head(void *arg, struct record_edit *edit, enum record_level level,
                        const struct wire_field *field)
{
    struct redaction *redaction = arg;
    redact_message(redaction, edit, field,
                   level == RECORD_RESOURCE ? RESOURCE_ATTRIBUTES : SCOPE_ATTRIBUTES,
                   &redaction->list);
}

/* A span's name before and after. A name that is there several times goes but for the last one. */
struct span_name {
    struct slice whole; /* the last field */
    struct slice before, after;
    bool has_changed;
};

enum span_kind { INTERNAL = 1, SERVER = 2, CLIENT = 3 };

/* Whether the span is of a request over HTTP, as far as the Go collector can tell. */
static bool has_url(const struct attribute_list *list, struct slice name, uint64_t kind)
{
    static const char *const keys[] = {"http.route",
                                       "http.request.method",
                                       "http.request.method_original",
                                       "http.method",
                                       "http.response.status_code",
                                       "http.scheme",
                                       "http.target",
                                       "http.url",
                                       "url.full"};
    if (kind != SERVER && kind != CLIENT)
        return false;
    if (name.size > 0 && memchr(name.data, '/', name.size) != NULL)
        return true;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (attribute_list_find(list, slice_of_text(keys[i])) != NULL)
            return true;
    return false;
}

/* list: the span's attributes, after their redaction. What is a URL is no query. */
static struct slice clean_name(struct redaction *redaction, struct attribute_list *list,
                               struct slice text, uint64_t kind)
{
    const struct redaction_settings *settings = redaction_settings_of(redaction->rules);
    if (url_sanitizer_has_span_names(settings->urls) && has_url(list, text, kind)) {
        struct slice url = url_sanitize(&list->arena, text);
        if (!slice_equal(url, text) && !url_is_hidden(url))
            return url;
    }
    if (!query_sanitizer_has_span_names(settings->queries) ||
        (kind != INTERNAL && kind != SERVER && kind != CLIENT))
        return text;
    struct slice system = find_system(list);
    if (system.size == 0)
        return text;
    return query_sanitizer_span_name(settings->queries, &list->arena, text, system);
}

/* list: as for clean_name. */
static struct span_name redact_name(struct redaction *redaction, struct slice span,
                                    struct attribute_list *list)
{
    const struct redaction_settings *settings = redaction_settings_of(redaction->rules);
    struct span_name name = {.has_changed = false};
    if (!url_sanitizer_has_span_names(settings->urls) &&
        !query_sanitizer_has_span_names(settings->queries))
        return name;
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    uint64_t kind = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number == SPAN_KIND)
            kind = field.number_value;
        if (field.number == SPAN_NAME) {
            name.whole = field.whole;
            name.before = field.bytes;
        }
    }
    name.after = clean_name(redaction, list, name.before, kind);
    name.has_changed = name.after.size > 0 && !slice_equal_text(name.after, "...") &&
                       !slice_equal(name.after, name.before) &&
                       !redaction_allows_value(redaction->rules, name.before);
    return name;
}

static void put_name(struct record_edit *edit, const struct wire_field *field,
                     const struct span_name *name)
{
    if (field->whole.data != name->whole.data) {
        record_remove(edit, field->whole);
        return;
    }
    size_t size = wire_field_size(SPAN_NAME, name->after.size);
    uint8_t *room = record_replace(edit, field->whole, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_bytes(&writer, SPAN_NAME, name->after);
    assert(!writer.has_failed && writer.at == writer.end);
}

/* Attributes of the message in redaction->list, at their first place; events where they are. */
static void redact_span(struct redaction *redaction, struct record_edit *edit,
                        const struct wire_field *span)
{
    struct attribute_list *list = &redaction->list;
    struct wire_reader reader = wire_reader_of(span->bytes);
    struct wire_field field;
    bool is_put = false;
    record_read_attributes(edit, span->bytes, SPAN_ATTRIBUTES, list);
    if (!record_list_is_whole(edit, list))
        return;
    redact_list(redaction, edit, list);
    if (!record_list_is_whole(edit, list))
        return;
    struct span_name name = redact_name(redaction, span->bytes, list);
    size_t opened = record_open(edit, span);
    while (record_edit_goes_on(edit) && wire_next_field(&reader, &field)) {
        if (field.number == SPAN_NAME && name.has_changed)
            put_name(edit, &field, &name);
        if (field.number == SPAN_EVENTS)
            redact_message(redaction, edit, &field, EVENT_ATTRIBUTES, &redaction->inner);
        if (field.number != SPAN_ATTRIBUTES || !list->has_changed)
            continue;
        if (is_put)
            record_remove(edit, field.whole);
        else
            record_replace_attributes(edit, field.whole, SPAN_ATTRIBUTES, list);
        is_put = true;
    }
    record_close(edit, opened, span);
}

static void redact_metric(struct redaction *redaction, struct record_edit *edit,
                          const struct wire_field *metric)
{
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field data;
    struct wire_field point;
    size_t opened = record_open(edit, metric);
    while (!edit->has_failed && wire_next_field(&reader, &data)) {
        if (data.number != METRIC_GAUGE && data.number != METRIC_SUM &&
            data.number != METRIC_HISTOGRAM && data.number != METRIC_EXPONENTIAL &&
            data.number != METRIC_SUMMARY)
            continue;
        uint32_t number = metric_point_attributes((enum metric_kind)data.number);
        struct wire_reader points = wire_reader_of(data.bytes);
        size_t opened_data = record_open(edit, &data);
        while (record_edit_goes_on(edit) && wire_next_field(&points, &point))
            if (point.number == DATA_POINTS)
                redact_message(redaction, edit, &point, number, &redaction->list);
        record_close(edit, opened_data, &data);
    }
    record_close(edit, opened, metric);
}

/* ---- Bodies ---- */

/* A body while it is read; its changes are made only if `writes`, its names noted only if `notes`:
 * the attributes, which get the names, may come before it. */
struct body {
    struct redaction *redaction;
    struct record_edit *edit;
    bool writes;
    bool notes;
    bool has_others; /* a value with several fields, of which the last counts */
    char path[REDACTED_PATH_BYTES_MAX];
    size_t path_size;
};

static void note_path(const struct body *body, unsigned kind)
{
    struct arena *arena = &body->redaction->list.arena;
    if (!body->notes)
        return;
    struct slice name = slice_of(NULL, 0);
    if (redaction_settings_of(body->redaction->rules)->has_keys && kind != REDACTED_IGNORED) {
        if (body->path_size >= body->redaction->paths_left) {
            body->redaction->names[kind].total++;
            body->redaction->names[kind].more++;
            return;
        }
        body->redaction->paths_left -= body->path_size + 1;
        char *copy = arena_try_alloc(arena, body->path_size > 0 ? body->path_size : 1);
        if (copy != NULL) {
            memcpy(copy, body->path, body->path_size);
            name = slice_of(copy, body->path_size);
        }
    }
    note(body->redaction, kind, name);
}

static void extend_path(struct body *body, bool is_nested, struct slice key)
{
    const struct slice parts[] = {slice_of_text(is_nested ? "." : ""), key};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t room = sizeof(body->path) - body->path_size;
        size_t size = parts[i].size < room ? parts[i].size : room;
        if (size > 0)
            memcpy(body->path + body->path_size, parts[i].data, size);
        body->path_size += size;
    }
}

static struct slice clean_body(const struct redaction *redaction, struct arena *arena,
                               struct slice text)
{
    const struct redaction_settings *settings = redaction_settings_of(redaction->rules);
    struct slice clean = redaction_clean(redaction->rules, arena, text);
    if (settings->urls != NULL)
        clean = url_sanitize(arena, clean);
    return settings->queries != NULL ? query_sanitizer_body(settings->queries, arena, clean)
                                     : clean;
}

/* The message becomes a string. */
static void put_text(const struct body *body, struct slice content, struct slice text)
{
    if (!body->writes)
        return;
    size_t size = wire_field_size(TEXT_VALUE, text.size);
    uint8_t *room = record_replace(body->edit, content, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_bytes(&writer, TEXT_VALUE, text);
    assert(!writer.has_failed && writer.at == writer.end);
}

static void redact_scalar(struct body *body, struct slice content)
{
    const struct redaction_rules *rules = body->redaction->rules;
    struct arena *arena = &body->redaction->list.arena;
    struct value value = value_read(content);
    struct slice text = value.bytes;
    if (value.type != VALUE_STRING && !value_to_string(arena, content, &text)) {
        put_text(body, content, slice_of_text("****"));
        return;
    }
    if (!record_edit_goes_into(body->edit, text))
        return;
    if (redaction_allows_value(rules, text)) {
        note_path(body, REDACTED_ALLOWED);
        return;
    }
    struct slice clean = clean_body(body->redaction, arena, text);
    if (slice_equal(clean, text))
        return;
    note_path(body, REDACTED_MASKED);
    put_text(body, content, clean);
}

static void redact_value(struct body *body, const struct wire_field *field, unsigned depth);

/* The last value of a KeyValue, or where it would be. */
static struct wire_field value_of(struct slice key_value, struct slice *ret_key)
{
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    const uint8_t *end = key_value.data + key_value.size;
    struct wire_field value = {.number = VALUE, .bytes = slice_of(end, 0)};
    value.whole = value.bytes;
    *ret_key = slice_of(NULL, 0);
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY)
            *ret_key = field.bytes;
        if (field.number == VALUE)
            value = field;
    }
    return value;
}

/* Gives a message that is not there yet its place. */
static void put_missing_value(struct body *body, const struct wire_field *field)
{
    struct slice text = slice_of_text("");
    struct slice clean = clean_body(body->redaction, &body->redaction->list.arena, text);
    if (redaction_allows_value(body->redaction->rules, text)) {
        note_path(body, REDACTED_ALLOWED);
        return;
    }
    if (slice_equal(clean, text))
        return;
    note_path(body, REDACTED_MASKED);
    if (!body->writes)
        return;
    size_t content = wire_field_size(TEXT_VALUE, clean.size);
    size_t size = wire_field_size(field->number, content);
    uint8_t *room = record_replace(body->edit, field->whole, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_header(&writer, field->number, content);
    wire_write_bytes(&writer, TEXT_VALUE, clean);
    assert(!writer.has_failed && writer.at == writer.end);
}

static void mask_value(struct body *body, const struct wire_field *field)
{
    struct value value = value_read(field->bytes);
    struct slice text = value.type == VALUE_STRING ? value.bytes : slice_of_text("");
    if (!record_edit_goes_into(body->edit, text))
        return;
    struct slice masked =
        redaction_mask(body->redaction->rules, &body->redaction->list.arena, text);
    note_path(body, REDACTED_MASKED);
    if (!body->writes)
        return;
    size_t content = wire_field_size(TEXT_VALUE, masked.size);
    size_t size = wire_field_size(VALUE, content);
    uint8_t *room = record_replace(body->edit, field->whole, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_header(&writer, VALUE, content);
    wire_write_bytes(&writer, TEXT_VALUE, masked);
    assert(!writer.has_failed && writer.at == writer.end);
}

/* Of several values of an entry the last counts, and the others go: a decoder that merges them may
 * find what is to be hidden. */
static void remove_other_values(struct body *body, const struct wire_field *element,
                                const struct wire_field *value)
{
    struct wire_reader reader = wire_reader_of(element->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != VALUE || field.whole.data == value->whole.data)
            continue;
        body->has_others = true;
        if (body->writes)
            record_remove(body->edit, field.whole);
    }
}

/* One entry of a map, or element of a list. */
static void redact_element(struct body *body, const struct wire_field *element, bool is_map,
                           size_t index, unsigned depth)
{
    size_t path_size = body->path_size;
    struct slice key;
    if (!is_map) {
        char text[32];
        snprintf(text, sizeof(text), "[%zu]", index);
        extend_path(body, depth > 1, slice_of_text(text));
        redact_value(body, element, depth);
        body->path_size = path_size;
        return;
    }
    struct wire_field value = value_of(element->bytes, &key);
    enum redaction_verdict verdict = redaction_of_key(body->redaction->rules, key);
    extend_path(body, depth > 1, key);
    if (verdict == KEY_IGNORED) {
        note_path(body, REDACTED_IGNORED);
    } else if (verdict == KEY_REMOVED) {
        note_path(body, REDACTED_REMOVED);
        if (body->writes)
            record_remove(body->edit, element->whole);
    } else {
        size_t opened = body->writes ? record_open(body->edit, element) : 0;
        remove_other_values(body, element, &value);
        if (verdict == KEY_MASKED)
            mask_value(body, &value);
        else if (value.whole.size == 0)
            put_missing_value(body, &value);
        else
            redact_value(body, &value, depth);
        if (body->writes)
            record_close(body->edit, opened, element);
    }
    body->path_size = path_size;
}

/* An AnyValue. Of several of its fields the last counts, and the others go: they may have what is
 * to be hidden. Recursion is bounded: otlp_check refused what is deeper. */
static void redact_value(struct body *body, const struct wire_field *field, unsigned depth)
{
    struct wire_reader reader = wire_reader_of(field->bytes);
    struct wire_field inner;
    struct wire_field last = {.number = 0};
    assert(depth <= WIRE_DEPTH_MAX);
    while (wire_next_field(&reader, &inner))
        last = inner;
    size_t opened = body->writes ? record_open(body->edit, field) : 0;
    if (last.number != VALUE_OF_LIST && last.number != VALUE_OF_MAP) {
        redact_scalar(body, field->bytes);
    } else {
        bool is_map = last.number == VALUE_OF_MAP;
        size_t before = (size_t)(last.whole.data - field->bytes.data);
        body->has_others |= before > 0;
        if (body->writes && before > 0)
            record_remove(body->edit, slice_of(field->bytes.data, before));
        size_t opened_last = body->writes ? record_open(body->edit, &last) : 0;
        reader = wire_reader_of(last.bytes);
        for (size_t index = 0; record_edit_goes_on(body->edit) && wire_next_field(&reader, &inner);)
            if (inner.number == ELEMENTS)
                redact_element(body, &inner, is_map, index++, depth + 1);
        if (body->writes)
            record_close(body->edit, opened_last, &last);
    }
    if (body->writes)
        record_close(body->edit, opened, field);
}

/* Reads or changes the body. False: there is nothing to change. */
static bool redact_body(struct redaction *redaction, struct record_edit *edit,
                        const struct wire_field *field, bool writes, bool notes)
{
    struct body body = {.redaction = redaction, .edit = edit, .writes = writes, .notes = notes};
    struct value value = value_read(field->bytes);
    bool is_scalar = value.type != VALUE_LIST && value.type != VALUE_MAP;
    /* As in Go: of an allowed body nothing is said. */
    if (is_scalar) {
        struct slice text = value.bytes;
        if (value.type != VALUE_STRING &&
            !value_to_string(&redaction->list.arena, field->bytes, &text))
            text = slice_of_text("");
        if (!record_edit_goes_into(edit, text) || redaction_allows_value(redaction->rules, text))
            return false;
        extend_path(&body, false, slice_of_text("body"));
    }
    if (field->whole.size == 0)
        put_missing_value(&body, field);
    else
        redact_value(&body, field, 0);
    return body.has_others || redaction->names[REDACTED_REMOVED].total > 0 ||
           redaction->names[REDACTED_MASKED].total > 0;
}

static void redact_log_record(struct redaction *redaction, struct record_edit *edit,
                              const struct wire_field *record)
{
    struct attribute_list *list = &redaction->list;
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field field;
    struct wire_field body = {.number = LOG_BODY,
                              .bytes = slice_of(record->bytes.data + record->bytes.size, 0)};
    bool is_put = false;
    body.whole = body.bytes;
    while (wire_next_field(&reader, &field)) {
        if (field.number == LOG_BODY)
            body = field;
    }
    record_read_attributes(edit, record->bytes, LOG_ATTRIBUTES, list);
    if (!record_list_is_whole(edit, list))
        return;
    redact_list(redaction, edit, list);
    begin_names(redaction);
    redaction->paths_left =
        REDACTED_PATHS_BYTES_MIN + REDACTED_PATHS_GROWTH_MAX * record->bytes.size;
    size_t opened = record_open(edit, record);
    /* The body is changed where it is: after this loop has come to it. */
    bool changes = redact_body(redaction, edit, &body, false, true);
    put_summary(redaction, list, &of_body);
    reader = wire_reader_of(record->bytes);
    while (record_list_is_whole(edit, list) && wire_next_field(&reader, &field)) {
        if (field.number == LOG_BODY) {
            if (field.whole.data == body.whole.data && changes)
                redact_body(redaction, edit, &body, true, false);
            else if (field.whole.data != body.whole.data)
                record_remove(edit, field.whole);
        }
        if (field.number != LOG_ATTRIBUTES || !list->has_changed)
            continue;
        if (is_put)
            record_remove(edit, field.whole);
        else
            record_replace_attributes(edit, field.whole, LOG_ATTRIBUTES, list);
        is_put = true;
    }
    if (record_list_is_whole(edit, list) && body.whole.size == 0 && changes)
        redact_body(redaction, edit, &body, true, false);
    if (!edit->has_failed && list->has_changed && !is_put)
        record_replace_attributes(edit, slice_of(record->bytes.data + record->bytes.size, 0),
                                  LOG_ATTRIBUTES, list);
    record_close(edit, opened, record);
}

static bool redact_record(void *arg, struct record_edit *edit, const struct wire_field *record)
{
    struct redaction *redaction = arg;
    if (edit->batch->signal == TRACES)
        redact_span(redaction, edit, record);
    else if (edit->batch->signal == METRICS)
        redact_metric(redaction, edit, record);
    else
        redact_log_record(redaction, edit, record);
    return true;
}

struct batch *redaction_run(struct redaction *redaction, struct record_edit *edit,
                            struct batch *batch)
{
    const struct record_visitor visitor = {
        .arg = redaction, .head = redact_head, .record = redact_record};
    struct batch *edited = record_edit_run(edit, batch, &visitor);
    attribute_list_clear(&redaction->list);
    attribute_list_clear(&redaction->inner);
    forget_names(redaction);
    return edited;
}
