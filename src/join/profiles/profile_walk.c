/* SPDX-License-Identifier: Apache-2.0 */
/* Walking. Messages are opened on the way down and closed on the way up; those in which nothing
 * changes leave nothing in the list. Runs on the caller's thread. */
#include "src/join/profiles/profile_walk.h"

#include <assert.h>

enum {
    REQUEST_RESOURCES = 1,
    REQUEST_DICTIONARY = 2,
    RESOURCE = 1,
    CHILDREN = 2, /* scopes, profiles */
};

/* `at` is where content begins in the request. */
static void walk_scope(const struct profile_walk *walk, struct slice content, uint64_t at)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == CHILDREN && field.type == WIRE_BYTES)
            walk->on_profile(walk->arg, &field, at + (uint64_t)(field.whole.data - content.data));
    assert(reader.failure == NULL);
}

static void walk_resource(const struct profile_walk *walk, struct slice content, uint64_t at)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        uint64_t begin = at + (uint64_t)(field.whole.data - content.data);
        if (field.number == RESOURCE && walk->on_resource != NULL)
            walk->on_resource(walk->arg, &field, begin, content);
        if (field.number != CHILDREN || field.type != WIRE_BYTES)
            continue;
        uint64_t body = at + (uint64_t)(field.bytes.data - content.data);
        size_t opened = splice_open(walk->splices, begin, body);
        walk_scope(walk, field.bytes, body);
        splice_close(walk->splices, opened, CHILDREN, field.bytes.size);
    }
    assert(reader.failure == NULL);
}

/* Where the last dictionary begins; NULL: there is none. */
static const uint8_t *last_dictionary(struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    const uint8_t *last = NULL;
    while (wire_next_field(&reader, &field))
        if (field.number == REQUEST_DICTIONARY && field.type == WIRE_BYTES)
            last = field.whole.data;
    assert(reader.failure == NULL);
    return last;
}

/* At the end of the dictionary; or, where the request has none, in one of their own. */
static void add_additions(struct profile_walk *walk, bool has_dictionary, uint64_t at)
{
    struct profile_bytes *inserts = &walk->splices->inserts;
    const struct profile_bytes *additions = walk->additions;
    size_t begin = inserts->size;
    if (additions == NULL || additions->size == 0)
        return;
    profile_bytes_add(inserts, slice_of(additions->data, additions->size));
    if (!has_dictionary)
        profile_bytes_wrap(inserts, begin, REQUEST_DICTIONARY);
    splice_add_from(walk->splices, at, 0, begin);
    walk->additions_placed = additions->size;
    assert(inserts->size > begin);
}

void profile_walk_request(struct profile_walk *walk, struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    const uint8_t *dictionary = last_dictionary(request);
    assert(walk->on_profile != NULL);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        uint64_t begin = (uint64_t)(field.whole.data - request.data);
        uint64_t body = (uint64_t)(field.bytes.data - request.data);
        size_t opened = splice_open(walk->splices, begin, body);
        if (field.number == REQUEST_RESOURCES)
            walk_resource(walk, field.bytes, body);
        else if (field.whole.data == dictionary)
            add_additions(walk, true, body + field.bytes.size);
        splice_close(walk->splices, opened, field.number, field.bytes.size);
    }
    if (dictionary == NULL)
        add_additions(walk, false, request.size);
    assert(reader.failure == NULL);
}
