/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks the whole daemon with requests that are built by its protocols' grammars and then spoilt.
 * README.md says how to use it; scripts/run-fuzzers and the tests run it. A round is one life of
 * the daemon: its seed decides about the configuration, the requests and the back-end's responses.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "tests/attack/setup.h"
#include "tests/attack/traffic.h"

enum {
    SESSIONS = 1200,
    RECENT = 64, /* sessions before a finding that are kept with it */
    STOP_S = 60,
    /* For what is in flight, from the last response on. Profiles that share a long string, three in
     * a batch, and statements that copy it, were seen to take 90 s of two cores. */
    LEDGER_S = 900,
    STILL_S = 75,    /* the same when nothing moves: more than DOWNSTREAM_SHUT_IN_MAX_NS */
    NARROW_MAX = 40, /* lives of the daemon to find out which sessions it takes */
    SLOW_PIECES = 30,
    TEXT_MAX = 1024,
    REPORT_LINES = 60,
    /* What it takes at rest under sanitizers, its budget, and as much again for their redzones and
     * what they hold back: 355 were seen where the release build took 110. */
    RESIDENT_MIB = 400,
};

#define LEDGER_LOOK_S 0.05

struct options {
    const char *executable;
    const char *output;  /* directory of findings */
    const char *results; /* file of JSON lines, or NULL */
    const char *commit;
    const char *replay;     /* a finding's directory, or NULL */
    const char *turn_watch; /* the library, or NULL */
    const char *config;     /* for all seeds; NULL: drawn for each */
    uint64_t seed;
    uint64_t rounds;
    unsigned sessions;
    double seconds; /* 0: no limit */
    double cpu_seconds;
    uint64_t resident_mib; /* allowed */
    bool is_valid;         /* nothing is spoilt: most responses must be 2xx */
    uint64_t now_ns;       /* 0: the clock's */
};

struct attack {
    const struct options *options;
    struct daemon daemon;
    struct sink *sink;
    struct threads *threads; /* NULL: they are not watched */
    struct session_maker *maker;
    uint64_t now_ns;
    uint64_t rounds;
    unsigned findings;
    double generator_cpu_s; /* counted already in results */
    double daemon_cpu_s;
    uint64_t first_seed; /* of what results do not have yet */
    struct traffic_figures sum;
    uint64_t begun_ns;
};

static double own_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double now_s(void)
{
    return (double)clock_now_ns() / 1e9;
}

static bool is_over(const struct attack *attack)
{
    const struct options *options = attack->options;
    double cpu_s =
        own_cpu_s() + attack->daemon.cpu_s + (double)daemon_cpu_ns(&attack->daemon) / 1e9;
    return (options->seconds > 0 && now_s() - (double)attack->begun_ns / 1e9 > options->seconds) ||
           (options->cpu_seconds > 0 && cpu_s > options->cpu_seconds);
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wbe");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static void make_directory(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        perror(path);
        exit(2);
    }
}

/* Starts the daemon with the configuration in that file. */
static bool start(struct attack *attack, const char *config_path,
                  char verdict[static VERDICT_BYTES_MAX])
{
    snprintf(attack->daemon.log_path, sizeof(attack->daemon.log_path), "%s/daemon.log",
             attack->options->output);
    if (attack->threads != NULL)
        threads_begin(attack->threads);
    return daemon_start(&attack->daemon, attack->options->executable, config_path,
                        sink_port(attack->sink), verdict);
}

/* Every request has its response: the ledger must balance, and the daemon must exit with 0. */
static bool finish(struct attack *attack, struct traffic *traffic,
                   char verdict[static VERDICT_BYTES_MAX])
{
    bool is_settled = false;
    char ignored[VERDICT_BYTES_MAX];
    char before[VERDICT_BYTES_MAX] = "";
    sink_begin(attack->sink, 0, 0); /* what waits can leave */
    double until_s = now_s() + LEDGER_S;
    double still_s = now_s() + STILL_S;
    for (double look_s = 0; now_s() < until_s && now_s() < still_s && !is_settled;) {
        if (!traffic_turn(traffic, verdict))
            return false;
        if (now_s() < look_s)
            continue;
        is_settled = daemon_check_ledger(&attack->daemon, verdict);
        look_s = now_s() + LEDGER_LOOK_S;
        if (strcmp(before, verdict) != 0)
            still_s = now_s() + STILL_S;
        memcpy(before, verdict, sizeof(before));
    }
    if (!is_settled) {
        char found[VERDICT_BYTES_MAX - 8];
        snprintf(found, sizeof(found), "%s", verdict);
        snprintf(verdict, VERDICT_BYTES_MAX, "ledger: %s", found);
        daemon_signal(&attack->daemon, SIGTERM);
        daemon_await_end(&attack->daemon, STOP_S, ignored);
        return false;
    }
    daemon_signal(&attack->daemon, SIGTERM);
    return daemon_await_end(&attack->daemon, STOP_S, verdict);
}

