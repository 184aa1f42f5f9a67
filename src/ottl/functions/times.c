/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of times and durations. Runs on the processor's thread. */
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/duration.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_layout.h"
#include "src/ottl/ottl_time.h"
#include "src/ottl/ottl_zone.h"

enum { FORMAT = 1, LOCATION, LOCALE };

/* What Time and FormatTime keep. */
struct time_form {
    struct ottl_layout *layout;
    uint16_t zone;
    uint16_t local_zone;
};

static void release_form(void *state)
{
    struct time_form *form = state;
    if (form == NULL)
        return;
    ottl_layout_destroy(form->layout);
    mem_free(form);
}

/* Zones whose names look like abbreviations, and which Go finds by them. */
static void load_short_zones(void)
{
    static const char *const names[] = {"CET", "EET", "EST", "GMT", "HST", "MET",
                                        "MST", "PRC", "ROC", "ROK", "UCT", "WET"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint16_t zone;
        struct error error;
        if (!ottl_zone_load(slice_of_text(names[i]), &zone, &error))
            continue; /* this machine has no database: such names will be unknown */
    }
}

static bool prepare_time(const struct ottl_preparation *preparation, void **ret_state,
                         struct error *error)
{
    struct slice format = ottl_literal_text(preparation, FORMAT);
    struct slice location = ottl_literal_text(preparation, LOCATION);
    struct slice locale = ottl_literal_text(preparation, LOCALE);
    uint16_t zone = OTTL_ZONE_UTC;
    *ret_state = NULL;
    if (format.size == 0)
        return error_set(error, "format cannot be nil");
    if (location.size > 0) {
        if (!ottl_zone_load(location, &zone, error))
            return false;
    } else if (format.data[format.size - 1] != 'Z') {
        zone = ottl_zone_local();
    }
    if (ottl_is_given(preparation, LOCALE) && !slice_equal_nocase(locale, "en") &&
        !(locale.size > 2 && slice_equal_nocase(slice_of(locale.data, 3), "en-")))
        return error_set(error,
                         "the locale \"%.*s\" is not supported; this build reads English names, "
                         "expected en",
                         (int)locale.size, (const char *)locale.data) ||
               error_unsupported(error);
    struct ottl_layout *layout = ottl_layout_create(format, true, error);
    if (layout == NULL)
        return false;
    struct time_form *form = mem_zalloc(sizeof(*form));
    form->layout = layout;
    form->zone = zone;
    form->local_zone = ottl_zone_local();
    if (ottl_layout_has_zone_name(layout))
        load_short_zones();
    *ret_state = form;
    return true;
}

static bool parse_time(struct ottl_call *call, struct ottl_value *ret)
{
    enum { SHOWN_MAX = 100 };
    const struct time_form *form = call->state;
    struct slice text, format;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, FORMAT, &format))
        return false;
    if (text.size == 0)
        return ottl_fail(call, "time cannot be nil");
    const struct ottl_layout_defaults defaults = {.zone = form->zone,
                                                  .local_zone = form->local_zone,
                                                  .now_s = (int64_t)(ottl_now_ns(call) / NS_PER_S)};
    const char *failure = ottl_layout_parse(form->layout, text, &defaults, ret);
    return failure == NULL ||
           ottl_fail(call, "parsing time \"%.*s\" as \"%.*s\": %s",
                     text.size < SHOWN_MAX ? (int)text.size : SHOWN_MAX, (const char *)text.data,
                     format.size < SHOWN_MAX ? (int)format.size : SHOWN_MAX,
                     (const char *)format.data, failure);
}

