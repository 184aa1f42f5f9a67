/* SPDX-License-Identifier: Apache-2.0 */
/* What the query of an upload says: names, times and the rest. */
#include "src/profiles/pyroscope/ingest_query.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS ((uint64_t)1790000000 * NS_PER_S)

/* app{key=value,…}, or what is wrong. */
static void describe(const char *text, char *to, size_t size)
{
    struct ingest_name name;
    struct error error = {.text = ""};
    if (!ingest_name_parse(slice_of_text(text), &name, &error)) {
        snprintf(to, size, "! %s", error.text);
        return;
    }
    size_t used =
        (size_t)snprintf(to, size, "%.*s{", (int)name.app.size, (const char *)name.app.data);
    for (size_t i = 0; i < name.labels.count; i++) {
        const struct series_label *label = &name.labels.labels[i];
        used += (size_t)snprintf(to + used, size - used, "%s%.*s=%.*s", i > 0 ? "," : "",
                                 (int)label->name.size, (const char *)label->name.data,
                                 (int)label->value.size, (const char *)label->value.data);
    }
    snprintf(to + used, size - used, "}");
}

static void names_follow_the_grammar_of_the_server(void **state)
{
    static const char *const cases[][2] = {
        {"app", "app{}"},
        {"app{}", "app{}"},
        {" app ", "app{}"},
        {"a-b/c.d_9", "a-b/c.d_9{}"},
        {"app{a=b}", "app{a=b}"},
        {"app{a=b,c=d}", "app{a=b,c=d}"},
        {"app{ a = b , c = d }", "app{a=b,c=d}"},
        {"app{a=b c\"d=e}", "app{a=b c\"d=e}"},
        {"app{a=b,a=c}", "app{a=c}"},
        {"app{a=}", "app{a=}"},
        {"app{a=b,}", "app{a=b}"},
        {"app{host.name=h,__session_id__=x}", "app{host.name=h,__session_id__=x}"},
        {"app{a=b}c=d}", "app{a=b,c=d}"},
        {"app{a=b}}c=d}", "app{a=b}"},
        {"app{a=b", "app{}"},
        {"app{__name__=other}", "other{}"},
        {"", "! name: service name is required"},
        {"{a=b}", "! name: service name is required"},
        {"a b", "! name: invalid service name: a b: character is not allowed: ' '"},
        {"app{=b}", "! name: label name is required"},
        {"app{b-c=d}", "! name: invalid label name: b-c: character is not allowed: '-'"},
        {"\xc3\xa4", "! name: invalid service name: \xc3\xa4: character is not allowed: '?'"},
    };
    char found[8192];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        describe(cases[i][0], found, sizeof(found));
        assert_string_equal(found, cases[i][1]);
    }
}

static void labels_of_a_name_are_bounded(void **state)
{
    char text[4096] = "app{";
    char found[8192];
    (void)state;
    for (unsigned i = 0; i <= SERIES_LABELS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "l%u=v,", i);
    describe(text, found, sizeof(found));
    assert_string_equal(found, "! name: more than 128 labels");
}

