/* SPDX-License-Identifier: Apache-2.0 */
/* A whole profile into a writer: texts get new indices, everything else keeps its place. */
#include "src/profiles/pprof/pprof_writer.h"

#include <assert.h>

#include "src/base/mem.h"

/* What was read and where it goes. */
struct copying {
    const struct pprof *from;
    struct pprof_writer *to;
    struct pprof_label *labels; /* of one sample; room for the longest */
};

static uint32_t text(const struct copying *copying, uint32_t index)
{
    assert(index < copying->from->strings_count);
    return pprof_writer_text(copying->to, copying->from->strings[index]);
}

static struct pprof_value_type value_type(const struct copying *copying,
                                          struct pprof_value_type type)
{
    return (struct pprof_value_type){.type = text(copying, type.type),
                                     .unit = text(copying, type.unit)};
}

static void copy_samples(struct copying *copying)
{
    assert(copying->labels != NULL);
    const struct pprof *from = copying->from;
    for (size_t i = 0; i < from->samples_count; i++) {
        struct pprof_sample sample = from->samples[i];
        for (size_t k = 0; k < sample.labels_count; k++) {
            copying->labels[k] = sample.labels[k];
            copying->labels[k].key = text(copying, sample.labels[k].key);
            copying->labels[k].text = text(copying, sample.labels[k].text);
            copying->labels[k].unit = text(copying, sample.labels[k].unit);
        }
        sample.labels = copying->labels;
        pprof_writer_sample(copying->to, &sample, from->sample_types_count);
    }
}

static void copy_mappings(const struct copying *copying)
{
    for (size_t i = 0; i < copying->from->mappings_count; i++) {
        struct pprof_mapping mapping = copying->from->mappings[i];
        mapping.id = i + 1;
        mapping.filename = text(copying, mapping.filename);
        mapping.build_id = text(copying, mapping.build_id);
        pprof_writer_mapping(copying->to, &mapping);
    }
}

static void copy_locations(const struct copying *copying)
{
    for (size_t i = 0; i < copying->from->locations_count; i++) {
        struct pprof_location location = copying->from->locations[i];
        location.id = i + 1;
        pprof_writer_location(copying->to, &location);
    }
}

static void copy_functions(const struct copying *copying)
{
    for (size_t i = 0; i < copying->from->functions_count; i++) {
        struct pprof_function function = copying->from->functions[i];
        function.id = i + 1;
        function.name = text(copying, function.name);
        function.system_name = text(copying, function.system_name);
        function.filename = text(copying, function.filename);
        pprof_writer_function(copying->to, &function);
    }
}

static void copy_numbers(const struct copying *copying)
{
    const struct pprof *from = copying->from;
    struct pprof_writer *to = copying->to;
    pprof_writer_number(to, PPROF_DROP_FRAMES, text(copying, from->drop_frames));
    pprof_writer_number(to, PPROF_KEEP_FRAMES, text(copying, from->keep_frames));
    pprof_writer_number(to, PPROF_TIME, (uint64_t)from->time_ns);
    pprof_writer_number(to, PPROF_DURATION, (uint64_t)from->duration_ns);
    pprof_writer_number(to, PPROF_PERIOD, (uint64_t)from->period);
    for (size_t i = 0; i < from->comments_count; i++)
        pprof_writer_number(to, PPROF_COMMENT, text(copying, from->comments[i]));
    pprof_writer_number(to, PPROF_DEFAULT_SAMPLE_TYPE, text(copying, from->default_sample_type));
    pprof_writer_number(to, PPROF_DOC_URL, text(copying, from->doc_url));
}

static size_t longest_labels(const struct pprof *pprof)
{
    size_t longest = 0;
    for (size_t i = 0; i < pprof->samples_count; i++)
        if (pprof->samples[i].labels_count > longest)
            longest = pprof->samples[i].labels_count;
    return longest;
}

void pprof_writer_profile(struct pprof_writer *writer, const struct pprof *pprof)
{
    assert(writer->has_failed || writer->strings_count == 1);
    struct copying copying = {.from = pprof, .to = writer};
    copying.labels = mem_try_alloc((longest_labels(pprof) + 1) * sizeof(copying.labels[0]));
    if (copying.labels == NULL) {
        writer->has_failed = true;
        return;
    }
    for (size_t i = 0; i < pprof->sample_types_count; i++)
        pprof_writer_value_type(writer, PPROF_SAMPLE_TYPE,
                                value_type(&copying, pprof->sample_types[i]));
    if (pprof->has_period_type)
        pprof_writer_value_type(writer, PPROF_PERIOD_TYPE,
                                value_type(&copying, pprof->period_type));
    copy_samples(&copying);
    copy_mappings(&copying);
    copy_locations(&copying);
    copy_functions(&copying);
    copy_numbers(&copying);
    mem_free(copying.labels);
}
