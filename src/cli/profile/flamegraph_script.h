/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of the SVG; neither refers to anything outside of it. */
#pragma once

/* Styles and script, as elements of the SVG; neither refers to anything outside of it. */
extern const char flamegraph_head[];
