/* SPDX-License-Identifier: Apache-2.0 */
/* A format becomes Go's layout, and that a list of parts. Reading takes one pass: blanks before
 * digits do not count, numbers need no leading zeros. Pure functions. */
#include "src/ottl/ottl_layout.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/ottl/ottl_calendar.h"
#include "src/ottl/ottl_time.h"
#include "src/ottl/ottl_zone.h"

enum part_kind {
    LITERAL,
    YEAR,                 /* 2006 */
    SHORT_YEAR,           /* 06 */
    MONTH_NAME,           /* January */
    SHORT_MONTH,          /* Jan */
    MONTH,                /* 1 */
    MONTH_2,              /* 01 */
    DAY_NAME,             /* Monday */
    SHORT_DAY,            /* Mon */
    DAY,                  /* 2 */
    DAY_BLANK,            /* _2 */
    DAY_2,                /* 02 */
    HOUR,                 /* 15 */
    HOUR_12,              /* 3 */
    HOUR_12_2,            /* 03 */
    MINUTE,               /* 4 */
    MINUTE_2,             /* 04 */
    SECOND,               /* 5 */
    SECOND_2,             /* 05 */
    HALF_DAY,             /* PM */
    SMALL_HALF_DAY,       /* pm */
    ZONE_NAME,            /* MST */
    OFFSET,               /* Z0700, and when reading Z07:00 and Z07 */
    OFFSET_HOURS,         /* -07 */
    OFFSET_COLON,         /* -07:00 */
    OFFSET_SECONDS,       /* -070000 */
    OFFSET_COLON_SECONDS, /* -07:00:00 */
    FRACTION,             /* .999 */
    DATE,                 /* reading only: 1/2/2006 or 1/2/06 */
};

struct part {
    uint8_t kind;
    uint8_t digits; /* FRACTION */
    char point;     /* FRACTION */
    uint32_t begin; /* LITERAL: its bytes in the layout */
    uint32_t size;
};

struct ottl_layout {
    char *text;
    struct part *parts;
    uint32_t count;
};

/* What Go's layouts have for a directive, when writing and when reading (NULL: the same). \1 and \2
 * are OFFSET and DATE, which have more than one form. */
static const struct directive {
    char letter;
    const char *write;
    const char *read;
} directives[] = {
    {'Y', "2006", NULL},
    {'y', "06", NULL},
    {'m', "01", "1"},
    {'o', "_1", "1"},
    {'q', "1", NULL},
    {'b', "Jan", NULL},
    {'h', "Jan", NULL},
    {'B', "January", NULL},
    {'d', "02", "2"},
    {'e', "_2", "2"},
    {'g', "2", NULL},
    {'a', "Mon", NULL},
    {'A', "Monday", NULL},
    {'H', "15", NULL},
    {'l', "3", NULL},
    {'I', "03", "3"},
    {'p', "PM", NULL},
    {'P', "pm", NULL},
    {'M', "04", "4"},
    {'S', "05", "5"},
    {'L', "999", NULL},
    {'f', "999999", NULL},
    {'s', "999999999", NULL},
    {'Z', "MST", NULL},
    {'z', "\1", NULL},
    {'w', "-070000", NULL},
    {'i', "-07", NULL},
    {'j', "-07:00", NULL},
    {'k', "-07:00:00", NULL},
    {'D', "01/02/2006", "\2"},
    {'x', "01/02/2006", "\2"},
    {'F', "2006-01-02", "2006-1-2"},
    {'T', "15:04:05", "15:4:5"},
    {'X', "15:04:05", "15:4:5"},
    {'r', "03:04:05 pm", "3:4:5 pm"},
    {'R', "15:04", "15:4"},
    {'n', "\n", NULL},
    {'t', "\t", NULL},
    {'%', "%", NULL},
    {'c', "Mon Jan 02 15:04:05 2006", "Mon Jan 2 15:4:5 2006"},
};

