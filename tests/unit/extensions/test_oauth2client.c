/* SPDX-License-Identifier: Apache-2.0 */
/* oauth2client against a scripted token endpoint on loopback, both on one hand-turned lane. */
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/net/client/request_edits.h"
#include "tests/support/scripted_backend.h"
#include "tests/unit/extensions/auth_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS_MAX = 20, YAML_MAX = 2048 };

#define NO_CLIENT "{\"error\":\"invalid_client\",\"error_description\":\"hunter2? no way\"}"

/* A response, until the next REPLIES_MAX are made. */
static const char *reply(const char *head, const char *body)
{
    enum { REPLIES_MAX = 8 };
    static char texts[REPLIES_MAX][512];
    static unsigned count;
    char *text = texts[count++ % REPLIES_MAX];
    snprintf(text, sizeof(texts[0]), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", head,
             strlen(body), body);
    return text;
}

static const char *token(const char *members)
{
    char body[256];
    snprintf(body, sizeof(body), "{\"access_token\":\"%s}", members);
    return reply("200 OK\r\nContent-Type: application/json", body);
}

static struct lane *lane;
static struct scripted_backend *backend;

struct asked {
    struct credentials_request request;
    unsigned done;
    char value[256]; /* of Authorization */
    char error[1024];
};

static void on_done(struct credentials_request *request, const char *error)
{
    struct asked *asked = request->arg;
    asked->done++;
    snprintf(asked->error, sizeof(asked->error), "%s", error != NULL ? error : "");
    asked->value[0] = '\0';
    if (error == NULL) {
        assert_int_equal(request->edits.count, 1);
        assert_int_equal(request->edits.list[0].action, EDIT_UPSERT);
        assert_string_equal(request->edits.list[0].name,
                            request->is_grpc ? "authorization" : "Authorization");
        snprintf(asked->value, sizeof(asked->value), "%s", request->edits.list[0].value);
    }
    request_edits_fini(&request->edits);
}

static void ask(struct asked *asked)
{
    *asked = (struct asked){.request = {.done = on_done, .arg = asked}};
    authenticator_ask(authenticator, &asked->request);
}

static void turn_until(const unsigned *count)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (*count == 0) {
        lane_turn(lane);
        if (time(NULL) > end)
            fail_msg("nothing happened for %d seconds", TEST_SECONDS_MAX);
    }
}

static const char *answer(struct asked *asked)
{
    ask(asked);
    turn_until(&asked->done);
    return asked->done == 1 && asked->error[0] == '\0' ? asked->value : asked->error;
}

static void turn_some(void)
{
    for (int i = 0; i < 50; i++)
        lane_turn(lane);
}

static void set_up(const struct backend_step *steps, size_t count, const char *options)
{
    char yaml[YAML_MAX];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    lane = lane_create(0);
    backend = scripted_backend_create(lane, steps, count);
    snprintf(yaml, sizeof(yaml), "{token_url: '%s/token?x=y', %s}", scripted_backend_url(backend),
             options);
    if (!load("oauth2client", yaml))
        fail_msg("%s", problem);
    open_loaded("oauth2client", lane, AUTH_CLIENT);
}

static void on_closed(void *arg)
{
    ++*(unsigned *)arg;
}

static void tear_down(void)
{
    unsigned closed = 0;
    authenticator_close(authenticator, on_closed, &closed);
    turn_until(&closed);
    assert_int_equal(closed, 1);
    close_authenticator();
    scripted_backend_destroy(backend);
    lane_destroy(lane);
    clock_fake_stop();
}

#define CLIENT "client_id: 'me & co', client_secret: 'hunter2/%'"

static const char *body(void)
{
    static char text[1024];
    size_t size;
    const char *bytes = scripted_backend_body(backend, &size);
    snprintf(text, sizeof(text), "%.*s", (int)size, bytes);
    return text;
}

