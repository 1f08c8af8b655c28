package alarm

import (
	"testing"
	"testing/synctest"
	"time"
)

// makers are the two kinds of alarms.
var makers = map[string]func(func()) *Alarm{"New": New, "NewTimer": NewTimer}

func TestRings(t *testing.T) {
	for name, newAlarm := range makers {
		t.Run(name, func(t *testing.T) {
			rung := make(chan time.Time)
			a := newAlarm(func() { rung <- time.Now() })
			defer a.Close()
			for _, after := range []time.Duration{time.Nanosecond, time.Millisecond, 20 * time.Millisecond} {
				set := time.Now()
				a.Set(time.Hour)
				a.Set(after)
				if at := <-rung; at.Sub(set) < after {
					t.Errorf("it was set to %v and rang after %v", after, at.Sub(set))
				}
			}
		})
	}
}

// TestTurnedOff: what was turned off or closed does not ring, and may be set all the same.
func TestTurnedOff(t *testing.T) {
	for name, newAlarm := range makers {
		t.Run(name, func(t *testing.T) {
			rung := make(chan string, 9)
			off, last := newAlarm(func() { rung <- "off" }), newAlarm(func() { rung <- "last" })
			off.Set(5 * time.Millisecond)
			off.Set(0)
			closed := newAlarm(func() { rung <- "closed" })
			closed.Set(5 * time.Millisecond)
			closed.Close()
			closed.Set(time.Millisecond)
			closed.Close()
			last.Set(50 * time.Millisecond)
			if who := <-rung; who != "last" {
				t.Errorf("the one that is %s rang", who)
			}
			off.Close()
			last.Close()
		})
	}
}

// TestTimerOfATest: an alarm of NewTimer rings by the clock of the test, which takes no time.
func TestTimerOfATest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rung := make(chan bool)
		a := NewTimer(func() { rung <- true })
		for range 2 {
			a.Set(time.Hour)
			<-rung
		}
	})
}

func BenchmarkSet(b *testing.B) {
	a := New(func() {})
	defer a.Close()
	for b.Loop() {
		a.Set(time.Millisecond)
		a.Set(0)
	}
}
