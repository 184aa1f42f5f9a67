/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt: the walk through a batch, its posts and their results. A post has the name of the
 * walk's part, the same at each attempt, so that a retry knows what was settled before. Runs on the
 * exporter's lane; large batches are converted by the lane's helper. */
#include "exporters/pyroscope/pyroscope_attempt.h"

#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/pyroscope/pyroscope_form.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "exporters/shared/http_outcome.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/client/response_words.h"
#include "src/otlp/response.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_remove.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    REST_NAME = 1,            /* of the post as OTLP, in mode otlp; names of the walk are larger */
    LABELS_BYTES = 64 * 1024, /* the server counts them as part of a profile */
    TURN_WORK_MAX = 256 * 1024, /* bytes converted and compressed on the lane: about 5 ms */
};
#define QUIET_NS ((uint64_t)NS_PER_S) /* after it a server's rate limiter has recovered */

static const char no_memory[] = "no memory left in the budget to convert a profile";

struct attempt {
    struct pyroscope_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct batch_part whole; /* the batch in one piece */
    struct pyroscope_walk walk;
    struct pyroscope_series series;
    struct batch_name name;
    struct config_pair tenant; /* a header; no value: none */
    struct buffer *stripped;   /* the batch without uploads, in mode otlp, when it has some */
    struct slice rest;         /* to be sent as OTLP; no data: nothing, or it was */
    uint64_t wanted;           /* items that the walk finds, counted in mode otlp only */
    bool has_wanted;           /* the same */
    uint64_t addresses_bytes;  /* of files that were posted */
    unsigned in_flight;        /* posts */
    bool is_opened;            /* the batch is in one piece, and the walk open */
    bool is_helped; /* the helper opens it or finds the next part, and alone uses walk, series,
                     * whole, stripped, rest, wanted and found meanwhile */
    struct helper_work work;
    enum pyroscope_found found;
    struct number_set cut;  /* parts found too large by earlier attempts, for the walk */
    bool is_rest_delivered; /* by the otlp_http exporter */
    bool has_ended;         /* the walk is over, or broken off */
    bool has_news;          /* the server accepted something */
    struct settled_batch settled;
    struct outcome worst; /* the retryable refusal, or the last permanent one */
    char text[HTTP_OUTCOME_TEXT_MAX];
};

struct post {
    struct attempt *attempt;
    uint64_t name;
    uint64_t samples;
    uint64_t sent_no; /* of all posts of the exporter */
    bool is_alone;    /* nothing else was in flight or had just been accepted */
    struct pyroscope_form form;
};

static const struct pyroscope_config *config_of(const struct attempt *attempt)
{
    return attempt->exporter->base.config;
}

static void refuse(struct attempt *attempt, const struct outcome *outcome)
{
    assert(outcome->verdict != ACCEPTED);
    /* A retryable refusal outweighs a permanent one. */
    if (attempt->worst.verdict != ACCEPTED && !attempt->worst.is_permanent)
        return;
    attempt->worst = *outcome;
    if (outcome->message != attempt->text)
        snprintf(attempt->text, sizeof(attempt->text), "%s", outcome->message);
    attempt->worst.message = attempt->text;
    attempt->worst.details = (struct slice){.size = 0};
}

static void break_off(struct attempt *attempt, const char *why)
{
    struct outcome outcome = why == no_memory ? outcome_no_memory(why) : outcome_busy(why);
    refuse(attempt, &outcome);
    attempt->has_ended = true;
}

/* Takes at most `items` off *left. */
static uint64_t take_items(uint64_t *left, uint64_t items)
{
    uint64_t taken = items < *left ? items : *left;
    *left -= taken;
    return taken;
}

/* Resolves the receipt with the outcome of all posts and frees the attempt. Samples without a value
 * count as delivered: the server could show nothing of them. */
