/* SPDX-License-Identifier: Apache-2.0 */
/* Texts are written as they come. In protobuf a message is written first, then moved back to make
 * room for its tag and size. */
#include "src/prometheus/exposition.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"

enum {
    FIRST_BYTES = 4096,
    GROWTH_PART = 8, /* when there is no room for twice as much */
    DIGITS_MAX = 17,
    NUMBER_BYTES_MAX = EXPOSITION_NUMBER_BYTES_MAX - 2,
    HEADER_BYTES_MAX = 10, /* tag and size of a message */
    ID_TEXT_BYTES = 32,
};

void exposition_init(struct exposition *exposition, const struct exposition_format *format,
                     struct budget *budget)
{
    *exposition = (struct exposition){.format = *format, .budget = budget, .family_at = SIZE_MAX};
}

void exposition_fini(struct exposition *exposition)
{
    mem_free_large(exposition->data, exposition->capacity);
    mem_free(exposition->line_name);
    if (exposition->budget != NULL)
        budget_return(exposition->budget, exposition->capacity);
}

static bool grow(struct exposition *exposition, size_t capacity)
{
    size_t more = capacity - exposition->capacity;
    bool has_room = exposition->budget == NULL || budget_try_take(exposition->budget, more);
    uint8_t *data =
        has_room ? mem_try_resize_large(exposition->data, exposition->capacity, capacity) : NULL;
    if (data == NULL) {
        if (has_room && exposition->budget != NULL)
            budget_return(exposition->budget, more);
        return false;
    }
    exposition->data = data;
    exposition->capacity = capacity;
    return true;
}

void exposition_expect(struct exposition *exposition, size_t bytes)
{
    /* Without it, room is made as it is needed. */
    if (bytes > exposition->capacity)
        (void)grow(exposition, bytes);
}

/* Returns room for so many bytes, or NULL. */
static uint8_t *room(struct exposition *exposition, size_t size)
{
    size_t needed = exposition->size + size;
    if (exposition->has_failed)
        return NULL;
    if (needed > exposition->capacity) {
        size_t capacity = 2 * exposition->capacity + FIRST_BYTES;
        /* So that a budget with room for the text is not refused room that it may not need. */
        if (!budget_has_room(exposition->budget, capacity - exposition->capacity))
            capacity = exposition->capacity + exposition->capacity / GROWTH_PART;
        if (!grow(exposition, capacity > needed ? capacity : needed)) {
            exposition->has_failed = true;
            return NULL;
        }
    }
    return exposition->data + exposition->size;
}

static void add(struct exposition *exposition, struct slice bytes)
{
    uint8_t *at = room(exposition, bytes.size);
    if (at == NULL || bytes.size == 0)
        return;
    memcpy(at, bytes.data, bytes.size);
    exposition->size += bytes.size;
}

static void add_text(struct exposition *exposition, const char *text)
{
    add(exposition, slice_of_text(text));
}

static int whole_digits(uint64_t whole, char digits[DIGITS_MAX + 1])
{
    char text[DIGITS_MAX + 1];
    char *at = text + sizeof(text);
    for (; whole > 0; whole /= 10)
        *--at = (char)('0' + whole % 10);
    const size_t size = (size_t)(text + sizeof(text) - at);
    memcpy(digits, at, size);
    return (int)size;
}

/* The fewest digits that read back the same. Returns how many; the value is 0.DIGITS × 10^exponent.
 * Of few decimals they are found by trying: dividing integers below 2^53 by powers of ten up to
 * 10^22 rounds correctly. */
static int shortest_digits(double value, char digits[DIGITS_MAX + 1], int *ret_exponent)
{
    enum { DECIMALS_MAX = 9, SCIENTIFIC_BYTES = DIGITS_MAX + 10 };
    static const double exact_max = 9007199254740992.0;
    double power = 1;
    assert(value > 0);
    for (int decimals = 0; decimals <= DECIMALS_MAX && value * power < exact_max; decimals++) {
        /* What is whole needs no rounding, which is a call. */
        double whole = (double)(int64_t)(value * power);
        whole = whole == value * power ? whole : nearbyint(value * power);
        if (whole > 0 && whole < exact_max && whole / power == value) {
            int size = whole_digits((uint64_t)whole, digits);
            *ret_exponent = size - decimals;
            while (size > 1 && digits[size - 1] == '0')
                size--;
            if (size <= 15)
                return size;
            break;
        }
        power *= 10;
    }
    /* Decimals of up to 15 digits survive, but for subnormal numbers. */
    for (int count = value < DBL_MIN ? 1 : 15;; count++) {
        char text[SCIENTIFIC_BYTES];
        snprintf(text, sizeof(text), "%.*e", count - 1, value);
        if (count < DIGITS_MAX && strtod(text, NULL) != value)
            continue;
        *ret_exponent = atoi(strchr(text, 'e') + 1) + 1;
        digits[0] = text[0];
        memcpy(digits + 1, text + 2, (size_t)count - 1);
        while (count > 1 && digits[count - 1] == '0')
            count--;
        return count;
    }
}

