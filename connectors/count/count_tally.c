/* SPDX-License-Identifier: Apache-2.0 */
/* Values are kept once per request, so that records that share one of their scope, their Resource
 * or the dictionary do not copy it: a series is its rule and the indices of its values. */
#include "connectors/count/count_tally.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_dictionary.h"

/* In contrib's generated metadata. */
#define SCOPE_NAME                                                                                 \
    "github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector"

#define OVERFLOW_NAME "otel.metric.overflow"

/* Field numbers of records. */
enum {
    SPAN_START = 7,
    SPAN_END = 8,
    EVENT_TIME = 1,
    POINT_TIME = 3,
    LOG_TIME = 1,
    PROFILE_TIME = 3,
    PROFILE_ATTRIBUTES = 11,
};
enum { RESOURCE_ATTRIBUTES = 1, METRIC_NAME = 1 };

/* Beside the attributes: values, series and their names. */
enum { COUNT_OTHER_RATIO = 4 };
/* In front of each value: contents are never empty. */
enum { VALUE_MARK = 1 };

static void begin_values(struct count_tally *tally)
{
    tally->values = (struct nested_output){.budget = tally->budget};
    content_table_init(&tally->values_table);
}

static void forget_values(struct count_tally *tally)
{
    nested_output_fini(&tally->values);
    content_table_fini(&tally->values_table, tally->budget);
    scratch_fini(&tally->values_ends, tally->budget);
    scratch_fini(&tally->attributes, tally->budget);
    begin_values(tally);
}

void count_tally_init(struct count_tally *tally, const struct count_rules *rules,
                      struct budget *budget)
{
    size_t most = 0;
    *tally = (struct count_tally){.rules = rules, .budget = budget};
    ottl_runner_init(&tally->runner, rules->plan, budget);
    for (size_t i = 0; i < rules->count; i++)
        most = rules->rules[i].keys_count > most ? rules->rules[i].keys_count : most;
    tally->series_bytes = (sizeof(struct count_series) + most * sizeof(uint32_t) + 7) & ~(size_t)7;
    tally->heads = mem_zalloc((rules->count + 1) * sizeof(*tally->heads));
    tally->tails = mem_zalloc((rules->count + 1) * sizeof(*tally->tails));
    tally->overflows = mem_zalloc((rules->count + 1) * sizeof(*tally->overflows));
    tally->indices = mem_zalloc((most + 1) * sizeof(*tally->indices));
    for (unsigned i = COUNT_OF_SCOPE; i < COUNT_SOURCES; i++)
        tally->outer[i] = mem_zalloc((rules->keys_count + 1) * sizeof(*tally->outer[i]));
    tally->last = mem_zalloc((rules->plan->keys[OTTL_PROFILE].count + 1) * sizeof(*tally->last));
    begin_values(tally);
}

void count_tally_fini(struct count_tally *tally)
{
    ottl_runner_fini(&tally->runner);
    mem_free(tally->heads);
    mem_free(tally->tails);
    mem_free(tally->overflows);
    mem_free(tally->indices);
    mem_free(tally->last);
    for (unsigned i = COUNT_OF_SCOPE; i < COUNT_SOURCES; i++)
        mem_free(tally->outer[i]);
}

static bool refuse(struct count_tally *tally)
{
    tally->is_refused = true;
    return false;
}

/* The index of the content among those of a block, where it is added if need be; 0: no memory. */
static uint32_t index_of(struct count_tally *tally, struct content_table *table,
                         struct nested_output *block, size_t content_at)
{
    uint32_t hash;
    const size_t size = nested_output_size(block) - content_at;
    if (block->refused_bytes > 0)
        return 0;
    const uint8_t *bytes = block->buffer->data;
    uint32_t index = content_table_find(table, bytes, slice_of(bytes + content_at, size), &hash);
    if (index != 0)
        nested_output_cut(block, content_at);
    else if (nested_output_size(block) <= UINT32_MAX)
        index = content_table_add(table, tally->budget, hash, content_at, size);
    return index;
}

