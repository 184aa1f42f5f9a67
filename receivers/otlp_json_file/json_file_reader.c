/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_json_file/json_file_reader.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "receivers/otlp_json_file/json_file_config.h"
#include "receivers/otlp_json_file/json_file_line.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"
#include "src/follow/follower.h"

enum {
    WINDOW_MAX = 32, /* requests under way */
    OFFERED_FIRST = 4,
    WINDOW_BYTES_MAX = 8 << 20,
    VALUE_BYTES_MAX = PATH_MAX,
    NAMES_ROOM_MAX = 64 * 1024, /* for the entry of a user or group */
    /* While all others hold less than this part of the budget, waiting for memory cannot help: so
     * many tries in a row, as they may have just given it back. */
    OTHERS_PART = 16,
    ALONE_TRIES_MAX = 10,
};
#define PAUSE_MIN_NS ((uint64_t)10 * NS_PER_MS)  /* before a refused request is offered again … */
#define PAUSE_MAX_NS ((uint64_t)5 * NS_PER_S)    /* … doubled up to this */
#define MEMORY_NS    ((uint64_t)100 * NS_PER_MS) /* until memory is asked for again */

enum delivery_state { UNDER_WAY, THROUGH, GIVEN_UP };

/* A request on its way to the pipelines of its signal. */
struct json_file_delivery {
    struct lane_task task;
    struct json_file_reader *reader;
    struct json_file_receiver *receiver; /* of its lane */
    struct batch *batch;
    struct receipt receipt;
    size_t place;  /* of the pipeline */
    bool is_again; /* that pipeline has refused it for now */
    bool is_refused;
    enum loss_reason reason;
    struct json_file_delivery *next_waiting; /* of its lane and signal */
    uint64_t number;                         /* in the order of the lines */
    _Atomic int state;                       /* enum delivery_state: set by the lane */
    /* of the thread */
    struct json_file_delivery *next;
    uint64_t bytes;
    bool has_end; /* the last of its line */
    uint64_t end;
};

struct json_file_reader {
    const struct json_file_config *config;
    struct json_file_receiver *first;
    struct json_file_receiver **instances; /* one for each lane */
    size_t instances_count;
    struct follower *follower;
    char *offsets_path; /* NULL: none */
    unsigned signals;   /* a mask of those with pipelines */
    pthread_t thread;
    bool is_running;
    _Atomic bool is_stopping;
    sem_t wakes; /* something is through, or it is to stop */
    /* of the thread */
    struct json_file_delivery *oldest; /* in the order of the lines */
    struct json_file_delivery *newest;
    uint64_t number; /* of the next delivery */
    size_t under_way;
    uint64_t bytes_under_way;
    bool has_given_up; /* no position moves any more */
    bool has_logged_memory;
    struct json_file_receiver *receiver; /* of the file that is read */
    char *path;                          /* whose attributes these are; NULL: none */
    struct json_file_attributes attributes;
    char values[JSON_FILE_ATTRIBUTES_MAX][VALUE_BYTES_MAX];
};

/* ---- on the lane ---- */

static void finish(struct json_file_delivery *delivery, enum delivery_state state)
{
    struct json_file_reader *reader = delivery->reader;
    atomic_store(&delivery->state, state); /* the thread may free it from now on */
    sem_post(&reader->wakes);
}

static struct outlet *outlet_of(const struct json_file_delivery *delivery)
{
    return delivery->receiver->base.outlets[delivery->batch->signal];
}

static struct json_file_outlet *way_of(const struct json_file_delivery *delivery)
{
    return &delivery->receiver->outlets[delivery->batch->signal];
}

/* Offers what waits, in the order of the lines. A receipt may resolve from inside. */
static void offer_waiting(struct json_file_outlet *way)
{
    if (way->is_offering)
        return;
    way->is_offering = true;
    while (way->waiting != NULL && !timer_is_running(&way->timer) &&
           way->offered < way->offered_max) {
        struct json_file_delivery *delivery = way->waiting;
        way->waiting = delivery->next_waiting;
        way->offered++;
        outlet_offer_deferred(outlet_of(delivery), delivery->place, delivery->batch,
                              &delivery->receipt, delivery->is_again);
    }
    way->is_offering = false;
}

