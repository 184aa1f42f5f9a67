/* SPDX-License-Identifier: Apache-2.0 */
/* What transform has for logs alone, from YAML to JSON: converters of log formats. Expected is what
 * the Go collector gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/signal_kind.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/record_case.h"

enum { SECTION_MAX = 1024, JSON_MAX = 4096 };

#define LOGS_OF(record)                                                                            \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[" record     \
    "]}]}]}"
#define BODY               "{\"body\":{\"stringValue\":\"%s\"}}"
#define TEXT(key, value)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

struct row {
    const char *call;
    const char *body;     /* as JSON has it */
    const char *expected; /* entries; NULL: it fails, and the body stays */
};

static void compare(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char section[SECTION_MAX];
        char given[JSON_MAX];
        char expected[JSON_MAX];
        snprintf(section, sizeof(section),
                 "{log_statements: [{context: log, statements: ['set(body, %s)']}]}", rows[i].call);
        snprintf(given, sizeof(given), LOGS_OF(BODY), rows[i].body);
        if (rows[i].expected != NULL)
            snprintf(expected, sizeof(expected),
                     LOGS_OF("{\"body\":{\"kvlistValue\":{\"values\":[%s]}}}"), rows[i].expected);
        record_compare("transform", section, LOGS, given,
                       rows[i].expected != NULL ? expected : given);
    }
}

#define COMPARE(rows) compare(rows, sizeof(rows) / sizeof((rows)[0]))

#define CLF(host, user, time)                                                                      \
    TEXT("clf.remote_host", host)                                                                  \
    "," TEXT("clf.rfc931", "-") "," TEXT("clf.auth_user", user) "," TEXT("clf.timestamp", time) ","

/* clang-format off */
static void lines_of_web_servers_are_read(void **state)
{
    static const struct row rows[] = {
        {"ParseCLF(body)",
         " 127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \\\"GET /a b HTTP/1.0\\\" 200 2326\\n",
         CLF("127.0.0.1", "frank", "10/Oct/2000:13:55:36 -0700")
             TEXT("clf.request", "GET /a b HTTP/1.0") "," TEXT("clf.method", "GET") ","
             TEXT("clf.request_uri", "/a") "," TEXT("clf.protocol", "b HTTP/1.0") ","
             NUMBER("clf.status", "200") "," NUMBER("clf.bytes", "2326")},
        {"ParseCLF(body, \"combined\")",
         "h - - [t] \\\"a \\\\\\\"\\\\x41\\\\x4g\\\\q\\\" -1 - \\\"\\\" \\\"x\\\\ty\\\"",
         CLF("h", "-", "t") TEXT("clf.request", "a \\\"A\\\\x4g\\\\q") ","
             NUMBER("clf.status", "-1") "," TEXT("clf.referer", "") ","
             TEXT("clf.user_agent", "x\\ty")},
        {"ParseCLF(body)", "h - - [t] \\\"\\\" 200 5 more", NULL},
        {"ParseCLF(body)", "h - - [] \\\"\\\" 200 5", NULL},
        {"ParseCLF(body)", "h - - [t] \\\"\\\\\\n\\\" 200 5", NULL},
        {"ParseCLF(body)", "h - - [t] \\\"\\\\", NULL},
        {"ParseCLF(body)", "h - - [t] \\\"\\\" OK 5", NULL},
        {"ParseCLF(body)", "h - - [t] \\\"\\\" 200 5k", NULL},
        {"ParseCLF(body)", "", NULL},
    };
    (void)state;
    COMPARE(rows);
}

/* clang-format on */

#define LEEF(version, event, attributes)                                                           \
    TEXT("leef.version", version)                                                                  \
    "," TEXT("leef.vendor", "V") "," TEXT("leef.product.name", "P") "," TEXT(                      \
        "leef.product.version", "1") "," TEXT("leef.event.id",                                     \
                                              event) ","                                           \
                                                     "{\"key\":\"leef.attributes\",\"value\":{"    \
                                                     "\"kvlistValue\":{" attributes "}}}"
#define VALUES(values) "\"values\":[" values "]"

