/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of code are released and come back unchanged. */
#include "src/base/rss_trim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Resident pages of files, in KiB. */
static long resident_file_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (kib < 0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "RssFile: %ld", &kib) != 1)
            kib = -1;
    fclose(file);
    assert_true(kib >= 0);
    return kib;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void what_was_resident_is_not_and_still_works(void **state)
{
    int numbers[] = {3, 1, 2};
    (void)state;
    qsort(numbers, 3, sizeof(numbers[0]), compare);
    long before = resident_file_kib();
    rss_trim();
    long after = resident_file_kib();
    assert_true(after < before);
    numbers[0] = 9;
    qsort(numbers, 3, sizeof(numbers[0]), compare);
    assert_int_equal(numbers[2], 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_resident_is_not_and_still_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
