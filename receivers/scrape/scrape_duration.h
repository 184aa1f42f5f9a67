/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as Prometheus writes them (prometheus/common, model.ParseDuration): "1d12h", "500ms",
 * "0". Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: it is none. */
bool scrape_duration_parse(const char *text, uint64_t *ret_ns);
enum { SCRAPE_DURATION_BYTES_MAX = 64 };
void scrape_duration_print(uint64_t duration_ns, char text[SCRAPE_DURATION_BYTES_MAX]);
