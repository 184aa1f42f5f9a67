/* SPDX-License-Identifier: Apache-2.0 */
/* One byte that names the format, then stacks: what is taken is a pprof profile that reads, with as
 * many samples as stacks; what is not has a reason. Nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pyroscope/stack_profile.h"
#include "src/profiles/pyroscope/text_profile.h"

enum { BUDGET_BYTES = 8 << 20, ARENA_BYTES_MAX = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct stack_profile *profile)
{
    struct arena arena;
    struct pprof pprof;
    struct error error = {.text = ""};
    struct buffer *bytes = stack_profile_take(profile);
    if (bytes == NULL)
        return;
    arena_init(&arena, ARENA_BYTES_MAX);
    bool is_read = pprof_read(&arena, buffer_slice(bytes), &pprof, &error);
    assert(is_read);
    assert(pprof.samples_count == profile->stacks);
    assert(pprof.locations_count == profile->locations);
    arena_clear(&arena);
    buffer_unref(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct stack_profile_head head = {
        .type = "cpu", .unit = "nanoseconds", .scale = 3};
    struct budget budget;
    struct stack_profile profile;
    struct error error = {.text = ""};
    if (size == 0)
        return 0;
    budget_init(&budget, BUDGET_BYTES);
    stack_profile_init(&profile, &head, &budget);
    if (text_profile_read((enum text_format)(data[0] % TEXT_FORMATS), slice_of(data + 1, size - 1),
                          &profile, &error))
        check(&profile);
    else
        assert(profile.has_no_memory || error.text[0] != '\0');
    stack_profile_fini(&profile);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
