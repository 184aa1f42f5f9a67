/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about many traces: lists, counts, scatter. On the explore worker. */
#include <math.h>
#include <stdlib.h>

#include <string.h>

#include "src/base/mem.h"
#include "src/explore/explore_asking.h"
#include "src/explore/span_cpu.h"

enum {
    LIST_LIMIT = 50,
    LIST_LIMIT_MAX = 1000,
    POINTS_MAX = 2000,
    BUCKETS = 60,
    BUCKETS_MAX = 1000,
    NAMES_MAX = 2000, /* pairs of service and span name that are told apart */
    NAMES_SLOTS = 4096,
    DURATION_STEPS = 16, /* buckets of a distribution for each power of two */
    DURATION_BUCKETS = 64 * DURATION_STEPS,
};

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

enum { SERVICES_MAX = 4096, LISTED_SERVICES_MAX = 32 };

static struct service_count *count_of(struct service_count *counts, size_t *count, size_t most,
                                      uint32_t service, size_t *guess)
{
    if (*guess < *count && counts[*guess].service == service)
        return &counts[*guess];
    for (size_t i = 0; i < *count; i++)
        if (counts[i].service == service) {
            *guess = i;
            return &counts[i];
        }
    if (*count == most)
        return NULL;
    counts[*count] = (struct service_count){.service = service, .last_trace = UINT64_MAX};
    *guess = *count;
    return &counts[(*count)++];
}

