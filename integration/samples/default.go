//go:build !slow

package samples

const usual = 1.0 / 10