/* strconv's format 'g' with the fewest digits: with an exponent below 10^-4 and from 10^6 on. */
static size_t number_text(double value, char text[NUMBER_BYTES_MAX])
{
    enum { EXPONENT_FROM = 6 };
    char digits[DIGITS_MAX + 1];
    char *at = text;
    int exponent;
    if (value < 0 || (value == 0 && signbit(value)))
        *at++ = '-';
    int count = shortest_digits(fabs(value), digits, &exponent);
    if (exponent - 1 < -4 || exponent - 1 >= EXPONENT_FROM) {
        *at++ = digits[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, (size_t)count - 1);
            at += count - 1;
        }
        const int power = abs(exponent - 1);
        *at++ = 'e';
        *at++ = exponent > 0 ? '+' : '-';
        if (power >= 100)
            *at++ = (char)('0' + power / 100);
        *at++ = (char)('0' + power / 10 % 10);
        *at++ = (char)('0' + power % 10);
        return (size_t)(at - text);
    }
    if (exponent <= 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = exponent; i < 0; i++)
            *at++ = '0';
    }
    for (int i = 0; i < count || i < exponent; i++) {
        if (i == exponent && i > 0)
            *at++ = '.';
        *at++ = i < count ? digits[i] : '0';
    }
    return (size_t)(at - text);
}

/* OpenMetrics writes whole numbers with ".0" where they are not counts. */
static size_t number_of_form(double value, bool is_openmetrics,
                             char text[EXPOSITION_NUMBER_BYTES_MAX])
{
    size_t size;
    if (isnan(value) || isinf(value)) {
        const char *word = isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
        size = strlen(word);
        memcpy(text, word, size);
        return size;
    }
    if (value == 0) {
        text[0] = '0';
        size = 1;
    } else {
        size = number_text(value, text);
    }
    if (is_openmetrics && memchr(text, '.', size) == NULL && memchr(text, 'e', size) == NULL) {
        text[size++] = '.';
        text[size++] = '0';
    }
    return size;
}

size_t exposition_openmetrics_number(double value, char text[EXPOSITION_NUMBER_BYTES_MAX])
{
    return number_of_form(value, true, text);
}

static void add_number(struct exposition *exposition, double value)
{
    char text[EXPOSITION_NUMBER_BYTES_MAX];
    bool is_openmetrics = exposition->format.form != EXPOSITION_TEXT;
    add(exposition, slice_of(text, number_of_form(value, is_openmetrics, text)));
}

static void add_count(struct exposition *exposition, uint64_t count)
{
    if (exposition->format.form == EXPOSITION_TEXT) {
        add_number(exposition, (double)count);
        return;
    }
    char text[NUMBER_BYTES_MAX];
    int size = snprintf(text, sizeof(text), "%" PRIu64, count);
    add(exposition, slice_of(text, (size_t)size));
}

/* With escapes for line ends, backslashes and, in quoted text, quotes. */
static size_t escape_text(struct slice text, bool is_quoted, char *escaped)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '\\' || byte == '\n' || (is_quoted && byte == '"')) {
            escaped[size++] = '\\';
            byte = byte == '\n' ? 'n' : byte;
        }
        escaped[size++] = (char)byte;
    }
    return size;
}

static void add_escaped(struct exposition *exposition, struct slice text, bool is_quoted)
{
    uint8_t *at = room(exposition, 2 * text.size);
    if (at != NULL)
        exposition->size += escape_text(text, is_quoted, (char *)at);
}

/* A name, escaped for the client, without quotes. */
static void add_escaped_name(struct exposition *exposition, struct slice name)
{
    uint8_t *at = room(exposition, prometheus_escape_max(name));
    if (at != NULL)
        exposition->size += prometheus_escape(exposition->format.escaping, name, (char *)at);
}

size_t exposition_escape(struct slice value, char *text)
{
    return escape_text(value, true, text);
}

static bool is_quoted_name(const struct exposition *exposition, struct slice name)
{
    return exposition->format.escaping == ESCAPING_NONE && !prometheus_name_is_plain(name);
}

