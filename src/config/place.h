/* SPDX-License-Identifier: Apache-2.0 */
/* From what a rule says about a section (src/base/error.h: the steps of an error) to where that
 * stands in the files. Main thread. */
#pragma once

#include "src/base/error.h"
#include "src/config/node.h"
#include "src/config/problems.h"

struct place {
    struct position position;
    const struct path *path; /* the section's own, or the last of paths */
    struct path paths[ERROR_STEPS_MAX];
};

/* The value that the error is about. When it was not written, the position is that of the innermost
 * section around it that was; position is the section's own, section may be no map. */
void place_find(const struct error *error, const struct node *section, struct position position,
                const struct path *path, struct place *ret_place);
