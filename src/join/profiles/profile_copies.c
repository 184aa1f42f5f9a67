/* SPDX-License-Identifier: Apache-2.0 */
/* Who is above whom is found out once per span; then copies are written Profile by Profile. Runs on
 * the owner's thread. */
#include "src/join/profiles/profile_copies.h"

#include <assert.h>

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
    TYPE_TEXT_MAX = 256, /* Profiles of longer ones, which nobody has, get no copies */
    TYPE_END_MAX = 16,
};

struct copies {
    struct profile_links *links;
    struct named_reader named;
    struct profile_additions additions;
    struct splice_list splices;
    struct profile_bytes body;  /* of the sample at hand, without its link */
    enum profile_type_end kind; /* that is being written */
    struct copies_figures figures;
};

bool profile_copies_are_on(const struct join_settings *settings)
{
    assert(settings != NULL);
    return settings->counts_root || settings->counts_ancestors;
}

static bool is_kind_on(const struct join_settings *settings, enum profile_type_end kind)
{
    assert(kind < PROFILE_TYPE_ENDS);
    return kind == PROFILE_OF_ROOT ? settings->counts_root : settings->counts_ancestors;
}

static bool is_local_root(const struct join_link *link)
{
    assert(link->found == SPAN_FOUND);
    return (link->facts.flags & SPAN_IS_LOCAL_ROOT) != 0;
}

/* As span_index_root has it, of a link whose parent did not come or is in another process. */
static bool is_likely_root(const struct join_link *link)
{
    assert(link->above == 0);
    return (link->facts.flags & SPAN_TELLS_ROOT) == 0;
}

/* Parents become links of their own, whose parents are looked for in turn. */
static void find_parents(struct profile_links *links)
{
    assert(links->set.count > 0);
    for (uint32_t i = 1; i < links->set.count && links->set.count < JOIN_LINKS_MAX; i++) {
        const struct join_link *link = &links->set.items[i];
        if (link->found != SPAN_FOUND || is_local_root(link) || link->facts.parent == 0)
            continue;
        const struct link_key key = {.trace = {link->facts.trace[0], link->facts.trace[1]},
                                     .span = link->facts.parent,
                                     .has_trace = 1};
        uint32_t above = profile_links_place(links, &key); /* links may have moved */
        if (above == LINK_NONE)
            return;
        const struct join_link *parent = &links->set.items[above];
        if (parent->found == SPAN_FOUND &&
            parent->facts.resource == links->set.items[i].facts.resource)
            links->set.items[i].above = above;
    }
}

/* Places in set of those spans that a sample of the link at `place` is counted for. */
static uint32_t counted_spans(const struct copies *copies, uint32_t place,
                              uint32_t spans[JOIN_ANCESTORS_MAX])
{
    const struct join_link *links = copies->links->set.items;
    uint32_t count = 0;
    assert(place > 0);
    while (!is_local_root(&links[place]) && links[place].above != 0) {
        if (count == JOIN_ANCESTORS_MAX - 1)
            return 0; /* a circle, or deeper than any program calls */
        place = links[place].above;
        spans[count++] = place;
    }
    if (copies->kind == PROFILE_OF_ANCESTORS)
        return count;
    spans[0] = place;
    return is_local_root(&links[place]) || is_likely_root(&links[place]) ? 1 : 0;
}

/* What the copy keeps: neither what names the span nor what was said of it. */
static uint8_t *put_attributes(const struct copies *copies,
                               const struct profile_indices *attributes, uint8_t *at)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    assert(at != NULL);
    while (profile_indices_next(&reader, &index)) {
        const struct attribute_role *role = profile_links_role(copies->links, index);
        if (!role->names_span && role->fills == 0)
            at = profile_put_varint(at, (uint64_t)index.number);
    }
    return at;
}

