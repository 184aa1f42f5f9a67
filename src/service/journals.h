/* SPDX-License-Identifier: Apache-2.0 */
/* The journals of a service: one for each pipeline with an exporter that has
 * sending_queue::storage, or that has one behind a connector, for all its lanes. They lie in the
 * directory of the file_storage extension that the first such exporter names, each in a directory
 * named like the pipeline. Main thread, but for the figures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;
struct journals;
struct service;

/* Opens them, gives them to the pipelines of all lanes and starts them. While no lane runs, before
 * receivers start. */
bool journals_start(struct service *service, struct error *error);
/* Nothing comes back from the disk any more: before pipelines drain. */
void journals_pause(struct service *service);
/* After the exporters have stopped; is_forced: requests may still be on their way. */
void journals_stop(struct service *service, bool is_forced);
void journals_destroy(struct service *service);
