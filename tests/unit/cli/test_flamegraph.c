/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph is well-formed and self-contained, and no name can inject anything into it. */
#include "src/cli/profile/flamegraph.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/cli/profile/profile_report.h"
#include "tests/unit/cli/support.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPEN_MAX = 16, NAME_MAX_BYTES = 32 };

/* Enough of XML for what we write: tags that match, attributes in double quotes, known entities,
 * CDATA. */
struct checker {
    const char *at;
    char open[OPEN_MAX][NAME_MAX_BYTES];
    size_t depth;
    size_t elements;
};

static bool take(struct checker *checker, const char *text)
{
    size_t size = strlen(text);
    if (strncmp(checker->at, text, size) != 0)
        return false;
    checker->at += size;
    return true;
}

static bool take_name(struct checker *checker, char *ret_name)
{
    size_t size = 0;
    while (isalnum((unsigned char)*checker->at) || *checker->at == '-' || *checker->at == ':') {
        if (size + 1 == NAME_MAX_BYTES)
            return false;
        ret_name[size++] = *checker->at++;
    }
    ret_name[size] = '\0';
    return size > 0;
}

static bool take_character(struct checker *checker, char until)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    if (*checker->at == '&') {
        for (size_t i = 0; i < 5; i++)
            if (take(checker, entities[i]))
                return true;
        return false;
    }
    bool is_fine = *checker->at != '\0' && *checker->at != '<' && *checker->at != until &&
                   ((unsigned char)*checker->at >= 0x20 || *checker->at == '\n');
    checker->at += is_fine;
    return is_fine;
}

static bool take_attributes(struct checker *checker)
{
    char name[NAME_MAX_BYTES];
    while (take(checker, " ")) {
        if (!take_name(checker, name) || !take(checker, "=\""))
            return false;
        while (*checker->at != '"')
            if (!take_character(checker, '"'))
                return false;
        checker->at++;
    }
    return true;
}

static bool take_tag(struct checker *checker)
{
    char name[NAME_MAX_BYTES];
    if (take(checker, "</"))
        return take_name(checker, name) && take(checker, ">") && checker->depth > 0 &&
               strcmp(checker->open[--checker->depth], name) == 0;
    if (!take(checker, "<") || !take_name(checker, name) || !take_attributes(checker))
        return false;
    checker->elements++;
    if (take(checker, "/>"))
        return true;
    if (!take(checker, ">") || checker->depth == OPEN_MAX)
        return false;
    strcpy(checker->open[checker->depth++], name);
    return true;
}

/* How many elements there are; 0: it is not well-formed. */
static size_t well_formed_elements(const char *text)
{
    struct checker checker = {.at = text};
    if (!take(&checker, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        return 0;
    do {
        bool is_fine = true;
        if (take(&checker, "<![CDATA[")) {
            const char *end = strstr(checker.at, "]]>");
            is_fine = end != NULL;
            checker.at = is_fine ? end + 3 : checker.at;
        } else {
            is_fine = *checker.at == '<' ? take_tag(&checker) : take_character(&checker, '\0');
        }
        if (!is_fine)
            return 0;
    } while (checker.depth > 0);
    return strcmp(checker.at, "\n") == 0 ? checker.elements : 0;
}

static bool draw(struct captured *captured, const char *name, int64_t scale, const char *title)
{
    static struct report report;
    struct error error;
    struct buffer *request = small_otlp(scale, name);
    report_init(&report);
    assert_true(report_add(&report, buffer_slice(request), &error));
    buffer_unref(request);
    captured_open(captured);
    const struct flamegraph graph = {
        .report = &report, .type = report_find_type(&report, "cpu"), .title = slice_of_text(title)};
    bool is_drawn = flamegraph_write(captured->out, &graph);
    captured_text(captured);
    report_fini(&report);
    return is_drawn;
}

static void a_picture_has_a_frame_for_every_call(void **state)
{
    struct captured svg;
    (void)state;
    assert_true(draw(&svg, "work", 1, "cpu.pb.gz"));
    /* svg, style, script, background, four texts, and four elements for each of six frames */
    assert_int_equal(well_formed_elements(svg.text), 8 + 6 * 4);
    assert_non_null(strstr(svg.text, "<title>main (1.00s, 100.00%; itself 0)</title>"));
    assert_non_null(strstr(svg.text, "<title>work (600.00ms, 60.00%; itself 600.00ms)</title>"));
    assert_non_null(strstr(svg.text, "<title>0x1234 (shop) (100.00ms, 10.00%; itself 100.00ms)"));
    free(svg.text);
}

static void nothing_is_loaded_from_elsewhere(void **state)
{
    static const char *const words[] = {"href", "src=", "@import", "url(", "fetch", "https:"};
    struct captured svg;
    (void)state;
    assert_true(draw(&svg, "work", 1, "cpu"));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_null(strstr(svg.text, words[i]));
    const char *only = strstr(svg.text, "http:");
    assert_non_null(only);
    assert_int_equal(strncmp(only, "http://www.w3.org/2000/svg\"", 27), 0);
    assert_null(strstr(only + 1, "http:"));
    free(svg.text);
}

static void names_cannot_put_elements_or_scripts_into_it(void **state)
{
    static const char *const names[] = {
        "</text><script>alert(1)</script>",
        "\" onload=\"alert(1)",
        "]]></script><image/>",
        "<!--",
        "std::vector<int>& operator<<",
        "\x1b[0m\x01\xff",
        "' onclick='x",
        "&lt;&bogus;",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct captured svg;
        assert_true(draw(&svg, names[i], 1, names[i]));
        assert_int_equal(well_formed_elements(svg.text), 8 + 6 * 4);
        assert_null(strstr(svg.text, "alert(1)</script>"));
        free(svg.text);
    }
}

static void without_positive_values_nothing_is_drawn(void **state)
{
    struct captured svg;
    (void)state;
    assert_false(draw(&svg, "work", -1, "cpu"));
    assert_int_equal(svg.size, 0);
    free(svg.text);
}

static void the_checker_itself_finds_what_is_wrong(void **state)
{
    static const char *const broken[] = {"<a>",        "<a></b>",  "<a b=c/>",
                                         "<a>&x;</a>", "<a/><b/>", "<a b=\"<\"/>"};
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        snprintf(text, sizeof(text), "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n%s\n", broken[i]);
        assert_int_equal(well_formed_elements(text), 0);
    }
    snprintf(text, sizeof(text), "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"&lt;\"/>\n");
    assert_int_equal(well_formed_elements(text), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_has_a_frame_for_every_call),
        cmocka_unit_test(nothing_is_loaded_from_elsewhere),
        cmocka_unit_test(names_cannot_put_elements_or_scripts_into_it),
        cmocka_unit_test(without_positive_values_nothing_is_drawn),
        cmocka_unit_test(the_checker_itself_finds_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
