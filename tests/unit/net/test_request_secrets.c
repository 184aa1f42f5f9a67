/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of a request that a back-end repeats are removed, in each form that they are sent in. */
#include "src/net/client/request_secrets.h"

#include "src/config/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct config_pair headers[] = {
    {"X-Key", "Bearer tok-12345"},
    {"Authorization", "Basic dXM6aHVudGVyMg=="},
    {"x-key-bin", "binary!"},
    {"X-Short", "ab"},
};
static const struct request_secrets secrets = {
    .headers = headers, .headers_count = 4, .userinfo = "me:open-sesame"};

static void each_form_of_a_secret_is_taken_out(void **state)
{
    static const char *const rows[][2] = {
        {"no secret, ab", "no secret, ab"},
        {"Bearer tok-12345!", "[REDACTED]!"},
        {"tok-12345tok-12345", "[REDACTED][REDACTED]"},
        {"dXM6aHVudGVyMg== hunter2 us:hunter2", "[REDACTED] [REDACTED] [REDACTED]"},
        {"binary! YmluYXJ5IQ== YmluYXJ5IQ", "[REDACTED] [REDACTED]== [REDACTED]"},
        {"me:open-sesame", "[REDACTED]"},
        {"it was tok-1234", "it was tok-1234"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "%s", rows[i][0]);
        request_secrets_redact(&secrets, text, sizeof(text));
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(request_secrets_are_in(&secrets, slice_of_text(rows[i][0])),
                         i != 0 && i != 6);
    }
}

/* A string that fills its room has lost its end: what is left of a secret there goes too. */
static void a_secret_at_a_cut_is_taken_out(void **state)
{
    (void)state;
    for (size_t begun = 1; begun <= strlen("tok-12345"); begun++) {
        char text[64];
        char room[64];
        snprintf(text, sizeof(text), "it was sent as %.*s", (int)begun, "tok-12345");
        size_t size = strlen(text) + 1;
        memcpy(room, text, size);
        request_secrets_redact(&secrets, room, size);
        if (begun < REQUEST_SECRET_BYTES_MIN)
            assert_string_equal(room, text);
        else
            assert_null(strstr(room, "tok-"));
        assert_memory_equal(room, "it was sent as ", 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_of_a_secret_is_taken_out),
        cmocka_unit_test(a_secret_at_a_cut_is_taken_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
