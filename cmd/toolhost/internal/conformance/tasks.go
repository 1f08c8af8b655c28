package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver"
)

// tasksExtension is the extension whose fixtures these are.
const tasksExtension = "io.modelcontextprotocol/tasks"

// taskTool is a tool whose calls are tasks of clients that follow tasks.
func taskTool(name, schema string, run runFunc) mcpserver.ExtraTool {
	return tool(name, schema, func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		call.Later()
		return run(ctx, call)
	})
}

// taskTools are the tools for the scenarios about tasks.
func taskTools() []mcpserver.ExtraTool {
	pause := func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	failing := taskTool("failing_job", emptyInput, func(ctx context.Context,
		_ mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("the job has failed"), pause(ctx, time.Second)
	})
	failing.Needs = []string{tasksExtension}
	confirm := question("Please confirm", field("confirm", "boolean"))
	return []mcpserver.ExtraTool{
		failing, roundsThenTask(),
		tool("greet", `{"type":"object","properties":{"name":{"type":"string"}}}`, func(_ context.Context,
			call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("Hello, " + call.GetString("name", "") + "!"), nil
		}),
		taskTool("slow_compute", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`,
			func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("computed"), pause(ctx,
					time.Duration(call.GetFloat("seconds", 0)*float64(time.Second)))
			}),
		taskTool("protocol_error_job", emptyInput, func(context.Context,
			mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
			return nil, &mcpserver.ProtocolError{Code: mcp.INTERNAL_ERROR, Text: "the job has broken"}
		}),
		taskTool("confirm_delete", `{"type":"object","properties":{"filename":{"type":"string"}}}`,
			func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
				answer, err := call.Ask(ctx, confirm)
				return mcp.NewToolResultText(fmt.Sprint("deleted: ", answer)), err
			}),
		taskTool("multi_input", emptyInput, func(ctx context.Context,
			call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
			failures := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := call.Ask(ctx, confirm)
					failures <- err
				}()
			}
			return mcp.NewToolResultText("both came"), errors.Join(<-failures, <-failures)
		}),
	}
}

// roundsThenTask asks before the call becomes a task.
func roundsThenTask() mcpserver.ExtraTool {
	t := tool("test_tool_with_task", emptyInput, func(ctx context.Context,
		call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		given := call.Params.MultiRoundTripParams
		if more := askName(ctx, given); more != nil {
			return more.ToolResult(), nil
		}
		call.Later()
		return mcp.NewToolResultText(fmt.Sprintf("Hello, %v!",
			server.ElicitationResponse(given.InputResponses, "user_name").Content)), nil
	})
	t.Rounds = true
	return t
}
