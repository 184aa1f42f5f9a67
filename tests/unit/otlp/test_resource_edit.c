/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute actions on resources: what each does, what each leaves alone, and what is refused at
 * start. Attributes are written as "key=type:text" in these tables: s text, i int, d double, b
 * bool, e empty, x bytes, l list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/attributes/resource_edit.h"
#include "src/otlp/check.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "tests/support/memory_watch.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { ROOM = 4096, ATTRIBUTES = 1, ROUNDS = 300 };

static struct value parse_value(char type, const char *text)
{
    switch (type) {
    case 's':
        return (struct value){.type = VALUE_STRING, .bytes = slice_of_text(text)};
    case 'i':
        return (struct value){.type = VALUE_INT, .integer = strtoll(text, NULL, 10)};
    case 'd':
        return (struct value){.type = VALUE_DOUBLE, .real = strtod(text, NULL)};
    case 'b':
        return (struct value){.type = VALUE_BOOL, .boolean = text[0] == 't'};
    case 'x':
        return (struct value){.type = VALUE_BYTES, .bytes = slice_of_text(text)};
    case 'l':
        return (struct value){.type = VALUE_LIST};
    default:
        return (struct value){.type = VALUE_EMPTY};
    }
}

/* Writes "k=s:v n=i:5" as fields of a Resource. */
static void write_attributes(struct wire_writer *out, const char *notation)
{
    char text[ROOM];
    struct arena arena;
    arena_init(&arena, 1 << 20);
    snprintf(text, sizeof(text), "%s", notation);
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) {
        char *separator = strchr(at, '=');
        uint8_t room[ROOM];
        struct slice encoded;
        struct wire_writer attribute = wire_writer_of(room, sizeof(room));
        struct value value = parse_value(separator[1], separator + 3);
        assert_true(value_write(&arena, &value, &encoded));
        wire_write_bytes(&attribute, 1, slice_of(at, (size_t)(separator - at)));
        wire_write_bytes(&attribute, 2, encoded);
        wire_write_bytes(out, ATTRIBUTES, wire_written(&attribute));
    }
    arena_clear(&arena);
}

static size_t print_value(char *out, size_t room, struct slice encoded)
{
    struct value value = value_read(encoded);
    switch (value.type) {
    case VALUE_STRING:
        return (size_t)snprintf(out, room, "s:%.*s", (int)value.bytes.size,
                                (const char *)value.bytes.data);
    case VALUE_INT:
        return (size_t)snprintf(out, room, "i:%" PRId64, value.integer);
    case VALUE_DOUBLE:
        return (size_t)snprintf(out, room, "d:%g", value.real);
    case VALUE_BOOL:
        return (size_t)snprintf(out, room, "b:%s", value.boolean ? "true" : "false");
    case VALUE_BYTES:
        return (size_t)snprintf(out, room, "x:%.*s", (int)value.bytes.size,
                                (const char *)value.bytes.data);
    case VALUE_LIST:
        return (size_t)snprintf(out, room, "l:");
    case VALUE_MAP:
        return (size_t)snprintf(out, room, "m:");
    case VALUE_EMPTY:
    default:
        return (size_t)snprintf(out, room, "e:");
    }
}

static void print_attributes(struct slice resource, char *out, size_t room)
{
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    size_t used = 0;
    out[0] = '\0';
    while (wire_read_field(&reader, &field)) {
        if (field.number != ATTRIBUTES)
            continue;
        struct wire_reader inner = wire_reader_of(field.bytes);
        struct wire_field part;
        struct slice key = {0};
        struct slice value = {0};
        while (wire_read_field(&inner, &part))
            *(part.number == 1 ? &key : &value) = part.bytes;
        used += (size_t)snprintf(out + used, room - used, "%s%.*s=", used > 0 ? " " : "",
                                 (int)key.size, (const char *)key.data);
        used += print_value(out + used, room - used, value);
    }
}

/* A request with one resource, one scope, one span. */
static struct batch *make_batch(struct slice resource)
{
    struct buffer *buffer = buffer_create(NULL, resource.size + 64);
    struct wire_writer out = wire_writer_of(buffer->data, buffer->capacity);
    struct slice scopes = slice_of_text("\x12\x04\x12\x02\x30\x02\x1a\x03url");
    wire_write_header(&out, 1, wire_field_size(1, resource.size) + scopes.size);
    wire_write_bytes(&out, 1, resource);
    wire_write_raw(&out, scopes);
    buffer->size = wire_written(&out).size;
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = 1;
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    return batch;
}

