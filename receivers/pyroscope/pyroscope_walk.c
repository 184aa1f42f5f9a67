/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the bodies of the pyroscope receiver into batches, one profile a step: the series of a
 * PushRequest, and uploads to /ingest: pprof, bare or in a form; text formats and tries of stacks;
 * and JFR, which is passed on unchanged. Steps run on the receiver's lane, or on its helper when
 * they would block the lane. */
#include "receivers/pyroscope/pyroscope_receiver.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/ingest_series.h"
#include "src/profiles/pyroscope/multipart.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"
#include "src/profiles/pyroscope/series_otlp.h"
#include "src/profiles/pyroscope/text_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFLATE_RATIO_MAX = 1032,
    BAD_REQUEST = 400,
    UNPROCESSABLE = 422,
    TIME_TEXT_MAX = 24,
};

static enum pyroscope_step refuse(struct pyroscope_exchange *exchange, const char *message)
{
    pyroscope_refuse(exchange, STATUS_INVALID_ARGUMENT, message);
    return PYROSCOPE_STEP_NONE;
}

/* Whether a step that reads this many bytes belongs on the helper and does not run there yet. */
static bool needs_help(const struct pyroscope_exchange *exchange, uint64_t bytes)
{
    return exchange->state != PYROSCOPE_HELPED && bytes >= HELPED_PROFILES_BYTES_MIN;
}

static enum pprof_upload_verdict open_pprof(const struct pyroscope_exchange *exchange,
                                            struct slice profile, uint64_t bytes_max,
                                            struct pprof_upload *upload, struct error *error)
{
    const struct pyroscope_receiver *receiver = exchange->receiver;
    bool is_helped = exchange->state == PYROSCOPE_HELPED;
    return pprof_upload_open(upload, is_helped ? receiver->helper_gzip : receiver->gzip,
                             receiver->base.budget, profile, bytes_max, error);
}

static enum pyroscope_step make_batch(struct pyroscope_exchange *exchange, struct buffer *request,
                                      uint64_t items)
{
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = items;
    batch->arrival_ns = clock_now_ns();
    batch->client = client_info_ref(exchange->client);
    exchange->batch = batch;
    return PYROSCOPE_STEP_BATCH;
}

/* Converts one profile of that series to OTLP. */
static enum pyroscope_step convert(struct pyroscope_exchange *exchange, const struct series *series,
                                   const struct pprof_upload *upload)
{
    struct error error = {.text = ""};
    struct buffer *request = NULL;
    enum pyroscope_step step = PYROSCOPE_STEP_NONE;
    if (!upload_check_profile(&upload->pprof, series, exchange->receiver->limits, &error))
        return refuse(exchange, error.text);
    bool is_too_large;
    if (!series_to_otlp(series, &upload->pprof, exchange->receiver->base.budget, &request,
                        &is_too_large))
        return is_too_large ? refuse(exchange, "too many labels repeat long string values")
                            : PYROSCOPE_STEP_BUSY;
    exchange->negative += upload->negative;
    exchange->empty += request->size == 0;
    if (request->size > 0)
        step = make_batch(exchange, request, pprof_upload_items(upload));
    buffer_unref(request);
    return step;
}

/* ---- PushRequest ---- */

/* Counts the labels of a series towards the limit of the turn. Of too many they are the most of
 * it. */
static void account_labels(struct pyroscope_exchange *exchange)
{
    const struct push_series *series = &exchange->series;
    const struct series *labels = &series->labels;
    if (series->has_too_many_labels)
        exchange->turn_bytes += (uint64_t)(series->samples.end - series->samples.at);
    for (size_t i = 0; i < labels->count; i++)
        exchange->turn_bytes +=
            labels->labels[i].name.size + labels->labels[i].value.size + PYROSCOPE_TURN_LABEL_BYTES;
}

/* Reads the labels of the next series. One with bad labels is refused with all of its profiles; the
 * others are still processed. */
static enum pyroscope_step begin_series(struct pyroscope_exchange *exchange)
{
    struct push_series *series = &exchange->series;
    struct error error = {.text = ""};
    exchange->has_series = false;
    if (!push_next_series(&exchange->push, series))
        return PYROSCOPE_STEP_END;
    account_labels(exchange);
    if (series->has_too_many_labels)
        error_set(&error, "more than %d labels in one series", SERIES_LABELS_MAX);
    else
        exchange->has_series =
            series_check(&series->labels, &error) &&
            upload_check_series(&series->labels, exchange->receiver->limits, &error);
    return exchange->has_series ? PYROSCOPE_STEP_NONE : refuse(exchange, error.text);
}

