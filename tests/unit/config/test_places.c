/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of every component, broken: the problem names the file, line and column of the value
 * that is wrong. Rows are YAML with a mark, "@", where that value stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/cli/components.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/service/service.h"
#include "tests/unit/config/support.h"

enum { TEXT_MAX = 8192 };

struct row {
    enum component_kind kind;
    const char *yaml;  /* the component, from its id on; further lines begin with four blanks */
    const char *words; /* part of the problem, which begins with "otel.yaml:line:column: " */
};

#define GRPC "otlp:\n    protocols:\n      grpc:\n        "
#define HTTP "otlp:\n    protocols:\n      http:\n        "
#define OUT  "otlp_grpc:\n    endpoint: localhost:1\n    "
#define WEB  "otlp_http:\n    endpoint: http://localhost:1\n    "
#define PYRO "pyroscope:\n    endpoint: http://localhost:1\n    "
#define JOIN "trace_profile_join:\n    "

static const struct row rows[] = {
    /* servers */
    {RECEIVER, "@otlp: {}", "must specify at least one protocol"},
    {RECEIVER, "otlp:\n    @protocols: {}", "must specify at least one protocol"},
    {RECEIVER, GRPC "endpoint: @localhost", "missing port in address"},
    {RECEIVER, GRPC "endpoint: @localhost:99999", "99999"},
    {RECEIVER, GRPC "endpoint: localhost:1\n        transport: @udp", "unsupported transport type"},
    {RECEIVER, GRPC "@middlewares: [{id: x}]", "middlewares are not supported"},
    {RECEIVER, GRPC "@tls: {}", "must include both certificate and key for server connections"},
    {RECEIVER, GRPC "tls:\n          cert_file: @a.pem", "must include both certificate and key"},
    {RECEIVER,
     GRPC "tls:\n          cert_pem: a\n          key_pem: b\n          min_version: @'1.9'",
     "unsupported TLS version: \"1.9\""},
    {RECEIVER, GRPC "tls: {cert_pem: a, key_pem: b, max_version: @'2'}", "unsupported TLS version"},
    {RECEIVER, GRPC "tls: {cert_pem: a, key_pem: b, min_version: @'1.3', max_version: '1.2'}",
     "cannot be greater"},
    {RECEIVER, GRPC "tls: {cert_pem: a, key_pem: b, max_version: @'1.1'}", "cannot be greater"},
    {RECEIVER, GRPC "tls: {cert_file: b, cert_pem: @a, key_pem: c}", "either certificate file or"},
    {RECEIVER, GRPC "tls: {cert_file: b, key_file: a, key_pem: @c}", "either key file or PEM"},
    {RECEIVER,
     GRPC "tls:\n          cert_pem: a\n          key_pem: b\n          cipher_suites:\n"
          "          - TLS_AES_128_GCM_SHA256\n          - @foo",
     "invalid TLS cipher suite: \"foo\""},
    {RECEIVER, GRPC "tls: {cert_pem: a, key_pem: b, curve_preferences: [P256, @P11]}",
     "invalid curve type: \"P11\""},
    {RECEIVER, HTTP "endpoint: @'127.0.0.1:1:2'", "too many colons"},
    {RECEIVER, HTTP "response_headers:\n          a: b\n          'c d': @e",
     "is not a header name"},
    {RECEIVER, HTTP "response_headers: [{name: a, value: b}, @{name: 'c d', value: e}]",
     "is not a header name"},
    {RECEIVER, HTTP "traces_url_path: @'%zz'", "invalid HTTP URL path"},
    {RECEIVER, HTTP "logs_url_path: @/v1/traces", "have the same URL path"},
    {RECEIVER, "pyroscope:\n    endpoint: @nowhere", "missing port in address"},
    /* exporters: sending_queue and retry_on_failure */
    {EXPORTER,
     WEB "sending_queue:\n      batch:\n        partition:\n          metadata_keys:\n"
         "          - a\n          - @A",
     "duplicate entry in metadata_keys: \"A\""},
    {EXPORTER, WEB "sending_queue: {batch: {partition: {metadata_keys: @'a,A'}}}",
     "duplicate entry"},
    {EXPORTER, WEB "sending_queue: {batch: {sizer: @requests}}", "only `items` or `bytes`"},
    {EXPORTER, WEB "sending_queue: {sizer: @requests, batch: {}}", "set batch::sizer"},
    {EXPORTER, WEB "sending_queue: {batch: {max_size: @5, min_size: 6}}", "`max_size` (5)"},
    {EXPORTER, WEB "sending_queue: {sizer: items, queue_size: 5, batch: {min_size: @6}}",
     "less than or equal to `queue_size`"},
    {EXPORTER, WEB "sending_queue: {@storage: file_storage}",
     "failed to resolve storage client extension \"file_storage\""},
    {EXPORTER, WEB "sending_queue: {storage: f, wait_for_result: @true}", "persistent queue"},
    {EXPORTER, WEB "retry_on_failure: {randomization_factor: @1.5}", "within [0, 1]"},
    {EXPORTER, WEB "retry_on_failure: {multiplier: @-1}", "must be non-negative"},
    {EXPORTER, WEB "retry_on_failure:\n      max_elapsed_time: @1s", "'initial_interval'"},
    {EXPORTER, WEB "retry_on_failure:\n      max_elapsed_time: @20s", "'max_interval'"},
    /* otlp_grpc */
    {EXPORTER, "@otlp_grpc:", "requires a non-empty \"endpoint\""},
    {EXPORTER, "otlp_grpc:\n    endpoint: @localhost:http x", "invalid port"},
    {EXPORTER, OUT "balancer_name: @random", "invalid balancer_name: random"},
    {EXPORTER, OUT "user_agent: @\"a\\nb\"", "user_agent has a line break"},
    {EXPORTER, OUT "authority: @a b", "is not a host:port"},
    {EXPORTER, OUT "headers:\n      a: b\n      'c d': @e", "is not a gRPC metadata key"},
    {EXPORTER, OUT "headers: {connection: @x}", "belongs to HTTP/1.1 connections"},
    {EXPORTER, OUT "headers: {x: @\"a\\nb\"}", "contains a line break"},
    {EXPORTER, OUT "tls: {insecure: true}\n    @auth: {authenticator: bearertokenauth/x}",
     "transport level security"},
    {EXPORTER, OUT "@middlewares: [{id: x}]", "middlewares are not supported"},
    {EXPORTER, OUT "tls: {ca_file: a, ca_pem: @b}", "either a CA file or"},
    {EXPORTER, OUT "tls: {tpm: {enabled: @true}}", "tpm is not supported"},
    {EXPORTER, OUT "tls: {cipher_suites: [@x]}", "invalid TLS cipher suite"},
    {EXPORTER, OUT "tls: {max_version: '1.2', @cipher_suites: [TLS_AES_128_GCM_SHA256]}",
     "all of them are of TLS 1.3"},
    /* otlp_http */
    {EXPORTER, "@otlp_http:", "at least one endpoint must be specified"},
    {EXPORTER, WEB "traces_endpoint: @'http://a:b'", "traces_endpoint must be a valid URL"},
    {EXPORTER, WEB "compression_params: {level: @11}", "for compression type \"gzip\""},
    {EXPORTER, WEB "compression: snappy\n    compression_params:\n      level: @1", "no level"},
    {EXPORTER, WEB "proxy_url: @foo", "proxy_url does not begin with"},
    {EXPORTER, WEB "proto_version: @'1.9'\n    encoding: json", "needs encoding: proto"},
    {EXPORTER, OUT "timeout: @-5s", "found the string \"-5s\", expected a duration"},
    {EXPORTER, WEB "retry_on_failure: {max_interval: @-1s}", "expected a duration"},
    {EXPORTER, WEB "sending_queue: {sizer: @''}", "expected one of"},
    {EXPORTER, WEB "sending_queue: {batch: {sizer: @\"\"}}", "expected one of"},
    {EXPORTER, WEB "sending_queue: {storage: @''}", "found an empty string"},
    {EXPORTER, WEB "@middlewares: [{id: x}]", "middlewares are not supported"},
    /* debug */
    {EXPORTER, "debug:\n    @output_paths: [stdout]", "output_paths is not supported"},
    {EXPORTER, "debug:\n    @output_paths: []", "output_paths is not supported"},
    {EXPORTER, "debug:\n    use_internal_logger: false\n    @output_paths: []",
     "must not be empty"},
    {EXPORTER, "debug:\n    use_internal_logger: false\n    output_paths: [stdout, @/none/x]",
     "cannot open /none/x"},
    /* pyroscope */
    {EXPORTER, "@pyroscope:", "endpoint must be specified"},
    {EXPORTER, "pyroscope:\n    endpoint: @localhost", "endpoint must be a valid URL"},
    {EXPORTER, PYRO "bearer_token: x\n    @basic_auth: {username: a}", "exclude each other"},
    {EXPORTER, PYRO "bearer_token: @x\n    headers: {authorization: y}", "exclude each other"},
    {EXPORTER, PYRO "@basic_auth: {}", "basic_auth needs a username"},
    {EXPORTER, PYRO "basic_auth: {username: @'a:b'}", "must not contain a colon"},
    {EXPORTER, PYRO "tenant: @\"a\\nb\"", "line breaks"},
    {EXPORTER, PYRO "tenant: @a\n    headers: {x-scope-orgid: b}", "exclude each other"},
    {EXPORTER, PYRO "labels: {names: @x}", "must be a map"},
    {EXPORTER, PYRO "labels:\n      add:\n        a: b\n        __c: @d",
     "is not a valid label name"},
    {EXPORTER, PYRO "labels: {names: {a: @5}}", "must be a string"},
    {EXPORTER, PYRO "labels: {add: {service_name: @a}}", "service_name is set from"},
    {EXPORTER, PYRO "mode: @otlp\n    labels: {add: {a: b}}", "need mode: push or ingest"},
    /* processors */
    {PROCESSOR, "batch:\n    metadata_keys: [a, b, @A]", "duplicate entry in metadata_keys"},
    {PROCESSOR, "batch:\n    send_batch_max_size: @5\n    send_batch_size: 6", "send_batch_size"},
    {PROCESSOR, "batch:\n    send_batch_size: 9000\n    send_batch_max_size: @8192",
     "send_batch_max_size must be greater"},
    {PROCESSOR, "@memory_limiter:", "'check_interval' must be greater than zero"},
    {PROCESSOR, "memory_limiter:\n    check_interval: @0s", "'check_interval' must be greater"},
    {PROCESSOR, "memory_limiter:\n    check_interval: 1s\n    limit_mib: @0", "'limit_mib' or"},
    {PROCESSOR,
     "memory_limiter:\n    check_interval: 1s\n    limit_mib: 5\n    spike_limit_mib: @5",
     "'spike_limit_mib' must be smaller"},
    {PROCESSOR,
     "memory_limiter:\n    check_interval: 1s\n    limit_percentage: 5\n"
     "    spike_limit_percentage: @5",
     "'spike_limit_percentage' must be smaller"},
    {PROCESSOR,
     "memory_limiter:\n    check_interval: 1s\n    limit_mib: 5\n"
     "    min_gc_interval_when_soft_limited: @1s\n"
     "    min_gc_interval_when_hard_limited: 2s",
     "should be larger"},
    {PROCESSOR, "@resource:", "missing required field \"attributes\""},
    {PROCESSOR, "resource:\n    attributes: [{key: a, action: delete}, @{key: a, action: upsert}]",
     "must be specified"},
    {PROCESSOR,
     "resource:\n    attributes:\n    - key: a\n      action: delete\n    - key: a\n"
     "      action: @foo",
     "unsupported action \"foo\""},
    {PROCESSOR, "resource:\n    attributes:\n    - action: delete\n      key: @''", "\"key\""},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: extract, pattern: @'('}",
     "has invalid pattern"},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: extract, pattern: @'x'}",
     "no named matcher groups"},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: extract, pattern: @'(x)'}",
     "at least one unnamed matcher group"},
    {PROCESSOR, "resource:\n    attributes:\n    - @{key: a, action: extract}", "\"pattern\""},
    {PROCESSOR, "resource:\n    attributes:\n    - @{key: a, action: insert}", "must be specified"},
    {PROCESSOR, "resource:\n    attributes:\n    - key: a\n      action: delete\n      value: @b",
     "does not use \"value\""},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: hash, converted_type: @b}",
     "\"converted_type\" field"},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: convert, converted_type: @b}",
     "invalid value \"b\""},
    {PROCESSOR,
     "resource:\n    attributes:\n"
     "    - {key: a, action: convert, converted_type: int, value: @b}",
     "does not use value sources"},
    {PROCESSOR,
     "resource:\n    attributes:\n"
     "    - {key: a, action: insert, value: b, from_attribute: @c}",
     "multiple value sources"},
    {PROCESSOR,
     "resource:\n    attributes:\n"
     "    - {key: a, action: insert, value: b, from_context: @c}",
     "multiple value sources"},
    {PROCESSOR, "resource:\n    attributes:\n    - {key: a, action: insert, value: b, pattern: @c}",
     "\"pattern\" field"},
    {PROCESSOR,
     "resource:\n    attributes:\n"
     "    - {key: a, action: extract, pattern: '(?P<x>.)', from_context: @c}",
     "does not use a value source field"},
    {PROCESSOR, "@profile_limits:", "nothing is limited"},
    {PROCESSOR, "profile_limits:\n    rename:\n    - {pattern: a}\n    - {pattern: @'('}", "("},
    {PROCESSOR, "profile_limits:\n    rename:\n    - {pattern: @''}", "\"pattern\""},
    {PROCESSOR, "profile_limits:\n    rename:\n    - {pattern: a, replacement: @'$$1'}", "$1"},
    {PROCESSOR, "profile_limits:\n    drop_frames: [a, @'(']", "("},
    {PROCESSOR, JOIN "attributes: [span_name, @foo]", "found \"foo\""},
    {PROCESSOR, JOIN "attributes: [span.a, @resource.a]", "the same attribute"},
    {PROCESSOR, JOIN "duration_buckets: [1s, @x]", "found \"x\""},
    {PROCESSOR, JOIN "duration_buckets: [2s, @1s]", "more than the previous bound"},
    {PROCESSOR, JOIN "@duration_buckets: []", "expected 1 to"},
    {PROCESSOR, JOIN "count_for: [span, @foo]", "found \"foo\""},
    {PROCESSOR, JOIN "count_for: [span, @span]", "twice"},
    {PROCESSOR, JOIN "@count_for: [root]", "span is missing"},
    {PROCESSOR, JOIN "links: {profile: @'http://x/{foo}'}", "foo"},
    {PROCESSOR, JOIN "keep: [error, @foo]", "found \"foo\""},
    {PROCESSOR, JOIN "keep: @foo", "expected a list"},
    {PROCESSOR, JOIN "keep: [@{slow: 5}]", "expected a duration with its unit"},
    {PROCESSOR, JOIN "control: {token: @x}", "has no effect"},
    {PROCESSOR, JOIN "control: {endpoint: @x}", "missing port"},
    {PROCESSOR, JOIN "control: {endpoint: @'0.0.0.0:1'}", "set a token"},
    /* extensions */
    {EXTENSION, "health_check:\n    path: @x", "starts with /"},
    {EXTENSION, "health_check:\n    endpoint: @x", "missing port in address"},
    {EXTENSION, "zpages:\n    endpoint: @''", "missing, expected host:port"},
    {EXTENSION, "zpages:\n    transport: @udp", "unsupported transport type"},
    {EXTENSION, "@basicauth:", "no credential source provided"},
    {EXTENSION, "basicauth:\n    htpasswd: {inline: x}\n    @client_auth: {username: a}",
     "only one"},
    {EXTENSION, "basicauth:\n    client_auth: {username: @'a:b'}", "colon"},
    {EXTENSION, "basicauth:\n    htpasswd:\n      inline: @'u:$y$j9T$a$b'", "the scheme $y$"},
    {EXTENSION, "health_check:\n    use_v2: @true", "use_v2 is not supported"},
    {EXTENSION, "health_check:\n    auth:\n      authenticator: @''", "found an empty string"},
    {RECEIVER, HTTP "auth: {authenticator: @''}", "found an empty string"},
    {EXPORTER, WEB "auth: {authenticator: @''}", "found an empty string"},
    {EXPORTER, WEB "timeout: @2001-01-01", "found the date 2001-01-01"},
    {EXPORTER, OUT "authority: @2001-01-01", "found the date 2001-01-01"},
    {EXPORTER, OUT "headers: {x: @2001-01-01}", "expected a string"},
    {PROCESSOR, "resource:\n    attributes: [{key: a, action: insert, value: @2001-01-01}]",
     "found the date"},
    {EXPORTER, "debug:\n    verbosity: @detailled", "did you mean \"detailed\""},
    {EXPORTER, "debug:\n    loglevel: info\n    verbosity: @detailed", "are incompatible"},
    {EXTENSION, "@bearertokenauth:", "no bearer token provided"},
    {EXTENSION, "bearertokenauth:\n    token: a\n    @tokens: [b]", "not both"},
    {EXTENSION, "bearertokenauth:\n    tokens: [b, @'']", "empty token"},
    {EXTENSION, "bearertokenauth:\n    tokens: [b, @\"a\\nb\"]", "line end"},
    {EXTENSION, "bearertokenauth:\n    token: @\"a\\x01b\"", "line end"},
    {EXTENSION, "bearertokenauth:\n    scheme: @\"a\\nb\"\n    token: a", "line end"},
    {EXTENSION, "file_storage:\n    directory: @/does/not/exist", "directory must exist"},
    {EXTENSION,
     "file_storage:\n    directory: /\n    create_directory: true\n"
     "    directory_permissions: @'0999'",
     "value must be a valid octal representation: found \"0999\""},
    {EXTENSION,
     "file_storage:\n    directory: /\n    create_directory: true\n"
     "    directory_permissions: @'-7'",
     "contain invalid bits for file access: found \"-7\""},
    {EXTENSION, "file_storage:\n    directory: /\n    max_size: @1KiB", "max_size"},
    {EXTENSION,
     "file_storage:\n    directory: /x\n    create_directory: true\n"
     "    compaction: {on_rebound: true, check_interval: @0s}",
     "must be positive"},
    {EXTENSION, "bearertokenauth:\n    header: @a b\n    token: a", "is not a header name"},
    {EXTENSION, "@oauth2client: {client_id: i}", "no ClientSecret provided"},
    {EXTENSION, "oauth2client:\n    client_id: i\n    client_secret: s\n    token_url: @'x y'",
     "token_url"},
    {EXTENSION,
     "oauth2client:\n    client_id: i\n    client_secret: s\n    token_url: http://h/\n"
     "    grant_type: @password",
     "unknown grant type"},
    {EXTENSION,
     "oauth2client:\n    client_id: i\n    client_secret: s\n    token_url: http://h/\n"
     "    @endpoint_params: {a: 5}",
     "neither a string nor a list"},
    {EXTENSION, "@headers_setter:", "missing headers configuration"},
    {EXTENSION, "headers_setter:\n    @headers: []", "missing headers configuration"},
    {EXTENSION, "headers_setter:\n    headers: [{key: a, value: b}, @{key: c}]",
     "missing header source"},
    {EXTENSION, "headers_setter:\n    headers: [{key: a, value: b}, {key: @'', value: d}]",
     "missing header name"},
    {EXTENSION, "headers_setter:\n    headers: [@{key: a, value: b, from_context: c}]",
     "must be only one of"},
    {EXTENSION, "headers_setter:\n    headers: [{key: a, value: @\"b\\n\"}]", "line end"},
    {EXTENSION, "headers_setter:\n    headers: [{key: a, value: b}]\n    @additional_auth: other",
     "authenticator not found"},
};

