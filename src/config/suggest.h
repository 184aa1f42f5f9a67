/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean …": the nearest of the valid names. Pure functions. */
#pragma once

#include <stddef.h>

enum { SUGGESTION_TEXT_MAX = 128, SUGGESTION_CANDIDATES_MAX = 1024 };

struct suggestion {
    const char *found;
    const char *nearest; /* NULL: nothing is near */
    size_t distance;     /* candidates have to be nearer than that */
    size_t considered;   /* SUGGESTION_CANDIDATES_MAX: no more are */
};

struct suggestion_text {
    char text[SUGGESTION_TEXT_MAX];
};

struct suggestion suggestion_for(const char *found);
/* Keeps the candidate if it is nearer than the earlier ones, of which there may be so many. */
void suggestion_consider(struct suggestion *suggestion, const char *candidate);
/* " (did you mean "x"?)", or nothing. */
struct suggestion_text suggestion_to_text(const struct suggestion *suggestion);
