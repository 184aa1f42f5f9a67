/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary that the profiles of a request share, as far as statements read and extend it: its
 * strings and attributes. Entries are only appended, when an equal one is not there yet; what
 * exists keeps its index. Read when it is first asked for. One owner, one thread at a time. */
#pragma once

#include "src/ottl/ottl_memory.h"
#include "src/ottl/ottl_value.h"

struct batch;
struct budget;
struct ottl_edits;
struct ottl_map;

/* A place of the index: an entry, plus 1 (0: none), and the upper half of its hash. */
struct ottl_index_place {
    uint32_t entry;
    uint32_t mark;
};

struct ottl_table {
    struct slice *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t loaded;                /* of the request */
    struct ottl_index_place *index; /* a hash table; NULL: nobody has asked for it */
    uint32_t mask;                  /* of the index */
    uint32_t indexed;               /* entries that have been looked at for it */
};

struct ottl_dictionary {
    struct ottl_memory memory;
    struct batch *batch; /* not owned */
    bool is_read;
    bool exists;
    uint64_t header_at; /* of the last Dictionary message */
    uint64_t content_at;
    uint64_t content_bytes;
    uint32_t links;
    struct ottl_table strings;
    struct ottl_table attributes; /* KeyValueAndUnit */
    uint64_t seed;                /* of the indices: clients cannot choose what collides */
};

struct ottl_dictionary_attribute {
    int32_t key;
    int32_t unit;
    struct slice value; /* encoded AnyValue */
};

void ottl_dictionary_init(struct ottl_dictionary *dictionary, struct budget *budget);
void ottl_dictionary_fini(struct ottl_dictionary *dictionary);
/* Begins with another request. */
void ottl_dictionary_open(struct ottl_dictionary *dictionary, struct batch *batch);
/* Before anything below. False: memory is refused. */
bool ottl_dictionary_read(struct ottl_dictionary *dictionary) __attribute__((warn_unused_result));
/* False: there is no such entry. */
bool ottl_dictionary_string(const struct ottl_dictionary *dictionary, int64_t index,
                            struct slice *ret);
bool ottl_dictionary_attribute(const struct ottl_dictionary *dictionary, int64_t index,
                               struct ottl_dictionary_attribute *ret);
/* The index of an equal entry, which is appended if there is none. False: memory is refused. */
bool ottl_dictionary_put_string(struct ottl_dictionary *dictionary, struct slice text, int32_t *ret)
    __attribute__((warn_unused_result));
/* The same of an attribute without a unit; scratch is for what comparing takes. */
bool ottl_dictionary_put_attribute(struct ottl_dictionary *dictionary, struct ottl_memory *scratch,
                                   int32_t key, const struct ottl_value *value, int32_t *ret)
    __attribute__((warn_unused_result));
/* Notes what has been appended as edits of the request. */
void ottl_dictionary_finish(struct ottl_dictionary *dictionary, struct ottl_edits *edits);
