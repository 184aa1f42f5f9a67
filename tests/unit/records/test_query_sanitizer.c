/* SPDX-License-Identifier: Apache-2.0 */
/* What queries become, and which queries are taken for which language. Expected texts are those of
 * the Go collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/arena.h"
#include "src/records/command_obfuscator.h"
#include "src/records/json_obfuscator.h"
#include "src/records/query_sanitizer.h"
#include "src/records/sql_obfuscator.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

struct row {
    const char *text;
    const char *expected;
};

typedef struct slice (*obfuscate_fn)(struct arena *arena, struct slice text);

static void check_rows(const struct row *rows, size_t count, obfuscate_fn obfuscate)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        arena_init(&arena, ARENA_BYTES_MAX);
        struct slice result = obfuscate(&arena, slice_of_text(rows[i].text));
        if (!slice_equal_text(result, rows[i].expected))
            fail_msg("%s becomes %.*s instead of %s", rows[i].text, (int)result.size,
                     (const char *)result.data, rows[i].expected);
        arena_clear(&arena);
    }
}
#define CHECK_ROWS(rows, obfuscate) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), obfuscate)

static struct slice sql(struct arena *arena, struct slice text)
{
    return sql_obfuscate(arena, text, false);
}

static struct slice mysql(struct arena *arena, struct slice text)
{
    return sql_obfuscate(arena, text, true);
}

static struct slice memcached(struct arena *arena, struct slice text)
{
    (void)arena;
    return memcached_obfuscate(text);
}

static void values_of_statements_are_hidden(void **state)
{
    static const struct row rows[] = {
        {"SELECT * FROM users WHERE id = 123 AND name = 'bob'",
         "SELECT * FROM users WHERE id = ? AND name = ?"},
        {"INSERT INTO t2 (a, b) VALUES (1, 'x'), (-2.5e+3, NULL)",
         "INSERT INTO t? (a, b) VALUES (?, ?), (?, ?)"},
        {" SELECT a -- id 12\nFROM b /* 12 'c' */ ", "SELECT a -- id 12\nFROM b /* 12 'c' */"},
        {"a = TRUE OR b IN ($1, $22, 0x1Fz, 0755, 089)", "a = ? OR b IN (?, ?, ?z, ?, ?)"},
        {"'it''s' 'a\\'b' 'open 12", "?? ? ?"},
        {"SELECT \"t1\".\"c2\", \"open1", "SELECT \"t?\".\"c?\", \"open1"},
        {"sha256(x1) = md5sum.x1(2) = x1 (3)", "sha256(x?) = md5sum.x1(?) = x? (?)"},
        {"a-1 b - 1 c+.5 d..1", "a? b - ? c? d..?"},
        {"x = $$a 'b'$$, $t$ 1 $t$, $t$ 1 $", "x = ?, ?, $t$ 1 $"},
        {"AS $func$ SELECT 1 FROM t2 WHERE $1 $func$ LANGUAGE sql",
         "AS $func$SELECT ? FROM t? WHERE ?$func$ LANGUAGE sql"},
        {"$func$ 'open $func$ 1", "$func$?$func$ ?"},
        {"@v1 @@x2 @aé1.5 @☃1.5 :p1 a @> '{}' b ->> 1 #>> 2 ?| 3 <@ 4 =?1",
         "@v1 @@x2 @aé? @☃? :p? a @> ? b ->> ? #>> ? ?| ? <@ ? =??"},
        {"é1.5 ☃1.5 größe2(1) größe3", "é?.? ☃? größe2(?) größe?"},
        {"key.5e3 keys.5e3 order.true null.x nullx", "key.? keys.?e? order.? ?.x nullx"},
        {"# 1 `t1` \"a1\"", "# ? `t?` \"a?\""},
        {"\xe3\x80\x80 a \xc2\xa0", "a"},
        {"", ""},
    };
    static const struct row mysql_rows[] = {
        {"SELECT `t1`.`c2` FROM x1 WHERE a = \"it\" # 12 'b'\n, 2",
         "SELECT `t?`.`c?` FROM x? WHERE a = ? # 12 'b'\n, ?"},
    };
    (void)state;
    CHECK_ROWS(rows, sql);
    CHECK_ROWS(mysql_rows, mysql);
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    struct slice cut = sql_obfuscate(&arena, slice_of("a 1 \0 'b'", 9), false);
    assert_true(slice_equal_text(cut, "a ?"));
    arena_clear(&arena);
}

