/* SPDX-License-Identifier: Apache-2.0 */
/* What is no filter is handled by name; all others go into the query. Main thread. */
#include "src/cli/explore/explore_arguments.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/explore/explore_query.h"

#define VERB(verb) (1u << (verb))
#define EVERY_VERB (~0u)

#define ROWS_OF_CONNECTION                                                                         \
    {{"--url", "URL",                                                                              \
      "Address of the page, as the start prints it (SPANFLAME_EXPLORE_URL; "                       \
      "http://localhost:4620/)"},                                                                  \
     EVERY_VERB},                                                                                  \
        {{"--token", "TOKEN",                                                                      \
          "The token that the start prints, or of auth (SPANFLAME_EXPLORE_TOKEN)"},                \
         EVERY_VERB},                                                                              \
        {{"--user", "NAME:PASS", "Of auth with a password (SPANFLAME_EXPLORE_USER)"}, EVERY_VERB}, \
        {{"--ca", "FILE", "Certificates that the daemon's is signed by"}, EVERY_VERB},             \
    {                                                                                              \
        {"--insecure", NULL, "Take any certificate"}, EVERY_VERB                                   \
    }
#define ROWS_OF_TIME(verbs)                                                                        \
    {{"--start", "NS", "From this time on, in unix nanoseconds"}, verbs},                          \
        {{"--end", "NS", "Before this time"}, verbs},                                              \
    {                                                                                              \
        {"--last", "DURATION", "Of the last 15m, 1h …, in place of --start"}, verbs                \
    }

#define FILTERED VERB(TRACES_LIST)
static const struct verb_flag traces_flags[] = {
    {{"--service", "NAME", "With a span of this service"}, FILTERED | VERB(TRACES_NAMES)},
    {{"--name", "NAME", "With a span of this name"}, FILTERED},
    {{"--attr", "KEY=VALUE", "With this attribute of that span; may be repeated"}, FILTERED},
    {{"--min", "DURATION", "Of at least this duration: 250ms"}, FILTERED},
    {{"--max", "DURATION", "Of at most this duration"}, FILTERED},
    {{"--error", NULL, "With an error"}, FILTERED},
    {{"--profile", NULL, "With samples of a profile"}, FILTERED},
    ROWS_OF_TIME(FILTERED | VERB(TRACES_NAMES)),
    {{"--before", "CURSOR", "Older than the trace of this cursor (--json shows them)"}, FILTERED},
    {{"--limit", "ROWS", "At most so many rows"},
     VERB(TRACES_LIST) | VERB(TRACES_SHOW) | VERB(TRACES_NAMES)},
    {{"--json", NULL, "Print the JSON of the HTTP API"}, ~VERB(TRACES_SAVE)},
    {{"-o", "FILE", "Write to a file"}, VERB(TRACES_SAVE)},
    ROWS_OF_CONNECTION,
};

#define PICKED (~VERB(FLAME_DIFF))
static const struct verb_flag flame_flags[] = {
    {{"--trace", "ID", "Samples of this trace"}, PICKED},
    {{"--span", "ID", "Of this span of it, or of several with commas"}, PICKED},
    {{"--subtree", NULL, "And of the spans below"}, PICKED},
    {{"--not-trace", "ID", "Of all other traces of its root's name"}, PICKED},
    {{"--service", "NAME", "Of this service"}, PICKED},
    {{"--name", "NAME", "Of spans with this name, and below"}, PICKED},
    {{"--slow", "0|1", "1: of the slowest 5 % of them; 0: of the others"}, PICKED},
    ROWS_OF_TIME(PICKED),
    {{"--type", "TYPE", "cpu, wall, alloc_space …; else the one with the most samples"},
     EVERY_VERB},
    {{"--limit", "ROWS", "At most so many rows"},
     VERB(FLAME_TOP) | VERB(FLAME_TREE) | VERB(FLAME_DIFF)},
    {{"--json", NULL, "Print the JSON of the HTTP API"},
     VERB(FLAME_TOP) | VERB(FLAME_TREE) | VERB(FLAME_DIFF)},
    {{"-o", "FILE", "Write to a file"}, VERB(FLAME_FOLDED) | VERB(FLAME_PPROF)},
    ROWS_OF_CONNECTION,
};

static const struct verb traces_words[TRACES_VERBS] = {
    [TRACES_HELP] = {"help", "help", "Print this text"},
    [TRACES_LIST] = {"list", "list", "Traces, newest first"},
    [TRACES_SHOW] = {"show", "show ID", "A trace with its spans as they lie in each other"},
    [TRACES_SERVICES] = {"services", "services", "Services with their traces, spans and errors"},
    [TRACES_NAMES] = {"names", "names", "Spans by name: rate, errors, quantiles, CPU per call"},
    [TRACES_SAVE] = {"save", "save ID", "A trace as OTLP/JSON"},
};

static const struct verb flame_words[FLAME_VERBS] = {
    [FLAME_HELP] = {"help", "help", "Print this text"},
    [FLAME_TOP] = {"top", "top", "Functions by what they take themselves"},
    [FLAME_TREE] = {"tree", "tree", "Who calls whom, the largest first"},
    [FLAME_DIFF] = {"diff", "diff A B", "Functions of two queries: 'service=cart&slow=0'"},
    [FLAME_FOLDED] = {"folded", "folded", "Folded stacks"},
    [FLAME_PPROF] = {"pprof", "pprof", "A pprof file, gzip-compressed"},
};

