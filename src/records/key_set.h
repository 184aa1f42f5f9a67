/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a configuration, sorted. Immutable; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/config/field.h"

struct key_set {
    size_t count;
    struct slice *keys;
};

/* Copies no key: they outlive the set. */
struct key_set key_set_create(const struct config_texts *texts, const char *const *more,
                              size_t more_count);
void key_set_destroy(struct key_set *set);
bool key_set_has(const struct key_set *set, struct slice key);
