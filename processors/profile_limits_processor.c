/* SPDX-License-Identifier: Apache-2.0 */
/* profile_limits: keeps profiles within limits and removes names that must not leave the host. It
 * counts what it drops, in its own counters and in the ledger, once the rest has its result: the
 * client sends a refused request again unchanged. Runs on its pipeline's lane; the lane's helper
 * does large requests. */
#include <assert.h>
#include <stdio.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_measure.h"

struct rename_config {
    const char *pattern;
    const char *replacement;
};

static const struct config_field rename_fields[] = {
    CONFIG_TEXT(struct rename_config, pattern, "pattern", NULL,
                "Regular expression (RE2), searched in names of functions and of files."),
    CONFIG_TEXT(struct rename_config, replacement, "replacement", NULL,
                "What every match becomes; $$1 stands for the first group ($$ because $ begins a "
                "variable)."),
    CONFIG_END,
};

struct profile_limits_config {
    uint64_t max_stack_depth;
    uint64_t max_samples;
    uint64_t max_bytes;
    uint64_t max_label_values;
    struct config_sections rename; /* struct rename_config */
    struct config_texts drop_frames;
};

static const struct config_field profile_limits_fields[] = {
    CONFIG_COUNT(struct profile_limits_config, max_stack_depth, "max_stack_depth", "0", 0,
                 UINT32_MAX,
                 "Locations of a stack; deeper ones keep their root, under a frame "
                 "\"[truncated]\" that counts too. 0: no limit."),
    CONFIG_COUNT(struct profile_limits_config, max_samples, "max_samples", "0", 0, UINT32_MAX,
                 "Samples of one profile; the first ones stay. 0: no limit."),
    CONFIG_COUNT(struct profile_limits_config, max_bytes, "max_bytes", "0", 0, UINT32_MAX,
                 "Encoded bytes of a request; the first samples stay. 0: no limit."),
    CONFIG_COUNT(struct profile_limits_config, max_label_values, "max_label_values", "0", 0,
                 UINT32_MAX,
                 "Different values of one sample attribute in a request; further ones become "
                 "\"other\". 0: no limit."),
    CONFIG_SECTIONS(struct profile_limits_config, rename, struct rename_config, "rename",
                    rename_fields, NULL,
                    "Replacements in names of functions and files, applied in order."),
    CONFIG_TEXTS(struct profile_limits_config, drop_frames, "drop_frames", NULL,
                 "Regular expressions (RE2): frames whose function name matches one are left out "
                 "of every stack. They see the original names, before rename."),
    CONFIG_END,
};

struct profile_limits_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
    counter cut_stacks;
    counter dropped_samples;
    counter dropped_frames;
    counter other_values;
    counter renamed;
};

static const struct counter_row profile_limits_counters[] = {
    COUNTER_BY_SIGNAL(struct profile_limits_counters, incoming, COUNTER_SUM,
                      "otelcol_processor_incoming_items", SIGNAL_PROFILES, NULL, NULL,
                      "Items passed to the processor."),
    COUNTER_BY_SIGNAL(struct profile_limits_counters, outgoing, COUNTER_SUM,
                      "otelcol_processor_outgoing_items", SIGNAL_PROFILES, NULL, NULL,
                      "Items emitted from the processor."),
    COUNTER(struct profile_limits_counters, cut_stacks, COUNTER_SUM,
            "otelcol_processor_profile_limits_cut_stacks",
            "Number of stacks that were cut to max_stack_depth"),
    COUNTER(struct profile_limits_counters, dropped_samples, COUNTER_SUM,
            "otelcol_processor_profile_limits_dropped_samples",
            "Number of samples beyond max_samples or max_bytes"),
    COUNTER(struct profile_limits_counters, dropped_frames, COUNTER_SUM,
            "otelcol_processor_profile_limits_dropped_frames",
            "Number of frames, as dictionaries list them, that drop_frames left out"),
    COUNTER(struct profile_limits_counters, other_values, COUNTER_SUM,
            "otelcol_processor_profile_limits_other_values",
            "Number of attributes, as dictionaries list them, beyond max_label_values"),
    COUNTER(struct profile_limits_counters, renamed, COUNTER_SUM,
            "otelcol_processor_profile_limits_renamed",
            "Number of names, as dictionaries list them, that rename changed"),
    COUNTER_END,
};

