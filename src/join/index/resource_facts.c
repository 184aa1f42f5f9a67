/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes are of the kind and the strings; they are the same on both sides of the join, and differ
 * from process to process. Any thread. */
#include "src/join/index/resource_facts.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "src/base/random.h"
#include "src/join/url_template.h"
#include "src/otlp/key_value.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { ATTRIBUTES = 1 };

/* Seeds of hashes, beside the numbers of names. */
enum seed { SEED_POD = 100, SEED_POD_CONTAINER };

/* OpenTelemetry's SDKs give it to a service without a name, perhaps with : and the program's name.
 */
#define DEFAULT_SERVICE "unknown_service"

#define NAME(text)                                                                                 \
    {                                                                                              \
        .data = (const uint8_t *)(text), .size = sizeof(text) - 1                                  \
    }

static const struct slice names[RESOURCE_KEYS] = {
    [RESOURCE_SERVICE_NAME] = NAME("service.name"),
    [RESOURCE_SERVICE_NAMESPACE] = NAME("service.namespace"),
    [RESOURCE_SERVICE_INSTANCE] = NAME("service.instance.id"),
    [RESOURCE_ENVIRONMENT] = NAME("deployment.environment"),
    [RESOURCE_ENVIRONMENT_NAME] = NAME("deployment.environment.name"),
    [RESOURCE_CONTAINER] = NAME("container.id"),
    [RESOURCE_POD] = NAME("k8s.pod.uid"),
    [RESOURCE_POD_CONTAINER] = NAME("k8s.container.name"),
    [RESOURCE_HOST_ID] = NAME("host.id"),
    [RESOURCE_HOST_NAME] = NAME("host.name"),
    [RESOURCE_PID] = NAME("process.pid"),
};

static const enum resource_key processes[RESOURCE_NAMES][2] = {
    {RESOURCE_CONTAINER, RESOURCE_CONTAINER},
    {RESOURCE_POD, RESOURCE_POD_CONTAINER},
    {RESOURCE_HOST_ID, RESOURCE_PID},
    {RESOURCE_HOST_NAME, RESOURCE_PID},
    {RESOURCE_SERVICE_NAME, RESOURCE_SERVICE_INSTANCE},
};

bool value_text_of(struct slice encoded, char room[VALUE_TEXT_BYTES], struct slice *ret_text)
{
    struct value value = value_read_single(encoded);
    int bytes = 0;
    if (value.type == VALUE_STRING) {
        *ret_text = value.bytes;
        return true;
    }
    if (value.type == VALUE_INT) {
        uint64_t left = value.integer < 0 ? -(uint64_t)value.integer : (uint64_t)value.integer;
        size_t at = VALUE_TEXT_BYTES;
        do
            room[--at] = (char)('0' + left % 10);
        while ((left /= 10) > 0);
        if (value.integer < 0)
            room[--at] = '-';
        *ret_text = slice_of(room + at, VALUE_TEXT_BYTES - at);
        return true;
    }
    if (value.type == VALUE_DOUBLE)
        bytes = snprintf(room, VALUE_TEXT_BYTES, "%.15g", value.real);
    else if (value.type == VALUE_BOOL)
        bytes = snprintf(room, VALUE_TEXT_BYTES, "%s", value.boolean ? "true" : "false");
    else
        return false;
    *ret_text = slice_of(room, (size_t)bytes);
    return true;
}

struct slice value_text_or_empty(struct slice encoded)
{
    struct value value = {.type = VALUE_EMPTY};
    if (encoded.data != NULL)
        value = value_read(encoded);
    return value.type == VALUE_STRING ? value.bytes : slice_of_text("");
}

/* Drawn once: without it a client could choose a service that collides with another, or names that
 * crowd one place of a table. */
static uint64_t process_seed(void)
{
    static _Atomic uint64_t drawn;
    uint64_t seed = atomic_load_explicit(&drawn, memory_order_relaxed);
    if (seed != 0)
        return seed;
    uint64_t fresh = (uint64_t)(random_uniform() * 0x1p53) << 8 | 1;
    return atomic_compare_exchange_strong(&drawn, &seed, fresh) ? fresh : seed;
}

/* 0: it has no string, or an empty one. */
static uint64_t hash_value(struct slice value, uint64_t seed)
{
    char room[VALUE_TEXT_BYTES];
    struct slice text;
    if (value.data == NULL || !value_text_of(value, room, &text) || text.size == 0)
        return 0;
    uint64_t hash = XXH3_64bits_withSeed(text.data, text.size, seed + process_seed());
    return hash != 0 ? hash : 1;
}

enum resource_key resource_identity_key(struct slice key)
{
    enum resource_key found = 0;
    while (found < RESOURCE_IDENTITY_KEYS && !slice_equal(key, names[found]))
        found++;
    return found;
}

bool resource_lacks(const struct resource_facts *facts, enum resource_key key)
{
    const size_t size = sizeof(DEFAULT_SERVICE) - 1;
    char room[VALUE_TEXT_BYTES];
    struct slice text;
    assert(key < RESOURCE_KEYS);
    if (facts->values[key].data == NULL || !value_text_of(facts->values[key], room, &text) ||
        text.size == 0)
        return true;
    return key == RESOURCE_SERVICE_NAME && slice_begins_with(text, DEFAULT_SERVICE) &&
           (text.size == size || text.data[size] == ':');
}

struct resource_facts resource_facts_of(struct slice content)
{
    struct resource_facts facts = {.service = 0};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != ATTRIBUTES || field.type != WIRE_BYTES)
            continue;
        struct key_value attribute = key_value_of(field.bytes);
        for (int i = 0; attribute.value.data != NULL && i < RESOURCE_KEYS; i++) {
            if (facts.values[i].data != NULL || !slice_equal(attribute.key, names[i]))
                continue;
            facts.values[i] = attribute.value;
            if (i < RESOURCE_IDENTITY_KEYS)
                facts.key_values[i] = field.bytes;
        }
    }
    assert(reader.failure == NULL);
    facts.service = hash_value(facts.values[RESOURCE_SERVICE_NAME], 0);
    for (uint64_t i = 0; i < RESOURCE_NAMES; i++) {
        uint64_t first = hash_value(facts.values[processes[i][0]], i + 1);
        facts.processes[i] = first != 0 ? hash_value(facts.values[processes[i][1]], first) : 0;
    }
    facts.has_service = !resource_lacks(&facts, RESOURCE_SERVICE_NAME);
    facts.pod = hash_value(facts.values[RESOURCE_POD], SEED_POD);
    facts.pod_container = hash_value(facts.values[RESOURCE_POD_CONTAINER], SEED_POD_CONTAINER);
    facts.hash = (uint32_t)XXH3_64bits_withSeed(content.data, content.size, process_seed());
    return facts;
}

struct url_values resource_url_values(const struct resource_facts *facts)
{
    return (struct url_values){
        .texts = {
            [URL_SERVICE_NAME] = value_text_or_empty(facts->values[RESOURCE_SERVICE_NAME]),
            [URL_SERVICE_NAMESPACE] =
                value_text_or_empty(facts->values[RESOURCE_SERVICE_NAMESPACE]),
        }};
}