static bool settle(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX])
{
    while (!traffic_is_idle(traffic))
        if (!traffic_turn(traffic, verdict))
            return false;
    return true;
}

/* The same, beside clients that stay for a while. */
static bool settle_prompt(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX])
{
    while (!traffic_is_quiet(traffic))
        if (!traffic_turn(traffic, verdict))
            return false;
    return true;
}

/* The end of a daemon that traffic has found at fault: it is under way already. */
static void bury(struct attack *attack, char verdict[static VERDICT_BYTES_MAX])
{
    char ignored[VERDICT_BYTES_MAX];
    if (attack->daemon.pid == 0)
        return;
    daemon_await_end(&attack->daemon, STOP_S, ignored);
    (void)verdict;
}

static unsigned hostile_of(const struct attack *attack, uint64_t seed)
{
    static const unsigned shares[] = {0, 0, 2, 8, 0, 0, 2, SINK_IS_AWAY};
    return attack->options->is_valid ? 0 : shares[seed % (sizeof(shares) / sizeof(shares[0]))];
}

/* Sends these sessions of a seed one after the other. True: the daemon survived. */
static bool play(struct attack *attack, const char *config_path, uint64_t seed,
                 const uint64_t *numbers, size_t count, char verdict[static VERDICT_BYTES_MAX])
{
    struct session session = {.requests = 0};
    sink_begin(attack->sink, seed, hostile_of(attack, seed));
    bool is_fine = start(attack, config_path, verdict);
    struct traffic *traffic = traffic_create(&attack->daemon, attack->sink, attack->threads);
    for (size_t i = 0; i < count && is_fine; i++) {
        session_make(attack->maker, seed, numbers[i], &session);
        traffic_send(traffic, &session, numbers[i]);
        is_fine = settle_prompt(traffic, verdict);
    }
    is_fine = is_fine && settle(traffic, verdict) && finish(attack, traffic, verdict);
    traffic_destroy(traffic);
    bury(attack, verdict);
    bytes_fini(&session.bytes);
    return is_fine;
}

/* Leaves out sessions that it does not take. Returns how many stay; 0: it does not come again. */
static size_t narrow(struct attack *attack, const char *config_path, uint64_t seed,
                     uint64_t numbers[], size_t count)
{
    char verdict[VERDICT_BYTES_MAX];
    unsigned tries = 0;
    /* What was sent last is the likeliest. */
    for (size_t i = count; i-- > 0 && tries < PROMPT_LINKS_MAX; tries++)
        if (!play(attack, config_path, seed, &numbers[i], 1, verdict)) {
            numbers[0] = numbers[i];
            return 1;
        }
    if (play(attack, config_path, seed, numbers, count, verdict))
        return 0;
    for (size_t piece = count / 2; piece > 0; piece /= 2)
        for (size_t at = 0; at + piece <= count && count > 1 && tries < NARROW_MAX; tries++) {
            uint64_t left[RECENT + LINKS_MAX];
            memcpy(left, numbers, at * sizeof(left[0]));
            memcpy(left + at, numbers + at + piece, (count - at - piece) * sizeof(left[0]));
            if (play(attack, config_path, seed, left, count - piece, verdict)) {
                at += piece;
                continue;
            }
            count -= piece;
            memcpy(numbers, left, count * sizeof(left[0]));
        }
    return count;
}

/* How the file of a session is to be played: "00012-http-c0.bin". */
static char mode_of(const struct session *session)
{
    if (session->is_packets)
        return 'u';
    if (session->habit == HABIT_DEAF)
        return session->is_http2 ? 'N' : 'n'; /* read nothing */
    if (session->habit == HABIT_SLOW)
        return session->is_http2 ? 'P' : 'p'; /* pause between pieces */
    if (session->sent_max < session->bytes.size)
        return 'd'; /* drop the connection at the end */
    if (!session->is_sound)
        return 'h';                       /* close our side, wait a little */
    return session->is_http2 ? 's' : 'c'; /* wait for so many streams, or for the end */
}

