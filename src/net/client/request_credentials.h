/* SPDX-License-Identifier: Apache-2.0 */
/* One header of each request that may change while we run, for clients of all protocols. It wins
 * over configured headers of its name. On the client's lane. */
#pragma once

struct request_credentials {
    const char *name;                /* in lower case; NULL: there is none */
    const char *(*value)(void *arg); /* now; without line ends; valid until it is asked again */
    void *arg;
};
