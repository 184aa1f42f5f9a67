/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as a configuration and as JSON (RFC 8259) say them. Any thread. */
#include "processors/trace_profile_join/trace_profile_rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/config/duration.h"
#include "src/config/field.h"
#include "src/otlp/json/json_scan.h"

/* Longest text in a body: a key, a word or a duration. */
enum { TEXT_BYTES = 64 };

static bool add_word(struct keep_rules *rules, struct slice word, struct error *error)
{
    bool *rule = NULL;
    assert(rules != NULL);
    if (slice_equal_text(word, "error"))
        rule = &rules->keeps_errors;
    else if (slice_equal_text(word, "sampled"))
        rule = &rules->keeps_sampled;
    else
        return error_set(error, "found \"%.*s\", expected slow: <duration>, error or sampled",
                         (int)(word.size < TEXT_BYTES ? word.size : TEXT_BYTES),
                         (const char *)word.data);
    if (*rule)
        return error_set(error, "\"%.*s\" stands there twice", (int)word.size,
                         (const char *)word.data);
    *rule = true;
    return true;
}

static bool add_slow(struct keep_rules *rules, const char *duration, struct error *error)
{
    int64_t ns;
    assert(rules != NULL);
    const char *problem = text_to_duration_ns(duration, &ns);
    if (problem != NULL)
        return error_set(error, "slow: found \"%.64s\": %s", duration, problem);
    if (ns <= 0 || (uint64_t)ns > KEEP_SLOW_MAX_NS)
        return error_set(error,
                         "slow: found \"%.64s\", expected a duration above 0 and "
                         "below two years",
                         duration);
    if (rules->slow_ns > 0)
        return error_set(error, "slow stands there twice");
    rules->slow_ns = (uint64_t)ns;
    return true;
}

/* "error", or a map of one: slow: 1s. */
static bool add_item(struct keep_rules *rules, const struct config_value *item, struct error *error)
{
    assert(item != NULL);
    if (item->type == CONFIG_VALUE_TEXT)
        return add_word(rules, slice_of_text(item->text), error);
    if (item->type != CONFIG_VALUE_MAP || item->count != 1 || strcmp(item->keys[0], "slow") != 0)
        return error_set(error, "expected a list of slow: <duration>, error, sampled");
    if (item->items[0].type != CONFIG_VALUE_TEXT)
        return error_set(error, "slow: expected a duration with its unit, such as 1s");
    return add_slow(rules, item->items[0].text, error);
}

bool keep_rules_from_config(const struct config_value *list, struct keep_rules *rules,
                            struct error *error)
{
    struct keep_rules read = {.keeps_unlinked = rules->keeps_unlinked};
    assert(error != NULL);
    if (list == NULL || list->type == CONFIG_VALUE_NULL) {
        *rules = read;
        return true;
    }
    if (list->type != CONFIG_VALUE_LIST)
        return error_set(error, "expected a list of slow: <duration>, error, sampled");
    for (size_t i = 0; i < list->count; i++)
        if (!add_item(&read, &list->items[i], error))
            return error_at_index(error, i);
    *rules = read;
    return true;
}

struct keep_json keep_rules_to_json(const struct keep_rules *rules)
{
    struct keep_json json;
    struct duration_text slow = duration_to_text((int64_t)rules->slow_ns);
    const char *first = rules->slow_ns > 0 ? ", " : "";
    const char *second = rules->slow_ns > 0 || rules->keeps_errors ? ", " : "";
    bool is_slow = rules->slow_ns > 0;
    int bytes = snprintf(
        json.text, sizeof(json.text), "{\"keep\": [%s%s%s%s%s%s%s], \"keep_unlinked\": %s}\n",
        is_slow ? "{\"slow\": \"" : "", is_slow ? slow.text : "", is_slow ? "\"}" : "",
        rules->keeps_errors ? first : "", rules->keeps_errors ? "\"error\"" : "",
        rules->keeps_sampled ? second : "", rules->keeps_sampled ? "\"sampled\"" : "",
        rules->keeps_unlinked ? "true" : "false");
    assert(bytes > 0 && (size_t)bytes < sizeof(json.text));
    (void)bytes;
    return json;
}

static bool fail(const struct json_scan *scan, const char *expected, struct error *error)
{
    assert(scan->at >= scan->begin);
    return error_set(error, "byte %zu: expected %s", (size_t)(scan->at - scan->begin), expected);
}

