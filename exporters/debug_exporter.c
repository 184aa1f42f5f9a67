/* SPDX-License-Identifier: Apache-2.0 */
/* debug: prints batches as a line of counts, a line per item, or with every field, to the log or to
 * files of its own. One instance per lane and signal, on its lane. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/text/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    OUTPUTS_MAX = 16,
    SAMPLES = 4096,
    /* The helper turns larger batches into text, which may be TEXT_BYTES_MAX long. */
    LANE_BYTES_MAX = 16 * 1024,
};

enum verbosity { VERBOSITY_BASIC, VERBOSITY_NORMAL, VERBOSITY_DETAILED };
static const char *const verbosities[] = {"basic", "normal", "detailed", NULL};

enum { LEVEL_UNSET, LEVEL_DEBUG, LEVEL_INFO };
static const char *const log_levels[] = {"",      "debug",  "info",  "warn",  "warning",
                                         "error", "dpanic", "panic", "fatal", NULL};

struct debug_exporter_config {
    struct exporter_queue_config exporter_queue;
    int verbosity;
    int log_level;
    int64_t sampling_initial;
    int64_t sampling_thereafter;
    bool use_internal_logger;
    uint64_t top_functions;
    struct config_texts output_paths;
};

static const struct config_field debug_exporter_fields[] = {
    CONFIG_LEVEL(struct debug_exporter_config, verbosity, "verbosity", "basic", verbosities,
                 "basic: a line of figures for each batch; normal: a line per item; detailed: "
                 "every field."),
    CONFIG_INT(struct debug_exporter_config, sampling_initial, "sampling_initial", "2", INT64_MIN,
               INT64_MAX,
               "Equal messages printed in each second before sampling starts; below 0: all …"),
    CONFIG_INT(struct debug_exporter_config, sampling_thereafter, "sampling_thereafter", "1",
               INT64_MIN, INT64_MAX, "… and then one in this many; 0 or less: none."),
    CONFIG_COUNT(struct debug_exporter_config, top_functions, "top_functions", "5", 0, 100,
                 "Profiles: the spans that samples belong to, each with this many of its hottest "
                 "functions; 0: none."),
    CONFIG_BOOL(struct debug_exporter_config, use_internal_logger, "use_internal_logger", "true",
                "Print to the log, with its level, form and sampling."),
    CONFIG_TEXTS(struct debug_exporter_config, output_paths, "output_paths", NULL,
                 "Where to print with use_internal_logger: false: stdout, stderr or files."),
    CONFIG_LEVEL(struct debug_exporter_config, log_level, "loglevel", "", log_levels,
                 "Key of the old logging exporter, in place of verbosity: debug is detailed, info "
                 "normal, warn and error basic."),
    CONFIG_LEVEL(struct debug_exporter_config, log_level, "logLevel", "", log_levels, "The same."),
    SENDING_QUEUE_ROW(struct debug_exporter_config, CONFIG_NULL_ENABLES),
    CONFIG_END,
};

/* Messages of one hash in this second; as in zap's sampler, collisions share. */
struct sample {
    uint64_t ends_ns;
    uint64_t count;
};

struct debug_exporter {
    struct component base;
    struct sample *samples; /* SAMPLES of them, once something is printed */
    int outputs[OUTPUTS_MAX];
    size_t outputs_count; /* 0: the log */
    unsigned helped;      /* batches that the helper turns into text */
    bool is_stopping;
};

/* A batch that is turned into text. */
struct printing {
    struct helper_work work; /* first */
    struct debug_exporter *exporter;
    struct batch *batch; /* a reference, while the helper has it */
    struct receipt *receipt;
    struct batch_part whole;
    enum verbosity verbosity;
    struct text records;
    struct text spans; /* of profiles */
};

extern const struct component_factory debug_exporter_factory;

static struct debug_exporter *debug_exporter_of(struct component *base)
{
    assert(base->factory == &debug_exporter_factory);
    return (struct debug_exporter *)base;
}

static bool debug_exporter_check(const void *section, struct error *error)
{
    const struct debug_exporter_config *config = section;
    bool has_paths = config->output_paths.texts != NULL;
    if (config->use_internal_logger && has_paths)
        return error_set(error, "output_paths is not supported when use_internal_logger is true; "
                                "set use_internal_logger: false") ||
               error_at(error, "output_paths");
    if (has_paths && config->output_paths.count == 0)
        return error_set(error, "output_paths must not be empty when use_internal_logger is false; "
                                "name stdout, stderr or files, or remove the key") ||
               error_at(error, "output_paths");
    if (config->log_level != LEVEL_UNSET && config->verbosity != VERBOSITY_BASIC)
        return error_set(error, "'loglevel' and 'verbosity' are incompatible. Use only 'verbosity' "
                                "instead") ||
               error_at(error, "verbosity");
    if (config->output_paths.count > OUTPUTS_MAX)
        return error_set(error, "found %zu paths, expected at most %d", config->output_paths.count,
                         OUTPUTS_MAX) ||
               error_at(error, "output_paths");
    return true;
}

