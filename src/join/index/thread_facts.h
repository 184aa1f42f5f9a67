/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that a span or a sample was recorded on. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

#define THREAD_NAME_KEY "thread.name"
#define THREAD_ID_KEY   "thread.id"

/* Hashes; 0: unknown. */
struct thread_facts {
    uint16_t name; /* of the part of thread.name that the kernel keeps */
    uint16_t id;
};

/* Notes an attribute, given by its key and encoded AnyValue, if it is thread.name or thread.id. */
void thread_facts_take(struct thread_facts *facts, struct slice key, struct slice value);
/* Notes what is known in more. */
void thread_facts_add(struct thread_facts *facts, const struct thread_facts *more);
/* Whether they cannot be the same thread. One producer numbers threads as the runtime does, another
 * as the kernel does: ids differ only when both are of the same producer. */
bool thread_facts_differ(const struct thread_facts *a, const struct thread_facts *b,
                         bool is_same_producer);
