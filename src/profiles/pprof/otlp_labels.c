/* SPDX-License-Identifier: Apache-2.0 */
/* Converts attributes and links to pprof labels. Runs on the thread of the owner. */
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

/* One attribute of the table. */
struct attribute_slot {
    enum attribute_kind kind;
    uint32_t rules;      /* the number of the rules by which the kind was found */
    uint32_t generation; /* of the profile that has the label's strings */
    uint32_t name;       /* place in names; KIND_SERVICE: index in services */
    union {
        struct pprof_label label; /* KIND_LABEL */
        struct slice service;     /* KIND_SERVICE */
    };
};

void otlp_labels_init(struct otlp_labels *labels, const struct otlp_label_rules *rules,
                      const struct profile_dictionary *dictionary, struct budget *budget)
{
    assert(rules->names_max <= OTLP_LABEL_NAMES_MAX);
    *labels = (struct otlp_labels){.rules = rules, .dictionary = dictionary, .budget = budget};
    arena_init(&labels->arena, NAMES_ARENA_BYTES_MAX);
    arena_init(&labels->value_arena, VALUE_ARENA_BYTES_MAX);
    content_table_init(&labels->services);
}

void otlp_labels_fini(struct otlp_labels *labels)
{
    scratch_fini(&labels->attributes, labels->budget);
    scratch_fini(&labels->labels, labels->budget);
    content_table_fini(&labels->services, labels->budget);
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
    /* Slots of other rules are classified again when they are used. */
    labels->rules_number++;
}

void otlp_labels_begin(struct otlp_labels *labels)
{
    assert(labels->generation < UINT32_MAX);
    labels->generation++;
}

bool otlp_label_name(struct arena *arena, struct slice key, enum otlp_name_form form,
                     struct slice *ret_name)
{
    if (key.size == 0 || key.size > OTLP_LABEL_NAME_BYTES_MAX || otlp_text_valid(key) < key.size)
        return false;
    uint8_t *name = arena_try_alloc(arena, key.size);
    if (name == NULL)
        return false;
    for (size_t i = 0; i < key.size; i++) {
        uint8_t byte = key.data[i];
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool is_digit = byte >= '0' && byte <= '9';
        bool stays = form == OTLP_NAME_AS_IT_IS || is_letter || (is_digit && i > 0) ||
                     (form == OTLP_NAME_UNDERSCORES && byte != '.');
        name[i] = stays ? byte : '_';
    }
    *ret_name = slice_of(name, key.size);
    return key.size < 2 || name[0] != '_' || name[1] != '_';
}

static size_t entry_bytes(const struct otlp_labels *labels, struct profile_index index)
{
    return profile_entry_at(labels->dictionary, PROFILE_ATTRIBUTES, index).size;
}

/* What reading an attribute takes: of a string no more than what is kept of it. */
static uint64_t work_of(const struct otlp_labels *labels, struct profile_index index)
{
    size_t bytes = entry_bytes(labels, index);
    struct value value = value_read(profile_attribute_at(labels->dictionary, index).value);
    if (value.type != VALUE_STRING)
        return otlp_text_work(bytes);
    size_t kept = labels->rules->value_bytes_max;
    return otlp_text_work(bytes - value.bytes.size) +
           (value.bytes.size < kept ? value.bytes.size : kept);
}

/* Names are compared once, not for each sample. 0: no memory. */
static uint32_t number_service(struct otlp_labels *labels, struct slice name)
{
    const uint8_t *request = labels->dictionary->request.data;
    uint32_t hash;
    uint32_t number = content_table_find(&labels->services, request, name, &hash);
    if (number == 0)
        number = content_table_add(&labels->services, labels->budget, hash,
                                   (size_t)(name.data - request), name.size);
    labels->has_failed |= number == 0;
    return number;
}

enum { NO_PLACE = OTLP_LABEL_NAMES_MAX };