/* Takes one profile of a series, or the labels of the next one. */
static enum pyroscope_step push_step(struct pyroscope_exchange *exchange)
{
    const struct pyroscope_receiver *receiver = exchange->receiver;
    struct push_series *series = &exchange->series;
    struct pprof_upload upload;
    struct error error = {.text = ""};
    assert(exchange->batch == NULL);
    if (exchange->profile.data == NULL &&
        !(exchange->has_series && push_next_profile(series, &exchange->profile)))
        return begin_series(exchange);
    if (exchange->inflated_bytes > PYROSCOPE_INFLATED_BYTES_MAX) {
        pyroscope_refuse(exchange, STATUS_RESOURCE_EXHAUSTED,
                         "the profiles of this request inflate to more than 256 MiB");
        return PYROSCOPE_STEP_END;
    }
    if (needs_help(exchange, (uint64_t)exchange->profile.size * DEFLATE_RATIO_MAX))
        return PYROSCOPE_STEP_HELP;
    enum pyroscope_step step = PYROSCOPE_STEP_BUSY;
    switch (open_pprof(exchange, exchange->profile, receiver->body_bytes_max, &upload, &error)) {
    case PPROF_UPLOAD_OPEN:
        step = convert(exchange, &series->labels, &upload);
        pprof_upload_close(&upload);
        break;
    case PPROF_UPLOAD_REFUSED:
        step = refuse(exchange, error.text);
        break;
    case PPROF_UPLOAD_BUSY:
        break;
    }
    if (step == PYROSCOPE_STEP_BUSY)
        return step;
    exchange->profile = slice_of(NULL, 0);
    pyroscope_account_work(exchange, upload.plain_bytes);
    return step;
}

void pyroscope_push_begin(struct pyroscope_exchange *exchange)
{
    struct push_figures figures;
    const char *reason = NULL;
    char message[256] = "no profiles received";
    bool is_valid = push_request_check(exchange->message, &figures, &reason);
    if (!is_valid)
        snprintf(message, sizeof(message), "unmarshal message: %s", reason);
    if (!is_valid || figures.profiles == 0) {
        struct outcome outcome = outcome_refused(STATUS_INVALID_ARGUMENT, message);
        pyroscope_respond(exchange, &outcome);
        return;
    }
    exchange->push = wire_reader_of(exchange->message);
    pyroscope_deliver(exchange, push_step);
}

/* ---- /ingest ---- */

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

size_t pyroscope_ingest_bytes(const struct http_request *request)
{
    return sizeof(struct pyroscope_ingest) + http_request_query(request).size + 1;
}

bool pyroscope_ingest_open(struct pyroscope_exchange *exchange, struct error *error)
{
    /* By the parameter, then by the content type, as on the server. */
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
    struct slice type = http_request_header(exchange->request, "content-type");
    struct pyroscope_ingest *ingest = mem_zalloc(sizeof(*ingest));
    exchange->ingest = ingest;
    exchange->http_status = BAD_REQUEST;
    if (type.size >= sizeof(ingest->content_type))
        return error_set(error, "the content type is longer than 255 bytes");
    if (!ingest_query_parse(&ingest->query, http_request_query(exchange->request), clock_wall_ns(),
                            error))
        return false;
    exchange->http_status = UNPROCESSABLE;
    snprintf(ingest->content_type, sizeof(ingest->content_type), "%.*s", (int)type.size,
             type.size > 0 ? (const char *)type.data : "");
    ingest->is_multipart = multipart_is_form(type);
    ingest->form = ingest->is_multipart ? FORM_PPROF : FORM_TEXT;
    ingest->text_format = TEXT_FOLDED;
    struct slice format = ingest->query.values[INGEST_FORMAT];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (slice_equal_text(format, rows[i].format) ||
            (rows[i].content_type != NULL && slice_equal_text(type, rows[i].content_type))) {
            ingest->form = rows[i].form;
            ingest->text_format = rows[i].text_format;
            break;
        }
    return true;
}

/* The parts of a form that are used. */
struct form_parts {
    struct slice profile;
    struct slice previous;
    struct slice config;
    struct slice jfr;
    struct slice labels;
};

/* The first of several parts with the same name is used. */
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

/* The series is filled. */
static enum pyroscope_step convert_ingest(struct pyroscope_exchange *exchange,
                                          const struct pprof_upload *upload)
{
    const struct series *series = &exchange->ingest->series;
    struct error error = {.text = ""};
    if (!series_check(series, &error) ||
        !upload_check_series(series, exchange->receiver->limits, &error))
        return refuse(exchange, error.text);
    return convert(exchange, series, upload);
}

