/* SPDX-License-Identifier: Apache-2.0 */
/* Discovers targets. Runs on lane 0, except read_on_helper and what it calls. */
#include "receivers/scrape/target_discovery.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "receivers/scrape/scrape_config.h"
#include "receivers/scrape/scrape_http.h"
#include "receivers/scrape/target_groups.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/net/client/http_client.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/media_type.h"

enum { INTERVAL_TEXT_BYTES_MAX = 32 };

/* What was last read of one file or server. */
struct reading {
    char *path;            /* NULL: of a server */
    XXH128_hash_t content; /* of the bytes */
    bool has_groups;
    bool is_there; /* the file was found this time */
    struct target_groups groups;
};

struct folder {
    uv_fs_event_t watch;
    struct source *source;
    char *path;
};

/* One of file_sd_configs or http_sd_configs. */
struct source {
    struct target_discovery *discovery;
    size_t job; /* its place */
    uint64_t interval_ns;
    struct timer timer; /* the next refresh */
    bool is_due;        /* for the helper: read it */
    uint64_t failures;  /* that the helper met */
    /* Files. */
    const struct scrape_file_sd_config *files; /* NULL: a server */
    struct reading *readings;
    size_t readings_count;
    struct folder *folders[DISCOVERY_FOLDERS_MAX];
    size_t folders_count;
    struct timer settle; /* after a change */
    bool is_wanted;      /* to be read with the next work */
    uint64_t read_ns;    /* when it was last due */
    /* A server. */
    const struct scrape_http_sd_config *server;
    struct scrape_http http;
    struct http_client *client;
    struct http_url url;
    char interval_text[INTERVAL_TEXT_BYTES_MAX];
    struct buffer *body; /* of the response; the helper's when it is due */
    bool is_asking;
    bool is_too_large;
    bool has_no_room;
};