/* The place of a label's name, of which a copy is kept if it is new. NO_PLACE: there is no room. */
static uint32_t place_of(struct otlp_labels *labels, struct slice name)
{
    uint32_t place = 0;
    while (place < labels->names_count && !slice_equal(labels->names[place], name))
        place++;
    if (place < labels->names_count)
        return place;
    uint8_t *copy =
        place < labels->rules->names_max ? arena_try_alloc(&labels->arena, name.size) : NULL;
    if (copy == NULL) {
        labels->dropped++;
        return NO_PLACE;
    }
    memcpy(copy, name.data, name.size);
    labels->names[labels->names_count++] = slice_of(copy, name.size);
    return place;
}

/* Finds what an attribute becomes: the service, or the place of a label's name, which is added if
 * it is new and there is room. */
static enum attribute_kind classify(struct otlp_labels *labels, struct profile_index index,
                                    struct attribute_slot *slot)
{
    const struct otlp_label_rules *rules = labels->rules;
    const struct profile_dictionary *dictionary = labels->dictionary;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
        return KIND_SKIPPED;
    struct slice key = profile_string_at(dictionary, attribute.key);
    bool is_service =
        slice_equal_text(key, "service.name") || slice_equal_text(key, "service_name");
    if (is_service && !rules->keeps_service) {
        struct value value = value_read(attribute.value);
        if (value.type != VALUE_STRING || value.bytes.size == 0)
            return KIND_SKIPPED;
        /* Cut as its label will be, since samples are grouped by it. */
        struct slice name = otlp_text_cut(value.bytes, rules->value_bytes_max);
        if (name.size == 0 || otlp_text_valid(name) < name.size)
            return KIND_SKIPPED;
        slot->service = name;
        slot->name = number_service(labels, name);
        return slot->name != 0 ? KIND_SERVICE : KIND_SKIPPED;
    }
    for (size_t i = 0; i < rules->drops_count; i++)
        if (slice_equal_text(key, rules->drops[i]))
            return KIND_SKIPPED;
    struct correlation ids = {.has_span = false};
    if (rules->lifts_ids && correlation_take_attribute(&ids, dictionary, index))
        return KIND_ID;
    enum otlp_name_form form = rules->has_plain_names ? OTLP_NAME_PLAIN
                               : rules->keeps_dots    ? OTLP_NAME_AS_IT_IS
                                                      : OTLP_NAME_UNDERSCORES;
    struct slice name;
    bool is_name = otlp_label_name(&labels->value_arena, key, form, &name);
    slot->name = is_name ? place_of(labels, name) : NO_PLACE;
    arena_clear(&labels->value_arena);
    return slot->name != NO_PLACE ? KIND_LABEL : KIND_SKIPPED;
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
        labels->work += work_of(labels, index);
        slot->kind = classify(labels, index, slot);
    }
    return slot;
}

/* Writes the unit of a number, cut as values are. */
static uint32_t write_unit(struct otlp_labels *labels, struct profile_index index,
                           struct pprof_writer *writer)
{
    if (!profile_has(labels->dictionary, PROFILE_STRINGS, index))
        return 0;
    struct slice unit =
        otlp_text_cut(profile_string_at(labels->dictionary, index), labels->rules->value_bytes_max);
    if (otlp_text_valid(unit) < unit.size) {
        uint8_t *room = arena_try_alloc(&labels->value_arena, unit.size);
        unit = room != NULL ? otlp_text_repaired(unit, room) : slice_of(NULL, 0);
    }
    uint32_t string = pprof_writer_string(writer, unit);
    arena_clear(&labels->value_arena);
    return string;
}