/* Whether the message is printed: counts it by its FNV-1a hash. */
static bool is_sampled(struct debug_exporter *exporter, const char *message)
{
    const struct debug_exporter_config *config = exporter->base.config;
    uint64_t now_ns = clock_now_ns();
    uint32_t hash = 2166136261U;
    for (const char *c = message; *c != '\0'; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619U;
    if (exporter->samples == NULL)
        exporter->samples = mem_zalloc(SAMPLES * sizeof(*exporter->samples));
    struct sample *sample = &exporter->samples[hash % SAMPLES];
    if (now_ns >= sample->ends_ns) {
        sample->ends_ns = now_ns + NS_PER_S;
        sample->count = 0;
    }
    uint64_t count = ++sample->count;
    if (config->sampling_initial < 0 || count <= (uint64_t)config->sampling_initial)
        return true;
    return config->sampling_thereafter > 0 &&
           (count - (uint64_t)config->sampling_initial) % (uint64_t)config->sampling_thereafter ==
               0;
}

/* Writes to the outputs. What cannot be written is dropped. */
static void print(const struct debug_exporter *exporter, const struct text *text)
{
    for (size_t i = 0; i < exporter->outputs_count; i++) {
        size_t done = 0;
        while (done < text->size) {
            ssize_t written = write(exporter->outputs[i], text->data + done, text->size - done);
            if (written < 0 && errno == EINTR)
                continue;
            if (written <= 0)
                break;
            done += (size_t)written;
        }
    }
}

struct count {
    const char *name; /* NULL: none */
    uint64_t number;
};

static void print_counts(struct debug_exporter *exporter, const struct batch *batch,
                         struct slice request)
{
    static const char *const titles[SIGNAL_KINDS] = {
        [TRACES] = "Traces", [METRICS] = "Metrics", [LOGS] = "Logs", [PROFILES] = "Profiles"};
    const char *title = titles[batch->signal];
    const struct logger *logger = &exporter->base.logger;
    struct otlp_text_figures counted = otlp_text_count(batch->signal, request);
    const struct count counts[SIGNAL_KINDS][3] = {
        [TRACES] = {{"resource spans", counted.resources}, {"spans", batch->items}},
        [METRICS] = {{"resource metrics", counted.resources},
                     {"metrics", counted.metrics},
                     {"data points", batch->items}},
        [LOGS] = {{"resource logs", counted.resources}, {"log records", batch->items}},
        [PROFILES] = {{"resource profiles", counted.resources}, {"sample records", batch->items}},
    };
    const struct count *rows = counts[batch->signal];
    if (!is_sampled(exporter, title))
        return;
    if (exporter->outputs_count > 0) {
        struct text line;
        text_init(&line, NULL);
        text_add(&line, "%s\t{", title);
        for (size_t i = 0; i < 3 && rows[i].name != NULL; i++)
            text_add(&line, "%s\"%s\": %" PRIu64, i > 0 ? ", " : "", rows[i].name, rows[i].number);
        text_add(&line, "}\n");
        print(exporter, &line);
        text_fini(&line);
    } else if (rows[2].name != NULL) {
        log_info(logger, title, log_int(rows[0].name, (int64_t)rows[0].number),
                 log_int(rows[1].name, (int64_t)rows[1].number),
                 log_int(rows[2].name, (int64_t)rows[2].number));
    } else {
        log_info(logger, title, log_int(rows[0].name, (int64_t)rows[0].number),
                 log_int(rows[1].name, (int64_t)rows[1].number));
    }
}

static void print_text(struct debug_exporter *exporter, struct text *text)
{
    if (text->data == NULL || text->size == 0 || !is_sampled(exporter, text->data))
        return;
    if (exporter->outputs_count > 0) {
        text_add(text, "\n");
        print(exporter, text);
        return;
    }
    /* The log copies the message. */
    struct budget *budget = exporter->base.budget;
    uint64_t bytes = log_line_bytes(text->size);
    if (!budget_try_take(budget, bytes)) {
        log_info(&exporter->base.logger, "no memory left in the budget to print a batch");
        return;
    }
    log_info(&exporter->base.logger, text->data);
    budget_return(budget, bytes);
}

/* Runs on the lane or on its helper. */
static void write_texts(struct printing *printing)
{
    const struct debug_exporter *exporter = printing->exporter;
    const struct debug_exporter_config *config = exporter->base.config;
    const enum signal_kind signal = printing->batch->signal;
    text_init(&printing->records, exporter->base.budget);
    text_init(&printing->spans, exporter->base.budget);
    if (printing->verbosity != VERBOSITY_BASIC)
        otlp_text_write(&printing->records, signal, printing->whole.bytes,
                        printing->verbosity == VERBOSITY_DETAILED);
    if (signal == PROFILES && config->top_functions > 0)
        otlp_text_write_spans(&printing->spans, printing->whole.bytes, config->top_functions);
}

static void print_all(struct printing *printing)
{
    struct debug_exporter *exporter = printing->exporter;
    print_counts(exporter, printing->batch, printing->whole.bytes);
    print_text(exporter, &printing->records);
    print_text(exporter, &printing->spans);
    text_fini(&printing->records);
    text_fini(&printing->spans);
    buffer_unref(printing->whole.owner);
    receipt_resolve(printing->receipt, &outcome_accepted);
}

static void on_help(struct helper_work *work)
{
    write_texts((struct printing *)work);
}

static void on_helped(struct helper_work *work)
{
    struct printing *printing = (struct printing *)work;
    struct debug_exporter *exporter = printing->exporter;
    print_all(printing);
    batch_unref(printing->batch);
    mem_free(printing);
    assert(exporter->helped > 0);
    exporter->helped--;
    if (exporter->is_stopping && exporter->helped == 0)
        component_stopped(&exporter->base);
}

static void debug_exporter_consume(struct component *self, struct batch *batch,
                                   struct receipt *receipt)
{
    struct debug_exporter *exporter = debug_exporter_of(self);
    const struct debug_exporter_config *config = self->config;
    struct printing printing = {.exporter = exporter,
                                .batch = batch,
                                .receipt = receipt,
                                .verbosity = (enum verbosity)config->verbosity};
    assert(batch->signal == self->signal);
    budget_begin_export();
    bool is_joined = batch_join(batch, self->budget, &printing.whole);
    budget_end_export();
    if (!is_joined) {
        struct outcome outcome = outcome_no_memory("no memory left in the budget to print a batch");
        receipt_resolve(receipt, &outcome);
        return;
    }
    if (config->log_level != LEVEL_UNSET)
        printing.verbosity = config->log_level == LEVEL_DEBUG  ? VERBOSITY_DETAILED
                             : config->log_level == LEVEL_INFO ? VERBOSITY_NORMAL
                                                               : VERBOSITY_BASIC;
    bool is_long =
        batch->bytes > LANE_BYTES_MAX && (printing.verbosity != VERBOSITY_BASIC ||
                                          (batch->signal == PROFILES && config->top_functions > 0));
    /* Behind those that the helper has, so that all are printed in their order. */
    if (!is_long && exporter->helped == 0) {
        write_texts(&printing);
        print_all(&printing);
        return;
    }
    struct printing *helped = mem_alloc(sizeof(*helped));
    *helped = printing;
    batch_ref(batch);
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    exporter->helped++;
    lane_help(self->lane, &helped->work);
}

static void debug_exporter_stop(struct component *self)
{
    struct debug_exporter *exporter = debug_exporter_of(self);
    exporter->is_stopping = true;
    if (exporter->helped == 0)
        component_stopped(self);
}

static bool output_open(struct debug_exporter *exporter, const char *path, struct error *error)
{
    assert(exporter->outputs_count < OUTPUTS_MAX);
    int fd;
    if (strcmp(path, "stdout") == 0)
        fd = STDOUT_FILENO;
    else if (strcmp(path, "stderr") == 0)
        fd = STDERR_FILENO;
    else
        fd = fileops()->open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd < 0)
        return error_set(error, "cannot open %s: %s", path, strerror(-fd));
    exporter->outputs[exporter->outputs_count++] = fd;
    return true;
}

