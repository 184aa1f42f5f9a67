/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as text: a line per profile, or each sample with its full stack. profile_normalize has
 * checked the indices. Any thread. */
#include <inttypes.h>

#include "src/otlp/text/text_parts.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"

static void add_attributes(struct text *text, const struct profile_indices *attributes,
                           const char *before)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    while (!text->is_cut && profile_indices_next(&reader, &index)) {
        struct profile_attribute attribute = profile_attribute_at(text->dictionary, index);
        struct slice value = attribute.value;
        text_note_read(text, value.size);
        text_add(text, "%s", before);
        text_add_slice(text, profile_string_at(text->dictionary, attribute.key));
        text_add(text, "=");
        text_add_value(text, value.data != NULL ? value : slice_of("", 0));
    }
}

static void write_normal(struct text *text, struct slice record)
{
    struct profile profile = profile_of(record);
    text_add_id(text, profile.id);
    text_add(text, " samples=%" PRIu64, profile.samples_count);
    add_attributes(text, &profile.attributes, " ");
    text_add(text, "\n");
}

static void add_type(struct text *text, const char *head, const struct profile_value_type *type)
{
    text_add(text, "%s", head);
    text_add_slice(text, profile_string_at(text->dictionary, type->type));
    text_add(text, " ");
    text_add_slice(text, profile_string_at(text->dictionary, type->unit));
    text_add(text, "\n");
}

static void add_numbers(struct text *text, const char *head, const struct profile_numbers *numbers)
{
    struct profile_numbers_reader reader = profile_numbers_read(numbers);
    uint64_t number;
    if (profile_numbers_count(numbers) == 0)
        return;
    text_add(text, "%s", head);
    while (!text->is_cut && profile_numbers_next(&reader, &number))
        text_add(text, " %" PRId64, (int64_t)number);
    text_add(text, "\n");
}

static void add_sample(struct text *text, const struct profile_sample *sample, uint64_t index)
{
    struct profile_link link = profile_link_at(text->dictionary, sample->link);
    text_add(text, "        Sample #%" PRIu64 "\n", index);
    add_numbers(text, "            Values        :", &sample->values);
    add_numbers(text, "            Timestamps    :", &sample->timestamps);
    if (link.trace_id.size + link.span_id.size > 0) {
        text_add_id_line(text, "            Trace ID      : ", link.trace_id);
        text_add_id_line(text, "            Span ID       : ", link.span_id);
    }
    if (profile_numbers_count(&sample->attributes.numbers) > 0) {
        text_add(text, "            Attributes:");
        add_attributes(text, &sample->attributes, "\n             -> ");
        text_add(text, "\n");
    }
    /* A frame per line, leaf first; an address for a location without lines. */
    struct profile_stack stack = profile_stack_at(text->dictionary, sample->stack);
    struct profile_indices_reader locations = profile_indices_read(&stack.locations);
    struct profile_index location_index;
    text_note_read(text, profile_entry_at(text->dictionary, PROFILE_STACKS, sample->stack).size);
    while (!text->is_cut && profile_indices_next(&locations, &location_index)) {
        struct profile_location location = profile_location_at(text->dictionary, location_index);
        text_note_read(text, location.bytes.size);
        struct wire_reader lines = wire_reader_of(location.bytes);
        struct profile_line line;
        if (location.lines_count == 0)
            text_add(text, "             -> 0x%" PRIx64 "\n", location.address);
        while (profile_next_line(&lines, &line)) {
            struct profile_function function = profile_function_at(text->dictionary, line.function);
            text_add(text, "             -> ");
            text_add_slice(text, profile_string_at(text->dictionary, function.name));
            text_add(text, " ");
            text_add_slice(text, profile_string_at(text->dictionary, function.filename));
            text_add(text, ":%" PRId64 "\n", line.line);
        }
    }
}

static void write_detailed(struct text *text, struct slice record, size_t index)
{
    struct profile profile = profile_of(record);
    struct wire_reader samples = wire_reader_of(record);
    struct profile_sample sample;
    text_add(text, "Profile #%zu\n", index);
    text_add_id_line(text, "    Profile ID     : ", profile.id);
    text_add_time_line(text, "    Start time     : ", profile.time_unix_ns);
    text_add(text, "    DurationNano   : %" PRIu64 "\n", profile.duration_ns);
    text_add(text, "    Dropped attributes count: %" PRIu32 "\n", profile.dropped_attributes);
    add_type(text, "    Sample type    : ", &profile.sample_type);
    add_type(text, "    Period type    : ", &profile.period_type);
    text_add(text, "    Period         : %" PRId64 "\n", profile.period);
    if (profile_numbers_count(&profile.attributes.numbers) > 0) {
        text_add(text, "    Attributes:");
        add_attributes(text, &profile.attributes, "\n     -> ");
        text_add(text, "\n");
    }
    for (uint64_t i = 0; !text->is_cut && profile_next_sample(&samples, &sample); i++)
        add_sample(text, &sample, i);
}

const struct otlp_text_writer otlp_text_profiles = {
    .resource = "ResourceProfiles",
    .scope = "ScopeProfiles",
    .scope_detailed = "ScopeProfiles",
    .resource_detailed = "ResourceProfiles",
    .normal = write_normal,
    .detailed = write_detailed,
};