static void save_sessions(struct attack *attack, const char *directory, uint64_t seed,
                          const uint64_t *numbers, size_t count)
{
    struct session session = {.requests = 0};
    for (size_t i = 0; i < count; i++) {
        char path[2 * DAEMON_PATH_MAX];
        session_make(attack->maker, seed, numbers[i], &session);
        snprintf(path, sizeof(path), "%s/%05llu-%s-%c%u.bin", directory,
                 (unsigned long long)numbers[i], endpoint_name(session.endpoint), mode_of(&session),
                 session.requests);
        write_file(path, session.bytes.data, session.sent_max);
    }
    bytes_fini(&session.bytes);
}

static void copy_file(const char *from, const char *to)
{
    static char text[1 << 20];
    FILE *file = fopen(from, "rbe");
    if (file == NULL)
        return;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fseek(file, size > (long)sizeof(text) ? size - (long)sizeof(text) : 0, SEEK_SET);
    size_t got = fread(text, 1, sizeof(text), file);
    fclose(file);
    write_file(to, text, got);
}

/* What the daemon said last. */
static void print_report(const char *log_path)
{
    static char text[1 << 16];
    FILE *file = fopen(log_path, "rbe");
    if (file == NULL)
        return;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fseek(file, size >= (long)sizeof(text) ? size - (long)sizeof(text) + 1 : 0, SEEK_SET);
    size_t got = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[got] = 0;
    const char *at = strstr(text, "ERROR: ");
    if (at == NULL)
        at = strstr(text, "runtime error");
    if (at == NULL)
        at = strstr(text, "Assertion");
    if (at == NULL && got < 4096)
        at = text; /* a configuration that it does not take */
    for (unsigned lines = 0; at != NULL && lines < REPORT_LINES && *at != 0; lines++) {
        size_t line = strcspn(at, "\n");
        printf("    %.*s\n", (int)line, at);
        at += line + (at[line] != 0);
    }
}

static void report(struct attack *attack, const char *config_path, uint64_t seed,
                   const uint64_t *numbers, size_t count, const char *verdict)
{
    uint64_t kept[RECENT + LINKS_MAX];
    char directory[DAEMON_PATH_MAX];
    char path[DAEMON_PATH_MAX + 32];
    attack->findings++;
    snprintf(directory, sizeof(directory), "%s/finding-%llu", attack->options->output,
             (unsigned long long)seed);
    make_directory(directory);
    printf("FINDING with seed %llu, --now %llu, near session %llu: %s\n", (unsigned long long)seed,
           (unsigned long long)attack->now_ns,
           (unsigned long long)(count > 0 ? numbers[count - 1] : 0), verdict);
    print_report(attack->daemon.log_path);
    snprintf(path, sizeof(path), "%s/report.txt", directory);
    copy_file(attack->daemon.log_path, path);
    snprintf(path, sizeof(path), "%s/config.yaml", directory);
    copy_file(config_path, path);
    memcpy(kept, numbers, count * sizeof(kept[0]));
    size_t left = narrow(attack, config_path, seed, kept, count);
    if (left > 0)
        printf("  %zu of %zu sessions are enough\n", left, count);
    else
        printf("  it did not come again with the last %zu sessions; all of them are kept\n", count);
    save_sessions(attack, directory, seed, left > 0 ? kept : numbers, left > 0 ? left : count);
    printf("  replay it with: attack --daemon %s --replay %s\n", attack->options->executable,
           directory);
    fflush(stdout);
}

static void add_figures(struct traffic_figures *sum, const struct traffic_figures *figures)
{
    sum->sessions += figures->sessions;
    sum->requests += figures->requests;
    sum->bytes += figures->bytes;
    sum->streams += figures->streams;
    for (unsigned i = 0; i < STATUS_CLASSES; i++)
        sum->statuses[i] += figures->statuses[i];
    if (figures->stall_ns_max > sum->stall_ns_max)
        sum->stall_ns_max = figures->stall_ns_max;
    if (figures->threads.turn_ns_max > sum->threads.turn_ns_max)
        sum->threads.turn_ns_max = figures->threads.turn_ns_max;
    if (figures->threads.work_ns_max > sum->threads.work_ns_max)
        sum->threads.work_ns_max = figures->threads.work_ns_max;
    sum->calmed += figures->calmed;
}

