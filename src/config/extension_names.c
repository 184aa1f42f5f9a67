/* SPDX-License-Identifier: Apache-2.0 */
/* References from components to extensions. Texts are the Go collector's, and go on with what to
 * do. Main thread. */
#include "src/config/extension_names.h"

#include <assert.h>
#include <string.h>

#include "src/base/error.h"
#include "src/config/component_set.h"
#include "src/config/decode.h"
#include "src/config/loader.h"
#include "src/config/suggest.h"

struct extension_name {
    struct extension_name *next;
    const struct config_component *user;
    const struct config_field *field;
    const char *name;
    const struct path *path;
    struct position position;
};

/* Paths are chains on the stack. */
static const struct path *copy_path(struct loader *loader, const struct path *path)
{
    assert(path != NULL);
    struct path *copy = loader_zalloc(loader, sizeof(*copy));
    struct path *last = copy;
    *last = *path;
    while (last->parent != NULL) {
        struct path *parent = loader_zalloc(loader, sizeof(*parent));
        *parent = *last->parent;
        last->parent = parent;
        last = parent;
    }
    return copy;
}

void extension_names_note(const struct site *site, const struct config_field *field,
                          const struct node *node, const char *name)
{
    struct loader *loader = site->loader;
    assert(field->accepts != NULL);
    if (site->is_off || loader->component == NULL)
        return;
    if (name[0] == '\0') {
        if (node->kind == NODE_TEXT && node->reference == NULL)
            loader_problem(loader, node->position, site->path,
                           "found an empty text, expected the id of an extension");
        return;
    }
    struct extension_name *noted = loader_zalloc(loader, sizeof(*noted));
    *noted = (struct extension_name){
        .next = loader->extension_names,
        .user = loader->component,
        .field = field,
        .name = name,
        .path = copy_path(loader, site->path),
        .position = site->position,
    };
    loader->extension_names = noted;
}

static bool is_listed(const struct config *config, const struct config_component *extension)
{
    assert(extension != NULL);
    for (size_t i = 0; i < config->extensions_count; i++)
        if (config->extensions[i] == extension)
            return true;
    return false;
}

static void report_undefined(struct loader *loader, const struct component_set *set,
                             const struct extension_name *noted)
{
    struct suggestion suggestion = suggestion_for(noted->name);
    assert(noted->name != NULL);
    for (size_t i = 0; i < set->count; i++)
        if (set->kinds[i] == EXTENSION)
            suggestion_consider(&suggestion, set->items[i].id);
    loader_problem(loader, noted->position, noted->path,
                   "failed to resolve authenticator \"%s\": authenticator not found; expected an "
                   "extension that is defined below extensions%s",
                   noted->name, suggestion_to_text(&suggestion).text);
}

static void check_name(struct loader *loader, const struct component_set *set,
                       const struct config *config, const struct extension_name *noted)
{
    struct error error = {.text = ""};
    const struct config_component *extension = component_set_find(set, EXTENSION, noted->name);
    assert(noted->user != NULL);
    if (!noted->user->is_used)
        return;
    if (extension == NULL)
        report_undefined(loader, set, noted);
    else if (!is_listed(config, extension))
        loader_problem(loader, noted->position, noted->path,
                       "failed to resolve authenticator \"%s\": authenticator not found; the "
                       "extension is defined but not started: add it to service::extensions",
                       noted->name);
    else if (extension->config != NULL && !noted->field->accepts(extension, &error))
        loader_problem(loader, noted->position, noted->path, "%s", error.text);
}

void extension_names_check(struct loader *loader, const struct component_set *set,
                           const struct config *config)
{
    assert(loader != NULL);
    assert(set != NULL && config != NULL);
    for (const struct extension_name *noted = loader->extension_names; noted != NULL;
         noted = noted->next)
        check_name(loader, set, config, noted);
}
