/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/service_keys.c and telemetry_*.c: the keys below service:. */
#include "src/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/base/log.h"
#include "tests/unit/config/support.h"

/* Further keys of service:, each on its own lines, indented by two. */
static struct load_result load_service(const char *keys)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "receivers: {nop: }\nexporters: {nop: }\nservice:\n"
             "  pipelines: {traces: {receivers: [nop], exporters: [nop]}}\n%s\n",
             keys);
    return load_text(text);
}

static const char *attribute_of(const struct config_service *service, const char *key)
{
    for (size_t i = 0; i < service->resource.count; i++)
        if (strcmp(service->resource.pairs[i].key, key) == 0)
            return service->resource.pairs[i].value;
    return NULL;
}

static void defaults_are_the_go_collectors(void **state)
{
    struct load_result result = load_service("");
    (void)state;
    assert_loaded(&result);
    const struct config_service *service = &result.config->service;
    assert_int_equal(service->lanes, 1);
    assert_int_equal(service->budget_mib, 0);
    assert_int_equal(service->drain_timeout_ns, DRAIN_DEADLINE_NS);
    assert_int_equal(service->log_level, LOG_INFO);
    assert_int_equal(service->log_encoding, 0);
    assert_false(service->log_disable_caller);
    assert_true(service->log_is_sampled);
    assert_int_equal(service->log_sampling_tick_ns, 10000000000);
    assert_int_equal(service->log_sampling_initial, 10);
    assert_int_equal(service->log_sampling_thereafter, 100);
    assert_int_equal(service->log_output_paths.count, 1);
    assert_string_equal(service->log_output_paths.texts[0], "stderr");
    assert_int_equal(service->metrics_level, 2);
    assert_true(service->has_metrics_reader);
    assert_string_equal(service->metrics_host, "localhost");
    assert_int_equal(service->metrics_port, 8888);
    assert_true(service->metrics_without_units && service->metrics_without_type_suffix);
    assert_string_equal(attribute_of(service, "service.name"), "spanflame");
    assert_int_equal(strlen(attribute_of(service, "service.instance.id")), 36);
    load_result_clear(&result);
}

static void our_own_keys_stand_beside(void **state)
{
    struct load_result result =
        load_service("  lanes: auto\n  budget_mib: 512\n  drain_timeout: 5s\n");
    (void)state;
    assert_loaded(&result);
    assert_int_equal(result.config->service.lanes, 0);
    assert_int_equal(result.config->service.budget_mib, 512);
    assert_int_equal(result.config->service.drain_timeout_ns, 5000000000);
    load_result_clear(&result);
}

static const struct {
    const char *level;
    enum log_level expected;
} levels[] = {
    {"debug", LOG_DEBUG},  {"INFO", LOG_INFO},   {"\"\"", LOG_INFO},   {"warn", LOG_WARN},
    {"Warning", LOG_WARN}, {"error", LOG_ERROR}, {"fatal", LOG_ERROR}, {"dpanic", LOG_ERROR},
    {"-1", LOG_DEBUG},     {"0", LOG_INFO},      {"1", LOG_WARN},      {"2", LOG_ERROR},
    {"5", LOG_ERROR},      {"", LOG_INFO},
};

static void log_levels_have_many_spellings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        char keys[128];
        snprintf(keys, sizeof(keys), "  telemetry: {logs: {level: %s}}", levels[i].level);
        struct load_result result = load_service(keys);
        assert_loaded(&result);
        if (result.config->service.log_level != (int)levels[i].expected)
            fail_msg("%s: %d", levels[i].level, result.config->service.log_level);
        load_result_clear(&result);
    }
}

static void readers_say_where_metrics_are_served(void **state)
{
    struct load_result result = load_service(
        "  telemetry: {metrics: {level: DETAILED, readers: [{periodic: {interval: 1000}}, {pull: "
        "{exporter: {prometheus: {host: 0.0.0.0, port: 9999, without_units: false}}}}]}}");
    (void)state;
    assert_loaded(&result);
    assert_int_equal(result.config->service.metrics_level, 3);
    assert_true(result.config->service.has_metrics_reader);
    assert_string_equal(result.config->service.metrics_host, "0.0.0.0");
    assert_int_equal(result.config->service.metrics_port, 9999);
    assert_false(result.config->service.metrics_without_units);
    assert_true(result.config->service.metrics_without_type_suffix);
    assert_warning(&result, "service::telemetry::metrics::readers::0: found another reader");
    load_result_clear(&result);
}

static void the_old_address_still_works_with_a_warning(void **state)
{
    struct load_result result = load_service("  telemetry: {metrics: {address: ':8889'}}");
    (void)state;
    assert_loaded(&result);
    assert_string_equal(result.config->service.metrics_host, "0.0.0.0");
    assert_int_equal(result.config->service.metrics_port, 8889);
    assert_warning(&result, "service::telemetry::metrics::address: found a key that the Go "
                            "collector no longer has");
    load_result_clear(&result);
    result = load_service("  telemetry: {metrics: {address: '[::1]:1'}}");
    assert_string_equal(result.config->service.metrics_host, "::1");
    load_result_clear(&result);
}

