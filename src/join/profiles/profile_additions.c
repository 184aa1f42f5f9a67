/* SPDX-License-Identifier: Apache-2.0 */
/* Entries, each added once. Runs on the owner's thread. */
#include "src/join/profiles/profile_additions.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/otlp/value.h"
#include "src/profiles/pprof/otlp_text.h"

/* By analogy with pyroscope.profile.url. */
#define TRACE_URL "trace.url"

/* VALUES_FIRST: how many at first; LINKS, STRINGS: beside the numbers of keys. */
enum { VALUES_FIRST = 64, LINKS = ADDED_KEYS, STRINGS };

/* Searches of the request's strings, one by one, before they are indexed. */
enum { SCANS_MAX = 8 };

void profile_additions_init(struct profile_additions *additions, const struct profile_links *links,
                            struct budget *budget)
{
    assert(links != NULL);
    *additions = (struct profile_additions){.links = links, .bytes.budget = budget};
    profile_set_init(&additions->values, budget);
}

void profile_additions_fini(struct profile_additions *additions)
{
    assert(additions != NULL);
    profile_set_fini(&additions->values);
    profile_bytes_fini(&additions->bytes);
    mem_free(additions->value_index);
    if (additions->bytes.budget != NULL)
        budget_return(additions->bytes.budget,
                      additions->value_index_capacity * sizeof(additions->value_index[0]));
    additions->value_index = NULL;
    additions->value_index_capacity = 0;
}

/* Beyond the budget's limit if need be. While the index is copied both are there. */
static void grow_value_index(struct profile_additions *additions)
{
    struct budget *budget = additions->bytes.budget;
    uint32_t before = additions->value_index_capacity;
    uint32_t capacity = before > 0 ? 2 * before : VALUES_FIRST;
    const size_t item_bytes = sizeof(additions->value_index[0]);
    if (budget != NULL)
        budget_take(budget, capacity * item_bytes);
    additions->value_index = mem_resize(additions->value_index, capacity * item_bytes);
    if (budget != NULL)
        budget_return(budget, before * item_bytes);
    additions->value_index_capacity = capacity;
}

/* The index of an entry that is appended: what stands in additions since `begin`. */
static uint32_t end_entry(struct profile_additions *additions, enum profile_table table,
                          size_t begin)
{
    assert(additions->counts[table] > 0);
    profile_bytes_wrap(&additions->bytes, begin, (uint32_t)table + 1);
    return additions->counts[table]++;
}

/* Every table that grows has a zero element. */
static size_t begin_entry(struct profile_additions *additions, enum profile_table table)
{
    assert(table < PROFILE_TABLES);
    if (additions->counts[table] == 0) {
        profile_bytes_wrap(&additions->bytes, additions->bytes.size, (uint32_t)table + 1);
        additions->counts[table] = 1;
    }
    return additions->bytes.size;
}

static struct slice name_of(const struct join_settings *settings, size_t key)
{
    assert(key == ADDED_TRACE_URL || key < settings->attributes_count);
    return key == ADDED_TRACE_URL ? slice_of_text(TRACE_URL) : settings->attributes[key].name;
}

static uint32_t key_of(struct profile_additions *additions, size_t key)
{
    const struct join_settings *settings = &additions->links->store->settings;
    assert(key < ADDED_KEYS);
    if (additions->key_index[key] == 0) {
        size_t begin = begin_entry(additions, PROFILE_STRINGS);
        profile_bytes_add(&additions->bytes, name_of(settings, key));
        additions->key_index[key] = end_entry(additions, PROFILE_STRINGS, begin);
    }
    return additions->key_index[key];
}

/* Where values has (key, text); LINKS stands for the ids of a link, STRINGS for a mere text. */
static uint32_t value_place(struct profile_additions *additions, size_t key, struct slice text)
{
    struct profile_set *values = &additions->values;
    uint8_t *room = profile_set_begin(values, 1 + text.size);
    assert(key <= STRINGS);
    room[0] = (uint8_t)key;
    if (text.size > 0)
        memcpy(room + 1, text.data, text.size);
    uint32_t count = values->count;
    uint32_t place = profile_set_end(values, room + 1 + text.size);
    if (place >= additions->value_index_capacity)
        grow_value_index(additions);
    if (place >= count)
        additions->value_index[place] = 0;
    return place;
}

