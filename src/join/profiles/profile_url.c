/* SPDX-License-Identifier: Apache-2.0 */
/* Which trace a Profile is of is found out sample by sample. Runs on the owner's thread. */
#include "src/join/profiles/profile_url.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/join/key_value.h"
#include "src/join/profiles/profile_resource.h"
#include "src/profiles/pprof/profile_type.h"

enum { FIRST = 16, TRACE_HEX = 32, SPAN_HEX = 16, TYPE_TEXT_MAX = 5 * PROFILE_TYPE_TEXT_MAX };

/* What the samples of a Profile name. */
struct about {
    uint64_t trace[2];
    uint64_t span;
    bool has_one_trace;
    bool has_one_span;
    bool has_any;
};

void profile_urls_fini(struct profile_urls *urls)
{
    assert(urls != NULL);
    mem_free(urls->indices);
    urls->indices = NULL;
}

uint32_t profile_urls_next(struct profile_urls *urls)
{
    assert(urls->next <= urls->count);
    return urls->next < urls->count ? urls->indices[urls->next++] : 0;
}

static void add(struct profile_urls *urls, uint32_t index)
{
    assert(urls->count <= urls->capacity);
    if (urls->count == urls->capacity) {
        urls->capacity = urls->capacity > 0 ? 2 * urls->capacity : FIRST;
        urls->indices = mem_resize(urls->indices, urls->capacity * sizeof(urls->indices[0]));
    }
    urls->indices[urls->count++] = index;
}

static void take(struct about *about, const struct join_link *link)
{
    bool is_found = link->found == SPAN_FOUND;
    const uint64_t *trace = is_found ? link->facts.trace : link->key.trace;
    uint64_t span = is_found ? link->facts.span : link->key.span;
    bool has_trace = is_found || link->key.has_trace != 0;
    assert(span != 0);
    if (!about->has_any)
        *about = (struct about){.trace = {trace[0], trace[1]},
                                .span = span,
                                .has_one_trace = has_trace,
                                .has_one_span = true,
                                .has_any = true};
    about->has_one_trace &= has_trace && trace[0] == about->trace[0] && trace[1] == about->trace[1];
    about->has_one_span &= span == about->span;
}

static struct about about_of(struct named_reader *reader, const struct profile *profile)
{
    struct about about = {.has_any = false};
    const struct named_sample *named;
    assert(reader->links != NULL);
    while ((named = named_reader_next(reader, profile->bytes)) != NULL)
        if (named->link != LINK_NONE)
            take(&about, &reader->links->set.items[named->link]);
    return about;
}

static struct slice string_at(const struct profile_dictionary *from, struct profile_index index)
{
    assert(from != NULL);
    return profile_has(from, PROFILE_STRINGS, index) ? profile_string_at(from, index)
                                                     : slice_of_text("");
}

/* As Pyroscope and Grafana name it. */
static struct slice type_of(const struct profile_dictionary *from, const struct profile *profile,
                            char room[TYPE_TEXT_MAX])
{
    const struct profile_type_texts texts = {
        .type = string_at(from, profile->sample_type.type),
        .unit = string_at(from, profile->sample_type.unit),
        .period_type = string_at(from, profile->period_type.type),
        .period_unit = string_at(from, profile->period_type.unit),
    };
    struct profile_type type = profile_type_canonical(&texts, profile->period > 0, false);
    int bytes = snprintf(room, TYPE_TEXT_MAX, "%s:%s:%s:%s:%s", type.name, type.type, type.unit,
                         type.period_type, type.period_unit);
    assert(bytes > 0 && bytes < TYPE_TEXT_MAX);
    return slice_of(room, (size_t)bytes);
}

/* Its own attribute of that key, which is 0 when nobody has one. */
static bool has_own(const struct profile_dictionary *from, const struct profile *profile,
                    uint32_t key)
{
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct profile_index index;
    assert(from != NULL);
    while (key != 0 && profile_indices_next(&reader, &index))
        if (profile_attribute_at(from, index).key.number == key)
            return true;
    return false;
}

/* The attribute's index; 0: there is no URL. */
static uint32_t url_of(struct named_reader *named, struct profile_additions *additions,
                       const struct profile *profile, const struct resource_facts *resource)
{
    const struct profile_links *links = named->links;
    const struct url_template *template = &links->store->settings.trace_url;
    struct about about = about_of(named, profile);
    char ids[2][TRACE_HEX];
    char times[2][URL_MS_BYTES];
    char type[TYPE_TEXT_MAX];
    uint8_t room[URL_BYTES_MAX];
    uint64_t from_ns =
        profile->time_unix_ns > JOIN_VIEW_NS ? profile->time_unix_ns - JOIN_VIEW_NS : 0;
    uint64_t until_ns = profile->time_unix_ns + profile->duration_ns + JOIN_VIEW_NS;
    struct url_values values = {
        .texts = {
            [URL_SERVICE_NAME] = value_text_or_empty(resource->values[RESOURCE_SERVICE_NAME]),
            [URL_SERVICE_NAMESPACE] =
                value_text_or_empty(resource->values[RESOURCE_SERVICE_NAMESPACE]),
            [URL_FROM_MS] = url_ms(from_ns, times[0]),
            [URL_UNTIL_MS] = url_ms(until_ns, times[1]),
            [URL_PROFILE_TYPE] = type_of(&links->from, profile, type),
        }};
    assert(template->count > 0);
    if (about.has_one_trace)
        values.texts[URL_TRACE_ID] = hex_write(about.trace, sizeof(about.trace), ids[0]);
    if (about.has_one_span)
        values.texts[URL_SPAN_ID] = hex_write(&about.span, sizeof(about.span), ids[1]);
    struct slice url = url_template_write(template, &values, room);
    return url.data != NULL ? profile_additions_attribute(additions, ADDED_TRACE_URL, url) : 0;
}

/* A profile that gets the service of its process is linked as one of that service. */
static void learn_service(const struct join_store *store, uint64_t now_ns,
                          struct resource_facts *facts, struct process_found *found)
{
    struct resource_identity identity;
    assert(now_ns > 0);
    if (!profile_resource_identity(store, facts, now_ns, found, &identity))
        return;
    for (int key = 0; key < RESOURCE_IDENTITY_KEYS; key++)
        if (identity.key_values[key].data != NULL)
            facts->values[key] = key_value_of(identity.key_values[key]).value;
}

void profile_urls_collect(struct profile_urls *urls, const struct profile_links *links,
                          struct profile_additions *additions, uint64_t now_ns)
{
    struct wire_reader resources = wire_reader_of(links->from.request);
    struct named_reader named = {.links = links};
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    struct process_found found;
    uint32_t own_key = additions->key_index[ADDED_TRACE_URL];
    urls->count = 0;
    urls->next = 0;
    if (links->store->settings.trace_url.count == 0)
        return;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct resource_facts facts = {.service = 0};
        if (resource.resource.data != NULL)
            facts = resource_facts_of(resource.resource);
        learn_service(links->store, now_ns, &facts, &found);
        while (profile_next_scope(&scopes, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            while (urls->count < JOIN_URLS_MAX && profile_next_profile(&profiles, &profile))
                add(urls, has_own(&links->from, &profile, own_key)
                              ? 0
                              : url_of(&named, additions, &profile, &facts));
        }
    }
    assert(resources.failure == NULL);
}
