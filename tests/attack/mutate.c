/* SPDX-License-Identifier: Apache-2.0 */
/* Structural changes to trees. Each picks one node, so that the rest of the request stays valid and
 * gets through the receivers. */
#include "tests/attack/mutate.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/attack/pool.h"

enum { PICKED_MAX = 1 << 14, DEPTH_MAX = 64, TEXT_MAX = 1 << 20 };

/* The nodes of a tree, to choose from. */
struct picked {
    struct node **nodes;
    struct node **parents;
    size_t count;
};

struct change {
    struct world *world;
    struct pool *pool;
    struct node *node;
    struct node *parent;
    const struct picked *picked;
};

static uint64_t below(struct change *change, uint64_t bound)
{
    return random_below(&change->world->random, bound);
}

uint64_t odd_number(struct world *world, uint64_t about)
{
    static const uint64_t numbers[] = {
        0,
        1,
        2,
        127,
        128,
        255,
        256,
        32767,
        65535,
        65536,
        INT32_MAX,
        1u << 31,
        UINT32_MAX,
        (uint64_t)1 << 32,
        INT64_MAX,
        (uint64_t)1 << 63,
        UINT64_MAX,
        UINT64_MAX - 1,
        1000000000,
        (uint64_t)1 << 62,
        (uint64_t)-INT32_MAX,
        1u << 20,
        200000,
        16777216,
    };
    uint64_t drawn = random_below(&world->random, 32);
    uint64_t near = about < UINT32_MAX ? about + 2 : UINT32_MAX;
    switch (random_below(&world->random, 6)) {
    case 0:
        return about + drawn % 4 - 1;
    case 1: /* what is left of it in 32 bits looks right */
        return ((1 + drawn % 7) << 32) + random_below(&world->random, near);
    case 2:
        return ((uint64_t)1 << 32) * (drawn + 1) - 1 - random_below(&world->random, near);
    case 3:
        return (uint64_t)1 << (2 * drawn + random_below(&world->random, 2));
    default:
        return numbers[random_below(&world->random, sizeof(numbers) / sizeof(numbers[0]))];
    }
}

static void pick(struct picked *picked, struct node *node, unsigned depth)
{
    for (struct node *child = node->children; child != NULL; child = child->next) {
        if (picked->count == PICKED_MAX)
            return;
        picked->parents[picked->count] = node;
        picked->nodes[picked->count++] = child;
        if (depth < DEPTH_MAX)
            pick(picked, child, depth + 1);
    }
}

/* Any node, or one that `is_right`, when a few tries find one. */
static void choose(struct change *change, bool (*is_right)(const struct node *))
{
    for (unsigned tries = 0; tries < 64; tries++) {
        size_t at = below(change, change->picked->count);
        change->node = change->picked->nodes[at];
        change->parent = change->picked->parents[at];
        if (is_right == NULL || is_right(change->node))
            return;
    }
}

/* The same, but each field of the grammar is as likely as the others, however often it is there. */
static void choose_field(struct change *change, bool (*is_right)(const struct node *))
{
    enum { FIELDS_MAX = 64 };
    const struct form_field *fields[FIELDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < change->picked->count && count < FIELDS_MAX; i++) {
        const struct form_field *field = change->picked->nodes[i]->field;
        size_t known = 0;
        while (known < count && fields[known] != field)
            known++;
        if (known == count && is_right(change->picked->nodes[i]))
            fields[count++] = field;
    }
    choose(change, is_right);
    if (count == 0)
        return;
    const struct form_field *field = fields[below(change, count)];
    size_t seen = 0;
    for (size_t i = 0; i < change->picked->count; i++) {
        struct node *node = change->picked->nodes[i];
        if (node->field != field || !is_right(node) || below(change, ++seen) != 0)
            continue;
        change->node = node;
        change->parent = change->picked->parents[i];
    }
}

static bool is_number(const struct node *node)
{
    return node->kind == NODE_NUMBER;
}

