/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/explore/explore_query.h"

static struct explore_query query;

static bool parse(const char *text)
{
    const char *reason;
    return explore_query_parse(&query, slice_of_text(text), &reason);
}

static void check(const char *key, const char *value)
{
    struct slice found = explore_query_get(&query, key);
    if (value == NULL) {
        assert_null(found.data);
        return;
    }
    assert_non_null(found.data);
    assert_true(slice_equal_text(found, value));
}

static void decodes_what_browsers_send(void **state)
{
    (void)state;
    assert_true(parse("service=my+shop&name=GET%20%2Fcart&attr=a%3Db&empty=&bare&&x=1=2"));
    check("service", "my shop");
    check("name", "GET /cart");
    check("attr", "a=b");
    check("empty", "");
    check("bare", "");
    check("x", "1=2");
    check("other", NULL);
    assert_true(parse(""));
    assert_int_equal(query.count, 0);
}

static void refuses_broken_and_excessive_queries(void **state)
{
    (void)state;
    assert_false(parse("a=%"));
    assert_false(parse("a=%4"));
    assert_false(parse("a=%zz"));
    char long_text[EXPLORE_QUERY_BYTES_MAX + 2];
    memset(long_text, 'a', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    assert_false(parse(long_text));
    long_text[sizeof(long_text) - 2] = '\0';
    assert_true(parse(long_text));
    char many[2 * EXPLORE_PAIRS_MAX + 3];
    for (size_t i = 0; i < sizeof(many) - 1; i++)
        many[i] = i % 2 == 0 ? 'a' : '&';
    many[sizeof(many) - 1] = '\0';
    assert_false(parse(many));
    many[2 * EXPLORE_PAIRS_MAX] = '\0';
    assert_true(parse(many));
}

static void reads_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns; /* UINT64_MAX: refused */
    } durations[] = {
        {"250ms", 250000000}, {"1s", 1000000000},
        {"1.5s", 1500000000}, {"17", 17},
        {"3us", 3000},        {"3µs", 3000},
        {"2m", 120000000000}, {"1h", 3600000000000},
        {".5s", 500000000},   {"", UINT64_MAX},
        {"s", UINT64_MAX},    {"1.2.3s", UINT64_MAX},
        {"5 s", UINT64_MAX},  {"-1s", UINT64_MAX},
        {"1e9h", UINT64_MAX}, {"99999999999999999999h", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        uint64_t found = UINT64_MAX;
        bool is_read = explore_read_duration(slice_of_text(durations[i].text), &found);
        assert_int_equal(is_read, durations[i].ns != UINT64_MAX);
        if (is_read)
            assert_int_equal(found, durations[i].ns);
    }
    uint64_t number;
    assert_true(explore_read_number(slice_of_text("18446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
    assert_false(explore_read_number(slice_of_text("18446744073709551616"), &number));
    assert_false(explore_read_number(slice_of_text(""), &number));
    assert_false(explore_read_number(slice_of_text("1 "), &number));
    uint8_t bytes[2];
    assert_true(explore_read_hex(slice_of_text("aB09"), bytes, 2));
    assert_int_equal(bytes[0], 0xab);
    assert_int_equal(bytes[1], 0x09);
    assert_false(explore_read_hex(slice_of_text("aB0"), bytes, 2));
    assert_false(explore_read_hex(slice_of_text("aB0g"), bytes, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_browsers_send),
        cmocka_unit_test(refuses_broken_and_excessive_queries),
        cmocka_unit_test(reads_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
