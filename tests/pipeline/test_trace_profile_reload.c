/* SPDX-License-Identifier: Apache-2.0 */
/* The join over a reload: what is known of spans stays known where the new configuration can use
 * it. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "src/base/reload_state.h"

/* Whether a sample is joined at once after a reload with its span before it. */
static bool is_known_after(const char *before, const char *after, unsigned lanes)
{
    struct harness *h = join_start(before);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    reload_state_begin();
    harness_destroy(h);
    h = join_start_on(after, lanes);
    reload_state_end();
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    bool is_known = exporter->held_count == 1;
    assert_true(!is_known || join_says(exporter, 0, 0, "checkout"));
    join_let_go(exporter);
    harness_destroy(h);
    return is_known;
}

static void spans_stay_known_unless_the_index_changes(void **state)
{
    static const struct {
        const char *before;
        const char *after;
        unsigned lanes;
        bool is_known;
    } rows[] = {
        {JOIN(""), JOIN(""), 1, true},
        {JOIN(""), JOIN("hold: 3s, mark: all, span_id: root, keep: [sampled]"), 1, true},
        {JOIN("attributes: [span_name, span.a]"), JOIN("attributes: [span_name, span.a]"), 1, true},
        {JOIN("attributes: [span_name, span.a]"), JOIN("attributes: [span_name, span.b]"), 1,
         false},
        {JOIN(""), JOIN(""), 2, false},
        {JOIN(""), JOIN("index: {entries: 1000}"), 1, false},
        {JOIN(""), JOIN("window_fallback: true"), 1, false},
        {JOIN(""), JOIN("cap: 5"), 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_known_after(rows[i].before, rows[i].after, rows[i].lanes) != rows[i].is_known)
            fail_msg("%s", rows[i].after);
}

static void nothing_is_kept_without_a_reload(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    harness_destroy(h);
    assert_null(reload_state_take("trace_profile_join"));
}

/* Its memory would have no owner. */
static void what_no_service_takes_is_freed(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    reload_state_begin();
    harness_destroy(h);
    reload_state_end();
    assert_null(reload_state_take("trace_profile_join"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_stay_known_unless_the_index_changes),
        cmocka_unit_test(nothing_is_kept_without_a_reload),
        cmocka_unit_test(what_no_service_takes_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
