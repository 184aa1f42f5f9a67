/* SPDX-License-Identifier: Apache-2.0 */
/* Reading spans. The bytes have passed otlp_check. Resources and scopes are read across the parts
 * of the batch; a scope is copied into one piece if an earlier edit has cut it, which happens to
 * short ones only. A span keeps marks that it has, and its URL leads to the profile of its own id.
 * Runs on the reader's lane. */
#include "src/join/spans/span_reader.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/hex.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/otlp/key_value.h"
#include "src/otlp/rope.h"
#include "src/otlp/value.h"

enum {
    RESOURCES = 1,
    RESOURCE = 1,
    SCOPES = 2,
    SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SPAN_ATTRIBUTES_FIELD = 9,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    STRING_VALUE = 1,
};

/* OTLP's flags of a span. */
enum {
    FLAG_HAS_REMOTE = 0x100,
    FLAG_IS_REMOTE = 0x200,
};

/* A URL, an id, their keys and headers. */
enum { MARK_BYTES_MAX = URL_BYTES_MAX + 256 };

void span_reader_init(struct span_reader *reader, struct join_store *store, unsigned shard,
                      struct budget *budget)
{
    const struct join_settings *settings = &store->settings;
    struct span_keys *keys = &reader->keys;
    assert(shard < store->index.shards_count);
    *reader = (struct span_reader){.store = store, .budget = budget, .shard = shard};
    reader->gathered[0].budget = budget;
    reader->gathered[1].budget = budget;
    splice_list_init(&reader->splices, budget);
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

/* Frees what is charged to the budget, at the end of each batch. */
static void forget(struct span_reader *reader)
{
    profile_bytes_fini(&reader->gathered[0]);
    profile_bytes_fini(&reader->gathered[1]);
    splice_list_forget(&reader->splices);
}

void span_reader_fini(struct span_reader *reader)
{
    forget(reader);
    splice_list_fini(&reader->splices);
}

/* The field's content; copied to the end of `gathered` if it is in several parts. */
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

static void add_value(struct string_record *record, struct slice value)
{
    char room[VALUE_TEXT_BYTES];
    struct slice string;
    if (value.data != NULL && value_text_of(value, room, &string))
        string_record_add(record, string.data, string.size, JOIN_VALUE_BYTES_MAX);
    else
        string_record_add_absent(record);
}

/* content: of the encoded Resource whose spans follow. */
static void begin_resource(struct span_reader *reader, struct slice content)
{
    struct join_store *store = reader->store;
    const struct join_settings *settings = &store->settings;
    uint64_t now_ns = reader->now_ns;
    reader->resource = resource_facts_of(content);
    uint64_t service = reader->resource.service;
    service_set_match(&store->services, service);
    bool may_have_profiles =
        service_set_may_have(&store->services, service) ||
        (service != 0 && recent_services_has(&store->recent_services, service, now_ns));
    reader->is_indexed = may_have_profiles || !service_set_is_warm(&store->services, now_ns);
    reader->is_marked = may_have_profiles && settings->mark != JOIN_MARK_OFF;
    if (settings->profile_url.count > 0)
        reader->url_values = resource_url_values(&reader->resource);
    if (settings->repairs_identity)
        process_table_add(&store->processes, reader->shard, &reader->resource, now_ns);
    reader->process_keys.count = 0;
    if (settings->finds_single_traces)
        reader->process_keys =
            single_traces_begin(&store->single_traces, &reader->resource, now_ns);
    if (!reader->is_indexed)
        return;

    /* The record that all spans of the resource refer to: the hash of the service, then attributes.
     */
    struct string_record *record = &reader->record;
    string_record_begin(record);
    string_record_add_hash(record, service);
    for (size_t i = 0; i < settings->attributes_count; i++) {
        if (settings->attributes[i].source != JOIN_OF_RESOURCE)
            continue;
        struct wire_reader fields = wire_reader_of(content);
        struct wire_field field;
        struct slice value = {0};
        while (value.data == NULL && wire_next_field(&fields, &field)) {
            if (field.number != RESOURCE_ATTRIBUTES)
                continue;
            struct key_value attribute = key_value_of(field.bytes);
            if (slice_equal(attribute.key, settings->attributes[i].name))
                value = attribute.value;
        }
        add_value(record, value);
    }
    reader->resource_place = string_ring_put(span_index_ring(&store->index, reader->shard), record,
                                             STRING_KEEP_THREE_QUARTERS);
    if (settings->uses_window)
        span_window_begin(&store->window, reader->shard, &reader->resource, clock_wall_ns());
}

/* The first digit of an HTTP status; 0: the value is none. */
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
    return text.data[0] >= '1' && text.data[0] <= '5' ? (uint16_t)(text.data[0] - '0') : 0;
}

