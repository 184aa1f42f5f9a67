/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of loading share: the memory of the tree and of its decoded form, the problems so
 * far, and what was spent of the limits. One per load, on the main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/arena.h"
#include "src/config/node.h"
#include "src/config/problems.h"

struct component_factory;
struct config_component;
struct extension_name;
struct feature_gates;

struct loader {
    /* Bounded by construction: CONFIG_LOCATIONS_MAX files of CONFIG_FILE_BYTES_MAX,
     * CONFIG_NODES_MAX nodes, CONFIG_EXPANDED_BYTES_MAX of substituted text. */
    struct arena arena;
    struct problem_list problems;
    struct problem_list warnings;
    const struct component_factory *const *factories; /* NULL-ended */
    const struct feature_gates *gates;
    const struct config_component *component; /* being decoded; NULL: none */
    struct extension_name *extension_names;   /* noted so far, the last one first */
    size_t sources_count;
    size_t nodes_count;
    size_t expanded_bytes;
    bool is_exhausted; /* that was too many of them, and is reported */
};

/* name is copied. */
const struct source *loader_add_source(struct loader *loader, const char *name);
/* NULL above CONFIG_NODES_MAX. */
struct node *loader_try_node(struct loader *loader, enum node_kind kind, struct position position);
/* path may be NULL. */
void loader_problem(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
void loader_warning(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A warning for the log of a running daemon, not for `validate`. */
void loader_notice(struct loader *loader, struct position position, const struct path *path,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* How many problems there are so far. */
size_t loader_problems(const struct loader *loader);
/* arena_alloc, zeroed. */
void *loader_zalloc(struct loader *loader, size_t size) __attribute__((returns_nonnull));
char *loader_copy_text(struct loader *loader, const char *text) __attribute__((returns_nonnull));
/* False when the limit of substituted text is passed. */
bool loader_charge_expanded(struct loader *loader, size_t bytes);
