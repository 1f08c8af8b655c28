// Package atomicfile replaces the content of files atomically: after
// a kill, a full disk or a crash of the machine, the file has its old
// content or its new one.
//
// # Rename
//
// [Replace] writes a temporary file next to the target and exchanges the names
// of the two, then removes the old file. The file that is taken out shows whether another
// program saved the file by a rename meanwhile; then that file is put back, and
// the call fails with [ErrOvertaken]. If names cannot be exchanged (Windows,
// NFS, some FUSE file systems) the temporary file is renamed over the target
// after a last check, and what another program saves between the two is lost.
// Mode, owner, group, access control lists and extended attributes
// are carried over first. Content survives a loss of power only with [Options.Sync].
//
// # In place
//
// If a rename would lose something, the file is written in place: if it
// has several hard links, an owner or attribute that cannot be set, if its
// directory may not be written, or if it is a mount point. Old and
// new content are first saved durably in a journal; [Recover] restores the old content of
// a torn file. During such a write
// readers can see a mixture of both.
//
// # Temporary files
//
// With a journal, the intent to create a temporary file is recorded before
// the file exists, under a lock that ends with the process, so that [Recover]
// finds every file that a killed process left, and never one in use. The
// record is not synced, and costs some tens of microseconds: it survives a kill,
// and after a loss of power a stray temporary file is harmless.
//
// # What is not kept
//
// A rename gives the file a new inode, and with it a new time of birth and
// the inode flags of its directory (chattr). On macOS access control lists
// are no extended attributes and are not carried over; on Windows a renamed
// file has the access control list of its directory.
package atomicfile
