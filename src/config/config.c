/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a configuration: reads every location and merges them in order, settings last; replaces
 * references; decodes by the option tables; checks the graph. A step that fails reports its
 * problems, and the next ones go on wherever they can, so that all problems are reported at once.
 * Main thread. */
#include "src/config/config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/config_limits.h"
#include "src/config/decode.h"
#include "src/config/expand.h"
#include "src/config/loader.h"
#include "src/config/location.h"
#include "src/config/merge.h"
#include "src/config/pipelines.h"
#include "src/config/print.h"
#include "src/config/service_keys.h"
#include "src/config/suggest.h"
#include "src/config/unsupported.h"
#include "src/config/yaml_tree.h"

enum { SOURCE_NAME_MAX = 200 };

/* The allocation that a struct config is part of. */
struct loaded_config {
    struct config config;
    struct arena arena; /* holds everything that config points to */
};

static struct position start_of(const struct source *source)
{
    return (struct position){.source = source, .line = 1, .column = 1};
}

/* NULL: reported. */
static struct node *read_location(struct loader *loader, const char *argument,
                                  const struct source *source)
{
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

/* False: there is nothing to merge; reported already. */
static bool merge_into(struct loader *loader, struct node **root, struct node *tree)
{
    if (tree != NULL && tree->kind == NODE_MAP)
        *root = *root == NULL ? tree : merge_trees(loader, *root, tree);
    return tree != NULL && tree->kind != NODE_BROKEN;
}

/* The source of problems when there is no location. */
static const struct source *command_line(struct loader *loader)
{
    return loader_add_source(loader, "command line");
}

/* Reads and merges the locations and settings, and replaces references. NULL: something could not
 * be read, or it is empty; reported. */
static struct node *resolve_request(struct loader *loader, const struct config_request *request)
{
    struct node *root = NULL;
    const struct source *first = NULL;
    bool is_complete = true;
    if (request->locations_count + request->settings_count == 0 ||
        request->locations_count + request->settings_count > CONFIG_LOCATIONS_MAX) {
        loader_problem(loader, start_of(command_line(loader)), NULL,
                       "found %zu configurations, expected 1 to %d; at least one config flag must "
                       "be provided",
                       request->locations_count + request->settings_count, CONFIG_LOCATIONS_MAX);
        return NULL;
    }
    for (size_t i = 0; i < request->locations_count; i++) {
        /* Problems name files as given, but inline YAML only up to its first value, which may be
         * a secret. */
        const char *argument = request->locations[i];
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
        const struct source *source = loader_add_source(loader, name);
        first = first == NULL ? source : first;
        struct node *tree = read_location(loader, request->locations[i], source);
        is_complete &= merge_into(loader, &root, tree);
    }
    for (size_t i = 0; i < request->settings_count; i++)
        is_complete &= merge_into(loader, &root, read_setting(loader, request->settings[i]));
    if (!is_complete)
        return NULL; /* missing parts would be reported as further problems */
    if (root == NULL || root->count == 0) {
        loader_problem(loader, start_of(first != NULL ? first : command_line(loader)), NULL,
                       "empty configuration file");
        return NULL;
    }
    return expand_tree(loader, root);
}

/* Receivers and exporters are required. A broken section is reported elsewhere. */
static void check_section_is_filled(struct loader *loader, const struct node *root,
                                    enum component_kind kind)
{
    struct path path = {.parent = NULL};
    struct path inner = {.parent = &path, .key = component_kind_section(kind)};
    const struct node *section = node_value(root, inner.key);
    if (section != NULL && (section->kind == NODE_BROKEN || section->count > 0))
        return;
    loader_problem(loader, section != NULL ? section->position : root->position, &inner,
                   "no %s configuration specified in config", component_kind_name(kind));
}

/* False: there are problems. *ret_root is the resolved tree, or NULL if there is none. */
static bool load(struct loader *loader, const struct config_request *request, struct config *config,
                 struct node **ret_root)
{
    arena_init(&loader->arena, CONFIG_ARENA_BYTES_MAX);
    loader->factories = request->factories;
    loader->gates = request->gates;
    loader->skips_unsupported = request->skips_unsupported;
    loader->may_be_empty = request->may_be_empty;
    struct node *root = resolve_request(loader, request);
    *ret_root = root;
    if (root == NULL || request->skips_checks)
        return root != NULL && loader_problems(loader) == 0;
    struct component_set set;
    const struct node_entry *service = node_find(root, "service");
    assert(root->kind == NODE_MAP);
    static const char *const keys[] = {"receivers",  "processors", "exporters",
                                       "connectors", "extensions", "service"};
    struct path path = {.parent = NULL};
    for (size_t i = 0; i < root->count; i++) {
        bool is_known = false;
        const struct node_entry *entry = &root->entries[i];
        struct path inner = {.parent = &path, .key = entry->key};
        struct suggestion suggestion = loader_suggestion(loader, entry->key);
        for (size_t j = 0; j < sizeof(keys) / sizeof(keys[0]); j++) {
            is_known |= strcmp(entry->key, keys[j]) == 0;
            suggestion_consider(&suggestion, keys[j]);
        }
        if (!is_known)
            loader_problem(loader, entry->position, &inner,
                           "found an unknown key, expected receivers, processors, exporters, "
                           "connectors, extensions or service%s",
                           suggestion_to_text(&suggestion).text);
    }
    check_section_is_filled(loader, root, RECEIVER);
    check_section_is_filled(loader, root, EXPORTER);
    const struct node *unsupported =
        node_value(service != NULL ? service->value : NULL, "unsupported");
    const char *choice = unsupported != NULL ? decode_text_of(unsupported) : NULL;
    loader->skips_unsupported |= choice != NULL && strcmp(choice, "skip") == 0;
    component_set_load(loader, root, &set);
    config->components = set.items;
    config->components_count = unsupported_settle(loader, &set);
    service_keys_load(loader, service, &config->service);
    pipelines_load(loader, service != NULL ? service->value : NULL,
                   service != NULL ? service->position : root->position, &set, config);
    /* References to extensions that are not defined, not listed in service::extensions, or not
     * accepted by their field are problems. Unused components may name anything, as in Go. */
    for (const struct extension_name *noted = loader->extension_names; noted != NULL;
         noted = noted->next) {
        if (!noted->user->is_used)
            continue;
        struct error error = {.text = ""};
        const char *kind = noted->field->extension_kind;
        const struct config_component *extension = component_set_find(&set, EXTENSION, noted->name);
        bool is_listed = false;
        for (size_t i = 0; i < config->extensions_count; i++)
            is_listed |= config->extensions[i] == extension;
        if (extension == NULL) {
            struct suggestion suggestion =
                component_set_suggest(loader, &set, 1u << EXTENSION, noted->name);
            loader_problem(loader, noted->position, noted->path,
                           "failed to resolve %s \"%s\": %s not found; expected an extension that "
                           "is defined below extensions%s",
                           kind, noted->name, kind, suggestion_to_text(&suggestion).text);
        } else if (!is_listed) {
            loader_problem(loader, noted->position, noted->path,
                           "failed to resolve %s \"%s\": %s not found; the extension is defined "
                           "but not started: add it to service::extensions",
                           kind, noted->name, kind);
        } else if (extension->config != NULL && !noted->field->accepts(extension, &error)) {
            loader_problem(loader, noted->position, noted->path, "%s", error.text);
        }
    }
    config->skips = loader->skips;
    config->skips_count = loader->skips_count;
    return loader_problems(loader) == 0;
}

struct config *config_load(const struct config_request *request, struct config_problems *problems)
{
    struct loader loader = {.factories = NULL};
    struct node *root;
    assert(!request->skips_checks);
    struct loaded_config *loaded = mem_zalloc(sizeof(*loaded));
    bool is_fine = load(&loader, request, &loaded->config, &root);
    loaded->config.gates = request->gates != NULL ? *request->gates : feature_gates_default();
    loaded->arena = loader.arena;
    loader_take_problems(&loader, problems);
    if (is_fine)
        return &loaded->config;
    config_destroy(&loaded->config);
    return NULL;
}

void config_destroy(struct config *config)
{
    if (config == NULL)
        return;
    struct loaded_config *loaded = (struct loaded_config *)config;
    arena_clear(&loaded->arena);
    mem_free(loaded);
}

bool config_print(const struct config_request *request, bool is_unredacted, bool is_json, FILE *out,
                  struct config_problems *problems)
{
    struct loader loader = {.factories = NULL};
    struct config config = {.components_count = 0};
    struct node *root;
    bool is_fine = load(&loader, request, &config, &root);
    if (is_fine) {
        print_prepare(&loader, root, is_unredacted);
        is_fine = is_json ? print_json(root, out) : print_yaml(root, out);
    }
    loader_take_problems(&loader, problems);
    arena_clear(&loader.arena);
    return is_fine;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mem_free(texts[i]);
    mem_free(texts);
}

void config_problems_clear(struct config_problems *problems)
{
    free_texts(problems->texts, problems->count);
    free_texts(problems->warnings, problems->warnings_count);
    *problems = (struct config_problems){.count = 0};
}
