/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the parameters of /ingest. Of a parameter that occurs twice the first counts; unknown ones
 * are ignored. Runs on the thread of the owner. */
#include "src/profiles/pyroscope/ingest_query.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <time.h>

enum {
    SAMPLE_RATE_DEFAULT = 100,
    NUMBER_DIGITS_MAX = 19,
    SHOWN_BYTES_MAX = 64,
    NAME_SHOWN_BYTES_MAX = 128,
    TIME_TEXT_MAX = 64,
    DAY_DIGITS = 8,
    FIRST_YEAR = 1970,
};

static const char *const names[INGEST_PARAMETERS] = {
    [INGEST_NAME] = "name",
    [INGEST_FROM] = "from",
    [INGEST_UNTIL] = "until",
    [INGEST_SAMPLE_RATE] = "sampleRate",
    [INGEST_SPY_NAME] = "spyName",
    [INGEST_UNITS] = "units",
    [INGEST_AGGREGATION] = "aggregationType",
    [INGEST_FORMAT] = "format",
};

const char *ingest_parameter_name(enum ingest_parameter parameter)
{
    assert(parameter < INGEST_PARAMETERS);
    return names[parameter];
}

/* ---- name: app{key=value,…} by the server's grammar. A '}' in place of a key ends it; an
 * unterminated value is ignored. ---- */

/* Allows letters, digits, '_', '.' and the characters in more. */
static bool check_characters(struct slice text, const char *more, const char *what,
                             struct error *error)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c < 0x80 && isalnum(c)) || c == '_' || c == '.' || (c != 0 && strchr(more, c) != NULL))
            continue;
        int size = (int)(text.size < NAME_SHOWN_BYTES_MAX ? text.size : NAME_SHOWN_BYTES_MAX);
        return error_set(error, "name: invalid %s: %.*s: character is not allowed: '%c'", what,
                         size, (const char *)text.data, c >= ' ' && c < 0x7f ? c : '?');
    }
    return true;
}

static bool check_app(struct slice app, struct error *error)
{
    if (app.size == 0)
        return error_set(error, "name: service name is required");
    return check_characters(app, "-/", "service name", error);
}

/* Cuts rest at the first of stops and passes that. False: none occurs. */
static bool cut(struct slice *rest, const char *stops, struct slice *ret_text, char *ret_stop)
{
    for (size_t i = 0; i < rest->size; i++) {
        char c = (char)rest->data[i];
        if (c == '\0' || strchr(stops, c) == NULL)
            continue;
        *ret_text = slice_trim(slice_of(rest->data, i));
        *ret_stop = c;
        *rest = slice_of(rest->data + i + 1, rest->size - i - 1);
        return true;
    }
    return false;
}

bool ingest_name_parse(struct slice text, struct ingest_name *ret_name, struct error *error)
{
    struct slice key;
    struct slice value;
    char stop;
    struct series *labels = &ret_name->labels;
    labels->count = 0;
    if (!cut(&text, "{", &ret_name->app, &stop)) {
        ret_name->app = slice_trim(text);
        return check_app(ret_name->app, error);
    }
    if (!check_app(ret_name->app, error))
        return false;
    while (cut(&text, "=}", &key, &stop) && stop == '=' && cut(&text, ",}", &value, &stop)) {
        if (slice_equal_text(key, "__name__")) {
            ret_name->app = value;
            continue;
        }
        if (key.size == 0)
            return error_set(error, "name: label name is required");
        if (!check_characters(key, "", "label name", error))
            return false;
        size_t place = 0;
        while (place < labels->count && !slice_equal(labels->labels[place].name, key))
            place++;
        if (place < labels->count)
            labels->labels[place].value = value;
        else if (!series_add(labels, key, value))
            return error_set(error, "name: more than %d labels", SERIES_LABELS_MAX);
    }
    return true;
}

/* ---- from, until ---- */

