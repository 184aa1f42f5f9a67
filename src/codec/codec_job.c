/* SPDX-License-Identifier: Apache-2.0 */
/* What all codecs share. Runs on the box's lane. */
#include "src/codec/codec_job.h"

#include "src/base/budget.h"

#include <assert.h>
#include <stddef.h>

bool codec_job_hold(struct codec_job *job, uint64_t bytes)
{
    if (bytes <= job->held)
        return true;
    if (job->budget != NULL && !budget_try_take(job->budget, bytes - job->held))
        return false;
    job->held = bytes;
    return true;
}

enum codec_result codec_job_malformed(struct codec_job *job, const char *reason)
{
    job->reason = reason;
    return CODEC_MALFORMED;
}

enum codec_result codec_job_end(struct codec_job *job, enum codec_result result,
                                struct buffer **ret_output)
{
    assert(result != CODEC_MALFORMED || job->reason != NULL);
    if (job->held > 0 && job->budget != NULL)
        budget_return(job->budget, job->held);
    job->held = 0;
    if (result == CODEC_OK)
        *ret_output = codec_output_take(&job->output);
    else
        codec_output_drop(&job->output);
    return result;
}
