/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the process: load, build, start, run the lanes, stop on a signal, reload on SIGHUP.
 * An invalid configuration changes nothing. Main thread, which is also lane 0. */
#include "src/service/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/core_dumps.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/machine.h"
#include "src/base/mem.h"
#include "src/base/reload_state.h"
#include "src/config/config.h"
#include "src/net/socket/inherited_listeners.h"
#include "src/service/service.h"

enum end_reason { END_SIGNAL, END_RELOAD, END_FAILED };

struct supervisor {
    const struct config_request *request;
    struct config *config;
    struct config *next_config; /* checked and waiting for the old one to stop */
    struct service *service;
    unsigned lanes_count;
    struct lane *lanes[LANES_MAX];
    int signal_fd; /* -1: none */
    uv_poll_t signals;
    enum end_reason end_reason;
    bool is_stopping;
    bool is_forced;
    bool is_reload_due;    /* asked for while another one was under way */
    uint64_t signalled_ns; /* time of the signal to end; 0: none yet */
};

static const char *resource_value(const struct config_service *config, const char *key,
                                  const char *standard)
{
    for (size_t i = 0; i < config->resource.count; i++)
        if (strcmp(config->resource.pairs[i].key, key) == 0)
            return config->resource.pairs[i].value;
    return standard;
}

/* Sets the log up anew: opens all outputs, then closes the old ones that are ours. If none can be
 * opened, lines go to stderr. */
static void configure_log(const struct config_service *config)
{
    struct log_settings settings = log_settings_default();
    assert(config->log_level >= LOG_DEBUG && config->log_level <= LOG_ERROR);
    settings.level = (enum log_level)config->log_level;
    settings.is_json = config->log_encoding == 1;
    settings.has_caller = !config->log_disable_caller;
    settings.is_sampled = config->log_is_sampled;
    settings.sampling_tick_ns = config->log_sampling_tick_ns;
    settings.sampling_initial = config->log_sampling_initial;
    settings.sampling_thereafter = config->log_sampling_thereafter;
    settings.service_name = resource_value(config, "service.name", settings.service_name);
    settings.service_version = resource_value(config, "service.version", settings.service_version);
    settings.service_instance_id = resource_value(config, "service.instance.id", "");
    const struct config_texts *paths = &config->log_output_paths;
    int failed[LOG_OUTPUTS_MAX] = {0};
    assert(paths->count <= LOG_OUTPUTS_MAX);
    settings.fds_count = 0;
    for (size_t i = 0; i < paths->count; i++) {
        /* A descriptor, or a negative errno. */
        int fd;
        if (strcmp(paths->texts[i], "stderr") == 0)
            fd = STDERR_FILENO;
        else if (strcmp(paths->texts[i], "stdout") == 0)
            fd = STDOUT_FILENO;
        else
            fd = fileops()->open(paths->texts[i], O_WRONLY | O_CREAT | O_APPEND, 0640);
        failed[i] = fd < 0 ? -fd : 0;
        if (fd >= 0)
            settings.fds[settings.fds_count++] = fd;
    }
    if (settings.fds_count == 0)
        settings.fds[settings.fds_count++] = STDERR_FILENO;
    log_configure(&settings);
    static int old_fds[LOG_OUTPUTS_MAX];
    static size_t old_count;
    for (size_t i = 0; i < old_count; i++)
        if (old_fds[i] > STDERR_FILENO)
            fileops()->close(old_fds[i]);
    memcpy(old_fds, settings.fds, sizeof(old_fds));
    old_count = settings.fds_count;
    for (size_t i = 0; i < paths->count; i++)
        if (failed[i] != 0)
            log_error(NULL,
                      "Cannot open a log output; its lines go to the other outputs, or to stderr.",
                      log_text("path", paths->texts[i]), log_text("error", strerror(failed[i])));
}

static const char no_loop[] = "cannot create an event loop: too many open files?";

/* Ends a lane from another one; freed on the lane. */
struct end_task {
    struct lane_task task;
    struct lane *lane;
};

