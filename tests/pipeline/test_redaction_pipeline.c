/* SPDX-License-Identifier: Apache-2.0 */
/* The redaction processor, from YAML to JSON: which attributes go, which values are masked and how,
 * what of a body, and the summary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/record_case.h"

#define K64                "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define TEXT(key, value)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define MAP(entries)       "{\"kvlistValue\":{\"values\":[" entries "]}}"
#define LIST(values)       "{\"arrayValue\":{\"values\":[" values "]}}"
#define LOG(rest)                                                                                  \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{" rest      \
    "}]}]}]}"
#define IN_LOG(attributes) LOG("\"body\":{},\"attributes\":[" attributes "]")

/* By default nothing may stay, wherever attributes are. */
static void every_attribute_goes_unless_it_is_allowed(void **state)
{
    (void)state;
#define TRACE(r, s, a, e)                                                                          \
    "{\"resourceSpans\":[{\"resource\":{" r "},\"scopeSpans\":[{\"scope\":{\"name\":\"s\"" s       \
    "},\"spans\":[{\"name\":\"n\"" a ",\"events\":[{\"name\":\"e\"" e "},{}],\"links\":[{"         \
    "\"attributes\":[" TEXT("link", "1") "]}],\"status\":{}}]}]}]}"
#define GONE(key) ",\"attributes\":[" TEXT(key, "1") "," TEXT("b", "2") "]"
    record_compare("redaction", "{}", TRACES,
                   TRACE("\"attributes\":[" TEXT("r", "1") "]", GONE("s"), GONE("a"), GONE("e")),
                   TRACE("", "", "", ""));
#define KEPT ",\"attributes\":[" TEXT("b", "2") "]"
    record_compare("redaction", "{allowed_keys: [b]}", TRACES,
                   TRACE("\"attributes\":[" TEXT("r", "1") "]", GONE("s"), GONE("a"), GONE("e")),
                   TRACE("", KEPT, KEPT, KEPT));
    record_compare(
        "redaction", "{}", METRICS,
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT(
            "a", "1") "]},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{\"name\":\"m\",\"sum\":{"
                      "\"dataPoints\":[{"
                      "\"attributes\":[" TEXT(
                          "a", "1") "],\"asInt\":\"1\"}]}},{\"name\":\"h\",\"histogram\":{"
                                    "\"dataPoints\":[{\"attributes\":[" TEXT(
                                        "a", "1") "],\"count\":\"1\"}]}}]}]}]}",
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"
        "\"name\":\"m\",\"sum\":{\"dataPoints\":[{\"asInt\":\"1\"}]}},{\"name\":\"h\","
        "\"histogram\":{\"dataPoints\":[{\"count\":\"1\"}]}}]}]}]}");
}

/* As in Go's map: the last one moves into each gap, in turn. */
static void removed_attributes_are_replaced_from_the_end(void **state)
{
    (void)state;
    record_compare("redaction", "{allowed_keys: [b, d, g]}", LOGS,
                   IN_LOG(TEXT("a", "") "," TEXT("b", "") "," TEXT("c", "") "," TEXT(
                       "d", "") "," TEXT("e", "") "," TEXT("f", "") "," TEXT("g", "")),
                   IN_LOG(TEXT("g", "") "," TEXT("b", "") "," TEXT("d", "")));
    record_compare("redaction", "{allowed_keys: [b, c]}", LOGS,
                   IN_LOG(TEXT("a", "") "," TEXT("b", "") "," TEXT("c", "") "," TEXT("x", "")),
                   IN_LOG(TEXT("c", "") "," TEXT("b", "")));
    /* Two of the removed ones are moved before they go, and the later one goes last. */
    record_compare("redaction", "{allowed_keys: [k, l, m]}", LOGS,
                   IN_LOG(TEXT("a", "") "," TEXT("b", "") "," TEXT("k", "") "," TEXT(
                       "l", "") "," TEXT("m", "") "," TEXT("c", "") "," TEXT("d", "")),
                   IN_LOG(TEXT("l", "") "," TEXT("m", "") "," TEXT("k", "")));
}

