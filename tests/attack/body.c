/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to each endpoint. */
#include "tests/attack/body.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "tests/attack/pool.h"
#include "tests/attack/spans.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const char *endpoint_name(enum endpoint endpoint)
{
    static const char *const names[ENDPOINTS] = {
        [ENDPOINT_HTTP] = "http",
        [ENDPOINT_GRPC] = "grpc",
        [ENDPOINT_GUARDED_HTTP] = "guardedhttp",
        [ENDPOINT_GUARDED_GRPC] = "guardedgrpc",
        [ENDPOINT_TLS_HTTP] = "tlshttp",
        [ENDPOINT_TLS_GRPC] = "tlsgrpc",
        [ENDPOINT_PYROSCOPE] = "pyroscope",
        [ENDPOINT_HEALTH] = "health",
        [ENDPOINT_ZPAGES] = "zpages",
        [ENDPOINT_PPROF] = "pprof",
        [ENDPOINT_METRICS] = "metrics",
        [ENDPOINT_CONTROL] = "control",
        [ENDPOINT_EXPLORE] = "explore",
        [ENDPOINT_PROMETHEUS] = "prometheus",
        [ENDPOINT_ZIPKIN] = "zipkin",
        [ENDPOINT_JAEGER_GRPC] = "jaegergrpc",
        [ENDPOINT_JAEGER_HTTP] = "jaegerhttp",
        [ENDPOINT_JAEGER_COMPACT] = "jaegercompact",
        [ENDPOINT_JAEGER_BINARY] = "jaegerbinary",
    };
    assert(endpoint < ENDPOINTS);
    return names[endpoint];
}

bool endpoint_takes_packets(enum endpoint endpoint)
{
    return endpoint == ENDPOINT_JAEGER_COMPACT || endpoint == ENDPOINT_JAEGER_BINARY;
}

bool endpoint_has_tls(enum endpoint endpoint)
{
    return endpoint == ENDPOINT_TLS_HTTP || endpoint == ENDPOINT_TLS_GRPC;
}

static uint64_t below(struct body_maker *maker, uint64_t bound)
{
    return random_below(&maker->world->random, bound);
}

/* Once in so many times something is spoilt. */
static bool spoils(struct body_maker *maker, uint64_t times)
{
    return !maker->is_valid && below(maker, times) == 0;
}

static void add_header(struct body *body, const char *name, const char *value)
{
    assert(body->headers_count < HEADERS_MAX);
    body->headers[body->headers_count].name = name;
    snprintf(body->headers[body->headers_count].value, sizeof(body->headers[0].value), "%s", value);
    body->headers_count++;
}

static void begin(struct body_maker *maker, struct body *body, enum endpoint endpoint)
{
    struct bytes_out content = body->content;
    char tenant[32];
    bytes_clear(&content);
    *body = (struct body){.endpoint = endpoint, .method = "POST", .content = content};
    if (below(maker, 3) != 0)
        return;
    snprintf(tenant, sizeof(tenant), "tenant-%u",
             (unsigned)below(maker, below(maker, 2) == 0 ? 3 : 100000));
    add_header(body, "x-scope-orgid", tenant);
}

static unsigned scale_of(struct body_maker *maker)
{
    static const unsigned scales[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 8, 25};
    return scales[below(maker, COUNT(scales))];
}

static unsigned changes_of(struct body_maker *maker)
{
    static const unsigned changes[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 5, 12};
    return maker->is_valid ? 0 : changes[below(maker, COUNT(changes))];
}

/* Replaces what is in `content` from begin on. */
static void compress(struct body_maker *maker, struct bytes_out *content, size_t begin,
                     enum codec codec)
{
    struct batch_part part = {.bytes = slice_of(content->data + begin, content->size - begin)};
    const struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
    struct buffer *packed = NULL;
    enum codec_result result = codec_deflate(maker->codecs, codec, &input, &packed);
    assert(result == CODEC_OK);
    (void)result;
    content->size = begin;
    bytes_add(content, packed->data, packed->size);
    buffer_unref(packed);
}

static void write_tree(struct body_maker *maker, enum form_request form, bool is_json,
                       struct bytes_out *out)
{
    size_t begin = out->size;
    struct node *root = grow(maker->world, maker->pool, form, scale_of(maker));
    mutate(maker->world, maker->pool, root, changes_of(maker));
    if (is_json)
        tree_write_json(root, maker->size_max, out);
    else
        tree_write(root, maker->size_max, out);
    if (spoils(maker, 30))
        mutate_bytes(maker->world, out, begin);
}

