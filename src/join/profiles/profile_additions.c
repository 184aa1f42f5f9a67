/* SPDX-License-Identifier: Apache-2.0 */
/* Each entry is added once. Runs on the owner's thread. */
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

/* LINKS and STRINGS are keys in values, too. */
enum { VALUES_FIRST = 64, LINKS = ADDED_KEYS, STRINGS };
/* Of an entry besides its string, in values as in the dictionary; a link is no longer. */
enum { ENTRY_BYTES = 64 };

/* Linear searches of the request's strings before they are indexed. */
enum { SCANS_MAX = 8 };

void profile_additions_init(struct profile_additions *additions, const struct profile_links *links,
                            struct budget *budget)
{
    *additions = (struct profile_additions){.links = links, .bytes.budget = budget};
    profile_set_init(&additions->values, budget);
}

void profile_additions_fini(struct profile_additions *additions)
{
    profile_set_fini(&additions->values);
    profile_bytes_fini(&additions->bytes);
    mem_free(additions->value_index);
    if (additions->bytes.budget != NULL)
        budget_return(additions->bytes.budget,
                      additions->value_index_capacity * sizeof(additions->value_index[0]));
    additions->value_index = NULL;
    additions->value_index_capacity = 0;
}

/* What more entries take in values and value_index at most, with strings of so many bytes in all.
 */
static uint64_t values_growth(const struct profile_additions *additions, uint64_t entries,
                              uint64_t string_bytes)
{
    const struct profile_set *values = &additions->values;
    const uint64_t count = values->count + entries;
    uint64_t bytes = profile_set_growth(values, string_bytes + entries * ENTRY_BYTES);
    if (count >= values->capacity)
        bytes += profile_set_bytes_max(count);
    if (count >= additions->value_index_capacity) /* doubled until it has them */
        bytes += 2 * (count + VALUES_FIRST) * sizeof(additions->value_index[0]);
    return bytes;
}

bool profile_additions_have_room(const struct profile_additions *additions, uint64_t entries,
                                 uint64_t string_bytes)
{
    enum { COPIES = 4 }; /* of what is inserted, which grows by doubling */
    const struct profile_bytes *out = &additions->bytes;
    const uint64_t bytes = string_bytes + entries * ENTRY_BYTES;
    if (additions->is_full)
        return false;
    if (!additions->has_ids)
        entries += additions->links->set.count;
    return budget_has_room(out->budget, values_growth(additions, entries, string_bytes) +
                                            profile_bytes_growth(out, bytes) +
                                            COPIES * (out->size + bytes) +
                                            additions->links->from.request.size);
}

/* The place of (key, string) in values. For LINKS the string is the ids of a link. */
static uint32_t value_place(struct profile_additions *additions, size_t key, struct slice string)
{
    struct profile_set *values = &additions->values;
    uint8_t *room = profile_set_begin(values, 1 + string.size);
    assert(key <= STRINGS);
    room[0] = (uint8_t)key;
    if (string.size > 0)
        memcpy(room + 1, string.data, string.size);
    uint32_t count = values->count;
    uint32_t place = profile_set_end(values, room + 1 + string.size);
    if (place >= additions->value_index_capacity) {
        struct budget *budget = additions->bytes.budget;
        uint32_t before = additions->value_index_capacity;
        uint32_t capacity = before > 0 ? 2 * before : VALUES_FIRST;
        const size_t item_bytes = sizeof(additions->value_index[0]);
        /* Both lists exist while items are copied. */
        if (budget != NULL)
            budget_take(budget, capacity * item_bytes);
        additions->value_index = mem_resize(additions->value_index, capacity * item_bytes);
        if (budget != NULL)
            budget_return(budget, before * item_bytes);
        additions->value_index_capacity = capacity;
    }
    if (place >= count)
        additions->value_index[place] = 0;
    return place;
}

