/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the profile command. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

enum {
    REPORT_DEPTH_MAX = 4096,       /* frames of one stack */
    REPORT_LABEL_BYTES_MAX = 1024, /* of a label's value */
    CALL_TREE_NODES_MAX = 16 << 20,
    FLAMEGRAPH_DEPTH_MAX = 512,
    FLAMEGRAPH_FRAMES_MAX = 50000,
    FLAMEGRAPH_NAME_BYTES_MAX = 1024,
    PROFILE_FILES_MAX = 1024 /* merged at once */
};
