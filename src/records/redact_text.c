/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the rules (main thread, at start), then applies them (any thread). Patterns are applied
 * in the order of the configuration; the Go collector takes any order. */
#include "src/records/redact_text.h"

#include <assert.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"
#include "src/records/key_set.h"

#define STARS "****"
enum { MASK_BYTES_MAX = 2 * DIGEST_SHA512_BYTES };
/* A masked text has at most that many times the bytes of the text, or FREE_BYTES. Else masks of
 * single letters, which later patterns mask again, would take without end. */
enum { GROWTH_MAX = 16, FREE_BYTES = 4096 };

struct pattern_list {
    size_t count;
    struct pattern **patterns;
};

struct redaction_rules {
    struct redaction_settings settings;
    struct key_set allowed_keys;
    struct key_set ignored_keys;
    struct pattern_list ignored_key_patterns;
    struct pattern_list blocked_key_patterns;
    struct pattern_list blocked_values;
    struct pattern_list allowed_values;
};

/* What an earlier redaction left. */
static const char *const own_keys[] = {"redaction.redacted.keys", "redaction.redacted.count",
                                       "redaction.masked.keys", "redaction.masked.count",
                                       "redaction.ignored.count"};
enum { OWN_KEYS = sizeof(own_keys) / sizeof(own_keys[0]) };

/* ---- Compiling ---- */

/* what: as the Go collector's error has it. */
static bool make_list(const struct config_texts *texts, const char *key, const char *what,
                      struct pattern_list *list, struct error *error)
{
    list->patterns = (struct pattern **)mem_zalloc(texts->count * sizeof(list->patterns[0]));
    for (size_t i = 0; i < texts->count; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = strcmp(texts->texts[k], texts->texts[i]) != 0;
        if (!is_new)
            continue;
        list->patterns[list->count] = pattern_create(texts->texts[i], error);
        if (list->patterns[list->count] == NULL)
            return error_prefix(error,
                                "error creating a redaction processor: failed to process %s list: "
                                "error compiling regex in list",
                                what) ||
                   error_at_index(error, i) || error_at(error, key);
        list->count++;
    }
    return true;
}

struct redaction_rules *redaction_rules_create(const struct redaction_settings *settings,
                                               struct error *error)
{
    struct redaction_rules *rules = mem_zalloc(sizeof(*rules));
    rules->settings = *settings;
    rules->allowed_keys = key_set_create(&settings->allowed_keys, own_keys, OWN_KEYS);
    rules->ignored_keys = key_set_create(&settings->ignored_keys, NULL, 0);
    if ((settings->hash == REDACT_STARS || digest_prepare(error)) &&
        make_list(&settings->ignored_key_patterns, "ignored_key_patterns", "ignore keys",
                  &rules->ignored_key_patterns, error) &&
        make_list(&settings->blocked_values, "blocked_values", "block", &rules->blocked_values,
                  error) &&
        make_list(&settings->blocked_key_patterns, "blocked_key_patterns", "block keys",
                  &rules->blocked_key_patterns, error) &&
        make_list(&settings->allowed_values, "allowed_values", "allow", &rules->allowed_values,
                  error))
        return rules;
    redaction_rules_destroy(rules);
    return NULL;
}

static void destroy_list(struct pattern_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        pattern_destroy(list->patterns[i]);
    mem_free((void *)list->patterns);
}

void redaction_rules_destroy(struct redaction_rules *rules)
{
    if (rules == NULL)
        return;
    destroy_list(&rules->ignored_key_patterns);
    destroy_list(&rules->blocked_key_patterns);
    destroy_list(&rules->blocked_values);
    destroy_list(&rules->allowed_values);
    key_set_destroy(&rules->allowed_keys);
    key_set_destroy(&rules->ignored_keys);
    mem_free(rules);
}

const struct redaction_settings *redaction_settings_of(const struct redaction_rules *rules)
{
    return &rules->settings;
}

/* ---- Applying ---- */

static bool list_matches(const struct pattern_list *list, struct slice text)
{
    for (size_t i = 0; i < list->count; i++)
        if (pattern_matches(list->patterns[i], text))
            return true;
    return false;
}

enum redaction_verdict redaction_of_key(const struct redaction_rules *rules, struct slice key)
{
    if (key_set_has(&rules->ignored_keys, key) || list_matches(&rules->ignored_key_patterns, key))
        return KEY_IGNORED;
    if (!rules->settings.allows_all_keys && !key_set_has(&rules->allowed_keys, key))
        return KEY_REMOVED;
    return list_matches(&rules->blocked_key_patterns, key) ? KEY_MASKED : KEY_KEPT;
}

bool redaction_allows_value(const struct redaction_rules *rules, struct slice text)
{
    return list_matches(&rules->allowed_values, text);
}

