/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are appended to a list under a lock and never change. Any thread. */
#include "src/ottl/ottl_zone.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/ottl/ottl_calendar.h"

#define DATABASE  "/usr/share/zoneinfo/"
#define S_PER_ERA ((int64_t)146097 * 86400) /* 400 years */

enum {
    ZONES_MAX = 1024,
    FILE_BYTES_MAX = 256 * 1024,
    NAME_BYTES_MAX = 64,
    FIXED = 0x8000, /* and minutes from FIXED_FIRST */
    FIXED_FIRST = -1600,
    S_PER_MINUTE = 60,
    S_PER_HOUR = 3600,
    S_PER_DAY = 86400,
    ABBREVIATION_BYTES = 16,
};

struct zone_type {
    int32_t offset_s;
    bool is_summer;
    char name[ABBREVIATION_BYTES];
};

/* When a half of the year begins (POSIX, TZ): Mm.w.d, Jn or n, and the second of that day. */
struct zone_date {
    char form; /* 'M', 'J', or 0 */
    int month, week, day;
    int32_t second;
};

struct zone {
    char name[NAME_BYTES_MAX];
    struct zone_type *types;
    uint32_t types_count;
    int64_t *moments; /* of transitions */
    uint8_t *moment_types;
    uint32_t moments_count;
    /* Behind the last transition. */
    bool has_rule;
    bool has_summer;
    struct zone_type standard, summer;
    struct zone_date summer_begin, summer_end;
};

static _Atomic(struct zone *) zones[ZONES_MAX]; /* from 1 */
static atomic_uint zones_count = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t read_number(const uint8_t *bytes, size_t size)
{
    uint64_t value = bytes[0] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

/* The footer of a file: "CET-1CEST,M3.5.0,M10.5.0/3". */

static bool read_abbreviation(const char **at, char name[ABBREVIATION_BYTES])
{
    bool is_quoted = **at == '<';
    size_t size = 0;
    *at += is_quoted;
    while (is_quoted ? **at != '>' && **at != '\0' : isalpha((unsigned char)**at)) {
        if (size + 1 == ABBREVIATION_BYTES)
            return false;
        name[size++] = *(*at)++;
    }
    name[size] = '\0';
    if (is_quoted && *(*at)++ != '>')
        return false;
    return size > 0;
}

/* [+-]hh[:mm[:ss]] */
static bool read_offset(const char **at, int32_t *ret_s)
{
    int32_t unit = S_PER_HOUR;
    int32_t sign = **at == '-' ? -1 : 1;
    *ret_s = 0;
    if (**at == '-' || **at == '+')
        ++*at;
    for (; unit > 0; unit /= 60) {
        char *end;
        if (!isdigit((unsigned char)**at))
            return false;
        long part = strtol(*at, &end, 10);
        if (part > 200)
            return false;
        *ret_s += sign * unit * (int32_t)part;
        *at = end;
        if (**at != ':')
            return true;
        ++*at;
    }
    return false;
}

static bool read_int(const char **at, int *ret)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    long number = strtol(*at, &end, 10);
    *at = end;
    *ret = number < 1000 ? (int)number : 1000;
    return true;
}

static bool read_date(const char **at, struct zone_date *ret)
{
    *ret = (struct zone_date){.second = 2 * S_PER_HOUR};
    if (*(*at)++ != ',')
        return false;
    if (**at == 'M' || **at == 'J')
        ret->form = *(*at)++;
    if (ret->form == 'M') {
        if (!read_int(at, &ret->month) || *(*at)++ != '.' || !read_int(at, &ret->week) ||
            *(*at)++ != '.' || !read_int(at, &ret->day) || ret->month < 1 || ret->month > 12 ||
            ret->week < 1 || ret->week > 5 || ret->day > 6)
            return false;
    } else if (!read_int(at, &ret->day)) {
        return false;
    }
    if (**at != '/')
        return true;
    ++*at;
    return read_offset(at, &ret->second);
}

