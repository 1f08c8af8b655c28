// Package packages runs real package managers in the sandbox, against a registry on loopback. A manager that is not
// installed is skipped.
package packages
