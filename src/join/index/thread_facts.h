/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread a span or a sample says that it was on. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

#define THREAD_NAME_KEY "thread.name"
#define THREAD_ID_KEY   "thread.id"

/* Hashes; 0: not said. */
struct thread_facts {
    uint16_t name; /* of as much of thread.name as a kernel keeps */
    uint16_t id;
};

/* An attribute: its key and encoded AnyValue. Others than thread.name and thread.id are passed
 * over. */
void thread_facts_take(struct thread_facts *facts, struct slice key, struct slice value);
/* Whether they cannot be the same thread. Numbers are of the runtime in one producer and of the
 * kernel in another: they say something only where both are of the same producer. */
bool thread_facts_differ(const struct thread_facts *a, const struct thread_facts *b,
                         bool is_same_producer);