static void finish_flags(const struct join_settings *settings, struct span_view *span)
{
    struct span_facts *facts = &span->facts;
    /* Older SDKs do not set the flag: servers and consumers have remote callers. */
    bool tells_root = (span->flags & FLAG_HAS_REMOTE) != 0;
    bool has_remote_parent =
        tells_root ? (span->flags & FLAG_IS_REMOTE) != 0
                   : span->kind == SPAN_KIND_SERVER || span->kind == SPAN_KIND_CONSUMER;
    facts->flags |= (uint16_t)(span->kind & SPAN_KIND_MASK);
    if (tells_root)
        facts->flags |= SPAN_TELLS_ROOT;
    if (facts->parent == 0 || has_remote_parent)
        facts->flags |= SPAN_IS_LOCAL_ROOT;
    for (unsigned i = 0; i < settings->attributes_count; i++)
        if (settings->attributes[i].source == JOIN_STATUS_CLASS)
            facts->flags |= (uint16_t)(class_of(span_view_value(span, i)) << SPAN_CLASS_SHIFT);
}

/* Appends to the span the attributes by which its profile is found, as far as it lacks them. */
static void mark(struct span_reader *reader, const struct span_in_run *span)
{
    static const char id_begin[] = "\x4a\x2a\x0a\x14" SPAN_MARK_ID_KEY "\x12\x12\x0a\x10";
    enum { ID_BEGIN_BYTES = sizeof(id_begin) - 1, ID_HEX = 16, TRACE_HEX = 32 };
    struct splice_list *splices = &reader->splices;
    struct profile_bytes *out = &splices->inserts;
    const struct url_template *template = &reader->store->settings.profile_url;
    const struct span_facts *facts = &span->view.facts;
    struct slice own_id = span_view_value(&span->view, SPAN_MARK_ID);
    bool has_id = own_id.data != NULL;
    bool has_url = span_view_value(&span->view, SPAN_MARK_URL).data != NULL;
    size_t opened = splice_open(splices, span->begin, span->content);
    size_t begin = out->size;
    char id_room[VALUE_TEXT_BYTES];
    struct slice id = hex_write(&facts->span, sizeof(facts->span), id_room);
    if (!has_id) {
        uint8_t *room = profile_bytes_room(out, ID_BEGIN_BYTES + ID_HEX);
        memcpy(room, id_begin, ID_BEGIN_BYTES);
        memcpy(room + ID_BEGIN_BYTES, id.data, ID_HEX);
        out->size += ID_BEGIN_BYTES + ID_HEX;
    }
    if (template->count > 0 && !has_url) {
        if (has_id && (!value_text_of(own_id, id_room, &id) || id.size == 0))
            id = (struct slice){.data = NULL};
        /* With half a minute before and after, as Grafana looks for a span's profile. */
        uint64_t from_ns = facts->start_ns > JOIN_VIEW_NS ? facts->start_ns - JOIN_VIEW_NS : 0;
        char trace[TRACE_HEX];
        char times[2][URL_MS_BYTES];
        uint8_t room[URL_BYTES_MAX];
        struct url_values values = reader->url_values;
        values.texts[URL_TRACE_ID] = hex_write(facts->trace, sizeof(facts->trace), trace);
        values.texts[URL_SPAN_ID] = id;
        values.texts[URL_FROM_MS] = url_ms(from_ns, times[0]);
        values.texts[URL_UNTIL_MS] = url_ms(facts->end_ns + JOIN_VIEW_NS, times[1]);
        struct slice url = url_template_write(template, &values, room);
        if (url.data != NULL) {
            size_t attribute = out->size;
            profile_bytes_add(out, slice_of_text(SPAN_MARK_URL_KEY));
            profile_bytes_wrap(out, attribute, ATTRIBUTE_KEY);
            size_t value = out->size;
            profile_bytes_add(out, url);
            profile_bytes_wrap(out, value, STRING_VALUE);
            profile_bytes_wrap(out, value, ATTRIBUTE_VALUE);
            profile_bytes_wrap(out, attribute, SPAN_ATTRIBUTES_FIELD);
        }
    }
    reader->figures.marked += !has_id;
    if (out->size > begin)
        splice_add_from(splices, span->content + span->content_bytes, 0, begin);
    splice_close(splices, opened, SPANS, span->content_bytes);
}

