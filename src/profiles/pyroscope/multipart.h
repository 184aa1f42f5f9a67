/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a form (RFC 7578, RFC 2046 §5.1), read in place. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

enum { MULTIPART_BOUNDARY_MAX = 70 };

struct multipart {
    struct slice rest;                          /* what has not been read yet */
    char delimiter[MULTIPART_BOUNDARY_MAX + 4]; /* a line end, "--" and the boundary */
    size_t parts;
    bool has_begun;
    bool has_ended;
    const char *failure; /* sticky: NULL, or what is wrong */
};

struct multipart_part {
    struct slice name;
    struct slice content;
};

/* Whether that is the Content-Type of a form, in any case. */
bool multipart_is_form(struct slice content_type);
/* Sets failure when the content type names no valid boundary. */
struct multipart multipart_of(struct slice content_type, struct slice body);
/* False: the form has ended, or failure. */
bool multipart_next(struct multipart *form, struct multipart_part *ret_part);
