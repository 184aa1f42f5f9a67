/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts the power of a machine with a journal, a few thousand times: README.md says how.
 *
 * usage: journal_crash FILE_SYSTEM cuts IMAGES | writes | faults */
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "tests/crash/cut.h"
#include "tests/crash/recorder.h"
#include "tests/crash/volume.h"

enum {
    EXPORTERS = 2,
    RECORDS_MAX = 200000,
    GROUP_MAX = 6,
    META_BYTES = 16,
    JOBS_DEFAULT = 6,
    JOBS_MAX = 32,
    COMMITS_MIN = 30,
    EXIT_SKIPPED = 77,
    /* One image in so many is cut again while it recovers and goes on. */
    SECOND_CUTS_ONE_IN = 10,
    SECOND_CUTS = 3,
    BLOCK_BYTES = 4096,
    FAULTS = 40,
    STEADY_COMMITS = 2000,
    STEADY_SEGMENT_BYTES = 4 << 20,
};

/* What the test knows of a record; a mark in the log carries a change of it. */
struct known {
    bool is_issued; /* given to the journal */
    bool is_acknowledged;
    bool is_done[EXPORTERS];
    uint32_t bytes;
    uint64_t id;
};

enum mark_kind { ISSUED, ACKNOWLEDGED, DONE };

struct mark {
    enum mark_kind kind;
    uint32_t bytes;    /* ISSUED */
    uint32_t exporter; /* DONE */
    uint64_t serial;
    uint64_t id; /* ACKNOWLEDGED */
};

struct knowledge {
    uint64_t count;
    struct known known[RECORDS_MAX]; /* by serial number */
};

/* The machine: its disk, its file system, and the journal while it runs. */
struct machine {
    const struct volume_type *type;
    struct recorder *recorder;
    char directory[256]; /* where the file system is mounted */
    char journal[300];
    uint64_t segment_bytes;
    struct journal_store *store;
    size_t exporters[EXPORTERS];
    struct budget disk;
    struct budget memory;
    struct knowledge now;
    /* A second thread prepares and frees segments, as that of the daemon does. */
    pthread_t keeper;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool is_wanted;
    bool is_keeping;
    bool is_stopping;
};

static struct machine machine;
static char wrong[400];

static uint64_t environment_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    exit(1);
}

static void object(const char *what, uint64_t number)
{
    if (wrong[0] == '\0')
        snprintf(wrong, sizeof(wrong), "%s (%" PRIu64 ")", what, number);
}

static void apply_mark(struct knowledge *knowledge, const struct mark *mark)
{
    if (mark->serial >= RECORDS_MAX)
        fail("too many records");
    struct known *known = &knowledge->known[mark->serial];
    switch (mark->kind) {
    case ISSUED:
        *known = (struct known){.is_issued = true, .bytes = mark->bytes};
        knowledge->count = mark->serial + 1;
        break;
    case ACKNOWLEDGED:
        known->is_acknowledged = true;
        known->id = mark->id;
        break;
    case DONE:
    default:
        known->is_done[mark->exporter] = true;
    }
}

static void copy_knowledge(struct knowledge *to, const struct knowledge *from)
{
    to->count = from->count;
    memcpy(to->known, from->known, from->count * sizeof(from->known[0]));
}

/* Says so, to the log and to ourselves. */
static void note(const struct mark *mark)
{
    recorder_mark(machine.recorder, mark, sizeof(*mark));
    apply_mark(&machine.now, mark);
}

static void fill(uint8_t *to, size_t size, uint64_t serial)
{
    uint64_t word = (serial + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < size; i += sizeof(word), word = word * 5 + serial + 1)
        memcpy(to + i, &word, size - i < sizeof(word) ? size - i : sizeof(word));
}

