/* SPDX-License-Identifier: Apache-2.0 */
/* Reading spans. The bytes have passed otlp_check. Resources and scopes are looked for across the
 * parts of the batch; below a scope everything is read in place, unless an edit before us has cut
 * it, which only happens to short ones. Runs on the reader's lane. */
#include "src/join/spans/span_reader.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/key_value.h"
#include "src/join/spans/span_mark.h"
#include "src/otlp/rope.h"
#include "src/otlp/value.h"

enum { RESOURCES = 1, RESOURCE = 1, SCOPES = 2, SPANS = 2, ATTRIBUTES = 1 };

/* Numbers of OTLP. */
enum {
    FLAG_HAS_REMOTE = 0x100,
    FLAG_IS_REMOTE = 0x200,
};

/* A URL, an id, their keys and headers. */
enum { MARK_BYTES_MAX = URL_BYTES_MAX + 256 };

static void want_attributes(struct span_keys *keys, const struct join_settings *settings)
{
    assert(settings->attributes_count <= JOIN_ATTRIBUTES_MAX);
    for (unsigned i = 0; i < settings->attributes_count; i++) {
        const struct join_attribute *attribute = &settings->attributes[i];
        if (attribute->source == JOIN_OF_SPAN)
            span_keys_add(keys, attribute->name, i);
        if (attribute->source != JOIN_STATUS_CLASS)
            continue;
        span_keys_add(keys, slice_of_text("http.response.status_code"), i);
        span_keys_add(keys, slice_of_text("http.status_code"), i);
    }
    if (settings->uses_window) {
        span_keys_add(keys, slice_of_text(THREAD_NAME_KEY), SPAN_THREAD_NAME);
        span_keys_add(keys, slice_of_text(THREAD_ID_KEY), SPAN_THREAD_ID);
    }
    if (settings->mark != JOIN_MARK_OFF) {
        span_keys_add(keys, slice_of_text(SPAN_MARK_ID_KEY), SPAN_MARK_ID);
        span_keys_add(keys, slice_of_text(SPAN_MARK_URL_KEY), SPAN_MARK_URL);
    }
}

void span_reader_init(struct span_reader *reader, struct join_store *store, unsigned shard,
                      struct budget *budget)
{
    assert(store != NULL);
    assert(shard < store->index.shards_count);
    *reader = (struct span_reader){.store = store, .budget = budget, .shard = shard};
    want_attributes(&reader->keys, &store->settings);
    reader->gathered[0].budget = budget;
    reader->gathered[1].budget = budget;
    splice_list_init(&reader->splices, budget);
}

/* What is charged to the budget goes with the batch that it was for. */
static void forget(struct span_reader *reader)
{
    assert(reader != NULL);
    profile_bytes_fini(&reader->gathered[0]);
    profile_bytes_fini(&reader->gathered[1]);
    splice_list_forget(&reader->splices);
}

void span_reader_fini(struct span_reader *reader)
{
    forget(reader);
    splice_list_fini(&reader->splices);
    assert(reader->splices.items == NULL);
}

/* The field's content in one piece, appended to `gathered` if it is not. */
static struct slice in_one_piece(const struct rope_field *field, struct profile_bytes *gathered)
{
    struct slice content = rope_contiguous(&field->content, field->content_bytes);
    if (content.size == field->content_bytes)
        return content;
    uint8_t *room = profile_bytes_room(gathered, (size_t)field->content_bytes);
    rope_copy(field->content, field->content_bytes, room);
    assert(gathered->capacity - gathered->size >= field->content_bytes);
    gathered->size += (size_t)field->content_bytes;
    return slice_of(room, (size_t)field->content_bytes);
}

