/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of certificates, made by a script and removed again. */
#include "tests/support/certificates.h"

#include "src/base/fileops.h"
#include "src/base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATHS = 256, PATH_BYTES_MAX = 320, FILE_BYTES_MAX = 1 << 20 };

static char folder[64];

bool certificates_make(void)
{
    int status = -1;
    strcpy(folder, "/tmp/spanflame-certificates-XXXXXX");
    char *made = mkdtemp(folder);
    assert(made != NULL);
    (void)made;
    pid_t pid = fork();
    assert(pid >= 0);
    if (pid == 0) {
        execl("tests/support/make-certificates", "make-certificates", folder, NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void certificates_remove(void)
{
    char path[PATH_BYTES_MAX];
    DIR *files = opendir(folder);
    assert(files != NULL);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
        unlink(path);
    }
    closedir(files);
    rmdir(folder);
}

const char *certificates_path(const char *name)
{
    static char paths[PATHS][PATH_BYTES_MAX];
    static size_t next;
    if (name == NULL)
        return NULL;
    char *path = paths[next++ % PATHS];
    snprintf(path, PATH_BYTES_MAX, "%s/%s", folder, name);
    return path;
}

char *certificates_text(const char *name)
{
    char *text;
    size_t size;
    int failed = file_read_whole(certificates_path(name), FILE_BYTES_MAX, &text, &size);
    assert(failed == 0);
    (void)failed;
    return text;
}

void certificates_write(const char *name, const char *text)
{
    FILE *file = fopen(certificates_path(name), "w");
    assert(file != NULL);
    fputs(text, file);
    fclose(file);
}

void certificates_copy(const char *from, const char *to)
{
    char *text = certificates_text(from);
    assert(text != NULL);
    certificates_write(to, text);
    mem_free(text);
}
