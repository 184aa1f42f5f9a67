/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope: sends profiles to a Pyroscope server, by its Push API or to /ingest as pprof, or as
 * OTLP. One instance per lane, on its lane. */
#include "exporters/pyroscope/pyroscope_attempt.h"
#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/shared/exporter_client.h"
#include "src/base/base64.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/net/client/http_client.h"
#include "src/net/syntax/http_url.h"
#include "src/profiles/otlp/opaque_profile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { OWN_HEADERS_MAX = 2 };

static const struct counter_row pyroscope_exporter_counters[] = {
    COUNTER(struct pyroscope_counters, posts, COUNTER_SUM, "spanflame_pyroscope_posts",
            "Requests sent: one for each series and part."),
    COUNTER(struct pyroscope_counters, refused, COUNTER_SUM, "spanflame_pyroscope_refused_series",
            "Series that the server refused for good."),
    COUNTER(struct pyroscope_counters, repeated, COUNTER_SUM, "spanflame_pyroscope_spared_posts",
            "Series that a retry did not send again because they were settled before."),
    COUNTER(struct pyroscope_counters, moved, COUNTER_SUM, "spanflame_pyroscope_moved_profiles",
            "Profiles whose time was moved by nanoseconds because another one of the series had "
            "it: the server keeps only one."),
    COUNTER(struct pyroscope_counters, zero, COUNTER_SUM, "spanflame_pyroscope_zero_samples",
            "Samples without a value, which are not sent."),
    COUNTER(struct pyroscope_counters, negative, COUNTER_SUM,
            "spanflame_pyroscope_negative_samples", "Samples below zero, which are not sent."),
    COUNTER(struct pyroscope_counters, too_large, COUNTER_SUM,
            "spanflame_pyroscope_too_large_samples",
            "Samples that alone are above limits::max_bytes."),
    COUNTER(struct pyroscope_counters, too_old, COUNTER_SUM, "spanflame_pyroscope_too_old_samples",
            "Samples of profiles older than limits::max_age."),
    COUNTER(struct pyroscope_counters, too_new, COUNTER_SUM, "spanflame_pyroscope_too_new_samples",
            "Samples of profiles beyond limits::max_future."),
    COUNTER(struct pyroscope_counters, cut_stacks, COUNTER_SUM, "spanflame_pyroscope_cut_stacks",
            "Samples that lost leaves to limits::max_stack_depth."),
    COUNTER(struct pyroscope_counters, left_out_labels, COUNTER_SUM,
            "spanflame_pyroscope_left_out_labels", "Labels beyond labels::max_names."),
    COUNTER(struct pyroscope_counters, changed_labels, COUNTER_SUM,
            "spanflame_pyroscope_changed_labels",
            "Names and values that /ingest cannot express unchanged: its name has no quotes."),
    COUNTER(
        struct pyroscope_counters, cut_posts, COUNTER_SUM, "spanflame_pyroscope_cut_posts",
        "Profiles that were sent in pieces because the server never accepted them whole (429)."),
    COUNTER(struct pyroscope_counters, never_taken, COUNTER_SUM, "spanflame_pyroscope_never_taken",
            "Profiles that were dropped because the server would never accept them (429)."),
    COUNTER_END,
};

extern const struct component_factory pyroscope_exporter_factory;

static struct pyroscope_exporter *pyroscope_exporter_of(struct component *base)
{
    assert(base->factory == &pyroscope_exporter_factory);
    return (struct pyroscope_exporter *)base;
}

static void pyroscope_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    struct pyroscope_exporter *exporter = pyroscope_exporter_of(self);
    assert(exporter->client != NULL);
    assert(batch->signal == self->signal);
    const char *tenant = exporter->forwards_tenant ? client_info_tenant(batch->client) : NULL;
    if (tenant != NULL && strlen(tenant) > CLIENT_TENANT_BYTES_MAX) {
        struct outcome outcome = outcome_refused(
            STATUS_INVALID_ARGUMENT, "the client's X-Scope-OrgID is longer than 150 bytes");
        receipt_resolve(receipt, &outcome);
        return;
    }
    pyroscope_attempt_start(exporter, batch, receipt);
}

