/* SPDX-License-Identifier: Apache-2.0 */
/* Records as OTLP/JSON, one request a line, oldest first; one record in memory at a time. Main
 * thread. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/text_escape.h"
#include "src/cli/journal/journal_arguments.h"
#include "src/cli/journal/journal_command.h"
#include "src/cli/journal/journal_damage.h"
#include "src/cli/journal/journal_folders.h"
#include "src/core/batch.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/split.h"

/* The longest line that the Go collector's otlpjsonfile takes by default (max_log_size). A request
 * that is longer is cut between its items, except profiles, which share a dictionary. */
enum { LINE_BYTES_MAX = 1 << 20 };

struct export
{
    const struct journal_arguments *arguments;
    struct journal_view view;
    struct journal_judge judge;
    FILE *out;
    FILE *problems;
    enum journal_result result;
};

static void note(struct export *export, enum journal_result result)
{
    export->result = result > export->result ? result : export->result;
}

/* Takes over the batch. False: no memory. Each cut leaves at most half of the items, which bounds
 * the recursion. */
static bool write_lines(struct export *export, struct batch *batch)
{
    bool is_written = true;
    while (batch != NULL && is_written) {
        struct batch *head = batch;
        struct batch *tail = NULL;
        struct buffer *text = json_write_batch(batch, NULL);
        bool is_long = text != NULL && text->size >= LINE_BYTES_MAX && batch->items > 1 &&
                       batch->signal != PROFILES;
        if (is_long) {
            /* Lines of half the length, as items are not of one size. */
            uint64_t items = batch->items / (2 * text->size / LINE_BYTES_MAX);
            otlp_split(batch, (struct otlp_limit){.items_max = items > 0 ? items : 1}, NULL, &head,
                       &tail);
            batch_unref(batch);
            is_written = write_lines(export, head);
        } else if (text == NULL) {
            is_written = false;
            batch_unref(batch);
        } else {
            fwrite(text->data, 1, text->size, export->out);
            fputc('\n', export->out);
            batch_unref(batch);
        }
        buffer_unref(text);
        batch = tail;
    }
    batch_unref(batch);
    return is_written;
}

static void print_place(struct export *export, const struct journal_stored *stored)
{
    char file[JOURNAL_NAME_BYTES];
    journal_segment_name(file, stored->segment);
    text_escape_terminal(export->problems, slice_of_text(export->view.folder->path));
    fprintf(export->problems, "/%s: offset %" PRIu64 ": record %" PRIu64, file, stored->offset,
            stored->head.id);
}

/* Writes a record that was read, if it is wanted. Takes over the payload. */
static void write_record(struct export *export, const struct journal_stored *stored,
                         size_t exporter)
{
    const struct journal_arguments *arguments = export->arguments;
    const struct journal_head *head = &stored->head;
    struct buffer *payload = stored->payload;
    struct slice request =
        slice_of(payload->data + head->meta_bytes, payload->size - head->meta_bytes);
    struct otlp_figures figures;
    const char *reason = "";
    bool is_wanted = request.size > 0 && (arguments->signal == SIGNAL_KINDS ||
                                          head->signal == (unsigned)arguments->signal);
    if (arguments->exporter != NULL)
        is_wanted = is_wanted && !journal_store_is_done(export->view.store, exporter, head->id);
    else if (!arguments->is_all)
        is_wanted = is_wanted && journal_view_waits(&export->view, head->id);
    if (is_wanted && head->signal >= SIGNAL_KINDS) {
        print_place(export, stored);
        fprintf(export->problems, " is left out: its signal has number %u, expected up to %d\n",
                head->signal, SIGNAL_KINDS - 1);
        note(export, JOURNAL_UNREADABLE);
    } else if (is_wanted &&
               !otlp_check((enum signal_kind)head->signal, request, &figures, &reason)) {
        print_place(export, stored);
        fprintf(export->problems, " is left out: it is no OTLP request: %s\n", reason);
        note(export, JOURNAL_DAMAGED);
    } else if (is_wanted) {
        struct batch *batch = batch_create((enum signal_kind)head->signal, 1);
        batch_append(batch, payload, request);
        batch->items = figures.items;
        if (!write_lines(export, batch)) {
            print_place(export, stored);
            fputs(" is left out: no memory for it as JSON\n", export->problems);
            note(export, JOURNAL_UNREADABLE);
        }
    }
    buffer_unref(payload);
}

