/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations for the daemon: pipelines of all signals with every component that touches bytes,
 * put together at random. Ports come from the environment. One thread. */
#pragma once

#include "tests/attack/tree.h"
#include "tests/support/random_otlp.h"

/* Environment variables of the configuration: ATTACK_HTTP and so on by enum endpoint, and these. */
#define SINK_VARIABLE        "ATTACK_SINK"
#define STORAGE_VARIABLE     "ATTACK_STORAGE"     /* an empty directory, or one that is missing */
#define CERTIFICATE_VARIABLE "ATTACK_CERTIFICATE" /* a file with a key and its certificate */
#define EXPLORED_VARIABLE    "ATTACK_EXPLORED"    /* an empty directory */

/* Appends the YAML of that seed. */
void setup_write(uint64_t seed, struct bytes_out *out);