void profile_additions_begin(struct profile_additions *additions)
{
    const struct profile_dictionary *from = &additions->links->from;
    const struct join_settings *settings = &additions->links->store->settings;
    additions->bytes.size = 0;
    memcpy(additions->counts, from->counts, sizeof(additions->counts));
    memset(additions->key_index, 0, sizeof(additions->key_index));
    profile_set_clear(&additions->values);
    additions->is_full = false;
    additions->has_ids = false;
    additions->has_strings = false;
    additions->scans = 0;

    /* Keys that the request's strings have. */
    bool wants_url = settings->trace_url.count > 0;
    uint64_t sizes = (uint64_t)wants_url << (sizeof(TRACE_URL) - 1) % 64; /* of keys, modulo 64 */
    for (size_t k = 0; k < settings->attributes_count; k++)
        sizes |= (uint64_t)1 << settings->attributes[k].name.size % 64;
    for (uint32_t i = 1; i < from->counts[PROFILE_STRINGS]; i++) {
        if ((sizes >> from->entries[PROFILE_STRINGS][i].size % 64 & 1) == 0)
            continue;
        struct slice string = profile_string_at(from, profile_index_of(i));
        for (size_t k = 0; k < settings->attributes_count; k++)
            if (additions->key_index[k] == 0 && slice_equal(string, settings->attributes[k].name))
                additions->key_index[k] = i;
        if (wants_url && slice_equal_text(string, TRACE_URL))
            additions->key_index[ADDED_TRACE_URL] = i;
    }

    /* Attributes with such a key. */
    uint32_t url_key = additions->key_index[ADDED_TRACE_URL];
    for (uint32_t i = 1; i < from->counts[PROFILE_ATTRIBUTES]; i++) {
        uint16_t fills = additions->links->roles[i].fills;
        struct profile_attribute attribute = profile_attribute_at(from, profile_index_of(i));
        bool is_url = url_key != 0 && attribute.key.number == url_key;
        if ((fills == 0 && !is_url) || profile_index_is_set(attribute.unit) ||
            attribute.value.data == NULL)
            continue;
        struct value value = value_read(attribute.value);
        if (value.type != VALUE_STRING)
            continue;
        size_t key = fills != 0 ? (size_t)__builtin_ctz(fills) : ADDED_TRACE_URL;
        if (!budget_has_room(additions->bytes.budget,
                             values_growth(additions, 1, value.bytes.size))) {
            additions->is_full = true;
            break;
        }
        uint32_t place = value_place(additions, key, value.bytes);
        if (additions->value_index[place] == 0)
            additions->value_index[place] = i;
    }
}

/* Begins an entry at the end of bytes. Every table that grows has a zero element first. */
static size_t begin_entry(struct profile_additions *additions, enum profile_table table)
{
    if (additions->counts[table] == 0) {
        profile_bytes_wrap(&additions->bytes, additions->bytes.size, (uint32_t)table + 1);
        additions->counts[table] = 1;
    }
    return additions->bytes.size;
}

/* The index of the entry, which is what bytes have had appended since `begin`. */
static uint32_t end_entry(struct profile_additions *additions, enum profile_table table,
                          size_t begin)
{
    profile_bytes_wrap(&additions->bytes, begin, (uint32_t)table + 1);
    return additions->counts[table]++;
}

static uint32_t append_string(struct profile_additions *additions, struct slice string)
{
    size_t begin = begin_entry(additions, PROFILE_STRINGS);
    profile_bytes_add(&additions->bytes, string);
    return end_entry(additions, PROFILE_STRINGS, begin);
}

