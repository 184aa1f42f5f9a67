/* SPDX-License-Identifier: Apache-2.0 */
/* zipkin: POSTs spans to Zipkin's API v2, as JSON or protobuf. Each consume is one attempt; queue,
 * batching and retries come before it (src/pipeline/exporter_queue.h), and a repeated batch is
 * written again. One instance per lane, on its lane; what is large is written by the lane's
 * helper. */
#include "exporters/shared/exporter_client.h"
#include "exporters/shared/http_client_config.h"
#include "exporters/shared/http_outcome.h"
#include "exporters/zipkin/zipkin_writer.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <string.h>

enum {
    /* What is written on the lane itself: about 15 ms. A body that turns out to be larger is begun
     * anew by the helper. */
    LANE_BODY_BYTES_MAX = 3 << 20,
    LANE_COMPRESSED_BYTES_MAX = 1 << 20,
    /* Each span repeats the attributes of its resource: no bound follows from the request. */
    BODY_BYTES_MAX = 256 << 20,
    BODY_BUDGET_PART = 4, /* and at most a quarter of the budget */
};

/* ---- options ---- */

struct zipkin_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    int format; /* enum zipkin_format */
    const char *default_service_name;
    struct http_client_config client;
};

/* In the order of enum zipkin_format. */
static const char *const formats[] = {"json", "proto", NULL};

static const struct config_field zipkin_fields[] = {
    CONFIG_TEXT_WARNED(struct zipkin_config, endpoint, "endpoint", NULL, exporter_url_warning,
                       "Whole URL of the spans, http://zipkin:9411/api/v2/spans."),
    CONFIG_CHOICE(struct zipkin_config, format, "format", "json", formats,
                  "Encoding of the spans: json, or proto (protobuf)."),
    CONFIG_UNUSED_TEXT(struct zipkin_config, default_service_name, "default_service_name",
                       "<missing service name>",
                       "As in the Go collector, spans without a service belong to "
                       "OTLPResourceNoServiceName."),
    HTTP_CLIENT_ROWS(struct zipkin_config, client, "5s", ""),
    SENDING_QUEUE_ROW(struct zipkin_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct zipkin_config),
    CONFIG_END,
};

static bool zipkin_exporter_check(const void *section, struct error *error)
{
    const struct zipkin_config *config = section;
    if (config->endpoint[0] == '\0')
        return error_set(error, "endpoint required: the URL of the spans, as in "
                                "http://zipkin:9411/api/v2/spans") ||
               error_at(error, "endpoint");
    return exporter_url_check("endpoint", config->endpoint, error) &&
           http_client_config_check(&config->client, error);
}

/* ---- attempts ---- */

struct zipkin_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    struct http_client *client;
    enum codec codec; /* CODEC_NONE: bodies are not compressed */
    struct codec_box *codecs;
    struct codec_box *helper_codecs;     /* the same, on the helper of the lane */
    struct authenticator *authenticator; /* NULL: none */
    struct stop_latch users; /* held by the client, and while the helper works on an attempt */
    bool has_logged_invalid;
    bool is_stopping;
};

/* One request. */
struct attempt {
    struct zipkin_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    uint64_t invalid; /* spans that are not sent */
    struct batch_part body;
    struct http_post post;
    struct helper_work work; /* when the helper writes */
    bool is_helped;
    enum zipkin_result result;
};

extern const struct component_factory zipkin_exporter_factory;

static struct zipkin_exporter *zipkin_exporter_of(struct component *base)
{
    assert(base->factory == &zipkin_exporter_factory);
    return (struct zipkin_exporter *)base;
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->body.owner);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

/* It is done, but for spans that Zipkin cannot have. */
static void attempt_accepted(struct attempt *attempt)
{
    struct outcome outcome = outcome_accepted;
    uint64_t items = attempt->batch->items;
    outcome.invalid_items = attempt->invalid < items ? attempt->invalid : items;
    outcome.rejected_items = outcome.invalid_items;
    attempt_end(attempt, &outcome);
}

