/* SPDX-License-Identifier: Apache-2.0 */
/* Push and /ingest of the pyroscope receiver: what is taken, what each refusal says, and how long a
 * request waits for room. */
#include "receivers/pyroscope/pyroscope_receiver.h"
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"
#include "tests/support/cpu_share.h"
#include "tests/support/gzip_zeros.h"
#include "tests/support/h2_peer.h"
#include "tests/support/loopback.h"
#include "tests/unit/receivers/pyroscope_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS = 12, PATIENT_TURNS = 800 };

/* One sample of 5 cpu/count; the same with a location that is not there. */
#define PPROF                                                                                      \
    "\x0a\x04\x08\x01\x10\x02\x12\x03\x12\x01\x05\x32\x00\x32\x03"                                 \
    "cpu\x32\x05"                                                                                  \
    "count"
#define PPROF_EMPTY                                                                                \
    "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03"                                                     \
    "cpu\x32\x05"                                                                                  \
    "count"
#define PPROF_BROKEN                                                                               \
    "\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x07\x12\x01\x05\x32\x00\x32\x03"                     \
    "cpu\x32\x05"                                                                                  \
    "count"
#define NAME_LABEL                                                                                 \
    "\x0a\x0f\x0a\x08"                                                                             \
    "__name__\x12\x03"                                                                             \
    "cpu"
#define PUSH        "\x0a\x2e" NAME_LABEL "\x12\x1b\x0a\x19" PPROF
#define PUSH_EMPTY  "\x0a\x29" NAME_LABEL "\x12\x16\x0a\x14" PPROF_EMPTY
#define PUSH_BROKEN "\x0a\x31" NAME_LABEL "\x12\x1e\x0a\x1c" PPROF_BROKEN
#define NO_NAME     "\x0a\x1d\x12\x1b\x0a\x19" PPROF

#define PROTO       "Content-Type: application/proto\r\n"
#define JSON        "Content-Type: application/json\r\n"
#define WEB         "Content-Type: application/grpc-web+proto\r\n"
#define FORM        "Content-Type: multipart/form-data; boundary=XY\r\n"
#define EIGHT(text) text text text text text text text text
#define TYPES_64    EIGHT(EIGHT("\x0a\x00")) /* a pprof's */
#define PART(name, content)                                                                        \
    "--XY\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"f\"\r\n\r\n" content    \
    "\r\n"
#define BYTES(text)                                                                                \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

#define LONG_100                                                                                   \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaaaaaa"
#define LONG_700 LONG_100 LONG_100 LONG_100 LONG_100 LONG_100 LONG_100 LONG_100
#define LONG     LONG_700 LONG_700 LONG_700

static const char push_line[] = "POST /push.v1.PusherService/Push";

static int set_up(void **state)
{
    (void)state;
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 4000}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pyroscope_stop();
    return 0;
}

struct request_case {
    const char *what;
    const char *line; /* NULL: Push */
    const char *headers;
    struct slice body;
    unsigned status;
    const char *response;
    unsigned accepted; /* batches */
};

static void run_cases(const struct request_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct request_case *c = &cases[i];
        pyroscope.accepted = 0;
        pyroscope_ask(c->line != NULL ? c->line : push_line, c->headers, c->body, TURNS);
        pyroscope_assert_response(c->what, c->status, c->response);
        if (pyroscope.accepted != c->accepted)
            fail_msg("%s: %u batches", c->what, pyroscope.accepted);
    }
}

