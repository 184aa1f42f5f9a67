/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of requests, for clients of all protocols: one header whose value may change at run
 * time and which overrides configured headers of its name; or any changes to the headers of each
 * request, for which the client may have to wait. On the client's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct client_info;

enum request_edit_action {
    EDIT_UPSERT,
    EDIT_INSERT, /* unless there is such a header */
    EDIT_UPDATE, /* only if there is one */
    EDIT_DELETE,
};

struct request_edit {
    enum request_edit_action action;
    char *name;
    char *value; /* DELETE: "" */
};

/* request_edits.h has the functions. */
struct request_edits {
    size_t count;
    size_t place; /* where the next one goes */
    struct request_edit *list;
};

/* A request that asks for its credentials. Owned by the client. */
struct credentials_request {
    /* What the client says. */
    const struct client_info *client; /* who sent us what the request carries; NULL: not known */
    bool is_grpc;
    /* Called once, maybe from inside ask. error: why it cannot be sent; NULL: it can. */
    void (*done)(struct credentials_request *request, const char *error);
    void *arg;
    /* What it gets. */
    struct request_edits edits;
    bool is_temporary; /* with an error: a later attempt may succeed */
    /* The authenticator's, until done. */
    struct credentials_request *next;
    struct credentials_request *prev;
};

struct request_credentials {
    const char *name; /* in lower case; NULL: none */
    const char *(*value)(
        void *arg); /* the current value, without line ends; valid until the next call */
    /* Instead: the edits of one request. NULL: none. */
    void (*ask)(void *arg, struct credentials_request *request);
    /* The request that asked is over: done will not be called. */
    void (*forget)(void *arg, struct credentials_request *request);
    /* No request asks any more. Calls closed(closed_arg) once nothing is under way, maybe from
     * inside; the credentials may not be destroyed before. */
    void (*close)(void *arg, void (*closed)(void *closed_arg), void *closed_arg);
    void *arg;
};
