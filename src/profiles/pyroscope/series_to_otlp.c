/* SPDX-License-Identifier: Apache-2.0 */
/* Labels into attributes of the resource and of the Profiles. Pure function; any thread. */
#include "src/profiles/pyroscope/series_to_otlp.h"

#include "src/base/buffer.h"
#include "src/profiles/otlp/profile_upload.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pprof/pprof_to_otlp.h"
#include "src/profiles/pyroscope/series.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Fields of Resource, KeyValue, AnyValue and ArrayValue. */
enum {
    RESOURCE_ATTRIBUTES = 1,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    VALUE_TEXT = 1,
    VALUE_ARRAY = 5,
    ARRAY_VALUES = 1,
};

/* The private ones, one whose name is taken, and the list of names. */
enum { ATTRIBUTES_MAX = SERIES_PRIVATE_LABELS_MAX + 2 };

struct translation {
    struct budget *budget;
    struct byte_run resource;
    struct byte_run names;  /* ArrayValue: of the labels in the resource */
    struct byte_run values; /* of the private labels, one AnyValue after the other */
    struct byte_run keys;   /* the same */
    struct pprof_to_otlp_attribute attributes[ATTRIBUTES_MAX];
    size_t count;
    bool has_failed; /* no memory */
};

static void append_text(struct translation *translation, struct byte_run *run, uint32_t number,
                        struct slice text)
{
    translation->has_failed |= !byte_run_append_message(run, translation->budget, number, text);
}

/* What the label is called in the resource; no data: that name is taken, and the label is told
 * apart from the resource. */
static struct slice key_of(const struct series *series, struct slice name)
{
    if (slice_equal_text(name, "service_name"))
        return slice_of_text("service.name");
    if (slice_equal_text(name, "service.name") && series_find(series, "service_name") != NULL)
        return slice_of(NULL, 0);
    return name;
}

static void add_public(struct translation *translation, struct slice key, struct slice value)
{
    assert(key.size > 0);
    struct byte_run text = {.size = 0};
    struct byte_run pair = {.size = 0};
    struct byte_run name = {.size = 0};
    append_text(translation, &text, VALUE_TEXT, value);
    append_text(translation, &pair, PAIR_KEY, key);
    append_text(translation, &pair, PAIR_VALUE, byte_run_slice(&text));
    append_text(translation, &translation->resource, RESOURCE_ATTRIBUTES, byte_run_slice(&pair));
    append_text(translation, &name, VALUE_TEXT, key);
    append_text(translation, &translation->names, ARRAY_VALUES, byte_run_slice(&name));
    scratch_fini(&text.scratch, translation->budget);
    scratch_fini(&pair.scratch, translation->budget);
    scratch_fini(&name.scratch, translation->budget);
}

/* Slices into keys and values are valid only once nothing is appended any more: sizes for now. */
static void add_private(struct translation *translation, const struct series_label *label)
{
    assert(translation->count < ATTRIBUTES_MAX);
    size_t keys_before = translation->keys.size;
    size_t values_before = translation->values.size;
    translation->has_failed |=
        !byte_run_append(&translation->keys, translation->budget,
                         slice_of_text(SERIES_PRIVATE_PREFIX)) ||
        !byte_run_append(&translation->keys, translation->budget, label->name);
    append_text(translation, &translation->values, VALUE_TEXT, label->value);
    translation->attributes[translation->count++] = (struct pprof_to_otlp_attribute){
        .key.size = translation->keys.size - keys_before,
        .value.size = translation->values.size - values_before,
    };
}

static void add_label(struct translation *translation, const struct series *series,
                      const struct series_label *label)
{
    struct slice key = key_of(series, label->name);
    if (label->value.size == 0)
        return; /* as good as none, to the server too */
    if (series_is_private(label->name) || key.size == 0)
        add_private(translation, label);
    else
        add_public(translation, key, label->value);
}

/* Gives the private attributes their places, and adds the one that names the public labels. */
static void finish_attributes(struct translation *translation, struct byte_run *array)
{
    assert(translation->count < ATTRIBUTES_MAX);
    const uint8_t *key = translation->keys.scratch.memory;
    const uint8_t *value = translation->values.scratch.memory;
    for (size_t i = 0; i < translation->count; i++) {
        translation->attributes[i].key.data = key;
        translation->attributes[i].value.data = value;
        key += translation->attributes[i].key.size;
        value += translation->attributes[i].value.size;
    }
    append_text(translation, array, VALUE_ARRAY, byte_run_slice(&translation->names));
    translation->attributes[translation->count++] = (struct pprof_to_otlp_attribute){
        .key = slice_of_text(PROFILE_LABEL_NAMES),
        .value = byte_run_slice(array),
    };
}

static void translation_fini(struct translation *translation)
{
    assert(translation != NULL);
    scratch_fini(&translation->resource.scratch, translation->budget);
    scratch_fini(&translation->names.scratch, translation->budget);
    scratch_fini(&translation->values.scratch, translation->budget);
    scratch_fini(&translation->keys.scratch, translation->budget);
}

bool series_to_otlp(const struct series *series, const struct pprof *pprof, struct budget *budget,
                    struct buffer **ret_request)
{
    assert(series->count <= SERIES_LABELS_MAX);
    assert(ret_request != NULL);
    struct translation translation = {.budget = budget};
    struct byte_run array = {.size = 0};
    for (size_t i = 0; i < series->count; i++)
        add_label(&translation, series, &series->labels[i]);
    finish_attributes(&translation, &array);
    struct pprof_to_otlp_source source = {
        .pprof = pprof,
        .resource = byte_run_slice(&translation.resource),
        .attributes = translation.attributes,
        .attributes_count = translation.count,
    };
    bool is_fine = !translation.has_failed && pprof_to_otlp(&source, budget, ret_request);
    scratch_fini(&array.scratch, budget);
    translation_fini(&translation);
    return is_fine;
}
