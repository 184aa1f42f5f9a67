/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of code and constants that only the start needed: reading the configuration, relocating,
 * formatting. They stay mapped and come back from the page cache when somebody needs them, but no
 * longer count as resident. Any thread, at any time. */
#pragma once

/* Gives them back for the program and its libraries. Costs a few hundred short page faults in the
 * next moments; what is hot is back after the first requests. */
void startup_pages_release(void);