static struct slice mask(const struct redaction_rules *rules, struct slice match,
                         char room[MASK_BYTES_MAX])
{
    uint8_t digest[DIGEST_SHA512_BYTES];
    switch (rules->settings.hash) {
    case REDACT_SHA1:
        digest_sha1(match, digest);
        return hex_write(digest, DIGEST_SHA1_BYTES, room);
    case REDACT_SHA3:
        digest_sha3_256(match, digest);
        return hex_write(digest, DIGEST_SHA3_256_BYTES, room);
    case REDACT_MD5:
        digest_md5(match, digest);
        return hex_write(digest, DIGEST_MD5_BYTES, room);
    case REDACT_HMAC_SHA256:
        digest_hmac_sha256(rules->settings.hmac_key, match, digest);
        return hex_write(digest, DIGEST_SHA256_BYTES, room);
    case REDACT_HMAC_SHA512:
        digest_hmac_sha512(rules->settings.hmac_key, match, digest);
        return hex_write(digest, DIGEST_SHA512_BYTES, room);
    case REDACT_STARS:
    case REDACTION_HASHES:
    default:
        return slice_of_text(STARS);
    }
}

/* The bytes of any mask. */
static size_t mask_bytes(const struct redaction_rules *rules)
{
    static const size_t bytes[REDACTION_HASHES] = {
        [REDACT_STARS] = sizeof(STARS) - 1,
        [REDACT_SHA1] = 2 * DIGEST_SHA1_BYTES,
        [REDACT_SHA3] = 2 * DIGEST_SHA3_256_BYTES,
        [REDACT_MD5] = 2 * DIGEST_MD5_BYTES,
        [REDACT_HMAC_SHA256] = 2 * DIGEST_SHA256_BYTES,
        [REDACT_HMAC_SHA512] = 2 * DIGEST_SHA512_BYTES,
    };
    return bytes[rules->settings.hash];
}

/* The next match from that place on. pattern NULL: the rest of the line. */
static bool next_match(const struct pattern *pattern, struct slice text, size_t from,
                       size_t *ret_begin, size_t *ret_end)
{
    struct slice match;
    if (pattern == NULL) {
        const uint8_t *end =
            from < text.size ? memchr(text.data + from, '\n', text.size - from) : NULL;
        *ret_begin = from;
        *ret_end = end != NULL ? (size_t)(end - text.data) : text.size;
        return true;
    }
    if (!pattern_find_from(pattern, text, from, &match, 1))
        return false;
    *ret_begin = match.data != NULL ? (size_t)(match.data - text.data) : from;
    *ret_end = *ret_begin + match.size;
    return true;
}

/* Where the output goes: nowhere while it is measured, which ends above size_max. */
struct masked {
    uint8_t *room;
    size_t size;
    size_t size_max;
};

static void add(struct masked *masked, struct slice bytes)
{
    if (masked->room != NULL && bytes.size > 0)
        memcpy(masked->room + masked->size, bytes.data, bytes.size);
    masked->size += bytes.size;
}

/* As Go's ReplaceAllStringFunc: an empty match right after another one is none. */
static void replace_matches(const struct redaction_rules *rules, const struct pattern *pattern,
                            struct slice text, struct masked *masked)
{
    static const uint8_t nothing;
    char room[MASK_BYTES_MAX];
    size_t last_end = 0;
    size_t begin;
    size_t end;
    if (text.data == NULL)
        text.data = &nothing;
    for (size_t from = 0; from <= text.size && masked->size <= masked->size_max &&
                          next_match(pattern, text, from, &begin, &end);) {
        bool is_match = end > last_end || begin == 0;
        add(masked, slice_of(text.data + last_end, begin - last_end));
        if (is_match && masked->room == NULL)
            masked->size += mask_bytes(rules);
        else if (is_match)
            add(masked, mask(rules, slice_of(text.data + begin, end - begin), room));
        last_end = end;
        size_t width =
            from < text.size ? utf8_size(slice_of(text.data + from, text.size - from)) : 0;
        if (width == 0)
            width = 1;
        from = from + width > end ? from + width : end;
    }
    add(masked, slice_of(text.data + last_end, text.size - last_end));
}

/* size_max: of the result; "****" as a whole beyond it. */
static struct slice replace(const struct redaction_rules *rules, const struct pattern *pattern,
                            struct arena *arena, struct slice text, size_t size_max)
{
    struct masked masked = {.size_max = size_max};
    replace_matches(rules, pattern, text, &masked);
    size_t size = masked.size;
    if (size > size_max)
        return slice_of_text(STARS);
    masked =
        (struct masked){.room = arena_try_alloc(arena, size > 0 ? size : 1), .size_max = size_max};
    if (masked.room == NULL)
        return slice_of_text(STARS);
    replace_matches(rules, pattern, text, &masked);
    assert(masked.size == size);
    return slice_of(masked.room, size);
}

static size_t size_max_of(struct slice text)
{
    size_t most = GROWTH_MAX * text.size;
    return most > FREE_BYTES ? most : FREE_BYTES;
}

struct slice redaction_mask(const struct redaction_rules *rules, struct arena *arena,
                            struct slice text)
{
    return replace(rules, NULL, arena, text, size_max_of(text));
}

struct slice redaction_clean(const struct redaction_rules *rules, struct arena *arena,
                             struct slice text)
{
    const size_t size_max = size_max_of(text);
    for (size_t i = 0; i < rules->blocked_values.count; i++)
        if (pattern_matches(rules->blocked_values.patterns[i], text))
            text = replace(rules, rules->blocked_values.patterns[i], arena, text, size_max);
    return text;
}