/* The journal. */
static bool open_journal(void)
{
    struct error error;
    const struct journal_store_settings settings = {
        .directory = machine.journal,
        .segment_bytes = machine.segment_bytes,
        .disk = &machine.disk,
        .is_synced = true,
        .directory_mode = 0700,
    };
    budget_init(&machine.disk, UINT64_MAX);
    machine.store = journal_store_open(&settings, &error);
    if (machine.store == NULL) {
        budget_fini(&machine.disk);
        snprintf(wrong, sizeof(wrong), "the journal does not open: %.300s", error.text);
        return false;
    }
    for (size_t i = 0; i < EXPORTERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "exporter%zu", i);
        machine.exporters[i] = (size_t)journal_store_exporter(machine.store, name);
    }
    return true;
}

static void close_journal(void)
{
    journal_store_close(machine.store);
    budget_fini(&machine.disk);
    machine.store = NULL;
}

static void *keep(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&machine.mutex);
        while (!machine.is_wanted && !machine.is_stopping)
            pthread_cond_wait(&machine.changed, &machine.mutex);
        bool is_stopping = machine.is_stopping;
        machine.is_wanted = false;
        pthread_mutex_unlock(&machine.mutex);
        if (is_stopping)
            return NULL;
        journal_store_keep(machine.store);
        pthread_mutex_lock(&machine.mutex);
        machine.is_keeping = machine.is_wanted;
        pthread_cond_broadcast(&machine.changed);
        pthread_mutex_unlock(&machine.mutex);
    }
}

static void start_keeper(void)
{
    machine.is_wanted = machine.is_keeping = machine.is_stopping = false;
    pthread_create(&machine.keeper, NULL, keep, NULL);
}

static void want_keeper(void)
{
    pthread_mutex_lock(&machine.mutex);
    machine.is_wanted = machine.is_keeping = true;
    pthread_cond_broadcast(&machine.changed);
    pthread_mutex_unlock(&machine.mutex);
}

/* Until it has nothing to do. */
static void wait_for_keeper(void)
{
    pthread_mutex_lock(&machine.mutex);
    while (machine.is_keeping)
        pthread_cond_wait(&machine.changed, &machine.mutex);
    pthread_mutex_unlock(&machine.mutex);
}

static void stop_keeper(void)
{
    pthread_mutex_lock(&machine.mutex);
    machine.is_stopping = true;
    pthread_cond_broadcast(&machine.changed);
    pthread_mutex_unlock(&machine.mutex);
    pthread_join(machine.keeper, NULL);
}

static size_t choose_size(void)
{
    uint64_t kind = cut_choose(40);
    return kind == 0 ? cut_choose(100000) : kind < 20 ? cut_choose(600) : cut_choose(9000);
}

/* Commits a group. Returns how many were acknowledged. */
static size_t commit(size_t count, size_t (*size_of)(void))
{
    struct journal_record records[GROUP_MAX];
    uint64_t metas[GROUP_MAX][2];
    struct batch *batches[GROUP_MAX];
    size_t acknowledged = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t serial = machine.now.count;
        size_t size = size_of();
        struct buffer *buffer = buffer_create(NULL, size + 1);
        fill(buffer->data, size, serial);
        buffer->size = size;
        batches[i] = batch_create(TRACES, 1);
        batch_append(batches[i], buffer, slice_of(buffer->data, size));
        batches[i]->items = 1;
        buffer_unref(buffer);
        metas[i][0] = serial;
        metas[i][1] = size;
        note(&(struct mark){.kind = ISSUED, .serial = serial, .bytes = (uint32_t)size});
        records[i] = (struct journal_record){.next = i + 1 < count ? &records[i + 1] : NULL,
                                             .batch = batches[i],
                                             .meta = slice_of(metas[i], META_BYTES)};
    }
    for (struct journal_record *left = records; left != NULL;)
        left = journal_store_commit(machine.store, left);
    for (size_t i = 0; i < count; i++) {
        batch_unref(batches[i]);
        if (records[i].error != 0)
            continue;
        acknowledged++;
        note(&(struct mark){.kind = ACKNOWLEDGED, .serial = metas[i][0], .id = records[i].id});
    }
    return acknowledged;
}

