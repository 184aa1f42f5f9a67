/* SPDX-License-Identifier: Apache-2.0 */
/* URLs with places for values of a span or a profile. Constant once read; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct error;

enum url_value {
    URL_SERVICE_NAME,
    URL_SERVICE_NAMESPACE,
    URL_TRACE_ID,
    URL_SPAN_ID,
    URL_FROM_MS, /* since 1970, as Grafana has it */
    URL_UNTIL_MS,
    URL_PROFILE_TYPE,
    URL_VALUES,
};

/* Longer URLs are not written. */
enum { URL_BYTES_MAX = 2048, URL_PIECES_MAX = 64 };

/* A literal, or a value if text has no data. */
struct url_piece {
    struct slice text;
    enum url_value value;
};

struct url_template {
    struct url_piece pieces[URL_PIECES_MAX];
    size_t count; /* 0: there is no template */
};

struct url_values {
    struct slice texts[URL_VALUES];
};

/* Reads a template; "{{" and "}}" stand for braces; an empty string is no template. Borrows text.
 * allowed: a bit for each value that it may use. False: error says where it is wrong. */
bool url_template_read(const char *text, unsigned allowed, struct url_template *ret_template,
                       struct error *error);
/* The URL in room, its values percent-encoded (RFC 3986 §2.1). No data: a value that it has a place
 * for is missing, or it is too long. */
struct slice url_template_write(const struct url_template *template,
                                const struct url_values *values, uint8_t room[URL_BYTES_MAX]);

enum { URL_MS_BYTES = 24 };
/* A time as URL_FROM_MS or URL_UNTIL_MS, in room. */
struct slice url_ms(uint64_t time_ns, char room[URL_MS_BYTES]);
