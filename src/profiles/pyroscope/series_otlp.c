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

bool series_next_private(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct series_label *ret_label)
{
    static const size_t prefix = sizeof(SERIES_PRIVATE_PREFIX) - 1;
    struct profile_index index;
    struct otlp_pair pair;
    while (otlp_text_next_pair(dictionary, reader, &index, &pair)) {
        struct slice key = pair.key;
        struct value value = value_read(pair.value);
        if (key.size <= prefix || memcmp(key.data, SERIES_PRIVATE_PREFIX, prefix) != 0 ||
            value.type != VALUE_STRING || otlp_text_valid(key) < key.size ||
            otlp_text_valid(value.bytes) < value.bytes.size)
            continue;
        *ret_label = (struct series_label){.name = slice_of(key.data + prefix, key.size - prefix),
                                           .value = value.bytes};
        return true;
    }
    return false;
}

struct slice series_private_name(const struct profile_dictionary *dictionary,
                                 const struct profile *profile)
{
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct series_label label;
    while (series_next_private(dictionary, &reader, &label))
        if (slice_equal_text(label.name, "__name__") && label.value.size > 0)
            return label.value;
    return slice_of(NULL, 0);
}
