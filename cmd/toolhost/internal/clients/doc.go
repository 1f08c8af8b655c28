// Package clients adds toolhost to the configuration files of MCP clients, and removes it.
//
// A client is data, in clients.json: the place of its file on each platform, its format, and the entry for each
// transport. The files belong to other programs, so an edit changes only the one entry: comments, order, indentation,
// line endings, a byte order mark, mode, owner and symbolic links stay. Every edit is decoded again and everything
// else in it compared for equality before it is written. An edit that fails this is refused with the lines to add by
// hand.
//
// Replaced content is kept ([Backups]), and [Client.Uninstall] restores the exact bytes if nothing else has changed
// since.
package clients
