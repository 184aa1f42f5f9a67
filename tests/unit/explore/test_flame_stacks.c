/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees of many or deep stacks, which branch from each other anywhere, against a reference
 * that writes out every stack, sorts them, and counts what neighbours have in common. Functions
 * have several locations each, locations several lines, and samples any form. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/explore/flame_tree.h"
#include "src/otlp/json/json_output.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "tests/support/random_otlp.h"

enum { REQUESTS = 2, LINES_MAX = 4, LINKS = 3, WIDTH = 1600, ROOM = 64 };

struct shape {
    const char *name;
    uint32_t stacks;
    uint32_t depth; /* of locations, at most */
    uint32_t functions;
    uint32_t locations;
    uint32_t samples; /* of a request */
    bool is_linked;   /* only samples with the second link count */
};

struct location {
    uint32_t lines;
    uint32_t functions[LINES_MAX]; /* innermost first */
};

/* A stack of the reference. */
struct stack {
    uint32_t *names; /* functions, outermost first */
    uint32_t size;
    int64_t value;
};

/* Locations of the stacks of a request, outermost first. */
struct ways {
    uint32_t **all;
    uint32_t *sizes;
};

struct reference {
    struct stack *stacks;
    size_t count;
};

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, ROOM);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static struct ways ways_of(const struct shape *shape, struct random_source *random)
{
    struct ways ways = {
        .all = mem_alloc(shape->stacks * sizeof(ways.all[0])),
        .sizes = mem_alloc(shape->stacks * sizeof(ways.sizes[0])),
    };
    for (uint32_t i = 0; i < shape->stacks; i++) {
        uint32_t size = (uint32_t)(1 + random_below(random, shape->depth));
        uint32_t from = i > 0 ? (uint32_t)random_below(random, i) : 0;
        uint32_t shared = 0;
        ways.all[i] = mem_alloc(size * sizeof(uint32_t));
        ways.sizes[i] = size;
        if (i > 0 && random_below(random, 8) > 0)
            shared = (uint32_t)random_below(random, ways.sizes[from] + UINT64_C(1));
        for (uint32_t k = 0; k < size; k++)
            ways.all[i][k] = k < shared
                                 ? ways.all[from][k]
                                 : (uint32_t)random_below(random, shape->locations + UINT64_C(1));
    }
    return ways;
}

static void ways_fini(struct ways *ways, const struct shape *shape)
{
    for (uint32_t i = 0; i < shape->stacks; i++)
        mem_free(ways->all[i]);
    mem_free((void *)ways->all);
    mem_free(ways->sizes);
}

static void put_dictionary(struct profile_bytes *out, const struct shape *shape,
                           const struct location *locations, const struct ways *ways)
{
    static const char *const strings[] = {"", "lock", "count"};
    enum { STRINGS = 3 };
    char text[ROOM];
    for (uint32_t i = 0; i < STRINGS + shape->functions; i++) {
        snprintf(text, sizeof(text), "f%u", i - STRINGS);
        profile_bytes_field(out, 5, slice_of_text(i < STRINGS ? strings[i] : text));
    }
    for (uint32_t i = 0; i <= shape->functions; i++) {
        size_t begin = out->size;
        profile_bytes_number(out, 1, i > 0 ? STRINGS + i - 1 : 0);
        profile_bytes_wrap(out, begin, 3);
    }
    for (uint32_t i = 0; i <= shape->locations; i++) {
        size_t begin = out->size;
        for (uint32_t line = 0; i > 0 && line < locations[i].lines; line++) {
            size_t at = out->size;
            profile_bytes_number(out, 1, 1 + locations[i].functions[line]);
            profile_bytes_wrap(out, at, 3);
        }
        profile_bytes_wrap(out, begin, 2);
    }
    for (uint64_t i = 0; i < LINKS; i++) {
        const uint64_t ids[] = {7, 7, i};
        size_t begin = out->size;
        profile_bytes_field(out, 1, slice_of(ids, 16));
        profile_bytes_field(out, 2, slice_of(&ids[2], 8));
        profile_bytes_wrap(out, begin, 4);
    }
    for (uint32_t i = 0; i < shape->stacks; i++) {
        size_t begin = out->size;
        for (uint32_t k = ways->sizes[i]; k > 0; k--)
            put_varint(out, ways->all[i][k - 1]);
        profile_bytes_wrap(out, begin, 1);
        profile_bytes_wrap(out, begin, 7);
    }
}