/* Of the Resource… message; several `resource` fields are one Resource. */
static struct slice find_resource(struct span_reader *reader, const struct rope_field *message)
{
    struct profile_bytes *gathered = &reader->gathered[0];
    struct rope rope = message->content;
    struct rope_field field;
    struct slice content = {0};
    gathered->size = 0;
    assert(message->number == RESOURCES);
    while (rope_read_field(&rope, message->content.at + message->content_bytes, &field)) {
        if (field.number != RESOURCE)
            continue;
        if (content.size > 0 && gathered->size == 0)
            profile_bytes_add(gathered, content);
        size_t before = gathered->size;
        content = in_one_piece(&field, gathered);
        if (before > 0 && gathered->size == before)
            profile_bytes_add(gathered, content);
        if (gathered->size > 0)
            content = slice_of(gathered->data, gathered->size);
    }
    return content;
}

/* No data: it has another key, or no value. */
static struct slice attribute_value(struct slice encoded, struct slice key)
{
    struct key_value attribute = key_value_of(encoded);
    assert(key.size > 0);
    return slice_equal(attribute.key, key) ? attribute.value : (struct slice){0};
}

static void add_text_of(struct string_record *text, struct slice value)
{
    char room[VALUE_TEXT_BYTES];
    struct slice found;
    assert(text != NULL);
    if (value.data != NULL && value_text_of(value, room, &found))
        string_record_add(text, found.data, found.size, JOIN_VALUE_BYTES_MAX);
    else
        string_record_add_absent(text);
}

/* What spans of the resource have in common goes into the log once: the hash of their service,
 * then attributes. */
static uint32_t put_resource_texts(struct span_reader *reader, struct slice content)
{
    const struct join_settings *settings = &reader->store->settings;
    struct string_record *text = &reader->text;
    string_record_begin(text);
    string_record_add_hash(text, reader->resource.service);
    for (size_t i = 0; i < settings->attributes_count; i++) {
        if (settings->attributes[i].source != JOIN_OF_RESOURCE)
            continue;
        struct wire_reader fields = wire_reader_of(content);
        struct wire_field field;
        struct slice value = {0};
        while (value.data == NULL && wire_next_field(&fields, &field))
            if (field.number == ATTRIBUTES)
                value = attribute_value(field.bytes, settings->attributes[i].name);
        add_text_of(text, value);
    }
    assert(text->bytes <= sizeof(text->words));
    return string_ring_put(span_index_log(&reader->store->index, reader->shard), text,
                           STRING_KEEP_THREE_QUARTERS);
}

/* Whether spans of the resource may have profiles, as far as one knows. */
static bool may_have_profiles(const struct span_reader *reader, uint64_t now_ns)
{
    struct join_store *store = reader->store;
    uint64_t service = reader->resource.service;
    assert(now_ns > 0);
    return service_set_may_have(&store->services, service) ||
           (service != 0 && recent_services_has(&store->recent_services, service, now_ns));
}

static void begin_resource(struct span_reader *reader, struct slice content)
{
    struct join_store *store = reader->store;
    uint64_t now_ns = reader->now_ns;
    reader->resource = resource_facts_of(content);
    service_set_match(&store->services, reader->resource.service);
    bool may_have = may_have_profiles(reader, now_ns);
    reader->is_indexed = may_have || !service_set_is_warm(&store->services, now_ns);
    reader->is_marked = may_have && store->settings.mark != JOIN_MARK_OFF;
    if (store->settings.repairs_identity)
        process_table_add(&store->processes, reader->shard, &reader->resource, now_ns);
    if (reader->is_indexed)
        reader->resource_texts = put_resource_texts(reader, content);
    if (reader->is_indexed && store->settings.uses_window)
        span_window_begin(&store->window, reader->shard, &reader->resource, now_ns);
    reader->process_keys.count = 0;
    if (store->settings.finds_single_traces)
        reader->process_keys =
            single_traces_begin(&store->single_traces, &reader->resource, now_ns);
}

