/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/glob.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/base/utf8.h"

enum { PATH_BYTES_MAX = 4096 };

/* A part between slashes. */
struct segment {
    const char *text;
    size_t size;
    bool is_literal;  /* no special characters: text is the name, without escapes */
    bool is_any_path; /* ** */
};

struct alternative {
    char *text; /* what segments point into */
    struct segment *segments;
    size_t count;
};

struct glob {
    struct alternative *list;
    size_t count;
};

/* ---- making ---- */

/* As doublestar's validation. */
static bool is_valid(const char *at)
{
    size_t depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '\\') {
            if (*++at == '\0')
                return false;
        } else if (*at == '{') {
            depth++;
        } else if (*at == '}') {
            if (depth-- == 0)
                return false;
        } else if (*at == '[') {
            at++;
            if (*at == '^' || *at == '!')
                at++;
            if (*at == '\0' || *at == ']')
                return false;
            for (; *at != ']'; at++)
                if (*at == '\0' || (*at == '\\' && *++at == '\0'))
                    return false;
        }
    }
    return depth == 0;
}

/* Go's path.Clean of a pattern, which does not know of special characters either. */
static void clean(char *path)
{
    bool is_rooted = path[0] == '/';
    const char *from = path;
    char *to = path + is_rooted;
    char *floor = to;
    while (*from != '\0') {
        size_t size = strcspn(from, "/");
        bool is_here = size == 1 && from[0] == '.';
        bool is_parent = size == 2 && from[0] == '.' && from[1] == '.';
        if (is_parent && to > floor) {
            to--;
            while (to > floor && *to != '/')
                to--;
        } else if (size > 0 && !is_here && !(is_parent && is_rooted)) {
            if (to > path + is_rooted)
                *to++ = '/';
            memmove(to, from, size);
            to += size;
            if (is_parent)
                floor = to;
        }
        from += size + (from[size] == '/');
    }
    *to = '\0';
}

static bool is_special(char c)
{
    return c == '*' || c == '?' || c == '[';
}

/* Cuts one pattern without {…} into segments. Takes the text. */
static void add_alternative(struct glob *glob, char *text)
{
    size_t slashes = 0;
    for (const char *at = text; *at != '\0'; at++)
        slashes += *at == '/';
    struct alternative *alternative = &glob->list[glob->count++];
    *alternative = (struct alternative){
        .text = text, .segments = mem_zalloc((slashes + 1) * sizeof(struct segment))};
    for (char *at = text;; at++) {
        struct segment *segment = &alternative->segments[alternative->count];
        char *end = at + strcspn(at, "/");
        bool is_last = *end == '\0';
        size_t size = (size_t)(end - at);
        segment->text = at;
        segment->size = size;
        segment->is_any_path = size == 2 && memcmp(at, "**", 2) == 0;
        segment->is_literal = true;
        for (size_t i = 0; i < size; i++) {
            segment->is_literal &= !is_special(at[i]);
            i += at[i] == '\\';
        }
        if (segment->is_literal) {
            size_t to = 0;
            for (size_t i = 0; i < size; i++) {
                i += at[i] == '\\' && i + 1 < size;
                at[to++] = at[i];
            }
            segment->size = to;
        }
        /* Two in a row are one. */
        bool is_again = segment->is_any_path && alternative->count > 0 && segment[-1].is_any_path;
        alternative->count += !is_again;
        at = end;
        if (is_last)
            return;
    }
}

/* Where the first {…} is, as far as it is no escape and in no [class]. */
static char *find_braces(char *at)
{
    for (; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '{')
            return at;
    }
    return NULL;
}

/* The end of the part from `at` on: its comma, or the closing brace. */
static char *find_part_end(char *at)
{
    size_t depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}' && depth-- == 0)
            return at;
        else if (*at == ',' && depth == 0)
            return at;
    }
    return NULL;
}

/* Replaces {a,b} by a and by b until none is left: depth first, with a stack of patterns. False:
 * too many. */