struct target_discovery {
    struct target_discovery_settings settings;
    struct source *sources;
    size_t sources_count;
    struct scrape_target_list *list; /* the last one */
    struct helper_work work;
    bool is_working;
    bool is_due; /* again, once the work is done */
    /* Of the work. */
    bool has_changed;
    struct scrape_target_list *next;
    struct stop_latch users;
    bool is_stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static struct target_discovery *discovery_of(struct helper_work *work)
{
    return (struct target_discovery *)((char *)work - offsetof(struct target_discovery, work));
}

/* On the helper's thread */

static void reading_free(struct reading *reading)
{
    target_groups_free(&reading->groups);
    mem_free(reading->path);
}

/* Reads the groups in bytes, unless they are as they were. False: the error says why not; the
 * groups stay. */
static bool read_groups(struct source *source, struct reading *reading, struct slice bytes,
                        bool is_json, const struct prometheus_label *origin, struct error *error)
{
    struct budget *budget = source->discovery->settings.budget;
    XXH128_hash_t content = XXH3_128bits(bytes.data, bytes.size);
    if (reading->has_groups && XXH128_isEqual(content, reading->content))
        return true;
    struct target_groups groups;
    if (is_json ? !target_groups_read_json(&groups, bytes, origin, budget, error)
                : !target_groups_read_yaml(&groups, bytes, origin, budget, error))
        return false;
    target_groups_free(&reading->groups);
    reading->groups = groups;
    reading->content = content;
    reading->has_groups = true;
    source->discovery->has_changed = true;
    return true;
}

/* The whole file; NULL: the error says why not. */
static struct buffer *read_file(const char *path, struct budget *budget, struct error *error)
{
    struct stat status;
    /* Not to wait for the other end of a pipe. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        error_set(error, "cannot read the file: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct buffer *buffer = NULL;
    if (!S_ISREG(status.st_mode))
        error_set(error, "this is not a regular file");
    else if (status.st_size > TARGET_GROUPS_BYTES_MAX)
        error_set(error, "the file has more than %d bytes: split it", TARGET_GROUPS_BYTES_MAX);
    else if ((buffer = buffer_try_create(budget, (size_t)status.st_size + 1)) == NULL)
        error_set(error, "the memory budget has no room for the file");
    while (buffer != NULL) {
        ssize_t size = read(fd, buffer->data + buffer->size, buffer->capacity - buffer->size);
        if (size > 0)
            buffer->size += (size_t)size;
        if (size == 0)
            break;
        bool is_longer = size > 0 && buffer->size == buffer->capacity;
        if (!is_longer && (size > 0 || errno == EINTR))
            continue;
        if (is_longer)
            error_set(error, "the file grew while it was read");
        else
            error_set(error, "cannot read the file: %s", strerror(errno));
        buffer_unref(buffer);
        buffer = NULL;
    }
    close(fd);
    return buffer;
}

static bool is_json_path(const char *path)
{
    size_t size = strlen(path);
    return size >= 5 && strcasecmp(path + size - 5, ".json") == 0;
}

/* The reading of a path, which is made if need be; NULL: there are too many files. */
static struct reading *reading_of(struct source *source, const char *path)
{
    for (size_t i = 0; i < source->readings_count; i++)
        if (strcmp(source->readings[i].path, path) == 0)
            return &source->readings[i];
    if (source->readings_count == DISCOVERY_FILES_MAX)
        return NULL;
    source->readings =
        mem_resize(source->readings, (source->readings_count + 1) * sizeof(*source->readings));
    struct reading *reading = &source->readings[source->readings_count++];
    *reading = (struct reading){.path = mem_copy_text(path)};
    return reading;
}

static void fail_file(struct source *source, const char *path, const char *reason)
{
    source->failures++;
    log_error(source->discovery->settings.logger, "Error reading file", log_text("path", path),
              log_text("job", source->discovery->settings.jobs[source->job].name),
              log_text("error", reason));
}

static void read_path(struct source *source, const char *path)
{
    struct error error = {.text = ""};
    struct reading *reading = reading_of(source, path);
    if (reading == NULL) {
        fail_file(source, path, "there are more files than file_sd_configs may have: merge some");
        return;
    }
    reading->is_there = true;
    const struct prometheus_label origin = {.name = slice_of_text("__meta_filepath"),
                                            .value = slice_of_text(path)};
    struct buffer *buffer = read_file(path, source->discovery->settings.budget, &error);
    if (buffer == NULL ||
        !read_groups(source, reading, buffer_slice(buffer), is_json_path(path), &origin, &error))
        fail_file(source, path, error.text);
    buffer_unref(buffer);
}

static void read_files(struct source *source)
{
    for (size_t i = 0; i < source->readings_count; i++)
        source->readings[i].is_there = false;
    for (size_t i = 0; i < source->files->files.count; i++) {
        glob_t found = {.gl_pathc = 0};
        if (glob(source->files->files.texts[i], GLOB_PERIOD, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                read_path(source, found.gl_pathv[k]);
        globfree(&found);
    }
    size_t kept = 0;
    for (size_t i = 0; i < source->readings_count; i++) {
        struct reading *reading = &source->readings[i];
        if (reading->is_there) {
            source->readings[kept++] = *reading;
            continue;
        }
        source->discovery->has_changed |= reading->has_groups;
        reading_free(reading);
    }
    source->readings_count = kept;
}

static void fail_server(struct source *source, const char *reason)
{
    source->failures++;
    log_error(source->discovery->settings.logger, "Unable to refresh target groups",
              log_text("discovery", "http"), log_text("url", source->url.shown),
              log_text("job", source->discovery->settings.jobs[source->job].name),
              log_text("error", reason));
}

static void read_response(struct source *source)
{
    struct error error;
    const struct prometheus_label origin = {.name = slice_of_text("__meta_url"),
                                            .value = slice_of_text(source->server->url)};
    struct slice bytes =
        source->body != NULL ? buffer_slice(source->body) : (struct slice){.size = 0};
    if (!read_groups(source, source->readings, bytes, true, &origin, &error))
        fail_server(source, error.text);
    buffer_unref(source->body);
    source->body = NULL;
}

static struct scrape_target_list *make_list(struct target_discovery *discovery)
{
    const struct target_discovery_settings *settings = &discovery->settings;
    struct target_list_builder builder;
    target_list_begin(&builder, settings->jobs, settings->jobs_count, settings->lanes,
                      discovery->list, settings->budget, settings->logger);
    for (size_t job = 0; job < settings->jobs_count; job++) {
        target_list_add_static(&builder, job);
        for (size_t i = 0; i < discovery->sources_count; i++) {
            const struct source *source = &discovery->sources[i];
            for (size_t k = 0; source->job == job && k < source->readings_count; k++)
                for (size_t n = 0; n < source->readings[k].groups.count; n++)
                    target_list_add(&builder, job, &source->readings[k].groups.groups[n]);
        }
    }
    return target_list_end(&builder);
}

static void read_on_helper(struct helper_work *work)
{
    struct target_discovery *discovery = discovery_of(work);
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        if (!source->is_due)
            continue;
        if (source->files != NULL)
            read_files(source);
        else
            read_response(source);
    }
    if (discovery->has_changed)
        discovery->next = make_list(discovery);
}

/* On the lane */

static void watch_folders(struct source *source);

static void run(struct target_discovery *discovery);

static void on_read(struct helper_work *work)
{
    struct target_discovery *discovery = discovery_of(work);
    const struct target_discovery_settings *settings = &discovery->settings;
    discovery->is_working = false;
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        counter *failures = source->files != NULL ? settings->file_errors : settings->http_failures;
        counter_add(failures, source->failures);
        source->failures = 0;
        source->is_due = false;
    }
    if (discovery->next != NULL) {
        discovery->has_changed = false;
        scrape_target_list_unref(discovery->list);
        discovery->list = discovery->next;
        discovery->next = NULL;
        if (!discovery->is_stopping)
            settings->changed(scrape_target_list_ref(discovery->list), settings->arg);
    } else if (discovery->has_changed) {
        /* It stays set: the next refresh tries again. */
        log_error(settings->logger, "the memory budget has no room for the discovered targets; "
                                    "the former ones stay");
    }
    if (discovery->is_due && !discovery->is_stopping)
        run(discovery);
    stop_latch_release(&discovery->users);
}

/* What is due is marked when the work begins: the helper reads the marks. */
static void run(struct target_discovery *discovery)
{
    discovery->is_due = discovery->is_working;
    if (discovery->is_working)
        return;
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        if (source->files != NULL && source->is_wanted) {
            source->is_due = true;
            source->is_wanted = false;
            source->read_ns = clock_now_ns();
            watch_folders(source);
        } else if (source->files == NULL && source->body != NULL && !source->is_asking) {
            source->is_due = true;
        }
    }
    discovery->is_working = true;
    stop_latch_hold(&discovery->users);
    discovery->work.run = read_on_helper;
    discovery->work.done = on_read;
    lane_help(discovery->settings.lane, &discovery->work);
}

/* Files */

static void refresh_files(struct source *source)
{
    source->is_wanted = true;
    run(source->discovery);
}

static void on_settled(struct timer *timer, void *arg)
{
    assert(!timer_is_running(timer));
    refresh_files(arg);
}

static void on_file_event(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct folder *folder = watch->data;
    struct source *source = folder->source;
    (void)name;
    (void)events;
    (void)status;
    if (source->discovery->is_stopping || timer_is_running(&source->settle))
        return;
    uint64_t since_ns = clock_now_ns() - source->read_ns;
    uint64_t wait_ns = since_ns < DISCOVERY_REST_NS ? DISCOVERY_REST_NS - since_ns : 0;
    lane_timer_start(source->discovery->settings.lane, &source->settle,
                     wait_ns > DISCOVERY_SETTLE_NS ? wait_ns : DISCOVERY_SETTLE_NS);
}

static void on_folder_closed(uv_handle_t *handle)
{
    struct folder *folder = handle->data;
    stop_latch_release(&folder->source->discovery->users);
    mem_free(folder->path);
    mem_free(folder);
}

/* Watches a folder, anew in case it is another one by now. Without a watch the interval alone
 * refreshes. */
static void watch_folder(struct source *source, const char *path)
{
    struct folder *folder = NULL;
    for (size_t i = 0; i < source->folders_count && folder == NULL; i++)
        if (strcmp(source->folders[i]->path, path) == 0)
            folder = source->folders[i];
    if (folder == NULL && source->folders_count < DISCOVERY_FOLDERS_MAX) {
        folder = mem_zalloc(sizeof(*folder));
        folder->source = source;
        folder->path = mem_copy_text(path);
        if (uv_fs_event_init(lane_loop(source->discovery->settings.lane), &folder->watch) != 0) {
            mem_free(folder->path);
            mem_free(folder);
            return;
        }
        folder->watch.data = folder;
        stop_latch_hold(&source->discovery->users);
        source->folders[source->folders_count++] = folder;
    }
    if (folder == NULL)
        return;
    uv_fs_event_stop(&folder->watch);
    int failed = uv_fs_event_start(&folder->watch, on_file_event, path, 0);
    if (failed != 0)
        log_warn(source->discovery->settings.logger, "Error adding file watch",
                 log_text("path", path), log_text("error", uv_strerror(failed)));
}

static void watch_folders(struct source *source)
{
    for (size_t i = 0; i < source->files->files.count; i++) {
        char *path = mem_copy_text(source->files->files.texts[i]);
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            slash[slash == path] = '\0';
        watch_folder(source, slash != NULL ? path : ".");
        mem_free(path);
    }
}

/* Servers */

static bool take_body(struct slice bytes, void *arg)
{
    struct source *source = arg;
    size_t size = source->body != NULL ? source->body->size : 0;
    source->is_too_large = size + bytes.size > TARGET_GROUPS_BYTES_MAX;
    if (source->is_too_large)
        return false;
    source->has_no_room =
        !scrape_body_append(&source->body, source->discovery->settings.budget, bytes);
    return !source->has_no_room;
}

/* application/json, without parameters but charset=utf-8. */
static bool is_json_type(struct slice type)
{
    static const char json[] = "application/json";
    type = slice_trim(type);
    if (type.size < strlen(json) || !slice_equal_nocase(slice_of(type.data, strlen(json)), json))
        return false;
    type = slice_of(type.data + strlen(json), type.size - strlen(json));
    if (type.size == 0)
        return true;
    if (type.data[0] != ';')
        return false;
    type = slice_trim(slice_of(type.data + 1, type.size - 1));
    return slice_equal_nocase(type, "charset=utf-8") ||
           slice_equal_nocase(type, "charset=\"utf-8\"");
}

/* Why the exchange brought no list; false: it did. */
static bool judge(const struct source *source, const struct http_result *result,
                  struct error *error)
{
    if (source->is_too_large)
        error_set(error, "the response has more than %d bytes", TARGET_GROUPS_BYTES_MAX);
    else if (source->has_no_room)
        error_set(error, "the memory budget has no room for the response");
    else if (result->status == 0)
        error_set(error, "%s", result->error);
    else if (result->status != 200)
        error_set(error, "server returned HTTP status %u", result->status);
    else if (result->is_cut)
        error_set(error, "the response ended early");
    else if (!is_json_type(result->content_type))
        error_set(error, "unsupported content type \"%.*s\": application/json is needed",
                  (int)(result->content_type.size < 100 ? result->content_type.size : 100),
                  result->content_type.size > 0 ? (const char *)result->content_type.data : "");
    else
        return false;
    return true;
}

static void on_response(const struct http_result *result, void *arg)
{
    struct source *source = arg;
    struct target_discovery *discovery = source->discovery;
    struct error error;
    source->is_asking = false;
    bool has_failed = judge(source, result, &error);
    if (has_failed || discovery->is_stopping) {
        buffer_unref(source->body);
        source->body = NULL;
        if (!discovery->is_stopping) {
            fail_server(source, error.text);
            counter_add(discovery->settings.http_failures, source->failures);
            source->failures = 0;
        }
        return;
    }
    if (source->body == NULL)
        source->body = buffer_create(discovery->settings.budget, 1);
    run(discovery);
}

static void ask(struct source *source)
{
    /* The last response may still wait for the helper. */
    if (source->is_asking || source->is_due || source->body != NULL)
        return;
    source->is_asking = true;
    source->is_too_large = false;
    source->has_no_room = false;
    const struct http_post get = {
        .sink = {.take = take_body, .arg = source}, .done = on_response, .arg = source};
    http_client_post(source->client, &get);
}

static void on_refresh(struct timer *timer, void *arg)
{
    struct source *source = arg;
    lane_timer_start(source->discovery->settings.lane, timer, source->interval_ns);
    if (source->files != NULL)
        refresh_files(source);
    else
        ask(source);
}

/* The whole */

static struct source *add_source(struct target_discovery *discovery, size_t job)
{
    struct source *source = &discovery->sources[discovery->sources_count++];
    source->discovery = discovery;
    source->job = job;
    timer_init(&source->timer, on_refresh, source);
    timer_init(&source->settle, on_settled, source);
    return source;
}

static bool add_server(struct target_discovery *discovery, size_t job,
                       const struct scrape_http_sd_config *config, struct error *error)
{
    struct source *source = add_source(discovery, job);
    const struct target_discovery_settings *settings = &discovery->settings;
    source->server = config;
    source->readings = mem_zalloc(sizeof(*source->readings));
    source->readings_count = 1;
    if (!scrape_duration_take("refresh_interval", config->refresh_interval, SCRAPE_HTTP_REFRESH_NS,
                              &source->interval_ns, error) ||
        !http_url_parse(config->url, &source->url, error) ||
        !scrape_http_open(&source->http, &config->http, settings->is_rehearsed, error))
        return false;
    snprintf(source->interval_text, sizeof(source->interval_text), "%g",
             (double)source->interval_ns / NS_PER_S);
    scrape_http_add_header(&source->http, "Accept", "application/json");
    scrape_http_add_header(&source->http, "X-Prometheus-Refresh-Interval-Seconds",
                           source->interval_text);
    struct http_client_settings client;
    scrape_http_fill(&source->http, &client);
    client.lane = settings->lane;
    client.url = config->url;
    client.timeout_ns = source->interval_ns;
    source->client = http_client_create(&client, error);
    if (source->client == NULL)
        return false;
    stop_latch_hold(&discovery->users);
    return true;
}

static bool add_files(struct target_discovery *discovery, size_t job,
                      const struct scrape_file_sd_config *config, struct error *error)
{
    struct source *source = add_source(discovery, job);
    source->files = config;
    source->is_wanted = true;
    return scrape_duration_take("refresh_interval", config->refresh_interval,
                                SCRAPE_FILE_REFRESH_NS, &source->interval_ns, error);
}

static bool add_job(struct target_discovery *discovery, size_t job, struct error *error)
{
    const struct scrape_discovery_config *config = discovery->settings.jobs[job].discovery;
    const struct scrape_file_sd_config *files = config->file_sd_configs.items;
    const struct scrape_http_sd_config *servers = config->http_sd_configs.items;
    for (size_t i = 0; i < config->file_sd_configs.count; i++)
        if (!add_files(discovery, job, &files[i], error)) {
            error_at_index(error, i);
            return error_at(error, "file_sd_configs");
        }
    for (size_t i = 0; i < config->http_sd_configs.count; i++)
        if (!add_server(discovery, job, &servers[i], error)) {
            error_at_index(error, i);
            return error_at(error, "http_sd_configs");
        }
    return true;
}

static void on_stopped(void *arg)
{
    struct target_discovery *discovery = arg;
    discovery->stopped(discovery->stopped_arg);
}

struct target_discovery *target_discovery_create(const struct target_discovery_settings *settings,
                                                 struct error *error)
{
    struct target_discovery *discovery = mem_zalloc(sizeof(*discovery));
    size_t count = 0;
    discovery->settings = *settings;
    discovery->users = (struct stop_latch){.fn = on_stopped, .arg = discovery, .pending = 1};
    for (size_t i = 0; i < settings->jobs_count; i++)
        count += settings->jobs[i].discovery->file_sd_configs.count +
                 settings->jobs[i].discovery->http_sd_configs.count;
    discovery->sources = mem_zalloc((count + 1) * sizeof(*discovery->sources));
    for (size_t i = 0; i < settings->jobs_count; i++)
        if (!add_job(discovery, i, error)) {
            error_at_index(error, i);
            target_discovery_destroy(discovery);
            return NULL;
        }
    return discovery;
}

struct scrape_target_list *target_discovery_start(struct target_discovery *discovery)
{
    bool has_files = false;
    discovery->list = make_list(discovery);
    if (discovery->list == NULL)
        return NULL;
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        lane_timer_start(discovery->settings.lane, &source->timer, source->interval_ns);
        has_files |= source->files != NULL;
        if (source->files == NULL)
            ask(source);
    }
    if (has_files)
        run(discovery);
    return scrape_target_list_ref(discovery->list);
}

