/* SPDX-License-Identifier: Apache-2.0 */
/* The resource_profiles of a request that is being built: equal resources (with their schema_url)
 * are one, and so are equal scopes in one resource. Profile messages are never merged. One owner,
 * one thread at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_set.h"

struct budget;
struct profile_dictionary;
struct profile_resource;
struct profile_scope;

struct profile_row {
    uint32_t scope;
    uint32_t next; /* in its scope, while writing */
    size_t end;    /* of its content in body; it begins where the one before ends */
};

struct profile_groups {
    struct profile_set resources; /* fields of ResourceProfiles but for scope_profiles */
    struct profile_set
        scopes; /* index of the resource, then fields of ScopeProfiles but profiles */
    struct profile_bytes body;    /* contents of Profile messages; the last may still be written */
    struct profile_bytes scratch; /* a resource or scope, until it is known to be new */
    struct profile_row *rows;
    uint32_t rows_count;
    uint32_t rows_capacity;
    uint64_t dropped_attributes; /* whose references lead nowhere */
};

void profile_groups_init(struct profile_groups *groups, struct budget *budget);
void profile_groups_fini(struct profile_groups *groups);
void profile_groups_clear(struct profile_groups *groups);

/* The index of a resource equal to this one, which is added if it is new. Takes as long as the
 * resource has bytes: call it once per ResourceProfiles, not once per Profile. */
uint32_t profile_groups_resource(struct profile_groups *groups,
                                 const struct profile_dictionary *dictionary,
                                 const struct profile_resource *resource);
/* The same of a scope in that resource: once per ScopeProfiles. */
uint32_t profile_groups_scope(struct profile_groups *groups,
                              const struct profile_dictionary *dictionary, uint32_t resource,
                              const struct profile_scope *scope);
/* What was added to body since the last time is a profile of that scope. */
void profile_groups_add(struct profile_groups *groups, uint32_t scope);

struct profile_groups_mark {
    uint32_t resources;
    uint32_t scopes;
    size_t body_bytes;
};
struct profile_groups_mark profile_groups_mark(const struct profile_groups *groups);
/* Forgets what came after the mark, none of which has been added as a profile; then nothing may be
 * added before the next _clear. */
void profile_groups_cut(struct profile_groups *groups, const struct profile_groups_mark *mark);

/* Most bytes that are held, besides what is written, for so many messages of each kind. */
uint64_t profile_groups_index_bytes_max(uint64_t resources, uint64_t scopes, uint64_t profiles);

/* Never less than what _write will write, with one more profile to come from body. */
uint64_t profile_groups_bytes_max(const struct profile_groups *groups);
/* Writes all ResourceProfiles, as fields 1 of a request, where there is room. Returns the end. */
uint8_t *profile_groups_write(struct profile_groups *groups, uint8_t *at);