static void attempt_end(struct attempt *attempt)
{
    assert(attempt->in_flight == 0);
    assert(attempt->has_ended);
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    struct receipt *receipt = attempt->receipt;
    const struct pyroscope_walk *walk = &attempt->walk;
    const struct otlp_to_pprof_figures *figures = &walk->conversion.figures;
    struct outcome outcome = outcome_accepted;
    uint64_t left = attempt->batch->items;
    bool is_retryable = attempt->worst.verdict != ACCEPTED && !attempt->worst.is_permanent;
    bool has_failed = attempt->worst.verdict != ACCEPTED && attempt->settled.stored == 0;
    if (is_retryable || has_failed) {
        outcome = attempt->worst;
        outcome.delivered_items = take_items(&left, attempt->settled.stored);
    } else {
        outcome.invalid_items =
            take_items(&left, walk->too_old + walk->too_new + figures->negative);
        outcome.too_large_items = take_items(&left, figures->too_large);
        (void)take_items(&left, attempt->settled.rejected);
        outcome.rejected_items = attempt->batch->items - left;
    }
    if (is_retryable) {
        number_set_add_all(&attempt->settled.cut, &attempt->cut);
        pyroscope_memory_keep(&exporter->memory, &attempt->name, &attempt->settled);
    } else {
        counter_add(&counters->zero, figures->zero);
        counter_add(&counters->negative, figures->negative);
        counter_add(&counters->too_large, figures->too_large);
        counter_add(&counters->cut_stacks, figures->cut);
        counter_add(&counters->too_old, attempt->walk.too_old);
        counter_add(&counters->too_new, attempt->walk.too_new);
        counter_add(&counters->left_out_labels,
                    walk->conversion.labels.dropped + attempt->series.left_out);
        if (walk->too_old + walk->too_new > 0 && !exporter->has_logged_window) {
            exporter->has_logged_window = true;
            log_warn(&exporter->base.logger,
                     "Profiles outside the time that the server accepts are dropped; look at the "
                     "sender's clock, or raise limits::max_age and limits::max_future here and on "
                     "the server",
                     log_int("age_seconds", walk->odd_age_ns / NS_PER_S));
        }
    }
    char text[HTTP_OUTCOME_TEXT_MAX]; /* outlives the attempt */
    if (outcome.message != NULL) {
        snprintf(text, sizeof(text), "%s", outcome.message);
        outcome.message = text;
    }
    settled_batch_clear(&attempt->settled);
    number_set_clear(&attempt->cut);
    if (attempt->is_opened) {
        pyroscope_walk_close(&attempt->walk);
        pyroscope_series_fini(&attempt->series);
    }
    buffer_unref(attempt->stripped);
    buffer_unref(attempt->whole.owner);
    batch_unref(attempt->batch);
    budget_return(attempt->exporter->base.budget, sizeof(*attempt));
    mem_free(attempt);
    receipt_resolve(receipt, &outcome);
}

static void post_free(struct post *post)
{
    pyroscope_form_fini(&post->form);
    mem_free(post);
}

/* The outcome of a Push or an upload to /ingest that the server refused: 408, 429, 5xx and
 * transport errors may be retried, everything else is permanent. text is for the message. */
static struct outcome outcome_of(const struct http_result *result,
                                 const struct request_secrets *secrets, const char *url,
                                 char text[HTTP_OUTCOME_TEXT_MAX])
{
    static const struct {
        unsigned status;
        enum status_code code;
        const char *advice;
    } rows[] = {
        {400, STATUS_INVALID_ARGUMENT, ""},
        {401, STATUS_UNAUTHENTICATED, "; set tenant, basic_auth or bearer_token"},
        {403, STATUS_PERMISSION_DENIED, ""},
        {404, STATUS_UNIMPLEMENTED,
         "; endpoint is the server's base URL, without a path of its API"},
        {413, STATUS_INVALID_ARGUMENT, "; lower limits::max_bytes"},
        {408, STATUS_UNAVAILABLE, ""},
        {429, STATUS_RESOURCE_EXHAUSTED, ""},
    };
    static const char *const limited_words[] = {"resource_exhausted", "rate limit"};
    unsigned status = result->status;
    char words[RESPONSE_WORDS_MAX + 1];
    if (status == 0)
        return http_outcome_refused(result, secrets, url, text);
    /* Servers before 2.2 send 422 from /ingest when there is too much at a time. */
    bool is_limited = status == 429;
    for (size_t i = 0; status == 422 && result->body.size > 0 && i < 2; i++)
        is_limited |= memmem(result->body.data, result->body.size, limited_words[i],
                             strlen(limited_words[i])) != NULL;
    struct outcome outcome = {
        .verdict = REFUSED,
        .code = status >= 500 ? STATUS_UNAVAILABLE : STATUS_UNKNOWN,
        .is_permanent = !is_limited && status != 408 && status < 500,
        .retry_after_ns = result->has_retry_after ? result->retry_after_ns : 0,
        .message = text,
    };
    const char *advice = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == status) {
            outcome.code = rows[i].code;
            advice = rows[i].advice;
        }
    if (is_limited)
        outcome.code = STATUS_RESOURCE_EXHAUSTED;
    response_words(result, secrets, words);
    snprintf(text, HTTP_OUTCOME_TEXT_MAX,
             "error exporting profiles, request to %s responded with HTTP Status Code %u%s%s%s",
             url, status, words[0] != '\0' ? ": " : "", words, advice);
    return outcome;
}

