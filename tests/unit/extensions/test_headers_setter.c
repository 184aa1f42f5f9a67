/* SPDX-License-Identifier: Apache-2.0 */
/* headers_setter: what it changes in a request, from each source, for HTTP and for gRPC. */
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/config/field.h"
#include "src/core/client_info.h"
#include "src/net/client/request_edits.h"
#include "tests/unit/extensions/auth_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_MAX = 1024, ROWS_MAX = 16 };

static int set_up(void **state)
{
    (void)state;
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_authenticator();
    clock_fake_stop();
    return 0;
}

struct asked {
    struct credentials_request request;
    unsigned done;
    char error[256];
};

static void on_done(struct credentials_request *request, const char *error)
{
    struct asked *asked = request->arg;
    asked->done++;
    snprintf(asked->error, sizeof(asked->error), "%s", error != NULL ? error : "");
}

/* The headers "name=value;…" that a request with these headers, or this metadata, has in the end;
 * or the error. */
static const char *edited(bool is_grpc, const struct client_info *client, const char *headers)
{
    static char text[TEXT_MAX];
    char copy[TEXT_MAX];
    struct config_pair rows[ROWS_MAX];
    struct asked asked = {.request = {.client = client, .is_grpc = is_grpc, .done = on_done}};
    size_t count = 0;
    asked.request.arg = &asked;
    authenticator_ask(authenticator, &asked.request);
    assert_int_equal(asked.done, 1);
    snprintf(copy, sizeof(copy), "%s", headers);
    for (char *rest = copy, *row; (row = strsep(&rest, ";")) != NULL && row[0] != '\0';) {
        char *key = strsep(&row, "=");
        rows[count++] = (struct config_pair){.key = key, .value = row};
    }
    assert_true(count + asked.request.edits.count <= ROWS_MAX);
    count = request_edits_apply(&asked.request.edits, is_grpc, rows, count);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%s;", rows[i].key,
                 rows[i].value);
    request_edits_fini(&asked.request.edits);
    return asked.error[0] != '\0' ? strcpy(text, asked.error) : text;
}

