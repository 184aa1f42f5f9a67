/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt of the pyroscope exporter to send a batch: walks through its profiles, converts one
 * after the other and posts each series on its own, a few at a time. Runs on the exporter's lane.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/pyroscope/pyroscope_memory.h"
#include "src/base/counter.h"
#include "src/base/stop_latch.h"
#include "src/core/component.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/pprof/otlp_to_pprof.h"

#define PYROSCOPE_PUSH_PATH   "/push.v1.PusherService/Push"
#define PYROSCOPE_INGEST_PATH "/ingest"
#define PYROSCOPE_OTLP_PATH   "/v1development/profiles"

struct batch;
struct gzip;
struct http_client;
struct profile;
struct pyroscope_config;
struct receipt;

struct pyroscope_counters {
    counter posts;
    counter refused;
    counter repeated;
    counter moved;
    counter zero;
    counter negative;
    counter too_large;
    counter too_old;
    counter too_new;
    counter cut_stacks;
    counter left_out_labels;
    counter changed_labels;
    counter cut_posts;
    counter never_taken;
};

struct pyroscope_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    char *shown_ingest_url;
    char *ingest_path;
    const char *push_path; /* of the Push API, if url is another endpoint; NULL: url is it */
    profile_choice wants;  /* mode otlp: what is sent by Push or /ingest; the rest is OTLP */
    char *authorization;
    struct config_pair *headers; /* ours, then the user's */
    size_t headers_count;
    struct authenticator *authenticator; /* NULL: none */
    struct http_client *client;
    struct stop_latch *users;    /* held while the helper works on an attempt */
    struct stop_latch own_users; /* what users points to, except in otlp_http */
    struct gzip *gzip;           /* NULL: bodies are not compressed */
    struct otlp_to_pprof_rules rules;
    struct pyroscope_memory memory;
    uint64_t in_flight;   /* posts of all attempts */
    uint64_t sent_no;     /* of the last one */
    uint64_t accepted_ns; /* when the server accepted the last one */
    bool forwards_tenant; /* of each batch's client */
    bool is_stopping;
    bool has_logged_refusal;
    bool has_logged_window;
};

/* Whether Pyroscope's OTLP endpoint cannot name the profile. It names profiles after their period
 * type, and refuses the whole request with "invalid metric name" if one has none, or a period of 0.
 * A file of JFR is not OTLP. */
bool pyroscope_has_no_otlp_name(const struct profile *profile);
/* How profiles are converted. Borrows from config. */
struct otlp_to_pprof_rules pyroscope_rules_of(const struct pyroscope_config *config);
/* Sends what is not settled yet of the batch. Resolves the receipt when every post has a response.
 */
void pyroscope_attempt_start(struct pyroscope_exporter *exporter, struct batch *batch,
                             struct receipt *receipt);
/* The same in mode otlp for a batch whose OTLP part the server has already stored. */
void pyroscope_attempt_continue(struct pyroscope_exporter *exporter, struct batch *batch,
                                struct receipt *receipt);
