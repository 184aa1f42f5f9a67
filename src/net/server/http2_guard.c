/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for rapid reset (CVE-2023-44487), made-you-reset (CVE-2025-8671), CONTINUATION,
 * SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty-frame floods. On the connection's lane. */
#include "src/net/server/http2_guard.h"

#include <assert.h>

#include "src/base/clock.h"
#include "src/base/limits.h"

/* Returned by each request with a response, for its window updates and pings. */
enum { GLITCHES_PER_REQUEST = 10 };

static struct token_bucket token_bucket_of(uint64_t burst, uint64_t per_s, uint64_t now_ns)
{
    assert(per_s > 0);
    return (struct token_bucket){
        .burst = burst, .per_s = per_s, .tokens = burst, .filled_ns = now_ns};
}

static bool token_bucket_take(struct token_bucket *bucket, uint64_t now_ns)
{
    assert(now_ns >= bucket->filled_ns);
    /* Adds whole tokens; the rest of the time counts for the next call. */
    assert(bucket->tokens <= bucket->burst);
    uint64_t ns_per_token = NS_PER_S / bucket->per_s;
    uint64_t due = (now_ns - bucket->filled_ns) / ns_per_token;
    if (bucket->tokens + due >= bucket->burst) {
        bucket->tokens = bucket->burst;
        bucket->filled_ns = now_ns;
    } else {
        bucket->tokens += due;
        bucket->filled_ns += due * ns_per_token;
    }
    if (bucket->tokens == 0)
        return false;
    bucket->tokens--;
    return true;
}

static enum http2_abuse take_glitch(struct http2_guard *guard, uint64_t now_ns)
{
    return token_bucket_take(&guard->glitches, now_ns) ? HTTP2_NO_ABUSE : HTTP2_TOO_MANY_GLITCHES;
}

void http2_guard_init(struct http2_guard *guard, uint64_t ping_interval_ns, uint64_t now_ns)
{
    *guard = (struct http2_guard){
        .resets = token_bucket_of(HTTP2_RESETS_BURST, HTTP2_RESETS_PER_S, now_ns),
        .glitches = token_bucket_of(HTTP2_GLITCHES_BURST, HTTP2_GLITCHES_PER_S, now_ns),
        .settings = token_bucket_of(HTTP2_SETTINGS_BURST, HTTP2_SETTINGS_PER_S, now_ns),
        .ping_interval_ns = ping_interval_ns,
    };
}

enum http2_abuse http2_guard_frame(struct http2_guard *guard, const nghttp2_frame_hd *head,
                                   uint64_t now_ns)
{
    switch (head->type) {
    case NGHTTP2_DATA:
        if (head->length > 0 || (head->flags & NGHTTP2_FLAG_END_STREAM) != 0)
            return HTTP2_NO_ABUSE;
        return take_glitch(guard, now_ns);
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION: /* counted by nghttp2 */
        return HTTP2_NO_ABUSE;
    case NGHTTP2_SETTINGS:
        return token_bucket_take(&guard->settings, now_ns) ? HTTP2_NO_ABUSE
                                                           : HTTP2_TOO_MANY_SETTINGS;
    case NGHTTP2_PING:
        if ((head->flags & NGHTTP2_FLAG_ACK) != 0)
            return take_glitch(guard, now_ns);
        assert(guard->ping_interval_ns > 0);
        bool is_early = now_ns < guard->ping_due_ns;
        guard->ping_due_ns = now_ns + guard->ping_interval_ns;
        if (is_early && ++guard->ping_strikes > HTTP2_PING_STRIKES_MAX)
            return HTTP2_TOO_MANY_PINGS;
        return HTTP2_NO_ABUSE;
    case NGHTTP2_RST_STREAM:
        return http2_guard_reset(guard, now_ns);
    default: /* PRIORITY, WINDOW_UPDATE, GOAWAY, unknown types */
        return take_glitch(guard, now_ns);
    }
}

enum http2_abuse http2_guard_reset(struct http2_guard *guard, uint64_t now_ns)
{
    return token_bucket_take(&guard->resets, now_ns) ? HTTP2_NO_ABUSE : HTTP2_TOO_MANY_RESETS;
}

void http2_guard_progress(struct http2_guard *guard)
{
    guard->ping_strikes = 0;
    guard->ping_due_ns = 0;
    guard->glitches.tokens += GLITCHES_PER_REQUEST;
    if (guard->glitches.tokens > guard->glitches.burst)
        guard->glitches.tokens = guard->glitches.burst;
}

const char *http2_abuse_text(enum http2_abuse abuse)
{
    static const char *const texts[] = {
        [HTTP2_NO_ABUSE] = "",
        [HTTP2_TOO_MANY_RESETS] = "too_many_resets",
        [HTTP2_TOO_MANY_GLITCHES] = "too_many_empty_frames",
        [HTTP2_TOO_MANY_SETTINGS] = "too_many_settings",
        [HTTP2_TOO_MANY_PINGS] = "too_many_pings",
        [HTTP2_TOO_MANY_CONTINUATIONS] = "too_many_continuations",
        [HTTP2_TOO_MANY_FIELDS] = "too_many_header_fields",
        [HTTP2_TOO_MUCH_WAITS] = "too_many_waiting_frames",
    };
    assert(abuse <= HTTP2_TOO_MUCH_WAITS);
    return texts[abuse];
}