static void wait(struct json_file_delivery *delivery)
{
    struct json_file_delivery **at = &way_of(delivery)->waiting;
    while (*at != NULL && (*at)->number < delivery->number)
        at = &(*at)->next_waiting;
    delivery->next_waiting = *at;
    *at = delivery;
}

static void count(const struct json_file_delivery *delivery, bool is_refused)
{
    struct json_file_counters *counters = delivery->receiver->base.counters;
    counter *items = is_refused ? counters->refused : counters->accepted;
    counter_add(&items[delivery->batch->signal], delivery->batch->items);
}

static void give_up(struct json_file_delivery *delivery)
{
    if (delivery->is_again) { /* else the pipeline has not seen it */
        outlet_give_up(outlet_of(delivery), delivery->place, delivery->batch, delivery->reason);
        count(delivery, true);
    }
    finish(delivery, GIVEN_UP);
}

static void give_up_waiting(struct json_file_outlet *way)
{
    while (way->waiting != NULL) {
        struct json_file_delivery *delivery = way->waiting;
        way->waiting = delivery->next_waiting;
        give_up(delivery);
    }
}

static void on_timer(struct timer *timer, void *arg)
{
    struct json_file_outlet *way = arg;
    assert(timer == &way->timer);
    offer_waiting(way);
}

static void pause_for_room(struct json_file_delivery *delivery, const struct outcome *outcome)
{
    struct json_file_receiver *receiver = delivery->receiver;
    struct json_file_counters *counters = receiver->base.counters;
    struct json_file_outlet *way = way_of(delivery);
    delivery->reason = outcome->reason;
    delivery->is_again = true;
    if (receiver->is_stopping) {
        /* Nobody would offer those that wait: the thread has sent them after the stop. */
        give_up(delivery);
        give_up_waiting(way);
        return;
    }
    if (!receiver->has_logged_refusal)
        log_warn(&receiver->base.logger,
                 "a pipeline refuses what was read from a file: it is offered again, and the file "
                 "is read on later",
                 log_text("error", outcome->message != NULL ? outcome->message : ""));
    receiver->has_logged_refusal = true;
    counter_add(&counters->retries, 1);
    wait(delivery);
    way->offered_max = 1;
    if (timer_is_running(&way->timer)) /* it was offered beside another */
        return;
    lane_timer_start(receiver->base.lane, &way->timer, way->pause_ns);
    way->pause_ns = way->pause_ns * 2 < PAUSE_MAX_NS ? way->pause_ns * 2 : PAUSE_MAX_NS;
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct json_file_delivery *delivery = arg;
    struct json_file_outlet *way = way_of(delivery);
    assert(way->offered > 0);
    way->offered--;
    receipt_init(receipt, receipt->fn, arg);
    if (outcome_may_change(outcome)) {
        pause_for_room(delivery, outcome);
        return;
    }
    /* The pipeline has taken it, or refused it for good: on to the next one. */
    way->receiver->has_logged_refusal &= way->waiting != NULL; /* until all is through */
    way->pause_ns = PAUSE_MIN_NS;
    way->offered_max = way->offered_max * 2 < WINDOW_MAX ? way->offered_max * 2 : WINDOW_MAX;
    delivery->is_refused |= outcome->verdict != ACCEPTED;
    if (++delivery->place < outlet_pipelines(outlet_of(delivery))) {
        delivery->is_again = false;
        wait(delivery);
    } else {
        count(delivery, delivery->is_refused);
        finish(delivery, THROUGH);
    }
    offer_waiting(way);
}

static struct json_file_delivery *delivery_of(struct lane_task *task)
{
    return (struct json_file_delivery *)((uint8_t *)task -
                                         offsetof(struct json_file_delivery, task));
}

