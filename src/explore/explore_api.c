/* SPDX-License-Identifier: Apache-2.0 */
/* On the explore worker. */
#include "src/explore/explore_api.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/explore/explore_json.h"
#include "src/explore/explore_query.h"
#include "src/explore/trace_query.h"

enum { OUTPUT_BYTES_FIRST = 16 * 1024, LIST_LIMIT = 50, LIST_LIMIT_MAX = 1000 };

const char *const explore_loss_names[EXPLORE_LOSSES] = {
    [EXPLORE_LOST_RING] = "ring_full",
    [EXPLORE_LOST_RAW] = "not_indexed_in_time",
    [EXPLORE_LOST_MEMORY] = "no_memory",
    [EXPLORE_LOST_LARGE] = "too_large",
};

/* A question that is being answered. */
struct asking {
    struct explore_data *data;
    struct explore_query *query;
    struct explore_limit limit;
    struct json_output out;
    unsigned status; /* 200, or of the error */
    char reason[FILTER_REASON_BYTES_MAX];
};

static void fail(struct asking *asking, unsigned status, const char *reason)
{
    asking->status = status;
    snprintf(asking->reason, sizeof(asking->reason), "%s", reason);
}

static void fail_by(struct asking *asking, enum explore_result result)
{
    if (result == EXPLORE_TOO_LONG)
        fail(asking, 503,
             "the question takes too long: ask for less, for instance a shorter time range");
    else
        fail(asking, 503, "no memory at the moment: try again");
}

void explore_data_init(struct explore_data *data, enum codec codec)
{
    *data = (struct explore_data){.started_ns = clock_wall_ns()};
    trace_store_init(&data->traces, codec);
    data->rows_capacity = EXPLORE_OPEN_SPANS_MAX;
}

void explore_data_fini(struct explore_data *data)
{
    trace_store_fini(&data->traces);
    mem_free(data->rows);
    *data = (struct explore_data){.rows = NULL};
}

static struct span_row *rows_of(struct explore_data *data)
{
    if (data->rows == NULL)
        data->rows = mem_try_alloc(data->rows_capacity * sizeof(data->rows[0]));
    return data->rows;
}

static uint64_t number_of(struct asking *asking, const char *key, uint64_t standard, uint64_t most)
{
    struct slice text = explore_query_get(asking->query, key);
    uint64_t number = standard;
    if (text.size > 0 && (!explore_read_number(text, &number) || number > most)) {
        snprintf(asking->reason, sizeof(asking->reason),
                 "%s: found \"%.*s\", expected a number up to %llu", key,
                 (int)(text.size < 64 ? text.size : 64), (const char *)text.data,
                 (unsigned long long)most);
        asking->status = 400;
    }
    return number;
}

static void answer_status(struct asking *asking)
{
    struct explore_data *data = asking->data;
    const struct trace_store *store = &data->traces;
    struct json_output *out = &asking->out;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    uint64_t oldest = trace_store_oldest_ns(store);
    put_raw(out, "{");
    put_string(out, "version", slice_of_text(data->settings->version));
    put_wide(out, "started", data->started_ns);
    put_wide(out, "now", clock_wall_ns());
    put_unsigned(out, "maxBytes", data->settings->max_bytes);
    put_unsigned(out, "usedBytes", data->used_bytes);
    put_unsigned(out, "traces", store->next - store->first);
    put_unsigned(out, "spans", store->spans);
    put_unsigned(out, "profiles", 0);
    put_unsigned(out, "samples", 0);
    put_wide(out, "oldest", oldest != UINT64_MAX ? oldest : 0);
    put_unsigned(out, "evictedTraces", store->evicted_traces);
    put_key(out, "notKept");
    put_raw(out, "{");
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        put_unsigned(out, explore_loss_names[i], data->lost[i]);
    put_raw(out, "}");
    put_bool(out, "joinConfigured", data->settings->has_join);
    put_bool(out, "tokenRequired", data->settings->is_token_required);
    put_string(out, "hostName", slice_of_text(host));
    put_raw(out, "}");
}

/* What is counted of one service or one name. */
struct service_count {
    uint32_t service;
    uint64_t spans;
    uint64_t errors;
    uint64_t traces;
    uint64_t last_trace; /* that was counted */
};

static int compare_services(const void *a, const void *b)
{
    const struct service_count *x = a;
    const struct service_count *y = b;
    return x->spans != y->spans ? (x->spans < y->spans ? 1 : -1)
                                : (x->service > y->service) - (x->service < y->service);
}

