/* SPDX-License-Identifier: Apache-2.0 */
/* A file beside the configuration that a component reads by an option table of its own, as
 * prometheus reads scrape_config_files. References like ${env:X} are not replaced in it. Main
 * thread. */
#pragma once

#include <stdbool.h>

#include "src/base/arena.h"

struct config_field;
struct error;

struct section_file {
    struct arena arena; /* holds all that was decoded */
};

/* Decodes the file, a map, into owner, as field, a row of a section that is always there, says.
 * False: error has the first problem, with its line. Either way free the file. */
bool section_file_read(struct section_file *file, const char *path,
                       const struct config_field *field, void *owner, struct error *error);
/* A no-op for an all-zero struct. */
void section_file_free(struct section_file *file);
