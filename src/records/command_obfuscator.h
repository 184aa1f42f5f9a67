/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the values in commands of Redis and Memcached, as the Go collector's redaction does it.
 * Pure functions, any thread; linear in the text. */
#pragma once

#include "src/base/slice.h"

struct arena;

/* One command per line; which of its arguments become "?" depends on the command. Those of commands
 * that are not known to have values stay. Returns bytes of the arena; "****" if it is full. */
struct slice redis_obfuscate(struct arena *arena, struct slice text);
/* Returns the first line of text, which has the command and the key. */
struct slice memcached_obfuscate(struct slice text);
