/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus: scrapes targets and hands on what they expose. The targets of all jobs are dealt to
 * the lanes; each has a timer, a client and a memory of its last scrape. Runs on its lane, except
 * the walk through a body, which runs on the lane's helper. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "receivers/prometheus/scrape_job.h"
#include "receivers/prometheus/scrape_walk.h"
#include "receivers/scrape/scrape_http.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/net/client/http_client.h"

enum {
    BODY_BYTES_FIRST = 16 * 1024,
    TIMEOUT_TEXT_BYTES_MAX = 32,
};

#define NO_ROOM "the memory budget has no room for the response"

struct prometheus_receiver_counters {
    counter accepted[SIGNAL_KINDS];
    counter refused[SIGNAL_KINDS];
    counter scrapes;
    counter failures;
    counter targets;
    counter duplicates;
};

#define OWNER struct prometheus_receiver_counters
static const struct counter_row prometheus_receiver_counter_rows[] = {
    COUNTER_BY_SIGNAL(OWNER, accepted, COUNTER_SUM, "otelcol_receiver_accepted_%s", SIGNAL_METRICS,
                      "transport", "http",
                      "Number of items successfully pushed into the pipeline."),
    COUNTER_BY_SIGNAL(OWNER, refused, COUNTER_SUM, "otelcol_receiver_refused_%s", SIGNAL_METRICS,
                      "transport", "http",
                      "Number of items that could not be pushed into the pipeline."),
    COUNTER(OWNER, targets, COUNTER_GAUGE, "spanflame_prometheus_targets",
            "Number of targets that are scraped."),
    COUNTER(OWNER, scrapes, COUNTER_SUM, "spanflame_prometheus_target_scrapes",
            "Number of scrapes of targets."),
    COUNTER(OWNER, failures, COUNTER_SUM, "spanflame_prometheus_target_failures",
            "Number of scrapes that failed."),
    COUNTER(OWNER, duplicates, COUNTER_SUM, "spanflame_prometheus_duplicate_samples",
            "Samples that one response had twice; the first one counts."),
    COUNTER_END,
};
#undef OWNER

/* A target of this lane. */
struct scrape {
    struct prometheus_receiver *receiver;
    struct scrape_target *target;
    struct http_client *client;
    struct config_pair *headers;
    char timeout_text[TIMEOUT_TEXT_BYTES_MAX]; /* of a header */
    struct timer timer;
    uint64_t due_ns; /* when the timer fires, on clock_now_ns's scale */
    struct scrape_memory memory;
    struct scrape *next;
    /* of the scrape under way */
    bool is_running;
    uint64_t started_ns;
    uint64_t limit;      /* of the body, as it comes and inflated; UINT64_MAX: none */
    struct buffer *body; /* NULL: nothing came yet */
    bool is_compressed;
    bool has_no_room; /* the budget refused the body */
    struct helper_work work;
    struct scrape_walk walk;
    struct receipt receipt;
    uint64_t offered; /* points */
};

struct scrape_group {
    struct scrape_job *job;
    struct scrape_http http;
    bool has_too_many; /* target_limit */
};

struct prometheus_receiver {
    struct component base;
    struct scrape_group *groups; /* one for each of scrape_configs */
    size_t groups_count;
    struct scrape *scrapes;
    struct relabel_labels labels; /* of the walks */
    struct codec_box *codecs;     /* of the walks */
    struct stop_latch users;
    bool is_stopping;
};

extern const struct component_factory prometheus_receiver_factory;

static struct prometheus_receiver *prometheus_receiver_of(struct component *base)
{
    assert(base->factory == &prometheus_receiver_factory);
    return (struct prometheus_receiver *)base;
}

static const struct prometheus_receiver_config *config_of(const struct prometheus_receiver *self)
{
    return self->base.config;
}

/* Targets */

static struct scrape_group *group_of(struct prometheus_receiver *self,
                                     const struct scrape_target *target)
{
    return &self->groups[target->job];
}

static void on_timer(struct timer *timer, void *arg);

/* When the first scrape is due: spread over the interval by what the target is, and at the same
 * place of it after each start. */
static uint64_t first_delay_ns(const struct prometheus_receiver *self,
                               const struct scrape_target *target)
{
    uint64_t interval_ns = target->interval_ns;
    uint64_t passed_ns = clock_wall_ns() % interval_ns;
    uint64_t place_ns = target->hash % interval_ns;
    return config_of(self)->initial_scrape_offset_ns +
           (interval_ns - passed_ns + place_ns) % interval_ns;
}

