/* SPDX-License-Identifier: Apache-2.0 */
/* Reads stacks. A node of a trie and of a tree is a uvarint size of its name, the name, uvarint
 * value, uvarint number of children, then these; they differ in how names are joined. Pure
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

/* The walk through a trie. */
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

static uint64_t read_varint(struct trie_walk *walk)
{
    return wire_read_varint(&walk->reader, WIRE_VARINT_BYTES_MAX);
}

static bool no_memory(struct trie_walk *walk, struct error *error)
{
    walk->profile->has_no_memory = true;
    return error_set(error, "no memory");
}

/* Adds the stack of a node, which then is the parent of the nodes that follow. */
static bool read_node(struct trie_walk *walk, struct error *error)
{
    struct wire_reader *reader = &walk->reader;
    struct budget *budget = walk->profile->budget;
    size_t path_before = walk->path.size;
    uint64_t size = read_varint(walk);
    if (reader->failure != NULL || size > (uint64_t)(reader->end - reader->at))
        return error_set(error, "unexpected EOF: a node is truncated");
    if (walk->path.size + size >= UPLOAD_STACK_BYTES_MAX)
        return error_set(error, "a stack is longer than 1 MiB");
    /* The root of a tree has no name, and no ';' follows it. */
    bool is_named = size > 0 && (!walk->is_tree || walk->depth > 0);
    bool is_joined = walk->is_tree && walk->depth > 1;
    if ((is_joined && !byte_run_append(&walk->path, budget, slice_of_text(";"))) ||
        (is_named && !byte_run_append(&walk->path, budget, slice_of(reader->at, size))))
        return no_memory(walk, error);
    reader->at += size;
    uint64_t value = read_varint(walk);
    uint64_t children = read_varint(walk);
    if (reader->failure != NULL)
        return error_set(error, "unexpected EOF: a node is truncated");
    if (!add(walk->profile, byte_run_slice(&walk->path), value, error))
        return false;
    if (walk->depth == UPLOAD_NODES_DEPTH_MAX)
        return error_set(error, "nodes nested deeper than 65536");
    struct trie_parent *parents =
        scratch_room(&walk->parents, budget, (walk->depth + 1) * sizeof(parents[0]));
    if (parents == NULL)
        return no_memory(walk, error);
    parents[walk->depth++] = (struct trie_parent){.children = children, .path_before = path_before};
    return true;
}

/* Reads one root and everything below it. */
static bool read_nodes(bool is_tree, struct slice body, struct stack_profile *profile,
                       struct error *error)
{
    struct trie_walk walk = {
        .reader = wire_reader_of(body), .profile = profile, .is_tree = is_tree};
    bool is_read;
    /* Few bytes can have many long stacks. */
    profile->bytes_max = UPLOAD_SPELT_GROWTH_MAX * (uint64_t)body.size + UPLOAD_SPELT_BYTES_MORE;
    do {
        is_read = read_node(&walk, error);
        /* Leaves the nodes whose children have all been read. */
        struct trie_parent *parents = walk.parents.memory;
        while (is_read && walk.depth > 0 && parents[walk.depth - 1].children == 0)
            walk.path.size = parents[--walk.depth].path_before;
        if (is_read && walk.depth > 0)
            parents[walk.depth - 1].children--;
    } while (is_read && walk.depth > 0);
    scratch_fini(&walk.path.scratch, profile->budget);
    scratch_fini(&walk.parents, profile->budget);
    return is_read;
}

bool text_profile_read(enum text_format format, struct slice body, struct stack_profile *profile,
                       struct error *error)
{
    assert(profile->failure == NULL);
    struct slice line;
    switch (format) {
    case TEXT_FOLDED:
        while (next_line(&body, &line)) {
            const uint8_t *blank = line.size > 0 ? memrchr(line.data, ' ', line.size) : NULL;
            if (blank == NULL) /* such lines are ignored, as on the server */
                continue;
            struct slice stack = slice_of(line.data, (size_t)(blank - line.data));
            struct slice text = slice_of(blank + 1, line.size - stack.size - 1);
            uint64_t count = 0;
            size_t i = text.size > 1 && text.data[0] == '+';
            bool is_number = i < text.size;
            for (; is_number && i < text.size; i++)
                is_number = text.data[i] >= '0' && text.data[i] <= '9' &&
                            !__builtin_mul_overflow(count, 10u, &count) &&
                            !__builtin_add_overflow(count, (uint64_t)(text.data[i] - '0'), &count);
            if (!is_number)
                return error_set(error, "found \"%.*s\" after a stack, expected its count",
                                 (int)(text.size < SHOWN_BYTES_MAX ? text.size : SHOWN_BYTES_MAX),
                                 text.size > 0 ? (const char *)text.data : "");
            if (!add(profile, stack, count, error))
                return false;
        }
        return true;
    case TEXT_LINES:
        while (next_line(&body, &line))
            if (line.size > 0 && !add(profile, line, 1, error))
                return false;
        return true;
    case TEXT_TRIE:
        return body.size == 0 || read_nodes(false, body, profile, error);
    case TEXT_TREE:
        return read_nodes(true, body, profile, error);
    case TEXT_FORMATS:
        break;
    }
    return error_set(error, "unknown format");
}