static void on_done(const struct http_result *result, void *arg)
{
    enum { BAD_REQUEST = 400, TOO_LARGE = 413 };
    struct attempt *attempt = arg;
    struct zipkin_exporter *exporter = attempt->exporter;
    if (result->status >= 200 && result->status < 300) {
        attempt_accepted(attempt);
        return;
    }
    char text[HTTP_OUTCOME_TEXT_MAX];
    const struct request_secrets secrets = http_client_secrets(exporter->client, result);
    struct outcome refused = http_outcome_refused(result, &secrets, exporter->shown_url, text);
    /* The Go collector repeats whatever was not a 2xx. We do, too, unless Zipkin has said that the
     * same spans will never be good, or small, enough. */
    if (result->status != 0)
        refused.is_permanent = result->status == BAD_REQUEST || result->status == TOO_LARGE;
    attempt_end(attempt, &refused);
}

/* False: there is no memory. */
static bool compress(struct attempt *attempt)
{
    const struct zipkin_exporter *exporter = attempt->exporter;
    const struct zipkin_config *config = exporter->base.config;
    struct codec_box *codecs = attempt->is_helped ? exporter->helper_codecs : exporter->codecs;
    struct buffer *output;
    const struct codec_input input = {
        .parts = &attempt->body,
        .parts_count = 1,
        .level = http_client_config_level(&config->client),
    };
    if (codec_deflate(codecs, exporter->codec, &input, &output) != CODEC_OK)
        return false;
    buffer_unref(attempt->body.owner);
    attempt->body = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    attempt->post.content_encoding = http_client_config_encoding(&config->client);
    return true;
}

/* Without an error and without a body no span is left. */
static enum zipkin_result encode_body(struct attempt *attempt, size_t bytes_max)
{
    const struct zipkin_exporter *exporter = attempt->exporter;
    const struct zipkin_config *config = exporter->base.config;
    struct budget *budget = exporter->base.budget;
    struct zipkin_body body;
    struct batch_part whole;
    if (!batch_join(attempt->batch, budget, &whole))
        return ZIPKIN_NO_MEMORY;
    enum zipkin_result result =
        zipkin_write(whole.bytes, (enum zipkin_format)config->format, bytes_max, budget, &body);
    buffer_unref(whole.owner);
    if (result != ZIPKIN_WRITTEN)
        return result;
    attempt->invalid = body.invalid;
    if (body.text == NULL)
        return ZIPKIN_WRITTEN;
    attempt->body = (struct batch_part){.owner = body.text, .bytes = buffer_slice(body.text)};
    if (exporter->codec != CODEC_NONE && !compress(attempt))
        return ZIPKIN_NO_MEMORY;
    attempt->post.content_type =
        config->format == ZIPKIN_JSON ? "application/json" : "application/x-protobuf";
    attempt->post.parts = &attempt->body;
    attempt->post.parts_count = 1;
    attempt->post.bytes = attempt->body.bytes.size;
    return ZIPKIN_WRITTEN;
}

/* Runs on the lane or on its helper. */
static enum zipkin_result encode(struct attempt *attempt, size_t bytes_max)
{
    budget_begin_export();
    enum zipkin_result result = encode_body(attempt, bytes_max);
    budget_end_export();
    return result;
}

static void note_invalid(struct zipkin_exporter *exporter, uint64_t invalid)
{
    if (invalid == 0 || exporter->has_logged_invalid)
        return;
    exporter->has_logged_invalid = true;
    log_warn(&exporter->base.logger,
             "Zipkin has no spans without a trace id or span id: they are left out and counted; "
             "look for the client that sends them",
             log_int("spans", (int64_t)invalid));
}

static void send_encoded(struct attempt *attempt)
{
    struct outcome outcome;
    switch (attempt->result) {
    case ZIPKIN_WRITTEN:
        note_invalid(attempt->exporter, attempt->invalid);
        if (attempt->body.owner != NULL)
            http_client_post(attempt->exporter->client, &attempt->post);
        else
            attempt_accepted(attempt);
        return;
    case ZIPKIN_TOO_LARGE:
        outcome = outcome_too_large(
            "the spans are too many for one request to Zipkin, where each carries the attributes "
            "of its resource; set sending_queue::batch::max_size");
        break;
    case ZIPKIN_NO_MEMORY:
    default:
        outcome = outcome_no_memory("no memory left in the budget to encode a request");
        break;
    }
    attempt_end(attempt, &outcome);
}

