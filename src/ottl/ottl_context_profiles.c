/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of profiles and their samples (contrib 0.155, pkg/ottl/contexts, ottlprofile and
 * ottlprofilesample). Attributes and names are indices into the request's dictionary, so attributes
 * are given as copies, and set by entries of the dictionary that are appended if need be. Runs on
 * the processor's thread. */
#include "src/ottl/ottl_context_profiles.h"

#include "src/otlp/wire.h"
#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_dictionary.h"
#include "src/ottl/ottl_numbers.h"

/* Of Profile. */
enum {
    SAMPLE_TYPE = 1,
    SAMPLES = 2,
    TIME = 3,
    DURATION = 4,
    PERIOD_TYPE = 5,
    PERIOD = 6,
    PROFILE_ID = 7,
    DROPPED_ATTRIBUTES = 8,
    PAYLOAD_FORMAT = 9,
    PAYLOAD = 10,
    PROFILE_ATTRIBUTES = 11,
};
/* Of Sample. */
enum { SAMPLE_ATTRIBUTES = 2, LINK = 3, VALUES = 4, TIMESTAMPS = 5 };
/* Of ValueType. */
enum { TYPE = 1, UNIT = 2, VALUE_TYPE_BYTES_MAX = 32 };
enum { NANOSECONDS = 1000000000 };

/* The dictionary, read. NULL: memory is refused. */
static struct ottl_dictionary *dictionary_of(struct ottl_run *run)
{
    if (ottl_dictionary_read(run->dictionary))
        return run->dictionary;
    ottl_run_no_memory(run);
    return NULL;
}

/* Attributes. */

static unsigned attributes_field(const struct ottl_path *path)
{
    return path->context == OTTL_PROFILE ? PROFILE_ATTRIBUTES : SAMPLE_ATTRIBUTES;
}

static bool read_indices(struct ottl_run *run, const struct ottl_path *path,
                         struct ottl_record **ret_record, struct ottl_list **ret)
{
    enum { INDEX_BYTES = 192 }; /* one is read, looked up, and maybe written again */
    struct ottl_value value;
    *ret_record = ottl_record_of(run, path);
    if (*ret_record == NULL ||
        !ottl_numbers_get(run, &ottl_indices, *ret_record, attributes_field(path), &value))
        return false;
    if (ottl_run_is_around(run, &(*ret_record)->memory))
        ottl_run_work(run, (uint64_t)value.list->count * INDEX_BYTES);
    *ret = value.list;
    return true;
}

/* Go does not check indices, and ends; requests with such have been refused at the door. */
static bool attribute_at(struct ottl_run *run, const struct ottl_dictionary *dictionary,
                         int64_t index, struct ottl_dictionary_attribute *ret,
                         struct slice *ret_key)
{
    return (ottl_dictionary_attribute(dictionary, index, ret) &&
            ottl_dictionary_string(dictionary, ret->key, ret_key)) ||
           ottl_run_fail(run, "the attribute index %lld is out of range", (long long)index);
}

/* What is in the dictionary is shared by all that name it, and so counted each time. */
static bool decode(struct ottl_run *run, struct slice encoded, struct ottl_value *ret)
{
    if (!ottl_value_decode(run->memory, NULL, encoded, ret))
        return ottl_run_no_memory(run);
    ottl_run_charge(run, ret);
    return true;
}

/* Counts that a key of the dictionary is read. Short ones take no longer than their index. False:
 * nothing is left; the run's error is set. */
static bool spend_key(struct ottl_run *run, struct slice key)
{
    enum { SHORT_BYTES = 64 };
    return key.size <= SHORT_BYTES || ottl_run_spend(run, key.size);
}

/* Sets *ret to whether the keys are equal. False: nothing is left for reading them. */
static bool compare_keys(struct ottl_run *run, struct slice found, struct slice key, bool *ret)
{
    *ret = slice_equal(found, key);
    return found.size != key.size || spend_key(run, key);
}

