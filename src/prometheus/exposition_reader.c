/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of the two text formats, without a table of tokens: a sample is read from left to right,
 * and what must be unescaped is, in a second pass that few samples need. Where the formats leave
 * room, or Prometheus is more tolerant than they are (NULs, missing commas, blanks before names),
 * the rules are Prometheus': comments say which. Run by whoever owns the reader. */
#include "src/prometheus/exposition_reader.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/net/syntax/media_type.h"
#include "src/prometheus/exposition.h"

enum {
    AT_END = -1,
    FOUND_BYTES_MAX = 40,         /* of the body, shown in a failure */
    LABEL_NUMBER_BYTES_MAX = 512, /* longer values of "le" and "quantile" are not numbers */
    EXACT_DIGITS_MAX = 19,        /* decimal digits that fit 64 bits */
};

enum exposition_protocol exposition_protocol_of(struct slice content_type,
                                                enum exposition_protocol fallback)
{
    if (media_type_is(content_type, "text/plain"))
        return EXPOSITION_PROTOCOL_TEXT;
    if (media_type_is(content_type, "application/openmetrics-text"))
        return EXPOSITION_PROTOCOL_OPENMETRICS;
    if (media_type_is(content_type, "application/vnd.google.protobuf"))
        return EXPOSITION_PROTOCOL_PROTOBUF;
    return fallback;
}

void exposition_reader_init(struct exposition_reader *reader, struct slice body,
                            enum exposition_protocol protocol, struct budget *budget)
{
    *reader = (struct exposition_reader){.labels = NULL, .budget = budget};
    exposition_reader_init_again(reader, body, protocol);
}

void exposition_reader_init_again(struct exposition_reader *reader, struct slice body,
                                  enum exposition_protocol protocol)
{
    assert(protocol == EXPOSITION_PROTOCOL_TEXT || protocol == EXPOSITION_PROTOCOL_OPENMETRICS);
    reader->has_failed = false;
    reader->failure_line = 0;
    reader->failure[0] = '\0';
    reader->body = body;
    reader->protocol = protocol;
    reader->type = EXPOSITION_METRIC_UNKNOWN;
    reader->at = 0;
    reader->line = 1;
    reader->is_done = false;
    reader->scratch_size = 0;
}

static void drop_scratch(struct exposition_reader *reader)
{
    mem_free(reader->scratch);
    if (reader->budget != NULL && reader->scratch_capacity > 0)
        budget_return(reader->budget, reader->scratch_capacity);
    reader->scratch = NULL;
    reader->scratch_capacity = 0;
}

void exposition_reader_fini(struct exposition_reader *reader)
{
    mem_free(reader->labels);
    reader->labels = NULL;
    drop_scratch(reader);
}

static bool is_text(const struct exposition_reader *reader)
{
    return reader->protocol == EXPOSITION_PROTOCOL_TEXT;
}

/* The byte there. The text format ends each body with one more end of line. */
static int byte_at(const struct exposition_reader *reader, size_t at)
{
    if (at < reader->body.size)
        return reader->body.data[at];
    return at == reader->body.size && is_text(reader) ? '\n' : AT_END;
}

static int peek(const struct exposition_reader *reader)
{
    return byte_at(reader, reader->at);
}

static struct slice between(const struct exposition_reader *reader, size_t from, size_t to)
{
    if (to > reader->body.size)
        to = reader->body.size;
    return from < to ? slice_of(reader->body.data + from, to - from) : (struct slice){.size = 0};
}

static bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t';
}

