// Package document shows files that are not plain text to an agent, and changes
// notebooks.
//
// [Detect] tells by content what a file is. [Image] makes a picture that a
// model can take: sound, upright and small enough. [PDF] gives the text of
// pages, and pictures of those that have none. [ParseNotebook] shows the cells
// of a Jupyter notebook, and [EditNotebook] changes one of them while all other
// bytes of the file stay as they are.
//
// Files are hostile until proven sound. What an image will cost is computed
// from its header before it is decoded. PDF files are read by PDFium, which is
// compiled to WebAssembly and runs in a process of its own that has
// no more than the open file, bounded memory and bounded time.
package document
