/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the owner's thread. */
#include "src/explore/trace_store.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/explore/service_name.h"
#include "src/otlp/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BLOCKS_FIRST = 64, ROWS_FIRST = 1024, STRINGS_FIRST = 256 };

/* Numbers of fields. */
enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_ATTRIBUTES = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    SCOPE_SPANS_SPANS = 2,
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    SPAN_LINKS = 13,
    SPAN_STATUS = 15,
    STATUS_CODE = 3,
};

void trace_store_init(struct trace_store *store, enum codec codec)
{
    *store = (struct trace_store){.codec = codec, .first = 1, .next = 1, .next_block = 1};
    store->seed = (uint64_t)(random_uniform() * 0x1p53);
    string_table_init(&store->strings);
    attribute_filter_init(&store->open_attributes);
    store->box = codec_box_create(NULL);
    store->contexts = mem_alloc(EXPLORE_CONTEXTS_MAX * sizeof(store->contexts[0]));
}

void trace_store_fini(struct trace_store *store)
{
    for (size_t i = store->blocks_begin; i < store->blocks_end; i++)
        span_block_destroy(store->blocks[i]);
    for (size_t i = 0; i < store->chunks_count; i++)
        mem_free(store->chunks[i]);
    mem_free((void *)store->chunks);
    mem_free((void *)store->blocks);
    hash_table_clear(&store->numbers);
    mem_free(store->rows);
    mem_free(store->bodies);
    mem_free(store->contexts);
    mem_free(store->context_bytes);
    mem_free(store->open_strings);
    mem_free(store->open_traces);
    string_table_fini(&store->strings);
    attribute_filter_fini(&store->open_attributes);
    codec_box_destroy(store->box);
    *store = (struct trace_store){.box = NULL};
}

