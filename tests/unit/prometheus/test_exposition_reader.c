/* SPDX-License-Identifier: Apache-2.0 */
/* The text formats: entries, refusals, limits. Expected is what prometheus/prometheus 0.312
 * (model/textparse) reads from the same bodies. */
#include "src/prometheus/exposition_reader.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

#define TEXT        EXPOSITION_PROTOCOL_TEXT
#define OPENMETRICS EXPOSITION_PROTOCOL_OPENMETRICS

static const char *const type_names[] = {
    [EXPOSITION_METRIC_UNKNOWN] = "unknown", [EXPOSITION_METRIC_COUNTER] = "counter",
    [EXPOSITION_METRIC_GAUGE] = "gauge",     [EXPOSITION_METRIC_HISTOGRAM] = "histogram",
    [EXPOSITION_METRIC_SUMMARY] = "summary", [EXPOSITION_METRIC_GAUGE_HISTOGRAM] = "gaugehistogram",
    [EXPOSITION_METRIC_INFO] = "info",       [EXPOSITION_METRIC_STATE_SET] = "stateset",
};

static void print(FILE *out, struct slice text)
{
    if (text.size > 0)
        fwrite(text.data, 1, text.size, out);
}

static void print_labels(FILE *out, const struct prometheus_label *labels, size_t count)
{
    fputc('{', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        print(out, labels[i].name);
        fputc('=', out);
        print(out, labels[i].value);
    }
    fputc('}', out);
}

/* A line for each entry: "name{labels} value @timestamp_ms # {labels} value @timestamp_ms". */
static void print_entry(FILE *out, const struct exposition_entry *entry)
{
    static const char *const kinds[] = {
        [EXPOSITION_ENTRY_TYPE] = "TYPE ",
        [EXPOSITION_ENTRY_HELP] = "HELP ",
        [EXPOSITION_ENTRY_UNIT] = "UNIT ",
        [EXPOSITION_ENTRY_SAMPLE] = "",
    };
    fputs(kinds[entry->kind], out);
    print(out, entry->name);
    if (entry->kind == EXPOSITION_ENTRY_TYPE) {
        fprintf(out, " %s", type_names[entry->type]);
    } else if (entry->kind != EXPOSITION_ENTRY_SAMPLE) {
        fputc(' ', out);
        print(out, entry->text);
    } else {
        print_labels(out, entry->labels, entry->labels_count);
        fprintf(out, " %.17g", entry->value);
        if (entry->has_timestamp)
            fprintf(out, " @%lld", (long long)entry->timestamp_ms);
        if (entry->has_exemplar) {
            fputs(" # ", out);
            print_labels(out, entry->exemplar.labels, entry->exemplar.labels_count);
            fprintf(out, " %.17g", entry->exemplar.value);
            if (entry->exemplar.has_timestamp)
                fprintf(out, " @%lld", (long long)entry->exemplar.timestamp_ms);
        }
    }
    fputc('\n', out);
}

/* What the body, copied to where nothing is readable behind it, holds; or "LINE: FAILURE". */
static char *read_all(struct slice body, enum exposition_protocol protocol)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    uint8_t *copy = malloc(body.size);
    struct exposition_reader reader;
    struct exposition_entry entry;
    if (body.size > 0)
        memcpy(copy, body.data, body.size);
    exposition_reader_init(&reader, slice_of(copy, body.size), protocol, NULL);
    while (exposition_reader_next(&reader, &entry))
        print_entry(out, &entry);
    assert_false(exposition_reader_next(&reader, &entry));
    if (reader.has_failed)
        fprintf(out, "%zu: %s\n", reader.failure_line, reader.failure);
    exposition_reader_fini(&reader);
    free(copy);
    fclose(out);
    return text;
}

static void expect(const char *body, size_t size, enum exposition_protocol protocol,
                   const char *expected)
{
    char *found = read_all(slice_of(body, size), protocol);
    if (strcmp(found, expected) != 0)
        fail_msg("of: %s\nfound: %s\nexpected: %s", body, found, expected);
    free(found);
}

#define ROW(body, expected) body, sizeof(body) - 1, expected

struct row {
    const char *body;
    size_t size;
    const char *expected;
};

static void expect_rows(const struct row *rows, size_t count, enum exposition_protocol protocol)
{
    for (size_t i = 0; i < count; i++)
        expect(rows[i].body, rows[i].size, protocol, rows[i].expected);
}