static void values_of_commands_are_hidden(void **state)
{
    static const struct row redis_rows[] = {
        {"SET key value EX 10", "SET key ? EX 10"},
        {"set key \"a b\"  x", "set key ? x"},
        {"AUTH user pass", "AUTH ?"},
        {"LPUSH k a b c", "LPUSH k ?"},
        {"HSET k f1 v1 f2 v2", "HSET k f1 ? f2 ?"},
        {"MSET a 1 b 2 c", "MSET a ? b ? c"},
        {"GEOADD k 1 2 m 3 4 n", "GEOADD k 1 2 ? 3 4 ?"},
        {"CONFIG SET pass x", "CONFIG SET pass ?"},
        {"CONFIG GET pass x", "CONFIG GET pass x"},
        {"BITFIELD k GET u8 1 SET u8 2 9 SET u8 3 8", "BITFIELD k GET u8 1 SET u8 2 ? SET u8 3 8"},
        {"ZADD k NX CH 1 a 2 b", "ZADD k NX CH 1 ? 2 ?"},
        {"ZADD k 1 a", "ZADD k 1 ?"},
        {"GET key\r\n SET k v \n\nPING", "GET key\r\nSET k ?\nPING"},
        {"SET k \"a\\\" b\nc\" d", "SET k ? d"},
        {" \t ", ""},
    };
    static const struct row memcached_rows[] = {
        {"set key 0 60 5\r\nvalue\r\n", "set key 0 60 5"},
        {" get a b\n", "get a b"},
        {"\r\nx", ""},
    };
    (void)state;
    CHECK_ROWS(redis_rows, redis_obfuscate);
    CHECK_ROWS(memcached_rows, memcached);
}

static void values_of_json_are_hidden(void **state)
{
    static const struct row rows[] = {
        {" {\"find\" : \"users\", \"filter\": {\"a\\\"b c\": [1, -2.5e3, [], {}, null]}} \n",
         "{\"find\":\"?\",\"filter\":{\"a\\\"b c\":[\"?\",\"?\",[],{},\"?\"]}} \n"},
        {"[{\"a\":{\"b\":true}},false,[[\"x\"]]]", "[{\"a\":{\"b\":\"?\"}},\"?\",[[\"?\"]]]"},
        {"12", "\"?\""},
        {"\"a\" ", "\"?\" "},
        /* No JSON: it stays. */
        {"{\"a\":1} {\"b\":2}", "{\"a\":1} {\"b\":2}"},
        {"{\"a\":1,}", "{\"a\":1,}"},
        {"[1}", "[1}"},
        {"{\"a\" 1}", "{\"a\" 1}"},
        {"{a:1}", "{a:1}"},
        {"[1,]", "[1,]"},
        {"[truex]", "[truex]"},
        {"[", "["},
        {" ", " "},
        {"", ""},
    };
    (void)state;
    CHECK_ROWS(rows, json_obfuscate);
    enum { DEEP = JSON_QUERY_DEPTH_MAX };
    static char text[2 * DEEP + 3];
    static char expected[2 * DEEP + 5];
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    memcpy(expected, text, sizeof(text));
    assert_true(slice_equal_text(json_obfuscate(&arena, slice_of_text(text)), expected));
    text[DEEP] = '1';
    memset(text + DEEP + 1, ']', DEEP);
    memcpy(expected + DEEP, "\"?\"", 3);
    memset(expected + DEEP + 3, ']', DEEP);
    assert_true(slice_equal_text(json_obfuscate(&arena, slice_of_text(text)), expected));
    text[DEEP] = '[';
    memset(text + DEEP + 1, ']', DEEP + 1);
    struct slice deeper = slice_of_text(text);
    assert_ptr_equal(json_obfuscate(&arena, deeper).data, deeper.data);
    arena_clear(&arena);
}