/* Makes room for `more` items beyond count in an array that doubles. */
static bool reserve(void **array, size_t *capacity, size_t count, size_t more, size_t item,
                    size_t first)
{
    if (*capacity - count >= more)
        return true;
    size_t wanted = *capacity > 0 ? 2 * *capacity : first;
    while (wanted - count < more)
        wanted *= 2;
    void *grown = mem_try_resize(*array, wanted * item);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool reserve32(void **array, uint32_t *capacity, size_t count, size_t more, size_t item,
                      size_t first)
{
    size_t wide = *capacity;
    bool has_room = reserve(array, &wide, count, more, item, first);
    assert(wide <= UINT32_MAX);
    *capacity = (uint32_t)wide;
    return has_room;
}

struct trace_record *trace_store_record(const struct trace_store *store, uint64_t number)
{
    assert(number >= store->first && number < store->next);
    uint64_t base = store->first / TRACES_PER_CHUNK;
    return &store->chunks[number / TRACES_PER_CHUNK - base][number % TRACES_PER_CHUNK];
}

static uint64_t hash_of(const struct trace_store *store, const uint8_t *id)
{
    return XXH3_64bits_withSeed(id, 16, store->seed);
}

uint64_t trace_store_find(const struct trace_store *store, const uint8_t id[static 16])
{
    uint64_t hash = hash_of(store, id);
    size_t at = 0;
    for (;;) {
        uint64_t number = (uintptr_t)hash_table_next(&store->numbers, hash, &at);
        if (number == 0)
            return UINT64_MAX;
        if (memcmp(trace_store_record(store, number)->id, id, 16) == 0)
            return number;
    }
}

/* Numbers are the table's objects; none is 0. */
static void *object_of(uint64_t number)
{
    _Static_assert(sizeof(uintptr_t) == sizeof(number), "a pointer holds a number");
    return (void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

static bool add_trace(struct trace_store *store, const uint8_t *id, uint64_t now_ns,
                      uint64_t *ret_number)
{
    uint64_t number = store->next;
    size_t chunk = number / TRACES_PER_CHUNK - store->first / TRACES_PER_CHUNK;
    if (chunk == store->chunks_count) {
        struct trace_record *records =
            mem_try_alloc(TRACES_PER_CHUNK * sizeof(struct trace_record));
        if (records == NULL)
            return false;
        void *chunks = (void *)store->chunks;
        if (!reserve(&chunks, &store->chunks_capacity, store->chunks_count, 1,
                     sizeof(struct trace_record *), 16)) {
            mem_free(records);
            return false;
        }
        store->chunks = (struct trace_record **)chunks;
        store->chunks[store->chunks_count++] = records;
    }
    if (!hash_table_add(&store->numbers, hash_of(store, id), object_of(number)))
        return false;
    store->next++;
    struct trace_record *record = trace_store_record(store, number);
    *record = (struct trace_record){
        .start_ns = UINT64_MAX,
        .arrived_ns = now_ns,
        .first_block = (uint32_t)store->next_block,
        .last_block = (uint32_t)store->next_block,
        .block_before = (uint32_t)store->next_block,
    };
    memcpy(record->id, id, 16);
    *ret_number = number;
    return true;
}

/* The number of a name; the open block refers to it from now on. */
static bool add_string(struct trace_store *store, struct slice text, uint32_t *ret_number)
{
    bool is_new;
    void *strings = store->open_strings;
    bool has_room = reserve32(&strings, &store->open_strings_capacity, store->open_strings_count, 1,
                              sizeof(uint32_t), STRINGS_FIRST);
    store->open_strings = strings;
    if (!has_room)
        return false;
    *ret_number = string_table_add(&store->strings, text, store->next_block, &is_new);
    if (!is_new)
        return true;
    string_table_ref(&store->strings, *ret_number);
    store->open_strings[store->open_strings_count++] = *ret_number;
    return true;
}

/* What is shared by the spans that are being read. */
struct reading {
    struct slice resource_spans;
    struct slice scope_spans;
    size_t resource_size; /* of its fields beside the scopes */
    size_t scope_size;    /* of its fields beside the spans */
    uint32_t context;
    uint64_t context_block; /* in which it is valid; 0: nowhere */
    uint32_t service;
    uint64_t service_block;
    struct slice service_name;
    struct slice resource;   /* offset and size of its fields among the contexts' bytes … */
    uint64_t resource_block; /* … of that block */
};

/* Copies the fields of a message but those of that number. Returns how many bytes. */
static size_t copy_others(struct slice message, uint32_t number, uint8_t *to)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    size_t size = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number == number)
            continue;
        memcpy(to + size, field.whole.data, field.whole.size);
        size += field.whole.size;
    }
    return size;
}

static size_t others_size(struct slice message, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    size_t size = 0;
    while (wire_next_field(&reader, &field))
        size += field.number != number ? field.whole.size : 0;
    return size;
}

static struct slice context_at(const struct trace_store *store, struct slice offsets)
{
    return slice_of(store->context_bytes + (uintptr_t)offsets.data, offsets.size);
}

/* Notes the attributes of a message of ResourceSpans, without its spans. */
static void note_resource(struct trace_store *store, struct slice fields)
{
    struct wire_reader reader = wire_reader_of(fields);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != RESOURCE_SPANS_RESOURCE || field.type != WIRE_BYTES)
            continue;
        struct wire_reader attributes = wire_reader_of(field.bytes);
        struct wire_field attribute;
        while (wire_next_field(&attributes, &attribute))
            if (attribute.number == RESOURCE_ATTRIBUTES && attribute.type == WIRE_BYTES)
                attribute_filter_note(&store->open_attributes, attribute.bytes, store->seed);
    }
}

/* Few contexts recur at random: the last ones are compared, newest first. */
enum { CONTEXTS_COMPARED_MAX = 64 };

/* Copies the resource's fields, once for all of its scopes, unless a context has them already. What
 * the block before had of them lies where it was, since that block has just ended: no message is
 * walked again for each block of its spans. */