static enum form_request signal_of(struct body_maker *maker)
{
    static const enum form_request forms[] = {
        FORM_TRACES,   FORM_TRACES,   FORM_TRACES,       FORM_TRACES,       FORM_METRICS,
        FORM_LOGS,     FORM_PROFILES, FORM_PROFILES,     FORM_PROFILES,     FORM_PROFILES,
        FORM_PROFILES, FORM_PROFILES, FORM_PROFILES_1_9, FORM_PROFILES_1_8, FORM_PROFILES_1_7,
    };
    return forms[below(maker, COUNT(forms))];
}

static const char *otlp_path(enum form_request form, bool is_grpc)
{
    if (form == FORM_TRACES)
        return is_grpc ? "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
                       : "/v1/traces";
    if (form == FORM_METRICS)
        return is_grpc ? "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
                       : "/v1/metrics";
    if (form == FORM_LOGS)
        return is_grpc ? "/opentelemetry.proto.collector.logs.v1.LogsService/Export" : "/v1/logs";
    return is_grpc ? "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
                   : "/v1development/profiles";
}

struct coding {
    const char *name;
    enum codec codec;
};

static const struct coding http_codings[] = {
    {"gzip", CODEC_GZIP},     {"gzip", CODEC_GZIP},
    {"zstd", CODEC_ZSTD},     {"zlib", CODEC_ZLIB},
    {"deflate", CODEC_ZLIB},  {"snappy", CODEC_SNAPPY_FRAMED},
    {"snappy", CODEC_SNAPPY}, {"x-snappy-framed", CODEC_SNAPPY_FRAMED},
    {"lz4", CODEC_LZ4},
};
static const struct coding grpc_codings[] = {{"gzip", CODEC_GZIP},
                                             {"gzip", CODEC_GZIP},
                                             {"zstd", CODEC_ZSTD},
                                             {"snappy", CODEC_SNAPPY_FRAMED}};

static void put_coding(struct body_maker *maker, struct body *body, const struct coding *coding,
                       size_t begin)
{
    body->encoding = coding->name;
    compress(maker, &body->content, begin, coding->codec);
    if (spoils(maker, 16))
        mutate_bytes(maker->world, &body->content, begin);
    if (spoils(maker, 60))
        body->encoding = below(maker, 2) == 0 ? "gzip" : "nonsense";
}

/* The five bytes in front of a gRPC message, which may lie. */
static void put_prefix(struct body_maker *maker, struct bytes_out *content)
{
    uint64_t size = content->size - 5;
    bool lies = spoils(maker, 40);
    if (lies)
        size = odd_number(maker->world, size);
    content->data[0] = lies ? (uint8_t)below(maker, 256) : 0;
    for (unsigned i = 0; i < 4; i++)
        content->data[1 + i] = (uint8_t)(size >> (24 - 8 * i));
}

/* Names with right passwords and wrong ones, and tokens. */
static void add_authorization(struct body_maker *maker, struct body *body)
{
    static const char *const known[] = {
        "Basic dTpoZWxsbw==", /* u:hello */
        "Basic djpoZWxsbw==",
        "Basic dzpoZWxsbw==",
        "Basic czpoZWxsbw==",
        "Basic dDpoZWxsbw==",
        "Bearer sesame",
        "Bearer simsim",
        "Bearer ",
        "Basic dTo=",
        "Basic !",
        "basic Og==",
        "Digest a=b",
    };
    static const char *const users[] = {"dTph", "djph", "dzph", "czph", "dDph"}; /* u:a … */
    char value[64];
    uint64_t which = below(maker, COUNT(known) + 6);
    if (which < COUNT(known)) {
        add_header(body, "authorization", known[which]);
    } else if (which < COUNT(known) + 5) { /* a password that nobody has sent before */
        uint64_t number = below(maker, (uint64_t)1 << 31);
        int size = snprintf(value, sizeof(value), "Basic %s%08llu", users[which - COUNT(known)],
                            (unsigned long long)(number % 100000000));
        assert(size % 4 == 2); /* "Basic " and whole groups */
        (void)size;
        add_header(body, "authorization", value);
    }
}

