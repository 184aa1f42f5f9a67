/* SPDX-License-Identifier: Apache-2.0 */
/* What is left out with service: {unsupported: skip}. Main thread, while the configuration is
 * loaded. */
#include "src/config/unsupported.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/config/loader.h"

enum { WHY_MAX = 1024 };

const char *skip_reason_name(enum skip_reason reason)
{
    static const char *const names[SKIP_REASONS] = {
        [SKIP_COMPONENT] = "component",       [SKIP_EXTENSION] = "extension",
        [SKIP_PROCESSOR] = "processor",       [SKIP_NO_RECEIVERS] = "no_receivers",
        [SKIP_NO_EXPORTERS] = "no_exporters", [SKIP_CONNECTOR] = "connector",
    };
    assert(reason < SKIP_REASONS);
    return names[reason];
}

/* Marks one more component that needs an extension that is left out. False: there is none. */
static bool follow_extensions(struct loader *loader, const struct component_set *set, bool *refers)
{
    bool is_changed = false;
    for (const struct extension_name *noted = loader->extension_names; noted != NULL;
         noted = noted->next) {
        const struct config_component *extension = component_set_find(set, EXTENSION, noted->name);
        struct config_component *user = &set->items[noted->user - set->items];
        if (extension == NULL || extension->unsupported == NULL || user->unsupported != NULL)
            continue;
        char text[WHY_MAX];
        snprintf(
            text, sizeof(text),
            "%s:%zu:%zu: %s: refers to the extension \"%s\", which this build does not support",
            noted->position.source->name, noted->position.line, noted->position.column,
            path_to_text(noted->path).text, extension->id);
        user->unsupported = loader_copy_text(loader, text);
        refers[user - set->items] = true;
        is_changed = true;
    }
    return is_changed;
}

size_t unsupported_settle(struct loader *loader, struct component_set *set)
{
    if (!loader->skips_unsupported || set->count == 0)
        return set->count;
    bool *refers = loader_zalloc(loader, set->count * sizeof(refers[0]));
    while (follow_extensions(loader, set, refers)) {
        /* Each round marks a component at least. */
    }
    struct config_component *items = loader_zalloc(loader, set->count * sizeof(items[0]));
    enum component_kind *kinds = loader_zalloc(loader, set->count * sizeof(kinds[0]));
    size_t *places = loader_zalloc(loader, set->count * sizeof(places[0]));
    size_t count = 0;
    size_t kept = 0;
    for (int is_left_out = 0; is_left_out < 2; is_left_out++) {
        for (size_t i = 0; i < set->count; i++) {
            if ((set->items[i].unsupported != NULL) != (is_left_out == 1))
                continue;
            places[i] = count;
            items[count] = set->items[i];
            kinds[count++] = set->kinds[i];
            if (is_left_out == 0)
                continue;
            loader_skip(loader, (struct config_skip){
                                    .component = set->items[i].id,
                                    .section = component_kind_section(set->kinds[i]),
                                    .reason = refers[i] ? SKIP_EXTENSION : SKIP_COMPONENT,
                                    .why = set->items[i].unsupported,
                                });
        }
        kept = is_left_out == 0 ? count : kept;
    }
    for (struct extension_name *noted = loader->extension_names; noted != NULL; noted = noted->next)
        noted->user = &set->items[places[noted->user - set->items]];
    memcpy(set->items, items, set->count * sizeof(items[0]));
    memcpy(set->kinds, kinds, set->count * sizeof(kinds[0]));
    /* Until now each was where it had been added. */
    memcpy(set->places, places, set->count * sizeof(places[0]));
    return kept;
}

/* The signals of pipelines around each connector, by its place in the set. */
struct sides {
    unsigned *takes; /* of the pipelines that export to it */
    unsigned *gives; /* of the pipelines that receive from it */
};

struct pruning {
    struct loader *loader;
    const struct component_set *set;
    struct config_pipeline *pipelines;
    size_t count;
    struct sides written; /* as the user wrote it */
    struct sides left;
    const char **whys; /* by pipeline: why it is left out; NULL: it runs */
    enum skip_reason *reasons;
    /* Parts of each pipeline that are left out. */
    struct part {
        struct part *next;
        const struct config_component *component;
        const char *section;
        enum skip_reason reason;
        const char *why;
    } * *parts;
};

static size_t place_of(const struct pruning *pruning, const struct config_component *component)
{
    return (size_t)(component - pruning->set->items);
}

static bool is_connector(const struct config_component *component)
{
    return component->factory != NULL && component->factory->kind == CONNECTOR;
}