static bool begins_label_name(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool begins_metric_name(int byte)
{
    return begins_label_name(byte) || byte == ':';
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

/* Writes bytes that a log may show. */
static void add_printable(char *room, size_t room_bytes, struct slice bytes)
{
    size_t size = strlen(room);
    for (size_t i = 0; i < bytes.size && size + 5 < room_bytes; i++) {
        uint8_t byte = bytes.data[i];
        if (byte == '"' || byte == '\\')
            size += (size_t)snprintf(room + size, room_bytes - size, "\\%c", byte);
        else if (byte >= ' ' && byte < 0x7f)
            size += (size_t)snprintf(room + size, room_bytes - size, "%c", byte);
        else
            size += (size_t)snprintf(room + size, room_bytes - size, "\\x%02x", byte);
    }
}

/* What was found is the text at `at`, until the end of its line. Returns false. */
static bool fail_at(struct exposition_reader *reader, size_t at, const char *expected)
{
    char found[4 * FOUND_BYTES_MAX + 16] = "the end of the line";
    int byte = byte_at(reader, at);
    if (byte == AT_END) {
        strcpy(found, "the end of the body");
    } else if (byte != '\n') {
        struct slice rest = between(reader, at, at + FOUND_BYTES_MAX);
        const uint8_t *line_end = memchr(rest.data, '\n', rest.size);
        if (line_end != NULL)
            rest.size = (size_t)(line_end - rest.data);
        strcpy(found, "\"");
        add_printable(found, sizeof(found) - 2, rest);
        strcat(found, "\"");
    }
    snprintf(reader->failure, sizeof(reader->failure), "found %s, expected %s", found, expected);
    reader->failure_line = reader->line;
    reader->has_failed = true;
    reader->is_done = true;
    return false;
}

static bool fail(struct exposition_reader *reader, const char *expected)
{
    return fail_at(reader, reader->at, expected);
}

static bool fail_memory(struct exposition_reader *reader)
{
    fail(reader, "");
    snprintf(reader->failure, sizeof(reader->failure), "no memory for its escaped text");
    return false;
}

static void skip_blanks(struct exposition_reader *reader)
{
    while (is_blank(peek(reader)))
        reader->at++;
}

/* In some places Prometheus does not see NULs. */
static size_t after_nuls(const struct exposition_reader *reader, size_t at)
{
    while (at < reader->body.size && reader->body.data[at] == '\0')
        at++;
    return at;
}

/* The end of the line that at is in: the place of its \n, or the size of the body. */
static size_t line_end_from(const struct exposition_reader *reader, size_t at)
{
    if (at >= reader->body.size)
        return reader->body.size;
    const uint8_t *found = memchr(reader->body.data + at, '\n', reader->body.size - at);
    return found != NULL ? (size_t)(found - reader->body.data) : reader->body.size;
}

static void take_line_end(struct exposition_reader *reader)
{
    reader->at++;
    reader->line++;
}

struct quoted {
    struct slice text; /* between the quotes */
    bool has_escape;
    bool has_high; /* bytes that are not ASCII */
};

/* Takes a text in quotes. A line may end in it only where takes_line_end says so, and a NUL where
 * takes_nul does; what follows a backslash is never the end of a line. */
static bool take_quoted(struct exposition_reader *reader, bool takes_line_end, bool takes_nul,
                        struct quoted *ret_quoted)
{
    const uint8_t *data = reader->body.data;
    const size_t size = reader->body.size;
    const size_t start = reader->at;
    size_t at = start + 1;
    size_t lines = 0; /* that end in it */
    uint8_t seen = 0;
    assert(data[start] == '"');
    ret_quoted->has_escape = false;
    for (;; at++) {
        if (at >= size)
            return fail(reader, "a closing quote");
        uint8_t byte = data[at];
        seen |= byte;
        if (byte == '"')
            break;
        if (byte == '\\') {
            ret_quoted->has_escape = true;
            at++;
            if (takes_nul)
                at = after_nuls(reader, at);
            if (at >= size || data[at] == '\n' || data[at] == '\0')
                return fail(reader, "a closing quote, and a character after each backslash");
            seen |= data[at];
        } else if (byte == '\n') {
            if (!takes_line_end)
                return fail(reader, "a closing quote on the same line");
            lines++;
        } else if (byte == '\0' && !takes_nul) {
            return fail_at(reader, at, "no NUL in a name");
        }
    }
    /* Prometheus counts NULs behind the closing quote to the text, and cuts its last byte off. */
    reader->line += lines;
    reader->at = takes_nul ? after_nuls(reader, at + 1) : at + 1;
    ret_quoted->has_high = seen >= 0x80;
    ret_quoted->text = between(reader, start + 1, reader->at - 1);
    return true;
}

static size_t skip_label_name(const struct exposition_reader *reader, size_t at)
{
    while (at < reader->body.size &&
           (begins_label_name(reader->body.data[at]) || is_digit(reader->body.data[at])))
        at++;
    return at;
}

static size_t skip_metric_name(const struct exposition_reader *reader, size_t at)
{
    while (at < reader->body.size &&
           (begins_metric_name(reader->body.data[at]) || is_digit(reader->body.data[at])))
        at++;
    return at;
}

/* ---- Numbers, as strconv.ParseFloat reads them ---- */

/* Underscores between digits, or between "0x" and a digit. */
static bool has_good_underscores(struct slice text)
{
    size_t at = text.size > 0 && (text.data[0] == '+' || text.data[0] == '-') ? 1 : 0;
    bool is_hex = false;
    char before = '^'; /* '0': a digit, '_', '!': others */
    if (text.size >= at + 2 && text.data[at] == '0' &&
        strchr("bBoOxX", text.data[at + 1]) != NULL) {
        is_hex = tolower(text.data[at + 1]) == 'x';
        before = '0';
        at += 2;
    }
    for (; at < text.size; at++) {
        bool is_figure = is_digit(text.data[at]) || (is_hex && isxdigit(text.data[at]));
        if (text.data[at] == '_' ? before != '0' : before == '_' && !is_figure)
            return false;
        before = is_figure ? '0' : text.data[at] == '_' ? '_' : '!';
    }
    return before != '_';
}

/* "inf", "infinity" with a sign or without, "nan". */
static bool number_of_word(struct slice text, double *ret_value)
{
    if (slice_equal_nocase(text, "nan")) {
        const uint64_t bits = EXPOSITION_NAN_BITS;
        memcpy(ret_value, &bits, sizeof(bits));
        return true;
    }
    bool is_negative = text.size > 0 && text.data[0] == '-';
    if (text.size > 0 && (is_negative || text.data[0] == '+'))
        text = slice_of(text.data + 1, text.size - 1);
    *ret_value = is_negative ? -INFINITY : INFINITY;
    return slice_equal_nocase(text, "inf") || slice_equal_nocase(text, "infinity");
}

/* Whether the text, which has a byte behind it that is not part of a number, or a terminator, is
 * one in decimal without underscores. Numbers that round to infinity are refused. */
static bool number_of_decimal(struct slice text, double *ret_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { POWERS = sizeof(powers) / sizeof(powers[0]), EXPONENT_MAX = 100000 };
    const uint8_t *at = text.data;
    const uint8_t *end = text.data + text.size;
    uint64_t mantissa = 0;
    int digits = 0; /* from the first that is not 0 */
    int exponent = 0;
    bool has_digits = false;
    bool is_negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (bool has_point = false; at < end; at++) {
        if (is_digit(*at)) {
            has_digits = true;
            if (digits < EXACT_DIGITS_MAX)
                mantissa = mantissa * 10 + (uint64_t)(*at - '0');
            if (digits > 0 || *at != '0')
                digits += digits <= EXACT_DIGITS_MAX;
            if (has_point && exponent > -EXPONENT_MAX)
                exponent--;
        } else if (*at == '.' && !has_point) {
            has_point = true;
        } else {
            break;
        }
    }
    if (!has_digits)
        return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int written = 0;
        at++;
        bool is_small = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+'))
            at++;
        if (at == end || !is_digit(*at))
            return false;
        for (; at < end && is_digit(*at); at++)
            if (written < EXPONENT_MAX)
                written = written * 10 + (*at - '0');
        exponent += is_small ? -written : written;
    }
    if (at != end)
        return false;
    /* Both are exact, so that one operation rounds correctly. */
    if (digits <= EXACT_DIGITS_MAX && mantissa <= (UINT64_C(1) << 53) && exponent > -POWERS &&
        exponent < POWERS) {
        double value = (double)mantissa;
        value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
        *ret_value = is_negative ? -value : value;
        return true;
    }
    *ret_value = strtod((const char *)text.data, NULL);
    return !isinf(*ret_value);
}

/* The value of a sample: decimal only, as before Go 1.13. */
static bool number_of(struct exposition_reader *reader, struct slice text, double *ret_value)
{
    if (text.size > 0 && text.data + text.size == reader->body.data + reader->body.size) {
        /* strtod must not read on. */
        enum { COPY_BYTES_MAX = 4096 };
        char copy[COPY_BYTES_MAX];
        char *room = text.size < sizeof(copy) ? copy : mem_try_alloc(text.size + 1);
        if (room == NULL)
            return false;
        memcpy(room, text.data, text.size);
        room[text.size] = '\0';
        struct slice copied = slice_of(room, text.size);
        bool is_number = number_of_decimal(copied, ret_value) || number_of_word(copied, ret_value);
        if (room != copy)
            mem_free(room);
        return is_number;
    }
    return number_of_decimal(text, ret_value) || number_of_word(text, ret_value);
}

/* The value of a label, which may be in any form of Go's. */
static bool number_of_label(struct slice text, double *ret_value)
{
    char copy[LABEL_NUMBER_BYTES_MAX + 1];
    size_t size = 0;
    if (text.size == 0 || text.size > LABEL_NUMBER_BYTES_MAX ||
        memchr(text.data, '\0', text.size) != NULL ||
        (memchr(text.data, '_', text.size) != NULL && !has_good_underscores(text)))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] != '_')
            copy[size++] = (char)text.data[i];
    copy[size] = '\0';
    const char *digits = copy[0] == '+' || copy[0] == '-' ? copy + 1 : copy;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        char *end;
        if (strpbrk(copy, "pP") == NULL || digits[2] == '\0')
            return false;
        *ret_value = strtod(copy, &end);
        return *end == '\0' && !isinf(*ret_value);
    }
    struct slice plain = slice_of(copy, size);
    return number_of_decimal(plain, ret_value) || number_of_word(plain, ret_value);
}