/* Keeps a value; 0: no memory. */
static uint32_t keep_value(struct count_tally *tally, const struct ottl_value *value,
                           struct slice standard)
{
    static const uint8_t mark[VALUE_MARK] = {0};
    struct nested_output *values = &tally->values;
    const size_t begin = nested_output_size(values);
    const uint32_t known = tally->values_table.count;
    const size_t size = value != NULL ? ottl_value_encoded_size(value) : standard.size;
    nested_put_raw(values, slice_of(mark, sizeof(mark)));
    if (!nested_output_has_room(values, size))
        return 0;
    if (value == NULL) {
        nested_put_raw(values, standard);
    } else if (size > 0) {
        uint8_t *at = values->buffer->data + values->buffer->size;
        ottl_value_encode(value, at);
        values->buffer->size += size;
    }
    const uint32_t index = index_of(tally, &tally->values_table, values, begin);
    if (index < known)
        return index;
    uint32_t *ends = scratch_room(&tally->values_ends, tally->budget, (index + 1) * sizeof(*ends));
    if (ends == NULL)
        return 0;
    ends[index] = (uint32_t)nested_output_size(values);
    return index;
}

static struct slice value_at(const struct count_tally *tally, uint32_t index)
{
    const uint32_t *ends = tally->values_ends.memory;
    const size_t begin = (index > 1 ? ends[index - 1] : 0) + VALUE_MARK;
    return slice_of(tally->values.buffer->data + begin, ends[index] - begin);
}

/* The value of an attribute of a record that is open: *ret is 0 if it has none. False: no memory.
 */
static bool look_up(struct count_tally *tally, enum ottl_context context, uint32_t slot,
                    uint32_t *ret)
{
    struct ottl_record *record = &tally->runner.records[context];
    struct ottl_value value;
    *ret = 0;
    if (!ottl_record_load_slots(record))
        return refuse(tally);
    struct ottl_entry *entry = ottl_record_slot(record, slot);
    if (entry == NULL)
        return true;
    if (!ottl_map_read(&record->attributes, entry, &value))
        return refuse(tally);
    *ret = keep_value(tally, &value, slice_of(NULL, 0));
    return *ret != 0 || refuse(tally);
}

/* What is known of that attribute of the dictionary, whose key is read when it is first named.
 * NULL: there is no such attribute. */
static struct count_attribute *attribute_at(struct count_tally *tally, int64_t index)
{
    const struct ottl_dictionary *dictionary = &tally->runner.dictionary;
    struct count_attribute *attributes = tally->attributes.memory;
    struct ottl_dictionary_attribute attribute;
    struct slice key;
    if (index < 0 || index >= dictionary->attributes.count)
        return NULL;
    if (attributes[index].slot != 0)
        return &attributes[index];
    if (!ottl_dictionary_attribute(dictionary, index, &attribute) ||
        !ottl_dictionary_string(dictionary, attribute.key, &key))
        return NULL;
    const int32_t slot = ottl_keys_find(&tally->rules->plan->keys[OTTL_PROFILE], key);
    attributes[index].slot = slot < 0 ? -1 : slot + 1;
    return &attributes[index];
}

/* Notes that the profile names that attribute. Go does not check indices, and ends; requests with
 * such have been refused at the door. */
static bool note_attribute(struct count_tally *tally, uint64_t generation, int32_t index)
{
    const struct count_attribute *attribute = attribute_at(tally, index);
    if (attribute == NULL)
        return ottl_run_fail(&tally->runner.run, "the attribute index %d is out of range", index);
    if (attribute->slot > 0) {
        tally->last[attribute->slot - 1].generation = generation;
        tally->last[attribute->slot - 1].index = (uint32_t)index;
    }
    return true;
}

static bool note_packed(struct count_tally *tally, uint64_t generation, struct slice indices)
{
    struct wire_reader reader = wire_reader_of(indices);
    while (reader.at < reader.end) {
        const int32_t index = (int32_t)wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        if (reader.failure != NULL)
            break;
        if (!note_attribute(tally, generation, index))
            return false;
    }
    return true;
}

