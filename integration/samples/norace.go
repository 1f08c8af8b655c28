//go:build !race

package samples

const race = false
