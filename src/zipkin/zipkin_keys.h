/* SPDX-License-Identifier: Apache-2.0 */
/* Tags that mean more than an attribute of their span. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

enum zipkin_role {
    ROLE_PLAIN,    /* an attribute */
    ROLE_RESOURCE, /* an attribute of the resource, by the semantic conventions */
    ROLE_LINK,     /* otlp.link.N, N below ZIPKIN_LINKS_MAX */
    /* each of these is one key */
    ROLE_SERVICE_SOURCE,
    ROLE_LIBRARY_NAME,
    ROLE_LIBRARY_VERSION,
    ROLE_SCOPE_NAME,
    ROLE_SCOPE_VERSION,
    ROLE_TRACE_STATE,
    ROLE_SPAN_KIND,
    ROLE_STATUS_CODE,
    ROLE_STATUS_DESCRIPTION,
    ROLE_ERROR,
    ROLE_START_ABSENT,
    ROLE_LOCAL_ADDRESS,
    ROLE_LOCAL_PORT,
    ROLE_PEER_NAME,
    ROLE_PEER_ADDRESS,
    ROLE_PEER_PORT,
    ROLES,
};

enum { ZIPKIN_LINKS_MAX = 128 };

/* *ret_link is the N of a ROLE_LINK. */
enum zipkin_role zipkin_role_of(struct slice key, unsigned *ret_link);
/* The key of a role that is one. */
const char *zipkin_key_of(enum zipkin_role role);
