/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a configuration, gathered while it is read and handed out in the order of the
 * files. Main thread. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/config/node.h"

struct config_problems;

/* Where in the tree: a chain on the stack, printed as receivers::otlp::protocols. */
struct path {
    const struct path *parent; /* NULL: the root, which has no key */
    const char *key;           /* NULL: an element of a list */
    size_t index;
};

enum { PATH_TEXT_MAX = 512 };
struct path_text {
    char text[PATH_TEXT_MAX]; /* cut when longer */
};
struct path_text path_to_text(const struct path *path);

struct problem {
    struct position position;
    size_t sequence;
    bool is_notice; /* stands behind the others */
    char *text;     /* complete, with position and path */
};

struct problem_list {
    struct problem *items; /* CONFIG_ERRORS_MAX of them */
    size_t count;
    size_t dropped; /* beyond that many */
};

/* path may be NULL; the format is that of printf. */
void problem_list_add(struct problem_list *list, struct position position, const struct path *path,
                      const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));
/* Moves both lists, sorted, to where the caller of config_load finds them. */
void problem_lists_take(struct problem_list *problems, struct problem_list *warnings,
                        struct config_problems *ret_problems);
