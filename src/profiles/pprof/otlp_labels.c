/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and links into pprof labels. Runs on the thread of the owner. */
#include "src/profiles/pprof/otlp_labels.h"

#include <assert.h>
#include <string.h>

#include "src/base/hex.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/correlation.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof_writer.h"

enum {
    LABEL_BYTES_MAX = 48, /* with its message around it */
    NAMES_ARENA_BYTES_MAX = OTLP_LABEL_NAMES_MAX * (OTLP_LABEL_NAME_BYTES_MAX + 64),
    VALUE_ARENA_BYTES_MAX = 4 << 20,
    JSON_EXPANSION_MAX = 6, /* a byte may become an escape */
    ID_LABELS_MAX = 2,
};

enum attribute_kind { KIND_UNKNOWN, KIND_SKIPPED, KIND_SERVICE, KIND_ID, KIND_LABEL };

/* What is known of one attribute of the table. */
struct attribute_slot {
    enum attribute_kind kind;
    uint32_t rules;      /* number of those by which the kind was found */
    uint32_t generation; /* of the profile that has the label's texts */
    uint32_t name;       /* place in names */
    struct pprof_label label;
};

void otlp_labels_init(struct otlp_labels *labels, const struct otlp_label_rules *rules,
                      const struct profile_dictionary *dictionary, struct budget *budget)
{
    assert(rules->names_max <= OTLP_LABEL_NAMES_MAX);
    assert(dictionary != NULL);
    *labels = (struct otlp_labels){.rules = rules, .dictionary = dictionary, .budget = budget};
    arena_init(&labels->arena, NAMES_ARENA_BYTES_MAX);
    arena_init(&labels->value_arena, VALUE_ARENA_BYTES_MAX);
}

void otlp_labels_fini(struct otlp_labels *labels)
{
    assert(labels != NULL);
    scratch_fini(&labels->attributes, labels->budget);
    scratch_fini(&labels->labels, labels->budget);
    arena_clear(&labels->arena);
    arena_clear(&labels->value_arena);
}

void otlp_labels_set_rules(struct otlp_labels *labels, const struct otlp_label_rules *rules)
{
    assert(rules->names_max <= OTLP_LABEL_NAMES_MAX);
    if (labels->rules == rules)
        return;
    labels->rules = rules;
    labels->names_count = 0;
    arena_clear(&labels->arena);
    /* What was found by other rules is found again when it is asked for. */
    labels->rules_number++;
}

void otlp_labels_begin(struct otlp_labels *labels)
{
    assert(labels->generation < UINT32_MAX);
    labels->generation++;
}