static enum endpoint otlp_endpoint(struct body_maker *maker, bool is_grpc)
{
    uint64_t which = maker->is_valid ? 9 : below(maker, 10);
    if (which < 2)
        return is_grpc ? ENDPOINT_GUARDED_GRPC : ENDPOINT_GUARDED_HTTP;
    if (which == 2)
        return is_grpc ? ENDPOINT_TLS_GRPC : ENDPOINT_TLS_HTTP;
    return is_grpc ? ENDPOINT_GRPC : ENDPOINT_HTTP;
}

void body_make_otlp(struct body_maker *maker, struct body *body, bool is_grpc)
{
    begin(maker, body, otlp_endpoint(maker, is_grpc));
    if (body->endpoint != ENDPOINT_GRPC && body->endpoint != ENDPOINT_HTTP)
        add_authorization(maker, body);
    enum form_request form = signal_of(maker);
    bool is_json = !is_grpc && form <= FORM_PROFILES && below(maker, 4) == 0;
    size_t start = is_grpc ? 5 : 0;
    bytes_add(&body->content, "\0\0\0\0", start);
    write_tree(maker, form, is_json, &body->content);
    body->is_grpc = is_grpc;
    body->type = is_grpc   ? "application/grpc"
                 : is_json ? "application/json"
                           : "application/x-protobuf";
    snprintf(body->path, sizeof(body->path), "%s", otlp_path(form, is_grpc));
    if (spoils(maker, 60))
        snprintf(body->path, sizeof(body->path), "%s", otlp_path(signal_of(maker), is_grpc));
    bool is_packed = below(maker, 3) == 0;
    if (is_packed && is_grpc)
        put_coding(maker, body, &grpc_codings[below(maker, COUNT(grpc_codings))], start);
    else if (is_packed)
        put_coding(maker, body, &http_codings[below(maker, COUNT(http_codings))], start);
    if (is_grpc) {
        put_prefix(maker, &body->content);
        body->content.data[0] |= is_packed;
        if (below(maker, 8) == 0)
            add_header(body, "grpc-timeout", below(maker, 2) == 0 ? "10S" : "1m");
    }
}

static void put_pprof(struct body_maker *maker, struct bytes_out *out)
{
    size_t start = out->size;
    write_tree(maker, FORM_PPROF, false, out);
    if (below(maker, 3) != 0)
        compress(maker, out, start, CODEC_GZIP);
    if (spoils(maker, 30))
        mutate_bytes(maker->world, out, start);
}

static struct node *label_of(struct body_maker *maker, const struct node *model, const char *name,
                             const char *value)
{
    struct node *label = pool_alloc(maker->pool, sizeof(*label));
    *label = *model;
    label->children = NULL;
    for (const struct node *old = model->children; old != NULL; old = old->next) {
        struct node *text = pool_alloc(maker->pool, sizeof(*text));
        *text = *old;
        text->bytes = slice_of_text(old->number == 1 ? name : value);
        node_adopt(label, text);
    }
    return label;
}

/* A series is one of a profile's kind and a service. */
static void name_series(struct body_maker *maker, struct node *series)
{
    static const char *const names[] = {"process_cpu", "memory", "block", "odd"};
    const struct node *label = series->children;
    while (label != NULL && (label->number != 1 || node_children(label) != 2))
        label = label->next;
    if (label == NULL)
        return;
    struct node *service = label_of(maker, label, "service_name", "checkout");
    node_adopt(series, label_of(maker, label, "__name__", names[below(maker, COUNT(names))]));
    node_adopt(series, service);
}

/* Gives the fields for profiles one each, and series their names. */
static void fill_profiles(struct body_maker *maker, struct node *node, unsigned depth)
{
    for (struct node *child = node->children; child != NULL && depth < 4; child = child->next) {
        if (depth == 0)
            name_series(maker, child);
        if (child->field != NULL && child->field->role == ROLE_ZIPPED) {
            bytes_clear(&maker->scratch);
            put_pprof(maker, &maker->scratch);
            uint8_t *copy = pool_alloc(maker->pool, maker->scratch.size);
            memcpy(copy, maker->scratch.data, maker->scratch.size);
            child->bytes = slice_of(copy, maker->scratch.size);
        }
        fill_profiles(maker, child, depth + 1);
    }
}