static bool set_resource(struct trace_store *store, struct reading *reading)
{
    size_t size = reading->resource_size;
    void *bytes = store->context_bytes;
    bool has_room =
        reserve(&bytes, &store->context_bytes_capacity, store->context_bytes_size, size, 1, 4096);
    store->context_bytes = bytes;
    if (!has_room)
        return false;
    uint8_t *to = store->context_bytes + store->context_bytes_size;
    assert(reading->resource_block == 0 || store->context_bytes_size == 0);
    if (reading->resource_block == 0)
        copy_others(reading->resource_spans, RESOURCE_SPANS_SCOPE_SPANS, to);
    else
        memmove(to, context_at(store, reading->resource).data, size);
    reading->resource =
        (struct slice){.data = (const uint8_t *)store->context_bytes_size, .size = size};
    reading->resource_block = store->next_block;
    for (uint32_t i = 0; i < CONTEXTS_COMPARED_MAX && i < store->contexts_count; i++) {
        struct slice other = store->contexts[store->contexts_count - 1 - i].resource;
        if (slice_equal(context_at(store, other), slice_of(to, size))) {
            reading->resource = other;
            return true;
        }
    }
    note_resource(store, slice_of(to, size));
    store->context_bytes_size += size;
    return true;
}

static bool set_context(struct trace_store *store, struct reading *reading)
{
    if (reading->resource_block != store->next_block && !set_resource(store, reading))
        return false;
    size_t size = reading->scope_size;
    void *bytes = store->context_bytes;
    bool has_room =
        reserve(&bytes, &store->context_bytes_capacity, store->context_bytes_size, size, 1, 4096);
    store->context_bytes = bytes;
    if (!has_room)
        return false;
    uint8_t *to = store->context_bytes + store->context_bytes_size;
    if (reading->context_block == 0)
        copy_others(reading->scope_spans, SCOPE_SPANS_SPANS, to);
    else /* of the block before, behind its resource */
        memmove(to, context_at(store, store->contexts[reading->context].scope).data, size);
    reading->context_block = store->next_block;
    const struct span_context context = {
        .resource = reading->resource,
        .scope = {.data = (const uint8_t *)store->context_bytes_size, .size = size},
    };
    for (uint32_t i = 0; i < CONTEXTS_COMPARED_MAX && i < store->contexts_count; i++) {
        uint32_t at = store->contexts_count - 1 - i;
        const struct span_context *other = &store->contexts[at];
        if (span_contexts_share(other, &context) &&
            slice_equal(context_at(store, other->scope), slice_of(to, size))) {
            reading->context = at;
            return true;
        }
    }
    assert(store->contexts_count < EXPLORE_CONTEXTS_MAX);
    bool is_after_its_own =
        store->contexts_count > 0 &&
        span_contexts_share(&store->contexts[store->contexts_count - 1], &context);
    store->contexts_size += size + (is_after_its_own ? 0 : reading->resource.size);
    reading->context = store->contexts_count++;
    store->contexts[reading->context] = context;
    store->context_bytes_size += size;
    return true;
}

static void add_count(uint16_t *count)
{
    if (*count < UINT16_MAX)
        (*count)++;
}

/* What the index needs of a span. */
struct span_facts {
    struct span_row row; /* without what the store gives: trace, service, name, context, offset */
    struct slice trace_id;
    struct slice name;
};

static void read_status(struct span_row *row, struct slice status)
{
    struct wire_reader reader = wire_reader_of(status);
    struct wire_field field;
    row->status = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == STATUS_CODE)
            row->status = field.number_value <= SPAN_STATUS_ERROR ? (uint8_t)field.number_value : 0;
}