size_t exposition_label_max(struct slice name, struct slice value)
{
    return 2 * name.size + 2 * value.size + sizeof("\"\"=\"\"");
}

size_t exposition_label(struct slice name, struct slice value, char *text)
{
    size_t size = 0;
    bool is_plain = prometheus_name_is_plain(name);
    if (!is_plain)
        text[size++] = '"';
    size += escape_text(name, true, text + size);
    if (!is_plain)
        text[size++] = '"';
    text[size++] = '=';
    text[size++] = '"';
    size += escape_text(value, true, text + size);
    text[size++] = '"';
    return size;
}

/* Up to the next quote that is not escaped; text begins behind the first one. */
static struct slice quoted(const uint8_t *text, const uint8_t *end)
{
    const uint8_t *at = text;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    assert(at < end);
    return slice_of(text, (size_t)(at - text));
}

bool exposition_label_next(struct slice *labels, struct slice *ret_name, struct slice *ret_value)
{
    const uint8_t *at = labels->data;
    const uint8_t *end = at + labels->size;
    if (labels->size == 0)
        return false;
    if (*at == '"') {
        *ret_name = quoted(at + 1, end);
        at = ret_name->data + ret_name->size + 1;
    } else {
        const uint8_t *equal = memchr(at, '=', labels->size);
        assert(equal != NULL);
        *ret_name = slice_of(at, (size_t)(equal - at));
        at = equal;
    }
    *ret_value = quoted(at + 2, end);
    at = ret_value->data + ret_value->size + 1;
    at += at < end; /* the comma */
    *labels = slice_of(at, (size_t)(end - at));
    return true;
}

/* What exposition_label escaped. */
static size_t unescape(struct slice text, uint8_t *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '\\' && i + 1 < text.size) {
            byte = text.data[++i];
            byte = byte == 'n' ? '\n' : byte;
        }
        out[size++] = byte;
    }
    return size;
}

/* Labels for a client that does not take all names; a name in the text is escaped once more. */
static void add_labels(struct exposition *exposition, const struct exposition_sample *sample)
{
    if (sample->has_plain_labels || exposition->format.escaping == ESCAPING_NONE) {
        add(exposition, sample->labels);
        return;
    }
    struct slice labels = sample->labels;
    struct slice name;
    struct slice value;
    bool is_first = true;
    while (exposition_label_next(&labels, &name, &value)) {
        if (!is_first)
            add_text(exposition, ",");
        is_first = false;
        uint8_t *plain = mem_try_alloc(name.size + 1);
        if (plain == NULL) {
            exposition->has_failed = true;
            return;
        }
        add_escaped_name(exposition, slice_of(plain, unescape(name, plain)));
        mem_free(plain);
        add_text(exposition, "=\"");
        add(exposition, value);
        add_text(exposition, "\"");
    }
}

static void add_exemplar(struct exposition *exposition, const struct exposition_exemplar *exemplar)
{
    char id[ID_TEXT_BYTES];
    if (exemplar == NULL || exposition->format.form == EXPOSITION_TEXT ||
        !(exemplar->has_trace_id || exemplar->has_span_id))
        return;
    add_text(exposition, " # {");
    if (exemplar->has_trace_id) {
        add_text(exposition, "trace_id=\"");
        add(exposition, hex_write(exemplar->trace_id, sizeof(exemplar->trace_id), id));
        add_text(exposition, exemplar->has_span_id ? "\"," : "\"");
    }
    if (exemplar->has_span_id) {
        add_text(exposition, "span_id=\"");
        add(exposition, hex_write(exemplar->span_id, sizeof(exemplar->span_id), id));
        add_text(exposition, "\"");
    }
    add_text(exposition, "} ");
    add_number(exposition, exemplar->value);
    add_text(exposition, " ");
    add_number(exposition, (double)(int64_t)exemplar->time_ns / 1e9);
}

static void put(uint8_t **at, const void *data, size_t size)
{
    memcpy(*at, data, size);
    *at += size;
}

