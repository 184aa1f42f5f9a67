/* SPDX-License-Identifier: Apache-2.0 */
/* Parents are looked up once per span; then copies are written Profile by Profile. Runs on the
 * owner's thread. */
#include "src/join/profiles/profile_copies.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_additions.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_walk.h"
#include "src/join/splice.h"
#include "src/profiles/pprof/profile_type.h"

enum {
    CHILDREN = 2, /* profiles, samples */
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_ID = 7,
    PROFILE_PAYLOAD_FORMAT = 9,
    PROFILE_PAYLOAD = 10,
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_LINK = 3,
    TYPE_BYTES_MAX = 256, /* Profiles of longer types get no copies */
    TYPE_END_MAX = 16,
};

struct copies {
    struct profile_links *links;
    struct named_reader named;
    struct profile_additions additions;
    struct splice_list splices;
    struct profile_bytes body;  /* of the sample at hand, without its link */
    uint64_t most;              /* copies, in this pass */
    enum profile_type_end kind; /* being written */
    struct copies_figures figures;
};

bool profile_copies_are_on(const struct join_settings *settings)
{
    return settings->counts_root || settings->counts_ancestors;
}

static bool is_local_root(const struct join_link *link)
{
    assert(link->found == SPAN_FOUND);
    return (link->facts.flags & SPAN_IS_LOCAL_ROOT) != 0;
}

/* Places in set of the spans that a sample of the link at `place` also counts for. */
static uint32_t counted_spans(const struct copies *copies, uint32_t place,
                              uint32_t spans[JOIN_ANCESTORS_MAX])
{
    const struct join_link *links = copies->links->set.items;
    uint32_t count = 0;
    while (!is_local_root(&links[place]) && links[place].above != 0) {
        if (count == JOIN_ANCESTORS_MAX - 1)
            return 0; /* a cycle, or deeper than any program calls */
        place = links[place].above;
        spans[count++] = place;
    }
    if (copies->kind == PROFILE_OF_ANCESTORS)
        return count;
    /* As in span_index_root: without a parent, it is the root unless its SDK says otherwise. */
    bool is_likely_root = (links[place].facts.flags & SPAN_TELLS_ROOT) == 0;
    spans[0] = place;
    return is_local_root(&links[place]) || is_likely_root ? 1 : 0;
}

/* Whether the budget has room for so many copies of so many bytes, then for the batch with all
 * copies: first their bytes alone, then all in one part. */
static bool has_room(const struct copies *copies, uint64_t count, uint64_t bytes)
{
    enum { LINK_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX };
    const struct profile_bytes *out = &copies->splices.inserts;
    uint64_t more = count * (bytes + 2 * (uint64_t)PROFILE_HEADER_BYTES_MAX + LINK_BYTES_MAX);
    return profile_additions_have_room(&copies->additions, count + 1,
                                       TYPE_BYTES_MAX + TYPE_END_MAX) &&
           budget_has_room(out->budget, splice_list_growth(&copies->splices, 2, more) +
                                            2 * (out->size + more) +
                                            copies->links->from.request.size);
}

