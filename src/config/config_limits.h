/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of configurations that have no key of their own. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

enum {
    CONFIG_FILE_BYTES_MAX = 8 << 20,
    CONFIG_DEPTH_MAX = 64,
    CONFIG_NODES_MAX = 1000000,
    CONFIG_ALIASES_MAX = 1000,
    CONFIG_EXPANSIONS_MAX = 1000,
    CONFIG_EXPANDED_BYTES_MAX = 16 << 20,
    CONFIG_ERRORS_MAX = 100,
    CONFIG_REFERENCES_MAX = 1024, /* of one list of components */
    /* From one pipeline, through connectors, counted once per path: each request is sent that
       often. */
    CONFIG_DESTINATIONS_MAX = 65536,
    CONFIG_LOCATIONS_MAX = 100 /* --config and --set together */
};
#define CONFIG_ARENA_BYTES_MAX (4096 * MIB) /* never reached: follows from the limits above */