static void push_responses_are_those_of_the_server(void **state)
{
    static const struct request_case cases[] = {
        {"proto", NULL, PROTO, BYTES(PUSH), 200, "content-type: application/proto", 1},
        {"two series", NULL, PROTO, BYTES(PUSH PUSH), 200, "application/proto", 2},
        {"no samples", NULL, PROTO, BYTES(PUSH_EMPTY), 200, "application/proto", 0},
        {"json", NULL, JSON,
         BYTES("{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"cpu\"}],"
               "\"samples\":[{\"rawProfile\":\"CgQIARACEgMSAQUyADIDY3B1MgVjb3VudA==\"}]}]}"),
         200, "\r\n\r\n{}", 1},
        {"grpc-web", NULL, WEB, BYTES("\0\0\0\0\x30" PUSH), 200, "application/grpc-web+proto", 1},
        {"nothing", NULL, PROTO, BYTES(""), 400,
         "{\"code\":\"invalid_argument\",\"message\":\"no profiles received\"}", 0},
        {"no name", NULL, PROTO, BYTES(NO_NAME), 400, "__name__ is missing", 0},
        {"web, no name", NULL, WEB, BYTES("\0\0\0\0\x1f" NO_NAME), 200, "grpc-status: 3", 0},
        {"no profile", NULL, PROTO, BYTES("\x0a\x11" NAME_LABEL), 400, "no profiles received", 0},
        {"empty profile", NULL, PROTO, BYTES("\x0a\x13" NAME_LABEL "\x12\x00"), 400,
         "empty profile", 0},
        {"no time", NULL, PROTO "Connect-Timeout-Ms: 0\r\n", BYTES(PUSH), 504, "deadline_exceeded",
         0},
        {"long tenant", NULL, PROTO "X-Scope-OrgID: " LONG_100 LONG_100 "\r\n", BYTES(PUSH), 401,
         "tenant ID is too long", 0},
        {"one of two", NULL, PROTO, BYTES(NO_NAME PUSH), 400, "__name__ is missing", 1},
        {"index out of range", NULL, PROTO, BYTES(PUSH_BROKEN), 400, "invalid_argument", 0},
        {"torn", NULL, PROTO, BYTES("\x0a\x7f"), 400, "unmarshal message: ", 0},
        {"no json", NULL, JSON, BYTES("{"), 400, "unmarshal message: ", 0},
        {"GET", "GET /push.v1.PusherService/Push", "", BYTES(""), 405, "allow: POST", 0},
        {"type", NULL, "Content-Type: text/plain\r\n", BYTES(""), 415, "accept-post: ", 0},
        {"zstd", NULL, PROTO "Content-Encoding: zstd\r\n", BYTES("x"), 501,
         "unknown compression \\\"zstd\\\": supported encodings are gzip", 0},
        {"no gzip", NULL, PROTO "Content-Encoding: gzip\r\n", BYTES("x"), 400,
         "decompress: unexpected EOF", 0},
        {"version", NULL, PROTO "Connect-Protocol-Version: 2\r\n", BYTES("x"), 400,
         "Connect-Protocol-Version must be", 0},
        {"version 1", NULL, PROTO "Connect-Protocol-Version: 1\r\nConnect-Timeout-Ms: 10000\r\n",
         BYTES(PUSH), 200, "application/proto", 1},
        {"timeout", NULL, PROTO "Connect-Timeout-Ms: 1x\r\n", BYTES("x"), 400, "parse timeout", 0},
        {"too large", NULL, PROTO "Content-Length: 100000000\r\n", BYTES(""), 413,
         "resource_exhausted", 0},
    };
    (void)state;
    run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void uploads_of_every_form_are_taken(void **state)
{
    static const struct request_case cases[] = {
        {"form", "POST /ingest?name=app%7Ba%3Db%7D&spyName=gospy", FORM,
         BYTES(PART("profile", PPROF) "--XY--"), 200, "content-length: 0", 1},
        {"alias", "POST /pyroscope/ingest?name=app", FORM, BYTES(PART("profile", PPROF) "--XY--"),
         200, "", 1},
        {"config", "POST /ingest?name=app", FORM,
         BYTES(PART("profile", PPROF) PART("sample_type_config", "{\"cpu\":{}}") "--XY--"), 200, "",
         1},
        {"raw", "POST /ingest?name=app&format=pprof", "", BYTES(PPROF), 200, "", 1},
        {"no samples", "POST /ingest?name=app&format=pprof", "", BYTES(PPROF_EMPTY), 200, "", 0},
        {"no part", "POST /ingest?name=app", FORM, BYTES("--XY--"), 200, "", 0},
        {"folded", "POST /ingest?name=app", "", BYTES("main;work 3\n"), 200, "", 1},
        {"folded by name", "POST /ingest?name=app.wall&format=folded", "", BYTES("main 3\n"), 200,
         "", 1},
        {"odd times", "POST /ingest?name=app&from=abc&until=tomorrow", "", BYTES("main 3\n"), 200,
         "", 1},
        {"lines", "POST /ingest?name=app&format=lines", "", BYTES("main\n"), 200, "", 1},
        {"trie", "POST /ingest?name=app&format=trie", "", BYTES("\1a\5\0"), 200, "", 1},
        {"trie by type", "POST /ingest?name=app", "Content-Type: binary/octet-stream+trie\r\n",
         BYTES("\1a\5\0"), 200, "", 1},
        {"tree", "POST /ingest?name=app&format=tree", "", BYTES("\0\0\1\1a\5\0"), 200, "", 1},
        {"a profile id", "POST /ingest?name=app%7Bprofile_id%3Dx%7D", "", BYTES("main 3\n"), 200,
         "", 0},
        {"jfr", "POST /ingest?name=app&format=jfr", "", BYTES("FLR"), 200, "", 1},
        {"jfr form", "POST /ingest?name=app&format=jfr", FORM,
         BYTES(PART("jfr", "FLR") PART("labels", "x") "--XY--"), 200, "", 1},
    };
    (void)state;
    run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void refused_uploads_get_the_reason(void **state)
{
    static const struct request_case cases[] = {
        {"no name", "POST /ingest", "", BYTES("a 1"), 400, "name: service name is required", 0},
        {"bad label", "POST /ingest?name=a%7Bb-c=d%7D", "", BYTES("a 1"), 400,
         "invalid label name: b-c", 0},
        {"far time", "POST /ingest?name=a&from=99999999999999999999999", "", BYTES("a 1"), 400,
         "from: found", 0},
        {"boundary", "POST /ingest?name=a", FORM, BYTES("--ZZ--"), 422, "boundary", 0},
        {"no boundary", "POST /ingest?name=a", "Content-Type: multipart/form-data\r\n",
         BYTES("--XY--"), 422, "malformed multipart content type header", 0},
        {"torn form", "POST /ingest?name=a", FORM, BYTES(PART("profile", PPROF)), 422, "EOF", 0},
        {"old client", "POST /ingest?name=a", FORM,
         BYTES(PART("profile", PPROF) PART("prev_profile", PPROF) "--XY--"), 422,
         "unsupported client version. Please update github.com/grafana/pyroscope-go", 0},
        {"bad config", "POST /ingest?name=a", FORM,
         BYTES(PART("profile", PPROF) PART("sample_type_config", "[") "--XY--"), 422,
         "sample_type_config: json", 0},
        {"no pprof", "POST /ingest?name=a&format=pprof", "", BYTES("xyz"), 422, "unknown", 0},
        {"no strings", "POST /ingest?name=app&format=pprof&spyName=rbspy", "",
         BYTES("\x0a\x00\x2a\x02\x08\x01"), 422, "__name__ is missing", 0},
        {"many types", "POST /ingest?name=a&format=pprof", "", BYTES(TYPES_64 "\x0a\x00"), 422,
         "found 65 sample types, expected at most 64", 0},
        {"index", "POST /ingest?name=a&format=pprof", "", BYTES(PPROF_BROKEN), 422, "unknown", 0},
        {"no gzip", "POST /ingest?name=a&format=pprof", "", BYTES("\x1f\x8bxx"), 422, "gzip", 0},
        {"count", "POST /ingest?name=a", "", BYTES("main x\n"), 422, "found \\\"x\\\"", 0},
        {"ending", "POST /ingest?name=a.cats", "", BYTES("main 1\n"), 400,
         "{\"code\":\"invalid_argument\",\"message\":\"unknown profile type: cats", 0},
        {"no text", "POST /ingest?name=a", "", BYTES("ma\xffin 1\n"), 400, "not UTF-8", 0},
        {"old text", "POST /ingest?name=a&from=1", "", BYTES("main 1\n"), 400,
         "outside of the ingestion window", 0},
        {"long label", "POST /ingest?name=a%7Bb=" LONG "%7D", "", BYTES("main 1\n"), 400,
         "label value too long: that of 'b' has 2100 bytes, expected at most 2048", 0},
        {"torn tree", "POST /ingest?name=a&format=tree", "", BYTES("\5a"), 422, "unexpected EOF",
         0},
        {"speedscope", "POST /ingest?name=a&format=speedscope", "", BYTES("{}"), 422,
         "speedscope is not supported", 0},
        {"old jfr", "POST /ingest?name=app&format=jfr&from=1", "", BYTES("FLR"), 422,
         "outside of the ingestion window", 0},
        {"packed jfr", "POST /ingest?name=app&format=jfr", "", BYTES("\x1f\x8bxx"), 422,
         "this is not a JFR file", 0},
        {"other jfr", "POST /ingest?name=app&format=jfr", "", BYTES("xyz"), 422,
         "this is not a JFR file", 0},
        {"no jfr", "POST /ingest?name=a&format=jfr", FORM, BYTES("--XY--"), 422,
         "jfr field is required", 0},
        {"GET", "GET /ingest?name=a", "", BYTES(""), 405, "allow: POST", 0},
        {"too large", "POST /ingest?name=a", "Content-Length: 100000000\r\n", BYTES(""), 413,
         "{\"code\":\"resource_exhausted\"", 0},
    };
    (void)state;
    run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void probes_and_unknown_paths_get_responses(void **state)
{
    static const struct request_case cases[] = {
        {"ready", "GET /ready", "", BYTES(""), 200, "\r\n\r\nready", 0},
        {"ready?", "POST /ready", "", BYTES(""), 405, "allow: GET", 0},
        {"healthz", "GET /healthz", "", BYTES(""), 200, "", 0},
        {"unknown", "POST /v1/profiles", "", BYTES(""), 404, "404 page not found\n", 0},
    };
    (void)state;
    run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

/* Turns both ends until the stream is closed; the clock goes on ten milliseconds a time. */
static const struct h2_response *ask_by_grpc(struct h2_peer *peer, unsigned turns)
{
    static const char *const fields[] = {":method",
                                         "POST",
                                         ":scheme",
                                         "http",
                                         ":path",
                                         "/push.v1.PusherService/Push",
                                         ":authority",
                                         "h",
                                         "content-type",
                                         "application/grpc+proto",
                                         "te",
                                         "trailers",
                                         NULL};
    static const char body[] = "\0\0\0\0\x30" PUSH;
    int32_t id = h2_peer_request(peer, fields, body, sizeof(body) - 1, true);
    for (unsigned i = 0; i < turns && !h2_peer_response(peer, id)->is_closed; i++) {
        h2_peer_turn(peer);
        lane_turn(pyroscope.lane);
        clock_fake_advance(10 * (uint64_t)NS_PER_MS);
    }
    return h2_peer_response(peer, id);
}

static void grpc_comes_in_on_the_same_path(void **state)
{
    (void)state;
    struct h2_peer *peer = h2_peer_connect(pyroscope.address, 0);
    const struct h2_response *response = ask_by_grpc(peer, 100);
    assert_int_equal(response->status, 200);
    assert_non_null(strstr(response->trailers, "grpc-status: 0"));
    assert_int_equal(pyroscope.accepted, 1);
    h2_peer_close(peer);
}

static void files_of_jfr_are_passed_on_as_they_came(void **state)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct slice body = BYTES(PART("jfr", "FLR\0x") PART("labels", "L") "--XY--");
    (void)state;
    pyroscope_ask("POST /ingest?name=app%7Ba%3Db%7D&format=jfr&from=1789999990&until=1790000000"
                  "&spyName=javaspy&units=samples&aggregationType=sum&sampleRate=100",
                  FORM, body, TURNS);
    struct slice request = slice_of(pyroscope.bytes, pyroscope.size);
    struct profile_iterator at = profile_iterator_of(request);
    const struct profile *profile = &at.profile;
    arena_init(&arena, 1 << 20);
    assert_true(profile_dictionary_open(&dictionary, &arena, request));
    assert_true(profile_iterator_next(&at));
    assert_true(profile_is_opaque(profile));
    assert_int_equal(pyroscope.items, 1);
    assert_int_equal(profile->time_unix_ns, 1789999990 * (uint64_t)NS_PER_S);
    static const char *const parameters[] = {
        "from", "until", "sampleRate", "units", "aggregationType", "spyName", "labels"};
    static const char *const expected[] = {"1789999990", "1790000000", "100", "samples",
                                           "sum",        "javaspy",    "L"};
    enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };
    struct slice values[PARAMETERS];
    opaque_profile_parameters(&dictionary, profile, parameters, PARAMETERS, values);
    for (size_t i = 0; i < PARAMETERS; i++)
        assert_true(slice_equal_text(values[i], expected[i]));
    struct slice names = profile_label_names(&dictionary, profile);
    assert_true(profile_label_names_has(names, slice_of_text("a")));
    arena_clear(&arena);
}

static void a_busy_pipeline_is_waited_for(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope.busy_times = 3;
    pyroscope_ask(push_line, PROTO, body, PATIENT_TURNS);
    pyroscope_assert_response("a while", 200, "");
    assert_int_equal(pyroscope.offers, 4);
    assert_int_equal(pyroscope.accepted, 1);
    assert_int_equal(pyroscope.received, 1);
    assert_int_equal(pyroscope.given_up, 0);
}

static void patience_ends(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope.busy_times = 1000;
    pyroscope_ask(push_line, PROTO, body, PATIENT_TURNS);
    pyroscope_assert_response("Push", 503, "retry-after: 1");
    pyroscope_assert_response("Push", 503, "{\"code\":\"unavailable\"");
    pyroscope_ask("POST /ingest?name=a", "", slice_of_text("main 1\n"), PATIENT_TURNS);
    pyroscope_assert_response("/ingest", 503, "retry-after: 1");
    assert_int_equal(pyroscope.accepted, 0);
    assert_int_equal(pyroscope.received, 2);
    assert_int_equal(pyroscope.given_up, 2);
}

static void a_rejection_is_reported_at_once(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope.outcome = outcome_refused(STATUS_INVALID_ARGUMENT, "not \"that\"");
    pyroscope_ask(push_line, PROTO, body, TURNS);
    pyroscope_assert_response("Push", 400, "not \\\"that\\\"");
    pyroscope_ask("POST /ingest?name=a", "", slice_of_text("main 1\n"), TURNS);
    pyroscope_assert_response("/ingest", 400, "not \\\"that\\\"");
    pyroscope.outcome = outcome_refused(STATUS_UNAUTHENTICATED, "no org id");
    pyroscope_ask("POST /ingest?name=a", "", slice_of_text("main 1\n"), TURNS);
    pyroscope_assert_response("/ingest", 401, "{\"code\":\"unauthenticated\"");
    assert_int_equal(pyroscope.offers, 3);
}

static void the_helper_inflates_what_may_be_large(void **state)
{
    struct buffer *packed = gzip_zeros(14 << 20);
    struct buffer *half = gzip_zeros(7 << 20); /* protobuf must fit beside it */
    (void)state;
    pyroscope_stop();
    pyroscope_start("{endpoint: 'localhost:0'}");
    struct cpu_share share = cpu_share_begin();
    pyroscope_ask(push_line, PROTO "Content-Encoding: gzip\r\n", buffer_slice(packed),
                  PATIENT_TURNS);
    assert_in_range(cpu_share_percent(&share), 0, 50);
    pyroscope_assert_response("zeros", 400, "invalid_argument");
    pyroscope_ask(push_line, JSON "Content-Encoding: gzip\r\n", buffer_slice(half), PATIENT_TURNS);
    pyroscope_assert_response("no JSON", 400, "unmarshal message: ");
    packed->data[packed->size - 5] ^= 1; /* the checksum */
    pyroscope_ask(push_line, PROTO "Content-Encoding: gzip\r\n", buffer_slice(packed),
                  PATIENT_TURNS);
    pyroscope_assert_response("damaged", 400, "decompress: gzip: invalid checksum");
    buffer_unref(half);
    buffer_unref(packed);
}

/* tear_down checks that nothing is left of it. */
static void a_client_may_leave_while_its_body_is_inflated(void **state)
{
    struct buffer *packed = gzip_zeros(14 << 20);
    char head[256];
    (void)state;
    pyroscope_stop();
    pyroscope_start("{endpoint: 'localhost:0'}");
    int size = snprintf(head, sizeof(head),
                        "%s HTTP/1.1\r\nHost: a\r\n" PROTO
                        "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                        push_line, packed->size);
    struct h2_peer *peer = h2_peer_connect_raw(pyroscope.address);
    h2_peer_write(peer, head, (size_t)size);
    h2_peer_write(peer, packed->data, packed->size);
    h2_peer_turn(peer);
    h2_peer_close(peer);
    for (unsigned i = 0; i < PATIENT_TURNS && lane_turn(pyroscope.lane); i++)
        continue;
    assert_int_equal(pyroscope.offers, 0);
    buffer_unref(packed);
}

/* Returns what somebody else holds after a while. */
static void on_relief(struct timer *timer, void *arg)
{
    (void)timer;
    budget_return(arg, 16 * MIB - 1024);
}

static void a_short_budget_is_waited_for_before_the_body_is_read(void **state)
{
    struct slice body = BYTES(PUSH);
    struct timer relief;
    (void)state;
    assert_true(budget_try_take(&pyroscope.budget, 16 * MIB - 1024));
    timer_init(&relief, on_relief, &pyroscope.budget);
    lane_timer_start(pyroscope.lane, &relief, (uint64_t)NS_PER_S);
    pyroscope_ask(push_line, PROTO, body, PATIENT_TURNS);
    pyroscope_assert_response("relieved", 200, "");
    assert_int_equal(pyroscope.accepted, 1);
}

/* Its body comes unasked, and waits in the reserve. */
static void http2_waits_for_a_short_budget_too(void **state)
{
    struct timer relief;
    (void)state;
    assert_true(budget_try_take(&pyroscope.budget, 16 * MIB - 1024));
    timer_init(&relief, on_relief, &pyroscope.budget);
    lane_timer_start(pyroscope.lane, &relief, (uint64_t)NS_PER_S);
    struct h2_peer *peer = h2_peer_connect(pyroscope.address, 0);
    assert_non_null(strstr(ask_by_grpc(peer, PATIENT_TURNS)->trailers, "grpc-status: 0"));
    assert_int_equal(pyroscope.accepted, 1);
    h2_peer_close(peer);
}

static void a_spent_budget_is_reported(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    assert_true(budget_try_take(&pyroscope.budget, 16 * MIB));
    pyroscope_ask(push_line, PROTO, body, PATIENT_TURNS);
    pyroscope_assert_response("spent", 503, "memory budget");
    budget_return(&pyroscope.budget, 16 * MIB);
}

/* Before their bodies come; and refused at once when even the budget's margin is spent. */
static void what_requests_take_is_charged(void **state)
{
    enum { NAME_BYTES = 4000, STRUCTS_BYTES = 13000 };
    const uint64_t all = 17 * MIB + 256 * KIB; /* with the margin */
    char head[NAME_BYTES + 256];
    (void)state;
    int size = snprintf(head, sizeof(head),
                        "POST /ingest?name=%0*d HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n",
                        NAME_BYTES, 7);
    struct loopback *client = loopback_connect(pyroscope.lane, pyroscope.address);
    loopback_send_bytes(client, head, (size_t)size);
    loopback_settle(client);
    /* The head, too. */
    assert_true(budget_used(&pyroscope.budget) > STRUCTS_BYTES + 2 * NAME_BYTES);
    struct loopback *refused = loopback_connect(pyroscope.lane, pyroscope.address);
    loopback_settle(refused);
    uint64_t rest = all - budget_used(&pyroscope.budget) - 12000;
    assert_true(budget_try_take_margin(&pyroscope.budget, rest));
    loopback_send(refused, "POST /ingest?name=a HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n");
    loopback_expect(refused, "HTTP/1.1 503 ");
    loopback_expect(refused, "memory budget");
    budget_return(&pyroscope.budget, rest);
    loopback_close(refused);
    loopback_close(client);
}

/* Each line becomes a function, a location and a sample: more than the budget, of which no other
 * has taken anything. */
static void what_never_fits_is_rejected_at_once(void **state)
{
    enum { LINES = 6000, LINE_SIZE = 16 };
    char text[LINES * LINE_SIZE];
    size_t size = 0;
    (void)state;
    pyroscope_stop();
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 1000000}");
    budget_lower(&pyroscope.budget, MIB);
    for (unsigned i = 0; i < LINES; i++)
        size += (size_t)snprintf(text + size, LINE_SIZE, "%x 1\n", i);
    pyroscope_ask("POST /ingest?name=a", "", slice_of(text, size), PATIENT_TURNS);
    pyroscope_assert_response("too large", 413, "service::budget_mib");
    const struct pyroscope_receiver_counters *counters = pyroscope.receiver->counters;
    assert_int_equal(counter_read(&counters->waits), 0);
}

/* The text fits, but never beside the protobuf that it becomes. */
static void json_that_never_fits_is_refused_for_good(void **state)
{
    enum { VALUE_BYTES = 400000 };
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"series\":[{\"labels\":[{\"name\":\"a\",\"value\":\"%0*d\"}]}]}", VALUE_BYTES,
            0);
    fclose(out);
    pyroscope_stop();
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 1000000}");
    budget_lower(&pyroscope.budget, VALUE_BYTES * 9 / 5);
    pyroscope_ask(push_line, JSON, slice_of(text, size), PATIENT_TURNS);
    pyroscope_assert_response("JSON", 413, "service::budget_mib");
    free(text);
}

