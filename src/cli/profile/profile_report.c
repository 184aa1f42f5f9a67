/* SPDX-License-Identifier: Apache-2.0 */
/* Sums all samples of a request. Names and labels are resolved once per dictionary entry. One
 * owner. */
#include "src/cli/profile/profile_report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/profile/report_limits.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_text.h"

enum { ADDRESS_NAME_BYTES_MAX = 512 };

/* One request being added to the report. */
struct adding {
    struct report *report;
    struct report_type *type;
    struct arena arena;
    struct profile_dictionary dictionary;
    uint32_t *names;  /* by function: its name + 1; 0: not looked up yet */
    uint32_t *labels; /* by attribute, the same */
    uint32_t *frames; /* of the current stack; REPORT_DEPTH_MAX of them */
    size_t frames_count;
};

void report_init(struct report *report)
{
    *report = (struct report){.types_count = 0};
    profile_set_init(&report->names, NULL);
    profile_set_init(&report->texts, NULL);
    profile_set_init(&report->label_keys, NULL);
    profile_set_init(&report->label_values, NULL);
    profile_set_init(&report->links, NULL);
}

void report_fini(struct report *report)
{
    assert(report->types_count <= REPORT_TYPES_MAX);
    for (size_t i = 0; i < report->types_count; i++) {
        call_tree_fini(&report->types[i].tree);
        mem_free(report->types[i].functions);
    }
    report->types_count = 0;
    profile_set_fini(&report->names);
    profile_set_fini(&report->texts);
    profile_set_fini(&report->label_keys);
    profile_set_fini(&report->label_values);
    profile_set_fini(&report->links);
    mem_free(report->files);
    mem_free(report->labels);
    mem_free(report->link_samples);
}

struct slice report_name(const struct report *report, uint32_t name)
{
    assert(name < report->names.count);
    return profile_set_at(&report->names, name);
}

struct slice report_text(const struct report *report, uint32_t text)
{
    assert(text < report->texts.count);
    return profile_set_at(&report->texts, text);
}

struct slice report_file(const struct report *report, uint32_t name)
{
    assert(name < report->names.count);
    return report_text(report, name < report->files_capacity ? report->files[name] : 0);
}

struct slice report_label_example(const struct report *report, const struct report_label *label)
{
    assert(label->example < report->label_values.count);
    struct slice content = profile_set_at(&report->label_values, label->example);
    if (content.size < sizeof(uint32_t))
        return slice_of("", 0);
    return slice_of(content.data + sizeof(uint32_t), content.size - sizeof(uint32_t));
}

const struct report_type *report_find_type(const struct report *report, const char *name)
{
    const struct report_type *found = NULL;
    size_t size = name != NULL ? strlen(name) : 0;
    for (size_t i = 0; i < report->types_count; i++) {
        const struct report_type *type = &report->types[i];
        struct slice text = report_text(report, type->type);
        struct slice unit = report_text(report, type->unit);
        if (size == 0) {
            if (type->total != 0 || found == NULL)
                found = type;
            continue;
        }
        /* The type alone, or with its unit after a colon. */
        if (slice_equal_text(text, name) ||
            (size == text.size + 1 + unit.size && slice_equal(slice_of(name, text.size), text) &&
             name[text.size] == ':' &&
             slice_equal(slice_of(name + text.size + 1, unit.size), unit)))
            found = type;
    }
    return found;
}

static struct slice string_at(const struct adding *adding, struct profile_index index)
{
    if (!profile_has(&adding->dictionary, PROFILE_STRINGS, index))
        return slice_of("", 0);
    return profile_string_at(&adding->dictionary, index);
}

static uint32_t add_name(struct report *report, struct slice name, struct slice file)
{
    uint32_t known = report->names.count;
    uint32_t index = profile_set_add(&report->names, name);
    report->files = grown_array(report->files, &report->files_capacity, report->names.count,
                                sizeof(report->files[0]));
    if (index == known || report->files[index] == 0)
        report->files[index] = profile_set_add(&report->texts, file);
    assert(index < report->files_capacity);
    return index;
}

static uint32_t function_name(struct adding *adding, struct profile_index index)
{
    const struct profile_dictionary *dictionary = &adding->dictionary;
    if (!profile_has(dictionary, PROFILE_FUNCTIONS, index) || !profile_index_is_set(index))
        return add_name(adding->report, slice_of_text("[unknown]"), slice_of("", 0));
    uint32_t place = profile_place(dictionary, PROFILE_FUNCTIONS, index);
    if (adding->names[place] != 0)
        return adding->names[place] - 1;
    struct profile_function function = profile_function_at(dictionary, index);
    struct slice name = string_at(adding, function.name);
    if (name.size == 0)
        name = string_at(adding, function.system_name);
    if (name.size == 0)
        name = slice_of_text("[unknown]");
    uint32_t added = add_name(adding->report, name, string_at(adding, function.filename));
    assert(added < UINT32_MAX);
    adding->names[place] = added + 1;
    return added;
}

