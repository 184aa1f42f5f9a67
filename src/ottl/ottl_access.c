/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a field is what Go's pdata would give; what is set is cut as Go's conversions cut
 * it. Runs on the processor's thread. */
#include "src/ottl/ottl_access.h"

#include <assert.h>

#include "src/base/hex.h"
#include "src/otlp/wire.h"

struct ottl_record *ottl_record_found(struct ottl_run *run, struct ottl_record *record)
{
    if (ottl_record_scan(record))
        return record;
    ottl_run_no_memory(run);
    return NULL;
}

typedef bool (*get_fn)(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret);

/* Finds the record's fields and goes back to a getter, which so has nothing to keep meanwhile. */
static __attribute__((noinline)) bool get_scanned(struct ottl_run *run,
                                                  const struct ottl_path *path,
                                                  struct ottl_value *ret, get_fn get)
{
    return ottl_record_of(run, path) != NULL && get(run, path, ret);
}

bool ottl_expect(struct ottl_run *run, const struct ottl_value *value, enum ottl_type type,
                 const char *type_name)
{
    return value->type == type ||
           ottl_run_fail(run, "expects %s but got %s", type_name, ottl_type_name(value));
}

bool ottl_expect_message(struct ottl_run *run, const struct ottl_value *value,
                         enum ottl_message_kind kind)
{
    const char *name = ottl_message_name(kind);
    return (value->type == OTTL_MESSAGE && strcmp(ottl_type_name(value), name) == 0) ||
           ottl_run_fail(run, "expects %s but got %s", name, ottl_type_name(value));
}

void ottl_work_fields(struct ottl_run *run, const struct ottl_record *record, struct slice message)
{
    enum { FIELD_FACTOR = 2 }; /* one takes longer than its few bytes */
    if (ottl_run_is_around(run, &record->memory))
        ottl_run_work(run, FIELD_FACTOR * message.size);
}

int64_t ottl_count_field(struct ottl_run *run, const struct ottl_record *record, unsigned field)
{
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field found;
    int64_t count = 0;
    ottl_work_fields(run, record, record->bytes);
    while (wire_next_field(&reader, &found))
        count += found.number == field;
    return count;
}

bool ottl_put_bytes(struct ottl_run *run, struct ottl_record *record, unsigned field,
                    struct slice bytes)
{
    return ottl_record_set_bytes(record, field, bytes) || ottl_run_no_memory(run);
}

bool ottl_get_attributes(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct ottl_record *record = run->records[path->context];
    if (path->slot >= 0 ? !ottl_record_load_slots(record) : !ottl_record_load(record))
        return ottl_run_no_memory(run);
    if (path->keys_count > 0)
        return ottl_map_select(run, &record->attributes, path, ret);
    *ret = ottl_map_value(&record->attributes);
    return true;
}

bool ottl_set_attributes(struct ottl_run *run, const struct ottl_path *path,
                         const struct ottl_value *value)
{
    struct ottl_record *record = run->records[path->context];
    if (path->slot >= 0 ? !ottl_record_load_slots(record) : !ottl_record_load(record))
        return ottl_run_no_memory(run);
    if (path->keys_count > 0)
        return ottl_map_assign(run, &record->attributes, path, value);
    if (value->type == OTTL_NIL)
        return true;
    if (value->type != OTTL_MAP)
        return ottl_run_fail(run, "unsupported type provided for setting a pcommon.Map: %s",
                             ottl_type_name(value));
    return ottl_map_copy(&record->attributes, value->map) || ottl_run_no_memory(run);
}

bool ottl_get_text(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_text);
    *ret = ottl_string(ottl_field_bytes(record, path->row->field));
    return true;
}

bool ottl_set_text(struct ottl_run *run, const struct ottl_path *path,
                   const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    return record != NULL && ottl_expect(run, value, OTTL_STRING, "string") &&
           ottl_put_bytes(run, record, path->row->field, ottl_slice(value));
}

static bool set_number(struct ottl_run *run, const struct ottl_path *path, enum wire_type wire,
                       uint64_t number)
{
    struct ottl_record *record = ottl_record_of(run, path);
    if (record != NULL)
        ottl_record_set_number(record, path->row->field, wire, number);
    return record != NULL;
}

bool ottl_get_uint32(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_uint32);
    const uint64_t number = ottl_field_number(record, path->row->field);
    *ret = ottl_int((int64_t)(uint32_t)number);
    return true;
}

bool ottl_set_uint32(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_number(run, path, WIRE_VARINT, (uint32_t)value->integer);
}

bool ottl_get_fixed32(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    return ottl_get_uint32(run, path, ret);
}

bool ottl_set_fixed32(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    if (!ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (value->integer < 0 || value->integer > UINT32_MAX)
        return ottl_run_fail(run, "value %lld is out of range for uint32",
                             (long long)value->integer);
    return set_number(run, path, WIRE_FIXED32, (uint64_t)value->integer);
}

bool ottl_set_fixed32_cut(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_number(run, path, WIRE_FIXED32, (uint32_t)value->integer);
}

bool ottl_get_enumeration(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_enumeration);
    const uint64_t number = ottl_field_number(record, path->row->field);
    *ret = ottl_int((int32_t)number);
    return true;
}

