/* SPDX-License-Identifier: Apache-2.0 */
/* Writes stacks as pprof: each name is one function and one location, as on the server. Runs on the
 * thread of the owner. */
#include "src/profiles/pyroscope/stack_profile.h"

#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <string.h>

#define PROFILE_BYTES_MAX (512 * MIB)

static struct pprof_value_type value_type(struct pprof_writer *writer, const char *type,
                                          const char *unit)
{
    return (struct pprof_value_type){.type = pprof_writer_string(writer, slice_of_text(type)),
                                     .unit = pprof_writer_string(writer, slice_of_text(unit))};
}

void stack_profile_init(struct stack_profile *profile, const struct stack_profile_head *head,
                        struct budget *budget)
{
    assert(head->scale > 0);
    *profile = (struct stack_profile){
        .budget = budget, .scale = head->scale, .bytes_max = UPLOAD_SPELT_BYTES_MAX};
    struct pprof_writer *writer = &profile->writer;
    pprof_writer_init(writer, budget, PROFILE_BYTES_MAX);
    pprof_writer_value_type(writer, PPROF_SAMPLE_TYPE, value_type(writer, head->type, head->unit));
    if (head->period > 0) {
        pprof_writer_value_type(writer, PPROF_PERIOD_TYPE,
                                value_type(writer, head->period_type, head->period_unit));
        pprof_writer_number(writer, PPROF_PERIOD, head->period);
    }
    pprof_writer_number(writer, PPROF_TIME, head->time_ns);
}

void stack_profile_fini(struct stack_profile *profile)
{
    pprof_writer_fini(&profile->writer);
    scratch_fini(&profile->ids, profile->budget);
    scratch_fini(&profile->frames, profile->budget);
}

static bool fail(struct stack_profile *profile, const char *what)
{
    profile->failure = what;
    return false;
}

bool stack_profile_add(struct stack_profile *profile, struct slice stack, uint64_t value)
{
    assert(profile->failure == NULL);
    uint64_t scaled;
    if (value == 0)
        return true;
    profile->bytes += stack.size;
    if (__builtin_mul_overflow(value, profile->scale, &scaled) || scaled > INT64_MAX)
        return fail(profile, "a value times the period does not fit in 64 bits");
    if (stack.size > UPLOAD_STACK_BYTES_MAX || profile->bytes > UPLOAD_SPELT_BYTES_MAX)
        return fail(profile, "a stack is longer than 1 MiB, or all stacks together than 64 MiB");
    if (profile->bytes > profile->bytes_max)
        return fail(profile, "all stacks together, each with all its names, are more than 256 "
                             "times as long as the body");
    if (++profile->stacks > UPLOAD_STACKS_MAX)
        return fail(profile, "more than 4000000 stacks");
    profile->is_not_utf8 = otlp_text_valid(stack) < stack.size;
    if (profile->is_not_utf8)
        return fail(profile, "a stack has bytes that are not UTF-8");
    size_t count = stack.size > 0 && stack.data[stack.size - 1] != ';';
    for (size_t i = 0; i < stack.size; i++)
        count += stack.data[i] == ';';
    if (count > UPLOAD_DEPTH_MAX)
        return fail(profile, "a stack has more than 4096 frames");

    /* The locations of the names between semicolons, the last one first. */
    struct pprof_writer *writer = &profile->writer;
    uint32_t *frames =
        scratch_room(&profile->frames, profile->budget, (count + 1) * sizeof(frames[0]));
    size_t begin = 0;
    profile->has_no_memory |= frames == NULL;
    for (size_t i = count; i > 0 && !profile->has_no_memory; i--) {
        const uint8_t *end = memchr(stack.data + begin, ';', stack.size - begin);
        size_t size = end != NULL ? (size_t)(end - stack.data) - begin : stack.size - begin;
        uint32_t text = pprof_writer_string(writer, slice_of(stack.data + begin, size));
        uint32_t *ids = scratch_room(&profile->ids, profile->budget, (text + 1) * sizeof(ids[0]));
        begin += size + 1;
        if (ids == NULL) {
            profile->has_no_memory = true;
            break;
        }
        if (ids[text] == 0) {
            uint32_t id = ++profile->locations;
            const struct pprof_function function = {.id = id, .name = text, .system_name = text};
            const struct pprof_line line = {.function = id};
            const struct pprof_location location = {.id = id, .lines = &line, .lines_count = 1};
            pprof_writer_function(writer, &function);
            pprof_writer_location(writer, &location);
            ids[text] = id;
        }
        frames[i - 1] = ids[text];
    }
    if (profile->has_no_memory)
        return false;
    const int64_t number = (int64_t)scaled;
    const struct pprof_sample sample = {
        .locations = frames, .locations_count = count, .values = &number};
    pprof_writer_sample(writer, &sample, 1);
    profile->has_no_memory |= writer->has_failed;
    return !profile->has_no_memory;
}

struct buffer *stack_profile_take(struct stack_profile *profile)
{
    assert(profile->failure == NULL);
    return pprof_writer_take(&profile->writer);
}
