/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes sketches: a dictionary that grows, then the messages around it. */
#include "tests/support/profile_sketch.h"

#include "src/base/mem.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/entry_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name
#define SERVICE_REQUEST(name)  PROFILES_SERVICE(export_profiles_service_request__##name)

enum { ROOM = 4096 };

struct drawing {
    struct entry_table tables[PROFILE_TABLES];
};

static void append(struct byte_run *run, uint32_t number, struct slice content)
{
    bool is_done = byte_run_append_message(run, NULL, number, content);
    assert(is_done);
}

static uint32_t text(struct drawing *drawing, const char *one)
{
    return entry_table_add(&drawing->tables[PROFILE_STRINGS],
                           slice_of_text(one != NULL ? one : ""));
}

/* AnyValue of what stands behind '='. */
static struct slice value(const char *pair, uint8_t room[ROOM])
{
    const char *said = strchr(pair, '=') + 1;
    struct wire_writer writer = wire_writer_of(room, ROOM);
    if (said[0] == '#')
        wire_write_number(&writer, 3, (uint64_t)strtoll(said + 1, NULL, 10));
    else
        wire_write_bytes(&writer, 1, slice_of_text(said));
    return wire_written(&writer);
}

static struct slice key(const char *pair)
{
    return slice_of(pair, (size_t)(strchr(pair, '=') - pair));
}

static uint32_t attribute(struct drawing *drawing, const char *pair)
{
    uint8_t room[ROOM];
    uint8_t content[ROOM];
    struct wire_writer writer = wire_writer_of(content, sizeof(content));
    wire_write_number(&writer, 1, entry_table_add(&drawing->tables[PROFILE_STRINGS], key(pair)));
    wire_write_bytes(&writer, 2, value(pair, room));
    return entry_table_add(&drawing->tables[PROFILE_ATTRIBUTES], wire_written(&writer));
}

static uint32_t location(struct drawing *drawing, struct slice name)
{
    uint8_t room[64];
    struct wire_writer function = wire_writer_of(room, sizeof(room));
    wire_write_number(&function, 1, entry_table_add(&drawing->tables[PROFILE_STRINGS], name));
    uint32_t index = entry_table_add(&drawing->tables[PROFILE_FUNCTIONS], wire_written(&function));
    uint8_t line_room[64];
    struct wire_writer line = wire_writer_of(line_room, sizeof(line_room));
    wire_write_number(&line, 1, index);
    wire_write_number(&line, 2, 7);
    uint8_t location_room[128];
    struct wire_writer content = wire_writer_of(location_room, sizeof(location_room));
    wire_write_bytes(&content, 3, wire_written(&line));
    return entry_table_add(&drawing->tables[PROFILE_LOCATIONS], wire_written(&content));
}

static uint32_t stack(struct drawing *drawing, const char *frames)
{
    struct byte_run packed = {.size = 0};
    struct byte_run content = {.size = 0};
    while (frames != NULL) {
        size_t size = strcspn(frames, ";");
        uint8_t room[WIRE_VARINT_BYTES_MAX];
        struct wire_writer writer = wire_writer_of(room, sizeof(room));
        wire_write_varint(&writer, location(drawing, slice_of(frames, size)));
        bool is_done = byte_run_append(&packed, NULL, wire_written(&writer));
        assert(is_done);
        frames = frames[size] == ';' ? frames + size + 1 : NULL;
    }
    if (packed.size > 0)
        append(&content, 1, byte_run_slice(&packed));
    uint32_t index = entry_table_add(&drawing->tables[PROFILE_STACKS], byte_run_slice(&content));
    scratch_fini(&packed.scratch, NULL);
    scratch_fini(&content.scratch, NULL);
    return index;
}

static uint32_t sample_link(struct drawing *drawing, const struct sketch_sample *sample)
{
    uint8_t room[64];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    if (sample->trace_id != NULL)
        wire_write_bytes(&writer, 1, slice_of(sample->trace_id, 16));
    if (sample->span_id != NULL)
        wire_write_bytes(&writer, 2, slice_of(sample->span_id, 8));
    return entry_table_add(&drawing->tables[PROFILE_LINKS], wire_written(&writer));
}

