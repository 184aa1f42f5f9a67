/* SPDX-License-Identifier: Apache-2.0 */
/* State that the steps of loading share: memory of the tree and its decoded form, problems and
 * their positions, usage of the limits. One per load, on the main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/config/node.h"

struct component_factory;
struct config_component;
struct config_skip;
struct config_field;
struct config_problems;
struct feature_gates;
struct suggestion;

/* A position in the tree: a chain on the stack, printed as receivers::otlp::protocols. */
struct path {
    const struct path *parent; /* NULL: the root, which has no key */
    const char *key;           /* NULL: an element of a list */
    size_t index;
};

enum { PATH_TEXT_MAX = 512 };
struct path_text {
    char text[PATH_TEXT_MAX]; /* cut when longer */
};

struct problem {
    struct position position;
    size_t sequence;
    bool is_notice; /* sorted after the others */
    char *text;     /* complete, with position and path */
};

struct problem_list {
    struct problem *items; /* CONFIG_ERRORS_MAX of them */
    size_t count;
    size_t dropped; /* beyond that many */
};

/* A component's reference to an extension: noted while the component is decoded, checked once all
 * extensions and all used components are known. */
struct extension_name {
    struct extension_name *next;
    const struct config_component *user;
    const struct config_field *field;
    const char *name;
    const struct path *path;
    struct position position;
};

struct loader {
    /* Bounded by construction: CONFIG_LOCATIONS_MAX files of CONFIG_FILE_BYTES_MAX,
     * CONFIG_NODES_MAX nodes, CONFIG_EXPANDED_BYTES_MAX of substituted values. */
    struct arena arena;
    struct problem_list problems;
    struct problem_list warnings;
    const struct component_factory *const *factories; /* NULL-terminated */
    const struct feature_gates *gates;
    struct config_component *component;     /* being decoded; NULL: none */
    struct extension_name *extension_names; /* noted so far, the last one first */
    size_t sources_count;
    size_t nodes_count;
    size_t expanded_bytes;
    bool skips_unsupported;    /* leave out what this build lacks */
    bool may_be_empty;         /* even if no pipeline is left then */
    bool has_unsupported;      /* a problem is what this build lacks, and could be left out */
    struct config_skip *skips; /* what is left out; grows in the arena */
    size_t skips_count;
    size_t skips_capacity;
    bool is_exhausted; /* the limit of expanded bytes was exceeded and reported */
};

/* name is copied. */
const struct source *loader_add_source(struct loader *loader, const char *name);
/* NULL above CONFIG_NODES_MAX. */
struct node *loader_try_node(struct loader *loader, enum node_kind kind, struct position position);
/* path may be NULL. */
void loader_problem(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What the Go collector has and this build lacks: a problem, or the reason why the component being
 * decoded is left out. */
void loader_unsupported(struct loader *loader, struct position position, const struct path *path,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Keeps the skip's pointers. */
void loader_skip(struct loader *loader, struct config_skip skip);
void loader_warning(struct loader *loader, struct position position, const struct path *path,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A warning for the log of a running daemon, not for `validate`. */
void loader_notice(struct loader *loader, struct position position, const struct path *path,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Number of problems so far. */
size_t loader_problems(const struct loader *loader);
/* suggestion_for, for the next problem: one that takes no candidates if that is not shown. */
struct suggestion loader_suggestion(const struct loader *loader, const char *found);
/* arena_alloc, zeroed. */
void *loader_zalloc(struct loader *loader, size_t size) __attribute__((returns_nonnull));
char *loader_copy_text(struct loader *loader, const char *text) __attribute__((returns_nonnull));
/* False: the limit of substituted values is exceeded. */
bool loader_charge_expanded(struct loader *loader, size_t bytes);
/* Moves both lists, sorted by position, to ret_problems. */
void loader_take_problems(struct loader *loader, struct config_problems *ret_problems);

struct path_text path_to_text(const struct path *path);

struct place {
    struct position position;
    const struct path *path; /* the section's own, or the last of paths */
    struct path paths[ERROR_STEPS_MAX];
};

/* Finds the value that the error is about. If it is absent, the position is that of the innermost
 * enclosing section that is present. position is that of section, which need not be a map. */
void place_find(const struct error *error, const struct node *section, struct position position,
                const struct path *path, struct place *ret_place);