static uint8_t name_byte(uint8_t byte, enum otlp_name_form form, bool is_first)
{
    bool is_digit = byte >= '0' && byte <= '9';
    bool is_plain =
        (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (is_digit && !is_first);
    bool stays =
        form == OTLP_NAME_AS_IT_IS || is_plain || (form == OTLP_NAME_UNDERSCORES && byte != '.');
    assert(form <= OTLP_NAME_PLAIN);
    return stays ? byte : '_';
}

bool otlp_label_name(struct arena *arena, struct slice key, enum otlp_name_form form,
                     struct slice *ret_name)
{
    assert(arena != NULL);
    if (key.size == 0 || key.size > OTLP_LABEL_NAME_BYTES_MAX || otlp_text_valid(key) < key.size)
        return false;
    uint8_t *name = arena_try_alloc(arena, key.size);
    if (name == NULL)
        return false;
    for (size_t i = 0; i < key.size; i++)
        name[i] = name_byte(key.data[i], form, i == 0);
    *ret_name = slice_of(name, key.size);
    return key.size < 2 || name[0] != '_' || name[1] != '_';
}

static enum otlp_name_form form_of(const struct otlp_label_rules *rules)
{
    assert(rules != NULL);
    if (rules->has_plain_names)
        return OTLP_NAME_PLAIN;
    return rules->keeps_dots ? OTLP_NAME_AS_IT_IS : OTLP_NAME_UNDERSCORES;
}

static bool is_dropped(const struct otlp_label_rules *rules, struct slice key)
{
    assert(rules->drops != NULL || rules->drops_count == 0);
    for (size_t i = 0; i < rules->drops_count; i++)
        if (slice_equal_text(key, rules->drops[i]))
            return true;
    return false;
}

/* Place of a label's name, which is added when it is new; false: there are too many. */
static bool find_name(struct otlp_labels *labels, struct slice key, uint32_t *ret_place)
{
    assert(labels->names_count <= labels->rules->names_max);
    struct slice name;
    if (!otlp_label_name(&labels->arena, key, form_of(labels->rules), &name))
        return false;
    for (size_t i = 0; i < labels->names_count; i++)
        if (slice_equal(labels->names[i], name)) {
            *ret_place = (uint32_t)i;
            return true;
        }
    if (labels->names_count == labels->rules->names_max) {
        labels->dropped++;
        return false;
    }
    *ret_place = (uint32_t)labels->names_count;
    labels->names[labels->names_count++] = name;
    return true;
}

static bool names_service(struct slice encoded)
{
    struct value value = value_read(encoded);
    return value.type == VALUE_TEXT && value.bytes.size > 0 &&
           otlp_text_valid(value.bytes) == value.bytes.size;
}

static enum attribute_kind classify(struct otlp_labels *labels, struct profile_index index,
                                    uint32_t *ret_name)
{
    const struct profile_dictionary *dictionary = labels->dictionary;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
        return KIND_SKIPPED;
    struct slice key = profile_string_at(dictionary, attribute.key);
    bool is_service =
        slice_equal_text(key, "service.name") || slice_equal_text(key, "service_name");
    if (is_service && !labels->rules->keeps_service)
        return names_service(attribute.value) ? KIND_SERVICE : KIND_SKIPPED;
    if (is_dropped(labels->rules, key))
        return KIND_SKIPPED;
    struct correlation ids = {.has_span = false};
    if (labels->rules->lifts_ids && correlation_take_attribute(&ids, dictionary, index))
        return KIND_ID;
    return find_name(labels, key, ret_name) ? KIND_LABEL : KIND_SKIPPED;
}

/* NULL: out of range, or no memory. */
static struct attribute_slot *slot_of(struct otlp_labels *labels, struct profile_index index)
{
    size_t count = labels->dictionary->counts[PROFILE_ATTRIBUTES];
    if (!profile_index_is_set(index) || !profile_has(labels->dictionary, PROFILE_ATTRIBUTES, index))
        return NULL;
    struct attribute_slot *slots =
        scratch_room(&labels->attributes, labels->budget, count * sizeof(slots[0]));
    labels->has_failed |= slots == NULL;
    if (slots == NULL)
        return NULL;
    struct attribute_slot *slot =
        &slots[profile_place(labels->dictionary, PROFILE_ATTRIBUTES, index)];
    if (slot->kind == KIND_UNKNOWN || slot->rules != labels->rules_number) {
        *slot = (struct attribute_slot){.rules = labels->rules_number};
        slot->kind = classify(labels, index, &slot->name);
    }
    return slot;
}

/* An integer stays one where the rules allow it. */
static bool write_number(struct otlp_labels *labels, const struct profile_attribute *attribute,
                         struct pprof_writer *writer, struct pprof_label *label)
{
    struct value value = value_read(attribute->value);
    if (!labels->rules->has_numbers || value.type != VALUE_INT)
        return false;
    bool has_unit = profile_has(labels->dictionary, PROFILE_STRINGS, attribute->unit);
    label->number = value.integer;
    if (has_unit)
        label->unit =
            pprof_writer_text(writer, profile_string_at(labels->dictionary, attribute->unit));
    return true;
}

/* The least text of a list, as a value; no data: that is no list, or has none. */
static struct slice least_of(struct slice encoded)
{
    struct value list = value_read(encoded);
    struct slice least = {.data = NULL};
    struct slice text = {.size = 0};
    struct wire_reader reader = wire_reader_of(list.type == VALUE_LIST ? list.bytes : text);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        struct value value = value_read(field.type == WIRE_BYTES ? field.bytes : text);
        if (value.type != VALUE_TEXT || value.bytes.size == 0)
            continue;
        size_t shared = value.bytes.size < text.size ? value.bytes.size : text.size;
        int order = shared > 0 ? memcmp(value.bytes.data, text.data, shared) : 0;
        bool is_less = order < 0 || (order == 0 && value.bytes.size < text.size);
        if (least.data != NULL && !is_less)
            continue;
        least = field.bytes;
        text = value.bytes;
    }
    return least;
}

/* Writes the texts of an attribute's label, once per profile. */
static void write_label(struct otlp_labels *labels, struct profile_index index,
                        struct attribute_slot *slot, struct pprof_writer *writer)
{
    assert(slot->kind == KIND_LABEL);
    struct profile_attribute attribute = profile_attribute_at(labels->dictionary, index);
    struct slice text;
    struct slice least = labels->rules->takes_least ? least_of(attribute.value) : slice_of(NULL, 0);
    if (least.data != NULL)
        attribute.value = least;
    slot->generation = labels->generation;
    slot->label = (struct pprof_label){.key = 0};
    if (!write_number(labels, &attribute, writer, &slot->label)) {
        bool has_text = otlp_text_of_value(&labels->value_arena, labels->dictionary,
                                           attribute.value, labels->rules->value_bytes_max, &text);
        if (has_text)
            slot->label.text = pprof_writer_text(writer, text);
        arena_clear(&labels->value_arena);
        if (!has_text)
            return;
    }
    slot->label.key = pprof_writer_text(writer, labels->names[slot->name]);
}

