/* SPDX-License-Identifier: Apache-2.0 */
/* URLs with places for what is known of a span or a profile. Read once, constant then; any thread.
 */
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

/* A URL that would be longer is left out; pieces of a template. */
enum { URL_BYTES_MAX = 2048, URL_PIECES_MAX = 64 };

/* A text, or a value when it has none. */
struct url_piece {
    struct slice text;
    enum url_value value;
};

struct url_template {
    struct url_piece pieces[URL_PIECES_MAX];
    size_t count;    /* 0: there is no template */
    unsigned values; /* that it has a place for, bit by bit */
};

struct url_values {
    struct slice texts[URL_VALUES];
};

/* allowed: bit by bit. The text is borrowed; "{{" and "}}" stand for braces. False: error says
 * where it is wrong; a template has a begin such as https:// and no blanks. */
bool url_template_read(const char *text, unsigned allowed, struct url_template *ret_template,
                       struct error *error);
static inline bool url_template_has(const struct url_template *template, enum url_value value)
{
    return (template->values >> value & 1) != 0;
}
/* The URL in room, its values percent-encoded (RFC 3986 §2.1); no data: a value that it has a place
 * for is missing, or it is too long. */
struct slice url_template_write(const struct url_template *template,
                                const struct url_values *values, uint8_t room[URL_BYTES_MAX]);

enum { URL_MS_BYTES = 24 };
/* A time as such a value, in room. */
struct slice url_ms(uint64_t time_ns, char room[URL_MS_BYTES]);