/* A copy of the attributes as a map: of equal keys the last value counts, at the first's place. */
static struct ottl_map *copy_attributes(struct ottl_run *run, const struct ottl_path *path)
{
    struct ottl_dictionary *dictionary = dictionary_of(run);
    struct ottl_map *map = ottl_map_create(run->memory);
    struct ottl_record *record;
    struct ottl_list *indices;
    if (dictionary == NULL || !read_indices(run, path, &record, &indices))
        return NULL;
    for (uint32_t i = 0; map != NULL && i < indices->count; i++) {
        struct ottl_dictionary_attribute attribute;
        struct ottl_value value;
        struct slice key;
        if (!attribute_at(run, dictionary, indices->items[i].integer, &attribute, &key))
            return NULL;
        if (!spend_key(run, key) || !decode(run, attribute.value, &value))
            return NULL;
        if (!ottl_map_put(map, key, &value))
            map = NULL;
    }
    if (map == NULL)
        ottl_run_no_memory(run);
    return map;
}

/* The value of that key, of equal ones the last, without what the others have. False in
 * *ret_exists: there is none. */
static bool get_attribute(struct ottl_run *run, const struct ottl_dictionary *dictionary,
                          const struct ottl_list *indices, struct slice key, bool *ret_exists,
                          struct ottl_value *ret)
{
    struct slice found;
    *ret_exists = false;
    for (uint32_t i = 0; i < indices->count; i++) {
        struct ottl_dictionary_attribute attribute;
        struct slice other;
        bool is_equal;
        if (!attribute_at(run, dictionary, indices->items[i].integer, &attribute, &other))
            return false;
        if (!compare_keys(run, other, key, &is_equal))
            return false;
        if (!is_equal)
            continue;
        found = attribute.value;
        *ret_exists = true;
    }
    return !*ret_exists || decode(run, found, ret);
}

static bool get_attributes(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_value *ret)
{
    if (path->keys_count == 0) {
        struct ottl_map *map = copy_attributes(run, path);
        if (map != NULL)
            *ret = ottl_map_value(map);
        return map != NULL;
    }
    const struct ottl_dictionary *dictionary = dictionary_of(run);
    struct ottl_record *record;
    struct ottl_list *indices;
    struct slice key;
    bool exists;
    if (dictionary == NULL || !read_indices(run, path, &record, &indices) ||
        !ottl_key_text(run, &path->keys[0], &key) ||
        !get_attribute(run, dictionary, indices, key, &exists, ret))
        return false;
    if (!exists)
        *ret = ottl_nil();
    return !exists || path->keys_count == 1 ||
           ottl_select(run, ret, path->keys + 1, path->keys_count - 1, ret);
}

/* The index of an entry of the dictionary with that key and value, without unit. */
static bool index_of(struct ottl_run *run, struct slice key, const struct ottl_value *value,
                     int32_t *ret_key, int32_t *ret)
{
    ottl_run_charge(run, value);
    if (!spend_key(run, key))
        return false;
    return (ottl_dictionary_put_string(run->dictionary, key, ret_key) &&
            ottl_dictionary_put_attribute(run->dictionary, run->memory, *ret_key, value, ret)) ||
           ottl_run_no_memory(run);
}

static bool set_all(struct ottl_run *run, const struct ottl_path *path,
                    const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    struct ottl_list *indices = ottl_list_create(run->memory);
    if (record == NULL)
        return false;
    if (value->type != OTTL_MAP)
        return ottl_run_fail(run, "failed to convert type %s into pcommon.Map",
                             ottl_type_name(value));
    for (uint32_t i = 0; indices != NULL && i < value->map->count; i++) {
        struct ottl_entry *entry = &value->map->entries[i];
        struct ottl_value item;
        int32_t key, index;
        if (!ottl_map_read(value->map, entry, &item))
            return ottl_run_no_memory(run);
        if (!index_of(run, entry->key, &item, &key, &index))
            return false;
        item = ottl_int(index);
        if (!ottl_list_append(indices, &item))
            indices = NULL;
    }
    if (indices == NULL)
        return ottl_run_no_memory(run);
    const struct ottl_value list = ottl_list_value(indices, OTTL_FORM_INTS);
    return ottl_numbers_set(run, &ottl_indices, record, attributes_field(path), &list);
}

