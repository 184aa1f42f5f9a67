/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in the Go collector's console and JSON forms: time, level, caller, message, fields. Any
 * thread; keeps errno. Base modules, codecs and src/net never log: the code that handles an error
 * logs it, once. Repeated lines are sampled as service::telemetry::logs::sampling configures. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_field_type { LOG_FIELD_END, LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_DOUBLE };

struct log_field {
    enum log_field_type type;
    const char *key;
    const char *text; /* escaped when printed; never trusted */
    int64_t number;
    double real;
};

/* The component that logs; empty strings are left out. Borrowed by its holder. */
struct logger {
    const char *component_id;   /* otelcol.component.id */
    const char *component_kind; /* receiver, processor, exporter, extension */
    const char *pipeline_id;    /* otelcol.pipeline.id */
    const char *signal;         /* otelcol.signal */
};

enum { LOG_OUTPUTS_MAX = 16 };

struct log_settings {
    enum log_level level;
    bool is_json;
    bool has_caller;
    bool is_sampled;
    uint64_t sampling_tick_ns;
    uint64_t sampling_initial;
    uint64_t sampling_thereafter;
    int fds[LOG_OUTPUTS_MAX]; /* each line goes to all of them */
    size_t fds_count;
    const char *service_name;
    const char *service_version;
    const char *service_instance_id;
};

/* The Go collector's defaults: info, console, caller, sampled 10 then every 100th in 10 s,
 * stderr. */
struct log_settings log_settings_default(void);
/* Copies the settings. Before lanes run. */
void log_configure(const struct log_settings *wanted);
bool log_is_enabled(enum log_level level);

static inline struct log_field log_text(const char *key, const char *text)
{
    return (struct log_field){.type = LOG_FIELD_TEXT, .key = key, .text = text};
}
static inline struct log_field log_int(const char *key, int64_t number)
{
    return (struct log_field){.type = LOG_FIELD_INT, .key = key, .number = number};
}
static inline struct log_field log_double(const char *key, double real)
{
    return (struct log_field){.type = LOG_FIELD_DOUBLE, .key = key, .real = real};
}

/* Bytes allocated for a line with a message of this size; short lines take none. */
size_t log_line_bytes(size_t message_bytes);
/* The variable arguments are struct log_field values, ended by LOG_FIELD_END; use the macros.
 * logger may be NULL: the service itself logs. */
void log_write(const struct logger *logger, enum log_level level, const char *file, int line,
               const char *message, ...);

#define LOG_LINE(logger, level, ...)                                                               \
    log_write(logger, level, __FILE__, __LINE__, __VA_ARGS__,                                      \
              (struct log_field){.type = LOG_FIELD_END})
#define log_debug(logger, ...) LOG_LINE(logger, LOG_DEBUG, __VA_ARGS__)
#define log_info(logger, ...)  LOG_LINE(logger, LOG_INFO, __VA_ARGS__)
#define log_warn(logger, ...)  LOG_LINE(logger, LOG_WARN, __VA_ARGS__)
#define log_error(logger, ...) LOG_LINE(logger, LOG_ERROR, __VA_ARGS__)
