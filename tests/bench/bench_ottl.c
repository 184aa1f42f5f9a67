/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of OTTL: what a span of the rig's payload costs under one condition that keeps
 * everything, under 300, with one to ten attributes set, and with fifteen mixed statements.
 * Nanoseconds of a span, the best of several runs. Arguments: part of a name, for those alone; how
 * many runs (one is enough to count instructions). */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_runner.h"
#include "tests/bench/payload.h"

enum { SPANS = 1000, SPAN_BYTES = 672, BATCHES = 40, RUNS = 60, TEXTS_MAX = 300, SETS = 4 };

struct texts {
    const char *items[TEXTS_MAX];
    size_t count;
};

static struct batch *batch_of(const struct payload *payload)
{
    struct buffer *buffer = buffer_create(NULL, payload->body.size);
    struct batch *batch = batch_create(TRACES, 1);
    memcpy(buffer->data, payload->body.data, payload->body.size);
    buffer->size = payload->body.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = payload->spans;
    buffer_unref(buffer);
    return batch;
}

static const char *only = ""; /* part of the names of what is measured */
static unsigned runs = RUNS;

static double measure(const char *name, struct batch *batch, const struct texts *conditions,
                      const struct texts *statements)
{
    if (strstr(name, only) == NULL)
        return 0;
    struct ottl_plan *plan =
        ottl_plan_create(TRACES, statements != NULL ? OTTL_FOR_TRANSFORM : OTTL_FOR_FILTER);
    const struct ottl_group group = {
        .context = OTTL_SPAN,
        .paths = OTTL_PATHS_BARE,
        .error_mode = OTTL_PROPAGATE,
        .conditions = conditions != NULL ? conditions->items : NULL,
        .conditions_count = conditions != NULL ? conditions->count : 0,
        .statements = statements != NULL ? statements->items : NULL,
        .statements_count = statements != NULL ? statements->count : 0,
    };
    struct error error;
    struct ottl_runner runner;
    double best = 1e18;
    if (!ottl_plan_add(plan, &group, true, &error)) {
        fprintf(stderr, "%s: %s\n", name, error.text);
        exit(1);
    }
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    for (unsigned run = 0; run < runs; run++) {
        uint64_t begin = cpu_ns();
        for (unsigned i = 0; i < BATCHES; i++) {
            struct ottl_result result = ottl_runner_run(&runner, batch);
            assert(result.verdict == OTTL_PASSED);
            assert(statements != NULL || result.batch == batch);
            batch_unref(result.batch);
        }
        double ns = (double)(cpu_ns() - begin) / BATCHES / (double)batch->items;
        best = ns < best ? ns : best;
    }
    printf("%-40s %8.1f ns\n", name, best);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    return best;
}

static void judge(const char *name, double value, double most, const char *unit)
{
    if (value > 0)
        printf("  %-38s %8.1f %s, %s %.0f\n", name, value, unit,
               value <= most ? "within" : "MISSED:", most);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : only;
    runs = argc > 2 ? (unsigned)atoi(argv[2]) : runs;
    static const char *const mixed[] = {
        "set(attributes[\"team\"], \"payments\")",
        "set(attributes[\"env\"], resource.attributes[\"deployment.environment\"])",
        "set(name, \"checkout\") where name == \"nothing\"",
        "set(attributes[\"route\"], attributes[\"http.route\"])",
        "delete_key(attributes, \"thread.id\")",
        "set(status.code, 2) where attributes[\"http.status_code\"] == 500",
        "set(attributes[\"slow\"], true) where end_time_unix_nano - start_time_unix_nano > 9",
        "set(kind, SPAN_KIND_SERVER) where kind == SPAN_KIND_UNSPECIFIED",
        "set(attributes[\"kind\"], kind.string)",
        "set(attributes[\"root\"], IsRootSpan())",
        "set(cache[\"a\"], attributes[\"http.method\"])",
        "set(attributes[\"m\"], Concat([cache[\"a\"], name], \" \"))",
        "set(attributes[\"n\"], 7) where IsMatch(name, \"^GET\")",
        "delete_key(attributes, \"missing\")",
        "set(attributes[\"last\"], \"x\") where resource.attributes[\"service.name\"] != nil",
    };
    struct payload payload = payload_make(SPANS, SPAN_BYTES, 1);
    struct batch *batch = batch_of(&payload);
    struct texts texts = {.items = {"attributes[\"x\"] == \"y\""}, .count = 1};
    printf("%u spans of %zu bytes\n", (unsigned)batch->items, payload.body.size / batch->items);
    double condition = measure("one condition, an attribute", batch, &texts, NULL);
    judge("to keep everything", condition, 60, "ns");
    texts.items[0] = "name == \"x\"";
    measure("one condition, the name", batch, &texts, NULL);
    texts.items[0] = "resource.attributes[\"x\"] == \"y\"";
    measure("one condition, the resource", batch, &texts, NULL);
    texts.count = TEXTS_MAX;
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        char text[128];
        snprintf(text, sizeof(text), "attributes[\"key.%zu\"] == \"value\"", i);
        texts.items[i] = strdup(text);
    }
    judge("that", measure("300 conditions", batch, &texts, NULL), 3000, "ns");
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        char text[128];
        snprintf(text, sizeof(text), "set(attributes[\"key.%zu\"], \"value\")", i);
        texts.items[i] = strdup(text);
    }
    static const size_t counts[SETS] = {1, 10, 11, 200};
    double sets[SETS];
    for (unsigned i = 0; i < SETS; i++) {
        char name[64];
        texts.count = counts[i];
        snprintf(name, sizeof(name), "%zu attribute%s set", texts.count,
                 texts.count > 1 ? "s" : "");
        sets[i] = measure(name, batch, NULL, &texts);
    }
    judge("the first, beside the condition", sets[0] - condition, 60, "ns");
    judge("each further", (sets[2] - sets[0]) / 10, 20, "ns");
    if (sets[1] > 0)
        judge("200 against 10", sets[3] / sets[1], 22, "times");
    texts.count = sizeof(mixed) / sizeof(mixed[0]);
    memcpy(texts.items, mixed, sizeof(mixed));
    judge("those", measure("15 mixed statements", batch, NULL, &texts), 400, "ns");
    batch_unref(batch);
    payload_free(&payload);
    return 0;
}
