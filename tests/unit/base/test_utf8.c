/* SPDX-License-Identifier: Apache-2.0 */
/* Whole texts in UTF-8, and their case. */
#include "src/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/utf8_case.h"

static void a_text_is_valid_as_a_whole(void **state)
{
    static const struct {
        const char *text;
        bool is_valid;
    } rows[] = {
        {"", true},
        {"plain text of more than eight bytes", true},
        {"\xc3\xa9", true},
        {"1234567\xc3\xa9 12345678 \xf0\x9f\x98\x80", true},
        {"12345678\xff", false},
        {"1234567\xc3", false},
        {"\xed\xa0\x80", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(utf8_is_valid(slice_of_text(rows[i].text)), rows[i].is_valid);
}

/* By UnicodeData.txt; bytes that are not UTF-8 become U+FFFD. */
static void case_is_changed_character_by_character(void **state)
{
    static const struct {
        const char *text, *lower, *upper;
    } rows[] = {
        {"", "", ""},
        {"aZ[`{09", "az[`{09", "AZ[`{09"},
        {"Éé×÷", "éé×÷", "ÉÉ×÷"},
        {"ẞß", "ßß", "ẞß"},
        {"İı", "iı", "İI"},
        {"ǅ", "ǆ", "Ǆ"},
        {"ĀāĂ", "āāă", "ĀĀĂ"},
        {"\xe2\x84\xaa", "k", "\xe2\x84\xaa"}, /* the Kelvin sign */
        {"\xf0\x90\x90\x80", "\xf0\x90\x90\xa8", "\xf0\x90\x90\x80"},
        {"a\xff", "a\xef\xbf\xbd", "A\xef\xbf\xbd"},
        {"日本", "日本", "日本"},
    };
    uint8_t room[64 * UTF8_CASE_GROWTH_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice text = slice_of_text(rows[i].text);
        assert_true(slice_equal_text(slice_of(room, utf8_to_lower(text, room)), rows[i].lower));
        assert_true(slice_equal_text(slice_of(room, utf8_to_upper(text, room)), rows[i].upper));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_valid_as_a_whole),
        cmocka_unit_test(case_is_changed_character_by_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
