/* SPDX-License-Identifier: Apache-2.0 */
/* filter and transform of profiles, from YAML to JSON and the ledger: samples are their items, and
 * what statements name is in the request's dictionary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/core/batch.h"
#include "tests/support/harness.h"
#include "tests/support/record_case.h"
#include "tests/support/test_components.h"

/* Strings: 1 cpu, 2 ns, 3 thread, 4 main, 5 wall. Attributes: 1 thread="main", 2 thread="idle".
 * Stacks: 1. A profile of CPU with a sample of each thread, and one of the wall clock. */
#define SAMPLE(value, attribute)                                                                   \
    "{\"stackIndex\":1,\"attributeIndices\":[" attribute "],\"values\":[\"" value "\"]}"
#define OF_TYPE(type, samples, fields)                                                             \
    "{\"sampleType\":{\"typeStrindex\":" type ",\"unitStrindex\":2},\"samples\":[" samples         \
    "],\"periodType\":{}" fields "}"
#define CPU(samples) OF_TYPE("1", samples, "")
#define WALL         OF_TYPE("5", SAMPLE("3", "1"), "")
#define BOTH         SAMPLE("5", "1") "," SAMPLE("6", "2")
#define REQUEST(profiles, strings, attributes)                                                     \
    "{\"resourceProfiles\":[{\"resource\":{},\"scopeProfiles\":[{\"scope\":{},\"profiles\":"       \
    "[" profiles "]}]}],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{},{\"address\":" \
    "\"1\"}],\"functionTable\":[{}],\"linkTable\":[{}],\"stringTable\":[\"\",\"cpu\",\"ns\","      \
    "\"thread\",\"main\",\"wall\"" strings "],\"attributeTable\":[{\"value\":{}},{"                \
    "\"keyStrindex\":3,\"value\":{\"stringValue\":\"main\"}},{\"keyStrindex\":3,\"value\":{"       \
    "\"stringValue\":\"idle\"}}" attributes "],\"stackTable\":[{},{\"locationIndices\":[1]}]}}"
#define GIVEN REQUEST(CPU(BOTH) "," WALL, "", "")

static void profiles_and_samples_are_filtered(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{profiles: {profile: ['sample_type.type == \"wall\"']}}", REQUEST(CPU(BOTH), "", "")},
        {"{profile_conditions: ['profile.sample_type.type == \"cpu\"']}", REQUEST(WALL, "", "")},
        {"{profile_conditions: ['profilesample.attributes[\"thread\"] == \"idle\"']}",
         REQUEST(CPU(SAMPLE("5", "1")) "," WALL, "", "")},
        /* A profile without samples goes, too. */
        {"{profile_conditions: [{context: profilesample, conditions: ["
         "'profile.sample_type.type == \"wall\"']}]}",
         REQUEST(CPU(BOTH), "", "")},
        {"{profile_conditions: ['resource.attributes[\"service.name\"] == nil']}", ""},
        {"{profile_conditions: ['profile.sample_type.type == \"heap\"']}", GIVEN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_compare("filter", rows[i].section, PROFILES, GIVEN, rows[i].expected);
}

static void profiles_and_samples_are_edited(void **state)
{
    static const struct {
        const char *section;
        const char *expected;
    } rows[] = {
        {"{profile_statements: ['set(profile.sample_type.type, \"samples\") where "
         "profile.sample_type.type == \"wall\"']}",
         REQUEST(CPU(BOTH) "," OF_TYPE("6", SAMPLE("3", "1"), ""), ",\"samples\"", "")},
        {"{profile_statements: [{context: profilesample, statements: ['set(attributes[\"thread\"], "
         "\"idle\")']}]}",
         REQUEST(CPU(SAMPLE("5", "2") "," SAMPLE("6", "2")) "," OF_TYPE("5", SAMPLE("3", "2"), ""),
                 "", "")},
        {"{profile_statements: ['set(profile.attributes[\"main\"], 7) where "
         "profile.sample_type.type == \"cpu\"']}",
         REQUEST(OF_TYPE("1", BOTH, ",\"attributeIndices\":[3]") "," WALL, "",
                 ",{\"keyStrindex\":4,\"value\":{\"intValue\":\"7\"}}")},
        {"{profile_statements: ['set(profile.attributes[\"a\"], 7) where profile.period == 9']}",
         GIVEN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        record_compare("transform", rows[i].section, PROFILES, GIVEN, rows[i].expected);
}

/* The harness adds the ledger up after each turn. */
/* Strings 6 and 7 are equal. Attribute 3 has a unit, which no statement gives; 4 and 5 are equal, 6
 * is equal to none, itself neither. */
#define WITH_ENTRIES(profiles, more)                                                               \
    REQUEST(                                                                                       \
        profiles, ",\"twice\",\"twice\"",                                                          \
        ",{\"keyStrindex\":3,\"value\":{\"stringValue\":\"x\"},\"unitStrindex\":2},{"              \
        "\"keyStrindex\":3,\"value\":{\"stringValue\":\"x\"}},{\"keyStrindex\":3,\"value\":{"      \
        "\"stringValue\":\"x\"}},{\"keyStrindex\":6,\"value\":{\"doubleValue\":\"NaN\"}}" more)

static void entries_of_the_dictionary_are_used_again(void **state)
{
    (void)state;
    record_compare("transform",
                   "{profile_statements: ['set(profilesample.attributes[\"thread\"], \"x\") where "
                   "profilesample.attributes[\"thread\"] == \"idle\"']}",
                   PROFILES, WITH_ENTRIES(CPU(BOTH), ""),
                   WITH_ENTRIES(CPU(SAMPLE("5", "1") "," SAMPLE("6", "4")), ""));
    record_compare("transform", "{profile_statements: ['set(profile.attributes[\"twice\"], 1)']}",
                   PROFILES, WITH_ENTRIES(CPU(BOTH), ""),
                   WITH_ENTRIES(OF_TYPE("1", BOTH, ",\"attributeIndices\":[7]"),
                                ",{\"keyStrindex\":6,\"value\":{\"intValue\":\"1\"}}"));
}

static void dropped_samples_are_booked(void **state)
{
    (void)state;
    struct harness *h = record_harness(
        "filter", "{profile_conditions: ['profilesample.attributes[\"thread\"] == \"idle\"']}",
        PROFILES);
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    const struct test_request *request = record_send(h, PROFILES, GIVEN);
    assert_int_equal(exporter->held[0].batch->items, 2);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(request->is_resolved);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_and_samples_are_filtered),
        cmocka_unit_test(profiles_and_samples_are_edited),
        cmocka_unit_test(entries_of_the_dictionary_are_used_again),
        cmocka_unit_test(dropped_samples_are_booked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