/* The first schema_url of the first message. */
static struct slice first_schema_url(struct slice request)
{
    enum { SCHEMA_URL = 3 };
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    assert_true(wire_read_field(&reader, &field));
    reader = wire_reader_of(field.bytes);
    while (wire_read_field(&reader, &field))
        if (field.number == SCHEMA_URL)
            return field.bytes;
    return slice_of(NULL, 0);
}

/* The content of the first `resource` field of the first message. */
static struct slice first_resource(struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    assert_true(wire_read_field(&reader, &field));
    reader = wire_reader_of(field.bytes);
    while (wire_read_field(&reader, &field))
        if (field.number == 1)
            return field.bytes;
    return slice_of(NULL, 0);
}

static struct batch *edit(struct batch *batch, const struct attribute_action_config *configs,
                          size_t count)
{
    struct error error;
    struct resource_editor editor;
    struct attribute_actions *actions = attribute_actions_create(configs, count, &error);
    if (actions == NULL)
        fail_msg("%s", error.text);
    resource_editor_init(&editor, actions, NULL, NULL);
    struct batch *edited = resource_edit(&editor, batch);
    resource_editor_fini(&editor);
    attribute_actions_destroy(actions);
    return edited;
}

#define ACTION(verb, name, ...)                                                                    \
    {                                                                                              \
        .from_attribute = "", .from_context = "", .pattern = "", .converted_type = "",             \
        .action = (verb), .key = (name), __VA_ARGS__                                               \
    }
#define TEXT(content)                                                                              \
    .value = &(struct config_value)                                                                \
    {                                                                                              \
        .type = CONFIG_VALUE_TEXT, .text = (content)                                               \
    }
#define DEFAULT(content)                                                                           \
    .default_value = &(struct config_value)                                                        \
    {                                                                                              \
        .type = CONFIG_VALUE_TEXT, .text = (content)                                               \
    }
