/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and cross-field rules of sending_queue and retry_on_failure. Constants and pure
 * functions; the main thread runs them while it loads the configuration. */
#include "src/config/shared/exporter_queue_config.h"

#include "src/base/error.h"
#include "src/config/shared/file_storage_config.h"

#include <inttypes.h>
#include <strings.h>

static const char *const sizer_names[] = {
    [QUEUE_SIZER_UNSET] = "", [QUEUE_REQUESTS] = "requests", [QUEUE_ITEMS] = "items",
    [QUEUE_BYTES] = "bytes",  [QUEUE_BYTES + 1] = NULL,
};

static const struct config_field partition_fields[] = {
    CONFIG_TEXTS(struct queue_partition_config, metadata_keys, "metadata_keys", NULL,
                 "One batch per distinct set of values of these client metadata keys."),
    CONFIG_END,
};

bool metadata_keys_check(const struct config_texts *keys, struct error *error)
{
    for (size_t i = 0; i < keys->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(keys->texts[i], keys->texts[j]) == 0)
                return error_set(error,
                                 "duplicate entry in metadata_keys: \"%s\" (case-insensitive); "
                                 "name each key once",
                                 keys->texts[i]) ||
                       error_at_index(error, i) || error_at(error, "metadata_keys");
    return true;
}

static bool partition_check(const void *section, struct error *error)
{
    const struct queue_partition_config *partition = section;
    return metadata_keys_check(&partition->metadata_keys, error);
}

static bool batch_check(const void *section, struct error *error)
{
    const struct queue_batch_config *batch = section;
    if (batch->sizer == QUEUE_REQUESTS)
        return error_set(error, "`batch` supports only `items` or `bytes` sizer, found "
                                "\"requests\"") ||
               error_at(error, "sizer");
    if (batch->max_size > 0 && batch->max_size < batch->min_size)
        return error_set(error,
                         "`max_size` (%" PRIu64 ") must be greater or equal to `min_size` (%" PRIu64
                         ")",
                         batch->max_size, batch->min_size) ||
               error_at(error, "max_size");
    return true;
}

static const struct config_field batch_fields[] = {
    CONFIG_DURATION(struct queue_batch_config, flush_timeout_ns, "flush_timeout", "200ms", 1,
                    INT64_MAX, "Send a batch after this long, whatever its size."),
    CONFIG_CHOICE_NOT_EMPTY(
        struct queue_batch_config, sizer, "sizer", sizer_names,
        "What min_size and max_size count: items or bytes. Unset: as the queue's sizer "
        "when that is set, else items."),
    CONFIG_COUNT(struct queue_batch_config, min_size, "min_size", "8192", 0, INT64_MAX,
                 "Send a batch as soon as it has this size."),
    CONFIG_COUNT(struct queue_batch_config, max_size, "max_size", "0", 0, INT64_MAX,
                 "Split larger batches; 0 means never."),
    CONFIG_SECTION(struct queue_batch_config, partition, struct queue_partition_config, "partition",
                   partition_fields, partition_check,
                   "Keep the data of different clients in different batches."),
    CONFIG_END,
};

const struct config_field sending_queue_fields[] = {
    CONFIG_COUNT(struct sending_queue_config, num_consumers, "num_consumers", "10", 1, 1000000,
                 "Exports at the same time, those that wait for a retry included."),
    CONFIG_COUNT(struct sending_queue_config, queue_size, "queue_size", "1000", 1, INT64_MAX,
                 "Capacity for waiting and running exports, in units of sizer; more is refused."),
    CONFIG_CHOICE_NOT_EMPTY(struct sending_queue_config, sizer, "sizer", sizer_names,
                            "What queue_size counts: requests (also when unset), items or bytes."),
    CONFIG_BOOL(struct sending_queue_config, block_on_overflow, "block_on_overflow", "false",
                "Let clients wait for room instead of refusing them."),
    CONFIG_BOOL(struct sending_queue_config, wait_for_result, "wait_for_result", "false",
                "Respond to the client only when the export has ended."),
    CONFIG_EXTENSION_NOT_EMPTY(
        struct sending_queue_config, storage, "storage", "storage client extension",
        file_storage_accepts,
        "Storage extension: requests stay in the pipeline's journal on disk until they "
        "are exported."),
    CONFIG_OPTIONAL(struct sending_queue_config, batch, struct queue_batch_config, has_batch,
                    CONFIG_NULL_ENABLES, "batch", batch_fields, batch_check,
                    "Merge and split the requests that leave the queue."),
    CONFIG_END,
};