/* An exporter has delivered it. */
static void deliver(uint64_t serial, size_t exporter)
{
    const struct known *known = &machine.now.known[serial];
    if (!known->is_acknowledged || known->is_done[exporter] ||
        !journal_store_has_window(machine.store, machine.exporters[exporter], known->id))
        return;
    note(&(struct mark){.kind = DONE, .serial = serial, .exporter = (uint32_t)exporter});
    journal_store_done(machine.store, machine.exporters[exporter], known->id, known->id + 1);
}

static void deliver_up_to(uint64_t end, size_t exporter)
{
    /* Those before are done for long. */
    for (uint64_t serial = end > 3000 ? end - 3000 : 0; serial < end; serial++)
        deliver(serial, exporter);
}

/* Reading back. */
static void on_damage(const struct journal_damage *damage, void *arg)
{
    const struct knowledge *knowledge = arg;
    for (uint64_t serial = 0; serial < knowledge->count; serial++) {
        const struct known *known = &knowledge->known[serial];
        if (known->is_acknowledged && known->id >= damage->first &&
            known->id - damage->first < damage->records)
            object("an acknowledged record is reported as lost", serial);
    }
}

static void check_stored(const struct knowledge *knowledge, const struct journal_stored *stored,
                         bool *is_seen)
{
    static uint8_t wanted[1 << 20];
    uint64_t serial = 0;
    if (stored->payload->size < META_BYTES || stored->head.meta_bytes != META_BYTES) {
        object("a record has no meta data", stored->head.id);
        return;
    }
    memcpy(&serial, stored->payload->data, sizeof(serial));
    if (serial >= knowledge->count || !knowledge->known[serial].is_issued) {
        object("a record was invented", serial);
        return;
    }
    const struct known *known = &knowledge->known[serial];
    size_t size = stored->payload->size - META_BYTES;
    fill(wanted, known->bytes, serial);
    if (size != known->bytes || memcmp(wanted, stored->payload->data + META_BYTES, size) != 0)
        object("a record has wrong bytes", serial);
    if (known->is_acknowledged && known->id != stored->head.id)
        object("a record has another id", serial);
    if (is_seen[serial])
        object("a record comes twice", serial);
    is_seen[serial] = true;
}

/* What was acknowledged comes, as far as the exporter has not finished it. False: it cannot be read
 * for now, which is not said to be a loss. */
static bool check_all(struct knowledge *knowledge)
{
    bool is_readable = true;
    static bool is_seen[RECORDS_MAX];
    for (size_t i = 0; i < EXPORTERS && wrong[0] == '\0'; i++) {
        size_t exporter = machine.exporters[i];
        struct journal_reader *reader = journal_reader_create(
            machine.store, journal_store_low(machine.store, exporter), on_damage, knowledge);
        struct journal_stored stored;
        enum journal_read read;
        memset(is_seen, 0, sizeof(is_seen));
        while ((read = journal_reader_next(reader, &machine.memory, &stored)) == JOURNAL_READ) {
            check_stored(knowledge, &stored, is_seen);
            buffer_unref(stored.payload);
        }
        journal_reader_destroy(reader);
        is_readable = is_readable && read == JOURNAL_READ_END;
        for (uint64_t serial = 0; is_readable && serial < knowledge->count; serial++) {
            const struct known *known = &knowledge->known[serial];
            if (!known->is_acknowledged || known->is_done[i])
                continue;
            if (!is_seen[serial])
                object("an acknowledged record is lost", serial);
            else if (journal_store_is_done(machine.store, exporter, known->id))
                object("a record that was not delivered counts as done", serial);
        }
    }
    return is_readable;
}

/* Where it has to be readable. */
static void check_now(struct knowledge *knowledge)
{
    if (!check_all(knowledge))
        object("the journal cannot be read", 0);
}

/* The file system. */
static bool mount_disk(void)
{
    int failed = volume_mount(machine.type, machine.recorder, machine.directory);
    if (failed != 0)
        snprintf(wrong, sizeof(wrong), "the file system does not mount: %s", strerror(failed));
    return failed == 0;
}

