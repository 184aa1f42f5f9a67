/* SPDX-License-Identifier: Apache-2.0 */
/* OTTL where statements of inner records look at outer ones: both the bytes of the outer record and
 * the number of inner ones grow. */
#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_runner.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

/* ---- Spans of a Resource ---- */

enum { SPANS = 2, RESOURCE = 1, SPAN_ATTRIBUTES = 9, RESOURCE_ATTRIBUTES = 1 };

/* Ends the Resource that has been written, and gives it n spans, each with an attribute whose value
 * is the name of one of its keys. */
static struct slice spans_done(struct profile_bytes *out, size_t n)
{
    char name[32];
    profile_bytes_wrap(out, 0, RESOURCE);
    size_t scope = out->size;
    for (size_t i = 0; i < n; i++) {
        size_t begin = out->size;
        put_attribute(out, SPAN_ATTRIBUTES, "a", name_of(name, i));
        profile_bytes_wrap(out, begin, SPANS);
    }
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice many_keys(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, name_of(name, i), "v");
    return spans_done(&out, n);
}

static struct slice one_key(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, "k", "v");
    return spans_done(&out, n);
}

/* Of two keys that are deleted, and one that is not. */
static struct slice mixed_keys(size_t n)
{
    static const char *const keys[] = {"k", "x", "l", "k", "l", "x"};
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, RESOURCE_ATTRIBUTES, keys[i % 6], "v");
    return spans_done(&out, n);
}

/* The same keys in an attribute's map. */
static struct slice map_of_keys(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    put_text(&out, 1, "m");
    size_t value = out.size;
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, name_of(name, i), "v");
    profile_bytes_wrap(&out, value, 6);
    profile_bytes_wrap(&out, value, 2);
    profile_bytes_wrap(&out, 0, RESOURCE_ATTRIBUTES);
    return spans_done(&out, n);
}

static const struct work_shape span_shapes[] = {
    {"many keys", many_keys},
    {"one key", one_key},
    {"mixed keys", mixed_keys},
    {"a map of keys", map_of_keys},
};

/* ---- Stages ---- */

static void run(struct slice input, enum signal_kind signal, enum ottl_context context,
                const char *const *statements, size_t count)
{
    struct error error;
    struct ottl_runner runner;
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_TRANSFORM);
    struct ottl_group group = {.context = context,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_SILENT,
                               .statements = statements,
                               .statements_count = count};
    struct batch *batch = message_batch(signal, input);
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    work_begin();
    struct ottl_result result = ottl_runner_run(&runner, batch);
    work_end();
    assert(result.verdict == OTTL_PASSED);
    work_produced(result.batch->bytes);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define STAGE(name, signal, context, ...)                                                          \
    static void run_##name(struct slice input)                                                     \
    {                                                                                              \
        static const char *const statements[] = {__VA_ARGS__};                                     \
        run(input, signal, context, statements, COUNT_OF(statements));                             \
    }

STAGE(removed, TRACES, OTTL_SPAN, "delete_key(resource.attributes, \"k\")",
      "delete_key(resource.attributes, \"l\")")
STAGE(removed_by_name, TRACES, OTTL_SPAN, "delete_key(resource.attributes, attributes[\"a\"])")
STAGE(removed_from_map, TRACES, OTTL_SPAN,
      "delete_key(resource.attributes[\"m\"], attributes[\"a\"])")

static const struct work_stage span_stages[] = {
    {.name = "delete keys", .run = run_removed, .per_byte_max = 20},
    {.name = "delete keys by name", .run = run_removed_by_name, .per_byte_max = 20},
    {.name = "delete keys from a map", .run = run_removed_from_map, .per_byte_max = 20},
};

int main(int argc, char **argv)
{
    return work_check(span_stages, COUNT_OF(span_stages), span_shapes, COUNT_OF(span_shapes), argc,
                      argv) > 0;
}