/* Unsymbolised frames are named by address and file. */
static uint32_t address_name(struct adding *adding, const struct profile_location *location)
{
    char text[ADDRESS_NAME_BYTES_MAX];
    struct slice file = slice_of("", 0);
    assert(location->lines_count == 0);
    if (profile_index_is_set(location->mapping) &&
        profile_has(&adding->dictionary, PROFILE_MAPPINGS, location->mapping))
        file =
            string_at(adding, profile_mapping_at(&adding->dictionary, location->mapping).filename);
    const uint8_t *slash = file.size > 0 ? memrchr(file.data, '/', file.size) : NULL;
    struct slice base = file;
    if (slash != NULL)
        base = slice_of(slash + 1, (size_t)(file.data + file.size - slash - 1));
    base = otlp_text_cut(base, ADDRESS_NAME_BYTES_MAX / 2);
    if (location->address == 0 && base.size == 0)
        return function_name(adding, profile_index_of(0));
    snprintf(text, sizeof(text), "0x%" PRIx64 "%s%.*s%s", location->address,
             base.size > 0 ? " (" : "", (int)base.size,
             base.size > 0 ? (const char *)base.data : "", base.size > 0 ? ")" : "");
    return add_name(adding->report, slice_of_text(text), file);
}

static bool add_frame(struct adding *adding, uint32_t name)
{
    assert(adding->frames_count <= REPORT_DEPTH_MAX);
    if (adding->frames_count == REPORT_DEPTH_MAX)
        return false;
    adding->frames[adding->frames_count++] = name;
    return true;
}

/* Resolves the names of a stack into frames, leaf first. */
static void read_stack(struct adding *adding, struct profile_index index)
{
    const struct profile_dictionary *dictionary = &adding->dictionary;
    adding->frames_count = 0;
    if (!profile_has(dictionary, PROFILE_STACKS, index))
        return;
    struct profile_stack stack = profile_stack_at(dictionary, index);
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_index place;
    while (profile_indices_next(&reader, &place)) {
        if (!profile_index_is_set(place) || !profile_has(dictionary, PROFILE_LOCATIONS, place))
            continue;
        struct profile_location location = profile_location_at(dictionary, place);
        struct wire_reader lines = wire_reader_of(location.bytes);
        struct profile_line line;
        bool has_room = true;
        if (location.lines_count == 0)
            has_room = add_frame(adding, address_name(adding, &location));
        while (has_room && profile_next_line(&lines, &line))
            has_room = add_frame(adding, function_name(adding, line.function));
        if (!has_room) {
            adding->report->cut_stacks++;
            return;
        }
    }
}

/* Returns the key's index in the labels and adds the value to it. */
static uint32_t add_label(struct adding *adding, struct profile_index index)
{
    struct report *report = adding->report;
    uint32_t place = profile_place(&adding->dictionary, PROFILE_ATTRIBUTES, index);
    if (adding->labels[place] != 0)
        return adding->labels[place] - 1;
    struct profile_attribute attribute = profile_attribute_at(&adding->dictionary, index);
    uint32_t key = profile_set_add(&report->texts, string_at(adding, attribute.key));
    uint32_t label = profile_set_add(&report->label_keys, slice_of(&key, sizeof(key)));
    struct slice text = slice_of("", 0);
    report->labels =
        grown_array(report->labels, &report->labels_capacity, label + 1, sizeof(report->labels[0]));
    if (!otlp_text_of_value(&adding->arena, &adding->dictionary, attribute.value,
                            REPORT_LABEL_BYTES_MAX, &text))
        text = slice_of("", 0);
    uint32_t known = report->label_values.count;
    uint8_t *at = profile_set_begin(&report->label_values, sizeof(key) + text.size);
    memcpy(at, &key, sizeof(key));
    if (text.size > 0)
        memcpy(at + sizeof(key), text.data, text.size);
    uint32_t value = profile_set_end(&report->label_values, at + sizeof(key) + text.size);
    report->labels[label].key = key;
    report->labels[label].values += value == known;
    if (report->labels[label].example == 0)
        report->labels[label].example = value;
    assert(label < UINT32_MAX);
    adding->labels[place] = label + 1;
    return label;
}