/* The numbers that a finding is about: the last ones sent, those under way at the end. */
static size_t suspects(const struct traffic *traffic, uint64_t sent, uint64_t numbers[])
{
    uint64_t open[LINKS_MAX];
    unsigned open_count = traffic_under_way(traffic, open);
    size_t count = 0;
    for (uint64_t number = sent > RECENT ? sent - RECENT : 0; number < sent; number++) {
        bool is_open = false;
        for (unsigned i = 0; i < open_count; i++)
            is_open |= open[i] == number;
        if (!is_open)
            numbers[count++] = number;
    }
    for (unsigned i = 0; i < open_count; i++)
        numbers[count++] = open[i];
    return count;
}

/* One life of the daemon. */
static void run_round(struct attack *attack, uint64_t seed)
{
    char config_path[DAEMON_PATH_MAX];
    char verdict[VERDICT_BYTES_MAX] = "";
    struct bytes_out config = {.size = 0};
    struct session session = {.requests = 0};
    uint64_t numbers[RECENT + LINKS_MAX];
    uint64_t sent = 0;
    snprintf(config_path, sizeof(config_path), "%s/config.yaml", attack->options->output);
    if (attack->options->config != NULL)
        copy_file(attack->options->config, config_path);
    else {
        setup_write(seed, &config);
        write_file(config_path, config.data, config.size);
    }
    sink_begin(attack->sink, seed, hostile_of(attack, seed));
    bool is_fine = start(attack, config_path, verdict);
    struct traffic *traffic = traffic_create(&attack->daemon, attack->sink, attack->threads);
    uint64_t reload_at = seed % 3 == 0 ? attack->options->sessions / 2 : UINT64_MAX;
    while (is_fine && sent < attack->options->sessions && !is_over(attack)) {
        if (sent == reload_at)
            daemon_signal(&attack->daemon, SIGHUP);
        if (traffic_has_room(traffic)) {
            session_make(attack->maker, seed, sent, &session);
            traffic_send(traffic, &session, sent++);
        }
        is_fine = traffic_turn(traffic, verdict);
    }
    is_fine = is_fine && settle(traffic, verdict) && finish(attack, traffic, verdict);
    size_t count = suspects(traffic, sent, numbers);
    add_figures(&attack->sum, traffic_figures(traffic));
    traffic_destroy(traffic);
    bury(attack, verdict);
    if (!is_fine)
        report(attack, config_path, seed, numbers, count, verdict);
    bytes_fini(&session.bytes);
    bytes_fini(&config);
}

/* A line of JSON about the rounds since the last one. */
static void write_results(struct attack *attack, uint64_t last_seed, unsigned findings)
{
    const struct options *options = attack->options;
    const struct traffic_figures *sum = &attack->sum;
    double generator_s = own_cpu_s() - attack->generator_cpu_s;
    double daemon_s = attack->daemon.cpu_s - attack->daemon_cpu_s;
    char line[TEXT_MAX];
    snprintf(line, sizeof(line),
             "{\"commit\": \"%s\", \"first_seed\": %llu, \"last_seed\": %llu, "
             "\"sessions_per_seed\": %u, \"sessions\": %llu, \"requests\": %llu, \"bytes\": %llu, "
             "\"daemon_cpu_s\": %.1f, \"generator_cpu_s\": %.1f, \"http1_statuses\": "
             "{\"1xx\": %llu, \"2xx\": %llu, \"3xx\": %llu, \"4xx\": %llu, \"5xx\": %llu}, "
             "\"http2_streams\": %llu, \"longest_hold_cpu_s\": %.2f, \"longest_turn_cpu_s\": %.2f, "
             "\"longest_work_cpu_s\": %.2f, \"rss_mib_max\": %llu, "
             "\"calmed\": %llu, \"findings\": %u}\n",
             options->commit, (unsigned long long)attack->first_seed, (unsigned long long)last_seed,
             options->sessions, (unsigned long long)sum->sessions,
             (unsigned long long)sum->requests, (unsigned long long)sum->bytes, daemon_s,
             generator_s, (unsigned long long)sum->statuses[1],
             (unsigned long long)sum->statuses[2], (unsigned long long)sum->statuses[3],
             (unsigned long long)sum->statuses[4], (unsigned long long)sum->statuses[5],
             (unsigned long long)sum->streams, (double)sum->stall_ns_max / 1e9,
             (double)sum->threads.turn_ns_max / 1e9, (double)sum->threads.work_ns_max / 1e9,
             (unsigned long long)(attack->daemon.rss_bytes_seen >> 20),
             (unsigned long long)sum->calmed, findings);
    printf("%s", line);
    fflush(stdout);
    if (options->results != NULL) {
        FILE *file = fopen(options->results, "ae");
        if (file == NULL || fputs(line, file) < 0 || fclose(file) != 0) {
            perror(options->results);
            exit(2);
        }
    }
    attack->generator_cpu_s += generator_s;
    attack->daemon_cpu_s += daemon_s;
    attack->first_seed = last_seed + 1;
    attack->sum = (struct traffic_figures){.sessions = 0};
    attack->daemon.rss_bytes_seen = 0;
}

