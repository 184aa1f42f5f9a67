/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, step by step: texts, trees, one merged tree, references replaced, tables filled, graph
 * checked. A step that fails leaves its problems and lets the next one go on wherever it can, so
 * that all of them are told at once. Main thread. */
#include "src/config/config.h"

#include <assert.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/extension_names.h"
#include "src/config/loader.h"
#include "src/config/pipelines.h"
#include "src/config/print.h"
#include "src/config/resolve.h"
#include "src/config/service_keys.h"
#include "src/config/suggest.h"

/* What a struct config stands in. */
struct loaded_config {
    struct config config;
    struct arena arena; /* of all that it points to */
};

static void check_top_keys(struct loader *loader, const struct node *root)
{
    assert(root->kind == NODE_MAP);
    static const char *const keys[] = {"receivers",  "processors", "exporters",
                                       "connectors", "extensions", "service"};
    struct path path = {.parent = NULL};
    for (size_t i = 0; i < root->count; i++) {
        bool is_known = false;
        const struct node_entry *entry = &root->entries[i];
        struct path inner = {.parent = &path, .key = entry->key};
        struct suggestion suggestion = suggestion_for(entry->key);
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
}

/* Something must come in and go out; that the section is broken is told elsewhere. */
static void check_section_is_filled(struct loader *loader, const struct node *root,
                                    enum component_kind kind)
{
    assert(kind <= EXTENSION);
    struct path path = {.parent = NULL};
    struct path inner = {.parent = &path, .key = component_kind_section(kind)};
    const struct node *section = node_value(root, inner.key);
    if (section != NULL && (section->kind == NODE_BROKEN || section->count > 0))
        return;
    loader_problem(loader, section != NULL ? section->position : root->position, &inner,
                   "no %s configuration specified in config", component_kind_name(kind));
}

static void check_tree(struct loader *loader, const struct node *root, struct config *config)
{
    assert(root != NULL);
    struct component_set set;
    const struct node_entry *service = node_find(root, "service");
    check_top_keys(loader, root);
    check_section_is_filled(loader, root, RECEIVER);
    check_section_is_filled(loader, root, EXPORTER);
    component_set_load(loader, root, &set);
    config->components = set.items;
    config->components_count = set.count;
    service_keys_load(loader, service, &config->service);
    pipelines_load(loader, service != NULL ? service->value : NULL,
                   service != NULL ? service->position : root->position, &set, config);
    extension_names_check(loader, &set, config);
}

/* True when all is well; *ret_root is then the resolved tree. */
static bool load(struct loader *loader, const struct config_request *request, struct config *config,
                 struct node **ret_root)
{
    assert(ret_root != NULL);
    arena_init(&loader->arena, CONFIG_ARENA_BYTES_MAX);
    loader->factories = request->factories;
    loader->gates = request->gates;
    struct node *root = resolve_request(loader, request);
    if (root != NULL && !request->skips_checks)
        check_tree(loader, root, config);
    *ret_root = root;
    return root != NULL && loader_problems(loader) == 0;
}

struct config *config_load(const struct config_request *request, struct config_problems *problems)
{
    struct loader loader = {.factories = NULL};
    struct node *root;
    assert(request != NULL && request->factories != NULL);
    assert(!request->skips_checks);
    assert(problems != NULL);
    struct loaded_config *loaded = mem_zalloc(sizeof(*loaded));
    bool is_fine = load(&loader, request, &loaded->config, &root);
    loaded->config.gates = request->gates != NULL ? *request->gates : feature_gates_default();
    loaded->arena = loader.arena;
    problem_lists_take(&loader.problems, &loader.warnings, problems);
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
    assert(request != NULL && request->factories != NULL);
    assert(out != NULL && problems != NULL);
    bool is_fine = load(&loader, request, &config, &root);
    if (is_fine) {
        print_prepare(&loader, root, is_unredacted);
        is_fine = is_json ? print_json(root, out) : print_yaml(root, out);
    }
    problem_lists_take(&loader.problems, &loader.warnings, problems);
    arena_clear(&loader.arena);
    return is_fine;
}
