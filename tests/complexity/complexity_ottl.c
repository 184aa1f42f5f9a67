/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of OTTL that read or make text, maps and lists, given texts as the attribute "a". */
#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_runner.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

/* The text is valid for some of the functions; the others fail early or late. */
static struct slice json_names(size_t n)
{
    return numbered("{\"x\":0", ",\"", n, "\":[1.5,\"\\u00e9\"]", "}");
}

static struct slice json_equal_names(size_t n)
{
    return repeat("{\"x\":0", ",\"name of an entry\":{\"y\":null}", n, "}");
}

static struct slice pairs(size_t n)
{
    return numbered("", "", n, "=\"some value\" ", "");
}

static struct slice rows(size_t n)
{
    return repeat("", "a,\"b\"\"c\",d\n", n, "");
}

static struct slice quotes(size_t n)
{
    return repeat("", "\"'a\\", n, "");
}

static struct slice words(size_t n)
{
    return repeat("", "someWord_2 \xc3\xa9. ", n, "");
}

static struct slice query(size_t n)
{
    return numbered("?", "&", n, "=%41+b", "");
}

static struct slice digits(size_t n)
{
    return repeat("", "4539148803436467", n, "");
}

static const struct work_shape shapes[] = {
    {"JSON names", json_names}, {"equal JSON names", json_equal_names},
    {"pairs", pairs},           {"rows", rows},
    {"quotes", quotes},         {"words", words},
    {"a query", query},         {"digits", digits},
};

/* Fields 1 that hold fields 2 that hold fields 2: a span. */
static struct batch *span_of(struct slice text)
{
    enum { ATTRIBUTES = 9, KEY = 1, VALUE = 2, TEXT = 1 };
    struct profile_bytes out = {.data = NULL};
    size_t begin = out.size;
    put_text(&out, KEY, "a");
    size_t value = out.size;
    put_bytes(&out, TEXT, text.data, text.size);
    profile_bytes_wrap(&out, value, VALUE);
    profile_bytes_wrap(&out, begin, ATTRIBUTES);
    profile_bytes_wrap(&out, begin, 2);
    profile_bytes_wrap(&out, begin, 2);
    profile_bytes_wrap(&out, begin, 1);
    struct batch *batch = batch_create(TRACES, 1);
    struct buffer *buffer = buffer_create(NULL, out.size);
    memcpy(buffer->data, out.data, out.size);
    buffer->size = out.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = 1;
    buffer_unref(buffer);
    mem_free((void *)(uintptr_t)message_done(&out).data);
    return batch;
}

static void run(struct slice input, const char *statement)
{
    struct error error;
    struct ottl_runner runner;
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_TRANSFORM);
    struct ottl_group group = {.context = OTTL_SPAN,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_SILENT,
                               .statements = &statement,
                               .statements_count = 1};
    struct batch *batch = span_of(input);
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    work_begin();
    struct ottl_result result = ottl_runner_run(&runner, batch);
    work_end();
    for (size_t i = 0; i < result.batch->parts_count; i++)
        work_produced(result.batch->parts[i].bytes.size);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

#define A          "attributes[\"a\"]"
#define SET(value) "set(attributes[\"o\"], " value ")"
#define STAGE(name, statement)                                                                     \
    static void run_##name(struct slice input)                                                     \
    {                                                                                              \
        run(input, statement);                                                                     \
    }

STAGE(json, SET("ParseJSON(" A ")"))
STAGE(json_again, SET("String(ParseJSON(" A "))"))
STAGE(flatten, "merge_maps(attributes, {\"j\": ParseJSON(" A ")}, \"upsert\")")
STAGE(key_value, SET("ParseKeyValue(" A ")"))
STAGE(csv, SET("ParseCSV(" A ", \"x,y,z\", mode=\"lazyQuotes\")"))
STAGE(split, SET("Sort(Split(" A ", \" \"))"))
STAGE(slice_to_map, SET("SliceToMap(Split(" A ", \",\"))"))
STAGE(case, SET("ToSnakeCase(ToCamelCase(ToUpperCase(" A ")))"))
STAGE(trim, SET("Trim(" A ", \"4539s\")"))
STAGE(url, SET("URL(" A ")"))
STAGE(luhn, SET("IsValidLuhn(" A ")"))
STAGE(patterns, "replace_pattern(" A ", \"[a-z]+\", \"<$0>\")")
STAGE(keys, "replace_all_patterns(attributes, \"value\", \"\", \"-\")")
STAGE(base64, SET("Base64Decode(Base64Encode(" A "))"))
STAGE(format, SET("Format(\"%q %x\", [" A ", " A "])"))

static const struct work_stage stages[] = {
    {.name = "ParseJSON", .run = run_json, .per_byte_max = 10},
    {.name = "ParseJSON and String", .run = run_json_again, .per_byte_max = 24},
    {.name = "ParseJSON into a map", .run = run_flatten, .per_byte_max = 11},
    {.name = "ParseKeyValue", .run = run_key_value, .per_byte_max = 9},
    {.name = "ParseCSV", .run = run_csv, .per_byte_max = 8},
    {.name = "Split and Sort", .run = run_split, .per_byte_max = 14},
    {.name = "Split and SliceToMap", .run = run_slice_to_map, .per_byte_max = 13},
    {.name = "cases", .run = run_case, .per_byte_max = 11},
    {.name = "Trim", .run = run_trim, .per_byte_max = 2},
    {.name = "URL", .run = run_url, .per_byte_max = 11},
    {.name = "IsValidLuhn", .run = run_luhn, .per_byte_max = 4},
    {.name = "replace_pattern", .run = run_patterns, .per_byte_max = 5},
    {.name = "replace_all_patterns", .run = run_keys, .per_byte_max = 10},
    {.name = "base64", .run = run_base64, .per_byte_max = 9},
    {.name = "Format", .run = run_format, .per_byte_max = 9},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
