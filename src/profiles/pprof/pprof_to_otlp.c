/* SPDX-License-Identifier: Apache-2.0 */
/* Converts pprof tables to an OTLP request. The dictionary grows as entries are used, each kept
 * once, with the zero value as entry 0 of each table; the samples of each column are collected
 * separately. Pure function; any thread. */
#include "src/profiles/pprof/pprof_to_otlp.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/correlation.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pprof/label_keys.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof.h"

/* AnyValue's fields. */
enum { VALUE_STRING_FIELD = 1, VALUE_BOOL_FIELD = 2, VALUE_INT_FIELD = 3, VALUE_LIST_FIELD = 5 };

/* Upper bounds: a scalar field, the head of a message, an index in a list, a small message. */
enum {
    NUMBER_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX,
    HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX,
    INDEX_BYTES_MAX = WIRE_SHORT_VARINT_BYTES_MAX,
    SMALL_BYTES_MAX = 256,
};

/* Attributes of a Profile that the pprof profile itself has; of a mapping: build id, four flags. */
enum {
    OWN_ATTRIBUTES_MAX = 4,
    ATTRIBUTES_MAX = OWN_ATTRIBUTES_MAX + PPROF_TO_OTLP_ATTRIBUTES_MAX,
    ATTRIBUTES_BYTES_MAX = ATTRIBUTES_MAX * INDEX_BYTES_MAX,
    MAPPING_ATTRIBUTES = 5,
};

/* What attributes of long texts take altogether, beside SPELT_BYTES_MORE: at most SPELT_GROWTH_MAX
 * times the bytes of all strings and LABEL_BYTES for each label. One text may be in many of them,
 * as in lists of labels with the same key that differ elsewhere. */
enum { SPELT_GROWTH_MAX = 32, LABEL_BYTES = 8, SPELT_BYTES_MORE = 1 << 20 };

struct conversion {
    const struct pprof_to_otlp_source *source;
    const struct pprof *pprof;
    struct budget *budget;
    struct entry_table entries[PROFILE_TABLES];
    struct byte_run columns[PPROF_TO_OTLP_TYPES_MAX]; /* encoded samples */
    struct label_keys keys;
    /* What long strings have become, so that each is read once, however often it is named. */
    struct scratch strings;   /* uint32_t by place of the string: its index plus 1 */
    struct scratch build_ids; /* the same: 1 if it is none, or its attribute's index plus 2 */
    struct entry_table forms; /* of labels with long texts: the numbers that make an attribute */
    struct scratch made;      /* uint32_t by form: its attribute's index plus 1 */
    struct scratch form;      /* uint64_t: of one attribute */
    uint64_t spelt_left;      /* bytes of long texts that more attributes may take */
    bool is_too_large;        /* they would take more */
    struct scratch comments;  /* bool by place of the string: it is a comment already */
    struct scratch mappings;  /* uint32_t by place: index in the dictionary */
    struct scratch functions;
    struct scratch locations;
    struct scratch attributes; /* uint32_t: of one sample */
    struct scratch content;    /* of the entry being built */
    struct scratch repaired;   /* a string */
    /* Attributes of every profile. */
    uint32_t shared[ATTRIBUTES_MAX];
    size_t shared_count;
    bool has_shared; /* they are known */
    bool has_failed; /* no memory; sticky */
};

/* Memory of the scratch; NULL: none, and the conversion has failed. */
static void *room(struct conversion *conversion, struct scratch *scratch, size_t bytes)
{
    void *memory = scratch_room(scratch, conversion->budget, bytes);
    conversion->has_failed |= memory == NULL;
    return memory;
}

static void append(struct conversion *conversion, struct byte_run *run, struct slice bytes)
{
    conversion->has_failed |= !byte_run_append(run, conversion->budget, bytes);
}

static void append_message(struct conversion *conversion, struct byte_run *run, uint32_t number,
                           struct slice content)
{
    conversion->has_failed |= !byte_run_append_message(run, conversion->budget, number, content);
}

/* Writes a number that is not 0. */
static void put(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    if (value != 0)
        wire_write_number(writer, number, value);
}

