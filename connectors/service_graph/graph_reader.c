/* SPDX-License-Identifier: Apache-2.0 */
/* Reading halves of edges. Spans of other kinds are skipped after their numbers; of the others only
 * wanted attributes are looked at, whose values lie in the batch unless they are no strings. Where
 * a batch was edited, a scope lies in several parts and is copied into one piece first. Runs on the
 * reader's lane. */
#include "connectors/service_graph/graph_reader.h"

#include <assert.h>
#include <endian.h>

#include "connectors/shared/span_walk.h"
#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum {
    SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_PARENT_ID = 4,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    STATUS_CODE = 3,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    STATUS_ERROR = 2,
};

enum { KIND_SERVER = 2, KIND_CLIENT = 3, KIND_PRODUCER = 4, KIND_CONSUMER = 5 };

/* Of one byte. */
enum {
    TAG_START = SPAN_START << 3 | WIRE_FIXED64,
    TAG_END = SPAN_END << 3 | WIRE_FIXED64,
    TAG_ATTRIBUTES = SPAN_ATTRIBUTES << 3 | WIRE_BYTES,
};

/* The fields of a span that edges need. */
struct span_fields {
    const uint8_t *trace; /* NULL: none */
    const uint8_t *id;
    const uint8_t *parent;
    uint64_t kind;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t status;
    bool has_skipped; /* attributes came before a kind that wants them */
};

void graph_keys_init(struct graph_keys *keys)
{
    *keys = (struct graph_keys){.service = 0};
    bool is_added = wanted_names_add(&keys->wanted, slice_of_text("service.name"), &keys->service);
    assert(is_added);
}

bool graph_keys_add(struct graph_keys *keys, struct graph_names *list, const char *name)
{
    uint8_t place;
    if (!wanted_names_add(&keys->wanted, slice_of_text(name), &place))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->places[i] == place)
            return true;
    list->places[list->count++] = place;
    return true;
}

void graph_reader_init(struct graph_reader *reader, const struct graph_keys *keys,
                       const struct graph_store *store, struct budget *budget)
{
    *reader = (struct graph_reader){.keys = keys, .store = store, .budget = budget};
    arena_init_charged(&reader->copies, SIZE_MAX / 2, budget);
    arena_init_charged(&reader->names, SIZE_MAX / 2, budget);
    arena_init_charged(&reader->run, SIZE_MAX / 2, budget);
}

/* Hands on the run, and forgets it. */
static void end_run(struct graph_reader *reader)
{
    if (reader->count > 0)
        reader->take(reader->arg, reader->halves, reader->count);
    reader->count = 0;
    if (reader->run.used_bytes > 0)
        arena_clear(&reader->run);
}

/* The value as the Go collector writes it into a string. False: no memory. */
static bool make_text(struct arena *arena, const struct wanted_values *values, uint8_t place,
                      struct slice *ret_text)
{
    static const uint8_t nothing;
    if (!value_to_string(arena, values->encoded[place], ret_text))
        return false;
    if (ret_text->data == NULL)
        ret_text->data = &nothing;
    if (ret_text->size <= GRAPH_TEXT_BYTES_MAX)
        return true;
    ret_text->size = GRAPH_TEXT_BYTES_MAX;
    while (ret_text->size > 0 && (ret_text->data[ret_text->size] & 0xc0) == 0x80)
        ret_text->size--; /* not in the middle of a character */
    return true;
}

/* The text of a value that the owner has, the span or its resource. False: no memory. */
static bool text_of(struct graph_reader *reader, const struct wanted_values *owner, uint8_t place,
                    struct slice *ret_text)
{
    const uint64_t bit = (uint64_t)1 << place;
    if (owner != &reader->resource)
        return make_text(&reader->run, owner, place, ret_text);
    if ((reader->has_text & bit) == 0) {
        reader->has_text |= bit;
        if (!make_text(&reader->names, owner, place, &reader->texts[place]))
            reader->texts[place] = slice_of(NULL, 0);
    }
    *ret_text = reader->texts[place];
    return ret_text->data != NULL;
}

static struct graph_word word_of(const struct graph_reader *reader, struct slice bytes)
{
    return (struct graph_word){
        .bytes = bytes,
        .hash = bytes.size > 0 ? graph_hash(reader->store, bytes) : 0,
    };
}

/* The resource's value of an attribute goes before the span's. */
static const struct wanted_values *owner_of(const struct graph_reader *reader, uint8_t place)
{
    if (wanted_values_has(&reader->resource, place))
        return &reader->resource;
    return wanted_values_has(&reader->span, place) ? &reader->span : NULL;
}

