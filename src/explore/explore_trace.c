/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about one trace: its header, windows of its waterfall, one span. On the explore
 * worker. */
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/explore/explore_asking.h"
#include "src/explore/explore_select.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum {
    ROWS_STANDARD = 200,
    ROWS_MAX = 2000,
    EVENTS_MAX = 50, /* of a row */
    MINIMAP_MAX = 1000,
    CRITICAL_MAX = 2000,
    FOUND_STANDARD = 200,
    FOUND_MAX = 2000,
    BYTES_PER_LOOK = 64 * 1024, /* of spans that are read, at the clock */
    SPAN_EVENTS = 11,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
};
/* A waterfall may take longer than other questions: it is kept for the next ones. */
#define VIEW_NS ((uint64_t)2 * NS_PER_S)

/* Fills in what the profiles say of the trace's spans. */
static void fill_samples(struct explore_data *data, struct trace_view *view, const uint8_t *id)
{
    struct span_samples *spans;
    size_t count = profile_store_spans(&data->profiles, id, &spans);
    for (uint32_t i = 0; i < view->services_count; i++)
        view->services[i].samples = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        view->rows[i].samples = 0;
        view->rows[i].cpu_ns = 0;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t span_id;
        memcpy(&span_id, spans[i].span_id, sizeof(span_id));
        uint32_t row = trace_view_find(view, span_id);
        if (row == VIEW_NONE)
            continue;
        uint64_t samples = span_samples_count(&spans[i]);
        view->rows[row].samples = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX;
        view->rows[row].cpu_ns = span_samples_cpu_ns(&spans[i]);
        view->services[view->rows[row].service].samples += samples;
    }
    mem_free(spans);
    view->profiles_seen = data->profiles.generation;
}

struct trace_view *asking_view(struct asking *asking, const uint8_t id[static 16])
{
    struct explore_data *data = asking->data;
    uint64_t number = trace_store_find(&data->traces, id);
    if (number == UINT64_MAX) {
        asking_fail(asking, 404,
                    data->traces.evicted_traces > 0
                        ? "there is no such trace; if it was here, it has been evicted since: the "
                          "oldest go first when max_bytes is reached"
                        : "there is no such trace");
        return NULL;
    }
    struct trace_view *oldest = &data->views[0];
    struct trace_view *view = NULL;
    for (size_t i = 0; i < EXPLORE_VIEWS; i++) {
        if (data->views[i].number == number)
            view = &data->views[i];
        if (data->views[i].used_at < oldest->used_at)
            oldest = &data->views[i];
    }
    if (view == NULL || view->spans != trace_store_record(&data->traces, number)->spans) {
        struct span_row *rows = asking_rows(asking);
        struct explore_limit limit = explore_limit_of(VIEW_NS);
        view = view != NULL ? view : oldest;
        enum explore_result result = rows != NULL
                                         ? trace_view_build(view, &data->traces, number, rows,
                                                            data->settings->budget, &limit)
                                         : EXPLORE_NO_MEMORY;
        if (result != EXPLORE_DONE) {
            asking_fail_by(asking, result);
            return NULL;
        }
        asking->limit = explore_limit_of(EXPLORE_QUERY_NS);
    }
    if (view->profiles_seen != data->profiles.generation)
        fill_samples(data, view, id);
    view->used_at = ++data->views_used;
    return view;
}

/* The waterfall of the trace that the path names; NULL: the answer is an error. */
static struct trace_view *open_view(struct asking *asking)
{
    uint8_t id[16];
    if (explore_read_hex(asking->id, id, sizeof(id)))
        return asking_view(asking, id);
    asking_fail(asking, 400, "a trace id has 32 hexadecimal digits");
    return NULL;
}

/* Writes the types of the profiles that a selection has, and why there are none. */
static void put_profiles(struct asking *asking, struct explore_selection *selection,
                         uint64_t samples)
{
    struct json_output *out = &asking->out;
    if (samples > 0)
        put_types(asking, selection);
    else
        put_raw(out, ",\"types\":[]");
    put_key(out, "why");
    if (samples > 0)
        put_raw(out, "null");
    else
        put_reason(asking, selection);
}

