/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed of a small profile, word for word. */
#include "src/cli/profile/profile_report.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/profile/profile_file.h"
#include "src/cli/profile/profile_json.h"
#include "src/cli/profile/profile_table.h"
#include "src/cli/profile/profile_top.h"
#include "tests/unit/cli/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct report report;
static struct report other;

static void fill(struct report *to, int64_t scale, const char *name)
{
    struct error error;
    struct buffer *request = small_otlp(scale, name);
    report_init(to);
    assert_true(report_add(to, buffer_slice(request), &error));
    buffer_unref(request);
}

static int tear_down(void **state)
{
    (void)state;
    report_fini(&report);
    report_fini(&other);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    fill(&report, 1, "work");
    fill(&other, 2, "toil");
    return 0;
}

static const struct profile_file file = {
    .path = "cpu.pb.gz", .format = FORMAT_PPROF, .is_compressed = true};

static void show_prints_a_table_of_everything(void **state)
{
    static const char want[] =
        "cpu.pb.gz: pprof (gzip), 2 profiles, 6 samples, 1 links\n"
        "\n"
        "         TOTAL    SAMPLES   PROFILES     DURATION  TYPE\n"
        "            10          3          1        2.00s  samples:count\n"
        "         1.00s          3          1        2.00s  cpu:nanoseconds\n"
        "\n"
        "Functions by cpu:nanoseconds, 4 of 4\n"
        "          FLAT   FLAT%     CUMULATIVE    CUM%  FUNCTION\n"
        "      600.00ms   60.0%       600.00ms   60.0%  work  shop.c\n"
        "      300.00ms   30.0%       300.00ms   30.0%  idle  shop.c\n"
        "      100.00ms   10.0%       100.00ms   10.0%  0x1234 (shop)  /bin/shop\n"
        "             0    0.0%          1.00s  100.0%  main  shop.c\n"
        "\n"
        "Labels, 1 of 1\n"
        "       SAMPLES     VALUES  KEY (ONE VALUE)\n"
        "             2          1  endpoint (/buy)\n"
        "\n"
        "Links, 1 of 1\n"
        "       SAMPLES  TRACE                             SPAN\n"
        "             2  0123456789abcdef0123456789abcdef  0123456789abcdef\n";
    struct captured captured;
    const struct report_scope scope = {.type = report_find_type(&report, "cpu")};
    (void)state;
    captured_open(&captured);
    profile_table_show(captured.out, &file, &report, scope);
    assert_string_equal(captured_text(&captured), want);
    free(captured.text);
}

static void json_has_the_same_figures_unscaled(void **state)
{
    static const char want[] =
        "{\"file\":\"cpu.pb.gz\",\"format\":\"pprof\",\"profiles\":2,\"rejected_profiles\":0,"
        "\"samples\":6,\"cut_stacks\":0,\"types\":[{\"type\":\"cpu\",\"unit\":\"nanoseconds\","
        "\"profiles\":1,\"samples\":3,\"total\":1000000000,"
        "\"time_unix_nano\":1700000000000000000,\"duration_nano\":2000000000,\"functions\":["
        "{\"name\":\"work\",\"file\":\"shop.c\",\"flat\":600000000,\"cumulative\":600000000}]}],"
        "\"labels\":[{\"key\":\"endpoint\",\"example\":\"/buy\",\"values\":1,\"samples\":2}],"
        "\"links\":[{\"trace_id\":\"0123456789abcdef0123456789abcdef\","
        "\"span_id\":\"0123456789abcdef\",\"samples\":2}]}\n";
    struct captured captured;
    const struct report_scope scope = {.type = report_find_type(&report, "cpu:nanoseconds"),
                                       .rows_max = 1};
    (void)state;
    captured_open(&captured);
    profile_json_show(captured.out, &file, &report, scope);
    assert_string_equal(captured_text(&captured), want);
    free(captured.text);
}

static void a_type_is_found_by_name_and_the_last_is_the_standard(void **state)
{
    (void)state;
    assert_ptr_equal(report_find_type(&report, "samples"), &report.types[0]);
    assert_ptr_equal(report_find_type(&report, "samples:count"), &report.types[0]);
    assert_ptr_equal(report_find_type(&report, NULL), &report.types[1]);
    assert_null(report_find_type(&report, "samples:bytes"));
    assert_null(report_find_type(&report, "sample"));
}

static void recursion_counts_once_in_what_a_function_takes_with_its_callees(void **state)
{
    size_t count;
    struct top_row *rows = profile_top(&report, report_find_type(&report, "samples"), &count);
    (void)state;
    assert_int_equal(count, 4);
    assert_true(slice_equal_text(rows[0].name, "work"));
    assert_int_equal(rows[0].flat, 6);
    assert_int_equal(rows[0].cumulative, 6);
    mem_free(rows);
}

static void diff_says_what_came_and_what_went(void **state)
{
    static const char want[] =
        "\n"
        "Differences by samples:count, 5 of 5 changed functions\n"
        "   FLAT BEFORE     FLAT AFTER         CHANGE              CUMULATIVE  FUNCTION\n"
        "            10             20            +10  +100.0%                 (total)\n"
        "             0             12            +12      new            +12  toil  shop.c\n"
        "             6              0             -6  -100.0%             -6  work  shop.c\n"
        "             3              6             +3  +100.0%             +3  idle  shop.c\n"
        "             1              2             +1  +100.0%             +1  0x1234 (shop)  "
        "/bin/shop\n"
        "             0              0              0                     +10  main  shop.c\n";
    struct captured captured;
    const struct report_scope scope = {.type = report_find_type(&report, "samples")};
    (void)state;
    captured_open(&captured);
    profile_table_diff(captured.out, &report, &other, scope);
    assert_string_equal(captured_text(&captured), want);
    free(captured.text);
}

static void diff_of_a_profile_with_itself_names_no_function(void **state)
{
    struct captured captured;
    (void)state;
    captured_open(&captured);
    struct report same;
    fill(&same, 1, "work");
    profile_json_diff(captured.out, &report, &same, (struct report_scope){.rows_max = 0});
    assert_string_equal(
        captured_text(&captured),
        "{\"types\":[{\"type\":\"samples\",\"unit\":\"count\",\"total_before\":10,"
        "\"total_after\":10,\"functions\":[]},{\"type\":\"cpu\",\"unit\":\"nanoseconds\","
        "\"total_before\":1000000000,\"total_after\":1000000000,\"functions\":[]}]}\n");
    free(captured.text);
    report_fini(&same);
}

static void requests_add_up(void **state)
{
    struct error error;
    struct buffer *request = small_otlp(3, "work");
    (void)state;
    assert_true(report_add(&report, buffer_slice(request), &error));
    buffer_unref(request);
    assert_int_equal(report.profiles, 4);
    assert_int_equal(report.types_count, 2);
    assert_int_equal(report.types[0].total, 40);
    assert_int_equal(report.links.count, 2); /* the one and the zero element */
    assert_int_equal(report.types[0].tree.nodes[0].total, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(show_prints_a_table_of_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_has_the_same_figures_unscaled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_type_is_found_by_name_and_the_last_is_the_standard,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            recursion_counts_once_in_what_a_function_takes_with_its_callees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(diff_says_what_came_and_what_went, set_up, tear_down),
        cmocka_unit_test_setup_teardown(diff_of_a_profile_with_itself_names_no_function, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(requests_add_up, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
