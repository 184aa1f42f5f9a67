/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of requests: percent-decoding, cleaning as Go's ServeMux does, and escaping again. Pure
 * functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/limits.h"
#include "src/slice.h"

enum { HTTP_PATH_MAX = 1024, HTTP_PATH_ESCAPED_MAX = 4096 };

/* "/v1/%74races" → "/v1/traces", terminated. False: a broken escape, a NUL, or too long. */
bool http_path_decode(struct slice path, char room[HTTP_PATH_MAX]);
/* Without empty, "." and ".." segments, with a leading slash; a trailing slash stays. */
void http_path_clean(const char *path, char room[HTTP_PATH_MAX]);
/* As it goes into Location, with its query. False: too long. */
bool http_path_escape(const char *path, struct slice query, char room[HTTP_PATH_ESCAPED_MAX]);