/* A permanent refusal costs only its own series. It is counted, and the first one is logged. */
static void post_refused(struct post *post, struct outcome *outcome)
{
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    bool is_limited = outcome->code == STATUS_RESOURCE_EXHAUSTED && !outcome->is_permanent;
    bool is_idle = post->is_alone && exporter->sent_no == post->sent_no;
    if (is_limited && settled_batch_limited(&attempt->settled, post->name, is_idle)) {
        /* The server's limit is below ours: a post that it never accepts is sent in pieces at the
         * next attempt, or dropped. */
        bool can_be_cut =
            post->name != REST_NAME && post->samples > 1 && !pyroscope_walk_is_piece(post->name);
        bool is_cut = can_be_cut && number_set_add(&attempt->settled.cut, post->name);
        uint64_t plain_bytes = post->form.plain_bytes;
        uint64_t bytes = plain_bytes > 0 ? plain_bytes : pyroscope_form_bytes(&post->form);
        assert(attempt->settled.is_limited);
        counter_add(is_cut ? &counters->cut_posts : &counters->never_taken, 1);
        log_warn(&exporter->base.logger,
                 is_cut ? "The server responds with 429 to a profile again and again while nothing "
                          "else is sent: it is larger than the server's burst. It is sent in "
                          "pieces; lower limits::max_bytes, or raise "
                          "distributor.ingestion-burst-size-mb there"
                        : "The server responds with 429 to a profile again and again while nothing "
                          "else is sent: it will never accept it. It is dropped; raise "
                          "distributor.ingestion-burst-size-mb or the tenant's limit there",
                 log_int("bytes", (int64_t)bytes), log_int("samples", (int64_t)post->samples));
        outcome->is_permanent = !is_cut;
    }
    refuse(attempt, outcome);
    if (!outcome->is_permanent) {
        attempt->has_ended = true;
        return;
    }
    counter_add(&counters->refused, 1);
    attempt->settled.rejected += post->samples;
    number_set_add(&attempt->settled.posts, post->name);
    if (exporter->has_logged_refusal || post->name == REST_NAME)
        return;
    exporter->has_logged_refusal = true;
    log_warn(&exporter->base.logger, "The server refused a series; others go on",
             log_text("error", outcome->message), log_int("samples", (int64_t)post->samples));
}

static void on_done(const struct http_result *result, void *arg);

/* Sends the post, or breaks the attempt off if there was no memory to fill it. */
static void post_send(struct post *post, bool is_filled)
{
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    const struct pyroscope_form *form = &post->form;
    const char *target = NULL; /* the client's URL */
    if (!is_filled) {
        break_off(attempt, no_memory);
        post_free(post);
        return;
    }
    assert(form->parts_count > 0);
    if (form->target != NULL)
        target = (const char *)form->target->data;
    else if (post->name != REST_NAME)
        target = exporter->push_path;
    const struct http_post request = {
        .parts = form->parts,
        .parts_count = form->parts_count,
        .bytes = pyroscope_form_bytes(form),
        .content_type = form->content_type,
        .content_encoding = form->content_encoding,
        .header = attempt->tenant.value != NULL ? &attempt->tenant : NULL,
        .client = attempt->batch->client,
        .target = target,
        .done = on_done,
        .arg = post,
    };
    post->is_alone = exporter->in_flight == 0 && clock_now_ns() - exporter->accepted_ns >= QUIET_NS;
    post->sent_no = ++exporter->sent_no;
    exporter->in_flight++;
    attempt->in_flight++;
    counter_add(&counters->posts, 1);
    http_client_post(exporter->client, &request);
}

