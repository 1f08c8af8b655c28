// Package ctime tells when a file last changed in any way. Unlike the modification
// time, nobody can set the change time (inode(7)).
package ctime
