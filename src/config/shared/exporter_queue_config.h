/* SPDX-License-Identifier: Apache-2.0 */
/* The sending_queue, retry_on_failure and wal sections that exporters share: their structs, option
 * tables and rules. Every exporter's config struct begins with a struct exporter_queue_config, so
 * that the core can read it without knowing the exporter. Constants, any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

/* What queue_size and the batch sizes count. UNSET: requests in the queue, items in its batch. */
enum queue_sizer { QUEUE_SIZER_UNSET, QUEUE_REQUESTS, QUEUE_ITEMS, QUEUE_BYTES };

struct queue_partition_config {
    struct config_texts metadata_keys;
};

struct queue_batch_config {
    uint64_t flush_timeout_ns;
    int sizer; /* enum queue_sizer as written; queue_batch_sizer knows what it means */
    uint64_t min_size;
    uint64_t max_size; /* 0: none */
    struct queue_partition_config partition;
};

struct sending_queue_config {
    uint64_t num_consumers; /* 0: one, of an exporter without such a key */
    uint64_t parallelism; /* of exporters that send a batch as several requests: so many at once */
    uint64_t queue_size;  /* in units of sizer, a total over all lanes */
    int sizer;            /* enum queue_sizer as written; sending_queue_sizer knows what it means */
    bool block_on_overflow;
    bool wait_for_result;
    const char *storage; /* id of a storage extension, "" without */
    bool has_batch;
    struct queue_batch_config batch;
};

struct retry_config {
    uint64_t initial_interval_ns;
    double randomization_factor;
    double multiplier;
    uint64_t max_interval_ns;
    uint64_t max_elapsed_time_ns; /* 0: for ever */
};

/* wal of prometheus_remote_write: a journal of the exporter's own, without a storage extension. */
struct wal_config {
    const char *directory;
    int64_t buffer_size; /* requests in memory until they are exported; below 1: the default */
    uint64_t truncate_frequency_ns;
    uint64_t lag_record_frequency_ns;
};

struct exporter_queue_config {
    bool has_queue;
    bool has_retry;
    bool has_wal;
    struct sending_queue_config queue;
    struct retry_config retry;
    struct wal_config wal;
};

/* Whether there is a queue in front of the exporter: a wal needs one, whatever is configured. */
bool exporter_queue_is_on(const struct exporter_queue_config *config);
/* Whether what the exporter takes stays in the pipeline's journal until it is exported: with a
 * storage extension or a wal. */
bool exporter_queue_is_stored(const struct exporter_queue_config *config);
/* Requests that the exporter may hold in memory at once; 0: no limit of its own. */
uint64_t exporter_queue_held_max(const struct exporter_queue_config *config);

extern const struct config_field sending_queue_fields[];
extern const struct config_field retry_fields[];
extern const struct config_field wal_fields[];

/* Rules across the fields of each section; section is a struct …_config. */
bool sending_queue_check(const void *section, struct error *error);
bool retry_check(const void *section, struct error *error);

/* Checks that metadata_keys, here and in the batch processor, has no key twice, ignoring case. */
bool metadata_keys_check(const struct config_texts *keys, struct error *error);

/* What the sizes count, with unset ones resolved: never QUEUE_SIZER_UNSET. */
enum queue_sizer sending_queue_sizer(const struct sending_queue_config *queue);
enum queue_sizer queue_batch_sizer(const struct sending_queue_config *queue);

/* The rows of retry_on_failure, for an exporter with another initial_interval. */
#define RETRY_ROWS(standard_initial_interval)                                                      \
    CONFIG_DURATION(struct retry_config, initial_interval_ns, "initial_interval",                  \
                    standard_initial_interval, 0, INT64_MAX, "Delay before the first retry."),     \
        CONFIG_DOUBLE(struct retry_config, randomization_factor, "randomization_factor", "0.5",    \
                      "Each delay is multiplied by a random number in [1 - f, 1 + f]."),           \
        CONFIG_DOUBLE(struct retry_config, multiplier, "multiplier", "1.5",                        \
                      "The delay grows by this factor with each retry."),                          \
        CONFIG_DURATION(struct retry_config, max_interval_ns, "max_interval", "30s", 0, INT64_MAX, \
                        "Upper bound of the delay."),                                              \
        CONFIG_DURATION(struct retry_config, max_elapsed_time_ns, "max_elapsed_time", "5m", 0,     \
                        INT64_MAX, "Give up after this long; 0 means never.")

/* The two rows for an exporter's option table; owner's first member is `struct
 * exporter_queue_config exporter_queue`. when: what an absent or null sending_queue means for that
 * exporter. */
#define SENDING_QUEUE_ROW(owner, when)                                                             \
    CONFIG_OPTIONAL(owner, exporter_queue.queue, struct sending_queue_config,                      \
                    exporter_queue.has_queue, when, "sending_queue", sending_queue_fields,         \
                    sending_queue_check, "Queue between the pipeline and this exporter.")
#define WAL_ROW(owner)                                                                             \
    CONFIG_OPTIONAL(owner, exporter_queue.wal, struct wal_config, exporter_queue.has_wal,          \
                    CONFIG_NULL_IS_OFF, "wal", wal_fields, NULL,                                   \
                    "Requests stay in the pipeline's journal on disk until they are exported, "    \
                    "flushed before the client gets its response.")
#define RETRY_ROW(owner) RETRY_ROW_OF(owner, retry_fields)
#define RETRY_ROW_OF(owner, table)                                                                 \
    CONFIG_OPTIONAL(owner, exporter_queue.retry, struct retry_config, exporter_queue.has_retry,    \
                    CONFIG_ON_UNLESS_UNSET, "retry_on_failure", table, retry_check,                \
                    "How failed exports are retried.")
