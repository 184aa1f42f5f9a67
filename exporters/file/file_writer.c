/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file/file_writer.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "exporters/file/file_config.h"
#include "exporters/file/file_groups.h"
#include "exporters/file/file_paths.h"
#include "exporters/file/output_file.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/hash_table.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_write.h"

enum {
    PENDING_MAX = 64, /* requests that are written together */
    PENDING_BYTES_MAX = 4 << 20,
    SIZE_BYTES = 4, /* before a message */
    ZSTD_LEVEL = 3,
    DICTIONARIES_BYTES_MAX = 64 << 20, /* that one request of profiles writes, one for each group */
};

/* A message in its form for the file. */
struct encoded {
    struct buffer *owner;
    struct output_record record;
    uint32_t size; /* big-endian, part of the record */
};

struct pending {
    struct file_job *job;
    struct encoded encoded;
};

/* An open file of a group. */
struct group_file {
    struct output_file *file;
    uint64_t hash;
    struct group_file *newer; /* in the order of use */
    struct group_file *older;
};

struct file_writer {
    const struct file_exporter_config *config;
    struct budget *budget;
    struct logger logger;
    bool has_lines;
    bool compresses_files;
    struct codec_box *codecs;
    struct output_file_settings settings;
    _Atomic(struct file_job *) inbox; /* the last pushed first */
    sem_t wakes;
    pthread_t thread;
    bool is_running;
    _Atomic bool is_stopping;
    /* of the thread */
    struct output_file *file; /* NULL: groups */
    struct pending pending[PENDING_MAX];
    size_t pending_count;
    size_t pending_bytes;
    struct file_group_path group_path;
    struct hash_table groups; /* struct group_file, by path */
    uint64_t seed;
    struct group_file *newest;
    struct group_file *oldest;
    bool has_logged_ungrouped;
};

/* ---- results ---- */

static void on_lane(struct lane_task *task)
{
    struct file_job *job = (struct file_job *)((uint8_t *)task - offsetof(struct file_job, task));
    job->done(job);
}

static void finish(struct file_job *job)
{
    job->task.fn = on_lane;
    lane_post(job->lane, &job->task);
}

static void accept_job(struct file_job *job)
{
    job->outcome = outcome_accepted;
}

static void refuse(struct file_job *job, const char *text, bool is_permanent,
                   enum loss_reason reason)
{
    snprintf(job->text, sizeof(job->text), "%s", text);
    job->outcome = (struct outcome){
        .verdict = REFUSED,
        .code = is_permanent ? STATUS_INTERNAL : STATUS_UNAVAILABLE,
        .cause = FAILURE_OTHER,
        .reason = reason,
        .is_permanent = is_permanent,
        .message = job->text,
    };
}

static void refuse_for_memory(struct file_job *job)
{
    refuse(job, "no memory left in the budget to write a request", false, LOSS_MEMORY);
}

/* As the Go collector does, the client is asked to send it again, unless that cannot help. */
static void refuse_failed(struct file_job *job, const char *text, int failed)
{
    if (failed != -EFBIG) {
        refuse(job, text, false, LOSS_RETRIES_OVER);
        return;
    }
    snprintf(job->text, sizeof(job->text), "%s", text);
    job->outcome = outcome_too_large(job->text);
    job->outcome.cause = FAILURE_OTHER;
}

/* ---- encoding ---- */

