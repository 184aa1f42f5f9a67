/* SPDX-License-Identifier: Apache-2.0 */
/* count: counting spans and their events by conditions and attributes, and writing the counts. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connectors/count/count_tally.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { SPAN_ATTRIBUTES = 9, EVENTS = 11 };

static void end_span(struct profile_bytes *out, size_t begin)
{
    put_bytes(out, 1, "0123456789abcdef", 16);
    put_text(out, 5, "n");
    profile_bytes_wrap(out, begin, 2);
}

static struct slice end_request(struct profile_bytes *out, const char *host)
{
    profile_bytes_wrap(out, 0, 2);
    size_t resource = out->size;
    put_attribute(out, 1, "host", host);
    profile_bytes_wrap(out, resource, 1);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice equal_spans(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_attribute(&out, SPAN_ATTRIBUTES, "tag", "a");
        end_span(&out, begin);
    }
    return end_request(&out, "a");
}

static struct slice a_series_for_each(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        char text[24];
        size_t begin = out.size;
        snprintf(text, sizeof(text), "%zu", i);
        put_attribute(&out, SPAN_ATTRIBUTES, "tag", text);
        end_span(&out, begin);
    }
    return end_request(&out, "a");
}

/* The wide value belongs to all spans. */
static struct slice a_wide_resource(size_t n)
{
    struct profile_bytes out = {0};
    char *host = mem_zalloc(20 * n + 1);
    memset(host, 'h', 20 * n);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_attribute(&out, SPAN_ATTRIBUTES, "tag", i % 2 == 0 ? "a" : "b");
        end_span(&out, begin);
    }
    struct slice request = end_request(&out, host);
    mem_free(host);
    return request;
}

static struct slice many_attributes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof(text), "k%zu", i);
        put_attribute(&out, SPAN_ATTRIBUTES, text, "v");
    }
    end_span(&out, 0);
    return end_request(&out, "a");
}

static struct slice many_events(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_text(&out, 2, "e");
        put_attribute(&out, 3, "tag", "a");
        profile_bytes_wrap(&out, begin, EVENTS);
    }
    end_span(&out, 0);
    return end_request(&out, "a");
}

static struct slice many_resources(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_attribute(&out, SPAN_ATTRIBUTES, "tag", "a");
        put_text(&out, 5, "n");
        profile_bytes_wrap(&out, begin, 2);
        profile_bytes_wrap(&out, begin, 2);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

static const struct work_shape shapes[] = {
    {"equal spans", equal_spans},         {"a series for each", a_series_for_each},
    {"a wide resource", a_wide_resource}, {"many attributes", many_attributes},
    {"many events", many_events},         {"many resources", many_resources},
};

static void run_count(struct slice request)
{
    static const char *const conditions[] = {"name == \"n\"", "attributes[\"k7\"] != nil"};
    struct count_key_config keys[] = {{.name = "tag"}, {.name = "host"}};
    struct count_metric_config metrics[] = {
        {.name = "all", .description = ""},
        {.name = "some",
         .description = "",
         .conditions = {.count = 2, .texts = conditions},
         .attributes = {.count = 2, .items = keys}},
    };
    struct count_config config = {
        .metrics = {[COUNT_SPANS] = {.count = 2, .items = metrics},
                    [COUNT_SPAN_EVENTS] = {.count = 2, .items = metrics}}};
    struct count_rules rules;
    struct count_tally tally;
    struct budget budget;
    struct error error;
    budget_init(&budget, UINT64_MAX);
    if (!count_rules_init(&rules, &config, TRACES, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    count_tally_init(&tally, &rules, &budget);
    struct batch *batch = message_batch(TRACES, request);
    work_begin();
    struct ottl_result result = count_tally_take(&tally, batch);
    work_end();
    assert(result.verdict == OTTL_PASSED);
    for (size_t i = 0; i < tally.batches_count; i++) {
        work_produced(tally.batches[i]->bytes);
        batch_unref(tally.batches[i]);
    }
    mem_free((void *)tally.batches);
    batch_unref(batch);
    count_tally_fini(&tally);
    count_rules_fini(&rules);
    budget_fini(&budget);
}

static const struct work_stage stages[] = {
    {.name = "counting by conditions", .run = run_count, .per_byte_max = 100},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
