/* SPDX-License-Identifier: Apache-2.0 */
/* Loop devices and mounts. */
#include "tests/crash/volume.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/recorder.h"

enum { ATTACH_ATTEMPTS = 100 };

extern char **environ;

static const struct volume_type types[] = {
    {.name = "ext4",
     .mkfs = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-E",
              "nodiscard,lazy_itable_init=0,lazy_journal_init=0"},
     .bytes = (uint64_t)64 << 20},
    {.name = "xfs", .mkfs = {"mkfs.xfs", "-q", "-f", "-K"}, .bytes = (uint64_t)320 << 20},
    {.name = "btrfs", .mkfs = {"mkfs.btrfs", "-q", "-f", "-K"}, .bytes = (uint64_t)256 << 20},
};

const struct volume_type *volume_type_of(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool volume_enter(const char **ret_why)
{
    if (geteuid() != 0)
        *ret_why = "only root may mount";
    else if (access("/dev/fuse", R_OK | W_OK) != 0)
        *ret_why = "there is no /dev/fuse";
    else if (access("/dev/loop-control", R_OK | W_OK) != 0)
        *ret_why = "there is no /dev/loop-control";
    else if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        *ret_why = "this process may not have mounts of its own";
    return *ret_why == NULL;
}

/* Returns the open device that shows the disk, or a negative errno. */
static int attach(struct recorder *recorder, char path[static 64])
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int disk = open(recorder_path(recorder), O_RDWR | O_CLOEXEC);
    int device = control < 0 || disk < 0 ? -errno : -EBUSY;
    /* Another process may take the free one first. */
    for (unsigned i = 0; i < ATTACH_ATTEMPTS && device == -EBUSY && disk >= 0; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        snprintf(path, 64, "/dev/loop%d", number);
        int fd = number >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) {
            device = -errno;
            break;
        }
        const struct loop_config config = {
            .fd = (uint32_t)disk, .block_size = 512, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            device = fd;
            break;
        }
        device = -errno;
        close(fd);
    }
    if (disk >= 0)
        close(disk);
    if (control >= 0)
        close(control);
    return device;
}

bool volume_format(const struct volume_type *type, struct recorder *recorder, const char **ret_why)
{
    char path[64];
    char *arguments[14] = {NULL};
    size_t count = 0;
    pid_t child;
    int status = -1;
    int device = attach(recorder, path);
    if (device < 0) {
        *ret_why = "no loop device can be set up";
        return false;
    }
    while (type->mkfs[count] != NULL) {
        arguments[count] = (char *)(uintptr_t)type->mkfs[count];
        count++;
    }
    arguments[count] = path;
    *ret_why = "its mkfs is not installed";
    if (posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ) == 0) {
        waitpid(child, &status, 0);
        *ret_why = "its mkfs failed";
    }
    close(device);
    bool is_made = status == 0 && recorder_wait_closed(recorder);
    if (is_made)
        *ret_why = NULL;
    return is_made;
}

int volume_mount(const struct volume_type *type, struct recorder *recorder, const char *directory)
{
    char path[64];
    int device = attach(recorder, path);
    if (device < 0)
        return -device;
    int failed = mount(path, directory, type->name, 0, NULL) == 0 ? 0 : errno;
    close(device);
    return failed;
}

/* The kernel remembers a btrfs that it has seen and refuses an older state of it. */
static void forget_devices(void)
{
    struct btrfs_ioctl_vol_args arguments = {.fd = 0};
    int control = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return;
    ioctl(control, BTRFS_IOC_FORGET_DEV, &arguments);
    close(control);
}

int volume_unmount(const struct volume_type *type, struct recorder *recorder, const char *directory)
{
    int failed = umount2(directory, 0) == 0 ? 0 : errno;
    if (failed == 0 && !recorder_wait_closed(recorder))
        failed = EBUSY;
    if (strcmp(type->name, "btrfs") == 0)
        forget_devices();
    return failed;
}
