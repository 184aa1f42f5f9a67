/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths as the Go collector's file receivers have them (github.com/bmatcuk/doublestar):
 * * and ? within a name, ** for any directories, [a-z] and [!a-z], {one,other}, \ before what is
 * meant literally. A name that begins with a dot is like any other. Matching takes time in
 * proportion to pattern times path. glob_match is a pure function; glob_find reads directories,
 * blocking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    GLOB_PATTERN_BYTES_MAX = 4096,
    GLOB_ALTERNATIVES_MAX = 256, /* patterns that one with {…} stands for */
    GLOB_PATHS_MAX = 100000,
    GLOB_DIRECTORIES_MAX = 100000, /* read in one search */
    GLOB_DEPTH_MAX = 64,           /* directories below each other */
};

struct glob;

/* NULL: the pattern is malformed or too large, and *ret_reason, a constant string, says how.
 * is_searched: for glob_find; the pattern is cleaned (a//b, a/./b, a/../b). */
struct glob *glob_create(const char *pattern, bool is_searched, const char **ret_reason);
/* NULL is a no-op. */
void glob_destroy(struct glob *glob);
bool glob_match(const struct glob *glob, const char *path);

/* Paths, sorted, each once after glob_paths_sort. */
struct glob_paths {
    char **paths;
    size_t count;
    size_t capacity;
    size_t directories; /* that were read */
    bool is_cut;        /* a limit was met: some are missing */
    int failed;         /* a negative errno: the last directory that could not be read; 0: none */
};

/* Adds the paths of what matches and is no directory. */
void glob_find(const struct glob *glob, struct glob_paths *paths);
void glob_paths_sort(struct glob_paths *paths);
/* Removes it; the others keep their order. */
void glob_paths_remove(struct glob_paths *paths, size_t place);
void glob_paths_clear(struct glob_paths *paths);
