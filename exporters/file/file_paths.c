/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file/file_paths.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"

/* ---- paths ---- */

/* Writes the cleaned path over itself: it never grows, but for "" which becomes ".". */
void file_path_clean(char *path)
{
    bool is_rooted = path[0] == '/';
    const char *from = path;
    char *to = path + is_rooted;
    char *floor = to; /* ".." cannot take away what is before */
    while (*from != '\0') {
        size_t size = strcspn(from, "/");
        bool is_parent = size == 2 && from[0] == '.' && from[1] == '.';
        if (is_parent && to > floor) {
            to--;
            while (to > floor && *to != '/')
                to--;
        } else if ((is_parent && !is_rooted) ||
                   (size > 0 && !is_parent && !(size == 1 && from[0] == '.'))) {
            if (to > path + is_rooted)
                *to++ = '/';
            memmove(to, from, size);
            to += size;
            if (is_parent)
                floor = to;
        }
        from += size;
        if (*from == '/')
            from++;
    }
    if (to == path)
        *to++ = '.';
    *to = '\0';
}

void file_path_directory(const char *path, char ret_directory[static FILE_PATH_BYTES_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    assert(size + 2 <= FILE_PATH_BYTES_MAX);
    memcpy(ret_directory, path, size);
    ret_directory[size] = '\0';
    file_path_clean(ret_directory);
}

void file_group_path_init(struct file_group_path *path, const char *pattern)
{
    const char *star = strchr(pattern, '*');
    assert(star != NULL);
    assert(strlen(pattern) < FILE_PATH_BYTES_MAX);
    size_t size = (size_t)(star - pattern);
    memcpy(path->prefix, pattern, size);
    path->prefix[size] = '\0';
    bool is_directory = size > 0 && pattern[size - 1] == '/';
    file_path_clean(path->prefix);
    size_t cleaned = strlen(path->prefix);
    if (is_directory && path->prefix[cleaned - 1] != '/')
        strcpy(path->prefix + cleaned, "/");
    snprintf(path->suffix, sizeof(path->suffix), "%s", star + 1);
}

/* Appends the text, for which there is room. */
static char *put(char *to, const void *text, size_t size)
{
    if (size > 0)
        memcpy(to, text, size);
    to[size] = '\0';
    return to + size;
}

int file_group_path_of(const struct file_group_path *path, struct slice group,
                       char ret_path[static FILE_PATH_BYTES_MAX])
{
    enum { SLASHES = 3 };
    if (group.size > 0 && memchr(group.data, '\0', group.size) != NULL)
        return -EINVAL;
    if (slice_begins_with(group, "./"))
        group = slice_of(group.data + 1, group.size - 1);
    else if (slice_begins_with(group, "../"))
        group = slice_of(group.data + 2, group.size - 2);
    size_t prefix = strlen(path->prefix);
    size_t suffix = strlen(path->suffix);
    if (group.size >= FILE_PATH_BYTES_MAX ||
        prefix + group.size + suffix + SLASHES >= FILE_PATH_BYTES_MAX)
        return -ENAMETOOLONG;
    char *end = put(ret_path, path->prefix, prefix);
    end = put(end, group.data, group.size);
    put(end, path->suffix, suffix);
    file_path_clean(ret_path);
    if (strncmp(ret_path, path->prefix, prefix) == 0)
        return 0;
    /* It would leave the directory: its parents lead no further than there. */
    char inside[FILE_PATH_BYTES_MAX];
    end = put(inside, "/", 1);
    end = put(end, group.data, group.size);
    put(end, path->suffix, suffix);
    file_path_clean(inside);
    end = put(ret_path, path->prefix, prefix);
    end = put(end, "/", 1);
    put(end, inside, strlen(inside));
    file_path_clean(ret_path);
    return 0;
}

/* ---- rotated files ---- */

struct file_backup_name file_backup_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t size = dot != NULL ? (size_t)(dot - name) : strlen(name);
    return (struct file_backup_name){.stem = slice_of(name, size),
                                     .extension = slice_of_text(name + size)};
}

