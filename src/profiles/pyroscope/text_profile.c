/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of stacks. A trie and a tree are the same bytes: uvarint size of a name, the name,
 * uvarint value, uvarint number of children, then these; they differ in what joins the names. Pure
 * functions; any thread. */
#include "src/profiles/pyroscope/text_profile.h"

#include "src/base/error.h"
#include "src/otlp/wire.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"
#include "src/profiles/pyroscope/stack_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

static bool add(struct stack_profile *profile, struct slice stack, uint64_t value,
                struct error *error)
{
    if (stack_profile_add(profile, stack, value))
        return true;
    return error_set(error, "%s", profile->failure != NULL ? profile->failure : "no memory");
}

/* A whole number, which may have a sign. */
static bool read_count(struct slice text, uint64_t *ret_count, struct error *error)
{
    uint64_t count = 0;
    size_t i = text.size > 1 && text.data[0] == '+';
    bool is_number = i < text.size;
    for (; is_number && i < text.size; i++)
        is_number = text.data[i] >= '0' && text.data[i] <= '9' &&
                    !__builtin_mul_overflow(count, 10u, &count) &&
                    !__builtin_add_overflow(count, (uint64_t)(text.data[i] - '0'), &count);
    if (!is_number)
        return error_set(error, "found \"%.*s\" behind a stack, expected how often it was seen",
                         (int)(text.size < SHOWN_BYTES_MAX ? text.size : SHOWN_BYTES_MAX),
                         text.size > 0 ? (const char *)text.data : "");
    *ret_count = count;
    return true;
}

static bool next_line(struct slice *rest, struct slice *ret_line)
{
    const uint8_t *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;
    size_t size = end != NULL ? (size_t)(end - rest->data) : rest->size;
    if (rest->size == 0)
        return false;
    *ret_line = slice_of(rest->data, size);
    if (size > 0 && rest->data[size - 1] == '\r')
        ret_line->size--;
    size_t used = size + (end != NULL);
    *rest = slice_of(rest->data + used, rest->size - used);
    return true;
}

/* Lines without a blank say nothing, as on the server. */
static bool read_folded(struct slice body, struct stack_profile *profile, struct error *error)
{
    struct slice line;
    uint64_t count = 0;
    assert(error != NULL);
    while (next_line(&body, &line)) {
        const uint8_t *blank = line.size > 0 ? memrchr(line.data, ' ', line.size) : NULL;
        if (blank == NULL)
            continue;
        size_t size = (size_t)(blank - line.data);
        if (!read_count(slice_of(blank + 1, line.size - size - 1), &count, error) ||
            !add(profile, slice_of(line.data, size), count, error))
            return false;
    }
    return true;
}

static bool read_lines(struct slice body, struct stack_profile *profile, struct error *error)
{
    struct slice line;
    assert(error != NULL);
    while (next_line(&body, &line))
        if (line.size > 0 && !add(profile, line, 1, error))
            return false;
    return true;
}

/* Where the walk through a trie is. */
struct trie_walk {
    struct wire_reader reader;
    struct stack_profile *profile;
    struct byte_run path;   /* names up to here, joined */
    struct scratch parents; /* struct trie_parent, the root first */
    size_t depth;
    bool is_tree;
};

struct trie_parent {
    uint64_t children;  /* still to come */
    size_t path_before; /* size of the path without this node's name */
};

static struct trie_parent *parents_of(const struct trie_walk *walk)
{
    return walk->parents.memory;
}

static uint64_t read_varint(struct trie_walk *walk)
{
    return wire_read_varint(&walk->reader, WIRE_VARINT_BYTES_MAX);
}

/* The node's name onto the path; a tree's root has none, and its children no ';' before theirs. */
static bool append_name(struct trie_walk *walk, struct error *error)
{
    uint64_t size = read_varint(walk);
    struct wire_reader *reader = &walk->reader;
    struct budget *budget = walk->profile->budget;
    if (reader->failure != NULL || size > (uint64_t)(reader->end - reader->at))
        return error_set(error, "unexpected EOF: a node is torn");
    if (walk->path.size + size >= UPLOAD_STACK_BYTES_MAX)
        return error_set(error, "a stack is longer than 1 MiB");
    bool is_named = size > 0 && (!walk->is_tree || walk->depth > 0);
    bool is_joined = walk->is_tree && walk->depth > 1;
    if ((is_joined && !byte_run_append(&walk->path, budget, slice_of_text(";"))) ||
        (is_named && !byte_run_append(&walk->path, budget, slice_of(reader->at, size)))) {
        walk->profile->has_no_memory = true;
        return error_set(error, "no memory");
    }
    reader->at += size;
    return true;
}

/* A node becomes the parent of those that follow. */
static bool descend(struct trie_walk *walk, uint64_t children, size_t path_before,
                    struct error *error)
{
    if (walk->depth == UPLOAD_NODES_DEPTH_MAX)
        return error_set(error, "more than 65536 nodes one below the other");
    struct trie_parent *parents =
        scratch_room(&walk->parents, walk->profile->budget, (walk->depth + 1) * sizeof(parents[0]));
    if (parents == NULL) {
        walk->profile->has_no_memory = true;
        return error_set(error, "no memory");
    }
    parents[walk->depth++] = (struct trie_parent){.children = children, .path_before = path_before};
    return true;
}

/* Up from nodes whose children have all come. */
static void ascend(struct trie_walk *walk)
{
    struct trie_parent *parents = parents_of(walk);
    while (walk->depth > 0 && parents[walk->depth - 1].children == 0)
        walk->path.size = parents[--walk->depth].path_before;
    if (walk->depth > 0)
        parents[walk->depth - 1].children--;
}

static bool read_node(struct trie_walk *walk, struct error *error)
{
    size_t path_before = walk->path.size;
    if (!append_name(walk, error))
        return false;
    uint64_t value = read_varint(walk);
    uint64_t children = read_varint(walk);
    if (walk->reader.failure != NULL)
        return error_set(error, "unexpected EOF: a node is torn");
    if (!add(walk->profile, byte_run_slice(&walk->path), value, error))
        return false;
    return descend(walk, children, path_before, error);
}

/* One root, and everything below it. */
static bool read_nodes(bool is_tree, struct slice body, struct stack_profile *profile,
                       struct error *error)
{
    struct trie_walk walk = {
        .reader = wire_reader_of(body), .profile = profile, .is_tree = is_tree};
    bool is_fine = true;
    do {
        is_fine = read_node(&walk, error);
        if (is_fine)
            ascend(&walk);
    } while (is_fine && walk.depth > 0);
    scratch_fini(&walk.path.scratch, profile->budget);
    scratch_fini(&walk.parents, profile->budget);
    return is_fine;
}

bool text_profile_read(enum text_format format, struct slice body, struct stack_profile *profile,
                       struct error *error)
{
    assert(profile->failure == NULL);
    switch (format) {
    case TEXT_FOLDED:
        return read_folded(body, profile, error);
    case TEXT_LINES:
        return read_lines(body, profile, error);
    case TEXT_TRIE:
        return body.size == 0 || read_nodes(false, body, profile, error);
    case TEXT_TREE:
        return read_nodes(true, body, profile, error);
    case TEXT_FORMATS:
        break;
    }
    return error_set(error, "unknown format");
}
