/* SPDX-License-Identifier: Apache-2.0 */
/* Reads every location, then merges them in their order, settings last, then replaces references.
 * Main thread. */
#include "src/config/resolve.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/config/config.h"
#include "src/config/expand.h"
#include "src/config/loader.h"
#include "src/config/location.h"
#include "src/config/merge.h"
#include "src/config/yaml_tree.h"

enum { SOURCE_NAME_MAX = 200 };

static struct position start_of(const struct source *source)
{
    assert(source != NULL);
    return (struct position){.source = source, .line = 1, .column = 1};
}

/* What problems call it: files by their name; texts up to their first value, which may be a secret.
 */
static const struct source *name_source(struct loader *loader, const char *argument)
{
    assert(argument != NULL);
    char name[SOURCE_NAME_MAX];
    size_t size = strlen(argument);
    if (strncmp(argument, "yaml:", 5) == 0)
        size = 5 + strcspn(argument + 5, " \n{[\"'");
    const char *shown = argument;
    if (strncmp(argument, "file:", 5) == 0) {
        shown += 5;
        size -= 5;
    }
    while (size > 0 && shown[size - 1] == ':')
        size--;
    snprintf(name, sizeof(name), "%.*s", (int)(size < sizeof(name) ? size : sizeof(name) - 1),
             shown);
    return loader_add_source(loader, name);
}

/* NULL: reported. */
static struct node *read_location(struct loader *loader, const char *argument,
                                  const struct source *source)
{
    assert(source != NULL);
    struct retrieved retrieved;
    struct error error;
    struct yaml_failure failure;
    struct yaml_origin origin = {.position = start_of(source)};
    const char *uri = location_of_argument(loader, argument);
    if (!location_retrieve(loader, uri, &retrieved, &error)) {
        loader_problem(loader, origin.position, NULL, "%s", error.text);
        return NULL;
    }
    struct node *node = yaml_tree_parse(loader, retrieved.bytes, &origin, &failure);
    retrieved_release(&retrieved);
    if (node == NULL) {
        loader_problem(loader, failure.position, NULL, "%s", failure.error.text);
        return NULL;
    }
    if (node->kind != NODE_MAP && node->kind != NODE_NULL) {
        loader_problem(loader, node->position, NULL,
                       "found %s, expected a map with the keys receivers, exporters and service",
                       node_describe_secret(node).text);
        return NULL;
    }
    return merge_nested_keys(loader, node, 0);
}

/* "a.b=c" as the location "yaml:a::b: c". NULL: reported. */
static struct node *read_setting(struct loader *loader, const char *setting)
{
    assert(setting != NULL);
    char name[SOURCE_NAME_MAX];
    size_t key_size = strcspn(setting, "=");
    snprintf(name, sizeof(name), "--set=%.*s", (int)(key_size < 100 ? key_size : 100), setting);
    const struct source *source = loader_add_source(loader, name);
    if (setting[key_size] == '\0') {
        loader_problem(loader, start_of(source), NULL,
                       "missing equal sign; expected --set=key.of.the.option=value");
        return NULL;
    }
    const char *value = setting + key_size + 1;
    size_t key_start = strspn(setting, " \t\n\r");
    char *location = loader_zalloc(loader, 2 * strlen(setting) + sizeof("yaml:: "));
    char *to = stpcpy(location, "yaml:");
    while (key_size > key_start && strchr(" \t\n\r", setting[key_size - 1]) != NULL)
        key_size--;
    for (size_t i = key_start; i < key_size; i++) {
        if (setting[i] == '.')
            to = stpcpy(to, "::");
        else
            *to++ = setting[i];
    }
    stpcpy(stpcpy(to, ": "), value + strspn(value, " \t\n\r"));
    return read_location(loader, location, source);
}

/* False: there is nothing to merge, which is reported. */
static bool merge_into(struct loader *loader, struct node **root, struct node *tree)
{
    assert(root != NULL);
    if (tree != NULL && tree->kind == NODE_MAP)
        *root = *root == NULL ? tree : merge_trees(loader, *root, tree);
    return tree != NULL && tree->kind != NODE_BROKEN;
}

/* With no location at all there is no source, and problems need one. */
static const struct source *command_line(struct loader *loader)
{
    assert(loader != NULL);
    return loader_add_source(loader, "command line");
}

struct node *resolve_request(struct loader *loader, const struct config_request *request)
{
    struct node *root = NULL;
    const struct source *first = NULL;
    bool is_complete = true;
    assert(loader != NULL);
    assert(request != NULL);
    if (request->locations_count + request->settings_count == 0 ||
        request->locations_count + request->settings_count > CONFIG_LOCATIONS_MAX) {
        loader_problem(loader, start_of(command_line(loader)), NULL,
                       "found %zu configurations, expected 1 to %d; at least one config flag must "
                       "be provided",
                       request->locations_count + request->settings_count, CONFIG_LOCATIONS_MAX);
        return NULL;
    }
    for (size_t i = 0; i < request->locations_count; i++) {
        const struct source *source = name_source(loader, request->locations[i]);
        first = first == NULL ? source : first;
        struct node *tree = read_location(loader, request->locations[i], source);
        is_complete &= merge_into(loader, &root, tree);
    }
    for (size_t i = 0; i < request->settings_count; i++)
        is_complete &= merge_into(loader, &root, read_setting(loader, request->settings[i]));
    if (!is_complete)
        return NULL; /* what is missing would be told as further problems */
    if (root == NULL || root->count == 0) {
        loader_problem(loader, start_of(first != NULL ? first : command_line(loader)), NULL,
                       "empty configuration file");
        return NULL;
    }
    return expand_tree(loader, root);
}
