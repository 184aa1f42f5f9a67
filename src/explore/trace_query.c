/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks without the names that are asked for are passed over, and spans are unpacked only for
 * attributes. On the explore worker. */
#include "src/explore/trace_query.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum {
    SPAN_ATTRIBUTES = 9,
    CONTEXT_RESOURCE = 1,
    RESOURCE_ATTRIBUTES = 1,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    VALUE_TEXT_BYTES_MAX = 64 * 1024,
    BYTES_PER_LOOK = 64 * 1024, /* of spans that are read, at the clock */
};

uint64_t explore_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct explore_limit explore_limit_of(uint64_t ns)
{
    return (struct explore_limit){.end_ns = explore_cpu_ns() + ns};
}

bool explore_is_over(const struct explore_limit *limit)
{
    return explore_cpu_ns() >= limit->end_ns;
}

static bool refuse(char *reason, const char *key, struct slice found, const char *expected)
{
    snprintf(reason, FILTER_REASON_BYTES_MAX, "%s: found \"%.*s\", expected %s", key,
             (int)(found.size < 64 ? found.size : 64), (const char *)found.data, expected);
    return false;
}

bool trace_filter_read(struct trace_filter *filter, const struct explore_query *query,
                       char reason[FILTER_REASON_BYTES_MAX])
{
    *filter = (struct trace_filter){.max_ns = UINT64_MAX, .end_ns = UINT64_MAX};
    for (size_t i = 0; i < query->count; i++) {
        struct slice key = query->pairs[i].key;
        struct slice value = query->pairs[i].value;
        if (value.size == 0)
            continue;
        if (slice_equal_text(key, "service")) {
            filter->service = value;
        } else if (slice_equal_text(key, "name")) {
            filter->name = value;
        } else if (slice_equal_text(key, "min")) {
            if (!explore_read_duration(value, &filter->min_ns))
                return refuse(reason, "min", value, "a duration such as 250ms");
        } else if (slice_equal_text(key, "max")) {
            if (!explore_read_duration(value, &filter->max_ns))
                return refuse(reason, "max", value, "a duration such as 1s");
        } else if (slice_equal_text(key, "start")) {
            if (!explore_read_number(value, &filter->start_ns))
                return refuse(reason, "start", value, "a time in unix nanoseconds");
        } else if (slice_equal_text(key, "end")) {
            if (!explore_read_number(value, &filter->end_ns))
                return refuse(reason, "end", value, "a time in unix nanoseconds");
        } else if (slice_equal_text(key, "error")) {
            filter->has_errors = slice_equal_text(value, "1") || slice_equal_text(value, "true");
        } else if (slice_equal_text(key, "profile")) {
            filter->has_profile = slice_equal_text(value, "1") || slice_equal_text(value, "true");
        } else if (slice_equal_text(key, "attr")) {
            const uint8_t *sign = memchr(value.data, '=', value.size);
            if (sign == NULL || sign == value.data)
                return refuse(reason, "attr", value, "key=value");
            if (filter->attributes_count == FILTER_ATTRIBUTES_MAX)
                return refuse(reason, "attr", value, "at most 8 attributes");
            size_t size = (size_t)(sign - value.data);
            filter->attributes[filter->attributes_count].key = slice_of(value.data, size);
            filter->attributes[filter->attributes_count++].value =
                slice_of(sign + 1, value.size - size - 1);
        }
    }
    return true;
}

/* Whether the attribute, an encoded KeyValue, is the one that is asked for. */
static bool is_attribute(struct slice encoded, struct slice key, struct slice text)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct slice found = {.data = NULL};
    struct slice value = {.data = NULL};
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY_VALUE_KEY)
            found = field.bytes;
        else if (field.number == KEY_VALUE_VALUE)
            value = field.bytes;
    }
    if (!slice_equal(found, key))
        return false;
    struct value read = value_read(value);
    if (read.type == VALUE_STRING)
        return slice_equal(read.bytes, text);
    struct arena arena;
    struct slice shown;
    arena_init(&arena, VALUE_TEXT_BYTES_MAX);
    bool is_same = value_to_string(&arena, value, &shown) && slice_equal(shown, text);
    arena_clear(&arena);
    return is_same;
}

static bool has_attribute(struct slice message, uint32_t number, struct slice key,
                          struct slice text)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.type == WIRE_BYTES &&
            is_attribute(field.bytes, key, text))
            return true;
    return false;
}

/* Which attributes of the filter a resource has, as bits. */
static uint8_t read_resource(const struct trace_filter *filter, struct slice fields)
{
    uint8_t bits = 0;
    for (size_t i = 0; i < filter->attributes_count; i++) {
        struct wire_reader reader = wire_reader_of(fields);
        struct wire_field field;
        bool is_there = false;
        while (!is_there && wire_next_field(&reader, &field))
            is_there = field.number == CONTEXT_RESOURCE && field.type == WIRE_BYTES &&
                       has_attribute(field.bytes, RESOURCE_ATTRIBUTES, filter->attributes[i].key,
                                     filter->attributes[i].value);
        bits |= (uint8_t)(is_there << i);
    }
    return bits;
}

/* The contexts of a block, and which attributes their resources have: each is read once, whatever
 * the number of its scopes and spans. */
struct block_contexts {
    struct span_context contexts[EXPLORE_CONTEXTS_MAX];
    uint8_t bits[EXPLORE_CONTEXTS_MAX];
};
_Static_assert(FILTER_ATTRIBUTES_MAX <= 8, "a bit for each");

