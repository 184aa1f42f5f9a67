/* SPDX-License-Identifier: Apache-2.0 */
/* Log records that each have a Resource and a scope of their own, so that editing one's Resource
 * leaves the others' alone; and the way back, to one message for equal ones (contrib 0.155,
 * internal/pdatautil, FlattenLogs and GroupByResourceLogs). One owner, one thread at a time. */
#pragma once

#include "src/base/content_table.h"
#include "src/base/scratch.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/records/identity.h"

struct batch;
struct budget;

struct log_flattening {
    struct budget *budget;
    struct identity identity; /* contents that the table finds */
    struct content_table contents;
    struct attribute_list attributes;
    struct scratch places; /* uint32_t by content: its group */
    struct scratch groups; /* struct log_group; the first one stands for the request */
    uint32_t groups_count;
    struct scratch leaves; /* struct log_leaf */
    uint32_t leaves_count;
};

enum log_flattening_verdict {
    LOGS_DONE,
    LOGS_NO_ROOM,   /* the budget has none now */
    LOGS_NEVER_FIT, /* it takes more than the whole budget, or than LOG_FLATTENED_GROWTH_MAX */
};

void log_flattening_init(struct log_flattening *flattening, struct budget *budget);
void log_flattening_fini(struct log_flattening *flattening);
/* Both of logs; *ret_batch is a new reference when they are done. Bytes of records and Resources
 * are shared. Resources and scopes without records are gone. */
enum log_flattening_verdict log_flattening_split(struct log_flattening *flattening,
                                                 struct batch *batch, struct batch **ret_batch);
/* Resources are equal when their attributes are, scopes when name, version, schema URL and
 * attributes are; what they have beside is that of the first one. The order is that of the first of
 * each. */
enum log_flattening_verdict log_flattening_join(struct log_flattening *flattening,
                                                struct batch *batch, struct batch **ret_batch);