static bool is_index(const struct node *node)
{
    return is_number(node) && node->field != NULL &&
           (node->field->to != TABLE_NONE || node->field->role == ROLE_FIRST ||
            node->field->role == ROLE_LENGTH || node->field->role == ROLE_OWN_ID);
}

static bool is_text(const struct node *node)
{
    return node->kind == NODE_BYTES;
}

static bool is_message(const struct node *node)
{
    return node->kind == NODE_MESSAGE;
}

static bool is_packed(const struct node *node)
{
    return node->kind == NODE_PACKED;
}

static bool is_value(const struct node *node)
{
    return is_message(node) && node->field != NULL && node->field->message == form_any_value();
}

static struct node *copy(struct change *change, const struct node *node)
{
    struct node *made = pool_alloc(change->pool, sizeof(*made));
    *made = *node;
    return made;
}

static void change_index(struct change *change)
{
    choose_field(change, is_index);
    change->node->value = odd_number(change->world, change->node->value);
}

static void change_number(struct change *change)
{
    choose_field(change, is_number);
    change->node->value = odd_number(change->world, below(change, 32));
}

/* One index or number to all of its kind: all equal. */
static void change_alike(struct change *change)
{
    choose(change, is_number);
    const struct form_field *field = change->node->field;
    uint64_t value = below(change, 3) == 0 ? odd_number(change->world, 4) : change->node->value;
    for (size_t i = 0; i < change->picked->count; i++)
        if (change->picked->nodes[i]->field == field && is_number(change->picked->nodes[i]))
            change->picked->nodes[i]->value = value;
}

static void change_width(struct change *change)
{
    choose(change, NULL);
    change->node->padding = 1 + (unsigned)below(change, 10);
}

static void change_wire(struct change *change)
{
    choose(change, NULL);
    change->node->wire = (enum wire_type)below(change, 8);
    if (below(change, 2) == 0)
        return;
    /* And the content to go with it. */
    change->node->kind = change->node->kind == NODE_NUMBER ? NODE_BYTES : NODE_NUMBER;
    change->node->bytes = slice_of_text("\1\2\3");
    change->node->wire = change->node->kind == NODE_NUMBER ? WIRE_VARINT : WIRE_BYTES;
}

static void change_packing(struct change *change)
{
    choose(change, is_packed);
    change->node->is_apart = !change->node->is_apart;
}

static void change_length(struct change *change)
{
    static const int64_t lies[] = {-1, 1, -2, 2, 5, 100, 1 << 20, INT32_MAX, UINT32_MAX, -100};
    choose(change, below(change, 2) == 0 ? is_message : NULL);
    change->node->lie = lies[below(change, sizeof(lies) / sizeof(lies[0]))];
}

static unsigned many(struct change *change)
{
    static const unsigned counts[] = {1, 1, 2, 3, 9, 70, 130, 300, 1100, 5000, 70000};
    return counts[below(change, below(change, 4) == 0 ? sizeof(counts) / sizeof(counts[0]) : 6)];
}

/* For a copy of anything that is in the pool. */
static bool has_room(const struct change *change)
{
    return change->pool->used < change->pool->capacity / 2;
}

/* The same field again, right behind itself or at the end. */
static void change_repeat(struct change *change)
{
    choose(change, NULL);
    if (below(change, 2) == 0)
        change->node->repeats += many(change);
    else if (has_room(change))
        node_adopt(change->parent, copy(change, change->node));
}

/* Many different ones instead of many equal ones. */
static void change_count(struct change *change)
{
    choose(change, below(change, 2) == 0 ? is_message : is_packed);
    unsigned count = many(change);
    struct node *model = change->node->children;
    if (model == NULL)
        return;
    for (; count > 0 && has_room(change); count--) {
        struct node *made = copy(change, model);
        if (made->kind == NODE_NUMBER)
            made->value += count;
        else if (made->kind == NODE_BYTES) {
            uint8_t *text = pool_alloc(change->pool, made->bytes.size + 4);
            if (made->bytes.size > 0)
                memcpy(text, made->bytes.data, made->bytes.size);
            memcpy(text + made->bytes.size,
                   (char[]){(char)('a' + count % 26), (char)('a' + count / 26 % 26),
                            (char)('a' + count / 676 % 26), 'z'},
                   4);
            made->bytes = slice_of(text, made->bytes.size + 4);
        } else if (made->children != NULL) {
            made->children = copy(change, made->children);
            made->children->value += count;
        }
        node_adopt(change->node, made);
    }
}

