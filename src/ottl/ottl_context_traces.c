/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of spans and their events (contrib 0.155, pkg/ottl/contexts, ottlspan and ottlspanevent).
 * Runs on the processor's thread. */
#include "src/ottl/ottl_context_traces.h"

#include "src/otlp/wire.h"
#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_trace_state.h"

/* Of Span. */
enum {
    TRACE_ID = 1,
    SPAN_ID = 2,
    TRACE_STATE = 3,
    PARENT_SPAN_ID = 4,
    NAME = 5,
    KIND = 6,
    START = 7,
    END = 8,
    ATTRIBUTES = 9,
    DROPPED_ATTRIBUTES = 10,
    EVENTS = 11,
    DROPPED_EVENTS = 12,
    LINKS = 13,
    DROPPED_LINKS = 14,
    STATUS = 15,
    FLAGS = 16,
};
/* Of Status. */
enum { STATUS_MESSAGE = 2, STATUS_CODE_FIELD = 3, STATUS_BYTES_MAX = 32 };
/* Of Span.Event. */
enum { EVENT_TIME = 1, EVENT_NAME = 2, EVENT_ATTRIBUTES = 3, EVENT_DROPPED = 4 };

enum { KINDS = 6 };
static const char *const kind_names[KINDS] = {"Unspecified", "Internal", "Server",
                                              "Client",      "Producer", "Consumer"};
static const char *const old_kind_names[KINDS] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                                  "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                                  "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};

static bool get_kind_name(struct ottl_run *run, const struct ottl_path *path,
                          const char *const kinds[KINDS], struct ottl_value *ret)
{
    const struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL)
        return false;
    const int32_t kind = (int32_t)ottl_field_number(record, KIND);
    *ret = ottl_text(kind >= 0 && kind < KINDS ? kinds[kind] : "");
    return true;
}

static bool set_kind_name(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value, const char *const kinds[KINDS],
                          const char *what)
{
    if (!ottl_expect(run, value, OTTL_STRING, "string"))
        return false;
    for (int64_t i = 0; i < KINDS; i++) {
        const struct ottl_value kind = ottl_int(i);
        if (slice_equal_text(ottl_slice(value), kinds[i]))
            return ottl_set_enumeration(run, path, &kind);
    }
    return ottl_run_fail(run, "unknown span kind %s, %.*s", what, (int)value->size,
                         (const char *)value->bytes);
}

static bool get_kind_text(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    return get_kind_name(run, path, kind_names, ret);
}

static bool set_kind_text(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    return set_kind_name(run, path, value, kind_names, "string");
}

static bool get_old_kind_text(struct ottl_run *run, const struct ottl_path *path,
                              struct ottl_value *ret)
{
    return get_kind_name(run, path, old_kind_names, ret);
}

static bool set_old_kind_text(struct ottl_run *run, const struct ottl_path *path,
                              const struct ottl_value *value)
{
    return set_kind_name(run, path, value, old_kind_names, "deprecated string");
}

struct status {
    struct slice message;
    uint64_t code;
    struct slice content;
};

/* Of the field's last occurrence. */
static bool read_status(struct ottl_run *run, const struct ottl_path *path,
                        struct ottl_record **ret_record, struct status *ret)
{
    *ret = (struct status){.code = 0};
    *ret_record = ottl_record_of(run, path);
    if (*ret_record == NULL)
        return false;
    ret->content = ottl_field_bytes(*ret_record, STATUS);
    ottl_work_fields(run, *ret_record, ret->content);
    struct wire_reader reader = wire_reader_of(ret->content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == STATUS_MESSAGE)
            ret->message = field.bytes;
        else if (field.number == STATUS_CODE_FIELD)
            ret->code = field.number_value;
    }
    return true;
}

/* Writes the status anew. Fields that nobody knows are dropped, as Go drops them. */
static bool write_status(struct ottl_run *run, struct ottl_record *record,
                         const struct status *status)
{
    size_t room_bytes = STATUS_BYTES_MAX + status->message.size;
    uint8_t *room = ottl_memory_room(&record->memory, room_bytes);
    if (room == NULL)
        return ottl_run_no_memory(run);
    struct wire_writer writer = wire_writer_of(room, room_bytes);
    if (status->message.size > 0)
        wire_write_bytes(&writer, STATUS_MESSAGE, status->message);
    if (status->code != 0)
        wire_write_number(&writer, STATUS_CODE_FIELD, status->code);
    return ottl_put_bytes(run, record, STATUS, wire_written(&writer));
}