/* Notes the attributes for the open block, in which there is room. */
static void read_span(struct trace_store *store, struct slice span, struct span_facts *facts)
{
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    uint64_t end_ns = 0;
    *facts = (struct span_facts){.row.size = (uint32_t)span.size};
    struct span_row *row = &facts->row;
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case SPAN_TRACE_ID:
            facts->trace_id = field.bytes;
            break;
        case SPAN_SPAN_ID:
            if (field.bytes.size == sizeof(row->span_id))
                memcpy(&row->span_id, field.bytes.data, sizeof(row->span_id));
            break;
        case SPAN_PARENT_ID:
            if (field.bytes.size == sizeof(row->parent_id))
                memcpy(&row->parent_id, field.bytes.data, sizeof(row->parent_id));
            break;
        case SPAN_NAME:
            facts->name = field.bytes;
            break;
        case SPAN_KIND:
            row->kind = field.number_value < 8 ? (uint8_t)field.number_value : 0;
            break;
        case SPAN_START:
            row->start_ns = field.number_value;
            break;
        case SPAN_END:
            end_ns = field.number_value;
            break;
        case SPAN_ATTRIBUTES:
            attribute_filter_note(&store->open_attributes, field.bytes, store->seed);
            break;
        case SPAN_EVENTS:
            add_count(&row->events);
            break;
        case SPAN_LINKS:
            add_count(&row->links);
            break;
        case SPAN_STATUS:
            read_status(row, field.bytes);
            break;
        default:
            break;
        }
    }
    row->duration_ns = end_ns > row->start_ns ? end_ns - row->start_ns : 0;
}

/* Ends the open block if the span has no room in it, with its resource and scope. */
static bool make_room(struct trace_store *store, const struct reading *reading, size_t bytes)
{
    if (reading->context_block != store->next_block)
        bytes += reading->scope_size + reading->resource_size;
    bool is_full = store->rows_count == EXPLORE_OPEN_SPANS_MAX ||
                   store->contexts_count == EXPLORE_CONTEXTS_MAX ||
                   (store->rows_count > 0 &&
                    store->bodies_size + store->contexts_size + bytes > EXPLORE_OPEN_BYTES_MAX);
    return !is_full || (trace_store_seal(store) &&
                        (store->goes_on == NULL || store->goes_on(store->goes_on_arg)));
}

/* The row belongs to the trace now. */
static void note_span(struct trace_store *store, const struct span_row *row)
{
    struct trace_record *record = trace_store_record(store, row->trace);
    if (record->last_block != (uint32_t)store->next_block) {
        record->block_before = record->last_block;
        record->last_block = (uint32_t)store->next_block;
    }
    record->spans++;
    record->errors += row->status == SPAN_STATUS_ERROR;
    if (row->start_ns < record->start_ns)
        record->start_ns = row->start_ns;
    if (row->start_ns + row->duration_ns > record->end_ns)
        record->end_ns = row->start_ns + row->duration_ns;
    if (row->parent_id == 0 && !record->has_root) {
        record->has_root = true;
        record->root_kind = row->kind;
        record->root_name = row->name;
        record->root_service = row->service;
    }
}

static bool add_span(struct trace_store *store, struct reading *reading, struct slice span,
                     uint64_t now_ns)
{
    static const uint8_t no_id[16] = {0};
    struct span_facts facts;
    struct span_row *row = &facts.row;
    if (span.size > EXPLORE_SPAN_BYTES_MAX ||
        reading->resource_size + reading->scope_size > EXPLORE_CONTEXT_BYTES_MAX) {
        store->too_large++;
        return true;
    }
    if (!make_room(store, reading, span.size))
        return false;
    read_span(store, span, &facts);
    if (facts.trace_id.size != sizeof(no_id) ||
        memcmp(facts.trace_id.data, no_id, sizeof(no_id)) == 0)
        return true; /* it belongs to no trace */
    if (reading->context_block != store->next_block && !set_context(store, reading))
        return false;
    if (reading->service_block != store->next_block) {
        if (!add_string(store, reading->service_name, &reading->service))
            return false;
        reading->service_block = store->next_block;
    }
    void *rows = store->rows;
    void *bodies = store->bodies;
    bool has_room = reserve32(&rows, &store->rows_capacity, store->rows_count, 1,
                              sizeof(struct span_row), ROWS_FIRST);
    store->rows = rows;
    has_room = has_room && reserve(&bodies, &store->bodies_capacity, store->bodies_size, span.size,
                                   1, EXPLORE_OPEN_BYTES_MAX / 4);
    store->bodies = bodies;
    if (!has_room || !add_string(store, facts.name, &row->name))
        return false;
    uint64_t number = trace_store_find(store, facts.trace_id.data);
    if (number == UINT64_MAX && !add_trace(store, facts.trace_id.data, now_ns, &number))
        return false;
    row->trace = number;
    row->service = reading->service;
    row->context = (uint16_t)reading->context;
    row->offset = (uint32_t)store->bodies_size;
    memcpy(store->bodies + store->bodies_size, span.data, span.size);
    store->bodies_size += span.size;
    store->rows[store->rows_count++] = *row;
    store->is_sorted = false;
    store->spans++;
    store->spans_total++;
    note_span(store, row);
    return true;
}

