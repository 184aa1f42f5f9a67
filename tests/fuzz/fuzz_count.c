/* SPDX-License-Identifier: Apache-2.0 */
/* count on any request that passes the walker: byte 0 has the signal and the settings, byte 1 is
 * where the body is cut into two parts. What comes out is well-formed, and nothing stays charged.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/count/count_tally.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void init_rules(struct count_rules *rules, enum signal_kind signal)
{
    static const char *const conditions[] = {"attributes[\"a\"] == \"x\"",
                                             "resource.attributes[\"b\"] != nil"};
    static struct count_key_config keys[] = {{.name = "a"}, {.name = "b"}};
    static const struct config_value standard = {.type = CONFIG_VALUE_INT, .integer = 7};
    static struct count_key_config more_keys[] = {{.name = "a", .standard = &standard}};
    static struct count_metric_config metrics[] = {
        {.name = "all", .description = ""},
        {.name = "some",
         .description = "d",
         .conditions = {.count = 2, .texts = conditions},
         .attributes = {.count = 2, .items = keys}},
        {.name = "more", .description = "", .attributes = {.count = 1, .items = more_keys}},
    };
    struct count_config config;
    struct error error;
    for (unsigned i = 0; i < COUNT_KINDS; i++)
        config.metrics[i] =
            (struct config_sections){.count = i == COUNT_METRICS ? 1 : 3, .items = metrics};
    bool is_fine = count_rules_init(rules, &config, signal, &error);
    assert(is_fine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct budget budget;
    const char *reason;
    if (size < HEADER_BYTES + 1)
        return 0;
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    const enum signal_kind signal = (enum signal_kind)(data[0] % SIGNAL_KINDS);
    const bool is_tight = (data[0] & 0x80) != 0;
    if (!otlp_check(signal, body, &figures, &reason))
        return 0;
    budget_init(&budget, is_tight ? 3000 : UINT64_MAX);
    struct count_rules rules;
    struct count_tally tally;
    init_rules(&rules, signal);
    count_tally_init(&tally, &rules, &budget);
    struct batch *batch = two_parts(signal, body, data[1] % body.size);
    batch->items = figures.items;
    /* Twice: nothing is left over from the first. */
    for (unsigned run = 0; run < 2; run++) {
        struct ottl_result result = count_tally_take(&tally, batch);
        assert(result.verdict != OTTL_NO_MEMORY || is_tight);
        assert(result.verdict == OTTL_PASSED || tally.batches_count == 0);
        for (size_t i = 0; i < tally.batches_count; i++) {
            struct otlp_figures made;
            struct slice bytes = joined_parts(tally.batches[i]);
            bool is_sound = otlp_check(METRICS, bytes, &made, &reason);
            assert(is_sound);
            assert(made.items == tally.batches[i]->items);
            mem_free((void *)(uintptr_t)bytes.data);
            batch_unref(tally.batches[i]);
        }
        mem_free((void *)tally.batches);
    }
    batch_unref(batch);
    count_tally_fini(&tally);
    count_rules_fini(&rules);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
