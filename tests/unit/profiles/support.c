/* SPDX-License-Identifier: Apache-2.0 */
/* Prints profiles as text, once from our tables and once from protobuf-c's objects. */
#include "tests/unit/profiles/support.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/profiles/pprof/pprof_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/pprof/profile.pb-c.h"

enum { FILE_BYTES_MAX = 1 << 20 };

struct text {
    char *data;
    size_t size;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    assert(size >= 0 && (size_t)size < sizeof(line));
    text->data = mem_resize(text->data, text->size + (size_t)size + 1);
    memcpy(text->data + text->size, line, (size_t)size + 1);
    text->size += (size_t)size;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines, puts head before them and gives everything back as one text. */
static char *joined(struct text *head, char **lines, size_t count)
{
    qsort(lines, count, sizeof(lines[0]), compare_texts);
    for (size_t i = 0; i < count; i++) {
        add(head, "\n");
        head->data = mem_resize(head->data, head->size + strlen(lines[i]) + 1);
        memcpy(head->data + head->size, lines[i], strlen(lines[i]) + 1);
        head->size += strlen(lines[i]);
        mem_free(lines[i]);
    }
    mem_free(lines);
    return head->data;
}

struct slice packed_message(const void *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *room = mem_alloc(size);
    protobuf_c_message_pack(message, room);
    return slice_of(room, size);
}

struct slice corpus_file(const char *name)
{
    char path[256];
    char *content;
    size_t size;
    struct error error;
    struct buffer *inflated;
    snprintf(path, sizeof(path), "tests/fuzz/corpus/fuzz_pprof/%s", name);
    int status = file_read_whole(path, FILE_BYTES_MAX, &content, &size);
    assert(status == 0);
    struct gzip *gzip = gzip_create();
    bool is_fine =
        pprof_unpack(gzip, NULL, slice_of(content, size), FILE_BYTES_MAX, &inflated, &error);
    assert(is_fine);
    gzip_destroy(gzip);
    if (inflated == NULL)
        return slice_of(content, size);
    void *copy = mem_copy(inflated->data, inflated->size);
    size = inflated->size;
    buffer_unref(inflated);
    mem_free(content);
    return slice_of(copy, size);
}

#define TEXT(pprof, index)                                                                         \
    (int)(pprof)->strings[index].size, (const char *)(pprof)->strings[index].data

static void add_frame(struct text *text, const struct pprof *pprof, uint32_t place)
{
    const struct pprof_location *location = &pprof->locations[place - 1];
    if (location->mapping != 0) {
        const struct pprof_mapping *mapping = &pprof->mappings[location->mapping - 1];
        add(text, "%.*s@%.*s", TEXT(pprof, mapping->filename), TEXT(pprof, mapping->build_id));
    }
    add(text, "+%" PRIx64, location->address);
    for (size_t i = 0; i < location->lines_count; i++) {
        static const struct pprof_function none;
        const struct pprof_line *line = &location->lines[i];
        const struct pprof_function *function =
            line->function == 0 ? &none : &pprof->functions[line->function - 1];
        add(text, "/%.*s:%.*s:%" PRId64 ":%" PRId64, TEXT(pprof, function->name),
            TEXT(pprof, function->filename), line->line, line->column);
    }
    add(text, ";");
}

/* Labels sorted by their text, as the Go oracle does. */
static void add_labels(struct text *text, char **labels, size_t count)
{
    qsort(labels, count, sizeof(labels[0]), compare_texts);
    for (size_t i = 0; i < count; i++) {
        add(text, " %s", labels[i]);
        mem_free(labels[i]);
    }
    mem_free(labels);
}

static char *described_sample(const struct pprof *pprof, const struct pprof_sample *sample)
{
    struct text text = {0};
    char **labels = mem_alloc((sample->labels_count + 1) * sizeof(labels[0]));
    for (size_t i = 0; i < sample->locations_count; i++)
        add_frame(&text, pprof, sample->locations[i]);
    for (size_t i = 0; i < pprof->sample_types_count; i++)
        add(&text, "%s%" PRId64, i == 0 ? "[" : " ", sample->values[i]);
    add(&text, "]");
    for (size_t i = 0; i < sample->labels_count; i++) {
        const struct pprof_label *label = &sample->labels[i];
        struct text one = {0};
        if (label->text != 0)
            add(&one, "%.*s=%.*s", TEXT(pprof, label->key), TEXT(pprof, label->text));
        else
            add(&one, "%.*s=%" PRId64 "%.*s", TEXT(pprof, label->key), label->number,
                TEXT(pprof, label->unit));
        labels[i] = one.data;
    }
    add_labels(&text, labels, sample->labels_count);
    return text.data;
}

char *pprof_described(const struct pprof *pprof)
{
    struct text text = {0};
    char **samples = mem_alloc((pprof->samples_count + 1) * sizeof(samples[0]));
    for (size_t i = 0; i < pprof->sample_types_count; i++)
        add(&text, "%.*s:%.*s ", TEXT(pprof, pprof->sample_types[i].type),
            TEXT(pprof, pprof->sample_types[i].unit));
    add(&text, "period %.*s:%.*s %" PRId64 " time %" PRId64 " duration %" PRId64,
        TEXT(pprof, pprof->period_type.type), TEXT(pprof, pprof->period_type.unit), pprof->period,
        pprof->time_ns, pprof->duration_ns);
    for (size_t i = 0; i < pprof->samples_count; i++)
        samples[i] = described_sample(pprof, &pprof->samples[i]);
    return joined(&text, samples, pprof->samples_count);
}

static const Perftools__Profiles__Location *find_location(
    const Perftools__Profiles__Profile *profile, uint64_t id)
{
    for (size_t i = 0; i < profile->n_location; i++)
        if (profile->location[i]->id == id)
            return profile->location[i];
    assert(false);
    return NULL;
}

static void add_oracle_frame(struct text *text, const Perftools__Profiles__Profile *profile,
                             uint64_t id)
{
    const Perftools__Profiles__Location *location = find_location(profile, id);
    for (size_t i = 0; i < profile->n_mapping; i++)
        if (profile->mapping[i]->id == location->mapping_id)
            add(text, "%s@%s", profile->string_table[profile->mapping[i]->filename],
                profile->string_table[profile->mapping[i]->build_id]);
    add(text, "+%" PRIx64, location->address);
    for (size_t i = 0; i < location->n_line; i++) {
        const Perftools__Profiles__Function *function = NULL;
        for (size_t k = 0; k < profile->n_function; k++)
            if (profile->function[k]->id == location->line[i]->function_id)
                function = profile->function[k];
        add(text, "/%s:%s:%" PRId64 ":%" PRId64,
            function == NULL ? "" : profile->string_table[function->name],
            function == NULL ? "" : profile->string_table[function->filename],
            location->line[i]->line, location->line[i]->column);
    }
    add(text, ";");
}

static char *oracle_sample(const Perftools__Profiles__Profile *profile,
                           const Perftools__Profiles__Sample *sample)
{
    struct text text = {0};
    char **labels = mem_alloc((sample->n_label + 1) * sizeof(labels[0]));
    for (size_t i = 0; i < sample->n_location_id; i++)
        add_oracle_frame(&text, profile, sample->location_id[i]);
    for (size_t i = 0; i < sample->n_value; i++)
        add(&text, "%s%" PRId64, i == 0 ? "[" : " ", sample->value[i]);
    add(&text, "]");
    for (size_t i = 0; i < sample->n_label; i++) {
        const Perftools__Profiles__Label *label = sample->label[i];
        struct text one = {0};
        if (label->str != 0)
            add(&one, "%s=%s", profile->string_table[label->key],
                profile->string_table[label->str]);
        else
            add(&one, "%s=%" PRId64 "%s", profile->string_table[label->key], label->num,
                profile->string_table[label->num_unit]);
        labels[i] = one.data;
    }
    add_labels(&text, labels, sample->n_label);
    return text.data;
}

char *pprof_described_by_oracle(struct slice bytes)
{
    struct text text = {0};
    Perftools__Profiles__Profile *profile =
        perftools__profiles__profile__unpack(NULL, bytes.size, bytes.data);
    assert(profile != NULL);
    char **samples = mem_alloc((profile->n_sample + 1) * sizeof(samples[0]));
    for (size_t i = 0; i < profile->n_sample_type; i++)
        add(&text, "%s:%s ", profile->string_table[profile->sample_type[i]->type],
            profile->string_table[profile->sample_type[i]->unit]);
    const Perftools__Profiles__ValueType *period = profile->period_type;
    add(&text, "period %s:%s %" PRId64 " time %" PRId64 " duration %" PRId64,
        period == NULL ? "" : profile->string_table[period->type],
        period == NULL ? "" : profile->string_table[period->unit], profile->period,
        profile->time_nanos, profile->duration_nanos);
    for (size_t i = 0; i < profile->n_sample; i++)
        samples[i] = oracle_sample(profile, profile->sample[i]);
    size_t count = profile->n_sample;
    perftools__profiles__profile__free_unpacked(profile, NULL);
    return joined(&text, samples, count);
}