bool trace_store_add(struct trace_store *store, struct slice request, uint64_t now_ns)
{
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    if (store->rows_count == 0) { /* requests that there was no memory for may have left some */
        store->contexts_count = 0;
        store->contexts_size = 0;
        store->context_bytes_size = 0;
    }
    while (wire_next_field(&resources, &resource)) {
        if (resource.number != REQUEST_RESOURCE_SPANS || resource.type != WIRE_BYTES)
            continue;
        struct reading reading = {.resource_spans = resource.bytes};
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct wire_field scope;
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number == RESOURCE_SPANS_RESOURCE)
                reading.service_name = service_name_of(scope.bytes);
            if (scope.number != RESOURCE_SPANS_SCOPE_SPANS)
                reading.resource_size += scope.whole.size;
        }
        scopes = wire_reader_of(resource.bytes);
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number != RESOURCE_SPANS_SCOPE_SPANS || scope.type != WIRE_BYTES)
                continue;
            reading.scope_spans = scope.bytes;
            reading.scope_size = others_size(scope.bytes, SCOPE_SPANS_SPANS);
            reading.context_block = 0;
            struct wire_reader spans = wire_reader_of(scope.bytes);
            struct wire_field span;
            while (wire_next_field(&spans, &span))
                if (span.number == SCOPE_SPANS_SPANS && span.type == WIRE_BYTES &&
                    !add_span(store, &reading, span.bytes, now_ns))
                    return false;
        }
    }
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    const struct span_row *x = a;
    const struct span_row *y = b;
    if (x->trace != y->trace)
        return x->trace < y->trace ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorts the open block, and finds its traces. */
static bool settle(struct trace_store *store)
{
    if (store->is_sorted)
        return true;
    qsort(store->rows, store->rows_count, sizeof(store->rows[0]), compare_rows);
    void *traces = store->open_traces;
    bool has_room = reserve32(&traces, &store->open_traces_capacity, 0, store->rows_count + 1,
                              sizeof(struct block_trace), ROWS_FIRST);
    store->open_traces = traces;
    if (!has_room)
        return false;
    store->open_traces_count = 0;
    for (uint32_t i = 0; i < store->rows_count; i++)
        if (i == 0 || store->rows[i].trace != store->rows[i - 1].trace)
            store->open_traces[store->open_traces_count++] =
                (struct block_trace){.trace = store->rows[i].trace, .first = i};
    store->open_traces[store->open_traces_count] =
        (struct block_trace){.trace = UINT64_MAX, .first = store->rows_count};
    store->is_sorted = true;
    return true;
}

