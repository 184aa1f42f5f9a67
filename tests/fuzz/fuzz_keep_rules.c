/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of keep as JSON, which any client may send to the control of trace_profile_join: what is
 * taken is written and read back as the same, anything else changes nothing and is reported. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "processors/trace_profile_join/trace_profile_rules.h"
#include "src/base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t word_of(const struct keep_rules *rules)
{
    struct keep_switch keep;
    keep_switch_init(&keep, rules);
    return atomic_load(&keep.word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct keep_rules rules = {.slow_ns = 7, .keeps_unlinked = true};
    struct keep_rules again = {.slow_ns = 9};
    uint64_t before = word_of(&rules);
    struct error error = {.text = ""};
    if (!keep_rules_from_json(slice_of(data, size), &rules, &error)) {
        assert(word_of(&rules) == before);
        assert(error.text[0] != '\0');
        return 0;
    }
    struct keep_json json = keep_rules_to_json(&rules);
    bool is_read = keep_rules_from_json(slice_of_text(json.text), &again, &error);
    assert(is_read);
    assert(word_of(&again) == word_of(&rules));
    (void)is_read;
    return 0;
}