enum { SERVICES_MAX = 4096 };

static struct service_count *count_of(struct service_count *counts, size_t *count, uint32_t service,
                                      size_t *guess)
{
    if (*guess < *count && counts[*guess].service == service)
        return &counts[*guess];
    for (size_t i = 0; i < *count; i++)
        if (counts[i].service == service) {
            *guess = i;
            return &counts[i];
        }
    if (*count == SERVICES_MAX)
        return NULL;
    counts[*count] = (struct service_count){.service = service, .last_trace = UINT64_MAX};
    *guess = *count;
    return &counts[(*count)++];
}

static void answer_services(struct asking *asking)
{
    struct explore_data *data = asking->data;
    struct trace_store *store = &data->traces;
    struct json_output *out = &asking->out;
    struct span_row *rows = rows_of(data);
    struct service_count *counts = mem_try_alloc(SERVICES_MAX * sizeof(counts[0]));
    size_t count = 0;
    size_t guess = 0;
    if (rows == NULL || counts == NULL) {
        mem_free(counts);
        fail_by(asking, EXPLORE_NO_MEMORY);
        return;
    }
    for (size_t at = 0; at < trace_store_blocks(store); at++) {
        struct block_view view = trace_store_block(store, at);
        if (explore_is_over(&asking->limit)) {
            mem_free(counts);
            fail_by(asking, EXPLORE_TOO_LONG);
            return;
        }
        if (!trace_store_rows(store, &view, rows))
            continue;
        for (uint32_t i = 0; i < view.spans; i++) {
            if (rows[i].trace < store->first)
                continue;
            struct service_count *of = count_of(counts, &count, rows[i].service, &guess);
            if (of == NULL)
                continue;
            of->spans++;
            of->errors += rows[i].status == SPAN_STATUS_ERROR;
            of->traces += of->last_trace != rows[i].trace;
            of->last_trace = rows[i].trace;
        }
    }
    qsort(counts, count, sizeof(counts[0]), compare_services);
    put_raw(out, "{\"services\":[");
    for (size_t i = 0; i < count; i++) {
        put_comma(out);
        put_raw(out, "{");
        put_string(out, "name", string_table_at(&store->strings, counts[i].service));
        put_unsigned(out, "spans", counts[i].spans);
        put_unsigned(out, "traces", counts[i].traces);
        put_unsigned(out, "errors", counts[i].errors);
        put_bool(out, "hasProfile", false);
        put_raw(out, "}");
    }
    put_raw(out, "]}");
    mem_free(counts);
}

/* The services of one trace with their spans, from its rows. */
static void put_services(struct asking *asking, uint64_t number, const struct trace_record *record)
{
    struct explore_data *data = asking->data;
    struct trace_store *store = &data->traces;
    struct json_output *out = &asking->out;
    struct span_row *rows = rows_of(data);
    struct service_count counts[32];
    size_t count = 0;
    size_t blocks = trace_store_blocks(store);
    for (size_t at = trace_store_block_of(store, record->first_block); rows != NULL && at < blocks;
         at++) {
        struct block_view view = trace_store_block(store, at);
        uint32_t first, end;
        if (!block_view_find(&view, number, &first, &end) || !trace_store_rows(store, &view, rows))
            continue;
        for (uint32_t i = first; i < end; i++) {
            size_t j = 0;
            while (j < count && counts[j].service != rows[i].service)
                j++;
            if (j == sizeof(counts) / sizeof(counts[0]))
                continue;
            if (j == count)
                counts[count++] = (struct service_count){.service = rows[i].service};
            counts[j].spans++;
        }
        if (explore_is_over(&asking->limit))
            break;
    }
    qsort(counts, count, sizeof(counts[0]), compare_services);
    put_key(out, "services");
    put_raw(out, "[");
    for (size_t i = 0; i < count; i++) {
        put_comma(out);
        put_raw(out, "{");
        put_string(out, "name", string_table_at(&store->strings, counts[i].service));
        put_unsigned(out, "spans", counts[i].spans);
        put_raw(out, "}");
    }
    put_raw(out, "]");
}

static void put_root(struct asking *asking, const struct trace_record *record)
{
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    const struct string_table *strings = &asking->data->traces.strings;
    struct json_output *out = &asking->out;
    put_key(out, "root");
    if (!record->has_root) {
        put_raw(out, "null");
        return;
    }
    put_raw(out, "{");
    put_string(out, "service", string_table_at(strings, record->root_service));
    put_string(out, "name", string_table_at(strings, record->root_name));
    put_string(out, "kind", slice_of_text(kinds[record->root_kind < 6 ? record->root_kind : 0]));
    put_raw(out, "}");
}

