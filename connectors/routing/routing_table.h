/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the connector routing (contrib, connector/routingconnector), read and checked: which
 * items go to which pipelines. Made when the configuration is read, then constant; a plan is used
 * by one lane only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/signal_kind.h"
#include "src/config/field.h"
#include "src/ottl/ottl_plan.h"

struct client_info;
struct error;

/* An entry of table:. */
struct routing_entry {
    const char *context;   /* "": by the paths */
    const char *condition; /* "": statement is given */
    const char *statement;
    const char *action; /* "", "move" or "copy" */
    struct config_texts pipelines;
};

struct routing_config {
    const char *error_mode; /* "": the default */
    struct config_texts default_pipelines;
    struct config_sections table; /* struct routing_entry */
};

extern const struct config_field routing_fields[];

/* request["key"] == "value": holds for a request that has the key, with any such value. */
struct request_condition {
    struct slice key;
    struct slice value;
    bool is_equal;
};

/* What an entry decides by: one of the two, or nothing. */
struct route {
    struct ottl_plan *plan; /* one context, one condition or statement, finished */
    const char *text;       /* the statement with its contexts spelled out; in the plan's arena */
    struct request_condition request;
    bool is_of_request;
    bool is_never; /* the signal has no such context: nothing matches */
    bool is_copy;
};

/* Rules that do not depend on the signal; a slot of the factory. */
bool routing_check(const void *section, struct error *error);
/* The entry at an index, for one signal. The error has the place below table. */
bool route_init(struct route *route, const struct routing_config *config, size_t index,
                enum signal_kind signal, enum ottl_error_mode mode, struct error *error);
void route_fini(struct route *route);
/* Whether two routes decide alike, so that the second one is never reached (Go ignores it). */
bool routes_are_equal(const struct route *left, const struct route *right);
bool request_condition_holds(const struct request_condition *condition,
                             const struct client_info *client);
