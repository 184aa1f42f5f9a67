/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting profiles. First, link by link, the dictionary gets what samples will refer to, at the
 * end of its tables, so that no index changes; then samples, Profiles and Resources are edited in
 * their order. Runs on the owner's thread. */
#include "src/join/profiles/profile_enrich.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_walk.h"
#include "src/otlp/key_value.h"
#include "src/otlp/unknown.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/pprof/profile_type.h"

#define OTHER "other"

enum {
    CHILDREN = 2, /* profiles, samples */
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_LINK = 3,
    PROFILE_ATTRIBUTES_FIELD = 11,
};

enum { BUCKET_BYTES_MAX = 64, URLS_FIRST = 16, TYPE_BYTES_MAX = 5 * PROFILE_TYPE_TEXT_MAX };

void profile_enricher_init(struct profile_enricher *enricher, struct join_store *store,
                           struct budget *budget)
{
    *enricher = (struct profile_enricher){.has_unused = false};
    profile_links_init(&enricher->links, store, budget);
    profile_additions_init(&enricher->additions, &enricher->links, budget);
    splice_list_init(&enricher->splices, budget);
}

void profile_enricher_fini(struct profile_enricher *enricher)
{
    profile_links_fini(&enricher->links);
    profile_additions_fini(&enricher->additions);
    mem_free(enricher->urls.indices);
    enricher->urls.indices = NULL;
    splice_list_fini(&enricher->splices);
}

/* A bucket is named by its upper bound, the last one by its lower bound. */
static struct slice bucket_of(const struct join_settings *settings, const struct span_facts *facts,
                              char room[BUCKET_BYTES_MAX])
{
    uint64_t ns = facts->end_ns > facts->start_ns ? facts->end_ns - facts->start_ns : 0;
    size_t bucket = 0;
    assert(settings->buckets_count > 0);
    while (bucket < settings->buckets_count && ns >= settings->buckets_ns[bucket])
        bucket++;
    bool is_last = bucket == settings->buckets_count;
    int bytes = snprintf(room, BUCKET_BYTES_MAX, "%s%s", is_last ? "≥" : "<",
                         settings->bucket_texts[is_last ? bucket - 1 : bucket]);
    return slice_of(room, (size_t)bytes < BUCKET_BYTES_MAX ? (size_t)bytes : BUCKET_BYTES_MAX - 1);
}

/* Attributes for samples of a link whose span is found: values that span_reader put into the index,
 * in the order of the configuration. The two records take 8 KiB of the stack. */
static void add_attributes(struct profile_enricher *enricher, struct join_link *link,
                           uint64_t now_ns)
{
    static const char *const classes[] = {"", "1xx", "2xx", "3xx", "4xx", "5xx", "", ""};
    struct join_store *store = enricher->links.store;
    const struct join_settings *settings = &store->settings;
    const struct span_facts *facts = &link->facts;
    const char *status = classes[(unsigned)(facts->flags & SPAN_CLASS_MASK) >> SPAN_CLASS_SHIFT];
    struct string_record span_record;
    struct string_record resource_record;
    struct slice span_name;
    char bucket[BUCKET_BYTES_MAX];
    if (link->wanted == 0 || !span_index_strings(&store->index, facts, &span_record))
        return;
    struct record_reader span = string_record_read(&span_record);
    uint32_t resource_place = record_next_number(&span);
    if (!record_next(&span, &span_name) ||
        !span_index_strings_at(&store->index, facts->shard, resource_place, &resource_record))
        return;
    struct record_reader resource = string_record_read(&resource_record);
    uint64_t service = record_next_hash(&resource);
    /* Its spans lead to profiles, whatever service name the profiles have. */
    if (service != 0 && !service_set_has(&store->services, service))
        service_set_add(&store->services, service, false, now_ns);
    for (size_t i = 0; i < settings->attributes_count; i++) {
        struct slice value = span_name;
        bool has_value = true;
        bool is_capped = true;
        switch (settings->attributes[i].source) {
        case JOIN_SPAN_NAME:
            has_value = span_name.size > 0;
            break;
        case JOIN_STATUS_CLASS: /* that of HTTP, else of the span */
            if (status[0] == '\0')
                status = (facts->flags & SPAN_IS_ERROR) != 0 ? "error" : "ok";
            value = slice_of_text(status);
            is_capped = false;
            break;
        case JOIN_DURATION_BUCKET:
            value = bucket_of(settings, facts, bucket);
            is_capped = false;
            break;
        case JOIN_OF_SPAN:
            has_value = record_next(&span, &value);
            break;
        case JOIN_OF_RESOURCE:
        default:
            has_value = record_next(&resource, &value);
            break;
        }
        if (!has_value || (link->wanted >> i & 1) == 0)
            continue;
        if (is_capped &&
            !value_cap_admits(&store->caps[i], value, (uint32_t)(now_ns / JOIN_EPOCH_NS))) {
            value = slice_of_text(OTHER);
            enricher->figures.other_values++;
        }
        link->given |= 1u << i;
        link->attributes[i] = profile_additions_attribute(&enricher->additions, i, value);
    }
}

