/* SPDX-License-Identifier: Apache-2.0 */
/* Reads target groups. Two readers, JSON and YAML, feed one builder. Pure functions. */
#include "receivers/scrape/target_groups.h"

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/otlp/json/json_scan.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { FIRST_ROOM = 8, WORD_BYTES_SHOWN = 60 };

/* The groups so far, and the one that is being read. */
struct builder {
    struct target_groups *groups;
    const struct prometheus_label *source;
    struct error *error;
    size_t room; /* for groups */
    struct slice *targets;
    size_t targets_count;
    size_t targets_room;
    struct prometheus_label *labels;
    size_t labels_count;
    size_t labels_room;
};

static int shown(struct slice text)
{
    return (int)(text.size < WORD_BYTES_SHOWN ? text.size : WORD_BYTES_SHOWN);
}

static bool fail_for_memory(struct builder *builder)
{
    return error_set(builder->error, "the memory budget has no room for its targets");
}

/* Room for one more element; NULL: no memory. */
static void *grow(struct builder *builder, void *elements, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return elements;
    size_t more = *room > 0 ? *room * 2 : FIRST_ROOM;
    void *grown = arena_try_alloc(&builder->groups->arena, more * size);
    if (grown == NULL)
        return NULL;
    if (count > 0)
        memcpy(grown, elements, count * size);
    *room = more;
    return grown;
}

static bool copy(struct builder *builder, struct slice text, struct slice *ret_copy)
{
    *ret_copy = (struct slice){.size = 0};
    if (text.size == 0)
        return true;
    uint8_t *room = arena_try_alloc(&builder->groups->arena, text.size);
    if (room == NULL)
        return fail_for_memory(builder);
    memcpy(room, text.data, text.size);
    *ret_copy = slice_of(room, text.size);
    return true;
}

static void begin_group(struct builder *builder)
{
    builder->targets = NULL;
    builder->targets_count = 0;
    builder->targets_room = 0;
    builder->labels = NULL;
    builder->labels_count = 0;
    builder->labels_room = 0;
}

static bool add_target(struct builder *builder, struct slice target)
{
    if (builder->groups->targets_count + builder->targets_count == TARGET_GROUPS_TARGETS_MAX)
        return error_set(builder->error, "more than %d targets: spread them over several files",
                         TARGET_GROUPS_TARGETS_MAX);
    struct slice *targets = grow(builder, builder->targets, builder->targets_count,
                                 &builder->targets_room, sizeof(*targets));
    if (targets == NULL)
        return fail_for_memory(builder);
    builder->targets = targets;
    return copy(builder, target, &targets[builder->targets_count++]);
}

/* A name that is there already gets the new value. */
static bool add_label(struct builder *builder, struct slice name, struct slice value)
{
    if (name.size == 0 || !utf8_is_valid(name))
        return error_set(builder->error, "\"%.*s\" is not a valid label name", shown(name),
                         (const char *)name.data);
    for (size_t i = 0; i < builder->labels_count; i++)
        if (slice_equal(builder->labels[i].name, name))
            return copy(builder, value, &builder->labels[i].value);
    if (builder->labels_count == TARGET_GROUP_LABELS_MAX)
        return error_set(builder->error, "a group has more than %d labels",
                         TARGET_GROUP_LABELS_MAX);
    struct prometheus_label *labels = grow(builder, builder->labels, builder->labels_count,
                                           &builder->labels_room, sizeof(*labels));
    if (labels == NULL)
        return fail_for_memory(builder);
    builder->labels = labels;
    struct prometheus_label *label = &labels[builder->labels_count++];
    return copy(builder, name, &label->name) && copy(builder, value, &label->value);
}

/* Targets share the labels of their group only here: few bytes of a list can become many. */
static bool count_labels(struct builder *builder)
{
    uint64_t bytes = builder->labels_count * sizeof(builder->labels[0]);
    for (size_t i = 0; i < builder->labels_count; i++)
        bytes += builder->labels[i].name.size + builder->labels[i].value.size;
    builder->groups->label_bytes += bytes * builder->targets_count;
    return builder->groups->label_bytes <= TARGET_GROUPS_LABEL_BYTES_MAX ||
           error_set(builder->error,
                     "the labels of all targets together have more than %u MiB: give them fewer, "
                     "or spread the targets over several files",
                     (unsigned)(TARGET_GROUPS_LABEL_BYTES_MAX / MIB));
}

