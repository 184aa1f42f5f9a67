/* SPDX-License-Identifier: Apache-2.0 */
/* Each verb is one or two questions and a table. Main thread. */
#include "src/cli/explore/explore_command.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/cli/explore/explore_arguments.h"
#include "src/cli/explore/explore_tables.h"
#include "src/cli/explore/json_part.h"
#include "src/cli/profile/profile_file.h"

enum { PATH_BYTES_MAX = 128, ROWS_BYTES_MAX = 64, ROWS_STANDARD = 200 };

static struct buffer *get(struct explore_arguments *parsed, const char *path, const char *query,
                          struct error *error)
{
    struct buffer *body = explore_client_get(&parsed->client, path, query, error);
    if (body == NULL || json_part_is_whole(buffer_slice(body)))
        return body;
    error_set(error, "%s answers with something else than JSON: is it the explore page?",
              parsed->client.url);
    buffer_unref(body);
    return NULL;
}

static bool print_json(FILE *out, const struct buffer *body)
{
    fwrite(body->data, 1, body->size, out);
    fputc('\n', out);
    return true;
}

/* An answer that is a file. */
static bool save(struct explore_arguments *parsed, FILE *out, struct error *error)
{
    struct buffer *body = explore_client_get(&parsed->client, "download", parsed->query, error);
    if (body == NULL)
        return false;
    bool is_saved = true;
    if (parsed->output != NULL)
        is_saved = profile_file_write(parsed->output, buffer_slice(body), error);
    else if (fwrite(body->data, 1, body->size, out) != body->size)
        is_saved = error_set(error, "standard output cannot be written");
    buffer_unref(body);
    return is_saved;
}

static bool is_id(const char *text)
{
    enum { ID_TEXT = 32 };
    return strlen(text) == ID_TEXT && strspn(text, "0123456789abcdefABCDEF") == ID_TEXT;
}

static bool add_limit(struct explore_arguments *parsed, struct error *error)
{
    char limit[32];
    if (parsed->limit == 0)
        return true;
    snprintf(limit, sizeof(limit), "%llu", parsed->limit);
    return explore_arguments_add(parsed, "limit", limit, error);
}

static bool show_trace(struct explore_arguments *parsed, FILE *out, struct error *error)
{
    char path[PATH_BYTES_MAX];
    char rows_path[PATH_BYTES_MAX];
    char rows_query[ROWS_BYTES_MAX];
    snprintf(path, sizeof(path), "traces/%s", parsed->words[0]);
    snprintf(rows_path, sizeof(rows_path), "traces/%s/rows", parsed->words[0]);
    snprintf(rows_query, sizeof(rows_query), "count=%llu",
             parsed->limit > 0 ? parsed->limit : ROWS_STANDARD);
    struct buffer *trace = get(parsed, path, "", error);
    struct buffer *rows = trace != NULL ? get(parsed, rows_path, rows_query, error) : NULL;
    if (rows != NULL && parsed->is_json)
        fprintf(out, "{\"trace\":%.*s,\"rows\":%.*s}\n", (int)trace->size,
                (const char *)trace->data, (int)rows->size, (const char *)rows->data);
    else if (rows != NULL)
        trace_table_show(out, buffer_slice(trace), buffer_slice(rows));
    bool is_shown = rows != NULL;
    buffer_unref(rows);
    buffer_unref(trace);
    return is_shown;
}

static bool run_traces(struct explore_arguments *parsed, FILE *out, struct error *error)
{
    enum traces_verb verb = (enum traces_verb)parsed->verb;
    if (parsed->words_count > 0 && !is_id(parsed->words[0]))
        return error_set(error, "found \"%s\", expected a trace id of 32 hexadecimal digits",
                         parsed->words[0]);
    if (verb == TRACES_SHOW)
        return show_trace(parsed, out, error);
    if (verb == TRACES_SAVE)
        return explore_arguments_add(parsed, "trace", parsed->words[0], error) &&
               save(parsed, out, error);
    if (verb == TRACES_LIST && !add_limit(parsed, error))
        return false;
    const char *path = verb == TRACES_LIST       ? "traces"
                       : verb == TRACES_SERVICES ? "services"
                                                 : "spans";
    struct buffer *body = get(parsed, path, parsed->query, error);
    if (body == NULL)
        return false;
    if (parsed->is_json)
        print_json(out, body);
    else if (verb == TRACES_LIST)
        trace_table_list(out, buffer_slice(body));
    else if (verb == TRACES_SERVICES)
        trace_table_services(out, buffer_slice(body));
    else
        trace_table_names(out, buffer_slice(body), (size_t)parsed->limit);
    buffer_unref(body);
    return true;
}

static bool run_flame(struct explore_arguments *parsed, FILE *out, struct error *error)
{
    enum flame_verb verb = (enum flame_verb)parsed->verb;
    if (verb == FLAME_FOLDED || verb == FLAME_PPROF)
        return explore_arguments_add(parsed, "format", verb == FLAME_PPROF ? "pprof" : "folded",
                                     error) &&
               save(parsed, out, error);
    bool is_tree = verb == FLAME_TREE;
    bool is_diff = verb == FLAME_DIFF;
    if (!explore_arguments_add(parsed, "view", is_tree ? "tree" : "top", error) ||
        (is_diff && (!explore_arguments_add(parsed, "a", parsed->words[0], error) ||
                     !explore_arguments_add(parsed, "b", parsed->words[1], error))))
        return false;
    struct buffer *body = get(parsed, is_diff ? "diff" : "flame", parsed->query, error);
    if (body == NULL)
        return false;
    if (parsed->is_json)
        print_json(out, body);
    else if (is_diff)
        flame_table_diff(out, buffer_slice(body), (size_t)parsed->limit);
    else if (is_tree)
        flame_table_tree(out, buffer_slice(body), (size_t)parsed->limit);
    else
        flame_table_top(out, buffer_slice(body), (size_t)parsed->limit);
    buffer_unref(body);
    return true;
}

static int run(const struct verb_table *table, const char *program, int count, char **arguments,
               FILE *out, FILE *problems)
{
    static struct explore_arguments parsed;
    struct error error = {.text = ""};
    bool is_done = explore_arguments_parse(table, &parsed, count, arguments, &error);
    if (is_done && parsed.verb == 0)
        explore_arguments_help(table, out, program);
    else if (is_done)
        is_done = table == &traces_verbs ? run_traces(&parsed, out, &error)
                                         : run_flame(&parsed, out, &error);
    if (!is_done)
        fprintf(problems, "Error: %s\n", error.text);
    return is_done ? 0 : 1;
}

int traces_command(const char *program, int count, char **arguments, FILE *out, FILE *problems)
{
    return run(&traces_verbs, program, count, arguments, out, problems);
}

int flame_command(const char *program, int count, char **arguments, FILE *out, FILE *problems)
{
    return run(&flame_verbs, program, count, arguments, out, problems);
}
