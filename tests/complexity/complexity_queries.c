/* SPDX-License-Identifier: Apache-2.0 */
/* Queries whose values redaction hides: each language is given each shape. */
#include <assert.h>

#include "src/base/arena.h"
#include "src/records/query_sanitizer.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { ARENA_BYTES_MAX = 64 << 20 };

static void run_system(struct slice query, const char *system)
{
    struct query_settings settings = {.has_span_names = true};
    for (size_t i = 0; i < QUERY_LANGUAGES; i++)
        settings.is_enabled[i] = true;
    struct query_sanitizer *sanitizer = query_sanitizer_create(&settings);
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    work_begin();
    struct slice result =
        query_sanitizer_span_name(sanitizer, &arena, query, slice_of_text(system));
    work_end();
    work_produced(result.size);
    arena_clear(&arena);
    query_sanitizer_destroy(sanitizer);
}

static void run_sql(struct slice query)
{
    run_system(query, "sqlite");
}

static void run_mysql(struct slice query)
{
    run_system(query, "mysql");
}

static void run_redis(struct slice query)
{
    run_system(query, "redis");
}

static void run_memcached(struct slice query)
{
    run_system(query, "memcached");
}

static void run_json(struct slice query)
{
    run_system(query, "mongodb");
}

#define REPEATED(name, text)                                                                       \
    static struct slice name(size_t n)                                                             \
    {                                                                                              \
        return repeat("", text, n, "");                                                            \
    }
REPEATED(values, "(1, 'a', NULL, -2.5e3), ")
REPEATED(names, "a1.\"b2\".\"c3\" SELECT key.d ")
REPEATED(calls, "f1(x1) ")
REPEATED(dollars, "$a $b$ ")
REPEATED(functions, "$func$ 1 $func$")
REPEATED(half_functions, "$func")
REPEATED(quotes, "\"'`")
REPEATED(comments, "/* -- */ # -- /")
REPEATED(operators, "->>#>?|<@=?@@")
REPEATED(wide, "\xc3\xa9\xe3\x80\x80\xe2\x98\x83")
REPEATED(blanks, " \t\r ")
REPEATED(commands, "SET k v\n")
REPEATED(empty_commands, "\n a\n")
REPEATED(arguments, "ZADD SET \"a\" \\\" ")

REPEATED(opened, "{\"k\":[")

static struct slice entries(size_t n)
{
    return repeat("[0", ",{\"key\": [1, \"a\\n\", null, {}]}", n, "]");
}

static struct slice nested(size_t n)
{
    return repeat("[0", ",[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", n, "]");
}

static const struct work_shape shapes[] = {
    {"values", values},
    {"names", names},
    {"calls", calls},
    {"texts between dollar signs", dollars},
    {"functions", functions},
    {"begins of functions", half_functions},
    {"quotes", quotes},
    {"comments", comments},
    {"operators", operators},
    {"characters beyond ASCII", wide},
    {"blanks", blanks},
    {"commands", commands},
    {"commands without names", empty_commands},
    {"arguments", arguments},
    {"opened JSON", opened},
    {"entries of JSON", entries},
    {"nested JSON", nested},
};

static const struct work_stage stages[] = {
    {.name = "SQL", .run = run_sql, .per_byte_max = 80},
    {.name = "SQL of MySQL", .run = run_mysql, .per_byte_max = 80},
    {.name = "Redis", .run = run_redis, .per_byte_max = 40},
    {.name = "Memcached", .run = run_memcached, .per_byte_max = 10},
    {.name = "JSON", .run = run_json, .per_byte_max = 30},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv);
}