static void unmount_disk(void)
{
    int failed = volume_unmount(machine.type, machine.recorder, machine.directory);
    if (failed != 0)
        object("the file system does not unmount", (uint64_t)failed);
}

/* Records what a busy journal writes: groups, deliveries of one exporter that keeps up and one that
 * lags, segments that are used again, ends and starts of the process. */
static void work(uint64_t commits)
{
    if (!open_journal())
        fail(wrong);
    start_keeper();
    for (uint64_t i = 0; i < commits; i++) {
        commit(1 + cut_choose(GROUP_MAX), choose_size);
        uint64_t count = machine.now.count;
        for (uint64_t n = cut_choose(12); n > 0; n--)
            deliver(count - 1 - cut_choose(count < 100 ? count : 100), cut_choose(EXPORTERS));
        if (cut_choose(4) == 0)
            deliver_up_to(cut_choose(2) == 0 ? count : count - cut_choose(count < 60 ? count : 60),
                          0);
        if (cut_choose(16) == 0)
            deliver_up_to(count - cut_choose(count < 60 ? count : 60), 1);
        if (cut_choose(8) == 0)
            journal_store_commit(machine.store, NULL);
        if (cut_choose(3) != 0)
            want_keeper();
        /* All is delivered, which is not on the disk yet: nothing of it may be freed. */
        if (cut_choose(8) == 0) {
            deliver_up_to(count, 0);
            deliver_up_to(count, 1);
            want_keeper();
            wait_for_keeper();
        }
        if (cut_choose(50) == 0) {
            stop_keeper();
            close_journal();
            if (!open_journal())
                fail(wrong);
            start_keeper();
        }
    }
    stop_keeper();
    close_journal();
}

/* Takes over everything from entry first to end. */
static void put_all(struct knowledge *knowledge, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(machine.recorder, i);
        if (entry.event == RECORDER_WRITE)
            recorder_put(machine.recorder, entry.offset, entry.bytes, entry.size);
        else if (entry.event == RECORDER_MARK)
            apply_mark(knowledge, (const struct mark *)entry.bytes);
    }
}

static void apply_marks(struct knowledge *knowledge, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(machine.recorder, i);
        if (entry.event == RECORDER_MARK)
            apply_mark(knowledge, (const struct mark *)entry.bytes);
    }
}

/* Starts the machine after a cut: the file system recovers, the journal opens and has everything.
 * goes_on: then it takes a few records more. False: the file system did not mount. */
static bool start_again(struct knowledge *knowledge, bool goes_on)
{
    if (!mount_disk())
        return false;
    if (open_journal()) {
        check_now(knowledge);
        if (goes_on) {
            copy_knowledge(&machine.now, knowledge);
            for (size_t i = 0; i < 4; i++) {
                commit(1 + cut_choose(GROUP_MAX), choose_size);
                deliver(cut_choose(machine.now.count), cut_choose(EXPORTERS));
                journal_store_keep(machine.store);
            }
            if (wrong[0] == '\0')
                check_now(&machine.now);
        }
        close_journal();
    }
    unmount_disk();
    return true;
}

struct counts {
    uint64_t records;
    uint64_t images;
    uint64_t boundaries;
    uint64_t first; /* images that are not of a second cut */
    uint64_t second;
    uint64_t torn;         /* images in which the file system itself did not survive torn blocks */
    uint64_t acknowledged; /* records that had to be there, in all images */
};

static void count_acknowledged(struct counts *counts, const struct knowledge *knowledge)
{
    for (uint64_t serial = 0; serial < knowledge->count; serial++) {
        const struct known *known = &knowledge->known[serial];
        counts->acknowledged += known->is_acknowledged && !(known->is_done[0] && known->is_done[1]);
    }
}

/* Builds an image and starts from it. The disk holds everything before entry stable; knowledge is
 * that of the cut. Afterwards the disk is as the cut left it, and the log has what was written
 * since. A file system whose superblock is larger than a sector does not survive every torn
 * block: then blocks are written whole. */
