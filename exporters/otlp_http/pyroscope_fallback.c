/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the server once what it is, and sends by Push what its OTLP endpoint refuses. Runs on the
 * exporter's lane. */
#include "exporters/otlp_http/pyroscope_fallback.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "exporters/pyroscope/pyroscope_attempt.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"
#include "src/net/client/http_client.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/media_type.h"
#include "src/profiles/otlp/profile_remove.h"

enum { CONCURRENCY = 16 };

static const char push_type[] = "application/proto";

enum state { UNKNOWN, ASKED, IS_PYROSCOPE, IS_OTHER };

/* A refused batch that waits for the server's response. */
struct waiting {
    struct waiting *next;
    struct batch *batch;
    struct receipt *receipt;
    struct outcome refusal; /* its message is owned */
    bool is_rest_stored;
};

struct pyroscope_fallback {
    enum state state;
    const struct component *owner;
    struct pyroscope_config config;
    struct pyroscope_counters counters;
    struct pyroscope_exporter exporter; /* its sending half, with the owner's client */
    char *push_path;
    struct waiting *waiting;
    bool has_logged; /* that it is a Pyroscope */
};

const struct config_field pyroscope_fallback_fields[] = {
    CONFIG_SECTION(struct pyroscope_fallback_config, labels, struct pyroscope_labels_config,
                   "labels", pyroscope_labels_fields, pyroscope_labels_check,
                   "As those of the pyroscope exporter."),
    CONFIG_SECTION(struct pyroscope_fallback_config, limits, struct pyroscope_limits_config,
                   "limits", pyroscope_limits_fields, NULL, "As those of the pyroscope exporter."),
    CONFIG_END,
};

/* base + path; freed with mem_free. */
static char *path_at(const char *base, size_t base_size, const char *path)
{
    size_t size = base_size + strlen(path) + 1;
    char *text = mem_alloc(size);
    snprintf(text, size, "%.*s%s", (int)base_size, base, path);
    return text;
}

bool pyroscope_fallback_create(const struct component *owner,
                               const struct pyroscope_fallback_settings *settings,
                               struct pyroscope_fallback **ret_fallback, struct error *error)
{
    const size_t otlp_size = strlen(PYROSCOPE_OTLP_PATH);
    struct http_url url;
    *ret_fallback = NULL;
    if (!http_url_parse(settings->url, &url, error))
        return false;
    size_t path_size = strcspn(url.target, "?");
    if (path_size < otlp_size ||
        strncmp(url.target + path_size - otlp_size, PYROSCOPE_OTLP_PATH, otlp_size) != 0) {
        http_url_clear(&url);
        return true;
    }
    size_t base_size = path_size - otlp_size;
    struct pyroscope_fallback *fallback = mem_zalloc(sizeof(*fallback));
    fallback->owner = owner;
    fallback->config = (struct pyroscope_config){
        .endpoint = settings->url,
        /* A server of layout 1.9 gets everything by Push, which has no layouts. */
        .mode = settings->has_layout_1_9 ? PYROSCOPE_PUSH : PYROSCOPE_OTLP,
        .compression = settings->compresses ? PYROSCOPE_GZIP : PYROSCOPE_PLAIN,
        .trace_id = PYROSCOPE_ON,
        .min_server_version = settings->has_layout_1_9 ? PYROSCOPE_1 : PYROSCOPE_2_1,
        .tenant = "",
        .bearer_token = "",
        .proxy_url = "",
        .timeout_ns = settings->timeout_ns,
        .concurrency = CONCURRENCY,
        .labels = settings->config->labels,
        .limits = settings->config->limits,
    };
    fallback->push_path = path_at(url.target, base_size, PYROSCOPE_PUSH_PATH);
    fallback->exporter = (struct pyroscope_exporter){
        .base = *owner,
        .shown_url = mem_copy_text(url.shown),
        .shown_ingest_url = mem_copy_text(url.shown),
        .ingest_path = path_at(url.target, base_size, PYROSCOPE_INGEST_PATH),
        .push_path = fallback->push_path,
        .gzip = settings->compresses ? gzip_create() : NULL,
        .rules = pyroscope_rules_of(&fallback->config),
        .wants = settings->has_layout_1_9 ? NULL : pyroscope_has_no_otlp_name,
    };
    fallback->exporter.base.config = &fallback->config;
    fallback->exporter.base.counters = &fallback->counters;
    http_url_clear(&url);
    *ret_fallback = fallback;
    return true;
}

void pyroscope_fallback_start(struct pyroscope_fallback *fallback, struct http_client *client,
                              struct stop_latch *users)
{
    if (fallback == NULL)
        return;
    fallback->exporter.client = client;
    fallback->exporter.users = users;
}

static bool contains(struct slice body, const char *words)
{
    return body.size > 0 && memmem(body.data, body.size, words, strlen(words)) != NULL;
}

static void found_pyroscope(struct pyroscope_fallback *fallback)
{
    fallback->state = IS_PYROSCOPE;
    if (fallback->has_logged)
        return;
    fallback->has_logged = true;
    log_info(
        &fallback->owner->logger,
        "The back-end is a Pyroscope server: profiles without a period type, which its OTLP "
        "endpoint refuses, go to its Push API; the pyroscope exporter sends all profiles there",
        log_text("url", fallback->exporter.shown_url));
}

/* Sends a batch by Push. */
static void push(struct pyroscope_fallback *fallback, struct batch *batch, struct receipt *receipt,
                 bool is_rest_stored)
{
    assert(fallback->state == IS_PYROSCOPE);
    if (fallback->exporter.is_stopping) {
        struct outcome outcome = outcome_busy("the exporter is stopping");
        receipt_resolve(receipt, &outcome);
    } else if (is_rest_stored && fallback->config.mode == PYROSCOPE_OTLP) {
        pyroscope_attempt_continue(&fallback->exporter, batch, receipt);
    } else {
        pyroscope_attempt_start(&fallback->exporter, batch, receipt);
    }
}