static void put_values(struct profile_bytes *out, const int64_t *values, size_t count)
{
    size_t begin = out->size;
    for (size_t i = 0; i < count; i++)
        put_varint(out, (uint64_t)values[i]);
    profile_bytes_wrap(out, begin, 4);
}

/* Writes a sample in one of several forms. */
static void put_sample(struct profile_bytes *out, struct random_source *random, uint32_t stack,
                       uint32_t link, int64_t value)
{
    static const uint8_t attributes[] = {0, 0};
    const int64_t halves[] = {value - 3, 3};
    size_t begin = out->size;
    switch (random_below(random, 8)) {
    case 0: /* values first */
        put_values(out, &value, 1);
        profile_bytes_number(out, 3, link);
        profile_bytes_number(out, 1, stack);
        break;
    case 1: /* two values */
        profile_bytes_number(out, 1, stack);
        profile_bytes_number(out, 3, link);
        put_values(out, halves, 2);
        break;
    case 2: /* in two fields */
        profile_bytes_number(out, 1, stack);
        put_values(out, &halves[0], 1);
        put_values(out, &halves[1], 1);
        profile_bytes_number(out, 3, link);
        break;
    case 3: /* the last one of a field counts */
        profile_bytes_number(out, 1, 1 + (uint64_t)stack);
        profile_bytes_field(out, 1, slice_of(NULL, 0));
        out->size -= 2;
        out->data[out->size++] = 1 << 3;
        put_varint(out, stack);
        profile_bytes_number(out, 3, link);
        put_values(out, &value, 1);
        break;
    case 4: /* not packed */
        profile_bytes_number(out, 1, stack);
        profile_bytes_number(out, 3, link);
        profile_bytes_number(out, 4, (uint64_t)value);
        break;
    case 5:
        profile_bytes_number(out, 1, stack);
        profile_bytes_field(out, 2, slice_of(attributes, sizeof(attributes)));
        profile_bytes_number(out, 3, link);
        put_values(out, &value, 1);
        break;
    default:
        profile_bytes_number(out, 1, stack);
        profile_bytes_number(out, 3, link);
        put_values(out, &value, 1);
        break;
    }
    profile_bytes_wrap(out, begin, 2);
}

/* A request, whose samples are added to the reference, too. The caller frees its data. */
static struct slice request_of(const struct shape *shape, const struct location *locations,
                               struct random_source *random, struct reference *reference)
{
    struct profile_bytes out = {.data = NULL};
    struct ways ways = ways_of(shape, random);
    struct stack *stacks = reference->stacks + reference->count;
    for (uint32_t i = 0; i < shape->stacks; i++) {
        struct stack *stack = &stacks[i];
        *stack = (struct stack){
            .names = mem_alloc((size_t)ways.sizes[i] * LINES_MAX * sizeof(stack->names[0])),
        };
        for (uint32_t k = 0; k < ways.sizes[i]; k++) {
            const struct location *location = &locations[ways.all[i][k]];
            for (uint32_t line = location->lines; line > 0; line--)
                if (stack->size < FLAME_DEPTH_MAX)
                    stack->names[stack->size++] = location->functions[line - 1];
        }
    }
    profile_bytes_number(&out, 1, 1);
    profile_bytes_number(&out, 2, 2);
    profile_bytes_wrap(&out, 0, 1);
    for (uint32_t i = 0; i < shape->samples; i++) {
        uint32_t stack = (uint32_t)random_below(random, shape->stacks);
        uint32_t link = (uint32_t)random_below(random, LINKS);
        int64_t value = (int64_t)(4 + random_below(random, 1u << (4 * random_below(random, 6))));
        put_sample(&out, random, stack, link, value);
        if (!shape->is_linked || link == 2)
            stacks[stack].value += value;
    }
    reference->count += shape->stacks;
    for (unsigned level = 0; level < 3; level++)
        profile_bytes_wrap(&out, 0, level < 2 ? 2 : 1);
    size_t dictionary = out.size;
    put_dictionary(&out, shape, locations, &ways);
    profile_bytes_wrap(&out, dictionary, 2);
    ways_fini(&ways, shape);
    return slice_of(out.data, out.size);
}

