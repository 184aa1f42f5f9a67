/* SPDX-License-Identifier: Apache-2.0 */
/* One inflating or deflating, as codec.c hands it to the codecs behind it. They write into output,
 * which is theirs to begin and codec.c's to take or drop. On the box's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/codec/codec_output.h"

struct codec_job {
    struct budget *budget;
    struct slice input; /* inflating */
    uint64_t limit;     /* of the output */
    struct codec_output output;
    uint64_t held;      /* charged for a library's own memory until the job ends */
    const char *reason; /* with CODEC_MALFORMED */
};

/* Sees to it that bytes are charged for what a library allocates. False: no budget. */
bool codec_job_hold(struct codec_job *job, uint64_t bytes);
/* Notes the reason; CODEC_MALFORMED. */
enum codec_result codec_job_malformed(struct codec_job *job, const char *reason);
/* Ends the job: hands the output over when result is CODEC_OK, drops it otherwise. Returns result.
 */
enum codec_result codec_job_end(struct codec_job *job, enum codec_result result,
                                struct buffer **ret_output);