static void a_token_is_fetched_once_and_used_until_shortly_before_its_end(void **state)
{
    const struct backend_step steps[] = {{.response = token("token-one\",\"expires_in\":3600")},
                                         {.response = token("token-two\",\"expires_in\":3600")}};
    struct asked asked[3];
    (void)state;
    set_up(steps, 2, CLIENT ", scopes: [a, b], endpoint_params: {audience: you, more: [x, 'y z']}");
    ask(&asked[0]);
    ask(&asked[1]);
    asked[1].request.is_grpc = true;
    turn_some();
    for (int i = 0; i < 2; i++) {
        turn_until(&asked[i].done);
        assert_string_equal(asked[i].value, "Bearer token-one");
    }
    assert_int_equal(scripted_backend_requests(backend), 1);
    /* base64("me+%26+co:hunter2%2F%25") */
    const char *head = scripted_backend_head(backend);
    assert_int_equal(strncmp(head, "POST /token?x=y HTTP/1.1\r\n", 26), 0);
    assert_non_null(strstr(head, "Authorization: Basic bWUrJTI2K2NvOmh1bnRlcjIlMkYlMjU=\r\n"));
    assert_non_null(strstr(head, "Content-Type: application/x-www-form-urlencoded\r\n"));
    assert_string_equal(body(),
                        "audience=you&grant_type=client_credentials&more=x&more=y+z&scope=a+b");
    /* The default expiry_buffer is five minutes. */
    clock_fake_advance(3299 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked[2]), "Bearer token-one");
    clock_fake_advance(1 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked[2]), "Bearer token-two");
    assert_int_equal(scripted_backend_requests(backend), 2);
    tear_down();
}

static void a_short_life_is_used_for_its_half_and_no_life_for_ever(void **state)
{
    const struct backend_step steps[] = {
        {.response = token("a1\",\"expires_in\":60")},
        {.response = token("a2\",\"expires_in\":-1")},
        {.response =
             reply("200 OK\r\nContent-Type: text/plain", "access_token=a3&token_type=DPoP")},
    };
    struct asked asked;
    (void)state;
    set_up(steps, 3, CLIENT);
    assert_string_equal(answer(&asked), "Bearer a1");
    clock_fake_advance(29 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked), "Bearer a1");
    clock_fake_advance(1 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked),
                        "Bearer a2"); /* expired at once, but good for its request */
    assert_string_equal(answer(&asked), "DPoP a3");
    clock_fake_advance(24 * 3600 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked), "DPoP a3");
    assert_int_equal(scripted_backend_requests(backend), 3);
    tear_down();
}

static void the_secret_goes_into_the_body_when_the_header_is_refused(void **state)
{
    const struct backend_step steps[] = {{.response = reply("401 U", NO_CLIENT)},
                                         {.response = token("token-one\",\"expires_in\":3600")},
                                         {.response = token("token-two\",\"expires_in\":3600")},
                                         {.response = reply("401 U", NO_CLIENT)},
                                         {.response = token("token-thr\",\"expires_in\":3600")}};
    struct asked asked;
    (void)state;
    set_up(steps, 5, CLIENT);
    assert_string_equal(answer(&asked), "Bearer token-one");
    assert_int_equal(scripted_backend_requests(backend), 2);
    assert_null(strstr(scripted_backend_head(backend), "Authorization"));
    assert_string_equal(body(), "client_id=me+%26+co&client_secret=hunter2%2F%25&"
                                "grant_type=client_credentials");
    /* What has worked comes first the next time; after a failure all begins anew. */
    clock_fake_advance(3600 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked), "Bearer token-two");
    assert_int_equal(scripted_backend_requests(backend), 3);
    assert_non_null(strstr(body(), "client_secret"));
    clock_fake_advance(3600 * (uint64_t)NS_PER_S);
    assert_non_null(strstr(answer(&asked), "invalid_client"));
    assert_int_equal(scripted_backend_requests(backend), 4);
    assert_string_equal(answer(&asked), "Bearer token-thr");
    assert_non_null(strstr(scripted_backend_head(backend), "Authorization: Basic"));
    tear_down();
}

