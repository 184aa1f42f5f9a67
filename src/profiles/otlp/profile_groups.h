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
    struct profile_set resources; /* fields of ResourceProfiles but scope_profiles */
    struct profile_set scopes;    /* resource index, then fields of ScopeProfiles but profiles */
    struct profile_bytes body;    /* contents of Profile messages; the last may be incomplete */
    struct profile_bytes scratch; /* a resource or scope, until it is known to be new */
    struct profile_row *rows;
    uint32_t rows_count;
    uint32_t rows_capacity;
    uint64_t dropped_attributes; /* whose references are outside of the string table */
};

void profile_groups_init(struct profile_groups *groups, struct budget *budget);
void profile_groups_fini(struct profile_groups *groups);
void profile_groups_clear(struct profile_groups *groups);

/* The index of a resource equal to this one, which is added if it is new. Reads the whole resource:
 * call it once per ResourceProfiles, not once per Profile. */
uint32_t profile_groups_resource(struct profile_groups *groups,
                                 const struct profile_dictionary *dictionary,
                                 const struct profile_resource *resource);
/* The same for a scope in that resource: call it once per ScopeProfiles. */
uint32_t profile_groups_scope(struct profile_groups *groups,
                              const struct profile_dictionary *dictionary, uint32_t resource,
                              const struct profile_scope *scope);
/* Adds what was written to body since the last call, as a profile of that scope. */
void profile_groups_add(struct profile_groups *groups, uint32_t scope);

struct profile_groups_mark {
    uint32_t resources;
    uint32_t scopes;
    size_t body_bytes;
};
struct profile_groups_mark profile_groups_mark(const struct profile_groups *groups);
/* Removes what was added after the mark, none of which has been added as a profile; nothing may be
 * added until the next _clear. */
void profile_groups_cut(struct profile_groups *groups, const struct profile_groups_mark *mark);

/* Upper bound of the bytes held, besides what is written, for these numbers of messages. */
uint64_t profile_groups_index_bytes_max(uint64_t resources, uint64_t scopes, uint64_t profiles);

/* Upper bound of what _write writes, with one more profile to come from body. */
uint64_t profile_groups_bytes_max(const struct profile_groups *groups);
/* Writes all ResourceProfiles, as fields 1 of a request, to at, which has room. Returns the end. */
uint8_t *profile_groups_write(struct profile_groups *groups, uint8_t *at);