static void the_text_format_is_read(void **state)
{
    static const struct row rows[] = {
        {ROW("", "")},
        {ROW("\n  \n\t", "")},
        {ROW("a 1", "a{} 1\n")},
        {ROW("a:b_1{}\t2.5 1520879607789\n", "a:b_1{} 2.5 @1520879607789\n")},
        {ROW("a { b = \"c\" , d=\"e\" , } 1 \n", "a{b=c,d=e} 1\n")},
        {ROW("a{b=\"c\"d=\"e\"} 1\n", "a{b=c,d=e} 1\n")},
        {ROW("{\"a.b\",c=\"d\"} 1\n", "a.b{c=d} 1\n")},
        {ROW("{c=\"d\",\"a\\\"b\"} 1\n", "a\"b{c=d} 1\n")},
        {ROW("a{\"b.c\"=\"d\"} 1\n", "a{b.c=d} 1\n")},
        {ROW("a{b=\"\\\\\\\"\\n\\x\",c=\"x\ny\"} 1\n", "a{b=\\\"\n\\x,c=x\ny} 1\n")},
        {ROW("a{b=\"\xc3\xa9\"} 1\n", "a{b=\xc3\xa9} 1\n")},
        {ROW("  a 1\n", "  a{} 1\n")}, /* blanks become part of the name, as in Go */
        {ROW("# HELP a b \\\\ \\n \\\"c\n", "HELP a b \\ \n \\\"c\n")},
        {ROW("#\tHELP  a\n# HELP a  \n# HELP a  x \n", "HELP a \nHELP a \nHELP a  x \n")},
        {ROW("# HELP a-bc\n", "HELP a bc\n")}, /* any byte separates */
        {ROW("# HELP \"a b\" c\n# TYPE \"a b\" gauge\n", "HELP a b c\nTYPE a b gauge\n")},
        {ROW("# TYPE a counter\n# TYPE a untyped\n", "TYPE a counter\nTYPE a unknown\n")},
        {ROW("# TYPE a summary\n# TYPE a histogram\n", "TYPE a summary\nTYPE a histogram\n")},
        {ROW("#HELP a\n# HELPX a\n# UNIT a b\n#\n# \n# EOF\na 1\n", "a{} 1\n")},
        {ROW("a 1\n\0b 2\n", "a{} 1\n")}, /* NUL is the end, as in Go */
        {ROW("#x\0\na 1\n", "")},         /* the same */
        {ROW("# x\0\na 1\n", "a{} 1\n")}, /* not here */
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]), TEXT);
    /* A NUL is part of a value. */
    struct exposition_reader reader;
    struct exposition_entry entry;
    exposition_reader_init(&reader, slice_of("a{b=\"\0c\"} 1", 11), TEXT, NULL);
    assert_true(exposition_reader_next(&reader, &entry));
    assert_true(slice_equal(entry.labels[0].value, slice_of("\0c", 2)));
    exposition_reader_fini(&reader);
}

static void openmetrics_is_read(void **state)
{
    static const struct row rows[] = {
        {ROW("# EOF", "")},
        {ROW("# EOF\n", "")},
        {ROW("a 1\n# EOF\n", "a{} 1\n")},
        {ROW("a{b=\"c\",} 1 1520879607.789\n# EOF\n", "a{b=c} 1 @1520879607789\n")},
        {ROW("a 1 -1.5\n# EOF\n", "a{} 1 @-1500\n")},
        {ROW("a 1 1e30\n# EOF\n", "a{} 1 @-9223372036854775808\n")},
        {ROW("{\"a.b\",c=\"d\"} 1\n# EOF\n", "a.b{c=d} 1\n")},
        {ROW("a 1 # {id=\"x\\\"\"} 2\n# EOF\n", "a{} 1 # {id=x\\\"} 2\n")},
        {ROW("a 1 5 # {} 2 1.5\n# EOF\n", "a{} 1 @5000 # {} 2 @1500\n")},
        {ROW("# HELP a b\\n\\\"\n# TYPE a_s info\n# UNIT a_s s\n# UNIT a \n# EOF\n",
             "HELP a b\n\"\nTYPE a_s info\nUNIT a_s s\nUNIT a \n")},
        {ROW("# TYPE a stateset\n# TYPE a unknown\n# TYPE a gaugehistogram\n# EOF\n",
             "TYPE a stateset\nTYPE a unknown\nTYPE a gaugehistogram\n")},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]), OPENMETRICS);
}