static void times_come_in_every_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns; /* 0: refused */
    } cases[] = {
        {"1789999990", NOW_NS - 10 * (uint64_t)NS_PER_S},
        {"1790000000123", NOW_NS + 123 * (uint64_t)NS_PER_MS},
        {"1790000000123456", NOW_NS + 123456 * (uint64_t)NS_PER_US},
        {"1790000000123456789", NOW_NS + 123456789},
        {"17_900,000 00", NOW_NS},
        {"20260921", (uint64_t)1789948800 * NS_PER_S},
        {"20261321", (uint64_t)20261321 * NS_PER_S}, /* no day: seconds */
        {"20260631", (uint64_t)20260631 * NS_PER_S},
        {"23260921", 0}, /* a day that nanoseconds cannot tell */
        {"now", NOW_NS},
        {"now-1h", NOW_NS - 3600 * (uint64_t)NS_PER_S},
        {"now-1h30min", NOW_NS - 5400 * (uint64_t)NS_PER_S},
        {"now+5s", NOW_NS + 5 * (uint64_t)NS_PER_S},
        {"-2d", NOW_NS - 172800 * (uint64_t)NS_PER_S},
        {"now-1mon", NOW_NS - 2592000 * (uint64_t)NS_PER_S},
        {"", NOW_NS},
        {"abc", NOW_NS},
        {"tomorrow", NOW_NS},
        {"1790000000.75", NOW_NS},
        {"12x", NOW_NS},
        {"now-", NOW_NS},
        {"now-h", NOW_NS},
        {"now-1x", NOW_NS},
        {"now-1x-2s", NOW_NS - 2 * (uint64_t)NS_PER_S},
        {"abc-1h", NOW_NS - 3600 * (uint64_t)NS_PER_S},
        {"now-1h+5s", NOW_NS + 5 * (uint64_t)NS_PER_S},
        {"0000000000000000000000000000000000000000000000000000000000000000", NOW_NS}, /* too long */
        {"now-99999999999y", 0},
        {"99999999999999999999", 0},
        {"9999999999999999999", 0},
        {"99999999999", 0}, /* seconds that nanoseconds cannot tell */
        {"now-100y", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ns = 0;
        bool is_time = ingest_time_parse(slice_of_text(cases[i].text), NOW_NS, &ns);
        if (is_time != (cases[i].ns != 0) || (is_time && ns != cases[i].ns))
            fail_msg("\"%s\": found %llu", cases[i].text, (unsigned long long)ns);
    }
}

static void a_query_is_decoded_and_has_defaults(void **state)
{
    struct ingest_query query;
    struct error error = {.text = ""};
    (void)state;
    assert_true(ingest_query_parse(
        &query,
        slice_of_text("name=a%7Bk%3Dv+w%7D&from=1789999990&sampleRate=97&spyName=gospy&name=other"),
        NOW_NS, &error));
    assert_true(slice_equal_text(query.name.app, "a"));
    assert_true(slice_equal_text(*series_find(&query.name.labels, "k"), "v w"));
    assert_int_equal(query.from_ns, NOW_NS - 10 * (uint64_t)NS_PER_S);
    assert_int_equal(query.until_ns, NOW_NS);
    assert_int_equal(query.sample_rate, 97);
    assert_true(slice_equal_text(query.spy_name, "gospy"));
    ingest_query_fini(&query);
    assert_true(
        ingest_query_parse(&query, slice_of_text("name=a&sampleRate=x&units="), NOW_NS, &error));
    assert_int_equal(query.sample_rate, 100);
    assert_true(slice_equal_text(query.spy_name, "unknown"));
    ingest_query_fini(&query);
}

static void broken_queries_are_refused_in_words(void **state)
{
    static const char *const cases[][2] = {
        {"", "name: service name is required"},
        {"name=%zz", "invalid URL escape in the query"},
        {"name=a%", "invalid URL escape in the query"},
        {"name=a%4", "invalid URL escape in the query"},
        {"name=a&from=23260921", "from: found \"23260921\", expected a time from 1970 to 2262: "
                                 "seconds, 13, 16 or 19 digits "
                                 "for milli-, micro- or nanoseconds, YYYYMMDD, or now-1h"},
        {"name=a&spyName=%ff", "spyName: found bytes that are not UTF-8"},
    };
    struct ingest_query query;
    struct error error;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_false(ingest_query_parse(&query, slice_of_text(cases[i][0]), NOW_NS, &error));
        assert_string_equal(error.text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_the_grammar_of_the_server),
        cmocka_unit_test(labels_of_a_name_are_bounded),
        cmocka_unit_test(times_come_in_every_unit),
        cmocka_unit_test(a_query_is_decoded_and_has_defaults),
        cmocka_unit_test(broken_queries_are_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
