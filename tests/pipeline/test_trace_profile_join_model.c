/* SPDX-License-Identifier: Apache-2.0 */
/* The join against a plain list: random spans and profiles arrive in random order, and what comes
 * out is what a comparison of every sample with every span says: no sample is lost, none changes
 * but in its labels, and one lane does as two. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/random_otlp.h"

#define YAML JOIN("attributes: [span_name, http.route, resource.zone], hold: 4s, mark: off")

enum { ROUNDS = 30, SPANS = 40, REQUESTS = 25, SAMPLES_MAX = 8, TEXT = 64, TICKS = 120 };
#define HOLD_NS (4 * S)
#define TICK_NS (100 * MS)

struct model_span {
    char trace[17];
    char id[9];
    char trace_hex[33];
    char id_hex[17];
    char name[TEXT];
    char route[TEXT]; /* "": none */
    unsigned zone;
    unsigned tick; /* when it arrives */
};

enum sample_form { BY_LINK, BY_LABELS, BY_SPAN_LABEL };

struct model_sample {
    const struct model_span *span; /* NULL: it names none */
    enum sample_form form;
    bool has_name; /* of the span, already, by another one */
    char texts[4][TEXT];
    struct sketch_sample came;
    struct sketch_sample goes;
    char added[3][TEXT + 16];
};

struct model_request {
    unsigned tick;
    size_t count;
    struct model_sample samples[SAMPLES_MAX];
};

struct model {
    struct random_source random;
    struct model_span spans[SPANS];
    struct model_request requests[REQUESTS];
};

static void to_hex(const char *bytes, size_t count, char *ret_hex)
{
    for (size_t i = 0; i < count; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", (unsigned)(uint8_t)bytes[i]);
}

static void make_span(struct model *model, unsigned number)
{
    struct model_span *span = &model->spans[number];
    *span = (struct model_span){.zone = (unsigned)random_below(&model->random, 3)};
    snprintf(span->trace, sizeof(span->trace), "trace-%010u", number / 4);
    snprintf(span->id, sizeof(span->id), "sp%06u", number);
    to_hex(span->trace, 16, span->trace_hex);
    to_hex(span->id, 8, span->id_hex);
    snprintf(span->name, sizeof(span->name), "name %u", (unsigned)random_below(&model->random, 10));
    if (random_below(&model->random, 2) == 0)
        snprintf(span->route, sizeof(span->route), "/r%u",
                 (unsigned)random_below(&model->random, 4));
    span->tick = (unsigned)random_below(&model->random, TICKS + 45);
}

static bool is_known_in_time(const struct model_span *span, unsigned profile_tick)
{
    return span->tick * TICK_NS < profile_tick * TICK_NS + HOLD_NS;
}

static size_t count_attributes(const struct sketch_sample *sample)
{
    size_t count = 0;
    while (sample->attributes[count] != NULL)
        count++;
    return count;
}

static void add(struct sketch_sample *sample, const char *text)
{
    sample->attributes[count_attributes(sample)] = text;
}

/* The sample as it comes: what it says of its span, and something else. */
static void make_sample(struct model *model, struct model_sample *sample, unsigned number)
{
    static const char *const stacks[] = {"a;main", "b;a;main", "c;main"};
    *sample = (struct model_sample){.has_name = random_below(&model->random, 4) == 0};
    struct sketch_sample *came = &sample->came;
    if (random_below(&model->random, 5) != 0)
        sample->span = &model->spans[random_below(&model->random, SPANS)];
    sample->form = (enum sample_form)random_below(&model->random, 3);
    came->stack = stacks[random_below(&model->random, 3)];
    came->values_count = 1;
    came->values[0] = (int64_t)number + 1;
    snprintf(sample->texts[0], TEXT, "thread=t%u", (unsigned)random_below(&model->random, 3));
    add(came, sample->texts[0]);
    if (sample->has_name)
        add(came, "span_name=its own");
    sample->goes = *came;
    if (sample->span == NULL)
        return;
    if (sample->form == BY_LINK) {
        came->trace_id = sample->span->trace;
        came->span_id = sample->span->id;
        return;
    }
    snprintf(sample->texts[1], TEXT, "%s=%s", "span_id", sample->span->id_hex);
    snprintf(sample->texts[2], TEXT, "%s=%s", "trace_id", sample->span->trace_hex);
    add(came, sample->texts[1]);
    if (sample->form == BY_LABELS)
        add(came, sample->texts[2]);
}

/* The sample as it should go. */
static void expect(struct model_sample *sample, unsigned tick)
{
    const struct model_span *span = sample->span;
    struct sketch_sample *goes = &sample->goes;
    if (span == NULL)
        return;
    bool is_known = is_known_in_time(span, tick);
    if (!is_known && sample->form == BY_SPAN_LABEL) {
        add(goes, sample->texts[1]); /* a span without a trace makes no link */
        return;
    }
    goes->trace_id = span->trace;
    goes->span_id = span->id;
    if (!is_known)
        return;
    snprintf(sample->added[0], sizeof(sample->added[0]), "span_name=%s", span->name);
    snprintf(sample->added[1], sizeof(sample->added[1]), "http.route=%s", span->route);
    snprintf(sample->added[2], sizeof(sample->added[2]), "zone=z%u", span->zone);
    if (!sample->has_name)
        add(goes, sample->added[0]);
    if (span->route[0] != '\0')
        add(goes, sample->added[1]);
    add(goes, sample->added[2]);
}

static void make_model(struct model *model, uint64_t seed)
{
    unsigned number = 0;
    *model = (struct model){.random = {seed}};
    for (unsigned i = 0; i < SPANS; i++)
        make_span(model, i);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct model_request *request = &model->requests[i];
        request->tick = (unsigned)random_below(&model->random, TICKS);
        request->count = 1 + random_below(&model->random, SAMPLES_MAX);
        for (size_t k = 0; k < request->count; k++) {
            make_sample(model, &request->samples[k], number++);
            expect(&request->samples[k], request->tick);
        }
    }
}