const struct verb_table traces_verbs = {
    .command = "traces",
    .verbs = traces_words,
    .verbs_count = TRACES_VERBS,
    .flags = traces_flags,
    .flags_count = sizeof(traces_flags) / sizeof(traces_flags[0]),
};
const struct verb_table flame_verbs = {
    .command = "flame",
    .verbs = flame_words,
    .verbs_count = FLAME_VERBS,
    .flags = flame_flags,
    .flags_count = sizeof(flame_flags) / sizeof(flame_flags[0]),
};

void explore_arguments_help(const struct verb_table *table, FILE *out, const char *program)
{
    verb_print_help(table, program,
                    "Asks the explore extension of a running daemon. Filters mean what they mean "
                    "in the\naddress of its page; docs/explore.md describes the HTTP API behind "
                    "it.\n",
                    out);
}

/* As a component of a URL's query: all but RFC 3986's unreserved characters become %XX. */
static bool add_escaped(struct explore_arguments *parsed, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text != '\0'; text++) {
        if (parsed->query_size + sizeof("%XX") > sizeof(parsed->query))
            return false;
        if (strchr(plain, *text) != NULL)
            parsed->query[parsed->query_size++] = *text;
        else
            parsed->query_size += (size_t)snprintf(parsed->query + parsed->query_size,
                                                   sizeof("%XX"), "%%%02X", (uint8_t)*text);
    }
    parsed->query[parsed->query_size] = '\0';
    return true;
}

bool explore_arguments_add(struct explore_arguments *parsed, const char *key, const char *value,
                           struct error *error)
{
    size_t size = parsed->query_size;
    if (size > 0)
        parsed->query[parsed->query_size++] = '&';
    bool has_room = parsed->query_size + strlen(key) + 2 < sizeof(parsed->query);
    if (has_room) {
        parsed->query_size +=
            (size_t)snprintf(parsed->query + parsed->query_size,
                             sizeof(parsed->query) - parsed->query_size, "%s=", key);
        has_room = add_escaped(parsed, value);
    }
    if (has_room)
        return true;
    parsed->query_size = size;
    parsed->query[size] = '\0';
    return error_set(error, "the filters are longer than %d bytes together",
                     EXPLORE_QUERY_BYTES_MAX);
}

static bool add_last(struct explore_arguments *parsed, const char *value, struct error *error)
{
    char start[32];
    uint64_t ns = 0;
    uint64_t now_ns = clock_wall_ns();
    if (!explore_read_duration(slice_of_text(value), &ns))
        return error_set(error, "--last: found \"%s\", expected a duration such as 15m", value);
    snprintf(start, sizeof(start), "%" PRIu64, ns < now_ns ? now_ns - ns : 0);
    return explore_arguments_add(parsed, "start", start, error);
}

static bool set_limit(struct explore_arguments *parsed, const char *value, struct error *error)
{
    enum { LIMIT_MAX = 1000 };
    uint64_t limit = 0;
    if (!explore_read_number(slice_of_text(value), &limit) || limit == 0 || limit > LIMIT_MAX)
        return error_set(error, "--limit: found \"%s\", expected a number from 1 to %d", value,
                         LIMIT_MAX);
    parsed->limit = limit;
    return true;
}

static bool take(struct explore_arguments *parsed, const char *name, const char *value,
                 struct error *error)
{
    struct explore_client *client = &parsed->client;
    const struct {
        const char *name;
        const char **place;
    } texts[] = {{"--url", &client->url},
                 {"--token", &client->token},
                 {"--user", &client->user},
                 {"--ca", &client->authority},
                 {"-o", &parsed->output}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].place = value;
            return true;
        }
    if (strcmp(name, "--json") == 0)
        return parsed->is_json = true;
    if (strcmp(name, "--insecure") == 0)
        return client->is_unverified = true;
    if (strcmp(name, "--limit") == 0)
        return set_limit(parsed, value, error);
    if (strcmp(name, "--last") == 0)
        return add_last(parsed, value, error);
    return explore_arguments_add(parsed, name + strlen("--"), value != NULL ? value : "1", error);
}

static bool take_traces_flag(void *arg, size_t flag, const char *value, struct error *error)
{
    return take(arg, traces_flags[flag].word.name, value, error);
}

static bool take_flame_flag(void *arg, size_t flag, const char *value, struct error *error)
{
    return take(arg, flame_flags[flag].word.name, value, error);
}

/* How many words a verb takes: "show ID" one, "diff A B" two. */
static size_t words_wanted(const struct verb *verb)
{
    size_t count = 0;
    for (const char *at = verb->usage; *at != '\0'; at++)
        count += *at == ' ';
    return count;
}

bool explore_arguments_parse(const struct verb_table *table, struct explore_arguments *parsed,
                             int count, char **arguments, struct error *error)
{
    const char *url = getenv("SPANFLAME_EXPLORE_URL");
    size_t words = 0;
    *parsed = (struct explore_arguments){
        .client = {.url = url != NULL && url[0] != '\0' ? url : "http://localhost:4620/",
                   .token = getenv("SPANFLAME_EXPLORE_TOKEN"),
                   .user = getenv("SPANFLAME_EXPLORE_USER")}};
    if (!verb_parse(table, count, arguments,
                    table == &traces_verbs ? take_traces_flag : take_flame_flag, parsed,
                    &parsed->verb, &words, error))
        return false;
    const struct verb *verb = &table->verbs[parsed->verb];
    size_t wanted = words_wanted(verb);
    if (parsed->verb == 0)
        return true;
    if (words != wanted)
        return error_set(error, "%s %s: found %zu words, expected: %s %s", table->command,
                         verb->name, words, table->command, verb->usage);
    for (size_t i = 0; i < words; i++)
        parsed->words[i] = arguments[i];
    parsed->words_count = words;
    return true;
}