static void put_fraction(struct json_output *out, uint64_t part, uint64_t whole)
{
    char text[32];
    snprintf(text, sizeof(text), "%.5f", whole > 0 ? (double)part / (double)whole : 0);
    put_raw(out, text);
}

void answer_trace(struct asking *asking)
{
    struct trace_view *view = open_view(asking);
    if (view == NULL)
        return;
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    const struct trace_store *store = &asking->data->traces;
    const struct trace_record *record = trace_store_record(store, view->number);
    struct json_output *out = &asking->out;
    uint64_t whole_ns = view->end_ns - view->start_ns;
    put_raw(out, "{");
    put_hex(out, "id", record->id, sizeof(record->id));
    put_wide(out, "start", view->start_ns);
    put_unsigned(out, "duration", whole_ns);
    put_unsigned(out, "spans", view->count);
    put_unsigned(out, "errors", record->errors);
    put_key(out, "services");
    put_raw(out, "[");
    for (uint32_t i = 0; i < view->services_count; i++) {
        put_comma(out);
        put_raw(out, "{");
        put_string(out, "name", string_table_at(&store->strings, view->services[i].name));
        put_unsigned(out, "spans", view->services[i].spans);
        put_unsigned(out, "samples", view->services[i].samples);
        put_raw(out, "}");
    }
    put_raw(out, "]");
    put_key(out, "root");
    const struct view_row *root = &view->rows[0];
    put_raw(out, "{");
    put_string(out, "service",
               string_table_at(&store->strings, view->services[root->service].name));
    put_string(out, "name", string_table_at(&store->strings, root->name));
    put_string(out, "kind", slice_of_text(kinds[root->kind < 6 ? root->kind : 0]));
    put_bool(out, "missingParent", root->is_orphan);
    put_raw(out, "}");
    put_key(out, "minimap");
    put_raw(out, "[");
    uint32_t step = view->count / MINIMAP_MAX + 1;
    for (uint32_t i = 0; i < view->count; i += step) {
        const struct view_row *row = &view->rows[i];
        put_comma(out);
        put_raw(out, "[");
        put_fraction(out, row->start_ns - view->start_ns, whole_ns);
        put_raw(out, ",");
        put_fraction(out, row->start_ns + row->duration_ns - view->start_ns, whole_ns);
        put_raw(out, ",");
        json_output_put_unsigned(out, row->depth);
        put_raw(out, ",");
        json_output_put_unsigned(out, row->service);
        put_raw(out, row->status == SPAN_STATUS_ERROR ? ",1]" : ",0]");
    }
    put_raw(out, "]");
    put_key(out, "criticalPath");
    put_raw(out, "[");
    uint32_t critical = 0;
    for (uint32_t i = 0; i < view->count && critical < CRITICAL_MAX; i++) {
        if (!view->rows[i].is_critical)
            continue;
        critical++;
        put_comma(out);
        json_output_put_unsigned(out, i);
    }
    put_raw(out, "]");
    struct explore_selection selection = {.mode = SELECT_TRACE, .end_ns = UINT64_MAX};
    memcpy(selection.trace_id, record->id, sizeof(record->id));
    put_profiles(asking, &selection, profile_store_samples(&asking->data->profiles, record->id));
    put_raw(out, "}");
}

/* The block of that number's low bits with its bytes; NULL: it is gone. */
static struct buffer *open_bodies(struct asking *asking, uint32_t number,
                                  struct block_view *ret_block)
{
    struct trace_store *store = &asking->data->traces;
    size_t at = trace_store_block_of(store, number);
    struct span_row *rows = asking_rows(asking);
    if (rows == NULL || at >= trace_store_blocks(store))
        return NULL;
    *ret_block = trace_store_block(store, at);
    return trace_store_rows(store, ret_block, rows) ? trace_store_bodies(store, ret_block) : NULL;
}

/* The row of a span in the block whose rows have just been read; NULL: it is not there. */
static const struct span_row *row_of(const struct asking *asking, const struct block_view *block,
                                     uint64_t trace, uint64_t span_id)
{
    uint32_t first, end;
    if (!block_view_find(block, trace, &first, &end))
        return NULL;
    for (uint32_t i = first; i < end; i++)
        if (asking->data->rows[i].span_id == span_id)
            return &asking->data->rows[i];
    return NULL;
}

