/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: scrapes profiles of what serves them as Go's net/http/pprof does, and hands them on as
 * OTLP in the form in which the pyroscope receiver does, so that an exporter restores the series.
 * Each profile of a target is a scrape of its own. Runs on its lane, except the reading of
 * profiles, which runs on the lane's helper. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "receivers/pprof/pprof_config.h"
#include "receivers/scrape/scrape_http.h"
#include "receivers/scrape/scrape_pool.h"
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/profiles/pprof/pprof_delta.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/series.h"
#include "src/profiles/pyroscope/series_otlp.h"

enum { SECONDS_TEXT_BYTES_MAX = 24 };
#define DELTA_BYTES_MAX                                                                            \
    (512 * MIB) /* for the differences of one profile; the budget is the usual limit */

struct pprof_receiver_counters {
    struct scrape_counters scrape;
    counter negative;
};

static const struct counter_row pprof_receiver_counter_rows[] = {
    SCRAPE_COUNTERS(struct pprof_receiver_counters, scrape, SIGNAL_PROFILES, "spanflame_pprof"),
    COUNTER(struct pprof_receiver_counters, negative, COUNTER_SUM,
            "spanflame_pprof_negative_samples",
            "Samples with a negative value, which are left out."),
    COUNTER_END,
};

/* A profile of a job, made ready. */
struct pprof_profile {
    const char *name; /* the label __name__ */
    bool has_differences;
};

struct pprof_job {
    const struct pprof_job_config *config;
    struct relabel_rules *rules;
    char seconds[SECONDS_TEXT_BYTES_MAX];
    /* One of each for each profile that is enabled. */
    struct pprof_profile *profiles;
    struct scrape_start *starts;
    size_t count;
};

struct profile_scrape {
    struct scrape scrape; /* first */
    struct pprof_delta delta;
    /* of the scrape under way */
    struct helper_work work;
    char failure[ERROR_TEXT_MAX];
    struct buffer *request; /* NULL or empty: there is nothing to hand on */
    uint64_t items;
    uint64_t negative;
};

struct pprof_receiver {
    struct component base;
    struct pprof_job *jobs; /* one of each for each of scrape_configs */
    struct target_job *targets;
    struct scrape_http *https;
    size_t jobs_count;
    struct scrape_pool pool;
    struct gzip *gzip; /* the helper's */
};

extern const struct component_factory pprof_receiver_factory;

static struct pprof_receiver *pprof_receiver_of(struct component *base)
{
    assert(base->factory == &pprof_receiver_factory);
    return (struct pprof_receiver *)base;
}

static struct profile_scrape *scrape_of(struct scrape *scrape)
{
    return (struct profile_scrape *)scrape;
}

static struct profile_scrape *scrape_of_work(struct helper_work *work)
{
    return (struct profile_scrape *)((char *)work - offsetof(struct profile_scrape, work));
}

static struct pprof_receiver *receiver_of(const struct profile_scrape *scrape)
{
    return pprof_receiver_of(scrape->scrape.pool->settings.component);
}

static const struct pprof_profile *kind_of(const struct profile_scrape *scrape)
{
    const struct scrape_target *target = scrape->scrape.target;
    return &receiver_of(scrape)->jobs[target->job].profiles[target->start];
}

/* Profiles, on the helper's thread */

/* The labels of the target; service_name is the job's name unless the target has it. */
static bool make_series(const struct profile_scrape *scrape, struct series *series,
                        struct error *error)
{
    const struct scrape_target *target = scrape->scrape.target;
    const struct pprof_profile *profile = kind_of(scrape);
    bool has_room = series_add(series, slice_of_text("__name__"), slice_of_text(profile->name));
    /* So that a Pyroscope server takes no differences of differences. */
    if (profile->has_differences)
        has_room &= series_add(series, slice_of_text("__delta__"), slice_of_text("false"));
    if (scrape_target_label(target, "service_name").size == 0 &&
        scrape_target_label(target, "service.name").size == 0)
        has_room &= series_add(series, slice_of_text("service_name"), target->job_name);
    for (size_t i = 0; i < target->labels_count; i++)
        has_room &= series_add(series, target->labels[i].name, target->labels[i].value);
    if (!has_room)
        return error_set(error, "the target has more than %d labels", SERIES_LABELS_MAX);
    return series_check(series, error);
}

static bool take_differences(struct profile_scrape *scrape, struct pprof_upload *upload,
                             struct arena *arena, struct error *error)
{
    if (!kind_of(scrape)->has_differences)
        return true;
    return pprof_delta_take(&scrape->delta, &upload->pprof, arena) != PPROF_DELTA_NO_MEMORY ||
           error_set(error, "the memory budget has no room for the profile");
}

