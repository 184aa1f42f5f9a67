/* SPDX-License-Identifier: Apache-2.0 */
/* Random sequences of commits, deliveries, kills, power cuts, failing disks and restarts, beside a
 * model of what was acknowledged: whatever was and is not delivered yet must be read back, bit by
 * bit, by each exporter, and every start must succeed.
 *
 * JOURNAL_STATES: restarts to try (default: some seconds' worth). JOURNAL_SEED: the first seed. A
 * failure prints the seed and the operations that are left after shrinking. */
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/support/simulated_disk.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    EXPORTERS = 2,
    RECORDS_MAX = 2000,
    OPERATIONS_MAX = 120,
    GROUP_MAX = 6,
    META_BYTES = 16,
    STATES_DEFAULT = 1000,
};

enum operation {
    COMMIT,
    DONE,
    DONE_ALL,
    KEEP,
    KILL,
    CUT,
    RESTART_FAILING,
    FAIL,
    FULL,
    WRITE_DONES,
    RESTART_UNREADABLE
};

struct step {
    enum operation operation;
    uint64_t choice; /* seed of what the operation chooses */
};

/* A record as the client knows it. */
struct known {
    bool is_acknowledged;
    uint32_t bytes;
    bool is_done[EXPORTERS];
};

struct model {
    struct journal_store *store;
    struct budget disk;
    struct budget memory;
    size_t exporters[EXPORTERS];
    struct known known[RECORDS_MAX]; /* by serial number */
    uint64_t ids[RECORDS_MAX];       /* of each serial number */
    size_t count;
    bool was_full;
    bool is_unreadable;  /* some of the disk, for now */
    bool was_unreadable; /* once: ids that two such lives use may meet */
    const char *wrong;
    uint64_t wrong_serial;
};

static struct model model;
static uint64_t states;
static uint64_t backlogs; /* counted right */
static uint64_t damages;  /* since the start; each is reported once, to the first reader */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static void object(const char *what, uint64_t serial)
{
    if (model.wrong == NULL) {
        model.wrong = what;
        model.wrong_serial = serial;
    }
}

/* Each record is another stretch of the same noise. */
static void fill(uint8_t *to, size_t size, uint64_t serial)
{
    static uint64_t noise[1 << 15];
    size_t from = mix(serial + 1) % (sizeof(noise) - sizeof(noise[0]));
    for (size_t i = 0; noise[0] == 0 && i < sizeof(noise) / sizeof(noise[0]); i++)
        noise[sizeof(noise) / sizeof(noise[0]) - 1 - i] = mix(i + 1);
    for (size_t done = 0; done < size; from = 0) {
        size_t part = size - done < sizeof(noise) - from ? size - done : sizeof(noise) - from;
        memcpy(to + done, (const uint8_t *)noise + from, part);
        done += part;
    }
}

/* Of a group that was being written when the machine stopped, some may be there and some not. On a
 * full disk segments are freed before it is noted that they are done with, and where that note
 * could not be read, nothing tells what was freed from what was lost. */
static void on_damage(const struct journal_damage *damage, void *arg)
{
    (void)arg;
    damages++;
    for (uint64_t serial = 0; serial < model.count; serial++) {
        const struct known *known = &model.known[serial];
        bool is_done = known->is_done[0] && known->is_done[1];
        bool may_be_missed = is_done && (model.was_full || model.was_unreadable);
        if (known->is_acknowledged && !may_be_missed && model.ids[serial] >= damage->first &&
            model.ids[serial] - damage->first < damage->records)
            object("an acknowledged record is reported as lost", serial);
    }
}

static bool open_store(void)
{
    struct error error;
    const struct journal_store_settings settings = {
        .directory = "/disk",
        .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
        .disk = &model.disk,
        .is_synced = true,
        .directory_mode = 0700,
    };
    budget_init(&model.disk, UINT64_MAX);
    model.store = journal_store_open(&settings, &error);
    if (model.store == NULL) {
        budget_fini(&model.disk);
        if (!model.is_unreadable)
            object("it did not start", 0);
        return false;
    }
    for (size_t i = 0; i < EXPORTERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "exporter%zu", i);
        model.exporters[i] = (size_t)journal_store_exporter(model.store, name);
    }
    states++;
    damages = 0;
    return true;
}

static void close_store(void)
{
    journal_store_close(model.store);
    budget_fini(&model.disk);
    model.store = NULL;
}