static void try_image(struct counts *counts, struct knowledge *knowledge, size_t stable, size_t cut,
                      bool goes_on)
{
    uint64_t before = recorder_save(machine.recorder);
    uint64_t seed = cut_random;
    size_t log_end = recorder_count(machine.recorder);
    cut_put(machine.recorder, stable, cut, RECORDER_SECTOR_BYTES);
    uint64_t image = recorder_save(machine.recorder);
    if (!start_again(knowledge, goes_on)) {
        wrong[0] = '\0';
        counts->torn++;
        recorder_restore(machine.recorder, before);
        recorder_truncate(machine.recorder, log_end);
        cut_random = seed;
        cut_put(machine.recorder, stable, cut, BLOCK_BYTES);
        image = recorder_save(machine.recorder);
        start_again(knowledge, goes_on);
    }
    counts->images++;
    count_acknowledged(counts, knowledge);
    recorder_restore(machine.recorder, image);
    if (wrong[0] == '\0')
        return;
    char path[128];
    snprintf(path, sizeof(path), "journal-crash-%s.img", machine.type->name);
    bool is_saved = recorder_export(machine.recorder, path);
    fprintf(stderr, "image %" PRIu64 ", cut after entry %zu; %s %s\n", counts->images, cut,
            is_saved ? "saved as" : "could not be saved as", path);
    fail(wrong);
}

/* One image, and sometimes those of cuts while it starts again. */
static void cut_at(struct counts *counts, struct knowledge *knowledge, size_t stable, size_t cut)
{
    static struct knowledge later;
    struct recorder *recorder = machine.recorder;
    size_t log_end = recorder_count(recorder);
    uint64_t before = recorder_save(recorder);
    bool is_second = counts->first++ % SECOND_CUTS_ONE_IN == 0;
    try_image(counts, knowledge, stable, cut, is_second || cut_choose(4) == 0);
    size_t end = recorder_count(recorder);
    uint64_t image = recorder_save(recorder);
    for (size_t i = 0; i < SECOND_CUTS && is_second && end > log_end; i++) {
        size_t again = log_end + 1 + cut_choose(end - log_end);
        size_t flushed = cut_stable_before(recorder, log_end, again);
        copy_knowledge(&later, knowledge);
        put_all(&later, log_end, flushed);
        apply_marks(&later, flushed, again);
        try_image(counts, &later, flushed, again, true);
        counts->second++;
        recorder_restore(recorder, image);
    }
    recorder_truncate(recorder, log_end);
    recorder_restore(recorder, before);
}

/* Cuts at every flush, and at random moments between this one and the next. */
static void cuts(struct counts *counts, uint64_t wanted)
{
    static struct knowledge knowledge;
    static struct knowledge at_cut;
    uint64_t saved = recorder_save(machine.recorder);
    size_t first = recorder_count(machine.recorder);
    if (!mount_disk())
        fail(wrong);
    work(wanted / 10 + COMMITS_MIN);
    unmount_disk();
    if (wrong[0] != '\0')
        fail(wrong);
    size_t end = recorder_count(machine.recorder);
    uint64_t flushes = 0;
    for (size_t i = first; i < end; i++)
        flushes += recorder_entry(machine.recorder, i).event == RECORDER_FLUSH;
    counts->records = machine.now.count;
    recorder_restore(machine.recorder, saved);
    for (size_t stable = first, next = first; stable < end; stable = next + 1) {
        for (next = stable; next < end; next++)
            if (recorder_entry(machine.recorder, next).event == RECORDER_FLUSH)
                break;
        counts->boundaries++;
        copy_knowledge(&at_cut, &knowledge);
        cut_at(counts, &at_cut, stable, stable);
        /* As many more as make the wanted number in the end. */
        uint64_t left = wanted > counts->images ? wanted - counts->images : 0;
        uint64_t gaps = flushes + 2 > counts->boundaries ? flushes + 2 - counts->boundaries : 1;
        uint64_t more = next > stable ? (left + gaps - 1) / gaps : 0;
        for (more = more > 1 ? more - 1 : more; more > 0; more--) {
            size_t cut = stable + 1 + cut_choose(next - stable);
            copy_knowledge(&at_cut, &knowledge);
            apply_marks(&at_cut, stable, cut);
            cut_at(counts, &at_cut, stable, cut);
        }
        put_all(&knowledge, stable, next);
        recorder_settle(machine.recorder);
    }
    if (counts->images < wanted || counts->acknowledged < counts->images)
        fail("fewer images or records than wanted");
}

