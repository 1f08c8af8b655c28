//go:build slow

package host

const defaultSamples = 1