static void check_stored(const struct journal_stored *stored, bool *is_seen)
{
    uint64_t serial = 0;
    if (stored->payload->size < META_BYTES || stored->head.meta_bytes != META_BYTES) {
        object("a record has no meta data", stored->head.id);
        return;
    }
    memcpy(&serial, stored->payload->data, sizeof(serial));
    if (serial >= model.count) {
        object("a record was invented", serial);
        return;
    }
    size_t size = stored->payload->size - META_BYTES;
    uint8_t *wanted = malloc(size + 1);
    fill(wanted, size, serial);
    if (size != model.known[serial].bytes ||
        memcmp(wanted, stored->payload->data + META_BYTES, size) != 0)
        object("a record has wrong bytes", serial);
    free(wanted);
    if (model.known[serial].is_acknowledged && model.ids[serial] != stored->head.id)
        object("a record has another id", serial);
    is_seen[serial] = true;
}

/* What the store says of the backlog of an exporter, against what was read of it. */
static void check_backlog(size_t exporter, uint64_t records, struct journal_amount amount,
                          bool is_damaged)
{
    struct journal_backlog backlog;
    if (!journal_store_backlog(model.store, exporter, &backlog))
        object("an exporter is unknown", exporter);
    else if (model.was_unreadable)
        return; /* what could not be read was not counted either */
    else if (backlog.records < records || backlog.amount.items < amount.items ||
             backlog.amount.bytes < amount.bytes)
        object("a backlog is counted too small", records);
    else if (!is_damaged && (backlog.records != records || backlog.amount.items != amount.items ||
                             backlog.amount.bytes != amount.bytes))
        object("a backlog is counted too large", records);
    else
        backlogs += !is_damaged && records > 0;
}

/* What was acknowledged is read back, or done. */
static void check_all(void)
{
    static bool is_seen[RECORDS_MAX];
    for (size_t i = 0; i < EXPORTERS && model.wrong == NULL; i++) {
        size_t exporter = model.exporters[i];
        struct journal_reader *reader = journal_reader_create(
            model.store, journal_store_low(model.store, exporter), on_damage, NULL);
        struct journal_stored stored;
        uint64_t records = 0;
        bool has_refused = false;
        struct journal_amount amount = {0};
        memset(is_seen, 0, sizeof(is_seen));
        while (journal_reader_next(reader, &model.memory, &stored) == JOURNAL_READ) {
            check_stored(&stored, is_seen);
            uint64_t serial = 0;
            if (stored.payload->size >= META_BYTES)
                memcpy(&serial, stored.payload->data, sizeof(serial));
            /* One that was refused may have reached the disk, and is not counted then. */
            bool is_refused = serial < model.count && !model.known[serial].is_acknowledged;
            has_refused |= is_refused;
            if (!is_refused && !journal_store_is_done(model.store, exporter, stored.head.id)) {
                records++;
                amount.items += stored.head.items;
                amount.bytes += stored.payload->size - META_BYTES;
            }
            buffer_unref(stored.payload);
        }
        journal_reader_destroy(reader);
        check_backlog(exporter, records, amount, damages > 0 || has_refused);
        for (uint64_t serial = 0; serial < model.count; serial++) {
            const struct known *known = &model.known[serial];
            if (!known->is_acknowledged || known->is_done[i])
                continue;
            if (!is_seen[serial])
                object("an acknowledged record is lost", serial);
            else if (journal_store_is_done(model.store, exporter, model.ids[serial]))
                object("a record that was not delivered counts as done", serial);
        }
    }
}

static uint64_t choose(uint64_t *choice, uint64_t below)
{
    *choice = mix(*choice + 1);
    return *choice % below;
}

