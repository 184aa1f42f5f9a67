/* SPDX-License-Identifier: Apache-2.0 */
/* basicauth and bearertokenauth, each created from YAML as components do: which requests pass, the
 * errors of others, files that change, and the headers of our own requests. */
#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "tests/unit/extensions/auth_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 0);
    snprintf(directory, sizeof(directory), "/tmp/test_authenticators.XXXXXX");
    assert_non_null(mkdtemp(directory));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_authenticator();
    clock_fake_stop();
    assert_int_equal(rmdir(directory), 0);
    return 0;
}

struct asked {
    struct auth_request base;
    const char *name;
    const char *value;
};

static struct slice header_of(const struct auth_request *base, const char *name)
{
    const struct asked *asked = (const struct asked *)base;
    return strcmp(name, asked->name) == 0 ? slice_of_text(asked->value)
                                          : (struct slice){.data = NULL};
}

static enum auth_verdict ask(const char *name, const char *value, struct auth_result *result)
{
    struct asked asked = {.base = {.header = header_of}, .name = name, .value = value};
    return authenticator_check(authenticator, &asked.base, result);
}

struct row {
    const char *value;
    enum auth_verdict verdict;
    const char *reason;
};

static void assert_rows(const char *name, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct auth_result result;
        if (ask(name, rows[i].value, &result) != rows[i].verdict)
            fail_msg("%s: %s", rows[i].value, result.reason);
        if (rows[i].verdict != AUTH_GRANTED)
            assert_string_equal(result.reason, rows[i].reason);
    }
}

#define MISMATCH "provided authorization does not match expected scheme or token"

static void a_bearer_token_is_compared_whole(void **state)
{
    static const struct row rows[] = {
        {"Bearer sesame", AUTH_GRANTED, NULL},
        {"bearer sesame", AUTH_DENIED, MISMATCH},
        {"Bearer sesam", AUTH_DENIED, MISMATCH},
        {"Bearer sesame ", AUTH_DENIED, MISMATCH},
        {"Bearer sesamf", AUTH_DENIED, MISMATCH},
        {"sesame", AUTH_DENIED, MISMATCH},
        {"", AUTH_DENIED, MISMATCH},
        {"Bearer sesameBearer sesame", AUTH_DENIED, MISMATCH},
    };
    struct auth_result result;
    (void)state;
    open_authenticator("bearertokenauth", "{token: sesame}", AUTH_SERVER);
    assert_rows("authorization", rows, sizeof(rows) / sizeof(rows[0]));
    assert_int_equal(ask("x-other", "Bearer sesame", &result), AUTH_DENIED);
    assert_string_equal(result.reason, "missing or empty authorization header: Authorization");
}

static void a_token_is_read_as_a_file_would_be(void **state)
{
    static const struct row rows[] = {
        {"Bearer first", AUTH_GRANTED, NULL},
        {"Bearer second", AUTH_GRANTED, NULL},
        {"Bearer first a comment", AUTH_DENIED, MISMATCH},
        {"Bearer ", AUTH_DENIED, MISMATCH},
    };
    (void)state;
    open_authenticator("bearertokenauth", "{token: \"first a comment\\n\\n  second\\n\"}",
                       AUTH_SERVER);
    assert_rows("authorization", rows, sizeof(rows) / sizeof(rows[0]));
    assert_string_equal(authenticator_credentials(authenticator).value, "Bearer first");
}

static void several_tokens_scheme_and_header_can_be_set(void **state)
{
    static const struct row rows[] = {
        {"one", AUTH_GRANTED, NULL},
        {"two", AUTH_GRANTED, NULL},
        {"three", AUTH_DENIED, MISMATCH},
        {"Bearer one", AUTH_DENIED, MISMATCH},
    };
    (void)state;
    open_authenticator("bearertokenauth", "{scheme: '', header: X-Key, tokens: [one, two]}",
                       AUTH_SERVER);
    assert_rows("x-key", rows, sizeof(rows) / sizeof(rows[0]));
    struct auth_header header = authenticator_credentials(authenticator);
    assert_string_equal(header.name, "x-key");
    assert_string_equal(header.value, "one");
}

