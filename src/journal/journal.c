/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's two threads, and what each exporter holds. Lanes reach the committing thread
 * through a lock-free stack; mutex is between the two threads alone. */
#include "src/journal/journal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/journal/journal_names.h"
#include "src/journal/journal_progress.h"

#define REFUSALS(place, why)                                                                       \
    {                                                                                              \
        .name = "spanflame_journal_refusals", .type = COUNTER_SUM,                                 \
        .help = "Requests that the journal could not take, by reason.", .label = "reason",         \
        .label_value = (why), .offset = offsetof(struct journal_counters, refusals[place])         \
    }

enum { COMMAND_BYTES = 8192 };
enum { LANES_ROOM = 64, WORD_BITS = 64, GIVEN_WORDS = JOURNAL_WINDOW_IDS / WORD_BITS };

/* What exporters have finished is written so long after it was noted, unless a group goes anyway.
 */
#define NEWS_NS ((uint64_t)100 * NS_PER_MS)
/* Tries to write what is left of them at a stop. */
enum { LAST_COMMITS = 4 };
/* An exporter that refused is asked again so much later, doubled up to the longest. */
#define PAUSE_MIN_NS ((uint64_t)100 * NS_PER_MS)
#define PAUSE_MAX_NS ((uint64_t)5 * NS_PER_S)
#define KEEP_NS      ((uint64_t)1 * NS_PER_S) /* between looks at the segments */

struct journal_exporter_state {
    struct journal *journal;
    size_t index;       /* in the store */
    bool is_behind;     /* its records are read back */
    uint64_t position;  /* behind: the next id to read back */
    uint64_t left_end;  /* behind: ids below are committed and were not given from memory */
    uint64_t again;     /* the lowest id that it refused since position was set; UINT64_MAX: none */
    bool is_refused;    /* since that was looked at last */
    bool has_to_return; /* to that: there is nothing else to give */
    uint64_t returned_to; /* the last time */
    unsigned returns;     /* how often to that one */
    uint64_t ahead;       /* ids below were read back before it returned */
    uint64_t resume_ns;   /* nothing is read back before */
    uint64_t pause_ns;    /* after the next refusal */
    uint64_t settled_ns;  /* when it finished or refused something last */
    uint64_t given_max;   /* records that it may hold: a few once it refused some, and one more for
                             each that it finishes */
    uint64_t given_limit; /* of given_max */
    uint64_t given_count;
    uint64_t given_bytes;
    uint64_t *given; /* a bit for each id that it holds now, at id % JOURNAL_WINDOW_IDS */
    struct journal_reader *reader;    /* reading thread */
    struct journal_patience patience; /* reading thread: of the last reader */
    bool is_failing;                  /* reading thread: a file cannot be read for now */
    struct journal_entry *waiting;    /* reading thread: read, but there is no room for it */
    uint64_t too_large; /* reading thread: the record, by id, that was last reported to be so */
};

struct replay_lane {
    struct lane *lane;
    journal_replay_fn fn;
    void *arg;
};

struct journal {
    struct journal_store *store;
    struct budget *memory;
    uint64_t given_bytes_max;
    size_t entry_bytes;
    struct logger logger;
    struct budget *disk;
    struct journal_counters counters;
    uint64_t backlog_end; /* ids below are of an earlier process; 0: nothing waits of them */
    uint64_t created_ns;
    _Atomic bool has_backlog;
    uint64_t refused; /* committing thread: since it began to refuse */
    _Atomic bool is_refusing;
    _Atomic int last_error;
    _Atomic uint64_t last_error_wall_ns;
    _Atomic(struct journal_entry *) inbox; /* the last pushed first */
    sem_t committer_wakes;
    sem_t keeper_wakes;
    pthread_t committer;
    pthread_t keeper;
    bool is_running;
    _Atomic bool is_paused;
    _Atomic bool is_stopping;
    struct replay_lane lanes[LANES_ROOM];
    size_t lanes_count;
    size_t next_lane;
    pthread_mutex_t mutex; /* guards the rest */
    size_t exporters_count;
    struct journal_exporter_state exporters[JOURNAL_EXPORTERS_MAX];
};

