/* SPDX-License-Identifier: Apache-2.0 */
/* What waits: reads the heads of all records, no payload. Main thread. */
#include <assert.h>
#include <inttypes.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/cli/journal/journal_arguments.h"
#include "src/cli/journal/journal_command.h"
#include "src/cli/journal/journal_damage.h"
#include "src/cli/journal/journal_folders.h"
#include "src/cli/profile/value_unit.h"
#include "src/journal/journal_progress.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

/* Records that wait for an exporter. */
struct backlog {
    uint64_t records;
    uint64_t items;
    uint64_t bytes; /* of the requests */
    uint64_t oldest_wall_ns;
};

/* What one journal holds. */
struct contents {
    struct journal_view view;
    struct journal_file *files;
    uint64_t *records; /* of each file */
    size_t files_count;
    size_t file_at; /* of the last record */
    uint64_t bytes; /* of all files */
    struct backlog backlogs[JOURNAL_EXPORTERS_MAX];
    uint64_t missing; /* waiting records that cannot be found */
};

static void on_damage(const struct journal_damage *damage, void *arg)
{
    struct contents *contents = arg;
    contents->missing += journal_damage_waiting(&contents->view, damage);
}

static void count_record(struct contents *contents, const struct journal_stored *stored)
{
    while (contents->files[contents->file_at].segment != stored->segment) {
        contents->file_at++;
        assert(contents->file_at < contents->files_count); /* both are in order */
    }
    contents->records[contents->file_at]++;
    for (size_t i = 0; journal_store_exporter_name(contents->view.store, i) != NULL; i++) {
        struct backlog *backlog = &contents->backlogs[i];
        if (journal_store_is_done(contents->view.store, i, stored->head.id))
            continue;
        if (backlog->records == 0 || stored->head.wall_ns < backlog->oldest_wall_ns)
            backlog->oldest_wall_ns = stored->head.wall_ns;
        backlog->records++;
        backlog->items += stored->head.items;
        backlog->bytes += stored->head.bytes - stored->head.meta_bytes;
    }
}

static void read_contents(struct contents *contents)
{
    struct journal_file file;
    struct journal_stored stored;
    while (journal_store_file(contents->view.store, contents->files_count, &file)) {
        contents->files =
            mem_resize(contents->files, (contents->files_count + 1) * sizeof(contents->files[0]));
        contents->files[contents->files_count++] = file;
        contents->bytes += file.bytes;
    }
    contents->records = mem_zalloc((contents->files_count + 1) * sizeof(contents->records[0]));
    struct journal_reader *reader =
        journal_reader_create(contents->view.store, 0, on_damage, contents);
    journal_reader_set_depth(reader, JOURNAL_HEADS);
    while (journal_reader_next(reader, NULL, &stored) == JOURNAL_READ)
        count_record(contents, &stored);
    journal_reader_destroy(reader);
}

static uint64_t age_of(const struct backlog *backlog)
{
    uint64_t now_ns = clock_wall_ns();
    return now_ns > backlog->oldest_wall_ns ? now_ns - backlog->oldest_wall_ns : 0;
}

static struct value_unit_text bytes_text(uint64_t bytes)
{
    return value_unit_text((int64_t)bytes, slice_of_text("bytes"));
}