static void level_none_serves_nothing(void **state)
{
    struct load_result result = load_service("  telemetry: {metrics: {level: none, readers: []}}");
    (void)state;
    assert_loaded(&result);
    assert_false(result.config->service.has_metrics_reader);
    load_result_clear(&result);
}

static void the_resource_has_two_forms(void **state)
{
    struct load_result result = load_service(
        "  telemetry: {resource: {service.name: mine, service.instance.id: , region: eu}}");
    (void)state;
    assert_loaded(&result);
    assert_string_equal(attribute_of(&result.config->service, "service.name"), "mine");
    assert_string_equal(attribute_of(&result.config->service, "region"), "eu");
    assert_null(attribute_of(&result.config->service, "service.instance.id"));
    load_result_clear(&result);
    result = load_service("  telemetry: {resource: {schema_url: x, attributes: [{name: region, "
                          "value: us}, {name: n, value: 5}]}}");
    assert_loaded(&result);
    assert_string_equal(attribute_of(&result.config->service, "region"), "us");
    assert_string_equal(attribute_of(&result.config->service, "n"), "5");
    assert_string_equal(attribute_of(&result.config->service, "service.name"), "spanflame");
    load_result_clear(&result);
}

static const char *const accepted[] = {
    "  telemetry: ",
    "  telemetry: {logs: , metrics: , traces: , resource: }",
    ("  telemetry: {logs: {development: true, encoding: json, disable_caller: true, "
     "disable_stacktrace: true, output_paths: [stdout], error_output_paths: [stderr], "
     "initial_fields: {a: b}, processors: [], disable_zap_resource: true, sampling: {enabled: "
     "false}}}"),
    "  telemetry: {logs: {sampling: {tick: 1s, initial: 2, thereafter: 3}}}",
    ("  telemetry: {traces: {level: none, propagators: [b3], processors: [{batch: {exporter: "
     "{otlp: {protocol: http/protobuf, endpoint: x}}}}]}}"),
    "  telemetry: {metrics: {level: detailed, views: [{selector: {}}]}}",
};

static void documented_keys_are_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        struct load_result result = load_service(accepted[i]);
        assert_loaded(&result);
        load_result_clear(&result);
    }
}

static const struct {
    const char *keys;
    const char *problem;
} mistakes[] = {
    {"  lanes: 65", "otel.yaml:5:10: service::lanes: found the number 65, expected \"auto\" or a "
                    "whole number from 1 to 64"},
    {"  lanes: many", "service::lanes: found the string \"many\""},
    {"  telemetry: {logs: {level: verbose}}", "service::telemetry::logs::level: found the string "
                                              "\"verbose\", expected debug, info, warn or error"},
    {"  telemetry: {logs: {level: 9}}", "service::telemetry::logs::level: found the number 9"},
    {"  telemetry: {logs: {encoding: }}", "service::telemetry::logs::encoding: found null"},
    {"  telemetry: {logs: {encodin: json}}", "did you mean \"encoding\"?"},
    {"  telemetry: {metrics: {level: norml}}",
     "service::telemetry::metrics::level: found the string "
     "\"norml\", expected none, basic, normal or "
     "detailed (did you mean \"normal\"?)"},
    {"  telemetry: {metrics: {readers: []}}",
     "service::telemetry::metrics::readers: collector telemetry metrics reader should exist when "
     "metric level is not none"},
    {"  telemetry: {metrics: {readers: [{pull: {}}]}}",
     "service::telemetry::metrics::readers::0: found a pull reader without exporter"},
    {"  telemetry: {metrics: {views: [{}]}}", "service::telemetry::metrics::views: found views"},
    {"  telemetry: {metrics: {views: []}}", "service::telemetry::metrics::views: found views"},
    {"  telemetry: {metrics: {level: \"\"}}",
     "service::telemetry::metrics::level: found the string"},
    {"  telemetry: {metrics: {address: here}}", "found the string \"here\", expected host:port"},
    {"  telemetry: {resource: [a]}", "service::telemetry::resource: found a list"},
    {"  telemetry: {resource: {attributes: [x]}}", "service::telemetry::resource::attributes::0"},
    {"  telemetry: {resource: {a: {b: c}}}", "service::telemetry::resource::a: found a map"},
    {"  telemetry: {resource: {a: 5}}", "service::telemetry::resource::a: found the number 5"},
    {"  telemetry: {traces: {foo: 1}}", "service::telemetry::traces::foo: found an unknown key"},
    {"  telemetry: 5", "service::telemetry: found the number 5, expected a map"},
};

static void mistakes_say_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct load_result result = load_service(mistakes[i].keys);
        assert_problem(&result, mistakes[i].problem);
        assert_int_equal(result.problems.count, 1);
        load_result_clear(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_go_collectors),
        cmocka_unit_test(our_own_keys_stand_beside),
        cmocka_unit_test(log_levels_have_many_spellings),
        cmocka_unit_test(readers_say_where_metrics_are_served),
        cmocka_unit_test(the_old_address_still_works_with_a_warning),
        cmocka_unit_test(level_none_serves_nothing),
        cmocka_unit_test(the_resource_has_two_forms),
        cmocka_unit_test(documented_keys_are_accepted),
        cmocka_unit_test(mistakes_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
