/* SPDX-License-Identifier: Apache-2.0 */
/* What paths become. Expected texts are those of the Go collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/arena.h"
#include "src/records/letter_pairs.h"
#include "src/records/url_sanitizer.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

struct row {
    const char *text;
    const char *expected;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        arena_init(&arena, ARENA_BYTES_MAX);
        struct slice result = url_sanitize(&arena, slice_of_text(rows[i].text));
        if (!slice_equal_text(result, rows[i].expected))
            fail_msg("%s becomes %.*s instead of %s", rows[i].text, (int)result.size,
                     (const char *)result.data, rows[i].expected);
        arena_clear(&arena);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void segments_with_other_bytes_are_ids(void **state)
{
    static const struct row rows[] = {
        {"", ""},
        {"/", "/"},
        {"//", "//"},
        {"/users/12345", "/users/*"},
        {"/users/123/posts/456", "/users/*/posts/*"},
        {"users/123/", "users/*/"},
        {"/users/9f86d081-884c-4d65-9a2f-eaa0c55ad015/avatar", "/users/*/avatar"},
        {"/api/user_space/hello.world/a-b", "/api/user_space/hello.world/a-b"},
        {"GET /users/7", "GET /users/*"},
        {"https://example.com/users/7", "*//example.com/users/*"},
        {"/users/jane@example.com", "/users/*"},
        {"/caf%C3%A9/caf\xc3\xa9/\xc3\xa9", "/*/*/*"},
        {"/~jane/*/{id}/:id", "/*/*/*/*"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

/* Once, and not at the first place. */
static void the_second_byte_may_be_any(void **state)
{
    static const struct row rows[] = {
        {"/v1/products/2", "/v1/products/*"},
        {"/v1beta1/k8s/k6-test-runs", "/*/k8s/k6-test-runs"},
        {"/v12/1v/a1b2/x\xff", "/*/*/*/x\xff"},
        {"/a1/1/a*", "/a1/*/a*"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void random_letters_are_ids(void **state)
{
    static const struct row rows[] = {
        {"/users/fdklsd/job/xKqPzWvb", "/users/*/job/*"},
        {"/xqzjk-vbnmq", "/*"},
        {"/Benutzer/usuarios/utilisateurs", "/Benutzer/usuarios/utilisateurs"},
        {"/web/css/js/otp/de-DE/en-US", "/web/*/*/*/de-DE/en-US"},
        {"/getquote/GetSupportedCurrencies", "/getquote/GetSupportedCurrencies"},
        /* Nothing that could be compared. */
        {"/q/-/_/..", "/q/-/_/.."},
    };
    (void)state;
    CHECK_ROWS(rows);
    assert_true(letter_pairs_are_word(slice_of_text("connection refused by peer")));
    assert_true(letter_pairs_are_word(slice_of_text("")));
    assert_true(letter_pairs_are_word(slice_of_text("q")));
    assert_false(letter_pairs_are_word(slice_of_text("xqzjk")));
    assert_false(letter_pairs_are_word(slice_of_text("XQZ.JK")));
}

static void what_follows_the_path_goes(void **state)
{
    static const struct row rows[] = {
        {"/attach?session=1&track=2", "/attach"},
        {"/attach#part", "/attach"},
        {"/attach&part/more", "/attach"},
        {"?", ""},
        {"#a", ""},
        {"/?a", "/"},
        {"/a/?a", "/a/"},
        {"12?", "*"},
        {"/12?a", "/*"},
        /* There letters are not looked at. */
        {"/fdklsd?a", "/fdklsd"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void only_so_many_segments_stay(void **state)
{
    static const struct row rows[] = {
        {"/a/b/c/d/e/f/g/h/i", "/a/b/c/d/e/f/g/h/i"},
        {"/a/b/c/d/e/f/g/h/i/", "/a/b/c/d/e/f/g/h/i"},
        {"/a/b/c/d/e/f/g/h/i/j/k", "/a/b/c/d/e/f/g/h/i"},
        {"a/b/c/d/e/f/g/h/i/j/k", "a/b/c/d/e/f/g/h/i/j"},
        {"//////////////", "/////////"},
        {"/a/b/c/d/e/f/g/h/1", "/a/b/c/d/e/f/g/h/*"},
        /* Go's stars for the last one. */
        {"/a/b/c/d/e/f/g/h/1/j", "/a/b/c/d/e/f/g/h/**"},
        {"/a/b/c/d/e/f/g/h/123/", "/a/b/c/d/e/f/g/h/**"},
        {"/a/b/c/d/e/f/g/h/zqx/j", "/a/b/c/d/e/f/g/h/**"},
        {"/a/b/c/d/e/f/g/h/zq/j", "/a/b/c/d/e/f/g/h/*q"},
        {"/a/b/c/d/e/f/g/h/zq?j", "/a/b/c/d/e/f/g/h/zq"},
    };
    (void)state;
    CHECK_ROWS(rows);
}

static void texts_are_copied_only_if_need_be(void **state)
{
    struct arena arena;
    struct slice text = slice_of_text("/users/list?page=2");
    (void)state;
    arena_init(&arena, 0);
    struct slice result = url_sanitize(&arena, text);
    assert_ptr_equal(result.data, text.data);
    assert_int_equal(result.size, strlen("/users/list"));
    /* What has ids is not shown when there is no memory. */
    assert_true(slice_equal_text(url_sanitize(&arena, slice_of_text("/users/1")), "****"));
    arena_clear(&arena);
}

static void hidden_ones_have_stars_alone(void **state)
{
    static const char *const hidden[] = {"*", "/*", "*/", "/*/*", "//*"};
    static const char *const shown[] = {"", "/", "//", "/*/a", "a", "**", "/users/*"};
    (void)state;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        assert_true(url_is_hidden(slice_of_text(hidden[i])));
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        assert_false(url_is_hidden(slice_of_text(shown[i])));
}

static void keys_are_those_of_the_settings(void **state)
{
    static const char *const keys[] = {"url", "http.url"};
    struct url_settings settings = {.attributes = {.count = 2, .texts = keys},
                                    .has_span_names = true};
    (void)state;
    assert_null(url_sanitizer_create(&settings));
    assert_false(url_sanitizer_has_key(NULL, slice_of_text("url")));
    assert_false(url_sanitizer_has_span_names(NULL));
    url_sanitizer_destroy(NULL);
    settings.is_enabled = true;
    struct url_sanitizer *sanitizer = url_sanitizer_create(&settings);
    assert_true(url_sanitizer_has_key(sanitizer, slice_of_text("url")));
    assert_false(url_sanitizer_has_key(sanitizer, slice_of_text("ur")));
    assert_true(url_sanitizer_has_span_names(sanitizer));
    url_sanitizer_destroy(sanitizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_with_other_bytes_are_ids),
        cmocka_unit_test(the_second_byte_may_be_any),
        cmocka_unit_test(random_letters_are_ids),
        cmocka_unit_test(what_follows_the_path_goes),
        cmocka_unit_test(only_so_many_segments_stay),
        cmocka_unit_test(texts_are_copied_only_if_need_be),
        cmocka_unit_test(hidden_ones_have_stars_alone),
        cmocka_unit_test(keys_are_those_of_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
