/* SPDX-License-Identifier: Apache-2.0 */
/* Hides what is no word in paths of URLs: in attributes with certain keys, in bodies of log
 * records, and in names of spans. Immutable; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/config/field.h"

struct arena;
struct url_sanitizer;

struct url_settings {
    bool is_enabled;
    struct config_texts attributes;
    bool has_span_names;
};

/* NULL: it is not enabled. Copies nothing: the settings' strings outlive it. */
struct url_sanitizer *url_sanitizer_create(const struct url_settings *settings);
/* NULL is a no-op. */
void url_sanitizer_destroy(struct url_sanitizer *sanitizer);
/* Whether attributes with that key, or names of spans, have URLs. NULL: none. */
bool url_sanitizer_has_key(const struct url_sanitizer *sanitizer, struct slice key);
bool url_sanitizer_has_span_names(const struct url_sanitizer *sanitizer);

/* The path without what follows it, each segment that is no word a "*". Returns text, a part of it,
 * or bytes of the arena; "****" if that is full. */
struct slice url_sanitize(struct arena *arena, struct slice text);
/* Whether nothing but stars is left of it. */
bool url_is_hidden(struct slice url);
