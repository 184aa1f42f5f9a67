/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapes targets in time. Runs on its lane. */
#include "receivers/scrape/scrape_pool.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "receivers/scrape/target_discovery.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/net/client/http_client.h"

#define TURN_NS ((uint64_t)1 * NS_PER_MS) /* between parts of a list */

/* Scrapes */

static size_t scrape_bytes(const struct scrape_pool *pool)
{
    return pool->settings.ops->scrape_size + SCRAPE_CLIENT_BYTES;
}

/* When the first scrape is due: spread over the interval by what the target is, and at the same
 * place of it after each start. */
static uint64_t next_delay_ns(const struct scrape_target *target)
{
    uint64_t interval_ns = target->interval_ns;
    uint64_t passed_ns = clock_wall_ns() % interval_ns;
    uint64_t place_ns = target->place % interval_ns;
    return (interval_ns - passed_ns + place_ns) % interval_ns;
}

static void arm(struct scrape *scrape, uint64_t delay_ns)
{
    scrape->due_ns = clock_now_ns() + delay_ns;
    lane_timer_start(scrape->pool->lane, &scrape->timer, delay_ns);
}

static void on_timer(struct timer *timer, void *arg);

static struct http_client *make_client(struct scrape_pool *pool, const struct scrape_target *target,
                                       struct config_pair *headers, struct error *error)
{
    struct scrape_http *http = &pool->settings.https[target->job];
    struct http_client_settings settings;
    scrape_http_fill(http, &settings);
    memcpy(headers, http->headers, http->headers_count * sizeof(*headers));
    settings.lane = pool->lane;
    settings.url = target->url;
    settings.headers = headers;
    settings.headers_count = http->headers_count + pool->settings.ops->sends_timeout;
    settings.timeout_ns = target->timeout_ns;
    return http_client_create(&settings, error);
}

static void print_timeout(const struct scrape_target *target,
                          char text[SCRAPE_TIMEOUT_TEXT_BYTES_MAX])
{
    snprintf(text, SCRAPE_TIMEOUT_TEXT_BYTES_MAX, "%g", (double)target->timeout_ns / NS_PER_S);
}

static struct config_pair *make_headers(const struct scrape_pool *pool,
                                        const struct scrape_target *target, char *timeout_text)
{
    size_t count = pool->settings.https[target->job].headers_count;
    struct config_pair *headers = mem_zalloc((count + 1) * sizeof(*headers));
    headers[count] =
        (struct config_pair){.key = "X-Prometheus-Scrape-Timeout-Seconds", .value = timeout_text};
    return headers;
}

static void free_scrape(struct scrape *scrape)
{
    struct scrape_pool *pool = scrape->pool;
    if (pool->unswept == scrape)
        pool->unswept = scrape->next;
    if (scrape->previous != NULL)
        scrape->previous->next = scrape->next;
    else
        pool->first = scrape->next;
    if (scrape->next != NULL)
        scrape->next->previous = scrape->previous;
    http_client_destroy(scrape->client);
    pool->settings.ops->close(scrape);
    scrape_drop_body(scrape);
    scrape_target_unref(scrape->target);
    mem_free(scrape->headers);
    mem_free(scrape);
    budget_return(pool->settings.component->budget, scrape_bytes(pool));
}

static void on_last(void *arg)
{
    struct scrape *scrape = arg;
    struct scrape_pool *pool = scrape->pool;
    free_scrape(scrape);
    stop_latch_release(&pool->users);
}