static void log_event_extended_format_is_read(void **state)
{
    static const struct row rows[] = {
        {"ParseLEEF(body)",
         "<13>Jan 1 host LEEF:1.0|V|P|1|e|src=10.0.0.1\\tx\\t=y\\tdst= b|c \\tsrc=2",
         LEEF("1.0", "e", VALUES(TEXT("src", "2") "," TEXT("dst", " b|c ")))},
        {"ParseLEEF(body)", "LEEF:1.0|V|P|1|e", LEEF("1.0", "e", "")},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|^|a=1^b=2=3",
         LEEF("2.0", "e", VALUES(TEXT("a", "1") "," TEXT("b", "2=3")))},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|0x7C|a=1|b=2",
         LEEF("2.0", "e", VALUES(TEXT("a", "1") "," TEXT("b", "2")))},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e||a=1\\tb=2",
         LEEF("2.0", "e", VALUES(TEXT("a", "1") "," TEXT("b", "2")))},
        /* Without a delimiter. */
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|a=1|x\\tb=2",
         LEEF("2.0", "e", VALUES(TEXT("a", "1|x") "," TEXT("b", "2")))},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e", LEEF("2.0", "e", "")},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|ab|a=1", NULL},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|0x|a=1", NULL},
        {"ParseLEEF(body)", "LEEF:2.0|V|P|1|e|0x0g|a=1", NULL},
        {"ParseLEEF(body)", "LEEF:3.0|V|P|1|e|a=1", NULL},
        {"ParseLEEF(body)", "LEEF:1.0|V|P|1", NULL},
        {"ParseLEEF(body)", "LEEF:1.0", NULL},
        {"ParseLEEF(body)", "leef:1.0|V|P|1|e|a=1", NULL},
        {"ParseLEEF(body)", "", NULL},
    };
    (void)state;
    COMPARE(rows);
}

static void formats_are_checked(void **state)
{
    (void)state;
    record_refused("transform", "{log_statements: ['set(log.body, ParseCLF(log.body, \"x\"))']}",
                   LOGS, "invalid format \"x\": must be \"clf\" or \"combined\"");
    record_refused("filter", "{log_conditions: ['ParseLEEF(log.body) != nil']}", LOGS, "ParseLEEF");
    record_refused("transform", "{trace_statements: ['set(span.name, ParseCLF(span.name))']}",
                   TRACES, "ParseCLF");
}

#define RECORD(text, attribute)                                                                    \
    "{\"severityText\":\"" text "\",\"body\":{},\"attributes\":[{\"key\":\"from\",\"value\":{"     \
    "\"stringValue\":\"" attribute "\"}}]}"
#define SCOPE(name, records) "{\"scope\":{\"name\":\"" name "\"},\"logRecords\":[" records "]}"
#define RESOURCE(attributes, scopes)                                                               \
    "{\"resource\":{\"attributes\":[" attributes "]},\"scopeLogs\":[" scopes                       \
    "],\"schemaUrl\":\"u\"}"
#define REQUEST(resources) "{\"resourceLogs\":[" resources "]}"
#define HOST(value)        "{\"key\":\"host\",\"value\":{\"stringValue\":\"" value "\"}}"
#define TO(value)          "{\"key\":\"to\",\"value\":{\"stringValue\":\"" value "\"}}"