static void a_client_that_has_gone_loses_nothing(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope.busy_times = 4;
    pyroscope_ask(push_line, PROTO, body, TURNS);
    assert_int_equal(pyroscope.accepted, 0);
    for (unsigned i = 0; i < PATIENT_TURNS && pyroscope.accepted == 0; i++) {
        lane_turn(pyroscope.lane);
        clock_fake_advance(10 * (uint64_t)NS_PER_MS);
    }
    assert_int_equal(pyroscope.accepted, 1);
}

/* A Push of one series: a file so many times, and PPROF at the end. */
static struct buffer *push_of_many(struct slice file, unsigned count)
{
    const uint8_t profile[] = PPROF;
    struct byte_run series = {.size = 0};
    struct byte_run sample = {.size = 0};
    struct byte_run request = {.size = 0};
    assert_true(byte_run_append(&series, NULL, slice_of(NAME_LABEL, sizeof(NAME_LABEL) - 1)));
    for (unsigned i = 0; i <= count; i++) {
        sample.size = 0;
        assert_true(byte_run_append_message(
            &sample, NULL, 1, i < count ? file : slice_of(profile, sizeof(profile) - 1)));
        assert_true(byte_run_append_message(&series, NULL, 2, byte_run_slice(&sample)));
    }
    assert_true(byte_run_append_message(&request, NULL, 1, byte_run_slice(&series)));
    struct buffer *buffer = buffer_create(NULL, request.size);
    memcpy(buffer->data, byte_run_slice(&request).data, request.size);
    buffer->size = request.size;
    scratch_fini(&series.scratch, NULL);
    scratch_fini(&sample.scratch, NULL);
    scratch_fini(&request.scratch, NULL);
    return buffer;
}