struct profile_limits {
    struct component base;
    struct profile_limit_rules rules;
    struct profile_rename *renames;
    struct pattern **drops;
    unsigned helped; /* requests that are with the lane's helper */
    bool is_stopping;
};

/* A request being shaped. */
struct shaping_request {
    struct profile_limits *self;
    struct batch *batch;
    struct receipt *receipt;
    enum budget_result reserved;
    struct buffer *shaped; /* NULL: refused */
    struct profile_limit_figures figures;
};

/* A large request, which the lane's helper shapes; has a reference to the batch. */
struct helped_request {
    struct helper_work work; /* first */
    struct shaping_request shaping;
};

/* A shaped request in the next stage. */
struct shaped {
    struct receipt receipt;
    struct receipt *outer;
    struct profile_limits *owner;
    struct batch *lost; /* has the dropped samples as items, for the ledger */
    struct profile_limit_figures figures;
};

extern const struct component_factory profile_limits_processor_factory;

static struct profile_limits *profile_limits_of(struct component *component)
{
    assert(component->factory == &profile_limits_processor_factory);
    return (struct profile_limits *)component;
}

static void free_rules(struct profile_limits *self)
{
    for (size_t i = 0; i < self->rules.renames_count; i++) {
        pattern_replacement_destroy(self->renames[i].replacement);
        pattern_destroy(self->renames[i].pattern);
    }
    for (size_t i = 0; i < self->rules.drops_count; i++)
        pattern_destroy(self->drops[i]);
    mem_free(self->renames);
    mem_free((void *)self->drops);
}

/* Counts what it creates before an error, so that free_rules frees it. */
static bool make_renames(struct profile_limits *self, const struct profile_limits_config *config,
                         struct error *error)
{
    const struct rename_config *rows = config->rename.items;
    self->renames = mem_zalloc(config->rename.count * sizeof(self->renames[0]));
    self->rules.renames = self->renames;
    for (size_t i = 0; i < config->rename.count; i++) {
        struct profile_rename *rename = &self->renames[i];
        if (rows[i].pattern[0] == '\0')
            return error_set(error, "missing required field \"pattern\"") ||
                   error_at(error, "pattern") || error_at_index(error, i) ||
                   error_at(error, "rename");
        self->rules.renames_count++;
        rename->pattern = pattern_create(rows[i].pattern, error);
        if (rename->pattern != NULL)
            rename->replacement =
                pattern_replacement_create(rename->pattern, rows[i].replacement, error);
        if (rename->replacement == NULL)
            return error_at(error, rename->pattern == NULL ? "pattern" : "replacement") ||
                   error_at_index(error, i) || error_at(error, "rename");
    }
    return true;
}

static bool make_drops(struct profile_limits *self, const struct profile_limits_config *config,
                       struct error *error)
{
    self->drops = mem_zalloc(config->drop_frames.count * sizeof(self->drops[0]));
    self->rules.drops = self->drops;
    for (size_t i = 0; i < config->drop_frames.count; i++) {
        self->drops[i] = pattern_create(config->drop_frames.texts[i], error);
        if (self->drops[i] == NULL)
            return error_at_index(error, i) || error_at(error, "drop_frames");
        self->rules.drops_count++;
    }
    return true;
}

static bool profile_limits_check(const void *section, struct error *error)
{
    const struct profile_limits_config *config = section;
    struct profile_limits patterns = {.rules = {.renames_count = 0}};
    if (config->max_stack_depth == 0 && config->max_samples == 0 && config->max_bytes == 0 &&
        config->max_label_values == 0 && config->rename.count == 0 &&
        config->drop_frames.count == 0)
        return error_set(error, "nothing is limited: set at least one of max_stack_depth, "
                                "max_samples, max_bytes, max_label_values, rename, drop_frames");
    bool are_valid = make_renames(&patterns, config, error) && make_drops(&patterns, config, error);
    free_rules(&patterns);
    return are_valid;
}