static const struct {
    const char *prefix;
    uint64_t seconds;
} units[] = {
    {"s", 1},    {"mon", 2592000}, {"M", 2592000}, {"min", 60},     {"m", 60},
    {"h", 3600}, {"d", 86400},     {"w", 604800},  {"y", 31536000},
};

/* Reads the digits at *at, maybe none. False: too large. */
static bool read_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return true;
}

bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *ret_ns)
{
    char room[TIME_TEXT_MAX];
    size_t used = 0;
    bool is_readable = true;
    assert(now_ns <= INT64_MAX);
    for (size_t i = 0; is_readable && i < text.size; i++) {
        char c = (char)text.data[i];
        is_readable = c != '\0' && used + 1 < TIME_TEXT_MAX;
        if (is_readable && strchr("_, \t\r\n", c) == NULL)
            room[used++] = c;
    }
    room[used] = '\0';
    if (!is_readable || used == 0) {
        *ret_ns = now_ns;
        return true;
    }
    uint64_t number;
    size_t digits = strspn(room, "0123456789");
    if (room[digits] != '\0') {
        /* Whatever precedes the first plus, or else the first minus, is now. An offset such as
         * "1h30min" follows; in it text that is neither number nor unit is ignored. */
        const char *sign = strchr(room, '+');
        if (sign == NULL)
            sign = strchr(room, '-');
        const char *at = sign != NULL ? sign + 1 : "";
        uint64_t offset_ns = 0;
        while (*at != '\0') {
            uint64_t seconds = 0;
            if (!read_number(&at, &number))
                return false;
            for (size_t i = 0; seconds == 0 && i < sizeof(units) / sizeof(units[0]); i++)
                if (strncmp(at, units[i].prefix, strlen(units[i].prefix)) == 0)
                    seconds = units[i].seconds;
            if (__builtin_mul_overflow(number, seconds, &number) ||
                __builtin_mul_overflow(number, (uint64_t)NS_PER_S, &number) ||
                __builtin_add_overflow(offset_ns, number, &offset_ns))
                return false;
            while (*at != '\0' && (*at < '0' || *at > '9'))
                at++;
        }
        bool is_before = sign != NULL && *sign == '-';
        if (is_before ? offset_ns > now_ns : offset_ns > INT64_MAX - now_ns)
            return false;
        *ret_ns = is_before ? now_ns - offset_ns : now_ns + offset_ns;
        return true;
    }
    const char *at = room;
    if (!read_number(&at, &number))
        return false;
    if (digits == DAY_DIGITS && number / 10000 >= FIRST_YEAR) {
        struct tm tm = {.tm_year = (int)(number / 10000) - 1900,
                        .tm_mon = (int)(number / 100 % 100) - 1,
                        .tm_mday = (int)(number % 100)};
        struct tm given = tm;
        time_t seconds = timegm(&tm);
        /* timegm turns June 31 into July 1: then the number is not a day, but seconds. */
        if (tm.tm_mon == given.tm_mon && tm.tm_mday == given.tm_mday && seconds >= 0)
            number = (uint64_t)seconds;
    }
    uint64_t unit = digits == 13   ? NS_PER_MS
                    : digits == 16 ? NS_PER_US
                    : digits == 19 ? 1
                                   : NS_PER_S;
    return !__builtin_mul_overflow(number, unit, ret_ns) && *ret_ns <= INT64_MAX;
}

/* ---- the query ---- */

/* Decodes percent-encoding and '+' to *to, which it advances. False: a broken escape. */
static bool decode(struct slice text, char **to, struct slice *ret_text)
{
    char *begin = *to;
    for (size_t i = 0; i < text.size; i++) {
        int c = text.data[i] == '+' ? ' ' : text.data[i];
        if (c == '%') {
            if (text.size - i <= 2)
                return false;
            unsigned high = hex_digit(text.data[i + 1]);
            unsigned low = hex_digit(text.data[i + 2]);
            if (high > 15 || low > 15)
                return false;
            c = (int)(high << 4 | low);
            i += 2;
        }
        *(*to)++ = (char)c;
    }
    *ret_text = slice_of(begin, (size_t)(*to - begin));
    return true;
}

