/* SPDX-License-Identifier: Apache-2.0 */
/* Values of spans. What spans of a resource have in common lies in the log once. Runs on the
 * owner's thread. */
#include "src/join/spans/span_values.h"

#include <assert.h>
#include <stdio.h>

#include "src/join/index/span_index.h"
#include "src/join/join_settings.h"

static struct slice class_text(uint16_t flags)
{
    static const char *const names[] = {"", "1xx", "2xx", "3xx", "4xx", "5xx", "", ""};
    unsigned class = (unsigned)(flags & SPAN_CLASS_MASK) >> SPAN_CLASS_SHIFT;
    assert(class < sizeof(names) / sizeof(names[0]));
    if (names[class][0] != '\0')
        return slice_of_text(names[class]);
    return slice_of_text((flags & SPAN_IS_ERROR) != 0 ? "error" : "ok");
}

/* A bucket is named by its end, the last one by its begin. */
static struct slice bucket_text(const struct join_settings *settings,
                                const struct span_facts *facts, char room[BUCKET_TEXT_MAX])
{
    uint64_t ns = facts->end_ns > facts->start_ns ? facts->end_ns - facts->start_ns : 0;
    size_t bucket = 0;
    assert(settings->buckets_count > 0);
    while (bucket < settings->buckets_count && ns >= settings->buckets_ns[bucket])
        bucket++;
    bool is_last = bucket == settings->buckets_count;
    int bytes = snprintf(room, BUCKET_TEXT_MAX, "%s%s", is_last ? "≥" : "<",
                         settings->bucket_texts[is_last ? bucket - 1 : bucket]);
    return slice_of(room, (size_t)bytes < BUCKET_TEXT_MAX ? (size_t)bytes : BUCKET_TEXT_MAX - 1);
}

bool span_values_open(struct span_values *values, const struct join_settings *settings,
                      const struct span_index *index, const struct span_facts *facts)
{
    assert(facts->span != 0);
    values->settings = settings;
    values->facts = facts;
    values->next = 0;
    if (!span_index_texts(index, facts, &values->span))
        return false;
    values->span_reader = string_record_read(&values->span);
    uint32_t resource = record_next_number(&values->span_reader);
    if (!record_next(&values->span_reader, &values->name) ||
        !span_index_text_at(index, facts->shard, resource, &values->resource))
        return false;
    values->resource_reader = string_record_read(&values->resource);
    values->service = record_next_hash(&values->resource_reader);
    return true;
}

bool span_values_next(struct span_values *values, struct slice *ret_value)
{
    const struct join_settings *settings = values->settings;
    assert(values->next < settings->attributes_count);
    switch (settings->attributes[values->next++].source) {
    case JOIN_SPAN_NAME:
        *ret_value = values->name;
        return values->name.size > 0;
    case JOIN_STATUS_CLASS:
        *ret_value = class_text(values->facts->flags);
        return true;
    case JOIN_DURATION_BUCKET:
        *ret_value = bucket_text(settings, values->facts, values->bucket);
        return true;
    case JOIN_OF_SPAN:
        return record_next(&values->span_reader, ret_value);
    case JOIN_OF_RESOURCE:
    default:
        return record_next(&values->resource_reader, ret_value);
    }
}
