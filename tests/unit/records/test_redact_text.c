/* SPDX-License-Identifier: Apache-2.0 */
/* What masked texts become, and how long they may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/records/redact_text.h"

static struct redaction_rules *rules_of(const char *const *patterns, size_t count,
                                        enum redaction_hash hash)
{
    struct error error;
    const struct redaction_settings settings = {
        .allows_all_keys = true,
        .blocked_values = {.count = count, .texts = patterns},
        .hash = hash,
    };
    struct redaction_rules *rules = redaction_rules_create(&settings, &error);
    assert_non_null(rules);
    return rules;
}

static void matches_become_their_hashes(void **state)
{
    (void)state;
    static const char *const patterns[] = {"[0-9]+", "secret"};
    struct redaction_rules *rules = rules_of(patterns, 2, REDACT_MD5);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct slice clean = redaction_clean(rules, &arena, slice_of_text("card 1234, secret"));
    assert_true(slice_equal_text(clean, "card 81dc9bdb52d04dc20036dbd8313ed055, "
                                        "5ebe2294ecd0e0f08eab7690d2a6ee69"));
    struct slice text = slice_of_text("nothing");
    clean = redaction_clean(rules, &arena, text);
    assert_ptr_equal(clean.data, text.data);
    arena_clear(&arena);
    redaction_rules_destroy(rules);
}

/* Each letter's hash is 64 letters, each of which the next pattern would hash again. */
static void hashes_of_hashes_do_not_grow_without_end(void **state)
{
    (void)state;
    static const char *const patterns[] = {"a", "[0-9a-f]", "[0-9a-f]"};
    enum { LONG = 40000, SHORT = 64 };
    char *letters = mem_alloc(LONG);
    memset(letters, 'a', LONG);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct redaction_rules *rules = rules_of(patterns, 3, REDACT_SHA3);
    struct slice clean = redaction_clean(rules, &arena, slice_of(letters, LONG));
    assert_true(slice_equal_text(clean, "****"));
    redaction_rules_destroy(rules);
    rules = rules_of(patterns, 1, REDACT_SHA3);
    clean = redaction_clean(rules, &arena, slice_of(letters, SHORT));
    assert_int_equal(clean.size, SHORT * 64); /* 4 KiB: allowed */
    clean = redaction_clean(rules, &arena, slice_of(letters, SHORT + 1));
    assert_true(slice_equal_text(clean, "****"));
    redaction_rules_destroy(rules);
    /* Stars are four bytes. */
    rules = rules_of(patterns, 1, REDACT_STARS);
    clean = redaction_clean(rules, &arena, slice_of(letters, LONG));
    assert_int_equal(clean.size, LONG * 4);
    redaction_rules_destroy(rules);
    arena_clear(&arena);
    mem_free(letters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_become_their_hashes),
        cmocka_unit_test(hashes_of_hashes_do_not_grow_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
