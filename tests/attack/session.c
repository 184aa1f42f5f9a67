/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent on one connection, of which kind, and how it is cut. */
#include "tests/attack/session.h"

#include <assert.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "tests/attack/http1.h"
#include "tests/attack/http2.h"
#include "tests/attack/pool.h"

#define POOL_BYTES_MAX (2048 * MIB) /* a bound that no session comes near */
enum { BODY_BYTES_MAX = 512 << 10, LARGE_BODY_BYTES_MAX = 4 << 20, TOGETHER_BYTES_MAX = 6 << 20 };
enum { SLOW_PIECES_MAX = 60, DEAF_REQUESTS_MAX = 300 };

struct session_maker {
    struct world world;
    struct pool pool;
    struct body_maker bodies;
    struct body body;
};

struct session_maker *session_maker_create(uint64_t now_ns, bool is_valid)
{
    struct session_maker *maker = mem_zalloc(sizeof(*maker));
    maker->world.now_ns = now_ns;
    pool_init(&maker->pool, POOL_BYTES_MAX);
    maker->bodies = (struct body_maker){.world = &maker->world,
                                        .pool = &maker->pool,
                                        .codecs = codec_box_create(NULL),
                                        .is_valid = is_valid};
    return maker;
}

void session_maker_destroy(struct session_maker *maker)
{
    pool_fini(&maker->pool);
    bytes_fini(&maker->bodies.scratch);
    bytes_fini(&maker->body.content);
    codec_box_destroy(maker->bodies.codecs);
    mem_free(maker);
}

enum session_kind {
    OTLP_HTTP1,
    OTLP_HTTP2,
    OTLP_GRPC,
    PUSH,
    INGEST,
    PAGE,
    QUESTION,
    ZIPKIN,
    JAEGER_GRPC,
    JAEGER_HTTP,
    JAEGER_PACKETS,
    SESSION_KINDS
};

static void make_body(struct session_maker *maker, enum session_kind kind)
{
    switch (kind) {
    case OTLP_HTTP1:
    case OTLP_HTTP2:
        body_make_otlp(&maker->bodies, &maker->body, false);
        return;
    case OTLP_GRPC:
        body_make_otlp(&maker->bodies, &maker->body, true);
        return;
    case PUSH:
        body_make_push(&maker->bodies, &maker->body);
        return;
    case INGEST:
        body_make_ingest(&maker->bodies, &maker->body);
        return;
    case ZIPKIN:
        body_make_zipkin(&maker->bodies, &maker->body);
        return;
    case JAEGER_GRPC:
    case JAEGER_HTTP:
        body_make_jaeger(&maker->bodies, &maker->body, kind == JAEGER_GRPC);
        return;
    case JAEGER_PACKETS:
        body_make_jaeger_packet(&maker->bodies, &maker->body);
        return;
    case QUESTION:
        body_make_question(&maker->bodies, &maker->body);
        return;
    case PAGE:
    case SESSION_KINDS:
    default:
        body_make_page(&maker->bodies, &maker->body);
    }
}

static enum session_kind kind_of(struct random_source *random)
{
    static const uint8_t shares[SESSION_KINDS] = {
        [OTLP_HTTP1] = 29, [QUESTION] = 5,    [OTLP_HTTP2] = 8,    [OTLP_GRPC] = 18,
        [PUSH] = 7,        [INGEST] = 7,      [PAGE] = 6,          [ZIPKIN] = 9,
        [JAEGER_GRPC] = 4, [JAEGER_HTTP] = 4, [JAEGER_PACKETS] = 3};
    uint64_t drawn = random_below(random, 100);
    for (unsigned i = 0; i < SESSION_KINDS; i++) {
        if (drawn < shares[i])
            return (enum session_kind)i;
        drawn -= shares[i];
    }
    return PAGE;
}

size_t session_packet_size(const struct session *session, size_t at)
{
    uint32_t size;
    assert(at + sizeof(size) <= session->bytes.size);
    memcpy(&size, session->bytes.data + at, sizeof(size));
    return size < session->bytes.size - at - sizeof(size) ? size
                                                          : session->bytes.size - at - sizeof(size);
}

