/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting profiles. First, link by link, what the dictionary gets in addition, at the end of its
 * tables, so that no index changes; then, sample by sample, what refers to it. Runs on the owner's
 * thread. */
#include "src/join/profiles/profile_enrich.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_orphans.h"
#include "src/join/profiles/profile_resource.h"
#include "src/join/profiles/profile_walk.h"
#include "src/join/spans/span_values.h"

#define OTHER "other"

enum {
    CHILDREN = 2, /* profiles, samples */
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_LINK = 3,
    PROFILE_ATTRIBUTES_FIELD = 11,
};

void profile_enricher_init(struct profile_enricher *enricher, struct join_store *store,
                           struct budget *budget)
{
    assert(enricher != NULL);
    *enricher = (struct profile_enricher){.has_orphans = false};
    profile_links_init(&enricher->links, store, budget);
    profile_additions_init(&enricher->additions, &enricher->links, budget);
    splice_list_init(&enricher->splices, budget);
}

void profile_enricher_fini(struct profile_enricher *enricher)
{
    assert(enricher != NULL);
    profile_links_fini(&enricher->links);
    profile_additions_fini(&enricher->additions);
    profile_urls_fini(&enricher->urls);
    splice_list_fini(&enricher->splices);
    assert(enricher->splices.items == NULL);
}

static struct slice under_cap(struct profile_enricher *enricher, size_t attribute,
                              struct slice value, uint64_t now_ns)
{
    struct join_store *store = enricher->links.store;
    enum join_source source = store->settings.attributes[attribute].source;
    assert(attribute < store->settings.attributes_count);
    if (source == JOIN_STATUS_CLASS || source == JOIN_DURATION_BUCKET ||
        value_cap_admits(&store->caps[attribute], value, (uint32_t)(now_ns / JOIN_EPOCH_NS)))
        return value;
    enricher->figures.other_values++;
    return slice_of_text(OTHER);
}

/* Its spans lead to profiles, whatever name these have for it. */
static void note_service(struct service_set *services, uint64_t service, uint64_t now_ns)
{
    assert(services != NULL);
    if (service != 0 && !service_set_has(services, service))
        service_set_add(services, service, false, now_ns);
}

static void add_attributes(struct profile_enricher *enricher, struct join_link *link,
                           uint64_t now_ns)
{
    struct join_store *store = enricher->links.store;
    struct span_values values;
    assert(link->found == SPAN_FOUND);
    if (link->wanted == 0 ||
        !span_values_open(&values, &store->settings, &store->index, &link->facts))
        return;
    note_service(&store->services, values.service, now_ns);
    for (size_t i = 0; i < store->settings.attributes_count; i++) {
        struct slice value;
        bool has_value = span_values_next(&values, &value);
        if (!has_value || (link->wanted >> i & 1) == 0)
            continue;
        link->given |= 1u << i;
        link->attributes[i] = profile_additions_attribute(&enricher->additions, i,
                                                          under_cap(enricher, i, value, now_ns));
    }
}

/* An entry of the link table for what the link is now. */
static void add_link(struct profile_enricher *enricher, struct join_link *link)
{
    bool is_found = link->found == SPAN_FOUND;
    const uint64_t *trace = is_found ? link->facts.trace : link->key.trace;
    uint64_t span = is_found ? link->facts.span : link->key.span;
    bool is_as_it_came = link->index != 0 && span == link->key.span && link->key.has_trace != 0;
    assert(span != 0);
    link->is_as_it_came = is_as_it_came || (!is_found && link->index != 0);
    if (is_as_it_came || (!is_found && (!link->is_lifted || !link->key.has_trace)))
        return;
    link->index = profile_additions_link(&enricher->additions, trace, span);
}

static void count_link(struct profile_enricher *enricher, const struct join_link *link)
{
    struct join_store *store = enricher->links.store;
    struct enrich_figures *figures = &enricher->figures;
    figures->hits += link->found == SPAN_FOUND;
    figures->ambiguous += link->found == SPAN_AMBIGUOUS;
    figures->unknown_services += link->found == SPAN_MISSED && !link->is_known;
    figures->absent += link->found == SPAN_MISSED && link->is_known;
    assert(link->key.span != 0);
    if (link->found == SPAN_MISSED)
        id_set_add(&store->missed, link->key.span);
    if (store->settings.mark == JOIN_MARK_OBSERVED)
        id_set_add(&store->observed, link->found == SPAN_FOUND ? link->facts.span : link->key.span);
}

/* Whether the sample names its span in another way from now on. */
static bool gets_link(const struct join_link *link, struct profile_index index)
{
    assert(link->key.span != 0);
    return link->index != 0 && (!profile_index_is_set(index) || !link->is_as_it_came);
}

/* Whether some of its samples may get anything. */
static bool may_change(const struct join_link *link)
{
    assert(link->key.span != 0);
    return link->given != 0 || (link->index != 0 && (link->is_lifted || !link->is_as_it_came));
}

