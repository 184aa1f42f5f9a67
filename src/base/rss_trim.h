/* SPDX-License-Identifier: Apache-2.0 */
/* Drops pages of code and constants that only the start needed: reading the configuration,
 * relocating, formatting. They stay mapped and come back from the page cache on their next use, but
 * no longer count as resident. Any thread, at any time. */
#pragma once

/* For the program and its libraries. Costs a few hundred minor page faults afterwards; hot pages
 * are back after the first requests. */
void rss_trim(void);