static bool end_group(struct builder *builder)
{
    struct target_groups *groups = builder->groups;
    if (!add_label(builder, builder->source->name, builder->source->value))
        return false;
    if (!count_labels(builder))
        return false;
    if (groups->count == TARGET_GROUPS_MAX)
        return error_set(builder->error,
                         "more than %d target groups: spread them over several "
                         "files",
                         TARGET_GROUPS_MAX);
    struct target_group *grown =
        grow(builder, groups->groups, groups->count, &builder->room, sizeof(*grown));
    if (grown == NULL)
        return fail_for_memory(builder);
    groups->groups = grown;
    groups->groups[groups->count++] = (struct target_group){
        .targets = builder->targets,
        .targets_count = builder->targets_count,
        .labels = builder->labels,
        .labels_count = builder->labels_count,
    };
    groups->targets_count += builder->targets_count;
    return true;
}

static struct builder begin(struct target_groups *groups, const struct prometheus_label *source,
                            struct budget *budget, struct error *error)
{
    *groups = (struct target_groups){.count = 0};
    arena_init_charged(&groups->arena, TARGET_GROUPS_MEMORY_MAX, budget);
    return (struct builder){.groups = groups, .source = source, .error = error};
}

void target_groups_free(struct target_groups *groups)
{
    arena_clear(&groups->arena);
    groups->groups = NULL;
    groups->count = 0;
    groups->targets_count = 0;
    groups->label_bytes = 0;
}

/* JSON, as Go's encoding/json reads it: names of fields in any case, null for nothing. */

static size_t line_of(const struct json_scan *scan)
{
    size_t line = 1;
    for (const uint8_t *at = scan->begin; at < scan->at; at++)
        line += *at == '\n';
    return line;
}

static bool json_fail(struct builder *builder, const struct json_scan *scan, const char *expected)
{
    char found[JSON_FOUND_BYTES_MAX];
    json_scan_found(scan, scan->at, found);
    return error_set(builder->error, "line %zu: expected %s, found %s", line_of(scan), expected,
                     found);
}

/* Moves past the character, and the white space around it. */
static bool json_take(struct json_scan *scan, uint8_t wanted)
{
    json_scan_space(scan);
    if (json_scan_peek(scan) != wanted)
        return false;
    scan->at++;
    json_scan_space(scan);
    return true;
}

/* A string, or null for an empty one. */
static bool json_text(struct builder *builder, struct json_scan *scan, struct slice *ret_text)
{
    struct json_string string;
    *ret_text = (struct slice){.size = 0};
    if (json_scan_word(scan, "null"))
        return true;
    if (json_scan_peek(scan) != '"' || !json_scan_string(scan, &string))
        return json_fail(builder, scan, "a string");
    *ret_text = string.raw;
    if (!string.has_escapes)
        return true;
    uint8_t *room = arena_try_alloc(&builder->groups->arena, string.raw.size);
    if (room == NULL)
        return fail_for_memory(builder);
    *ret_text = slice_of(room, json_unescape(&string, room));
    return true;
}

static bool json_targets(struct builder *builder, struct json_scan *scan)
{
    struct slice target;
    builder->targets_count = 0;
    if (json_scan_word(scan, "null"))
        return true;
    if (!json_take(scan, '['))
        return json_fail(builder, scan, "a list of targets");
    if (json_take(scan, ']'))
        return true;
    do {
        if (!json_text(builder, scan, &target) || !add_target(builder, target))
            return false;
    } while (json_take(scan, ','));
    return json_take(scan, ']') || json_fail(builder, scan, "\",\" or \"]\"");
}

static bool json_key(struct builder *builder, struct json_scan *scan, struct slice *ret_key)
{
    if (json_scan_peek(scan) != '"')
        return json_fail(builder, scan, "a name in quotes");
    return json_text(builder, scan, ret_key) &&
           (json_take(scan, ':') || json_fail(builder, scan, "\":\""));
}