void body_make_push(struct body_maker *maker, struct body *body)
{
    begin(maker, body, ENDPOINT_PYROSCOPE);
    struct node *root = grow(maker->world, maker->pool, FORM_PUSH, 1);
    fill_profiles(maker, root, 0);
    if (below(maker, 2) == 0)
        mutate(maker->world, maker->pool, root, changes_of(maker));
    uint64_t form = below(maker, 6);
    body->is_grpc = form == 0;
    body->type = form == 0   ? "application/grpc"
                 : form == 1 ? "application/json"
                             : "application/proto";
    size_t start = body->is_grpc ? 5 : 0;
    bytes_add(&body->content, "\0\0\0\0", start);
    if (form == 1)
        tree_write_json(root, maker->size_max, &body->content);
    else
        tree_write(root, maker->size_max, &body->content);
    snprintf(body->path, sizeof(body->path), "/push.v1.PusherService/Push");
    bool is_packed = below(maker, 3) == 0;
    if (is_packed)
        put_coding(maker, body, &grpc_codings[0], start);
    if (body->is_grpc) {
        put_prefix(maker, &body->content);
        body->content.data[0] |= is_packed;
    }
}

static void put_folded(struct body_maker *maker, struct bytes_out *out, bool has_counts)
{
    for (uint64_t lines = below(maker, 20 * scale_of(maker)); lines > 0; lines--) {
        for (uint64_t frames = 1 + below(maker, 8); frames > 0; frames--) {
            struct slice word = grow_word(maker->world, maker->pool);
            bytes_add(out, word.data, word.size);
            bytes_add(out, ";", frames > 1);
        }
        if (has_counts)
            bytes_add_format(
                out, " %lld",
                (long long)(spoils(maker, 12) ? odd_number(maker->world, 7) : below(maker, 1000)));
        bytes_add(out, "\n", 1);
    }
    if (spoils(maker, 10))
        mutate_bytes(maker->world, out, 0);
}

static void put_varint(struct bytes_out *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        bytes_add(out, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    bytes_add(out, &(uint8_t){(uint8_t)value}, 1);
}

/* Nodes with a name, a value and a count of children, in the order of their depth first. */
static void put_trie(struct body_maker *maker, struct bytes_out *out, unsigned depth)
{
    struct slice name = grow_word(maker->world, maker->pool);
    uint64_t children = depth < 6 ? below(maker, 4) : 0;
    put_varint(out, spoils(maker, 60) ? odd_number(maker->world, name.size) : name.size);
    bytes_add(out, name.data, name.size);
    put_varint(out, spoils(maker, 60) ? odd_number(maker->world, 0) : below(maker, 99));
    put_varint(out, spoils(maker, 60) ? odd_number(maker->world, children) : children);
    for (; children > 0; children--)
        put_trie(maker, out, depth + 1);
}

static void put_node(struct bytes_out *out, struct slice name, uint64_t self, uint64_t children)
{
    put_varint(out, name.size);
    bytes_add(out, name.data, name.size);
    put_varint(out, self);
    put_varint(out, children);
}

static struct slice long_text(struct body_maker *maker)
{
    size_t size = (size_t)1024 << below(maker, 10);
    uint8_t *text = pool_alloc(maker->pool, size);
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)("abcdefgh/.-_{};0"[i * i % 97 % 16]);
    return slice_of(text, size);
}

/* A long name or a deep stack above very many leaves: each of them spelt out has all of it. */
static void put_trie_product(struct body_maker *maker, struct bytes_out *out)
{
    uint64_t depth = below(maker, 2) == 0 ? 0 : below(maker, 20000);
    uint64_t leaves = 1 + below(maker, 20000);
    put_node(out, depth > 0 ? slice_of_text("root") : long_text(maker), 0, 1);
    for (; depth > 0; depth--)
        put_node(out, slice_of_text("f"), 1, 1);
    put_node(out, slice_of_text("last"), 0, leaves);
    for (uint64_t i = 0; i < leaves; i++) {
        const uint8_t name[] = {(uint8_t)('a' + i % 26), (uint8_t)('a' + i / 26 % 26),
                                (uint8_t)('a' + i / 676)};
        put_node(out, slice_of(name, sizeof(name)), 1, 0);
    }
}

/* The same in lines, which spell it out themselves: it is small when compressed. */
static void put_folded_product(struct body_maker *maker, struct bytes_out *out, bool has_counts)
{
    struct slice name = long_text(maker);
    size_t begin = out->size;
    bool is_deep = below(maker, 2) == 0;
    for (uint64_t i = 0; i < 1000 && out->size - begin + name.size < maker->size_max; i++) {
        for (size_t at = 0; at < name.size; at += 2)
            bytes_add(out, is_deep ? "f;" : (const char *)name.data + at, 2);
        bytes_add_format(out, has_counts ? "%llu 1\n" : "%llu\n", (unsigned long long)i);
    }
}