/* The profile's time, or the batch's arrival if it has none; later if another profile of the series
 * has that time. */
static uint64_t time_of(const struct attempt *attempt)
{
    assert(attempt->walk.name != 0);
    struct pyroscope_counters *counters = attempt->exporter->base.counters;
    uint64_t time_ns = attempt->walk.profile.time_unix_ns;
    if (time_ns == 0)
        time_ns = clock_wall_ns() - (clock_now_ns() - attempt->batch->arrival_ns);
    uint64_t free_ns =
        pyroscope_memory_time(&attempt->exporter->memory, attempt->series.hash,
                              batch_name_owner(&attempt->name, attempt->walk.name), time_ns);
    counter_add(&counters->moved, free_ns != time_ns);
    return free_ns;
}

static struct post *post_create(struct attempt *attempt, uint64_t name, uint64_t samples)
{
    struct post *post = mem_zalloc(sizeof(*post));
    struct pyroscope_exporter *exporter = attempt->exporter;
    *post = (struct post){.attempt = attempt, .name = name, .samples = samples};
    pyroscope_form_init(&post->form, exporter->base.budget, exporter->gzip);
    return post;
}

static void pump(struct attempt *attempt);

static void on_done(const struct http_result *result, void *arg)
{
    struct post *post = arg;
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    assert(attempt->in_flight > 0);
    assert(exporter->in_flight > 0);
    attempt->in_flight--;
    exporter->in_flight--;
    if (result->status >= 200 && result->status < 300) {
        /* As OTLP the server may have rejected some of the samples. */
        struct otlp_partial_success partial = {.rejected = 0};
        uint64_t rejected = 0;
        if (post->name == REST_NAME && result->body.size > 0 &&
            slice_equal_text(result->content_type, post->form.content_type) &&
            otlp_response_partial_success(result->body, &partial) && partial.rejected > 0)
            rejected = (uint64_t)partial.rejected;
        if (rejected > post->samples)
            rejected = post->samples;
        exporter->accepted_ns = clock_now_ns();
        attempt->has_news = true;
        number_set_add(&attempt->settled.posts, post->name);
        attempt->settled.rejected += rejected;
        attempt->settled.stored += post->samples - rejected;
    } else {
        char text[HTTP_OUTCOME_TEXT_MAX];
        const char *url =
            post->form.target != NULL ? exporter->shown_ingest_url : exporter->shown_url;
        const struct request_secrets secrets = http_client_secrets(exporter->client, result);
        struct outcome outcome = post->name == REST_NAME
                                     ? http_outcome_refused(result, &secrets, url, text)
                                     : outcome_of(result, &secrets, url, text);
        post_refused(post, &outcome);
    }
    post_free(post);
    pump(attempt);
}

/* The first time it joins the batch and opens the walk; in mode otlp it also finds what leaves as
 * OTLP. */
static enum pyroscope_found find_next(struct attempt *attempt)
{
    struct pyroscope_exporter *exporter = attempt->exporter;
    const struct pyroscope_config *config = config_of(attempt);
    struct budget *budget = exporter->base.budget;
    profile_choice wants = exporter->wants;
    bool is_otlp = config->mode == PYROSCOPE_OTLP;
    if (!attempt->is_opened) {
        attempt->is_opened = true;
        bool is_joined = batch_join(attempt->batch, budget, &attempt->whole);
        struct slice request = attempt->whole.bytes;
        bool is_open =
            pyroscope_walk_open(&attempt->walk, config, &exporter->rules, request, budget);
        pyroscope_series_init(&attempt->series, budget);
        if (!is_joined || !is_open)
            return PYROSCOPE_NO_MEMORY;
        attempt->has_wanted = is_otlp && profile_choice_has(request, wants);
        if (is_otlp && !attempt->has_wanted)
            attempt->rest = request;
        if (attempt->has_wanted) {
            attempt->walk.wants = wants;
            attempt->wanted = profile_choice_items(request, wants);
            attempt->stripped = profile_remove(request, wants, budget);
            if (attempt->stripped == NULL)
                return PYROSCOPE_NO_MEMORY;
            if (attempt->stripped->size > 0)
                attempt->rest = buffer_slice(attempt->stripped);
        }
    }
    bool is_relayed = is_otlp && !attempt->has_wanted;
    if (attempt->rest.data != NULL || is_relayed)
        return PYROSCOPE_END;
    return pyroscope_walk_next(&attempt->walk, &attempt->cut);
}

