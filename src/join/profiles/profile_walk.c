/* SPDX-License-Identifier: Apache-2.0 */
/* Walking. Messages are opened on the way down and closed on the way up; those in which nothing
 * changes leave nothing in the list of splices. Runs on the owner's thread. */
#include "src/join/profiles/profile_walk.h"

#include <assert.h>

enum {
    REQUEST_RESOURCES = 1,
    REQUEST_DICTIONARY = 2,
    RESOURCE = 1,
    CHILDREN = 2, /* scopes, profiles */
};

enum { IN_REQUEST, IN_RESOURCE, IN_SCOPE };

struct profile_walk profile_walk_of(struct splice_list *splices, struct slice request,
                                    const struct profile_bytes *additions)
{
    struct profile_walk walk = {.splices = splices, .additions = additions, .request = request};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == REQUEST_DICTIONARY && field.type == WIRE_BYTES)
            walk.dictionary = field.whole.data;
    assert(reader.failure == NULL);
    walk.readers[IN_REQUEST] = wire_reader_of(request);
    return walk;
}

static uint64_t place_of(const struct profile_walk *walk, const uint8_t *data)
{
    return (uint64_t)(data - walk->request.data);
}

/* Where the last Resource of a ResourceProfiles begins; several count as the last. */
static const uint8_t *find_resource(struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    const uint8_t *resource = NULL;
    while (wire_next_field(&reader, &field))
        if (field.number == RESOURCE)
            resource = field.whole.data;
    assert(reader.failure == NULL);
    return resource;
}

/* Into the message of the current field. */
static void open_message(struct profile_walk *walk)
{
    unsigned level = ++walk->level;
    assert(level <= IN_SCOPE);
    walk->contents[level] = walk->field.bytes;
    walk->readers[level] = wire_reader_of(walk->field.bytes);
    walk->opened[level] = splice_open(walk->splices, place_of(walk, walk->field.whole.data),
                                      place_of(walk, walk->field.bytes.data));
}

static void close_message(struct profile_walk *walk, uint32_t number)
{
    unsigned level = walk->level--;
    assert(walk->readers[level].failure == NULL);
    splice_close(walk->splices, walk->opened[level], number, walk->contents[level].size);
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
}

bool profile_walk_next(struct profile_walk *walk)
{
    struct wire_field *field = &walk->field;
    for (;;) {
        bool has_field = wire_next_field(&walk->readers[walk->level], field);
        bool is_message = has_field && field->type == WIRE_BYTES;
        switch (walk->level) {
        case IN_REQUEST:
            if (!has_field) {
                if (walk->dictionary == NULL)
                    add_additions(walk, false, walk->request.size);
                assert(walk->readers[IN_REQUEST].failure == NULL);
                return false;
            }
            if (is_message && field->number == REQUEST_RESOURCES) {
                open_message(walk);
                walk->around = field->bytes;
                walk->resource = find_resource(walk->around);
            } else if (is_message && field->whole.data == walk->dictionary) {
                open_message(walk);
                add_additions(walk, true, place_of(walk, field->bytes.data) + field->bytes.size);
                close_message(walk, REQUEST_DICTIONARY);
            }
            break;
        case IN_RESOURCE:
            if (!has_field) {
                close_message(walk, REQUEST_RESOURCES);
            } else if (field->whole.data == walk->resource) {
                walk->is_resource = true;
                walk->at = place_of(walk, field->whole.data);
                return true;
            } else if (is_message && field->number == CHILDREN) {
                open_message(walk);
            }
            break;
        case IN_SCOPE:
        default:
            if (!has_field) {
                close_message(walk, CHILDREN);
            } else if (is_message && field->number == CHILDREN) {
                walk->is_resource = false;
                walk->at = place_of(walk, field->whole.data);
                return true;
            }
            break;
        }
    }
}