/* Makes a request of an open profile. */
static bool convert(struct profile_scrape *scrape, struct pprof_upload *upload, struct error *error)
{
    struct budget *budget = receiver_of(scrape)->base.budget;
    struct series series = {.count = 0};
    struct arena arena;
    arena_init_charged(&arena, DELTA_BYTES_MAX, budget);
    if (upload->pprof.time_ns <= 0)
        upload->pprof.time_ns = (int64_t)clock_wall_ns();
    bool is_too_large;
    bool is_made =
        make_series(scrape, &series, error) && take_differences(scrape, upload, &arena, error) &&
        (series_to_otlp(&series, &upload->pprof, budget, &scrape->request, &is_too_large) ||
         error_set(error, is_too_large ? "too many labels repeat long string values"
                                       : "the memory budget has no room for the profile"));
    scrape->items = pprof_upload_items(upload);
    scrape->negative = upload->negative;
    arena_clear(&arena);
    return is_made;
}

static void read_on_helper(struct helper_work *work)
{
    struct profile_scrape *scrape = scrape_of_work(work);
    struct pprof_receiver *self = receiver_of(scrape);
    struct pprof_upload upload;
    struct error error = {.text = ""};
    const struct buffer *body = scrape->scrape.body;
    bool is_made = false;
    if (body == NULL)
        error_set(&error, "the response is empty");
    else
        switch (pprof_upload_open(&upload, self->gzip, self->base.budget, buffer_slice(body),
                                  scrape->scrape.limit, &error)) {
        case PPROF_UPLOAD_OPEN:
            is_made = convert(scrape, &upload, &error);
            pprof_upload_close(&upload);
            break;
        case PPROF_UPLOAD_REFUSED:
            error_prefix(&error, "the response is no profile");
            break;
        case PPROF_UPLOAD_BUSY:
            error_set(&error, "the memory budget has no room for the profile");
            break;
        }
    if (!is_made)
        snprintf(scrape->failure, sizeof(scrape->failure), "%s", error.text);
}

/* Scrapes */

static void finish(struct profile_scrape *scrape)
{
    struct pprof_receiver *self = receiver_of(scrape);
    struct pprof_receiver_counters *counters = self->base.counters;
    scrape_drop_body(&scrape->scrape);
    counter_add(&counters->scrape.scrapes, 1);
    counter_add(&counters->negative, scrape->negative);
    if (scrape->failure[0] != '\0') {
        counter_add(&counters->scrape.failures, 1);
        log_error(&self->base.logger, "fetch profile failed",
                  log_text("job", self->targets[scrape->scrape.target->job].name),
                  log_text("profile", kind_of(scrape)->name),
                  log_text("target", scrape->scrape.target->shown),
                  log_text("error", scrape->failure));
    }
    if (scrape->failure[0] == '\0' && scrape->request != NULL && scrape->request->size > 0) {
        struct buffer *request = scrape->request;
        scrape->request = NULL;
        scrape_offer(&scrape->scrape, request, scrape->items);
        return;
    }
    buffer_unref(scrape->request);
    scrape->request = NULL;
    scrape_ended(&scrape->scrape);
}

static void on_read(struct helper_work *work)
{
    finish(scrape_of_work(work));
}

static void scrape_responded(struct scrape *base, const struct http_result *result)
{
    struct profile_scrape *scrape = scrape_of(base);
    if (scrape_is_cut_off(base, result)) {
        scrape_drop_body(base);
        scrape_ended(base);
        return;
    }
    if (scrape_judge(base, result, scrape->failure, sizeof(scrape->failure))) {
        finish(scrape);
        return;
    }
    scrape->work.run = read_on_helper;
    scrape->work.done = on_read;
    lane_help(receiver_of(scrape)->base.lane, &scrape->work);
}

static void scrape_due(struct scrape *base)
{
    struct profile_scrape *scrape = scrape_of(base);
    const struct pprof_job_config *config = receiver_of(scrape)->jobs[base->target->job].config;
    scrape->failure[0] = '\0';
    scrape->items = 0;
    scrape->negative = 0;
    if (!scrape_has_too_many(base)) {
        scrape_get(base, config->body_bytes_max);
        return;
    }
    snprintf(scrape->failure, sizeof(scrape->failure),
             "target_limit exceeded: the job has more than %llu targets",
             (unsigned long long)config->targets_max);
    finish(scrape);
}

static void scrape_open(struct scrape *base)
{
    struct profile_scrape *scrape = scrape_of(base);
    pprof_delta_init(&scrape->delta, receiver_of(scrape)->base.budget);
}

static void scrape_close(struct scrape *base)
{
    struct profile_scrape *scrape = scrape_of(base);
    pprof_delta_fini(&scrape->delta);
    buffer_unref(scrape->request);
}

static const struct scrape_pool_ops ops = {
    .scrape_size = sizeof(struct profile_scrape),
    .open = scrape_open,
    .due = scrape_due,
    .responded = scrape_responded,
    .close = scrape_close,
};

/* Jobs */

