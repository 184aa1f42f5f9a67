/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of service: other than references to components. Main thread, while the configuration is
 * loaded. */
#pragma once

#include "src/config/config_types.h"
#include "src/config/node.h"

struct loader;

/* The rows of service:, for reading, printing and the reference. */
extern const struct config_field service_keys_fields[];

/* service may be NULL: all defaults. */
void service_keys_load(struct loader *loader, const struct node_entry *service,
                       struct config_service *ret_service);