/* Records that were being written when they were read first; from first to end, exclusive. */
static void export_again(struct export *export, size_t exporter, uint64_t first, uint64_t end);

struct damage_context {
    struct export *export;
    size_t exporter;
    bool is_silent;
};

static void on_damage(const struct journal_damage *damage, void *arg)
{
    struct damage_context *context = arg;
    struct export *export = context->export;
    if (context->is_silent)
        return;
    if (!journal_damage_lasts(&export->judge, damage)) {
        export_again(export, context->exporter, damage->first, damage->first + damage->records);
        return;
    }
    journal_damage_print(export->problems, &export->view, damage, false);
    note(export, JOURNAL_DAMAGED);
}

/* Writes the records from first to end. False: no memory for one. */
static bool export_range(struct damage_context *context, uint64_t first, uint64_t end)
{
    struct export *export = context->export;
    struct journal_stored stored;
    enum journal_read read;
    struct journal_reader *reader =
        journal_reader_create(export->view.store, first, on_damage, context);
    while ((read = journal_reader_next(reader, NULL, &stored)) == JOURNAL_READ) {
        if (stored.head.id >= end) {
            buffer_unref(stored.payload);
            break;
        }
        write_record(export, &stored, context->exporter);
        if (ferror(export->out))
            break;
    }
    journal_reader_destroy(reader);
    return read != JOURNAL_READ_BUSY;
}

static void export_again(struct export *export, size_t exporter, uint64_t first, uint64_t end)
{
    struct damage_context context = {.export = export, .exporter = exporter, .is_silent = true};
    export_range(&context, first, end);
}

static void export_journal(struct export *export, size_t exporter)
{
    const struct journal_arguments *arguments = export->arguments;
    struct journal_store *store = export->view.store;
    struct damage_context context = {.export = export, .exporter = exporter};
    struct journal_damage tail;
    struct journal_file file;
    struct error error;
    uint64_t first = journal_view_low(&export->view);
    if (arguments->exporter != NULL)
        first = journal_store_low(store, exporter);
    export->judge = journal_judge_of(&export->view);
    for (size_t i = 0; journal_store_file(store, i, &file); i++) {
        char name[JOURNAL_NAME_BYTES];
        char why[JOURNAL_WHY_BYTES];
        if (!file.is_foreign)
            continue;
        journal_segment_name(name, file.segment);
        journal_why_foreign(&file, why);
        error_set(&error, "%s/%s is left out: %s", export->view.folder->path, name, why);
        note(export, journal_problem(export->problems, &error));
    }
    if (!export_range(&context, arguments->is_all ? 0 : first, UINT64_MAX)) {
        error_set(&error, "%s: no memory for a record; what follows it is left out",
                  export->view.folder->path);
        note(export, journal_problem(export->problems, &error));
    }
    if (journal_tail_lasts(&export->judge, &tail)) {
        journal_damage_print(export->problems, &export->view, &tail, true);
        note(export, JOURNAL_DAMAGED);
    }
}

/* Its place in the journal. False: the journal does not know it. */
static bool find_exporter(const struct journal_store *store, const char *wanted, size_t *ret_index)
{
    *ret_index = 0;
    for (const char *name; wanted != NULL; ++*ret_index) {
        name = journal_store_exporter_name(store, *ret_index);
        if (name == NULL || strcmp(name, wanted) == 0)
            return name != NULL;
    }
    return true;
}

enum journal_result journal_export(const struct journal_arguments *arguments,
                                   const struct journal_folders *folders, FILE *out, FILE *problems)
{
    struct export export = {.arguments = arguments, .out = out, .problems = problems};
    struct error error = {.text = ""};
    bool is_known = false;
    for (size_t i = 0; i < folders->count && !ferror(out); i++) {
        size_t exporter;
        if (!journal_view_open(&export.view, &folders->folders[i], &error)) {
            note(&export, journal_problem(problems, &error));
            is_known = true; /* perhaps */
            continue;
        }
        if (find_exporter(export.view.store, arguments->exporter, &exporter)) {
            is_known = true;
            export_journal(&export, exporter);
        }
        journal_view_close(&export.view);
    }
    if (!is_known) {
        error_set(&error, "%s: found no exporter \"%s\"; \"journal list\" shows them",
                  arguments->directory, arguments->exporter);
        note(&export, journal_problem(problems, &error));
    }
    return export.result;
}