/* False: the budget has no room, or error has the reason. */
static bool add_scrape(struct scrape_pool *pool, struct scrape_target *target, struct error *error)
{
    const struct scrape_pool_settings *settings = &pool->settings;
    if (!budget_try_take(settings->component->budget, scrape_bytes(pool))) {
        pool->is_short = true;
        return error_set(error, "the memory budget has no room to scrape the target; it is tried "
                                "again later");
    }
    struct scrape *scrape = mem_zalloc(settings->ops->scrape_size);
    scrape->pool = pool;
    scrape->target = scrape_target_ref(target);
    scrape->generation = pool->generation;
    scrape->last = (struct lane_job){.fn = on_last, .arg = scrape};
    timer_init(&scrape->timer, on_timer, scrape);
    scrape->next = pool->first;
    if (pool->first != NULL)
        pool->first->previous = scrape;
    pool->first = scrape;
    settings->ops->open(scrape);
    print_timeout(target, scrape->timeout_text);
    scrape->headers = make_headers(pool, target, scrape->timeout_text);
    scrape->client = make_client(pool, target, scrape->headers, error);
    if (scrape->client != NULL && !hash_table_add(&pool->table, target->hash, scrape)) {
        http_client_destroy(scrape->client);
        scrape->client = NULL;
        error_set(error, "there is no memory to scrape the target");
    }
    if (scrape->client == NULL) {
        free_scrape(scrape);
        return false;
    }
    arm(scrape, next_delay_ns(target) + settings->initial_offset_ns);
    stop_latch_hold(&pool->users);
    counter_set(&settings->counters->targets, counter_read(&settings->counters->targets) + 1);
    return true;
}

static void on_closed(void *arg)
{
    struct scrape *scrape = arg;
    scrape->has_no_client = true;
    if (scrape->is_closing)
        on_last(scrape);
}

static void close_scrape(struct scrape *scrape)
{
    struct scrape_pool *pool = scrape->pool;
    assert(!scrape->is_closing && !scrape->is_running);
    scrape->is_closing = true;
    lane_timer_stop(pool->lane, &scrape->timer);
    hash_table_remove(&pool->table, scrape->target->hash, scrape);
    struct scrape_counters *counters = pool->settings.counters;
    counter_set(&counters->targets, counter_read(&counters->targets) - 1);
    if (!scrape->is_cut)
        http_client_close(scrape->client, on_closed, scrape);
    else if (scrape->has_no_client)
        lane_defer(pool->lane, &scrape->last);
}

static void on_offered(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct scrape *scrape = arg;
    const struct component *component = scrape->pool->settings.component;
    struct scrape_counters *counters = scrape->pool->settings.counters;
    enum signal_kind signal = scrape->pool->settings.signal;
    assert(receipt == &scrape->receipt);
    bool is_accepted = outcome->verdict == ACCEPTED;
    counter_add(is_accepted ? &counters->accepted[signal] : &counters->refused[signal],
                scrape->offered);
    if (!is_accepted)
        log_warn(&component->logger, "what a scrape brought was refused and is lost",
                 log_text("target", scrape->target->shown), log_text("error", outcome->message),
                 log_int("items", (int64_t)scrape->offered));
    scrape_ended(scrape);
}

