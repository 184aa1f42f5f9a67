/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs and flags of `spanflame journal` mean. Main thread. */
#include "src/cli/journal/journal_arguments.h"

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

static bool take_flag(void *arg, size_t flag, const char *value, struct error *error)
{
    struct journal_arguments *parsed = arg;
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
    unsigned verb;
    size_t directories;
    *parsed = (struct journal_arguments){.signal = SIGNAL_KINDS};
    if (!verb_parse(&journal_verbs, count, arguments, take_flag, parsed, &verb, &directories,
                    error))
        return false;
    parsed->verb = (enum journal_verb)verb;
    parsed->directory = directories > 0 ? arguments[0] : NULL;
    if (directories != 1 && parsed->verb != JOURNAL_HELP)
        return error_set(error, "journal %s: found %zu directories, expected: journal %s",
                         verbs[verb].name, directories, verbs[verb].usage);
    if (parsed->is_all && parsed->exporter != NULL && parsed->verb != JOURNAL_HELP)
        return error_set(error, "journal export: found --all and --exporter, expected one of them");
    return true;
}
