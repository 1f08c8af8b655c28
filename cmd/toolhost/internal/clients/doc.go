// Package clients adds toolhost to the configuration files of MCP clients, and takes it out again.
//
// A client is data, in clients.json: where its file is on each platform, which format it has, and what an entry looks like for
// each transport. The files belong to somebody else, so an edit changes nothing but the one entry: comments,
// order, indentation, line endings, a byte order mark, mode, owner and symbolic links stay. Every edit is
// decoded again and everything else in it compared for equality before it is written; what cannot be edited
// that way is refused with the lines to add by hand.
//
// What was replaced is kept ([Backups]), and [Uninstall] gives back the very bytes when nothing else has
// changed since.
package clients