/* The first digit of an HTTP status; 0: it is none. */
static uint16_t class_of(struct slice encoded)
{
    char room[VALUE_TEXT_BYTES];
    struct slice text;
    if (encoded.data == NULL)
        return 0;
    struct value value = value_read(encoded);
    if (value.type == VALUE_INT)
        return (uint16_t)(value.integer >= 100 && value.integer < 600 ? value.integer / 100 : 0);
    if (!value_text_of(encoded, room, &text) || text.size != 3)
        return 0;
    assert(text.data != NULL);
    return text.data[0] >= '1' && text.data[0] <= '5' ? (uint16_t)(text.data[0] - '0') : 0;
}

/* A span whose parent is in another process. SDKs that do not say so yet are guessed by the kind:
 * servers and consumers are called from outside. */
static bool is_local_root(const struct span_view *span)
{
    assert(span->facts.span != 0);
    if (span->facts.parent == 0)
        return true;
    if ((span->flags & FLAG_HAS_REMOTE) != 0)
        return (span->flags & FLAG_IS_REMOTE) != 0;
    return span->kind == SPAN_KIND_SERVER || span->kind == SPAN_KIND_CONSUMER;
}

static void finish_flags(const struct join_settings *settings, struct span_view *span)
{
    struct span_facts *facts = &span->facts;
    assert(facts->span != 0);
    facts->flags |= (uint16_t)(span->kind & SPAN_KIND_MASK);
    if ((span->flags & FLAG_HAS_REMOTE) != 0)
        facts->flags |= SPAN_TELLS_ROOT;
    if (is_local_root(span))
        facts->flags |= SPAN_IS_LOCAL_ROOT;
    for (unsigned i = 0; i < settings->attributes_count; i++)
        if (settings->attributes[i].source == JOIN_STATUS_CLASS)
            facts->flags |= (uint16_t)(class_of(span_view_value(span, i)) << SPAN_CLASS_SHIFT);
}

/* For samples that say when they were taken, but not in which span. */
static void add_to_window(struct span_reader *reader, const struct span_view *span)
{
    const struct span_facts *facts = &span->facts;
    struct window_span found = {
        .trace = {facts->trace[0], facts->trace[1]},
        .span = facts->span,
        .parent = facts->parent,
        .start_ns = facts->start_ns,
        .end_ns = facts->end_ns,
        .resource = facts->resource,
    };
    assert(facts->span != 0);
    thread_facts_take(&found.thread, slice_of_text(THREAD_NAME_KEY),
                      span_view_value(span, SPAN_THREAD_NAME));
    thread_facts_take(&found.thread, slice_of_text(THREAD_ID_KEY),
                      span_view_value(span, SPAN_THREAD_ID));
    span_window_add(&reader->store->window, reader->shard, &found);
}

static void index_span(struct span_reader *reader, struct span_view *span)
{
    const struct join_settings *settings = &reader->store->settings;
    struct string_record *text = &reader->text;
    assert(span->facts.span != 0);
    finish_flags(settings, span);
    span->facts.resource = reader->resource.hash;
    string_record_begin(text);
    string_record_add_number(text, reader->resource_texts);
    string_record_add(text, span->name.data, span->name.size, JOIN_VALUE_BYTES_MAX);
    for (unsigned i = 0; i < settings->attributes_count; i++)
        if (settings->attributes[i].source == JOIN_OF_SPAN)
            add_text_of(text, span_view_value(span, i));
    span->facts.texts = string_ring_put(span_index_log(&reader->store->index, reader->shard), text,
                                        STRING_KEEP_HALF);
    span_index_add(&reader->store->index, reader->shard, &span->facts);
    if (settings->uses_window)
        add_to_window(reader, span);
    reader->figures.indexed++;
    reader->figures.late += id_set_take(&reader->store->missed, span->facts.span);
}

static bool wants_mark(const struct span_reader *reader, const struct span_view *span)
{
    const struct join_store *store = reader->store;
    assert(span->facts.span != 0);
    if (!reader->is_marked)
        return false;
    switch (store->settings.mark) {
    case JOIN_MARK_ALL:
        return true;
    case JOIN_MARK_LOCAL_ROOTS:
        return (span->facts.flags & SPAN_IS_LOCAL_ROOT) != 0;
    case JOIN_MARK_OBSERVED:
        return id_set_has(&store->observed, span->facts.span);
    case JOIN_MARK_OFF:
    default:
        return false;
    }
}

