/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the file as --skip-unsupported does, prints what runs, what changes and what is missing,
 * and writes the file without the latter. What is written is loaded once more before it is. Main
 * thread. */
#include "src/cli/migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/config/config_limits.h"
#include "src/config/rewrite.h"
#include "src/service/supervisor.h"

enum { ID_COLUMN = 40, LABEL_MAX = 1200 };

static enum migrate_result fail(FILE *problems, const char *text)
{
    fprintf(problems, "Error: %s\n", text);
    return MIGRATE_FAILED;
}

static void print_line(FILE *out, const char *what, const char *state, const char *why)
{
    fprintf(out, "  %-*s %-8s %s\n", ID_COLUMN, what, state, why);
}

/* A pipeline that runs, and what it runs without. */
static void print_pipeline(const struct config *config, const char *id, FILE *out)
{
    bool is_whole = true;
    for (size_t i = 0; i < config->skips_count; i++) {
        const struct config_skip *skip = &config->skips[i];
        char text[LABEL_MAX];
        if (skip->pipeline == NULL || skip->component == NULL || strcmp(skip->pipeline, id) != 0)
            continue;
        snprintf(text, sizeof(text), "without %s::%s", skip->section, skip->component);
        print_line(out, is_whole ? id : "", is_whole ? "partly" : "", text);
        is_whole = false;
    }
    if (is_whole)
        print_line(out, id, "runs", "");
}

static void print_table(const struct config_request *request, const struct config *config,
                        const struct config_problems *warnings, const char *file, FILE *out)
{
    char text[LABEL_MAX];
    char change[LABEL_MAX];
    for (size_t i = 0; file == NULL && i < request->locations_count; i++)
        fprintf(out, "%s\n", request->locations[i]);
    fprintf(out, "%s%s\nPipelines:\n", file != NULL ? file : "", file != NULL ? "\n" : "");
    for (size_t i = 0; i < config->pipelines_count; i++)
        print_pipeline(config, config->pipelines[i].id, out);
    for (size_t i = 0; i < config->skips_count; i++)
        if (config->skips[i].component == NULL)
            print_line(out, config->skips[i].pipeline, "missing", config->skips[i].why);
    fputs("\nComponents:\n", out);
    for (size_t i = 0; i < config->components_count; i++) {
        const struct config_component *component = &config->components[i];
        snprintf(text, sizeof(text), "%s::%s", component_kind_section(component->factory->kind),
                 component->id);
        snprintf(change, sizeof(change), "%s is an older name of %s",
                 component->alias != NULL ? component->alias : "", component->factory->type);
        print_line(out, text, component->is_used ? "runs" : "unused",
                   component->alias != NULL ? change : "");
    }
    for (size_t i = 0; i < config->skips_count; i++) {
        const struct config_skip *skip = &config->skips[i];
        if (skip->pipeline != NULL)
            continue;
        snprintf(text, sizeof(text), "%s::%s", skip->section, skip->component);
        print_line(out, text, "missing", skip->why);
    }
    size_t shown = warnings->warnings_count - warnings->notices_count;
    if (shown > 0)
        fputs("\nNotes:\n", out);
    for (size_t i = 0; i < shown; i++)
        fprintf(out, "  %s\n", warnings->warnings[i]);
}