/* Seconds, to the millisecond towards zero; what does not fit is what x86-64 makes of it in Go. */
static bool timestamp_of(struct exposition_reader *reader, struct slice text, int64_t *ret_ms)
{
    static const double limit = 9223372036854775808.0; /* 2^63 */
    double seconds;
    if (!number_of(reader, text, &seconds) || isnan(seconds) || isinf(seconds))
        return false;
    double ms = seconds * 1000;
    *ret_ms = ms >= -limit && ms < limit ? (int64_t)ms : INT64_MIN;
    return true;
}

/* ---- Unescaping ---- */

static bool reserve_scratch(struct exposition_reader *reader, size_t bytes)
{
    assert(reader->scratch_size == 0);
    if (bytes <= reader->scratch_capacity)
        return true;
    drop_scratch(reader);
    if (reader->budget != NULL && !budget_try_take(reader->budget, bytes))
        return fail_memory(reader);
    reader->scratch = mem_try_alloc(bytes);
    if (reader->scratch != NULL)
        reader->scratch_capacity = bytes;
    else if (reader->budget != NULL)
        budget_return(reader->budget, bytes);
    return reader->scratch != NULL || fail_memory(reader);
}

/* Replaces \\ and \n, and \" unless it stays; other backslashes stay. The scratch has room. */
static struct slice unescape(struct exposition_reader *reader, struct slice text,
                             bool has_quote_escape)
{
    uint8_t *start = reader->scratch + reader->scratch_size;
    uint8_t *to = start;
    if (text.size == 0 || memchr(text.data, '\\', text.size) == NULL)
        return text;
    assert(text.size <= reader->scratch_capacity - reader->scratch_size);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t next = i + 1 < text.size ? text.data[i + 1] : 0;
        if (text.data[i] == '\\' &&
            (next == '\\' || next == 'n' || (next == '"' && has_quote_escape))) {
            *to++ = next == 'n' ? '\n' : next;
            i++;
        } else {
            *to++ = text.data[i];
        }
    }
    reader->scratch_size = (size_t)(to - reader->scratch);
    return slice_of(start, (size_t)(to - start));
}