/* Spans may say anything, but a string that is no UTF-8 would make the whole request unreadable. */
static void add_repaired(struct profile_bytes *out, struct slice text)
{
    uint8_t *room = profile_bytes_room(out, text.size);
    struct slice repaired = otlp_text_repaired(text, room);
    assert(repaired.size == text.size);
    if (repaired.data != room && text.size > 0)
        memcpy(room, text.data, text.size);
    out->size += text.size;
}

uint32_t profile_additions_attribute(struct profile_additions *additions, size_t key,
                                     struct slice text)
{
    uint32_t place = value_place(additions, key, text);
    if (additions->value_index[place] != 0)
        return additions->value_index[place];
    uint32_t name = key_of(additions, key);
    size_t begin = begin_entry(additions, PROFILE_ATTRIBUTES);
    struct profile_bytes *out = &additions->bytes;
    uint8_t *at = profile_bytes_room(out, 1 + WIRE_VARINT_BYTES_MAX);
    out->size += (size_t)(profile_put_number(at, 1, name) - at);
    size_t value = out->size;
    add_repaired(out, text);
    profile_bytes_wrap(out, value, 1);
    profile_bytes_wrap(out, value, 2);
    assert(out->size > begin);
    additions->value_index[place] = end_entry(additions, PROFILE_ATTRIBUTES, begin);
    return additions->value_index[place];
}

/* 0: the request does not have it. */
static uint32_t scan_strings(const struct profile_dictionary *from, struct slice text)
{
    assert(text.size > 0);
    for (uint32_t i = 1; i < from->counts[PROFILE_STRINGS]; i++)
        if (from->entries[PROFILE_STRINGS][i].size == text.size &&
            slice_equal(profile_string_at(from, profile_index_of(i)), text))
            return i;
    return 0;
}

/* Makes every string of the request one of values. */
static void index_strings(struct profile_additions *additions)
{
    const struct profile_dictionary *from = &additions->links->from;
    assert(!additions->has_strings);
    for (uint32_t i = 1; i < from->counts[PROFILE_STRINGS]; i++) {
        uint32_t place =
            value_place(additions, STRINGS, profile_string_at(from, profile_index_of(i)));
        if (additions->value_index[place] == 0)
            additions->value_index[place] = i;
    }
    additions->has_strings = true;
}

/* The string of the request at `place` of values, whose text it is. Going through all of them is
 * quickest for the few that most requests ask for; who asks for many gets an index. */
static void find_own_string(struct profile_additions *additions, uint32_t place, struct slice text)
{
    if (additions->has_strings)
        return;
    if (additions->scans++ < SCANS_MAX)
        additions->value_index[place] = scan_strings(&additions->links->from, text);
    else
        index_strings(additions);
}

uint32_t profile_additions_string(struct profile_additions *additions, struct slice text)
{
    uint32_t place = value_place(additions, STRINGS, text);
    assert(text.size > 0);
    if (additions->value_index[place] == 0)
        find_own_string(additions, place, text);
    if (additions->value_index[place] == 0) {
        size_t begin = begin_entry(additions, PROFILE_STRINGS);
        profile_bytes_add(&additions->bytes, text);
        additions->value_index[place] = end_entry(additions, PROFILE_STRINGS, begin);
    }
    return additions->value_index[place];
}

/* Where the link table has these ids, now or later: a number that is 0 as long as it has not. */
static uint32_t *index_of_ids(struct profile_additions *additions, const uint64_t trace[2],
                              uint64_t span)
{
    const uint64_t ids[] = {trace[0], trace[1], span};
    uint32_t place = value_place(additions, LINKS, slice_of(ids, sizeof(ids)));
    assert(span != 0);
    return &additions->value_index[place];
}

