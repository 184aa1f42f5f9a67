/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of media type application/x-www-form-urlencoded, as Go's url.Values writes them. One
 * owner; any thread. */
#pragma once

#include <stddef.h>

struct config_texts;

struct oauth2_parameter {
    char *name;
    char *value;
};

/* Parameters in any order; a name may occur several times. */
struct oauth2_form {
    size_t count;
    struct oauth2_parameter *list;
};

/* Copies both. */
void oauth2_form_add(struct oauth2_form *form, const char *name, const char *value);
void oauth2_form_remove(struct oauth2_form *form, const char *name);
/* The body: sorted by name, values of equal names in the order they were added. Free with
 * secret_free. */
char *oauth2_form_text(const struct oauth2_form *form);
/* Overwrites and frees it. */
void oauth2_form_fini(struct oauth2_form *form);
/* The scopes with a blank between each (RFC 6749 §3.3). Free with mem_free. */
char *oauth2_scopes_text(const struct config_texts *scopes);
/* url.QueryEscape. Free with secret_free. */
char *oauth2_escape(const char *text);
