/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the otlp receiver: defaults, and the errors of bad values. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "receivers/otlp/otlp_receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void these_load(void **state)
{
    static const char *const rows[] = {
        "{protocols: {grpc: , http: }}",
        "{protocols: {grpc: , http: {enabled: false}}}",
        "{protocols: {grpc: {endpoint: ''}}}",
        "{protocols: {grpc: {max_recv_msg_size_mib: 999999999}}}",
        "{protocols: {http: {max_request_body_size: 9000000000000}}}",
        "{protocols: {grpc: {auth: {}, tls: , middlewares: []}}}",
        "{protocols: {grpc: {tls: {cert_file: a, key_file: b, min_version: '1.3'}}}}",
        "{protocols: {http: {transport: unix, endpoint: /run/otlp.sock}}}",
        ("{protocols: {grpc: {max_recv_msg_size_mib: 64, max_concurrent_streams: 16, "
         "read_buffer_size: 1024, write_buffer_size: 1024, include_metadata: true, transport: "
         "tcp4, dialer: {timeout: 1s}, keepalive: {server_parameters: {max_connection_idle: 11s, "
         "max_connection_age: 12s, max_connection_age_grace: 13s, time: 30s, timeout: 5s}, "
         "enforcement_policy: {min_time: 10s, permit_without_stream: true}}}}}"),
        ("{protocols: {http: {max_request_body_size: -1, compression_algorithms: ['', gzip, zstd], "
         "read_timeout: 1s, read_header_timeout: 1s, write_timeout: 1s, idle_timeout: 1s, "
         "keep_alives_enabled: false, response_headers: {a: b}, cors: {max_age: 7200, "
         "allowed_origins: ['http://*.example.com'], allowed_headers: ['*'], exposed_headers: "
         "[a]}, "
         "traces_url_path: spans}}}"),
        ("{protocols: {grpc: {keepalive: {enabled: false, server_parameters: {enabled: true}, "
         "enforcement_policy: }}, http: {cors: {enabled: false, allowed_origins: ['*']}}}}"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *problems = fixture_problems(rows[i]);
        if (problems[0] != '\0')
            fail_msg("%s: %s", rows[i], problems);
        free(problems);
    }
}

static void too_many_response_headers_are_refused(void **state)
{
    char yaml[2048] = "{protocols: {http: {response_headers: {";
    (void)state;
    for (size_t i = 0, used = strlen(yaml); i <= HTTP_COMMON_HEADERS_MAX; i++)
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "x-%02zu: v, ", i);
    strcat(yaml, "}}}}");
    char *problems = fixture_problems(yaml);
    assert_non_null(strstr(problems, "response_headers: found 65 headers of 325 bytes in total"));
    free(problems);
}

static void these_are_refused(void **state)
{
    static const struct {
        const char *protocols;
        const char *problem;
    } rows[] = {
        {"{}", "must specify at least one protocol when using the OTLP receiver"},
        {"{protocols: {grpc: {enabled: false}}}", "must specify at least one protocol"},
        {"{protocols: {grpc: {tls: {cert_file: a}}}}", "must include both certificate and key"},
        {"{protocols: {http: {tls: {client_ca_file: a}}}}", "certificate and key for server"},
        {"{protocols: {http: {tls: {cert_file: a, key_file: b, insecure: true}}}}", "insecure"},
        {"{protocols: {http: {auth: {authenticator: basicauth}}}}",
         "failed to resolve authenticator \"basicauth\": authenticator not found"},
        {"{protocols: {http: {middlewares: [{id: x}]}}}", "middlewares are not supported"},
        {"{protocols: {grpc: {transport: ''}}}", "unsupported transport type \"\""},
        {"{protocols: {grpc: {transport: unixgram}}}", "unsupported transport type \"unixgram\""},
        {"{protocols: {grpc: {transport: unix, endpoint: ''}}}", "expected a path of 1 to 107"},
        {"{protocols: {grpc: {endpoint: localhost}}}", "localhost"},
        {"{protocols: {grpc: {endpoint: 'localhost:99999'}}}", "99999"},
        {"{protocols: {grpc: {read_buffer_size: -1}}}", "read_buffer_size"},
        {"{protocols: {grpc: {max_recv_msg_size_mib: -1}}}", "max_recv_msg_size_mib"},
        {"{protocols: {http: {traces_url_path: /a, logs_url_path: a}}}",
         "traces and logs have the same URL path \"/a\""},
        {"{protocols: {http: {traces_url_path: '%zz'}}}", "invalid HTTP URL path set for signal"},
        {"{protocols: {http: {max_body: 1}}}", "max_body"},
        {"{protocols: {grpc: {keepalive: {server_parameters: {time: x}}}}}",
         "server_parameters::time: found the string \"x\", expected a duration"},
        {"{protocols: {grpc: {keepalive: {enforcement_policy: {permit_without_stream: 3}}}}}",
         "permit_without_stream: found the number 3, expected true or false"},
        {"{protocols: {grpc: {dialer: {timeout: x}}}}", "dialer::timeout: found the string \"x\""},
        {"{protocols: {grpc: {auth: {authenticator: a, request_params: [b]}}}}",
         "request_params: found an unknown key"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *problems = fixture_problems(rows[i].protocols);
        if (strstr(problems, rows[i].problem) == NULL)
            fail_msg("%s: expected \"%s\", found \"%s\"", rows[i].protocols, rows[i].problem,
                     problems);
        free(problems);
    }
}

static void both_protocols_listen(void **state)
{
    (void)state;
    fixture_start(
        "{protocols: {grpc: {endpoint: 'localhost:0'}, http: {endpoint: '127.0.0.1:0'}}}");
    assert_string_not_equal(fixture.grpc_address, "");
    assert_string_not_equal(fixture.http_address, "");
    assert_string_not_equal(fixture.grpc_address, fixture.http_address);
    fixture_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(these_load),
        cmocka_unit_test(these_are_refused),
        cmocka_unit_test(too_many_response_headers_are_refused),
        cmocka_unit_test(both_protocols_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