/* The text without what is left out, or NULL. Freed with free(). */
static char *rewrite(const struct config_request *request, const struct config *config,
                     const char *file, size_t *ret_size, struct error *error)
{
    char *text = NULL;
    char *written = NULL;
    size_t size = 0;
    int failed = file_read_whole(file, CONFIG_FILE_BYTES_MAX, &text, &size);
    if (failed != 0) {
        error_set(error, "cannot read %s: %s", file, strerror(-failed));
        return NULL;
    }
    FILE *stream = open_memstream(&written, ret_size);
    bool is_fine = stream != NULL && config_rewrite(slice_of(text, size), config, stream, error);
    if (stream == NULL)
        error_set(error, "not enough memory");
    else
        fclose(stream);
    mem_free(text);
    if (is_fine) {
        /* The proof that it starts here. */
        struct config_problems problems = {0};
        char *location = mem_alloc(*ret_size + sizeof("yaml:"));
        memcpy(location, "yaml:", 5);
        memcpy(location + 5, written, *ret_size);
        location[5 + *ret_size] = '\0';
        struct config_request again = *request;
        again.locations = (const char *const[]){location};
        again.locations_count = 1;
        again.skips_unsupported = false;
        struct config *changed = config_load(&again, &problems);
        struct error why = {.text = ""};
        is_fine = changed != NULL && supervisor_can_build(changed, &why);
        if (!is_fine)
            error_set(error, "the changed file would not start; take these parts out by hand: %s",
                      problems.count > 0 ? problems.texts[0] : why.text);
        config_destroy(changed);
        config_problems_clear(&problems);
        mem_free(location);
    }
    if (is_fine)
        return written;
    free(written);
    return NULL;
}

static bool write_output(const char *text, size_t size, const char *output, FILE *out,
                         struct error *error)
{
    FILE *stream = strcmp(output, "-") == 0 ? out : fopen(output, "we");
    bool is_written = stream != NULL && fwrite(text, 1, size, stream) == size;
    if (stream != NULL && stream != out)
        is_written &= fclose(stream) == 0;
    return is_written || error_set(error, "cannot write %s: %s", output, strerror(errno));
}

/* The table, and the changed file if output is not NULL. */
static enum migrate_result show(const struct config_request *request, const struct config *config,
                                const struct config_problems *warnings, const char *file,
                                const char *output, FILE *out, FILE *problems)
{
    struct error error = {.text = ""};
    bool is_to_stdout = output != NULL && strcmp(output, "-") == 0;
    size_t size = 0;
    if (!is_to_stdout)
        print_table(request, config, warnings, file, out);
    if (config->pipelines_count == 0)
        return fail(problems, "nothing is left to run: every pipeline needs what this build does "
                              "not support");
    if (output != NULL) {
        char *written = rewrite(request, config, file, &size, &error);
        bool is_written = written != NULL && write_output(written, size, output, out, &error);
        free(written);
        if (!is_written)
            return fail(problems, error.text);
        if (!is_to_stdout)
            fprintf(out, "\nWrote %s.\n", output);
    }
    return config->skips_count > 0 ? MIGRATE_PARTLY : MIGRATE_WHOLE;
}

enum migrate_result migrate_command(const struct config_request *request, const char *file,
                                    const char *output, FILE *out, FILE *problems)
{
    struct error error = {.text = ""};
    struct config_problems found = {0};
    if ((file == NULL) == (request->locations_count == 0))
        return fail(problems, "expected what to look at: migrate FILE, or migrate --config FILE "
                              "--config FILE … for several that belong together");
    if (file == NULL && output != NULL)
        return fail(problems, "several files that belong together are shown, but not written: "
                              "expected migrate FILE --write FILE");
    struct config_request whole = *request;
    char *location = mem_alloc((file != NULL ? strlen(file) : 0) + sizeof("file:"));
    if (file != NULL) {
        stpcpy(stpcpy(location, "file:"), file);
        whole.locations = (const char *const *)&location;
        whole.locations_count = 1;
    }
    whole.skips_unsupported = true;
    whole.may_be_empty = true;
    struct config *config = config_load(&whole, &found);
    enum migrate_result result = MIGRATE_FAILED;
    for (size_t i = 0; i < found.count; i++)
        fprintf(problems, "%s%s\n", i == 0 ? "Error: " : "       ", found.texts[i]);
    if (config != NULL && config->pipelines_count > 0 && !supervisor_can_build(config, &error))
        fail(problems, error.text);
    else if (config != NULL)
        result = show(request, config, &found, file, output, out, problems);
    config_destroy(config);
    config_problems_clear(&found);
    mem_free(location);
    return result;
}