/* Writes a packed list that is not empty. */
static void put_indices(struct wire_writer *writer, uint32_t number, const uint32_t *indices,
                        size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += wire_varint_size(indices[i]);
    if (count > 0)
        wire_write_header(writer, number, bytes);
    for (size_t i = 0; i < count; i++)
        wire_write_varint(writer, indices[i]);
}

/* ---- entries of the dictionary: functions return their index and add them if they are new ---- */

static uint32_t add_entry(struct conversion *conversion, enum profile_table table,
                          const struct wire_writer *content)
{
    return entry_table_add(&conversion->entries[table], wire_written(content));
}

static struct slice source_string(const struct conversion *conversion, uint32_t index)
{
    assert(index < conversion->pprof->strings_count);
    return conversion->pprof->strings[index];
}

/* The string as valid UTF-8; valid until the next string. */
static struct slice repair(struct conversion *conversion, struct slice string)
{
    if (otlp_text_valid(string) == string.size)
        return string;
    uint8_t *repaired = room(conversion, &conversion->repaired, string.size);
    return repaired != NULL ? otlp_text_repaired(string, repaired) : slice_of(NULL, 0);
}

static uint32_t add_string(struct conversion *conversion, struct slice string)
{
    return entry_table_add(&conversion->entries[PROFILE_STRINGS], repair(conversion, string));
}

static uint32_t add_source_string(struct conversion *conversion, uint32_t index)
{
    struct slice string = source_string(conversion, index);
    uint32_t *known =
        room(conversion, &conversion->strings, conversion->pprof->strings_count * sizeof(known[0]));
    if (known == NULL)
        return 0;
    if (known[index] == 0)
        known[index] = add_string(conversion, string) + 1;
    return known[index] - 1;
}

/* value is an encoded AnyValue. */
static uint32_t add_attribute(struct conversion *conversion, uint32_t key, struct slice value,
                              uint32_t unit)
{
    size_t bytes = 2 * NUMBER_BYTES_MAX + HEADER_BYTES_MAX + value.size;
    void *memory = room(conversion, &conversion->content, bytes);
    if (memory == NULL)
        return 0;
    struct wire_writer writer = wire_writer_of(memory, bytes);
    put(&writer, 1, key);
    wire_write_bytes(&writer, 2, value);
    put(&writer, 3, unit);
    return add_entry(conversion, PROFILE_ATTRIBUTES, &writer);
}

static uint32_t add_string_attribute(struct conversion *conversion, const char *key,
                                     struct slice string)
{
    struct byte_run value = {.size = 0};
    append_message(conversion, &value, VALUE_STRING_FIELD, string);
    uint32_t index = add_attribute(conversion, add_string(conversion, slice_of_text(key)),
                                   byte_run_slice(&value), 0);
    scratch_fini(&value.scratch, conversion->budget);
    return index;
}

static uint32_t add_flag_attribute(struct conversion *conversion, const char *key)
{
    static const uint8_t is_true[] = {VALUE_BOOL_FIELD << 3, 1};
    return add_attribute(conversion, add_string(conversion, slice_of_text(key)),
                         slice_of(is_true, sizeof(is_true)), 0);
}

