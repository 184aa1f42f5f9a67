/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/follow_offsets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/follow/followed_file.h"

/* "file OFFSET INFLATED LINES FLAGS FIRST-BYTES PATH", the bytes and the path in hexadecimal; at
 * the end "sum CHECKSUM". */
#define HEAD     "spanflame file offsets 1\n"
#define SUM_FORM "sum %016" PRIx64 "\n"
enum { SUM_BYTES = sizeof("sum 0123456789abcdef\n") - 1, LINE_BYTES_MAX = 160, FILE_MODE = 0600 };
enum { FLAG_GZIP = 1, FLAG_SKIPPING = 2 };

static size_t room_of(const struct followed_file *file)
{
    return LINE_BYTES_MAX + 2 * (file->first_size + strlen(file->path));
}

static char *put_hex(char *to, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

static char *put_file(char *to, const struct followed_file *file)
{
    unsigned flags = (file->is_gzip ? FLAG_GZIP : 0U) | (file->is_skipping ? FLAG_SKIPPING : 0U);
    to += snprintf(to, LINE_BYTES_MAX, "file %" PRIu64 " %" PRIu64 " %" PRIu64 " %u ", file->offset,
                   file->inflated, file->lines, flags);
    to = put_hex(to, file->first, file->first_size);
    *to++ = ' ';
    to = put_hex(to, file->path, strlen(file->path));
    *to++ = '\n';
    return to;
}

static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = size};
        ssize_t put = fileops()->writev(fd, &part, 1);
        if (put == -EINTR)
            continue;
        if (put < 0)
            return (int)put;
        text += put;
        size -= (size_t)put;
    }
    return 0;
}

/* Writes the lines of the files, one at a time: they may be many. text has room for any of them. */
static int write_files(int fd, struct followed_file *const *files, size_t count, char *text)
{
    char sum[SUM_BYTES + 1];
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, HEAD, sizeof(HEAD) - 1);
    int failed = write_all(fd, HEAD, sizeof(HEAD) - 1);
    for (size_t i = 0; i < count && failed == 0; i++) {
        size_t size = (size_t)(put_file(text, files[i]) - text);
        assert(size <= room_of(files[i]));
        XXH3_64bits_update(&state, text, size);
        failed = write_all(fd, text, size);
    }
    snprintf(sum, sizeof(sum), SUM_FORM, XXH3_64bits_digest(&state));
    return failed != 0 ? failed : write_all(fd, sum, SUM_BYTES);
}

bool follow_offsets_save(const char *path, struct followed_file *const *files, size_t count,
                         bool is_synced, size_t *ret_kept, struct error *error)
{
    char other[4096];
    size_t bytes = sizeof(HEAD) - 1 + SUM_BYTES;
    size_t longest = 0;
    *ret_kept = 0;
    if (snprintf(other, sizeof(other), "%s.new", path) >= (int)sizeof(other))
        return error_set(error, "%s: %s", path, strerror(ENAMETOOLONG));
    for (; *ret_kept < count; ++*ret_kept) {
        size_t room = room_of(files[*ret_kept]);
        if (room > FOLLOW_OFFSETS_BYTES_MAX - bytes)
            break;
        bytes += room;
        longest = room > longest ? room : longest;
    }
    char *text = mem_try_alloc(longest + 1);
    if (text == NULL)
        return error_set(error, "%s: %s", path, strerror(ENOMEM));
    int fd = fileops()->open(other, O_WRONLY | O_CREAT | O_TRUNC, FILE_MODE);
    int failed = fd < 0 ? fd : write_files(fd, files, *ret_kept, text);
    if (failed == 0 && is_synced)
        failed = fileops()->fdatasync(fd);
    if (fd >= 0) {
        int closed = fileops()->close(fd);
        failed = failed != 0 ? failed : closed;
    }
    if (failed == 0)
        failed = fileops()->rename(other, path);
    mem_free(text);
    return failed == 0 || error_set(error, "cannot write %s: %s", path, strerror(-failed));
}