static void write_body(struct copies *copies, const struct profile_sample *sample)
{
    struct profile_bytes *body = &copies->body;
    size_t indices = profile_numbers_count_max(&sample->attributes.numbers);
    size_t most = sample->bytes.size + indices * WIRE_SHORT_VARINT_BYTES_MAX +
                  (size_t)PROFILE_HEADER_BYTES_MAX;
    struct wire_reader fields = wire_reader_of(sample->bytes);
    struct wire_field field;
    body->size = 0;
    profile_bytes_room(body, most);
    while (wire_next_field(&fields, &field))
        if (field.number != SAMPLE_ATTRIBUTES && field.number != SAMPLE_LINK)
            profile_bytes_add(body, field.whole);
    uint8_t *list = profile_bytes_room(body, most - body->size);
    uint8_t *end = put_attributes(copies, &sample->attributes, list + PROFILE_HEADER_BYTES);
    end = profile_close_filled(list, end, SAMPLE_ATTRIBUTES);
    body->size += (size_t)(end - list);
    assert(fields.failure == NULL);
    assert(body->size <= body->capacity);
}

static void put_copy(struct copies *copies, const struct join_link *link)
{
    struct profile_bytes *out = &copies->splices.inserts;
    const struct profile_bytes *body = &copies->body;
    uint32_t index =
        profile_additions_link(&copies->additions, link->facts.trace, link->facts.span);
    size_t most = (size_t)PROFILE_HEADER_BYTES_MAX + body->size + 1 + WIRE_VARINT_BYTES_MAX;
    uint8_t *begin = profile_bytes_room(out, most);
    uint8_t *end = begin + PROFILE_HEADER_BYTES;
    assert(index != 0);
    if (body->size > 0)
        profile_copy(end, body->data, body->size);
    end = profile_put_number(end + body->size, SAMPLE_LINK, index);
    end = profile_close_short(begin, end, CHILDREN);
    out->size += (size_t)(end - begin);
    assert(out->size <= out->capacity);
}

static void put_copies(struct copies *copies, const struct named_sample *named)
{
    const struct join_link *links = copies->links->set.items;
    struct profile_sample sample;
    uint32_t spans[JOIN_ANCESTORS_MAX];
    if (named->link == LINK_NONE || links[named->link].found != SPAN_FOUND)
        return;
    uint32_t count = counted_spans(copies, named->link, spans);
    assert(count <= JOIN_ANCESTORS_MAX);
    if (count == 0)
        return;
    named_sample_read(copies->links, named, &sample);
    /* Who comes after one that was left out is left out, too: so the second time, when more bytes
     * stand before them, copies are made of the same samples or fewer. */
    if (copies->figures.left_out > 0 || copies->figures.made + count > JOIN_COPIES_MAX ||
        copies->splices.inserts.size + count * sample.bytes.size > JOIN_COPIES_BYTES_MAX) {
        copies->figures.left_out += count;
        return;
    }
    write_body(copies, &sample);
    for (uint32_t i = 0; i < count; i++)
        put_copy(copies, &links[spans[i]]);
    copies->figures.made += count;
}

/* Who reads them by their id or as their payload wants the Profile that came. */
static bool is_kept(const struct wire_field *field)
{
    assert(field->number > 0);
    return field->number != PROFILE_SAMPLE_TYPE && field->number != CHILDREN &&
           field->number != PROFILE_ID && field->number != PROFILE_PAYLOAD_FORMAT &&
           field->number != PROFILE_PAYLOAD;
}

static void put_type(struct copies *copies, struct slice type, struct profile_index unit)
{
    struct profile_bytes *out = &copies->splices.inserts;
    size_t suffix = strlen(profile_type_ends[copies->kind]);
    uint8_t text[TYPE_TEXT_MAX + TYPE_END_MAX];
    assert(type.size > 0 && type.size <= TYPE_TEXT_MAX);
    assert(suffix <= TYPE_END_MAX);
    memcpy(text, type.data, type.size);
    memcpy(text + type.size, profile_type_ends[copies->kind], suffix);
    uint32_t index =
        profile_additions_string(&copies->additions, slice_of(text, type.size + suffix));
    size_t begin = out->size;
    uint8_t *room = profile_bytes_room(out, 2 * (size_t)(1 + WIRE_VARINT_BYTES_MAX));
    uint8_t *end = profile_put_number(room, 1, index);
    end = profile_put_number(end, 2, (uint64_t)unit.number);
    out->size += (size_t)(end - room);
    profile_bytes_wrap(out, begin, PROFILE_SAMPLE_TYPE);
}