/* The index of its attribute plus 1; 0: it is empty or not UTF-8. */
static uint32_t add_build_id(struct conversion *conversion, uint32_t index)
{
    struct slice id = source_string(conversion, index);
    uint32_t *known = room(conversion, &conversion->build_ids,
                           conversion->pprof->strings_count * sizeof(known[0]));
    if (known == NULL)
        return 0;
    if (known[index] > 0)
        return known[index] - 1;
    known[index] = 1;
    if (id.size > 0 && otlp_text_valid(id) == id.size) {
        /* pprof does not say what kind of build id it is: its form has to. */
        bool has_slash = memchr(id.data, '/', id.size) != NULL;
        bool is_hex = true;
        for (size_t i = 0; i < id.size; i++) {
            uint8_t byte = id.data[i];
            is_hex &= (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
        }
        const char *key = has_slash                 ? "process.executable.build_id.go"
                          : is_hex && id.size == 32 ? "process.executable.build_id.htlhash"
                                                    : "process.executable.build_id.gnu";
        known[index] = add_string_attribute(conversion, key, id) + 2;
    }
    return known[index] - 1;
}

static uint32_t add_mapping(struct conversion *conversion, const struct pprof_mapping *mapping)
{
    const struct {
        bool is_set;
        const char *key;
    } flags[] = {
        {mapping->has_functions, "pprof.mapping.has_functions"},
        {mapping->has_filenames, "pprof.mapping.has_filenames"},
        {mapping->has_line_numbers, "pprof.mapping.has_line_numbers"},
        {mapping->has_inline_frames, "pprof.mapping.has_inline_frames"},
    };
    uint8_t memory[SMALL_BYTES_MAX];
    uint32_t attributes[MAPPING_ATTRIBUTES];
    size_t count = 0;
    struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
    put(&writer, 1, mapping->memory_start);
    put(&writer, 2, mapping->memory_limit);
    put(&writer, 3, mapping->file_offset);
    put(&writer, 4, add_source_string(conversion, mapping->filename));
    uint32_t build_id = add_build_id(conversion, mapping->build_id);
    if (build_id > 0)
        attributes[count++] = build_id - 1;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (flags[i].is_set)
            attributes[count++] = add_flag_attribute(conversion, flags[i].key);
    put_indices(&writer, 5, attributes, count);
    return add_entry(conversion, PROFILE_MAPPINGS, &writer);
}

/* The dictionary's index of an entry of the profile's table, by its place + 1; 0 for 0. */
static uint32_t at(const struct scratch *indices, uint32_t place)
{
    return place > 0 ? ((const uint32_t *)indices->memory)[place - 1] : 0;
}

/* Adds all mappings, functions and locations of the profile. An empty one becomes entry 0, which
 * stands for none. */
static void add_symbols(struct conversion *conversion)
{
    enum { LINE_BYTES_MAX = HEADER_BYTES_MAX + 3 * NUMBER_BYTES_MAX };
    const struct pprof *pprof = conversion->pprof;
    size_t bytes = sizeof(uint32_t);
    uint32_t *mappings =
        room(conversion, &conversion->mappings, (pprof->mappings_count + 1) * bytes);
    uint32_t *functions =
        room(conversion, &conversion->functions, (pprof->functions_count + 1) * bytes);
    uint32_t *locations =
        room(conversion, &conversion->locations, (pprof->locations_count + 1) * bytes);
    if (conversion->has_failed)
        return;
    for (size_t i = 0; i < pprof->mappings_count; i++)
        mappings[i] = add_mapping(conversion, &pprof->mappings[i]);
    for (size_t i = 0; i < pprof->functions_count; i++) {
        const struct pprof_function *function = &pprof->functions[i];
        uint8_t memory[SMALL_BYTES_MAX];
        struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
        put(&writer, 1, add_source_string(conversion, function->name));
        put(&writer, 2, add_source_string(conversion, function->system_name));
        put(&writer, 3, add_source_string(conversion, function->filename));
        put(&writer, 4, (uint64_t)function->start_line);
        functions[i] = add_entry(conversion, PROFILE_FUNCTIONS, &writer);
    }
    for (size_t i = 0; i < pprof->locations_count; i++) {
        const struct pprof_location *location = &pprof->locations[i];
        uint32_t folded = 0;
        if (location->is_folded)
            folded = add_flag_attribute(conversion, "pprof.location.is_folded");
        bytes = SMALL_BYTES_MAX + location->lines_count * LINE_BYTES_MAX;
        void *memory = room(conversion, &conversion->content, bytes);
        if (memory == NULL)
            return;
        struct wire_writer writer = wire_writer_of(memory, bytes);
        put(&writer, 1, at(&conversion->mappings, location->mapping));
        put(&writer, 2, location->address);
        for (size_t k = 0; k < location->lines_count; k++) {
            uint8_t content[3 * NUMBER_BYTES_MAX];
            struct wire_writer line = wire_writer_of(content, sizeof(content));
            put(&line, 1, at(&conversion->functions, location->lines[k].function));
            put(&line, 2, (uint64_t)location->lines[k].line);
            put(&line, 3, (uint64_t)location->lines[k].column);
            wire_write_bytes(&writer, 3, wire_written(&line));
        }
        put_indices(&writer, 4, &folded, location->is_folded);
        locations[i] = add_entry(conversion, PROFILE_LOCATIONS, &writer);
    }
}

/* ---- samples ---- */

/* Appends an encoded AnyValue to values, as a list's element if is_element. */
static void append_value(struct conversion *conversion, struct byte_run *values,
                         const struct pprof_label *label, bool is_element)
{
    uint8_t number[NUMBER_BYTES_MAX];
    uint8_t header[HEADER_BYTES_MAX];
    struct slice string = source_string(conversion, label->text);
    struct wire_writer head = wire_writer_of(header, sizeof(header));
    struct wire_writer body = wire_writer_of(number, sizeof(number));
    bool is_string = label->text != 0;
    if (is_string) {
        string = repair(conversion, string);
        wire_write_header(&body, VALUE_STRING_FIELD, string.size);
    } else {
        wire_write_number(&body, VALUE_INT_FIELD, (uint64_t)label->number);
    }
    wire_write_header(&head, 1, wire_written(&body).size + (is_string ? string.size : 0));
    if (is_element)
        append(conversion, values, wire_written(&head));
    append(conversion, values, wire_written(&body));
    if (is_string)
        append(conversion, values, string);
}

/* Where the attribute of a group of labels is kept, which begins with that one, as its index plus
 * 1; NULL if its texts are short, or without memory. */
static uint32_t *find_made(struct conversion *conversion, const struct pprof_sample *sample,
                           const struct label_groups *groups, size_t first)
{
    enum { SHORT_BYTES_MAX = 64 };
    const struct pprof_label *labels = sample->labels;
    size_t text_bytes_max = 0;
    uint64_t text_bytes = 0;
    size_t count = 0;
    uint64_t *form =
        room(conversion, &conversion->form, (1 + 2 * sample->labels_count) * sizeof(form[0]));
    if (form == NULL)
        return NULL;
    form[count++] =
        (uint64_t)labels[first].key << 32 | (labels[first].text == 0 ? labels[first].unit : 0);
    for (size_t i = first; i != LABEL_GROUP_END; i = groups->next[i]) {
        size_t bytes = source_string(conversion, labels[i].text).size;
        text_bytes_max = bytes > text_bytes_max ? bytes : text_bytes_max;
        text_bytes += bytes;
        form[count++] = labels[i].text;
        form[count++] = labels[i].text == 0 ? (uint64_t)labels[i].number : 0;
    }
    if (text_bytes_max <= SHORT_BYTES_MAX)
        return NULL;
    uint32_t place = entry_table_add(&conversion->forms, slice_of(form, count * sizeof(form[0])));
    conversion->has_failed |= conversion->forms.has_failed;
    uint32_t *made = room(conversion, &conversion->made, (place + (size_t)1) * sizeof(made[0]));
    if (made == NULL || conversion->has_failed || made[place] > 0)
        return made != NULL && !conversion->has_failed ? &made[place] : NULL;
    if (text_bytes > conversion->spelt_left) {
        conversion->is_too_large = conversion->has_failed = true;
        return NULL;
    }
    conversion->spelt_left -= text_bytes;
    return &made[place];
}

/* Adds the attributes of the sample to indices, which has room for its labels and one more. Labels
 * with the same key become one attribute with a list. Returns the link: the ids of trace and span
 * when both are known; one of them alone becomes an attribute under its common name. */
static uint32_t add_labels(struct conversion *conversion, const struct pprof_sample *sample,
                           uint32_t *indices, size_t *ret_count)
{
    struct correlation ids = {.has_span = false};
    struct label_groups groups;
    size_t count = 0;
    *ret_count = 0;
    if (sample->labels_count == 0)
        return 0;
    if (!label_keys_group(&conversion->keys, conversion->pprof, sample, &groups)) {
        conversion->has_failed = true;
        return 0;
    }
    for (size_t i = 0; i < sample->labels_count; i++) {
        const struct pprof_label *label = &sample->labels[i];
        struct slice key = source_string(conversion, label->key);
        bool is_empty = label->text == 0 && label->number == 0 && label->unit == 0;
        bool is_id = label->text == 0
                         ? correlation_take_number(&ids, key, label->number)
                         : correlation_take(&ids, key, source_string(conversion, label->text));
        if (is_empty || is_id || label->key == 0 || !groups.is_first[i])
            continue;
        uint32_t *made = find_made(conversion, sample, &groups, i);
        if (conversion->has_failed)
            return 0;
        if (made != NULL && *made > 0) {
            indices[count++] = *made - 1;
            continue;
        }
        struct byte_run values = {.size = 0};
        struct byte_run list = {.size = 0};
        bool is_list = groups.next[i] != LABEL_GROUP_END;
        for (size_t k = i; k != LABEL_GROUP_END; k = groups.next[k])
            append_value(conversion, &values, &sample->labels[k], is_list);
        if (is_list) /* AnyValue { array_value { values … } } */
            append_message(conversion, &list, VALUE_LIST_FIELD, byte_run_slice(&values));
        indices[count] =
            add_attribute(conversion, add_source_string(conversion, label->key),
                          byte_run_slice(is_list ? &list : &values),
                          label->text == 0 ? add_source_string(conversion, label->unit) : 0);
        if (made != NULL)
            *made = indices[count] + 1;
        count++;
        scratch_fini(&values.scratch, conversion->budget);
        scratch_fini(&list.scratch, conversion->budget);
    }
    uint32_t link = 0;
    if (ids.has_span && ids.has_trace) {
        uint8_t memory[SMALL_BYTES_MAX];
        struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
        wire_write_bytes(&writer, 1, slice_of(ids.trace_id, sizeof(ids.trace_id)));
        wire_write_bytes(&writer, 2, slice_of(ids.span_id, sizeof(ids.span_id)));
        link = add_entry(conversion, PROFILE_LINKS, &writer);
    } else if (ids.has_span || ids.has_trace) {
        uint8_t hex[2 * sizeof(ids.trace_id)];
        indices[count++] =
            add_string_attribute(conversion, ids.has_span ? "span_id" : "trace_id",
                                 ids.has_span ? hex_write(ids.span_id, sizeof(ids.span_id), hex)
                                              : hex_write(ids.trace_id, sizeof(ids.trace_id), hex));
    }
    *ret_count = count;
    return link;
}

static void add_sample(struct conversion *conversion, const struct pprof_sample *sample)
{
    const struct scratch *locations = &conversion->locations;
    size_t count = 0;
    uint32_t *attributes = room(conversion, &conversion->attributes,
                                (sample->labels_count + 1) * sizeof(attributes[0]));
    if (attributes == NULL)
        return;
    uint32_t link = add_labels(conversion, sample, attributes, &count);
    uint32_t stack = 0;
    size_t bytes = HEADER_BYTES_MAX + sample->locations_count * INDEX_BYTES_MAX;
    void *memory = room(conversion, &conversion->content, bytes);
    if (memory != NULL && sample->locations_count > 0) {
        struct wire_writer writer = wire_writer_of(memory, bytes);
        size_t content = 0;
        for (size_t i = 0; i < sample->locations_count; i++)
            content += wire_varint_size(at(locations, sample->locations[i]));
        wire_write_header(&writer, 1, content);
        for (size_t i = 0; i < sample->locations_count; i++)
            wire_write_varint(&writer, at(locations, sample->locations[i]));
        stack = add_entry(conversion, PROFILE_STACKS, &writer);
    }
    bytes = SMALL_BYTES_MAX + count * INDEX_BYTES_MAX;
    memory = room(conversion, &conversion->content, bytes);
    for (size_t i = 0; memory != NULL && i < conversion->pprof->sample_types_count; i++) {
        struct wire_writer writer = wire_writer_of(memory, bytes);
        uint64_t value = (uint64_t)sample->values[i];
        if (value == 0)
            continue;
        put(&writer, 1, stack);
        put_indices(&writer, 2, attributes, count);
        put(&writer, 3, link);
        wire_write_header(&writer, 4, wire_varint_size(value));
        wire_write_varint(&writer, value);
        append_message(conversion, &conversion->columns[i], 2, wire_written(&writer));
    }
}

/* ---- Profiles ---- */

static void put_value_type(struct conversion *conversion, struct wire_writer *writer,
                           uint32_t number, struct pprof_value_type type)
{
    uint8_t memory[2 * NUMBER_BYTES_MAX];
    struct wire_writer content = wire_writer_of(memory, sizeof(memory));
    put(&content, 1, add_source_string(conversion, type.type));
    put(&content, 2, add_source_string(conversion, type.unit));
    wire_write_bytes(writer, number, wire_written(&content));
}

/* Each comment counts once, as when profiles are merged: a byte of the file names a text of any
 * length. */
static bool is_new_comment(struct conversion *conversion, uint32_t text)
{
    bool *known = room(conversion, &conversion->comments, conversion->pprof->strings_count);
    if (known == NULL || text == 0 || known[text])
        return false;
    known[text] = true;
    return true;
}

static void add_shared_attributes(struct conversion *conversion)
{
    const struct pprof *pprof = conversion->pprof;
    const struct pprof_to_otlp_source *source = conversion->source;
    uint32_t *attributes = conversion->shared;
    size_t count = 0;
    const struct {
        const char *key;
        uint32_t string;
    } rows[] = {
        {"pprof.profile.doc_url", pprof->doc_url},
        {"pprof.profile.drop_frames", pprof->drop_frames},
        {"pprof.profile.keep_frames", pprof->keep_frames},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice string = source_string(conversion, rows[i].string);
        if (string.size > 0 && otlp_text_valid(string) == string.size)
            attributes[count++] = add_string_attribute(conversion, rows[i].key, string);
    }
    if (pprof->comments_count > 0) { /* one attribute with a list */
        struct byte_run comments = {.size = 0};
        struct byte_run list = {.size = 0};
        for (size_t i = 0; i < pprof->comments_count; i++) {
            const struct pprof_label comment = {.text = pprof->comments[i]};
            if (is_new_comment(conversion, comment.text))
                append_value(conversion, &comments, &comment, true);
        }
        append_message(conversion, &list, VALUE_LIST_FIELD, byte_run_slice(&comments));
        attributes[count++] = add_attribute(
            conversion, add_string(conversion, slice_of_text("pprof.profile.comment")),
            byte_run_slice(&list), 0);
        scratch_fini(&comments.scratch, conversion->budget);
        scratch_fini(&list.scratch, conversion->budget);
    }
    for (size_t i = 0; i < source->attributes_count; i++)
        attributes[count++] =
            add_attribute(conversion, add_string(conversion, source->attributes[i].key),
                          source->attributes[i].value, 0);
    conversion->shared_count = count;
    conversion->has_shared = true;
}

/* Appends one Profile: what all columns share, and the column's samples. */
static void append_profile(struct conversion *conversion, size_t column, struct byte_run *profiles)
{
    const struct pprof *pprof = conversion->pprof;
    const struct byte_run *samples = &conversion->columns[column];
    uint8_t memory[SMALL_BYTES_MAX + ATTRIBUTES_BYTES_MAX];
    uint8_t header[HEADER_BYTES_MAX];
    struct wire_writer head = wire_writer_of(memory, sizeof(memory));
    struct wire_writer outer = wire_writer_of(header, sizeof(header));
    put_value_type(conversion, &head, 1, pprof->sample_types[column]);
    if (pprof->time_ns > 0)
        wire_write_fixed64(&head, 3, (uint64_t)pprof->time_ns);
    if (pprof->duration_ns > 0)
        wire_write_number(&head, 4, (uint64_t)pprof->duration_ns);
    if (pprof->has_period_type)
        put_value_type(conversion, &head, 5, pprof->period_type);
    put(&head, 6, (uint64_t)pprof->period);
    if (!conversion->has_shared)
        add_shared_attributes(conversion);
    put_indices(&head, 11, conversion->shared, conversion->shared_count);
    wire_write_header(&outer, 2, wire_written(&head).size + samples->size);
    append(conversion, profiles, wire_written(&outer));
    append(conversion, profiles, wire_written(&head));
    append(conversion, profiles, byte_run_slice(samples));
}

/* Appends ResourceProfiles { resource, scope_profiles { scope, profiles … } }, then the
 * dictionary. */
static void append_request(struct conversion *conversion, struct byte_run *request)
{
    struct slice resource = conversion->source->resource;
    struct slice default_type = source_string(conversion, conversion->pprof->default_sample_type);
    struct byte_run value = {.size = 0};
    struct byte_run pair = {.size = 0};
    struct byte_run attributes = {.size = 0};
    struct byte_run scope = {.size = 0};
    struct byte_run resources = {.size = 0};
    struct byte_run dictionary = {.size = 0};
    if (default_type.size > 0 && otlp_text_valid(default_type) == default_type.size) {
        /* InstrumentationScope { attributes { key, value } } */
        append_message(conversion, &value, VALUE_STRING_FIELD, default_type);
        append_message(conversion, &pair, 1, slice_of_text("pprof.scope.default_sample_type"));
        append_message(conversion, &pair, 2, byte_run_slice(&value));
        append_message(conversion, &attributes, 3, byte_run_slice(&pair));
        append_message(conversion, &scope, 1, byte_run_slice(&attributes));
    }
    for (size_t i = 0; i < conversion->pprof->sample_types_count; i++)
        if (conversion->columns[i].size > 0)
            append_profile(conversion, i, &scope);
    if (resource.data != NULL)
        append_message(conversion, &resources, 1, resource);
    append_message(conversion, &resources, 2, byte_run_slice(&scope));
    append_message(conversion, request, 1, byte_run_slice(&resources));
    struct byte_run *const runs[] = {&value, &pair, &attributes, &scope, &resources};
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        scratch_fini(&runs[i]->scratch, conversion->budget);
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        conversion->has_failed |= conversion->entries[i].has_failed;
        append(conversion, &dictionary, byte_run_slice(&conversion->entries[i].bytes));
    }
    append_message(conversion, request, 2, byte_run_slice(&dictionary));
    scratch_fini(&dictionary.scratch, conversion->budget);
}

