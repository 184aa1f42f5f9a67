/* SPDX-License-Identifier: Apache-2.0 */
/* Converts samples of an OTLP Profile to pprof, part by part. The cost of a sample is estimated
 * before it is written, so that a part ends before its limit. Runs on the thread of the owner. */
#include "src/profiles/pprof/otlp_to_pprof.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/otlp/value.h"
#include "src/profiles/pprof/otlp_text.h"

enum {
    SAMPLE_BYTES_MAX = 32,          /* without its locations and labels */
    LOCATION_ID_BYTES_MAX = 5,      /* in a sample */
    PROFILE_TEXTS_BYTES_MAX = 4096, /* types, times and the profile's attributes */
    STACK_ENTRY_BYTES_MAX = 16384,  /* larger ones are dropped: thousands of frames */
    /* Work is at most so many times the request, and WORK_MORE: a little more than thousands of
     * profiles come to that have one sample each, of the same 200 functions, which each of them has
     * to repeat. */
    WORK_GROWTH_MAX = 512,
};
#define WORK_MORE ((uint64_t)64 << 20)

void otlp_to_pprof_init(struct otlp_to_pprof *conversion, const struct otlp_to_pprof_rules *rules,
                        const struct profile_dictionary *dictionary, struct budget *budget)
{
    assert(rules->samples_max > 0);
    assert(rules->bytes_max < UINT32_MAX);
    assert(rules->depth_max > 0);
    *conversion = (struct otlp_to_pprof){
        .rules = rules,
        .dictionary = dictionary,
        .budget = budget,
        .writer = {.has_failed = true},
        .work_max = UINT64_MAX,
    };
    otlp_symbols_init(&conversion->symbols, dictionary, budget);
    otlp_labels_init(&conversion->labels, &rules->labels, dictionary, budget);
}

void otlp_to_pprof_bound(struct otlp_to_pprof *conversion, size_t request_bytes)
{
    conversion->work_max = WORK_GROWTH_MAX * (uint64_t)request_bytes + WORK_MORE;
}

uint64_t otlp_to_pprof_work(const struct otlp_to_pprof *conversion)
{
    return conversion->work + conversion->labels.work + conversion->symbols.work;
}

void otlp_to_pprof_set_rules(struct otlp_to_pprof *conversion,
                             const struct otlp_to_pprof_rules *rules)
{
    assert(rules->samples_max > 0);
    conversion->rules = rules;
    otlp_labels_set_rules(&conversion->labels, &rules->labels);
}

void otlp_to_pprof_fini(struct otlp_to_pprof *conversion)
{
    otlp_symbols_fini(&conversion->symbols);
    otlp_labels_fini(&conversion->labels);
    pprof_writer_fini(&conversion->writer);
    scratch_fini(&conversion->stack, conversion->budget);
    scratch_fini(&conversion->large_stacks, conversion->budget);
    scratch_fini(&conversion->roots, conversion->budget);
}

bool otlp_to_pprof_has_failed(const struct otlp_to_pprof *conversion)
{
    return conversion->symbols.has_failed || conversion->labels.has_failed;
}

/* The place of a service in services; 0: none. */
static size_t find_service(const struct otlp_to_pprof *conversion, uint32_t number)
{
    for (size_t i = 1; number != 0 && i < conversion->services_count; i++)
        if (conversion->service_numbers[i] == number)
            return i;
    return 0;
}

/* Whether the sample is of the service at hand. The first has those of services without a place. */
static bool is_of_service(struct otlp_to_pprof *conversion, const struct profile_sample *sample)
{
    struct slice name;
    size_t service = conversion->source.service;
    uint32_t number = otlp_labels_service(&conversion->labels, sample, &name);
    if (service > 0)
        return number == conversion->service_numbers[service];
    return find_service(conversion, number) == 0;
}

size_t otlp_to_pprof_services(struct otlp_to_pprof *conversion, const struct profile *profile)
{
    struct wire_reader reader = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    conversion->services[0] = slice_of(NULL, 0);
    conversion->services_count = 1;
    conversion->service_numbers[0] = 0;
    while (conversion->services_count < OTLP_SERVICES_MAX &&
           profile_next_sample(&reader, &sample)) {
        struct slice name;
        uint32_t number = otlp_labels_service(&conversion->labels, &sample, &name);
        if (number == 0 || find_service(conversion, number) != 0)
            continue;
        conversion->services[conversion->services_count] = name;
        conversion->service_numbers[conversion->services_count++] = number;
    }
    return conversion->services_count;
}

static const struct {
    const char *key;
    enum pprof_field field;
} profile_texts[] = {
    {"pprof.profile.doc_url", PPROF_DOC_URL},
    {"pprof.profile.drop_frames", PPROF_DROP_FRAMES},
    {"pprof.profile.keep_frames", PPROF_KEEP_FRAMES},
    {"pprof.profile.comment", PPROF_COMMENT},
};

