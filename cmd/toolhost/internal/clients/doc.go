// Package clients adds toolhost to the configuration files of MCP clients, and removes it.
//
// A client is described by data, in clients.json: the path of its file on each platform, the format, and the entry
// for each transport. The files belong to other programs, so an edit changes only the one entry. Comments, order,
// indentation, line endings, a byte order mark, mode, owner and symbolic links stay. Before an edit is written, it is
// decoded again, and everything else in it is compared with the old content. If anything differs, the edit is
// refused, with the lines to add by hand.
//
// Replaced content is kept ([Backups]), and [Client.Uninstall] restores the exact bytes if nothing else has changed
// since.
package clients
