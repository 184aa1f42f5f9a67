/* SPDX-License-Identifier: Apache-2.0 */
/* Random profiles requests. Tables are drawn from few values, so that requests share entries. */
#include "tests/support/random_profiles.h"

#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"

struct generator {
    struct random_source *random;
    struct profile_bytes out;
    uint64_t counts[PROFILE_TABLES];
};

static uint64_t below(struct generator *generator, uint64_t bound)
{
    return random_below(generator->random, bound);
}

static void put_text(struct generator *generator, uint32_t number, const char *text)
{
    profile_bytes_field(&generator->out, number, slice_of_text(text));
}

static void put_fixed64(struct generator *generator, uint32_t number, uint64_t value)
{
    uint8_t room[16];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    wire_write_fixed64(&writer, number, value);
    profile_bytes_add(&generator->out, wire_written(&writer));
}

/* An index into a table: often 0. */
static uint64_t any_index(struct generator *generator, enum profile_table table)
{
    uint64_t count = generator->counts[table];
    return count == 0 || below(generator, 4) == 0 ? 0 : below(generator, count);
}

static void put_index(struct generator *generator, uint32_t number, enum profile_table table)
{
    profile_bytes_number(&generator->out, number, any_index(generator, table));
}

/* Packed, or one by one, or both. */
static void put_indices(struct generator *generator, uint32_t number, enum profile_table table,
                        uint64_t most)
{
    bool is_packed = below(generator, 4) != 0;
    size_t begin = generator->out.size;
    for (uint64_t count = below(generator, most + 1); count > 0; count--) {
        uint8_t *at = profile_bytes_room(&generator->out, 16);
        uint8_t *end = at;
        if (!is_packed)
            *end++ = (uint8_t)wire_tag(number, WIRE_VARINT);
        end = profile_put_varint(end, any_index(generator, table));
        generator->out.size += (size_t)(end - at);
    }
    if (is_packed && generator->out.size > begin)
        profile_bytes_wrap(&generator->out, begin, number);
    if (below(generator, 16) == 0)
        put_indices(generator, number, table, 2);
}

static void put_value(struct generator *generator, unsigned depth);

static void put_nested_value(struct generator *generator, unsigned depth)
{
    size_t begin = generator->out.size;
    put_value(generator, depth);
    profile_bytes_wrap(&generator->out, begin, 2);
}

static void put_value(struct generator *generator, unsigned depth)
{
    char text[16];
    size_t begin = generator->out.size;
    switch (below(generator, depth < 3 ? 6 : 4)) {
    case 0:
        profile_bytes_number(&generator->out, 8, any_index(generator, PROFILE_STRINGS));
        break;
    case 1:
        profile_bytes_number(&generator->out, 3, 1 + below(generator, 4));
        break;
    case 4:
        put_value(generator, depth + 1);
        profile_bytes_wrap(&generator->out, begin, 1);
        profile_bytes_wrap(&generator->out, begin, 5);
        break;
    case 5:
        profile_bytes_number(&generator->out, 3, any_index(generator, PROFILE_STRINGS));
        put_nested_value(generator, depth + 1);
        profile_bytes_wrap(&generator->out, begin, 1);
        profile_bytes_wrap(&generator->out, begin, 6);
        break;
    default:
        snprintf(text, sizeof(text), "value %u", (unsigned)below(generator, 5));
        put_text(generator, 1, text);
    }
}

/* A KeyValue whose key is a string, an index, or a string with a stale index. */
static void put_attribute(struct generator *generator, uint32_t number)
{
    size_t begin = generator->out.size;
    if (below(generator, 3) != 0)
        put_text(generator, 1, below(generator, 2) != 0 ? "service.name" : "host.name");
    if (below(generator, 3) == 0)
        profile_bytes_number(&generator->out, 3, any_index(generator, PROFILE_STRINGS));
    size_t value = generator->out.size;
    put_value(generator, 0);
    if (generator->out.size > value)
        profile_bytes_wrap(&generator->out, value, 2);
    profile_bytes_wrap(&generator->out, begin, number);
}

