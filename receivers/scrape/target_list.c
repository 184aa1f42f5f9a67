/* SPDX-License-Identifier: Apache-2.0 */
/* Builds lists of targets. On the main thread at the start, later on the helper of lane 0. */
#include "receivers/scrape/target_list.h"

#include "receivers/scrape/scrape_config.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#include <assert.h>
#include <stdio.h>

enum { ROOM_FIRST = 64, ADDRESS_BYTES_SHOWN = 256 };

struct scrape_target_list *scrape_target_list_ref(struct scrape_target_list *list)
{
    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    return list;
}

void scrape_target_list_unref(struct scrape_target_list *list)
{
    if (list == NULL || atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < list->count; i++)
        scrape_target_unref(list->targets[i]);
    if (list->budget != NULL)
        budget_return(list->budget, list->bytes);
    mem_free(list->targets);
    mem_free(list->has_too_many);
    mem_free(list);
}

void target_list_begin(struct target_list_builder *builder, const struct target_job *jobs,
                       size_t jobs_count, unsigned lanes, const struct scrape_target_list *former,
                       struct budget *budget, const struct logger *logger)
{
    *builder = (struct target_list_builder){
        .jobs = jobs,
        .jobs_count = jobs_count,
        .budget = budget,
        .logger = logger,
        .lanes = lanes,
    };
    builder->loads = mem_zalloc(lanes * sizeof(*builder->loads));
    builder->counts = mem_zalloc((jobs_count + 1) * sizeof(*builder->counts));
    relabel_labels_init(&builder->labels);
    for (size_t i = 0; former != NULL && i < former->count; i++)
        builder->has_failed |=
            !hash_table_add(&builder->former, former->targets[i]->hash, former->targets[i]);
}

static void leave_out(struct target_list_builder *builder, size_t job, struct slice address,
                      const char *reason)
{
    char text[ADDRESS_BYTES_SHOWN];
    if (builder->left_out++ >= TARGETS_LOGGED_MAX)
        return;
    snprintf(text, sizeof(text), "%.*s",
             (int)(address.size < sizeof(text) ? address.size : sizeof(text) - 1),
             address.size > 0 ? (const char *)address.data : "");
    log_warn(builder->logger, "a target is left out", log_text("job", builder->jobs[job].name),
             log_text("target", text), log_text("error", reason));
}

static struct scrape_target *find(const struct hash_table *table,
                                  const struct scrape_target *target)
{
    size_t at = 0;
    struct scrape_target *found;
    while ((found = hash_table_next(table, target->hash, &at)) != NULL)
        if (found->job == target->job && found->start == target->start)
            return found;
    return NULL;
}

/* The lane with the fewest targets, the first of several. */
static unsigned pick_lane(const struct target_list_builder *builder)
{
    unsigned best = 0;
    for (unsigned i = 1; i < builder->lanes; i++)
        if (builder->loads[i] < builder->loads[best])
            best = i;
    return best;
}

static bool make_room(struct target_list_builder *builder)
{
    if (builder->count < builder->room)
        return true;
    size_t room = builder->room > 0 ? builder->room * 2 : (size_t)ROOM_FIRST;
    size_t bytes = room * sizeof(struct scrape_target *);
    if (builder->budget != NULL && !budget_try_take(builder->budget, bytes))
        return false;
    struct scrape_target **grown = (struct scrape_target **)mem_try_resize(builder->targets, bytes);
    if (builder->budget != NULL)
        budget_return(builder->budget,
                      grown != NULL ? builder->room * sizeof(struct scrape_target *) : bytes);
    if (grown == NULL)
        return false;
    builder->targets = grown;
    builder->room = room;
    return true;
}

