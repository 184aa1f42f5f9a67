/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction of resources, scopes, spans with their events, data points and log records with their
 * bodies, as the Go collector's redaction does it. One per thread. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"
#include "src/records/record_edit.h"

struct redaction_rules;

/* Names of what was changed, of one message. */
struct redacted_names {
    uint64_t total;
    uint64_t more; /* that are too many for names */
    size_t count;  /* in names; without them only total counts */
    size_t capacity;
    struct slice *names;
};

/* What was removed, masked, allowed or ignored; the last has no names. */
enum { REDACTED_REMOVED, REDACTED_MASKED, REDACTED_ALLOWED, REDACTED_IGNORED, REDACTED_KINDS };

struct redaction {
    const struct redaction_rules *rules; /* borrowed */
    struct attribute_list list;          /* of the message at hand */
    struct attribute_list inner;         /* of the event at hand */
    struct redacted_names names[REDACTED_KINDS];
    size_t paths_left; /* bytes that names of the body at hand may still take */
    struct budget *budget;
};

void redaction_init(struct redaction *redaction, const struct redaction_rules *rules,
                    struct budget *budget);
void redaction_fini(struct redaction *redaction);
/* As record_edit_run. */
struct batch *redaction_run(struct redaction *redaction, struct record_edit *edit,
                            struct batch *batch);
