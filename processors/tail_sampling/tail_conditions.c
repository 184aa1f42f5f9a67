/* SPDX-License-Identifier: Apache-2.0 */
/* Runs when the configuration is read. */
#include "processors/tail_sampling/tail_conditions.h"

#include "processors/tail_sampling/tail_sampling_config.h"
#include "src/base/error.h"
#include "src/base/mem.h"

static bool add(struct ottl_plan *plan, const struct config_texts *texts, enum ottl_context context,
                enum ottl_error_mode mode, const char *key, struct error *error)
{
    const struct ottl_group group = {.context = context,
                                     .paths = OTTL_PATHS_OF_CONTEXT,
                                     .error_mode = mode,
                                     .conditions = texts->texts,
                                     .conditions_count = texts->count};
    return texts->count == 0 || ottl_plan_add(plan, &group, true, error) || error_at(error, key);
}

struct tail_conditions *tail_conditions_create(const struct tail_ottl_config *config,
                                               struct budget *budget, struct error *error)
{
    /* As Go: a failure is only reported in the mode ignore, which has to be asked for. */
    enum ottl_error_mode mode = OTTL_SILENT;
    struct ottl_plan *plan = ottl_plan_create(TRACES, OTTL_FOR_FILTER);
    if ((config->error_mode[0] != '\0' &&
         !ottl_error_mode_read(config->error_mode, &mode, error)) ||
        !add(plan, &config->span, OTTL_SPAN, mode, "span", error) ||
        !add(plan, &config->spanevent, OTTL_SPAN_EVENT, mode, "spanevent", error)) {
        ottl_plan_destroy(plan);
        return NULL;
    }
    ottl_plan_finish(plan);
    struct tail_conditions *conditions = mem_zalloc(sizeof(*conditions));
    conditions->plan = plan;
    ottl_runner_init(&conditions->runner, plan, budget);
    return conditions;
}

void tail_conditions_destroy(struct tail_conditions *conditions)
{
    if (conditions == NULL)
        return;
    ottl_runner_fini(&conditions->runner);
    ottl_plan_destroy(conditions->plan);
    mem_free(conditions);
}
