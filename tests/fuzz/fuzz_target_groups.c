/* SPDX-License-Identifier: Apache-2.0 */
/* One byte that names the format, then target groups: what is taken has names of labels and its
 * source in each group; what is not has a reason. Nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/scrape/target_groups.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/utf8.h"

enum { BUDGET_BYTES = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct target_groups *groups)
{
    size_t targets = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct target_group *group = &groups->groups[i];
        bool has_source = false;
        targets += group->targets_count;
        for (size_t k = 0; k < group->labels_count; k++) {
            const struct prometheus_label *label = &group->labels[k];
            assert(label->name.size > 0 && utf8_is_valid(label->name));
            has_source |= slice_equal_text(label->name, "__meta_from") &&
                          slice_equal_text(label->value, "here");
        }
        assert(has_source);
    }
    assert(targets == groups->targets_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct prometheus_label source = {.name = slice_of_text("__meta_from"),
                                            .value = slice_of_text("here")};
    struct budget budget;
    struct target_groups groups;
    struct error error = {.text = ""};
    if (size == 0)
        return 0;
    budget_init(&budget, BUDGET_BYTES);
    struct slice text = slice_of(data + 1, size - 1);
    bool is_json = data[0] % 2 == 0;
    if (is_json ? target_groups_read_json(&groups, text, &source, &budget, &error)
                : target_groups_read_yaml(&groups, text, &source, &budget, &error))
        check(&groups);
    else
        assert(error.text[0] != '\0' && groups.count == 0);
    target_groups_free(&groups);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