bool ottl_set_enumeration(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_number(run, path, WIRE_VARINT, (uint64_t)(int64_t)(int32_t)value->integer);
}

bool ottl_get_nanoseconds(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_nanoseconds);
    const uint64_t number = ottl_field_number(record, path->row->field);
    *ret = ottl_int((int64_t)number);
    return true;
}

bool ottl_set_nanoseconds(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_number(run, path, WIRE_FIXED64, (uint64_t)value->integer);
}

enum { NANOSECONDS = 1000000000 };

bool ottl_get_moment(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL)
        return false;
    const uint64_t number = ottl_field_number(record, path->row->field);
    int64_t seconds = (int64_t)number / NANOSECONDS;
    int64_t rest = (int64_t)number % NANOSECONDS;
    if (rest < 0) {
        rest += NANOSECONDS;
        seconds--;
    }
    *ret = ottl_time(seconds, (uint32_t)rest);
    return true;
}

bool ottl_set_moment(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_TIME, "time.Time") &&
           set_number(run, path, WIRE_FIXED64,
                      (uint64_t)value->integer * NANOSECONDS + value->size);
}

static inline struct ottl_value id_of(const struct ottl_record *record,
                                      const struct ottl_path *path, enum ottl_type type,
                                      size_t size)
{
    static const uint8_t zero[OTTL_TRACE_ID_BYTES];
    const struct slice bytes = ottl_field_bytes(record, path->row->field);
    return ottl_bytes_of(type, bytes.size == size ? bytes : slice_of(zero, size));
}

/* An id of zeros is absent on the wire. */
static bool set_id(struct ottl_run *run, const struct ottl_path *path, struct slice bytes)
{
    struct ottl_record *record = ottl_record_of(run, path);
    bool is_zero = true;
    for (size_t i = 0; i < bytes.size && is_zero; i++)
        is_zero = bytes.data[i] == 0;
    return record != NULL &&
           ottl_put_bytes(run, record, path->row->field, is_zero ? slice_of(NULL, 0) : bytes);
}

static bool get_id_text(struct ottl_run *run, const struct ottl_path *path, enum ottl_type type,
                        size_t size, struct ottl_value *ret)
{
    uint8_t *room = ottl_memory_room(run->memory, 2 * size);
    if (room == NULL)
        return ottl_run_no_memory(run);
    const struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL)
        return false;
    const struct ottl_value id = id_of(record, path, type, size);
    *ret = ottl_string(hex_write(id.bytes, size, room));
    return true;
}

bool ottl_parse_id(struct ottl_run *run, const struct ottl_value *value, size_t size,
                   const char *name, struct slice *ret)
{
    if (!ottl_expect(run, value, OTTL_STRING, "string"))
        return false;
    if (value->size / 2 != size)
        return ottl_run_fail(run, "%s ids must be %zu hex characters", name, 2 * size);
    uint8_t *room = ottl_memory_room(run->memory, size);
    if (room == NULL)
        return ottl_run_no_memory(run);
    for (size_t i = 0; i < value->size; i++)
        if (hex_digit(value->bytes[i]) > 15)
            return ottl_run_fail(run, "encoding/hex: invalid byte: U+%04X", value->bytes[i]);
    if (value->size % 2 != 0)
        return ottl_run_fail(run, "encoding/hex: odd length hex string");
    for (size_t i = 0; i < size; i++)
        room[i] =
            (uint8_t)(hex_digit(value->bytes[2 * i]) << 4 | hex_digit(value->bytes[2 * i + 1]));
    *ret = slice_of(room, size);
    return true;
}

static bool set_id_text(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value, size_t size, const char *name)
{
    struct slice id;
    return ottl_parse_id(run, value, size, name, &id) && set_id(run, path, id);
}

bool ottl_get_trace_id(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_trace_id);
    *ret = id_of(record, path, OTTL_TRACE_ID, OTTL_TRACE_ID_BYTES);
    return true;
}

bool ottl_set_trace_id(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_TRACE_ID, "pcommon.TraceID") &&
           set_id(run, path, ottl_slice(value));
}

bool ottl_get_trace_id_text(struct ottl_run *run, const struct ottl_path *path,
                            struct ottl_value *ret)
{
    return get_id_text(run, path, OTTL_TRACE_ID, OTTL_TRACE_ID_BYTES, ret);
}

bool ottl_set_trace_id_text(struct ottl_run *run, const struct ottl_path *path,
                            const struct ottl_value *value)
{
    return set_id_text(run, path, value, OTTL_TRACE_ID_BYTES, "trace");
}

bool ottl_get_span_id(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned)
        return get_scanned(run, path, ret, ottl_get_span_id);
    *ret = id_of(record, path, OTTL_SPAN_ID, OTTL_SPAN_ID_BYTES);
    return true;
}

bool ottl_set_span_id(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_SPAN_ID, "pcommon.SpanID") &&
           set_id(run, path, ottl_slice(value));
}

bool ottl_get_span_id_text(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_value *ret)
{
    return get_id_text(run, path, OTTL_SPAN_ID, OTTL_SPAN_ID_BYTES, ret);
}

bool ottl_set_span_id_text(struct ottl_run *run, const struct ottl_path *path,
                           const struct ottl_value *value)
{
    return set_id_text(run, path, value, OTTL_SPAN_ID_BYTES, "span");
}