static void put_events(struct asking *asking, const struct view_row *row, struct slice span)
{
    struct json_output *out = &asking->out;
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    unsigned count = 0;
    put_raw(out, "[");
    while (count < EVENTS_MAX && wire_next_field(&reader, &field)) {
        if (field.number != SPAN_EVENTS || field.type != WIRE_BYTES)
            continue;
        struct wire_reader event = wire_reader_of(field.bytes);
        struct wire_field part;
        uint64_t at_ns = 0;
        struct slice name = slice_of("", 0);
        while (wire_next_field(&event, &part)) {
            if (part.number == EVENT_TIME)
                at_ns = part.number_value;
            else if (part.number == EVENT_NAME)
                name = part.bytes;
        }
        count++;
        put_comma(out);
        put_raw(out, "[");
        json_output_put_signed(out, (int64_t)(at_ns - row->start_ns));
        put_raw(out, ",");
        json_output_put_string(out, name.size > EXPLORE_STRING_BYTES_MAX
                                        ? slice_of(name.data, EXPLORE_STRING_BYTES_MAX)
                                        : name);
        put_raw(out, "]");
    }
    put_raw(out, "]");
}

void answer_rows(struct asking *asking)
{
    uint64_t from = asking_number(asking, "from", 0, UINT32_MAX);
    uint64_t count = asking_number(asking, "count", ROWS_STANDARD, ROWS_MAX);
    struct trace_view *view = asking->status == 200 ? open_view(asking) : NULL;
    if (view == NULL)
        return;
    const struct trace_store *store = &asking->data->traces;
    struct json_output *out = &asking->out;
    uint64_t end = from + count < view->count ? from + count : view->count;
    put_raw(out, "{");
    put_unsigned(out, "from", from);
    put_unsigned(out, "total", view->count);
    put_key(out, "rows");
    put_raw(out, "[");
    for (uint64_t i = from; i < end; i++) {
        const struct view_row *row = &view->rows[i];
        put_comma(out);
        put_raw(out, "[");
        json_output_put_unsigned(out, i);
        put_raw(out, ",");
        put_hex_value(out, &row->span_id, sizeof(row->span_id));
        put_raw(out, ",");
        json_output_put_signed(out, row->parent == VIEW_NONE ? -1 : (int64_t)row->parent);
        const uint64_t before_name[] = {row->depth, row->subtree, row->service};
        for (size_t j = 0; j < sizeof(before_name) / sizeof(before_name[0]); j++) {
            put_raw(out, ",");
            json_output_put_unsigned(out, before_name[j]);
        }
        put_raw(out, ",");
        json_output_put_string(out, string_table_at(&store->strings, row->name));
        const uint64_t behind_name[] = {row->start_ns - view->start_ns,
                                        row->duration_ns,
                                        row->kind,
                                        row->status,
                                        row->events,
                                        row->links,
                                        row->samples,
                                        row->cpu_ns,
                                        row->self_ns,
                                        row->is_critical};
        for (size_t j = 0; j < sizeof(behind_name) / sizeof(behind_name[0]); j++) {
            put_raw(out, ",");
            json_output_put_unsigned(out, behind_name[j]);
        }
        put_raw(out, "]");
    }
    put_raw(out, "]");
    put_key(out, "events");
    put_raw(out, "{");
    /* Rows of one block lie together mostly: each is opened once per run of them. */
    struct buffer *bodies = NULL;
    struct block_view block = {.spans = 0};
    uint32_t opened = 0;
    uint64_t unlooked = 0; /* bytes since the last look */
    bool is_first = true;
    for (uint64_t i = from; i < end; i++) {
        const struct view_row *row = &view->rows[i];
        if (row->events == 0)
            continue;
        if (bodies == NULL || opened != row->block) {
            buffer_unref(bodies);
            if (explore_is_over(&asking->limit)) {
                bodies = NULL;
                break; /* the rest goes without marks */
            }
            bodies = open_bodies(asking, row->block, &block);
            opened = row->block;
        }
        const struct span_row *span =
            bodies != NULL ? row_of(asking, &block, view->number, row->span_id) : NULL;
        if (span == NULL)
            continue;
        /* Rows with one span id all show the events of the same span, however large it is. */
        unlooked += span->size;
        if (unlooked >= BYTES_PER_LOOK) {
            if (explore_is_over(&asking->limit))
                break;
            unlooked = 0;
        }
        if (!is_first)
            put_raw(out, ",");
        is_first = false;
        put_raw(out, "\"");
        json_output_put_unsigned(out, i);
        put_raw(out, "\":");
        put_events(asking, row, slice_of(bodies->data + span->offset, span->size));
    }
    buffer_unref(bodies);
    put_raw(out, "}}");
}

