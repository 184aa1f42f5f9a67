/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the corpus of a fuzz target: each argument is a file or a folder of files. Fails when a
 * folder is empty or an input cannot be read. */
#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) != 0)
        return perror(path), -1;
    if (!S_ISREG(info.st_mode))
        return fprintf(stderr, "%s: not a file\n", path), fclose(file), -1;
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size + 1);
    assert(data != NULL);
    size_t got = fread(data, 1, size, file);
    fclose(file);
    if (got == size)
        LLVMFuzzerTestOneInput(data, got);
    else
        fprintf(stderr, "%s: read %zu of %zu bytes\n", path, got, size);
    free(data);
    return got == size ? 0 : -1;
}

static int replay_folder(const char *path)
{
    int replayed = 0;
    int unreadable = 0;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return perror(path), -1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (replay_file(name) == 0)
            replayed++;
        else
            unreadable++;
    }
    closedir(folder);
    printf("%s: %d inputs, %d unreadable\n", path, replayed, unreadable);
    return replayed > 0 && unreadable == 0 ? 0 : -1;
}

int main(int count, char **arguments)
{
    int failed = count < 2;
    for (int i = 1; i < count; i++) {
        struct stat info;
        if (stat(arguments[i], &info) != 0)
            failed = 1;
        else if (S_ISDIR(info.st_mode))
            failed |= replay_folder(arguments[i]) != 0;
        else
            failed |= replay_file(arguments[i]) != 0;
    }
    return failed;
}
