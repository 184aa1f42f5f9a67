/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as the Go collector writes them: console (tab separated, fields as JSON) or JSON. One
 * write(2) per line, so that lines of several lanes do not mix. Any thread; the sampling table is
 * guarded by a mutex, lines are not on the hot path. */
#include "src/base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/log_recent.h"
#include "src/base/mem.h"
#include "src/base/text_escape.h"
#include "src/base/utf8.h"

enum { LOG_LINE_MAX = 8192, LOG_FIELDS_MAX = 24, SAMPLES_MAX = 256 };
/* Reserved: room for the quote, braces and newline that close a line whose text was cut; and the
 * room a field needs before it begins, for its key and a useful part of its value. */
enum { LOG_CLOSING_BYTES = 16, LOG_FIELD_BYTES = 512, LOG_RESOURCE_VALUE_MAX = 128 };

/* How often a message was logged in this tick; messages that share a slot share a count, as in
 * zap's sampler. */
struct sample {
    uint64_t tick_ends_ns;
    uint64_t count;
};

#define LOG_STANDARD                                                                               \
    {                                                                                              \
        .level = LOG_INFO, .has_caller = true, .is_sampled = true,                                 \
        .sampling_tick_ns = (uint64_t)10 * NS_PER_S, .sampling_initial = 10,                       \
        .sampling_thereafter = 100, .fds = {STDERR_FILENO}, .fds_count = 1,                        \
        .service_name = "spanflame", .service_version = SPANFLAME_VERSION,                         \
        .service_instance_id = "",                                                                 \
    }

static const struct log_settings standard = LOG_STANDARD;
static struct log_settings settings = LOG_STANDARD;
static struct sample samples[LOG_ERROR + 1][SAMPLES_MAX];
static pthread_mutex_t samples_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

struct line {
    char own[LOG_LINE_MAX];
    char *text; /* own, or larger for a large message (the debug exporter's) */
    size_t capacity;
    size_t size;
    bool has_fields;
};

struct log_settings log_settings_default(void)
{
    return standard;
}

void log_configure(const struct log_settings *wanted)
{
    settings = *wanted;
}

bool log_is_enabled(enum log_level level)
{
    assert(level <= LOG_ERROR);
    return level >= settings.level;
}

/* All or nothing, so that the end of the line always fits. */
static void put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *line, const char *format, ...)
{
    va_list arguments;
    size_t room = line->capacity - line->size;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->size, room, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    if ((size_t)length < room)
        line->size += (size_t)length;
}

static void put_char(struct line *line, char c)
{
    assert(line->size < line->capacity);
    line->text[line->size++] = c;
}

static size_t room_for_text(const struct line *line)
{
    assert(line->capacity > LOG_CLOSING_BYTES);
    size_t end = line->capacity - LOG_CLOSING_BYTES;
    return line->size < end ? end - line->size : 0;
}

/* Escapes as in JSON, so that control characters cannot forge a line. Cuts text that is longer than
 * max or than the line has room for. */
static void put_quoted(struct line *line, const char *text, size_t max)
{
    put_char(line, '"');
    for (size_t i = 0; text[i] != '\0' && i < max && room_for_text(line) > JSON_ESCAPE_BYTES_MAX;) {
        uint8_t first = (uint8_t)text[i];
        size_t size = utf8_size(slice_of(text + i, strnlen(text + i, 4)));
        if (size == 0)
            put(line, "\\ufffd");
        else if (first == '"' || first == '\\' || first < 0x20 || first == 0x7f)
            line->size += json_escape_byte(first, line->text + line->size);
        else
            put(line, "%.*s", (int)size, text + i);
        i += size > 0 ? size : 1;
    }
    put_char(line, '"');
}

/* False: the line has no room for another field, and nothing is written. */
static bool put_key(struct line *line, const char *key)
{
    const char *comma = settings.is_json ? "," : ", ";
    if (room_for_text(line) < LOG_FIELD_BYTES)
        return false;
    assert(strlen(key) < LOG_FIELD_BYTES / 4);
    put(line, "%s", line->has_fields ? comma : "{");
    line->has_fields = true;
    put_quoted(line, key, SIZE_MAX);
    put(line, settings.is_json ? ":" : ": ");
    return true;
}

static void put_text_field(struct line *line, const char *key, const char *text)
{
    if (put_key(line, key))
        put_quoted(line, text != NULL ? text : "", SIZE_MAX);
}

static void put_name(struct line *line, const char *key, const char *name)
{
    if (name != NULL && name[0] != '\0')
        put_text_field(line, key, name);
}

static void put_time(struct line *line)
{
    uint64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / NS_PER_S);
    struct tm parts;
    char date[32];
    char zone[8];
    localtime_r(&seconds, &parts);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
    strftime(zone, sizeof(zone), "%z", &parts);
    put(line, "%s.%03u%s", date, (unsigned)(now_ns % NS_PER_S / NS_PER_MS),
        parts.tm_gmtoff == 0 ? "Z" : zone);
}

