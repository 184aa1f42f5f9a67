/* SPDX-License-Identifier: Apache-2.0 */
/* htpasswd lines as htpasswd(1), openssl passwd and the Go library write and accept them. */
#include "extensions/htpasswd.h"

#include "src/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct htpasswd *htpasswd;

static int set_up(void **state)
{
    struct error error;
    (void)state;
    htpasswd = htpasswd_create(&error);
    assert_non_null(htpasswd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    htpasswd_destroy(htpasswd);
    return 0;
}

static void every_form_lets_the_right_password_in(void **state)
{
    static const struct {
        const char *line;
        const char *password;
    } rows[] = {
        {"u:$2b$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey", "hello"},
        {"u:$2y$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey", "hello"},
        {"u:$2a$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey", "hello"},
        {"u:$apr1$abcdefgh$cy3DSYyOwfhsyu7QOMQzd.", "hello"},
        {"u:$1$abcdefgh$rwnEbRiN0agqVgZBovWNQ/", "hello"},
        {"u:$6$abcdefgh$"
         "bp46WUxDu2cphMRE0PvVJlqas2imuSq186YS793XKfmqn9XUEL17HECskUTZInaNigNndLLYc7A6"
         "yWBmFEFn3/",
         "hello"},
        {"u:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00=", "hello"},
        {"u:{SSHA}FPvT+WAOz8Kj1D5MB6mKh1x5EKJzYWx0", "hello"},
        {"u:hello", "hello"},
        {"u:{PLAIN}hello", "hello"},
        {"  u:a:b  \r", "a:b"}, /* all that follows the first colon */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        htpasswd_clear(htpasswd);
        assert_int_equal(htpasswd_add(htpasswd, slice_of_text(rows[i].line)), 0);
        if (!htpasswd_matches(htpasswd, "u", rows[i].password))
            fail_msg("%s", rows[i].line);
        if (htpasswd_matches(htpasswd, "u", "hellp") || htpasswd_matches(htpasswd, "u", "") ||
            htpasswd_matches(htpasswd, "v", rows[i].password))
            fail_msg("%s lets too many in", rows[i].line);
    }
}

static void malformed_lines_match_no_password(void **state)
{
    static const char *const rows[] = {
        "nobody", "u:$apr1$nohash", "u:{SHA}not base64", "u:{SHA}AAAA", "u:{SSHA}AAAA",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        htpasswd_clear(htpasswd);
        assert_int_equal(htpasswd_add(htpasswd, slice_of_text(rows[i])), 1);
        assert_int_equal(htpasswd_users(htpasswd), 0);
        assert_false(htpasswd_matches(htpasswd, "u", "hello"));
    }
}

static void hashes_unknown_to_crypt_match_no_password(void **state)
{
    (void)state;
    assert_int_equal(htpasswd_add(htpasswd, slice_of_text("u:$2y$99$short\nv:$6$\n")), 0);
    assert_false(htpasswd_matches(htpasswd, "u", "$2y$99$short"));
    assert_false(htpasswd_matches(htpasswd, "u", "*0"));
    assert_false(htpasswd_matches(htpasswd, "v", ""));
}

static void the_last_line_of_a_user_counts(void **state)
{
    (void)state;
    assert_int_equal(htpasswd_add(htpasswd, slice_of_text("a:1\n\nb:2\n")), 0);
    assert_int_equal(htpasswd_add(htpasswd, slice_of_text("a:3")), 0);
    assert_int_equal(htpasswd_users(htpasswd), 2);
    assert_true(htpasswd_matches(htpasswd, "a", "3"));
    assert_false(htpasswd_matches(htpasswd, "a", "1"));
    assert_true(htpasswd_matches(htpasswd, "b", "2"));
}

/* The hash would be the password. */
static void schemes_that_cannot_be_checked_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *error; /* NULL: fine */
    } rows[] = {
        {"a:b\nu:$y$j9T$abc$def",
         "line 2 of htpasswd, user \"u\": found a password in the scheme $y$,"},
        {"\n\n  u:$argon2id$v=19$m=65536$x$y\n", "line 3 of htpasswd, user \"u\""},
        {"u:$argon2id$v=19$m=65536$x$y", "the scheme $argon2id$,"},
        {"u:$7$C6..../....x$y", "the scheme $7$,"},
        {"u:{CRYPT}rl.3StKT.4T8M", "the scheme {CRYPT},"},
        {"u:rl.3StKT.4T8M", "the scheme DES,"},
        {"u:_J9..rasmBYk8r9AiWNc", "the scheme DES,"},
        {"u:{PLAIN}rl.3StKT.4T8M", NULL},
        {"u:{PLAIN}$y$j9T$abc$def", NULL},
        {"u:$2y$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey", NULL},
        {"u:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00=", NULL},
        {"u:$apr1$abcdefgh$cy3DSYyOwfhsyu7QOMQzd.\nv:hello\nw:cost: 5$", NULL},
        {"u:correct horse", NULL},
        {"a:b\nu:$2y$16$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey",
         "line 2 of htpasswd, user \"u\": found a cost of 16, expected at most 15"},
        {"u:$2b$15$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey", NULL},
        {"u:$6$rounds=1000001$salt$hash", "found 1000001 rounds, expected at most 1000000"},
        {"u:$5$rounds=99999999999999999999$salt$hash", "expected at most 1000000"},
        {"u:$5$rounds=1000000$salt$hash", NULL},
        {"u:$ecret", NULL},
        {"u:{}", NULL},
        {"u:", NULL},
        {"", NULL},
        {"u", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        if (htpasswd_check(slice_of_text(rows[i].text), &error) != (rows[i].error == NULL) ||
            (rows[i].error != NULL && strstr(error.text, rows[i].error) == NULL))
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_null(strstr(error.text, "T.4T8M"));
        assert_null(strstr(error.text, "abc$def"));
    }
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_that_cannot_be_checked_are_refused),
        ROW(every_form_lets_the_right_password_in),
        ROW(malformed_lines_match_no_password),
        ROW(hashes_unknown_to_crypt_match_no_password),
        ROW(the_last_line_of_a_user_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