static uint64_t spelt_bytes_max(const struct pprof *pprof)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < pprof->strings_count; i++)
        bytes += pprof->strings[i].size;
    for (size_t i = 0; i < pprof->samples_count; i++)
        bytes += pprof->samples[i].labels_count * LABEL_BYTES;
    return SPELT_GROWTH_MAX * bytes + SPELT_BYTES_MORE;
}

bool pprof_to_otlp(const struct pprof_to_otlp_source *source, struct budget *budget,
                   struct buffer **ret_request, bool *ret_is_too_large)
{
    const struct pprof *pprof = source->pprof;
    assert(source->attributes_count <= PPROF_TO_OTLP_ATTRIBUTES_MAX);
    if (pprof->sample_types_count > PPROF_TO_OTLP_TYPES_MAX) {
        if (ret_is_too_large != NULL)
            *ret_is_too_large = false;
        return false;
    }
    struct conversion conversion = {.source = source, .pprof = pprof, .budget = budget};
    struct byte_run request = {.size = 0};
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entry_table_init(&conversion.entries[i], i + 1, budget);
    entry_table_init(&conversion.forms, 1, budget);
    label_keys_init(&conversion.keys, budget);

    bool has_samples = false;
    conversion.spelt_left = spelt_bytes_max(pprof);
    add_symbols(&conversion);
    for (size_t i = 0; i < pprof->samples_count && !conversion.has_failed; i++)
        add_sample(&conversion, &pprof->samples[i]);
    for (size_t i = 0; i < pprof->sample_types_count; i++)
        has_samples |= conversion.columns[i].size > 0;
    if (has_samples && !conversion.has_failed)
        append_request(&conversion, &request);

    struct scratch *const scratches[] = {
        &conversion.mappings, &conversion.functions, &conversion.locations, &conversion.attributes,
        &conversion.content,  &conversion.repaired,  &conversion.strings,   &conversion.build_ids,
        &conversion.made,     &conversion.form,      &conversion.comments,
    };
    for (size_t i = 0; i < sizeof(scratches) / sizeof(scratches[0]); i++)
        scratch_fini(scratches[i], budget);
    label_keys_fini(&conversion.keys);
    entry_table_fini(&conversion.forms);
    for (size_t i = 0; i < PPROF_TO_OTLP_TYPES_MAX; i++)
        scratch_fini(&conversion.columns[i].scratch, budget);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entry_table_fini(&conversion.entries[i]);
    struct buffer *buffer = !conversion.has_failed ? buffer_try_create(budget, request.size) : NULL;
    if (buffer != NULL && request.size > 0)
        memcpy(buffer->data, request.scratch.memory, request.size);
    if (buffer != NULL)
        buffer->size = request.size;
    scratch_fini(&request.scratch, budget);
    if (ret_is_too_large != NULL)
        *ret_is_too_large = conversion.is_too_large;
    if (buffer == NULL)
        return false;
    *ret_request = buffer;
    return true;
}
