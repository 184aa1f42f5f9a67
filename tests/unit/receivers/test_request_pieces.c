/* SPDX-License-Identifier: Apache-2.0 */
/* Dense requests in pieces: all spans once, few pieces, however much each of them repeats. */
#include "receivers/shared/request_pieces.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPANS = 300000, RESOURCE = 1, SCOPE_SPANS = 2, SPANS_FIELD = 2, SCHEMA_URL = 3 };

static struct budget budget;

/* A request of that many empty spans, each under a schema_url, in ResourceSpans of `shared` bytes
 * each beside their spans. */
static struct buffer *dense_request(size_t spans, size_t resources, size_t shared)
{
    struct profile_bytes out = {0};
    struct profile_bytes text = {0};
    memset(profile_bytes_room(&text, shared + 1), 'a', shared);
    for (size_t i = 0; i < resources; i++) {
        size_t begin = out.size;
        for (size_t j = 0; j < spans / resources; j++)
            profile_bytes_field(&out, SPANS_FIELD, slice_of("", 0));
        profile_bytes_wrap(&out, begin, SCOPE_SPANS);
        profile_bytes_field(&out, SCHEMA_URL, slice_of(text.data, shared));
        profile_bytes_wrap(&out, begin, 1);
    }
    struct buffer *request = buffer_create(&budget, out.size);
    memcpy(request->data, out.data, out.size);
    request->size = out.size;
    profile_bytes_fini(&out);
    profile_bytes_fini(&text);
    return request;
}

/* Cuts it and checks what came out; the number of pieces. */
static size_t cut(size_t spans, size_t resources, size_t shared)
{
    budget_init(&budget, UINT64_MAX);
    struct buffer *request = dense_request(spans, resources, shared);
    struct otlp_figures figures;
    const char *reason;
    uint64_t items = 0;
    uint64_t bytes = 0;
    assert_true(otlp_check(TRACES, buffer_slice(request), &figures, &reason));
    uint64_t used = budget_used(&budget);
    struct request_pieces *pieces =
        request_pieces_cut(TRACES, request, buffer_slice(request), &figures, &budget);
    assert_non_null(pieces);
    for (size_t i = 0; i < pieces->count; i++) {
        assert_in_range(pieces->batches[i]->items, 1, spans);
        items += pieces->batches[i]->items;
        bytes += pieces->batches[i]->bytes;
    }
    size_t count = pieces->count;
    assert_int_equal(items, spans);
    assert_in_range(bytes, request->size, 5 * request->size);
    assert_in_range(budget_used(&budget) - used, 0, request->size);
    request_pieces_free(pieces);
    buffer_unref(request);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return count;
}

static void test_cuts_at_about_as_many_messages(void **state)
{
    (void)state;
    size_t pieces = cut(SPANS, 1, 10);
    assert_in_range(pieces, SPANS / DENSE_MESSAGES_MAX, SPANS / DENSE_MESSAGES_MAX + 2);
    assert_in_range(cut(SPANS, SPANS / 100, 10), SPANS / DENSE_MESSAGES_MAX,
                    2 * SPANS / DENSE_MESSAGES_MAX + 2);
}

/* What all spans share may be as long as all of them, or more. */
static void test_makes_few_pieces_of_a_long_resource(void **state)
{
    (void)state;
    assert_in_range(cut(SPANS, 1, 250000), 2, 20);
    assert_in_range(cut(SPANS, 1, 3000000), 2, 8);
    assert_in_range(cut(10 * SPANS, 1, 10000000), 2, 60);
    assert_in_range(cut(SPANS, 20, 100000), 2, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_at_about_as_many_messages),
        cmocka_unit_test(test_makes_few_pieces_of_a_long_resource),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
