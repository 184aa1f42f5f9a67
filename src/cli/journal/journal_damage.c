/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon writes to the newest segment only, one group at a time and never twice to the same
 * place; so what does not verify there is damage if it still does not after a moment. Main thread
 * of a command. */
#include "src/cli/journal/journal_damage.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text_escape.h"

enum { MOMENT_NS = 100 * NS_PER_MS };
/* Of more missing records each counts as waiting. */
enum { MISSING_COUNTED_MAX = 1 << 20 };

struct journal_judge journal_judge_of(const struct journal_view *view)
{
    return (struct journal_judge){.view = view, .newest = journal_view_newest(view)};
}

/* The damage that is looked for. */
struct search {
    const struct journal_damage *damage;
    bool is_found;
};

static bool is_same(const struct journal_damage *a, const struct journal_damage *b)
{
    return a->segment == b->segment && a->offset == b->offset;
}

static void compare(const struct journal_damage *damage, void *arg)
{
    struct search *search = arg;
    search->is_found |= is_same(damage, search->damage);
}

static bool is_still_there(const struct journal_folder *folder, const struct journal_damage *damage)
{
    struct error error;
    struct journal_view view;
    struct journal_stored stored;
    struct search search = {.damage = damage};
    if (!journal_view_open(&view, folder, &error))
        return true;
    struct journal_damage tail = journal_store_tail(view.store);
    search.is_found = is_same(&tail, damage);
    /* One record earlier, so that the segment is read even when nothing follows. */
    uint64_t first = damage->first > 1 ? damage->first - 1 : 1;
    struct journal_reader *reader = journal_reader_create(view.store, first, compare, &search);
    journal_reader_set_depth(reader, JOURNAL_CHECKS);
    while (!search.is_found && journal_reader_next(reader, NULL, &stored) == JOURNAL_READ)
        ;
    journal_reader_destroy(reader);
    journal_view_close(&view);
    return search.is_found;
}

bool journal_damage_lasts(struct journal_judge *judge, const struct journal_damage *damage)
{
    if (damage->segment != judge->newest || judge->looks == JOURNAL_LOOKS_MAX)
        return true;
    judge->looks++;
    nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
    return is_still_there(judge->view->folder, damage);
}

bool journal_tail_lasts(struct journal_judge *judge, struct journal_damage *ret_damage)
{
    *ret_damage = journal_store_tail(judge->view->store);
    return ret_damage->records > 0 && journal_damage_lasts(judge, ret_damage);
}

uint64_t journal_damage_waiting(const struct journal_view *view,
                                const struct journal_damage *damage)
{
    uint64_t low = journal_view_low(view);
    uint64_t end = damage->first + damage->records;
    uint64_t first = damage->first > low ? damage->first : low;
    uint64_t waiting = 0;
    if (first >= end || end - first > MISSING_COUNTED_MAX)
        return first < end ? end - first : 0;
    for (uint64_t id = first; id < end; id++)
        waiting += journal_view_waits(view, id);
    return waiting;
}

void journal_damage_print(FILE *out, const struct journal_view *view,
                          const struct journal_damage *damage, bool is_tail)
{
    char file[JOURNAL_NAME_BYTES];
    journal_segment_name(file, damage->segment);
    text_escape_terminal(out, slice_of_text(view->folder->path));
    fprintf(out, "/%s: offset %" PRIu64 ": ", file, damage->offset);
    if (is_tail) {
        fputs("the end does not verify: damaged, or it was being written when the process or the "
              "machine stopped\n",
              out);
    } else if (damage->is_end) {
        fputs(
            "the end does not verify, no record is missing: it was being written when the process "
            "or the machine stopped, or is a damaged note of what exporters have finished\n",
            out);
    } else if (damage->records == 0) {
        fputs("damaged, no record is missing\n", out);
    } else {
        uint64_t waiting = journal_damage_waiting(view, damage);
        fprintf(out, "%" PRIu64 " record%s missing, number %" PRIu64, damage->records,
                damage->records == 1 ? " is" : "s are", damage->first);
        if (damage->records > 1)
            fprintf(out, " to %" PRIu64, damage->first + damage->records - 1);
        fprintf(out, "; %" PRIu64 " waited for an exporter\n", waiting);
    }
}