static bool wants_mark(const struct span_reader *reader, const struct span_view *span)
{
    const struct join_store *store = reader->store;
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

/* Indexes and marks the spans of the run, for which memory was prefetched meanwhile. */
static void finish_run(struct span_reader *reader)
{
    struct join_store *store = reader->store;
    const struct join_settings *settings = &store->settings;
    const struct splice_list *splices = &reader->splices;
    struct string_record *record = &reader->record;
    for (unsigned k = 0; k < reader->run_count; k++) {
        struct span_view *span = &reader->run[k].view;
        struct span_facts *facts = &span->facts;
        finish_flags(settings, span);
        facts->resource = reader->resource.hash;
        string_record_begin(record);
        string_record_add_number(record, reader->resource_place);
        string_record_add(record, span->name.data, span->name.size, JOIN_VALUE_BYTES_MAX);
        for (unsigned i = 0; i < settings->attributes_count; i++)
            if (settings->attributes[i].source == JOIN_OF_SPAN)
                add_value(record, span_view_value(span, i));
        facts->strings = string_ring_put(span_index_ring(&store->index, reader->shard), record,
                                         STRING_KEEP_HALF);
        span_index_add(&store->index, reader->shard, facts);
        if (settings->uses_window) {
            struct window_span found = {
                .trace = {facts->trace[0], facts->trace[1]},
                .span = facts->span,
                .parent = facts->parent,
                .start_ns = facts->start_ns,
                .end_ns = facts->end_ns,
                .resource = facts->resource,
            };
            thread_facts_take(&found.thread, slice_of_text(THREAD_NAME_KEY),
                              span_view_value(span, SPAN_THREAD_NAME));
            thread_facts_take(&found.thread, slice_of_text(THREAD_ID_KEY),
                              span_view_value(span, SPAN_THREAD_ID));
            span_window_add(&store->window, reader->shard, &found);
        }
        reader->figures.indexed++;
        reader->figures.late += id_set_take(&store->missed, facts->span);
        if (store->wants_costs)
            trace_costs_move_span(&store->costs, facts->span, facts->trace, reader->now_ns);
        if (reader->process_keys.count > 0)
            single_traces_note(&store->single_traces, &reader->process_keys, facts, reader->now_ns);

        if (!wants_mark(reader, span))
            continue;
        /* For this mark, and for the batch with all marks. */
        uint64_t bytes = splice_list_growth(splices, 2, MARK_BYTES_MAX) + splices->inserts.size +
                         reader->batch_bytes + MARK_BYTES_MAX;
        if (budget_has_room(reader->budget, bytes))
            mark(reader, &reader->run[k]);
        else
            reader->figures.unmarked++;
    }
    reader->run_count = 0;
}

void span_reader_begin(struct span_reader *reader, struct batch *batch)
{
    assert(batch->signal == TRACES);
    assert(reader->walk.batch == NULL);
    reader->figures = (struct span_figures){.indexed = 0};
    reader->batch_bytes = batch->bytes;
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

    /* Several `resource` fields are one Resource. */
    struct profile_bytes *gathered = &reader->gathered[0];
    struct rope rope = message->content;
    struct rope_field field;
    struct slice content = {0};
    gathered->size = 0;
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
    walk->resource_content = content;
    begin_resource(reader, content);
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

/* At most *left spans of the scope. False: there are no more. */
static bool read_spans(struct span_reader *reader, uint64_t *left)
{
    struct span_walk *walk = &reader->walk;
    struct join_store *store = reader->store;
    uint64_t at = walk->scope.content.at;
    struct wire_field field;
    bool is_more = true;
    assert(reader->run_count == 0);
    while (*left > 0 && (is_more = wire_next_field(&walk->spans, &field))) {
        if (field.number != SPANS || field.type != WIRE_BYTES)
            continue;
        --*left;
        struct span_in_run *span = &reader->run[reader->run_count];
        struct span_facts *facts = &span->view.facts;
        if (!reader->is_indexed) {
            /* Of a service without profiles; that of a batch job may come when the job ends. */
            reader->figures.skipped++;
            if (reader->process_keys.count == 0 ||
                !span_view_read(&reader->keys, field.bytes, &span->view))
                continue;
            finish_flags(&store->settings, &span->view);
            single_traces_note(&store->single_traces, &reader->process_keys, facts, reader->now_ns);
            continue;
        }
        if (!span_view_read(&reader->keys, field.bytes, &span->view))
            continue;
        span_index_expect(&store->index, reader->shard, facts->span, reader->run_count);
        id_set_expect(&store->missed, facts->span);
        span->begin = at + (uint64_t)(field.whole.data - walk->scope_content.data);
        span->content = at + (uint64_t)(field.bytes.data - walk->scope_content.data);
        span->content_bytes = field.bytes.size;
        if (++reader->run_count == SPAN_RUN_MAX)
            finish_run(reader);
    }
    finish_run(reader);
    assert(walk->spans.failure == NULL);
    return is_more;
}

bool span_reader_step(struct span_reader *reader, uint64_t spans_max, uint64_t now_ns)
{
    struct span_walk *walk = &reader->walk;
    uint64_t left = spans_max;
    reader->now_ns = now_ns;
    /* Other readers may have begun another resource meanwhile. */
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

/* The batch with all marks. Between the steps others may have taken the room that there was for it:
 * then NULL. */
static struct batch *marked_batch(struct span_reader *reader, struct batch *batch)
{
    uint64_t bytes = splice_apply_bytes_max(&reader->splices, batch);
    struct budget_reserve reserve;
    if (budget_reserve(&reserve, reader->budget, bytes) != BUDGET_GIVEN)
        return NULL;
    struct batch *marked = splice_apply(&reader->splices, batch, reader->budget);
    budget_release(&reserve);
    return marked;
}

struct batch *span_reader_end(struct span_reader *reader, struct span_figures *ret_figures)
{
    struct batch *batch = reader->walk.batch;
    struct span_figures *figures = &reader->figures;
    struct batch *read = reader->splices.count > 0 ? marked_batch(reader, batch) : batch_ref(batch);
    if (read == NULL) {
        read = batch_ref(batch);
        figures->unmarked += figures->marked;
        figures->marked = 0;
    }
    *ret_figures = *figures;
    forget(reader);
    batch_unref(batch);
    reader->walk.batch = NULL;
    return read;
}

struct batch *span_reader_read(struct span_reader *reader, struct batch *batch, uint64_t now_ns,
                               struct span_figures *ret_figures)
{
    span_reader_begin(reader, batch);
    bool is_read = span_reader_step(reader, UINT64_MAX, now_ns);
    assert(is_read);
    return span_reader_end(reader, ret_figures);
}
