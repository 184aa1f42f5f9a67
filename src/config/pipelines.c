/* SPDX-License-Identifier: Apache-2.0 */
/* Loads pipelines. A receiver or exporter that a pipeline lists twice counts once; a processor
 * listed twice is an error; every component must handle the pipeline's signal. Main thread. */
#include "src/config/pipelines.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/config/config_limits.h"
#include "src/config/decode.h"
#include "src/config/feature_gates.h"
#include "src/config/graph.h"
#include "src/config/identifier.h"
#include "src/config/loader.h"
#include "src/config/suggest.h"
#include "src/config/unsupported.h"

/* A list of references while it is read. */
struct references {
    enum component_kind kind;
    bool is_strict;            /* twice the same is a problem */
    const struct path *blamed; /* where a wrong reference is reported */
    size_t count;
    const struct config_component **items;
};

/* node may be NULL. False: it is not a list, which is reported; wrong elements are left out. */
static bool load_references(struct loader *loader, const struct component_set *set,
                            const struct path *path, const struct node *node,
                            struct references *references)
{
    assert(references->count == 0);
    if (node == NULL || node->kind == NODE_NULL)
        return true;
    if (node->kind == NODE_BROKEN)
        return false;
    if (node->kind != NODE_LIST || node->count > CONFIG_REFERENCES_MAX) {
        loader_problem(loader, node->position, path,
                       "found %s, expected a list of at most %d names of components",
                       node_describe(node).text, CONFIG_REFERENCES_MAX);
        return false;
    }
    references->items = loader_zalloc(loader, node->count * sizeof(*references->items));
    for (size_t i = 0; i < node->count; i++) {
        const struct node *value = node->entries[i].value;
        const char *text = value->kind == NODE_NULL ? NULL : decode_text_of(value);
        struct path element = {.parent = path, .index = i};
        struct identifier identifier;
        struct error error;
        if (value->kind == NODE_BROKEN)
            continue;
        if (text == NULL) {
            loader_problem(loader, value->position, &element,
                           "found %s, expected the name of a component", node_describe(value).text);
            continue;
        }
        if (!text_to_identifier(text, &identifier, &error)) {
            loader_problem(loader, value->position, &element, "%s", error.text);
            continue;
        }
        enum component_kind kind = references->kind;
        /* A connector is an exporter of one pipeline and a receiver of another. */
        bool takes_connectors = kind == RECEIVER || kind == EXPORTER;
        struct config_component *component = component_set_find(set, kind, identifier.id);
        if (component == NULL && takes_connectors)
            component = component_set_find(set, CONNECTOR, identifier.id);
        if (component == NULL) {
            unsigned kinds = 1u << kind | (takes_connectors ? 1u << CONNECTOR : 0);
            struct suggestion suggestion = component_set_suggest(loader, set, kinds, identifier.id);
            loader_problem(loader, value->position, references->blamed,
                           "references %s \"%s\" which is not configured; expected one of those "
                           "below %s%s%s",
                           component_kind_name(kind), identifier.id, component_kind_section(kind),
                           takes_connectors ? " or connectors" : "",
                           suggestion_to_text(&suggestion).text);
            continue;
        }
        component->is_used = true;
        bool is_repeated = false;
        for (size_t j = 0; j < references->count; j++)
            is_repeated |= references->items[j] == component;
        if (!is_repeated)
            references->items[references->count++] = component;
        else if (references->is_strict)
            loader_problem(loader, value->position, references->blamed,
                           "references processor \"%s\" multiple times; expected each once",
                           identifier.id);
    }
    return true;
}

struct pipeline_site {
    struct loader *loader;
    const struct component_set *set;
    const struct path *path; /* service::pipelines::traces */
    const struct node_entry *entry;
};