/* What a commit costs once segments are used again. */
static size_t steady_size(void)
{
    return 4000;
}

struct cost {
    uint64_t flushes;
    uint64_t writes; /* pieces that follow each other count as one */
};

static struct cost cost_of(size_t first, size_t end)
{
    struct cost cost = {.flushes = 0};
    uint64_t next_offset = UINT64_MAX;
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(machine.recorder, i);
        bool is_write = entry.event == RECORDER_WRITE;
        cost.flushes += entry.event == RECORDER_FLUSH;
        cost.writes += is_write && entry.offset != next_offset;
        next_offset = is_write ? entry.offset + entry.size : UINT64_MAX;
    }
    return cost;
}

static void commit_and_deliver(void)
{
    if (commit(GROUP_MAX, steady_size) != GROUP_MAX)
        fail("a record was refused");
    for (size_t i = 0; i < EXPORTERS; i++)
        for (uint64_t n = 1; n <= GROUP_MAX; n++)
            deliver(machine.now.count - n, i);
}

static void writes(void)
{
    machine.segment_bytes = STEADY_SEGMENT_BYTES;
    if (!mount_disk() || !open_journal())
        fail(wrong);
    start_keeper();
    /* All files that it will use are made. */
    for (size_t i = 0; i < STEADY_COMMITS; i++) {
        commit_and_deliver();
        want_keeper();
        wait_for_keeper();
    }
    uint64_t bytes = journal_store_figures(machine.store).bytes;
    size_t first = recorder_count(machine.recorder);
    uint64_t plain = 0;
    for (size_t i = 0; i < STEADY_COMMITS; i++) {
        size_t before = recorder_count(machine.recorder);
        commit_and_deliver();
        struct cost cost = cost_of(before, recorder_count(machine.recorder));
        plain += cost.flushes == 1 && cost.writes <= 1;
        want_keeper();
        wait_for_keeper();
    }
    struct cost sum = cost_of(first, recorder_count(machine.recorder));
    stop_keeper();
    printf("%s: %d commits of %d records of %zu bytes: %" PRIu64
           " took 1 flush and at most 1 write; %.3f flushes and %.3f writes each with all that "
           "changing segments of %d KiB costs\n",
           machine.type->name, STEADY_COMMITS, GROUP_MAX, steady_size(), plain,
           (double)sum.flushes / STEADY_COMMITS, (double)sum.writes / STEADY_COMMITS,
           STEADY_SEGMENT_BYTES >> 10);
    if (journal_store_figures(machine.store).bytes != bytes)
        fail("its files grew");
    close_journal();
    unmount_disk();
    /* btrfs never overwrites: there is no such promise for it. */
    if (strcmp(machine.type->name, "btrfs") != 0 && plain < STEADY_COMMITS / 100 * 97)
        fail("commits take more than one flush and one write");
}

/* Commits until one works, a while after the disk does. */
static void recover_in_place(void)
{
    for (unsigned tries = 0; tries < 5; tries++) {
        clock_fake_advance((uint64_t)2 * NS_PER_S);
        journal_store_keep(machine.store);
        if (commit(1, choose_size) == 1)
            return;
    }
    object("the disk works again, but the journal refuses", 0);
}

static bool is_writable(void)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/probe", machine.journal);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool is_flushed = pwrite(fd, "x", 1, 0) == 1 && fsync(fd) == 0;
    close(fd);
    return unlink(path) == 0 && is_flushed;
}

struct fault_counts {
    uint64_t all;
    uint64_t refusals;   /* in which at least one record was refused */
    uint64_t read_only;  /* in which the file system gave up */
    uint64_t unreadable; /* in which it even refused to read */
    uint64_t restarts;   /* of the journal on the broken file system */
};