/* The value of the first attribute of that key; nil: none. */
static bool find_attribute(struct ottl_run *run, const struct ottl_dictionary *dictionary,
                           struct ottl_list *indices, struct slice key, struct ottl_value *ret)
{
    *ret = ottl_nil();
    for (uint32_t i = 0; i < indices->count; i++) {
        struct ottl_dictionary_attribute attribute;
        struct slice other;
        bool is_equal;
        if (!attribute_at(run, dictionary, indices->items[i].integer, &attribute, &other))
            return false;
        if (!compare_keys(run, other, key, &is_equal))
            return false;
        if (is_equal)
            return decode(run, attribute.value, ret);
    }
    return true;
}

/* Takes the place of the first attribute of its key, unless the very entry comes before it. */
static bool place_index(struct ottl_run *run, const struct ottl_dictionary *dictionary,
                        struct ottl_list *indices, int32_t key, int32_t index)
{
    const struct ottl_value item = ottl_int(index);
    for (uint32_t i = 0; i < indices->count; i++) {
        struct ottl_dictionary_attribute attribute;
        struct slice text;
        if (indices->items[i].integer == index)
            return true;
        if (!attribute_at(run, dictionary, indices->items[i].integer, &attribute, &text))
            return false;
        if (attribute.key == key)
            return ottl_list_set(indices, i, &item) || ottl_run_no_memory(run);
    }
    return ottl_list_append(indices, &item) || ottl_run_no_memory(run);
}

static bool set_attributes(struct ottl_run *run, const struct ottl_path *path,
                           const struct ottl_value *value)
{
    struct ottl_dictionary *dictionary = dictionary_of(run);
    struct ottl_list *holder = ottl_list_create(run->memory);
    struct ottl_record *record;
    struct ottl_list *indices;
    struct ottl_value item;
    struct slice name;
    int32_t key, index;
    if (dictionary == NULL)
        return false;
    if (path->keys_count == 0)
        return set_all(run, path, value);
    if (!ottl_key_text(run, &path->keys[0], &name) || !read_indices(run, path, &record, &indices) ||
        !find_attribute(run, dictionary, indices, name, &item))
        return false;
    if (holder == NULL || !ottl_list_adopt(holder, &item))
        return ottl_run_no_memory(run);
    if (!ottl_assign_at(run, &holder->base, &holder->items[0], path->keys + 1, path->keys_count - 1,
                        value) ||
        !index_of(run, name, &holder->items[0], &key, &index) ||
        !place_index(run, dictionary, indices, key, index))
        return false;
    const struct ottl_value list = ottl_list_value(indices, OTTL_FORM_INTS);
    return ottl_numbers_set(run, &ottl_indices, record, attributes_field(path), &list);
}

/* Lists of numbers. */

static const struct ottl_numbers *numbers_of(unsigned field, enum ottl_context context)
{
    return context == OTTL_PROFILE || field == SAMPLE_ATTRIBUTES ? &ottl_indices
           : field == VALUES                                     ? &ottl_varint_ints
                                                                 : &ottl_fixed_ints;
}

static bool get_numbers(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = ottl_record_of(run, path);
    const unsigned field = path->row->field;
    return record != NULL &&
           ottl_numbers_get(run, numbers_of(field, (enum ottl_context)path->context), record, field,
                            ret);
}

static bool set_numbers(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    const unsigned field = path->row->field;
    return record != NULL &&
           ottl_numbers_set(run, numbers_of(field, (enum ottl_context)path->context), record, field,
                            value);
}

/* Go sets any index, and whatever follows it ends with it. */
static bool check_index(struct ottl_run *run, int64_t index, uint32_t count)
{
    return index == 0 || (index > 0 && index < count) ||
           ottl_run_fail(run, "the index %lld is outside of the request's dictionary",
                         (long long)index);
}

