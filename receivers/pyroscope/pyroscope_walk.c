/* SPDX-License-Identifier: Apache-2.0 */
/* POST /ingest: pprof, bare or in a form, texts and tries of stacks, and JFR, which is passed on as
 * it came. Everything that is said of an upload stands in the query. Runs on its receiver's lane.
 */
#include "receivers/pyroscope/pyroscope_exchange.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_upload.h"
#include "src/profiles/pyroscope/ingest_pprof.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/ingest_type.h"
#include "src/profiles/pyroscope/multipart.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/text_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { UNPROCESSABLE = 422, BAD_REQUEST = 400, TIME_TEXT_MAX = 24 };

enum ingest_form { FORM_TEXT, FORM_PPROF, FORM_JFR, FORM_SPEEDSCOPE };

struct pyroscope_ingest {
    struct ingest_query query;
    struct series series;
    enum ingest_form form;
    enum text_format text_format;
    bool is_multipart;
    bool is_done;
    char content_type[256];
};

void pyroscope_ingest_free(struct pyroscope_ingest *ingest)
{
    if (ingest == NULL)
        return;
    ingest_query_fini(&ingest->query);
    mem_free(ingest);
}

/* By the parameter first, then by the content type, as on the server. */
static void find_form(struct pyroscope_ingest *ingest, const struct http_request *request)
{
    static const struct {
        const char *format;
        const char *content_type;
        enum ingest_form form;
        enum text_format text_format;
    } rows[] = {
        {"trie", "binary/octet-stream+trie", FORM_TEXT, TEXT_TRIE},
        {"tree", "binary/octet-stream+tree", FORM_TEXT, TEXT_TREE},
        {"lines", NULL, FORM_TEXT, TEXT_LINES},
        {"jfr", NULL, FORM_JFR, TEXT_FORMATS},
        {"pprof", NULL, FORM_PPROF, TEXT_FORMATS},
        {"speedscope", NULL, FORM_SPEEDSCOPE, TEXT_FORMATS},
    };
    struct slice format = ingest->query.values[INGEST_FORMAT];
    struct slice type = http_request_header(request, "content-type");
    assert(type.size < sizeof(ingest->content_type));
    ingest->is_multipart = multipart_is_form(type);
    ingest->form = ingest->is_multipart ? FORM_PPROF : FORM_TEXT;
    ingest->text_format = TEXT_FOLDED;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (slice_equal_text(format, rows[i].format) ||
            (rows[i].content_type != NULL && slice_equal_text(type, rows[i].content_type))) {
            ingest->form = rows[i].form;
            ingest->text_format = rows[i].text_format;
            return;
        }
}

static void refuse_query(struct pyroscope_exchange *exchange, const char *text)
{
    exchange->http_status = BAD_REQUEST;
    pyroscope_exchange_fail(exchange, STATUS_INVALID_ARGUMENT, text);
}

void pyroscope_ingest_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    struct error error = {.text = ""};
    struct slice type = http_request_header(request, "content-type");
    uint64_t bytes_max = pyroscope_receiver_bytes_max(receiver->base.config);
    if (!slice_equal_text(http_request_method(request), "POST")) {
        pyroscope_respond(receiver, request,
                          &(struct http_response){.status = 405, .headers = {{"allow", "POST"}}});
        return;
    }
    struct pyroscope_exchange *exchange =
        pyroscope_exchange_create(receiver, request, PYROSCOPE_PLAIN);
    struct pyroscope_ingest *ingest = mem_zalloc(sizeof(*ingest));
    exchange->ingest = ingest;
    exchange->http_status = UNPROCESSABLE;
    if (type.size >= sizeof(ingest->content_type)) {
        refuse_query(exchange, "the content type is longer than 255 bytes");
        return;
    }
    if (!ingest_query_parse(&ingest->query, http_request_query(request), clock_wall_ns(), &error)) {
        refuse_query(exchange, error.text);
        return;
    }
    find_form(ingest, request);
    snprintf(ingest->content_type, sizeof(ingest->content_type), "%.*s", (int)type.size,
             type.size > 0 ? (const char *)type.data : "");
    pyroscope_exchange_read(exchange, &(struct http_body_plan){.max_bytes = bytes_max});
}