/* Goes past the byte and the space around it. */
static bool take(struct json_scan *scan, uint8_t byte)
{
    assert(byte != 0);
    json_scan_space(scan);
    if (json_scan_peek(scan) != byte)
        return false;
    scan->at++;
    json_scan_space(scan);
    return true;
}

static bool read_text(struct json_scan *scan, char room[TEXT_BYTES + 1], struct error *error)
{
    struct json_string string;
    json_scan_space(scan);
    if (json_scan_peek(scan) != '"' || !json_scan_string(scan, &string))
        return fail(scan, "a text in quotes", error);
    if (string.raw.size > TEXT_BYTES)
        return fail(scan, "a shorter text before this", error);
    size_t size = json_unescape(&string, (uint8_t *)room);
    assert(size <= TEXT_BYTES);
    room[size] = '\0';
    if (strlen(room) != size)
        return fail(scan, "a text without \\u0000 before this", error);
    json_scan_space(scan);
    return true;
}

/* {"slow": "1s"} behind its brace. */
static bool read_slow(struct json_scan *scan, struct keep_rules *rules, struct error *error)
{
    char text[TEXT_BYTES + 1];
    assert(rules != NULL);
    if (!read_text(scan, text, error))
        return false;
    if (strcmp(text, "slow") != 0)
        return error_set(error, "keep: found \"%s\", expected slow", text);
    if (!take(scan, ':'))
        return fail(scan, "\":\"", error);
    if (!read_text(scan, text, error))
        return false;
    if (!add_slow(rules, text, error))
        return error_prefix(error, "keep");
    return take(scan, '}') || fail(scan, "\"}\"", error);
}

static bool read_rules(struct json_scan *scan, struct keep_rules *rules, struct error *error)
{
    char text[TEXT_BYTES + 1];
    assert(rules != NULL);
    if (!take(scan, '['))
        return fail(scan, "a list of {\"slow\": \"<duration>\"}, \"error\", \"sampled\"", error);
    if (take(scan, ']'))
        return true;
    do {
        bool is_slow = take(scan, '{');
        if (!(is_slow ? read_slow(scan, rules, error) : read_text(scan, text, error)))
            return false;
        if (!is_slow && !add_word(rules, slice_of_text(text), error))
            return error_prefix(error, "keep");
    } while (take(scan, ','));
    return take(scan, ']') || fail(scan, "\",\" or \"]\"", error);
}

static bool read_unlinked(struct json_scan *scan, struct keep_rules *rules, struct error *error)
{
    assert(rules != NULL);
    if (json_scan_word(scan, "true"))
        rules->keeps_unlinked = true;
    else if (json_scan_word(scan, "false"))
        rules->keeps_unlinked = false;
    else
        return fail(scan, "true or false", error);
    json_scan_space(scan);
    return true;
}

static bool read_members(struct json_scan *scan, struct keep_rules *rules, struct error *error)
{
    char key[TEXT_BYTES + 1];
    bool has_keep = false;
    bool has_unlinked = false;
    assert(scan != NULL);
    do {
        if (!read_text(scan, key, error))
            return false;
        if (!take(scan, ':'))
            return fail(scan, "\":\"", error);
        bool *has = strcmp(key, "keep") == 0 ? &has_keep : &has_unlinked;
        if (has == &has_unlinked && strcmp(key, "keep_unlinked") != 0)
            return error_set(error, "found \"%s\", expected keep or keep_unlinked", key);
        if (*has)
            return error_set(error, "\"%s\" stands there twice", key);
        *has = true;
        if (!(has == &has_keep ? read_rules : read_unlinked)(scan, rules, error))
            return false;
    } while (take(scan, ','));
    if (!has_keep)
        return error_set(error, "\"keep\" is missing: a list of rules, empty to keep everything");
    return take(scan, '}') || fail(scan, "\",\" or \"}\"", error);
}

bool keep_rules_from_json(struct slice json, struct keep_rules *rules, struct error *error)
{
    struct json_scan scan = json_scan_of(json);
    struct keep_rules read = {.keeps_unlinked = rules->keeps_unlinked};
    assert(error != NULL);
    if (!take(&scan, '{'))
        return fail(&scan, "an object: {\"keep\": […], \"keep_unlinked\": true}", error);
    if (!read_members(&scan, &read, error))
        return false;
    if (scan.at < scan.end)
        return fail(&scan, "the end", error);
    *rules = read;
    return true;
}