void answer_services(struct asking *asking)
{
    struct explore_data *data = asking->data;
    struct trace_store *store = &data->traces;
    struct json_output *out = &asking->out;
    struct span_row *rows = asking_rows(asking);
    size_t count = 0;
    size_t guess = 0;
    if (rows == NULL)
        return;
    uint64_t *profiled =
        mem_try_zalloc((store->strings.entries_count / 64 + 1) * sizeof(profiled[0]));
    if (profiled == NULL) {
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
        return;
    }
    profile_store_services(&data->profiles, profiled);
    struct service_count *counts = mem_alloc(SERVICES_MAX * sizeof(counts[0]));
    for (size_t at = 0; at < trace_store_blocks(store); at++) {
        struct block_view view = trace_store_block(store, at);
        if (explore_is_over(&asking->limit)) {
            mem_free(counts);
            mem_free(profiled);
            asking_fail_by(asking, EXPLORE_TOO_LONG);
            return;
        }
        if (!trace_store_rows(store, &view, rows))
            continue;
        for (uint32_t i = 0; i < view.spans; i++) {
            if (rows[i].trace < store->first)
                continue;
            struct service_count *of =
                count_of(counts, &count, SERVICES_MAX, rows[i].service, &guess);
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
        uint32_t service = counts[i].service;
        put_bool(out, "hasProfile", (profiled[service / 64] >> service % 64 & 1) != 0);
        put_raw(out, "}");
    }
    put_raw(out, "]}");
    mem_free(counts);
    mem_free(profiled);
}

/* Of one trace that is listed. */
struct listed {
    uint64_t number;
    size_t count;
    struct service_count services[LISTED_SERVICES_MAX];
};

/* Counts the spans of the listed traces by service; each block is read once for all of them. What
 * takes too long is left out. */
static void count_services(struct asking *asking, struct listed *listed, size_t count)
{
    struct trace_store *store = &asking->data->traces;
    struct span_row *rows = asking_rows(asking);
    size_t blocks = trace_store_blocks(store);
    for (size_t at = blocks; rows != NULL && at > 0 && !explore_is_over(&asking->limit); at--) {
        struct block_view view = trace_store_block(store, at - 1);
        bool is_read = false;
        for (size_t i = 0; i < count; i++) {
            uint32_t first, end;
            if (!block_view_find(&view, listed[i].number, &first, &end))
                continue;
            if (!is_read && !trace_store_rows(store, &view, rows))
                break;
            is_read = true;
            size_t guess = 0;
            for (uint32_t j = first; j < end; j++) {
                struct service_count *of = count_of(listed[i].services, &listed[i].count,
                                                    LISTED_SERVICES_MAX, rows[j].service, &guess);
                if (of != NULL)
                    of->spans++;
            }
        }
    }
}

static void put_services(struct asking *asking, struct listed *listed)
{
    const struct string_table *strings = &asking->data->traces.strings;
    struct json_output *out = &asking->out;
    qsort(listed->services, listed->count, sizeof(listed->services[0]), compare_services);
    put_key(out, "services");
    put_raw(out, "[");
    for (size_t i = 0; i < listed->count; i++) {
        put_comma(out);
        put_raw(out, "{");
        put_string(out, "name", string_table_at(strings, listed->services[i].service));
        put_unsigned(out, "spans", listed->services[i].spans);
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

/* Reads the filter and runs it. False: the answer is an error. */
static bool pick(struct asking *asking, struct trace_filter *filter,
                 const struct trace_search *search, struct trace_matches *matches)
{
    if (asking->status != 200)
        return false;
    if (!trace_filter_read(filter, asking->query, asking->reason)) {
        asking->status = 400;
        return false;
    }
    struct span_row *rows = asking_rows(asking);
    if (rows == NULL)
        return false;
    enum explore_result result =
        trace_filter_run(filter, &asking->data->traces, rows, &asking->limit, search, matches);
    if (result == EXPLORE_DONE)
        return true;
    trace_matches_fini(matches);
    asking_fail_by(asking, result);
    return false;
}

static bool is_picked(const struct asking *asking, const struct trace_filter *filter,
                      const struct trace_matches *matches, uint64_t number)
{
    const struct explore_data *data = asking->data;
    const struct trace_record *record = trace_store_record(&data->traces, number);
    bool has_profile =
        filter->has_profile && profile_store_samples(&data->profiles, record->id) > 0;
    return trace_filter_has(filter, matches, record, number, has_profile);
}

void answer_traces(struct asking *asking)
{
    struct trace_store *store = &asking->data->traces;
    struct json_output *out = &asking->out;
    struct trace_filter filter;
    struct trace_matches matches;
    uint64_t limit = asking_number(asking, "limit", LIST_LIMIT, LIST_LIMIT_MAX);
    uint64_t before = asking_number(asking, "before", UINT64_MAX, UINT64_MAX);
    uint64_t after = asking_number(asking, "after", 0, UINT64_MAX);
    struct trace_search search = {.after = after, .before = before, .enough = limit + 1};
    if (explore_query_get(asking->query, "profile").size > 0)
        search.enough = UINT64_MAX; /* which of them have one is seen later */
    if (!pick(asking, &filter, &search, &matches))
        return;
    uint64_t total = 0;
    uint64_t shown = 0;
    bool has_more = false;
    struct listed *listed = mem_try_alloc((limit + 1) * sizeof(listed[0]));
    if (listed == NULL) {
        trace_matches_fini(&matches);
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
        return;
    }
    for (uint64_t number = store->next - 1; number >= store->first; number--) {
        if (!is_picked(asking, &filter, &matches, number))
            continue;
        total++;
        if (number >= before || number <= after)
            continue;
        has_more = shown == limit;
        if (shown < limit) {
            listed[shown].number = number;
            listed[shown++].count = 0;
        }
    }
    bool is_partial = matches.is_partial;
    trace_matches_fini(&matches);
    count_services(asking, listed, shown);
    put_raw(out, "{\"traces\":[");
    for (size_t i = 0; i < shown; i++) {
        const struct trace_record *record = trace_store_record(store, listed[i].number);
        put_comma(out);
        put_raw(out, "{");
        put_hex(out, "id", record->id, sizeof(record->id));
        put_wide(out, "cursor", listed[i].number);
        put_root(asking, record);
        put_wide(out, "start", record->start_ns);
        put_unsigned(out, "duration", record->end_ns - record->start_ns);
        put_unsigned(out, "spans", record->spans);
        put_unsigned(out, "errors", record->errors);
        put_services(asking, &listed[i]);
        put_unsigned(out, "samples", profile_store_samples(&asking->data->profiles, record->id));
        put_bool(out, "complete", record->has_root);
        put_raw(out, "}");
    }
    mem_free(listed);
    put_raw(out, "]");
    put_unsigned(out, "total", total);
    put_bool(out, "more", has_more || is_partial);
    put_bool(out, "partial", is_partial);
    put_wide(out, "newest", store->next - 1);
    put_raw(out, "}");
}

void answer_live(struct asking *asking)
{
    struct trace_store *store = &asking->data->traces;
    struct json_output *out = &asking->out;
    struct trace_filter filter;
    struct trace_matches matches;
    uint64_t after = asking_number(asking, "after", 0, UINT64_MAX);
    struct trace_search search = {.after = after, .before = UINT64_MAX};
    if (!pick(asking, &filter, &search, &matches))
        return;
    uint64_t count = 0;
    for (uint64_t number = store->next - 1; number >= store->first && number > after; number--)
        count += is_picked(asking, &filter, &matches, number);
    trace_matches_fini(&matches);
    put_raw(out, "{");
    put_unsigned(out, "count", count);
    put_wide(out, "newest", store->next - 1);
    put_raw(out, "}");
}

void answer_scatter(struct asking *asking)
{
    struct trace_store *store = &asking->data->traces;
    struct json_output *out = &asking->out;
    struct trace_filter filter;
    struct trace_matches matches;
    uint64_t buckets = asking_number(asking, "buckets", BUCKETS, BUCKETS_MAX);
    struct trace_search search = {.before = UINT64_MAX};
    if (!pick(asking, &filter, &search, &matches))
        return;
    uint64_t start_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    uint64_t shortest_ns = UINT64_MAX;
    uint64_t longest_ns = 1;
    uint64_t total = 0;
    for (uint64_t number = store->first; number < store->next; number++) {
        const struct trace_record *record = trace_store_record(store, number);
        if (!is_picked(asking, &filter, &matches, number))
            continue;
        uint64_t duration_ns = record->end_ns - record->start_ns;
        total++;
        start_ns = record->start_ns < start_ns ? record->start_ns : start_ns;
        end_ns = record->start_ns >= end_ns ? record->start_ns + 1 : end_ns;
        shortest_ns = duration_ns < shortest_ns ? duration_ns : shortest_ns;
        longest_ns = duration_ns > longest_ns ? duration_ns : longest_ns;
    }
    if (filter.start_ns > 0)
        start_ns = filter.start_ns;
    if (filter.end_ns < UINT64_MAX)
        end_ns = filter.end_ns;
    if (start_ns >= end_ns) {
        start_ns = start_ns == UINT64_MAX ? 0 : start_ns;
        end_ns = start_ns + 1;
    }
    /* Edges in equal ratios. */
    buckets = buckets > 0 ? buckets : 1;
    double low = shortest_ns < longest_ns ? (double)(shortest_ns > 0 ? shortest_ns : 1) : 1;
    double steps = log((double)longest_ns + 1) - log(low);
    uint64_t counts[BUCKETS_MAX] = {0};
    uint64_t errors[BUCKETS_MAX] = {0};
    uint64_t step = total / POINTS_MAX + 1;
    uint64_t seen = 0;
    put_raw(out, "{");
    put_wide(out, "start", start_ns);
    put_wide(out, "end", end_ns);
    put_key(out, "points");
    put_raw(out, "[");
    for (uint64_t number = store->first; number < store->next; number++) {
        const struct trace_record *record = trace_store_record(store, number);
        if (!is_picked(asking, &filter, &matches, number))
            continue;
        uint64_t duration_ns = record->end_ns - record->start_ns;
        /* Durations that a double does not tell apart leave no steps. */
        double place =
            steps > 0 ? (log((double)duration_ns + 1) - log(low)) / steps * (double)buckets : 0;
        size_t bucket = place <= 0 ? 0 : (size_t)place;
        counts[bucket < buckets ? bucket : buckets - 1]++;
        errors[bucket < buckets ? bucket : buckets - 1] += record->errors > 0;
        if (seen++ % step != 0)
            continue;
        put_comma(out);
        put_raw(out, "[");
        json_output_put_unsigned(out, (record->start_ns - start_ns) / NS_PER_MS);
        put_raw(out, ",");
        json_output_put_unsigned(out, duration_ns);
        put_raw(out, record->errors > 0 ? ",1," : ",0,");
        put_hex_value(out, record->id, sizeof(record->id));
        put_raw(out, "]");
    }
    trace_matches_fini(&matches);
    put_raw(out, "]");
    put_bool(out, "sampled", step > 1);
    put_bool(out, "partial", matches.is_partial);
    put_key(out, "histogram");
    put_raw(out, "{\"edges\":[");
    for (uint64_t i = 0; i <= buckets; i++) {
        double edge = exp(log(low) + steps * (double)i / (double)buckets) - 0.5;
        put_comma(out);
        json_output_put_unsigned(out, edge < 0x1p64 ? (uint64_t)edge : UINT64_MAX);
    }
    put_raw(out, "],\"counts\":[");
    for (uint64_t i = 0; i < buckets; i++) {
        put_comma(out);
        json_output_put_unsigned(out, counts[i]);
    }
    put_raw(out, "],\"errors\":[");
    for (uint64_t i = 0; i < buckets; i++) {
        put_comma(out);
        json_output_put_unsigned(out, errors[i]);
    }
    put_raw(out, "]}}");
}

/* Spans of one service and name. */
struct name_count {
    uint32_t service;
    uint32_t name;
    uint64_t spans;
    uint64_t errors;
    uint64_t cpu_ns; /* of their profiles' samples … */
    uint64_t samples;
    uint32_t durations[DURATION_BUCKETS];
};

static unsigned duration_bucket(uint64_t ns)
{
    if (ns < DURATION_STEPS)
        return (unsigned)ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    unsigned step = (unsigned)(ns >> (power - 4)) & (DURATION_STEPS - 1);
    return (power - 3) * DURATION_STEPS + step;
}

/* The middle of the bucket. */
static uint64_t bucket_middle(unsigned bucket)
{
    if (bucket < 2 * DURATION_STEPS)
        return bucket;
    unsigned power = bucket / DURATION_STEPS + 3;
    uint64_t begin = (uint64_t)(DURATION_STEPS + bucket % DURATION_STEPS) << (power - 4);
    return begin + (UINT64_C(1) << (power - 4)) / 2;
}

static uint64_t quantile(const struct name_count *of, unsigned percent)
{
    uint64_t rank = (of->spans * percent + 99) / 100;
    uint64_t seen = 0;
    for (unsigned i = 0; i < DURATION_BUCKETS; i++) {
        seen += of->durations[i];
        if (seen >= rank && seen > 0)
            return bucket_middle(i);
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct name_count *x = *(struct name_count *const *)a;
    const struct name_count *y = *(struct name_count *const *)b;
    return x->spans != y->spans       ? (x->spans < y->spans ? 1 : -1)
           : x->service != y->service ? (x->service > y->service) - (x->service < y->service)
                                      : (x->name > y->name) - (x->name < y->name);
}

static struct name_count *name_of(struct name_count **slots, struct name_count **all, size_t *count,
                                  const struct span_row *row)
{
    uint64_t hash = ((uint64_t)row->service << 32 | row->name) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 40) % NAMES_SLOTS;
    while (slots[at] != NULL &&
           (slots[at]->service != row->service || slots[at]->name != row->name))
        at = (at + 1) % NAMES_SLOTS;
    if (slots[at] == NULL && *count < NAMES_MAX) {
        slots[at] = mem_try_zalloc(sizeof(*slots[at]));
        if (slots[at] == NULL)
            return NULL;
        slots[at]->service = row->service;
        slots[at]->name = row->name;
        all[(*count)++] = slots[at];
    }
    return slots[at];
}

void answer_spans(struct asking *asking)
{
    struct trace_store *store = &asking->data->traces;
    struct json_output *out = &asking->out;
    struct trace_filter filter;
    if (!trace_filter_read(&filter, asking->query, asking->reason)) {
        asking->status = 400;
        return;
    }
    struct span_row *rows = asking_rows(asking);
    struct span_cpu cpu;
    if (rows == NULL)
        return;
    enum explore_result result = span_cpu_init(&cpu, &asking->data->profiles,
                                               asking->data->settings->budget, &asking->limit);
    if (result != EXPLORE_DONE) {
        asking_fail_by(asking, result);
        return;
    }
    struct name_count **slots =
        (struct name_count **)mem_zalloc((NAMES_SLOTS + NAMES_MAX) * sizeof(struct name_count *));
    struct name_count **all = slots + NAMES_SLOTS;
    size_t count = 0;
    uint32_t service = string_table_find(&store->strings, filter.service);
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    bool is_any = filter.service.data == NULL;
    size_t blocks = is_any || service != 0 ? trace_store_blocks(store) : 0;
    for (size_t at = 0; at < blocks && asking->status == 200; at++) {
        struct block_view view = trace_store_block(store, at);
        if (explore_is_over(&asking->limit))
            asking_fail_by(asking, EXPLORE_TOO_LONG);
        if ((!is_any && !block_view_has_string(store, &view, service)) ||
            !trace_store_rows(store, &view, rows))
            continue;
        for (uint32_t i = 0; i < view.spans; i++) {
            const struct span_row *row = &rows[i];
            if (row->trace < store->first || (!is_any && row->service != service) ||
                row->start_ns < filter.start_ns || row->start_ns >= filter.end_ns)
                continue;
            struct name_count *of = name_of(slots, all, &count, row);
            if (of == NULL)
                continue;
            of->spans++;
            of->errors += row->status == SPAN_STATUS_ERROR;
            of->durations[duration_bucket(row->duration_ns)]++;
            const struct span_cpu_entry *sampled =
                span_cpu_find(&cpu, trace_store_record(store, row->trace)->id, row->span_id);
            of->cpu_ns += sampled != NULL ? sampled->cpu_ns : 0;
            of->samples += sampled != NULL ? sampled->samples : 0;
            first_ns = row->start_ns < first_ns ? row->start_ns : first_ns;
            last_ns = row->start_ns > last_ns ? row->start_ns : last_ns;
        }
    }
    qsort((void *)all, count, sizeof(all[0]), compare_names);
    uint64_t range_ns = last_ns > first_ns ? last_ns - first_ns : 0;
    if (filter.end_ns < UINT64_MAX && filter.start_ns > 0)
        range_ns = filter.end_ns - filter.start_ns;
    put_raw(out, "{\"names\":[");
    for (size_t i = 0; i < count; i++) {
        put_comma(out);
        put_raw(out, "{");
        put_string(out, "service", string_table_at(&store->strings, all[i]->service));
        put_string(out, "name", string_table_at(&store->strings, all[i]->name));
        put_unsigned(out, "count", all[i]->spans);
        put_key(out, "rate");
        put_real(out, range_ns > 0 ? (double)all[i]->spans * 1e9 / (double)range_ns : 0);
        put_unsigned(out, "errors", all[i]->errors);
        put_unsigned(out, "p50", quantile(all[i], 50));
        put_unsigned(out, "p95", quantile(all[i], 95));
        put_unsigned(out, "p99", quantile(all[i], 99));
        put_unsigned(out, "cpuPerCall", all[i]->cpu_ns / all[i]->spans);
        put_unsigned(out, "samples", all[i]->samples);
        put_raw(out, "}");
        mem_free(all[i]);
    }
    put_raw(out, "]}");
    span_cpu_fini(&cpu);
    mem_free((void *)slots);
}
