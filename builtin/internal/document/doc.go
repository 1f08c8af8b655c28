// Package document shows files that are not plain text to an agent, and changes
// notebooks.
//
// [Detect] determines the kind of a file by its content. [Image] makes a picture that a
// model accepts: valid, upright and small enough. [PDF] gives the text of
// pages, and pictures of those that have none. [ParseNotebook] shows the cells
// of a Jupyter notebook, and [EditNotebook] changes one of them while all other
// bytes of the file stay as they are.
//
// Files may be hostile. The cost of an image is computed
// from its header before it is decoded. PDF files are read by PDFium, which is
// compiled to WebAssembly and runs in a process of its own that has
// no more than the open file, bounded memory and bounded time.
package document