static enum pyroscope_step refuse(struct pyroscope_exchange *exchange, const char *text)
{
    pyroscope_exchange_refuse(exchange, STATUS_INVALID_ARGUMENT, text);
    return PYROSCOPE_STEP_END;
}

/* The parts of a form that mean something. */
struct form_parts {
    struct slice profile;
    struct slice previous;
    struct slice config;
    struct slice jfr;
    struct slice labels;
};

/* Of parts with one name the first counts. False: the error says why. */
static bool read_form(const struct pyroscope_exchange *exchange, struct form_parts *parts,
                      struct error *error)
{
    struct multipart_part part;
    struct multipart form =
        multipart_of(slice_of_text(exchange->ingest->content_type), exchange->message);
    const struct {
        const char *name;
        struct slice *content;
    } fields[] = {
        {"profile", &parts->profile},
        {"prev_profile", &parts->previous},
        {"sample_type_config", &parts->config},
        {"jfr", &parts->jfr},
        {"labels", &parts->labels},
    };
    while (multipart_next(&form, &part))
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            if (slice_equal_text(part.name, fields[i].name) && fields[i].content->data == NULL)
                *fields[i].content = part.content;
    return form.failure == NULL ||
           error_set(error, "failed to parse the multipart form: %s", form.failure);
}

/* The series is filled, and the tables are open. */
static enum pyroscope_step convert(struct pyroscope_exchange *exchange,
                                   const struct pprof_upload *upload)
{
    const struct series *series = &exchange->ingest->series;
    struct error error = {.text = ""};
    if (!series_check(series, &error) ||
        !upload_check_series(series, pyroscope_exchange_limits(exchange), &error))
        return refuse(exchange, error.text);
    enum pyroscope_step step = pyroscope_exchange_convert(exchange, series, upload);
    return step == PYROSCOPE_STEP_NONE ? PYROSCOPE_STEP_END : step;
}

/* The tables are open. */
static enum pyroscope_step take_tables(struct pyroscope_exchange *exchange,
                                       struct pprof_upload *upload, struct slice config)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    struct error error = {.text = ""};
    struct ingest_series what = {.service = ingest->query.name.app};
    if (!ingest_pprof_mend(upload, &ingest->query))
        return refuse(exchange, "the profile has too many or too long names of functions");
    if (!ingest_type_of_pprof(&upload->pprof, config, &what.metric, &error))
        return refuse(exchange, error.text);
    if (!ingest_series_fill(&ingest->series, &ingest->query, &what))
        return refuse(exchange, "too many labels");
    return convert(exchange, upload);
}

static enum pyroscope_step take_pprof(struct pyroscope_exchange *exchange, struct slice profile,
                                      struct slice config)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pprof_upload upload;
    struct error error = {.text = ""};
    if (profile.size == 0)
        return PYROSCOPE_STEP_END;
    enum pprof_upload_verdict verdict =
        pprof_upload_open(&upload, pyroscope_exchange_gzip(exchange), receiver->base.budget,
                          profile, pyroscope_receiver_bytes_max(receiver->base.config), &error);
    if (verdict == PPROF_UPLOAD_BUSY)
        return PYROSCOPE_STEP_BUSY;
    if (verdict == PPROF_UPLOAD_REFUSED)
        return refuse(exchange, error.text);
    enum pyroscope_step step = take_tables(exchange, &upload, config);
    pprof_upload_close(&upload);
    return step;
}

static enum pyroscope_step take_pprof_form(struct pyroscope_exchange *exchange)
{
    struct form_parts parts = {.profile = exchange->message};
    struct error error = {.text = ""};
    if (exchange->ingest->is_multipart) {
        parts.profile = slice_of(NULL, 0);
        if (!read_form(exchange, &parts, &error))
            return refuse(exchange, error.text);
    }
    if (parts.previous.size > 0)
        return refuse(exchange, "unsupported client version. Please update "
                                "github.com/grafana/pyroscope-go to the latest version");
    return take_pprof(exchange, parts.profile, parts.config);
}