static bool scrape_open(struct prometheus_receiver *self, struct scrape *scrape,
                        struct error *error)
{
    const struct scrape_target *target = scrape->target;
    struct scrape_http *http = &group_of(self, target)->http;
    struct http_client_settings settings;
    scrape_http_fill(http, &settings);
    scrape->headers = mem_alloc((http->headers_count + 1) * sizeof(*scrape->headers));
    memcpy(scrape->headers, http->headers, http->headers_count * sizeof(*scrape->headers));
    snprintf(scrape->timeout_text, sizeof(scrape->timeout_text), "%g",
             (double)target->timeout_ns / NS_PER_S);
    scrape->headers[http->headers_count] = (struct config_pair){
        .key = "X-Prometheus-Scrape-Timeout-Seconds", .value = scrape->timeout_text};
    settings.lane = self->base.lane;
    settings.url = target->url;
    settings.headers = scrape->headers;
    settings.headers_count = http->headers_count + 1;
    settings.timeout_ns = target->timeout_ns;
    scrape->client = http_client_create(&settings, error);
    return scrape->client != NULL;
}

/* Takes the target. */
static bool add_scrape(struct prometheus_receiver *self, struct scrape_target *target,
                       struct error *error)
{
    struct prometheus_receiver_counters *counters = self->base.counters;
    struct scrape *scrape = mem_zalloc(sizeof(*scrape));
    scrape->receiver = self;
    scrape->target = target;
    scrape_memory_init(&scrape->memory, self->base.budget);
    timer_init(&scrape->timer, on_timer, scrape);
    scrape->next = self->scrapes;
    self->scrapes = scrape;
    if (!scrape_open(self, scrape, error))
        return false;
    uint64_t delay_ns = first_delay_ns(self, target);
    scrape->due_ns = clock_now_ns() + delay_ns;
    lane_timer_start(self->base.lane, &scrape->timer, delay_ns);
    stop_latch_hold(&self->users);
    counter_set(&counters->targets, counter_read(&counters->targets) + 1);
    return true;
}

/* What the building of targets goes through. */
struct deal {
    size_t lanes;
    size_t dealt;
    struct series_set known; /* targets by hash: equal ones are scraped once */
    struct relabel_labels labels;
};

/* Adds the target if this lane is its. False: error has the reason. */
static bool deal_target(struct prometheus_receiver *self, struct deal *deal,
                        struct scrape_target *target, struct error *error)
{
    bool is_known = series_set_find(&deal->known, target->hash | 1) != NULL;
    bool is_ours = !is_known && deal->dealt % deal->lanes == lane_index(self->base.lane);
    if (!is_known && series_set_add(&deal->known, target->hash | 1) == NULL)
        is_ours = true; /* rather twice than never */
    deal->dealt += !is_known;
    if (is_ours)
        return add_scrape(self, target, error);
    scrape_target_unref(target);
    return true;
}

/* The labels of a set; free with mem_free. */
static struct prometheus_label *labels_of(const struct config_pairs *pairs)
{
    struct prometheus_label *labels = mem_alloc((pairs->count + 1) * sizeof(*labels));
    for (size_t i = 0; i < pairs->count; i++)
        labels[i] = (struct prometheus_label){.name = slice_of_text(pairs->pairs[i].key),
                                              .value = slice_of_text(pairs->pairs[i].value)};
    return labels;
}

static bool deal_set(struct prometheus_receiver *self, struct deal *deal, size_t place,
                     const struct scrape_static_config *set, struct error *error)
{
    const struct scrape_job *job = self->groups[place].job;
    struct prometheus_label *labels = labels_of(&set->labels);
    bool is_dealt = true;
    for (size_t i = 0; is_dealt && i < set->targets.count; i++) {
        struct scrape_target *target =
            scrape_target_create(&job->start, slice_of_text(set->targets.texts[i]), labels,
                                 set->labels.count, &deal->labels, NULL, error);
        if (target == NULL && error->text[0] != '\0' && lane_index(self->base.lane) == 0)
            log_warn(&self->base.logger, "a target is left out",
                     log_text("job", job->config->job_name),
                     log_text("target", set->targets.texts[i]), log_text("error", error->text));
        if (target != NULL)
            target->job = place;
        is_dealt = target == NULL || deal_target(self, deal, target, error);
    }
    mem_free(labels);
    return is_dealt;
}