static bool get_status(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct ottl_record *record;
    struct status status;
    if (!read_status(run, path, &record, &status))
        return false;
    *ret = ottl_message(OTTL_STATUS, status.content);
    return true;
}

static bool set_status(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    return record != NULL && ottl_expect_message(run, value, OTTL_STATUS) &&
           ottl_put_bytes(run, record, STATUS, ottl_slice(value));
}

static bool get_status_code(struct ottl_run *run, const struct ottl_path *path,
                            struct ottl_value *ret)
{
    struct ottl_record *record;
    struct status status;
    if (!read_status(run, path, &record, &status))
        return false;
    *ret = ottl_int((int32_t)status.code);
    return true;
}

static bool set_status_code(struct ottl_run *run, const struct ottl_path *path,
                            const struct ottl_value *value)
{
    struct ottl_record *record;
    struct status status;
    if (!ottl_expect(run, value, OTTL_INT, "int64") || !read_status(run, path, &record, &status))
        return false;
    status.code = (uint64_t)(int64_t)(int32_t)value->integer;
    return write_status(run, record, &status);
}

static bool get_status_message(struct ottl_run *run, const struct ottl_path *path,
                               struct ottl_value *ret)
{
    struct ottl_record *record;
    struct status status;
    if (!read_status(run, path, &record, &status))
        return false;
    *ret = ottl_string(status.message);
    return true;
}

static bool set_status_message(struct ottl_run *run, const struct ottl_path *path,
                               const struct ottl_value *value)
{
    struct ottl_record *record;
    struct status status;
    if (!ottl_expect(run, value, OTTL_STRING, "string") ||
        !read_status(run, path, &record, &status))
        return false;
    status.message = ottl_slice(value);
    return write_status(run, record, &status);
}

static bool get_events(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    *ret = ottl_messages(OTTL_EVENTS, ottl_count_field(run, run->records[path->context], EVENTS));
    return true;
}

static bool set_events(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    (void)path;
    return ottl_expect_message(run, value, OTTL_EVENTS);
}

static bool get_links(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    *ret = ottl_messages(OTTL_LINKS, ottl_count_field(run, run->records[path->context], LINKS));
    return true;
}

static bool set_links(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    (void)path;
    return ottl_expect_message(run, value, OTTL_LINKS);
}

static bool trace_state_key(struct ottl_run *run, const struct ottl_path *path, struct slice *ret)
{
    *ret = path->keys[0].text;
    return path->keys[0].is_text ||
           ottl_run_fail(run, "trace_state indexing type must be a string");
}

/* The text, or the value of one key: nil if the text is malformed. */
static bool get_trace_state(struct ottl_run *run, const struct ottl_path *path,
                            struct ottl_value *ret)
{
    struct slice key;
    struct slice value;
    if (path->keys_count == 0)
        return ottl_get_text(run, path, ret);
    struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL)
        return false;
    struct slice text = ottl_field_bytes(record, TRACE_STATE);
    if (ottl_run_is_around(run, &record->memory))
        ottl_run_work(run, text.size);
    *ret = ottl_nil();
    if (!ottl_trace_state_get(text, slice_of(NULL, 0), &value))
        return true;
    if (!trace_state_key(run, path, &key))
        return false;
    ottl_trace_state_get(text, key, &value);
    *ret = ottl_string(value);
    return true;
}