static void put_attributes(struct generator *generator, uint32_t number)
{
    for (uint64_t count = below(generator, 3); count > 0; count--)
        put_attribute(generator, number);
}

static void put_line(struct generator *generator)
{
    size_t begin = generator->out.size;
    put_index(generator, 1, PROFILE_FUNCTIONS);
    profile_bytes_number(&generator->out, 2, below(generator, 300));
    profile_bytes_number(&generator->out, 3, below(generator, 2));
    profile_bytes_wrap(&generator->out, begin, 3);
}

static void put_entry(struct generator *generator, enum profile_table table)
{
    static const uint8_t ids[32] = {0};
    char text[32];
    switch (table) {
    case PROFILE_MAPPINGS:
        profile_bytes_number(&generator->out, 1, below(generator, 4) << 20);
        profile_bytes_number(&generator->out, 2, below(generator, 4) << 21);
        profile_bytes_number(&generator->out, 3, below(generator, 2));
        put_index(generator, 4, PROFILE_STRINGS);
        put_indices(generator, 5, PROFILE_ATTRIBUTES, 2);
        break;
    case PROFILE_LOCATIONS:
        put_index(generator, 1, PROFILE_MAPPINGS);
        profile_bytes_number(&generator->out, 2, below(generator, 6) << 40);
        for (uint64_t lines = below(generator, 4); lines > 0; lines--)
            put_line(generator);
        put_indices(generator, 4, PROFILE_ATTRIBUTES, 2);
        break;
    case PROFILE_FUNCTIONS:
        put_index(generator, 1, PROFILE_STRINGS);
        put_index(generator, 2, PROFILE_STRINGS);
        put_index(generator, 3, PROFILE_STRINGS);
        profile_bytes_number(&generator->out, 4, below(generator, 3));
        break;
    case PROFILE_LINKS:
        snprintf(text, sizeof(text), "trace%011uspan%04u", (unsigned)below(generator, 4),
                 (unsigned)below(generator, 4));
        profile_bytes_field(&generator->out, 1,
                            slice_of(below(generator, 8) == 0 ? (const char *)ids : text, 16));
        profile_bytes_field(&generator->out, 2,
                            slice_of(text + 16, below(generator, 8) == 0 ? 0 : 8));
        break;
    case PROFILE_STRINGS:
        snprintf(text, sizeof(text), "text %u", (unsigned)below(generator, 12));
        profile_bytes_add(&generator->out, slice_of_text(text));
        break;
    case PROFILE_ATTRIBUTES: {
        put_index(generator, 1, PROFILE_STRINGS);
        size_t begin = generator->out.size;
        put_value(generator, 0);
        profile_bytes_wrap(&generator->out, begin, 2);
        put_index(generator, 3, PROFILE_STRINGS);
        break;
    }
    case PROFILE_STACKS:
    case PROFILE_TABLES:
    default:
        put_indices(generator, 1, PROFILE_LOCATIONS, below(generator, 8) == 0 ? 90 : 8);
    }
}

static void put_table(struct generator *generator, enum profile_table table)
{
    uint64_t count = below(generator, 8) == 0 ? 0 : below(generator, 14);
    bool has_zero = below(generator, 6) != 0;
    for (uint64_t i = 0; i < count + has_zero; i++) {
        size_t begin = generator->out.size;
        if (i > 0 || !has_zero)
            put_entry(generator, table);
        profile_bytes_wrap(&generator->out, begin, table + 1u);
        generator->counts[table]++;
    }
}

static void put_dictionary(struct generator *generator)
{
    static const enum profile_table order[] = {
        PROFILE_STRINGS,  PROFILE_ATTRIBUTES, PROFILE_LINKS,  PROFILE_FUNCTIONS,
        PROFILE_MAPPINGS, PROFILE_LOCATIONS,  PROFILE_STACKS,
    };
    size_t begin = generator->out.size;
    for (size_t i = 0; i < PROFILE_TABLES; i++)
        put_table(generator, order[i]);
    profile_bytes_wrap(&generator->out, begin, 2);
}