static void change_remove(struct change *change)
{
    choose(change, NULL);
    for (struct node **at = &change->parent->children; *at != NULL; at = &(*at)->next)
        if (*at == change->node) {
            *at = change->node->next;
            return;
        }
}

static void change_empty(struct change *change)
{
    choose(change, below(change, 2) == 0 ? is_message : NULL);
    change->node->children = NULL;
    change->node->bytes = slice_of_text("");
    change->node->value = 0;
}

/* A message that is also somewhere else, itself included: deep, but ended where it is written. */
static void change_graft(struct change *change)
{
    choose(change, NULL);
    struct node *made = copy(change, change->node);
    choose(change, is_message);
    node_adopt(change->node, made);
}

static void change_order(struct change *change)
{
    choose(change, is_message);
    struct node *first = change->node->children;
    if (first == NULL || first->next == NULL)
        return;
    change->node->children = first->next;
    struct node *last = first->next;
    while (last->next != NULL)
        last = last->next;
    last->next = first;
    first->next = NULL;
}

/* Values in values in values. */
static void change_nesting(struct change *change)
{
    static const unsigned depths[] = {1,  2,  8,  15, 16, 17,  31,  32,
                                      33, 63, 64, 65, 99, 100, 101, 640};
    choose(change, is_value);
    if (!is_value(change->node))
        return;
    const struct form *any = form_any_value();
    unsigned depth = depths[below(change, sizeof(depths) / sizeof(depths[0]))];
    const struct form_field *field = NULL;
    uint32_t number = below(change, 3) == 0 ? 6 : 5; /* kvlist_value, array_value */
    for (unsigned i = 0; i < any->count; i++)
        if (any->fields[i].field->number == number)
            field = &any->fields[i];
    assert(field != NULL);
    for (; depth > 0; depth--) {
        struct node *inner = node_create(change->pool, change->node->field, NODE_MESSAGE);
        struct node *list = node_create(change->pool, field, NODE_MESSAGE);
        inner->children = change->node->children;
        inner->number = 1;
        change->node->children = NULL;
        if (number == 6) {
            struct node *pair = node_create(change->pool, NULL, NODE_MESSAGE);
            pair->number = 1;
            inner->number = 2;
            node_adopt(pair, inner);
            inner = pair;
        }
        node_adopt(list, inner);
        node_adopt(change->node, list);
    }
}

static void change_text(struct change *change)
{
    choose(change, is_text);
    static const char *const texts[] = {
        "",
        "\xff\xfe",
        "\xc0\x80",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "a\r\nX-Injected: 1",
        "..",
        "${env:HOME}",
        "%n%s",
        "{\"a\":1}",
        "<script>",
        "\xe2\x80\xae",
        "other",
        "service.name",
    };
    uint64_t which = below(change, sizeof(texts) / sizeof(texts[0]) + 4);
    if (which < sizeof(texts) / sizeof(texts[0])) {
        change->node->bytes = slice_of_text(texts[which]);
        return;
    }
    static const size_t sizes[] = {15,  16,   17,   7,    9,     127,   128,     255,
                                   256, 1023, 1025, 4096, 65535, 65536, TEXT_MAX};
    size_t size = sizes[below(change, sizeof(sizes) / sizeof(sizes[0]) - (below(change, 6) != 0))];
    uint8_t *text = pool_alloc(change->pool, size);
    memset(text, which % 2 == 0 ? 'x' : (int)below(change, 256), size);
    change->node->bytes = slice_of(text, size);
}

