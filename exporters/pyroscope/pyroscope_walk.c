/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the next part. Runs on the exporter's lane, or on the lane's helper. */
#include "exporters/pyroscope/pyroscope_walk.h"

#include "exporters/pyroscope/pyroscope_config.h"
#include "exporters/pyroscope/pyroscope_memory.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/profiles/otlp/opaque_profile.h"

#include <assert.h>
#include <stdio.h>

enum {
    PIECES = 16, /* of a part that the server finds too large */
    /* A name is the profile's number, the part's, and the piece's from 1. */
    PIECE_BITS = 8,
    PART_BITS = 24,
};
#define DICTIONARY_BYTES_MAX (256 * MIB)
/* time_nanos of a pprof is signed; a time may be moved by MEMORY_TIME_STEPS_MAX. */
#define PPROF_TIME_NS_MAX ((uint64_t)INT64_MAX - MEMORY_TIME_STEPS_MAX)

bool pyroscope_walk_open(struct pyroscope_walk *walk, const struct pyroscope_config *config,
                         const struct otlp_to_pprof_rules *rules, struct slice request,
                         struct budget *budget)
{
    *walk = (struct pyroscope_walk){.config = config, .resources = wire_reader_of(request)};
    arena_init_charged(&walk->arena, DICTIONARY_BYTES_MAX, budget);
    walk->rules = rules;
    walk->native_rules = *rules;
    walk->native_rules.labels.keeps_dots = true;
    walk->native_rules.labels.has_numbers = true;
    walk->native_rules.labels.takes_least = true;
    walk->native_rules.labels.keeps_service = true;
    walk->native_rules.labels.names_max = OTLP_LABEL_NAMES_MAX;
    walk->native_rules.labels.drops_count = 0;
    otlp_to_pprof_init(&walk->conversion, rules, &walk->dictionary, budget);
    otlp_to_pprof_bound(&walk->conversion, request.size);
    series_privates_init(&walk->privates, &walk->dictionary, budget);
    return profile_dictionary_open(&walk->dictionary, &walk->arena, request);
}

void pyroscope_walk_close(struct pyroscope_walk *walk)
{
    series_privates_fini(&walk->privates);
    otlp_to_pprof_fini(&walk->conversion);
    arena_clear(&walk->arena);
}

static struct slice text_at(const struct pyroscope_walk *walk, struct profile_index index)
{
    if (!profile_has(&walk->dictionary, PROFILE_STRINGS, index))
        return slice_of(NULL, 0);
    return profile_string_at(&walk->dictionary, index);
}

/* Steps to the next profile of the request, in its order. */
static bool step_to_profile(struct pyroscope_walk *walk)
{
    while (!profile_next_profile(&walk->profiles, &walk->profile)) {
        while (!profile_next_scope(&walk->scopes, &walk->scope)) {
            if (!profile_next_resource(&walk->resources, &walk->resource))
                return false;
            walk->scopes = wire_reader_of(walk->resource.bytes);
        }
        struct wire_reader profiles = wire_reader_of(walk->scope.bytes);
        struct profile profile;
        walk->profiles = profiles;
        walk->has_cpu_time = false;
        while (!walk->has_cpu_time && profile_next_profile(&profiles, &profile))
            walk->has_cpu_time = profile_type_is_cpu_time(text_at(walk, profile.sample_type.type),
                                                          text_at(walk, profile.sample_type.unit));
    }
    walk->profile_no++;
    return true;
}

static void begin_service(struct pyroscope_walk *walk, size_t service)
{
    assert(service < walk->conversion.services_count);
    walk->pieces_left = 0;
    walk->service_no = service;
    walk->service = walk->conversion.services[service];
    const struct otlp_to_pprof_source source = {
        .profile = &walk->profile, .type = &walk->type, .service = service};
    otlp_to_pprof_begin(&walk->conversion, &source);
}

