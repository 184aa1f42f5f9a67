/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, the proxies that they go through, and Retry-After. */
#include "src/net/syntax/http_url.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/client/proxy.h"
#include "src/net/syntax/retry_after.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct url_case {
    const char *text;
    bool is_https;
    unsigned port;
    const char *host;
    const char *authority;
    const char *target;
    const char *credentials;
    const char *shown;
};

static const struct url_case urls[] = {
    {"http://localhost:4318", false, 4318, "localhost", "localhost:4318", "/", NULL,
     "http://localhost:4318"},
    {"HTTPS://h/a/b?c=d#e", true, 443, "h", "h", "/a/b?c=d", NULL, "https://h/a/b"},
    {"http://h?c=d", false, 80, "h", "h", "/?c=d", NULL, "http://h"},
    {"http://[::1]:80/x", false, 80, "::1", "[::1]:80", "/x", NULL, "http://[::1]:80/x"},
    {"http://[::1]/", false, 80, "::1", "[::1]", "/", NULL, "http://[::1]/"},
    {"http://h:/x", false, 80, "h", "h", "/x", NULL, "http://h/x"},
    {"http://u:p%40@h/x", false, 80, "h", "h", "/x", "u:p@", "http://h/x"},
    {"http://token@h/x", false, 80, "h", "h", "/x", "token:", "http://h/x"},
    {"http://[fe80::1%25eth0]:80/%41?%zz", false, 80, "fe80::1%eth0", "[fe80::1%25eth0]:80",
     "/%41?%zz", NULL, "http://[fe80::1%25eth0]:80/%41"},
    {"http://a@b@h/x", false, 80, "h", "h", "/x", "a@b:", "http://h/x"},
};

static void urls_are_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const struct url_case *row = &urls[i];
        struct http_url url;
        struct error error;
        if (!http_url_parse(row->text, &url, &error))
            fail_msg("%s: %s", row->text, error.text);
        assert_int_equal(url.is_https, row->is_https);
        assert_int_equal(url.port, row->port);
        assert_string_equal(url.host, row->host);
        assert_string_equal(url.authority, row->authority);
        assert_string_equal(url.target, row->target);
        assert_string_equal(url.shown, row->shown);
        assert_int_equal(url.credentials == NULL, row->credentials == NULL);
        if (row->credentials != NULL)
            assert_string_equal(url.credentials, row->credentials);
        http_url_clear(&url);
    }
}

static const char *const bad_urls[][2] = {
    {"localhost:4318", "write the scheme"},
    {"ftp://h", "write the scheme"},
    {"http://", "the URL has no host"},
    {"http://:80", "the URL has no host"},
    {"http://u:p@/x", "the URL has no host"},
    {"http://h:x", "is not a number"},
    {"http://h:65536", "above 65535"},
    {"http://h:0", "port is 0"},
    {"http://::1:80", "brackets"},
    {"http://[::1", "closing bracket"},
    {"http://[::1]x", "closing bracket"},
    {"http://h/a b", "%20"},
    {"http://h/\r\nX: y", "%0D"},
    {"http://%zz@h", "percent-encoding"},
    {"http://a%00@h", "percent-encoding"},
    {"http://%zz:1", "contains a percent sign"},
    {"http://a%20b", "contains a percent sign"},
    {"http://h%2", "contains a percent sign"},
    {"http://[::1%zz]", "contains a percent sign"},
    {"http://h|:1", "host contains '|'"},
    {"http://h\\:1", "host contains '\\'"},
    {"http://h/%zz", "path contains \"%zz\""},
    {"http://h/a%4", "path contains \"%4\""},
    {"http://h/#%", "fragment contains \"%\""},
};

static void bad_urls_are_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
        struct http_url url;
        struct error error = {.text = ""};
        assert_false(http_url_parse(bad_urls[i][0], &url, &error));
        if (strstr(error.text, bad_urls[i][1]) == NULL)
            fail_msg("%s: %s", bad_urls[i][0], error.text);
    }
}

static const char *const joins[][2] = {
    {"http://h", "http://h/v1/traces"},
    {"http://h/", "http://h/v1/traces"},
    {"http://h/base", "http://h/base/v1/traces"},
    {"http://h/base//", "http://h/base//v1/traces"},
    {"http://h/base?k=v", "http://h/base/v1/traces?k=v"},
    {"http://h/base/?k=v#f", "http://h/base/v1/traces?k=v"},
    {"http://h/base#f", "http://h/base/v1/traces"},
};