static bool read_rule(struct zone *zone, const char *at)
{
    int32_t west;
    if (!read_abbreviation(&at, zone->standard.name) || !read_offset(&at, &west))
        return false;
    zone->standard.offset_s = -west;
    if (*at == '\0')
        return true;
    zone->has_summer = true;
    zone->summer.is_summer = true;
    if (!read_abbreviation(&at, zone->summer.name))
        return false;
    west -= S_PER_HOUR;
    if (*at != ',' && !read_offset(&at, &west))
        return false;
    zone->summer.offset_s = -west;
    return read_date(&at, &zone->summer_begin) && read_date(&at, &zone->summer_end) && *at == '\0';
}

/* The start of that day of the year, in days since 1970. */
static int64_t day_of(const struct zone_date *date, int64_t year)
{
    int64_t first = ottl_days_of(year, 1, 1);
    bool is_leap = ottl_days_of(year + 1, 1, 1) - first == 366;
    if (date->form == 'J') /* 1 to 365, without 29 February */
        return first + date->day - 1 + (is_leap && date->day >= 60);
    if (date->form == 0)
        return first + date->day;
    int64_t begin = ottl_days_of(year, (unsigned)date->month, 1);
    int64_t end = date->month == 12 ? ottl_days_of(year + 1, 1, 1)
                                    : ottl_days_of(year, (unsigned)date->month + 1, 1);
    int64_t weekday = ((begin + 4) % 7 + 7) % 7;
    int64_t day = begin + (date->day - weekday + 7) % 7 + 7 * (date->week - 1);
    while (day >= end)
        day -= 7;
    return day;
}

static const struct zone_type *type_by_rule(const struct zone *zone, int64_t unix_s)
{
    if (!zone->has_summer)
        return &zone->standard;
    unix_s %= S_PER_ERA; /* after 400 years days of the week and leap years are the same */
    int64_t local = unix_s + zone->standard.offset_s;
    int64_t year = ottl_day_of(local / S_PER_DAY - (local % S_PER_DAY < 0)).year;
    int64_t begin = day_of(&zone->summer_begin, year) * S_PER_DAY + zone->summer_begin.second -
                    zone->standard.offset_s;
    int64_t end = day_of(&zone->summer_end, year) * S_PER_DAY + zone->summer_end.second -
                  zone->summer.offset_s;
    bool is_summer =
        begin < end ? unix_s >= begin && unix_s < end : unix_s < end || unix_s >= begin;
    return is_summer ? &zone->summer : &zone->standard;
}