static uint8_t lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

/* Without regard to the case of ASCII letters; text is in lower case. */
static bool contains(struct slice in, const uint8_t *text, size_t size)
{
    uint8_t upper = text[0] >= 'a' && text[0] <= 'z' ? (uint8_t)(text[0] & ~0x20) : text[0];
    for (size_t i = 0; i + size <= in.size; i++) {
        if (in.data[i] != text[0] && in.data[i] != upper)
            continue;
        size_t j = 1;
        while (j < size && lower(in.data[i + j]) == text[j])
            j++;
        if (j == size)
            return true;
    }
    return false;
}

/* Looks at the bytes of the spans: what is text there is text in the attributes, events and
 * names. */
void answer_find(struct asking *asking)
{
    enum { TEXT_MAX = 256 };
    uint8_t text[TEXT_MAX];
    struct slice wanted = explore_query_get(asking->query, "q");
    uint64_t limit = asking_number(asking, "limit", FOUND_STANDARD, FOUND_MAX);
    if (asking->status == 200 && (wanted.size == 0 || wanted.size > TEXT_MAX))
        asking_fail(asking, 400, "q: expected a text of 1 to 256 bytes");
    struct trace_view *view = asking->status == 200 ? open_view(asking) : NULL;
    if (view == NULL)
        return;
    for (size_t i = 0; i < wanted.size; i++)
        text[i] = lower(wanted.data[i]);
    struct trace_store *store = &asking->data->traces;
    const struct trace_record *record = trace_store_record(store, view->number);
    struct json_output *out = &asking->out;
    uint64_t *found = mem_try_zalloc((view->count / 64 + 1) * sizeof(uint64_t));
    if (found == NULL) {
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
        return;
    }
    size_t blocks = trace_store_blocks(store);
    bool is_cut = false;
    uint64_t unlooked = 0; /* bytes since the last look */
    for (size_t at = trace_store_block_of(store, record->first_block); at < blocks && !is_cut;
         at++) {
        struct block_view block = trace_store_block(store, at);
        uint32_t first, end;
        if (!block_view_find(&block, view->number, &first, &end))
            continue;
        is_cut = explore_is_over(&asking->limit);
        if (is_cut)
            break;
        if (!trace_store_rows(store, &block, asking->data->rows))
            continue;
        struct buffer *bodies = trace_store_bodies(store, &block);
        for (uint32_t i = first; bodies != NULL && i < end; i++) {
            const struct span_row *row = &asking->data->rows[i];
            struct slice service = string_table_at(&store->strings, row->service);
            /* Text that nearly matches everywhere takes up to TEXT_MAX steps for each byte. */
            unlooked += row->size + service.size;
            is_cut = unlooked >= BYTES_PER_LOOK && explore_is_over(&asking->limit);
            if (is_cut)
                break;
            unlooked = unlooked >= BYTES_PER_LOOK ? 0 : unlooked;
            if (!contains(slice_of(bodies->data + row->offset, row->size), text, wanted.size) &&
                !contains(service, text, wanted.size))
                continue;
            uint32_t place = trace_view_find(view, row->span_id);
            if (place != VIEW_NONE)
                found[place / 64] |= UINT64_C(1) << place % 64;
        }
        buffer_unref(bodies);
    }
    uint64_t count = 0;
    put_raw(out, "{\"rows\":[");
    for (uint32_t i = 0; i < view->count; i++) {
        if ((found[i / 64] >> i % 64 & 1) == 0 || count++ >= limit)
            continue;
        put_comma(out);
        json_output_put_unsigned(out, i);
    }
    put_raw(out, "]");
    put_bool(out, "more", count > limit || is_cut);
    put_raw(out, "}");
    mem_free(found);
}