static void write_file(char *path, size_t size, const char *name, const char *text)
{
    snprintf(path, size, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_file_of_tokens_is_read_again_when_it_changes(void **state)
{
    char path[128];
    char yaml[256];
    (void)state;
    write_file(path, sizeof(path), "tokens", "first a comment\n\n  second\n");
    snprintf(yaml, sizeof(yaml), "{filename: %s}", path);
    open_authenticator("bearertokenauth", yaml, AUTH_SERVER);
    struct auth_result result;
    assert_int_equal(ask("authorization", "Bearer first", &result), AUTH_GRANTED);
    assert_int_equal(ask("authorization", "Bearer second", &result), AUTH_GRANTED);
    assert_int_equal(ask("authorization", "Bearer a", &result), AUTH_DENIED);
    write_file(path, sizeof(path), "tokens", "another-one\n");
    assert_int_equal(ask("authorization", "Bearer another-one", &result), AUTH_DENIED);
    clock_fake_advance(NS_PER_S);
    assert_int_equal(ask("authorization", "Bearer another-one", &result), AUTH_GRANTED);
    assert_int_equal(ask("authorization", "Bearer first", &result), AUTH_DENIED);
    assert_string_equal(authenticator_credentials(authenticator).value, "Bearer another-one");
    assert_int_equal(unlink(path), 0);
    clock_fake_advance(NS_PER_S);
    assert_int_equal(ask("authorization", "Bearer another-one", &result), AUTH_GRANTED);
}

/* Whoever replaces a file in place truncates it first. */
static void an_emptied_file_leaves_our_own_credentials(void **state)
{
    char path[128];
    char yaml[256];
    struct auth_result result;
    (void)state;
    write_file(path, sizeof(path), "secret", "sesame\n");
    snprintf(yaml, sizeof(yaml), "{filename: %s}", path);
    open_authenticator("bearertokenauth", yaml, AUTH_CLIENT);
    write_file(path, sizeof(path), "secret", "");
    clock_fake_advance(NS_PER_S);
    assert_string_equal(authenticator_credentials(authenticator).value, "Bearer sesame");
    assert_int_equal(ask("authorization", "Bearer sesame", &result), AUTH_DENIED);
    write_file(path, sizeof(path), "secret", "changed\n");
    clock_fake_advance(NS_PER_S);
    assert_string_equal(authenticator_credentials(authenticator).value, "Bearer changed");
    close_authenticator();
    write_file(path, sizeof(path), "secret", "hello\n");
    snprintf(yaml, sizeof(yaml), "{client_auth: {username: u, password_file: %s}}", path);
    open_authenticator("basicauth", yaml, AUTH_CLIENT);
    write_file(path, sizeof(path), "secret", "\n");
    clock_fake_advance(NS_PER_S);
    assert_string_equal(authenticator_credentials(authenticator).value, "Basic dTpoZWxsbw==");
    write_file(path, sizeof(path), "secret", "changed\n");
    clock_fake_advance(NS_PER_S);
    assert_string_equal(authenticator_credentials(authenticator).value, "Basic dTpjaGFuZ2Vk");
    assert_int_equal(unlink(path), 0);
}

static void basic_credentials_are_looked_up(void **state)
{
    static const struct row rows[] = {
        {"Basic dTpoZWxsbw==", AUTH_GRANTED, NULL}, /* u:hello */
        {"bASIC dTpoZWxsbw==", AUTH_GRANTED, NULL},
        {"Basic dTpoZWxscA==", AUTH_DENIED, "invalid credentials"},
        {"Basic djpoZWxsbw==", AUTH_DENIED, "invalid credentials"},
        {"Basic !", AUTH_DENIED, "invalid authorization format"},
        {"Basic dWhlbGxv", AUTH_DENIED, "invalid authorization format"},
        {"Basic dTpoAGVsbG8=", AUTH_DENIED, "invalid authorization format"}, /* with a NUL */
        {"Bearer dTpoZWxsbw==", AUTH_DENIED, "invalid authorization scheme prefix"},
        {"Bas", AUTH_DENIED, "invalid authorization scheme prefix"},
        {"", AUTH_DENIED, "no basic auth provided"},
    };
    struct auth_result result;
    (void)state;
    open_authenticator("basicauth", "{htpasswd: {inline: 'u:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00='}}",
                       AUTH_SERVER);
    assert_rows("authorization", rows, sizeof(rows) / sizeof(rows[0]));
    assert_rows("authorization", rows, sizeof(rows) / sizeof(rows[0])); /* remembered */
    assert_int_equal(ask("authorization", "Basic dTpoZWxsbw==", &result), AUTH_GRANTED);
    assert_int_equal(result.attributes_count, 2);
    assert_string_equal(result.attributes[0].name, "username");
    assert_string_equal(result.attributes[0].value, "u");
    assert_string_equal(result.attributes[1].value, "dTpoZWxsbw==");
}

/* A request that can wait. */
struct patient {
    struct auth_request base;
    const char *value;
    struct auth_waiter waiter;
    unsigned told;
};

static struct slice authorization_of(const struct auth_request *base, const char *name)
{
    (void)name;
    return slice_of_text(((const struct patient *)base)->value);
}

static uint64_t told_ns; /* what each takes */
static unsigned told_in_all;

static void on_told(struct auth_waiter *waiter)
{
    ((struct patient *)((char *)waiter - offsetof(struct patient, waiter)))->told++;
    told_in_all++;
    clock_fake_advance(told_ns);
}

static struct auth_waiter *wait_for(const struct auth_request *base)
{
    struct patient *patient = (struct patient *)(uintptr_t)base;
    patient->waiter.fn = on_told;
    return &patient->waiter;
}

static enum auth_verdict ask_patiently(struct patient *patient, const char *value)
{
    struct auth_result result;
    patient->base = (struct auth_request){.header = authorization_of, .wait = wait_for};
    patient->value = value;
    return authenticator_check(authenticator, &patient->base, &result);
}

/* bcrypt runs on the helper; equal credentials are checked once. */
static void slow_hashes_do_not_hold_the_lane(void **state)
{
    enum { RIGHT, SAME, WRONG, FULL, PATIENTS = FULL + AUTH_PENDING_MAX };
    static const char yaml[] = "{htpasswd: {file: %s, inline: "
                               "'u:$2b$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey'}}";
    static struct patient patients[PATIENTS];
    char path[128];
    char text[512];
    struct auth_result result;
    (void)state;
    memset(patients, 0, sizeof(patients));
    write_file(path, sizeof(path), "htpasswd", "x:y\n");
    snprintf(text, sizeof(text), yaml, path);
    assert_true(load("basicauth", text));
    struct lane *lane = lane_create(0);
    open_loaded("basicauth", lane, AUTH_SERVER);
    const char *right = "Basic dTpoZWxsbw==";
    const char *wrong = "Basic dTpoZWxscA==";
    assert_int_equal(ask_patiently(&patients[RIGHT], right), AUTH_PENDING);
    assert_int_equal(ask_patiently(&patients[SAME], right), AUTH_PENDING);
    assert_int_equal(ask_patiently(&patients[WRONG], wrong), AUTH_PENDING);
    for (unsigned i = 0; i < AUTH_PENDING_MAX - 2; i++) {
        char other[32] = "Basic ";
        char pair[] = "u:?";
        pair[2] = (char)('A' + i);
        base64_encode(slice_of_text(pair), other + strlen(other));
        assert_int_equal(ask_patiently(&patients[FULL + i], other), AUTH_PENDING);
    }
    assert_int_equal(ask_patiently(&patients[PATIENTS - 1], "Basic dTp6eg=="), AUTH_BUSY);
    assert_int_equal(patients[RIGHT].told, 0);
    for (unsigned i = 0; i < 2000 && patients[FULL + AUTH_PENDING_MAX - 3].told == 0; i++)
        lane_turn(lane);
    for (unsigned i = 0; i < FULL + AUTH_PENDING_MAX - 2; i++)
        assert_int_equal(patients[i].told, 1);
    assert_int_equal(ask_patiently(&patients[RIGHT], right), AUTH_GRANTED);
    assert_int_equal(ask_patiently(&patients[WRONG], wrong), AUTH_DENIED);
    /* A verdict of passwords that have changed meanwhile is forgotten. */
    assert_int_equal(ask_patiently(&patients[RIGHT], "Basic dTp6eg=="), AUTH_PENDING);
    write_file(path, sizeof(path), "htpasswd", "x:other\n");
    clock_fake_advance(NS_PER_S);
    assert_int_equal(ask("authorization", "Basic eDpvdGhlcg==", &result), AUTH_GRANTED);
    for (unsigned i = 0; i < 2000 && patients[RIGHT].told == 1; i++)
        lane_turn(lane);
    clock_fake_advance(20 * (uint64_t)NS_PER_S); /* it may have taken the second from above */
    assert_int_equal(ask_patiently(&patients[RIGHT], "Basic dTp6eg=="), AUTH_PENDING);
    for (unsigned i = 0; i < 2000 && patients[RIGHT].told == 2; i++)
        lane_turn(lane);
    assert_int_equal(ask_patiently(&patients[RIGHT], "Basic dTp6eg=="), AUTH_DENIED);
    /* What takes no time gets its verdict at once. */
    assert_int_equal(ask_patiently(&patients[RIGHT], "Basic eDpvdGhlcg=="), AUTH_GRANTED);
    assert_int_equal(unlink(path), 0);
    lane_destroy(lane);
}

/* All who have waited for one check go on in the order in which they came, a few in each turn. */
static void many_who_wait_take_turns(void **state)
{
    enum { PATIENTS = 100, IN_A_TURN = HTTP_TURN_NS / NS_PER_MS + 1 };
    static struct patient patients[PATIENTS];
    (void)state;
    memset(patients, 0, sizeof(patients));
    assert_true(load(
        "basicauth",
        "{htpasswd: {inline: 'u:$2b$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey'}}"));
    struct lane *lane = lane_create(0);
    open_loaded("basicauth", lane, AUTH_SERVER);
    for (unsigned i = 0; i < PATIENTS; i++)
        assert_int_equal(ask_patiently(&patients[i], "Basic dTpoZWxsbw=="), AUTH_PENDING);
    told_ns = NS_PER_MS;
    told_in_all = 0;
    for (unsigned turn = 0; turn < 2000 && told_in_all < PATIENTS; turn++) {
        unsigned before = told_in_all;
        lane_turn(lane);
        assert_in_range(told_in_all - before, 0, 2 * IN_A_TURN); /* lane_turn runs jobs twice */
        for (unsigned i = 0; i < PATIENTS; i++)
            assert_int_equal(patients[i].told, i < told_in_all);
    }
    assert_int_equal(told_in_all, PATIENTS);
    told_ns = 0;
    assert_int_equal(ask_patiently(&patients[0], "Basic dTpoZWxsbw=="), AUTH_GRANTED);
    lane_destroy(lane);
}

/* Checks that take seconds do not queue up, also while none has shown how long it takes. */
static void the_first_checks_share_the_time(void **state)
{
    static struct patient patients[2];
    (void)state;
    memset(patients, 0, sizeof(patients));
    assert_true(load("basicauth",
                     "{htpasswd: {inline: "
                     "'u:$2b$15$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey'}}"));
    struct lane *lane = lane_create(0);
    open_loaded("basicauth", lane, AUTH_SERVER);
    assert_int_equal(ask_patiently(&patients[0], "Basic dTpoZWxsbw=="), AUTH_PENDING);
    assert_int_equal(ask_patiently(&patients[1], "Basic dTpoZWxscA=="), AUTH_BUSY);
    while (patients[0].told == 0)
        lane_turn(lane);
    lane_destroy(lane);
}

static void the_cache_is_cleared_when_the_file_changes(void **state)
{
    char path[128];
    char yaml[256];
    struct auth_result result;
    (void)state;
    write_file(path, sizeof(path), "htpasswd", "u:hello\n");
    snprintf(yaml, sizeof(yaml), "{htpasswd: {file: %s, inline: 'w:other'}}", path);
    open_authenticator("basicauth", yaml, AUTH_SERVER);
    assert_int_equal(ask("authorization", "Basic dTpoZWxsbw==", &result), AUTH_GRANTED);
    write_file(path, sizeof(path), "htpasswd", "u:changed\n");
    clock_fake_advance(NS_PER_S);
    assert_int_equal(ask("authorization", "Basic dTpoZWxsbw==", &result), AUTH_DENIED);
    assert_int_equal(ask("authorization", "Basic dTpjaGFuZ2Vk", &result), AUTH_GRANTED);
    assert_int_equal(ask("authorization", "Basic dzpvdGhlcg==", &result), AUTH_GRANTED);
    assert_int_equal(unlink(path), 0);
}

static void requests_carry_user_and_password(void **state)
{
    char user[128];
    char password[128];
    char yaml[512];
    (void)state;
    open_authenticator("basicauth", "{client_auth: {username: u, password: hello}}", AUTH_CLIENT);
    assert_string_equal(authenticator_credentials(authenticator).name, "authorization");
    assert_string_equal(authenticator_credentials(authenticator).value, "Basic dTpoZWxsbw==");
    close_authenticator();
    write_file(user, sizeof(user), "user", " u\n");
    write_file(password, sizeof(password), "password", "hello\n");
    snprintf(yaml, sizeof(yaml), "{client_auth: {username_file: %s, password_file: %s}}", user,
             password);
    open_authenticator("basicauth", yaml, AUTH_CLIENT);
    assert_string_equal(authenticator_credentials(authenticator).value, "Basic dTpoZWxsbw==");
    write_file(password, sizeof(password), "password", "changed\n");
    clock_fake_advance(NS_PER_S);
    assert_string_equal(authenticator_credentials(authenticator).value, "Basic dTpjaGFuZ2Vk");
    assert_int_equal(unlink(user), 0);
    assert_int_equal(unlink(password), 0);
}

static void configurations_are_checked(void **state)
{
    static const struct {
        const char *type;
        const char *yaml;
        const char *problem;
    } rows[] = {
        {"bearertokenauth", "{}", "no bearer token provided"},
        {"bearertokenauth", "{token: a, tokens: [b]}", "either tokens or token should be provided"},
        {"bearertokenauth", "{token: \"a\\x01\"}", "line end"},
        {"bearertokenauth", "{tokens: [\"a\\n\"]}", "line end"},
        {"bearertokenauth", "{tokens: [a, '']}", "empty token"},
        {"bearertokenauth", "{token: a, header: 'a b'}", "not a header name"},
        {"basicauth", "{}", "no credential source provided"},
        {"basicauth", "{htpasswd: {}}", "no credential source provided"},
        {"basicauth", "{htpasswd: {inline: a}, client_auth: {username: a}}",
         "only one of `htpasswd` or `client_auth` can be specified"},
        {"basicauth", "{client_auth: {username: 'a:b'}}", "colon"},
        {"bearertokenauth", "{tokens: [{a: canary}]}", "found a map"},
        {"bearertokenauth", "{tokens: 'canary,canary'}", "expected a list of strings"},
        {"bearertokenauth", "canary", "found a string, expected a map"},
        {"basicauth", "{client_auth: canary}", "found a string, expected a map"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (load(rows[i].type, rows[i].yaml))
            fail_msg("%s loads", rows[i].yaml);
        if (strstr(problem, rows[i].problem) == NULL || strstr(problem, "canary") != NULL)
            fail_msg("%s: %s", rows[i].yaml, problem);
    }
}

static void names_of_authenticators_are_looked_up_at_load(void **state)
{
    static const struct {
        const char *receivers;
        const char *listed;
        const char *problem; /* NULL: it loads */
    } rows[] = {
        {"{pipe: {authenticator: basicauth}}", "basicauth", NULL},
        {"{pipe: {authenticator: ''}}", "", "found an empty string, expected the id"},
        {"{pipe: {authenticator: }}", "", NULL},
        {"{pipe: , pipe/unused: {authenticator: nobody}}", "", NULL},
        {"{pipe: {authenticator: basicaut}}", "basicauth",
         "receivers::pipe::authenticator: failed to resolve authenticator \"basicaut\": "
         "authenticator not found; expected an extension that is defined below extensions (did you "
         "mean \"basicauth\"?)"},
        {"{pipe: {authenticator: basicauth}}", "", "add it to service::extensions"},
        {"{pipe: {authenticator: basicauth/us}}", "basicauth/us",
         "requested authenticator is not a server authenticator: the extension \"basicauth/us\" is "
         "configured for the other side only"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "yaml:\nextensions:\n  basicauth: {htpasswd: {inline: 'u:p'}}\n"
                 "  basicauth/us: {client_auth: {username: u}}\nreceivers: %s\n"
                 "exporters: {pipe: }\nservice: {extensions: [%s], pipelines: {traces: "
                 "{receivers: [pipe], exporters: [pipe]}}}\n",
                 rows[i].receivers, rows[i].listed);
        bool is_loaded = load_text(text);
        if (is_loaded != (rows[i].problem == NULL))
            fail_msg("%s: %s", rows[i].receivers, problem);
        if (!is_loaded && strstr(problem, rows[i].problem) == NULL)
            fail_msg("%s", problem);
        config_destroy(config);
        config = NULL;
    }
}

static void each_side_needs_its_configuration(void **state)
{
    struct component user = {.id = "user", .service = &service};
    struct error error;
    (void)state;
    assert_true(load("basicauth", "{client_auth: {username: u}}"));
    assert_null(authenticator_create(&user, "basicauth", AUTH_SERVER, &error));
    assert_non_null(strstr(error.text, "requested authenticator is not a server authenticator"));
    assert_null(authenticator_create(&user, "other", AUTH_CLIENT, &error));
    assert_non_null(strstr(error.text, "failed to resolve authenticator \"other\""));
    config_destroy(config);
    assert_true(load("bearertokenauth", "{filename: /nowhere/to/be/found}"));
    assert_null(authenticator_create(&user, "bearertokenauth", AUTH_SERVER, &error));
    assert_non_null(strstr(error.text, "/nowhere/to/be/found"));
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(a_bearer_token_is_compared_whole),
        ROW(a_token_is_read_as_a_file_would_be),
        ROW(several_tokens_scheme_and_header_can_be_set),
        ROW(a_file_of_tokens_is_read_again_when_it_changes),
        ROW(an_emptied_file_leaves_our_own_credentials),
        ROW(basic_credentials_are_looked_up),
        ROW(slow_hashes_do_not_hold_the_lane),
        ROW(many_who_wait_take_turns),
        ROW(the_first_checks_share_the_time),
        ROW(the_cache_is_cleared_when_the_file_changes),
        ROW(requests_carry_user_and_password),
        ROW(configurations_are_checked),
        ROW(names_of_authenticators_are_looked_up_at_load),
        ROW(each_side_needs_its_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
