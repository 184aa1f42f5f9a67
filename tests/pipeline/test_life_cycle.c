/* SPDX-License-Identifier: Apache-2.0 */
/* The life of every built-in component, in a pipeline of each of its signals and on one and two
 * lanes: made and unmade, stopped without a start, started and stopped. The sanitizers watch. */
#include "src/core/component.h"

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/cli/components.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/service/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 2, TURNS_MAX = 1000000, YAML_MAX = 2048 };

enum life { ONLY_MADE, NEVER_STARTED, WHOLE, LIVES };

/* What a component cannot do without; the others take an empty section. */
static const struct {
    enum component_kind kind;
    const char *type;
    const char *keys;
} needs[] = {
    {RECEIVER, "otlp",
     "protocols: {grpc: {endpoint: \"127.0.0.1:0\"}, http: {endpoint: \"127.0.0.1:0\"}}"},
    {RECEIVER, "pyroscope", "endpoint: \"127.0.0.1:0\""},
    {RECEIVER, "otlp_json_file", "include: [\"/tmp/spanflame-none-*\"]"},
    {RECEIVER, "pprof",
     "scrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:9\"]}]}]"},
    {RECEIVER, "prometheus",
     "config: {scrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:9\"]}], "
     "file_sd_configs: [{files: [/tmp/none-*.json]}], "
     "http_sd_configs: [{url: \"http://127.0.0.1:9\"}]}]}"},
    {RECEIVER, "prometheus_simple", "endpoint: \"127.0.0.1:9\""},
    {RECEIVER, "pprof",
     "scrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:9\"]}], "
     "file_sd_configs: [{files: [/tmp/none-*.json]}]}]"},
    {RECEIVER, "zipkin", "endpoint: \"127.0.0.1:0\""},
    {RECEIVER, "otlp_json_file", "include: [/nowhere/*.json]"},
    {RECEIVER, "jaeger",
     "protocols: {grpc: {endpoint: \"127.0.0.1:0\"}, thrift_http: {endpoint: \"127.0.0.1:0\"}, "
     "thrift_compact: {endpoint: \"127.0.0.1:0\"}, thrift_binary: {endpoint: \"127.0.0.1:0\"}}"},
    {EXPORTER, "file", "path: /dev/null"},
    {EXPORTER, "prometheus", "endpoint: \"127.0.0.1:0\""},
    {EXPORTER, "prometheus_remote_write", "endpoint: \"http://127.0.0.1:9\""},
    {EXPORTER, "pyroscope", "endpoint: \"http://127.0.0.1:9\""},
    {EXPORTER, "otlp_grpc", "endpoint: \"127.0.0.1:9\""},
    {EXPORTER, "otlp_http", "endpoint: \"http://127.0.0.1:9\""},
    {EXPORTER, "zipkin", "endpoint: \"http://127.0.0.1:9\""},
    {PROCESSOR, "memory_limiter", "check_interval: 1s, limit_mib: 100"},
    {PROCESSOR, "attributes", "actions: [{key: a, value: b, action: upsert}]"},
    {PROCESSOR, "profile_limits", "max_samples: 9, rename: [{pattern: a, replacement: b}]"},
    {PROCESSOR, "tail_sampling", "policies: [{name: a, type: always_sample}]"},
    {PROCESSOR, "resource", "attributes: [{key: a, value: b, action: upsert}]"},
    {EXTENSION, "health_check", "endpoint: \"127.0.0.1:0\""},
    /* Its own port is one that the system gives to outgoing connections, too. */
    {EXTENSION, "zpages", "endpoint: \"127.0.0.1:0\""},
    {EXTENSION, "pprof", "endpoint: \"127.0.0.1:0\""},
    {EXTENSION, "explore", "endpoint: \"127.0.0.1:0\""},
    {EXTENSION, "basicauth", "client_auth: {username: a, password: b}"},
    {EXTENSION, "bearertokenauth", "token: a"},
    {EXTENSION, "file_storage", "directory: /tmp"},
    {EXTENSION, "headers_setter", "headers: [{key: a, value: b}]"},
    {EXTENSION, "oauth2client",
     "client_id: a, client_secret: b, token_url: \"http://127.0.0.1:9/\""},
};

static const char *keys_of(const struct component_factory *factory)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
        if (needs[i].kind == factory->kind && strcmp(needs[i].type, factory->type) == 0)
            return needs[i].keys;
    return "";
}