static bool profile_limits_create(struct component *component, struct error *error)
{
    struct profile_limits *self = profile_limits_of(component);
    const struct profile_limits_config *config = component->config;
    self->rules.depth_max = config->max_stack_depth;
    self->rules.samples_max = config->max_samples;
    self->rules.bytes_max = config->max_bytes;
    self->rules.label_values_max = config->max_label_values;
    return make_renames(self, config, error) && make_drops(self, config, error);
}

/* Counts nothing for a refused request: the client sends it again. */
static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct shaped *shaped = arg;
    struct component *component = &shaped->owner->base;
    struct profile_limits_counters *counters = component->counters;
    struct batch *lost = shaped->lost;
    assert(receipt == &shaped->receipt);
    if (outcome->verdict != REFUSED) {
        counter_add(&counters->cut_stacks, shaped->figures.cut_stacks);
        counter_add(&counters->dropped_frames, shaped->figures.dropped_frames);
        counter_add(&counters->other_values, shaped->figures.other_values);
        counter_add(&counters->renamed, shaped->figures.renamed);
        counter_add(&counters->dropped_samples, lost->items);
    }
    /* Dropped samples count like the rest: as accepted if the client got OK. */
    if (outcome->verdict != REFUSED && lost->items > 0) {
        unsigned exporters = component_exporters(component, lost);
        if (outcome->verdict == ACCEPTED || lost->is_acknowledged)
            ledger_drop(component->ledger, lost, LOSS_TOO_LARGE, exporters);
        else
            ledger_reject(component->ledger, lost, LOSS_TOO_LARGE, exporters);
    }
    receipt_resolve(shaped->outer, outcome);
    batch_unref(lost);
    mem_free(shaped);
}

/* Without a reserve. What nobody would send again goes beyond the budget a little. */
static bool may_begin_late(const struct batch *batch, const struct budget *budget)
{
    enum { COPIES = 2 };
    return batch_may_exceed(batch) && (batch->bytes <= BATCH_LATE_BYTES_FREE ||
                                       batch_has_room(batch, budget, COPIES * batch->bytes));
}

/* The expensive part; may run on the helper's thread. */
static void shape(struct shaping_request *shaping)
{
    struct budget_reserve reserve;
    struct batch *batch = shaping->batch;
    struct budget *budget = shaping->self->base.budget;
    struct batch *whole = batch_in_one_part(batch, budget);
    struct slice bytes = whole->parts[0].bytes;
    shaping->reserved =
        profile_measure_reserve(bytes, profile_limit_bytes(bytes), budget, &reserve);
    if (shaping->reserved == BUDGET_GIVEN || may_begin_late(batch, budget))
        shaping->shaped =
            profile_limit(&shaping->self->rules, bytes, batch, budget, &shaping->figures);
    if (shaping->reserved == BUDGET_GIVEN)
        budget_release(&reserve);
    const uint64_t names_bytes = shaping->figures.names_bytes;
    if (names_bytes > 0)
        shaping->reserved =
            names_bytes + bytes.size > budget_limit(budget) ? BUDGET_TOO_SMALL : BUDGET_FULL;
    batch_unref(whole);
}

