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

#include "src/base/signal_kind.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_web_servers_are_read),
        cmocka_unit_test(log_event_extended_format_is_read),
        cmocka_unit_test(formats_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