/* A pipeline of nop around the component; behind a connector, one for each signal that it gives. */
static void write_yaml(char yaml[static YAML_MAX], const struct component_factory *factory,
                       enum signal_kind signal)
{
    const char *users[] = {
        [RECEIVER] = "nop", [PROCESSOR] = "", [EXPORTER] = "nop", [EXTENSION] = ""};
    users[factory->kind == CONNECTOR ? EXPORTER : factory->kind] = factory->type;
    /* An exporter that brings what arrives to an extension of its name. */
    bool has_extension = factory->kind == EXPORTER && strcmp(factory->type, "explore") == 0;
    if (has_extension)
        users[EXTENSION] = factory->type;
    char own[YAML_MAX / 2];
    if (strcmp(factory->type, "routing") == 0)
        snprintf(own, sizeof(own),
                 "  routing: {table: [{condition: 'resource.schema_url == \"\"', pipelines: "
                 "[%s/behind]}]}\n",
                 signal_name(signal));
    else
        snprintf(own, sizeof(own), "  %s: {%s}\n", factory->type, keys_of(factory));
    size_t used = (size_t)snprintf(yaml, YAML_MAX, "yaml:\n");
    for (int kind = RECEIVER; kind <= EXTENSION; kind++) {
        bool has_nop = kind == RECEIVER || kind == EXPORTER;
        bool has_own = kind == (int)factory->kind && strcmp(factory->type, "nop") != 0;
        if (kind == EXTENSION && has_extension)
            used +=
                (size_t)snprintf(yaml + used, YAML_MAX - used,
                                 "extensions:\n  %s: {endpoint: \"127.0.0.1:0\"}\n", factory->type);
        if (has_nop || has_own)
            used += (size_t)snprintf(yaml + used, YAML_MAX - used, "%s:\n%s%s",
                                     component_kind_section((enum component_kind)kind),
                                     has_nop ? "  nop:\n" : "", has_own ? own : "");
    }
    used += (size_t)snprintf(yaml + used, YAML_MAX - used,
                             "service:\n  telemetry: {metrics: {level: none}}\n"
                             "  extensions: [%s]\n  pipelines: {%s: {receivers: [%s], "
                             "processors: [%s], exporters: [%s]}",
                             users[EXTENSION], signal_name(signal), users[RECEIVER],
                             users[PROCESSOR], users[EXPORTER]);
    for (int given = 0; given < SIGNAL_KINDS; given++)
        if ((factory->connects[signal] & 1u << given) != 0)
            used += (size_t)snprintf(yaml + used, YAML_MAX - used,
                                     ", %s/behind: {receivers: [%s], exporters: [nop]}",
                                     signal_name((enum signal_kind)given), factory->type);
    used += (size_t)snprintf(yaml + used, YAML_MAX - used, "}\n");
    assert_true(used < YAML_MAX);
}

static struct config *load(const char *yaml)
{
    struct config_problems problems = {0};
    struct config *config = config_load(
        &(struct config_request){.locations = &yaml, .locations_count = 1, .factories = components},
        &problems);
    for (size_t i = 0; config == NULL && i < problems.count; i++)
        print_error("%s\n", problems.texts[i]);
    config_problems_clear(&problems);
    return config;
}

static void on_stopped(bool is_forced, void *arg)
{
    assert_false(is_forced);
    *(bool *)arg = true;
}

static void stop(struct service *service, struct lane *const *lanes, unsigned count)
{
    bool has_stopped = false;
    service_stop(service, on_stopped, &has_stopped);
    for (unsigned turn = 0; turn < TURNS_MAX && !has_stopped; turn++)
        for (unsigned i = 0; i < count; i++)
            lane_turn(lanes[i]);
    assert_true(has_stopped);
}

static void live(const struct config *config, enum life life, unsigned lanes_count)
{
    struct error error = {.text = ""};
    struct lane *lanes[LANES];
    for (unsigned i = 0; i < lanes_count; i++)
        lanes[i] = lane_create(i);
    struct service *service = service_create(config, lanes, lanes_count, &error);
    if (service == NULL)
        fail_msg("%s", error.text);
    if (life == WHOLE && !service_start(service, &error))
        fail_msg("%s", error.text);
    if (life != ONLY_MADE)
        stop(service, lanes, lanes_count);
    service_destroy(service);
    for (unsigned i = 0; i < lanes_count; i++)
        lane_destroy(lanes[i]);
}

static void every_component_lives_through_every_life(void **state)
{
    (void)state;
    for (size_t i = 0; components[i] != NULL; i++) {
        unsigned signals =
            components[i]->kind == EXTENSION ? SIGNAL_TRACES : components[i]->signals;
        print_message("  %s\n", components[i]->type);
        for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
            char yaml[YAML_MAX];
            if ((signals & (1u << signal)) == 0 && components[i]->connects[signal] == 0)
                continue;
            write_yaml(yaml, components[i], (enum signal_kind)signal);
            struct config *config = load(yaml);
            assert_non_null(config);
            for (int life = 0; life < LIVES; life++)
                for (unsigned lanes = 1; lanes <= LANES; lanes++)
                    live(config, (enum life)life, lanes);
            config_destroy(config);
        }
    }
}

static void every_factory_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; components[i] != NULL; i++) {
        const struct component_factory *factory = components[i];
        bool is_on_the_path = factory->kind != RECEIVER && factory->kind != EXTENSION;
        unsigned given = 0;
        for (int signal = 0; signal < SIGNAL_KINDS; signal++)
            given |= factory->connects[signal];
        assert_non_null(factory->type);
        assert_non_null(factory->stability);
        assert_true(factory->instance_size >= sizeof(struct component));
        assert_true((factory->consume != NULL) == is_on_the_path);
        assert_true((factory->signals != 0) ==
                    (factory->kind != EXTENSION && factory->kind != CONNECTOR));
        assert_true((given != 0) == (factory->kind == CONNECTOR));
        assert_true((factory->counters == NULL) == (factory->counters_size == 0));
        for (size_t j = 0; j < i; j++)
            assert_true(components[j]->kind != factory->kind ||
                        strcmp(components[j]->type, factory->type) != 0);
    }
}

static int be_quiet(void **state)
{
    (void)state;
    struct log_settings settings = log_settings_default();
    settings.level = LOG_ERROR;
    log_configure(&settings);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_factory_is_complete),
        cmocka_unit_test(every_component_lives_through_every_life),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
