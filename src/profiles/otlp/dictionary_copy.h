/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the whole dictionary of a plain request at once, table by table, instead of entry by
 * entry as samples ask for them: straight loops without recursion, several times as fast. What no
 * sample asks for comes along as well and must be taken out at the end (profile_unused.h). One
 * owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct profile_remap;

/* No message takes more than so many times its bytes, and _SLACK, once its indices are new. */
enum { DICTIONARY_COPY_GROWTH = 5, DICTIONARY_COPY_SLACK = 64 };

/* False, with nothing changed, when an entry is not plain or refers to what is not there: then
 * entries come when asked for, as always. True: all are known. */
bool dictionary_copy(struct profile_remap *remap);

/* Writes a sample, as field 2 of a Profile, where there is room, once all is known. NULL: it is not
 * plain. Returns the end. */
uint8_t *dictionary_copy_sample(const struct profile_remap *remap, struct slice sample,
                                uint8_t *at);