static void flattened_records_do_not_share_their_resource(void **state)
{
    static const struct {
        const char *statements;
        const char *given;
        const char *expected;
    } rows[] = {
        /* Without flatten_data the last record's attribute would be that of all. */
        {"'set(resource.attributes[\"to\"], log.attributes[\"from\"])'",
         REQUEST(RESOURCE(HOST("h"), SCOPE("s", RECORD("1", "x") "," RECORD("2", "y")) "," SCOPE(
                                         "t", RECORD("3", "x")))),
         REQUEST(RESOURCE(HOST("h") "," TO("x"),
                          SCOPE("s", RECORD("1", "x")) "," SCOPE(
                              "t", RECORD("3", "x"))) "," RESOURCE(HOST("h") "," TO("y"),
                                                                   SCOPE("s", RECORD("2", "y"))))},
        {"'set(scope.name, log.severity_text)'",
         REQUEST(RESOURCE(HOST("h"),
                          SCOPE("s", RECORD("a", "1") "," RECORD("b", "2") "," RECORD("a", "3")))),
         REQUEST(RESOURCE(HOST("h"), SCOPE("a", RECORD("a", "1") "," RECORD("a", "3")) "," SCOPE(
                                         "b", RECORD("b", "2"))))},
        /* Equal ones come together, in the order of the first; empty ones go. */
        {"'set(log.attributes[\"from\"], \"x\")'",
         REQUEST(RESOURCE(HOST("h"), SCOPE("s", RECORD("1", "x"))) "," RESOURCE(
             HOST("i"),
             SCOPE("s",
                   RECORD("2", "x"))) "," RESOURCE(HOST("h"),
                                                   SCOPE("s",
                                                         RECORD("3", "x"))) "," RESOURCE(HOST("j"),
                                                                                         "")),
         REQUEST(
             RESOURCE(HOST("h"), SCOPE("s", RECORD("1", "x") "," RECORD("3", "x"))) "," RESOURCE(
                 HOST("i"), SCOPE("s", RECORD("2", "x"))))},
        {"", REQUEST(RESOURCE(HOST("h"), "")), ""},
    };
    (void)state;
    harness_set_gates("transform.flatten.logs");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char section[SECTION_MAX];
        snprintf(section, sizeof(section), "{flatten_data: true, log_statements: [%s]}",
                 rows[i].statements);
        record_compare("transform", section, LOGS, rows[i].given, rows[i].expected);
    }
    harness_set_gates(NULL);
    record_refused("transform", "{flatten_data: true}", LOGS,
                   "flatten_data: 'flatten_data' requires the 'transform.flatten.logs'");
}

/* A large Resource of many small records would be repeated for each of them. */
static void flattening_is_bounded(void **state)
{
    enum { RECORDS = 3000, HOST_BYTES = 4096 };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    fprintf(out,
            "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"host\",\"value\":{"
            "\"stringValue\":\"%0*d\"}}]},\"scopeLogs\":[{\"logRecords\":[{}",
            HOST_BYTES, 0);
    for (size_t i = 1; i < RECORDS; i++)
        fputs(",{}", out);
    fputs("]}]}]}", out);
    fclose(out);
    harness_set_gates("transform.flatten.logs");
    struct harness *h = record_harness("transform", "{flatten_data: true}", LOGS);
    const struct test_request *request = record_send(h, LOGS, text);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, REFUSED);
    harness_destroy(h);
    harness_set_gates(NULL);
    free(text);
}

/* Of what batch has acknowledged: it would be lost otherwise. */
static void acknowledged_records_may_be_flattened_in_the_margin(void **state)
{
    enum { EXCESS_KIB = 16 };
    (void)state;
    harness_set_gates("transform.flatten.logs");
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s}, transform: {flatten_data: true, log_statements: "
        "['set(log.severity_text, \"x\")']}}\nexporters: {test: {sending_queue: {enabled: "
        "false}}}\nservice: {budget_mib: 8, pipelines: {logs: {receivers: [test], processors: "
        "[batch, transform], exporters: [test]}}}\n");
    struct budget *budget = &h->service->budget;
    harness_exporter_on(h, "test", 0, LOGS)->has_own_items = true;
    const char *json = REQUEST(RESOURCE(HOST("h"), SCOPE("s", RECORD("1", "x"))));
    assert_int_equal(record_send(h, LOGS, json)->outcome.verdict, ACCEPTED);
    const uint64_t others = budget_limit(budget) - budget_used(budget) + (EXCESS_KIB << 10);
    budget_take(budget, others);
    harness_advance(h, 2 * DOWNSTREAM_SHUT_IN_MAX_NS);
    budget_return(budget, others);
    assert_int_equal(harness_totals(h, LOGS).dropped, 0);
    assert_int_equal(harness_totals(h, LOGS).delivered, 1);
    harness_destroy(h);
    harness_set_gates(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_web_servers_are_read),
        cmocka_unit_test(log_event_extended_format_is_read),
        cmocka_unit_test(formats_are_checked),
        cmocka_unit_test(flattened_records_do_not_share_their_resource),
        cmocka_unit_test(flattening_is_bounded),
        cmocka_unit_test(acknowledged_records_may_be_flattened_in_the_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