/* The first refusal has its own status, although the second profile never fits. */
static void the_status_is_that_of_the_reported_refusal(void **state)
{
    enum { SAMPLES = 700, SAMPLE_BYTES = 5 };
    static uint8_t file[SAMPLES * SAMPLE_BYTES];
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        memcpy(file + (size_t)i * SAMPLE_BYTES, "\x12\x03\x12\x01\x05", SAMPLE_BYTES);
    struct buffer *large = push_of_many(slice_of(file, sizeof(file)), 1);
    struct byte_run body = {.size = 0};
    assert_true(byte_run_append(&body, NULL, slice_of(NO_NAME, sizeof(NO_NAME) - 1)));
    assert_true(byte_run_append(&body, NULL, buffer_slice(large)));
    budget_lower(&pyroscope.budget, (uint64_t)50 * 1024);
    pyroscope_ask(push_line, PROTO, buffer_slice(large), PATIENT_TURNS);
    pyroscope_assert_response("too large", 413, "service::budget_mib");
    pyroscope_ask(push_line, PROTO, byte_run_slice(&body), PATIENT_TURNS);
    pyroscope_assert_response("refused before", 400, "invalid_argument");
    scratch_fini(&body.scratch, NULL);
    buffer_unref(large);
}

static void a_request_of_many_profiles_gives_others_their_turn(void **state)
{
    enum { PROFILES_COUNT = 1000, IN_A_TURN = PYROSCOPE_TURN_BYTES / PYROSCOPE_TURN_FILE_BYTES };
    const uint8_t profile[] = PPROF;
    (void)state;
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 1000000}");
    struct buffer *push = push_of_many(slice_of(profile, sizeof(profile) - 1), PROFILES_COUNT - 1);
    pyroscope_ask(push_line, PROTO, buffer_slice(push), PATIENT_TURNS);
    pyroscope_assert_response("many profiles", 200, "");
    assert_int_equal(pyroscope.accepted, PROFILES_COUNT);
    assert_in_range(pyroscope.turn_offers_max, 1, IN_A_TURN);
    buffer_unref(push);
    pyroscope_stop();
}