static enum pyroscope_step ingest_pprof(struct pyroscope_exchange *exchange)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    struct form_parts parts = {.profile = exchange->message};
    struct pprof_upload upload;
    struct error error = {.text = ""};
    if (ingest->is_multipart) {
        parts.profile = slice_of(NULL, 0);
        if (!read_form(exchange, &parts, &error))
            return refuse(exchange, error.text);
    }
    if (parts.previous.size > 0)
        return refuse(exchange, "unsupported client version. Please update "
                                "github.com/grafana/pyroscope-go to the latest version");
    if (parts.profile.size == 0)
        return PYROSCOPE_STEP_END;
    enum pprof_upload_verdict verdict =
        open_pprof(exchange, parts.profile, exchange->receiver->body_bytes_max, &upload, &error);
    if (verdict != PPROF_UPLOAD_OPEN)
        return verdict == PPROF_UPLOAD_BUSY ? PYROSCOPE_STEP_BUSY : refuse(exchange, error.text);
    struct ingest_series what = {.service = ingest->query.name.app};
    enum pyroscope_step step;
    if (!ingest_pprof_mend(&upload, &ingest->query))
        step = pprof_upload_is_busy(&upload)
                   ? PYROSCOPE_STEP_BUSY
                   : refuse(exchange, "the profile's function names are too many or too long");
    else if (!ingest_type_of_pprof(&upload.pprof, parts.config, &what.metric, &error))
        step = refuse(exchange, error.text);
    else if (!ingest_series_fill(&ingest->series, &ingest->query, &what))
        step = refuse(exchange, "too many labels");
    else
        step = convert_ingest(exchange, &upload);
    pprof_upload_close(&upload);
    return step;
}

/* Text formats become pprof first, so that one conversion serves all. */
static enum pyroscope_step ingest_text(struct pyroscope_exchange *exchange)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    struct ingest_query *query = &ingest->query;
    struct ingest_text_type type;
    struct stack_profile stacks;
    struct pprof_upload upload;
    struct error error = {.text = ""};
    const struct slice *profile_id = series_find(&query->name.labels, "profile_id");
    if (profile_id != NULL && profile_id->size > 0)
        return PYROSCOPE_STEP_END; /* the server accepts these and stores nothing */
    exchange->http_status = BAD_REQUEST;
    if (!ingest_type_of_text(query->name.app, query->sample_rate, &type, &error))
        return refuse(exchange, error.text);
    struct ingest_series what = {
        .metric = slice_of_text(type.metric), .service = type.app, .app = type.app};
    if (!ingest_series_fill(&ingest->series, query, &what))
        return refuse(exchange, "too many labels");
    type.head.time_ns = query->from_ns;
    stack_profile_init(&stacks, &type.head, exchange->receiver->base.budget);
    bool is_read = text_profile_read(ingest->text_format, exchange->message, &stacks, &error);
    struct buffer *profile = is_read ? stack_profile_take(&stacks) : NULL;
    enum pyroscope_step step = PYROSCOPE_STEP_BUSY;
    if (profile != NULL) {
        enum pprof_upload_verdict verdict =
            open_pprof(exchange, buffer_slice(profile), UINT32_MAX, &upload, &error);
        if (verdict == PPROF_UPLOAD_REFUSED)
            step = refuse(exchange, error.text);
        if (verdict == PPROF_UPLOAD_OPEN) {
            step = convert_ingest(exchange, &upload);
            pprof_upload_close(&upload);
        }
        buffer_unref(profile);
    } else if (!is_read && !stacks.has_no_memory) {
        /* As on the server: 400 if it is not UTF-8, 422 if it is not in the format. */
        if (!stacks.is_not_utf8)
            exchange->http_status = UNPROCESSABLE;
        step = refuse(exchange, error.text);
    }
    stack_profile_fini(&stacks);
    return step;
}

static bool is_gzip(struct slice body)
{
    return body.size >= 2 && body.data[0] == 0x1f && body.data[1] == 0x8b;
}

/* The bytes go on unchanged, with the parameters of the query and the labels. */
static enum pyroscope_step ingest_jfr(struct pyroscope_exchange *exchange)
{
    static const uint8_t magic[] = {'F', 'L', 'R'};
    const struct ingest_query *query = &exchange->ingest->query;
    const struct series *names = &query->name.labels;
    struct opaque_profile_pair labels[SERIES_LABELS_MAX + 1];
    struct opaque_profile_pair parameters[INGEST_PARAMETERS];
    struct form_parts parts = {.jfr = exchange->message};
    struct error error = {.text = ""};
    bool is_multipart = exchange->ingest->is_multipart;
    if (is_multipart) {
        parts.jfr = slice_of(NULL, 0);
        if (!read_form(exchange, &parts, &error))
            return refuse(exchange, error.text);
    }
    struct slice jfr = parts.jfr;
    if (jfr.size == 0)
        return is_multipart ? refuse(exchange, "jfr field is required") : PYROSCOPE_STEP_END;
    bool is_jfr = jfr.size >= sizeof(magic) && memcmp(jfr.data, magic, sizeof(magic)) == 0;
    if (!is_jfr && !(is_multipart && is_gzip(jfr))) /* the server unpacks parts of forms alone */
        return refuse(exchange,
                      "this is not a JFR file: it does not begin with FLR, or, in a form, as gzip");
    if (!upload_check_time((int64_t)query->from_ns, exchange->receiver->limits, clock_wall_ns(),
                           &error))
        return refuse(exchange, error.text);

