/* SPDX-License-Identifier: Apache-2.0 */
/* pprof tables into an OTLP request: the dictionary grows as entries are used, each kept once; the
 * samples of each column gather apart. Pure function; any thread. */
#include "src/profiles/pprof/pprof_to_otlp.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/profiles/pprof/correlation.h"
#include "src/profiles/pprof/label_keys.h"
#include "src/profiles/pprof/otlp_tables.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof.h"

/* Attributes of a Profile that the pprof profile itself gives. */
enum {
    OWN_ATTRIBUTES_MAX = 4,
    ATTRIBUTES_MAX = OWN_ATTRIBUTES_MAX + PPROF_TO_OTLP_ATTRIBUTES_MAX,
    ATTRIBUTES_BYTES_MAX = ATTRIBUTES_MAX * OTLP_INDEX_BYTES_MAX,
};

struct translation {
    const struct pprof_to_otlp_source *source;
    struct otlp_tables tables;
    struct byte_run columns[PPROF_TO_OTLP_TYPES_MAX]; /* encoded samples */
    struct scratch attributes;                        /* uint32_t: of one sample */
    struct label_keys keys;
};

/* An encoded AnyValue at the end of values, as a list's element when is_element. */
static void append_value(struct translation *translation, struct byte_run *values,
                         const struct pprof_label *label, bool is_element)
{
    uint8_t number[OTLP_NUMBER_BYTES_MAX];
    uint8_t header[OTLP_HEADER_BYTES_MAX];
    struct slice text = otlp_tables_source_text(&translation->tables, label->text);
    struct wire_writer head = wire_writer_of(header, sizeof(header));
    struct wire_writer body = wire_writer_of(number, sizeof(number));
    bool is_text = label->text != 0;
    if (is_text)
        text = otlp_tables_repaired(&translation->tables, text);
    if (is_text)
        wire_write_header(&body, VALUE_TEXT_FIELD, text.size);
    else
        wire_write_number(&body, VALUE_INT_FIELD, (uint64_t)label->number);
    size_t bytes = wire_written(&body).size + (is_text ? text.size : 0);
    wire_write_header(&head, 1, bytes);
    if (is_element)
        translation->tables.has_failed |=
            !byte_run_append(values, translation->tables.budget, wire_written(&head));
    translation->tables.has_failed |=
        !byte_run_append(values, translation->tables.budget, wire_written(&body));
    if (is_text)
        translation->tables.has_failed |=
            !byte_run_append(values, translation->tables.budget, text);
}

/* One attribute for all labels that share the key of the first at that place: a list when they are
 * several. */
static uint32_t add_label(struct translation *translation, const struct pprof_sample *sample,
                          const struct label_groups *groups, size_t place)
{
    const struct pprof_label *label = &sample->labels[place];
    struct byte_run values = {.size = 0};
    struct byte_run list = {.size = 0};
    bool is_list = groups->next[place] != LABEL_GROUP_END;
    assert(groups->is_first[place]);
    for (size_t i = place; i != LABEL_GROUP_END; i = groups->next[i])
        append_value(translation, &values, &sample->labels[i], is_list);
    /* AnyValue { array_value { values … } } */
    if (is_list)
        translation->tables.has_failed |= !byte_run_append_message(
            &list, translation->tables.budget, VALUE_LIST_FIELD, byte_run_slice(&values));
    uint32_t index = otlp_tables_attribute(
        &translation->tables, otlp_tables_text_at(&translation->tables, label->key),
        byte_run_slice(is_list ? &list : &values),
        label->text == 0 ? otlp_tables_text_at(&translation->tables, label->unit) : 0);
    scratch_fini(&values.scratch, translation->tables.budget);
    scratch_fini(&list.scratch, translation->tables.budget);
    return index;
}

/* The ids of trace and span, as a link when both are known; else the one as an attribute under its
 * common name. */
