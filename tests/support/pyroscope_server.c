/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's rules are those of the real server's validation: labels, sizes, profile, window.
 */
#include "tests/support/pyroscope_server.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/net/server/http_server.h"
#include "src/profiles/pprof/otlp_text.h"
#include "tests/support/loopback.h"
#include "tests/support/pyroscope_ingest.h"
#include "tests/unit/profiles/support.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "google/pprof/profile.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "push/v1/push.pb-c.h"

enum {
    BODY_BYTES_MAX = 16 << 20,
    PROFILE_BYTES_MAX = 2 << 20, /* the rate limiter's burst */
    SAMPLES_MAX = 16000,
    DEPTH_MAX = 1000,
    NAMES_MAX = 30,
    NAME_BYTES_MAX = 1024,
    VALUE_BYTES_MAX = 2048,
    SAMPLE_LABELS_MAX = 100,
    PAST_S = 3600,
    FUTURE_S = 600,
    LABELS_ROOM = 64,
};

#define OTLP_REQUEST                                                                               \
    Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name
#define OTLP(name)             PROFILES_SERVICE(export_profiles_service_request__##name)

/* Why a request is refused; false, so that checks read as one expression. */
static bool refused(struct pyroscope_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refused(struct pyroscope_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(server->last_error, sizeof(server->last_error), format, arguments);
    va_end(arguments);
    return false;
}

static bool is_utf8(const char *text)
{
    return otlp_text_valid(slice_of_text(text)) == strlen(text);
}

static int compare_labels(const void *a, const void *b)
{
    const Types__V1__LabelPair *const *left = a;
    const Types__V1__LabelPair *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static bool is_internal(const char *name)
{
    return strncmp(name, "__", 2) == 0 && strcmp(name, "__name__") != 0 &&
           strcmp(name, "__delta__") != 0;
}

static bool labels_check(struct pyroscope_server *server, Push__V1__RawProfileSeries *series)
{
    unsigned required = 0;
    if (series->n_labels > NAMES_MAX)
        return refused(server, "%zu label names", series->n_labels);
    qsort(series->labels, series->n_labels, sizeof(series->labels[0]), compare_labels);
    for (size_t i = 0; i < series->n_labels; i++) {
        const char *name = series->labels[i]->name;
        const char *value = series->labels[i]->value;
        if (i > 0 && strcmp(name, series->labels[i - 1]->name) == 0)
            return refused(server, "duplicate label %s", name);
        if (name[0] == '\0' || strlen(name) > NAME_BYTES_MAX || !is_utf8(name))
            return refused(server, "bad label name");
        if (strlen(value) > VALUE_BYTES_MAX || !is_utf8(value))
            return refused(server, "bad value of %s", name);
        if (is_internal(name))
            return refused(server, "internal label %s", name);
        required += strcmp(name, "__name__") == 0 && value[0] != '\0';
        required += strcmp(name, "service_name") == 0 && value[0] != '\0';
    }
    return required == 2 || refused(server, "__name__ or service_name is missing");
}

static bool strings_check(struct pyroscope_server *server,
                          const Perftools__Profiles__Profile *profile)
{
    if (profile->n_string_table == 0 || profile->string_table[0][0] != '\0')
        return refused(server, "string 0 is not empty");
    for (size_t i = 0; i < profile->n_string_table; i++)
        if (!is_utf8(profile->string_table[i]))
            return refused(server, "string %zu is no UTF-8", i);
    if (profile->n_sample_type == 0)
        return refused(server, "no sample type");
    for (size_t i = 0; i < profile->n_sample_type; i++) {
        const Perftools__Profiles__ValueType *type = profile->sample_type[i];
        if (type->type <= 0 || (uint64_t)type->type >= profile->n_string_table ||
            strchr(profile->string_table[type->type], '-') != NULL)
            return refused(server, "bad sample type");
    }
    /* The real one panics there. */
    return profile->period_type != NULL || refused(server, "period_type is absent");
}

static bool sample_check(struct pyroscope_server *server,
                         const Perftools__Profiles__Profile *profile,
                         const Perftools__Profiles__Sample *sample)
{
    bool is_zero = true;
    if (sample->n_value != profile->n_sample_type)
        return refused(server, "sample has %zu values", sample->n_value);
    for (size_t i = 0; i < sample->n_value; i++) {
        is_zero &= sample->value[i] == 0;
        if (sample->value[i] < 0)
            return refused(server, "negative sample");
    }
    if (is_zero)
        return refused(server, "sample of zeros");
    if (sample->n_label > SAMPLE_LABELS_MAX || sample->n_location_id > DEPTH_MAX)
        return refused(server, "too many labels or locations");
    for (size_t i = 0; i < sample->n_label; i++) {
        const Perftools__Profiles__Label *label = sample->label[i];
        if (label->str == 0 || (uint64_t)label->str >= profile->n_string_table ||
            (uint64_t)label->key >= profile->n_string_table)
            return refused(server, "a label is lost: it is no text");
    }
    return true;
}

static bool window_check(struct pyroscope_server *server, int64_t time_ns)
{
    int64_t now_ns = (int64_t)clock_wall_ns();
    if (time_ns < now_ns - (int64_t)PAST_S * NS_PER_S ||
        time_ns > now_ns + (int64_t)FUTURE_S * NS_PER_S)
        return refused(server, "not in ingestion window");
    return true;
}

static bool profile_check(struct pyroscope_server *server,
                          const Perftools__Profiles__Profile *profile)
{
    if (profile->n_sample > SAMPLES_MAX)
        return refused(server, "%zu samples", profile->n_sample);
    if (!strings_check(server, profile) || !window_check(server, profile->time_nanos))
        return false;
    for (size_t i = 0; i < profile->n_location; i++)
        if (profile->location[i]->id == 0)
            return refused(server, "location id 0");
    for (size_t i = 0; i < profile->n_function; i++)
        if (profile->function[i]->id == 0)
            return refused(server, "function id 0");
    for (size_t i = 0; i < profile->n_sample; i++)
        if (!sample_check(server, profile, profile->sample[i]))
            return false;
    return true;
}

/* Sorted. Allocated. */
static char *labels_text(Types__V1__LabelPair **list, size_t count)
{
    char labels[8192] = "{";
    qsort(list, count, sizeof(list[0]), compare_labels);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(labels);
        snprintf(labels + size, sizeof(labels) - size, "%s%s=\"%s\"", i > 0 ? ", " : "",
                 list[i]->name, list[i]->value);
    }
    strcat(labels, "}");
    return mem_copy_text(labels);
}

static void store(struct pyroscope_server *server, const Push__V1__RawProfileSeries *series,
                  const Perftools__Profiles__Profile *profile, struct slice bytes)
{
    assert_true(server->stored_count < PYROSCOPE_STORED_MAX);
    struct pyroscope_stored *stored = &server->stored[server->stored_count++];
    *stored = (struct pyroscope_stored){
        .labels = labels_text(series->labels, series->n_labels),
        .profile = pprof_described_by_oracle(bytes),
        .time_ns = profile->time_nanos,
        .samples = profile->n_sample,
        .bytes = bytes.size,
    };
    for (size_t i = 0; i < profile->n_sample; i++)
        stored->sum += profile->sample[i]->value[0];
}

static bool sample_take(struct pyroscope_server *server, const Push__V1__RawProfileSeries *series,
                        const Push__V1__RawSample *sample)
{
    struct slice bytes = slice_of(sample->raw_profile.data, sample->raw_profile.len);
    if (bytes.size > PROFILE_BYTES_MAX)
        return refused(server, "profile of %zu bytes", bytes.size);
    if (strlen(sample->id) != 36)
        return refused(server, "the ID is no UUID");
    Perftools__Profiles__Profile *profile =
        perftools__profiles__profile__unpack(NULL, bytes.size, bytes.data);
    if (profile == NULL)
        return refused(server, "malformed profile");
    bool is_fine = profile_check(server, profile);
    if (is_fine)
        store(server, series, profile, bytes);
    perftools__profiles__profile__free_unpacked(profile, NULL);
    return is_fine;
}

static bool series_take(struct pyroscope_server *server, Push__V1__RawProfileSeries *series)
{
    bool is_fine = labels_check(server, series);
    for (size_t i = 0; is_fine && i < series->n_samples; i++)
        is_fine = sample_take(server, series, series->samples[i]);
    return is_fine;
}

/* The labels as messages in room. */
static void fill_labels(const struct pyroscope_label *labels, size_t count,
                        Types__V1__LabelPair *room, Types__V1__LabelPair **list)
{
    assert_true(count <= LABELS_ROOM);
    for (size_t i = 0; i < count; i++) {
        types__v1__label_pair__init(&room[i]);
        room[i].name = (char *)(uintptr_t)labels[i].name;
        room[i].value = (char *)(uintptr_t)labels[i].value;
        list[i] = &room[i];
    }
}

void pyroscope_server_store_text(struct pyroscope_server *server,
                                 const struct pyroscope_label *labels, size_t count,
                                 const char *text)
{
    Types__V1__LabelPair room[LABELS_ROOM];
    Types__V1__LabelPair *list[LABELS_ROOM];
    fill_labels(labels, count, room, list);
    assert_true(server->stored_count < PYROSCOPE_STORED_MAX);
    server->stored[server->stored_count++] = (struct pyroscope_stored){
        .labels = labels_text(list, count), .profile = mem_copy_text(text)};
}

bool pyroscope_server_take(struct pyroscope_server *server, const struct pyroscope_label *labels,
                           size_t count, struct slice profile)
{
    Types__V1__LabelPair room[LABELS_ROOM];
    Types__V1__LabelPair *list[LABELS_ROOM];
    Push__V1__RawSample sample;
    Push__V1__RawSample *samples[] = {&sample};
    Push__V1__RawProfileSeries series = PUSH__V1__RAW_PROFILE_SERIES__INIT;
    char id[] = "00000000-0000-0000-0000-000000000000";
    fill_labels(labels, count, room, list);
    push__v1__raw_sample__init(&sample);
    sample.raw_profile.data = (uint8_t *)(uintptr_t)profile.data;
    sample.raw_profile.len = profile.size;
    sample.id = id;
    series.labels = list;
    series.n_labels = count;
    series.samples = samples;
    series.n_samples = 1;
    return series_take(server, &series);
}

static bool request_take(struct pyroscope_server *server, struct slice body)
{
    Push__V1__PushRequest *request = push__v1__push_request__unpack(NULL, body.size, body.data);
    bool is_fine = request != NULL || refused(server, "malformed request");
    if (request != NULL && request->n_series == 0)
        is_fine = refused(server, "no profiles received");
    for (size_t i = 0; is_fine && i < request->n_series; i++)
        is_fine = series_take(server, request->series[i]);
    if (request != NULL)
        push__v1__push_request__free_unpacked(request, NULL);
    return is_fine;
}

/* The name that the server's OTLP endpoint makes: the period type, when there is a period; "" is
 * refused. */
static const char *otlp_name(const Opentelemetry__Proto__Profiles__V1development__Profile *profile,
                             char **strings, size_t strings_count)
{
    const Opentelemetry__Proto__Profiles__V1development__ValueType *type = profile->period_type;
    bool has_period = type != NULL && profile->period != 0;
    if (!has_period || type->type_strindex < 0 || (size_t)type->type_strindex >= strings_count)
        return "";
    return strings[type->type_strindex];
}

static void otlp_store(struct pyroscope_server *server, const char *name,
                       const Opentelemetry__Proto__Profiles__V1development__Profile *profile)
{
    const struct pyroscope_label labels[] = {{"__name__", name}, {"__otel__", "true"}};
    char text[128];
    snprintf(text, sizeof(text), "otlp %llu, %zu samples",
             (unsigned long long)profile->time_unix_nano, profile->n_samples);
    pyroscope_server_store_text(server, labels, 2, text);
}

/* As the real one: each profile is judged on its own and stored or not, and one that is not makes
 * the response an error. */
static bool otlp_take(struct pyroscope_server *server, struct slice body)
{
    bool is_fine = true;
    OTLP_REQUEST *request = OTLP(unpack)(NULL, body.size, body.data);
    if (request == NULL || request->dictionary == NULL)
        return refused(server, "Failed to parse protobuf request");
    for (size_t i = 0; i < request->n_resource_profiles; i++)
        for (size_t k = 0; k < request->resource_profiles[i]->n_scope_profiles; k++)
            for (size_t m = 0; m < request->resource_profiles[i]->scope_profiles[k]->n_profiles;
                 m++) {
                const Opentelemetry__Proto__Profiles__V1development__Profile *profile =
                    request->resource_profiles[i]->scope_profiles[k]->profiles[m];
                const char *name = otlp_name(profile, request->dictionary->string_table,
                                             request->dictionary->n_string_table);
                if (name[0] != '\0')
                    otlp_store(server, name, profile);
                else
                    is_fine = refused(server, "failed to make a GRPC request: push series with "
                                              "index 0 failed: invalid labels '{__name__=\"\"}' "
                                              "with error: invalid metric name");
            }
    OTLP(free_unpacked)(request, NULL);
    return is_fine;
}

static void respond_text(struct http_request *request, unsigned status, const char *text)
{
    http_respond(request,
                 &(struct http_response){
                     .status = status,
                     .headers = {{"content-type", status == 200 ? "application/x-protobuf"
                                                                : "text/plain; charset=utf-8"}},
                     .body = slice_of_text(status == 200 ? "" : text),
                 });
}

/* retry_after is a header's value, or NULL. */
static void respond_later(struct http_request *request, unsigned status, const char *message,
                          const char *retry_after)
{
    char body[600];
    struct http_response response = {
        .status = status,
        .headers = {{"content-type", status == 200 ? "application/proto" : "application/json"}},
    };
    snprintf(body, sizeof(body), "{\"code\":\"invalid_argument\",\"message\":\"%s\"}", message);
    response.body = slice_of_text(status == 200 ? "" : body);
    if (retry_after != NULL)
        response.headers[1] = (struct http_header){"retry-after", retry_after};
    http_respond(request, &response);
}

static void respond(struct http_request *request, unsigned status, const char *message)
{
    respond_later(request, status, message, NULL);
}

/* Joined by commas when it came more than once. */
static void copy_header(const struct http_request *request, const char *name, char *to, size_t room)
{
    struct slice found;
    struct slice value;
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; http_request_header_at(request, i, &found, &value); i++)
        if (slice_equal_text(found, name) && used < room)
            used +=
                (size_t)snprintf(to + used, room - used, "%s%.*s", used > 0 ? "," : "",
                                 (int)value.size, value.size > 0 ? (const char *)value.data : "");
}

