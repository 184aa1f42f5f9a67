/* SPDX-License-Identifier: Apache-2.0 */
/* The walk through a batch and its posts. A post is named by its profile's number and its part's,
 * which are the same at each attempt, so that a retry knows what was settled before. Runs on the
 * exporter's lane. */
#include "exporters/pyroscope_attempt.h"

#include "exporters/pyroscope_config.h"
#include "exporters/pyroscope_outcome.h"
#include "exporters/pyroscope_series.h"
#include "src/batch.h"
#include "src/budget.h"
#include "src/buffer.h"
#include "src/clock.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/net/gzip.h"
#include "src/net/http_client.h"
#include "src/receipt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    POST_PARTS = 3, /* head, profile, tail */
    PART_BITS = 24, /* of a post's name */
};
#define DICTIONARY_BYTES_MAX (256 * MIB)

static const char protobuf_type[] = "application/proto";
static const char no_memory[] = "no memory left in the budget to convert a profile";

struct attempt {
    struct pyroscope_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct buffer *joined; /* the batch in one piece, when it has several */
    struct arena arena;    /* of the dictionary */
    struct profile_dictionary dictionary;
    struct otlp_to_pprof conversion;
    struct pyroscope_series series;
    struct batch_name name;
    http_done_fn done; /* of its posts */
    /* where the walk is */
    struct wire_reader resources;
    struct wire_reader scopes;
    struct wire_reader profiles;
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    struct profile_type type;
    bool has_cpu_time;   /* some profile of the scope */
    bool has_profile;    /* its parts are being sent */
    size_t service;      /* of the profile: the one whose parts are being sent */
    uint64_t profile_no; /* from 1 */
    uint64_t part_no;    /* of the profile, from 0 */
    /* what became of the posts */
    unsigned in_flight;
    bool has_ended; /* the walk is over, or broken off */
    struct settled_batch settled;
    uint64_t out_of_window; /* samples */
    uint64_t too_old;
    uint64_t too_new;
    struct outcome worst; /* the retryable refusal, or the last one for good */
    char text[HTTP_OUTCOME_TEXT_MAX];
};

struct post {
    struct attempt *attempt;
    uint64_t name;
    uint64_t samples;
    size_t parts_count;
    struct batch_part parts[POST_PARTS];
};

static const struct pyroscope_config *config_of(const struct attempt *attempt)
{
    return attempt->exporter->base.config;
}

static void refuse(struct attempt *attempt, const struct outcome *outcome)
{
    assert(outcome->verdict != ACCEPTED);
    assert(outcome->message != NULL);
    /* A refusal that may be tried again outweighs one for good. */
    if (attempt->worst.verdict != ACCEPTED && !attempt->worst.is_permanent)
        return;
    attempt->worst = *outcome;
    if (outcome->message != attempt->text)
        snprintf(attempt->text, sizeof(attempt->text), "%s", outcome->message);
    attempt->worst.message = attempt->text;
}

static void break_off(struct attempt *attempt, const char *why)
{
    struct outcome outcome = outcome_busy(why);
    refuse(attempt, &outcome);
    attempt->has_ended = true;
}

static void count_figures(const struct attempt *attempt)
{
    struct pyroscope_counters *counters = attempt->exporter->base.counters;
    const struct otlp_to_pprof_figures *figures = &attempt->conversion.figures;
    counter_add(&counters->zero, figures->zero);
    counter_add(&counters->negative, figures->negative);
    counter_add(&counters->too_large, figures->too_large);
    counter_add(&counters->cut_stacks, figures->cut);
    counter_add(&counters->too_old, attempt->too_old);
    counter_add(&counters->too_new, attempt->too_new);
    counter_add(&counters->left_out_labels,
                attempt->conversion.labels.dropped + attempt->series.left_out);
}

/* What all posts together mean for the batch. */
static struct outcome joined_outcome(struct attempt *attempt)
{
    const struct otlp_to_pprof_figures *figures = &attempt->conversion.figures;
    uint64_t rejected =
        attempt->settled.rejected + attempt->out_of_window + figures->negative + figures->too_large;
    bool is_retryable = attempt->worst.verdict != ACCEPTED && !attempt->worst.is_permanent;
    bool has_failed = attempt->worst.verdict != ACCEPTED && attempt->settled.stored == 0;
    if (is_retryable || has_failed)
        return attempt->worst;
    struct outcome outcome = outcome_accepted;
    outcome.rejected_items = rejected < attempt->batch->items ? rejected : attempt->batch->items;
    return outcome;
}

