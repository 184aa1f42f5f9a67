/* SPDX-License-Identifier: Apache-2.0 */
/* The journals of a service: one for each pipeline with an exporter that has
 * sending_queue::storage or a wal, or that has one behind a connector, for all its lanes. They lie
 * in the directory of the file_storage extension that the first such exporter names, or of its wal,
 * each in a directory named like the pipeline. Main thread, but for the figures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/config/config_types.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/component.h"

struct error;
struct service;

/* Opens them, gives them to the pipelines of all lanes and starts them. While no lane runs, before
 * receivers start. */
bool journals_start(struct service *service, struct error *error);
/* Nothing comes back from the disk any more: before pipelines drain. */
void journals_pause(struct service *service);
/* After the exporters have stopped; is_forced: requests may still be on their way. */
void journals_stop(struct service *service, bool is_forced);
void journals_destroy(struct service *service);

/* The queue of an exporter with storage, in units of a sizer. Any thread that reads figures. */
struct journals_queue {
    double size;     /* what the exporter has not finished, in memory or not */
    double capacity; /* and what the disk has room for, at the average size so far: an estimate */
};
/* False: the exporter has no journal. */
bool journals_queue(const struct service *service, const struct component *exporter,
                    enum queue_sizer sizer, struct journals_queue *ret_queue);
