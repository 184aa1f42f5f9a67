/* SPDX-License-Identifier: Apache-2.0 */
/* A label as readers of expositions give it and relabeling changes it. Plain value, any thread;
 * valid as long as the text that it points to. */
#pragma once

#include "src/base/slice.h"

struct prometheus_label {
    struct slice name;
    struct slice value;
};