static bool set_indices(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    const struct ottl_dictionary *dictionary = dictionary_of(run);
    struct slice packed;
    if (dictionary == NULL || !ottl_numbers_pack(run, &ottl_indices, run->memory, value, &packed))
        return false;
    for (uint32_t i = 0; i < value->list->count; i++)
        if (!check_index(run, (int32_t)value->list->items[i].integer, dictionary->attributes.count))
            return false;
    return set_numbers(run, path, value);
}

static struct ottl_value moment_of(int64_t nanoseconds)
{
    int64_t seconds = nanoseconds / NANOSECONDS;
    int64_t rest = nanoseconds % NANOSECONDS;
    if (rest < 0) {
        rest += NANOSECONDS;
        seconds--;
    }
    return ottl_time(seconds, (uint32_t)rest);
}

static bool get_timestamps(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_value *ret)
{
    if (!get_numbers(run, path, ret))
        return false;
    for (uint32_t i = 0; i < ret->list->count; i++)
        ret->list->items[i] = moment_of(ret->list->items[i].integer);
    ret->form = OTTL_FORM_TIMES;
    return true;
}

static bool set_timestamps(struct ottl_run *run, const struct ottl_path *path,
                           const struct ottl_value *value)
{
    struct ottl_list *list = ottl_list_create(run->memory);
    if (value->type != OTTL_LIST || value->form != OTTL_FORM_TIMES)
        return ottl_run_fail(run, "expects []time.Time but got %s", ottl_type_name(value));
    for (uint32_t i = 0; list != NULL && i < value->list->count; i++) {
        const struct ottl_value *time = &value->list->items[i];
        const struct ottl_value item =
            ottl_int((int64_t)((uint64_t)time->integer * NANOSECONDS + time->size));
        if (!ottl_list_append(list, &item))
            list = NULL;
    }
    if (list == NULL)
        return ottl_run_no_memory(run);
    const struct ottl_value numbers = ottl_list_value(list, OTTL_FORM_INTS);
    return set_numbers(run, path, &numbers);
}

/* Types of samples and periods. */

struct value_type {
    struct ottl_record *record;
    struct slice content;
    int32_t indices[2]; /* TYPE, UNIT, less one */
};

static bool read_value_type(struct ottl_run *run, const struct ottl_path *path,
                            struct value_type *ret)
{
    *ret = (struct value_type){.record = ottl_record_of(run, path)};
    if (ret->record == NULL)
        return false;
    ret->content = ottl_field_bytes(ret->record, path->row->field);
    ottl_work_fields(run, ret->record, ret->content);
    struct wire_reader reader = wire_reader_of(ret->content);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == TYPE || field.number == UNIT)
            ret->indices[field.number - 1] = (int32_t)field.number_value;
    return true;
}

static bool get_value_type(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_value *ret)
{
    struct value_type type;
    if (!read_value_type(run, path, &type))
        return false;
    *ret = ottl_message(path->row->field == SAMPLE_TYPE ? OTTL_SAMPLE_TYPE : OTTL_PERIOD_TYPE,
                        type.content);
    return true;
}

/* Go names the path in errors about it. */
static bool fail_type(struct ottl_run *run, const struct ottl_path *path, const char *expected,
                      const struct ottl_value *value)
{
    return ottl_run_fail(run, "path \"%s\" expects %s but got %s", path->row->name, expected,
                         ottl_type_name(value));
}

static bool set_value_type(struct ottl_run *run, const struct ottl_path *path,
                           const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL)
        return false;
    if (!ottl_expect_message(run, value, OTTL_SAMPLE_TYPE))
        return fail_type(run, path, ottl_message_name(OTTL_SAMPLE_TYPE), value);
    return ottl_put_bytes(run, record, path->row->field, ottl_slice(value));
}

static unsigned part_of(const struct ottl_path *path)
{
    return strcmp(strchr(path->row->name, '.'), ".unit") == 0;
}