static void add_profile(struct pprof_job *job, const struct pprof_times *times, const char *name,
                        const struct pprof_profile_config *config, bool has_differences)
{
    if (!config->enabled)
        return;
    struct scrape_start *start = &job->starts[job->count];
    job->profiles[job->count++] = (struct pprof_profile){
        .name = name,
        .has_differences = has_differences && !config->delta,
    };
    *start = (struct scrape_start){
        .job_name = job->config->job_name,
        .rules = job->rules,
        .params = job->config->params,
        .interval_ns = times->interval_ns,
        .timeout_ns = times->timeout_ns,
        .more_timeout_ns = config->delta ? times->seconds * NS_PER_S : 0,
        .presets = {{.key = "__scheme__", .value = job->config->scheme == 0 ? "http" : "https"},
                    {.key = "__name__", .value = name},
                    {.key = "__profile_path__", .value = config->path},
                    {.key = "__profile_path_prefix__", .value = job->config->profiling.path_prefix},
                    {.key = "__param_seconds", .value = job->seconds}},
        .presets_count = config->delta ? 5 : 4,
        .path_prefix_label = "__profile_path_prefix__",
        .path_label = "__profile_path__",
    };
}

static bool make_job(struct pprof_receiver *self, const struct pprof_job_config *config,
                     struct error *error)
{
    size_t place = self->jobs_count++;
    struct pprof_job *job = &self->jobs[place];
    const struct pprof_custom_config *custom = config->profiling.custom.items;
    size_t room = PPROF_KINDS + config->profiling.custom.count;
    struct pprof_times times;
    job->config = config;
    job->profiles = mem_zalloc(room * sizeof(*job->profiles));
    job->starts = mem_zalloc(room * sizeof(*job->starts));
    if (!pprof_times_of(config, &times, error) ||
        !scrape_rules_create("relabel_configs", &config->relabel_configs, RELABEL_NAMES_UTF8,
                             &job->rules, error) ||
        !scrape_http_open(&self->https[place], &config->http, component_is_rehearsed(&self->base),
                          error))
        return false;
    snprintf(job->seconds, sizeof(job->seconds), "%llu", (unsigned long long)times.seconds);
    for (size_t i = 0; i < PPROF_KINDS; i++)
        add_profile(job, &times, pprof_kind_name((enum pprof_kind)i), &config->profiling.kinds[i],
                    i == PPROF_MEMORY || i == PPROF_MUTEX || i == PPROF_BLOCK);
    for (size_t i = 0; i < config->profiling.custom.count; i++)
        add_profile(job, &times, custom[i].name, &custom[i].profile, false);
    self->targets[place] = (struct target_job){
        .name = config->job_name,
        .discovery = &config->discovery,
        .starts = job->starts,
        .starts_count = job->count,
        .targets_max = config->targets_max,
    };
    return true;
}

/* The component */

static struct scrape_pool *pool_of(struct component *base)
{
    return &pprof_receiver_of(base)->pool;
}

static bool pprof_receiver_create(struct component *base, struct error *error)
{
    struct pprof_receiver *self = pprof_receiver_of(base);
    struct pprof_receiver_counters *counters = base->counters;
    const struct pprof_receiver_config *config = base->config;
    const struct pprof_job_config *jobs = config->scrape_configs.items;
    size_t count = config->scrape_configs.count;
    self->gzip = gzip_create();
    self->jobs = mem_zalloc((count + 1) * sizeof(*self->jobs));
    self->targets = mem_zalloc((count + 1) * sizeof(*self->targets));
    self->https = mem_zalloc((count + 1) * sizeof(*self->https));
    for (size_t i = 0; i < count; i++)
        if (!make_job(self, &jobs[i], error)) {
            error_at_index(error, i);
            return error_at(error, "scrape_configs");
        }
    const struct scrape_pool_settings settings = {
        .component = base,
        .signal = PROFILES,
        .ops = &ops,
        .jobs = self->targets,
        .https = self->https,
        .jobs_count = count,
        .counters = &counters->scrape,
        .pool_of = pool_of,
    };
    return scrape_pool_init(&self->pool, &settings, error) || error_at(error, "scrape_configs");
}

static bool pprof_receiver_start(struct component *base, struct error *error)
{
    return scrape_pool_start(pool_of(base), error);
}

static void pprof_receiver_stop(struct component *base)
{
    scrape_pool_stop(pool_of(base));
}

static void pprof_receiver_destroy(struct component *base)
{
    struct pprof_receiver *self = pprof_receiver_of(base);
    scrape_pool_fini(&self->pool);
    for (size_t i = 0; i < self->jobs_count; i++) {
        scrape_http_close(&self->https[i]);
        relabel_rules_destroy(self->jobs[i].rules);
        mem_free(self->jobs[i].profiles);
        mem_free(self->jobs[i].starts);
    }
    mem_free(self->jobs);
    mem_free(self->targets);
    mem_free(self->https);
    gzip_destroy(self->gzip);
}

const struct component_factory pprof_receiver_factory = {
    .type = "pprof",
    .kind = RECEIVER,
    .stability = "development",
    .signals = SIGNAL_PROFILES,
    .instance_size = sizeof(struct pprof_receiver),
    .config_size = sizeof(struct pprof_receiver_config),
    .fields = pprof_receiver_fields,
    .counters_size = sizeof(struct pprof_receiver_counters),
    .counters = pprof_receiver_counter_rows,
    .check = pprof_receiver_check,
    .create = pprof_receiver_create,
    .start = pprof_receiver_start,
    .stop = pprof_receiver_stop,
    .destroy = pprof_receiver_destroy,
};
