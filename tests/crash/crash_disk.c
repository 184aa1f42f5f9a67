/* SPDX-License-Identifier: Apache-2.0 */
/* Lends a recorded disk to a command, which cuts its power: daemon_crash.py.
 *
 * usage: crash_disk FILE_SYSTEM COMMAND [ARGUMENT]...
 *
 * The command gets the mount point in CRASH_DISK_VOLUME, and in CRASH_DISK_FD a socket that takes
 * one request a line and gives one line for each: "ok", "ok RESULT" or "error REASON". What it
 * leaves running ends with it, and so do the mounts. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/cut.h"
#include "tests/crash/recorder.h"
#include "tests/crash/volume.h"

enum { EXIT_SKIPPED = 77, LINE_BYTES_MAX = 512 };

static const struct volume_type *type;
static struct recorder *recorder;
static char base[] = "/tmp/crash-disk.XXXXXX";
static char volume[64];

/* One letter for each entry: W of a write, F of a flush, M and its text of a mark. */
static void reply_events(FILE *to, size_t first)
{
    size_t end = recorder_count(recorder);
    fprintf(to, "ok");
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(recorder, i);
        if (entry.event == RECORDER_MARK)
            fprintf(to, " M%.*s", (int)entry.size, (const char *)entry.bytes);
        else
            fputs(entry.event == RECORDER_WRITE ? " W" : " F", to);
    }
    fputc('\n', to);
}

static void reply_to(FILE *to, const char *line)
{
    char name[32] = "";
    char text[256] = "";
    uint64_t numbers[4] = {0};
    int failed = 0;
    sscanf(line, "%31s %255s", name, text);
    sscanf(line, "%*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1],
           &numbers[2], &numbers[3]);
    if (strcmp(name, "mount") == 0) {
        failed = volume_mount(type, recorder, volume);
    } else if (strcmp(name, "unmount") == 0) {
        failed = volume_unmount(type, recorder, volume);
    } else if (strcmp(name, "mark") == 0) {
        recorder_mark(recorder, text, strlen(text));
    } else if (strcmp(name, "count") == 0) {
        fprintf(to, "ok %zu\n", recorder_count(recorder));
        return;
    } else if (strcmp(name, "events") == 0) {
        reply_events(to, numbers[0]);
        return;
    } else if (strcmp(name, "put_all") == 0) {
        cut_put_all(recorder, numbers[0], numbers[1]);
    } else if (strcmp(name, "put") == 0) {
        cut_random = numbers[3];
        cut_put(recorder, numbers[0], numbers[1], (uint32_t)numbers[2]);
    } else if (strcmp(name, "save") == 0) {
        fprintf(to, "ok %" PRIu64 "\n", recorder_save(recorder));
        return;
    } else if (strcmp(name, "restore") == 0) {
        recorder_restore(recorder, numbers[0]);
    } else if (strcmp(name, "truncate") == 0) {
        recorder_truncate(recorder, numbers[0]);
    } else if (strcmp(name, "settle") == 0) {
        recorder_settle(recorder);
    } else if (strcmp(name, "export") == 0) {
        if (!recorder_export(recorder, text)) {
            fprintf(to, "error the image cannot be written\n");
            return;
        }
    } else {
        fprintf(to, "error unknown request\n");
        return;
    }
    if (failed != 0)
        fprintf(to, "error %s\n", strerror(failed));
    else
        fprintf(to, "ok\n");
}

static const char *make_disk(void)
{
    const char *why = NULL;
    char disk[64];
    if (!volume_enter(&why))
        return why;
    /* The directory is gone with the test: it lies in a file system of its own. */
    if (mkdtemp(base) == NULL || mount("none", base, "tmpfs", 0, NULL) != 0)
        return "there is no directory for the mounts";
    snprintf(disk, sizeof(disk), "%s/disk", base);
    snprintf(volume, sizeof(volume), "%s/volume", base);
    mkdir(disk, 0700);
    mkdir(volume, 0700);
    recorder = recorder_create(disk, type->bytes, &why);
    if (recorder != NULL && volume_format(type, recorder, &why))
        recorder_settle(recorder);
    return why;
}

/* The command is the first process of a namespace: when it ends, all that it began does. */
static _Noreturn void run_command(char **argv, int fd)
{
    char number[16];
    int status = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWPID) != 0)
        _exit(127);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(number, sizeof(number), "%d", fd);
        setenv("CRASH_DISK_FD", number, 1);
        setenv("CRASH_DISK_VOLUME", volume, 1);
        if (mount("proc", "/proc", "proc", 0, NULL) == 0)
            execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    close(fd);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(int argc, char **argv)
{
    int sockets[2];
    char line[LINE_BYTES_MAX];
    int status = 0;
    type = argc >= 3 ? volume_type_of(argv[1]) : NULL;
    if (type == NULL) {
        fprintf(stderr, "usage: crash_disk ext4|xfs|btrfs COMMAND [ARGUMENT]...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *why = make_disk();
    if (why != NULL) {
        printf("SKIPPED: crash images on %s: %s\n", argv[1], why);
        if (recorder != NULL)
            recorder_destroy(recorder);
        umount2(base, 0);
        rmdir(base);
        return EXIT_SKIPPED;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(sockets[0]);
        run_command(argv + 2, sockets[1]);
    }
    close(sockets[1]);
    FILE *from = fdopen(sockets[0], "r");
    FILE *to = fdopen(dup(sockets[0]), "w");
    while (fgets(line, sizeof(line), from) != NULL) {
        reply_to(to, line);
        fflush(to);
    }
    waitpid(child, &status, 0);
    fclose(from);
    fclose(to);
    umount2("/proc", MNT_DETACH); /* of the command's namespace */
    umount2(volume, 0);
    recorder_destroy(recorder);
    umount2(base, 0);
    rmdir(base);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