static void each_action_does_what_its_name_says(void **state)
{
    static const struct {
        const char *action;
        bool is_grpc;
        const char *headers;
        const char *result;
    } rows[] = {
        {"insert", false, "a=1;", "a=1;X-K=v;"},
        {"insert", false, "x-k=1;", "x-k=1;"},
        {"insert", false, "x-k=;", "X-K=v;"}, /* as Go's Header.Get has it */
        {"insert", true, "x-k=;", "x-k=;"},
        {"update", false, "a=1;", "a=1;"},
        {"update", false, "x-k=1;a=1;", "X-K=v;a=1;"},
        {"update", false, "x-k=;", "x-k=;"},
        {"update", true, "x-k=;", "X-K=v;"},
        {"upsert", false, "x-k=1;", "X-K=v;"},
        {"upsert", true, "a=1;", "a=1;X-K=v;"},
        {"delete", false, "a=1;x-K=1;b=2;", "a=1;b=2;"},
        {"delete", false, "a=1;", "a=1;"},
        {"replace", false, "x-k=1;", "X-K=v;"}, /* an unknown word is upsert */
        {"''", false, "x-k=1;", "X-K=v;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[TEXT_MAX];
        snprintf(yaml, sizeof(yaml), "{headers: [{action: %s, key: X-K, value: v}]}",
                 rows[i].action);
        open_authenticator("headers_setter", yaml, AUTH_CLIENT);
        assert_string_equal(edited(rows[i].is_grpc, NULL, rows[i].headers), rows[i].result);
        close_authenticator();
    }
}

static void edits_come_one_after_the_other(void **state)
{
    (void)state;
    open_authenticator("headers_setter",
                       "{headers: [{action: insert, key: A, value: '1'}, {action: update, key: a, "
                       "value: '2'}, {action: insert, key: a, value: '3'}, {action: delete, key: "
                       "B}]}",
                       AUTH_CLIENT);
    assert_string_equal(edited(false, NULL, "b=1;"), "a=2;");
    assert_string_equal(edited(true, NULL, "b=1;"), "a=2;");
}

static void values_come_from_the_client_of_the_data(void **state)
{
    static const struct client_metadata metadata[] = {
        {"tenant", "acme"}, {"many", "1"}, {"many", "2"}, {"empty", ""}};
    static const struct client_metadata auth[] = {{"username", "ann"}};
    static const struct {
        const char *source;
        const char *known;
        const char *unknown; /* without client */
    } rows[] = {
        {"from_context: Tenant", "K=acme;", "K=;"},
        {"from_context: tenant, default_value: d", "K=acme;", "K=d;"},
        {"from_context: empty, default_value: d", "K=;", "K=d;"},
        {"from_context: absent", "K=;", "K=;"},
        {"from_context: many",
         "failed to determine the source: 2 source keys found in the context, can't determine "
         "which one to use",
         "K=;"},
        {"from_attribute: username", "K=ann;", "K=;"},
        {"from_attribute: Username, default_value: d", "K=d;", "K=d;"},
        {"from_attribute: tenant", "K=;", "K=;"},
        {"value: ''", "K=;", "K=;"},
    };
    (void)state;
    struct client_info *client = client_info_create("10.0.0.1", metadata, 4);
    struct client_info *user = client_info_with_auth(client, auth, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[TEXT_MAX];
        snprintf(yaml, sizeof(yaml), "{headers: [{action: upsert, key: K, %s}]}", rows[i].source);
        open_authenticator("headers_setter", yaml, AUTH_CLIENT);
        for (unsigned is_grpc = 0; is_grpc < 2; is_grpc++) {
            assert_string_equal(edited(is_grpc, user, ""), rows[i].known);
            assert_string_equal(edited(is_grpc, NULL, ""), rows[i].unknown);
        }
        close_authenticator();
    }
    client_info_unref(client);
    client_info_unref(user);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_file_is_read_again_when_it_changes(void **state)
{
    char path[] = "/tmp/test_headers_setter.XXXXXX";
    char yaml[TEXT_MAX];
    (void)state;
    close(mkstemp(path));
    write_file(path, " first\n\n");
    snprintf(yaml, sizeof(yaml), "{headers: [{action: upsert, key: K, value_file: %s}]}", path);
    open_authenticator("headers_setter", yaml, AUTH_CLIENT);
    assert_string_equal(edited(false, NULL, ""), "K=first;");
    write_file(path, "the second");
    assert_string_equal(edited(false, NULL, ""), "K=first;");
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    assert_string_equal(edited(false, NULL, ""), "K=the second;");
    /* What cannot be a value changes nothing. */
    write_file(path, " \n");
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    assert_string_equal(edited(false, NULL, ""), "K=the second;");
    write_file(path, "two\nlines");
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    assert_string_equal(edited(false, NULL, ""), "K=the second;");
    unlink(path);
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    assert_string_equal(edited(false, NULL, ""), "K=the second;");
}

/* HTTP: the other authenticator sees, and overrides, what this one has set. gRPC: the reverse. */
static void another_authenticator_is_asked_too(void **state)
{
    (void)state;
    assert_true(load_extensions(
        "{bearertokenauth: {token: t}, headers_setter/in: {additional_auth: bearertokenauth, "
        "headers: [{action: insert, key: Authorization, value: in}]}, headers_setter: "
        "{additional_auth: headers_setter/in, headers: [{action: upsert, key: K, value: v}, "
        "{action: update, key: authorization, value: out}]}}",
        "bearertokenauth, headers_setter, headers_setter/in"));
    open_loaded("headers_setter", NULL, AUTH_CLIENT);
    assert_string_equal(edited(false, NULL, ""), "K=v;authorization=Bearer t;");
    assert_string_equal(edited(true, NULL, ""), "authorization=out;K=v;");
}

static void grpc_needs_tls_only_for_what_the_chain_has(void **state)
{
    static const struct component user = {.id = "user", .service = &service};
    struct error error;
    bool needs_tls;
    (void)state;
    assert_true(load_extensions(
        "{bearertokenauth: {token: t}, headers_setter/plain: {headers: [{key: K, value: v}]}, "
        "headers_setter/more: {additional_auth: bearertokenauth, headers: [{key: K, value: v}]}, "
        "headers_setter/a: {additional_auth: headers_setter/b, headers: [{key: K, value: v}]}, "
        "headers_setter/b: {additional_auth: headers_setter/a, headers: [{key: K, value: v}]}}",
        "bearertokenauth, headers_setter/plain, headers_setter/more, headers_setter/a, "
        "headers_setter/b"));
    assert_true(authenticator_check_clients(&user, "headers_setter/plain", &needs_tls, &error));
    assert_false(needs_tls);
    assert_true(authenticator_check_clients(&user, "headers_setter/more", &needs_tls, &error));
    assert_true(needs_tls);
    assert_false(authenticator_check_clients(&user, "headers_setter/a", &needs_tls, &error));
    assert_non_null(strstr(error.text, "back to itself"));
    assert_false(authenticator_check_clients(&user, "nobody", &needs_tls, &error));
    assert_non_null(strstr(error.text, "authenticator not found"));
}

static void configurations_are_checked(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "missing headers configuration"},
        {"{headers: []}", "missing headers configuration"},
        {"{headers: [{value: v}]}", "missing header name"},
        {"{headers: [{key: 'a b', value: v}]}", "is not a header name"},
        {"{headers: [{key: K}]}", "missing header source"},
        {"{headers: [{key: K, value: null}]}", "missing header source"},
        {"{headers: [{key: K, value: v, from_context: c}]}", "must be only one of"},
        {"{headers: [{key: K, value_file: ''}]}", "expected the path of a file"},
        {"{headers: [{key: K, value: \"a\\nb\"}]}", "line end"},
        {"{headers: [{key: K, from_context: c, default_value: \"a\\nb\"}]}", "line end"},
        {"{headers: [{key: K, value: v}], additional_auth: nobody}", "nobody"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (load("headers_setter", rows[i][0]))
            fail_msg("%s loads", rows[i][0]);
        if (strstr(problem, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], problem);
    }
    assert_true(load("headers_setter", "{headers: [{key: K, value_file: /nowhere/to/be/found}]}"));
    struct component user = {.id = "user", .service = &service};
    struct error error;
    assert_null(authenticator_create(&user, "headers_setter", AUTH_CLIENT, &error));
    assert_non_null(strstr(error.text, "/nowhere/to/be/found"));
    assert_null(authenticator_create(&user, "headers_setter", AUTH_SERVER, &error));
    assert_non_null(strstr(error.text, "is not a server authenticator"));
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(each_action_does_what_its_name_says),
        ROW(edits_come_one_after_the_other),
        ROW(values_come_from_the_client_of_the_data),
        ROW(a_file_is_read_again_when_it_changes),
        ROW(another_authenticator_is_asked_too),
        ROW(grpc_needs_tls_only_for_what_the_chain_has),
        ROW(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