/* Returns how many components of the kind the pipeline names. */
static size_t load_stage(const struct pipeline_site *site, enum component_kind kind,
                         const struct config_component *const **ret_items)
{
    struct references references = {
        .kind = kind, .is_strict = kind == PROCESSOR, .blamed = site->path};
    struct path path = {.parent = site->path, .key = component_kind_section(kind)};
    const struct node *node = node_value(site->entry->value, path.key);
    bool is_fine = load_references(site->loader, site->set, &path, node, &references);
    assert(kind != EXTENSION);
    if (is_fine && kind != PROCESSOR && (node == NULL || node->count == 0))
        loader_problem(site->loader, site->entry->position, site->path, "must have at least one %s",
                       component_kind_name(kind));
    *ret_items = references.items;
    return references.count;
}

struct misfit {
    const struct config_component *first;
    size_t count;
};

static void find_misfits(const struct config_component *const *items, size_t count,
                         enum signal_kind signal, struct misfit *misfit)
{
    assert(signal < SIGNAL_KINDS);
    for (size_t i = 0; i < count; i++) {
        const struct component_factory *factory = items[i]->factory;
        /* graph_load checks connectors. */
        if (factory == NULL || factory->kind == CONNECTOR || (factory->signals & 1u << signal) != 0)
            continue;
        if (misfit->first == NULL)
            misfit->first = items[i];
        misfit->count++;
    }
}

/* False: reported. */
static bool load_pipeline(const struct pipeline_site *site, struct config_pipeline *pipeline)
{
    struct loader *loader = site->loader;
    struct position position = site->entry->position;
    const struct node *node = site->entry->value;
    if (node->kind != NODE_MAP && node->kind != NODE_NULL) {
        if (node->kind != NODE_BROKEN)
            loader_problem(loader, node->position, site->path, "found %s, expected a map",
                           node_describe(node).text);
        return false;
    }
    struct identifier identifier;
    struct error error;
    if (!text_to_identifier(site->entry->key, &identifier, &error)) {
        loader_problem(loader, position, site->path, "%s", error.text);
        return false;
    }
    unsigned signal = 0;
    while (signal < SIGNAL_KINDS &&
           strcmp(identifier.type, signal_name((enum signal_kind)signal)) != 0)
        signal++;
    if (signal == SIGNAL_KINDS) {
        struct suggestion suggestion = loader_suggestion(loader, identifier.type);
        for (unsigned i = 0; i < SIGNAL_KINDS; i++)
            suggestion_consider(&suggestion, signal_name((enum signal_kind)i));
        loader_problem(loader, position, site->path,
                       "unknown pipeline signal: \"%s\"; expected traces, metrics, logs or "
                       "profiles%s",
                       identifier.type, suggestion_to_text(&suggestion).text);
        return false;
    }
    pipeline->signal = (enum signal_kind)signal;
    pipeline->id = loader_copy_text(loader, identifier.id);
    if (pipeline->signal == PROFILES &&
        !feature_gate_is_enabled(loader->gates, GATE_PROFILES_SUPPORT)) {
        loader_problem(
            loader, position, site->path,
            "pipeline \"%s\": profiles are turned off by the \"service.profilesSupport\" "
            "feature gate",
            pipeline->id);
        return false;
    }
    for (size_t i = 0; i < node->count; i++) {
        bool is_known = false;
        const struct node_entry *entry = &node->entries[i];
        struct path path = {.parent = site->path, .key = entry->key};
        struct suggestion suggestion = loader_suggestion(loader, entry->key);
        for (enum component_kind kind = RECEIVER; kind <= EXPORTER; kind++) {
            is_known |= strcmp(entry->key, component_kind_section(kind)) == 0;
            suggestion_consider(&suggestion, component_kind_section(kind));
        }
        if (!is_known)
            loader_problem(loader, entry->position, &path,
                           "found an unknown key, expected receivers, processors or exporters%s",
                           suggestion_to_text(&suggestion).text);
    }
    pipeline->receivers_count = load_stage(site, RECEIVER, &pipeline->receivers);
    pipeline->processors_count = load_stage(site, PROCESSOR, &pipeline->processors);
    pipeline->exporters_count = load_stage(site, EXPORTER, &pipeline->exporters);
    /* One problem per pipeline, however many of its components do not handle the signal. */
    char signals[64];
    char others[96] = "";
    struct misfit misfit = {.first = NULL};
    find_misfits(pipeline->receivers, pipeline->receivers_count, pipeline->signal, &misfit);
    find_misfits(pipeline->processors, pipeline->processors_count, pipeline->signal, &misfit);
    find_misfits(pipeline->exporters, pipeline->exporters_count, pipeline->signal, &misfit);
    if (misfit.first != NULL) {
        const struct component_factory *factory = misfit.first->factory;
        signals_describe(factory->signals, signals, sizeof(signals));
        if (misfit.count > 1)
            snprintf(others, sizeof(others), " (%zu components of this pipeline do not handle it)",
                     misfit.count);
        loader_problem(loader, position, site->path,
                       "failed to create \"%s\" %s, in pipeline \"%s\": telemetry type is not "
                       "supported: found %s, expected %s%s",
                       misfit.first->id, component_kind_name(factory->kind), pipeline->id,
                       signal_name(pipeline->signal), signals, others);
    }
    /* Advice of the exporters, if the configuration has no problems. */
    struct error advice;
    for (size_t i = 0; loader_problems(loader) == 0 && i < pipeline->exporters_count; i++) {
        const struct config_component *exporter = pipeline->exporters[i];
        if (exporter->factory != NULL && exporter->unsupported == NULL &&
            exporter->factory->advise != NULL &&
            exporter->factory->advise(exporter->config, pipeline->signal, &advice))
            loader_warning(loader, position, site->path, "exporter \"%s\": %s", exporter->id,
                           advice.text);
    }
    return true;
}