/* Longer ones before those that they begin with. */
static const struct {
    const char *text;
    enum part_kind kind;
    bool is_word; /* no small letter may follow */
} layout_parts[] = {
    {"January", MONTH_NAME, false},
    {"Jan", SHORT_MONTH, true},
    {"Monday", DAY_NAME, false},
    {"Mon", SHORT_DAY, true},
    {"MST", ZONE_NAME, false},
    {"01", MONTH_2, false},
    {"02", DAY_2, false},
    {"03", HOUR_12_2, false},
    {"04", MINUTE_2, false},
    {"05", SECOND_2, false},
    {"06", SHORT_YEAR, false},
    {"15", HOUR, false},
    {"1", MONTH, false},
    {"2006", YEAR, false},
    {"2", DAY, false},
    {"_2", DAY_BLANK, false},
    {"3", HOUR_12, false},
    {"4", MINUTE, false},
    {"5", SECOND, false},
    {"PM", HALF_DAY, false},
    {"pm", SMALL_HALF_DAY, false},
    {"-070000", OFFSET_SECONDS, false},
    {"-07:00:00", OFFSET_COLON_SECONDS, false},
    {"-07:00", OFFSET_COLON, false},
    {"-07", OFFSET_HOURS, false},
    {"\1", OFFSET, false},
    {"\2", DATE, false},
};

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
enum { MONTHS = 12, DAYS = 7, SHORT_NAME = 3 };

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* .999: a point or comma, and nines that no other digit follows. Returns its size; 0: none. */
static size_t fraction_size(struct slice text)
{
    size_t size = 1;
    if (text.size < 2 || (text.data[0] != '.' && text.data[0] != ',') || text.data[1] != '9')
        return 0;
    while (size < text.size && text.data[size] == '9')
        size++;
    return size < text.size && is_digit(text.data[size]) ? 0 : size;
}

static size_t part_at(struct slice text, struct part *part)
{
    size_t size = fraction_size(text);
    if (size > 0) {
        *part = (struct part){
            .kind = FRACTION, .digits = (uint8_t)(size - 1), .point = (char)text.data[0]};
        return size;
    }
    for (size_t i = 0; i < sizeof(layout_parts) / sizeof(layout_parts[0]); i++) {
        if (!slice_begins_with(text, layout_parts[i].text))
            continue;
        size = strlen(layout_parts[i].text);
        if (layout_parts[i].is_word && size < text.size && text.data[size] >= 'a' &&
            text.data[size] <= 'z')
            continue;
        if (layout_parts[i].kind == DAY_BLANK && slice_begins_with(text, "_2006"))
            continue;
        *part = (struct part){.kind = (uint8_t)layout_parts[i].kind};
        return size;
    }
    return 0;
}

static void split(struct ottl_layout *layout, size_t size)
{
    struct slice text = slice_of(layout->text, size);
    for (size_t at = 0; at < size;) {
        struct part part;
        size_t used = part_at(slice_of(text.data + at, size - at), &part);
        struct part *last = layout->count > 0 ? &layout->parts[layout->count - 1] : NULL;
        if (used > 0) {
            layout->parts[layout->count++] = part;
        } else if (last != NULL && last->kind == LITERAL) {
            last->size++;
        } else {
            layout->parts[layout->count++] = (struct part){.begin = (uint32_t)at, .size = 1};
        }
        at += used > 0 ? used : 1;
    }
}

static const struct directive *find_directive(uint8_t letter)
{
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++)
        if ((uint8_t)directives[i].letter == letter)
            return &directives[i];
    return NULL;
}

static bool check(struct slice format, struct error *error)
{
    if (format.size == 0)
        return error_set(error, "format cannot be nil");
    for (size_t i = 0; i < format.size; i++)
        if (is_digit(format.data[i]) || format.data[i] <= '\2')
            return error_set(error, "format string should not contain decimals");
    for (size_t i = 0; i + 2 < format.size; i++)
        if (format.data[i] != '.' && format.data[i] != ',' && format.data[i + 1] == '%' &&
            (format.data[i + 2] == 'L' || format.data[i + 2] == 'f' || format.data[i + 2] == 's'))
            return error_set(error,
                             "invalid fractional seconds directive: '%.3s'. must be preceded with "
                             "'.' or ','",
                             (const char *)format.data + i);
    for (size_t i = 0; i + 1 < format.size; i++) {
        if (format.data[i] != '%' || format.data[i + 1] == '\n')
            continue;
        if (find_directive(format.data[++i]) == NULL)
            return error_set(error, "invalid strptime format: unsupported directive: %%%c",
                             format.data[i]);
    }
    return true;
}

