// Package namespaces makes what commands find in the namespaces of a sandbox: their file system and their network.
//
// It runs in process 1 and needs CAP_SYS_ADMIN and CAP_NET_ADMIN in the sandbox's user namespace. [Build] makes the
// whole file system read-only, the writable paths writable again, and protected ones in them read-only. Denied paths
// are covered by an empty object of mode 000: reading fails instead of returning nothing, so that "git commit -a"
// cannot record an emptied file. [View.Change] does the same for what appears later. [OpenTUN] makes a TUN device with
// a route to everything, whose descriptor is for the host: package netstack answers there.
//
// # Overlays
//
// With an overlay in the plan each directory that commands write is an overlay (overlayfs with userxattr) of the
// host's, whose upper directory lies in a tmpfs that is attached nowhere and ends with the sandbox. Masks and read-only
// mounts lie over the overlays. What other programs change below an overlay is seen after a refresh, which has the
// kernel forget names. Directories of the host cannot be renamed there.
package namespaces
