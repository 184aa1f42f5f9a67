# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the daemon as a process, back-ends, clients, peers."""
