//go:build !linux

package testenv

func spreadTemp() {}
