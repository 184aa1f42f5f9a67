/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are keyed by 64-bit words that describe them in the merged profile's indices; new entries
 * are written at once, samples at the end. One owner. */
#include "src/profiles/pprof/pprof_merge.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_numbers.h"

#define NO_ROOM "the memory budget has no room for the merged profile"

enum { COLUMNS_FIRST = 4, LABEL_WORDS = 4, ROWS_FIRST = 64 };

/* One profile being merged: its indices + 1, and the ids in the result. Strings have their indices;
 * each is hashed once, however often it is named. */
struct adding {
    struct pprof_merge *merge;
    const struct pprof *from;
    uint32_t *strings; /* 0: not added yet, or empty */
    uint32_t *functions;
    uint32_t *mappings;
    uint32_t *locations;
    uint32_t columns[PPROF_COLUMNS_MAX];
};

void pprof_merge_init(struct pprof_merge *merge, struct budget *budget)
{
    *merge = (struct pprof_merge){.budget = budget, .columns_room = COLUMNS_FIRST};
    pprof_writer_init(&merge->writer, budget, PROFILE_FILE_BYTES_MAX);
    profile_set_init(&merge->columns, budget);
    profile_set_init(&merge->functions, budget);
    profile_set_init(&merge->mappings, budget);
    profile_set_init(&merge->locations, budget);
    profile_set_init(&merge->samples, budget);
    profile_set_init(&merge->times, budget);
    profile_set_init(&merge->comments, budget);
}

void pprof_merge_fini(struct pprof_merge *merge)
{
    pprof_writer_fini(&merge->writer);
    profile_set_fini(&merge->columns);
    profile_set_fini(&merge->functions);
    profile_set_fini(&merge->mappings);
    profile_set_fini(&merge->locations);
    profile_set_fini(&merge->samples);
    profile_set_fini(&merge->times);
    profile_set_fini(&merge->comments);
    mem_free(merge->mapping_rows);
    mem_free(merge->values);
    mem_free(merge->words);
    if (merge->charged_bytes > 0)
        budget_return(merge->budget, merge->charged_bytes);
}

/* False: the budget has no room, and the merge is full. */
static bool charge(struct pprof_merge *merge, uint64_t bytes)
{
    if (merge->budget == NULL)
        return true;
    if (!budget_try_take(merge->budget, bytes)) {
        merge->is_full = true;
        return false;
    }
    merge->charged_bytes += bytes;
    return true;
}

static void discharge(struct pprof_merge *merge, uint64_t bytes)
{
    if (merge->budget == NULL)
        return;
    budget_return(merge->budget, bytes);
    merge->charged_bytes -= bytes;
}

/* grown_array, charged: what there was before stays until it is copied. False: the merge is full.
 */
static bool grow_rows(struct pprof_merge *merge, void *rows, uint32_t *capacity, uint32_t count,
                      size_t size, void **ret_rows)
{
    uint64_t before = *capacity * (uint64_t)size;
    uint64_t most = (2 * ((uint64_t)*capacity + count) + ROWS_FIRST) * size;
    *ret_rows = rows;
    if (count <= *capacity && rows != NULL)
        return true;
    if (!charge(merge, most))
        return false;
    *ret_rows = grown_array(rows, capacity, count, size);
    discharge(merge, most + before - *capacity * (uint64_t)size);
    return true;
}

static uint32_t text_of(struct adding *adding, uint32_t index)
{
    assert(index < adding->from->strings_count);
    if (adding->strings[index] == 0)
        adding->strings[index] =
            pprof_writer_string(&adding->merge->writer, adding->from->strings[index]);
    return adding->strings[index];
}

static uint64_t *key_room(struct pprof_merge *merge, size_t words)
{
    assert(words < UINT32_MAX / 2);
    merge->words =
        grown_array(merge->words, &merge->words_capacity, (uint32_t)words, sizeof(merge->words[0]));
    return merge->words;
}

/* Returns the entry's id; *ret_is_new: it was added. 0 when the merge is full. */
static uint32_t add_key(struct pprof_merge *merge, struct profile_set *set, const uint64_t *words,
                        size_t count, bool *ret_is_new)
{
    uint32_t known = set->count;
    size_t bytes = count * sizeof(words[0]);
    assert(count > 0);
    *ret_is_new = false;
    merge->is_full |= !budget_has_room(merge->budget, profile_set_growth(set, bytes)) ||
                      (merge->budget != NULL && merge->writer.has_failed);
    if (merge->is_full)
        return 0;
    uint32_t id = profile_set_add(set, slice_of(words, bytes));
    *ret_is_new = id == known;
    return id;
}

