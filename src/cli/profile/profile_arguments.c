/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs and flags of `spanflame profile` mean. Main thread. */
#include "src/cli/profile/profile_arguments.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/cli/profile/report_limits.h"

enum { ROWS_MAX = 1000000 };

#define VERB(verb) (1u << (verb))

enum flag { FLAG_JSON, FLAG_TOP, FLAG_TYPE, FLAG_FLAMEGRAPH, FLAG_TO, FLAG_OUTPUT, FLAGS };

static const struct verb_flag flags[FLAGS] = {
    [FLAG_JSON] = {{"--json", NULL, "Print one JSON document instead of tables"},
                   VERB(VERB_SHOW) | VERB(VERB_DIFF)},
    [FLAG_TOP] = {{"--top", "N", "Rows of each table; 0 prints all (tables: 20, JSON: all)"},
                  VERB(VERB_SHOW) | VERB(VERB_DIFF)},
    [FLAG_TYPE] = {{"--type", "TYPE", "Only that value type: cpu, or cpu:nanoseconds"},
                   VERB(VERB_SHOW) | VERB(VERB_DIFF)},
    [FLAG_FLAMEGRAPH] = {{"--flamegraph", "FILE",
                          "Also write a flame graph of one type as SVG (of the last one, without "
                          "--type)"},
                         VERB(VERB_SHOW)},
    [FLAG_TO] = {{"--to", "FORMAT",
                  "pprof, otlp or otlp-json; without it the name of the output decides"},
                 VERB(VERB_CONVERT) | VERB(VERB_MERGE)},
    [FLAG_OUTPUT] = {{"-o", "FILE", "Where to write to"}, VERB(VERB_CONVERT) | VERB(VERB_MERGE)},
};

static const struct verb verbs[PROFILE_VERBS] = {
    [VERB_HELP] = {"help", "help", "Print this text"},
    [VERB_SHOW] = {"show", "show FILE", "Types, totals, functions, labels and links of a profile"},
    [VERB_CONVERT] = {"convert", "convert IN OUT",
                      "pprof to OTLP, OTLP to pprof, either to OTLP/JSON"},
    [VERB_MERGE] = {"merge", "merge A B... -o OUT", "Several profiles into one file"},
    [VERB_DIFF] = {"diff", "diff BEFORE AFTER", "What has changed, function by function"},
};

const struct verb_table profile_verbs = {.command = "profile",
                                         .verbs = verbs,
                                         .verbs_count = PROFILE_VERBS,
                                         .flags = flags,
                                         .flags_count = FLAGS};

void profile_arguments_help(FILE *out, const char *program)
{
    verb_print_help(
        &profile_verbs, program,
        "Files are pprof (bare or gzip) or OTLP profiles (protobuf, layouts 1.7 to 1.11, or\n"
        "JSON). Names that end in .pprof, .prof or .pb.gz are written as pprof, those in .otlp,\n"
        ".otlp.pb, .otlp.gz or .binpb as OTLP, those in .json or .json.gz as OTLP/JSON.\n",
        out);
}

static bool take_flag(void *arg, size_t flag, const char *value, struct error *error)
{
    struct profile_arguments *parsed = arg;
    static const char *const formats[PROFILE_FORMATS] = {
        [FORMAT_PPROF] = "pprof", [FORMAT_OTLP] = "otlp", [FORMAT_OTLP_JSON] = "otlp-json"};
    switch ((enum flag)flag) {
    case FLAG_JSON:
        parsed->is_json = true;
        return true;
    case FLAG_TOP: {
        char *end;
        errno = 0;
        long rows = strtol(value, &end, 10);
        if (errno != 0 || end == value || *end != '\0' || rows < 0 || rows > ROWS_MAX)
            return error_set(error,
                             "--top: found \"%s\", expected a number of rows from 0 (all) to %d",
                             value, ROWS_MAX);
        parsed->rows_max = (size_t)rows;
        parsed->has_rows_max = true;
        return true;
    }
    case FLAG_TYPE:
        if (value[0] == '\0')
            return error_set(error,
                             "--type: expected a value type, such as cpu or cpu:nanoseconds");
        parsed->type = value;
        return true;
    case FLAG_FLAMEGRAPH:
        parsed->flamegraph = value;
        return true;
    case FLAG_TO:
        for (unsigned i = 0; i < PROFILE_FORMATS; i++)
            if (strcmp(value, formats[i]) == 0) {
                parsed->to = (enum profile_format)i;
                return true;
            }
        return error_set(error, "--to: found \"%s\", expected pprof, otlp or otlp-json", value);
    case FLAG_OUTPUT:
        if (parsed->output != NULL)
            return error_set(error, "-o: found twice, expected one file to write to");
        parsed->output = value;
        return true;
    case FLAGS:
        break;
    }
    return false;
}

bool profile_arguments_parse(struct profile_arguments *parsed, int count, char **arguments,
                             struct error *error)
{
    unsigned verb;
    *parsed = (struct profile_arguments){.to = PROFILE_FORMATS, .files = arguments};
    if (!verb_parse(&profile_verbs, count, arguments, take_flag, parsed, &verb,
                    &parsed->files_count, error))
        return false;
    parsed->verb = (enum profile_verb)verb;
    /* The number of files, and where the output goes. */
    static const struct {
        size_t min;
        size_t max;
    } counts[PROFILE_VERBS] = {
        [VERB_HELP] = {0, 0},    [VERB_SHOW] = {1, 1},
        [VERB_CONVERT] = {1, 1}, [VERB_MERGE] = {1, PROFILE_FILES_MAX},
        [VERB_DIFF] = {2, 2},
    };
    bool is_written = parsed->verb == VERB_CONVERT || parsed->verb == VERB_MERGE;
    assert(parsed->verb < PROFILE_VERBS);
    if (parsed->verb == VERB_CONVERT && parsed->output == NULL && parsed->files_count == 2)
        parsed->output = parsed->files[--parsed->files_count];
    if (parsed->files_count < counts[parsed->verb].min ||
        parsed->files_count > counts[parsed->verb].max || (is_written && parsed->output == NULL))
        return error_set(error, "profile %s: found %zu files%s, expected: profile %s",
                         verbs[parsed->verb].name, parsed->files_count,
                         is_written && parsed->output == NULL ? " and nothing to write to" : "",
                         verbs[parsed->verb].usage);
    if (is_written && parsed->to == PROFILE_FORMATS &&
        !profile_format_of_name(parsed->output, &parsed->to))
        return error_set(error,
                         "%s: the name does not say what to write; add --to pprof, --to otlp or "
                         "--to otlp-json, or end it in .pb.gz, .otlp or .json",
                         parsed->output);
    return true;
}
