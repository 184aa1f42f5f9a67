/* SPDX-License-Identifier: Apache-2.0 */
/* Where a Pyroscope server takes profiles, and which of them its OTLP endpoint cannot name. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>

struct profile;

#define PYROSCOPE_PUSH_PATH   "/push.v1.PusherService/Push"
#define PYROSCOPE_INGEST_PATH "/ingest"
#define PYROSCOPE_OTLP_PATH   "/v1development/profiles"

/* The OTLP endpoint names a profile after its period type; one without, or with a period of 0, it
 * refuses with "invalid metric name", and all of its request. A file of JFR is none of OTLP's. */
bool pyroscope_has_no_otlp_name(const struct profile *profile);
