/* SPDX-License-Identifier: Apache-2.0 */
/* Request paths: percent-decoding, cleaning like Go's ServeMux, and escaping. Pure functions, any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/limits.h"
#include "src/base/slice.h"

enum { HTTP_PATH_MAX = 1024, HTTP_PATH_ESCAPED_MAX = 4096 };

/* "a%20b%2Fc" → "a b/c", zero-terminated. False: a broken escape, a NUL, or too long. */
bool http_percent_decode(struct slice text, char room[HTTP_PATH_MAX]);
/* The same for a path, "/v1/%74races" → "/v1/traces", where an escaped slash is part of its segment
 * (RFC 3986 §2.2) and stays "%2F". */
bool http_path_decode(struct slice path, char room[HTTP_PATH_MAX]);
/* Removes empty, "." and ".." segments, and adds a leading slash; a trailing slash stays. As in Go,
 * "%2e" is not ".": the path is not decoded first. */
void http_path_clean(const char *path, char room[HTTP_PATH_MAX]);
/* The escaped path and its query, for Location. False: too long. */
bool http_path_escape(const char *path, struct slice query, char room[HTTP_PATH_ESCAPED_MAX]);
