/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json_file: reads files whose lines are OTLP/JSON, as the file exporter writes them. One
 * instance per lane, on its lane; the first has the thread that reads (json_file_reader.h), which
 * gives each file's requests to one of the lanes. */
#include <assert.h>

#include "receivers/otlp_json_file/json_file_config.h"
#include "receivers/otlp_json_file/json_file_reader.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/config/feature_gates.h"
#include "src/core/component.h"

#define OWNER struct json_file_counters
static const struct counter_row json_file_counter_rows[] = {
    COUNTER_BY_SIGNAL(OWNER, accepted, COUNTER_SUM, "otelcol_receiver_accepted_%s",
                      SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES, "transport",
                      "file", "Number of items successfully pushed into the pipeline."),
    COUNTER_BY_SIGNAL(OWNER, refused, COUNTER_SUM, "otelcol_receiver_refused_%s",
                      SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES, "transport",
                      "file", "Number of items that could not be pushed into the pipeline."),
    COUNTER(OWNER, open_files, COUNTER_GAUGE, "otelcol_fileconsumer_open_files",
            "Number of open files."),
    COUNTER(OWNER, wrong_lines, COUNTER_SUM, "spanflame_otlp_json_file_wrong_lines",
            "Lines that are no OTLP/JSON and were left out."),
    COUNTER(OWNER, retries, COUNTER_SUM, "spanflame_otlp_json_file_retries",
            "Requests that a pipeline refused and that were offered again."),
    COUNTER_END,
};
#undef OWNER

extern const struct component_factory otlp_json_file_receiver_factory;

static struct json_file_receiver *receiver_of(struct component *base)
{
    assert(base->factory == &otlp_json_file_receiver_factory);
    return (struct json_file_receiver *)base;
}

/* Instances are linked only after all were created. */
static bool is_first(const struct component *self)
{
    return lane_index(self->lane) == 0;
}

static bool json_file_create(struct component *self, struct error *error)
{
    static const char gate[] = "filelog.allowFileDeletion";
    struct json_file_receiver *receiver = receiver_of(self);
    const struct json_file_config *config = self->config;
    if (config->delete_after_read && self->service != NULL &&
        !feature_gate_is_enabled(self->service->gates, GATE_FILE_DELETION))
        return error_set(error,
                         "'delete_after_read' requires feature gate '%s': start with "
                         "--feature-gates %s, or remove the key",
                         gate, gate) ||
               error_at(error, "delete_after_read");
    json_file_receiver_init(receiver);
    if (!is_first(self))
        return true;
    receiver->reader = json_file_reader_create(receiver, error);
    return receiver->reader != NULL;
}

static bool json_file_start(struct component *self, struct error *error)
{
    return !is_first(self) || json_file_reader_start(receiver_of(self)->reader, error);
}

static void check_stopped(struct json_file_receiver *receiver)
{
    if (!receiver->is_stopping || !receiver->is_released || receiver->has_stopped)
        return;
    receiver->has_stopped = true;
    component_stopped(&receiver->base);
}

void json_file_receiver_released(struct json_file_receiver *receiver)
{
    receiver->is_released = true;
    check_stopped(receiver);
}

static void json_file_stop(struct component *self)
{
    struct json_file_receiver *receiver = receiver_of(self);
    receiver->is_stopping = true;
    /* First of all the thread reads no more: else it would read again what is given up. */
    if (!json_file_reader_stop(receiver_of(self->first)->reader))
        receiver->is_released = true;
    json_file_receiver_give_up(receiver);
    check_stopped(receiver);
}

static void json_file_destroy(struct component *self)
{
    json_file_reader_destroy(receiver_of(self)->reader);
}

static const char *const json_file_aliases[] = {"otlpjsonfile", NULL};

const struct component_factory otlp_json_file_receiver_factory = {
    .type = "otlp_json_file",
    .aliases = json_file_aliases,
    .kind = RECEIVER,
    .stability = "alpha",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct json_file_receiver),
    .config_size = sizeof(struct json_file_config),
    .fields = json_file_fields,
    .check = json_file_check,
    .counters_size = sizeof(struct json_file_counters),
    .counters = json_file_counter_rows,
    .create = json_file_create,
    .start = json_file_start,
    .stop = json_file_stop,
    .destroy = json_file_destroy,
};
