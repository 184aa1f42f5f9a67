/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute actions on chosen spans, log records and data points, as the attributes processor of
 * the Go collector applies them. Only attributes that change are rewritten. One editor per
 * thread. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"
#include "src/records/record_edit.h"

struct attribute_actions;
struct record_matcher;

struct attribute_editor {
    const struct attribute_actions *actions; /* borrowed */
    const struct record_matcher *include;    /* the same; NULL: all */
    const struct record_matcher *exclude;    /* the same; NULL: none */
    struct attribute_list list;              /* of the record at hand */
    bool takes_resource;                     /* the resource and the scope at hand */
    bool takes_scope;
    bool excludes_resource;
    bool excludes_scope;
};

void attribute_editor_init(struct attribute_editor *editor, const struct attribute_actions *actions,
                           const struct record_matcher *include,
                           const struct record_matcher *exclude, struct budget *budget);
void attribute_editor_fini(struct attribute_editor *editor);
/* As record_edit_run. */
struct batch *attribute_editor_run(struct attribute_editor *editor, struct record_edit *edit,
                                   struct batch *batch);
