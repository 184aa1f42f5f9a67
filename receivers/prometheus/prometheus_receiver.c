/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus: scrapes targets and hands on what they expose. The pool of scrapes (receivers/scrape)
 * says when; each target has a memory of its last scrape. Runs on its lane, except the walk through
 * a body, which runs on the lane's helper. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "receivers/prometheus/prometheus_receiver.h"
#include "receivers/prometheus/scrape_job.h"
#include "receivers/prometheus/scrape_walk.h"
#include "receivers/scrape/scrape_http.h"
#include "receivers/scrape/scrape_pool.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

const struct counter_row prometheus_receiver_counter_rows[] = {
    SCRAPE_COUNTERS(struct prometheus_receiver_counters, scrape, SIGNAL_METRICS,
                    "spanflame_prometheus"),
    COUNTER(struct prometheus_receiver_counters, duplicates, COUNTER_SUM,
            "spanflame_prometheus_duplicate_samples",
            "Samples that one response had twice; the first one counts."),
    COUNTER_END,
};

/* A target of this lane. */
struct metrics_scrape {
    struct scrape scrape; /* first */
    struct scrape_memory memory;
    /* of the scrape under way */
    bool is_compressed;
    struct helper_work work;
    struct scrape_walk walk;
};

static struct prometheus_receiver *prometheus_receiver_of(struct component *base)
{
    assert(base->factory->start == prometheus_receiver_start);
    return (struct prometheus_receiver *)base;
}

static const struct prometheus_receiver_config *config_of(const struct prometheus_receiver *self)
{
    return self->config;
}

static struct metrics_scrape *scrape_of(struct scrape *scrape)
{
    return (struct metrics_scrape *)scrape;
}

static struct metrics_scrape *scrape_of_work(struct helper_work *work)
{
    return (struct metrics_scrape *)((char *)work - offsetof(struct metrics_scrape, work));
}

static struct prometheus_receiver *receiver_of(const struct metrics_scrape *scrape)
{
    return prometheus_receiver_of(scrape->scrape.pool->settings.component);
}

/* Scrapes */

static void on_walked(struct helper_work *work)
{
    struct metrics_scrape *scrape = scrape_of_work(work);
    struct prometheus_receiver *self = receiver_of(scrape);
    struct prometheus_receiver_counters *counters = self->base.counters;
    struct scrape_walk *walk = &scrape->walk;
    scrape_drop_body(&scrape->scrape);
    counter_add(&counters->scrape.scrapes, !walk->is_end);
    counter_add(&counters->duplicates, walk->duplicates);
    if (walk->failure[0] != '\0') {
        counter_add(&counters->scrape.failures, 1);
        log_warn(&self->base.logger, "Failed to scrape Prometheus endpoint",
                 log_text("job", walk->job->config->job_name),
                 log_text("target", scrape->scrape.target->shown),
                 log_text("error", walk->failure));
    }
    if (walk->request == NULL || walk->points == 0) {
        buffer_unref(walk->request);
        scrape_ended(&scrape->scrape);
        return;
    }
    scrape_offer(&scrape->scrape, walk->request, walk->points);
}

/* On the helper's thread. */
static void walk_on_helper(struct helper_work *work)
{
    struct metrics_scrape *scrape = scrape_of_work(work);
    struct scrape_walk *walk = &scrape->walk;
    const struct buffer *body = scrape->scrape.body;
    struct buffer *inflated = NULL;
    bool is_compressed = scrape->is_compressed && body != NULL;
    if (walk->failure[0] == '\0' &&
        (!is_compressed ||
         scrape_walk_inflate(walk, buffer_slice(body), scrape->scrape.limit, &inflated))) {
        body = is_compressed ? inflated : body;
        walk->body = body != NULL ? buffer_slice(body) : (struct slice){.size = 0};
        walk->body_bytes = (int64_t)walk->body.size;
    }
    scrape_walk_run(walk);
    buffer_unref(inflated);
}