static void put_message(struct asking *asking, const char *name, const struct otlp_message *message,
                        struct slice encoded)
{
    struct json_output *out = &asking->out;
    put_key(out, name);
    struct buffer *json = json_write(message, encoded, asking->data->settings->budget);
    if (json != NULL)
        json_output_put(out, json->data, json->size);
    else
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
    buffer_unref(json);
}

/* The last field of that number; no data: absent. */
static struct slice field_of(struct slice message, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct slice found = slice_of("", 0);
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            found = field.bytes;
    return found;
}

void answer_span(struct asking *asking)
{
    uint64_t span_id = 0;
    struct json_output *out = &asking->out;
    if (!explore_read_hex(asking->part, (uint8_t *)&span_id, sizeof(span_id))) {
        asking_fail(asking, 400, "a span id has 16 hexadecimal digits");
        return;
    }
    struct trace_view *view = open_view(asking);
    if (view == NULL)
        return;
    uint32_t place = trace_view_find(view, span_id);
    struct block_view block;
    struct buffer *bodies =
        place != VIEW_NONE ? open_bodies(asking, view->rows[place].block, &block) : NULL;
    const struct span_row *row =
        bodies != NULL ? row_of(asking, &block, view->number, span_id) : NULL;
    if (row == NULL) {
        buffer_unref(bodies);
        asking_fail(asking, 404, "the trace has no such span");
        return;
    }
    const struct otlp_message *resource_spans = otlp_request(TRACES)->fields[1].message;
    const struct otlp_message *scope_spans = resource_spans->fields[2].message;
    const struct otlp_message *span = scope_spans->fields[2].message;
    struct slice all = buffer_slice(bodies);
    struct span_context context =
        trace_store_context(&asking->data->traces, &block, all, row->context);
    const struct view_row *drawn = &view->rows[place];
    put_raw(out, "{");
    put_message(asking, "span", span, slice_of(all.data + row->offset, row->size));
    put_message(asking, "resource", &otlp_resource, field_of(context.resource, 1));
    put_message(asking, "scope", scope_spans->fields[1].message, field_of(context.scope, 1));
    put_unsigned(out, "row", place);
    /* What is not on the CPU and not in children is unexplained; with several threads more may be
     * on the CPU than the span itself lasts. */
    uint64_t on_cpu = drawn->cpu_ns < drawn->self_ns ? drawn->cpu_ns : drawn->self_ns;
    put_key(out, "bar");
    put_raw(out, "{");
    put_unsigned(out, "onCpu", on_cpu);
    put_unsigned(out, "children", drawn->duration_ns - drawn->self_ns);
    put_unsigned(out, "unexplained", drawn->self_ns - on_cpu);
    put_raw(out, "}");
    put_key(out, "profile");
    put_raw(out, "{");
    put_unsigned(out, "samples", drawn->samples);
    struct explore_selection selection = {.mode = SELECT_ALL};
    struct explore_query only = {.count = 3};
    char texts[2][33];
    hex_write(trace_store_record(&asking->data->traces, view->number)->id, 16, texts[0]);
    hex_write(&span_id, sizeof(span_id), texts[1]);
    only.pairs[0] = (struct explore_pair){slice_of_text("trace"), slice_of(texts[0], 32)};
    only.pairs[1] = (struct explore_pair){slice_of_text("span"), slice_of(texts[1], 16)};
    only.pairs[2] = (struct explore_pair){slice_of_text("subtree"), slice_of_text("0")};
    if (explore_selection_read(asking, &only, &selection)) {
        selection.longest_ns = drawn->duration_ns;
        put_profiles(asking, &selection, drawn->samples);
        explore_selection_fini(&selection);
    }
    put_raw(out, "}}");
    buffer_unref(bodies);
}
