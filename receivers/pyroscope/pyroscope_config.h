/* SPDX-License-Identifier: Apache-2.0 */
/* The pyroscope receiver's settings, as its option table fills them. Constant once loaded; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/listen/server_config.h"
#include "src/profiles/pyroscope/upload_check.h"

struct error;

struct pyroscope_receiver_config {
    struct http_server_config server;
    struct upload_limits limits;
};

extern const struct config_field pyroscope_receiver_fields[];
bool pyroscope_receiver_config_check(const void *section, struct error *error);
uint64_t pyroscope_receiver_bytes_max(const struct pyroscope_receiver_config *config);
