package builtin

// A Result is a tool's answer, not yet cut to size.
type Result struct {
	// Text is what the model reads.
	Text string
	// Images go with the text.
	Images []Image
	// Structured is for programs; it does not repeat the text. Nil: none.
	Structured any
	// IsError marks a call that did not do what was asked. The text says why and what to do next.
	IsError bool
	// SavedPath is the path of the whole result when the tool has already kept it and cut the text itself.
	SavedPath string
	// Summary is one line on what was done, such as "+3 -1", for logs; LastLine the last line of a task's output, for people.
	Summary, LastLine string
	// Asks is set when a person must be asked in the middle of the call, and is asked after it.
	Asks *ExecAsked
}

// An Image is a picture that a model can take.
type Image struct {
	Data []byte
	MIME string
}
