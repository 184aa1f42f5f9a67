/* SPDX-License-Identifier: Apache-2.0 */
/* Limits abuse on one HTTP/2 connection: token buckets for frames that cost the peer little and us
 * much. Knows frame headers only. On the connection's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

struct token_bucket {
    uint64_t burst;
    uint64_t per_s;
    uint64_t tokens;
    uint64_t filled_ns; /* when tokens were last added */
};

struct http2_guard {
    struct token_bucket resets;   /* streams reset by the peer, or by us because of it */
    struct token_bucket glitches; /* frames without effect */
    struct token_bucket settings;
    uint64_t ping_interval_ns;
    uint64_t ping_due_ns; /* a ping before this is a strike */
    unsigned ping_strikes;
};

/* What the peer did too often. */
enum http2_abuse {
    HTTP2_NO_ABUSE,
    HTTP2_TOO_MANY_RESETS,
    HTTP2_TOO_MANY_GLITCHES,
    HTTP2_TOO_MANY_SETTINGS,
    HTTP2_TOO_MANY_PINGS,
    HTTP2_TOO_MANY_CONTINUATIONS,
    HTTP2_TOO_MANY_FIELDS,
    HTTP2_TOO_MUCH_WAITS,
};

void http2_guard_init(struct http2_guard *guard, uint64_t ping_interval_ns, uint64_t now_ns);
/* Counts a frame by its header. */
enum http2_abuse http2_guard_frame(struct http2_guard *guard, const nghttp2_frame_hd *head,
                                   uint64_t now_ns);
/* Counts a stream that either side reset before its response was complete. */
enum http2_abuse http2_guard_reset(struct http2_guard *guard, uint64_t now_ns);
/* A response was sent: the pings and window updates of its request were legitimate (gRPC clients
 * measure the path with pings while they send). */
void http2_guard_progress(struct http2_guard *guard);
/* The debug data of GOAWAY. On "too_many_pings" gRPC clients ping less. */
const char *http2_abuse_text(enum http2_abuse abuse);