static void collect_sides(const struct pruning *pruning, struct sides *sides)
{
    size_t size = pruning->set->count * sizeof(sides->takes[0]);
    memset(sides->takes, 0, size);
    memset(sides->gives, 0, size);
    for (size_t i = 0; i < pruning->count; i++) {
        const struct config_pipeline *pipeline = &pruning->pipelines[i];
        if (pruning->whys[i] != NULL)
            continue;
        for (size_t j = 0; j < pipeline->exporters_count; j++)
            sides->takes[place_of(pruning, pipeline->exporters[j])] |= 1u << pipeline->signal;
        for (size_t j = 0; j < pipeline->receivers_count; j++)
            sides->gives[place_of(pruning, pipeline->receivers[j])] |= 1u << pipeline->signal;
    }
}

/* Whether a pipeline at the connector's other side fits this one. */
static bool is_joined(const struct pruning *pruning, const struct sides *sides,
                      const struct config_component *connector, enum component_kind role,
                      enum signal_kind signal)
{
    size_t place = place_of(pruning, connector);
    if (role == EXPORTER)
        return (connector->factory->connects[signal] & sides->gives[place]) != 0;
    for (unsigned from = 0; from < SIGNAL_KINDS; from++)
        if ((sides->takes[place] & 1u << from) != 0 &&
            (connector->factory->connects[from] & 1u << signal) != 0)
            return true;
    return false;
}

/* Takes what cannot run out of a list of receivers or exporters. False: all of it can. */
static bool prune_list(struct pruning *pruning, size_t number, enum component_kind role,
                       const struct config_component *const **list, size_t *count)
{
    enum signal_kind signal = pruning->pipelines[number].signal;
    const struct config_component **kept = loader_zalloc(pruning->loader, *count * sizeof(kept[0]));
    size_t kept_count = 0;
    for (size_t i = 0; i < *count; i++) {
        const struct config_component *component = (*list)[i];
        bool is_unsupported = component->unsupported != NULL;
        /* An end that was loose from the beginning is a mistake, which graph_load reports. */
        bool is_cut = !is_unsupported && is_connector(component) &&
                      !is_joined(pruning, &pruning->left, component, role, signal) &&
                      is_joined(pruning, &pruning->written, component, role, signal);
        if (!is_unsupported && !is_cut) {
            kept[kept_count++] = component;
            continue;
        }
        struct part *part = loader_zalloc(pruning->loader, sizeof(*part));
        *part = (struct part){
            .next = pruning->parts[number],
            .component = component,
            .section = component_kind_section(role),
            .reason = is_cut ? SKIP_CONNECTOR : SKIP_COMPONENT,
            .why = !is_cut            ? component->unsupported
                   : role == RECEIVER ? "the pipelines that feed this connector are left out"
                                      : "the pipelines that this connector feeds are left out",
        };
        pruning->parts[number] = part;
    }
    bool is_changed = kept_count < *count;
    *list = is_changed ? kept : *list;
    *count = kept_count;
    return is_changed;
}

/* "none of its receivers can run: \"kafka\" (why)". */
static void leave_out_list(struct pruning *pruning, size_t number, enum component_kind role)
{
    char text[WHY_MAX];
    const char *section = component_kind_section(role);
    enum skip_reason reason = SKIP_CONNECTOR;
    size_t length = (size_t)snprintf(text, sizeof(text), "none of its %s can run", section);
    const char *separator = ": ";
    for (const struct part *part = pruning->parts[number]; part != NULL; part = part->next) {
        if (strcmp(part->section, section) != 0)
            continue;
        if (part->reason != SKIP_CONNECTOR)
            reason = role == RECEIVER ? SKIP_NO_RECEIVERS : SKIP_NO_EXPORTERS;
        if (length < sizeof(text))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s\"%s\" (%s)",
                                       separator, part->component->id, part->why);
        separator = ", ";
    }
    pruning->whys[number] = loader_copy_text(pruning->loader, text);
    pruning->reasons[number] = reason;
}

/* False: nothing changed. */
static bool prune_pipeline(struct pruning *pruning, size_t number)
{
    struct config_pipeline *pipeline = &pruning->pipelines[number];
    for (size_t i = 0; i < pipeline->processors_count; i++) {
        const struct config_component *processor = pipeline->processors[i];
        if (processor->unsupported == NULL)
            continue;
        char text[WHY_MAX];
        snprintf(text, sizeof(text),
                 "its processor \"%s\" cannot run, without which the data would "
                 "be other data (%s)",
                 processor->id, processor->unsupported);
        pruning->whys[number] = loader_copy_text(pruning->loader, text);
        pruning->reasons[number] = SKIP_PROCESSOR;
        return true;
    }
    bool is_changed =
        prune_list(pruning, number, RECEIVER, &pipeline->receivers, &pipeline->receivers_count);
    is_changed |=
        prune_list(pruning, number, EXPORTER, &pipeline->exporters, &pipeline->exporters_count);
    if (pipeline->receivers_count == 0)
        leave_out_list(pruning, number, RECEIVER);
    else if (pipeline->exporters_count == 0)
        leave_out_list(pruning, number, EXPORTER);
    return is_changed;
}

