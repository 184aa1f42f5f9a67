/* SPDX-License-Identifier: Apache-2.0 */
/* The header Authorization of requests to one server: basic_auth, authorization or bearer_token,
 * whose files are read again when they change (prometheus/common, config/http_config.go). Used on
 * one lane. */
#pragma once

#include <stdbool.h>

#include "receivers/scrape/scrape_config.h"
#include "src/base/watched_file.h"
#include "src/net/client/request_credentials.h"

struct error;

struct scrape_login {
    const char *scheme; /* "Bearer"; "Basic": user and password follow in base64; NULL: no login */
    const char *user;
    const char *secret;
    struct watched_file user_file; /* without a path: user is the configuration's */
    struct watched_file secret_file;
    char *value; /* of the header */
};

/* Borrows config. Opens its files, but not for a rehearsal. */
bool scrape_login_open(struct scrape_login *login, const struct scrape_http_config *config,
                       bool is_rehearsed, struct error *error);
/* A no-op for an all-zero struct. */
void scrape_login_close(struct scrape_login *login);
/* For the settings of a client; borrows login. */
struct request_credentials scrape_login_credentials(struct scrape_login *login);