uint32_t profile_additions_attribute(struct profile_additions *additions, size_t key,
                                     struct slice value)
{
    const struct join_settings *settings = &additions->links->store->settings;
    uint32_t place = value_place(additions, key, value);
    assert(key == ADDED_TRACE_URL || key < settings->attributes_count);
    if (additions->value_index[place] != 0)
        return additions->value_index[place];
    if (additions->key_index[key] == 0)
        additions->key_index[key] =
            append_string(additions, key == ADDED_TRACE_URL ? slice_of_text(TRACE_URL)
                                                            : settings->attributes[key].name);
    struct profile_bytes *out = &additions->bytes;
    size_t begin = begin_entry(additions, PROFILE_ATTRIBUTES);
    uint8_t *at = profile_bytes_room(out, 1 + WIRE_VARINT_BYTES_MAX);
    out->size += (size_t)(profile_put_number(at, 1, additions->key_index[key]) - at);
    size_t content = out->size;
    /* Invalid UTF-8 from a span would make the whole request unreadable. */
    uint8_t *room = profile_bytes_room(out, value.size);
    struct slice repaired = otlp_text_repaired(value, room);
    assert(repaired.size == value.size);
    if (repaired.data != room && value.size > 0)
        memcpy(room, value.data, value.size);
    out->size += value.size;
    profile_bytes_wrap(out, content, 1);
    profile_bytes_wrap(out, content, 2);
    additions->value_index[place] = end_entry(additions, PROFILE_ATTRIBUTES, begin);
    return additions->value_index[place];
}

uint32_t profile_additions_string(struct profile_additions *additions, struct slice string)
{
    const struct profile_dictionary *from = &additions->links->from;
    uint32_t count = from->counts[PROFILE_STRINGS];
    uint32_t place = value_place(additions, STRINGS, string);
    assert(string.size > 0);
    if (additions->value_index[place] == 0 && !additions->has_strings) {
        /* Most requests need few strings, for which scanning the table is fastest; from the
         * SCANS_MAX-th on it is indexed. */
        bool scans = additions->scans++ < SCANS_MAX;
        for (uint32_t i = 1; i < count && scans && additions->value_index[place] == 0; i++)
            if (from->entries[PROFILE_STRINGS][i].size == string.size &&
                slice_equal(profile_string_at(from, profile_index_of(i)), string))
                additions->value_index[place] = i;
        /* Without room for the index, the table may get a string twice. */
        const bool is_indexed =
            !scans && budget_has_room(additions->bytes.budget,
                                      values_growth(additions, count, from->request.size));
        for (uint32_t i = 1; i < count && is_indexed; i++) {
            struct slice own = profile_string_at(from, profile_index_of(i));
            uint32_t own_place = value_place(additions, STRINGS, own);
            if (additions->value_index[own_place] == 0)
                additions->value_index[own_place] = i;
        }
        additions->has_strings = !scans;
    }
    if (additions->value_index[place] == 0)
        additions->value_index[place] = append_string(additions, string);
    return additions->value_index[place];
}

/* The index of the link with these ids, in value_index; 0: the table has none. */
static uint32_t *index_of_ids(struct profile_additions *additions, const uint64_t trace[2],
                              uint64_t span)
{
    const uint64_t ids[] = {trace[0], trace[1], span};
    uint32_t place = value_place(additions, LINKS, slice_of(ids, sizeof(ids)));
    assert(span != 0);
    return &additions->value_index[place];
}

uint32_t profile_additions_link(struct profile_additions *additions, const uint64_t trace[2],
                                uint64_t span)
{
    const struct link_set *set = &additions->links->set;
    for (uint32_t i = 1; i < set->count && !additions->has_ids; i++) {
        const struct join_link *link = &set->items[i];
        if (link->index != 0 && link->key.has_trace)
            *index_of_ids(additions, link->key.trace, link->key.span) = link->index;
    }
    additions->has_ids = true;
    uint32_t *index = index_of_ids(additions, trace, span);
    if (*index == 0) {
        struct profile_bytes *out = &additions->bytes;
        size_t begin = begin_entry(additions, PROFILE_LINKS);
        size_t id = out->size;
        profile_bytes_add(out, slice_of(trace, 2 * sizeof(trace[0])));
        profile_bytes_wrap(out, id, 1);
        id = out->size;
        profile_bytes_add(out, slice_of(&span, sizeof(span)));
        profile_bytes_wrap(out, id, 2);
        *index = end_entry(additions, PROFILE_LINKS, begin);
    }
    return *index;
}
