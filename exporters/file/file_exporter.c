/* SPDX-License-Identifier: Apache-2.0 */
/* file: writes requests to a file. One instance per lane and signal, on its lane; what they write
 * goes through the one thread of the exporter's file_writer.h, which they share. A receipt resolves
 * once the request is in the file. There is no queue and there are no retries, as in the Go
 * collector. */
#include <assert.h>

#include "exporters/file/file_config.h"
#include "exporters/file/file_writer.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/codec/codec.h"
#include "src/config/feature_gates.h"
#include "src/core/batch.h"
#include "src/core/component.h"

struct file_exporter {
    struct component base;
    struct stop_latch users; /* requests with the writer, and what is not stopped yet */
};

struct attempt {
    struct file_job job;
    struct file_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
};

extern const struct component_factory file_exporter_factory;

static struct file_exporter *file_exporter_of(struct component *base)
{
    assert(base->factory == &file_exporter_factory);
    return (struct file_exporter *)base;
}

static void on_written(struct file_job *job)
{
    _Static_assert(offsetof(struct attempt, job) == 0, "the job leads the attempt");
    struct attempt *attempt = (struct attempt *)job;
    struct file_exporter *exporter = attempt->exporter;
    batch_unref(attempt->batch);
    receipt_resolve(attempt->receipt, &job->outcome);
    mem_free(attempt);
    stop_latch_release(&exporter->users);
}

static void file_exporter_consume(struct component *self, struct batch *batch,
                                  struct receipt *receipt)
{
    struct file_exporter *exporter = file_exporter_of(self);
    assert(batch->signal == self->signal);
    struct attempt *attempt = mem_alloc(sizeof(*attempt));
    attempt->job = (struct file_job){.lane = self->lane, .batch = batch, .done = on_written};
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    stop_latch_hold(&exporter->users);
    file_writer_push(self->shared, &attempt->job);
}

static void *file_exporter_share(const struct component *first, unsigned lanes, struct error *error)
{
    const struct file_exporter_config *config = first->config;
    (void)lanes;
    if (config->compression != 0 && !codec_prepare(CODEC_ZSTD, error))
        return NULL;
    bool compresses_files = first->service != NULL &&
                            feature_gate_is_enabled(first->service->gates, GATE_FILE_COMPRESSION);
    return file_writer_create(config, first->budget, &first->logger, compresses_files);
}

static void file_exporter_unshare(void *shared)
{
    file_writer_destroy(shared);
}

static void on_users_gone(void *arg)
{
    component_stopped(arg);
}

static bool file_exporter_create(struct component *self, struct error *error)
{
    struct file_exporter *exporter = file_exporter_of(self);
    (void)error;
    exporter->users = (struct stop_latch){.fn = on_users_gone, .arg = self};
    stop_latch_hold(&exporter->users);
    return true;
}

static bool file_exporter_start(struct component *self, struct error *error)
{
    return file_writer_start(self->shared, error);
}

static void file_exporter_stop(struct component *self)
{
    stop_latch_release(&file_exporter_of(self)->users);
}

const struct component_factory file_exporter_factory = {
    .type = "file",
    .kind = EXPORTER,
    .stability = "alpha",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct file_exporter),
    .config_size = sizeof(struct file_exporter_config),
    .fields = file_exporter_fields,
    .check = file_exporter_check,
    .share = file_exporter_share,
    .unshare = file_exporter_unshare,
    .create = file_exporter_create,
    .start = file_exporter_start,
    .consume = file_exporter_consume,
    .stop = file_exporter_stop,
};
