/* SPDX-License-Identifier: Apache-2.0 */
/* Whether every record is sound: reads and checks all of it, piece by piece. Main thread. */
#include <inttypes.h>

#include "src/base/error.h"
#include "src/base/text_escape.h"
#include "src/cli/journal/journal_arguments.h"
#include "src/cli/journal/journal_command.h"
#include "src/cli/journal/journal_damage.h"
#include "src/cli/journal/journal_folders.h"
#include "src/journal/journal_format.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

/* Findings about one journal. */
struct findings {
    struct journal_view view;
    struct journal_judge judge;
    FILE *out;
    bool is_json;
    uint64_t printed;
    uint64_t damages; /* of those that are printed; the others are ends without a loss */
    uint64_t missing;
    uint64_t missing_waiting;
};

static void report(struct findings *findings, const struct journal_damage *damage, bool is_tail)
{
    if (!findings->is_json) {
        journal_damage_print(findings->out, &findings->view, damage, is_tail);
    } else {
        char file[JOURNAL_NAME_BYTES];
        journal_segment_name(file, damage->segment);
        fprintf(findings->out, "%s{\"file\":\"%s\",\"offset\":%" PRIu64 ",\"is_end\":%s",
                findings->printed > 0 ? "," : "", file, damage->offset,
                is_tail || damage->is_end ? "true" : "false");
        if (damage->records > 0 && !is_tail)
            fprintf(findings->out, ",\"first_record\":%" PRIu64, damage->first);
        fprintf(findings->out, ",\"missing_records\":%" PRIu64 ",\"missing_waiting\":%" PRIu64 "}",
                is_tail ? 0 : damage->records,
                is_tail ? 0 : journal_damage_waiting(&findings->view, damage));
    }
    findings->printed++;
    findings->damages += !damage->is_end;
    findings->missing += is_tail ? 0 : damage->records;
    findings->missing_waiting += is_tail ? 0 : journal_damage_waiting(&findings->view, damage);
}

static void on_damage(const struct journal_damage *damage, void *arg)
{
    struct findings *findings = arg;
    if (journal_damage_lasts(&findings->judge, damage))
        report(findings, damage, false);
}

/* Segments of another version. Returns how many there are. */
static uint64_t print_foreign(const struct findings *findings)
{
    struct journal_file file;
    uint64_t count = 0;
    for (size_t i = 0; journal_store_file(findings->view.store, i, &file); i++) {
        char name[JOURNAL_NAME_BYTES];
        char why[JOURNAL_WHY_BYTES];
        if (!file.is_foreign)
            continue;
        count++;
        journal_segment_name(name, file.segment);
        if (findings->is_json) {
            fprintf(findings->out, "%s{\"file\":\"%s\",\"version\":%" PRIu32 "%s}",
                    count > 1 ? "," : "", name, file.version,
                    file.is_stranger ? ",\"is_of_another_journal\":true" : "");
            continue;
        }
        text_escape_terminal(findings->out, slice_of_text(findings->view.folder->path));
        journal_why_foreign(&file, why);
        fprintf(findings->out, "/%s: not read: %s\n", name, why);
    }
    return count;
}

static enum journal_result verify(struct findings *findings)
{
    FILE *out = findings->out;
    struct journal_stored stored;
    struct journal_damage tail;
    uint64_t records = 0;
    uint64_t bytes = 0;
    const struct journal_folder *folder = findings->view.folder;
    findings->judge = journal_judge_of(&findings->view);
    if (findings->is_json) {
        fputs("{\"name\":", out);
        text_escape_json(out, slice_of_text(folder->name));
        fputs(",\"directory\":", out);
        text_escape_json(out, slice_of_text(folder->path));
        fputs(",\"damage\":[", out);
    }
    struct journal_reader *reader =
        journal_reader_create(findings->view.store, 0, on_damage, findings);
    journal_reader_set_depth(reader, JOURNAL_CHECKS);
    while (journal_reader_next(reader, NULL, &stored) == JOURNAL_READ) {
        records++;
        bytes += stored.head.bytes;
    }
    journal_reader_destroy(reader);
    if (journal_tail_lasts(&findings->judge, &tail))
        report(findings, &tail, true);
    fputs(findings->is_json ? "],\"not_read\":[" : "", out);
    uint64_t foreign = print_foreign(findings);
    bool has_key = journal_store_has_key_file(findings->view.store);
    bool is_sound = findings->damages == 0 && has_key;
    if (findings->is_json) {
        fprintf(out,
                "],\"has_key_file\":%s,\"records\":%" PRIu64 ",\"bytes\":%" PRIu64
                ",\"missing_records\":%" PRIu64 ",\"missing_waiting\":%" PRIu64 ",\"is_sound\":%s}",
                has_key ? "true" : "false", records, bytes, findings->missing,
                findings->missing_waiting, is_sound && foreign == 0 ? "true" : "false");
    } else {
        if (!has_key) {
            text_escape_terminal(out, slice_of_text(folder->path));
            fputs("/key: damaged or missing; the segments hold the key, too\n", out);
        }
        text_escape_terminal(out, slice_of_text(folder->name));
        fprintf(out, ": %" PRIu64 " records are sound, %" PRIu64 " are missing", records,
                findings->missing);
        if (findings->missing > 0)
            fprintf(out, ", %" PRIu64 " of which waited for an exporter",
                    findings->missing_waiting);
        fprintf(out, ", %" PRIu64 " places are damaged\n", findings->damages);
    }
    return foreign > 0 ? JOURNAL_UNREADABLE : is_sound ? JOURNAL_FINE : JOURNAL_DAMAGED;
}

enum journal_result journal_verify(const struct journal_arguments *arguments,
                                   const struct journal_folders *folders, FILE *out, FILE *problems)
{
    enum journal_result worst = JOURNAL_FINE;
    bool is_first = true;
    fputs(arguments->is_json ? "{\"journals\":[" : "", out);
    for (size_t i = 0; i < folders->count; i++) {
        struct findings findings = {.out = out, .is_json = arguments->is_json};
        struct error error = {.text = ""};
        enum journal_result result;
        if (journal_view_open(&findings.view, &folders->folders[i], &error)) {
            fputs(arguments->is_json && !is_first ? "," : "", out);
            is_first = false;
            result = verify(&findings);
            journal_view_close(&findings.view);
        } else {
            result = journal_problem(problems, &error);
        }
        worst = result > worst ? result : worst;
    }
    fputs(arguments->is_json ? "]}\n" : "", out);
    return worst;
}