/* Takes the target. */
static void add(struct target_list_builder *builder, struct scrape_target *target)
{
    if (find(&builder->known, target) != NULL) {
        scrape_target_unref(target);
        return;
    }
    struct scrape_target *former = find(&builder->former, target);
    if (former != NULL) {
        scrape_target_unref(target);
        target = scrape_target_ref(former);
    }
    if (!make_room(builder) || !hash_table_add(&builder->known, target->hash, target)) {
        builder->has_failed = true;
        scrape_target_unref(target);
        return;
    }
    if (former == NULL)
        target->lane = pick_lane(builder);
    builder->loads[target->lane]++;
    builder->counts[target->job]++;
    builder->targets[builder->count++] = target;
}

static void add_address(struct target_list_builder *builder, size_t place, struct slice address,
                        const struct target_group *group)
{
    const struct target_job *job = &builder->jobs[place];
    struct error error;
    for (size_t i = 0; i < job->starts_count; i++) {
        if (builder->count == SCRAPE_TARGETS_MAX) {
            leave_out(builder, place, address, "there are too many targets");
            return;
        }
        struct scrape_target *target =
            scrape_target_create(&job->starts[i], address, group->labels, group->labels_count,
                                 &builder->labels, builder->budget, &error);
        if (target == NULL && error.text[0] != '\0') {
            leave_out(builder, place, address, error.text);
            return;
        }
        if (target == NULL)
            continue;
        target->job = place;
        target->start = i;
        add(builder, target);
    }
}

void target_list_add(struct target_list_builder *builder, size_t job,
                     const struct target_group *group)
{
    for (size_t i = 0; i < group->targets_count && !builder->has_failed; i++)
        add_address(builder, job, group->targets[i], group);
}

void target_list_add_static(struct target_list_builder *builder, size_t job)
{
    const struct config_sections *sections = &builder->jobs[job].discovery->static_configs;
    const struct scrape_static_config *sets = sections->items;
    for (size_t i = 0; i < sections->count; i++) {
        const struct config_pairs *pairs = &sets[i].labels;
        struct prometheus_label *labels = mem_alloc((pairs->count + 1) * sizeof(*labels));
        for (size_t k = 0; k < pairs->count; k++)
            labels[k] = (struct prometheus_label){.name = slice_of_text(pairs->pairs[k].key),
                                                  .value = slice_of_text(pairs->pairs[k].value)};
        for (size_t k = 0; k < sets[i].targets.count; k++) {
            const struct slice address = slice_of_text(sets[i].targets.texts[k]);
            target_list_add(builder, job,
                            &(struct target_group){.targets = &address,
                                                   .targets_count = 1,
                                                   .labels = labels,
                                                   .labels_count = pairs->count});
        }
        mem_free(labels);
    }
}

/* Of the targets that stayed the lane may carry more than its share once others have gone. The next
 * ones go to the lanes with fewer. */
struct scrape_target_list *target_list_end(struct target_list_builder *builder)
{
    struct scrape_target_list *list = mem_zalloc(sizeof(*list));
    atomic_init(&list->refs, 1);
    list->targets = builder->targets;
    list->count = builder->count;
    list->jobs_count = builder->jobs_count;
    list->has_too_many = mem_zalloc((builder->jobs_count + 1) * sizeof(*list->has_too_many));
    for (size_t i = 0; i < builder->jobs_count; i++) {
        uint64_t max = builder->jobs[i].targets_max;
        list->has_too_many[i] = max > 0 && builder->counts[i] > max;
    }
    if (builder->left_out > TARGETS_LOGGED_MAX)
        log_warn(builder->logger, "more targets are left out",
                 log_int("targets", (int64_t)(builder->left_out - TARGETS_LOGGED_MAX)));
    list->budget = builder->budget;
    list->bytes = builder->room * sizeof(struct scrape_target *);
    hash_table_clear(&builder->former);
    hash_table_clear(&builder->known);
    relabel_labels_fini(&builder->labels);
    mem_free(builder->loads);
    mem_free(builder->counts);
    if (!builder->has_failed)
        return list;
    scrape_target_list_unref(list);
    return NULL;
}