#define INT(number)                                                                                \
    .value = &(struct config_value)                                                                \
    {                                                                                              \
        .type = CONFIG_VALUE_INT, .integer = (number)                                              \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct {
    struct attribute_action_config action;
    const char *before;
    const char *after;
} edits[] = {
    {ACTION("insert", "a", TEXT("new")), "", "a=s:new"},
    {ACTION("insert", "a", TEXT("new")), "a=s:old b=i:1", "a=s:old b=i:1"},
    {ACTION("insert", "c", INT(7)), "a=s:old", "a=s:old c=i:7"},
    {ACTION("INSERT", "c", .from_attribute = "a"), "a=d:1.5", "a=d:1.5 c=d:1.5"},
    {ACTION("insert", "c", .from_attribute = "x"), "a=s:1", "a=s:1"},
    {ACTION("insert", "c", .from_attribute = "x", DEFAULT("d")), "a=s:1", "a=s:1 c=s:d"},
    {ACTION("insert", "c", .from_attribute = "a", DEFAULT("d")), "a=s:1", "a=s:1 c=s:1"},
    {ACTION("insert", "c", DEFAULT("d")), "", "c=s:d"},
    {ACTION("update", "a", TEXT("new")), "", ""},
    {ACTION("Update", "a", TEXT("new")), "b=s:b a=i:1 c=s:c", "b=s:b a=s:new c=s:c"},
    {ACTION("update", "a", TEXT("new")), "a=s:1 a=s:2", "a=s:new a=s:2"},
    {ACTION("upsert", "a", TEXT("new")), "", "a=s:new"},
    {ACTION("upsert", "a", TEXT("new")), "a=s:1 a=s:2", "a=s:new a=s:2"},
    {ACTION("upsert", "a", .from_attribute = "a"), "a=s:1 a=s:2", "a=s:1 a=s:2"},
    /* removal puts the last one into the gap, and removes one of equal keys */
    {ACTION("delete", "a"), "a=s:1 b=s:2 c=s:3", "c=s:3 b=s:2"},
    {ACTION("delete", "a"), "a=s:1 b=s:2 a=s:3", "a=s:3 b=s:2"},
    {ACTION("delete", "c"), "a=s:1 b=s:2 c=s:3", "a=s:1 b=s:2"},
    {ACTION("delete", "x"), "a=s:1", "a=s:1"},
    {ACTION("delete", "", .pattern = "^k8s"), "k8s.a=s:1 a=s:2 k8s.b=s:3 b=s:4", "a=s:2 b=s:4"},
    {ACTION("delete", "b", .pattern = "1$"), "a1=s:1 b=s:2 c=s:3 d=s:4", "d=s:4 c=s:3"},
    {ACTION("delete", "a", .from_context = "x"), "a=s:1", ""},
    {ACTION("hash", "a"), "a=s:abc",
     "a=s:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {ACTION("hash", "a"),
     "a=s:", "a=s:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {ACTION("hash", "a"), "a=b:true",
     "a=s:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"},
    {ACTION("hash", "a"), "a=b:false",
     "a=s:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    {ACTION("hash", "a"), "a=i:1",
     "a=s:7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8"},
    {ACTION("hash", "a"), "a=d:1",
     "a=s:6c3c396ed6b5c36dcae172271f462051b1266b851e92df3deea8ac65478fd712"},
    {ACTION("hash", "a"), "a=e: b=x:1 c=l:", "a=s: b=x:1 c=l:"},
    {ACTION("hash", "", .pattern = "^[bc]$"), "a=e: b=x:1 c=l:", "a=e: b=s: c=s:"},
    {ACTION("hash", "x"), "a=s:1", "a=s:1"},
    {ACTION("extract", "a", .pattern = "(?P<x>[0-9]+)-(?P<y>.*)"), "a=s:12-z y=i:1",
     "a=s:12-z y=s:z x=s:12"},
    {ACTION("extract", "a", .pattern = "(?<x>[0-9]+)"), "a=s:q7", "a=s:q7 x=s:7"},
    {ACTION("extract", "a", .pattern = "(?P<x>b)?(?P<y>a)"), "a=s:a", "a=s:a x=s: y=s:a"},
    {ACTION("extract", "a", .pattern = "(?P<a>b)"), "a=s:abc", "a=s:b"},
    {ACTION("extract", "a", .pattern = "(?P<x>b)"), "a=s:c", "a=s:c"},
    {ACTION("extract", "a", .pattern = "(?P<x>1)"), "a=i:1", "a=i:1"},
    {ACTION("convert", "a", .converted_type = "int"), "a=s:12", "a=i:12"},
    {ACTION("convert", "a", .converted_type = "int"), "a=s:1.5", "a=s:1.5"},
    {ACTION("convert", "a", .converted_type = "int"), "a=d:-1.9", "a=i:-1"},
    {ACTION("convert", "a", .converted_type = "int"), "a=d:1e300", "a=i:-9223372036854775808"},
    {ACTION("convert", "a", .converted_type = "int"), "a=d:nan", "a=i:-9223372036854775808"},
    {ACTION("convert", "a", .converted_type = "int"), "a=b:true", "a=i:1"},
    {ACTION("convert", "a", .converted_type = "int"), "a=l:", "a=l:"},
    {ACTION("convert", "a", .converted_type = "double"), "a=s:1e3", "a=d:1000"},
    {ACTION("convert", "a", .converted_type = "double"), "a=i:7", "a=d:7"},
    {ACTION("convert", "a", .converted_type = "double"), "a=b:false", "a=d:0"},
    {ACTION("convert", "a", .converted_type = "double"), "a=s:x", "a=s:x"},
    {ACTION("convert", "a", .converted_type = "double"), "a=e:", "a=e:"},
    {ACTION("convert", "a", .converted_type = "string"), "a=i:-5", "a=s:-5"},
    {ACTION("convert", "a", .converted_type = "string"), "a=d:0.25", "a=s:0.25"},
    {ACTION("convert", "a", .converted_type = "string"), "a=b:true", "a=s:true"},
    {ACTION("convert", "a", .converted_type = "string"), "a=x:hi", "a=s:aGk="},
    {ACTION("convert", "a", .converted_type = "string"), "a=l:", "a=s:[]"},
    {ACTION("convert", "a", .converted_type = "string"), "a=e:", "a=s:"},
    {ACTION("convert", "a", .converted_type = "int"), "a=s:1 a=s:2", "a=i:1 a=s:2"},
    /* from the request: without a client, client.address is empty */
    {ACTION("insert", "c", .from_context = "metadata.x"), "a=s:1", "a=s:1"},
    {ACTION("insert", "c", .from_context = "client.address"), "", "c=s:"},
    {ACTION("insert", "c", .from_context = "auth.subject", DEFAULT("d")), "", "c=s:d"},
};

static void each_action_does_what_the_go_collector_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        uint8_t room[ROOM];
        char found[ROOM];
        struct wire_writer resource = wire_writer_of(room, sizeof(room));
        write_attributes(&resource, edits[i].before);
        struct batch *batch = make_batch(wire_written(&resource));
        struct batch *edited = edit(batch, &edits[i].action, 1);
        struct slice bytes = joined_parts(edited);
        print_attributes(first_resource(bytes), found, sizeof(found));
        if (strcmp(found, edits[i].after) != 0)
            fail_msg("%s %s: expected \"%s\", found \"%s\"", edits[i].action.action,
                     edits[i].before, edits[i].after, found);
        if (strcmp(edits[i].before, edits[i].after) == 0)
            assert_ptr_equal(edited, batch);
        assert_int_equal(edited->items, 1);
        mem_free((void *)(uintptr_t)bytes.data);
        batch_unref(edited);
        batch_unref(batch);
    }
}

