/* SPDX-License-Identifier: Apache-2.0 */
/* Request paths. Pure functions, any thread. */
#include "src/net/syntax/http_path.h"

#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool decode(struct slice text, bool keeps_slashes, char room[HTTP_PATH_MAX])
{
    assert(text.data != NULL || text.size == 0);
    size_t used = 0;
    if (text.size >= HTTP_PATH_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int byte = text.data[i];
        if (byte == '%') {
            if (text.size - i < 3 || http1_hex_digit(text.data[i + 1]) < 0 ||
                http1_hex_digit(text.data[i + 2]) < 0)
                return false;
            byte = http1_hex_digit(text.data[i + 1]) << 4 | http1_hex_digit(text.data[i + 2]);
            i += 2;
            if (byte == '/' && keeps_slashes) {
                memcpy(room + used, "%2", 2);
                used += 2;
                byte = 'F';
            }
        }
        if (byte == '\0')
            return false;
        room[used++] = (char)byte;
    }
    room[used] = '\0';
    return true;
}

bool http_percent_decode(struct slice text, char room[HTTP_PATH_MAX])
{
    return decode(text, false, room);
}

bool http_path_decode(struct slice path, char room[HTTP_PATH_MAX])
{
    return decode(path, true, room);
}

/* room[0, used) never ends in a slash: each segment begins with one. */
void http_path_clean(const char *path, char room[HTTP_PATH_MAX])
{
    size_t used = 0;
    assert(strlen(path) < HTTP_PATH_MAX);
    for (const char *at = path; *at != '\0';) {
        size_t size = strcspn(at, "/");
        if (size == 2 && memcmp(at, "..", 2) == 0) {
            /* Removes the last segment; the root stays. */
            while (used > 0 && room[used - 1] != '/')
                used--;
            used -= used > 0;
        } else if (size > 0 && !(size == 1 && *at == '.') && used + size + 2 < HTTP_PATH_MAX) {
            room[used++] = '/';
            memcpy(room + used, at, size);
            used += size;
        }
        at += size;
        at += *at == '/';
    }
    size_t length = strlen(path);
    if (used == 0 || (length > 0 && path[length - 1] == '/'))
        room[used++] = '/';
    room[used] = '\0';
}

bool http_path_escape(const char *path, struct slice query, char room[HTTP_PATH_ESCAPED_MAX])
{
    static const char plain[] = "-._~!$&'()*+,;=:@/";
    size_t used = 0;
    assert(path[0] == '/');
    for (const char *at = path; *at != '\0'; at++) {
        char c = *at;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr(plain, c) != NULL;
        if (used + 4 > HTTP_PATH_ESCAPED_MAX)
            return false;
        used += (size_t)sprintf(room + used, is_plain ? "%c" : "%%%02X", (unsigned char)c);
    }
    if (used + query.size + 2 > HTTP_PATH_ESCAPED_MAX)
        return false;
    if (query.size > 0) {
        room[used++] = '?';
        memcpy(room + used, query.data, query.size);
        used += query.size;
    }
    room[used] = '\0';
    return true;
}