/* The response to a Push without profiles. A Pyroscope sends an empty one of its own type, or an
 * error of the Connect protocol; a server that does not know the path or the method is not one;
 * anything else may come from a proxy. */
static void on_response(const struct http_result *result, void *arg)
{
    struct pyroscope_fallback *fallback = arg;
    struct waiting *waiting = fallback->waiting;
    unsigned status = result->status;
    bool is_success = status >= 200 && status < 300;
    bool is_pyroscope = is_success ? media_type_is(result->content_type, push_type)
                                   : status >= 400 &&
                                         media_type_is(result->content_type, "application/json") &&
                                         contains(result->body, "\"code\":\"invalid_argument\"");
    bool is_other = is_success || status == 400 || status == 404 || status == 405 ||
                    status == 415 || status == 501;
    assert(fallback->state == ASKED);
    fallback->waiting = NULL;
    fallback->state = is_other ? IS_OTHER : UNKNOWN;
    if (is_pyroscope)
        found_pyroscope(fallback);
    while (waiting != NULL) {
        struct waiting *next = waiting->next;
        if (fallback->state == IS_PYROSCOPE)
            push(fallback, waiting->batch, waiting->receipt, waiting->is_rest_stored);
        else
            receipt_resolve(waiting->receipt, &waiting->refusal);
        batch_unref(waiting->batch);
        mem_free((void *)(uintptr_t)waiting->refusal.message);
        mem_free(waiting);
        waiting = next;
    }
}

/* Whether the batch has a profile that the OTLP endpoint would refuse. */
static bool needs_push(const struct pyroscope_fallback *fallback, const struct batch *batch)
{
    struct batch_part part = {.owner = NULL};
    budget_begin_export();
    bool is_joined = batch_join(batch, fallback->owner->budget, &part);
    budget_end_export();
    if (!is_joined)
        return false; /* sending it will most likely fail, too: no memory */
    bool needs = profile_choice_has(part.bytes, pyroscope_has_no_otlp_name);
    buffer_unref(part.owner);
    return needs;
}

bool pyroscope_fallback_takes(struct pyroscope_fallback *fallback, struct batch *batch,
                              struct receipt *receipt)
{
    if (fallback == NULL || fallback->state != IS_PYROSCOPE || !needs_push(fallback, batch))
        return false;
    push(fallback, batch, receipt, false);
    return true;
}

bool pyroscope_fallback_takes_refused(struct pyroscope_fallback *fallback,
                                      const struct http_result *result,
                                      const struct outcome *refusal, struct batch *batch,
                                      struct receipt *receipt)
{
    bool blames_content = result->status == 400 || result->status == 500;
    if (fallback == NULL || fallback->exporter.is_stopping || !blames_content ||
        !needs_push(fallback, batch))
        return false;
    /* A server that numbers series in its error has pushed each on its own, the others with
     * success. An older one stopped at the first: what it had stored by then is stored twice, this
     * one time. */
    bool is_rest_stored = contains(result->body, "push series with index");
    /* "invalid labels '{__delta__="false", …}' with error: invalid metric name" */
    if (fallback->state != ASKED && contains(result->body, "invalid metric name"))
        found_pyroscope(fallback);
    if (fallback->state == IS_OTHER)
        return false;
    if (fallback->state == IS_PYROSCOPE) {
        push(fallback, batch, receipt, is_rest_stored);
        return true;
    }
    struct waiting *waiting = mem_alloc(sizeof(*waiting));
    *waiting = (struct waiting){.next = fallback->waiting,
                                .batch = batch_ref(batch),
                                .receipt = receipt,
                                .refusal = *refusal,
                                .is_rest_stored = is_rest_stored};
    waiting->refusal.message = mem_copy_text(refusal->message);
    waiting->refusal.details = (struct slice){.size = 0};
    fallback->waiting = waiting;
    if (fallback->state == UNKNOWN) {
        const struct http_post post = {
            .content_type = push_type,
            .client = waiting->batch->client,
            .target = fallback->push_path,
            .done = on_response,
            .arg = fallback,
        };
        fallback->state = ASKED;
        http_client_post(fallback->exporter.client, &post);
    }
    return true;
}

void pyroscope_fallback_forget(struct pyroscope_fallback *fallback)
{
    if (fallback != NULL && fallback->state != ASKED)
        fallback->state = UNKNOWN;
}

void pyroscope_fallback_stop(struct pyroscope_fallback *fallback)
{
    if (fallback != NULL)
        fallback->exporter.is_stopping = true;
}

void pyroscope_fallback_destroy(struct pyroscope_fallback *fallback)
{
    if (fallback == NULL)
        return;
    assert(fallback->waiting == NULL);
    gzip_destroy(fallback->exporter.gzip);
    pyroscope_memory_fini(&fallback->exporter.memory);
    mem_free(fallback->exporter.shown_url);
    mem_free(fallback->exporter.shown_ingest_url);
    mem_free(fallback->exporter.ingest_path);
    mem_free(fallback->push_path);
    mem_free(fallback);
}

bool pyroscope_fallback_is_likely(const char *text)
{
    static const char *const names[] = {"pyroscope", "profiles-prod-", "phlare"};
    enum { PYROSCOPE_PORT = 4040 };
    struct http_url url;
    struct error error;
    if (!http_url_parse(text, &url, &error))
        return false;
    bool is_likely = url.port == PYROSCOPE_PORT;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_likely |= strcasestr(url.host, names[i]) != NULL;
    http_url_clear(&url);
    return is_likely;
}