static void mark(struct span_reader *reader, const struct span_in_run *span)
{
    struct splice_list *splices = &reader->splices;
    const struct span_mark wanted = {
        .url = &reader->store->settings.profile_url,
        .resource = &reader->resource,
        .facts = &span->view.facts,
        .own_id = span_view_value(&span->view, SPAN_MARK_ID),
        .own_url = span_view_value(&span->view, SPAN_MARK_URL),
    };
    assert(span->content > span->begin);
    size_t opened = splice_open(splices, span->begin, span->content);
    size_t begin = splices->inserts.size;
    reader->figures.marked += span_mark_write(&wanted, &splices->inserts);
    if (splices->inserts.size > begin)
        splice_add_from(splices, span->content + span->content_bytes, 0, begin);
    splice_close(splices, opened, SPANS, span->content_bytes);
}

/* Whether the budget has room for one more mark, and for the batch with all of them. */
static bool has_room(const struct span_reader *reader)
{
    const struct splice_list *splices = &reader->splices;
    return budget_has_room(reader->budget, splice_list_growth(splices, 2, MARK_BYTES_MAX) +
                                               splices->inserts.size + reader->batch_bytes +
                                               MARK_BYTES_MAX);
}

/* Indexes and marks those of the run. What they need of the index has been fetched meanwhile. */
static void finish_run(struct span_reader *reader)
{
    assert(reader->run_count <= SPAN_RUN_MAX);
    for (unsigned i = 0; i < reader->run_count; i++) {
        index_span(reader, &reader->run[i].view);
        if (reader->process_keys.count > 0)
            single_traces_note(&reader->store->single_traces, &reader->process_keys,
                               &reader->run[i].view.facts, reader->now_ns);
        if (!wants_mark(reader, &reader->run[i].view))
            continue;
        if (has_room(reader))
            mark(reader, &reader->run[i]);
        else
            reader->figures.unmarked++;
    }
    reader->run_count = 0;
}

static void read_span(struct span_reader *reader, const struct wire_field *field, uint64_t begin)
{
    struct join_store *store = reader->store;
    struct span_in_run *span = &reader->run[reader->run_count];
    assert(reader->run_count < SPAN_RUN_MAX);
    if (!span_view_read(&reader->keys, field->bytes, &span->view))
        return;
    span_index_expect(&store->index, reader->shard, span->view.facts.span, reader->run_count);
    id_set_expect(&store->missed, span->view.facts.span);
    span->begin = begin;
    span->content = begin + (uint64_t)(field->bytes.data - field->whole.data);
    span->content_bytes = field->bytes.size;
    if (++reader->run_count == SPAN_RUN_MAX)
        finish_run(reader);
}

/* A span of a service without profiles. That of a batch job may come when the job ends. */
static void skip_span(struct span_reader *reader, const struct wire_field *field)
{
    struct span_view *view = &reader->run[0].view;
    assert(reader->run_count == 0);
    reader->figures.skipped++;
    if (reader->process_keys.count == 0 || !span_view_read(&reader->keys, field->bytes, view))
        return;
    finish_flags(&reader->store->settings, view);
    single_traces_note(&reader->store->single_traces, &reader->process_keys, &view->facts,
                       reader->now_ns);
}

void span_reader_begin(struct span_reader *reader, struct batch *batch, uint64_t now_ns)
{
    assert(batch->signal == TRACES);
    assert(reader->walk.batch == NULL);
    reader->figures = (struct span_figures){.indexed = 0};
    reader->batch_bytes = batch->bytes;
    reader->now_ns = now_ns;
    reader->walk = (struct span_walk){.batch = batch_ref(batch), .resources = rope_of(batch)};
    splice_list_clear(&reader->splices);
}