static bool json_labels(struct builder *builder, struct json_scan *scan)
{
    struct slice name;
    struct slice value;
    builder->labels_count = 0; /* the last of equal keys counts, above too */
    if (json_scan_word(scan, "null"))
        return true;
    if (!json_take(scan, '{'))
        return json_fail(builder, scan, "a map of labels");
    if (json_take(scan, '}'))
        return true;
    do {
        if (!json_key(builder, scan, &name) || !json_text(builder, scan, &value) ||
            !add_label(builder, name, value))
            return false;
    } while (json_take(scan, ','));
    return json_take(scan, '}') || json_fail(builder, scan, "\",\" or \"}\"");
}

static bool json_group(struct builder *builder, struct json_scan *scan)
{
    struct slice key;
    begin_group(builder);
    if (json_scan_word(scan, "null"))
        return error_set(builder->error, "nil target group item found: a group is null");
    if (!json_take(scan, '{'))
        return json_fail(builder, scan, "a map with targets and labels");
    if (json_take(scan, '}'))
        return end_group(builder);
    do {
        if (!json_key(builder, scan, &key))
            return false;
        bool is_targets = slice_equal_nocase(key, "targets");
        if (!is_targets && !slice_equal_nocase(key, "labels"))
            return error_set(builder->error,
                             "line %zu: unknown field \"%.*s\": a group has targets and labels",
                             line_of(scan), shown(key), (const char *)key.data);
        if (is_targets ? !json_targets(builder, scan) : !json_labels(builder, scan))
            return false;
    } while (json_take(scan, ','));
    return (json_take(scan, '}') || json_fail(builder, scan, "\",\" or \"}\"")) &&
           end_group(builder);
}

static bool json_groups(struct builder *builder, struct json_scan *scan)
{
    json_scan_space(scan);
    if (json_scan_word(scan, "null"))
        return true;
    if (!json_take(scan, '['))
        return json_fail(builder, scan, "a list of target groups");
    if (json_take(scan, ']'))
        return true;
    do {
        if (!json_group(builder, scan))
            return false;
    } while (json_take(scan, ','));
    return json_take(scan, ']') || json_fail(builder, scan, "\",\" or \"]\"");
}

bool target_groups_read_json(struct target_groups *groups, struct slice text,
                             const struct prometheus_label *source, struct budget *budget,
                             struct error *error)
{
    struct builder builder = begin(groups, source, budget, error);
    struct json_scan scan = json_scan_of(text);
    if (json_groups(&builder, &scan)) {
        json_scan_space(&scan);
        if (scan.at == scan.end)
            return true;
        json_fail(&builder, &scan, "the end of the text");
    }
    target_groups_free(groups);
    return false;
}

/* YAML, as yaml.UnmarshalStrict reads it */

struct yaml_reader {
    struct builder *builder;
    yaml_parser_t parser;
    yaml_event_t event; /* the next one */
};

static bool yaml_fail(struct yaml_reader *reader, const char *expected)
{
    return error_set(reader->builder->error, "line %zu: expected %s",
                     reader->event.start_mark.line + 1, expected);
}

static bool yaml_advance(struct yaml_reader *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event)) {
        memset(&reader->event, 0, sizeof(reader->event));
        return error_set(reader->builder->error, "line %zu: %s",
                         reader->parser.problem_mark.line + 1,
                         reader->parser.problem != NULL ? reader->parser.problem : "broken YAML");
    }
    bool has_anchor =
        reader->event.type == YAML_ALIAS_EVENT ||
        (reader->event.type == YAML_SCALAR_EVENT && reader->event.data.scalar.anchor != NULL) ||
        (reader->event.type == YAML_SEQUENCE_START_EVENT &&
         reader->event.data.sequence_start.anchor != NULL) ||
        (reader->event.type == YAML_MAPPING_START_EVENT &&
         reader->event.data.mapping_start.anchor != NULL);
    return !has_anchor || yaml_fail(reader, "no anchors and aliases: write the values out");
}

static struct slice yaml_scalar(const struct yaml_reader *reader)
{
    return slice_of(reader->event.data.scalar.value, reader->event.data.scalar.length);
}

static bool yaml_is_null(const struct yaml_reader *reader)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (reader->event.type != YAML_SCALAR_EVENT ||
        reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (slice_equal_text(yaml_scalar(reader), words[i]))
            return true;
    return false;
}

static struct slice yaml_text(const struct yaml_reader *reader)
{
    return yaml_is_null(reader) ? (struct slice){.size = 0} : yaml_scalar(reader);
}