/* The name, labels and maybe one more label with a number. */
static void begin_line(struct exposition *exposition, const struct exposition_sample *sample,
                       const char *suffix, const char *label, double bound)
{
    enum { PUNCTUATION_BYTES = 4 };
    size_t suffix_bytes = strlen(suffix);
    bool is_quoted = exposition->is_quoted;
    bool has_labels = sample->labels.size > 0;
    uint8_t *begin =
        room(exposition, exposition->line_name_bytes + suffix_bytes + PUNCTUATION_BYTES);
    uint8_t *at = begin;
    if (begin == NULL)
        return;
    put(&at, exposition->line_name, exposition->line_name_bytes);
    put(&at, suffix, suffix_bytes);
    if (is_quoted)
        put(&at, "\"", 1);
    if (has_labels || label != NULL)
        put(&at, is_quoted ? "," : "{", 1);
    exposition->size += (size_t)(at - begin);
    if (has_labels)
        add_labels(exposition, sample);
    if (label != NULL) {
        if (has_labels)
            add_text(exposition, ",");
        add_text(exposition, label);
        add_text(exposition, "=\"");
        add_number(exposition, bound);
        add_text(exposition, "\"");
    }
    add_text(exposition, is_quoted || has_labels || label != NULL ? "} " : " ");
}

static void end_line(struct exposition *exposition, const struct exposition_sample *sample,
                     const struct exposition_exemplar *exemplar)
{
    if (sample->has_time) {
        int64_t time_ms = (int64_t)sample->time_ns / (int64_t)NS_PER_MS;
        add_text(exposition, " ");
        if (exposition->format.form == EXPOSITION_TEXT) {
            char text[NUMBER_BYTES_MAX];
            int size = snprintf(text, sizeof(text), "%" PRId64, time_ms);
            add(exposition, slice_of(text, (size_t)size));
        } else {
            add_number(exposition, (double)time_ms / 1000);
        }
    }
    add_exemplar(exposition, exemplar);
    add_text(exposition, "\n");
}

static void add_value_line(struct exposition *exposition, const struct exposition_sample *sample,
                           const char *suffix, double value,
                           const struct exposition_exemplar *exemplar)
{
    begin_line(exposition, sample, suffix, NULL, 0);
    add_number(exposition, value);
    end_line(exposition, sample, exemplar);
}

static void add_count_line(struct exposition *exposition, const struct exposition_sample *sample,
                           const char *suffix, uint64_t count)
{
    begin_line(exposition, sample, suffix, NULL, 0);
    add_count(exposition, count);
    end_line(exposition, sample, NULL);
}

static void add_bucket_line(struct exposition *exposition, const struct exposition_sample *sample,
                            double bound, uint64_t count,
                            const struct exposition_exemplar *exemplar)
{
    begin_line(exposition, sample, "_bucket", "le", bound);
    add_count(exposition, count);
    end_line(exposition, sample, exemplar);
}

static void add_lines(struct exposition *exposition, const struct exposition_sample *sample)
{
    bool has_infinity = false;
    switch (exposition->family.type) {
    case EXPOSITION_COUNTER:
        add_value_line(exposition, sample, "", sample->value,
                       sample->exemplars_count > 0 ? &sample->exemplars[sample->exemplars_count - 1]
                                                   : NULL);
        return;
    case EXPOSITION_GAUGE:
        add_value_line(exposition, sample, "", sample->value, NULL);
        return;
    case EXPOSITION_SUMMARY:
        for (size_t i = 0; i < sample->buckets_count; i++) {
            begin_line(exposition, sample, "", "quantile", sample->buckets[i].bound);
            add_number(exposition, sample->buckets[i].value);
            end_line(exposition, sample, NULL);
        }
        break;
    case EXPOSITION_HISTOGRAM:
        for (size_t i = 0; i < sample->buckets_count; i++) {
            const struct exposition_bucket *bucket = &sample->buckets[i];
            add_bucket_line(exposition, sample, bucket->bound, bucket->count, bucket->exemplar);
            has_infinity |= isinf(bucket->bound) && bucket->bound > 0;
        }
        if (!has_infinity)
            add_bucket_line(exposition, sample, (double)INFINITY, sample->count, NULL);
        break;
    }
    add_value_line(exposition, sample, "_sum", sample->value, NULL);
    add_count_line(exposition, sample, "_count", sample->count);
}

static const char *type_name(enum exposition_type type)
{
    return type == EXPOSITION_COUNTER   ? "counter"
           : type == EXPOSITION_GAUGE   ? "gauge"
           : type == EXPOSITION_SUMMARY ? "summary"
                                        : "histogram";
}

/* False: no memory. */
static bool set_line_name(struct exposition *exposition)
{
    struct slice name = exposition->family.name;
    mem_free(exposition->line_name);
    exposition->is_quoted = is_quoted_name(exposition, name);
    exposition->line_name = mem_try_alloc(2 + 2 * name.size + prometheus_escape_max(name));
    if (exposition->line_name == NULL)
        return false;
    char *text = exposition->line_name;
    if (exposition->is_quoted) {
        memcpy(text, "{\"", 2);
        exposition->line_name_bytes = 2 + escape_text(name, true, text + 2);
    } else {
        exposition->line_name_bytes = prometheus_escape(exposition->format.escaping, name, text);
    }
    return true;
}

