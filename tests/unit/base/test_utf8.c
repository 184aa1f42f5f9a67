/* SPDX-License-Identifier: Apache-2.0 */
/* Whole texts in UTF-8, their case, and which characters are letters and white space. */
#include "src/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/utf8_case.h"
#include "src/base/utf8_classes.h"

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

static void letters_beyond_ascii_are_known(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } rows[] = {
        {"a", 0},      {"é", 2},      {"\u00aa", 2},     {"\u00ab", 0},     {"日", 3},
        {"\u0374", 2}, {"\u0375", 0}, {"\u2603", 0},     {"\U00010000", 4}, {"\U0001f600", 0},
        {"\xc3", 0},   {"\xff", 0},   {"\U000323af", 4}, {"\U000323b0", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(utf8_wide_letter_size(slice_of_text(rows[i].text)), rows[i].size);
}

static void white_space_of_all_scripts_is_trimmed(void **state)
{
    static const struct {
        const char *text, *trimmed;
    } rows[] = {
        {"", ""},
        {" \t\n\v\f\r", ""},
        {"\u3000\u00a0a \xc2\x85 b\u2028\xc2\x85", "a \xc2\x85 b"},
        {"\u200b", "\u200b"},
        {"\x85"
         "a\xa0",
         "\x85"
         "a\xa0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(
            slice_equal_text(utf8_trim_space(slice_of_text(rows[i].text)), rows[i].trimmed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_valid_as_a_whole),
        cmocka_unit_test(letters_beyond_ascii_are_known),
        cmocka_unit_test(white_space_of_all_scripts_is_trimmed),
        cmocka_unit_test(case_is_changed_character_by_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