static bool is_given(const struct journal_exporter_state *exporter, uint64_t id)
{
    uint64_t bit = id % JOURNAL_WINDOW_IDS;
    return (exporter->given[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

static void note_given(struct journal_exporter_state *exporter, uint64_t id, uint64_t bytes,
                       bool value)
{
    uint64_t bit = id % JOURNAL_WINDOW_IDS;
    uint64_t mask = (uint64_t)1 << bit % WORD_BITS;
    assert(is_given(exporter, id) != value);
    exporter->given[bit / WORD_BITS] ^= mask;
    exporter->given_count += value ? 1 : (uint64_t)-1;
    exporter->given_bytes += value ? bytes : -bytes;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t given_limit(const struct journal_settings *settings, size_t exporter)
{
    uint64_t most = settings->given_max != NULL ? settings->given_max[exporter] : 0;
    return most > 0 ? lower(most, JOURNAL_GIVEN_MAX) : JOURNAL_GIVEN_MAX;
}

/* What several get together takes `part` of what each may hold: the rest is for what one gets alone
 * meanwhile. Caller holds mutex. */
static bool has_room(struct journal *journal, const struct journal_exporter_state *exporter,
                     uint64_t id, unsigned part)
{
    return exporter->given_count < (exporter->given_max + part - 1) / part &&
           exporter->given_bytes < journal->given_bytes_max / part &&
           journal_store_has_window(journal->store, exporter->index, id);
}

static void push(struct journal *journal, struct journal_entry *entry)
{
    struct journal_entry *head = atomic_load_explicit(&journal->inbox, memory_order_relaxed);
    do
        entry->record.next = head != NULL ? &head->record : NULL;
    while (!atomic_compare_exchange_weak_explicit(&journal->inbox, &head, entry,
                                                  memory_order_release, memory_order_relaxed));
    if (head == NULL)
        sem_post(&journal->committer_wakes);
}

void journal_append(struct journal *journal, struct journal_entry *entry)
{
    entry->journal = journal;
    entry->is_settled = false;
    entry->record.wall_ns = clock_wall_ns();
    push(journal, entry);
}

void journal_settle(struct journal_entry *entry)
{
    assert((entry->owed & ~entry->given) == 0);
    entry->is_settled = true;
    push(entry->journal, entry);
}

static struct journal_entry *entry_of(struct journal_record *record)
{
    _Static_assert(offsetof(struct journal_entry, record) == 0, "the record leads the entry");
    return (struct journal_entry *)record;
}

static struct journal_entry *entry_of_task(struct lane_task *task)
{
    return (struct journal_entry *)((uint8_t *)task - offsetof(struct journal_entry, task));
}

const struct counter_row journal_rows[] = {
    COUNTER(struct journal_counters, commits, COUNTER_SUM, "spanflame_journal_commits",
            "Groups of requests that were written to the journal."),
    COUNTER(struct journal_counters, records, COUNTER_SUM, "spanflame_journal_committed_records",
            "Requests that were written to the journal."),
    COUNTER(struct journal_counters, replayed, COUNTER_SUM, "spanflame_journal_replayed",
            "Requests that were read back and given to exporters, once for each."),
    COUNTER(struct journal_counters, corrupt, COUNTER_SUM, "spanflame_journal_corrupt_records",
            "Requests in the journal that could not be read: damaged, or written only in part."),
    COUNTER(
        struct journal_counters, abandoned, COUNTER_SUM, "spanflame_journal_abandoned_records",
        "Requests that waited for an exporter that the pipeline does not have any more, and were "
        "dropped because max_size or the disk was full."),
    REFUSALS(JOURNAL_MAX_SIZE, "max_size"),
    REFUSALS(JOURNAL_DISK_FULL, "disk_full"),
    REFUSALS(JOURNAL_ERROR, "error"),
    COUNTER_END,
};

struct flushes {
    struct histogram ns;
};

const struct counter_row journal_flush_rows[] = {
    COUNTER_SECONDS_ROW(struct flushes, ns, "spanflame_journal_flush_seconds", journal_flush_bounds,
                        METRICS_NONE,
                        "Time of each flush to the disk; with fsync: false there are none."),
    COUNTER_END,
};

/* Removes a settled entry from the accounts of its exporters, and frees it. Caller holds mutex. */
static void settle(struct journal *journal, struct journal_entry *entry)
{
    uint64_t id = entry->record.id;
    for (size_t i = 0; i < journal->exporters_count; i++) {
        struct journal_exporter_state *exporter = &journal->exporters[i];
        if ((entry->given >> i & 1) == 0)
            continue;
        note_given(exporter, id, entry->bytes, false);
        exporter->settled_ns = clock_now_ns();
        if ((entry->owed >> i & 1) == 0) {
            journal_store_pay(journal->store, exporter->index, id, entry->amount);
            exporter->pause_ns = PAUSE_MIN_NS;
            if (exporter->given_max < exporter->given_limit)
                exporter->given_max++;
            continue;
        }
        if (!exporter->is_behind) {
            exporter->is_behind = true;
            exporter->position = exporter->left_end = id + 1;
        }
        if (id < exporter->again)
            exporter->again = id;
        exporter->is_refused = true;
        uint64_t resume_ns = clock_now_ns() + exporter->pause_ns;
        if (exporter->resume_ns <= clock_now_ns()) {
            exporter->given_max = lower(JOURNAL_PROBES, exporter->given_limit);
            exporter->resume_ns = resume_ns;
            exporter->pause_ns =
                2 * exporter->pause_ns < PAUSE_MAX_NS ? 2 * exporter->pause_ns : PAUSE_MAX_NS;
        }
    }
    buffer_unref(entry->stored.payload);
    mem_free(entry);
}

static void on_committed(struct lane_task *task)
{
    struct journal_entry *entry = entry_of_task(task);
    entry->fn(entry);
}

/* Decides which exporters get the record from memory. Caller holds mutex. */
static void decide(struct journal *journal, struct journal_entry *entry)
{
    uint64_t id = entry->record.id;
    unsigned part = journal->exporters_count > 1 ? 2 : 1;
    entry->given = entry->owed = 0;
    entry->amount = (struct journal_amount){.items = entry->record.batch->items,
                                            .bytes = entry->record.batch->bytes};
    for (size_t i = 0; i < journal->exporters_count; i++) {
        struct journal_exporter_state *exporter = &journal->exporters[i];
        bool is_paused = atomic_load(&journal->is_paused);
        /* The keeper was quicker and has read it already. */
        if (id < exporter->position)
            continue;
        if (!exporter->is_behind && (is_paused || !has_room(journal, exporter, id, part))) {
            exporter->is_behind = true;
            exporter->position = id;
        }
        if (exporter->is_behind) {
            exporter->left_end = id + 1;
            continue;
        }
        note_given(exporter, id, entry->bytes, true);
        entry->given |= UINT32_C(1) << i;
    }
}

const char *journal_error_text(int error)
{
    return error == -EDQUOT ? "max_size, or the quota of the disk, is used up" : strerror(-error);
}

static bool is_lack_of_room(int error)
{
    return error == -EDQUOT || error == -ENOSPC;
}

/* Says so when the journal begins to refuse, and when that is over. Committing thread. */
static void note_result(struct journal *journal, int error)
{
    const char *directory = journal_store_directory(journal->store);
    bool was_refusing = atomic_load(&journal->is_refusing);
    if (error == 0 && was_refusing) {
        log_info(&journal->logger, "The journal takes requests again.",
                 log_text("directory", directory),
                 log_int("refused_requests", (int64_t)journal->refused));
        atomic_store(&journal->is_refusing, false);
    }
    if (error == 0)
        return;
    bool has_limit = budget_limit(journal->disk) != UINT64_MAX;
    enum journal_refusal reason = error == -EDQUOT && has_limit ? JOURNAL_MAX_SIZE
                                  : is_lack_of_room(error)      ? JOURNAL_DISK_FULL
                                                                : JOURNAL_ERROR;
    if (!was_refusing) {
        log_error(&journal->logger,
                  "The journal cannot be written. Requests are refused until it can; what it holds "
                  "is delivered.",
                  log_text("directory", directory), log_text("error", journal_error_text(error)));
        journal->refused = 0;
    }
    journal->refused++;
    counter_add(&journal->counters.refusals[reason], 1);
    atomic_store(&journal->last_error, error);
    atomic_store(&journal->last_error_wall_ns, clock_wall_ns());
    atomic_store(&journal->is_refusing, true);
}

/* Says once that nothing is left of what waited at the start. */
static void note_backlog_end(struct journal *journal)
{
    if (!atomic_load(&journal->has_backlog))
        return;
    for (size_t i = 0; i < journal->exporters_count; i++)
        if (journal_store_low(journal->store, journal->exporters[i].index) < journal->backlog_end)
            return;
    if (!atomic_exchange(&journal->has_backlog, false))
        return;
    log_info(&journal->logger, "The backlog of the earlier process has been delivered.",
             log_text("directory", journal_store_directory(journal->store)),
             log_double("seconds", (double)(clock_now_ns() - journal->created_ns) / NS_PER_S));
}

/* Commits all of them, group by group. */
static void commit_all(struct journal *journal, struct journal_record *records)
{
    while (records != NULL) {
        struct journal_record *left = journal_store_commit(journal->store, records);
        counter_add(&journal->counters.commits, 1);
        if (journal_store_needs_keeping(journal->store))
            sem_post(&journal->keeper_wakes);
        while (records != left) {
            struct journal_entry *entry = entry_of(records);
            records = records->next;
            note_result(journal, entry->record.error);
            if (entry->record.error == 0) {
                counter_add(&journal->counters.records, 1);
                pthread_mutex_lock(&journal->mutex);
                decide(journal, entry);
                pthread_mutex_unlock(&journal->mutex);
            }
            entry->task.fn = on_committed;
            lane_post(entry->lane, &entry->task);
        }
    }
}

/* By the monotonic clock: one that is set back does not stop what waits on the disk. */
static void wait_for(sem_t *wakes, uint64_t timeout_ns)
{
    if (timeout_ns == UINT64_MAX) {
        while (sem_wait(wakes) != 0 && errno == EINTR)
            continue;
    } else {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
        until.tv_sec += (time_t)(ns / NS_PER_S);
        until.tv_nsec = (long)(ns % NS_PER_S);
        while (sem_clockwait(wakes, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
            continue;
    }
    while (sem_trywait(wakes) == 0)
        continue;
}

/* At a stop, even after a failure of just now: what is not written is delivered again. */
static void write_last_news(struct journal_store *store)
{
    for (unsigned i = 0; i < LAST_COMMITS && journal_store_has_news(store); i++) {
        journal_store_open_again(store);
        journal_store_commit(store, NULL);
    }
}

static void *run_committer(void *arg)
{
    struct journal *journal = arg;
    for (;;) {
        bool is_stopping = atomic_load(&journal->is_stopping);
        struct journal_entry *taken = atomic_exchange(&journal->inbox, NULL);
        struct journal_record *appends = NULL;
        struct journal_record *settled = NULL;
        /* The last came first. */
        for (struct journal_record *record = taken != NULL ? &taken->record : NULL;
             record != NULL;) {
            struct journal_record *next = record->next;
            struct journal_record **list = entry_of(record)->is_settled ? &settled : &appends;
            record->next = *list;
            *list = record;
            record = next;
        }
        if (settled != NULL) {
            pthread_mutex_lock(&journal->mutex);
            while (settled != NULL) {
                struct journal_entry *entry = entry_of(settled);
                settled = settled->next;
                settle(journal, entry);
            }
            pthread_mutex_unlock(&journal->mutex);
            note_backlog_end(journal);
        }
        if (appends != NULL) {
            commit_all(journal, appends);
        } else if (taken == NULL) {
            /* Quiet for a while: what was finished meanwhile goes alone. */
            if (journal_store_has_news(journal->store))
                journal_store_commit(journal->store, NULL);
            if (is_stopping) {
                write_last_news(journal->store);
                return NULL;
            }
        }
        bool is_keeper_needed = journal_store_needs_keeping(journal->store);
        pthread_mutex_lock(&journal->mutex);
        for (size_t i = 0; i < journal->exporters_count; i++)
            is_keeper_needed |= journal->exporters[i].is_behind;
        pthread_mutex_unlock(&journal->mutex);
        if (taken != NULL && is_keeper_needed)
            sem_post(&journal->keeper_wakes);
        if (atomic_load(&journal->inbox) == NULL && !atomic_load(&journal->is_stopping))
            wait_for(&journal->committer_wakes,
                     journal_store_has_news(journal->store) ? NEWS_NS : UINT64_MAX);
    }
}

static void on_damage(const struct journal_damage *damage, void *arg)
{
    struct journal *journal = arg;
    char name[JOURNAL_NAME_BYTES];
    journal_segment_name(name, damage->segment);
    counter_add(&journal->counters.corrupt, damage->records);
    log_error(&journal->logger,
              "Records of the journal cannot be read: they are damaged, or were being written when "
              "the process or the machine stopped. The others are delivered.",
              log_text("file", name), log_int("offset", (int64_t)damage->offset),
              log_int("records", (int64_t)damage->records));
}

static void log_failure(struct journal *journal, const struct journal_reader *reader)
{
    char name[JOURNAL_NAME_BYTES];
    uint64_t segment;
    int failed = journal_reader_failure(reader, &segment);
    journal_segment_name(name, segment);
    log_warn(&journal->logger,
             "A file of the journal cannot be read for now. Its records stay there and are tried "
             "again.",
             log_text("file", name), log_text("error", strerror(-failed)));
}

/* Says once that the record cannot be read as long as the memory budget is what it is. */
static void note_too_large(struct journal *journal, struct journal_exporter_state *exporter,
                           const struct journal_stored *stored)
{
    char name[JOURNAL_NAME_BYTES];
    if (stored->head.bytes <= budget_limit(journal->memory) ||
        exporter->too_large == stored->head.id)
        return;
    exporter->too_large = stored->head.id;
    journal_segment_name(name, stored->segment);
    log_error(
        &journal->logger,
        "A request in the journal is larger than the memory budget. It, and what waits behind "
        "it, stays there until service::budget_mib is raised.",
        log_text("exporter", journal_store_exporter_name(journal->store, exporter->index)),
        log_text("file", name), log_int("offset", (int64_t)stored->offset),
        log_int("bytes", (int64_t)stored->head.bytes),
        log_int("budget_bytes", (int64_t)budget_limit(journal->memory)));
}

static void on_replayed(struct lane_task *task)
{
    struct journal_entry *entry = entry_of_task(task);
    struct journal *journal = entry->journal;
    for (size_t i = 0; i < journal->lanes_count; i++)
        if (journal->lanes[i].lane == entry->lane) {
            /* The entry may be gone when this returns. */
            journal->lanes[i].fn(entry, journal->lanes[i].arg);
            return;
        }
}

/* The ids from first to end hold nothing that could be given, unless they are given now. False: too
 * many for now. */
static bool pass_over(struct journal *journal, struct journal_exporter_state *exporter,
                      uint64_t first, uint64_t end)
{
    if (end <= first)
        return true;
    bool has_window = journal_store_has_window(journal->store, exporter->index, end - 1);
    if (!has_window && journal_store_low(journal->store, exporter->index) < first)
        return false;
    pthread_mutex_lock(&journal->mutex);
    /* Beyond the window nothing can be told apart: first it finishes what it holds. */
    if (!has_window && exporter->given_count > 0) {
        pthread_mutex_unlock(&journal->mutex);
        return false;
    }
    for (uint64_t id = first; exporter->given_count > 0 && id < end; id++) {
        if (!is_given(exporter, id))
            continue;
        if (id > first)
            journal_store_done(journal->store, exporter->index, first, id);
        first = id + 1;
    }
    if (first < end)
        journal_store_done(journal->store, exporter->index, first, end);
    pthread_mutex_unlock(&journal->mutex);
    return true;
}

/* Records that the exporter has finished, or holds. */
static bool skips(uint64_t id, void *arg)
{
    struct journal_exporter_state *exporter = arg;
    struct journal *journal = exporter->journal;
    pthread_mutex_lock(&journal->mutex);
    bool is_skipped =
        journal_store_is_done(journal->store, exporter->index, id) || is_given(exporter, id);
    pthread_mutex_unlock(&journal->mutex);
    return is_skipped;
}

static void close_reader(struct journal_exporter_state *exporter)
{
    if (exporter->reader != NULL)
        exporter->patience = journal_reader_patience(exporter->reader);
    journal_reader_destroy(exporter->reader);
    exporter->reader = NULL;
}

static void open_reader(struct journal *journal, struct journal_exporter_state *exporter,
                        uint64_t first)
{
    close_reader(exporter);
    exporter->reader = journal_reader_create(journal->store, first, on_damage, journal);
    journal_reader_set_skips(exporter->reader, skips, exporter);
    journal_reader_set_patience(exporter->reader, exporter->patience);
}

/* Reads the next record that the exporter has neither finished nor holds. NULL: there is none, or
 * no room for it. */
static struct journal_entry *read_next(struct journal *journal,
                                       struct journal_exporter_state *exporter,
                                       uint64_t *ret_retry_ns)
{
    if (exporter->waiting != NULL) {
        struct journal_entry *entry = exporter->waiting;
        exporter->waiting = NULL;
        return entry;
    }
    for (;;) {
        uint64_t first = journal_reader_position(exporter->reader);
        struct journal_stored stored;
        enum journal_read read = journal_reader_next(exporter->reader, journal->memory, &stored);
        if (read == JOURNAL_READ_FAILED && !exporter->is_failing)
            log_failure(journal, exporter->reader);
        exporter->is_failing = read == JOURNAL_READ_FAILED;
        if (read == JOURNAL_READ_BUSY)
            note_too_large(journal, exporter, &stored);
        uint64_t end =
            read == JOURNAL_READ ? stored.head.id : journal_reader_position(exporter->reader);
        bool has_passed = pass_over(journal, exporter, first, end);
        if (!has_passed && read == JOURNAL_READ)
            buffer_unref(stored.payload);
        if (!has_passed)
            open_reader(journal, exporter, first);
        if (!has_passed || read == JOURNAL_READ_BUSY || read == JOURNAL_READ_FAILED)
            *ret_retry_ns = PAUSE_MIN_NS;
        if (!has_passed || read != JOURNAL_READ)
            return NULL;
        if (stored.payload == NULL)
            continue;
        struct journal_entry *entry = mem_zalloc(journal->entry_bytes);
        entry->journal = journal;
        entry->stored = stored;
        entry->bytes = stored.payload->size;
        entry->amount =
            (struct journal_amount){.items = stored.head.items,
                                    .bytes = (uint64_t)stored.head.bytes - stored.head.meta_bytes};
        entry->record.id = stored.head.id;
        entry->record.wall_ns = stored.head.wall_ns;
        entry->given = UINT32_C(1) << (exporter - journal->exporters);
        return entry;
    }
}

/* All that it holds waits for retries, and has for long: it gets a few more, since the back-end may
 * take others. Caller holds mutex. */
static void give_more_if_stuck(struct journal_exporter_state *exporter)
{
    uint64_t now_ns = clock_now_ns();
    if (exporter->given_count < exporter->given_max || exporter->given_max >= JOURNAL_STUCK_MAX ||
        now_ns - exporter->settled_ns < PAUSE_MAX_NS)
        return;
    exporter->given_max = lower(exporter->given_max + JOURNAL_PROBES, exporter->given_limit);
    exporter->settled_ns = now_ns;
}

/* Puts the reading to another place. Caller holds mutex. */
static void read_from(struct journal_exporter_state *exporter, uint64_t position)
{
    exporter->position = position;
    close_reader(exporter);
    if (exporter->waiting != NULL) {
        buffer_unref(exporter->waiting->stored.payload);
        mem_free(exporter->waiting);
        exporter->waiting = NULL;
    }
}

/* After refusals: returns to the lowest refused id, so that records come in order once the back-end
 * is there again. If it refuses that one again and again, it may take others: then every other time
 * reading goes on where it was. Caller holds mutex. */
static void choose_place(struct journal_exporter_state *exporter)
{
    enum { RETURNS_MIN = 3 };
    if (exporter->again >= exporter->position)
        return;
    if (exporter->position > exporter->ahead)
        exporter->ahead = exporter->position;
    bool is_same = exporter->again == exporter->returned_to;
    exporter->returns = is_same ? exporter->returns + 1 : 0;
    exporter->returned_to = exporter->again;
    if (exporter->has_to_return || exporter->returns < RETURNS_MIN || exporter->returns % 2 == 0) {
        uint64_t again = exporter->again;
        exporter->again = UINT64_MAX;
        read_from(exporter, again);
    } else if (exporter->ahead > exporter->position) {
        read_from(exporter, exporter->ahead);
    }
    exporter->has_to_return = false;
}

/* Gives an exporter that is behind what it has room for. Returns when to look again, at the latest.
 */
static uint64_t replay(struct journal *journal, struct journal_exporter_state *exporter)
{
    uint64_t retry_ns = UINT64_MAX;
    pthread_mutex_lock(&journal->mutex);
    uint64_t now_ns = clock_now_ns();
    bool is_due = exporter->is_behind && exporter->resume_ns <= now_ns;
    if (exporter->is_behind && !is_due)
        retry_ns = exporter->resume_ns - now_ns;
    if (is_due && (exporter->is_refused || exporter->has_to_return)) {
        exporter->is_refused = false;
        choose_place(exporter);
    }
    uint64_t position = exporter->position;
    pthread_mutex_unlock(&journal->mutex);
    while (is_due && !atomic_load(&journal->is_paused)) {
        if (exporter->reader == NULL)
            open_reader(journal, exporter, position);
        struct journal_entry *entry = read_next(journal, exporter, &retry_ns);
        pthread_mutex_lock(&journal->mutex);
        exporter->position =
            entry != NULL ? entry->record.id : journal_reader_position(exporter->reader);
        bool has_caught_up = false;
        bool is_refused = exporter->resume_ns > clock_now_ns();
        if (entry != NULL && !is_refused && has_room(journal, exporter, entry->record.id, 1)) {
            note_given(exporter, entry->record.id, entry->bytes, true);
            exporter->position = entry->record.id + 1;
        } else if (entry != NULL) {
            exporter->waiting = entry;
            give_more_if_stuck(exporter);
            exporter->has_to_return =
                exporter->again != UINT64_MAX &&
                !journal_store_has_window(journal->store, exporter->index, entry->record.id);
            is_due = false;
        } else {
            is_due = false;
            exporter->position =
                journal_store_pass_unused(journal->store, exporter->index, exporter->position);
            has_caught_up =
                exporter->position >= exporter->left_end && exporter->again == UINT64_MAX;
            exporter->is_behind = !has_caught_up;
            exporter->has_to_return = exporter->again != UINT64_MAX;
        }
        pthread_mutex_unlock(&journal->mutex);
        if (is_due) {
            entry->lane = journal->lanes[journal->next_lane++ % journal->lanes_count].lane;
            entry->task.fn = on_replayed;
            counter_add(&journal->counters.replayed, 1);
            lane_post(entry->lane, &entry->task);
        }
        if (has_caught_up)
            close_reader(exporter);
    }
    return retry_ns;
}

static bool is_configured(const struct journal *journal, size_t index)
{
    for (size_t i = 0; i < journal->exporters_count; i++)
        if (journal->exporters[i].index == index)
            return true;
    return false;
}

/* Calls fn for each exporter that is not configured any more and has records. Returns how many
 * there are. */
static size_t each_abandoned(struct journal *journal,
                             void (*fn)(struct journal *journal, size_t index, uint64_t low,
                                        uint64_t end))
{
    size_t count = 0;
    const char *name;
    for (size_t i = 0; (name = journal_store_exporter_name(journal->store, i)) != NULL; i++) {
        uint64_t low = journal_store_low(journal->store, i);
        uint64_t end = journal_store_figures(journal->store).next_id;
        if (is_configured(journal, i) || low >= end)
            continue;
        fn(journal, i, low, end);
        count++;
    }
    return count;
}

/* A command that prints what waits for it. */
static void print_export(char text[static COMMAND_BYTES], const char *directory,
                         const char *exporter)
{
    snprintf(text, COMMAND_BYTES, "spanflame journal export --exporter '%s' '%s'", exporter,
             directory);
}

static void warn_of_abandoned(struct journal *journal, size_t index, uint64_t low, uint64_t end)
{
    char command[COMMAND_BYTES];
    const char *directory = journal_store_directory(journal->store);
    const char *exporter = journal_store_exporter_name(journal->store, index);
    print_export(command, directory, exporter);
    log_warn(&journal->logger,
             "Requests wait in the journal for an exporter that the pipeline does not have any "
             "more, or that has no storage. They, and what comes after them, take disk space until "
             "it is put back and has taken them. Should the journal need that space, because "
             "max_size or the disk is full, they are dropped. The command prints them. To drop "
             "them now, stop spanflame and delete the directory, once nothing else waits there.",
             log_text("directory", directory), log_text("exporter", exporter),
             log_int("requests", (int64_t)(end - low)), log_text("command", command));
}

/* No exporter will ever take them, so new requests are not refused for them. But as long as
 * exporters of the pipeline wait for something as old, dropping them frees nothing. */
static void give_up_abandoned(struct journal *journal, size_t index, uint64_t low, uint64_t end)
{
    for (size_t i = 0; i < journal->exporters_count; i++)
        if (journal_store_low(journal->store, journal->exporters[i].index) <= low)
            return;
    log_error(&journal->logger,
              "The journal is full: max_size or the disk is used up. Dropping requests that wait "
              "for an exporter that the pipeline does not have any more, so that it can take new "
              "ones. The exporters that it has lose nothing.",
              log_text("directory", journal_store_directory(journal->store)),
              log_text("exporter", journal_store_exporter_name(journal->store, index)),
              log_int("dropped_requests", (int64_t)(end - low)));
    counter_add(&journal->counters.abandoned, end - low);
    /* Nor does it get what comes: it is forgotten at the next start. */
    journal_store_done(journal->store, index, low, UINT64_MAX);
}

/* Says what an earlier process left. */
static void note_backlog(struct journal *journal)
{
    struct journal_backlog most = {.records = 0};
    uint64_t oldest_ns = UINT64_MAX;
    uint64_t now_ns = clock_wall_ns();
    for (size_t i = 0; i < journal->exporters_count; i++) {
        struct journal_backlog backlog = journal_backlog_of(journal, i);
        if (backlog.records > most.records)
            most = backlog;
        if (backlog.oldest_wall_ns > 0 && backlog.oldest_wall_ns < oldest_ns)
            oldest_ns = backlog.oldest_wall_ns;
    }
    if (most.records == 0)
        return;
    journal->backlog_end = journal_store_figures(journal->store).next_id;
    atomic_store(&journal->has_backlog, true);
    log_info(&journal->logger, "An earlier process left requests in the journal. Delivering them.",
             log_text("directory", journal_store_directory(journal->store)),
             log_int("requests", (int64_t)most.records),
             log_int("bytes", (int64_t)most.amount.bytes),
             log_double("oldest_seconds",
                        oldest_ns < now_ns ? (double)(now_ns - oldest_ns) / NS_PER_S : 0));
}

static void *run_keeper(void *arg)
{
    struct journal *journal = arg;
    while (!atomic_load(&journal->is_paused)) {
        uint64_t wait_ns = KEEP_NS;
        int failed = journal_store_keep(journal->store);
        if ((failed == -EDQUOT || failed == -ENOSPC) &&
            each_abandoned(journal, give_up_abandoned) > 0)
            journal_store_keep(journal->store);
        for (size_t i = 0; i < journal->exporters_count; i++) {
            uint64_t retry_ns = replay(journal, &journal->exporters[i]);
            wait_ns = retry_ns < wait_ns ? retry_ns : wait_ns;
        }
        note_backlog_end(journal);
        wait_for(&journal->keeper_wakes, wait_ns);
    }
    return NULL;
}

struct journal *journal_create(const struct journal_settings *settings, struct error *error)
{
    assert(settings->exporters_count > 0 && settings->exporters_count <= JOURNAL_EXPORTERS_MAX);
    assert(settings->entry_bytes >= sizeof(struct journal_entry));
    struct journal_store *store = journal_store_open(&settings->store, error);
    if (store == NULL)
        return NULL;
    struct journal *journal = mem_zalloc(sizeof(*journal));
    journal->store = store;
    journal->memory = settings->memory;
    journal->disk = settings->store.disk;
    journal->created_ns = clock_now_ns();
    journal->given_bytes_max = settings->given_bytes_max;
    journal->entry_bytes = settings->entry_bytes;
    if (settings->logger != NULL)
        journal->logger = *settings->logger;
    sem_init(&journal->committer_wakes, 0, 0);
    sem_init(&journal->keeper_wakes, 0, 0);
    pthread_mutex_init(&journal->mutex, NULL);
    journal_store_forget_finished(store);
    for (size_t i = 0; i < settings->exporters_count; i++) {
        int index = journal_store_exporter(store, settings->exporters[i]);
        if (index < 0) {
            error_set(error,
                      "%s holds requests for %d exporters, the most allowed, of which some are not "
                      "in the pipeline any more: \"spanflame journal list\" shows them. Put them "
                      "back until they have delivered, or export their requests with \"spanflame "
                      "journal export\" and delete the directory",
                      settings->store.directory, JOURNAL_EXPORTERS_MAX);
            journal_destroy(journal);
            return NULL;
        }
        uint64_t low = journal_store_low(store, (size_t)index);
        uint64_t next_id = journal_store_figures(store).next_id;
        journal->exporters[journal->exporters_count++] = (struct journal_exporter_state){
            .journal = journal,
            .index = (size_t)index,
            .is_behind = low < next_id,
            .position = low,
            .left_end = next_id,
            .again = UINT64_MAX,
            .pause_ns = PAUSE_MIN_NS,
            .given_max = given_limit(settings, i),
            .given_limit = given_limit(settings, i),
            .given = mem_zalloc(GIVEN_WORDS * sizeof(uint64_t)),
        };
    }
    journal_names_write(store);
    struct journal_damage tail = journal_store_tail(store);
    if (tail.records > 0)
        on_damage(&tail, journal);
    each_abandoned(journal, warn_of_abandoned);
    note_backlog(journal);
    return journal;
}

void journal_add_lane(struct journal *journal, struct lane *lane, journal_replay_fn fn, void *arg)
{
    assert(!journal->is_running && journal->lanes_count < LANES_ROOM);
    journal->lanes[journal->lanes_count++] =
        (struct replay_lane){.lane = lane, .fn = fn, .arg = arg};
}

bool journal_start(struct journal *journal, struct error *error)
{
    assert(!journal->is_running && journal->lanes_count > 0);
    int failed = pthread_create(&journal->committer, NULL, run_committer, journal);
    if (failed != 0)
        return error_set(error, "cannot start a thread: %s", strerror(failed));
    failed = pthread_create(&journal->keeper, NULL, run_keeper, journal);
    if (failed != 0) {
        atomic_store(&journal->is_stopping, true);
        sem_post(&journal->committer_wakes);
        pthread_join(journal->committer, NULL);
        return error_set(error, "cannot start a thread: %s", strerror(failed));
    }
    journal->is_running = true;
    return true;
}

void journal_pause(struct journal *journal)
{
    if (!journal->is_running || atomic_exchange(&journal->is_paused, true))
        return;
    sem_post(&journal->keeper_wakes);
    pthread_join(journal->keeper, NULL);
}

bool journal_is_idle(struct journal *journal)
{
    uint64_t given = 0;
    pthread_mutex_lock(&journal->mutex);
    for (size_t i = 0; i < journal->exporters_count; i++)
        given += journal->exporters[i].given_count;
    pthread_mutex_unlock(&journal->mutex);
    return given == 0;
}

void journal_stop(struct journal *journal)
{
    if (!journal->is_running)
        return;
    journal_abandon(journal);
    assert(journal_is_idle(journal));
}

void journal_abandon(struct journal *journal)
{
    if (!journal->is_running)
        return;
    journal_pause(journal);
    atomic_store(&journal->is_stopping, true);
    sem_post(&journal->committer_wakes);
    pthread_join(journal->committer, NULL);
    journal->is_running = false;
}

void journal_destroy(struct journal *journal)
{
    if (journal == NULL)
        return;
    assert(!journal->is_running);
    for (size_t i = 0; i < journal->exporters_count; i++) {
        struct journal_exporter_state *exporter = &journal->exporters[i];
        if (exporter->waiting != NULL) {
            buffer_unref(exporter->waiting->stored.payload);
            mem_free(exporter->waiting);
        }
        journal_reader_destroy(exporter->reader);
        mem_free(exporter->given);
    }
    pthread_mutex_destroy(&journal->mutex);
    sem_destroy(&journal->committer_wakes);
    sem_destroy(&journal->keeper_wakes);
    journal_store_close(journal->store);
    mem_free(journal);
}

struct journal_counters *journal_counters(struct journal *journal)
{
    return &journal->counters;
}

struct journal_figures journal_figures(struct journal *journal)
{
    return journal_store_figures(journal->store);
}

struct journal_backlog journal_backlog_of(struct journal *journal, size_t exporter)
{
    struct journal_backlog backlog;
    assert(exporter < journal->exporters_count);
    bool is_there =
        journal_store_backlog(journal->store, journal->exporters[exporter].index, &backlog);
    assert(is_there);
    (void)is_there;
    return backlog;
}

uint64_t journal_backlog(struct journal *journal, size_t exporter)
{
    return journal_backlog_of(journal, exporter).records;
}

bool journal_each_backlog(struct journal *journal, size_t index,
                          struct journal_backlog *ret_backlog)
{
    return journal_store_backlog(journal->store, index, ret_backlog);
}

const struct histogram *journal_flushes(struct journal *journal)
{
    return journal_store_flushes(journal->store);
}

const char *journal_directory(struct journal *journal)
{
    return journal_store_directory(journal->store);
}

struct journal_health journal_health(struct journal *journal)
{
    int error = atomic_load(&journal->last_error);
    bool is_refusing = atomic_load(&journal->is_refusing);
    return (struct journal_health){.is_refusing = is_refusing,
                                   .is_full = is_refusing && is_lack_of_room(error),
                                   .last_error = error,
                                   .last_wall_ns = atomic_load(&journal->last_error_wall_ns)};
}