static bool add_columns(struct adding *adding, struct error *error)
{
    struct pprof_merge *merge = adding->merge;
    const struct pprof *from = adding->from;
    bool is_new;
    for (size_t i = 0; i < from->sample_types_count; i++) {
        const uint64_t key[] = {text_of(adding, from->sample_types[i].type),
                                text_of(adding, from->sample_types[i].unit)};
        uint32_t column =
            i < PPROF_COLUMNS_MAX ? add_key(merge, &merge->columns, key, 2, &is_new) : 0;
        if (merge->is_full)
            return false;
        if (column == 0 || column > PPROF_COLUMNS_MAX)
            return error_set(
                error, "more than %d value types, the most in one pprof profile; take fewer files",
                PPROF_COLUMNS_MAX);
        assert(column > 0);
        adding->columns[i] = column - 1;
        const struct pprof_value_type type = {.type = (uint32_t)key[0], .unit = (uint32_t)key[1]};
        if (is_new)
            pprof_writer_value_type(&merge->writer, PPROF_SAMPLE_TYPE, type);
    }
    /* Room for all columns in each row of values. */
    uint32_t room = merge->columns_room;
    assert(room > 0);
    while (room < merge->columns.count - 1)
        room *= 2;
    if (room != merge->columns_room) {
        size_t bytes = merge->values_capacity * sizeof(merge->values[0]);
        if (!charge(merge, bytes * room))
            return false;
        int64_t *values = mem_zalloc(bytes * room);
        for (size_t i = 0; i < merge->values_capacity; i++)
            memcpy(values + i * room, merge->values + i * merge->columns_room,
                   merge->columns_room * sizeof(values[0]));
        mem_free(merge->values);
        merge->values = merge->values_capacity > 0 ? values : NULL;
        if (merge->values == NULL)
            mem_free(values);
        discharge(merge, bytes * merge->columns_room);
        merge->columns_room = room;
    }
    return true;
}

