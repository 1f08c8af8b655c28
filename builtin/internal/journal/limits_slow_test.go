//go:build slow

package journal

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestQuotaIsEnforcedMeanwhile holds that a host that never closes tidies by itself.
func TestQuotaIsEnforcedMeanwhile(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "history"), t.TempDir()
	for name, tt := range map[string]struct{ quota, size int }{
		"by number": {1 << 20, 8},
		"by bytes":  {16 << 10, 1000},
	} {
		if testing.Short() && name != "by number" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Dir: filepath.Join(dir, name), Quota: int64(tt.quota), MaxAge: time.Hour}
			s := open(t, cfg)
			most := 0
			for i := range tidyAfter + 100 {
				change(t, s, Change{Path: filepath.Join(files, "f")}, fmt.Sprintf("%*d", tt.size, i))
				time.Sleep(youngest)
				most = max(most, len(stored(t, s, packsName)))
			}
			if most > tidyAfter+62 || most*tt.size > tt.quota+tt.quota/tidyShare+3*tt.size {
				t.Errorf("%s: up to %d contents of %d bytes", name, most, tt.size)
			}
		})
	}
}
