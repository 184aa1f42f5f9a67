/* SPDX-License-Identifier: Apache-2.0 */
/* Reading links. What an attribute means is found out once per entry of the table, what a link
 * means once per link. Runs on the owner's thread. */
#include "src/join/profiles/profile_links.h"
#include "src/profiles/otlp/profile_bounds.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_window.h"
#include "src/profiles/pprof/correlation.h"

/* Ahead of a look-up, by links: slots are fetched SLOTS_AHEAD before, and the entries that they
 * name ENTRIES_BEHIND later, when the slots are there. */
enum { SLOTS_AHEAD = 16, ENTRIES_BEHIND = 8 };
enum { SCOPE_PROFILES = 2, ITEMS_FIRST = 64 };

void profile_links_init(struct profile_links *links, struct join_store *store,
                        struct budget *budget)
{
    assert(store != NULL);
    *links = (struct profile_links){.store = store, .budget = budget};
    arena_init(&links->arena, PROFILE_INDEX_BYTES_MAX);
    link_set_init(&links->set, budget);
}

void profile_links_fini(struct profile_links *links)
{
    assert(links != NULL);
    arena_clear(&links->arena);
    link_set_fini(&links->set);
    mem_free(links->named);
    if (links->budget != NULL)
        budget_return(links->budget, links->charged_bytes);
    links->charged_bytes = 0;
    profile_window_fini(links);
    links->named = NULL;
}

/* Which attributes of the configuration have that key. */
static uint16_t fills(const struct join_settings *settings, struct slice key)
{
    uint16_t found = 0;
    assert(settings->attributes_count <= JOIN_ATTRIBUTES_MAX);
    for (size_t i = 0; i < settings->attributes_count; i++)
        if (slice_equal(key, settings->attributes[i].name))
            found |= (uint16_t)(1u << i);
    return found;
}

static bool read_attributes(struct profile_links *links)
{
    uint32_t count = links->from.counts[PROFILE_ATTRIBUTES];
    size_t bytes = ((size_t)count + 1) * sizeof(links->roles[0]);
    links->roles = arena_try_alloc(&links->arena, bytes);
    if (links->roles == NULL)
        return false;
    memset(links->roles, 0, bytes);
    links->has_roles = false;
    links->names_spans = links->from.counts[PROFILE_LINKS] > 1;
    for (uint32_t i = 1; i < count; i++) {
        struct correlation none = {.has_span = false};
        struct profile_attribute attribute =
            profile_attribute_at(&links->from, profile_index_of(i));
        if (!profile_has(&links->from, PROFILE_STRINGS, attribute.key))
            continue;
        links->roles[i] = (struct attribute_role){
            .fills = fills(&links->store->settings, profile_string_at(&links->from, attribute.key)),
            .names_span = correlation_take_attribute(&none, &links->from, profile_index_of(i)),
        };
        links->names_spans |= links->roles[i].names_span;
        links->has_roles |= links->roles[i].names_span || links->roles[i].fills != 0;
    }
    assert(links->roles != NULL);
    return true;
}

void *profile_links_grow(struct profile_links *links, void *items, uint32_t *capacity,
                         size_t item_bytes)
{
    uint32_t grown = *capacity > 0 ? 2 * *capacity : ITEMS_FIRST;
    uint64_t before = (uint64_t)*capacity * item_bytes;
    uint64_t bytes = (uint64_t)grown * item_bytes;
    assert(item_bytes > 0);
    /* While items are copied both lists are there. */
    if (links->budget != NULL && !budget_try_take(links->budget, bytes)) {
        links->is_short = true;
        return NULL;
    }
    links->charged_bytes += bytes - before;
    *capacity = grown;
    void *memory = mem_resize(items, bytes);
    if (links->budget != NULL)
        budget_return(links->budget, before);
    return memory;
}

/* The place of the span that was named in this way; LINK_NONE: none was, or there is no memory. */
static uint32_t place_of(struct profile_links *links, const struct correlation *correlation)
{
    struct link_key key = {.has_trace = correlation->has_trace};
    if (!correlation->has_span)
        return LINK_NONE;
    memcpy(&key.span, correlation->span_id, sizeof(key.span));
    if (correlation->has_trace)
        memcpy(key.trace, correlation->trace_id, sizeof(key.trace));
    assert(key.span != 0);
    uint32_t place = link_set_place(&links->set, &key);
    links->is_short |= place == LINK_NONE;
    return place;
}