static void on_request(struct http_request *request, void *arg)
{
    struct pyroscope_server *server = arg;
    struct slice path = http_request_path(request);
    snprintf(server->path, sizeof(server->path), "%.*s", (int)path.size, (const char *)path.data);
    struct slice query = http_request_query(request);
    snprintf(server->query, sizeof(server->query), "%.*s", (int)query.size,
             query.size > 0 ? (const char *)query.data : "");
    copy_header(request, "content-type", server->content_type, sizeof(server->content_type));
    copy_header(request, "authorization", server->authorization, sizeof(server->authorization));
    copy_header(request, "x-scope-orgid", server->tenant, sizeof(server->tenant));
    http_request_read_body(request, &(struct http_body_plan){.max_bytes = BODY_BYTES_MAX});
}

static void judge(struct pyroscope_server *server, struct http_request *request, bool is_otlp)
{
    struct slice body = buffer_slice(http_request_body(request));
    struct buffer *inflated = NULL;
    bool is_packed = slice_equal_text(http_request_header(request, "content-encoding"), "gzip");
    bool is_fine = true;
    if (is_packed) {
        struct gzip *gzip = gzip_create();
        is_fine =
            gzip_inflate(gzip, NULL, body.data, body.size, BODY_BYTES_MAX, &inflated) == GZIP_OK;
        gzip_destroy(gzip);
    }
    if (is_fine && inflated != NULL)
        body = buffer_slice(inflated);
    is_fine = (is_fine || refused(server, "bad gzip")) &&
              (is_otlp ? otlp_take(server, body) : request_take(server, body));
    buffer_unref(inflated);
    if (is_otlp)
        respond_text(request, is_fine ? 200 : 400, server->last_error);
    else
        respond(request, is_fine ? 200 : 400, server->last_error);
}