/* Counts the link and adds to the dictionary what its samples will refer to, if there is room. */
static void prepare_link(struct profile_enricher *enricher, struct join_link *link, uint64_t now_ns)
{
    enum {
        ENTRIES_MAX = 1 + JOIN_ATTRIBUTES_MAX,
        /* Those that the index has of a span and of its resource, and a bucket. */
        VALUES_BYTES_MAX = 2 * sizeof(struct string_record) + BUCKET_BYTES_MAX,
    };
    struct join_store *store = enricher->links.store;
    struct enrich_figures *figures = &enricher->figures;
    bool is_found = link->found == SPAN_FOUND;
    const uint64_t *trace = is_found ? link->facts.trace : link->key.trace;
    uint64_t span = is_found ? link->facts.span : link->key.span;
    assert(span != 0);
    figures->hits += is_found;
    figures->ambiguous += link->found == SPAN_AMBIGUOUS;
    figures->unknown_services += link->found == SPAN_MISSED && !link->is_known;
    figures->absent += link->found == SPAN_MISSED && link->is_known;
    if (link->found == SPAN_MISSED)
        id_set_add(&store->missed, span);
    if (store->settings.mark == JOIN_MARK_OBSERVED)
        id_set_add(&store->observed, span);

    bool is_same = link->index != 0 && span == link->key.span && link->key.has_trace != 0;
    bool is_new = !is_same && (is_found || (link->is_lifted && link->key.has_trace));
    if ((is_new || (is_found && link->wanted != 0)) &&
        !profile_additions_have_room(&enricher->additions, ENTRIES_MAX, VALUES_BYTES_MAX)) {
        link->lacks_room = enricher->changes_samples = true;
        link->is_as_it_came = link->index != 0;
        return;
    }
    if (is_found)
        add_attributes(enricher, link, now_ns);
    link->is_as_it_came = is_same || (!is_found && link->index != 0);
    if (is_new)
        link->index = profile_additions_link(&enricher->additions, trace, span);
    enricher->changes_samples |=
        link->given != 0 || (link->index != 0 && (link->is_lifted || !link->is_as_it_came));
}

static uint8_t *put_kept(uint8_t *at, const uint8_t *begin, const uint8_t *end)
{
    if (begin < end)
        profile_copy(at, begin, (size_t)(end - begin));
    return at + (end - begin);
}

/* The fields of a sample that do not change: all but its attributes and, if it gets another, its
 * link. */
