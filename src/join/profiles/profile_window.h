/* SPDX-License-Identifier: Apache-2.0 */
/* The part of profile_links that is about samples which name no span but say when they were taken:
 * each gets the span that it can only have been in, if there is one. Used by profile_links.c
 * alone, and nothing without uses_window. One owner, one thread at a time. */
#pragma once

#include "src/join/profiles/profile_links.h"

/* Samples of this resource (encoded; no data: none) follow. */
void profile_window_begin(struct profile_links *links, struct slice resource);
/* A sample without a span, which is to be the next of named; false: it does not say when or where
 * it was taken. */
bool profile_window_note(struct profile_links *links, struct slice bytes);
/* Finds their spans, of which more may be known later. Returns how many samples there are. */
uint32_t profile_window_resolve(struct profile_links *links);
void profile_window_clear(struct profile_links *links);
void profile_window_fini(struct profile_links *links);