const struct config_field retry_fields[] = {RETRY_ROWS("5s"), CONFIG_END};

#define WAL_BUFFER_SIZE "300"
enum { WAL_BUFFER_SIZE_DEFAULT = 300 };

const struct config_field wal_fields[] = {
    CONFIG_TEXT(struct wal_config, directory, "directory", NULL,
                "Where the journal is kept, in a directory for each pipeline. It is made if it is "
                "missing. Unset: the working directory."),
    CONFIG_INT(struct wal_config, buffer_size, "buffer_size", WAL_BUFFER_SIZE, INT64_MIN, INT64_MAX,
               "Requests in memory between the journal and the back-end; more stay on disk alone. "
               "Below 1: 300."),
    CONFIG_UNUSED_DURATION(struct wal_config, truncate_frequency_ns, "truncate_frequency", "1m",
                           INT64_MIN, INT64_MAX,
                           "No effect: requests are exported at once, and their space is given "
                           "back."),
    CONFIG_UNUSED_DURATION(struct wal_config, lag_record_frequency_ns, "lag_record_frequency",
                           "15s", INT64_MIN, INT64_MAX,
                           "No effect: the metric is made when it is read."),
    CONFIG_END,
};

bool exporter_queue_is_on(const struct exporter_queue_config *config)
{
    return config->has_queue || config->has_wal;
}

bool exporter_queue_is_stored(const struct exporter_queue_config *config)
{
    return config->has_wal || (config->has_queue && config->queue.storage[0] != '\0');
}

uint64_t exporter_queue_held_max(const struct exporter_queue_config *config)
{
    int64_t size = config->wal.buffer_size;
    return !config->has_wal ? 0 : size > 0 ? (uint64_t)size : WAL_BUFFER_SIZE_DEFAULT;
}

enum queue_sizer sending_queue_sizer(const struct sending_queue_config *queue)
{
    return queue->sizer == QUEUE_SIZER_UNSET ? QUEUE_REQUESTS : (enum queue_sizer)queue->sizer;
}

enum queue_sizer queue_batch_sizer(const struct sending_queue_config *queue)
{
    if (queue->batch.sizer != QUEUE_SIZER_UNSET)
        return (enum queue_sizer)queue->batch.sizer;
    return queue->sizer == QUEUE_SIZER_UNSET ? QUEUE_ITEMS : (enum queue_sizer)queue->sizer;
}

bool sending_queue_check(const void *section, struct error *error)
{
    const struct sending_queue_config *queue = section;
    if (queue->storage[0] != '\0' && queue->wait_for_result)
        return error_set(error, "`wait_for_result` is not supported with a persistent queue "
                                "configured with `storage`") ||
               error_at(error, "wait_for_result");
    if (!queue->has_batch)
        return true;
    enum queue_sizer batch_sizer = queue_batch_sizer(queue);
    if (batch_sizer == QUEUE_REQUESTS)
        return error_set(error, "`batch` supports only `items` or `bytes` sizer, found "
                                "\"requests\" in the queue's sizer; set batch::sizer") ||
               error_at(error, "sizer");
    if (batch_sizer == sending_queue_sizer(queue) && queue->batch.min_size > queue->queue_size)
        return error_set(error, "`min_size` must be less than or equal to `queue_size`") ||
               error_at(error, "min_size") || error_at(error, "batch");
    return true;
}

bool retry_check(const void *section, struct error *error)
{
    const struct retry_config *retry = section;
    /* Written so that NaN fails too. */
    if (!(retry->randomization_factor >= 0 && retry->randomization_factor <= 1))
        return error_set(error, "'randomization_factor' must be within [0, 1], found %g",
                         retry->randomization_factor) ||
               error_at(error, "randomization_factor");
    if (!(retry->multiplier >= 0))
        return error_set(error, "'multiplier' must be non-negative, found %g", retry->multiplier) ||
               error_at(error, "multiplier");
    if (retry->max_elapsed_time_ns == 0)
        return true;
    if (retry->max_elapsed_time_ns < retry->initial_interval_ns)
        return error_set(error, "'max_elapsed_time' must not be less than 'initial_interval'") ||
               error_at(error, "max_elapsed_time");
    if (retry->max_elapsed_time_ns < retry->max_interval_ns)
        return error_set(error, "'max_elapsed_time' must not be less than 'max_interval'") ||
               error_at(error, "max_elapsed_time");
    return true;
}
