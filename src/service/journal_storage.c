/* SPDX-License-Identifier: Apache-2.0 */
/* Reads both sections. Any thread. */
#include "src/service/journal_storage.h"

#include "src/config/config_types.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/component.h"
#include "src/service/service_parts.h"

#include <assert.h>

enum { WAL_MODE = 0750 };

struct journal_storage journal_storage_of(const struct config_component *component)
{
    if (component->factory->kind == EXPORTER) {
        const struct wal_config *wal =
            &((const struct exporter_queue_config *)component->config)->wal;
        return (struct journal_storage){
            .label = "wal",
            .directory = wal->directory[0] != '\0' ? wal->directory : ".",
            .is_synced = true,
            .is_made = true,
            .mode = WAL_MODE,
            .bytes_max = UINT64_MAX,
        };
    }
    assert(component->factory->kind == EXTENSION);
    const struct file_storage_config *config = component->config;
    return (struct journal_storage){
        .label = "extension",
        .directory = config->directory,
        .is_synced = config->fsync,
        .is_made = config->create_directory,
        .mode = file_storage_mode(config),
        .bytes_max = config->max_size > 0 ? config->max_size : UINT64_MAX,
    };
}

const struct config_component *journal_storage_find(const struct service *service,
                                                    const struct config_component *exporter)
{
    if (exporter->factory->kind != EXPORTER)
        return NULL;
    const struct exporter_queue_config *config = exporter->config;
    if (!exporter_queue_is_stored(config))
        return NULL;
    return config->has_wal ? exporter
                           : service->view.extension(&service->view, config->queue.storage);
}