/* Notes which attributes the profile that is open names: of equal keys the last counts. */
static bool note_attributes(struct count_tally *tally, uint64_t generation)
{
    struct ottl_dictionary *dictionary = &tally->runner.dictionary;
    struct wire_reader reader = wire_reader_of(tally->runner.records[OTTL_PROFILE].bytes);
    struct wire_field field;
    if (!ottl_dictionary_read(dictionary))
        return refuse(tally);
    const size_t bytes = (dictionary->attributes.count + 1) * sizeof(struct count_attribute);
    if (scratch_room(&tally->attributes, tally->budget, bytes) == NULL)
        return refuse(tally);
    while (wire_next_field(&reader, &field))
        if (field.number == PROFILE_ATTRIBUTES &&
            !(field.type == WIRE_BYTES
                  ? note_packed(tally, generation, field.bytes)
                  : note_attribute(tally, generation, (int32_t)field.number_value)))
            return false;
    tally->last_generation = generation;
    return true;
}

/* The value of an attribute of the dictionary. However many profiles name it, it is read and kept
 * once. */
static bool look_up_attribute(struct count_tally *tally, uint32_t index, uint32_t *ret)
{
    struct count_attribute *known = (struct count_attribute *)tally->attributes.memory + index;
    struct ottl_run *run = &tally->runner.run;
    struct ottl_dictionary_attribute attribute;
    struct ottl_value value;
    if (known->value == 0) {
        const bool exists = ottl_dictionary_attribute(run->dictionary, index, &attribute);
        assert(exists);
        run->memory = &tally->runner.records[OTTL_PROFILE].memory;
        if (!ottl_value_decode(run->memory, NULL, attribute.value, &value)) {
            ottl_run_no_memory(run);
            return run->is_out_of_memory && refuse(tally);
        }
        known->value = keep_value(tally, &value, slice_of(NULL, 0));
    }
    *ret = known->value;
    return *ret != 0 || refuse(tally);
}

/* The value of an attribute of the profile that is open. */
static bool look_up_profile(struct count_tally *tally, uint32_t slot, uint32_t *ret)
{
    const uint64_t generation = tally->runner.records[OTTL_PROFILE].generation;
    *ret = 0;
    if (tally->last_generation != generation && !note_attributes(tally, generation))
        return false;
    return tally->last[slot].generation != generation ||
           look_up_attribute(tally, tally->last[slot].index, ret);
}

static bool look_up_outer(struct count_tally *tally, enum count_source source,
                          const struct count_key *key, uint32_t *ret)
{
    const enum ottl_context context = source == COUNT_OF_SCOPE ? OTTL_SCOPE : OTTL_RESOURCE;
    const uint64_t generation = tally->runner.records[context].generation;
    if (tally->outer[source][key->place].generation != generation) {
        if (!look_up(tally, context, key->slots[source], ret))
            return false;
        tally->outer[source][key->place].generation = generation;
        tally->outer[source][key->place].value = *ret;
    }
    *ret = tally->outer[source][key->place].value;
    return true;
}

/* Finds the values of a rule's attributes. *ret: the record has them all. False: no memory. */
static bool find_values(struct count_tally *tally, const struct count_rule *rule, bool *ret)
{
    *ret = true;
    for (size_t i = 0; i < rule->keys_count && *ret; i++) {
        const struct count_key *key = &rule->keys[i];
        uint32_t *index = &tally->indices[i];
        const uint32_t slot = key->slots[COUNT_OF_RECORD];
        bool is_read = rule->context == OTTL_PROFILE ? look_up_profile(tally, slot, index)
                                                     : look_up(tally, rule->context, slot, index);
        if (!is_read)
            return false;
        if (*index == 0 && !look_up_outer(tally, COUNT_OF_SCOPE, key, index))
            return false;
        if (*index == 0 && !look_up_outer(tally, COUNT_OF_RESOURCE, key, index))
            return false;
        if (*index == 0 && key->has_standard) {
            *index = keep_value(tally, NULL, key->standard);
            if (*index == 0)
                return refuse(tally);
        }
        *ret = *index != 0;
    }
    return true;
}

