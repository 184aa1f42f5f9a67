/* SPDX-License-Identifier: Apache-2.0 */
/* What redaction says of keys and strings: which go, which are masked, and how. Compiled rules are
 * immutable; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/config/field.h"

struct arena;
struct error;
struct pattern;
struct query_sanitizer;
struct url_sanitizer;

/* What a match becomes. */
enum redaction_hash {
    REDACT_STARS, /* "****" */
    REDACT_SHA1,
    REDACT_SHA3,
    REDACT_MD5,
    REDACT_HMAC_SHA256,
    REDACT_HMAC_SHA512,
    REDACTION_HASHES,
};

struct redaction_settings {
    bool allows_all_keys;
    bool redacts_all_types;
    struct config_texts allowed_keys;
    struct config_texts ignored_keys;
    struct config_texts ignored_key_patterns;
    struct config_texts blocked_key_patterns;
    struct config_texts blocked_values;
    struct config_texts allowed_values;
    enum redaction_hash hash;
    struct slice hmac_key;
    const struct url_sanitizer *urls;      /* borrowed; NULL: none */
    const struct query_sanitizer *queries; /* borrowed; NULL: none */
    bool has_counts;                       /* summary: info, debug */
    bool has_keys;                         /* summary: debug */
};

struct redaction_rules;

/* Copies nothing: the settings' strings outlive the rules. NULL: a pattern is wrong; the error has
 * its key and index. */
struct redaction_rules *redaction_rules_create(const struct redaction_settings *settings,
                                               struct error *error);
/* NULL is a no-op. */
void redaction_rules_destroy(struct redaction_rules *rules);
const struct redaction_settings *redaction_settings_of(const struct redaction_rules *rules);

enum redaction_verdict { KEY_IGNORED, KEY_REMOVED, KEY_MASKED, KEY_KEPT };

/* A key's: KEPT ones have their values checked. */
enum redaction_verdict redaction_of_key(const struct redaction_rules *rules, struct slice key);
bool redaction_allows_value(const struct redaction_rules *rules, struct slice text);
/* The text with all that is in its lines masked. What does not fit the arena, or would become 16
 * times as long and longer than 4 KiB, is "****" as a whole. */
struct slice redaction_mask(const struct redaction_rules *rules, struct arena *arena,
                            struct slice text);
/* The same for blocked values: text itself when there is none. */
struct slice redaction_clean(const struct redaction_rules *rules, struct arena *arena,
                             struct slice text);
