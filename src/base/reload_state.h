/* SPDX-License-Identifier: Apache-2.0 */
/* State that components hand to their successors over a reload, by component id. Main thread, while
 * no lane runs. */
#pragma once

#include <stdbool.h>

/* From now on components that stop may leave their state here. */
void reload_state_begin(void);
/* Destroys what no component took; from now on nothing is kept. */
void reload_state_end(void);
/* True: the object is kept. False: no reload is under way, the caller keeps ownership. */
bool reload_state_put(const char *id, void *object, void (*destroy)(void *object));
/* Returns what the component of that id left, or NULL; the caller owns it. */
void *reload_state_take(const char *id);