static void end_lane(struct lane_task *task)
{
    struct end_task *end = (struct end_task *)task;
    lane_end(end->lane);
    mem_free(end);
}

static void on_stopped(bool is_forced, void *arg)
{
    struct supervisor *self = arg;
    assert(self->is_stopping);
    self->is_forced = is_forced;
    assert(self->lanes_count > 0);
    for (unsigned i = 0; i < self->lanes_count; i++) {
        struct end_task *end = mem_zalloc(sizeof(*end));
        end->task.fn = end_lane;
        end->lane = self->lanes[i];
        lane_post(end->lane, &end->task);
    }
}

static void stop(struct supervisor *self, enum end_reason reason)
{
    assert(!self->is_stopping);
    self->is_stopping = true;
    self->end_reason = reason;
    service_stop(self->service, on_stopped, self);
}

/* Where problems are reported: `validate` prints errors and warnings, a running daemon logs
 * them. */
enum load_purpose { LOAD_TO_START, LOAD_TO_RELOAD, LOAD_TO_VALIDATE };

static const char unsupported_hint[] = "What this build lacks can be left out: start with "
                                       "--skip-unsupported, or let `spanflame migrate "
                                       "FILE` show what runs here and write a file that does.";

/* A component as a whole, a part of a pipeline that runs, or a pipeline. */
static void report_skip(const struct config_skip *skip, enum load_purpose purpose)
{
    if (purpose == LOAD_TO_VALIDATE) {
        if (skip->component == NULL)
            fprintf(stderr, "Skipped: pipeline %s: %s\n", skip->pipeline, skip->why);
        else if (skip->pipeline == NULL)
            fprintf(stderr, "Skipped: %s\n", skip->why);
        else
            fprintf(stderr, "Skipped: %s::%s in pipeline %s: %s\n", skip->section, skip->component,
                    skip->pipeline, skip->why);
    } else if (skip->component == NULL) {
        log_warn(NULL, "A pipeline is left out and does not run.",
                 log_text("pipeline", skip->pipeline), log_text("why", skip->why));
    } else if (skip->pipeline == NULL) {
        log_warn(NULL, "A component is left out and does not run.",
                 log_text("section", skip->section), log_text("component", skip->component),
                 log_text("why", skip->why));
    } else {
        log_warn(NULL, "A pipeline runs without one of its components.",
                 log_text("pipeline", skip->pipeline), log_text("section", skip->section),
                 log_text("component", skip->component), log_text("why", skip->why));
    }
}

/* On a lane of its own, which never runs. */
static bool can_build(const struct config *config, bool is_rehearsal, struct error *error)
{
    struct lane *lane = lane_create(0);
    bool is_built = lane != NULL && service_can_build(config, lane, is_rehearsal, error);
    if (lane == NULL)
        error_set(error, "%s", no_loop);
    lane_destroy(lane);
    return is_built;
}

static struct config *load(const struct config_request *request, enum load_purpose purpose)
{
    struct config_problems problems = {0};
    struct error error = {.text = ""};
    struct config *config = config_load(request, &problems);
    if (config != NULL && purpose == LOAD_TO_START) {
        core_dumps_allow(config->service.core_dumps);
        configure_log(&config->service);
    }
    if (purpose == LOAD_TO_VALIDATE) {
        assert(problems.notices_count <= problems.warnings_count);
        for (size_t i = 0; i + problems.notices_count < problems.warnings_count; i++)
            fprintf(stderr, "Warning: %s\n", problems.warnings[i]);
    } else {
        for (size_t i = 0; i < problems.warnings_count; i++)
            log_warn(NULL, problems.warnings[i]);
    }
    for (size_t i = 0; config != NULL && i < config->skips_count; i++)
        report_skip(&config->skips[i], purpose);
    for (size_t i = 0; i < problems.count; i++) {
        if (purpose == LOAD_TO_RELOAD)
            log_error(NULL, "invalid configuration", log_text("error", problems.texts[i]));
        else
            fprintf(stderr, "%s%s\n", i == 0 ? "Error: " : "       ", problems.texts[i]);
    }
    if (config == NULL && problems.has_unsupported && purpose == LOAD_TO_RELOAD)
        log_error(NULL, unsupported_hint);
    else if (config == NULL && problems.has_unsupported)
        fprintf(stderr, "       %s\n", unsupported_hint);
    config_problems_clear(&problems);
    if (config == NULL)
        return NULL;
    /* So that failures are known before anything stops. */
    if (can_build(config, purpose == LOAD_TO_VALIDATE, &error))
        return config;
    if (purpose == LOAD_TO_RELOAD)
        log_error(NULL, "invalid configuration", log_text("error", error.text));
    else
        fprintf(stderr, "Error: %s\n", error.text);
    assert(error.text[0] != '\0');
    config_destroy(config);
    return NULL;
}