static void draw_sample(struct drawing *drawing, const struct sketch_sample *sample,
                        struct byte_run *profile)
{
    uint8_t room[ROOM];
    uint8_t packed_room[ROOM];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    struct wire_writer packed = wire_writer_of(packed_room, sizeof(packed_room));
    wire_write_number(&writer, 1, stack(drawing, sample->stack));
    for (size_t i = 0; i < SKETCH_ATTRIBUTES_MAX && sample->attributes[i] != NULL; i++)
        wire_write_number(&writer, 2, attribute(drawing, sample->attributes[i]));
    wire_write_number(&writer, 3, sample_link(drawing, sample));
    for (size_t i = 0; i < sample->values_count; i++)
        wire_write_varint(&packed, (uint64_t)sample->values[i]);
    if (sample->values_count > 0)
        wire_write_bytes(&writer, 4, wire_written(&packed));
    for (size_t i = 0; i < sample->timestamps_count; i++)
        wire_write_fixed64(&writer, 5, (sample->time_ns > 0 ? sample->time_ns : 1) + i);
    append(profile, 2, wire_written(&writer));
}

static void draw_type(struct drawing *drawing, uint32_t number, const char *const type[2],
                      struct byte_run *profile)
{
    uint8_t room[64];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    if (type[0] == NULL)
        return;
    wire_write_number(&writer, 1, text(drawing, type[0]));
    wire_write_number(&writer, 2, text(drawing, type[1]));
    append(profile, number, wire_written(&writer));
}

static void draw_profile(struct drawing *drawing, const struct sketch_profile *sketch,
                         struct byte_run *scope)
{
    struct byte_run profile = {.size = 0};
    uint8_t room[64];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    draw_type(drawing, 1, sketch->type, &profile);
    for (size_t i = 0; i < sketch->samples_count; i++)
        draw_sample(drawing, &sketch->samples[i], &profile);
    wire_write_fixed64(&writer, 3, sketch->time_ns);
    wire_write_number(&writer, 4, sketch->duration_ns);
    wire_write_number(&writer, 6, (uint64_t)sketch->period);
    for (size_t i = 0; i < 4 && sketch->attributes[i] != NULL; i++)
        wire_write_number(&writer, 11, attribute(drawing, sketch->attributes[i]));
    bool is_done = byte_run_append(&profile, NULL, wire_written(&writer));
    assert(is_done);
    draw_type(drawing, 5, sketch->period_type, &profile);
    append(scope, 2, byte_run_slice(&profile));
    scratch_fini(&profile.scratch, NULL);
}

static void draw_resource(const struct sketch *sketch, struct byte_run *resources)
{
    struct byte_run resource = {.size = 0};
    for (size_t i = 0; i < SKETCH_ATTRIBUTES_MAX && sketch->resource[i] != NULL; i++) {
        struct byte_run pair = {.size = 0};
        uint8_t room[ROOM];
        append(&pair, 1, key(sketch->resource[i]));
        append(&pair, 2, value(sketch->resource[i], room));
        append(&resource, 1, byte_run_slice(&pair));
        scratch_fini(&pair.scratch, NULL);
    }
    append(resources, 1, byte_run_slice(&resource));
    scratch_fini(&resource.scratch, NULL);
}

static void draw_dictionary(struct drawing *drawing, struct byte_run *request)
{
    struct byte_run dictionary = {.size = 0};
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        bool is_done =
            byte_run_append(&dictionary, NULL, byte_run_slice(&drawing->tables[i].bytes));
        assert(is_done && !drawing->tables[i].has_failed);
        entry_table_fini(&drawing->tables[i]);
    }
    append(request, 2, byte_run_slice(&dictionary));
    scratch_fini(&dictionary.scratch, NULL);
}

struct slice sketch_request(const struct sketch *sketch)
{
    struct drawing drawing;
    struct byte_run scope = {.size = 0};
    struct byte_run resources = {.size = 0};
    struct byte_run request = {.size = 0};
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entry_table_init(&drawing.tables[i], i + 1, NULL);
    draw_resource(sketch, &resources);
    for (size_t i = 0; i < sketch->profiles_count; i++)
        draw_profile(&drawing, &sketch->profiles[i], &scope);
    append(&resources, 2, byte_run_slice(&scope));
    append(&request, 1, byte_run_slice(&resources));
    draw_dictionary(&drawing, &request);
    scratch_fini(&scope.scratch, NULL);
    scratch_fini(&resources.scratch, NULL);
    void *decoded = SERVICE_REQUEST(unpack)(NULL, request.size, request.scratch.memory);
    assert(decoded != NULL);
    SERVICE_REQUEST(free_unpacked)(decoded, NULL);
    return byte_run_slice(&request);
}