static void paths_are_joined_before_a_query(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
        char *joined = http_url_join(joins[i][0], "/v1/traces");
        assert_string_equal(joined, joins[i][1]);
        mem_free(joined);
    }
}

/* The examples of RFC 3986 §5.4 that an HTTP back-end may send, at http://a/b/c/d;p?q, and ours. */
static const char *const locations[][2] = {
    {"http:g", "http:g"},
    {"https://g/x", "https://g/x"},
    {"file:///etc/passwd", "file:///etc/passwd"},
    {"g", "http://a:1/b/c/g"},
    {"./g", "http://a:1/b/c/g"},
    {"g/", "http://a:1/b/c/g/"},
    {"/g", "http://a:1/g"},
    {"//g", "http://g"},
    {"//g/x?y", "http://g/x?y"},
    {"?y", "http://a:1/b/c/d;p?y"},
    {"g?y", "http://a:1/b/c/g?y"},
    {"#s", "http://a:1/b/c/d;p?q/../r"},
    {"g#s", "http://a:1/b/c/g"},
    {"g?y#s", "http://a:1/b/c/g?y"},
    {";x", "http://a:1/b/c/;x"},
    {"", "http://a:1/b/c/d;p?q/../r"},
    {".", "http://a:1/b/c/"},
    {"./", "http://a:1/b/c/"},
    {"..", "http://a:1/b/"},
    {"../", "http://a:1/b/"},
    {"../g", "http://a:1/b/g"},
    {"../..", "http://a:1/"},
    {"../../g", "http://a:1/g"},
    {"../../../g", "http://a:1/g"},
    {"/./g", "http://a:1/g"},
    {"/../g", "http://a:1/g"},
    {"g.", "http://a:1/b/c/g."},
    {"..g", "http://a:1/b/c/..g"},
    {"./../g", "http://a:1/b/g"},
    {"./g/.", "http://a:1/b/c/g/"},
    {"g/./h", "http://a:1/b/c/g/h"},
    {"g/../h", "http://a:1/b/c/h"},
    {"g;x=1/../y", "http://a:1/b/c/y"},
    {"g?y/../x", "http://a:1/b/c/g?y/../x"},
    {"/a b/\xc3\xa9", "http://a:1/a%20b/%C3%A9"},
};

static void locations_are_resolved(void **state)
{
    struct http_url base;
    struct error error;
    (void)state;
    assert_true(http_url_parse("http://u:p@a:1/other", &base, &error));
    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        char *url = http_url_resolve(&base, "/b/c/d;p?q/../r", locations[i][0]);
        assert_string_equal(url, locations[i][1]);
        mem_free(url);
    }
    http_url_clear(&base);
}

static const char *const credentials[][2] = {
    {"a:", "Basic YTo="}, {"ab:", "Basic YWI6"}, {"abc:", "Basic YWJjOg=="}};

static void credentials_become_base64(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++) {
        char *value = http_url_basic_auth(credentials[i][0]);
        assert_string_equal(value, credentials[i][1]);
        mem_free(value);
    }
}

struct no_proxy_case {
    const char *url;
    const char *no_proxy;
    bool is_excluded;
};

static const struct no_proxy_case no_proxies[] = {
    {"http://a.example.com", "example.com", true},
    {"http://example.com", "example.com", true},
    {"http://example.com", ".example.com", false},
    {"http://a.example.com", " x, .EXAMPLE.com ", true},
    {"http://a.example.com", "*.example.com", true},
    {"http://badexample.com", "example.com", false},
    {"http://h", "*", true},
    {"http://h:4318", "h:4318", true},
    {"http://h:4318", "h:4319", false},
    {"http://10.1.2.3", "10.0.0.0/8", true},
    {"http://11.1.2.3", "10.0.0.0/8", false},
    {"http://10.1.2.3", "10.1.2.2/31", true},
    {"http://10.1.2.3", "10.1.2.3", true},
    {"http://[fd00::1]:80", "fd00::/16", true},
    {"http://[fd00::1]:80", "[fd00::1]:80", true},
    {"http://[fd00::1]:80", "fd00::1", true},
    {"http://h", "", false},
    {"http://h", ",,", false},
};

