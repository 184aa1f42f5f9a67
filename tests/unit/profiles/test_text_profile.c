/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in text formats and tries, as samples of a pprof profile. */
#include "src/profiles/pyroscope/text_profile.h"

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pyroscope/stack_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct stack_profile_head head = {
    .type = "cpu",
    .unit = "nanoseconds",
    .period_type = "cpu",
    .period_unit = "nanoseconds",
    .period = 10,
    .time_ns = 7,
    .scale = 10,
};

/* "root;leaf value|…" in the order of the samples. */
static void describe_samples(const struct pprof *pprof, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; i < pprof->samples_count; i++) {
        const struct pprof_sample *sample = &pprof->samples[i];
        for (size_t k = sample->locations_count; k > 0; k--) {
            uint32_t function = pprof->locations[sample->locations[k - 1] - 1].lines[0].function;
            struct slice name = pprof->strings[pprof->functions[function - 1].name];
            used +=
                (size_t)snprintf(to + used, size - used, "%.*s%s", (int)name.size,
                                 name.size > 0 ? (const char *)name.data : "", k > 1 ? ";" : "");
        }
        used += (size_t)snprintf(to + used, size - used, " %lld|", (long long)sample->values[0]);
    }
}

static void describe(enum text_format format, struct slice body, char *to, size_t size)
{
    struct stack_profile profile;
    struct error error = {.text = ""};
    struct arena arena;
    struct pprof pprof;
    stack_profile_init(&profile, &head, NULL);
    if (!text_profile_read(format, body, &profile, &error)) {
        snprintf(to, size, "! %s", error.text);
    } else {
        struct buffer *bytes = stack_profile_take(&profile);
        arena_init(&arena, 1 << 20);
        assert_true(pprof_read(&arena, buffer_slice(bytes), &pprof, &error));
        assert_int_equal(pprof.time_ns, 7);
        assert_int_equal(pprof.period, 10);
        describe_samples(&pprof, to, size);
        arena_clear(&arena);
        buffer_unref(bytes);
    }
    stack_profile_fini(&profile);
}

static void texts_become_samples(void **state)
{
    static const struct {
        enum text_format format;
        const char *body;
        const char *samples;
    } cases[] = {
        {TEXT_FOLDED, "main;work 3\nmain 2\n", "main;work 30|main 20|"},
        {TEXT_FOLDED, "main;work 3", "main;work 30|"},
        {TEXT_FOLDED, "main;my work 3\r\n", "main;my work 30|"},
        {TEXT_FOLDED, "main; 1\n;a 1\na;;b 1\n", "main 10|;a 10|a;;b 10|"},
        {TEXT_FOLDED, "nothing\n\nmain 0\nmain +4\n", "main 40|"},
        {TEXT_FOLDED, " 3\n", " 30|"},
        {TEXT_FOLDED, "", ""},
        {TEXT_FOLDED, "main x\n", "! found \"x\" after a stack, expected its count"},
        {TEXT_FOLDED, "main -1\n", "! found \"-1\" after a stack, expected its count"},
        {TEXT_FOLDED, "main 99999999999999999999\n",
         "! found \"99999999999999999999\" after a stack, expected its count"},
        {TEXT_FOLDED, "main 9223372036854775807\n",
         "! a value times the period does not fit in 64 bits"},
        {TEXT_FOLDED, "ma\xffin 1\n", "! a stack has bytes that are not UTF-8"},
        {TEXT_LINES, "main;work\nmain;work\n\nmain 2\r\n", "main;work 10|main;work 10|main 2 10|"},
    };
    char found[ERROR_TEXT_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        describe(cases[i].format, slice_of_text(cases[i].body), found, sizeof(found));
        assert_string_equal(found, cases[i].samples);
    }
}

static void tries_and_trees_become_samples(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        enum text_format format;
        const char *body;
        size_t size;
        const char *samples;
    } cases[] = {
        {TEXT_TRIE, BYTES("\0\0\1\4main\1\2\5;work\5\0\2;a\2\1\1b\3\0"),
         "main 10|main;work 50|main;a 20|main;ab 30|"},
        {TEXT_TREE, BYTES("\0\0\1\4main\1\2\4work\5\0\1a\2\1\1b\3\0"),
         "main 10|main;work 50|main;a 20|main;a;b 30|"},
        {TEXT_TREE, BYTES("\0\0\2\1a\1\0\1b\2\0"), "a 10|b 20|"},
        {TEXT_TRIE, BYTES(""), ""},
        {TEXT_TRIE, BYTES("\0\0\1"), "! unexpected EOF: a node is truncated"},
        {TEXT_TREE, BYTES(""), "! unexpected EOF: a node is truncated"},
        {TEXT_TREE, BYTES("\5abc"), "! unexpected EOF: a node is truncated"},
        {TEXT_TREE, BYTES("\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
         "! unexpected EOF: a node is truncated"},
    };
    char found[ERROR_TEXT_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        describe(cases[i].format, slice_of(cases[i].body, cases[i].size), found, sizeof(found));
        assert_string_equal(found, cases[i].samples);
    }
}