static void add_part(struct output_record *record, const void *data, size_t size)
{
    assert(record->parts_count < OUTPUT_RECORD_PARTS);
    record->parts[record->parts_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    record->bytes += size;
}

/* Compresses the parts into one frame, in the place of body. False: there is no memory. */
static bool compress(struct file_writer *writer, const struct batch_part *parts, size_t count,
                     int level, struct batch_part *body)
{
    struct buffer *output;
    const struct codec_input input = {.parts = parts, .parts_count = count, .level = level};
    bool is_compressed = codec_deflate(writer->codecs, CODEC_ZSTD, &input, &output) == CODEC_OK;
    buffer_unref(body->owner);
    *body = (struct batch_part){.owner = NULL};
    if (is_compressed)
        *body = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    return is_compressed;
}

/* False: there is no memory. */
static bool encode(struct file_writer *writer, const struct batch *batch, struct encoded *encoded)
{
    const struct file_exporter_config *config = writer->config;
    int level =
        config->compression_params.level != 0 ? (int)config->compression_params.level : ZSTD_LEVEL;
    struct batch_part body;
    *encoded = (struct encoded){.owner = NULL};
    if (config->format == FILE_JSON) {
        body.owner = json_write_batch(batch, writer->budget);
        if (body.owner == NULL)
            return false;
        body.bytes = buffer_slice(body.owner);
    } else if (!batch_join(batch, writer->budget, &body)) {
        return false;
    }
    bool is_message = config->compression != 0 && !writer->compresses_files;
    if (is_message && !compress(writer, &body, 1, ZSTD_LEVEL, &body))
        return false;
    encoded->size = htobe32((uint32_t)body.bytes.size);
    const struct batch_part parts[] = {
        {.bytes = slice_of(&encoded->size, writer->has_lines ? 0 : SIZE_BYTES)},
        {.bytes = body.bytes},
        {.bytes = slice_of("\n", writer->has_lines ? 1 : 0)}};
    if (writer->compresses_files) {
        if (!compress(writer, parts, sizeof(parts) / sizeof(parts[0]), level, &body))
            return false;
        add_part(&encoded->record, body.bytes.data, body.bytes.size);
    }
    for (size_t i = 0; i < OUTPUT_RECORD_PARTS && !writer->compresses_files; i++)
        add_part(&encoded->record, parts[i].bytes.data, parts[i].bytes.size);
    encoded->owner = body.owner;
    return true;
}

/* ---- one file ---- */

static void flush(struct file_writer *writer)
{
    struct output_record records[PENDING_MAX];
    struct error error;
    int failed;
    for (size_t i = 0; i < writer->pending_count; i++)
        records[i] = writer->pending[i].encoded.record;
    size_t done = 0;
    while (done < writer->pending_count) {
        done += output_file_write(writer->file, records + done, writer->pending_count - done,
                                  &error, &failed);
        if (failed != 0)
            refuse_failed(writer->pending[done++].job, error.text, failed);
    }
    for (size_t i = 0; i < writer->pending_count; i++) {
        buffer_unref(writer->pending[i].encoded.owner);
        finish(writer->pending[i].job);
    }
    writer->pending_count = 0;
    writer->pending_bytes = 0;
}

static void write_job(struct file_writer *writer, struct file_job *job)
{
    struct pending *pending = &writer->pending[writer->pending_count];
    accept_job(job);
    if (!encode(writer, job->batch, &pending->encoded)) {
        /* What is waiting for its place in the file holds memory, too. */
        flush(writer);
        pending = &writer->pending[0];
        if (!encode(writer, job->batch, &pending->encoded)) {
            refuse_for_memory(job);
            finish(job);
            return;
        }
    }
    /* The record points to the size beside it. */
    pending->job = job;
    writer->pending_count++;
    writer->pending_bytes += pending->encoded.record.bytes;
    if (writer->pending_count == PENDING_MAX || writer->pending_bytes >= PENDING_BYTES_MAX)
        flush(writer);
}

/* ---- a file for each group ---- */

static void unlink_file(struct file_writer *writer, struct group_file *group)
{
    *(group->newer != NULL ? &group->newer->older : &writer->newest) = group->older;
    *(group->older != NULL ? &group->older->newer : &writer->oldest) = group->newer;
}

static void link_newest(struct file_writer *writer, struct group_file *group)
{
    group->newer = NULL;
    group->older = writer->newest;
    *(writer->newest != NULL ? &writer->newest->newer : &writer->oldest) = group;
    writer->newest = group;
}

static void close_group(struct file_writer *writer, struct group_file *group)
{
    unlink_file(writer, group);
    hash_table_remove(&writer->groups, group->hash, group);
    output_file_close(group->file);
    mem_free(group);
}

/* NULL: error and *ret_failed say why. */
static struct output_file *open_group(struct file_writer *writer, struct slice name,
                                      struct error *error, int *ret_failed)
{
    const struct file_exporter_config *config = writer->config;
    char path[FILE_PATH_BYTES_MAX];
    char directory[FILE_PATH_BYTES_MAX];
    *ret_failed = file_group_path_of(&writer->group_path, name, path);
    if (*ret_failed != 0) {
        error_set(error, "%s \"%.*s\" makes no path: %s", config->group_by.resource_attribute,
                  (int)(name.size < 100 ? name.size : 100), (const char *)name.data,
                  strerror(-*ret_failed));
        return NULL;
    }
    uint64_t hash = XXH3_64bits_withSeed(path, strlen(path), writer->seed);
    struct group_file *group;
    size_t at = 0;
    while ((group = hash_table_next(&writer->groups, hash, &at)) != NULL)
        if (strcmp(output_file_path(group->file), path) == 0) {
            unlink_file(writer, group);
            link_newest(writer, group);
            return group->file;
        }
    file_path_directory(path, directory);
    *ret_failed = file_make_directories(directory, file_directory_mode(config));
    if (*ret_failed != 0) {
        error_set(error, "cannot make the directory %s: %s", directory, strerror(-*ret_failed));
        return NULL;
    }
    struct output_file *file = output_file_open(path, &writer->settings, error, ret_failed);
    if (file == NULL)
        return NULL;
    if (writer->groups.count >= (uint64_t)config->group_by.max_open_files)
        close_group(writer, writer->oldest);
    group = mem_zalloc(sizeof(*group));
    group->file = file;
    group->hash = hash;
    link_newest(writer, group);
    if (!hash_table_add(&writer->groups, hash, group)) {
        unlink_file(writer, group);
        output_file_close(file);
        mem_free(group);
        *ret_failed = -ENOMEM;
        error_set(error, "cannot open %s: %s", path, strerror(ENOMEM));
        return NULL;
    }
    return file;
}

/* What became of the parts of a request. */
struct group_results {
    uint64_t written;
    uint64_t failed;
    bool is_out_of_memory;
    struct error error; /* the first */
};

static void write_group(struct file_writer *writer, const struct file_group *group,
                        struct group_results *results)
{
    struct encoded encoded;
    struct error error = {.text = ""};
    int failed = 0;
    struct output_file *file = open_group(writer, group->name, &error, &failed);
    bool has_memory = file == NULL || encode(writer, group->batch, &encoded);
    if (file != NULL && has_memory) {
        output_file_write(file, &encoded.record, 1, &error, &failed);
        buffer_unref(encoded.owner);
    }
    if (failed == 0 && has_memory) {
        results->written += group->items;
        return;
    }
    results->is_out_of_memory |= !has_memory;
    if (results->failed == 0 && results->error.text[0] == '\0')
        results->error = error;
    results->failed += group->items;
}

static void note_ungrouped(struct file_writer *writer, uint64_t items)
{
    if (items == 0 || writer->has_logged_ungrouped)
        return;
    writer->has_logged_ungrouped = true;
    log_warn(&writer->logger,
             "Resource does not contain the attribute of group_by, dropping it: such items are "
             "counted as rejected, and this is logged once",
             log_text("attribute", writer->config->group_by.resource_attribute),
             log_int("items", (int64_t)items));
}

static void write_grouped(struct file_writer *writer, struct file_job *job)
{
    struct file_groups groups;
    struct group_results results = {.error = {.text = ""}};
    if (!file_groups_make(&groups, job->batch, writer->config->group_by.resource_attribute,
                          writer->budget)) {
        refuse_for_memory(job);
        finish(job);
        return;
    }
    size_t dictionary = groups.dictionary != NULL ? groups.dictionary->size : 0;
    if (groups.count * (uint64_t)dictionary > DICTIONARIES_BYTES_MAX) {
        refuse_failed(job,
                      "the dictionary of the profiles would be written once for each of too many "
                      "groups; send fewer resources at a time",
                      -EFBIG);
        file_groups_free(&groups);
        finish(job);
        return;
    }
    for (size_t i = 0; i < groups.count; i++)
        write_group(writer, &groups.list[i], &results);
    note_ungrouped(writer, groups.ungrouped_items);
    uint64_t items = job->batch->items;
    accept_job(job);
    if (results.is_out_of_memory && results.written == 0) {
        refuse_for_memory(job);
    } else if (results.is_out_of_memory || results.error.text[0] != '\0') {
        /* As in the Go collector: what was written would be there twice after a retry. */
        bool has_text = results.error.text[0] != '\0';
        refuse(job,
               has_text ? results.error.text : "no memory left in the budget to write all groups",
               true, has_text ? LOSS_PERMANENT : LOSS_MEMORY);
        job->outcome.delivered_items = results.written < items ? results.written : items;
    } else {
        job->outcome.invalid_items =
            groups.ungrouped_items < items ? groups.ungrouped_items : items;
        job->outcome.rejected_items = job->outcome.invalid_items;
    }
    file_groups_free(&groups);
    finish(job);
}

/* ---- the thread ---- */

static struct file_job *take_all(struct file_writer *writer)
{
    struct file_job *job = atomic_exchange_explicit(&writer->inbox, NULL, memory_order_acquire);
    struct file_job *first = NULL;
    while (job != NULL) {
        struct file_job *next = job->next;
        job->next = first;
        first = job;
        job = next;
    }
    return first;
}

static void *run(void *arg)
{
    struct file_writer *writer = arg;
    for (;;) {
        struct file_job *job = take_all(writer);
        if (job == NULL && atomic_load(&writer->is_stopping))
            return NULL;
        if (job == NULL) {
            while (sem_wait(&writer->wakes) != 0)
                assert(errno == EINTR);
            continue;
        }
        while (job != NULL) {
            struct file_job *next = job->next; /* the job may be gone after it is done */
            budget_begin_export();
            if (writer->file != NULL)
                write_job(writer, job);
            else
                write_grouped(writer, job);
            budget_end_export();
            job = next;
        }
        if (writer->pending_count > 0)
            flush(writer);
    }
}

void file_writer_push(struct file_writer *writer, struct file_job *job)
{
    assert(writer->is_running);
    struct file_job *head = atomic_load_explicit(&writer->inbox, memory_order_relaxed);
    do
        job->next = head;
    while (!atomic_compare_exchange_weak_explicit(&writer->inbox, &head, job, memory_order_release,
                                                  memory_order_relaxed));
    if (head == NULL)
        sem_post(&writer->wakes);
}

/* ---- life cycle ---- */

struct file_writer *file_writer_create(const struct file_exporter_config *config,
                                       struct budget *budget, const struct logger *logger,
                                       bool compresses_files)
{
    struct file_writer *writer = mem_zalloc(sizeof(*writer));
    writer->config = config;
    writer->budget = budget;
    writer->logger = *logger;
    writer->logger.signal = NULL; /* it writes those of all signals */
    writer->compresses_files = compresses_files && config->compression != 0;
    writer->has_lines =
        config->format == FILE_JSON && (config->compression == 0 || writer->compresses_files);
    writer->codecs = codec_box_create(budget);
    sem_init(&writer->wakes, 0, 0);
    if (getrandom(&writer->seed, sizeof(writer->seed), 0) != sizeof(writer->seed))
        writer->seed = clock_wall_ns();
    return writer;
}

bool file_writer_start(struct file_writer *writer, struct error *error)
{
    const struct file_exporter_config *config = writer->config;
    struct timespec now;
    char directory[FILE_PATH_BYTES_MAX];
    int failed;
    if (writer->is_running)
        return true;
    /* The clock that file systems stamp with. */
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    writer->settings = (struct output_file_settings){
        .appends = config->appends,
        .is_kept_since = config->group_by.is_enabled,
        .since_ns = (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec,
        .has_lines = writer->has_lines && !writer->compresses_files,
        .is_rotated = config->is_rotated,
        .bytes_max = file_bytes_max(&config->rotation),
        .backups_max = config->rotation.max_backups,
        .days_max = config->rotation.max_days,
        .has_local_time = config->rotation.has_local_time,
        .logger = &writer->logger,
    };
    if (config->group_by.is_enabled) {
        file_group_path_init(&writer->group_path, config->path);
    } else {
        file_path_directory(config->path, directory);
        failed = config->creates_directory
                     ? file_make_directories(directory, file_directory_mode(config))
                     : 0;
        if (failed != 0)
            return error_set(error, "cannot make the directory %s: %s", directory,
                             strerror(-failed));
        writer->file = output_file_open(config->path, &writer->settings, error, &failed);
        if (writer->file == NULL)
            return false;
    }
    failed = pthread_create(&writer->thread, NULL, run, writer);
    if (failed != 0)
        return error_set(error, "cannot start a thread: %s", strerror(failed));
    writer->is_running = true;
    return true;
}

void file_writer_destroy(struct file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->is_running) {
        atomic_store(&writer->is_stopping, true);
        sem_post(&writer->wakes);
        pthread_join(writer->thread, NULL);
    }
    assert(writer->pending_count == 0);
    output_file_close(writer->file);
    while (writer->oldest != NULL)
        close_group(writer, writer->oldest);
    hash_table_clear(&writer->groups);
    codec_box_destroy(writer->codecs);
    sem_destroy(&writer->wakes);
    mem_free(writer);
}