/* The n-th write or flush fails, alone or with all that follow. The journal refuses, or finds
 * another place; it goes on as soon as the file system does; nothing acknowledged is lost. */
static void fault(uint64_t nth, bool is_sticky, struct fault_counts *counts)
{
    size_t refused = 0;
    if (!mount_disk() || !open_journal())
        return;
    for (unsigned i = 0; i < 5; i++)
        if (commit(2, choose_size) != 2)
            object("a record is refused before anything fails", i);
    recorder_fail(machine.recorder, nth, is_sticky ? UINT64_MAX : 1);
    for (unsigned i = 0; i < 14; i++) {
        size_t count = 1 + cut_choose(GROUP_MAX);
        refused += count - commit(count, choose_size);
        deliver(cut_choose(machine.now.count), cut_choose(EXPORTERS));
        deliver_up_to(machine.now.count / 2, 0);
        journal_store_keep(machine.store);
        clock_fake_advance((uint64_t)300 * NS_PER_MS);
    }
    counts->unreadable += !check_all(&machine.now);
    /* The process may end before the disk works again; it must start on what is left of it. */
    if (is_sticky && nth % 2 == 0) {
        close_journal();
        if (open_journal()) {
            check_all(&machine.now);
            counts->restarts++;
        }
        /* xfs and btrfs refuse to read by then, or show an empty directory. */
        if (strcmp(machine.type->name, "ext4") != 0)
            wrong[0] = '\0';
    }
    counts->all++;
    counts->refusals += refused > 0;
    if (recorder_failed(machine.recorder) == 0)
        object("nothing failed", nth);
    recorder_fail(machine.recorder, 0, 0);
    if (machine.store != NULL && is_writable())
        recover_in_place();
    else
        counts->read_only++;
    if (machine.store != NULL)
        close_journal();
    unmount_disk();
    if (wrong[0] == '\0' && mount_disk()) {
        if (open_journal()) {
            check_now(&machine.now);
            recover_in_place();
            check_now(&machine.now);
            close_journal();
        }
        unmount_disk();
    }
}

static void faults(void)
{
    struct fault_counts counts = {.all = 0};
    uint64_t saved = recorder_save(machine.recorder);
    size_t log_end = recorder_count(machine.recorder);
    clock_fake_start(NS_PER_S, (uint64_t)1700000000 * NS_PER_S);
    for (uint64_t trial = 0; trial < 2 * FAULTS; trial++) {
        fault(1 + trial / 2, trial % 2 == 1, &counts);
        if (wrong[0] != '\0') {
            fprintf(stderr, "operation %" PRIu64 " fails, %s\n", 1 + trial / 2,
                    trial % 2 == 1 ? "and all that follow" : "alone");
            fail(wrong);
        }
        recorder_restore(machine.recorder, saved);
        recorder_truncate(machine.recorder, log_end);
        machine.now.count = 0;
    }
    clock_fake_stop();
    printf("%s: %" PRIu64 " faults: %" PRIu64 " with refused records, %" PRIu64
           " after which the file system was read only, %" PRIu64 " unreadable, %" PRIu64
           " with a start on it; 0 lost, 0 wrong\n",
           machine.type->name, counts.all, counts.refusals, counts.read_only, counts.unreadable,
           counts.restarts);
    if (counts.refusals == 0 || counts.read_only == 0 || counts.refusals == counts.all)
        fail("the faults do not show");
}

static char base[] = "/tmp/journal-crash.XXXXXX";