/* Whether the sample gets anything. */
static bool changes(const struct named_sample *named, const struct join_link *link,
                    struct profile_index index)
{
    assert(link->key.span != 0);
    return (link->given & ~(uint32_t)named->filled) != 0 || gets_link(link, index);
}

static uint8_t *put_kept(uint8_t *at, const uint8_t *begin, const uint8_t *end)
{
    assert(begin <= end);
    if (begin < end)
        profile_copy(at, begin, (size_t)(end - begin));
    return at + (end - begin);
}

/* What a sample keeps as it is: all but its attributes and, if it gets another, its link. */
static uint8_t *put_other_fields(const struct profile_sample *sample, bool keeps_link, uint8_t *at)
{
    const uint8_t *kept = sample->bytes.data; /* up to what was copied or left out last */
    const uint8_t *packed = sample->attributes.numbers.packed.data;
    size_t packed_bytes = sample->attributes.numbers.packed.size;
    struct wire_reader fields = wire_reader_of(sample->bytes);
    struct wire_field field;
    if (keeps_link && sample->attributes.numbers.number == 0)
        return put_kept(at, kept, fields.end);
    /* As nearly all attributes lie: in one place, of less than 128 bytes. */
    if (keeps_link && packed_bytes > 0 && packed_bytes < 0x80 && packed - kept >= 2 &&
        packed[-1] == packed_bytes && packed[-2] == (SAMPLE_ATTRIBUTES << 3 | WIRE_BYTES)) {
        at = put_kept(at, kept, packed - 2);
        return put_kept(at, packed + packed_bytes, fields.end);
    }
    while (wire_next_field(&fields, &field)) {
        if (field.number != SAMPLE_ATTRIBUTES && (keeps_link || field.number != SAMPLE_LINK))
            continue;
        at = put_kept(at, kept, field.whole.data);
        kept = fields.at;
    }
    assert(fields.failure == NULL);
    return put_kept(at, kept, fields.end);
}

/* Its attributes; without those that name the span when `is_lifted`. */
static uint8_t *put_own_attributes(struct profile_enricher *enricher,
                                   const struct profile_indices *attributes, bool is_lifted,
                                   uint8_t *at)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    assert(at != NULL);
    if (!is_lifted && attributes->numbers.parent.data == NULL)
        return put_kept(at, reader.numbers.at, reader.numbers.end);
    while (profile_indices_next(&reader, &index)) {
        if (!is_lifted || !profile_links_role(&enricher->links, index)->names_span)
            at = profile_put_varint(at, (uint64_t)index.number);
        else
            enricher->has_orphans = true;
    }
    return at;
}

/* A sample that changes, whole, in the place of the one that came. */
static void put_sample(struct profile_enricher *enricher, const struct profile_sample *sample,
                       const struct named_sample *named, const struct join_link *link)
{
    struct profile_bytes *out = &enricher->splices.inserts;
    bool is_lifted = named->is_by_labels && link->index != 0;
    bool is_linked = gets_link(link, sample->link);
    size_t indices =
        profile_numbers_count_max(&sample->attributes.numbers) + JOIN_ATTRIBUTES_MAX + 1;
    size_t most = sample->bytes.size + indices * (1 + WIRE_SHORT_VARINT_BYTES_MAX) +
                  (size_t)2 * PROFILE_HEADER_BYTES_MAX;
    uint8_t *begin = profile_bytes_room(out, most);
    uint8_t *end = put_other_fields(sample, !is_linked, begin + PROFILE_HEADER_BYTES);
    uint8_t *list = end;
    end = put_own_attributes(enricher, &sample->attributes, is_lifted, end + PROFILE_HEADER_BYTES);
    for (uint32_t left = link->given & ~(uint32_t)named->filled; left != 0; left &= left - 1)
        end = profile_put_varint(end, link->attributes[__builtin_ctz(left)]);
    enricher->has_orphans |= profile_index_is_set(sample->link) && is_linked;
    end = profile_close_filled(list, end, SAMPLE_ATTRIBUTES);
    if (is_linked)
        end = profile_put_number(end, SAMPLE_LINK, link->index);
    end = profile_close_short(begin, end, CHILDREN);
    out->size += (size_t)(end - begin);
    assert(out->size <= out->capacity);
}

/* Whether the budget has room for one more changed sample, and for the batch with all of them. */
static bool has_room(const struct profile_enricher *enricher, const struct profile_sample *sample)
{
    const struct splice_list *splices = &enricher->splices;
    uint64_t indices =
        profile_numbers_count_max(&sample->attributes.numbers) + JOIN_ATTRIBUTES_MAX + 1;
    uint64_t bytes = sample->bytes.size + indices * (1 + WIRE_SHORT_VARINT_BYTES_MAX) +
                     (uint64_t)2 * PROFILE_HEADER_BYTES_MAX;
    return budget_has_room(splices->inserts.budget, splice_list_growth(splices, 2, bytes) +
                                                        splices->inserts.size + bytes +
                                                        enricher->links.from.request.size);
}

