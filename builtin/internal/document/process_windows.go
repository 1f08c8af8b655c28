package document

// limitProcess does nothing: on Windows processes are limited by jobs, from outside. The memory of PDFium is bounded
// nevertheless, and the timer of a worker ends it.
func limitProcess(int) error { return nil }
