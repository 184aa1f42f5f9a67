/* SPDX-License-Identifier: Apache-2.0 */
/* Converts labels to attributes of the resource and of the Profiles, and back. Pure functions; any
 * thread. */
#include "src/profiles/pyroscope/series_otlp.h"

#include "src/base/buffer.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof_to_otlp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Fields of Resource, KeyValue, AnyValue and ArrayValue. */
enum {
    RESOURCE_ATTRIBUTES = 1,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    ANY_STRING = 1,
    ANY_ARRAY = 5,
    ARRAY_VALUES = 1,
};

/* The private labels, one whose name is taken, and the list of names. */
enum { ATTRIBUTES_MAX = SERIES_PRIVATE_LABELS_MAX + 2 };

struct conversion {
    struct budget *budget;
    struct byte_run resource;
    struct byte_run names;  /* ArrayValue: of the labels in the resource */
    struct byte_run values; /* of the private labels, one AnyValue after the other */
    struct byte_run keys;   /* the same */
    struct pprof_to_otlp_attribute attributes[ATTRIBUTES_MAX];
    size_t count;
    bool has_failed; /* no memory */
};

static void append(struct conversion *conversion, struct byte_run *run, uint32_t number,
                   struct slice content)
{
    conversion->has_failed |= !byte_run_append_message(run, conversion->budget, number, content);
}

static void add_label(struct conversion *conversion, const struct series *series,
                      const struct series_label *label)
{
    if (label->value.size == 0)
        return; /* counts as absent, for the server too */
    struct slice key = label->name;
    bool is_private = series_is_private(key);
    if (slice_equal_text(key, "service_name"))
        key = slice_of_text("service.name");
    else if (slice_equal_text(key, "service.name"))
        is_private = series_find(series, "service_name") != NULL; /* the name is taken */
    if (is_private) {
        /* Slices into keys and values are set once nothing is appended any more. */
        assert(conversion->count < ATTRIBUTES_MAX);
        size_t keys_before = conversion->keys.size;
        size_t values_before = conversion->values.size;
        conversion->has_failed |=
            !byte_run_append(&conversion->keys, conversion->budget,
                             slice_of_text(SERIES_PRIVATE_PREFIX)) ||
            !byte_run_append(&conversion->keys, conversion->budget, label->name);
        append(conversion, &conversion->values, ANY_STRING, label->value);
        conversion->attributes[conversion->count++] = (struct pprof_to_otlp_attribute){
            .key.size = conversion->keys.size - keys_before,
            .value.size = conversion->values.size - values_before,
        };
        return;
    }
    struct byte_run value = {.size = 0};
    struct byte_run pair = {.size = 0};
    struct byte_run name = {.size = 0};
    append(conversion, &value, ANY_STRING, label->value);
    append(conversion, &pair, PAIR_KEY, key);
    append(conversion, &pair, PAIR_VALUE, byte_run_slice(&value));
    append(conversion, &conversion->resource, RESOURCE_ATTRIBUTES, byte_run_slice(&pair));
    append(conversion, &name, ANY_STRING, key);
    append(conversion, &conversion->names, ARRAY_VALUES, byte_run_slice(&name));
    scratch_fini(&value.scratch, conversion->budget);
    scratch_fini(&pair.scratch, conversion->budget);
    scratch_fini(&name.scratch, conversion->budget);
}