static void put_sample(struct generator *generator)
{
    size_t begin = generator->out.size;
    put_index(generator, 1, PROFILE_STACKS);
    put_indices(generator, 2, PROFILE_ATTRIBUTES, 3);
    put_index(generator, 3, PROFILE_LINKS);
    for (uint64_t count = below(generator, 3); count > 0; count--) /* not packed */
        profile_bytes_number(&generator->out, 4, 1 + below(generator, 1u << 20));
    if (below(generator, 3) == 0)
        profile_bytes_field(&generator->out, 5,
                            slice_of("\1\2\3\4\5\6\7\10\21\22\23\24\25\26\27\30", 16));
    if (below(generator, 8) == 0)
        put_fixed64(generator, 5, below(generator, 1u << 30));
    profile_bytes_wrap(&generator->out, begin, 2);
}

static void put_type(struct generator *generator, uint32_t number)
{
    size_t begin = generator->out.size;
    if (below(generator, 6) == 0)
        return;
    put_index(generator, 1, PROFILE_STRINGS);
    put_index(generator, 2, PROFILE_STRINGS);
    profile_bytes_wrap(&generator->out, begin, number);
}

static void put_profile(struct generator *generator)
{
    size_t begin = generator->out.size;
    put_type(generator, 1);
    for (uint64_t count = below(generator, 4) == 0 ? 0 : below(generator, 20); count > 0; count--)
        put_sample(generator);
    put_fixed64(generator, 3, below(generator, 1u << 30));
    profile_bytes_number(&generator->out, 4, below(generator, 3) * 1000000000);
    put_type(generator, 5);
    profile_bytes_number(&generator->out, 6, below(generator, 3));
    if (below(generator, 2) == 0)
        put_text(generator, 7, "0123456789abcdef");
    profile_bytes_number(&generator->out, 8, below(generator, 2));
    if (below(generator, 3) == 0) {
        put_text(generator, 9, "pprof");
        put_text(generator, 10, "a payload of some length");
    }
    put_indices(generator, 11, PROFILE_ATTRIBUTES, 2);
    profile_bytes_wrap(&generator->out, begin, 2);
}

/* With attributes in field `number`. */
static void put_head(struct generator *generator, uint32_t number)
{
    size_t begin = generator->out.size;
    if (below(generator, 5) != 0) {
        put_attributes(generator, number);
        profile_bytes_wrap(&generator->out, begin, 1);
    }
    if (below(generator, 3) == 0)
        put_text(generator, 3, "https://example.com/schema");
}

static void put_resource(struct generator *generator)
{
    size_t begin = generator->out.size;
    put_head(generator, 1);
    for (uint64_t scopes = below(generator, 3); scopes > 0; scopes--) {
        size_t scope = generator->out.size;
        put_head(generator, 3);
        for (uint64_t profiles = below(generator, 4); profiles > 0; profiles--)
            put_profile(generator);
        profile_bytes_wrap(&generator->out, scope, 2);
    }
    profile_bytes_wrap(&generator->out, begin, 1);
}

struct slice random_profiles(struct random_source *random)
{
    struct generator generator = {.random = random};
    struct generator dictionary = {.random = random};
    put_dictionary(&dictionary);
    memcpy(generator.counts, dictionary.counts, sizeof(generator.counts));
    bool comes_first = below(&generator, 2) == 0;
    struct slice bytes = slice_of(dictionary.out.data, dictionary.out.size);
    if (comes_first)
        profile_bytes_add(&generator.out, bytes);
    for (uint64_t resources = below(&generator, 4); resources > 0; resources--)
        put_resource(&generator);
    if (!comes_first)
        profile_bytes_add(&generator.out, bytes);
    profile_bytes_fini(&dictionary.out);
    return slice_of(generator.out.data, generator.out.size);
}
