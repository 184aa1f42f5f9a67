/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory, behind the table of file operations. After a cut each sector that was written
 * and not flushed is old, new or garbage, and of the changes to directories that were not flushed
 * some first ones have happened. One process, one thread, one directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts empty and replaces the file operations. seed decides every choice. */
void disk_start(uint64_t seed);
/* Frees everything and restores the file operations. */
void disk_stop(void);
uint64_t disk_random(uint64_t below);

/* The process ends: its files are closed, the system goes on. */
void disk_kill(void);
/* The machine loses power. */
void disk_cut(void);

/* The n-th write, flush, creation or rename from now on fails (1 is the next; 0: none does), and as
 * many after it. */
void disk_fail(uint64_t nth, uint64_t count, int error);
/* Every read, and every opening for reading alone, fails from now on; 0: none does. */
void disk_fail_reads(int error);
/* Bytes of a file that cannot be read any more (EIO), in whole blocks of 4 KiB; NULL: all can. */
void disk_fail_blocks(const char *name, size_t offset, size_t size);
/* Room for so many bytes of files. */
void disk_limit(uint64_t bytes);
/* Operations so far, and of them flushes (fdatasync, fsync). */
uint64_t disk_operations(void);
uint64_t disk_flushes(void);
uint64_t disk_writes(void);

/* The bytes of a file, to spoil them; NULL: there is none. */
uint8_t *disk_file(const char *name, size_t *ret_size);
/* Makes a file of zeros; returns its bytes. */
uint8_t *disk_create(const char *name, size_t size);
/* Deletes or cuts a file behind the process's back. */
void disk_remove(const char *name);
void disk_truncate(const char *name, size_t size);
/* Calls fn for each file. */
void disk_each(void (*fn)(const char *name, void *arg), void *arg);