static void attempt_end(struct attempt *attempt)
{
    assert(attempt->in_flight == 0);
    assert(attempt->has_ended);
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct receipt *receipt = attempt->receipt;
    struct outcome outcome = joined_outcome(attempt);
    char text[HTTP_OUTCOME_TEXT_MAX];
    if (outcome.verdict != ACCEPTED && !outcome.is_permanent)
        pyroscope_memory_keep(&exporter->memory, &attempt->name, &attempt->settled);
    else
        count_figures(attempt);
    if (outcome.message != NULL) {
        snprintf(text, sizeof(text), "%s", outcome.message);
        outcome.message = text;
    }
    number_set_clear(&attempt->settled.posts);
    otlp_to_pprof_fini(&attempt->conversion);
    pyroscope_series_fini(&attempt->series);
    arena_clear(&attempt->arena);
    buffer_unref(attempt->joined);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, &outcome);
}

static void post_free(struct post *post)
{
    for (size_t i = 0; i < post->parts_count; i++)
        buffer_unref(post->parts[i].owner);
    mem_free(post);
}

/* A refusal for good costs only its own series; it is told once and counted always. */
static void post_refused(struct post *post, const struct outcome *outcome)
{
    assert(outcome->verdict == REFUSED);
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    refuse(attempt, outcome);
    if (!outcome->is_permanent) {
        attempt->has_ended = true;
        return;
    }
    counter_add(&counters->refused, 1);
    attempt->settled.rejected += post->samples;
    number_set_add(&attempt->settled.posts, post->name);
    if (exporter->has_told_refusal)
        return;
    exporter->has_told_refusal = true;
    log_warn(&exporter->base.logger, "The server refused a series; others go on",
             log_text("error", outcome->message), log_int("samples", (int64_t)post->samples));
}

/* Takes over the profile, whatever becomes of it. False: no memory. */
static bool post_fill(struct post *post, struct buffer *profile)
{
    assert(profile != NULL);
    assert(post->parts_count == 0);
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct buffer *head = pyroscope_push_head(&attempt->series, profile->size);
    struct buffer *tail = pyroscope_push_tail(exporter->base.budget);
    struct buffer *const all[POST_PARTS] = {head, profile, tail};
    struct buffer *packed;
    for (size_t i = 0; i < POST_PARTS; i++)
        if (all[i] != NULL)
            post->parts[post->parts_count++] =
                (struct batch_part){.owner = all[i], .bytes = buffer_slice(all[i])};
    if (post->parts_count < POST_PARTS)
        return false;
    if (exporter->gzip == NULL)
        return true;
    if (gzip_deflate(exporter->gzip, exporter->base.budget, post->parts, POST_PARTS, -1, &packed) !=
        GZIP_OK)
        return false;
    for (size_t i = 0; i < POST_PARTS; i++)
        buffer_unref(post->parts[i].owner);
    post->parts[0] = (struct batch_part){.owner = packed, .bytes = buffer_slice(packed)};
    post->parts_count = 1;
    return true;
}

static void post_send(struct post *post)
{
    assert(post->parts_count > 0);
    struct attempt *attempt = post->attempt;
    struct pyroscope_exporter *exporter = attempt->exporter;
    struct pyroscope_counters *counters = exporter->base.counters;
    struct http_post request = {
        .parts = post->parts,
        .parts_count = post->parts_count,
        .content_type = protobuf_type,
        .content_encoding = exporter->gzip != NULL ? "gzip" : NULL,
        .done = attempt->done,
        .arg = post,
    };
    for (size_t i = 0; i < post->parts_count; i++)
        request.bytes += post->parts[i].bytes.size;
    attempt->in_flight++;
    counter_add(&counters->posts, 1);
    http_client_post(exporter->client, &request);
}

/* The profile's time, or the batch's arrival when it has none; moved on when another profile of the
 * series has taken it. */
static uint64_t time_of(const struct attempt *attempt, uint64_t post_name)
{
    assert(post_name != 0);
    struct pyroscope_counters *counters = attempt->exporter->base.counters;
    uint64_t time_ns = attempt->profile.time_unix_ns;
    if (time_ns == 0)
        time_ns = clock_wall_ns() - (clock_now_ns() - attempt->batch->arrival_ns);
    uint64_t free_ns = pyroscope_memory_time(&attempt->exporter->memory, attempt->series.hash,
                                             batch_name_owner(&attempt->name, post_name), time_ns);
    counter_add(&counters->moved, free_ns != time_ns);
    return free_ns;
}