static const struct ottl_parameter time_parameters[] = {
    {"Time", OTTL_STRINGS_ONLY, false, false},
    {"Format", OTTL_TEXT_LITERAL, false, false},
    {"Location", OTTL_TEXT_LITERAL, true, false},
    {"Locale", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

static bool prepare_format_time(const struct ottl_preparation *preparation, void **ret_state,
                                struct error *error)
{
    struct ottl_layout *layout =
        ottl_layout_create(ottl_literal_text(preparation, FORMAT), false, error);
    *ret_state = NULL;
    if (layout == NULL)
        return false;
    struct time_form *form = mem_zalloc(sizeof(*form));
    form->layout = layout;
    *ret_state = form;
    return true;
}

static bool format_time(struct ottl_call *call, struct ottl_value *ret)
{
    const struct time_form *form = call->state;
    struct ottl_value time;
    if (!ottl_get_time(call, 0, &time))
        return false;
    char *room = ottl_alloc(call, ottl_layout_size_max(form->layout));
    if (room == NULL)
        return false;
    *ret = ottl_string(slice_of(room, ottl_layout_format(form->layout, &time, room)));
    return true;
}

static const struct ottl_parameter format_time_parameters[] = {
    {"Time", OTTL_TIMES_ONLY, false, false},
    {"Format", OTTL_TEXT_LITERAL, false, false},
    {.name = NULL}};

/* Now and Unix give local times. */
static bool prepare_local(const struct ottl_preparation *preparation, void **ret_state,
                          struct error *error)
{
    (void)preparation;
    (void)error;
    struct time_form *form = mem_zalloc(sizeof(*form));
    form->local_zone = ottl_zone_local();
    *ret_state = form;
    return true;
}

static bool now(struct ottl_call *call, struct ottl_value *ret)
{
    const struct time_form *form = call->state;
    uint64_t now_ns = ottl_now_ns(call);
    *ret = ottl_time((int64_t)(now_ns / NS_PER_S), (uint32_t)(now_ns % NS_PER_S));
    ret->zone = form->local_zone;
    return true;
}

static bool from_unix(struct ottl_call *call, struct ottl_value *ret)
{
    const struct time_form *form = call->state;
    int64_t seconds;
    int64_t nanoseconds = 0;
    if (!ottl_get_int(call, 0, &seconds) ||
        (ottl_has(call, 1) && !ottl_get_int(call, 1, &nanoseconds)))
        return false;
    int64_t carry = nanoseconds / NS_PER_S - (nanoseconds % NS_PER_S < 0);
    *ret = ottl_time((int64_t)((uint64_t)seconds + (uint64_t)carry),
                     (uint32_t)(nanoseconds - carry * NS_PER_S));
    ret->zone = form->local_zone;
    return true;
}

static const struct ottl_parameter unix_parameters[] = {
    {"Seconds", OTTL_INTS_ONLY, false, false},
    {"Nanoseconds", OTTL_INTS_ONLY, true, false},
    {.name = NULL}};

/* Parts of a time. */

static bool get_date(struct ottl_call *call, struct ottl_date *ret)
{
    struct ottl_value time;
    if (!ottl_get_time(call, 0, &time))
        return false;
    *ret = ottl_date_of(&time);
    return true;
}

#define DATE_PART(function, part)                                                                  \
    static bool function(struct ottl_call *call, struct ottl_value *ret)                           \
    {                                                                                              \
        struct ottl_date date;                                                                     \
        if (!get_date(call, &date))                                                                \
            return false;                                                                          \
        *ret = ottl_int((int64_t)date.part);                                                       \
        return true;                                                                               \
    }

DATE_PART(year_of, year)
DATE_PART(month_of, month)
DATE_PART(day_of, day)
DATE_PART(weekday_of, weekday)
DATE_PART(hour_of, hour)
DATE_PART(minute_of, minute)
DATE_PART(second_of, second)
DATE_PART(nanosecond_of, nanosecond)

/* Since 1970, in parts of a second; what is beyond 64 bits wraps around, as in Go. */
static bool unix_of(struct ottl_call *call, uint64_t per_second, struct ottl_value *ret)
{
    struct ottl_value time;
    if (!ottl_get_time(call, 0, &time))
        return false;
    *ret = ottl_int((int64_t)((uint64_t)time.integer * per_second +
                              time.size / ((uint64_t)NS_PER_S / per_second)));
    return true;
}

static bool unix_seconds(struct ottl_call *call, struct ottl_value *ret)
{
    return unix_of(call, 1, ret);
}

static bool unix_milli(struct ottl_call *call, struct ottl_value *ret)
{
    return unix_of(call, NS_PER_S / NS_PER_MS, ret);
}

static bool unix_micro(struct ottl_call *call, struct ottl_value *ret)
{
    return unix_of(call, NS_PER_S / NS_PER_US, ret);
}

static bool unix_nano(struct ottl_call *call, struct ottl_value *ret)
{
    return unix_of(call, NS_PER_S, ret);
}

static const struct ottl_parameter one_time[] = {{"Time", OTTL_TIMES_ONLY, false, false},
                                                 {.name = NULL}};

/* Down to a multiple of the duration since the first day of year 1. */
static bool truncate_time(struct ottl_call *call, struct ottl_value *ret)
{
    const int64_t from_year_1_s = 62135596800;
    int64_t duration;
    if (!ottl_get_time(call, 0, ret) || !ottl_get_duration(call, 1, &duration))
        return false;
    if (duration <= 0)
        return true;
    __extension__ typedef __int128 wide;
    wide total = ((wide)ret->integer + from_year_1_s) * NS_PER_S + ret->size;
    wide rest = total % duration;
    total -= rest < 0 ? rest + duration : rest;
    wide seconds = total / NS_PER_S;
    wide nanoseconds = total % NS_PER_S;
    if (nanoseconds < 0) {
        nanoseconds += NS_PER_S;
        seconds--;
    }
    ret->integer = (int64_t)(seconds - from_year_1_s);
    ret->size = (uint32_t)nanoseconds;
    return true;
}

static const struct ottl_parameter truncate_time_parameters[] = {
    {"Time", OTTL_TIMES_ONLY, false, false},
    {"Duration", OTTL_DURATIONS_ONLY, false, false},
    {.name = NULL}};

/* Durations. */

static bool parse_duration(struct ottl_call *call, struct ottl_value *ret)
{
    enum { TEXT_BYTES_MAX = 256 };
    char copy[TEXT_BYTES_MAX + 1];
    struct slice text;
    int64_t duration = 0;
    if (!ottl_get_string(call, 0, &text))
        return false;
    const char *failure = "time: invalid duration";
    if (text.size <= TEXT_BYTES_MAX &&
        (text.size == 0 || memchr(text.data, '\0', text.size) == NULL)) {
        if (text.size > 0)
            memcpy(copy, text.data, text.size);
        copy[text.size] = '\0';
        failure = text_to_duration_ns(copy, &duration);
    }
    if (failure != NULL)
        return ottl_fail(call, "%s \"%.*s\"", failure,
                         text.size < TEXT_BYTES_MAX ? (int)text.size : TEXT_BYTES_MAX,
                         (const char *)text.data);
    *ret = ottl_duration(duration);
    return true;
}

static const struct ottl_parameter parse_duration_parameters[] = {
    {"Duration", OTTL_STRINGS_ONLY, false, false}, {.name = NULL}};

/* Whole units and the rest are added as doubles, as Go does it. */
static bool duration_in(struct ottl_call *call, int64_t unit_ns, struct ottl_value *ret)
{
    int64_t duration;
    if (!ottl_get_duration(call, 0, &duration))
        return false;
    *ret =
        ottl_double((double)(duration / unit_ns) + (double)(duration % unit_ns) / (double)unit_ns);
    return true;
}

static bool duration_whole(struct ottl_call *call, int64_t unit_ns, struct ottl_value *ret)
{
    int64_t duration;
    if (!ottl_get_duration(call, 0, &duration))
        return false;
    *ret = ottl_int(duration / unit_ns);
    return true;
}

static bool hours_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_in(call, (int64_t)3600 * NS_PER_S, ret);
}

static bool minutes_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_in(call, (int64_t)60 * NS_PER_S, ret);
}