static uint8_t *put_other_fields(const struct profile_sample *sample, bool keeps_link, uint8_t *at)
{
    const uint8_t *kept = sample->bytes.data; /* end of what was copied or left out last */
    const uint8_t *packed = sample->attributes.numbers.packed.data;
    size_t packed_bytes = sample->attributes.numbers.packed.size;
    struct wire_reader fields = wire_reader_of(sample->bytes);
    struct wire_field field;
    if (keeps_link && sample->attributes.numbers.number == 0)
        return put_kept(at, kept, fields.end);
    /* The usual layout of attributes: one packed field of less than 128 bytes. */
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

/* Replaces the sample if it gets an attribute or another link and the budget has room for it. */
static void edit_sample(struct profile_enricher *enricher, const struct named_sample *named,
                        const struct join_link *link)
{
    struct splice_list *splices = &enricher->splices;
    struct profile_bytes *out = &splices->inserts;
    struct profile_sample sample;
    struct slice whole = named_sample_read(&enricher->links, named, &sample);
    uint32_t given = link->given & ~(uint32_t)named->filled;
    bool has_link = profile_index_is_set(sample.link);
    bool is_linked = link->index != 0 && (!has_link || !link->is_as_it_came);
    if (given == 0 && !is_linked) {
        enricher->figures.unenriched_samples += link->lacks_room;
        return;
    }
    size_t indices =
        profile_numbers_count_max(&sample.attributes.numbers) + JOIN_ATTRIBUTES_MAX + 1;
    size_t most = sample.bytes.size + indices * (1 + WIRE_SHORT_VARINT_BYTES_MAX) +
                  (size_t)2 * PROFILE_HEADER_BYTES_MAX;
    /* For this sample, and for the batch with all that have changed. */
    if (!budget_has_room(out->budget, splice_list_growth(splices, 2, most) + out->size + most +
                                          enricher->links.from.request.size)) {
        enricher->figures.unenriched_samples++;
        return;
    }

    size_t insert = out->size;
    uint8_t *begin = profile_bytes_room(out, most);
    uint8_t *list = put_other_fields(&sample, !is_linked, begin + PROFILE_HEADER_BYTES);
    uint8_t *end = list + PROFILE_HEADER_BYTES;
    bool is_lifted = named->is_by_labels && link->index != 0; /* labels that name the span go */
    struct profile_indices_reader reader = profile_indices_read(&sample.attributes);
    struct profile_index index;
    if (!is_lifted && sample.attributes.numbers.parent.data == NULL) {
        end = put_kept(end, reader.numbers.at, reader.numbers.end);
    } else {
        while (profile_indices_next(&reader, &index)) {
            if (!is_lifted || !profile_links_role(&enricher->links, index)->names_span)
                end = profile_put_varint(end, (uint64_t)index.number);
            else
                enricher->has_unused = true;
        }
    }
    for (uint32_t left = given; left != 0; left &= left - 1)
        end = profile_put_varint(end, link->attributes[__builtin_ctz(left)]);
    end = profile_close_filled(list, end, SAMPLE_ATTRIBUTES);
    if (is_linked)
        end = profile_put_number(end, SAMPLE_LINK, link->index);
    end = profile_close_short(begin, end, CHILDREN);
    out->size += (size_t)(end - begin);
    assert(out->size <= out->capacity);
    enricher->has_unused |= has_link && is_linked;
    splice_add_from(splices, named->offset, whole.size, insert);
    enricher->figures.enriched_samples += link->found == SPAN_FOUND;
}

static struct slice string_at(const struct profile_dictionary *from, struct profile_index index)
{
    return profile_has(from, PROFILE_STRINGS, index) ? profile_string_at(from, index)
                                                     : slice_of_text("");
}

/* Whether another URL may be added: the name of a service, which is in each, may be long. */
static bool has_room_for_url(const struct profile_enricher *enricher, struct slice url)
{
    enum { MORE_BYTES = 64 };
    const struct profile_additions *additions = &enricher->additions;
    const uint64_t bytes = additions->bytes.size + url.size + MORE_BYTES;
    return bytes - enricher->urls.begin <= JOIN_URLS_BYTES_MAX &&
           profile_additions_have_room(additions, 1, url.size);
}

/* The index of the Profile's URL in the attribute table; 0: it gets none. values: what its Resource
 * says. */
static uint32_t url_of(struct profile_enricher *enricher, struct named_reader *samples,
                       const struct profile *profile, struct url_values values)
{
    const struct profile_links *links = &enricher->links;
    const struct profile_dictionary *from = &links->from;
    uint32_t own_key = enricher->urls.own_key;
    struct profile_indices_reader attributes = profile_indices_read(&profile->attributes);
    struct profile_index index;
    while (own_key != 0 && profile_indices_next(&attributes, &index))
        if (profile_attribute_at(from, index).key.number == own_key)
            return 0; /* it has one */

    /* Whether its samples are of one trace, of one span. */
    const struct named_sample *named;
    uint64_t trace[2] = {0};
    uint64_t span = 0;
    bool has_one_trace = true;
    bool has_one_span = true;
    while ((named = named_reader_next(samples, profile->bytes)) != NULL) {
        if (named->link == LINK_NONE)
            continue;
        const struct join_link *link = &links->set.items[named->link];
        bool is_found = link->found == SPAN_FOUND;
        const uint64_t *its_trace = is_found ? link->facts.trace : link->key.trace;
        uint64_t its_span = is_found ? link->facts.span : link->key.span;
        if (span == 0) {
            memcpy(trace, its_trace, sizeof(trace));
            span = its_span;
        }
        has_one_trace &=
            (is_found || link->key.has_trace != 0) && memcmp(trace, its_trace, sizeof(trace)) == 0;
        has_one_span &= its_span == span;
    }

    /* The type as Pyroscope and Grafana name it. */
    const struct profile_type_texts texts = {
        .type = string_at(from, profile->sample_type.type),
        .unit = string_at(from, profile->sample_type.unit),
        .period_type = string_at(from, profile->period_type.type),
        .period_unit = string_at(from, profile->period_type.unit),
    };
    struct profile_type type = profile_type_canonical(&texts, profile->period > 0, false);
    char type_room[TYPE_BYTES_MAX];
    int type_bytes = snprintf(type_room, TYPE_BYTES_MAX, "%s:%s:%s:%s:%s", type.name, type.type,
                              type.unit, type.period_type, type.period_unit);
    assert(type_bytes > 0 && type_bytes < TYPE_BYTES_MAX);

    char trace_hex[2 * sizeof(trace)];
    char span_hex[2 * sizeof(span)];
    char times[2][URL_MS_BYTES];
    uint8_t room[URL_BYTES_MAX];
    uint64_t from_ns =
        profile->time_unix_ns > JOIN_VIEW_NS ? profile->time_unix_ns - JOIN_VIEW_NS : 0;
    uint64_t until_ns = profile->time_unix_ns + profile->duration_ns + JOIN_VIEW_NS;
    values.texts[URL_FROM_MS] = url_ms(from_ns, times[0]);
    values.texts[URL_UNTIL_MS] = url_ms(until_ns, times[1]);
    values.texts[URL_PROFILE_TYPE] = slice_of(type_room, (size_t)type_bytes);
    if (span != 0 && has_one_trace)
        values.texts[URL_TRACE_ID] = hex_write(trace, sizeof(trace), trace_hex);
    if (span != 0 && has_one_span)
        values.texts[URL_SPAN_ID] = hex_write(&span, sizeof(span), span_hex);
    struct slice url = url_template_write(&links->store->settings.trace_url, &values, room);
    if (url.data == NULL || !has_room_for_url(enricher, url))
        return 0;
    return profile_additions_attribute(&enricher->additions, ADDED_TRACE_URL, url);
}

/* Makes the URLs that lead from Profiles to their trace. They are attributes of the Profile, not of
 * samples, so that no exporter makes a label of them. Where the template has a place for a trace or
 * a span, only Profiles with samples of exactly one get a URL. */
static void collect_urls(struct profile_enricher *enricher, uint64_t now_ns)
{
    const struct profile_links *links = &enricher->links;
    struct profile_urls *urls = &enricher->urls;
    struct wire_reader resources = wire_reader_of(links->from.request);
    struct named_reader samples = {.links = links};
    struct profile_resource resource;
    urls->own_key = enricher->additions.key_index[ADDED_TRACE_URL];
    urls->begin = enricher->additions.bytes.size;
    while (profile_next_resource(&resources, &resource)) {
        struct resource_facts facts = {.service = 0};
        struct resource_identity identity;
        struct process_found found;
        if (resource.resource.data != NULL)
            facts = resource_facts_of(resource.resource);
        /* It gets the service of its process, so it is linked as one of that service. */
        if (profile_resource_identity(links->store, &facts, now_ns, &found, &identity))
            for (int key = 0; key < RESOURCE_IDENTITY_KEYS; key++)
                if (identity.key_values[key].data != NULL)
                    facts.values[key] = key_value_of(identity.key_values[key]).value;
        const struct url_values values = resource_url_values(&facts);
        struct profile_iterator at = profile_iterator_of_resource(resource.bytes);
        while (urls->count < JOIN_URLS_MAX && profile_iterator_next(&at)) {
            if (urls->count == urls->capacity) {
                urls->capacity = urls->capacity > 0 ? 2 * urls->capacity : URLS_FIRST;
                urls->indices =
                    mem_resize(urls->indices, urls->capacity * sizeof(urls->indices[0]));
            }
            urls->indices[urls->count++] = url_of(enricher, &samples, &at.profile, values);
        }
    }
    assert(resources.failure == NULL);
}

/* Removes from the dictionary what nothing refers to any longer: a merge of one request
 * copies only what samples use. Takes and gives a reference; gives the batch as it is when it has
 * fields of later versions, which would be lost, or when the budget has no room for the work. */
static struct batch *drop_unused(struct batch *batch, struct budget *budget)
{
    struct profile_merge merge;
    struct profile_source source;
    if (batch->parts_count > 1 && !budget_has_room(budget, batch->bytes))
        return batch;
    struct batch *whole = batch_in_one_part(batch, budget);
    struct slice request = whole->parts[0].bytes;
    struct batch *result = batch;
    profile_merge_init(&merge, budget);
    if (!otlp_has_unknown(PROFILES, request) && profile_measure_fits(request, budget) &&
        profile_source_open(&source, request, &merge)) {
        const struct otlp_limit limit = {.bytes_max = 2 * batch->bytes + PROFILE_MERGED_BYTES_MAX};
        if (profile_merge_take(&merge, &source, limit) && merge.items == batch->items) {
            result = batch_create_like(batch, 1);
            bool has_any = profile_merge_hand_out(&merge, NULL, result);
            assert(has_any);
            result->items = batch->items;
            batch_unref(batch);
        }
        profile_source_close(&source);
    }
    profile_merge_fini(&merge);
    batch_unref(whole);
    return result;
}

struct batch *profile_enrich(struct profile_enricher *enricher, struct batch *batch,
                             uint64_t now_ns, struct enrich_figures *ret_figures)
{
    struct profile_links *links = &enricher->links;
    struct profile_urls *urls = &enricher->urls;
    struct splice_list *splices = &enricher->splices;
    assert(batch->bytes == links->from.request.size);
    enricher->figures = (struct enrich_figures){.hits = 0};
    enricher->resources = (struct profile_resources){.store = links->store,
                                                     .from = &links->from,
                                                     .splices = splices,
                                                     .now_ns = now_ns,
                                                     .has_links = links->linked_samples > 0};
    enricher->has_unused = false;
    enricher->changes_samples = links->timed_count > 0;
    enricher->named = (struct named_reader){.links = links};
    urls->count = 0;
    urls->next = 0;
    splice_list_clear(splices);
    profile_additions_begin(&enricher->additions);
    for (uint32_t i = 1; i < links->set.count; i++)
        if (!links->set.items[i].is_unused)
            prepare_link(enricher, &links->set.items[i], now_ns);
    if (links->store->settings.trace_url.count > 0)
        collect_urls(enricher, now_ns);

    struct profile_walk walk =
        profile_walk_of(splices, links->from.request, &enricher->additions.bytes);
    while (profile_walk_next(&walk)) {
        if (walk.is_resource) {
            profile_resource_edit(&enricher->resources, &walk);
            continue;
        }
        struct slice content = walk.field.bytes;
        uint64_t body = walk.at + (uint64_t)(content.data - walk.field.whole.data);
        size_t opened = splice_open(splices, walk.at, body);
        const struct named_sample *named;
        while (enricher->changes_samples &&
               (named = named_reader_next(&enricher->named, content)) != NULL)
            if (named->link != LINK_NONE)
                edit_sample(enricher, named, &links->set.items[named->link]);
        uint32_t url = urls->next < urls->count ? urls->indices[urls->next++] : 0;
        if (url != 0) {
            size_t begin = splices->inserts.size;
            uint8_t *room = profile_bytes_room(&splices->inserts, 1 + WIRE_VARINT_BYTES_MAX);
            uint8_t *end = profile_put_number(room, PROFILE_ATTRIBUTES_FIELD, url);
            splices->inserts.size += (size_t)(end - room);
            splice_add_from(splices, body + content.size, 0, begin);
        }
        splice_close(splices, opened, CHILDREN, content.size);
    }
    assert(walk.additions_placed == enricher->additions.bytes.size);
    enricher->figures.repaired = enricher->resources.repaired;
    enricher->figures.labelled = enricher->resources.labelled;
    *ret_figures = enricher->figures;
    if (splices->count == 0)
        return batch_ref(batch);
    struct budget *budget = splices->inserts.budget;
    struct batch *enriched = splice_apply(splices, batch, budget);
    return enricher->has_unused ? drop_unused(enriched, budget) : enriched;
}