static void answer_traces(struct asking *asking)
{
    struct explore_data *data = asking->data;
    struct trace_store *store = &data->traces;
    struct json_output *out = &asking->out;
    struct trace_filter filter;
    struct trace_matches matches;
    uint64_t limit = number_of(asking, "limit", LIST_LIMIT, LIST_LIMIT_MAX);
    uint64_t before = number_of(asking, "before", UINT64_MAX, UINT64_MAX);
    uint64_t after = number_of(asking, "after", 0, UINT64_MAX);
    if (asking->status != 200)
        return;
    if (!trace_filter_read(&filter, asking->query, asking->reason)) {
        asking->status = 400;
        return;
    }
    struct span_row *rows = rows_of(data);
    enum explore_result result =
        rows != NULL ? trace_filter_run(&filter, store, rows, &asking->limit, &matches)
                     : EXPLORE_NO_MEMORY;
    if (result != EXPLORE_DONE) {
        if (rows != NULL)
            trace_matches_fini(&matches);
        fail_by(asking, result);
        return;
    }
    uint64_t total = 0;
    uint64_t shown = 0;
    bool has_more = false;
    put_raw(out, "{\"traces\":[");
    for (uint64_t number = store->next; number > store->first; number--) {
        const struct trace_record *record = trace_store_record(store, number - 1);
        if (!trace_filter_has(&filter, &matches, record, number - 1, false))
            continue;
        total++;
        if (number - 1 >= before || number - 1 <= after)
            continue;
        if (shown == limit) {
            has_more = true;
            continue;
        }
        shown++;
        put_comma(out);
        put_raw(out, "{");
        put_hex(out, "id", record->id, sizeof(record->id));
        put_wide(out, "cursor", number - 1);
        put_root(asking, record);
        put_wide(out, "start", record->start_ns);
        put_unsigned(out, "duration", record->end_ns - record->start_ns);
        put_unsigned(out, "spans", record->spans);
        put_unsigned(out, "errors", record->errors);
        put_services(asking, number - 1, record);
        put_unsigned(out, "samples", 0);
        put_bool(out, "complete", record->has_root);
        put_raw(out, "}");
    }
    trace_matches_fini(&matches);
    put_raw(out, "]");
    put_unsigned(out, "total", total);
    put_bool(out, "more", has_more);
    put_wide(out, "newest", store->next - 1);
    put_raw(out, "}");
}

static const struct {
    const char *path;
    void (*answer)(struct asking *asking);
} questions[] = {
    {"status", answer_status},
    {"services", answer_services},
    {"traces", answer_traces},
};

void explore_answer(struct explore_data *data, struct explore_job *job)
{
    struct asking asking = {
        .data = data, .status = 200, .limit = explore_limit_of(EXPLORE_QUERY_NS)};
    const char *reason = NULL;
    struct slice path = slice_of_text(job->path);
    asking.query = mem_alloc(sizeof(*asking.query));
    json_output_init(&asking.out, OUTPUT_BYTES_FIRST, EXPLORE_RESPONSE_BYTES_MAX,
                     data->settings->budget);
    size_t at = 0;
    while (at < sizeof(questions) / sizeof(questions[0]) &&
           !slice_equal_text(path, questions[at].path))
        at++;
    if (at == sizeof(questions) / sizeof(questions[0]))
        fail(&asking, 404, "there is no such page; docs/explore.md lists the paths");
    else if (!explore_query_parse(asking.query, slice_of_text(job->query), &reason))
        fail(&asking, 400, reason);
    else
        questions[at].answer(&asking);
    job->status = asking.status;
    job->type = "application/json; charset=utf-8";
    job->body = json_output_take(&asking.out);
    if (job->body == NULL && asking.status == 200) {
        fail_by(&asking, EXPLORE_NO_MEMORY);
        job->status = 503;
    }
    if (job->status != 200) {
        buffer_unref(job->body);
        json_output_init(&asking.out, OUTPUT_BYTES_FIRST, EXPLORE_RESPONSE_BYTES_MAX, NULL);
        put_raw(&asking.out, "{");
        put_string(&asking.out, "error", slice_of_text(asking.reason));
        put_raw(&asking.out, "}");
        job->body = json_output_take(&asking.out);
    }
    mem_free(asking.query);
}