static void depth_is_bounded(void **state)
{
    static uint8_t nodes[3 * 70000];
    static char stack[3 * 5000];
    char found[ERROR_TEXT_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof(nodes); i += 3)
        nodes[i + 2] = 1;
    describe(TEXT_TRIE, slice_of(nodes, sizeof(nodes)), found, sizeof(found));
    assert_string_equal(found, "! nodes nested deeper than 65536");
    for (size_t i = 0; i < 5000; i++)
        memcpy(stack + 2 * i, "a;", 2);
    memcpy(stack + 10000, "b 1", 3);
    describe(TEXT_FOLDED, slice_of(stack, 10003), found, sizeof(found));
    assert_string_equal(found, "! a stack has more than 4096 frames");
}

/* Few bytes of a trie spell out to many: one long name above `children` short ones. */
static bool is_trie_taken(unsigned children)
{
    enum { NAME_BYTES = 1 << 19, LEAF_BYTES = 4 };
    struct stack_profile profile;
    struct error error = {.text = ""};
    uint8_t *body = mem_zalloc(NAME_BYTES + 16 + children * LEAF_BYTES);
    size_t size = 3;
    memcpy(body, "\x80\x80\x20", size);
    memset(body + size, 'a', NAME_BYTES);
    size += NAME_BYTES;
    body[size++] = 0;
    body[size++] = (uint8_t)(children & 0x7f) | 0x80;
    body[size++] = (uint8_t)(children >> 7);
    for (unsigned i = 0; i < children; i++, size += LEAF_BYTES)
        memcpy(body + size,
               "\x01"
               "b\x01\x00",
               LEAF_BYTES);
    stack_profile_init(&profile, &head, NULL);
    bool is_taken = text_profile_read(TEXT_TRIE, slice_of(body, size), &profile, &error);
    assert_true(is_taken == (strstr(error.text, "all stacks together") == NULL));
    stack_profile_fini(&profile);
    mem_free(body);
    return is_taken;
}

static void what_a_trie_spells_out_to_is_bounded(void **state)
{
    (void)state;
    assert_true(is_trie_taken(127));
    assert_false(is_trie_taken(128));
}

/* Nodes of a tree, each the only child of the one before and with a value of its own. */
static bool is_chain_taken(unsigned nodes)
{
    enum { NODE_BYTES = 43, NAME_BYTES = 40 };
    struct stack_profile profile;
    struct error error = {.text = ""};
    uint8_t *body = mem_alloc(3 + (size_t)nodes * NODE_BYTES);
    memcpy(body, "\0\0\1", 3);
    for (unsigned i = 0; i < nodes; i++) {
        uint8_t *node = body + 3 + (size_t)i * NODE_BYTES;
        memset(node, 'a', NODE_BYTES);
        node[0] = NAME_BYTES;
        node[1 + NAME_BYTES] = 1;
        node[2 + NAME_BYTES] = i + 1 < nodes;
    }
    stack_profile_init(&profile, &head, NULL);
    bool is_taken = text_profile_read(TEXT_TREE, slice_of(body, 3 + (size_t)nodes * NODE_BYTES),
                                      &profile, &error);
    assert_true(is_taken == (strstr(error.text, "256 times") == NULL));
    stack_profile_fini(&profile);
    mem_free(body);
    return is_taken;
}

static void what_a_tree_spells_out_to_is_bounded_by_its_bytes(void **state)
{
    (void)state;
    assert_true(is_chain_taken(100));
    assert_true(is_chain_taken(512));
    assert_false(is_chain_taken(1200));
}

static void memory_is_charged_and_may_be_refused(void **state)
{
    struct budget budget;
    struct error error = {.text = ""};
    struct stack_profile profile;
    (void)state;
    budget_init(&budget, 4096);
    stack_profile_init(&profile, &head, &budget);
    bool is_read = true;
    for (unsigned i = 0; is_read && i < 10000; i++) {
        char line[64];
        int size = snprintf(line, sizeof(line), "main;function-%u 1", i);
        is_read = text_profile_read(TEXT_FOLDED, slice_of(line, (size_t)size), &profile, &error);
    }
    assert_false(is_read);
    assert_true(profile.has_no_memory);
    stack_profile_fini(&profile);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_samples),
        cmocka_unit_test(tries_and_trees_become_samples),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(what_a_trie_spells_out_to_is_bounded),
        cmocka_unit_test(what_a_tree_spells_out_to_is_bounded_by_its_bytes),
        cmocka_unit_test(memory_is_charged_and_may_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
