/* SPDX-License-Identifier: Apache-2.0 */
/* The hub's functions run on the threads that their declarations name; what is static here and
 * takes a worker runs on the explore worker. */
#include "src/explore/explore_hub.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/base/reload_state.h"
#include "src/core/batch.h"
#include "src/explore/explore_api.h"
#include "src/explore/explore_save.h"
#include "src/explore/trace_query.h"

enum {
    HUB_ID_BYTES_MAX = 256,
    NAPS_BEFORE_SLEEP = 5,
    RAW_BATCHES_MAX = 65536,
    COPIED_BYTES_MAX = 64 * 1024, /* of a batch that waits in memory of its own */
    CPU_PARTS_IDLE = 33,          /* 1/33 of a core while nobody watches */
    CPU_PARTS_WATCHED = 4,        /* 1/4 else */
};
#define NAP_NS       ((uint64_t)20 * NS_PER_MS)
#define VIEWS_NAP_NS ((uint64_t)1 * NS_PER_S)    /* while waterfalls wait for the next question */
#define CPU_BURST_NS ((uint64_t)100 * NS_PER_MS) /* what may be saved up */
#define CPU_FILL_NS  ((uint64_t)1 * NS_PER_MS)   /* left at all times while the store fills */
#define CPU_DEBT_NS  ((uint64_t)20 * NS_PER_MS)  /* what taking batches may add up to */
/* What lanes may have handed over while the worker has no time left: buffers that stay in use cost
 * the lanes their caches. */
#define WAITING_BYTES (1 * MIB)
#define CATCH_UP_NS   ((uint64_t)50 * NS_PER_MS) /* indexing before an answer */

/* One producer, its lane, and one consumer, the worker. */
struct explore_ring {
    _Atomic uint64_t written; /* by the lane */
    char gap[64 - sizeof(uint64_t)];
    _Atomic uint64_t read; /* by the worker */
    char other_gap[64 - sizeof(uint64_t)];
    struct batch *batches[EXPLORE_RING_BATCHES];
};

/* A batch that is not indexed yet: of a lane, or a copy. */
struct raw_batch {
    struct batch *batch;
    uint64_t bytes;   /* that it keeps in memory */
    uint64_t waiting; /* of waiting_bytes; 0: a copy */
};

struct explore_hub {
    /* Registry: main thread. */
    const void *scope;
    char *id;
    unsigned refs;
    struct explore_hub *next;

    const void *reporter;

    _Atomic bool is_running;
    _Atomic bool is_asleep; /* the worker: a lane that brings something wakes it */
    _Atomic uint64_t lost[EXPLORE_LOSSES];
    _Atomic uint64_t waiting_bytes; /* that lanes have handed over and that are not indexed */
    _Atomic uint64_t waiting_max;   /* above it lanes hand over nothing */
    _Atomic uint64_t newest;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t traces;
    _Atomic uint64_t spans;
    _Atomic uint64_t
        ends_ns; /* clock_now_ns: until then the worker indexes; UINT64_MAX: it stays */
    _Atomic(struct explore_ring *) rings[LANES_MAX];

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    struct explore_job *jobs;
    struct explore_job **jobs_last;
    unsigned jobs_count;
    bool is_ending;
    struct lane *ended_lane; /* NULL: nobody wants to know … */
    struct lane_task *ended_task;

    bool has_worker; /* `thread` is to be joined: of who starts and stops */

    /* The worker's. */
    struct explore_settings settings;
    struct explore_data data;
    bool has_data;  /* data is initialized: also between two configurations */
    char *saved_in; /* the directory that has data's blocks; NULL: none */
    bool is_cut;    /* loading was interrupted: the directory may hold more */
    struct explore_save save;
    struct raw_batch *raw; /* a ring of RAW_BATCHES_MAX */
    uint64_t raw_first;
    uint64_t raw_next;
    uint64_t raw_bytes;
    uint64_t charged_bytes;
    bool has_evicted;  /* since the start: until then every batch finds room */
    uint64_t asked_ns; /* when somebody asked last; 0: never */
    uint64_t cpu_seen_ns;
    uint64_t refilled_ns;
    int64_t cpu_left_ns;
};