static void on_signal(struct supervisor *self, int number)
{
    const char *name = number == SIGHUP ? "hangup" : number == SIGINT ? "interrupt" : "terminated";
    log_info(NULL, "Received signal from OS", log_text("signal", name));
    if (number != SIGHUP) {
        assert(number == SIGTERM || number == SIGINT);
        if (self->signalled_ns != 0) {
            /* Process supervisors and wrappers may send the same signal more than once, so only a
             * second interrupt, from a user at the keyboard, gives up what is queued. */
            assert(self->is_stopping);
            if (number == SIGINT && clock_now_ns() - self->signalled_ns >= SIGNAL_AGAIN_NS)
                service_force(self->service);
            else
                log_info(
                    NULL,
                    "Shutdown is already in progress; another interrupt (Ctrl-C) cuts it short.");
        } else {
            self->signalled_ns = clock_now_ns();
            if (!self->is_stopping) {
                stop(self, END_SIGNAL);
            } else if (self->end_reason == END_RELOAD) {
                /* Nothing follows that would take over what was kept for it. */
                self->end_reason = END_SIGNAL;
                inherited_listeners_end();
                reload_state_end();
            }
        }
    } else if (!self->is_stopping) {
        log_warn(NULL, "Config updated, restart service");
        assert(self->next_config == NULL);
        self->next_config = load(self->request, LOAD_TO_RELOAD);
        if (self->next_config == NULL) {
            log_error(NULL, "The new configuration is invalid; the old one keeps running.");
            return;
        }
        inherited_listeners_begin();
        reload_state_begin();
        stop(self, END_RELOAD);
    } else if (self->end_reason == END_RELOAD) {
        self->is_reload_due = true;
    }
}

