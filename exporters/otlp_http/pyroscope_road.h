/* SPDX-License-Identifier: Apache-2.0 */
/* The second road of an otlp_http exporter to a Pyroscope server. That server's OTLP endpoint makes
 * the name of a profile from its period type, and refuses a request in which one has none; its Push
 * API takes such profiles, named by us. When a back-end has refused a request of that kind, its
 * words say that it is a Pyroscope, or its answer to an empty Push does, for which it is asked
 * once; and again after the connection broke. One owner, on the exporter's lane. */
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

/* The section `pyroscope` of otlp_http. */
struct pyroscope_road_config {
    struct pyroscope_labels_config labels;
    struct pyroscope_limits_config limits;
};
extern const struct config_field pyroscope_road_fields[];

struct pyroscope_road_settings {
    const struct pyroscope_road_config *config;
    const char *url;     /* of OTLP profiles */
    bool compresses;     /* with gzip, the one coding that the server knows */
    bool has_layout_1_9; /* the server is older than 2.0 */
    uint64_t timeout_ns;
};

struct pyroscope_road;

/* *ret_road is NULL when the URL is none that Pyroscope has for OTLP; what follows tolerates that:
 * there is no other road. False: the error says why. */
bool pyroscope_road_create(const struct component *owner,
                           const struct pyroscope_road_settings *settings,
                           struct pyroscope_road **ret_road, struct error *error);
/* Before the first batch; the client is the owner's. */
void pyroscope_road_start(struct pyroscope_road *road, struct http_client *client);
/* True: the batch goes this road, and the receipt will be resolved. False: it is to go as OTLP. */
bool pyroscope_road_takes(struct pyroscope_road *road, struct batch *batch,
                          struct receipt *receipt);
/* The same for a batch that went as OTLP and was refused: it goes this road too, or the refusal
 * resolves the receipt once the server has said that it is none. */
bool pyroscope_road_takes_refused(struct pyroscope_road *road, const struct http_result *result,
                                  const struct outcome *refusal, struct batch *batch,
                                  struct receipt *receipt);
/* A connection broke, or could not be made: another server may answer next. */
void pyroscope_road_forget(struct pyroscope_road *road);
/* Before the client is closed: nothing new is posted from now on. */
void pyroscope_road_stop(struct pyroscope_road *road);
/* After the client has closed. */
void pyroscope_road_destroy(struct pyroscope_road *road);

/* Whether a URL looks like one of a Pyroscope server: by its port, 4040, or its host's name. */
bool pyroscope_road_is_likely(const char *url);