static void what_text_cannot_be_is_refused(void **state)
{
    static const struct row rows[] = {
        {ROW("a", "1: found the end of the line, expected a value\n")},
        {ROW("a 1\nb x\n", "a{} 1\n2: found \"x\", expected a value\n")},
        {ROW("a 1 -5\n", "1: found \"-5\", expected a timestamp in milliseconds or the end of the "
                         "line\n")},
        {ROW("a 1 5 6\n", "1: found \"6\", expected the end of the line after the timestamp\n")},
        {ROW("a 1 9223372036854775808\n",
             "1: found \"8\", expected a timestamp in milliseconds that fits 64 bits\n")},
        {ROW("a 1\r\n", "1: found \"1\\x0d\", expected a value\n")},
        {ROW("-\n", "1: found \"-\", expected the name of a metric, \"{\" or \"#\"\n")},
        {ROW("{} 1\n", "1: found \"{} 1\", expected a name of the metric, before the braces or in "
                       "them\n")},
        {ROW("a{\"b\"} 1\n",
             "1: found \"\\\"b\\\"} 1\", expected a label, since the metric already has a name\n")},
        {ROW("a{,} 1\n", "1: found \",} 1\", expected the name of a label or \"}\"\n")},
        {ROW("a{b} 1\n", "1: found \"} 1\", expected \"=\" after the label's name\n")},
        {ROW("a{b=1} 1\n", "1: found \"1} 1\", expected the label's value in quotes\n")},
        {ROW("a{b=\"1\n\n", "1: found \"\\\"1\", expected a closing quote\n")},
        {ROW("a{b=\"\xff\"} 1\n",
             "1: found \"\\\"\\xff\\\"} 1\", expected a label's value in UTF-8\n")},
        {ROW("# HELP a \xff\n", "1: found \" \\xff\", expected a help text in UTF-8\n")},
        {ROW("# HELP \n", "1: found the end of the line, expected the name of a metric family\n")},
        {ROW("# TYPE a info\n", "1: found \" info\", expected a type: counter, gauge, histogram, "
                                "summary or untyped\n")},
        {ROW("# TYPE a counter \n", "1: found \" counter \", expected a type: counter, gauge, "
                                    "histogram, summary or untyped\n")},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]), TEXT);
}

static void what_openmetrics_cannot_be_is_refused(void **state)
{
    static const struct row rows[] = {
        {ROW("", "1: found the end of the body, expected \"# EOF\"\n")},
        {ROW("a 1\n", "a{} 1\n2: found the end of the body, expected \"# EOF\"\n")},
        {ROW("# EOF\na 1\n", "2: found \"a 1\", expected nothing after \"# EOF\"\n")},
        {ROW("\n# EOF\n", "1: found the end of the line, expected the name of a metric, \"{\" or "
                          "\"# \"\n")},
        {ROW("a  1\n# EOF\n", "1: found \"  1\", expected a blank and a value\n")},
        {ROW("a{b=\"c\"d=\"e\"} 1\n# EOF\n",
             "1: found \"d=\\\"e\\\"} 1\", expected \",\" or \"}\" after the label\n")},
        {ROW("a{b=\"c\n\"} 1\n# EOF\n",
             "1: found \"\\\"c\", expected a closing quote on the same line\n")},
        {ROW("a 1 NaN\n# EOF\n", "1: found \" NaN\", expected a timestamp in seconds, or \"# {\" "
                                 "and an exemplar\n")},
        {ROW("a 1 # {\"x\"} 1\n# EOF\n",
             "1: found \"\\\"x\\\"} 1\", expected a label of the exemplar\n")},
        {ROW("a 1 # {} 1 Inf\n# EOF\n",
             "1: found \" Inf\", expected the exemplar's timestamp in seconds\n")},
        {ROW("# hello\n# EOF\n", "1: found \"# hello\", expected \"# HELP \", \"# TYPE \", \"# "
                                 "UNIT \" or \"# EOF\"\n")},
        {ROW("# UNIT a_bytes seconds\n# EOF\n", "1: found \" seconds\", expected a unit that the "
                                                "family's name ends with, after \"_\"\n")},
        {ROW("# TYPE a untyped\n# EOF\n",
             "1: found \" untyped\", expected a type: counter, gauge, histogram, gaugehistogram, "
             "summary, info, stateset or unknown\n")},
        {ROW("# HELP a b", "1: found the end of the body, expected the end of the line\n")},
    };
    (void)state;
    expect_rows(rows, sizeof(rows) / sizeof(rows[0]), OPENMETRICS);
}

