/* SPDX-License-Identifier: Apache-2.0 */
/* Rules across the keys of sending_queue and retry_on_failure, and what an unset sizer means. */
#include "src/config/shared/exporter_queue_config.h"

#include "src/base/clock.h"
#include "src/base/error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define S ((uint64_t)NS_PER_S)

struct sizer_row {
    int queue;
    int batch;
    enum queue_sizer queue_counts;
    enum queue_sizer batch_counts;
};

static void unset_sizers_follow_the_go_collector(void **state)
{
    (void)state;
    static const struct sizer_row rows[] = {
        {QUEUE_SIZER_UNSET, QUEUE_SIZER_UNSET, QUEUE_REQUESTS, QUEUE_ITEMS},
        {QUEUE_ITEMS, QUEUE_SIZER_UNSET, QUEUE_ITEMS, QUEUE_ITEMS},
        {QUEUE_BYTES, QUEUE_SIZER_UNSET, QUEUE_BYTES, QUEUE_BYTES},
        {QUEUE_REQUESTS, QUEUE_SIZER_UNSET, QUEUE_REQUESTS, QUEUE_REQUESTS},
        {QUEUE_REQUESTS, QUEUE_BYTES, QUEUE_REQUESTS, QUEUE_BYTES},
        {QUEUE_BYTES, QUEUE_ITEMS, QUEUE_BYTES, QUEUE_ITEMS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sending_queue_config queue = {.sizer = rows[i].queue, .batch.sizer = rows[i].batch};
        assert_int_equal(sending_queue_sizer(&queue), rows[i].queue_counts);
        assert_int_equal(queue_batch_sizer(&queue), rows[i].batch_counts);
    }
}

struct queue_row {
    struct sending_queue_config queue;
    const char *error; /* a part of it; NULL: none */
};

static void queues_are_checked(void **state)
{
    (void)state;
    static const struct queue_row rows[] = {
        {{.queue_size = 10, .storage = ""}, NULL},
        {{.queue_size = 10, .storage = "", .wait_for_result = true}, NULL},
        {{.queue_size = 10, .storage = "file_storage", .wait_for_result = true},
         "`wait_for_result` is not supported with a persistent queue"},
        {{.queue_size = 10, .storage = "file_storage"}, NULL},
        {{.queue_size = 10, .storage = "", .has_batch = true, .batch.min_size = 8192}, NULL},
        {{.queue_size = 10, .storage = "", .has_batch = true, .sizer = QUEUE_REQUESTS},
         "`batch` supports only `items` or `bytes` sizer"},
        {{.queue_size = 10,
          .storage = "",
          .has_batch = true,
          .sizer = QUEUE_ITEMS,
          .batch.min_size = 11},
         "`min_size` must be less than or equal to `queue_size`"},
        {{.queue_size = 10,
          .storage = "",
          .has_batch = true,
          .sizer = QUEUE_ITEMS,
          .batch.min_size = 10},
         NULL},
        {{.queue_size = 10,
          .storage = "",
          .has_batch = true,
          .sizer = QUEUE_ITEMS,
          .batch.sizer = QUEUE_BYTES,
          .batch.min_size = 11},
         NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        assert_true(sending_queue_check(&rows[i].queue, &error) == (rows[i].error == NULL));
        if (rows[i].error != NULL)
            assert_non_null(strstr(error.text, rows[i].error));
    }
}

struct retry_row {
    struct retry_config retry;
    const char *error;
};

static void retries_are_checked(void **state)
{
    (void)state;
    const struct retry_row rows[] = {
        {{5 * S, 0.5, 1.5, 30 * S, 300 * S}, NULL},
        {{5 * S, 0, 0, 0, 5 * S}, NULL},
        {{5 * S, 1, 1, 30 * S, 0}, NULL},
        {{5 * S, 1.1, 1, 30 * S, 0}, "'randomization_factor' must be within [0, 1]"},
        {{5 * S, -0.1, 1, 30 * S, 0}, "'randomization_factor' must be within [0, 1]"},
        {{5 * S, (double)NAN, 1, 30 * S, 0}, "'randomization_factor' must be within [0, 1]"},
        {{5 * S, 0, -1, 30 * S, 0}, "'multiplier' must be non-negative"},
        {{5 * S, 0, (double)NAN, 30 * S, 0}, "'multiplier' must be non-negative"},
        {{5 * S, 0, 1, 1 * S, 4 * S},
         "'max_elapsed_time' must not be less than 'initial_interval'"},
        {{5 * S, 0, 1, 7 * S, 6 * S}, "'max_elapsed_time' must not be less than 'max_interval'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        assert_true(retry_check(&rows[i].retry, &error) == (rows[i].error == NULL));
        if (rows[i].error != NULL)
            assert_non_null(strstr(error.text, rows[i].error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unset_sizers_follow_the_go_collector),
        cmocka_unit_test(queues_are_checked),
        cmocka_unit_test(retries_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