/* So does one of many series that are refused: none of them has a name. */
static void a_request_of_many_refused_series_gives_others_their_turn(void **state)
{
    enum { SERIES_COUNT = 1000 };
    (void)state;
    struct byte_run series = {0};
    struct byte_run request = {0};
    for (unsigned i = 0; i < SERIES_LABELS_MAX; i++) {
        const char label[] = {0x0a, 3, 'a', (char)('0' + i / 16), (char)('a' + i % 16)};
        assert_true(byte_run_append_message(&series, NULL, 1, slice_of(label, sizeof(label))));
    }
    for (unsigned i = 0; i < SERIES_COUNT; i++)
        assert_true(byte_run_append_message(&request, NULL, 1, byte_run_slice(&series)));
    /* A profile, as in every request. */
    assert_true(byte_run_append_message(&series, NULL, 2, slice_of("\x0a\0", 2)));
    assert_true(byte_run_append_message(&request, NULL, 1, byte_run_slice(&series)));
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 1000000}");
    pyroscope_ask(push_line, PROTO, byte_run_slice(&request), TURNS);
    assert_string_equal(pyroscope.response, "");
    pyroscope_ask("GET /ready", "", slice_of_text(""), PATIENT_TURNS);
    pyroscope_stop();
    scratch_fini(&series.scratch, NULL);
    scratch_fini(&request.scratch, NULL);
}