/* A file of the database: its part of 64 bits and the footer. */
static bool parse(struct zone *zone, const uint8_t *data, size_t size)
{
    enum { HEADER = 44, COUNTS_AT = 20, MAGIC = 4, TYPE_BYTES = 6, MOMENT_BYTES = 8 };
    uint32_t counts[6]; /* isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt */
    for (int part = 0; part < 2; part++) {
        const size_t moment_bytes = part == 0 ? MOMENT_BYTES / 2 : MOMENT_BYTES;
        if (size < HEADER || memcmp(data, "TZif", MAGIC) != 0 || data[MAGIC] < '2')
            return false;
        for (size_t i = 0; i < 6; i++) {
            counts[i] = (uint32_t)read_number(data + COUNTS_AT + 4 * i, 4);
            if (counts[i] > FILE_BYTES_MAX)
                return false;
        }
        size_t body = counts[3] * moment_bytes + counts[3] + counts[4] * TYPE_BYTES + counts[5] +
                      counts[2] * (moment_bytes + 4) + counts[1] + counts[0];
        data += HEADER;
        size -= HEADER;
        if (body > size)
            return false;
        if (part == 0) {
            data += body;
            size -= body;
        }
    }
    const uint32_t times = counts[3];
    const uint32_t types = counts[4];
    const uint32_t characters = counts[5];
    const uint8_t *names = data + (size_t)times * (MOMENT_BYTES + 1) + (size_t)types * TYPE_BYTES;
    if (types == 0)
        return false;
    zone->types = mem_zalloc(types * sizeof(*zone->types));
    zone->types_count = types;
    zone->moments = mem_zalloc((times + 1) * sizeof(*zone->moments));
    zone->moment_types = mem_zalloc(times + 1);
    zone->moments_count = times;
    for (uint32_t i = 0; i < times; i++) {
        zone->moments[i] = read_number(data + (size_t)i * MOMENT_BYTES, MOMENT_BYTES);
        zone->moment_types[i] = data[(size_t)times * MOMENT_BYTES + i];
        if (zone->moment_types[i] >= types || (i > 0 && zone->moments[i] <= zone->moments[i - 1]))
            return false;
    }
    for (uint32_t i = 0; i < types; i++) {
        const uint8_t *type = data + (size_t)times * (MOMENT_BYTES + 1) + (size_t)i * TYPE_BYTES;
        zone->types[i].offset_s = (int32_t)read_number(type, 4);
        zone->types[i].is_summer = type[4] != 0;
        for (size_t k = 0;
             k + 1 < ABBREVIATION_BYTES && type[5] + k < characters && names[type[5] + k] != '\0';
             k++)
            zone->types[i].name[k] = (char)names[type[5] + k];
    }
    const uint8_t *footer =
        names + characters + counts[2] * (MOMENT_BYTES + 4) + counts[1] + counts[0];
    size -= (size_t)(footer - data);
    if (size < 2 || footer[0] != '\n')
        return true;
    const uint8_t *end = memchr(footer + 1, '\n', size - 1);
    if (end == NULL || end == footer + 1)
        return true;
    char rule[256];
    size_t rule_size = (size_t)(end - footer - 1);
    if (rule_size >= sizeof(rule))
        return false;
    memcpy(rule, footer + 1, rule_size);
    rule[rule_size] = '\0';
    zone->has_rule = read_rule(zone, rule);
    return zone->has_rule;
}

static void free_zone(struct zone *zone)
{
    mem_free(zone->types);
    mem_free(zone->moments);
    mem_free(zone->moment_types);
    mem_free(zone);
}

/* NULL: no such file, or not one of the database. */
static struct zone *read_zone(const char *name, const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return NULL;
    uint8_t *data = mem_alloc(FILE_BYTES_MAX);
    size_t size = fread(data, 1, FILE_BYTES_MAX, file);
    fclose(file);
    struct zone *zone = mem_zalloc(sizeof(*zone));
    snprintf(zone->name, sizeof(zone->name), "%s", name);
    bool is_valid = size < FILE_BYTES_MAX && parse(zone, data, size);
    mem_free(data);
    if (is_valid)
        return zone;
    free_zone(zone);
    return NULL;
}

static bool find(const char *name, uint16_t *ret)
{
    unsigned count = atomic_load(&zones_count);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(atomic_load(&zones[i])->name, name) == 0) {
            *ret = (uint16_t)i;
            return true;
        }
    return false;
}

static bool load(const char *name, const char *path, uint16_t *ret)
{
    pthread_mutex_lock(&lock);
    bool is_there = find(name, ret);
    unsigned count = atomic_load(&zones_count);
    struct zone *zone = is_there || count == ZONES_MAX ? NULL : read_zone(name, path);
    if (zone != NULL) {
        atomic_store(&zones[count], zone);
        atomic_store(&zones_count, count + 1);
        *ret = (uint16_t)count;
    }
    pthread_mutex_unlock(&lock);
    return is_there || zone != NULL;
}

