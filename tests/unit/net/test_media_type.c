/* SPDX-License-Identifier: Apache-2.0 */
/* Content-Type values that name a type, and those that name none. */
#include "src/net/syntax/media_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_type_is_known_whatever_its_case_and_parameters(void **state)
{
    static const struct {
        const char *value;
        bool is_json;
    } rows[] = {
        {"application/json", true},
        {"APPLICATION/JSON", true},
        {" application/json ", true},
        {"application/json;", true},
        {"application/json; charset=utf-8", true},
        {"application/json;a=\"b;c\\\"d\"; e=f", true},
        {"application/json; a = b ; c\t=\t\"d\"", true},
        {"", false},
        {"application", false},
        {"application/jsonp", false},
        {"application/json x", false},
        {"application/json, text/html", false},
        {"application/json; a", false},
        {"application/json; a=", false},
        {"application/json; =b", false},
        {"application/json; a=\"b", false},
        {"application/json; a=\"b\\", false},
        {"application/json; a=b; A=c", false},
        {"application/json; a=b; A=b", true},
        {"application/json; a=b; c=d; a=\"b", false},
        {"application/json; a=b;; c=d", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (media_type_is(slice_of_text(rows[i].value), "application/json") != rows[i].is_json)
            fail_msg("%s", rows[i].value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_is_known_whatever_its_case_and_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