/* False: no memory. */
static bool read_dimensions(struct graph_reader *reader, struct graph_word *ret_word)
{
    const struct graph_names *names = &reader->keys->dimensions;
    struct slice texts[WANTED_NAMES_MAX];
    size_t bytes = 0;
    bool is_empty = true;
    *ret_word = (struct graph_word){.hash = 0};
    for (size_t i = 0; i < names->count; i++) {
        const struct wanted_values *owner = owner_of(reader, names->places[i]);
        texts[i] = slice_of(NULL, 0);
        if (owner == NULL)
            continue;
        if (!text_of(reader, owner, names->places[i], &texts[i]))
            return false;
        is_empty = false;
        bytes += texts[i].size;
    }
    if (is_empty)
        return true;
    uint8_t *room =
        arena_try_alloc(&reader->run, bytes + names->count * GRAPH_DIMENSION_HEADER_MAX);
    size_t size = 0;
    if (room == NULL)
        return false;
    for (size_t i = 0; i < names->count; i++)
        size += graph_dimension_write(room + size, texts[i]);
    *ret_word = word_of(reader, slice_of(room, size));
    return true;
}

/* What only a client's span tells of its server. False: no memory. */
static bool read_server(struct graph_reader *reader, struct graph_half *half)
{
    const struct graph_names *peers = &reader->keys->peers;
    const struct graph_names *databases = &reader->keys->databases;
    struct slice text;
    for (size_t i = 0; i < peers->count; i++) {
        if (!wanted_values_has(&reader->span, peers->places[i]))
            continue;
        if (!text_of(reader, &reader->span, peers->places[i], &text))
            return false;
        half->peer = word_of(reader, text);
        half->peer_rank = (uint8_t)i;
        break;
    }
    for (size_t i = 0; i < databases->count; i++) {
        const struct wanted_values *owner = owner_of(reader, databases->places[i]);
        if (owner == NULL)
            continue;
        if (!text_of(reader, owner, databases->places[i], &text))
            return false;
        half->database = word_of(reader, text);
        half->has_database = true;
        break;
    }
    return true;
}

/* Attributes of other spans are of no use. */
static bool wants_attributes(const struct graph_keys *keys, uint64_t kind)
{
    return kind == KIND_CLIENT || kind == KIND_PRODUCER ||
           (keys->dimensions.count > 0 && (kind == KIND_SERVER || kind == KIND_CONSUMER));
}

/* Reads consecutive attributes with lengths of one or two bytes; without values it skips them.
 * Returns where something else begins. */
static const uint8_t *read_attributes(const struct graph_keys *keys, const uint8_t *at,
                                      const uint8_t *end, struct wanted_values *values)
{
    enum { HEADER_BYTES_MAX = 3 };
    while (end - at >= HEADER_BYTES_MAX && *at == TAG_ATTRIBUTES) {
        const uint8_t *content = at + 2;
        size_t size = at[1];
        if (size >= 0x80) {
            size = (size & 0x7f) | (size_t)*content << 7;
            if (*content++ >= 0x80)
                break;
        }
        if (size > (size_t)(end - content))
            break;
        at = content + size;
        if (values != NULL)
            wanted_values_read(&keys->wanted, slice_of(content, size), values);
    }
    return at;
}

static void read_field(const struct graph_keys *keys, const struct wire_field *field,
                       struct span_fields *fields, struct wanted_values *values)
{
    struct wire_reader status;
    struct wire_field code;
    switch (field->number) {
    case SPAN_TRACE_ID:
        fields->trace = field->bytes.size == TRACE_ID_BYTES ? field->bytes.data : NULL;
        break;
    case SPAN_ID:
        fields->id = field->bytes.size == SPAN_ID_BYTES ? field->bytes.data : NULL;
        break;
    case SPAN_PARENT_ID:
        fields->parent = field->bytes.size == SPAN_ID_BYTES ? field->bytes.data : NULL;
        break;
    case SPAN_KIND:
        fields->kind = field->number_value;
        break;
    case SPAN_ATTRIBUTES:
        if (values != NULL)
            wanted_values_read(&keys->wanted, field->bytes, values);
        break;
    case SPAN_STATUS:
        status = wire_reader_of(field->bytes);
        while (wire_next_field(&status, &code))
            if (code.number == STATUS_CODE)
                fields->status = code.number_value;
        assert(status.failure == NULL);
        break;
    default:
        break;
    }
}