static void values_are_masked(void **state)
{
    static const struct {
        const char *section;
        const char *before;
        const char *after;
    } rows[] = {
        {"blocked_values: [\"4[0-9]{3}\"]", TEXT("a", "x 4111 y 4222"), TEXT("a", "x **** y ****")},
        {"blocked_values: [\"4[0-9]{3}\", \"x\"]", TEXT("a", "x4111"), TEXT("a", "********")},
        {"blocked_values: [x]", TEXT("a", "none"), TEXT("a", "none")},
        {"blocked_values: [\"1\"]", NUMBER("a", "11"), NUMBER("a", "11")},
        {"blocked_values: [\"1\"], redact_all_types: true", NUMBER("a", "11"),
         TEXT("a", "********")},
        {"blocked_values: [\"4\"], allowed_values: [\"^ok\"]",
         TEXT("a", "ok 4") "," TEXT("b", "no 4"), TEXT("a", "ok 4") "," TEXT("b", "no ****")},
        {"blocked_key_patterns: [\"^pass\"]", TEXT("password", "a\\nb") "," TEXT("a", "b"),
         TEXT("password", "****\\n****") "," TEXT("a", "b")},
        {"blocked_key_patterns: [\"^pass\"]", NUMBER("password", "5"), TEXT("password", "****")},
        {"blocked_values: [\".\"], ignored_keys: [a], ignored_key_patterns: [\"^ig\"]",
         TEXT("a", "x") "," TEXT("ignored", "x") "," TEXT("b", "x"),
         TEXT("a", "x") "," TEXT("ignored", "x") "," TEXT("b", "****")},
        {"blocked_values: [\"abc\"], hash_function: sha1", TEXT("a", "x abc"),
         TEXT("a", "x a9993e364706816aba3e25717850c26c9cd0d89d")},
        {"blocked_values: [\"abc\"], hash_function: SHA3", TEXT("a", "abc"),
         TEXT("a", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532")},
        {"blocked_values: [\"abc\"], hash_function: md5", TEXT("a", "abc"),
         TEXT("a", "900150983cd24fb0d6963f7d28e17f72")},
        {"blocked_values: [\"abc\"], hash_function: hmac-sha256, hmac_key: " K64, TEXT("a", "abc"),
         TEXT("a", "ae0c0e4a2340cf50185eb46aaa8723f4769153661612e212fb0d1fa3170c6202")},
        {"blocked_values: [\"abc\"], hash_function: hmac-sha512, hmac_key: " K64, TEXT("a", "abc"),
         TEXT("a", "22be598dd2e4425a27eaf71925dc97ec2feb2274e363300211c16d741451004d"
                   "6888b3234fefe88410b1d50e645f6661ec931978fa3399d9c7fdf0aa905b9ac3")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[512];
        char input[1024];
        char expected[1024];
        snprintf(section, sizeof(section), "{allow_all_keys: true, %s}", rows[i].section);
        snprintf(input, sizeof(input), IN_LOG("%s"), rows[i].before);
        snprintf(expected, sizeof(expected), IN_LOG("%s"), rows[i].after);
        record_compare("redaction", section, LOGS, input, expected);
    }
    /* Go's rule: an empty match right after another is none. */
    record_compare("redaction", "{allow_all_keys: true, blocked_values: [\"x*\"]}", LOGS,
                   LOG("\"body\":{\"stringValue\":\"axb\"}"),
                   LOG("\"body\":{\"stringValue\":\"****a****b****\"}"));
}

static void a_summary_says_what_was_done(void **state)
{
    static const struct {
        const char *summary;
        const char *after;
    } rows[] = {
        {"silent", ""},
        {"info", "," NUMBER("redaction.redacted.count", "2") "," NUMBER(
                     "redaction.masked.count",
                     "2") "," NUMBER("redaction.allowed.count",
                                     "1") "," NUMBER("redaction.ignored.count", "1")},
        {"debug",
         "," TEXT("redaction.redacted.keys", "x,y") "," NUMBER(
             "redaction.redacted.count",
             "2") "," TEXT("redaction.masked.keys",
                           "m,p") "," NUMBER("redaction.masked.count",
                                             "2") "," TEXT("redaction.allowed.keys",
                                                           "a") "," NUMBER("redaction.allowed."
                                                                           "count",
                                                                           "1") "," NUMBER("redacti"
                                                                                           "on."
                                                                                           "ignored"
                                                                                           ".count",
                                                                                           "1")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[512];
        char expected[2048];
        snprintf(section, sizeof(section),
                 "{allowed_keys: [a, m, p], ignored_keys: [i], blocked_values: [\"4\"], "
                 "allowed_values: [ok], blocked_key_patterns: [p], summary: %s}",
                 rows[i].summary);
        snprintf(expected, sizeof(expected),
                 IN_LOG(TEXT("i", "4") "," TEXT("p", "****") "," TEXT("a", "ok4") "," TEXT(
                     "m", "x****") "%s"),
                 rows[i].after);
        record_compare("redaction", section, LOGS,
                       IN_LOG(TEXT("i", "4") "," TEXT("y", "1") "," TEXT("a", "ok4") "," TEXT(
                           "x", "") "," TEXT("m", "x4") "," TEXT("p", "1")),
                       expected);
    }
    /* An earlier one is added to. */
    record_compare("redaction", "{allowed_keys: [m], blocked_values: [\"4\"], summary: debug}",
                   LOGS,
                   IN_LOG(TEXT("m", "4") "," TEXT("redaction.masked.keys",
                                                  "z,b") "," NUMBER("redaction.masked.count", "2")),
                   IN_LOG(TEXT("m", "****") "," TEXT("redaction.masked.keys", "b,m,z") "," NUMBER(
                       "redaction.masked.count", "3")));
}

static void bodies_are_redacted_in_depth(void **state)
{
    static const struct {
        const char *section;
        const char *before;
        const char *after;
        const char *summary;
    } rows[] = {
        {"blocked_values: [\"4+\"]", "{\"stringValue\":\"a 44\"}", "{\"stringValue\":\"a ****\"}",
         TEXT("redaction.body.masked.keys", "body") "," NUMBER("redaction.body.masked.count", "1")},
        {"blocked_values: [\"4+\"]", "{\"intValue\":\"44\"}", "{\"stringValue\":\"****\"}",
         TEXT("redaction.body.masked.keys", "body") "," NUMBER("redaction.body.masked.count", "1")},
        {"blocked_values: [\"4+\"], allowed_values: [a]", "{\"stringValue\":\"a 44\"}",
         "{\"stringValue\":\"a 44\"}", ""},
        {"blocked_values: [\"4+\"], blocked_key_patterns: [p]",
         MAP(TEXT("k", "x4") "," TEXT("p", "1") ",{\"key\":\"l\",\"value\":" LIST(
             "{\"stringValue\":\"4\"}," MAP(NUMBER("n", "4") "," TEXT("fine", "y"))) "}"),
         MAP(TEXT("k", "x****") "," TEXT("p", "****") ",{\"key\":\"l\",\"value\":" LIST(
             "{\"stringValue\":\"****\"}," MAP(TEXT("n", "****") "," TEXT("fine", "y"))) "}"),
         TEXT("redaction.body.masked.keys",
              "k,l.[0],l.[1].n,p") "," NUMBER("redaction.body.masked.count", "4")},
        {"blocked_values: [x], ignored_keys: [i]", LIST(MAP(TEXT("i", "x") "," TEXT("b", "x"))),
         LIST(MAP(TEXT("i", "x") "," TEXT("b", "****"))),
         TEXT("redaction.body.masked.keys", "[0].b") "," NUMBER(
             "redaction.body.masked.count", "1") "," NUMBER("redaction.body.ignored.count", "1")},
        {"blocked_values: [\"^$\"]", "{}", "{\"stringValue\":\"****\"}",
         TEXT("redaction.body.masked.keys", "body") "," NUMBER("redaction.body.masked.count", "1")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int is_late = 0; is_late < 2; is_late++) {
            /* The body may come before the attributes or after them. */
            char section[512];
            char input[2048];
            char expected[2048];
            const char *comma = rows[i].summary[0] != '\0' ? "," : "";
            snprintf(section, sizeof(section), "{allow_all_keys: true, summary: debug, %s}",
                     rows[i].section);
            snprintf(input, sizeof(input),
                     is_late ? LOG("\"attributes\":[" TEXT("k", "v") "],\"body\":%s")
                             : LOG("\"body\":%s,\"attributes\":[" TEXT("k", "v") "]"),
                     rows[i].before);
            snprintf(expected, sizeof(expected),
                     LOG("\"body\":%s,\"attributes\":[" TEXT("k", "v") "%s%s]"), rows[i].after,
                     comma, rows[i].summary);
            record_compare("redaction", section, LOGS, input, expected);
        }
    record_compare(
        "redaction", "{allowed_keys: [a, m]}", LOGS,
        LOG("\"body\":" MAP(TEXT("a", "1") "," TEXT(
            "gone", "2") ",{\"key\":\"m\","
                         "\"value\":" MAP(TEXT("gone", "3") "," TEXT("a", "4")) "}")),
        LOG("\"body\":" MAP(TEXT("a", "1") ",{\"key\":\"m\",\"value\":" MAP(TEXT("a", "4")) "}")));
}

/* A decoder may merge what comes twice. */
static void of_several_values_the_last_is_left(void **state)
{
    (void)state;
    record_compare(
        "redaction", "{allow_all_keys: true, blocked_values: [x]}", LOGS,
        LOG("\"body\":" MAP("{\"key\":\"a\",\"value\":{\"stringValue\":\"x\"},\"value\":{}}")),
        LOG("\"body\":" MAP("{\"key\":\"a\",\"value\":{}}")));
}

/* Few bytes of a body have long names, and attributes may be many. */
static void a_summary_names_no_more_than_a_person_reads(void **state)
{
    enum { ATTRIBUTES = 5000, NAMED = 4096, LEAVES = 2000, KEY_BYTES = 900, OUTPUT_MAX = 300000 };
    (void)state;
    for (int is_body = 0; is_body < 2; is_body++) {
        struct harness *h = record_harness(
            "redaction", "{allow_all_keys: true, blocked_values: [x], summary: debug}", LOGS);
        char *json = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&json, &size);
        fprintf(out, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{");
        if (is_body) {
            fprintf(out, "\"body\":{\"kvlistValue\":{\"values\":[{\"key\":\"");
            for (size_t i = 0; i < KEY_BYTES; i++)
                fputc('k', out);
            fprintf(out, "\",\"value\":{\"kvlistValue\":{\"values\":[");
        } else {
            fprintf(out, "\"attributes\":[");
        }
        for (unsigned i = 0; i < (is_body ? LEAVES : ATTRIBUTES); i++)
            fprintf(out, "%s{\"key\":\"%c%u\",\"value\":{\"stringValue\":\"x\"}}", i > 0 ? "," : "",
                    'a', i);
        fprintf(out, is_body ? "]}}}]}}}]}]}]}" : "]}]}]}]}");
        fclose(out);
        record_send(h, LOGS, json);
        char *found = record_output(h, LOGS);
        char more[32];
        snprintf(more, sizeof(more), ",and %u more\"", ATTRIBUTES - NAMED);
        if (!is_body)
            assert_non_null(strstr(found, more));
        assert_non_null(strstr(found, " more\""));
        assert_non_null(strstr(found, is_body ? "\"2000\"" : "\"5000\""));
        assert_true(strlen(found) < OUTPUT_MAX);
        assert_null(strstr(found, "\"x\""));
        free(found);
        free(json);
        harness_destroy(h);
    }
}

#define SPAN(rest)                                                                                 \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{" rest         \
    ",\"status\":{}}]}]}]}"
#define QUERIES(more)                                                                              \
    "{allow_all_keys: true, db_sanitizer: {sql: {enabled: true, attributes: [q]}, "                \
    "redis: {enabled: true}" more "}}"

static void queries_in_spans_lose_their_values(void **state)
{
    static const struct {
        const char *section;
        const char *before;
        const char *after;
    } rows[] = {
        /* Attributes: those with a key of the language that the system has. */
        {QUERIES(""),
         SPAN("\"name\":\"n 1\",\"kind\":4,\"attributes\":[" TEXT("q", "a = 1") "," TEXT(
             "o", "a = 1") "," TEXT("db.system", "PostgreSQL") "]"),
         SPAN("\"name\":\"n 1\",\"kind\":4,\"attributes\":[" TEXT("q", "a = ?") "," TEXT(
             "o", "a = 1") "," TEXT("db.system", "PostgreSQL") "]")},
        /* The newer name of the system counts first. */
        {QUERIES(""),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT("q", "a = 1") "," TEXT(
             "db.system", "mysql") "," TEXT("db.system.name", "redis") "]"),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT("q", "a = 1") "," TEXT(
             "db.system", "mysql") "," TEXT("db.system.name", "redis") "]")},
        /* Events have a system of their own. */
        {QUERIES(""),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT(
             "db.system",
             "mysql") "],\"events\":[{"
                      "\"name\":\"e\",\"attributes\":[" TEXT(
                          "q", "1") "]},{\"name\":\"e\","
                                    "\"attributes\":[" TEXT("db.system",
                                                            "sqlite") "," TEXT("q", "1") "]}]"),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT(
             "db.system",
             "mysql") "],\"events\":[{"
                      "\"name\":\"e\",\"attributes\":[" TEXT(
                          "q", "1") "]},{\"name\":\"e\","
                                    "\"attributes\":[" TEXT("db.system",
                                                            "sqlite") "," TEXT("q", "?") "]}]")},
        /* Names, of the kinds internal, server and client. */
        {QUERIES(""),
         SPAN("\"name\":\"SET k v\",\"kind\":3,\"attributes\":[" TEXT("db.system", "redis") "]"),
         SPAN("\"name\":\"SET k ?\",\"kind\":3,\"attributes\":[" TEXT("db.system", "redis") "]")},
        {QUERIES(""),
         SPAN("\"name\":\"SET k v\",\"kind\":5,\"attributes\":[" TEXT("db.system", "redis") "]"),
         SPAN("\"name\":\"SET k v\",\"kind\":5,\"attributes\":[" TEXT("db.system", "redis") "]")},
        {QUERIES(", sanitize_span_name: false"),
         SPAN("\"name\":\"SET k v\",\"kind\":3,\"attributes\":[" TEXT("db.system", "redis") "]"),
         SPAN("\"name\":\"SET k v\",\"kind\":3,\"attributes\":[" TEXT("db.system", "redis") "]")},
        /* A system that is removed is not known any more when it comes to the name. */
        {"{allowed_keys: [q], db_sanitizer: {sql: {enabled: true, attributes: [q]}}}",
         SPAN("\"name\":\"n 1\",\"kind\":2,\"attributes\":[" TEXT("db.system", "mysql") "," TEXT(
             "q", "'a'") "]"),
         SPAN("\"name\":\"n 1\",\"kind\":2,\"attributes\":[" TEXT("q", "?") "]")},
        {"{allow_all_keys: true, allowed_values: [^n], db_sanitizer: {sql: {enabled: true}}}",
         SPAN("\"name\":\"n 1\",\"kind\":1,\"attributes\":[" TEXT("db.system", "mysql") "]"),
         SPAN("\"name\":\"n 1\",\"kind\":1,\"attributes\":[" TEXT("db.system", "mysql") "]")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_compare("redaction", rows[i].section, TRACES, rows[i].before, rows[i].after);
}

/* There attributes need no system, and the whole body is a query of all languages. */
static void queries_in_logs_lose_their_values(void **state)
{
    (void)state;
    record_compare("redaction", QUERIES(""), LOGS,
                   LOG("\"body\":" MAP(TEXT("a", "SET k v") "," TEXT("b", "SELECT 1") "," TEXT(
                       "c", "x")) ",\"attributes\":[" TEXT("q", "'a'") "," TEXT("o", "'a'") "]"),
                   LOG("\"body\":" MAP(TEXT("a", "SET k ?") "," TEXT("b", "SELECT ?") "," TEXT(
                       "c", "x")) ",\"attributes\":[" TEXT("q", "?") "," TEXT("o", "'a'") "]"));
    /* Values that are no strings become some. */
    record_compare(
        "redaction",
        "{allow_all_keys: true, db_sanitizer: {mongo: {enabled: true}, es: {enabled: "
        "true}}}",
        LOGS, LOG("\"body\":" LIST("{\"intValue\":\"1\"},{\"stringValue\":\"a\"}")),
        LOG("\"body\":" LIST("{\"stringValue\":\"\\\"?\\\"\"},{\"stringValue\":\"a\"}")));
    record_compare("redaction", QUERIES(", memcached: {enabled: true}"), LOGS,
                   LOG("\"body\":{\"stringValue\":\"get k\\r\\nv\"}"),
                   LOG("\"body\":{\"stringValue\":\"get k\"}"));
}

#define URLS(more)                                                                                 \
    "{allow_all_keys: true, url_sanitizer: {enabled: true, attributes: [url]}" more "}"

static void urls_in_spans_lose_their_ids(void **state)
{
    static const struct {
        const char *section;
        const char *before;
        const char *after;
    } rows[] = {
        /* Attributes with the keys, whatever the kind, and the name. */
        {URLS(""),
         SPAN("\"name\":\"GET /users/7\",\"kind\":2,\"attributes\":[" TEXT(
             "url", "/users/7?a=1") "," TEXT("o", "/users/7") "," NUMBER("url.port", "7") "]"),
         SPAN("\"name\":\"GET /users/*\",\"kind\":2,\"attributes\":[" TEXT(
             "url", "/users/*") "," TEXT("o", "/users/7") "," NUMBER("url.port", "7") "]")},
        {URLS(""), SPAN("\"name\":\"/users/7\",\"kind\":1,\"attributes\":[" TEXT("url", "/7") "]"),
         SPAN("\"name\":\"/users/7\",\"kind\":1,\"attributes\":[" TEXT("url", "/*") "]")},
        {"{allow_all_keys: true, url_sanitizer: {attributes: [url]}}",
         SPAN("\"name\":\"/users/7\",\"kind\":2,\"attributes\":[" TEXT("url", "/7") "]"),
         SPAN("\"name\":\"/users/7\",\"kind\":2,\"attributes\":[" TEXT("url", "/7") "]")},
        {"{allow_all_keys: true, url_sanitizer: {enabled: true, sanitize_span_name: false}}",
         SPAN("\"name\":\"/users/7\",\"kind\":2"), SPAN("\"name\":\"/users/7\",\"kind\":2")},
        /* Without a slash attributes that are left tell. */
        {URLS(""),
         SPAN("\"name\":\"users?a=1\",\"kind\":3,\"attributes\":[" NUMBER(
             "http.response.status_code", "200") "]"),
         SPAN("\"name\":\"users\",\"kind\":3,\"attributes\":[" NUMBER("http.response.status_code",
                                                                      "200") "]")},
        {"{url_sanitizer: {enabled: true}}",
         SPAN("\"name\":\"users?a=1\",\"kind\":3,\"attributes\":[" TEXT("http.method", "GET") "]"),
         SPAN("\"name\":\"users?a=1\",\"kind\":3")},
        {URLS(""), SPAN("\"name\":\"users?a=1\",\"kind\":3"),
         SPAN("\"name\":\"users?a=1\",\"kind\":3")},
        /* Of names something stays. */
        {URLS(""), SPAN("\"name\":\"/7/8\",\"kind\":2"), SPAN("\"name\":\"/7/8\",\"kind\":2")},
        {URLS(""), SPAN("\"name\":\"?a/\",\"kind\":2"), SPAN("\"name\":\"?a/\",\"kind\":2")},
        {URLS(", allowed_values: [^.users]"), SPAN("\"name\":\"/users/7\",\"kind\":2"),
         SPAN("\"name\":\"/users/7\",\"kind\":2")},
        /* A name is a URL or a query; an attribute is both, and patterns come first. */
        {URLS(", db_sanitizer: {sql: {enabled: true}}"),
         SPAN("\"name\":\"/a7/8/NULL\",\"kind\":2,\"attributes\":[" TEXT("db.system", "mysql") "]"),
         SPAN(
             "\"name\":\"/a7/*/NULL\",\"kind\":2,\"attributes\":[" TEXT("db.system", "mysql") "]")},
        {URLS(", db_sanitizer: {sql: {enabled: true}}"),
         SPAN("\"name\":\"/7/8\",\"kind\":2,\"attributes\":[" TEXT("db.system", "mysql") "]"),
         SPAN("\"name\":\"/?/?\",\"kind\":2,\"attributes\":[" TEXT("db.system", "mysql") "]")},
        {URLS(
             ", blocked_values: [secret], db_sanitizer: {sql: {enabled: true, attributes: [url]}}"),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT("url", "/secret/8/NULL") "," TEXT(
             "db.system", "mysql") "]"),
         SPAN("\"name\":\"n\",\"attributes\":[" TEXT("url", "/*/*/?") "," TEXT("db.system",
                                                                               "mysql") "]")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_compare("redaction", rows[i].section, TRACES, rows[i].before, rows[i].after);
}

/* There the whole body is taken for a URL, too, and all of a map's values. */
static void urls_in_logs_lose_their_ids(void **state)
{
    (void)state;
#define BODY(a, c) "\"body\":" MAP(a "," TEXT("b", "user left") "," c) ","
#define MASKED(of, keys, count)                                                                    \
    "," TEXT("redaction." of "masked.keys", keys) "," NUMBER("redaction." of "masked.count", count)
    record_compare("redaction", URLS(", summary: debug"), LOGS,
                   LOG(BODY(TEXT("a", "/users/7"), NUMBER("c", "7")) "\"attributes\":[" TEXT(
                       "url", "/7") "," TEXT("o", "/7") "]"),
                   LOG(BODY(TEXT("a", "/users/*"),
                            TEXT("c", "*")) "\"attributes\":[" TEXT("url", "/*") "," TEXT("o", "/7")
                           MASKED("", "url", "1") MASKED("body.", "a,c", "2") "]"));
    /* Without attributes of its own. */
    record_compare("redaction", "{url_sanitizer: {enabled: true}}", LOGS,
                   LOG("\"body\":{\"stringValue\":\"GET /users/7\"}"),
                   LOG("\"body\":{\"stringValue\":\"GET /users/*\"}"));
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{blocked_values: [a, (]}", "blocked_values::1: error creating a redaction processor: "
                                     "failed to process block list: error compiling regex"},
        {"{allowed_values: [(]}", "allowed_values::0: error creating a redaction processor: failed "
                                  "to process allow list"},
        {"{ignored_key_patterns: [(]}", "failed to process ignore keys list"},
        {"{blocked_key_patterns: [(]}", "failed to process block keys list"},
        {"{hash_function: sha2}",
         "hash_function: unknown HashFunction sha2, allowed functions are sha1, sha3, md5, "
         "hmac-sha256 and hmac-sha512"},
        {"{hash_function: hmac-sha256}",
         "hmac_key: hmac_key must not be empty when hash_function is \"hmac-sha256\""},
        {"{hash_function: hmac-sha512, hmac_key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk}",
         "hmac_key must be at least 64 bytes long for \"hmac-sha512\", got 32 bytes"},
        {"{url_sanitizer: {enabled: true, attribute: [url]}}", "url_sanitizer::attribute"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_refused("redaction", rows[i].section, LOGS, rows[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_values_the_last_is_left),
        cmocka_unit_test(every_attribute_goes_unless_it_is_allowed),
        cmocka_unit_test(removed_attributes_are_replaced_from_the_end),
        cmocka_unit_test(values_are_masked),
        cmocka_unit_test(a_summary_says_what_was_done),
        cmocka_unit_test(bodies_are_redacted_in_depth),
        cmocka_unit_test(a_summary_names_no_more_than_a_person_reads),
        cmocka_unit_test(queries_in_spans_lose_their_values),
        cmocka_unit_test(queries_in_logs_lose_their_values),
        cmocka_unit_test(urls_in_spans_lose_their_ids),
        cmocka_unit_test(urls_in_logs_lose_their_ids),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