static void add_sample(struct adding *adding, const struct profile_sample *sample)
{
    struct report *report = adding->report;
    struct report_type *type = adding->type;
    const struct profile_dictionary *dictionary = &adding->dictionary;
    /* The sum of its values; without values each timestamp counts one. */
    struct profile_numbers_reader values = profile_numbers_read(&sample->values);
    int64_t value = 0;
    uint64_t one;
    bool has_values = false;
    for (; profile_numbers_next(&values, &one); has_values = true)
        value = saturated_sum(value, (int64_t)one);
    if (!has_values)
        value = (int64_t)profile_numbers_count(&sample->timestamps);
    report->samples++;
    type->samples++;
    type->total = saturated_sum(type->total, value);

    read_stack(adding, sample->stack);
    type->functions = grown_array(type->functions, &type->functions_capacity, report->names.count,
                                  sizeof(type->functions[0]));
    for (size_t i = 0; i < adding->frames_count; i++) {
        struct report_function *function = &type->functions[adding->frames[i]];
        if (i == 0)
            function->flat = saturated_sum(function->flat, value);
        if (function->sample != report->samples) /* recursion counts once */
            function->cumulative = saturated_sum(function->cumulative, value);
        function->sample = report->samples;
    }
    call_tree_add(&type->tree, adding->frames, adding->frames_count, value);

    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index))
        if (profile_index_is_set(index) && profile_has(dictionary, PROFILE_ATTRIBUTES, index)) {
            uint32_t label = add_label(adding, index);
            report->labels[label].samples++;
        }

    if (!profile_index_is_set(sample->link) ||
        !profile_has(dictionary, PROFILE_LINKS, sample->link))
        return;
    uint8_t ids[REPORT_LINK_BYTES] = {0};
    struct profile_link link = profile_link_at(dictionary, sample->link);
    assert(link.trace_id.size <= 16);
    assert(link.span_id.size <= 8);
    if (link.trace_id.size > 0)
        memcpy(ids, link.trace_id.data, link.trace_id.size);
    if (link.span_id.size > 0)
        memcpy(ids + 16, link.span_id.data, link.span_id.size);
    uint32_t place = profile_set_add(&report->links, slice_of(ids, sizeof(ids)));
    report->link_samples = grown_array(report->link_samples, &report->links_capacity, place + 1,
                                       sizeof(report->link_samples[0]));
    report->link_samples[place]++;
}

static bool add_profile(struct adding *adding, const struct profile *profile, struct error *error)
{
    struct report *report = adding->report;
    struct wire_reader samples = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    uint32_t text = profile_set_add(&report->texts, string_at(adding, profile->sample_type.type));
    uint32_t unit = profile_set_add(&report->texts, string_at(adding, profile->sample_type.unit));
    size_t place = 0;
    while (place < report->types_count &&
           (report->types[place].type != text || report->types[place].unit != unit))
        place++;
    if (place == REPORT_TYPES_MAX)
        return error_set(error, "more than %d value types; split the file", REPORT_TYPES_MAX);
    struct report_type *type = &report->types[place];
    if (place == report->types_count) {
        report->types_count++;
        *type = (struct report_type){.type = text, .unit = unit};
        call_tree_init(&type->tree);
    }
    adding->type = type;
    report->profiles++;
    type->profiles++;
    if (profile->duration_ns > type->duration_ns)
        type->duration_ns = profile->duration_ns;
    if (profile->time_unix_ns != 0 &&
        (type->time_unix_ns == 0 || profile->time_unix_ns < type->time_unix_ns))
        type->time_unix_ns = profile->time_unix_ns;
    while (profile_next_sample(&samples, &sample))
        add_sample(adding, &sample);
    return true;
}

static uint32_t *zeroed_indices(struct arena *arena, size_t count)
{
    uint32_t *indices = arena_try_alloc(arena, count * sizeof(indices[0]));
    assert(count > 0);
    if (indices != NULL)
        memset(indices, 0, count * sizeof(indices[0]));
    return indices;
}

bool report_add(struct report *report, struct slice request, struct error *error)
{
    struct adding adding = {.report = report};
    assert(report->names.count > 0);
    arena_init(&adding.arena, PROFILE_INDEX_BYTES_MAX);
    if (profile_dictionary_open(&adding.dictionary, &adding.arena, request)) {
        const uint32_t *counts = adding.dictionary.counts;
        adding.names = zeroed_indices(&adding.arena, counts[PROFILE_FUNCTIONS] + (size_t)1);
        adding.labels = zeroed_indices(&adding.arena, counts[PROFILE_ATTRIBUTES] + (size_t)1);
        adding.frames = zeroed_indices(&adding.arena, REPORT_DEPTH_MAX);
    }
    bool is_added = adding.names != NULL && adding.labels != NULL && adding.frames != NULL;
    if (!is_added)
        error_set(error, "its dictionary takes more than %llu MiB to index",
                  (unsigned long long)(PROFILE_INDEX_BYTES_MAX / MIB));
    struct profile_iterator at = profile_iterator_of(request);
    while (is_added && profile_iterator_next(&at))
        is_added = add_profile(&adding, &at.profile, error);
    arena_clear(&adding.arena);
    return is_added;
}