static void refusals_say_what_the_endpoint_said_without_secrets(void **state)
{
    static const char *const rows[][3] = {
        {"401 U", NO_CLIENT, "oauth2: \"invalid_client\" \"[REDACTED]? no way\""},
        {"503 S", "try, hunter2, another day\n",
         "oauth2: cannot fetch token: 503 Response: try, [REDACTED], another day"},
        {"302 F\r\nLocation: http://127.0.0.1:1/", "", "oauth2: cannot fetch token: 302"},
        {"200 OK", "{}", "oauth2: server response missing access_token"},
        {"200 OK", "{\"error\":\"busy\",\"error_uri\":\"a\\nb\"}", "oauth2: \"busy\" \"a?b\""},
        {"200 OK", "<html/>", "oauth2: cannot parse json: it is no JSON object with a token"},
        {"200 OK\r\nContent-Type: text/plain", "a=%x",
         "oauth2: cannot parse response: it is no form"},
        {"200 OK", "{\"access_token\":\"a\\nb\"}",
         "oauth2: the token has characters that a header cannot have"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct backend_step steps[] = {{.response = reply(rows[i][0], rows[i][1])}};
        struct asked asked;
        char expected[512];
        set_up(steps, 1, "client_id: me, client_secret: hunter2");
        snprintf(expected, sizeof(expected),
                 "failed to get security token from token endpoint (endpoint \"%s/token\"): %s",
                 scripted_backend_url(backend), rows[i][2]);
        assert_string_equal(answer(&asked), expected);
        assert_true(asked.request.is_temporary);
        /* Both ways were tried. */
        assert_int_equal(scripted_backend_requests(backend), 2);
        tear_down();
    }
}

static void id_and_secret_are_read_from_their_files_for_each_token(void **state)
{
    const struct backend_step steps[] = {{.response = token("token-one\",\"expires_in\":3600")},
                                         {.response = token("token-two\",\"expires_in\":3600")}};
    char path[] = "/tmp/test_oauth2client.XXXXXX";
    char options[256];
    struct asked asked;
    (void)state;
    int file = mkstemp(path);
    assert_int_equal(write(file, " first \n", 8), 8);
    snprintf(options, sizeof(options), "client_id: me, client_secret: no, client_secret_file: %s",
             path);
    set_up(steps, 2, options);
    assert_string_equal(answer(&asked), "Bearer token-one");
    /* base64("me:first") */
    assert_non_null(strstr(scripted_backend_head(backend), "Basic bWU6Zmlyc3Q=\r\n"));
    assert_int_equal(pwrite(file, "second\n\n", 8, 0), 8);
    clock_fake_advance(3600 * (uint64_t)NS_PER_S);
    assert_string_equal(answer(&asked), "Bearer token-two");
    assert_non_null(strstr(scripted_backend_head(backend), "Basic bWU6c2Vjb25k\r\n"));
    assert_int_equal(ftruncate(file, 0), 0);
    clock_fake_advance(3600 * (uint64_t)NS_PER_S);
    assert_non_null(strstr(answer(&asked), "no ClientSecret provided in OAuth Client Credentials "
                                           "configuration; empty credentials file"));
    unlink(path);
    assert_non_null(strstr(answer(&asked), "failed to read credentials file"));
    assert_int_equal(scripted_backend_requests(backend), 2);
    close(file);
    tear_down();
}

/* A request that gives up is forgotten; the token is there for the next. */
static void those_who_give_up_are_forgotten(void **state)
{
    const struct backend_step steps[] = {{.response = token("token-one\",\"expires_in\":3600")}};
    struct asked asked[3];
    (void)state;
    set_up(steps, 1, CLIENT);
    for (int i = 0; i < 3; i++)
        ask(&asked[i]);
    authenticator_forget(authenticator, &asked[1].request);
    turn_until(&asked[0].done);
    assert_int_equal(asked[1].done, 0);
    assert_int_equal(asked[2].done, 1);
    turn_some();
    ask(&asked[0]);
    assert_int_equal(asked[0].done, 1);
    assert_int_equal(scripted_backend_requests(backend), 1);
    tear_down();
}

/* The endpoint never responds: the timeout holds, and closing does not wait for it. */
static void an_endpoint_that_hangs_holds_nobody_for_ever(void **state)
{
    const struct backend_step steps[] = {{.response = "HTTP/1.1 200 OK\r\n"}};
    struct asked asked;
    unsigned closed = 0;
    (void)state;
    set_up(steps, 1, CLIENT ", timeout: 2s");
    ask(&asked);
    turn_some();
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    turn_some();
    assert_int_equal(asked.done, 0); /* the other way */
    clock_fake_advance(2 * (uint64_t)NS_PER_S);
    turn_until(&asked.done);
    assert_non_null(strstr(asked.error, "context deadline exceeded"));
    turn_some();
    ask(&asked);
    turn_some();
    authenticator_close(authenticator, on_closed, &closed);
    turn_some();
    assert_int_equal(closed, 0); /* somebody still waits */
    authenticator_forget(authenticator, &asked.request);
    turn_until(&closed);
    assert_int_equal(asked.done, 0);
    tear_down();
}

/* Two users of an extension on a lane share its tokens. */
static void a_lane_fetches_one_token_for_all_its_users(void **state)
{
    const struct backend_step steps[] = {{.response = token("token-one\",\"expires_in\":3600")}};
    struct component user = {.id = "other", .service = &service, .lane = NULL};
    struct error error;
    struct asked asked;
    (void)state;
    set_up(steps, 1, CLIENT);
    user.lane = lane;
    struct authenticator *other = authenticator_create(&user, "oauth2client", AUTH_CLIENT, &error);
    assert_non_null(other);
    assert_string_equal(answer(&asked), "Bearer token-one");
    struct authenticator *first = authenticator;
    authenticator = other;
    turn_some();
    ask(&asked);
    assert_int_equal(asked.done, 1);
    assert_int_equal(scripted_backend_requests(backend), 1);
    authenticator_destroy(other);
    authenticator = first;
    ask(&asked);
    assert_int_equal(asked.done, 1);
    tear_down();
}

static void configurations_are_checked(void **state)
{
    static const char *const rows[][2] = {
        {"{client_secret: s, token_url: 'http://h/'}", "no ClientID provided"},
        {"{client_id: i, token_url: 'http://h/'}", "no ClientSecret provided"},
        {"{client_id: i, client_secret: s}", "no TokenURL provided"},
        {"{client_id: i, client_secret: s, token_url: 'ftp://h/'}", "token_url"},
        {"{client_id: i, client_secret: s, token_url: 'http://h/', grant_type: password}",
         "unknown grant type \"password\""},
        {"{client_id: i, token_url: 'http://h/', grant_type: "
         "'urn:ietf:params:oauth:grant-type:jwt-bearer'}",
         "no ClientCertificateKey provided"},
        {"{client_id: i, token_url: 'http://h/', client_certificate_key: k, grant_type: "
         "'urn:ietf:params:oauth:grant-type:jwt-bearer', signature_algorithm: HS256}",
         "invalid signature algorithm"},
        {"{client_id: i, client_secret: s, token_url: 'http://h/', scopes: [a], endpoint_params: "
         "{scope: b}}",
         "cannot overwrite parameter \"scope\""},
        {"{client_id: i, client_secret: s, token_url: 'http://h/', endpoint_params: {a: 5}}",
         "neither a string nor a list"},
        {"{client_id: i, client_secret: s, token_url: 'http://h/', endpoint_params: [a]}",
         "expected a map"},
        {"{client_id: i, client_secret: s, token_url: 'http://h/', claims: 5}", "expected a map"},
        {"{client_id: i, client_secret: [canary], token_url: 'http://h/'}", "client_secret"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (load("oauth2client", rows[i][0]))
            fail_msg("%s loads", rows[i][0]);
        if (strstr(problem, rows[i][1]) == NULL || strstr(problem, "canary") != NULL)
            fail_msg("%s: %s", rows[i][0], problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_fetched_once_and_used_until_shortly_before_its_end),
        cmocka_unit_test(a_short_life_is_used_for_its_half_and_no_life_for_ever),
        cmocka_unit_test(the_secret_goes_into_the_body_when_the_header_is_refused),
        cmocka_unit_test(refusals_say_what_the_endpoint_said_without_secrets),
        cmocka_unit_test(id_and_secret_are_read_from_their_files_for_each_token),
        cmocka_unit_test(those_who_give_up_are_forgotten),
        cmocka_unit_test(an_endpoint_that_hangs_holds_nobody_for_ever),
        cmocka_unit_test(a_lane_fetches_one_token_for_all_its_users),
        cmocka_unit_test(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