struct ottl_layout *ottl_layout_create(struct slice format, bool is_for_parsing,
                                       struct error *error)
{
    enum { GROWTH_MAX = 12 };
    if (!check(format, error))
        return NULL;
    struct ottl_layout *layout = mem_zalloc(sizeof(*layout));
    layout->text = mem_alloc(format.size * GROWTH_MAX + 1);
    layout->parts = mem_zalloc((format.size * GROWTH_MAX + 1) * sizeof(*layout->parts));
    size_t size = 0;
    for (size_t i = 0; i < format.size; i++) {
        const struct directive *directive = format.data[i] == '%' && i + 1 < format.size
                                                ? find_directive(format.data[i + 1])
                                                : NULL;
        if (directive == NULL) {
            layout->text[size++] = (char)format.data[i];
            continue;
        }
        const char *text =
            is_for_parsing && directive->read != NULL ? directive->read : directive->write;
        memcpy(layout->text + size, text, strlen(text));
        size += strlen(text);
        i++;
    }
    assert(size <= format.size * GROWTH_MAX);
    split(layout, size);
    return layout;
}

void ottl_layout_destroy(struct ottl_layout *layout)
{
    if (layout == NULL)
        return;
    mem_free(layout->text);
    mem_free(layout->parts);
    mem_free(layout);
}

/* Writing. */

size_t ottl_layout_size_max(const struct ottl_layout *layout)
{
    enum { PART_BYTES_MAX = 24 };
    size_t size = 0;
    for (uint32_t i = 0; i < layout->count; i++)
        size += layout->parts[i].kind == LITERAL ? layout->parts[i].size : PART_BYTES_MAX;
    return size + 1;
}

static size_t write_offset(enum part_kind kind, int32_t offset_s, char *room)
{
    char sign = offset_s < 0 ? '-' : '+';
    unsigned size = (unsigned)(offset_s < 0 ? -offset_s : offset_s);
    unsigned hours = size / 3600;
    unsigned minutes = size / 60 % 60;
    unsigned seconds = size % 60;
    if (kind == OFFSET_HOURS)
        return (size_t)sprintf(room, "%c%02u", sign, hours);
    if (kind == OFFSET_COLON)
        return (size_t)sprintf(room, "%c%02u:%02u", sign, hours, minutes);
    if (kind == OFFSET_COLON_SECONDS)
        return (size_t)sprintf(room, "%c%02u:%02u:%02u", sign, hours, minutes, seconds);
    if (kind == OFFSET_SECONDS)
        return (size_t)sprintf(room, "%c%02u%02u%02u", sign, hours, minutes, seconds);
    return (size_t)sprintf(room, "%c%02u%02u", sign, hours, minutes);
}

static size_t write_fraction(const struct part *part, unsigned nanosecond, char *room)
{
    char digits[16];
    size_t size = part->digits < 9 ? part->digits : 9;
    snprintf(digits, sizeof(digits), "%09u", nanosecond);
    while (size > 0 && digits[size - 1] == '0')
        size--;
    if (size == 0)
        return 0;
    room[0] = part->point;
    memcpy(room + 1, digits, size);
    return size + 1;
}