/* The next resource of the batch. False: there is none. */
static bool enter_resource(struct span_reader *reader)
{
    struct span_walk *walk = &reader->walk;
    struct rope_field *message = &walk->resource;
    do
        if (!rope_read_field(&walk->resources, walk->batch->bytes, message))
            return false;
    while (message->number != RESOURCES);
    walk->opened[0] = splice_open(&reader->splices, message->begin.at, message->content.at);
    walk->scopes = message->content;
    walk->resource_content = find_resource(reader, message);
    begin_resource(reader, walk->resource_content);
    return true;
}

/* The next scope of the resource. False: there is none. */
static bool enter_scope(struct span_reader *reader)
{
    struct span_walk *walk = &reader->walk;
    uint64_t end = walk->resource.content.at + walk->resource.content_bytes;
    do
        if (!rope_read_field(&walk->scopes, end, &walk->scope))
            return false;
    while (walk->scope.number != SCOPES);
    walk->opened[1] = splice_open(&reader->splices, walk->scope.begin.at, walk->scope.content.at);
    reader->gathered[1].size = 0;
    walk->scope_content = in_one_piece(&walk->scope, &reader->gathered[1]);
    walk->spans = wire_reader_of(walk->scope_content);
    return true;
}

/* As many spans of the scope as *left says. False: there are no more. */
static bool read_spans(struct span_reader *reader, uint64_t *left)
{
    struct span_walk *walk = &reader->walk;
    uint64_t at = walk->scope.content.at;
    struct wire_field field;
    bool is_more = true;
    assert(reader->run_count == 0);
    while (*left > 0 && (is_more = wire_next_field(&walk->spans, &field))) {
        if (field.number != SPANS || field.type != WIRE_BYTES)
            continue;
        --*left;
        if (reader->is_indexed)
            read_span(reader, &field, at + (uint64_t)(field.whole.data - walk->scope_content.data));
        else
            skip_span(reader, &field);
    }
    finish_run(reader);
    assert(walk->spans.failure == NULL);
    return is_more;
}

bool span_reader_step(struct span_reader *reader, uint64_t spans_max)
{
    struct span_walk *walk = &reader->walk;
    uint64_t left = spans_max;
    /* Other readers may have had another resource in hand meanwhile. */
    if (walk->is_in_resource)
        begin_resource(reader, walk->resource_content);
    while (left > 0) {
        if (walk->is_in_scope) {
            walk->is_in_scope = read_spans(reader, &left);
            if (!walk->is_in_scope)
                splice_close(&reader->splices, walk->opened[1], SCOPES, walk->scope.content_bytes);
        } else if (walk->is_in_resource) {
            left--;
            walk->is_in_scope = enter_scope(reader);
            walk->is_in_resource = walk->is_in_scope;
            if (!walk->is_in_resource)
                splice_close(&reader->splices, walk->opened[0], RESOURCES,
                             walk->resource.content_bytes);
        } else {
            left--;
            walk->is_in_resource = enter_resource(reader);
            if (!walk->is_in_resource)
                return true;
        }
    }
    return false;
}

struct batch *span_reader_end(struct span_reader *reader, struct span_figures *ret_figures)
{
    struct batch *batch = reader->walk.batch;
    *ret_figures = reader->figures;
    struct batch *read = reader->splices.count > 0
                             ? splice_apply(&reader->splices, batch, reader->budget)
                             : batch_ref(batch);
    forget(reader);
    batch_unref(batch);
    reader->walk.batch = NULL;
    return read;
}

struct batch *span_reader_read(struct span_reader *reader, struct batch *batch, uint64_t now_ns,
                               struct span_figures *ret_figures)
{
    span_reader_begin(reader, batch, now_ns);
    bool is_read = span_reader_step(reader, UINT64_MAX);
    assert(is_read);
    return span_reader_end(reader, ret_figures);
}