static bool pyroscope_exporter_create(struct component *self, struct error *error)
{
    static const char *const paths[] = {
        [PYROSCOPE_PUSH] = PYROSCOPE_PUSH_PATH,
        [PYROSCOPE_INGEST] = PYROSCOPE_INGEST_PATH,
        [PYROSCOPE_OTLP] = PYROSCOPE_OTLP_PATH,
    };
    static const char basic[] = "Basic ";
    struct pyroscope_exporter *exporter = pyroscope_exporter_of(self);
    const struct pyroscope_config *config = self->config;
    struct http_url url;
    exporter->url = http_url_join(config->endpoint, paths[config->mode]);
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    http_url_clear(&url);
    /* In each mode uploads go to /ingest. */
    char *ingest_url = http_url_join(config->endpoint, paths[PYROSCOPE_INGEST]);
    bool is_valid = http_url_parse(ingest_url, &url, error);
    mem_free(ingest_url);
    if (!is_valid)
        return error_prefix(error, "endpoint");
    exporter->shown_ingest_url = mem_copy_text(url.shown);
    exporter->ingest_path = mem_copy_text(url.target);
    http_url_clear(&url);
    self->destination = exporter->shown_url;

    /* Headers, ours first: of equal ones the user's, which come later, win. */
    if (config->bearer_token[0] != '\0') {
        size_t size = strlen(config->bearer_token) + sizeof("Bearer ");
        exporter->authorization = mem_alloc(size);
        snprintf(exporter->authorization, size, "Bearer %s", config->bearer_token);
    } else if (config->has_basic_auth) {
        const struct pyroscope_auth_config *auth = &config->basic_auth;
        size_t size = strlen(auth->username) + 1 + strlen(auth->password);
        char *plain = mem_alloc(size + 1);
        exporter->authorization = mem_zalloc(sizeof(basic) + base64_size(size));
        snprintf(plain, size + 1, "%s:%s", auth->username, auth->password);
        memcpy(exporter->authorization, basic, sizeof(basic) - 1);
        base64_encode(slice_of(plain, size), exporter->authorization + sizeof(basic) - 1);
        mem_free(plain);
    }
    exporter->headers =
        mem_alloc((config->headers.count + OWN_HEADERS_MAX) * sizeof(exporter->headers[0]));
    if (exporter->authorization != NULL)
        exporter->headers[exporter->headers_count++] =
            (struct config_pair){.key = "Authorization", .value = exporter->authorization};
    exporter->forwards_tenant = config->forward_tenant && config->tenant[0] == '\0';
    if (config->tenant[0] != '\0')
        exporter->headers[exporter->headers_count++] =
            (struct config_pair){.key = "X-Scope-OrgID", .value = config->tenant};
    for (size_t i = 0; i < config->headers.count; i++) {
        exporter->headers[exporter->headers_count++] = config->headers.pairs[i];
        exporter->forwards_tenant &=
            strcasecmp(config->headers.pairs[i].key, CLIENT_TENANT_HEADER) != 0;
    }

    exporter->rules = pyroscope_rules_of(config);
    exporter->wants = config->mode == PYROSCOPE_OTLP ? profile_is_opaque : NULL;
    if (config->compression == PYROSCOPE_GZIP)
        exporter->gzip = gzip_create();
    return exporter_auth_create(self, &config->auth, &exporter->authenticator, error);
}

static bool pyroscope_exporter_start(struct component *self, struct error *error)
{
    struct pyroscope_exporter *exporter = pyroscope_exporter_of(self);
    const struct pyroscope_config *config = self->config;
    struct http_client_settings settings = {
        .url = exporter->url,
        .headers = exporter->headers,
        .headers_count = exporter->headers_count,
        .timeout_ns = config->timeout_ns,
        .idle_connections_max = config->concurrency,
        .idle_timeout_ns = (uint64_t)90 * NS_PER_S,
        .has_keep_alive = true,
        .proxy_url = config->proxy_url,
    };
    exporter->client =
        exporter_client_create(self, &settings, &config->tls, exporter->authenticator, error);
    exporter->users = &exporter->own_users;
    exporter_client_users(self, exporter->users);
    return exporter->client != NULL;
}

static void pyroscope_exporter_stop(struct component *self)
{
    struct pyroscope_exporter *exporter = pyroscope_exporter_of(self);
    exporter->is_stopping = true;
    exporter_client_stop(self, exporter->client, exporter->users);
}

static void pyroscope_exporter_destroy(struct component *self)
{
    struct pyroscope_exporter *exporter = pyroscope_exporter_of(self);
    http_client_destroy(exporter->client);
    gzip_destroy(exporter->gzip);
    authenticator_destroy(exporter->authenticator);
    pyroscope_memory_fini(&exporter->memory);
    mem_free(exporter->headers);
    mem_free(exporter->authorization);
    mem_free(exporter->url);
    mem_free(exporter->shown_url);
    mem_free(exporter->shown_ingest_url);
    mem_free(exporter->ingest_path);
}

const struct component_factory pyroscope_exporter_factory = {
    .type = "pyroscope",
    .kind = EXPORTER,
    .stability = "beta",
    .signals = SIGNAL_PROFILES,
    .instance_size = sizeof(struct pyroscope_exporter),
    .config_size = sizeof(struct pyroscope_config),
    .fields = pyroscope_fields,
    .counters_size = sizeof(struct pyroscope_counters),
    .counters = pyroscope_exporter_counters,
    .check = pyroscope_config_check,
    .create = pyroscope_exporter_create,
    .start = pyroscope_exporter_start,
    .consume = pyroscope_exporter_consume,
    .stop = pyroscope_exporter_stop,
    .destroy = pyroscope_exporter_destroy,
};