static void read_contexts(const struct trace_filter *filter, const struct trace_store *store,
                          const struct block_view *view, struct slice bodies,
                          struct block_contexts *block)
{
    uint32_t count = trace_store_contexts(store, view, bodies, block->contexts);
    for (uint32_t i = 0; i < count; i++) {
        bool is_as_before =
            i > 0 && span_contexts_share(&block->contexts[i], &block->contexts[i - 1]);
        block->bits[i] =
            is_as_before ? block->bits[i - 1] : read_resource(filter, block->contexts[i].resource);
    }
}

static bool has_attributes(const struct trace_filter *filter, struct slice span,
                           uint8_t resource_bits)
{
    for (size_t i = 0; i < filter->attributes_count; i++)
        if ((resource_bits >> i & 1) == 0 &&
            !has_attribute(span, SPAN_ATTRIBUTES, filter->attributes[i].key,
                           filter->attributes[i].value))
            return false;
    return true;
}

static bool has_figures(const struct trace_filter *filter, const struct trace_record *record)
{
    uint64_t duration_ns = record->end_ns - record->start_ns;
    return duration_ns >= filter->min_ns && duration_ns <= filter->max_ns &&
           record->start_ns >= filter->start_ns && record->start_ns < filter->end_ns &&
           (!filter->has_errors || record->errors > 0);
}

static bool is_marked(const struct trace_matches *matches, uint64_t number)
{
    uint64_t bit = number - matches->first;
    return (matches->bits[bit / 64] >> bit % 64 & 1) != 0;
}

static bool may_have_attributes(const struct trace_filter *filter, const struct trace_store *store,
                                const struct block_view *view)
{
    for (size_t i = 0; i < filter->attributes_count; i++)
        if (!block_view_may_have(store, view, filter->attributes[i].key,
                                 filter->attributes[i].value))
            return false;
    return true;
}

enum explore_result trace_filter_run(const struct trace_filter *filter, struct trace_store *store,
                                     struct span_row *rows, const struct explore_limit *limit,
                                     const struct trace_search *search,
                                     struct trace_matches *ret_matches)
{
    *ret_matches = (struct trace_matches){.first = store->first, .next = store->next};
    bool has_service = filter->service.data != NULL;
    bool has_name = filter->name.data != NULL;
    if (!has_service && !has_name && filter->attributes_count == 0)
        return EXPLORE_DONE;
    uint64_t count = store->next - store->first;
    ret_matches->bits = mem_try_zalloc((count / 64 + 1) * sizeof(uint64_t));
    if (ret_matches->bits == NULL)
        return EXPLORE_NO_MEMORY;
    uint32_t service = string_table_find(&store->strings, filter->service);
    uint32_t name = string_table_find(&store->strings, filter->name);
    if ((has_service && service == 0) || (has_name && name == 0))
        return EXPLORE_DONE;
    /* Spans of traces that came later are in later blocks. */
    size_t oldest = 0;
    if (search->after >= store->first && search->after < store->next - 1)
        oldest =
            trace_store_block_of(store, trace_store_record(store, search->after + 1)->first_block);
    struct explore_limit part = explore_limit_of(EXPLORE_SEARCH_NS);
    uint64_t found = 0;
    enum explore_result result = EXPLORE_DONE;
    struct block_contexts *contexts = NULL;
    if (filter->attributes_count > 0) {
        contexts = mem_try_alloc(sizeof(*contexts));
        if (contexts == NULL)
            return EXPLORE_NO_MEMORY;
    }
    for (size_t at = trace_store_blocks(store); at > oldest && result == EXPLORE_DONE; at--) {
        struct block_view view = trace_store_block(store, at - 1);
        if (explore_is_over(limit)) {
            result = EXPLORE_TOO_LONG;
            break;
        }
        ret_matches->is_partial = found >= search->enough && explore_is_over(&part);
        if (ret_matches->is_partial)
            break;
        if ((has_service && !block_view_has_string(store, &view, service)) ||
            (has_name && !block_view_has_string(store, &view, name)) ||
            !may_have_attributes(filter, store, &view) || !trace_store_rows(store, &view, rows))
            continue;
        struct buffer *bodies = NULL;
        uint64_t unlooked = 0; /* bytes since the last look */
        for (uint32_t i = 0; i < view.spans; i++) {
            const struct span_row *row = &rows[i];
            if (row->trace < store->first || (has_service && row->service != service) ||
                (has_name && row->name != name) || is_marked(ret_matches, row->trace) ||
                !has_figures(filter, trace_store_record(store, row->trace)))
                continue;
            if (filter->attributes_count > 0) {
                if (bodies == NULL) {
                    bodies = trace_store_bodies(store, &view);
                    if (bodies == NULL)
                        break;
                    read_contexts(filter, store, &view, buffer_slice(bodies), contexts);
                    unlooked = BYTES_PER_LOOK;
                }
                unlooked += row->size;
                if (unlooked >= BYTES_PER_LOOK && explore_is_over(limit)) {
                    result = EXPLORE_TOO_LONG;
                    break;
                }
                unlooked = unlooked >= BYTES_PER_LOOK ? 0 : unlooked;
                struct slice span = slice_of(bodies->data + row->offset, row->size);
                if (!has_attributes(filter, span, contexts->bits[row->context]))
                    continue;
            }
            uint64_t bit = row->trace - store->first;
            ret_matches->bits[bit / 64] |= UINT64_C(1) << bit % 64;
            found += row->trace > search->after && row->trace < search->before;
        }
        buffer_unref(bodies);
    }
    mem_free(contexts);
    return result;
}

void trace_matches_fini(struct trace_matches *matches)
{
    mem_free(matches->bits);
    matches->bits = NULL;
}

bool trace_filter_has(const struct trace_filter *filter, const struct trace_matches *matches,
                      const struct trace_record *record, uint64_t number, bool has_profile)
{
    return has_figures(filter, record) && (!filter->has_profile || has_profile) &&
           (matches->bits == NULL || is_marked(matches, number));
}
