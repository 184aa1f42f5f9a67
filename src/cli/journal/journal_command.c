/* SPDX-License-Identifier: Apache-2.0 */
/* From the arguments to the exit status. Main thread. */
#include "src/cli/journal/journal_command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "src/base/error.h"
#include "src/cli/journal/journal_arguments.h"
#include "src/cli/journal/journal_folders.h"

enum journal_result journal_problem(FILE *problems, const struct error *error)
{
    fprintf(problems, "Error: %s\n", error->text);
    return JOURNAL_UNREADABLE;
}

int journal_command(const char *program, int count, char **arguments, FILE *out, FILE *problems)
{
    typedef enum journal_result (*verb_fn)(const struct journal_arguments *,
                                           const struct journal_folders *, FILE *, FILE *);
    static const verb_fn verbs[JOURNAL_VERBS] = {[JOURNAL_LIST] = journal_list,
                                                 [JOURNAL_VERIFY] = journal_verify,
                                                 [JOURNAL_EXPORT] = journal_export};
    struct error error = {.text = ""};
    struct journal_arguments parsed;
    struct journal_folders folders;
    if (!journal_arguments_parse(&parsed, count, arguments, &error))
        return (int)journal_problem(problems, &error);
    if (parsed.verb == JOURNAL_HELP) {
        journal_arguments_help(out, program);
        return (int)JOURNAL_FINE;
    }
    enum journal_result result = JOURNAL_UNREADABLE;
    if (journal_folders_find(&folders, parsed.directory, &error))
        result = verbs[parsed.verb](&parsed, &folders, out, problems);
    else
        journal_problem(problems, &error);
    journal_folders_free(&folders);
    if (fflush(out) != 0 || ferror(out)) {
        error_set(&error, "cannot write to standard output: %s", strerror(errno));
        result = journal_problem(problems, &error);
    }
    return (int)result;
}