static uint32_t add_correlation(struct translation *translation,
                                const struct correlation *correlation, uint32_t *indices,
                                size_t *count)
{
    const uint8_t *id = correlation->has_span ? correlation->span_id : correlation->trace_id;
    size_t bytes = correlation->has_span ? 8 : 16;
    uint8_t text[32];
    if (correlation->has_span && correlation->has_trace)
        return otlp_tables_link(&translation->tables, correlation);
    if (!correlation->has_span && !correlation->has_trace)
        return 0;
    indices[(*count)++] = otlp_tables_text_attribute(&translation->tables,
                                                     correlation->has_span ? "span_id" : "trace_id",
                                                     hex_write(id, bytes, text));
    return 0;
}

static bool take_id(const struct translation *translation, const struct pprof_label *label,
                    struct correlation *correlation)
{
    struct slice key = otlp_tables_source_text(&translation->tables, label->key);
    assert(correlation != NULL);
    if (label->text == 0)
        return correlation_take_number(correlation, key, label->number);
    return correlation_take(correlation, key,
                            otlp_tables_source_text(&translation->tables, label->text));
}

/* Attributes of the sample into indices, which has room for them and one more; returns the link. */
static uint32_t add_labels(struct translation *translation, const struct pprof_sample *sample,
                           uint32_t *indices, size_t *ret_count)
{
    assert(indices != NULL);
    struct correlation correlation = {.has_span = false};
    struct label_groups groups;
    size_t count = 0;
    *ret_count = 0;
    if (sample->labels_count == 0)
        return 0;
    if (!label_keys_group(&translation->keys, translation->tables.pprof, sample, &groups)) {
        translation->tables.has_failed = true;
        return 0;
    }
    for (size_t i = 0; i < sample->labels_count; i++) {
        const struct pprof_label *label = &sample->labels[i];
        bool is_nothing = label->text == 0 && label->number == 0 && label->unit == 0;
        bool is_id = take_id(translation, label, &correlation);
        if (!is_nothing && !is_id && label->key != 0 && groups.is_first[i])
            indices[count++] = add_label(translation, sample, &groups, i);
    }
    uint32_t link = add_correlation(translation, &correlation, indices, &count);
    *ret_count = count;
    return link;
}

static void add_sample(struct translation *translation, const struct pprof_sample *sample)
{
    assert(sample != NULL);
    size_t count = 0;
    uint32_t *attributes = otlp_tables_room(&translation->tables, &translation->attributes,
                                            (sample->labels_count + 1) * sizeof(attributes[0]));
    if (attributes == NULL)
        return;
    uint32_t link = add_labels(translation, sample, attributes, &count);
    uint32_t stack = otlp_tables_stack(&translation->tables, sample);
    size_t bytes = OTLP_SMALL_BYTES_MAX + count * OTLP_INDEX_BYTES_MAX;
    void *memory = otlp_tables_room(&translation->tables, &translation->tables.content, bytes);
    for (size_t i = 0; memory != NULL && i < translation->tables.pprof->sample_types_count; i++) {
        struct wire_writer writer = wire_writer_of(memory, bytes);
        uint64_t value = (uint64_t)sample->values[i];
        if (value == 0)
            continue;
        otlp_put(&writer, 1, stack);
        otlp_put_indices(&writer, 2, attributes, count);
        otlp_put(&writer, 3, link);
        wire_write_header(&writer, 4, wire_varint_size(value));
        wire_write_varint(&writer, value);
        translation->tables.has_failed |= !byte_run_append_message(
            &translation->columns[i], translation->tables.budget, 2, wire_written(&writer));
    }
}

static void put_value_type(struct translation *translation, struct wire_writer *writer,
                           uint32_t number, struct pprof_value_type type)
{
    uint8_t memory[2 * OTLP_NUMBER_BYTES_MAX];
    struct wire_writer content = wire_writer_of(memory, sizeof(memory));
    otlp_put(&content, 1, otlp_tables_text_at(&translation->tables, type.type));
    otlp_put(&content, 2, otlp_tables_text_at(&translation->tables, type.unit));
    wire_write_bytes(writer, number, wire_written(&content));
}