static const char *part_of(const struct row *row, enum component_kind kind)
{
    return row->kind == kind ? row->yaml : "nop/x:";
}

/* The configuration in which the row's component is used. */
static void write_config(const struct row *row, char text[TEXT_MAX])
{
    char id[32];
    sscanf(row->yaml + (row->yaml[0] == '@'), "%31[^:]", id);
    const char *signal = row->kind == PROCESSOR && (strcmp(id, "profile_limits") == 0 ||
                                                    strcmp(id, "trace_profile_join") == 0)
                             ? "profiles"
                         : strcmp(id, "pyroscope") == 0 ? "profiles"
                                                        : "traces";
    int length = snprintf(
        text, TEXT_MAX,
        "receivers:\n  nop:\n  %s\nprocessors:\n  batch/x:\n  %s\nexporters:\n  nop:\n  %s\n"
        "extensions:\n  health_check/x:\n  bearertokenauth/x: {token: t}\n  %s\n"
        "service:\n  extensions: [%s]\n"
        "  pipelines: {%s: {receivers: [%s], processors: [%s], exporters: [%s]}}\n",
        part_of(row, RECEIVER),
        row->kind == PROCESSOR ? row->yaml : "batch:", part_of(row, EXPORTER),
        row->kind == EXTENSION ? row->yaml : "zpages/x:",
        row->kind == EXTENSION ? id : "bearertokenauth/x", signal,
        row->kind == RECEIVER ? id : "nop", row->kind == PROCESSOR ? id : "",
        row->kind == EXPORTER ? id : "nop");
    assert_true(length < TEXT_MAX);
}

