/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticators as components create them: an extension of a YAML configuration, and an instance
 * of it. */
#pragma once

#include <stdbool.h>

#include "src/config/config.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"

struct lane;

/* What was loaded last; problem has the first mistake when that failed. */
extern struct config *config;
extern struct authenticator *authenticator;
extern char problem[1024];
extern const struct service_view service;

bool load_text(const char *text);
/* A configuration with that extension; yaml is its value. */
bool load(const char *type, const char *yaml);
/* extensions: a map of them as text. */
bool load_extensions(const char *extensions, const char *ids);
/* Loads, and creates an instance for a user on that lane, which may be NULL. */
void open_authenticator(const char *type, const char *yaml, enum auth_side side);
void open_loaded(const char *id, struct lane *lane, enum auth_side side);
void close_authenticator(void);