static void walk(struct metrics_scrape *scrape)
{
    scrape->work.run = walk_on_helper;
    scrape->work.done = on_walked;
    lane_help(receiver_of(scrape)->base.lane, &scrape->work);
}

static void scrape_responded(struct scrape *base, const struct http_result *result)
{
    struct metrics_scrape *scrape = scrape_of(base);
    struct scrape_walk *walked = &scrape->walk;
    if (scrape_is_cut_off(base, result)) {
        scrape_drop_body(base);
        scrape_ended(base);
        return;
    }
    walked->duration_ns = clock_now_ns() - base->started_ns;
    walked->body_bytes = base->is_too_large ? -1 : 0;
    scrape_judge(base, result, walked->failure, sizeof(walked->failure));
    scrape->is_compressed = slice_equal_nocase(result->content_encoding, "gzip");
    walked->protocol = exposition_protocol_of(result->content_type, walked->job->fallback);
    if (walked->failure[0] == '\0' && walked->protocol == EXPOSITION_PROTOCOL_PROTOBUF)
        snprintf(walked->failure, sizeof(walked->failure),
                 "the target responded in protobuf, which spanflame does not read and did not "
                 "ask for");
    walk(scrape);
}

static void prepare(struct metrics_scrape *scrape, uint64_t wall_ns)
{
    struct prometheus_receiver *self = receiver_of(scrape);
    scrape->is_compressed = false;
    scrape->walk = (struct scrape_walk){
        .job = self->jobs[scrape->scrape.target->job],
        .target = scrape->scrape.target,
        .external_labels = &config_of(self)->prometheus.global.external_labels,
        .memory = &scrape->memory,
        .labels = &self->labels,
        .codecs = self->codecs,
        .budget = self->base.budget,
        .trims_suffixes = config_of(self)->trim_metric_suffixes,
        .time_ms = (int64_t)(wall_ns / NS_PER_MS),
    };
}

static void scrape_due(struct scrape *base)
{
    struct metrics_scrape *scrape = scrape_of(base);
    prepare(scrape, clock_wall_ns());
    const struct scrape_limits_config *limits = &scrape->walk.job->settings.limits;
    if (!scrape_has_too_many(base)) {
        scrape_get(base, limits->body_bytes_max > 0 ? limits->body_bytes_max : UINT64_MAX);
        return;
    }
    snprintf(scrape->walk.failure, sizeof(scrape->walk.failure),
             "target_limit exceeded: the job has more than %llu targets",
             (unsigned long long)limits->targets_max);
    walk(scrape);
}

static void scrape_leave(struct scrape *base)
{
    struct metrics_scrape *scrape = scrape_of(base);
    prepare(scrape, base->stale_ns);
    scrape->walk.is_end = true;
    walk(scrape);
}

static void scrape_open(struct scrape *base)
{
    struct metrics_scrape *scrape = scrape_of(base);
    scrape_memory_init(&scrape->memory, receiver_of(scrape)->base.budget);
}

static void scrape_close(struct scrape *base)
{
    scrape_memory_fini(&scrape_of(base)->memory);
}

static const struct scrape_pool_ops ops = {
    .scrape_size = sizeof(struct metrics_scrape),
    .sends_timeout = true,
    .open = scrape_open,
    .due = scrape_due,
    .responded = scrape_responded,
    .leave = scrape_leave,
    .close = scrape_close,
};

/* The component */

static struct scrape_pool *pool_of(struct component *base)
{
    return &prometheus_receiver_of(base)->pool;
}

static bool make_job(struct prometheus_receiver *self, const struct scrape_job_config *config,
                     struct error *error)
{
    size_t place = self->jobs_count++;
    struct scrape_job *job = scrape_job_create(&config_of(self)->prometheus.global, config, error);
    self->jobs[place] = job;
    if (job == NULL || !scrape_http_open(&self->https[place], &config->http,
                                         component_is_rehearsed(&self->base), error))
        return false;
    scrape_http_add_header(&self->https[place], "Accept", job->accept);
    scrape_http_add_header(&self->https[place], "Accept-Encoding",
                           config->enable_compression ? "gzip" : "identity");
    self->targets[place] = (struct target_job){
        .name = config->job_name,
        .discovery = &config->discovery,
        .starts = &job->start,
        .starts_count = 1,
        .targets_max = job->settings.limits.targets_max,
    };
    return true;
}