static void on_body(struct http_request *request, void *arg)
{
    struct pyroscope_server *server = arg;
    unsigned place = server->requests++;
    unsigned step = place < PYROSCOPE_STEPS_MAX ? server->steps[place] : 0;
    if (step != 0)
        respond_later(request, step,
                      server->step_message != NULL ? server->step_message : "scripted",
                      server->step_retry_after);
    else if (slice_equal_text(http_request_path(request), "/ingest"))
        respond(request, pyroscope_ingest_take(server, request), server->last_error);
    else if (slice_equal_text(http_request_path(request), "/v1development/profiles"))
        judge(server, request, true);
    else if (!slice_equal_text(http_request_path(request), "/push.v1.PusherService/Push"))
        respond(request, 404, "no such path");
    else if (!slice_equal_text(http_request_header(request, "content-type"), "application/proto"))
        respond(request, 415, "wrong content type");
    else
        judge(server, request, false);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    (void)failure;
    (void)arg;
    respond(request, 413, "too large");
}

static void on_end(struct http_request *request, void *arg)
{
    struct pyroscope_server *server = arg;
    (void)request;
    server->ends++;
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

struct pyroscope_server *pyroscope_server_create(struct lane *lane)
{
    struct pyroscope_server *server = mem_zalloc(sizeof(*server));
    struct error error;
    budget_init(&server->budget, 64 << 20);
    server->lane = lane;
    server->server = http_server_create(&(struct http_server_settings){
        .lane = lane,
        .budget = &server->budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .handler = &handler,
        .arg = server,
    });
    if (!http_server_listen(&server->server, 1, "tcp", "127.0.0.1:0", &error))
        fail_msg("%s", error.text);
    snprintf(server->url, sizeof(server->url), "http://%s", http_server_address(server->server));
    return server;
}

static void on_stopped(void *arg)
{
    struct pyroscope_server *server = arg;
    server->has_stopped = true;
}

void pyroscope_server_destroy(struct pyroscope_server *server)
{
    http_server_stop(server->server, on_stopped, server);
    http_server_abort(server->server);
    loopback_turn_until(server->lane, &server->has_stopped);
    http_server_destroy(server->server);
    for (size_t i = 0; i < server->stored_count; i++) {
        mem_free(server->stored[i].labels);
        mem_free(server->stored[i].profile);
    }
    assert_int_equal(budget_used(&server->budget), 0);
    budget_fini(&server->budget);
    mem_free(server);
}