static bool expand(struct glob *glob, const char *pattern, const char **ret_reason)
{
    char *stack[GLOB_ALTERNATIVES_MAX];
    size_t depth = 0;
    stack[depth++] = mem_copy_text(pattern);
    *ret_reason = NULL;
    while (depth > 0) {
        char *text = stack[--depth];
        char *open = find_braces(text);
        if (open == NULL && *ret_reason == NULL && glob->count < GLOB_ALTERNATIVES_MAX) {
            add_alternative(glob, text);
            continue;
        }
        if (open == NULL)
            *ret_reason = "it stands for more than 256 patterns";
        char *close = open;
        for (char *part = open; open != NULL && part != NULL && *ret_reason == NULL;) {
            char *end = find_part_end(part + 1);
            close = end;
            while (close != NULL && *close == ',')
                close = find_part_end(close + 1);
            if (close == NULL || depth == GLOB_ALTERNATIVES_MAX) {
                *ret_reason = close == NULL ? "syntax error in pattern"
                                            : "it stands for more than 256 patterns";
                break;
            }
            size_t room = strlen(text) + 1;
            stack[depth] = mem_alloc(room);
            snprintf(stack[depth], room, "%.*s%.*s%s", (int)(open - text), text,
                     (int)(end - part - 1), part + 1, close + 1);
            depth++;
            part = *end == ',' ? end : NULL;
        }
        mem_free(text);
    }
    return *ret_reason == NULL;
}

struct glob *glob_create(const char *pattern, bool is_searched, const char **ret_reason)
{
    char cleaned[GLOB_PATTERN_BYTES_MAX];
    *ret_reason = "syntax error in pattern";
    if (strlen(pattern) >= sizeof(cleaned))
        *ret_reason = "it is longer than 4095 bytes";
    else if (is_valid(pattern))
        *ret_reason = NULL;
    if (*ret_reason != NULL)
        return NULL;
    snprintf(cleaned, sizeof(cleaned), "%s", pattern);
    if (is_searched)
        clean(cleaned);
    if (!is_valid(cleaned)) { /* ".." has taken what was escaped, or a part of [class] */
        *ret_reason = "syntax error in pattern";
        return NULL;
    }
    struct glob *glob = mem_zalloc(sizeof(*glob));
    glob->list = mem_zalloc(GLOB_ALTERNATIVES_MAX * sizeof(struct alternative));
    if (expand(glob, cleaned, ret_reason))
        return glob;
    glob_destroy(glob);
    return NULL;
}

void glob_destroy(struct glob *glob)
{
    if (glob == NULL)
        return;
    for (size_t i = 0; i < glob->count; i++) {
        mem_free(glob->list[i].text);
        mem_free(glob->list[i].segments);
    }
    mem_free(glob->list);
    mem_free(glob);
}

/* ---- names ---- */

/* The character at the start of a name, which is not empty; a byte that is no UTF-8 stands for
 * itself. */
static uint32_t next_character(struct slice text, size_t *ret_size)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t size = utf8_size(text);
    *ret_size = size > 0 ? size : 1;
    if (size == 0)
        return 0xfffd;
    uint32_t character = text.data[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        character = character << 6 | (text.data[i] & 0x3f);
    return character;
}

static struct slice after(struct slice text, size_t size)
{
    return slice_of(text.data + size, text.size - size);
}

/* The character, maybe behind a backslash. */
static uint32_t next_of_class(struct slice *pattern)
{
    size_t size;
    if (pattern->data[0] == '\\' && pattern->size > 1)
        *pattern = after(*pattern, 1);
    uint32_t character = next_character(*pattern, &size);
    *pattern = after(*pattern, size);
    return character;
}

/* [class]: whether the character is one of it. Moves the pattern behind it. */
static bool match_class(struct slice *pattern, uint32_t character)
{
    bool is_found = false;
    *pattern = after(*pattern, 1);
    bool is_negated = pattern->data[0] == '!' || pattern->data[0] == '^';
    if (is_negated)
        *pattern = after(*pattern, 1);
    while (pattern->size > 0 && pattern->data[0] != ']') {
        uint32_t low = next_of_class(pattern);
        uint32_t high = low;
        if (pattern->size > 1 && pattern->data[0] == '-' && pattern->data[1] != ']') {
            *pattern = after(*pattern, 1);
            high = next_of_class(pattern);
        }
        is_found |= low <= character && character <= high;
    }
    if (pattern->size > 0)
        *pattern = after(*pattern, 1);
    return is_found != is_negated;
}

