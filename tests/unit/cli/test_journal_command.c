/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame journal` on directories that a journal was written to: what list counts, what verify
 * finds, and that the lines of export mean what was written. */
#include "src/cli/journal/journal_command.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/journal/journal_store.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/otlp/text/text.h"
#include "tests/support/random_otlp.h"
#include "tests/support/random_profiles.h"
#include "tests/support/telemetry_bytes.h"
#include "tests/unit/cli/support.h"

#include <endian.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENTS_MAX = 8, JOURNALS_MAX = 4, PATH_BYTES = 256 };

static const uint64_t now_ns = (uint64_t)1700000000 * NS_PER_S;

static char root[64];
static struct budget disk;
static struct journal_store *stores[JOURNALS_MAX];
static size_t stores_count;
static char *out;
static char *problems;

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/test_journal_command.XXXXXX");
    assert_non_null(mkdtemp(root));
    budget_init(&disk, UINT64_MAX);
    clock_fake_start(NS_PER_S, now_ns);
    stores_count = 0;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static void close_stores(void)
{
    while (stores_count > 0)
        journal_store_close(stores[--stores_count]);
}

static int tear_down(void **state)
{
    (void)state;
    fileops_replace(NULL);
    close_stores();
    clock_fake_stop();
    budget_fini(&disk);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(out);
    free(problems);
    out = problems = NULL;
    return 0;
}

/* Stays open, as in a daemon, until the end of the test. */
static struct journal_store *journal_at(const char *name)
{
    char path[PATH_BYTES];
    struct error error = {.text = ""};
    snprintf(path, sizeof(path), "%s/%s", root, name);
    struct journal_store *store = journal_store_open(
        &(struct journal_store_settings){.directory = path,
                                         .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                         .disk = &disk,
                                         .directory_mode = 0700},
        &error);
    assert_string_equal(error.text, "");
    stores[stores_count++] = store;
    return store;
}

/* Takes over the batch; some meta data goes along. */
static void append(struct journal_store *store, struct batch *batch, uint64_t age_s)
{
    struct journal_record record = {
        .batch = batch, .meta = slice_of_text("secret"), .wall_ns = now_ns - age_s * NS_PER_S};
    assert_null(journal_store_commit(store, &record));
    assert_int_equal(record.error, 0);
    batch_unref(batch);
}

static int run(const char *const *words)
{
    char *arguments[ARGUMENTS_MAX] = {NULL};
    int count = 0;
    struct captured texts[2];
    for (; words[count] != NULL; count++)
        arguments[count] = (char *)(uintptr_t)words[count];
    free(out);
    free(problems);
    out = problems = NULL;
    captured_open(&texts[0]);
    captured_open(&texts[1]);
    int result = journal_command("spanflame", count, arguments, texts[0].out, texts[1].out);
    out = (char *)(uintptr_t)captured_text(&texts[0]);
    problems = (char *)(uintptr_t)captured_text(&texts[1]);
    return result;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void assert_has(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("not found: %s\nin: %s", words, text);
}

static size_t lines_of(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        count++;
    return count;
}

static void list_counts_what_waits_for_each_exporter(void **state)
{
    (void)state;
    struct journal_store *traces = journal_at("traces~002Fa");
    size_t tempo = (size_t)journal_store_exporter(traces, "otlp_http/tempo");
    size_t other = (size_t)journal_store_exporter(traces, "otlp");
    for (uint64_t i = 0; i < 10; i++)
        append(traces, numbered_request(NULL, TRACES, 10 * i, 2 + i), 100 - i);
    journal_store_done(traces, tempo, 1, 9);
    journal_store_done(traces, other, 1, 11);
    journal_store_commit(traces, NULL);
    journal_at("logs");
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/lost+found", root);
    assert_int_equal(mkdir(path, 0), 0);
    snprintf(path, sizeof(path), "%s/empty", root);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(RUN("list", "--json", root), 0);
    assert_string_equal(problems, "");
    char expected[512];
    snprintf(expected, sizeof(expected),
             "{\"journals\":[{\"name\":\"logs\",\"directory\":\"%s/logs\"", root);
    assert_has(out, expected);
    snprintf(expected, sizeof(expected), "{\"name\":\"traces/a\",\"directory\":\"%s/traces~002Fa\"",
             root);
    assert_has(out, expected);
    assert_has(out, "\"missing_records\":0,\"exporters\":[{\"name\":\"otlp_http/tempo\","
                    "\"records\":2,\"items\":21,\"bytes\":");
    assert_has(out, "\"oldest_unix_nano\":1699999908000000000,\"oldest_age_nano\":92000000000}");
    assert_has(out, "{\"name\":\"otlp\",\"records\":0,\"items\":0,\"bytes\":0}");
    assert_has(out, "\"segments\":[{\"file\":\"0000000000000001.journal\",\"bytes\":65536,"
                    "\"records\":10,\"version\":1,\"is_unused\":false}");
    /* One of them, as a table. */
    snprintf(path, sizeof(path), "%s/traces~002Fa/", root);
    assert_int_equal(RUN("list", path), 0);
    assert_has(out, "traces/a: ");
    assert_has(out, "           2           21");
    assert_has(out, "1.53min  otlp_http/tempo\n");
    assert_has(out, "           0            0            0            -  otlp\n");
    assert_has(out, "          10     64.00KiB  0000000000000001.journal\n");
    assert_null(strstr(out, "logs"));
    /* The daemon goes on. */
    append(traces, numbered_request(NULL, TRACES, 500, 1), 0);
}

/* A line as protobuf. */
static struct buffer *read_line(enum signal_kind signal, struct slice line)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX];
    struct otlp_figures figures;
    const char *why;
    if (json_read(otlp_request(signal), line, NULL, &encoded, reason) != JSON_READ)
        fail_msg("%s", reason);
    assert_true(otlp_check(signal, buffer_slice(encoded), &figures, &why));
    return encoded;
}

/* In the words of debug, which know nothing of JSON. */
static void assert_same_meaning(enum signal_kind signal, struct slice left, struct slice right)
{
    struct text texts[2];
    text_init(&texts[0], NULL);
    text_init(&texts[1], NULL);
    otlp_text_write(&texts[0], signal, left, true);
    otlp_text_write(&texts[1], signal, right, true);
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].size);
    text_fini(&texts[0]);
    text_fini(&texts[1]);
}

static void every_line_of_export_means_what_was_written(void **state)
{
    (void)state;
    enum { REQUESTS = 25 };
    struct random_source random = {.state = 5};
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct slice requests[REQUESTS];
        const char *name = signal_name((enum signal_kind)signal);
        struct journal_store *store = journal_at(name);
        journal_store_exporter(store, "otlp_http");
        for (size_t i = 0; i < REQUESTS; i++) {
            struct otlp_figures figures;
            const char *why;
            requests[i] = slice_of(NULL, 0);
            do {
                mem_free((void *)(uintptr_t)requests[i].data);
                requests[i] = signal == PROFILES
                                  ? random_profiles(&random)
                                  : random_request(&random, (enum signal_kind)signal);
            } while (requests[i].size == 0);
            assert_true(otlp_check((enum signal_kind)signal, requests[i], &figures, &why));
            append(store, plain_request(NULL, (enum signal_kind)signal, requests[i], figures.items),
                   0);
        }
        assert_int_equal(RUN("export", "--signal", name, root), 0);
        assert_string_equal(problems, "");
        assert_int_equal(lines_of(out), REQUESTS);
        const char *line = out;
        for (size_t i = 0; i < REQUESTS; i++) {
            const char *end = strchr(line, '\n');
            struct buffer *encoded = read_line((enum signal_kind)signal,
                                               slice_of((const void *)line, (size_t)(end - line)));
            struct buffer *again =
                json_write(otlp_request((enum signal_kind)signal), buffer_slice(encoded), NULL);
            assert_int_equal(again->size, end - line);
            assert_memory_equal(again->data, line, again->size);
            /* What random profiles say twice has two forms in these words. */
            if (signal != PROFILES)
                assert_same_meaning((enum signal_kind)signal, requests[i], buffer_slice(encoded));
            buffer_unref(again);
            buffer_unref(encoded);
            mem_free((void *)(uintptr_t)requests[i].data);
            line = end + 1;
        }
    }
    assert_int_equal(RUN("export", root), 0);
    assert_int_equal(lines_of(out), SIGNAL_KINDS * REQUESTS);
    assert_null(strstr(out, "secret"));
}

/* The Go collector reads lines of 1 MiB at most. */
static void long_requests_are_cut_between_their_items(void **state)
{
    (void)state;
    enum { SPANS = 60000, LINE_BYTES_MAX = 1 << 20 };
    struct journal_store *store = journal_at("traces");
    journal_store_exporter(store, "otlp_http");
    append(store, numbered_request(NULL, TRACES, 7, SPANS), 0);
    assert_int_equal(RUN("export", root), 0);
    assert_true(strlen(out) > 2 * LINE_BYTES_MAX && lines_of(out) > 3 && lines_of(out) < 20);
    for (const char *line = out; *line != '\0';) {
        const char *end = strchr(line, '\n');
        assert_true(end - line < LINE_BYTES_MAX);
        buffer_unref(read_line(TRACES, slice_of((const void *)line, (size_t)(end - line))));
        line = end + 1;
    }
    /* All in their order; the numbers are the ids. */
    static const char name[] = "\"spanId\":\"";
    uint64_t number = 7;
    for (const char *at = out; *at != '\0'; at++) {
        if (*at != '"' || strncmp(at, name, strlen(name)) != 0)
            continue;
        char digits[17] = "";
        memcpy(digits, at + strlen(name), sizeof(digits) - 1);
        assert_int_equal(be64toh(strtoull(digits, NULL, 16)), number);
        number++;
    }
    assert_int_equal(number, 7 + SPANS);
}

static void export_writes_what_waits_for_the_named_exporter(void **state)
{
    (void)state;
    struct journal_store *store = journal_at("traces");
    size_t a = (size_t)journal_store_exporter(store, "otlp/a");
    size_t b = (size_t)journal_store_exporter(store, "otlp/b");
    for (uint64_t i = 0; i < 10; i++)
        append(store, numbered_request(NULL, TRACES, i, 1), 0);
    journal_store_done(store, a, 1, 6);
    journal_store_done(store, a, 7, 9);
    journal_store_done(store, b, 1, 4);
    journal_store_commit(store, NULL);
    journal_at("logs");
    const struct {
        const char *words[5];
        size_t lines;
    } rows[] = {{{"export", root}, 7},
                {{"export", root, "--exporter=otlp/a"}, 3},
                {{"export", "--exporter", "otlp/b", root}, 7},
                {{"export", "--all", root}, 10},
                {{"export", "--signal=logs", root}, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(run(rows[i].words), 0);
        assert_int_equal(lines_of(out), rows[i].lines);
    }
    assert_int_equal(RUN("export", root, "--exporter", "otlp/c"), 2);
    assert_has(problems, "found no exporter \"otlp/c\"; \"journal list\" shows them");
}

/* Some records in several segments, the first twenty finished; the journal is closed. */
enum { RECORDS = 400 };
static void fill(const char *name)
{
    struct journal_store *store = journal_at(name);
    size_t exporter = (size_t)journal_store_exporter(store, "otlp_http");
    for (uint64_t i = 0; i < RECORDS; i++)
        append(store, numbered_request(NULL, TRACES, i, 20), 1);
    journal_store_done(store, exporter, 1, 21);
    journal_store_commit(store, NULL);
    close_stores();
}

static char spoilt_path[PATH_BYTES];

static void flip(const char *name, long at)
{
    snprintf(spoilt_path, sizeof(spoilt_path), "%s/%s", root, name);
    FILE *file = fopen(spoilt_path, "r+");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static void verify_finds_what_is_damaged(void **state)
{
    (void)state;
    fill("traces");
    fill("logs");
    assert_int_equal(RUN("verify", root), 0);
    assert_string_equal(out,
                        "logs: 400 records are sound, 0 are missing, 0 places are damaged\n"
                        "traces: 400 records are sound, 0 are missing, 0 places are damaged\n");
    assert_int_equal(RUN("verify", "--json", root), 0);
    assert_has(out, "\"records\":400,");
    assert_has(out, "\"is_sound\":true}]}\n");
    /* A payload that waits; record 1 is finished. */
    flip("traces/0000000000000003.journal", 3 * JOURNAL_BLOCK_BYTES + 200);
    flip("traces/0000000000000001.journal", 2 * JOURNAL_BLOCK_BYTES + 100);
    assert_int_equal(RUN("verify", root), 1);
    assert_string_equal(problems, "");
    assert_has(out, "logs: 400 records are sound, 0 are missing, 0 places are damaged\n");
    char expected[512];
    snprintf(expected, sizeof(expected),
             "%s/traces/0000000000000001.journal: offset 8192: 1 record is missing, number ", root);
    assert_has(out, expected);
    assert_has(out, "; 0 waited for an exporter\n");
    snprintf(expected, sizeof(expected),
             "%s/traces/0000000000000003.journal: offset 12288: 1 record is missing, number ",
             root);
    assert_has(out, expected);
    assert_has(out, "; 1 waited for an exporter\n");
    assert_has(out, "traces: 398 records are sound, 2 are missing, 1 of which waited for an "
                    "exporter, 2 places are damaged\n");
    assert_int_equal(RUN("verify", "--json", root), 1);
    assert_has(out, "{\"file\":\"0000000000000003.journal\",\"offset\":12288,\"is_end\":false,"
                    "\"first_record\":");
    assert_has(out, "\"missing_records\":2,\"missing_waiting\":1,\"is_sound\":false}]}\n");
    /* The rest can be had. */
    assert_int_equal(RUN("export", root, "--signal", "traces"), 1);
    assert_int_equal(lines_of(out), 380 + 379);
    assert_int_equal(lines_of(problems), 1);
    assert_has(problems, "/traces/0000000000000003.journal: offset 12288: 1 record is missing");
    assert_int_equal(RUN("list", "--json", root), 0);
}

/* Where the last head of a segment lies. */
static long last_head(const char *name, uint64_t number)
{
    static uint8_t file[JOURNAL_SEGMENT_BYTES_MIN];
    char path[PATH_BYTES];
    struct journal_segment_header header;
    struct journal_head head;
    long last = 0;
    snprintf(path, sizeof(path), "%s/%s/%016x.journal", root, name, (unsigned)number);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fread(file, 1, sizeof(file), in), sizeof(file));
    fclose(in);
    assert_true(journal_segment_header_read(file, &header));
    struct journal_place place = {.key = header.key, .segment = number};
    for (place.offset = JOURNAL_BLOCK_BYTES; place.offset < sizeof(file) - JOURNAL_HEAD_BYTES;
         place.offset += JOURNAL_ALIGN_BYTES)
        if (journal_head_read(file + place.offset, &place, &head))
            last = (long)place.offset;
    return last;
}

/* What was being written when the power went looks like damage until the next segment says that
 * nothing is missing. */
static void an_unfinished_end_is_no_loss(void **state)
{
    (void)state;
    struct journal_store *store = journal_at("traces");
    size_t exporter = (size_t)journal_store_exporter(store, "otlp_http");
    append(store, numbered_request(NULL, TRACES, 1, 2), 0);
    journal_store_done(store, exporter, 1, 2);
    journal_store_commit(store, NULL);
    close_stores();
    flip("traces/0000000000000001.journal", last_head("traces", 1) + 20);
    assert_int_equal(RUN("verify", root), 1);
    assert_has(out, ": the end does not verify: damaged, or it was being written when");
    assert_int_equal(RUN("verify", root, "--json"), 1);
    assert_has(out, "\"is_end\":true,\"missing_records\":0");
    assert_int_equal(RUN("export", root), 1);
    assert_has(problems, ": the end does not verify: ");
    assert_int_equal(lines_of(out), 1);
    append(journal_at("traces"), numbered_request(NULL, TRACES, 3, 2), 0);
    close_stores();
    assert_int_equal(RUN("verify", root), 0);
    assert_has(out, "0000000000000001.journal: offset 8192: the end does not verify, no record is "
                    "missing: ");
    assert_has(out, "traces: 2 records are sound, 0 are missing, 0 places are damaged\n");
    assert_int_equal(RUN("export", root), 0);
    assert_int_equal(lines_of(out), 2);
    assert_string_equal(problems, "");
}

static void a_damaged_key_and_other_versions_are_reported(void **state)
{
    (void)state;
    fill("traces");
    flip("traces/key", 3);
    assert_int_equal(RUN("verify", root), 1);
    assert_has(out, "/traces/key: damaged or missing; the segments hold the key, too\n");
    flip("traces/key", 3);
    char path[PATH_BYTES];
    uint8_t block[JOURNAL_BLOCK_BYTES];
    struct journal_segment_header header;
    snprintf(path, sizeof(path), "%s/traces/0000000000000002.journal", root);
    FILE *file = fopen(path, "r+");
    assert_int_equal(fread(block, 1, sizeof(block), file), sizeof(block));
    assert_true(journal_segment_header_read(block, &header));
    header.version = 9;
    journal_segment_header_write(block, &header);
    rewind(file);
    fwrite(block, 1, sizeof(block), file);
    fclose(file);
    assert_int_equal(RUN("verify", root), 2);
    assert_has(out, "/traces/0000000000000002.journal: not read: its format has version 9, this "
                    "program reads up to 1\n");
    assert_int_equal(RUN("export", root), 2);
    assert_has(problems, "0000000000000002.journal is left out: its format has version 9");
    assert_int_equal(RUN("list", root), 0);
    assert_has(out, "0000000000000002.journal (version 9, not read)\n");
}

/* As when segments of one directory were moved into another. */
static void segments_of_another_journal_are_reported(void **state)
{
    char command[2 * PATH_BYTES];
    (void)state;
    fill("traces");
    fill("logs");
    close_stores();
    snprintf(command, sizeof(command),
             "cp %s/logs/0000000000000001.journal %s/traces/0000000000000009.journal", root, root);
    assert_int_equal(system(command), 0);
    assert_int_equal(RUN("verify", root), 2);
    assert_has(out, "/traces/0000000000000009.journal: not read: it is a segment of another "
                    "journal\n");
    assert_int_equal(RUN("verify", "--json", root), 2);
    assert_has(out, "\"version\":1,\"is_of_another_journal\":true}");
    assert_int_equal(RUN("export", root), 2);
    assert_has(problems,
               "0000000000000009.journal is left out: it is a segment of another journal");
    assert_int_equal(RUN("list", root), 0);
    assert_has(out, "0000000000000009.journal (of another journal, not read)\n");
}

static void records_that_are_not_otlp_are_left_out(void **state)
{
    (void)state;
    struct journal_store *store = journal_at("metrics");
    journal_store_exporter(store, "otlp_http");
    append(store, plain_request(NULL, METRICS, slice_of_text("no protobuf"), 1), 0);
    append(store, plain_request(NULL, METRICS, slice_of_text("\x0a"), 1), 0);
    struct random_source random = {.state = 3};
    struct slice request = random_request(&random, METRICS);
    append(store, plain_request(NULL, METRICS, request, 1), 0);
    mem_free((void *)(uintptr_t)request.data);
    assert_int_equal(RUN("export", root), 1);
    assert_int_equal(lines_of(out), 1);
    assert_has(problems, "0000000000000001.journal: offset ");
    assert_has(problems, ": record 2 is left out: it is no OTLP request: ");
    assert_int_equal(RUN("verify", root), 0);
}

/* The directory is opened again to see whether damage lasts: by then the daemon has written it. */
static struct fileops watched;
static const struct fileops *real;
static unsigned lists;
enum { MENDING_LIST = 4 };

static int mend_and_list(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    /* The first finds the journals, the next two are of the first look. */
    if (++lists == MENDING_LIST)
        flip("traces/0000000000000001.journal", 2 * JOURNAL_BLOCK_BYTES + 100);
    return real->list(path, each, arg);
}

static void what_is_being_written_is_no_damage(void **state)
{
    (void)state;
    struct journal_store *store = journal_at("traces");
    journal_store_exporter(store, "otlp_http");
    for (uint64_t i = 0; i < 10; i++)
        append(store, numbered_request(NULL, TRACES, i, 20), 1);
    real = fileops();
    watched = *real;
    watched.list = mend_and_list;
    fileops_replace(&watched);
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/traces", root);
    for (unsigned i = 0; i < 2; i++) {
        lists = 0;
        flip("traces/0000000000000001.journal", 2 * JOURNAL_BLOCK_BYTES + 100);
        assert_int_equal(i == 0 ? RUN("verify", path) : RUN("export", path), 0);
        assert_string_equal(problems, "");
        assert_true(lists >= MENDING_LIST);
    }
    assert_int_equal(lines_of(out), 10);
}

static void mistakes_end_with_status_2(void **state)
{
    (void)state;
    char file[PATH_BYTES];
    char missing[PATH_BYTES];
    snprintf(missing, sizeof(missing), "%s/nowhere", root);
    snprintf(file, sizeof(file), "%s/file", root);
    fclose(fopen(file, "w"));
    const struct {
        const char *words[5];
        const char *problem;
    } rows[] = {
        {{"list", missing}, "nowhere: No such file or directory\n"},
        {{"verify", file}, "file: Not a directory\n"},
        {{"list", root}, "found no journal, expected segments (*.journal), or a directory with"},
        {{"list"}, "journal list: found 0 directories, expected: journal list DIR\n"},
        {{"list", "a", "b"}, "journal list: found 2 directories, expected: journal list DIR\n"},
        {{"lost"},
         "unknown verb \"lost\" for \"journal\": expected list, verify, export or help\n"},
        {{"list", "--all", root}, "--all has no meaning for \"journal list\"\n"},
        {{"export", "--signal", "spans", root}, "--signal: found \"spans\", expected traces, "},
        {{"export", "--exporter"}, "flag needs an argument: --exporter\n"},
        {{"export", "--all", "--exporter=a", root}, "found --all and --exporter, expected one"},
        {{"list", "--frob", root}, "unknown flag: --frob; \"journal help\" lists them\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(run(rows[i].words), 2);
        assert_string_equal(out, "");
        assert_int_equal(strncmp(problems, "Error: ", 7), 0);
        assert_has(problems, rows[i].problem);
    }
    assert_int_equal(access(missing, F_OK), -1);
    assert_int_equal(RUN("help"), 0);
    assert_has(out, "export DIR");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(list_counts_what_waits_for_each_exporter),
        TEST(every_line_of_export_means_what_was_written),
        TEST(long_requests_are_cut_between_their_items),
        TEST(export_writes_what_waits_for_the_named_exporter),
        TEST(verify_finds_what_is_damaged),
        TEST(an_unfinished_end_is_no_loss),
        TEST(a_damaged_key_and_other_versions_are_reported),
        TEST(segments_of_another_journal_are_reported),
        TEST(records_that_are_not_otlp_are_left_out),
        TEST(what_is_being_written_is_no_damage),
        TEST(mistakes_end_with_status_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
