/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes rules. Reads JSON (RFC 8259) token by token, so that errors name the byte and
 * what was expected there. Any thread. */
#include "processors/trace_profile_join/trace_profile_rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/config/duration.h"
#include "src/config/field.h"
#include "src/otlp/json/json_scan.h"

/* Longest string in a body: a key, a word or a duration. */
enum { STRING_BYTES_MAX = 64 };

static bool add_word(struct keep_rules *rules, struct slice word, struct error *error)
{
    bool *rule = NULL;
    if (slice_equal_text(word, "error"))
        rule = &rules->keeps_errors;
    else if (slice_equal_text(word, "sampled"))
        rule = &rules->keeps_sampled;
    else
        return error_set(error, "found \"%.*s\", expected slow: <duration>, error or sampled",
                         (int)(word.size < STRING_BYTES_MAX ? word.size : STRING_BYTES_MAX),
                         (const char *)word.data);
    if (*rule)
        return error_set(error, "\"%.*s\" is given twice", (int)word.size, (const char *)word.data);
    *rule = true;
    return true;
}

static bool add_slow(struct keep_rules *rules, const char *duration, struct error *error)
{
    int64_t ns;
    const char *problem = text_to_duration_ns(duration, &ns);
    if (problem != NULL)
        return error_set(error, "slow: found \"%.64s\": %s", duration, problem);
    if (ns <= 0 || (uint64_t)ns > KEEP_SLOW_MAX_NS)
        return error_set(error,
                         "slow: found \"%.64s\", expected a duration above 0 and "
                         "below two years",
                         duration);
    if (rules->slow_ns > 0)
        return error_set(error, "slow is given twice");
    rules->slow_ns = (uint64_t)ns;
    return true;
}

bool keep_rules_from_config(const struct config_value *list, struct keep_rules *rules,
                            struct error *error)
{
    struct keep_rules read = {.keeps_unlinked = rules->keeps_unlinked};
    bool is_none = list == NULL || list->type == CONFIG_VALUE_NULL;
    if (!is_none && list->type != CONFIG_VALUE_LIST)
        return error_set(error, "expected a list of slow: <duration>, error, sampled");
    for (size_t i = 0; !is_none && i < list->count; i++) {
        const struct config_value *item = &list->items[i];
        bool is_read;
        if (item->type == CONFIG_VALUE_TEXT)
            is_read = add_word(&read, slice_of_text(item->text), error);
        else if (item->type != CONFIG_VALUE_MAP || item->count != 1 ||
                 strcmp(item->keys[0], "slow") != 0)
            is_read = error_set(error, "expected a list of slow: <duration>, error, sampled");
        else if (item->items[0].type != CONFIG_VALUE_TEXT)
            is_read = error_set(error, "slow: expected a duration with its unit, such as 1s");
        else
            is_read = add_slow(&read, item->items[0].text, error);
        if (!is_read)
            return error_at_index(error, i);
    }
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
    return json;
}

static bool fail(const struct json_scan *scan, const char *expected, struct error *error)
{
    return error_set(error, "byte %zu: expected %s", (size_t)(scan->at - scan->begin), expected);
}

/* Skips the byte, if it is next, and the space around it. */
static bool take(struct json_scan *scan, uint8_t byte)
{
    json_scan_space(scan);
    if (json_scan_peek(scan) != byte)
        return false;
    scan->at++;
    json_scan_space(scan);
    return true;
}

static bool read_string(struct json_scan *scan, char room[STRING_BYTES_MAX + 1],
                        struct error *error)
{
    struct json_string string;
    json_scan_space(scan);
    if (json_scan_peek(scan) != '"' || !json_scan_string(scan, &string))
        return fail(scan, "a string in quotes", error);
    if (string.raw.size > STRING_BYTES_MAX)
        return fail(scan, "the string to end within 64 bytes", error);
    size_t size = json_unescape(&string, (uint8_t *)room);
    assert(size <= STRING_BYTES_MAX);
    room[size] = '\0';
    if (strlen(room) != size)
        return fail(scan, "no \\u0000 in the string", error);
    json_scan_space(scan);
    return true;
}

/* Reads the list of rules. */
static bool read_rules(struct json_scan *scan, struct keep_rules *rules, struct error *error)
{
    char text[STRING_BYTES_MAX + 1];
    if (!take(scan, '['))
        return fail(scan, "a list of {\"slow\": \"<duration>\"}, \"error\", \"sampled\"", error);
    if (take(scan, ']'))
        return true;
    do {
        bool is_slow = take(scan, '{');
        if (!read_string(scan, text, error))
            return false;
        if (!is_slow) {
            if (!add_word(rules, slice_of_text(text), error))
                return error_prefix(error, "keep");
            continue;
        }
        if (strcmp(text, "slow") != 0)
            return error_set(error, "keep: found \"%s\", expected slow", text);
        if (!take(scan, ':'))
            return fail(scan, "\":\"", error);
        if (!read_string(scan, text, error))
            return false;
        if (!add_slow(rules, text, error))
            return error_prefix(error, "keep");
        if (!take(scan, '}'))
            return fail(scan, "\"}\"", error);
    } while (take(scan, ','));
    return take(scan, ']') || fail(scan, "\",\" or \"]\"", error);
}

bool keep_rules_from_json(struct slice json, struct keep_rules *rules, struct error *error)
{
    struct json_scan scan = json_scan_of(json);
    struct keep_rules read = {.keeps_unlinked = rules->keeps_unlinked};
    char key[STRING_BYTES_MAX + 1];
    bool has_keep = false;
    bool has_unlinked = false;
    if (!take(&scan, '{'))
        return fail(&scan, "an object: {\"keep\": […], \"keep_unlinked\": true}", error);
    do {
        if (!read_string(&scan, key, error))
            return false;
        if (!take(&scan, ':'))
            return fail(&scan, "\":\"", error);
        bool is_keep = strcmp(key, "keep") == 0;
        bool *has = is_keep ? &has_keep : &has_unlinked;
        if (!is_keep && strcmp(key, "keep_unlinked") != 0)
            return error_set(error, "found \"%s\", expected keep or keep_unlinked", key);
        if (*has)
            return error_set(error, "\"%s\" is given twice", key);
        *has = true;
        if (is_keep) {
            if (!read_rules(&scan, &read, error))
                return false;
            continue;
        }
        read.keeps_unlinked = json_scan_word(&scan, "true");
        if (!read.keeps_unlinked && !json_scan_word(&scan, "false"))
            return fail(&scan, "true or false", error);
        json_scan_space(&scan);
    } while (take(&scan, ','));
    if (!has_keep)
        return error_set(error, "\"keep\" is missing: a list of rules, empty to keep everything");
    if (!take(&scan, '}'))
        return fail(&scan, "\",\" or \"}\"", error);
    if (scan.at < scan.end)
        return fail(&scan, "the end", error);
    *rules = read;
    return true;
}
