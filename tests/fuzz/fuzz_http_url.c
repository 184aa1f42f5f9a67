/* SPDX-License-Identifier: Apache-2.0 */
/* Any string as the URL of a back-end, and as the Location of its redirect: what is taken is whole
 * and has no blanks, and still names the same back-end with a path behind it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/syntax/http_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const struct http_url *url)
{
    assert(url->host[0] != '\0');
    assert(url->authority[0] != '\0');
    assert(url->target[0] == '/');
    assert(url->port != 0);
    for (const char *c = url->target; *c != '\0'; c++)
        assert((uint8_t)*c > ' ' && *c != 0x7f);
    for (const char *c = url->authority; *c != '\0'; c++)
        assert((uint8_t)*c > ' ' && *c != 0x7f);
}

static void check_joined(const char *text, const struct http_url *url)
{
    struct http_url with_path;
    struct error error;
    char *joined = http_url_join(text, "/v1/traces");
    bool is_fine = http_url_parse(joined, &with_path, &error);
    assert(is_fine);
    assert(strcmp(with_path.authority, url->authority) == 0);
    assert(strstr(with_path.target, "/v1/traces") != NULL);
    check_parts(&with_path);
    http_url_clear(&with_path);
    mem_free(joined);
}

/* A Location without an address of its own stays at its origin, below its root. */
static void check_location(const char *text)
{
    struct http_url base;
    struct http_url url;
    struct error error;
    bool is_base = http_url_parse("http://h:1", &base, &error);
    assert(is_base);
    char *resolved = http_url_resolve(&base, "/v1/traces?a=b", text);
    if (http_url_parse(resolved, &url, &error)) {
        check_parts(&url);
        if (text[0] == '/' && text[1] != '/') {
            size_t path_size = strcspn(url.target, "?");
            assert(http_url_is_same_origin(&base, &url));
            assert(memmem(url.target, path_size, "/../", 4) == NULL);
        }
        http_url_clear(&url);
    }
    mem_free(resolved);
    http_url_clear(&base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_url url;
    struct error error = {.text = ""};
    char *text = mem_alloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (http_url_parse(text, &url, &error)) {
        check_parts(&url);
        if (strlen(text) < HTTP_URL_BYTES_MAX / 2)
            check_joined(text, &url);
        http_url_clear(&url);
    } else {
        assert(error.text[0] != '\0');
    }
    check_location(text);
    mem_free(text);
    return 0;
}