/* Whether the number is already written as OpenMetrics does: +Inf, or no exponent, no more than 15
 * digits, from 0.0001 to below 10^6. */
static bool is_canonical(struct slice text)
{
    enum { WHOLE_DIGITS_MAX = 6, DIGITS_MAX = 15, LEADING_ZEROS_MAX = 3 };
    size_t whole = 0;
    if (slice_equal_text(text, "+Inf"))
        return true;
    while (whole < text.size && is_digit(text.data[whole]))
        whole++;
    if (whole == 0 || whole > WHOLE_DIGITS_MAX || (text.data[0] == '0' && whole > 1) ||
        whole + 1 >= text.size || text.data[whole] != '.' || text.size > DIGITS_MAX)
        return false;
    struct slice fraction = slice_of(text.data + whole + 1, text.size - whole - 1);
    for (size_t i = 0; i < fraction.size; i++)
        if (!is_digit(fraction.data[i]))
            return false;
    if (fraction.size == 1)
        return true;
    size_t zeros = 0;
    while (zeros < fraction.size && fraction.data[zeros] == '0')
        zeros++;
    return fraction.data[fraction.size - 1] != '0' &&
           (text.data[0] != '0' || zeros <= LEADING_ZEROS_MAX);
}

/* Bounds and quantiles are written in one way, so that they are equal if their values are. */
static void normalize_number(struct exposition_reader *reader, struct prometheus_label *label)
{
    bool is_bound =
        reader->type == EXPOSITION_METRIC_HISTOGRAM && slice_equal_text(label->name, "le");
    bool is_quantile =
        reader->type == EXPOSITION_METRIC_SUMMARY && slice_equal_text(label->name, "quantile");
    double value;
    if ((!is_bound && !is_quantile) || is_canonical(label->value) ||
        !number_of_label(label->value, &value))
        return;
    assert(reader->scratch_capacity - reader->scratch_size >= EXPOSITION_NUMBER_BYTES_MAX);
    char *room = (char *)reader->scratch + reader->scratch_size;
    size_t size = exposition_openmetrics_number(value, room);
    label->value = slice_of(room, size);
    reader->scratch_size += size;
}

static bool finish_labels(struct exposition_reader *reader, struct exposition_entry *entry,
                          bool has_escape)
{
    bool has_numbers = entry->labels_count > 0 && (reader->type == EXPOSITION_METRIC_HISTOGRAM ||
                                                   reader->type == EXPOSITION_METRIC_SUMMARY);
    if (!has_escape && !has_numbers)
        return true;
    size_t bytes = (has_escape ? entry->series.size : 0) +
                   (has_numbers ? entry->labels_count * EXPOSITION_NUMBER_BYTES_MAX : 0);
    if (!reserve_scratch(reader, bytes))
        return false;
    if (has_escape)
        entry->name = unescape(reader, entry->name, true);
    for (size_t i = 0; i < entry->labels_count; i++) {
        struct prometheus_label *label = &reader->labels[i];
        if (has_escape) {
            label->name = unescape(reader, label->name, true);
            label->value = unescape(reader, label->value, true);
        }
        if (has_numbers)
            normalize_number(reader, label);
    }
    return true;
}