static bool get_value_type_text(struct ottl_run *run, const struct ottl_path *path,
                                struct ottl_value *ret)
{
    struct ottl_dictionary *dictionary = dictionary_of(run);
    struct value_type type;
    struct slice text;
    if (dictionary == NULL || !read_value_type(run, path, &type))
        return false;
    const int32_t index = type.indices[part_of(path)];
    if (!ottl_dictionary_string(dictionary, index, &text))
        return ottl_run_fail(run, "path \"%s\" with strindex %d is out of range", path->row->name,
                             index);
    *ret = ottl_string(text);
    ottl_run_work(run, text.size); /* all profiles may name it */
    return true;
}

static bool set_value_type_text(struct ottl_run *run, const struct ottl_path *path,
                                const struct ottl_value *value)
{
    struct ottl_dictionary *dictionary = dictionary_of(run);
    struct value_type type;
    struct slice text;
    if (dictionary == NULL || !read_value_type(run, path, &type))
        return false;
    if (value->type != OTTL_STRING)
        return fail_type(run, path, "string", value);
    int32_t *index = &type.indices[part_of(path)];
    const bool is_same = *index != 0 && ottl_dictionary_string(dictionary, *index, &text) &&
                         slice_equal(text, ottl_slice(value));
    if (is_same)
        return true;
    if (!ottl_dictionary_put_string(dictionary, ottl_slice(value), index))
        return ottl_run_no_memory(run);
    uint8_t *room = ottl_memory_room(&type.record->memory, VALUE_TYPE_BYTES_MAX);
    if (room == NULL)
        return ottl_run_no_memory(run);
    struct wire_writer writer = wire_writer_of(room, VALUE_TYPE_BYTES_MAX);
    for (unsigned i = 0; i < 2; i++)
        if (type.indices[i] != 0)
            wire_write_number(&writer, TYPE + i, (uint64_t)(int64_t)type.indices[i]);
    return ottl_put_bytes(run, type.record, path->row->field, wire_written(&writer));
}

/* Other fields. */

static bool get_samples(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    *ret = ottl_messages(OTTL_SAMPLES, ottl_count_field(run, run->records[path->context], SAMPLES));
    return true;
}

static bool set_samples(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    (void)path;
    return ottl_expect_message(run, value, OTTL_SAMPLES);
}

static bool get_varint(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    return ottl_get_nanoseconds(run, path, ret);
}

static bool set_varint(struct ottl_run *run, const struct ottl_path *path, uint64_t number)
{
    struct ottl_record *record = ottl_record_of(run, path);
    if (record != NULL)
        ottl_record_set_number(record, path->row->field, WIRE_VARINT, number);
    return record != NULL;
}

