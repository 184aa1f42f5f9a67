/* SPDX-License-Identifier: Apache-2.0 */
/* Valid requests, grown from the grammar. */
#include "tests/attack/grow.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/hex.h"
#include "tests/attack/pool.h"

enum {
    DEPTH_MAX = 16,
    NODES_MAX = 20000, /* beyond it only what must be there is made */
    SPREAD_NS = 1000000000,
    SERIES_DEPTH = 1,  /* of what has labels in a push */
    PROFILE_DEPTH = 3, /* of a Profile in a request */
    RANGE_MAX = 12,    /* its locations in layout 1.7 */
};

struct growth {
    struct world *world;
    struct pool *pool;
    unsigned scale;
    unsigned counts[TABLES];
    unsigned types;   /* of samples of this profile */
    unsigned range;   /* locations of this profile, in layout 1.7 */
    unsigned ordinal; /* of the entry that is made, from 0 */
    unsigned nodes;
    bool has_types; /* this form lists types of samples, so values are as many */
};

static uint64_t below(struct growth *growth, uint64_t bound)
{
    return random_below(&growth->world->random, bound);
}

static const char *const keys[] = {
    "service.name",
    "service.namespace",
    "service.instance.id",
    "container.id",
    "k8s.pod.uid",
    "k8s.pod.name",
    "host.name",
    "host.id",
    "process.pid",
    "process.executable.name",
    "thread.id",
    "thread.name",
    "thread_id",
    "http.route",
    "http.request.method",
    "http.response.status_code",
    "rpc.method",
    "trace_id",
    "span_id",
    "span_name",
    "root_span_id",
    "pyroscope.profile.id",
    "pyroscope.profile.url",
    "telemetry.sdk.language",
    "deployment.environment",
    "profile.frame.type",
    "process.executable.build_id.htlhash",
    "cpu.logical_number",
    "__name__",
    "__type__",
    "__session_id__",
    "service_name",
    "session",
    "tag",
    "bytes",
    "",
};