static void context_is_taken_from_the_request(void **state)
{
    static const struct client_metadata rows[] = {
        {"x-tenant", "one"}, {"other", "y"}, {"x-tenant", "two"}, {"half", ""}, {"half", "z"}};
    const struct attribute_action_config actions[] = {
        ACTION("insert", "a", .from_context = "metadata.X-Tenant"),
        ACTION("insert", "b", .from_context = "other"),
        ACTION("insert", "c", .from_context = "client.address"),
        ACTION("insert", "d", .from_context = "metadata.absent"),
        ACTION("insert", "e", .from_context = "half"),
    };
    char found[ROOM];
    (void)state;
    struct batch *batch = make_batch(slice_of(NULL, 0));
    batch->client = client_info_create("10.0.0.9", rows, 5);
    struct batch *edited = edit(batch, actions, 5);
    struct slice bytes = joined_parts(edited);
    print_attributes(first_resource(bytes), found, sizeof(found));
    assert_string_equal(found, "a=s:one;two b=s:y c=s:10.0.0.9 e=s:;z");
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(edited);
    batch_unref(batch);
}

static void mistakes_are_refused_in_the_words_of_the_go_collector(void **state)
{
    const struct {
        struct attribute_action_config action;
        const char *expected;
    } rows[] = {
        {ACTION("insert", "", TEXT("x")),
         "due to missing required field \"key\" at the 0-th action"},
        {ACTION("delete", ""),
         "(at least one of \"key\" and \"pattern\" have to be used) at the 0-th"},
        {ACTION("insert", "a"),
         "error with key \"a\" (0-th action): error creating AttrProc. Either field"},
        {ACTION("upsert", "a", TEXT("x"), .from_attribute = "b"),
         "due to multiple value sources being set"},
        {ACTION("update", "a", TEXT("x"), .pattern = "b"),
         "Action \"update\" does not use the \"pattern\" field"},
        {ACTION("update", "a", TEXT("x"), .converted_type = "int"),
         "does not use the \"converted_type\" field"},
        {ACTION("delete", "a", TEXT("x")), "does not use \"value\" or \"from_attribute\" field"},
        {ACTION("hash", "a", .from_attribute = "x"),
         "does not use \"value\" or \"from_attribute\" field"},
        {ACTION("hash", "a", .pattern = "("), "Field \"pattern\" has invalid pattern: \"(\""},
        {ACTION("extract", "a"),
         "due to missing required field \"pattern\" for action \"extract\""},
        {ACTION("extract", "a", .pattern = "abc"), "contains no named matcher groups"},
        {ACTION("extract", "a", .pattern = "(?P<x>a)(b)"),
         "contains at least one unnamed matcher group"},
        {ACTION("extract", "a", TEXT("x"), .pattern = "(?P<x>a)"),
         "does not use a value source field"},
        {ACTION("convert", "a"),
         "due to missing required field \"converted_type\" for action \"convert\""},
        {ACTION("convert", "a", .converted_type = "bool"),
         "due to invalid value \"bool\" in field \"converted_type\""},
        {ACTION("convert", "a", .converted_type = "int", .pattern = "x"),
         "does not use value sources or \"pattern\" field"},
        {ACTION("Rename", "a"), "due to unsupported action \"rename\""},
        {ACTION("", "a"), "due to unsupported action \"\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        assert_null(attribute_actions_create(&rows[i].action, 1, &error));
        if (strstr(error.text, rows[i].expected) == NULL)
            fail_msg("expected %s, found %s", rows[i].expected, error.text);
    }
}

static struct batch *merge(struct batch *batch, const struct resource_merge *what)
{
    struct resource_editor editor;
    resource_editor_init(&editor, NULL, what, NULL);
    struct batch *edited = resource_edit(&editor, batch);
    resource_editor_fini(&editor);
    return edited;
}

/* Each has the schema URL "url" already. */
static void what_is_detected_is_merged_into_the_resource(void **state)
{
    static const struct {
        const char *before;
        const char *detected;
        bool overrides;
        const char *after;
    } rows[] = {
        {"", "a=s:1 b=i:2", true, "a=s:1 b=i:2"},
        {"", "a=s:1 b=i:2", false, "a=s:1 b=i:2"},
        {"a=s:0 c=s:3 a=s:9", "a=s:1 b=i:2", true, "a=s:1 c=s:3 a=s:9 b=i:2"},
        {"a=s:0 c=s:3", "a=s:1 b=i:2", false, "a=s:0 c=s:3 b=i:2"},
        {"a=e:", "a=s:1", false, "a=e:"},
        {"a=s:1 b=i:2", "a=s:1", true, "a=s:1 b=i:2"},
        {"a=s:1", "", true, "a=s:1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t room[2][ROOM];
        char found[ROOM];
        struct wire_writer resource = wire_writer_of(room[0], ROOM);
        struct wire_writer detected = wire_writer_of(room[1], ROOM);
        struct attribute_list list;
        write_attributes(&resource, rows[i].before);
        write_attributes(&detected, rows[i].detected);
        attribute_list_init(&list, ROOM, NULL);
        struct wire_reader reader = wire_reader_of(wire_written(&detected));
        struct wire_field field;
        while (wire_read_field(&reader, &field))
            attribute_list_add(&list, field.bytes);
        const struct resource_merge what = {.attributes = list.items,
                                            .count = list.count,
                                            .overrides = rows[i].overrides,
                                            .schema_url = slice_of_text("other")};
        struct batch *batch = make_batch(wire_written(&resource));
        struct batch *edited = merge(batch, &what);
        struct slice bytes = joined_parts(edited);
        print_attributes(first_resource(bytes), found, sizeof(found));
        assert_string_equal(found, rows[i].after);
        assert_true(slice_equal_text(first_schema_url(bytes), "url"));
        assert_int_equal(edited == batch, strcmp(rows[i].before, rows[i].after) == 0);
        mem_free((void *)(uintptr_t)bytes.data);
        attribute_list_fini(&list);
        batch_unref(edited);
        batch_unref(batch);
    }
}

/* An empty one counts as none, and the last field counts. */
static void a_schema_url_is_added_where_there_is_none(void **state)
{
    static const struct {
        const char *message; /* ResourceSpans: with a scope that has a span */
        const char *expected;
    } rows[] = {
        {"\x12\x04\x12\x02\x30\x02", "\x0a\x0f\x0a\x00\x12\x04\x12\x02\x30\x02\x1a\x05other"},
        {"\x12\x04\x12\x02\x30\x02\x1a\x01s", NULL},
    };
    const struct resource_merge what = {.schema_url = slice_of_text("other")};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice message = slice_of_text(rows[i].message);
        struct buffer *buffer = buffer_create(NULL, ROOM);
        struct wire_writer out = wire_writer_of(buffer->data, ROOM);
        wire_write_bytes(&out, 1, message);
        buffer->size = wire_written(&out).size;
        struct batch *batch = batch_create(TRACES, 1);
        batch->items = 1;
        batch_append(batch, buffer, buffer_slice(buffer));
        buffer_unref(buffer);
        struct batch *edited = merge(batch, &what);
        struct slice bytes = joined_parts(edited);
        if (rows[i].expected == NULL) {
            assert_ptr_equal(edited, batch);
        } else {
            assert_int_equal(bytes.size, 17);
            assert_memory_equal(bytes.data, rows[i].expected, bytes.size);
        }
        mem_free((void *)(uintptr_t)bytes.data);
        batch_unref(edited);
        batch_unref(batch);
    }
}

/* Resource fields in several places are one Resource; unknown fields, dropped counts and schema_url
 * survive. */
static void scattered_resources_are_merged_and_unknown_fields_survive(void **state)
{
    const struct attribute_action_config action = ACTION("upsert", "a", TEXT("new"));
    static const uint8_t request[] = {
        0x0a, 34,            /* ResourceSpans */
        0x12, 2,    0x12, 0, /* a scope with a span, first of all */
        0x0a, 12,   0x0a, 8,    0x0a, 1, 'a', 0x12,
        3,    0x0a, 1,    '1',  0x10, 7,           /* resource: a, dropped 7 */
        0xd2, 0x05, 1,    'u',                     /* unknown */
        0x0a, 6,    0x0a, 4,    0x0a, 2, 'b', 'b', /* resource: bb without a value */
        0x1a, 1,    's',  0x98, 0x06,              /* schema_url, then an unknown number */
        5,
    };
    static const uint8_t expected[] = {
        0x0a, 35,  0x0a, 20,   0x0a, 10,   0x0a, 1,   'a', 0x12, 5,    0x0a, 3,
        'n',  'e', 'w',  0x0a, 4,    0x0a, 2,    'b', 'b', 0x10, 7,    0x12, 2,
        0x12, 0,   0xd2, 0x05, 1,    'u',  0x1a, 1,   's', 0x98, 0x06, 5,
    };
    struct otlp_figures figures;
    const char *reason;
    (void)state;
    uint8_t body[64];
    memcpy(body, request, sizeof(request));
    body[1] = (uint8_t)(sizeof(request) - 2);
    assert_true(otlp_check(TRACES, slice_of(body, sizeof(request)), &figures, &reason));
    struct buffer *buffer = buffer_create(NULL, sizeof(request));
    memcpy(buffer->data, body, sizeof(request));
    buffer->size = sizeof(request);
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = figures.items;
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    struct batch *edited = edit(batch, &action, 1);
    struct slice bytes = joined_parts(edited);
    memcpy(body, expected, sizeof(expected));
    body[1] = (uint8_t)(sizeof(expected) - 2);
    assert_int_equal(bytes.size, sizeof(expected));
    assert_memory_equal(bytes.data, body, sizeof(expected));
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(edited);
    batch_unref(batch);
}

/* Items behind the edit are the same, whatever the parts; taking the edit back gives the same
 * resources. */
static void random_requests_change_in_their_resources_only(void **state)
{
    const struct attribute_action_config put = ACTION("insert", "Z", TEXT("put"));
    const struct attribute_action_config take = ACTION("delete", "Z");
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        enum signal_kind signal = (enum signal_kind)(seed % 3);
        struct random_source random = {.state = seed};
        struct oracle_items expected = {0};
        struct oracle_items found = {0};
        struct slice request = random_request(&random, signal);
        struct batch *batch = random_parts(&random, signal, request);
        struct batch *with = edit(batch, &put, 1);
        struct batch *without = edit(with, &take, 1);
        struct slice back = joined_parts(without);
        struct slice edited = joined_parts(with);
        struct otlp_figures figures;
        const char *reason;
        assert_true(otlp_check(signal, edited, &figures, &reason));
        assert_int_equal(figures.items, batch->items);
        assert_int_equal(without->items, batch->items);
        oracle_list(&expected, signal, request);
        oracle_list(&found, signal, back);
        assert_int_equal(expected.count, found.count);
        for (size_t i = 0; i < found.count; i++)
            assert_string_equal(strrchr(expected.texts[i], '/'), strrchr(found.texts[i], '/'));
        oracle_clear(&expected);
        oracle_clear(&found);
        mem_free((void *)(uintptr_t)back.data);
        mem_free((void *)(uintptr_t)edited.data);
        mem_free((void *)(uintptr_t)request.data);
        batch_unref(without);
        batch_unref(with);
        batch_unref(batch);
    }
}
#pragma GCC diagnostic pop

