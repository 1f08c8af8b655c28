package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver"
)

// legacyAsking are the tools that ask their client by a request of their own.
func legacyAsking() []mcpserver.ExtraTool {
	sample := func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 the suite asks for it in the legacy era, where it is not deprecated
		result, err := server.ServerFromContext(ctx).RequestSampling(ctx, mcp.CreateMessageRequest{
			Request:             mcp.Request{Method: string(mcp.MethodSamplingCreateMessage)},
			CreateMessageParams: message(call.GetString("prompt", "")),
		})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(fmt.Sprintf("LLM response: %v", result.Content)), nil
	}
	elicit := func(schema string) runFunc {
		return func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
			result, err := server.ServerFromContext(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{
				Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
				Params:  question(call.GetString("message", "Please answer"), schema),
			})
			if err != nil {
				return nil, err
			}
			return mcp.NewToolResultText(fmt.Sprintf("Elicitation completed: action=%s, content=%v", result.Action,
				result.Content)), nil
		}
	}
	const required = `{"type":"object","properties":{%q:{"type":"string"}},"required":[%q]}`
	return []mcpserver.ExtraTool{
		tool("test_sampling", fmt.Sprintf(required, "prompt", "prompt"), sample),
		tool("test_elicitation", fmt.Sprintf(required, "message", "message"), elicit(
			`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)),
		tool("test_elicitation_sep1034_defaults", emptyInput, elicit(`{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)),
		tool("test_elicitation_sep1330_enums", emptyInput, elicit(`{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["Option One","Option Two"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]}}}}`)),
	}
}

func question(text, schema string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Mode: mcp.ElicitationModeForm, Message: text, RequestedSchema: json.RawMessage(schema)}
}

func message(text string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}},
		MaxTokens: 100,
	}
}

// field is the schema of a form with one field.
func field(name, kind string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, name, kind, name)
}

// A round asks for what a modern call still needs; nil when it has everything.
type round func(ctx context.Context, given mcp.MultiRoundTripParams) *server.InputRequestBuilder

// rounds is a tool that asks in rounds, and answers done at the end.
func rounds(name, done string, ask round) mcpserver.ExtraTool {
	t := tool(name, emptyInput, func(ctx context.Context, call mcpserver.ExtraCall) (*mcp.CallToolResult, error) {
		if more := ask(ctx, call.Params.MultiRoundTripParams); more != nil {
			return more.ToolResult(), nil
		}
		return mcp.NewToolResultText(done), nil
	})
	t.Rounds = true
	return t
}

// roundTools are the tools that ask as the modern era does.
func roundTools() []mcpserver.ExtraTool {
	name := question("What is your name?", field("name", "string"))
	ok := question("Please confirm", field("ok", "boolean"))
	return []mcpserver.ExtraTool{
		rounds("test_input_required_result_elicitation", "Hello!", askName),
		rounds("test_streaming_elicitation", "Hello!", askName),
		rounds("test_input_required_result_sampling", "It was sampled.", func(_ context.Context,
			given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
			if server.SamplingResponse(given.InputResponses, "capital_question") != nil {
				return nil
			}
			return server.NewInputRequestBuilder("").Sample("capital_question",
				message("What is the capital of France?"))
		}),
		rounds("test_input_required_result_list_roots", "The roots came.", func(_ context.Context,
			given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
			if server.RootsResponse(given.InputResponses, "client_roots") != nil {
				return nil
			}
			return server.NewInputRequestBuilder("").Roots("client_roots")
		}),
		rounds("test_input_required_result_request_state", "state-ok", func(_ context.Context,
			given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
			const state = "confirming"
			if given.RequestState == state && server.ElicitationResponse(given.InputResponses, "confirm") != nil {
				return nil
			}
			return server.NewInputRequestBuilder(state).Elicit("confirm", ok)
		}),
		rounds("test_input_required_result_multiple_inputs", "All came.", func(_ context.Context,
			given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
			if len(given.InputResponses) == 3 {
				return nil
			}
			return server.NewInputRequestBuilder("three").Elicit("user_name", name).Sample("greeting",
				message("Generate a greeting")).Roots("client_roots")
		}),
		rounds("test_input_required_result_multi_round", "Both steps are done.", func(_ context.Context,
			given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
			const one, two = "after step one", "after step two"
			switch given.RequestState {
			case "":
				return server.NewInputRequestBuilder(one).Elicit("step1", name)
			case one:
				return server.NewInputRequestBuilder(two).Elicit("step2",
					question("What is your favorite color?", field("color", "string")))
			}
			return nil
		}),
		rounds("test_input_required_result_capabilities", "Nothing could be asked.", askWhatIsDeclared),
		constant(askedTool, false, mcp.NewTextContent("A person allowed it.")),
	}
}

func askName(_ context.Context, given mcp.MultiRoundTripParams) *server.InputRequestBuilder {
	if answer := server.ElicitationResponse(given.InputResponses, "user_name"); answer != nil && answer.Action != "" {
		return nil
	}
	return server.NewInputRequestBuilder("").Elicit("user_name",
		question("What is your name?", field("name", "string")))
}

// askWhatIsDeclared asks only by what the client said it can do.
func askWhatIsDeclared(ctx context.Context, _ mcp.MultiRoundTripParams) *server.InputRequestBuilder {
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil || info.ClientCapabilities == nil {
		return nil
	}
	asked := server.NewInputRequestBuilder("declared")
	if info.ClientCapabilities.Elicitation != nil {
		asked.Elicit("user_name", question("What is your name?", field("name", "string")))
	}
	if info.ClientCapabilities.Sampling != nil {
		asked.Sample("greeting", message("Generate a greeting"))
	}
	return asked
}

// prompt is a handler that answers with these messages.
func prompt(content ...mcp.Content) server.PromptHandlerFunc {
	return func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{}
		for _, c := range content {
			result.Messages = append(result.Messages, mcp.NewPromptMessage(mcp.RoleUser, c))
		}
		return result, nil
	}
}

func prompts() []server.ServerPrompt {
	argument := func(name string) mcp.PromptOption { return mcp.WithArgument(name, mcp.RequiredArgument()) }
	told := mcp.WithPromptDescription("A fixture of the conformance suite.")
	return []server.ServerPrompt{
		{Prompt: mcp.NewPrompt("test_simple_prompt", told), Handler: prompt(mcp.NewTextContent("This is a simple prompt for testing."))},
		{Prompt: mcp.NewPrompt("test_prompt_with_image", told), Handler: prompt(mcp.NewImageContent(testImage, "image/png"), mcp.NewTextContent("Please analyze the image above."))},
		{
			Prompt: mcp.NewPrompt("test_prompt_with_arguments", told, argument("arg1"), argument("arg2")),
			Handler: func(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return prompt(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
					r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))(ctx, r)
			},
		},
		{
			Prompt: mcp.NewPrompt("test_prompt_with_embedded_resource", told, argument("resourceUri")),
			Handler: func(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return prompt(embedded(r.Params.Arguments["resourceUri"], "text/plain",
					"Embedded resource content for testing."),
					mcp.NewTextContent("Please process the embedded resource above."))(ctx, r)
			},
		},
		{
			Prompt: mcp.NewPrompt("test_input_required_result_prompt", told),
			Handler: func(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				if server.ElicitationResponse(r.Params.InputResponses, "user_context") == nil {
					ask := question("What context should the prompt use?", field("context", "string"))
					return server.NewInputRequestBuilder("").Elicit("user_context", ask).PromptResult(), nil
				}
				return prompt(mcp.NewTextContent("The prompt has its context."))(ctx, r)
			},
		},
	}
}
