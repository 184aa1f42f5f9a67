/* SPDX-License-Identifier: Apache-2.0 */
/* URLs whose ids redaction hides. */
#include "src/base/arena.h"
#include "src/records/url_sanitizer.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { ARENA_BYTES_MAX = 64 << 20 };

static void run_sanitize(struct slice url)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    work_begin();
    struct slice result = url_sanitize(&arena, url);
    work_end();
    work_produced(result.size);
    arena_clear(&arena);
}

static void run_hidden(struct slice url)
{
    work_begin();
    url_is_hidden(url);
    work_end();
}

#define REPEATED(name, head, text, tail)                                                           \
    static struct slice name(size_t n)                                                             \
    {                                                                                              \
        return repeat(head, text, n, tail);                                                        \
    }
REPEATED(words, "/", "connection refused by peer ", "")
REPEATED(random_letters, "/users/", "xqzjkvb", "/posts")
REPEATED(odd_letters, "/", "a1b2", "/1")
REPEATED(late_digit, "/users/", "order-", "7/items")
REPEATED(slashes, "", "/", "")
REPEATED(ids, "", "/7", "")
REPEATED(stars, "", "/*", "")
REPEATED(queries, "/users", "?a=1&b=2", "")
/* The last segment, of which most is looked at twice. */
REPEATED(last_segment, "/a/b/c/d/e/f/g/h/", "xqzjkvb", "/j")

static const struct work_shape shapes[] = {
    {"words", words},
    {"random letters", random_letters},
    {"letters and digits", odd_letters},
    {"a digit at the end", late_digit},
    {"slashes", slashes},
    {"ids", ids},
    {"stars", stars},
    {"queries", queries},
    {"a last segment", last_segment},
};

static const struct work_stage stages[] = {
    {.name = "sanitize", .run = run_sanitize, .per_byte_max = 20},
    {.name = "hidden", .run = run_hidden, .per_byte_max = 8},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv);
}
