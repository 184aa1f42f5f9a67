/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes go to the resource because they hold for the whole process, and because exporters make
 * labels of resource attributes. Runs on the owner's thread. */
#include "src/join/profiles/profile_resource.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/hex.h"
#include "src/join/index/join_store.h"
#include "src/join/join_limits.h"
#include "src/join/profiles/profile_walk.h"
#include "src/join/splice.h"
#include "src/otlp/key_value.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"

#define TRACE_KEY "trace_id"
#define ROOT_KEY  "root_span_id"

enum {
    RESOURCE = 1,
    ATTRIBUTES = 1,
    KEY = 1,
    VALUE = 2,
    TEXT = 1,
    ID_BYTES_MAX = 16,
    PAIR_BYTES_MAX = 8 + sizeof(ROOT_KEY) + 2 * ID_BYTES_MAX,
};

bool profile_resource_identity(const struct join_store *store, const struct resource_facts *facts,
                               uint64_t now_ns, struct process_found *ret_found,
                               struct resource_identity *ret_identity)
{
    struct slice key_value;
    *ret_identity = (struct resource_identity){{{.data = NULL}}};
    if (!store->settings.repairs_identity || facts->has_service ||
        !process_table_find(&store->processes, facts, now_ns, ret_found))
        return false;
    assert(ret_found->service != 0);
    while (record_next(&ret_found->attributes, &key_value)) {
        enum resource_key key = resource_identity_key(key_value_of(key_value).key);
        if (key == RESOURCE_IDENTITY_KEYS ||
            (key == RESOURCE_SERVICE_INSTANCE && ret_found->has_instances))
            continue;
        /* The environment has two keys; either is enough. */
        bool is_environment = key == RESOURCE_ENVIRONMENT || key == RESOURCE_ENVIRONMENT_NAME;
        bool is_lacking = is_environment ? resource_lacks(facts, RESOURCE_ENVIRONMENT) &&
                                               resource_lacks(facts, RESOURCE_ENVIRONMENT_NAME)
                                         : resource_lacks(facts, key);
        if (is_lacking)
            ret_identity->key_values[key] = key_value;
    }
    return true;
}

static bool has_key(struct slice resource, const char *key)
{
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == ATTRIBUTES && field.type == WIRE_BYTES &&
            slice_equal_text(key_value_of(field.bytes).key, key))
            return true;
    assert(reader.failure == NULL);
    return false;
}

bool profile_resource_may_get_trace(struct slice resource)
{
    return !has_key(resource, TRACE_KEY) || !has_key(resource, ROOT_KEY);
}

bool profile_resource_window(struct slice content, uint64_t *ret_from_ns, uint64_t *ret_until_ns)
{
    struct profile_iterator at = profile_iterator_of_resource(content);
    uint64_t from_ns = UINT64_MAX;
    uint64_t until_ns = 0;
    while (profile_iterator_next(&at)) {
        uint64_t begin = at.profile.time_unix_ns;
        uint64_t end = begin + at.profile.duration_ns;
        if (begin == 0 || end < begin)
            continue;
        from_ns = begin < from_ns ? begin : from_ns;
        until_ns = end > until_ns ? end : until_ns;
    }
    if (until_ns == 0)
        return false;
    *ret_from_ns = from_ns;
    *ret_until_ns = until_ns;
    return true;
}

/* Which of the trace's ids the program has set itself. */
struct own_ids {
    bool has_trace;
    bool has_root;
};

static void note_attributes(struct own_ids *own, const struct profile_dictionary *from,
                            const struct profile_indices *attributes)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        struct profile_attribute attribute = profile_attribute_at(from, index);
        if (!profile_has(from, PROFILE_STRINGS, attribute.key))
            continue;
        struct slice key = profile_string_at(from, attribute.key);
        own->has_trace |= slice_equal_text(key, TRACE_KEY);
        own->has_root |= slice_equal_text(key, ROOT_KEY);
    }
}