static struct attempt *attempt_of(struct helper_work *work)
{
    return (struct attempt *)((char *)work - offsetof(struct attempt, work));
}

static void on_help(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    const struct budget *budget = attempt->exporter->base.budget;
    size_t bytes_max = BODY_BYTES_MAX;
    if (budget != NULL && budget_limit(budget) / BODY_BUDGET_PART < bytes_max)
        bytes_max = (size_t)budget_limit(budget) / BODY_BUDGET_PART;
    attempt->result = encode(attempt, bytes_max);
}

static void on_helped(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    struct zipkin_exporter *exporter = attempt->exporter;
    attempt->is_helped = false;
    if (exporter->is_stopping) {
        struct outcome outcome = outcome_busy("the exporter is stopping");
        attempt_end(attempt, &outcome);
    } else {
        send_encoded(attempt);
    }
    stop_latch_release(&exporter->users);
}

static void zipkin_exporter_consume(struct component *self, struct batch *batch,
                                    struct receipt *receipt)
{
    struct zipkin_exporter *exporter = zipkin_exporter_of(self);
    assert(batch->signal == TRACES);
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->post = (struct http_post){.client = batch->client, .done = on_done, .arg = attempt};
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    size_t bytes_max =
        exporter->codec == CODEC_NONE ? LANE_BODY_BYTES_MAX : LANE_COMPRESSED_BYTES_MAX;
    attempt->result =
        batch->bytes < HELPED_BYTES_MIN ? encode(attempt, bytes_max) : ZIPKIN_TOO_LARGE;
    if (attempt->result != ZIPKIN_TOO_LARGE) {
        send_encoded(attempt);
        return;
    }
    attempt->is_helped = true;
    stop_latch_hold(&exporter->users);
    attempt->work = (struct helper_work){.run = on_help, .done = on_helped};
    lane_help(self->lane, &attempt->work);
}

/* ---- life cycle ---- */

static bool zipkin_exporter_create(struct component *self, struct error *error)
{
    struct zipkin_exporter *exporter = zipkin_exporter_of(self);
    const struct zipkin_config *config = self->config;
    struct http_url url;
    exporter->url = exporter_url(config->endpoint);
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    self->destination = exporter->shown_url;
    http_url_clear(&url);
    exporter->codec = http_client_config_codec(&config->client);
    exporter->codecs = codec_box_create(self->budget);
    exporter->helper_codecs = codec_box_create(self->budget);
    return codec_prepare(exporter->codec, error) &&
           exporter_auth_create(self, &config->client.auth, &exporter->authenticator, error);
}

static bool zipkin_exporter_start(struct component *self, struct error *error)
{
    struct zipkin_exporter *exporter = zipkin_exporter_of(self);
    const struct zipkin_config *config = self->config;
    struct http_client_settings settings = http_client_config_settings(&config->client);
    settings.url = exporter->url;
    exporter->client = exporter_client_create(self, &settings, &config->client.tls,
                                              exporter->authenticator, error);
    exporter_client_users(self, &exporter->users);
    return exporter->client != NULL;
}

static void zipkin_exporter_stop(struct component *self)
{
    struct zipkin_exporter *exporter = zipkin_exporter_of(self);
    exporter->is_stopping = true;
    exporter_client_stop(self, exporter->client, &exporter->users);
}

static void zipkin_exporter_destroy(struct component *self)
{
    struct zipkin_exporter *exporter = zipkin_exporter_of(self);
    http_client_destroy(exporter->client);
    codec_box_destroy(exporter->codecs);
    codec_box_destroy(exporter->helper_codecs);
    authenticator_destroy(exporter->authenticator);
    mem_free(exporter->url);
    mem_free(exporter->shown_url);
}

const struct component_factory zipkin_exporter_factory = {
    .type = "zipkin",
    .kind = EXPORTER,
    .stability = "beta",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct zipkin_exporter),
    .config_size = sizeof(struct zipkin_config),
    .fields = zipkin_fields,
    .check = zipkin_exporter_check,
    .create = zipkin_exporter_create,
    .start = zipkin_exporter_start,
    .consume = zipkin_exporter_consume,
    .stop = zipkin_exporter_stop,
    .destroy = zipkin_exporter_destroy,
};