/* The request as it comes, or as it should go; the caller frees its data with mem_free. */
static struct slice sketch_of(const struct model_request *request, unsigned number, bool goes)
{
    struct sketch_sample samples[SAMPLES_MAX];
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .time_ns = 1000 + number,
                                           .samples_count = request->count,
                                           .samples = samples};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    for (size_t i = 0; i < request->count; i++)
        samples[i] = goes ? request->samples[i].goes : request->samples[i].came;
    return sketch_request(&sketch);
}

static void offer_span(struct harness *h, unsigned lane, const struct model_span *span)
{
    char zone[TEXT];
    const char *const resource[] = {"service.name", "shop", "zone", zone, NULL};
    struct sketch_span sketch = {.trace_id = span->trace, .span_id = span->id, .name = span->name};
    snprintf(zone, sizeof(zone), "z%u", span->zone);
    if (span->route[0] != '\0') {
        sketch.attributes[0] = "http.route";
        sketch.attributes[1] = span->route;
    }
    join_offer_spans(h, lane, resource, &sketch, 1);
}

static void arrive(struct harness *h, struct model *model, unsigned tick, unsigned lanes)
{
    for (unsigned i = 0; i < SPANS; i++)
        if (model->spans[i].tick == tick)
            offer_span(h, i % lanes, &model->spans[i]);
    for (unsigned i = 0; i < REQUESTS; i++) {
        if (model->requests[i].tick != tick)
            continue;
        struct slice bytes = sketch_of(&model->requests[i], i, false);
        harness_offer_bytes(h, i / 2 % lanes, PROFILES, bytes, model->requests[i].count);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

static void run(struct model *model, unsigned lanes, struct oracle_items *ret_items)
{
    struct harness *h = join_start_on(YAML, lanes);
    join_hold_profiles(h, lanes);
    for (unsigned tick = 0; tick < TICKS + 50; tick++) {
        arrive(h, model, tick, lanes);
        join_list_tick(h, lanes, TICK_NS, ret_items);
    }
    harness_destroy(h);
    profile_oracle_sort(ret_items);
}

static void assert_same(const struct oracle_items *found, const struct oracle_items *expected)
{
    assert_int_equal(found->count, expected->count);
    for (size_t i = 0; i < found->count; i++)
        assert_string_equal(found->texts[i], expected->texts[i]);
}

static void the_join_is_what_comparing_all_with_all_gives(void **state)
{
    static struct model model;
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct oracle_items expected = {0};
        make_model(&model, seed);
        for (unsigned i = 0; i < REQUESTS; i++) {
            struct slice bytes = sketch_of(&model.requests[i], i, true);
            profile_oracle_list(&expected, bytes, PROFILE_WHOLE);
            mem_free((void *)(uintptr_t)bytes.data);
        }
        profile_oracle_sort(&expected);
        for (unsigned lanes = 1; lanes <= 2; lanes++) {
            struct oracle_items found = {0};
            run(&model, lanes, &found);
            assert_same(&found, &expected);
            oracle_clear(&found);
        }
        oracle_clear(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_join_is_what_comparing_all_with_all_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