static void on_lane(struct lane_task *task)
{
    struct json_file_delivery *delivery = delivery_of(task);
    receipt_init(&delivery->receipt, on_receipt, delivery);
    wait(delivery);
    offer_waiting(way_of(delivery));
}

void json_file_receiver_init(struct json_file_receiver *receiver)
{
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct json_file_outlet *way = &receiver->outlets[signal];
        *way = (struct json_file_outlet){
            .receiver = receiver, .offered_max = OFFERED_FIRST, .pause_ns = PAUSE_MIN_NS};
        timer_init(&way->timer, on_timer, way);
    }
}

void json_file_receiver_give_up(struct json_file_receiver *receiver)
{
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct json_file_outlet *way = &receiver->outlets[signal];
        lane_timer_stop(receiver->base.lane, &way->timer);
        give_up_waiting(way);
    }
}

static void on_release(struct lane_task *task)
{
    json_file_receiver_released(
        (struct json_file_receiver *)((uint8_t *)task -
                                      offsetof(struct json_file_receiver, release)));
}

/* ---- on the thread ---- */

static bool is_stopping(void *arg)
{
    struct json_file_reader *reader = arg;
    return atomic_load(&reader->is_stopping);
}

static void sleep_up_to(struct json_file_reader *reader, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t end_ns = (uint64_t)until.tv_nsec + ns % NS_PER_S;
    until.tv_sec += (time_t)(ns / NS_PER_S + end_ns / NS_PER_S);
    until.tv_nsec = (long)(end_ns % NS_PER_S);
    while (sem_clockwait(&reader->wakes, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
        ;
}

/* Takes the results that are there, in order, and moves the position. */
static void collect(struct json_file_reader *reader)
{
    while (reader->oldest != NULL && atomic_load(&reader->oldest->state) != UNDER_WAY) {
        struct json_file_delivery *delivery = reader->oldest;
        reader->has_given_up |= atomic_load(&delivery->state) == GIVEN_UP;
        if (delivery->has_end && !reader->has_given_up)
            follower_done(reader->follower, delivery->end);
        reader->oldest = delivery->next;
        if (reader->oldest == NULL)
            reader->newest = NULL;
        reader->under_way--;
        reader->bytes_under_way -= delivery->bytes;
        batch_unref(delivery->batch);
        mem_free(delivery);
    }
}

static void wait_for_one(struct json_file_reader *reader)
{
    while (sem_wait(&reader->wakes) != 0)
        assert(errno == EINTR);
    collect(reader);
}

static void settle(void *arg)
{
    struct json_file_reader *reader = arg;
    collect(reader);
    while (reader->oldest != NULL)
        wait_for_one(reader);
}

static void deliver(struct batch *batch, void *arg)
{
    struct json_file_reader *reader = arg;
    struct json_file_delivery *delivery = mem_zalloc(sizeof(*delivery));
    delivery->reader = reader;
    delivery->receiver = reader->receiver;
    delivery->batch = batch;
    delivery->number = reader->number++;
    delivery->bytes = batch->bytes;
    delivery->task.fn = on_lane;
    *(reader->newest != NULL ? &reader->newest->next : &reader->oldest) = delivery;
    reader->newest = delivery;
    reader->under_way++;
    reader->bytes_under_way += delivery->bytes;
    lane_post(delivery->receiver->base.lane, &delivery->task);
}

/* ---- attributes of a file ---- */

static void add_attribute(struct json_file_reader *reader, const char *key, const char *value)
{
    size_t place = reader->attributes.count;
    if (value == NULL)
        return;
    assert(place < JSON_FILE_ATTRIBUTES_MAX);
    snprintf(reader->values[place], VALUE_BYTES_MAX, "%s", value);
    reader->attributes.list[reader->attributes.count++] = (struct json_file_attribute){
        .key = slice_of_text(key), .value = slice_of_text(reader->values[place])};
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void add_owner(struct json_file_reader *reader, const struct stat *info)
{
    const struct json_file_attributes_config *wanted = &reader->config->attributes;
    struct passwd user;
    struct passwd *found_user = NULL;
    struct group group;
    struct group *found_group = NULL;
    char *room = mem_alloc(NAMES_ROOM_MAX);
    if (wanted->owner_name &&
        getpwuid_r(info->st_uid, &user, room, NAMES_ROOM_MAX, &found_user) == 0 &&
        found_user != NULL)
        add_attribute(reader, "log.file.owner.name", user.pw_name);
    if (wanted->owner_group_name &&
        getgrgid_r(info->st_gid, &group, room, NAMES_ROOM_MAX, &found_group) == 0 &&
        found_group != NULL)
        add_attribute(reader, "log.file.owner.group.name", group.gr_name);
    mem_free(room);
}

/* Once for each file and poll. */
static void set_attributes(struct json_file_reader *reader, const struct follow_line *line)
{
    const struct json_file_attributes_config *wanted = &reader->config->attributes;
    struct stat info;
    mem_free(reader->path);
    reader->path = mem_copy_text(line->path);
    reader->attributes.count = 0;
    if (wanted->name)
        add_attribute(reader, "log.file.name", base_of(line->path));
    if (wanted->path)
        add_attribute(reader, "log.file.path", line->path);
    if ((wanted->permissions || wanted->owner_name || wanted->owner_group_name) &&
        fstat(line->fd, &info) == 0) {
        char mode[16];
        snprintf(mode, sizeof(mode), "%03o", (unsigned)info.st_mode & 0777U);
        if (wanted->permissions)
            add_attribute(reader, "log.file.permissions", mode);
        add_owner(reader, &info);
    }
    if (wanted->name_resolved || wanted->path_resolved) {
        char *resolved = realpath(line->path, NULL);
        if (wanted->name_resolved && resolved != NULL)
            add_attribute(reader, "log.file.name_resolved", base_of(resolved));
        if (wanted->path_resolved)
            add_attribute(reader, "log.file.path_resolved", resolved);
        free(resolved);
    }
    /* Lines of one file stay in order. */
    uint32_t hash = 2166136261U;
    for (const char *c = line->path; *c != '\0'; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619U;
    reader->receiver = reader->instances[hash % reader->instances_count];
}

/* ---- lines ---- */

static void note_wrong(struct json_file_reader *reader, const struct follow_line *line,
                       const char *reason)
{
    struct json_file_counters *counters = reader->first->base.counters;
    counter_add(&counters->wrong_lines, 1);
    log_warn(&reader->first->base.logger, "a line of a file cannot be read: it is left out",
             log_text("path", line->path), log_int("line", (int64_t)line->number),
             log_text("error", reason));
}

/* Of a line that is through when everything before it is. */
static void note_end(struct json_file_reader *reader, const struct follow_line *line)
{
    if (reader->newest == NULL) {
        if (!reader->has_given_up)
            follower_done(reader->follower, line->end);
        return;
    }
    reader->newest->has_end = true;
    reader->newest->end = line->end;
}

static bool is_alone(const struct json_file_reader *reader)
{
    const struct budget *budget = reader->first->base.budget;
    if (budget == NULL || reader->oldest != NULL)
        return false;
    uint64_t used = budget_used(budget);
    uint64_t own = follower_line_bytes(reader->follower);
    return used - (own < used ? own : used) < budget_limit(budget) / OTHERS_PART;
}

static bool take(const struct follow_line *line, void *arg)
{
    struct json_file_reader *reader = arg;
    enum json_file_encoding encoding = json_file_encoding_of(reader->config->encoding);
    char reason[JSON_REASON_BYTES_MAX];
    collect(reader);
    while (reader->under_way >= WINDOW_MAX || reader->bytes_under_way >= WINDOW_BYTES_MAX)
        wait_for_one(reader);
    if (is_stopping(reader))
        return false;
    if (line->bytes.size > 0) {
        if (reader->path == NULL || strcmp(reader->path, line->path) != 0)
            set_attributes(reader, line);
        enum json_line_result result;
        unsigned alone = 0; /* tries in a row */
        while ((result = json_line_read(line->bytes, reader->signals, encoding == JSON_FILE_UTF8,
                                        &reader->attributes, reader->first->base.budget, deliver,
                                        reader, reason)) == JSON_LINE_NO_MEMORY) {
            if (!reader->has_logged_memory)
                log_warn(&reader->first->base.logger,
                         "no memory left in the budget to read a line: it is read later",
                         log_text("path", line->path), log_int("line", (int64_t)line->number));
            reader->has_logged_memory = true;
            alone = is_alone(reader) ? alone + 1 : 0;
            if (alone == ALONE_TRIES_MAX) {
                snprintf(reason, sizeof(reason),
                         "reading it takes more than the whole memory budget "
                         "(service::budget_mib)");
                result = JSON_LINE_WRONG;
                break;
            }
            sleep_up_to(reader, MEMORY_NS);
            collect(reader);
            if (is_stopping(reader))
                return false;
        }
        reader->has_logged_memory = false;
        if (result == JSON_LINE_WRONG)
            note_wrong(reader, line, reason);
    }
    note_end(reader, line);
    return true;
}

static void *run(void *arg)
{
    struct json_file_reader *reader = arg;
    struct json_file_counters *counters = reader->first->base.counters;
    uint64_t next_ns = clock_now_ns() + reader->config->poll_interval_ns;
    while (!is_stopping(reader)) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns < next_ns) {
            sleep_up_to(reader, next_ns - now_ns);
            continue;
        }
        next_ns = now_ns + reader->config->poll_interval_ns;
        mem_free(reader->path);
        reader->path = NULL;
        follower_poll(reader->follower);
        counter_set(&counters->open_files, follower_open_files(reader->follower));
    }
    assert(reader->oldest == NULL);
    follower_destroy(reader->follower);
    reader->follower = NULL;
    counter_set(&counters->open_files, 0);
    /* The reader is destroyed, by the first instance, only after the last of these has run. */
    for (size_t i = reader->instances_count; i > 0; i--) {
        struct json_file_receiver *receiver = reader->instances[i - 1];
        receiver->release.fn = on_release;
        lane_post(receiver->base.lane, &receiver->release);
    }
    return NULL;
}

/* ---- life cycle ---- */

static struct follow_settings settings_of(struct json_file_reader *reader, bool is_synced)
{
    const struct json_file_config *config = reader->config;
    return (struct follow_settings){
        .include = config->include.texts,
        .include_count = config->include.count,
        .exclude = config->exclude.texts,
        .exclude_count = config->exclude.count,
        .exclude_older_ns = config->exclude_older_ns,
        .starts_at_end = config->start_at == 1,
        .fingerprint_size = config->fingerprint_size,
        .line_bytes_max = config->max_log_size,
        .truncates_lines = config->max_log_size_behavior == 1,
        .takes_all = json_file_encoding_of(config->encoding) == JSON_FILE_WHOLE,
        .keeps_leading = config->keeps_leading,
        .keeps_trailing = config->keeps_trailing,
        .flush_ns = config->force_flush_ns,
        .files_max = config->max_concurrent_files,
        .batches_max = config->max_batches,
        .compression = config->compression,
        .truncation = config->on_truncate,
        .deletes = config->delete_after_read,
        .locks = config->acquire_fs_lock,
        .drops_cache = config->file_cache_advise,
        .replays = config->replay_file,
        .offsets_path = reader->offsets_path,
        .is_synced = is_synced,
        .budget = reader->first->base.budget,
        .logger = &reader->first->base.logger,
        .take = take,
        .settle = settle,
        .is_stopping = is_stopping,
        .arg = reader,
    };
}

/* "DIRECTORY/receiver_otlp_json_file_NAME.offsets"; bytes of NAME that are neither letters, digits,
 * "_", "-" nor "." become "~" and four hexadecimal digits, as in the names of the Go collector's
 * files. */
static char *offsets_path_of(const char *directory, const char *id)
{
    const char *slash = strchr(id, '/');
    const char *name = slash != NULL ? slash + 1 : "";
    size_t room = strlen(directory) + strlen(name) * 5 + 64;
    char *path = mem_alloc(room);
    size_t size = (size_t)snprintf(path, room, "%s/receiver_otlp_json_file_", directory);
    for (; *name != '\0'; name++) {
        bool is_plain = isalnum((unsigned char)*name) || strchr("_-.", *name) != NULL;
        size += (size_t)(is_plain ? snprintf(path + size, room - size, "%c", *name)
                                  : snprintf(path + size, room - size, "~%04X",
                                             (unsigned)(unsigned char)*name));
    }
    snprintf(path + size, room - size, ".offsets");
    return path;
}

static const struct file_storage_config *storage_of(const struct json_file_reader *reader)
{
    const struct component *first = &reader->first->base;
    const char *id = reader->config->storage;
    if (id[0] == '\0' || first->service == NULL)
        return NULL;
    const struct config_component *extension = first->service->extension(first->service, id);
    return extension != NULL ? extension->config : NULL;
}

struct json_file_reader *json_file_reader_create(struct json_file_receiver *first,
                                                 struct error *error)
{
    struct json_file_reader *reader = mem_zalloc(sizeof(*reader));
    reader->config = first->base.config;
    reader->first = first;
    sem_init(&reader->wakes, 0, 0);
    const struct file_storage_config *storage = storage_of(reader);
    if (storage != NULL)
        reader->offsets_path = offsets_path_of(storage->directory, first->base.id);
    const struct follow_settings settings = settings_of(reader, storage != NULL && storage->fsync);
    reader->follower = follower_create(&settings, error);
    if (reader->follower != NULL)
        return reader;
    json_file_reader_destroy(reader);
    return NULL;
}

bool json_file_reader_start(struct json_file_reader *reader, struct error *error)
{
    const struct component *component = &reader->first->base;
    const struct file_storage_config *storage = storage_of(reader);
    for (int signal = 0; signal < SIGNAL_KINDS; signal++)
        if (component->outlets[signal] != NULL)
            reader->signals |= 1U << signal;
    for (const struct component *at = component; at != NULL; at = at->next_lane)
        reader->instances_count++;
    reader->instances = (struct json_file_receiver **)mem_zalloc(reader->instances_count *
                                                                 sizeof(reader->instances[0]));
    size_t count = 0;
    for (struct component *at = &reader->first->base; at != NULL; at = at->next_lane)
        reader->instances[count++] = (struct json_file_receiver *)at;
    if (storage != NULL && storage->create_directory) {
        int made = file_make_directories(storage->directory, file_storage_mode(storage));
        if (made != 0)
            return error_set(error, "cannot make the directory %s: %s", storage->directory,
                             strerror(-made));
    }
    if (!follower_load(reader->follower, error))
        return false;
    int failed = pthread_create(&reader->thread, NULL, run, reader);
    if (failed != 0)
        return error_set(error, "cannot start a thread: %s", strerror(failed));
    reader->is_running = true;
    return true;
}

bool json_file_reader_stop(struct json_file_reader *reader)
{
    if (!reader->is_running)
        return false;
    atomic_store(&reader->is_stopping, true);
    sem_post(&reader->wakes);
    return true;
}

void json_file_reader_destroy(struct json_file_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->is_running)
        pthread_join(reader->thread, NULL);
    follower_destroy(reader->follower);
    sem_destroy(&reader->wakes);
    mem_free((void *)reader->instances);
    mem_free(reader->offsets_path);
    mem_free(reader->path);
    mem_free(reader);
}