static void commit(uint64_t choice)
{
    struct journal_record records[GROUP_MAX];
    uint64_t metas[GROUP_MAX][2];
    uint64_t serials[GROUP_MAX];
    struct batch *batches[GROUP_MAX];
    size_t count = 1 + choose(&choice, GROUP_MAX);
    if (model.count + count > RECORDS_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        uint64_t kind = choose(&choice, 20);
        size_t size = kind == 0   ? choose(&choice, 100000)
                      : kind < 10 ? choose(&choice, 600)
                                  : choose(&choice, 9000);
        struct buffer *buffer = buffer_create(NULL, size + 1);
        serials[i] = model.count++;
        model.known[serials[i]] = (struct known){.bytes = (uint32_t)size};
        fill(buffer->data, size, serials[i]);
        buffer->size = size;
        batches[i] = batch_create(TRACES, 2);
        size_t half = choose(&choice, size + 1);
        batch_append(batches[i], buffer, slice_of(buffer->data, half));
        batch_append(batches[i], buffer, slice_of(buffer->data + half, size - half));
        batches[i]->items = 1;
        buffer_unref(buffer);
        metas[i][0] = serials[i];
        metas[i][1] = 0;
        records[i] = (struct journal_record){.next = i + 1 < count ? &records[i + 1] : NULL,
                                             .batch = batches[i],
                                             .meta = slice_of(metas[i], META_BYTES)};
    }
    for (struct journal_record *left = records; left != NULL;)
        left = journal_store_commit(model.store, left);
    for (size_t i = 0; i < count; i++) {
        model.known[serials[i]].is_acknowledged = records[i].error == 0;
        model.ids[serials[i]] = records[i].id;
        batch_unref(batches[i]);
    }
}

static void deliver(uint64_t serial, size_t exporter)
{
    struct known *known = &model.known[serial];
    if (!known->is_acknowledged || known->is_done[exporter])
        return;
    if (!journal_store_has_window(model.store, model.exporters[exporter], model.ids[serial]))
        return;
    known->is_done[exporter] = true;
    journal_store_pay(model.store, model.exporters[exporter], model.ids[serial],
                      (struct journal_amount){.items = 1, .bytes = known->bytes});
}

static void restart(void)
{
    if (open_store())
        check_all();
}

static char files[512][32];
static size_t files_count;

static void note_name(const char *name, void *arg)
{
    (void)arg;
    snprintf(files[files_count++], sizeof(files[0]), "%s", name);
}

/* Some blocks of one file, or all of it, or everything, cannot be read for one life of the process.
 * It starts, or refuses to, and nothing is lost. */
static void live_unreadable(uint64_t choice)
{
    files_count = 0;
    disk_each(note_name, NULL);
    uint64_t kind = choose(&choice, 8);
    if (files_count > 0 && kind > 0) {
        const char *name = files[choose(&choice, files_count)];
        size_t first = kind == 1 ? 0 : choose(&choice, JOURNAL_SEGMENT_BYTES_MIN);
        disk_fail_blocks(name, first, kind == 1 ? SIZE_MAX / 2 : 1 + choose(&choice, 20000));
    } else {
        disk_fail_reads(choose(&choice, 2) == 0 ? -EIO : -EMFILE);
    }
    model.is_unreadable = model.was_unreadable = true;
    if (open_store()) {
        for (uint64_t i = choose(&choice, 3); i > 0; i--) {
            commit(choose(&choice, UINT64_MAX));
            journal_store_keep(model.store);
        }
        close_store();
    }
    model.is_unreadable = false;
    disk_fail_reads(0);
    disk_fail_blocks(NULL, 0, 0);
    if (choose(&choice, 2) == 0)
        disk_kill();
    else
        disk_cut();
}

static void take_step(const struct step *step)
{
    uint64_t choice = step->choice;
    switch (step->operation) {
    case COMMIT:
        commit(choice);
        break;
    case DONE:
        for (uint64_t i = choose(&choice, 8); i > 0 && model.count > 0; i--)
            deliver(choose(&choice, model.count), choose(&choice, EXPORTERS));
        break;
    case DONE_ALL: {
        uint64_t end = model.count > 0 ? choose(&choice, model.count + 1) : 0;
        size_t only = choose(&choice, EXPORTERS + 1);
        for (uint64_t serial = 0; serial < end; serial++)
            for (size_t i = 0; i < EXPORTERS; i++)
                if (only == EXPORTERS || only == i)
                    deliver(serial, i);
        break;
    }
    case WRITE_DONES:
        journal_store_commit(model.store, NULL);
        break;
    case KEEP:
        journal_store_keep(model.store);
        break;
    case FAIL:
        disk_fail(1 + choose(&choice, 6), 1 + choose(&choice, 4), -EIO);
        break;
    case FULL:
        model.was_full = true;
        disk_limit(choose(&choice, 3) == 0 ? choose(&choice, 400000) : UINT64_MAX);
        break;
    case KILL:
    case CUT:
    case RESTART_FAILING:
    case RESTART_UNREADABLE:
    default:
        disk_fail(0, 0, 0);
        disk_limit(UINT64_MAX);
        close_store();
        if (step->operation == KILL)
            disk_kill();
        else
            disk_cut();
        /* A start may end in a second cut. */
        if (step->operation == RESTART_FAILING) {
            disk_fail(1 + choose(&choice, 6), 1000, -EIO);
            restart();
            if (model.store != NULL)
                commit(choice);
            if (model.store != NULL)
                close_store();
            disk_fail(0, 0, 0);
            disk_cut();
        }
        if (step->operation == RESTART_UNREADABLE && !model.was_unreadable &&
            choose(&choice, 16) == 0)
            live_unreadable(choice);
        clock_fake_advance((uint64_t)2 * NS_PER_S);
        restart();
        break;
    }
    clock_fake_advance((uint64_t)300 * NS_PER_MS);
}