/* A pipeline keeps each of 1 000 profiles for 200 ms: one at a time they would take 200 seconds. */
static void a_slow_pipeline_gets_many_profiles_at_a_time(void **state)
{
    enum { PROFILES_COUNT = 1000 };
    const uint8_t profile[] = PPROF;
    (void)state;
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 1000000}");
    pyroscope.delay_ns = 200 * (uint64_t)NS_PER_MS;
    pyroscope.busy_times = 3;
    struct buffer *push = push_of_many(slice_of(profile, sizeof(profile) - 1), PROFILES_COUNT - 1);
    pyroscope_ask(push_line, PROTO, buffer_slice(push), PATIENT_TURNS);
    pyroscope_assert_response("a slow pipeline", 200, "");
    assert_int_equal(pyroscope.received, PROFILES_COUNT);
    assert_int_equal(pyroscope.accepted, PROFILES_COUNT);
    assert_int_equal(pyroscope.held_max, PYROSCOPE_DELIVERIES_MAX);
    buffer_unref(push);
    pyroscope_stop();
}

/* The first pipeline takes the batch after the client has gone, the second one at once: inside of
 * that receipt the request is done. */
static void the_last_of_several_pipelines_ends_a_request_without_client(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope.pipelines = 2;
    pyroscope.delay_ns = 500 * (uint64_t)NS_PER_MS;
    pyroscope_ask(push_line, PROTO, body, 10);
    assert_string_equal(pyroscope.response, "");
    assert_int_equal(pyroscope.received, 1);
    for (unsigned i = 0; i < PATIENT_TURNS && pyroscope.received < 2; i++)
        pyroscope_ask("GET /ready", "", slice_of_text(""), TURNS);
    assert_int_equal(pyroscope.received, 2);
}