static struct count_series *series_at(const struct count_tally *tally, uint32_t index)
{
    return (struct count_series *)((char *)tally->series.memory + index * tally->series_bytes);
}

/* A new series, the last of its rule; 0: no memory. */
static uint32_t add_series(struct count_tally *tally, size_t rule, bool has_overflown)
{
    const uint32_t index = tally->series_count + 1;
    if (scratch_room(&tally->series, tally->budget, (index + 1) * tally->series_bytes) == NULL)
        return 0;
    struct count_series *series = series_at(tally, index);
    *series = (struct count_series){.has_overflown = has_overflown};
    memcpy(series + 1, tally->indices,
           has_overflown ? 0 : tally->rules->rules[rule].keys_count * sizeof(*tally->indices));
    if (tally->tails[rule] != 0)
        series_at(tally, tally->tails[rule])->next = index;
    else
        tally->heads[rule] = index;
    tally->tails[rule] = index;
    tally->series_count = index;
    return index;
}

/* The series of the values at hand. */
static uint32_t find_series(struct count_tally *tally, size_t place)
{
    const struct count_rule *rule = &tally->rules->rules[place];
    const uint32_t number = (uint32_t)place;
    const size_t begin = nested_output_size(&tally->names);
    const uint32_t known = tally->names_table.count;
    nested_put_raw(&tally->names, slice_of(&number, sizeof(number)));
    nested_put_raw(&tally->names,
                   slice_of(tally->indices, rule->keys_count * sizeof(*tally->indices)));
    const uint32_t name = index_of(tally, &tally->names_table, &tally->names, begin);
    if (name == 0)
        return 0;
    /* Overflowing series have no names: names and others are as many. */
    uint32_t *series = scratch_room(&tally->named, tally->budget, (name + 1) * sizeof(*series));
    if (series == NULL)
        return 0;
    if (name < known)
        return series[name];
    uint64_t bytes = 0;
    for (size_t i = 0; i < rule->keys_count; i++)
        bytes += rule->keys[i].name.size + value_at(tally, tally->indices[i]).size;
    bool fits = bytes <= tally->bytes_left;
    tally->bytes_left -= fits ? bytes : 0;
    if (fits) {
        series[name] = add_series(tally, place, false);
    } else {
        if (tally->overflows[place] == 0)
            tally->overflows[place] = add_series(tally, place, true);
        series[name] = tally->overflows[place];
    }
    return series[name];
}

static bool count_record(struct count_tally *tally, size_t place)
{
    const struct count_rule *rule = &tally->rules->rules[place];
    bool has_values;
    if (rule->is_never)
        return true;
    if (!find_values(tally, rule, &has_values))
        return false;
    if (!has_values)
        return true;
    int result =
        rule->conditions != NULL ? ottl_runner_test(&tally->runner, rule->conditions) : OTTL_TRUE;
    if (result != OTTL_TRUE)
        return result == OTTL_FALSE;
    uint32_t index = find_series(tally, place);
    if (index == 0)
        return refuse(tally);
    struct count_series *series = series_at(tally, index);
    series->count++;
    tally->overflown += series->has_overflown;
    return true;
}

static void note_time(struct count_times *times, const struct ottl_record *record, unsigned field)
{
    const uint64_t time_ns = (record->present >> field & 1) != 0 ? record->fields[field].number : 0;
    if (time_ns == 0)
        return;
    if (times->first_ns == 0 || time_ns < times->first_ns)
        times->first_ns = time_ns;
    if (time_ns > times->last_ns)
        times->last_ns = time_ns;
}

