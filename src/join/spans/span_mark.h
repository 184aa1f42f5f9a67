/* SPDX-License-Identifier: Apache-2.0 */
/* What spans get that lead to a profile: the id by which it is found, and a URL. Pure functions;
 * any thread. */
#pragma once

#include <stdbool.h>

#include "src/join/index/resource_facts.h"
#include "src/join/url_template.h"

struct profile_bytes;
struct span_facts;

#define SPAN_MARK_ID_KEY  "pyroscope.profile.id"
#define SPAN_MARK_URL_KEY "pyroscope.profile.url"

struct span_mark {
    const struct url_template *url; /* without pieces: none is wanted */
    const struct resource_facts *resource;
    const struct span_facts *facts;
    struct slice own_id; /* encoded values that the span has already; no data: none */
    struct slice own_url;
};

/* Appends to out, as fields of Span, those attributes that the span does not have yet. Whether it
 * got an id. */
bool span_mark_write(const struct span_mark *mark, struct profile_bytes *out);
