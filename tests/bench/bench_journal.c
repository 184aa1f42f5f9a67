/* SPDX-License-Identifier: Apache-2.0 */
/* bench_journal: what a journal keeps in groups when nothing else runs: no receiver, no exporter.
 * Writes records of spans' size, releases each segment once it is written, and prints as JSON how
 * fast that was. The records of one call are those that came during one flush. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/journal/journal_store.h"
#include "tests/bench/support.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES = 32 << 20, RECORDS_MAX = 1024, WARM_UP_SEGMENTS = 4 };

struct options {
    const char *directory;
    uint64_t bytes;  /* of a record */
    uint64_t count;  /* of records in one call */
    uint64_t writes; /* of records in all */
};

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {{"directory", required_argument, NULL, 'd'},
                                          {"bytes", required_argument, NULL, 'b'},
                                          {"count", required_argument, NULL, 'c'},
                                          {"writes", required_argument, NULL, 'w'},
                                          {0}};
    struct options options = {.bytes = 672000, .count = 12, .writes = 1000};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'd')
            options.directory = optarg;
        else if (option == 'b')
            options.bytes = strtoull(optarg, NULL, 10);
        else if (option == 'c')
            options.count = strtoull(optarg, NULL, 10);
        else if (option == 'w')
            options.writes = strtoull(optarg, NULL, 10);
        else
            die("usage: bench_journal --directory DIR [--bytes N] [--count N] [--writes N]");
    }
    if (options.directory == NULL || options.bytes == 0 || options.bytes > SEGMENT_BYTES / 2 ||
        options.count == 0 || options.count > RECORDS_MAX || options.writes < options.count)
        die("bench_journal: --directory is missing, or a number is out of range");
    return options;
}

static void write_records(struct journal_store *store, struct batch *batch, uint64_t count)
{
    static struct journal_record records[RECORDS_MAX];
    for (uint64_t i = 0; i < count; i++)
        records[i] = (struct journal_record){
            .next = i + 1 < count ? &records[i + 1] : NULL, .batch = batch, .wall_ns = 1};
    for (struct journal_record *left = records; left != NULL;) {
        struct journal_record *from = left;
        left = journal_store_commit(store, left);
        if (from->error != 0)
            die("cannot write the journal: %s", strerror(-from->error));
    }
    journal_store_done(store, 0, journal_store_low(store, 0), journal_store_figures(store).next_id);
    if (journal_store_needs_keeping(store) && journal_store_keep(store) != 0)
        die("cannot prepare the next segment");
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    struct budget disk;
    budget_init(&disk, UINT64_MAX);
    struct error error = {.text = ""};
    struct journal_store *store =
        journal_store_open(&(struct journal_store_settings){.directory = options.directory,
                                                            .segment_bytes = SEGMENT_BYTES,
                                                            .disk = &disk,
                                                            .is_synced = true,
                                                            .directory_mode = 0700},
                           &error);
    if (store == NULL)
        die("%s", error.text);
    if (journal_store_exporter(store, "bench") != 0)
        die("%s is not empty", options.directory);
    struct buffer *buffer = buffer_create(NULL, options.bytes);
    memset(buffer->data, 'x', options.bytes);
    buffer->size = options.bytes;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = 1;
    buffer_unref(buffer);
    /* Until its files are there. */
    for (uint64_t bytes = 0; bytes < (uint64_t)WARM_UP_SEGMENTS * SEGMENT_BYTES;
         bytes += options.count * options.bytes)
        write_records(store, batch, options.count);
    uint64_t start_ns = now_ns();
    uint64_t written = 0;
    for (; written < options.writes; written += options.count)
        write_records(store, batch, options.count);
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"writes\": %" PRIu64 ", \"seconds\": %.6f, \"mib_per_s\": %.1f}\n", written, seconds,
           (double)(written * options.bytes) / (1 << 20) / seconds);
    batch_unref(batch);
    journal_store_close(store);
    budget_fini(&disk);
    return 0;
}