/* What an entry of the link table says, the first time that somebody asks. */
static uint32_t __attribute__((noinline))
read_entry(struct profile_links *links, struct profile_index index)
{
    struct correlation correlation = {.has_span = false};
    correlation_take_link(&correlation, &links->from, index);
    uint32_t place = place_of(links, &correlation);
    if (place == LINK_NONE)
        return LINK_NONE;
    uint32_t entry = profile_place(&links->from, PROFILE_LINKS, index);
    assert(links->by_link[entry] == 0);
    links->set.items[place].index = entry;
    links->by_link[entry] = place + 1;
    return place;
}

static inline uint32_t link_of_entry(struct profile_links *links, struct profile_index index)
{
    uint32_t known = links->by_link[profile_place(&links->from, PROFILE_LINKS, index)];
    return known != 0 ? known - 1 : read_entry(links, index);
}

static uint32_t link_of_labels(struct profile_links *links, const struct profile_sample *sample)
{
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct correlation correlation = {.has_span = false};
    struct profile_index index;
    while (profile_indices_next(&reader, &index))
        if (profile_links_role(links, index)->names_span)
            correlation_take_attribute(&correlation, &links->from, index);
    return place_of(links, &correlation);
}

/* Where the next one goes; NULL: there is no memory for it. */
static inline struct named_sample *room_for_named(struct profile_links *links)
{
    if (links->named_count == links->named_capacity) {
        struct named_sample *grown = profile_links_grow(links, links->named, &links->named_capacity,
                                                        sizeof(links->named[0]));
        if (grown == NULL)
            return NULL;
        links->named = grown;
    }
    assert(links->named_count < links->named_capacity);
    return &links->named[links->named_count];
}

/* What its labels and its link come to. */
static void read_labels(struct profile_links *links, struct slice bytes,
                        struct named_sample *ret_named)
{
    struct profile_sample sample;
    profile_read_sample(bytes, &sample);
    struct profile_indices_reader reader = profile_indices_read(&sample.attributes);
    bool names_span = false;
    struct profile_index index;
    assert(links->has_roles);
    while (profile_indices_next(&reader, &index)) {
        const struct attribute_role *role = profile_links_role(links, index);
        ret_named->filled |= role->fills;
        names_span |= role->names_span;
    }
    ret_named->is_by_labels = !profile_index_is_set(sample.link);
    if (profile_index_is_set(sample.link))
        ret_named->link = link_of_entry(links, sample.link);
    else if (names_span)
        ret_named->link = link_of_labels(links, &sample);
}

static inline void read_named(struct profile_links *links, const struct wire_field *field,
                              struct named_sample *ret_named)
{
    ret_named->offset = (uint32_t)(field->whole.data - links->from.request.data);
    ret_named->link = LINK_NONE;
    ret_named->filled = 0;
    if (links->has_roles) {
        read_labels(links, field->bytes, ret_named);
        return;
    }
    struct profile_index index = profile_link_of_sample(field->bytes);
    ret_named->is_by_labels = !profile_index_is_set(index);
    if (profile_index_is_set(index))
        ret_named->link = link_of_entry(links, index);
}

void profile_links_want(struct profile_links *links, const struct named_sample *sample,
                        bool is_known)
{
    uint32_t all = (1u << links->store->settings.attributes_count) - 1;
    struct join_link *link = &links->set.items[sample->link];
    assert(link->key.span != 0);
    link->wanted |= all & ~(uint32_t)sample->filled;
    link->is_known |= is_known;
    link->is_lifted |= sample->is_by_labels;
}

/* False: it names no span, nor will it be given one. */
static bool collect_sample(struct profile_links *links, const struct wire_field *field,
                           bool is_known)
{
    struct named_sample *named = room_for_named(links);
    if (named == NULL)
        return false;
    read_named(links, field, named);
    if (named->link != LINK_NONE)
        profile_links_want(links, named, is_known);
    else if (!links->store->settings.uses_window || !profile_window_note(links, field->bytes))
        return false;
    links->named_count++;
    return true;
}

/* Returns how many samples name a span, or may. */
static uint64_t collect_profile(struct profile_links *links, struct slice bytes, bool is_known)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    uint64_t linked = 0;
    if (!links->names_spans && !links->store->settings.uses_window)
        return 0;
    while (wire_next_field(&reader, &field))
        if (field.number == PROFILE_SAMPLES)
            linked += collect_sample(links, &field, is_known);
    assert(reader.failure == NULL);
    return linked;
}