/* What two bytes are for a resource, and for an attribute of one. */
static struct batch *many_resources(size_t count)
{
    struct buffer *buffer = buffer_create(NULL, 2 * count);
    for (size_t i = 0; i < count; i++)
        memcpy(buffer->data + 2 * i, "\x0a", 2);
    buffer->size = 2 * count;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    return batch;
}

static struct batch *many_attributes(size_t count)
{
    struct buffer *content = buffer_create(NULL, 2 * count);
    for (size_t i = 0; i < count; i++)
        memcpy(content->data + 2 * i, "\x0a", 2);
    content->size = 2 * count;
    struct batch *batch = make_batch(buffer_slice(content));
    buffer_unref(content);
    return batch;
}

/* Most that is held is what was charged; without room the batch is not edited at all. If its client
 * has its response, there is a little more room. */
static void an_edit_stays_within_the_budget(void **state)
{
    enum { COUNT = 200000, SLACK_BYTES = 64 * 1024 };
    static const uint64_t limits[] = {1 << 20, 8 << 20, 256 << 20};
    const struct attribute_action_config config = ACTION("insert", "a", TEXT("new"));
    struct error error;
    struct attribute_actions *actions = attribute_actions_create(&config, 1, &error);
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct batch *batch = i % 2 == 0 ? many_resources(COUNT) : many_attributes(COUNT);
        uint64_t limit = limits[i / 4];
        struct budget budget;
        struct resource_editor editor;
        batch->is_acknowledged = i % 4 >= 2;
        budget_init(&budget, limit);
        memory_watch_begin();
        resource_editor_init(&editor, actions, NULL, &budget);
        struct batch *edited = resource_edit(&editor, batch);
        uint64_t charged = atomic_load(&budget.high_water);
        assert_true(memory_watch_peak() <= charged + charged / 8 + SLACK_BYTES);
        /* A list of attributes twice while it grows, and what is written. */
        uint64_t free_bytes =
            batch->is_acknowledged ? 3 * BATCH_LATE_BYTES_FREE + 2 * batch->bytes : 0;
        assert_true(charged <= limit + free_bytes + SLACK_BYTES * 2);
        assert_true((edited == NULL) == (limit == limits[0]) || limit == limits[1]);
        batch_unref(edited);
        resource_editor_fini(&editor);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        batch_unref(batch);
    }
    attribute_actions_destroy(actions);
}

