/* SPDX-License-Identifier: Apache-2.0 */
/* Grouping profiles by resource and scope. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_groups.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_view.h"

enum { ROWS_FIRST = 16, HEADER = 1, CHILDREN = 2, SCHEMA_URL = 3 };
#define NO_ROW UINT32_MAX

void profile_groups_init(struct profile_groups *groups, struct budget *budget)
{
    *groups = (struct profile_groups){.body.budget = budget, .scratch.budget = budget};
    profile_set_init(&groups->resources, budget);
    profile_set_init(&groups->scopes, budget);
}

/* Charged beyond the budget's limit if need be: this completes requests that were accepted. */
static void charge(const struct profile_groups *groups, uint64_t bytes)
{
    if (groups->body.budget != NULL)
        budget_take(groups->body.budget, bytes);
}

static void give_back(const struct profile_groups *groups, uint64_t bytes)
{
    if (groups->body.budget != NULL)
        budget_return(groups->body.budget, bytes);
}

void profile_groups_fini(struct profile_groups *groups)
{
    profile_set_fini(&groups->resources);
    profile_set_fini(&groups->scopes);
    profile_bytes_fini(&groups->body);
    profile_bytes_fini(&groups->scratch);
    mem_free(groups->rows);
    give_back(groups, groups->rows_capacity * sizeof(groups->rows[0]));
    groups->rows = NULL;
    groups->rows_capacity = 0;
}

void profile_groups_clear(struct profile_groups *groups)
{
    profile_set_clear(&groups->resources);
    profile_set_clear(&groups->scopes);
    groups->body.size = 0;
    groups->rows_count = 0;
}

/* Resource or scope with references replaced, and the schema_url. */
static void put_fields(struct profile_groups *groups, const struct profile_dictionary *dictionary,
                       enum profile_inline_kind kind, const struct slice fields[2],
                       struct profile_bytes *out)
{
    size_t begin = out->size;
    assert(kind == INLINE_RESOURCE || kind == INLINE_SCOPE);
    if (fields[0].data != NULL) {
        if (profile_has_references(kind, fields[0]))
            profile_inline(dictionary, kind, fields[0], out, &groups->dropped_attributes);
        else
            profile_bytes_add(out, fields[0]);
        profile_bytes_wrap(out, begin, HEADER);
    }
    if (fields[1].size > 0)
        profile_bytes_field(out, SCHEMA_URL, fields[1]);
}

uint32_t profile_groups_resource(struct profile_groups *groups,
                                 const struct profile_dictionary *dictionary,
                                 const struct profile_resource *resource)
{
    struct profile_bytes *out = &groups->scratch;
    out->size = 0;
    put_fields(groups, dictionary, INLINE_RESOURCE,
               (const struct slice[]){resource->resource, resource->schema_url}, out);
    return profile_set_add(&groups->resources, profile_bytes_slice(out));
}

uint32_t profile_groups_scope(struct profile_groups *groups,
                              const struct profile_dictionary *dictionary, uint32_t resource,
                              const struct profile_scope *scope)
{
    struct profile_bytes *out = &groups->scratch;
    assert(resource < groups->resources.count);
    out->size = 0;
    profile_bytes_add(out, slice_of(&resource, sizeof(resource)));
    put_fields(groups, dictionary, INLINE_SCOPE,
               (const struct slice[]){scope->scope, scope->schema_url}, out);
    return profile_set_add(&groups->scopes, profile_bytes_slice(out));
}

static void __attribute__((noinline)) grow_rows(struct profile_groups *groups)
{
    uint32_t old = groups->rows_capacity;
    uint32_t capacity = old > 0 ? 2 * old : ROWS_FIRST;
    /* Both exist while they are copied. */
    charge(groups, capacity * sizeof(groups->rows[0]));
    groups->rows = mem_resize(groups->rows, capacity * sizeof(groups->rows[0]));
    groups->rows_capacity = capacity;
    give_back(groups, old * sizeof(groups->rows[0]));
}

void profile_groups_add(struct profile_groups *groups, uint32_t scope)
{
    assert(scope < groups->scopes.count);
    if (groups->rows_count == groups->rows_capacity)
        grow_rows(groups);
    groups->rows[groups->rows_count++] =
        (struct profile_row){.scope = scope, .end = groups->body.size};
}

struct profile_groups_mark profile_groups_mark(const struct profile_groups *groups)
{
    assert(groups->resources.count > 0);
    return (struct profile_groups_mark){
        .resources = groups->resources.count,
        .scopes = groups->scopes.count,
        .body_bytes = groups->body.size,
    };
}

void profile_groups_cut(struct profile_groups *groups, const struct profile_groups_mark *mark)
{
    assert(groups->rows_count == 0 || groups->rows[groups->rows_count - 1].end <= mark->body_bytes);
    assert(mark->body_bytes <= groups->body.size);
    profile_set_cut(&groups->resources, mark->resources);
    profile_set_cut(&groups->scopes, mark->scopes);
    groups->body.size = mark->body_bytes;
}