/* Most of what is not spoilt is taken; the rest is more than the configuration allows, asks for
 * pages by odd methods, or has odd names. Otherwise the grammar were not the daemon's any more, and
 * spoilt requests would not get beyond its receivers. */
static bool check_valid(const struct traffic_figures *figures)
{
    uint64_t good = figures->statuses[2];
    uint64_t all = 0;
    for (unsigned i = 1; i < STATUS_CLASSES; i++)
        all += figures->statuses[i];
    if (figures->sessions == 0 || good * 5 >= all * 4)
        return true;
    printf("FINDING: %llu of %llu valid requests were taken\n", (unsigned long long)good,
           (unsigned long long)all);
    return false;
}

static int run(struct attack *attack)
{
    enum { ROUNDS_PER_LINE = 5 };
    const struct options *options = attack->options;
    unsigned reported = 0;
    attack->first_seed = options->seed;
    for (uint64_t i = 0; i < options->rounds && !is_over(attack); i++) {
        uint64_t seed = options->seed + i;
        bool is_last = i + 1 == options->rounds;
        run_round(attack, seed);
        if ((i + 1) % ROUNDS_PER_LINE == 0 || is_last || is_over(attack) ||
            attack->findings > reported) {
            attack->findings += options->is_valid && !check_valid(&attack->sum);
            write_results(attack, seed, attack->findings - reported);
            reported = attack->findings;
        }
    }
    return attack->findings > 0 ? 1 : 0;
}

/* What the name of a saved session says. */
static bool read_name(const char *name, struct session *session)
{
    char endpoint[32];
    char mode;
    if (sscanf(name, "%*u-%31[a-z]-%c%u.bin", endpoint, &mode, &session->requests) != 3)
        return false;
    session->endpoint = ENDPOINTS;
    for (unsigned i = 0; i < ENDPOINTS; i++)
        if (strcmp(endpoint, endpoint_name((enum endpoint)i)) == 0)
            session->endpoint = (enum endpoint)i;
    session->is_http2 = mode == 's' || mode == 'N' || mode == 'P';
    session->habit = mode == 'n' || mode == 'N'   ? HABIT_DEAF
                     : mode == 'p' || mode == 'P' ? HABIT_SLOW
                                                  : HABIT_PROMPT;
    session->is_packets = mode == 'u';
    session->is_sound = mode == 's' || mode == 'c' || mode == 'u';
    session->sent_max = session->bytes.size;
    session->piece_bytes = session->bytes.size;
    if (session->habit == HABIT_SLOW)
        session->piece_bytes = 1 + session->bytes.size / SLOW_PIECES;
    if (mode == 'd')
        bytes_add(&session->bytes, "", 1); /* which is never sent */
    return session->endpoint < ENDPOINTS;
}

static bool read_session(const char *directory, const char *name, struct session *session)
{
    char path[DAEMON_PATH_MAX];
    uint8_t piece[4096];
    size_t got;
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return false;
    bytes_clear(&session->bytes);
    while ((got = fread(piece, 1, sizeof(piece), file)) > 0)
        bytes_add(&session->bytes, piece, got);
    fclose(file);
    return read_name(name, session);
}

static int is_session(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 4 && strcmp(entry->d_name + size - 4, ".bin") == 0;
}