/* Files that begin as gzip and are none: they may have been inflated to the limit before they
 * failed. */
static void what_a_request_inflates_to_is_bounded(void **state)
{
    enum { LIMIT = 1 << 24, ENOUGH = PYROSCOPE_INFLATED_BYTES_MAX / LIMIT };
    static uint8_t file[LIMIT / 1000] = {0x1f, 0x8b};
    (void)state;
    pyroscope_start("{endpoint: 'localhost:0', max_request_body_size: 16777216}");
    struct buffer *push = push_of_many(slice_of(file, sizeof(file)), ENOUGH);
    pyroscope_ask(push_line, PROTO, buffer_slice(push), PATIENT_TURNS);
    pyroscope_assert_response("just not too much", 400, "gzip");
    assert_int_equal(pyroscope.accepted, 1);
    buffer_unref(push);
    push = push_of_many(slice_of(file, sizeof(file)), ENOUGH + 1);
    pyroscope_ask(push_line, PROTO, buffer_slice(push), PATIENT_TURNS);
    pyroscope_assert_response("too much", 400, "gzip");
    assert_int_equal(pyroscope.accepted, 1);
    buffer_unref(push);
    pyroscope_stop();
}

static void the_tenant_is_context(void **state)
{
    struct slice body = BYTES(PUSH);
    (void)state;
    pyroscope_ask(push_line, PROTO "X-Scope-OrgID: team-a\r\n", body, TURNS);
    assert_string_equal(pyroscope.tenant, "team-a");
}

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    while (readdir(threads) != NULL)
        count++;
    closedir(threads);
    return count;
}