static struct explore_hub *hubs;

/* What a hub leaves to the next one during a reload. */
struct kept {
    struct explore_data data;
    char *saved_in;
};

static void destroy_kept(void *object)
{
    struct kept *kept = object;
    explore_data_fini(&kept->data);
    mem_free(kept->saved_in);
    mem_free(kept);
}

/* Components of other types have states under their ids, too. */
static const char *state_id(const char *id, char text[HUB_ID_BYTES_MAX])
{
    snprintf(text, HUB_ID_BYTES_MAX, "explore page %s", id);
    return text;
}

static void take_kept(struct explore_hub *hub)
{
    char id[HUB_ID_BYTES_MAX];
    struct kept *kept = reload_state_take(state_id(hub->id, id));
    if (kept == NULL)
        return;
    explore_data_move(&hub->data, &kept->data);
    hub->saved_in = kept->saved_in;
    hub->has_data = true;
    mem_free(kept);
}

static void leave_kept(struct explore_hub *hub)
{
    char id[HUB_ID_BYTES_MAX];
    if (!hub->has_data)
        return; /* it never ran */
    if (hub->is_cut) {
        /* The next one reads it all. */
        explore_data_fini(&hub->data);
        mem_free(hub->saved_in);
        return;
    }
    struct kept *kept = mem_alloc(sizeof(*kept));
    explore_data_move(&kept->data, &hub->data);
    kept->saved_in = hub->saved_in;
    if (!reload_state_put(state_id(hub->id, id), kept, destroy_kept))
        destroy_kept(kept);
}

struct explore_hub *explore_hub_get(const void *scope, const char *id)
{
    struct explore_hub *hub = hubs;
    while (hub != NULL && (hub->scope != scope || strcmp(hub->id, id) != 0))
        hub = hub->next;
    if (hub == NULL) {
        hub = mem_zalloc(sizeof(*hub));
        hub->scope = scope;
        hub->id = mem_copy_text(id);
        hub->next = hubs;
        hubs = hub;
        hub->jobs_last = &hub->jobs;
        pthread_mutex_init(&hub->lock, NULL);
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&hub->changed, &attributes);
        pthread_condattr_destroy(&attributes);
        take_kept(hub);
    }
    hub->refs++;
    return hub;
}

void explore_hub_release(struct explore_hub *hub)
{
    if (hub == NULL)
        return;
    assert(hub->refs > 0);
    if (--hub->refs > 0)
        return;
    assert(!atomic_load(&hub->is_running));
    struct explore_hub **at = &hubs;
    while (*at != hub)
        at = &(*at)->next;
    *at = hub->next;
    for (size_t i = 0; i < LANES_MAX; i++)
        mem_free(atomic_load(&hub->rings[i]));
    leave_kept(hub);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    mem_free(hub->id);
    mem_free(hub);
}

bool explore_hub_claim(struct explore_hub *hub, const void *reporter)
{
    if (hub->reporter == NULL)
        hub->reporter = reporter;
    return hub->reporter == reporter;
}

static void lose(struct explore_hub *hub, enum explore_loss loss, uint64_t items)
{
    atomic_fetch_add_explicit(&hub->lost[loss], items, memory_order_relaxed);
}

