/* SPDX-License-Identifier: Apache-2.0 */
/* The `healthcheck` command: asks a running daemon's health_check, so that an image without shell
 * or curl can check itself. Main thread of its own process. */
#pragma once

#include <stdbool.h>

struct error;

/* url: "http://host[:port][/path]". NULL: health_check's default, and where no such extension
 * listens, as in a configuration written for another image, the metrics that are on by default.
 * True when the answer is 200. Blocks, bounded. */
bool health_probe(const char *url, struct error *error);
