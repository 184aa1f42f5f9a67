/* SPDX-License-Identifier: Apache-2.0 */
/* Getters and setters that paths of several contexts share: struct ottl_path_row says which field
 * they are about. Each fails with the run's error set. */
#pragma once

#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_record.h"

#define OTTL_ACCESSOR(name)                                                                        \
    bool ottl_get_##name(struct ottl_run *run, const struct ottl_path *path,                       \
                         struct ottl_value *ret);                                                  \
    bool ottl_set_##name(struct ottl_run *run, const struct ottl_path *path,                       \
                         const struct ottl_value *value)

/* The attributes as a map, or one by the path's keys. */
OTTL_ACCESSOR(attributes);
/* A string field. */
OTTL_ACCESSOR(text);
/* uint32, as int. Set takes any int and cuts it to 32 bits. */
OTTL_ACCESSOR(uint32);
/* fixed32, of which set takes what fits. */
OTTL_ACCESSOR(fixed32);
/* The same, of which set cuts what does not fit. */
bool ottl_set_fixed32_cut(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value);
/* An enumeration: int32. */
OTTL_ACCESSOR(enumeration);
/* fixed64 nanoseconds since 1970, as int and as time. */
OTTL_ACCESSOR(nanoseconds);
OTTL_ACCESSOR(moment);
/* Ids, which are zero when they are absent, and as hexadecimal text. */
OTTL_ACCESSOR(trace_id);
OTTL_ACCESSOR(trace_id_text);
OTTL_ACCESSOR(span_id);
OTTL_ACCESSOR(span_id_text);

#undef OTTL_ACCESSOR

/* The bytes of an id in hexadecimal text, in the run's memory; name is for errors. */
bool ottl_parse_id(struct ottl_run *run, const struct ottl_value *value, size_t size,
                   const char *name, struct slice *ret);
/* Finds the record's fields. NULL: memory is refused, and the error is set. */
struct ottl_record *ottl_record_found(struct ottl_run *run, struct ottl_record *record)
    __attribute__((noinline));
/* The record of a path, its fields found. NULL: the same. */
static inline struct ottl_record *ottl_record_of(struct ottl_run *run, const struct ottl_path *path)
{
    struct ottl_record *record = run->records[path->context];
    return record->is_scanned ? record : ottl_record_found(run, record);
}
/* Go's ExpectType: the error says both types. */
bool ottl_expect(struct ottl_run *run, const struct ottl_value *value, enum ottl_type type,
                 const char *type_name);
/* The same for a message of that kind. */
bool ottl_expect_message(struct ottl_run *run, const struct ottl_value *value,
                         enum ottl_message_kind kind);
/* Counts that a message in the record has been read field by field, if the record is around that of
 * the statement. */
void ottl_work_fields(struct ottl_run *run, const struct ottl_record *record, struct slice message);
/* How often the record's message has the field. What repeats can only be set to itself: there is no
 * other value of its kind. */
int64_t ottl_count_field(struct ottl_run *run, const struct ottl_record *record, unsigned field);
/* The content of a field of bytes, its last one; no bytes when it is absent. */
static inline struct slice ottl_field_bytes(const struct ottl_record *record, unsigned field)
{
    return (record->present >> field & 1) != 0 ? record->fields[field].bytes : slice_of(NULL, 0);
}
static inline uint64_t ottl_field_number(const struct ottl_record *record, unsigned field)
{
    return (record->present >> field & 1) != 0 ? record->fields[field].number : 0;
}
/* Sets a field of bytes from whatever memory. */
bool ottl_put_bytes(struct ottl_run *run, struct ottl_record *record, unsigned field,
                    struct slice bytes);