/* By the clock, on a lane that has been held for long already. */
static void a_lane_that_is_held_long_leaves_the_edit_to_the_helper(void **state)
{
    enum { FEW = 63, MANY = 64 };
    const struct attribute_action_config config = ACTION("insert", "a", TEXT("new"));
    struct error error;
    struct attribute_actions *actions = attribute_actions_create(&config, 1, &error);
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    clock_fake_advance(LANE_EDIT_NS);
    for (unsigned i = 0; i < 3; i++) {
        struct batch *batch = many_resources(i == 0 ? FEW : MANY);
        struct resource_editor editor;
        resource_editor_init(&editor, actions, NULL, NULL);
        editor.lane = i == 1 ? lane : NULL;
        struct batch *edited = resource_edit(&editor, batch);
        assert_int_equal(edited == NULL, i == 1);
        assert_int_equal(editor.is_long, i == 1);
        batch_unref(edited);
        resource_editor_fini(&editor);
        batch_unref(batch);
    }
    lane_destroy(lane);
    clock_fake_stop();
    attribute_actions_destroy(actions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_does_what_the_go_collector_does),
        cmocka_unit_test(context_is_taken_from_the_request),
        cmocka_unit_test(mistakes_are_refused_in_the_words_of_the_go_collector),
        cmocka_unit_test(what_is_detected_is_merged_into_the_resource),
        cmocka_unit_test(a_schema_url_is_added_where_there_is_none),
        cmocka_unit_test(scattered_resources_are_merged_and_unknown_fields_survive),
        cmocka_unit_test(random_requests_change_in_their_resources_only),
        cmocka_unit_test(an_edit_stays_within_the_budget),
        cmocka_unit_test(a_lane_that_is_held_long_leaves_the_edit_to_the_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
