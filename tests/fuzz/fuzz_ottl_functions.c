/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that read text, on any text as the attribute "a" of a span: byte 0 is the statement. A
 * statement that does not fail leaves a well-formed request. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_runner.h"
#include "tests/support/random_otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SET(value) "set(attributes[\"o\"], " value ")"

static const char *const statements[] = {
    SET("ParseJSON(attributes[\"a\"])"),
    SET("ParseKeyValue(attributes[\"a\"])"),
    SET("ParseKeyValue(attributes[\"a\"], \"::\", \", \")"),
    SET("ParseCSV(attributes[\"a\"], \"x,y,z\")"),
    SET("ParseCSV(attributes[\"a\"], \"x,y\", \";\", \",\", \"lazyQuotes\")"),
    SET("ParseCSV(attributes[\"a\"], attributes[\"a\"], mode=\"ignoreQuotes\")"),
    SET("UnixNano(Time(attributes[\"a\"], \"%Y-%m-%dT%H:%M:%S.%L%z\"))"),
    SET("UnixNano(Time(attributes[\"a\"], \"%b %e %H:%M:%S\", \"Europe/Berlin\"))"),
    SET("FormatTime(Time(attributes[\"a\"], \"%c %Z\"), \"%A %d %B %Y %r %Z %k\")"),
    SET("UnixNano(Time(attributes[\"a\"], \"%D%t%l%P%j\"))"),
    SET("Seconds(Duration(attributes[\"a\"]))"),
    SET("ParseInt(attributes[\"a\"], 0)"),
    SET("ExtractPatterns(attributes[\"a\"], \"(?P<x>[a-z]+)(?P<y>.*)\")"),
    SET("Base64Decode(attributes[\"a\"])"),
    SET("Decode(attributes[\"a\"], \"utf-16\")"),
    SET("Decode(attributes[\"a\"], \"utf-8\")"),
    SET("Split(attributes[\"a\"], \"\")"),
    SET("ToSnakeCase(Trim(attributes[\"a\"], \"x\xc3\xa9\"))"),
    SET("ToCamelCase(ToUpperCase(attributes[\"a\"]))"),
    SET("ToKeyValueString(attributes)"),
    SET("IsValidLuhn(attributes[\"a\"])"),
    "replace_match(attributes[\"a\"], attributes[\"a\"], \"x\")",
    "replace_pattern(attributes[\"a\"], \"(a|b)*\", \"[$1]\")",
    "replace_pattern(attributes[\"a\"], \"a\", attributes[\"a\"])",
    "replace_all_patterns(attributes, \"value\", \"\", \"-\")",
    "truncate_all(attributes, 3)",
};
enum { STATEMENTS = sizeof(statements) / sizeof(statements[0]) };

/* Fields 1 that hold fields 2 that hold fields 2: spans. */
static struct buffer *request_of(struct slice text)
{
    enum { ATTRIBUTES = 9, KEY = 1, VALUE = 2, TEXT = 1, SPANS = 2, SCOPES = 2, RESOURCES = 1 };
    size_t value = wire_field_size(TEXT, text.size);
    size_t attribute = wire_field_size(KEY, 1) + wire_field_size(VALUE, value);
    size_t span = wire_field_size(ATTRIBUTES, attribute);
    size_t scope = wire_field_size(SPANS, span);
    size_t resource = wire_field_size(SCOPES, scope);
    size_t whole = wire_field_size(RESOURCES, resource);
    struct buffer *request = buffer_create(NULL, whole);
    struct wire_writer writer = wire_writer_of(request->data, whole);
    wire_write_header(&writer, RESOURCES, resource);
    wire_write_header(&writer, SCOPES, scope);
    wire_write_header(&writer, SPANS, span);
    wire_write_header(&writer, ATTRIBUTES, attribute);
    wire_write_bytes(&writer, KEY, slice_of_text("a"));
    wire_write_header(&writer, VALUE, value);
    wire_write_bytes(&writer, TEXT, text);
    request->size = whole;
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct otlp_figures figures;
    const char *reason;
    struct ottl_runner runner;
    if (size == 0)
        return 0;
    const char *statement = statements[data[0] % STATEMENTS];
    struct ottl_group group = {.context = OTTL_SPAN,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_PROPAGATE,
                               .statements = &statement,
                               .statements_count = 1};
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_TRANSFORM);
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    struct buffer *request = request_of(slice_of(data + 1, size - 1));
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = 1;
    ottl_runner_init(&runner, plan, NULL);
    struct ottl_result result = ottl_runner_run(&runner, batch);
    if (result.verdict == OTTL_PASSED) {
        struct slice bytes = joined_parts(result.batch);
        is_fine = otlp_check(TRACES, bytes, &figures, &reason);
        assert(is_fine);
        assert(figures.items == 1);
        mem_free((void *)(uintptr_t)bytes.data);
    } else {
        assert(runner.run.error[0] != '\0');
    }
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
    buffer_unref(request);
    return 0;
}