static void on_signals(uv_poll_t *poll, int status, int events)
{
    struct supervisor *self = poll->data;
    struct signalfd_siginfo info;
    (void)status;
    (void)events;
    while (read(self->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        on_signal(self, (int)info.ssi_signo);
}

/* The signals are blocked in every thread and read from a descriptor (signalfd(2)). So they wait
 * between two configurations, and while the process is replaced; a handler that comes and goes
 * would leave moments in which they end the process. No thread runs before the first call. */
static bool watch_signals(struct supervisor *self, struct error *error)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    self->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (self->signal_fd < 0)
        return error_set(error, "cannot watch signals: %s", strerror(errno));
    int failed = uv_poll_init(lane_loop(self->lanes[0]), &self->signals, self->signal_fd);
    if (failed != 0)
        return error_set(error, "cannot watch signals: %s", uv_strerror(failed));
    self->signals.data = self;
    uv_poll_start(&self->signals, UV_READABLE, on_signals);
    return true;
}

/* Creates the lanes, of which the first handles signals. */
static bool create_lanes(struct supervisor *self, struct error *error)
{
    uint64_t lanes = self->config->service.lanes;
    uint64_t wanted = lanes > 0 ? lanes : machine_cores();
    assert(self->lanes_count == 0);
    while (self->lanes_count < wanted && self->lanes_count < LANES_MAX) {
        self->lanes[self->lanes_count] = lane_create(self->lanes_count);
        if (self->lanes[self->lanes_count] == NULL)
            return error_set(error, "%s", no_loop);
        self->lanes_count++;
    }
    return watch_signals(self, error);
}

/* One configuration from start to stop. */
static void run_once(struct supervisor *self)
{
    struct error error = {.text = ""};
    self->is_stopping = false;
    self->is_forced = false;
    self->signal_fd = -1;
    /* Signals are handled once the loop runs. */
    if (create_lanes(self, &error))
        self->service = service_create(self->config, self->lanes, self->lanes_count, &error);
    bool is_started = self->service != NULL && service_start(self->service, &error);
    inherited_listeners_end();
    reload_state_end();
    if (!is_started) {
        assert(error.text[0] != '\0');
        fprintf(stderr, "Error: %s\n", error.text);
        self->end_reason = END_FAILED;
    }
    if (self->service != NULL) {
        if (!is_started)
            stop(self, END_FAILED);
        else if (self->is_reload_due)
            kill(getpid(), SIGHUP); /* the files may have changed since they were read */
        self->is_reload_due = false;
        /* Without a thread for each lane even an orderly stop is impossible: the process ends. */
        assert(self->lanes_count > 0);
        for (unsigned i = 1; i < self->lanes_count; i++) {
            int failed = lane_spawn(self->lanes[i]);
            if (failed != 0) {
                fprintf(stderr, "Error: cannot start a thread: %s\n", uv_strerror(failed));
                _exit(1);
            }
        }
        lane_run(self->lanes[0]);
        for (unsigned i = 1; i < self->lanes_count; i++)
            lane_join(self->lanes[i]);
    }
    if (self->is_forced) {
        /* Requests, timers and sockets may still be active: the process ends around them. On a
         * reload it continues in a new process. */
        log_warn(NULL, "Shutdown was cut short.",
                 log_int("dropped_items", (int64_t)service_abandoned_items(self->service)));
        if (self->end_reason == END_RELOAD) {
            inherited_listeners_end();
            log_warn(NULL, "Restarting the process with the new configuration.");
        } else {
            log_info(NULL, "Shutdown complete.");
            _exit(self->end_reason == END_FAILED ? 1 : 0);
        }
        return;
    }
    service_destroy(self->service);
    self->service = NULL;
    assert(self->lanes_count <= LANES_MAX);
    for (unsigned i = 0; i < self->lanes_count; i++)
        lane_destroy(self->lanes[i]);
    self->lanes_count = 0;
    if (self->signal_fd >= 0)
        close(self->signal_fd);
}

int supervisor_run(const struct config_request *request)
{
    struct supervisor self = {.request = request};
    /* As Go programs do. The soft limit, often 1 024, exists for programs that use select(); here
     * each connection needs a descriptor, and connections beyond the limit are refused. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            log_warn(NULL, "Cannot raise the limit of open files",
                     log_text("error", strerror(errno)));
    }
    /* As in the Go collector, a stray SIGUSR1 does not end the process. */
    static const int ignored[] = {SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    self.config = load(request, LOAD_TO_START);
    if (self.config == NULL)
        return 1;
    log_info(NULL, "Starting spanflame...", log_text("Version", SPANFLAME_VERSION),
             log_int("NumCPU", machine_cores()));
    for (;;) {
        run_once(&self);
        if (self.is_forced)
            return SUPERVISOR_BEGIN_ANEW;
        if (self.end_reason != END_RELOAD)
            break;
        config_destroy(self.config);
        self.config = self.next_config;
        self.next_config = NULL;
        configure_log(&self.config->service);
    }
    log_info(NULL, "Shutdown complete.");
    config_destroy(self.next_config);
    config_destroy(self.config);
    return self.end_reason == END_FAILED ? 1 : 0;
}

bool supervisor_can_build(const struct config *config, struct error *error)
{
    return can_build(config, true, error);
}

int supervisor_validate(const struct config_request *request)
{
    struct config *config = load(request, LOAD_TO_VALIDATE);
    config_destroy(config);
    return config != NULL ? 0 : 1;
}