/* What is malformed stays, and takes nothing. */
static bool set_trace_state(struct ottl_run *run, const struct ottl_path *path,
                            const struct ottl_value *value)
{
    struct slice key;
    struct slice written;
    if (path->keys_count == 0)
        return ottl_set_text(run, path, value);
    struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL || !ottl_expect(run, value, OTTL_STRING, "string"))
        return false;
    struct slice text = ottl_field_bytes(record, TRACE_STATE);
    if (!ottl_trace_state_get(text, slice_of(NULL, 0), &written))
        return true;
    if (!trace_state_key(run, path, &key))
        return false;
    uint8_t *room = ottl_memory_room(run->memory, text.size + key.size + value->size + 2);
    if (room == NULL)
        return ottl_run_no_memory(run);
    return !ottl_trace_state_put(text, key, ottl_slice(value), room, &written) ||
           ottl_put_bytes(run, record, TRACE_STATE, written);
}

static const struct ottl_path_row span_rows[] = {
    {"trace_id", ottl_get_trace_id, ottl_set_trace_id, TRACE_ID, false},
    {"trace_id.string", ottl_get_trace_id_text, ottl_set_trace_id_text, TRACE_ID, false},
    {"span_id", ottl_get_span_id, ottl_set_span_id, SPAN_ID, false},
    {"span_id.string", ottl_get_span_id_text, ottl_set_span_id_text, SPAN_ID, false},
    {"trace_state", get_trace_state, set_trace_state, TRACE_STATE, OTTL_ONE_KEY},
    {"parent_span_id", ottl_get_span_id, ottl_set_span_id, PARENT_SPAN_ID, false},
    {"parent_span_id.string", ottl_get_span_id_text, ottl_set_span_id_text, PARENT_SPAN_ID, false},
    {"name", ottl_get_text, ottl_set_text, NAME, false},
    {"kind", ottl_get_enumeration, ottl_set_enumeration, KIND, false},
    {"kind.string", get_kind_text, set_kind_text, KIND, false},
    {"kind.deprecated_string", get_old_kind_text, set_old_kind_text, KIND, false},
    {"start_time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, START, false},
    {"end_time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, END, false},
    {"start_time", ottl_get_moment, ottl_set_moment, START, false},
    {"end_time", ottl_get_moment, ottl_set_moment, END, false},
    {"attributes", ottl_get_attributes, ottl_set_attributes, ATTRIBUTES, true},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, DROPPED_ATTRIBUTES, false},
    {"events", get_events, set_events, OTTL_NO_FIELD, false},
    {"dropped_events_count", ottl_get_uint32, ottl_set_uint32, DROPPED_EVENTS, false},
    {"links", get_links, set_links, OTTL_NO_FIELD, false},
    {"dropped_links_count", ottl_get_uint32, ottl_set_uint32, DROPPED_LINKS, false},
    {"status", get_status, set_status, STATUS, false},
    {"status.code", get_status_code, set_status_code, STATUS, false},
    {"status.message", get_status_message, set_status_message, STATUS, false},
    {"flags", ottl_get_fixed32, ottl_set_fixed32, FLAGS, false},
    {.name = NULL},
};

static const struct ottl_enum span_enums[] = {
    {"SPAN_KIND_UNSPECIFIED", 0}, {"SPAN_KIND_INTERNAL", 1},
    {"SPAN_KIND_SERVER", 2},      {"SPAN_KIND_CLIENT", 3},
    {"SPAN_KIND_PRODUCER", 4},    {"SPAN_KIND_CONSUMER", 5},
    {"STATUS_CODE_UNSET", 0},     {"STATUS_CODE_OK", 1},
    {"STATUS_CODE_ERROR", 2},     {.name = NULL},
};

const struct ottl_context_type ottl_span_type = {
    .name = "span",
    .reaches = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |
               OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = span_rows,
    .enums = span_enums,
    .attributes = ATTRIBUTES,
};

static const struct ottl_path_row event_rows[] = {
    {"time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, EVENT_TIME, false},
    {"time", ottl_get_moment, ottl_set_moment, EVENT_TIME, false},
    {"name", ottl_get_text, ottl_set_text, EVENT_NAME, false},
    {"attributes", ottl_get_attributes, ottl_set_attributes, EVENT_ATTRIBUTES, true},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, EVENT_DROPPED, false},
    {.name = NULL},
};

const struct ottl_context_type ottl_span_event_type = {
    .name = "spanevent",
    .reaches = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |
               OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_SPAN_EVENT) |
               OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = event_rows,
    .enums = span_enums,
    .attributes = EVENT_ATTRIBUTES,
};
