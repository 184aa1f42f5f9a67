/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of one request by the value of an attribute, for group_by. Blocking no one: pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch;
struct budget;

struct file_group {
    struct slice name;   /* inside the request */
    struct batch *batch; /* its resources in their order, and the dictionary of profiles */
    uint64_t items;
};

struct file_groups {
    struct file_group *list; /* in the order of their names */
    size_t count;
    uint64_t ungrouped_items;  /* of resources without a string there */
    struct buffer *dictionary; /* of profiles: in each group's batch; NULL: none */
    struct buffer *owner;
    struct budget *budget;
    uint64_t charged;
};

/* batch has passed otlp_check. False: there is no memory now. Growth: n log n of its resources. */
bool file_groups_make(struct file_groups *groups, const struct batch *batch, const char *attribute,
                      struct budget *budget);
void file_groups_free(struct file_groups *groups);
