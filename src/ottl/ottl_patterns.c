/* SPDX-License-Identifier: Apache-2.0 */
/* A few patterns, looked up one by one. Runs on the processor's thread. */
#include "src/ottl/ottl_patterns.h"

#include "src/base/mem.h"
#include "src/base/pattern.h"

enum { KEPT = sizeof(((struct ottl_patterns *)NULL)->kept) / sizeof(struct ottl_made_pattern) };

static void destroy(struct ottl_made_pattern *made)
{
    pattern_destroy(made->pattern);
    mem_free(made->text);
    *made = (struct ottl_made_pattern){.pattern = NULL};
}

bool ottl_patterns_take(struct ottl_patterns *patterns, struct slice text, bool is_glob,
                        struct ottl_made_pattern *ret)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct ottl_made_pattern *made = &patterns->kept[i];
        if (made->pattern == NULL || made->is_glob != is_glob ||
            !slice_equal(slice_of(made->text, made->size), text))
            continue;
        *ret = *made;
        *made = (struct ottl_made_pattern){.pattern = NULL};
        return true;
    }
    return false;
}

void ottl_patterns_put(struct ottl_patterns *patterns, struct ottl_made_pattern made)
{
    struct ottl_made_pattern *place = NULL;
    for (unsigned i = 0; i < KEPT && place == NULL; i++)
        if (patterns->kept[i].pattern == NULL)
            place = &patterns->kept[i];
    if (place == NULL) {
        place = &patterns->kept[patterns->next];
        patterns->next = (patterns->next + 1) % KEPT;
        destroy(place);
    }
    *place = made;
}

void ottl_patterns_clear(struct ottl_patterns *patterns)
{
    for (unsigned i = 0; i < KEPT; i++)
        destroy(&patterns->kept[i]);
}