static int compare_labels(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    for (size_t i = 0; i < LABEL_WORDS; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static void add_samples(struct adding *adding)
{
    struct pprof_merge *merge = adding->merge;
    assert(merge->columns_room > 0);
    for (size_t i = 0; i < adding->from->samples_count && !merge->is_full; i++) {
        const struct pprof_sample *sample = &adding->from->samples[i];
        /* Words of a sample's key: the number of locations, the locations, LABEL_WORDS for each
         * label; the order of labels has no meaning. */
        uint64_t *key =
            key_room(merge, 1 + sample->locations_count + LABEL_WORDS * sample->labels_count);
        size_t count = 0;
        bool is_new;
        key[count++] = sample->locations_count;
        for (size_t j = 0; j < sample->locations_count; j++) {
            assert(sample->locations[j] <= adding->from->locations_count);
            key[count++] = adding->locations[sample->locations[j]];
        }
        for (size_t j = 0; j < sample->labels_count; j++) {
            const struct pprof_label *label = &sample->labels[j];
            key[count++] = text_of(adding, label->key);
            key[count++] = text_of(adding, label->text);
            key[count++] = text_of(adding, label->unit);
            key[count++] = (uint64_t)label->number;
        }
        qsort(key + 1 + sample->locations_count, sample->labels_count, LABEL_WORDS * sizeof(key[0]),
              compare_labels);
        uint32_t id = add_key(merge, &merge->samples, key, count, &is_new);
        void *values;
        bool has_room = grow_rows(merge, merge->values, &merge->values_capacity, id + 1,
                                  merge->columns_room * sizeof(merge->values[0]), &values);
        merge->values = values;
        if (!has_room)
            return;
        int64_t *row = merge->values + (size_t)id * merge->columns_room;
        for (size_t k = 0; k < adding->from->sample_types_count; k++)
            row[adding->columns[k]] = saturated_sum(row[adding->columns[k]], sample->values[k]);
    }
}

static void take_first(struct adding *adding, uint32_t *to, uint32_t text)
{
    if (*to == 0)
        *to = text_of(adding, text);
}

/* Fields that exist once. Durations of different times are summed; columns of one time share
 * one. */
static void add_head(struct adding *adding)
{
    const struct pprof *from = adding->from;
    struct pprof *head = &adding->merge->head;
    const uint64_t time[] = {1, (uint64_t)from->time_ns, (uint64_t)from->duration_ns};
    bool is_new;
    assert(from->strings_count > 0);
    take_first(adding, &head->drop_frames, from->drop_frames);
    take_first(adding, &head->keep_frames, from->keep_frames);
    take_first(adding, &head->default_sample_type, from->default_sample_type);
    take_first(adding, &head->doc_url, from->doc_url);
    if (head->period_type.type == 0 && from->has_period_type) {
        head->period_type.type = text_of(adding, from->period_type.type);
        head->period_type.unit = text_of(adding, from->period_type.unit);
        head->has_period_type = true;
    }
    if (head->period < from->period)
        head->period = from->period;
    if (from->time_ns != 0 && (head->time_ns == 0 || from->time_ns < head->time_ns))
        head->time_ns = from->time_ns;
    add_key(adding->merge, &adding->merge->times, time, 3, &is_new);
    if (is_new)
        head->duration_ns = saturated_sum(head->duration_ns, from->duration_ns);
    for (size_t i = 0; i < from->comments_count; i++) {
        const uint64_t comment = text_of(adding, from->comments[i]);
        add_key(adding->merge, &adding->merge->comments, &comment, 1, &is_new);
        if (is_new)
            pprof_writer_number(&adding->merge->writer, PPROF_COMMENT, comment);
    }
}

static void add_functions(struct adding *adding)
{
    struct pprof_merge *merge = adding->merge;
    const struct pprof *pprof = adding->from;
    bool is_new;
    for (size_t i = 0; i < pprof->functions_count && !merge->is_full; i++) {
        struct pprof_function function = pprof->functions[i];
        function.name = text_of(adding, function.name);
        function.system_name = text_of(adding, function.system_name);
        function.filename = text_of(adding, function.filename);
        const uint64_t key[] = {function.name, function.system_name, function.filename,
                                (uint64_t)function.start_line};
        function.id = add_key(merge, &merge->functions, key, 4, &is_new);
        adding->functions[i + 1] = (uint32_t)function.id;
        if (is_new)
            pprof_writer_function(&merge->writer, &function);
    }
}

static void add_mappings(struct adding *adding)
{
    struct pprof_merge *merge = adding->merge;
    const struct pprof *pprof = adding->from;
    bool is_new;
    for (size_t i = 0; i < pprof->mappings_count && !merge->is_full; i++) {
        struct pprof_mapping mapping = pprof->mappings[i];
        mapping.filename = text_of(adding, mapping.filename);
        mapping.build_id = text_of(adding, mapping.build_id);
        const uint64_t key[] = {mapping.memory_start, mapping.memory_limit, mapping.file_offset,
                                mapping.filename, mapping.build_id};
        uint32_t id = add_key(merge, &merge->mappings, key, 5, &is_new);
        void *rows;
        bool has_room = grow_rows(merge, merge->mapping_rows, &merge->mapping_rows_capacity, id + 1,
                                  sizeof(merge->mapping_rows[0]), &rows);
        merge->mapping_rows = rows;
        if (!has_room)
            return;
        /* Flags say how much is known of a mapping, not which one it is: they are combined. */
        const struct pprof_mapping *row = &merge->mapping_rows[id];
        mapping.id = id;
        mapping.has_functions |= row->has_functions;
        mapping.has_filenames |= row->has_filenames;
        mapping.has_line_numbers |= row->has_line_numbers;
        mapping.has_inline_frames |= row->has_inline_frames;
        merge->mapping_rows[id] = mapping;
        adding->mappings[i + 1] = id;
    }
}

static void add_locations(struct adding *adding)
{
    struct pprof_merge *merge = adding->merge;
    const struct pprof *pprof = adding->from;
    bool is_new;
    for (size_t i = 0; i < pprof->locations_count && !merge->is_full; i++) {
        struct pprof_location location = pprof->locations[i];
        struct pprof_line *lines = mem_alloc(location.lines_count * sizeof(lines[0]));
        uint64_t *key = key_room(merge, 3 + 3 * location.lines_count);
        size_t count = 0;
        assert(location.mapping <= pprof->mappings_count);
        location.mapping = adding->mappings[location.mapping];
        key[count++] = location.mapping;
        key[count++] = location.address;
        key[count++] = location.is_folded;
        for (size_t k = 0; k < location.lines_count; k++) {
            lines[k] = location.lines[k];
            lines[k].function = adding->functions[lines[k].function];
            key[count++] = lines[k].function;
            key[count++] = (uint64_t)lines[k].line;
            key[count++] = (uint64_t)lines[k].column;
        }
        location.lines = lines;
        location.id = add_key(merge, &merge->locations, key, count, &is_new);
        adding->locations[i + 1] = (uint32_t)location.id;
        if (is_new)
            pprof_writer_location(&merge->writer, &location);
        mem_free(lines);
    }
}

bool pprof_merge_add(struct pprof_merge *merge, const struct pprof *pprof, struct error *error)
{
    struct adding adding = {.merge = merge, .from = pprof};
    uint64_t indices = (uint64_t)pprof->strings_count + pprof->functions_count +
                       pprof->mappings_count + pprof->locations_count + 3;
    error->text[0] = '\0';
    if (charge(merge, indices * sizeof(uint32_t))) {
        adding.strings = mem_zalloc(pprof->strings_count * sizeof(uint32_t));
        adding.functions = mem_zalloc((pprof->functions_count + 1) * sizeof(uint32_t));
        adding.mappings = mem_zalloc((pprof->mappings_count + 1) * sizeof(uint32_t));
        adding.locations = mem_zalloc((pprof->locations_count + 1) * sizeof(uint32_t));
        if (add_columns(&adding, error)) {
            add_functions(&adding);
            add_mappings(&adding);
            add_locations(&adding);
            add_samples(&adding);
            add_head(&adding);
        }
        mem_free(adding.strings);
        mem_free(adding.functions);
        mem_free(adding.mappings);
        mem_free(adding.locations);
        discharge(merge, indices * sizeof(uint32_t));
    }
    if (merge->is_full)
        error_set(error, NO_ROOM);
    return error->text[0] == '\0';
}

/* Word `index` of a key, which need not be aligned. */
static uint64_t word_at(struct slice key, size_t index)
{
    uint64_t word;
    assert((index + 1) * sizeof(word) <= key.size);
    memcpy(&word, key.data + index * sizeof(word), sizeof(word));
    return word;
}

struct buffer *pprof_merge_take(struct pprof_merge *merge, struct error *error)
{
    struct pprof_writer *writer = &merge->writer;
    const struct pprof *head = &merge->head;
    for (uint32_t i = 1; i < merge->mappings.count; i++)
        pprof_writer_mapping(writer, &merge->mapping_rows[i]);
    for (uint32_t i = 1; i < merge->samples.count; i++) {
        struct slice key = profile_set_at(&merge->samples, i);
        size_t locations_count = (size_t)word_at(key, 0);
        size_t labels_count = (key.size / sizeof(uint64_t) - 1 - locations_count) / LABEL_WORDS;
        uint32_t *locations = mem_alloc(locations_count * sizeof(locations[0]));
        struct pprof_label *labels = mem_alloc(labels_count * sizeof(labels[0]));
        size_t at = 1;
        assert(i > 0);
        for (size_t j = 0; j < locations_count; j++)
            locations[j] = (uint32_t)word_at(key, at++);
        for (size_t j = 0; j < labels_count; j++, at += LABEL_WORDS)
            labels[j] = (struct pprof_label){.key = (uint32_t)word_at(key, at),
                                             .text = (uint32_t)word_at(key, at + 1),
                                             .unit = (uint32_t)word_at(key, at + 2),
                                             .number = (int64_t)word_at(key, at + 3)};
        const struct pprof_sample sample = {
            .locations = locations,
            .locations_count = locations_count,
            .labels = labels,
            .labels_count = labels_count,
            .values = merge->values + (size_t)i * merge->columns_room,
        };
        pprof_writer_sample(&merge->writer, &sample, merge->columns.count - 1);
        mem_free(locations);
        mem_free(labels);
    }
    if (head->has_period_type)
        pprof_writer_value_type(writer, PPROF_PERIOD_TYPE, head->period_type);
    pprof_writer_number(writer, PPROF_PERIOD, (uint64_t)head->period);
    pprof_writer_number(writer, PPROF_TIME, (uint64_t)head->time_ns);
    pprof_writer_number(writer, PPROF_DURATION, (uint64_t)head->duration_ns);
    pprof_writer_number(writer, PPROF_DROP_FRAMES, head->drop_frames);
    pprof_writer_number(writer, PPROF_KEEP_FRAMES, head->keep_frames);
    pprof_writer_number(writer, PPROF_DEFAULT_SAMPLE_TYPE, head->default_sample_type);
    pprof_writer_number(writer, PPROF_DOC_URL, head->doc_url);
    struct buffer *buffer = pprof_writer_take(writer);
    if (buffer == NULL && merge->budget != NULL)
        error_set(error, NO_ROOM);
    else if (buffer == NULL)
        error_set(error, "the result is larger than %llu MiB; take fewer or smaller files",
                  (unsigned long long)(PROFILE_FILE_BYTES_MAX / MIB));
    return buffer;
}