/* ---- Labels ---- */

/* Where labels are, which decides on the details. */
enum place { TEXT_SAMPLE, OPENMETRICS_SAMPLE, OPENMETRICS_EXEMPLAR };

struct found_labels {
    struct prometheus_label *labels; /* room */
    size_t count;
    struct slice name; /* of the metric; data is NULL: none, size then is 0 */
    bool has_name;
    bool has_escape;
};

/* Reads the value of a label behind its equals sign. */
static bool read_label_value(struct exposition_reader *reader, enum place place,
                             struct quoted *ret_value)
{
    if (place == TEXT_SAMPLE && is_blank(peek(reader)))
        do
            reader->at = after_nuls(reader, reader->at + 1);
        while (is_blank(peek(reader)));
    if (peek(reader) != '"')
        return fail(reader, "the label's value in quotes");
    size_t at = reader->at;
    if (!take_quoted(reader, place == TEXT_SAMPLE, place != OPENMETRICS_EXEMPLAR, ret_value))
        return false;
    if (ret_value->has_high && !utf8_is_valid(ret_value->text))
        return fail_at(reader, at, "a label's value in UTF-8");
    return true;
}

/* Reads from behind the opening brace to behind the closing one. As in Prometheus, a comma may be
 * at the end, and in the text format those between labels may be missing. */
static bool read_labels(struct exposition_reader *reader, enum place place,
                        struct found_labels *found)
{
    for (;;) {
        struct quoted quoted = {.has_escape = false};
        struct quoted value;
        if (place == TEXT_SAMPLE)
            skip_blanks(reader);
        size_t name_at = reader->at;
        int byte = peek(reader);
        if (byte == '}') {
            reader->at++;
            return true;
        }
        if (byte == '"') {
            if (!take_quoted(reader, place != OPENMETRICS_EXEMPLAR, false, &quoted))
                return false;
        } else if (begins_label_name(byte)) {
            reader->at = skip_label_name(reader, name_at);
            quoted.text = between(reader, name_at, reader->at);
        } else {
            return fail(reader, "the name of a label or \"}\"");
        }
        if (place == TEXT_SAMPLE)
            skip_blanks(reader);
        found->has_escape |= quoted.has_escape;
        if (byte == '"' && (peek(reader) == ',' || peek(reader) == '}')) {
            /* A name alone is the metric's. */
            if (place == OPENMETRICS_EXEMPLAR)
                return fail_at(reader, name_at, "a label of the exemplar");
            if (found->has_name)
                return fail_at(reader, name_at, "a label, since the metric already has a name");
            found->name = quoted.text;
            found->has_name = true;
            if (byte_at(reader, reader->at++) == '}')
                return true;
            continue;
        }
        if (peek(reader) != '=')
            return fail(reader, "\"=\" after the label's name");
        reader->at++;
        if (!read_label_value(reader, place, &value))
            return false;
        if (found->count == EXPOSITION_READER_LABELS_MAX)
            return fail_at(reader, name_at, "no more than 512 labels");
        found->has_escape |= value.has_escape;
        found->labels[found->count].name = quoted.text;
        found->labels[found->count].value = value.text;
        found->count++;
        if (place == TEXT_SAMPLE)
            skip_blanks(reader);
        if (peek(reader) == ',')
            reader->at++;
        else if (place != TEXT_SAMPLE && peek(reader) != '}')
            return fail(reader, "\",\" or \"}\" after the label");
    }
}

/* Reads a series, name and labels, from its first byte. What begins at start counts to the name:
 * blanks before it in the text format. */
static bool read_series(struct exposition_reader *reader, size_t start,
                        struct exposition_entry *entry)
{
    struct found_labels found = {.count = 0};
    bool text = is_text(reader);
    if (reader->labels == NULL)
        reader->labels =
            mem_alloc(2 * EXPOSITION_READER_LABELS_MAX * sizeof(struct prometheus_label));
    found.labels = reader->labels;
    entry->kind = EXPOSITION_ENTRY_SAMPLE;
    if (peek(reader) != '{') {
        reader->at = skip_metric_name(reader, reader->at);
        found.name = between(reader, start, reader->at);
        found.has_name = true;
        entry->series = found.name;
        if (text)
            skip_blanks(reader);
    }
    if (peek(reader) == '{') {
        reader->at++;
        if (!read_labels(reader, text ? TEXT_SAMPLE : OPENMETRICS_SAMPLE, &found))
            return false;
        entry->series = between(reader, start, reader->at);
    }
    if (!found.has_name)
        return fail_at(reader, start, "a name of the metric, before the braces or in them");
    entry->name = found.name;
    entry->labels = reader->labels;
    entry->labels_count = found.count;
    return finish_labels(reader, entry, found.has_escape);
}