uint64_t profile_groups_bytes_max(const struct profile_groups *groups)
{
    uint64_t messages =
        (uint64_t)groups->resources.count + groups->scopes.count + groups->rows_count + 1;
    return messages * PROFILE_HEADER_BYTES_MAX + groups->resources.encoded_bytes +
           groups->scopes.encoded_bytes + groups->body.size;
}

/* While writing: the profiles of a scope, or the scopes of a resource, as a list. */
struct member_list {
    uint32_t first;
    uint32_t last;
    uint32_t next; /* a scope's: the next one of its resource */
    uint64_t bytes;
};

uint64_t profile_groups_index_bytes_max(uint64_t resources, uint64_t scopes, uint64_t profiles)
{
    uint64_t rows = ROWS_FIRST;
    while (rows < profiles)
        rows *= 2;
    return profile_set_bytes_max(resources) + profile_set_bytes_max(scopes) +
           (resources + scopes + 2) * sizeof(struct member_list) +
           (rows + rows / 2) * sizeof(struct profile_row); /* with those before they grew */
}

static struct member_list *make_lists(const struct profile_groups *groups, uint32_t count)
{
    charge(groups, count * sizeof(struct member_list));
    struct member_list *lists = mem_alloc(count * sizeof(lists[0]));
    for (uint32_t i = 0; i < count; i++)
        lists[i] = (struct member_list){.first = NO_ROW, .last = NO_ROW, .next = NO_ROW};
    return lists;
}

static size_t content_begin(const struct profile_groups *groups, uint32_t row)
{
    return row > 0 ? groups->rows[row - 1].end : 0;
}

/* Appends a member to the list; returns the one that it follows, or NO_ROW. */
static uint32_t append_member(struct member_list *list, uint32_t member)
{
    uint32_t before = list->last;
    if (before == NO_ROW)
        list->first = member;
    list->last = member;
    return before;
}

static uint8_t *put_header(uint8_t *at, uint32_t number, uint64_t content_bytes)
{
    assert(number < 16);
    *at++ = (uint8_t)wire_tag(number, WIRE_BYTES);
    return profile_put_varint(at, content_bytes);
}

static uint8_t *put_raw(uint8_t *at, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

uint8_t *profile_groups_write(struct profile_groups *groups, uint8_t *at)
{
    struct member_list *scopes = make_lists(groups, groups->scopes.count);
    struct member_list *resources = make_lists(groups, groups->resources.count);
    /* Lists the profiles of each scope, then the scopes of each resource. */
    for (uint32_t i = 0; i < groups->rows_count; i++) {
        struct profile_row *row = &groups->rows[i];
        uint32_t before = append_member(&scopes[row->scope], i);
        row->next = NO_ROW;
        if (before != NO_ROW)
            groups->rows[before].next = i;
        scopes[row->scope].bytes += wire_field_size(CHILDREN, row->end - content_begin(groups, i));
    }
    assert(groups->rows_count == 0 ||
           groups->rows[groups->rows_count - 1].end == groups->body.size);
    for (uint32_t i = 1; i < groups->scopes.count; i++) {
        struct slice entry = profile_set_at(&groups->scopes, i);
        uint32_t resource;
        assert(entry.size >= sizeof(resource));
        assert(scopes[i].first != NO_ROW);
        memcpy(&resource, entry.data, sizeof(resource));
        uint32_t before = append_member(&resources[resource], i);
        if (before != NO_ROW)
            scopes[before].next = i;
        scopes[i].bytes += entry.size - sizeof(resource);
        resources[resource].bytes += wire_field_size(CHILDREN, scopes[i].bytes);
    }
    for (uint32_t i = 0; i < groups->resources.count; i++) {
        if (resources[i].first == NO_ROW)
            continue; /* the zero element, which no profile has */
        struct slice fields = profile_set_at(&groups->resources, i);
        at = put_header(at, HEADER, fields.size + resources[i].bytes);
        at = put_raw(at, fields);
        for (uint32_t j = resources[i].first; j != NO_ROW; j = scopes[j].next) {
            struct slice entry = profile_set_at(&groups->scopes, j);
            at = put_header(at, CHILDREN, scopes[j].bytes);
            at =
                put_raw(at, slice_of(entry.data + sizeof(uint32_t), entry.size - sizeof(uint32_t)));
            for (uint32_t k = scopes[j].first; k != NO_ROW; k = groups->rows[k].next) {
                size_t begin = content_begin(groups, k);
                size_t size = groups->rows[k].end - begin;
                at = put_header(at, CHILDREN, size);
                at = put_raw(at, slice_of(groups->body.data + begin, size));
            }
        }
    }
    mem_free(scopes);
    mem_free(resources);
    give_back(groups,
              ((uint64_t)groups->scopes.count + groups->resources.count) * sizeof(*resources));
    return at;
}
