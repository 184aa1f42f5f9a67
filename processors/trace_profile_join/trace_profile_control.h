/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the rules of keep at run time, by HTTP: GET /keep shows them, POST /keep sets others,
 * DELETE /keep goes back to the configured ones. One per trace_profile_join, on lane 0. */
#pragma once

#include <stdbool.h>

#include "processors/trace_profile_join/trace_profile_join_config.h"
#include "src/join/keep_rules.h"

struct component;
struct error;
struct trace_profile_control;

/* Rules of the section: where strangers may connect, a token is needed. */
bool trace_profile_control_check(const struct join_control_config *config, struct error *error);
/* Listens, on the owner's lane, which is the first. NULL: the endpoint cannot be had. */
struct trace_profile_control *trace_profile_control_start(const struct component *owner,
                                                          const struct join_control_config *config,
                                                          struct keep_switch *keep,
                                                          struct error *error);
/* Ends it, then calls done(arg) once, from a later turn of the loop. */
void trace_profile_control_stop(struct trace_profile_control *control, void (*done)(void *arg),
                                void *arg);
/* It has stopped. NULL is tolerated. */
void trace_profile_control_destroy(struct trace_profile_control *control);