static void print_text(FILE *out, const struct contents *contents)
{
    const struct journal_store *store = contents->view.store;
    text_escape_terminal(out, slice_of_text(contents->view.folder->name));
    fputs(": ", out);
    text_escape_terminal(out, slice_of_text(contents->view.folder->path));
    fprintf(out, ", %zu segment%s, %s\n", contents->files_count,
            contents->files_count == 1 ? "" : "s", bytes_text(contents->bytes).text);
    if (contents->missing > 0)
        fprintf(out, "%" PRIu64 " records that wait are missing; \"journal verify\" tells where\n",
                contents->missing);
    fprintf(out, "\n%12s %12s %12s %12s  %s\n", "RECORDS", "ITEMS", "BYTES", "OLDEST",
            "WAITING FOR");
    for (size_t i = 0; journal_store_exporter_name(store, i) != NULL; i++) {
        const struct backlog *backlog = &contents->backlogs[i];
        struct value_unit_text age = {.text = "-"};
        if (backlog->records > 0)
            age = value_unit_text((int64_t)age_of(backlog), slice_of_text("ns"));
        fprintf(out, "%12" PRIu64 " %12" PRIu64 " %12s %12s  ", backlog->records, backlog->items,
                bytes_text(backlog->bytes).text, age.text);
        text_escape_terminal(out, slice_of_text(journal_store_exporter_name(store, i)));
        fputc('\n', out);
    }
    fprintf(out, "\n%12s %12s  %s\n", "RECORDS", "SIZE", "SEGMENT");
    for (size_t i = 0; i < contents->files_count; i++) {
        const struct journal_file *file = &contents->files[i];
        char name[JOURNAL_NAME_BYTES];
        journal_segment_name(name, file->segment);
        fprintf(out, "%12" PRIu64 " %12s  %s", contents->records[i], bytes_text(file->bytes).text,
                name);
        if (file->is_stranger)
            fputs(" (of another journal, not read)", out);
        else if (file->is_foreign)
            fprintf(out, " (version %" PRIu32 ", not read)", file->version);
        fputs(file->is_free ? " (unused)\n" : "\n", out);
    }
}

static void print_json(FILE *out, const struct contents *contents)
{
    const struct journal_store *store = contents->view.store;
    const char *before = "";
    fputs("{\"name\":", out);
    text_escape_json(out, slice_of_text(contents->view.folder->name));
    fputs(",\"directory\":", out);
    text_escape_json(out, slice_of_text(contents->view.folder->path));
    fprintf(out, ",\"bytes\":%" PRIu64 ",\"missing_records\":%" PRIu64 ",\"exporters\":[",
            contents->bytes, contents->missing);
    for (size_t i = 0; journal_store_exporter_name(store, i) != NULL; i++) {
        const struct backlog *backlog = &contents->backlogs[i];
        fprintf(out, "%s{\"name\":", before);
        text_escape_json(out, slice_of_text(journal_store_exporter_name(store, i)));
        fprintf(out, ",\"records\":%" PRIu64 ",\"items\":%" PRIu64 ",\"bytes\":%" PRIu64,
                backlog->records, backlog->items, backlog->bytes);
        if (backlog->records > 0)
            fprintf(out, ",\"oldest_unix_nano\":%" PRIu64 ",\"oldest_age_nano\":%" PRIu64,
                    backlog->oldest_wall_ns, age_of(backlog));
        fputc('}', out);
        before = ",";
    }
    fputs("],\"segments\":[", out);
    for (size_t i = 0; i < contents->files_count; i++) {
        const struct journal_file *file = &contents->files[i];
        char name[JOURNAL_NAME_BYTES];
        journal_segment_name(name, file->segment);
        fprintf(out,
                "%s{\"file\":\"%s\",\"bytes\":%" PRIu64 ",\"records\":%" PRIu64
                ",\"version\":%" PRIu32 ",\"is_unused\":%s}",
                i > 0 ? "," : "", name, file->bytes, contents->records[i], file->version,
                file->is_free ? "true" : "false");
    }
    fputs("]}", out);
}

enum journal_result journal_list(const struct journal_arguments *arguments,
                                 const struct journal_folders *folders, FILE *out, FILE *problems)
{
    enum journal_result result = JOURNAL_FINE;
    bool is_first = true;
    fputs(arguments->is_json ? "{\"journals\":[" : "", out);
    for (size_t i = 0; i < folders->count; i++) {
        struct contents contents = {.files_count = 0};
        struct error error = {.text = ""};
        if (!journal_view_open(&contents.view, &folders->folders[i], &error)) {
            result = journal_problem(problems, &error);
            continue;
        }
        read_contents(&contents);
        if (!is_first)
            fputs(arguments->is_json ? "," : "\n", out);
        is_first = false;
        if (arguments->is_json)
            print_json(out, &contents);
        else
            print_text(out, &contents);
        journal_view_close(&contents.view);
        mem_free(contents.files);
        mem_free(contents.records);
    }
    fputs(arguments->is_json ? "]}\n" : "", out);
    return result;
}
