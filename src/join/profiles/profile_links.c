/* SPDX-License-Identifier: Apache-2.0 */
/* Reading links. Each entry of the attribute table and of the link table is interpreted once, each
 * span is looked up until the index has it; those that are found by time are looked up again on
 * each _resolve. The set is a list of links in the
 * order of their arrival and a hash table of their places, which double when they are full, as far
 * as the budget has memory. Runs on the owner's thread. */
#include "src/join/profiles/profile_links.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/join/index/join_store.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/pprof/correlation.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Prefetching, in links: slots are fetched SLOTS_AHEAD before a look-up, and the entries that they
 * name ENTRIES_BEHIND later, when the slots have arrived. */
enum { SLOTS_AHEAD = 16, ENTRIES_BEHIND = 8 };
enum { SCOPE_PROFILES = 2, ITEMS_FIRST = 64 };

/* Room for links at first, room that is made for the expected ones at most, and their limit. */
enum { LINKS_FIRST = 64, LINKS_AT_ONCE = 1 << 14, LINKS_MAX = 1 << 24 };

/* Of a link and its slots. */
#define LINK_BYTES ((uint64_t)sizeof(struct join_link) + 2 * sizeof(uint32_t))

/* The slot of the link with that key, or the empty one where it belongs. */
static uint32_t *slot_of(const struct link_set *set, const struct link_key *key)
{
    uint32_t mask = set->slots_count - 1;
    uint32_t at = (uint32_t)XXH3_64bits_withSeed(key, sizeof(*key), set->seed) & mask;
    assert(set->count <= set->slots_count / 2);
    for (;; at = (at + 1) & mask) {
        uint32_t place = set->slots[at];
        if (place == 0 || memcmp(&set->items[place].key, key, sizeof(*key)) == 0)
            return &set->slots[at];
    }
}

/* Room for that many links, a power of two. False: no memory. */
static bool grow_set(struct profile_links *links, uint32_t capacity)
{
    struct link_set *set = &links->set;
    uint32_t slots_count = 2 * capacity;
    assert(capacity > set->capacity);
    /* Both lists exist while links are copied. */
    if (links->budget != NULL && !budget_try_take(links->budget, capacity * LINK_BYTES))
        return false;
    uint64_t before = set->charged_bytes;
    set->charged_bytes = capacity * LINK_BYTES;
    set->items = mem_resize(set->items, capacity * sizeof(struct join_link));
    set->capacity = capacity;
    mem_free(set->slots);
    set->slots = mem_alloc(slots_count * sizeof(uint32_t));
    set->slots_count = slots_count;
    memset(set->slots, 0, slots_count * sizeof(uint32_t));
    for (uint32_t i = 1; i < set->count; i++)
        *slot_of(set, &set->items[i].key) = i;
    if (links->budget != NULL)
        budget_return(links->budget, before);
    return true;
}

/* The place of that key, which is added if it is new; LINK_NONE, and is_short from then on: no
 * memory. */
static uint32_t find_or_add(struct profile_links *links, const struct link_key *key)
{
    struct link_set *set = &links->set;
    uint32_t *slot = slot_of(set, key);
    if (*slot != 0) {
        set->items[*slot].is_unused = false;
        return *slot;
    }
    if (set->count == set->capacity) {
        if (set->capacity >= LINKS_MAX || !grow_set(links, 2 * set->capacity)) {
            links->is_short = true;
            return LINK_NONE;
        }
        slot = slot_of(set, key);
    }
    uint32_t place = set->count++;
    set->items[place] = (struct join_link){.key = *key};
    *slot = place;
    return place;
}

void profile_links_init(struct profile_links *links, struct join_store *store,
                        struct budget *budget)
{
    *links = (struct profile_links){.store = store, .budget = budget};
    arena_init_charged(&links->arena, PROFILE_INDEX_BYTES_MAX, budget);
    links->set.count = 1;
    links->set.seed = (uint64_t)(random_uniform() * 0x1p53);
}

void profile_links_fini(struct profile_links *links)
{
    arena_clear(&links->arena);
    link_set_fini(&links->set, links->budget);
    mem_free(links->named);
    mem_free(links->timed);
    mem_free(links->resources);
    if (links->budget != NULL)
        budget_return(links->budget, links->charged_bytes);
    links->charged_bytes = 0;
    links->named = NULL;
    links->timed = NULL;
    links->resources = NULL;
}

void link_set_fini(struct link_set *set, struct budget *budget)
{
    if (budget != NULL)
        budget_return(budget, set->charged_bytes);
    mem_free(set->items);
    mem_free(set->slots);
    *set = (struct link_set){.count = 1};
}