enum { PROFILE_TEXTS = sizeof(profile_texts) / sizeof(profile_texts[0]) };

void otlp_to_pprof_begin(struct otlp_to_pprof *conversion,
                         const struct otlp_to_pprof_source *source)
{
    bool is_new = conversion->source.profile != source->profile || source->service == 0;
    conversion->source = *source;
    conversion->reader = wire_reader_of(source->profile->bytes);
    conversion->has_pending = false;
    if (!is_new)
        return;
    /* The attributes of the profile that become its comments and the like, for all parts. */
    struct profile_indices_reader reader = profile_indices_read(&source->profile->attributes);
    struct profile_index index;
    struct otlp_pair pair;
    conversion->texts_count = 0;
    conversion->texts_work = 0;
    while (conversion->texts_count < OTLP_TEXTS_MAX &&
           otlp_text_next_pair(conversion->dictionary, &reader, &index, &pair)) {
        uint64_t work = otlp_text_work(
            profile_entry_at(conversion->dictionary, PROFILE_ATTRIBUTES, index).size);
        conversion->work += work;
        for (size_t i = 0; i < PROFILE_TEXTS; i++)
            if (slice_equal_text(pair.key, profile_texts[i].key)) {
                conversion->texts[conversion->texts_count++] = index;
                conversion->texts_work += work;
                break;
            }
    }
}

/* The sum of the values; without values each timestamp counts one. Counts of samples become time if
 * the type says so. */
static int64_t value_of(const struct otlp_to_pprof *conversion, const struct profile_sample *sample)
{
    struct profile_numbers_reader reader = profile_numbers_read(&sample->values);
    int64_t value = 0;
    int64_t product;
    uint64_t one;
    bool has_values = false;
    while (profile_numbers_next(&reader, &one)) {
        if (__builtin_add_overflow(value, (int64_t)one, &value))
            value = (int64_t)one > 0 ? INT64_MAX : INT64_MIN;
        has_values = true;
    }
    if (!has_values)
        value = (int64_t)profile_numbers_count(&sample->timestamps);
    if (!conversion->source.type->counts_periods)
        return value;
    if (__builtin_mul_overflow(value, conversion->source.profile->period, &product))
        return value > 0 ? INT64_MAX : INT64_MIN;
    return product;
}

/* The mark of a stack that does not fit into any part, so that it is not walked again. NULL: index
 * 0, out of range, or no memory. */
static uint8_t *large_mark(struct otlp_to_pprof *conversion, struct profile_index index)
{
    if (!profile_index_is_set(index) || !profile_has(conversion->dictionary, PROFILE_STACKS, index))
        return NULL;
    uint8_t *marks = scratch_room(&conversion->large_stacks, conversion->budget,
                                  conversion->dictionary->counts[PROFILE_STACKS]);
    conversion->symbols.has_failed |= marks == NULL;
    return marks != NULL ? &marks[profile_place(conversion->dictionary, PROFILE_STACKS, index)]
                         : NULL;
}

/* Finds the next sample that is written and counts those that are not. False: there is none. */
static bool next_sample(struct otlp_to_pprof *conversion)
{
    const struct profile_dictionary *dictionary = conversion->dictionary;
    const struct profile_sample *sample = &conversion->pending;
    while (!conversion->has_pending &&
           profile_next_sample(&conversion->reader, &conversion->pending)) {
        if (conversion->services_count > 1 && !is_of_service(conversion, sample))
            continue;
        const struct otlp_to_pprof_source *source = &conversion->source;
        if (source->picks != NULL && !source->picks(source->arg, source->profile, sample))
            continue;
        int64_t value = value_of(conversion, sample);
        conversion->figures.zero += value == 0;
        conversion->figures.negative += value < 0;
        if (value <= 0)
            continue;
        const uint8_t *mark = large_mark(conversion, sample->stack);
        bool is_large = mark != NULL && *mark != 0;
        if (mark != NULL)
            is_large |= profile_entry_at(dictionary, PROFILE_STACKS, sample->stack).size >
                        STACK_ENTRY_BYTES_MAX;
        conversion->figures.too_large += is_large;
        conversion->has_pending = !is_large;
    }
    return conversion->has_pending;
}

/* The locations of a stack that are written: of too many those nearest to the root, which tells
 * where a stack belongs. */
struct stack_root {
    uint32_t at;      /* their offset in the packed list, plus one; 0: not known yet */
    uint32_t skipped; /* locations before that */
};