static bool seconds_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_in(call, NS_PER_S, ret);
}

static bool milliseconds_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_whole(call, NS_PER_MS, ret);
}

static bool microseconds_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_whole(call, NS_PER_US, ret);
}

static bool nanoseconds_of(struct ottl_call *call, struct ottl_value *ret)
{
    return duration_whole(call, 1, ret);
}

static const struct ottl_parameter one_duration[] = {
    {"Duration", OTTL_DURATIONS_ONLY, false, false}, {.name = NULL}};

const struct ottl_function ottl_time_functions[] = {
    {.name = "Time",
     .parameters = time_parameters,
     .evaluate = parse_time,
     .prepare = prepare_time,
     .release = release_form,
     .is_volatile = true},
    {.name = "FormatTime",
     .parameters = format_time_parameters,
     .evaluate = format_time,
     .prepare = prepare_format_time,
     .release = release_form},
    {.name = "Now",
     .evaluate = now,
     .prepare = prepare_local,
     .release = release_form,
     .is_volatile = true},
    {.name = "Unix",
     .parameters = unix_parameters,
     .evaluate = from_unix,
     .prepare = prepare_local,
     .release = release_form},
    {.name = "TruncateTime", .parameters = truncate_time_parameters, .evaluate = truncate_time},
    {.name = "Year", .parameters = one_time, .evaluate = year_of},
    {.name = "Month", .parameters = one_time, .evaluate = month_of},
    {.name = "Day", .parameters = one_time, .evaluate = day_of},
    {.name = "Weekday", .parameters = one_time, .evaluate = weekday_of},
    {.name = "Hour", .parameters = one_time, .evaluate = hour_of},
    {.name = "Minute", .parameters = one_time, .evaluate = minute_of},
    {.name = "Second", .parameters = one_time, .evaluate = second_of},
    {.name = "Nanosecond", .parameters = one_time, .evaluate = nanosecond_of},
    {.name = "UnixSeconds", .parameters = one_time, .evaluate = unix_seconds},
    {.name = "UnixMilli", .parameters = one_time, .evaluate = unix_milli},
    {.name = "UnixMicro", .parameters = one_time, .evaluate = unix_micro},
    {.name = "UnixNano", .parameters = one_time, .evaluate = unix_nano},
    {.name = "Duration", .parameters = parse_duration_parameters, .evaluate = parse_duration},
    {.name = "Hours", .parameters = one_duration, .evaluate = hours_of},
    {.name = "Minutes", .parameters = one_duration, .evaluate = minutes_of},
    {.name = "Seconds", .parameters = one_duration, .evaluate = seconds_of},
    {.name = "Milliseconds", .parameters = one_duration, .evaluate = milliseconds_of},
    {.name = "Microseconds", .parameters = one_duration, .evaluate = microseconds_of},
    {.name = "Nanoseconds", .parameters = one_duration, .evaluate = nanoseconds_of},
    {.name = NULL},
};
