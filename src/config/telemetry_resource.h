/* SPDX-License-Identifier: Apache-2.0 */
/* service::telemetry::resource: who the daemon says it is. Main thread, while the configuration is
 * loaded. */
#pragma once

#include "src/config/decode.h"

struct config_service;

/* site is that of service::telemetry; resource may be NULL. */
void telemetry_resource_resolve(const struct site *site, const struct node *resource,
                                struct config_service *service);
