/* SPDX-License-Identifier: Apache-2.0 */
/* file_storage: where the journals of pipelines are kept. The service opens them
 * (src/service/journals.h); the extension itself is its section alone. */
#include "src/config/shared/file_storage_config.h"
#include "src/core/component.h"

const struct component_factory file_storage_extension_factory = {
    .type = "file_storage",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct file_storage_config),
    .fields = file_storage_fields,
    .check = file_storage_check,
};
