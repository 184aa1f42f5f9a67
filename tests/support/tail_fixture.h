/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration of tail_sampling with a policy of each kind that looks at spans, for tests that
 * take requests apart without a service. */
#pragma once

#include "processors/tail_sampling/tail_sampling_config.h"

static inline struct tail_shared_config tail_fixture_shared(const char *name, const char *type)
{
    return (struct tail_shared_config){
        .name = name,
        .type = type,
        .numeric = {.key = ""},
        .probabilistic = {.hash_salt = "", .sampling_percentage = 50},
        .string = {.key = ""},
        .trace_state = {.key = ""},
        .boolean = {.key = ""},
        .ottl = {.error_mode = ""},
        .latency = {.threshold_ms = 100},
    };
}

enum { TAIL_FIXTURE_POLICIES = 10 };

static inline const struct tail_sampling_config *tail_fixture_config(void)
{
    static const char *const patterns[] = {"^a.*z$", "b{2}"};
    static const char *const values[] = {"v", "k000001"};
    static const char *const codes[] = {"ERROR"};
    static const char *const on_spans[] = {"resource.attributes[\"k\"] == \"v\"",
                                           "attributes[\"k000002\"] == 1 and scope.name == \"n\""};
    static const char *const on_events[] = {"name == \"v\""};
    static struct tail_policy_config policies[TAIL_FIXTURE_POLICIES];
    static struct tail_sampling_config config;
    static const char *const types[TAIL_FIXTURE_POLICIES] = {
        "latency",          "numeric_attribute", "probabilistic", "status_code",
        "string_attribute", "string_attribute",  "trace_state",   "boolean_attribute",
        "trace_flags",      "ottl_condition"};
    static const char *const names[TAIL_FIXTURE_POLICIES] = {"1", "2", "3", "4", "5",
                                                             "6", "7", "8", "9", "10"};
    for (int i = 0; i < TAIL_FIXTURE_POLICIES; i++)
        policies[i].shared = tail_fixture_shared(names[i], types[i]);
    policies[1].shared.numeric = (struct tail_numeric_config){.key = "k", .min_value = 5};
    policies[3].shared.status.status_codes = (struct config_texts){1, codes};
    policies[4].shared.string =
        (struct tail_string_config){.key = "k", .values = {2, values}, .invert_match = true};
    policies[5].shared.string = (struct tail_string_config){
        .key = "k000000", .values = {2, patterns}, .enabled_regex_matching = true};
    policies[6].shared.trace_state =
        (struct tail_trace_state_config){.key = "k", .values = {2, values}};
    policies[7].shared.boolean = (struct tail_boolean_config){.key = "k", .value = true};
    policies[9].shared.ottl = (struct tail_ottl_config){
        .error_mode = "propagate", .span = {2, on_spans}, .spanevent = {1, on_events}};
    config.policies = (struct config_sections){.count = TAIL_FIXTURE_POLICIES, .items = policies};
    return &config;
}
