/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints and metadata of gRPC clients. */
#include "src/net/client/grpc_target.h"

#include "src/base/error.h"
#include "src/config/field.h"
#include "src/net/client/grpc_metadata.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct target_case {
    const char *text;
    const char *host;
    unsigned port;
    const char *path;
    const char *authority;
    bool is_https;
    bool is_passthrough;
};

static const struct target_case good[] = {
    {"localhost:4317", "localhost", 4317, "", "localhost:4317", false, false},
    {"http://tempo:4317", "tempo", 4317, "", "tempo:4317", false, false},
    {"https://tempo.example:443", "tempo.example", 443, "", "tempo.example:443", true, false},
    {"dns:///tempo:4317", "tempo", 4317, "", "tempo:4317", false, false},
    {"dns://tempo:4317", "tempo", 4317, "", "tempo:4317", false, false},
    {"passthrough:///tempo:4317", "tempo", 4317, "", "tempo:4317", false, true},
    {"passthrough:tempo:4317", "tempo", 4317, "", "tempo:4317", false, true},
    {"[::1]:4317", "::1", 4317, "", "[::1]:4317", false, false},
    {":4317", "localhost", 4317, "", "localhost:4317", false, false},
    {"unix:///run/otel.sock", "", 0, "/run/otel.sock", "localhost", false, false},
    {"host:0", "host", 0, "", "host:0", false, false},
    {"host:65535", "host", 65535, "", "host:65535", false, false},
};

static void endpoints_are_read_as_the_go_collector_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct grpc_target target;
        struct error error;
        if (!grpc_target_parse(good[i].text, &target, &error))
            fail_msg("%s: %s", good[i].text, error.text);
        assert_string_equal(target.host, good[i].host);
        assert_int_equal(target.port, good[i].port);
        assert_string_equal(target.path, good[i].path);
        assert_string_equal(target.authority, good[i].authority);
        assert_int_equal(target.is_https, good[i].is_https);
        assert_int_equal(target.is_passthrough, good[i].is_passthrough);
    }
}

static const char *const bad[][2] = {
    {"", "requires a non-empty \"endpoint\""},
    {"https://", "requires a non-empty \"endpoint\""},
    {"localhost", "address localhost: missing port in address"},
    {"http://localhost", "address localhost: missing port in address"},
    {"localhost:http", "invalid port \"http\""},
    {"localhost:", "invalid port \"\""},
    {"localhost:4317/", "invalid port \"4317/\""},
    {"localhost:4317/v1/traces", "invalid port \"4317/v1/traces\""},
    {"localhost:65536", "invalid port \"65536\""},
    {"localhost:99999999999999999999999", "invalid port \"99999999999999999999999\""},
    {"unix:/run/otel.sock", "invalid port \"/run/otel.sock\""},
    {"unix://", "unix socket path cannot be empty"},
    {"::1:4317", "address ::1:4317: too many colons in address"},
    {"grpc://localhost:4317", "address grpc://localhost:4317: too many colons in address"},
    {"dns://8.8.8.8/tempo:4317",
     "address 8.8.8.8/tempo:4317: \"8.8.8.8/tempo\" is not a host name; expected host:port"},
};

static void bad_endpoints_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct grpc_target target;
        struct error error;
        if (grpc_target_parse(bad[i][0], &target, &error))
            fail_msg("%s was taken", bad[i][0]);
        if (strstr(error.text, bad[i][1]) == NULL)
            fail_msg("%s: %s", bad[i][0], error.text);
    }
}

struct header_case {
    struct config_pair header;
    const char *error; /* NULL: it can be sent */
};

static const struct header_case headers[] = {
    {{"X-Scope-OrgID", "tenant 1"}, NULL},
    {{"key_1.a-b", ""}, NULL},
    {{"raw-bin", "\x01\n\xff"}, NULL},
    {{"", "x"}, "\"\" is not a gRPC metadata key"},
    {{":path", "/x"}, "\":path\" is not a gRPC metadata key"},
    {{"two words", "x"}, "\"two words\" is not a gRPC metadata key"},
    {{"Connection", "close"}, "cannot be sent over HTTP/2"},
    {{"transfer-encoding", "chunked"}, "cannot be sent over HTTP/2"},
    {{"token", "a\n"}, "the value of \"token\" contains a line break"},
    {{"token", "\xc3\xa4"}, "the value of \"token\" contains a line break"},
};

static void headers_that_cannot_be_sent_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct error error = {.text = ""};
        bool is_good = grpc_metadata_check(&headers[i].header, 1, &error);
        if (is_good != (headers[i].error == NULL) ||
            (!is_good && strstr(error.text, headers[i].error) == NULL))
            fail_msg("%s: %s", headers[i].header.key, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_read_as_the_go_collector_does),
        cmocka_unit_test(bad_endpoints_are_named),
        cmocka_unit_test(headers_that_cannot_be_sent_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
