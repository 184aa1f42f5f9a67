/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes are appended: nothing that is there changes. They are attributes of the resource
 * because they hold for all of the process, and since those are what exporters make labels of. Runs
 * on the owner's thread. */
#include "src/join/profile_resource.h"

#include <assert.h>

#include "src/join/join_store.h"
#include "src/join/key_value.h"
#include "src/join/splice.h"
#include "src/otlp/profile_view.h"

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

/* The attributes of the process's service. */
static bool add_service(struct profile_resources *resources, const struct resource_facts *facts)
{
    const struct join_store *store = resources->store;
    struct profile_bytes *inserts = &resources->splices->inserts;
    struct fact_text text;
    struct fact_reader reader;
    struct slice key_value;
    uint64_t service;
    if (!store->settings.repairs_identity || facts->service != 0 ||
        !process_table_find(&store->processes, facts, &service, &text, &reader))
        return false;
    assert(service != 0);
    while (fact_next(&reader, &key_value)) {
        size_t one = inserts->size;
        profile_bytes_add(inserts, key_value);
        profile_bytes_wrap(inserts, one, ATTRIBUTES);
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

/* An id in hexadecimal. */
static void add_id(struct profile_bytes *inserts, const char *key, struct slice id)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t text[2 * ID_BYTES_MAX];
    uint8_t room[PAIR_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    size_t begin = inserts->size;
    assert(id.size <= ID_BYTES_MAX);
    for (size_t i = 0; i < id.size; i++) {
        text[2 * i] = (uint8_t)digits[id.data[i] >> 4];
        text[2 * i + 1] = (uint8_t)digits[id.data[i] & 15];
    }
    wire_write_bytes(&writer, KEY, slice_of_text(key));
    wire_write_header(&writer, VALUE, 2 + 2 * id.size);
    wire_write_bytes(&writer, TEXT, slice_of(text, 2 * id.size));
    assert(!writer.has_failed);
    profile_bytes_add(inserts, wire_written(&writer));
    profile_bytes_wrap(inserts, begin, ATTRIBUTES);
}

bool profile_resource_may_get_trace(struct slice resource)
{
    assert(resource.data != NULL || resource.size == 0);
    return !has_key(resource, TRACE_KEY) || !has_key(resource, ROOT_KEY);
}

bool profile_resource_window(struct slice content, uint64_t *ret_from_ns, uint64_t *ret_until_ns)
{
    struct wire_reader scopes = wire_reader_of(content);
    struct profile_scope scope;
    uint64_t from_ns = UINT64_MAX;
    uint64_t until_ns = 0;
    while (profile_next_scope(&scopes, &scope)) {
        struct wire_reader profiles = wire_reader_of(scope.bytes);
        struct profile profile;
        while (profile_next_profile(&profiles, &profile)) {
            uint64_t begin = profile.time_unix_ns;
            uint64_t end = begin + profile.duration_ns;
            if (begin == 0 || end < begin)
                continue;
            from_ns = begin < from_ns ? begin : from_ns;
            until_ns = end > until_ns ? end : until_ns;
        }
    }
    assert(scopes.failure == NULL);
    if (until_ns == 0)
        return false;
    *ret_from_ns = from_ns;
    *ret_until_ns = until_ns;
    return true;
}

/* A profiler that knows spans says more than the process could. */
static bool names_spans(const struct profile_resources *resources,
                        const struct resource_facts *facts)
{
    assert(resources->store != NULL);
    return facts->service != 0 ? service_set_is_linked(&resources->store->services, facts->service)
                               : resources->has_links;
}

static bool add_trace(struct profile_resources *resources, const struct resource_facts *facts,
                      struct slice resource, struct slice content)
{
    struct join_store *store = resources->store;
    struct profile_bytes *inserts = &resources->splices->inserts;
    const struct lone_names names = lone_names_of(facts);
    struct lone_trace trace;
    uint64_t from_ns;
    uint64_t until_ns;
    assert(resources->now_ns > 0);
    if (!store->settings.finds_lone_traces || names_spans(resources, facts) ||
        lone_traces_state(&store->lone, &names, resources->now_ns) != LONE_HAS_TRACE ||
        !profile_resource_window(content, &from_ns, &until_ns) ||
        lone_traces_find(&store->lone, &names, from_ns, until_ns, &trace) != LONE_FOUND)
        return false;
    bool adds_trace = !has_key(resource, TRACE_KEY);
    bool adds_root = trace.root != 0 && !has_key(resource, ROOT_KEY);
    if (adds_trace)
        add_id(inserts, TRACE_KEY, slice_of(trace.trace, sizeof(trace.trace)));
    if (adds_root)
        add_id(inserts, ROOT_KEY, slice_of(&trace.root, sizeof(trace.root)));
    return adds_trace || adds_root;
}

void profile_resource_edit(struct profile_resources *resources, const struct wire_field *field,
                           uint64_t at, struct slice content)
{
    struct splice_list *splices = resources->splices;
    struct resource_facts facts = resource_facts_of(field->bytes);
    uint64_t body = at + (uint64_t)(field->bytes.data - field->whole.data);
    size_t opened = splice_open(splices, at, body);
    size_t begin = splices->inserts.size;
    resources->repaired += add_service(resources, &facts);
    resources->labelled += add_trace(resources, &facts, field->bytes, content);
    assert(splices->inserts.size >= begin);
    if (splices->inserts.size > begin)
        splice_add_from(splices, body + field->bytes.size, 0, begin);
    splice_close(splices, opened, RESOURCE, field->bytes.size);
}