/* The comments as one attribute with a list. */
static uint32_t add_comments(struct translation *translation)
{
    const struct pprof *pprof = translation->tables.pprof;
    struct byte_run texts = {.size = 0};
    struct byte_run list = {.size = 0};
    for (size_t i = 0; i < pprof->comments_count; i++) {
        const struct pprof_label comment = {.text = pprof->comments[i]};
        if (comment.text != 0)
            append_value(translation, &texts, &comment, true);
    }
    translation->tables.has_failed |= !byte_run_append_message(
        &list, translation->tables.budget, VALUE_LIST_FIELD, byte_run_slice(&texts));
    uint32_t index = otlp_tables_attribute(
        &translation->tables,
        otlp_tables_text(&translation->tables, slice_of_text("pprof.profile.comment")),
        byte_run_slice(&list), 0);
    scratch_fini(&texts.scratch, translation->tables.budget);
    scratch_fini(&list.scratch, translation->tables.budget);
    return index;
}

static size_t profile_attributes(struct translation *translation, uint32_t *indices)
{
    const struct pprof *pprof = translation->tables.pprof;
    const struct pprof_to_otlp_source *source = translation->source;
    const struct {
        const char *key;
        uint32_t text;
    } rows[] = {
        {"pprof.profile.doc_url", pprof->doc_url},
        {"pprof.profile.drop_frames", pprof->drop_frames},
        {"pprof.profile.keep_frames", pprof->keep_frames},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice text = otlp_tables_source_text(&translation->tables, rows[i].text);
        if (text.size > 0 && otlp_text_valid(text) == text.size)
            indices[count++] = otlp_tables_text_attribute(&translation->tables, rows[i].key, text);
    }
    if (pprof->comments_count > 0)
        indices[count++] = add_comments(translation);
    for (size_t i = 0; i < source->attributes_count; i++)
        indices[count++] = otlp_tables_attribute(
            &translation->tables, otlp_tables_text(&translation->tables, source->attributes[i].key),
            source->attributes[i].value, 0);
    return count;
}

/* One Profile: what all columns share, and the column's samples. */
static void append_profile(struct translation *translation, size_t column,
                           struct byte_run *profiles)
{
    assert(column < translation->tables.pprof->sample_types_count);
    const struct pprof *pprof = translation->tables.pprof;
    uint8_t memory[OTLP_SMALL_BYTES_MAX + ATTRIBUTES_BYTES_MAX];
    uint8_t header[OTLP_HEADER_BYTES_MAX];
    uint32_t attributes[ATTRIBUTES_MAX];
    struct wire_writer head = wire_writer_of(memory, sizeof(memory));
    struct wire_writer outer = wire_writer_of(header, sizeof(header));
    const struct byte_run *samples = &translation->columns[column];
    put_value_type(translation, &head, 1, pprof->sample_types[column]);
    if (pprof->time_ns > 0)
        wire_write_fixed64(&head, 3, (uint64_t)pprof->time_ns);
    if (pprof->duration_ns > 0)
        wire_write_number(&head, 4, (uint64_t)pprof->duration_ns);
    if (pprof->has_period_type)
        put_value_type(translation, &head, 5, pprof->period_type);
    otlp_put(&head, 6, (uint64_t)pprof->period);
    otlp_put_indices(&head, 11, attributes, profile_attributes(translation, attributes));
    wire_write_header(&outer, 2, wire_written(&head).size + samples->size);
    struct budget *budget = translation->tables.budget;
    translation->tables.has_failed |= !byte_run_append(profiles, budget, wire_written(&outer)) ||
                                      !byte_run_append(profiles, budget, wire_written(&head)) ||
                                      !byte_run_append(profiles, budget, byte_run_slice(samples));
}

/* InstrumentationScope { attributes { key, value } }. */
static void append_scope(struct translation *translation, struct byte_run *scope)
{
    assert(scope->size == 0);
    static const char key[] = "pprof.scope.default_sample_type";
    struct slice text = otlp_tables_source_text(&translation->tables,
                                                translation->tables.pprof->default_sample_type);
    struct budget *budget = translation->tables.budget;
    struct byte_run value = {.size = 0};
    struct byte_run pair = {.size = 0};
    struct byte_run attributes = {.size = 0};
    if (text.size == 0 || otlp_text_valid(text) < text.size)
        return;
    translation->tables.has_failed |=
        !byte_run_append_message(&value, budget, VALUE_TEXT_FIELD, text) ||
        !byte_run_append_message(&pair, budget, 1, slice_of_text(key)) ||
        !byte_run_append_message(&pair, budget, 2, byte_run_slice(&value)) ||
        !byte_run_append_message(&attributes, budget, 3, byte_run_slice(&pair)) ||
        !byte_run_append_message(scope, budget, 1, byte_run_slice(&attributes));
    scratch_fini(&value.scratch, budget);
    scratch_fini(&pair.scratch, budget);
    scratch_fini(&attributes.scratch, budget);
}

