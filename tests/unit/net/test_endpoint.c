/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: which are accepted, the errors of others, and how addresses print. */
#include "src/net/socket/endpoint.h"

#include "src/base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static void endpoints_are_split_as_go_splits_them(void **state)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        const char *port; /* or the error */
    } rows[] = {
        {"localhost:4318", "localhost", "4318"},
        {":4318", "", "4318"},
        {"", "", "0"},
        {"0.0.0.0:0", "0.0.0.0", "0"},
        {"[::1]:4318", "::1", "4318"},
        {"[]:4318", "", "4318"},
        {"[fe80::1%lo]:1", "fe80::1%lo", "1"},
        {"localhost:", "localhost", ""},
        {"localhost:http", "localhost", "http"},
        {"localhost", NULL, "address localhost: missing port in address"},
        {"[::1]", NULL, "address [::1]: missing port in address"},
        {"::1:4318", NULL, "address ::1:4318: too many colons in address"},
        {"http://a:1", NULL, "address http://a:1: too many colons in address"},
        {"[::1]x:4318", NULL, "address [::1]x:4318: missing port in address"},
        {"[::1]:2:3", NULL, "address [::1]:2:3: too many colons in address"},
        {"[::1:4318", NULL, "address [::1:4318: missing ']' in address"},
        {"a[b:1", NULL, "address a[b:1: unexpected bracket in address"},
        {"a]b:1", NULL, "address a]b:1: unexpected bracket in address"},
        {"[a[b]:1", NULL, "address [a[b]:1: unexpected bracket in address"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct endpoint endpoint;
        struct error error;
        bool is_right = endpoint_parse(rows[i].text, &endpoint, &error);
        if (is_right != (rows[i].host != NULL))
            fail_msg("%s: %s", rows[i].text, is_right ? "accepted" : error.text);
        assert_string_equal(is_right ? endpoint.port : error.text, rows[i].port);
        if (is_right)
            assert_string_equal(endpoint.host, rows[i].host);
    }
}

static void hosts_and_ports_that_are_too_long_are_refused(void **state)
{
    char text[2 * ENDPOINT_HOST_MAX];
    struct endpoint endpoint;
    struct error error;
    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text + ENDPOINT_HOST_MAX - 1, ":1", 3);
    assert_true(endpoint_parse(text, &endpoint, &error));
    memcpy(text + ENDPOINT_HOST_MAX - 1, "a:1", 4);
    assert_false(endpoint_parse(text, &endpoint, &error));
    snprintf(text, sizeof(text), "a:%064d", 1);
    assert_false(endpoint_parse(text, &endpoint, &error));
}

static void endpoints_resolve_to_one_address(void **state)
{
    static const struct {
        const char *text;
        const char *transport;
        const char *address; /* as errors show it */
        int family;          /* 0: refused */
    } rows[] = {
        {"127.0.0.1:4318", "tcp", "127.0.0.1:4318", AF_INET},
        {"127.0.0.1:", "tcp", "127.0.0.1:0", AF_INET},
        {"127.0.0.1:00080", "tcp", "127.0.0.1:80", AF_INET},
        {"localhost:65535", "tcp4", "127.0.0.1:65535", AF_INET},
        {"localhost:1", "tcp", "127.0.0.1:1", AF_INET},
        {"[::1]:4318", "tcp", "[::1]:4318", AF_INET6},
        {"[::1]:4318", "tcp6", "[::1]:4318", AF_INET6},
        {":4318", "tcp4", ":4318", AF_INET},
        {":4318", "tcp6", ":4318", AF_INET6},
        {"0.0.0.0:4318", "tcp4", "0.0.0.0:4318", AF_INET},
        {"[::]:4318", "tcp6", "[::]:4318", AF_INET6},
        {"127.0.0.1:65536", "tcp", "address 65536: invalid port", 0},
        {"127.0.0.1:4294967297", "tcp", "address 4294967297: invalid port", 0},
        {"127.0.0.1:-1", "tcp", "lookup tcp/-1: unknown port", 0},
        {"127.0.0.1:no-such-service", "tcp", "lookup tcp/no-such-service: unknown port", 0},
        {"[::1]:1", "tcp4", "address ::1: no suitable address", 0},
        {"127.0.0.1:1", "tcp6", "address 127.0.0.1: no suitable address", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct endpoint endpoint;
        struct endpoint_address address;
        struct error error;
        assert_true(endpoint_parse(rows[i].text, &endpoint, &error));
        bool is_right = endpoint_resolve(&endpoint, rows[i].transport, &address, &error);
        if (is_right != (rows[i].family != 0))
            fail_msg("%s: %s", rows[i].text, is_right ? "accepted" : error.text);
        assert_string_equal(is_right ? address.text : error.text, rows[i].address);
        if (is_right)
            assert_int_equal(address.address.ss_family, rows[i].family);
    }
}

static void a_wildcard_takes_both_families_where_there_are_two(void **state)
{
    static const char *const texts[] = {":0", "0.0.0.0:0", "[::]:0"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct endpoint endpoint;
        struct endpoint_address address;
        struct error error;
        assert_true(endpoint_parse(texts[i], &endpoint, &error));
        assert_true(endpoint_resolve(&endpoint, "tcp", &address, &error));
        assert_int_equal(address.is_dual, address.address.ss_family == AF_INET6);
    }
}

static void addresses_print_as_go_prints_them(void **state)
{
    static const struct {
        const char *host;
        const char *text;
        const char *address;
    } rows[] = {
        {"::1", "::1", "[::1]:80"},
        {"::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7:80"},
        {"2001:db8::1", "2001:db8::1", "[2001:db8::1]:80"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
        char host[ENDPOINT_HOST_TEXT_MAX];
        char text[ENDPOINT_TEXT_MAX];
        assert_int_equal(inet_pton(AF_INET6, rows[i].host, &address.sin6_addr), 1);
        endpoint_print_host((struct sockaddr *)&address, host);
        endpoint_print((struct sockaddr *)&address, text);
        assert_string_equal(host, rows[i].text);
        assert_string_equal(text, rows[i].address);
    }
    struct sockaddr_storage local = {.ss_family = AF_UNIX};
    char host[ENDPOINT_HOST_TEXT_MAX];
    endpoint_print_host((struct sockaddr *)&local, host);
    assert_string_equal(host, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_split_as_go_splits_them),
        cmocka_unit_test(hosts_and_ports_that_are_too_long_are_refused),
        cmocka_unit_test(endpoints_resolve_to_one_address),
        cmocka_unit_test(a_wildcard_takes_both_families_where_there_are_two),
        cmocka_unit_test(addresses_print_as_go_prints_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