/* As async-profiler writes them: a head, and what is no event. */
static void put_jfr(struct body_maker *maker, struct bytes_out *out)
{
    bytes_add(out, "FLR\0\0\2\0\1\0\0\0\0\0\0\0", 16);
    put_folded(maker, out, true);
}

static void put_form(struct body_maker *maker, struct body *body)
{
    static const char *const names[] = {"profile", "prev_profile", "sample_type_config",
                                        "jfr",     "labels",       "odd"};
    struct bytes_out *out = &body->content;
    body->type = "multipart/form-data; boundary=xyz";
    for (uint64_t parts = 1 + below(maker, 4); parts > 0; parts--) {
        uint64_t which = below(maker, 3) != 0 ? 0 : below(maker, COUNT(names));
        bytes_add_format(out,
                         "--xyz\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"f\"\r\n"
                         "Content-Type: application/octet-stream\r\n\r\n",
                         names[which]);
        if (which == 2)
            bytes_add_text(out, "{\"cpu\":{\"units\":\"samples\",\"display-name\":\"cpu_x\","
                                "\"aggregation\":\"sum\",\"cumulative\":true,\"sampled\":false}}");
        else if (which == 3)
            put_jfr(maker, out);
        else
            put_pprof(maker, out);
        bytes_add_text(out, "\r\n");
    }
    bytes_add_text(out, "--xyz--\r\n");
    if (spoils(maker, 20))
        mutate_bytes(maker->world, out, 0);
}

static void put_query(struct body_maker *maker, struct body *body, const char *format)
{
    static const char *const names[] = {
        "app.cpu",
        "app.cpu{service_name=web,span_id=1111111111111100}",
        "checkout.alloc_space{tag=x}",
        "%7Bfoo%3Dbar%7D",
        "a%00b",
        "",
        "app.itimer{__session_id__=1,a=b,a=c}",
        "app{",
        "app.wall%7Bk%3D%22v%22%7D",
    };
    static const char *const units[] = {"samples", "objects", "bytes", "lock_nanoseconds", "odd"};
    uint64_t now = maker->world->now_ns / 1000000000;
    uint64_t until = spoils(maker, 20) ? odd_number(maker->world, now) : now;
    snprintf(body->path, sizeof(body->path),
             "%s/ingest?name=%s&from=%llu&until=%llu&sampleRate=%llu&spyName=%s&units=%s"
             "&aggregationType=%s%s%s",
             below(maker, 2) == 0 ? "/pyroscope" : "", names[below(maker, COUNT(names))],
             (unsigned long long)(now - below(maker, 30)), (unsigned long long)until,
             (unsigned long long)(spoils(maker, 10) ? odd_number(maker->world, 100) : 100),
             below(maker, 2) == 0 ? "javaspy" : "gospy", units[below(maker, COUNT(units))],
             below(maker, 2) == 0 ? "sum" : "average", format[0] != 0 ? "&format=" : "", format);
}

void body_make_ingest(struct body_maker *maker, struct body *body)
{
    static const char *const formats[] = {"pprof", "folded", "lines", "trie",
                                          "tree",  "jfr",    "",      "speedscope"};
    begin(maker, body, ENDPOINT_PYROSCOPE);
    const char *format = formats[below(maker, COUNT(formats))];
    struct bytes_out *out = &body->content;
    body->type = "binary/octet-stream";
    put_query(maker, body, format);
    if (format[0] == 0 || strcmp(format, "jfr") == 0 || strcmp(format, "pprof") == 0) {
        if (below(maker, 3) != 0)
            put_form(maker, body);
        else if (strcmp(format, "jfr") == 0)
            put_jfr(maker, out);
        else
            put_pprof(maker, out);
    } else if (spoils(maker, 5)) {
        if (format[0] == 't')
            put_trie_product(maker, out);
        else
            put_folded_product(maker, out, strcmp(format, "lines") != 0);
    } else if (format[0] == 't')
        put_trie(maker, out, 0);
    else
        put_folded(maker, out, strcmp(format, "lines") != 0);
    if (below(maker, 8) == 0)
        put_coding(maker, body, &http_codings[0], 0);
}