/* To a fixed point: each round takes out a pipeline or a part of one. */
static void prune(struct pruning *pruning)
{
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        collect_sides(pruning, &pruning->left);
        for (size_t i = 0; i < pruning->count; i++)
            if (pruning->whys[i] == NULL)
                is_changed |= prune_pipeline(pruning, i);
    }
}

/* Notes what is left out, and keeps the rest. */
static const struct node *settle_pipelines(struct pruning *pruning, const struct node *node,
                                           struct config *config)
{
    struct loader *loader = pruning->loader;
    size_t kept = 0;
    struct node *map = loader_zalloc(loader, sizeof(*map));
    *map = (struct node){.kind = NODE_MAP, .position = node->position};
    for (size_t i = 0; i < pruning->count; i++)
        for (const struct part *part = pruning->parts[i]; pruning->whys[i] == NULL && part != NULL;
             part = part->next)
            loader_skip(loader, (struct config_skip){.pipeline = pruning->pipelines[i].id,
                                                     .component = part->component->id,
                                                     .section = part->section,
                                                     .reason = part->reason,
                                                     .why = part->why});
    for (size_t i = 0; i < pruning->count; i++) {
        if (pruning->whys[i] != NULL) {
            loader_skip(loader, (struct config_skip){.pipeline = pruning->pipelines[i].id,
                                                     .reason = pruning->reasons[i],
                                                     .why = pruning->whys[i]});
            continue;
        }
        node_add(&loader->arena, map, node->entries[i]);
        pruning->pipelines[kept++] = pruning->pipelines[i];
    }
    config->pipelines_count = kept;
    return map;
}

static void mark_used(const struct component_set *set,
                      const struct config_component *const *components, size_t count)
{
    for (size_t i = 0; i < count; i++)
        set->items[components[i] - set->items].is_used = true;
}

const struct node *unsupported_prune(struct loader *loader, const struct component_set *set,
                                     const struct node *node, struct config_pipeline *pipelines,
                                     struct config *config)
{
    size_t count = config->pipelines_count;
    if (!loader->skips_unsupported || set->count == 0)
        return node;
    assert(node->count == count);
    struct pruning pruning = {.loader = loader, .set = set, .pipelines = pipelines, .count = count};
    size_t size = set->count * sizeof(unsigned);
    pruning.written.takes = loader_zalloc(loader, size);
    pruning.written.gives = loader_zalloc(loader, size);
    pruning.left.takes = loader_zalloc(loader, size);
    pruning.left.gives = loader_zalloc(loader, size);
    pruning.whys = loader_zalloc(loader, count * sizeof(pruning.whys[0]));
    pruning.reasons = loader_zalloc(loader, count * sizeof(pruning.reasons[0]));
    pruning.parts = loader_zalloc(loader, count * sizeof(pruning.parts[0]));
    collect_sides(&pruning, &pruning.written);
    prune(&pruning);
    const struct config_component **extensions =
        loader_zalloc(loader, config->extensions_count * sizeof(extensions[0]));
    size_t extensions_count = 0;
    for (size_t i = 0; i < config->extensions_count; i++)
        if (config->extensions[i]->unsupported == NULL)
            extensions[extensions_count++] = config->extensions[i];
    config->extensions = extensions;
    config->extensions_count = extensions_count;
    const struct node *left = settle_pipelines(&pruning, node, config);
    for (size_t i = 0; i < set->count; i++)
        set->items[i].is_used = false;
    mark_used(set, extensions, extensions_count);
    for (size_t i = 0; i < config->pipelines_count; i++) {
        mark_used(set, pipelines[i].receivers, pipelines[i].receivers_count);
        mark_used(set, pipelines[i].processors, pipelines[i].processors_count);
        mark_used(set, pipelines[i].exporters, pipelines[i].exporters_count);
    }
    if (config->pipelines_count > 0 || loader->may_be_empty)
        return left;
    struct path root = {.parent = NULL};
    struct path service = {.parent = &root, .key = "service"};
    struct path section = {.parent = &service, .key = "pipelines"};
    loader_problem(loader, node->position, &section,
                   "nothing is left to run: every pipeline needs what this build does not support");
    for (size_t i = 0; i < count; i++) {
        struct path path = {.parent = &section, .key = node->entries[i].key};
        loader_problem(loader, node->entries[i].position, &path, "left out: %s", pruning.whys[i]);
    }
    return left;
}