/* Finds the next part, on the lane or on its helper. */
static enum pyroscope_found find(struct attempt *attempt)
{
    budget_begin_export();
    enum pyroscope_found found = find_next(attempt);
    budget_end_export();
    return found;
}

/* Sends the part that the walk found, or as OTLP what the walk skips. */
static void take(struct attempt *attempt, enum pyroscope_found found)
{
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    struct pyroscope_walk *walk = &attempt->walk;
    if (found == PYROSCOPE_NO_MEMORY) {
        break_off(attempt, no_memory);
        return;
    }
    if (attempt->rest.data != NULL) {
        struct slice rest = attempt->rest;
        uint64_t items = attempt->batch->items - attempt->wanted;
        attempt->rest = slice_of(NULL, 0);
        if (number_set_has(&attempt->settled.posts, REST_NAME))
            return;
        if (attempt->is_rest_delivered && number_set_add(&attempt->settled.posts, REST_NAME)) {
            attempt->settled.stored += items;
            return;
        }
        struct post *post = post_create(attempt, REST_NAME, items);
        budget_begin_export();
        bool is_filled = pyroscope_form_otlp(&post->form, rest);
        budget_end_export();
        post_send(post, is_filled);
        return;
    }
    if (found == PYROSCOPE_END) {
        attempt->has_ended = true;
        return;
    }
    if (number_set_has(&attempt->settled.posts, attempt->walk.name)) {
        counter_add(&counters->repeated, 1);
        return;
    }
    struct post *post = post_create(attempt, walk->name, walk->items);
    struct pyroscope_form *form = &post->form;
    struct pyroscope_ingest ingest = {
        .path = exporter->ingest_path, .series = &attempt->series, .walk = walk};
    const struct pyroscope_source source = {
        .config = &config_of(attempt)->labels,
        .dictionary = &walk->dictionary,
        .type = &walk->type,
        .resource = walk->resource.resource,
        .scope = walk->scope.scope,
        .service = walk->service,
        .label_names = walk->label_names,
        .privates = walk->metric.size > 0 ? &walk->privates : NULL,
        .has_plain_names = config_of(attempt)->min_server_version == PYROSCOPE_1,
    };
    uint64_t changed = 0;
    budget_begin_export();
    bool is_filled = pyroscope_series_build(&attempt->series, &source);
    if (is_filled && found == PYROSCOPE_PART) {
        ingest.time_ns = time_of(attempt);
        struct buffer *profile = otlp_to_pprof_take(&walk->conversion, ingest.time_ns);
        is_filled =
            profile != NULL && (config_of(attempt)->mode == PYROSCOPE_INGEST
                                    ? pyroscope_form_ingest(form, &ingest, profile, &changed)
                                    : pyroscope_form_push(form, &attempt->series, profile));
    } else if (is_filled) { /* a file, with its own time unless it had to move */
        uint64_t own_ns = walk->profile.time_unix_ns;
        uint64_t time_ns = own_ns != 0 ? time_of(attempt) : 0;
        ingest.time_ns = time_ns != own_ns ? time_ns : 0;
        is_filled = pyroscope_form_upload(form, &ingest, &changed);
        attempt->addresses_bytes += form->target != NULL ? form->target->size : 0;
    }
    budget_end_export();
    counter_add(&counters->changed_labels, changed);
    post_send(post, is_filled);
}

static void on_help(struct helper_work *work)
{
    struct attempt *attempt = (struct attempt *)((char *)work - offsetof(struct attempt, work));
    attempt->found = find(attempt);
}

static void on_helped(struct helper_work *work)
{
    struct attempt *attempt = (struct attempt *)((char *)work - offsetof(struct attempt, work));
    struct stop_latch *users = attempt->exporter->users;
    attempt->is_helped = false;
    /* Meanwhile a post may have broken it off, or the exporter may have begun to stop. */
    if (!attempt->has_ended && !attempt->exporter->is_stopping)
        take(attempt, attempt->found);
    pump(attempt);
    stop_latch_release(users);
}

