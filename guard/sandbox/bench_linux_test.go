package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// BenchmarkSpawn compares a command in a warm sandbox, from the start to the end
// of the sweep, with plain os/exec.
func BenchmarkSpawn(b *testing.B) {
	f := newFixture(b)
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, backend := range backendsUnderTest() {
		s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{backend}})
		if err != nil {
			b.Logf("skipping %s: %v", backend, err)
			continue
		}
		b.Run(string(backend), func(b *testing.B) {
			for b.Loop() {
				p, err := s.Spawn(Spec{Argv: []string{"/bin/true"}, Dir: f.ws, Env: f.env})
				if err != nil {
					b.Fatal(err)
				}
				p.Wait()
				p.Kill()
			}
		})
		s.Close()
	}
}

// BenchmarkSpawnOnly is what a caller waits for until the command runs.
func BenchmarkSpawnOnly(b *testing.B) {
	f := newFixture(b)
	s := start1(b, f.policy())
	for b.Loop() {
		p, err := s.Spawn(Spec{Argv: []string{"/bin/true"}, Dir: f.ws, Env: f.env})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		p.Wait()
		p.Kill()
		b.StartTimer()
	}
}

func BenchmarkDeny(b *testing.B) {
	f := newFixture(b)
	s := start1(b, f.policy())
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		path := fmt.Sprintf("%s/late%d", f.ws, i)
		if err := os.WriteFile(path, []byte(secret), 0o644); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := s.Deny(path); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	f := newFixture(b)
	for b.Loop() {
		s, err := Start(context.Background(), f.policy(), Options{})
		if err != nil {
			b.Skip(err)
		}
		s.Close()
	}
}

func BenchmarkProbe(b *testing.B) {
	for b.Loop() {
		tryBackends(context.Background(), platformBackends)
	}
}