struct link_set profile_links_detach(struct profile_links *links)
{
    struct link_set set = links->set;
    uint64_t bytes = (uint64_t)set.count * sizeof(struct join_link);
    mem_free(set.slots);
    set.slots = NULL;
    set.slots_count = 0;
    set.items = mem_resize(set.items, bytes);
    set.capacity = set.count;
    if (links->budget != NULL) {
        assert(bytes <= set.charged_bytes);
        budget_return(links->budget, set.charged_bytes - bytes);
        set.charged_bytes = bytes;
    }
    links->set = (struct link_set){.count = 1, .seed = set.seed};
    return set;
}

void profile_links_attach(struct profile_links *links, struct link_set *set)
{
    assert(links->set.items == NULL);
    links->set = *set;
    *set = (struct link_set){.count = 1};
}

/* Doubles the room for items. NULL, and is_short from then on: the budget has no memory. */
static void *grow(struct profile_links *links, void *items, uint32_t *capacity, size_t item_bytes)
{
    uint32_t grown = *capacity > 0 ? 2 * *capacity : ITEMS_FIRST;
    uint64_t before = (uint64_t)*capacity * item_bytes;
    uint64_t bytes = (uint64_t)grown * item_bytes;
    /* Both lists exist while items are copied. */
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

/* The place of the span that is named; LINK_NONE: none is, or there is no memory. */
static uint32_t place_of(struct profile_links *links, const struct correlation *correlation)
{
    struct link_key key = {.has_trace = correlation->has_trace};
    if (!correlation->has_span)
        return LINK_NONE;
    memcpy(&key.span, correlation->span_id, sizeof(key.span));
    if (correlation->has_trace)
        memcpy(key.trace, correlation->trace_id, sizeof(key.trace));
    assert(key.span != 0);
    return find_or_add(links, &key);
}

/* Interprets an entry of the link table; called once for each. */
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

/* Adds what the sample lacks to what its link is to provide. is_known: spans of its service have
 * been seen. */
static void want(struct profile_links *links, const struct named_sample *sample, bool is_known)
{
    uint32_t all = (1u << links->store->settings.attributes_count) - 1;
    struct join_link *link = &links->set.items[sample->link];
    assert(link->key.span != 0);
    link->wanted |= all & ~(uint32_t)sample->filled;
    link->is_known |= is_known;
    link->is_lifted |= sample->is_by_labels;
}

/* Notes when and where the sample that will be the next of named was taken. False: it does not say,
 * or there is no memory. */
static bool note_timed(struct profile_links *links, struct slice bytes)
{
    struct profile_sample sample;
    struct timed_sample timed = {.named = links->named_count, .from_ns = UINT64_MAX};
    uint64_t is_named = 0;
    for (unsigned i = 0; i < RESOURCE_NAMES; i++)
        is_named |= links->resource.processes[i];
    if (is_named == 0)
        return false;
    profile_read_sample(bytes, &sample);
    struct profile_numbers_reader times = profile_numbers_read(&sample.timestamps);
    uint64_t time_ns;
    while (profile_numbers_next(&times, &time_ns)) {
        if (time_ns < timed.from_ns)
            timed.from_ns = time_ns;
        if (time_ns > timed.until_ns)
            timed.until_ns = time_ns;
    }
    if (timed.from_ns > timed.until_ns)
        return false; /* no timestamps */

    if (!links->is_resource_kept) {
        if (links->resources_count == links->resources_capacity) {
            struct resource_facts *grown =
                grow(links, links->resources, &links->resources_capacity, sizeof(*grown));
            if (grown == NULL)
                return false;
            links->resources = grown;
        }
        links->resources[links->resources_count++] = links->resource;
        links->is_resource_kept = true;
    }
    timed.resource = links->resources_count - 1;

    struct profile_indices_reader attributes = profile_indices_read(&sample.attributes);
    struct profile_index index;
    while (profile_indices_next(&attributes, &index))
        thread_facts_add(&timed.thread, &profile_links_role(links, index)->thread);
    if (links->timed_count == links->timed_capacity) {
        struct timed_sample *grown =
            grow(links, links->timed, &links->timed_capacity, sizeof(*grown));
        if (grown == NULL)
            return false;
        links->timed = grown;
    }
    links->timed[links->timed_count++] = timed;
    return true;
}

/* False: the sample names no span and cannot be given one. */
static bool collect_sample(struct profile_links *links, const struct wire_field *field,
                           bool is_known)
{
    if (links->named_count == links->named_capacity) {
        struct named_sample *grown =
            grow(links, links->named, &links->named_capacity, sizeof(*grown));
        if (grown == NULL)
            return false;
        links->named = grown;
    }
    struct named_sample *named = &links->named[links->named_count];
    struct profile_sample sample;
    struct profile_index index;
    bool has_label = false;
    named->offset = (uint32_t)(field->whole.data - links->from.request.data);
    named->link = LINK_NONE;
    named->filled = 0;
    if (links->has_roles) {
        profile_read_sample(field->bytes, &sample);
        struct profile_indices_reader attributes = profile_indices_read(&sample.attributes);
        while (profile_indices_next(&attributes, &index)) {
            const struct attribute_role *role = profile_links_role(links, index);
            named->filled |= role->fills;
            has_label |= role->names_span;
        }
        index = sample.link;
    } else {
        index = profile_link_of_sample(field->bytes);
    }
    named->is_by_labels = !profile_index_is_set(index);
    if (!named->is_by_labels) {
        uint32_t known = links->by_link[profile_place(&links->from, PROFILE_LINKS, index)];
        named->link = known != 0 ? known - 1 : read_entry(links, index);
    } else if (has_label) {
        struct profile_indices_reader attributes = profile_indices_read(&sample.attributes);
        struct correlation correlation = {.has_span = false};
        while (profile_indices_next(&attributes, &index))
            if (profile_links_role(links, index)->names_span)
                correlation_take_attribute(&correlation, &links->from, index);
        named->link = place_of(links, &correlation);
    }
    if (named->link != LINK_NONE)
        want(links, named, is_known);
    else if (!links->store->settings.uses_window || !note_timed(links, field->bytes))
        return false;
    links->named_count++;
    return true;
}

static void collect_resource(struct profile_links *links, const struct profile_resource *resource,
                             uint64_t now_ns)
{
    struct join_store *store = links->store;
    struct resource_facts facts = {.service = 0};
    struct process_found found;
    if (resource->resource.data != NULL)
        facts = resource_facts_of(resource->resource);
    uint64_t service = facts.service;
    if (resource->resource.data != NULL && !facts.has_service &&
        process_table_find(&store->processes, &facts, now_ns, &found))
        service = found.service; /* as spans of that process say */
    bool is_known = service_set_is_matched(&store->services, service);
    if (store->settings.uses_window) {
        links->resource = facts;
        links->is_resource_kept = false;
    }

    uint64_t linked = 0; /* samples that name a span, or may get one */
    struct wire_reader scopes = wire_reader_of(resource->bytes);
    struct profile_scope scope;
    struct wire_field profile;
    struct wire_field field;
    while (profile_next_scope(&scopes, &scope)) {
        struct wire_reader profiles = wire_reader_of(scope.bytes);
        while (wire_next_field(&profiles, &profile)) {
            if (profile.number != SCOPE_PROFILES ||
                (!links->names_spans && !store->settings.uses_window))
                continue;
            struct wire_reader samples = wire_reader_of(profile.bytes);
            while (wire_next_field(&samples, &field))
                if (field.number == PROFILE_SAMPLES)
                    linked += collect_sample(links, &field, is_known);
            assert(samples.failure == NULL);
        }
    }
    assert(scopes.failure == NULL);
    links->linked_samples += linked;
    service_set_add(&store->services, service, linked > 0, now_ns);
}

bool profile_links_open(struct profile_links *links, struct slice request, uint64_t now_ns)
{
    const struct join_settings *settings = &links->store->settings;
    struct profile_dictionary *from = &links->from;
    struct link_set *set = &links->set;
    for (uint32_t i = 1; i < set->count; i++) {
        struct join_link *link = &set->items[i];
        *link = (struct join_link){.key = link->key,
                                   .found = link->found,
                                   .is_final = link->is_final,
                                   .is_unused = true,
                                   .facts = link->facts};
    }
    links->named_count = 0;
    links->timed_count = 0;
    links->timed_found = 0;
    links->timed_left_out = 0;
    links->resources_count = 0;
    links->linked_samples = 0;
    links->is_short = false;
    arena_clear(&links->arena);
    if (!profile_dictionary_open(from, &links->arena, request))
        return false;
    uint32_t attributes = from->counts[PROFILE_ATTRIBUTES];
    size_t roles_bytes = ((size_t)attributes + 1) * sizeof(links->roles[0]);
    size_t by_link_bytes = ((size_t)from->counts[PROFILE_LINKS] + 1) * sizeof(links->by_link[0]);
    links->roles = arena_try_alloc(&links->arena, roles_bytes);
    links->by_link = arena_try_alloc(&links->arena, by_link_bytes);
    uint32_t capacity = LINKS_FIRST;
    while (capacity <= set->count ||
           (capacity <= from->counts[PROFILE_LINKS] && capacity < LINKS_AT_ONCE))
        capacity *= 2;
    if (links->roles == NULL || links->by_link == NULL ||
        (capacity > set->capacity && !grow_set(links, capacity)))
        return false;
    memset(links->roles, 0, roles_bytes);
    memset(links->by_link, 0, by_link_bytes);

    links->has_roles = false;
    links->names_spans = from->counts[PROFILE_LINKS] > 1;
    for (uint32_t i = 1; i < attributes; i++) {
        struct correlation none = {.has_span = false};
        struct profile_attribute attribute = profile_attribute_at(from, profile_index_of(i));
        struct attribute_role *role = &links->roles[i];
        if (!profile_has(from, PROFILE_STRINGS, attribute.key))
            continue;
        struct slice key = profile_string_at(from, attribute.key);
        for (size_t k = 0; k < settings->attributes_count; k++)
            if (slice_equal(key, settings->attributes[k].name))
                role->fills |= (uint16_t)(1u << k);
        role->names_span = correlation_take_attribute(&none, from, profile_index_of(i));
        if (settings->uses_window)
            thread_facts_take(&role->thread, key, attribute.value);
        links->names_spans |= role->names_span;
        links->has_roles |= role->names_span || role->fills != 0;
    }

    struct wire_reader reader = wire_reader_of(request);
    struct profile_resource resource;
    while (profile_next_resource(&reader, &resource))
        collect_resource(links, &resource, now_ns);
    assert(reader.failure == NULL);
    return !links->is_short;
}

void join_link_resolve(struct join_link *link, const struct join_store *store)
{
    const struct link_key *key = &link->key;
    if (link->is_final)
        return;
    link->found = (uint8_t)span_index_find(&store->index, key->has_trace ? key->trace : NULL,
                                           key->span, &link->facts);
    if (link->found != SPAN_FOUND)
        return;
    link->is_final = true;
    if (!store->settings.takes_root)
        return;
    struct span_facts root = link->facts;
    enum span_root is_root = span_index_root(&store->index, &root);
    if (is_root != SPAN_ROOT_UNKNOWN)
        link->facts = root;
    link->is_final = is_root == SPAN_ROOT_FOUND;
}

uint32_t profile_links_place(struct profile_links *links, const struct link_key *key)
{
    uint32_t count = links->set.count;
    uint32_t place = find_or_add(links, key);
    if (place == count && place != LINK_NONE)
        join_link_resolve(&links->set.items[place], links->store);
    return place;
}

uint32_t profile_links_resolve(struct profile_links *links)
{
    const struct span_index *index = &links->store->index;
    uint32_t missing = 0;
    uint32_t count = links->set.count;
    struct join_link *items = links->set.items;
    for (uint32_t i = 1; i < count + SLOTS_AHEAD; i++) {
        if (i < count && !items[i].is_final)
            span_index_fetch_slots(index, items[i].key.span);
        if (i > ENTRIES_BEHIND && i - ENTRIES_BEHIND < count && !items[i - ENTRIES_BEHIND].is_final)
            span_index_fetch_entries(index, items[i - ENTRIES_BEHIND].key.span);
        if (i <= SLOTS_AHEAD || items[i - SLOTS_AHEAD].is_unused)
            continue;
        struct join_link *link = &items[i - SLOTS_AHEAD];
        join_link_resolve(link, links->store);
        missing += link->found == SPAN_MISSED;
    }
    uint64_t looks = 0;
    for (uint32_t i = 0; i < links->timed_count; i++) {
        const struct timed_sample *timed = &links->timed[i];
        const struct resource_facts *resource = &links->resources[timed->resource];
        struct named_sample *named = &links->named[timed->named];
        struct window_place place = {.from_ns = timed->from_ns,
                                     .until_ns = timed->until_ns,
                                     .resource = resource->hash,
                                     .thread = timed->thread};
        struct window_span span;
        memcpy(place.names, resource->processes, sizeof(place.names));
        named->link = LINK_NONE;
        if (looks >= JOIN_REQUEST_LOOKS_MAX) {
            links->timed_left_out++;
            continue;
        }
        if (!span_window_find(&links->store->window, &place, &span, &looks))
            continue;
        const struct link_key key = {
            .trace = {span.trace[0], span.trace[1]}, .span = span.span, .has_trace = 1};
        named->link = profile_links_place(links, &key);
        if (named->link == LINK_NONE)
            continue;
        links->timed_found++;
        want(links, named, true);
        links->set.items[named->link].is_lifted = true;
    }
    return missing + links->timed_count;
}
