/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions: reading and counting them, writing the counts, and writing log records. */
#include <assert.h>
#include <stdlib.h>

#include "connectors/exceptions/exception_logs.h"
#include "connectors/exceptions/exception_reader.h"
#include "connectors/exceptions/exception_series.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { SPAN_ATTRIBUTES = 9, EVENTS = 11, MAP_VALUE = 6 };

static void put_event(struct profile_bytes *out, const char *name, const char *type)
{
    size_t begin = out->size;
    put_text(out, 2, name);
    if (type != NULL)
        put_attribute(out, 3, "exception.type", type);
    profile_bytes_wrap(out, begin, EVENTS);
}

/* What is written since `begin` becomes a span. */
static void end_span(struct profile_bytes *out, size_t begin)
{
    put_bytes(out, 1, "0123456789abcdef", 16);
    put_bytes(out, 2, "01234567", 8);
    put_text(out, 5, "n");
    profile_bytes_wrap(out, begin, 2);
}

/* What is written since `begin` becomes the scope of a resource. */
static struct slice end_request(struct profile_bytes *out)
{
    profile_bytes_wrap(out, 0, 2);
    size_t resource = out->size;
    put_attribute(out, 1, "service.name", "a");
    profile_bytes_wrap(out, resource, 1);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice spans_of_one_exception(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_event(&out, "exception", "IOError");
        end_span(&out, begin);
    }
    return end_request(&out);
}

static struct slice a_span_of_many_exceptions(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exception", NULL);
    end_span(&out, 0);
    return end_request(&out);
}

static struct slice a_type_for_each(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exception", name_of(name, i));
    end_span(&out, 0);
    return end_request(&out);
}

/* Each record repeats them: the result ends at a multiple of the request. */
static struct slice many_attributes_and_exceptions(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, SPAN_ATTRIBUTES, name_of(name, i), "x");
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exception", NULL);
    end_span(&out, 0);
    return end_request(&out);
}

/* Of the span and of its resource, for each exception. */
static struct slice wide_values_and_exceptions(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exception", NULL);
    put_map_attribute(&out, SPAN_ATTRIBUTES, "exception.message", n);
    end_span(&out, 0);
    profile_bytes_wrap(&out, 0, 2);
    size_t resource = out.size;
    put_attribute(&out, 1, "service.name", "a");
    put_map_attribute(&out, 1, "exception.type", n);
    profile_bytes_wrap(&out, resource, 1);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

/* A key again and again in the attribute, which log records have replaced. */
static struct slice a_replaced_attribute_and_exceptions(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exception", NULL);
    size_t attribute = out.size;
    for (size_t i = 0; i < 8 * n; i++)
        put_text(&out, 1, "exception.message");
    profile_bytes_wrap(&out, attribute, SPAN_ATTRIBUTES);
    end_span(&out, 0);
    return end_request(&out);
}

static struct slice other_events(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_event(&out, "exceptiom", NULL);
    end_span(&out, 0);
    return end_request(&out);
}

static struct slice equal_attributes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, SPAN_ATTRIBUTES, "exception.type", "x");
    put_event(&out, "exception", NULL);
    end_span(&out, 0);
    return end_request(&out);
}

static struct slice a_wide_stack_trace(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t event = out.size;
    put_text(&out, 2, "exception");
    size_t attribute = out.size;
    put_text(&out, 1, "exception.stacktrace");
    size_t map = out.size;
    for (size_t i = n; i > 0; i--)
        put_attribute(&out, 1, name_of(name, i), "\x01<");
    profile_bytes_wrap(&out, map, MAP_VALUE);
    profile_bytes_wrap(&out, map, 2);
    profile_bytes_wrap(&out, attribute, 3);
    profile_bytes_wrap(&out, event, EVENTS);
    end_span(&out, 0);
    return end_request(&out);
}

static struct slice many_scopes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t scope = out.size;
        size_t begin = out.size;
        put_event(&out, "exception", NULL);
        end_span(&out, begin);
        profile_bytes_wrap(&out, scope, 2);
    }
    size_t resource = out.size;
    put_attribute(&out, 1, "service.name", "a");
    profile_bytes_wrap(&out, resource, 1);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape shapes[] = {
    {"spans of one exception", spans_of_one_exception},
    {"a span of many exceptions", a_span_of_many_exceptions},
    {"a type for each", a_type_for_each},
    {"many attributes and exceptions", many_attributes_and_exceptions},
    {"wide values and exceptions", wide_values_and_exceptions},
    {"a replaced attribute and exceptions", a_replaced_attribute_and_exceptions},
    {"other events", other_events},
    {"equal attributes", equal_attributes},
    {"a wide stack trace", a_wide_stack_trace},
    {"many scopes", many_scopes},
};

struct counted {
    struct exception_store store;
    struct exception_keys keys;
    struct exception_bench bench;
    struct budget budget;
};

static void count(void *arg, const struct exception *exception)
{
    struct counted *counted = arg;
    struct exception_point point;
    bool is_counted =
        exception_point_make(&counted->store, &counted->keys, exception, &counted->bench, &point) &&
        exception_store_add(&counted->store, &point);
    assert(is_counted);
}

static void init(struct counted *counted)
{
    budget_init(&counted->budget, UINT64_MAX);
    exception_store_init(&counted->store, 0, true, &counted->budget);
    exception_keys_init(&counted->keys);
    bool is_added = exception_keys_add(&counted->keys, "exception.type", NULL) &&
                    exception_keys_add(&counted->keys, "exception.message", NULL);
    assert(is_added);
    exception_bench_init(&counted->bench, &counted->budget);
}

static void run_counting(struct slice request, bool writes)
{
    struct counted counted;
    struct exception_reader reader;
    struct batch *batch = message_batch(TRACES, request);
    struct batch *written;
    size_t at = 0;
    init(&counted);
    exception_reader_init(&reader, &counted.keys, &counted.budget);
    reader.take = count;
    reader.arg = &counted;
    if (!writes)
        work_begin();
    uint64_t unread = exception_reader_read(&reader, batch);
    assert(unread == 0);
    if (writes)
        work_begin();
    while (writes && exception_store_write(&counted.store, 1, &at, &written) == PIECE_WRITTEN) {
        work_produced(written->bytes);
        batch_unref(written);
    }
    work_end();
    batch_unref(batch);
    exception_bench_fini(&counted.bench);
    exception_store_clear(&counted.store);
    budget_fini(&counted.budget);
}

static void run_count(struct slice request)
{
    run_counting(request, false);
}

static void run_write(struct slice request)
{
    run_counting(request, true);
}

static void run_logs(struct slice request)
{
    struct counted counted;
    struct exception_logs logs;
    struct batch *batch = message_batch(TRACES, request);
    init(&counted);
    work_begin();
    exception_logs_make(&logs, &counted.keys, batch, &counted.budget);
    work_end();
    for (size_t i = 0; i < logs.batches_count; i++)
        work_produced(logs.batches[i]->bytes);
    exception_logs_fini(&logs);
    batch_unref(batch);
    exception_bench_fini(&counted.bench);
    exception_store_clear(&counted.store);
    budget_fini(&counted.budget);
}

static const struct work_stage stages[] = {
    {.name = "counting exceptions", .run = run_count, .per_byte_max = 140},
    {.name = "metrics of exceptions", .run = run_write, .per_byte_max = 3},
    {.name = "logs of exceptions", .run = run_logs, .per_byte_max = 18},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