/* One step that takes a character of the name. False: it does not match. */
static bool match_one(struct slice *pattern, struct slice *name)
{
    size_t size;
    uint32_t character = next_character(*name, &size);
    struct slice rest = *pattern;
    bool is_matched = true;
    if (rest.data[0] == '?') {
        rest = after(rest, 1);
    } else if (rest.data[0] == '[') {
        is_matched = match_class(&rest, character);
    } else {
        rest = after(rest, rest.data[0] == '\\' && rest.size > 1);
        is_matched = rest.size >= size && memcmp(rest.data, name->data, size) == 0;
        rest = after(rest, is_matched ? size : 0);
    }
    if (is_matched) {
        *pattern = rest;
        *name = after(*name, size);
    }
    return is_matched;
}

/* After a mismatch the last * takes one character more. */
static bool match_name(const struct segment *segment, struct slice name)
{
    struct slice pattern = slice_of(segment->text, segment->size);
    struct slice star = {.data = NULL};
    struct slice star_name = {.data = NULL};
    if (segment->is_literal)
        return slice_equal(pattern, name);
    while (name.size > 0) {
        if (pattern.size > 0 && pattern.data[0] == '*') {
            pattern = after(pattern, 1);
            star = pattern;
            star_name = name;
        } else if (pattern.size == 0 || !match_one(&pattern, &name)) {
            size_t size;
            if (star_name.data == NULL)
                return false;
            (void)next_character(star_name, &size);
            star_name = after(star_name, size);
            pattern = star;
            name = star_name;
        }
    }
    while (pattern.size > 0 && pattern.data[0] == '*')
        pattern = after(pattern, 1);
    return pattern.size == 0;
}