void file_backup_time(uint64_t wall_ns, bool is_local, char ret_text[static FILE_BACKUP_TIME_BYTES])
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm parts;
    if (is_local)
        localtime_r(&seconds, &parts);
    else
        gmtime_r(&seconds, &parts);
    size_t size = strftime(ret_text, FILE_BACKUP_TIME_BYTES, "%Y-%m-%dT%H-%M-%S", &parts);
    snprintf(ret_text + size, FILE_BACKUP_TIME_BYTES - size, ".%03u",
             (unsigned)(wall_ns % NS_PER_S / NS_PER_MS));
}

bool file_backup_path(const char *path, uint64_t wall_ns, bool is_local,
                      char ret_path[static FILE_PATH_BYTES_MAX])
{
    char time[FILE_BACKUP_TIME_BYTES];
    struct file_backup_name name = file_backup_name_of(path);
    size_t stem = (size_t)(name.extension.data - (const uint8_t *)path);
    file_backup_time(wall_ns, is_local, time);
    int size = snprintf(ret_path, FILE_PATH_BYTES_MAX, "%.*s-%s-size%s", (int)stem, path, time,
                        (const char *)name.extension.data);
    return size > 0 && size < FILE_PATH_BYTES_MAX;
}

/* So many digits, up to the limit. */
static bool read_number(const char **at, unsigned digits, int lowest, int highest, int *ret_number)
{
    int number = 0;
    for (; digits > 0; digits--, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return false;
        number = number * 10 + (**at - '0');
    }
    *ret_number = number;
    return number >= lowest && number <= highest;
}

static bool read_time(const char *text, const char *end, bool is_local, int64_t *ret_wall_ns)
{
    enum { BYTES = 23, YEAR_MAX = 9999, MONTHS = 12, DAYS = 31, TM_YEAR_BASE = 1900 };
    struct tm parts = {.tm_isdst = -1};
    int year;
    int month;
    int milliseconds;
    if (end - text != BYTES)
        return false;
    const char *at = text;
    bool is_read = read_number(&at, 4, 0, YEAR_MAX, &year) && *at++ == '-' &&
                   read_number(&at, 2, 1, MONTHS, &month) && *at++ == '-' &&
                   read_number(&at, 2, 1, DAYS, &parts.tm_mday) && *at++ == 'T' &&
                   read_number(&at, 2, 0, 23, &parts.tm_hour) && *at++ == '-' &&
                   read_number(&at, 2, 0, 59, &parts.tm_min) && *at++ == '-' &&
                   read_number(&at, 2, 0, 59, &parts.tm_sec) && (*at == '.' || *at == ',');
    at++;
    if (!is_read || !read_number(&at, 3, 0, 999, &milliseconds))
        return false;
    int day = parts.tm_mday;
    parts.tm_year = year - TM_YEAR_BASE;
    parts.tm_mon = month - 1;
    time_t seconds = is_local ? mktime(&parts) : timegm(&parts);
    /* Nanoseconds from 1678 to 2261; other years are as old, or as new. */
    const time_t limit = INT64_MAX / NS_PER_S - 1;
    seconds = seconds < -limit ? -limit : seconds > limit ? limit : seconds;
    *ret_wall_ns = (int64_t)seconds * NS_PER_S + (int64_t)milliseconds * NS_PER_MS;
    return parts.tm_mday == day; /* 31 April would be 1 May */
}

static bool ends_with(struct slice text, struct slice end)
{
    return text.size >= end.size &&
           slice_equal(slice_of(text.data + text.size - end.size, end.size), end);
}

bool file_backup_wall_ns(const struct file_backup_name *backup, const char *name, bool is_local,
                         int64_t *ret_wall_ns)
{
    static const char *const packed[] = {"", ".gz", ".zst"};
    struct slice text = slice_of_text(name);
    size_t stem = backup->stem.size;
    if (text.size <= stem || memcmp(text.data, backup->stem.data, stem) != 0 ||
        text.data[stem] != '-')
        return false;
    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
        struct slice rest = slice_of(text.data + stem + 1, text.size - stem - 1);
        struct slice suffix = slice_of_text(packed[i]);
        if (!ends_with(rest, suffix))
            continue;
        rest.size -= suffix.size;
        if (!ends_with(rest, backup->extension))
            continue;
        rest.size -= backup->extension.size;
        const char *begin = (const char *)rest.data;
        const char *dash = rest.size > 0 ? memrchr(begin, '-', rest.size) : NULL;
        if (dash != NULL && read_time(begin, dash, is_local, ret_wall_ns))
            return true;
    }
    return false;
}
