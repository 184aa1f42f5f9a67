/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a sample by their keys: groups, whatever strings they are written with. */
#include "src/profiles/pprof/label_keys.h"

#include "src/base/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Places 2 and 5 hold the same text, as do 3 and 6. */
static struct slice strings[512];

static struct pprof profile(void)
{
    static const char *const texts[] = {"", "x", "a", "b", "c", "a", "b"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        strings[i] = slice_of_text(texts[i]);
    return (struct pprof){.strings = strings, .strings_count = 512};
}

/* Each group in parentheses, its members by their places. */
static void describe(const struct label_groups *groups, size_t count, char *to)
{
    for (size_t i = 0; i < count; i++) {
        if (!groups->is_first[i])
            continue;
        *to++ = '(';
        for (size_t at = i; at != LABEL_GROUP_END; at = groups->next[at])
            *to++ = (char)('0' + at);
        *to++ = ')';
    }
    *to = '\0';
}

static void labels_with_the_same_string_belong_together(void **state)
{
    static const struct {
        uint32_t keys[8];
        const char *groups;
    } cases[] = {
        {{2, 3, 4}, "(0)(1)(2)"},
        {{2, 2, 2}, "(012)"},
        {{2, 3, 5, 6, 4, 2}, "(025)(13)(4)"},
        {{1, 6, 5, 3, 2, 1, 6}, "(05)(136)(24)"},
    };
    struct pprof pprof = profile();
    struct label_keys keys;
    (void)state;
    label_keys_init(&keys, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pprof_label labels[8] = {{.key = 0}};
        struct label_groups groups;
        char found[64];
        size_t count = 0;
        for (; count < 8 && cases[i].keys[count] != 0; count++)
            labels[count].key = cases[i].keys[count];
        struct pprof_sample sample = {.labels = labels, .labels_count = count};
        assert_true(label_keys_group(&keys, &pprof, &sample, &groups));
        describe(&groups, count, found);
        assert_string_equal(found, cases[i].groups);
    }
    label_keys_fini(&keys);
}

static void no_memory_is_reported(void **state)
{
    struct pprof pprof = profile();
    struct budget budget;
    struct label_keys keys;
    struct label_groups groups;
    struct pprof_label label = {.key = 2};
    struct pprof_sample sample = {.labels = &label, .labels_count = 1};
    (void)state;
    budget_init(&budget, 64);
    label_keys_init(&keys, &budget);
    assert_false(label_keys_group(&keys, &pprof, &sample, &groups));
    label_keys_fini(&keys);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_with_the_same_string_belong_together),
        cmocka_unit_test(no_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