/* Begins the next profile that is wanted. Counts those of times that the server would refuse. */
static bool begin_profile(struct pyroscope_walk *walk)
{
    const struct pyroscope_limits_config *limits = &walk->config->limits;
    const struct profile *profile = &walk->profile;
    for (;;) {
        if (!step_to_profile(walk))
            return false;
        if (walk->wants != NULL && !walk->wants(profile))
            continue;
        uint64_t now_ns = clock_wall_ns();
        uint64_t time_ns = profile->time_unix_ns;
        bool is_old = time_ns != 0 && limits->max_age_ns != 0 && time_ns < now_ns &&
                      now_ns - time_ns > limits->max_age_ns;
        bool is_new =
            time_ns > PPROF_TIME_NS_MAX || (limits->max_future_ns != 0 && time_ns > now_ns &&
                                            time_ns - now_ns > limits->max_future_ns);
        if (!is_old && !is_new)
            break;
        walk->odd_age_ns = (int64_t)(now_ns - time_ns);
        walk->too_old += is_old ? profile_items(profile) : 0;
        walk->too_new += is_new ? profile_items(profile) : 0;
    }
    const struct profile_type_texts texts = {
        .type = text_at(walk, profile->sample_type.type),
        .unit = text_at(walk, profile->sample_type.unit),
        .period_type = text_at(walk, profile->period_type.type),
        .period_unit = text_at(walk, profile->period_type.unit),
    };
    series_privates_read(&walk->privates, profile);
    walk->metric = series_private_name(&walk->privates);
    walk->label_names = profile_label_names(&walk->dictionary, profile);
    if (walk->metric.size > 0) { /* it came as a series, and keeps its names */
        otlp_to_pprof_set_rules(&walk->conversion, &walk->native_rules);
        walk->type = profile_type_plain(&texts);
        snprintf(walk->type.name, sizeof(walk->type.name), "%.*s", (int)walk->metric.size,
                 (const char *)walk->metric.data);
    } else {
        otlp_to_pprof_set_rules(&walk->conversion, walk->rules);
        walk->type = profile_type_canonical(&texts, profile->period > 0, walk->has_cpu_time);
    }
    walk->part_no = 0;
    walk->has_profile = true;
    otlp_to_pprof_services(&walk->conversion, profile);
    begin_service(walk, 0);
    return true;
}

/* Finds the next piece of a part; pieces have equal numbers of samples. */
static bool next_piece(struct pyroscope_walk *walk)
{
    assert(walk->pieces_left > 0);
    uint64_t samples = (walk->piece_samples + walk->pieces_left - 1) / walk->pieces_left;
    walk->pieces_left--;
    walk->piece_samples -= samples;
    walk->piece_no++;
    walk->name = (walk->name & ~(uint64_t)((1 << PIECE_BITS) - 1)) | walk->piece_no;
    walk->conversion.samples_max = samples;
    bool is_filled = otlp_to_pprof_fill(&walk->conversion);
    walk->conversion.samples_max = 0;
    return is_filled;
}

static bool next_part(struct pyroscope_walk *walk, const struct number_set *cut)
{
    if (walk->pieces_left > 0)
        return next_piece(walk);
    if (!otlp_to_pprof_fill(&walk->conversion))
        return false;
    walk->name = (walk->profile_no << PART_BITS | walk->part_no++) << PIECE_BITS;
    if (walk->conversion.samples == 1 || !number_set_has(cut, walk->name))
        return true;
    walk->piece_samples = walk->conversion.samples;
    walk->pieces_left = walk->piece_samples < PIECES ? walk->piece_samples : PIECES;
    walk->piece_no = 0;
    otlp_to_pprof_rewind(&walk->conversion);
    return next_piece(walk);
}

enum pyroscope_found pyroscope_walk_next(struct pyroscope_walk *walk, const struct number_set *cut)
{
    while (walk->has_profile || begin_profile(walk)) {
        if (walk->privates.has_failed)
            return PYROSCOPE_NO_MEMORY;
        if (profile_is_opaque(&walk->profile)) {
            walk->has_profile = false;
            walk->service = slice_of(NULL, 0);
            walk->name = walk->profile_no << (PART_BITS + PIECE_BITS);
            walk->items = profile_items(&walk->profile);
            snprintf(walk->type.name, sizeof(walk->type.name), "upload");
            return PYROSCOPE_FILE;
        }
        if (next_part(walk, cut)) {
            walk->items = walk->conversion.samples;
            return PYROSCOPE_PART;
        }
        if (otlp_to_pprof_has_failed(&walk->conversion))
            return PYROSCOPE_NO_MEMORY;
        if (walk->service_no + 1 < walk->conversion.services_count)
            begin_service(walk, walk->service_no + 1);
        else
            walk->has_profile = false;
    }
    return PYROSCOPE_END;
}

bool pyroscope_walk_is_piece(uint64_t name)
{
    assert(name != 0);
    return (name & ((1 << PIECE_BITS) - 1)) != 0;
}