size_t ottl_layout_format(const struct ottl_layout *layout, const struct ottl_value *time,
                          char *room)
{
    const struct ottl_date date = ottl_date_of(time);
    const struct ottl_zone_time zone = ottl_zone_at(time->zone, time->integer);
    const unsigned hour_12 = date.hour % 12 == 0 ? 12 : date.hour % 12;
    const long long year = date.year;
    char *at = room;
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct part *part = &layout->parts[i];
        switch ((enum part_kind)part->kind) {
        case LITERAL:
            memcpy(at, layout->text + part->begin, part->size);
            at += part->size;
            break;
        case YEAR:
            at += sprintf(at, year < 0 ? "%05lld" : "%04lld", year);
            break;
        case SHORT_YEAR:
            at += sprintf(at, "%02lld", (year < 0 ? -year : year) % 100);
            break;
        case MONTH_NAME:
            at += sprintf(at, "%s", months[date.month - 1]);
            break;
        case SHORT_MONTH:
            at += sprintf(at, "%.*s", SHORT_NAME, months[date.month - 1]);
            break;
        case MONTH:
            at += sprintf(at, "%u", date.month);
            break;
        case MONTH_2:
            at += sprintf(at, "%02u", date.month);
            break;
        case DAY_NAME:
            at += sprintf(at, "%s", days[date.weekday]);
            break;
        case SHORT_DAY:
            at += sprintf(at, "%.*s", SHORT_NAME, days[date.weekday]);
            break;
        case DAY:
            at += sprintf(at, "%u", date.day);
            break;
        case DAY_BLANK:
            at += sprintf(at, "%2u", date.day);
            break;
        case DAY_2:
            at += sprintf(at, "%02u", date.day);
            break;
        case HOUR:
            at += sprintf(at, "%02u", date.hour);
            break;
        case HOUR_12:
            at += sprintf(at, "%u", hour_12);
            break;
        case HOUR_12_2:
            at += sprintf(at, "%02u", hour_12);
            break;
        case MINUTE:
            at += sprintf(at, "%u", date.minute);
            break;
        case MINUTE_2:
            at += sprintf(at, "%02u", date.minute);
            break;
        case SECOND:
            at += sprintf(at, "%u", date.second);
            break;
        case SECOND_2:
            at += sprintf(at, "%02u", date.second);
            break;
        case HALF_DAY:
            at += sprintf(at, "%s", date.hour >= 12 ? "PM" : "AM");
            break;
        case SMALL_HALF_DAY:
            at += sprintf(at, "%s", date.hour >= 12 ? "pm" : "am");
            break;
        case ZONE_NAME:
            if (zone.name[0] != '\0') {
                at += sprintf(at, "%s", zone.name);
                break;
            }
            at += zone.offset_s % 3600 == 0 ? write_offset(OFFSET_HOURS, zone.offset_s, at)
                                            : write_offset(OFFSET, zone.offset_s, at);
            break;
        case OFFSET:
            if (zone.offset_s == 0)
                *at++ = 'Z';
            else
                at += write_offset(OFFSET, zone.offset_s, at);
            break;
        case OFFSET_HOURS:
        case OFFSET_COLON:
        case OFFSET_SECONDS:
        case OFFSET_COLON_SECONDS:
            at += write_offset((enum part_kind)part->kind, zone.offset_s, at);
            break;
        case FRACTION:
            at += write_fraction(part, date.nanosecond, at);
            break;
        case DATE:
        default:
            assert(false);
        }
    }
    return (size_t)(at - room);
}

/* Reading. */

struct reading {
    struct slice rest;
    int64_t year;
    int month, day; /* -1: not given */
    int hour, minute, second, nanosecond;
    bool is_morning, is_afternoon;
    bool is_utc;
    bool has_offset;
    int32_t offset_s;
    struct slice zone_name; /* empty: none */
};

static struct slice behind(struct slice text, size_t size)
{
    return slice_of(text.data + size, text.size - size);
}

/* One or two digits. */
static bool read_number(struct slice *text, int low, int high, int *ret)
{
    if (text->size == 0 || !is_digit(text->data[0]))
        return false;
    size_t size = text->size > 1 && is_digit(text->data[1]) ? 2 : 1;
    *ret = text->data[0] - '0';
    if (size == 2)
        *ret = *ret * 10 + (text->data[1] - '0');
    *text = behind(*text, size);
    return *ret >= low && *ret <= high;
}

/* Exactly so many digits, and a sign, which Go's atoi takes, only behind the first. */
static bool read_digits(struct slice *text, size_t size, int64_t *ret)
{
    *ret = 0;
    if (text->size < size)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(text->data[i]))
            return false;
        *ret = *ret * 10 + (text->data[i] - '0');
    }
    *text = behind(*text, size);
    return true;
}

static bool read_name(struct slice *text, const char *const *names, int count, size_t size_max,
                      int *ret)
{
    for (int i = 0; i < count; i++) {
        size_t size = strlen(names[i]) < size_max ? strlen(names[i]) : size_max;
        if (text->size < size || strncasecmp((const char *)text->data, names[i], size) != 0)
            continue;
        *text = behind(*text, size);
        *ret = i;
        return true;
    }
    return false;
}

/* Blanks of a literal stand for any number of blanks, also for none at the end. */
static bool read_literal(struct slice *text, struct slice literal)
{
    while (literal.size > 0) {
        if (literal.data[0] == ' ') {
            if (text->size > 0 && text->data[0] != ' ')
                return false;
            while (literal.size > 0 && literal.data[0] == ' ')
                literal = behind(literal, 1);
            while (text->size > 0 && text->data[0] == ' ')
                *text = behind(*text, 1);
            continue;
        }
        if (text->size == 0 || text->data[0] != literal.data[0])
            return false;
        literal = behind(literal, 1);
        *text = behind(*text, 1);
    }
    return true;
}

