/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of authenticator extensions: of clients of our servers, or of our clients at other
 * servers. Each user creates an instance of its own from the extension's configuration, so that
 * lanes share nothing. Created and destroyed while no lane runs; all else on the user's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/slice.h"

struct authenticator;
struct client_info;
struct component;
struct config_component;
struct credentials_request;
struct error;
struct lane;
struct logger;

/* Files with tokens, and with users and passwords. */
enum { SECRET_FILE_BYTES_MAX = 64 * 1024, HTPASSWD_BYTES_MAX = 1 << 20 };
/* How many verdicts a lane caches, and the share of its time for new ones (one part in so many)
 * once the burst is used up. */
enum { AUTH_RIGHT_KEPT_MAX = 256, AUTH_WRONG_KEPT_MAX = 64, AUTH_CHECK_SHARE = 10 };
/* How many checks wait for a lane's helper: as many as the burst has time for with a usual hash. */
enum { AUTH_PENDING_MAX = 16 };
#define AUTH_CHECK_BURST_NS ((int64_t)NS_PER_S)

enum auth_side { AUTH_SERVER, AUTH_CLIENT };

/* Somebody who waits for a verdict. */
struct auth_waiter {
    void (*fn)(struct auth_waiter *waiter); /* on the lane, from the loop: ask again */
    struct auth_waiter *next;               /* of the authenticator */
};

/* A request. */
struct auth_request {
    /* The first value of the header with this lower-case name; data is NULL if there is none. */
    struct slice (*header)(const struct auth_request *request, const char *name);
    /* Called once with AUTH_PENDING. NULL: the request cannot wait. */
    struct auth_waiter *(*wait)(const struct auth_request *request);
};

enum auth_verdict {
    AUTH_GRANTED,
    AUTH_DENIED,  /* 401, UNAUTHENTICATED */
    AUTH_BUSY,    /* retry later: checking has used up its share of time */
    AUTH_PENDING, /* the waiter is told when the verdict is known */
};

enum {
    AUTH_ATTRIBUTES_MAX = 2,
    AUTH_CHAIN_MAX = 16, /* authenticators that follow each other by additional_auth */
};

/* Attributes of an authenticated client for pipelines: "auth.username" in from_context. */
struct auth_attribute {
    const char *name;
    const char *value;
};

/* Owned by the authenticator, valid until its next call. */
struct auth_result {
    const char *reason; /* for the client, unless granted; never contains what it sent */
    size_t attributes_count;
    struct auth_attribute attributes[AUTH_ATTRIBUTES_MAX];
};

/* A header of each request that we send. Valid until the next call. */
struct auth_header {
    const char *name; /* in lower case; always the same */
    const char *value;
};

struct authenticator_ops {
    /* Whether this configuration supports the side. */
    bool (*serves)(const void *config, enum auth_side side);
    /* Clients: whether gRPC may send its credentials over TLS only. */
    bool needs_tls;
    /* Clients: the id of the authenticator that it asks, too; "" or NULL slot: none. */
    const char *(*chains_to)(const void *config);
    /* Reads its files. Its logger, its lane and the other extensions are those of user. NULL: error
     * has the reason. */
    struct authenticator *(*create)(const void *config, const struct component *user,
                                    struct error *error);
    void (*destroy)(struct authenticator *authenticator);
    enum auth_verdict (*authenticate)(struct authenticator *authenticator,
                                      const struct auth_request *request,
                                      struct auth_result *ret_result);
    /* Clients have either this, for the same header in each request … */
    struct auth_header (*credentials)(struct authenticator *authenticator);
    /* … or these, as src/net/client/request_credentials.h has them. forget and close may be NULL
     * when ask never waits. */
    void (*ask)(struct authenticator *authenticator, struct credentials_request *request);
    void (*forget)(struct authenticator *authenticator, struct credentials_request *request);
    void (*close)(struct authenticator *authenticator, void (*closed)(void *arg), void *arg);
};

/* First member of every instance. */
struct authenticator {
    const struct authenticator_ops *ops;
    const void *config;
    const struct logger *logger;
};

/* An instance of the extension with this id, which logs with the logger of user. */
struct authenticator *authenticator_create(const struct component *user, const char *id,
                                           enum auth_side side, struct error *error);
/* NULL is a no-op. */
void authenticator_destroy(struct authenticator *authenticator);
/* Always sets *ret_result. An authenticator with waiters must not be destroyed. */
enum auth_verdict authenticator_check(struct authenticator *authenticator,
                                      const struct auth_request *request,
                                      struct auth_result *ret_result);
/* Of an authenticator with that slot. */
struct auth_header authenticator_credentials(struct authenticator *authenticator);
/* All as struct request_credentials has them, for both kinds. */
void authenticator_ask(struct authenticator *authenticator, struct credentials_request *request);
void authenticator_forget(struct authenticator *authenticator, struct credentials_request *request);
void authenticator_close(struct authenticator *authenticator, void (*closed)(void *arg), void *arg);
/* Whether the extension, and those that it asks, may be used by clients; and whether gRPC needs TLS
 * with them. */
bool authenticator_check_clients(const struct component *user, const char *id, bool *ret_needs_tls,
                                 struct error *error);

/* For option tables (CONFIG_EXTENSION): whether the extension fits. */
bool authenticator_accepts_server(const struct config_component *extension, struct error *error);
bool authenticator_accepts_client(const struct config_component *extension, struct error *error);