/* Writes the copies of a sample, of the kind at hand. */
static void put_copies(struct copies *copies, const struct named_sample *named)
{
    const struct join_link *links = copies->links->set.items;
    struct profile_sample sample;
    uint32_t spans[JOIN_ANCESTORS_MAX];
    if (named->link == LINK_NONE || links[named->link].found != SPAN_FOUND)
        return;
    uint32_t count = counted_spans(copies, named->link, spans);
    if (count == 0)
        return;
    named_sample_read(copies->links, named, &sample);
    /* Once one is left out, all that follow are: so a second pass, with more bytes before them,
     * copies the same samples or fewer. */
    if (copies->figures.left_out > 0 || copies->figures.made + count > copies->most ||
        copies->splices.inserts.size + count * sample.bytes.size > JOIN_COPIES_BYTES_MAX ||
        !has_room(copies, count, sample.bytes.size)) {
        copies->figures.left_out += count;
        return;
    }

    /* The sample without its Link and without attributes that name the span or describe it. */
    struct profile_bytes *body = &copies->body;
    size_t most =
        sample.bytes.size + (size_t)PROFILE_HEADER_BYTES_MAX +
        profile_numbers_count_max(&sample.attributes.numbers) * WIRE_SHORT_VARINT_BYTES_MAX;
    struct wire_reader fields = wire_reader_of(sample.bytes);
    struct wire_field field;
    body->size = 0;
    profile_bytes_room(body, most);
    while (wire_next_field(&fields, &field))
        if (field.number != SAMPLE_ATTRIBUTES && field.number != SAMPLE_LINK)
            profile_bytes_add(body, field.whole);
    assert(fields.failure == NULL);
    struct profile_indices_reader attributes = profile_indices_read(&sample.attributes);
    struct profile_index attribute;
    uint8_t *list = profile_bytes_room(body, most - body->size);
    uint8_t *end = list + PROFILE_HEADER_BYTES;
    while (profile_indices_next(&attributes, &attribute)) {
        const struct attribute_role *role = profile_links_role(copies->links, attribute);
        if (!role->names_span && role->fills == 0)
            end = profile_put_varint(end, (uint64_t)attribute.number);
    }
    end = profile_close_filled(list, end, SAMPLE_ATTRIBUTES);
    body->size += (size_t)(end - list);
    assert(body->size <= body->capacity);

    struct profile_bytes *out = &copies->splices.inserts;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_facts *span = &links[spans[i]].facts;
        uint32_t link = profile_additions_link(&copies->additions, span->trace, span->span);
        uint8_t *begin = profile_bytes_room(out, (size_t)PROFILE_HEADER_BYTES_MAX + body->size + 1 +
                                                     WIRE_VARINT_BYTES_MAX);
        end = begin + PROFILE_HEADER_BYTES;
        if (body->size > 0)
            profile_copy(end, body->data, body->size);
        end = profile_put_number(end + body->size, SAMPLE_LINK, link);
        end = profile_close_short(begin, end, CHILDREN);
        out->size += (size_t)(end - begin);
        assert(out->size <= out->capacity);
    }
    copies->figures.made += count;
}

/* Puts Profiles with the copies, one of each kind, behind the Profile that the walk has reached. */
static void copy_profile(struct copies *copies, const struct profile_walk *walk)
{
    const struct join_settings *settings = &copies->links->store->settings;
    struct profile_bytes *out = &copies->splices.inserts;
    struct profile profile = profile_of(walk->field.bytes);
    struct profile_index index = profile.sample_type.type;
    struct slice type = slice_of_text("");
    if (profile_index_is_set(index))
        type = profile_string_at(&copies->links->from, index);
    /* Copies are distinguished by their type; those of an earlier join are not copied again. */
    if (type.size == 0 || type.size > TYPE_BYTES_MAX || profile_type_stem_bytes(type) != type.size)
        return;
    const struct named_reader samples = copies->named;
    const size_t before = out->size;
    for (enum profile_type_end kind = 0; kind < PROFILE_TYPE_ENDS; kind++) {
        if (kind == PROFILE_OF_ROOT ? !settings->counts_root : !settings->counts_ancestors)
            continue;
        const struct named_sample *named;
        size_t begin = out->size;
        copies->kind = kind;
        copies->named = samples;
        while ((named = named_reader_next(&copies->named, profile.bytes)) != NULL)
            put_copies(copies, named);
        if (out->size == begin)
            continue;
        /* The id and the payload are those of the Profile that arrived. */
        struct wire_reader others = wire_reader_of(profile.bytes);
        struct wire_field field;
        while (wire_next_field(&others, &field))
            if (field.number != PROFILE_SAMPLE_TYPE && field.number != CHILDREN &&
                field.number != PROFILE_ID && field.number != PROFILE_PAYLOAD_FORMAT &&
                field.number != PROFILE_PAYLOAD)
                profile_bytes_add(out, field.whole);
        assert(others.failure == NULL);

        uint8_t copied_type[TYPE_BYTES_MAX + TYPE_END_MAX];
        size_t suffix = strlen(profile_type_ends[kind]);
        assert(suffix <= TYPE_END_MAX);
        memcpy(copied_type, type.data, type.size);
        memcpy(copied_type + type.size, profile_type_ends[kind], suffix);
        uint32_t string =
            profile_additions_string(&copies->additions, slice_of(copied_type, type.size + suffix));
        size_t content = out->size;
        uint8_t *room = profile_bytes_room(out, 2 * (size_t)(1 + WIRE_VARINT_BYTES_MAX));
        uint8_t *end = profile_put_number(room, 1, string);
        end = profile_put_number(end, 2, (uint64_t)profile.sample_type.unit.number);
        out->size += (size_t)(end - room);
        profile_bytes_wrap(out, content, PROFILE_SAMPLE_TYPE);
        profile_bytes_wrap(out, begin, CHILDREN);
    }
    if (out->size > before)
        splice_add_from(&copies->splices, walk->at + walk->field.whole.size, 0, before);
}