static bool yaml_targets(struct yaml_reader *reader)
{
    if (yaml_is_null(reader))
        return yaml_advance(reader);
    if (reader->event.type != YAML_SEQUENCE_START_EVENT)
        return yaml_fail(reader, "a list of targets");
    if (!yaml_advance(reader))
        return false;
    while (reader->event.type == YAML_SCALAR_EVENT)
        if (!add_target(reader->builder, yaml_text(reader)) || !yaml_advance(reader))
            return false;
    if (reader->event.type != YAML_SEQUENCE_END_EVENT)
        return yaml_fail(reader, "a target, host:port");
    return yaml_advance(reader);
}

static bool yaml_labels(struct yaml_reader *reader)
{
    struct builder *builder = reader->builder;
    if (yaml_is_null(reader))
        return yaml_advance(reader);
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return yaml_fail(reader, "a map of labels");
    if (!yaml_advance(reader))
        return false;
    while (reader->event.type == YAML_SCALAR_EVENT) {
        struct slice name;
        if (!copy(builder, yaml_text(reader), &name))
            return false;
        for (size_t i = 0; i < builder->labels_count; i++)
            if (slice_equal(builder->labels[i].name, name))
                return yaml_fail(reader, "each label once");
        if (!yaml_advance(reader))
            return false;
        if (reader->event.type != YAML_SCALAR_EVENT)
            return yaml_fail(reader, "a string as the value of a label");
        if (!add_label(builder, name, yaml_text(reader)) || !yaml_advance(reader))
            return false;
    }
    if (reader->event.type != YAML_MAPPING_END_EVENT)
        return yaml_fail(reader, "the name of a label");
    return yaml_advance(reader);
}

static bool yaml_group(struct yaml_reader *reader)
{
    bool has_targets = false;
    bool has_labels = false;
    begin_group(reader->builder);
    if (yaml_is_null(reader))
        return error_set(reader->builder->error,
                         "line %zu: nil target group item found: a group "
                         "is null",
                         reader->event.start_mark.line + 1);
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return yaml_fail(reader, "a map with targets and labels");
    if (!yaml_advance(reader))
        return false;
    while (reader->event.type == YAML_SCALAR_EVENT) {
        struct slice key = yaml_scalar(reader);
        bool is_targets = slice_equal_text(key, "targets");
        if (!is_targets && !slice_equal_text(key, "labels"))
            return error_set(reader->builder->error,
                             "line %zu: unknown field \"%.*s\": a group has targets and labels",
                             reader->event.start_mark.line + 1, shown(key), (const char *)key.data);
        bool *is_there = is_targets ? &has_targets : &has_labels;
        if (*is_there)
            return yaml_fail(reader, "each key once");
        *is_there = true;
        if (!yaml_advance(reader) || !(is_targets ? yaml_targets(reader) : yaml_labels(reader)))
            return false;
    }
    if (reader->event.type != YAML_MAPPING_END_EVENT)
        return yaml_fail(reader, "targets or labels");
    return end_group(reader->builder) && yaml_advance(reader);
}

static bool yaml_groups(struct yaml_reader *reader)
{
    /* The starts of the stream and of the document. */
    if (!yaml_advance(reader) || !yaml_advance(reader))
        return false;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return true;
    if (!yaml_advance(reader))
        return false;
    if (yaml_is_null(reader))
        return yaml_advance(reader);
    if (reader->event.type != YAML_SEQUENCE_START_EVENT)
        return yaml_fail(reader, "a list of target groups");
    if (!yaml_advance(reader))
        return false;
    while (reader->event.type != YAML_SEQUENCE_END_EVENT)
        if (!yaml_group(reader))
            return false;
    return yaml_advance(reader);
}

bool target_groups_read_yaml(struct target_groups *groups, struct slice text,
                             const struct prometheus_label *source, struct budget *budget,
                             struct error *error)
{
    struct builder builder = begin(groups, source, budget, error);
    struct yaml_reader reader = {.builder = &builder};
    if (!yaml_parser_initialize(&reader.parser))
        return fail_for_memory(&builder);
    yaml_parser_set_input_string(&reader.parser, text.data, text.size);
    bool is_read = yaml_groups(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (!is_read)
        target_groups_free(groups);
    return is_read;
}