/* Returns what is wrong; NULL: nothing. */
static const char *run(uint64_t seed, const struct step *steps, size_t count)
{
    memset(&model, 0, sizeof(model));
    disk_start(seed);
    budget_init(&model.memory, UINT64_MAX);
    if (open_store()) {
        for (size_t i = 0; i < count && model.wrong == NULL && model.store != NULL; i++)
            take_step(&steps[i]);
    }
    if (model.store != NULL) {
        disk_fail(0, 0, 0);
        check_all();
        close_store();
    }
    budget_fini(&model.memory);
    disk_stop();
    return model.wrong;
}

static const enum operation weights[] = {COMMIT,   COMMIT,   COMMIT,      COMMIT,
                                         COMMIT,   COMMIT,   DONE,        DONE,
                                         DONE_ALL, DONE_ALL, KEEP,        KEEP,
                                         KILL,     CUT,      CUT,         RESTART_FAILING,
                                         FAIL,     FULL,     WRITE_DONES, RESTART_UNREADABLE};

static void report(uint64_t seed, struct step *steps, size_t count)
{
    static const char *const names[] = {"commit",
                                        "done",
                                        "done all",
                                        "keep",
                                        "kill",
                                        "cut",
                                        "restart on a failing disk",
                                        "fail",
                                        "full",
                                        "write dones",
                                        "restart on an unreadable disk"};
    /* Leaves out what the failure does not need. */
    for (size_t i = count; i > 0; i--) {
        struct step without[OPERATIONS_MAX];
        memcpy(without, steps, (i - 1) * sizeof(*steps));
        memcpy(without + i - 1, steps + i, (count - i) * sizeof(*steps));
        if (run(seed, without, count - 1) != NULL)
            memcpy(steps, without, --count * sizeof(*steps));
    }
    run(seed, steps, count);
    print_error("seed %" PRIu64 ": %s (%" PRIu64 ")\n", seed, model.wrong, model.wrong_serial);
    for (size_t i = 0; i < count; i++)
        print_error("  %s %" PRIu64 "\n", names[steps[i].operation], steps[i].choice);
    fail_msg("seed %" PRIu64 ": %s", seed, model.wrong);
}

static void what_was_acknowledged_survives(void **state)
{
    (void)state;
    const char *wanted = getenv("JOURNAL_STATES");
    const char *first = getenv("JOURNAL_SEED");
    uint64_t states_wanted = wanted != NULL ? strtoull(wanted, NULL, 10) : STATES_DEFAULT;
    uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t commits = 0;
    for (; states < states_wanted; seed++) {
        struct step steps[OPERATIONS_MAX];
        for (size_t i = 0; i < OPERATIONS_MAX; i++) {
            uint64_t choice = mix(seed * 1000 + i);
            steps[i] = (struct step){
                .operation = weights[choice % (sizeof(weights) / sizeof(weights[0]))],
                .choice = mix(choice),
            };
        }
        if (run(seed, steps, OPERATIONS_MAX) != NULL)
            report(seed, steps, OPERATIONS_MAX);
        for (size_t i = 0; i < model.count; i++)
            commits += model.known[i].is_acknowledged;
    }
    print_message("%" PRIu64 " starts, %" PRIu64 " acknowledged records, %" PRIu64
                  " backlogs counted\n",
                  states, commits, backlogs);
    assert_true(commits > states);
    assert_true(backlogs > states / 2);
}

int main(void)
{
    clock_fake_start(NS_PER_S, (uint64_t)1700000000 * NS_PER_S);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