static uint32_t common(const struct stack *a, const struct stack *b)
{
    uint32_t most = a->size < b->size ? a->size : b->size;
    uint32_t same = 0;
    while (same < most && a->names[same] == b->names[same])
        same++;
    return same;
}

static int compare_stacks(const void *a, const void *b)
{
    const struct stack *left = a;
    const struct stack *right = b;
    uint32_t same = common(left, right);
    if (same == left->size || same == right->size)
        return (left->size > right->size) - (left->size < right->size);
    return left->names[same] < right->names[same] ? -1 : 1;
}

/* Adds up stacks that are the same, and drops those without a value. */
static void reference_sort(struct reference *reference)
{
    struct stack *stacks = reference->stacks;
    size_t kept = 0;
    qsort(stacks, reference->count, sizeof(stacks[0]), compare_stacks);
    for (size_t i = 0; i < reference->count; i++) {
        bool is_same = kept > 0 && compare_stacks(&stacks[kept - 1], &stacks[i]) == 0;
        if (is_same)
            stacks[kept - 1].value += stacks[i].value;
        if (is_same || stacks[i].value == 0)
            mem_free(stacks[i].names);
        else
            stacks[kept++] = stacks[i];
    }
    reference->count = kept;
}

/* How many frames there are below the root, and how many of them have at least that value. */
static void count_frames(const struct reference *reference, double least, uint64_t *ret_all,
                         uint64_t *ret_wide)
{
    int64_t totals[FLAME_DEPTH_MAX + 1] = {0}; /* by depth, of the open path */
    uint32_t depth = 0;
    *ret_all = 0;
    *ret_wide = 0;
    for (size_t i = 0; i <= reference->count; i++) {
        const struct stack *stack = i < reference->count ? &reference->stacks[i] : NULL;
        uint32_t same = stack != NULL && i > 0 ? common(&stack[-1], stack) : 0;
        for (; depth > same; depth--) {
            *ret_wide += (double)totals[depth] >= least;
            totals[depth - 1] += totals[depth];
            totals[depth] = 0;
        }
        if (stack == NULL)
            break;
        *ret_all += stack->size - same;
        depth = stack->size;
        totals[depth] += stack->value;
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_folded(struct flame_tree *tree, const struct reference *reference)
{
    struct json_output output;
    json_output_init(&output, 256, SIZE_MAX, NULL);
    assert_int_equal(flame_tree_write_folded(tree, &output), FLAME_ADDED);
    json_output_put_byte(&output, '\0');
    struct buffer *text = json_output_take(&output);
    char *at = (char *)text->data;
    /* The root's own value has no line. */
    size_t first = reference->count > 0 && reference->stacks[0].size == 0;
    char **lines = mem_alloc((reference->count + 1) * sizeof(lines[0]));
    char **want = mem_alloc((reference->count + 1) * sizeof(want[0]));
    size_t count = 0;
    for (; *at != '\0'; count++) {
        assert_true(count + first < reference->count);
        lines[count] = at;
        at = strchr(at, '\n');
        *at++ = '\0';
    }
    assert_int_equal(count + first, reference->count);
    for (size_t i = 0; i < count; i++) {
        const struct stack *stack = &reference->stacks[first + i];
        size_t size = 0;
        want[i] = mem_alloc(stack->size * (size_t)12 + ROOM);
        want[i][0] = '\0';
        for (uint32_t k = 0; k < stack->size; k++)
            size += (size_t)sprintf(want[i] + size, "f%u%s", stack->names[k],
                                    k + 1 < stack->size ? ";" : "");
        sprintf(want[i] + size, " %" PRId64, stack->value);
    }
    qsort((void *)lines, count, sizeof(lines[0]), compare_lines);
    qsort((void *)want, count, sizeof(want[0]), compare_lines);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(lines[i], want[i]);
        mem_free(want[i]);
    }
    mem_free((void *)lines);
    mem_free((void *)want);
    buffer_unref(text);
}

static int64_t number_of(const struct buffer *json, const char *key)
{
    const char *at = strstr((const char *)json->data, key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

static void check_drawn(struct flame_tree *tree, const struct reference *reference)
{
    const struct flame_drawing drawing = {.width = WIDTH, .bytes_max = 64 << 20};
    struct json_output output;
    int64_t total = 0;
    uint64_t all;
    uint64_t wide;
    for (size_t i = 0; i < reference->count; i++)
        total += reference->stacks[i].value;
    count_frames(reference, 0.5 / WIDTH * (double)total, &all, &wide);
    json_output_init(&output, 256, SIZE_MAX, NULL);
    assert_int_equal(flame_tree_write(tree, &drawing, &output), FLAME_ADDED);
    json_output_put_byte(&output, '\0');
    struct buffer *json = json_output_take(&output);
    assert_int_equal(number_of(json, "\"total\":"), total);
    assert_int_equal(number_of(json, "\"pruned\":"), all - wide);
    buffer_unref(json);
}

static bool picks_last(void *arg, const uint8_t *trace_id, const uint8_t *span_id)
{
    assert_null(arg);
    return trace_id[0] == 7 && span_id[0] == 2;
}

/* A request with locations of its own, so that an index means something else in each. The caller
 * frees its data. */
static struct slice draw_request(const struct shape *shape, struct random_source *random,
                                 struct reference *reference)
{
    struct location *locations = mem_zalloc((shape->locations + (size_t)1) * sizeof(locations[0]));
    for (uint32_t i = 1; i <= shape->locations; i++) {
        bool has_one = random_below(random, 4) > 0;
        locations[i].lines = has_one ? 1 : 1 + (uint32_t)random_below(random, LINES_MAX);
        for (uint32_t line = 0; line < locations[i].lines; line++)
            locations[i].functions[line] = (uint32_t)random_below(random, shape->functions);
    }
    struct slice bytes = request_of(shape, locations, random, reference);
    mem_free(locations);
    return bytes;
}

static void free_request(struct slice request)
{
    struct profile_bytes done = {.data = (uint8_t *)(uintptr_t)request.data};
    profile_bytes_fini(&done);
}

static struct reference reference_of(size_t stacks)
{
    return (struct reference){.stacks = mem_alloc(stacks * sizeof(struct stack))};
}

static void reference_fini(struct reference *reference)
{
    for (size_t i = 0; i < reference->count; i++)
        mem_free(reference->stacks[i].names);
    mem_free(reference->stacks);
}

static void stacks_add_up_as_they_do_in_a_reference(void **state)
{
    static const struct shape shapes[] = {
        {"few names", 400, 12, 3, 9, 4000, false},
        {"many stacks", 6000, 40, 90, 300, 9000, false},
        {"few of many", 6000, 40, 90, 300, 300, false},
        {"wide", 5000, 3, 4000, 20000, 9000, false},
        {"deep", 24, 5000, 200, 150, 300, false},
        {"deeper than the limit", 12, 9000, 7, 20, 200, false},
        {"of some spans", 3000, 60, 500, 2000, 9000, true},
        {"one", 1, 5000, 40, 40, 10, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *shape = &shapes[i];
        struct random_source random = {.state = i + 1};
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        const struct flame_settings settings = {
            .budget = &budget, .bytes_max = 256 << 20, .sides = 1};
        const struct flame_filter filter = {
            .picks = shape->is_linked ? picks_last : NULL,
            .end_unix_ns = UINT64_MAX,
        };
        struct reference reference = reference_of(REQUESTS * (size_t)shape->stacks);
        struct flame_tree *tree = flame_tree_create(&settings);
        for (unsigned request = 0; request < REQUESTS; request++) {
            struct slice bytes = draw_request(shape, &random, &reference);
            assert_int_equal(flame_tree_add(tree, 0, bytes, &filter), FLAME_ADDED);
            free_request(bytes);
        }
        reference_sort(&reference);
        check_folded(tree, &reference);
        check_drawn(tree, &reference);
        reference_fini(&reference);
        flame_tree_destroy(tree);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

static bool stops(void *arg)
{
    unsigned *left = arg;
    return (*left)-- == 0;
}

/* Wherever memory or time ends, nothing is lost or kept. */
static void many_stacks_are_refused_as_a_whole(void **state)
{
    static const struct shape shape = {"many", 9000, 60, 400, 900, 12000, false};
    static const struct flame_filter filter = {.end_unix_ns = UINT64_MAX};
    struct random_source random = {.state = 99};
    struct reference reference = reference_of(shape.stacks);
    struct slice bytes = draw_request(&shape, &random, &reference);
    unsigned results[3] = {0};
    (void)state;
    for (unsigned limit = 0; limit < 64; limit++) {
        struct budget budget;
        unsigned left = limit;
        budget_init(&budget, limit % 2 == 0 ? (uint64_t)limit << 18 : UINT64_MAX);
        const struct flame_settings settings = {
            .budget = &budget,
            .bytes_max = limit % 4 == 1 ? (uint64_t)limit << 18 : 256 << 20,
            .sides = 1,
            .must_stop = limit % 4 == 3 ? stops : NULL,
            .arg = &left,
        };
        struct flame_tree *tree = flame_tree_create(&settings);
        enum flame_result result =
            tree != NULL ? flame_tree_add(tree, 0, bytes, &filter) : FLAME_NO_MEMORY;
        results[result]++;
        flame_tree_destroy(tree);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    assert_in_range(results[FLAME_ADDED], 1, 40);
    assert_in_range(results[FLAME_NO_MEMORY], 10, 40);
    assert_in_range(results[FLAME_STOPPED], 5, 16);
    free_request(bytes);
    reference_fini(&reference);
}

/* Stacks without frames are the root's: the tree has no other node when more are expected. */
static void empty_stacks_are_refused_as_a_whole(void **state)
{
    enum { STEP_BYTES = 512, STEPS = 2048 };
    static const struct shape shape = {"empty", 3000, 1, 1, 0, 9000, false};
    static const struct flame_filter filter = {.end_unix_ns = UINT64_MAX};
    struct random_source random = {.state = 7};
    struct reference reference = reference_of(shape.stacks);
    struct slice bytes = draw_request(&shape, &random, &reference);
    unsigned results[3] = {0};
    (void)state;
    for (unsigned limit = 0; limit < STEPS; limit++) {
        const struct flame_settings settings = {.bytes_max = (uint64_t)limit * STEP_BYTES,
                                                .sides = 1};
        struct flame_tree *tree = flame_tree_create(&settings);
        results[tree != NULL ? flame_tree_add(tree, 0, bytes, &filter) : FLAME_NO_MEMORY]++;
        flame_tree_destroy(tree);
    }
    assert_in_range(results[FLAME_ADDED], 1, STEPS);
    assert_in_range(results[FLAME_NO_MEMORY], 1, STEPS);
    free_request(bytes);
    reference_fini(&reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_add_up_as_they_do_in_a_reference),
        cmocka_unit_test(many_stacks_are_refused_as_a_whole),
        cmocka_unit_test(empty_stacks_are_refused_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
