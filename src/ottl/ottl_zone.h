/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: UTC, fixed offsets, and those of the machine's database (RFC 8536, tzdata). A zone is
 * the number in struct ottl_value. Zones of the database are read when a configuration names them
 * and stay until the process ends; looking up is safe on any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;

enum { OTTL_ZONE_UTC = 0 };

/* When the configuration is read: the zone of that name. UTC and the empty name are UTC. */
bool ottl_zone_load(struct slice name, uint16_t *ret, struct error *error);
/* The machine's: TZ, or /etc/localtime; UTC if neither can be read. The same rule as Go's. */
uint16_t ottl_zone_local(void);
/* One that has been loaded. False: there is none of that name. Any thread. */
bool ottl_zone_find(struct slice name, uint16_t *ret);
/* A fixed offset east of UTC, of less than 25 hours; its seconds are not kept. */
uint16_t ottl_zone_fixed(int64_t offset_s);

struct ottl_zone_time {
    int32_t offset_s; /* east of UTC */
    const char *name; /* "CEST"; "" for fixed offsets */
};
/* What holds in the zone at that moment, in seconds since 1970. */
struct ottl_zone_time ottl_zone_at(uint16_t zone, int64_t unix_s);
/* The offset that the name has in the zone, preferably at that local time. False: none. */
bool ottl_zone_named(uint16_t zone, struct slice name, int64_t local_s, int32_t *ret_offset_s);