/* As the resource says, or as spans of that process say. 0: nobody knows. */
static uint64_t service_of(const struct profile_links *links, struct slice content, uint64_t now_ns)
{
    struct process_found found;
    if (content.data == NULL)
        return 0;
    struct resource_facts facts = resource_facts_of(content);
    assert(links->store != NULL);
    if (!facts.has_service && process_table_find(&links->store->processes, &facts, now_ns, &found))
        return found.service;
    return facts.service;
}

static void collect_resource(struct profile_links *links, const struct profile_resource *resource,
                             uint64_t now_ns)
{
    struct wire_reader scopes = wire_reader_of(resource->bytes);
    struct profile_scope scope;
    struct wire_field field;
    uint64_t service = service_of(links, resource->resource, now_ns);
    bool is_known = service_set_is_matched(&links->store->services, service);
    if (links->store->settings.uses_window)
        profile_window_begin(links, resource->resource);
    uint64_t linked = 0;
    while (profile_next_scope(&scopes, &scope)) {
        struct wire_reader profiles = wire_reader_of(scope.bytes);
        while (wire_next_field(&profiles, &field))
            if (field.number == SCOPE_PROFILES)
                linked += collect_profile(links, field.bytes, is_known);
    }
    assert(scopes.failure == NULL);
    links->linked_samples += linked;
    service_set_add(&links->store->services, service, linked > 0, now_ns);
}

bool profile_links_open(struct profile_links *links, struct slice request, uint64_t now_ns)
{
    struct wire_reader reader = wire_reader_of(request);
    struct profile_resource resource;
    profile_links_close(links);
    if (!profile_dictionary_open(&links->from, &links->arena, request) || !read_attributes(links))
        return false;
    size_t bytes = ((size_t)links->from.counts[PROFILE_LINKS] + 1) * sizeof(links->by_link[0]);
    links->by_link = arena_try_alloc(&links->arena, bytes);
    if (links->by_link == NULL)
        return false;
    memset(links->by_link, 0, bytes);
    if (!link_set_reserve(&links->set, links->from.counts[PROFILE_LINKS]))
        return false;
    while (profile_next_resource(&reader, &resource))
        collect_resource(links, &resource, now_ns);
    assert(reader.failure == NULL);
    return !links->is_short;
}

void profile_links_close(struct profile_links *links)
{
    assert(links != NULL);
    arena_clear(&links->arena);
    link_set_clear(&links->set);
    links->named_count = 0;
    links->is_short = false;
    profile_window_clear(links);
    links->linked_samples = 0;
    links->roles = NULL;
    links->by_link = NULL;
}

static void resolve(const struct profile_links *links, struct join_link *link)
{
    const struct join_store *store = links->store;
    const struct link_key *key = &link->key;
    assert(key->span != 0);
    link->found = (uint8_t)span_index_find(&store->index, key->has_trace ? key->trace : NULL,
                                           key->span, &link->facts);
    if (link->found != SPAN_FOUND)
        return;
    struct span_facts root = link->facts;
    if (store->settings.takes_root && span_index_root(&store->index, &root) != SPAN_ROOT_UNKNOWN)
        link->facts = root;
}

uint32_t profile_links_place(struct profile_links *links, const struct link_key *key)
{
    uint32_t count = links->set.count;
    uint32_t place = link_set_place(&links->set, key);
    assert(place > 0);
    links->is_short |= place == LINK_NONE;
    if (place == count && place != LINK_NONE)
        resolve(links, &links->set.items[place]);
    return place;
}

uint32_t profile_links_resolve(struct profile_links *links)
{
    const struct span_index *index = &links->store->index;
    uint32_t missing = 0;
    uint32_t count = links->set.count;
    assert(count > 0);
    for (uint32_t i = 1; i < count + SLOTS_AHEAD; i++) {
        if (i < count)
            span_index_fetch_slots(index, links->set.items[i].key.span);
        if (i > ENTRIES_BEHIND && i - ENTRIES_BEHIND < count)
            span_index_fetch_entries(index, links->set.items[i - ENTRIES_BEHIND].key.span);
        if (i <= SLOTS_AHEAD)
            continue;
        struct join_link *link = &links->set.items[i - SLOTS_AHEAD];
        resolve(links, link);
        missing += link->found == SPAN_MISSED;
    }
    return missing + profile_window_resolve(links);
}