static uint32_t write_hex(struct pprof_writer *writer, const uint8_t *id, size_t size)
{
    uint8_t text[32];
    assert(2 * size <= sizeof(text));
    return pprof_writer_text(writer, hex_write(id, size, text));
}

/* What the sample's link says, else its attributes: one of the two, or their ids might not belong
 * together. */
static struct correlation ids_of(struct otlp_labels *labels, const struct profile_sample *sample)
{
    const struct profile_dictionary *dictionary = labels->dictionary;
    struct correlation ids = {.has_span = false};
    if (profile_index_is_set(sample->link) && profile_has(dictionary, PROFILE_LINKS, sample->link))
        correlation_take_link(&ids, dictionary, sample->link);
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    bool is_linked = ids.has_span || ids.has_trace;
    struct profile_index index;
    while (!is_linked && labels->rules->lifts_ids && profile_indices_next(&reader, &index)) {
        const struct attribute_slot *slot = slot_of(labels, index);
        if (slot != NULL && slot->kind == KIND_ID)
            correlation_take_attribute(&ids, dictionary, index);
    }
    return ids;
}

static size_t write_ids(struct otlp_labels *labels, const struct profile_sample *sample,
                        struct pprof_writer *writer, struct pprof_label *to)
{
    const struct correlation ids = ids_of(labels, sample);
    size_t count = 0;
    assert(to != NULL);
    if (ids.has_span)
        to[count++] = (struct pprof_label){
            .key = pprof_writer_text(writer, slice_of_text("span_id")),
            .text = write_hex(writer, ids.span_id, sizeof(ids.span_id)),
        };
    if (ids.has_trace && labels->rules->has_trace_id)
        to[count++] = (struct pprof_label){
            .key = pprof_writer_text(writer, slice_of_text("trace_id")),
            .text = write_hex(writer, ids.trace_id, sizeof(ids.trace_id)),
        };
    return count;
}

/* A name counts once: the ids first, then the attributes in their order. */
static bool has_key(const struct pprof_label *labels, size_t count, uint32_t key)
{
    for (size_t i = 0; i < count; i++)
        if (labels[i].key == key)
            return true;
    return false;
}

size_t otlp_labels_write(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct pprof_writer *writer, const struct pprof_label **ret_labels)
{
    assert(sample != NULL);
    assert(writer != NULL);
    size_t most = profile_numbers_count(&sample->attributes.numbers) + ID_LABELS_MAX;
    struct pprof_label *to = scratch_room(&labels->labels, labels->budget, most * sizeof(to[0]));
    if (to == NULL) {
        labels->has_failed = true;
        return 0;
    }
    size_t count = write_ids(labels, sample, writer, to);
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        struct attribute_slot *slot = slot_of(labels, index);
        if (slot == NULL || slot->kind != KIND_LABEL)
            continue;
        if (slot->generation != labels->generation)
            write_label(labels, index, slot, writer);
        if (slot->label.key != 0 && !has_key(to, count, slot->label.key))
            to[count++] = slot->label;
    }
    *ret_labels = to;
    return count;
}

uint64_t otlp_labels_cost(struct otlp_labels *labels, const struct profile_sample *sample)
{
    assert(sample != NULL);
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    uint64_t cost = profile_index_is_set(sample->link) ? ID_LABELS_MAX * 2 * LABEL_BYTES_MAX : 0;
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        const struct attribute_slot *slot = slot_of(labels, index);
        if (slot != NULL && slot->kind == KIND_ID)
            cost += 2 * LABEL_BYTES_MAX;
        if (slot == NULL || slot->kind != KIND_LABEL)
            continue;
        cost += LABEL_BYTES_MAX;
        if (slot->generation == labels->generation)
            continue;
        struct profile_attribute attribute = profile_attribute_at(labels->dictionary, index);
        uint64_t value = LABEL_BYTES_MAX + (uint64_t)JSON_EXPANSION_MAX * attribute.value.size;
        if (value > labels->rules->value_bytes_max)
            value = labels->rules->value_bytes_max;
        cost += labels->names[slot->name].size + value;
    }
    return cost;
}

bool otlp_labels_service(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct slice *ret_name)
{
    assert(ret_name != NULL);
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        const struct attribute_slot *slot = slot_of(labels, index);
        if (slot == NULL || slot->kind != KIND_SERVICE)
            continue;
        struct value value = value_read(profile_attribute_at(labels->dictionary, index).value);
        /* As much as its label will have: samples are told apart by it, one by one. */
        *ret_name = otlp_text_cut(value.bytes, labels->rules->value_bytes_max);
        return true;
    }
    return false;
}