/* Stacks into pprof bytes, and these into tables: one road for all. */
static enum pyroscope_step take_stacks(struct pyroscope_exchange *exchange,
                                       struct stack_profile *stacks)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pprof_upload upload;
    struct error error = {.text = ""};
    struct buffer *profile = stack_profile_take(stacks);
    if (profile == NULL)
        return PYROSCOPE_STEP_BUSY;
    enum pprof_upload_verdict verdict =
        pprof_upload_open(&upload, pyroscope_exchange_gzip(exchange), receiver->base.budget,
                          buffer_slice(profile), UINT32_MAX, &error);
    enum pyroscope_step step = PYROSCOPE_STEP_BUSY;
    if (verdict == PPROF_UPLOAD_REFUSED)
        step = refuse(exchange, error.text);
    if (verdict == PPROF_UPLOAD_OPEN) {
        step = convert(exchange, &upload);
        pprof_upload_close(&upload);
    }
    buffer_unref(profile);
    return step;
}

/* As the server tells them apart: what no text can be, and what this one cannot. */
static enum pyroscope_step refuse_text(struct pyroscope_exchange *exchange,
                                       const struct stack_profile *stacks, const char *text)
{
    assert(exchange->ingest->form == FORM_TEXT);
    if (!stacks->is_no_utf8)
        exchange->http_status = UNPROCESSABLE;
    return refuse(exchange, text);
}

static enum pyroscope_step take_text(struct pyroscope_exchange *exchange)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    struct ingest_query *query = &ingest->query;
    struct ingest_text_type type;
    struct stack_profile stacks;
    struct error error = {.text = ""};
    const struct slice *profile_id = series_find(&query->name.labels, "profile_id");
    if (profile_id != NULL && profile_id->size > 0)
        return PYROSCOPE_STEP_END; /* the server takes them and keeps nothing */
    exchange->http_status = BAD_REQUEST;
    if (!ingest_type_of_text(query->name.app, query->sample_rate, &type, &error))
        return refuse(exchange, error.text);
    struct ingest_series what = {
        .metric = slice_of_text(type.metric), .service = type.app, .app = type.app};
    if (!ingest_series_fill(&ingest->series, query, &what))
        return refuse(exchange, "too many labels");
    type.head.time_ns = query->from_ns;
    stack_profile_init(&stacks, &type.head, exchange->receiver->base.budget);
    enum pyroscope_step step = PYROSCOPE_STEP_BUSY;
    if (text_profile_read(ingest->text_format, exchange->message, &stacks, &error))
        step = take_stacks(exchange, &stacks);
    else if (!stacks.has_no_memory)
        step = refuse_text(exchange, &stacks, error.text);
    stack_profile_fini(&stacks);
    return step;
}

/* Parameters go on as they were sent; times that were not are those of the arrival. */
static size_t jfr_parameters(const struct ingest_query *query, struct profile_upload_pair *pairs,
                             char times[2][TIME_TEXT_MAX])
{
    size_t count = 0;
    assert(pairs != NULL);
    for (unsigned i = INGEST_FROM; i < INGEST_FORMAT; i++) {
        struct slice value = query->values[i];
        bool is_time = i == INGEST_FROM || i == INGEST_UNTIL;
        if (value.size == 0 && is_time) {
            char *text = times[i == INGEST_UNTIL];
            snprintf(text, TIME_TEXT_MAX, "%" PRIu64,
                     i == INGEST_FROM ? query->from_ns : query->until_ns);
            value = slice_of_text(text);
        }
        if (value.size > 0)
            pairs[count++] = (struct profile_upload_pair){
                .key = slice_of_text(ingest_parameter_name(i)), .value = value};
    }
    return count;
}

static struct profile_upload_pair pair_of(const char *key, struct slice value)
{
    assert(value.size > 0);
    return (struct profile_upload_pair){.key = slice_of_text(key), .value = value};
}

/* An application that names its service is a label beside it. */
static size_t jfr_labels(const struct ingest_name *name, struct profile_upload_pair *pairs)
{
    size_t count = 0;
    const struct slice *service = series_find(&name->labels, "service_name");
    bool has_service = service != NULL && service->size > 0;
    assert(name->app.size > 0);
    pairs[count++] = pair_of("service.name", has_service ? *service : name->app);
    for (size_t i = 0; i < name->labels.count; i++) {
        const struct series_label *label = &name->labels.labels[i];
        if (label->value.size > 0 && !slice_equal_text(label->name, "service_name"))
            pairs[count++] =
                (struct profile_upload_pair){.key = label->name, .value = label->value};
    }
    if (has_service && series_find(&name->labels, "app_name") == NULL)
        pairs[count++] = pair_of("app_name", name->app);
    return count;
}