/* A long name above many short ones spells out to much more: the helper, which starts with its
 * first work, reads it. */
static void a_tree_that_may_become_large_is_read_by_the_helper(void **state)
{
    enum { NAME_BYTES = 1900, LEAVES = 60, LEAF_BYTES = 4 };
    static uint8_t body[4 + NAME_BYTES + LEAVES * LEAF_BYTES] = {(NAME_BYTES & 0x7f) | 0x80,
                                                                 NAME_BYTES >> 7};
    (void)state;
    memset(body + 2, 'a', NAME_BYTES);
    body[3 + NAME_BYTES] = LEAVES;
    for (size_t i = 0; i < LEAVES; i++)
        memcpy(body + 4 + NAME_BYTES + i * LEAF_BYTES, "\1b\1", LEAF_BYTES);
    unsigned before = count_threads();
    pyroscope_ask("POST /ingest?name=app&format=trie", "", slice_of("\1a\5", 4), TURNS);
    pyroscope_assert_response("small", 200, "");
    assert_int_equal(count_threads(), before);
    pyroscope_ask("POST /ingest?name=app&format=trie", "", slice_of(body, sizeof(body)), TURNS);
    pyroscope_assert_response("large", 200, "");
    assert_int_equal(pyroscope.accepted, 2);
    /* The thread sanitizer starts a thread of its own with the first one. */
    assert_in_range(count_threads(), before + 1, before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(push_responses_are_those_of_the_server, set_up, tear_down),
        cmocka_unit_test_setup_teardown(uploads_of_every_form_are_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_uploads_get_the_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tree_that_may_become_large_is_read_by_the_helper, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(probes_and_unknown_paths_get_responses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(grpc_comes_in_on_the_same_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_jfr_are_passed_on_as_they_came, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_busy_pipeline_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patience_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rejection_is_reported_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_short_budget_is_waited_for_before_the_body_is_read,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(http2_waits_for_a_short_budget_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spent_budget_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_requests_take_is_charged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_helper_inflates_what_may_be_large, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_may_leave_while_its_body_is_inflated, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_never_fits_is_rejected_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_that_never_fits_is_refused_for_good, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_status_is_that_of_the_reported_refusal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_has_gone_loses_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_of_several_pipelines_ends_a_request_without_client,
                                        set_up, tear_down),
        cmocka_unit_test(a_request_of_many_profiles_gives_others_their_turn),
        cmocka_unit_test(a_request_of_many_refused_series_gives_others_their_turn),
        cmocka_unit_test(a_slow_pipeline_gets_many_profiles_at_a_time),
        cmocka_unit_test(what_a_request_inflates_to_is_bounded),
        cmocka_unit_test_setup_teardown(the_tenant_is_context, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