static int start(const char *type_name)
{
    const char *why = NULL;
    char disk[64];
    machine.type = volume_type_of(type_name);
    if (machine.type == NULL)
        fail("unknown file system");
    machine.segment_bytes = JOURNAL_SEGMENT_BYTES_MIN;
    pthread_mutex_init(&machine.mutex, NULL);
    pthread_cond_init(&machine.changed, NULL);
    budget_init(&machine.memory, UINT64_MAX);
    if (volume_enter(&why)) {
        /* The directory, too, is gone with the test: it lies in a file system of its own. */
        if (mkdtemp(base) == NULL || mount("none", base, "tmpfs", 0, NULL) != 0)
            fail("no directory for the mounts");
        snprintf(disk, sizeof(disk), "%s/disk", base);
        snprintf(machine.directory, sizeof(machine.directory), "%s/volume", base);
        snprintf(machine.journal, sizeof(machine.journal), "%s/volume/journal", base);
        mkdir(disk, 0700);
        mkdir(machine.directory, 0700);
        machine.recorder = recorder_create(disk, machine.type->bytes, &why);
    }
    if (machine.recorder != NULL)
        volume_format(machine.type, machine.recorder, &why);
    if (why != NULL) {
        printf("SKIPPED: crash images on %s: %s\n", type_name, why);
        return EXIT_SKIPPED;
    }
    recorder_settle(machine.recorder);
    return 0;
}

static void stop(void)
{
    recorder_destroy(machine.recorder);
    umount2(base, 0);
    rmdir(base);
    budget_fini(&machine.memory);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One machine, in a process of its own. Returns its exit status. */
static int run(const char *type_name, const char *what, struct counts *counts, uint64_t seed,
               uint64_t images)
{
    cut_random += seed * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < 16; i++)
        cut_choose(2);
    int failed = start(type_name);
    if (failed != 0)
        return failed;
    if (strcmp(what, "cuts") == 0)
        cuts(counts, images);
    else if (strcmp(what, "writes") == 0)
        writes();
    else if (strcmp(what, "faults") == 0)
        faults();
    stop();
    return 0;
}

/* Several machines at once: each mostly waits for mounts. */
static int run_all(const char *type_name, const char *what, uint64_t images_default)
{
    uint64_t images = environment_number("JOURNAL_CRASH_IMAGES", images_default);
    uint64_t seed = environment_number("JOURNAL_CRASH_SEED", 1);
    size_t jobs = environment_number("JOURNAL_CRASH_JOBS", JOBS_DEFAULT);
    jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    pid_t children[JOBS_MAX];
    struct counts *counts = mmap(NULL, JOBS_MAX * sizeof(*counts), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct counts sum = {.images = 0};
    double started = seconds_now();
    int result = 0;
    for (size_t i = 0; i < jobs; i++) {
        children[i] = fork();
        if (children[i] == 0)
            exit(run(type_name, what, &counts[i], seed + i, (images + jobs - 1) / jobs));
    }
    for (size_t i = 0; i < jobs; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        result = result == 0 || code == 1 ? code : result;
        sum.images += counts[i].images;
        sum.boundaries += counts[i].boundaries;
        sum.second += counts[i].second;
        sum.torn += counts[i].torn;
        sum.records += counts[i].records;
        sum.acknowledged += counts[i].acknowledged;
    }
    double seconds = seconds_now() - started;
    if (sum.images > 0)
        printf("%s: %" PRIu64 " records, %" PRIu64 " images: %" PRIu64 " at flushes, %" PRIu64
               " between them, %" PRIu64 " cut again while they started; %" PRIu64
               " need blocks written whole, for the file system's own sake; %" PRIu64
               " acknowledged records had to be there; %s; %.1f s\n",
               type_name, sum.records, sum.images, sum.boundaries,
               sum.images - sum.boundaries - sum.second, sum.second, sum.torn, sum.acknowledged,
               result == 0 ? "0 lost, 0 wrong, 0 failed starts" : "FAILED", seconds);
    munmap(counts, JOBS_MAX * sizeof(*counts));
    return result;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && strcmp(argv[2], "cuts") == 0)
        return run_all(argv[1], argv[2], strtoull(argv[3], NULL, 10));
    if (argc == 3 && (strcmp(argv[2], "writes") == 0 || strcmp(argv[2], "faults") == 0))
        return run(argv[1], argv[2], NULL, 1, 0);
    fprintf(stderr, "usage: journal_crash FILE_SYSTEM cuts IMAGES | writes | faults\n");
    return 2;
}
