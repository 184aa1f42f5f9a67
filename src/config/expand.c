/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces references. A scalar that is one reference as a whole becomes the retrieved text parsed
 * as YAML and keeps the text as well, so that a string field gets "0123" and a number field 83; a
 * reference within other text is replaced by the verbatim text. Main thread. */
#include "src/config/expand.h"

#include <assert.h>
#include <string.h>

#include "src/config/config_limits.h"
#include "src/config/loader.h"
#include "src/config/location.h"
#include "src/config/merge.h"
#include "src/config/yaml_tree.h"

/* One scalar being expanded. */
struct expansion {
    struct loader *loader;
    const struct path *path;
    struct position position;
    const char *reference; /* the scalar as written */
    size_t depth;
    bool is_quiet; /* failures are not reported */
};

static void report(const struct expansion *expansion, const char *text)
{
    if (!expansion->is_quiet)
        loader_problem(expansion->loader, expansion->position, expansion->path, "%s", text);
}

/* False: the limit is exceeded. Reported once, even if is_quiet; all further references then fail
 * silently. */
static bool charge(const struct expansion *expansion, size_t bytes)
{
    struct loader *loader = expansion->loader;
    if (!loader->is_exhausted && loader_charge_expanded(loader, bytes))
        return true;
    if (!loader->is_exhausted)
        loader_problem(loader, expansion->position, expansion->path,
                       "references expand to more than %d bytes in total",
                       CONFIG_EXPANDED_BYTES_MAX);
    loader->is_exhausted = true;
    return false;
}

/* The innermost reference after the last candidate without "${", with its "${" and "}". An odd
 * number of "$" before a candidate escapes it and ends the search, as in the Go collector. */
static bool find_reference(const char *text, struct slice *ret_reference)
{
    for (const char *close = strchr(text, '}'); close != NULL; close = strchr(text, '}')) {
        const char *open = NULL;
        for (const char *at = text; at + 1 < close; at++)
            if (at[0] == '$' && at[1] == '{')
                open = at;
        if (open == NULL) {
            text = close + 1;
            continue;
        }
        size_t dollars = 0;
        while (open - dollars > text && open[-1 - (ptrdiff_t)dollars] == '$')
            dollars++;
        *ret_reference = slice_of(open, (size_t)(close + 1 - open));
        return dollars % 2 == 0;
    }
    return false;
}

static bool retrieve(const struct expansion *expansion, struct slice reference,
                     struct retrieved *ret_retrieved)
{
    struct error error;
    struct loader *loader = expansion->loader;
    assert(reference.size >= 3);
    if (!charge(expansion, reference.size))
        return false;
    char *uri = location_of_reference(loader, slice_of(reference.data + 2, reference.size - 3));
    if (strchr(strchr(uri, ':'), '$') != NULL) {
        error_set(&error, "the uri \"%s\" contains unsupported characters ('$')", uri);
        report(expansion, error.text);
        return false;
    }
    if (!location_retrieve(loader, uri, ret_retrieved, &error)) {
        report(expansion, error.text);
        return false;
    }
    if (memchr(ret_retrieved->bytes.data, '\0', ret_retrieved->bytes.size) != NULL) {
        report(expansion, "the substituted value contains a NUL character");
        retrieved_release(ret_retrieved);
        return false;
    }
    if (ret_retrieved->unset != NULL && !expansion->is_quiet)
        loader_warning(loader, expansion->position, expansion->path,
                       "Configuration references unset environment variable \"%s\"; its value is "
                       "empty",
                       ret_retrieved->unset);
    return true;
}

/* The next occurrence of the reference, or NULL. Goes from dollar to dollar: the sanitizers' memmem
 * scans the whole text each time. */
static const char *find_occurrence(const char *text, struct slice reference)
{
    const char *at = strchr(text, '$');
    assert(reference.data[0] == '$');
    while (at != NULL && strncmp(at, (const char *)reference.data, reference.size) != 0)
        at = strchr(at + 1, '$');
    return at;
}

/* Replaces every occurrence of the reference within other text. NULL: reported. */
static const char *replace_reference(const struct expansion *expansion, const char *text,
                                     struct slice reference)
{
    struct retrieved retrieved;
    if (!retrieve(expansion, reference, &retrieved))
        return NULL;
    struct slice replacement = retrieved.bytes;
    size_t count = 0;
    size_t text_size = strlen(text);
    const char *end = text + text_size;
    for (const char *at = text; (at = find_occurrence(at, reference)) != NULL; at += reference.size)
        count++;
    size_t size = text_size - count * reference.size + count * replacement.size;
    if (!charge(expansion, text_size) || !charge(expansion, size)) {
        retrieved_release(&retrieved);
        return NULL;
    }
    char *result = loader_zalloc(expansion->loader, size + 1);
    char *to = result;
    const char *from = text;
    for (const char *at; (at = find_occurrence(from, reference)) != NULL;) {
        to = mempcpy(to, from, (size_t)(at - from));
        to = mempcpy(to, replacement.data, replacement.size);
        from = at + reference.size;
    }
    memcpy(to, from, (size_t)(end - from));
    retrieved_release(&retrieved);
    return result;
}

