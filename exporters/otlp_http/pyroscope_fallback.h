/* SPDX-License-Identifier: Apache-2.0 */
/* Sends profiles of an otlp_http exporter to a Pyroscope server's Push API. The server's OTLP
 * endpoint names a profile after its period type and refuses a request in which a profile has none;
 * the Push API accepts such profiles under the names that we give them. A Pyroscope is recognized
 * by its refusal of such a request, or by its response to an empty Push, which is sent once, and
 * again after the connection broke. One owner, on the exporter's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/pyroscope/pyroscope_config.h"

struct batch;
struct component;
struct error;
struct http_client;
struct http_result;
struct outcome;
struct receipt;
struct stop_latch;

/* The section `pyroscope` of otlp_http. */
struct pyroscope_fallback_config {
    struct pyroscope_labels_config labels;
    struct pyroscope_limits_config limits;
};
extern const struct config_field pyroscope_fallback_fields[];

struct pyroscope_fallback_settings {
    const struct pyroscope_fallback_config *config;
    const char *url;     /* of OTLP profiles */
    bool compresses;     /* with gzip, the only coding that the server knows */
    bool has_layout_1_9; /* the server is older than 2.0 */
    uint64_t timeout_ns;
};

struct pyroscope_fallback;

/* *ret_fallback is NULL when the URL is not that of Pyroscope's OTLP endpoint; the functions below
 * accept that and do nothing. False: the error says why. */
bool pyroscope_fallback_create(const struct component *owner,
                               const struct pyroscope_fallback_settings *settings,
                               struct pyroscope_fallback **ret_fallback, struct error *error);
/* Before the first batch. The owner keeps the client and the latch of its users. */
void pyroscope_fallback_start(struct pyroscope_fallback *fallback, struct http_client *client,
                              struct stop_latch *users);
/* True: sends the batch by Push and resolves the receipt. False: it must be sent as OTLP. */
bool pyroscope_fallback_takes(struct pyroscope_fallback *fallback, struct batch *batch,
                              struct receipt *receipt);
/* The same for a batch that was refused as OTLP. If the server turns out not to be a Pyroscope, the
 * receipt is resolved with the refusal. */
bool pyroscope_fallback_takes_refused(struct pyroscope_fallback *fallback,
                                      const struct http_result *result,
                                      const struct outcome *refusal, struct batch *batch,
                                      struct receipt *receipt);
/* A connection broke or could not be made: the next one may lead to another server. */
void pyroscope_fallback_forget(struct pyroscope_fallback *fallback);
/* Before the client is closed. Nothing is posted after it. */
void pyroscope_fallback_stop(struct pyroscope_fallback *fallback);
/* After the client has closed. */
void pyroscope_fallback_destroy(struct pyroscope_fallback *fallback);

/* Whether a URL looks like a Pyroscope server's, by its port, 4040, or its host name. */
bool pyroscope_fallback_is_likely(const char *url);