/* What strconv.ParseFloat reads but Prometheus refuses, and the other way around. */
static void values_are_those_of_go(void **state)
{
    static const struct {
        const char *text;
        double value; /* NaN: refused */
    } rows[] = {
        {"0", 0},
        {"-0", -0.0},
        {"+1", 1},
        {".5", 0.5},
        {"5.", 5},
        {"1e5", 1e5},
        {"1E-7", 1e-7},
        {"0.1", 0.1},
        {"00012.50", 12.5},
        {"9007199254740993", 9007199254740992.0},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"0.1234567890123456789", 0.1234567890123456789},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9e-324", 4.9e-324},
        {"1e-400", 0},
        {"Inf", INFINITY},
        {"-inf", -INFINITY},
        {"+INFINITY", INFINITY},
        {"1e400", NAN},
        {"+nan", NAN},
        {"0x1p3", NAN},
        {"1_0", NAN},
        {"1e", NAN},
        {".", NAN},
        {"--1", NAN},
        {"1.2.3", NAN},
        {"infi", NAN},
        {"1,5", NAN},
    };
    struct exposition_reader reader;
    struct exposition_entry entry;
    char body[100];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int has_end = 0; has_end < 2; has_end++) {
            snprintf(body, sizeof(body), "a %s%s", rows[i].text, has_end ? "\n" : "");
            exposition_reader_init(&reader, slice_of_text(body), TEXT, NULL);
            bool is_read = exposition_reader_next(&reader, &entry);
            if (is_read == isnan(rows[i].value) ||
                (is_read &&
                 (entry.value != rows[i].value || signbit(entry.value) != signbit(rows[i].value))))
                fail_msg("%s: %.17g", rows[i].text, is_read ? entry.value : NAN);
            exposition_reader_fini(&reader);
        }
    }
    exposition_reader_init(&reader, slice_of_text("a NaN\n"), TEXT, NULL);
    assert_true(exposition_reader_next(&reader, &entry));
    uint64_t bits;
    memcpy(&bits, &entry.value, sizeof(bits));
    assert_true(bits == EXPOSITION_NAN_BITS);
    exposition_reader_fini(&reader);
}

static void bounds_and_quantiles_are_written_in_one_way(void **state)
{
    static const struct {
        const char *value;
        const char *expected;
    } rows[] = {
        {"1", "1.0"},
        {"0.50", "0.5"},
        {"+Inf", "+Inf"},
        {"inf", "+Inf"},
        {"1e3", "1000.0"},
        {"1000000", "1e+06"},
        {"0.0001", "0.0001"},
        {"0.00001", "1e-05"},
        {"0x1p4", "16.0"},
        {"1_000", "1000.0"},
        {"1__0", "1__0"},
        {"-0", "0.0"},
        {"NaN", "NaN"},
        {"1e400", "1e400"},
        {"x", "x"},
        {"", ""},
        {"123456.7", "123456.7"},
        {"1234567.8", "1.2345678e+06"},
        {"00.5", "0.5"},
    };
    char body[200];
    char expected[200];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(
            body, sizeof(body),
            "# TYPE a histogram\na{le=\"%s\"} 1\n# TYPE a summary\na{quantile=\"%s\",le=\"1\"} 1\n"
            "# TYPE a gauge\na{le=\"1\",quantile=\"1\"} 1\n",
            rows[i].value, rows[i].value);
        snprintf(expected, sizeof(expected),
                 "TYPE a histogram\na{le=%s} 1\nTYPE a summary\na{quantile=%s,le=1} 1\n"
                 "TYPE a gauge\na{le=1,quantile=1} 1\n",
                 rows[i].expected, rows[i].expected);
        expect(body, strlen(body), TEXT, expected);
    }
}

/* A body whose sample has so many labels. */
static char *with_labels(size_t count)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("a{", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "l%zu=\"\\\\\",", i);
    fputs("} 1\n", out);
    fclose(out);
    return text;
}

static void a_sample_has_a_limited_number_of_labels(void **state)
{
    struct exposition_reader reader;
    struct exposition_entry entry;
    (void)state;
    char *body = with_labels(EXPOSITION_READER_LABELS_MAX);
    exposition_reader_init(&reader, slice_of_text(body), TEXT, NULL);
    assert_true(exposition_reader_next(&reader, &entry));
    assert_int_equal(entry.labels_count, EXPOSITION_READER_LABELS_MAX);
    for (size_t i = 0; i < entry.labels_count; i++)
        assert_true(slice_equal_text(entry.labels[i].value, "\\"));
    free(body);
    body = with_labels(EXPOSITION_READER_LABELS_MAX + 1);
    exposition_reader_init_again(&reader, slice_of_text(body), TEXT);
    assert_false(exposition_reader_next(&reader, &entry));
    assert_non_null(strstr(reader.failure, "expected no more than 512 labels"));
    exposition_reader_fini(&reader);
    free(body);
}