static bool is_sampled_out(enum log_level level, const char *message)
{
    assert(level <= LOG_ERROR);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    if (!settings.is_sampled || settings.sampling_tick_ns == 0)
        return false;
    for (const char *c = message; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    uint64_t now_ns = clock_now_ns();
    pthread_mutex_lock(&samples_lock);
    struct sample *sample = &samples[level][hash % SAMPLES_MAX];
    if (now_ns >= sample->tick_ends_ns)
        *sample = (struct sample){.tick_ends_ns = now_ns + settings.sampling_tick_ns};
    uint64_t count = ++sample->count;
    pthread_mutex_unlock(&samples_lock);
    if (count <= settings.sampling_initial)
        return false;
    return settings.sampling_thereafter == 0 ||
           (count - settings.sampling_initial) % settings.sampling_thereafter != 0;
}

static void write_to(int fd, const struct line *line)
{
    assert(line->size > 0);
    assert(line->text[line->size - 1] == '\n');
    size_t written = 0;
    while (written < line->size) {
        ssize_t put_now = write(fd, line->text + written, line->size - written);
        if (put_now < 0 && errno == EINTR)
            continue;
        if (put_now <= 0)
            return;
        written += (size_t)put_now;
    }
}

size_t log_line_bytes(size_t message_bytes)
{
    /* Room for JSON escapes: real messages have fewer than one in two characters. */
    return message_bytes + message_bytes / 2 + LOG_LINE_MAX;
}

/* If there is no memory for a large message, the line is cut. */
static void line_open(struct line *line, const char *message)
{
    size_t size = strlen(message);
    line->text = line->own;
    line->capacity = sizeof(line->own);
    line->size = 0;
    line->has_fields = false;
    if (size <= sizeof(line->own) / 2)
        return;
    size_t capacity = log_line_bytes(size);
    char *text = mem_try_alloc(capacity);
    if (text == NULL)
        return;
    line->text = text;
    line->capacity = capacity;
}

void log_write(const struct logger *logger, enum log_level level, const char *file, int line_number,
               const char *message, ...)
{
    int saved_errno = errno;
    assert(level <= LOG_ERROR);
    if (!log_is_enabled(level) || is_sampled_out(level, message)) {
        errno = saved_errno;
        return;
    }
    struct line line;
    line_open(&line, message);
    char caller[256];
    /* Compilers name files from the build directory on. */
    while (strncmp(file, "../", 3) == 0)
        file += 3;
    snprintf(caller, sizeof(caller), "%s:%d", file, line_number);
    if (!settings.is_json) {
        put_time(&line);
        put(&line, "\t%s", level_names[level]);
        if (settings.has_caller)
            put(&line, "\t%s", caller);
        put_char(&line, '\t');
        /* Unescaped, line breaks included: the console shows multi-line messages as they are. */
        size_t size = strlen(message);
        size_t room = room_for_text(&line);
        size = size < room ? size : room;
        memcpy(line.text + line.size, message, size);
        line.size += size;
    } else {
        put_text_field(&line, "level", level_names[level]);
        if (put_key(&line, "ts")) {
            put_char(&line, '"');
            put_time(&line);
            put_char(&line, '"');
        }
        if (settings.has_caller)
            put_text_field(&line, "caller", caller);
        put_text_field(&line, "msg", message);
    }
    if (!settings.is_json)
        put_char(&line, '\t');
    if (settings.is_json && put_key(&line, "resource")) {
        put(&line, "{\"service.instance.id\":");
        put_quoted(&line, settings.service_instance_id, LOG_RESOURCE_VALUE_MAX);
        put(&line, ",\"service.name\":");
        put_quoted(&line, settings.service_name, LOG_RESOURCE_VALUE_MAX);
        put(&line, ",\"service.version\":");
        put_quoted(&line, settings.service_version, LOG_RESOURCE_VALUE_MAX);
        put_char(&line, '}');
    }
    if (logger != NULL) {
        put_name(&line, "otelcol.component.id", logger->component_id);
        put_name(&line, "otelcol.component.kind", logger->component_kind);
        put_name(&line, "otelcol.pipeline.id", logger->pipeline_id);
        put_name(&line, "otelcol.signal", logger->signal);
    }
    va_list fields;
    va_start(fields, message);
    for (unsigned i = 0; i < LOG_FIELDS_MAX; i++) {
        struct log_field field = va_arg(fields, struct log_field);
        if (field.type == LOG_FIELD_END)
            break;
        if (field.type == LOG_FIELD_TEXT) {
            put_text_field(&line, field.key, field.text);
        } else if (put_key(&line, field.key)) {
            if (field.type == LOG_FIELD_INT)
                put(&line, "%lld", (long long)field.number);
            else
                put(&line, "%.9g", field.real);
        }
    }
    va_end(fields);
    if (line.has_fields)
        put_char(&line, '}');
    else
        line.size--; /* console without fields: no trailing tab */
    put_char(&line, '\n');
    if (level >= LOG_WARN)
        log_recent_note(line.text, line.size - 1);
    assert(settings.fds_count <= LOG_OUTPUTS_MAX);
    for (size_t i = 0; i < settings.fds_count; i++)
        write_to(settings.fds[i], &line);
    assert(line.size <= line.capacity);
    if (line.text != line.own)
        mem_free(line.text);
    errno = saved_errno;
}