/* Point and digits; more than nine are cut. */
static bool read_fraction(struct slice *text, int *ret)
{
    size_t size = 1;
    int scale = 100000000;
    if (text->size < 2 || (text->data[0] != '.' && text->data[0] != ',') ||
        !is_digit(text->data[1]))
        return false;
    *ret = 0;
    for (; size < text->size && is_digit(text->data[size]); size++) {
        *ret += (text->data[size] - '0') * scale;
        scale /= 10;
    }
    *text = behind(*text, size);
    return true;
}

/* Sign and pairs of digits, from hours on, with or without colons. */
static bool read_offset(struct slice *text, unsigned pairs, bool has_colons,
                        struct reading *reading)
{
    static const int32_t units[] = {3600, 60, 1};
    static const int64_t limits[] = {24, 60, 60};
    struct slice rest = *text;
    int64_t pair;
    if (rest.size == 0 || (rest.data[0] != '+' && rest.data[0] != '-'))
        return false;
    int32_t sign = rest.data[0] == '-' ? -1 : 1;
    int32_t total = 0;
    rest = behind(rest, 1);
    for (unsigned i = 0; i < pairs; i++) {
        if (i > 0 && has_colons) {
            if (rest.size == 0 || rest.data[0] != ':')
                return false;
            rest = behind(rest, 1);
        }
        if (!read_digits(&rest, 2, &pair) || pair > limits[i])
            return false;
        total += units[i] * (int32_t)pair;
    }
    *text = rest;
    reading->has_offset = true;
    reading->offset_s = sign * total;
    return true;
}

/* Z, or an offset in one of three forms. */
static bool read_any_offset(struct slice *text, struct reading *reading)
{
    if (text->size > 0 && text->data[0] == 'Z') {
        *text = behind(*text, 1);
        reading->is_utc = true;
        return true;
    }
    return read_offset(text, 2, false, reading) || read_offset(text, 2, true, reading) ||
           read_offset(text, 1, false, reading);
}

/* Bytes of a zone's name as Go takes it: three to five capitals, a few others, GMT with hours, and
 * hours alone. */
static size_t zone_name_size(struct slice text)
{
    size_t capitals = 0;
    if (slice_begins_with(text, "ChST") || slice_begins_with(text, "MeST"))
        return 4;
    size_t at = slice_begins_with(text, "GMT") ? 3 : 0;
    if (at > 0 || (text.size > 0 && (text.data[0] == '+' || text.data[0] == '-'))) {
        if (at == text.size || (text.data[at] != '+' && text.data[at] != '-'))
            return at;
        size_t end = at + 1;
        int64_t hours = 0;
        for (; end < text.size && is_digit(text.data[end]); end++)
            hours = hours < 100 ? hours * 10 + (text.data[end] - '0') : hours;
        return end > at + 1 && hours < 24 ? end : at;
    }
    while (capitals < 6 && capitals < text.size && text.data[capitals] >= 'A' &&
           text.data[capitals] <= 'Z')
        capitals++;
    if (capitals == 5 && text.data[4] == 'T')
        return 5;
    if (capitals == 4 && (text.data[3] == 'T' || slice_begins_with(text, "WITA")))
        return 4;
    return capitals == 3 ? 3 : 0;
}

static bool read_zone_name(struct slice *text, struct reading *reading)
{
    if (slice_begins_with(*text, "UTC")) {
        reading->is_utc = true;
        *text = behind(*text, 3);
        return true;
    }
    size_t size = zone_name_size(*text);
    reading->zone_name = slice_of(text->data, size);
    *text = behind(*text, size);
    return size > 0;
}

static bool read_half_day(struct slice *text, const char *morning, const char *afternoon,
                          struct reading *reading)
{
    if (slice_begins_with(*text, afternoon))
        reading->is_afternoon = true;
    else if (slice_begins_with(*text, morning))
        reading->is_morning = true;
    else
        return false;
    *text = behind(*text, 2);
    return true;
}

static bool read_short_year(struct slice *text, int64_t *ret)
{
    if (!read_digits(text, 2, ret))
        return false;
    *ret += *ret >= 69 ? 1900 : 2000;
    return true;
}

static void skip_space(struct slice *text)
{
    while (text->size > 0 &&
           (text->data[0] == ' ' || text->data[0] == '\t' || text->data[0] == '\n' ||
            text->data[0] == '\f' || text->data[0] == '\r'))
        *text = behind(*text, 1);
}