/* The same with segments and **. */
static bool match_path(const struct alternative *pattern, const char *path)
{
    size_t at = 0;
    size_t star = SIZE_MAX; /* the segment after the last ** */
    const char *star_path = NULL;
    for (;;) {
        size_t size = strcspn(path, "/");
        if (at < pattern->count && pattern->segments[at].is_any_path) {
            if (++at == pattern->count)
                return true;
            star = at;
            star_path = path;
            continue;
        }
        bool is_matched =
            at < pattern->count && match_name(&pattern->segments[at], slice_of(path, size));
        if (is_matched && path[size] == '\0') {
            at++;
            /* "a" is in what is below "a", too */
            if (at == pattern->count ||
                (at + 1 == pattern->count && pattern->segments[at].is_any_path))
                return true;
            is_matched = false;
        } else if (is_matched) {
            at++;
            path += size + 1;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        const char *slash = strchr(star_path, '/');
        if (slash == NULL)
            return false;
        star_path = slash + 1;
        path = star_path;
        at = star;
    }
}

bool glob_match(const struct glob *glob, const char *path)
{
    for (size_t i = 0; i < glob->count; i++)
        if (match_path(&glob->list[i], path))
            return true;
    return false;
}

/* ---- searching ---- */

struct search {
    struct glob_paths *paths;
    const struct alternative *pattern;
    char path[PATH_BYTES_MAX]; /* of the directory, or with a name behind it */
};

/* The names of one directory that may matter. */
struct listing {
    const struct segment *segment;
    char **names;
    size_t count;
    size_t capacity;
    bool is_cut;
};

static void add_text(char ***texts, size_t *count, size_t *capacity, const char *text)
{
    if (*count == *capacity) {
        *capacity = *capacity > 0 ? *capacity * 2 : 16;
        *texts = (char **)mem_resize((void *)*texts, *capacity * sizeof(**texts));
    }
    (*texts)[(*count)++] = mem_copy_text(text);
}

static void on_name(const char *name, void *arg)
{
    struct listing *listing = arg;
    if (!listing->segment->is_any_path && !match_name(listing->segment, slice_of_text(name)))
        return;
    if (listing->count == GLOB_PATHS_MAX)
        listing->is_cut = true;
    else
        add_text(&listing->names, &listing->count, &listing->capacity, name);
}

/* Appends a name to the path. False: it becomes too long. */
static bool enter(struct search *search, const char *name, size_t name_size, size_t *ret_size)
{
    size_t size = strlen(search->path);
    bool has_slash = size == 0 || search->path[size - 1] == '/';
    *ret_size = size;
    if (size + !has_slash + name_size >= PATH_BYTES_MAX)
        return false;
    if (!has_slash)
        search->path[size++] = '/';
    memcpy(search->path + size, name, name_size);
    search->path[size + name_size] = '\0';
    return true;
}

static void find_below(struct search *search, size_t at, unsigned depth);

/* The path is something that matches all segments before `at`. */
static void found(struct search *search, size_t at, unsigned depth)
{
    struct stat info;
    struct glob_paths *paths = search->paths;
    if (fileops()->stat(search->path, &info) != 0)
        return;
    bool is_last = at == search->pattern->count;
    if (S_ISDIR(info.st_mode)) {
        if (!is_last)
            find_below(search, at, depth + 1);
        return;
    }
    bool is_end =
        is_last || (at + 1 == search->pattern->count && search->pattern->segments[at].is_any_path);
    if (!is_end)
        return;
    if (paths->count == GLOB_PATHS_MAX)
        paths->is_cut = true;
    else
        add_text(&paths->paths, &paths->count, &paths->capacity, search->path);
}

/* Looks for segment `at` in the directory. Bounded by GLOB_DEPTH_MAX. */
static void find_below(struct search *search, size_t at, unsigned depth)
{
    const struct segment *segment = &search->pattern->segments[at];
    struct glob_paths *paths = search->paths;
    size_t size;
    if (depth > GLOB_DEPTH_MAX || paths->directories == GLOB_DIRECTORIES_MAX) {
        paths->is_cut = true;
        return;
    }
    if (segment->is_literal) {
        if (enter(search, segment->text, segment->size, &size)) {
            found(search, at + 1, depth);
            search->path[size] = '\0';
        }
        return;
    }
    bool is_last = at + 1 == search->pattern->count;
    if (segment->is_any_path && !is_last)
        find_below(search, at + 1, depth + 1); /* no directory between */
    struct listing listing = {.segment = segment};
    paths->directories++;
    int failed = fileops()->list(search->path[0] != '\0' ? search->path : ".", on_name, &listing);
    if (failed != 0)
        paths->failed = failed;
    paths->is_cut |= listing.is_cut;
    for (size_t i = 0; i < listing.count; i++) {
        if (enter(search, listing.names[i], strlen(listing.names[i]), &size)) {
            found(search, segment->is_any_path ? at : at + 1, depth);
            search->path[size] = '\0';
        }
        mem_free(listing.names[i]);
    }
    mem_free((void *)listing.names);
}

void glob_find(const struct glob *glob, struct glob_paths *paths)
{
    for (size_t i = 0; i < glob->count; i++) {
        struct search search = {.paths = paths, .pattern = &glob->list[i], .path = ""};
        size_t first = 0;
        if (search.pattern->segments[0].size == 0) { /* from the root */
            search.path[0] = '/';
            search.path[1] = '\0';
            first = 1;
        }
        if (first < search.pattern->count && search.pattern->segments[first].size > 0)
            find_below(&search, first, 0);
    }
}

static int by_path(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void glob_paths_sort(struct glob_paths *paths)
{
    size_t kept = 0;
    if (paths->count > 1)
        qsort((void *)paths->paths, paths->count, sizeof(paths->paths[0]), by_path);
    for (size_t i = 0; i < paths->count; i++) {
        if (kept > 0 && strcmp(paths->paths[kept - 1], paths->paths[i]) == 0)
            mem_free(paths->paths[i]);
        else
            paths->paths[kept++] = paths->paths[i];
    }
    paths->count = kept;
}

void glob_paths_remove(struct glob_paths *paths, size_t place)
{
    assert(place < paths->count);
    mem_free(paths->paths[place]);
    paths->count--;
    memmove((void *)(paths->paths + place), (void *)(paths->paths + place + 1),
            (paths->count - place) * sizeof(paths->paths[0]));
}

void glob_paths_clear(struct glob_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        mem_free(paths->paths[i]);
    mem_free((void *)paths->paths);
    *paths = (struct glob_paths){.paths = NULL};
}
