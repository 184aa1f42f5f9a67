/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limiter: refuses requests while the byte budget is above its soft limit, and lowers the
 * budget to its hard limit. Every byte is charged to the budget before it is read, so the figure is
 * exact at each request and needs no polling. Runs on its pipeline's lane. */
#include <assert.h>

#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/machine.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

struct memory_limiter_config {
    uint64_t check_interval_ns;
    uint64_t limit_mib;
    uint64_t spike_limit_mib;
    uint64_t limit_percentage;
    uint64_t spike_limit_percentage;
    uint64_t min_gc_interval_soft_ns;
    uint64_t min_gc_interval_hard_ns;
    uint64_t max_gc_interval_soft_ns;
    uint64_t max_gc_interval_hard_ns;
};

static const struct config_field memory_limiter_fields[] = {
    CONFIG_DURATION(struct memory_limiter_config, check_interval_ns, "check_interval", "0s", 0,
                    INT64_MAX,
                    "Must be above zero. Memory is accounted for at each request, so it has no "
                    "other effect."),
    CONFIG_COUNT(struct memory_limiter_config, limit_mib, "limit_mib", "0", 0, UINT32_MAX,
                 "Hard limit, in MiB: the byte budget of the whole process."),
    CONFIG_COUNT(struct memory_limiter_config, spike_limit_mib, "spike_limit_mib", "0", 0,
                 UINT32_MAX,
                 "Requests are refused above the hard limit less this, in MiB; 0: a fifth of it."),
    CONFIG_COUNT(struct memory_limiter_config, limit_percentage, "limit_percentage", "0", 0, 100,
                 "Hard limit as a share of the memory that the container or machine has."),
    CONFIG_COUNT(struct memory_limiter_config, spike_limit_percentage, "spike_limit_percentage",
                 "0", 0, 100, "As spike_limit_mib, as a share."),
    CONFIG_UNUSED_DURATION(struct memory_limiter_config, min_gc_interval_soft_ns,
                           "min_gc_interval_when_soft_limited", "10s", 0, INT64_MAX,
                           "There is no garbage collector."),
    CONFIG_UNUSED_DURATION(struct memory_limiter_config, min_gc_interval_hard_ns,
                           "min_gc_interval_when_hard_limited", "0s", INT64_MIN, INT64_MAX,
                           "There is no garbage collector."),
    CONFIG_UNUSED_DURATION(struct memory_limiter_config, max_gc_interval_soft_ns,
                           "max_gc_interval_when_soft_limited", "30s", 0, INT64_MAX,
                           "There is no garbage collector."),
    CONFIG_UNUSED_DURATION(struct memory_limiter_config, max_gc_interval_hard_ns,
                           "max_gc_interval_when_hard_limited", "30s", 0, INT64_MAX,
                           "There is no garbage collector."),
    CONFIG_END,
};

struct memory_limiter_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
    counter accepted[SIGNAL_KINDS];
    counter refused[SIGNAL_KINDS];
};

#define LIMITED_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

static const struct counter_row memory_limiter_counters[] = {
    COUNTER_BY_SIGNAL(struct memory_limiter_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", LIMITED_SIGNALS, NULL, NULL,
                      "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct memory_limiter_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", LIMITED_SIGNALS, NULL, NULL,
                      "Items emitted from the processor."),
    COUNTER_BY_SIGNAL(struct memory_limiter_counters, accepted, COUNTER_SUM,
                      "otelcol_processor_memory_limiter_accepted_%s", LIMITED_SIGNALS, NULL, NULL,
                      "Items passed on to the next component."),
    COUNTER_BY_SIGNAL(struct memory_limiter_counters, refused, COUNTER_SUM,
                      "otelcol_processor_memory_limiter_refused_%s", LIMITED_SIGNALS, NULL, NULL,
                      "Items refused because memory is short."),
    COUNTER_END,
};

struct memory_limiter {
    struct component base;
    uint64_t soft_limit_bytes;
    bool is_refusing;
};

extern const struct component_factory memory_limiter_processor_factory;

static struct memory_limiter *memory_limiter_of(struct component *component)
{
    assert(component->factory == &memory_limiter_processor_factory);
    return (struct memory_limiter *)component;
}

