/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: one for each combination of values, kept apart exactly, up to a limit. */
#include "src/pipeline/partition.h"

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/core/client_info.h"
#include "src/pipeline/pipeline_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct budget budget;
static const char *const two_keys[] = {"Tenant", "region"};

static void on_timer(struct timer *timer, void *arg)
{
    assert_non_null(timer);
    assert_non_null(arg);
}

static void start(struct partitions *partitions, size_t keys, size_t count_max)
{
    budget_init(&budget, 1000);
    partitions_init(partitions, TRACES, &budget,
                    (struct config_texts){.count = keys, .texts = two_keys}, count_max);
    partitions_owned_by(partitions, on_timer, &budget);
}

static void end(struct partitions *partitions)
{
    partitions_fini(partitions);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static struct partition *partition_for(struct partitions *partitions,
                                       const struct client_metadata *rows, size_t count)
{
    struct client_info *client = client_info_create("10.0.0.1", rows, count);
    struct partition *partition = partitions_of(partitions, client, 0);
    client_info_unref(client);
    return partition;
}

struct set {
    const char *name;
    struct client_metadata rows[3];
    size_t count;
};

/* No two of these are the same combination. */
static const struct set sets[] = {
    {"nothing", {{"other", "x"}}, 1},
    {"empty tenant", {{"tenant", ""}}, 1},
    {"tenant a", {{"tenant", "a"}}, 1},
    {"region a", {{"region", "a"}}, 1},
    {"tenant a, region b", {{"tenant", "a"}, {"region", "b"}}, 2},
    {"tenant b, region a", {{"tenant", "b"}, {"region", "a"}}, 2},
    {"tenant twice", {{"tenant", "a"}, {"tenant", "b"}}, 2},
    {"tenant with both joined", {{"tenant", "ab"}}, 1},
    {"tenant that looks like a key", {{"tenant", "1:a;"}}, 1},
    {"tenant that looks like two values", {{"tenant", "1:a1:b"}}, 1},
};

enum { SETS = sizeof(sets) / sizeof(sets[0]) };

static void different_values_are_different_partitions(void **state)
{
    (void)state;
    struct partitions partitions;
    struct partition *found[SETS];
    start(&partitions, 2, 0);
    for (size_t i = 0; i < SETS; i++) {
        found[i] = partition_for(&partitions, sets[i].rows, sets[i].count);
        assert_non_null(found[i]);
        for (size_t j = 0; j < i; j++)
            if (found[j] == found[i])
                fail_msg("\"%s\" is taken for \"%s\"", sets[i].name, sets[j].name);
    }
    for (size_t i = 0; i < SETS; i++)
        assert_ptr_equal(partition_for(&partitions, sets[i].rows, sets[i].count), found[i]);
    assert_ptr_equal(partitions_of(&partitions, NULL, 0), found[0]);
    assert_int_equal(partitions.combinations_count, SETS);
    end(&partitions);
}

static void only_the_configured_keys_travel_on(void **state)
{
    (void)state;
    struct partitions partitions;
    const struct client_metadata rows[] = {{"other", "x"}, {"region", "r"}, {"TENANT", "t"}};
    start(&partitions, 2, 0);
    const struct client_info *client = partition_for(&partitions, rows, 3)->batcher.client;
    assert_int_equal(client->metadata_count, 2);
    assert_string_equal(client->metadata[0].value, "t");
    assert_string_equal(client->metadata[1].value, "r");
    assert_string_equal(client->address, "");
    end(&partitions);
}

static void without_keys_there_is_one(void **state)
{
    (void)state;
    struct partitions partitions;
    start(&partitions, 0, 1);
    struct partition *only = partitions_of(&partitions, NULL, 0);
    assert_non_null(only);
    for (size_t i = 0; i < SETS; i++)
        assert_ptr_equal(partition_for(&partitions, sets[i].rows, sets[i].count), only);
    assert_null(only->batcher.client);
    end(&partitions);
}

/* As the batch processor and sending_queue::batch have it without metadata_keys. */
static void profiles_of_different_tenants_are_never_one(void **state)
{
    (void)state;
    struct partitions partitions;
    const struct client_metadata a[] = {{"other", "x"}, {"x-scope-orgid", "a"}};
    const struct client_metadata b[] = {{"x-scope-orgid", "b"}};
    const struct client_metadata others[] = {{"other", "x"}, {"x-scope-orgid", ""}};
    budget_init(&budget, 1000);
    partitions_init(&partitions, PROFILES, &budget, (struct config_texts){.count = 0}, 2);
    partitions_owned_by(&partitions, on_timer, &budget);
    struct partition *of_a = partition_for(&partitions, a, 2);
    struct partition *of_b = partition_for(&partitions, b, 1);
    struct partition *plain = partition_for(&partitions, others, 2);
    assert_ptr_not_equal(of_a, of_b);
    assert_string_equal(client_info_tenant(of_a->batcher.client), "a");
    assert_int_equal(of_a->batcher.client->metadata_count, 1);
    assert_string_equal(client_info_tenant(of_b->batcher.client), "b");
    /* There is always room for those without a tenant. */
    assert_non_null(plain);
    assert_null(plain->batcher.client);
    assert_ptr_equal(partitions_of(&partitions, NULL, 0), plain);
    assert_ptr_equal(partition_for(&partitions, a + 1, 1), of_a);
    end(&partitions);
}

static void keys_and_tenant_tell_apart_together(void **state)
{
    (void)state;
    struct partitions partitions;
    const struct client_metadata rows[] = {{"region", "r"}, {"x-scope-orgid", "a"}};
    budget_init(&budget, 1000);
    partitions_init(&partitions, PROFILES, &budget,
                    (struct config_texts){.count = 2, .texts = two_keys}, 0);
    partitions_owned_by(&partitions, on_timer, &budget);
    struct partition *both = partition_for(&partitions, rows, 2);
    assert_ptr_not_equal(both, partition_for(&partitions, rows, 1));
    assert_ptr_not_equal(both, partition_for(&partitions, rows + 1, 1));
    assert_int_equal(both->batcher.client->metadata_count, 2);
    assert_string_equal(client_info_tenant(both->batcher.client), "a");
    end(&partitions);
}

static void beyond_the_limit_only_known_values_are_found(void **state)
{
    (void)state;
    struct partitions partitions;
    start(&partitions, 1, 2);
    const struct client_metadata a = {"tenant", "a"};
    const struct client_metadata b = {"tenant", "b"};
    const struct client_metadata c = {"tenant", "c"};
    struct partition *first = partition_for(&partitions, &a, 1);
    assert_non_null(partition_for(&partitions, &b, 1));
    assert_null(partition_for(&partitions, &c, 1));
    assert_ptr_equal(partition_for(&partitions, &a, 1), first);
    end(&partitions);
}

/* What is created with nothing pending is idle at once. */
static void settle_all(struct partitions *partitions)
{
    while (partitions->lists[PARTITION_BUSY].first != NULL)
        partition_settle(partitions->lists[PARTITION_BUSY].first, false);
}

static void those_that_were_idle_for_a_while_give_way(void **state)
{
    (void)state;
    struct partitions partitions;
    const struct client_metadata rows[] = {{"tenant", "a"}, {"tenant", "b"}, {"tenant", "c"}};
    clock_fake_start(100 * (uint64_t)NS_PER_S, 0);
    start(&partitions, 1, 2);
    partition_for(&partitions, &rows[0], 1);
    struct partition *b = partition_for(&partitions, &rows[1], 1);
    settle_all(&partitions);
    clock_fake_advance(PARTITION_IDLE_MIN_NS - 1);
    assert_null(partition_for(&partitions, &rows[2], 1));
    assert_ptr_equal(partition_for(&partitions, &rows[1], 1), b);
    clock_fake_advance(1);
    assert_non_null(partition_for(&partitions, &rows[2], 1));
    assert_ptr_equal(partition_for(&partitions, &rows[1], 1), b);
    /* All are in use, but a client without any of the values is always admitted. */
    assert_null(partition_for(&partitions, &rows[0], 1));
    assert_non_null(partitions_of(&partitions, NULL, 0));
    assert_int_equal(partitions.combinations_count, 3);
    end(&partitions);
    clock_fake_stop();
}

static void few_are_kept_idle(void **state)
{
    (void)state;
    struct partitions partitions;
    start(&partitions, 1, 0);
    for (int i = 0; i < 5000; i++) {
        char value[24];
        snprintf(value, sizeof(value), "made-up %d", i);
        struct client_metadata row = {"tenant", value};
        partition_settle(partition_for(&partitions, &row, 1), false);
    }
    assert_int_equal(partitions.lists[PARTITION_IDLE].count, PARTITIONS_IDLE_MAX);
    assert_int_equal(partitions.combinations_count, PARTITIONS_IDLE_MAX);
    assert_int_equal(budget_used(&budget), 0);
    /* Large ones are not kept at all. */
    static char large[PARTITION_IDLE_BYTES_MAX];
    memset(large, 'x', sizeof(large) - 1);
    struct client_metadata row = {"tenant", large};
    partition_settle(partition_for(&partitions, &row, 1), false);
    assert_int_equal(partitions.combinations_count, PARTITIONS_IDLE_MAX);
    end(&partitions);
}

static void tenants_that_no_key_names_are_not_counted(void **state)
{
    (void)state;
    struct partitions partitions;
    budget_init(&budget, 1000);
    partitions_init(&partitions, PROFILES, &budget,
                    (struct config_texts){.count = 2, .texts = two_keys}, 1);
    partitions_owned_by(&partitions, on_timer, &budget);
    for (int i = 0; i < 100; i++) {
        char value[24];
        snprintf(value, sizeof(value), "made-up %d", i);
        const struct client_metadata rows[] = {{"region", "r"}, {"x-scope-orgid", value}};
        assert_non_null(partition_for(&partitions, rows, 2));
        assert_non_null(partition_for(&partitions, rows + 1, 1));
    }
    const struct client_metadata other = {"region", "other"};
    assert_null(partition_for(&partitions, &other, 1));
    end(&partitions);
}

static void thousands_are_found_again(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static struct partition *found[COUNT];
    struct partitions partitions;
    start(&partitions, 1, COUNT);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT; i++) {
            char value[16];
            snprintf(value, sizeof(value), "%zu", i * 7919 % COUNT);
            struct client_metadata row = {"tenant", value};
            struct partition *partition = partition_for(&partitions, &row, 1);
            assert_true(round == 0 || partition == found[i]);
            found[i] = partition;
        }
    assert_int_equal(partitions.combinations_count, COUNT);
    end(&partitions);
}

static void no_value_takes_no_place(void **state)
{
    (void)state;
    struct partitions partitions;
    const struct client_metadata a = {"tenant", "a"};
    const struct client_metadata b = {"tenant", "b"};
    start(&partitions, 1, 1);
    assert_non_null(partitions_of(&partitions, NULL, 0));
    assert_non_null(partition_for(&partitions, &a, 1));
    assert_null(partition_for(&partitions, &b, 1));
    assert_non_null(partitions_of(&partitions, NULL, 0));
    end(&partitions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_values_are_different_partitions),
        cmocka_unit_test(only_the_configured_keys_travel_on),
        cmocka_unit_test(without_keys_there_is_one),
        cmocka_unit_test(profiles_of_different_tenants_are_never_one),
        cmocka_unit_test(keys_and_tenant_tell_apart_together),
        cmocka_unit_test(beyond_the_limit_only_known_values_are_found),
        cmocka_unit_test(those_that_were_idle_for_a_while_give_way),
        cmocka_unit_test(few_are_kept_idle),
        cmocka_unit_test(tenants_that_no_key_names_are_not_counted),
        cmocka_unit_test(no_value_takes_no_place),
        cmocka_unit_test(thousands_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