/* Field numbers of the times of a record; 0: none. */
static void note_times(struct count_times *times, const struct ottl_record *record,
                       enum ottl_context context)
{
    if (context == OTTL_SPAN) {
        note_time(times, record, SPAN_START);
        note_time(times, record, SPAN_END);
    } else if (context == OTTL_SPAN_EVENT) {
        note_time(times, record, EVENT_TIME);
    } else if (context == OTTL_DATA_POINT) {
        note_time(times, record, POINT_TIME);
    } else if (context == OTTL_LOG) {
        note_time(times, record, LOG_TIME);
    } else if (context == OTTL_PROFILE) {
        note_time(times, record, PROFILE_TIME);
    }
}

/* As in Go, the request fails. */
static bool fail_without_data(struct count_tally *tally)
{
    const struct ottl_record *metric = &tally->runner.records[OTTL_METRIC];
    struct slice name = {.size = 0};
    if ((metric->present >> METRIC_NAME & 1) != 0)
        name = metric->fields[METRIC_NAME].bytes;
    return ottl_run_fail(&tally->runner.run, "metric \"%.*s\": invalid metric type: Empty",
                         name.size < 200 ? (int)name.size : 200, (const char *)name.data);
}

static bool on_record(void *arg, enum ottl_context context)
{
    struct count_tally *tally = arg;
    const struct count_rules *rules = tally->rules;
    struct ottl_record *record = &tally->runner.records[context];
    const size_t kind = context == rules->contexts[0] ? 0 : 1;
    if (!ottl_record_scan(record))
        return refuse(tally);
    note_times(&tally->times[kind], record, context);
    for (size_t i = rules->first[kind]; i < rules->first[kind + 1]; i++)
        if (!count_record(tally, i))
            return false;
    return context != OTTL_METRIC || tally->runner.records[OTTL_METRIC_DATA].exists ||
           fail_without_data(tally);
}

static void forget_resource(struct count_tally *tally)
{
    const size_t bytes = tally->rules->count * sizeof(uint32_t);
    nested_output_fini(&tally->names);
    tally->names = (struct nested_output){.budget = tally->budget};
    content_table_fini(&tally->names_table, tally->budget);
    content_table_init(&tally->names_table);
    tally->series_count = 0;
    memset(tally->heads, 0, bytes);
    memset(tally->tails, 0, bytes);
    memset(tally->overflows, 0, bytes);
    memset(tally->times, 0, sizeof(tally->times));
}

static bool begin_resource(void *arg)
{
    forget_resource(arg);
    return true;
}

static void put_series(struct count_tally *tally, const struct count_rule *rule,
                       const struct count_series *series, const struct count_times *times,
                       struct nested_output *attributes)
{
    const uint32_t *indices = (const uint32_t *)(series + 1);
    nested_output_cut(attributes, 0);
    if (series->has_overflown)
        metric_attribute_put_bool(attributes, slice_of_text(OVERFLOW_NAME), true);
    for (size_t i = 0; !series->has_overflown && i < rule->keys_count; i++)
        metric_attribute_put_value(attributes, rule->keys[i].name, value_at(tally, indices[i]));
    tally->is_refused |= attributes->refused_bytes > 0;
    struct point_head head = {.start_ns = times->first_ns, .time_ns = times->last_ns};
    if (attributes->buffer != NULL)
        head.attributes = buffer_slice(attributes->buffer);
    metric_writer_put_integer(&tally->writer, &head, (int64_t)series->count);
}

static void put_metrics(struct count_tally *tally, struct nested_output *attributes)
{
    const struct count_rules *rules = tally->rules;
    const uint64_t now_ns = clock_wall_ns();
    for (size_t kind = 0; kind < rules->contexts_count; kind++) {
        struct count_times times = tally->times[kind];
        if (times.first_ns == 0)
            times = (struct count_times){.first_ns = now_ns, .last_ns = now_ns};
        for (size_t i = rules->first[kind]; i < rules->first[kind + 1]; i++) {
            const struct count_rule *rule = &rules->rules[i];
            const struct metric_head head = {
                .name = rule->name,
                .description = rule->description,
                .kind = METRIC_SUM,
                .temporality = TEMPORALITY_DELTA,
                .is_monotonic = true,
            };
            if (tally->heads[i] == 0)
                continue;
            metric_writer_begin_metric(&tally->writer, &head);
            for (uint32_t at = tally->heads[i]; at != 0; at = series_at(tally, at)->next)
                put_series(tally, rule, series_at(tally, at), &times, attributes);
        }
    }
}

