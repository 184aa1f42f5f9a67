/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line's locations and settings to one tree without references. Main thread. */
#pragma once

struct config_request;
struct loader;
struct node;

/* NULL when there is no tree at all: something could not be read, or it is empty; reported. */
struct node *resolve_request(struct loader *loader, const struct config_request *request);
