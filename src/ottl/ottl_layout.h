/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text in the formats of Time and FormatTime: directives of strptime as contrib's
 * timeutils takes them (%Y-%m-%dT%H:%M:%S.%L%z). They stand for parts of Go's layouts, and other
 * text of a format that looks like such a part (Jan, PM …) is one, too. A layout is constant; any
 * thread. */
#pragma once

#include "src/ottl/ottl_value.h"

struct error;
struct ottl_layout;

/* NULL: the format is not valid. */
struct ottl_layout *ottl_layout_create(struct slice format, bool is_for_parsing,
                                       struct error *error);
void ottl_layout_destroy(struct ottl_layout *layout); /* NULL is a no-op */
/* What holds for text that does not say it. */
struct ottl_layout_defaults {
    uint16_t zone;
    uint16_t local_zone; /* the machine's, whose year it is */
    int64_t now_s;
};

/* A time without a year is the last one that is not more than a week ahead. NULL, or what is wrong.
 */
const char *ottl_layout_parse(const struct ottl_layout *layout, struct slice text,
                              const struct ottl_layout_defaults *defaults, struct ottl_value *ret);
/* Whether it reads names of zones: those that Go may find are to be loaded. */
bool ottl_layout_has_zone_name(const struct ottl_layout *layout);
/* Bytes that ottl_layout_format may write. */
size_t ottl_layout_size_max(const struct ottl_layout *layout);
size_t ottl_layout_format(const struct ottl_layout *layout, const struct ottl_value *time,
                          char *room);