static void add_packet(struct session *session, const struct bytes_out *content)
{
    uint32_t size = (uint32_t)content->size;
    bytes_add(&session->bytes, &size, sizeof(size));
    bytes_add(&session->bytes, content->data, content->size);
}

/* Clients that keep what they have: many can be there at the same time. */
static enum habit habit_of(struct session_maker *maker)
{
    uint64_t drawn = random_below(&maker->world.random, 20);
    if (maker->bodies.is_valid || drawn > 2)
        return HABIT_PROMPT;
    return drawn == 0 ? HABIT_SLOW : HABIT_DEAF;
}

/* How it travels: in pieces, and perhaps not to its end. */
static void cut(struct random_source *random, struct session *session)
{
    static const size_t pieces[] = {1, 3, 9, 64, 1000, 16384};
    size_t size = session->bytes.size;
    session->sent_max = size;
    session->piece_bytes = size;
    if (random_below(random, 12) == 0)
        session->piece_bytes =
            pieces[random_below(random, sizeof(pieces) / sizeof(pieces[0]))] + size / 64;
    if (session->habit == HABIT_SLOW)
        session->piece_bytes = 1 + size / (1 + random_below(random, SLOW_PIECES_MAX));
    if (size > 0 && random_below(random, 25) == 0)
        session->sent_max = random_below(random, size);
}

void session_make(struct session_maker *maker, uint64_t seed, uint64_t number,
                  struct session *session)
{
    struct random_source *random = &maker->world.random;
    random->state = seed * 0x9e3779b97f4a7c15u ^ (number + 1) * 0xd1342543de82ef95u;
    struct bytes_out bytes = session->bytes;
    bytes_clear(&bytes);
    *session = (struct session){.bytes = bytes, .is_sound = true};
    enum session_kind kind = kind_of(random);
    maker->bodies.size_max = random_below(random, 200) == 0 ? LARGE_BODY_BYTES_MAX : BODY_BYTES_MAX;
    unsigned requests = 1 + (unsigned)random_below(random, random_below(random, 3) == 0 ? 12 : 3);
    bool spoils = random_below(random, 8) == 0 && !maker->bodies.is_valid;
    session->habit = kind == JAEGER_PACKETS ? HABIT_PROMPT : habit_of(maker);
    if (session->habit == HABIT_DEAF && random_below(random, 2) == 0)
        requests = 1 + (unsigned)random_below(random, DEAF_REQUESTS_MAX);
    make_body(maker, kind);
    session->endpoint = maker->body.endpoint;
    session->is_packets = kind == JAEGER_PACKETS;
    session->is_http2 =
        !session->is_packets && (maker->body.is_grpc || kind == OTLP_HTTP2 ||
                                 (kind != OTLP_HTTP1 && random_below(random, 4) == 0));
    struct http2_writer http2 = {.world = &maker->world, .out = &session->bytes, .spoils = spoils};
    if (session->is_http2)
        http2_begin(&http2);
    if (session->is_http2 && !maker->bodies.is_valid && random_below(random, 6) == 0)
        http2_crowd(&http2, &maker->body);
    for (unsigned i = 0; i < requests && session->bytes.size < TOGETHER_BYTES_MAX; i++) {
        /* One connection goes to one endpoint. */
        while (i > 0 && (make_body(maker, kind), maker->body.endpoint != session->endpoint))
            continue;
        session->requests++;
        session->is_sound = session->is_sound && !maker->body.is_endless;
        bool is_last = i + 1 == requests ||
                       session->bytes.size + maker->body.content.size >= TOGETHER_BYTES_MAX;
        if (session->is_packets)
            add_packet(session, &maker->body.content);
        else if (session->is_http2)
            http2_request(&http2, &maker->body);
        else if (http1_request(&maker->world, &maker->body, spoils, is_last, &session->bytes))
            session->is_sound = false;
        pool_reset(&maker->pool);
        if (is_last)
            break;
    }
    if (session->is_http2)
        http2_end(&http2);
    session->is_sound = session->is_sound && !http2.is_spoilt;
    cut(random, session);
    if (maker->bodies.is_valid || session->is_packets || session->habit == HABIT_DEAF)
        session->sent_max = session->bytes.size;
    if (session->sent_max < session->bytes.size)
        session->is_sound = false;
}