bool trace_store_seal(struct trace_store *store)
{
    if (store->rows_count == 0)
        return true;
    if (store->blocks_end == store->blocks_capacity && store->blocks_begin > 0) {
        memmove((void *)store->blocks, (const void *)(store->blocks + store->blocks_begin),
                (store->blocks_end - store->blocks_begin) * sizeof(struct span_block *));
        store->blocks_end -= store->blocks_begin;
        store->blocks_begin = 0;
    }
    void *blocks = (void *)store->blocks;
    bool has_room = reserve(&blocks, &store->blocks_capacity, store->blocks_end, 1,
                            sizeof(struct span_block *), BLOCKS_FIRST);
    store->blocks = (struct span_block **)blocks;
    struct span_context *contexts =
        mem_try_alloc((store->contexts_count + 1) * sizeof(struct span_context));
    struct span_block *block = NULL;
    if (has_room && contexts != NULL && settle(store)) {
        for (uint32_t i = 0; i < store->contexts_count; i++)
            contexts[i] = (struct span_context){
                .resource = context_at(store, store->contexts[i].resource),
                .scope = context_at(store, store->contexts[i].scope),
            };
        block = span_block_create(
            &(struct span_block_source){.number = store->next_block,
                                        .rows = store->rows,
                                        .rows_count = store->rows_count,
                                        .bodies = store->bodies,
                                        .contexts = contexts,
                                        .contexts_count = store->contexts_count,
                                        .strings = store->open_strings,
                                        .strings_count = store->open_strings_count,
                                        .attributes = &store->open_attributes},
            store->box, store->codec);
    }
    mem_free(contexts);
    if (block == NULL)
        return false;
    for (uint32_t i = 0; i < block->traces_count; i++)
        block->traces[i].block_before =
            trace_store_record(store, block->traces[i].trace)->block_before;
    store->blocks[store->blocks_end++] = block;
    store->blocks_bytes += block->memory;
    store->next_block++;
    attribute_filter_clear(&store->open_attributes);
    store->rows_count = 0;
    store->bodies_size = 0;
    if (store->bodies_capacity > EXPLORE_OPEN_BYTES_MAX) { /* one large span had it */
        mem_free(store->bodies);
        store->bodies = NULL;
        store->bodies_capacity = 0;
    }
    store->contexts_count = 0;
    store->contexts_size = 0;
    store->context_bytes_size = 0;
    store->open_strings_count = 0; /* the block has the references now */
    store->open_traces_count = 0;
    return true;
}

uint64_t trace_store_bytes(const struct trace_store *store)
{
    return store->blocks_bytes + store->strings.bytes +
           store->chunks_count * TRACES_PER_CHUNK * sizeof(struct trace_record) +
           hash_table_bytes(&store->numbers) + store->rows_capacity * sizeof(struct span_row) +
           store->bodies_capacity + store->context_bytes_capacity +
           store->open_strings_capacity * sizeof(uint32_t) +
           store->open_traces_capacity * sizeof(struct block_trace) + store->open_attributes.bytes +
           EXPLORE_CONTEXTS_MAX * sizeof(struct span_context) +
           store->blocks_capacity * sizeof(struct span_block *);
}

uint64_t trace_store_oldest_ns(const struct trace_store *store)
{
    return store->first < store->next ? trace_store_record(store, store->first)->arrived_ns
                                      : UINT64_MAX;
}

