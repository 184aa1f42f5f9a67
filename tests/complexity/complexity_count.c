/* SPDX-License-Identifier: Apache-2.0 */
/* count: counting spans and their events, and profiles, by conditions and attributes, and writing
 * the counts. */
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

/* ---- Spans ---- */

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

static const struct work_shape span_shapes[] = {
    {"equal spans", equal_spans},         {"a series for each", a_series_for_each},
    {"a wide resource", a_wide_resource}, {"many attributes", many_attributes},
    {"many events", many_events},         {"many resources", many_resources},
};

/* ---- Profiles ---- */

enum { TEXT_VALUE = 1, LIST_VALUE = 5, MAP_VALUE = 6 };

/* Wraps what was added since begin into messages of these fields, the first innermost. */
static void wrap_all(struct profile_bytes *out, size_t begin, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        profile_bytes_wrap(out, begin, numbers[i]);
}

/* n Profiles, in one Resource or each in its own, that name one attribute of the dictionary, whose
 * value is n times the item. */
static struct slice sharing_profiles(size_t n, bool are_apart, uint32_t kind, struct slice item)
{
    enum { STRING_TABLE = 5, ATTRIBUTE_TABLE = 6, PROFILE_ATTRIBUTES = 11 };
    static const uint32_t around_profile[] = {2, 2, 1};
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t begin = out.size;
        put_number(&out, PROFILE_ATTRIBUTES, 1);
        wrap_all(&out, begin, around_profile, are_apart ? 3 : 1);
    }
    wrap_all(&out, 0, around_profile + 1, are_apart ? 0 : 2);
    const size_t dictionary = out.size;
    put_text(&out, STRING_TABLE, "");
    put_text(&out, STRING_TABLE, "tag");
    put_bytes(&out, ATTRIBUTE_TABLE, "", 0);
    const size_t attribute = out.size;
    put_number(&out, 1, 1);
    const size_t value = out.size;
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, item);
    wrap_all(&out, value, (const uint32_t[]){kind, 2}, 2);
    profile_bytes_wrap(&out, attribute, ATTRIBUTE_TABLE);
    profile_bytes_wrap(&out, dictionary, 2);
    return message_done(&out);
}

static struct slice shared_text(size_t n)
{
    return sharing_profiles(n, false, TEXT_VALUE, slice_of_text("01234567"));
}

static struct slice shared_list(size_t n)
{
    return sharing_profiles(n, false, LIST_VALUE, slice_of("\012\000", 2));
}

static struct slice shared_map(size_t n)
{
    return sharing_profiles(n, false, MAP_VALUE, slice_of("\012\003\012\001k", 5));
}

static struct slice text_of_resources(size_t n)
{
    return sharing_profiles(n, true, TEXT_VALUE, slice_of_text("01234567"));
}

static struct slice list_of_resources(size_t n)
{
    return sharing_profiles(n, true, LIST_VALUE, slice_of("\012\000", 2));
}

static const struct work_shape profile_shapes[] = {
    {"a shared text", shared_text},
    {"a shared list", shared_list},
    {"a shared map", shared_map},
    {"a text shared by Resources", text_of_resources},
    {"a list shared by Resources", list_of_resources},
};

/* ---- Stages ---- */

static void count(struct slice request, enum signal_kind signal, const struct count_config *config)
{
    struct count_rules rules;
    struct count_tally tally;
    struct budget budget;
    struct error error;
    budget_init(&budget, UINT64_MAX);
    if (!count_rules_init(&rules, config, signal, &error)) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    count_tally_init(&tally, &rules, &budget);
    struct batch *batch = message_batch(signal, request);
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

static void run_spans(struct slice request)
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
    const struct count_config config = {
        .metrics = {[COUNT_SPANS] = {.count = 2, .items = metrics},
                    [COUNT_SPAN_EVENTS] = {.count = 2, .items = metrics}}};
    count(request, TRACES, &config);
}

static void run_profiles(struct slice request)
{
    static const struct config_value standard = {.type = CONFIG_VALUE_INT, .integer = 7};
    struct count_key_config keys[] = {{.name = "tag"}, {.name = "cpu", .standard = &standard}};
    struct count_metric_config metrics[] = {
        {.name = "one", .description = "", .attributes = {.count = 1, .items = keys}},
        {.name = "both", .description = "", .attributes = {.count = 2, .items = keys}},
    };
    const struct count_config config = {
        .metrics = {[COUNT_PROFILES] = {.count = 2, .items = metrics}}};
    count(request, PROFILES, &config);
}

static const struct work_stage span_stages[] = {
    {.name = "counting by conditions", .run = run_spans, .per_byte_max = 100},
};

/* COUNT_FREE_BYTES count more in small requests. */
static const struct work_stage profile_stages[] = {
    {.name = "counting profiles", .run = run_profiles, .n = 2000, .per_byte_max = 60},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define CHECK(stages, shapes)                                                                      \
    work_check(stages, COUNT_OF(stages), shapes, COUNT_OF(shapes), argc, argv)

int main(int argc, char **argv)
{
    return CHECK(span_stages, span_shapes) + CHECK(profile_stages, profile_shapes) > 0;
}