/* Reads the locations of a stack that are written. */
static struct profile_indices_reader read_root(struct otlp_to_pprof *conversion,
                                               struct profile_index index,
                                               struct stack_root *ret_root)
{
    const struct profile_dictionary *dictionary = conversion->dictionary;
    struct profile_stack stack = {.locations = {.numbers = {.number = 0}}};
    if (profile_has(dictionary, PROFILE_STACKS, index))
        stack = profile_stack_at(dictionary, index);
    const struct profile_numbers *locations = &stack.locations.numbers;
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct stack_root *known = NULL;
    struct stack_root root = {.at = 0};
    if (profile_index_is_set(index) && profile_has(dictionary, PROFILE_STACKS, index))
        known = scratch_room(&conversion->roots, conversion->budget,
                             dictionary->counts[PROFILE_STACKS] * sizeof(known[0]));
    if (known != NULL) {
        known += profile_place(dictionary, PROFILE_STACKS, index);
        root = *known;
    }
    if (root.at == 0) {
        /* Walked only once: any number of samples may have the stack. Each location takes at least
         * a byte. */
        const size_t most = conversion->rules->depth_max;
        struct profile_numbers_reader numbers = profile_numbers_read(locations);
        uint64_t location;
        size_t depth = profile_numbers_count_max(locations);
        if (depth > most)
            depth = profile_numbers_count(locations);
        root.skipped = depth > most ? (uint32_t)(depth - most) : 0;
        for (uint32_t i = 0; i < root.skipped; i++)
            profile_numbers_next(&numbers, &location);
        root.at = 1;
        if (locations->packed.size > 0)
            root.at = (uint32_t)(numbers.at - locations->packed.data) + 1;
    }
    if (known != NULL)
        *known = root;
    *ret_root = root;
    if (locations->packed.size > 0) {
        reader.numbers.at += root.at - 1;
        return reader;
    }
    /* After the ingress few lists are not packed, all of them short. */
    struct profile_index skipped;
    for (uint32_t i = 0; i < root.skipped; i++)
        profile_indices_next(&reader, &skipped);
    return reader;
}

static uint32_t word(struct otlp_to_pprof *conversion, const char *text)
{
    return pprof_writer_string(&conversion->writer, slice_of_text(text));
}

/* Adds the pending sample. False: the part is full without it. */
static bool add_pending(struct otlp_to_pprof *conversion)
{
    const struct profile_sample *pending = &conversion->pending;
    struct pprof_writer *writer = &conversion->writer;
    struct stack_root root;
    struct profile_index location;
    if (otlp_to_pprof_work(conversion) > conversion->work_max) {
        conversion->figures.too_large++;
        conversion->has_pending = false;
        return true;
    }

    /* An upper bound of the bytes that the stack adds; counting ends beyond the limit. */
    const struct profile_indices_reader locations = read_root(conversion, pending->stack, &root);
    struct profile_indices_reader reader = locations;
    uint64_t stack = 0;
    otlp_symbols_begin_count(&conversion->symbols);
    while (stack <= conversion->rules->bytes_max && profile_indices_next(&reader, &location))
        stack += LOCATION_ID_BYTES_MAX + otlp_symbols_location_cost(&conversion->symbols, location);
    uint64_t labels = otlp_labels_cost(&conversion->labels, pending);
    uint64_t cost = SAMPLE_BYTES_MAX + stack + labels + PROFILE_TEXTS_BYTES_MAX +
                    otlp_symbols_end_cost(&conversion->symbols);
    conversion->work +=
        SAMPLE_BYTES_MAX + labels +
        (stack < conversion->rules->bytes_max ? stack : conversion->rules->bytes_max);
    if (!pprof_writer_has_room(writer, cost)) {
        if (conversion->samples > 0)
            return false;
        /* Not even an empty part has room for it. */
        uint8_t *mark = large_mark(conversion, pending->stack);
        conversion->figures.too_large++;
        if (mark != NULL && stack > conversion->rules->bytes_max / 2)
            *mark = 1;
        conversion->has_pending = false;
        return true;
    }

    int64_t value = value_of(conversion, pending);
    struct pprof_sample to = {.values = &value};
    uint32_t *ids = scratch_room(&conversion->stack, conversion->budget,
                                 (conversion->rules->depth_max + 1) * sizeof(ids[0]));
    reader = locations;
    conversion->figures.cut += root.skipped > 0;
    conversion->symbols.has_failed |= ids == NULL;
    while (ids != NULL && profile_indices_next(&reader, &location)) {
        uint32_t id = otlp_symbols_location(&conversion->symbols, location);
        if (id != 0)
            ids[to.locations_count++] = id;
    }
    assert(to.locations_count <= conversion->rules->depth_max);
    to.locations = ids;
    to.labels_count = otlp_labels_write(&conversion->labels, pending, writer, &to.labels);
    pprof_writer_sample(writer, &to, 1);
    conversion->samples++;
    conversion->has_pending = false;
    return true;
}

