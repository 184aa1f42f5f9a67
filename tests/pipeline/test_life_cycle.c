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
#include "src/config/field.h"
#include "src/service/service.h"
#include "src/service/supervisor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LANES = 2, TURNS_MAX = 1000000, YAML_MAX = 2048, FACTORIES_MAX = 256 };

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

/* Components whose start fails on one lane, and that are the last of their kind to start there. */
static unsigned failing_lane = LANES;

static bool fail_to_start(struct component *self, struct error *error)
{
    return lane_index(self->lane) != failing_lane || error_set(error, "it fails");
}

static void pass_on(struct component *self, struct batch *batch, struct receipt *receipt)
{
    component_consume(self->next, batch, receipt);
}

#define ALL_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

static const struct component_factory failing_receiver = {
    .type = "zz_fails",
    .kind = RECEIVER,
    .stability = "stable",
    .signals = ALL_SIGNALS,
    .instance_size = sizeof(struct component),
    .start = fail_to_start,
};

static const struct component_factory failing_processor = {
    .type = "zz_fails",
    .kind = PROCESSOR,
    .stability = "stable",
    .signals = ALL_SIGNALS,
    .instance_size = sizeof(struct component),
    .start = fail_to_start,
    .consume = pass_on,
};

/* An extension that asks for a reload to "b" when it starts as "a", and for another to "c" when
 * that one stops. As "c" it ends the daemon, and as "b" if no further reload is asked for. */
struct probe_config {
    const char *name;
};

struct probe {
    struct component base;
    struct lane_job job;
};

static const struct config_field probe_fields[] = {
    CONFIG_TEXT(struct probe_config, name, "name", "", "A name."),
    CONFIG_END,
};

static char probe_path[64]; /* of the configuration */
static char probe_seen[8];  /* the names, in order */

static void probe_write(const char *name)
{
    FILE *file = fopen(probe_path, "w");
    assert_non_null(file);
    fprintf(file,
            "receivers: {nop: {}}\nexporters: {nop: {}}\nextensions: {zz_probe: {name: %s}}\n"
            "service: {lanes: 1, telemetry: {metrics: {level: none}, logs: {level: error}},"
            " extensions: [zz_probe], pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n",
            name);
    fclose(file);
}

static bool is_reload_pending(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGHUP) == 1;
}

static void probe_look(void *arg)
{
    (void)arg;
    if (!is_reload_pending())
        kill(getpid(), SIGTERM);
}

static bool probe_start(struct component *component, struct error *error)
{
    const struct probe_config *config = component->config;
    struct probe *self = (struct probe *)component;
    (void)error;
    strncat(probe_seen, config->name, 1);
    if (strcmp(config->name, "a") == 0) {
        probe_write("b");
        kill(getpid(), SIGHUP);
    } else if (strcmp(config->name, "b") == 0) {
        self->job = (struct lane_job){.fn = probe_look, .arg = self};
        lane_defer(component->lane, &self->job); /* before signals are read */
    } else {
        kill(getpid(), SIGTERM);
    }
    return true;
}

static void probe_wait(void *arg)
{
    struct probe *self = arg;
    if (is_reload_pending())
        lane_defer(self->base.lane, &self->job);
    else
        component_stopped(&self->base);
}

static void probe_stop(struct component *component)
{
    struct probe *self = (struct probe *)component;
    const struct probe_config *config = component->config;
    self->job = (struct lane_job){.fn = probe_wait, .arg = self};
    if (strcmp(config->name, "a") == 0) {
        probe_write("c");
        kill(getpid(), SIGHUP);
    }
    lane_defer(component->lane, &self->job);
}

static const struct component_factory probe_extension = {
    .type = "zz_probe",
    .kind = EXTENSION,
    .stability = "stable",
    .instance_size = sizeof(struct probe),
    .config_size = sizeof(struct probe_config),
    .fields = probe_fields,
    .start = probe_start,
    .stop = probe_stop,
};

/* The built-in ones and those. */
static const struct component_factory *factories[FACTORIES_MAX];

static void fill_factories(void)
{
    size_t count = 0;
    for (; components[count] != NULL; count++)
        factories[count] = components[count];
    assert_true(count + 4 <= FACTORIES_MAX);
    factories[count++] = &failing_receiver;
    factories[count++] = &failing_processor;
    factories[count] = &probe_extension;
}

static const char *keys_of(const struct component_factory *factory)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
        if (needs[i].kind == factory->kind && strcmp(needs[i].type, factory->type) == 0)
            return needs[i].keys;
    return "";
}