/* Attributes are read, into values, when the kind that came before wants them. */
static void read_span_fields(const struct graph_keys *keys, struct slice content,
                             struct span_fields *fields, struct wanted_values *values)
{
    enum { FIXED64_BYTES = 1 + 8 };
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (reader.at < reader.end && reader.failure == NULL) {
        /* Times and attributes, with which the generic reader would be slow; then any others. */
        const uint8_t *at = reader.at;
        if (*at == TAG_ATTRIBUTES) {
            bool is_wanted = wants_attributes(keys, fields->kind);
            fields->has_skipped |= !is_wanted;
            reader.at = read_attributes(keys, at, reader.end, is_wanted ? values : NULL);
            if (reader.at == at && wire_next_field(&reader, &field))
                read_field(keys, &field, fields, is_wanted ? values : NULL);
        } else if ((*at == TAG_START || *at == TAG_END) && reader.end - at >= FIXED64_BYTES) {
            uint64_t *time_ns = *at == TAG_START ? &fields->start_ns : &fields->end_ns;
            memcpy(time_ns, at + 1, sizeof(*time_ns));
            *time_ns = le64toh(*time_ns);
            reader.at = at + FIXED64_BYTES;
        } else if (wire_next_field(&reader, &field)) {
            bool is_wanted = wants_attributes(keys, fields->kind);
            read_field(keys, &field, fields, is_wanted ? values : NULL);
        }
    }
    assert(reader.failure == NULL);
}

/* Of a span that had attributes before its kind, which protobuf allows. */
static void read_skipped(const struct graph_keys *keys, struct slice content,
                         struct wanted_values *values)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    values->has = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == SPAN_ATTRIBUTES)
            wanted_values_read(&keys->wanted, field.bytes, values);
    assert(reader.failure == NULL);
}

static void read_span(struct graph_reader *reader, struct slice content)
{
    const struct graph_keys *keys = reader->keys;
    struct span_fields fields = {.trace = NULL};
    reader->span.has = 0;
    read_span_fields(keys, content, &fields, &reader->span);
    if (fields.kind < KIND_SERVER || fields.kind > KIND_CONSUMER)
        return;
    if (fields.has_skipped && wants_attributes(keys, fields.kind))
        read_skipped(keys, content, &reader->span);
    struct graph_half *half = &reader->halves[reader->count];
    *half = (struct graph_half){
        .latency_ns = fields.end_ns > fields.start_ns ? fields.end_ns - fields.start_ns : 0,
        .service = reader->service,
        .peer_rank = GRAPH_NO_PEER,
        .is_client = fields.kind == KIND_CLIENT || fields.kind == KIND_PRODUCER,
        .is_messaging = fields.kind == KIND_PRODUCER || fields.kind == KIND_CONSUMER,
        .is_failed = fields.status == STATUS_ERROR,
    };
    const uint8_t *id = half->is_client ? fields.id : fields.parent;
    if (fields.trace != NULL)
        memcpy(half->trace, fields.trace, sizeof(half->trace));
    if (id != NULL)
        memcpy(&half->span, id, sizeof(half->span));
    if ((keys->dimensions.count > 0 && !read_dimensions(reader, &half->dimensions)) ||
        (half->is_client && !read_server(reader, half))) {
        reader->unread++;
        return;
    }
    reader->count++;
    if (reader->count == GRAPH_RUN_MAX || reader->run.used_bytes >= GRAPH_RUN_BYTES)
        end_run(reader);
}

static void read_scope(void *arg, struct slice content)
{
    struct wire_reader spans = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&spans, &field))
        if (field.number == SPANS)
            read_span(arg, field.bytes);
    assert(spans.failure == NULL);
}

static void open_resource(void *arg)
{
    struct graph_reader *reader = arg;
    reader->resource.has = 0;
    reader->has_text = 0;
    if (reader->names.used_bytes >= GRAPH_RUN_BYTES) {
        end_run(reader);
        arena_clear(&reader->names);
    }
}

static void read_resource(void *arg, struct slice content)
{
    struct graph_reader *reader = arg;
    struct wire_reader attributes = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&attributes, &field))
        if (field.number == RESOURCE_ATTRIBUTES)
            wanted_values_read(&reader->keys->wanted, field.bytes, &reader->resource);
    assert(attributes.failure == NULL);
}

/* Without a service name, the spans do not count. */
static bool begin_spans(void *arg)
{
    struct graph_reader *reader = arg;
    struct slice name;
    if (!wanted_values_has(&reader->resource, reader->keys->service))
        return false;
    if (!text_of(reader, &reader->resource, reader->keys->service, &name)) {
        reader->unread++;
        return false;
    }
    reader->service = word_of(reader, name);
    return true;
}

static void forget(void *arg)
{
    end_run(arg);
}

uint64_t graph_reader_read(struct graph_reader *reader, const struct batch *batch)
{
    const struct span_walker walker = {
        .open = open_resource,
        .resource = read_resource,
        .begin = begin_spans,
        .scope = read_scope,
        .forget = forget,
        .arg = reader,
        .copies = &reader->copies,
    };
    assert(reader->take != NULL);
    reader->unread = 0;
    uint64_t left_out = span_walk(&walker, batch);
    end_run(reader);
    arena_clear(&reader->names);
    return reader->unread + left_out;
}