static bool read_date(struct slice *text, struct reading *reading)
{
    static const uint8_t slash[] = {'/'};
    if (!read_number(text, 1, MONTHS, &reading->month) || !read_literal(text, slice_of(slash, 1)))
        return false;
    skip_space(text);
    if (!read_number(text, 0, 99, &reading->day) || !read_literal(text, slice_of(slash, 1)))
        return false;
    skip_space(text);
    return read_digits(text, 4, &reading->year) || read_short_year(text, &reading->year);
}

static bool read_part(const struct ottl_layout *layout, uint32_t number, struct reading *reading)
{
    const struct part *part = &layout->parts[number];
    struct slice *text = &reading->rest;
    int unused;
    switch ((enum part_kind)part->kind) {
    case LITERAL:
        return read_literal(text, slice_of(layout->text + part->begin, part->size));
    case YEAR:
        return read_digits(text, 4, &reading->year);
    case SHORT_YEAR:
        return read_short_year(text, &reading->year);
    case MONTH_NAME:
        return read_name(text, months, MONTHS, SIZE_MAX, &reading->month) && ++reading->month > 0;
    case SHORT_MONTH:
        return read_name(text, months, MONTHS, SHORT_NAME, &reading->month) && ++reading->month > 0;
    case MONTH:
        return read_number(text, 1, MONTHS, &reading->month);
    case DAY_NAME:
        return read_name(text, days, DAYS, SIZE_MAX, &unused);
    case SHORT_DAY:
        return read_name(text, days, DAYS, SHORT_NAME, &unused);
    case DAY:
    case DAY_BLANK:
        return read_number(text, 0, 99, &reading->day);
    case HOUR:
        return read_number(text, 0, 23, &reading->hour);
    case HOUR_12:
        return read_number(text, 0, 12, &reading->hour);
    case MINUTE:
        return read_number(text, 0, 59, &reading->minute);
    case SECOND:
        if (!read_number(text, 0, 59, &reading->second))
            return false;
        for (uint32_t i = number + 1; i < layout->count; i++)
            if (layout->parts[i].kind != LITERAL) {
                if (layout->parts[i].kind == FRACTION)
                    return true;
                break;
            }
        read_fraction(text, &reading->nanosecond); /* a fraction needs no part of its own */
        return true;
    case FRACTION:
        read_fraction(text, &reading->nanosecond);
        return true;
    case HALF_DAY:
        return read_half_day(text, "AM", "PM", reading);
    case SMALL_HALF_DAY:
        return read_half_day(text, "am", "pm", reading);
    case ZONE_NAME:
        return read_zone_name(text, reading);
    case OFFSET:
        return read_any_offset(text, reading);
    case OFFSET_HOURS:
        return read_offset(text, 1, false, reading);
    case OFFSET_COLON:
        return read_offset(text, 2, true, reading);
    case OFFSET_SECONDS:
        return read_offset(text, 3, false, reading);
    case OFFSET_COLON_SECONDS:
        return read_offset(text, 3, true, reading);
    case DATE:
        return read_date(text, reading);
    case MONTH_2:
    case DAY_2:
    case HOUR_12_2:
    case MINUTE_2:
    case SECOND_2:
    default:
        assert(false); /* these are for writing */
        return false;
    }
}

/* Whether blanks before it do not count: what begins with a digit or a Z in Go's layouts. */
static bool skips_space(enum part_kind kind)
{
    static const unsigned skipping = 1u << YEAR | 1u << SHORT_YEAR | 1u << MONTH | 1u << DAY |
                                     1u << HOUR | 1u << HOUR_12 | 1u << MINUTE | 1u << SECOND |
                                     1u << OFFSET | 1u << DATE;
    return (skipping >> kind & 1) != 0;
}

static int64_t seconds_of(const struct reading *reading, int64_t year)
{
    return ottl_days_of(year, (unsigned)reading->month, (unsigned)reading->day) * 86400 +
           reading->hour * 3600 + reading->minute * 60 + reading->second;
}

/* The moment that has this local time in the zone, as Go's time.Date finds it. */
static int64_t moment_of(int64_t local_s, uint16_t zone)
{
    int32_t offset = ottl_zone_at(zone, local_s).offset_s;
    return offset == 0 ? local_s : local_s - ottl_zone_at(zone, local_s - offset).offset_s;
}