static bool deal_group(struct prometheus_receiver *self, struct deal *deal, size_t place,
                       struct error *error)
{
    struct scrape_group *group = &self->groups[place];
    const struct config_sections *sections = &group->job->config->discovery.static_configs;
    const struct scrape_static_config *sets = sections->items;
    size_t before = deal->dealt;
    for (size_t i = 0; i < sections->count; i++)
        if (!deal_set(self, deal, place, &sets[i], error))
            return false;
    uint64_t max = group->job->settings.limits.targets_max;
    group->has_too_many = max > 0 && deal->dealt - before > max;
    return true;
}

static bool prometheus_receiver_start(struct component *base, struct error *error)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    struct deal deal = {.lanes = 0};
    for (const struct component *c = base->first; c != NULL; c = c->next_lane)
        deal.lanes++;
    series_set_init(&deal.known, NULL);
    relabel_labels_init(&deal.labels);
    bool is_started = true;
    for (size_t i = 0; i < self->groups_count && is_started; i++)
        is_started = deal_group(self, &deal, i, error);
    relabel_labels_fini(&deal.labels);
    series_set_fini(&deal.known);
    return is_started;
}

/* Scrapes */

static void scrape_ended(struct scrape *scrape);

static void end_of_offer(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct scrape *scrape = arg;
    struct prometheus_receiver *self = scrape->receiver;
    struct prometheus_receiver_counters *counters = self->base.counters;
    assert(receipt == &scrape->receipt);
    bool is_accepted = outcome->verdict == ACCEPTED;
    counter_add(is_accepted ? &counters->accepted[METRICS] : &counters->refused[METRICS],
                scrape->offered);
    if (!is_accepted)
        log_warn(&self->base.logger, "a scrape's metrics were refused and are lost",
                 log_text("target", scrape->target->url), log_text("error", outcome->message),
                 log_int("data_points", (int64_t)scrape->offered));
    scrape_ended(scrape);
}

static void on_walked(struct helper_work *work)
{
    struct scrape *scrape = (struct scrape *)((char *)work - offsetof(struct scrape, work));
    struct prometheus_receiver *self = scrape->receiver;
    struct prometheus_receiver_counters *counters = self->base.counters;
    struct scrape_walk *walk = &scrape->walk;
    buffer_unref(scrape->body);
    scrape->body = NULL;
    counter_add(&counters->scrapes, 1);
    counter_add(&counters->duplicates, walk->duplicates);
    if (walk->failure[0] != '\0') {
        counter_add(&counters->failures, 1);
        log_warn(&self->base.logger, "Failed to scrape Prometheus endpoint",
                 log_text("job", walk->job->config->job_name),
                 log_text("target", scrape->target->url), log_text("error", walk->failure));
    }
    if (walk->request == NULL || walk->points == 0) {
        buffer_unref(walk->request);
        scrape_ended(scrape);
        return;
    }
    struct batch *batch = batch_create(METRICS, 1);
    batch_append(batch, walk->request, buffer_slice(walk->request));
    batch->items = walk->points;
    buffer_unref(walk->request);
    scrape->offered = walk->points;
    receipt_init(&scrape->receipt, end_of_offer, scrape);
    outlet_offer(self->base.outlets[METRICS], batch, &scrape->receipt);
    batch_unref(batch);
}

/* Inflates the body if need be. False: walk->failure says why not. */
static bool inflate(struct scrape *scrape, struct buffer **ret_body)
{
    struct scrape_walk *walk = &scrape->walk;
    *ret_body = NULL;
    if (!scrape->is_compressed || scrape->body == NULL)
        return true;
    enum codec_result result = codec_inflate(walk->codecs, CODEC_GZIP, buffer_slice(scrape->body),
                                             scrape->limit, ret_body);
    if (result == CODEC_TOO_LARGE) {
        walk->body_bytes = -1;
        snprintf(walk->failure, sizeof(walk->failure),
                 "body_size_limit exceeded: the response inflates to more than %llu bytes",
                 (unsigned long long)scrape->limit);
    } else if (result == CODEC_NO_BUDGET) {
        snprintf(walk->failure, sizeof(walk->failure), NO_ROOM);
    } else if (result != CODEC_OK) {
        snprintf(walk->failure, sizeof(walk->failure), "the response is no sound gzip: %s",
                 codec_reason(walk->codecs));
    }
    return result == CODEC_OK;
}

/* On the helper's thread. */
static void walk_on_helper(struct helper_work *work)
{
    struct scrape *scrape = (struct scrape *)((char *)work - offsetof(struct scrape, work));
    struct scrape_walk *walk = &scrape->walk;
    struct buffer *inflated = NULL;
    if (walk->failure[0] == '\0' && inflate(scrape, &inflated)) {
        const struct buffer *body = inflated != NULL ? inflated : scrape->body;
        walk->body = body != NULL ? buffer_slice(body) : (struct slice){.size = 0};
        walk->body_bytes = (int64_t)walk->body.size;
    }
    scrape_walk_run(walk);
    buffer_unref(inflated);
}