/* The Profile's copy of the kind at hand, if it has any samples. */
static void put_profile(struct copies *copies, const struct profile *profile, struct slice type)
{
    struct profile_bytes *out = &copies->splices.inserts;
    struct wire_reader others = wire_reader_of(profile->bytes);
    const struct named_sample *named;
    struct wire_field field;
    size_t begin = out->size;
    while ((named = named_reader_next(&copies->named, profile->bytes)) != NULL)
        put_copies(copies, named);
    if (out->size == begin)
        return;
    while (wire_next_field(&others, &field))
        if (is_kept(&field))
            profile_bytes_add(out, field.whole);
    assert(others.failure == NULL);
    put_type(copies, type, profile->sample_type.unit);
    profile_bytes_wrap(out, begin, CHILDREN);
}

/* Without a type there is none to tell copies by; those of a join before this one are not copied
 * again. */
static bool may_be_copied(const struct profile_dictionary *from, const struct profile *profile,
                          struct slice *ret_type)
{
    struct profile_index index = profile->sample_type.type;
    assert(from != NULL);
    *ret_type = profile_index_is_set(index) ? profile_string_at(from, index) : slice_of_text("");
    return ret_type->size > 0 && ret_type->size <= TYPE_TEXT_MAX &&
           profile_type_stem_bytes(*ret_type) == ret_type->size;
}

/* Its copies, of all kinds, stand behind a Profile. */
static void copy_profile(void *arg, const struct wire_field *field, uint64_t at)
{
    struct copies *copies = arg;
    struct profile profile = profile_of(field->bytes);
    const struct named_reader named = copies->named;
    size_t begin = copies->splices.inserts.size;
    struct slice type;
    if (!may_be_copied(&copies->links->from, &profile, &type))
        return;
    for (enum profile_type_end kind = 0; kind < PROFILE_TYPE_ENDS; kind++) {
        copies->kind = kind;
        copies->named = named;
        if (is_kind_on(&copies->links->store->settings, kind))
            put_profile(copies, &profile, type);
    }
    assert(copies->splices.inserts.size >= begin);
    if (copies->splices.inserts.size > begin)
        splice_add_from(&copies->splices, at + field->whole.size, 0, begin);
}

/* True: the dictionary has got all that was added to it. */
static bool copy_request(struct copies *copies, struct slice request)
{
    struct profile_walk walk = {
        .splices = &copies->splices,
        .on_profile = copy_profile,
        .arg = copies,
        .additions = &copies->additions.bytes,
    };
    assert(copies->splices.count == 0);
    copies->named = (struct named_reader){.links = copies->links};
    profile_walk_request(&walk, request);
    return walk.additions_placed == copies->additions.bytes.size;
}

/* What the dictionary gets is known only behind the samples. Where it stands before some of them,
 * the second time finds everything in its place. */
static void copy_all(struct copies *copies, struct slice request)
{
    if (copy_request(copies, request))
        return;
    splice_list_clear(&copies->splices);
    copies->figures = (struct copies_figures){.made = 0};
    bool is_whole = copy_request(copies, request);
    assert(is_whole);
}

struct batch *profile_copies_add(struct profile_links *links, struct batch *batch,
                                 struct budget *budget, struct copies_figures *ret_figures)
{
    struct copies copies = {.links = links, .body.budget = budget};
    struct batch *copied = batch;
    assert(profile_copies_are_on(&links->store->settings));
    assert(batch->bytes == links->from.request.size);
    find_parents(links);
    splice_list_init(&copies.splices, budget);
    profile_additions_init(&copies.additions, links, budget);
    profile_additions_begin(&copies.additions);
    copy_all(&copies, links->from.request);
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
