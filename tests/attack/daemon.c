/* SPDX-License-Identifier: Apache-2.0 */
/* The child process: start, end, figures. */
#include "tests/attack/daemon.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "tests/attack/setup.h"
#include "tests/attack/tls.h"

enum { STARTS_MAX = 5, START_MS = 60000, LOOK_MS = 10, PAGE_BYTES_MAX = 1 << 20, PAGE_MS = 20000 };

/* A leak, a wild pointer or undefined behaviour ends the process with a report on stderr; so does
 * an abort, whose stack shows where a lane hangs. */
static const char asan_options[] =
    "handle_abort=1:detect_leaks=1:exitcode=99:quarantine_size_mb=32:allocator_may_return_null=0:"
    "max_allocation_size_mb=1024:print_summary=1:"
    "verify_asan_link_order=0"; /* what is preloaded to watch turns stands before it */
static const char ubsan_options[] = "print_stacktrace=1:halt_on_error=1";

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert(fd >= 0);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        abort();
    close(fd);
    return ntohs(address.sin_port);
}

static void set_port(const char *name, unsigned port)
{
    char variable[64];
    char text[16];
    snprintf(variable, sizeof(variable), "ATTACK_%s", name);
    for (char *at = variable; *at != 0; at++)
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    snprintf(text, sizeof(text), "%u", port);
    setenv(variable, text, 1);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Each daemon begins with an empty journal, so that a seed does the same again. */
static void empty_storage(const struct daemon *daemon)
{
    enum { OPEN_MAX = 8 };
    char path[DAEMON_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s.storage", daemon->log_path);
    nftw(path, remove_one, OPEN_MAX, FTW_DEPTH | FTW_PHYS);
    setenv(STORAGE_VARIABLE, path, 1);
    snprintf(path, sizeof(path), "%s.explored", daemon->log_path);
    nftw(path, remove_one, OPEN_MAX, FTW_DEPTH | FTW_PHYS);
    mkdir(path, 0700);
    setenv(EXPLORED_VARIABLE, path, 1);
    snprintf(path, sizeof(path), "%s.pem", daemon->log_path);
    tls_make_certificate(path);
    setenv(CERTIFICATE_VARIABLE, path, 1);
}

static void become(const char *executable, const char *config_path, const char *log_path)
{
    char option[DAEMON_PATH_MAX + 16];
    int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    setenv("ASAN_OPTIONS", asan_options, 1);
    setenv("UBSAN_OPTIONS", ubsan_options, 1);
    snprintf(option, sizeof(option), "--config=%s", config_path);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    /* For protobuf_message of prometheus_remote_write, and flatten_data of transform. */
    static const char gates[] =
        "--feature-gates=exporter.prometheusremotewritexporter.enableSendingRW2,"
        "transform.flatten.logs";
    execl(executable, executable, option, gates, (char *)NULL);
    _exit(127);
}

static bool is_ready(const struct daemon *daemon)
{
    struct bytes_out page = {.size = 0};
    bool has_responded = daemon_read_page(daemon, ENDPOINT_HEALTH, "/", &page) && page.size > 12 &&
                         memcmp(page.data + 9, "200", 3) == 0;
    bytes_fini(&page);
    return has_responded;
}

static bool start_once(struct daemon *daemon, const char *executable, const char *config_path,
                       uint16_t sink_port, char verdict[static VERDICT_BYTES_MAX])
{
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        daemon->ports[i] = free_port();
        set_port(endpoint_name((enum endpoint)i), daemon->ports[i]);
    }
    set_port("SINK", sink_port);
    empty_storage(daemon);
    daemon->pid = fork();
    assert(daemon->pid >= 0);
    if (daemon->pid == 0)
        become(executable, config_path, daemon->log_path);
    if (clock_getcpuclockid(daemon->pid, &daemon->cpu_clock) != 0)
        abort();
    for (unsigned waited = 0; waited < START_MS; waited += LOOK_MS) {
        if (!daemon_lives(daemon, verdict))
            return false;
        if (is_ready(daemon))
            return true;
        poll(NULL, 0, LOOK_MS);
    }
    snprintf(verdict, VERDICT_BYTES_MAX, "not ready within %d s", START_MS / 1000);
    daemon_signal(daemon, SIGKILL);
    char ignored[VERDICT_BYTES_MAX];
    daemon_await_end(daemon, 10, ignored);
    return false;
}

/* Another process on this machine took a port between our choice and the daemon's bind(). */
static bool has_lost_a_port(const struct daemon *daemon)
{
    char line[4096];
    bool is_lost = false;
    FILE *log = fopen(daemon->log_path, "r");
    while (log != NULL && !is_lost && fgets(line, sizeof(line), log) != NULL)
        is_lost = strstr(line, "address already in use") != NULL;
    if (log != NULL)
        fclose(log);
    return is_lost;
}

bool daemon_start(struct daemon *daemon, const char *executable, const char *config_path,
                  uint16_t sink_port, char verdict[static VERDICT_BYTES_MAX])
{
    for (unsigned tries = 1;; tries++) {
        if (start_once(daemon, executable, config_path, sink_port, verdict))
            return true;
        if (tries == STARTS_MAX || !has_lost_a_port(daemon))
            return false;
    }
}

/* True: it ended. */
static bool reap(struct daemon *daemon, int *ret_status)
{
    struct rusage usage;
    if (wait4(daemon->pid, ret_status, WNOHANG, &usage) != daemon->pid)
        return false;
    daemon->pid = 0;
    daemon->cpu_s += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    return true;
}

static void describe(int status, char verdict[static VERDICT_BYTES_MAX])
{
    if (WIFSIGNALED(status))
        snprintf(verdict, VERDICT_BYTES_MAX, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(verdict, VERDICT_BYTES_MAX, "ended with %d", WEXITSTATUS(status));
}

bool daemon_lives(struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX])
{
    int status;
    if (daemon->pid == 0)
        return false;
    if (!reap(daemon, &status))
        return true;
    describe(status, verdict);
    return false;
}

void daemon_signal(const struct daemon *daemon, int number)
{
    if (daemon->pid > 0)
        kill(daemon->pid, number);
}

static uint64_t rss_bytes(const struct daemon *daemon)
{
    char path[64];
    unsigned long long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool daemon_watch_memory(struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX])
{
    const uint64_t rss = rss_bytes(daemon);
    if (rss > daemon->rss_bytes_seen)
        daemon->rss_bytes_seen = rss;
    if (rss <= daemon->rss_bytes_max)
        return true;
    snprintf(verdict, VERDICT_BYTES_MAX, "memory: %llu MiB are resident, expected at most %llu",
             (unsigned long long)(rss >> 20), (unsigned long long)(daemon->rss_bytes_max >> 20));
    daemon_signal(daemon, SIGABRT);
    return false;
}

bool daemon_await_end(struct daemon *daemon, unsigned seconds,
                      char verdict[static VERDICT_BYTES_MAX])
{
    int status;
    bool exceeds = false;
    if (daemon->pid == 0)
        return false;
    for (unsigned waited = 0; waited < 1000 * seconds; waited += LOOK_MS) {
        if (reap(daemon, &status)) {
            if (!exceeds)
                describe(status, verdict);
            return !exceeds && status == 0;
        }
        exceeds = exceeds || !daemon_watch_memory(daemon, verdict);
        poll(NULL, 0, LOOK_MS);
    }
    snprintf(verdict, VERDICT_BYTES_MAX, "did not end within %u s", seconds);
    daemon_signal(daemon, SIGABRT); /* the report has its stack */
    for (unsigned waited = 0; waited < 20000 && !reap(daemon, &status); waited += LOOK_MS)
        poll(NULL, 0, LOOK_MS);
    daemon_signal(daemon, SIGKILL);
    while (daemon->pid != 0 && !reap(daemon, &status))
        poll(NULL, 0, LOOK_MS);
    return false;
}

uint64_t daemon_cpu_ns(const struct daemon *daemon)
{
    struct timespec time = {.tv_sec = 0};
    if (daemon->pid == 0 || clock_gettime(daemon->cpu_clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

uint64_t thread_cpu_ns(pid_t process, pid_t thread)
{
    char path[64];
    unsigned long long cpu_ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)process, (int)thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu", &cpu_ns) != 1)
        cpu_ns = 0;
    fclose(file);
    return cpu_ns;
}

uint64_t process_starved_ns(const char *process)
{
    char path[320];
    uint64_t sum_ns = 0;
    snprintf(path, sizeof(path), "%s/task", process);
    DIR *threads = opendir(path);
    if (threads == NULL)
        return 0;
    for (struct dirent *thread = readdir(threads); thread != NULL; thread = readdir(threads)) {
        unsigned long long starved_ns = 0;
        snprintf(path, sizeof(path), "%s/task/%s/schedstat", process, thread->d_name);
        FILE *file = thread->d_name[0] != '.' ? fopen(path, "re") : NULL;
        if (file == NULL)
            continue;
        if (fscanf(file, "%*u %llu", &starved_ns) == 1)
            sum_ns += starved_ns;
        fclose(file);
    }
    closedir(threads);
    return sum_ns;
}

uint64_t daemon_starved_ns(const struct daemon *daemon)
{
    char process[32];
    snprintf(process, sizeof(process), "/proc/%d", (int)daemon->pid);
    return process_starved_ns(process);
}

bool daemon_read_page(const struct daemon *daemon, enum endpoint endpoint, const char *path,
                      struct bytes_out *out)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(daemon->ports[endpoint]),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static uint8_t piece[1 << 14];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    snprintf((char *)piece, sizeof(piece),
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    size_t size = strlen((char *)piece);
    bytes_clear(out);
    bool is_sent = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                   send(fd, piece, size, MSG_NOSIGNAL) == (ssize_t)size;
    while (is_sent && out->size < PAGE_BYTES_MAX) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t got = poll(&wait, 1, PAGE_MS) == 1 ? read(fd, piece, sizeof(piece)) : -1;
        if (got <= 0)
            break;
        bytes_add(out, piece, (size_t)got);
    }
    close(fd);
    bytes_add(out, "", 1);
    return out->size > 1;
}

static double sum_of(const char *page, const char *name, const char *signal)
{
    char label[64];
    double sum = 0;
    snprintf(label, sizeof(label), "signal=\"%s\"", signal);
    for (const char *at = strstr(page, name); at != NULL; at = strstr(at + 1, name)) {
        const char *end = strchr(at, '\n');
        const char *found = strstr(at, label);
        const char *value = strchr(at, ' ');
        bool is_sample = at[strlen(name)] == '{' && (at == page || at[-1] == '\n');
        if (is_sample && end != NULL && found != NULL && found < end && value != NULL)
            sum += strtod(strrchr(at, '}') == NULL ? value : strchr(at, '}') + 1, NULL);
    }
    return sum;
}

bool daemon_check_ledger(const struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX])
{
    static const char *const signals[] = {"traces", "metrics", "logs", "profiles"};
    struct bytes_out page = {.size = 0};
    bool is_settled = true;
    if (!daemon_read_page(daemon, ENDPOINT_METRICS, "/metrics", &page)) {
        /* It may be reloading: nothing listens for a moment. */
        snprintf(verdict, VERDICT_BYTES_MAX, "no metrics");
        is_settled = false;
    }
    for (unsigned i = 0; i < 4 && is_settled; i++) {
        const char *text = (const char *)page.data;
        double received = sum_of(text, "spanflame_items_received", signals[i]);
        double delivered = sum_of(text, "spanflame_items_delivered", signals[i]);
        double rejected = sum_of(text, "spanflame_items_rejected", signals[i]);
        double dropped = sum_of(text, "spanflame_items_dropped", signals[i]);
        double deferred = sum_of(text, "spanflame_items_deferred", signals[i]);
        double in_flight = sum_of(text, "spanflame_items_in_flight", signals[i]);
        snprintf(
            verdict, VERDICT_BYTES_MAX,
            "%s: received %.0f, delivered %.0f, rejected %.0f, dropped %.0f, deferred %.0f, in "
            "flight %.0f",
            signals[i], received, delivered, rejected, dropped, deferred, in_flight);
        /* Lanes are not stopped to be read: while something moves, sums may differ. What a journal
         * has is tried again for as long as the back-end refuses it. */
        is_settled = received == delivered + rejected + dropped + deferred + in_flight &&
                     (in_flight == 0 || deferred > 0);
    }
    bytes_fini(&page);
    return is_settled;
}