/* Takes the mark out, and says where it stood. */
static bool take_mark(char *text, char place[64])
{
    char *mark = strchr(text, '@');
    size_t line = 1;
    const char *begin = text;
    if (mark == NULL)
        return false;
    for (const char *at = text; at < mark; at++)
        if (*at == '\n') {
            line++;
            begin = at + 1;
        }
    snprintf(place, 64, "otel.yaml:%zu:%zu: ", line, (size_t)(mark - begin) + 1);
    memmove(mark, mark + 1, strlen(mark));
    return true;
}

/* The problem, whether loading finds it or building. */
static void find_problem(const char *yaml, char text[TEXT_MAX])
{
    const char *const files[] = {"otel.yaml", yaml, NULL};
    static const char *const locations[] = {"otel.yaml"};
    struct config_request request = {
        .locations = locations, .locations_count = 1, .factories = components};
    struct config_problems problems = {0};
    struct error error = {.text = ""};
    text[0] = '\0';
    memory_files_set(files);
    struct config *config = config_load(&request, &problems);
    if (config != NULL) {
        struct lane *lane = lane_create(0);
        memory_files_set(NULL);
        if (!service_can_build(config, lane, false, &error))
            snprintf(text, TEXT_MAX, "%s", error.text);
        lane_destroy(lane);
    } else {
        for (size_t i = 0, used = 0; i < problems.count && used < TEXT_MAX; i++)
            used += (size_t)snprintf(text + used, TEXT_MAX - used, "%s\n", problems.texts[i]);
    }
    memory_files_set(NULL);
    config_destroy(config);
    config_problems_clear(&problems);
}

