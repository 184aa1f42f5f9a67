/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and packs repeated numbers. Runs on the processor's thread. */
#include "src/ottl/ottl_numbers.h"

#include "src/otlp/wire.h"
#include "src/ottl/ottl_access.h"

const struct ottl_numbers ottl_fixed_counts = {
    .name = "uint64", .form = OTTL_FORM_UINTS, .is_fixed = true};
const struct ottl_numbers ottl_varint_counts = {.name = "uint64", .form = OTTL_FORM_UINTS};
const struct ottl_numbers ottl_fixed_doubles = {
    .name = "float64", .form = OTTL_FORM_DOUBLES, .is_fixed = true, .is_double = true};
const struct ottl_numbers ottl_indices = {
    .name = "int32", .form = OTTL_FORM_INTS, .is_int32 = true};
const struct ottl_numbers ottl_varint_ints = {.name = "int64", .form = OTTL_FORM_INTS};
const struct ottl_numbers ottl_fixed_ints = {
    .name = "uint64", .form = OTTL_FORM_INTS, .is_fixed = true};

static bool append(struct ottl_run *run, const struct ottl_numbers *numbers, uint64_t bits,
                   struct ottl_list *list)
{
    struct ottl_value item = ottl_int(numbers->is_int32 ? (int32_t)bits : (int64_t)bits);
    if (numbers->is_double) {
        double real;
        memcpy(&real, &bits, sizeof(real));
        item = ottl_double(real);
    }
    return ottl_list_append(list, &item) || ottl_run_no_memory(run);
}

/* The content of a packed field. A rest that is no number is left out, as nothing that was checked
 * has one. */
static bool append_packed(struct ottl_run *run, const struct ottl_numbers *numbers,
                          struct slice content, struct ottl_list *list)
{
    struct wire_reader reader = wire_reader_of(content);
    while (reader.at < reader.end && reader.failure == NULL) {
        uint64_t bits = 0;
        if (!numbers->is_fixed) {
            bits = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        } else if ((size_t)(reader.end - reader.at) >= sizeof(bits)) {
            memcpy(&bits, reader.at, sizeof(bits));
            reader.at += sizeof(bits);
        } else {
            break;
        }
        if (reader.failure == NULL && !append(run, numbers, bits, list))
            return false;
    }
    return true;
}

/* Counts what such a list took, if the record is around that of the statement: fields that were
 * stepped over, and items. */
static void note_work(struct ottl_run *run, const struct ottl_record *record, uint64_t fields,
                      const struct ottl_list *list)
{
    enum { FIELD_BYTES = 2, ITEM_BYTES = 8 };
    if (ottl_run_is_around(run, &record->memory))
        ottl_run_work(run, FIELD_BYTES * fields + ITEM_BYTES * (uint64_t)list->count);
}

bool ottl_numbers_read(struct ottl_run *run, const struct ottl_numbers *numbers,
                       const struct ottl_record *record, struct slice message, unsigned number,
                       struct ottl_value *ret)
{
    struct ottl_list *list = ottl_list_create(run->memory);
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t fields = 0;
    if (list == NULL)
        return ottl_run_no_memory(run);
    *ret = ottl_list_value(list, (enum ottl_form)numbers->form);
    for (; wire_next_field(&reader, &field); fields++)
        if (field.number == number &&
            !(field.type == WIRE_BYTES ? append_packed(run, numbers, field.bytes, list)
                                       : append(run, numbers, field.number_value, list)))
            return false;
    note_work(run, record, fields, list);
    return true;
}

bool ottl_numbers_get(struct ottl_run *run, const struct ottl_numbers *numbers,
                      const struct ottl_record *record, unsigned number, struct ottl_value *ret)
{
    if ((record->changed >> number & 1) == 0)
        return ottl_numbers_read(run, numbers, record, record->bytes, number, ret);
    struct ottl_list *list = ottl_list_create(run->memory);
    if (list == NULL)
        return ottl_run_no_memory(run);
    *ret = ottl_list_value(list, (enum ottl_form)numbers->form);
    if (!append_packed(run, numbers, ottl_field_bytes(record, number), list))
        return false;
    note_work(run, record, 0, list);
    return true;
}

static bool fail_item(struct ottl_run *run, const struct ottl_numbers *numbers, unsigned form,
                      const struct ottl_value *item)
{
    if (numbers->is_double)
        return ottl_run_fail(run, "invalid value type provided for a slice of %sfloat64: %s",
                             form == OTTL_FORM_PDATA ? "[]" : "", ottl_type_name(item));
    return ottl_run_fail(run, "invalid value type provided for %sslice of %s: %s, expected int64",
                         form == OTTL_FORM_PDATA ? "" : "a ", numbers->name, ottl_type_name(item));
}

bool ottl_numbers_pack(struct ottl_run *run, const struct ottl_numbers *numbers,
                       struct ottl_memory *memory, const struct ottl_value *value,
                       struct slice *ret)
{
    const bool is_taken = value->type == OTTL_LIST &&
                          (value->form <= OTTL_FORM_ANY ||
                           (numbers->is_double ? value->form == OTTL_FORM_DOUBLES
                                               : value->form == OTTL_FORM_INTS ||
                                                     (value->form == OTTL_FORM_UINTS &&
                                                      strcmp(numbers->name, "uint64") == 0)));
    if (!is_taken)
        return ottl_run_fail(run,
                             numbers->is_double
                                 ? "invalid type provided for setting a slice of %s: %s"
                                 : "cannot set a slice of %s from a value type: %s",
                             ottl_type_name(value), numbers->name);
    const size_t bytes =
        value->list->count * (numbers->is_fixed ? sizeof(uint64_t) : WIRE_VARINT_BYTES_MAX);
    uint8_t *room = ottl_memory_room(memory, bytes);
    if (room == NULL)
        return ottl_run_no_memory(run);
    uint8_t *at = room;
    for (uint32_t i = 0; i < value->list->count; i++) {
        struct ottl_value item;
        if (!ottl_list_read(value->list, i, &item))
            return ottl_run_no_memory(run);
        if (item.type != (numbers->is_double ? OTTL_DOUBLE : OTTL_INT))
            return fail_item(run, numbers, value->form, &item);
        uint64_t bits = (uint64_t)(numbers->is_int32 ? (int32_t)item.integer : item.integer);
        if (numbers->is_double)
            memcpy(&bits, &item.real, sizeof(bits));
        if (numbers->is_fixed) {
            memcpy(at, &bits, sizeof(bits));
            at += sizeof(bits);
            continue;
        }
        for (; bits >= 0x80; bits >>= 7)
            *at++ = (uint8_t)(bits | 0x80);
        *at++ = (uint8_t)bits;
    }
    *ret = slice_of(room, (size_t)(at - room));
    return true;
}

bool ottl_numbers_set(struct ottl_run *run, const struct ottl_numbers *numbers,
                      struct ottl_record *record, unsigned number, const struct ottl_value *value)
{
    struct slice packed;
    return ottl_numbers_pack(run, numbers, &record->memory, value, &packed) &&
           ottl_put_bytes(run, record, number, packed);
}
