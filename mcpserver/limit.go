package mcpserver

import (
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// Limits of one message, call or result. Anything larger is refused with an error that says so.
const (
	// MaxMessage is the longest JSON-RPC message, in bytes.
	MaxMessage = transport.MaxMessage
	// maxArguments bounds the arguments of one call, in bytes of JSON. The largest are files that are written
	// whole.
	maxArguments = 24 << 20
	// maxResult bounds the text and the images of one result, in bytes as sent. The texts of tools are far smaller;
	// pages of a document as images may reach it.
	maxResult = 16 << 20
)

// bind binds arguments unless they are too long.
func bind(tool *builtin.Def, args json.RawMessage) (*builtin.Call, error) {
	if len(args) > maxArguments {
		return nil, fmt.Errorf("the arguments of a call are at most %d bytes long, these are %d: make it several calls, such as one Write and then Edits", maxArguments, len(args))
	}
	return tool.Bind(args)
}

// bounded drops the parts that make a result too long to send.
func bounded(r builtin.Result) builtin.Result {
	const base64 = 4.0 / 3 // the growth of an image by encoding
	size, fit := len(r.Text), 0
	for _, image := range r.Images {
		if size += int(float64(len(image.Data)) * base64); size <= maxResult {
			fit++
		}
	}
	if fit < len(r.Images) {
		r.Text += fmt.Sprintf("\n\n[%d of %d images are left out, a result is at most %d bytes long: ask for fewer pages at once.]", len(r.Images)-fit, len(r.Images), maxResult)
		r.Images = r.Images[:fit]
	}
	if len(r.Text) > maxResult {
		r = builtin.Result{IsError: true, Text: fmt.Sprintf("the result is %d bytes long, at most %d can be sent: ask for less at once", len(r.Text), maxResult)}
	}
	return r
}
