/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of /ingest; of a parameter that comes twice the first counts, unknown ones do not.
 * Runs on the thread of the owner. */
#include "src/profiles/pyroscope/ingest_query.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/ingest_time.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <string.h>

enum { SAMPLE_RATE_DEFAULT = 100, NUMBER_DIGITS_MAX = 19, SHOWN_BYTES_MAX = 64 };

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

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-encoding and '+' undone at *to, which moves on. False: a broken escape. */
static bool decode(struct slice text, char **to, struct slice *ret_text)
{
    char *begin = *to;
    assert(begin != NULL);
    for (size_t i = 0; i < text.size; i++) {
        int c = text.data[i] == '+' ? ' ' : text.data[i];
        if (c == '%') {
            bool is_whole = text.size - i > 2;
            int high = is_whole ? digit_of(text.data[i + 1]) : -1;
            int low = is_whole ? digit_of(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = high << 4 | low;
            i += 2;
        }
        *(*to)++ = (char)c;
    }
    *ret_text = slice_of(begin, (size_t)(*to - begin));
    return true;
}

/* One name=value, as it came. */
static bool take_pair(struct ingest_query *query, struct slice pair, char **to)
{
    struct slice key;
    struct slice value = {.size = 0};
    const uint8_t *equals = pair.size > 0 ? memchr(pair.data, '=', pair.size) : NULL;
    size_t size = equals != NULL ? (size_t)(equals - pair.data) : pair.size;
    if (!decode(slice_of(pair.data, size), to, &key))
        return false;
    if (equals != NULL && !decode(slice_of(equals + 1, pair.size - size - 1), to, &value))
        return false;
    if (value.data == NULL)
        value = slice_of(*to, 0);
    for (unsigned i = 0; i < INGEST_PARAMETERS; i++)
        if (slice_equal_text(key, names[i]) && query->values[i].data == NULL)
            query->values[i] = value;
    return true;
}

static bool split(struct ingest_query *query, struct slice text, struct error *error)
{
    char *to = query->memory;
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '&', text.size);
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;
        if (!take_pair(query, slice_of(text.data, size), &to))
            return error_set(error, "invalid URL escape in the query");
        text = end != NULL ? slice_of(end + 1, text.size - size - 1) : slice_of(NULL, 0);
    }
    for (unsigned i = 0; i < INGEST_PARAMETERS; i++)
        if (otlp_text_valid(query->values[i]) < query->values[i].size)
            return error_set(error, "%s: found bytes that are no UTF-8", names[i]);
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

/* What is no number counts as the default, and of larger ones the lower 32 bits, as on the server.
 */
static uint64_t read_rate(struct slice text)
{
    uint64_t rate = 0;
    if (text.size == 0 || text.size > NUMBER_DIGITS_MAX)
        return SAMPLE_RATE_DEFAULT;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return SAMPLE_RATE_DEFAULT;
        rate = rate * 10 + (uint64_t)(text.data[i] - '0');
    }
    return (uint32_t)rate;
}

static bool read_values(struct ingest_query *query, uint64_t now_ns, struct error *error)
{
    if (!ingest_name_parse(query->values[INGEST_NAME], &query->name, error) ||
        !read_time(query, INGEST_FROM, now_ns, &query->from_ns, error) ||
        !read_time(query, INGEST_UNTIL, now_ns, &query->until_ns, error))
        return false;
    query->sample_rate = read_rate(query->values[INGEST_SAMPLE_RATE]);
    query->spy_name = query->values[INGEST_SPY_NAME];
    if (query->spy_name.size == 0)
        query->spy_name = slice_of_text("unknown");
    return true;
}

bool ingest_query_parse(struct ingest_query *query, struct slice text, uint64_t now_ns,
                        struct error *error)
{
    assert(error != NULL);
    *query = (struct ingest_query){.memory = NULL};
    if (text.size > UPLOAD_QUERY_BYTES_MAX)
        return error_set(error, "the query has %zu bytes, expected at most %d", text.size,
                         UPLOAD_QUERY_BYTES_MAX);
    query->memory = mem_alloc(text.size + 1);
    if (split(query, text, error) && read_values(query, now_ns, error))
        return true;
    ingest_query_fini(query);
    return false;
}

void ingest_query_fini(struct ingest_query *query)
{
    assert(query != NULL);
    mem_free(query->memory);
    query->memory = NULL;
}
