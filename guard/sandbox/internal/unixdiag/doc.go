// Package unixdiag finds out from the kernel which Unix sockets programs listen on, by
// the files they are bound to and not by names, see sock_diag(7).
package unixdiag
