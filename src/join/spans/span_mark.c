/* SPDX-License-Identifier: Apache-2.0 */
/* Marks. An attribute that a span has already stays, and the URL leads to the profile of that id.
 * Any thread. */
#include "src/join/spans/span_mark.h"

#include <assert.h>

#include "src/base/hex.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"
#include "src/profiles/otlp/profile_bytes.h"

enum { SPAN_ATTRIBUTES = 9, KEY = 1, VALUE = 2, VALUE_TEXT_FIELD = 1, SPAN_ID_BYTES = 8 };

static void put_attribute(struct profile_bytes *out, const char *key, struct slice text)
{
    size_t whole = out->size;
    profile_bytes_add(out, slice_of_text(key));
    profile_bytes_wrap(out, whole, KEY);
    size_t value = out->size;
    profile_bytes_add(out, text);
    profile_bytes_wrap(out, value, VALUE_TEXT_FIELD);
    profile_bytes_wrap(out, value, VALUE);
    profile_bytes_wrap(out, whole, SPAN_ATTRIBUTES);
    assert(out->size > whole);
}

/* From half a minute before to half a minute after it, as Grafana looks for a span's profile. */
static void put_url(const struct span_mark *mark, struct slice id, struct profile_bytes *out)
{
    const struct span_facts *facts = mark->facts;
    char trace[4 * SPAN_ID_BYTES];
    uint8_t room[URL_BYTES_MAX];
    char times[2][URL_MS_BYTES];
    uint64_t from_ns = facts->start_ns > JOIN_VIEW_NS ? facts->start_ns - JOIN_VIEW_NS : 0;
    assert(facts->span != 0);
    struct url_values values = {
        .texts = {
            [URL_SERVICE_NAME] = value_text_or_empty(mark->resource->values[RESOURCE_SERVICE_NAME]),
            [URL_SERVICE_NAMESPACE] =
                value_text_or_empty(mark->resource->values[RESOURCE_SERVICE_NAMESPACE]),
            [URL_TRACE_ID] = hex_write(facts->trace, sizeof(facts->trace), trace),
            [URL_SPAN_ID] = id,
            [URL_FROM_MS] = url_ms(from_ns, times[0]),
            [URL_UNTIL_MS] = url_ms(facts->end_ns + JOIN_VIEW_NS, times[1]),
        }};
    struct slice url = url_template_write(mark->url, &values, room);
    if (url.data != NULL)
        put_attribute(out, SPAN_MARK_URL_KEY, url);
}

/* The attribute that most marks are, as far as it is the same for all. */
static void put_id(struct profile_bytes *out, struct slice id)
{
    static const char begin[] = "\x4a\x2a\x0a\x14" SPAN_MARK_ID_KEY "\x12\x12\x0a\x10";
    enum { BEGIN_BYTES = sizeof(begin) - 1 };
    assert(id.size == 2 * SPAN_ID_BYTES);
    uint8_t *room = profile_bytes_room(out, BEGIN_BYTES + id.size);
    memcpy(room, begin, BEGIN_BYTES);
    memcpy(room + BEGIN_BYTES, id.data, 2 * SPAN_ID_BYTES);
    out->size += BEGIN_BYTES + id.size;
}

/* No data: nothing can be found by it. */
static struct slice text_of_id(struct slice value, char room[VALUE_TEXT_BYTES])
{
    struct slice text = {.data = NULL};
    assert(value.data != NULL);
    return value_text_of(value, room, &text) && text.size > 0 ? text : (struct slice){.data = NULL};
}

bool span_mark_write(const struct span_mark *mark, struct profile_bytes *out)
{
    bool has_id = mark->own_id.data != NULL;
    char room[2 * SPAN_ID_BYTES];
    char own_room[VALUE_TEXT_BYTES];
    struct slice id = hex_write(&mark->facts->span, SPAN_ID_BYTES, room);
    assert(id.size == sizeof(room));
    if (!has_id)
        put_id(out, id);
    if (mark->url->count > 0 && mark->own_url.data == NULL)
        put_url(mark, has_id ? text_of_id(mark->own_id, own_room) : id, out);
    return !has_id;
}