static const char *const words[] = {
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "wall",
    "off_cpu",
    "lock",
    "process_cpu",
    "main",
    "java.lang.Thread.run",
    "do_syscall_64",
    "[unknown]",
    "handler (a.go:7)",
    "/usr/lib/libc.so.6",
    "checkout",
    "cart",
    "payment",
    "GET /cart/{id}",
    "POST /pay",
    "/cart/{id}",
    "200",
    "503",
    "native",
    "kernel",
    "cgroup",
    "thread-7",
    "4242",
    "4243",
    "true",
    "1.5",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "local_root",
    "sp\xc3\xa4n \"quoted\" \\ and\nnew line",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct slice id_bytes(struct growth *growth, size_t size)
{
    /* Traces first bytes tell which, spans which of which trace. */
    uint8_t *id = pool_alloc(growth->pool, size);
    uint64_t trace = below(growth, WORLD_TRACES);
    memset(id, 0, size);
    if (below(growth, 24) != 0) {
        memset(id, (int)(0x10 + trace), size);
        if (size == 8)
            id[7] = (uint8_t)below(growth, WORLD_SPANS);
    }
    return slice_of(id, size);
}

static struct slice word_of(struct growth *growth)
{
    uint64_t which = below(growth, COUNT(words) + COUNT(keys) + 6);
    if (which < COUNT(words))
        return slice_of_text(words[which]);
    if (which < COUNT(words) + COUNT(keys))
        return slice_of_text(keys[which - COUNT(words)]);
    size_t size = which % 2 == 0 ? 8 : 16;
    struct slice id = id_bytes(growth, size);
    return hex_write(id.data, size, pool_alloc(growth->pool, 2 * size));
}

struct slice grow_word(struct world *world, struct pool *pool)
{
    struct growth growth = {.world = world, .pool = pool};
    return word_of(&growth);
}

const char *grow_key(struct world *world)
{
    return keys[random_below(&world->random, COUNT(keys))];
}

static uint64_t number_of(struct growth *growth, const struct form_field *field)
{
    enum otlp_kind kind = field->field->kind;
    double real = (double)below(growth, 100000) / 8;
    uint64_t number;
    switch (field->role) {
    case ROLE_INDEX:
        return growth->counts[field->to] == 0 ? 0 : below(growth, growth->counts[field->to]);
    case ROLE_ID:
        return growth->counts[field->to] == 0 ? 0 : 1 + below(growth, growth->counts[field->to]);
    case ROLE_OWN_ID:
        return growth->ordinal + 1u;
    case ROLE_TIME:
        return growth->world->now_ns - SPREAD_NS + below(growth, 2 * (uint64_t)SPREAD_NS);
    case ROLE_MICROS:
        return growth->world->now_ns / 1000 - below(growth, 1000000);
    case ROLE_SECONDS:
        return growth->world->now_ns / 1000000000 - below(growth, 2);
    case ROLE_FIRST: /* together they stay inside */
    case ROLE_LENGTH:
        return below(growth, growth->range / 2 + 1u);
    case ROLE_PLAIN:
    case ROLE_TRACE_ID:
    case ROLE_SPAN_ID:
    case ROLE_KEY:
    case ROLE_ENTRY:
    case ROLE_TYPES:
    case ROLE_VALUES:
    case ROLE_RANGE:
    case ROLE_ZIPPED:
        break;
    }
    if (kind == OTLP_BOOL)
        return below(growth, 2);
    if (kind == OTLP_ENUM)
        return below(growth, 6);
    if (kind == OTLP_DOUBLE || kind == OTLP_PACKED_DOUBLE) {
        memcpy(&number, &real, sizeof(number));
        return number;
    }
    number = below(growth, (uint64_t)1 << below(growth, 31));
    return number;
}

static struct node *numbers(struct growth *growth, const struct form_field *field)
{
    struct node *list = node_create(growth->pool, field, NODE_PACKED);
    uint64_t count = below(growth, 4);
    if (field->role == ROLE_INDEX && field->to == TABLE_LOCATIONS)
        count = 1 + below(growth, below(growth, 20) == 0 ? 90 : 7);
    if (field->role == ROLE_ID)
        count = 1 + below(growth, 7);
    if (field->role == ROLE_VALUES)
        count = growth->has_types ? growth->types : below(growth, 8) != 0;
    if (field->role == ROLE_RANGE)
        count = growth->range;
    if (growth->counts[field->to] == 0 && field->to != TABLE_NONE)
        count = 0;
    list->is_apart = below(growth, 6) == 0;
    for (; count > 0; count--) {
        struct node *number = node_create(growth->pool, field, NODE_NUMBER);
        number->value = number_of(growth, field);
        if (field->field->kind <= OTLP_PACKED_DOUBLE)
            number->wire = WIRE_FIXED64;
        node_adopt(list, number);
    }
    return list;
}

static struct node *bytes_of(struct growth *growth, const struct form_field *field)
{
    struct node *node = node_create(growth->pool, field, NODE_BYTES);
    enum otlp_kind kind = field->field->kind;
    if (field->role == ROLE_TRACE_ID || kind == OTLP_PROFILE_ID)
        node->bytes = id_bytes(growth, 16);
    else if (field->role == ROLE_SPAN_ID)
        node->bytes = id_bytes(growth, 8);
    else if (field->role == ROLE_KEY)
        node->bytes = slice_of_text(grow_key(growth->world));
    else if (field->role == ROLE_ENTRY && growth->ordinal == 0)
        node->bytes = slice_of_text("");
    else
        node->bytes = word_of(growth);
    return node;
}

static struct node *message_of(struct growth *growth, const struct form *form,
                               const struct form_field *field, unsigned depth);

static struct node *value_of(struct growth *growth, const struct form_field *field, unsigned depth)
{
    enum otlp_kind kind = field->field->kind;
    growth->nodes++;
    if (field->message != NULL)
        return message_of(growth, field->message, field, depth + 1);
    if (otlp_kind_is_packed(kind))
        return numbers(growth, field);
    if (kind >= OTLP_STRING)
        return bytes_of(growth, field);
    struct node *node = node_create(growth->pool, field, NODE_NUMBER);
    node->value = number_of(growth, field);
    node->wire = kind <= OTLP_SINT32    ? WIRE_VARINT
                 : kind == OTLP_FIXED32 ? WIRE_FIXED32
                                        : WIRE_FIXED64;
    return node;
}

static uint64_t count_of(struct growth *growth, const struct form_field *field, unsigned depth)
{
    uint64_t scale = growth->nodes > NODES_MAX ? 1 : growth->scale;
    if (field->role == ROLE_ENTRY)
        return growth->counts[field->to];
    if (field->role == ROLE_TYPES && otlp_kind_is_repeated(field->field->kind))
        return growth->types;
    switch ((int)field->field->kind) {
    case OTLP_RESOURCES:
    case OTLP_HOLDERS:
        return below(growth, 12) == 0 ? 0 : 1 + below(growth, 2);
    case OTLP_RECORDS:
        return below(growth, 12) == 0 ? 0 : 1 + below(growth, 6 * scale);
    case OTLP_KEY_VALUE:
        return depth > DEPTH_MAX / 2 ? 0 : below(growth, 5) + (depth == SERIES_DEPTH);
    case OTLP_STRINGS:
    case OTLP_MESSAGES:
        return depth > DEPTH_MAX / 2 ? 0 : below(growth, 3);
    default:
        return 1;
    }
}

static bool is_wanted(struct growth *growth, const struct form_field *field)
{
    /* Without these nothing else means anything. */
    if (field->role == ROLE_OWN_ID || strcmp(field->field->name, "dictionary") == 0)
        return true;
    bool is_central = field->role != ROLE_PLAIN || field->field->kind >= OTLP_MESSAGES ||
                      field->message == form_any_value();
    return below(growth, is_central ? 24 : 3) != 0;
}

static struct node *message_of(struct growth *growth, const struct form *form,
                               const struct form_field *field, unsigned depth)
{
    struct node *message = node_create(growth->pool, field, NODE_MESSAGE);
    uint32_t one_of = form->message->one_of;
    unsigned chosen = 0;
    if (depth > DEPTH_MAX || growth->nodes > 2 * NODES_MAX)
        return message;
    if (field != NULL && field->role == ROLE_ENTRY && growth->ordinal == 0 &&
        growth->counts[TABLE_STACKS] > 0 && below(growth, 12) != 0)
        return message; /* the zero element of a dictionary */
    if (one_of != 0) {
        chosen = (unsigned)below(growth, 32);
        if (form == form_any_value() && below(growth, 2) == 0)
            chosen = 1;
        while ((one_of >> chosen & 1) == 0)
            chosen = (chosen + 1) % 32;
    }
    unsigned ordinal = growth->ordinal;
    if (depth == PROFILE_DEPTH)
        growth->range =
            growth->counts[TABLE_LOCATIONS] > 0 ? (unsigned)below(growth, RANGE_MAX) : 0;
    unsigned turn = below(growth, 8) == 0 ? (unsigned)below(growth, form->count + 1u) : 0;
    for (unsigned i = form->count; i-- > 0;) {
        const struct form_field *inner = &form->fields[(i + turn) % form->count];
        uint32_t number = inner->field->number;
        bool is_member = number < 32 && (one_of >> number & 1) != 0;
        if (is_member ? number != chosen : !is_wanted(growth, inner))
            continue;
        uint64_t count = count_of(growth, inner, depth);
        /* Entries are put in front of each other: the last comes first. */
        while (count-- > 0) {
            growth->ordinal = inner->role == ROLE_OWN_ID ? ordinal : (unsigned)count;
            node_adopt(message, value_of(growth, inner, depth));
        }
    }
    return message;
}

struct node *grow(struct world *world, struct pool *pool, enum form_request request, unsigned scale)
{
    struct growth growth = {.world = world, .pool = pool, .scale = scale};
    assert(scale > 0);
    growth.has_types = request == FORM_PPROF || request == FORM_PROFILES_1_7;
    growth.types = 1 + (unsigned)below(&growth, 3);
    for (unsigned i = TABLE_STRINGS; i < TABLES; i++)
        growth.counts[i] = 1 + (unsigned)below(&growth, (i == TABLE_STRINGS ? 24u : 8u) * scale);
    if (request == FORM_PPROF || request == FORM_PROFILES_1_7)
        growth.counts[TABLE_STACKS] = 0;
    return message_of(&growth, form_of(request), NULL, 0);
}
