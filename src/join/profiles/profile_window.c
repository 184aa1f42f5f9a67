/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by time. Their spans are found anew with each look. Runs on the owner's thread. */
#include "src/join/profiles/profile_window.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/join/index/join_store.h"

void profile_window_begin(struct profile_links *links, struct slice resource)
{
    assert(links->store->settings.uses_window);
    links->resource =
        resource.data != NULL ? resource_facts_of(resource) : (struct resource_facts){.service = 0};
    links->is_resource_kept = false;
}

/* The one at hand is the last of resources from now on. False: there is no memory for it. */
static bool keep_resource(struct profile_links *links)
{
    if (links->is_resource_kept)
        return true;
    if (links->resources_count == links->resources_capacity) {
        struct resource_facts *grown = profile_links_grow(
            links, links->resources, &links->resources_capacity, sizeof(links->resources[0]));
        if (grown == NULL)
            return false;
        links->resources = grown;
    }
    assert(links->resources_count < links->resources_capacity);
    links->resources[links->resources_count++] = links->resource;
    links->is_resource_kept = true;
    return true;
}

/* False: it says nothing of its time. */
static bool read_times(const struct profile_sample *sample, struct timed_sample *timed)
{
    struct profile_numbers_reader reader = profile_numbers_read(&sample->timestamps);
    uint64_t time_ns;
    timed->from_ns = UINT64_MAX;
    while (profile_numbers_next(&reader, &time_ns)) {
        if (time_ns < timed->from_ns)
            timed->from_ns = time_ns;
        if (time_ns > timed->until_ns)
            timed->until_ns = time_ns;
    }
    assert(timed->from_ns <= timed->until_ns || timed->from_ns == UINT64_MAX);
    return timed->from_ns <= timed->until_ns;
}

static void read_thread(const struct profile_dictionary *from, const struct profile_sample *sample,
                        struct thread_facts *thread)
{
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    assert(thread != NULL);
    while (profile_indices_next(&reader, &index)) {
        struct profile_attribute attribute = profile_attribute_at(from, index);
        if (profile_has(from, PROFILE_STRINGS, attribute.key))
            thread_facts_take(thread, profile_string_at(from, attribute.key), attribute.value);
    }
}

static bool is_named(const struct resource_facts *resource)
{
    uint64_t names = 0;
    for (unsigned i = 0; i < RESOURCE_NAMES; i++)
        names |= resource->processes[i];
    assert(resource != NULL);
    return names != 0;
}

bool profile_window_note(struct profile_links *links, struct slice bytes)
{
    struct profile_sample sample;
    assert(links->named_count >= links->timed_count);
    profile_read_sample(bytes, &sample);
    struct timed_sample timed = {.named = links->named_count};
    if (!is_named(&links->resource) || !read_times(&sample, &timed) || !keep_resource(links))
        return false;
    timed.resource = links->resources_count - 1;
    read_thread(&links->from, &sample, &timed.thread);
    if (links->timed_count == links->timed_capacity) {
        struct timed_sample *grown = profile_links_grow(links, links->timed, &links->timed_capacity,
                                                        sizeof(links->timed[0]));
        if (grown == NULL)
            return false;
        links->timed = grown;
    }
    assert(links->timed_count < links->timed_capacity);
    links->timed[links->timed_count++] = timed;
    return true;
}

static void resolve(struct profile_links *links, const struct timed_sample *timed)
{
    struct named_sample *named = &links->named[timed->named];
    const struct resource_facts *resource = &links->resources[timed->resource];
    struct window_place place = {.from_ns = timed->from_ns,
                                 .until_ns = timed->until_ns,
                                 .resource = resource->hash,
                                 .thread = timed->thread};
    struct window_span span;
    memcpy(place.names, resource->processes, sizeof(place.names));
    assert(timed->named < links->named_count);
    named->link = LINK_NONE;
    if (!span_window_find(&links->store->window, &place, &span))
        return;
    struct link_key key = {
        .trace = {span.trace[0], span.trace[1]}, .span = span.span, .has_trace = 1};
    named->link = profile_links_place(links, &key);
    if (named->link == LINK_NONE)
        return;
    links->timed_found++;
    profile_links_want(links, named, true);
    links->set.items[named->link].is_lifted = true;
}

uint32_t profile_window_resolve(struct profile_links *links)
{
    assert(links->timed_count == 0 || links->store->settings.uses_window);
    for (uint32_t i = 0; i < links->timed_count; i++)
        resolve(links, &links->timed[i]);
    return links->timed_count;
}

void profile_window_clear(struct profile_links *links)
{
    assert(links != NULL);
    links->timed_count = 0;
    links->timed_found = 0;
    links->resources_count = 0;
}

void profile_window_fini(struct profile_links *links)
{
    assert(links != NULL);
    mem_free(links->timed);
    mem_free(links->resources);
    links->timed = NULL;
    links->resources = NULL;
}