static void find_names(struct profile_additions *additions)
{
    const struct profile_dictionary *from = &additions->links->from;
    const struct join_settings *settings = &additions->links->store->settings;
    bool wants_url = settings->trace_url.count > 0;
    uint64_t sizes = (uint64_t)wants_url << (sizeof(TRACE_URL) - 1) % 64; /* of names, modulo 64 */
    for (size_t k = 0; k < settings->attributes_count; k++)
        sizes |= (uint64_t)1 << settings->attributes[k].name.size % 64;
    assert(settings->attributes_count <= JOIN_ATTRIBUTES_MAX);
    for (uint32_t i = 1; i < from->counts[PROFILE_STRINGS]; i++) {
        if ((sizes >> from->entries[PROFILE_STRINGS][i].size % 64 & 1) == 0)
            continue;
        struct slice text = profile_string_at(from, profile_index_of(i));
        for (size_t k = 0; k < settings->attributes_count; k++)
            if (additions->key_index[k] == 0 && slice_equal(text, settings->attributes[k].name))
                additions->key_index[k] = i;
        if (wants_url && slice_equal_text(text, TRACE_URL))
            additions->key_index[ADDED_TRACE_URL] = i;
    }
}

static void find_attributes(struct profile_additions *additions)
{
    const struct profile_dictionary *from = &additions->links->from;
    for (uint32_t i = 1; i < from->counts[PROFILE_ATTRIBUTES]; i++) {
        uint16_t fills = additions->links->roles[i].fills;
        struct profile_attribute attribute = profile_attribute_at(from, profile_index_of(i));
        bool is_url = additions->key_index[ADDED_TRACE_URL] != 0 &&
                      attribute.key.number == additions->key_index[ADDED_TRACE_URL];
        if ((fills == 0 && !is_url) || profile_index_is_set(attribute.unit) ||
            attribute.value.data == NULL)
            continue;
        size_t key = fills != 0 ? (size_t)__builtin_ctz(fills) : ADDED_TRACE_URL;
        struct value value = value_read(attribute.value);
        uint32_t place = value.type == VALUE_TEXT ? value_place(additions, key, value.bytes) : 0;
        if (place != 0 && additions->value_index[place] == 0)
            additions->value_index[place] = i;
    }
    assert(additions->values.count > 0);
}

void profile_additions_begin(struct profile_additions *additions)
{
    const struct profile_links *links = additions->links;
    additions->bytes.size = 0;
    memcpy(additions->counts, links->from.counts, sizeof(additions->counts));
    memset(additions->key_index, 0, sizeof(additions->key_index));
    profile_set_clear(&additions->values);
    find_names(additions);
    find_attributes(additions);
    additions->has_ids = false;
    additions->has_strings = false;
    additions->scans = 0;
    assert(additions->values.count > 0);
}

/* Those of the request's own link table. */
static void find_ids(struct profile_additions *additions)
{
    const struct profile_links *links = additions->links;
    assert(!additions->has_ids);
    for (uint32_t i = 1; i < links->set.count; i++) {
        const struct join_link *link = &links->set.items[i];
        if (link->index != 0 && link->key.has_trace)
            *index_of_ids(additions, link->key.trace, link->key.span) = link->index;
    }
    additions->has_ids = true;
}

static uint32_t append_link(struct profile_additions *additions, const uint64_t trace[2],
                            uint64_t span)
{
    struct profile_bytes *out = &additions->bytes;
    size_t begin = begin_entry(additions, PROFILE_LINKS);
    size_t id = out->size;
    profile_bytes_add(out, slice_of(trace, 2 * sizeof(trace[0])));
    profile_bytes_wrap(out, id, 1);
    id = out->size;
    profile_bytes_add(out, slice_of(&span, sizeof(span)));
    profile_bytes_wrap(out, id, 2);
    assert(out->size > begin);
    return end_entry(additions, PROFILE_LINKS, begin);
}

uint32_t profile_additions_link(struct profile_additions *additions, const uint64_t trace[2],
                                uint64_t span)
{
    assert(span != 0);
    if (!additions->has_ids)
        find_ids(additions);
    uint32_t *index = index_of_ids(additions, trace, span);
    if (*index == 0)
        *index = append_link(additions, trace, span);
    return *index;
}