/* Writes the strings of an attribute's label, once per profile. */
static void write_label(struct otlp_labels *labels, struct profile_index index,
                        struct attribute_slot *slot, struct pprof_writer *writer)
{
    const struct profile_dictionary *dictionary = labels->dictionary;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    struct value value = value_read(attribute.value);
    struct slice text = {.size = 0};
    assert(slot->kind == KIND_LABEL);
    slot->generation = labels->generation;
    slot->label = (struct pprof_label){.key = 0};
    if (labels->rules->takes_least && value.type == VALUE_LIST) {
        /* Takes the least string of the list instead of the list, if it has any. */
        struct wire_reader reader = wire_reader_of(value.bytes);
        struct wire_field field;
        while (wire_read_field(&reader, &field)) {
            if (field.type != WIRE_BYTES)
                continue;
            struct value element = value_read(field.bytes);
            if (element.type != VALUE_STRING || element.bytes.size == 0)
                continue;
            size_t shared = element.bytes.size < text.size ? element.bytes.size : text.size;
            int order = shared > 0 ? memcmp(element.bytes.data, text.data, shared) : 0;
            if (text.size > 0 && (order > 0 || (order == 0 && element.bytes.size >= text.size)))
                continue;
            attribute.value = field.bytes;
            text = element.bytes;
        }
    }
    if (labels->rules->has_numbers && value.type == VALUE_INT) {
        slot->label.number = value.integer;
        slot->label.unit = write_unit(labels, attribute.unit, writer);
    } else {
        bool has_text = otlp_text_of_value(&labels->value_arena, dictionary, attribute.value,
                                           labels->rules->value_bytes_max, &text);
        if (has_text)
            slot->label.text = pprof_writer_string(writer, text);
        arena_clear(&labels->value_arena);
        if (!has_text)
            return;
    }
    slot->label.key = pprof_writer_string(writer, labels->names[slot->name]);
}

static struct pprof_label id_label(struct pprof_writer *writer, const char *key, const uint8_t *id,
                                   size_t size)
{
    uint8_t hex[32];
    assert(2 * size <= sizeof(hex));
    return (struct pprof_label){
        .key = pprof_writer_string(writer, slice_of_text(key)),
        .text = pprof_writer_string(writer, hex_write(id, size, hex)),
    };
}

size_t otlp_labels_write(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct pprof_writer *writer, const struct pprof_label **ret_labels)
{
    const struct profile_dictionary *dictionary = labels->dictionary;
    size_t most = profile_numbers_count(&sample->attributes.numbers) + ID_LABELS_MAX;
    struct pprof_label *to = scratch_room(&labels->labels, labels->budget, most * sizeof(to[0]));
    if (to == NULL) {
        labels->has_failed = true;
        return 0;
    }
    /* The ids of the sample's link, else those of its attributes: never both, since they might not
     * belong together. */
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
    size_t count = 0;
    if (ids.has_span)
        to[count++] = id_label(writer, "span_id", ids.span_id, sizeof(ids.span_id));
    if (ids.has_trace && labels->rules->has_trace_id)
        to[count++] = id_label(writer, "trace_id", ids.trace_id, sizeof(ids.trace_id));

    reader = profile_indices_read(&sample->attributes);
    while (profile_indices_next(&reader, &index)) {
        struct attribute_slot *slot = slot_of(labels, index);
        if (slot == NULL || slot->kind != KIND_LABEL)
            continue;
        if (slot->generation != labels->generation)
            write_label(labels, index, slot, writer);
        /* A name counts once: the ids first, then the attributes in their order. */
        bool is_new = slot->label.key != 0;
        for (size_t i = 0; is_new && i < count; i++)
            is_new = to[i].key != slot->label.key;
        if (is_new)
            to[count++] = slot->label;
    }
    *ret_labels = to;
    return count;
}

uint64_t otlp_labels_cost(struct otlp_labels *labels, const struct profile_sample *sample)
{
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
        labels->work += work_of(labels, index);
        struct profile_attribute attribute = profile_attribute_at(labels->dictionary, index);
        uint64_t value = LABEL_BYTES_MAX + (uint64_t)JSON_EXPANSION_MAX * attribute.value.size;
        if (value > labels->rules->value_bytes_max)
            value = labels->rules->value_bytes_max;
        cost += labels->names[slot->name].size + value;
        if (labels->rules->has_numbers &&
            profile_has(labels->dictionary, PROFILE_STRINGS, attribute.unit)) {
            size_t unit = profile_string_at(labels->dictionary, attribute.unit).size;
            cost += unit < labels->rules->value_bytes_max ? unit : labels->rules->value_bytes_max;
        }
    }
    return cost;
}

uint32_t otlp_labels_service(struct otlp_labels *labels, const struct profile_sample *sample,
                             struct slice *ret_name)
{
    struct profile_indices_reader reader = profile_indices_read(&sample->attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        const struct attribute_slot *slot = slot_of(labels, index);
        if (slot == NULL || slot->kind != KIND_SERVICE)
            continue;
        *ret_name = slot->service;
        return slot->name;
    }
    return 0;
}
