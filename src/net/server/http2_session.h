/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of HTTP/2 share: the session of one connection (http2_connection.c) and its
 * streams, each of which is a request (http2_stream.c). On the connection's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "src/base/lane.h"
#include "src/net/server/http2_frames.h"
#include "src/net/server/http2_guard.h"
#include "src/net/server/http_exchange.h"
#include "src/net/syntax/http2_memory.h"

struct budget;
struct http2_session;

enum {
    HTTP2_HEADER_TEXT_BYTES = 768,  /* inside the stream */
    HTTP2_HEADER_TEXT_FIRST = 2048, /* outside */
    HTTP2_HEADERS_INLINE = 16,
};

/* Where a header stands in its stream's text: offsets, because the text moves while it grows. */
struct http2_header {
    uint16_t name_at;
    uint16_t name_size;
    uint16_t value_at;
    uint16_t value_size;
};

struct http2_stream {
    struct http_request base;
    struct http2_session *session;
    int32_t id;                /* 0 once the stream has closed */
    struct http2_stream *next; /* in session->open, until the exchange has ended */
    struct http2_stream *prev;
    bool is_refused;      /* reset by us while its headers came */
    bool has_begun;       /* the handler knows it */
    bool has_ended_input; /* END_STREAM came */
    bool has_reply;       /* its answer counts among the session's replies */
    bool is_sent;         /* the answer is written, all of it */
    uint64_t reading_ns;  /* since when the body is awaited */
    uint64_t discard_ns;  /* since when the rest of an answered body is discarded; 0: it is not */
    size_t discarded;
    unsigned headers_count;
    unsigned headers_capacity;
    struct http2_header *headers; /* headers_inline, or allocated */
    size_t text_size;
    size_t text_capacity;
    uint8_t *text; /* text_inline, or allocated */
    struct http2_header pseudo[4];
    uint64_t charged_bytes; /* to the session's budget: itself, text and reply */
    uint8_t *reply;         /* body, then names and values of trailers, in one allocation */
    size_t reply_size;
    size_t reply_sent;
    nghttp2_nv trailers[4];
    size_t trailers_count;
    struct http2_header headers_inline[HTTP2_HEADERS_INLINE];
    uint8_t text_inline[HTTP2_HEADER_TEXT_BYTES];
};

/* DATA frames of one stream that came one behind the other. */
struct http2_data_run {
    int32_t stream_id;
    uint32_t frame_left;      /* of the frame that came last; UINT32_MAX: it is padded */
    uint32_t frame_size;      /* of the largest so far, of any stream */
    unsigned frames;          /* of this run, the one that is under way among them */
    unsigned frames_before;   /* of the run before */
    const uint8_t *input_end; /* of what nghttp2 is given */
    bool is_last;             /* the last byte that came was of a DATA frame */
    bool ends_stream;         /* the frame that came last does */
};

struct http2_session {
    struct http_connection *connection;
    struct lane *lane;
    struct budget *budget;    /* NULL: nothing is charged */
    nghttp2_session *nghttp2; /* NULL once the connection has closed */
    struct http2_frames frames;
    struct http2_guard guard;
    struct http2_data_run data_run;
    struct http2_frame_buffer frame_buffer;
    enum http2_abuse abuse;      /* found inside a callback of nghttp2 */
    struct lane_job flush_job;   /* writes what the turn has produced */
    struct http2_stream *recent; /* whose frame came last; NULL: it has closed */
    struct http2_stream *open;   /* whose exchange has not ended */
    unsigned requests;           /* also those that only the pipeline still holds */
    unsigned replies;            /* answered, not yet written out */
    bool is_greeted;             /* the client's SETTINGS came */
    bool has_advertised;         /* our own SETTINGS are written */
    bool wants_drain;            /* noted inside a callback of nghttp2, as is the next */
    bool wants_final;
    bool is_draining;  /* GOAWAY is sent, streams may finish */
    bool is_aged;      /* because of its age */
    bool is_final;     /* it named the last stream */
    bool is_doomed;    /* the peer broke a rule: nothing of it is read any more */
    bool is_rested;    /* nothing has been written since the frame buffer's pages went back */
    bool is_lingering; /* half-closed, waiting for the peer to do the same */
    uint64_t now_ns;   /* when this pass over the connection began: read once, not per frame */
    uint64_t begun_ns;
    uint64_t read_until_ns;   /* all bodies must be here: the server stops; 0: it does not */
    uint64_t headers_ns;      /* since when a header block is incomplete; 0: none is */
    uint64_t idle_ns;         /* since when there is no stream */
    uint64_t idle_default_ns; /* with its jitter */
    uint64_t age_ns;          /* when it is too old, with its jitter; UINT64_MAX: never */
    uint64_t drain_ns;        /* since when it drains */
    uint64_t stall_ns;        /* since when answers wait for window; 0: none does */
    uint64_t linger_ns;
};

/* Charges what stands around requests, within the budget's margin; servers that must answer charge
 * beyond it. */
bool http2_charge(const struct http_connection *connection, struct budget *budget, uint64_t bytes);

/* Makes session->nghttp2, whose callbacks fill the session. 0, or an error of nghttp2. */
int http2_callbacks_attach(struct http2_session *session);

/* A stream whose headers begin; NULL when the client holds too many requests already, or when the
 * budget has no room for one more. */
struct http2_stream *http2_stream_create(struct http2_session *session, int32_t id);
/* One header field. NGHTTP2_NO_ERROR, or the code to reset the stream with: its headers are more
 * than we take (ENHANCE_YOUR_CALM), or than the budget has room for now (REFUSED_STREAM). */
uint32_t http2_stream_add_header(struct http2_stream *stream, struct slice name,
                                 struct slice value);
/* The header block is complete: the request begins. */
void http2_stream_begin(struct http2_stream *stream, bool has_body);
void http2_stream_receive(struct http2_stream *stream, const uint8_t *data, size_t size);
/* END_STREAM came behind a body. */
void http2_stream_end_input(struct http2_stream *stream);
/* The last byte of the answer was written. */
void http2_stream_answer_sent(struct http2_stream *stream);
/* nghttp2 has forgotten the stream, or the connection is closed. */
void http2_stream_end(struct http2_stream *stream);
/* Ends the wait for a body that has not kept the minimum rate or its deadline. */
void http2_stream_expire(struct http2_stream *stream, uint64_t now_ns);

/* Something was submitted: it is written at the end of this turn. */
void http2_session_flush_later(struct http2_session *session);
/* Gives nghttp2 what came. False when it, or the connection, takes no more. */
bool http2_session_feed(struct http2_session *session, const uint8_t *data, size_t size);

/* A DATA frame begins; content of it came. */
void http2_input_begin(struct http2_data_run *run, const nghttp2_frame_hd *head);
void http2_input_take(struct http2_data_run *run, const uint8_t *data, size_t size);
/* Whether the next bytes most likely belong into a body that has room for them. */
bool http2_input_is_expected(const void *state);
/* Reads them there. What read() returns, or a negative errno. */
ssize_t http2_input_read(struct http2_session *session, int fd);