static void put_spans(struct body_maker *maker, enum spans_message message,
                      enum spans_encoding encoding, size_t size_max, struct bytes_out *out)
{
    struct spans_maker spans = {.world = maker->world,
                                .pool = maker->pool,
                                .is_valid = maker->is_valid,
                                .size_max = size_max};
    spans_write(&spans, message, encoding, scale_of(maker), out);
}

void body_make_zipkin(struct body_maker *maker, struct body *body)
{
    static const char *const types[] = {"application/json", "application/x-protobuf",
                                        "application/x-thrift", "text/plain"};
    struct bytes_out *out = &body->content;
    begin(maker, body, ENDPOINT_ZIPKIN);
    uint64_t form = below(maker, 4);
    bool is_first = form < 2; /* version */
    body->type = types[0];
    if (form == 0)
        put_spans(maker, SPANS_ZIPKIN_V1, SPANS_JSON, maker->size_max, out);
    else if (form == 1) {
        put_spans(maker, SPANS_ZIPKIN_V1_THRIFT, SPANS_BINARY, maker->size_max, out);
        body->type = types[2];
    } else if (form == 2)
        put_spans(maker, SPANS_ZIPKIN_V2, SPANS_JSON, maker->size_max, out);
    else {
        write_tree(maker, FORM_ZIPKIN, false, out);
        body->type = types[1];
    }
    if (spoils(maker, 60))
        body->type = types[below(maker, COUNT(types))];
    if (spoils(maker, 60))
        is_first = !is_first;
    snprintf(body->path, sizeof(body->path), is_first ? "/api/v1/spans" : "/api/v2/spans");
    if (below(maker, 3) == 0)
        put_coding(maker, body, &http_codings[below(maker, COUNT(http_codings))], 0);
}

void body_make_jaeger(struct body_maker *maker, struct body *body, bool is_grpc)
{
    begin(maker, body, is_grpc ? ENDPOINT_JAEGER_GRPC : ENDPOINT_JAEGER_HTTP);
    body->is_grpc = is_grpc;
    if (!is_grpc) {
        put_spans(maker, SPANS_JAEGER_BATCH, SPANS_BINARY, maker->size_max, &body->content);
        body->type =
            below(maker, 2) == 0 ? "application/x-thrift" : "application/vnd.apache.thrift.binary";
        snprintf(body->path, sizeof(body->path), "/api/traces%s",
                 below(maker, 3) == 0 ? "?format=jaeger.thrift" : "");
        if (below(maker, 4) == 0)
            put_coding(maker, body, &http_codings[below(maker, COUNT(http_codings))], 0);
        return;
    }
    bytes_add(&body->content, "\0\0\0\0", 5);
    write_tree(maker, FORM_JAEGER, false, &body->content);
    body->type = "application/grpc";
    snprintf(body->path, sizeof(body->path), "/jaeger.api_v2.CollectorService/PostSpans");
    bool is_packed = below(maker, 3) == 0;
    if (is_packed)
        put_coding(maker, body, &grpc_codings[below(maker, COUNT(grpc_codings))], 5);
    put_prefix(maker, &body->content);
    body->content.data[0] |= is_packed;
}

void body_make_jaeger_packet(struct body_maker *maker, struct body *body)
{
    enum { PACKET_BYTES_MAX = 60000 };
    bool is_compact = below(maker, 2) == 0;
    begin(maker, body, is_compact ? ENDPOINT_JAEGER_COMPACT : ENDPOINT_JAEGER_BINARY);
    put_spans(maker, SPANS_JAEGER_CALL,
              is_compact != spoils(maker, 60) ? SPANS_COMPACT : SPANS_BINARY, PACKET_BYTES_MAX,
              &body->content);
}

static void add_escaped(struct bytes_out *out, struct slice text, bool is_raw)
{
    for (size_t i = 0; i < text.size; i++) {
        bool is_plain = text.data[i] > 0 && text.data[i] < 0x80 &&
                        (isalnum(text.data[i]) || strchr("-._~", text.data[i]) != NULL);
        bytes_add_format(out, is_raw || is_plain ? "%c" : "%%%02x", text.data[i]);
    }
}

