/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars, lists of numbers and ids of pprof messages. Pure functions; any thread. */
#include "src/profiles/pprof/pprof_reading.h"

#include <assert.h>
#include <inttypes.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/random.h"
#include "src/otlp/wire.h"

void *reading_take(struct reading *reading, size_t count, size_t size)
{
    assert(size > 0);
    void *room = count <= SIZE_MAX / size ? arena_try_alloc(reading->arena, count * size) : NULL;
    if (room == NULL)
        error_set(reading->error, "the profile needs more memory than it may have");
    else
        memset(room, 0, count * size);
    return room;
}

bool reading_malformed(struct reading *reading, const char *what, const struct wire_reader *reader)
{
    assert(reader->failure != NULL);
    return error_set(reading->error, "%s: %s; this is no pprof profile, or it is damaged", what,
                     reader->failure);
}

static bool store(struct reading *reading, const struct scalar_row *row, uint64_t number, void *to)
{
    assert(row->kind < SCALARS_END);
    uint8_t *at = (uint8_t *)to + row->offset;
    if (row->kind == SCALAR_NUMBER) {
        memcpy(at, &number, sizeof(number));
        return true;
    }
    if (row->kind == SCALAR_FLAG) {
        bool flag = number != 0;
        memcpy(at, &flag, sizeof(flag));
        return true;
    }
    uint32_t index = (uint32_t)number;
    if (number >= reading->pprof->strings_count)
        return error_set(reading->error,
                         "text %" PRId64 " is used, but the string table has only %zu",
                         (int64_t)number, reading->pprof->strings_count);
    memcpy(at, &index, sizeof(index));
    return true;
}

bool read_scalar(struct reading *reading, const struct wire_field *field,
                 const struct scalar_row *rows, void *to)
{
    assert(to != NULL);
    for (const struct scalar_row *row = rows; row->kind != SCALARS_END; row++) {
        if (row->number != field->number)
            continue;
        if (field->type != WIRE_VARINT)
            return error_set(reading->error, "field %u is no number", field->number);
        return store(reading, row, field->number_value, to);
    }
    return true;
}

bool read_scalars(struct reading *reading, struct slice message, const struct scalar_row *rows,
                  void *to)
{
    assert(rows != NULL);
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (!read_scalar(reading, &field, rows, to))
            return false;
    return reader.failure == NULL || reading_malformed(reading, "a part", &reader);
}

bool ids_open(struct reading *reading, struct id_map *map, size_t count)
{
    assert(map->ids == NULL);
    size_t slots = 8;
    while (slots < 2 * count)
        slots *= 2;
    map->mask = slots - 1;
    map->seed = (uint64_t)(random_uniform() * 9007199254740992.0) << 11;
    map->ids = reading_take(reading, slots, sizeof(map->ids[0]));
    map->places = reading_take(reading, slots, sizeof(map->places[0]));
    return map->ids != NULL && map->places != NULL;
}

static size_t ids_slot(const struct id_map *map, uint64_t id)
{
    assert(map->ids != NULL);
    uint64_t mixed = (id ^ map->seed) * 0xff51afd7ed558ccdu;
    mixed = (mixed ^ mixed >> 32) * 0xc4ceb9fe1a85ec53u;
    size_t slot = (size_t)(mixed >> 32) & map->mask;
    while (map->ids[slot] != 0 && map->ids[slot] != id)
        slot = (slot + 1) & map->mask;
    return slot;
}

bool ids_add(struct reading *reading, struct id_map *map, uint64_t id, size_t place)
{
    if (id == 0)
        return error_set(reading->error, "id 0, which means none");
    size_t slot = ids_slot(map, id);
    if (map->ids[slot] == id)
        return error_set(reading->error, "id %" PRIu64 " twice", id);
    map->ids[slot] = id;
    map->places[slot] = (uint32_t)place;
    map->in_order += id == place + 1 && map->in_order == place;
    return true;
}

bool ids_find(struct reading *reading, const struct id_map *map, uint64_t id, uint32_t *ret_place)
{
    assert(ret_place != NULL);
    if (id <= map->in_order) {
        *ret_place = (uint32_t)id;
        return true;
    }
    size_t slot = ids_slot(map, id);
    if (map->ids[slot] != id)
        return error_set(reading->error, "id %" PRIu64 " is used, but the profile has no such one",
                         id);
    *ret_place = map->places[slot] + 1;
    return true;
}

bool read_numbers(struct reading *reading, const struct wire_field *field, struct numbers *numbers)
{
    assert(numbers != NULL);
    if (field->type == WIRE_VARINT) {
        if (numbers->items != NULL)
            numbers->items[numbers->count] = field->number_value;
        numbers->count++;
        return true;
    }
    if (field->type != WIRE_BYTES)
        return error_set(reading->error, "field %u holds no numbers", field->number);
    struct wire_reader reader = wire_reader_of(field->bytes);
    while (reader.at < reader.end) {
        uint64_t number = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        if (reader.failure != NULL)
            return reading_malformed(reading, "a list of numbers", &reader);
        if (numbers->items != NULL)
            numbers->items[numbers->count] = number;
        numbers->count++;
    }
    return true;
}