static bool take_body(struct slice bytes, void *arg)
{
    struct scrape *scrape = arg;
    size_t size = scrape->body != NULL ? scrape->body->size : 0;
    if (size + bytes.size > scrape->limit) {
        scrape->walk.body_bytes = -1;
        return false;
    }
    if (scrape->body == NULL)
        scrape->body = buffer_try_create(scrape->receiver->base.budget,
                                         bytes.size > BODY_BYTES_FIRST ? bytes.size
                                                                       : (size_t)BODY_BYTES_FIRST);
    else if (size + bytes.size > scrape->body->capacity) {
        size_t capacity = scrape->body->capacity * 2;
        struct buffer *grown = buffer_try_grow(
            scrape->body, capacity > size + bytes.size ? capacity : size + bytes.size);
        scrape->has_no_room = grown == NULL;
        scrape->body = grown != NULL ? grown : scrape->body;
    }
    scrape->has_no_room |= scrape->body == NULL;
    if (scrape->has_no_room)
        return false;
    memcpy(scrape->body->data + size, bytes.data, bytes.size);
    scrape->body->size = size + bytes.size;
    return true;
}

/* Why the exchange is no scrape; false: it is one. */
static bool judge(const struct scrape *scrape, const struct http_result *result,
                  char failure[SCRAPE_FAILURE_BYTES_MAX])
{
    if (scrape->walk.body_bytes < 0)
        snprintf(failure, SCRAPE_FAILURE_BYTES_MAX,
                 "body_size_limit exceeded: the response has more than %llu bytes",
                 (unsigned long long)scrape->limit);
    else if (scrape->has_no_room)
        snprintf(failure, SCRAPE_FAILURE_BYTES_MAX, NO_ROOM);
    else if (result->status == 200 && result->is_cut)
        snprintf(failure, SCRAPE_FAILURE_BYTES_MAX, "%s",
                 scrape->walk.duration_ns >= scrape->target->timeout_ns
                     ? "context deadline exceeded: scrape_timeout passed before the response's end"
                     : "the response ended early");
    else if (result->status == 0)
        snprintf(failure, SCRAPE_FAILURE_BYTES_MAX, "%s", result->error);
    else if (result->status != 200)
        snprintf(failure, SCRAPE_FAILURE_BYTES_MAX, "server returned HTTP status %u",
                 result->status);
    else
        return false;
    return true;
}

static void on_response(const struct http_result *result, void *arg)
{
    struct scrape *scrape = arg;
    struct prometheus_receiver *self = scrape->receiver;
    struct scrape_walk *walk = &scrape->walk;
    if (self->is_stopping && result->status == 0 && !config_of(self)->scrape_on_shutdown) {
        buffer_unref(scrape->body);
        scrape->body = NULL;
        scrape_ended(scrape);
        return;
    }
    walk->duration_ns = clock_now_ns() - scrape->started_ns;
    judge(scrape, result, walk->failure);
    scrape->is_compressed = slice_equal_nocase(result->content_encoding, "gzip");
    walk->protocol = exposition_protocol_of(result->content_type, walk->job->fallback);
    if (walk->failure[0] == '\0' && walk->protocol == EXPOSITION_PROTOCOL_PROTOBUF)
        snprintf(walk->failure, sizeof(walk->failure),
                 "the target responded in protobuf, which spanflame does not read and did not "
                 "ask for");
    scrape->work.run = walk_on_helper;
    scrape->work.done = on_walked;
    lane_help(self->base.lane, &scrape->work);
}

