/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes the files of one file exporter, for its instances of all lanes and
 * signals: it encodes each request and appends it whole, so that lines never mix and no lane waits
 * for a disk. What is waiting when it looks goes into the file with one system call. What it
 * encodes is charged to the budget until it is written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/core/receipt.h"

struct batch;
struct budget;
struct error;
struct file_exporter_config;
struct file_writer;
struct logger;

enum { FILE_JOB_MESSAGE_BYTES = 1024 };

/* A request to write; its user keeps it, and the batch, until done runs. */
struct file_job {
    struct file_job *next; /* the writer's */
    struct lane *lane;
    const struct batch *batch;
    void (*done)(struct file_job *job); /* on the lane */
    struct lane_task task;              /* the writer's */
    /* What became of it: message is in text. */
    struct outcome outcome;
    char text[FILE_JOB_MESSAGE_BYTES];
};

/* config, budget and logger outlive it. Nothing is opened. compresses_files: with compression the
 * file as a whole is zstd's, a frame for each request, instead of each message in it. */
struct file_writer *file_writer_create(const struct file_exporter_config *config,
                                       struct budget *budget, const struct logger *logger,
                                       bool compresses_files);
/* Opens the file and starts the thread, the first time. Main thread. */
bool file_writer_start(struct file_writer *writer, struct error *error);
/* Any lane, after the start. */
void file_writer_push(struct file_writer *writer, struct file_job *job);
/* Ends the thread and closes the files. All jobs are done. NULL is a no-op. */
void file_writer_destroy(struct file_writer *writer);
