/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the rules of keep at run time, by HTTP: GET /keep shows them, POST /keep sets others,
 * DELETE /keep restores the configured ones. One per trace_profile_join, on lane 0. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/join/keep_rules.h"

struct component;
struct error;
struct trace_profile_control;

struct join_control_config {
    const char *endpoint; /* "": no control */
    const char *token;    /* "": none */
};

extern const struct config_field trace_profile_control_fields[];

/* Rules of the section: where other hosts may connect, a token is required. */
bool trace_profile_control_check(const struct join_control_config *config, struct error *error);
/* Listens, on the owner's lane, which is the first. NULL: the endpoint cannot be bound. */
struct trace_profile_control *trace_profile_control_start(const struct component *owner,
                                                          const struct join_control_config *config,
                                                          struct keep_switch *keep,
                                                          struct error *error);
/* Stops, then calls done(arg) once, from a later turn of the loop. */
void trace_profile_control_stop(struct trace_profile_control *control, void (*done)(void *arg),
                                void *arg);
/* After it has stopped. NULL is a no-op. */
void trace_profile_control_destroy(struct trace_profile_control *control);
