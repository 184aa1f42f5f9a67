/* SPDX-License-Identifier: Apache-2.0 */
/* Edits the Resource of every Resource… message of a batch. Everything else, unknown fields
 * included, stays as it is. One editor per lane. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"

struct attribute_actions;
struct batch;
struct budget;
struct lane;

/* What every Resource gets, with the rules of the Go collector's resource detection. */
struct resource_merge {
    const struct attribute *attributes; /* keys and values */
    size_t count;
    bool overrides;          /* what the Resource has of the same keys */
    struct slice schema_url; /* of messages that have none; may be empty */
};

struct resource_editor {
    const struct attribute_actions *actions; /* borrowed; NULL: none */
    const struct resource_merge *merge;      /* the same; done after the actions */
    struct budget *budget;
    struct attribute_list list; /* of the current Resource */
    uint64_t missed_bytes;      /* that the last refused edit needed */
    const struct lane *lane;    /* set by the owner: it gives up once this has been held for
                                   LANE_EDIT_NS. NULL: it may take long */
    bool is_long;               /* it has given up */
};

void resource_editor_init(struct resource_editor *editor, const struct attribute_actions *actions,
                          const struct resource_merge *merge, struct budget *budget);
void resource_editor_fini(struct resource_editor *editor);
/* Returns a new reference: to the batch itself when nothing changes, else to an edited copy that
 * shares unchanged bytes. NULL: the budget has no room for the edit, or it takes long; nothing has
 * changed. */
struct batch *resource_edit(struct resource_editor *editor, struct batch *batch);
/* True when the refused edit takes more than the whole budget. */
bool resource_edit_never_fits(const struct resource_editor *editor);