bool ottl_zone_load(struct slice name, uint16_t *ret, struct error *error)
{
    char text[NAME_BYTES_MAX];
    char path[sizeof(DATABASE) + NAME_BYTES_MAX];
    *ret = OTTL_ZONE_UTC;
    if (name.size == 0 || slice_equal_text(name, "UTC"))
        return true;
    if (slice_equal_text(name, "Local")) {
        *ret = ottl_zone_local();
        return true;
    }
    bool is_fine = name.size < sizeof(text) && name.data[0] != '/' && name.data[0] != '\\';
    if (is_fine) {
        memcpy(text, name.data, name.size);
        text[name.size] = '\0';
        is_fine = strlen(text) == name.size && strstr(text, "..") == NULL;
    }
    if (is_fine) {
        snprintf(path, sizeof(path), DATABASE "%s", text);
        is_fine = load(text, path, ret);
    }
    return is_fine || error_set(error,
                                "failed to load location %.*s: it is not in " DATABASE
                                "; expected a name such as Europe/Paris",
                                (int)name.size, (const char *)name.data);
}

uint16_t ottl_zone_local(void)
{
    const char *name = getenv("TZ");
    uint16_t zone = OTTL_ZONE_UTC;
    struct error error;
    if (name == NULL)
        return load("Local", "/etc/localtime", &zone) ? zone : OTTL_ZONE_UTC;
    if (name[0] == ':')
        name++;
    if (name[0] == '/')
        return load(name, name, &zone) ? zone : OTTL_ZONE_UTC;
    return strcmp(name, "Local") != 0 && ottl_zone_load(slice_of_text(name), &zone, &error)
               ? zone
               : OTTL_ZONE_UTC;
}

bool ottl_zone_find(struct slice name, uint16_t *ret)
{
    char text[NAME_BYTES_MAX];
    *ret = OTTL_ZONE_UTC;
    if (name.size == 0 || slice_equal_text(name, "UTC"))
        return true;
    if (name.size >= sizeof(text))
        return false;
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    return find(text, ret);
}

uint16_t ottl_zone_fixed(int64_t offset_s)
{
    int64_t minutes = offset_s / S_PER_MINUTE;
    return minutes == 0 ? OTTL_ZONE_UTC : (uint16_t)(FIXED | (minutes - FIXED_FIRST));
}

static const struct zone_type *type_at(const struct zone *zone, int64_t unix_s)
{
    uint32_t low = 0; /* transitions that are over */
    uint32_t high = zone->moments_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zone->moments[middle] <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->moments_count && zone->has_rule)
        return type_by_rule(zone, unix_s);
    if (low > 0)
        return &zone->types[zone->moment_types[low - 1]];
    for (uint32_t i = 0; i < zone->types_count; i++)
        if (!zone->types[i].is_summer)
            return &zone->types[i];
    return zone->types;
}

struct ottl_zone_time ottl_zone_at(uint16_t zone, int64_t unix_s)
{
    if (zone == OTTL_ZONE_UTC)
        return (struct ottl_zone_time){.name = "UTC"};
    if ((zone & FIXED) != 0)
        return (struct ottl_zone_time){.offset_s = ((zone & ~FIXED) + FIXED_FIRST) * S_PER_MINUTE,
                                       .name = ""};
    const struct zone_type *type = type_at(atomic_load(&zones[zone]), unix_s);
    return (struct ottl_zone_time){.offset_s = type->offset_s, .name = type->name};
}

bool ottl_zone_named(uint16_t zone, struct slice name, int64_t local_s, int32_t *ret_offset_s)
{
    *ret_offset_s = 0;
    if (zone == OTTL_ZONE_UTC || (zone & FIXED) != 0)
        return zone == OTTL_ZONE_UTC && slice_equal_text(name, "UTC");
    const struct zone *rules = atomic_load(&zones[zone]);
    for (uint32_t i = 0; i < rules->types_count; i++) {
        const struct zone_type *type = &rules->types[i];
        if (!slice_equal_text(name, type->name))
            continue;
        const struct zone_type *held = type_at(rules, local_s - type->offset_s);
        if (strcmp(held->name, type->name) == 0) {
            *ret_offset_s = held->offset_s;
            return true;
        }
    }
    for (uint32_t i = 0; i < rules->types_count; i++)
        if (slice_equal_text(name, rules->types[i].name)) {
            *ret_offset_s = rules->types[i].offset_s;
            return true;
        }
    return false;
}
