//go:build !slow

package host

const defaultSamples = 1.0 / 3
