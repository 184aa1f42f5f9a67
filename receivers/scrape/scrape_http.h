/* SPDX-License-Identifier: Apache-2.0 */
/* How the servers of a job, or of a discovery, are asked: the client's settings that basic_auth,
 * tls_config and the like make (prometheus/common, config/http_config.go). Used on one lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/scrape/scrape_config.h"
#include "receivers/scrape/scrape_login.h"
#include "src/base/slice.h"
#include "src/config/shared/tls_config.h"

struct budget;
struct buffer;
struct error;
struct http_client_settings;

enum { SCRAPE_HEADERS_MAX = 64 };

struct scrape_http {
    const struct scrape_http_config *config;
    struct tls_client_config tls;
    struct config_pair headers[SCRAPE_HEADERS_MAX];
    size_t headers_count;
    char *texts[SCRAPE_HEADERS_MAX]; /* of headers whose values are in files */
    size_t texts_count;
    struct scrape_login login;
};

/* Borrows config. False: error has the reason; _close is still due. */
bool scrape_http_open(struct scrape_http *http, const struct scrape_http_config *config,
                      bool is_rehearsed, struct error *error);
/* A no-op for an all-zero struct. */
void scrape_http_close(struct scrape_http *http);
/* Adds a header of every request; name and value are borrowed. */
void scrape_http_add_header(struct scrape_http *http, const char *name, const char *value);
/* Sets everything but lane, url, timeout_ns; headers, if more of them are needed, are the
 * caller's to replace. Borrows http. */
void scrape_http_fill(struct scrape_http *http, struct http_client_settings *settings);

/* Appends bytes to the body of a response, which grows; *body is NULL at first. False: the budget
 * has no room; the body is as it was. */
bool scrape_body_append(struct buffer **body, struct budget *budget, struct slice bytes);