static bool debug_exporter_create(struct component *self, struct error *error)
{
    struct debug_exporter *exporter = debug_exporter_of(self);
    const struct debug_exporter_config *config = self->config;
    if (config->use_internal_logger)
        return true;
    if (config->output_paths.count == 0)
        return output_open(exporter, "stdout", error);
    for (size_t i = 0; i < config->output_paths.count; i++)
        if (!output_open(exporter, config->output_paths.texts[i], error))
            return error_at_index(error, i) || error_at(error, "output_paths");
    return true;
}

static void debug_exporter_destroy(struct component *self)
{
    struct debug_exporter *exporter = debug_exporter_of(self);
    assert(exporter->outputs_count <= OUTPUTS_MAX);
    for (size_t i = 0; i < exporter->outputs_count; i++)
        if (exporter->outputs[i] > STDERR_FILENO)
            fileops()->close(exporter->outputs[i]);
    mem_free(exporter->samples);
}

static const char *const debug_exporter_aliases[] = {"logging", NULL};

const struct component_factory debug_exporter_factory = {
    .type = "debug",
    .aliases = debug_exporter_aliases,
    .kind = EXPORTER,
    .stability = "alpha",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct debug_exporter),
    .config_size = sizeof(struct debug_exporter_config),
    .fields = debug_exporter_fields,
    .check = debug_exporter_check,
    .create = debug_exporter_create,
    .consume = debug_exporter_consume,
    .stop = debug_exporter_stop,
    .destroy = debug_exporter_destroy,
};