/* Unescaped text is as long as the sample at the most. */
static void escaped_text_is_charged(void **state)
{
    enum { LABEL_BYTES = 10000, BODY_BYTES = LABEL_BYTES + 20 };
    struct exposition_reader reader;
    struct exposition_entry entry;
    struct budget budget;
    char body[BODY_BYTES];
    (void)state;
    const int size =
        snprintf(body, sizeof(body), "a{b=\"\\n%*s\"} 1\na{b=\"\\n\"} 1\n", LABEL_BYTES - 20, "");
    budget_init(&budget, UINT64_MAX);
    exposition_reader_init(&reader, slice_of(body, (size_t)size), TEXT, &budget);
    assert_true(exposition_reader_next(&reader, &entry));
    assert_in_range(budget_used(&budget), LABEL_BYTES - 20, size);
    assert_true(exposition_reader_next(&reader, &entry));
    exposition_reader_fini(&reader);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    budget_init(&budget, LABEL_BYTES / 2);
    exposition_reader_init(&reader, slice_of(body, (size_t)size), TEXT, &budget);
    assert_false(exposition_reader_next(&reader, &entry));
    assert_string_equal(reader.failure, "no memory for its escaped text");
    exposition_reader_fini(&reader);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void it_fails_when_memory_is_refused(void **state)
{
    static const char *const bodies[] = {"a{b=\"\\n\"} 1\n", "# HELP a \\n\n"};
    struct exposition_reader reader;
    struct exposition_entry entry;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        exposition_reader_init(&reader, slice_of_text(bodies[i]), TEXT, NULL);
        mem_refuse_nth(1);
        assert_false(exposition_reader_next(&reader, &entry));
        mem_refuse_nth(0);
        assert_true(reader.has_failed);
        assert_non_null(strstr(reader.failure, "no memory"));
        exposition_reader_fini(&reader);
    }
}

static void the_series_and_the_line_are_those_of_the_body(void **state)
{
    static const char body[] = "# x\na { b=\"\\n\" } 1\nc 2\n";
    struct exposition_reader reader;
    struct exposition_entry entry;
    (void)state;
    exposition_reader_init(&reader, slice_of_text(body), TEXT, NULL);
    assert_true(exposition_reader_next(&reader, &entry));
    assert_int_equal(entry.line, 2);
    assert_true(slice_equal_text(entry.series, "a { b=\"\\n\" }"));
    assert_true(exposition_reader_next(&reader, &entry));
    assert_int_equal(entry.line, 3);
    assert_true(slice_equal_text(entry.series, "c"));
    exposition_reader_fini(&reader);
}

static void the_media_type_decides(void **state)
{
    static const struct {
        const char *type;
        enum exposition_protocol expected;
    } rows[] = {
        {"text/plain; version=0.0.4; charset=utf-8", TEXT},
        {"text/plain;version=1.0.0;escaping=allow-utf-8", TEXT},
        {"TEXT/Plain", TEXT},
        {"application/openmetrics-text; version=1.0.0", OPENMETRICS},
        {"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily",
         EXPOSITION_PROTOCOL_PROTOBUF},
        {"", EXPOSITION_PROTOCOL_NONE},
        {"text/html", EXPOSITION_PROTOCOL_NONE},
        {"application/openmetrics-text; version=", EXPOSITION_PROTOCOL_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice type = slice_of_text(rows[i].type);
        assert_int_equal(exposition_protocol_of(type, EXPOSITION_PROTOCOL_NONE), rows[i].expected);
        if (rows[i].expected == EXPOSITION_PROTOCOL_NONE)
            assert_int_equal(exposition_protocol_of(type, TEXT), TEXT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_format_is_read),
        cmocka_unit_test(openmetrics_is_read),
        cmocka_unit_test(what_text_cannot_be_is_refused),
        cmocka_unit_test(what_openmetrics_cannot_be_is_refused),
        cmocka_unit_test(values_are_those_of_go),
        cmocka_unit_test(bounds_and_quantiles_are_written_in_one_way),
        cmocka_unit_test(a_sample_has_a_limited_number_of_labels),
        cmocka_unit_test(escaped_text_is_charged),
        cmocka_unit_test(it_fails_when_memory_is_refused),
        cmocka_unit_test(the_series_and_the_line_are_those_of_the_body),
        cmocka_unit_test(the_media_type_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
