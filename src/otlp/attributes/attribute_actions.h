/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute actions of the resource and attributes processors: insert, update, upsert, delete,
 * hash, extract, convert, with the meanings and error messages of the Go collector. Compiled
 * actions are immutable; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/config/field.h"

struct attribute_actions;
struct attribute_list;
struct client_info;
struct error;

/* One entry of the list in the configuration. */
struct attribute_action_config {
    const char *key;
    const char *action;
    const struct config_value *value;
    const struct config_value *default_value;
    const char *from_attribute;
    const char *from_context;
    const char *pattern;
    const char *converted_type;
};

extern const struct config_field attribute_action_fields[];

/* NULL when an action is not allowed; the error has its index in the list, from 0. */
struct attribute_actions *attribute_actions_create(const struct attribute_action_config *configs,
                                                   size_t count, struct error *error);
/* NULL is a no-op. */
void attribute_actions_destroy(struct attribute_actions *actions);
/* Applies all actions, in order. client may be NULL: unknown. Values that would need more memory
 * than the list's arena has stay as they are. */
void attribute_actions_apply(const struct attribute_actions *actions,
                             const struct client_info *client, struct attribute_list *list);