/* Sends what the conversion has gathered, unless it was settled at an earlier attempt. */
static void send_part(struct attempt *attempt)
{
    assert(attempt->conversion.samples > 0);
    struct pyroscope_counters *counters = attempt->exporter->base.counters;
    uint64_t name = attempt->profile_no << PART_BITS | attempt->part_no++;
    const struct pyroscope_source source = {
        .config = &config_of(attempt)->labels,
        .dictionary = &attempt->dictionary,
        .type = &attempt->type,
        .resource = attempt->resource.resource,
        .scope = attempt->scope.scope,
        .service = attempt->conversion.services[attempt->service],
    };
    if (number_set_has(&attempt->settled.posts, name)) {
        counter_add(&counters->repeated, 1);
        return;
    }
    if (!pyroscope_series_build(&attempt->series, &source)) {
        break_off(attempt, no_memory);
        return;
    }
    uint64_t samples = attempt->conversion.samples;
    struct buffer *profile = otlp_to_pprof_take(&attempt->conversion, time_of(attempt, name));
    if (profile == NULL) {
        break_off(attempt, no_memory);
        return;
    }
    struct post *post = mem_zalloc(sizeof(*post));
    *post = (struct post){.attempt = attempt, .name = name, .samples = samples};
    if (post_fill(post, profile)) {
        post_send(post);
    } else {
        break_off(attempt, no_memory);
        post_free(post);
    }
}

static struct slice text_at(const struct attempt *attempt, int32_t index)
{
    if (!profile_has(&attempt->dictionary, PROFILE_STRINGS, index))
        return slice_of(NULL, 0);
    return profile_string_at(&attempt->dictionary, index);
}

static struct profile_type type_of(const struct attempt *attempt)
{
    const struct profile *profile = &attempt->profile;
    const struct profile_type_texts texts = {
        .type = text_at(attempt, profile->sample_type.type),
        .unit = text_at(attempt, profile->sample_type.unit),
        .period_type = text_at(attempt, profile->period_type.type),
        .period_unit = text_at(attempt, profile->period_type.unit),
    };
    return profile_type_canonical(&texts, profile->period > 0, attempt->has_cpu_time);
}

static void tell_window(struct attempt *attempt, int64_t age_ns)
{
    struct pyroscope_exporter *exporter = attempt->exporter;
    if (exporter->has_told_window)
        return;
    exporter->has_told_window = true;
    log_warn(&exporter->base.logger,
             "Profiles outside the time that the server takes are dropped; look at the sender's "
             "clock, or raise limits::max_age and limits::max_ahead here and on the server",
             log_int("age_seconds", age_ns / NS_PER_S));
}

/* Whether the server would take that time. What it would not is dropped, and counted. */
static bool is_in_window(struct attempt *attempt)
{
    const struct pyroscope_limits_config *limits = &config_of(attempt)->limits;
    uint64_t now_ns = clock_wall_ns();
    uint64_t time_ns = attempt->profile.time_unix_ns;
    bool is_old = time_ns != 0 && limits->max_age_ns != 0 && time_ns < now_ns &&
                  now_ns - time_ns > limits->max_age_ns;
    bool is_new =
        limits->max_ahead_ns != 0 && time_ns > now_ns && time_ns - now_ns > limits->max_ahead_ns;
    if (!is_old && !is_new)
        return true;
    struct wire_reader reader = wire_reader_of(attempt->profile.bytes);
    struct profile_sample sample;
    uint64_t samples = 0;
    tell_window(attempt, (int64_t)(now_ns - time_ns));
    while (profile_next_sample(&reader, &sample))
        samples++;
    attempt->out_of_window += samples;
    attempt->too_old += is_old ? samples : 0;
    attempt->too_new += is_new ? samples : 0;
    return false;
}

static bool scope_has_cpu_time(const struct attempt *attempt)
{
    struct wire_reader profiles = wire_reader_of(attempt->scope.bytes);
    struct profile profile;
    while (profile_next_profile(&profiles, &profile))
        if (profile_type_is_cpu_time(text_at(attempt, profile.sample_type.type),
                                     text_at(attempt, profile.sample_type.unit)))
            return true;
    return false;
}

/* The next profile of the request, in the order in which they stand there. */
static bool step_to_profile(struct attempt *attempt)
{
    while (!profile_next_profile(&attempt->profiles, &attempt->profile)) {
        while (!profile_next_scope(&attempt->scopes, &attempt->scope)) {
            if (!profile_next_resource(&attempt->resources, &attempt->resource))
                return false;
            attempt->scopes = wire_reader_of(attempt->resource.bytes);
        }
        attempt->profiles = wire_reader_of(attempt->scope.bytes);
        attempt->has_cpu_time = scope_has_cpu_time(attempt);
    }
    attempt->profile_no++;
    return true;
}