/* Passes the shaped request on, or refuses it. */
static void conclude(const struct shaping_request *shaping)
{
    struct profile_limits *self = shaping->self;
    struct batch *batch = shaping->batch;
    if (shaping->reserved != BUDGET_GIVEN && shaping->shaped == NULL) {
        char text[200];
        struct outcome outcome = outcome_busy("the memory budget has no room to limit profiles");
        outcome.reason = LOSS_MEMORY;
        if (shaping->reserved == BUDGET_TOO_SMALL) {
            snprintf(text, sizeof(text),
                     "profiles of %llu bytes take more than the whole memory budget "
                     "(service::budget_mib) to limit them; send less at a time",
                     (unsigned long long)batch->bytes);
            outcome = outcome_too_large(text);
        }
        receipt_resolve(shaping->receipt, &outcome);
        return;
    }
    if (shaping->shaped == NULL) {
        struct outcome outcome = outcome_refused(
            STATUS_INVALID_ARGUMENT, "a profiles request has more entries than can "
                                     "be indexed, or names that grow by more "
                                     "than 64 MiB when they are replaced; send less at a time");
        receipt_resolve(shaping->receipt, &outcome);
        return;
    }
    struct profile_limits_counters *counters = self->base.counters;
    struct shaped *shaped = mem_zalloc(sizeof(*shaped));
    struct batch *edited = batch_create_like(batch, 1);
    assert(shaping->figures.samples <= batch->items);
    receipt_init(&shaped->receipt, on_resolved, shaped);
    shaped->outer = shaping->receipt;
    shaped->owner = self;
    shaped->figures = shaping->figures;
    shaped->lost = batch_create_like(batch, 1);
    shaped->lost->items = batch->items - shaping->figures.samples;
    batch_append(edited, shaping->shaped, buffer_slice(shaping->shaped));
    buffer_unref(shaping->shaped);
    edited->items = shaping->figures.samples;
    counter_add(&counters->outgoing[batch->signal], edited->items);
    component_consume(self->base.next, edited, &shaped->receipt);
    batch_unref(edited);
}

static void on_help(struct helper_work *work)
{
    shape(&((struct helped_request *)work)->shaping);
}

static void on_helped(struct helper_work *work)
{
    struct helped_request *helped = (struct helped_request *)work;
    struct profile_limits *self = helped->shaping.self;
    conclude(&helped->shaping);
    batch_unref(helped->shaping.batch);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

static void profile_limits_consume(struct component *component, struct batch *batch,
                                   struct receipt *receipt)
{
    struct profile_limits *self = profile_limits_of(component);
    struct profile_limits_counters *counters = component->counters;
    struct shaping_request shaping = {.self = self, .batch = batch, .receipt = receipt};
    assert(batch->signal == PROFILES);
    counter_add(&counters->incoming[batch->signal], batch->items);
    if (batch->bytes > UINT32_MAX / 2) {
        struct outcome outcome = outcome_refused(
            STATUS_INVALID_ARGUMENT, "a profiles request of more than 2 GiB cannot be edited");
        receipt_resolve(receipt, &outcome);
        return;
    }
    if ((batch_may_exceed(batch) || batch->parts_count > 1) &&
        !batch_has_room(batch, component->budget, batch->bytes)) {
        shaping.reserved = batch_never_fits(batch, component->budget, batch->bytes)
                               ? BUDGET_TOO_SMALL
                               : BUDGET_FULL;
        conclude(&shaping);
        return;
    }
    if (batch->bytes < HELPED_PROFILES_BYTES_MIN) {
        shape(&shaping);
        conclude(&shaping);
        return;
    }
    struct helped_request *helped = mem_zalloc(sizeof(*helped));
    assert(!self->is_stopping);
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    helped->shaping = shaping;
    batch_ref(batch);
    self->helped++;
    lane_help(component->lane, &helped->work);
}

static void profile_limits_stop(struct component *component)
{
    struct profile_limits *self = profile_limits_of(component);
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

static void profile_limits_destroy(struct component *component)
{
    free_rules(profile_limits_of(component));
}

const struct component_factory profile_limits_processor_factory = {
    .type = "profile_limits",
    .kind = PROCESSOR,
    .stability = "development",
    .signals = SIGNAL_PROFILES,
    .instance_size = sizeof(struct profile_limits),
    .config_size = sizeof(struct profile_limits_config),
    .fields = profile_limits_fields,
    .counters_size = sizeof(struct profile_limits_counters),
    .counters = profile_limits_counters,
    .check = profile_limits_check,
    .create = profile_limits_create,
    .consume = profile_limits_consume,
    .stop = profile_limits_stop,
    .destroy = profile_limits_destroy,
};
