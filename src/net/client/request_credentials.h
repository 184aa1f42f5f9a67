/* SPDX-License-Identifier: Apache-2.0 */
/* One header of each request that may change at run time, for clients of all protocols. It
 * overrides configured headers of its name. On the client's lane. */
#pragma once

struct request_credentials {
    const char *name; /* in lower case; NULL: none */
    const char *(*value)(
        void *arg); /* the current value, without line ends; valid until the next call */
    void *arg;
};
