/* SPDX-License-Identifier: Apache-2.0 */
/* Forms. Any thread. */
#include "extensions/oauth2_form.h"

#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/config/field.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

void oauth2_form_add(struct oauth2_form *form, const char *name, const char *value)
{
    form->list = mem_resize(form->list, (form->count + 1) * sizeof(*form->list));
    size_t at = form->count++;
    for (; at > 0 && strcmp(form->list[at - 1].name, name) > 0; at--)
        form->list[at] = form->list[at - 1];
    form->list[at] =
        (struct oauth2_parameter){.name = mem_copy_text(name), .value = mem_copy_text(value)};
}

void oauth2_form_remove(struct oauth2_form *form, const char *name)
{
    size_t kept = 0;
    assert(form->list != NULL || form->count == 0);
    for (size_t i = 0; i < form->count; i++) {
        if (strcmp(form->list[i].name, name) != 0) {
            form->list[kept++] = form->list[i];
            continue;
        }
        mem_free(form->list[i].name);
        secret_free(form->list[i].value);
    }
    form->count = kept;
}

char *oauth2_scopes_text(const struct config_texts *scopes)
{
    size_t size = 1;
    for (size_t i = 0; i < scopes->count; i++)
        size += strlen(scopes->texts[i]) + 1;
    char *text = mem_zalloc(size);
    char *to = text;
    for (size_t i = 0; i < scopes->count; i++)
        to += sprintf(to, "%s%s", i > 0 ? " " : "", scopes->texts[i]);
    return text;
}

char *oauth2_escape(const char *text)
{
    char *escaped = mem_alloc(3 * strlen(text) + 1);
    char *to = escaped;
    for (const char *at = text; *at != '\0'; at++) {
        if (isalnum((unsigned char)*at) || strchr("-_.~", *at) != NULL)
            *to++ = *at;
        else if (*at == ' ')
            *to++ = '+';
        else
            to += sprintf(to, "%%%02X", (unsigned char)*at);
    }
    *to = '\0';
    return escaped;
}

char *oauth2_form_text(const struct oauth2_form *form)
{
    size_t size = 1;
    for (size_t i = 0; i < form->count; i++)
        size += 3 * (strlen(form->list[i].name) + strlen(form->list[i].value)) + 2;
    char *text = mem_alloc(size);
    char *to = text;
    *to = '\0';
    for (size_t i = 0; i < form->count; i++) {
        char *name = oauth2_escape(form->list[i].name);
        char *value = oauth2_escape(form->list[i].value);
        to += sprintf(to, "%s%s=%s", i > 0 ? "&" : "", name, value);
        mem_free(name);
        secret_free(value);
    }
    assert((size_t)(to - text) < size);
    return text;
}

void oauth2_form_fini(struct oauth2_form *form)
{
    for (size_t i = 0; i < form->count; i++) {
        mem_free(form->list[i].name);
        secret_free(form->list[i].value);
    }
    mem_free(form->list);
    *form = (struct oauth2_form){.count = 0};
}