/* ---- The text format ---- */

static bool read_text_sample(struct exposition_reader *reader, size_t start,
                             struct exposition_entry *entry)
{
    if (!read_series(reader, start, entry))
        return false;
    skip_blanks(reader);
    size_t at = reader->at;
    while (at < reader->body.size && !is_blank(reader->body.data[at]) &&
           reader->body.data[at] != '\n' && reader->body.data[at] != '{' &&
           reader->body.data[at] != '\0')
        at++;
    if (!number_of(reader, between(reader, reader->at, at), &entry->value))
        return fail(reader, "a value");
    reader->at = at;
    skip_blanks(reader);
    entry->has_timestamp = is_digit(peek(reader));
    if (entry->has_timestamp) {
        int64_t ms = 0;
        for (; is_digit(peek(reader)); reader->at++)
            if (__builtin_mul_overflow(ms, 10, &ms) ||
                __builtin_add_overflow(ms, peek(reader) - '0', &ms))
                return fail(reader, "a timestamp in milliseconds that fits 64 bits");
        entry->timestamp_ms = ms;
        skip_blanks(reader);
    }
    if (peek(reader) != '\n')
        return fail(reader, entry->has_timestamp ? "the end of the line after the timestamp"
                                                 : "a timestamp in milliseconds or the end of "
                                                   "the line");
    take_line_end(reader);
    return true;
}

/* Takes the letters, between which NULs do not count. */
static bool take_keyword(struct exposition_reader *reader, const char *keyword)
{
    size_t at = reader->at;
    for (; *keyword != '\0'; keyword++) {
        if (byte_at(reader, at) != *keyword)
            return false;
        at = after_nuls(reader, at + 1);
    }
    reader->at = at;
    return true;
}

/* The family's name, in a line of metadata. */
static bool read_family_name(struct exposition_reader *reader, struct exposition_entry *entry)
{
    struct quoted quoted;
    if (peek(reader) == '"') {
        if (!take_quoted(reader, true, false, &quoted))
            return false;
        entry->name = quoted.text;
        return true;
    }
    if (!begins_metric_name(peek(reader)))
        return fail(reader, "the name of a metric family");
    size_t start = reader->at;
    reader->at = skip_metric_name(reader, start);
    entry->name = between(reader, start, reader->at);
    return true;
}

static bool find_type(struct exposition_reader *reader, size_t at, struct slice text,
                      struct exposition_entry *entry)
{
    static const char *const names[] = {
        [EXPOSITION_METRIC_UNKNOWN] = "unknown",
        [EXPOSITION_METRIC_COUNTER] = "counter",
        [EXPOSITION_METRIC_GAUGE] = "gauge",
        [EXPOSITION_METRIC_HISTOGRAM] = "histogram",
        [EXPOSITION_METRIC_SUMMARY] = "summary",
        [EXPOSITION_METRIC_GAUGE_HISTOGRAM] = "gaugehistogram",
        [EXPOSITION_METRIC_INFO] = "info",
        [EXPOSITION_METRIC_STATE_SET] = "stateset",
    };
    const int count =
        is_text(reader) ? EXPOSITION_METRIC_SUMMARY + 1 : (int)(sizeof(names) / sizeof(names[0]));
    for (int i = 0; i < count; i++) {
        bool is_untyped = i == EXPOSITION_METRIC_UNKNOWN && is_text(reader);
        if (slice_equal_text(text, is_untyped ? "untyped" : names[i])) {
            entry->kind = EXPOSITION_ENTRY_TYPE;
            entry->type = (enum exposition_metric_type)i;
            reader->type = entry->type;
            return true;
        }
    }
    return fail_at(reader, at,
                   is_text(reader)
                       ? "a type: counter, gauge, histogram, summary or untyped"
                       : "a type: counter, gauge, histogram, gaugehistogram, summary, info, "
                         "stateset or unknown");
}

static bool set_help(struct exposition_reader *reader, size_t at, struct slice text,
                     struct exposition_entry *entry)
{
    entry->kind = EXPOSITION_ENTRY_HELP;
    if (!utf8_is_valid(text))
        return fail_at(reader, at, "a help text in UTF-8");
    if (text.size > 0 && memchr(text.data, '\\', text.size) != NULL &&
        !reserve_scratch(reader, text.size))
        return false;
    entry->text = unescape(reader, text, !is_text(reader));
    return true;
}

enum comment { COMMENT_SKIPPED, COMMENT_ENTRY, COMMENT_LAST };