static bool set_duration(struct ottl_run *run, const struct ottl_path *path,
                         const struct ottl_value *value)
{
    if (!ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (value->integer < 0)
        return ottl_run_fail(run, "duration_unix_nano must be non-negative");
    return set_varint(run, path, (uint64_t)value->integer);
}

static bool set_period(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_varint(run, path, (uint64_t)value->integer);
}

static bool set_link(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    if (!ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (value->integer >= INT32_MAX)
        return ottl_run_fail(run, "exceeded max value");
    const struct ottl_dictionary *dictionary = dictionary_of(run);
    if (dictionary == NULL || !check_index(run, (int32_t)value->integer, dictionary->links))
        return false;
    return set_varint(run, path, (uint64_t)(int64_t)(int32_t)value->integer);
}

static bool get_id(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    if (!ottl_get_trace_id(run, path, ret))
        return false;
    ret->type = OTTL_PROFILE_ID;
    return true;
}

static bool set_id(struct ottl_run *run, const struct ottl_path *path,
                   const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    if (record == NULL || !ottl_expect(run, value, OTTL_PROFILE_ID, "pprofile.ProfileID"))
        return false;
    if (slice_is_zero(ottl_slice(value)))
        return ottl_run_fail(run, "profile ids must not be empty");
    return ottl_put_bytes(run, record, PROFILE_ID, ottl_slice(value));
}

static bool set_id_text(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    struct slice id;
    if (!ottl_parse_id(run, value, OTTL_TRACE_ID_BYTES, "profile", &id))
        return false;
    const struct ottl_value parsed = ottl_bytes_of(OTTL_PROFILE_ID, id);
    return set_id(run, path, &parsed);
}

static bool get_payload(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *record = ottl_record_of(run, path);
    if (record != NULL)
        *ret = ottl_bytes_of(OTTL_BYTES, ottl_field_bytes(record, PAYLOAD));
    if (record != NULL && ret->size == 0)
        ret->bytes = NULL; /* Go's nil */
    return record != NULL;
}

static bool set_payload(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    struct ottl_record *record = ottl_record_of(run, path);
    return record != NULL && ottl_expect(run, value, OTTL_BYTES, "[]uint8") &&
           ottl_put_bytes(run, record, PAYLOAD, ottl_slice(value));
}

static const struct ottl_path_row profile_rows[] = {
    {"sample_type", get_value_type, set_value_type, SAMPLE_TYPE, false},
    {"sample_type.type", get_value_type_text, set_value_type_text, SAMPLE_TYPE, OTTL_SHARED},
    {"sample_type.unit", get_value_type_text, set_value_type_text, SAMPLE_TYPE, OTTL_SHARED},
    {"sample", get_samples, set_samples, OTTL_NO_FIELD, false},
    {"time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, TIME, false},
    {"time", ottl_get_moment, ottl_set_moment, TIME, false},
    {"duration_unix_nano", get_varint, set_duration, DURATION, false},
    {"duration", get_varint, set_duration, DURATION, false},
    {"period_type", get_value_type, set_value_type, PERIOD_TYPE, false},
    {"period_type.type", get_value_type_text, set_value_type_text, PERIOD_TYPE, OTTL_SHARED},
    {"period_type.unit", get_value_type_text, set_value_type_text, PERIOD_TYPE, OTTL_SHARED},
    {"period", get_varint, set_period, PERIOD, false},
    {"profile_id", get_id, set_id, PROFILE_ID, false},
    {"profile_id.string", ottl_get_trace_id_text, set_id_text, PROFILE_ID, false},
    {"attribute_indices", get_numbers, set_indices, PROFILE_ATTRIBUTES, OTTL_COPY},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, DROPPED_ATTRIBUTES, false},
    {"original_payload_format", ottl_get_text, ottl_set_text, PAYLOAD_FORMAT, false},
    {"original_payload", get_payload, set_payload, PAYLOAD, false},
    {"attributes", get_attributes, set_attributes, PROFILE_ATTRIBUTES, true | OTTL_COPY},
    {.name = NULL},
};

#define OUTER_CONTEXTS                                                                             \
    OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |                               \
        OTTL_CONTEXT_BIT(OTTL_PROFILE) | OTTL_CONTEXT_BIT(OTTL_OTELCOL)

const struct ottl_context_type ottl_profile_type = {
    .name = "profile",
    .reaches = OUTER_CONTEXTS,
    .rows = profile_rows,
};

static const struct ottl_path_row sample_rows[] = {
    {"values", get_numbers, set_numbers, VALUES, OTTL_COPY},
    {"attribute_indices", get_numbers, set_indices, SAMPLE_ATTRIBUTES, OTTL_COPY},
    {"link_index", ottl_get_enumeration, set_link, LINK, false},
    {"timestamps_unix_nano", get_numbers, set_numbers, TIMESTAMPS, OTTL_COPY},
    {"timestamps", get_timestamps, set_timestamps, TIMESTAMPS, OTTL_COPY},
    {"attributes", get_attributes, set_attributes, SAMPLE_ATTRIBUTES, true | OTTL_COPY},
    {.name = NULL},
};

const struct ottl_context_type ottl_profile_sample_type = {
    .name = "profilesample",
    .reaches = OUTER_CONTEXTS | OTTL_CONTEXT_BIT(OTTL_PROFILE_SAMPLE),
    .rows = sample_rows,
};
