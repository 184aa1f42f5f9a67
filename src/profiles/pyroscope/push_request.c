/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through a PushRequest and reads one from JSON. Unknown fields and keys are skipped. Pure
 * functions; any thread. */
#include "src/profiles/pyroscope/push_request.h"

#include "src/base/base64.h"
#include "src/base/buffer.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pyroscope/json_walk.h"

#include <assert.h>
#include <string.h>

/* Fields of PushRequest, RawProfileSeries, LabelPair and RawSample. */
enum {
    REQUEST_SERIES = 1,
    SERIES_LABEL = 1,
    SERIES_SAMPLE = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
};

static bool is_field(const struct wire_field *field, uint32_t number)
{
    return field->number == number && field->type == WIRE_BYTES;
}

/* A message without messages in it. */
static bool check_leaf(struct slice message, const char **ret_reason)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        continue;
    if (reader.failure != NULL)
        *ret_reason = reader.failure;
    return reader.failure == NULL;
}

bool push_request_check(struct slice request, struct push_figures *ret_figures,
                        const char **ret_reason)
{
    struct push_figures figures = {.series = 0};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    struct wire_field inner;
    while (wire_read_field(&reader, &field)) {
        if (!is_field(&field, REQUEST_SERIES))
            continue;
        struct wire_reader series = wire_reader_of(field.bytes);
        while (wire_read_field(&series, &inner)) {
            bool is_sample = is_field(&inner, SERIES_SAMPLE);
            if ((is_sample || is_field(&inner, SERIES_LABEL)) &&
                !check_leaf(inner.bytes, ret_reason))
                return false;
            figures.profiles += is_sample;
        }
        if (series.failure != NULL) {
            *ret_reason = series.failure;
            return false;
        }
        figures.series++;
    }
    *ret_reason = reader.failure;
    if (figures.series > PUSH_SERIES_MAX || figures.profiles > PUSH_PROFILES_MAX)
        *ret_reason = "more than 4096 series or profiles in one request";
    *ret_figures = figures;
    return *ret_reason == NULL;
}

bool push_next_series(struct wire_reader *reader, struct push_series *ret_series)
{
    struct wire_field field;
    do {
        if (!wire_read_field(reader, &field))
            return false;
    } while (!is_field(&field, REQUEST_SERIES));
    struct wire_reader labels = wire_reader_of(field.bytes);
    ret_series->samples = labels;
    ret_series->labels.count = 0;
    ret_series->has_too_many_labels = false;
    while (wire_read_field(&labels, &field)) {
        if (!is_field(&field, SERIES_LABEL))
            continue;
        struct wire_reader pair = wire_reader_of(field.bytes);
        struct series_label label = {.name = {.size = 0}};
        while (wire_read_field(&pair, &field)) {
            if (is_field(&field, LABEL_NAME))
                label.name = field.bytes;
            if (is_field(&field, LABEL_VALUE))
                label.value = field.bytes;
        }
        assert(pair.failure == NULL);
        ret_series->has_too_many_labels |=
            !series_add(&ret_series->labels, label.name, label.value);
    }
    return true;
}

bool push_next_profile(struct push_series *series, struct slice *ret_profile)
{
    struct wire_field field;
    do {
        if (!wire_read_field(&series->samples, &field))
            return false;
    } while (!is_field(&field, SERIES_SAMPLE));
    struct wire_reader reader = wire_reader_of(field.bytes);
    *ret_profile = slice_of(NULL, 0);
    while (wire_read_field(&reader, &field))
        if (is_field(&field, SAMPLE_PROFILE))
            *ret_profile = field.bytes;
    return true;
}

/* ---- JSON: messages are written from the inside out, since their sizes precede them ---- */

struct push_json {
    struct json_walk walk;
    struct budget *budget;
    struct byte_run request;
    struct byte_run series;
    struct byte_run inner;  /* a label, or a sample */
    struct scratch content; /* of one string */
    bool has_no_memory;
};

static void append(struct push_json *push, struct byte_run *run, uint32_t number,
                   struct slice content)
{
    push->has_no_memory |= !byte_run_append_message(run, push->budget, number, content);
}