static bool is_string_entry(const struct node *node)
{
    return is_text(node) && node->field != NULL && node->field->role == ROLE_ENTRY;
}

/* A long text that everything refers to, many times: small on the wire, large where it is spelt
 * out. */
static void change_references(struct change *change)
{
    choose(change, is_string_entry);
    if (!is_string_entry(change->node))
        return;
    uint64_t index = 0;
    for (const struct node *at = change->parent->children; at != NULL && at != change->node;
         at = at->next)
        index += at->field == change->node->field;
    size_t size = (size_t)256 << below(change, 10);
    uint8_t *text = pool_alloc(change->pool, size);
    memset(text, 'r', size);
    change->node->bytes = slice_of(text, size);
    for (size_t i = 0; i < change->picked->count; i++) {
        struct node *node = change->picked->nodes[i];
        if (is_number(node) && node->field != NULL && node->field->to == TABLE_STRINGS &&
            below(change, 4) != 0)
            node->value = index;
    }
    choose(change, is_message);
    change->node->repeats += many(change);
}

static bool is_record(const struct node *node)
{
    return is_message(node) && node->field != NULL && node->field->field->kind == OTLP_RECORDS;
}

/* Something long beside many short messages: what is done with it for each of them takes for ever,
 * or makes a small request large. */
static void change_product(struct change *change)
{
    size_t size = (size_t)16384 << below(change, 5);
    if (below(change, 4) == 0) {
        choose(change, is_value);
        if (!is_value(change->node) || change->node->children == NULL)
            return;
        change->node->children->repeats += (unsigned)(size / 16); /* of an array, its elements */
        if (change->node->children->children != NULL)
            change->node->children->children->repeats += (unsigned)(size / 16);
    } else {
        uint8_t *text = pool_alloc(change->pool, size);
        choose_field(change, is_text);
        if (!is_text(change->node))
            return;
        for (size_t i = 0; i < size; i++)
            text[i] = (uint8_t)("abcdefgh/.-_{} 0"[i * i % 97 % 16]);
        change->node->bytes = slice_of(text, size);
    }
    choose(change, below(change, 3) != 0 ? is_record : is_message);
    change->node->repeats += 100u << below(change, 8);
}

struct shared_search {
    struct change *change;
    uint64_t seen;      /* texts */
    unsigned left;      /* nodes to look at: those that copies share are met often */
    struct node *found; /* NULL: none */
};

/* Any text that stands once for all records below: each is as likely as the others. */
static void find_shared(struct shared_search *search, struct node *node, unsigned depth)
{
    for (struct node *child = node->children;
         child != NULL && depth < DEPTH_MAX && search->left > 0; child = child->next) {
        search->left--;
        if (is_record(child))
            continue;
        if (is_text(child) && below(search->change, ++search->seen) == 0)
            search->found = child;
        find_shared(search, child, depth + 1);
    }
}

/* The worst of these products: a long text of a Resource or a scope, and as many small records as
 * fit. */
static void change_shared(struct change *change)
{
    enum { TRIES = 8, LOOKED_AT_MAX = 100000 };
    struct shared_search search = {.change = change, .left = LOOKED_AT_MAX};
    struct node *least = NULL;
    find_shared(&search, change->picked->parents[0], 0);
    for (unsigned i = 0; i < TRIES; i++) {
        choose(change, is_record);
        if (is_record(change->node) &&
            (least == NULL || node_children(change->node) < node_children(least)))
            least = change->node;
    }
    if (search.found == NULL || least == NULL)
        return;
    size_t size = (size_t)65536 << below(change, 3);
    uint8_t *text = pool_alloc(change->pool, size);
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)("abcdefgh/.-_{} 0"[i * i % 97 % 16]);
    search.found->bytes = slice_of(text, size);
    least->repeats += 1000u << below(change, 4);
}

static bool is_list(const struct node *node)
{
    return is_packed(node) && node->children != NULL;
}

static struct node *parent_of(const struct picked *picked, const struct node *node)
{
    for (size_t i = 0; i < picked->count; i++)
        if (picked->nodes[i] == node)
            return picked->parents[i];
    return NULL;
}