/* ResourceProfiles { resource, scope_profiles { scope, profiles … } }. */
static void append_resource(struct translation *translation, struct slice resource,
                            struct byte_run *request)
{
    struct budget *budget = translation->tables.budget;
    struct byte_run scope = {.size = 0};
    struct byte_run resources = {.size = 0};
    append_scope(translation, &scope);
    for (size_t i = 0; i < translation->tables.pprof->sample_types_count; i++)
        if (translation->columns[i].size > 0)
            append_profile(translation, i, &scope);
    if (resource.data != NULL)
        translation->tables.has_failed |= !byte_run_append_message(&resources, budget, 1, resource);
    translation->tables.has_failed |=
        !byte_run_append_message(&resources, budget, 2, byte_run_slice(&scope)) ||
        !byte_run_append_message(request, budget, 1, byte_run_slice(&resources));
    scratch_fini(&scope.scratch, budget);
    scratch_fini(&resources.scratch, budget);
}

static void append_dictionary(struct translation *translation, struct byte_run *request)
{
    struct budget *budget = translation->tables.budget;
    struct byte_run dictionary = {.size = 0};
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        translation->tables.has_failed |=
            translation->tables.entries[i].has_failed ||
            !byte_run_append(&dictionary, budget,
                             byte_run_slice(&translation->tables.entries[i].bytes));
    translation->tables.has_failed |=
        !byte_run_append_message(request, budget, 2, byte_run_slice(&dictionary));
    scratch_fini(&dictionary.scratch, budget);
}

static void translation_fini(struct translation *translation)
{
    assert(translation != NULL);
    struct budget *budget = translation->tables.budget;
    scratch_fini(&translation->attributes, budget);
    label_keys_fini(&translation->keys);
    for (size_t i = 0; i < PPROF_TO_OTLP_TYPES_MAX; i++)
        scratch_fini(&translation->columns[i].scratch, budget);
    otlp_tables_fini(&translation->tables);
}

static void translate(struct translation *translation, struct slice resource,
                      struct byte_run *request)
{
    assert(request->size == 0);
    const struct pprof *pprof = translation->tables.pprof;
    bool has_samples = false;
    otlp_tables_symbols(&translation->tables);
    for (size_t i = 0; i < pprof->samples_count && !translation->tables.has_failed; i++)
        add_sample(translation, &pprof->samples[i]);
    for (size_t i = 0; i < pprof->sample_types_count; i++)
        has_samples |= translation->columns[i].size > 0;
    if (!has_samples || translation->tables.has_failed)
        return;
    append_resource(translation, resource, request);
    append_dictionary(translation, request);
}

bool pprof_to_otlp(const struct pprof_to_otlp_source *source, struct budget *budget,
                   struct buffer **ret_request)
{
    assert(source->pprof != NULL);
    assert(ret_request != NULL);
    assert(source->attributes_count <= PPROF_TO_OTLP_ATTRIBUTES_MAX);
    if (source->pprof->sample_types_count > PPROF_TO_OTLP_TYPES_MAX)
        return false;
    struct translation translation = {.source = source};
    struct byte_run request = {.size = 0};
    otlp_tables_init(&translation.tables, source->pprof, budget);
    label_keys_init(&translation.keys, budget);
    translate(&translation, source->resource, &request);
    bool is_fine = !translation.tables.has_failed;
    translation_fini(&translation);
    struct buffer *buffer = is_fine ? buffer_try_create(budget, request.size) : NULL;
    if (buffer != NULL && request.size > 0)
        memcpy(buffer->data, request.scratch.memory, request.size);
    if (buffer != NULL)
        buffer->size = request.size;
    scratch_fini(&request.scratch, budget);
    if (buffer == NULL)
        return false;
    *ret_request = buffer;
    return true;
}
