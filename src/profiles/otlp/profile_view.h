/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over a profiles request, layout 1.10: resources, scopes, profiles, samples. An iterator
 * visits every profile; otherwise each level is a reader over the bytes of the one above:
 *     struct wire_reader reader = wire_reader_of(profile.bytes);
 *     while (profile_next_sample(&reader, &sample)) …
 * The request has passed otlp_check. Nothing is allocated. Plain values, any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_numbers.h"

struct profile_resource {
    struct slice bytes;    /* for profile_next_scope */
    struct slice resource; /* encoded Resource; no data: absent */
    struct slice schema_url;
};

struct profile_scope {
    struct slice bytes; /* for profile_next_profile */
    uint64_t profiles_count;
    struct slice scope; /* encoded InstrumentationScope; no data: absent */
    struct slice schema_url;
};

struct profile_value_type {
    bool is_set; /* the message is present; it may be empty */
    struct profile_index type;
    struct profile_index unit;
};

struct profile {
    struct slice bytes; /* for profile_next_sample */
    uint64_t samples_count;
    struct profile_value_type sample_type;
    struct profile_value_type period_type;
    uint64_t time_unix_ns;
    uint64_t duration_ns;
    int64_t period;
    struct slice id; /* 16 bytes or none */
    uint32_t dropped_attributes;
    struct slice payload_format;
    struct slice payload;
    struct profile_indices attributes;
};

struct profile_sample {
    struct slice bytes;
    struct profile_index stack;
    struct profile_index link;
    struct profile_indices attributes;
    struct profile_numbers values;     /* int64 */
    struct profile_numbers timestamps; /* fixed64, unix ns */
};

/* False at the end. The last occurrence of a singular field counts. */
bool profile_next_resource(struct wire_reader *request, struct profile_resource *ret_resource);
bool profile_next_scope(struct wire_reader *resource, struct profile_scope *ret_scope);
bool profile_next_profile(struct wire_reader *scope, struct profile *ret_profile);
bool profile_next_sample(struct wire_reader *profile, struct profile_sample *ret_sample);
/* The same without decoding it. */
bool profile_next_sample_bytes(struct wire_reader *profile, struct slice *ret_bytes);

/* Visits the profiles of a request in their order:
 *     struct profile_iterator at = profile_iterator_of(request);
 *     while (profile_iterator_next(&at)) … at.profile … */
struct profile_iterator {
    struct profile profile;
    struct profile_scope scope;
    struct profile_resource resource;
    struct wire_reader profiles; /* that are left in the scope */
    struct wire_reader scopes;
    struct wire_reader resources;
};

struct profile_iterator profile_iterator_of(struct slice request);
/* Visits those of one ResourceProfiles; `resource` stays empty. */
struct profile_iterator profile_iterator_of_resource(struct slice resource_profiles);
/* False at the end. */
bool profile_iterator_next(struct profile_iterator *at);

/* Decode one message. */
struct profile profile_of(struct slice bytes);
void profile_read_sample(struct slice bytes, struct profile_sample *ret_sample);
/* Decodes its link alone, which is cheaper. */
struct profile_index profile_link_of_sample(struct slice bytes);
