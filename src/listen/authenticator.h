/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of extensions that authenticate: who sends to a server of ours, or us at somebody
 * else's. Whoever uses one makes an instance of its own from the extension's configuration, on its
 * lane, so that nothing is shared. Making and destroying while no lane runs; all else on the lane.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct authenticator;
struct component;
struct config_component;
struct error;
struct lane;
struct logger;

enum auth_side { AUTH_SERVER, AUTH_CLIENT };

/* What a server asks about: the first value of a header by its lower-case name; data is NULL when
 * there is none. */
struct auth_request {
    struct slice (*header)(const struct auth_request *request, const char *name);
};

enum auth_verdict {
    AUTH_GRANTED,
    AUTH_DENIED, /* 401, UNAUTHENTICATED */
    AUTH_BUSY,   /* try again later: checking costs too much just now */
};

enum { AUTH_ATTRIBUTES_MAX = 2 };

/* What pipelines may know of who was let in: "auth.username" in from_context. */
struct auth_attribute {
    const char *name;
    const char *value;
};

/* What it points to is the authenticator's, and lives until the next call. */
struct auth_answer {
    const char *reason; /* for the client, unless granted; never holds what it sent */
    size_t attributes_count;
    struct auth_attribute attributes[AUTH_ATTRIBUTES_MAX];
};

/* One header of each request that we send. Valid until the next call. */
struct auth_header {
    const char *name; /* in lower case; always the same */
    const char *value;
};

struct authenticator_ops {
    /* Whether this configuration can serve that side. */
    bool (*serves)(const void *config, enum auth_side side);
    /* Reads files and prepares. NULL: the error says why. */
    struct authenticator *(*create)(const void *config, const struct logger *logger,
                                    struct error *error);
    void (*destroy)(struct authenticator *authenticator);
    enum auth_verdict (*authenticate)(struct authenticator *authenticator,
                                      const struct auth_request *request,
                                      struct auth_answer *ret_answer);
    struct auth_header (*credentials)(struct authenticator *authenticator);
};

/* First member of every instance. */
struct authenticator {
    const struct authenticator_ops *ops;
    const void *config;
    const struct logger *logger;
};

/* An instance of the extension of that id for user, which logs what happens to it. */
struct authenticator *authenticator_create(const struct component *user, const char *id,
                                           enum auth_side side, struct error *error);
/* NULL is tolerated. */
void authenticator_destroy(struct authenticator *authenticator);
/* ret_answer is complete afterwards. */
enum auth_verdict authenticator_check(struct authenticator *authenticator,
                                      const struct auth_request *request,
                                      struct auth_answer *ret_answer);
struct auth_header authenticator_credentials(struct authenticator *authenticator);

/* For option tables (CONFIG_EXTENSION): whether an extension can be named there. */
bool authenticator_accepts_server(const struct config_component *extension, struct error *error);
bool authenticator_accepts_client(const struct config_component *extension, struct error *error);