/* A pipeline of nop around the component; behind a connector, one for each signal that it gives. */
static void write_yaml(char yaml[static YAML_MAX], const struct component_factory *factory,
                       enum signal_kind signal, enum component_kind failing)
{
    const char *users[] = {
        [RECEIVER] = "nop", [PROCESSOR] = "", [EXPORTER] = "nop", [EXTENSION] = ""};
    char both[YAML_MAX / 4];
    users[factory->kind == CONNECTOR ? EXPORTER : factory->kind] = factory->type;
    if (failing == PROCESSOR) {
        snprintf(both, sizeof(both), "zz_fails%s%s", factory->kind == PROCESSOR ? ", " : "",
                 users[PROCESSOR]);
        users[PROCESSOR] = both;
    } else if (failing == RECEIVER) {
        snprintf(both, sizeof(both), "%s, zz_fails", users[RECEIVER]);
        users[RECEIVER] = both;
    }
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
        bool has_failing = kind == (int)failing && kind != EXTENSION;
        if (has_nop || has_own || has_failing)
            used += (size_t)snprintf(yaml + used, YAML_MAX - used, "%s:\n%s%s%s",
                                     component_kind_section((enum component_kind)kind),
                                     has_nop ? "  nop:\n" : "", has_own ? own : "",
                                     has_failing ? "  zz_fails:\n" : "");
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
        &(struct config_request){.locations = &yaml, .locations_count = 1, .factories = factories},
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

/* Some components have started, on some lanes, and others have not: an orderly stop follows. */
static void live_through_a_failed_start(const struct config *config, unsigned lane,
                                        const char *reason)
{
    struct error error = {.text = ""};
    struct lane *lanes[LANES];
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = lane_create(i);
    struct service *service = service_create(config, lanes, LANES, &error);
    if (service == NULL)
        fail_msg("%s", error.text);
    failing_lane = lane;
    assert_false(service_start(service, &error));
    assert_non_null(strstr(error.text, reason));
    stop(service, lanes, LANES);
    service_destroy(service);
    for (unsigned i = 0; i < LANES; i++)
        lane_destroy(lanes[i]);
}

static void every_component_stops_after_a_failed_start(void **state)
{
    (void)state;
    fill_factories();
    for (size_t i = 0; components[i] != NULL; i++) {
        unsigned signals =
            components[i]->kind == EXTENSION ? SIGNAL_TRACES : components[i]->signals;
        print_message("  %s\n", components[i]->type);
        for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
            static const enum component_kind kinds[] = {PROCESSOR, RECEIVER};
            if ((signals & (1u << signal)) == 0 && components[i]->connects[signal] == 0)
                continue;
            for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
                char yaml[YAML_MAX];
                write_yaml(yaml, components[i], (enum signal_kind)signal, kinds[k]);
                struct config *config = load(yaml);
                assert_non_null(config);
                for (unsigned lane = 0; lane < LANES; lane++)
                    live_through_a_failed_start(config, lane, "it fails");
                config_destroy(config);
            }
        }
    }
}

/* A port on which somebody else listens. Returns the socket. */
static int take_port(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void every_component_stops_after_it_finds_its_port_in_use(void **state)
{
    static const char any[] = "127.0.0.1:0";
    unsigned port;
    int fd = take_port(&port);
    (void)state;
    fill_factories();
    for (size_t i = 0; components[i] != NULL; i++) {
        char yaml[YAML_MAX];
        char taken[YAML_MAX];
        unsigned signals =
            components[i]->kind == EXTENSION ? SIGNAL_TRACES : components[i]->signals;
        size_t used = 0;
        if (signals == 0)
            continue;
        write_yaml(yaml, components[i], (enum signal_kind)__builtin_ctz(signals), EXTENSION);
        const char *at = yaml;
        if (strstr(yaml, any) == NULL)
            continue;
        print_message("  %s\n", components[i]->type);
        for (const char *end; (end = strstr(at, any)) != NULL; at = end + strlen(any))
            used += (size_t)snprintf(taken + used, sizeof(taken) - used, "%.*s127.0.0.1:%u",
                                     (int)(end - at), at, port);
        snprintf(taken + used, sizeof(taken) - used, "%s", at);
        struct config *config = load(taken);
        assert_non_null(config);
        live_through_a_failed_start(config, LANES, "address already in use");
        config_destroy(config);
    }
    close(fd);
}

static void every_component_lives_through_every_life(void **state)
{
    (void)state;
    fill_factories();
    for (size_t i = 0; components[i] != NULL; i++) {
        unsigned signals =
            components[i]->kind == EXTENSION ? SIGNAL_TRACES : components[i]->signals;
        print_message("  %s\n", components[i]->type);
        for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
            char yaml[YAML_MAX];
            if ((signals & (1u << signal)) == 0 && components[i]->connects[signal] == 0)
                continue;
            write_yaml(yaml, components[i], (enum signal_kind)signal, EXTENSION);
            struct config *config = load(yaml);
            assert_non_null(config);
            for (int life = 0; life < LIVES; life++)
                for (unsigned lanes = 1; lanes <= LANES; lanes++)
                    live(config, (enum life)life, lanes);
            config_destroy(config);
        }
    }
}

/* Both signals are there when the daemon first looks. */
static void a_signal_to_end_during_a_reload_leaves_no_socket(void **state)
{
    char directory[] = "/tmp/spanflame-life-XXXXXX";
    char path[64];
    char yaml[YAML_MAX];
    const char *location = yaml;
    sigset_t set;
    sigset_t before;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    snprintf(yaml, sizeof(yaml),
             "yaml:\nreceivers: {otlp: {protocols: {grpc: {transport: unix, endpoint: %s}}}}\n"
             "exporters: {nop: {}}\n"
             "service: {lanes: 2, telemetry: {metrics: {level: none}, logs: {level: error}},"
             " pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}\n",
             path);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    const struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = components};
    assert_int_equal(supervisor_run(&request), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void a_reload_asked_for_during_another_follows_it(void **state)
{
    char directory[] = "/tmp/spanflame-life-XXXXXX";
    const char *location = probe_path;
    sigset_t set;
    sigset_t before;
    (void)state;
    fill_factories();
    assert_non_null(mkdtemp(directory));
    snprintf(probe_path, sizeof(probe_path), "%s/config.yaml", directory);
    probe_write("a");
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    const struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = factories};
    assert_int_equal(supervisor_run(&request), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_string_equal(probe_seen, "abc");
    unlink(probe_path);
    assert_int_equal(rmdir(directory), 0);
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
        cmocka_unit_test(every_component_stops_after_a_failed_start),
        cmocka_unit_test(every_component_stops_after_it_finds_its_port_in_use),
        cmocka_unit_test(a_signal_to_end_during_a_reload_leaves_no_socket),
        cmocka_unit_test(a_reload_asked_for_during_another_follows_it),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
