/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a profile into a writer: strings get new indices, everything else keeps its place. */
#include "tests/support/pprof_copy.h"

#include <assert.h>

#include "src/base/mem.h"

struct copying {
    const struct pprof *from;
    struct pprof_writer *to;
};

static uint32_t string(const struct copying *copying, uint32_t index)
{
    assert(index < copying->from->strings_count);
    return pprof_writer_string(copying->to, copying->from->strings[index]);
}

static struct pprof_value_type value_type(const struct copying *copying,
                                          struct pprof_value_type type)
{
    return (struct pprof_value_type){.type = string(copying, type.type),
                                     .unit = string(copying, type.unit)};
}

void pprof_copy(struct pprof_writer *writer, const struct pprof *from)
{
    struct copying copying = {.from = from, .to = writer};
    size_t longest = 0;
    assert(writer->has_failed || writer->strings.count == 1);
    for (size_t i = 0; i < from->samples_count; i++)
        if (from->samples[i].labels_count > longest)
            longest = from->samples[i].labels_count;
    struct pprof_label *labels = mem_try_alloc((longest + 1) * sizeof(labels[0]));
    if (labels == NULL) {
        writer->has_failed = true;
        return;
    }
    for (size_t i = 0; i < from->sample_types_count; i++)
        pprof_writer_value_type(writer, PPROF_SAMPLE_TYPE,
                                value_type(&copying, from->sample_types[i]));
    if (from->has_period_type)
        pprof_writer_value_type(writer, PPROF_PERIOD_TYPE, value_type(&copying, from->period_type));
    for (size_t i = 0; i < from->samples_count; i++) {
        struct pprof_sample sample = from->samples[i];
        for (size_t k = 0; k < sample.labels_count; k++) {
            labels[k] = sample.labels[k];
            labels[k].key = string(&copying, sample.labels[k].key);
            labels[k].text = string(&copying, sample.labels[k].text);
            labels[k].unit = string(&copying, sample.labels[k].unit);
        }
        sample.labels = labels;
        pprof_writer_sample(writer, &sample, from->sample_types_count);
    }
    mem_free(labels);
    for (size_t i = 0; i < from->mappings_count; i++) {
        struct pprof_mapping mapping = from->mappings[i];
        mapping.id = i + 1;
        mapping.filename = string(&copying, mapping.filename);
        mapping.build_id = string(&copying, mapping.build_id);
        pprof_writer_mapping(writer, &mapping);
    }
    for (size_t i = 0; i < from->locations_count; i++) {
        struct pprof_location location = from->locations[i];
        location.id = i + 1;
        pprof_writer_location(writer, &location);
    }
    for (size_t i = 0; i < from->functions_count; i++) {
        struct pprof_function function = from->functions[i];
        function.id = i + 1;
        function.name = string(&copying, function.name);
        function.system_name = string(&copying, function.system_name);
        function.filename = string(&copying, function.filename);
        pprof_writer_function(writer, &function);
    }
    pprof_writer_number(writer, PPROF_DROP_FRAMES, string(&copying, from->drop_frames));
    pprof_writer_number(writer, PPROF_KEEP_FRAMES, string(&copying, from->keep_frames));
    pprof_writer_number(writer, PPROF_TIME, (uint64_t)from->time_ns);
    pprof_writer_number(writer, PPROF_DURATION, (uint64_t)from->duration_ns);
    pprof_writer_number(writer, PPROF_PERIOD, (uint64_t)from->period);
    for (size_t i = 0; i < from->comments_count; i++)
        pprof_writer_number(writer, PPROF_COMMENT, string(&copying, from->comments[i]));
    pprof_writer_number(writer, PPROF_DEFAULT_SAMPLE_TYPE,
                        string(&copying, from->default_sample_type));
    pprof_writer_number(writer, PPROF_DOC_URL, string(&copying, from->doc_url));
}
