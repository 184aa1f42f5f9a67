/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of Profiles into labels. Pure functions; any thread. */
#include "src/profiles/pyroscope/series_from_otlp.h"

#include "src/otlp/value.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/series_to_otlp.h"

#include <assert.h>
#include <string.h>

static bool label_at(const struct profile_dictionary *dictionary, struct profile_index index,
                     struct series_label *ret_label)
{
    static const size_t prefix = sizeof(SERIES_PRIVATE_PREFIX) - 1;
    assert(ret_label != NULL);
    if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index))
        return false;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
        return false;
    struct slice key = profile_string_at(dictionary, attribute.key);
    struct value value = value_read(attribute.value);
    if (key.size <= prefix || memcmp(key.data, SERIES_PRIVATE_PREFIX, prefix) != 0 ||
        value.type != VALUE_TEXT || otlp_text_valid(key) < key.size ||
        otlp_text_valid(value.bytes) < value.bytes.size)
        return false;
    *ret_label = (struct series_label){.name = slice_of(key.data + prefix, key.size - prefix),
                                       .value = value.bytes};
    return true;
}

bool series_next_private(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct series_label *ret_label)
{
    struct profile_index index;
    assert(dictionary != NULL);
    while (profile_indices_next(reader, &index))
        if (label_at(dictionary, index, ret_label))
            return true;
    return false;
}

struct slice series_private_name(const struct profile_dictionary *dictionary,
                                 const struct profile *profile)
{
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct series_label label;
    assert(dictionary != NULL);
    while (series_next_private(dictionary, &reader, &label))
        if (slice_equal_text(label.name, "__name__") && label.value.size > 0)
            return label.value;
    return slice_of(NULL, 0);
}