static void no_proxy_is_read_as_go_reads_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(no_proxies) / sizeof(no_proxies[0]); i++) {
        struct http_url url;
        struct error error;
        assert_true(http_url_parse(no_proxies[i].url, &url, &error));
        if (proxy_is_excluded(&url, no_proxies[i].no_proxy) != no_proxies[i].is_excluded)
            fail_msg("%s with NO_PROXY=%s", no_proxies[i].url, no_proxies[i].no_proxy);
        http_url_clear(&url);
    }
}

static const char *found_for(const char *text, const char *configured)
{
    struct http_url url;
    struct error error;
    assert_true(http_url_parse(text, &url, &error));
    const char *proxy = proxy_find(&url, configured);
    http_url_clear(&url);
    return proxy == NULL ? "" : proxy;
}

static void proxies_come_from_the_option_or_the_environment(void **state)
{
    (void)state;
    setenv("HTTP_PROXY", "http://up:1", 1);
    setenv("http_proxy", "http://low:1", 1);
    setenv("https_proxy", "http://tls:1", 1);
    setenv("NO_PROXY", "inside", 1);
    assert_string_equal(found_for("http://h", ""), "http://up:1");
    assert_string_equal(found_for("https://h", ""), "http://tls:1");
    assert_string_equal(found_for("http://inside", ""), "");
    assert_string_equal(found_for("http://localhost", ""), "");
    assert_string_equal(found_for("http://127.9.9.9", ""), "");
    assert_string_equal(found_for("http://[::1]", ""), "");
    assert_string_equal(found_for("http://localhost", "http://own:1"), "http://own:1");
    unsetenv("HTTP_PROXY");
    assert_string_equal(found_for("http://h", ""), "http://low:1");
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("NO_PROXY");
    assert_string_equal(found_for("http://h", ""), "");
}

struct retry_after_case {
    const char *text;
    bool is_taken;
    uint64_t after_ms;
};

/* The clock says Mon, 02 Jan 2006 15:04:05.5 GMT. */
static const struct retry_after_case retry_afters[] = {
    {"0", true, 0},
    {"7", true, 7000},
    {"+2", true, 2000},
    {"99999999999999999999", true, (uint64_t)366 * 24 * 3600 * 1000},
    {"Mon, 02 Jan 2006 15:04:15 GMT", true, 9500},
    {"Tue, 03 Jan 2006 15:04:05 GMT", true, 86399500},
    {"Mon, 02 Jan 2006 15:04:05 GMT", false, 0},
    {"Mon, 02 Jan 2006 14:04:15 GMT", false, 0},
    {"", false, 0},
    {"-1", false, 0},
    {"2.5", false, 0},
    {"2s", false, 0},
    {"++2", false, 0},
    {"Monday, 02-Jan-06 15:04:15 GMT", false, 0},
    {"Mon Jan  2 15:04:15 2006", false, 0},
    {"Xon, 02 Jan 2006 15:04:15 GMT", false, 0},
    {"Mon, 32 Jan 2006 15:04:15 GMT", false, 0},
    {"Mon, 02 Foo 2006 15:04:15 GMT", false, 0},
    {"Mon, 02 Jan 2006 25:04:15 GMT", false, 0},
};

static void retry_after_takes_seconds_and_rfc_1123_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(retry_afters) / sizeof(retry_afters[0]); i++) {
        const uint64_t wall_ns = 1136214245 * (uint64_t)NS_PER_S + NS_PER_S / 2;
        uint64_t after_ns = 0;
        bool is_taken = retry_after_parse(retry_afters[i].text, wall_ns, &after_ns);
        if (is_taken != retry_afters[i].is_taken ||
            after_ns != retry_afters[i].after_ms * NS_PER_MS)
            fail_msg("\"%s\": %d, %llu", retry_afters[i].text, is_taken,
                     (unsigned long long)after_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(bad_urls_are_refused_with_a_reason),
        cmocka_unit_test(paths_are_joined_before_a_query),
        cmocka_unit_test(locations_are_resolved),
        cmocka_unit_test(credentials_become_base64),
        cmocka_unit_test(no_proxy_is_read_as_go_reads_it),
        cmocka_unit_test(proxies_come_from_the_option_or_the_environment),
        cmocka_unit_test(retry_after_takes_seconds_and_rfc_1123_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
