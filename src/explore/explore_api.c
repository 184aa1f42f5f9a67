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
#include "src/explore/explore_asking.h"

enum { OUTPUT_BYTES_FIRST = 16 * 1024 };

void asking_fail(struct asking *asking, unsigned status, const char *reason)
{
    asking->status = status;
    snprintf(asking->reason, sizeof(asking->reason), "%s", reason);
}

void asking_fail_by(struct asking *asking, enum explore_result result)
{
    if (result == EXPLORE_TOO_LONG)
        asking_fail(asking, 503,
                    "the question takes too long: ask for less, for instance a shorter time range");
    else
        asking_fail(asking, 503, "no memory at the moment: try again");
}

struct span_row *asking_rows(struct asking *asking)
{
    struct explore_data *data = asking->data;
    if (data->rows == NULL)
        data->rows = mem_try_alloc(data->rows_capacity * sizeof(data->rows[0]));
    if (data->rows == NULL)
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
    return data->rows;
}

uint64_t asking_number(struct asking *asking, const char *key, uint64_t standard, uint64_t most)
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
    put_unsigned(out, "profiles", data->profiles.profiles);
    put_unsigned(out, "samples", data->profiles.samples);
    put_wide(out, "oldest", oldest != UINT64_MAX ? oldest : 0);
    put_unsigned(out, "evictedTraces", store->evicted_traces);
    put_key(out, "notKept");
    put_raw(out, "{");
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        put_unsigned(out, explore_loss_names[i], data->lost[i]);
    put_raw(out, "}");
    put_bool(out, "joinConfigured", data->has_join);
    put_bool(out, "tokenRequired", data->settings->is_token_required);
    put_string(out, "hostName", slice_of_text(host));
    put_raw(out, "}");
}

/* What stands between two slashes: "*" stands for anything, first the id, then the part. */
static const struct {
    const char *path;
    void (*answer)(struct asking *asking);
} questions[] = {
    {"status", answer_status},         {"services", answer_services},
    {"traces", answer_traces},         {"scatter", answer_scatter},
    {"spans", answer_spans},           {"live", answer_live},
    {"flame", answer_flame},           {"diff", answer_diff},
    {"download", answer_download},     {"traces/*", answer_trace},
    {"traces/*/rows", answer_rows},    {"traces/*/find", answer_find},
    {"traces/*/spans/*", answer_span},
};

static struct slice next_part(struct slice *path)
{
    const uint8_t *slash = path->size > 0 ? memchr(path->data, '/', path->size) : NULL;
    size_t size = slash != NULL ? (size_t)(slash - path->data) : path->size;
    struct slice part = slice_of(path->data, size);
    size_t used = slash != NULL ? size + 1 : size;
    *path = slice_of(path->data + used, path->size - used);
    return part;
}

static bool is_path(struct slice path, struct slice pattern, struct asking *asking)
{
    asking->id = asking->part = slice_of(NULL, 0);
    while (path.size > 0 && pattern.size > 0) {
        struct slice found = next_part(&path);
        struct slice wanted = next_part(&pattern);
        if (!slice_equal_text(wanted, "*")) {
            if (!slice_equal(found, wanted))
                return false;
        } else if (asking->id.data == NULL) {
            asking->id = found;
        } else {
            asking->part = found;
        }
    }
    return path.size == 0 && pattern.size == 0;
}

void explore_answer(struct explore_data *data, struct explore_job *job)
{
    struct explore_query *query = mem_alloc(sizeof(*query));
    struct asking asking = {.data = data,
                            .query = query,
                            .status = 200,
                            .limit = explore_limit_of(EXPLORE_QUERY_NS),
                            .disposition = job->disposition,
                            .type = "application/json; charset=utf-8"};
    const char *reason = NULL;
    struct slice path = slice_of_text(job->path);
    json_output_init(&asking.out, OUTPUT_BYTES_FIRST, EXPLORE_RESPONSE_BYTES_MAX,
                     data->settings->budget);
    size_t at = 0;
    enum { COUNT = sizeof(questions) / sizeof(questions[0]) };
    while (at < COUNT && !is_path(path, slice_of_text(questions[at].path), &asking))
        at++;
    if (at == COUNT)
        asking_fail(&asking, 404, "there is no such page: docs/explore.md lists the paths");
    else if (!explore_query_parse(query, slice_of_text(job->query), &reason))
        asking_fail(&asking, 400, reason);
    else
        questions[at].answer(&asking);
    bool is_too_large = asking.out.is_too_large;
    job->body = json_output_take(&asking.out);
    if (job->body == NULL && asking.status == 200) {
        if (is_too_large)
            asking_fail(&asking, 503, TOO_LARGE_REASON);
        else
            asking_fail_by(&asking, EXPLORE_NO_MEMORY);
    }
    if (asking.status != 200) {
        buffer_unref(job->body);
        asking.type = "application/json; charset=utf-8";
        job->disposition[0] = '\0';
        json_output_init(&asking.out, OUTPUT_BYTES_FIRST, EXPLORE_RESPONSE_BYTES_MAX, NULL);
        put_raw(&asking.out, "{");
        put_string(&asking.out, "error", slice_of_text(asking.reason));
        put_raw(&asking.out, "}");
        job->body = json_output_take(&asking.out);
    }
    job->status = asking.status;
    job->type = asking.type;
    mem_free(query);
}