/* Splits the query into its values. */
static bool split(struct ingest_query *query, struct slice text, struct error *error)
{
    static const char broken[] = "invalid URL escape in the query";
    char *to = query->memory;
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '&', text.size);
        struct slice pair =
            slice_of(text.data, end != NULL ? (size_t)(end - text.data) : text.size);
        text = end != NULL ? slice_of(end + 1, text.size - pair.size - 1) : slice_of(NULL, 0);
        const uint8_t *equals = pair.size > 0 ? memchr(pair.data, '=', pair.size) : NULL;
        size_t key_size = equals != NULL ? (size_t)(equals - pair.data) : pair.size;
        struct slice key;
        struct slice value = {.size = 0};
        if (!decode(slice_of(pair.data, key_size), &to, &key))
            return error_set(error, "%s", broken);
        if (equals != NULL && !decode(slice_of(equals + 1, pair.size - key_size - 1), &to, &value))
            return error_set(error, "%s", broken);
        if (value.data == NULL)
            value = slice_of(to, 0);
        for (unsigned i = 0; i < INGEST_PARAMETERS; i++)
            if (slice_equal_text(key, names[i]) && query->values[i].data == NULL)
                query->values[i] = value;
    }
    for (unsigned i = 0; i < INGEST_PARAMETERS; i++)
        if (otlp_text_valid(query->values[i]) < query->values[i].size)
            return error_set(error, "%s: found bytes that are not UTF-8", names[i]);
    return true;
}

static bool read_time(const struct ingest_query *query, enum ingest_parameter parameter,
                      uint64_t now_ns, uint64_t *ret_ns, struct error *error)
{
    struct slice text = query->values[parameter];
    *ret_ns = now_ns;
    if (text.size == 0 || ingest_time_parse(text, now_ns, ret_ns))
        return true;
    return error_set(error,
                     "%s: found \"%.*s\", expected a time from 1970 to 2262: seconds, 13, 16 or 19 "
                     "digits for milli-, micro- or nanoseconds, YYYYMMDD, or now-1h",
                     names[parameter],
                     (int)(text.size < SHOWN_BYTES_MAX ? text.size : SHOWN_BYTES_MAX),
                     (const char *)text.data);
}

bool ingest_query_parse(struct ingest_query *query, struct slice text, uint64_t now_ns,
                        struct error *error)
{
    *query = (struct ingest_query){.memory = NULL};
    if (text.size > UPLOAD_QUERY_BYTES_MAX)
        return error_set(error, "the query has %zu bytes, expected at most %d", text.size,
                         UPLOAD_QUERY_BYTES_MAX);
    query->memory = mem_alloc(text.size + 1);
    if (!split(query, text, error) ||
        !ingest_name_parse(query->values[INGEST_NAME], &query->name, error) ||
        !read_time(query, INGEST_FROM, now_ns, &query->from_ns, error) ||
        !read_time(query, INGEST_UNTIL, now_ns, &query->until_ns, error)) {
        ingest_query_fini(query);
        return false;
    }
    /* As on the server: a rate that is not a number counts as the default; of larger numbers the
     * lower 32 bits count. */
    struct slice rate = query->values[INGEST_SAMPLE_RATE];
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < rate.size && digits < NUMBER_DIGITS_MAX; digits++) {
        if (rate.data[digits] < '0' || rate.data[digits] > '9')
            break;
        number = number * 10 + (uint64_t)(rate.data[digits] - '0');
    }
    bool is_number = digits > 0 && digits == rate.size;
    query->sample_rate = is_number ? (uint32_t)number : SAMPLE_RATE_DEFAULT;
    query->spy_name = query->values[INGEST_SPY_NAME];
    if (query->spy_name.size == 0)
        query->spy_name = slice_of_text("unknown");
    return true;
}

void ingest_query_fini(struct ingest_query *query)
{
    mem_free(query->memory);
    query->memory = NULL;
}
