/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the explore page, which the build embeds (cmake/embed_page.cmake). Constants; any
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct explore_asset {
    const char *path; /* "/index.html"; NULL ends the list */
    const char *type;
    const char *etag; /* strong, with its quotes */
    const uint8_t *gzip;
    size_t gzip_size;
};

extern const struct explore_asset explore_assets[];