/* A zone's name stands for the offset that it has in the zone that holds, or as a zone's own name.
 */
static const char *apply_name(const struct reading *reading, int64_t local_s, uint16_t *zone,
                              int64_t *ret_s)
{
    int32_t offset;
    uint16_t named;
    struct slice name = reading->zone_name;
    if (ottl_zone_named(*zone, name, local_s, &offset)) {
        *ret_s = local_s - offset;
        return NULL;
    }
    if (name.size > 3 && slice_begins_with(name, "GMT")) {
        int32_t hours = 0;
        for (size_t i = 4; i < name.size; i++)
            hours = hours * 10 + (name.data[i] - '0');
        offset = (name.data[3] == '-' ? -3600 : 3600) * hours;
        if (offset != 0) { /* Go shows the hours, but takes the time as UTC */
            *ret_s = local_s;
            *zone = ottl_zone_fixed(offset);
            return NULL;
        }
    }
    if (!ottl_zone_find(name, &named))
        return "the name of a time zone that is not known";
    *zone = named;
    *ret_s = ottl_zone_named(named, name, local_s, &offset) ? local_s - offset : local_s;
    return NULL;
}

bool ottl_layout_has_zone_name(const struct ottl_layout *layout)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->parts[i].kind == ZONE_NAME)
            return true;
    return false;
}

/* Go's rule for times without a year. */
static void apply_year(struct ottl_value *time, const struct reading *reading,
                       const struct ottl_layout_defaults *defaults)
{
    enum { WEEK_S = 7 * 86400 };
    struct ottl_value now = ottl_time(defaults->now_s, 0);
    now.zone = defaults->local_zone;
    int64_t year = ottl_date_of(&now).year;
    for (int i = 0; i < 2; i++, year--) {
        struct ottl_date date = ottl_date_of(time);
        struct reading dated = *reading;
        dated.month = (int)date.month;
        dated.day = (int)date.day;
        dated.hour = (int)date.hour;
        dated.minute = (int)date.minute;
        dated.second = (int)date.second;
        time->integer = moment_of(seconds_of(&dated, year), time->zone);
        if (time->integer <= defaults->now_s + WEEK_S)
            return;
    }
}

const char *ottl_layout_parse(const struct ottl_layout *layout, struct slice text,
                              const struct ottl_layout_defaults *defaults, struct ottl_value *ret)
{
    uint16_t zone = defaults->zone;
    struct reading reading = {.rest = text, .month = -1, .day = -1};
    for (uint32_t i = 0; i < layout->count; i++) {
        if (skips_space((enum part_kind)layout->parts[i].kind))
            skip_space(&reading.rest);
        if (!read_part(layout, i, &reading))
            return "text that is not as the format";
    }
    if (reading.rest.size > 0)
        return "extra text behind the time";
    if (reading.is_afternoon && reading.hour < 12)
        reading.hour += 12;
    else if (reading.is_morning && reading.hour == 12)
        reading.hour = 0;
    reading.month = reading.month < 0 ? 1 : reading.month;
    reading.day = reading.day < 0 ? 1 : reading.day;
    int64_t next_month = reading.month == MONTHS
                             ? ottl_days_of(reading.year + 1, 1, 1)
                             : ottl_days_of(reading.year, (unsigned)reading.month + 1, 1);
    if (reading.day < 1 ||
        reading.day > next_month - ottl_days_of(reading.year, (unsigned)reading.month, 1))
        return "a day that the month does not have";
    int64_t local_s = seconds_of(&reading, reading.year);
    int64_t unix_s;
    if (reading.is_utc) {
        zone = OTTL_ZONE_UTC;
        unix_s = local_s;
    } else if (reading.has_offset) {
        unix_s = local_s - reading.offset_s;
        if (ottl_zone_at(zone, unix_s).offset_s != reading.offset_s)
            zone = ottl_zone_fixed(reading.offset_s);
    } else if (reading.zone_name.size > 0) {
        const char *failure = apply_name(&reading, local_s, &zone, &unix_s);
        if (failure != NULL)
            return failure;
    } else {
        unix_s = moment_of(local_s, zone);
    }
    struct ottl_value time = ottl_time(unix_s, (uint32_t)reading.nanosecond);
    time.zone = zone;
    if (ottl_date_of(&time).year <= 0)
        apply_year(&time, &reading, defaults);
    *ret = time;
    return NULL;
}
