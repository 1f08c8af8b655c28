// Command pdfworker is a worker of package document that is built without the
// race detector.
package main

import _ "github.com/toolhost/toolhost/builtin/internal/document"

func main() {}