/* Takes the rest of a comment without meaning. */
static enum comment skip_comment(struct exposition_reader *reader)
{
    reader->at = line_end_from(reader, reader->at);
    take_line_end(reader);
    return COMMENT_SKIPPED;
}

/* Reads a line that begins with #. COMMENT_LAST: nothing follows, or it failed. */
static enum comment read_text_comment(struct exposition_reader *reader,
                                      struct exposition_entry *entry)
{
    reader->at++;
    bool has_blank = is_blank(peek(reader));
    skip_blanks(reader);
    if (peek(reader) == '\0')
        return COMMENT_LAST; /* Prometheus takes it for the end */
    if (!has_blank) {
        size_t end = line_end_from(reader, reader->at);
        struct slice rest = between(reader, reader->at, end);
        if (rest.size > 0 && memchr(rest.data, '\0', rest.size) != NULL)
            return COMMENT_LAST; /* the same */
        return skip_comment(reader);
    }
    bool is_help = take_keyword(reader, "HELP");
    if ((!is_help && !take_keyword(reader, "TYPE")) || !is_blank(peek(reader)))
        return skip_comment(reader);
    while (is_blank(peek(reader)))
        reader->at = after_nuls(reader, reader->at + 1);
    if (!read_family_name(reader, entry))
        return COMMENT_LAST;
    /* One byte separates name and text, whatever it is; only blanks are no text. */
    size_t at = reader->at;
    size_t end = line_end_from(reader, at);
    if (byte_at(reader, at) == '\0') {
        fail(reader, "a blank after the name");
        return COMMENT_LAST;
    }
    while (is_blank(byte_at(reader, at)))
        at = after_nuls(reader, at + 1);
    struct slice text =
        at == end ? (struct slice){.size = 0} : between(reader, reader->at + 1, end);
    if (is_help ? !set_help(reader, reader->at, text, entry)
                : !find_type(reader, reader->at, text, entry))
        return COMMENT_LAST;
    reader->at = end;
    take_line_end(reader);
    return COMMENT_ENTRY;
}

static bool next_of_text(struct exposition_reader *reader, struct exposition_entry *entry)
{
    for (;;) {
        size_t start = reader->at;
        skip_blanks(reader);
        int byte = peek(reader);
        entry->line = reader->line;
        if (byte == '\n') {
            take_line_end(reader);
        } else if (byte == '#') {
            enum comment comment = read_text_comment(reader, entry);
            if (comment != COMMENT_SKIPPED)
                return comment == COMMENT_ENTRY;
        } else if (byte == '{' || begins_metric_name(byte)) {
            return read_text_sample(reader, start, entry);
        } else if (byte == AT_END || byte == '\0') {
            return false; /* Prometheus takes a NUL for the end */
        } else {
            return fail(reader, "the name of a metric, \"{\" or \"#\"");
        }
    }
}

/* ---- OpenMetrics ---- */

/* The word behind one blank, to the next blank or the end of the line. Of size 0: there is none. */
static struct slice take_word(struct exposition_reader *reader)
{
    size_t at = reader->at + 1;
    if (peek(reader) != ' ')
        return (struct slice){.size = 0};
    while (at < reader->body.size && reader->body.data[at] != ' ' &&
           reader->body.data[at] != '\n' && reader->body.data[at] != '\0')
        at++;
    struct slice word = between(reader, reader->at + 1, at);
    if (word.size > 0)
        reader->at = at;
    return word;
}

static bool take_openmetrics_line_end(struct exposition_reader *reader, const char *expected)
{
    if (peek(reader) != '\n')
        return fail(reader, expected);
    take_line_end(reader);
    return true;
}

static bool read_exemplar(struct exposition_reader *reader, struct exposition_entry *entry)
{
    struct found_labels found = {.labels = reader->labels + EXPOSITION_READER_LABELS_MAX};
    if (!read_labels(reader, OPENMETRICS_EXEMPLAR, &found))
        return false;
    entry->has_exemplar = true;
    entry->exemplar.labels = found.labels;
    entry->exemplar.labels_count = found.count;
    size_t at = reader->at;
    if (!number_of(reader, take_word(reader), &entry->exemplar.value))
        return fail_at(reader, at, "a blank and the exemplar's value");
    at = reader->at;
    struct slice word = take_word(reader);
    entry->exemplar.has_timestamp = word.size > 0;
    if (word.size > 0 && !timestamp_of(reader, word, &entry->exemplar.timestamp_ms))
        return fail_at(reader, at, "the exemplar's timestamp in seconds");
    return take_openmetrics_line_end(
        reader, word.size > 0 ? "the end of the line after the exemplar's timestamp"
                              : "a blank and the exemplar's timestamp, or the end of the line");
}

