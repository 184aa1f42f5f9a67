/* SPDX-License-Identifier: Apache-2.0 */
/* Resource edits on any request that passes the walker: byte 0 is the signal, 1 where the body is
 * cut into two parts. The result is well-formed and has the same items. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/attributes/resource_edit.h"
#include "src/otlp/check.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ACTION(verb, name, type, expression, source)                                               \
    {                                                                                              \
        .action = (verb), .key = (name), .converted_type = (type), .pattern = (expression),        \
        .from_attribute = (source), .from_context = "",                                            \
    }
static const struct attribute_action_config configs[] = {
    ACTION("hash", "h", "", "^H", ""),
    ACTION("convert", "a", "string", "", ""),
    ACTION("upsert", "b", "", "", "a"),
    ACTION("convert", "b", "double", "", ""),
    ACTION("extract", "c", "", "(?P<d>[a-z]+)(?P<e>.*)", ""),
    ACTION("delete", "d", "", "x", ""),
    ACTION("convert", "e", "int", "", ""),
};

static void edit(struct batch *batch)
{
    struct error error;
    struct otlp_figures figures;
    const char *reason;
    struct resource_editor editor;
    struct attribute_actions *actions =
        attribute_actions_create(configs, sizeof(configs) / sizeof(configs[0]), &error);
    assert(actions != NULL);
    resource_editor_init(&editor, actions, NULL, NULL);
    struct batch *edited = resource_edit(&editor, batch);
    struct slice bytes = joined_parts(edited);
    bool is_fine = otlp_check(edited->signal, bytes, &figures, &reason);
    assert(is_fine);
    assert(figures.items == batch->items);
    assert(oracle_decodes(edited->signal, bytes));
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(edited);
    resource_editor_fini(&editor);
    attribute_actions_destroy(actions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    if (size < HEADER_BYTES)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % PROFILES);
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(signal, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct batch *batch = two_parts(signal, body, body.size * data[1] / 256);
    batch->items = figures.items;
    edit(batch);
    batch_unref(batch);
    return 0;
}