/* Plays a saved finding. 0: the daemon survived. */
static int replay(struct attack *attack, const char *directory)
{
    char config_path[DAEMON_PATH_MAX];
    char verdict[VERDICT_BYTES_MAX] = "";
    struct session session = {.requests = 0};
    struct dirent **names = NULL;
    int count = scandir(directory, &names, is_session, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no sessions there\n", directory);
        return 2;
    }
    snprintf(config_path, sizeof(config_path), "%s/config.yaml", directory);
    sink_begin(attack->sink, 0, 0);
    bool is_fine = start(attack, config_path, verdict);
    struct traffic *traffic = traffic_create(&attack->daemon, attack->sink, attack->threads);
    for (int i = 0; i < count; i++) {
        bool is_read = read_session(directory, names[i]->d_name, &session);
        assert(is_read);
        (void)is_read;
        if (is_fine) {
            traffic_send(traffic, &session, (uint64_t)i);
            is_fine = settle_prompt(traffic, verdict);
        }
        free(names[i]);
    }
    free(names);
    is_fine = is_fine && settle(traffic, verdict) && finish(attack, traffic, verdict);
    traffic_destroy(traffic);
    bury(attack, verdict);
    bytes_fini(&session.bytes);
    printf("%s: %d sessions, %s\n", directory, count, is_fine ? "survived" : verdict);
    if (!is_fine)
        print_report(attack->daemon.log_path);
    return is_fine ? 0 : 1;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A finding's directory, or one that holds nothing but such. */
static int replay_all(struct attack *attack)
{
    const char *directory = attack->options->replay;
    char path[DAEMON_PATH_MAX];
    struct dirent **names = NULL;
    int result = 0;
    snprintf(path, sizeof(path), "%s/config.yaml", directory);
    if (access(path, R_OK) == 0)
        return replay(attack, directory);
    int count = scandir(directory, &names, is_visible, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no findings there\n", directory);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]->d_name);
        result |= replay(attack, path);
        free(names[i]);
    }
    free(names);
    return result;
}

static const char usage[] =
    "usage: attack --daemon PROGRAM [--output DIRECTORY] [--seed N] [--rounds N] [--sessions N]\n"
    "              [--seconds S] [--cpu-seconds S] [--resident-mib M] [--now NANOSECONDS] "
    "[--results FILE]\n"
    "              [--commit TEXT] [--replay DIRECTORY] [--config FILE] [--valid] "
    "[--turn-watch LIBRARY]\n";

static bool read_options(int count, char **arguments, struct options *options)
{
    static const struct option names[] = {
        {"daemon", required_argument, NULL, 'd'},
        {"output", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"sessions", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 't'},
        {"cpu-seconds", required_argument, NULL, 'c'},
        {"resident-mib", required_argument, NULL, 'm'},
        {"now", required_argument, NULL, 'w'},
        {"results", required_argument, NULL, 'j'},
        {"commit", required_argument, NULL, 'g'},
        {"replay", required_argument, NULL, 'p'},
        {"config", required_argument, NULL, 'f'},
        {"valid", no_argument, NULL, 'v'},
        {"turn-watch", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(count, arguments, "", names, NULL)) != -1;) {
        switch (option) {
        case 'd':
            options->executable = optarg;
            break;
        case 'o':
            options->output = optarg;
            break;
        case 's':
            options->seed = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            options->rounds = strtoull(optarg, NULL, 10);
            break;
        case 'n':
            options->sessions = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 't':
            options->seconds = strtod(optarg, NULL);
            break;
        case 'c':
            options->cpu_seconds = strtod(optarg, NULL);
            break;
        case 'm':
            options->resident_mib = strtoull(optarg, NULL, 10);
            break;
        case 'w':
            options->now_ns = strtoull(optarg, NULL, 10);
            break;
        case 'j':
            options->results = optarg;
            break;
        case 'g':
            options->commit = optarg;
            break;
        case 'p':
            options->replay = optarg;
            break;
        case 'f':
            options->config = optarg;
            break;
        case 'v':
            options->is_valid = true;
            break;
        case 'l':
            options->turn_watch = optarg;
            break;
        default:
            return false;
        }
    }
    return options->executable != NULL && optind == count;
}

int main(int count, char **arguments)
{
    struct options options = {.output = "attack-output",
                              .commit = "unknown",
                              .seed = 1,
                              .rounds = UINT64_MAX,
                              .resident_mib = RESIDENT_MIB,
                              .sessions = SESSIONS};
    if (!read_options(count, arguments, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* OpenSSL does not ask for silence */
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_directory(options.output);
    struct attack attack = {.options = &options,
                            .now_ns = options.now_ns > 0 ? options.now_ns : clock_wall_ns(),
                            .begun_ns = clock_now_ns(),
                            .daemon.rss_bytes_max = options.resident_mib << 20};
    attack.sink = sink_create();
    if (options.turn_watch != NULL) {
        char path[DAEMON_PATH_MAX];
        snprintf(path, sizeof(path), "%s/turns", options.output);
        attack.threads = threads_create(options.turn_watch, path);
    }
    attack.maker = session_maker_create(attack.now_ns, options.is_valid);
    int result = options.replay != NULL ? replay_all(&attack) : run(&attack);
    session_maker_destroy(attack.maker);
    sink_destroy(attack.sink);
    threads_destroy(attack.threads);
    return result;
}
