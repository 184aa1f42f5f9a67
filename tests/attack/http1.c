/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 requests, whole or spoilt. */
#include "tests/attack/http1.h"

#include <string.h>

static void put_chunks(struct world *world, const struct body *body, bool spoils,
                       struct bytes_out *out)
{
    struct random_source *random = &world->random;
    static const char *const extensions[] = {"", "", ";a=b", ";a=\"b;c\"", " ", ";"};
    size_t left = body->content.size;
    const uint8_t *at = body->content.data;
    for (unsigned chunks = 0; left > 0; chunks++) {
        size_t size = chunks > 60 ? left : 1 + random_below(random, left);
        uint64_t said = size;
        if (spoils && random_below(random, 6) == 0)
            said = odd_number(world, size);
        bytes_add_format(out, "%llx%s\r\n", (unsigned long long)said,
                         extensions[random_below(random, spoils ? 6 : 3)]);
        bytes_add(out, at, size);
        bytes_add_text(out, spoils && random_below(random, 8) == 0 ? "\n" : "\r\n");
        at += size;
        left -= size;
    }
    bytes_add_text(out, random_below(random, 6) == 0 ? "0\r\nx-trailer: 1\r\n\r\n" : "0\r\n\r\n");
}

/* Headers that are odd; some are even allowed. */
static void put_odd(struct world *world, struct bytes_out *out)
{
    static const char *const texts[] = {
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 4294967295\r\n",
        "content-length : 3\r\n",
        "Expect: 100-continue\r\n",
        "Expect: 200-ok\r\n",
        "Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Host: a\r\nHost: b\r\n",
        " folded: line\r\n",
        "no colon\r\n",
        ": no name\r\n",
        "x: \x01\x7f\r\n",
        "x\xff: y\r\n",
        "Content-Type: \r\n",
        "Content-Type: application/json; charset=utf-16; charset=\"\\\r\n",
        "Content-Encoding: gzip, gzip\r\n",
        "Authorization: Basic Og==\r\n",
        "Authorization: Bearer\r\n",
        "Accept-Encoding: gzip;q=0, *\r\n",
        "\n",
        "\r",
    };
    struct random_source *random = &world->random;
    uint64_t which = random_below(random, sizeof(texts) / sizeof(texts[0]) + 2);
    if (which < sizeof(texts) / sizeof(texts[0])) {
        bytes_add_text(out, texts[which]);
        return;
    }
    bool is_many = which == sizeof(texts) / sizeof(texts[0]);
    uint64_t count = is_many ? 90 + random_below(random, 30) : random_below(random, 20000);
    bytes_add_text(out, is_many ? "" : "x-long: ");
    for (uint64_t i = 0; i < count; i++)
        bytes_add_text(out, is_many ? "x-many: 1\r\n" : "v");
    bytes_add_text(out, is_many ? "" : "\r\n");
}

static void put_line(struct world *world, const struct body *body, bool spoils,
                     struct bytes_out *out)
{
    static const char *const versions[] = {"HTTP/1.1",  "HTTP/1.0", "HTTP/2.0",
                                           "HTTP/1.11", "http/1.1", ""};
    static const char *const hosts[] = {"", "", "", "http://localhost", "http://", "//", "*"};
    struct random_source *random = &world->random;
    bytes_add_format(out, "%s %s%s %s\r\n",
                     spoils && random_below(random, 10) == 0 ? "PRI" : body->method,
                     hosts[spoils ? random_below(random, 7) : 0], body->path,
                     versions[spoils ? random_below(random, 6) : 0]);
}

bool http1_request(struct world *world, const struct body *body, bool spoils, bool is_last,
                   struct bytes_out *out)
{
    struct random_source *random = &world->random;
    size_t begin = out->size;
    bool spoils_line = spoils && random_below(random, 4) == 0;
    bool has_body = body->content.size > 0 || strcmp(body->method, "POST") == 0;
    bool is_chunked = has_body && random_below(random, 4) == 0;
    put_line(world, body, spoils_line, out);
    bytes_add_text(out, "Host: localhost\r\n");
    if (body->type != NULL)
        bytes_add_format(out, "Content-Type: %s\r\n", body->type);
    if (body->encoding != NULL)
        bytes_add_format(out, "Content-Encoding: %s\r\n", body->encoding);
    for (unsigned i = 0; i < body->headers_count; i++)
        bytes_add_format(out, "%s: %s\r\n", body->headers[i].name, body->headers[i].value);
    if (spoils && !spoils_line)
        put_odd(world, out);
    if (is_last)
        bytes_add_text(out, "Connection: close\r\n");
    if (is_chunked) {
        bytes_add_text(out, "Transfer-Encoding: chunked\r\n\r\n");
        put_chunks(world, body, spoils && random_below(random, 3) == 0, out);
    } else {
        if (has_body)
            bytes_add_format(out, "Content-Length: %zu\r\n", body->content.size);
        bytes_add_text(out, "\r\n");
        bytes_add(out, body->content.data, body->content.size);
    }
    if (spoils && random_below(random, 6) == 0)
        mutate_bytes(world, out, begin);
    return spoils;
}
