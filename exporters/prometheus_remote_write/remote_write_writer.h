/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP metrics to remote write 1.0 or 2.0 (Prometheus Remote-Write specifications), by the rules of
 * the Go collector's translator 0.155 (pkg/translator/prometheusremotewrite). Pure but for memory;
 * any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus_remote_write/remote_write_labels.h"
#include "exporters/prometheus_remote_write/remote_write_series.h"
#include "src/base/slice.h"
#include "src/prometheus/prometheus_names.h"

struct budget;

struct remote_write_settings {
    struct prometheus_naming naming;
    struct remote_write_label_settings labels;
    bool has_target_info;
    bool has_metadata; /* 1.0; in 2.0 each series has some */
    bool is_v2;        /* as in the labels' settings */
};

/* Why a data point is left out. */
enum remote_write_loss {
    REMOTE_WRITE_TEMPORALITY, /* delta, or unspecified */
    REMOTE_WRITE_NAME,        /* of the metric or of a label: nothing that Prometheus could take */
    REMOTE_WRITE_LABELS,      /* too many */
    REMOTE_WRITE_SCALE,       /* of an exponential histogram: too coarse */
    REMOTE_WRITE_TYPE,        /* of the metric: unknown */
    REMOTE_WRITE_LOSSES,
};

struct remote_write_losses {
    uint64_t points[REMOTE_WRITE_LOSSES];
    uint64_t total;
    const char *reason; /* of the last one; a constant, or NULL */
    struct slice name;  /* of its metric, borrowed from the request */
};

enum remote_write_result {
    REMOTE_WRITE_TRANSLATED,
    REMOTE_WRITE_TOO_LARGE, /* more than the set's bytes_max, or too much work for it */
    REMOTE_WRITE_NO_MEMORY,
};

/* Translates an encoded ExportMetricsServiceRequest, which was checked before and outlives the
 * losses, into the set, which is empty. */
enum remote_write_result remote_write_translate(struct slice request,
                                                const struct remote_write_settings *settings,
                                                struct remote_write_set *set,
                                                struct remote_write_losses *ret_losses);
