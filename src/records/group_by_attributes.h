/* SPDX-License-Identifier: Apache-2.0 */
/* Moves attributes of records up to their resources, and puts records of equal resources, scopes
 * and metrics together, as the Go collector's groupbyattrs does. Records that do not change are
 * shared with the request. One per thread. */
#pragma once

#include "src/base/content_table.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/nested_output.h"
#include "src/records/identity.h"
#include "src/records/record_edit.h"

struct group_figures {
    uint64_t grouped; /* records that had one of the attributes */
    uint64_t not_grouped;
    uint64_t groups; /* resources */
};

/* Whose fields each new node copies. */
enum group_head { GROUP_SCOPE, GROUP_METRIC, GROUP_DATA, GROUP_HEADS };

struct attribute_grouper {
    const struct slice *keys; /* borrowed; different, not empty */
    size_t keys_count;
    struct budget *budget;
    struct attribute_list resource; /* the resource at hand */
    struct attribute_list list;     /* the record at hand */
    struct identity identity;       /* contents that the table finds */
    struct content_table table;
    struct scratch places; /* uint32_t by content: its node */
    struct scratch nodes;  /* struct group_node */
    size_t nodes_count;
    struct scratch leaves; /* struct group_leaf */
    size_t leaves_count;
    struct scratch values; /* uint32_t by key: the resource's own value, then the record's */
    struct scratch heads[GROUP_HEADS]; /* of those at hand that lie in pieces in the request */
    struct nested_output output;       /* heads of nodes, changed records */
    struct group_figures figures;      /* of the last request */
};

void attribute_grouper_init(struct attribute_grouper *grouper, const struct slice *keys,
                            size_t keys_count, struct budget *budget);
void attribute_grouper_fini(struct attribute_grouper *grouper);
/* As record_edit_run. */
struct batch *attribute_grouper_run(struct attribute_grouper *grouper, struct record_edit *edit,
                                    struct batch *batch);