/* Adds the request that was written to the results. */
static bool finish_request(struct count_tally *tally)
{
    struct batch *batch = metric_writer_finish(&tally->writer);
    if (batch == NULL)
        return refuse(tally);
    batch->is_acknowledged = tally->is_late;
    tally->batches = (struct batch **)mem_resize((void *)tally->batches,
                                                 (tally->batches_count + 1) * sizeof(batch));
    tally->batches[tally->batches_count++] = batch;
    return true;
}

static bool end_resource(void *arg)
{
    struct count_tally *tally = arg;
    const struct ottl_record *resource = &tally->runner.records[OTTL_RESOURCE];
    struct nested_output attributes = {.budget = tally->budget};
    struct wire_reader reader = wire_reader_of(resource->bytes);
    struct wire_field field;
    if (tally->series_count == 0)
        return true;
    while (resource->exists && wire_next_field(&reader, &field))
        if (field.number == RESOURCE_ATTRIBUTES)
            nested_put_raw(&attributes, field.whole);
    tally->is_refused |= attributes.refused_bytes > 0;
    struct slice bytes = {.size = 0};
    if (attributes.buffer != NULL)
        bytes = buffer_slice(attributes.buffer);
    metric_writer_begin_resource(&tally->writer, bytes);
    metric_writer_begin_scope(&tally->writer, slice_of_text(SCOPE_NAME), slice_of_text(""));
    put_metrics(tally, &attributes);
    nested_output_fini(&attributes);
    if (tally->is_refused)
        return false;
    return metric_writer_size(&tally->writer) < METRIC_REQUEST_BYTES || finish_request(tally);
}

struct ottl_result count_tally_take(struct count_tally *tally, struct batch *batch)
{
    const struct ottl_visitor visitor = {
        .begin_resource = begin_resource,
        .end_resource = end_resource,
        .record = on_record,
        .arg = tally,
    };
    /* What cannot be refused any more may use the margin, and waits for more (downstream_retry). */
    tally->is_late = batch_may_exceed(batch);
    batch_begin_work(batch);
    tally->bytes_left = COUNT_FREE_BYTES + COUNT_RATIO * batch->bytes;
    tally->overflown = 0;
    tally->is_refused = false;
    tally->batches = NULL;
    tally->batches_count = 0;
    metric_writer_init(&tally->writer, tally->budget);
    struct ottl_result result = ottl_runner_visit(&tally->runner, batch, &visitor);
    if (result.verdict == OTTL_PASSED && metric_writer_size(&tally->writer) > 0)
        finish_request(tally);
    if (tally->is_refused) {
        result.verdict = OTTL_NO_MEMORY;
        result.never_fits =
            !batch->is_acknowledged && tally->budget != NULL &&
            (COUNT_RATIO + COUNT_OTHER_RATIO) * batch->bytes + 2 * COUNT_FREE_BYTES >
                budget_limit(tally->budget);
    }
    if (result.verdict != OTTL_PASSED) {
        for (size_t i = 0; i < tally->batches_count; i++)
            batch_unref(tally->batches[i]);
        mem_free((void *)tally->batches);
        tally->batches = NULL;
        tally->batches_count = 0;
    }
    /* Between requests nothing is charged. */
    metric_writer_fini(&tally->writer);
    forget_resource(tally);
    forget_values(tally);
    scratch_fini(&tally->series, tally->budget);
    scratch_fini(&tally->named, tally->budget);
    batch_end_work(batch);
    return result;
}
