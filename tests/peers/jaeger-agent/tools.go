// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Keeps Jaeger's own agent, a program, in go.mod: Jaeger's clients send to it by UDP, and it sends on by gRPC.
package tools

import _ "github.com/jaegertracing/jaeger/cmd/agent"
