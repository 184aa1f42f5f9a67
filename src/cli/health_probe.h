/* SPDX-License-Identifier: Apache-2.0 */
/* The `healthcheck` command: queries a running daemon's health_check, so that an image without
 * shell or curl can check itself. Main thread of its own process. */
#pragma once

#include <stdbool.h>

struct error;

/* url: "http://host[:port][/path]". NULL: health_check's default; if nothing listens there, as in a
 * configuration written for another image, the metrics that are on by default. True: the response
 * is 200. Blocks, with a time limit. */
bool health_probe(const char *url, struct error *error);