void scrape_offer(struct scrape *scrape, struct buffer *request, uint64_t items)
{
    const struct component *component = scrape->pool->settings.component;
    enum signal_kind signal = scrape->pool->settings.signal;
    struct batch *batch = batch_create(signal, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = items;
    buffer_unref(request);
    scrape->offered = items;
    receipt_init(&scrape->receipt, on_offered, scrape);
    outlet_offer(component->outlets[signal], batch, &scrape->receipt);
    batch_unref(batch);
}

void scrape_ended(struct scrape *scrape)
{
    assert(scrape->is_running);
    scrape->is_running = false;
    bool has_nothing_to_mark = scrape->is_leaving && scrape->pool->settings.ops->leave == NULL;
    if (scrape->pool->is_stopping || has_nothing_to_mark || scrape->is_ending)
        close_scrape(scrape);
}

static void begin(struct scrape *scrape)
{
    scrape->is_running = true;
    scrape->has_begun = true;
    scrape->pool->settings.ops->due(scrape);
}

/* As Prometheus has it: the end's time is that of the first scrape that was missed, and it is
 * marked a good interval later, in case the target comes back. */
static void on_missed(struct scrape *scrape)
{
    uint64_t interval_ns = scrape->target->interval_ns;
    if (!scrape->has_missed) {
        scrape->has_missed = true;
        scrape->stale_ns = clock_wall_ns();
        arm(scrape, interval_ns + interval_ns / 10);
    } else if (scrape->is_running) {
        arm(scrape, interval_ns / 10 + 1);
    } else {
        scrape->is_ending = true;
        scrape->is_running = true;
        scrape->pool->settings.ops->leave(scrape);
    }
}

static void on_timer(struct timer *timer, void *arg)
{
    struct scrape *scrape = arg;
    assert(timer == &scrape->timer);
    if (scrape->is_leaving) {
        on_missed(scrape);
        return;
    }
    uint64_t now_ns = clock_now_ns();
    uint64_t interval_ns = scrape->target->interval_ns;
    /* Times that were missed are skipped. */
    scrape->due_ns += ((now_ns - scrape->due_ns) / interval_ns + 1) * interval_ns;
    lane_timer_start(scrape->pool->lane, timer, scrape->due_ns - now_ns);
    if (!scrape->is_running)
        begin(scrape);
}

/* The target is gone. */
static void leave(struct scrape *scrape)
{
    if (scrape->is_leaving)
        return;
    scrape->is_leaving = true;
    bool has_nothing_to_mark = !scrape->has_begun || scrape->pool->settings.ops->leave == NULL;
    if (has_nothing_to_mark && !scrape->is_running)
        close_scrape(scrape);
}

/* The target is back before its end was marked. */
static void come_back(struct scrape *scrape)
{
    scrape->is_leaving = false;
    if (scrape->has_missed)
        arm(scrape, next_delay_ns(scrape->target));
    scrape->has_missed = false;
}

bool scrape_has_too_many(const struct scrape *scrape)
{
    return scrape->pool->list->has_too_many[scrape->target->job];
}

bool scrape_is_cut_off(const struct scrape *scrape, const struct http_result *result)
{
    const struct scrape_pool *pool = scrape->pool;
    return pool->is_stopping && result->status == 0 && !pool->settings.scrapes_at_stop;
}

bool scrape_judge(const struct scrape *scrape, const struct http_result *result, char *failure,
                  size_t failure_bytes)
{
    bool is_late = clock_now_ns() - scrape->started_ns >= scrape->target->timeout_ns;
    if (scrape->is_too_large)
        snprintf(failure, failure_bytes,
                 "body_size_limit exceeded: the response has more than %llu bytes",
                 (unsigned long long)scrape->limit);
    else if (scrape->has_no_room)
        snprintf(failure, failure_bytes, "the memory budget has no room for the response");
    else if (result->status == 200 && result->is_cut)
        snprintf(failure, failure_bytes, "%s",
                 is_late ? "context deadline exceeded: scrape_timeout passed before the response's "
                           "end"
                         : "the response ended early");
    else if (result->status == 0)
        snprintf(failure, failure_bytes, "%s", result->error);
    else if (result->status != 200)
        snprintf(failure, failure_bytes, "server returned HTTP status %u", result->status);
    else
        return false;
    return true;
}

/* Requests */

static bool take_body(struct slice bytes, void *arg)
{
    struct scrape *scrape = arg;
    size_t size = scrape->body != NULL ? scrape->body->size : 0;
    if (size + bytes.size > scrape->limit) {
        scrape->is_too_large = true;
        return false;
    }
    scrape->has_no_room =
        !scrape_body_append(&scrape->body, scrape->pool->settings.component->budget, bytes);
    return !scrape->has_no_room;
}

static void on_response(const struct http_result *result, void *arg)
{
    struct scrape *scrape = arg;
    scrape->is_asking = false;
    scrape->pool->settings.ops->responded(scrape, result);
}

void scrape_get(struct scrape *scrape, uint64_t limit)
{
    assert(scrape->is_running && scrape->body == NULL);
    scrape->started_ns = clock_now_ns();
    scrape->is_asking = true;
    scrape->limit = limit;
    scrape->is_too_large = false;
    scrape->has_no_room = false;
    const struct http_post get = {
        .sink = {.take = take_body, .arg = scrape},
        .done = on_response,
        .arg = scrape,
    };
    http_client_post(scrape->client, &get);
}

void scrape_drop_body(struct scrape *scrape)
{
    buffer_unref(scrape->body);
    scrape->body = NULL;
}

/* Lists of targets */

static struct scrape *find(const struct scrape_pool *pool, const struct scrape_target *target)
{
    size_t at = 0;
    struct scrape *found;
    while ((found = hash_table_next(&pool->table, target->hash, &at)) != NULL)
        if (found->target->job == target->job && found->target->start == target->start)
            return found;
    return NULL;
}

static void look_at(struct scrape_pool *pool, struct scrape_target *target)
{
    struct error error;
    if (target->lane != lane_index(pool->lane))
        return;
    struct scrape *scrape = find(pool, target);
    if (scrape != NULL) {
        scrape->generation = pool->generation;
        if (scrape->is_ending)
            pool->is_short = true; /* it begins anew afterwards */
        else if (scrape->is_leaving)
            come_back(scrape);
    } else if (!add_scrape(pool, target, &error)) {
        log_error(&pool->settings.component->logger, "a target is not scraped",
                  log_text("target", target->shown), log_text("error", error.text));
    }
}

/* The list is taken: what it lacks leaves. */
static void sweep_part(struct scrape_pool *pool)
{
    for (size_t i = 0; i < SCRAPE_SYNC_TARGETS_MAX && pool->unswept != NULL; i++) {
        struct scrape *scrape = pool->unswept;
        pool->unswept = scrape->next;
        if (scrape->generation != pool->generation && !scrape->is_closing)
            leave(scrape);
    }
    if (pool->unswept != NULL)
        lane_timer_start(pool->lane, &pool->turn, TURN_NS);
    else if (pool->is_short)
        lane_timer_start(pool->lane, &pool->turn, SCRAPE_RETRY_NS);
}

static void take_part(struct scrape_pool *pool)
{
    size_t end = pool->list->count;
    if (end - pool->position > SCRAPE_SYNC_TARGETS_MAX)
        end = pool->position + SCRAPE_SYNC_TARGETS_MAX;
    while (pool->position < end)
        look_at(pool, pool->list->targets[pool->position++]);
    if (pool->position < pool->list->count) {
        lane_timer_start(pool->lane, &pool->turn, TURN_NS);
        return;
    }
    pool->unswept = pool->first;
    sweep_part(pool);
}

static void begin_list(struct scrape_pool *pool)
{
    pool->position = 0;
    pool->unswept = NULL;
    pool->generation++;
    pool->is_short = false;
    take_part(pool);
}

static void on_turn(struct timer *timer, void *arg)
{
    struct scrape_pool *pool = arg;
    assert(timer == &pool->turn);
    if (pool->position < pool->list->count)
        take_part(pool);
    else if (pool->unswept != NULL)
        sweep_part(pool);
    else
        begin_list(pool);
}

/* Takes the list. */
static void take_list(struct scrape_pool *pool, struct scrape_target_list *list)
{
    if (pool->is_stopping) {
        scrape_target_list_unref(list);
        return;
    }
    scrape_target_list_unref(pool->list);
    pool->list = list;
    lane_timer_stop(pool->lane, &pool->turn);
    begin_list(pool);
}

/* A list on its way from lane 0 to another lane, and back. */
struct delivery {
    struct lane_task task;
    struct scrape_pool *from;
    struct scrape_pool *to;
    struct scrape_target_list *list;
};

static void on_returned(struct lane_task *task)
{
    struct delivery *delivery = (struct delivery *)task;
    struct scrape_pool *from = delivery->from;
    mem_free(delivery);
    stop_latch_release(&from->users);
}

static void on_delivered(struct lane_task *task)
{
    struct delivery *delivery = (struct delivery *)task;
    take_list(delivery->to, delivery->list);
    task->fn = on_returned;
    lane_post(delivery->from->lane, task);
}

/* Takes the list. */
static void publish(struct scrape_target_list *list, void *arg)
{
    struct scrape_pool *pool = arg;
    for (struct component *other = pool->settings.component->next_lane; other != NULL;
         other = other->next_lane) {
        struct delivery *delivery = mem_zalloc(sizeof(*delivery));
        delivery->task.fn = on_delivered;
        delivery->from = pool;
        delivery->to = pool->settings.pool_of(other);
        delivery->list = scrape_target_list_ref(list);
        stop_latch_hold(&pool->users);
        lane_post(other->lane, &delivery->task);
    }
    take_list(pool, list);
}

/* The component */

static void on_stopped(void *arg)
{
    struct scrape_pool *pool = arg;
    component_stopped(pool->settings.component);
}

static bool make_discovery(struct scrape_pool *pool, struct error *error)
{
    struct component *component = pool->settings.component;
    unsigned lanes = 0;
    for (const struct component *c = component->first; c != NULL; c = c->next_lane)
        lanes++;
    const struct target_discovery_settings settings = {
        .lane = pool->lane,
        .lanes = lanes > 0 ? lanes : 1,
        .budget = component->budget,
        .logger = &component->logger,
        .jobs = pool->settings.jobs,
        .jobs_count = pool->settings.jobs_count,
        .is_rehearsed = component_is_rehearsed(component),
        .file_errors = &pool->settings.counters->file_errors,
        .http_failures = &pool->settings.counters->http_failures,
        .changed = publish,
        .arg = pool,
    };
    pool->discovery = target_discovery_create(&settings, error);
    return pool->discovery != NULL;
}

bool scrape_pool_init(struct scrape_pool *pool, const struct scrape_pool_settings *settings,
                      struct error *error)
{
    *pool = (struct scrape_pool){.settings = *settings, .lane = settings->component->lane};
    pool->users = (struct stop_latch){.fn = on_stopped, .arg = pool, .pending = 1};
    timer_init(&pool->turn, on_turn, pool);
    bool is_first =
        settings->component->first == settings->component || settings->component->first == NULL;
    return !is_first || make_discovery(pool, error);
}

/* Whether a client can be made for a target of each job; otherwise the start fails. */
static bool try_clients(struct scrape_pool *pool, const struct scrape_target_list *list,
                        struct error *error)
{
    size_t tried = 0;
    bool is_good = true;
    for (size_t i = 0; is_good && i < list->count; i++) {
        const struct scrape_target *target = list->targets[i];
        if (target->job < tried)
            continue;
        tried = target->job + 1;
        char timeout_text[SCRAPE_TIMEOUT_TEXT_BYTES_MAX];
        print_timeout(target, timeout_text);
        struct config_pair *headers = make_headers(pool, target, timeout_text);
        struct http_client *client = make_client(pool, target, headers, error);
        is_good = client != NULL;
        http_client_destroy(client);
        mem_free(headers);
    }
    return is_good;
}

bool scrape_pool_start(struct scrape_pool *pool, struct error *error)
{
    if (pool->discovery == NULL)
        return true;
    struct scrape_target_list *list = target_discovery_start(pool->discovery);
    if (list == NULL)
        return error_set(error, "the memory budget has no room for the targets");
    if (try_clients(pool, list, error)) {
        publish(list, pool);
        return true;
    }
    scrape_target_list_unref(list);
    return false;
}

static void on_discovery_stopped(void *arg)
{
    struct scrape_pool *pool = arg;
    stop_latch_release(&pool->users);
}

void scrape_pool_stop(struct scrape_pool *pool)
{
    pool->is_stopping = true;
    lane_timer_stop(pool->lane, &pool->turn);
    if (pool->discovery != NULL) {
        stop_latch_hold(&pool->users);
        target_discovery_stop(pool->discovery, on_discovery_stopped, pool);
    }
    struct scrape *next;
    for (struct scrape *scrape = pool->first; scrape != NULL; scrape = next) {
        next = scrape->next;
        if (scrape->is_closing)
            continue;
        lane_timer_stop(pool->lane, &scrape->timer);
        /* The stop must not wait for a target's timeout. */
        scrape->is_cut = scrape->is_asking && !pool->settings.scrapes_at_stop;
        if (scrape->is_cut)
            http_client_close(scrape->client, on_closed, scrape);
        if (scrape->is_running || scrape->is_closing)
            continue;
        if (pool->settings.scrapes_at_stop && !scrape->is_leaving)
            begin(scrape);
        else
            close_scrape(scrape);
    }
    stop_latch_release(&pool->users);
}

void scrape_pool_fini(struct scrape_pool *pool)
{
    while (pool->first != NULL)
        free_scrape(pool->first);
    hash_table_clear(&pool->table);
    scrape_target_list_unref(pool->list);
    target_discovery_destroy(pool->discovery);
}