size_t trace_store_block_of(const struct trace_store *store, uint32_t number)
{
    /* Numbers ascend, and freed blocks leave gaps. */
    size_t low = store->blocks_begin;
    size_t high = store->blocks_end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((int32_t)((uint32_t)store->blocks[middle]->number - number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low - store->blocks_begin;
}

static void free_block(struct trace_store *store, size_t at)
{
    struct span_block *block = store->blocks[at];
    assert(block->traces_live == 0);
    for (uint32_t i = 0; i < block->strings_count; i++)
        string_table_unref(&store->strings, block->strings[i]);
    store->blocks_bytes -= block->memory;
    span_block_destroy(block);
    size_t before = at - store->blocks_begin;
    size_t behind = store->blocks_end - at - 1;
    if (before <= behind) {
        struct span_block **first = store->blocks + store->blocks_begin++;
        memmove((void *)(first + 1), (const void *)first, before * sizeof(struct span_block *));
    } else {
        memmove((void *)(store->blocks + at), (const void *)(store->blocks + at + 1),
                behind * sizeof(struct span_block *));
        store->blocks_end--;
    }
}

bool trace_store_evict(struct trace_store *store)
{
    if (store->first == store->next)
        return false;
    const struct trace_record *record = trace_store_record(store, store->first);
    if (record->last_block == (uint32_t)store->next_block && !trace_store_seal(store))
        return false;
    /* From its last block to its first: those between, without spans of it, may be many. */
    uint32_t number = record->last_block;
    for (bool is_first = false; !is_first;) {
        size_t at = store->blocks_begin + trace_store_block_of(store, number);
        assert(at < store->blocks_end && (uint32_t)store->blocks[at]->number == number);
        struct span_block *block = store->blocks[at];
        const struct block_trace *trace = span_block_trace(block, store->first);
        assert(trace != NULL && block->traces_live > 0);
        is_first = number == record->first_block;
        number = trace->block_before;
        if (--block->traces_live == 0)
            free_block(store, at);
    }
    store->spans -= record->spans;
    store->evicted_traces++;
    hash_table_remove(&store->numbers, hash_of(store, record->id), object_of(store->first));
    store->first++;
    if (store->first % TRACES_PER_CHUNK == 0) {
        mem_free(store->chunks[0]);
        store->chunks_count--;
        memmove((void *)store->chunks, (const void *)(store->chunks + 1),
                store->chunks_count * sizeof(struct trace_record *));
    }
    return true;
}

size_t trace_store_blocks(struct trace_store *store)
{
    return store->blocks_end - store->blocks_begin + (store->rows_count > 0 && settle(store));
}

struct block_view trace_store_block(struct trace_store *store, size_t index)
{
    if (index < store->blocks_end - store->blocks_begin) {
        const struct span_block *block = store->blocks[store->blocks_begin + index];
        return (struct block_view){.block = block,
                                   .traces = block->traces,
                                   .traces_count = block->traces_count,
                                   .spans = block->spans};
    }
    assert(store->is_sorted);
    return (struct block_view){.traces = store->open_traces,
                               .traces_count = store->open_traces_count,
                               .spans = store->rows_count};
}

bool block_view_has_string(const struct trace_store *store, const struct block_view *view,
                           uint32_t string)
{
    if (view->block != NULL)
        return span_block_has_string(view->block, string);
    for (uint32_t i = 0; i < store->open_strings_count; i++)
        if (store->open_strings[i] == string)
            return true;
    return false;
}

bool block_view_may_have(const struct trace_store *store, const struct block_view *view,
                         struct slice key, struct slice text)
{
    return attribute_filter_may_have(view->block != NULL ? &view->block->attributes
                                                         : &store->open_attributes,
                                     key, text, store->seed);
}

bool block_view_find(const struct block_view *view, uint64_t trace, uint32_t *ret_first,
                     uint32_t *ret_end)
{
    struct span_block open = {.traces = (struct block_trace *)(uintptr_t)view->traces,
                              .traces_count = view->traces_count};
    return span_block_find(view->block != NULL ? view->block : &open, trace, ret_first, ret_end);
}

bool trace_store_rows(struct trace_store *store, const struct block_view *view,
                      struct span_row *rows)
{
    if (view->block != NULL) {
        bool is_whole = span_block_rows(view->block, store->box, store->codec, rows);
        store->broken_blocks += !is_whole;
        return is_whole;
    }
    memcpy(rows, store->rows, store->rows_count * sizeof(rows[0]));
    return true;
}

struct buffer *trace_store_bodies(struct trace_store *store, const struct block_view *view)
{
    if (view->block != NULL)
        return span_block_bodies(view->block, store->box, store->codec);
    struct buffer *copy = buffer_try_create(NULL, store->bodies_size + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy->data, store->bodies, store->bodies_size);
    copy->size = store->bodies_size;
    return copy;
}

struct span_context trace_store_context(const struct trace_store *store,
                                        const struct block_view *view, struct slice bodies,
                                        uint32_t context)
{
    if (view->block != NULL)
        return span_block_context(view->block, bodies, context);
    assert(context < store->contexts_count);
    return (struct span_context){
        .resource = context_at(store, store->contexts[context].resource),
        .scope = context_at(store, store->contexts[context].scope),
    };
}

uint32_t trace_store_contexts(const struct trace_store *store, const struct block_view *view,
                              struct slice bodies, struct span_context *contexts)
{
    if (view->block != NULL) {
        span_block_contexts(view->block, bodies, contexts);
        return view->block->contexts;
    }
    for (uint32_t i = 0; i < store->contexts_count; i++)
        contexts[i] = trace_store_context(store, view, bodies, i);
    return store->contexts_count;
}