/* True: the dictionary has all that was added to it. */
static bool copy_request(struct copies *copies, struct slice request)
{
    struct profile_walk walk = profile_walk_of(&copies->splices, request, &copies->additions.bytes);
    copies->named = (struct named_reader){.links = copies->links};
    while (profile_walk_next(&walk))
        if (!walk.is_resource)
            copy_profile(copies, &walk);
    return walk.additions_placed == copies->additions.bytes.size;
}

struct batch *profile_copies_add(struct profile_links *links, struct batch *batch,
                                 struct budget *budget, struct copies_figures *ret_figures)
{
    struct copies copies = {.links = links, .body.budget = budget, .most = JOIN_COPIES_MAX};
    struct batch *copied = batch;
    assert(profile_copies_are_on(&links->store->settings));
    assert(batch->bytes == links->from.request.size);
    /* Sets `above`. Parents become links of their own, whose parents are looked up in turn, step by
     * step. */
    uint32_t step_end = links->set.count;
    unsigned steps = 0;
    for (uint32_t i = 1; i < links->set.count && links->set.count < JOIN_LINKS_MAX; i++) {
        const struct join_link *link = &links->set.items[i];
        if (i == step_end) {
            if (++steps == JOIN_ANCESTORS_MAX)
                break; /* none is counted that is further up */
            step_end = links->set.count;
        }
        if (link->found != SPAN_FOUND || is_local_root(link) || link->facts.parent == 0)
            continue;
        const struct link_key key = {.trace = {link->facts.trace[0], link->facts.trace[1]},
                                     .span = link->facts.parent,
                                     .has_trace = 1};
        uint32_t above = profile_links_place(links, &key); /* links may have moved */
        if (above == LINK_NONE)
            break;
        const struct join_link *parent = &links->set.items[above];
        if (parent->found == SPAN_FOUND &&
            parent->facts.resource == links->set.items[i].facts.resource)
            links->set.items[i].above = above;
    }
    splice_list_init(&copies.splices, budget);
    profile_additions_init(&copies.additions, links, budget);
    profile_additions_begin(&copies.additions);
    /* The additions are known only after all samples. When the dictionary precedes some of them,
     * a second pass has all additions from the start. It makes no more copies, though there may be
     * more room by now. */
    if (!copy_request(&copies, links->from.request)) {
        splice_list_clear(&copies.splices);
        copies.most = copies.figures.made;
        copies.figures = (struct copies_figures){.made = 0};
        bool is_whole = copy_request(&copies, links->from.request);
        assert(is_whole);
    }
    if (copies.figures.made == 0) {
        batch_ref(batch);
    } else {
        copied = splice_apply(&copies.splices, batch, budget);
        copied->items = batch->items + copies.figures.made;
    }
    *ret_figures = copies.figures;
    profile_additions_fini(&copies.additions);
    profile_bytes_fini(&copies.body);
    splice_list_fini(&copies.splices);
    return copied;
}