static uint64_t work_of(const struct attempt *attempt)
{
    return attempt->is_opened
               ? otlp_to_pprof_work(&attempt->walk.conversion) + attempt->addresses_bytes
               : 0;
}

/* Posts until enough are in flight; ends the attempt after the last response. */
static void pump(struct attempt *attempt)
{
    if (attempt->exporter->is_stopping && !attempt->has_ended)
        break_off(attempt, "the exporter is stopping");
    /* While the helper works, what it counts is its own. */
    const uint64_t work_max = (attempt->is_helped ? 0 : work_of(attempt)) + TURN_WORK_MAX;
    while (!attempt->has_ended && !attempt->is_helped) {
        /* After a 429 one at a time, until the server accepts something. */
        bool is_careful = attempt->settled.is_limited && !attempt->has_news;
        if (attempt->in_flight >= (is_careful ? 1 : (unsigned)config_of(attempt)->concurrency))
            break;
        /* A small batch may repeat much of its dictionary in each post: the helper goes on, so that
         * others get their turn. */
        if (attempt->batch->bytes < HELPED_PROFILES_BYTES_MIN && work_of(attempt) < work_max) {
            take(attempt, find(attempt));
            continue;
        }
        attempt->is_helped = true;
        stop_latch_hold(attempt->exporter->users);
        attempt->work = (struct helper_work){.run = on_help, .done = on_helped};
        lane_help(attempt->exporter->base.lane, &attempt->work);
    }
    if (attempt->has_ended && !attempt->is_helped && attempt->in_flight == 0)
        attempt_end(attempt);
}

struct otlp_to_pprof_rules pyroscope_rules_of(const struct pyroscope_config *config)
{
    return (struct otlp_to_pprof_rules){
        .labels =
            {
                .lifts_ids = true,
                .has_trace_id =
                    config->trace_id == PYROSCOPE_ON && config->min_server_version == PYROSCOPE_2_1,
                .keeps_dots = !config->labels.dots_to_underscores,
                .has_plain_names = config->min_server_version == PYROSCOPE_1,
                .names_max = pyroscope_sample_labels_max(&config->labels),
                .value_bytes_max = config->labels.max_value_bytes,
                .drops = config->labels.drop.texts,
                .drops_count = config->labels.drop.count,
            },
        .samples_max = config->limits.max_samples,
        .bytes_max = config->limits.max_bytes - LABELS_BYTES,
        .depth_max = config->limits.max_stack_depth,
    };
}

bool pyroscope_has_no_otlp_name(const struct profile *profile)
{
    /* String 0 is "". */
    return profile_is_opaque(profile) || profile->period == 0 ||
           profile->period_type.type.number == 0;
}

/* NULL: no memory, and the receipt is resolved. */
static struct attempt *attempt_create(struct pyroscope_exporter *exporter, struct batch *batch,
                                      struct receipt *receipt)
{
    assert(exporter->client != NULL);
    budget_begin_export();
    const bool has_room = budget_try_take(exporter->base.budget, sizeof(struct attempt));
    budget_end_export();
    if (!has_room) {
        const struct outcome outcome = outcome_no_memory(no_memory);
        receipt_resolve(receipt, &outcome);
        return NULL;
    }
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    if (exporter->forwards_tenant)
        attempt->tenant = (struct config_pair){.key = CLIENT_TENANT_HEADER,
                                               .value = client_info_tenant(batch->client)};
    attempt->worst = outcome_accepted;
    attempt->name = batch_name_of(batch);
    attempt->settled = pyroscope_memory_take(&exporter->memory, &attempt->name);
    attempt->cut = attempt->settled.cut;
    attempt->settled.cut = (struct number_set){.count = 0};
    return attempt;
}

void pyroscope_attempt_start(struct pyroscope_exporter *exporter, struct batch *batch,
                             struct receipt *receipt)
{
    struct attempt *attempt = attempt_create(exporter, batch, receipt);
    if (attempt != NULL)
        pump(attempt);
}

void pyroscope_attempt_continue(struct pyroscope_exporter *exporter, struct batch *batch,
                                struct receipt *receipt)
{
    struct attempt *attempt = attempt_create(exporter, batch, receipt);
    if (attempt == NULL)
        return;
    attempt->is_rest_delivered = true;
    pump(attempt);
}