/* An id in hexadecimal. */
static void add_id(struct profile_bytes *inserts, const char *key, struct slice id)
{
    uint8_t text[2 * ID_BYTES_MAX];
    uint8_t room[PAIR_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    size_t begin = inserts->size;
    assert(id.size <= ID_BYTES_MAX);
    wire_write_bytes(&writer, KEY, slice_of_text(key));
    wire_write_header(&writer, VALUE, 2 + 2 * id.size);
    wire_write_bytes(&writer, TEXT, hex_write(id.data, id.size, text));
    assert(!writer.has_failed);
    profile_bytes_add(inserts, wire_written(&writer));
    profile_bytes_wrap(inserts, begin, ATTRIBUTES);
}

/* Appends the only trace of the process to inserts, if there is one. */
static bool add_trace(struct profile_resources *resources, const struct resource_facts *facts,
                      struct slice resource, struct slice content)
{
    struct join_store *store = resources->store;
    struct profile_bytes *inserts = &resources->splices->inserts;
    const struct process_names names = process_names_of(facts);
    struct single_trace trace;
    uint64_t from_ns;
    uint64_t until_ns;
    /* A profiler that names spans knows better. */
    bool names_spans = facts->service != 0 ? service_set_is_linked(&store->services, facts->service)
                                           : resources->has_links;
    if (!store->settings.finds_single_traces || names_spans ||
        single_traces_state(&store->single_traces, &names, resources->now_ns) !=
            PROCESS_HAS_TRACE ||
        !profile_resource_window(content, &from_ns, &until_ns) ||
        single_traces_find(&store->single_traces, &names, from_ns, until_ns, &trace) !=
            SINGLE_TRACE_FOUND)
        return false;
    /* Ids on any Profile or sample count as well: the resource's ids would win over those of
     * samples in Pyroscope's series. */
    struct own_ids own = {.has_trace = has_key(resource, TRACE_KEY),
                          .has_root = has_key(resource, ROOT_KEY)};
    struct profile_iterator at = profile_iterator_of_resource(content);
    struct profile_sample sample;
    while (profile_iterator_next(&at)) {
        struct wire_reader samples = wire_reader_of(at.profile.bytes);
        note_attributes(&own, resources->from, &at.profile.attributes);
        while (!(own.has_trace && own.has_root) && profile_next_sample(&samples, &sample))
            note_attributes(&own, resources->from, &sample.attributes);
    }
    bool adds_trace = !own.has_trace;
    bool adds_root = trace.root != 0 && !own.has_root;
    if (adds_trace)
        add_id(inserts, TRACE_KEY, slice_of(trace.trace, sizeof(trace.trace)));
    if (adds_root)
        add_id(inserts, ROOT_KEY, slice_of(&trace.root, sizeof(trace.root)));
    return adds_trace || adds_root;
}

static void add_attribute(struct profile_bytes *inserts, struct slice key_value)
{
    size_t begin = inserts->size;
    profile_bytes_add(inserts, key_value);
    profile_bytes_wrap(inserts, begin, ATTRIBUTES);
}

/* For what a Resource may get, and for the batch with all that has changed. */
static bool has_room(const struct profile_resources *resources)
{
    enum {
        EDITS_MAX = RESOURCE_IDENTITY_KEYS + 1,
        MOST = sizeof(struct string_record) + 2 * PAIR_BYTES_MAX +
               EDITS_MAX * PROFILE_HEADER_BYTES_MAX,
    };
    const struct splice_list *splices = resources->splices;
    const struct profile_bytes *inserts = &splices->inserts;
    const uint64_t request_bytes = resources->from->request.size;
    return resources->added_bytes <=
               JOIN_RESOURCES_BYTES_FREE + JOIN_RESOURCES_GROWTH_MAX * request_bytes &&
           budget_has_room(inserts->budget, splice_list_growth(splices, EDITS_MAX, MOST) +
                                                inserts->size + MOST + request_bytes);
}

void profile_resource_edit(struct profile_resources *resources, const struct profile_walk *walk)
{
    struct splice_list *splices = resources->splices;
    struct profile_bytes *inserts = &splices->inserts;
    struct slice resource = walk->field.bytes;
    const size_t before = inserts->size;
    if (!has_room(resources))
        return;
    struct resource_facts facts = resource_facts_of(resource);
    uint64_t body = walk->at + (uint64_t)(resource.data - walk->field.whole.data);
    size_t opened = splice_open(splices, walk->at, body);
    struct process_found found;
    struct resource_identity identity;
    if (profile_resource_identity(resources->store, &facts, resources->now_ns, &found, &identity)) {
        /* Attributes without a useful value are replaced. */
        struct wire_reader reader = wire_reader_of(resource);
        struct wire_field field;
        resources->repaired++;
        while (wire_next_field(&reader, &field)) {
            if (field.number != ATTRIBUTES || field.type != WIRE_BYTES)
                continue;
            enum resource_key key = resource_identity_key(key_value_of(field.bytes).key);
            if (key == RESOURCE_IDENTITY_KEYS || identity.key_values[key].data == NULL)
                continue;
            size_t begin = inserts->size;
            add_attribute(inserts, identity.key_values[key]);
            splice_add_from(splices, body + (uint64_t)(field.whole.data - resource.data),
                            field.whole.size, begin);
            identity.key_values[key].data = NULL;
        }
        assert(reader.failure == NULL);
    }
    size_t begin = inserts->size;
    for (int key = 0; key < RESOURCE_IDENTITY_KEYS; key++)
        if (identity.key_values[key].data != NULL)
            add_attribute(inserts, identity.key_values[key]);
    resources->labelled += add_trace(resources, &facts, resource, walk->around);
    if (inserts->size > begin)
        splice_add_from(splices, body + resource.size, 0, begin);
    resources->added_bytes += inserts->size - before;
    splice_close(splices, opened, RESOURCE, resource.size);
}