    /* An application that names its service keeps its own name as another label. */
    const struct slice *service = series_find(names, "service_name");
    bool has_service = service != NULL && service->size > 0;
    size_t labels_count = 0;
    labels[labels_count++] = (struct opaque_profile_pair){slice_of_text("service.name"),
                                                          has_service ? *service : query->name.app};
    for (size_t i = 0; i < names->count; i++)
        if (names->labels[i].value.size > 0 &&
            !slice_equal_text(names->labels[i].name, "service_name"))
            labels[labels_count++] =
                (struct opaque_profile_pair){names->labels[i].name, names->labels[i].value};
    if (has_service && series_find(names, "app_name") == NULL)
        labels[labels_count++] =
            (struct opaque_profile_pair){slice_of_text("app_name"), query->name.app};

    /* Times that were not sent are those of the arrival. */
    size_t parameters_count = 0;
    char from[TIME_TEXT_MAX];
    char until[TIME_TEXT_MAX];
    snprintf(from, sizeof(from), "%" PRIu64, query->from_ns);
    snprintf(until, sizeof(until), "%" PRIu64, query->until_ns);
    for (unsigned i = INGEST_FROM; i < INGEST_FORMAT; i++) {
        struct slice value = query->values[i];
        if (value.size == 0 && (i == INGEST_FROM || i == INGEST_UNTIL))
            value = slice_of_text(i == INGEST_FROM ? from : until);
        if (value.size > 0)
            parameters[parameters_count++] =
                (struct opaque_profile_pair){slice_of_text(ingest_parameter_name(i)), value};
    }
    const struct opaque_profile upload = {
        .format = slice_of_text(OPAQUE_PROFILE_JFR),
        .payload = jfr,
        .labels_part = parts.labels,
        .time_unix_ns = query->from_ns,
        .duration_ns = query->until_ns > query->from_ns ? query->until_ns - query->from_ns : 0,
        .labels = labels,
        .labels_count = labels_count,
        .parameters = parameters,
        .parameters_count = parameters_count,
    };
    struct buffer *request = opaque_profile_write(&upload, exchange->receiver->base.budget);
    if (request == NULL)
        return PYROSCOPE_STEP_BUSY;
    enum pyroscope_step step = make_batch(exchange, request, 1);
    buffer_unref(request);
    return step;
}

/* What a byte of the body can become. */
static uint64_t growth_max(const struct pyroscope_exchange *exchange)
{
    const struct pyroscope_ingest *ingest = exchange->ingest;
    if (ingest->is_multipart || is_gzip(exchange->message))
        return DEFLATE_RATIO_MAX;
    bool is_tree = ingest->text_format == TEXT_TRIE || ingest->text_format == TEXT_TREE;
    return ingest->form == FORM_TEXT && is_tree ? UPLOAD_SPELT_GROWTH_MAX : 1;
}

/* An upload is one profile, so the second step is the end. */
static enum pyroscope_step ingest_step(struct pyroscope_exchange *exchange)
{
    struct pyroscope_ingest *ingest = exchange->ingest;
    enum ingest_form form = ingest->form;
    enum pyroscope_step step = PYROSCOPE_STEP_NONE;
    assert(exchange->batch == NULL);
    if (ingest->is_done)
        return PYROSCOPE_STEP_END;
    if (needs_help(exchange, exchange->message.size * growth_max(exchange)))
        return PYROSCOPE_STEP_HELP;
    /* Node's SDK names no format. Its pprof is gzip, which no text is. */
    if (form == FORM_TEXT && ingest->text_format == TEXT_FOLDED && is_gzip(exchange->message))
        form = FORM_PPROF;
    switch (form) {
    case FORM_PPROF:
        step = ingest_pprof(exchange);
        break;
    case FORM_JFR:
        step = ingest_jfr(exchange);
        break;
    case FORM_TEXT:
        step = ingest_text(exchange);
        break;
    case FORM_SPEEDSCOPE:
        refuse(exchange, "speedscope is not supported: send pprof, folded stacks or JFR");
        break;
    }
    ingest->is_done = step != PYROSCOPE_STEP_BUSY;
    return step;
}

void pyroscope_ingest_begin(struct pyroscope_exchange *exchange)
{
    pyroscope_deliver(exchange, ingest_step);
}