static bool is_gzip(struct slice body)
{
    return body.size >= 2 && body.data[0] == 0x1f && body.data[1] == 0x8b;
}

/* Only parts of a form are unpacked by the server. */
static bool is_jfr(struct slice file, bool is_part)
{
    static const uint8_t magic[] = {'F', 'L', 'R'};
    return (is_part && is_gzip(file)) ||
           (file.size >= sizeof(magic) && memcmp(file.data, magic, sizeof(magic)) == 0);
}

static enum pyroscope_step take_jfr(struct pyroscope_exchange *exchange)
{
    const struct ingest_query *query = &exchange->ingest->query;
    struct form_parts parts = {.jfr = exchange->message};
    struct error error = {.text = ""};
    struct profile_upload_pair labels[SERIES_LABELS_MAX + 1];
    struct profile_upload_pair parameters[INGEST_PARAMETERS];
    char times[2][TIME_TEXT_MAX];
    if (exchange->ingest->is_multipart) {
        parts.jfr = slice_of(NULL, 0);
        if (!read_form(exchange, &parts, &error))
            return refuse(exchange, error.text);
    }
    if (parts.jfr.size == 0 && exchange->ingest->is_multipart)
        return refuse(exchange, "jfr field is required");
    if (parts.jfr.size == 0)
        return PYROSCOPE_STEP_END;
    if (!is_jfr(parts.jfr, exchange->ingest->is_multipart))
        return refuse(exchange, "this is no JFR: it does not begin with FLR, nor, in a form, as "
                                "gzip");
    if (!upload_check_time((int64_t)query->from_ns, pyroscope_exchange_limits(exchange),
                           clock_wall_ns(), &error))
        return refuse(exchange, error.text);
    const struct profile_upload upload = {
        .format = slice_of_text(PROFILE_UPLOAD_JFR),
        .payload = parts.jfr,
        .labels_part = parts.labels,
        .time_unix_ns = query->from_ns,
        .duration_ns = query->until_ns > query->from_ns ? query->until_ns - query->from_ns : 0,
        .labels = labels,
        .labels_count = jfr_labels(&query->name, labels),
        .parameters = parameters,
        .parameters_count = jfr_parameters(query, parameters, times),
    };
    struct buffer *request = profile_upload_write(&upload, exchange->receiver->base.budget);
    if (request == NULL)
        return PYROSCOPE_STEP_BUSY;
    exchange->batch = pyroscope_exchange_batch(exchange, request, 1);
    buffer_unref(request);
    return PYROSCOPE_STEP_BATCH;
}

/* Node's SDK names no format: its pprof is known by being gzip, which no text is. */
static enum pyroscope_step take(struct pyroscope_exchange *exchange)
{
    const struct pyroscope_ingest *ingest = exchange->ingest;
    switch (ingest->form) {
    case FORM_PPROF:
        return take_pprof_form(exchange);
    case FORM_JFR:
        return take_jfr(exchange);
    case FORM_SPEEDSCOPE:
        return refuse(exchange, "speedscope is not supported: send pprof, folded stacks or JFR");
    case FORM_TEXT:
    default:
        return ingest->text_format == TEXT_FOLDED && is_gzip(exchange->message)
                   ? take_pprof_form(exchange)
                   : take_text(exchange);
    }
}

/* An upload is one profile. */
static enum pyroscope_step ingest_step(struct pyroscope_exchange *exchange)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    assert(exchange->batch == NULL);
    if (ingest->is_done)
        return PYROSCOPE_STEP_END;
    bool may_be_gzip = ingest->is_multipart || is_gzip(exchange->message);
    if (pyroscope_exchange_needs_help(exchange, exchange->message.size, may_be_gzip))
        return PYROSCOPE_STEP_HELP;
    enum pyroscope_step step = take(exchange);
    ingest->is_done = step != PYROSCOPE_STEP_BUSY;
    return step;
}

void pyroscope_ingest_body(struct pyroscope_exchange *exchange)
{
    assert(exchange->protocol == PYROSCOPE_PLAIN);
    exchange->body = buffer_ref(http_request_body(exchange->request));
    exchange->message = buffer_slice(exchange->body);
    pyroscope_exchange_start(exchange, ingest_step);
}
