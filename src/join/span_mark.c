/* SPDX-License-Identifier: Apache-2.0 */
/* Marks. An attribute that a span has already stays, and the URL leads to the profile of that id.
 * Any thread. */
#include "src/join/span_mark.h"

#include <assert.h>

#include "src/join/join_limits.h"
#include "src/join/key_value.h"
#include "src/join/span_index.h"
#include "src/otlp/profile_bytes.h"
#include "src/otlp/value.h"

#define ID_KEY  "pyroscope.profile.id"
#define URL_KEY "pyroscope.profile.url"

enum { SPAN_ATTRIBUTES = 9, KEY = 1, VALUE = 2, VALUE_TEXT_FIELD = 1, SPAN_ID_BYTES = 8 };

/* As hexadecimal text. */
static struct slice hex_of(const uint64_t *ids, size_t bytes, uint8_t *room)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t id[2 * SPAN_ID_BYTES];
    assert(bytes <= sizeof(id));
    memcpy(id, ids, bytes);
    for (size_t i = 0; i < bytes; i++) {
        room[2 * i] = (uint8_t)digits[id[i] >> 4];
        room[2 * i + 1] = (uint8_t)digits[id[i] & 15];
    }
    return slice_of(room, 2 * bytes);
}

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

/* Empty when there is none. */
static struct slice text_of(struct slice encoded)
{
    struct value value = {.type = VALUE_EMPTY};
    if (encoded.data != NULL)
        value = value_read(encoded);
    assert(value.type <= VALUE_BYTES);
    return value.type == VALUE_TEXT ? value.bytes : slice_of_text("");
}

/* The values that the span has already; no data: none. */
static void find_own(struct slice content, struct slice *ret_id, struct slice *ret_url)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != SPAN_ATTRIBUTES)
            continue;
        struct key_value attribute = key_value_of(field.bytes);
        if (slice_equal_text(attribute.key, ID_KEY))
            *ret_id = attribute.value;
        else if (slice_equal_text(attribute.key, URL_KEY))
            *ret_url = attribute.value;
    }
    assert(reader.failure == NULL);
}

/* From half a minute before to half a minute after it, as Grafana looks for a span's profile. */
static void put_url(const struct span_mark *mark, struct slice id, struct profile_bytes *out)
{
    const struct span_facts *facts = mark->facts;
    uint8_t trace[4 * SPAN_ID_BYTES];
    uint8_t room[URL_BYTES_MAX];
    char times[2][URL_MS_BYTES];
    uint64_t from_ns = facts->start_ns > JOIN_VIEW_NS ? facts->start_ns - JOIN_VIEW_NS : 0;
    assert(facts->span != 0);
    struct url_values values = {
        .texts = {
            [URL_SERVICE_NAME] = text_of(mark->resource->values[RESOURCE_SERVICE_NAME]),
            [URL_SERVICE_NAMESPACE] = text_of(mark->resource->values[RESOURCE_SERVICE_NAMESPACE]),
            [URL_TRACE_ID] = hex_of(facts->trace, sizeof(facts->trace), trace),
            [URL_SPAN_ID] = id,
            [URL_FROM_MS] = url_ms(from_ns, times[0]),
            [URL_UNTIL_MS] = url_ms(facts->end_ns + JOIN_VIEW_NS, times[1]),
        }};
    struct slice url = url_template_write(mark->url, &values, room);
    if (url.data != NULL)
        put_attribute(out, URL_KEY, url);
}

bool span_mark_write(const struct span_mark *mark, struct profile_bytes *out)
{
    struct slice own_id = {0};
    struct slice own_url = {0};
    uint8_t room[2 * SPAN_ID_BYTES];
    find_own(mark->content, &own_id, &own_url);
    struct slice id = hex_of(&mark->facts->span, SPAN_ID_BYTES, room);
    assert(id.size == sizeof(room));
    if (own_id.data == NULL)
        put_attribute(out, ID_KEY, id);
    if (mark->url->count > 0 && own_url.data == NULL)
        put_url(mark, own_id.data != NULL ? text_of(own_id) : id, out);
    return own_id.data == NULL;
}