static void begin_service(struct attempt *attempt, size_t service)
{
    assert(service < attempt->conversion.services_count);
    attempt->service = service;
    const struct otlp_to_pprof_source source = {
        .profile = &attempt->profile, .type = &attempt->type, .service = service};
    otlp_to_pprof_begin(&attempt->conversion, &source);
}

static bool begin_profile(struct attempt *attempt)
{
    assert(!attempt->has_profile);
    do {
        if (!step_to_profile(attempt))
            return false;
    } while (!is_in_window(attempt));
    attempt->type = type_of(attempt);
    attempt->part_no = 0;
    attempt->has_profile = true;
    otlp_to_pprof_services(&attempt->conversion, &attempt->profile);
    begin_service(attempt, 0);
    return true;
}

/* Gathers the samples of the next part, of whichever profile and service; false: there are none. */
static bool fill_part(struct attempt *attempt)
{
    assert(!attempt->has_ended);
    while (attempt->has_profile || begin_profile(attempt)) {
        if (otlp_to_pprof_fill(&attempt->conversion))
            return true;
        if (otlp_to_pprof_has_failed(&attempt->conversion)) {
            break_off(attempt, no_memory);
            return false;
        }
        if (attempt->service + 1 < attempt->conversion.services_count)
            begin_service(attempt, attempt->service + 1);
        else
            attempt->has_profile = false;
    }
    return false;
}

/* Posts until enough are under way; ends the attempt after the last answer. */
static void pump(struct attempt *attempt)
{
    if (attempt->exporter->is_stopping && !attempt->has_ended)
        break_off(attempt, "the exporter is stopping");
    while (!attempt->has_ended && attempt->in_flight < config_of(attempt)->concurrency) {
        if (fill_part(attempt))
            send_part(attempt);
        else
            attempt->has_ended = true;
    }
    if (attempt->has_ended && attempt->in_flight == 0)
        attempt_end(attempt);
}

static void on_done(const struct http_result *result, void *arg)
{
    struct post *post = arg;
    struct attempt *attempt = post->attempt;
    char text[HTTP_OUTCOME_TEXT_MAX];
    assert(attempt->in_flight > 0);
    attempt->in_flight--;
    if (result->status >= 200 && result->status < 300) {
        number_set_add(&attempt->settled.posts, post->name);
        attempt->settled.stored++;
    } else {
        struct outcome outcome =
            pyroscope_outcome_refused(result, attempt->exporter->shown_url, text);
        post_refused(post, &outcome);
    }
    post_free(post);
    pump(attempt);
}

/* The request in one piece, as indices into it need; no data: no memory. */
static bool join_parts(struct attempt *attempt, struct slice *ret_request)
{
    assert(attempt->joined == NULL);
    const struct batch *batch = attempt->batch;
    if (batch->parts_count == 1) {
        *ret_request = batch->parts[0].bytes;
        return true;
    }
    attempt->joined = buffer_try_create(attempt->exporter->base.budget, batch->bytes);
    if (attempt->joined == NULL)
        return false;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        memcpy(attempt->joined->data + attempt->joined->size, bytes.data, bytes.size);
        attempt->joined->size += bytes.size;
    }
    *ret_request = buffer_slice(attempt->joined);
    return true;
}

void pyroscope_attempt_start(struct pyroscope_exporter *exporter, struct batch *batch,
                             struct receipt *receipt)
{
    assert(exporter->client != NULL);
    assert(batch->signal == PROFILES);
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    struct budget *budget = exporter->base.budget;
    struct slice request = {.size = 0};
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    attempt->done = on_done;
    attempt->worst = outcome_accepted;
    attempt->name = batch_name_of(batch);
    attempt->settled = pyroscope_memory_take(&exporter->memory, &attempt->name);
    arena_init(&attempt->arena, DICTIONARY_BYTES_MAX);
    otlp_to_pprof_init(&attempt->conversion, &exporter->rules, &attempt->dictionary, budget);
    pyroscope_series_init(&attempt->series, budget);
    if (!join_parts(attempt, &request) ||
        !profile_dictionary_open(&attempt->dictionary, &attempt->arena, request))
        break_off(attempt, no_memory);
    attempt->resources = wire_reader_of(request);
    pump(attempt);
}
