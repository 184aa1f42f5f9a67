/* SPDX-License-Identifier: Apache-2.0 */
/* Flags may appear anywhere behind the verb; each verb has its own. Main thread. */
#include "src/cli/journal/journal_arguments.h"

#include <assert.h>
#include <string.h>

#include "src/base/error.h"

#define VERB(verb) (1u << (verb))

enum flag { FLAG_JSON, FLAG_EXPORTER, FLAG_SIGNAL, FLAG_ALL, FLAGS };

static const struct verb_flag flags[FLAGS] = {
    [FLAG_JSON] = {{"--json", NULL, "Print one JSON document instead of text"},
                   VERB(JOURNAL_LIST) | VERB(JOURNAL_VERIFY)},
    [FLAG_EXPORTER] = {{"--exporter", "NAME",
                        "Only what this exporter has not finished: otlp_http/tempo"},
                       VERB(JOURNAL_EXPORT)},
    [FLAG_SIGNAL] = {{"--signal", "traces|metrics|logs|profiles", "Only this signal"},
                     VERB(JOURNAL_EXPORT)},
    [FLAG_ALL] = {{"--all", NULL, "Also what every exporter has finished and is still there"},
                  VERB(JOURNAL_EXPORT)},
};

static const struct verb verbs[JOURNAL_VERBS] = {
    [JOURNAL_HELP] = {"help", "help", "Print this text"},
    [JOURNAL_LIST] = {"list", "list DIR", "What waits for which exporter, and the segments"},
    [JOURNAL_VERIFY] = {"verify", "verify DIR", "Check every record; tell what is damaged, where"},
    [JOURNAL_EXPORT] = {"export", "export DIR", "Print what waits as OTLP/JSON, a request a line"},
};

const struct verb_table journal_verbs = {.command = "journal",
                                         .verbs = verbs,
                                         .verbs_count = JOURNAL_VERBS,
                                         .flags = flags,
                                         .flags_count = FLAGS};

void journal_arguments_help(FILE *out, const char *program)
{
    verb_print_help(
        &journal_verbs, program,
        "DIR is the directory of a file_storage extension, with a journal for each pipeline, or\n"
        "one journal in it. Nothing is written or locked: a daemon may be using it, and what is\n"
        "printed may then be a moment old.\n\n"
        "Lines of export can be sent by hand (POST to /v1/traces and so on) or read by the Go\n"
        "collector's otlpjsonfile receiver.\n\n"
        "Exit status: 0 after success, 1 if something is damaged (verify, export), 2 if something\n"
        "cannot be read.\n",
        out);
}

static bool parse_flag(struct journal_arguments *parsed, int count, char **arguments, int *index,
                       struct error *error)
{
    const char *value;
    size_t flag;
    if (!verb_flag_parse(&journal_verbs, parsed->verb, count, arguments, index, &flag, &value,
                         error))
        return false;
    switch ((enum flag)flag) {
    case FLAG_JSON:
        parsed->is_json = true;
        return true;
    case FLAG_EXPORTER:
        parsed->exporter = value;
        return true;
    case FLAG_SIGNAL:
        for (unsigned i = 0; i < SIGNAL_KINDS; i++)
            if (strcmp(value, signal_name((enum signal_kind)i)) == 0) {
                parsed->signal = (enum signal_kind)i;
                return true;
            }
        return error_set(
            error, "--signal: found \"%s\", expected traces, metrics, logs or profiles", value);
    case FLAG_ALL:
        parsed->is_all = true;
        return true;
    case FLAGS:
        break;
    }
    return false;
}

bool journal_arguments_parse(struct journal_arguments *parsed, int count, char **arguments,
                             struct error *error)
{
    assert(count >= 0);
    *parsed = (struct journal_arguments){.signal = SIGNAL_KINDS};
    if (count == 0)
        return true;
    unsigned verb;
    if (!verb_find(&journal_verbs, arguments[0], &verb, error))
        return false;
    parsed->verb = (enum journal_verb)verb;
    size_t directories = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
            parsed->verb = JOURNAL_HELP;
            return true;
        }
        bool is_flag = arguments[i][0] == '-' && arguments[i][1] != '\0';
        if (is_flag && !parse_flag(parsed, count, arguments, &i, error))
            return false;
        if (!is_flag) {
            parsed->directory = arguments[i];
            directories++;
        }
    }
    if (directories != 1 && parsed->verb != JOURNAL_HELP)
        return error_set(error, "journal %s: found %zu directories, expected: journal %s",
                         verbs[verb].name, directories, verbs[verb].usage);
    if (parsed->is_all && parsed->exporter != NULL)
        return error_set(error, "journal export: found --all and --exporter, expected one of them");
    return true;
}