/* Of a job in a file the keys are not in the configuration. */
static bool fail_at_job(const struct prometheus_receiver *self, size_t place, struct error *error)
{
    if (place < config_of(self)->prometheus.scrape_configs.count) {
        error_at_index(error, place);
        return error_at(error, "scrape_configs");
    }
    error->steps_count = 0;
    error_prefix(error, "job %s", self->list.jobs[place]->job_name);
    return error_at(error, "scrape_config_files");
}

bool prometheus_receiver_open(struct component *base,
                              const struct prometheus_receiver_config *receiver_config,
                              struct error *error)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    self->config = receiver_config;
    struct prometheus_receiver_counters *counters = base->counters;
    const struct prometheus_config *config = &config_of(self)->prometheus;
    if (!scrape_job_list_read(&self->list, config, error))
        return false;
    size_t count = self->list.count;
    self->codecs = codec_box_create(base->budget);
    relabel_labels_init(&self->labels);
    self->jobs = (struct scrape_job **)mem_zalloc((count + 1) * sizeof(struct scrape_job *));
    self->targets = mem_zalloc((count + 1) * sizeof(*self->targets));
    self->https = mem_zalloc((count + 1) * sizeof(*self->https));
    for (size_t i = 0; i < count; i++)
        if (!make_job(self, self->list.jobs[i], error))
            return fail_at_job(self, i, error);
    const struct scrape_pool_settings settings = {
        .component = base,
        .signal = METRICS,
        .ops = &ops,
        .jobs = self->targets,
        .https = self->https,
        .jobs_count = count,
        .initial_offset_ns = config_of(self)->initial_scrape_offset_ns,
        .scrapes_at_stop = config_of(self)->scrape_on_shutdown,
        .counters = &counters->scrape,
        .pool_of = pool_of,
    };
    return scrape_pool_init(&self->pool, &settings, error) || error_at(error, "scrape_configs");
}

static bool prometheus_receiver_create(struct component *base, struct error *error)
{
    return prometheus_receiver_open(base, base->config, error) || error_at(error, "config");
}

bool prometheus_receiver_start(struct component *base, struct error *error)
{
    return scrape_pool_start(pool_of(base), error);
}

void prometheus_receiver_stop(struct component *base)
{
    scrape_pool_stop(pool_of(base));
}

void prometheus_receiver_destroy(struct component *base)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    scrape_pool_fini(&self->pool);
    for (size_t i = 0; i < self->jobs_count; i++) {
        scrape_http_close(&self->https[i]);
        scrape_job_destroy(self->jobs[i]);
    }
    mem_free(self->jobs);
    mem_free(self->targets);
    mem_free(self->https);
    relabel_labels_fini(&self->labels);
    codec_box_destroy(self->codecs);
    scrape_job_list_free(&self->list);
}

static bool check(const void *section, struct error *error)
{
    const struct prometheus_receiver_config *config = section;
    struct scrape_job_list jobs = {.count = 0};
    if (!prometheus_receiver_check(config, error))
        return false;
    bool is_valid = scrape_job_list_read(&jobs, &config->prometheus, error);
    scrape_job_list_free(&jobs);
    return is_valid || error_at(error, "config");
}

const struct component_factory prometheus_receiver_factory = {
    .type = "prometheus",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct prometheus_receiver),
    .config_size = sizeof(struct prometheus_receiver_config),
    .fields = prometheus_receiver_fields,
    .counters_size = sizeof(struct prometheus_receiver_counters),
    .counters = prometheus_receiver_counter_rows,
    .check = check,
    .create = prometheus_receiver_create,
    .start = prometheus_receiver_start,
    .stop = prometheus_receiver_stop,
    .destroy = prometheus_receiver_destroy,
};
