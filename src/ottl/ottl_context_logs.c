/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of log records (contrib 0.155, pkg/ottl/contexts/ottllog). Runs on the processor's thread.
 */
#include "src/ottl/ottl_context_logs.h"

#include "src/base/arena.h"
#include "src/otlp/json/value_string.h"
#include "src/ottl/ottl_access.h"

/* Of LogRecord. */
enum {
    TIME = 1,
    SEVERITY_NUMBER = 2,
    SEVERITY_TEXT = 3,
    BODY = 5,
    ATTRIBUTES = 6,
    DROPPED_ATTRIBUTES = 7,
    FLAGS = 8,
    TRACE_ID = 9,
    SPAN_ID = 10,
    OBSERVED_TIME = 11,
    EVENT_NAME = 12,
};

/* The body's value, decoded. NULL: no memory. */
static struct ottl_value *body_of(struct ottl_run *run, const struct ottl_path *path,
                                  struct ottl_record **ret_record)
{
    struct ottl_record *record = run->records[path->context];
    struct ottl_value value;
    *ret_record = record;
    if (!ottl_record_load_body(record) || !ottl_list_read(&record->body, 0, &value)) {
        ottl_run_no_memory(run);
        return NULL;
    }
    return &record->body.items[0];
}

static bool check_indexed(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *body)
{
    return path->keys_count == 0 || body->type == OTTL_MAP || body->type == OTTL_LIST ||
           ottl_run_fail(run, "log bodies of type %s cannot be indexed", ottl_type_name(body));
}

static bool get_body(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct ottl_record *record;
    struct ottl_value *body = body_of(run, path, &record);
    return body != NULL && check_indexed(run, path, body) &&
           ottl_select(run, body, path->keys, path->keys_count, ret);
}

static bool set_body(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    struct ottl_record *record;
    struct ottl_value *body = body_of(run, path, &record);
    return body != NULL && check_indexed(run, path, body) &&
           ottl_assign_at(run, &record->body.base, body, path->keys, path->keys_count, value);
}

static bool keep_text(struct ottl_run *run, struct slice text, struct ottl_value *ret)
{
    uint8_t *copy = ottl_memory_room(run->memory, text.size);
    if (copy == NULL)
        return ottl_run_no_memory(run);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    *ret = ottl_string(slice_of(copy, text.size));
    return true;
}

static bool get_body_text(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    struct ottl_record *record;
    const struct ottl_value *body = body_of(run, path, &record);
    if (body == NULL)
        return false;
    if (body->type == OTTL_STRING) {
        *ret = *body;
        return true;
    }
    size_t size = ottl_value_encoded_size(body);
    uint8_t *room = ottl_memory_room(run->memory, size);
    if (room == NULL)
        return ottl_run_no_memory(run);
    ottl_value_encode(body, room);
    struct arena arena;
    struct slice text;
    arena_init_charged(&arena, SIZE_MAX, run->memory->budget);
    const bool is_done = value_to_string(&arena, slice_of(room, size), &text)
                             ? keep_text(run, text, ret)
                             : ottl_run_no_budget(run, arena.refused_bytes);
    arena_clear(&arena);
    return is_done;
}

static bool set_body_text(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    struct ottl_record *record;
    struct ottl_value *body;
    return ottl_expect(run, value, OTTL_STRING, "string") &&
           (body = body_of(run, path, &record)) != NULL &&
           ottl_assign(run, &record->body.base, body, value);
}

static const struct ottl_path_row log_rows[] = {
    {"time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, TIME, false},
    {"time", ottl_get_moment, ottl_set_moment, TIME, false},
    {"observed_time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, OBSERVED_TIME, false},
    {"observed_time", ottl_get_moment, ottl_set_moment, OBSERVED_TIME, false},
    {"severity_number", ottl_get_enumeration, ottl_set_enumeration, SEVERITY_NUMBER, false},
    {"severity_text", ottl_get_text, ottl_set_text, SEVERITY_TEXT, false},
    {"body", get_body, set_body, BODY, true},
    {"body.string", get_body_text, set_body_text, BODY, false},
    {"attributes", ottl_get_attributes, ottl_set_attributes, ATTRIBUTES, true},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, DROPPED_ATTRIBUTES, false},
    {"flags", ottl_get_fixed32, ottl_set_fixed32_cut, FLAGS, false},
    {"trace_id", ottl_get_trace_id, ottl_set_trace_id, TRACE_ID, false},
    {"trace_id.string", ottl_get_trace_id_text, ottl_set_trace_id_text, TRACE_ID, false},
    {"span_id", ottl_get_span_id, ottl_set_span_id, SPAN_ID, false},
    {"span_id.string", ottl_get_span_id_text, ottl_set_span_id_text, SPAN_ID, false},
    {"event_name", ottl_get_text, ottl_set_text, EVENT_NAME, false},
    {.name = NULL},
};

static const struct ottl_enum log_enums[] = {
    {"SEVERITY_NUMBER_UNSPECIFIED", 0}, {"SEVERITY_NUMBER_TRACE", 1},
    {"SEVERITY_NUMBER_TRACE2", 2},      {"SEVERITY_NUMBER_TRACE3", 3},
    {"SEVERITY_NUMBER_TRACE4", 4},      {"SEVERITY_NUMBER_DEBUG", 5},
    {"SEVERITY_NUMBER_DEBUG2", 6},      {"SEVERITY_NUMBER_DEBUG3", 7},
    {"SEVERITY_NUMBER_DEBUG4", 8},      {"SEVERITY_NUMBER_INFO", 9},
    {"SEVERITY_NUMBER_INFO2", 10},      {"SEVERITY_NUMBER_INFO3", 11},
    {"SEVERITY_NUMBER_INFO4", 12},      {"SEVERITY_NUMBER_WARN", 13},
    {"SEVERITY_NUMBER_WARN2", 14},      {"SEVERITY_NUMBER_WARN3", 15},
    {"SEVERITY_NUMBER_WARN4", 16},      {"SEVERITY_NUMBER_ERROR", 17},
    {"SEVERITY_NUMBER_ERROR2", 18},     {"SEVERITY_NUMBER_ERROR3", 19},
    {"SEVERITY_NUMBER_ERROR4", 20},     {"SEVERITY_NUMBER_FATAL", 21},
    {"SEVERITY_NUMBER_FATAL2", 22},     {"SEVERITY_NUMBER_FATAL3", 23},
    {"SEVERITY_NUMBER_FATAL4", 24},     {.name = NULL},
};

const struct ottl_context_type ottl_log_type = {
    .name = "log",
    .reaches = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |
               OTTL_CONTEXT_BIT(OTTL_LOG) | OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = log_rows,
    .enums = log_enums,
    .attributes = ATTRIBUTES,
    .body = BODY,
};
