/* SPDX-License-Identifier: Apache-2.0 */
/* The sending_queue and retry_on_failure sections that all exporters share: their structs, option
 * tables and rules. Every exporter's config struct begins with a struct sender_config, so that the
 * core can read it without knowing the exporter. Constants, any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

/* What queue_size and the batch sizes count. UNSET: requests in the queue, items in its batch. */
enum sender_sizer { SENDER_SIZER_UNSET, SENDER_REQUESTS, SENDER_ITEMS, SENDER_BYTES };

struct sender_partition_config {
    struct config_texts metadata_keys;
};

struct sender_batch_config {
    uint64_t flush_timeout_ns;
    int sizer; /* enum sender_sizer as written; sender_batch_sizer knows what it means */
    uint64_t min_size;
    uint64_t max_size; /* 0: none */
    struct sender_partition_config partition;
};

struct sender_queue_config {
    uint64_t num_consumers;
    uint64_t queue_size; /* in units of sizer, a total over all lanes */
    int sizer;           /* enum sender_sizer as written; sender_queue_sizer knows what it means */
    bool block_on_overflow;
    bool wait_for_result;
    const char *storage; /* id of a storage extension, "" without */
    bool has_batch;
    struct sender_batch_config batch;
};

struct sender_retry_config {
    uint64_t initial_interval_ns;
    double randomization_factor;
    double multiplier;
    uint64_t max_interval_ns;
    uint64_t max_elapsed_time_ns; /* 0: for ever */
};

struct sender_config {
    bool has_queue;
    bool has_retry;
    struct sender_queue_config queue;
    struct sender_retry_config retry;
};

extern const struct config_field sender_queue_fields[];
extern const struct config_field sender_retry_fields[];

/* Rules across the fields of each section; section is a struct sender_…_config. */
bool sender_queue_check(const void *section, struct error *error);
bool sender_retry_check(const void *section, struct error *error);

/* Checks that metadata_keys, here and in the batch processor, has no key twice, ignoring case. */
bool sender_metadata_keys_check(const struct config_texts *keys, struct error *error);

/* What the sizes count, with unset ones resolved: never SENDER_SIZER_UNSET. */
enum sender_sizer sender_queue_sizer(const struct sender_queue_config *queue);
enum sender_sizer sender_batch_sizer(const struct sender_queue_config *queue);

/* The two rows for an exporter's option table; owner's first member is `struct sender_config
 * sender`. when: what an absent or null sending_queue means for that exporter. */
#define SENDER_QUEUE_ROW(owner, when)                                                              \
    CONFIG_OPTIONAL(owner, sender.queue, struct sender_queue_config, sender.has_queue, when,       \
                    "sending_queue", sender_queue_fields, sender_queue_check,                      \
                    "Queue between the pipeline and this exporter.")
#define SENDER_RETRY_ROW(owner)                                                                    \
    CONFIG_OPTIONAL(owner, sender.retry, struct sender_retry_config, sender.has_retry,             \
                    CONFIG_ON_UNLESS_UNSET, "retry_on_failure", sender_retry_fields,               \
                    sender_retry_check, "How failed attempts are repeated.")