static void edit_sample(struct profile_enricher *enricher, const struct named_sample *named,
                        const struct join_link *link)
{
    struct profile_sample sample;
    struct slice whole = named_sample_read(&enricher->links, named, &sample);
    assert(link->key.span != 0);
    if (!changes(named, link, sample.link) || !has_room(enricher, &sample))
        return;
    size_t begin = enricher->splices.inserts.size;
    put_sample(enricher, &sample, named, link);
    splice_add_from(&enricher->splices, named->offset, whole.size, begin);
    enricher->figures.enriched_samples += link->found == SPAN_FOUND;
}

/* Of a Profile. Those that name no span are not looked at. */
static void edit_samples(struct profile_enricher *enricher, struct slice profile)
{
    const struct named_sample *named;
    assert(enricher->named.links == &enricher->links);
    if (!enricher->changes_samples)
        return;
    while ((named = named_reader_next(&enricher->named, profile)) != NULL)
        if (named->link != LINK_NONE)
            edit_sample(enricher, named, &enricher->links.set.items[named->link]);
}

/* At the end of a Profile. */
static void put_url(struct profile_enricher *enricher, uint64_t at)
{
    struct splice_list *splices = &enricher->splices;
    size_t begin = splices->inserts.size;
    uint32_t index = profile_urls_next(&enricher->urls);
    if (index == 0)
        return;
    uint8_t *room = profile_bytes_room(&splices->inserts, 1 + WIRE_VARINT_BYTES_MAX);
    uint8_t *end = profile_put_number(room, PROFILE_ATTRIBUTES_FIELD, index);
    splices->inserts.size += (size_t)(end - room);
    splice_add_from(splices, at, 0, begin);
    assert(splices->inserts.size > begin);
}

static void edit_profile(void *arg, const struct wire_field *field, uint64_t at)
{
    struct profile_enricher *enricher = arg;
    uint64_t body = at + (uint64_t)(field->bytes.data - field->whole.data);
    size_t opened = splice_open(&enricher->splices, at, body);
    assert(field->number == CHILDREN);
    edit_samples(enricher, field->bytes);
    put_url(enricher, body + field->bytes.size);
    splice_close(&enricher->splices, opened, CHILDREN, field->bytes.size);
}

static void edit_resource(void *arg, const struct wire_field *field, uint64_t at,
                          struct slice around)
{
    struct profile_enricher *enricher = arg;
    assert(enricher->resources.splices == &enricher->splices);
    profile_resource_edit(&enricher->resources, field, at, around);
}

static void edit_request(struct profile_enricher *enricher, struct slice request)
{
    struct profile_walk walk = {
        .splices = &enricher->splices,
        .on_resource = edit_resource,
        .on_profile = edit_profile,
        .arg = enricher,
        .additions = &enricher->additions.bytes,
    };
    profile_walk_request(&walk, request);
    assert(walk.additions_placed == enricher->additions.bytes.size);
}

struct batch *profile_enrich(struct profile_enricher *enricher, struct batch *batch,
                             uint64_t now_ns, struct enrich_figures *ret_figures)
{
    struct profile_links *links = &enricher->links;
    assert(batch->bytes == links->from.request.size);
    enricher->figures = (struct enrich_figures){.hits = 0};
    enricher->resources = (struct profile_resources){.store = links->store,
                                                     .from = &links->from,
                                                     .splices = &enricher->splices,
                                                     .now_ns = now_ns,
                                                     .has_links = links->linked_samples > 0};
    enricher->has_orphans = false;
    enricher->changes_samples = links->timed_count > 0;
    enricher->named = (struct named_reader){.links = links};
    splice_list_clear(&enricher->splices);
    profile_additions_begin(&enricher->additions);
    for (uint32_t i = 1; i < links->set.count; i++) {
        struct join_link *link = &links->set.items[i];
        count_link(enricher, link);
        if (link->found == SPAN_FOUND)
            add_attributes(enricher, link, now_ns);
        add_link(enricher, link);
        enricher->changes_samples |= may_change(link);
    }
    profile_urls_collect(&enricher->urls, links, &enricher->additions, now_ns);
    edit_request(enricher, links->from.request);
    enricher->figures.repaired = enricher->resources.repaired;
    enricher->figures.labelled = enricher->resources.labelled;
    *ret_figures = enricher->figures;
    if (enricher->splices.count == 0)
        return batch_ref(batch);
    struct budget *budget = enricher->splices.inserts.budget;
    struct batch *enriched = splice_apply(&enricher->splices, batch, budget);
    return enricher->has_orphans ? profile_without_orphans(enriched, budget) : enriched;
}
