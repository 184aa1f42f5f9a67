/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts the bytes of a file into lines, with the limits of the Go collector's file receivers. Plain
 * values, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct line_splitter {
    size_t bytes_max;   /* of a line */
    bool truncates;     /* a longer line is cut there; else it becomes several lines */
    bool takes_all;     /* no lines: everything up to the end, or bytes_max, is one */
    bool keeps_leading; /* white space */
    bool keeps_trailing;
    bool is_skipping; /* state: the rest of a line that was cut is left out */
    size_t searched;  /* state: so many bytes of the next data have no line end */
};

enum split_step {
    SPLIT_LINE, /* *ret_line, which may be empty */
    SPLIT_SKIP, /* those bytes belong to no line */
    SPLIT_MORE, /* more bytes are needed */
};

/* data follows what earlier steps have used. is_end: what is there is all, and its end ends the
 * line. *ret_used: bytes of data that the step takes, line end included; with SPLIT_MORE 0. Never
 * wants more than one byte beyond bytes_max. */
enum split_step line_splitter_next(struct line_splitter *splitter, struct slice data, bool is_end,
                                   size_t *ret_used, struct slice *ret_line);