/* A string, unescaped, with two bytes of room behind it. False: failure, null, or no memory. */
static bool read_string(struct push_json *push, struct slice *ret_string)
{
    struct json_string string;
    if (!json_walk_string(&push->walk, &string))
        return false;
    uint8_t *room = scratch_room(&push->content, push->budget, string.raw.size + 3);
    push->has_no_memory |= room == NULL;
    if (room == NULL)
        return false;
    *ret_string = slice_of(room, json_unescape(&string, room));
    return true;
}

static void read_label(struct push_json *push)
{
    struct json_string key;
    struct slice string;
    push->inner.size = 0;
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        uint32_t number = json_walk_is(&key, "name")    ? LABEL_NAME
                          : json_walk_is(&key, "value") ? LABEL_VALUE
                                                        : 0;
        if (number == 0)
            json_walk_skip(&push->walk);
        else if (read_string(push, &string))
            append(push, &push->inner, number, string);
    }
    append(push, &push->series, SERIES_LABEL, byte_run_slice(&push->inner));
}

/* The profile is base64 in either alphabet, with padding or without, as in protobuf's JSON (RFC
 * 4648 §4, §5). */
static void read_sample(struct push_json *push)
{
    struct json_string key;
    struct slice string;
    size_t size;
    push->inner.size = 0;
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        if (!json_walk_is(&key, "rawProfile") && !json_walk_is(&key, "raw_profile")) {
            json_walk_skip(&push->walk);
            continue;
        }
        if (!read_string(push, &string))
            continue;
        uint8_t *room = push->content.memory;
        for (size_t i = 0; i < string.size; i++)
            room[i] = room[i] == '-' ? '+' : room[i] == '_' ? '/' : room[i];
        while (string.size % 4 >= 2)
            room[string.size++] = '=';
        if (base64_decode(string, room, &size))
            append(push, &push->inner, SAMPLE_PROFILE, slice_of(room, size));
        else
            push->walk.failure = "json: rawProfile: expected base64";
    }
    append(push, &push->series, SERIES_SAMPLE, byte_run_slice(&push->inner));
}

static void read_list(struct push_json *push, void (*read)(struct push_json *push))
{
    if (!json_walk_array(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_item(&push->walk))
        read(push);
}

static void read_series(struct push_json *push)
{
    struct json_string key;
    push->series.size = 0;
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        if (json_walk_is(&key, "labels"))
            read_list(push, read_label);
        else if (json_walk_is(&key, "samples"))
            read_list(push, read_sample);
        else
            json_walk_skip(&push->walk);
    }
    append(push, &push->request, REQUEST_SERIES, byte_run_slice(&push->series));
}

enum push_json_verdict push_json_read(struct slice json, struct budget *budget,
                                      struct buffer **ret_request, const char **ret_reason)
{
    struct push_json push = {.walk = json_walk_of(json), .budget = budget};
    enum push_json_verdict verdict = PUSH_JSON_BUSY;
    struct json_string key;
    if (json_walk_object(&push.walk)) {
        while (!push.has_no_memory && json_walk_key(&push.walk, &key)) {
            if (json_walk_is(&key, "series"))
                read_list(&push, read_series);
            else
                json_walk_skip(&push.walk);
        }
    }
    if (!push.has_no_memory && !json_walk_end(&push.walk)) {
        *ret_reason = push.walk.failure;
        verdict = PUSH_JSON_MALFORMED;
    } else if (!push.has_no_memory) {
        struct buffer *buffer = buffer_try_create(budget, push.request.size);
        if (buffer != NULL && push.request.size > 0)
            memcpy(buffer->data, push.request.scratch.memory, push.request.size);
        if (buffer != NULL) {
            buffer->size = push.request.size;
            *ret_request = buffer;
            verdict = PUSH_JSON_READ;
        }
    }
    scratch_fini(&push.request.scratch, budget);
    scratch_fini(&push.series.scratch, budget);
    scratch_fini(&push.inner.scratch, budget);
    scratch_fini(&push.content, budget);
    return verdict;
}