/* A record whose list is long, then the same record without it, as often as fits: whoever keeps the
 * state of a series does with the long one what the short ones cost. */
static void change_state(struct change *change)
{
    choose_field(change, is_list);
    struct node *record = change->parent;
    struct node *holder = parent_of(change->picked, record);
    if (!is_list(change->node) || holder == NULL)
        return;
    struct node *large = copy(change, record);
    struct node *list = copy(change, change->node);
    large->children = NULL;
    for (struct node *child = record->children; child != NULL; child = child->next)
        if (child != change->node)
            node_adopt(large, copy(change, child));
    list->children = copy(change, list->children);
    list->children->next = NULL;
    list->children->repeats = 1000u << below(change, 9);
    node_adopt(large, list);
    node_adopt(holder, large);
    if (below(change, 2) == 0)
        change->node->children = NULL;
    record->repeats += 100u << below(change, 6);
}

static void change_unknown(struct change *change)
{
    static const uint32_t numbers[] = {0, 13, 15, 16, 17, 90, 1000, 19000, (1u << 29) - 1};
    choose(change, is_message);
    struct node *made =
        node_create(change->pool, NULL, below(change, 2) == 0 ? NODE_NUMBER : NODE_BYTES);
    made->number = numbers[below(change, sizeof(numbers) / sizeof(numbers[0]))];
    made->value = odd_number(change->world, 0);
    made->bytes = grow_word(change->world, change->pool);
    made->repeats = many(change) - 1;
    if (made->kind == NODE_NUMBER && below(change, 3) == 0)
        made->wire = (enum wire_type)below(change, 8);
    node_adopt(change->node, made);
}

/* A field of the message that has another number: 1 instead of 2. */
static void change_number_of_field(struct change *change)
{
    choose(change, NULL);
    change->node->number = 1 + (uint32_t)below(change, 16);
}

static void (*const kinds[])(struct change *) = {
    change_index,   change_index,           change_index,   change_index,  change_number,
    change_number,  change_alike,           change_width,   change_wire,   change_packing,
    change_length,  change_repeat,          change_repeat,  change_count,  change_count,
    change_remove,  change_empty,           change_graft,   change_order,  change_nesting,
    change_text,    change_references,      change_product, change_shared, change_shared,
    change_unknown, change_number_of_field, change_state,
};

void mutate(struct world *world, struct pool *pool, struct node *root, unsigned changes)
{
    struct picked picked = {.count = 0};
    if (changes == 0 || root->children == NULL)
        return;
    picked.nodes = pool_alloc(pool, PICKED_MAX * sizeof(struct node *));
    picked.parents = pool_alloc(pool, PICKED_MAX * sizeof(struct node *));
    pick(&picked, root, 0);
    for (; changes > 0; changes--) {
        struct change change = {.world = world, .pool = pool, .picked = &picked};
        kinds[random_below(&world->random, sizeof(kinds) / sizeof(kinds[0]))](&change);
    }
}

void mutate_bytes(struct world *world, struct bytes_out *bytes, size_t begin)
{
    struct random_source *random = &world->random;
    size_t size = bytes->size - begin;
    if (size == 0)
        return;
    uint8_t *data = bytes->data + begin;
    switch (random_below(random, 4)) {
    case 0:
        bytes->size = begin + random_below(random, size);
        break;
    case 1:
        for (uint64_t flips = 1 + random_below(random, 8); flips > 0; flips--)
            data[random_below(random, size)] ^= (uint8_t)(1u << random_below(random, 8));
        break;
    case 2:
        data[random_below(random, size)] = (uint8_t)random_below(random, 256);
        break;
    default: { /* a piece of it once more */
        size_t piece = 1 + random_below(random, size);
        uint8_t *copied = mem_copy(data + random_below(random, size - piece + 1), piece);
        bytes_add(bytes, copied, piece);
        mem_free(copied);
    }
    }
}