/* The id of a trace of the world, or of its spans when it has 8 bytes; often enough another's. */
static void add_id(struct body_maker *maker, struct bytes_out *out, size_t size)
{
    uint64_t trace = below(maker, WORLD_TRACES + 1);
    for (size_t i = 0; i < size; i++)
        bytes_add_format(out, "%02x",
                         size == 8 && i == 7 ? (unsigned)below(maker, WORLD_SPANS)
                                             : 0x10 + (unsigned)trace);
}

static void add_number(struct body_maker *maker, struct bytes_out *out)
{
    static const uint64_t bounds[] = {3, 100, 5000, UINT32_MAX, UINT64_MAX};
    if (spoils(maker, 6))
        bytes_add_format(out, "%s%llu", below(maker, 2) == 0 ? "-" : "0x",
                         (unsigned long long)odd_number(maker->world, 10));
    else
        bytes_add_format(out, "%llu",
                         (unsigned long long)below(maker, bounds[below(maker, COUNT(bounds))]));
}

static void add_value(struct body_maker *maker, const char *key, struct bytes_out *out)
{
    static const char *const views[] = {"tree", "sandwich", "top", "flat"};
    static const char *const formats[] = {"otlp-json", "folded", "pprof", "svg"};
    static const char *const durations[] = {"1ns", "250ms", "1.5s", "9999999h", "-1s", "1e99s"};
    uint64_t now = maker->world->now_ns;
    if (strstr(key, "trace") != NULL) {
        add_id(maker, out, 16);
    } else if (strcmp(key, "span") == 0) {
        for (uint64_t left = below(maker, 3) + 1; left > 0; left--) {
            add_id(maker, out, 8);
            bytes_add_text(out, left > 1 ? "," : "");
        }
    } else if (strcmp(key, "view") == 0) {
        bytes_add_text(out, views[below(maker, COUNT(views))]);
    } else if (strcmp(key, "format") == 0) {
        bytes_add_text(out, formats[below(maker, COUNT(formats))]);
    } else if (key[0] == 'm') {
        bytes_add_text(out, durations[below(maker, COUNT(durations))]);
    } else if ((strcmp(key, "start") == 0 || strcmp(key, "end") == 0) && !spoils(maker, 6)) {
        bytes_add_format(out, "%llu",
                         (unsigned long long)(now - 2000000000 + below(maker, 4000000000)));
    } else if (strchr("bcfl", key[0]) != NULL || below(maker, 4) == 0) {
        add_number(maker, out);
    } else {
        add_escaped(out, grow_word(maker->world, maker->pool), spoils(maker, 12));
        if (strcmp(key, "attr") == 0) {
            bytes_add_text(out, "%3d");
            add_escaped(out, grow_word(maker->world, maker->pool), false);
        }
    }
}

/* Some of the keys, which end with NULL. */
static void add_query(struct body_maker *maker, const char *const *keys, struct bytes_out *out)
{
    for (const char *separator = "?"; *keys != NULL; keys++) {
        for (unsigned left = below(maker, 5) > 0   ? 0
                             : below(maker, 9) > 0 ? 1
                                                   : 2;
             left > 0; left--) {
            bytes_add_format(out, "%s%s=", separator, *keys);
            add_value(maker, *keys, out);
            separator = "&";
        }
    }
}

static const char *const list_keys[] = {"service", "name",    "attr",    "min", "max",
                                        "error",   "profile", "start",   "end", "limit",
                                        "before",  "after",   "buckets", NULL};
static const char *const flame_keys[] = {"trace", "not-trace", "span",     "subtree", "service",
                                         "name",  "slow",      "start",    "end",     "type",
                                         "width", "view",      "function", "format",  NULL};

/* Two queries, escaped. */
static void add_sides(struct body_maker *maker, struct bytes_out *out)
{
    struct bytes_out inner = {.size = 0};
    for (unsigned side = 0; side < 2; side++) {
        bytes_clear(&inner);
        add_query(maker, flame_keys, &inner);
        bytes_add_format(out, "%c%c=", side == 0 ? '?' : '&', 'a' + (int)side);
        if (inner.size > 1)
            add_escaped(out, slice_of(inner.data + 1, inner.size - 1), false);
    }
    bytes_fini(&inner);
}

