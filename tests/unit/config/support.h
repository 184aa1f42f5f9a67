/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of src/config share: files in memory, components that only have option tables, and
 * loading YAML in one line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/config.h"
#include "src/config/field.h"

struct component_factory;

/* What the fake processor `probe` is configured with: a field of every type. */
struct probe_part {
    const char *name;
    uint64_t size;
};

struct probe_config {
    bool flag;
    uint64_t count;
    int64_t number;
    double ratio;
    uint64_t timeout_ns;
    const char *text;
    const char *secret;
    int choice;
    struct config_texts texts;
    struct config_texts secrets;
    struct config_pairs headers;
    const struct config_value *value;
    struct probe_part always;
    bool has_on;
    struct probe_part on;
    bool has_enabling;
    struct probe_part enabling;
    bool has_off;
    struct probe_part off;
    bool has_retry;
    struct probe_part retry;
    struct config_sections parts; /* of struct probe_part */
};

/* Receivers otlp and nop; processors probe, batch (no profiles) and nop; exporters otlp_http (alias
 * otlphttp), debug (alias logging, no profiles) and nop; extension health_check. */
extern const struct component_factory *const fake_factories[];

/* From now on files are these only: name, text, name, text, …, NULL. NULL brings the real ones
 * back.
 */
void memory_files_set(const char *const *names_and_texts);
/* The only file, "otel.yaml", with bytes that may contain NUL. */
void memory_files_set_bytes(const void *bytes, size_t size);

struct load_result {
    struct config *config;
    struct config_problems problems;
};

/* Loads "otel.yaml" with this content. */
struct load_result load_text(const char *text);
/* Loads a minimal pipeline in which the processor probe has this configuration, a YAML text in flow
 * style or one that is indented by at least six. */
struct load_result load_probe(const char *probe);
const struct probe_config *probe_of(const struct load_result *result);
void load_result_clear(struct load_result *result);

/* Problems and warnings, one per line. Freed with mem_free. */
char *problems_to_text(const struct config_problems *problems);
/* Fails the test, showing what there is, unless some problem (warning) contains the string. */
void assert_problem(const struct load_result *result, const char *part);
void assert_warning(const struct load_result *result, const char *part);
/* Fails the test, showing the problems, unless it was loaded. */
void assert_loaded(const struct load_result *result);