static void wake(struct explore_hub *hub)
{
    if (!atomic_load(&hub->is_asleep) || !atomic_exchange(&hub->is_asleep, false))
        return;
    pthread_mutex_lock(&hub->lock);
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

void explore_hub_offer(struct explore_hub *hub, unsigned lane, struct batch *batch)
{
    assert(lane < LANES_MAX);
    if (!atomic_load(&hub->is_running))
        return;
    struct explore_ring *ring = atomic_load_explicit(&hub->rings[lane], memory_order_relaxed);
    if (ring == NULL) {
        ring = mem_zalloc(sizeof(*ring));
        atomic_store(&hub->rings[lane], ring);
    }
    if (atomic_load_explicit(&hub->waiting_bytes, memory_order_relaxed) >
        atomic_load_explicit(&hub->waiting_max, memory_order_relaxed)) {
        lose(hub, EXPLORE_LOST_RAW, batch->items);
        return;
    }
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    if (written - atomic_load(&ring->read) == EXPLORE_RING_BATCHES) {
        lose(hub, EXPLORE_LOST_RING, batch->items);
        return;
    }
    atomic_fetch_add_explicit(&hub->waiting_bytes, batch->bytes, memory_order_relaxed);
    ring->batches[written % EXPLORE_RING_BATCHES] = batch_ref(batch);
    atomic_store(&ring->written, written + 1);
    wake(hub);
}

static void on_answered(struct lane_task *task)
{
    struct explore_job *job =
        (struct explore_job *)((char *)task - offsetof(struct explore_job, task));
    job->done(job);
}

bool explore_hub_ask(struct explore_hub *hub, struct explore_job *job)
{
    pthread_mutex_lock(&hub->lock);
    bool has_room = hub->jobs_count < EXPLORE_JOBS_MAX && atomic_load(&hub->is_running);
    if (has_room) {
        job->next = NULL;
        job->task.fn = on_answered;
        *hub->jobs_last = job;
        hub->jobs_last = &job->next;
        hub->jobs_count++;
        atomic_store(&hub->is_asleep, false);
        pthread_cond_signal(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
    return has_room;
}

struct explore_figures explore_hub_figures(const struct explore_hub *hub)
{
    struct explore_figures figures = {
        .newest = atomic_load(&hub->newest),
        .used_bytes = atomic_load(&hub->used_bytes),
        .traces = atomic_load(&hub->traces),
        .spans = atomic_load(&hub->spans),
    };
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        figures.lost[i] = atomic_load(&hub->lost[i]);
    return figures;
}

static void release_raw(struct explore_hub *hub, const struct raw_batch *raw)
{
    if (raw->waiting > 0)
        atomic_fetch_sub_explicit(&hub->waiting_bytes, raw->waiting, memory_order_relaxed);
    batch_unref(raw->batch);
}

static void drop_raw(struct explore_hub *hub)
{
    struct raw_batch *raw = &hub->raw[hub->raw_first++ % RAW_BATCHES_MAX];
    hub->raw_bytes -= raw->bytes;
    lose(hub, EXPLORE_LOST_RAW, raw->batch->items);
    release_raw(hub, raw);
}

/* What the batch keeps in memory: its buffers, which may hold more than its parts. */
static uint64_t memory_of(const struct batch *batch)
{
    uint64_t bytes = sizeof(*batch);
    for (size_t i = 0; i < batch->parts_count; i++)
        if (i == 0 || batch->parts[i].owner != batch->parts[i - 1].owner)
            bytes += sizeof(struct buffer) + batch->parts[i].owner->capacity;
    return bytes;
}

/* Takes a batch that waits. Small requests are copied where they keep much memory, or will wait
 * long: a queue of them has no more memory than their bytes, and the lanes get their buffers
 * back. */
static struct raw_batch take_raw(struct explore_hub *hub, struct batch *batch)
{
    struct raw_batch raw = {.batch = batch, .bytes = memory_of(batch), .waiting = batch->bytes};
    uint64_t copied = sizeof(*batch) + sizeof(struct buffer) + batch->bytes;
    bool is_soon = hub->cpu_left_ns > 0 && raw.bytes <= 2 * copied;
    if (batch->bytes > COPIED_BYTES_MAX || is_soon)
        return raw;
    struct buffer *bytes = buffer_try_create(hub->settings.budget, batch->bytes);
    if (bytes == NULL)
        return raw;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice part = batch->parts[i].bytes;
        memcpy(bytes->data + bytes->size, part.data, part.size);
        bytes->size += part.size;
    }
    struct batch *copy = batch_create(batch->signal, 1);
    batch_append(copy, bytes, buffer_slice(bytes));
    copy->items = batch->items;
    buffer_unref(bytes);
    release_raw(hub, &raw);
    return (struct raw_batch){.batch = copy, .bytes = copied};
}

static uint64_t kept_bytes(const struct explore_hub *hub)
{
    return trace_store_bytes(&hub->data.traces) + profile_store_bytes(&hub->data.profiles) +
           mem_stats_held(hub->raw) + mem_stats_held(hub->data.rows);
}

/* How many bytes may wait: a part of the store; while it fills, most of its room, but no more than
 * half of what the budget has left, which requests need. */
static uint64_t raw_max_of(const struct explore_hub *hub)
{
    uint64_t max = hub->settings.max_bytes;
    uint64_t part = max / EXPLORE_RAW_PART;
    uint64_t kept = kept_bytes(hub);
    uint64_t limit = budget_limit(hub->settings.budget);
    uint64_t used = budget_used(hub->settings.budget);
    if (hub->has_evicted || kept > max)
        return part;
    uint64_t room = (max - kept) / 4 * 3;
    uint64_t spare = (used < limit ? limit - used : 0) / 2 + hub->raw_bytes / 2;
    if (room > spare)
        room = spare;
    return room > part ? room : part;
}

/* Takes what the lanes have brought. Returns whether there was anything. */
static bool drain(struct explore_hub *hub)
{
    bool is_any = false;
    uint64_t raw_max = raw_max_of(hub);
    for (size_t i = 0; i < LANES_MAX; i++) {
        struct explore_ring *ring = atomic_load(&hub->rings[i]);
        if (ring == NULL)
            continue;
        uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
        uint64_t written = atomic_load(&ring->written);
        for (; read < written; read++) {
            struct raw_batch raw = take_raw(hub, ring->batches[read % EXPLORE_RING_BATCHES]);
            if (hub->raw_next - hub->raw_first == RAW_BATCHES_MAX)
                drop_raw(hub);
            hub->raw[hub->raw_next++ % RAW_BATCHES_MAX] = raw;
            hub->raw_bytes += raw.bytes;
            /* The newest stays, however large it is. */
            while (hub->raw_bytes > raw_max && hub->raw_next - hub->raw_first > 1)
                drop_raw(hub);
            is_any = true;
        }
        atomic_store(&ring->read, read);
    }
    return is_any;
}

/* Evicts the oldest trace, or profiles if they are older. False: nothing is left. */
static bool evict(struct explore_hub *hub)
{
    struct trace_store *traces = &hub->data.traces;
    struct profile_store *profiles = &hub->data.profiles;
    hub->has_evicted = true;
    if (profile_store_oldest_ns(profiles) < trace_store_oldest_ns(traces))
        return profile_store_evict(profiles);
    return trace_store_evict(traces) || profile_store_evict(profiles);
}

/* Keeps to max_bytes and charges the budget, which may have less. */
static void keep_limit(struct explore_hub *hub)
{
    struct trace_store *traces = &hub->data.traces;
    uint64_t kept = kept_bytes(hub);
    while (kept + hub->raw_bytes > hub->settings.max_bytes && evict(hub))
        kept = kept_bytes(hub);
    while (kept > hub->charged_bytes &&
           !budget_try_take(hub->settings.budget, kept - hub->charged_bytes)) {
        if (!evict(hub)) {
            budget_take(hub->settings.budget, kept - hub->charged_bytes);
            break;
        }
        kept = kept_bytes(hub);
    }
    if (kept < hub->charged_bytes)
        budget_return(hub->settings.budget, hub->charged_bytes - kept);
    hub->charged_bytes = kept;
    hub->data.used_bytes = kept + hub->raw_bytes;
    atomic_store(&hub->used_bytes, hub->data.used_bytes);
    atomic_store(&hub->newest, traces->next - 1);
    atomic_store(&hub->traces, traces->next - traces->first);
    atomic_store(&hub->spans, traces->spans);
}

static bool is_ending(const struct explore_hub *hub)
{
    return atomic_load(&hub->ends_ns) != UINT64_MAX;
}

/* There is no time left to index anything. */
static bool is_over(const struct explore_hub *hub)
{
    return is_ending(hub) && clock_now_ns() >= atomic_load(&hub->ends_ns);
}

/* Also inside of one batch, which may have more than all that is kept, or than there is time
 * for. */
static bool on_block(void *arg)
{
    struct explore_hub *hub = arg;
    keep_limit(hub);
    explore_save_blocks(&hub->save, &hub->data);
    return !is_over(hub);
}

/* Indexes the oldest batch. */
static void index_one(struct explore_hub *hub)
{
    assert(hub->raw_first < hub->raw_next);
    struct raw_batch raw = hub->raw[hub->raw_first++ % RAW_BATCHES_MAX];
    struct batch *batch = raw.batch;
    uint64_t now_ns = clock_wall_ns();
    hub->raw_bytes -= raw.bytes;
    uint64_t missing = 0;
    struct batch_part whole;
    if (batch->signal == PROFILES && batch->bytes > EXPLORE_PROFILE_BYTES_MAX) {
        lose(hub, EXPLORE_LOST_LARGE, batch->items);
    } else if (!batch_join(batch, hub->settings.budget, &whole)) {
        missing = batch->items;
    } else {
        const struct trace_store *traces = &hub->data.traces;
        uint64_t too_large = traces->too_large;
        uint64_t samples_lost = hub->data.profiles.samples_lost;
        uint64_t done = traces->spans_total + too_large;
        bool is_kept = batch->signal == TRACES
                           ? trace_store_add(&hub->data.traces, whole.bytes, now_ns)
                           : profile_store_add(&hub->data.profiles, whole.bytes, now_ns);
        done = traces->spans_total + traces->too_large - done;
        missing = is_kept || done > batch->items ? 0 : batch->items - done;
        lose(hub, EXPLORE_LOST_LARGE, traces->too_large - too_large);
        lose(hub, EXPLORE_LOST_MEMORY, hub->data.profiles.samples_lost - samples_lost);
        buffer_unref(whole.owner);
    }
    lose(hub, is_over(hub) ? EXPLORE_LOST_RAW : EXPLORE_LOST_MEMORY, missing);
    release_raw(hub, &raw);
    keep_limit(hub);
    explore_save_blocks(&hub->save, &hub->data);
}

/* Counts the CPU time that has been used, and what has become free since. To fill the store takes
 * as much as it needs: that happens once, and leaves nothing saved up. */
static void count_cpu(struct explore_hub *hub)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t cpu_ns = explore_cpu_ns();
    bool is_watched = hub->asked_ns != 0 && now_ns - hub->asked_ns < EXPLORE_WATCHED_NS;
    hub->cpu_left_ns -= (int64_t)(cpu_ns - hub->cpu_seen_ns);
    hub->cpu_left_ns +=
        (int64_t)((now_ns - hub->refilled_ns) / (is_watched ? CPU_PARTS_WATCHED : CPU_PARTS_IDLE));
    if (hub->cpu_left_ns > (int64_t)CPU_BURST_NS)
        hub->cpu_left_ns = (int64_t)CPU_BURST_NS;
    if (!hub->has_evicted)
        hub->cpu_left_ns = (int64_t)CPU_FILL_NS;
    hub->cpu_seen_ns = cpu_ns;
    hub->refilled_ns = now_ns;
    if (!is_watched && explore_data_has_views(&hub->data))
        explore_data_forget_views(&hub->data);
    uint64_t waiting_max = raw_max_of(hub);
    if (hub->cpu_left_ns <= 0 && !is_watched && waiting_max > WAITING_BYTES)
        waiting_max = WAITING_BYTES;
    atomic_store_explicit(&hub->waiting_max, waiting_max, memory_order_relaxed);
}

static void answer(struct explore_hub *hub, struct explore_job *job)
{
    struct explore_limit limit = explore_limit_of(CATCH_UP_NS);
    hub->asked_ns = clock_now_ns();
    drain(hub);
    while (hub->raw_first < hub->raw_next && !explore_is_over(&limit))
        index_one(hub);
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        hub->data.lost[i] = atomic_load(&hub->lost[i]);
    hub->data.has_join = job->has_join;
    hub->data.held_requests = job->held_requests;
    explore_answer(&hub->data, job);
    lane_post(job->lane, &job->task);
}

static bool has_arrivals(struct explore_hub *hub)
{
    for (size_t i = 0; i < LANES_MAX; i++) {
        struct explore_ring *ring = atomic_load(&hub->rings[i]);
        if (ring != NULL && atomic_load(&ring->written) != atomic_load(&ring->read))
            return true;
    }
    return false;
}

/* Waits for a job, or for what is due. Returns the job; NULL: none. */
static struct explore_job *wait_for(struct explore_hub *hub, uint64_t nap_ns, bool *ret_is_ending)
{
    struct explore_job *job = NULL;
    struct timespec until;
    if (nap_ns == UINT64_MAX) {
        atomic_store(&hub->is_asleep, true);
        if (has_arrivals(hub))
            atomic_store(&hub->is_asleep, false);
    } else {
        clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + nap_ns;
        until.tv_sec += (time_t)(ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
    }
    pthread_mutex_lock(&hub->lock);
    while (hub->jobs == NULL && !hub->is_ending) {
        if (nap_ns == UINT64_MAX) {
            if (!atomic_load(&hub->is_asleep))
                break;
            pthread_cond_wait(&hub->changed, &hub->lock);
        } else if (nap_ns == 0 ||
                   pthread_cond_timedwait(&hub->changed, &hub->lock, &until) == ETIMEDOUT) {
            break;
        }
    }
    atomic_store(&hub->is_asleep, false);
    job = hub->jobs;
    if (job != NULL) {
        hub->jobs = job->next;
        if (hub->jobs == NULL)
            hub->jobs_last = &hub->jobs;
        hub->jobs_count--;
    }
    *ret_is_ending = hub->is_ending && job == NULL;
    pthread_mutex_unlock(&hub->lock);
    return job;
}

/* What is not read stays in the directory. */
static bool on_read(void *arg)
{
    keep_limit(arg);
    return !is_ending(arg);
}

/* What the directory has, unless a reload has left all of it. */
static void read_directory(struct explore_hub *hub)
{
    struct explore_save *save = &hub->save;
    if (save->disk != NULL && hub->data.traces.next == 1 && hub->data.profiles.next_block == 1) {
        explore_save_load(save, &hub->data, on_read, hub);
        hub->is_cut = is_ending(hub);
        log_info(hub->settings.logger, "Traces of the explore directory are shown again",
                 log_int("traces", (int64_t)(hub->data.traces.next - hub->data.traces.first)),
                 log_int("samples", (int64_t)hub->data.profiles.samples));
    } else if (save->disk != NULL && hub->saved_in != NULL &&
               strcmp(hub->saved_in, hub->settings.directory) == 0) {
        explore_save_begin(save, &hub->data);
    }
    mem_free(hub->saved_in);
    hub->saved_in = save->disk != NULL ? mem_copy_text(hub->settings.directory) : NULL;
    keep_limit(hub);
    explore_save_blocks(save, &hub->data);
    hub->cpu_seen_ns = explore_cpu_ns();
}

static void *worker_main(void *arg)
{
    struct explore_hub *hub = arg;
    unsigned idle = 0;
    bool is_last = false;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), EXPLORE_WORKER_NICE);
    hub->cpu_seen_ns = explore_cpu_ns();
    hub->refilled_ns = clock_now_ns();
    hub->cpu_left_ns = (int64_t)CPU_BURST_NS;
    read_directory(hub);
    hub->data.traces.goes_on = on_block;
    hub->data.traces.goes_on_arg = hub;
    bool has_unsaved = false;
    while (!is_last) {
        bool has_work = hub->raw_first < hub->raw_next;
        count_cpu(hub);
        uint64_t nap_ns = UINT64_MAX;
        if (has_work && hub->cpu_left_ns > 0)
            nap_ns = 0;
        else if (has_work || has_unsaved || idle < NAPS_BEFORE_SLEEP)
            nap_ns = NAP_NS;
        else if (explore_data_has_views(&hub->data))
            nap_ns = VIEWS_NAP_NS;
        struct explore_job *job = wait_for(hub, nap_ns, &is_last);
        if (job != NULL) {
            answer(hub, job);
            idle = 0;
        }
        /* Beyond that debt the lanes keep what they have, and count what they cannot. */
        bool may_take = hub->cpu_left_ns > -(int64_t)CPU_DEBT_NS;
        idle = !may_take || drain(hub) ? 0 : idle + 1;
        count_cpu(hub);
        if (hub->raw_first < hub->raw_next && hub->cpu_left_ns > 0 && !is_last)
            index_one(hub);
        has_unsaved = explore_save_open(&hub->save, &hub->data);
    }
    drain(hub);
    while (hub->raw_first < hub->raw_next && !is_over(hub))
        index_one(hub);
    while (hub->raw_first < hub->raw_next)
        drop_raw(hub);
    explore_save_all(&hub->save, &hub->data);
    hub->data.traces.goes_on = NULL; /* a reload may give the store to another hub */
    pthread_mutex_lock(&hub->lock);
    if (hub->ended_lane != NULL)
        lane_post(hub->ended_lane, hub->ended_task);
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

bool explore_hub_start(struct explore_hub *hub, const struct explore_settings *settings,
                       struct error *error)
{
    assert(!atomic_load(&hub->is_running));
    hub->settings = *settings;
    enum codec codec = CODEC_ZSTD;
    if (!codec_prepare(CODEC_ZSTD, error)) {
        log_warn(settings->logger, error->text);
        codec = CODEC_GZIP;
        if (!codec_prepare(CODEC_GZIP, error))
            return false;
    }
    const struct explore_disk_settings disk = {.directory = settings->directory,
                                               .max_bytes = settings->max_bytes,
                                               .logger = settings->logger};
    if (settings->directory != NULL && settings->directory[0] != '\0') {
        hub->save.disk = explore_disk_open(&disk, error);
        if (hub->save.disk == NULL)
            return false;
    }
    if (!hub->has_data)
        explore_data_init(&hub->data, codec);
    hub->has_data = true;
    hub->has_evicted = false;
    hub->is_cut = false;
    hub->data.settings = &hub->settings;
    hub->data.profiles.budget = settings->budget;
    hub->raw = mem_alloc(RAW_BATCHES_MAX * sizeof(hub->raw[0]));
    hub->is_ending = false;
    hub->ended_lane = NULL;
    atomic_store(&hub->ends_ns, UINT64_MAX);
    atomic_store(&hub->waiting_max, settings->max_bytes / EXPLORE_RAW_PART);
    int failed = pthread_create(&hub->thread, NULL, worker_main, hub);
    if (failed != 0) {
        mem_free(hub->raw);
        explore_disk_close(hub->save.disk);
        hub->save.disk = NULL;
        return error_set(error, "cannot start a thread: %s", strerror(failed));
    }
    pthread_setname_np(hub->thread, "explore");
    hub->has_worker = true;
    atomic_store(&hub->is_running, true);
    return true;
}

static void tell_end(struct explore_hub *hub, struct lane *lane, struct lane_task *task)
{
    if (!atomic_exchange(&hub->is_running, false))
        return;
    atomic_store(&hub->ends_ns, clock_now_ns() + EXPLORE_END_NS);
    pthread_mutex_lock(&hub->lock);
    hub->is_ending = true;
    hub->ended_lane = lane;
    hub->ended_task = task;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

void explore_hub_end(struct explore_hub *hub, struct lane *lane, struct lane_task *task)
{
    if (atomic_load(&hub->is_running))
        tell_end(hub, lane, task);
    else
        lane_post(lane, task);
}

void explore_hub_stop(struct explore_hub *hub)
{
    if (!hub->has_worker)
        return;
    tell_end(hub, NULL, NULL);
    pthread_join(hub->thread, NULL);
    hub->has_worker = false;
    explore_disk_close(hub->save.disk);
    hub->save = (struct explore_save){.disk = NULL};
    explore_data_forget_views(&hub->data);
    hub->data.profiles.budget = NULL;
    mem_free(hub->raw);
    budget_return(hub->settings.budget, hub->charged_bytes);
    hub->charged_bytes = 0;
}
