// Command pdfworker is a worker of package document that is built without the
// race detector.
package main

import (
	"os"

	"toolhost/builtin/internal/document"
)

func main() { document.Reexec(os.Args) }
