/* SPDX-License-Identifier: Apache-2.0 */
/* bench_disk: what the disk itself takes to keep writes. Overwrites a file of zeros, one pwrite and
 * one fdatasync at a time, from one thread, and prints as JSON how long they took. Open loop
 * (--rate): write i is due at start + i / rate whatever happened before, and its latency counts
 * from then; those that are due go together, as in a group commit. */
#include "tests/bench/histogram.h"
#include "tests/bench/support.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, GROUP_BYTES_MAX = 8 << 20, FILE_BYTES = 64 << 20 };

struct options {
    const char *file;
    uint64_t bytes;
    uint64_t writes;
    uint64_t rate; /* per second; 0: each follows the one before */
};

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {{"file", required_argument, NULL, 'f'},
                                          {"bytes", required_argument, NULL, 'b'},
                                          {"writes", required_argument, NULL, 'w'},
                                          {"rate", required_argument, NULL, 'r'},
                                          {0}};
    struct options options = {.bytes = BLOCK_BYTES, .writes = 1000};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'f')
            options.file = optarg;
        else if (option == 'b')
            options.bytes = strtoull(optarg, NULL, 10);
        else if (option == 'w')
            options.writes = strtoull(optarg, NULL, 10);
        else if (option == 'r')
            options.rate = strtoull(optarg, NULL, 10);
        else
            die("usage: bench_disk --file FILE [--bytes N] [--writes N] [--rate N]");
    }
    if (options.file == NULL || options.bytes == 0 || options.bytes > GROUP_BYTES_MAX ||
        options.writes == 0)
        die("bench_disk: --file is missing, or a number is out of range");
    return options;
}

static int make_file(const char *path)
{
    static const uint8_t zeros[1 << 20];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die("cannot make %s: %s", path, strerror(errno));
    for (size_t at = 0; at < FILE_BYTES; at += sizeof(zeros))
        if (pwrite(fd, zeros, sizeof(zeros), (off_t)at) != (ssize_t)sizeof(zeros))
            die("cannot write %s: %s", path, strerror(errno));
    if (fsync(fd) != 0)
        die("cannot flush %s: %s", path, strerror(errno));
    return fd;
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    int fd = make_file(options.file);
    uint8_t *data = malloc(GROUP_BYTES_MAX);
    struct histogram *latency = calloc(1, sizeof(*latency));
    if (data == NULL || latency == NULL)
        die("no memory");
    memset(data, 'x', GROUP_BYTES_MAX);
    uint64_t step_ns = options.rate > 0 ? UINT64_C(1000000000) / options.rate : 0;
    uint64_t start_ns = now_ns();
    uint64_t at = 0;
    uint64_t groups = 0;
    for (uint64_t done = 0; done < options.writes; groups++) {
        uint64_t now = now_ns();
        uint64_t due_ns = start_ns + done * step_ns;
        if (step_ns > 0 && now < due_ns) {
            struct timespec left = {.tv_nsec = (long)(due_ns - now)};
            nanosleep(&left, NULL);
            now = now_ns();
        }
        uint64_t count = 1;
        while (step_ns > 0 && done + count < options.writes &&
               start_ns + (done + count) * step_ns <= now &&
               (count + 1) * options.bytes <= GROUP_BYTES_MAX)
            count++;
        uint64_t size = (count * options.bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        if (at + size > FILE_BYTES)
            at = 0;
        if (pwrite(fd, data, size, (off_t)at) != (ssize_t)size || fdatasync(fd) != 0)
            die("cannot write %s: %s", options.file, strerror(errno));
        at += size;
        uint64_t end_ns = now_ns();
        for (uint64_t i = 0; i < count; i++)
            histogram_add(latency, end_ns - (step_ns > 0 ? start_ns + (done + i) * step_ns : now));
        done += count;
    }
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"writes\": %" PRIu64 ", \"groups\": %" PRIu64 ", \"seconds\": %.6f, "
           "\"mib_per_s\": %.1f, \"latency_ms\": {\"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f}}\n",
           options.writes, groups, seconds,
           (double)(options.writes * options.bytes) / (1 << 20) / seconds,
           (double)histogram_quantile(latency, 0.5) / 1e6,
           (double)histogram_quantile(latency, 0.99) / 1e6, (double)latency->max / 1e6);
    close(fd);
    unlink(options.file);
    free(latency);
    free(data);
    return 0;
}
