/* SPDX-License-Identifier: Apache-2.0 */
/* What components know that outlives them while the service reloads, by their id: the new one takes
 * it over, if it still wants it. Main thread, while no lane runs. */
#pragma once

#include <stdbool.h>

/* From now on components that end may leave something here. */
void kept_objects_begin(void);
/* Destroys what nobody took; from now on nothing is kept. */
void kept_objects_end(void);
/* True: the object is kept. False: the caller destroys it. */
bool kept_objects_put(const char *id, void *object, void (*destroy)(void *object));
/* What a component of that id has left, which is the caller's from now on; NULL: nothing. */
void *kept_objects_take(const char *id);
