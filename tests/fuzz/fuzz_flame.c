/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees: bytes 0 to 3 are the query, the rest a request. Whatever is asked, the tree is within
 * its limits, its rows are as many as their counts say, and nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/explore/flame_tree.h"
#include "src/otlp/json/json_output.h"
#include "src/profiles/otlp/profile_normalize.h"

enum { SETTINGS = 4, BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool picks(void *arg, const uint8_t *trace_id, const uint8_t *span_id)
{
    (void)arg;
    return (trace_id[15] ^ span_id[7]) % 2 == 0;
}

static bool stops(void *arg)
{
    return (*(unsigned *)arg)-- == 0;
}

/* Each row has as many below it as it says. */
static void check_tree(struct slice json, unsigned sides)
{
    const char *key = ",\"tree\":[";
    const char *at = memmem(json.data, json.size, key, strlen(key));
    int64_t missing = 1;
    assert(at != NULL);
    for (at += strlen(key); *at == '[' || *at == ','; at++) {
        at += *at == ',';
        assert(*at == '[');
        for (unsigned numbers = sides == 1 ? 4 : 6; numbers > 0; numbers--) {
            char *end;
            int64_t number = strtoll(at + 1, &end, 10);
            assert(*end == (numbers > 1 ? ',' : ']'));
            at = end;
            missing += numbers > 1 ? 0 : number;
        }
        missing--;
    }
    assert(*at == ']');
    assert(missing == 0);
}

static void draw(const uint8_t *settings, struct slice request)
{
    static const char *const types[] = {"", "cpu", "text_1", "lock"};
    struct budget budget;
    unsigned patience = settings[2] % 16;
    budget_init(&budget, UINT64_MAX);
    const struct flame_settings wanted = {
        .budget = &budget,
        .bytes_max = settings[3] % 4 == 3 ? (uint64_t)settings[3] << 10 : 16 << 20,
        .sides = 1 + settings[0] % 2,
        .type = slice_of_text(types[settings[1] % 4]),
        .must_stop = settings[2] >= 0xf0 ? stops : NULL,
        .arg = &patience,
    };
    const struct flame_filter filter = {
        .picks = settings[0] & 2 ? picks : NULL,
        .service = settings[0] & 4 ? slice_of_text("value 1") : slice_of(NULL, 0),
        .start_unix_ns = settings[0] & 8 ? 1u << 20 : 0,
        .end_unix_ns = settings[0] & 16 ? 1u << 29 : UINT64_MAX,
    };
    struct flame_tree *tree = flame_tree_create(&wanted);
    enum flame_result result = FLAME_NO_MEMORY;
    if (tree != NULL)
        result = flame_tree_add(tree, 0, request, &filter);
    if (result == FLAME_ADDED)
        result = flame_tree_add(tree, wanted.sides - 1, request, &filter);
    for (unsigned view = 0; view <= FLAME_VIEW_TOP && result == FLAME_ADDED; view++) {
        const struct flame_drawing drawing = {
            .view = (enum flame_view)view,
            .width = settings[1] * 16u,
            .function = slice_of_text("text 3"),
            .bytes_max = settings[3] % 4 == 2 ? settings[3] * 64u : 1 << 20,
        };
        struct json_output output;
        json_output_init(&output, 256, 2 << 20, NULL);
        result = flame_tree_write(tree, &drawing, &output);
        json_output_put_byte(&output, '\0');
        struct buffer *json = json_output_take(&output);
        assert(json != NULL);
        assert(result != FLAME_ADDED || json->size <= drawing.bytes_max + 1);
        if (result == FLAME_ADDED && view == FLAME_VIEW_TREE)
            check_tree(buffer_slice(json), wanted.sides);
        buffer_unref(json);
    }
    if (result == FLAME_ADDED) {
        struct json_output output;
        json_output_init(&output, 256, 2 << 20, NULL);
        (void)flame_tree_write_folded(tree, &output);
        buffer_unref(json_output_take(&output));
    }
    flame_tree_destroy(tree);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_normalized normalized;
    if (size < SETTINGS || size > BYTES_MAX)
        return 0;
    struct buffer *request = buffer_create(NULL, size - SETTINGS);
    if (size > SETTINGS)
        memcpy(request->data, data + SETTINGS, size - SETTINGS);
    request->size = size - SETTINGS;
    if (profile_normalize(request, buffer_slice(request), LAYOUT_1_10, NULL, &normalized) ==
        PROFILES_TAKEN) {
        draw(data, normalized.request);
        buffer_unref(normalized.owner);
    }
    buffer_unref(request);
    return 0;
}