static void each_problem_points_at_its_value(void **state)
{
    unsigned failures = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[TEXT_MAX];
        char found[TEXT_MAX];
        char place[64];
        write_config(&rows[i], yaml);
        assert_true(take_mark(yaml, place));
        find_problem(yaml, found);
        if (strstr(found, place) != NULL && strstr(found, rows[i].words) != NULL)
            continue;
        print_error("%s\nexpected: %s… %s\nfound:    %s\n\n", rows[i].yaml, place, rows[i].words,
                    found);
        failures++;
    }
    assert_int_equal(failures, 0);
}

/* Keys that are accepted and do nothing, or not what they say. Each gives one warning. */
static const struct row warnings[] = {
    {EXTENSION, "headers_setter:\n    headers: [{key: a, value: b, action: @set}]",
     "none of insert, update, upsert and delete"},
    {RECEIVER, GRPC "@read_buffer_size: 5", "has no effect here: Connections share one buffer."},
    {RECEIVER, GRPC "dialer:\n          @timeout: 5s", "has no effect here"},
    {RECEIVER, GRPC "keepalive: {server_parameters: {@time: 5s}}", "has no effect here"},
    {RECEIVER, GRPC "tls: {cert_pem: a, key_pem: b, @ca_file: c}", "client_ca_file"},
    {RECEIVER, HTTP "compression_algorithms: [gzip, @br]",
     "compression_algorithms::1: found \"br\", an unknown Content-Encoding"},
    {RECEIVER, HTTP "compression_algorithms: @GZIP,zstd",
     "compression_algorithms: found \"GZIP\", an unknown Content-Encoding"},
    {RECEIVER, HTTP "idle_timeout: @-5s",
     "found the string \"-5s\"; a negative duration is taken as 0"},
    {RECEIVER, GRPC "keepalive: {server_parameters: {max_connection_age: @-5s}}", "taken as 0"},
    {EXPORTER, WEB "timeout: @-5s", "taken as 0"},
    {EXPORTER, WEB "idle_conn_timeout: @-1m", "taken as 0"},
    {EXPORTER, WEB "tls: {reload_interval: @-1m}", "taken as 0"},
    {EXPORTER, WEB "@cookies: {}", "Cookies that back-ends set are not sent back"},
    {EXPORTER, WEB "@http2_ping_timeout: 5s", "has no effect here"},
    {EXPORTER, WEB "tls: {tpm: {@path: x}}", "has no effect here"},
    {EXPORTER, "otlp_http:\n    endpoint: @localhost:4318", "found a URL without a scheme"},
    {EXPORTER, WEB "logs_endpoint: @localhost", "found a URL without a scheme"},
    {PROCESSOR,
     "memory_limiter: {check_interval: 1s, limit_mib: 5, "
     "@max_gc_interval_when_soft_limited: 1s}",
     "There is no garbage collector."},
    {EXTENSION, "pprof: {@block_profile_fraction: 3}", "has no effect here"},
    {EXTENSION, "pprof: {@save_to_file: x}", "There is no CPU profile to save"},
    {EXTENSION, "health_check: {check_collector_pipeline: {@interval: 5m}}", "has no effect here"},
    {EXTENSION, "health_check: {use_v2: false, @component_health: {}}", "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@on_start: false}}",
     "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@on_rebound: false}}",
     "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@directory: /}}",
     "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@max_transaction_size: 5}}",
     "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@check_interval: 5s}}",
     "has no effect here"},
    {EXTENSION,
     "file_storage: {create_directory: true, compaction: {@rebound_needed_threshold_mib: 5}}",
     "has no effect here"},
    {EXTENSION, "file_storage: {create_directory: true, compaction: {@cleanup_on_start: true}}",
     "has no effect here"},
};

static void each_key_without_effect_has_one_warning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++) {
        char yaml[TEXT_MAX];
        char place[64];
        const char *const files[] = {"otel.yaml", yaml, NULL};
        static const char *const locations[] = {"otel.yaml"};
        struct config_request request = {
            .locations = locations, .locations_count = 1, .factories = components};
        struct config_problems problems = {0};
        write_config(&warnings[i], yaml);
        assert_true(take_mark(yaml, place));
        memory_files_set(files);
        struct config *config = config_load(&request, &problems);
        if (config == NULL || problems.warnings_count != 1 ||
            strstr(problems.warnings[0], place) == NULL ||
            strstr(problems.warnings[0], warnings[i].words) == NULL)
            fail_msg("%s\nexpected: %s… %s\nfound: %s", warnings[i].yaml, place, warnings[i].words,
                     problems_to_text(&problems));
        memory_files_set(NULL);
        config_destroy(config);
        config_problems_clear(&problems);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_problem_points_at_its_value),
        cmocka_unit_test(each_key_without_effect_has_one_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
