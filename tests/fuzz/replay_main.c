/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the corpus of a fuzz target: each argument is a file or a folder of files. Fails when a
 * folder is empty. */
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
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return perror(path), -1;
    assert(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    assert(size >= 0);
    rewind(file);
    uint8_t *data = malloc((size_t)size + 1);
    assert(data != NULL);
    size_t got = fread(data, 1, (size_t)size, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 0;
}

static int replay_folder(const char *path)
{
    int replayed = 0;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return perror(path), -1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (replay_file(name) != 0)
            break;
        replayed++;
    }
    closedir(folder);
    printf("%s: %d inputs\n", path, replayed);
    return replayed > 0 ? 0 : -1;
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
