/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean …": the nearest of the valid names. Pure functions. */
#pragma once

#include <stddef.h>

struct suggestion {
    const char *found;
    const char *nearest; /* NULL: nothing is near */
    size_t distance;
};

enum { SUGGESTION_TEXT_MAX = 128 };
struct suggestion_text {
    char text[SUGGESTION_TEXT_MAX];
};

struct suggestion suggestion_for(const char *found);
/* Keeps the candidate if it is nearer than the earlier ones. */
void suggestion_consider(struct suggestion *suggestion, const char *candidate);
/* " (did you mean "x"?)", or nothing. */
struct suggestion_text suggestion_to_text(const struct suggestion *suggestion);