/* A decimal number and the blank behind it. */
static bool read_number(const char **at, uint64_t *ret_number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(*at, &end, 10);
    if (errno != 0 || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hexadecimal digits up to `end`; as many bytes as there is room for. False: something else. */
static bool read_hex(const char **at, char end, uint8_t *data, size_t room, size_t *ret_size)
{
    *ret_size = 0;
    while (**at != end) {
        int high = digit_of((*at)[0]);
        int low = high >= 0 ? digit_of((*at)[1]) : -1;
        if (low < 0)
            return false;
        if (*ret_size < room)
            data[(*ret_size)++] = (uint8_t)(high << 4 | low);
        *at += 2;
    }
    (*at)++;
    return *ret_size > 0;
}

/* NULL: no memory, if *at stays where it is; else the text is wrong. */
static struct followed_file *read_file(const char **at, size_t fingerprint_size,
                                       struct budget *budget)
{
    uint8_t path[4096];
    size_t path_size;
    uint64_t flags;
    struct followed_file *file = followed_file_create(budget, fingerprint_size);
    if (file == NULL)
        return NULL;
    if (strncmp(*at, "file ", 5) == 0 && (*at += 5) != NULL && read_number(at, &file->offset) &&
        read_number(at, &file->inflated) && read_number(at, &file->lines) &&
        read_number(at, &flags) &&
        /* With a smaller fingerprint_size than then, the first of the bytes count. */
        read_hex(at, ' ', file->first, fingerprint_size, &file->first_size) &&
        read_hex(at, '\n', path, sizeof(path) - 1, &path_size)) {
        path[path_size] = '\0';
        followed_file_set_path(file, (const char *)path);
        file->is_gzip = (flags & FLAG_GZIP) != 0;
        file->is_skipping = (flags & FLAG_SKIPPING) != 0;
        return file;
    }
    followed_file_destroy(budget, file);
    return NULL;
}

bool follow_offsets_read(const char *path, const char *text, size_t size, size_t fingerprint_size,
                         struct budget *budget, void (*each)(struct followed_file *file, void *arg),
                         void *arg, struct error *error)
{
    char sum[SUM_BYTES + 1];
    const char *at = text + sizeof(HEAD) - 1;
    bool is_whole =
        size >= sizeof(HEAD) - 1 + SUM_BYTES && strncmp(text, HEAD, sizeof(HEAD) - 1) == 0;
    const char *end = is_whole ? text + size - SUM_BYTES : text;
    snprintf(sum, sizeof(sum), SUM_FORM, XXH3_64bits(text, (size_t)(end - text)));
    is_whole = is_whole && strcmp(end, sum) == 0;
    bool has_memory = true;
    while (is_whole && has_memory && at < end) {
        const char *begin = at;
        struct followed_file *file = read_file(&at, fingerprint_size, budget);
        if (file != NULL)
            each(file, arg);
        has_memory = file != NULL || at != begin;
        is_whole = file != NULL || at == begin;
    }
    if (!is_whole)
        return error_set(error, "%s is damaged: delete it, and files are read as start_at says",
                         path);
    return has_memory ||
           error_set(error, "%s does not fit into the memory budget (service::budget_mib)", path);
}

bool follow_offsets_load(const char *path, size_t fingerprint_size, struct budget *budget,
                         void (*each)(struct followed_file *file, void *arg), void *arg,
                         struct error *error)
{
    char *text;
    size_t size;
    int failed = file_read_whole(path, FOLLOW_OFFSETS_BYTES_MAX, &text, &size);
    if (failed == -ENOENT)
        return true;
    if (failed != 0)
        return error_set(error, "cannot read %s: %s", path, strerror(-failed));
    bool is_read =
        follow_offsets_read(path, text, size, fingerprint_size, budget, each, arg, error);
    mem_free(text);
    return is_read;
}