static void scrape_begin(struct scrape *scrape)
{
    struct prometheus_receiver *self = scrape->receiver;
    const struct scrape_group *group = group_of(self, scrape->target);
    uint64_t limit = group->job->settings.limits.body_bytes_max;
    scrape->is_running = true;
    scrape->started_ns = clock_now_ns();
    scrape->limit = limit > 0 ? limit : UINT64_MAX;
    scrape->has_no_room = false;
    scrape->is_compressed = false;
    scrape->walk = (struct scrape_walk){
        .job = group->job,
        .target = scrape->target,
        .external_labels = &config_of(self)->prometheus.global.external_labels,
        .memory = &scrape->memory,
        .labels = &self->labels,
        .codecs = self->codecs,
        .budget = self->base.budget,
        .trims_suffixes = config_of(self)->trim_metric_suffixes,
        .time_ms = (int64_t)(clock_wall_ns() / NS_PER_MS),
    };
    if (group->has_too_many) {
        snprintf(scrape->walk.failure, sizeof(scrape->walk.failure),
                 "target_limit exceeded: the job has more than %llu targets",
                 (unsigned long long)group->job->settings.limits.targets_max);
        scrape->work.run = walk_on_helper;
        scrape->work.done = on_walked;
        lane_help(self->base.lane, &scrape->work);
        return;
    }
    const struct http_post get = {
        .sink = {.take = take_body, .arg = scrape},
        .done = on_response,
        .arg = scrape,
    };
    http_client_post(scrape->client, &get);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct scrape *scrape = arg;
    assert(timer == &scrape->timer);
    uint64_t now_ns = clock_now_ns();
    uint64_t interval_ns = scrape->target->interval_ns;
    /* Times that were missed are skipped. */
    scrape->due_ns += ((now_ns - scrape->due_ns) / interval_ns + 1) * interval_ns;
    lane_timer_start(scrape->receiver->base.lane, timer, scrape->due_ns - now_ns);
    if (!scrape->is_running)
        scrape_begin(scrape);
}

/* The end */

static void on_closed(void *arg)
{
    struct scrape *scrape = arg;
    stop_latch_release(&scrape->receiver->users);
}

static void scrape_close(struct scrape *scrape)
{
    http_client_close(scrape->client, on_closed, scrape);
}

static void scrape_ended(struct scrape *scrape)
{
    scrape->is_running = false;
    if (scrape->receiver->is_stopping)
        scrape_close(scrape);
}

static void on_stopped(void *arg)
{
    component_stopped(arg);
}

static void prometheus_receiver_stop(struct component *base)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    self->is_stopping = true;
    for (struct scrape *scrape = self->scrapes; scrape != NULL; scrape = scrape->next) {
        if (scrape->client == NULL)
            continue;
        lane_timer_stop(base->lane, &scrape->timer);
        if (scrape->is_running)
            continue;
        if (config_of(self)->scrape_on_shutdown)
            scrape_begin(scrape);
        else
            scrape_close(scrape);
    }
    stop_latch_release(&self->users);
}

static bool open_http(struct scrape_group *group, bool is_rehearsed, struct error *error)
{
    const struct scrape_job_config *config = group->job->config;
    if (!scrape_http_open(&group->http, &config->http, is_rehearsed, error))
        return false;
    scrape_http_add_header(&group->http, "Accept", group->job->accept);
    scrape_http_add_header(&group->http, "Accept-Encoding",
                           config->enable_compression ? "gzip" : "identity");
    return true;
}

static bool prometheus_receiver_create(struct component *base, struct error *error)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    const struct prometheus_config *config = &config_of(self)->prometheus;
    const struct scrape_job_config *jobs = config->scrape_configs.items;
    self->users = (struct stop_latch){.fn = on_stopped, .arg = base, .pending = 1};
    self->codecs = codec_box_create(base->budget);
    relabel_labels_init(&self->labels);
    self->groups = mem_zalloc((config->scrape_configs.count + 1) * sizeof(*self->groups));
    for (size_t i = 0; i < config->scrape_configs.count; i++) {
        struct scrape_group *group = &self->groups[self->groups_count++];
        group->job = scrape_job_create(&config->global, &jobs[i], error);
        bool is_rehearsed = component_is_rehearsed(base);
        if (group->job == NULL || !open_http(group, is_rehearsed, error)) {
            error_at_index(error, i);
            return error_at(error, "scrape_configs");
        }
    }
    return true;
}

static void prometheus_receiver_destroy(struct component *base)
{
    struct prometheus_receiver *self = prometheus_receiver_of(base);
    while (self->scrapes != NULL) {
        struct scrape *scrape = self->scrapes;
        self->scrapes = scrape->next;
        http_client_destroy(scrape->client);
        scrape_memory_fini(&scrape->memory);
        scrape_target_unref(scrape->target);
        mem_free(scrape->headers);
        mem_free(scrape);
    }
    for (size_t i = 0; i < self->groups_count; i++) {
        scrape_http_close(&self->groups[i].http);
        scrape_job_destroy(self->groups[i].job);
    }
    mem_free(self->groups);
    relabel_labels_fini(&self->labels);
    codec_box_destroy(self->codecs);
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
    .check = prometheus_receiver_check,
    .create = prometheus_receiver_create,
    .start = prometheus_receiver_start,
    .stop = prometheus_receiver_stop,
    .destroy = prometheus_receiver_destroy,
};