/* Takes the begin of an exemplar, if there is one. */
static bool take_exemplar_begin(struct exposition_reader *reader)
{
    enum { BEGIN_BYTES = 4 };
    struct slice begin = between(reader, reader->at, reader->at + BEGIN_BYTES);
    if (!slice_equal_text(begin, " # {"))
        return false;
    reader->at += BEGIN_BYTES;
    return true;
}

static bool read_openmetrics_sample(struct exposition_reader *reader,
                                    struct exposition_entry *entry)
{
    if (!read_series(reader, reader->at, entry))
        return false;
    size_t at = reader->at;
    if (!number_of(reader, take_word(reader), &entry->value))
        return fail_at(reader, at, "a blank and a value");
    if (take_exemplar_begin(reader))
        return read_exemplar(reader, entry);
    at = reader->at;
    struct slice word = take_word(reader);
    entry->has_timestamp = word.size > 0;
    if (word.size > 0 && !timestamp_of(reader, word, &entry->timestamp_ms))
        return fail_at(reader, at, "a timestamp in seconds, or \"# {\" and an exemplar");
    if (take_exemplar_begin(reader))
        return read_exemplar(reader, entry);
    return take_openmetrics_line_end(reader, word.size > 0
                                                 ? "an exemplar or the end of the line"
                                                 : "a timestamp, an exemplar or the end of the "
                                                   "line");
}

static bool set_unit(struct exposition_reader *reader, size_t at, struct slice unit,
                     struct exposition_entry *entry)
{
    struct slice name = entry->name;
    entry->kind = EXPOSITION_ENTRY_UNIT;
    entry->text = unit;
    if (unit.size == 0)
        return true;
    if (name.size <= unit.size || name.data[name.size - unit.size - 1] != '_' ||
        memcmp(name.data + name.size - unit.size, unit.data, unit.size) != 0)
        return fail_at(reader, at, "a unit that the family's name ends with, after \"_\"");
    return true;
}

/* Reads what begins with #. False: it is the end, or it failed. */
static bool read_openmetrics_comment(struct exposition_reader *reader,
                                     struct exposition_entry *entry)
{
    static const char expected[] = "\"# HELP \", \"# TYPE \", \"# UNIT \" or \"# EOF\"";
    size_t start = reader->at;
    reader->at++;
    if (peek(reader) != ' ')
        return fail_at(reader, start, expected);
    reader->at++;
    if (take_keyword(reader, "EOF")) {
        if (peek(reader) == '\n') {
            take_line_end(reader);
            reader->at = after_nuls(reader, reader->at);
        }
        return peek(reader) == AT_END ? false : fail(reader, "nothing after \"# EOF\"");
    }
    bool is_help = take_keyword(reader, "HELP");
    bool is_type = !is_help && take_keyword(reader, "TYPE");
    if ((!is_help && !is_type && !take_keyword(reader, "UNIT")) || peek(reader) != ' ')
        return fail_at(reader, start, expected);
    reader->at = after_nuls(reader, reader->at + 1);
    if (!read_family_name(reader, entry))
        return false;
    size_t at = reader->at;
    if (peek(reader) != ' ')
        return fail(reader, "a blank after the family's name");
    size_t end = line_end_from(reader, at);
    if (end == reader->body.size)
        return fail_at(reader, end, "the end of the line");
    /* As behind quotes: NULs at the begin of the next line count to the text. */
    size_t next = after_nuls(reader, end + 1);
    struct slice text = between(reader, at + 1, next - 1);
    bool is_good = is_help   ? set_help(reader, at, text, entry)
                   : is_type ? find_type(reader, at, text, entry)
                             : set_unit(reader, at, text, entry);
    if (!is_good)
        return false;
    reader->at = next;
    reader->line++;
    return true;
}

static bool next_of_openmetrics(struct exposition_reader *reader, struct exposition_entry *entry)
{
    int byte = peek(reader);
    entry->line = reader->line;
    if (byte == '#')
        return read_openmetrics_comment(reader, entry);
    if (byte == '{' || begins_metric_name(byte))
        return read_openmetrics_sample(reader, entry);
    return fail(reader, byte == AT_END ? "\"# EOF\"" : "the name of a metric, \"{\" or \"# \"");
}

bool exposition_reader_next(struct exposition_reader *reader, struct exposition_entry *ret_entry)
{
    if (reader->is_done)
        return false;
    reader->scratch_size = 0;
    ret_entry->has_timestamp = false;
    ret_entry->has_exemplar = false;
    bool is_there =
        is_text(reader) ? next_of_text(reader, ret_entry) : next_of_openmetrics(reader, ret_entry);
    reader->is_done = !is_there;
    return is_there;
}

bool exposition_read_number(struct slice text, double *ret_number)
{
    return number_of_label(text, ret_number);
}