/* Replaces a scalar that is one reference as a whole by the value of the retrieved YAML. Strings,
 * and invalid YAML, are taken verbatim, quotes included. NULL: reported. */
static struct node *replace_scalar(const struct expansion *expansion, struct slice reference)
{
    struct loader *loader = expansion->loader;
    struct retrieved retrieved;
    if (!retrieve(expansion, reference, &retrieved))
        return NULL;
    if (!charge(expansion, retrieved.bytes.size)) {
        retrieved_release(&retrieved);
        return NULL;
    }
    struct yaml_failure failure;
    struct yaml_origin origin = {.position = expansion->position,
                                 .reference = expansion->reference,
                                 .depth = expansion->depth};
    const char *verbatim =
        arena_copy_text(&loader->arena, (const char *)retrieved.bytes.data, retrieved.bytes.size);
    struct node *node = yaml_tree_parse(loader, retrieved.bytes, &origin, &failure);
    retrieved_release(&retrieved);
    if (node == NULL && failure.is_limit) {
        report(expansion, failure.error.text);
        return NULL;
    }
    if (node == NULL)
        node = loader_try_node(loader, NODE_TEXT, expansion->position);
    if (node == NULL) {
        report(expansion, "the configuration has too many values");
        return NULL;
    }
    node->reference = expansion->reference;
    node->verbatim = verbatim;
    if (node->kind == NODE_TEXT)
        node->text = verbatim;
    return merge_nested_keys(loader, node, expansion->depth);
}

/* Replaces references until none is left. When one fails, the node itself becomes broken. */
static struct node *expand_text(const struct expansion *expansion, struct node *original)
{
    struct node *node = original;
    assert(node->kind == NODE_TEXT);
    for (int round = 0; round < CONFIG_EXPANSIONS_MAX; round++) {
        struct slice reference;
        if (node->kind != NODE_TEXT || !find_reference(node->text, &reference))
            return node;
        if (reference.size == strlen(node->text)) {
            node = replace_scalar(expansion, reference);
        } else {
            const char *text = replace_reference(expansion, node->text, reference);
            node = NULL;
            if (text != NULL)
                node = loader_try_node(expansion->loader, NODE_TEXT, expansion->position);
            if (node != NULL) {
                node->text = text;
                node->reference = expansion->reference;
            }
        }
        if (node == NULL) {
            original->kind = NODE_BROKEN;
            return original;
        }
    }
    report(expansion, "too many recursive expansions");
    original->kind = NODE_BROKEN;
    return original;
}

static const char *unescape(const struct expansion *expansion, const char *text)
{
    if (text == NULL || strstr(text, "$$") == NULL)
        return text;
    if (!charge(expansion, strlen(text)))
        return text;
    char *result = loader_copy_text(expansion->loader, text);
    char *to = result;
    for (const char *from = text; *from != '\0'; from++) {
        *to++ = *from;
        if (from[0] == '$' && from[1] == '$')
            from++;
    }
    *to = '\0';
    return result;
}

static struct node *expand_node(struct loader *loader, struct node *node, const struct path *path,
                                size_t depth)
{
    struct expansion expansion = {.loader = loader,
                                  .path = path,
                                  .position = node->position,
                                  .reference =
                                      node->reference != NULL ? node->reference : node->text,
                                  .depth = depth};
    size_t problems = loader_problems(loader);
    assert(depth <= 2 * CONFIG_DEPTH_MAX);
    if (node->kind == NODE_TEXT)
        node = expand_text(&expansion, node);
    for (size_t i = 0; (node->kind == NODE_LIST || node->kind == NODE_MAP) && i < node->count;
         i++) {
        struct path inner = {.parent = path, .key = node->entries[i].key, .index = i};
        struct node_entry *entry = &node->entries[i];
        entry->value = expand_node(loader, entry->value, &inner, depth + 1);
    }
    if (loader_problems(loader) > problems)
        return node; /* a broken node needs no text */
    if (node->verbatim != NULL && node->kind != NODE_TEXT) {
        /* Only comments beside a parsed value still have references. NULL: one of them failed. */
        struct slice reference;
        const char *text = node->verbatim;
        expansion.is_quiet = true;
        for (int round = 1; text != NULL && find_reference(text, &reference); round++) {
            text = replace_reference(&expansion, text, reference);
            if (round == CONFIG_EXPANSIONS_MAX)
                text = NULL;
        }
        node->verbatim = unescape(&expansion, text);
    }
    if (node->kind == NODE_TEXT) {
        node->text = unescape(&expansion, node->text);
        node->verbatim = node->verbatim != NULL ? node->text : NULL;
    }
    return node;
}

struct node *expand_tree(struct loader *loader, struct node *root)
{
    struct path path = {.parent = NULL};
    return expand_node(loader, root, &path, 0);
}