/* The name in the comments. OpenMetrics names a family of counters without "_total", and takes one
 * that does not end so for unknown. */
static struct slice comment_name(const struct exposition *exposition, bool *ret_is_unknown)
{
    static const char total[] = "_total";
    const size_t total_bytes = sizeof(total) - 1;
    size_t begin = exposition->is_quoted ? 2 : 0;
    struct slice name =
        slice_of(exposition->line_name + begin, exposition->line_name_bytes - begin);
    *ret_is_unknown = false;
    if (exposition->format.form == EXPOSITION_TEXT || exposition->family.type != EXPOSITION_COUNTER)
        return name;
    *ret_is_unknown = name.size < total_bytes ||
                      memcmp(name.data + name.size - total_bytes, total, total_bytes) != 0;
    return *ret_is_unknown ? name : slice_of(name.data, name.size - total_bytes);
}

static void add_comment(struct exposition *exposition, const char *keyword, struct slice name)
{
    bool is_quoted = exposition->is_quoted || name.size == 0;
    add_text(exposition, keyword);
    add_text(exposition, is_quoted ? "\"" : "");
    add(exposition, name);
    add_text(exposition, is_quoted ? "\" " : " ");
}

static void add_comments(struct exposition *exposition)
{
    bool is_unknown;
    struct slice name = comment_name(exposition, &is_unknown);
    add_comment(exposition, "# HELP ", name);
    add_escaped(exposition, exposition->family.help, exposition->format.form != EXPOSITION_TEXT);
    add_comment(exposition, "\n# TYPE ", name);
    add_text(exposition, is_unknown ? "unknown" : type_name(exposition->family.type));
    add_text(exposition, "\n");
}

/* Protobuf. A message is begun by noting where it begins, and ended by putting tag and size in
 * front of it. */
static size_t begin_message(const struct exposition *exposition)
{
    return exposition->size;
}