void pipelines_load(struct loader *loader, const struct node *service, struct position position,
                    const struct component_set *set, struct config *config)
{
    struct path root = {.parent = NULL};
    struct path section = {.parent = &root, .key = "service"};
    struct path extensions = {.parent = &section, .key = "extensions"};
    struct path path = {.parent = &section, .key = "pipelines"};
    struct references references = {.kind = EXTENSION, .blamed = &extensions};
    load_references(loader, set, &extensions, node_value(service, "extensions"), &references);
    config->extensions = references.items;
    config->extensions_count = references.count;
    const struct node *node = node_value(service, "pipelines");
    if (node != NULL && node->kind == NODE_BROKEN)
        return;
    if (node != NULL && node->kind != NODE_MAP && node->kind != NODE_NULL) {
        loader_problem(loader, node->position, &path, "found %s, expected a map of pipelines",
                       node_describe(node).text);
        return;
    }
    if (node == NULL || node->count == 0) {
        if (!feature_gate_is_enabled(loader->gates, GATE_ALLOW_NO_PIPELINES))
            loader_problem(loader, node != NULL ? node->position : position, &path,
                           "service must have at least one pipeline");
        return;
    }
    struct config_pipeline *pipelines = loader_zalloc(loader, node->count * sizeof(*pipelines));
    struct node ids = {.kind = NODE_MAP};
    size_t count = 0;
    size_t problems = loader_problems(loader);
    for (size_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        struct path inner = {.parent = &path, .key = entry->key};
        struct pipeline_site site = {.loader = loader, .set = set, .path = &inner, .entry = entry};
        if (!load_pipeline(&site, &pipelines[count]))
            continue;
        if (node_find(&ids, pipelines[count].id) == NULL)
            node_add(&loader->arena, &ids,
                     (struct node_entry){.key = pipelines[count].id, .value = entry->value});
        else
            loader_problem(loader, entry->position, &inner,
                           "duplicate name \"%s\" after blanks are removed; expected each name "
                           "once",
                           pipelines[count].id);
        count++;
    }
    config->pipelines = pipelines;
    config->pipelines_count = count;
    /* If a pipeline is missing, connectors would look as if one end was loose. */
    if (loader_problems(loader) == problems && count == node->count) {
        node = unsupported_prune(loader, set, node, pipelines, config);
        count = config->pipelines_count;
        if (count > 0)
            graph_load(loader, set, node, pipelines, count);
    }
    for (size_t i = 0; i < count; i++)
        config->depth = pipelines[i].depth > config->depth ? pipelines[i].depth : config->depth;
}