static uint64_t samples_max(const struct otlp_to_pprof *conversion)
{
    uint64_t most = conversion->rules->samples_max;
    assert(most > 0);
    return conversion->samples_max > 0 && conversion->samples_max < most ? conversion->samples_max
                                                                         : most;
}

void otlp_to_pprof_rewind(struct otlp_to_pprof *conversion)
{
    assert(conversion->source.profile != NULL);
    conversion->reader = conversion->before.reader;
    conversion->pending = conversion->before.pending;
    conversion->has_pending = conversion->before.has_pending;
    conversion->figures = conversion->before.figures;
    conversion->samples = 0;
}

bool otlp_to_pprof_fill(struct otlp_to_pprof *conversion)
{
    assert(conversion->source.profile != NULL);
    conversion->before = (struct otlp_to_pprof_mark){
        .reader = conversion->reader,
        .pending = conversion->pending,
        .has_pending = conversion->has_pending,
        .figures = conversion->figures,
    };
    if (!next_sample(conversion))
        return false;
    struct pprof_writer *writer = &conversion->writer;
    const struct profile_type *type = conversion->source.type;
    pprof_writer_fini(writer);
    pprof_writer_init(writer, conversion->budget, conversion->rules->bytes_max);
    otlp_symbols_begin(&conversion->symbols, writer);
    otlp_labels_begin(&conversion->labels);
    conversion->work += conversion->texts_work;
    conversion->samples = 0;
    const struct pprof_value_type sample_type = {.type = word(conversion, type->type),
                                                 .unit = word(conversion, type->unit)};
    const struct pprof_value_type period_type = {.type = word(conversion, type->period_type),
                                                 .unit = word(conversion, type->period_unit)};
    pprof_writer_value_type(writer, PPROF_SAMPLE_TYPE, sample_type);
    pprof_writer_value_type(writer, PPROF_PERIOD_TYPE, period_type); /* servers rely on it */
    if (writer->has_failed)
        conversion->symbols.has_failed = true;
    while (!otlp_to_pprof_has_failed(conversion) && conversion->samples < samples_max(conversion) &&
           next_sample(conversion))
        if (!add_pending(conversion))
            break;
    if (writer->has_failed)
        conversion->symbols.has_failed = true;
    return conversion->samples > 0 && !otlp_to_pprof_has_failed(conversion);
}

static void write_profile_text(struct otlp_to_pprof *conversion, enum pprof_field field,
                               const struct value *value)
{
    if (value->type == VALUE_STRING && otlp_text_valid(value->bytes) == value->bytes.size)
        pprof_writer_number(&conversion->writer, field,
                            pprof_writer_string(&conversion->writer, value->bytes));
}

static uint64_t positive(uint64_t number)
{
    return number <= INT64_MAX ? number : 0;
}

struct buffer *otlp_to_pprof_take(struct otlp_to_pprof *conversion, uint64_t time_ns)
{
    assert(conversion->samples > 0);
    struct pprof_writer *writer = &conversion->writer;
    const struct profile *profile = conversion->source.profile;
    const struct profile_dictionary *dictionary = conversion->dictionary;
    uint64_t written = conversion->samples;
    conversion->samples = 0;
    /* Comments and the like, as far as there is room. */
    for (size_t i = 0; i < conversion->texts_count; i++) {
        struct profile_attribute attribute = profile_attribute_at(dictionary, conversion->texts[i]);
        struct slice key = profile_string_at(dictionary, attribute.key);
        struct value value = value_read(attribute.value);
        struct wire_reader list = wire_reader_of(value.bytes);
        struct wire_field field;
        size_t row = 0;
        if (!pprof_writer_has_room(writer, 2 * attribute.value.size +
                                               otlp_symbols_end_cost(&conversion->symbols) +
                                               PROFILE_TEXTS_BYTES_MAX / 2))
            continue;
        while (!slice_equal_text(key, profile_texts[row].key))
            row++;
        write_profile_text(conversion, profile_texts[row].field, &value);
        while (value.type == VALUE_LIST && wire_read_field(&list, &field)) {
            struct value one = value_read(field.bytes);
            write_profile_text(conversion, profile_texts[row].field, &one);
        }
    }
    pprof_writer_number(writer, PPROF_TIME, positive(time_ns));
    pprof_writer_number(writer, PPROF_DURATION, positive(profile->duration_ns));
    pprof_writer_number(writer, PPROF_PERIOD, (uint64_t)profile->period);
    otlp_symbols_end(&conversion->symbols);
    conversion->symbols.has_failed |= writer->has_failed;
    if (otlp_to_pprof_has_failed(conversion))
        return NULL;
    conversion->figures.written += written;
    return pprof_writer_take(writer);
}