/* number 0: only the size. */
static void end_message(struct exposition *exposition, size_t begin, uint32_t number)
{
    uint8_t header[HEADER_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(header, sizeof(header));
    size_t size = exposition->size - begin;
    if (exposition->has_failed)
        return;
    if (number > 0)
        wire_write_header(&writer, number, size);
    else
        wire_write_varint(&writer, size);
    struct slice written = wire_written(&writer);
    if (room(exposition, written.size) == NULL)
        return;
    memmove(exposition->data + begin + written.size, exposition->data + begin, size);
    memcpy(exposition->data + begin, written.data, written.size);
    exposition->size += written.size;
}

static void put_varint(struct exposition *exposition, uint32_t number, uint64_t value)
{
    uint8_t field[HEADER_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(field, sizeof(field));
    wire_write_varint(&writer, wire_tag(number, WIRE_VARINT));
    wire_write_varint(&writer, value);
    add(exposition, wire_written(&writer));
}

static void put_double(struct exposition *exposition, uint32_t number, double value)
{
    uint8_t field[HEADER_BYTES_MAX + sizeof(value)];
    uint64_t bits;
    struct wire_writer writer = wire_writer_of(field, sizeof(field));
    memcpy(&bits, &value, sizeof(bits));
    wire_write_fixed64(&writer, number, bits);
    add(exposition, wire_written(&writer));
}

static void put_bytes(struct exposition *exposition, uint32_t number, struct slice bytes)
{
    size_t begin = begin_message(exposition);
    add(exposition, bytes);
    end_message(exposition, begin, number);
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* google.protobuf.Timestamp: 1 seconds, 2 nanos. */
static void put_timestamp(struct exposition *exposition, uint32_t number, uint64_t time_ns)
{
    size_t begin = begin_message(exposition);
    if (time_ns / NS_PER_S != 0)
        put_varint(exposition, 1, time_ns / NS_PER_S);
    if (time_ns % NS_PER_S != 0)
        put_varint(exposition, 2, time_ns % NS_PER_S);
    end_message(exposition, begin, number);
}

/* LabelPair: 1 name, 2 value. */
static void put_label(struct exposition *exposition, struct slice name, struct slice value)
{
    size_t begin = begin_message(exposition);
    put_bytes(exposition, 1, name);
    put_bytes(exposition, 2, value);
    end_message(exposition, begin, 1);
}

static void put_id(struct exposition *exposition, const char *name, const uint8_t *id, size_t bytes)
{
    char text[ID_TEXT_BYTES];
    assert(2 * bytes <= sizeof(text));
    put_label(exposition, slice_of_text(name), hex_write(id, bytes, text));
}

/* Exemplar: 1 label, 2 value, 3 timestamp. */
static void put_exemplar(struct exposition *exposition, uint32_t number,
                         const struct exposition_exemplar *exemplar)
{
    size_t begin = begin_message(exposition);
    if (exemplar->has_trace_id)
        put_id(exposition, "trace_id", exemplar->trace_id, sizeof(exemplar->trace_id));
    if (exemplar->has_span_id)
        put_id(exposition, "span_id", exemplar->span_id, sizeof(exemplar->span_id));
    put_double(exposition, 2, exemplar->value);
    put_timestamp(exposition, 3, exemplar->time_ns);
    end_message(exposition, begin, number);
}

static void put_labels(struct exposition *exposition, struct slice labels)
{
    struct slice name;
    struct slice value;
    while (exposition_label_next(&labels, &name, &value)) {
        uint8_t *plain = mem_try_alloc(name.size + value.size + 1);
        if (plain == NULL) {
            exposition->has_failed = true;
            return;
        }
        struct slice plain_name = slice_of(plain, unescape(name, plain));
        struct slice plain_value = slice_of(plain + name.size, unescape(value, plain + name.size));
        size_t begin = begin_message(exposition);
        size_t name_begin = begin_message(exposition);
        add_escaped_name(exposition, plain_name);
        end_message(exposition, name_begin, 1);
        put_bytes(exposition, 2, plain_value);
        end_message(exposition, begin, 1);
        mem_free(plain);
    }
}

/* Buckets with gaps of one or two between them share a span. BucketSpan: 1 offset, 2 length. */
static void put_spans(struct exposition *exposition, const struct exposition_native_bucket *buckets,
                      size_t count, uint32_t spans_number, uint32_t deltas_number)
{
    enum { GAP_MAX = 2 };
    int64_t next = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && (int64_t)buckets[end].index - buckets[end - 1].index - 1 <= GAP_MAX)
            end++;
        size_t begin = begin_message(exposition);
        int64_t last = buckets[end - 1].index;
        put_varint(exposition, 1, zigzag(buckets[i].index - next));
        put_varint(exposition, 2, (uint64_t)(last - buckets[i].index + 1));
        end_message(exposition, begin, spans_number);
        next = last + 1;
        i = end;
    }
    uint64_t previous = 0; /* deltas wrap, as in the Go client */
    for (size_t i = 0; i < count; i++) {
        int64_t gap = i > 0 ? (int64_t)buckets[i].index - buckets[i - 1].index - 1 : 0;
        for (int64_t k = 0; gap <= GAP_MAX && k < gap; k++) {
            put_varint(exposition, deltas_number, zigzag((int64_t)(0 - previous)));
            previous = 0;
        }
        put_varint(exposition, deltas_number, zigzag((int64_t)(buckets[i].count - previous)));
        previous = buckets[i].count;
    }
}

/* Histogram: 5 schema, 6 zero_threshold, 7 zero_count, 9 and 12 spans, 10 and 13 deltas, negative
 * and positive. */
static void put_native(struct exposition *exposition, const struct exposition_sample *sample)
{
    const struct exposition_native *native = sample->native;
    put_varint(exposition, 5, zigzag(native->schema));
    put_double(exposition, 6, native->zero_threshold);
    put_varint(exposition, 7, native->zero_count);
    put_spans(exposition, native->negative, native->negative_count, 9, 10);
    put_spans(exposition, native->positive, native->positive_count, 12, 13);
}

/* Gauge: 1 value. Counter: 1 value, 2 exemplar, 3 created. Summary: 1 count, 2 sum, 3 quantile (1
 * quantile, 2 value), 4 created. Histogram: 1 count, 2 sum, 3 bucket (1 cumulative count, 2 bound,
 * 3 exemplar), 15 created, 16 exemplars. */
static void put_data(struct exposition *exposition, const struct exposition_sample *sample)
{
    enum exposition_type type = exposition->family.type;
    if (type == EXPOSITION_GAUGE || type == EXPOSITION_COUNTER) {
        put_double(exposition, 1, sample->value);
        if (type == EXPOSITION_COUNTER && sample->exemplars_count > 0)
            put_exemplar(exposition, 2, &sample->exemplars[sample->exemplars_count - 1]);
        if (type == EXPOSITION_COUNTER && sample->created_ns > 0)
            put_timestamp(exposition, 3, sample->created_ns);
        return;
    }
    put_varint(exposition, 1, sample->count);
    put_double(exposition, 2, sample->value);
    for (size_t i = 0; i < sample->buckets_count; i++) {
        const struct exposition_bucket *bucket = &sample->buckets[i];
        size_t begin = begin_message(exposition);
        if (type == EXPOSITION_SUMMARY) {
            put_double(exposition, 1, bucket->bound);
            put_double(exposition, 2, bucket->value);
        } else {
            put_varint(exposition, 1, bucket->count);
            put_double(exposition, 2, bucket->bound);
            if (bucket->exemplar != NULL)
                put_exemplar(exposition, 3, bucket->exemplar);
        }
        end_message(exposition, begin, 3);
    }
    if (sample->native != NULL)
        put_native(exposition, sample);
    if (sample->created_ns > 0)
        put_timestamp(exposition, type == EXPOSITION_SUMMARY ? 4 : 15, sample->created_ns);
    for (size_t i = 0; sample->native != NULL && i < sample->exemplars_count; i++)
        put_exemplar(exposition, 16, &sample->exemplars[i]);
}

/* Metric: 1 label, 2 gauge, 3 counter, 4 summary, 6 timestamp_ms, 7 histogram. */
static void put_metric(struct exposition *exposition, const struct exposition_sample *sample)
{
    static const uint32_t numbers[] = {[EXPOSITION_COUNTER] = 3,
                                       [EXPOSITION_GAUGE] = 2,
                                       [EXPOSITION_SUMMARY] = 4,
                                       [EXPOSITION_HISTOGRAM] = 7};
    enum { TIMESTAMP_MS = 6 };
    int64_t time_ms = (int64_t)sample->time_ns / (int64_t)NS_PER_MS;
    size_t begin = begin_message(exposition);
    put_labels(exposition, sample->labels);
    uint32_t number = numbers[exposition->family.type];
    /* In the order of the numbers. */
    if (sample->has_time && number > TIMESTAMP_MS)
        put_varint(exposition, TIMESTAMP_MS, (uint64_t)time_ms);
    size_t data_begin = begin_message(exposition);
    put_data(exposition, sample);
    end_message(exposition, data_begin, number);
    if (sample->has_time && number < TIMESTAMP_MS)
        put_varint(exposition, TIMESTAMP_MS, (uint64_t)time_ms);
    end_message(exposition, begin, 4);
}

/* MetricFamily: 1 name, 2 help, 3 type. */
static void put_family(struct exposition *exposition)
{
    exposition->family_at = begin_message(exposition);
    size_t begin = begin_message(exposition);
    add_escaped_name(exposition, exposition->family.name);
    end_message(exposition, begin, 1);
    put_bytes(exposition, 2, exposition->family.help);
    put_varint(exposition, 3, exposition->family.type);
}

static void end_family(struct exposition *exposition)
{
    if (exposition->family_at != SIZE_MAX)
        end_message(exposition, exposition->family_at, 0);
    exposition->family_at = SIZE_MAX;
}

void exposition_begin(struct exposition *exposition, const struct exposition_family *family)
{
    end_family(exposition);
    exposition->family = *family;
    if (exposition->format.form == EXPOSITION_PROTOBUF)
        put_family(exposition);
    else if (set_line_name(exposition))
        add_comments(exposition);
    else
        exposition->has_failed = true;
}

void exposition_add(struct exposition *exposition, const struct exposition_sample *sample)
{
    if (exposition->format.form == EXPOSITION_PROTOBUF)
        put_metric(exposition, sample);
    else
        add_lines(exposition, sample);
}

void exposition_end(struct exposition *exposition)
{
    end_family(exposition);
    if (exposition->format.form == EXPOSITION_OPENMETRICS_0 ||
        exposition->format.form == EXPOSITION_OPENMETRICS_1)
        add_text(exposition, "# EOF\n");
}

static const char *const escaping_names[] = {
    [ESCAPING_NONE] = "allow-utf-8",
    [ESCAPING_UNDERSCORES] = "underscores",
    [ESCAPING_DOTS] = "dots",
    [ESCAPING_VALUES] = "values",
};

#define PROTOBUF_TYPE    "application/vnd.google.protobuf"
#define PROTOBUF_MESSAGE "io.prometheus.client.MetricFamily"

void exposition_content_type(const struct exposition_format *format,
                             char text[EXPOSITION_TYPE_BYTES_MAX])
{
    static const char *const types[] = {
        [EXPOSITION_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [EXPOSITION_OPENMETRICS_0] = "application/openmetrics-text; version=0.0.1; charset=utf-8",
        [EXPOSITION_OPENMETRICS_1] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
        [EXPOSITION_PROTOBUF] = PROTOBUF_TYPE "; proto=" PROTOBUF_MESSAGE "; encoding=delimited",
    };
    snprintf(text, EXPOSITION_TYPE_BYTES_MAX, "%s; escaping=%s", types[format->form],
             escaping_names[format->escaping]);
}

/* One media range of Accept. */
struct range {
    struct slice type;
    struct slice version;
    struct slice proto;
    struct slice encoding;
    struct slice escaping;
    double quality;
};

static struct slice until(struct slice text, char separator)
{
    const uint8_t *at = text.size > 0 ? memchr(text.data, separator, text.size) : NULL;
    return at != NULL ? slice_of(text.data, (size_t)(at - text.data)) : text;
}

/* What comes behind the part and its separator. */
static struct slice behind(struct slice text, struct slice part)
{
    size_t used = part.size < text.size ? part.size + 1 : text.size;
    return slice_of(text.data + used, text.size - used);
}

static double quality_of(struct slice text)
{
    char copy[NUMBER_BYTES_MAX];
    char *end;
    size_t size = text.size < sizeof(copy) - 1 ? text.size : sizeof(copy) - 1;
    memcpy(copy, text.data, size);
    copy[size] = '\0';
    double quality = strtod(copy, &end);
    return size > 0 && *end == '\0' ? quality : 1;
}

static struct range range_of(struct slice text)
{
    struct range range = {.quality = 1};
    struct slice part = until(text, ';');
    range.type = slice_trim(part);
    while (part.size < text.size) {
        text = behind(text, part);
        part = until(text, ';');
        struct slice key = until(part, '=');
        if (key.size == part.size)
            continue;
        struct slice value = slice_trim(behind(part, key));
        key = slice_trim(key);
        if (slice_equal_text(key, "version"))
            range.version = value;
        else if (slice_equal_text(key, "proto"))
            range.proto = value;
        else if (slice_equal_text(key, "encoding"))
            range.encoding = value;
        else if (slice_equal_text(key, "escaping"))
            range.escaping = value;
        else if (slice_equal_text(key, "q"))
            range.quality = quality_of(value);
    }
    return range;
}

/* Whether the range names a form that there is. */
static bool form_of(const struct range *range, bool has_openmetrics, enum exposition_form *ret_form)
{
    bool has_version = range->version.size > 0;
    if (slice_equal_text(range->type, PROTOBUF_TYPE)) {
        *ret_form = EXPOSITION_PROTOBUF;
        return slice_equal_text(range->proto, PROTOBUF_MESSAGE) &&
               slice_equal_text(range->encoding, "delimited");
    }
    if (slice_equal_text(range->type, "text/plain")) {
        *ret_form = EXPOSITION_TEXT;
        return !has_version || slice_equal_text(range->version, "0.0.4");
    }
    if (!has_openmetrics || !slice_equal_text(range->type, "application/openmetrics-text"))
        return false;
    bool is_first = slice_equal_text(range->version, "1.0.0");
    *ret_form = is_first ? EXPOSITION_OPENMETRICS_1 : EXPOSITION_OPENMETRICS_0;
    return is_first || !has_version || slice_equal_text(range->version, "0.0.1");
}

/* Ranges in the order of their quality, those of equal quality as they come, up to the first that
 * there is. Each that is passed may name an escaping, which then holds. */
struct exposition_format exposition_negotiate(struct slice accept, bool has_openmetrics)
{
    enum { RANGES_MAX = 32 };
    struct exposition_format format = {.form = EXPOSITION_TEXT, .escaping = ESCAPING_UNDERSCORES};
    struct range ranges[RANGES_MAX];
    size_t count = 0;
    while (accept.size > 0 && count < RANGES_MAX) {
        struct slice part = until(accept, ',');
        struct range range = range_of(part);
        size_t at = count++;
        for (; at > 0 && ranges[at - 1].quality < range.quality; at--)
            ranges[at] = ranges[at - 1];
        ranges[at] = range;
        accept = behind(accept, part);
    }
    for (size_t i = 0; i < count; i++) {
        enum exposition_form form;
        for (size_t k = 0; k < sizeof(escaping_names) / sizeof(escaping_names[0]); k++)
            if (slice_equal_text(ranges[i].escaping, escaping_names[k]))
                format.escaping = (enum prometheus_escaping)k;
        if (form_of(&ranges[i], has_openmetrics, &form)) {
            format.form = form;
            break;
        }
    }
    return format;
}