bool series_to_otlp(const struct series *series, const struct pprof *pprof, struct budget *budget,
                    struct buffer **ret_request, bool *ret_is_too_large)
{
    assert(series->count <= SERIES_LABELS_MAX);
    struct conversion conversion = {.budget = budget};
    struct byte_run array = {.size = 0};
    for (size_t i = 0; i < series->count; i++)
        add_label(&conversion, series, &series->labels[i]);
    const uint8_t *key = conversion.keys.scratch.memory;
    const uint8_t *value = conversion.values.scratch.memory;
    for (size_t i = 0; i < conversion.count; i++) {
        conversion.attributes[i].key.data = key;
        conversion.attributes[i].value.data = value;
        key += conversion.attributes[i].key.size;
        value += conversion.attributes[i].value.size;
    }
    /* One more attribute names the labels that are in the resource. */
    assert(conversion.count < ATTRIBUTES_MAX);
    append(&conversion, &array, ANY_ARRAY, byte_run_slice(&conversion.names));
    conversion.attributes[conversion.count++] = (struct pprof_to_otlp_attribute){
        .key = slice_of_text(PROFILE_LABEL_NAMES),
        .value = byte_run_slice(&array),
    };
    struct pprof_to_otlp_source source = {
        .pprof = pprof,
        .resource = byte_run_slice(&conversion.resource),
        .attributes = conversion.attributes,
        .attributes_count = conversion.count,
    };
    if (ret_is_too_large != NULL)
        *ret_is_too_large = false;
    bool is_converted =
        !conversion.has_failed && pprof_to_otlp(&source, budget, ret_request, ret_is_too_large);
    scratch_fini(&array.scratch, budget);
    scratch_fini(&conversion.resource.scratch, budget);
    scratch_fini(&conversion.names.scratch, budget);
    scratch_fini(&conversion.values.scratch, budget);
    scratch_fini(&conversion.keys.scratch, budget);
    return is_converted;
}

/* By index: 0: not looked at yet; NO_LABEL; else the number of the last Profile that has it. */
enum { NO_LABEL = 1 };

void series_privates_init(struct series_privates *privates,
                          const struct profile_dictionary *dictionary, struct budget *budget)
{
    *privates = (struct series_privates){
        .dictionary = dictionary, .budget = budget, .profile_no = NO_LABEL};
}

void series_privates_fini(struct series_privates *privates)
{
    scratch_fini(&privates->marks, privates->budget);
}

/* False: the attribute is no private label, or one that no client can have sent. */
static bool read_private(const struct profile_dictionary *dictionary, struct profile_index index,
                         bool is_checked, struct series_label *ret_label)
{
    static const size_t prefix = sizeof(SERIES_PRIVATE_PREFIX) - 1;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
        return false;
    struct slice key = profile_string_at(dictionary, attribute.key);
    struct value value = value_read(attribute.value);
    if (key.size <= prefix || key.size > prefix + SERIES_NAME_BYTES_MAX ||
        memcmp(key.data, SERIES_PRIVATE_PREFIX, prefix) != 0 || value.type != VALUE_STRING)
        return false;
    if (!is_checked &&
        (otlp_text_valid(key) < key.size || otlp_text_valid(value.bytes) < value.bytes.size))
        return false;
    *ret_label = (struct series_label){.name = slice_of(key.data + prefix, key.size - prefix),
                                       .value = value.bytes};
    return true;
}

void series_privates_read(struct series_privates *privates, const struct profile *profile)
{
    const struct profile_dictionary *dictionary = privates->dictionary;
    const size_t attributes = dictionary->counts[PROFILE_ATTRIBUTES];
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct profile_index index;
    assert(privates->profile_no < UINT32_MAX);
    privates->profile_no++;
    privates->count = 0;
    privates->left_out = 0;
    uint32_t *marks = NULL;
    while (profile_indices_next(&reader, &index)) {
        struct series_label label;
        if (!profile_index_is_set(index) || !profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            continue;
        if (marks == NULL)
            marks = scratch_room(&privates->marks, privates->budget, attributes * sizeof(marks[0]));
        privates->has_failed |= marks == NULL;
        if (marks == NULL)
            return;
        uint32_t *mark = &marks[profile_place(dictionary, PROFILE_ATTRIBUTES, index)];
        if (*mark == NO_LABEL || *mark == privates->profile_no)
            continue;
        bool is_label = read_private(dictionary, index, *mark != 0, &label);
        *mark = is_label ? privates->profile_no : NO_LABEL;
        if (is_label && privates->count < SERIES_LABELS_MAX)
            privates->labels[privates->count++] = label;
        else
            privates->left_out += is_label;
    }
}

struct slice series_private_name(const struct series_privates *privates)
{
    for (size_t i = 0; i < privates->count; i++) {
        struct series_label label = privates->labels[i];
        if (slice_equal_text(label.name, "__name__") && label.value.size > 0)
            return label.value;
    }
    return slice_of(NULL, 0);
}
