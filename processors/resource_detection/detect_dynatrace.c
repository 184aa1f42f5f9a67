/* SPDX-License-Identifier: Apache-2.0 */
/* What Dynatrace's OneAgent wrote down about the host: lines key=value. */
#include <errno.h>
#include <string.h>

#include "processors/resource_detection/detector.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"

enum { PROPERTIES_BYTES_MAX = 256 * 1024 };

bool detect_dynatrace(struct detected *detected, const char *path, struct error *error)
{
    static const char *const wanted[] = {"dt.entity.host", "host.name", "dt.smartscape.host"};
    char *text;
    size_t size;
    int code = file_read_whole(path, PROPERTIES_BYTES_MAX, &text, &size);
    if (code == -ENOENT)
        return true;
    if (code < 0)
        return error_set(error, "dynatrace: cannot read %s: %s", path, strerror(-code));
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        char *key = strsep(&line, "=");
        for (size_t i = 0; line != NULL && i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (strcmp(key, wanted[i]) == 0 && line[0] != '\0')
                detected_put_text(detected, key, slice_trim(slice_of_text(line)));
    }
    mem_free(text);
    return true;
}
