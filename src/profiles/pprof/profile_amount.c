/* SPDX-License-Identifier: Apache-2.0 */
/* Pure functions; any thread. */
#include "src/profiles/pprof/profile_amount.h"

#include <string.h>

static struct slice string_at(const struct profile_dictionary *dictionary,
                              struct profile_index index)
{
    return profile_has(dictionary, PROFILE_STRINGS, index) ? profile_string_at(dictionary, index)
                                                           : slice_of(NULL, 0);
}

struct profile_type_texts profile_type_texts_of(const struct profile_dictionary *dictionary,
                                                const struct profile *profile)
{
    return (struct profile_type_texts){
        .type = string_at(dictionary, profile->sample_type.type),
        .unit = string_at(dictionary, profile->sample_type.unit),
        .period_type = string_at(dictionary, profile->period_type.type),
        .period_unit = string_at(dictionary, profile->period_type.unit),
    };
}

bool profile_scope_has_cpu_time(const struct profile_dictionary *dictionary,
                                const struct profile_scope *scope)
{
    struct wire_reader profiles = wire_reader_of(scope->bytes);
    struct profile profile;
    bool has_cpu_time = false;
    while (!has_cpu_time && profile_next_profile(&profiles, &profile))
        has_cpu_time = profile_type_is_cpu_time(string_at(dictionary, profile.sample_type.type),
                                                string_at(dictionary, profile.sample_type.unit));
    return has_cpu_time;
}

uint64_t profile_unit_ns(const char *unit)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {
        {"nanoseconds", 1},
        {"microseconds", 1000},
        {"milliseconds", 1000 * 1000},
        {"seconds", 1000 * 1000 * 1000},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].unit) == 0)
            return units[i].ns;
    return 0;
}

uint64_t profile_cpu_factor(const struct profile_type *type, int64_t period)
{
    if (strcmp(type->name, "process_cpu") != 0 || strcmp(type->type, "cpu") != 0)
        return 0;
    return type->counts_periods ? (uint64_t)period : profile_unit_ns(type->unit);
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t profile_sample_total(const struct profile_sample *sample, uint64_t factor)
{
    struct profile_numbers_reader numbers = profile_numbers_read(&sample->values);
    uint64_t total = 0;
    uint64_t number;
    bool has_values = false;
    while (profile_numbers_next(&numbers, &number)) {
        has_values = true;
        if ((int64_t)number > 0)
            total = add_up(total, number);
    }
    if (!has_values)
        total = profile_numbers_count(&sample->timestamps);
    uint64_t product;
    return __builtin_mul_overflow(total, factor, &product) ? UINT64_MAX : product;
}