void body_make_question(struct body_maker *maker, struct body *body)
{
    static const char *const window_keys[] = {"from", "count", "q", "limit", NULL};
    static const char *const none[] = {NULL};
    /* T: a trace; S: a span. */
    static const struct {
        const char *path;
        const char *const *keys; /* NULL: those of a comparison */
    } questions[] = {
        {"status", none},
        {"pipelines", none},
        {"services", none},
        {"traces", list_keys},
        {"traces", list_keys},
        {"scatter", list_keys},
        {"spans", list_keys},
        {"live", list_keys},
        {"flame", flame_keys},
        {"flame", flame_keys},
        {"download", flame_keys},
        {"diff", NULL},
        {"traces/T", none},
        {"traces/T", none},
        {"traces/T/rows", window_keys},
        {"traces/T/find", window_keys},
        {"traces/T/spans/S", none},
    };
    struct bytes_out path = {.size = 0};
    begin(maker, body, ENDPOINT_EXPLORE);
    body->method = below(maker, 12) == 0 ? "HEAD" : "GET";
    if (below(maker, 20) == 0) {
        snprintf(body->path, sizeof(body->path), "%s", below(maker, 2) == 0 ? "/" : "/app.js");
        return;
    }
    uint64_t which = below(maker, COUNT(questions));
    bytes_add_text(&path, "/api/v1/");
    for (const char *at = questions[which].path; *at != 0; at++)
        if (*at == 'T' || *at == 'S')
            add_id(maker, &path, *at == 'T' ? 16 : 8);
        else
            bytes_add(&path, at, 1);
    if (questions[which].keys == NULL)
        add_sides(maker, &path);
    else
        add_query(maker, questions[which].keys, &path);
    if (spoils(maker, 15))
        mutate_bytes(maker->world, &path, strlen("/api/v1/"));
    body->is_endless = strcmp(questions[which].path, "live") == 0;
    snprintf(body->path, sizeof(body->path), "%.*s", (int)path.size, (const char *)path.data);
    bytes_fini(&path);
}

void body_make_page(struct body_maker *maker, struct body *body)
{
    static const struct {
        enum endpoint endpoint;
        const char *path;
    } pages[] = {
        {ENDPOINT_HEALTH, "/"},
        {ENDPOINT_METRICS, "/metrics"},
        {ENDPOINT_ZPAGES, "/debug/servicez"},
        {ENDPOINT_ZPAGES, "/debug/pipelinez?zpipelinename=traces"},
        {ENDPOINT_ZPAGES, "/debug/extensionz"},
        {ENDPOINT_ZPAGES, "/debug/featurez"},
        {ENDPOINT_PPROF, "/debug/pprof/heap"},
        {ENDPOINT_PPROF, "/debug/pprof/cmdline"},
        {ENDPOINT_PPROF, "/debug/pprof/"},
        {ENDPOINT_PYROSCOPE, "/ready"},
        {ENDPOINT_CONTROL, "/keep"},
        {ENDPOINT_CONTROL, "/keep"},
        {ENDPOINT_PROMETHEUS, "/metrics"},
        {ENDPOINT_PROMETHEUS, "/metrics"},
        {ENDPOINT_PROMETHEUS, "/metrics"},
        {ENDPOINT_HTTP, "/"},
        {ENDPOINT_HTTP, "/v1%2Ftraces"},
    };
    static const char *const rules[] = {"{\"slow\":\"100ms\"}",
                                        "{\"error\":true,\"sampled\":false}",
                                        "{\"slow\":\"-1s\",\"slow\":\"9999999h\"}",
                                        "[]",
                                        "{",
                                        ""};
    static const char *const methods[] = {"GET",     "GET",  "GET",  "HEAD",
                                          "OPTIONS", "POST", "POST", "DELETE"};
    uint64_t which = below(maker, COUNT(pages));
    begin(maker, body, pages[which].endpoint);
    body->method = methods[below(maker, COUNT(methods))];
    snprintf(body->path, sizeof(body->path), "%s", pages[which].path);
    if (body->endpoint == ENDPOINT_CONTROL && strcmp(body->method, "POST") == 0) {
        body->type = "application/json";
        bytes_add_text(&body->content, rules[below(maker, COUNT(rules))]);
    }
    if (below(maker, 3) == 0)
        add_header(body, "origin", "http://example.com");
    static const char *const accepted[] = {
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
         "encoding=delimited;q=0.6,*/*;q=0.1"),
        "text/plain;version=1.0.0;escaping=allow-utf-8",
        ";;q=,",
    };
    if (below(maker, 2) == 0)
        add_header(body, "accept", accepted[below(maker, COUNT(accepted))]);
    if (below(maker, 4) == 0)
        add_header(body, "accept-encoding", "gzip");
}