static void a_full_arena_hides_all(void **state)
{
    static const char *const texts[] = {"SELECT 1", "AS $func$ SELECT 1 $func$"};
    struct arena arena;
    (void)state;
    arena_init(&arena, 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_true(slice_equal_text(sql(&arena, slice_of_text(texts[i])), "****"));
    assert_true(slice_equal_text(redis_obfuscate(&arena, slice_of_text("SET k v")), "****"));
    assert_true(slice_equal_text(json_obfuscate(&arena, slice_of_text("[1]")), "****"));
    struct slice text = slice_of_text("SELECT a");
    assert_ptr_equal(sql(&arena, text).data, text.data);
    arena_clear(&arena);
}

static struct slice attribute(const struct query_sanitizer *sanitizer, struct arena *arena,
                              const char *key, const char *system, bool is_of_log)
{
    return query_sanitizer_attribute(sanitizer, arena, slice_of_text("SET k 'a' 1\r\nx"),
                                     slice_of_text(key), slice_of_text(system), is_of_log);
}

static void the_system_decides_the_language(void **state)
{
    static const char *const keys[] = {"statement", "query"};
    static const struct {
        const char *key, *system;
        bool is_of_log;
        const char *expected;
    } rows[] = {
        {"query", "MySQL", false, "SET k ? ?\r\nx"},
        {"query", "postgresql", false, "SET k ? ?\r\nx"},
        {"query", "redis", false, "SET k 'a' 1\r\nx"}, /* redis has no such key */
        {"statement", "redis", false, "SET k ? 1\r\nx"},
        {"statement", "memcached", false, "SET k 'a' 1\r\nx"}, /* not enabled */
        {"statement", "oracle", true, "SET k 'a' 1\r\nx"},
        {"statement", "", false, "SET k 'a' 1\r\nx"},
        {"statement", "", true, "SET k ? ?\r\nx"},
        {"other", "", true, "SET k 'a' 1\r\nx"},
    };
    const struct query_settings settings = {
        .is_enabled = {[QUERY_SQL] = true, [QUERY_REDIS] = true},
        .attributes = {[QUERY_SQL] = {.count = 2, .texts = keys},
                       [QUERY_REDIS] = {.count = 1, .texts = keys},
                       [QUERY_MEMCACHED] = {.count = 1, .texts = keys}},
    };
    (void)state;
    struct query_sanitizer *sanitizer = query_sanitizer_create(&settings);
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(slice_equal_text(
            attribute(sanitizer, &arena, rows[i].key, rows[i].system, rows[i].is_of_log),
            rows[i].expected));
    assert_true(query_sanitizer_has_attributes(sanitizer));
    assert_false(query_sanitizer_has_span_names(sanitizer));
    struct slice text = slice_of_text("SET k v 1");
    assert_true(slice_equal_text(
        query_sanitizer_span_name(sanitizer, &arena, text, slice_of_text("Redis")), "SET k ? 1"));
    assert_true(slice_equal_text(query_sanitizer_body(sanitizer, &arena, text), "SET k ? ?"));
    arena_clear(&arena);
    query_sanitizer_destroy(sanitizer);
    const struct query_settings none = {.has_span_names = true};
    assert_null(query_sanitizer_create(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_statements_are_hidden),
        cmocka_unit_test(values_of_commands_are_hidden),
        cmocka_unit_test(values_of_json_are_hidden),
        cmocka_unit_test(a_full_arena_hides_all),
        cmocka_unit_test(the_system_decides_the_language),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
