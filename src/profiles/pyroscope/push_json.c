/* SPDX-License-Identifier: Apache-2.0 */
/* One walk through the JSON; messages are put together from the inside out, because their sizes
 * stand before them. Pure function; any thread. */
#include "src/profiles/pyroscope/push_json.h"

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

struct push_json {
    struct json_walk walk;
    struct budget *budget;
    struct byte_run request;
    struct byte_run series;
    struct byte_run inner;  /* a label, or a sample */
    struct scratch content; /* of one text */
    bool has_no_memory;
};

static void append(struct push_json *push, struct byte_run *run, uint32_t number,
                   struct slice content)
{
    push->has_no_memory |= !byte_run_append_message(run, push->budget, number, content);
}

/* A text, escapes undone, with two bytes of room behind it. False: failure, null, or no memory. */
static bool read_text(struct push_json *push, struct slice *ret_text)
{
    struct json_string text;
    assert(ret_text != NULL);
    if (!json_walk_text(&push->walk, &text))
        return false;
    uint8_t *room = scratch_room(&push->content, push->budget, text.raw.size + 3);
    push->has_no_memory |= room == NULL;
    if (room == NULL)
        return false;
    *ret_text = slice_of(room, json_unescape(&text, room));
    return true;
}

/* Both alphabets, with padding or without, as protobuf's JSON has it (RFC 4648 §4, §5). */
static bool read_bytes(struct push_json *push, struct slice *ret_bytes)
{
    struct slice text;
    size_t size;
    if (!read_text(push, &text))
        return false;
    uint8_t *room = push->content.memory;
    for (size_t i = 0; i < text.size; i++)
        room[i] = room[i] == '-' ? '+' : room[i] == '_' ? '/' : room[i];
    while (text.size % 4 >= 2)
        room[text.size++] = '=';
    if (!base64_decode(text, room, &size)) {
        push->walk.failure = "json: rawProfile: expected base64";
        return false;
    }
    *ret_bytes = slice_of(room, size);
    return true;
}

static void read_label(struct push_json *push)
{
    struct json_string key;
    struct slice text;
    push->inner.size = 0;
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        uint32_t number = json_walk_is(&key, "name")    ? LABEL_NAME
                          : json_walk_is(&key, "value") ? LABEL_VALUE
                                                        : 0;
        if (number == 0)
            json_walk_skip(&push->walk);
        else if (read_text(push, &text))
            append(push, &push->inner, number, text);
    }
    append(push, &push->series, SERIES_LABEL, byte_run_slice(&push->inner));
}

static void read_sample(struct push_json *push)
{
    struct json_string key;
    struct slice bytes;
    push->inner.size = 0;
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        if (!json_walk_is(&key, "rawProfile") && !json_walk_is(&key, "raw_profile"))
            json_walk_skip(&push->walk);
        else if (read_bytes(push, &bytes))
            append(push, &push->inner, SAMPLE_PROFILE, bytes);
    }
    append(push, &push->series, SERIES_SAMPLE, byte_run_slice(&push->inner));
}

static void read_list(struct push_json *push, void (*read)(struct push_json *push))
{
    assert(read != NULL);
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

static void read_request(struct push_json *push)
{
    struct json_string key;
    assert(push->request.size == 0);
    if (!json_walk_object(&push->walk))
        return;
    while (!push->has_no_memory && json_walk_key(&push->walk, &key)) {
        if (json_walk_is(&key, "series"))
            read_list(push, read_series);
        else
            json_walk_skip(&push->walk);
    }
}

enum push_json_verdict push_json_read(struct slice json, struct budget *budget,
                                      struct buffer **ret_request, const char **ret_reason)
{
    assert(ret_request != NULL);
    assert(ret_reason != NULL);
    struct push_json push = {.walk = json_walk_of(json), .budget = budget};
    enum push_json_verdict verdict = PUSH_JSON_BUSY;
    read_request(&push);
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