static bool memory_limiter_check(const void *section, struct error *error)
{
    const struct memory_limiter_config *config = section;
    if (config->check_interval_ns == 0)
        return error_set(error, "'check_interval' must be greater than zero") ||
               error_at(error, "check_interval");
    if (config->limit_mib == 0 && config->limit_percentage == 0)
        return error_set(error, "'limit_mib' or 'limit_percentage' must be greater than zero") ||
               error_at(error, "limit_mib");
    if (config->limit_mib > 0 && config->spike_limit_mib >= config->limit_mib)
        return error_set(error, "'spike_limit_mib' must be smaller than 'limit_mib'") ||
               error_at(error, "spike_limit_mib");
    if (config->limit_percentage > 0 && config->spike_limit_percentage >= config->limit_percentage)
        return error_set(error,
                         "'spike_limit_percentage' must be smaller than 'limit_percentage'") ||
               error_at(error, "spike_limit_percentage");
    if (config->min_gc_interval_soft_ns < config->min_gc_interval_hard_ns)
        return error_set(error, "'min_gc_interval_when_soft_limited' should be larger than "
                                "'min_gc_interval_when_hard_limited'") ||
               error_at(error, "min_gc_interval_when_soft_limited");
    return true;
}

struct limits {
    uint64_t hard_bytes;
    uint64_t spike_bytes;
};

static struct limits limits_of(const struct memory_limiter_config *config)
{
    struct limits limits = {.hard_bytes = config->limit_mib * MIB,
                            .spike_bytes = config->spike_limit_mib * MIB};
    if (config->limit_mib == 0) {
        uint64_t total = machine_memory_bytes();
        limits.hard_bytes = total / 100 * config->limit_percentage;
        limits.spike_bytes = total / 100 * config->spike_limit_percentage;
    }
    if (limits.spike_bytes == 0)
        limits.spike_bytes = limits.hard_bytes / 5;
    return limits;
}

static bool memory_limiter_create(struct component *component, struct error *error)
{
    struct memory_limiter *self = memory_limiter_of(component);
    struct limits limits = limits_of(component->config);
    (void)error;
    assert(limits.hard_bytes > limits.spike_bytes);
    self->soft_limit_bytes = limits.hard_bytes - limits.spike_bytes;
    budget_lower(component->budget, limits.hard_bytes);
    return true;
}

static bool memory_limiter_start(struct component *component, struct error *error)
{
    const struct memory_limiter_config *config = component->config;
    struct limits limits = limits_of(config);
    (void)error;
    log_info(&component->logger, "Memory limiter configured",
             log_int("limit_mib", (int64_t)(limits.hard_bytes / MIB)),
             log_int("spike_limit_mib", (int64_t)(limits.spike_bytes / MIB)),
             log_double("check_interval", (double)config->check_interval_ns / NS_PER_S));
    return true;
}

static void memory_limiter_consume(struct component *component, struct batch *batch,
                                   struct receipt *receipt)
{
    assert(batch->signal == component->signal);
    struct memory_limiter *self = memory_limiter_of(component);
    struct memory_limiter_counters *counters = component->counters;
    uint64_t used_bytes = budget_used(component->budget);
    bool is_above = used_bytes > self->soft_limit_bytes;
    if (is_above && !self->is_refusing)
        log_warn(&component->logger, "Memory usage is above soft limit. Refusing data.",
                 log_int("cur_mem_mib", (int64_t)(used_bytes / MIB)));
    if (!is_above && self->is_refusing)
        log_info(&component->logger, "Memory usage back within limits. Resuming normal operation.",
                 log_int("cur_mem_mib", (int64_t)(used_bytes / MIB)));
    self->is_refusing = is_above;
    counter_add(&counters->incoming[batch->signal], batch->items);
    /* Behind a stage that answers before it passes on, nobody can be asked to send later: what is
     * in memory already leaves it soonest on its way. */
    if (is_above && !batch->is_acknowledged) {
        struct outcome outcome = outcome_busy("data refused due to high memory usage");
        outcome.reason = LOSS_MEMORY;
        counter_add(&counters->refused[batch->signal], batch->items);
        receipt_resolve(receipt, &outcome);
        return;
    }
    counter_add(&counters->accepted[batch->signal], batch->items);
    counter_add(&counters->outgoing[batch->signal], batch->items);
    component_consume(component->next, batch, receipt);
}

const struct component_factory memory_limiter_processor_factory = {
    .type = "memory_limiter",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = LIMITED_SIGNALS,
    .instance_size = sizeof(struct memory_limiter),
    .config_size = sizeof(struct memory_limiter_config),
    .fields = memory_limiter_fields,
    .counters_size = sizeof(struct memory_limiter_counters),
    .counters = memory_limiter_counters,
    .check = memory_limiter_check,
    .create = memory_limiter_create,
    .start = memory_limiter_start,
    .consume = memory_limiter_consume,
};