static void on_client_closed(void *arg)
{
    struct target_discovery *discovery = arg;
    stop_latch_release(&discovery->users);
}

void target_discovery_stop(struct target_discovery *discovery, void (*stopped)(void *arg),
                           void *arg)
{
    discovery->is_stopping = true;
    discovery->stopped = stopped;
    discovery->stopped_arg = arg;
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        lane_timer_stop(discovery->settings.lane, &source->timer);
        lane_timer_stop(discovery->settings.lane, &source->settle);
        if (source->client != NULL)
            http_client_close(source->client, on_client_closed, discovery);
        for (size_t k = 0; k < source->folders_count; k++)
            uv_close((uv_handle_t *)&source->folders[k]->watch, on_folder_closed);
        source->folders_count = 0;
    }
    stop_latch_release(&discovery->users);
}

void target_discovery_destroy(struct target_discovery *discovery)
{
    if (discovery == NULL)
        return;
    for (size_t i = 0; i < discovery->sources_count; i++) {
        struct source *source = &discovery->sources[i];
        for (size_t k = 0; k < source->readings_count; k++)
            reading_free(&source->readings[k]);
        mem_free(source->readings);
        http_client_destroy(source->client);
        scrape_http_close(&source->http);
        http_url_clear(&source->url);
        buffer_unref(source->body);
    }
    scrape_target_list_unref(discovery->list);
    scrape_target_list_unref(discovery->next);
    mem_free(discovery->sources);
    mem_free(discovery);
}
