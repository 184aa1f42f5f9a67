/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of one oauth2client extension on one lane, for all components there that use it. A
 * token is fetched when a request needs one, one fetch at a time, and requests wait for it as long
 * as their own timeout lets them. Acquired and released on the main thread while the lane does not
 * run; all else on the lane. */
#pragma once

#include <stdbool.h>

struct component;
struct credentials_request;
struct error;
struct oauth2_config;
struct oauth2_source;

/* The source of that extension on the lane of user. */
struct oauth2_source *oauth2_source_acquire(const struct oauth2_config *config,
                                            const struct component *user);
/* NULL is a no-op. */
void oauth2_source_release(struct oauth2_source *source);

/* As struct request_credentials has them. */
void oauth2_source_ask(struct oauth2_source *source, struct credentials_request *request);
void oauth2_source_forget(struct oauth2_source *source, struct credentials_request *request);
/* closed is called when no fetch is under way; a fetch for which nobody waits is aborted. */
void oauth2_source_close(struct oauth2_source *source, void (*closed)(void *arg), void *arg);
